/* SPDX-License-Identifier: Apache-2.0
 *
 * The headend of paths.
 *
 * Theory of operation
 * -------------------
 *     packet of a host -> destination -> flow -> path -> header -> port
 *
 * Destinations and paths are the configuration's; what is counted stays with their address and name.
 * A flow stays on its path unless something happens to the path (headend-switch.c): packets only ask
 * whether its port's link is up.
 */
#include <limits.h>
#include <stdlib.h>

#include "lib/alloc.h"
#include "lib/hash-index.h"
#include "lib/headend-impl.h"
#include "lib/icmp6.h"
#include "lib/prober.h"
#include "lib/roce.h"

static const char *const path_moves[] = {
    [PATH_MOVE_FAILED] = "failed",
    [PATH_MOVE_PLANNED] = "planned",
    [PATH_MOVE_CONGESTED] = "congested",
};
WORDS_DEFINE(path_move, enum path_move, path_moves);

/*
 * Who says how good ways are.
 */

static enum path_state
way_state(const struct prober *prober, uint16_t number)
{
    return prober ? prober_state(prober, number) : PATH_UNKNOWN;
}

static bool
way_outlives(const struct prober *prober, uint16_t number, uint16_t failed)
{
    return !prober || prober_outlives(prober, number, failed);
}

static unsigned
way_marked(const struct prober *prober, uint16_t number)
{
    return prober ? prober_marked(prober, number) : 0;
}

static void
way_doubt(struct prober *prober, uint16_t number, bool lost, uint64_t now)
{
    if (prober) {
        prober_doubt(prober, number, lost, now);
    }
}

static const struct headend_ways ways = {way_state, way_outlives, way_marked, way_doubt};

void
headend_set_ways(struct headend *h, const struct headend_ways *other)
{
    h->ways = other ? other : &ways;
}

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
headend_create(struct node_base *base, uint32_t seed)
{
    struct headend *h = must_calloc(1, sizeof *h);

    h->base = base;
    h->ways = &ways;
    h->random = seed;
    h->tick_at = UINT64_MAX;
    pacer_init(&h->pacer);
    deadlines_reserve(&h->pacer.deadlines, HEADEND_TABLE);
    deadlines_reserve(&h->deadlines, HEADEND_TABLE);
    return h;
}

void
headend_destroy(struct headend *h)
{
    for (size_t i = 0; i < HEADEND_TABLE; i++) {
        pacer_remove(&h->pacer, &h->flows[i].held);
    }
    pacer_uninit(&h->pacer);
    deadlines_uninit(&h->deadlines);
    destinations_free(h->destinations, h->n);
    addr_map_destroy(h->by_address);
    free(h->ports);
    free(h->ports_up);
    free(h);
}

struct destination *
headend_find(const struct headend *h, const struct in6_addr *address)
{
    return h->n ? addr_map_find(h->by_address, address, 0) : NULL;
}

