/* SPDX-License-Identifier: Apache-2.0
 *
 * CNPs at nodes: who is believed, what is counted, and what goes up.
 */
#include <check.h>
#include <stdlib.h>

#include "lib/cnp.h"
#include "lib/icrc.h"
#include "lib/node-base.h"
#include "lib/response.h"
#include "lib/roce.h"
#include "tests/unit/agent-fixture.h"
#include "tests/unit/edge-fixture.h"
#include "tests/unit/suites.h"
#include "tests/unit/transit-fixture.h"

/* The headers of both programs cannot be included. */
extern const struct node_class swedge_class, srcagent_class;

#define T             CNP_WINDOW_USEC
#define N             10000 /* microseconds: interval_usec, where a test sets it. */
#define OUTER_CE      0x30  /* in byte 1 of the outer header, which says ECT(0). */
#define FIRST_CHILD   BRANCH_ID_NODE(CHILD_A)
#define TUNNELLED_LEN (IP6_HDR_LEN + CNP_LEN)

/* A CNP in 'out' (room PACKET_ROOM), from its outermost IPv6 header on; returns its length.  'from'
 * is not 0: as this node sends it to the response SID of node 'to'. */
static size_t
cnp_bytes(uint8_t *out, const struct in6_addr *src, const struct in6_addr *dst, uint32_t qpn,
          uint16_t from, uint16_t to)
{
    struct packet_pool *pool = packet_pool_create(1);
    struct packet *p = cnp_build(pool, src, dst, 0xc123, qpn);

    if (from) {
        struct in6_addr outer_src = node_address(from), sid = node_sid(to, SID_FUNC_RESPONSE);

        response_wrap(p, &outer_src, &sid);
    }
    size_t len = packet_flatten(p, out, PACKET_ROOM);

    packet_put(p);
    packet_pool_destroy(pool);
    return len;
}

/* Feeds a CNP of a receiver, on its port. */
static void
receiver_cnp(struct fixture *f, unsigned i)
{
    struct in6_addr r = star_receiver(i);
    uint8_t bytes[PACKET_ROOM];
    size_t len = cnp_bytes(bytes, &r, &star_proxy, STAR_DQPN, 0, 0);

    fixture_input(f, star_port(i), bytes, len);
}

/* Feeds a CNP that a node below has merged. */
static void
node_cnp(struct fixture *f, uint16_t port, uint16_t from, uint32_t qpn)
{
    uint8_t bytes[PACKET_ROOM];
    size_t len = cnp_bytes(bytes, &star_proxy, &star_source, qpn, from, f->config.id);

    fixture_input(f, port, bytes, len);
}

static struct tree_info
tree_of(const struct fixture *f)
{
    struct tree_info info;

    f->class->tree(f->node, 0, &info);
    ck_assert_ptr_nonnull(info.cnps);
    return info;
}

static struct cnp_branch_stats
stats_of(const struct fixture *f, uint32_t id)
{
    struct cnp_branch_stats stats;

    ck_assert(cnp_window_get(tree_of(f).cnps, id, &stats));
    return stats;
}

/* Lets the window end, which began at 'from'.  Returns the branch that was chosen. */
static uint32_t
end_window(struct fixture *f, uint64_t from)
{
    uint32_t last;

    ck_assert_uint_eq(f->n_frames, 0);
    ck_assert_uint_eq(f->class->deadline(f->node), from + T);
    fixture_timer(f);
    cnp_window_n_sent(tree_of(f).cnps, &last);
    return last;
}

/* Calls the timer of a node if it is due. */
static void
run_timer(struct fixture *f, uint64_t now)
{
    f->now = now;
    f->n_frames = 0;
    if (f->class->deadline(f->node) <= now) {
        f->class->timer(f->node, now);
        fixture_settle(f);
    }
}

/* No window has begun. */
static void
check_idle(const struct fixture *f)
{
    ck_assert_uint_eq(cnp_window_deadline(tree_of(f).cnps), UINT64_MAX);
    ck_assert_uint_eq(f->n_frames, 0);
}

/* The frame has these bytes behind its Ethernet header, but the UDP source port, which is between
 * 0xc000 and 0xffff, and the ICRC, which is good. */
