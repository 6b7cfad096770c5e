/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames on their way out.
 */
#include "lib/tx-queues.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/suites.h"

#define N_BUFS  1024
#define N_PORTS 40

static struct packet_pool *pool;
static struct tx_queues queues;
static uint32_t sent[N_PORTS]; /* by port: number of the frame that comes next. */
static unsigned n_calls;

static void
on_send(void *aux, uint16_t port, struct packet **frames, size_t n)
{
    ck_assert_ptr_eq(aux, &queues);
    ck_assert_uint_gt(n, 0);
    ck_assert_uint_le(n, TX_QUEUE_LEN);
    for (size_t i = 0; i < n; i++) {
        uint32_t number;
        memcpy(&number, frames[i]->data, sizeof number);
        ck_assert_uint_eq(number, sent[port]++);
    }
    n_calls++;
}

static void
setup(void)
{
    pool = packet_pool_create(N_BUFS);
    memset(sent, 0, sizeof sent);
    n_calls = 0;
    tx_queues_init(&queues, pool, on_send, &queues);
}

static void
teardown(void)
{
    tx_queues_uninit(&queues);
    ck_assert_uint_eq(packet_pool_n_free(pool), packet_pool_size(pool));
    packet_pool_destroy(pool);
}

static void
put(uint16_t port, uint32_t number)
{
    struct packet *p = packet_from_bytes(pool, &number, sizeof number);

    ck_assert_ptr_nonnull(p);
    tx_queues_put(&queues, port, p);
}

START_TEST(a_burst)
    {
        for (uint32_t i = 0; i < TX_QUEUE_LEN; i++) {
            put(3, i);
            put(5, i);
        }
        ck_assert_uint_eq(n_calls, 0);
        put(5, TX_QUEUE_LEN); /* the queue is full. */
        ck_assert_uint_eq(n_calls, 1);
        tx_queues_flush(&queues);
        ck_assert_uint_eq(n_calls, 3);
        ck_assert_uint_eq(sent[3], TX_QUEUE_LEN);
        ck_assert_uint_eq(sent[5], TX_QUEUE_LEN + 1);
        tx_queues_flush(&queues);
        ck_assert_uint_eq(n_calls, 3);
    }
END_TEST

/* Bursts of 1 to 4,096 frames for random ports: in order at each, none is lost, and buffers for
 * what arrives are always left. */
START_TEST(any_bursts)
    {
        uint32_t n_put[N_PORTS] = {0};

        srand(1);
        for (unsigned n = 1; n <= 4096; n *= 2) {
            unsigned n_ports = 1 + (unsigned) rand() % N_PORTS;
            for (unsigned i = 0; i < n; i++) {
                uint16_t port = (uint16_t) ((unsigned) rand() % n_ports);
                put(port, n_put[port]++);
                ck_assert_uint_ge(packet_pool_n_free(pool), packet_pool_size(pool) / 4);
            }
            tx_queues_flush(&queues);
            ck_assert_mem_eq(sent, n_put, sizeof sent);
        }
    }
END_TEST

/* What waits when the node ends goes back to the pool: teardown() looks. */
START_TEST(given_up)
    {
        put(1, 0);
        put(2, 0);
    }
END_TEST

Suite *
tx_queues_suite(void)
{
    Suite *s = suite_create("tx_queues");
    TCase *tc = tcase_create("tx_queues");
    suite_add_tcase(s, tc);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_burst);
    tcase_add_test(tc, any_bursts);
    tcase_add_test(tc, given_up);
    return s;
}
