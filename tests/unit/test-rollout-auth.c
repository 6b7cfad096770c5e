/* SPDX-License-Identifier: Apache-2.0
 *
 * Whatever the operator asks for, whoever joins, and in whatever order nodes apply
 * what they are told: every packet that the source agent sends is accepted by every
 * edge, every response of a node by its parent, and in the end all have what is wanted and
 * nothing else.
 */
#include <config.h>

#include <stdlib.h>

#include "ctl/plan/rollout.h"
#include "tests/unit/plan-fixture.h"
#include "tests/unit/suites.h"
#include "util.h"

#define N_MEMBERS 3
#define MAX_NODES 8
#define SEEDS     300
#define STEPS     120

/* A node's tree: as told, and as run. */
struct node {
    bool told, runs;
    struct tree_config row, tree;
};

static struct model {
    struct plan_topology topology;
    struct plan_member members[N_MEMBERS];
    struct plan_group group;
    bool registered[N_MEMBERS];
    struct node nodes[MAX_NODES];
    bool started;
    bool had_data; /* responses have been authenticated, or were to be. */
} m;

static void
setup(void)
{
    memset(&m, 0, sizeof m);
    plan_fixture_topology(&m.topology, "h0-a30 a30-n1 n1-n2 n1-n3 n3-n4 n2-r1 n3-r2 n4-r3");
    plan_fixture_group(&m.group, m.members);
    for (size_t i = 0; i < N_MEMBERS; i++) {
        char name[8];

        snprintf(name, sizeof name, "r%zu", i + 1);
        plan_fixture_add_member(&m.group, name);
        m.registered[i] = i == 0 || rand() % 2;
    }
}

static void
teardown(void)
{
    for (size_t i = 0; i < MAX_NODES; i++) {
        tree_config_uninit(&m.nodes[i].row);
        tree_config_uninit(&m.nodes[i].tree);
    }
    plan_topology_uninit(&m.topology);
}

static bool
same_auth(const struct auth_config *a, const struct auth_config *b)
{
    if (a->tlvs != b->tlvs || a->key != b->key || a->responses != b->responses
        || a->n_keys != b->n_keys) {
        return false;
    }
    for (size_t i = 0; i < a->n_keys; i++) {
        if (!auth_find_key(b, a->keys[i].id)) {
            return false;
        }
    }
    return true;
}

/* Do all branches wait, or not, as they did? */
static bool
same_joining(const struct tree_config *a, const struct tree_config *b)
{
    for (size_t i = 0; i < a->n_branches; i++) {
        if (a->branches[i].id != b->branches[i].id || a->branches[i].join != b->branches[i].join) {
            return false;
        }
    }
    return true;
}

static bool
is_current(const struct node *n)
{
    return n->runs == n->told && n->row.open == n->tree.open && n->row.n_copies == n->tree.n_copies
           && n->row.n_branches == n->tree.n_branches && same_joining(&n->row, &n->tree)
           && same_auth(&n->row.auth, &n->tree.auth);
}

/* How often somebody has come into a tree under way. */
static size_t n_joined;

static void
step(void)
{
    struct rollout r = {
        .topology = &m.topology,
        .source = true,
        .started = m.started,
        .switches_applied = true,
        .group = m.group,
        .members = xcalloc(N_MEMBERS, sizeof *r.members),
    };

    r.group.members = xmemdup(m.members, sizeof m.members);
    r.have.trees = xcalloc(MAX_NODES, sizeof *r.have.trees);
    for (size_t i = 0; i < N_MEMBERS; i++) {
        r.members[i].registered = m.registered[i];
    }
    for (size_t i = 0; i < m.topology.n_nodes; i++) {
        if (m.nodes[i].told) {
            struct plan_tree *tree = &r.have.trees[r.have.n_trees++];

            tree->node = &m.topology.nodes[i];
            tree_config_clone(&tree->config, &m.nodes[i].row);
            if (tree->node->role == NODE_AGENT) {
                r.agent_applied = is_current(&m.nodes[i]);
            } else {
                r.switches_applied &= is_current(&m.nodes[i]);
            }
        }
    }
    rollout_step(&r);
    ck_assert_ptr_null(r.error);
    for (size_t i = 0; m.started && i < N_MEMBERS; i++) {
        n_joined += !r.members[i].provisioned && plan_is_provisioned(&r.plan, m.members[i].branch);
    }
    for (size_t i = 0; i < r.plan.n_trees; i++) {
        struct node *n = &m.nodes[r.plan.trees[i].node - m.topology.nodes];

        tree_config_uninit(&n->row);
        tree_config_clone(&n->row, &r.plan.trees[i].config);
        n->told = true;
    }
    rollout_uninit(&r);
}

