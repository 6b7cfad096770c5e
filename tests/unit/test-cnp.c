/* SPDX-License-Identifier: Apache-2.0
 *
 * Standard CNPs: byte for byte what scapy builds, and what is not taken for one.
 */
#include <stdlib.h>

#include "lib/cnp.h"
#include "lib/icrc.h"
#include "lib/roce.h"
#include "tests/unit/hex.h"
#include "tests/unit/parse-check.h"
#include "tests/unit/pcap-file.h"
#include "tests/unit/suites.h"

#define FILE_NAME "tests/vectors/congestion-scapy.pcap"
#define ETH_LEN   sizeof(struct eth_hdr)
#define BTH_OFS   (ETH_LEN + IP6_HDR_LEN + sizeof(struct udp_hdr))
#define ICRC_OFS  (ETH_LEN + CNP_LEN - ROCE_ICRC_LEN)

static const char worked[] =
    "6c00000000281140 fd00ffff000000000000000000000007 fd000001000000000000000000000100"
    "c12312b700280000 8100ffff4000001100000000 00000000000000000000000000000000 daa83d79";

/* The worked packet in a frame that the caller frees. */
static uint8_t *
worked_frame(uint32_t *len)
{
    uint8_t *frame = pcap_file_frame(FILE_NAME, 0, len);

    ck_assert_uint_eq(*len, ETH_LEN + CNP_LEN);
    return frame;
}

/* Proves FC-2. */
START_TEST(vector)
    {
        struct packet_pool *pool = packet_pool_create(1);
        struct in6_addr src = hex_addr("fd00:ffff::7"), dst = hex_addr("fd00:1::100");
        struct packet *p = cnp_build(pool, &src, &dst, 0xc123, 0x11);
        uint8_t expected[CNP_LEN];
        uint32_t len;
        uint8_t *frame = worked_frame(&len);

        ck_assert_uint_eq(hex_bytes(worked, expected, sizeof expected), CNP_LEN);
        ck_assert_uint_eq(packet_size(p), CNP_LEN);
        ck_assert_mem_eq(p->data, expected, CNP_LEN);
        ck_assert_mem_eq(frame + ETH_LEN, expected, CNP_LEN);
        ck_assert_ptr_null(cnp_build(pool, &src, &dst, 1, 2));
        free(frame);
        packet_put(p);
        packet_pool_destroy(pool);
    }
END_TEST

/* Is the frame still parsed as a CNP?  Then *why is what cnp_check() says. */
static bool
check(const uint8_t *frame, size_t len, enum drop_reason *why)
{
    struct parsed h;

    if (parse_check(frame, len, &h) != DROP_none || !h.bth_ofs || h.opcode != ROCE_CNP) {
        return false;
    }
    *why = cnp_check(frame, &h);
    return true;
}

static void
seal(uint8_t *frame)
{
    icrc_store(frame + ICRC_OFS, icrc_compute(frame + ETH_LEN, ICRC_OFS - ETH_LEN));
}

START_TEST(good)
    {
        uint32_t len;
        uint8_t *frame = worked_frame(&len);
        enum drop_reason why;

        ck_assert(check(frame, len, &why));
        ck_assert_int_eq(why, DROP_none);
        frame[BTH_OFS + offsetof(struct bth, pkey)] = 0x7f; /* a limited member. */
        seal(frame);
        ck_assert(check(frame, len, &why));
        ck_assert_int_eq(why, DROP_none);
        free(frame);
    }
END_TEST

/* In another IPv6 packet, as a node sends it to its parent. */
START_TEST(tunnelled)
    {
        uint8_t frame[ETH_LEN + IP6_HDR_LEN + CNP_LEN];
        uint32_t len;
        uint8_t *plain = worked_frame(&len);
        struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) (frame + ETH_LEN);
        enum drop_reason why;

        memcpy(frame, plain, ETH_LEN + IP6_HDR_LEN);
        memcpy(frame + ETH_LEN + IP6_HDR_LEN, plain + ETH_LEN, CNP_LEN);
        ip->plen = be16_put(CNP_LEN);
        ip->nh = IP6_NH_IPV6;
        ck_assert(check(frame, sizeof frame, &why));
        ck_assert_int_eq(why, DROP_none);
        free(plain);
    }
