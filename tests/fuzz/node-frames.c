/* SPDX-License-Identifier: Apache-2.0
 *
 * Packets for nodes on a bench, as a fuzzer's input says.
 */
#include "tests/fuzz/node-frames.h"

#include "lib/cm.h"
#include "lib/nd.h"
#include "lib/roce.h"
#include "lib/stamp.h"
#include "tests/unit/modes-fixture.h"
#include "tests/unit/outer-fixture.h"

struct in6_addr
choose_address(struct fuzz_input *in)
{
    uint32_t which = fuzz_below(in, 20);
    const uint16_t functions[] = {SID_FUNC_END,     SID_FUNC_END_MT, SID_FUNC_RESPONSE,
                                  SID_FUNC_END_DT6, GROUP_RS,        0xe00f};
    const uint16_t nodes[] = {STAR_EDGE_ID, STAR_AGENT_ID, CHILD_A, CHILD_B, PARENT, 0x999};

    switch (which) {
    case 0:
    case 1: return star_proxy;
    case 2: return star_source;
    case 3:
    case 4:
    case 5: return star_receiver(which - 3);
    case 6: return addr_of("fd00:7::7");
    case 7: return addr_of("ff02::1");
    case 8: return addr_of("fe80::1");
    case 9: return node_address(FUZZ_CHOOSE(in, nodes));
    case 10: return (struct in6_addr) IN6ADDR_ANY_INIT;
    case 16:
    case 17: return mcast_group_address(REPLICATION_ID);
    case 18: return mcast_group_address((uint16_t) (REPLICATION_ID + 1));
    case 11:
    case 12: {
        uint16_t node = FUZZ_CHOOSE(in, nodes);
        return node_sid(node, FUZZ_CHOOSE(in, functions));
    }
    default: return node_sid(STAR_EDGE_ID, FUZZ_CHOOSE(in, functions));
    }
}

static uint32_t
choose_psn(struct fuzz_input *in)
{
    uint32_t x = fuzz_byte(in);

    return (x < 0xf0 ? START - 4 + x % 32 : fuzz_below(in, PSN_MASK + 1)) & PSN_MASK;
}

/* RoCE between addresses that are given or chosen. */
static struct roce_spec
choose_roce(struct fuzz_input *in, const struct in6_addr *src, const struct in6_addr *dst)
{
    const uint32_t qpns[] = {STAR_DQPN, STAR_DQPN, STAR_DQPN + 1, STAR_SOURCE_QPN, 0x11, 0xffffff};
    const uint8_t syndromes[] = {0x1f, 0x1f, 0x60, 0x20, 0x2c, 0x62, 0x05, 0xff};
    const uint16_t lengths[] = {0, 1, 64, 1023, 1024, 1025, 4096};
    uint8_t flags = fuzz_byte(in);

    /* One by one: the order in an initializer is the compiler's choice. */
    struct roce_spec s = {.src = src, .dst = dst, .ack_req = flags & 1};
    s.dest_qp = FUZZ_CHOOSE(in, qpns);
    s.opcode = flags & 0x80 ? fuzz_byte(in) : (uint8_t) fuzz_below(in, 0x20);
    s.psn = choose_psn(in);
    s.va = flags & 2 ? fuzz_below(in, 0x20000) : 0;
    s.rkey = flags & 4 ? fuzz_byte(in) : STAR_RKEY;
    s.dma_len = flags & 8 ? fuzz_below(in, 0x20000) : 64;
    s.syndrome = FUZZ_CHOOSE(in, syndromes);
    s.msn = fuzz_byte(in);
    s.payload_len = flags & 16 ? FUZZ_CHOOSE(in, lengths) : 64;
    return s;
}

/* Packets, without Ethernet header; each returns the length. */

static size_t
make_request(struct fuzz_input *in, uint8_t *out)
{
    struct roce_spec spec = choose_roce(in, &star_source, &star_proxy);
    return roce_build(out, &spec);
}

static size_t
make_roce(struct fuzz_input *in, uint8_t *out)
{
    struct in6_addr src = choose_address(in), dst = choose_address(in);
    struct roce_spec spec = choose_roce(in, &src, &dst);
    return roce_build(out, &spec);
}

static size_t
make_response(struct fuzz_input *in, uint8_t *out)
{
    struct in6_addr src = star_receiver(fuzz_below(in, N_RECEIVERS));
    struct roce_spec spec = choose_roce(in, &src, &star_proxy);
    spec.opcode = RC_ACK;
    return roce_build(out, &spec);
}

static size_t
make_encapsulated(struct fuzz_input *in, uint8_t *out)
{
    struct in6_addr dst = choose_address(in);
    struct roce_spec spec = choose_roce(in, &star_source, &star_proxy);
    return transit_encapsulated(out, &dst, &spec, fuzz_below(in, N_RECEIVERS + 1));
}

