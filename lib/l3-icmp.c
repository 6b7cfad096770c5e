/* SPDX-License-Identifier: Apache-2.0
 *
 * ICMPv6 of a node: the error messages that it sends, and what is addressed to
 * the node itself.
 *
 * Error messages and replies leave by the routes like anything else, and none is
 * made about them.  Only what goes to a link-local address goes back to the station
 * that asked, because such an address means nothing to the routes.
 *
 * Error messages have a rate for each port that offenders come in on.  A rate for the node as
 * a whole would let one host take Packet Too Big away from the others.  The node's sum is
 * bounded all the same: by the number of its ports.
 */
#include "lib/l3-impl.h"

#include <assert.h>

static const struct ip6_hdr_wire *
ip_at(const struct packet *p, uint32_t ofs)
{
    return (const struct ip6_hdr_wire *) (p->data + ofs);
}

/* Where a frame came from: a link-local address is answered there. */
struct station {
    const struct port_config *port;
    const uint8_t *mac;
};

/* Sends what was made here.  Consumes p. */
static enum drop_reason
send_answer(struct l3 *l3, struct packet *p, const struct station *to, uint64_t now)
{
    if (to && IN6_IS_ADDR_LINKLOCAL(&ip_at(p, 0)->dst)) {
        return l3_send_to_mac(l3, to->port, p, to->mac);
    }
    return l3_output(l3, p, L3_ERRORS_NONE, now);
}

/*
 * Error messages.
 */

/* Sends an error message about the packet whose IPv6 header is at byte 'ofs', if one may be sent.
 * 'to' is NULL if not known. */
static void
send_error(struct l3 *l3, const struct packet *offender, uint32_t ofs,
           const struct icmp6_error *error, const struct station *to, uint64_t now)
{
    const struct ip6_hdr_wire *bad = ip_at(offender, ofs);
    const struct in6_addr *src = l3_is_local(l3, &bad->dst) ? &bad->dst : &l3->address;
    struct packet *p = NULL;
    const char *why = "source is link-local";

    assert(offender->in_port < NEIGH_PORTS);
    if (to || !IN6_IS_ADDR_LINKLOCAL(&bad->src)) {
        p = icmp6_error_build(l3->pool, error, src, offender, ofs, &why);
    }
    if (p && !icmp6_limit_take(&l3->errors[offender->in_port], now)) {
        packet_put(p);
        p = NULL;
        why = "too many";
    }
    if (!p) {
        TRACE(&l3->tracer, "no icmpv6 error: %s", why);
        return;
    }
    TRACE(&l3->tracer, "icmpv6 error type %d code %d to %s", (int) error->type, error->code,
          TRACE_ADDR(&bad->src));
    enum drop_reason dropped = send_answer(l3, p, to, now);
    if (dropped) {
        l3->drops[dropped]++;
    }
}

void
l3_answer_drop(struct l3 *l3, const struct packet *p, uint32_t ofs, enum l3_errors errors,
               enum drop_reason why, uint32_t mtu, uint64_t now)
{
    struct icmp6_error error = {.type = ICMP6_UNREACHABLE};

    switch (why) {
    case DROP_no_route:
    case DROP_sid_unknown: error.code = ICMP6_UNREACHABLE_NO_ROUTE; break;
    case DROP_no_neighbour:
    case DROP_port_down: error.code = ICMP6_UNREACHABLE_ADDRESS; break;
    case DROP_too_long: error = (struct icmp6_error){.type = ICMP6_TOO_BIG, .param = mtu}; break;
    default: return; /* congestion must not be answered, RFC 4443 section 3.1. */
    }
    if (errors == L3_ERRORS_ALL || (errors == L3_ERRORS_PTB && why == DROP_too_long)) {
        send_error(l3, p, ofs, &error, NULL, now);
    }
}

/* RFC 8200 section 4.2: is the sender told nothing of an option of this type? */
#define OPTION_IS_SILENT(TYPE)   ((TYPE) >> 6 == 1)
/* The same: is the sender told even if many may have received the packet? */
#define OPTION_IS_FOR_MANY(TYPE) ((TYPE) >> 6 == 2)

/* An error message about a frame.  About a frame to many stations there is one only for an option
 * that wants it, RFC 4443 section 2.4(e.4). */
static void
answer_frame(struct l3 *l3, const struct packet *p, const struct parsed *h,
             const struct icmp6_error *error, const struct station *to, uint64_t now)
{
    bool for_many = error->type == ICMP6_PARAMETER && error->code == ICMP6_PARAMETER_OPTION
                    && OPTION_IS_FOR_MANY(p->data[h->ip.ofs + error->param]);

    if (l3_is_group_frame(p) && !for_many) {
        TRACE(&l3->tracer, "no icmpv6 error: sent to many stations");
    } else {
        send_error(l3, p, h->ip.ofs, error, to, now);
    }
}

void
l3_icmp_time_exceeded(struct l3 *l3, const struct packet *p, const struct parsed *h, uint64_t now)
{
    const struct icmp6_error error = {.type = ICMP6_TIME, .code = ICMP6_TIME_HOP_LIMIT};

    answer_frame(l3, p, h, &error, NULL, now);
}

