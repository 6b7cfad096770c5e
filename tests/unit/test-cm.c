/* SPDX-License-Identifier: Apache-2.0
 *
 * RDMA-CM messages: byte for byte what kernels take, and every field at its place.
 */
#include <stdlib.h>

#include "lib/cm.h"
#include "tests/unit/cm-check.h"
#include "tests/unit/hex.h"
#include "tests/unit/suites.h"

static const enum cm_attribute attributes[] = {
#define CM_ATTRIBUTE(NAME, ID, HELP) CM_##NAME,
    CM_ATTRIBUTES
#undef CM_ATTRIBUTE
};
#define N_ATTRIBUTES (sizeof attributes / sizeof *attributes)

static void
assert_same(const struct cm_msg *a, const struct cm_msg *b)
{
    const char *member = cm_msg_differs(a, b);
    ck_assert_msg(!member, "%s: %s differs", cm_attribute_name(a->attribute), member);
}

static struct cm_msg
parsed(const uint8_t frame[CM_FRAME_LEN])
{
    struct cm_msg m;
    ck_assert_str_eq(drop_name(cm_frame_parse(frame, CM_FRAME_LEN, &m)), "none");
    return m;
}

/* A REQ that the kernel of a listening host accepted, Linux 6.1: from a Proxy to that host.  Zeros
 * follow. */
static const char req_hex[] =
    "00001234 00000000 0000000001061c0f 0202020202020202 00000000 00000000 000101 01 000000 01"
    "000000 a0 001b58 a7 ffff 37 f0 ffff ffff"
    "fd00ffff000000000000000000000001 fd000001000000000000000000000001"
    "00000000 00 40 00 90"
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "0060 04d2 fd00ffff000000000000000000000001 fd000001000000000000000000000001";

static struct cm_msg
req(void)
{
    return (struct cm_msg){
        .attribute = CM_REQ,
        .tid = 0x1122334455667788,
        .local_id = 0x1234,
        .qpn = 257,
        .psn = {7000},
        .ca_guid = 0x0202020202020202,
        .responder_resources = 1,
        .initiator_depth = 1,
        .rnr_retry = 7,
        .service = CM_SERVICE_TCP + 7183,
        .transport = CM_TRANSPORT_RC,
        .retry = 7,
        .mtu_code = 3,
        .ack_timeout = 18,
        .local_cm_timeout = 20,
        .remote_cm_timeout = 20,
        .max_cm_retries = 15,
        .local_gid = hex_addr("fd00:ffff::1"),
        .remote_gid = hex_addr("fd00:1::1"),
        .ip_header = true,
        .sport = 1234,
        .ip_src = hex_addr("fd00:ffff::1"),
        .ip_dst = hex_addr("fd00:1::1"),
        .private_len = CM_REQ_PRIVATE_LEN,
    };
}

/* A REP that the kernel of a connecting host accepted, likewise. */
static const char rep_hex[] = "00005678 00001234 00000000 000101 00 00000000 001b58 00 01 01 00 e0"
                              "0202020202020202";

static struct cm_msg
rep(void)
{
    return (struct cm_msg){
        .attribute = CM_REP,
        .tid = 0x1122334455667788,
        .local_id = 0x5678,
        .remote_id = 0x1234,
        .qpn = 257,
        .psn = {7000},
        .ca_guid = 0x0202020202020202,
        .responder_resources = 1,
        .initiator_depth = 1,
        .rnr_retry = 7,
        .private_len = CM_REP_PRIVATE_LEN,
    };
}

/* 'm' is built as these headers and 'body', and read from them. */
static void
check_vector(const struct cm_msg *m, const char *attribute, const char *body)
{
    uint8_t frame[CM_FRAME_LEN], expected[CM_FRAME_LEN] = {0};
    size_t n = 0;

    n += hex_bytes("000000000000 000000000000 86dd"
                   "60000000 01201140 fd000000000000000000000000000001"
                   "fd000000000000000000000000000002 c00012b701200000"
                   "6400ffff 00000001 00abcdef 80010000 00000001"
                   "01070203 00000000 1122334455667788",
                   expected, sizeof expected);
    n += hex_bytes(attribute, expected + n, sizeof expected - n);
    n += hex_bytes("0000 00000000", expected + n, sizeof expected - n);
    ck_assert_uint_eq(n, CM_BODY_OFS);
    hex_bytes(body, expected + n, sizeof expected - n);

    cm_frame_build(frame, m);
    ck_assert_mem_eq(frame, expected, CM_ICRC_OFS);
    cm_frame_mend(expected);
    ck_assert_mem_eq(frame, expected, CM_FRAME_LEN);
    struct cm_msg back = parsed(expected);
    assert_same(&back, m);
}