static void
check_bytes(const struct frame *frame, const uint8_t *expected, size_t len)
{
    uint8_t bytes[PACKET_ROOM];
    size_t inner = len - CNP_LEN;
    size_t sport = inner + IP6_HDR_LEN, icrc = len - ROCE_ICRC_LEN;

    memcpy(bytes, expected, len);
    ck_assert_uint_eq(frame->len, sizeof(struct eth_hdr) + len);
    memcpy(bytes + sport, frame->bytes + sizeof(struct eth_hdr) + sport, 2);
    ck_assert_uint_ge(bytes[sport], 0xc0);
    icrc_store(bytes + icrc, icrc_compute(bytes + inner, CNP_LEN - ROCE_ICRC_LEN));
    ck_assert_mem_eq(frame->bytes + sizeof(struct eth_hdr), bytes, len);
}

/* The only frame is the CNP for the parent. */
static void
check_up(const struct fixture *f)
{
    uint8_t expected[PACKET_ROOM];
    size_t len = cnp_bytes(expected, &star_proxy, &star_source, STAR_DQPN, STAR_EDGE_ID, PARENT);

    ck_assert_uint_eq(f->n_frames, 1);
    ck_assert_uint_eq(f->frames[0].port, PORT_PARENT);
    ck_assert_uint_eq(len, TUNNELLED_LEN);
    ck_assert_uint_eq(expected[0] << 8 | expected[1], 0x6c00);
    check_bytes(&f->frames[0], expected, len);
}

/* A receiver's CNP, or a node's, is used up, and one goes up at the end of the window.
 *
 * Proves MT-5.3-2, MT-5.3.3-1, MT-5.3.3-2. */
START_TEST(goes_up_at_the_end)
    {
        struct fixture *f = transit_create(1);

        if (_i == 0) {
            receiver_cnp(f, 0);
        } else {
            node_cnp(f, PORT_A, CHILD_A, STAR_DQPN);
        }
        ck_assert_uint_eq(fixture_drops(f, DROP_cnp), 1);
        ck_assert_uint_eq(end_window(f, f->now), _i ? FIRST_CHILD : 1);
        check_up(f);
        f->n_frames = 0;
        check_idle(f);
        ck_assert_uint_eq(fixture_total_drops(f), 1);
        fixture_destroy(f);
    }
END_TEST

/* The bytes of the root's CNP for Proxy fd00:ffff::7, source fd00:1::100 and QPN 0x11.
 *
 * Proves MT-5.3.3-5, FC-4. */
START_TEST(root_writes_a_standard_one)
    {
        static const uint8_t expected[CNP_LEN] = {
            0x6c, 0x00, 0x00, 0x00, 0x00, 0x28, 0x11, 0x40,                         /* IPv6 */
            0xfd, 0x00, 0xff, 0xff, 0,    0,    0,    0,    0, 0, 0, 0, 0, 0, 0, 7, /* SA */
            0xfd, 0x00, 0x00, 0x01, 0,    0,    0,    0,    0, 0, 0, 0, 0, 0, 1, 0, /* DA */
            0,    0,    0x12, 0xb7, 0x00, 0x28, 0,    0,                            /* UDP */
            0x81, 0x00, 0xff, 0xff, 0x40, 0,    0,    0x11, 0, 0, 0, 0,             /* BTH */
        };
        struct fixture *f = transit_create(0);
        struct tree_config *t = &f->config.trees[0];
        struct in6_addr proxy = addr_of("fd00:ffff::7");
        uint8_t bytes[PACKET_ROOM];

        t->root = true;
        t->parent_sid = in6addr_any;
        t->proxy = proxy;
        t->source_qpn = 0x11;
        fixture_configure(f);
        size_t len = cnp_bytes(bytes, &proxy, &star_source, STAR_DQPN, CHILD_A, STAR_EDGE_ID);
        fixture_input(f, PORT_A, bytes, len);
        end_window(f, f->now);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(f->frames[0].port, AGENT_PORT);
        check_bytes(&f->frames[0], expected, sizeof expected);
        fixture_destroy(f);
    }
END_TEST

/* Of all branches, whatever they are, one CNP goes up, on account of the one with the most; of
 * equals it is the one with the lowest id.
 *
 * Proves MT-5.3.3-2, MT-5.3.3-3. */
