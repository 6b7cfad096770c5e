/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies that are not made, or lost before they leave: what the trace says, and what the
 * reverse-path machine is told.  The same at edges, transit nodes and source agents.
 */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "lib/fanout.h"
#include "lib/roce.h"
#include "swedge/swedge.h"
#include "tests/unit/agent-fixture.h"
#include "tests/unit/modes-fixture.h"
#include "tests/unit/suites.h"
#include "tests/unit/transit-fixture.h"

static char trace[8192];

static void
on_line(void *aux, const char *text)
{
    (void) aux;
    strncat(trace, text, sizeof trace - strlen(trace) - 1);
    strncat(trace, "\n", sizeof trace - strlen(trace) - 1);
}

/* A node whose tree has a branch that is reached at this address. */
struct bench {
    struct fixture *f;
    struct in6_addr to;
    void (*down)(struct fixture *, uint32_t psn);
    void (*respond)(struct fixture *, uint8_t syndrome, uint32_t psn);
};

static void
bud_down(struct fixture *f, uint32_t psn)
{
    uint8_t bytes[PACKET_ROOM];
    transit_down(f, bytes, psn, 2);
}

static void
node_responds(struct fixture *f, uint8_t syndrome, uint32_t psn)
{
    transit_respond(f, CHILD_A, syndrome, psn);
}

static void
edge_responds(struct fixture *f, uint8_t syndrome, uint32_t psn)
{
    uint8_t bytes[PACKET_ROOM];
    size_t len = tunnelled_response(bytes, STAR_EDGE_ID, STAR_AGENT_ID, STAR_DQPN, syndrome, psn);

    fixture_input(f, UPLINK, bytes, len);
}

static struct bench
bench_create(int i)
{
    struct bench benches[] = {
        {transit_create(2), star_receiver(0), bud_down, transit_receiver_responds},
        {transit_create(2), node_sid(CHILD_A, GROUP_RS), bud_down, node_responds},
        {ingress_create(), node_sid(STAR_EDGE_ID, SID_FUNC_END_MT), agent_write, edge_responds},
    };

    for (int k = 0; k < 3; k++) {
        if (k != i) {
            fixture_destroy(benches[k].f);
        }
    }
    benches[i].f->class->set_tracer(benches[i].f->node, &(struct tracer){.line = on_line});
    return benches[i];
}

/* Does the last packet's trace say that the branch had no copy, and this of it? */
static bool
traced(const struct bench *b, const char *reason)
{
    char line[256];

    snprintf(line, sizeof line, ": no copy to %s%s\n", TRACE_ADDR(&b->to), reason);
    return strstr(trace, line);
}

static void
down(const struct bench *b, uint32_t psn)
{
    trace[0] = '\0';
    b->down(b->f, psn);
}

START_TEST(who_is_left_out_is_traced)
    {
        struct bench b = bench_create(_i);

        b.f->config.trees[0].policy.filter = true;
        b.f->config.trees[0].policy.prune = true;
        fixture_configure(b.f);
        down(&b, START);
        size_t n_copies = b.f->n_frames;
        ck_assert(!traced(&b, ""));

        b.respond(b.f, 0x1f, START);
        down(&b, START);
        ck_assert_msg(traced(&b, ", where PSN 16777214 is confirmed"), "%s", trace);
        ck_assert_uint_eq(b.f->n_frames, n_copies - 1);
        ck_assert_uint_eq(fixture_total_drops(b.f), 0);

        down(&b, START + 1);
        b.respond(b.f, AETH_NAK_REM_ACCESS, START + 1);
        down(&b, START + 2);
        ck_assert_msg(traced(&b, ": receiver was lost and the group goes on without it"), "%s",
                      trace);
        ck_assert_uint_eq(b.f->n_frames, n_copies - 1);
        ck_assert_uint_eq(fixture_drops(b.f, DROP_member_lost), 1);
        fixture_destroy(b.f);
    }
END_TEST

/* What the branch with this id, which has said NAK(START), is known for. */
static enum reverse_cond
cond_of(const struct fixture *f, uint32_t id)
{
    struct reverse_branch_info info;

    ck_assert(f->class->branch(f->node, 0, id, &info));
    return info.cond;
}

