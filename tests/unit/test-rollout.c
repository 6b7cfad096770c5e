/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of roll-out, against a model of the nodes: they apply what they are
 * told when they like, packets are on their way meanwhile, members come and go
 * and the topology changes.
 *
 * The model is a network that loses nothing of itself.  A switch replicates and
 * merges as its tree says, as last applied; a receiver confirms what it got in
 * order.  So a copy that does not arrive, or a PSN acknowledged that a receiver
 * has not got, is the fault of an order that was wrong.
 *
 * Who joins in mid-stream is admitted by its edge at the next packet that begins a
 * message.  A new node counts in its parent with its first response that is not below the
 * minimum there; what says so reaches the registry later, or never, if the node ends before.
 * Who comes with the queue pair of an earlier epoch is asked: its edge sends it a packet of its
 * own, which moves it on, and says then what it expects.  One that has half a message is lost.
 * A node may lose one below it: it goes on without what is behind that, for good, or until the
 * branch has left and comes back.  If all that one has refuse, so do all branches on the way there,
 * and nothing that they say counts after that.
 * A node that starts anew knows what its row says, and answers when all branches have spoken.  A
 * receiver that was admitted by an earlier life of its edge which did not say so has got what the
 * edge does not know of: the edge takes it for lost.
 */
#include <config.h>

#include "ctl/plan/rollout.h"

#include <stdlib.h>

#include "tests/unit/plan-fixture.h"
#include "tests/unit/suites.h"
#include "util.h"

#define N_SWITCHES 8
#define N_NODES    (N_SWITCHES + 1) /* the agent is the last. */
#define AGENT      N_SWITCHES
#define N_MEMBERS  5
#define N_PACKETS  512
#define N_BRANCHES (N_MEMBERS + 1 + N_NODES)

/* A node: its row and what it has applied. */
struct node {
    bool told, runs, current;         /* has a row, has a tree, and that is what the row says. */
    unsigned row_number, tree_number; /* rows come and go; which one the tree is from. */
    struct tree_config row, tree;
    unsigned una[N_BRANCHES]; /* what each branch has confirmed. */
    bool waiting[N_BRANCHES]; /* it is not counted. */
    bool silent[N_BRANCHES];  /* it is counted, and has not spoken since the node was started. */
    bool stuck[N_BRANCHES];   /* it has refused. */
    bool pruned[N_BRANCHES];  /* it was lost, and is not counted any more. */
    bool seen;                /* a packet came, */
    unsigned h;               /* and this is behind the last. */
    /* Branches that were to join, and count: as the node knows, and as its row has it. */
    bool joined[N_BRANCHES], reported[N_BRANCHES];
    unsigned first[N_BRANCHES], reported_first[N_BRANCHES];
    /* The same of branches that it was to ask: where they stand. */
    bool found[N_MEMBERS + 1], reported_found[N_MEMBERS + 1];
    uint32_t position[N_MEMBERS + 1];
    bool lost[N_BRANCHES], reported_lost[N_BRANCHES]; /* the same of nodes that it has lost. */
    bool unproven; /* it was started again: an earlier life may have said more than is known. */
    bool reported_blank;
};

/* A copy on its way. */
struct flight {
    struct in6_addr da; /* mode mcast: the next node's address. */
    size_t from;        /* node. */
    enum tree_mode mode;
    bool provisioned;
    unsigned psn;
    bool begins;                /* a message. */
    bool copies[N_MEMBERS + 1]; /* by branch id. */
};

static struct model {
    struct plan_topology topology;
    struct plan_member members[N_MEMBERS];
    struct plan_group group;
    bool registered[N_MEMBERS];
    bool counted[N_MEMBERS]; /* it has been active. */
    bool dead[N_MEMBERS];    /* its queue pair stands where its edge does not expect it. */
    /* Who was behind a node that was lost: it waited and is to wait anew, or is to come back. */
    bool again[N_MEMBERS], back[N_MEMBERS];
    /* Of who comes with the queue pair of an earlier epoch, and may get that one's packets. */
    bool half[N_MEMBERS], fed[N_MEMBERS];
    uint32_t expects[N_MEMBERS]; /* PSN of the queue pair, before this epoch's first packet. */
    struct node nodes[N_NODES];
    struct flight packets[N_PACKETS];
    size_t head, tail;
    unsigned sent;                    /* packets; also the next PSN. */
    unsigned received[N_MEMBERS + 1]; /* by branch id. */
    unsigned acked;
    bool started; /* reported. */
    bool serving;
    bool torn;              /* the topology has lost something. */
    bool was_lost[N_NODES]; /* by the node above, as castd knows. */
} m;

/* How often somebody has come into a tree under way, and a node back that was lost. */
static size_t n_joined, n_back, n_blank;

/* Where a branch's number is in 'una'. */
static size_t
branch_index(uint32_t id)
{
    return id <= N_MEMBERS ? id : N_MEMBERS + (id - BRANCH_ID_NODE(0));
}

static bool
has_branch(const struct branch_config *branches, size_t n, uint32_t id)
{
    for (size_t i = 0; i < n; i++) {
        if (branches[i].id == id) {
            return true;
        }
    }
    return false;
}

static size_t
sid_index(const struct in6_addr *sid)
{
    size_t id = sid->s6_addr[5];

    return id == 30 ? AGENT : id - 1;
}

/*
 * Topology.
 */

static void
random_links(void)
{
    for (int i = 0; i < 14; i++) {
        plan_fixture_add_link(&m.topology, m.topology.nodes[rand() % N_SWITCHES].name,
                              m.topology.nodes[rand() % N_SWITCHES].name);
    }
}

