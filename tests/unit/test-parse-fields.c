/* SPDX-License-Identifier: Apache-2.0
 *
 * The parser field by field: each length and count at its limits.
 */
#include "lib/parse.h"
#include "lib/roce.h"
#include "tests/unit/hex.h"
#include "tests/unit/parse-check.h"
#include "tests/unit/suites.h"

#define ETH_LEN 14
#define SRH_OFS (ETH_LEN + IP6_HDR_LEN) /* of an SRH directly behind the IPv6 header. */

/* A frame under construction. */
struct frame {
    size_t len;
    uint8_t bytes[70000];
};

static void *
put(struct frame *f, size_t n)
{
    void *at = f->bytes + f->len;

    ck_assert_uint_le(n, sizeof f->bytes - f->len);
    memset(at, 0, n);
    f->len += n;
    return at;
}

/* Payload Length is right as soon as all is there: see finish(). */
static size_t
put_ip6(struct frame *f, uint8_t nh)
{
    struct ip6_hdr_wire *ip = put(f, sizeof *ip);

    ip6_set_vtf(ip, 0, 0);
    ip->nh = nh;
    ip->hlim = 64;
    ip->src = hex_addr("fd00:1::100");
    ip->dst = hex_addr("fd00:ffff::1");
    return f->len - sizeof *ip;
}

static void
put_eth(struct frame *f)
{
    f->len = 0;
    struct eth_hdr *eth = put(f, sizeof *eth);
    eth->type = be16_put(ETH_TYPE_IP6);
}

static void
put_ext(struct frame *f, uint8_t nh, uint8_t routing_type)
{
    uint8_t *ext = put(f, 8);

    ext[0] = nh;
    ext[2] = routing_type;
}

/* An SRH with one segment and 'tlv_len' (a multiple of 8) bytes of Pad1. */
static struct srh_hdr *
put_srh(struct frame *f, uint8_t nh, size_t tlv_len)
{
    struct srh_hdr *srh = put(f, sizeof *srh + 16 + tlv_len);

    srh->nh = nh;
    srh->hdr_ext_len = (uint8_t) (2 + tlv_len / 8);
    srh->type = SRH_ROUTING_TYPE;
    srh->segments_left = 1;
    return srh;
}

static struct udp_hdr *
put_roce(struct frame *f, uint8_t opcode, size_t n_after_bth)
{
    struct udp_hdr *udp = put(f, sizeof *udp);
    udp->dport = be16_put(UDP_PORT_ROCE);
    udp->len = be16_put((uint16_t) (sizeof *udp + sizeof(struct bth) + n_after_bth + 4));

    struct bth *bth = put(f, sizeof *bth);
    bth->opcode = opcode;
    put(f, n_after_bth + ROCE_ICRC_LEN);
    return udp;
}

static void
finish(struct frame *f, size_t ip_ofs)
{
    struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) (f->bytes + ip_ofs);
    ip->plen = be16_put((uint16_t) (f->len - ip_ofs - sizeof *ip));
}

static void
assert_frame(const struct frame *f, enum drop_reason expected, struct parsed *p)
{
    ck_assert_str_eq(drop_name(parse_check(f->bytes, f->len, p)), drop_name(expected));
}

/* Ethernet, IPv6, RoCE. */
static void
make_roce(struct frame *f, uint8_t opcode, size_t n_after_bth)
{
    put_eth(f);
    put_ip6(f, IP6_NH_UDP);
    put_roce(f, opcode, n_after_bth);
    finish(f, ETH_LEN);
}

/* Ethernet, IPv6, SRH with room for TLVs, inner RoCE SEND_ONLY. */
static struct srh_hdr *
make_srh(struct frame *f, size_t tlv_len)
{
    put_eth(f);
    put_ip6(f, IP6_NH_ROUTING);
    struct srh_hdr *srh = put_srh(f, IP6_NH_IPV6, tlv_len);
    size_t inner = put_ip6(f, IP6_NH_UDP);
    put_roce(f, RC_SEND_ONLY, 16);
    finish(f, inner);
    finish(f, ETH_LEN);
    return srh;
}

