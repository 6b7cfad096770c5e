/* SPDX-License-Identifier: Apache-2.0
 *
 * A node on a bench: frames in, frames out, neighbours that answer.
 */
#include "tests/unit/node-fixture.h"
#include "tests/unit/parse-check.h"

#include <arpa/inet.h>
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/icmp6.h"
#include "lib/icrc.h"
#include "lib/nd.h"
#include "lib/response.h"
#include "lib/roce.h"
#include "swedge/swedge.h"

/* fd00:1::100 and fd00:ffff::1. */
const struct in6_addr star_source = {.s6_addr = {0xfd, 0, 0, 1, [14] = 1}};
const struct in6_addr star_proxy = {.s6_addr = {0xfd, 0, 0xff, 0xff, [15] = 1}};

struct in6_addr
addr_of(const char *text)
{
    struct in6_addr a;
    ck_assert_int_eq(inet_pton(AF_INET6, text, &a), 1);
    return a;
}

struct in6_addr
star_receiver(unsigned i)
{
    char text[INET6_ADDRSTRLEN];
    snprintf(text, sizeof text, "fd00:1::%x", i + 1);
    return addr_of(text);
}

uint32_t
star_qpn(unsigned i)
{
    return 0x11 + i;
}

uint32_t
star_rkey(unsigned i)
{
    return 0x200 + 0x31 * i;
}

uint64_t
star_va(unsigned i)
{
    return 0x7f0000001000u + 0x123000u * i;
}

uint16_t
star_port(unsigned i)
{
    return (uint16_t) (2 + i);
}

static void
peer_mac(uint16_t port, uint8_t mac[6])
{
    memcpy(mac, (uint8_t[]){0x02, 0xee, 0, 0, (uint8_t) (port >> 8), (uint8_t) port}, 6);
}

static const struct port_config *
port_of(const struct fixture *f, uint16_t number)
{
    for (size_t i = 0; i < f->config.n_ports; i++) {
        if (f->config.ports[i].number == number) {
            return &f->config.ports[i];
        }
    }
    ck_abort_msg("no port %u", number);
    return NULL;
}

/* If 'frame' asks for a neighbour: sends its answer in, if there is one. */
static bool
answer_nd(struct fixture *f, const struct frame *frame)
{
    uint16_t port = frame->port;
    struct nd_msg m;

    if (nd_parse(frame->bytes, &frame->h, &m) != ND_VALID || m.type != ND_NS) {
        return false;
    }
    if (f->mute) {
        return true;
    }
    struct packet *p = packet_get(f->pool);
    struct nd_msg na = {
        .type = ND_NA,
        .src = m.target,
        .dst = m.src,
        .target = m.target,
        .solicited = true,
        .override = true,
        .has_mac = true,
    };
    peer_mac(port, na.mac);
    nd_build(p, na.mac, port_of(f, port)->mac, &na);
    f->class->input(f->node, port, p, f->now);
    return true;
}

static void
tx(void *f_, uint16_t port, struct packet *p)
{
    struct fixture *f = f_;
    struct frame *frame = &f->frames[f->n_frames];

    if (f->sink) {
        f->sink(f, p);
        return;
    }
    REQUIRE(f->n_frames < FIXTURE_MAX_FRAMES);
    frame->len = packet_flatten(p, frame->bytes, sizeof frame->bytes);
    sent_frames_put(&f->sent, p);
    frame->port = port;
    REQUIRE(parse_outer(frame->bytes, (uint32_t) frame->len, &frame->h) == DROP_none);
    enum drop_reason why = parse_rest(frame->bytes, (uint32_t) frame->len, &frame->h);
    REQUIRE(f->mangled || why == DROP_none);
    if (!answer_nd(f, frame)) {
        f->n_frames++;
    }
}

void
fixture_settle(struct fixture *f)
{
    REQUIRE(sent_frames_flush(&f->sent)); /* no frame was changed after it was sent. */
}

static uint32_t
mtu(void *f_, uint16_t port)
{
    const struct fixture *f = f_;

    REQUIRE(port < FIXTURE_MAX_PORTS);
    return f->mtu[port] ? f->mtu[port] : UINT32_MAX;
}

