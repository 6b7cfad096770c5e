/* SPDX-License-Identifier: Apache-2.0
 *
 * A topology from one line of text.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/model/lab.h"

/* fd00:1::1:0 and fd00:ffff::1. */
const struct in6_addr lab_source_address = {.s6_addr = {0xfd, 0, 0, 1, [13] = 1}};
const struct in6_addr lab_proxy = {.s6_addr = {0xfd, 0, 0xff, 0xff, [15] = 1}};

struct in6_addr
lab_receiver_address(unsigned i)
{
    unsigned number = i + 1;

    return (struct in6_addr){
        .s6_addr = {0xfd, 0, 0, 1, [14] = (uint8_t) (number >> 8), [15] = (uint8_t) number}};
}

unsigned
lab_receiver_number(const struct in6_addr *addr)
{
    struct in6_addr first = lab_receiver_address(0);

    return memcmp(addr, &first, 14) ? 0 : (unsigned) addr->s6_addr[14] << 8 | addr->s6_addr[15];
}

/* fd00:1::2:0 and on. */
static struct in6_addr
host_address(unsigned i)
{
    return (struct in6_addr){.s6_addr = {0xfd, 0, 0, 1, [13] = 2, [15] = (uint8_t) i}};
}

unsigned
lab_agent(const struct lab *lab)
{
    return lab->agent;
}

unsigned
lab_source_station(const struct lab *lab)
{
    return lab->n_nodes;
}

/* Two ids differ in two bits at least: a link that spoils one bit does not turn
 * a node's address, which no checksum protects, into another's. */
static uint16_t
node_id(unsigned number)
{
    return (uint16_t) (0x100 | number << 1 | (unsigned) __builtin_parity(number));
}

static unsigned
number_of(const char *name)
{
    return (unsigned) strtoul(name + 1, NULL, 10);
}

static bool
is_host(const char *name)
{
    return name[0] == 's' || name[0] == 'r' || name[0] == 'h';
}

unsigned
lab_station_of(const struct lab *lab, const char *name)
{
    if (name[0] == 's') {
        return lab_source_station(lab);
    }
    if (name[0] == 'r') {
        return lab_source_station(lab) + number_of(name);
    }
    if (name[0] == 'h') {
        return lab_source_station(lab) + lab->n + number_of(name);
    }
    for (unsigned i = 0; i < lab->n_nodes; i++) {
        if (!strcmp(lab->nodes[i].plan->name, name)) {
            return i;
        }
    }
    abort();
}

const char *
lab_station_name(const struct lab *lab, unsigned station)
{
    static char host[16];

    if (station < lab->n_nodes) {
        return lab->nodes[station].plan->name;
    }
    if (station == lab_source_station(lab)) {
        return "s";
    }
    unsigned number = station - lab_source_station(lab);
    bool is_receiver = number <= lab->n;
    snprintf(host, sizeof host, "%c%u", is_receiver ? 'r' : 'h',
             is_receiver ? number : number - lab->n);
    return host;
}

struct in6_addr
lab_station_address(const struct lab *lab, unsigned station)
{
    unsigned number = station - lab_source_station(lab);

    return !number            ? lab_source_address
           : number <= lab->n ? lab_receiver_address(number - 1)
                              : host_address(number - lab->n - 1);
}

/* Adds the node or host, if it is new. */
static void
add_station(struct plan_topology *t, const char *name)
{
    if (plan_find_node(t, name) || plan_find_host(t, name)) {
        return;
    }
    if (is_host(name)) {
        struct plan_host *h = &t->hosts[t->n_hosts++];
        snprintf(h->name, sizeof h->name, "%s", name);
        h->address = name[0] == 's'   ? lab_source_address
                     : name[0] == 'r' ? lab_receiver_address(number_of(name) - 1)
                                      : host_address(number_of(name) - 1);
    } else {
        struct plan_node *n = &t->nodes[t->n_nodes++];
        snprintf(n->name, sizeof n->name, "%s", name);
        n->id = node_id(number_of(name));
        n->role = name[0] == 'a' ? NODE_AGENT : NODE_SWITCH;
        n->no_aggregation = name[0] == 't';
    }
}

static void
add_link(struct plan_topology *t, const char *upper, const char *lower)
{
    struct plan_link *l = &t->links[t->n_links++];

    add_station(t, upper);
    add_station(t, lower);
    snprintf(l->a, sizeof l->a, "%s", upper);
    snprintf(l->b, sizeof l->b, "%s", lower);
    snprintf(l->a_port, sizeof l->a_port, "to-%.9s", lower);
    snprintf(l->b_port, sizeof l->b_port, "to-%.9s", upper);
    l->kind = PORT_PACKET;
}