/* Proves FC-3. */
START_TEST(ethernet)
    {
        static struct frame f;
        struct parsed p;

        make_roce(&f, RC_SEND_ONLY, 16);
        f.bytes[12] = 0x08;
        assert_frame(&f, DROP_eth_type, &p);
        ck_assert_uint_eq(p.ip.ofs, 0);

        /* A VLAN tag that is whole, with the type behind it. */
        static const uint8_t types[][2] = {{0x81, 0x00}, {0x88, 0xa8}};
        for (size_t i = 0; i < 2; i++) {
            memcpy(f.bytes + 12, types[i], 2);
            assert_frame(&f, DROP_vlan, &p);
            ck_assert_uint_eq(p.ip.ofs, 0);
            ck_assert_int_eq(parse_check(f.bytes, 18, &p), DROP_vlan);
            ck_assert_int_eq(parse_check(f.bytes, 17, &p), DROP_eth_type);
        }

        /* Padding behind the IPv6 packet belongs to nobody. */
        make_roce(&f, RC_SEND_ONLY, 16);
        size_t end = f.len;
        put(&f, 46);
        assert_frame(&f, DROP_none, &p);
        ck_assert_uint_eq(p.ip.end, end);
        ck_assert_uint_eq(p.icrc_ofs, end - 4);

        put(&f, UINT16_MAX + 1 - f.len);
        ck_assert_int_eq(parse_check(f.bytes, f.len - 1, &p), DROP_none);
        ck_assert_int_eq(parse_check(f.bytes, f.len, &p), DROP_too_long);
    }
END_TEST

START_TEST(ip6)
    {
        static struct frame f;
        struct parsed p;

        for (unsigned version = 0; version < 16; version++) {
            make_roce(&f, RC_SEND_ONLY, 16);
            f.bytes[ETH_LEN] = (uint8_t) (version << 4);
            assert_frame(&f, version == 6 ? DROP_none : DROP_ip6_version, &p);
        }

        make_roce(&f, RC_SEND_ONLY, 16);
        f.bytes[ETH_LEN + 8] = 0xff;
        assert_frame(&f, DROP_ip6_src, &p);

        /* Payload Length: one too many; 0, as for a jumbogram. */
        make_roce(&f, RC_SEND_ONLY, 16);
        f.bytes[ETH_LEN + 5]++;
        assert_frame(&f, DROP_ip6_short, &p);
        f.bytes[ETH_LEN + 5] = 0;
        assert_frame(&f, DROP_udp_short, &p);

        put_eth(&f);
        put_ip6(&f, IP6_NH_NONE);
        assert_frame(&f, DROP_none, &p);
        ck_assert_uint_eq(p.ip.proto, IP6_NH_NONE);
        ck_assert_uint_eq(p.ip.l4_ofs, f.len);
    }
END_TEST

