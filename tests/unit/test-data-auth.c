/* SPDX-License-Identifier: Apache-2.0
 *
 * DATA-AUTH TLVs: byte for byte what tests/vectors/gen-data.py computes, which change of which byte is
 * noticed, and which sequence numbers count.
 */
#include <stdlib.h>

#include "lib/data-auth.h"
#include "lib/icrc.h"
#include "lib/packet.h"
#include "lib/parse.h"
#include "lib/prng.h"
#include "lib/srh.h"
#include "tests/unit/auth-keys.h"
#include "tests/unit/hex.h"
#include "tests/unit/pcap-file.h"
#include "tests/unit/suites.h"

#define ETH_LEN sizeof(struct eth_hdr)
#define VECTORS "tests/vectors/data-python.pcap"

static const struct vector {
    uint32_t key, instance;
    uint64_t seq;
    bool receivers;
    uint32_t designated_qpn, epoch;
} vectors[] = {
    {0x01020304, 1, 1, true, DESIGNATED_QPN, EPOCH},
    {KEY, 1, 1, true, DESIGNATED_QPN, EPOCH},
    {UINT32_MAX, 1, 1, true, DESIGNATED_QPN, EPOCH},
    {KEY, 1, 2, false, DESIGNATED_QPN, EPOCH},
    {KEY, 0xfffffffe, UINT64_MAX - 1, true, DESIGNATED_QPN, EPOCH},
    {KEY, 1, 3, true, DESIGNATED_QPN + 1, EPOCH},
    {KEY, 1, 4, true, DESIGNATED_QPN, EPOCH + 1},
    {KEY, 1, 5, true, DESIGNATED_QPN, EPOCH},
    {KEY, 1, 6, true, DESIGNATED_QPN, EPOCH},
};
#define SAMPLE 7 /* the vector with a payload and AckReq. */

struct sample {
    uint8_t bytes[1024];
    uint32_t len;
    struct parsed h;
};

static void
load(struct sample *s, unsigned vector)
{
    uint8_t *frame = pcap_file_frame(VECTORS, vector, &s->len);

    ck_assert_uint_le(s->len, sizeof s->bytes);
    memcpy(s->bytes, frame, s->len);
    free(frame);
    ck_assert_int_eq(parse_frame(s->bytes, s->len, &s->h), DROP_none);
}

static struct auth_verifier *
verifier_of(uint32_t instance)
{
    struct auth_verifier *v = auth_verifier_create(&epoch);
    struct auth_config c = {
        .tlvs = AUTH_DATA, .instance = instance, .n_keys = N_KEYS, .keys = keys};

    auth_verifier_configure(v, &c, 0);
    return v;
}

static enum drop_reason
verify_once(const struct sample *s)
{
    struct auth_verifier *v = verifier_of(1);
    enum drop_reason why = auth_verify(v, s->bytes, &s->h, 0).why;

    auth_verifier_destroy(v);
    return why;
}

/* The template of the generator's receivers. */
static void
build(struct encap_template *t, const struct vector *vector)
{
    static const unsigned counts[] = {2, 1, 2};
    struct in6_addr src = hex_addr("5f00:0:200::1"), dst = hex_addr("5f00:0:100:f000::");
    struct auth_config c = {.tlvs = AUTH_DATA, .key = vector->key, .n_keys = N_KEYS, .keys = keys};
    struct srh_copy copies[5];
    size_t n = 0;

    for (size_t e = 0; e < 3 && vector->receivers; e++) {
        for (unsigned i = 0; i < counts[e]; i++, n++) {
            struct in6_addr edge = hex_addr("5f00:0:103::1"), addr = hex_addr("fd00:1::");

            edge.s6_addr[5] = (uint8_t) (3 + e);
            addr.s6_addr[15] = (uint8_t) (n + 1);
            copies[n] = (struct srh_copy){edge, addr, 0x12 + (uint32_t) n};
        }
    }
    ck_assert_int_eq(encap_template_build(t, &src, &dst, &epoch.proxy, copies, n), 0);
    ck_assert_int_eq(auth_sign(t, &c, &epoch), 0);
}

