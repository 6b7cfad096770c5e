/* SPDX-License-Identifier: Apache-2.0
 *
 * The control socket of swedge and srcagent: what a node has and counts.
 */
#include <config.h>

#include "ctl/node/daemon.h"

#include <arpa/inet.h>
#include <errno.h>

#include "ctl/process/listing.h"
#include "ctl/process/metrics.h"
#include "ctl/registry/json.h"
#include "ctl/registry/values.h"
#include "lib/reverse.h"
#include "openvswitch/json.h"
#include "util.h"

static void
put_addr(struct json *object, const char *name, const struct in6_addr *addr)
{
    char text[INET6_ADDRSTRLEN];
    json_object_put_string(object, name, inet_ntop(AF_INET6, addr, text, sizeof text));
}

static void
put_mac(struct json *object, const char *name, const uint8_t mac[6])
{
    char text[MAC_TEXT_SIZE];
    mac_format(mac, text);
    json_object_put_string(object, name, text);
}

/* Is the port open in all workers? */
static bool
is_open(const struct node_daemon *d, uint16_t number)
{
    for (unsigned i = 0; i < d->n_workers; i++) {
        if (!d->workers[i]->ports[number] || !d->workers[i]->ports[number]->port) {
            return false;
        }
    }
    return true;
}

static struct json *
ports(const struct node_daemon *d)
{
    char impairment[IMPAIR_TEXT_SIZE];
    const struct node_worker *w = d->workers[0];
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < w->n_ports; i++) {
        const struct node_port *np = w->ports[w->numbers[i]];
        struct json *o = json_object_create();

        json_object_put_string(o, "name", np->config.name);
        ctl_put_int(o, "number", np->config.number);
        json_object_put_string(o, "kind", port_kind_name(np->config.kind));
        json_object_put_string(o, "role", port_role_name(np->config.role));
        put_mac(o, "mac", np->config.mac);
        json_object_put_string(o, "peer", np->config.peer);
        put_addr(o, "peer_address", &np->config.peer_address);
        impair_format(&np->config.rx, impairment);
        json_object_put_string(o, "rx_impairment", impairment);
        impair_format(&np->config.tx, impairment);
        json_object_put_string(o, "tx_impairment", impairment);
        json_object_put(o, "open", json_boolean_create(is_open(d, np->config.number)));
        ctl_put_int(o, "mtu", np->port ? port_mtu(np->port) : 0);
        json_array_add(array, o);
    }
    return array;
}

static void
add_impaired(struct json *array, const struct node_port *np, const char *direction,
             const struct impair_stats *s, uint32_t n_held)
{
    struct json *o = json_object_create();

    json_object_put_string(o, "port", np->config.name);
    json_object_put_string(o, "direction", direction);
    ctl_put_int(o, "frames", s->n_frames);
    ctl_put_int(o, "queue_full", s->n_queue_full);
    ctl_put_int(o, "marked", s->n_marked);
    ctl_put_int(o, "no_buffer", s->n_no_buffer);
    ctl_put_int(o, "lost", s->n_lost);
    ctl_put_int(o, "corrupted", s->n_corrupted);
    ctl_put_int(o, "late", s->n_late);
    ctl_put_int(o, "duplicated", s->n_duplicated);
    ctl_put_int(o, "held", n_held);
    json_array_add(array, o);
}

/* What a bad link has done to what is sent, with the queue in front of it. */
static void
add_impaired_tx(struct json *array, const struct node_worker *w, const struct node_port *np)
{
    struct impair_stats s = {.n_frames = 0};
    struct egress_stats queue;
    uint32_t n_held = 0;

    if (np->tx) {
        impair_get_stats(np->tx, &s);
        n_held = impair_n_held(np->tx);
    }
    if (w->daemon->class->egress(w->node, np->config.number, &queue)) {
        s.n_frames = queue.n_frames;
        s.n_queue_full = queue.n_full;
        s.n_marked = queue.n_marked;
        n_held += queue.depth;
    }
    add_impaired(array, np, "tx", &s, n_held);
}

