/* SPDX-License-Identifier: Apache-2.0
 *
 * lib/aggregate: which branches stay when the set of them changes, and what goes up.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "lib/aggregate.h"
#include "lib/response.h"
#include "lib/roce.h"
#include "tests/unit/node-fixture.h"
#include "tests/unit/suites.h"

#define NOW          1000
#define MAX_BRANCHES 3

/* A tree with branches 1 to n; the test changes 'config' and applies it. */
struct bench {
    struct aggregate *a;
    struct tree_config applied, config;
    struct branch_config applied_branches[MAX_BRANCHES], branches[MAX_BRANCHES];
};

static struct reverse_out
apply(struct bench *b)
{
    struct branch_config old_branches[MAX_BRANCHES];
    struct tree_config old = b->applied;

    memcpy(old_branches, b->applied_branches, sizeof old_branches);
    old.branches = old_branches;
    memcpy(b->applied_branches, b->branches, sizeof b->branches);
    b->applied = b->config;
    b->applied.branches = b->applied_branches;
    return aggregate_configure(b->a, &old, &b->applied, NOW);
}

static void
setup(struct bench *b, size_t n)
{
    *b = (struct bench){
        .config =
            {
                .group = "g",
                .proxy = star_proxy,
                .designated_qpn = STAR_DQPN,
                .start_psn = psn_make(START),
                .source = star_source,
                .source_qpn = STAR_SOURCE_QPN,
                .branches = b->branches,
                .n_branches = n,
            },
    };
    for (unsigned i = 0; i < n; i++) {
        b->branches[i] = (struct branch_config){
            .id = i + 1,
            .kind = BRANCH_RECEIVER,
            .name = "one",
            .address = star_receiver(i),
            .qpn = star_qpn(i),
        };
    }
    b->a = aggregate_create(&b->config, 0);
    ck_assert_int_eq(aggregate_check(NULL, &b->config, NULL), 0);
    ck_assert(!apply(b).send);
}

static void
teardown(struct bench *b)
{
    aggregate_destroy(b->a);
}

static void
sent_down(struct bench *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        ck_assert(!reverse_down(b->a->reverse, psn_make(START + i), false, NOW).send);
    }
}

static struct reverse_out
responds(struct bench *b, uint32_t id, uint8_t syndrome, uint32_t psn)
{
    enum drop_reason why;
    struct reverse_out out =
        reverse_response(b->a->reverse, id, psn_make(psn), syndrome, 1, NOW, &why);

    ck_assert_int_eq(why, DROP_none);
    return out;
}

/* One after the other, the slow one's departure would let the NAK of the one that
 * leaves with it go up. */
START_TEST(branches_leave_together)
    {
        struct bench b;

        setup(&b, 3);
        sent_down(&b, 3);
        ck_assert(!responds(&b, 2, AETH_NAK_REM_OP, START + 1).send);
        ck_assert(!responds(&b, 3, AETH_ACK_UNLIMITED, START + 2).send);
        b.branches[0] = b.branches[2];
        b.config.n_branches = 1;
        struct reverse_out out = apply(&b);
        ck_assert(out.send);
        ck_assert_uint_eq(out.syndrome, AETH_ACK_UNLIMITED);
        ck_assert_uint_eq(out.psn.v, psn_make(START + 2).v);
        teardown(&b);
    }
END_TEST

/* Ways in which an id can be another branch's. */
static void
replace(struct branch_config *b, int how)
{
    switch (how) {
    case 0: b->qpn++; break;
    case 1: b->address = star_receiver(6); break;
    case 2: b->kind = BRANCH_NODE; break;
    }
}

#define N_REPLACEMENTS 3

