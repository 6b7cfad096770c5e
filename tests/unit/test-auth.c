/* SPDX-License-Identifier: Apache-2.0
 *
 * MT-AUTH and HMAC TLVs: byte for byte what tests/vectors/gen-srh.py computes, how
 * many receivers still fit, and which change of which byte is noticed.
 */
#include <errno.h>
#include <stdlib.h>

#include "lib/auth.h"
#include "lib/parse.h"
#include "lib/srh.h"
#include "tests/unit/auth-keys.h"
#include "tests/unit/hex.h"
#include "tests/unit/pcap-file.h"
#include "tests/unit/suites.h"

#define ETH_LEN sizeof(struct eth_hdr)

static struct auth_config
config_of(unsigned int tlvs, uint32_t key)
{
    return (struct auth_config){.tlvs = tlvs, .key = key, .n_keys = N_KEYS, .keys = keys};
}

/* The template for this many receivers at each of the edges 0x103.., as the generator's. */
static int
build(struct encap_template *t, const unsigned counts[], size_t n_edges)
{
    static struct srh_copy copies[128];
    struct in6_addr src = hex_addr("5f00:0:200::1"), dst = hex_addr("5f00:0:100:f000::"),
                    proxy = hex_addr("fd00:ffff::1");
    size_t n = 0;

    for (size_t e = 0; e < n_edges; e++) {
        for (unsigned i = 0; i < counts[e]; i++, n++) {
            struct in6_addr edge = hex_addr("5f00:0:103::1"), addr = hex_addr("fd00:1::");

            edge.s6_addr[5] = (uint8_t) (3 + e);
            addr.s6_addr[15] = (uint8_t) (n + 1);
            copies[n] = (struct srh_copy){edge, addr, 0x12 + (uint32_t) n};
        }
    }
    return encap_template_build(t, &src, &dst, &proxy, copies, n);
}

static const unsigned fig1[] = {2, 1, 2};

/* A signed frame of Figure 1's receivers with nothing in it. */
struct sample {
    uint8_t bytes[ETH_LEN + ENCAP_MAX_LEN + IP6_HDR_LEN];
    uint32_t len;
    struct parsed h;
};

static enum drop_reason
parse_sample(struct sample *s)
{
    return parse_frame(s->bytes, s->len, &s->h);
}

static void
sample_of(struct sample *s, const struct encap_template *t)
{
    memset(s, 0, sizeof *s);
    s->len = (uint32_t) (ETH_LEN + t->len + IP6_HDR_LEN);
    ((struct eth_hdr *) s->bytes)->type = be16_put(ETH_TYPE_IP6);
    encap_template_stamp(t, s->bytes + ETH_LEN, IP6_HDR_LEN, 2, 0x12345);
    struct ip6_hdr_wire *inner = (struct ip6_hdr_wire *) (s->bytes + ETH_LEN + t->len);
    ip6_set_vtf(inner, 0, 0);
    inner->nh = IP6_NH_NONE;
    ck_assert_int_eq(parse_sample(s), DROP_none);
}

static void
make_sample(struct sample *s, unsigned int tlvs)
{
    struct encap_template t;
    struct auth_config c = config_of(tlvs, KEY);

    ck_assert_int_eq(build(&t, fig1, 3), 0);
    ck_assert_int_eq(auth_sign(&t, &c, &epoch), 0);
    sample_of(s, &t);
}

/* A verifier that wants these TLVs, and knows all keys. */
static struct auth_verifier *
verifier_of(unsigned int tlvs)
{
    struct auth_verifier *v = auth_verifier_create(&epoch);
    struct auth_config c = config_of(tlvs, 0);

    auth_verifier_configure(v, &c, 0);
    return v;
}

static enum drop_reason
verify_once(unsigned int tlvs, const struct sample *s)
{
    struct auth_verifier *v = verifier_of(tlvs);
    enum drop_reason why = auth_verify(v, s->bytes, &s->h, 0).why;

    auth_verifier_destroy(v);
    return why;
}