/* What has become of frames on links that are made bad here: the node has one worker. */
static struct json *
impaired(const struct node_daemon *d)
{
    const struct node_worker *w = d->workers[0];
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < w->n_ports; i++) {
        const struct node_port *np = w->ports[w->numbers[i]];
        if (np->rx) {
            struct impair_stats s;

            impair_get_stats(np->rx, &s);
            add_impaired(array, np, "rx", &s, impair_n_held(np->rx));
        }
        if (!impair_is_none(&np->config.tx)) {
            add_impaired_tx(array, w, np);
        }
    }
    return array;
}

/* Queues of ports that have a rate: likewise. */
static struct json *
queues(const struct node_daemon *d)
{
    const struct node_worker *w = d->workers[0];
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < w->n_ports; i++) {
        const struct node_port *np = w->ports[w->numbers[i]];
        struct egress_stats s;

        if (d->class->egress(w->node, np->config.number, &s)) {
            struct json *o = json_object_create();

            json_object_put_string(o, "port", np->config.name);
            ctl_put_int(o, "frames", s.n_frames);
            ctl_put_int(o, "bytes", s.n_bytes);
            ctl_put_int(o, "sent", s.n_sent);
            ctl_put_int(o, "sent_bytes", s.n_sent_bytes);
            ctl_put_int(o, "depth", s.depth);
            ctl_put_int(o, "depth_bytes", s.depth_bytes);
            ctl_put_int(o, "max_depth", s.max_depth);
            ctl_put_int(o, "max_depth_bytes", s.max_depth_bytes);
            ctl_put_int(o, "congested", s.n_congested);
            ctl_put_int(o, "marked", s.n_marked);
            ctl_put_int(o, "full", s.n_full);
            ctl_put_int(o, "red", s.n_red);
            json_array_add(array, o);
        }
    }
    return array;
}

/* What all workers have counted at a port. */
static struct json *
port_counters(const struct node_daemon *d, uint16_t number)
{
    struct json *o = json_object_create();
    struct node_port sum = {.rx_packets = 0};

    for (unsigned i = 0; i < d->n_workers; i++) {
        const struct node_port *np = d->workers[i]->ports[number];

        sum.rx_packets += np->rx_packets;
        sum.rx_bytes += np->rx_bytes;
        sum.rx_errors += np->rx_errors;
        sum.tx_packets += np->tx_packets;
        sum.tx_bytes += np->tx_bytes;
        sum.tx_errors += np->tx_errors;
        sum.tx_too_long += np->tx_too_long;
    }
    ctl_put_int(o, "rx_packets", sum.rx_packets);
    ctl_put_int(o, "rx_bytes", sum.rx_bytes);
    ctl_put_int(o, "rx_errors", sum.rx_errors);
    ctl_put_int(o, "tx_packets", sum.tx_packets);
    ctl_put_int(o, "tx_bytes", sum.tx_bytes);
    ctl_put_int(o, "tx_errors", sum.tx_errors);
    ctl_put_int(o, "tx_too_long", sum.tx_too_long);
    return o;
}

static struct json *
flow(const struct flow_info *f)
{
    struct json *o = json_object_create();

    put_addr(o, "destination", &f->dst);
    ctl_put_int(o, "dest_qp", f->dest_qp);
    json_object_put(o, "group", f->group ? json_string_create(f->group) : json_null_create());
    ctl_put_int(o, "rate", f->rate);
    ctl_put_int(o, "waiting", f->n_waiting);
    ctl_put_int(o, "max_waiting", f->max_waiting);
    ctl_put_int(o, "delayed", f->n_delayed);
    ctl_put_int(o, "replaced", f->n_replaced);
    ctl_put_int(o, "cnps", f->n_cnps);
    ctl_put_int(o, "fast_cnps", f->n_fast_cnps);
    ctl_put_int(o, "cuts", f->n_cuts);
    if (f->last_cut) {
        ctl_put_int(o, "last_cut_us_ago", node_daemon_now() - f->last_cut);
        json_object_put_string(o, "cause", rate_cause_name(f->last_cause));
        put_addr(o, "node", &f->last_node);
        ctl_put_int(o, "depth", f->last_depth);
    }
    return o;
}