/* Proves MT-6-R8200-1. */
START_TEST(extension_headers)
    {
        static struct frame f;
        struct parsed p;

        for (unsigned n = 1; n <= PARSE_MAX_EXT + 1; n++) {
            put_eth(&f);
            put_ip6(&f, IP6_NH_HOPOPT);
            for (unsigned i = 1; i < n; i++) {
                put_ext(&f, IP6_NH_DSTOPT, 0);
            }
            put_ext(&f, IP6_NH_UDP, 0);
            put_roce(&f, RC_SEND_ONLY, 0);
            finish(&f, ETH_LEN);
            assert_frame(&f, n <= PARSE_MAX_EXT ? DROP_none : DROP_ext_chain, &p);
            ck_assert_int_eq(p.bth_ofs != 0, n <= PARSE_MAX_EXT);
        }

        /* Hop-by-hop options anywhere but first; the longest header there is. */
        put_eth(&f);
        put_ip6(&f, IP6_NH_DSTOPT);
        put_ext(&f, IP6_NH_HOPOPT, 0);
        put_ext(&f, IP6_NH_NONE, 0);
        put(&f, 255 * 8);
        finish(&f, ETH_LEN);
        assert_frame(&f, DROP_ext_chain, &p);
        f.bytes[SRH_OFS] = IP6_NH_DSTOPT;
        f.bytes[SRH_OFS + 8 + 1] = 255;
        assert_frame(&f, DROP_none, &p);
        ck_assert_uint_eq(p.ip.l4_ofs, f.len);

        /* A routing header of another type is not an SRH. */
        put_eth(&f);
        put_ip6(&f, IP6_NH_ROUTING);
        put_ext(&f, IP6_NH_ICMPV6, 3);
        finish(&f, ETH_LEN);
        assert_frame(&f, DROP_none, &p);
        ck_assert_uint_eq(p.srh_ofs, 0);
        ck_assert_uint_eq(p.ip.proto, IP6_NH_ICMPV6);
    }
END_TEST

/* A fragment is not looked into, whatever its offset. */
START_TEST(fragment)
    {
        static struct frame f;
        struct parsed p;

        put_eth(&f);
        put_ip6(&f, IP6_NH_FRAGMENT);
        put_ext(&f, IP6_NH_UDP, 0);
        put_roce(&f, RC_SEND_ONLY, 0);
        finish(&f, ETH_LEN);
        assert_frame(&f, DROP_none, &p);
        ck_assert_uint_eq(p.ip.proto, IP6_NH_FRAGMENT);
        ck_assert_uint_eq(p.ip.l4_ofs, SRH_OFS);
        ck_assert_uint_eq(p.bth_ofs, 0);
    }
END_TEST

/* All values of the three length fields that must agree (RFC 8754 2, 4.3.1.1).
 *
 * Proves MT-6-R8754-1, MT-6-R8754-2. */
START_TEST(srh_fields)
    {
        static struct frame f;
        struct parsed p;

        for (unsigned last_entry = 0; last_entry < 256; last_entry++) {
            struct srh_hdr *srh = make_srh(&f, 8 * 16);
            bool fits = 8 + 16 * (last_entry + 1) <= 24 + 8 * 16;

            srh->last_entry = (uint8_t) last_entry;
            assert_frame(&f, fits ? DROP_none : DROP_srh_malformed, &p);
        }
        for (unsigned left = 0; left < 256; left++) {
            struct srh_hdr *srh = make_srh(&f, 64);

            srh->last_entry = 2;
            srh->segments_left = (uint8_t) left;
            assert_frame(&f, left <= 3 ? DROP_none : DROP_srh_malformed, &p);
        }
        for (unsigned ext_len = 0; ext_len < 256; ext_len++) {
            struct srh_hdr *srh = make_srh(&f, 0);

            /* Too short for its segment, exact, or over into the inner packet. */
            srh->hdr_ext_len = (uint8_t) ext_len;
            enum drop_reason reason = parse_check(f.bytes, f.len, &p);
            if (ext_len < 2) {
                ck_assert_int_eq(reason, DROP_srh_malformed);
            } else if (8 + 8 * ext_len > f.len - SRH_OFS) {
                ck_assert_int_eq(reason, DROP_ext_chain);
            } else {
                ck_assert_int_eq(reason == DROP_none, ext_len == 2);
            }
        }
    }
END_TEST

/* The first Routing header of unknown type that has segments left, and whether it is left to the
 * next segment. */
