/* SPDX-License-Identifier: Apache-2.0
 *
 * Cutting super-frames.
 *
 * Frames are from scapy 2.5.0: Ether/IPv6/IPv6ExtHdrDestOpt/TCP with a timestamp option, and
 * Ether/IPv6/UDP.  A super-frame is one with all 25 bytes of payload and the pseudo-header's sum as
 * its checksum; what it stands for are frames made with 10, 10 and 5 of them.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/port-gso.h"
#include "tests/unit/hex.h"
#include "tests/unit/suites.h"

#define MAX  1514

#define LINK "02000000000202000000000186dd"
#define ADDRS                              \
    "fd000001000000000000000000000001fd00" \
    "0009000000000000000000000009"
#define DSTOPT    "0600010400000000"
#define TIMESTAMP "0000080a00000001000000020101"

static const struct {
    struct virtio_net_hdr vnet;
    const char *super_frame;
    const char *segments[4];
} cases[] = {
    /* Sequence numbers wrap; FIN and PSH are for the last, CWR is for the first. */
    {{.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
      .gso_type = VIRTIO_NET_HDR_GSO_TCPV6 | VIRTIO_NET_HDR_GSO_ECN,
      .gso_size = 10,
      .csum_start = 62,
      .csum_offset = 16},
     LINK "6000000000413c40" ADDRS DSTOPT "00010002fffffff800000009 80992000fa54" TIMESTAMP
          " 6162636465666768696a6b6c6d6e6f70717273747576777879",
     {LINK "6000000000323c40" ADDRS DSTOPT "00010002fffffff800000009 809020006116" TIMESTAMP
           " 6162636465666768696a",
      LINK "6000000000323c40" ADDRS DSTOPT "000100020000000200000009 801020002f5b" TIMESTAMP
           " 6b6c6d6e6f7071727374",
      LINK "60000000002d3c40" ADDRS DSTOPT "000100020000000c00000009 80192000f68f" TIMESTAMP
           " 7576777879"}},
    {{.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
      .gso_type = 5, /* VIRTIO_NET_HDR_GSO_UDP_L4 */
      .gso_size = 10,
      .csum_start = 54,
      .csum_offset = 6},
     LINK "6000000000211140" ADDRS
          "000100020021fa47 6162636465666768696a6b6c6d6e6f70717273747576777879",
     {LINK "6000000000121140" ADDRS "0001000200120ab2 6162636465666768696a",
      LINK "6000000000121140" ADDRS "000100020012d87f 6b6c6d6e6f7071727374",
      LINK "60000000000d1140" ADDRS "00010002000d9fcc 7576777879"}},
};

static struct gso *gso;

static void
setup(void)
{
    gso = calloc(1, sizeof *gso);
}

static void
teardown(void)
{
    free(gso);
}

START_TEST(as_scapy_makes_them)
    {
        uint8_t want[256], got[256];

        ck_assert_uint_eq(gso_next(gso, got, sizeof got), 0);
        size_t len = hex_bytes(cases[_i].super_frame, gso->frame, sizeof gso->frame);
        ck_assert(gso_start(gso, &cases[_i].vnet, len, MAX));
        for (size_t i = 0; cases[_i].segments[i]; i++) {
            size_t want_len = hex_bytes(cases[_i].segments[i], want, sizeof want);
            ck_assert_uint_eq(gso_next(gso, got, sizeof got), want_len);
            ck_assert_mem_eq(got, want, want_len);
        }
        ck_assert_uint_eq(gso_next(gso, got, sizeof got), 0);
    }
END_TEST

/* A segment for which there is no room is lost; the others are not. */
START_TEST(no_room)
    {
        uint8_t want[256], got[256] = {0xee};

        size_t len = hex_bytes(cases[_i].super_frame, gso->frame, sizeof gso->frame);
        size_t want_len = hex_bytes(cases[_i].segments[1], want, sizeof want);
        ck_assert(gso_start(gso, &cases[_i].vnet, len, MAX));
        ck_assert_uint_eq(gso_next(gso, got, want_len - 1), want_len);
        ck_assert_uint_eq(got[0], 0xee);
        ck_assert_uint_eq(gso_next(gso, got, want_len), want_len);
        ck_assert_mem_eq(got, want, want_len);
    }
END_TEST

START_TEST(truncated)
    {
        size_t len = hex_bytes(cases[_i].super_frame, gso->frame, sizeof gso->frame);

        for (size_t n = 0; n <= len - 25; n++) {
            ck_assert(!gso_start(gso, &cases[_i].vnet, n, MAX));
        }
        ck_assert(gso_start(gso, &cases[_i].vnet, len - 24, MAX));
    }
END_TEST