START_TEST(branches_are_merged)
    {
        struct fixture *f = transit_create(2);
        uint64_t from = f->now;

        receiver_cnp(f, 1);
        f->now += T / 2;
        node_cnp(f, PORT_B, CHILD_B, STAR_DQPN);
        node_cnp(f, PORT_A, CHILD_A, STAR_DQPN);
        node_cnp(f, PORT_A, CHILD_A, STAR_DQPN);
        ck_assert_uint_eq(stats_of(f, FIRST_CHILD).count, 2);
        ck_assert_uint_eq(end_window(f, from), FIRST_CHILD);
        check_up(f);
        ck_assert_uint_eq(stats_of(f, FIRST_CHILD).count, 0);

        node_cnp(f, PORT_B, CHILD_B, STAR_DQPN);
        node_cnp(f, PORT_A, CHILD_A, STAR_DQPN);
        receiver_cnp(f, 1);
        ck_assert_uint_eq(end_window(f, f->now), 2);
        check_up(f);
        ck_assert_uint_eq(stats_of(f, FIRST_CHILD).n_chosen, 1);
        ck_assert_uint_eq(stats_of(f, 2).n_chosen, 1);
        ck_assert_uint_eq(fixture_drops(f, DROP_cnp), 7);
        ck_assert_uint_eq(fixture_total_drops(f), 7);
        fixture_destroy(f);
    }
END_TEST

/* The group's policy has T.
 *
 * Proves MT-5.3.3-1, MT-5.3.3-4. */
START_TEST(window_is_configured)
    {
        struct fixture *f = transit_create(1);

        f->config.trees[0].policy.cnp_window_usec = 7000;
        fixture_configure(f);
        receiver_cnp(f, 0);
        ck_assert_uint_eq(f->class->deadline(f->node), f->now + 7000);
        fixture_timer(f);
        check_up(f);
        fixture_destroy(f);
    }
END_TEST

/* One of a receiver in an interval; those of a node all count, and one goes up for them in a window.
 *
 * Proves MT-9-5. */
START_TEST(limited_per_branch)
    {
        struct fixture *f = transit_create(1);

        f->config.congestion.interval_usec = N;
        fixture_configure(f);
        for (unsigned i = 0; i < 3; i++) {
            uint64_t from = f->now;

            receiver_cnp(f, 0);
            node_cnp(f, PORT_A, CHILD_A, STAR_DQPN);
            receiver_cnp(f, 0);
            node_cnp(f, PORT_A, CHILD_A, STAR_DQPN);
            end_window(f, from);
            check_up(f);
            f->n_frames = 0;
            f->now = from + N - 1;
            receiver_cnp(f, 0);
            check_idle(f);
            f->now = from + N;
        }
        ck_assert_uint_eq(fixture_drops(f, DROP_cnp), 9);
        ck_assert_uint_eq(fixture_drops(f, DROP_cnp_soon), 6);
        ck_assert_uint_eq(fixture_total_drops(f), 15);
        ck_assert_uint_eq(stats_of(f, 1).n_limited, 6);
        fixture_destroy(f);
    }
END_TEST

/* CNPs that refused_of_receivers() feeds. */
static const struct refused {
    const char *what;
    enum drop_reason why;
} refused[] = {
    {"of a host that is no receiver", DROP_unknown_branch},
    {"on another's port", DROP_wrong_port},
    {"for a QPN of no epoch", DROP_stale_epoch},
    {"corrupt", DROP_icrc},
    {"of a receiver that is lost", DROP_unknown_branch},
    {"of a receiver whose position is looked for", DROP_unknown_branch},
    {"of an epoch that is over", DROP_stale_epoch},
};

/* Proves MT-9-3. */
START_TEST(refused_of_receivers)
    {
        struct fixture *f = fixture_create(&swedge_class, 2);
        struct tree_config *t = &f->config.trees[0];
        struct in6_addr r[] = {star_receiver(0), star_receiver(1)};
        uint8_t bytes[PACKET_ROOM];
        uint32_t qpn = STAR_DQPN;
        unsigned from = 0, port = 0;
        struct roce_spec spec = edge_write(START);
        bool corrupt = false;

        edge_down(f, &spec, 2);
        f->n_frames = 0;
        switch (_i) {
        case 0:
            t->n_branches = 1;
            fixture_configure(f);
            from = port = 1;
            break;
        case 1:
            t->n_branches = 1;
            for (size_t i = 0; i < f->config.n_ports; i++) {
                if (f->config.ports[i].number == star_port(1)) {
                    f->config.ports[i].peer_address = r[0];
                }
            }
            fixture_configure(f);
            port = 1;
            break;
        case 2: qpn++; break;
        case 3: corrupt = true; break;
        case 4: edge_respond(f, 0, AETH_NAK_REM_OP, START, STAR_DQPN); break;
        case 5:
            t->branches[0].join = BRANCH_ASKED;
            fixture_configure(f);
            break;
        case 6: fixture_add_epoch(f); break;
        }
        size_t len = cnp_bytes(bytes, &r[from], &star_proxy, qpn, 0, 0);
        bytes[len - 1] ^= corrupt;
        fixture_input(f, star_port(port), bytes, len);
        check_idle(f);
        ck_assert_msg(fixture_drops(f, refused[_i].why) == 1, "%s", refused[_i].what);
        ck_assert_msg(fixture_total_drops(f) == 1, "%s", refused[_i].what);
        fixture_destroy(f);
    }
