/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner, groups: can this topology serve them?
 */
#include <config.h>

#include <stdlib.h>

#include "ctl/plan/planes.h"
#include "ctl/plan/tree-impl.h"
#include "lib/auth.h"
#include "lib/ioam.h"
#include "lib/srh.h"
#include "util.h"

/*
 * Who can be served?
 */

char *
plan_check_source(const struct plan_topology *t, const struct plan_group *g)
{
    const struct plan_node *agent, *root;
    struct via via;
    char *error;

    if (!plan_find_host(t, g->source_host)) {
        return xasprintf("source %s: no such host", g->source_host);
    }
    agent = plan_attachment(t, g->source_host);
    if (!agent) {
        return xasprintf("source %s: no path, the host has no link", g->source_host);
    }
    if (!plan_is_agent(agent)) {
        return xasprintf("source %s is behind switch %s: a source must be behind a source agent",
                         g->source_host, agent->name);
    }
    if (g->n_planes) {
        return planes_check_source(t, g);
    }
    error = via_read(t, g, &via);
    if (error) {
        return error;
    }
    root = via_root(t, g, &via);
    if (!root) {
        return xasprintf("source %s: no path, source agent %s has no link to a switch%s",
                         g->source_host, agent->name,
                         via_is_limited(g) ? " that the group may use" : "");
    }
    if (tree_mode(g->mode)->switches_replicate && !node_role_replicates(root->role)) {
        return via.n ? xasprintf("via: %s would be the root, a plain router: it cannot replicate",
                                 root->name)
                     : xasprintf("source %s: the first switch after source agent %s is %s, a plain "
                                 "router: it cannot replicate, which mode ingress does not need",
                                 g->source_host, agent->name, root->name);
    }
    return NULL;
}

char *
tree_check_edge(const struct plan_topology *t, const struct plan_group *g, const char *host)
{
    const struct plan_node *edge = plan_attachment(t, host);

    if (!plan_find_host(t, host)) {
        return xasprintf("member %s: no such host", host);
    }
    if (!edge) {
        return xasprintf("member %s: no path, the host has no link", host);
    }
    if (edge == plan_attachment(t, g->source_host)) {
        return xasprintf("member %s is behind source agent %s, which sends the group's packets: it "
                         "cannot be an edge of the same group",
                         host, edge->name);
    }
    if (node_role_is_foreign(edge->role)) {
        return xasprintf("member %s is behind %s, which has role %s: a receiver must be behind a "
                         "switch",
                         host, edge->name, node_role_name(edge->role));
    }
    if (edge->no_aggregation) {
        return xasprintf("member %s: its edge %s does not aggregate", host, edge->name);
    }
    return NULL;
}

/* Is there a plane to this host, and to all that have 'copy'? */
static char *
check_planes(const struct plan_topology *t, const struct plan_group *g, const char *host)
{
    struct plan_group copied = *g;
    struct planes planes;
    char *error;

    copied.members = xmemdup(g->members, g->n_members * sizeof *g->members);
    for (size_t i = 0; i < g->n_members; i++) {
        copied.members[i].provision = false;
    }
    error = planes_find(t, &copied, host, &planes);
    if (!error) {
        planes_uninit(&planes);
    }
    free(copied.members);
    return error;
}

/* Can the group's packets come to this edge? */
static char *
check_way(const struct via_ways *w, const struct plan_group *g, const char *host,
          const struct plan_node *edge)
{
    if (edge != w->root && !via_ways_next(w, edge)) {
        return xasprintf("member %s: no path from %s to %s%s", host, w->root->name, edge->name,
                         via_is_limited(g) ? " that the group may use" : "");
    }
    for (const struct plan_node *node = edge; node && tree_mode(g->mode)->addressed_to_group;
         node = via_ways_next(w, node)) {
        if (node->role != NODE_SWITCH) {
            return xasprintf("member %s is reached by %s, which has role %s: mode %s is for "
                             "switches only",
                             host, node->name, node_role_name(node->role), tree_mode_name(g->mode));
        }
    }
    return NULL;
}

char *
plan_check_member(const struct plan_topology *t, const struct plan_group *g, const char *host)
{
    struct via_ways ways;
    struct via via;
    char *error = tree_check_edge(t, g, host);

    if (!error && g->n_planes) {
        return check_planes(t, g, host);
    }
    if (!error) { /* also while the group runs: its source may have no link any more. */
        error = plan_check_source(t, g);
    }
    if (!error) {
        error = via_read(t, g, &via);
    }
    if (!error) {
        via_ways_init(&ways, t, g, via_root(t, g, &via));
        error = check_way(&ways, g, host, plan_attachment(t, host));
        via_ways_uninit(&ways);
    }
    return error;
}

/* 'who' are the members that the packet is for. */
static char *
check_packet(const struct plan_topology *t, const struct plan_group *g, const char *who,
             const struct srh_copy *named, size_t n_named)
{
    size_t auth = auth_len(g->auth.tlvs);
    size_t len = srh_len(named, n_named) + auth;
    size_t trace = g->policy.trace_slots ? IOAM_HBH_LEN(g->policy.trace_slots) : 0;
    size_t total = g->mtu + ROCE_OVERHEAD + IP6_HDR_LEN + trace + len;

    if (len > SRH_MAX_LEN) {
        char *share = auth ? xasprintf(", %" PRIuSIZE " of them for authentication", auth) : NULL;
        char *error = xasprintf("%s need an SRH of %" PRIuSIZE " bytes%s, and %d is the most", who,
                                len, share ? share : "", SRH_MAX_LEN);

        free(share);
        return error;
    }
    if (total > t->fabric_mtu) {
        char *traced = trace ? xasprintf(" + %" PRIuSIZE " IOAM", trace) : xstrdup("");
        char *error =
            xasprintf("path MTU %" PRIu32 " with %s makes packets of %" PRIuSIZE " bytes (%" PRIu32
                      " + %d RoCE + %d IPv6%s + %" PRIuSIZE " SRH), and the fabric MTU is %u",
                      g->mtu, who, total, g->mtu, ROCE_OVERHEAD, (int) IP6_HDR_LEN, traced, len,
                      t->fabric_mtu);

        free(traced);
        return error;
    }
    return NULL;
}

char *
plan_check_size(const struct plan_topology *t, const struct plan_group *g)
{
    size_t n = 0, n_of_edge;
    struct branch_config *branches = tree_copies(t, g, &n);
    struct srh_copy *copies = xcalloc(n + 1, sizeof *copies);
    char *error = NULL;

    for (size_t i = 0; i < n; i++) {
        copies[i] = (struct srh_copy){branches[i].edge, branches[i].address, branches[i].qpn};
    }
    for (size_t i = 0; i < n && !error; i += n_of_edge) {
        bool all = !tree_mode(g->mode)->packet_per_edge;
        char *who;

        for (n_of_edge = 1; i + n_of_edge < n; n_of_edge++) {
            if (!all && !IN6_ARE_ADDR_EQUAL(&copies[i].edge, &copies[i + n_of_edge].edge)) {
                break;
            }
        }
        who = all ? xasprintf("%" PRIuSIZE " members", n_of_edge)
                  : xasprintf("%" PRIuSIZE " members behind %s", n_of_edge,
                              plan_attachment(t, branches[i].name)->name);
        error = check_packet(t, g, who, &copies[i], g->provisioned ? 0 : n_of_edge);
        free(who);
    }
    free(copies);
    free(branches);
    return error;
}
