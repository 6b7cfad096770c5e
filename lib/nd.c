/* SPDX-License-Identifier: Apache-2.0
 *
 * Neighbour Solicitation and Advertisement messages.
 */
#include "lib/nd.h"

#include <assert.h>

#include "lib/inet-csum.h"

/* Both messages have the same form; NS has no flags.
 *
 *   0               1               2               3
 *  +---------------+---------------+-------------------------------+
 *  |  Type 135/136 |     Code 0    |           Checksum            |
 *  +-+-+-+---------+---------------+-------------------------------+
 *  |R|S|O|                     Reserved                            |
 *  +-+-+-+---------------------------------------------------------+
 *  |                       Target Address (16)                     |
 *  +---------------------------------------------------------------+
 *  |   Options ...
 */
struct nd_wire {
    uint8_t type;
    uint8_t code;
    be16_t csum;
    uint8_t flags;
    uint8_t rsv[3];
    in6_wire_t target;
};
static_assert(sizeof(struct nd_wire) == 24, "NS and NA");

#define NA_ROUTER    0x80
#define NA_SOLICITED 0x40
#define NA_OVERRIDE  0x20

/* Source or target link-layer address option for Ethernet, section 4.6.1. */
struct nd_lladdr_opt {
    uint8_t type;
    uint8_t len; /* in 8-octet units. */
    uint8_t mac[6];
};
static_assert(sizeof(struct nd_lladdr_opt) == 8, "link-layer address option");

#define ND_OPT_SLLA  1
#define ND_OPT_TLLA  2

#define ND_HOP_LIMIT 255 /* proves that no router forwarded it. */

/* The other types of neighbour discovery surround NS and NA. */
#define ND_TYPE_MIN  133
#define ND_TYPE_MAX  137

static bool
mac_is_unicast(const uint8_t mac[6])
{
    static const uint8_t zero[6];

    return !(mac[0] & 1) && memcmp(mac, zero, sizeof zero) != 0;
}

/* Walks the options.  False if one is malformed: the whole message is then discarded. */
static bool
parse_options(const uint8_t *opts, size_t len, uint8_t wanted, struct nd_msg *m)
{
    while (len) {
        if (len < 2 || !opts[1] || opts[1] * 8u > len) {
            return false;
        }
        if (opts[0] == wanted && !m->has_mac) {
            const struct nd_lladdr_opt *opt = (const struct nd_lladdr_opt *) opts;
            if (opt->len != 1 || !mac_is_unicast(opt->mac)) {
                return false;
            }
            m->has_mac = true;
            memcpy(m->mac, opt->mac, sizeof m->mac);
        }
        len -= opts[1] * 8u;
        opts += opts[1] * 8u;
    }
    return true;
}

static bool
is_valid(const struct ip6_hdr_wire *ip, const struct nd_wire *nd, size_t len, struct nd_msg *m)
{
    if (len < sizeof *nd || nd->code || ip->hlim != ND_HOP_LIMIT
        || IN6_IS_ADDR_MULTICAST(&nd->target) || IN6_IS_ADDR_MULTICAST(&ip->src)
        || be16_get(inet_csum_ip6(&ip->src, &ip->dst, IP6_NH_ICMPV6, nd, len))) {
        return false;
    }

    *m = (struct nd_msg){
        .type = (enum nd_type) nd->type,
        .src = ip->src,
        .dst = ip->dst,
        .target = nd->target,
    };
    uint8_t opt = nd->type == ND_NS ? ND_OPT_SLLA : ND_OPT_TLLA;
    if (!parse_options((const uint8_t *) (nd + 1), len - sizeof *nd, opt, m)) {
        return false;
    }

    if (nd->type == ND_NA) {
        m->router = nd->flags & NA_ROUTER;
        m->solicited = nd->flags & NA_SOLICITED;
        m->override = nd->flags & NA_OVERRIDE;
        return !(m->solicited && IN6_IS_ADDR_MULTICAST(&m->dst));
    }

    /* Duplicate address detection goes to the solicited-node group and names no MAC. */
    struct in6_addr group = nd_solicited_node(&m->target);
    return !IN6_IS_ADDR_UNSPECIFIED(&m->src)
           || (IN6_ARE_ADDR_EQUAL(&m->dst, &group) && !m->has_mac);
}

enum nd_verdict
nd_parse(const uint8_t *frame, const struct parsed *parsed, struct nd_msg *m)
{
    const struct ip6_hdr_wire *ip = (const struct ip6_hdr_wire *) (frame + parsed->ip.ofs);
    const struct nd_wire *nd = (const struct nd_wire *) (ip + 1);
    size_t len = (size_t) (parsed->ip.end - parsed->ip.ofs) - sizeof *ip;

    if (ip->nh != IP6_NH_ICMPV6 || !len || nd->type < ND_TYPE_MIN || nd->type > ND_TYPE_MAX) {
        return ND_NONE;
    }
    if (nd->type != ND_NS && nd->type != ND_NA) {
        return ND_OTHER;
    }
    return is_valid(ip, nd, len, m) ? ND_VALID : ND_INVALID;
}

void
nd_build(struct packet *p, const uint8_t eth_src[6], const uint8_t eth_dst[6],
         const struct nd_msg *m)
{
    assert(!p->len);
    p->len = sizeof(struct eth_hdr) + IP6_HDR_LEN + sizeof(struct nd_wire)
             + sizeof(struct nd_lladdr_opt);
    memset(p->data, 0, p->len);

    struct eth_hdr *eth = (struct eth_hdr *) p->data;
    memcpy(eth->dst, eth_dst, sizeof eth->dst);
    memcpy(eth->src, eth_src, sizeof eth->src);
    eth->type = be16_put(ETH_TYPE_IP6);

    struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) (eth + 1);
    struct nd_wire *nd = (struct nd_wire *) (ip + 1);
    struct nd_lladdr_opt *opt = (struct nd_lladdr_opt *) (nd + 1);
    uint16_t len = sizeof *nd + sizeof *opt;
    ip6_set_vtf(ip, 0, 0);
    ip->plen = be16_put(len);
    ip->nh = IP6_NH_ICMPV6;
    ip->hlim = ND_HOP_LIMIT;
    ip->src = m->src;
    ip->dst = m->dst;

    nd->type = (uint8_t) m->type;
    nd->flags = (uint8_t) ((m->router ? NA_ROUTER : 0) | (m->solicited ? NA_SOLICITED : 0)
                           | (m->override ? NA_OVERRIDE : 0));
    nd->target = m->target;
    opt->type = m->type == ND_NS ? ND_OPT_SLLA : ND_OPT_TLLA;
    opt->len = 1;
    memcpy(opt->mac, m->mac, sizeof opt->mac);
    nd->csum = inet_csum_ip6(&ip->src, &ip->dst, IP6_NH_ICMPV6, nd, len);
}

struct in6_addr
nd_solicited_node(const struct in6_addr *addr)
{
    struct in6_addr group = {.s6_addr = {0xff, 0x02, [11] = 1, [12] = 0xff}};

    memcpy(&group.s6_addr[13], &addr->s6_addr[13], 3);
    return group;
}

void
nd_multicast_mac(const struct in6_addr *group, uint8_t mac[6])
{
    mac[0] = 0x33;
    mac[1] = 0x33;
    memcpy(&mac[2], &group->s6_addr[12], 4);
}
