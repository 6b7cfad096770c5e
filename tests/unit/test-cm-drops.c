/* SPDX-License-Identifier: Apache-2.0
 *
 * What is not an RDMA-CM message that a node takes, by the name of what is wrong with it.
 */
#include "lib/icrc.h"
#include "lib/roce.h"
#include "tests/unit/cm-check.h"
#include "tests/unit/parse-check.h"
#include "tests/unit/suites.h"

static void
assert_frame(const uint8_t *frame, size_t len, enum drop_reason expected)
{
    struct cm_msg m;
    enum drop_reason why = cm_frame_parse(frame, len, &m);
    ck_assert_msg(why == expected, "%s instead of %s", drop_name(why), drop_name(expected));
}

/* The one of a mended frame. */
static void
assert_mended(uint8_t frame[CM_FRAME_LEN], enum drop_reason expected)
{
    cm_frame_mend(frame);
    assert_frame(frame, CM_FRAME_LEN, expected);
}

/* IPv6 and UDP say 'len' bytes from the IPv6 header on, and the ICRC is good. */
static size_t
cut(uint8_t *frame, size_t len)
{
    struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) (frame + CM_IP_OFS);
    struct udp_hdr *udp = (struct udp_hdr *) (frame + CM_UDP_OFS);

    ip->plen = udp->len = be16_put((uint16_t) (len - IP6_HDR_LEN));
    icrc_store(frame + CM_IP_OFS + len - ROCE_ICRC_LEN,
               icrc_compute(frame + CM_IP_OFS, len - ROCE_ICRC_LEN));
    return CM_IP_OFS + len;
}

START_TEST(truncated)
    {
        uint8_t frame[CM_FRAME_LEN], other[CM_FRAME_LEN + 64] = {0};
        struct cm_msg m = {.attribute = CM_RTU};

        /* The frame ends earlier than its headers say. */
        cm_frame_build(frame, &m);
        for (size_t len = 0; len < CM_FRAME_LEN; len++) {
            assert_frame(frame, len, len < CM_IP_OFS ? DROP_eth_short : DROP_ip6_short);
        }
        /* They say so themselves; below that there is no BTH. */
        const size_t deth_end = CM_DETH_OFS + 8 - CM_IP_OFS + ROCE_ICRC_LEN;
        for (size_t len = CM_DETH_OFS - CM_IP_OFS + ROCE_ICRC_LEN; len <= CM_PACKET_LEN + 64;
             len++) {
            memcpy(other, frame, CM_FRAME_LEN);
            enum drop_reason expected = len < deth_end         ? DROP_roce_short
                                        : len == CM_PACKET_LEN ? DROP_none
                                                               : DROP_cm_short;
            assert_frame(other, cut(other, len), expected);
        }
        /* Something between the ICRC and the packet's end. */
        memcpy(other, frame, CM_FRAME_LEN);
        ((struct ip6_hdr_wire *) (other + CM_IP_OFS))->plen =
            be16_put(CM_PACKET_LEN - IP6_HDR_LEN + 4);
        assert_frame(other, CM_FRAME_LEN + 4, DROP_cm_short);
        /* The packet has its length, but UDP is shorter. */
        memcpy(other, frame, CM_FRAME_LEN);
        ((struct udp_hdr *) (other + CM_UDP_OFS))->len = be16_put(CM_PACKET_LEN - IP6_HDR_LEN - 4);
        assert_frame(other, CM_FRAME_LEN, DROP_cm_short);
        /* Pad, in the MAD and in addition to it. */
        for (uint8_t pad = 1; pad <= 3; pad++) {
            memcpy(other, frame, CM_FRAME_LEN);
            other[CM_BTH_OFS + 1] |= (uint8_t) (pad << 4);
            cm_frame_mend(other);
            assert_frame(other, CM_FRAME_LEN, DROP_cm_short);
            assert_frame(other, cut(other, CM_PACKET_LEN + pad), DROP_cm_short);
        }
        /* Padding of the Ethernet frame is nobody's. */
        memcpy(other, frame, CM_FRAME_LEN);
        memset(other + CM_FRAME_LEN, 0xff, 8);
        assert_frame(other, CM_FRAME_LEN + 8, DROP_none);
    }
END_TEST

