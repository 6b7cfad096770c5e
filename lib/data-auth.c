/* SPDX-License-Identifier: Apache-2.0
 *
 * Authentication of a group's packets, each by itself.
 *
 * A key has a cipher context with its key schedule in it, so a packet costs the setting of a nonce and
 * one pass over its bytes.
 */
#include "lib/data-auth.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <stdlib.h>

#include "lib/alloc.h"
#include "lib/defect.h"
#include "lib/icrc.h"
#include "lib/packet.h"
#include "lib/parse.h"
#include "lib/srh.h"

/* Bytes of the inner packet up to the end of the BTH: some of them do not count. */
#define HEAD_LEN (IP6_HDR_LEN + sizeof(struct udp_hdr) + sizeof(struct bth))

struct data_key {
    EVP_CIPHER_CTX *ctx;
};

/*
 * Keys.
 */

#define LABEL_LEN 19 /* without a NUL. */

/* What a key is for. */
struct info {
    char label[LABEL_LEN];
    in6_wire_t proxy;
    be32_t designated_qpn, epoch;
    in6_wire_t child, parent_sid; /* of responses only. */
};
static_assert(sizeof(struct info) == LABEL_LEN + 16 + 4 + 4 + 16 + 16, "no padding");

static struct info
info_of(const char label[LABEL_LEN + 1], const struct auth_epoch *epoch)
{
    struct info info = {
        .proxy = epoch->proxy,
        .designated_qpn = be32_put(epoch->designated_qpn),
        .epoch = be32_put(epoch->epoch),
    };

    memcpy(info.label, label, sizeof info.label);
    return info;
}

/* HKDF-SHA256 for the first 'len' bytes of 'info'. */
static bool
derive(const struct auth_key *shared, struct info *info, size_t len, uint8_t key[DATA_KEY_LEN])
{
    struct auth_key secret = *shared;
    char digest[] = "SHA256";
    const OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, secret.secret, secret.len),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info, len),
        OSSL_PARAM_construct_end(),
    };
    EVP_KDF *hkdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
    EVP_KDF_CTX *ctx = hkdf && shared->len ? EVP_KDF_CTX_new(hkdf) : NULL;
    bool ok = ctx && EVP_KDF_derive(ctx, key, DATA_KEY_LEN, params) > 0;

    EVP_KDF_CTX_free(ctx);
    EVP_KDF_free(hkdf);
    OPENSSL_cleanse(&secret, sizeof secret);
    return ok;
}

static struct data_key *
create(const struct auth_key *shared, struct info *info, size_t len)
{
    struct data_key *k = must_calloc(1, sizeof *k);
    uint8_t key[DATA_KEY_LEN];

    k->ctx = EVP_CIPHER_CTX_new();
    bool ok = k->ctx && derive(shared, info, len, key)
              && EVP_EncryptInit_ex(k->ctx, EVP_aes_128_gcm(), NULL, key, NULL);
    OPENSSL_cleanse(key, sizeof key);
    if (!ok) {
        data_key_destroy(k);
        return NULL;
    }
    return k;
}

struct data_key *
data_key_create(const struct auth_key *shared, const struct auth_epoch *epoch)
{
    struct info info = info_of("SRv6 multicast data", epoch);

    return create(shared, &info, offsetof(struct info, child));
}

struct data_key *
data_key_create_up(const struct auth_key *shared, const struct auth_epoch *epoch,
                   const struct in6_addr *child, const struct in6_addr *parent_sid)
{
    struct info info = info_of("SRv6 mcast response", epoch);

    info.child = *child;
    info.parent_sid = *parent_sid;
    return create(shared, &info, sizeof info);
}

void
data_key_destroy(struct data_key *k)
{
    if (k) {
        EVP_CIPHER_CTX_free(k->ctx); /* overwrites it. */
        free(k);
    }
}

/*
 * Tags.
 */

static bool
add(struct data_key *k, const void *bytes, size_t len)
{
    int n;

    return !len || EVP_EncryptUpdate(k->ctx, NULL, &n, bytes, (int) len);
}

static bool
add_srh(struct data_key *k, const struct data_covered *c)
{
    static const uint8_t zeros[DATA_TAG_LEN];
    const uint8_t *begin = &c->srh->last_entry;
    const uint8_t *end = (const uint8_t *) c->srh + c->srh_len;
    const uint8_t *after = c->tlv->tag + sizeof c->tlv->tag;

    return add(k, c->src, sizeof *c->src) && add(k, &c->srh->hdr_ext_len, 1)
           && add(k, begin, (size_t) (c->tlv->tag - begin)) && add(k, zeros, sizeof zeros)
           && add(k, after, (size_t) (end - after));
}

/* Bytes [from, to) of the pieces; to 'out', or else into the tag. */
static bool
walk(struct data_key *k, const struct data_covered *c, size_t from, size_t to, uint8_t *out)
{
    size_t ofs = 0; /* of the piece. */
    bool ok = true;

    for (size_t i = 0; i < c->n_inner && ok; i++) {
        const uint8_t *bytes = c->inner[i].iov_base;
        size_t end = ofs + c->inner[i].iov_len;
        size_t first = from > ofs ? from : ofs, last = to < end ? to : end;

        if (first < last && out) {
            memcpy(out + (first - from), bytes + (first - ofs), last - first);
        } else if (first < last) {
            ok = add(k, bytes + (first - ofs), last - first);
        }
        ofs = end;
    }
    return ok;
}

