/* SPDX-License-Identifier: Apache-2.0
 *
 * The encapsulation: byte for byte what scapy builds (tests/vectors/gen-srh.py),
 * its size, and how receivers are spread over TLVs.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/parse.h"
#include "lib/srh.h"
#include "tests/unit/hex.h"
#include "tests/unit/pcap-file.h"
#include "tests/unit/suites.h"

#define ETH_LEN    sizeof(struct eth_hdr)
#define TC         2
#define FLOW_LABEL 0x12345

/* Receivers 1, 2... of edges 'edges[]' with this many each; as the generator. */
static size_t
make_copies(struct srh_copy *copies, const unsigned counts[], size_t n_edges)
{
    size_t n = 0;

    for (unsigned e = 0; e < n_edges; e++) {
        for (unsigned i = 0; i < counts[e]; i++, n++) {
            char edge[64], addr[64];

            snprintf(edge, sizeof edge, "5f00:0:%x::1", 0x103 + e);
            snprintf(addr, sizeof addr, "fd00:1::%zx", n + 1);
            copies[n] = (struct srh_copy){hex_addr(edge), hex_addr(addr), 0x12 + (uint32_t) n};
        }
    }
    return n;
}

static int
build(struct encap_template *t, const struct srh_copy *copies, size_t n)
{
    struct in6_addr src = hex_addr("5f00:0:200::1"), dst = hex_addr("5f00:0:100:f000::"),
                    proxy = hex_addr("fd00:ffff::1");

    return encap_template_build(t, &src, &dst, &proxy, copies, n);
}

static const struct {
    size_t n_edges;
    unsigned counts[3];
    unsigned encap_len; /* IPv6 and SRH. */
} cases[] = {
    {3, {2, 1, 2}, 240}, /* Figure 1 of the draft. */
    {1, {8}, 248},
    {2, {12, 1}, 400}, /* 11 and 1, then the other edge. */
    {0, {0}, 64},
};

/* Proves MT-5.1-6, MT-5.2-2, MT-7.1-1, MT-7.1-3, MT-7.2-1, MT-7.2-2, MT-7.2-3, MT-7.2-4,
 * MT-7.2-5, MT-7.2-6, MT-7.2-7, MT-7.2-9, MT-7.2-11, MT-6-R8754-3. */
START_TEST(same_as_scapy)
    {
        struct srh_copy copies[16];
        size_t n = make_copies(copies, cases[_i].counts, cases[_i].n_edges);
        struct encap_template t;
        uint32_t len;
        uint8_t *frame = pcap_file_frame("tests/vectors/srh-scapy.pcap", (unsigned) _i, &len);

        memset(&t, 0xff, sizeof t);
        ck_assert_int_eq(build(&t, copies, n), 0);
        ck_assert_uint_eq(t.len, cases[_i].encap_len);
        ck_assert_uint_eq(srh_len(copies, n) + IP6_HDR_LEN, t.len);

        uint8_t *out = malloc(t.len); /* exactly, for sanitizers. */
        encap_template_stamp(&t, out, (uint16_t) (len - ETH_LEN - t.len), TC, FLOW_LABEL);
        ck_assert_mem_eq(out, frame + ETH_LEN, t.len);

        free(out);
        free(frame);
    }
END_TEST

/* Behind the TLVs that count there is nothing but one PadN that the alignment needs, all zero; and
 * what has no meaning is zero too. */
static void
check_unused(const uint8_t *frame, const struct parsed *h)
{
    const struct srh_hdr *srh = (const void *) (frame + h->srh_ofs);
    size_t ofs = h->srh_ofs + sizeof *srh + sizeof(struct in6_addr);

    ck_assert_uint_eq(srh->flags, 0);
    ck_assert_uint_eq(be16_get(srh->tag), 0);
    for (uint8_t i = 0; i < h->n_mt_tlvs; i++) {
        const struct mt_tlv *mt = (const void *) (frame + h->mt_tlv_ofs[i]);
        const struct mt_receiver *r = (const void *) (mt + 1);

        ck_assert_uint_eq(h->mt_tlv_ofs[i], ofs); /* no Pad1 between. */
        ck_assert_mem_eq(mt->rsv, (uint8_t[2]){0}, 2);
        ck_assert_mem_eq(mt->rsv2, (uint8_t[3]){0}, 3);
        for (uint8_t j = 0; j < mt->n_receivers; j++) {
            ck_assert_uint_eq(r[j].rsv, 0);
        }
        ofs += 2u + mt->len;
    }
    size_t pad = (size_t) h->srh_ofs + h->srh_len - ofs;
    ck_assert_uint_le(pad, 7);
    if (pad) {
        uint8_t padn[8] = {SRH_TLV_PADN, (uint8_t) (pad - 2)};

        ck_assert_uint_ge(pad, 2);
        ck_assert_mem_eq(frame + ofs, padn, pad);
    }
}