static void
choose_mode(void)
{
    m.group.mode = (enum tree_mode)(rand() % (MODE_INGRESS + 1));
    m.group.provisioned = rand() % 2;
}

/* A member registers, perhaps with the queue pair of an earlier epoch. */
static void
register_member(size_t i)
{
    m.registered[i] = true;
    m.counted[i] = m.dead[i] = m.again[i] = m.back[i] = false;
    m.half[i] = m.fed[i] = false;
    m.members[i].psn = m.group.start_psn;
    m.members[i].ask = rand() % 4 == 0;
    m.expects[i] = m.group.start_psn.v;
    if (m.members[i].ask) {
        m.half[i] = rand() % 4 == 0;
        m.fed[i] = rand() % 2;
        m.expects[i] = (uint32_t) rand() & PSN_MASK;
    }
}

static void
setup(void)
{
    memset(&m, 0, sizeof m);
    plan_fixture_topology(&m.topology, "h0-a30 a30-n8 n1 n2 n3 n4 n5 n6 n7 r1 r2 r3 r4 r5");
    plan_fixture_group(&m.group, m.members);
    choose_mode();
    for (size_t i = 0; i < N_MEMBERS; i++) {
        char name[8];

        snprintf(name, sizeof name, "r%zu", i + 1);
        plan_fixture_add_member(&m.group, name);
        plan_fixture_add_link(&m.topology, m.topology.nodes[rand() % N_SWITCHES].name, name);
        m.expects[i] = m.group.start_psn.v;
        if (i == 0 || rand() % 3 == 0) {
            register_member(i);
        }
    }
    random_links();
    plan_topology_prepare(&m.topology);
}

static void
teardown(void)
{
    for (size_t i = 0; i < N_NODES; i++) {
        tree_config_uninit(&m.nodes[i].row);
        tree_config_uninit(&m.nodes[i].tree);
    }
    plan_topology_uninit(&m.topology);
}

/* A link goes, or one comes, or a switch begins or stops to aggregate. */
static void
change_topology(void)
{
    size_t link = (size_t) rand() % m.topology.n_links;
    size_t node = (size_t) rand() % N_SWITCHES;

    switch (rand() % 3) {
    case 0:
        if (m.topology.links[link].b[0] == 'n' || rand() % 8 == 0) {
            m.topology.links[link] = m.topology.links[--m.topology.n_links];
        }
        break;
    case 1:
        plan_fixture_add_link(&m.topology, m.topology.nodes[node].name,
                              rand() % 4 ? m.topology.nodes[rand() % N_SWITCHES].name
                                         : m.members[rand() % N_MEMBERS].host);
        break;
    default: m.topology.nodes[node].no_aggregation = !m.topology.nodes[node].no_aggregation; break;
    }
    plan_topology_prepare(&m.topology);
}

/*
 * Nodes.
 */

static const struct branch_config *
find_branch(const struct tree_config *c, uint32_t id)
{
    for (size_t i = 0; c && i < c->n_branches; i++) {
        if (c->branches[i].id == id) {
            return &c->branches[i];
        }
    }
    return NULL;
}

/* The node's row as it reads it: what it has said itself is true. */
static void
read_row(const struct node *n, struct tree_config *out)
{
    tree_config_clone(out, &n->row);
    for (size_t i = 0; i < out->n_branches; i++) {
        struct branch_config *b = &out->branches[i];
        size_t branch = branch_index(b->id);

        if (b->join != BRANCH_COUNTS && n->reported[branch]) {
            b->join = BRANCH_COUNTS;
            b->late = b->kind == BRANCH_RECEIVER;
            b->first = psn_make(n->reported_first[branch]);
        } else if (b->join == BRANCH_ASKED && n->reported_found[branch]) {
            b->found = true;
            b->psn = psn_make(n->position[branch]);
        }
    }
}

/* From now on the branch counts. */
static void
join(struct node *n, size_t branch, unsigned psn)
{
    n->waiting[branch] = false;
    n->joined[branch] = true;
    n->first[branch] = n->una[branch] = psn;
    if (branch <= N_MEMBERS) {
        m.again[branch - 1] =
            false; /* its queue pair has moved on: castd is told that it is lost. */
    }
}

static void
add_branch(struct node *n, const struct branch_config *b)
{
    size_t branch = branch_index(b->id);

    n->waiting[branch] = b->join != BRANCH_COUNTS;
    n->silent[branch] = n->stuck[branch] = n->pruned[branch] = false;
    n->joined[branch] = false;
    n->una[branch] = 0;
}

/* A receiver that counts from this epoch's start is sent what its queue pair expects. */
static void
check_position(const struct branch_config *b)
{
    if (b->id <= N_MEMBERS && b->join == BRANCH_COUNTS && !b->late) {
        ck_assert_uint_eq(b->psn.v, m.expects[b->id - 1]);
    }
}

/* Whom the node's row does not have as one that is to join, of that it has nothing to say. */
static void
forget_reports(struct node *n)
{
    bool joins[N_BRANCHES] = {false}, asked[N_BRANCHES] = {false};

    for (size_t i = 0; n->told && i < n->row.n_branches; i++) {
        const struct branch_config *b = &n->row.branches[i];

        joins[branch_index(b->id)] = b->join == BRANCH_WAITS || b->join == BRANCH_ADMITTED;
        asked[branch_index(b->id)] = b->join == BRANCH_ASKED;
    }
    for (size_t i = 0; i < N_BRANCHES; i++) {
        n->reported[i] &= joins[i];
        n->joined[i] &= joins[i];
    }
    for (size_t i = 0; i <= N_MEMBERS; i++) {
        n->reported_found[i] &= asked[i];
        n->found[i] &= asked[i];
    }
}