static const struct {
    unsigned int tlvs;
    size_t key;
    size_t n_edges;
    uint32_t designated_qpn;
} vectors[] = {
    {AUTH_MT, 0, 3, DESIGNATED_QPN},
    {AUTH_HMAC, 0, 3, DESIGNATED_QPN},
    {AUTH_MT | AUTH_HMAC, 0, 3, DESIGNATED_QPN},
    {AUTH_MT, 1, 3, DESIGNATED_QPN},
    {AUTH_HMAC, 1, 3, DESIGNATED_QPN},
    {AUTH_MT | AUTH_HMAC, 1, 3, DESIGNATED_QPN},
    {AUTH_MT, 2, 3, DESIGNATED_QPN},
    {AUTH_HMAC, 2, 3, DESIGNATED_QPN},
    {AUTH_MT | AUTH_HMAC, 2, 3, DESIGNATED_QPN},
    {AUTH_MT, 1, 0, DESIGNATED_QPN},
    {AUTH_MT | AUTH_HMAC, 1, 3, DESIGNATED_QPN + 1},
};

/* Proves MT-9-2, MT-6-R9524-9. */
START_TEST(same_as_vectors)
    {
        struct auth_config c = config_of(vectors[_i].tlvs, keys[vectors[_i].key].id);
        struct encap_template t;
        struct sample s;
        uint32_t len;
        uint8_t *frame = pcap_file_frame("tests/vectors/auth-scapy.pcap", (unsigned) _i, &len);

        epoch.designated_qpn = vectors[_i].designated_qpn;
        ck_assert_int_eq(build(&t, fig1, vectors[_i].n_edges), 0);
        size_t plain = t.len;
        ck_assert_int_eq(auth_sign(&t, &c, &epoch), 0);
        ck_assert_uint_eq(t.len, plain + auth_len(c.tlvs));
        ck_assert_uint_lt(t.len, len);
        uint8_t out[ENCAP_MAX_LEN];
        encap_template_stamp(&t, out, (uint16_t) (len - ETH_LEN - t.len), 2, 0x12345);
        ck_assert_mem_eq(out, frame + ETH_LEN, t.len);

        /* The edge is content with the vector, too. */
        memcpy(s.bytes, frame, len);
        s.len = len;
        ck_assert_int_eq(parse_sample(&s), DROP_none);
        ck_assert_int_eq(verify_once(c.tlvs, &s), DROP_none);
        free(frame);
    }
END_TEST

/* Edges and receivers at each: the most that fit beside a TLV of 40 bytes. */
static const struct {
    unsigned n_edges, n_each;
} most[] = {{8, 11}, {10, 8}, {19, 4}, {31, 2}, {45, 1}};

START_TEST(capacity)
    {
        static struct encap_template t;
        struct auth_config c = config_of(AUTH_MT, KEY);
        unsigned counts[64];

        for (size_t i = 0; i < 64; i++) {
            counts[i] = most[_i].n_each;
        }
        ck_assert_int_eq(build(&t, counts, most[_i].n_edges), 0);
        ck_assert_int_eq(auth_sign(&t, &c, &epoch), 0);
        ck_assert_uint_le(t.len, ENCAP_MAX_LEN);

        /* One edge more fits without the TLV at most. */
        if (!build(&t, counts, most[_i].n_edges + 1)) {
            struct encap_template before = t;

            ck_assert_int_eq(auth_sign(&t, &c, &epoch), EMSGSIZE);
            ck_assert_mem_eq(&t, &before, sizeof t);
        }
    }
END_TEST

