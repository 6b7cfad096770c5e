/* SPDX-License-Identifier: Apache-2.0
 *
 * dp-packets CASE N: takes N packets through a node, without ports and without a
 * clock.  tests/perf/instructions counts what that costs.
 *
 * Nothing is done but what a packet needs.  Frames are made before the first packet.  As in a
 * daemon, packets come in bursts, what the node sends waits until a burst is done, and then the
 * node's timer is looked at.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/alloc.h"
#include "lib/auth.h"
#include "lib/icrc.h"
#include "lib/response-auth.h"
#include "lib/response.h"
#include "lib/roce.h"
#include "lib/srh.h"
#include "swedge/swedge.h"
#include "tests/unit/path-fixture.h"
#include "tests/unit/transit-fixture.h"

/* Its header cannot be included beside the other: each names its own things. */
extern const struct node_class srcagent_class;

#define FAN_OUT   8
#define BURST     64
/* Room for what waits in a burst. */
#define N_PACKETS (BURST * (FAN_OUT + 2))
/* PSNs that go down at once before they are acknowledged. */
#define WINDOW    2000

/* A frame that is fed again and again with other PSNs. */
struct sample {
    uint16_t port;
    size_t len;
    struct parsed h;
    uint8_t bytes[PACKET_ROOM];
};

struct test_case;

struct bench {
    const struct test_case *c;
    struct fixture *f;
    struct sample down;
    struct sample acks[FAN_OUT];
    struct response_auth *children[FAN_OUT]; /* of nodes that authenticate responses. */
    struct packet *sent;                     /* in this burst. */
    uint64_t n_sent;
    unsigned n_fed; /* in this burst. */
};

static struct bench bench;

struct test_case {
    const char *name;
    void (*create)(unsigned n); /* makes the node, and a sample of what comes down. */
    unsigned n;                 /* groups; branches where responses are counted. */
    void (*feed)(uint32_t i);   /* packet i. */
    uint8_t opcode;             /* of requests. */
    unsigned int auth;          /* their authentication. */
    uint64_t n_sent;            /* frames for each packet. */
};

static void
sink(struct fixture *f, struct packet *p)
{
    (void) f;
    p->next = bench.sent;
    bench.sent = p;
    bench.n_sent++;
}

static void
end_burst(void)
{
    struct fixture *f = bench.f;

    while (bench.sent) {
        struct packet *p = bench.sent;

        bench.sent = p->next;
        packet_put(p);
    }
    bench.n_fed = 0;
    if (f->class->deadline(f->node) <= f->now) {
        f->class->timer(f->node, f->now);
    }
}

static void
sample_init(struct sample *s, uint16_t port, const uint8_t *ip, size_t len)
{
    s->port = port;
    s->len = fixture_frame(bench.f, port, ip, len, s->bytes);
    ck_assert_int_eq(parse_outer(s->bytes, (uint32_t) s->len, &s->h), DROP_none);
    ck_assert_int_eq(parse_rest(s->bytes, (uint32_t) s->len, &s->h), DROP_none);
}

static void
feed(const struct sample *s)
{
    struct fixture *f = bench.f;
    struct packet *p = packet_from_bytes(f->pool, s->bytes, s->len);

    ck_assert_ptr_nonnull(p);
    f->class->input(f->node, s->port, p, f->now);
    if (++bench.n_fed == BURST) {
        end_burst();
    }
}

static void
set_psn(struct sample *s, uint32_t psn)
{
    ((struct bth *) (s->bytes + s->h.bth_ofs))->psn = be24_put(psn & PSN_MASK);
}

/* The ICRC of a request is let become wrong: no node looks at it while PSNs come in order and
 * nobody joins. */
static void
feed_request(uint32_t psn)
{
    bench.f->now++;
    set_psn(&bench.down, psn);
    feed(&bench.down);
}

