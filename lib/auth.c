/* SPDX-License-Identifier: Apache-2.0
 *
 * Authentication of a group's packets.
 *
 * Theory of operation
 * -------------------
 * The source agent computes when it is configured, and stamps the result on each
 * packet with the rest of its template.  An edge computes for the first packet;
 * then it compares source address and SRH with the one that it has verified last,
 * every byte but Segments Left.  So packets of a group cost a comparison, and a
 * forged one, which never gets into the cache, one or two HMACs.  One SRH per
 * epoch is enough, because a source agent has one template for what it sends to
 * an edge.
 *
 * Neither HMAC is over anything that tells a group's epochs apart, so the key does.  It is
 * derived when a node is configured: packets cost no more for that.
 *
 * Keys and requirements change while packets are on their way.  The controller
 * sees to it that all edges know a key before the source agent uses it, and takes
 * an old one out after.  AUTH_LINGER_USEC is for packets that were sent before
 * that and come after: they are verified by the former configuration, without
 * the cache.
 */
#include "lib/auth.h"

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>

#include "lib/alloc.h"
#include "lib/data-auth.h"
#include "lib/parse.h"
#include "lib/srh.h"

/* All TLVs are aligned to 8n from the SRH's first byte. */
#define TLV_ALIGN   8
#define COVERED_OFS offsetof(struct srh_hdr, last_entry)

/* What counts, with keys of the epoch. */
struct counted {
    struct auth_config config;
    struct data_key **data; /* DATA-AUTH: beside config.keys; otherwise NULL. */
};

struct auth_verifier {
    struct auth_epoch epoch;
    struct auth_config shared; /* as configured: a node gets it again with each generation. */
    struct counted now;
    struct counted former; /* counts until 'until', and is overwritten then. */
    uint64_t until;        /* UINT64_MAX: there is no former one. */
    bool configured;
    struct data_window window;

    /* What 'now' has verified last. */
    struct in6_addr src;
    uint16_t srh_len; /* 0: nothing. */
    uint8_t srh[SRH_MAX_LEN];

    struct auth_stats stats;
};

const struct auth_key *
auth_find_key(const struct auth_config *c, uint32_t id)
{
    for (size_t i = 0; i < c->n_keys; i++) {
        if (c->keys[i].id == id) {
            return &c->keys[i];
        }
    }
    return NULL;
}

void
auth_config_clone(struct auth_config *dst, const struct auth_config *src)
{
    *dst = *src;
    dst->keys = must_copy(src->keys, src->n_keys, sizeof *src->keys);
}

void
auth_config_uninit(struct auth_config *c)
{
    if (c->keys) {
        OPENSSL_cleanse(c->keys, c->n_keys * sizeof *c->keys);
    }
    free(c->keys);
    *c = (struct auth_config){0};
}

static bool
same_config(const struct auth_config *a, const struct auth_config *b)
{
    if (a->tlvs != b->tlvs || a->n_keys != b->n_keys) {
        return false;
    }
    for (size_t i = 0; i < a->n_keys; i++) {
        const struct auth_key *x = &a->keys[i];
        const struct auth_key *y = auth_find_key(b, x->id);

        if (!y || x->len != y->len || memcmp(x->secret, y->secret, x->len)) {
            return false;
        }
    }
    return true;
}

/*
 * The HMACs.
 */

struct piece {
    const void *bytes;
    size_t len;
};

static EVP_MAC *hmac_sha256; /* all threads'. */

static void
fetch_hmac(void)
{
    hmac_sha256 = EVP_MAC_fetch(NULL, "HMAC", NULL);
}

/* HMAC-SHA256 over the pieces.  A key without a secret makes none. */
static bool
compute(const struct auth_key *key, const struct piece *pieces, size_t n,
        uint8_t out[AUTH_DIGEST_LEN])
{
    static pthread_once_t fetched = PTHREAD_ONCE_INIT;
    char digest[] = "SHA256";
    const OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end(),
    };
    size_t len = 0;

    pthread_once(&fetched, fetch_hmac);
    EVP_MAC_CTX *ctx = hmac_sha256 && key->len ? EVP_MAC_CTX_new(hmac_sha256) : NULL;
    bool ok = ctx && EVP_MAC_init(ctx, key->secret, key->len, params);
    for (size_t i = 0; ok && i < n; i++) {
        ok = EVP_MAC_update(ctx, pieces[i].bytes, pieces[i].len);
    }
    ok = ok && EVP_MAC_final(ctx, out, &len, AUTH_DIGEST_LEN) && len == AUTH_DIGEST_LEN;
    EVP_MAC_CTX_free(ctx);
    return ok;
}

