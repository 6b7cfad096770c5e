/* SPDX-License-Identifier: Apache-2.0
 *
 * Neighbour cache: the state machine on a clock of the test's own.
 */
#include <string.h>

#include "lib/neigh.h"
#include "tests/unit/suites.h"

#define SEC    1000000u
#define N_POOL (NEIGH_QUEUED_MAX + 1)

static struct packet_pool *pool;
static struct neigh_table *table;
static unsigned n_asked_all, n_asked_one, n_sent, n_dropped[N_DROP_REASONS];
static uint8_t first_sent; /* first byte of the packet sent first. */

static const uint8_t mac_a[6] = {2, 0, 0, 0, 0, 0xa};
static const uint8_t mac_b[6] = {2, 0, 0, 0, 0, 0xb};
static const struct in6_addr peer = {.s6_addr = {0xfd, [15] = 1}};

static void
on_solicit(void *aux, uint16_t port, const struct in6_addr *addr, const uint8_t *mac)
{
    (void) aux, (void) port, (void) addr;
    n_asked_all += !mac;
    n_asked_one += mac != NULL;
}

static void
on_send(void *aux, uint16_t port, struct packet *p, const uint8_t mac[6])
{
    (void) aux, (void) port, (void) mac;
    if (!n_sent++) {
        first_sent = p->data[0];
    }
    packet_put(p);
}

static void
on_drop(void *aux, uint16_t port, struct packet *p, enum drop_reason why)
{
    (void) aux, (void) port;
    n_dropped[why]++;
    packet_put(p);
}

static void
setup(void)
{
    const struct neigh_ops ops = {on_solicit, on_send, on_drop, NULL};
    pool = packet_pool_create(N_POOL);
    table = neigh_table_create(&ops);
    n_asked_all = n_asked_one = n_sent = 0;
    memset(n_dropped, 0, sizeof n_dropped);
}

static void
teardown(void)
{
    neigh_table_destroy(table);
    packet_pool_destroy(pool);
}

/* Sends a packet to 'addr' whose byte is 'tag'.  The MAC it went to at once, or NULL. */
static const uint8_t *
use_tagged(uint16_t port, const struct in6_addr *addr, uint8_t tag, uint64_t now,
           enum drop_reason *why)
{
    const uint8_t *mac;
    struct packet *p = packet_from_bytes(pool, &tag, 1);

    *why = neigh_resolve(table, port, addr, p, now, &mac);
    if (*why || mac) {
        packet_put(p);
    }
    return mac;
}

static const uint8_t *
use(uint16_t port, uint64_t now)
{
    enum drop_reason why;
    const uint8_t *mac = use_tagged(port, &peer, 0, now, &why);
    ck_assert_int_eq(why, DROP_none);
    return mac;
}

START_TEST(resolve)
    {
        enum drop_reason why;

        ck_assert_uint_eq(neigh_deadline(table), UINT64_MAX);
        for (uint8_t i = 0; i < 3; i++) {
            ck_assert_ptr_null(use_tagged(1, &peer, i, 5, &why));
        }
        ck_assert_uint_eq(n_asked_all, 1);
        ck_assert_uint_eq(neigh_deadline(table), 5 + SEC);
        neigh_answer(table, 1, &peer, mac_a, false, 10);
        ck_assert_uint_eq(n_sent, 3);
        ck_assert_uint_eq(first_sent, 0);
        ck_assert_mem_eq(use(1, 11), mac_a, 6);
        ck_assert_uint_eq(n_asked_all + n_asked_one, 1);
    }
END_TEST

START_TEST(queue_keeps_the_newest)
    {
        enum drop_reason why;

        for (uint8_t i = 0; i < NEIGH_QUEUE_MAX + 3; i++) {
            use_tagged(1, &peer, i, 0, &why);
        }
        ck_assert_uint_eq(n_dropped[DROP_neigh_queue], 3);
        neigh_answer(table, 1, &peer, mac_a, true, 1);
        ck_assert_uint_eq(n_sent, NEIGH_QUEUE_MAX);
        ck_assert_uint_eq(first_sent, 3);
    }
END_TEST

