/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a queue pair stands (lib/position.c), asked of the model of an endpoint over a link that
 * loses, repeats and reorders.
 */
#include "lib/position.h"

#include <check.h>
#include <string.h>

#include "lib/parse.h"
#include "lib/question.h"
#include "lib/roce.h"
#include "tests/model/rc-endpoint.h"
#include "tests/unit/node-fixture.h"
#include "tests/unit/suites.h"

#define QPN        0x21
#define DQPN       0x101
#define RKEY       0x5a01
#define REGION_LEN 4096
#define N_SEEDS    BY_CHANCE(4000)
#define MAX_WAY    64
#define MAX_DELAY  40000

/* What is on its way to the machine: an answer. */
struct answer {
    uint64_t at;
    uint8_t syndrome;
    psn_t psn;
    uint32_t msn;
};

struct link {
    uint64_t random, now;
    uint32_t loss; /* of 256. */
    struct rc_endpoint *ep;
    struct position position;
    struct packet_pool *pool;
    struct answer way[MAX_WAY];
    size_t n_way;
    uint8_t region[REGION_LEN];
};

static const struct in6_addr proxy = {{{0xfd, 1, [15] = 1}}};
static const struct in6_addr own = {{{0xfd, 2, [15] = 1}}};

static uint32_t
rnd(struct link *l, uint32_t limit)
{
    uint64_t z = l->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t) ((z ^ z >> 31) >> 32) % limit;
}

/* The endpoint answers. */
static void
answered(void *l_, const uint8_t *ip, size_t len)
{
    struct link *l = l_;
    const struct bth *bth = (const void *) (ip + IP6_HDR_LEN + sizeof(struct udp_hdr));
    const struct aeth *aeth = (const void *) (bth + 1);

    ck_assert_uint_ge(len, IP6_HDR_LEN + sizeof(struct udp_hdr) + sizeof *bth + sizeof *aeth);
    for (unsigned n = 1 + !rnd(l, 16); n && l->n_way < MAX_WAY; n--) {
        if (rnd(l, 256) >= l->loss) {
            l->way[l->n_way++] = (struct answer){
                .at = l->now + rnd(l, MAX_DELAY),
                .syndrome = aeth->syndrome,
                .psn = bth_psn(bth),
                .msn = be24_get(aeth->msn),
            };
        }
    }
}

/* A packet of the earlier source. */
static void
feed(struct link *l, uint8_t opcode, psn_t psn)
{
    uint8_t bytes[PACKET_ROOM];
    const struct roce_spec spec = {
        .src = &proxy,
        .dst = &own,
        .dest_qp = QPN,
        .opcode = opcode,
        .ack_req = rnd(l, 2),
        .psn = psn.v,
        .rkey = RKEY,
        .dma_len = opcode == RC_WRITE_FIRST ? 512 : 256,
        .payload_len = 256,
    };
    size_t len = roce_build(bytes, &spec);

    rc_input(l->ep, bytes, len, l->now);
}

static struct rc_info
info(const struct link *l)
{
    struct rc_info i;

    rc_get_info(l->ep, &i);
    return i;
}

static psn_t
link_init(struct link *l, unsigned seed, psn_t start)
{
    *l = (struct link){.random = seed, .now = 1000};
    l->pool = packet_pool_create(64);
    l->ep = rc_create(
        &(struct rc_config){
            .own = own,
            .peer = proxy,
            .qpn = QPN,
            .dest_qpn = DQPN,
            .start_psn = start,
            .mtu = 256,
            .retry_cnt = 7,
            .rnr_retry = 7,
            .region = l->region,
            .region_len = REGION_LEN,
            .rkey = RKEY,
        },
        &(struct rc_ops){.tx = answered, .aux = l});
    return start;
}

static void
link_uninit(struct link *l)
{
    rc_destroy(l->ep);
    packet_pool_destroy(l->pool);
}

static void
ask(struct link *l, psn_t psn)
{
    struct packet *p = question_build(l->pool, &proxy, &own, 0xc123, QPN, psn);

    for (unsigned n = 1 + !rnd(l, 16); n; n--) {
        if (rnd(l, 256) >= l->loss) {
            rc_input(l->ep, p->data, p->len, l->now);
        }
    }
    packet_put(p);
}

