/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes nodes' rows equal to what is wanted, but for trees (sync.c): ports, routes, SIDs, paths
 * and probes (paths.c, probes.c), and what they do about congestion.  Only differences are written.
 */
#include <config.h>

#include <stdlib.h>

#include "ctl/castd/castd.h"
#include "ctl/castd/columns.h"
#include "ctl/registry/values.h"
#include "openvswitch/shash.h"
#include "openvswitch/vlog.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(castd_nodes);

static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(6, 6);

bool
castd_has_route_rows(const struct rrec_node *row)
{
    return row->nb_cfg && !row->finds_rows;
}

void
castd_begin_generation(struct castd_node *n)
{
    if (!n->changed) {
        n->changed = true;
        rrec_node_set_cfg(n->row, n->row->cfg + 1);
    }
}

/* True if they changed. */
static bool
sync_programs(const struct rrec_port *row, const struct port_config *p)
{
    struct svec texts = SVEC_EMPTY_INITIALIZER;
    bool changed = false;

    for (size_t i = 0; i < p->n_programs; i++) {
        char text[IP6_PREFIX_TEXT_SIZE];

        ip6_prefix_format(&p->programs[i].address, p->programs[i].plen, text);
        svec_add(&texts, text);
    }
    svec_sort_unique(&texts);
    SYNC_SET(port, row, programs, &texts);
    svec_destroy(&texts);
    return changed;
}

static bool
sync_port(const struct rrec_port *row, const struct port_config *p)
{
    bool changed = false;
    char impairment[IMPAIR_TEXT_SIZE];
    char mac[MAC_TEXT_SIZE], peer_mac[MAC_TEXT_SIZE];

    static const uint8_t no_mac[6];
    bool has_peer_mac = memcmp(p->peer_mac, no_mac, sizeof no_mac);

    mac_format(p->mac, mac);
    mac_format(p->peer_mac, peer_mac);
    SYNC_STRING(port, row, name, p->name);
    SYNC_NUMBER(port, row, number, p->number);
    SYNC_STRING(port, row, kind, port_kind_name(p->kind));
    SYNC_STRING(port, row, role, port_role_name(p->role));
    SYNC_STRING(port, row, mac, mac);
    SYNC_STRING(port, row, peer, p->peer);
    SYNC_STRING(port, row, peer_address, ip6_text(&p->peer_address));
    SYNC_STRING(port, row, peer_mac, has_peer_mac ? peer_mac : "");
    SYNC_NUMBER(port, row, external, p->external);
    changed |= sync_programs(row, p);
    impair_format(&p->rx, impairment);
    SYNC_STRING(port, row, rx_impairment, impairment);
    impair_format(&p->tx, impairment);
    SYNC_STRING(port, row, tx_impairment, impairment);
    return changed;
}

static bool
sync_ports(struct ovsdb_idl_txn *txn, const struct rrec_node *row, const struct node_config *want)
{
    struct rrec_port **ports = xcalloc(want->n_ports + 1, sizeof *ports);
    bool changed = row->n_ports != want->n_ports;

    for (size_t i = 0; i < want->n_ports; i++) {
        for (size_t j = 0; j < row->n_ports && !ports[i]; j++) {
            if (!strcmp(row->ports[j]->name, want->ports[i].name)) {
                ports[i] = row->ports[j];
            }
        }
        if (!ports[i]) {
            ports[i] = rrec_port_insert(txn);
            changed = true;
        }
        changed |= sync_port(ports[i], &want->ports[i]);
        SYNC_OWNER(port, ports[i], row->name);
    }
    if (changed) {
        rrec_node_set_ports(row, ports, want->n_ports);
    }
    free(ports);
    return changed;
}

static bool
sync_routes(struct ovsdb_idl_txn *txn, const struct rrec_node *row, const struct node_config *want)
{
    struct rrec_route **routes = xcalloc(want->n_routes + 1, sizeof *routes);
    struct shash have = SHASH_INITIALIZER(&have); /* by prefix. */
    bool changed = row->n_routes != want->n_routes;

    for (size_t i = 0; i < row->n_routes; i++) {
        shash_add_once(&have, row->routes[i]->prefix, row->routes[i]);
    }
    for (size_t i = 0; i < want->n_routes; i++) {
        const struct route_config *r = &want->routes[i];
        char prefix[IP6_PREFIX_TEXT_SIZE];

        ip6_prefix_format(&r->prefix, r->plen, prefix);
        routes[i] = shash_find_data(&have, prefix);
        if (!routes[i]) {
            routes[i] = rrec_route_insert(txn);
            changed = true;
        }
        SYNC_OWNER(route, routes[i], row->name);
        SYNC_STRING(route, routes[i], prefix, prefix);
        SYNC_NUMBER(route, routes[i], port, r->port);
        SYNC_STRING(route, routes[i], next_hop, ip6_text(&r->next_hop));
    }
    if (changed) {
        rrec_node_set_routes(row, routes, want->n_routes);
    }
    shash_destroy(&have);
    free(routes);
    return changed;
}