END_TEST

/* A receiver whose queue pair is from an earlier epoch is known by that one's Designated QPN. */
START_TEST(queue_pair_of_an_earlier_epoch)
    {
        struct fixture *f = fixture_create(&swedge_class, 2);
        struct in6_addr r = star_receiver(0);
        uint8_t bytes[PACKET_ROOM];

        f->config.trees[0].branches[0].designated_qpn = STAR_DQPN - 1;
        fixture_configure(f);
        receiver_cnp(f, 0);
        check_idle(f);
        ck_assert_uint_eq(fixture_drops(f, DROP_stale_epoch), 1);
        size_t len = cnp_bytes(bytes, &r, &star_proxy, STAR_DQPN - 1, 0, 0);
        fixture_input(f, star_port(0), bytes, len);
        ck_assert_uint_eq(end_window(f, f->now), 1);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(fixture_drops(f, DROP_cnp), 1);
        ck_assert_uint_eq(fixture_total_drops(f), 2);
        fixture_destroy(f);
    }
END_TEST

/* Proves MT-9-3. */
START_TEST(refused_of_nodes)
    {
        static const struct {
            uint16_t from;
            uint32_t qpn;
            size_t bent; /* a byte, 0: none. */
            enum drop_reason why;
        } cases[] = {
            {CHILD_A + 7, STAR_DQPN, 0, DROP_unknown_branch},
            {CHILD_A, STAR_DQPN + 1, 0, DROP_stale_epoch},
            {CHILD_A, STAR_DQPN, TUNNELLED_LEN - 1, DROP_icrc},
        };
        struct fixture *f = transit_create(0);
        uint8_t bytes[PACKET_ROOM];
        size_t len = cnp_bytes(bytes, &star_proxy, &star_source, cases[_i].qpn, cases[_i].from,
                               STAR_EDGE_ID);

        if (cases[_i].bent) {
            bytes[cases[_i].bent] ^= 1;
        }
        fixture_input(f, PORT_A, bytes, len);
        check_idle(f);
        ck_assert_uint_eq(fixture_drops(f, cases[_i].why), 1);
        ck_assert_uint_eq(fixture_total_drops(f), 1);
        fixture_destroy(f);
    }
END_TEST

/* A window that has begun when the epoch ends sends nothing. */
START_TEST(old_epoch_is_silent)
    {
        struct fixture *f = transit_create(1);

        receiver_cnp(f, 0);
        fixture_add_epoch(f);
        fixture_timer(f);
        check_idle(f);
        ck_assert_uint_eq(fixture_total_drops(f), 1);
        fixture_destroy(f);
    }
END_TEST

/* What has a Destination Options header in front of UDP, as a Fast CNP does, is no CNP of a branch.
 *
 * Proves MT-1.1-3. */
START_TEST(fast_cnps_do_not_count)
    {
        static const uint8_t options[8] = {IP6_NH_UDP, 0, 1, 4};
        struct fixture *f = fixture_create(&swedge_class, 2);
        struct in6_addr r = star_receiver(0);
        uint8_t bytes[PACKET_ROOM];
        struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) bytes;
        size_t len = cnp_bytes(bytes, &r, &star_proxy, STAR_DQPN, 0, 0);

        memmove(bytes + IP6_HDR_LEN + sizeof options, bytes + IP6_HDR_LEN, len - IP6_HDR_LEN);
        memcpy(bytes + IP6_HDR_LEN, options, sizeof options);
        ip->nh = IP6_NH_DSTOPT;
        ip->plen = be16_put((uint16_t) (len + sizeof options - IP6_HDR_LEN));
        fixture_input(f, star_port(0), bytes, len + sizeof options);
        check_idle(f);
        ck_assert_uint_eq(fixture_drops(f, DROP_cnp), 0);
        ck_assert_uint_eq(fixture_total_drops(f), 1);
        fixture_destroy(f);
    }