static void
make_icrc(struct sample *s)
{
    uint16_t ip = parsed_innermost(&s->h)->ofs;

    icrc_store(s->bytes + s->h.icrc_ofs,
               icrc_compute(s->bytes + ip, (size_t) (s->h.icrc_ofs - ip)));
}

static void
feed_ack(struct sample *s)
{
    make_icrc(s);
    feed(s);
}

/* Groups.  The first is the fixture's. */

static struct in6_addr
proxy_of(unsigned group)
{
    struct in6_addr proxy = star_proxy;

    proxy.s6_addr[12] = (uint8_t) (group >> 8);
    proxy.s6_addr[13] = (uint8_t) group;
    return proxy;
}

static struct in6_addr
replication_sid_of(unsigned group)
{
    return node_sid(STAR_EDGE_ID, (uint16_t) (GROUP_RS + group));
}

/* Makes n groups of the one, and applies the configuration. */
static void
configure(unsigned n)
{
    static const struct auth_key key = {.id = 1, .len = 32, .secret = "of this bench"};
    struct node_config *c = &bench.f->config;
    struct tree_config *one = c->trees;
    bool replicates = !IN6_IS_ADDR_UNSPECIFIED(&one->replication_sid);

    one->policy.liveness_msec = 10000;
    one->auth.tlvs = bench.c->auth;
    one->auth.key = bench.c->auth ? key.id : 0;
    one->auth.instance = one->auth.response_instance = 1;
    one->auth.n_keys = 1;
    one->auth.keys = must_copy(&key, 1, sizeof key);
    c->trees = must_calloc(n, sizeof *c->trees);
    c->trees[0] = *one;
    free(one);
    for (unsigned i = 1; i < n; i++) {
        struct tree_config *t = &c->trees[i];

        tree_config_clone(t, &c->trees[0]);
        snprintf(t->group, sizeof t->group, "g%u", i);
        t->proxy = proxy_of(i);
        if (replicates) {
            t->replication_sid = replication_sid_of(i);
        }
    }
    c->n_trees = n;
    for (unsigned i = 0; i < n && replicates; i++) {
        fixture_add_sid(bench.f, (uint16_t) (GROUP_RS + i), 64, SID_END_REPLICATE);
    }
    fixture_configure(bench.f);
}

/* The groups in turn. */
static void
feed_group(uint32_t i)
{
    const struct test_case *c = bench.c;
    struct sample *s = &bench.down;
    struct in6_addr proxy = proxy_of(i % c->n);
    struct ip6_hdr_wire *outer = (struct ip6_hdr_wire *) (s->bytes + s->h.ip.ofs);
    struct ip6_hdr_wire *inner = (struct ip6_hdr_wire *) (s->bytes + s->h.inner.ofs);

    inner->dst = proxy;
    memcpy(s->bytes + s->h.srh_ofs + sizeof(struct srh_hdr), &proxy, sizeof proxy);
    if (!IN6_IS_ADDR_UNSPECIFIED(&bench.f->config.trees[0].replication_sid)) {
        outer->dst = replication_sid_of(i % c->n);
    }
    feed_request(START + i / c->n);
}

/* The source's WRITE in IPv6 with SRH, for all receivers of the star, as it comes to 'sid'. */
static void
down_sample(const struct in6_addr *sid)
{
    const struct tree_config *tree = &bench.f->config.trees[0];
    struct auth_epoch epoch = tree_config_auth_epoch(tree);
    struct roce_spec spec = transit_write(START);
    struct in6_addr agent = node_address(STAR_AGENT_ID);
    struct srh_copy copies[FAN_OUT];
    struct encap_template t;
    uint8_t bytes[PACKET_ROOM];

    spec.opcode = bench.c->opcode;
    for (unsigned i = 0; i < FAN_OUT; i++) {
        copies[i] = (struct srh_copy){node_address(STAR_EDGE_ID), star_receiver(i), star_qpn(i)};
    }
    ck_assert_int_eq(encap_template_build(&t, &agent, sid, &star_proxy, copies, FAN_OUT), 0);
    ck_assert_int_eq(auth_sign(&t, &tree->auth, &epoch), 0);
    size_t inner_len = roce_build(bytes + t.len, &spec);
    encap_template_stamp(&t, bytes, (uint16_t) inner_len, 2, 0x12345);
    sample_init(&bench.down, AGENT_PORT, bytes, t.len + inner_len);
}

