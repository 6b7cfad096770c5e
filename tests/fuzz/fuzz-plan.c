/* SPDX-License-Identifier: Apache-2.0
 *
 * castd's planner: any topology that ctl/registry/rows.c lets in, any group, and
 * steps of its roll-out in any order.  Nodes apply what they are told when the
 * input says so; members come, leave and move, the source goes, links and nodes
 * come and go, packets start, epochs end.  In the end nodes apply whatever they
 * are told until nothing changes: that must come soon.
 *
 * tests/unit/test-rollout.c sends packets through such trees; this is about the
 * shape of what is planned, for topologies and settings that it does not have.
 */
#include <config.h>

#include <check.h>
#include <stdlib.h>

#include "ctl/plan/rollout.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/plan-probes.h"
#include "tests/unit/parse-check.h"
#include "util.h"

#define MAX_NODES   10
#define MAX_HOSTS   8
#define MAX_LINKS   24
#define MAX_STEPS   48
#define MAX_SETTLED 24 /* steps: close, build, open, keys, and one for each that leaves. */

struct world {
    struct fuzz_input in;
    struct plan_topology topology; /* not prepared: a step prepares a copy. */
    struct plan have;              /* its trees' nodes are in 'topology'. */
    bool behind[MAX_NODES];        /* has a tree that it has not applied, by node. */
    bool started, was_serving, source;
    bool registered[MAX_HOSTS];
    bool fed[MAX_HOSTS]; /* packets of an earlier epoch may still be sent to it. */
    struct plan_group group;
    struct plan_member members[MAX_HOSTS];
    uint32_t last_branch;
};

/*
 * The topology.
 */

static void
choose_nodes(struct world *w)
{
    static const enum node_role roles[] = {NODE_SWITCH, NODE_SWITCH, NODE_SWITCH, NODE_SWITCH,
                                           NODE_AGENT,  NODE_OVS,    NODE_ROUTER};
    struct plan_topology *t = &w->topology;

    t->fabric_mtu = (unsigned) fuzz_below(&w->in, 4) ? 9000 : 1500;
    t->nodes = xcalloc(MAX_NODES, sizeof *t->nodes);
    t->n_nodes = 1 + fuzz_below(&w->in, MAX_NODES);
    for (size_t i = 0; i < t->n_nodes; i++) {
        struct plan_node *n = &t->nodes[i];

        snprintf(n->name, sizeof n->name, "n%zu", i);
        n->id = (uint16_t) (i + 1);
        n->role = i ? FUZZ_CHOOSE(&w->in, roles) : NODE_AGENT;
        n->no_aggregation = node_role_is_foreign(n->role) || !fuzz_below(&w->in, 8);
        ovs_strlcpy(n->plane, i % 4 == 1 ? "A" : i % 4 == 2 ? "B" : "", sizeof n->plane);
    }
}

static void
choose_hosts(struct world *w)
{
    struct plan_topology *t = &w->topology;

    t->hosts = xcalloc(MAX_HOSTS, sizeof *t->hosts);
    t->n_hosts = 1 + fuzz_below(&w->in, MAX_HOSTS);
    for (size_t i = 0; i < t->n_hosts; i++) {
        snprintf(t->hosts[i].name, sizeof t->hosts[i].name, "h%zu", i);
        t->hosts[i].address.s6_addr[0] = 0xfd;
        t->hosts[i].address.s6_addr[15] = (uint8_t) (i + 1);
    }
}

static bool
has_link(const struct plan_topology *t, const char *host)
{
    struct plan_end end;

    for (size_t i = 0; i < t->n_links; i++) {
        if (plan_link_end(&t->links[i], host, &end)) {
            return true;
        }
    }
    return false;
}