START_TEST(copy_lost_here_was_not_sent)
    {
        static const uint16_t ports[] = {2, PORT_A, UPLINK};
        static const uint32_t ids[] = {1, BRANCH_ID_NODE(CHILD_A), BRANCH_ID_NODE(STAR_EDGE_ID)};
        struct bench b = bench_create(_i);

        down(&b, START);
        down(&b, START + 1);
        b.respond(b.f, AETH_NAK_PSN_SEQ, START);
        ck_assert_int_eq(cond_of(b.f, ids[_i]), REVERSE_NAK);
        b.f->mtu[ports[_i]] = 80;
        down(&b, START);
        ck_assert_uint_gt(fixture_drops(b.f, DROP_too_long), 0);
        ck_assert_int_eq(cond_of(b.f, ids[_i]), REVERSE_NAK);
        b.f->mtu[ports[_i]] = 0;
        down(&b, START);
        ck_assert_int_eq(cond_of(b.f, ids[_i]), REVERSE_NONE);
        fixture_destroy(b.f);
    }
END_TEST

/* A fan-out by itself: copies wait, and while the first is sent a NAK comes that asks others. */
static struct sent_frames waiting;
static unsigned n_copies, n_asked;

static enum drop_reason
send_and_hear_nak(const struct fanout *f, void *target, struct packet *p, uint8_t *icrc)
{
    uint8_t bytes[PACKET_ROOM];
    enum drop_reason why;

    (void) target;
    (void) icrc;
    ck_assert_uint_gt(packet_flatten(p, bytes, sizeof bytes), 0);
    n_asked += ((const struct bth *) (bytes + f->bth_ofs))->ack_req == BTH_ACK_REQ;
    sent_frames_put(&waiting, p);
    if (!n_copies++) {
        reverse_response(f->reverse, 1, psn_add(f->psn, -1), AETH_NAK_PSN_SEQ, 0, 0, &why);
        ck_assert_int_eq(why, DROP_none);
        ck_assert(reverse_asks_any(f->reverse));
    }
    return DROP_none;
}

static void
fan_out(struct reverse *r, struct node_base *node, struct packet *p, psn_t psn)
{
    enum { BTH_OFS = IP6_HDR_LEN + sizeof(struct udp_hdr) };
    static int target;
    struct fanout f = {
        .node = node,
        .reverse = r,
        .what = "test",
        .send = send_and_hear_nak,
        .psn = psn,
        .original = p,
        .takes_original = true,
        .head_len = IP6_HDR_LEN,
        .bth_ofs = BTH_OFS,
        .after_qpn = (uint16_t) (p->len - ROCE_ICRC_LEN - BTH_OFS - offsetof(struct bth, ack_req)),
    };

    reverse_down(r, psn, false, 0);
    for (uint32_t id = 1; id <= 3; id++) {
        fanout_add(&f, id, &target, &star_proxy);
    }
    ck_assert_int_eq(fanout_end(&f), DROP_none);
}

START_TEST(copies_that_wait_stay_as_they_are)
    {
        struct packet_pool *pool = packet_pool_create(8);
        struct reverse *r = reverse_create(&(struct reverse_params){
            .start_psn = psn_make(START), .dup_ack_usec = 500, .hold_usec = 1000});
        struct node_base node = {.pool = pool};
        struct roce_spec spec = transit_write(START + 1);
        uint8_t bytes[PACKET_ROOM];

        spec.ack_req = false;
        size_t len = roce_build(bytes, &spec);
        reverse_set_policy(r, &(struct reverse_policy){.nak = NAK_SOLICIT});
        for (uint32_t id = 1; id <= 3; id++) {
            ck_assert_int_eq(reverse_branch_add(r, id, 0), 0);
        }
        reverse_down(r, psn_make(START), false, 0);
        reverse_down(r, psn_make(START + 1), false, 0);
        n_copies = n_asked = 0;
        fan_out(r, &node, packet_from_bytes(pool, bytes, len), psn_make(START + 2));
        ck_assert_uint_eq(n_copies, 3);
        ck_assert(sent_frames_flush(&waiting));
        ck_assert_uint_eq(n_asked, 0);

        /* NAKs that were there before ask those behind. */
        n_copies = 0;
        fan_out(r, &node, packet_from_bytes(pool, bytes, len), psn_make(START + 3));
        ck_assert_uint_eq(n_copies, 3);
        ck_assert_uint_eq(n_asked, 2);
        ck_assert(sent_frames_flush(&waiting));
        ck_assert_uint_eq(packet_pool_n_free(pool), 8);
        reverse_destroy(r);
        packet_pool_destroy(pool);
    }
END_TEST

Suite *
fanout_suite(void)
{
    Suite *suite = suite_create("fanout");
    TCase *tc = tcase_create("fanout");

    tcase_add_loop_test(tc, who_is_left_out_is_traced, 0, 3);
    tcase_add_loop_test(tc, copy_lost_here_was_not_sent, 0, 3);
    tcase_add_test(tc, copies_that_wait_stay_as_they_are);
    suite_add_tcase(suite, tc);
    return suite;
}