static void
apply(struct node *n)
{
    struct tree_config old = n->tree;

    if (n->tree_number != n->row_number) {
        n->runs = n->unproven = false; /* It is another tree. */
        memset(n->lost, 0, sizeof n->lost);
        n->tree_number = n->row_number;
    }
    if (n == &m.nodes[AGENT]) {
        m.started |= m.sent > 0; /* what is to be reported goes with it. */
    }
    n->tree = (struct tree_config){.epoch = 0};
    if (n->told) {
        read_row(n, &n->tree);
    }
    for (size_t i = 0; i < n->tree.n_branches; i++) {
        const struct branch_config *b = &n->tree.branches[i];

        const struct branch_config *was = n->runs ? find_branch(&old, b->id) : NULL;

        check_position(b);
        if (!was || (was->join == BRANCH_ASKED && b->join != BRANCH_ASKED)) {
            /* Else nobody knows what it has. */
            ck_assert(!m.sent || b->join == BRANCH_WAITS || b->join == BRANCH_ASKED);
            add_branch(n, b);
        } else if (b->join == BRANCH_COUNTS) {
            ck_assert(!n->waiting[branch_index(b->id)]); /* because it said so. */
        } else if (was->join == BRANCH_COUNTS) {
            add_branch(n, b); /* the node has not seen it leave. */
        }
    }
    if (!n->runs) {
        n->seen = false;
    }
    n->unproven &= n->runs && n->tree.n_branches; /* Without branches it is nobody's. */
    tree_config_uninit(&old);
    n->runs = n->told;
    n->current = true;
    forget_reports(n);
}

/* The node ends and starts: it knows its row, and what receivers say when they are asked.  What it
 * had lost it loses again. */
static void
restart(struct node *n)
{
    tree_config_uninit(&n->tree);
    n->tree = (struct tree_config){.epoch = 0};
    if (n->told) {
        read_row(n, &n->tree);
    }
    n->runs = n->told;
    n->unproven = n->tree.n_branches > 0;
    n->current = true;
    n->seen = false;
    n->tree_number = n->row_number;
    for (size_t i = 0; i < n->tree.n_branches; i++) {
        const struct branch_config *b = &n->tree.branches[i];
        size_t branch = branch_index(b->id);
        bool was_admitted = n->joined[branch];
        bool stuck = n->stuck[branch], pruned = n->pruned[branch];

        add_branch(n, b);
        n->stuck[branch] = stuck;
        n->pruned[branch] = pruned;
        n->silent[branch_index(b->id)] = m.sent && !n->waiting[branch_index(b->id)];
        if (b->id <= N_MEMBERS && was_admitted && b->join != BRANCH_COUNTS) {
            m.dead[b->id - 1] = true;
            m.registered[b->id - 1] = m.again[b->id - 1] =
                false; /* castd is told that it is lost. */
        }
    }
    forget_reports(n);
}

static bool
any_counts(const struct node *n)
{
    for (size_t i = 0; i < n->tree.n_branches; i++) {
        size_t branch = branch_index(n->tree.branches[i].id);

        if (!n->waiting[branch] && !n->pruned[branch]) {
            return true;
        }
    }
    return false;
}

/* Does nothing bound what an earlier life has said?  The root learns it from the source. */
static bool
is_blank(const struct node *n)
{
    return n->unproven && !n->tree.root && !any_counts(n);
}

/* May branches join? */
static bool
is_proven(const struct node *n)
{
    return !n->unproven || (n->tree.root && !any_counts(n));
}

static bool
has_index(const struct tree_config *c, size_t branch)
{
    for (size_t i = 0; i < c->n_branches; i++) {
        if (branch_index(c->branches[i].id) == branch) {
            return true;
        }
    }
    return false;
}

/* What the node knows of joining and of losses goes to its row.  Of a branch that this does not
 * have any more nothing is said. */
static void
report(struct node *n)
{
    for (size_t i = 0; i < N_BRANCHES; i++) {
        if (n->joined[i]) {
            n->reported[i] = true;
            n->reported_first[i] = n->first[i];
        }
        n->lost[i] &= n->told && has_index(&n->row, i);
        n->reported_lost[i] = n->lost[i];
    }
    for (size_t i = 0; i <= N_MEMBERS; i++) {
        n->reported_found[i] |= n->found[i];
    }
    n->reported_blank = n->told && is_blank(n);
}

/* The node asks whom it is to ask. */
static void
ask(struct node *n)
{
    for (size_t i = 0; n->runs && i < n->tree.n_branches; i++) {
        const struct branch_config *b = &n->tree.branches[i];
        size_t member = b->id - 1;

        if (b->join != BRANCH_ASKED || b->found || n->found[b->id]) {
            continue;
        }
        ck_assert(!m.fed[member]);
        if (m.half[member]) {
            m.registered[member] = false; /* castd is told that it is lost. */
        } else {
            m.expects[member] = (m.expects[member] + 1) & PSN_MASK;
            n->found[b->id] = true;
            n->position[b->id] = m.expects[member];
        }
    }
}

static void
put_packet(const struct flight *p, const struct in6_addr *da)
{
    if (m.tail == N_PACKETS) {
        m.tail -= m.head;
        memmove(m.packets, m.packets + m.head, m.tail * sizeof *m.packets);
        m.head = 0;
    }
    ck_assert_uint_lt(m.tail, N_PACKETS);
    m.packets[m.tail] = *p;
    m.packets[m.tail++].da = *da;
}