/* Each bit from the partition key on that is not as it was sent. */
START_TEST(icrc)
    {
        uint8_t frame[CM_FRAME_LEN];
        struct cm_msg m = {.attribute = CM_RTU};

        cm_frame_build(frame, &m);
        for (size_t i = CM_BTH_OFS + 2; i < CM_FRAME_LEN; i++) {
            if (i >= CM_BTH_OFS + 4 && i < CM_BTH_OFS + 8) {
                continue; /* a byte that is not covered; DestQP, of another packet. */
            }
            for (unsigned bit = 0; bit < 8; bit++) {
                frame[i] ^= (uint8_t) (1 << bit);
                assert_frame(frame, CM_FRAME_LEN, DROP_icrc);
                frame[i] ^= (uint8_t) (1 << bit);
            }
        }
        frame[CM_BTH_OFS + 4] ^= 0xc0; /* FECN and BECN. */
        assert_frame(frame, CM_FRAME_LEN, DROP_none);
    }
END_TEST

START_TEST(headers)
    {
        static const struct {
            size_t ofs;
            uint8_t good;
            enum drop_reason why;
        } bytes[] = {
            {CM_DETH_OFS, 0x80, DROP_cm_qkey},
            {CM_DETH_OFS + 1, 0x01, DROP_cm_qkey},
            {CM_DETH_OFS + 2, 0, DROP_cm_qkey},
            {CM_DETH_OFS + 3, 0, DROP_cm_qkey},
            /* Source QP. */
            {CM_DETH_OFS + 5, 0, DROP_cm_qkey},
            {CM_DETH_OFS + 6, 0, DROP_cm_qkey},
            {CM_DETH_OFS + 7, 1, DROP_cm_qkey},
            /* Base version, class, class version, method. */
            {CM_MAD_OFS, 1, DROP_cm_mad},
            {CM_MAD_OFS + 1, 7, DROP_cm_mad},
            {CM_MAD_OFS + 2, 2, DROP_cm_mad},
            {CM_MAD_OFS + 3, 3, DROP_cm_mad},
        };
        struct cm_msg m = {.attribute = CM_RTU};
        uint8_t frame[CM_FRAME_LEN];

        cm_frame_build(frame, &m);
        for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
            ck_assert_uint_eq(frame[bytes[i].ofs], bytes[i].good);
            for (unsigned value = 0; value < 256; value++) {
                frame[bytes[i].ofs] = (uint8_t) value;
                assert_mended(frame, value == bytes[i].good ? DROP_none : bytes[i].why);
            }
            frame[bytes[i].ofs] = bytes[i].good;
        }
        frame[CM_DETH_OFS + 4] = 0xff; /* reserved. */
        assert_mended(frame, DROP_none);

        static const struct {
            uint16_t pkey;
            enum drop_reason why;
        } pkeys[] = {{0xffff, DROP_none},
                     {0x7fff, DROP_none},
                     {0xfffe, DROP_pkey},
                     {0x8001, DROP_pkey},
                     {0, DROP_pkey}};
        for (size_t i = 0; i < sizeof pkeys / sizeof *pkeys; i++) {
            ((struct bth *) (frame + CM_BTH_OFS))->pkey = be16_put(pkeys[i].pkey);
            assert_mended(frame, pkeys[i].why);
        }
    }
END_TEST

/* All that fit into the field; LAP and APR, 0x19 and 0x1a, are not handled. */
START_TEST(every_attribute)
    {
        struct cm_msg m = {.attribute = CM_RTU};
        uint8_t frame[CM_FRAME_LEN];

        cm_frame_build(frame, &m);
        for (unsigned id = 0; id <= 0xffff; id++) {
            bool known = id >= 0x10 && id <= 0x18;

            frame[CM_ATTRIBUTE_OFS] = (uint8_t) (id >> 8);
            frame[CM_ATTRIBUTE_OFS + 1] = (uint8_t) id;
            cm_frame_mend(frame);
            REQUIRE(cm_frame_parse(frame, CM_FRAME_LEN, &m)
                    == (known ? DROP_none : DROP_cm_attribute));
            REQUIRE(!known || m.attribute == id);
        }
    }
END_TEST