/* Each end of a link has an interface of its own. */
static void
add_link(struct world *w, const char *a, const char *b)
{
    struct plan_topology *t = &w->topology;
    static unsigned int n;

    if (t->n_links < MAX_LINKS) {
        struct plan_link *l = &t->links[t->n_links++];

        *l = (struct plan_link){.kind = PORT_PACKET};
        ovs_strlcpy(l->a, a, sizeof l->a);
        ovs_strlcpy(l->b, b, sizeof l->b);
        n = n % 9999 + 1;
        snprintf(l->a_port, sizeof l->a_port, "a%u", n);
        snprintf(l->b_port, sizeof l->b_port, "b%u", n);
    }
}

static void
choose_link(struct world *w)
{
    const struct plan_topology *t = &w->topology;
    const struct plan_node *a = &t->nodes[fuzz_below(&w->in, (uint32_t) t->n_nodes)];
    uint32_t other = fuzz_below(&w->in, (uint32_t) (t->n_nodes + t->n_hosts));

    if (other < t->n_nodes) {
        if (&t->nodes[other] != a) {
            add_link(w, a->name, t->nodes[other].name);
        }
    } else if (!node_role_is_foreign(a->role) && !has_link(t, t->hosts[other - t->n_nodes].name)) {
        add_link(w, t->hosts[other - t->n_nodes].name, a->name);
    }
}

static void
remove_link(struct world *w)
{
    struct plan_topology *t = &w->topology;

    if (t->n_links) {
        t->links[fuzz_below(&w->in, (uint32_t) t->n_links)] = t->links[t->n_links - 1];
        t->n_links--;
    }
}

/* The node's links go, and its row with its trees. */
static void
delete_node(struct world *w)
{
    struct plan_topology *t = &w->topology;
    size_t gone = fuzz_below(&w->in, (uint32_t) t->n_nodes), n = 0;
    struct plan_end end;

    if (t->n_nodes == 1) {
        return;
    }
    for (size_t i = 0; i < t->n_links; i++) {
        if (!plan_link_end(&t->links[i], t->nodes[gone].name, &end)) {
            t->links[n++] = t->links[i];
        }
    }
    t->n_links = n;
    n = 0;
    for (size_t i = 0; i < w->have.n_trees; i++) {
        struct plan_tree *tree = &w->have.trees[i];

        if (tree->node == &t->nodes[gone]) {
            tree_config_uninit(&tree->config);
        } else {
            w->have.trees[n++] = *tree;
            w->have.trees[n - 1].node -= tree->node > &t->nodes[gone];
        }
    }
    w->have.n_trees = n;
    t->n_nodes--;
    memmove(&t->nodes[gone], &t->nodes[gone + 1], (t->n_nodes - gone) * sizeof *t->nodes);
    memmove(&w->behind[gone], &w->behind[gone + 1], (t->n_nodes - gone) * sizeof *w->behind);
}

/* What the planner gets: a prepared copy, from rows in another order if 'reversed'. */
static void
copy_topology(const struct world *w, bool reversed, struct plan_topology *t)
{
    *t = (struct plan_topology){.fabric_mtu = w->topology.fabric_mtu,
                                .n_nodes = w->topology.n_nodes,
                                .n_hosts = w->topology.n_hosts,
                                .n_links = w->topology.n_links};
    t->nodes = xcalloc(MAX_NODES, sizeof *t->nodes);
    t->hosts = xcalloc(MAX_HOSTS, sizeof *t->hosts);
    t->links = xcalloc(MAX_LINKS, sizeof *t->links);
    for (size_t i = 0; i < t->n_nodes; i++) {
        t->nodes[i] = w->topology.nodes[reversed ? t->n_nodes - 1 - i : i];
    }
    for (size_t i = 0; i < t->n_hosts; i++) {
        t->hosts[i] = w->topology.hosts[reversed ? t->n_hosts - 1 - i : i];
    }
    for (size_t i = 0; i < t->n_links; i++) {
        t->links[i] = w->topology.links[reversed ? t->n_links - 1 - i : i];
    }
    plan_topology_prepare(t);
}

/*
 * The group.
 */

