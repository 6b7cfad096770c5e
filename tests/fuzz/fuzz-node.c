/* SPDX-License-Identifier: Apache-2.0
 *
 * A node with a group on a bench (tests/unit/node-fixture.h): frames on all
 * ports, time, timers, new configurations, paths to hosts, probes, decisions about RDMA-CM
 * connections.
 *
 * The input's first byte chooses the node: an edge with receivers, one in the
 * middle of a tree, or a source agent; the group's mode; what its packets must have.
 * Then come steps, each of a byte that says what happens and of the bytes that it
 * takes.  Whatever they are, at each step a bounded number of frames goes out, each
 * as it must be, deadlines lie in the future, and at the end all packet buffers are
 * back.  Nothing goes out because of what a port may not send.  Where packets are
 * authenticated, none has an effect without a digest that is right, none with such a
 * digest is refused for it, and a source agent sends no others:
 * tests/fuzz/srh-auth.c says what is right.  Of authenticated data none has an effect twice,
 * none is refused as a repetition that is none, and a source agent uses no nonce twice.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/data-auth.h"
#include "lib/icmp6.h"
#include "lib/icrc.h"
#include "lib/inet-csum.h"
#include "lib/roce.h"
#include "lib/stamp.h"
#include "tests/fuzz/node-frames.h"
#include "tests/fuzz/srh-auth.h"
#include "tests/unit/agent-fixture.h"
#include "tests/unit/modes-fixture.h"
#include "tests/unit/parse-check.h"
#include "tests/unit/transit-fixture.h"

/* Their headers cannot both be included: each names its own things. */
extern const struct node_class srcagent_class, swedge_class;

#define MAX_STEPS     60
/* What may go out because of one frame: a copy to each branch, to each outer destination, and
 * something that is said about it. */
#define MAX_PER_FRAME (N_RECEIVERS + 2 + 2 + 1)
#define MAX_TIMERS    8
/* For so many steps neighbours may be mute: what waits for them then goes out at once. */
#define MUTE_STEPS    6
#define MAX_TREES     2
#define N_KEYS        2
#define MAX_NONCES    1024 /* that are looked at. */
#define MAX_ROUTES    16
#define MAX_DESTS     3
#define MAX_PATHS     4
#define MAX_PROBES    3

/* The nonces of a group epoch's packets. */
struct nonces {
    size_t n;
    struct {
        uint32_t designated_qpn;
        struct srh_auth_nonce nonce;
    } v[MAX_NONCES];
};

struct bench {
    struct fixture *f;
    struct tree_config whole[MAX_TREES]; /* trees as they can be at most. */
    size_t n_whole;
    /* Ports, SIDs, routes: the same; and what of them there is. */
    size_t n_ports, n_sids, n_routes;
    struct route_config routes[MAX_ROUTES];
    uint8_t shape;
    uint64_t configured;         /* time of the last change. */
    bool reconfigured, was_open; /* not all configurations wanted data to be authenticated. */
    struct nonces taken, sent;
    struct tracer tracer;
    size_t n_traced;
    int mute_steps; /* to come; neighbours are mute once in an input. */
    bool was_mute;
};

/* What is done to a frame before it comes. */
enum { MUTATE = 1, MEND = 2, SIGN = 4, SPOIL = 8, KEY_SHIFT = 4, LAST_HOP = 64 };

/* An ICMPv6 message with a good checksum. */
static void
mend_icmp6(uint8_t *frame, const struct parsed_ip6 *ip)
{
    const struct ip6_hdr_wire *hdr = (const void *) (frame + ip->ofs);
    struct icmp6_wire *icmp = (struct icmp6_wire *) (frame + ip->l4_ofs);
    size_t len = (size_t) (ip->end - ip->l4_ofs);

    if (len >= sizeof *icmp) {
        icmp->csum = be16_put(0);
        icmp->csum = inet_csum_ip6(&hdr->src, &hdr->dst, IP6_NH_ICMPV6, icmp, len);
    }
}

static bool
has_nonce(const struct nonces *nonces, uint32_t designated_qpn, const struct srh_auth_nonce *nonce)
{
    for (size_t i = 0; i < nonces->n; i++) {
        const struct srh_auth_nonce *n = &nonces->v[i].nonce;

        if (nonces->v[i].designated_qpn == designated_qpn && n->instance == nonce->instance
            && n->seq == nonce->seq) {
            return true;
        }
    }
    return false;
}

static void
add_nonce(struct nonces *nonces, uint32_t designated_qpn, const struct srh_auth_nonce *nonce)
{
    if (nonces->n < MAX_NONCES) {
        nonces->v[nonces->n].designated_qpn = designated_qpn;
        nonces->v[nonces->n++].nonce = *nonce;
    }
}

/* Must an edge take the nonce, which is not stale? */
static bool
is_in_window(const struct nonces *taken, uint32_t designated_qpn,
             const struct srh_auth_nonce *nonce)
{
    for (size_t i = 0; i < taken->n; i++) {
        const struct srh_auth_nonce *n = &taken->v[i].nonce;

        if (taken->v[i].designated_qpn == designated_qpn
            && (n->instance > nonce->instance
                || (n->instance == nonce->instance && n->seq >= DATA_WINDOW
                    && nonce->seq <= n->seq - DATA_WINDOW))) {
            return false;
        }
    }
    return true;
}

