/* SPDX-License-Identifier: Apache-2.0
 *
 * Packet buffers: ownership, sharing and the pool's bookkeeping.
 */
#include <string.h>

#include "lib/packet.h"
#include "lib/srh.h"
#include "tests/unit/suites.h"

#define N_PACKETS 4

static struct packet_pool *pool;

static void
setup(void)
{
    pool = packet_pool_create(N_PACKETS);
}

static void
teardown(void)
{
    ck_assert_uint_eq(packet_pool_n_free(pool), N_PACKETS);
    packet_pool_destroy(pool);
}

/* 100 bytes: 0, 1, 2... */
static struct packet *
counting_packet(void)
{
    uint8_t bytes[100];

    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t) i;
    }
    return packet_from_bytes(pool, bytes, sizeof bytes);
}

START_TEST(exhaustion)
    {
        struct packet *p[N_PACKETS];

        for (unsigned i = 0; i < N_PACKETS; i++) {
            p[i] = packet_get(pool);
            ck_assert_ptr_nonnull(p[i]);
            ck_assert_uint_eq(packet_size(p[i]), 0);
            ck_assert_uint_eq(packet_pool_n_free(pool), N_PACKETS - 1 - i);
        }
        ck_assert_ptr_null(packet_get(pool));
        ck_assert_ptr_null(packet_from_bytes(pool, "x", 1));
        ck_assert_ptr_null(packet_replicate(p[0], 0, 0, 0));

        packet_put(p[2]);
        ck_assert_ptr_eq(packet_get(pool), p[2]);
        for (unsigned i = 0; i < N_PACKETS; i++) {
            packet_put(p[i]);
        }
        packet_put(NULL);
    }
END_TEST

START_TEST(room)
    {
        static const uint8_t bytes[PACKET_ROOM + 1];
        struct packet *p = packet_from_bytes(pool, bytes, PACKET_ROOM);

        ck_assert_uint_eq(packet_size(p), PACKET_ROOM);
        ck_assert_ptr_null(packet_from_bytes(pool, bytes, PACKET_ROOM + 1));

        /* The largest frame takes the largest encapsulation. */
        ck_assert_uint_ge(PACKET_HEADROOM, sizeof(struct eth_hdr) + ENCAP_MAX_LEN);
        ck_assert_ptr_null(packet_push(p, PACKET_HEADROOM + 1));
        void *front = packet_push(p, PACKET_HEADROOM);
        ck_assert_ptr_eq(front, p->data);
        ck_assert_uint_eq(packet_size(p), PACKET_HEADROOM + PACKET_ROOM);
        memset(front, 0xff, PACKET_HEADROOM + PACKET_ROOM);
        ck_assert_ptr_null(packet_push(p, 1));
        packet_put(p);
    }
END_TEST

START_TEST(push_and_pull)
    {
        struct packet *p = counting_packet();

        ck_assert_ptr_null(packet_pull(p, 101));
        ck_assert_uint_eq(p->len, 100);
        ck_assert_uint_eq(*(uint8_t *) packet_pull(p, 14), 14);
        ck_assert_uint_eq(p->len, 86);
        memset(packet_push(p, 2), 0xaa, 2);
        ck_assert_uint_eq(p->len, 88);
        ck_assert_uint_eq(p->data[0], 0xaa);
        ck_assert_uint_eq(p->data[2], 14);
        ck_assert_ptr_nonnull(packet_pull(p, 88));
        ck_assert_uint_eq(packet_size(p), 0);
        packet_put(p);
    }
END_TEST

/* IPv6 behind Ethernet is aligned, also in copies that begin with IPv6. */
START_TEST(alignment)
    {
        struct packet *p = counting_packet();
        ck_assert_uint_eq((uintptr_t) (p->data + sizeof(struct eth_hdr)) % 4, 0);

        struct packet *copy = packet_replicate(p, sizeof(struct eth_hdr), 40, 4);
        ck_assert_uint_eq((uintptr_t) copy->data % 4, 0);
        packet_put(copy);
        packet_put(p);
    }
END_TEST