/* A source agent's flows that were told of congestion. */
static struct json *
flows(const struct node_daemon *d)
{
    struct json *array = json_array_create_empty();

    for (unsigned i = 0; i < d->n_workers && d->class->n_flows; i++) {
        const void *node = d->workers[i]->node;

        for (size_t j = 0; j < d->class->n_flows(node); j++) {
            struct flow_info info = {.group = NULL};

            d->class->flow(node, j, &info);
            json_array_add(array, flow(&info));
        }
    }
    return array;
}

static struct json *
path(const struct path_info *p)
{
    const struct path_config *c = p->config;
    struct json *o = json_object_create();
    char program[PROGRAM_TEXT_SIZE];

    program_format(&c->program, program);
    put_addr(o, "destination", &p->destination);
    json_object_put_string(o, "policy", path_policy_name(p->policy));
    ctl_put_int(o, "path", c->number);
    json_object_put_string(o, "name", c->name);
    json_object_put_string(o, "plane", c->plane);
    json_object_put_string(o, "program", program);
    ctl_put_int(o, "port", c->port);
    json_object_put(o, "usable", json_boolean_create(c->usable));
    json_object_put(o, "up", json_boolean_create(p->up));
    ctl_put_int(o, "flows", p->n_flows);
    ctl_put_int(o, "packets", p->n_packets);
    ctl_put_int(o, "bytes", p->n_bytes);
    json_object_put_string(o, "state", path_state_name(p->state));
    ctl_put_int(o, "congested", p->congested);
    ctl_put_int(o, "moved", p->n_moved);
    for (size_t i = 0; i < N_PATH_MOVES; i++) {
        char key[32];

        snprintf(key, sizeof key, "moved_%s", path_move_name((enum path_move) i));
        ctl_put_int(o, key, p->n_moved_by[i]);
    }
    ctl_put_int(o, "naks", p->n_naks);
    ctl_put_int(o, "repeated", p->n_repeated);
    ctl_put_int(o, "held", p->n_held);
    if (p->last_switch) {
        ctl_put_int(o, "last_switch_us_ago", node_daemon_now() - p->last_switch);
    }
    ctl_put_int(o, "errors", p->n_errors);
    return o;
}

/* Paths that the node places packets on.  Only the first worker has such packets (lib/steer.h). */
static struct json *
paths(const struct node_daemon *d)
{
    struct json *array = json_array_create_empty();
    struct path_info info;

    for (size_t i = 0; d->class->path && d->class->path(d->workers[0]->node, i, &info); i++) {
        json_array_add(array, path(&info));
    }
    return array;
}

/* What all workers have done about congestion. */
static struct json *
congestion(const struct node_daemon *d)
{
    struct json *o = json_object_create();
    struct congestion_stats sum = {.n_fast_cnps = 0};

    for (unsigned i = 0; i < d->n_workers; i++) {
        const struct congestion_stats *s = d->class->congestion(d->workers[i]->node);

        sum.n_fast_cnps += s->n_fast_cnps;
        sum.n_too_soon += s->n_too_soon;
        sum.n_dst_limit += s->n_dst_limit;
        sum.n_node_limit += s->n_node_limit;
        sum.n_unwanted += s->n_unwanted;
        sum.n_traced += s->n_traced;
        sum.n_trace_full += s->n_trace_full;
    }
    ctl_put_int(o, "fast_cnps", sum.n_fast_cnps);
    ctl_put_int(o, "too_soon", sum.n_too_soon);
    ctl_put_int(o, "sender_limit", sum.n_dst_limit);
    ctl_put_int(o, "node_limit", sum.n_node_limit);
    ctl_put_int(o, "unwanted", sum.n_unwanted);
    ctl_put_int(o, "traced", sum.n_traced);
    ctl_put_int(o, "trace_full", sum.n_trace_full);
    return o;
}

