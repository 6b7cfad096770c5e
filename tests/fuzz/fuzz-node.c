/* SPDX-License-Identifier: Apache-2.0
 *
 * A node with a group on a bench (tests/unit/node-fixture.h): frames on all
 * ports, time, timers, new configurations.
 *
 * The input's first byte chooses the node: an edge with receivers, one in the
 * middle of a tree, or a source agent; and the group's mode, whether its receivers
 * are provisioned and its packets authenticated.  Then come steps, each of a byte that
 * says what happens and of the bytes that it takes.  Whatever they are, at each
 * step a bounded number of frames goes out, each as it must be, deadlines lie in
 * the future, and at the end all packet buffers are back.
 */
#include <check.h>
#include <stdlib.h>

#include "lib/icrc.h"
#include "lib/roce.h"
#include "lib/srh.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/agent-fixture.h"
#include "tests/unit/parse-check.h"
#include "tests/unit/transit-fixture.h"

/* Their headers cannot both be included: each names its own things. */
extern const struct node_class srcagent_class, swedge_class;

#define N_RECEIVERS   3
#define MAX_STEPS     60
/* What may go out because of one frame: a copy to each branch, to each outer destination, and
 * something that is said about it. */
#define MAX_PER_FRAME (N_RECEIVERS + 2 + 2 + 1)
#define MAX_TIMERS    8
/* For so many steps neighbours may be mute: what waits for them then goes out at once. */
#define MUTE_STEPS    6
#define MAX_IP_LEN    4500
/* The first byte: which node, then these. */
#define MCAST         16
#define INGRESS       32
#define PROVISIONED   64
#define AUTH          128
#define MCAST_GROUP   mcast_group_address(7)

struct bench {
    struct fixture *f;
    struct tree_config whole[2]; /* trees as they can be at most. */
    size_t n_whole;
    struct tracer tracer;
    size_t n_traced;
    int mute_steps; /* to come; neighbours are mute once in an input. */
    bool was_mute;
};

static struct auth_key keys[] = {{.id = 1, .len = 16, .secret = "one"},
                                 {.id = 2, .len = 16, .secret = "two"}};

/* Which TLVs, and which of the keys: all, or one of them, or none. */
static struct auth_config
choose_auth(struct fuzz_input *in)
{
    struct auth_config whole = {.keys = keys}, c;

    whole.tlvs = fuzz_below(in, 4);
    whole.key = 1 + fuzz_below(in, 2);
    uint32_t which = fuzz_below(in, 8);
    whole.n_keys = which < 6 ? 2 : which == 6;
    auth_config_clone(&c, &whole);
    return c;
}