/* What cannot be cut: a byte of the super-frame or of what is said about it is changed. */
START_TEST(refused)
    {
        const struct virtio_net_hdr *good = &cases[_i].vnet;
        struct virtio_net_hdr bad[] = {*good, *good, *good, *good, *good, *good, *good};
        size_t len = hex_bytes(cases[_i].super_frame, gso->frame, sizeof gso->frame);

        bad[0].gso_type = VIRTIO_NET_HDR_GSO_TCPV4;
        bad[1].gso_size = 0;
        bad[2].flags = 0;
        bad[3].csum_offset++;
        bad[4].csum_start += 8; /* inside another packet. */
        bad[5].csum_start = UINT16_MAX;
        bad[6].gso_type = good->gso_type == 5 ? VIRTIO_NET_HDR_GSO_TCPV6 : 5;
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
            ck_assert(!gso_start(gso, &bad[i], len, MAX));
        }
        ck_assert(!gso_start(gso, good, sizeof gso->frame + 1, MAX));
        ck_assert(!gso_start(gso, good, len, len - 25 + 9));
        ck_assert(gso_start(gso, good, len, len - 25 + 10));

        gso->frame[14] = 0x40;
        ck_assert(!gso_start(gso, good, len, MAX));
        gso->frame[14] = 0x60;
        if (good->csum_offset == 16) {
            uint8_t *data_offset = &gso->frame[good->csum_start + 12];
            *data_offset = 0x40;
            ck_assert(!gso_start(gso, good, len, MAX));
            *data_offset = 0xf0; /* header longer than the frame. */
            ck_assert(!gso_start(gso, good, len, MAX));
        }
    }
END_TEST

/* Frames with a checksum that was left to the device, and what becomes of it; nothing else says so.
 * Wanted are sums of RFC 8200 section 8.1, computed by other means. */
static const struct {
    const char *frame, *checksum;
    size_t ofs;
} unmarked[] = {
    {LINK "6000000000211140" ADDRS
          "000100020021fa47 6162636465666768696a6b6c6d6e6f70717273747576777879",
     "7772", 60},
    {LINK "60000000001e0640" ADDRS
          "0001000200000001 00000000 5010 2000 fa39 0000 6162636465666768696a",
     "9ab1", 70},
    /* Complete ones, of which one is wrong; none at all. */
    {LINK "6000000000121140" ADDRS "0001000200120ab2 6162636465666768696a", "0ab2", 60},
    {LINK "6000000000121140" ADDRS "0001000200120ab3 6162636465666768696a", "0ab3", 60},
    {LINK "6000000000121140" ADDRS "0001000200120000 6162636465666768696a", "0000", 60},
    /* Neither UDP nor TCP; not IPv6. */
    {LINK "6000000000123b40" ADDRS "000100020012fa38 6162636465666768696a", "fa38", 60},
    {"020000000002020000000001 0800 6000000000121140" ADDRS "000100020012fa38 6162636465666768696a",
     "fa38", 60},
};
#define N_UNMARKED ((int) (sizeof unmarked / sizeof unmarked[0]))

START_TEST(unmarked_checksums)
    {
        uint8_t want[256], checksum[2];
        size_t len = hex_bytes(unmarked[_i].frame, want, sizeof want);
        uint8_t *frame = malloc(len);

        memcpy(frame, want, len);
        hex_bytes(unmarked[_i].checksum, checksum, sizeof checksum);
        memcpy(want + unmarked[_i].ofs, checksum, sizeof checksum);
        gso_unmarked_checksum(frame, len);
        ck_assert_mem_eq(frame, want, len);
        free(frame);
    }
END_TEST

/* A frame that is shorter than it says is left alone. */
START_TEST(unmarked_and_truncated)
    {
        uint8_t bytes[256];
        size_t len = hex_bytes(unmarked[_i].frame, bytes, sizeof bytes);

        for (size_t n = 0; n < len; n++) {
            uint8_t *frame = malloc(n + !n);
            memcpy(frame, bytes, n);
            gso_unmarked_checksum(frame, n);
            ck_assert(!memcmp(frame, bytes, n));
            free(frame);
        }
    }
END_TEST

Suite *
port_gso_suite(void)
{
    Suite *s = suite_create("port_gso");
    TCase *tc = tcase_create("port_gso");
    const int n = sizeof cases / sizeof cases[0];

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, as_scapy_makes_them, 0, n);
    tcase_add_loop_test(tc, no_room, 0, n);
    tcase_add_loop_test(tc, truncated, 0, n);
    tcase_add_loop_test(tc, refused, 0, n);
    tcase_add_loop_test(tc, unmarked_checksums, 0, N_UNMARKED);
    tcase_add_loop_test(tc, unmarked_and_truncated, 0, N_UNMARKED);
    suite_add_tcase(s, tc);
    return s;
}
