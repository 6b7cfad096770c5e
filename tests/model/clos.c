/* SPDX-License-Identifier: Apache-2.0
 *
 * The draft's fabric in virtual time.
 */
#include "tests/model/clos.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/alloc.h"
#include "lib/nd.h"
#include "lib/prng.h"
#include "lib/prober.h"

#define POOL       2048
#define FABRIC_MTU 9000
#define LINK_USEC  1

extern const struct node_class srcagent_class, swedge_class;

static void
fail(struct clos *c, const char *text)
{
    c->ops.fail(c->ops.aux, text);
}

/*
 * The topology.
 */

static struct plan_node *
add_node(struct clos *c, const char *kind, unsigned number, uint16_t id, enum node_role role)
{
    struct plan_node *n = &c->topology.nodes[c->topology.n_nodes++];

    snprintf(n->name, sizeof n->name, "%s%u", kind, number);
    n->id = id;
    n->role = role;
    return n;
}

static void
add_link(struct clos *c, const char *a, const char *b)
{
    struct plan_link *l = &c->topology.links[c->topology.n_links++];

    snprintf(l->a, sizeof l->a, "%s", a);
    snprintf(l->b, sizeof l->b, "%s", b);
    snprintf(l->a_port, sizeof l->a_port, "to-%.9s", b);
    snprintf(l->b_port, sizeof l->b_port, "to-%.9s", a);
    l->kind = PORT_PACKET;
}

/* In the name of an agent: two are on different sides. */
static unsigned
agent_number(const struct clos *c, unsigned i)
{
    return c->n_agents == 2 ? 1 + 2 * i : 1 + i;
}

static void
add_agent(struct clos *c, unsigned number)
{
    struct plan_host *h = &c->topology.hosts[c->topology.n_hosts++];
    unsigned leaf = 1 + (number - 1) / 2 * 2;
    char name[NAME_SIZE], other[NAME_SIZE];

    add_node(c, "dpu", number, (uint16_t) (0xa0 + number), NODE_AGENT);
    snprintf(h->name, sizeof h->name, "gpu%u", number);
    h->address = (struct in6_addr){.s6_addr = {0xfd, 0, 0, 0xa, [15] = (uint8_t) number}};
    snprintf(name, sizeof name, "dpu%u", number);
    for (unsigned i = 0; i < 2; i++) {
        snprintf(other, sizeof other, "leaf%u", leaf + i);
        add_link(c, name, other);
    }
}

static void
add_all(struct clos *c)
{
    char name[NAME_SIZE], other[NAME_SIZE];

    for (unsigned i = 0; i < c->n_agents; i++) {
        add_agent(c, agent_number(c, i));
    }
    for (unsigned i = 1; i <= CLOS_N_LEAVES; i++) {
        add_node(c, "leaf", i, (uint16_t) (i << 8), NODE_SWITCH);
    }
    for (unsigned i = 0; i < c->n_spines; i++) {
        struct plan_node *n = add_node(c, "spine", 5 + i, (uint16_t) ((5 + i) << 8), NODE_SWITCH);
        snprintf(n->plane, sizeof n->plane, "%c", i % 2 ? 'B' : 'A');
    }
    for (unsigned i = 0; i < CLOS_N_LEAVES * c->n_spines; i++) {
        snprintf(name, sizeof name, "leaf%u", i / c->n_spines + 1);
        snprintf(other, sizeof other, "spine%u", i % c->n_spines + 5);
        add_link(c, name, other);
    }
    for (unsigned i = 0; i < c->n_agents; i++) {
        snprintf(name, sizeof name, "gpu%u", agent_number(c, i));
        snprintf(other, sizeof other, "dpu%u", agent_number(c, i));
        add_link(c, name, other);
    }
}

unsigned
clos_n_links(const struct clos *c)
{
    return 2 * c->n_agents + CLOS_N_LEAVES * c->n_spines;
}

unsigned
clos_station_of_host(const struct clos *c, unsigned host)
{
    return c->n_nodes + host;
}

bool
clos_is_agent(const struct clos *c, unsigned station)
{
    return station < c->n_agents;
}

const char *
clos_name(const struct clos *c, unsigned station)
{
    return station < c->n_nodes ? c->nodes[station].plan->name
                                : c->topology.hosts[station - c->n_nodes].name;
}

static unsigned
find_station(const struct clos *c, const char *name)
{
    unsigned i = 0;

    while (strcmp(clos_name(c, i), name)) {
        i++;
    }
    return i;
}