static size_t
make_tunnelled(struct fuzz_input *in, uint8_t *out)
{
    const uint16_t nodes[] = {CHILD_A, CHILD_B, STAR_EDGE_ID, STAR_AGENT_ID, 0x999};
    const uint16_t parents[] = {CHILD_A,      STAR_EDGE_ID, STAR_EDGE_ID, STAR_EDGE_ID,
                                STAR_EDGE_ID, STAR_EDGE_ID, STAR_EDGE_ID, STAR_AGENT_ID};
    uint16_t from = FUZZ_CHOOSE(in, nodes);
    uint16_t to = FUZZ_CHOOSE(in, parents);
    uint32_t qpn = STAR_DQPN + fuzz_below(in, 2);
    uint8_t syndrome = fuzz_byte(in);
    return tunnelled_response(out, from, to, qpn, syndrome, choose_psn(in));
}

static size_t
make_plain(struct fuzz_input *in, uint8_t *out)
{
    const uint8_t protocols[] = {17, 58, 6, 59, 0, 43, 44, 60, 41};
    struct in6_addr src = choose_address(in), dst = choose_address(in);
    uint8_t proto = FUZZ_CHOOSE(in, protocols);
    size_t n;
    const uint8_t *bytes = fuzz_bytes(in, fuzz_byte(in), &n);
    uint8_t *to = ip6_build(out, src, dst, proto, n);

    memcpy(to, n ? bytes : out, n);
    return IP6_HDR_LEN + n;
}

static size_t
make_routed(struct fuzz_input *in, uint8_t *out)
{
    struct in6_addr src = choose_address(in), dst = choose_address(in), segments[4], inner[2];
    uint8_t n = (uint8_t) (1 + fuzz_below(in, 4)), left = fuzz_byte(in);
    _Alignas(4) uint8_t bytes[256];

    for (uint8_t i = 0; i < n; i++) {
        segments[i] = choose_address(in);
    }
    inner[0] = choose_address(in);
    inner[1] = choose_address(in);
    size_t srh_len = srh_build(bytes, segments, n, left < 0xf0 ? left % 6 : left, IP6_NH_IPV6);
    uint8_t *to = ip6_build(out, src, dst, IP6_NH_ROUTING, srh_len + IP6_HDR_LEN + 8);
    memcpy(to, bytes, srh_len);
    ip6_build(to + srh_len, inner[0], inner[1], IP6_NH_NONE, 8);
    return IP6_HDR_LEN + srh_len + IP6_HDR_LEN + 8;
}

static size_t
make_raw(struct fuzz_input *in, uint8_t *out)
{
    size_t n;
    const uint8_t *bytes = fuzz_bytes(in, fuzz_below(in, 2048), &n);

    memcpy(out, n ? bytes : out, n);
    return n;
}

/* So that the next TLV is where auth_ TLVs have to be. */
static void
align_tlv(struct outer *o)
{
    size_t pad = -o->tlvs_len & 7;

    if (pad == 1) {
        outer_put_pad1(o);
    } else if (pad) {
        outer_put_tlv(o, SRH_TLV_PADN, (uint8_t) (pad - 2), 0);
    }
}

/* With a nonce of few; its tag is made, or not, when the packet is whole. */
static void
put_data(struct fuzz_input *in, struct outer *o, uint8_t len)
{
    struct data_tlv *tlv = (struct data_tlv *) (o->tlvs + o->tlvs_len);
    uint8_t seq = fuzz_byte(in), instance = fuzz_byte(in);

    outer_put_tlv(o, SRH_TLV_DATA, len, 0);
    if (len == AUTH_TLV_LEN) {
        tlv->seq = be64_put(seq & 0x80 ? UINT64_C(1) << (seq & 0x3f) : seq);
        tlv->instance = be32_put(instance & 3);
    }
}

static void
put_auth(struct fuzz_input *in, struct outer *o, uint8_t type)
{
    uint8_t flags = fuzz_byte(in);

    if (!(flags & 1)) {
        align_tlv(o);
    }
    uint8_t *tlv = o->tlvs + o->tlvs_len;
    if (flags & 4 && type == SRH_TLV_MT_AUTH) {
        put_data(in, o, flags & 2 ? (uint8_t) (6 + flags % 5 * 8) : AUTH_TLV_LEN);
        return;
    }
    outer_put_tlv(o, type, flags & 2 ? (uint8_t) (6 + flags % 5 * 8) : AUTH_TLV_LEN, 0);
    tlv[2] = type == SRH_TLV_HMAC ? flags & 0x80 : 0;
}