/* The epoch that a frame's inner packet is of: fixture_add_epoch() adds another one. */
static struct auth_epoch
epoch_of(const uint8_t *frame, const struct parsed *h)
{
    if (!h->inner.ofs || !h->bth_ofs) {
        return (struct auth_epoch){star_proxy, STAR_DQPN, 1};
    }
    const struct ip6_hdr_wire *inner = (const void *) (frame + h->inner.ofs);
    const struct bth *bth = (const void *) (frame + h->bth_ofs);

    uint32_t qpn = be24_get(bth->dest_qp);

    return (struct auth_epoch){inner->dst, qpn, 1 + (qpn == STAR_DQPN + 1)};
}

/* If the frame is RoCE with a wrong ICRC, or ICMPv6, MEND makes that right; SIGN its digests. */
static void
mend(uint8_t *frame, size_t len, uint8_t how)
{
    struct parsed h;

    if (parse_check(frame, len, &h)) {
        return;
    }
    if (how & SIGN && h.srh_ofs) {
        uint8_t key = how >> KEY_SHIFT & 3;
        struct auth_key k = auth_key_of(key < N_KEYS + 1 ? key + 1u : 1, key > N_KEYS);
        struct auth_epoch epoch = epoch_of(frame, &h);
        srh_auth_sign(frame, &h, &k, &epoch);
    }
    if (how & MEND && parsed_innermost(&h)->proto == IP6_NH_ICMPV6) {
        mend_icmp6(frame, parsed_innermost(&h));
    }
    if (how & MEND && h.bth_ofs) {
        uint16_t ip = parsed_innermost(&h)->ofs;
        icrc_store(frame + h.icrc_ofs, icrc_compute(frame + ip, (size_t) (h.icrc_ofs - ip)));
    }
}

/* Is the frame as a station sends one? */
static bool
makes_sense(const uint8_t *frame, size_t len)
{
    struct parsed h;

    if (parse_check(frame, len, &h)) {
        return false;
    }
    uint16_t ip = parsed_innermost(&h)->ofs;
    return !h.bth_ofs || icrc_ok(frame + ip, (size_t) (h.icrc_ofs - ip));
}

/* The node's tree for a frame with a RoCE packet in a tunnel; false: there is none. */
static bool
find_tree(const struct fixture *f, const uint8_t *frame, const struct parsed *h,
          struct tree_info *info)
{
    const struct ip6_hdr_wire *inner = (const void *) (frame + h->inner.ofs);
    const struct bth *bth = (const void *) (frame + h->bth_ofs);

    for (size_t i = 0; h->inner.ofs && h->bth_ofs && i < f->class->n_trees(f->node); i++) {
        f->class->tree(f->node, i, info);
        if (!memcmp(&info->config->proxy, &inner->dst, sizeof inner->dst)
            && info->config->designated_qpn == be24_get(bth->dest_qp)) {
            return true;
        }
    }
    return false;
}

/* What is to be said about authenticity once a frame has been dealt with. */
struct expectation {
    bool authentic, forged; /* neither: nothing. */
    struct tree_info before;
    uint64_t n_refused;
    /* Of authentic data. */
    bool has_nonce, stale, must_take;
    struct srh_auth_nonce nonce;
    uint64_t n_computed, n_replays;
};

static uint64_t
n_auth_drops(const struct fixture *f)
{
    return fixture_drops(f, DROP_auth_missing) + fixture_drops(f, DROP_auth_bad)
           + fixture_drops(f, DROP_auth_unknown_key);
}

/* Of a frame with authentic data. */
static void
expect_nonce(const struct bench *b, const uint8_t *frame, const struct parsed *h,
             const struct tree_config *c, struct expectation *e)
{
    e->has_nonce = c->auth.tlvs & AUTH_DATA && e->authentic && srh_auth_nonce(frame, h, &e->nonce);
    if (e->has_nonce) {
        e->stale = has_nonce(&b->taken, c->designated_qpn, &e->nonce) || !e->nonce.seq
                   || !c->auth.instance || e->nonce.instance < c->auth.instance;
        e->must_take =
            !e->stale && !b->reconfigured && is_in_window(&b->taken, c->designated_qpn, &e->nonce);
        e->n_computed = e->before.auth->n_computed;
        e->n_replays = fixture_drops(b->f, DROP_auth_replay);
    }
}

/* Of a frame that a node with receivers is given.  With another Segments Left it would be changed
 * before it is looked at. */
static struct expectation
expect(const struct bench *b, const uint8_t *frame, size_t len)
{
    struct expectation e = {.n_refused = n_auth_drops(b->f)};
    struct tree_info t;
    struct parsed h;
    bool has_receivers = false;

    if (parse_check(frame, len, &h) || h.segments_left != 1 || !find_tree(b->f, frame, &h, &t)
        || b->f->class != &swedge_class) {
        return e;
    }
    for (size_t i = 0; i < t.config->n_branches; i++) {
        has_receivers |= t.config->branches[i].kind == BRANCH_RECEIVER;
    }
    if (has_receivers && t.config->auth.tlvs) {
        struct auth_epoch epoch = epoch_of(frame, &h);
        e.authentic = srh_auth_ok(frame, &h, &t.config->auth, &epoch);
        e.forged = !e.authentic && b->f->now >= b->configured + AUTH_LINGER_USEC;
        e.before = t;
        expect_nonce(b, frame, &h, t.config, &e);
        /* A former configuration that wants no tags takes the packet without looking at its own. */
        e.forged |= e.stale && (!b->was_open || b->f->now >= b->configured + AUTH_LINGER_USEC);
    }
    return e;
}