/* Asks until it is known. */
static void
run(struct link *l)
{
    for (unsigned n = 0; position_deadline(&l->position) != UINT64_MAX; n++) {
        size_t first = l->n_way;
        psn_t psn;

        ck_assert_uint_lt(n, 5000);
        for (size_t i = 0; i < l->n_way; i++) {
            first = first == l->n_way || l->way[i].at < l->way[first].at ? i : first;
        }
        uint64_t deadline = position_deadline(&l->position);
        if (first < l->n_way && l->way[first].at <= deadline) {
            struct answer a = l->way[first];

            l->way[first] = l->way[--l->n_way];
            l->now = a.at > l->now ? a.at : l->now;
            position_answer(&l->position, a.syndrome, a.psn, a.msn, l->now);
            continue;
        }
        l->now = deadline > l->now ? deadline : l->now;
        if (position_timer(&l->position, l->now, &psn)) {
            ask(l, psn);
        }
    }
}

/* Whatever it has received, and however the answers come. */
START_TEST(is_true)
    {
        for (unsigned seed = 0; seed < N_SEEDS; seed++) {
            struct link l;
            psn_t next = link_init(&l, (unsigned) _i * N_SEEDS + seed,
                                   psn_make(seed % 3 ? 0u - seed % 20 : seed * 4099u));
            psn_t start = next;
            uint32_t n_messages = rnd(&l, 4);
            bool half = rnd(&l, 2);

            l.loss = seed % 2 ? 0 : 77;
            for (uint32_t i = 0; i < n_messages; i++) {
                feed(&l, RC_WRITE_FIRST, next);
                feed(&l, RC_WRITE_LAST, psn_add(next, 1));
                next = psn_add(next, 2);
            }
            if (half) {
                feed(&l, RC_WRITE_FIRST, next);
                next = psn_add(next, 1);
            }
            ck_assert(psn_eq(info(&l).expected, next));
            uint8_t before[REGION_LEN];
            memcpy(before, l.region, sizeof before);

            /* Its last answer comes late: maybe even after the first question. */
            if (l.n_way && !rnd(&l, 4)) {
                l.way[l.n_way - 1].at += 150000;
            }
            bool received = n_messages || half;
            psn_t hint = received || l.loss ? psn_add(start, -(int32_t) rnd(&l, received ? 9 : 1))
                                            : psn_make(rnd(&l, PSN_MASK + 1));
            hint = rnd(&l, 4) ? hint : psn_add(hint, received ? 1 << 23 : 0);
            position_init(&l.position, hint, l.now);
            run(&l);

            ck_assert_msg(l.position.state == (half ? POSITION_HALF : POSITION_FOUND),
                          "%d, seed %u: state %d, %u messages, half %d, hint %u, expects %u", _i,
                          seed, l.position.state, n_messages, half, hint.v, info(&l).expected.v);
            ck_assert_int_eq(info(&l).failed, half);
            ck_assert_mem_eq(before, l.region, sizeof before);
            if (!half) {
                ck_assert(psn_eq(l.position.psn, info(&l).expected));
                feed(&l, RC_WRITE_FIRST, l.position.psn);
                ck_assert(psn_eq(info(&l).expected, psn_add(l.position.psn, 1)));
                ck_assert(!info(&l).failed);
            }
            link_uninit(&l);
        }
    }
END_TEST

/* Nothing is sent before what is old has left the wire, and one that says nothing is given up. */
START_TEST(is_silent)
    {
        struct position p;
        psn_t psn;
        unsigned n = 0;

        position_init(&p, psn_make(5), 1000);
        ck_assert_uint_eq(position_deadline(&p), 101000);
        ck_assert(!position_timer(&p, 100999, &psn));
        position_answer(&p, AETH_ACK_UNLIMITED, psn_make(4), 1, 100999);
        ck_assert_int_eq(p.state, POSITION_LOOKING);
        while (position_deadline(&p) != UINT64_MAX) {
            n += position_timer(&p, position_deadline(&p), &psn);
        }
        ck_assert_int_eq(p.state, POSITION_SILENT);
        ck_assert_uint_eq(n, 40);
    }
END_TEST

Suite *
position_suite(void)
{
    Suite *s = suite_create("position");
    TCase *tc = tcase_create("queue_pair");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, is_true, 0, 4);
    tcase_add_test(tc, is_silent);
    suite_add_tcase(s, tc);
    return s;
}