void
l3_icmp_param_problem(struct l3 *l3, const struct packet *p, const struct parsed *h, uint8_t code,
                      uint32_t pointer, uint64_t now)
{
    const struct icmp6_error error = {ICMP6_PARAMETER, code, pointer};

    answer_frame(l3, p, h, &error, NULL, now);
}

enum drop_reason
l3_check_options(struct l3 *l3, const struct packet *p, const struct parsed *h, uint64_t now)
{
    const uint8_t *ip = p->data + h->ip.ofs;
    struct icmp6_upper upper;

    if (!icmp6_find_upper(ip, (size_t) (h->ip.end - h->ip.ofs), &upper)) {
        return DROP_ext_chain;
    }
    if (!upper.option_ofs) {
        return DROP_none;
    }
    if (OPTION_IS_FOR_MANY(ip[upper.option_ofs])) {
        l3_icmp_param_problem(l3, p, h, ICMP6_PARAMETER_OPTION, upper.option_ofs, now);
    }
    return DROP_ip6_option;
}

/*
 * Packets for the node itself.
 */

static enum drop_reason
icmp_input(struct l3 *l3, const struct ip6_hdr_wire *ip, const uint8_t *icmp, size_t len,
           const struct station *from, uint64_t now)
{
    if (!icmp6_is_valid(ip, icmp, len)) {
        return DROP_icmp_malformed;
    }
    const struct icmp6_wire *message = (const struct icmp6_wire *) icmp;
    if (ICMP6_IS_ERROR(message->type)) {
        TRACE(&l3->tracer, "icmpv6 error type %d code %d from %s", message->type, message->code,
              TRACE_ADDR(&ip->src));
        return DROP_icmp_error;
    }
    if (message->type != ICMP6_ECHO) {
        return DROP_not_for_us;
    }
    TRACE(&l3->tracer, "icmpv6 echo request from %s: reply", TRACE_ADDR(&ip->src));
    struct packet *reply = icmp6_echo_build(l3->pool, ip, icmp, len);
    return reply ? send_answer(l3, reply, from, now) : DROP_pool_empty;
}

/* What the sender of a packet that nothing here takes is told.  False: nothing. */
static bool
refusal(const uint8_t *ip, const struct icmp6_upper *upper, struct icmp6_error *error)
{
    if (upper->option_ofs) {
        *error = (struct icmp6_error){ICMP6_PARAMETER, ICMP6_PARAMETER_OPTION, upper->option_ofs};
        return !OPTION_IS_SILENT(ip[upper->option_ofs]);
    }
    /* RFC 8754 section 4.3.3: this address is no SID, so a segment list ends here only if none is
     * left. */
    if (upper->routing_ofs) {
        *error =
            (struct icmp6_error){ICMP6_PARAMETER, ICMP6_PARAMETER_FIELD,
                                 upper->routing_ofs + (uint32_t) offsetof(struct srh_hdr, type)};
        return true;
    }
    if (upper->is_fragment || upper->proto == IP6_NH_NONE) {
        return false; /* nothing that needs fragments is for a node. */
    }
    *error =
        upper->proto == IP6_NH_UDP
            ? (struct icmp6_error){ICMP6_UNREACHABLE, ICMP6_UNREACHABLE_PORT, 0}
            : (struct icmp6_error){ICMP6_PARAMETER, ICMP6_PARAMETER_NEXT_HEADER, upper->proto_ofs};
    return true;
}

enum drop_reason
l3_local_input(struct l3 *l3, uint16_t number, const struct packet *p, const struct parsed *h,
               uint64_t now)
{
    const struct ip6_hdr_wire *ip = ip_at(p, h->ip.ofs);
    size_t len = (size_t) (h->ip.end - h->ip.ofs);
    const struct eth_hdr *eth = (const struct eth_hdr *) p->data;
    const struct station from = {l3_port(l3, number), eth->src};
    struct icmp6_error error;
    struct icmp6_upper upper;

    if (!from.port || (from.port->role != ROLE_HOST && IN6_ARE_ADDR_EQUAL(&ip->dst, &l3_gateway))) {
        return DROP_not_for_us; /* on other ports that is somebody else's name. */
    }
    if (IN6_IS_ADDR_UNSPECIFIED(&ip->src) || IN6_IS_ADDR_LOOPBACK(&ip->src)) {
        return DROP_ip6_src;
    }
    if (!icmp6_find_upper((const uint8_t *) ip, len, &upper)) {
        return DROP_ext_chain;
    }
    if (upper.proto == IP6_NH_ICMPV6 && !upper.is_fragment && !upper.option_ofs
        && !upper.routing_ofs) {
        return icmp_input(l3, ip, (const uint8_t *) ip + upper.ofs, len - upper.ofs, &from, now);
    }
    if (refusal((const uint8_t *) ip, &upper, &error)) {
        answer_frame(l3, p, h, &error, &from, now);
    }
    return DROP_not_for_us;
}