static void
start_edge(unsigned n)
{
    struct in6_addr sid = node_sid(STAR_EDGE_ID, SID_FUNC_END_MT);

    configure(n);
    down_sample(&sid);
}

/* An edge with FAN_OUT receivers in n groups. */
static void
edge(unsigned n)
{
    bench.f = fixture_create_with(&swedge_class, FAN_OUT, N_PACKETS);
    start_edge(n);
}

static void
make_acks(void)
{
    for (unsigned i = 0; i < FAN_OUT; i++) {
        struct in6_addr r = star_receiver(i);
        struct roce_spec ack = {.src = &r,
                                .dst = &star_proxy,
                                .dest_qp = STAR_DQPN,
                                .opcode = RC_ACK,
                                .syndrome = 0x1f};
        uint8_t bytes[PACKET_ROOM];

        sample_init(&bench.acks[i], star_port(i), bytes, roce_build(bytes, &ack));
    }
}

/* What the queue pairs of receivers expected that joined later. */
#define EXPECTED (START + 0x654321)

/* An edge without receivers, and where to configure those that come. */
static struct branch_config *
empty_edge(void)
{
    bench.f = fixture_create_with(&swedge_class, FAN_OUT, N_PACKETS);
    struct tree_config *tree = bench.f->config.trees;

    tree->n_branches = 0;
    fixture_configure(bench.f);
    tree->n_branches = FAN_OUT;
    return tree->branches;
}

/* An edge whose receivers joined in an earlier life of the node. */
static void
late_edge(unsigned n)
{
    struct branch_config *branches = empty_edge();

    for (unsigned i = 0; i < FAN_OUT; i++) {
        branches[i].late = true;
        branches[i].first = psn_make(START);
        branches[i].psn = psn_make(EXPECTED);
    }
    start_edge(n);
}

/* An edge whose receivers join with the second packet. */
static void
joining_edge(unsigned n)
{
    struct branch_config *branches = empty_edge();

    for (unsigned i = 0; i < FAN_OUT; i++) {
        branches[i].join = BRANCH_ADMITTED;
        branches[i].psn = psn_make(EXPECTED);
    }
    start_edge(n);
    make_acks();
}

/* The receivers have said where they stand before the second packet comes, whose ICRC is looked
 * at. */
static void
feed_joining(uint32_t i)
{
    for (unsigned b = 0; i == 1 && b < FAN_OUT; b++) {
        set_psn(&bench.acks[b], EXPECTED - 1);
        feed_ack(&bench.acks[b]);
    }
    if (i == 1) {
        set_psn(&bench.down, START + i);
        make_icrc(&bench.down);
    }
    feed_group(i);
}

/* A transit node with FAN_OUT nodes below it in n groups. */
static void
transit(unsigned n)
{
    struct fixture *f = fixture_create_with(&swedge_class, 0, N_PACKETS);
    struct in6_addr rs = transit_rs();
    struct in6_addr das[FAN_OUT];

    bench.f = f;
    for (uint16_t i = 0; i < FAN_OUT; i++) {
        uint16_t id = (uint16_t) (CHILD_A + i);

        fixture_add_node(f, (uint16_t) (PORT_A + i), id);
        fixture_add_node_branch(f, id);
        das[i] = node_sid(id, SID_FUNC_END_MT);
    }
    fixture_set_outer_das(f, das, FAN_OUT);
    f->config.trees[0].replication_sid = rs;
    configure(n);
    down_sample(&rs);
}