/* Mode ingress: is there anything for the edge with this SID? */
static bool
is_sent_to(const struct tree_config *agent, const struct in6_addr *sid)
{
    for (size_t i = 0; i < agent->n_copies; i++) {
        if (sid_index(&agent->copies[i].edge) == sid_index(sid)) {
            return true;
        }
    }
    return false;
}

/* The agent lets one packet pass. */
static void
send_packet(void)
{
    struct node *agent = &m.nodes[AGENT];
    struct flight p = {
        .psn = m.sent,
        .begins = rand() % 3 == 0,
        .from = AGENT,
        .mode = agent->tree.mode,
        .provisioned = agent->tree.provisioned,
    };

    if (agent->runs && agent->tree.open && m.tail - m.head < 32) {
        ck_assert_uint_gt(agent->tree.n_copies, 0);
        for (size_t i = 0; i < agent->tree.n_copies; i++) {
            p.copies[agent->tree.copies[i].id] = true;
        }
        agent->h = ++m.sent;
        agent->seen = true;
        for (size_t i = 0; i < agent->tree.n_outer_da; i++) {
            if (p.mode != MODE_INGRESS || is_sent_to(&agent->tree, &agent->tree.outer_da[i])) {
                put_packet(&p, &agent->tree.outer_da[i]);
            }
        }
    }
}

/* Is the copy for this branch, which may be admitted with it? */
static bool
is_for(const struct flight *p, struct node *n, const struct branch_config *b)
{
    size_t branch = branch_index(b->id);
    bool named = n->tree.provisioned || (!p->provisioned && p->copies[b->id]);
    bool is_new = !n->seen || p->psn >= n->h;

    if (named && n->waiting[branch] && b->join == BRANCH_ADMITTED && p->begins && is_new
        && !m.dead[b->id - 1] && is_proven(n)) {
        join(n, branch, p->psn);
        m.received[b->id] = p->psn;
    }
    return named && !n->waiting[branch];
}

static void
deliver(const struct flight *p, struct node *n, const struct plan_node *at)
{
    for (size_t i = 0; i < n->tree.n_branches; i++) {
        uint32_t id = n->tree.branches[i].id;

        if (id > N_MEMBERS || !is_for(p, n, &n->tree.branches[i])) {
            continue;
        }
        if (!plan_linked(&m.topology, m.members[id - 1].host, at->name)) {
            m.torn = true;
        } else if (m.received[id] == p->psn && !m.dead[id - 1]) {
            m.received[id]++;
        }
    }
    n->h = n->seen ? MAX(n->h, p->psn + 1) : p->psn + 1;
    n->seen = true;
}

/* Does 'n', at 'at', take a packet with this destination from the source agent?  Mode mcast: if
 * there is still a link to where it comes from, and its entry names that. */
static bool
takes(const struct node *n, const struct plan_node *at, const struct flight *p)
{
    const struct plan_node *from = &m.topology.nodes[p->from];
    struct in6_addr upstream = node_address(from->id);
    struct in6_addr source = node_address(m.topology.nodes[AGENT].id);
    struct in6_addr end_mt = node_sid(at->id, SID_FUNC_END_MT);

    if (n->runs && !IN6_ARE_ADDR_EQUAL(&n->tree.outer_source, &source)) {
        return false;
    }
    if (p->mode == MODE_MCAST) {
        m.torn |= !plan_linked(&m.topology, from->name, at->name);
        return n->runs && n->tree.mode == MODE_MCAST
               && plan_linked(&m.topology, from->name, at->name)
               && IN6_ARE_ADDR_EQUAL(&n->tree.upstream, &upstream);
    }
    if (plan_hops(&m.topology, &m.topology.nodes[AGENT], at) == PLAN_NO_WAY) {
        m.torn = true;
        return false;
    }
    return n->runs
           && IN6_ARE_ADDR_EQUAL(&p->da, IN6_IS_ADDR_UNSPECIFIED(&n->tree.replication_sid)
                                             ? &end_mt
                                             : &n->tree.replication_sid);
}

/* The oldest copy arrives at the next node of the tree. */
static void
forward_packet(void)
{
    struct flight p;
    const struct plan_node *at;
    struct node *n;
    bool replicate;

    if (m.head == m.tail) {
        return;
    }
    p = m.packets[m.head++];
    n = &m.nodes[sid_index(&p.da)];
    at = &m.topology.nodes[sid_index(&p.da)];
    if (takes(n, at, &p)) {
        replicate = p.mode == MODE_MCAST || IN6_ARE_ADDR_EQUAL(&p.da, &n->tree.replication_sid);
        deliver(&p, n, at);
        p.from = sid_index(&p.da);
        for (size_t i = 0; replicate && i < n->tree.n_outer_da; i++) {
            put_packet(&p, &n->tree.outer_da[i]);
        }
    }
}

/* What the node can confirm.  If nobody counts it confirms what passes.  False: nothing yet. */
static bool
find_minimum(struct node *n, unsigned *min)
{
    bool any = false, any_pruned = false, silent = false;

    *min = n->h;
    for (size_t i = 0; i < n->tree.n_branches; i++) {
        size_t branch = branch_index(n->tree.branches[i].id);

        any_pruned |= n->pruned[branch];
        if (!n->waiting[branch] && !n->pruned[branch]) {
            if (branch <= N_MEMBERS && !m.dead[branch - 1]) {
                n->una[branch] = MAX(n->una[branch], m.received[branch]);
                n->silent[branch] = false;
            }
            silent |= n->silent[branch];
            *min = any ? MIN(*min, n->una[branch]) : n->una[branch];
            any = true;
        }
    }
    n->unproven &= !any || silent;
    return (any || (n->seen && !any_pruned)) && !silent;
}