static bool
up(void *f_, uint16_t port)
{
    const struct fixture *f = f_;

    REQUIRE(port < FIXTURE_MAX_PORTS);
    return !f->down[port];
}

static void *
zalloc(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size);
    REQUIRE(p);
    return p;
}

static void
add_port(struct node_config *c, uint16_t number, enum port_role role, struct in6_addr peer)
{
    struct port_config *pc = &c->ports[c->n_ports++];
    *pc = (struct port_config){.number = number, .role = role, .peer_address = peer};
    snprintf(pc->name, sizeof pc->name, "p%u", number);
    node_port_mac(c->id, number, pc->mac);
}

static void
add_route(struct node_config *c, struct in6_addr prefix, uint8_t plen, uint16_t port,
          struct in6_addr next_hop)
{
    c->routes[c->n_routes++] = (struct route_config){prefix, plen, port, next_hop};
}

static struct branch_config *
make_branches(unsigned n)
{
    struct branch_config *v = zalloc(n, sizeof *v);
    for (unsigned i = 0; i < n; i++) {
        v[i] = (struct branch_config){
            .id = i + 1,
            .kind = BRANCH_RECEIVER,
            .address = star_receiver(i),
            .edge = node_address(STAR_EDGE_ID),
            .qpn = star_qpn(i),
            .rkey = star_rkey(i),
            .va = star_va(i),
            .len = STAR_REGION,
        };
        snprintf(v[i].name, sizeof v[i].name, "r%u", i + 1);
    }
    return v;
}

void
star_config(struct node_config *c, bool edge, unsigned n)
{
    struct in6_addr none = IN6ADDR_ANY_INIT;

    c->generation = 1;
    c->id = edge ? STAR_EDGE_ID : STAR_AGENT_ID;
    c->address = node_address(c->id);
    c->ports = zalloc(n + 2, sizeof *c->ports);
    c->routes = zalloc(n + 4, sizeof *c->routes);
    c->trees = zalloc(1, sizeof *c->trees);
    c->n_trees = 1;
    struct tree_config *t = &c->trees[0];
    *t = (struct tree_config){
        .group = "g",
        .generation = 1,
        .epoch = 1,
        .proxy = star_proxy,
        .designated_qpn = STAR_DQPN,
        .start_psn = psn_make(START),
        .mtu = 1024,
        .designated_rkey = STAR_RKEY,
        .region_len = STAR_REGION,
        .source = star_source,
        .source_qpn = STAR_SOURCE_QPN,
        .outer_source = node_address(STAR_AGENT_ID),
        .root = edge,
        .outer_da = zalloc(1, sizeof *t->outer_da),
    };
    if (edge) {
        add_port(c, 1, ROLE_AGENT, node_address(STAR_AGENT_ID));
        for (unsigned i = 0; i < n; i++) {
            add_port(c, star_port(i), ROLE_HOST, star_receiver(i));
            add_route(c, star_receiver(i), 128, star_port(i), none);
        }
        add_route(c, node_locator(STAR_AGENT_ID), 48, 1, node_address(STAR_AGENT_ID));
        add_route(c, star_source, 128, 1, node_address(STAR_AGENT_ID));
        c->sids = zalloc(1, sizeof *c->sids);
        c->sids[c->n_sids++] = (struct sid_config){
            .prefix = node_sid(c->id, SID_FUNC_END_MT), .plen = 64, .behaviour = SID_END_MT};
        t->branches = make_branches(n);
        t->n_branches = n;
    } else {
        add_port(c, 1, ROLE_HOST, star_source);
        add_port(c, 2, ROLE_FABRIC, node_address(STAR_EDGE_ID));
        add_route(c, star_source, 128, 1, none);
        add_route(c, none, 0, 2, node_address(STAR_EDGE_ID));
        t->copies = make_branches(n);
        t->n_copies = n;
        t->outer_da[0] = node_sid(STAR_EDGE_ID, SID_FUNC_END_MT);
        t->n_outer_da = 1;
        t->open = true;
    }
}