START_TEST(unknown_routing)
    {
        static const struct {
            uint8_t types[3], left[3];
            int found; /* -1: none. */
            bool stops;
        } cases[] = {
            {{0, 3, 253}, {0, 0, 0}, -1, false}, {{0, 3, 253}, {0, 1, 2}, 1, true},
            {{0, 4, 3}, {1, 1, 1}, 0, true},     {{0, 4, 3}, {0, 1, 1}, 2, false},
            {{0, 4, 3}, {0, 0, 1}, 2, true},     {{0, 4, 3}, {0, 0, 0}, -1, false},
            {{4, 0, 3}, {0, 255, 1}, 1, true},   {{4, 0, 3}, {1, 255, 1}, 1, false},
        };
        static struct frame f;
        struct parsed p;

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            uint16_t ofs[3];
            put_eth(&f);
            put_ip6(&f, IP6_NH_ROUTING);
            for (size_t j = 0; j < 3; j++) {
                ofs[j] = (uint16_t) f.len;
                struct srh_hdr *srh = put_srh(&f, j < 2 ? IP6_NH_ROUTING : IP6_NH_NONE, 0);
                srh->type = cases[i].types[j];
                srh->segments_left = cases[i].left[j];
            }
            finish(&f, ETH_LEN);
            assert_frame(&f, DROP_none, &p);
            ck_assert_uint_eq(p.routing_ofs, cases[i].found < 0 ? 0 : ofs[cases[i].found]);
            ck_assert_int_eq(parsed_routing_stops(&p), cases[i].stops);
        }
    }
END_TEST

/* Proves MT-6-R8200-1. */
START_TEST(second_srh)
    {
        static struct frame f;
        struct parsed p;

        put_eth(&f);
        put_ip6(&f, IP6_NH_ROUTING);
        put_srh(&f, IP6_NH_ROUTING, 0);
        put_srh(&f, IP6_NH_NONE, 0);
        finish(&f, ETH_LEN);
        assert_frame(&f, DROP_srh_malformed, &p);

        /* In the inner packet it is none of ours, and neither are its contents. */
        put_eth(&f);
        put_ip6(&f, IP6_NH_ROUTING);
        put_srh(&f, IP6_NH_IPV6, 0);
        size_t inner = put_ip6(&f, IP6_NH_ROUTING);
        put_srh(&f, IP6_NH_UDP, 0)->last_entry = 255;
        put_roce(&f, RC_SEND_ONLY, 0);
        finish(&f, inner);
        finish(&f, ETH_LEN);
        assert_frame(&f, DROP_none, &p);
        ck_assert_uint_eq(p.srh_ofs, SRH_OFS);
        ck_assert_uint_eq(p.inner.n_ext, 1);
        ck_assert_uint_ne(p.bth_ofs, 0);
    }
END_TEST

/* An End.MT TLV: all lengths times all receiver counts, in room for 5.
 *
 * Proves MT-7.1-3, MT-7.2-1, MT-7.2-2, MT-7.2-4, MT-6-R8754-6. */
START_TEST(mt_tlv)
    {
        static struct frame f;
        const size_t room = 24 + 5 * 20 + 4;
        struct mt_tlv *mt = (struct mt_tlv *) ((uint8_t *) make_srh(&f, room) + 24);
        struct parsed p;

        for (unsigned n = 0; n < 256; n++) {
            for (unsigned len = 0; len < 256; len++) {
                enum drop_reason expected = len > room - 2       ? DROP_srh_tlv
                                            : len != 22 + 20 * n ? DROP_mt_tlv_malformed
                                                                 : DROP_none;

                mt->type = SRH_TLV_MT;
                mt->len = (uint8_t) len;
                mt->n_receivers = (uint8_t) n;
                ck_assert_int_eq(parse_frame(f.bytes, (uint32_t) f.len, &p), expected);
                ck_assert_uint_eq(p.n_mt_tlvs, expected == DROP_none);
            }
        }
    }
END_TEST

/* Proves MT-7.2-9. */
START_TEST(most_mt_tlvs)
    {
        static struct frame f;
        struct parsed p;

        uint8_t *tlvs = (uint8_t *) make_srh(&f, SRH_MAX_LEN - 24) + 24;
        for (unsigned i = 0; i < PARSE_MAX_MT_TLV; i++) {
            tlvs[24 * i] = SRH_TLV_MT;
            tlvs[24 * i + 1] = MT_TLV_LEN(0);
        }
        assert_frame(&f, DROP_none, &p);
        ck_assert_uint_eq(p.n_mt_tlvs, PARSE_MAX_MT_TLV);
        ck_assert_uint_eq(p.srh_len, SRH_MAX_LEN);
    }