END_TEST

/* A host's CNP for another host has nothing to do with a group. */
START_TEST(unicast_passes)
    {
        struct fixture *f = fixture_create(&swedge_class, 2);
        struct in6_addr r[] = {star_receiver(0), star_receiver(1)};
        uint8_t bytes[PACKET_ROOM], expected[PACKET_ROOM];
        size_t len = cnp_bytes(bytes, &r[0], &r[1], STAR_DQPN, 0, 0);

        fixture_input(f, star_port(0), bytes, len);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(f->frames[0].port, star_port(1));
        memcpy(expected, bytes, len);
        expected[offsetof(struct ip6_hdr_wire, hlim)]--;
        ck_assert_mem_eq(f->frames[0].bytes + sizeof(struct eth_hdr), expected, len);
        f->n_frames = 0;
        check_idle(f);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

/* A packet for the first n receivers of an edge, which met congestion on its way. */
static void
down_marked(struct fixture *f, uint32_t psn, unsigned n)
{
    struct roce_spec spec = edge_write(psn & PSN_MASK);
    uint8_t bytes[PACKET_ROOM];
    size_t len = edge_encapsulated(bytes, &spec, n);

    bytes[1] |= OUTER_CE;
    fixture_input(f, 1, bytes, len);
    ck_assert_uint_eq(f->n_frames, n);
    f->n_frames = 0;
}

static void
ce_left(struct fixture *f, uint32_t qpn, uint32_t branch)
{
    struct node_base *base = f->node;

    base->ce_left(base, &star_proxy, qpn, branch, f->now);
}

/* Whose marks and CNPs count, by the group's policy: r1 gets a marked copy, then a copy of it is
 * marked in the queue of its port, and then it sends a CNP. */
START_TEST(who_counts)
    {
        static const unsigned counts[][3] = {
            [CNP_AUTO] = {1, 2, 3},
            [CNP_EDGE] = {1, 2, 3},
            [CNP_NIC] = {0, 0, 1},
            [CNP_OFF] = {0, 0, 0},
        };
        struct fixture *f = fixture_create(&swedge_class, 2);

        f->config.trees[0].policy.cnp = (enum cnp_source) _i;
        fixture_configure(f);
        down_marked(f, START, 1);
        ck_assert_uint_eq(stats_of(f, 1).n, counts[_i][0]);
        ce_left(f, STAR_DQPN, 1);
        ck_assert_uint_eq(stats_of(f, 1).n, counts[_i][1]);
        receiver_cnp(f, 0);
        ck_assert_uint_eq(stats_of(f, 1).n, counts[_i][2]);
        ck_assert_uint_eq(stats_of(f, 2).n, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_cnp), 1);
        ck_assert_uint_eq(fixture_total_drops(f), 1);
        if (counts[_i][2]) {
            ck_assert_uint_eq(end_window(f, f->now), 1);
            ck_assert_uint_eq(f->n_frames, 1);
        } else {
            check_idle(f);
        }
        fixture_destroy(f);
    }
END_TEST

/* The edge makes none any more for a receiver that has sent one, for others it goes on.  A
 * configuration changes nothing of that; with policy edge both count. */
START_TEST(receivers_own_switch_the_edges_off)
    {
        struct fixture *f = fixture_create(&swedge_class, 2);

        down_marked(f, START, 2);
        ck_assert_uint_eq(stats_of(f, 1).n, 1);
        ck_assert_uint_eq(stats_of(f, 2).n, 1);
        receiver_cnp(f, 0);
        for (unsigned i = 0; i < 2; i++) {
            down_marked(f, START + 1 + i, 2);
            ce_left(f, STAR_DQPN, 1);
            ck_assert_uint_eq(stats_of(f, 1).n, 2);
            ck_assert_uint_eq(stats_of(f, 2).n, 2 + i);
            fixture_configure(f);
        }
        receiver_cnp(f, 0);
        ck_assert_uint_eq(stats_of(f, 1).n, 3);
        f->config.trees[0].policy.cnp = CNP_EDGE;
        fixture_configure(f);
        ce_left(f, STAR_DQPN, 1);
        ck_assert_uint_eq(stats_of(f, 1).n, 4);
        fixture_destroy(f);
    }
END_TEST

/* Of a stream of marked copies for a branch one counts in an interval, and what no tree knows
 * counts nowhere. */