static struct json *
counters(const struct node_daemon *d)
{
    const struct node_worker *first = d->workers[0];
    struct json *o = json_object_create();
    struct json *by_port = json_object_create();
    struct json *by_reason = json_object_create();
    uint64_t no_port = 0, handover_full = 0, buffers_free = 0;

    for (size_t i = 0; i < first->n_ports; i++) {
        uint16_t number = first->numbers[i];
        json_object_put(by_port, first->ports[number]->config.name, port_counters(d, number));
    }
    for (enum drop_reason why = DROP_none + 1; why < N_DROP_REASONS; why++) {
        uint64_t n = 0;

        for (unsigned i = 0; i < d->n_workers; i++) {
            n += d->class->drops(d->workers[i]->node)[why];
        }
        ctl_put_int(by_reason, drop_name(why), n);
    }
    for (unsigned i = 0; i < d->n_workers; i++) {
        no_port += d->workers[i]->no_port;
        handover_full += d->workers[i]->n_handover_full;
        buffers_free += packet_pool_n_free(d->workers[i]->pool);
    }
    json_object_put(o, "ports", by_port);
    json_object_put(o, "drops", by_reason);
    json_object_put(o, "impaired", impaired(d));
    json_object_put(o, "queues", queues(d));
    json_object_put(o, "congestion", congestion(d));
    if (d->class->n_flows) {
        json_object_put(o, "flows", flows(d));
    }
    json_object_put(o, "paths", paths(d));
    json_object_put(o, "probes", node_probes_sum(d));
    ctl_put_int(o, "no_port", no_port);
    ctl_put_int(o, "handover_full", handover_full);
    ctl_put_int(o, "buffers_free", buffers_free);
    return o;
}

static struct json *
threads(const struct node_daemon *d)
{
    struct json *array = json_array_create_empty();

    for (unsigned i = 0; i < d->n_workers; i++) {
        const struct node_worker *w = d->workers[i];
        struct json *o = json_object_create();

        ctl_put_int(o, "thread", i);
        ctl_put_int(o, "tid", (uint64_t) w->tid);
        ctl_put_int(o, "groups", d->class->n_trees(w->node));
        ctl_put_int(o, "packets", w->n_input);
        ctl_put_int(o, "rounds", w->n_rounds);
        ctl_put_int(o, "handed_over", w->n_handed_over);
        ctl_put_int(o, "handover_full", w->n_handover_full);
        ctl_put_int(o, "buffers_free", packet_pool_n_free(w->pool));
        json_array_add(array, o);
    }
    return array;
}

/* What a node that merges has of a branch's CNPs. */
static void
put_cnps(const struct node_worker *w, size_t tree, uint32_t id, struct json *o)
{
    struct cnp_branch_stats cnps;
    struct tree_info info;

    w->daemon->class->tree(w->node, tree, &info);
    if (info.cnps && cnp_window_get(info.cnps, id, &cnps)) {
        ctl_put_int(o, "cnps", cnps.n);
        ctl_put_int(o, "cnps_limited", cnps.n_limited);
        ctl_put_int(o, "cnps_chosen", cnps.n_chosen);
        ctl_put_int(o, "cnps_max", cnps.max);
    }
}