/* Makes room for one more element behind 'n'. */
static void *
grow(void *array, size_t n, size_t size)
{
    void *p = realloc(array, (n + 1) * size);
    REQUIRE(p);
    memset((uint8_t *) p + n * size, 0, size);
    return p;
}

void
fixture_add_node(struct fixture *f, uint16_t port, uint16_t id)
{
    struct node_config *c = &f->config;

    c->ports = grow(c->ports, c->n_ports, sizeof *c->ports);
    add_port(c, port, ROLE_FABRIC, node_address(id));
    c->routes = grow(c->routes, c->n_routes, sizeof *c->routes);
    add_route(c, node_locator(id), 48, port, node_address(id));
}

void
fixture_add_sid(struct fixture *f, uint16_t function, uint8_t plen, enum sid_behaviour behaviour)
{
    struct node_config *c = &f->config;

    c->sids = grow(c->sids, c->n_sids, sizeof *c->sids);
    c->sids[c->n_sids++] = (struct sid_config){
        .prefix = node_sid(c->id, function), .plen = plen, .behaviour = behaviour};
}

void
fixture_add_node_branch(struct fixture *f, uint16_t id)
{
    struct tree_config *t = &f->config.trees[0];

    t->branches = grow(t->branches, t->n_branches, sizeof *t->branches);
    struct branch_config *b = &t->branches[t->n_branches++];
    *b = (struct branch_config){
        .id = BRANCH_ID_NODE(id), .kind = BRANCH_NODE, .address = node_address(id)};
    snprintf(b->name, sizeof b->name, "n%x", id);
}

void
fixture_set_outer_das(struct fixture *f, const struct in6_addr *das, size_t n)
{
    struct tree_config *t = &f->config.trees[0];

    free(t->outer_da);
    t->outer_da = zalloc(n, sizeof *das);
    memcpy(t->outer_da, das, n * sizeof *das);
    t->n_outer_da = n;
}

void
fixture_configure(struct fixture *f)
{
    char *error = NULL;

    f->config.generation++;
    int err = f->class->configure(f->node, &f->config, f->now, &error);
    ck_assert_msg(!err, "configure: %s", error ? error : "");
    fixture_settle(f);
}

void
fixture_add_epoch(struct fixture *f)
{
    struct tree_config *old = f->config.trees;

    f->config.trees = zalloc(2, sizeof *f->config.trees);
    f->config.trees[0] = *old;
    tree_config_clone(&f->config.trees[1], old);
    f->config.trees[1].epoch++;
    f->config.trees[1].designated_qpn++;
    f->config.n_trees = 2;
    free(old);
    fixture_configure(f);
}

void
fixture_restart(struct fixture *f, uint32_t seed)
{
    const struct node_io io = {.tx = tx, .mtu = mtu, .up = up, .aux = f, .seed = seed};

    f->class->destroy(f->node);
    f->node = f->class->create(&io, f->pool);
    fixture_configure(f);
}

struct fixture *
fixture_create(const struct node_class *class, unsigned n_receivers)
{
    return fixture_create_with(class, n_receivers, 256);
}

struct fixture *
fixture_create_with(const struct node_class *class, unsigned n_receivers, unsigned n_packets)
{
    struct fixture *f = zalloc(1, sizeof *f);

    f->class = class;
    f->now = 1000000;
    f->pool = packet_pool_create(n_packets);
    f->node = class->create(&(struct node_io){.tx = tx, .mtu = mtu, .up = up, .aux = f}, f->pool);
    star_config(&f->config, class == &swedge_class, n_receivers);
    fixture_configure(f);
    return f;
}

void
fixture_destroy(struct fixture *f)
{
    fixture_settle(f);
    f->class->destroy(f->node);
    ck_assert_uint_eq(packet_pool_n_free(f->pool), packet_pool_size(f->pool));
    packet_pool_destroy(f->pool);
    node_config_uninit(&f->config);
    free(f);
}

