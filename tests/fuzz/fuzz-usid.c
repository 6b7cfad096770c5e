/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs at a swedge with each SID that knows no groups (tests/unit/usid-fixture.h).
 *
 * The input makes frames: containers of uSIDs of this node, its neighbours and nobody, in IPv6 headers
 * in each other, with SRHs and options between them.  Each ends as one frame or none, with one drop at
 * most; a frame that goes on is not longer than it came and has fewer hops left; whoever is the next
 * node of a path is on the other end of the link; all packet buffers come back.
 */
#include <check.h>
#include <string.h>

#include "swedge/swedge.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/parse-check.h"
#include "tests/unit/usid-fixture.h"

#define MAX_FRAMES  40
#define MAX_NESTED  12
#define MAX_LEN     1500
#define SECOND_USEC 1000000

/* Strict programs take no links but those between the nodes that they name, and end here or go on as
 * they are. */
#define N_STRICT    9
static const uint16_t usids[] = {
    STAR_EDGE_ID,
    STAR_EDGE_ID,
    STAR_EDGE_ID,
    SPINE_A,
    SPINE_B,
    0x777,
    0,
    SID_FUNC_END_DT6,
    SID_FUNC_END_DX6 + HOST,
    SID_FUNC_END_DX6 + AGENT_PORT,
    SID_FUNC_END,
    SID_FUNC_UA + PORT_SA,
    SID_FUNC_UA + PORT_SB,
    SID_FUNC_UA + 9,
    SID_FUNC_END_X + PORT_SA,
    0xffff,
};

static struct in6_addr
choose_container(struct fuzz_input *in, bool strict)
{
    struct in6_addr container = node_locator(0);
    uint8_t n = (uint8_t) fuzz_below(in, 7);

    for (uint8_t i = 0; i < n; i++) {
        uint16_t usid = usids[fuzz_below(in, strict ? N_STRICT : sizeof usids / sizeof *usids)];

        container.s6_addr[4 + 2 * i] = (uint8_t) (usid >> 8);
        container.s6_addr[5 + 2 * i] = (uint8_t) usid;
    }
    return container;
}

static struct in6_addr
choose_address(struct fuzz_input *in, bool strict)
{
    const uint16_t nodes[] = {STAR_EDGE_ID, STAR_AGENT_ID, SPINE_A, SPINE_B, 0x777};

    switch (fuzz_below(in, 10)) {
    case 0: return OWN_HOST;
    case 1: return FAR_HOST;
    case 2: return star_source;
    case 3: return node_address(FUZZ_CHOOSE(in, nodes));
    case 4: return addr_of("ff02::1");
    default: return choose_container(in, strict);
    }
}

/* Writes up to 'room' bytes, a header and what is in it; returns how many. */
static size_t
make_packet(struct fuzz_input *in, bool strict, uint8_t *out, size_t room, unsigned nested)
{
    const uint8_t uppers[] = {IP6_NH_IPV6,   IP6_NH_IPV6, IP6_NH_IPV6,
                              IP6_NH_ICMPV6, IP6_NH_UDP,  IP6_NH_NONE};
    struct in6_addr src = node_address(fuzz_below(in, 2) ? STAR_AGENT_ID : SPINE_A);
    struct in6_addr dst = choose_address(in, strict), segments[4];
    uint8_t headers = fuzz_byte(in), hlim = fuzz_byte(in), upper = FUZZ_CHOOSE(in, uppers);
    uint8_t n_segments = headers & 1 ? (uint8_t) (1 + fuzz_below(in, 4)) : 0;
    bool option = headers & 2;
    size_t srh_len = n_segments ? 8 + 16u * n_segments : 0, options_len = option ? 8 : 0;
    size_t headers_len = IP6_HDR_LEN + srh_len + options_len;

    if (room < headers_len + 8) {
        return 0;
    }
    for (uint8_t i = 0; i < n_segments; i++) {
        segments[i] = strict ? choose_container(in, true) : choose_address(in, false);
    }
    uint8_t first = option ? IP6_NH_DSTOPT : n_segments ? IP6_NH_ROUTING : upper;
    uint8_t *at = ip6_build(out, src, dst, first, 0);

    out[7] = headers & 4 ? hlim : 64;
    if (option) {
        memcpy(at, (uint8_t[8]){n_segments ? IP6_NH_ROUTING : upper, 0, 1, 4}, 8);
        at += 8;
    }
    if (n_segments) {
        uint8_t left = (uint8_t) fuzz_below(in, n_segments + 2u);
        at += srh_build(at, segments, n_segments, left, upper);
    }
    size_t len = 0;
    if (upper == IP6_NH_IPV6 && nested < MAX_NESTED) {
        len = make_packet(in, strict, at, room - headers_len, nested + 1);
    }
    if (!len) {
        memset(at, 0, 8);
        len = 8;
    }
    len += headers_len;
    ((struct ip6_hdr_wire *) out)->plen = be16_put((uint16_t) (len - IP6_HDR_LEN));
    return len;
}