END_TEST

/* Proves MT-6-R8754-6, MT-6-R8754-7. */
START_TEST(other_tlvs)
    {
        static struct frame f;
        struct parsed p;

        /* One TLV that ends with the SRH, or one byte after it; Pad1 fills up. */
        for (unsigned type = 1; type < 256; type++) {
            if (type == SRH_TLV_MT) {
                continue;
            }
            for (unsigned pad = 0; pad < 40; pad++) {
                uint8_t *tlv = (uint8_t *) make_srh(&f, 40) + 24 + pad;

                tlv[0] = (uint8_t) type;
                if (pad == 39) { /* no room even for its length. */
                    assert_frame(&f, DROP_srh_tlv, &p);
                    continue;
                }
                tlv[1] = (uint8_t) (38 - pad);
                assert_frame(&f, DROP_none, &p);
                ck_assert_uint_eq(p.auth_ofs, type == SRH_TLV_MT_AUTH && pad == 0 ? 78 : 0);
                ck_assert_uint_eq(p.data_ofs, type == SRH_TLV_DATA && pad == 0 ? 78 : 0);
                ck_assert_uint_eq(p.hmac_ofs,
                                  type == SRH_TLV_HMAC && pad % 8 == 0 && pad <= 24 ? 78 + pad : 0);
                tlv[1]++;
                assert_frame(&f, DROP_srh_tlv, &p);
            }
        }

        /* Of two the first counts. */
        uint8_t *tlvs = (uint8_t *) make_srh(&f, 80) + 24;
        tlvs[0] = tlvs[40] = SRH_TLV_MT_AUTH;
        tlvs[1] = tlvs[41] = 38;
        assert_frame(&f, DROP_none, &p);
        ck_assert_uint_eq(p.auth_ofs, 78);
        tlvs[0] = tlvs[40] = SRH_TLV_DATA;
        assert_frame(&f, DROP_none, &p);
        ck_assert_uint_eq(p.data_ofs, 78);
    }
END_TEST

/* The inner packet's own errors have one name; a third level is not looked into. */
START_TEST(inner)
    {
        static struct frame f;
        struct parsed p;

        make_srh(&f, 0);
        uint8_t *ip = f.bytes + f.len - (40 + 8 + 12 + 16 + 4);
        ip[0] = 0x40;
        assert_frame(&f, DROP_inner_malformed, &p);
        ip[0] = 0x60;
        ip[5]++;
        assert_frame(&f, DROP_inner_malformed, &p);
        ip[5]--;
        ip[8] = 0xff;
        assert_frame(&f, DROP_inner_malformed, &p);
        ip[8] = 0xfd;
        ip[6] = IP6_NH_DSTOPT;
        ip[41] = 255;
        assert_frame(&f, DROP_inner_malformed, &p);

        /* Ends before the outer one: allowed, its own end counts. */
        make_srh(&f, 0);
        size_t end = f.len;
        put(&f, 7);
        finish(&f, ETH_LEN);
        assert_frame(&f, DROP_none, &p);
        ck_assert_uint_eq(p.inner.end, end);
        ck_assert_uint_eq(p.icrc_ofs, end - 4);

        put_eth(&f);
        put_ip6(&f, IP6_NH_IPV6);
        size_t second = put_ip6(&f, IP6_NH_IPV6);
        size_t third = put_ip6(&f, IP6_NH_UDP);
        put_roce(&f, RC_SEND_ONLY, 0);
        finish(&f, third);
        finish(&f, second);
        finish(&f, ETH_LEN);
        assert_frame(&f, DROP_none, &p);
        ck_assert_uint_eq(p.inner.ofs, second);
        ck_assert_uint_eq(p.inner.proto, IP6_NH_IPV6);
        ck_assert_uint_eq(p.inner.l4_ofs, third);
        ck_assert_uint_eq(p.bth_ofs, 0);
    }
