/* SPDX-License-Identifier: Apache-2.0
 *
 * The parser on whole frames: of real rxe and of scapy, cut anywhere, and
 * corrupted at random.
 */
#include <glob.h>
#include <stdlib.h>

#include "lib/icrc.h"
#include "lib/roce.h"
#include "tests/unit/parse-check.h"
#include "tests/unit/pcap-file.h"
#include "tests/unit/suites.h"

#define ETH_LEN 14
#define SRH_OFS (ETH_LEN + IP6_HDR_LEN) /* of an SRH directly behind the IPv6 header. */

/* Captures of unmodified rxe: every RoCE frame parses and its ICRC is right.
 *
 * Proves FC-1, FC-2. */
START_TEST(rxe_captures)
    {
        glob_t paths;
        unsigned n_roce = 0;

        ck_assert_int_eq(glob("tests/vectors/rxe-*.pcap", 0, NULL, &paths), 0);
        for (size_t i = 0; i < paths.gl_pathc; i++) {
            struct pcap_file file;
            struct parsed p;
            uint8_t *data;
            uint32_t len;

            pcap_file_open(&file, paths.gl_pathv[i]);
            while ((data = pcap_file_next(&file, &len))) {
                ck_assert_str_eq(drop_name(parse_check(data, len, &p)), "none");
                if (p.bth_ofs) {
                    ck_assert_ptr_nonnull(roce_opcode_info(p.opcode)->name);
                    ck_assert_uint_eq(p.icrc_ofs + ROCE_ICRC_LEN, p.ip.end);
                    ck_assert(icrc_ok(data + p.ip.ofs, p.icrc_ofs - p.ip.ofs));
                    n_roce++;
                }
                free(data);
            }
            pcap_file_close(&file);
        }
        globfree(&paths);
        ck_assert_uint_ge(n_roce, 268);
    }
END_TEST

/* Frames of gen-srh.py, in its order. */
static const struct {
    uint8_t n_mt_tlvs, n_segments, segments_left, n_ext, proto;
    uint16_t srh_ofs;
    bool hmac, auth;
    uint16_t payload_len; /* 0: no RoCE. */
} scapy_frames[] = {
    {3, 1, 1, 1, IP6_NH_IPV6, 54, false, false, 16},
    {1, 1, 1, 1, IP6_NH_IPV6, 54, false, false, 16},
    {3, 1, 1, 1, IP6_NH_IPV6, 54, false, false, 16},
    {0, 1, 1, 1, IP6_NH_IPV6, 54, false, false, 16},
    {1, 2, 2, 2, IP6_NH_IPV6, 62, true, true, 20},
    {0, 3, 1, 3, IP6_NH_UDP, 86, false, false, 0},
};
#define N_SCAPY_FRAMES (sizeof scapy_frames / sizeof scapy_frames[0])

static uint8_t *
scapy_frame(unsigned i, uint32_t *len)
{
    return pcap_file_frame("tests/vectors/srh-scapy.pcap", i, len);
}

START_TEST(scapy)
    {
        struct parsed p;
        uint32_t len;
        uint8_t *data = scapy_frame((unsigned) _i, &len);

        ck_assert_str_eq(drop_name(parse_check(data, len, &p)), "none");
        ck_assert_uint_eq(p.ip.end, len);
        ck_assert_uint_eq(p.ip.n_ext, scapy_frames[_i].n_ext);
        ck_assert_uint_eq(p.ip.proto, scapy_frames[_i].proto);
        ck_assert_uint_eq(p.srh_ofs, scapy_frames[_i].srh_ofs);
        ck_assert_uint_eq(p.n_segments, scapy_frames[_i].n_segments);
        ck_assert_uint_eq(p.segments_left, scapy_frames[_i].segments_left);
        ck_assert_uint_eq(p.n_mt_tlvs, scapy_frames[_i].n_mt_tlvs);
        ck_assert_int_eq(p.hmac_ofs && data[p.hmac_ofs] == SRH_TLV_HMAC, scapy_frames[_i].hmac);
        ck_assert_int_eq(p.auth_ofs && data[p.auth_ofs] == SRH_TLV_MT_AUTH, scapy_frames[_i].auth);
        for (uint8_t i = 0; i < p.n_mt_tlvs; i++) {
            ck_assert_uint_eq(data[p.mt_tlv_ofs[i]], SRH_TLV_MT);
        }

        ck_assert_int_eq(p.bth_ofs != 0, scapy_frames[_i].payload_len != 0);
        if (p.bth_ofs) {
            ck_assert_uint_eq(p.opcode, RC_SEND_ONLY);
            ck_assert_uint_eq(p.payload_len, scapy_frames[_i].payload_len);
            ck_assert_uint_eq(p.inner.end, len);
            ck_assert(icrc_ok(data + p.inner.ofs, p.icrc_ofs - p.inner.ofs));
        } else {
            ck_assert_uint_eq(p.inner.ofs, 0);
        }

        /* The outermost header alone. */
        ck_assert_int_eq(parse_outer(data, len, &p), DROP_none);
        ck_assert_uint_eq(p.ip.end, len);
        ck_assert_uint_eq(p.ip.proto, data[20]);
        ck_assert_uint_eq(p.ip.l4_ofs, 0);
        ck_assert_uint_eq(p.srh_ofs, 0);
        free(data);
    }