START_TEST(vectors)
    {
        struct cm_msg m = req();
        check_vector(&m, "0010", req_hex);

        m = rep();
        check_vector(&m, "0013", rep_hex);
    }
END_TEST

/* Where fields are, after the tables of IBTA volume 1, 12.6, as bits of the body. */
#define FIELD(ATTRIBUTE, BYTE, BIT, BITS, MEMBER)                         \
    {                                                                     \
        CM_##ATTRIBUTE, BYTE, BIT, BITS, offsetof(struct cm_msg, MEMBER), \
            sizeof(((struct cm_msg *) 0)->MEMBER), #MEMBER                \
    }
static const struct field {
    enum cm_attribute attribute;
    size_t byte;
    unsigned bit; /* from the byte's highest one. */
    unsigned bits;
    size_t ofs, size; /* in struct cm_msg. */
    const char *name;
} fields[] = {
    FIELD(REQ, 0, 0, 32, local_id),
    FIELD(REQ, 8, 0, 64, service),
    FIELD(REQ, 16, 0, 64, ca_guid),
    FIELD(REQ, 32, 0, 24, qpn),
    FIELD(REQ, 35, 0, 8, responder_resources),
    FIELD(REQ, 39, 0, 8, initiator_depth),
    FIELD(REQ, 43, 0, 5, remote_cm_timeout),
    FIELD(REQ, 43, 5, 2, transport),
    FIELD(REQ, 44, 0, 24, psn),
    FIELD(REQ, 47, 0, 5, local_cm_timeout),
    FIELD(REQ, 47, 5, 3, retry),
    FIELD(REQ, 50, 0, 4, mtu_code),
    FIELD(REQ, 50, 5, 3, rnr_retry),
    FIELD(REQ, 51, 0, 4, max_cm_retries),
    FIELD(REQ, 51, 4, 1, srq),
    FIELD(REQ, 95, 0, 5, ack_timeout),
    FIELD(MRA, 0, 0, 32, local_id),
    FIELD(MRA, 4, 0, 32, remote_id),
    FIELD(MRA, 9, 0, 5, service_timeout),
    FIELD(REJ, 0, 0, 32, local_id),
    FIELD(REJ, 4, 0, 32, remote_id),
    FIELD(REJ, 10, 0, 16, reason),
    FIELD(REP, 0, 0, 32, local_id),
    FIELD(REP, 4, 0, 32, remote_id),
    FIELD(REP, 12, 0, 24, qpn),
    FIELD(REP, 20, 0, 24, psn),
    FIELD(REP, 24, 0, 8, responder_resources),
    FIELD(REP, 25, 0, 8, initiator_depth),
    FIELD(REP, 27, 0, 3, rnr_retry),
    FIELD(REP, 27, 3, 1, srq),
    FIELD(REP, 28, 0, 64, ca_guid),
    FIELD(RTU, 0, 0, 32, local_id),
    FIELD(RTU, 4, 0, 32, remote_id),
    FIELD(DREQ, 0, 0, 32, local_id),
    FIELD(DREQ, 4, 0, 32, remote_id),
    FIELD(DREQ, 8, 0, 24, remote_qpn),
    FIELD(DREP, 0, 0, 32, local_id),
    FIELD(DREP, 4, 0, 32, remote_id),
    FIELD(SIDR_REQ, 0, 0, 32, local_id),
    FIELD(SIDR_REQ, 8, 0, 64, service),
    FIELD(SIDR_REP, 0, 0, 32, remote_id),
    FIELD(SIDR_REP, 4, 0, 8, sidr_status),
    FIELD(SIDR_REP, 12, 0, 64, service),
};
#define N_FIELDS ((int) (sizeof fields / sizeof *fields))

static void
set_member(struct cm_msg *m, const struct field *f, uint64_t value)
{
    uint8_t *at = (uint8_t *) m + f->ofs;

    switch (f->size) {
    case 1: *at = (uint8_t) value; break;
    case 2: memcpy(at, &(uint16_t){(uint16_t) value}, 2); break;
    case 4: memcpy(at, &(uint32_t){(uint32_t) value}, 4); break;
    case 8: memcpy(at, &value, 8); break;
    default: ck_abort();
    }
}

