/* SPDX-License-Identifier: Apache-2.0
 *
 * Responses of nodes to nodes with a DATA-AUTH TLV: byte for byte what tests/vectors/gen-data.py
 * computes, which change of which bit is noticed, whose responses are whose, and that each counts once.
 */
#include <stdlib.h>

#include "lib/cnp.h"
#include "lib/data-auth.h"
#include "lib/icrc.h"
#include "lib/packet.h"
#include "lib/parse.h"
#include "lib/response-auth.h"
#include "lib/response.h"
#include "tests/unit/auth-keys.h"
#include "tests/unit/hex.h"
#include "tests/unit/pcap-file.h"
#include "tests/unit/suites.h"

#define ETH_LEN sizeof(struct eth_hdr)
#define VECTORS "tests/vectors/response-python.pcap"

static const struct vector {
    uint32_t key, instance;
    uint64_t seq;
    const char *child, *parent_sid;
} vectors[] = {
    {0x01020304, 1, 1, "5f00:0:103::1", "5f00:0:100:e002::"},
    {KEY, 1, 1, "5f00:0:103::1", "5f00:0:100:e002::"},
    {UINT32_MAX, 1, 1, "5f00:0:103::1", "5f00:0:100:e002::"},
    {KEY, 0xfffffffe, UINT64_MAX - 1, "5f00:0:104::1", "5f00:0:100:e002::"},
    {KEY, 1, 2, "5f00:0:103::1", "5f00:0:200:e002::"},
    {KEY, 1, 3, "5f00:0:103::1", "5f00:0:100:e002::"},
};
#define N_VECTORS (sizeof vectors / sizeof *vectors)
enum { SAMPLE = 1, LAST = 3, TO_AGENT = 4, CNP = 5 };

struct sample {
    uint8_t bytes[256];
    uint32_t len;
    struct parsed h;
};

static struct packet_pool *pool;
static struct response_auth *ra;
static struct tree_config tree;

static void
setup(void)
{
    fill_inputs();
    pool = packet_pool_create(2);
    ra = response_auth_create(0);
    tree = (struct tree_config){
        .proxy = epoch.proxy,
        .designated_qpn = epoch.designated_qpn,
        .epoch = epoch.epoch,
        .auth = {.tlvs = AUTH_DATA, .responses = true, .n_keys = N_KEYS, .keys = keys},
    };
}

static void
teardown(void)
{
    response_auth_destroy(ra);
    packet_pool_destroy(pool);
}

static struct response_pair
pair_of(unsigned vector)
{
    return (struct response_pair){hex_addr(vectors[vector].child),
                                  hex_addr(vectors[vector].parent_sid)};
}

static void
load(struct sample *s, unsigned vector)
{
    uint8_t *frame = pcap_file_frame(VECTORS, vector, &s->len);

    ck_assert_uint_le(s->len, sizeof s->bytes);
    memcpy(s->bytes, frame, s->len);
    free(frame);
    ck_assert_int_eq(parse_frame(s->bytes, s->len, &s->h), DROP_none);
}

static enum drop_reason
verify(const struct sample *s, unsigned vector, uint32_t floor)
{
    struct response_pair pair = pair_of(vector);

    return response_auth_verify(ra, &tree, &pair, floor, s->bytes, &s->h);
}

/* The same by a parent that has heard nothing before. */
static enum drop_reason
verify_once(const struct sample *s, unsigned vector)
{
    enum drop_reason why;

    response_auth_destroy(ra);
    ra = response_auth_create(0);
    why = verify(s, vector, 1);
    return why;
}

/* A child seals what is in the vector. */
static enum drop_reason
seal(struct response_auth *by, const struct sample *s, unsigned vector, struct packet **p)
{
    struct response_pair pair = pair_of(vector);

    tree.auth.key = vectors[vector].key;
    *p = packet_from_bytes(pool, s->bytes + s->h.inner.ofs, s->len - s->h.inner.ofs);
    return response_auth_seal(by, &tree, &pair, &pair.parent_sid, *p);
}