static void
put_tlv(struct fuzz_input *in, struct outer *o)
{
    const uint16_t edges[] = {STAR_EDGE_ID, STAR_EDGE_ID, STAR_EDGE_ID, CHILD_A};
    const uint8_t value = fuzz_byte(in);

    switch (fuzz_below(in, 8)) {
    case 0:
    case 1: {
        uint16_t edge = FUZZ_CHOOSE(in, edges);
        uint32_t first = fuzz_below(in, N_RECEIVERS);
        outer_put_mt(o, edge, first, (uint8_t) fuzz_below(in, N_RECEIVERS + 1), value);
        break;
    }
    case 2:
    case 3: put_auth(in, o, SRH_TLV_MT_AUTH); break;
    case 4:
    case 5: put_auth(in, o, SRH_TLV_HMAC); break;
    case 6: outer_put_pad1(o); break;
    default: outer_put_tlv(o, fuzz_byte(in), (uint8_t) fuzz_below(in, 64), value); break;
    }
}

/* An encapsulated request with anything that the outer headers may have. */
static size_t
make_outer(struct fuzz_input *in, uint8_t *out)
{
    uint8_t inner[PACKET_ROOM], ext[8] = {IP6_NH_ROUTING, 0};
    struct outer o = outer_plain();
    uint8_t flags = fuzz_byte(in), n_tlvs = (uint8_t) fuzz_below(in, 7);
    struct in6_addr dst = choose_address(in);

    if (flags & 1) {
        o.n_segments = (uint8_t) (1 + fuzz_below(in, MAX_SEGMENTS));
        for (uint8_t i = flags >> 7; i < o.n_segments; i++) {
            o.segments[i] = choose_address(in);
        }
    }
    if (flags & 2) {
        o.segments_left = (uint8_t) fuzz_below(in, MAX_SEGMENTS + 2);
    }
    if (flags & 4) {
        o.flags = fuzz_byte(in);
        o.tag = fuzz_byte(in);
    }
    if (flags & 8) { /* an option. */
        o.first_nh = flags & 16 ? IP6_NH_DSTOPT : IP6_NH_HOPOPT;
        o.before = ext;
        o.before_len = sizeof ext;
        ext[2] = fuzz_byte(in);
        ext[3] = (uint8_t) (flags & 32 ? fuzz_byte(in) : 4);
    }
    for (; n_tlvs; n_tlvs--) {
        put_tlv(in, &o);
    }
    struct roce_spec spec = choose_roce(in, &star_source, &star_proxy);
    size_t len = outer_build(out, &o, inner, roce_build(inner, &spec));
    ((struct ip6_hdr_wire *) out)->dst = dst;
    return len;
}

/* What a root sends to the source's host. */
static size_t
make_merged(struct fuzz_input *in, uint8_t *out)
{
    struct roce_spec spec = choose_roce(in, &star_proxy, &star_source);

    spec.opcode = RC_ACK;
    spec.dest_qp = STAR_SOURCE_QPN;
    return roce_build(out, &spec);
}

/* A packet of any kind in a tunnel; no deeper than the parser looks, and a level more. */
static size_t
make_in_ip(struct fuzz_input *in, uint8_t *out)
{
    static size_t (*const inside[])(struct fuzz_input *, uint8_t *) = {
        make_request, make_response, make_plain, make_routed, make_tunnelled};
    uint8_t inner[PACKET_ROOM];
    struct in6_addr src = choose_address(in), dst = choose_address(in);
    size_t len = FUZZ_CHOOSE(in, inside)(in, inner);

    memcpy(ip6_build(out, src, dst, IP6_NH_IPV6, len), inner, len);
    return IP6_HDR_LEN + len;
}

/* A packet that a node would make; releases it and its pool. */
static size_t
take_packet(struct packet_pool *pool, struct packet *p, uint8_t *out)
{
    size_t len = packet_flatten(p, out, MAX_IP_LEN);

    packet_put(p);
    packet_pool_destroy(pool);
    return len;
}

/* What a host's communication manager says, with few different IDs: some that the node has. */
static size_t
make_cm(struct fuzz_input *in, uint8_t *out)
{
    const enum cm_attribute attributes[] = {CM_REQ, CM_REQ, CM_REQ,  CM_REP,  CM_RTU,
                                            CM_REJ, CM_MRA, CM_DREQ, CM_DREP, CM_SIDR_REQ};
    uint8_t who = fuzz_byte(in), flags = fuzz_byte(in), ids = fuzz_byte(in);
    struct in6_addr host = who & 1 ? star_receiver(who >> 1 & 1) : star_source;
    struct in6_addr proxy = proxy_address(1 + (who >> 2 & 1));
    struct cm_msg m = {.attribute = FUZZ_CHOOSE(in, attributes)};

    m.tid = flags & 3;
    m.local_id = ids & 3;
    m.remote_id = (ids >> 2 & 7) | (ids & 0x80 ? 0x80000000 : 0);
    m.qpn = flags & 4 ? star_qpn(0) : STAR_SOURCE_QPN;
    m.remote_qpn = flags & 8 ? STAR_DQPN : 3;
    m.psn = psn_make(START);
    m.mtu_code = fuzz_byte(in);
    m.service = flags & 16 ? fuzz_byte(in) : CM_SERVICE_TCP | 7174;
    m.ip_header = cm_service_is_tcp(m.service) && !(flags & 32);
    m.ip_src = flags & 64 ? proxy : host;
    m.ip_dst = proxy;
    m.about = (enum cm_about)(flags >> 6);
    m.reason = fuzz_byte(in);
    struct packet_pool *pool = packet_pool_create(1);
    return take_packet(pool, cm_build(pool, &host, &proxy, m.psn, &m), out);
}