/* With the TLV 2048 bytes, which Hdr Ext Len can say, and 2056, which it cannot. */
START_TEST(limit_to_the_byte)
    {
        static const unsigned fits[] = {8, 8, 8, 8, 8, 8, 8, 8, 8, 7, 7};
        static const unsigned exceeds[] = {7, 7, 7, 7, 7, 7, 6, 6, 6, 6, 6, 6, 6};
        static struct encap_template t, before;
        struct auth_config c = config_of(AUTH_MT, KEY);

        ck_assert_int_eq(build(&t, fits, sizeof fits / sizeof *fits), 0);
        ck_assert_uint_eq(t.len, IP6_HDR_LEN + SRH_MAX_LEN - 40);
        ck_assert_int_eq(auth_sign(&t, &c, &epoch), 0);
        ck_assert_uint_eq(t.len, IP6_HDR_LEN + SRH_MAX_LEN);
        ck_assert_uint_eq(t.bytes[IP6_HDR_LEN + offsetof(struct srh_hdr, hdr_ext_len)], 255);

        ck_assert_int_eq(build(&t, exceeds, sizeof exceeds / sizeof *exceeds), 0);
        ck_assert_uint_eq(t.len, IP6_HDR_LEN + SRH_MAX_LEN - 32);
        before = t;
        ck_assert_int_eq(auth_sign(&t, &c, &epoch), EMSGSIZE);
        ck_assert_mem_eq(&t, &before, sizeof t);
    }
END_TEST

START_TEST(not_signed)
    {
        static struct encap_template t, before;
        struct auth_config none = config_of(0, 0), unknown = config_of(AUTH_MT, 8);

        ck_assert_int_eq(build(&t, fig1, 3), 0);
        before = t;
        ck_assert_int_eq(auth_sign(&t, &none, &epoch), 0);
        ck_assert_mem_eq(&t, &before, sizeof t);
        ck_assert_int_eq(auth_sign(&t, &unknown, &epoch), ENOKEY);
        ck_assert_mem_eq(&t, &before, sizeof t);
    }
END_TEST

/* Is this byte of the sample part of what the TLV protects, or of the TLV? */
static bool
is_covered(const struct sample *s, unsigned int tlvs, size_t ofs)
{
    size_t src = s->h.ip.ofs + offsetof(struct ip6_hdr_wire, src);
    size_t srh = s->h.srh_ofs;

    if (ofs >= src && ofs < src + sizeof(struct in6_addr)) {
        return true;
    }
    if (tlvs & AUTH_MT) {
        return ofs >= srh + offsetof(struct srh_hdr, last_entry) && ofs < srh + s->h.srh_len;
    }
    return ofs == srh + offsetof(struct srh_hdr, last_entry)
           || ofs == srh + offsetof(struct srh_hdr, flags)
           || (ofs >= srh + sizeof(struct srh_hdr)
               && ofs < srh + sizeof(struct srh_hdr) + sizeof(struct in6_addr))
           || (ofs >= s->h.hmac_ofs && ofs < s->h.hmac_ofs + sizeof(struct auth_tlv));
}

static const unsigned int alone[] = {AUTH_MT, AUTH_HMAC};

/* The digests of an epoch fit no other: neither another Designated QPN, nor another Proxy Address,
 * even though the Segment List of the SRH says which Proxy it is for. */
START_TEST(each_epoch_has_its_own)
    {
        unsigned int tlvs = alone[_i];
        struct sample s;

        make_sample(&s, tlvs);
        ck_assert_int_eq(verify_once(tlvs, &s), DROP_none);
        for (unsigned bit = 0; bit < 24; bit++) {
            epoch.designated_qpn ^= 1u << bit;
            ck_assert_int_eq(verify_once(tlvs, &s), DROP_auth_bad);
            epoch.designated_qpn ^= 1u << bit;
        }
        for (unsigned bit = 0; bit < 128; bit++) {
            epoch.proxy.s6_addr[bit / 8] ^= (uint8_t) (1u << bit % 8);
            ck_assert_int_eq(verify_once(tlvs, &s), DROP_auth_bad);
            epoch.proxy.s6_addr[bit / 8] ^= (uint8_t) (1u << bit % 8);
        }
        ck_assert_int_eq(verify_once(tlvs, &s), DROP_none);
    }
END_TEST

/* Each bit of outer header and SRH turned over, one at a time: where the parser has no objection,
 * what is covered is refused and what is not is accepted, by a verifier that has seen the right one
 * as by one that has not.  Proves MT-9-2, MT-9-6. */