/* What a node has merged goes up, unless a link is missing that it would take. */
static void
merge(struct node *n)
{
    struct node *parent;
    unsigned min, least;

    if (!n->runs || !n->tree.n_branches || !find_minimum(n, &min)) {
        return;
    }
    if (n->tree.root) {
        m.acked = MAX(m.acked, min);
        return;
    }
    parent = &m.nodes[sid_index(&n->tree.parent_sid)];
    for (size_t i = 0; parent->runs && i < parent->tree.n_branches; i++) {
        uint32_t id = parent->tree.branches[i].id;
        size_t branch = branch_index(id);

        if (id != BRANCH_ID_NODE(m.topology.nodes[n - m.nodes].id) || parent->stuck[branch]
            || parent->pruned[branch]) {
            continue;
        }
        if (parent->waiting[branch]) {
            if (!find_minimum(parent, &least) || min < least || !is_proven(parent)) {
                continue;
            }
            join(parent, branch, min);
        }
        parent->silent[branch] = false;
        parent->una[branch] = MAX(parent->una[branch], min);
    }
}

/* The node that a branch is; NULL: a receiver. */
static struct node *
node_of(uint32_t id)
{
    for (size_t i = 0; i < N_NODES; i++) {
        if (id == BRANCH_ID_NODE(m.topology.nodes[i].id)) {
            return &m.nodes[i];
        }
    }
    return NULL;
}

/* All that counts at the node refuses, and behind it. */
static void
refuse(struct node *n, size_t depth)
{
    for (size_t i = 0; n->runs && depth < N_NODES && i < n->tree.n_branches; i++) {
        uint32_t id = n->tree.branches[i].id;

        if (n->waiting[branch_index(id)]) {
            continue;
        }
        n->stuck[branch_index(id)] = true;
        if (node_of(id)) {
            refuse(node_of(id), depth + 1);
        } else {
            m.dead[id - 1] = true;
            m.registered[id - 1] &= rand() % 2; /* castd is told, now or by the node above. */
        }
    }
}

/* The node loses one of those below it, unless it is the last that counts.  False: it has none that
 * it could lose. */
static bool
lose(struct node *n)
{
    const struct branch_config *lost = NULL;
    size_t n_counted = 0;

    for (size_t i = 0; n->runs && n->h && i < n->tree.n_branches; i++) {
        const struct branch_config *b = &n->tree.branches[i];
        size_t branch = branch_index(b->id);

        if (!n->waiting[branch] && !n->stuck[branch] && !n->pruned[branch]) {
            lost = node_of(b->id) && (!lost || rand() % 2) ? b : lost;
            n_counted++;
        }
    }
    if (!lost || n_counted == 1) {
        return false;
    }
    n->pruned[branch_index(lost->id)] = n->lost[branch_index(lost->id)] = true;
    if (rand() % 2) {
        refuse(node_of(lost->id), 0);
    }
    return true;
}

static void
lose_any(void)
{
    size_t first = (size_t) rand() % N_NODES;

    for (size_t i = 0; i < N_NODES && !lose(&m.nodes[(first + i) % N_NODES]); i++) {
    }
}

/*
 * The controller.
 */

/* The node that the row of 'n' says to answer to; NULL: it has none, or nobody. */
static const struct node *
parent_by_row(const struct node *n)
{
    return n->told && !n->row.root && !IN6_IS_ADDR_UNSPECIFIED(&n->row.parent_sid)
               ? &m.nodes[sid_index(&n->row.parent_sid)]
               : NULL;
}

/* Does the node's row say that nobody joins there? */
static bool
says_blank(const struct node *n)
{
    bool counts = false;

    for (size_t i = 0; i < n->row.n_branches; i++) {
        const struct branch_config *b = &n->row.branches[i];

        counts |= b->join == BRANCH_COUNTS || n->reported[branch_index(b->id)];
    }
    return n->reported_blank && !counts;
}

static bool
is_behind_blank(const struct node *n)
{
    while (n && !says_blank(n)) {
        n = parent_by_row(n);
    }
    return n;
}

/* Has a node above this one said that it has lost what it is behind? */
static bool
is_behind_lost(const struct node *n)
{
    for (const struct node *parent; (parent = parent_by_row(n)); n = parent) {
        if (parent->reported_lost[branch_index(BRANCH_ID_NODE(m.topology.nodes[n - m.nodes].id))]) {
            return true;
        }
    }
    return false;
}

/* Who is behind a node that was lost is lost with it, or waits anew if it waits.  So does who waits
 * behind one where nobody joins. */
static void
take_losses(void)
{
    for (size_t i = 0; i < N_NODES; i++) {
        const struct node *n = &m.nodes[i];
        struct tree_config row = {.epoch = 0};

        bool blank = n->told && is_behind_blank(n);

        if (blank || (n->told && is_behind_lost(n))) {
            read_row(n, &row);
        }
        for (size_t j = 0; j < row.n_branches; j++) {
            uint32_t id = row.branches[j].id;

            if (id <= N_MEMBERS && m.registered[id - 1]) {
                m.registered[id - 1] = false;
                m.again[id - 1] = row.branches[j].join != BRANCH_COUNTS && !n->joined[id];
                ck_assert(!blank || m.again[id - 1] || is_behind_lost(n));
                n_blank += blank;
                m.back[id - 1] = !m.again[id - 1];
            }
        }
        tree_config_uninit(&row);
    }
}