/* What is built parses, and names the same pairs in the same order. */
static void
check_round_trip(const struct srh_copy *copies, size_t n)
{
    static uint8_t frame[ETH_LEN + ENCAP_MAX_LEN + IP6_HDR_LEN];
    struct encap_template t;
    struct parsed h;
    size_t k = 0;

    ck_assert_int_eq(build(&t, copies, n), 0);
    ck_assert_uint_eq(t.len % 8, 0);
    ((struct eth_hdr *) frame)->type = be16_put(ETH_TYPE_IP6);
    encap_template_stamp(&t, frame + ETH_LEN, IP6_HDR_LEN, 0, 1);

    struct ip6_hdr_wire *inner = (struct ip6_hdr_wire *) (frame + ETH_LEN + t.len);
    memset(inner, 0, sizeof *inner);
    ip6_set_vtf(inner, 0, 0);
    inner->nh = IP6_NH_NONE;
    ck_assert_int_eq(parse_frame(frame, (uint32_t) (ETH_LEN + t.len + sizeof *inner), &h),
                     DROP_none);
    ck_assert_uint_eq(h.srh_len, t.len - IP6_HDR_LEN);
    ck_assert_uint_eq(h.inner.ofs, ETH_LEN + t.len);
    check_unused(frame, &h);

    for (uint8_t i = 0; i < h.n_mt_tlvs; i++) {
        const struct mt_tlv *mt = (const struct mt_tlv *) (frame + h.mt_tlv_ofs[i]);
        const struct mt_receiver *r = (const struct mt_receiver *) (mt + 1);

        ck_assert_uint_gt(mt->n_receivers, 0);
        ck_assert_uint_le(mt->n_receivers, MT_TLV_MAX_RECEIVERS);
        for (uint8_t j = 0; j < mt->n_receivers; j++, k++, r++) {
            ck_assert_mem_eq(&mt->edge, &copies[k].edge, sizeof mt->edge);
            ck_assert_mem_eq(&r->addr, &copies[k].addr, sizeof r->addr);
            ck_assert_uint_eq(be24_get(r->qpn), copies[k].qpn);
        }
    }
    ck_assert_uint_eq(k, n);
}

/* Proves MT-6-R8754-9, MT-6-R8754-10, MT-7.2-7, MT-7.2-9. */
START_TEST(round_trip)
    {
        static struct srh_copy copies[128];

        for (unsigned i = 0; i <= 40; i++) {
            for (unsigned j = 0; j <= 24; j++) {
                check_round_trip(copies, make_copies(copies, (unsigned[]){i, j}, 2));
            }
        }
    }
END_TEST

/* The last is that long only by its padding. */
static const struct {
    size_t len;
    unsigned n_edges, n_with_more, n_more; /* the first of them have that many, others one less. */
} around_limit[] = {{2048, 11, 11, 8}, {2056, 13, 8, 7}, {2056, 12, 3, 8}};

/* The most that fits, to the byte, and the next longer SRH that there is: one of 2056 bytes has no
 * Hdr Ext Len, which would be 0.
 *
 * Proves MT-6-R8754-11. */
START_TEST(limit_to_the_byte)
    {
        static struct srh_copy copies[128];
        static struct encap_template t;
        unsigned counts[13];

        for (unsigned i = 0; i < around_limit[_i].n_edges; i++) {
            counts[i] = around_limit[_i].n_more - (i >= around_limit[_i].n_with_more);
        }
        size_t n = make_copies(copies, counts, around_limit[_i].n_edges);
        ck_assert_uint_eq(srh_len(copies, n), around_limit[_i].len);
        if (around_limit[_i].len > SRH_MAX_LEN) {
            ck_assert_int_eq(build(&t, copies, n), EMSGSIZE);
        } else {
            check_round_trip(copies, n);
            ck_assert_int_eq(build(&t, copies, n), 0);
            ck_assert_uint_eq(t.bytes[IP6_HDR_LEN + offsetof(struct srh_hdr, hdr_ext_len)], 255);
        }
    }
END_TEST

/* 91 receivers of one edge need 2048 - 24 - 9 x 24 = 1808 >= 90 x 20 bytes: 90
 * fit, 91 do not; and 46 edges with one receiver each fit, 47 do not.
 *
 * Proves MT-6-R8754-11. */
START_TEST(limit)
    {
        static struct srh_copy copies[128];
        static struct encap_template t;

        check_round_trip(copies, make_copies(copies, (unsigned[]){90}, 1));
        size_t n = make_copies(copies, (unsigned[]){91}, 1);
        ck_assert_uint_gt(srh_len(copies, n), SRH_MAX_LEN);
        ck_assert_int_eq(build(&t, copies, n), EMSGSIZE);

        unsigned ones[47];
        for (size_t i = 0; i < 47; i++) {
            ones[i] = 1;
        }
        check_round_trip(copies, make_copies(copies, ones, 46));
        ck_assert_int_eq(build(&t, copies, make_copies(copies, ones, 47)), EMSGSIZE);

        /* The largest inner packet there is behind the largest SRH. */
        uint8_t out[ENCAP_MAX_LEN];
        ck_assert_int_eq(build(&t, copies, make_copies(copies, (unsigned[]){90}, 1)), 0);
        encap_template_stamp(&t, out, (uint16_t) (UINT16_MAX - (t.len - IP6_HDR_LEN)), 0xff,
                             0xfffff);
        ck_assert_uint_eq(be16_get(((struct ip6_hdr_wire *) out)->plen), UINT16_MAX);
        ck_assert_uint_eq(ip6_tc((struct ip6_hdr_wire *) out), 0xff);
        ck_assert_uint_eq(ip6_flow_label((struct ip6_hdr_wire *) out), 0xfffff);
    }
END_TEST

Suite *
srh_suite(void)
{
    Suite *suite = suite_create("srh");
    TCase *tc = tcase_create("srh");

    tcase_add_loop_test(tc, same_as_scapy, 0, sizeof cases / sizeof cases[0]);
    tcase_add_test(tc, round_trip);
    tcase_add_loop_test(tc, limit_to_the_byte, 0, sizeof around_limit / sizeof around_limit[0]);
    tcase_add_test(tc, limit);
    suite_add_tcase(suite, tc);
    return suite;
}