END_TEST

START_TEST(udp)
    {
        static struct frame f;
        struct parsed p;

        make_roce(&f, RC_SEND_ONLY, 16);
        struct udp_hdr *header = (struct udp_hdr *) (f.bytes + SRH_OFS);
        for (unsigned len = 0; len <= UINT16_MAX; len++) {
            enum drop_reason expected = len < 8 || len > 40 ? DROP_udp_short
                                        : len < 8 + 12 + 4  ? DROP_roce_short
                                                            : DROP_none;

            header->len = be16_put((uint16_t) len);
            ck_assert_int_eq(parse_frame(f.bytes, (uint32_t) f.len, &p), expected);
            if (expected == DROP_none) {
                ck_assert_uint_eq(p.icrc_ofs, SRH_OFS + len - 4);
            }
        }

        /* Another port: not RoCE, and so its length is not ours to judge. */
        header->dport = be16_put(UDP_PORT_ROCE - 1);
        assert_frame(&f, DROP_none, &p);
        ck_assert_uint_eq(p.udp_ofs, 0);
        ck_assert_uint_eq(p.ip.proto, IP6_NH_UDP);
    }
END_TEST

/* Each opcode at exactly its headers' length and one byte less, with each pad. */
START_TEST(bth)
    {
        static struct frame f;
        struct parsed p;

        for (unsigned opcode = 0; opcode < 256; opcode++) {
            const struct roce_opcode_info *info = roce_opcode_info((uint8_t) opcode);

            for (unsigned pad = 0; pad < 4; pad++) {
                size_t need = info->ext_len + (info->name ? pad : 0);

                make_roce(&f, (uint8_t) opcode, need);
                f.bytes[SRH_OFS + 8 + 1] = (uint8_t) (0xc0 | pad << 4);
                assert_frame(&f, DROP_none, &p);
                ck_assert_uint_eq(p.opcode, opcode);
                ck_assert_uint_eq(p.payload_ofs, p.ext_ofs + info->ext_len);
                ck_assert_uint_eq(p.payload_len, 0);
                if (need) {
                    make_roce(&f, (uint8_t) opcode, need - 1);
                    f.bytes[SRH_OFS + 8 + 1] = (uint8_t) (pad << 4);
                    assert_frame(&f, DROP_roce_short, &p);
                }

                make_roce(&f, (uint8_t) opcode, need + 100);
                f.bytes[SRH_OFS + 8 + 1] = (uint8_t) (pad << 4);
                assert_frame(&f, DROP_none, &p);
                ck_assert_uint_eq(p.payload_len, 100);
            }
        }

        for (uint8_t tver = 1; tver < 16; tver++) {
            make_roce(&f, RC_SEND_ONLY, 16);
            f.bytes[SRH_OFS + 8 + 1] = tver;
            assert_frame(&f, DROP_roce_tver, &p);
        }
    }
END_TEST

Suite *
parse_fields_suite(void)
{
    Suite *suite = suite_create("parse-fields");
    TCase *tc = tcase_create("parse-fields");

    tcase_add_test(tc, ethernet);
    tcase_add_test(tc, ip6);
    tcase_add_test(tc, extension_headers);
    tcase_add_test(tc, fragment);
    tcase_add_test(tc, srh_fields);
    tcase_add_test(tc, unknown_routing);
    tcase_add_test(tc, second_srh);
    tcase_add_test(tc, mt_tlv);
    tcase_add_test(tc, most_mt_tlvs);
    tcase_add_test(tc, other_tlvs);
    tcase_add_test(tc, inner);
    tcase_add_test(tc, udp);
    tcase_add_test(tc, bth);
    suite_add_tcase(suite, tc);
    return suite;
}
