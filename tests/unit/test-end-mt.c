/* SPDX-License-Identifier: Apache-2.0
 *
 * What End.MT makes of an SRH and its TLVs, field by field: copies, or one counter and nothing
 * else.
 */
#include <check.h>

#include "swedge/swedge.h"
#include "tests/unit/outer-fixture.h"
#include "tests/unit/suites.h"

/* All of the first n receivers get their copy of 'o', and nothing else happens. */
static void
expect_copies(struct fixture *f, const struct outer *o, uint32_t psn, unsigned n)
{
    uint64_t drops = fixture_total_drops(f);
    struct roce_spec spec = outer_feed(f, o, psn);

    ck_assert_uint_eq(f->n_frames, n);
    for (unsigned i = 0; i < n; i++) {
        check_copy(&f->frames[i], i, &spec);
    }
    ck_assert_uint_eq(fixture_total_drops(f), drops);
}

/* One counter and nothing else: no copy, no ICMPv6, and no state: what would have been sent down
 * may not be acknowledged. */
static void
expect_drop(struct fixture *f, const struct outer *o, uint32_t psn, enum drop_reason why)
{
    uint64_t before = fixture_drops(f, why), total = fixture_total_drops(f);

    outer_feed(f, o, psn);
    ck_assert_uint_eq(f->n_frames, 0);
    ck_assert_msg(fixture_drops(f, why) == before + 1, "%s is not counted", drop_name(why));
    ck_assert_uint_eq(fixture_total_drops(f), total + 1);
    transit_receiver_responds(f, AETH_ACK_UNLIMITED, psn);
    ck_assert_uint_eq(f->n_frames, 0);
    ck_assert_uint_eq(fixture_drops(f, DROP_psn_not_sent), 1);
}

/* S01 with a list in all its forms; what S03 would make the destination has to be the Proxy. */
static const struct {
    const char *segments; /* in the order of the list: p Proxy, e End.MT SID, x another node. */
    uint8_t segments_left;
    enum drop_reason why;
} lists[] = {
    {"p", 1, DROP_none},               /* reduced: the SID is the destination only. */
    {"pe", 1, DROP_none},              /* the SID is listed too. */
    {"pex", 1, DROP_none},             /* visited before: no more of interest. */
    {"p", 0, DROP_mt_segments_left},   /* */
    {"pe", 0, DROP_mt_segments_left},  /* */
    {"pe", 2, DROP_mt_segments_left},  /* reduced, and somebody else would be next. */
    {"pxe", 2, DROP_mt_segments_left}, /* likewise. */
    {"pxe", 3, DROP_mt_segments_left}, /* */
    {"x", 1, DROP_mt_context},         /* */
    {"xe", 1, DROP_mt_context},        /* */
    {"e", 1, DROP_mt_context},         /* */
    {"p", 2, DROP_srh_malformed},      /* more than Last Entry + 1. */
    {"pe", 3, DROP_srh_malformed},     /* */
    {"p", 255, DROP_srh_malformed},    /* */
};

/* Proves MT-6-S01, MT-6-S02, MT-6-S03, MT-6-S13, MT-6-S14, MT-6-S15, MT-6-Ref1, MT-6-Ref4,
 * MT-7.1-2, MT-6-R8754-2, MT-6-R8754-3, MT-6-R8754-4. */
START_TEST(segment_list)
    {
        struct fixture *f = fixture_create(&swedge_class, 2);
        struct outer o = outer_plain();

        o.n_segments = (uint8_t) strlen(lists[_i].segments);
        for (unsigned i = 0; i < o.n_segments; i++) {
            char c = lists[_i].segments[i];
            o.segments[i] = c == 'p'   ? star_proxy
                            : c == 'e' ? outer_end_mt_sid()
                                       : node_sid(OTHER_EDGE, SID_FUNC_END);
        }
        o.segments_left = lists[_i].segments_left;
        outer_put_mt(&o, STAR_EDGE_ID, 0, 2, 0);
        if (lists[_i].why) {
            expect_drop(f, &o, START, lists[_i].why);
        } else {
            expect_copies(f, &o, START, 2);
        }
        fixture_destroy(f);
    }
END_TEST