/* The inner packet is all head of its packet, or shared from some byte on. */
static const uint32_t splits[] = {0, IP6_HDR_LEN, IP6_HDR_LEN + 8 + 12, 70};

START_TEST(same_as_vectors)
    {
        const struct vector *vector = &vectors[_i / 4];
        uint32_t split = splits[_i % 4];
        struct packet_pool *pool = packet_pool_create(2);
        struct encap_template t;
        struct sample s;
        uint8_t out[sizeof s.bytes];

        load(&s, (unsigned) _i / 4);
        epoch.designated_qpn = vector->designated_qpn;
        epoch.epoch = vector->epoch;
        build(&t, vector);
        uint32_t inner_len = s.len - s.h.inner.ofs;
        struct packet *p = packet_from_bytes(pool, s.bytes + s.h.inner.ofs, inner_len);
        if (split && split < inner_len - ROCE_ICRC_LEN) {
            struct packet *copy = packet_replicate(p, 0, split, ROCE_ICRC_LEN);

            packet_put(p);
            p = copy;
        }
        encap_template_stamp(&t, packet_push(p, t.len), (uint16_t) inner_len, 2, 0x12345);
        struct data_key *key = data_key_create(
            auth_find_key(&(struct auth_config){.n_keys = N_KEYS, .keys = keys}, vector->key),
            &epoch);
        ck_assert_ptr_nonnull(key);
        ck_assert(data_seal(key, &t, p, vector->instance, vector->seq));
        ck_assert_uint_eq(packet_flatten(p, out, sizeof out), s.len - ETH_LEN);
        ck_assert_mem_eq(out, s.bytes + ETH_LEN, s.len - ETH_LEN);
        data_key_destroy(key);
        packet_put(p);
        packet_pool_destroy(pool);

        ck_assert_int_eq(verify_once(&s), DROP_none);
        epoch.epoch ^= 1;
        ck_assert_int_eq(verify_once(&s), DROP_auth_bad);
    }
END_TEST

/* Each bit of the packet turned over, one at a time.  Those after which the parser sees something
 * else are no business of the tag. */
START_TEST(every_bit)
    {
        unsigned n_refused = 0, n_accepted = 0;
        struct sample good, s;

        load(&good, SAMPLE);
        for (size_t bit = 8 * ETH_LEN; bit < 8 * (size_t) good.len; bit++) {
            s = good;
            s.bytes[bit / 8] ^= (uint8_t) (1 << bit % 8);
            if (parse_frame(s.bytes, s.len, &s.h) || !s.h.srh_ofs) {
                continue;
            }
            bool refused = verify_once(&s) != DROP_none;
            if (s.h.inner.ofs != good.h.inner.ofs || s.h.inner.end != good.h.inner.end
                || s.h.bth_ofs != good.h.bth_ofs) {
                ck_assert_msg(refused, "bit %zu", bit);
                continue;
            }
            ck_assert_msg(refused == !may_change(&good.h, bit), "bit %zu", bit);
            n_refused += refused;
            n_accepted += !refused;
        }
        ck_assert_uint_gt(n_refused, 8 * (16 + 100 + 251)); /* addresses, TLVs, payload. */
        ck_assert_uint_gt(n_accepted, 128);                 /* a destination. */
    }
END_TEST

/* A payload or PSN that was changed is found out though the ICRC fits; AckReq that a node has set is
 * not. */
START_TEST(with_a_good_icrc)
    {
        struct sample good, s;

        load(&good, SAMPLE);
        size_t ip = good.h.inner.ofs, len = (size_t) (good.h.icrc_ofs - ip);
        ck_assert(icrc_ok(good.bytes + ip, len));
        const struct {
            size_t ofs;
            uint8_t bits;
            bool taken;
        } changes[] = {
            {good.h.payload_ofs, 1, false},
            {good.h.payload_ofs + 250u, 0x80, false},
            {good.h.bth_ofs + offsetof(struct bth, psn) + 2, 1, false},
            {good.h.bth_ofs + offsetof(struct bth, opcode), 1, false},
            {good.h.bth_ofs + offsetof(struct bth, ack_req), 1, false},
            {good.h.bth_ofs + offsetof(struct bth, ack_req), BTH_ACK_REQ, true},
        };

        for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
            s = good;
            s.bytes[changes[i].ofs] ^= changes[i].bits;
            icrc_store(s.bytes + s.h.icrc_ofs, icrc_compute(s.bytes + ip, len));
            ck_assert_int_eq(verify_once(&s), changes[i].taken ? DROP_none : DROP_auth_bad);
        }
    }
