/* SPDX-License-Identifier: Apache-2.0
 *
 * Digests of SRHs, from RFC 8754 section 2.1.2.1 and lib/auth.h's first comment.
 *
 * It shares no code with lib/auth.c: what is covered is copied together, byte by
 * byte of the figures, and goes through libcrypto's HMAC() at once.
 */
#include "tests/fuzz/srh-auth.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "tests/unit/parse-check.h"

/* Places in an SRH (RFC 8754 section 2), an IPv6 header, and both TLVs. */
enum { SEGMENTS_LEFT = 3, LAST_ENTRY = 4, FLAGS = 5, LIST = 8 };
enum { SOURCE = 8, DESTINATION = 24 };
enum { LENGTH = 1, D = 2, KEY_ID = 4, DIGEST = 8, DIGEST_LEN = 32, TLV_LEN = 40 };

struct text {
    uint8_t bytes[16 + SRH_MAX_LEN];
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

bool
srh_auth_ok(const uint8_t *frame, const struct parsed *h, const struct auth_config *config,
            const struct auth_epoch *epoch)
{
    return (!(config->tlvs & AUTH_MT) || tlv_ok(frame, h, h->auth_ofs, config, epoch, false))
           && (!(config->tlvs & AUTH_HMAC) || tlv_ok(frame, h, h->hmac_ofs, config, epoch, true));
}
