/* SPDX-License-Identifier: Apache-2.0
 *
 * Digests of SRHs and tags of packets, from RFC 8754 section 2.1.2.1 and the first comments of
 * lib/auth.h and lib/data-auth.h.
 *
 * It shares no code with lib/auth.c and lib/data-auth.c: what is covered is copied together, byte by
 * byte of the figures, and goes through libcrypto at once.  A key of data is made by HKDF's two HMACs
 * (RFC 5869), and what an ICRC was without AckReq follows from two computed ones.
 */
#include "tests/fuzz/srh-auth.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "lib/icrc.h"
#include "lib/packet.h"
#include "tests/unit/parse-check.h"

/* Places in an SRH (RFC 8754 section 2), an IPv6 header, and both TLVs. */
enum { SEGMENTS_LEFT = 3, LAST_ENTRY = 4, FLAGS = 5, LIST = 8 };
enum { SOURCE = 8, DESTINATION = 24 };
enum { LENGTH = 1, D = 2, KEY_ID = 4, DIGEST = 8, DIGEST_LEN = 32, TLV_LEN = 40 };
/* Of a DATA-AUTH TLV: the nonce is instance | sequence. */
enum { SEQ = 8, SEQ_LEN = 8, INSTANCE = 16, INSTANCE_LEN = 4, TAG = 24, TAG_LEN = 16 };
/* Of an inner packet: IPv6, UDP, BTH. */
enum { HOP_LIMIT = 7, ACK_REQ = 40 + 8 + 8, BTH_END = 40 + 8 + 12, ICRC_LEN = 4 };

struct text {
    uint8_t bytes[16 + SRH_MAX_LEN + PACKET_ROOM];
    size_t len;
};

static void
add(struct text *t, const uint8_t *bytes, size_t n)
{
    REQUIRE(n <= sizeof t->bytes - t->len);
    memcpy(t->bytes + t->len, bytes, n);
    t->len += n;
}

static size_t
list_len(const uint8_t *srh)
{
    return 16 * (size_t) (srh[LAST_ENTRY] + 1);
}

/* What the HMAC TLV at srh[tlv] covers. */
static void
rfc_text(struct text *t, const uint8_t *frame, const struct parsed *h, size_t tlv)
{
    const uint8_t *srh = frame + h->srh_ofs;

    t->len = 0;
    add(t, frame + h->ip.ofs + SOURCE, 16);
    add(t, srh + LAST_ENTRY, 1);
    add(t, srh + FLAGS, 1);
    add(t, srh + tlv + D, 2);
    add(t, srh + tlv + KEY_ID, 4);
    add(t, srh + LIST, list_len(srh));
}

/* What the MT-AUTH TLV at srh[tlv] covers: Last Entry, Flags, Tag and all that follows. */
static void
mt_text(struct text *t, const uint8_t *frame, const struct parsed *h, size_t tlv)
{
    const uint8_t *srh = frame + h->srh_ofs;

    t->len = 0;
    add(t, frame + h->ip.ofs + SOURCE, 16);
    add(t, srh + LAST_ENTRY, h->srh_len - LAST_ENTRY);
    memset(t->bytes + 16 + tlv + DIGEST - LAST_ENTRY, 0, DIGEST_LEN);
}

static void
hmac(const uint8_t *key, size_t key_len, const struct text *t, uint8_t out[DIGEST_LEN])
{
    unsigned int len = 0;

    REQUIRE(HMAC(EVP_sha256(), key, (int) key_len, t->bytes, t->len, out, &len));
    REQUIRE(len == DIGEST_LEN);
}

/* The digest of a text, by the key of this epoch. */
static void
digest(const struct text *t, const struct auth_key *key, const struct auth_epoch *epoch,
       uint8_t out[DIGEST_LEN])
{
    uint32_t qpn = epoch->designated_qpn;
    const uint8_t qpn_bytes[] = {0, (uint8_t) (qpn >> 16), (uint8_t) (qpn >> 8), (uint8_t) qpn};
    uint8_t epoch_key[DIGEST_LEN];
    struct text of_epoch = {.len = 0};

    add(&of_epoch, (const uint8_t *) "SRv6 multicast epoch", 20);
    add(&of_epoch, epoch->proxy.s6_addr, 16);
    add(&of_epoch, qpn_bytes, sizeof qpn_bytes);
    hmac(key->secret, key->len, &of_epoch, epoch_key);
    hmac(epoch_key, sizeof epoch_key, t, out);
}