static void
choose_settings(struct world *w)
{
    static const uint32_t mtus[] = {256, 512, 1024, 2048, 4096};
    struct plan_group *g = &w->group;

    g->mode = (enum tree_mode) fuzz_below(&w->in, MODE_INGRESS + 1);
    g->provisioned = fuzz_below(&w->in, 2);
    g->mtu = FUZZ_CHOOSE(&w->in, mtus);
    g->policy.prune = fuzz_below(&w->in, 2);
    g->policy.liveness_msec = fuzz_below(&w->in, 2) * 10000;
    g->auth.tlvs = fuzz_below(&w->in, 4);
    g->auth.key = g->auth.tlvs ? 1 + fuzz_below(&w->in, 3) : 0;
    g->n_planes = g->mode == MODE_REPLICATE && fuzz_below(&w->in, 3) == 0 ? 2 : 0;
    ovs_strlcpy(g->planes[0], "A", NAME_SIZE);
    ovs_strlcpy(g->planes[1], "B", NAME_SIZE);
    ovs_strlcpy(g->preferred_plane, fuzz_below(&w->in, 2) ? "B" : "", NAME_SIZE);
}

static void
begin_epoch(struct world *w)
{
    w->group.epoch++;
    w->group.designated_qpn++;
    w->started = w->was_serving = w->source = false;
    w->last_branch = 0;
    plan_uninit(&w->have);
    w->have = (struct plan){.n_trees = 0};
    memset(w->behind, 0, sizeof w->behind);
    memset(w->registered, 0, sizeof w->registered);
    for (size_t i = 0; i < w->group.n_members; i++) {
        w->members[i].branch = 0;
    }
}

static void
choose_source(struct world *w)
{
    const struct plan_topology *t = &w->topology;

    if (!w->source) {
        const struct plan_host *h = &t->hosts[fuzz_below(&w->in, (uint32_t) t->n_hosts)];

        ovs_strlcpy(w->group.source_host, h->name, sizeof w->group.source_host);
        w->group.source_qpn = 2 + fuzz_below(&w->in, 100);
        w->source = true;
    }
}

static void
join_or_leave(struct world *w)
{
    size_t i = fuzz_below(&w->in, (uint32_t) w->group.n_members);
    struct plan_member *m = &w->members[i];

    w->registered[i] = !w->registered[i];
    if (w->registered[i]) {
        m->branch = ++w->last_branch; /* never given twice in an epoch. */
        m->qpn = 2 + fuzz_below(&w->in, 100);
        m->len = fuzz_below(&w->in, 3) * 4096;
        m->rkey = m->len ? 7 : 0;
        m->va = m->len ? 0x1000 : 0;
        m->ask = fuzz_below(&w->in, 4) == 0; /* its queue pair is that of an earlier epoch. */
        m->psn = w->group.start_psn;
        m->designated_qpn = m->ask ? 0x101 : 0;
        w->fed[i] = m->ask && fuzz_below(&w->in, 2);
    }
}

/*
 * What comes out.
 */

static const struct plan_tree *
tree_of(const struct plan *plan, uint16_t id)
{
    for (size_t i = 0; i < plan->n_trees; i++) {
        if (plan->trees[i].node->id == id) {
            return &plan->trees[i];
        }
    }
    return NULL;
}

static bool
names(const struct branch_config *branches, size_t n, uint32_t id)
{
    for (size_t i = 0; i < n; i++) {
        if (branches[i].id == id) {
            return true;
        }
    }
    return false;
}

static void
check_branches(const struct branch_config *branches, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        REQUIRE(branches[i].id);
        REQUIRE(!names(branches, i, branches[i].id));
    }
}

/* How many trees send a copy to the node with this id? */
static size_t
n_senders(const struct plan *plan, uint16_t id)
{
    size_t n = 0;

    for (size_t i = 0; i < plan->n_trees; i++) {
        const struct tree_config *c = &plan->trees[i].config;

        for (size_t j = 0; j < c->n_outer_da; j++) {
            n += node_id_of(&c->outer_da[j]) == id;
        }
    }
    return n;
}