START_TEST(marks_are_limited)
    {
        struct fixture *f = fixture_create(&swedge_class, 2);

        f->config.congestion.interval_usec = N;
        fixture_configure(f);
        for (uint32_t i = 0; i < 50; i++) {
            down_marked(f, START + i, 2);
            run_timer(f, f->now + N / 10);
        }
        for (uint32_t id = 1; id <= 2; id++) {
            ck_assert_uint_eq(stats_of(f, id).n, 5);
            ck_assert_uint_eq(stats_of(f, id).n_limited, 45);
        }
        f->now += N;
        ce_left(f, STAR_DQPN, 3);
        ce_left(f, STAR_DQPN + 1, 1);
        ck_assert_uint_eq(cnp_window_deadline(tree_of(f).cnps), UINT64_MAX);
        ce_left(f, STAR_DQPN, 1);
        ck_assert_uint_eq(f->class->deadline(f->node), f->now + T);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

static unsigned n_copies, n_replicas;

/* Of each copy a queue knows for whom it is. */
static void
look(struct fixture *f, struct packet *p)
{
    const struct ip6_hdr_wire *ip = (const void *) (p->data + sizeof(struct eth_hdr));
    struct in6_addr r = star_receiver(n_copies);

    if (!memcmp(&ip->dst, &r, sizeof r)) {
        ck_assert_uint_eq(p->group_qpn, STAR_DQPN);
        ck_assert_uint_eq(p->branch, ++n_copies);
    } else {
        ck_assert_uint_eq(p->branch, 0);
        n_replicas++;
    }
    packet_put(p);
    (void) f;
}

START_TEST(copies_name_their_branch)
    {
        struct fixture *f = transit_create(2);
        struct node_base *base = f->node;
        struct in6_addr source;
        uint8_t bytes[PACKET_ROOM];

        transit_down(f, bytes, START, 2); /* addresses of neighbours are known. */
        n_copies = n_replicas = 0;
        f->sink = look;
        transit_down(f, bytes, START + 1, 2);
        ck_assert_uint_eq(n_copies, 2);
        ck_assert_uint_eq(n_replicas, 2);

        ck_assert(base->copy_source(base, &star_proxy, STAR_DQPN, &source));
        ck_assert_mem_eq(&source, &star_source, sizeof source);
        ck_assert(!base->copy_source(base, &star_proxy, STAR_DQPN + 1, &source));
        fixture_destroy(f);
    }
END_TEST

/*
 * The source agent.
 */

/* Proves MT-5.3.3-2. */
START_TEST(agent_merges_as_root)
    {
        struct fixture *f = agent_create_root(STAR_EDGE_ID, CHILD_A);
        uint32_t last;

        node_cnp(f, UPLINK, CHILD_A, STAR_DQPN);
        node_cnp(f, UPLINK, CHILD_A, STAR_DQPN);
        node_cnp(f, UPLINK, STAR_EDGE_ID, STAR_DQPN);
        ck_assert_uint_eq(end_window(f, f->now), FIRST_CHILD);
        ck_assert_uint_eq(cnp_window_n_sent(tree_of(f).cnps, &last), 1);
        ck_assert_uint_eq(f->n_frames, 0); /* it slows down itself. */
        ck_assert_uint_eq(fixture_drops(f, DROP_cnp), 3);
        node_cnp(f, UPLINK, CHILD_B, STAR_DQPN);
        ck_assert_uint_eq(fixture_drops(f, DROP_unknown_branch), 1);
        node_cnp(f, UPLINK, CHILD_A, STAR_DQPN + 1);
        ck_assert_uint_eq(fixture_drops(f, DROP_stale_epoch), 1);
        check_idle(f);
        ck_assert_uint_eq(fixture_total_drops(f), 5);
        fixture_destroy(f);
    }
END_TEST

/* A CNP of the switch that is the root ends at the agent; one that is no such CNP, too. */
START_TEST(agent_takes_the_roots)
    {
        static const struct {
            bool is_root;
            uint32_t qpn;
            bool corrupt;
            enum drop_reason why;
        } cases[] = {
            {false, STAR_SOURCE_QPN, false, DROP_cnp},
            {false, STAR_SOURCE_QPN + 1, false, DROP_stale_epoch},
            {false, STAR_SOURCE_QPN, true, DROP_icrc},
            {true, STAR_SOURCE_QPN, false, DROP_unknown_branch},
        };
        struct fixture *f =
            cases[_i].is_root ? agent_create_root(STAR_EDGE_ID, CHILD_A) : agent_create(2);
        uint8_t bytes[PACKET_ROOM];
        size_t len = cnp_bytes(bytes, &star_proxy, &star_source, cases[_i].qpn, 0, 0);

        bytes[len - 1] ^= cases[_i].corrupt;
        fixture_input(f, UPLINK, bytes, len);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, cases[_i].why), 1);
        ck_assert_uint_eq(fixture_total_drops(f), 1);
        fixture_destroy(f);
    }