static bool
add_inner(struct data_key *k, const struct data_covered *c)
{
    uint8_t head[HEAD_LEN], icrc[ROCE_ICRC_LEN];
    struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) head;
    struct bth *bth = (struct bth *) (head + HEAD_LEN - sizeof *bth);
    size_t len = 0;

    for (size_t i = 0; i < c->n_inner; i++) {
        len += c->inner[i].iov_len;
    }
    if (len < sizeof head + sizeof icrc || len > UINT16_MAX) {
        return false;
    }
    walk(k, c, 0, sizeof head, head);
    walk(k, c, len - sizeof icrc, len, icrc);
    ip6_set_vtf(ip, 0, 0);
    ip->hlim = 0;
    if (bth->ack_req & BTH_ACK_REQ) {
        size_t after_qpn =
            len - sizeof icrc - (sizeof head - sizeof *bth) - offsetof(struct bth, ack_req);

        icrc_store(icrc, icrc_load(icrc) ^ icrc_shift(BTH_ACK_REQ, after_qpn));
        bth->ack_req = (uint8_t) (bth->ack_req & ~BTH_ACK_REQ);
    }
    if (DEFECT(DATA_HEADER)) {
        return true;
    }
    return add(k, head, sizeof head) && walk(k, c, sizeof head, len - sizeof icrc, NULL)
           && add(k, icrc, sizeof icrc);
}

bool
data_tag(struct data_key *k, const struct data_covered *c, uint8_t tag[DATA_TAG_LEN])
{
    struct {
        be32_t instance;
        be64_t seq;
    } nonce = {c->tlv->instance, c->tlv->seq};
    static_assert(sizeof nonce == 12, "GCM's nonce");
    int n;

    return EVP_EncryptInit_ex(k->ctx, NULL, NULL, NULL, (const uint8_t *) &nonce) && add_srh(k, c)
           && add_inner(k, c) && EVP_EncryptFinal_ex(k->ctx, NULL, &n)
           && EVP_CIPHER_CTX_ctrl(k->ctx, EVP_CTRL_AEAD_GET_TAG, DATA_TAG_LEN, tag);
}

bool
data_seal_srh(struct data_key *k, struct packet *p, size_t srh_ofs, size_t len, uint32_t instance,
              uint64_t seq)
{
    const struct ip6_hdr_wire *ip = (const struct ip6_hdr_wire *) p->data;
    struct data_tlv *tlv = (struct data_tlv *) (p->data + len - sizeof *tlv);
    struct iovec inner[3];
    size_t n = (size_t) packet_iov(p, inner);
    uint8_t tag[DATA_TAG_LEN];

    inner[0].iov_base = p->data + len;
    inner[0].iov_len -= len;
    tlv->seq = be64_put(seq);
    tlv->instance = be32_put(instance);
    const struct data_covered covered = {
        .src = &ip->src,
        .srh = (const struct srh_hdr *) (p->data + srh_ofs),
        .srh_len = len - srh_ofs,
        .tlv = tlv,
        .inner = inner,
        .n_inner = n,
    };
    if (!data_tag(k, &covered, tag)) {
        return false;
    }
    memcpy(tlv->tag, tag, sizeof tag);
    return true;
}

bool
data_seal(struct data_key *k, const struct encap_template *t, struct packet *p, uint32_t instance,
          uint64_t seq)
{
    return data_seal_srh(k, p, IP6_HDR_LEN + t->trace_len, t->len, instance, seq);
}

bool
data_verify(struct data_key *k, const uint8_t *data, const struct parsed *h)
{
    const struct ip6_hdr_wire *ip = (const struct ip6_hdr_wire *) (data + h->ip.ofs);
    const struct data_tlv *tlv = (const struct data_tlv *) (data + h->data_ofs);
    const struct iovec inner = {
        .iov_base = (void *) (uintptr_t) (data + h->inner.ofs),
        .iov_len = (size_t) (h->inner.end - h->inner.ofs),
    };
    const struct data_covered covered = {
        .src = &ip->src,
        .srh = (const struct srh_hdr *) (data + h->srh_ofs),
        .srh_len = h->srh_len,
        .tlv = tlv,
        .inner = &inner,
        .n_inner = 1,
    };
    bool is_roce = h->inner.ofs && h->bth_ofs && !h->inner.n_ext
                   && h->icrc_ofs + ROCE_ICRC_LEN == h->inner.end;
    uint8_t tag[DATA_TAG_LEN];

    return is_roce && data_tag(k, &covered, tag) && !CRYPTO_memcmp(tag, tlv->tag, sizeof tag);
}

/*
 * Which packets have come.
 */

uint32_t
data_instance(uint64_t own, uint64_t answered, uint32_t instance)
{
    return own == answered || DEFECT(DATA_NONCE) ? instance : 0;
}

static bool
take(struct data_seen *s, uint64_t seq)
{
    uint64_t word = seq / 64, highest = s->highest / 64;

    if (seq > s->highest) {
        for (uint64_t i = 1; i <= DATA_WORDS && highest + i <= word; i++) {
            s->bits[(highest + i) % DATA_WORDS] = 0;
        }
        s->highest = seq;
    } else if (s->highest - seq >= DATA_WINDOW) {
        return false;
    }
    uint64_t bit = UINT64_C(1) << seq % 64;
    bool first = !(s->bits[word % DATA_WORDS] & bit);

    s->bits[word % DATA_WORDS] |= bit;
    return first || DEFECT(DATA_WINDOW);
}

bool
data_window_take(struct data_window *w, uint32_t instance, uint64_t seq)
{
    if (!w->floor || !seq || (instance < w->floor && !DEFECT(DATA_FLOOR))) {
        return false;
    }
    if (instance > w->now.instance) {
        w->before = w->now;
        w->now = (struct data_seen){.instance = instance};
    }
    return instance == w->now.instance      ? take(&w->now, seq)
           : instance == w->before.instance ? take(&w->before, seq)
                                            : false;
}