static void
apply(struct node *n)
{
    if (n->told) {
        tree_config_uninit(&n->tree);
        tree_config_clone(&n->tree, &n->row);
        n->runs = true;
    }
}

/* The node says who has joined: all who may. */
static void
report(struct node *n)
{
    for (size_t i = 0; i < n->row.n_branches && is_current(n); i++) {
        struct branch_config *b = &n->row.branches[i];

        if (b->join == (b->kind == BRANCH_NODE ? BRANCH_WAITS : BRANCH_ADMITTED)) {
            b->join = n->tree.branches[i].join = BRANCH_COUNTS;
        }
    }
}

static bool
is_edge(size_t i)
{
    const struct tree_config *c = &m.nodes[i].row;

    for (size_t b = 0; b < c->n_branches && m.topology.nodes[i].role != NODE_AGENT; b++) {
        if (c->branches[b].kind == BRANCH_RECEIVER) {
            return true;
        }
    }
    return false;
}

/* Does a receiver of this edge count? */
static bool
is_needed(const struct node *n)
{
    for (size_t i = 0; i < n->row.n_branches; i++) {
        const struct branch_config *b = &n->row.branches[i];

        if (b->kind == BRANCH_RECEIVER && b->join == BRANCH_COUNTS) {
            return true;
        }
    }
    return false;
}

/* What the open agent runs now, all edges accept as they run now.  One that has only who is to join
 * may not run yet. */
static void
check_accepted(const struct auth_config *sends)
{
    for (size_t i = 0; i < m.topology.n_nodes; i++) {
        const struct auth_config *edge = &m.nodes[i].tree.auth;

        if (is_edge(i)) {
            ck_assert(m.nodes[i].runs || !is_needed(&m.nodes[i]));
            ck_assert_uint_eq(edge->tlvs & ~sends->tlvs, 0);
            ck_assert(!edge->tlvs || auth_find_key(edge, sends->key));
        }
    }
}

/* What a node whose responses count makes of them now, its parent accepts as it runs now. */
static void
check_responses(const struct node *parent, const struct in6_addr *parent_sid)
{
    for (size_t i = 0; i < m.topology.n_nodes; i++) {
        const struct node *n = &m.nodes[i];
        bool is_child =
            m.topology.nodes[i].role != NODE_AGENT && n->runs && n->tree.n_branches
            && (n->tree.root ? !parent_sid
                             : parent_sid && IN6_ARE_ADDR_EQUAL(&n->tree.parent_sid, parent_sid));
        bool counts = !parent_sid;

        for (size_t b = 0; b < parent->tree.n_branches && is_child; b++) {
            const struct branch_config *branch = &parent->tree.branches[b];

            counts |= branch->id == BRANCH_ID_NODE(m.topology.nodes[i].id)
                      && branch->join == BRANCH_COUNTS;
        }
        if (is_child && counts && parent->tree.auth.responses) {
            ck_assert_uint_ne(n->tree.auth.key, 0);
            ck_assert_ptr_nonnull(auth_find_key(&parent->tree.auth, n->tree.auth.key));
        }
        if (is_child) {
            ck_assert(!n->tree.auth.key || auth_find_key(&n->tree.auth, n->tree.auth.key));
        }
    }
}

static const struct node *
agent(void)
{
    for (size_t i = 0; i < m.topology.n_nodes; i++) {
        if (m.topology.nodes[i].role == NODE_AGENT) {
            return &m.nodes[i];
        }
    }
    abort();
}

static void
check_now(void)
{
    const struct node *a = agent();

    for (size_t i = 0; i < m.topology.n_nodes; i++) {
        if (!is_edge(i) && m.topology.nodes[i].role != NODE_AGENT && !m.had_data) {
            ck_assert_uint_eq(m.nodes[i].row.auth.n_keys, 0);
        }
    }
    if (a->runs && a->tree.open) {
        m.started |= rand() % 4 == 0;
        ck_assert(!a->tree.auth.tlvs || auth_find_key(&a->tree.auth, a->tree.auth.key));
        check_accepted(&a->tree.auth);
        check_responses(a, NULL);
        for (size_t i = 0; i < m.topology.n_nodes; i++) {
            const struct in6_addr sid = node_sid(m.topology.nodes[i].id, SID_FUNC_RESPONSE);

            check_responses(&m.nodes[i], &sid);
        }
    }
}