/* A tree may change like this while packets are under way; 'old' is NULL for a new one. */
static void
check_change(const struct tree_config *old, const struct tree_config *new)
{
    for (size_t i = 0; i < new->n_branches; i++) {
        const struct branch_config *b = &new->branches[i];
        const struct branch_config *was = find_branch(old, b->id);

        switch (b->join) {
        case BRANCH_COUNTS: ck_assert_ptr_nonnull(was); break;
        case BRANCH_WAITS:
            ck_assert(!was || was->join == BRANCH_WAITS
                      || (was->join == BRANCH_ASKED && was->found));
            break;
        case BRANCH_ADMITTED: ck_assert(was && was->join != BRANCH_COUNTS); break;
        case BRANCH_ASKED: ck_assert(!was || was->join == BRANCH_ASKED); break;
        }
    }
    if (!old) {
        ck_assert(!new->root);
        return;
    }
    /* Where only edges merge: a bud that was an edge, or becomes one. */
    bool retires = new->mode == MODE_MCAST && !new->n_branches;
    bool begins = new->mode == MODE_MCAST && !old->n_branches;

    ck_assert_int_eq(old->root, new->root);
    ck_assert_int_eq(old->mode, new->mode);
    ck_assert_int_eq(old->provisioned, new->provisioned);
    ck_assert_uint_eq(old->region_len, new->region_len);
    ck_assert_mem_eq(&old->upstream, &new->upstream, sizeof old->upstream);
    ck_assert_mem_eq(&old->outer_source, &new->outer_source, sizeof old->outer_source);
    ck_assert(retires || begins || IN6_ARE_ADDR_EQUAL(&old->parent_sid, &new->parent_sid));
    ck_assert_mem_eq(&old->replication_sid, &new->replication_sid, sizeof old->parent_sid);
}

static bool
same_list(const void *a, size_t n_a, const void *b, size_t n_b, size_t size)
{
    return n_a == n_b && (!n_a || !memcmp(a, b, n_a * size));
}

static bool
same_tree(const struct tree_config *a, const struct tree_config *b)
{
    return a->open == b->open && a->root == b->root && a->region_len == b->region_len
           && IN6_ARE_ADDR_EQUAL(&a->parent_sid, &b->parent_sid)
           && IN6_ARE_ADDR_EQUAL(&a->replication_sid, &b->replication_sid) && a->mode == b->mode
           && a->provisioned == b->provisioned && IN6_ARE_ADDR_EQUAL(&a->upstream, &b->upstream)
           && IN6_ARE_ADDR_EQUAL(&a->outer_source, &b->outer_source)
           && same_list(a->branches, a->n_branches, b->branches, b->n_branches, sizeof *a->branches)
           && same_list(a->copies, a->n_copies, b->copies, b->n_copies, sizeof *a->copies)
           && same_list(a->outer_da, a->n_outer_da, b->outer_da, b->n_outer_da,
                        sizeof *a->outer_da);
}

static const struct tree_config *
wanted_at(const struct plan *plan, size_t node)
{
    for (size_t i = 0; i < plan->n_trees; i++) {
        if (plan->trees[i].node == &m.topology.nodes[node]) {
            return &plan->trees[i].config;
        }
    }
    return NULL;
}

/* Writes a row.  Packets may be under way if one was sent, or can be. */
static void
tell(struct node *n, const struct tree_config *want, bool under_way)
{
    if (!want || !n->told || !same_tree(&n->row, want)) {
        n->current = false;
    }
    for (size_t i = 0; want && i < want->n_branches; i++) {
        uint32_t id = want->branches[i].id;

        /* Who comes back does so when nobody says any more that it was lost. */
        ck_assert((n->told && find_branch(&n->row, id)) || !n->reported_lost[branch_index(id)]);
    }
    if (want && under_way) {
        struct tree_config row = {.epoch = 0};

        if (n->told) {
            read_row(n, &row);
        }
        check_change(n->told ? &row : NULL, want);
        tree_config_uninit(&row);
    }
    tree_config_uninit(&n->row);
    n->row_number += want && !n->told;
    n->told = want != NULL;
    if (want) {
        tree_config_clone(&n->row, want);
    } else {
        memset(n->reported, 0, sizeof n->reported);
        memset(n->reported_found, 0, sizeof n->reported_found);
        memset(n->reported_lost, 0, sizeof n->reported_lost);
        n->reported_blank = false;
    }
}

/* What the node's row says of losses. */
static void
load_losses(struct rollout *r, size_t node)
{
    for (size_t i = 0; i < N_SWITCHES; i++) {
        uint32_t id = BRANCH_ID_NODE(m.topology.nodes[i].id);

        if (m.nodes[node].reported_lost[branch_index(id)]) {
            r->lost = xrealloc(r->lost, (r->n_lost + 1) * sizeof *r->lost);
            r->lost[r->n_lost++] = (struct rollout_loss){&m.topology.nodes[node], id};
            m.was_lost[i] = true;
        }
    }
}

