/* SPDX-License-Identifier: Apache-2.0
 *
 * STAMP test packets: made, and taken apart.
 *
 * The order of TLVs is that of the functions here; on receipt they may be in any.
 */
#include "lib/stamp.h"

#include "lib/inet-csum.h"
#include "lib/siphash.h"

/* A time in the PTP format. */
struct stamp_time {
    be32_t sec;
    be32_t nsec;
};

/* RFC 8762 sections 4.2.1 and 4.3.1, with the SSID of RFC 8972 section 3.  From 'came' on only an answer
 * has it, elsewhere there are zeros.
 *
 *      0 |                        sequence number                        |
 *      4 |                       timestamp, 8 bytes                      |
 *     12 |         error estimate        |             SSID              |
 *     16 |                   receive timestamp, 8 bytes                  |
 *     24 |                 sequence number of the sender                 |
 *     28 |                timestamp of the sender, 8 bytes               |
 *     36 | error estimate of the sender  |               0               |
 *     40 |  sender's TTL |                       0                       |
 */
struct stamp_hdr {
    be32_t seq;
    struct stamp_time sent;
    be16_t error;
    be16_t ssid;
    struct stamp_time came;
    be32_t asked_seq;
    struct stamp_time asked;
    be16_t asked_error;
    be16_t zero;
    uint8_t asked_hop_limit;
    uint8_t zeros[3];
};
static_assert(sizeof(struct stamp_hdr) == STAMP_BASE_LEN, "STAMP");
static_assert(offsetof(struct stamp_hdr, asked_hop_limit) == 40, "STAMP");

#define NSEC         1000000000u

/* Error estimate (RFC 8762 section 4.2.1): S, the clock is synchronised, 1 bit; Z, PTP format, 1 bit;
 * scale, 6 bits; multiplier, 8 bits.  The error is multiplier * 2^(scale - 32) seconds: about 1 ms, since
 * all that happens in one round of a node's loop has one time. */
#define ERROR_PTP    0x4000
#define ERROR_FACTOR 0x00ff
#define ERROR_OURS   (ERROR_PTP | 22 << 8 | 1)

/* RFC 8972 section 4: the length is that of the value. */
struct stamp_tlv {
    uint8_t flags;
    uint8_t type;
    be16_t len;
};
static_assert(sizeof(struct stamp_tlv) == 4, "TLV");

#define FLAG_U           0x80 /* not understood; who probes sets it. */

#define TLV_PADDING      1   /* RFC 8972 section 4.1. */
#define TLV_COS          4   /* RFC 8972 section 4.4. */
#define TLV_RETURN_PATH  10  /* RFC 9503 section 4. */
#define TLV_COOKIE       252 /* for private use. */
#define SUB_TLV_SEGMENTS 4   /* RFC 9503 section 4.1.3: the first segment first. */

#define SEGMENT_LEN      sizeof(struct in6_addr)

/* Value of the Class of Service TLV: DSCP asked for 6, DSCP that came 6, ECN that came 2, RP 2, 0. */
#define COS_DSCP(X)      ((X) >> 26 & 0x3f)
#define COS_DSCP_SEEN(X) ((X) >> 20 & 0x3f)
#define COS_ECN_SEEN(X)  ((X) >> 18 & 3)

uint64_t
stamp_cookie(const struct stamp_key *key, uint16_t ssid, uint32_t seq, uint64_t sent_nsec)
{
    const struct {
        be64_t sent;
        be32_t seq;
        be16_t ssid;
    } said = {be64_put(sent_nsec), be32_put(seq), be16_put(ssid)};

    static_assert(sizeof key->secret == SIPHASH_KEY_LEN, "key");
    static_assert(sizeof said == 14, "no padding");
    return siphash(key->secret, &said, sizeof said);
}

/*
 * Made.
 */

static struct stamp_time
put_time(uint64_t nsec)
{
    return (struct stamp_time){be32_put((uint32_t) (nsec / NSEC)),
                               be32_put((uint32_t) (nsec % NSEC))};
}

static uint8_t *
put_tlv(uint8_t *at, uint8_t flags, uint8_t type, size_t len)
{
    const struct stamp_tlv tlv = {flags, type, be16_put((uint16_t) len)};

    memcpy(at, &tlv, sizeof tlv);
    return at + sizeof tlv;
}

static void
put_cos(uint8_t *value, const struct stamp *say)
{
    const be32_t cos =
        be32_put((uint32_t) (say->dscp & 0x3f) << 26 | (uint32_t) (say->dscp_seen & 0x3f) << 20
                 | (uint32_t) (say->ecn_seen & 3) << 18);

    memcpy(value, &cos, sizeof cos);
}

static size_t
segments_len(const struct stamp *say)
{
    return say->back.n * SEGMENT_LEN;
}