/* Has it been taken as it must, and not again? */
static void
check_nonce(struct bench *b, const struct expectation *e)
{
    if (e->has_nonce && e->before.auth->n_computed != e->n_computed) {
        REQUIRE(!e->stale);
        add_nonce(&b->taken, e->before.config->designated_qpn, &e->nonce);
    }
    REQUIRE(!e->must_take || fixture_drops(b->f, DROP_auth_replay) == e->n_replays);
}

static void
check_expected(struct bench *b, const struct expectation *e)
{
    struct tree_info t;

    REQUIRE(!e->authentic || n_auth_drops(b->f) == e->n_refused);
    check_nonce(b, e);
    for (size_t i = 0; e->forged && i < b->f->class->n_trees(b->f->node); i++) {
        b->f->class->tree(b->f->node, i, &t);
        if (t.config == e->before.config) {
            REQUIRE(t.started == e->before.started);
            REQUIRE(psn_eq(t.reverse.h, e->before.reverse.h));
        }
    }
    for (size_t i = 0; e->forged && !b->was_mute && i < b->f->n_frames; i++) {
        const struct frame *frame = &b->f->frames[i];
        REQUIRE(frame->h.srh_ofs || !frame->h.bth_ofs
                || memcmp(frame->bytes + frame->h.ip.ofs + 8, &star_proxy, sizeof star_proxy));
    }
}

/* What a source agent sends down has the digests that its configuration says. */
static void
check_signed(struct bench *b, const struct frame *frame)
{
    struct srh_auth_nonce nonce;
    struct tree_info t;

    if (b->was_mute || !frame->h.srh_ofs || frame->port != UPLINK
        || !find_tree(b->f, frame->bytes, &frame->h, &t)) {
        return;
    }
    struct auth_config one = t.config->auth; /* without its other keys. */
    for (; one.n_keys && one.keys->id != one.key; one.keys++) {
        one.n_keys--;
    }
    one.n_keys = one.n_keys > 0;
    struct auth_epoch epoch = epoch_of(frame->bytes, &frame->h);
    REQUIRE(srh_auth_ok(frame->bytes, &frame->h, &one, &epoch));
    if (one.tlvs & AUTH_DATA) {
        REQUIRE(srh_auth_nonce(frame->bytes, &frame->h, &nonce));
        REQUIRE(nonce.instance == one.instance && nonce.seq);
        REQUIRE(!has_nonce(&b->sent, t.config->designated_qpn, &nonce));
        add_nonce(&b->sent, t.config->designated_qpn, &nonce);
    }
}

static bool
has_port(const struct node_config *c, uint16_t number)
{
    for (size_t i = 0; i < c->n_ports; i++) {
        if (c->ports[i].number == number) {
            return true;
        }
    }
    return false;
}

/* What was sent.  (The fixture has looked at their headers.) */
static void
check_frames(struct bench *b)
{
    const struct fixture *f = b->f;

    for (size_t i = 0; i < f->n_frames; i++) {
        const struct frame *frame = &f->frames[i];
        const struct ip6_hdr_wire *ip = (const void *) (frame->bytes + frame->h.ip.ofs);

        REQUIRE(ip->hlim > 0);
        REQUIRE(!f->mtu[frame->port] || frame->len <= sizeof(struct eth_hdr) + f->mtu[frame->port]);
        REQUIRE(f->mangled || !frame->h.bth_ofs || frame_icrc_ok(frame));
        REQUIRE(has_port(&f->config, frame->port));
        if (f->class == &srcagent_class) {
            check_signed(b, frame);
        }
    }
}

/* May this come from the port at all (BCP 38, RFC 8754 section 5.1)?  Nothing may be sent because
 * of what may not. */
static bool
may_come(const struct port_config *port, const uint8_t *bytes, size_t len)
{
    const struct ip6_hdr_wire *ip = (const void *) bytes;
    bool own = len >= sizeof *ip && IN6_ARE_ADDR_EQUAL(&ip->src, &port->peer_address);
    bool to_sid = len >= sizeof *ip && address_is_sid(&ip->dst);

    switch (port->role) {
    case ROLE_HOST:
        return len >= sizeof *ip && !to_sid && ip->nh != IP6_NH_IPV6
               && (own || IN6_IS_ADDR_LINKLOCAL(&ip->src) || IN6_IS_ADDR_UNSPECIFIED(&ip->src));
    case ROLE_AGENT: return own || !to_sid;
    case ROLE_FABRIC: break;
    }
    return true;
}

