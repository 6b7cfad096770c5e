/* SPDX-License-Identifier: Apache-2.0
 *
 * The whole star in virtual time: a source and receivers as rxe has them
 * (tests/model/rc-endpoint.h), the real source agent, the real edge, and links
 * that delay, reorder, lose, repeat and spoil packets.
 *
 * Everything follows from a seed.  A failure names it; STAR_SEED=N in the
 * environment runs that one only and traces every packet:
 *
 *     STAR_SEED=3007 CK_RUN_SUITE=star build/tests/unit
 *
 * At every event it must hold that
 * - a request that completes with success is in the memory of every counted
 *   receiver, byte for byte;
 * - no response towards the source speaks of a PSN that a counted receiver has
 *   not confirmed;
 * - a node makes no more packets than its job allows;
 * and at the end that everything was completed (or failed, where a receiver
 * did) within a bound of virtual time, and that all packet buffers are back.
 */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/icrc.h"
#include "lib/nd.h"
#include "lib/roce.h"
#include "tests/model/rc-endpoint.h"
#include "tests/unit/node-fixture.h"
#include "tests/unit/suites.h"

/* Their headers cannot both be included: each names its own things. */
extern const struct node_class srcagent_class, swedge_class;

#define MTU            256
#define MAX_RECEIVERS  8
#define MAX_MESSAGES   32
#define MAX_PACKETS    600 /* of all messages. */
#define MAX_ACTIONS    8
#define N_EPOCHS       2
#define POOL_SIZE      1024
#define TIME_LIMIT     60000000 /* virtual; microseconds like all times. */
#define EVENT_LIMIT    4000000
#define SEEDS_PER_TYPE 60
#define SEEDS_OF(TYPE) ((TYPE) *1000)

enum place { SOURCE, AGENT, EDGE, RECEIVER /* + i */ };

/* What happens in mid-stream. */
enum action { RECONFIGURE, REMOVE, RESTART_EDGE, RESTART_AGENT, NEW_EPOCH, FATAL };

/* Kinds of run: which of it. */
enum run_type {
    PLAIN,
    RNR,
    FORGED,
    FAILING,
    CONFIGURED,
    SHRINKING,
    RESTARTED,
    EPOCHS,
    MIXED,
    N_RUN_TYPES
};

struct sim;

struct quality {
    uint32_t delay;                       /* always. */
    uint32_t loss, twice, spoil, reorder; /* of 10000 packets. */
};

struct event {
    uint64_t at;
    uint64_t order; /* of two at the same time. */
    void (*run)(struct sim *, struct event *);
    enum place place; /* of a frame: where it arrives. */
    uint16_t port;
    unsigned arg;
    size_t len;
    uint8_t bytes[];
};

struct sim_node {
    const struct node_class *class;
    void *node;
    struct node_config base; /* its tree is that of epoch 0, nobody removed. */
    unsigned first_epoch, last_epoch;
    uint32_t removed;     /* receivers, bit i. */
    uint64_t n_in, n_out; /* packets, neighbour discovery excluded. */
};

struct message {
    enum rc_op op;
    uint32_t ofs, len;
    psn_t last_psn;
};

struct sim {
    unsigned seed;
    enum run_type type;
    bool trace;
    uint64_t random;
    uint64_t now;
    uint64_t n_events;
    struct event **heap;
    size_t n_heap, heap_size;
    struct packet_pool *pool;
    struct sim_node nodes[2]; /* AGENT - 1, EDGE - 1. */
    struct quality quality[MAX_RECEIVERS + 2][2];

    unsigned epoch; /* of the endpoints. */
    psn_t start_psn;
    unsigned n;
    struct rc_endpoint *source, *receivers[MAX_RECEIVERS];
    uint32_t silent;                          /* receivers that hear nothing, bit i. */
    psn_t confirmed[N_EPOCHS][MAX_RECEIVERS]; /* by those of epochs that are over. */
    uint64_t gap;

    struct message messages[MAX_MESSAGES];
    unsigned n_messages, n_posted, n_done, depth;
    unsigned n_buffers[MAX_RECEIVERS]; /* messages looked at for receive buffers. */
    uint32_t region_len;
    uint8_t data[MAX_PACKETS * MTU], memory[MAX_RECEIVERS][MAX_PACKETS * MTU];
    enum rc_status failure; /* of the source; RC_WC_SUCCESS: none. */
    uint8_t fatal;          /* syndrome that a receiver was told to answer; 0: none. */