/* Of the TLVs, without padding. */
static size_t
tlvs_len(const struct stamp *say)
{
    const size_t hdr = sizeof(struct stamp_tlv);

    return say->is_answer ? say->tlvs_len
                          : (say->has_cos ? hdr + sizeof(be32_t) : 0)
                                + (say->has_cookie ? hdr + sizeof(be64_t) : 0)
                                + (say->back.n ? 2 * hdr + segments_len(say) : 0);
}

static uint8_t *
put_tlvs(uint8_t *at, const struct stamp *say)
{
    if (say->has_cos) {
        at = put_tlv(at, FLAG_U, TLV_COS, sizeof(be32_t));
        put_cos(at, say);
        at += sizeof(be32_t);
    }
    if (say->has_cookie) {
        const be64_t cookie = be64_put(say->cookie);

        at = put_tlv(at, FLAG_U, TLV_COOKIE, sizeof cookie);
        memcpy(at, &cookie, sizeof cookie);
        at += sizeof cookie;
    }
    if (say->back.n) {
        at = put_tlv(at, FLAG_U, TLV_RETURN_PATH, sizeof(struct stamp_tlv) + segments_len(say));
        at = put_tlv(at, FLAG_U, SUB_TLV_SEGMENTS, segments_len(say));
        memcpy(at, say->back.containers, segments_len(say));
        at += segments_len(say);
    }
    return at;
}

/* Those that came, whose lengths stamp_parse() has checked. */
static uint8_t *
echo_tlvs(uint8_t *at, const struct stamp *say)
{
    size_t len;

    if (say->tlvs_len) {
        memcpy(at, say->tlvs, say->tlvs_len);
    }
    for (size_t left = say->tlvs_len; left; at += len, left -= len) {
        struct stamp_tlv *tlv = (struct stamp_tlv *) at;
        bool known = tlv->type == TLV_PADDING || tlv->type == TLV_COS
                     || tlv->type == TLV_RETURN_PATH || tlv->type == TLV_COOKIE;

        len = sizeof *tlv + be16_get(tlv->len);
        tlv->flags = known ? 0 : FLAG_U;
        if (tlv->type == TLV_COS) {
            put_cos((uint8_t *) (tlv + 1), say);
        }
    }
    return at;
}

struct packet *
stamp_build(struct packet_pool *pool, const struct stamp *say, const struct in6_addr *src,
            const struct program *program, const struct in6_addr *final, uint8_t tc,
            uint32_t flow_label, uint16_t sport, uint16_t dport, uint32_t len)
{
    size_t before = program_encap_len(program), hdr = sizeof(struct stamp_tlv);
    size_t udp_len = sizeof(struct udp_hdr) + STAMP_BASE_LEN + tlvs_len(say);
    size_t pad = len ? len - before - udp_len : 0; /* with its header. */

    if ((len && len < before + udp_len) || (pad && pad < hdr)
        || before + udp_len + pad > PACKET_ROOM - sizeof(struct eth_hdr)) {
        return NULL;
    }
    struct packet *p = packet_get(pool);
    if (!p) {
        return NULL;
    }
    udp_len += pad;
    p->data += sizeof(struct eth_hdr); /* aligned, see PACKET_HEADROOM. */
    p->len = (uint32_t) (before + udp_len);
    program_header(program, src, IP6_NH_UDP, (uint16_t) udp_len, tc, flow_label, p->data);

    struct udp_hdr *udp = (struct udp_hdr *) (p->data + before);
    struct stamp_hdr *stamp = (struct stamp_hdr *) (udp + 1);
    *udp = (struct udp_hdr){
        .sport = be16_put(sport),
        .dport = be16_put(dport),
        .len = be16_put((uint16_t) udp_len),
    };
    *stamp = (struct stamp_hdr){
        .seq = be32_put(say->seq),
        .sent = put_time(say->sent_nsec),
        .error = be16_put(ERROR_OURS),
        .ssid = be16_put(say->ssid),
    };
    if (say->is_answer) {
        stamp->came = put_time(say->came_nsec);
        stamp->asked_seq = be32_put(say->asked_seq);
        stamp->asked = put_time(say->asked_nsec);
        stamp->asked_error = be16_put(ERROR_OURS);
        stamp->asked_hop_limit = say->asked_hop_limit;
    }
    uint8_t *at = (uint8_t *) (stamp + 1);
    at = say->is_answer ? echo_tlvs(at, say) : put_tlvs(at, say);
    if (pad) {
        memset(put_tlv(at, FLAG_U, TLV_PADDING, pad - hdr), 0, pad - hdr);
    }
    if (!say->no_checksum) {
        udp->csum = inet_csum_ip6(src, final, IP6_NH_UDP, udp, udp_len);
        if (!be16_get(udp->csum)) {
            udp->csum = be16_put(UINT16_MAX); /* RFC 8200 section 8.1. */
        }
    }
    return p;
}