static struct json *
branch(const struct node_worker *w, size_t tree, const struct branch_config *bc)
{
    static const char *const conds[] = {[REVERSE_NONE] = "none",
                                        [REVERSE_NAK] = "nak",
                                        [REVERSE_RNR] = "rnr",
                                        [REVERSE_FATAL] = "fatal"};
    static const char *const losses[] = {
        [LOSS_NONE] = "no",   [LOSS_REFUSED] = "refused",       [LOSS_SILENT] = "silent",
        [LOSS_SLOW] = "slow", [LOSS_UNANSWERED] = "unanswered", [LOSS_ELSEWHERE] = "elsewhere",
        [LOSS_HALF] = "half"};
    struct reverse_branch_info info;
    struct json *o = json_object_create();

    ctl_put_int(o, "id", bc->id);
    json_object_put_string(o, "name", bc->name);
    put_addr(o, "address", &bc->address);
    json_object_put_string(o, "kind", branch_kind_name(bc->kind));
    ctl_put_int(o, "qpn", bc->qpn);
    if (w->daemon->class->branch(w->node, tree, bc->id, &info)) {
        json_object_put(o, "anchored", json_boolean_create(info.anchored));
        ctl_put_int(o, "confirmed", info.una.v);
        json_object_put_string(o, "cond", conds[info.cond]);
        json_object_put_string(o, "lost", losses[info.lost]);
        json_object_put(o, "waits", json_boolean_create(info.waits));
        if (info.late) {
            ctl_put_int(o, "first", info.first.v);
        }
        json_object_put(o, "pruned", json_boolean_create(info.pruned));
        json_object_put(o, "slow", json_boolean_create(info.slow));
        ctl_put_int(o, "code", info.code);
        ctl_put_int(o, "acks", info.n_acks);
        ctl_put_int(o, "dups", info.n_dups);
        ctl_put_int(o, "naks", info.n_naks);
        ctl_put_int(o, "rnrs", info.n_rnrs);
        ctl_put_int(o, "fatals", info.n_fatals);
        ctl_put_int(o, "repeats", info.n_repeats);
        ctl_put_int(o, "useless", info.n_useless);
        ctl_put_int(o, "filtered", info.n_filtered);
    }
    put_cnps(w, tree, bc->id, o);
    return o;
}

/* Planes of a group, and which one its packets, or its responses here, go by. */
static void
put_planes(struct json *o, const struct tree_info *info)
{
    struct json *planes = json_array_create_empty();

    for (size_t i = 0; i < info->n_planes; i++) {
        const struct plane_config *p = &info->planes[i];
        struct json *plane = json_object_create();

        json_object_put_string(plane, "name", p->name);
        put_addr(plane, "program", &p->program);
        ctl_put_int(plane, "port", p->port);
        json_object_put_string(plane, "state", path_state_name(info->plane_states[i]));
        json_object_put(plane, "usable", json_boolean_create(p->usable));
        json_object_put(plane, "preferred", json_boolean_create(p->preferred));
        json_object_put(plane, "used", json_boolean_create(i == info->plane_used));
        json_array_add(planes, plane);
    }
    if (!info->n_planes) {
        json_destroy(planes);
        return;
    }
    json_object_put(o, "planes", planes);
    json_object_put(o, "plane_changes", json_boolean_create(info->plane_changes));
    ctl_put_int(o, "planes_failed", info->n_planes_failed);
    ctl_put_int(o, "planes_moved", info->n_planes_moved);
}

