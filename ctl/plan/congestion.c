/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner, congestion: what nodes do about it, and how far a group's source may slow down.
 */
#include <config.h>

#include <inttypes.h>
#include <stdlib.h>

#include "ctl/plan/plan.h"
#include "util.h"

/* Of several hosts behind one agent, which has one set of parameters, the first by name decides.
 * NULL: there is none. */
static const struct plan_host *
first_host(const struct plan_topology *t, const struct plan_node *agent)
{
    for (size_t i = 0; i < t->n_hosts; i++) {
        if (t->hosts[i].node == agent) {
            return &t->hosts[i];
        }
    }
    return NULL;
}

/* Does whoever limits the host's rate take Fast CNPs? */
static bool
takes_fast_cnps(const struct plan_topology *t, const struct plan_host *host)
{
    bool has_agent = host->node && plan_is_agent(host->node);
    struct rate_settings s = host->rate;

    s.by = has_agent ? first_host(t, host->node)->rate.by : s.by;
    return rate_settings_take_fast_cnp(&s, has_agent);
}

static void
plan_capable(const struct plan_topology *t, struct congestion_config *out)
{
    out->capable = xcalloc(t->n_hosts + 1, sizeof *out->capable);
    for (size_t i = 0; i < t->n_hosts; i++) {
        const struct plan_host *host = &t->hosts[i];

        if (takes_fast_cnps(t, host)) {
            out->capable[out->n_capable++] = host->address;
        }
    }
    qsort(out->capable, out->n_capable, sizeof *out->capable, address_compare);
}

static void
plan_trusted(const struct plan_topology *t, struct congestion_config *out)
{
    out->trusted = xcalloc(t->n_nodes + 1, sizeof *out->trusted);
    for (size_t i = 0; i < t->n_nodes; i++) {
        out->trusted[out->n_trusted++] = node_address(t->nodes[i].id);
    }
    qsort(out->trusted, out->n_trusted, sizeof *out->trusted, address_compare);
}

/* The lowest rate of what a node sends to; 0: none of its links has one. */
static uint64_t
lowest_rate(const struct plan_topology *t, const char *node)
{
    uint64_t lowest = 0;

    for (size_t i = 0; i < t->n_links; i++) {
        const struct plan_link *link = &t->links[i];
        uint64_t rate = !strcmp(link->a, node)   ? link->a_to_b.rate
                        : !strcmp(link->b, node) ? link->b_to_a.rate
                                                 : 0;

        lowest = rate && (!lowest || rate < lowest) ? rate : lowest;
    }
    return lowest;
}

static void
plan_queue_rates(const struct plan_topology *t, struct congestion_config *out)
{
    out->queue_rates = xcalloc(t->n_nodes + 1, sizeof *out->queue_rates);
    for (size_t i = 0; i < t->n_nodes; i++) {
        uint64_t rate = lowest_rate(t, t->nodes[i].name);

        if (rate) {
            out->queue_rates[out->n_queue_rates++] = (struct queue_rate){t->nodes[i].id, rate};
        }
    }
    qsort(out->queue_rates, out->n_queue_rates, sizeof *out->queue_rates, queue_rate_compare);
}

static void
plan_rate_control(const struct plan_topology *t, const struct plan_node *agent,
                  struct congestion_config *out)
{
    const struct plan_host *host = first_host(t, agent);

    if (!host) {
        return;
    }
    out->rate_control = host->rate.by;
    out->rate.controller = host->rate.controller;
    out->rate.line = host->rate.line;
    out->rate.floor = host->rate.floor;
    if (host->rate.controller == RATE_DEPTH) {
        plan_queue_rates(t, out);
    }
}

void
plan_congestion(const struct plan_topology *t, const struct plan_node *node,
                struct congestion_config *out)
{
    out->interval_usec = t->congestion.interval_usec;
    out->fast_cnp = t->congestion.fast_cnp;
    out->any_icrc = t->congestion.any_icrc && plan_is_agent(node);
    out->fast_cnp_rate = t->congestion.fast_cnp_rate;
    out->trace = t->trace;
    if (out->fast_cnp) {
        plan_capable(t, out);
    }
    if (out->fast_cnp && plan_is_agent(node)) {
        plan_trusted(t, out);
    }
    if (plan_is_agent(node)) {
        plan_rate_control(t, node, out);
    }
}

uint64_t
plan_rate_floor(const struct plan_host *host, const struct plan_group *g)
{
    uint64_t need = rate_needed(g->mtu, g->policy.timeout);

    return MIN(MAX(host->rate.floor, need), host->rate.line);
}

char *
plan_congestion_problem(const struct plan_topology *t, const struct plan_group *g,
                        const struct plan *plan)
{
    const struct plan_host *host = plan_find_host(t, g->source_host);
    uint64_t need = rate_needed(g->mtu, g->policy.timeout);
    uint64_t windows = (uint64_t) plan_height(plan) * g->policy.cnp_window_usec;

    if (host && need > host->rate.line) {
        return xasprintf(
            "its rate is never cut: with QP time-out %u it must not be less than %" PRIu64
            " bit/s, and the line rate of %s is %" PRIu64,
            g->policy.timeout, need, host->name, host->rate.line);
    }
    if (windows > t->congestion.interval_usec / 2) {
        return xasprintf(
            "CNPs may wait %" PRIu64 " us on their way up (%" PRIu32 " nodes, windows of %" PRIu32
            " us), more than half of the interval of %" PRIu32 " us",
            windows, plan_height(plan), g->policy.cnp_window_usec, t->congestion.interval_usec);
    }
    return NULL;
}