bool
headend_has(const struct headend *h, const struct in6_addr *dst)
{
    const struct destination *d = headend_find(h, dst);

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
destination_init(const struct headend *h, struct destination *d,
                 const struct destination_config *config, const struct destination *old,
                 uint64_t now)
{
    *d = (struct destination){
        .address = config->address,
        .hash = hash_addr(0, &config->address),
        .policy = config->policy,
        .pinned = config->pinned,
        .n_pins = config->n_pins,
        .pins = must_copy(config->pins, config->n_pins, sizeof *config->pins),
        .n_paths = config->n_paths,
        .paths = must_calloc(config->n_paths, sizeof *d->paths),
        .turn = old ? old->turn : 0,
        .used = old ? old->used : 0,
    };
    d->doubt_until = old && headend_tracks(old) ? old->doubt_until : now + IN_FLIGHT_LIFE;
    for (size_t i = 0; i < d->n_paths; i++) {
        const struct path *was = old ? path_by_name(old, config->paths[i].name) : NULL;
        struct path *path = &d->paths[i];
        uint16_t probe = config->paths[i].probe;

        if (was) {
            *path = *was;
        }
        path->config = config->paths[i];
        path->state = probe ? h->ways->state(h->base->prober, probe) : PATH_UNKNOWN;
        path->n_flows = 0;
    }
}

/* Gives a flow to the new configuration of its destination, NULL if there is none any more. */
static void
flow_hand_over(struct headend *h, struct flow *f, struct destination *d, uint64_t now)
{
    bool tracked = headend_tracks(f->to);
    struct path *to = d && f->going_to ? path_by_name(d, f->going_to->config.name) : NULL;

    if (f->going_to && (!to || !headend_tracks(d))) {
        headend_finish(h, f, now);
        to = NULL;
    }
    if (!d || headend_tracks(d) != tracked) {
        headend_unbind(f->own);
        f->in_flight = (struct in_flight){.any = false};
    }
    if (!d) {
        deadlines_set(&h->deadlines, &f->deadline, UINT64_MAX, f);
        pacer_remove(&h->pacer, &f->held);
        *f = (struct flow){.to = NULL};
        return;
    }
    f->path = f->path ? path_by_name(d, f->path->config.name) : NULL;
    f->going_to = to;
    if (f->path) {
        f->path->n_flows++;
    }
    f->to = d;
    f->next = d->flows;
    d->flows = f;
}

static void
own_qp_hand_over(struct own_qp *q, struct destination *d)
{
    if (d && headend_tracks(d)) {
        q->peer = d;
    } else {
        headend_unbind(q);
        *q = (struct own_qp){.peer = NULL};
    }
}

/* Notes the ports that paths have, each once. */
static void
note_ports(struct headend *h)
{
    size_t n = 0;

    for (size_t i = 0; i < h->n; i++) {
        n += h->destinations[i].n_paths;
    }
    free(h->ports);
    free(h->ports_up);
    h->ports = must_calloc(n, sizeof *h->ports);
    h->ports_up = must_calloc(n, sizeof *h->ports_up);
    h->n_ports = 0;
    for (size_t i = 0; i < h->n; i++) {
        for (size_t j = 0; j < h->destinations[i].n_paths; j++) {
            uint16_t port = h->destinations[i].paths[j].config.port;
            size_t k = 0;

            while (k < h->n_ports && h->ports[k] != port) {
                k++;
            }
            if (port && k == h->n_ports) {
                h->ports[k] = port;
                h->ports_up[k] = l3_port_is_up(h->base->l3, port);
                h->n_ports++;
            }
        }
    }
}

/* Flows whose paths are gone, which are in 'was', take others; then all are looked at. */
static void
apply(struct headend *h, const struct path *const was[HEADEND_TABLE], uint64_t now)
{
    for (size_t i = 0; i < HEADEND_TABLE; i++) {
        struct flow *f = &h->flows[i];

        if (f->to && was[i] && !f->path && headend_tracks(f->to)) {
            headend_fail(h, f, headend_choose(h, f->to, was[i]), now);
        }
    }
    for (size_t i = 0; i < h->n; i++) {
        headend_review(h, &h->destinations[i], now);
    }
}

void
headend_configure(struct headend *h, const struct node_config *config, uint64_t now)
{
    size_t n = config->n_destinations, n_old = h->n;
    struct destination *new = must_calloc(n, sizeof *new), *old = h->destinations;
    struct addr_map *by_address = addr_map_create(n);
    const struct path *was[HEADEND_TABLE];

    h->tracks = false;
    for (size_t i = 0; i < n; i++) {
        const struct destination_config *dc = &config->destinations[i];

        destination_init(h, &new[i], dc, headend_find(h, &dc->address), now);
        addr_map_insert(by_address, &dc->address, 0, &new[i]);
        h->tracks |= headend_tracks(&new[i]);
    }
    for (size_t i = 0; i < HEADEND_TABLE; i++) {
        struct flow *f = &h->flows[i];
        struct own_qp *q = &h->own_qps[i];

        was[i] = f->path;
        if (f->to) {
            flow_hand_over(h, f, addr_map_find(by_address, &f->to->address, 0), now);
        }
        if (q->peer) {
            own_qp_hand_over(q, addr_map_find(by_address, &q->peer->address, 0));
        }
    }
    addr_map_destroy(h->by_address);
    h->destinations = new;
    h->n = n;
    h->base->has_paths = n;
    h->by_address = by_address;
    note_ports(h);
    apply(h, was, now);
    destinations_free(old, n_old);
}

/*
 * Paths.
 */

static bool
is_up(const struct headend *h, const struct path *path)
{
    return !path->config.port || l3_port_is_up(h->base->l3, path->config.port);
}

enum path_class
headend_class(const struct headend *h, const struct path *path)
{
    if (!path->config.usable || !is_up(h, path)) {
        return CLASS_NONE;
    }
    switch (path->state) {
    case PATH_GOOD:
    case PATH_UNKNOWN: return CLASS_GOOD;
    case PATH_SUSPECT: return CLASS_SUSPECT;
    case PATH_RECOVERING: return CLASS_RECOVERING;
    case PATH_BAD: return CLASS_BAD;
    }
    abort();
}

bool
headend_outlives(const struct headend *h, const struct path *path, uint16_t failed)
{
    return h->ways->outlives(h->base->prober, path->config.probe, failed);
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

uint16_t
headend_pin_of(const struct destination *d, uint32_t dest_qp)
{
    for (size_t i = 0; i < d->n_pins; i++) {
        if (d->pins[i].dest_qp == dest_qp) {
            return d->pins[i].number;
        }
    }
    return d->pinned;
}

/* How well a path replaces one that has failed; a lower one is better.  'failed' NULL: it is no
 * replacement.  Paths have links in common, and a way that has carried nothing since then may have
 * failed likewise: a host goes back once, and would be sent to the next dead path.  So one that has is
 * preferred to all others, even if it still recovers from something else. */
static unsigned
replacement_rank(const struct headend *h, const struct destination *d, const struct path *path,
                 const struct path *failed)
{
    enum path_class class = headend_class(h, path);

    if (class == CLASS_NONE) {
        return UINT_MAX;
    }
    unsigned rank = 2 * (unsigned) class;
    if (failed) {
        bool same_plane =
            failed->config.plane[0] && !strcmp(path->config.plane, failed->config.plane);

        if (class == CLASS_BAD || !headend_outlives(h, path, failed->config.probe)) {
            rank += 2 * CLASS_BAD;
        }
        rank += d->policy != PATH_FAILOVER && !same_plane;
    }
    return rank;
}

struct path *
headend_choose(const struct headend *h, struct destination *d, const struct path *failed)
{
    size_t turn = d->policy == PATH_FAILOVER ? 0 : d->turn;
    unsigned best = UINT_MAX;
    struct path *found = NULL;

    for (size_t i = 0; i < d->n_paths && best; i++) {
        struct path *path = &d->paths[(turn + i) % d->n_paths];
        unsigned rank = replacement_rank(h, d, path, failed);

        if (rank < best) {
            best = rank;
            found = path;
        }
    }
    if (!found) {
        return &d->paths[0]; /* never none. */
    }
    if (d->policy != PATH_FAILOVER) {
        d->turn = (size_t) (found - d->paths) + 1;
    }
    return found;
}

enum drop_reason
headend_send_on(struct headend *h, struct packet *p, struct path *path, uint8_t label, uint64_t now)
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
                  (uint32_t) c->number << 8 | label, outer);
    path->n_packets++;
    path->n_bytes += inner_len + header_len;
    if (c->probe) {
        prober_note_data(h->base->prober, c->probe, tc);
    }
    TRACE(&h->base->tracer, "path %u, %s: program %s%s", c->number, c->name,
          TRACE_ADDR(&program->containers[0]), program->n > 1 ? ", and SRH" : "");
    return c->port ? l3_output_port(l3, p, c->port, L3_ERRORS_NONE, now)
                   : l3_output(l3, p, L3_ERRORS_NONE, now);
}