/* Makes *key the one that counts in an epoch.  It has the shared key's id; no secret if libcrypto
 * does not work. */
static void
derive_key(const struct auth_key *shared, const struct auth_epoch *epoch, struct auth_key *key)
{
    static const char label[] = "SRv6 multicast epoch";
    const be32_t qpn = be32_put(epoch->designated_qpn);
    const struct piece pieces[] = {
        {label, sizeof label - 1},
        {&epoch->proxy, sizeof epoch->proxy},
        {&qpn, sizeof qpn},
    };

    *key = (struct auth_key){.id = shared->id};
    if (compute(shared, pieces, sizeof pieces / sizeof *pieces, key->secret)) {
        key->len = AUTH_DIGEST_LEN;
    }
}

/* The HMAC of the MT-AUTH TLV, which is at 'tlv'. */
static bool
compute_mt(const struct auth_key *key, const struct in6_addr *src, const struct srh_hdr *srh,
           size_t srh_len, const struct auth_tlv *tlv, uint8_t out[AUTH_DIGEST_LEN])
{
    static const uint8_t zeros[AUTH_DIGEST_LEN];
    const uint8_t *begin = (const uint8_t *) srh + COVERED_OFS;
    const uint8_t *end = (const uint8_t *) srh + srh_len;
    const uint8_t *after = tlv->hmac + sizeof tlv->hmac;
    const struct piece pieces[] = {
        {src, sizeof *src},
        {begin, (size_t) (tlv->hmac - begin)},
        {zeros, sizeof zeros},
        {after, (size_t) (end - after)},
    };

    return compute(key, pieces, sizeof pieces / sizeof *pieces, out);
}

/* The HMAC of the HMAC TLV (RFC 8754 2.1.2.1). */
static bool
compute_rfc(const struct auth_key *key, const struct in6_addr *src, const struct srh_hdr *srh,
            const struct auth_tlv *tlv, uint8_t out[AUTH_DIGEST_LEN])
{
    const struct piece pieces[] = {
        {src, sizeof *src},
        {&srh->last_entry, sizeof srh->last_entry},
        {&srh->flags, sizeof srh->flags},
        {&tlv->flags, sizeof tlv->flags},
        {&tlv->key_id, sizeof tlv->key_id},
        {srh + 1, (srh->last_entry + 1u) * sizeof(struct in6_addr)},
    };

    return compute(key, pieces, sizeof pieces / sizeof *pieces, out);
}

/*
 * The source agent's side.
 */

size_t
auth_len(unsigned int tlvs)
{
    unsigned int n =
        (tlvs & AUTH_MT ? 1u : 0u) + (tlvs & AUTH_HMAC ? 1u : 0u) + (tlvs & AUTH_DATA ? 1u : 0u);

    return n * sizeof(struct auth_tlv);
}

/* Adds a TLV without its HMAC at the end of 't', whose length is a multiple of 8. */
static struct auth_tlv *
append(struct encap_template *t, uint8_t type, uint16_t flags, uint32_t key_id)
{
    struct auth_tlv *tlv = (struct auth_tlv *) (t->bytes + t->len);

    *tlv = (struct auth_tlv){
        .type = type, .len = AUTH_TLV_LEN, .flags = be16_put(flags), .key_id = be32_put(key_id)};
    t->len += sizeof *tlv;
    return tlv;
}

int
auth_sign(struct encap_template *t, const struct auth_config *c, const struct auth_epoch *epoch)
{
    struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) t->bytes;
    struct srh_hdr *srh = (struct srh_hdr *) (ip + 1);
    const struct auth_key *shared = auth_find_key(c, c->key);
    size_t srh_len = t->len - IP6_HDR_LEN + auth_len(c->tlvs);
    bool ok = true;

    if (!c->tlvs) {
        return 0;
    }
    if (!shared) {
        return ENOKEY;
    }
    if (srh_len > SRH_MAX_LEN) {
        return EMSGSIZE;
    }
    struct auth_key key;
    uint16_t len = t->len;

    derive_key(shared, epoch, &key);
    srh->hdr_ext_len = (uint8_t) (srh_len / 8 - 1);
    /* MT-AUTH covers the other one. */
    if (c->tlvs & AUTH_HMAC) {
        struct auth_tlv *tlv = append(t, SRH_TLV_HMAC, HMAC_TLV_D, key.id);

        ok = compute_rfc(&key, &ip->src, srh, tlv, tlv->hmac);
    }
    if (ok && c->tlvs & AUTH_MT) {
        struct auth_tlv *tlv = append(t, SRH_TLV_MT_AUTH, 0, key.id);

        ok = compute_mt(&key, &ip->src, srh, srh_len, tlv, tlv->hmac);
    }
    if (c->tlvs & AUTH_DATA) {
        append(t, SRH_TLV_DATA, 0, key.id);
    }
    OPENSSL_cleanse(&key, sizeof key);
    if (!ok) {
        t->len = len;
        srh->hdr_ext_len = (uint8_t) ((len - IP6_HDR_LEN) / 8 - 1);
        return EIO;
    }
    return 0;
}

