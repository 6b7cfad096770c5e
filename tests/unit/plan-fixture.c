/* SPDX-License-Identifier: Apache-2.0
 *
 * Topologies from text, and the planner's trees as text.
 */
#include <config.h>

#include "tests/unit/plan-fixture.h"

#include <arpa/inet.h>
#include <check.h>
#include <stdlib.h>

#include "ctl/registry/values.h"
#include "lib/usid.h"
#include "openvswitch/dynamic-string.h"
#include "util.h"

/* More than any test has. */
#define MAX_ITEMS 256

static bool
is_node(const char *name)
{
    return name[0] == 'n' || name[0] == 'a';
}

void
plan_fixture_add_node(struct plan_topology *t, const char *name)
{
    struct plan_node *n;

    if (plan_find_node(t, name)) {
        return;
    }
    if (!t->nodes) {
        t->nodes = xcalloc(MAX_ITEMS, sizeof *t->nodes);
    }
    n = &t->nodes[t->n_nodes++];
    ovs_strlcpy(n->name, name, sizeof n->name);
    n->id = (uint16_t) atoi(name + 1);
    n->role = name[0] == 'a' ? NODE_AGENT : NODE_SWITCH;
}

void
plan_fixture_add_host(struct plan_topology *t, const char *name)
{
    struct plan_host *h;
    char address[INET6_ADDRSTRLEN];

    if (plan_find_host(t, name)) {
        return;
    }
    if (!t->hosts) {
        t->hosts = xcalloc(MAX_ITEMS, sizeof *t->hosts);
    }
    h = &t->hosts[t->n_hosts++];
    ovs_strlcpy(h->name, name, sizeof h->name);
    snprintf(address, sizeof address, "fd00:1::%x", atoi(name + 1) + (name[0] == 'h') * 0x100);
    ck_assert_int_eq(inet_pton(AF_INET6, address, &h->address), 1);
}

static void
interface_name(const struct plan_topology *t, const char *node, const char *peer,
               char out[IFNAMSIZ])
{
    struct plan_end end;
    uint8_t n = 0;

    for (size_t i = 0; i < t->n_links; i++) {
        n += plan_link_end(&t->links[i], node, &end) && !strcmp(end.peer, peer);
    }
    if (n) {
        snprintf(out, IFNAMSIZ, "%.8s.%u", peer, n);
    } else {
        snprintf(out, IFNAMSIZ, "%.8s", peer);
    }
}

void
plan_fixture_add_link(struct plan_topology *t, const char *a, const char *b)
{
    struct plan_link *l;

    if (!t->links) {
        t->links = xcalloc(MAX_ITEMS, sizeof *t->links);
    }
    l = &t->links[t->n_links];
    ovs_strlcpy(l->a, a, sizeof l->a);
    ovs_strlcpy(l->b, b, sizeof l->b);
    interface_name(t, a, b, l->a_port);
    interface_name(t, b, a, l->b_port);
    l->kind = PORT_PACKET;
    t->n_links++;
}

struct plan_node *
plan_fixture_node(struct plan_topology *t, const char *name)
{
    return CONST_CAST(struct plan_node *, plan_find_node(t, name));
}

struct plan_link *
plan_fixture_link(struct plan_topology *t, const char *a, const char *b)
{
    struct plan_end end;

    for (size_t i = 0; i < t->n_links; i++) {
        if (plan_link_end(&t->links[i], a, &end) && !strcmp(end.peer, b)) {
            return &t->links[i];
        }
    }
    ck_abort_msg("no link from %s to %s", a, b);
}

static void
add_thing(struct plan_topology *t, const char *name)
{
    if (is_node(name)) {
        plan_fixture_add_node(t, name);
    } else {
        plan_fixture_add_host(t, name);
    }
}

void
plan_fixture_topology(struct plan_topology *t, const char *text)
{
    char *copy = xstrdup(text);
    char *save = NULL;

    *t = (struct plan_topology){.fabric_mtu = 9000};
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        char *dash = strchr(word, '-');

        if (strchr("!@~", word[0])) {
            plan_fixture_add_node(t, word + 1);
            struct plan_node *node = plan_fixture_node(t, word + 1);
            node->no_aggregation = true;
            node->role = word[0] == '@' ? NODE_OVS : word[0] == '~' ? NODE_ROUTER : node->role;
        } else if (dash) {
            *dash = '\0';
            add_thing(t, word);
            add_thing(t, dash + 1);
            plan_fixture_add_link(t, word, dash + 1);
        } else {
            add_thing(t, word);
        }
    }
    free(copy);
    plan_topology_prepare(t);
}

void
plan_fixture_group(struct plan_group *g, struct plan_member *members)
{
    *g = (struct plan_group){
        .name = "g",
        .epoch = 3,
        .proxy = proxy_address(1),
        .replication_id = 5,
        .designated_qpn = 0x103,
        .start_psn = {0xffffff},
        .mtu = 1024,
        .designated_rkey = 9,
        .source_host = "h0",
        .source_qpn = 18,
        .members = members,
        .agent = true,
        .open = true,
    };
}

void
plan_fixture_add_member(struct plan_group *g, const char *host)
{
    struct plan_member *m = &g->members[g->n_members++];

    *m = (struct plan_member){
        .branch = (uint32_t) g->n_members,
        .qpn = 100 + (uint32_t) g->n_members,
        .rkey = 200 + (uint32_t) g->n_members,
        .va = 0x1000 * g->n_members,
        .len = 4096,
        .psn = g->start_psn,
        .provision = true,
        .copy = true,
    };
    ovs_strlcpy(m->host, host, sizeof m->host);
}