/* The key of data of this epoch. */
static void
data_key(const struct auth_key *key, const struct auth_epoch *epoch, uint8_t out[DIGEST_LEN])
{
    static const uint8_t salt[DIGEST_LEN], one = 1;
    const uint32_t numbers[] = {epoch->designated_qpn, epoch->epoch};
    uint8_t extracted[DIGEST_LEN];
    struct text t = {.len = 0};

    add(&t, key->secret, key->len);
    hmac(salt, sizeof salt, &t, extracted);
    t.len = 0;
    add(&t, (const uint8_t *) "SRv6 multicast data", 19);
    add(&t, epoch->proxy.s6_addr, 16);
    for (size_t i = 0; i < 2; i++) {
        const uint8_t bytes[] = {(uint8_t) (numbers[i] >> 24), (uint8_t) (numbers[i] >> 16),
                                 (uint8_t) (numbers[i] >> 8), (uint8_t) numbers[i]};
        add(&t, bytes, sizeof bytes);
    }
    add(&t, &one, 1);
    hmac(extracted, sizeof extracted, &t, out);
}

/* Is what is inside RoCE up to its end, without extension headers? */
static bool
inner_is_roce(const struct parsed *h)
{
    return h->inner.ofs && h->bth_ofs == h->inner.ofs + 40 + 8
           && h->icrc_ofs + ICRC_LEN == h->inner.end && h->icrc_ofs >= h->inner.ofs + BTH_END;
}

/* What the DATA-AUTH TLV at srh[tlv] covers: of the outer packet, and of the inner one as it was when
 * it left the source agent. */
static void
data_text(struct text *t, const uint8_t *frame, const struct parsed *h, size_t tlv)
{
    const uint8_t *srh = frame + h->srh_ofs;
    size_t len = (size_t) (h->icrc_ofs - h->inner.ofs);

    t->len = 0;
    add(t, frame + h->ip.ofs + SOURCE, 16);
    add(t, srh + LENGTH, 1);
    add(t, srh + LAST_ENTRY, h->srh_len - LAST_ENTRY);
    memset(t->bytes + 17 + tlv + TAG - LAST_ENTRY, 0, TAG_LEN);

    uint8_t *inner = t->bytes + t->len;
    add(t, frame + h->inner.ofs, len);
    add(t, frame + h->icrc_ofs, ICRC_LEN);
    uint32_t as_it_is = icrc_compute(inner, len);
    inner[ACK_REQ] &= 0x7f;
    icrc_store(inner + len, icrc_load(inner + len) ^ as_it_is ^ icrc_compute(inner, len));
    inner[0] = 0x60;
    memset(inner + 1, 0, 3);
    inner[HOP_LIMIT] = 0;
}

static void
data_digest(const uint8_t *frame, const struct parsed *h, const struct auth_key *key,
            const struct auth_epoch *epoch, uint8_t out[TAG_LEN])
{
    const uint8_t *tlv = frame + h->data_ofs;
    uint8_t k[DIGEST_LEN], nonce[INSTANCE_LEN + SEQ_LEN];
    struct text t;
    int n;

    data_key(key, epoch, k);
    data_text(&t, frame, h, (size_t) (h->data_ofs - h->srh_ofs));
    memcpy(nonce, tlv + INSTANCE, INSTANCE_LEN);
    memcpy(nonce + INSTANCE_LEN, tlv + SEQ, SEQ_LEN);
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    REQUIRE(ctx && EVP_EncryptInit_ex(ctx, EVP_aes_128_gcm(), NULL, k, nonce));
    REQUIRE(EVP_EncryptUpdate(ctx, NULL, &n, t.bytes, (int) t.len));
    REQUIRE(EVP_EncryptFinal_ex(ctx, NULL, &n));
    REQUIRE(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_GET_TAG, TAG_LEN, out));
    EVP_CIPHER_CTX_free(ctx);
}

static uint32_t
key_id(const uint8_t *tlv)
{
    return (uint32_t) tlv[KEY_ID] << 24 | (uint32_t) tlv[KEY_ID + 1] << 16
           | (uint32_t) tlv[KEY_ID + 2] << 8 | tlv[KEY_ID + 3];
}

static void
put_key_id(uint8_t *tlv, uint32_t id)
{
    for (int i = 0; i < 4; i++) {
        tlv[KEY_ID + i] = (uint8_t) (id >> (24 - 8 * i));
    }
}