/* Proves MT-6-S01, MT-6-S13, MT-6-S14, MT-6-S15, MT-6-Ref4. */
START_TEST(no_srh)
    {
        struct fixture *f = fixture_create(&swedge_class, 1);
        struct roce_spec spec = transit_write(START);
        uint8_t inner[PACKET_ROOM], bytes[PACKET_ROOM];
        size_t len = roce_build(inner, &spec);

        memcpy(ip6_build(bytes, node_address(STAR_AGENT_ID), outer_end_mt_sid(), IP6_NH_IPV6, len),
               inner, len);
        fixture_input(f, AGENT_PORT, bytes, IP6_HDR_LEN + len);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_mt_no_srh), 1);
        ck_assert_uint_eq(fixture_total_drops(f), 1);
        transit_receiver_responds(f, AETH_ACK_UNLIMITED, START);
        ck_assert_uint_eq(fixture_drops(f, DROP_psn_not_sent), 1);
        fixture_destroy(f);
    }
END_TEST

/* All values of Last Entry against a list with room for four.  A longer list takes what is a TLV
 * away: here there are as many as entries that fit.
 *
 * Proves MT-6-R8754-1. */
START_TEST(last_entry)
    {
        struct roce_spec spec = transit_write(START);
        uint8_t inner[PACKET_ROOM], bytes[PACKET_ROOM];
        size_t inner_len = roce_build(inner, &spec);
        const size_t ofs = IP6_HDR_LEN + offsetof(struct srh_hdr, last_entry);

        for (unsigned last = 0; last < 256; last++) {
            struct fixture *f = fixture_create(&swedge_class, 1);
            struct outer o = outer_plain();

            o.n_segments = MAX_SEGMENTS;
            for (unsigned i = 1; i < MAX_SEGMENTS; i++) {
                /* As a TLV: PadN with 5 bytes, and again, and Pad1. */
                memcpy(&o.segments[i], (uint8_t[16]){4, 5, [7] = 4, 5}, 16);
            }
            outer_put_mt(&o, STAR_EDGE_ID, 0, 1, 0);
            size_t len = outer_build(bytes, &o, inner, inner_len);
            size_t room = 8u * bytes[IP6_HDR_LEN + 1] / 16;
            bytes[ofs] = (uint8_t) last;
            fixture_input(f, AGENT_PORT, bytes, len);
            ck_assert_uint_eq(f->n_frames, last < MAX_SEGMENTS);
            ck_assert_uint_eq(fixture_drops(f, DROP_srh_malformed), last >= room);
            ck_assert_uint_eq(fixture_total_drops(f), last >= MAX_SEGMENTS);
            fixture_destroy(f);
        }
    }
END_TEST

/* Proves MT-6-R8754-5. */
START_TEST(outer_hop_limit)
    {
        struct fixture *f = fixture_create(&swedge_class, 1);
        struct roce_spec spec = transit_write(START);
        struct outer o = outer_plain();
        uint8_t inner[PACKET_ROOM], bytes[PACKET_ROOM];

        outer_put_mt(&o, STAR_EDGE_ID, 0, 1, 0);
        size_t len = outer_build(bytes, &o, inner, roce_build(inner, &spec));
        for (uint8_t hlim = 0; hlim < 4; hlim++) {
            bytes[7] = hlim;
            fixture_input(f, AGENT_PORT, bytes, len);
            ck_assert_uint_eq(f->n_frames, hlim > 1);
        }
        ck_assert_uint_eq(fixture_drops(f, DROP_hop_limit), 2);
        ck_assert_uint_eq(fixture_total_drops(f), 2);
        fixture_destroy(f);
    }
END_TEST

/* Proves MT-6-R8754-10, MT-7.2-8. */
START_TEST(unused_fields)
    {
        struct fixture *f = fixture_create(&swedge_class, 2);
        struct outer o = outer_plain();

        o.flags = 0xff;
        o.tag = 0xabcd;
        outer_put_mt(&o, STAR_EDGE_ID, 0, 2, 0xff);
        expect_copies(f, &o, START, 2);
        fixture_destroy(f);
    }
END_TEST