static bool
sync_next_hops(const struct rrec_node *row, const struct next_hop *hops, size_t n)
{
    int64_t *nodes = xcalloc(n + 1, sizeof *nodes), *ports = xcalloc(n + 1, sizeof *ports);
    bool same = row->n_next_hops == n;

    for (size_t i = 0; i < n; i++) {
        nodes[i] = hops[i].node;
        ports[i] = hops[i].port;
        same = same && row->key_next_hops[i] == nodes[i]
               && row->value_next_hops[i] == ports[i]; /* both in ascending order. */
    }
    if (!same) {
        rrec_node_set_next_hops(row, nodes, ports, n);
    }
    free(nodes);
    free(ports);
    return !same;
}

/* Next hops, or rows for an agent that does not know what to do with them. */
static bool
sync_ways(const struct castd *c, struct ovsdb_idl_txn *txn, const struct castd_node *n,
          struct node_config *want)
{
    size_t n_hops = 0;
    struct next_hop *hops = NULL;

    if (castd_has_route_rows(n->row)) {
        plan_routes(&c->topology, n->node, want);
    } else {
        hops = plan_next_hops(&c->topology, n->node, want, &n_hops);
    }
    bool changed = sync_routes(txn, n->row, want);
    changed |= sync_next_hops(n->row, hops, n_hops);
    free(hops);
    return changed;
}

/* True if a host is somewhere else. */
static bool
sync_locations(const struct castd *c, struct ovsdb_idl_txn *txn)
{
    size_t n;
    struct host_location *locations = plan_locations(&c->topology, &n);
    struct shash have = SHASH_INITIALIZER(&have); /* by address. */
    const struct rrec_location *row;
    struct shash_node *left;
    bool changed = false;

    RREC_LOCATION_FOR_EACH (row, c->idl) {
        shash_add_once(&have, row->address, row);
    }
    for (size_t i = 0; i < n; i++) {
        const char *address = ip6_text(&locations[i].address);

        row = shash_find_and_delete(&have, address);
        if (!row) {
            row = rrec_location_insert(txn);
        }
        SYNC_STRING(location, row, address, address);
        SYNC_NUMBER(location, row, node, locations[i].node);
    }
    SHASH_FOR_EACH (left, &have) {
        rrec_location_delete(left->data);
        changed = true;
    }
    shash_destroy(&have);
    free(locations);
    return changed;
}

static bool
sync_sids(struct ovsdb_idl_txn *txn, const struct rrec_node *row, const struct node_config *want)
{
    struct rrec_sid **sids = xcalloc(want->n_sids + 1, sizeof *sids);
    bool changed = row->n_sids != want->n_sids;

    for (size_t i = 0; i < want->n_sids; i++) {
        char prefix[IP6_PREFIX_TEXT_SIZE];

        ip6_prefix_format(&want->sids[i].prefix, want->sids[i].plen, prefix);
        for (size_t j = 0; j < row->n_sids && !sids[i]; j++) {
            if (!strcmp(row->sids[j]->prefix, prefix)) {
                sids[i] = row->sids[j];
            }
        }
        if (!sids[i]) {
            sids[i] = rrec_sid_insert(txn);
            changed = true;
        }
        SYNC_OWNER(sid, sids[i], row->name);
        SYNC_STRING(sid, sids[i], prefix, prefix);
        SYNC_STRING(sid, sids[i], behaviour, sid_behaviour_name(want->sids[i].behaviour));
        SYNC_NUMBER(sid, sids[i], block_len, want->sids[i].block_len);
        SYNC_NUMBER(sid, sids[i], port, want->sids[i].port);
    }
    if (changed) {
        rrec_node_set_sids(row, sids, want->n_sids);
    }
    free(sids);
    return changed;
}

static bool
sync_queue_rates(const struct rrec_node *row, const struct congestion_config *c)
{
    size_t n = c->n_queue_rates;
    int64_t *nodes = xcalloc(n + 1, sizeof *nodes), *rates = xcalloc(n + 1, sizeof *rates);
    bool same = row->n_queue_rates == n;

    for (size_t i = 0; i < n; i++) {
        nodes[i] = c->queue_rates[i].node;
        rates[i] = (int64_t) c->queue_rates[i].rate;
        same = same && row->key_queue_rates[i] == nodes[i]
               && row->value_queue_rates[i] == rates[i]; /* both in ascending order. */
    }
    if (!same) {
        rrec_node_set_queue_rates(row, nodes, rates, n);
    }
    free(nodes);
    free(rates);
    return !same;
}