struct plan_host *
clos_host(struct clos *c, unsigned host)
{
    return &c->topology.hosts[host];
}

void
clos_set_interval(struct clos *c, uint32_t msec)
{
    c->topology.probes.all.has_interval = true;
    c->topology.probes.all.interval = msec;
}

static struct fabric_end
end_of(const struct clos *c, const char *name, const char *peer)
{
    struct fabric_end end = {find_station(c, name), 0};

    if (end.station >= c->n_nodes) {
        return end; /* a host. */
    }
    const struct node_config *config = &c->nodes[end.station].config;
    for (size_t i = 0; i < config->n_ports; i++) {
        if (!strcmp(config->ports[i].peer, peer)) {
            end.port = config->ports[i].number;
        }
    }
    return end;
}

bool
clos_passes_link(const struct clos *c, const struct plan_probe *p, unsigned link)
{
    const struct fabric_link *l = &c->fabric.links[link];
    const char *a = clos_name(c, l->ends[0].station), *b = clos_name(c, l->ends[1].station);

    for (size_t i = 0; i < p->n_links; i++) {
        if ((!strcmp(p->links[i]->a, a) && !strcmp(p->links[i]->b, b))
            || (!strcmp(p->links[i]->a, b) && !strcmp(p->links[i]->b, a))) {
            return true;
        }
    }
    return false;
}

bool
clos_passes_node(const struct clos *c, const struct clos_node *prober, const struct plan_probe *p,
                 unsigned node)
{
    const struct plan_node *n = c->nodes[node].plan;
    bool passes = false;

    for (size_t i = 0; i < p->n_links; i++) {
        passes |= p->links[i]->a_node == n || p->links[i]->b_node == n;
    }
    return passes && prober->plan != n;
}

/*
 * Plans.
 */

static void
unplan(struct clos *c)
{
    for (unsigned i = 0; i < c->n_nodes; i++) {
        node_config_uninit(&c->nodes[i].config);
        plan_probes_uninit(&c->nodes[i].probes);
    }
}

/* As castd does. */
static void
plan(struct clos *c)
{
    struct plan_probes all[CLOS_MAX_NODES];
    struct plan_graph graph;

    plan_graph_init(&graph, &c->topology);
    for (unsigned i = 0; i < c->n_nodes; i++) {
        struct clos_node *n = &c->nodes[i];
        struct plan_node_paths *found = NULL;
        char *error = plan_node_config(&c->topology, n->plan, &n->config);

        error = error ? error : plan_destinations(&c->topology, n->plan, &n->config, &found);
        error = error ? error : plan_probes(&graph, n->plan, found, NULL, 0, &n->config, &all[i]);
        if (error) {
            fail(c, error);
        }
        plan_node_paths_free(&c->topology, found);
    }
    plan_graph_uninit(&graph);
    plan_probes_pair(&c->topology, all);
    for (unsigned i = 0; i < c->n_nodes; i++) {
        plan_probers(&c->topology, all, c->nodes[i].plan, &c->nodes[i].config);
        c->nodes[i].probes = all[i];
        if (c->probes) {
            plan_probes_configure(&all[i], &c->nodes[i].config);
        }
    }
}

static struct impair_params *
tx_of(struct clos *c, struct fabric_end end)
{
    struct node_config *config = &c->nodes[end.station].config;

    for (size_t i = 0; i < config->n_ports; i++) {
        if (config->ports[i].number == end.port) {
            return &config->ports[i].tx;
        }
    }
    abort();
}

void
clos_set_rate(struct clos *c, unsigned link, unsigned side, const struct impair_params *params)
{
    struct fabric_end end = c->fabric.links[link].ends[side];

    *tx_of(c, end) = *params;
    clos_configure(c, end.station);
}

void
clos_replan(struct clos *c)
{
    struct impair_params tx[2 * FABRIC_MAX_LINKS];
    unsigned n = clos_n_links(c);

    for (unsigned i = 0; i < 2 * n; i++) {
        tx[i] = *tx_of(c, c->fabric.links[i / 2].ends[i % 2]);
    }
    unplan(c);
    plan(c);
    for (unsigned i = 0; i < 2 * n; i++) {
        *tx_of(c, c->fabric.links[i / 2].ends[i % 2]) = tx[i];
    }
    for (unsigned i = 0; i < c->n_nodes; i++) {
        clos_configure(c, i);
    }
}