/* Proves MT-6-R8754-8. */
START_TEST(padding)
    {
        struct fixture *f = fixture_create(&swedge_class, 3);
        struct outer o = outer_plain();

        outer_put_pad1(&o);
        outer_put_mt(&o, STAR_EDGE_ID, 0, 1, 0);
        outer_put_pad1(&o);
        outer_put_pad1(&o);
        outer_put_pad1(&o);
        outer_put_mt(&o, STAR_EDGE_ID, 1, 1, 0);
        outer_put_tlv(&o, SRH_TLV_PADN, 0, 0);
        outer_put_tlv(&o, SRH_TLV_PADN, 5, 0xff);
        outer_put_tlv(&o, SRH_TLV_PADN, 6, SRH_TLV_MT); /* longer than it may be. */
        outer_put_tlv(&o, SRH_TLV_PADN, 200, 0);
        outer_put_mt(&o, STAR_EDGE_ID, 2, 1, 0);
        expect_copies(f, &o, START, 3);
        fixture_destroy(f);
    }
END_TEST

/* Proves MT-6-R8754-7. */
START_TEST(unknown_tlvs)
    {
        static const uint8_t lens[] = {0, 1, 38, 42, 255};
        struct fixture *f = fixture_create(&swedge_class, 1);
        uint32_t psn = START;

        for (unsigned type = 1; type < 256; type++) {
            if (type == SRH_TLV_PADN || type == SRH_TLV_HMAC || type == SRH_TLV_MT
                || type == SRH_TLV_MT_AUTH) {
                continue;
            }
            for (size_t i = 0; i < sizeof lens; i++) {
                struct outer o = outer_plain();

                outer_put_tlv(&o, (uint8_t) type, lens[i], SRH_TLV_MT);
                outer_put_mt(&o, STAR_EDGE_ID, 0, 1, 0);
                outer_put_tlv(&o, (uint8_t) type, lens[i], SRH_TLV_MT);
                expect_copies(f, &o, psn++, 1);
            }
        }
        fixture_destroy(f);
    }
END_TEST

/* TLVs of other edges between those of this one, which has more receivers than one can name.
 *
 * Proves MT-5.2-5, MT-5.2-6, MT-6-S04, MT-6-S05, MT-6-S06, MT-6-S07, MT-6-S12, MT-7.2-3, MT-7.2-4,
 * MT-7.2-5, MT-7.2-6, MT-7.2-9, MT-7.2-10. */
START_TEST(several_tlvs)
    {
        struct fixture *f = fixture_create(&swedge_class, 13);
        struct outer o = outer_plain();

        outer_put_mt(&o, OTHER_EDGE, 0, 1, 0);
        outer_put_mt(&o, STAR_EDGE_ID, 0, MT_TLV_MAX_RECEIVERS, 0);
        outer_put_mt(&o, OTHER_EDGE, 3, 3, 0);
        outer_put_mt(&o, STAR_EDGE_ID, 0, 0, 0); /* names nobody. */
        outer_put_mt(&o, STAR_EDGE_ID, MT_TLV_MAX_RECEIVERS, 2, 0);
        expect_copies(f, &o, START, 13);
        fixture_destroy(f);
    }
END_TEST

/* Nothing for this edge, in all ways. */
START_TEST(nobody_named)
    {
        struct fixture *f = fixture_create(&swedge_class, 1);
        struct outer without = outer_plain(), other = outer_plain(), empty = outer_plain();

        outer_put_mt(&other, OTHER_EDGE, 0, 1, 0);
        outer_put_mt(&empty, STAR_EDGE_ID, 0, 0, 0);
        const struct outer *const cases[] = {&without, &other, &empty};
        for (unsigned i = 0; i < 3; i++) {
            outer_feed(f, cases[i], START + i);
            ck_assert_uint_eq(f->n_frames, 0);
            ck_assert_uint_eq(fixture_drops(f, DROP_mt_no_tlv), i + 1);
            ck_assert_uint_eq(fixture_total_drops(f), i + 1);
        }
        fixture_destroy(f);
    }
END_TEST

/* A TLV whose count and length disagree, or which runs over the SRH's end, whoever's it is: what
 * comes behind it is not known to be where it seems to be. */