size_t
fixture_frame(const struct fixture *f, uint16_t port, const uint8_t *ip, size_t len, uint8_t *out)
{
    struct eth_hdr *eth = (struct eth_hdr *) out;

    memcpy(eth->dst, port_of(f, port)->mac, 6);
    peer_mac(port, eth->src);
    eth->type = be16_put(ETH_TYPE_IP6);
    memcpy(eth + 1, ip, len);
    return sizeof *eth + len;
}

void
fixture_input_more(struct fixture *f, uint16_t port, const uint8_t *ip, size_t len)
{
    uint8_t bytes[PACKET_ROOM];
    struct packet *p = packet_from_bytes(f->pool, bytes, fixture_frame(f, port, ip, len, bytes));
    REQUIRE(p);
    f->class->input(f->node, port, p, f->now);
    fixture_settle(f);
}

void
fixture_input(struct fixture *f, uint16_t port, const uint8_t *ip, size_t len)
{
    f->n_frames = 0;
    fixture_input_more(f, port, ip, len);
}

void
fixture_timer(struct fixture *f)
{
    uint64_t when = f->class->deadline(f->node);

    REQUIRE(when != UINT64_MAX);
    f->now = when > f->now ? when : f->now;
    f->n_frames = 0;
    f->class->timer(f->node, f->now);
    fixture_settle(f);
}

bool
fixture_solicit(struct fixture *f, uint16_t port, struct in6_addr target)
{
    struct packet *p = packet_get(f->pool);
    struct nd_msg ns = {
        .type = ND_NS,
        .src = port_of(f, port)->peer_address,
        .dst = nd_solicited_node(&target),
        .target = target,
        .has_mac = true,
    };
    struct nd_msg na;

    peer_mac(port, ns.mac);
    nd_build(p, ns.mac, port_of(f, port)->mac, &ns);
    f->n_frames = 0;
    f->class->input(f->node, port, p, f->now);
    fixture_settle(f);
    if (!f->n_frames) {
        return false;
    }
    ck_assert_uint_eq(f->n_frames, 1);
    ck_assert_uint_eq(f->frames[0].port, port);
    ck_assert_int_eq(nd_parse(f->frames[0].bytes, &f->frames[0].h, &na), ND_VALID);
    ck_assert_int_eq(na.type, ND_NA);
    ck_assert_mem_eq(&na.target, &target, sizeof target);
    ck_assert_mem_eq(na.mac, port_of(f, port)->mac, 6);
    return true;
}

uint64_t
fixture_drops(const struct fixture *f, enum drop_reason why)
{
    return f->class->drops(f->node)[why];
}

uint64_t
fixture_total_drops(const struct fixture *f)
{
    uint64_t total = 0;
    for (enum drop_reason why = DROP_none + 1; why < N_DROP_REASONS; why++) {
        total += fixture_drops(f, why);
    }
    return total;
}

size_t
roce_build(uint8_t *out, const struct roce_spec *s)
{
    const struct roce_opcode_info *op = roce_opcode_info(s->opcode);
    size_t pad = -s->payload_len & 3;
    struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) out;
    struct udp_hdr *udp = (struct udp_hdr *) (ip + 1);
    struct bth *bth = (struct bth *) (udp + 1);
    uint8_t *ext = (uint8_t *) (bth + 1);
    size_t len = sizeof *ip + sizeof *udp + sizeof *bth + op->ext_len + s->payload_len + pad;
    uint16_t udp_len = (uint16_t) (len - sizeof *ip + ROCE_ICRC_LEN);

    memset(out, 0, len);
    ip6_set_vtf(ip, 2, 0);
    ip->plen = be16_put(udp_len);
    ip->nh = IP6_NH_UDP;
    ip->hlim = 64;
    ip->src = *s->src;
    ip->dst = *s->dst;
    *udp =
        (struct udp_hdr){be16_put(0xc123), be16_put(UDP_PORT_ROCE), be16_put(udp_len), be16_put(0)};
    bth->opcode = s->opcode;
    bth->flags = (uint8_t) (0x40 | pad << 4);
    bth->pkey = be16_put(s->pkey ? s->pkey : ROCE_PKEY_DEFAULT);
    bth->dest_qp = be24_put(s->dest_qp);
    bth->ack_req = s->ack_req ? BTH_ACK_REQ : 0;
    bth->psn = be24_put(s->psn);
    if (op->flags & ROCE_F_RETH) {
        *(struct reth *) ext =
            (struct reth){be64_put(s->va), be32_put(s->rkey), be32_put(s->dma_len)};
    } else if (op->flags & ROCE_F_AETH) {
        *(struct aeth *) ext = (struct aeth){s->syndrome, be24_put(s->msn)};
    }
    for (size_t i = 0; i < s->payload_len; i++) {
        ext[op->ext_len + i] = (uint8_t) (i * 7 + s->psn);
    }
    icrc_store(out + len, icrc_compute(out, len));
    return len + ROCE_ICRC_LEN;
}

