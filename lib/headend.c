/* SPDX-License-Identifier: Apache-2.0
 *
 * The headend of paths.
 *
 * Theory of operation
 * -------------------
 *     packet of a host -> destination -> flow -> path -> header -> port
 *
 * Destinations and paths are the configuration's; what is counted stays with their address and name.
 * Flows become known by their packets.  The table is in sets, by a hash of the key; in a full set
 * the flow that was silent for longest makes room.
 *
 * The requests of a queue pair and its answers are two flows: nobody needs them in order with one
 * another, and only for requests there is something that says that they have arrived.  So PATH_MESSAGE
 * leaves answers, and what is not a Reliable Connection's, on the path that they have.
 *
 * lib/in-flight.c knows what of a flow is confirmed.  An answer is ascribed to the only flow to its
 * sender that it may be one to.  That is right only if all flows that it may be one to are known.
 * They are not for a time after the node or the policy begins, and after a flow had to make room
 * or its queue pair was replaced: for that long the destination is in doubt, and no answer counts.
 * Of a node's workers only the first has packets that are no group's (lib/steer.h), so it sees all.
 */
#include "lib/headend.h"

#include <stdlib.h>

#include "lib/addr-map.h"
#include "lib/alloc.h"
#include "lib/defect.h"
#include "lib/hash-index.h"
#include "lib/icmp6.h"
#include "lib/in-flight.h"
#include "lib/roce.h"

#define FLOW_SETS     128
#define FLOW_SET_SIZE 8
#define FLOW_TABLE    (FLOW_SETS * FLOW_SET_SIZE)

struct path {
    struct path_config config;
    uint32_t n_flows;
    uint64_t n_packets, n_bytes, n_moved, n_errors;
};

struct destination {
    struct in6_addr address;
    enum path_policy policy;
    uint16_t pinned;
    size_t n_pins;
    struct path_pin *pins; /* by dest_qp. */
    size_t n_paths;
    struct path *paths;   /* by rank. */
    size_t turn;          /* of 'paths', the first one to be asked when it goes in turn. */
    uint64_t doubt_until; /* before this time no answer is ascribed to a flow. */
    struct flow *flows;
};

struct flow {
    struct destination *to; /* NULL: the entry is free. */
    struct flow *next;      /* to the same destination. */
    bool requests;          /* of a Reliable Connection. */
    uint32_t dest_qp;
    uint64_t used;
    struct path *path;          /* NULL: none was chosen, or it is gone. */
    struct in_flight in_flight; /* of requests, with PATH_MESSAGE. */
};

struct headend {
    struct node_base *base;
    size_t n;
    struct destination *destinations;
    struct addr_map *by_address; /* with 0. */
    bool ascribes;               /* some destination has PATH_MESSAGE. */
    struct flow flows[FLOW_TABLE];
};

/*
 * Configuration.
 */

static void
destinations_free(struct destination *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(v[i].paths);
        free(v[i].pins);
    }
    free(v);
}

struct headend *
headend_create(struct node_base *base)
{
    struct headend *h = must_calloc(1, sizeof *h);

    h->base = base;
    return h;
}

void
headend_destroy(struct headend *h)
{
    destinations_free(h->destinations, h->n);
    addr_map_destroy(h->by_address);
    free(h);
}

static struct destination *
find_destination(const struct headend *h, const struct in6_addr *address)
{
    return h->n ? addr_map_find(h->by_address, address, 0) : NULL;
}

bool
headend_has(const struct headend *h, const struct in6_addr *dst)
{
    const struct destination *d = find_destination(h, dst);

    return d && d->n_paths;
}

static struct path *
path_by_name(const struct destination *d, const char *name)
{
    for (size_t i = 0; i < d->n_paths; i++) {
        if (!strcmp(d->paths[i].config.name, name)) {
            return &d->paths[i];
        }
    }
    return NULL;
}

