/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames as text.
 */
#include "lib/packet-text.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/address-plan.h"
#include "lib/nd.h"
#include "lib/parse.h"
#include "lib/program.h"
#include "lib/roce.h"
#include "lib/stamp.h"
#include "lib/usid.h"
#include "lib/why.h"

struct text {
    char *s; /* PACKET_TEXT_SIZE bytes. */
    size_t len;
};

static void __attribute__((format(printf, 2, 3))) put(struct text *t, const char *format, ...)
{
    size_t room = PACKET_TEXT_SIZE - t->len;
    va_list args;

    va_start(args, format);
    int n = vsnprintf(t->s + t->len, room, format, args);
    va_end(args);
    t->len += (size_t) n < room ? (size_t) n : room - 1;
}

static void
put_ip(struct text *t, const uint8_t *frame, const struct parsed_ip6 *ip6)
{
    const struct ip6_hdr_wire *ip = (const void *) (frame + ip6->ofs);
    char src[INET6_ADDRSTRLEN], dst[INET6_ADDRSTRLEN];

    put(t, "%s > %s, hop limit %u", inet_ntop(AF_INET6, &ip->src, src, sizeof src),
        inet_ntop(AF_INET6, &ip->dst, dst, sizeof dst), ip->hlim);
}

static void
put_srh(struct text *t, const struct parsed *h)
{
    put(t, ", SRH with SL %u", h->segments_left);
    if (h->n_mt_tlvs) {
        put(t, " and %u End.MT TLV%s", h->n_mt_tlvs, h->n_mt_tlvs > 1 ? "s" : "");
    }
}

/* Is there more in the address than one SID of a node? */
static bool
is_program(const struct in6_addr *da)
{
    const uint8_t *bytes = (const uint8_t *) da; /* in a packet, not aligned. */
    uint16_t first = node_id_of(da), second = (uint16_t) (bytes[6] << 8 | bytes[7]);
    unsigned ua_plen = sid_behaviour(SID_UA)->plen;

    return address_is_sid(da)
           && (first >= USID_FIRST_FUNCTION || second < USID_FIRST_FUNCTION
               || !usid_argument_is_zero(da, ua_plen));
}

/* The program that is left, if there is one: what is in the destination, and the SRH's segments behind
 * it.  The label says which path of its sender it is. */
static void
put_program(struct text *t, const uint8_t *frame, const struct parsed *h)
{
    const struct ip6_hdr_wire *ip = (const void *) (frame + h->ip.ofs);
    const in6_wire_t *segments = (const void *) (frame + h->srh_ofs + sizeof(struct srh_hdr));
    struct program program = {.n = 1, .containers = {ip->dst}};
    char usids[PROGRAM_USIDS_SIZE];

    if (!is_program(&ip->dst)) {
        return;
    }
    for (unsigned left = h->segments_left; h->srh_ofs && left && program.n < PROGRAM_MAX; left--) {
        if (address_is_sid(&segments[left - 1])) {
            program.containers[program.n++] = segments[left - 1];
        }
    }
    program_format_usids(&program, usids);
    put(t, ", uSIDs %s, flow label 0x%05x", usids, ip6_flow_label(ip));
}

const char *
nak_text(uint8_t syndrome)
{
    static const char *const naks[] = {"PSN sequence error", "invalid request",
                                       "remote access error", "remote operational error",
                                       "invalid RD request"};
    unsigned code = syndrome & 0x1f;

    return code < sizeof naks / sizeof naks[0] ? naks[code] : "reserved code";
}

static void
put_syndrome(struct text *t, uint8_t syndrome)
{
    unsigned code = syndrome & 0x1f;

    switch (aeth_class(syndrome)) {
    case AETH_CLASS_ACK: put(t, ", ACK"); break;
    case AETH_CLASS_RNR: put(t, ", RNR NAK, timer code %u", code); break;
    case AETH_CLASS_NAK: put(t, ", NAK: %s", nak_text(syndrome)); break;
    case AETH_CLASS_RESERVED: put(t, ", reserved syndrome 0x%02x", syndrome); break;
    }
}

static void
put_roce(struct text *t, const uint8_t *frame, const struct parsed *h)
{
    const struct bth *bth = (const void *) (frame + h->bth_ofs);
    const struct roce_opcode_info *info = roce_opcode_info(h->opcode);

    if (info->name) {
        put(t, ", RoCE %s", info->name);
    } else {
        put(t, ", RoCE opcode 0x%02x", h->opcode);
    }
    put(t, ", DestQP 0x%x, PSN %u", be24_get(bth->dest_qp), bth_psn(bth).v);
    if (bth->ack_req & BTH_ACK_REQ) {
        put(t, ", AckReq");
    }
    if (info->flags & ROCE_F_AETH) {
        const struct aeth *aeth = (const void *) (frame + h->ext_ofs);
        put_syndrome(t, aeth->syndrome);
    }
    if (h->payload_len) {
        put(t, ", %u bytes of data", h->payload_len);
    }
}