static void
load(struct rollout *r)
{
    take_losses();
    *r = (struct rollout){
        .topology = &m.topology,
        .source = true,
        .started = m.started,
        .agent_applied = m.nodes[AGENT].current,
        .switches_applied = true,
        .was_serving = m.serving,
        .group = m.group,
        .members = xcalloc(N_MEMBERS, sizeof *r->members),
    };
    r->group.members = xmemdup(m.members, sizeof m.members);
    r->have.trees = xcalloc(N_NODES, sizeof *r->have.trees);
    for (size_t i = 0; i < N_MEMBERS; i++) {
        r->members[i].registered = m.registered[i];
        r->members[i].fed = m.fed[i];
        r->members[i].has_counted = m.counted[i];
        r->group.members[i].provision = r->group.members[i].copy = false;
    }
    for (size_t i = 0; i < N_NODES; i++) {
        if (m.nodes[i].told) {
            struct plan_tree *tree = &r->have.trees[r->have.n_trees++];

            tree->node = &m.topology.nodes[i];
            read_row(&m.nodes[i], &tree->config);
            r->switches_applied &= i == AGENT || m.nodes[i].current;
            load_losses(r, i);
        }
    }
}

/* One step, and the rows that follow from it: a switch keeps a tree that nobody wants as long as
 * the agent may send into it. */
static void
step(struct rollout *r)
{
    const struct node *agent = &m.nodes[AGENT];
    bool caught_up = agent->current || (!agent->told && !agent->runs);
    bool under_way = m.sent || (agent->runs && agent->tree.open);
    bool fed;

    load(r);
    rollout_step(r);
    for (size_t i = 0; i < N_MEMBERS; i++) {
        m.counted[i] |= r->serving && r->members[i].copied && r->members[i].counts;
    }
    for (size_t i = 0; m.started && i < N_MEMBERS; i++) {
        n_joined +=
            !r->members[i].provisioned && plan_is_provisioned(&r->plan, m.members[i].branch);
    }
    fed = !caught_up || (agent->told && !wanted_at(&r->plan, AGENT));
    for (size_t i = 0; i < N_NODES; i++) {
        const struct tree_config *want = wanted_at(&r->plan, i);

        n_back += want && !m.nodes[i].told && m.was_lost[i];
        if (want || (m.nodes[i].told && (i == AGENT || !fed))) {
            tell(&m.nodes[i], want, under_way);
        }
    }
    m.serving = r->serving;
    for (size_t i = 0; i < N_MEMBERS; i++) {
        m.members[i].ask = r->group.members[i].ask;
        m.members[i].psn = r->group.members[i].psn;
    }
}

/*
 * Invariants.
 */

/* The edge that has the member, or NULL. */
static const struct node *
find_edge(size_t i)
{
    for (size_t j = 0; j < N_SWITCHES; j++) {
        const struct node *n = &m.nodes[j];

        if (n->runs && has_branch(n->tree.branches, n->tree.n_branches, m.members[i].branch)) {
            return n;
        }
    }
    return NULL;
}

/* Has a node above this one lost what it is behind? */
static bool
is_pruned(const struct node *n)
{
    for (size_t i = 0;
         i < N_NODES && n->runs && !n->tree.root && !IN6_IS_ADDR_UNSPECIFIED(&n->tree.parent_sid);
         i++) {
        uint32_t id = BRANCH_ID_NODE(m.topology.nodes[n - m.nodes].id);

        n = &m.nodes[sid_index(&n->tree.parent_sid)];
        if (n->pruned[branch_index(id)]) {
            return true;
        }
    }
    return false;
}

/* Does the source still send to it, and must an acknowledgement speak for it?  Whatever the agent
 * sends, an edge has a receiver for it. */
static bool
is_counted(size_t i)
{
    const struct node *agent = &m.nodes[AGENT];
    const struct node *edge = find_edge(i);

    if (!agent->runs
        || !has_branch(agent->tree.copies, agent->tree.n_copies, m.members[i].branch)) {
        return false;
    }
    ck_assert(!agent->tree.open || edge);
    return !m.dead[i] && edge && !edge->waiting[m.members[i].branch] && !is_pruned(edge);
}

/* Is nothing left of a member anywhere, nor on its way, so that it can come back as another? */
static bool
is_out(size_t i)
{
    uint32_t id = m.members[i].branch;

    for (size_t j = 0; j < N_NODES; j++) {
        const struct node *n = &m.nodes[j];

        if ((n->told && find_branch(&n->row, id)) || (n->runs && find_branch(&n->tree, id))
            || (n->told && has_branch(n->row.copies, n->row.n_copies, id))
            || (n->runs && has_branch(n->tree.copies, n->tree.n_copies, id))) {
            return false;
        }
    }
    for (size_t j = m.head; j < m.tail; j++) {
        if (m.packets[j].copies[id]) {
            return false;
        }
    }
    return true;
}

/* Who was behind a node that was lost waits anew, or is registered anew. */
static void
come_back(void)
{
    for (size_t i = 0; i < N_MEMBERS; i++) {
        if (m.again[i] && is_out(i)) {
            m.again[i] = false;
            m.registered[i] = true;
        } else if (m.back[i] && is_out(i)) {
            register_member(i);
        }
    }
}

static void
check_model(void)
{
    for (size_t i = 0; i < N_MEMBERS; i++) {
        if (is_counted(i)) {
            ck_assert_uint_le(m.acked, m.received[m.members[i].branch]);
        }
    }
}

/* Everybody applies and reports at once, packets arrive, and responses go up, until nothing
 * changes.  If packets have been sent some more are, each of which begins a message. */