static void
step_frame(struct bench *b, struct fuzz_input *in)
{
    struct fixture *f = b->f;
    _Alignas(4) uint8_t room[2 + sizeof(struct eth_hdr) + PACKET_ROOM];
    uint8_t *bytes = room + 2, *ip = bytes + sizeof(struct eth_hdr); /* which is aligned. */
    const struct port_config *from = &f->config.ports[fuzz_byte(in) % f->config.n_ports];
    uint16_t port = from->number;
    size_t len = choose_packet(in, ip);
    uint8_t flags = fuzz_byte(in);

    if (flags & MUTATE) {
        len = mutate(in, ip, len);
    }
    if (flags & LAST_HOP && len) {
        ip[offsetof(struct ip6_hdr_wire, hlim)] = 1;
    }
    memset(bytes, 0, sizeof(struct eth_hdr));
    bytes[12] = ETH_TYPE_IP6 >> 8;
    bytes[13] = ETH_TYPE_IP6 & 0xff;
    mend(bytes, sizeof(struct eth_hdr) + len, flags);
    if (flags & SPOIL) {
        len = mutate(in, ip, len);
    }
    REQUIRE(len <= MAX_IP_LEN);
    f->mangled |= !makes_sense(bytes, sizeof(struct eth_hdr) + len);
    struct expectation e = expect(b, bytes, sizeof(struct eth_hdr) + len);
    fixture_input(f, port, ip, len);
    REQUIRE(f->n_frames <= MAX_PER_FRAME || b->was_mute);
    REQUIRE(!f->n_frames || may_come(from, ip, len));
    check_expected(b, &e);
}

/* A frame that is not even Ethernet, or from a port that there is not. */
static void
step_bytes(struct bench *b, struct fuzz_input *in)
{
    struct fixture *f = b->f;
    uint16_t port = (uint16_t) fuzz_below(in, FIXTURE_MAX_PORTS);
    size_t n;
    const uint8_t *bytes = fuzz_bytes(in, fuzz_byte(in), &n);
    struct packet *p = packet_from_bytes(f->pool, bytes, n);

    REQUIRE(p);
    f->mangled = true;
    f->n_frames = 0;
    f->class->input(f->node, port, p, f->now);
    fixture_settle(f);
    REQUIRE(f->n_frames <= MAX_PER_FRAME || b->was_mute);
}

/* All timers that are due, until none is. */
static void
run_timers(struct bench *b)
{
    struct fixture *f = b->f;

    for (int i = 0; f->class->deadline(f->node) <= f->now; i++) {
        REQUIRE(i < MAX_TIMERS);
        f->n_frames = 0;
        f->class->timer(f->node, f->now);
        fixture_settle(f);
    }
}

static void
step_wait(struct bench *b, struct fuzz_input *in)
{
    b->f->now += UINT64_C(1) << fuzz_below(in, 32);
    run_timers(b);
}

static void
step_deadline(struct bench *b, struct fuzz_input *in)
{
    uint64_t when = b->f->class->deadline(b->f->node);

    (void) in;
    if (when != UINT64_MAX) {
        b->f->now = when > b->f->now ? when : b->f->now;
        run_timers(b);
    }
}

/* What packets must have, or get: other TLVs, keys, secrets. */
static void
change_auth(struct fuzz_input *in, struct auth_config *c, const struct auth_config *whole)
{
    uint8_t flags = fuzz_byte(in);

    c->tlvs = whole->tlvs ^ (flags & (AUTH_MT | AUTH_HMAC));
    if (whole->tlvs & AUTH_DATA) { /* which is alone. */
        c->tlvs = flags & AUTH_MT ? whole->tlvs : c->tlvs & ~AUTH_DATA;
        c->instance = fuzz_below(in, 4);
    }
    c->n_keys = N_KEYS - (flags >> 2) % (N_KEYS + 1);
    c->keys[0] = auth_key_of(1, flags & 16);
    c->key = 1 + (flags >> 5) % (N_KEYS + 1);
}

/* Other planes, which may be excluded or preferred, or none. */
static struct plane_config *
change_planes(struct fuzz_input *in, struct plane_config *planes, size_t *n,
              const struct in6_addr *sid)
{
    uint8_t flags = fuzz_byte(in);

    free(planes);
    *n = flags & 3;
    planes = calloc(*n + 1, sizeof *planes);
    REQUIRE(planes);
    for (size_t i = 0; i < *n; i++) {
        planes[i] = (struct plane_config){
            .name = {(char) ('A' + i + (flags >> 7))},
            .usable = flags >> 2 >> i & 1,
            .preferred = flags >> 5 == i,
            .sid = *sid,
            .program = fuzz_below(in, 4) ? *sid : choose_address(in),
            .port = (uint16_t) fuzz_below(in, 4),
        };
    }
    return planes;
}

/* Another mode, or what belongs to another. */
static void
change_mode(struct fuzz_input *in, struct tree_config *t, const struct tree_config *whole)
{
    t->mode = (enum tree_mode) fuzz_below(in, 3);
    t->mcast_group = mcast_group_address((uint16_t) (REPLICATION_ID + fuzz_below(in, 2)));
    t->outer_source = fuzz_below(in, 4) ? node_address(STAR_AGENT_ID) : choose_address(in);
    t->upstream = fuzz_below(in, 4) ? node_address(STAR_AGENT_ID) : choose_address(in);
    t->replication_sid = fuzz_below(in, 4) ? whole->replication_sid : choose_address(in);
    t->parent_sid = fuzz_below(in, 4) ? whole->parent_sid : choose_address(in);
    t->n_outer_da = whole->n_outer_da - (whole->n_outer_da && fuzz_below(in, 2));
    if (t->n_outer_da) {
        t->outer_da[0] = fuzz_below(in, 4) ? whole->outer_da[0] : choose_address(in);
    }
    if (t->n_outer_da) {
        t->planes = change_planes(in, t->planes, &t->n_planes, &t->outer_da[0]);
    }
    t->parent_planes = change_planes(in, t->parent_planes, &t->n_parent_planes, &whole->parent_sid);
}