/* 'old' is what was there before, or NULL. */
static void
destination_init(struct destination *d, const struct destination_config *config,
                 const struct destination *old, uint64_t now)
{
    bool stays = old && old->policy == config->policy;

    *d = (struct destination){
        .address = config->address,
        .policy = config->policy,
        .pinned = config->pinned,
        .n_pins = config->n_pins,
        .pins = must_copy(config->pins, config->n_pins, sizeof *config->pins),
        .n_paths = config->n_paths,
        .paths = must_calloc(config->n_paths, sizeof *d->paths),
        .turn = old ? old->turn : 0,
        .doubt_until = stays ? old->doubt_until : now + IN_FLIGHT_LIFE,
    };
    for (size_t i = 0; i < d->n_paths; i++) {
        const struct path *was = old ? path_by_name(old, config->paths[i].name) : NULL;

        if (was) {
            d->paths[i] = *was;
        }
        d->paths[i].config = config->paths[i];
        d->paths[i].n_flows = 0;
    }
}

static void
flow_join(struct flow *f, struct destination *d)
{
    f->to = d;
    f->next = d->flows;
    d->flows = f;
}

/* Gives a flow to the new configuration of its destination, NULL if there is none any more. */
static void
flow_hand_over(struct flow *f, struct destination *d)
{
    if (!d) {
        *f = (struct flow){.to = NULL};
        return;
    }
    if (d->policy != f->to->policy) {
        f->in_flight = (struct in_flight){.any = false};
    }
    f->path = f->path ? path_by_name(d, f->path->config.name) : NULL;
    if (f->path) {
        f->path->n_flows++;
    }
    flow_join(f, d);
}

void
headend_configure(struct headend *h, const struct node_config *config, uint64_t now)
{
    size_t n = config->n_destinations;
    struct destination *new = must_calloc(n, sizeof *new);
    struct addr_map *by_address = addr_map_create(n);

    h->ascribes = false;
    for (size_t i = 0; i < n; i++) {
        const struct destination_config *dc = &config->destinations[i];

        destination_init(&new[i], dc, find_destination(h, &dc->address), now);
        addr_map_insert(by_address, &dc->address, 0, &new[i]);
        h->ascribes |= dc->policy == PATH_MESSAGE;
    }
    for (size_t i = 0; i < FLOW_TABLE; i++) {
        struct flow *f = &h->flows[i];

        if (f->to) {
            flow_hand_over(f, addr_map_find(by_address, &f->to->address, 0));
        }
    }
    destinations_free(h->destinations, h->n);
    addr_map_destroy(h->by_address);
    h->destinations = new;
    h->n = n;
    h->base->has_paths = n;
    h->by_address = by_address;
}

/*
 * What a packet says.
 */

struct seen {
    bool requests; /* of a Reliable Connection. */
    uint8_t opcode;
    psn_t psn;
    uint32_t dest_qp;      /* 0: it is no RoCE. */
    const struct bth *bth; /* NULL: it is no RoCE. */
    size_t len;            /* from the BTH on. */
};

/* Looks into the packet ip[0, len), which nobody has validated behind its IPv6 header. */
static struct seen
look(const uint8_t *ip_, size_t len)
{
    const struct ip6_hdr_wire *ip = (const void *) ip_;
    const struct udp_hdr *udp = (const void *) (ip + 1);
    const struct bth *bth = (const void *) (udp + 1);
    size_t before = sizeof *ip + sizeof *udp;

    if (len < before + sizeof *bth || ip->nh != IP6_NH_UDP
        || be16_get(udp->dport) != UDP_PORT_ROCE) {
        return (struct seen){.bth = NULL};
    }
    return (struct seen){
        .requests = ROCE_TRANSPORT(bth->opcode) == ROCE_TRANSPORT_RC
                    && roce_opcode_info(bth->opcode)->flags & ROCE_F_REQUEST,
        .opcode = bth->opcode,
        .psn = bth_psn(bth),
        .dest_qp = be24_get(bth->dest_qp),
        .bth = bth,
        .len = len - before,
    };
}