static bool
sync_congestion(const struct rrec_node *row, const struct congestion_config *c)
{
    const char *rate_control = rate_control_by_name(c->rate_control);
    const char *controller = rate_controller_name(c->rate.controller);
    bool changed = false;

    SYNC_NUMBER(node, row, cnp_interval, c->interval_usec);
    SYNC_NUMBER(node, row, fast_cnp, c->fast_cnp);
    SYNC_NUMBER(node, row, fast_cnp_any_icrc, c->any_icrc);
    SYNC_NUMBER(node, row, fast_cnp_rate, c->fast_cnp_rate);
    SYNC_ADDRESSES(node, row, capable, c->capable, c->n_capable);
    SYNC_ADDRESSES(node, row, trusted, c->trusted, c->n_trusted);
    SYNC_NUMBER(node, row, trace, c->trace);
    if (!row->rate_control || strcmp(row->rate_control, rate_control)) {
        rrec_node_set_rate_control(row, rate_control);
        changed = true;
    }
    if (!row->controller || strcmp(row->controller, controller)) {
        rrec_node_set_controller(row, controller);
        changed = true;
    }
    SYNC_NUMBER(node, row, line_rate, (int64_t) c->rate.line);
    SYNC_NUMBER(node, row, rate_floor, (int64_t) c->rate.floor);
    return sync_queue_rates(row, c) || changed;
}

/* True if anything changed.  *planned: the node's probes are known. */
static bool
sync_base(const struct castd *c, struct ovsdb_idl_txn *txn, const struct castd_node *n,
          const struct plan_graph *graph, const struct castd_ways *ways, struct plan_probes *probes,
          bool *planned)
{
    struct node_config want;
    char *error = plan_node_base(&c->topology, n->node, &want);
    bool changed;

    *planned = !error;
    if (error) {
        VLOG_ERR_RL(&rl, "%s: what it had stays", error);
        free(error);
        return false;
    }
    changed = sync_ports(txn, n->row, &want);
    changed |= sync_ways(c, txn, n, &want);
    changed |= sync_sids(txn, n->row, &want);
    changed |= castd_sync_paths(c, n, graph, ways, &want, probes);
    changed |= sync_congestion(n->row, &want.congestion);
    node_config_uninit(&want);
    return changed;
}

/* Settings that contradict each other come from somebody who went past castctl. */
static void
check_settings(const struct castd *c)
{
    const struct probe_settings *s = &c->topology.probes;

    if (probe_settings_are_cut(s, "")) {
        VLOG_WARN_RL(&rl,
                     "Global.probe_timeout: it is longer than the interval, which holds instead");
    }
    for (size_t i = 0; i < s->n_planes; i++) {
        if (probe_settings_are_cut(s, s->planes[i].name)) {
            VLOG_WARN_RL(&rl,
                         "Global.probe_timeouts: plane %s: it is longer than the interval, which "
                         "holds instead",
                         s->planes[i].name);
        }
    }
}

/* Whose probes a node answers, and by which ones it is probed itself, depends on all others. */
static void
sync_all(struct castd *c)
{
    struct ovsdb_idl_txn *txn = ovsdb_idl_txn_get(&c->global->header_);
    struct plan_probes *probes = xcalloc(c->n_nodes + 1, sizeof *probes);
    bool *planned = xcalloc(c->n_nodes + 1, sizeof *planned);
    bool changed = false;
    struct castd_ways *ways = castd_plane_ways(c);
    struct plan_graph graph;
    bool moved = sync_locations(c, txn);

    check_settings(c);
    plan_graph_init(&graph, &c->topology);
    for (size_t i = 0; i < c->n_nodes; i++) {
        struct castd_node *n = &c->nodes[i];
        bool finds_hosts = !castd_has_route_rows(n->row);

        if (sync_base(c, txn, n, &graph, &ways[i], &probes[i], &planned[i])
            || (moved && finds_hosts)) {
            castd_begin_generation(n);
        }
    }
    plan_graph_uninit(&graph);
    castd_plane_ways_free(c, ways);
    plan_probes_pair(&c->topology, probes);
    for (size_t i = 0; i < c->n_nodes; i++) {
        if (planned[i] && castd_sync_probes(c, &c->nodes[i], probes)) {
            castd_begin_generation(&c->nodes[i]);
            changed = true;
        }
    }
    if (changed && castd_digest_planes(c)) {
        work_make_all_due(c->work); /* groups' planes have the numbers of probes. */
    }
    for (size_t i = 0; i < c->n_nodes; i++) {
        plan_probes_uninit(&probes[i]);
    }
    free(probes);
    free(planned);
}

void
castd_sync_nodes(struct castd *c)
{
    if (c->work->base) {
        sync_all(c);
    }
    c->work->base_taken |= c->work->base;
    c->work->base = false;
}