/* A tree's configuration without its last branches, or with other things that may change. */
static void
change_tree(struct fuzz_input *in, struct tree_config *t, const struct tree_config *whole)
{
    const uint32_t times[] = {0, 1, 100, 60000};
    const uint32_t rates[] = {0, 10, UINT32_MAX};
    uint8_t flags = fuzz_byte(in), more = fuzz_byte(in);
    size_t fewer_branches = fuzz_below(in, 8), fewer_copies = fuzz_below(in, 8);

    t->n_branches =
        whole->n_branches - (whole->n_branches ? fewer_branches % whole->n_branches : 0);
    t->n_copies = whole->n_copies - (whole->n_copies ? fewer_copies % whole->n_copies : 0);
    t->n_outer_da = whole->n_outer_da - (flags & 1 && whole->n_outer_da > 1);
    t->open = !(flags & 2) && whole->open;
    t->root = flags & 4 ? !whole->root : whole->root;
    t->policy.prune = flags & 8;
    t->mtu = flags & 16 ? 256 : whole->mtu;
    t->region_len = flags & 32 ? 0 : whole->region_len;
    t->policy.liveness_msec = FUZZ_CHOOSE(in, times);
    t->policy.filter = flags & 64;
    t->policy.min_rate = rates[more >> 6 & 1 ? 1 + (more >> 7) : 0];
    t->policy.lose_slow = flags & 128;
    t->policy.timeout = more & 16 ? 8 : 0;
    t->started = more & 32;
    t->policy.nak = (enum reverse_nak) fuzz_below(in, 3);
    t->provisioned = more & 1 ? !whole->provisioned : whole->provisioned;
    t->generation++;
    if (more & 2) {
        change_auth(in, &t->auth, &whole->auth);
    }
    if (more & 4) {
        change_mode(in, t, whole);
    }
    if (more & 8 && t->n_outer_da) { /* to one that does not aggregate. */
        t->outer_da[0] = node_sid(0x999, SID_FUNC_END_MT);
    }
}

/* The node without its last ports, what goes there, and its last SIDs. */
static void
change_node(struct bench *b, uint8_t shape)
{
    struct node_config *c = &b->f->config;

    c->n_ports = b->n_ports - shape % b->n_ports;
    c->n_sids = b->n_sids - (shape >> 4) % (b->n_sids + 1);
    c->n_routes = 0;
    for (size_t i = 0; i < b->n_routes; i++) {
        if (has_port(c, b->routes[i].port)) {
            c->routes[c->n_routes++] = b->routes[i];
        }
    }
}

static void
step_configure(struct bench *b, struct fuzz_input *in)
{
    struct fixture *f = b->f;
    uint8_t flags = fuzz_byte(in);
    uint8_t shape = flags & 8 ? fuzz_byte(in) : b->shape;
    char *error = NULL;

    f->config.n_trees = flags & 3 ? b->n_whole : fuzz_below(in, (uint32_t) b->n_whole + 1);
    for (size_t i = 0; i < f->config.n_trees; i++) {
        change_tree(in, &f->config.trees[i], &b->whole[i]);
    }
    change_node(b, shape);
    f->config.verify_always = flags & 4;
    f->config.generation++;
    f->n_frames = 0;
    if (f->class->configure(f->node, &f->config, f->now, &error)) {
        REQUIRE(error && *error);
        free(error);
        change_node(b, b->shape);
    } else {
        b->shape = shape;
        b->configured = f->now;
        b->reconfigured = true;
        for (size_t i = 0; i < f->config.n_trees; i++) {
            b->was_open |= !(f->config.trees[i].auth.tlvs & AUTH_DATA);
        }
        if (f->config.n_trees
            < b->n_whole) { /* an edge that has left a tree knows nothing of it. */
            b->taken.n = 0;
        }
    }
    fixture_settle(f);
}

static void
step_mtu(struct bench *b, struct fuzz_input *in)
{
    const uint32_t mtus[] = {0, 1280, 1500, 4200};
    uint32_t port = fuzz_below(in, FIXTURE_MAX_PORTS);

    b->f->mtu[port] = FUZZ_CHOOSE(in, mtus);
    b->f->n_frames = 0; /* was for what was sent before. */
}

static void
count_line(void *b, const char *text)
{
    ((struct bench *) b)->n_traced += strlen(text);
}

static void
step_trace(struct bench *b, struct fuzz_input *in)
{
    b->tracer = (struct tracer){.line = fuzz_below(in, 2) ? count_line : NULL, .aux = b};
    b->f->class->set_tracer(b->f->node, &b->tracer);
}