/* How often does a packet that is at 'node' come to each node, in one plane? */
static void
count_arrivals(const struct plan *plan, const struct plan_tree *node, size_t *arrivals,
               size_t depth)
{
    REQUIRE(depth <= plan->n_trees);
    arrivals[node - plan->trees]++;
    for (size_t i = 0; i < node->config.n_outer_da; i++) {
        const struct plan_tree *child = tree_of(plan, node_id_of(&node->config.outer_da[i]));

        REQUIRE(child);
        count_arrivals(plan, child, arrivals, depth + 1);
    }
}

/* Each plane leads to each edge, and to no node twice. */
static void
check_planes(const struct plan *plan, const struct tree_config *agent)
{
    for (size_t i = 0; i < agent->n_planes; i++) {
        const struct plan_tree *root = tree_of(plan, node_id_of(&agent->planes[i].sid));
        size_t *arrivals = xcalloc(plan->n_trees + 1, sizeof *arrivals);

        if (root) {
            count_arrivals(plan, root, arrivals, 0);
        }
        for (size_t j = 0; j < plan->n_trees; j++) {
            const struct tree_config *c = &plan->trees[j].config;
            bool edge = c != agent && c->n_branches;

            REQUIRE(arrivals[j] <= 1 && (!edge || arrivals[j] == 1));
            REQUIRE(!edge || c->n_parent_planes == agent->n_planes);
        }
        free(arrivals);
        for (size_t j = 0; j < i; j++) {
            REQUIRE(node_id_of(&agent->planes[i].sid) != node_id_of(&agent->planes[j].sid));
        }
    }
}

/* Trees as planned anew: every node gets each packet once, and answers to one that expects it. */
static void
check_whole(const struct plan *plan)
{
    const struct plan_tree *agent = plan_agent_tree(plan);
    size_t n_roots = 0, n_planes = agent && agent->config.n_planes ? agent->config.n_planes : 1;

    if (agent) {
        check_planes(plan, &agent->config);
    }

    for (size_t i = 0; i < plan->n_trees; i++) {
        const struct plan_tree *t = &plan->trees[i];
        const struct tree_config *c = &t->config;
        const struct plan_tree *parent = tree_of(plan, node_id_of(&c->parent_sid));

        n_roots += c->root;
        for (size_t j = 0; j < c->n_outer_da; j++) {
            const struct plan_tree *child = tree_of(plan, node_id_of(&c->outer_da[j]));

            REQUIRE(child && child != t);
        }
        REQUIRE(plan_is_agent(t->node) || !agent || n_senders(plan, t->node->id) <= n_planes);
        /* The source agent may be a parent, and gets its tree last. */
        if (!IN6_IS_ADDR_UNSPECIFIED(&c->parent_sid) && (parent || plan_agent_tree(plan))) {
            REQUIRE(parent && parent != t);
            REQUIRE(names(parent->config.branches, parent->config.n_branches,
                          BRANCH_ID_NODE(t->node->id)));
        }
    }
    REQUIRE(!plan->n_trees || n_roots <= 1);
}