/* What a neighbour asks or says. */
static size_t
make_nd(struct fuzz_input *in, uint8_t *out)
{
    struct packet_pool *pool = packet_pool_create(1);
    struct packet *p = packet_get(pool);
    uint8_t flags = fuzz_byte(in);
    struct nd_msg m = {.type = flags & 1 ? ND_NA : ND_NS, .mac = {2, 0xee, 0, 0, 0, flags >> 5}};

    m.src = choose_address(in);
    m.target = flags & 2 ? m.src : choose_address(in);
    m.dst = flags & 4 ? choose_address(in) : nd_solicited_node(&m.target);
    m.router = flags & 8;
    m.solicited = flags & 16;
    m.override = flags & 32;
    nd_build(p, m.mac, m.mac, &m);
    packet_pull(p, sizeof(struct eth_hdr));
    return take_packet(pool, p, out);
}

/* A probe of another node, or something like one. */
static size_t
make_probe(struct fuzz_input *in, uint8_t *out)
{
    const uint16_t nodes[] = {CHILD_A, PARENT, STAR_EDGE_ID, STAR_AGENT_ID};
    uint16_t from = FUZZ_CHOOSE(in, nodes), to = FUZZ_CHOOSE(in, nodes);
    struct in6_addr src = node_address(from), end = node_locator(to);
    const struct program program = {.n = 1, .containers = {end}};
    uint8_t flags = fuzz_byte(in);
    struct stamp say = {.ssid = flags & 3, .has_cos = flags & 4, .has_cookie = flags & 8};

    say.seq = fuzz_byte(in);
    say.back.n = flags >> 4 & 3;
    for (unsigned i = 0; i < say.back.n; i++) {
        say.back.containers[i] = flags & 64 ? choose_address(in) : node_locator(PARENT);
    }
    if (say.back.n && flags & 128) { /* ends at the node that asks. */
        say.back.containers[say.back.n - 1].s6_addr[6] = (uint8_t) (from >> 8);
        say.back.containers[say.back.n - 1].s6_addr[7] = (uint8_t) from;
    }
    struct packet_pool *pool = packet_pool_create(1);
    return take_packet(
        pool,
        stamp_build(pool, &say, &src, &program, &end, fuzz_byte(in), 0, 50000, UDP_PORT_STAMP, 0),
        out);
}

static size_t (*const makers[])(struct fuzz_input *, uint8_t *) = {
    make_request, make_request, make_encapsulated, make_encapsulated, make_response, make_tunnelled,
    make_roce,    make_plain,   make_routed,       make_raw,          make_outer,    make_outer,
    make_outer,   make_merged,  make_in_ip,        make_nd,
};

size_t
choose_packet(struct fuzz_input *in, uint8_t *ip)
{
    const uint8_t which = fuzz_byte(in);

    /* Inputs from before there were these mean the same, nearly all. */
    return which >= 0xf8   ? make_cm(in, ip)
           : which >= 0xf4 ? make_probe(in, ip)
                           : makers[which % (sizeof makers / sizeof *makers)](in, ip);
}

struct auth_key
auth_key_of(uint32_t id, uint8_t variant)
{
    return (struct auth_key){.id = id,
                             .len = AUTH_SECRET_MIN,
                             .secret = {(uint8_t) id, [AUTH_SECRET_MIN - 1] = variant}};
}

size_t
mutate(struct fuzz_input *in, uint8_t *ip, size_t len)
{
    uint8_t what = fuzz_byte(in);

    for (int i = 0; i < (what & 3) && len; i++) {
        size_t at = fuzz_below(in, 0x10000) % len;
        ip[at] ^= fuzz_byte(in);
    }
    if (what & 4) {
        len -= fuzz_below(in, 0x10000) % (len + 1);
    }
    if (what & 8) {
        size_t more = fuzz_byte(in);
        memset(ip + len, 0xa5, more);
        len += more;
    }
    return len;
}