/*
 * The edge's side.
 */

struct auth_verifier *
auth_verifier_create(const struct auth_epoch *epoch)
{
    struct auth_verifier *v = must_calloc(1, sizeof *v);

    v->epoch = *epoch;
    v->until = UINT64_MAX;
    return v;
}

/* Leaves no secret in memory. */
static void
counted_uninit(struct counted *c)
{
    for (size_t i = 0; c->data && i < c->config.n_keys; i++) {
        data_key_destroy(c->data[i]);
    }
    free(c->data);
    auth_config_uninit(&c->config);
    *c = (struct counted){.data = NULL};
}

static void
counted_init(struct counted *c, const struct auth_config *shared, const struct auth_epoch *epoch)
{
    auth_config_clone(&c->config, shared);
    c->data = shared->tlvs & AUTH_DATA ? must_calloc(shared->n_keys, sizeof *c->data) : NULL;
    for (size_t i = 0; i < shared->n_keys; i++) {
        derive_key(&shared->keys[i], epoch, &c->config.keys[i]);
        if (c->data) {
            c->data[i] = data_key_create(&shared->keys[i], epoch);
        }
    }
}

void
auth_verifier_forget(struct auth_verifier *v)
{
    auth_config_uninit(&v->shared);
    counted_uninit(&v->now);
    counted_uninit(&v->former);
    v->until = UINT64_MAX;
    v->configured = false;
    v->srh_len = 0;
    v->stats = (struct auth_stats){0};
}

void
auth_verifier_destroy(struct auth_verifier *v)
{
    if (v) {
        auth_verifier_forget(v);
        free(v);
    }
}

void
auth_verifier_configure(struct auth_verifier *v, const struct auth_config *config, uint64_t now)
{
    v->window.floor = config->instance;
    if (v->configured && same_config(&v->shared, config)) {
        return;
    }
    auth_config_uninit(&v->shared);
    auth_config_clone(&v->shared, config);
    counted_uninit(&v->former);
    v->former = v->now;
    v->until = v->configured ? now + AUTH_LINGER_USEC : UINT64_MAX;
    v->configured = true;
    v->srh_len = 0;
    counted_init(&v->now, config, &v->epoch);
}

uint64_t
auth_verifier_deadline(const struct auth_verifier *v)
{
    return v->until;
}

void
auth_verifier_timer(struct auth_verifier *v, uint64_t now)
{
    if (now >= v->until) {
        counted_uninit(&v->former);
        v->until = UINT64_MAX;
    }
}

const struct auth_stats *
auth_verifier_stats(const struct auth_verifier *v)
{
    return &v->stats;
}

/* A frame's parts. */
struct covered {
    const struct ip6_hdr_wire *ip;
    const struct srh_hdr *srh;
    size_t srh_len;
};

/* RFC 8754 2.1.2: D says that the destination need not be the active segment. */
static bool
destination_ok(const struct covered *c, const struct auth_tlv *tlv)
{
    const struct in6_addr *list = (const struct in6_addr *) (c->srh + 1);

    return be16_get(tlv->flags) & HMAC_TLV_D
           || (c->srh->segments_left <= c->srh->last_entry
               && !memcmp(&list[c->srh->segments_left], &c->ip->dst, sizeof *list));
}

/* Does the verdict depend on the destination, which is not in the cache? */
static bool
depends_on_destination(const struct auth_config *config, const uint8_t *data,
                       const struct parsed *h)
{
    return config->tlvs & AUTH_HMAC
           && !(be16_get(((const struct auth_tlv *) (data + h->hmac_ofs))->flags) & HMAC_TLV_D);
}

/* Checks the TLV of type 'which' at data[ofs].  One at a wrong place or of a wrong length counts as
 * missing. */