END_TEST

START_TEST(refused)
    {
        uint32_t len;
        uint8_t *frame = worked_frame(&len);
        struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) (frame + ETH_LEN);
        struct udp_hdr *udp = (struct udp_hdr *) (ip + 1);
        struct bth *bth = (struct bth *) (udp + 1);
        uint8_t longer[ETH_LEN + CNP_LEN + 8];
        enum drop_reason why;

        frame[ICRC_OFS]++;
        ck_assert(check(frame, len, &why));
        ck_assert_int_eq(why, DROP_icrc);

        bth->pkey = be16_put(0x8001);
        seal(frame);
        ck_assert(check(frame, len, &why));
        ck_assert_int_eq(why, DROP_pkey);
        bth->pkey = be16_put(ROCE_PKEY_DEFAULT);
        seal(frame);

        /* Bytes behind UDP's end; a payload; an extension header. */
        memset(longer, 0, sizeof longer);
        memcpy(longer, frame, len);
        ip = (struct ip6_hdr_wire *) (longer + ETH_LEN);
        udp = (struct udp_hdr *) (ip + 1);
        ip->plen = be16_put(CNP_LEN - IP6_HDR_LEN + 8);
        ck_assert(check(longer, sizeof longer, &why));
        ck_assert_int_eq(why, DROP_not_for_us);
        udp->len = be16_put(CNP_LEN - IP6_HDR_LEN + 8);
        ck_assert(check(longer, sizeof longer, &why));
        ck_assert_int_eq(why, DROP_not_for_us);
        memcpy(longer, frame, len);
        memmove((uint8_t *) udp + 8, udp, CNP_LEN - IP6_HDR_LEN);
        memcpy(udp, "\x11\x00\x01\x04\x00\x00\x00\x00", 8);
        ip->nh = IP6_NH_DSTOPT;
        ip->plen = be16_put(CNP_LEN - IP6_HDR_LEN + 8);
        ck_assert(check(longer, sizeof longer, &why));
        ck_assert_int_eq(why, DROP_not_for_us);
        free(frame);
    }
END_TEST

START_TEST(truncated)
    {
        uint32_t len;
        uint8_t *frame = worked_frame(&len);
        enum drop_reason why;

        for (uint32_t n = 0; n < len; n++) {
            ck_assert_msg(!check(frame, n, &why), "%u bytes", n);
        }
        /* With lengths that fit what is left. */
        for (unsigned n = 0; n < CNP_LEN - IP6_HDR_LEN; n++) {
            struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) (frame + ETH_LEN);
            struct udp_hdr *udp = (struct udp_hdr *) (ip + 1);

            ip->plen = udp->len = be16_put((uint16_t) n);
            ck_assert_msg(!check(frame, ETH_LEN + IP6_HDR_LEN + n, &why), "%u bytes", n);
        }
        free(frame);
    }
END_TEST

static bool
is_masked(size_t bit)
{
    size_t byte = bit / 8;

    return (byte == 0 && bit % 8 >= 4) || (byte >= 1 && byte <= 3) || byte == 7 || byte == 46
           || byte == 47 || byte == 52;
}

START_TEST(every_bit)
    {
        uint32_t len;
        uint8_t *frame = worked_frame(&len);

        for (size_t bit = 0; bit < CNP_LEN * 8; bit++) {
            uint8_t *byte = frame + ETH_LEN + bit / 8, mask = (uint8_t) (0x80 >> bit % 8);
            enum drop_reason why;

            *byte ^= mask;
            bool taken = check(frame, len, &why) && why == DROP_none;
            ck_assert_msg(taken == is_masked(bit), "byte %zu, bit %zu", bit / 8, bit % 8);
            *byte ^= mask;
        }
        free(frame);
    }
END_TEST

Suite *
cnp_suite(void)
{
    Suite *suite = suite_create("cnp");
    TCase *tc = tcase_create("cnp");

    tcase_add_test(tc, vector);
    tcase_add_test(tc, good);
    tcase_add_test(tc, tunnelled);
    tcase_add_test(tc, refused);
    tcase_add_test(tc, truncated);
    tcase_add_test(tc, every_bit);
    suite_add_tcase(suite, tc);
    return suite;
}