void
srh_auth_sign(uint8_t *frame, const struct parsed *h, const struct auth_key *key,
              const struct auth_epoch *epoch)
{
    struct text t;

    if (h->hmac_ofs && frame[h->hmac_ofs + LENGTH] == TLV_LEN - 2) {
        put_key_id(frame + h->hmac_ofs, key->id);
        rfc_text(&t, frame, h, (size_t) (h->hmac_ofs - h->srh_ofs));
        digest(&t, key, epoch, frame + h->hmac_ofs + DIGEST);
    }
    if (h->auth_ofs) { /* covers the other one. */
        put_key_id(frame + h->auth_ofs, key->id);
        mt_text(&t, frame, h, (size_t) (h->auth_ofs - h->srh_ofs));
        digest(&t, key, epoch, frame + h->auth_ofs + DIGEST);
    }
    if (h->data_ofs && inner_is_roce(h)) { /* alone, as a rule. */
        put_key_id(frame + h->data_ofs, key->id);
        data_digest(frame, h, key, epoch, frame + h->data_ofs + TAG);
    }
}

/* Without D, the segment that Segments Left names is the packet's destination. */
static bool
destination_ok(const uint8_t *frame, const struct parsed *h, const uint8_t *tlv)
{
    const uint8_t *srh = frame + h->srh_ofs;
    size_t left = srh[SEGMENTS_LEFT];

    return tlv[D] & 0x80
           || (left <= srh[LAST_ENTRY]
               && !memcmp(srh + LIST + 16 * left, frame + h->ip.ofs + DESTINATION, 16));
}

static bool
tlv_ok(const uint8_t *frame, const struct parsed *h, size_t ofs, const struct auth_config *config,
       const struct auth_epoch *epoch, bool rfc)
{
    const uint8_t *tlv = frame + ofs;
    uint8_t expected[DIGEST_LEN];
    struct text t;

    if (!ofs || tlv[LENGTH] != TLV_LEN - 2 || (ofs - h->srh_ofs) % 8
        || (rfc && !destination_ok(frame, h, tlv))) {
        return false;
    }
    if (rfc) {
        rfc_text(&t, frame, h, ofs - h->srh_ofs);
    } else {
        mt_text(&t, frame, h, ofs - h->srh_ofs);
    }
    for (size_t i = 0; i < config->n_keys; i++) {
        if (config->keys[i].id == key_id(tlv)) {
            digest(&t, &config->keys[i], epoch, expected);
            return !memcmp(expected, tlv + DIGEST, DIGEST_LEN);
        }
    }
    return false;
}

static bool
data_ok(const uint8_t *frame, const struct parsed *h, const struct auth_config *config,
        const struct auth_epoch *epoch)
{
    const uint8_t *tlv = frame + h->data_ofs;
    uint8_t expected[TAG_LEN];

    if (!h->data_ofs || (h->data_ofs - h->srh_ofs) % 8 || !inner_is_roce(h)) {
        return false;
    }
    for (size_t i = 0; i < config->n_keys; i++) {
        if (config->keys[i].id == key_id(tlv)) {
            data_digest(frame, h, &config->keys[i], epoch, expected);
            return !memcmp(expected, tlv + TAG, TAG_LEN);
        }
    }
    return false;
}

bool
srh_auth_nonce(const uint8_t *frame, const struct parsed *h, struct srh_auth_nonce *out)
{
    const uint8_t *tlv = frame + h->data_ofs;

    if (!h->data_ofs) {
        return false;
    }
    *out = (struct srh_auth_nonce){.key = key_id(tlv)};
    for (int i = 0; i < SEQ_LEN; i++) {
        out->seq = out->seq << 8 | tlv[SEQ + i];
    }
    for (int i = 0; i < INSTANCE_LEN; i++) {
        out->instance = out->instance << 8 | tlv[INSTANCE + i];
    }
    return true;
}

bool
srh_auth_ok(const uint8_t *frame, const struct parsed *h, const struct auth_config *config,
            const struct auth_epoch *epoch)
{
    return (!(config->tlvs & AUTH_MT) || tlv_ok(frame, h, h->auth_ofs, config, epoch, false))
           && (!(config->tlvs & AUTH_HMAC) || tlv_ok(frame, h, h->hmac_ofs, config, epoch, true))
           && (!(config->tlvs & AUTH_DATA) || data_ok(frame, h, config, epoch));
}