static struct json *
group(const struct node_worker *w, size_t tree)
{
    struct json *o = json_object_create();
    struct json *branches = json_array_create_empty();
    struct json *outer_da = json_array_create_empty();
    struct json *sent = json_object_create();
    struct tree_info info;

    w->daemon->class->tree(w->node, tree, &info);
    const struct tree_config *tc = info.config;
    const struct reverse_info *r = &info.reverse;
    json_object_put_string(o, "group", tc->group);
    ctl_put_int(o, "epoch", tc->epoch);
    put_addr(o, "proxy", &tc->proxy);
    ctl_put_int(o, "designated_qpn", tc->designated_qpn);
    ctl_put_int(o, "generation", tc->generation);
    put_addr(o, "source", &tc->source);
    ctl_put_int(o, "source_qpn", tc->source_qpn);
    ctl_put_int(o, "start_psn", tc->start_psn.v);
    json_object_put_string(o, "mode", tree_mode_name(tc->mode));
    json_object_put_string(o, "receivers", receivers_name(tc->provisioned));
    put_addr(o, "outer_source", &tc->outer_source);
    put_addr(o, "mcast_group", &tc->mcast_group);
    put_addr(o, "upstream", &tc->upstream);
    put_addr(o, "replication_sid", &tc->replication_sid);
    for (size_t i = 0; i < tc->n_outer_da; i++) {
        char text[INET6_ADDRSTRLEN];
        inet_ntop(AF_INET6, &tc->outer_da[i], text, sizeof text);
        json_array_add(outer_da, json_string_create(text));
    }
    json_object_put(o, "outer_da", outer_da);
    json_object_put(o, "root", json_boolean_create(tc->root));
    put_addr(o, "parent_sid", &tc->parent_sid);
    json_object_put(o, "started", json_boolean_create(info.started));
    json_object_put(o, "open", json_boolean_create(tc->open));
    json_object_put(o, "anchored", json_boolean_create(r->anchored));
    ctl_put_int(o, "sent_next", r->h.v);
    ctl_put_int(o, "confirmed", r->m.v);
    ctl_put_int(o, "told", r->f.v);
    ctl_put_int(o, "waiting", info.n_waiting);
    ctl_put_int(o, "lost", r->n_lost);
    json_object_put_string(o, "nak", nak_policy_name(tc->policy.nak));
    json_object_put(o, "filter", json_boolean_create(tc->policy.filter));
    json_object_put(o, "prune", json_boolean_create(tc->policy.prune));
    ctl_put_int(o, "liveness_ms", tc->policy.liveness_msec);
    ctl_put_int(o, "min_rate", tc->policy.min_rate);
    json_object_put_string(o, "slow", slow_policy_name(tc->policy.lose_slow));
    ctl_put_int(o, "qp_timeout", tc->policy.timeout);
    json_object_put_string(o, "cnp", cnp_source_name(tc->policy.cnp));
    ctl_put_int(o, "cnp_window_us", tc->policy.cnp_window_usec);
    ctl_put_int(o, "trace_slots", tc->policy.trace_slots);
    ctl_put_int(o, "floor", tc->rate_floor);
    put_planes(o, &info);
    if (info.refused) {
        ctl_put_int(o, "refused_psn", info.refused_psn.v);
        ctl_put_int(o, "refused_syndrome", info.refused_syndrome);
    }
    for (size_t i = 0; i < tc->n_branches; i++) {
        json_array_add(branches, branch(w, tree, &tc->branches[i]));
    }
    json_object_put(o, "branches", branches);
    ctl_put_int(sent, "acks", r->n_sent_acks);
    ctl_put_int(sent, "dups", r->n_sent_dups);
    ctl_put_int(sent, "naks", r->n_sent_naks);
    ctl_put_int(sent, "rnrs", r->n_sent_rnrs);
    ctl_put_int(sent, "fatals", r->n_sent_fatals);
    ctl_put_int(sent, "presumed", r->n_sent_presumed);
    ctl_put_int(sent, "cnps", info.cnps ? cnp_window_n_sent(info.cnps, &(uint32_t){0}) : 0);
    json_object_put(o, "sent", sent);
    if (info.down) {
        struct json *down = json_object_create();

        ctl_put_int(down, "packets", info.down->n_packets);
        ctl_put_int(down, "bytes", info.down->n_bytes);
        json_object_put(o, "down", down);
    }
    return o;
}