static void
spoil(struct fuzz_input *in, uint8_t *bytes, size_t len)
{
    for (uint32_t n = fuzz_below(in, 4); len && n; n--) {
        bytes[fuzz_below(in, 0x10000) % len] ^= fuzz_byte(in);
    }
}

/* A strict program that was for this node has left it: to the node that it names next, or to a host or
 * agent. */
static void
check_strict(const struct fixture *f, const struct frame *frame)
{
    const struct ip6_hdr_wire *ip = (const void *) (frame->bytes + frame->h.ip.ofs);
    const struct port_config *port = l3_port(f->class->l3(f->node), frame->port);
    struct in6_addr node = node_address(node_id_of(&ip->dst));

    REQUIRE(port && !f->down[frame->port]);
    REQUIRE(port->role != ROLE_FABRIC
            || (address_is_sid(&ip->dst) && IN6_ARE_ADDR_EQUAL(&port->peer_address, &node)));
}

enum { SPOILT = 8, STRICT = 16 }; /* beside links that are down. */

static void
step(struct fixture *f, struct fuzz_input *in)
{
    const uint16_t ports[] = {PORT_SA, PORT_SA, PORT_SB, AGENT_PORT, HOST};
    _Alignas(4) uint8_t bytes[MAX_LEN];
    const struct ip6_hdr_wire *ip = (const void *) bytes;
    uint8_t flags = fuzz_byte(in);
    uint16_t port = FUZZ_CHOOSE(in, ports);
    uint64_t drops = fixture_total_drops(f);
    size_t len = make_packet(in, flags & STRICT, bytes, sizeof bytes, 0);

    f->down[PORT_SA] = flags & 1;
    f->down[PORT_SB] = flags & 2;
    f->down[HOST] = flags & 4;
    if (flags & SPOILT) {
        spoil(in, bytes, len);
    }
    bool strict = (flags & (STRICT | SPOILT)) == STRICT
                  && address_is_of_node(&ip->dst, STAR_EDGE_ID) && address_is_sid(&ip->dst);
    f->now += SECOND_USEC;
    fixture_input(f, port, bytes, len);
    drops = fixture_total_drops(f) - drops;
    REQUIRE(f->n_frames <= 1);
    REQUIRE(drops <= 2); /* the packet, and what was to be said about it. */
    if (f->n_frames && !drops) {
        REQUIRE(f->frames[0].len <= len + sizeof(struct eth_hdr));
        if (strict) {
            check_strict(f, &f->frames[0]);
        }
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};
    struct fixture *f = usid_create(STAR_EDGE_ID, SPINE_A, SPINE_B);

    for (int i = 0; i < MAX_FRAMES && in.n; i++) {
        step(f, &in);
    }
    fixture_destroy(f);
    return 0;
}