/* Bits of the body, the highest first. */
static void
set_bits(uint8_t *body, const struct field *f, uint64_t value)
{
    for (unsigned i = 0; i < f->bits; i++) {
        unsigned bit = f->bit + i;
        uint8_t mask = (uint8_t) (0x80 >> bit % 8);
        bool on = value >> (f->bits - 1 - i) & 1;

        body[f->byte + bit / 8] = (uint8_t) ((body[f->byte + bit / 8] & ~mask) | (on ? mask : 0));
    }
}

/* Each field alone, at 0, 1, its highest bit, and all ones, in a message of zeros: built into these
 * bits and no other, and read from them into this member and no other. */
START_TEST(limits)
    {
        const struct field *f = &fields[_i];
        uint64_t high = UINT64_C(1) << (f->bits - 1);
        uint64_t values[] = {0, 1, high, high | (high - 1)};
        uint8_t zeros[CM_FRAME_LEN], frame[CM_FRAME_LEN];
        struct cm_msg zero = {.attribute = f->attribute};

        cm_frame_build(zeros, &zero);
        zero = parsed(zeros);
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
            struct cm_msg m = zero;
            set_member(&m, f, values[i]);
            cm_frame_build(frame, &m);
            set_bits(zeros + CM_BODY_OFS, f, values[i]);
            ck_assert_msg(!memcmp(zeros, frame, CM_ICRC_OFS),
                          "%s of %s: %jx is not where it should be", f->name,
                          cm_attribute_name(f->attribute), (uintmax_t) values[i]);

            struct cm_msg back = parsed(frame);
            assert_same(&back, &m);
        }
    }
END_TEST

/* What is wider than its field does not spill over into the next one. */
START_TEST(too_wide)
    {
        const struct field *f = &fields[_i];
        struct cm_msg m = {.attribute = f->attribute};
        uint8_t frame[CM_FRAME_LEN], wide[CM_FRAME_LEN];

        if (f->bits == 8 * f->size || f->size == sizeof(bool)) {
            return;
        }
        set_member(&m, f, (UINT64_C(1) << f->bits) - 1);
        cm_frame_build(frame, &m);
        set_member(&m, f, UINT64_MAX);
        cm_frame_build(wide, &m);
        ck_assert_mem_eq(frame, wide, CM_FRAME_LEN);
    }
END_TEST

/* Bits that say nothing to a receiver. */
START_TEST(ignored)
    {
        static const struct {
            size_t ofs;
            uint8_t mask;
        } bits[] = {
            {CM_MAD_OFS + 4, 0xff},   {CM_MAD_OFS + 7, 0xff},    {CM_MAD_OFS + 18, 0xff},
            {CM_MAD_OFS + 23, 0xff},  {CM_BODY_OFS + 4, 0xff},   {CM_BODY_OFS + 24, 0xff},
            {CM_BODY_OFS + 28, 0xff}, {CM_BODY_OFS + 36, 0xff},  {CM_BODY_OFS + 40, 0xff},
            {CM_BODY_OFS + 43, 0x01}, {CM_BODY_OFS + 48, 0xff},  {CM_BODY_OFS + 50, 0x08},
            {CM_BODY_OFS + 51, 0x07}, {CM_BODY_OFS + 52, 0xff},  {CM_BODY_OFS + 88, 0xff},
            {CM_BODY_OFS + 92, 0xff}, {CM_BODY_OFS + 94, 0xff},  {CM_BODY_OFS + 95, 0x07},
            {CM_BODY_OFS + 96, 0xff}, {CM_BODY_OFS + 139, 0xff}, {CM_BODY_OFS + 141, 0x0f},
        };
        struct cm_msg m = req();
        uint8_t frame[CM_FRAME_LEN];

        for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
            cm_frame_build(frame, &m);
            frame[bits[i].ofs] ^= bits[i].mask;
            cm_frame_mend(frame);
            struct cm_msg back = parsed(frame);
            assert_same(&back, &m);
        }
    }
END_TEST

/* Of MRA and REJ. */
START_TEST(about)
    {
        static const enum cm_about read_as[] = {CM_ABOUT_REQ, CM_ABOUT_REP, CM_ABOUT_OTHER,
                                                CM_ABOUT_OTHER};
        uint8_t frame[CM_FRAME_LEN];

        for (unsigned i = 0; i < 8; i++) {
            struct cm_msg m = {.attribute = i % 2 ? CM_MRA : CM_REJ};

            cm_frame_build(frame, &m);
            frame[CM_BODY_OFS + 8] = (uint8_t) (i / 2 << 6);
            cm_frame_mend(frame);
            ck_assert_int_eq(parsed(frame).about, read_as[i / 2]);
            m.about = read_as[i / 2];
            cm_frame_build(frame, &m);
            ck_assert_uint_eq(frame[CM_BODY_OFS + 8], m.about << 6);
        }
    }