START_TEST(same_as_vectors)
    {
        unsigned vector = (unsigned) _i;
        struct response_auth *child = response_auth_create(vectors[vector].seq - 1);
        uint8_t out[sizeof(struct sample)];
        struct packet *p;
        struct sample s;

        load(&s, vector);
        ck_assert_int_eq(vector == CNP ? cnp_check(s.bytes, &s.h) : response_check(s.bytes, &s.h),
                         DROP_none);
        ck_assert_int_eq(seal(child, &s, vector, &p), DROP_auth_missing); /* no instance. */
        packet_put(p);
        tree.auth.response_instance = vectors[vector].instance;
        ck_assert_int_eq(seal(child, &s, vector, &p), DROP_none);
        ck_assert_uint_eq(response_auth_seq(child), vectors[vector].seq);
        ck_assert_uint_eq(packet_flatten(p, out, sizeof out), s.len - ETH_LEN);
        ck_assert_mem_eq(out, s.bytes + ETH_LEN, s.len - ETH_LEN);
        packet_put(p);
        response_auth_destroy(child);

        ck_assert_int_eq(verify_once(&s, vector), DROP_none);
        ck_assert_int_eq(verify(&s, vector, 1), DROP_auth_replay);
    }
END_TEST

/* Each bit turned over, one at a time, as it is and with an ICRC that fits. */
START_TEST(every_bit)
    {
        unsigned vector = _i / 2 ? CNP : SAMPLE, n_refused = 0;
        struct sample good, s;

        load(&good, vector);
        size_t ack_req = good.h.bth_ofs + offsetof(struct bth, ack_req);
        for (size_t bit = 8 * ETH_LEN; bit < 8 * (size_t) good.len; bit++) {
            s = good;
            s.bytes[bit / 8] ^= (uint8_t) (1 << bit % 8);
            if (_i % 2) {
                icrc_store(s.bytes + good.h.icrc_ofs,
                           icrc_compute(s.bytes + good.h.inner.ofs,
                                        (size_t) (good.h.icrc_ofs - good.h.inner.ofs)));
            }
            if (parse_frame(s.bytes, s.len, &s.h) || !s.h.srh_ofs) {
                continue;
            }
            bool refused = verify_once(&s, vector) != DROP_none;
            bool same = s.h.inner.ofs == good.h.inner.ofs && s.h.inner.end == good.h.inner.end
                        && s.h.bth_ofs == good.h.bth_ofs;
            /* The ICRC is put right again; AckReq says nothing in a response. */
            bool mended = _i % 2
                          && (bit / 8 >= good.h.icrc_ofs
                              || (bit / 8 == ack_req && 1 << bit % 8 == BTH_ACK_REQ));
            ck_assert_msg(refused == (!same || (!may_change(&good.h, bit) && !mended)), "bit %zu",
                          bit);
            n_refused += refused;
        }
        /* Addresses, SRH, BTH. */
        ck_assert_uint_gt(n_refused, 8 * (3 * 16 + 56 + 11));
    }
END_TEST

/* Nobody's but the child's to this parent in this epoch. */
START_TEST(whose)
    {
        struct response_pair pair = pair_of(SAMPLE);
        struct sample s;

        load(&s, SAMPLE);
        ck_assert_int_eq(verify(&s, LAST, 1), DROP_auth_bad);
        ck_assert_int_eq(verify(&s, TO_AGENT, 1), DROP_auth_bad);
        tree.epoch++;
        ck_assert_int_eq(verify_once(&s, SAMPLE), DROP_auth_bad);
        tree.epoch--;
        tree.designated_qpn++;
        ck_assert_int_eq(verify_once(&s, SAMPLE), DROP_auth_bad);
        tree.designated_qpn--;
        tree.proxy.s6_addr[15]++;
        ck_assert_int_eq(verify_once(&s, SAMPLE), DROP_auth_bad);
        tree.proxy.s6_addr[15]--;
        /* Nor as if it had another source. */
        memcpy(s.bytes + s.h.ip.ofs + offsetof(struct ip6_hdr_wire, src), "\x5f\0\0\0\1\4", 6);
        pair.child = hex_addr(vectors[LAST].child);
        ck_assert_int_eq(response_auth_verify(ra, &tree, &pair, 1, s.bytes, &s.h), DROP_auth_bad);
        load(&s, SAMPLE);
        ck_assert_int_eq(verify_once(&s, SAMPLE), DROP_none);
    }
END_TEST