END_TEST

/* The SRH of one packet in front of the other, of the same length. */
START_TEST(spliced)
    {
        struct sample a, b;

        load(&a, 0);
        load(&b, 1);
        ck_assert_uint_eq(a.len, b.len);
        b.bytes[b.h.payload_ofs] ^= 1;
        icrc_store(b.bytes + b.h.icrc_ofs,
                   icrc_compute(b.bytes + b.h.inner.ofs, (size_t) (b.h.icrc_ofs - b.h.inner.ofs)));
        ck_assert_int_eq(verify_once(&a), DROP_none);
        memcpy(a.bytes + a.h.inner.ofs, b.bytes + b.h.inner.ofs, a.len - a.h.inner.ofs);
        ck_assert_int_eq(verify_once(&a), DROP_auth_bad);
    }
END_TEST

START_TEST(once)
    {
        struct auth_verifier *v = verifier_of(1);
        struct auth_config c = {.tlvs = AUTH_DATA, .instance = 1, .n_keys = 2, .keys = keys};
        struct sample s, next;

        load(&s, 1);
        load(&next, 3);
        ck_assert_int_eq(auth_verify(v, s.bytes, &s.h, 0).why, DROP_none);
        ck_assert_int_eq(auth_verify(v, s.bytes, &s.h, 0).why, DROP_auth_replay);
        /* Nor in the second in which what counted before counts, nor after it forgot its keys. */
        auth_verifier_configure(v, &c, 10);
        ck_assert_int_eq(auth_verify(v, s.bytes, &s.h, 11).why, DROP_auth_replay);
        ck_assert_int_eq(auth_verify(v, next.bytes, &next.h, 11).why, DROP_none);
        auth_verifier_forget(v);
        auth_verifier_configure(v, &c, 20);
        ck_assert_int_eq(auth_verify(v, next.bytes, &next.h, 21).why, DROP_auth_replay);
        /* A forged one does not move the window. */
        load(&s, 4);
        s.bytes[s.h.data_ofs + offsetof(struct data_tlv, tag)] ^= 1;
        ck_assert_int_eq(auth_verify(v, s.bytes, &s.h, 22).why, DROP_auth_bad);
        load(&s, SAMPLE);
        ck_assert_int_eq(auth_verify(v, s.bytes, &s.h, 23).why, DROP_none);
        ck_assert_uint_eq(auth_verifier_stats(v)->refused.why, DROP_auth_bad);
        auth_verifier_destroy(v);
    }
END_TEST

/* Without an instance nothing counts, and with a higher one only what is at least that. */
START_TEST(instance)
    {
        struct auth_verifier *v = verifier_of(0);
        struct auth_config c = {.tlvs = AUTH_DATA, .n_keys = N_KEYS, .keys = keys};
        struct sample s, last;

        load(&s, 1);
        load(&last, 4);
        ck_assert_int_eq(auth_verify(v, s.bytes, &s.h, 0).why, DROP_auth_replay);
        c.instance = 2;
        auth_verifier_configure(v, &c, 1);
        ck_assert_int_eq(auth_verify(v, s.bytes, &s.h, 2).why, DROP_auth_replay);
        ck_assert_int_eq(auth_verify(v, last.bytes, &last.h, 2).why, DROP_none);
        auth_verifier_destroy(v);
    }
END_TEST