/* Decides about the path of a flow whose packet this is.  'pinned': NULL, or what the operator says. */
static void
place(struct headend *h, struct flow *f, const struct seen *s, struct path *pinned, uint64_t now)
{
    struct destination *d = f->to;

    d->used = now;
    h->busy_until = now + IN_FLIGHT_LIFE;
    if (h->tick_at == UINT64_MAX) {
        h->tick_at = now + HEADEND_TICK;
    }
    if (!f->path) {
        headend_flow_take(f, pinned ? pinned : headend_choose(h, d, NULL));
    } else if (pinned && !headend_tracks(d)) {
        headend_flow_take(f, pinned);
    } else if (!is_up(h, f->path)) {
        struct path *to = pinned ? pinned : headend_choose(h, d, f->path);

        if (headend_class(h, to) < CLASS_NONE) {
            headend_fail(h, f, to, now);
        }
    } else if (d->policy == PATH_MESSAGE && !pinned && !f->going_to && s->requests
               && headend_flow_pauses(f, s)) {
        headend_flow_take(f, headend_choose(h, d, NULL));
    }
}

enum drop_reason
headend_output(struct headend *h, struct packet *p, uint64_t now)
{
    const struct ip6_hdr_wire *ip = (const void *) p->data;
    struct destination *d = headend_find(h, &ip->dst);
    if (!d) {
        return l3_output(h->base->l3, p, L3_ERRORS_ALL, now);
    }
    const struct seen s = headend_look(p->data, p->len);
    uint16_t pin = headend_pin_of(d, s.dest_qp);
    if (!pin && (d->policy == PATH_NONE || !d->n_paths)) {
        return l3_output(h->base->l3, p, L3_ERRORS_ALL, now);
    }
    struct path *pinned = pin ? path_by_number(d, pin) : NULL;
    if (pin && (!pinned || headend_class(h, pinned) == CLASS_NONE)) {
        TRACE(&h->base->tracer, "path %u, which it is pinned to, is not usable", pin);
        packet_put(p);
        return DROP_path_none;
    }
    if (d->policy == PATH_SPRAY) { /* which has no use for flows. */
        uint8_t label = (uint8_t) headend_hash(d, &s);

        return headend_send_on(h, p, pinned ? pinned : headend_choose(h, d, NULL), label, now);
    }
    struct flow *f = headend_flow(h, d, &ip->src, &s, now);
    place(h, f, &s, pinned, now);
    if (headend_tracks(d) && !headend_may_leave(h, f, &s, p, now)) {
        return DROP_none;
    }
    return headend_send_on(h, p, f->path, f->label, now);
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
    const struct destination *d = headend_find(h, &inner->dst);
    struct path *path = d && !is_proxy_address(&inner->src)
                            ? path_by_number(d, (uint16_t) (ip6_flow_label(about) >> 8))
                            : NULL;
    if (path) {
        path->n_errors++;
    }
}

/* Packets that wait for their flow to leave the path. */
static uint32_t
n_held(const struct destination *d, const struct path *path)
{
    uint32_t n = 0;

    for (const struct flow *f = d->flows; f; f = f->next) {
        n += f->path == path ? f->held.n : 0;
    }
    return n;
}

void
headend_make_naks(void *node, bool make)
{
    ((struct node_base *) node)->headend->silent = !make;
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
                .up = is_up(h, path),
                .state = path->state,
                .n_flows = path->n_flows,
                .n_held = n_held(d, path),
                .n_packets = path->n_packets,
                .n_bytes = path->n_bytes,
                .n_moved = path->n_moved,
                .n_naks = path->n_naks,
                .n_repeated = path->n_repeated,
                .last_switch = path->last_switch,
                .congested = path->load.score,
                .n_errors = path->n_errors,
            };
            memcpy(info->n_moved_by, path->n_moved_by, sizeof info->n_moved_by);
            return true;
        }
        i -= d->n_paths;
    }
    return false;
}