/* The node that has this SID, which must have that function. */
static const struct plan_node *
sid_owner(const struct plan_topology *t, const struct in6_addr *sid, uint16_t function)
{
    for (size_t i = 0; i < t->n_nodes; i++) {
        struct in6_addr own = node_sid(t->nodes[i].id, function);

        if (IN6_ARE_ADDR_EQUAL(sid, &own)) {
            return &t->nodes[i];
        }
    }
    return NULL;
}

static const struct plan_node *
address_owner(const struct plan_topology *t, const struct in6_addr *address)
{
    for (size_t i = 0; i < t->n_nodes; i++) {
        struct in6_addr own = node_address(t->nodes[i].id);

        if (IN6_ARE_ADDR_EQUAL(address, &own)) {
            return &t->nodes[i];
        }
    }
    ck_abort_msg("no node has this address");
}

/* The nodes whose uSIDs are in front of the SID; nothing if there is no program. */
static void
put_program(const struct plan_topology *t, const struct in6_addr *program,
            const struct in6_addr *sid, struct ds *s)
{
    struct in6_addr rest = *program;
    const char *before = " ~";

    while (!IN6_IS_ADDR_UNSPECIFIED(program) && !IN6_ARE_ADDR_EQUAL(&rest, sid)) {
        struct in6_addr address = node_address(node_id_of(&rest));

        ds_put_format(s, "%s%s", before, address_owner(t, &address)->name);
        before = ",";
        usid_shift(&rest, 32, 48);
    }
}

/* " {A+ n5 ~n1}" for each plane: "+": preferred, "!": not usable; what it is addressed to. */
static void
put_planes(const struct plan_topology *t, const struct plan_node *node,
           const struct plane_config *planes, size_t n, struct ds *s)
{
    for (size_t i = 0; i < n; i++) {
        const struct plane_config *p = &planes[i];
        struct in6_addr owner = node_address(node_id_of(&p->sid));
        struct in6_addr first = node_address(node_id_of(&p->program));
        struct node_config ports = {.n_ports = 0};

        ds_put_format(s, " {%s%s%s %s", p->name, p->preferred ? "+" : "", p->usable ? "" : "!",
                      address_owner(t, &owner)->name);
        put_program(t, &p->program, &p->sid, s);
        ds_put_char(s, '}');
        ck_assert_ptr_null(plan_ports(t, node, &ports));
        ck_assert_uint_ge(p->port, 1);
        ck_assert_uint_le(p->port, ports.n_ports);
        ck_assert_str_eq(ports.ports[p->port - 1].peer, address_owner(t, &first)->name);
        node_config_uninit(&ports);
    }
}

static void
put_tree(const struct plan_topology *t, const struct plan_group *g, const struct plan_tree *tree,
         struct ds *s)
{
    const struct tree_config *c = &tree->config;
    uint16_t replication = (uint16_t) (SID_FUNC_END_REPLICATE + g->replication_id);

    ck_assert(plan_is_agent(address_owner(t, &c->outer_source)));
    ds_put_format(s, "%s%s", s->length ? "; " : "", tree->node->name);
    if (!IN6_IS_ADDR_UNSPECIFIED(&c->replication_sid)) {
        ck_assert_ptr_eq(sid_owner(t, &c->replication_sid, replication), tree->node);
        ds_put_cstr(s, " R");
    }
    for (size_t i = 0; i < c->n_outer_da; i++) {
        const struct plan_node *edge = sid_owner(t, &c->outer_da[i], SID_FUNC_END_MT);
        const struct plan_node *node = sid_owner(t, &c->outer_da[i], replication);

        if (c->mode == MODE_MCAST) {
            ds_put_format(s, " *%s", address_owner(t, &c->outer_da[i])->name);
            continue;
        }
        ck_assert(edge || node);
        ds_put_format(s, " %s%s", edge ? ">" : ">>", edge ? edge->name : node->name);
    }
    put_program(t, &c->outer_program, c->outer_da, s);
    put_planes(t, tree->node, c->planes, c->n_planes, s);
    if (!IN6_IS_ADDR_UNSPECIFIED(&c->upstream)) {
        ds_put_format(s, " =%s", address_owner(t, &c->upstream)->name);
    }
    if (!IN6_IS_ADDR_UNSPECIFIED(&c->parent_sid)) {
        ds_put_format(s, " <%s", sid_owner(t, &c->parent_sid, SID_FUNC_RESPONSE)->name);
        put_program(t, &c->parent_program, &c->parent_sid, s);
    }
    put_planes(t, tree->node, c->parent_planes, c->n_parent_planes, s);
    if (c->root) {
        ds_put_cstr(s, " <source");
    }
    for (size_t i = 0; i < c->n_branches; i++) {
        ds_put_format(s, " %s", c->branches[i].name);
    }
    if (plan_tree_is_source(tree)) {
        ds_put_cstr(s, " [");
        for (size_t i = 0; i < c->n_copies; i++) {
            ds_put_format(s, "%s%s", i ? " " : "", c->copies[i].name);
        }
        ds_put_cstr(s, "]");
    }
}

char *
plan_fixture_plan_text(const struct plan_topology *t, const struct plan_group *g,
                       const struct plan *plan)
{
    struct ds s = DS_EMPTY_INITIALIZER;

    for (size_t i = 0; i < plan->n_trees; i++) {
        put_tree(t, g, &plan->trees[i], &s);
    }
    return ds_steal_cstr(&s);
}
