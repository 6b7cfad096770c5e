/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of a node's workers a frame is for.
 *
 * The Proxy is in the same place in nearly all packets of a group: behind an IPv6 header and eight
 * more bytes there is Segment List entry 0 of a packet that goes down, the inner source of a
 * response in a tunnel, and the target of a Neighbor Solicitation.  In plain responses it is the
 * destination or the source.
 */
#include "lib/steer.h"

#include <string.h>

#include "lib/address-plan.h"
#include "lib/fast-cnp.h"
#include "lib/nd.h"
#include "lib/parse.h"

/* From the beginning of the IPv6 header. */
#define NEXT_HEADER_OFS offsetof(struct ip6_hdr_wire, nh)
#define SRC_OFS         offsetof(struct ip6_hdr_wire, src)
#define BEHIND_OFS      (IP6_HDR_LEN + 8)
#define LAST_WORD       (sizeof(struct in6_addr) - 4)

unsigned
steer_proxy(unsigned n, const struct in6_addr *proxy)
{
    be32_t last;

    memcpy(&last, (const uint8_t *) proxy + LAST_WORD, sizeof last);
    return be32_get(last) % n;
}

/* Is this a Proxy Address?  Then *worker has it. */
static bool
find(unsigned n, const struct in6_addr *addr, unsigned *worker)
{
    if (!is_proxy_address(addr)) {
        return false;
    }
    *worker = steer_proxy(n, addr);
    return true;
}

/* Packets with other extension headers.  A Fast CNP is for whoever has the group that it is
 * about. */
static unsigned
look_closely(unsigned n, const struct packet *p)
{
    struct parsed h;
    struct fast_cnp said;
    unsigned worker = 0;

    if (parse_outer(p->data, p->len, &h)) {
        return 0;
    }
    if (fast_cnp_seen(p->data, p->len, &h)) {
        if (!fast_cnp_parse(p->data, p->len, &h, true, &said)) {
            (void) find(n, &said.original, &worker);
        }
    } else if (!parse_rest(p->data, p->len, &h)) {
        const struct ip6_hdr_wire *ip = (const void *) (p->data + parsed_innermost(&h)->ofs);
        (void) (find(n, &ip->dst, &worker) || find(n, &ip->src, &worker));
    }
    return worker;
}

unsigned
steer_frame(unsigned n, const struct packet *p)
{
    const struct eth_hdr *eth = (const struct eth_hdr *) p->data;
    const struct ip6_hdr_wire *ip = (const struct ip6_hdr_wire *) (eth + 1);
    const uint8_t *behind = (const uint8_t *) ip + IP6_HDR_LEN;
    unsigned worker = 0;

    if (n == 1 || p->len < sizeof *eth + BEHIND_OFS + sizeof(struct in6_addr)
        || be16_get(eth->type) != ETH_TYPE_IP6) {
        return 0;
    }
    switch (ip->nh) {
    case IP6_NH_ICMPV6:
        if (behind[0] == ND_NA) {
            return STEER_ALL;
        }
        /* fall through */
    case IP6_NH_ROUTING:
    case IP6_NH_IPV6:
        if (find(n, (const struct in6_addr *) (behind + 8), &worker)) {
            return worker;
        }
        return find(n, &ip->dst, &worker) || ip->nh == IP6_NH_ICMPV6 ? worker : look_closely(n, p);
    case IP6_NH_UDP:
        (void) (find(n, &ip->dst, &worker) || find(n, &ip->src, &worker));
        return worker;
    default: return look_closely(n, p);
    }
}

void
steer_program(struct sock_filter program[STEER_PROGRAM_LEN], unsigned n)
{
    const uint32_t net = (uint32_t) SKF_NET_OFF;
    const struct sock_filter code[STEER_PROGRAM_LEN] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, net + NEXT_HEADER_OFS),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IP6_NH_ROUTING, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IP6_NH_IPV6, 0, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, net + BEHIND_OFS + LAST_WORD),
        BPF_STMT(BPF_JMP | BPF_JA, 1),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, net + SRC_OFS + LAST_WORD),
        BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, n),
        BPF_STMT(BPF_RET | BPF_A, 0),
    };

    memcpy(program, code, sizeof code);
}