START_TEST(every_bit)
    {
        unsigned int tlvs = alone[_i];
        struct auth_verifier *v = verifier_of(tlvs);
        unsigned n_refused = 0, n_accepted = 0;
        struct sample good, s;

        make_sample(&good, tlvs);
        ck_assert_int_eq(auth_verify(v, good.bytes, &good.h, 0).why, DROP_none);
        for (size_t bit = 8 * good.h.ip.ofs; bit < 8u * (good.h.srh_ofs + good.h.srh_len); bit++) {
            bool covered = is_covered(&good, tlvs, bit / 8);

            s = good;
            s.bytes[bit / 8] ^= (uint8_t) (1 << bit % 8);
            if (parse_sample(&s) != DROP_none || !s.h.srh_ofs) {
                continue;
            }
            bool moved = s.h.srh_len != good.h.srh_len; /* Hdr Ext Len says what is covered. */
            bool refused = covered || (moved && tlvs & AUTH_MT);
            ck_assert_msg(!!verify_once(tlvs, &s) == refused, "bit %zu", bit);
            ck_assert_msg(!!auth_verify(v, s.bytes, &s.h, 0).why == refused, "bit %zu, later", bit);
            n_refused += refused;
            n_accepted += !refused;
        }
        ck_assert_int_eq(auth_verify(v, good.bytes, &good.h, 0).why, DROP_none);
        /* All of a source address is covered; a destination, hop limit, Segments Left are not. */
        ck_assert_uint_gt(n_refused, 128);
        ck_assert_uint_gt(n_accepted, 128);
        auth_verifier_destroy(v);
    }
END_TEST

/* Segments Left has two legal values here.  With D the destination does not matter. */
START_TEST(what_may_change)
    {
        unsigned int tlvs = alone[_i];
        struct sample s;

        make_sample(&s, tlvs);
        struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) (s.bytes + s.h.ip.ofs);
        ip->dst = hex_addr("5f00:0:103:e001::");
        ip->hlim = 3;
        ((struct srh_hdr *) (s.bytes + s.h.srh_ofs))->segments_left = 0;
        ck_assert_int_eq(parse_sample(&s), DROP_none);
        ck_assert_int_eq(verify_once(tlvs, &s), DROP_none);
    }
END_TEST

/* Without D the destination has to be the active segment (RFC 8754 2.1.2). */
START_TEST(hmac_without_d)
    {
        struct sample s;
        struct auth_verifier *v = verifier_of(AUTH_HMAC);

        make_sample(&s, AUTH_HMAC);
        struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) (s.bytes + s.h.ip.ofs);
        struct srh_hdr *srh = (struct srh_hdr *) (s.bytes + s.h.srh_ofs);
        struct auth_tlv *tlv = (struct auth_tlv *) (s.bytes + s.h.hmac_ofs);
        /* Of HMAC-SHA256(K, 5f00:0:200::1 | 0 0 | 0 0 | 7 | fd00:ffff::1), with K =
         * HMAC-SHA256("0123456789abcdef", "SRv6 multicast epoch" | fd00:ffff::1 | 0 0x101), by
         * Python's hmac. */
        tlv->flags = be16_put(0);
        hex_bytes("5ffc0cd3dbeb3cd3265c15aea30e306c50993778a6ccc44a067b638975a3a047", tlv->hmac,
                  32);
        srh->segments_left = 0;
        ip->dst = hex_addr("fd00:ffff::1");
        ck_assert_int_eq(parse_sample(&s), DROP_none);
        ck_assert_int_eq(auth_verify(v, s.bytes, &s.h, 0).why, DROP_none);
        ip->dst = hex_addr("5f00:0:103:e001::");
        ck_assert_int_eq(auth_verify(v, s.bytes, &s.h, 0).why, DROP_auth_bad);
        ip->dst = hex_addr("fd00:ffff::1");
        srh->segments_left = 1; /* none of the list. */
        ck_assert_int_eq(parse_sample(&s), DROP_none);
        ck_assert_int_eq(auth_verify(v, s.bytes, &s.h, 0).why, DROP_auth_bad);
        auth_verifier_destroy(v);
    }
END_TEST