/* Addresses that mean something to one of the nodes, then some that do not. */
static struct in6_addr
choose_address(struct fuzz_input *in)
{
    uint32_t which = fuzz_below(in, 16);
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
    case 6: return fuzz_below(in, 4) ? MCAST_GROUP : addr_of("fd00:7::7");
    case 7: return addr_of("ff02::1");
    case 8: return addr_of("fe80::1");
    case 9: return node_address(FUZZ_CHOOSE(in, nodes));
    case 10: return (struct in6_addr) IN6ADDR_ANY_INIT;
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

/* Likewise, with TLVs that authenticate it. */
static size_t
make_signed(struct fuzz_input *in, uint8_t *out)
{
    struct in6_addr dst = choose_address(in), agent = node_address(STAR_AGENT_ID);
    struct roce_spec spec = choose_roce(in, &star_source, &star_proxy);
    struct auth_config auth = choose_auth(in);
    uint32_t n = fuzz_below(in, N_RECEIVERS + 1);
    struct srh_copy copies[N_RECEIVERS];
    struct encap_template t;
    _Alignas(4) uint8_t inner[PACKET_ROOM];
    size_t len = roce_build(inner, &spec);

    for (uint32_t i = 0; i < n; i++) {
        copies[i] = (struct srh_copy){node_address(STAR_EDGE_ID), star_receiver(i), star_qpn(i)};
    }
    REQUIRE(!encap_template_build(&t, &agent, &dst, &star_proxy, copies, n));
    auth_sign(&t, &auth);
    auth_config_uninit(&auth);
    encap_template_stamp(&t, out, (uint16_t) len, 2, 0x12345);
    memcpy(out + t.len, inner, len);
    return t.len + len;
}

static size_t
make_tunnelled(struct fuzz_input *in, uint8_t *out)
{
    const uint16_t nodes[] = {CHILD_A, CHILD_B, STAR_EDGE_ID, STAR_AGENT_ID, 0x999};
    uint16_t from = FUZZ_CHOOSE(in, nodes), to = fuzz_below(in, 8) ? STAR_EDGE_ID : CHILD_A;
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

static size_t (*const makers[])(struct fuzz_input *, uint8_t *) = {
    make_request, make_request, make_encapsulated, make_encapsulated, make_response, make_tunnelled,
    make_roce,    make_plain,   make_routed,       make_raw,          make_signed,   make_signed,
};

/* Spoils up to three bytes, cuts the end off or adds some. */
static size_t
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

/* Is the frame as a station sends one?  If it is RoCE with a wrong ICRC, that is made right if
 * 'mend' says so. */
static bool
makes_sense(uint8_t *frame, size_t len, bool mend)
{
    struct parsed h;

    if (parse_check(frame, len, &h)) {
        return false;
    }
    if (h.bth_ofs) {
        uint16_t ip = parsed_innermost(&h)->ofs;
        size_t n = h.icrc_ofs - ip;
        if (mend) {
            icrc_store(frame + h.icrc_ofs, icrc_compute(frame + ip, n));
        }
        return icrc_ok(frame + ip, n);
    }
    return true;
}

/* What was sent.  (The fixture has looked at their headers.) */
static void
check_frames(const struct fixture *f)
{
    for (size_t i = 0; i < f->n_frames; i++) {
        const struct frame *frame = &f->frames[i];
        const struct ip6_hdr_wire *ip = (const void *) (frame->bytes + frame->h.ip.ofs);

        REQUIRE(ip->hlim > 0);
        REQUIRE(!f->mtu[frame->port] || frame->len <= sizeof(struct eth_hdr) + f->mtu[frame->port]);
        REQUIRE(f->mangled || !frame->h.bth_ofs || frame_icrc_ok(frame));
    }
}

/* May this come from the port at all (BCP 38, RFC 8754 section 5.1)?  Nothing may be sent because of what
 * may not. */
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
    size_t len = makers[fuzz_below(in, sizeof makers / sizeof *makers)](in, ip);
    uint8_t flags = fuzz_byte(in);

    if (flags & 1) {
        len = mutate(in, ip, len);
    }
    memset(bytes, 0, sizeof(struct eth_hdr));
    bytes[12] = ETH_TYPE_IP6 >> 8;
    bytes[13] = ETH_TYPE_IP6 & 0xff;
    if (!makes_sense(bytes, sizeof(struct eth_hdr) + len, flags & 2)) {
        f->mangled = true;
    }
    REQUIRE(len <= MAX_IP_LEN + 512);
    fixture_input(f, port, ip, len);
    REQUIRE(f->n_frames <= MAX_PER_FRAME || b->was_mute);
    REQUIRE(!f->n_frames || may_come(from, ip, len));
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

/* A tree's configuration without its last branches, or with other things that may change. */
static void
change_tree(struct fuzz_input *in, struct tree_config *t, const struct tree_config *whole)
{
    const uint32_t times[] = {0, 1, 100, 60000};
    uint8_t flags = fuzz_byte(in);
    size_t fewer_branches = fuzz_below(in, 8), fewer_copies = fuzz_below(in, 8);

    t->n_branches =
        whole->n_branches - (whole->n_branches ? fewer_branches % whole->n_branches : 0);
    t->n_copies = whole->n_copies - (whole->n_copies ? fewer_copies % whole->n_copies : 0);
    t->n_outer_da = whole->n_outer_da - (flags & 1 && whole->n_outer_da > 1);
    t->open = !(flags & 2) && whole->open;
    t->root = flags & 4 ? !whole->root : whole->root;
    t->prune = flags & 8;
    t->mtu = flags & 16 ? 256 : whole->mtu;
    t->region_len = flags & 32 ? 0 : whole->region_len;
    t->liveness_msec = FUZZ_CHOOSE(in, times);
    t->filter = flags & 64;
    t->nak = (enum reverse_nak) fuzz_below(in, 3);
    if (whole->auth.n_keys) {
        auth_config_uninit(&t->auth);
        t->auth = choose_auth(in);
    }
    t->generation++;
}

static void
step_configure(struct bench *b, struct fuzz_input *in)
{
    struct fixture *f = b->f;
    uint8_t flags = fuzz_byte(in);
    char *error = NULL;

    f->config.n_trees = flags & 3 ? b->n_whole : fuzz_below(in, (uint32_t) b->n_whole + 1);
    for (size_t i = 0; i < f->config.n_trees; i++) {
        change_tree(in, &f->config.trees[i], &b->whole[i]);
    }
    f->config.verify_always = flags & 4;
    f->config.generation++;
    f->n_frames = 0;
    if (f->class->configure(f->node, &f->config, f->now, &error)) {
        REQUIRE(error && *error);
        free(error);
    }
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
    for (size_t i = 0; f->class->sid(f->node, i, &sid); i++) {
        REQUIRE(sid.behaviour);
    }
}

static struct fixture *
create_node(uint8_t which)
{
    switch (which % 4) {
    case 0: return fixture_create(&swedge_class, N_RECEIVERS);
    case 1: return transit_create(N_RECEIVERS);
    case 2: return agent_create(N_RECEIVERS);
    default: break;
    }
    struct fixture *f = fixture_create(which & 4 ? &swedge_class : &srcagent_class, N_RECEIVERS);
    fixture_add_epoch(f);
    return f;
}

/* The group is in mode mcast: at a switch with others behind it, which do not answer to it, or at an
 * agent. */
static void
set_mcast(struct fixture *f, struct tree_config *t)
{
    t->mode = MODE_MCAST;
    t->mcast_group = MCAST_GROUP;
    t->mcast_source = t->upstream = node_address(STAR_AGENT_ID);
    t->replication_sid = in6addr_any;
    for (size_t i = 0; i < t->n_outer_da; i++) {
        t->outer_da[i] = node_address(node_id_of(&t->outer_da[i]));
    }
    t->n_branches -= f->config.n_sids > 1 ? 2 : 0;
}

/* An agent with two edges. */
static void
set_ingress(struct fixture *f)
{
    const struct in6_addr das[] = {node_sid(STAR_EDGE_ID, SID_FUNC_END_MT),
                                   node_sid(CHILD_A, SID_FUNC_END_MT)};
    struct tree_config *t = &f->config.trees[0];

    t->mode = MODE_INGRESS;
    t->root = true;
    t->copies[N_RECEIVERS - 1].edge = node_address(CHILD_A);
    fixture_set_outer_das(f, das, 2);
    fixture_add_node_branch(f, STAR_EDGE_ID);
    fixture_add_node_branch(f, CHILD_A);
    fixture_add_sid(f, SID_FUNC_RESPONSE, 64, SID_RESPONSE);
}

static struct fixture *
create(uint8_t which)
{
    struct fixture *f = create_node(which);

    if (which % 4 == 2 && which & INGRESS) {
        set_ingress(f);
    }
    for (size_t i = 0; i < f->config.n_trees; i++) {
        struct tree_config *t = &f->config.trees[i];

        if (which & MCAST && t->mode != MODE_INGRESS) {
            set_mcast(f, t);
        }
        t->provisioned = which & PROVISIONED;
        if (which & AUTH) {
            struct auth_config auth = {
                .tlvs = AUTH_MT | AUTH_HMAC, .key = 1, .n_keys = 2, .keys = keys};
            auth_config_uninit(&t->auth);
            auth_config_clone(&t->auth, &auth);
        }
    }
    fixture_configure(f);
    return f;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};
    struct bench b = {.f = create(fuzz_byte(&in))};

    b.n_whole = b.f->config.n_trees;
    for (size_t i = 0; i < b.n_whole; i++) {
        tree_config_clone(&b.whole[i], &b.f->config.trees[i]);
    }
    for (int i = 0; i < MAX_STEPS && in.n; i++) {
        steps[fuzz_below(&in, sizeof steps / sizeof *steps)](&b, &in);
        b.f->mute = b.mute_steps > 0;
        b.mute_steps -= b.f->mute;
        check_frames(b.f);
        look(b.f);
    }
    b.f->config.n_trees = b.n_whole; /* all of it is to be freed. */
    fixture_destroy(b.f);
    for (size_t i = 0; i < b.n_whole; i++) {
        tree_config_uninit(&b.whole[i]);
    }
    return 0;
}