static void
step_mute(struct bench *b, struct fuzz_input *in)
{
    (void) in;
    if (!b->was_mute) {
        b->was_mute = b->f->mute = true;
        b->mute_steps = MUTE_STEPS;
    }
}

/* What the registry has of the node's connections, now or before, with decisions; and one that the
 * node is to begin. */
static void
step_connections(struct bench *b, struct fuzz_input *in)
{
    struct fixture *f = b->f;
    size_t n = f->class->n_connections(f->node), n_configs = 0;
    struct cm_conn_config configs[MAX_STEPS + 1];

    REQUIRE(n <= MAX_STEPS);
    memset(configs, 0, sizeof configs);
    for (size_t i = 0; i < n; i++) {
        struct cm_conn_config *c = &configs[n_configs];
        struct cm_conn_info info;
        uint8_t flags = fuzz_byte(in);

        f->class->connection(f->node, i, &info);
        c->id = info.id;
        c->role = info.role;
        c->proxy = info.proxy;
        c->host = info.host;
        c->decision = (enum cm_decision)(flags & 3);
        c->qpn = STAR_DQPN;
        c->mtu = 1024;
        c->keepalive_msec = flags & 4 ? 100 : 0;
        c->private_len = flags & 8 ? CM_REQ_PRIVATE_LEN : 0;
        c->known = *info.known;
        n_configs += !(flags & 16) && info.id != 1;
    }
    if (fuzz_below(in, 2)) {
        configs[n_configs++] = (struct cm_conn_config){
            .id = 1,
            .role = CM_ACTIVE,
            .proxy = star_proxy,
            .host = star_receiver(0),
            .port = 7174,
            .qpn = STAR_DQPN,
            .mtu = 1024,
            .known = {.remote_id = fuzz_below(in, 4)},
        };
    }
    f->n_frames = 0;
    f->class->configure_connections(f->node, configs, n_configs, f->now);
    fixture_settle(f);
}

static void
choose_path(struct fuzz_input *in, struct path_config *path, uint16_t number)
{
    path->number = number;
    path->port = (uint16_t) fuzz_below(in, FIXTURE_MAX_PORTS + 1); /* there may be no such. */
    path->usable = fuzz_below(in, 4);
    snprintf(path->name, sizeof path->name, "n%u", (unsigned) fuzz_below(in, 2 * MAX_PATHS));
    path->program.n = (uint8_t) (1 + fuzz_below(in, PROGRAM_MAX));
    for (unsigned i = 0; i < path->program.n; i++) {
        path->program.containers[i] = choose_address(in);
    }
}

static void
choose_destination(struct fuzz_input *in, struct destination_config *d, uint16_t number)
{
    d->address = choose_address(in);
    d->policy = (enum path_policy) fuzz_below(in, PATH_SPRAY + 1);
    d->pinned = fuzz_below(in, 4) ? 0 : number;
    d->n_paths = fuzz_below(in, MAX_PATHS + 1);
    d->paths = calloc(MAX_PATHS, sizeof *d->paths);
    d->n_pins = fuzz_below(in, 2);
    d->pins = calloc(1, sizeof *d->pins);
    REQUIRE(d->paths && d->pins);
    d->pins[0] = (struct path_pin){STAR_DQPN, (uint16_t) (number + fuzz_below(in, 2))};
    for (size_t i = 0; i < d->n_paths; i++) {
        choose_path(in, &d->paths[i], (uint16_t) (number + i));
    }
}

/* Packets of the node's hosts to the destination, which inputs would seldom have by themselves. */
static void
send_on_paths(struct bench *b, struct fuzz_input *in, const struct in6_addr *dst)
{
    const uint8_t opcodes[] = {RC_WRITE_ONLY, RC_WRITE_FIRST, RC_READ_REQ, RC_ACK};
    struct fixture *f = b->f;

    for (size_t i = 0; i < f->config.n_ports; i++) {
        const struct port_config *port = &f->config.ports[i];
        uint8_t bytes[PACKET_ROOM];

        if (port->role == ROLE_HOST) {
            const struct roce_spec spec = {
                .src = &port->peer_address,
                .dst = dst,
                .opcode = FUZZ_CHOOSE(in, opcodes),
                .dest_qp = STAR_DQPN + fuzz_below(in, 2),
                .psn = fuzz_byte(in),
            };
            fixture_input(f, port->number, bytes, roce_build(bytes, &spec));
            REQUIRE(f->n_frames <= MAX_PER_FRAME || b->was_mute);
        }
    }
}

/* Other paths, to other hosts or to the same. */
static void
step_paths(struct bench *b, struct fuzz_input *in)
{
    struct fixture *f = b->f;
    struct node_config *c = &f->config;
    char *error = NULL;

    for (size_t i = 0; i < c->n_destinations; i++) {
        free(c->destinations[i].paths);
        free(c->destinations[i].pins);
    }
    free(c->destinations);
    c->n_destinations = fuzz_below(in, MAX_DESTS + 1);
    c->destinations = calloc(MAX_DESTS, sizeof *c->destinations);
    REQUIRE(c->destinations);
    for (size_t i = 0; i < c->n_destinations; i++) {
        choose_destination(in, &c->destinations[i], (uint16_t) (1 + i * MAX_PATHS));
    }
    c->generation++;
    f->n_frames = 0;
    if (f->class->configure(f->node, c, f->now, &error)) {
        REQUIRE(error && *error);
        free(error);
    }
    fixture_settle(f);
    for (size_t i = 0; i < c->n_destinations; i++) {
        send_on_paths(b, in, &c->destinations[i].address);
    }
}