START_TEST(replicate)
    {
        struct packet *src = counting_packet();
        struct packet *copy = packet_replicate(src, 10, 20, 4);
        struct iovec iov[3];
        uint8_t flat[90];

        ck_assert_uint_eq(packet_size(copy), 90);
        ck_assert_int_eq(packet_iov(copy, iov), 3);
        ck_assert_uint_eq(iov[0].iov_len, 20);
        ck_assert_ptr_eq(iov[1].iov_base, src->data + 30); /* by reference. */
        ck_assert_uint_eq(iov[1].iov_len, 66);
        ck_assert_uint_eq(iov[2].iov_len, 4);
        ck_assert_uint_eq(src->refs, 2);

        /* The copy's head and tail are its own, and the source may still change
     * its headers and its ends. */
        copy->data[0] = 0xaa;
        copy->tail[3] = 0xbb;
        ck_assert_uint_eq(src->data[10], 10);
        ck_assert_uint_eq(src->data[99], 99);
        packet_pull(src, 10);
        src->data[0] = 0xcc;
        src->data[89] = 0xdd;
        memset(packet_push(src, 40), 0xee, 40);

        ck_assert_uint_eq(packet_flatten(copy, flat, sizeof flat - 1), 0);
        ck_assert_uint_eq(packet_flatten(copy, flat, sizeof flat), 90);
        ck_assert_uint_eq(flat[0], 0xaa);
        ck_assert_uint_eq(flat[89], 0xbb);
        for (unsigned i = 1; i < 89; i++) {
            ck_assert_uint_eq(flat[i], 10 + i);
        }

        /* The source stays until its last user is gone. */
        packet_put(src);
        ck_assert_uint_eq(packet_pool_n_free(pool), N_PACKETS - 2);
        ck_assert_uint_eq(*(const uint8_t *) iov[1].iov_base, 30);
        packet_put(copy);
    }
END_TEST

START_TEST(replicate_many)
    {
        struct packet *src = counting_packet();
        struct packet *copy[N_PACKETS - 1];

        for (unsigned i = 0; i < N_PACKETS - 1; i++) {
            copy[i] = packet_replicate(src, 0, 50, 0);
            ck_assert_ptr_eq(copy[i]->body, src);
            ck_assert_ptr_eq(copy[i]->body_data, copy[0]->body_data);
        }
        ck_assert_uint_eq(src->refs, N_PACKETS);
        ck_assert_ptr_null(packet_replicate(src, 0, 50, 0));
        ck_assert_uint_eq(src->refs, N_PACKETS); /* failure takes no reference. */

        /* A reference besides the owner's, as for a packet sent twice. */
        packet_put(copy[0]);
        packet_put(src);
        packet_put(copy[1]);
        ck_assert_uint_eq(packet_pool_n_free(pool), 2);
        packet_put(copy[2]);
    }
END_TEST

/* Headers and ICRC only: nothing is shared. */
START_TEST(replicate_without_body)
    {
        struct packet *src = counting_packet();
        struct packet *copy = packet_replicate(src, 40, 56, 4);
        struct iovec iov[3];
        uint8_t flat[60];

        ck_assert_ptr_null(copy->body);
        ck_assert_uint_eq(src->refs, 1);
        packet_put(src);
        ck_assert_int_eq(packet_iov(copy, iov), 2);
        ck_assert_uint_eq(packet_flatten(copy, flat, sizeof flat), 60);
        for (unsigned i = 0; i < 60; i++) {
            ck_assert_uint_eq(flat[i], 40 + i);
        }
        packet_put(copy);

        struct packet *empty = packet_get(pool);
        ck_assert_int_eq(packet_iov(empty, iov), 0);
        packet_put(empty);
    }
END_TEST

Suite *
packet_suite(void)
{
    Suite *suite = suite_create("packet");
    TCase *tc = tcase_create("packet");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, exhaustion);
    tcase_add_test(tc, room);
    tcase_add_test(tc, push_and_pull);
    tcase_add_test(tc, alignment);
    tcase_add_test(tc, replicate);
    tcase_add_test(tc, replicate_many);
    tcase_add_test(tc, replicate_without_body);
    suite_add_tcase(suite, tc);
    return suite;
}