END_TEST

/* Cut anywhere: the outermost header notices.  Cut with the Payload Length told
 * so: whoever is cut notices. */
START_TEST(truncations)
    {
        struct parsed whole, p;
        uint32_t len;
        uint8_t *data = scapy_frame((unsigned) _i, &len);

        ck_assert_int_eq(parse_check(data, len, &whole), DROP_none);
        for (uint32_t cut = 0; cut < len; cut++) {
            ck_assert_int_eq(parse_check(data, cut, &p),
                             cut < ETH_LEN ? DROP_eth_short : DROP_ip6_short);
        }
        for (uint32_t cut = SRH_OFS; cut < len; cut++) {
            struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) (data + ETH_LEN);
            enum drop_reason expected = DROP_inner_malformed;

            ip->plen = be16_put((uint16_t) (cut - SRH_OFS));
            if (cut < whole.ip.l4_ofs) {
                expected = DROP_ext_chain;
            } else if (!whole.inner.ofs) {
                /* UDP that is not RoCE: nobody's business but for its header. */
                expected = cut < whole.ip.l4_ofs + 8u ? DROP_udp_short : DROP_none;
            }
            ck_assert_str_eq(drop_name(parse_check(data, cut, &p)), drop_name(expected));
        }
        free(data);
    }
END_TEST

/* xorshift32: the same corruption in every run. */
static uint32_t
random32(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

START_TEST(random_corruption)
    {
        uint32_t state = 0x12345678;
        static uint8_t *frames[N_SCAPY_FRAMES];
        static uint32_t lens[N_SCAPY_FRAMES];
        unsigned n_accepted = 0;

        for (size_t i = 0; i < N_SCAPY_FRAMES; i++) {
            frames[i] = scapy_frame((unsigned) i, &lens[i]);
        }
        for (unsigned i = 0; i < 200000; i++) {
            size_t which = random32(&state) % N_SCAPY_FRAMES;
            uint8_t data[512];
            struct parsed p;

            REQUIRE(lens[which] <= sizeof data);
            memcpy(data, frames[which], lens[which]);
            for (unsigned n = 1 + random32(&state) % 4; n > 0; n--) {
                uint8_t *at = &data[random32(&state) % lens[which]];
                uint32_t r = random32(&state);
                *at = r & 0x100 ? (uint8_t) r : (uint8_t) (*at + (r & 0x200 ? 1 : -1));
            }
            uint32_t len = random32(&state) % 4 ? lens[which] : random32(&state) % lens[which];
            n_accepted += parse_check(data, len, &p) == DROP_none;
        }
        ck_assert_uint_gt(n_accepted, 10000); /* it does reach the inside. */
        for (size_t i = 0; i < N_SCAPY_FRAMES; i++) {
            free(frames[i]);
        }
    }
END_TEST

Suite *
parse_suite(void)
{
    Suite *suite = suite_create("parse");
    TCase *tc = tcase_create("parse");

    tcase_add_test(tc, rxe_captures);
    tcase_add_loop_test(tc, scapy, 0, N_SCAPY_FRAMES);
    tcase_add_loop_test(tc, truncations, 0, N_SCAPY_FRAMES);
    tcase_add_test(tc, random_corruption);
    suite_add_tcase(suite, tc);
    return suite;
}