START_TEST(queues_are_bounded_together)
    {
        enum drop_reason why;
        uint16_t port = 0;

        for (unsigned i = 0; i < NEIGH_QUEUED_MAX; i++) {
            use_tagged(port = (uint16_t) (i / NEIGH_QUEUE_MAX), &peer, (uint8_t) i, 0, &why);
        }
        ck_assert_uint_eq(n_dropped[DROP_neigh_queue], 0);
        use_tagged(port, &peer, 0, 0, &why); /* one of its own makes room; */
        ck_assert_uint_eq(n_dropped[DROP_neigh_queue], 1);
        use_tagged(++port, &peer, 0, 0, &why); /* who has none gets none. */
        ck_assert_uint_eq(n_dropped[DROP_neigh_queue], 2);
        neigh_answer(table, port, &peer, mac_a, true, 1);
        ck_assert_uint_eq(n_sent, 0);
        neigh_answer(table, 0, &peer, mac_a, true, 1);
        ck_assert_uint_eq(n_sent, NEIGH_QUEUE_MAX);
        ck_assert_ptr_null(use_tagged(port = NEIGH_PORTS - 1, &peer, 0, 1, &why));
        neigh_answer(table, port, &peer, mac_a, true, 2);
        ck_assert_uint_eq(n_sent, NEIGH_QUEUE_MAX + 1);
    }
END_TEST

START_TEST(give_up_and_hold)
    {
        enum drop_reason why;

        use(1, 0);
        use(1, 0);
        for (unsigned i = 1; i < NEIGH_N_SOLICITS; i++) {
            neigh_timer(table, i * SEC - 1);
            ck_assert_uint_eq(n_asked_all, i);
            neigh_timer(table, i * SEC);
            ck_assert_uint_eq(n_asked_all, i + 1);
        }
        neigh_timer(table, 3 * SEC);
        ck_assert_uint_eq(n_asked_all, NEIGH_N_SOLICITS);
        ck_assert_uint_eq(n_dropped[DROP_no_neighbour], 2);

        use_tagged(1, &peer, 0, 3 * SEC + 1, &why);
        ck_assert_int_eq(why, DROP_no_neighbour);
        neigh_answer(table, 1, &peer, mac_a, true, 3 * SEC + 2); /* too late. */
        neigh_timer(table, 4 * SEC);
        ck_assert_uint_eq(neigh_count(table), 0);
        ck_assert_uint_eq(neigh_deadline(table), UINT64_MAX);
        ck_assert_ptr_null(use(1, 4 * SEC));
        ck_assert_uint_eq(n_asked_all, NEIGH_N_SOLICITS + 1);
    }
END_TEST

START_TEST(refresh)
    {
        use(1, 0);
        neigh_answer(table, 1, &peer, mac_a, true, 0);
        neigh_timer(table, 100 * SEC); /* unused: no question. */
        ck_assert_uint_eq(n_asked_one, 0);

        ck_assert_mem_eq(use(1, 100 * SEC), mac_a, 6); /* asks while it sends. */
        ck_assert_uint_eq(n_asked_one, 1);
        neigh_answer(table, 1, &peer, NULL, false, 100 * SEC + 1); /* no MAC: the known one. */
        ck_assert_mem_eq(use(1, 129 * SEC), mac_a, 6);
        ck_assert_uint_eq(n_asked_one, 1);

        use(1, 131 * SEC);
        neigh_answer(table, 1, &peer, mac_b, false, 131 * SEC); /* without O: not taken. */
        ck_assert_mem_eq(use(1, 131 * SEC), mac_a, 6);
        neigh_answer(table, 1, &peer, mac_b, true, 131 * SEC);
        ck_assert_mem_eq(use(1, 131 * SEC), mac_b, 6);
        ck_assert_uint_eq(n_asked_all, 1);
    }
END_TEST

