/* SPDX-License-Identifier: Apache-2.0
 *
 * A second parser of frames, from the RFCs and the IBTA's tables.
 *
 * It shares neither structures nor arithmetic with lib/parse.c: positions are
 * 64 bits wide, a field is read by its number of bytes and its place in the
 * figure, and each read checks that it is inside the frame.
 */
#include "tests/fuzz/slow-parse.h"

#include <check.h>

struct slice {
    const uint8_t *frame;
    int64_t start, end;
};

static int64_t
length(struct slice s)
{
    return s.end - s.start;
}

/* The number in 'n' bytes from byte 'at' of the slice on. */
static int64_t
field(struct slice s, int64_t at, int n)
{
    int64_t value = 0;

    for (int i = 0; i < n; i++) {
        ck_assert(at >= 0 && at + i < length(s));
        value = value * 256 + s.frame[s.start + at + i];
    }
    return value;
}

static struct slice
part(struct slice s, int64_t at, int64_t len)
{
    ck_assert(at >= 0 && len >= 0 && at + len <= length(s));
    return (struct slice){s.frame, s.start + at, s.start + at + len};
}

/* One TLV of an SRH, type and length included. */
static enum drop_reason
note_tlv(struct slice tlv, struct parsed *p)
{
    int64_t value_len = length(tlv) - 2;

    switch (field(tlv, 0, 1)) {
    case 124: /* End.MT: 2 bytes, the edge's address, a count, 3 bytes, then 20 per receiver. */
        if (value_len < 22 || value_len != 22 + 20 * field(tlv, 20, 1)) {
            return DROP_mt_tlv_malformed;
        }
        p->mt_tlv_ofs[p->n_mt_tlvs++] = (uint16_t) tlv.start;
        break;
    case 125:
        if (!p->auth_ofs && value_len == 38) {
            p->auth_ofs = (uint16_t) tlv.start;
        }
        break;
    case 126:
        if (!p->data_ofs && value_len == 38) {
            p->data_ofs = (uint16_t) tlv.start;
        }
        break;
    case 5:
        if (!p->hmac_ofs
            && (value_len == 14 || value_len == 22 || value_len == 30 || value_len == 38)) {
            p->hmac_ofs = (uint16_t) tlv.start;
        }
        break;
    }
    return DROP_none;
}

static enum drop_reason
read_srh(struct slice srh, struct parsed *p)
{
    int64_t last_entry = field(srh, 4, 1), segments_left = field(srh, 3, 1);
    int64_t at = 8 + (last_entry + 1) * 16;

    /* RFC 8754 4.3.1.1: max_LE is what fits, segments_left at most last_entry + 1. */
    if (p->srh_ofs || last_entry > field(srh, 1, 1) / 2 - 1 || segments_left > last_entry + 1) {
        return DROP_srh_malformed;
    }
    p->srh_ofs = (uint16_t) srh.start;
    p->srh_len = (uint16_t) length(srh);
    p->n_segments = (uint8_t) (last_entry + 1);
    p->segments_left = (uint8_t) segments_left;
    while (at < length(srh)) {
        if (!field(srh, at, 1)) {
            at++;
            continue;
        }
        if (at + 2 > length(srh) || at + 2 + field(srh, at + 1, 1) > length(srh)) {
            return DROP_srh_tlv;
        }
        struct slice tlv = part(srh, at, 2 + field(srh, at + 1, 1));
        enum drop_reason why = note_tlv(tlv, p);
        if (why) {
            return why;
        }
        at += length(tlv);
    }
    return DROP_none;
}

/* The IPv6 packet at the start of 's'; *rest is its payload. */
static enum drop_reason
read_ip6(struct slice s, struct parsed_ip6 *ip, struct slice *rest)
{
    if (length(s) < 40) {
        return DROP_ip6_short;
    }
    if (field(s, 0, 1) / 16 != 6) {
        return DROP_ip6_version;
    }
    if (40 + field(s, 4, 2) > length(s)) {
        return DROP_ip6_short;
    }
    if (field(s, 8, 1) == 0xff) {
        return DROP_ip6_src;
    }
    *rest = part(s, 40, field(s, 4, 2));
    ip->ofs = (uint16_t) s.start;
    ip->end = (uint16_t) rest->end;
    ip->proto = (uint8_t) field(s, 6, 1);
    return DROP_none;
}