/* The port of station 'name' that leads to 'peer'. */
static uint16_t
port_to(const struct lab *lab, const char *name, const char *peer)
{
    if (is_host(name)) {
        return 0;
    }
    const struct node_config *c = &lab->nodes[lab_station_of(lab, name)].base;
    for (size_t i = 0; i < c->n_ports; i++) {
        if (!strcmp(c->ports[i].peer, peer)) {
            return c->ports[i].number;
        }
    }
    abort();
}

/* Distances from 'first', which has this one from the source's agent, by the links in whatever
 * order.  No way leads through another agent. */
static void
set_depths(struct lab *lab, unsigned first, unsigned depth)
{
    const struct fabric *f = &lab->fabric;

    lab->max_depth = 0;
    for (unsigned i = 0; i < lab->n_nodes; i++) {
        lab->nodes[i].depth = i == lab->agent ? 0 : i == first ? depth : LAB_MAX_NODES;
    }
    for (unsigned round = 0; round < lab->n_nodes; round++) {
        for (unsigned i = 0; i < f->n_links; i++) {
            for (unsigned side = 0; side < 2; side++) {
                unsigned from = f->links[i].ends[side].station;
                unsigned to = f->links[i].ends[!side].station;
                if (from < lab->n_nodes && to < lab->n_nodes
                    && (from == first || !plan_is_agent(lab->nodes[from].plan))
                    && lab->nodes[to].depth > lab->nodes[from].depth + 1) {
                    lab->nodes[to].depth = lab->nodes[from].depth + 1;
                }
            }
        }
    }
    for (unsigned i = 0; i < lab->n_nodes; i++) {
        if (lab->nodes[i].depth > lab->max_depth) {
            lab->max_depth = lab->nodes[i].depth;
        }
    }
}

void
lab_set_via(struct lab *lab, const char *via)
{
    char name[NAME_SIZE];
    unsigned depth = 0, station = lab->agent;
    int len;

    snprintf(lab->via, sizeof lab->via, "%s", via);
    for (unsigned i = 0; i < lab->n_nodes; i++) {
        lab->nodes[i].in_front = false;
    }
    for (const char *s = via; sscanf(s, "%63[^,]%n", name, &len) == 1; s += len + (s[len] == ',')) {
        lab->nodes[station].in_front = depth++;
        station = lab_station_of(lab, name);
    }
    set_depths(lab, station, depth);
}

void
lab_topology_init(struct lab *lab, const char *text)
{
    struct plan_topology *t = &lab->topology;
    char upper[16], lower[16];
    int len;

    t->nodes = calloc(LAB_MAX_NODES, sizeof *t->nodes);
    t->hosts = calloc(LAB_MAX_RECEIVERS + 1 + LAB_MAX_HOSTS, sizeof *t->hosts);
    t->links = calloc(FABRIC_MAX_LINKS, sizeof *t->links);
    t->fabric_mtu = 9000;
    if (!t->nodes || !t->hosts || !t->links) {
        abort();
    }
    for (const char *s = text; sscanf(s, " %15[^-]-%15[^ ]%n", upper, lower, &len) == 2; s += len) {
        LAB_REQUIRE(lab,
                    t->n_links < FABRIC_MAX_LINKS && t->n_nodes < LAB_MAX_NODES - 1
                        && t->n_hosts <= LAB_MAX_RECEIVERS + LAB_MAX_HOSTS - 1,
                    "%s: too large", text);
        add_link(t, upper, lower);
    }
    plan_topology_prepare(t);
    lab->n_nodes = (unsigned) t->n_nodes;
    for (size_t i = 0; i < t->n_hosts; i++) {
        lab->n += t->hosts[i].name[0] == 'r';
    }
    lab->agent = (unsigned) (plan_attachment(t, "s") - t->nodes);
    for (unsigned i = 0; i < lab->n_nodes; i++) {
        lab->nodes[i].plan = &t->nodes[i];
        lab_node_init(lab, i);
    }
    /* As in the text, not as sorted. */
    for (const char *s = text; sscanf(s, " %15[^-]-%15[^ ]%n", upper, lower, &len) == 2; s += len) {
        struct fabric_end a = {lab_station_of(lab, upper), port_to(lab, upper, lower)};
        struct fabric_end b = {lab_station_of(lab, lower), port_to(lab, lower, upper)};
        fabric_connect(&lab->fabric, a, b);
    }
    set_depths(lab, lab->agent, 0);
}