/* What the old branch has confirmed says nothing about the new one. */
START_TEST(another_branch_under_an_id)
    {
        struct reverse_branch_info info;
        char *error = NULL;
        struct bench b;

        setup(&b, 2);
        struct branch_config old = b.branches[1];
        sent_down(&b, 2);
        responds(&b, 1, AETH_ACK_UNLIMITED, START + 1);
        responds(&b, 2, AETH_ACK_UNLIMITED, START);
        replace(&b.branches[1], _i);
        ck_assert_int_eq(aggregate_check(b.a, &b.config, &error), EBUSY);
        ck_assert_str_eq(error, "group g: one cannot join while packets are in flight");
        free(error);

        responds(&b, 2, AETH_ACK_UNLIMITED, START + 1);
        ck_assert_int_eq(aggregate_check(b.a, &b.config, &error), 0);
        ck_assert(!apply(&b).send);
        ck_assert(reverse_get_branch(b.a->reverse, 2, &info));
        ck_assert_uint_eq(info.una.v, psn_make(START + 2).v);
        ck_assert_uint_eq(info.n_acks, 0);
        ck_assert(reverse_get_branch(b.a->reverse, 1, &info));
        ck_assert_uint_eq(info.n_acks, 1);
        ck_assert_ptr_eq(aggregate_branch(b.a, b.branches[1].kind, &b.branches[1].address),
                         &b.applied_branches[1]);
        ck_assert_ptr_eq(aggregate_branch(b.a, old.kind, &old.address),
                         _i ? NULL : &b.applied_branches[1]);
        teardown(&b);
    }
END_TEST

/* A node that is to join has left meanwhile, if it counted: what it has confirmed is over. */
START_TEST(joins_anew)
    {
        struct reverse_branch_info info;
        struct bench b;

        setup(&b, 2);
        b.branches[1].kind = BRANCH_NODE;
        apply(&b);
        sent_down(&b, 2);
        b.branches[1].join = BRANCH_WAITS;
        apply(&b);
        ck_assert(reverse_get_branch(b.a->reverse, 2, &info));
        ck_assert(info.waits);
        ck_assert(reverse_get_branch(b.a->reverse, 1, &info));
        ck_assert(!info.waits);
        b.branches[1].join = BRANCH_COUNTS; /* as it has said itself. */
        ck_assert_int_eq(aggregate_check(b.a, &b.config, NULL), 0);
        apply(&b);
        ck_assert(reverse_get_branch(b.a->reverse, 2, &info));
        ck_assert(!info.waits);
        teardown(&b);
    }
END_TEST

/* A branch that is the same one stays, wherever it is in the list and whatever else changes. */
START_TEST(same_branch)
    {
        struct reverse_branch_info info;
        struct bench b;

        setup(&b, 2);
        sent_down(&b, 2);
        responds(&b, 2, AETH_ACK_UNLIMITED, START);
        struct branch_config first = b.branches[0];
        b.branches[0] = b.branches[1];
        b.branches[1] = first;
        b.branches[0].rkey++;
        b.branches[0].len++;
        ck_assert_int_eq(aggregate_check(b.a, &b.config, NULL), 0);
        ck_assert(!apply(&b).send);
        ck_assert(reverse_get_branch(b.a->reverse, 2, &info));
        ck_assert_uint_eq(info.una.v, psn_make(START + 1).v);
        ck_assert_uint_eq(info.n_acks, 1);
        teardown(&b);
    }
END_TEST

/* The response as it leaves, at 'ip', is from the Proxy to the source. */
static void
check_response(const uint8_t *ip_bytes, uint32_t dest_qp)
{
    const struct ip6_hdr_wire *ip = (const void *) ip_bytes;
    const struct bth *bth = (const void *) (ip_bytes + IP6_HDR_LEN + sizeof(struct udp_hdr));
    const struct aeth *aeth = (const void *) (bth + 1);

    ck_assert_mem_eq(&ip->src, &star_proxy, 16);
    ck_assert_mem_eq(&ip->dst, &star_source, 16);
    ck_assert_uint_eq(bth->opcode, RC_ACK);
    ck_assert_uint_eq(be24_get(bth->dest_qp), dest_qp);
    ck_assert_uint_eq(bth_psn(bth).v, 5);
    ck_assert_uint_eq(aeth->syndrome, AETH_NAK_PSN_SEQ);
    ck_assert_uint_eq(be24_get(aeth->msn), 9);
}