/*
 * Nodes.
 */

/* The event at the node is over: what it has sent leaves. */
static void
settle(struct clos *c, struct clos_node *n)
{
    if (!sent_frames_flush(&n->sent)) {
        fail(c, "a node changed a frame after it was sent");
    }
    n->deadline = n->node && !n->silent ? n->class->deadline(n->node) : UINT64_MAX;
    c->ops.after(c->ops.aux, n);
}

void
clos_configure(struct clos *c, unsigned node)
{
    struct clos_node *n = &c->nodes[node];
    char *error = NULL;

    if (!n->node || n->silent) {
        return;
    }
    n->config.generation++;
    if (n->class->configure(n->node, &n->config, c->fabric.now, &error)) {
        fail(c, error ? error : "a configuration is refused");
    }
    settle(c, n);
}

static void
advertise(struct clos *c, struct fabric_end from, struct fabric_end to, const struct nd_msg *asked)
{
    struct packet *p = packet_get(c->pool);
    struct nd_msg na = {
        .type = ND_NA,
        .src = asked->target,
        .dst = asked->src,
        .target = asked->target,
        .solicited = true,
        .override = true,
        .has_mac = true,
        .mac = {0x02, 0xee, 0, 0, 0, (uint8_t) from.station},
    };
    uint8_t mac[6], frame[256];

    node_port_mac(c->nodes[to.station].config.id, to.port, mac);
    nd_build(p, na.mac, mac, &na);
    fabric_send(&c->fabric, from, frame, packet_flatten(p, frame, sizeof frame), true);
    packet_put(p);
}

static void
node_tx(void *n_, uint16_t port, struct packet *p)
{
    struct clos_node *n = n_;
    struct clos *c = n->clos;
    struct fabric_end from = {(unsigned) (n - c->nodes), port};
    struct fabric_end to = fabric_peer(&c->fabric, from);
    uint8_t frame[PACKET_ROOM];
    size_t len = packet_flatten(p, frame, sizeof frame);
    struct parsed h;
    struct nd_msg m;

    sent_frames_put(&n->sent, p);
    if (parse_frame(frame, (uint32_t) len, &h)) {
        fail(c, "a node sent a malformed frame");
    }
    if (h.ip.proto != IP6_NH_ICMPV6 || nd_parse(frame, &h, &m) != ND_VALID) {
        c->ops.sent(c->ops.aux,
                    &(struct clos_frame){from.station, port, to.station, frame, len, &h});
    } else if (to.station >= c->n_nodes) {
        if (m.type == ND_NS) {
            advertise(c, to, from, &m);
        }
        return;
    }
    fabric_send(&c->fabric, from, frame, len, false);
}

void
clos_start_node(struct clos *c, unsigned node)
{
    struct clos_node *n = &c->nodes[node];

    n->node = n->class->create(
        &(struct node_io){
            .tx = node_tx,
            .aux = n,
            .seed = fabric_random(&c->fabric, UINT32_MAX),
            .posix_usec = CLOS_POSIX_USEC,
        },
        c->pool);
    clos_configure(c, node);
}

void
clos_stop_node(struct clos *c, unsigned node)
{
    struct clos_node *n = &c->nodes[node];

    if (!n->node) {
        return;
    }
    const uint64_t *drops = n->class->drops(n->node);
    for (unsigned why = 0; why < N_DROP_REASONS; why++) {
        n->drops[why] += drops[why];
    }
    n->class->destroy(n->node);
    n->node = NULL;
    n->deadline = UINT64_MAX;
}

uint64_t
clos_drops(const struct clos_node *n, enum drop_reason why)
{
    return n->drops[why] + (n->node ? n->class->drops(n->node)[why] : 0);
}

/*
 * Frames.
 */

void
clos_input(struct clos *c, struct fabric_end to, const uint8_t *frame, size_t len)
{
    struct clos_node *n = &c->nodes[to.station];

    if (!n->node || n->silent) {
        return;
    }
    struct packet *p = packet_from_bytes(c->pool, frame, len);
    if (!p) {
        fail(c, "the pool is empty");
    }
    c->coming = frame;
    c->coming_len = len;
    n->class->input(n->node, to.port, p, c->fabric.now);
    settle(c, n);
    c->coming = NULL;
}