static int
by_name(const void *a_, const void *b_)
{
    const struct json *const *a = a_;
    const struct json *const *b = b_;
    const struct shash *ao = json_object(*a), *bo = json_object(*b);
    int order = strcmp(json_string(shash_find_data(ao, "group")),
                       json_string(shash_find_data(bo, "group")));
    long long ae = json_integer(shash_find_data(ao, "epoch"));
    long long be = json_integer(shash_find_data(bo, "epoch"));

    return order ? order : (ae > be) - (ae < be);
}

static struct json *
groups(const struct node_daemon *d)
{
    struct json *array = json_array_create_empty();

    for (unsigned i = 0; i < d->n_workers; i++) {
        const struct node_worker *w = d->workers[i];

        for (size_t j = 0; j < d->class->n_trees(w->node); j++) {
            json_array_add(array, group(w, j));
        }
    }
    if (d->n_workers > 1) {
        qsort(array->array.elems, array->array.n, sizeof *array->array.elems, by_name);
    }
    return array;
}

static const char *
port_name(const struct node_daemon *d, uint16_t number)
{
    const struct node_port *np = number < NODE_MAX_PORTS ? d->workers[0]->ports[number] : NULL;

    return np ? np->config.name : "";
}

static struct json *
sids(const struct node_daemon *d)
{
    struct json *array = json_array_create_empty();
    struct sid_info info;

    for (size_t i = 0; d->class->sid && d->class->sid(d->workers[0]->node, i, &info); i++) {
        struct json *o = json_object_create();
        char text[INET6_ADDRSTRLEN];
        uint64_t n_packets = 0;

        /* All workers have the same SIDs in the same order. */
        for (unsigned j = 0; j < d->n_workers; j++) {
            struct sid_info other;
            d->class->sid(d->workers[j]->node, i, &other);
            n_packets += other.n_packets;
        }
        inet_ntop(AF_INET6, &info.prefix, text, sizeof text);
        json_object_put_format(o, "prefix", "%s/%d", text, info.plen);
        json_object_put_string(o, "behaviour", info.behaviour);
        if (info.port) {
            json_object_put_string(o, "port_name", port_name(d, info.port));
        }
        ctl_put_int(o, "packets", n_packets);
        json_array_add(array, o);
    }
    return array;
}

static struct json *
routes(const struct node_daemon *d)
{
    const struct l3 *l3 = d->class->l3(d->workers[0]->node);
    struct json *array = json_array_create_empty();
    struct route_config route;

    for (size_t i = 0; i < l3_n_routes(l3) && l3_get_route(l3, i, &route); i++) {
        struct json *o = json_object_create();
        char text[INET6_ADDRSTRLEN];

        inet_ntop(AF_INET6, &route.prefix, text, sizeof text);
        json_object_put_format(o, "prefix", "%s/%d", text, route.plen);
        put_addr(o, "next_hop", &route.next_hop);
        ctl_put_int(o, "port", route.port);
        json_object_put_string(o, "port_name", port_name(d, route.port));
        json_array_add(array, o);
    }
    return array;
}

/* Each worker has asked for itself. */
static void
add_neighbours(const struct node_daemon *d, const struct node_worker *w, struct json *array)
{
    const struct l3 *l3 = d->class->l3(w->node);
    struct l3_neigh_info info;

    for (size_t i = 0; i < l3_n_neighs(l3) && l3_get_neigh(l3, i, &info); i++) {
        struct json *o = json_object_create();

        put_addr(o, "address", &info.addr);
        ctl_put_int(o, "port", info.port);
        json_object_put_string(o, "port_name", port_name(d, info.port));
        put_mac(o, "mac", info.mac);
        json_object_put(o, "resolved", json_boolean_create(info.resolved));
        if (d->n_workers > 1) {
            ctl_put_int(o, "thread", w->index);
        }
        json_array_add(array, o);
    }
}