END_TEST

/* Without the header of another version, of IPv4 or of another service it is all the program's. */
START_TEST(ip_header)
    {
        static const struct {
            size_t ofs;
            uint8_t value;
        } others[] = {{140, 1},    {140, 0xff}, {141, 0x40}, {141, 0x00},
                      {141, 0x70}, {11, 1},     {12, 0},     {13, 0x07}};
        uint8_t frame[CM_FRAME_LEN], raw[CM_REQ_RAW_PRIVATE_LEN];
        struct cm_msg m = req();

        for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
            cm_frame_build(frame, &m);
            frame[CM_BODY_OFS + others[i].ofs] = others[i].value;
            cm_frame_mend(frame);
            memcpy(raw, frame + CM_BODY_OFS + 140, sizeof raw);

            struct cm_msg back = parsed(frame);
            ck_assert(!back.ip_header);
            ck_assert_uint_eq(back.sport, 0);
            ck_assert(IN6_IS_ADDR_UNSPECIFIED(&back.ip_src));
            ck_assert(IN6_IS_ADDR_UNSPECIFIED(&back.ip_dst));
            ck_assert_uint_eq(back.private_len, sizeof raw);
            ck_assert_mem_eq(back.private_data, raw, sizeof raw);

            cm_frame_build(frame, &back);
            ck_assert_mem_eq(frame + CM_BODY_OFS + 140, raw, sizeof raw);
        }

        /* Any port; the address is at its place. */
        cm_frame_build(frame, &m);
        memset(frame + CM_BODY_OFS + 14, 0xff, 2);
        memset(frame + CM_BODY_OFS + 142, 0xff, 2);
        cm_frame_mend(frame);
        ck_assert_uint_eq(parsed(frame).service, CM_SERVICE_TCP | CM_SERVICE_PORT_MASK);
        ck_assert(parsed(frame).ip_header);
        ck_assert_uint_eq(parsed(frame).sport, 0xffff);
    }
END_TEST

/* Private data up to the last byte of each body. */
START_TEST(private_data)
    {
        static const struct {
            enum cm_attribute attribute;
            bool ip_header;
            uint16_t room;
        } kinds[] = {
            {CM_REQ, true, 56}, {CM_REQ, false, 92}, {CM_REP, false, 196}, {CM_REJ, false, 148}};
        uint8_t frame[CM_FRAME_LEN];

        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
            uint8_t *behind = frame + CM_ICRC_OFS - kinds[i].room;

            for (uint16_t len = 0; len <= kinds[i].room; len++) {
                struct cm_msg m = {.attribute = kinds[i].attribute, .private_len = len};

                if (kinds[i].ip_header) {
                    m = req();
                    m.private_len = len;
                }
                memset(m.private_data, 0, sizeof m.private_data);
                memset(m.private_data, 0xa5, len);
                cm_frame_build(frame, &m);
                ck_assert_mem_eq(behind, m.private_data, kinds[i].room);
                m.private_len = kinds[i].room;
                struct cm_msg back = parsed(frame);
                assert_same(&back, &m);
            }
        }
    }
END_TEST

static uint64_t
random_bits(unsigned n)
{
    uint64_t x = 0;
    for (unsigned i = 0; i < n; i += 8) {
        x = x << 8 | (uint8_t) (rand() >> 4);
    }
    return n < 64 ? x & ((UINT64_C(1) << n) - 1) : x;
}

static void
random_bytes(void *at, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        ((uint8_t *) at)[i] = (uint8_t) random_bits(8);
    }
}