static void
check_plan(const struct world *w, const struct rollout *r)
{
    const struct plan_tree *agent = plan_agent_tree(&r->plan);
    const struct plan_tree *had = plan_agent_tree(&r->have);

    for (size_t i = 0; i < r->plan.n_trees; i++) {
        const struct plan_tree *t = &r->plan.trees[i];

        REQUIRE(tree_of(&r->plan, t->node->id) == t); /* one each. */
        REQUIRE(!t->config.open || t == agent);
        check_branches(t->config.branches, t->config.n_branches);
        check_branches(t->config.copies, t->config.n_copies);
    }
    /* The agent opens when all switches run what serves its copies. */
    if (agent && agent->config.open && !(had && had->config.open)) {
        REQUIRE(r->switches_applied);
        for (size_t i = 0; i < agent->config.n_copies; i++) {
            const struct plan_tree *edge;
            const struct branch_config *b =
                plan_find_branch(&r->have, agent->config.copies[i].id, &edge);

            REQUIRE(b && b->join != BRANCH_ASKED);
        }
    }
    /* Who is served is copied to; who is new in an epoch that has started waits.  Nobody is copied
     * to or counted as long as it is to be asked. */
    for (size_t i = 0; i < r->group.n_members; i++) {
        const struct rollout_member *m = &r->members[i];
        const struct plan_member *p = &r->group.members[i];
        const struct plan_tree *edge;
        const struct branch_config *b =
            p->branch ? plan_find_branch(&r->plan, p->branch, &edge) : NULL;

        REQUIRE(!p->ask || !plan_is_copied(&r->plan, p->branch));
        REQUIRE(!p->ask || !b || b->join == BRANCH_ASKED);
        REQUIRE(!p->ask || !b || !m->fed || plan_is_provisioned(&r->have, p->branch));

        REQUIRE(!r->serving || !m->target || m->copied);
        REQUIRE(!w->started || !m->target || m->copied);
        REQUIRE(!m->target || m->registered);
        REQUIRE(!(m->target && m->error));
    }
    /* A tree that carries packets keeps its ways. */
    for (size_t i = 0; i < r->plan.n_trees && w->started; i++) {
        const struct plan_tree *t = &r->plan.trees[i];
        const struct plan_tree *old = tree_of(&r->have, t->node->id);

        for (size_t j = 0; j < t->config.n_branches; j++) {
            const struct branch_config *b = &t->config.branches[j];

            REQUIRE((old && names(old->config.branches, old->config.n_branches, b->id))
                    || b->join == BRANCH_WAITS || b->join == BRANCH_ASKED);
        }
        if (!old) {
            REQUIRE(!t->config.root);
            continue;
        }
        REQUIRE(IN6_ARE_ADDR_EQUAL(&t->config.replication_sid, &old->config.replication_sid));
        REQUIRE(IN6_ARE_ADDR_EQUAL(&t->config.parent_sid, &old->config.parent_sid)
                || IN6_IS_ADDR_UNSPECIFIED(&t->config.parent_sid) || !old->config.n_branches);
    }
}

static bool
same_branches(const struct branch_config *a, size_t n_a, const struct branch_config *b, size_t n_b)
{
    for (size_t i = 0; i < n_a; i++) {
        bool found = false;

        for (size_t j = 0; j < n_b; j++) {
            found |= a[i].id == b[j].id && a[i].join == b[j].join;
        }
        if (!found) {
            return false;
        }
    }
    return n_a == n_b;
}

static bool
same_auth(const struct auth_config *a, const struct auth_config *b)
{
    bool same = a->tlvs == b->tlvs && a->key == b->key && a->n_keys == b->n_keys;

    for (size_t i = 0; same && i < a->n_keys; i++) {
        same = a->keys[i].id == b->keys[i].id;
    }
    return same;
}

/* Does a node have to be told anything?  As castd_sync() asks, but for what no step changes. */
static bool
same_tree(const struct tree_config *a, const struct tree_config *b)
{
    for (size_t i = 0; i < a->n_outer_da && a->n_outer_da == b->n_outer_da; i++) {
        bool found = false;

        for (size_t j = 0; j < b->n_outer_da; j++) {
            found |= IN6_ARE_ADDR_EQUAL(&a->outer_da[i], &b->outer_da[j]);
        }
        if (!found) {
            return false;
        }
    }
    return a->n_outer_da == b->n_outer_da && a->open == b->open && a->mode == b->mode
           && a->provisioned == b->provisioned && a->root == b->root
           && a->region_len == b->region_len && a->source_qpn == b->source_qpn
           && !memcmp(&a->policy, &b->policy, sizeof a->policy)
           && IN6_ARE_ADDR_EQUAL(&a->source, &b->source)
           && IN6_ARE_ADDR_EQUAL(&a->replication_sid, &b->replication_sid)
           && IN6_ARE_ADDR_EQUAL(&a->parent_sid, &b->parent_sid)
           && IN6_ARE_ADDR_EQUAL(&a->upstream, &b->upstream) && same_auth(&a->auth, &b->auth)
           && same_branches(a->branches, a->n_branches, b->branches, b->n_branches)
           && same_branches(a->copies, a->n_copies, b->copies, b->n_copies);
}