static struct json *
neighbours(const struct node_daemon *d)
{
    struct json *array = json_array_create_empty();

    for (unsigned i = 0; i < d->n_workers; i++) {
        add_neighbours(d, d->workers[i], array);
    }
    return array;
}

static struct json *
connection(const struct cm_conn_info *info)
{
    const struct cm_known *k = info->known;
    struct json *o = json_object_create();

    ctl_put_int(o, "number", info->id);
    json_object_put_string(o, "role", cm_role_name(info->role));
    put_addr(o, "proxy", &info->proxy);
    put_addr(o, "address", &info->host);
    json_object_put_string(o, "state", cm_state_name(k->state));
    json_object_put_string(o, "cause", cm_cause_name(k->cause));
    json_object_put(o, "configured", json_boolean_create(info->configured));
    ctl_put_int(o, "remote_id", k->remote_id);
    ctl_put_int(o, "peer_qpn", k->qpn);
    if (info->role == CM_PASSIVE) {
        ctl_put_int(o, "port", k->port);
        ctl_put_int(o, "peer_psn", k->psn.v);
        ctl_put_int(o, "peer_mtu", cm_mtu_bytes(k->mtu_code));
    }
    if (k->reason) {
        ctl_put_int(o, "peer_reason", k->reason);
        json_object_put_string(o, "peer_reason_text", cm_rej_text(k->reason));
    }
    return o;
}

static struct json *
connections(const struct node_daemon *d)
{
    struct json *array = json_array_create_empty();

    for (unsigned i = 0; i < d->n_workers; i++) {
        const struct node_worker *w = d->workers[i];

        for (size_t j = 0; j < d->class->n_connections(w->node); j++) {
            struct cm_conn_info info;

            d->class->connection(w->node, j, &info);
            json_array_add(array, connection(&info));
        }
    }
    return array;
}

/* What metrics are made from: the listings that have them. */
static struct json *
metrics(const struct node_daemon *d)
{
    struct json *o = json_object_create();

    metrics_put_program(o);
    json_object_put_string(o, "node", d->name);
    json_object_put(o, "ports", ports(d));
    json_object_put(o, "counters", counters(d));
    json_object_put(o, "groups", groups(d));
    json_object_put(o, "sids", sids(d));
    json_object_put(o, "threads", threads(d));
    json_object_put(o, "probes", node_probes_to_json(d));
    json_object_put(o, "connections", connections(d));
    return o;
}

struct listing {
    const char *command;
    struct json *(*make)(const struct node_daemon *);
    void (*reply)(struct unixctl_conn *, const struct json *, bool as_json);
};

static const struct listing listings[] = {
    {"rocecast/ports", ports, listing_reply},
    {"rocecast/sids", sids, listing_reply},
    {"rocecast/groups", groups, listing_reply},
    {"rocecast/counters", counters, listing_reply},
    {"rocecast/flows", flows, listing_reply},
    {"rocecast/paths", paths, listing_reply},
    {"rocecast/probes", node_probes_to_json, listing_reply},
    {"rocecast/routes", routes, listing_reply},
    {"rocecast/neighbours", neighbours, listing_reply},
    {"rocecast/threads", threads, listing_reply},
    {"rocecast/connections", connections, listing_reply},
    {"rocecast/capture-list", node_captures_to_json, listing_reply},
    {METRICS_COMMAND, metrics, metrics_reply_node},
};

static struct node_daemon *shown; /* one node a process. */

static void
list(struct unixctl_conn *conn, const void *listing_, bool as_json)
{
    const struct listing *listing = listing_;

    node_workers_stop(shown);
    struct json *json = listing->make(shown);
    node_workers_go(shown);
    listing->reply(conn, json, as_json);
    json_destroy(json);
}

void
node_show_init(struct node_daemon *d)
{
    shown = d;
    for (size_t i = 0; i < ARRAY_SIZE(listings); i++) {
        listing_register(listings[i].command, list, &listings[i]);
    }
}
