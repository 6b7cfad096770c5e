/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames from one thread to another.
 */
#include <config.h>

#include "ctl/node/frame-ring.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "lib/packet.h"
#include "tests/unit/suites.h"

#define N_FRAMES 200000

/* Length and bytes of frame i follow from i. */
static size_t
frame_len(uint32_t i)
{
    uint32_t h = i * 2654435761u;

    return h % 7 ? 64 + h % 100 : 64 + h / 7 % (PACKET_ROOM - 63);
}

static void
fill(uint8_t *frame, uint32_t i)
{
    memset(frame, (uint8_t) i, frame_len(i));
    memcpy(frame, &i, sizeof i);
}

static void
check_next(struct frame_ring *r, uint32_t i)
{
    uint8_t want[PACKET_ROOM];
    uint16_t port;
    size_t len;
    const uint8_t *frame = frame_ring_peek(r, &port, &len);

    ck_assert_ptr_nonnull(frame);
    ck_assert_uint_eq(port, (uint16_t) i);
    ck_assert_uint_eq(len, frame_len(i));
    fill(want, i);
    ck_assert_mem_eq(frame, want, len);
    frame_ring_drop(r);
}

/* A ring that is full takes nothing more, and loses nothing of what it has. */
START_TEST(full)
    {
        struct frame_ring *r = frame_ring_create();
        uint8_t frame[PACKET_ROOM];
        uint32_t put = 0, got = 0;
        uint16_t port;
        size_t len;

        ck_assert_ptr_null(frame_ring_peek(r, &port, &len));
        for (int round = 0; round < 500; round++) {
            for (;; put++) {
                fill(frame, put);
                if (!frame_ring_put(r, (uint16_t) put, frame, frame_len(put))) {
                    break;
                }
            }
            ck_assert_uint_gt(put - got, 20);
            for (uint32_t n = (put - got) * (unsigned) (round % 3 + 1) / 3; n; n--) {
                check_next(r, got++);
            }
        }
        while (got < put) {
            check_next(r, got++);
        }
        ck_assert_ptr_null(frame_ring_peek(r, &port, &len));
        frame_ring_destroy(r);
    }
END_TEST

static void *
write_all(void *r)
{
    uint8_t frame[PACKET_ROOM];

    for (uint32_t i = 0; i < N_FRAMES; i++) {
        fill(frame, i);
        while (!frame_ring_put(r, (uint16_t) i, frame, frame_len(i))) {
            sched_yield();
        }
    }
    return NULL;
}

START_TEST(two_threads)
    {
        struct frame_ring *r = frame_ring_create();
        pthread_t writer;
        uint16_t port;
        size_t len;

        ck_assert_int_eq(pthread_create(&writer, NULL, write_all, r), 0);
        for (uint32_t i = 0; i < N_FRAMES; i++) {
            while (!frame_ring_peek(r, &port, &len)) {
                sched_yield();
            }
            check_next(r, i);
        }
        pthread_join(writer, NULL);
        ck_assert_ptr_null(frame_ring_peek(r, &port, &len));
        frame_ring_destroy(r);
    }
END_TEST

Suite *
frame_ring_suite(void)
{
    Suite *s = suite_create("frame_ring");
    TCase *tc = tcase_create("frame_ring");
    suite_add_tcase(s, tc);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, full);
    tcase_add_test(tc, two_threads);
    return s;
}