static void
choose_probe(struct bench *b, struct fuzz_input *in, struct probe_config *p, uint16_t number)
{
    const uint32_t intervals[] = {20000, 100000, 1000000};

    p->number = number;
    p->kind = (enum probe_kind) fuzz_below(in, 2);
    p->port = b->f->config.ports[fuzz_below(in, (uint32_t) b->f->config.n_ports)].number;
    p->program.n = (uint8_t) (1 + fuzz_below(in, PROGRAM_MAX));
    for (unsigned i = 0; i < p->program.n; i++) {
        p->program.containers[i] = choose_address(in);
    }
    p->peer = node_address(PARENT);
    p->back = p->program;
    p->reverse = (uint16_t) fuzz_below(in, 3);
    p->interval_usec = FUZZ_CHOOSE(in, intervals);
    p->timeout_usec = p->interval_usec >> fuzz_below(in, 3);
    p->large = fuzz_below(in, 2) ? 0 : 1500;
    p->no_checksum = number % 2 == 0;
}

/* A probe of the node comes back, as it is or as an answer. */
static void
bring_back(struct bench *b, struct fuzz_input *in, const struct frame *frame)
{
    struct fixture *f = b->f;
    const struct ip6_hdr_wire *ip = (const void *) (frame->bytes + frame->h.ip.ofs);
    const struct udp_hdr *udp = (const void *) (frame->bytes + frame->h.ip.l4_ofs);
    const struct in6_addr end = node_locator(f->config.id), peer = node_address(PARENT);
    const struct program program = {.n = 1, .containers = {end}};
    size_t len = (size_t) (frame->h.ip.end - frame->h.ip.l4_ofs);
    uint8_t flags = fuzz_byte(in), bytes[PACKET_ROOM];
    struct stamp s;

    if (frame->h.ip.proto != IP6_NH_UDP || be16_get(udp->dport) != UDP_PORT_STAMP || flags & 1
        || !stamp_parse((const uint8_t *) (udp + 1), len - sizeof *udp, false, &s)) {
        return;
    }
    struct packet_pool *pool = packet_pool_create(1);
    s.no_checksum = !be16_get(udp->csum);
    if (s.has_cos) {
        s.is_answer = true;
        s.asked_seq = s.seq;
        s.asked_nsec = s.sent_nsec;
        s.seq = flags >> 4;
    }
    struct packet *p = stamp_build(pool, &s, s.is_answer ? &peer : &ip->src, &program, &end,
                                   flags & 3, 0, be16_get(s.is_answer ? udp->dport : udp->sport),
                                   be16_get(s.is_answer ? udp->sport : udp->dport), 0);
    REQUIRE(p);
    len = packet_flatten(p, bytes, sizeof bytes);
    packet_put(p);
    packet_pool_destroy(pool);
    if (flags & 4) {
        len = mutate(in, bytes, len);
    }
    fixture_input_more(f, frame->port, bytes, len < MAX_IP_LEN ? len : MAX_IP_LEN);
}

/* Other probes, or the same; and what becomes of them. */
static void
step_probes(struct bench *b, struct fuzz_input *in)
{
    struct fixture *f = b->f;
    struct node_config *c = &f->config;
    char *error = NULL;

    if (!c->probes) {
        c->probes = calloc(MAX_PROBES, sizeof *c->probes);
        c->probers = calloc(1, sizeof *c->probers);
        REQUIRE(c->probes && c->probers);
        c->probers[0] = node_address(CHILD_A);
    }
    if (!c->n_probes || fuzz_below(in, 2)) {
        c->n_probes = fuzz_below(in, MAX_PROBES + 1);
        c->n_probers = fuzz_below(in, 2);
        for (size_t i = 0; i < c->n_probes; i++) {
            choose_probe(b, in, &c->probes[i], (uint16_t) (i + 1));
        }
        c->generation++;
        f->n_frames = 0;
        if (f->class->configure(f->node, c, f->now, &error)) {
            REQUIRE(error && *error);
            free(error);
        }
        fixture_settle(f);
    }
    for (unsigned i = 0; i < 8 && f->class->deadline(f->node) != UINT64_MAX; i++) {
        fixture_timer(f);
        size_t n = f->n_frames;
        for (size_t j = 0; j < n; j++) {
            static struct frame frame; /* what comes back may draw others. */

            frame = f->frames[j];
            bring_back(b, in, &frame);
        }
    }
}

static void (*const steps[])(struct bench *, struct fuzz_input *) = {
    step_frame, step_frame,    step_frame,     step_frame, step_frame, step_frame, step_frame,
    step_wait,  step_deadline, step_configure, step_bytes, step_mtu,   step_trace, step_mute,
};