/* A source agent whose group has FAN_OUT receivers behind one edge. */
static void
agent(unsigned n)
{
    struct roce_spec spec = transit_write(START);
    uint8_t bytes[PACKET_ROOM];

    bench.f = fixture_create_with(&srcagent_class, FAN_OUT, N_PACKETS);
    configure(n);
    sample_init(&bench.down, HOST_PORT, bytes, roce_build(bytes, &spec));
}

static void
feed_next(uint32_t i)
{
    feed_request(START + i);
}

/* A source agent whose host writes to another one. */
static void
unicast(unsigned n)
{
    struct roce_spec spec = path_request(RC_WRITE_ONLY, 0x11, 0);
    uint8_t bytes[PACKET_ROOM];

    (void) n;
    bench.f = fixture_create_with(&srcagent_class, FAN_OUT, N_PACKETS);
    sample_init(&bench.down, HOST_PORT, bytes, roce_build(bytes, &spec));
}

/* The same over n paths. */
static void
paths(unsigned n, enum path_policy policy)
{
    unicast(n);
    fixture_add_node(bench.f, OTHER_UPLINK, OTHER_NODE);
    path_add(bench.f, &path_peer, policy, n, 1);
    fixture_configure(bench.f);
}

static void
spread(unsigned n)
{
    paths(n, PATH_SPREAD);
}

static void
message(unsigned n)
{
    paths(n, PATH_MESSAGE);
}

static void
spray(unsigned n)
{
    paths(n, PATH_SPRAY);
}

/* A switch whose host writes to another one. */
static void
forwarding(unsigned n)
{
    struct in6_addr from = star_receiver(0), to = star_receiver(1);
    struct roce_spec spec = path_request(RC_WRITE_ONLY, 0x11, 0);
    uint8_t bytes[PACKET_ROOM];

    (void) n;
    bench.f = fixture_create_with(&swedge_class, FAN_OUT, N_PACKETS);
    spec.src = &from;
    spec.dst = &to;
    sample_init(&bench.down, star_port(0), bytes, roce_build(bytes, &spec));
}

/* The same from the fabric. */
static void
delivering(unsigned n)
{
    struct in6_addr to = star_receiver(1);
    struct roce_spec spec = path_request(RC_WRITE_ONLY, 0x11, 0);
    uint8_t bytes[PACKET_ROOM];

    (void) n;
    bench.f = fixture_create_with(&swedge_class, FAN_OUT, N_PACKETS);
    spec.dst = &to;
    sample_init(&bench.down, AGENT_PORT, bytes, roce_build(bytes, &spec));
}

/* A node on the path to a group's root, which only shifts. */
static void
shifting(unsigned n)
{
    struct in6_addr da = node_sid(STAR_EDGE_ID, CHILD_A);

    bench.f = fixture_create_with(&swedge_class, FAN_OUT, N_PACKETS);
    fixture_add_node(bench.f, PORT_A, CHILD_A);
    fixture_add_sid(bench.f, 0, NODE_LOCATOR_PLEN, SID_UN);
    bench.f->config.sids[bench.f->config.n_sids - 1].block_len = 32;
    configure(n);
    down_sample(&da);
}

/* An edge whose receivers answer each packet. */
static void
acked_edge(unsigned n)
{
    edge(n);
    make_acks();
}

static void
feed_acked(uint32_t i)
{
    feed_group(i);
    for (unsigned b = 0; b < FAN_OUT; b++) {
        set_psn(&bench.acks[b], START + i);
        feed_ack(&bench.acks[b]);
    }
}