static void
deliver(void *c_, struct fabric_end to, const uint8_t *frame, size_t len)
{
    struct clos *c = c_;

    if (to.station < c->n_nodes) {
        clos_input(c, to, frame, len);
    } else {
        c->ops.to_host(c->ops.aux, to.station - c->n_nodes, frame + sizeof(struct eth_hdr),
                       len - sizeof(struct eth_hdr));
    }
}

void
clos_send(struct clos *c, unsigned host, const uint8_t *ip, size_t len)
{
    struct fabric_end from = {clos_station_of_host(c, host), 0};
    struct fabric_end to = fabric_peer(&c->fabric, from);
    uint8_t frame[PACKET_ROOM];
    struct eth_hdr *eth = (struct eth_hdr *) frame;

    node_port_mac(c->nodes[to.station].config.id, to.port, eth->dst);
    memcpy(eth->src, (uint8_t[]){0x02, 0xee, 0, 0, 0, (uint8_t) from.station}, sizeof eth->src);
    eth->type = be16_put(ETH_TYPE_IP6);
    memcpy(eth + 1, ip, len);
    fabric_send(&c->fabric, from, frame, sizeof *eth + len, true);
}

/*
 * Time.
 */

uint64_t
clos_next(const struct clos *c)
{
    uint64_t when = fabric_next(&c->fabric);

    for (unsigned i = 0; i < c->n_nodes; i++) {
        when = c->nodes[i].deadline < when ? c->nodes[i].deadline : when;
    }
    return when > c->fabric.now ? when : c->fabric.now;
}

void
clos_step(struct clos *c)
{
    c->fabric.now = clos_next(c);
    for (unsigned i = 0; i < c->n_nodes; i++) {
        struct clos_node *n = &c->nodes[i];

        if (n->deadline <= c->fabric.now) {
            n->class->timer(n->node, c->fabric.now);
            settle(c, n);
            return;
        }
    }
    fabric_run(&c->fabric);
}

/*
 * Life cycle.
 */

struct clos *
clos_create(unsigned n_agents, unsigned n_spines, uint64_t seed, const struct clos_ops *ops)
{
    struct clos *c = must_calloc(1, sizeof *c);
    struct plan_topology *t = &c->topology;

    c->ops = *ops;
    c->n_agents = n_agents;
    c->n_spines = n_spines;
    c->n_nodes = n_agents + CLOS_N_LEAVES + n_spines;
    c->probes = true;
    fabric_init(&c->fabric, seed, deliver, c);
    c->pool = packet_pool_create(POOL);
    t->fabric_mtu = FABRIC_MTU;
    t->nodes = must_calloc(c->n_nodes, sizeof *t->nodes);
    t->hosts = must_calloc(n_agents, sizeof *t->hosts);
    t->links = must_calloc(clos_n_links(c) + n_agents, sizeof *t->links);
    add_all(c);
    return c;
}

void
clos_start(struct clos *c)
{
    struct plan_topology *t = &c->topology;
    struct plan_link as_added[CLOS_N_LEAVES * CLOS_MAX_SPINES + 3 * CLOS_MAX_AGENTS];
    size_t n_links = t->n_links;

    memcpy(as_added, t->links, n_links * sizeof *as_added);
    plan_topology_prepare(t);
    for (unsigned i = 0; i < c->n_nodes; i++) {
        struct clos_node *n = &c->nodes[i];

        n->clos = c;
        n->plan = &t->nodes[i];
        n->class = plan_is_agent(n->plan) ? &srcagent_class : &swedge_class;
        n->deadline = UINT64_MAX;
    }
    plan(c);
    for (size_t i = 0; i < n_links; i++) {
        const struct plan_link *l = &as_added[i];

        fabric_connect(&c->fabric, end_of(c, l->a, l->b), end_of(c, l->b, l->a));
        c->fabric.links[i].quality[0].delay = c->fabric.links[i].quality[1].delay = LINK_USEC;
    }
    for (unsigned i = 0; i < c->n_nodes; i++) {
        clos_start_node(c, i);
    }
}

void
clos_destroy(struct clos *c)
{
    for (unsigned i = 0; i < c->n_nodes; i++) {
        clos_stop_node(c, i);
    }
    unplan(c);
    if (packet_pool_n_free(c->pool) != POOL) {
        fail(c, "buffers are missing");
    }
    packet_pool_destroy(c->pool);
    fabric_uninit(&c->fabric);
    plan_topology_uninit(&c->topology);
    free(c);
}