static void
put_icmp6(struct text *t, const uint8_t *frame, const struct parsed *h, const struct parsed_ip6 *ip)
{
    static const char *const names[256] = {
        [1] = "Destination Unreachable",
        [2] = "Packet Too Big",
        [3] = "Time Exceeded",
        [4] = "Parameter Problem",
        [128] = "Echo Request",
        [129] = "Echo Reply",
        [133] = "Router Solicitation",
        [134] = "Router Advertisement",
        [137] = "Redirect",
        [ND_NS] = "Neighbour Solicitation",
        [ND_NA] = "Neighbour Advertisement",
    };
    char target[INET6_ADDRSTRLEN];
    struct nd_msg nd;

    if (ip->end < ip->l4_ofs + 2) {
        put(t, ", ICMPv6, cut short");
        return;
    }
    const uint8_t *icmp = frame + ip->l4_ofs;
    put(t, ", ICMPv6 type %u code %u", icmp[0], icmp[1]);
    if (names[icmp[0]]) {
        put(t, " (%s)", names[icmp[0]]);
    }
    if (ip == &h->ip && nd_parse(frame, h, &nd) == ND_VALID) {
        put(t, " for %s", inet_ntop(AF_INET6, &nd.target, target, sizeof target));
    }
}

static void
put_udp(struct text *t, const struct udp_hdr *udp, size_t room)
{
    uint16_t sport = be16_get(udp->sport), dport = be16_get(udp->dport), len = be16_get(udp->len);
    bool is_answer = sport == UDP_PORT_STAMP;
    struct stamp s;

    put(t, ", UDP port %u > %u", sport, dport);
    if ((!is_answer && dport != UDP_PORT_STAMP) || len < sizeof *udp || len > room
        || !stamp_parse((const uint8_t *) (udp + 1), len - sizeof *udp, is_answer, &s)) {
        return;
    }
    if (is_answer) {
        put(t, ", answer %u to probe %u, sequence number %u", s.seq, s.ssid, s.asked_seq);
    } else {
        put(t, ", probe %u, sequence number %u", s.ssid, s.seq);
    }
}

static void
put_upper_layer(struct text *t, const uint8_t *frame, const struct parsed *h)
{
    const struct parsed_ip6 *ip = parsed_innermost(h);

    if (h->bth_ofs) {
        put_roce(t, frame, h);
    } else if (ip->proto == IP6_NH_ICMPV6) {
        put_icmp6(t, frame, h, ip);
    } else if (ip->proto == IP6_NH_UDP && ip->end - ip->l4_ofs >= (int) sizeof(struct udp_hdr)) {
        put_udp(t, (const void *) (frame + ip->l4_ofs), (size_t) (ip->end - ip->l4_ofs));
    } else if (ip->proto == IP6_NH_FRAGMENT) {
        put(t, ", a fragment");
    } else {
        put(t, ", next header %u", ip->proto);
    }
}

void
packet_text(const uint8_t *frame, size_t len, char out[PACKET_TEXT_SIZE])
{
    struct text t = {.s = out};
    struct parsed h;
    enum drop_reason why = parse_outer(frame, (uint32_t) len, &h);

    out[0] = '\0';
    if (why == DROP_eth_type) {
        const struct eth_hdr *eth = (const void *) frame;
        put(&t, "Ethernet type 0x%04x", be16_get(eth->type));
        return;
    }
    if (why == DROP_vlan) {
        put(&t, "VLAN %u", vlan_id(eth_vlan_tag(frame, len)));
        return;
    }
    if (why) {
        put(&t, "%s", drop_help(why));
        return;
    }
    put_ip(&t, frame, &h.ip);
    why = parse_rest(frame, (uint32_t) len, &h);
    if (h.srh_ofs) {
        put_srh(&t, &h);
    }
    put_program(&t, frame, &h);
    if (h.inner.ofs) {
        put(&t, "; inside ");
        put_ip(&t, frame, &h.inner);
    }
    if (why) {
        put(&t, "; %s", drop_help(why));
    } else {
        put_upper_layer(&t, frame, &h);
    }
}

static int
digit(char c)
{
    const char *digits = "0123456789abcdef";
    const char *at = c ? strchr(digits, tolower((unsigned char) c)) : NULL;

    return at ? (int) (at - digits) : -1;
}

bool
packet_from_text(const char *text, uint8_t *bytes, size_t size, size_t *len, char **errp)
{
    *len = 0;
    for (const char *c = text; *c;) {
        uint8_t byte = 0;

        if (isspace((unsigned char) *c) || *c == ':') {
            c++;
            continue;
        }
        for (int i = 0; i < 2; i++, c++) {
            int value = digit(*c);

            if (value >= 0) {
                byte = (uint8_t) (byte << 4 | value);
            } else if (i && (!*c || isspace((unsigned char) *c) || *c == ':')) {
                return say_why(errp, "character %td: half a byte: '%c' alone", c - text, c[-1]);
            } else {
                return say_why(errp,
                               isprint((unsigned char) *c)
                                   ? "character %td: '%c' is no hexadecimal digit"
                                   : "character %td: byte 0x%02x is no hexadecimal digit",
                               c - text + 1, (unsigned char) *c);
            }
        }
        if (*len >= size) {
            return say_why(errp, "longer than %zu bytes", size);
        }
        bytes[(*len)++] = byte;
    }
    if (*len < sizeof(struct eth_hdr)) {
        return say_why(errp, "%zu bytes: an Ethernet header has %zu", *len, sizeof(struct eth_hdr));
    }
    return true;
}