/* How much a READ request asks for. */
static uint32_t
read_len(const struct seen *s)
{
    const struct reth *reth = (const void *) (s->bth + 1);

    return s->len >= sizeof *s->bth + sizeof *reth ? be32_get(reth->dma_len) : UINT32_MAX;
}

/*
 * Flows.
 */

static uint64_t
flow_hash(const struct destination *d, const struct seen *s)
{
    return hash_number(hash_addr(0, &d->address), (uint64_t) s->requests << 24 | s->dest_qp);
}

/* The flow makes room for another. */
static void
flow_leave(struct flow *f, uint64_t now)
{
    struct destination *d = f->to;
    struct flow **p = &d->flows;

    while (*p != f) {
        p = &(*p)->next;
    }
    *p = f->next;
    if (f->path) {
        f->path->n_flows--;
    }
    if (in_flight_may_answer(&f->in_flight, f->in_flight.low, now)) {
        d->doubt_until = now + IN_FLIGHT_LIFE;
    }
}

/* The packet's flow, which is noted if it is new. */
static struct flow *
find_flow(struct headend *h, struct destination *d, const struct seen *s, uint64_t hash,
          uint64_t now)
{
    struct flow *set = &h->flows[hash % FLOW_SETS * FLOW_SET_SIZE];
    struct flow *oldest = set;

    for (size_t i = 0; i < FLOW_SET_SIZE; i++) {
        struct flow *f = &set[i];

        if (f->to == d && f->dest_qp == s->dest_qp && f->requests == s->requests) {
            f->used = now;
            return f;
        }
        if (!f->to || (oldest->to && f->used < oldest->used)) {
            oldest = f;
        }
    }
    if (oldest->to) {
        flow_leave(oldest, now);
    }
    *oldest = (struct flow){.requests = s->requests, .dest_qp = s->dest_qp, .used = now};
    flow_join(oldest, d);
    return oldest;
}

/* Of a flow whose messages are placed one by one: notes the packet.  May it take another path than
 * the one before? */
static bool
may_move(struct flow *f, const struct seen *s, uint64_t now)
{
    bool starts = roce_opcode_info(s->opcode)->flags & ROCE_F_START;
    bool is_read = s->opcode == RC_READ_REQ;
    /* What it sent before it was watched may be under way. */
    bool idle = (f->in_flight.any && in_flight_is_idle(&f->in_flight)) || DEFECT(MOVE_IN_FLIGHT);

    if (!in_flight_sent(&f->in_flight, s->psn, is_read ? read_len(s) : 0, is_read, now)) {
        f->to->doubt_until = now + IN_FLIGHT_LIFE;
    }
    return starts && idle;
}

/* The lowest PSN that an answer does not confirm; false: it is no answer. */
static bool
answer_una(const struct seen *s, psn_t *una)
{
    if (!s->bth || !(roce_opcode_info(s->opcode)->flags & ROCE_F_RESPONSE)) {
        return false;
    }
    const struct aeth *aeth = (const void *) (s->bth + 1);
    bool nak = roce_opcode_info(s->opcode)->flags & ROCE_F_AETH
               && s->len >= sizeof *s->bth + sizeof *aeth
               && aeth_class(aeth->syndrome) != AETH_CLASS_ACK;

    *una = psn_add(s->psn, nak ? 0 : 1);
    return true;
}

/* An answer of the destination. */
static void
ascribe(struct destination *d, const struct seen *s, psn_t una, uint64_t now)
{
    struct flow *found = NULL;
    bool several = false;

    for (struct flow *f = d->flows; f; f = f->next) {
        if (f->requests && in_flight_may_answer(&f->in_flight, s->psn, now)) {
            f->in_flight.used = now;
            several |= found != NULL;
            found = f;
        }
    }
    if (found && !several && now >= d->doubt_until) {
        in_flight_answered(&found->in_flight, una);
    }
}