START_TEST(missing)
    {
        struct auth_config c = {.tlvs = AUTH_DATA, .instance = 1, .n_keys = 1, .keys = keys};
        struct auth_verifier *v = auth_verifier_create(&epoch);
        struct auth_result r;
        struct sample s;

        auth_verifier_configure(v, &c, 0);
        load(&s, 1);
        r = auth_verify(v, s.bytes, &s.h, 0);
        ck_assert_int_eq(r.why, DROP_auth_unknown_key);
        ck_assert_uint_eq(r.key, KEY);
        s.bytes[s.h.data_ofs] = 200;
        ck_assert_int_eq(parse_frame(s.bytes, s.len, &s.h), DROP_none);
        ck_assert_int_eq(auth_verify(v, s.bytes, &s.h, 0).why, DROP_auth_missing);
        auth_verifier_destroy(v);
    }
END_TEST

/* Windows: what came, remembered without a limit, for two instances at a time. */
#define N_SEQS 20000u

START_TEST(window)
    {
        static bool came[4][N_SEQS];
        struct data_window w = {.floor = 2};
        uint64_t highest[4] = {0}, random = (uint64_t) _i + 1;
        uint32_t now = 2;

        memset(came, 0, sizeof came);
        ck_assert(data_window_take(&w, 2, 1));
        came[2][1] = true;
        highest[2] = 1;
        for (unsigned i = 0; i < BY_CHANCE(100000u); i++) {
            uint32_t dice = prng_next(&random) % 1000;
            uint32_t inst = dice < 2 && now < 3 ? now + 1
                            : dice < 200        ? prng_next(&random) % 4
                                                : now;
            uint64_t jump = dice % 7 ? 4 : dice % 5 ? 80 : 3000;
            uint64_t base = highest[inst] > jump ? highest[inst] - jump : 0;
            uint64_t seq = (base + prng_next(&random) % (2 * jump)) % N_SEQS;

            bool lives = inst >= 2 && inst + 1 >= now;
            bool want = seq && lives && (inst > now || seq + DATA_WINDOW > highest[inst])
                        && !came[inst][seq];
            ck_assert_msg(data_window_take(&w, inst, seq) == want, "step %u: %u %u", i, inst,
                          (unsigned) seq);
            if (want) {
                came[inst][seq] = true;
                highest[inst] = seq > highest[inst] ? seq : highest[inst];
                now = inst > now ? inst : now;
            }
        }
        ck_assert_uint_gt(highest[3], DATA_WINDOW);
    }
END_TEST

START_TEST(window_limits)
    {
        struct data_window w = {.floor = 1};

        ck_assert(!data_window_take(&w, 1, 0));
        ck_assert(data_window_take(&w, 1, UINT64_MAX));
        ck_assert(!data_window_take(&w, 1, UINT64_MAX));
        ck_assert(data_window_take(&w, 1, UINT64_MAX - DATA_WINDOW + 1));
        ck_assert(!data_window_take(&w, 1, UINT64_MAX - DATA_WINDOW));
        ck_assert(data_window_take(&w, UINT32_MAX, 1));
        ck_assert(data_window_take(&w, 1, UINT64_MAX - 1)); /* the instance before. */
        ck_assert(!data_window_take(&w, 2, 1));             /* in between. */
        w.floor = 2;
        ck_assert(!data_window_take(&w, 1, UINT64_MAX - 2));
    }
END_TEST

Suite *
data_auth_suite(void)
{
    Suite *suite = suite_create("data_auth");
    TCase *tc = tcase_create("data_auth");

    tcase_add_checked_fixture(tc, fill_inputs, NULL);
    tcase_add_loop_test(tc, same_as_vectors, 0, 4 * sizeof vectors / sizeof *vectors);
    tcase_add_test(tc, every_bit);
    tcase_add_test(tc, with_a_good_icrc);
    tcase_add_test(tc, spliced);
    tcase_add_test(tc, once);
    tcase_add_test(tc, instance);
    tcase_add_test(tc, missing);
    tcase_add_loop_test(tc, window, 0, 20);
    tcase_add_test(tc, window_limits);
    suite_add_tcase(suite, tc);
    return suite;
}