START_TEST(missing)
    {
        struct sample s;

        make_sample(&s, 0);
        ck_assert_int_eq(verify_once(0, &s), DROP_none);
        ck_assert_int_eq(verify_once(AUTH_MT, &s), DROP_auth_missing);
        ck_assert_int_eq(verify_once(AUTH_HMAC, &s), DROP_auth_missing);
        make_sample(&s, AUTH_HMAC);
        ck_assert_int_eq(verify_once(AUTH_MT, &s), DROP_auth_missing);
        ck_assert_int_eq(verify_once(AUTH_MT | AUTH_HMAC, &s), DROP_auth_missing);
        make_sample(&s, AUTH_MT);
        ck_assert_int_eq(verify_once(AUTH_HMAC, &s), DROP_auth_missing);
        ck_assert_int_eq(verify_once(AUTH_MT | AUTH_HMAC, &s), DROP_auth_missing);
        make_sample(&s, AUTH_MT | AUTH_HMAC);
        ck_assert_int_eq(verify_once(AUTH_MT, &s), DROP_none);
        ck_assert_int_eq(verify_once(AUTH_HMAC, &s), DROP_none);
        ck_assert_int_eq(verify_once(AUTH_MT | AUTH_HMAC, &s), DROP_none);
        /* A TLV that nobody asks for may be nonsense. */
        s.bytes[s.h.auth_ofs + 20] ^= 1;
        ck_assert_int_eq(verify_once(0, &s), DROP_none);
        ck_assert_int_eq(verify_once(AUTH_HMAC, &s), DROP_none);
        ck_assert_int_eq(verify_once(AUTH_MT | AUTH_HMAC, &s), DROP_auth_bad);
    }
END_TEST

/* Puts 'len' bytes behind the last TLV, and has the parser look again. */
static enum drop_reason
append_bytes(struct sample *s, const void *bytes, size_t len)
{
    struct srh_hdr *srh = (struct srh_hdr *) (s->bytes + s->h.srh_ofs);
    struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) (s->bytes + s->h.ip.ofs);
    uint8_t *end = s->bytes + s->h.srh_ofs + s->h.srh_len;

    memmove(end + len, end, IP6_HDR_LEN);
    memcpy(end, bytes, len);
    srh->hdr_ext_len = (uint8_t) (srh->hdr_ext_len + len / 8);
    ip->plen = be16_put((uint16_t) (be16_get(ip->plen) + len));
    s->len += (uint32_t) len;
    return parse_sample(s);
}

/* The first TLV of a kind counts.  What follows an MT-AUTH TLV is covered by it. */
START_TEST(two_of_them)
    {
        struct sample s;
        uint8_t again[sizeof(struct auth_tlv)];

        make_sample(&s, AUTH_MT);
        memcpy(again, s.bytes + s.h.auth_ofs, sizeof again);
        ck_assert_int_eq(append_bytes(&s, again, sizeof again), DROP_none);
        ck_assert_int_eq(verify_once(AUTH_MT, &s), DROP_auth_bad);

        make_sample(&s, AUTH_HMAC);
        memcpy(again, s.bytes + s.h.hmac_ofs, sizeof again);
        ck_assert_int_eq(append_bytes(&s, again, sizeof again), DROP_none);
        ck_assert_int_eq(verify_once(AUTH_HMAC, &s), DROP_none);
        s.bytes[s.h.hmac_ofs + 20] ^= 1;
        ck_assert_int_eq(verify_once(AUTH_HMAC, &s), DROP_auth_bad);
    }
END_TEST