/*
 * Taken apart.
 */

static bool
get_time(struct stamp_time t, be16_t error, uint64_t *nsec)
{
    *nsec = (uint64_t) be32_get(t.sec) * NSEC + be32_get(t.nsec);
    return be32_get(t.nsec) < NSEC && be16_get(error) & ERROR_PTP && be16_get(error) & ERROR_FACTOR;
}

/* A TLV at the front of (*at)[0, *left), which becomes what is behind it.  NULL: it runs over the end. */
static const struct stamp_tlv *
next_tlv(const uint8_t **at, size_t *left)
{
    const struct stamp_tlv *tlv = (const struct stamp_tlv *) *at;

    if (*left < sizeof *tlv || *left - sizeof *tlv < be16_get(tlv->len)) {
        return NULL;
    }
    *at += sizeof *tlv + be16_get(tlv->len);
    *left -= sizeof *tlv + be16_get(tlv->len);
    return tlv;
}

static bool
parse_cos(const struct stamp_tlv *tlv, struct stamp *s)
{
    be32_t value;

    if (s->has_cos || be16_get(tlv->len) != sizeof value) {
        return false;
    }
    memcpy(&value, tlv + 1, sizeof value);
    s->has_cos = true;
    s->dscp = COS_DSCP(be32_get(value));
    s->dscp_seen = COS_DSCP_SEEN(be32_get(value));
    s->ecn_seen = COS_ECN_SEEN(be32_get(value));
    return true;
}

static bool
parse_cookie(const struct stamp_tlv *tlv, struct stamp *s)
{
    be64_t value;

    if (s->has_cookie || be16_get(tlv->len) != sizeof value) {
        return false;
    }
    memcpy(&value, tlv + 1, sizeof value);
    s->has_cookie = true;
    s->cookie = be64_get(value);
    return true;
}

/* Other sub-TLVs are skipped.  A list that is longer than a program can be is as good as none. */
static bool
parse_return_path(const struct stamp_tlv *tlv, struct stamp *s)
{
    const uint8_t *at = (const uint8_t *) (tlv + 1);
    size_t left = be16_get(tlv->len);
    bool seen = false;

    while (left) {
        const struct stamp_tlv *sub = next_tlv(&at, &left);
        if (!sub) {
            return false;
        }
        size_t len = be16_get(sub->len);
        if (sub->type != SUB_TLV_SEGMENTS) {
            continue;
        }
        if (seen || len % SEGMENT_LEN) {
            return false;
        }
        seen = true;
        if (len <= sizeof s->back.containers) {
            s->back.n = (uint8_t) (len / SEGMENT_LEN);
            memcpy(s->back.containers, sub + 1, len);
        }
    }
    return true;
}

static bool
parse_tlvs(struct stamp *s)
{
    const uint8_t *at = s->tlvs;
    bool cos_unknown = false, has_back = false;

    for (size_t left = s->tlvs_len; left;) {
        const struct stamp_tlv *tlv = next_tlv(&at, &left);
        bool ok = tlv != NULL;

        if (ok && tlv->type == TLV_COS) {
            ok = parse_cos(tlv, s);
            cos_unknown = s->is_answer && tlv->flags & FLAG_U;
        } else if (ok && tlv->type == TLV_COOKIE) {
            ok = parse_cookie(tlv, s);
        } else if (ok && tlv->type == TLV_RETURN_PATH) {
            ok = !has_back && parse_return_path(tlv, s);
            has_back = true;
        }
        if (!ok) {
            return false;
        }
    }
    s->has_cos &= !cos_unknown;
    return true;
}

bool
stamp_parse(const uint8_t *payload, size_t len, bool is_answer, struct stamp *s)
{
    const struct stamp_hdr *hdr = (const struct stamp_hdr *) payload;

    if (len < sizeof *hdr) {
        return false;
    }
    *s = (struct stamp){
        .is_answer = is_answer,
        .seq = be32_get(hdr->seq),
        .ssid = be16_get(hdr->ssid),
        .tlvs = payload + sizeof *hdr,
        .tlvs_len = len - sizeof *hdr,
    };
    if (!get_time(hdr->sent, hdr->error, &s->sent_nsec)) {
        return false;
    }
    if (is_answer) {
        s->asked_seq = be32_get(hdr->asked_seq);
        s->asked_hop_limit = hdr->asked_hop_limit;
        if (!get_time(hdr->came, hdr->error, &s->came_nsec)
            || !get_time(hdr->asked, hdr->asked_error, &s->asked_nsec)) {
            return false;
        }
    }
    return parse_tlvs(s);
}