/*
 * Steps.
 */

static void
clone_trees(const struct plan *from, const struct plan_topology *t, struct plan *to)
{
    *to = (struct plan){.region_len = from->region_len,
                        .trees = xcalloc(from->n_trees + 1, sizeof *to->trees)};
    for (size_t i = 0; i < from->n_trees; i++) {
        const struct plan_node *n = plan_find_node(t, from->trees[i].node->name);

        REQUIRE(n);
        to->trees[to->n_trees].node = n;
        tree_config_clone(&to->trees[to->n_trees++].config, &from->trees[i].config);
    }
}

static void
fill_rollout(struct world *w, const struct plan_topology *t, struct rollout *r)
{
    *r = (struct rollout){.topology = t,
                          .source = w->source,
                          .started = w->started,
                          .was_serving = w->was_serving,
                          .switches_applied = true,
                          .group = w->group};
    clone_trees(&w->have, t, &r->have);
    for (size_t i = 0; i < w->have.n_trees; i++) {
        const struct plan_node *n = w->have.trees[i].node;
        bool applied = !w->behind[n - w->topology.nodes];

        if (plan_is_agent(n)) {
            r->agent_applied = applied;
        } else {
            r->switches_applied &= applied;
        }
    }
    r->members = xcalloc(MAX_HOSTS, sizeof *r->members);
    r->group.members = xmemdup(w->members, sizeof w->members);
    for (size_t i = 0; i < w->group.n_members; i++) {
        r->members[i].registered = w->registered[i];
        r->members[i].fed = w->fed[i];
    }
}

/* One step, and what nodes are told then.  True if any was told anything. */
static bool
step(struct world *w)
{
    struct plan_topology t, reversed;
    struct rollout r, again;
    struct plan have;
    bool news;

    copy_topology(w, false, &t);
    copy_topology(w, true, &reversed);
    fill_rollout(w, &t, &r);
    fill_rollout(w, &reversed, &again);
    rollout_step(&r);
    rollout_step(&again);
    check_plan(w, &r);
    if (!w->have.n_trees) {
        check_whole(&r.plan);
    }
    /* The order of rows makes no difference. */
    REQUIRE(!r.error == !again.error && r.plan.n_trees == again.plan.n_trees);
    for (size_t i = 0; i < r.plan.n_trees; i++) {
        const struct plan_tree *other = tree_of(&again.plan, r.plan.trees[i].node->id);

        REQUIRE(other && same_tree(&r.plan.trees[i].config, &other->config));
    }
    news = r.plan.n_trees != w->have.n_trees;
    clone_trees(&r.plan, &w->topology, &have);
    for (size_t i = 0; i < have.n_trees; i++) {
        const struct plan_tree *old = tree_of(&w->have, have.trees[i].node->id);

        if (!old || !same_tree(&old->config, &have.trees[i].config)) {
            w->behind[have.trees[i].node - w->topology.nodes] = true;
            news = true;
        }
    }
    plan_uninit(&w->have);
    w->have = have;
    w->was_serving = r.serving;
    for (size_t i = 0; i < w->group.n_members; i++) {
        w->members[i].ask = r.group.members[i].ask;
        w->members[i].psn = r.group.members[i].psn;
    }
    if (r.group.n_members && r.serving) {
        REQUIRE(r.n_targets && plan_agent_tree(&r.have)->config.open);
    }
    rollout_uninit(&r);
    rollout_uninit(&again);
    plan_topology_uninit(&t);
    plan_topology_uninit(&reversed);
    return news;
}