/* Of several things that are wrong the first is said. */
START_TEST(order)
    {
        uint8_t frame[CM_FRAME_LEN], other[CM_FRAME_LEN + 4] = {0};
        struct cm_msg m = {.attribute = CM_RTU};

        cm_frame_build(frame, &m);
        frame[CM_ATTRIBUTE_OFS] = 1;
        assert_mended(frame, DROP_cm_attribute);
        frame[CM_MAD_OFS] = 0;
        assert_mended(frame, DROP_cm_mad);
        frame[CM_DETH_OFS] = 0;
        assert_mended(frame, DROP_cm_qkey);
        frame[CM_BTH_OFS + 2] = 0;
        assert_mended(frame, DROP_pkey);
        frame[CM_ICRC_OFS] ^= 1;
        assert_frame(frame, CM_FRAME_LEN, DROP_icrc);
        memcpy(other, frame, CM_FRAME_LEN);
        cut(other, CM_PACKET_LEN + 4);
        other[CM_FRAME_LEN] ^= 1;
        assert_frame(other, CM_FRAME_LEN + 4, DROP_cm_short);
    }
END_TEST

/* A packet that is something else. */
START_TEST(is)
    {
        uint8_t frame[CM_FRAME_LEN], longer[CM_FRAME_LEN + IP6_HDR_LEN] = {0};
        struct cm_msg m = {.attribute = CM_RTU};
        struct parsed h;

        cm_frame_build(frame, &m);
        for (unsigned opcode = 0; opcode < 256; opcode++) {
            frame[CM_BTH_OFS] = (uint8_t) opcode;
            ck_assert_int_eq(parse_check(frame, CM_FRAME_LEN, &h), DROP_none);
            ck_assert_int_eq(cm_is(frame, &h), opcode == UD_SEND_ONLY);
        }
        static const uint32_t qpns[] = {0, 1, 2, 0x100, 0x101, 0x10001, 0xffffff};
        for (size_t i = 0; i < sizeof qpns / sizeof *qpns; i++) {
            cm_frame_build(frame, &m);
            ((struct bth *) (frame + CM_BTH_OFS))->dest_qp = be24_put(qpns[i]);
            ck_assert_int_eq(parse_check(frame, CM_FRAME_LEN, &h), DROP_none);
            ck_assert_int_eq(cm_is(frame, &h), qpns[i] == 1);
        }

        /* Not to port 4791. */
        cm_frame_build(frame, &m);
        ((struct udp_hdr *) (frame + CM_UDP_OFS))->dport = be16_put(4790);
        ck_assert_int_eq(parse_check(frame, CM_FRAME_LEN, &h), DROP_none);
        ck_assert(!cm_is(frame, &h));

        /* IPv6 in IPv6. */
        cm_frame_build(frame, &m);
        memcpy(longer, frame, CM_UDP_OFS);
        memcpy(longer + CM_UDP_OFS, frame + CM_IP_OFS, CM_PACKET_LEN);
        struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) (longer + CM_IP_OFS);
        ip->plen = be16_put(CM_PACKET_LEN);
        ip->nh = IP6_NH_IPV6;
        ck_assert_int_eq(parse_check(longer, sizeof longer, &h), DROP_none);
        ck_assert_uint_ne(h.inner.ofs, 0);
        ck_assert_int_eq(h.opcode, UD_SEND_ONLY);
        ck_assert(!cm_is(longer, &h));

        /* An extension header. */
        static const uint8_t options[8] = {IP6_NH_UDP, 0, 1, 4}; /* PadN of 4 bytes. */
        memcpy(longer + CM_UDP_OFS, options, sizeof options);
        memcpy(longer + CM_UDP_OFS + sizeof options, frame + CM_UDP_OFS, CM_FRAME_LEN - CM_UDP_OFS);
        ip->plen = be16_put(CM_PACKET_LEN - IP6_HDR_LEN + 8);
        ip->nh = IP6_NH_DSTOPT;
        ck_assert_int_eq(parse_check(longer, CM_FRAME_LEN + 8, &h), DROP_none);
        ck_assert_int_eq(h.opcode, UD_SEND_ONLY);
        ck_assert(!cm_is(longer, &h));
    }
END_TEST

Suite *
cm_drops_suite(void)
{
    Suite *suite = suite_create("cm_drops");
    TCase *tc = tcase_create("cm_drops");

    tcase_add_test(tc, truncated);
    tcase_add_test(tc, icrc);
    tcase_add_test(tc, headers);
    tcase_add_test(tc, every_attribute);
    tcase_add_test(tc, order);
    tcase_add_test(tc, is);
    suite_add_tcase(suite, tc);
    return suite;
}