/* Proves MT-5.3.1-5. */
START_TEST(build)
    {
        const struct reverse_out out = {true, AETH_NAK_PSN_SEQ, psn_make(5), 9, false};
        struct in6_addr own = node_address(STAR_EDGE_ID);
        struct in6_addr parent = node_sid(0x400, SID_FUNC_RESPONSE);
        struct packet_pool *pool = packet_pool_create(1);
        enum drop_reason why;
        struct bench b;

        setup(&b, 1);
        ck_assert_ptr_null(aggregate_build(b.a, pool, &own, &out, &why));
        ck_assert_int_eq(why, DROP_no_parent);

        b.config.parent_sid = parent;
        apply(&b);
        struct packet *p = aggregate_build(b.a, pool, &own, &out, &why);
        ck_assert_ptr_nonnull(p);
        ck_assert_int_eq(why, DROP_none);
        const struct ip6_hdr_wire *outer = (const void *) p->data;
        ck_assert_uint_eq(packet_size(p), IP6_HDR_LEN + RESPONSE_LEN);
        ck_assert_uint_eq(outer->nh, IP6_NH_IPV6);
        ck_assert_mem_eq(&outer->src, &own, 16);
        ck_assert_mem_eq(&outer->dst, &parent, 16);
        check_response(p->data + IP6_HDR_LEN, STAR_DQPN);

        ck_assert_ptr_null(aggregate_build(b.a, pool, &own, &out, &why));
        ck_assert_int_eq(why, DROP_pool_empty);
        packet_put(p);

        b.config.root = true; /* whatever the parent is. */
        apply(&b);
        p = aggregate_build(b.a, pool, &own, &out, &why);
        ck_assert_ptr_nonnull(p);
        ck_assert_int_eq(why, DROP_none);
        ck_assert_uint_eq(packet_size(p), RESPONSE_LEN);
        check_response(p->data, STAR_SOURCE_QPN);
        packet_put(p);
        packet_pool_destroy(pool);
        teardown(&b);
    }
END_TEST

/* How long the root waits at least before it presumes that an answer got lost (R14). */
static const struct {
    bool root;
    uint8_t timeout;
    uint64_t least; /* 0: for ever. */
} presumes[] = {
    {true, 0, 0},   {false, 14, 0},    {true, 1, 1},
    {true, 8, 209}, {true, 14, 13421}, {true, 31, 1759218604},
};

START_TEST(presumes_after_a_fifth_of_the_timeout)
    {
        uint64_t least = presumes[_i].least;
        enum drop_reason why;
        struct bench b;

        setup(&b, 1);
        b.config.root = presumes[_i].root;
        b.config.policy.timeout = presumes[_i].timeout;
        ck_assert(!apply(&b).send);
        ck_assert(!reverse_down(b.a->reverse, psn_make(START), true, NOW).send);
        ck_assert(
            reverse_response(b.a->reverse, 1, psn_make(START), AETH_ACK_UNLIMITED, 1, NOW, &why)
                .send);
        ck_assert(!reverse_down(b.a->reverse, psn_make(START + 1), true, NOW).send);
        ck_assert_uint_eq(reverse_deadline(b.a->reverse), least ? NOW + least : UINT64_MAX);
        teardown(&b);
    }
END_TEST

Suite *
aggregate_suite(void)
{
    Suite *s = suite_create("aggregate");
    TCase *tc = tcase_create("aggregate");

    tcase_add_test(tc, branches_leave_together);
    tcase_add_loop_test(tc, another_branch_under_an_id, 0, N_REPLACEMENTS);
    tcase_add_test(tc, joins_anew);
    tcase_add_test(tc, same_branch);
    tcase_add_test(tc, build);
    tcase_add_loop_test(tc, presumes_after_a_fifth_of_the_timeout, 0,
                        sizeof presumes / sizeof *presumes);
    suite_add_tcase(s, tc);
    return s;
}