/* What shows a node's state copes with all states. */
static void
look(const struct fixture *f)
{
    struct reverse_branch_info branch;
    struct sid_info sid;

    for (size_t i = 0; i < f->class->n_trees(f->node); i++) {
        struct tree_info t;

        f->class->tree(f->node, i, &t);
        REQUIRE(t.reverse.n_lost <= t.reverse.n_branches);
        for (size_t j = 0; j < t.config->n_branches; j++) {
            f->class->branch(f->node, i, t.config->branches[j].id, &branch);
        }
    }
    for (size_t i = 0; i < f->class->n_connections(f->node); i++) {
        struct cm_conn_info info;

        f->class->connection(f->node, i, &info);
        REQUIRE(info.known->state <= CM_ENDED && is_proxy_address(&info.proxy));
        REQUIRE((info.known->state == CM_ENDED) == (info.known->cause != CM_NOT_ENDED));
    }
    const struct l3 *l3 = f->class->l3(f->node);
    struct l3_neigh_info neigh;
    struct route_config route;

    for (size_t i = 0; i < l3_n_neighs(l3); i++) {
        REQUIRE(!l3_get_neigh(l3, i, &neigh) || has_port(&f->config, neigh.port));
    }
    for (size_t i = 0; i < l3_n_routes(l3); i++) {
        REQUIRE(!l3_get_route(l3, i, &route) || has_port(&f->config, route.port));
    }
    for (size_t i = 0; f->class->sid(f->node, i, &sid); i++) {
        REQUIRE(sid.behaviour);
    }
    struct path_info path;
    struct probe_info probe;

    for (size_t i = 0; f->class->probe(f->node, i, &probe); i++) {
        REQUIRE(probe.n_returned + probe.n_lost <= probe.n_sent);
        REQUIRE(probe.health.state <= PATH_BAD && path_health_backoff(&probe.health) <= 16);
    }
    for (size_t i = 0; f->class->path(f->node, i, &path); i++) {
        REQUIRE(path.config->number && path.config->program.n);
    }
}

static struct fixture *
create(uint8_t which)
{
    switch (which % 8) {
    case 0: return fixture_create(&swedge_class, N_RECEIVERS);
    case 1: return transit_create(N_RECEIVERS);
    case 2: return agent_create(N_RECEIVERS);
    case 4: return ingress_create();
    case 5: return mcast_create(N_RECEIVERS);
    case 6: return mcast_agent_create(N_RECEIVERS);
    default: break;
    }
    struct fixture *f = fixture_create(which & 4 ? &swedge_class : &srcagent_class, N_RECEIVERS);
    fixture_add_epoch(f);
    return f;
}

/* What packets have, and what nobody takes any more that was sent before. */
static void
set_tree(struct tree_config *t, uint8_t which, bool is_agent)
{
    t->provisioned = which >> 5 & 1;
    auth_config_uninit(&t->auth);
    t->auth = (struct auth_config){.tlvs = which & 128 ? AUTH_DATA : which >> 3 & 3,
                                   .key = is_agent || which & 128 ? 1 : 0,
                                   .instance = which & 128 ? 1 + (which >> 3 & 1) : 0,
                                   .response_instance = which & 128 ? 1 + (which >> 3 & 1) : 0,
                                   .responses = which & 128 && which & 16,
                                   .n_keys = N_KEYS,
                                   .keys = calloc(N_KEYS, sizeof *t->auth.keys)};
    REQUIRE(t->auth.keys);
    for (uint32_t i = 0; i < N_KEYS; i++) {
        t->auth.keys[i] = auth_key_of(i + 1, 0);
    }
}

static void
init(struct bench *b, uint8_t which)
{
    b->f = create(which);
    struct node_config *c = &b->f->config;

    for (size_t i = 0; i < c->n_trees; i++) {
        set_tree(&c->trees[i], which, b->f->class == &srcagent_class);
        tree_config_clone(&b->whole[b->n_whole++], &c->trees[i]);
    }
    if (which & 64) {
        fixture_add_sid(b->f, 0, 48, SID_UN);
        c->sids[c->n_sids - 1].block_len = SID_BLOCK_PLEN;
    }
    b->n_ports = c->n_ports;
    b->n_sids = c->n_sids;
    b->n_routes = c->n_routes;
    REQUIRE(b->n_routes <= MAX_ROUTES);
    memcpy(b->routes, c->routes, c->n_routes * sizeof *c->routes);
    fixture_configure(b->f);
    b->f->class->configure_connections(b->f->node, NULL, 0, b->f->now);
    b->f->now += AUTH_LINGER_USEC;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};
    static struct bench b;

    memset(&b, 0, sizeof b);
    init(&b, fuzz_byte(&in));
    for (int i = 0; i < MAX_STEPS && in.n; i++) {
        uint8_t what = fuzz_byte(&in);

        b.f->n_frames = 0; /* those of the step before have been looked at. */
        /* Inputs from before there were these mean the same, nearly all. */
        (what >= 0xfc   ? step_connections
         : what >= 0xf8 ? step_paths
         : what >= 0xf4 ? step_probes
                        : steps[what % (sizeof steps / sizeof *steps)])(&b, &in);
        b.f->mute = b.mute_steps > 0;
        b.mute_steps -= b.f->mute;
        check_frames(&b);
        look(b.f);
    }
    b.f->config.n_trees = b.n_whole; /* all of it is to be freed. */
    fixture_destroy(b.f);
    for (size_t i = 0; i < b.n_whole; i++) {
        tree_config_uninit(&b.whole[i]);
    }
    return 0;
}