/* All apply everything: then it is as wanted. */
static void
check_end(void)
{
    for (int i = 0; i < 16; i++) {
        step();
        check_now();
        for (size_t n = 0; n < m.topology.n_nodes; n++) {
            apply(&m.nodes[n]);
            check_now();
        }
        for (size_t n = 0; n < m.topology.n_nodes; n++) {
            report(&m.nodes[n]);
        }
    }
    for (size_t i = 0; i < m.topology.n_nodes; i++) {
        const struct auth_config *c = &m.nodes[i].tree.auth;
        bool is_agent = m.topology.nodes[i].role == NODE_AGENT;
        bool has = (is_edge(i) || is_agent) && m.group.auth.tlvs;
        bool data = m.group.auth.tlvs & AUTH_DATA;
        bool makes = data && !is_agent && m.nodes[i].tree.n_branches;
        bool takes = is_agent;

        for (size_t b = 0; b < m.nodes[i].tree.n_branches; b++) {
            takes |= m.nodes[i].tree.branches[b].kind == BRANCH_NODE;
        }
        ck_assert_uint_eq(c->tlvs, has ? m.group.auth.tlvs : 0);
        ck_assert_uint_eq(c->n_keys, has || makes);
        ck_assert(!c->n_keys || c->keys[0].id == m.group.auth.key);
        ck_assert_uint_eq(c->responses, data && takes);
        ck_assert_uint_eq(c->key, makes || (is_agent && has) ? m.group.auth.key : 0);
    }
    ck_assert(agent()->tree.open);
}

static void
run_seed(unsigned seed)
{
    srand(seed);
    setup();
    for (int i = 0; i < STEPS; i++) {
        switch (rand() % 10) {
        case 0:
            m.group.auth.tlvs = rand() % 2 ? AUTH_DATA : (unsigned) rand() % 4;
            m.had_data |= m.group.auth.tlvs & AUTH_DATA;
            m.group.auth.key = m.group.auth.tlvs ? 1 + (uint32_t) rand() % 3 : 0;
            break;
        case 1:
        case 2:
        case 3: step(); break;
        case 4: m.registered[rand() % N_MEMBERS] |= rand() % 4 == 0; break;
        case 5: report(&m.nodes[(size_t) rand() % m.topology.n_nodes]); break;
        default: apply(&m.nodes[(size_t) rand() % m.topology.n_nodes]);
        }
        check_now();
    }
    check_end();
    teardown();
}

START_TEST(any_order)
    {
        for (unsigned seed = 0; seed < SEEDS; seed++) {
            run_seed(seed);
        }
        ck_assert_uint_ge(n_joined, SEEDS / 10);
    }
END_TEST

/* The numbers of who does not fit, with the TLVs' bytes among them. */
START_TEST(no_room)
    {
        setup();
        m.topology.fabric_mtu = 1024 + ROCE_OVERHEAD + IP6_HDR_LEN + 24 + 3 * 44 + 4 + 40;
        for (size_t i = 0; i < N_MEMBERS; i++) {
            m.members[i].copy = true;
        }
        m.group.auth = (struct auth_config){.tlvs = AUTH_MT, .key = 1};
        ck_assert_ptr_null(plan_check_size(&m.topology, &m.group));
        m.group.auth.tlvs = AUTH_MT | AUTH_HMAC;
        char *why = plan_check_size(&m.topology, &m.group);
        ck_assert_ptr_nonnull(why);
        ck_assert_str_eq(why, "path MTU 1024 with 3 members makes packets of 1388 bytes (1024 + 84 "
                              "RoCE + 40 IPv6 + 240 SRH), and the fabric MTU is 1348");
        free(why);
        teardown();
    }
END_TEST

Suite *
rollout_auth_suite(void)
{
    Suite *s = suite_create("rollout-auth");
    TCase *tc = tcase_create("rollout-auth");

    tcase_add_test(tc, any_order);
    tcase_add_test(tc, no_room);
    suite_add_tcase(s, tc);
    return s;
}