END_TEST

/*
 * Two levels.
 */

/* How many CNPs get to the source in 50 ms if this many receivers of an edge below it send one every
 * 'period'? */
static uint64_t
cnps_at_source(unsigned n_congested, uint64_t period)
{
    struct fixture *edge = fixture_create(&swedge_class, 8),
                   *agent = agent_create_root(STAR_EDGE_ID, CHILD_A);
    uint64_t start = edge->now;
    uint32_t last;

    edge->config.trees[0].root = false;
    edge->config.trees[0].parent_sid = node_sid(STAR_AGENT_ID, SID_FUNC_RESPONSE);
    fixture_configure(edge);
    for (uint64_t at = 0; at < 50000; at += 10) {
        run_timer(edge, start + at);
        agent->now = start + at;
        for (size_t i = 0; i < edge->n_frames; i++) {
            const struct frame *frame = &edge->frames[i];

            ck_assert_uint_eq(frame->port, 1);
            fixture_input(agent, UPLINK, frame->bytes + sizeof(struct eth_hdr), TUNNELLED_LEN);
        }
        run_timer(agent, start + at);
        ck_assert_uint_eq(agent->n_frames, 0);
        for (unsigned i = 0; i < n_congested; i++) {
            if (at % period == i * 10) {
                receiver_cnp(edge, i);
            }
        }
    }
    ck_assert_uint_eq(fixture_total_drops(edge), fixture_drops(edge, DROP_cnp));
    ck_assert_uint_eq(fixture_total_drops(agent), fixture_drops(agent, DROP_cnp));
    uint64_t n = cnp_window_n_sent(tree_of(agent).cnps, &last);

    ck_assert_uint_eq(last, BRANCH_ID_NODE(STAR_EDGE_ID));
    fixture_destroy(edge);
    fixture_destroy(agent);
    return n;
}

/* However many branches are congested, the source hears of it equally often, at most once per T. */
START_TEST(as_many_for_eight_as_for_one)
    {
        static const struct {
            uint64_t period;
            unsigned least;
        } cases[] = {{200, 23}, {5000, 9}};
        uint64_t one = cnps_at_source(1, cases[_i].period);

        ck_assert_uint_eq(cnps_at_source(8, cases[_i].period), one);
        ck_assert_uint_ge(one, cases[_i].least);
        ck_assert_uint_le(one, 50000 / T);
    }
END_TEST

/*
 * Nothing else changes.
 */

static bool
is_cnp(const struct frame *frame)
{
    return frame->h.bth_ofs && frame->h.opcode == ROCE_CNP;
}

/* What both have sent is the same, but for CNPs of the second one.  Returns how many these are. */
static unsigned
compare(const struct fixture *a, const struct fixture *b)
{
    unsigned n_cnps = 0;
    size_t i = 0;

    for (size_t j = 0; j < b->n_frames; j++) {
        if (is_cnp(&b->frames[j])) {
            n_cnps++;
            continue;
        }
        ck_assert_uint_lt(i, a->n_frames);
        ck_assert_uint_eq(a->frames[i].port, b->frames[j].port);
        ck_assert_uint_eq(a->frames[i].len, b->frames[j].len);
        ck_assert_mem_eq(a->frames[i].bytes, b->frames[j].bytes, a->frames[i].len);
        i++;
    }
    ck_assert_uint_eq(i, a->n_frames);
    return n_cnps;
}

/* Two nodes see the same packets, and one of them CNPs besides: it says the same, at the same
 * times, and loses the same branches (R19 c). */