/* A node that merges the responses of n nodes.  Copies for all of them go to one. */
static void
merging(unsigned n)
{
    struct fixture *f = fixture_create_with(&swedge_class, 0, N_PACKETS);
    struct in6_addr rs = transit_rs();
    struct in6_addr da = node_sid(PARENT, SID_FUNC_END_MT);
    uint8_t bytes[PACKET_ROOM];

    bench.f = f;
    fixture_add_node(f, PORT_A, CHILD_A);
    fixture_add_node(f, PORT_B, PARENT);
    fixture_add_sid(f, SID_FUNC_RESPONSE, 64, SID_RESPONSE);
    for (unsigned i = 0; i < n; i++) {
        fixture_add_node_branch(f, (uint16_t) (CHILD_A + i));
    }
    fixture_set_outer_das(f, &da, 1);
    f->config.trees[0].replication_sid = rs;
    configure(1);
    down_sample(&rs);
    size_t len = tunnelled_response(bytes, CHILD_A, STAR_EDGE_ID, STAR_DQPN, AETH_ACK_UNLIMITED, 0);
    sample_init(&bench.acks[0], PORT_A, bytes, len);
}

/* The response of branch i mod n. */
static void
feed_response(uint32_t i)
{
    struct sample *s = &bench.acks[0];
    struct ip6_hdr_wire *outer = (struct ip6_hdr_wire *) (s->bytes + s->h.ip.ofs);
    uint32_t n = bench.c->n;

    if (!i) {
        feed_request(START);
    }
    if (i % (n * WINDOW) == 0) {
        feed_request(START + i / n + WINDOW - 1);
    }
    /* One after the other, but not in the order of anything. */
    outer->src = node_address((uint16_t) (CHILD_A + i % n * 7 % n));
    set_psn(s, START + i / n);
    feed_ack(s);
}

/* The same with authenticated responses. */
static void
merging_data(unsigned n)
{
    merging(n);
    bench.f->config.trees[0].auth.responses = true;
    fixture_configure(bench.f);
    for (unsigned i = 0; i < n; i++) {
        bench.children[i] = response_auth_create(0);
    }
}

/* Each response is made by its node before it is taken. */
static void
feed_sealed(uint32_t i)
{
    const struct tree_config *t = &bench.f->config.trees[0];
    uint32_t n = bench.c->n, child = i % n;
    const struct response_pair pair = {
        node_address((uint16_t) (CHILD_A + child)),
        node_sid(STAR_EDGE_ID, SID_FUNC_RESPONSE),
    };

    if (!i) {
        feed_request(START);
    }
    if (i % (n * WINDOW) == 0) {
        feed_request(START + i / n + WINDOW - 1);
    }
    struct packet *p = response_build(bench.f->pool, &star_proxy, &star_source, 0xc001, STAR_DQPN,
                                      psn_make(START + i / n), AETH_ACK_UNLIMITED, 1);
    ck_assert_int_eq(response_auth_seal(bench.children[child], t, &pair, &pair.parent_sid, p),
                     DROP_none);
    sample_init(&bench.acks[0], PORT_A, p->data, p->len);
    packet_put(p);
    feed(&bench.acks[0]);
}