void
headend_note_arrival(struct headend *h, const uint8_t *ip_, size_t len, uint64_t now)
{
    const struct ip6_hdr_wire *ip = (const void *) ip_;
    psn_t una;

    if (!h->ascribes) {
        return;
    }
    struct destination *d = find_destination(h, &ip->src);
    const struct seen s = look(ip_, len);
    if (d && d->policy == PATH_MESSAGE && answer_una(&s, &una)
        && l3_host_port(h->base->l3, &ip->dst)) {
        ascribe(d, &s, una, now);
    }
}

/*
 * Paths.
 */

static bool
is_usable(const struct headend *h, const struct path *path)
{
    return path->config.usable
           && (!path->config.port || l3_port_is_up(h->base->l3, path->config.port));
}

static struct path *
path_by_number(const struct destination *d, uint16_t number)
{
    for (size_t i = 0; i < d->n_paths; i++) {
        if (d->paths[i].config.number == number) {
            return &d->paths[i];
        }
    }
    return NULL;
}

/* Number of the path that the operator has chosen for the queue pair; 0: none. */
static uint16_t
pin_of(const struct destination *d, uint32_t dest_qp)
{
    for (size_t i = 0; i < d->n_pins; i++) {
        if (d->pins[i].dest_qp == dest_qp) {
            return d->pins[i].number;
        }
    }
    return d->pinned;
}

/* The first path from *turn on, round and round, that is usable; *turn is behind it then.  The first
 * of all if none is. */
static struct path *
usable_from(const struct headend *h, const struct destination *d, size_t *turn)
{
    for (size_t i = 0; i < d->n_paths; i++) {
        size_t at = (*turn + i) % d->n_paths;

        if (is_usable(h, &d->paths[at])) {
            *turn = at + 1;
            return &d->paths[at];
        }
    }
    return &d->paths[0];
}

/* The path of a packet that nobody has pinned, by the policy.  There are paths.  'f' is NULL with
 * PATH_SPRAY, which has no use for flows. */
static struct path *
place(const struct headend *h, struct destination *d, const struct flow *f, bool moves)
{
    size_t first = 0;

    switch (d->policy) {
    case PATH_FAILOVER: return usable_from(h, d, &first);
    case PATH_SPREAD:
    case PATH_MESSAGE:
        return f->path && !moves && is_usable(h, f->path) ? f->path : usable_from(h, d, &d->turn);
    case PATH_SPRAY: return usable_from(h, d, &d->turn);
    case PATH_NONE: break;
    }
    abort();
}

static void
flow_take(struct flow *f, struct path *path)
{
    if (f->path == path) {
        return;
    }
    if (f->path) {
        f->path->n_flows--;
        path->n_moved++;
    }
    path->n_flows++;
    f->path = path;
}

/* Puts the path's header in front of 'p', and sends it.  Consumes it. */
static enum drop_reason
send_on(struct headend *h, struct packet *p, struct path *path, uint8_t hash, uint64_t now)
{
    const struct path_config *c = &path->config;
    const struct program *program = &c->program;
    const struct ip6_hdr_wire *ip = (const void *) p->data;
    struct l3 *l3 = h->base->l3;
    size_t inner_len = packet_size(p);
    size_t header_len = program_encap_len(program);
    uint8_t tc = ip6_tc(ip);
    uint8_t *outer = NULL;

    if (l3_fits_with_header(l3, p, header_len, c->port, &program->containers[0], now)) {
        outer = packet_push(p, header_len);
    }
    if (!outer) {
        packet_put(p);
        return DROP_too_long;
    }
    program_encap(program, &h->base->address, (uint16_t) inner_len, tc,
                  (uint32_t) c->number << 8 | hash, outer);
    path->n_packets++;
    path->n_bytes += inner_len + header_len;
    TRACE(&h->base->tracer, "path %u, %s: program %s%s", c->number, c->name,
          TRACE_ADDR(&program->containers[0]), program->n > 1 ? ", and SRH" : "");
    return c->port ? l3_output_port(l3, p, c->port, L3_ERRORS_NONE, now)
                   : l3_output(l3, p, L3_ERRORS_NONE, now);
}