START_TEST(cnps_confirm_nothing)
    {
        static const uint8_t syndromes[] = {AETH_ACK_UNLIMITED, AETH_NAK_PSN_SEQ, AETH_RNR | 7};
        static const uint32_t branches[] = {1, FIRST_CHILD, BRANCH_ID_NODE(CHILD_B)};
        struct fixture *f[] = {transit_create(1), transit_create(1)};
        uint8_t bytes[PACKET_ROOM];
        unsigned n_cnps = 0, n_sent = 0;
        struct tree_info info[2];

        srand((unsigned) _i);
        for (unsigned i = 0; i < 2; i++) {
            f[i]->config.trees[0].policy.liveness_msec = 40;
            fixture_configure(f[i]);
        }
        for (unsigned k = 0; k < 400; k++) {
            unsigned what = (unsigned) rand() % 5, seed = (unsigned) rand();
            uint64_t now = f[0]->now + seed % 700;

            for (unsigned i = 0; i < 2; i++) {
                run_timer(f[i], now);
            }
            n_cnps += compare(f[0], f[1]);
            n_sent += (unsigned) f[0]->n_frames;
            for (unsigned i = 0; i < 2; i++) {
                uint32_t psn = START + k / 8;
                uint8_t syndrome = syndromes[seed % 3];

                f[i]->n_frames = 0;
                switch (what) {
                case 0: transit_down(f[i], bytes, psn, 1); break;
                case 1: /* again, what the slowest one lacks. */
                    transit_down(f[i], bytes, tree_of(f[i]).reverse.m.v, 1);
                    break;
                case 2: transit_respond(f[i], CHILD_A, syndrome, psn - 1); break;
                case 3: transit_receiver_responds(f[i], syndrome, psn - 1); break;
                default:
                    if (k < 200) { /* then it falls silent. */
                        transit_respond(f[i], CHILD_B, syndrome, psn - 1);
                    }
                }
            }
            n_cnps += compare(f[0], f[1]);
            n_sent += (unsigned) f[0]->n_frames;
            receiver_cnp(f[1], 0);
            node_cnp(f[1], PORT_B, CHILD_B, STAR_DQPN);
            ck_assert_uint_eq(f[1]->n_frames, 0);
        }
        for (unsigned i = 0; i < 2; i++) {
            info[i] = tree_of(f[i]);
        }
        ck_assert_uint_eq(info[0].reverse.h.v, info[1].reverse.h.v);
        ck_assert_uint_eq(info[0].reverse.m.v, info[1].reverse.m.v);
        ck_assert_uint_eq(info[0].reverse.f.v, info[1].reverse.f.v);
        for (unsigned i = 0; i < sizeof branches / sizeof *branches; i++) {
            struct reverse_branch_info b[2];

            for (unsigned j = 0; j < 2; j++) {
                ck_assert(f[j]->class->branch(f[j]->node, 0, branches[i], &b[j]));
            }
            ck_assert_uint_eq(b[0].una.v, b[1].una.v);
            ck_assert_int_eq(b[0].lost, b[1].lost);
            ck_assert_uint_eq(b[0].n_dups, b[1].n_dups);
            ck_assert(branches[i] != BRANCH_ID_NODE(CHILD_B) || b[0].lost);
        }
        ck_assert_uint_gt(n_sent, 100);
        ck_assert_uint_gt(n_cnps, 10);
        for (unsigned i = 0; i < 2; i++) {
            fixture_destroy(f[i]);
        }
    }
END_TEST

Suite *
cnp_node_suite(void)
{
    Suite *s = suite_create("cnp_node");
    TCase *tc = tcase_create("cnp_node");

    tcase_add_loop_test(tc, goes_up_at_the_end, 0, 2);
    tcase_add_test(tc, root_writes_a_standard_one);
    tcase_add_test(tc, branches_are_merged);
    tcase_add_test(tc, window_is_configured);
    tcase_add_test(tc, limited_per_branch);
    tcase_add_loop_test(tc, refused_of_receivers, 0, sizeof refused / sizeof *refused);
    tcase_add_test(tc, queue_pair_of_an_earlier_epoch);
    tcase_add_loop_test(tc, refused_of_nodes, 0, 3);
    tcase_add_test(tc, old_epoch_is_silent);
    tcase_add_test(tc, fast_cnps_do_not_count);
    tcase_add_test(tc, unicast_passes);
    tcase_add_loop_test(tc, who_counts, 0, CNP_OFF + 1);
    tcase_add_test(tc, receivers_own_switch_the_edges_off);
    tcase_add_test(tc, marks_are_limited);
    tcase_add_test(tc, copies_name_their_branch);
    tcase_add_test(tc, agent_merges_as_root);
    tcase_add_loop_test(tc, agent_takes_the_roots, 0, 4);
    tcase_add_loop_test(tc, as_many_for_eight_as_for_one, 0, 2);
    tcase_add_loop_test(tc, cnps_confirm_nothing, 0, 20);
    suite_add_tcase(s, tc);
    return s;
}