static const struct test_case cases[] = {
    {"end-mt", edge, 1, feed_group, RC_WRITE_ONLY, 0, FAN_OUT},
    {"end-mt-middle", edge, 1, feed_group, RC_WRITE_MIDDLE, 0, FAN_OUT},
    {"end-mt-auth", edge, 1, feed_group, RC_WRITE_ONLY, AUTH_MT, FAN_OUT},
    {"end-mt-8", edge, 8, feed_group, RC_WRITE_ONLY, 0, FAN_OUT},
    {"end-mt-64", edge, 64, feed_group, RC_WRITE_ONLY, 0, FAN_OUT},
    {"end-mt-512", edge, 512, feed_group, RC_WRITE_ONLY, 0, FAN_OUT},
    {"end-mt-4096", edge, 4096, feed_group, RC_WRITE_ONLY, 0, FAN_OUT},
    {"end-mt-acked", acked_edge, 1, feed_acked, RC_WRITE_ONLY, 0, FAN_OUT + 1},
    {"end-mt-late", late_edge, 1, feed_group, RC_WRITE_ONLY, 0, FAN_OUT},
    {"end-mt-late-middle", late_edge, 1, feed_group, RC_WRITE_MIDDLE, 0, FAN_OUT},
    {"end-mt-joined", joining_edge, 1, feed_joining, RC_WRITE_ONLY, 0, FAN_OUT},
    {"replicate", transit, 1, feed_group, RC_WRITE_ONLY, 0, FAN_OUT},
    {"replicate-8", transit, 8, feed_group, RC_WRITE_ONLY, 0, FAN_OUT},
    {"replicate-64", transit, 64, feed_group, RC_WRITE_ONLY, 0, FAN_OUT},
    {"replicate-512", transit, 512, feed_group, RC_WRITE_ONLY, 0, FAN_OUT},
    {"replicate-4096", transit, 4096, feed_group, RC_WRITE_ONLY, 0, FAN_OUT},
    {"srcagent", agent, 1, feed_next, RC_WRITE_ONLY, 0, 1},
    {"srcagent-auth", agent, 1, feed_next, RC_WRITE_ONLY, AUTH_MT, 1},
    {"srcagent-data", agent, 1, feed_next, RC_WRITE_ONLY, AUTH_DATA, 1},
    {"unicast", unicast, 1, feed_next, RC_WRITE_ONLY, 0, 1},
    {"unicast-spread", spread, 2, feed_next, RC_WRITE_ONLY, 0, 1},
    {"unicast-message", message, 2, feed_next, RC_WRITE_ONLY, 0, 1},
    {"unicast-spray", spray, 2, feed_next, RC_WRITE_ONLY, 0, 1},
    {"forward", forwarding, 1, feed_next, RC_WRITE_ONLY, 0, 1},
    {"forward-to-host", delivering, 1, feed_next, RC_WRITE_ONLY, 0, 1},
    {"un", shifting, 1, feed_next, RC_WRITE_ONLY, 0, 1},
    {"acks-8", merging, 8, feed_response, RC_WRITE_ONLY, 0, 0},
    {"acks-8-data", merging_data, 8, feed_sealed, RC_WRITE_ONLY, AUTH_DATA, 0},
    {"acks-100", merging, 100, feed_response, RC_WRITE_ONLY, 0, 0},
    {"acks-1000", merging, 1000, feed_response, RC_WRITE_ONLY, 0, 0},
};

static void
run_case(const struct test_case *c, uint32_t n)
{
    bench.c = c;
    c->create(c->n);
    uint32_t first = c->n; /* before that one learns who the neighbours are. */
    for (uint32_t i = 0; i < first; i++) {
        c->feed(i);
        fixture_settle(bench.f);
        bench.f->n_frames = 0;
    }
    end_burst();
    bench.f->sink = sink;
    for (uint32_t i = 0; i < n; i++) {
        c->feed(first + i);
    }
    end_burst();
    ck_assert_uint_eq(fixture_total_drops(bench.f), 0);
    if (c->n_sent) {
        ck_assert_uint_eq(bench.n_sent, n * c->n_sent);
    }
    for (unsigned i = 0; i < FAN_OUT; i++) {
        response_auth_destroy(bench.children[i]);
    }
    fixture_destroy(bench.f);
}

int
main(int argc, char *argv[])
{
    char *end = NULL;
    unsigned long n = argc == 3 ? strtoul(argv[2], &end, 10) : 0;

    for (size_t i = 0; n && n < 1 << 22 && !*end && i < sizeof cases / sizeof *cases; i++) {
        if (!strcmp(cases[i].name, argv[1])) {
            run_case(&cases[i], (uint32_t) n);
            return 0;
        }
    }
    fprintf(stderr, "usage: dp-packets CASE N, N below %d, CASE one of:\n", 1 << 22);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        puts(cases[i].name);
    }
    return argc > 1 ? 2 : 0;
}