/* With a good HMAC, but 4 bytes from where it may be; or cut short. */
START_TEST(odd_place)
    {
        uint8_t tlv[2 * sizeof(struct auth_tlv)] = {SRH_TLV_PADN, 2};
        unsigned int tlvs = alone[_i];
        struct sample s, shorter;
        struct encap_template t;

        make_sample(&s, tlvs);
        uint16_t ofs = tlvs == AUTH_MT ? s.h.auth_ofs : s.h.hmac_ofs;
        shorter = s;
        shorter.bytes[ofs + 1] = 30; /* and PadN for the rest. */
        shorter.bytes[ofs + 32] = SRH_TLV_PADN;
        shorter.bytes[ofs + 33] = 6;
        ck_assert_int_eq(parse_sample(&shorter), DROP_none);
        ck_assert_int_eq(verify_once(tlvs, &shorter), DROP_auth_missing);
        s.bytes[ofs + 1] = 39;
        ck_assert_int_eq(parse_sample(&s), DROP_srh_tlv);

        ck_assert_int_eq(build(&t, fig1, 3), 0);
        sample_of(&shorter, &t);
        s.bytes[ofs + 1] = 38;
        memcpy(tlv + 4, s.bytes + ofs, sizeof(struct auth_tlv));
        tlv[sizeof(struct auth_tlv) + 4] = SRH_TLV_PADN;
        tlv[sizeof(struct auth_tlv) + 5] = 2;
        ck_assert_int_eq(append_bytes(&shorter, tlv, sizeof(struct auth_tlv) + 8), DROP_none);
        ck_assert_uint_ne(shorter.h.auth_ofs + shorter.h.hmac_ofs, 0);
        ck_assert_int_eq(verify_once(tlvs, &shorter), DROP_auth_missing);
    }
END_TEST

START_TEST(wrong_key)
    {
        unsigned int tlvs = alone[_i];
        struct auth_key other[] = {keys[0], keys[1]};
        struct auth_config c = {.tlvs = tlvs, .n_keys = 2, .keys = other};
        struct auth_verifier *v = auth_verifier_create(&epoch);
        struct auth_result r;
        struct sample s;

        make_sample(&s, tlvs);
        other[1].secret[15] ^= 1;
        auth_verifier_configure(v, &c, 0);
        r = auth_verify(v, s.bytes, &s.h, 0);
        ck_assert_int_eq(r.why, DROP_auth_bad);
        ck_assert_uint_eq(r.key, KEY);
        auth_verifier_destroy(v);

        v = auth_verifier_create(&epoch);
        c.n_keys = 1;
        auth_verifier_configure(v, &c, 0);
        r = auth_verify(v, s.bytes, &s.h, 0);
        ck_assert_int_eq(r.why, DROP_auth_unknown_key);
        ck_assert_uint_eq(r.key, KEY);
        const struct auth_stats *stats = auth_verifier_stats(v);
        ck_assert_uint_eq(stats->n_refused, 1);
        ck_assert_int_eq(stats->refused.why, DROP_auth_unknown_key);
        ck_assert_uint_eq(stats->refused.key, KEY);
        auth_verifier_destroy(v);
    }
END_TEST

/* Computed once; a forged one in between does not get into the cache, nor out of it what is
 * there. */
START_TEST(cache)
    {
        unsigned int tlvs = alone[_i];
        struct auth_verifier *v = verifier_of(tlvs);
        const struct auth_stats *stats = auth_verifier_stats(v);
        struct sample good, forged;

        make_sample(&good, tlvs);
        forged = good;
        forged.bytes[forged.h.srh_ofs + sizeof(struct srh_hdr) + 15] ^= 1; /* another Proxy. */
        for (unsigned i = 0; i < 10; i++) {
            struct auth_result r = auth_verify(v, good.bytes, &good.h, 0);

            ck_assert_int_eq(r.why, DROP_none);
            ck_assert_uint_eq(r.key, KEY);
            ck_assert_int_eq(r.cached, i > 0);
            ck_assert_int_eq(auth_verify(v, forged.bytes, &forged.h, 0).why, DROP_auth_bad);
        }
        ck_assert_uint_eq(stats->n_computed, 1);
        ck_assert_uint_eq(stats->n_cached, 9);
        ck_assert_uint_eq(stats->n_refused, 10);

        /* The same configuration changes nothing. */
        struct auth_config c = config_of(tlvs, 0);
        auth_verifier_configure(v, &c, 1);
        ck_assert(auth_verify(v, good.bytes, &good.h, 2).cached);
        auth_verifier_destroy(v);
    }
END_TEST