/* A parent takes nothing before its life is answered, and nothing from before that. */
START_TEST(lives)
    {
        struct sample s, cnp, last;

        load(&s, SAMPLE);
        load(&cnp, CNP);
        load(&last, LAST);
        ck_assert_int_eq(verify(&s, SAMPLE, 0), DROP_auth_replay);
        ck_assert_int_eq(verify(&s, SAMPLE, 2), DROP_auth_replay);
        ck_assert_int_eq(verify(&last, LAST, 2), DROP_none); /* a window for each child. */
        ck_assert_int_eq(verify(&last, LAST, 2), DROP_auth_replay);
        ck_assert_int_eq(verify(&cnp, CNP, 1), DROP_none);
        ck_assert_int_eq(verify(&s, SAMPLE, 1), DROP_none); /* overtaken. */
        ck_assert_int_eq(verify(&s, SAMPLE, 1), DROP_auth_replay);
        ck_assert_int_eq(verify(&cnp, CNP, 1), DROP_auth_replay);
    }
END_TEST

/* Keys come and go; what has come is known all the same. */
START_TEST(keys_of_a_configuration)
    {
        struct auth_config without = {.tlvs = AUTH_DATA, .n_keys = 1, .keys = keys};
        struct auth_config all = tree.auth;
        struct response_auth *child = response_auth_create(0);
        struct sample s;
        struct packet *p;

        load(&s, SAMPLE);
        ck_assert_int_eq(verify(&s, SAMPLE, 1), DROP_none);
        tree.auth = without;
        response_auth_configure(ra, &without);
        ck_assert_int_eq(verify(&s, SAMPLE, 1), DROP_auth_unknown_key);
        tree.auth.response_instance = 1;
        ck_assert_int_eq(seal(child, &s, SAMPLE, &p), DROP_auth_missing);
        packet_put(p);
        tree.auth = all;
        response_auth_configure(ra, &all);
        ck_assert_int_eq(verify(&s, SAMPLE, 1), DROP_auth_replay);
        /* The same number with another key is the same response. */
        load(&s, 0);
        ck_assert_int_eq(verify(&s, SAMPLE, 1), DROP_auth_replay);
        s.bytes[s.h.data_ofs] = 200;
        ck_assert_int_eq(parse_frame(s.bytes, s.len, &s.h), DROP_none);
        ck_assert_int_eq(verify(&s, SAMPLE, 1), DROP_auth_missing);
        response_auth_destroy(child);
    }
END_TEST

/* More children than at first there is room for; each has its own window. */
START_TEST(many_children)
    {
        enum { N = 100 };
        struct sample s;

        load(&s, SAMPLE);
        tree.auth.response_instance = 1;
        tree.auth.key = KEY;
        for (unsigned round = 0; round < 2; round++) {
            struct response_auth *child = response_auth_create(0);

            for (unsigned i = 0; i < N; i++) {
                struct response_pair pair = pair_of(SAMPLE);
                uint8_t bytes[sizeof s.bytes] = {0};
                struct parsed h;

                pair.child = node_address((uint16_t) (0x300 + i));
                struct packet *p =
                    packet_from_bytes(pool, s.bytes + s.h.inner.ofs, s.len - s.h.inner.ofs);
                ck_assert_int_eq(response_auth_seal(child, &tree, &pair, &pair.parent_sid, p),
                                 DROP_none);
                memcpy(bytes, s.bytes, ETH_LEN);
                packet_flatten(p, bytes + ETH_LEN, sizeof bytes - ETH_LEN);
                packet_put(p);
                ck_assert_int_eq(parse_frame(bytes, s.len, &h), DROP_none);
                ck_assert_int_eq(response_auth_verify(ra, &tree, &pair, 1, bytes, &h),
                                 round ? DROP_auth_replay : DROP_none);
            }
            response_auth_destroy(child);
        }
    }
END_TEST

Suite *
response_auth_suite(void)
{
    Suite *suite = suite_create("response_auth");
    TCase *tc = tcase_create("response_auth");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, same_as_vectors, 0, N_VECTORS);
    tcase_add_loop_test(tc, every_bit, 0, 4);
    tcase_add_test(tc, whose);
    tcase_add_test(tc, lives);
    tcase_add_test(tc, keys_of_a_configuration);
    tcase_add_test(tc, many_children);
    suite_add_tcase(suite, tc);
    return suite;
}