/* What it is after it has been built and parsed: all private data that there is room for. */
static struct cm_msg
random_msg(enum cm_attribute attribute)
{
    struct cm_msg m = {.attribute = attribute, .tid = random_bits(64)};

    for (int i = 0; i < N_FIELDS; i++) {
        if (fields[i].attribute == attribute) {
            set_member(&m, &fields[i], random_bits(fields[i].bits));
        }
    }
    switch (attribute) {
    case CM_REQ:
        random_bytes(&m.local_gid, sizeof m.local_gid);
        random_bytes(&m.remote_gid, sizeof m.remote_gid);
        m.ip_header = rand() % 2;
        m.private_len = CM_REQ_RAW_PRIVATE_LEN;
        if (m.ip_header) {
            m.service = CM_SERVICE_TCP | random_bits(16);
            m.sport = (uint16_t) random_bits(16);
            random_bytes(&m.ip_src, sizeof m.ip_src);
            random_bytes(&m.ip_dst, sizeof m.ip_dst);
            m.private_len = CM_REQ_PRIVATE_LEN;
        }
        break;
    case CM_REP: m.private_len = CM_REP_PRIVATE_LEN; break;
    case CM_REJ: m.private_len = CM_REJ_PRIVATE_LEN; /* fall through. */
    case CM_MRA: m.about = (enum cm_about)(rand() % 3); break;
    case CM_RTU:
    case CM_DREQ:
    case CM_DREP:
    case CM_SIDR_REQ:
    case CM_SIDR_REP: break;
    }
    random_bytes(m.private_data, m.private_len);
    return m;
}

START_TEST(round_trip)
    {
        uint8_t frame[CM_FRAME_LEN], again[CM_FRAME_LEN];

        srand(1);
        for (unsigned i = 0; i < 500; i++) {
            struct cm_msg m = random_msg(attributes[_i]);
            cm_frame_build(frame, &m);
            struct cm_msg back = parsed(frame);
            assert_same(&back, &m);
            cm_frame_build(again, &back);
            ck_assert_mem_eq(frame, again, CM_FRAME_LEN);
        }
    }
END_TEST

START_TEST(pool_empty)
    {
        struct packet_pool *pool = packet_pool_create(1);
        struct in6_addr addr = hex_addr("fd00::1");
        struct cm_msg m = req();
        struct packet *p = cm_build(pool, &addr, &addr, psn_make(0), &m);

        ck_assert_ptr_nonnull(p);
        ck_assert_ptr_null(cm_build(pool, &addr, &addr, psn_make(0), &m));
        packet_put(p);
        packet_pool_destroy(pool);
    }
END_TEST

START_TEST(texts)
    {
        ck_assert_str_eq(cm_attribute_name(CM_REQ), "REQ");
        ck_assert_str_eq(cm_attribute_name(CM_SIDR_REP), "SIDR_REP");
        ck_assert_str_eq(cm_attribute_name((enum cm_attribute) 0x19), "?");

        ck_assert_str_eq(cm_rej_text(8), "invalid service ID");
        ck_assert_str_eq(cm_rej_text(28), "rejected by the consumer");
        ck_assert_str_eq(cm_rej_text(0), "another reason");
        ck_assert_str_eq(cm_rej_text(0xffff), "another reason");
    }
END_TEST

START_TEST(codes)
    {
        static const uint32_t mtus[] = {0, 256, 512, 1024, 2048, 4096, 0};

        for (uint8_t code = 0; code < 7; code++) {
            ck_assert_uint_eq(cm_mtu_bytes(code), mtus[code]);
            ck_assert_uint_eq(cm_mtu_code(mtus[code]), mtus[code] ? code : 0);
        }
        ck_assert_uint_eq(cm_mtu_bytes(255), 0);
        static const uint32_t no_mtus[] = {1, 128, 255, 257, 1500, 8192, UINT32_MAX};
        for (size_t i = 0; i < sizeof no_mtus / sizeof *no_mtus; i++) {
            ck_assert_uint_eq(cm_mtu_code(no_mtus[i]), 0);
        }

        ck_assert_uint_eq(cm_timeout_usec(0), 4);
        ck_assert_uint_eq(cm_timeout_usec(14), 67108);
        ck_assert_uint_eq(cm_timeout_usec(20), 4294967);
        ck_assert_uint_eq(cm_timeout_usec(31), 8796093022);
    }
END_TEST

Suite *
cm_suite(void)
{
    Suite *suite = suite_create("cm");
    TCase *tc = tcase_create("cm");

    tcase_add_test(tc, vectors);
    tcase_add_loop_test(tc, limits, 0, N_FIELDS);
    tcase_add_loop_test(tc, too_wide, 0, N_FIELDS);
    tcase_add_test(tc, ignored);
    tcase_add_test(tc, about);
    tcase_add_test(tc, ip_header);
    tcase_add_test(tc, private_data);
    tcase_add_loop_test(tc, round_trip, 0, N_ATTRIBUTES);
    tcase_add_test(tc, pool_empty);
    tcase_add_test(tc, texts);
    tcase_add_test(tc, codes);
    suite_add_tcase(suite, tc);
    return suite;
}