size_t
tunnelled_response(uint8_t *out, uint16_t from, uint16_t to, uint32_t designated_qpn,
                   uint8_t syndrome, uint32_t psn)
{
    struct packet_pool *pool = packet_pool_create(1);
    struct in6_addr src = node_address(from);
    struct in6_addr dst = node_sid(to, SID_FUNC_RESPONSE);
    struct packet *p = response_build(pool, &star_proxy, &star_source, 0xc001, designated_qpn,
                                      psn_make(psn), syndrome, 1);

    response_wrap(p, &src, &dst);
    size_t len = packet_flatten(p, out, PACKET_ROOM);
    packet_put(p);
    packet_pool_destroy(pool);
    return len;
}

uint8_t *
ip6_build(uint8_t *out, struct in6_addr src, struct in6_addr dst, uint8_t nh, size_t len)
{
    struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) out;

    memset(out, 0, IP6_HDR_LEN + len);
    ip6_set_vtf(ip, 0, 0);
    ip->plen = be16_put((uint16_t) len);
    ip->nh = nh;
    ip->hlim = 9;
    ip->src = src;
    ip->dst = dst;
    return out + IP6_HDR_LEN;
}

size_t
srh_build(uint8_t *out, const struct in6_addr *segments, uint8_t n, uint8_t segments_left,
          uint8_t nh)
{
    struct srh_hdr *srh = (struct srh_hdr *) out;

    *srh = (struct srh_hdr){
        .nh = nh,
        .hdr_ext_len = (uint8_t) (2 * n),
        .type = SRH_ROUTING_TYPE,
        .segments_left = segments_left,
        .last_entry = (uint8_t) (n - 1),
    };
    memcpy(srh + 1, segments, n * sizeof *segments);
    return sizeof *srh + n * sizeof *segments;
}

void
check_copy(const struct frame *frame, unsigned i, const struct roce_spec *spec)
{
    struct in6_addr r = star_receiver(i);
    struct roce_spec expected = *spec;
    uint8_t bytes[PACKET_ROOM];

    expected.src = &star_proxy;
    expected.dst = &r;
    expected.dest_qp = star_qpn(i);
    expected.va += star_va(i);
    expected.rkey = star_rkey(i);
    size_t len = roce_build(bytes, &expected);
    bytes[7] = 63; /* hop limit; not in the ICRC. */
    ck_assert_uint_eq(frame->port, star_port(i));
    ck_assert_uint_eq(frame->len, sizeof(struct eth_hdr) + len);
    ck_assert_mem_eq(frame->bytes + sizeof(struct eth_hdr), bytes, len);
}

void
check_icmp6_error(const struct frame *frame, uint16_t port, uint8_t type, uint8_t code,
                  uint32_t param)
{
    const struct icmp6_wire *icmp = (const void *) (frame->bytes + frame->h.ip.l4_ofs);

    ck_assert_uint_eq(frame->port, port);
    ck_assert_uint_eq(frame->h.ip.proto, IP6_NH_ICMPV6);
    ck_assert_uint_eq(icmp->type, type);
    ck_assert_uint_eq(icmp->code, code);
    ck_assert_uint_eq(be32_get(icmp->param), param);
}

bool
frame_icrc_ok(const struct frame *frame)
{
    uint16_t ip = parsed_innermost(&frame->h)->ofs;
    return icrc_ok(frame->bytes + ip, (size_t) (frame->h.icrc_ofs - ip));
}