START_TEST(probe_fails)
    {
        use(1, 0);
        neigh_answer(table, 1, &peer, mac_a, true, 0);
        use(1, 40 * SEC);
        neigh_timer(table, 41 * SEC);
        neigh_timer(table, 42 * SEC);
        ck_assert_mem_eq(use(1, 42 * SEC), mac_a, 6);
        neigh_timer(table, 43 * SEC);
        ck_assert_uint_eq(n_asked_one, NEIGH_N_SOLICITS);
        ck_assert_ptr_null(use(1, 43 * SEC)); /* from the start. */
        ck_assert_uint_eq(n_asked_all, 2);
    }
END_TEST

START_TEST(learn)
    {
        neigh_learn(table, 1, &peer, mac_a, 7);
        ck_assert_mem_eq(use(1, 8), mac_a, 6);
        ck_assert_uint_eq(n_asked_one, 1); /* verified when used. */
        neigh_answer(table, 1, &peer, NULL, false, 9);
        neigh_learn(table, 1, &peer, mac_b, 10); /* it moved. */
        ck_assert_mem_eq(use(1, 11), mac_b, 6);
        ck_assert_uint_eq(n_asked_one, 2);

        use(2, 12); /* another port's neighbour of that name is another. */
        neigh_learn(table, 2, &peer, mac_a, 13);
        ck_assert_uint_eq(n_sent, 1);
        ck_assert_mem_eq(use(1, 14), mac_b, 6);
    }
END_TEST

START_TEST(unasked_answers)
    {
        neigh_answer(table, 1, &peer, mac_a, true, 0);
        ck_assert_uint_eq(neigh_count(table), 0);
        use(1, 0);
        neigh_answer(table, 2, &peer, mac_b, true, 1); /* not where it was asked. */
        neigh_answer(table, 1, &peer, NULL, true, 1);  /* says nothing. */
        ck_assert_uint_eq(n_sent, 0);
        neigh_answer(table, 1, &peer, mac_a, true, 1);
        neigh_answer(table, 1, &peer, mac_b, true, 2); /* a second one. */
        ck_assert_mem_eq(use(1, 3), mac_a, 6);
    }
END_TEST

START_TEST(bounded_per_port)
    {
        enum drop_reason why;

        neigh_learn(table, 1, &peer, mac_a, 0);
        for (unsigned i = 0; i < 4 * NEIGH_MAX_PER_PORT; i++) { /* a scan of a prefix. */
            struct in6_addr a = {
                .s6_addr = {0xfd, 1, [14] = (uint8_t) (i >> 8), [15] = (uint8_t) i}};
            use_tagged(1, &a, 0, 1, &why);
            ck_assert_int_eq(why, DROP_none);
        }
        ck_assert_uint_eq(neigh_count(table), NEIGH_MAX_PER_PORT);
        ck_assert_uint_eq(n_dropped[DROP_neigh_queue], 3 * NEIGH_MAX_PER_PORT + 1);
        ck_assert_mem_eq(use(1, 2), mac_a, 6); /* what is resolved stays. */
    }
END_TEST

START_TEST(flush)
    {
        uint16_t port;
        struct in6_addr a;
        const uint8_t *mac;

        use(1, 0);
        neigh_learn(table, 2, &peer, mac_b, 0);
        neigh_flush(table, 1);
        ck_assert_uint_eq(n_dropped[DROP_port_down], 1);
        ck_assert_uint_eq(neigh_count(table), 1);
        ck_assert(neigh_get(table, 0, &port, &a, &mac));
        ck_assert_uint_eq(port, 2);
        ck_assert_mem_eq(mac, mac_b, 6);
        ck_assert(!neigh_get(table, 1, &port, &a, &mac));
    }
END_TEST

Suite *
neigh_suite(void)
{
    Suite *s = suite_create("neigh");
    TCase *tc = tcase_create("neigh");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, resolve);
    tcase_add_test(tc, queue_keeps_the_newest);
    tcase_add_test(tc, queues_are_bounded_together);
    tcase_add_test(tc, give_up_and_hold);
    tcase_add_test(tc, refresh);
    tcase_add_test(tc, probe_fails);
    tcase_add_test(tc, learn);
    tcase_add_test(tc, unasked_answers);
    tcase_add_test(tc, bounded_per_port);
    tcase_add_test(tc, flush);
    suite_add_tcase(s, tc);
    return s;
}