/* A node says that a branch which was to join counts, or where the queue pair stands of one that it
 * was to ask. */
static void
join(struct world *w)
{
    for (size_t i = 0; i < w->have.n_trees; i++) {
        struct tree_config *c = &w->have.trees[i].config;

        for (size_t j = 0; j < c->n_branches; j++) {
            struct branch_config *b = &c->branches[j];
            bool may =
                b->kind == BRANCH_NODE ? b->join == BRANCH_WAITS : b->join == BRANCH_ADMITTED;

            if (b->join == BRANCH_ASKED && !b->found) {
                b->found = fuzz_below(&w->in, 2);
                b->psn = psn_make(77);
            } else if (may && fuzz_below(&w->in, 2)) {
                b->join = BRANCH_COUNTS;
                b->late = b->kind == BRANCH_RECEIVER;
            }
        }
    }
}

/* A packet passes an agent that is open. */
static void
start(struct world *w)
{
    const struct plan_tree *agent = plan_agent_tree(&w->have);

    w->started |= agent && agent->config.open && agent->config.n_copies;
}

static void
act(struct world *w)
{
    switch (fuzz_below(&w->in, 16)) {
    case 0: choose_link(w); break;
    case 1: remove_link(w); break;
    case 2: delete_node(w); break;
    case 3: choose_settings(w); break;
    case 4: begin_epoch(w); break;
    case 5: choose_source(w); break;
    case 6: w->source = false; break;
    case 7: start(w); break;
    case 8:
    case 9: join_or_leave(w); break;
    case 10: {
        struct plan_node *n =
            &w->topology.nodes[fuzz_below(&w->in, (uint32_t) w->topology.n_nodes)];

        n->no_aggregation = node_role_is_foreign(n->role) || !n->no_aggregation;
        break;
    }
    case 11: join(w); break;
    default: /* a node applies what it has been told, or the last packets have arrived. */
        w->behind[fuzz_below(&w->in, (uint32_t) w->topology.n_nodes)] = false;
        w->fed[fuzz_below(&w->in, (uint32_t) w->topology.n_hosts)] = false;
        break;
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world w = {.in = {data, size}};
    struct plan_topology t, reversed;
    size_t n = 0;

    choose_nodes(&w);
    choose_hosts(&w);
    w.topology.links = xcalloc(MAX_LINKS, sizeof *w.topology.links);
    for (uint32_t i = fuzz_below(&w.in, MAX_LINKS); i; i--) {
        choose_link(&w);
    }
    w.group = (struct plan_group){.name = "g",
                                  .proxy = proxy_address(1),
                                  .replication_id = 5,
                                  .designated_qpn = 0x100,
                                  .designated_rkey = 9,
                                  .n_members = w.topology.n_hosts,
                                  .members = w.members};
    w.group.policy.timeout = 14;
    for (size_t i = 0; i < w.group.n_members; i++) {
        ovs_strlcpy(w.members[i].host, w.topology.hosts[i].name, sizeof w.members[i].host);
    }
    choose_settings(&w);
    begin_epoch(&w);
    choose_source(&w);
    for (int i = 0; i < MAX_STEPS && w.in.n; i++) {
        act(&w);
        step(&w);
    }
    do {
        memset(w.behind, 0, sizeof w.behind);
        REQUIRE(n++ < MAX_SETTLED);
    } while (step(&w));
    copy_topology(&w, false, &t);
    copy_topology(&w, true, &reversed);
    check_probes(&t, &reversed);
    plan_topology_uninit(&t);
    plan_topology_uninit(&reversed);
    plan_uninit(&w.have);
    free(w.topology.nodes);
    free(w.topology.hosts);
    free(w.topology.links);
    return 0;
}