/* Takes extension headers off the front of *rest; the SRH is told to 'p' unless that is NULL. */
static enum drop_reason
read_extensions(struct parsed_ip6 *ip, struct slice *rest, struct parsed *p)
{
    enum { HOP_BY_HOP = 0, ROUTING = 43, DESTINATION = 60, SEGMENTS = 4 };

    for (;; ip->n_ext++) {
        int proto = ip->proto;

        if (proto != HOP_BY_HOP && proto != ROUTING && proto != DESTINATION) {
            ip->l4_ofs = (uint16_t) rest->start;
            return DROP_none;
        }
        if (ip->n_ext == 8 || (proto == HOP_BY_HOP && ip->n_ext) || length(*rest) < 8
            || length(*rest) < 8 + 8 * field(*rest, 1, 1)) {
            return DROP_ext_chain;
        }
        struct slice ext = part(*rest, 0, 8 + 8 * field(*rest, 1, 1));
        if (p && proto == ROUTING && field(ext, 2, 1) != SEGMENTS && field(ext, 3, 1)
            && !p->routing_ofs) {
            p->routing_ofs = (uint16_t) ext.start;
        }
        if (p && proto == ROUTING && field(ext, 2, 1) == SEGMENTS) {
            enum drop_reason why = read_srh(ext, p);
            if (why) {
                return why;
            }
        }
        ip->proto = (uint8_t) field(ext, 0, 1);
        *rest = part(*rest, length(ext), length(*rest) - length(ext));
    }
}

/* Bytes of extended headers by opcode (IBTA volume 1, table 38; annex A17 for CNP); -1: unknown. */
static int64_t
extended_len(int64_t opcode)
{
    static const int8_t rc[] = {0, 0, 0, 4,  0,  4,  16, 0, 0, 4,  16, 20, 16, 4,  0,
                                4, 4, 4, 12, 28, 28, -1, 4, 4, -1, -1, -1, -1, 20, 16};

    switch (opcode) {
    case 0x64: return 8;
    case 0x81: return 16;
    default: return opcode < (int64_t) sizeof rc ? rc[opcode] : -1;
    }
}

static enum drop_reason
read_udp(struct slice s, struct parsed *p)
{
    if (length(s) < 8) {
        return DROP_udp_short;
    }
    if (field(s, 2, 2) != 4791) {
        return DROP_none;
    }
    if (field(s, 4, 2) < 8 || field(s, 4, 2) > length(s)) {
        return DROP_udp_short;
    }
    s = part(s, 0, field(s, 4, 2));
    if (length(s) < 8 + 12 + 4) {
        return DROP_roce_short;
    }
    if (field(s, 9, 1) % 16) {
        return DROP_roce_tver;
    }
    int64_t extended = extended_len(field(s, 8, 1));
    int64_t pad = extended < 0 ? 0 : field(s, 9, 1) / 16 % 4;
    extended = extended < 0 ? 0 : extended;
    if (length(s) < 8 + 12 + extended + pad + 4) {
        return DROP_roce_short;
    }
    p->udp_ofs = (uint16_t) s.start;
    p->bth_ofs = (uint16_t) (s.start + 8);
    p->ext_ofs = (uint16_t) (s.start + 20);
    p->payload_ofs = (uint16_t) (s.start + 20 + extended);
    p->icrc_ofs = (uint16_t) (s.end - 4);
    p->payload_len = (uint16_t) (s.end - 4 - pad - (s.start + 20 + extended));
    p->opcode = (uint8_t) field(s, 8, 1);
    return DROP_none;
}

enum drop_reason
slow_parse(const uint8_t *data, size_t len, struct parsed *p)
{
    struct slice s = {data, 0, (int64_t) len}, rest;
    enum drop_reason why;

    memset(p, 0, sizeof *p);
    if (len < 14) {
        return DROP_eth_short;
    }
    if (field(s, 12, 2) != 0x86dd) {
        bool tagged = field(s, 12, 2) == 0x8100 || field(s, 12, 2) == 0x88a8;
        return tagged && len >= 18 ? DROP_vlan : DROP_eth_type;
    }
    if (len > 65535) {
        return DROP_too_long;
    }
    if ((why = read_ip6(part(s, 14, length(s) - 14), &p->ip, &rest))
        || (why = read_extensions(&p->ip, &rest, p))) {
        return why;
    }
    if (p->ip.proto == 41
        && (read_ip6(rest, &p->inner, &rest) || read_extensions(&p->inner, &rest, NULL))) {
        return DROP_inner_malformed;
    }
    return (p->inner.ofs ? p->inner : p->ip).proto == 17 ? read_udp(rest, p) : DROP_none;
}