static struct auth_result
check_tlv(const struct auth_config *config, unsigned int which, const uint8_t *data, uint16_t ofs,
          const struct covered *c)
{
    const struct auth_tlv *tlv = (const struct auth_tlv *) (data + ofs);
    uint8_t hmac[AUTH_DIGEST_LEN];
    bool ok;

    if (!ofs || tlv->len != AUTH_TLV_LEN
        || (size_t) ((const uint8_t *) tlv - (const uint8_t *) c->srh) % TLV_ALIGN) {
        return (struct auth_result){.why = DROP_auth_missing};
    }
    struct auth_result r = {.key = be32_get(tlv->key_id)};
    const struct auth_key *key = auth_find_key(config, r.key);
    if (!key) {
        r.why = DROP_auth_unknown_key;
        return r;
    }
    if (which == AUTH_MT) {
        ok = compute_mt(key, &c->ip->src, c->srh, c->srh_len, tlv, hmac);
    } else {
        ok = destination_ok(c, tlv) && compute_rfc(key, &c->ip->src, c->srh, tlv, hmac);
    }
    r.why = ok && !CRYPTO_memcmp(hmac, tlv->hmac, sizeof hmac) ? DROP_none : DROP_auth_bad;
    return r;
}

/* The same of the DATA-AUTH TLV.  Its packet counts as having come if the tag is right. */
static struct auth_result
check_data(const struct counted *counted, struct data_window *window, const uint8_t *data,
           const struct parsed *h)
{
    const struct data_tlv *tlv = (const struct data_tlv *) (data + h->data_ofs);

    if (!h->data_ofs || (h->data_ofs - h->srh_ofs) % TLV_ALIGN) {
        return (struct auth_result){.why = DROP_auth_missing};
    }
    struct auth_result r = {.key = be32_get(tlv->key_id)};
    const struct auth_key *key = auth_find_key(&counted->config, r.key);
    if (!key) {
        r.why = DROP_auth_unknown_key;
        return r;
    }
    struct data_key *data_key = counted->data[key - counted->config.keys];
    if (!data_key || !data_verify(data_key, data, h)) {
        r.why = DROP_auth_bad;
    } else if (!data_window_take(window, be32_get(tlv->instance), be64_get(tlv->seq))) {
        r.why = DROP_auth_replay;
    }
    return r;
}

static struct auth_result
check(const struct counted *counted, struct data_window *window, const uint8_t *data,
      const struct parsed *h, const struct covered *c)
{
    const struct auth_config *config = &counted->config;
    struct auth_result r = {.why = DROP_none};

    if (config->tlvs & AUTH_MT) {
        r = check_tlv(config, AUTH_MT, data, h->auth_ofs, c);
    }
    if (!r.why && config->tlvs & AUTH_HMAC) {
        r = check_tlv(config, AUTH_HMAC, data, h->hmac_ofs, c);
    }
    if (!r.why && config->tlvs & AUTH_DATA) {
        r = check_data(counted, window, data, h);
    }
    return r;
}

/* Are all bytes that may not change, and some that may, equal to what was verified? */
static bool
is_cached(const struct auth_verifier *v, const struct covered *c)
{
    const uint8_t *srh = (const uint8_t *) c->srh;
    enum { SL = offsetof(struct srh_hdr, segments_left) };

    return c->srh_len == v->srh_len && !memcmp(&c->ip->src, &v->src, sizeof v->src)
           && !memcmp(srh, v->srh, SL)
           && !memcmp(srh + SL + 1, v->srh + SL + 1, v->srh_len - SL - 1);
}

struct auth_result
auth_verify(struct auth_verifier *v, const uint8_t *data, const struct parsed *h, uint64_t now)
{
    const struct covered c = {
        .ip = (const struct ip6_hdr_wire *) (data + h->ip.ofs),
        .srh = (const struct srh_hdr *) (data + h->srh_ofs),
        .srh_len = h->srh_len,
    };
    const struct auth_config *config = &v->now.config;
    struct auth_result r = {.why = DROP_none};

    if (!config->tlvs) {
        return r;
    }
    if (!(config->tlvs & AUTH_DATA) && is_cached(v, &c)) {
        const uint16_t ofs = config->tlvs & AUTH_MT ? h->auth_ofs : h->hmac_ofs;

        r.key = be32_get(((const struct auth_tlv *) (data + ofs))->key_id);
        r.cached = true;
        v->stats.n_cached++;
        return r;
    }
    r = check(&v->now, &v->window, data, h, &c);
    if (!r.why) {
        v->stats.n_computed++;
        if (config->tlvs & AUTH_DATA || depends_on_destination(config, data, h)) {
            return r;
        }
        v->src = c.ip->src;
        v->srh_len = h->srh_len;
        memcpy(v->srh, c.srh, v->srh_len);
        return r;
    }
    if (v->until != UINT64_MAX && now < v->until) {
        struct auth_result former = check(&v->former, &v->window, data, h, &c);

        if (!former.why) {
            return former;
        }
    }
    v->stats.n_refused++;
    v->stats.refused = r;
    return r;
}