static const struct {
    uint16_t edge;
    uint8_t n, len; /* as the TLV has them; it is there with one receiver, and another follows. */
    enum drop_reason why;
} bad_tlvs[] = {
    {STAR_EDGE_ID, 2, MT_TLV_LEN(1), DROP_mt_tlv_malformed},
    {STAR_EDGE_ID, 0, MT_TLV_LEN(1), DROP_mt_tlv_malformed},
    {STAR_EDGE_ID, 1, MT_TLV_LEN(1) - 1, DROP_mt_tlv_malformed},
    {STAR_EDGE_ID, 1, MT_TLV_LEN(1) + 4, DROP_mt_tlv_malformed},
    {STAR_EDGE_ID, 1, 0, DROP_mt_tlv_malformed},
    {STAR_EDGE_ID, 1, 21, DROP_mt_tlv_malformed},
    {STAR_EDGE_ID, 12, MT_TLV_LEN(12) & 0xff,
     DROP_mt_tlv_malformed}, /* as if 8 bits were enough. */
    {STAR_EDGE_ID, 255, MT_TLV_LEN(1), DROP_mt_tlv_malformed},
    {OTHER_EDGE, 2, MT_TLV_LEN(1), DROP_mt_tlv_malformed},
    {STAR_EDGE_ID, 11, MT_TLV_LEN(11), DROP_srh_tlv},
    {OTHER_EDGE, 11, MT_TLV_LEN(11), DROP_srh_tlv},
};

/* Proves MT-7.2-2, MT-7.2-4, MT-6-R8754-6. */
START_TEST(malformed_tlv)
    {
        struct fixture *f = fixture_create(&swedge_class, 2);
        struct outer o = outer_plain();
        struct mt_tlv *mt = outer_put_mt(&o, bad_tlvs[_i].edge, 0, 1, 0);

        mt->n_receivers = bad_tlvs[_i].n;
        mt->len = bad_tlvs[_i].len;
        outer_put_mt(&o, STAR_EDGE_ID, 1, 1, 0);
        expect_drop(f, &o, START, bad_tlvs[_i].why);
        fixture_destroy(f);
    }
END_TEST

/* H40: a copy is for who is named and configured, with the same QPN; who counts is configured.
 * Proves MT-5.2-5, MT-6-S06, MT-8-5. */
START_TEST(named_and_configured)
    {
        struct fixture *f = fixture_create(&swedge_class, 3);
        struct outer o = outer_plain();
        struct mt_receiver *named =
            (struct mt_receiver *) (outer_put_mt(&o, STAR_EDGE_ID, 0, 2, 0) + 1);

        named[1].qpn = be24_put(star_qpn(1) + 1);
        outer_put_mt(&o, STAR_EDGE_ID, 3, 1, 0); /* r4 is not configured, r3 not named. */
        struct roce_spec spec = outer_feed(f, &o, START);
        ck_assert_uint_eq(f->n_frames, 1);
        check_copy(&f->frames[0], 0, &spec);
        ck_assert_uint_eq(fixture_drops(f, DROP_qpn_mismatch), 1);
        ck_assert_uint_eq(fixture_drops(f, DROP_not_provisioned), 1);
        transit_receiver_responds(f, AETH_ACK_UNLIMITED, START);
        ck_assert_uint_eq(f->n_frames, 0); /* the others hold it back. */
        ck_assert_uint_eq(fixture_total_drops(f), 2);
        fixture_destroy(f);
    }
END_TEST

Suite *
end_mt_suite(void)
{
    Suite *s = suite_create("end_mt");
    TCase *tc = tcase_create("end_mt");

    tcase_add_loop_test(tc, segment_list, 0, sizeof lists / sizeof *lists);
    tcase_add_test(tc, no_srh);
    tcase_add_test(tc, last_entry);
    tcase_add_test(tc, outer_hop_limit);
    tcase_add_test(tc, unused_fields);
    tcase_add_test(tc, padding);
    tcase_add_test(tc, unknown_tlvs);
    tcase_add_test(tc, several_tlvs);
    tcase_add_test(tc, nobody_named);
    tcase_add_test(tc, named_and_configured);
    tcase_add_loop_test(tc, malformed_tlv, 0, sizeof bad_tlvs / sizeof *bad_tlvs);
    suite_add_tcase(s, tc);
    return s;
}