enum drop_reason
headend_output(struct headend *h, struct packet *p, uint64_t now)
{
    struct destination *d = find_destination(h, &((const struct ip6_hdr_wire *) p->data)->dst);
    if (!d) {
        return l3_output(h->base->l3, p, L3_ERRORS_ALL, now);
    }
    const struct seen s = look(p->data, p->len);
    uint16_t pin = pin_of(d, s.dest_qp);
    if (!pin && (d->policy == PATH_NONE || !d->n_paths)) {
        return l3_output(h->base->l3, p, L3_ERRORS_ALL, now);
    }
    uint64_t hash = flow_hash(d, &s);
    struct flow *f = d->policy == PATH_SPRAY ? NULL : find_flow(h, d, &s, hash, now);
    bool moves = d->policy == PATH_MESSAGE && s.requests && may_move(f, &s, now);
    struct path *path = pin ? path_by_number(d, pin) : place(h, d, f, moves);
    if (!path || (pin && !is_usable(h, path))) {
        TRACE(&h->base->tracer, "path %u, which it is pinned to, is not usable", pin);
        packet_put(p);
        return DROP_path_none;
    }
    if (f) {
        flow_take(f, path);
    }
    return send_on(h, p, path, (uint8_t) hash, now);
}

enum drop_reason
headend_forward(struct headend *h, struct packet *p, const struct parsed *parsed, uint64_t now)
{
    enum drop_reason why = l3_forward_begin(h->base->l3, p, parsed, now);

    return why ? why : headend_output(h, p, now);
}

/*
 * What is said of paths.
 */

void
headend_icmp(struct headend *h, const struct packet *p, const struct parsed *parsed)
{
    const struct ip6_hdr_wire *ip = (const void *) (p->data + parsed->ip.ofs);
    size_t len = (size_t) (parsed->ip.end - parsed->ip.ofs);
    struct icmp6_upper upper;

    const struct icmp6_wire *icmp =
        h->n ? icmp6_find_error((const uint8_t *) ip, len, &upper) : NULL;
    if (!icmp || !icmp6_is_valid(ip, (const uint8_t *) icmp, len - upper.ofs)) {
        return;
    }
    const struct ip6_hdr_wire *about = (const void *) (icmp + 1);
    size_t about_len = len - upper.ofs - sizeof *icmp;
    /* Responses of groups, too, are IPv6 in IPv6. */
    if (!IN6_ARE_ADDR_EQUAL(&about->src, &h->base->address)
        || !icmp6_find_upper((const uint8_t *) about, about_len, &upper)
        || upper.proto != IP6_NH_IPV6 || about_len - upper.ofs < IP6_HDR_LEN) {
        return;
    }
    const struct ip6_hdr_wire *inner = (const void *) ((const uint8_t *) about + upper.ofs);
    const struct destination *d = find_destination(h, &inner->dst);
    struct path *path = d && !is_proxy_address(&inner->src)
                            ? path_by_number(d, (uint16_t) (ip6_flow_label(about) >> 8))
                            : NULL;
    if (path) {
        path->n_errors++;
    }
}

bool
headend_path(const void *node, size_t i, struct path_info *info)
{
    const struct headend *h = ((const struct node_base *) node)->headend;

    for (size_t j = 0; j < h->n; j++) {
        const struct destination *d = &h->destinations[j];

        if (i < d->n_paths) {
            const struct path *path = &d->paths[i];

            *info = (struct path_info){
                .destination = d->address,
                .policy = d->policy,
                .config = &path->config,
                .up = !path->config.port || l3_port_is_up(h->base->l3, path->config.port),
                .n_flows = path->n_flows,
                .n_packets = path->n_packets,
                .n_bytes = path->n_bytes,
                .n_moved = path->n_moved,
                .n_errors = path->n_errors,
            };
            return true;
        }
        i -= d->n_paths;
    }
    return false;
}

void
headend_way_changed(struct headend *h, uint16_t probe, uint64_t now)
{
    (void) h;
    (void) probe;
    (void) now;
}