/* A key that was taken out, and a TLV that was asked for, count a second later and not before. */
START_TEST(linger)
    {
        struct auth_verifier *v = verifier_of(0);
        struct auth_config want = {.tlvs = AUTH_MT, .n_keys = 1, .keys = &keys[1]};
        struct auth_config other = {.tlvs = AUTH_MT, .n_keys = 1, .keys = &keys[0]};
        uint64_t now = 5000000;
        struct sample plain, s;

        make_sample(&plain, 0);
        make_sample(&s, AUTH_MT);
        auth_verifier_configure(v, &want, now);
        ck_assert_int_eq(auth_verify(v, plain.bytes, &plain.h, now + AUTH_LINGER_USEC - 1).why,
                         DROP_none);
        ck_assert_int_eq(auth_verify(v, s.bytes, &s.h, now).why, DROP_none);
        auth_verifier_configure(v, &want, now + 10); /* does not begin anew. */
        ck_assert_int_eq(auth_verify(v, plain.bytes, &plain.h, now + AUTH_LINGER_USEC).why,
                         DROP_auth_missing);
        ck_assert_int_eq(auth_verify(v, s.bytes, &s.h, now + AUTH_LINGER_USEC).why, DROP_none);

        now += 10000000;
        auth_verifier_configure(v, &other, now);
        struct auth_result r = auth_verify(v, s.bytes, &s.h, now + AUTH_LINGER_USEC - 1);
        ck_assert_int_eq(r.why, DROP_none);
        ck_assert(!r.cached);
        ck_assert_int_eq(auth_verify(v, plain.bytes, &plain.h, now).why, DROP_auth_missing);
        ck_assert_int_eq(auth_verify(v, s.bytes, &s.h, now + AUTH_LINGER_USEC).why,
                         DROP_auth_unknown_key);
        auth_verifier_destroy(v);
    }
END_TEST

/* What was right before is not only unused after that second, it is gone: it does not count even
 * for a packet that came earlier. */
START_TEST(overwritten)
    {
        struct auth_verifier *v = verifier_of(AUTH_MT);
        struct auth_config other = {.tlvs = AUTH_MT, .n_keys = 1, .keys = &keys[0]};
        uint64_t now = 5000000;
        struct sample s;

        make_sample(&s, AUTH_MT);
        ck_assert_uint_eq(auth_verifier_deadline(v), UINT64_MAX);
        auth_verifier_configure(v, &other, now);
        ck_assert_uint_eq(auth_verifier_deadline(v), now + AUTH_LINGER_USEC);
        auth_verifier_timer(v, now + AUTH_LINGER_USEC - 1);
        ck_assert_int_eq(auth_verify(v, s.bytes, &s.h, now).why, DROP_none);
        auth_verifier_timer(v, now + AUTH_LINGER_USEC);
        ck_assert_uint_eq(auth_verifier_deadline(v), UINT64_MAX);
        ck_assert_int_eq(auth_verify(v, s.bytes, &s.h, now).why, DROP_auth_unknown_key);
        auth_verifier_destroy(v);
    }
END_TEST

Suite *
auth_suite(void)
{
    Suite *suite = suite_create("auth");
    TCase *tc = tcase_create("auth");

    tcase_add_checked_fixture(tc, fill_inputs, NULL);
    tcase_add_loop_test(tc, same_as_vectors, 0, sizeof vectors / sizeof vectors[0]);
    tcase_add_loop_test(tc, capacity, 0, sizeof most / sizeof most[0]);
    tcase_add_test(tc, limit_to_the_byte);
    tcase_add_test(tc, not_signed);
    tcase_add_loop_test(tc, each_epoch_has_its_own, 0, 2);
    tcase_add_loop_test(tc, every_bit, 0, 2);
    tcase_add_loop_test(tc, what_may_change, 0, 2);
    tcase_add_test(tc, hmac_without_d);
    tcase_add_test(tc, missing);
    tcase_add_test(tc, two_of_them);
    tcase_add_loop_test(tc, odd_place, 0, 2);
    tcase_add_loop_test(tc, wrong_key, 0, 2);
    tcase_add_loop_test(tc, cache, 0, 2);
    tcase_add_test(tc, linger);
    tcase_add_test(tc, overwritten);
    suite_add_tcase(suite, tc);
    return suite;
}