static void
settle(struct rollout *r)
{
    step(r);
    for (int i = 0; i < 80; i++) {
        come_back();
        memset(m.fed, 0, sizeof m.fed);
        if (m.sent && i < 70) {
            send_packet();
            for (size_t j = m.head; j < m.tail; j++) {
                m.packets[j].begins = true;
            }
        }
        while (m.head != m.tail) {
            forward_packet();
        }
        for (size_t j = 0; j < N_NODES; j++) {
            apply(&m.nodes[j]);
        }
        for (int pass = 0; pass < N_NODES; pass++) {
            for (size_t j = 0; j < N_NODES; j++) {
                merge(&m.nodes[j]);
                ask(&m.nodes[j]);
                report(&m.nodes[j]);
            }
        }
        check_model();
        rollout_uninit(r);
        step(r);
    }
}

static void
check_settled(const struct rollout *r)
{
    const struct node *agent = &m.nodes[AGENT];

    if (r->error) {
        /* With a host's or a switch's last link there is nobody to be found, or everything
         * waits. */
        ck_assert(!m.started || !r->serving);
        return;
    }
    for (size_t i = 0; i < N_MEMBERS; i++) {
        const struct rollout_member *member = &r->members[i];

        ck_assert_int_eq(member->copied, member->target);
        ck_assert_int_eq(member->provisioned, member->target);
        ck_assert_int_eq(member->target, m.registered[i] && !member->error && !member->too_late);
        ck_assert(m.started || !member->too_late);
        ck_assert(!member->lost_above);
        ck_assert(!m.again[i] && !m.back[i]);
        if (member->target && !m.torn) {
            ck_assert(member->counts);
            ck_assert_uint_eq(m.received[m.members[i].branch], m.sent);
        }
    }
    ck_assert_int_eq(r->serving, r->n_targets > 0);
    ck_assert_int_eq(agent->told && agent->row.open, r->n_targets > 0);
    if (r->n_targets && !m.torn) {
        ck_assert_uint_eq(m.acked, m.sent);
    }
    if (r->n_targets && !m.started) {
        struct plan want;

        ck_assert_ptr_null(plan_group(&m.topology, &r->group, &want));
        ck_assert(plan_same_shape(&r->plan, &want));
        ck_assert(!r->outdated);
        plan_uninit(&want);
    }
}

static void
random_event(void)
{
    int dice = rand() % 212;
    struct rollout r;

    if (dice >= 208) {
        lose_any();
    } else if (dice >= 206) {
        come_back();
    } else if (dice < 2 || dice >= 200) {
        size_t i = (size_t) rand() % N_MEMBERS;

        if (m.registered[i]) {
            m.registered[i] = false;
        } else if (is_out(i)) {
            register_member(i);
        } else if (!m.sent) {
            m.registered[i] = true; /* the same registration. */
        }
    } else if (dice < 3) {
        if (rand() % 3 == 0) {
            change_topology();
        }
    } else if (dice < 4 && !m.started) {
        choose_mode();
    } else if (dice < 20) {
        if (m.sent || rand() % 8 == 0) {
            send_packet();
        }
    } else if (dice < 22) {
        m.started |= m.sent > 0;
    } else if (dice < 80) {
        forward_packet();
    } else if (dice < 100) {
        apply(&m.nodes[AGENT]);
    } else if (dice < 140) {
        merge(&m.nodes[rand() % N_NODES]);
    } else if (dice < 160) {
        step(&r);
        rollout_uninit(&r);
    } else if (dice < 161) {
        restart(&m.nodes[rand() % N_SWITCHES]);
    } else if (dice < 165) {
        ask(&m.nodes[rand() % N_SWITCHES]);
    } else if (dice < 170) {
        m.fed[rand() % N_MEMBERS] = false;
    } else if (dice < 180) {
        report(&m.nodes[rand() % N_NODES]);
    } else {
        apply(&m.nodes[rand() % N_SWITCHES]);
    }
}

/* Anything happens, so many times; then nothing more, until all is as it should be. */
static void
live(int n_events)
{
    struct rollout r;

    for (; n_events > 0; n_events--) {
        random_event();
        check_model();
    }
    settle(&r);
    check_settled(&r);
    rollout_uninit(&r);
}

START_TEST(random_order)
    {
        srand((unsigned int) _i);
        n_joined = 0;
        for (int run = 0; run < 12 || (n_joined < 3 && run < 100); run++) {
            setup();
            live(rand() % 4000);
            teardown();
        }
        ck_assert_uint_ge(n_joined, 3);
    }
END_TEST

/* Nodes are started again when nobody counts at them, which is rare. */
START_TEST(blank_nodes)
    {
        srand(1);
        n_blank = 0;
        for (int run = 0; run < 200 && n_blank < 3; run++) {
            setup();
            live(rand() % 1000);
            teardown();
        }
        ck_assert_uint_ge(n_blank, 3);
    }
END_TEST

/* Of a group with all members under way. */
START_TEST(lost_nodes)
    {
        srand((unsigned int) _i);
        n_back = 0;
        for (int run = 0; run < 12 || (!n_back && run < 100); run++) {
            setup();
            for (size_t i = 0; i < N_MEMBERS; i++) {
                register_member(i);
            }
            live(0);
            send_packet();
            live(0);
            lose_any();
            live(rand() % 1000);
            lose_any();
            live(0);
            teardown();
        }
        ck_assert_uint_ge(n_back, 1);
    }
END_TEST

Suite *
rollout_suite(void)
{
    Suite *suite = suite_create("rollout");
    TCase *tcase = tcase_create("rollout");

    tcase_add_loop_test(tcase, random_order, 0, 25);
    tcase_add_test(tcase, blank_nodes);
    tcase_add_loop_test(tcase, lost_nodes, 0, 25);
    suite_add_tcase(suite, tcase);
    return suite;
}