    struct {
        enum action action;
        uint64_t after; /* as many packets were sent in this epoch. */
    } actions[MAX_ACTIONS];
    unsigned n_actions, next_action;
};

/* Events. */

static uint32_t
rnd(struct sim *s, uint32_t limit)
{
    /* splitmix64. */
    uint64_t z = s->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t) ((z ^ z >> 31) >> 32) % limit;
}

/* libcheck writes to a file for every ck_assert(), even one that holds. */
#define REQUIRE(SIM, COND, ...)                                                                 \
    do {                                                                                        \
        if (!(COND)) {                                                                          \
            fprintf(stderr, __VA_ARGS__);                                                       \
            fputc('\n', stderr);                                                                \
            ck_abort_msg("STAR_SEED=%u, time %" PRIu64 ": %s", (SIM)->seed, (SIM)->now, #COND); \
        }                                                                                       \
    } while (0)

static bool
is_before(const struct event *a, const struct event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static struct event *
event_create(struct sim *s, uint64_t at, void (*run)(struct sim *, struct event *), size_t len)
{
    struct event *e = calloc(1, sizeof *e + len);
    if (s->n_heap == s->heap_size) {
        s->heap_size = s->heap_size ? 2 * s->heap_size : 256;
        s->heap = realloc(s->heap, s->heap_size * sizeof(struct event *));
    }
    if (!e || !s->heap) {
        abort();
    }
    e->at = at;
    e->order = s->n_events++;
    e->run = run;
    e->len = len;
    size_t i = s->n_heap++;
    for (; i && is_before(e, s->heap[(i - 1) / 2]); i = (i - 1) / 2) {
        s->heap[i] = s->heap[(i - 1) / 2];
    }
    s->heap[i] = e;
    return e;
}

static struct event *
event_pop(struct sim *s)
{
    struct event *first = s->heap[0];
    struct event *last = s->heap[--s->n_heap];
    size_t i = 0;

    for (size_t child; (child = 2 * i + 1) < s->n_heap; i = child) {
        child += child + 1 < s->n_heap && is_before(s->heap[child + 1], s->heap[child]);
        if (!is_before(s->heap[child], last)) {
            break;
        }
        s->heap[i] = s->heap[child];
    }
    s->heap[i] = last;
    return first;
}

/* The star's description. */

static struct sim_node *
node_of(struct sim *s, enum place place)
{
    return &s->nodes[place - AGENT];
}

static uint32_t
designated_qpn(unsigned epoch)
{
    return STAR_DQPN + epoch;
}

static uint32_t
source_qpn(unsigned epoch)
{
    return STAR_SOURCE_QPN + epoch;
}

static uint32_t
receiver_qpn(unsigned epoch, unsigned i)
{
    return star_qpn(i) + 0x40 * epoch;
}

static psn_t
epoch_start(const struct sim *s, unsigned epoch)
{
    return psn_add(s->start_psn, s->seed & 2 ? 77 * (int32_t) epoch : 0);
}

/* Is the receiver in the set that the edge counts, in an epoch? */
static bool
is_counted(struct sim *s, unsigned i)
{
    return !(node_of(s, EDGE)->removed & 1u << i);
}

static psn_t
confirmed_by(const struct sim *s, unsigned epoch, unsigned i)
{
    struct rc_info info;

    if (epoch < s->epoch) {
        return s->confirmed[epoch][i];
    }
    rc_get_info(s->receivers[i], &info);
    return info.expected;
}

static const char *
place_name(enum place place)
{
    static char name[16];
    static const char *const names[] = {"source", "agent", "edge"};

    if (place < RECEIVER) {
        return names[place];
    }
    snprintf(name, sizeof name, "r%d", place - RECEIVER + 1);
    return name;
}

/* Links.  Number 0 is the source's, 1 that between agent and edge, 2.. the
 * receivers'; direction 0 is down. */

static void
trace_frame(const struct sim *s, const char *what, enum place place, const struct parsed *h,
            const uint8_t *frame)
{
    if (!s->trace || !h->bth_ofs) {
        return;
    }
    const struct bth *bth = (const void *) (frame + h->bth_ofs);
    const char *name = roce_opcode_info(h->opcode)->name;
    fprintf(stderr, "%10" PRIu64 " %s %s: %s psn %06x qp %x%s", s->now, place_name(place), what,
            name ? name : "?", be24_get(bth->psn), be24_get(bth->dest_qp),
            bth->ack_req & BTH_ACK_REQ ? " ackreq" : "");
    if (h->opcode == RC_ACK) {
        fprintf(stderr, " syndrome %02x", ((const struct aeth *) (bth + 1))->syndrome);
    }
    fputc('\n', stderr);
}

static void
arrive_at_node(struct sim *s, struct event *e)
{
    struct sim_node *n = node_of(s, e->place);
    struct packet *p = packet_from_bytes(s->pool, e->bytes, e->len);

    REQUIRE(s, p, "the pool is empty");
    n->n_in++;
    n->class->input(n->node, e->port, p, s->now);
}

static void
arrive_at_host(struct sim *s, struct event *e)
{
    struct rc_endpoint *ep = e->place == SOURCE ? s->source : s->receivers[e->place - RECEIVER];

    if (e->place == SOURCE || !(s->silent & 1u << (e->place - RECEIVER))) {
        rc_input(ep, e->bytes + sizeof(struct eth_hdr), e->len - sizeof(struct eth_hdr), s->now);
    }
}

/* Puts a frame on the link from 'from' to 'to', 'port' being the node's there
 * if it is one. */
static void
transmit(struct sim *s, enum place from, enum place to, uint16_t port, const uint8_t *frame,
         size_t len, bool ideal)
{
    enum place below = from > to ? from : to;
    const struct quality *q = &s->quality[below - 1][from > to];
    unsigned copies = 1;

    if (!ideal) {
        copies = rnd(s, 10000) < q->loss ? 0 : rnd(s, 10000) < q->twice ? 2 : 1;
    }
    for (unsigned i = 0; i < copies; i++) {
        bool late = !ideal && rnd(s, 10000) < q->reorder;
        uint64_t at = s->now + q->delay + (late || i ? 1 + rnd(s, 30 * q->delay) : 0);
        struct event *e =
            event_create(s, at, to == AGENT || to == EDGE ? arrive_at_node : arrive_at_host, len);
        memcpy(e->bytes, frame, len);
        e->place = to;
        e->port = port;
        if (!ideal && rnd(s, 10000) < q->spoil) {
            uint32_t bit = rnd(s, (uint32_t) (len - sizeof(struct eth_hdr)) * 8);
            e->bytes[sizeof(struct eth_hdr) + bit / 8] ^= (uint8_t) (1 << bit % 8);
        }
    }
}

/* A host's packet, to its node. */
static void
host_tx(struct sim *s, enum place from, const uint8_t *ip, size_t len)
{
    enum place to = from == SOURCE ? AGENT : EDGE;
    uint16_t port = from == SOURCE ? 1 : star_port(from - RECEIVER);
    uint8_t frame[PACKET_ROOM] = {0};
    struct eth_hdr *eth = (struct eth_hdr *) frame;
    struct parsed h;

    node_port_mac(node_of(s, to)->base.id, port, eth->dst);
    memcpy(eth->src, (uint8_t[]){0x02, 0xee, 0, 0, 0, (uint8_t) from}, 6);
    eth->type = be16_put(ETH_TYPE_IP6);
    memcpy(eth + 1, ip, len);
    REQUIRE(s, !parse_frame(frame, (uint32_t) (len + sizeof *eth), &h), "an endpoint's packet");
    trace_frame(s, "sends", from, &h, frame);
    if (from == SOURCE || !(s->silent & 1u << (from - RECEIVER))) {
        transmit(s, from, to, port, frame, len + sizeof *eth, false);
    }
}

/* The host on this port of a node tells its Ethernet address. */
static void
host_answers_nd(struct sim *s, enum place node, uint16_t port, enum place host,
                const struct nd_msg *ns)
{
    struct packet *p = packet_get(s->pool);
    struct nd_msg na = {
        .type = ND_NA,
        .src = ns->target,
        .dst = ns->src,
        .target = ns->target,
        .solicited = true,
        .override = true,
        .has_mac = true,
        .mac = {0x02, 0xee, 0, 0, 0, (uint8_t) host},
    };
    uint8_t mac[6], frame[256];

    node_port_mac(node_of(s, node)->base.id, port, mac);
    nd_build(p, na.mac, mac, &na);
    size_t len = packet_flatten(p, frame, sizeof frame);
    packet_put(p);
    transmit(s, host, node, port, frame, len, true);
}

/* A response leaves for the source: did all counted receivers confirm what it
 * says? */
static void
check_response(struct sim *s, const uint8_t *frame, const struct parsed *h)
{
    const struct bth *bth = (const void *) (frame + h->bth_ofs);
    const struct aeth *aeth = (const void *) (bth + 1);
    unsigned epoch = be24_get(bth->dest_qp) - STAR_SOURCE_QPN;
    bool is_ack = aeth_class(aeth->syndrome) == AETH_CLASS_ACK;
    psn_t una = psn_add(bth_psn(bth), is_ack);

    REQUIRE(s, h->opcode == RC_ACK && epoch <= s->epoch, "response of epoch %u", epoch);
    for (unsigned i = 0; i < s->n; i++) {
        REQUIRE(s, !is_counted(s, i) || psn_cmp(una, confirmed_by(s, epoch, i)) <= 0,
                "response names %06x, r%u confirmed up to %06x", una.v, i + 1,
                confirmed_by(s, epoch, i).v);
    }
}

/* A node's frame. */
static void
node_tx(struct sim *s, enum place from, uint16_t port, const struct packet *p)
{
    uint8_t frame[PACKET_ROOM];
    size_t len = packet_flatten(p, frame, sizeof frame);
    enum place to = from == AGENT ? (port == 1 ? SOURCE : EDGE) : port == 1 ? AGENT : RECEIVER;
    struct parsed h;
    struct nd_msg m;

    to += to == RECEIVER ? port - 2u : 0;
    bool to_host = to != AGENT && to != EDGE;
    if (parse_frame(frame, (uint32_t) len, &h)) {
        h.bth_ofs = 0; /* spoilt on the way, and not this node's to look at. */
    } else if (nd_parse(frame, &h, &m) == ND_VALID) {
        if (!to_host) {
            transmit(s, from, to, to == AGENT ? 2 : 1, frame, len, true);
        } else if (m.type == ND_NS) {
            host_answers_nd(s, from, port, to, &m);
        }
        return;
    }
    trace_frame(s, "sends", from, &h, frame);
    node_of(s, from)->n_out++;
    if (to < from && !memcmp(&((struct ip6_hdr_wire *) (frame + h.ip.ofs))->src, &star_proxy, 16)) {
        check_response(s, frame, &h);
    }
    transmit(s, from, to, to == AGENT ? 2 : 1, frame, len, false);
}

static void
agent_tx(void *s, uint16_t port, struct packet *p)
{
    node_tx(s, AGENT, port, p);
}

static void
edge_tx(void *s, uint16_t port, struct packet *p)
{
    node_tx(s, EDGE, port, p);
}

/* Configuration. */

static void
remove_branches(struct branch_config *v, size_t *n, uint32_t removed)
{
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++) {
        if (!(removed & 1u << (v[i].id - 1))) {
            v[kept++] = v[i];
        }
    }
    *n = kept;
}

/* Gives the node the epochs and members that it is to have. */
static void
configure(struct sim *s, enum place place)
{
    struct sim_node *n = node_of(s, place);
    struct node_config c = n->base;
    struct tree_config trees[N_EPOCHS];
    char *error = NULL;

    c.trees = trees;
    c.n_trees = 0;
    for (unsigned epoch = n->first_epoch; epoch <= n->last_epoch; epoch++) {
        struct tree_config *t = &trees[c.n_trees++];
        tree_config_clone(t, &n->base.trees[0]);
        t->epoch = epoch + 1;
        t->designated_qpn = designated_qpn(epoch);
        t->source_qpn = source_qpn(epoch);
        t->start_psn = epoch_start(s, epoch);
        t->mtu = MTU;
        t->region_len = s->region_len;
        struct branch_config *v = place == EDGE ? t->branches : t->copies;
        size_t *n_v = place == EDGE ? &t->n_branches : &t->n_copies;
        for (size_t i = 0; i < *n_v; i++) {
            v[i].qpn = receiver_qpn(epoch, (unsigned) i);
            v[i].len = s->region_len;
        }
        remove_branches(v, n_v, n->removed);
    }
    n->base.generation = ++c.generation;
    int err = n->class->configure(n->node, &c, s->now, &error);
    REQUIRE(s, !err, "configure: %s", error ? error : "");
    for (size_t i = 0; i < c.n_trees; i++) {
        tree_config_uninit(&trees[i]);
    }
}

static void
start_node(struct sim *s, enum place place)
{
    struct sim_node *n = node_of(s, place);
    struct node_io io = {.tx = place == AGENT ? agent_tx : edge_tx, .aux = s};

    if (n->node) {
        n->class->destroy(n->node);
    }
    n->node = n->class->create(&io, s->pool);
    configure(s, place);
}

/* Endpoints. */

static bool
needs_buffer(const struct message *m)
{
    return m->op != RC_OP_WRITE;
}

/* Posts the buffer for the next message that needs one.  False: none does. */
static bool
post_buffer(struct sim *s, unsigned i)
{
    while (s->n_buffers[i] < s->n_messages) {
        const struct message *m = &s->messages[s->n_buffers[i]++];
        if (needs_buffer(m)) {
            bool is_send = m->op == RC_OP_SEND || m->op == RC_OP_SEND_IMM;
            rc_post_recv(s->receivers[i], s->memory[i] + m->ofs, is_send ? m->len : 0);
            return true;
        }
    }
    return false;
}

/* A receiver that is slow with its buffers. */
static void
post_later(struct sim *s, struct event *e)
{
    if (e->place == (enum place) s->epoch && post_buffer(s, e->arg)) {
        struct event *again = event_create(s, s->now + rnd(s, 3000), post_later, 0);
        again->arg = e->arg;
        again->place = e->place; /* the epoch. */
    }
}

static void
post_work(struct sim *s)
{
    while (s->n_posted < s->n_messages && s->n_posted < s->n_done + s->depth) {
        const struct message *m = &s->messages[s->n_posted];
        rc_post(s->source,
                &(struct rc_wr){
                    .id = s->n_posted++,
                    .op = m->op,
                    .data = s->data + m->ofs,
                    .len = m->len,
                    .va = m->ofs,
                    .rkey = STAR_RKEY,
                },
                s->now);
    }
}

static void
source_completed(void *s_, uint64_t id, enum rc_status status)
{
    struct sim *s = s_;
    const struct message *m = &s->messages[id];

    if (s->trace) {
        fprintf(stderr, "%10" PRIu64 " message %u: status %d\n", s->now, (unsigned) id, status);
    }
    if (status) {
        s->failure = s->failure ? s->failure : status;
        return;
    }
    REQUIRE(s, id == s->n_done, "message %u completed", (unsigned) id);
    for (unsigned i = 0; i < s->n; i++) {
        REQUIRE(s,
                !is_counted(s, i)
                    || (psn_cmp(confirmed_by(s, s->epoch, i), m->last_psn) > 0
                        && !memcmp(s->memory[i] + m->ofs, s->data + m->ofs, m->len)),
                "message %u completed, and r%u does not have it", (unsigned) id, i + 1);
    }
    s->n_done++;
    post_work(s);
}

static void
source_tx(void *s, const uint8_t *ip, size_t len)
{
    host_tx(s, SOURCE, ip, len);
}

/* Says what the receiver said about a PSN that nobody sends in this epoch. */
static void
forge(struct sim *s, unsigned i, const uint8_t *ip, size_t len)
{
    uint8_t copy[RC_MAX_PACKET];
    size_t icrc_ofs = len - ROCE_ICRC_LEN;
    psn_t last = s->messages[s->n_messages - 1].last_psn;

    memcpy(copy, ip, len);
    bth_set_psn((struct bth *) (copy + IP6_HDR_LEN + sizeof(struct udp_hdr)),
                psn_add(last, 1 + (int32_t) rnd(s, 1u << rnd(s, 22))));
    icrc_store(copy + icrc_ofs, icrc_compute(copy, icrc_ofs));
    host_tx(s, (enum place)(RECEIVER + i), copy, len);
}

struct receiver_aux {
    struct sim *s;
    unsigned i;
};
static struct receiver_aux receiver_aux[MAX_RECEIVERS];

static void
receiver_tx(void *aux_, const uint8_t *ip, size_t len)
{
    const struct receiver_aux *aux = aux_;
    host_tx(aux->s, (enum place)(RECEIVER + aux->i), ip, len);
    if (aux->s->type == FORGED && rnd(aux->s, 8) == 0) {
        forge(aux->s, aux->i, ip, len);
    }
}

/* New queue pairs, memory and messages for the current epoch. */
static void
start_endpoints(struct sim *s)
{
    struct rc_config c = {
        .own = star_source,
        .peer = star_proxy,
        .qpn = source_qpn(s->epoch),
        .dest_qpn = designated_qpn(s->epoch),
        .start_psn = epoch_start(s, s->epoch),
        .mtu = MTU,
        .timeout_usec = 20000,
        .retry_cnt = RC_RETRY_FOREVER,
        .rnr_retry = RC_RETRY_FOREVER,
        .min_rnr_timer = 12,
        .gap_usec = s->gap,
    };
    uint32_t n_packets = 0;

    s->n_posted = s->n_done = 0;
    for (uint32_t i = 0; i < s->region_len; i++) {
        s->data[i] = (uint8_t) rnd(s, 256);
    }
    for (unsigned i = 0; i < s->n_messages; i++) {
        n_packets += (s->messages[i].len + MTU - 1) / MTU;
        s->messages[i].last_psn = psn_add(c.start_psn, (int32_t) n_packets - 1);
    }
    s->source =
        rc_create(&c, &(struct rc_ops){.tx = source_tx, .complete = source_completed, .aux = s});
    c.gap_usec = 0;
    for (unsigned i = 0; i < s->n; i++) {
        memset(s->memory[i], 0, s->region_len);
        c.own = star_receiver(i);
        c.qpn = receiver_qpn(s->epoch, i);
        c.region = s->memory[i];
        c.va = star_va(i);
        c.region_len = s->region_len;
        c.rkey = star_rkey(i);
        receiver_aux[i] = (struct receiver_aux){s, i};
        s->receivers[i] =
            rc_create(&c, &(struct rc_ops){.tx = receiver_tx, .aux = &receiver_aux[i]});
        s->n_buffers[i] = 0;
        if (s->type == RNR || (s->type == MIXED && rnd(s, 4) == 0)) {
            struct event *e = event_create(s, s->now, post_later, 0);
            e->arg = i;
            e->place = (enum place) s->epoch;
        } else {
            while (post_buffer(s, i)) {
            }
        }
    }
}

static void
end_endpoints(struct sim *s)
{
    for (unsigned i = 0; i < s->n; i++) {
        s->confirmed[s->epoch][i] = confirmed_by(s, s->epoch, i);
        rc_destroy(s->receivers[i]);
    }
    rc_destroy(s->source);
}

/* Actions. */

static void
edge_follows(struct sim *s, struct event *e)
{
    struct sim_node *edge = node_of(s, EDGE);
    struct sim_node *agent = node_of(s, AGENT);

    (void) e;
    edge->removed = agent->removed;
    edge->first_epoch = agent->first_epoch;
    configure(s, EDGE);
}

/* What shrinks does so at the agent first. */
static void
agent_follows(struct sim *s, struct event *e)
{
    struct sim_node *agent = node_of(s, AGENT);

    agent->first_epoch = agent->last_epoch = e->arg;
    configure(s, AGENT);
    event_create(s, s->now + 1 + rnd(s, 5000), edge_follows, 0);
    post_work(s);
}

static void
act_remove(struct sim *s)
{
    struct sim_node *agent = node_of(s, AGENT);
    unsigned i = rnd(s, s->n);

    if (agent->removed | (agent->removed + 1) >> s->n || agent->removed & 1u << i) {
        return; /* one at most, and never the last. */
    }
    if (s->n == 1) {
        return;
    }
    if (rnd(s, 2)) {
        s->silent |= 1u << i;
    }
    agent->removed |= 1u << i;
    configure(s, AGENT);
    event_create(s, s->now + 1 + rnd(s, 20000), edge_follows, 0);
}

/* The registry's order: queue pairs, edge, agent, edge without the old epoch. */
static void
act_new_epoch(struct sim *s)
{
    if (s->epoch + 1 == N_EPOCHS) {
        return;
    }
    end_endpoints(s);
    s->epoch++;
    start_endpoints(s);
    node_of(s, EDGE)->last_epoch = s->epoch;
    configure(s, EDGE);
    struct event *e = event_create(s, s->now + 1 + rnd(s, 5000), agent_follows, 0);
    e->arg = s->epoch;
    if (rnd(s, 2)) {
        post_work(s);
    }
}

/* It says so once.  If that got lost it would be a silent receiver, for which
 * the group waits until it is removed. */
static void
act_fail(struct sim *s)
{
    unsigned i = rnd(s, s->n);
    struct quality *up = &s->quality[2 + i][1];

    up->loss = up->spoil = 0;
    s->fatal = (uint8_t) (AETH_NAK_INVALID_REQ + rnd(s, 3));
    rc_fail_next(s->receivers[i], s->fatal);
}

static void
act(struct sim *s, enum action action)
{
    static const char *const names[] = {
        "reconfigure", "remove", "restart edge", "restart agent", "new epoch", "fatal",
    };

    if (s->trace) {
        fprintf(stderr, "%10" PRIu64 " action: %s\n", s->now, names[action]);
    }
    switch (action) {
    case RECONFIGURE:
        configure(s, AGENT);
        configure(s, EDGE);
        break;
    case REMOVE: act_remove(s); break;
    case RESTART_EDGE: start_node(s, EDGE); break;
    case RESTART_AGENT: start_node(s, AGENT); break;
    case NEW_EPOCH: act_new_epoch(s); break;
    case FATAL: act_fail(s); break;
    }
}

static void
act_if_due(struct sim *s)
{
    while (s->next_action < s->n_actions) {
        struct rc_info info;
        rc_get_info(s->source, &info);
        if (info.n_sent < s->actions[s->next_action].after) {
            return;
        }
        act(s, s->actions[s->next_action++].action);
    }
}

/* A run. */

static void
choose_actions(struct sim *s, uint32_t n_packets)
{
    static const enum action mix[] = {RECONFIGURE, REMOVE, RESTART_EDGE, RESTART_AGENT, NEW_EPOCH};
    unsigned n = 1 + rnd(s, 4);
    uint64_t after = 0;

    if (s->type <= FORGED) {
        return;
    }
    if (s->type == FAILING || s->type == SHRINKING || s->type == EPOCHS) {
        n = 1;
    }
    for (unsigned i = 0; i < n; i++) {
        enum action action = mix[rnd(s, 5)];
        switch (s->type) {
        case FAILING: action = FATAL; break;
        case CONFIGURED: action = RECONFIGURE; break;
        case SHRINKING: action = REMOVE; break;
        case RESTARTED: action = rnd(s, 2) ? RESTART_EDGE : RESTART_AGENT; break;
        case EPOCHS: action = NEW_EPOCH; break;
        default: break;
        }
        after += rnd(s, 1 + n_packets / n);
        s->actions[s->n_actions].action = action;
        s->actions[s->n_actions++].after = after;
        after = action == NEW_EPOCH ? 0 : after; /* the source counts anew. */
    }
}

static void
choose_messages(struct sim *s)
{
    static const unsigned sizes[] = {1, 16, 64};
    uint32_t n_packets = 0;
    unsigned limit = 1 + rnd(s, MAX_MESSAGES);
    bool buffers = s->type == RNR || rnd(s, 2);

    while (s->n_messages < limit && n_packets + 64 <= MAX_PACKETS) {
        uint32_t n = sizes[rnd(s, 3)];
        s->messages[s->n_messages++] = (struct message){
            .op = buffers ? (enum rc_op) rnd(s, 4) : RC_OP_WRITE,
            .ofs = s->region_len,
            .len = n * MTU - rnd(s, MTU),
        };
        s->region_len += n * MTU;
        n_packets += n;
    }
    s->depth = 1 + rnd(s, 8);
    choose_actions(s, n_packets);
}

static void
choose_links(struct sim *s)
{
    unsigned badness = rnd(s, 4); /* 0: all links are perfect. */

    for (unsigned i = 0; i < s->n + 2; i++) {
        for (unsigned direction = 0; direction < 2; direction++) {
            uint32_t bad = rnd(s, 3) ? badness : 0;
            s->quality[i][direction] = (struct quality){
                .delay = 1 + rnd(s, 40),
                .loss = rnd(s, 1 + 80 * bad),
                .twice = rnd(s, 1 + 40 * bad),
                .spoil = s->type == FORGED ? 0 : rnd(s, 1 + 40 * bad),
                .reorder = rnd(s, 1 + 40 * bad),
            };
        }
    }
}

static struct sim *
sim_create(unsigned seed, bool trace)
{
    struct sim *s = calloc(1, sizeof *s);
    ck_assert_ptr_nonnull(s);
    s->seed = seed;
    s->type = (enum run_type)(seed / SEEDS_OF(1));
    s->trace = trace;
    s->random = seed;
    s->now = 1000000;
    s->n = 1 + rnd(s, MAX_RECEIVERS);
    s->start_psn = psn_make(rnd(s, 2) ? PSN_MASK - rnd(s, 300) : rnd(s, PSN_MASK));
    s->gap = 1 + rnd(s, 4);
    choose_links(s); /* a spoilt PSN would raise the bound that stops forged ones. */
    choose_messages(s);

    s->pool = packet_pool_create(POOL_SIZE);
    for (enum place place = AGENT; place <= EDGE; place++) {
        struct sim_node *n = node_of(s, place);
        n->class = place == AGENT ? &srcagent_class : &swedge_class;
        star_config(&n->base, place == EDGE, s->n);
        start_node(s, place);
    }
    start_endpoints(s);
    return s;
}

static void
sim_destroy(struct sim *s)
{
    end_endpoints(s);
    for (enum place place = AGENT; place <= EDGE; place++) {
        struct sim_node *n = node_of(s, place);
        n->class->destroy(n->node);
        node_config_uninit(&n->base);
    }
    REQUIRE(s, packet_pool_n_free(s->pool) == POOL_SIZE, "buffers are missing");
    packet_pool_destroy(s->pool);
    while (s->n_heap) {
        free(event_pop(s));
    }
    free(s->heap);
    free(s);
}

static uint64_t
next_time(struct sim *s)
{
    uint64_t when = s->n_heap ? s->heap[0]->at : UINT64_MAX;
    uint64_t t = rc_deadline(s->source);

    when = t < when ? t : when;
    for (unsigned i = 0; i < s->n; i++) {
        t = rc_deadline(s->receivers[i]);
        when = t < when ? t : when;
    }
    for (enum place place = AGENT; place <= EDGE; place++) {
        t = node_of(s, place)->class->deadline(node_of(s, place)->node);
        when = t < when ? t : when;
    }
    return when > s->now ? when : s->now;
}

/* Whatever is due first; timers before packets. */
static void
step(struct sim *s)
{
    uint64_t before[2] = {s->nodes[0].n_out, s->nodes[1].n_out};

    s->now = next_time(s);
    REQUIRE(s, s->now < TIME_LIMIT && s->n_events < EVENT_LIMIT, "no end: %u of %u messages done",
            s->n_done, s->n_messages);
    if (rc_deadline(s->source) <= s->now) {
        rc_timer(s->source, s->now);
        return;
    }
    for (enum place place = AGENT; place <= EDGE; place++) {
        struct sim_node *n = node_of(s, place);
        if (n->class->deadline(n->node) <= s->now) {
            n->class->timer(n->node, s->now);
            return;
        }
    }
    if (s->n_heap && s->heap[0]->at <= s->now) {
        struct event *e = event_pop(s);
        bool is_packet = e->run == arrive_at_node;
        e->run(s, e);
        /* A copy for each receiver, or one response, and what waited for a neighbour. */
        REQUIRE(s,
                !is_packet || e->port == 0
                    || (s->nodes[0].n_out - before[0] <= 1 + 160
                        && s->nodes[1].n_out - before[1] <= s->n + 1 + 160),
                "packets multiply");
        free(e);
    }
}

static bool
is_over(const struct sim *s)
{
    struct rc_info info;

    rc_get_info(s->source, &info);
    return s->n_done == s->n_messages || info.error || info.stuck;
}

/* A source fails if and only if a receiver did, and alike. */
static void
check_failure(struct sim *s)
{
    static const enum rc_status status[] = {RC_WC_REM_INV_REQ, RC_WC_REM_ACCESS, RC_WC_REM_OP};
    bool failed = false;

    for (unsigned i = 0; i < s->n; i++) {
        struct rc_info info;
        rc_get_info(s->receivers[i], &info);
        failed = failed || info.failed;
    }
    REQUIRE(s, !failed || s->fatal, "a receiver refused a request");
    if (failed) {
        REQUIRE(s, s->failure == status[s->fatal - AETH_NAK_INVALID_REQ], "the source says %d",
                s->failure);
    } else {
        REQUIRE(s, !s->failure, "the source says %d", s->failure);
    }
}

static void
run_seed(unsigned seed, bool trace)
{
    struct sim *s = sim_create(seed, trace);

    post_work(s);
    while (!is_over(s)) {
        step(s);
        act_if_due(s);
    }
    check_failure(s);
    while (s->n_heap) {
        step(s);
    }
    REQUIRE(s, packet_pool_n_free(s->pool) == POOL_SIZE, "a node holds packets");
    sim_destroy(s);
}

START_TEST(star)
    {
        const char *only = getenv("STAR_SEED");

        for (unsigned i = 0; i < SEEDS_PER_TYPE; i++) {
            unsigned seed = SEEDS_OF((unsigned) _i) + i;
            if (!only || strtoul(only, NULL, 0) == seed) {
                run_seed(seed, only != NULL);
            }
        }
    }
END_TEST

Suite *
star_suite(void)
{
    Suite *s = suite_create("star");
    TCase *tc = tcase_create("seeds");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, star, 0, N_RUN_TYPES);
    suite_add_tcase(s, tc);
    return s;
}
