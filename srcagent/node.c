/* SPDX-License-Identifier: Apache-2.0
 *
 * srcagent as a node: life cycle, configuration, timers, display.
 */
#include <errno.h>
#include <stdlib.h>

#include "lib/alloc.h"
#include "lib/headend.h"
#include "lib/node-cm.h"
#include "lib/node-egress.h"
#include "lib/prober.h"
#include "lib/why.h"
#include "srcagent/srcagent.h"

static void *
create(const struct node_io *io, struct packet_pool *pool)
{
    struct srcagent *sa = must_calloc(1, sizeof *sa);
    node_base_init(&sa->base, io, pool);
    sa->base.tell_host = fast_cnp_tell;
    swedge_init(&sa->edge, &sa->base);
    sa->base.way_changed = srcagent_way_changed;
    sa->edge.transit = false;
    sa->edge.response = srcagent_response;
    sa->edge.forward = srcagent_to_host;
    pacer_init(&sa->rates.pacer);
    return sa;
}

static void
destroy(void *sa_)
{
    struct srcagent *sa = sa_;

    sources_uninit(sa);
    swedge_trees_uninit(&sa->edge);
    rate_uninit(sa);
    node_base_uninit(&sa->base);
    free(sa);
}

/* Neighbour discovery answers the fabric for the host. */
static void
announce_host(struct srcagent *sa, const struct node_config *config)
{
    const struct port_config *host = NULL;

    for (size_t i = 0; i < config->n_ports && !host; i++) {
        host = config->ports[i].role == ROLE_HOST ? &config->ports[i] : NULL;
    }
    l3_proxy_host(sa->base.l3, host ? &host->peer_address : NULL);
}

/* An agent copies to its host and to nobody else: its SIDs are those of the last node of a way. */
static int
check_sids(const struct node_config *config, char **errp)
{
    for (size_t i = 0; i < config->n_sids; i++) {
        if (!(sid_behaviour(config->sids[i].behaviour)->roles & 1u << NODE_AGENT)) {
            say_why(errp, "a source agent has no SID with behaviour %s",
                    sid_behaviour_name(config->sids[i].behaviour));
            return EOPNOTSUPP;
        }
    }
    return 0;
}

/* Is the agent a leaf of the trees that have another source? */
static int
check_edge(const struct node_config *config, char **errp)
{
    for (size_t i = 0; i < config->n_trees; i++) {
        const struct tree_config *t = &config->trees[i];
        bool nodes_below = t->n_outer_da || !IN6_IS_ADDR_UNSPECIFIED(&t->replication_sid);

        for (size_t j = 0; j < t->n_branches; j++) {
            nodes_below |= t->branches[j].kind == BRANCH_NODE;
        }
        if (nodes_below && !tree_config_is_source(t, &config->address)) {
            say_why(errp,
                    "group %s: a source agent has no nodes below it in a tree that is not its "
                    "own",
                    t->group);
            return EOPNOTSUPP;
        }
    }
    return 0;
}

static int
configure(void *sa_, const struct node_config *config, uint64_t now, char **errp)
{
    struct srcagent *sa = sa_;
    struct encaps *encaps;
    int error = check_sids(config, errp);

    error = error ? error : check_edge(config, errp);
    error = error ? error : swedge_trees_check(&sa->edge.trees, config, errp);
    if (!error) {
        error = sources_prepare(&sa->sources, config, &encaps, errp);
    }
    if (!error) {
        node_base_configure(&sa->base, config, now);
        announce_host(sa, config);
        rate_configure(sa, config, now);
        sources_configure(sa, config, encaps, now); /* may send. */
        swedge_trees_configure(&sa->edge, config, now);
        node_cm_trees_changed(&sa->base, now);
    }
    return error;
}

static uint64_t
deadline(const void *sa_)
{
    const struct srcagent *sa = sa_;
    const uint64_t deadlines[] = {
        node_base_deadline(&sa->base),
        deadlines_first(&sa->deadlines),
        swedge_deadline(&sa->edge),
        rate_deadline(sa),
    };
    uint64_t first = UINT64_MAX;

    for (size_t i = 0; i < sizeof deadlines / sizeof deadlines[0]; i++) {
        first = deadlines[i] < first ? deadlines[i] : first;
    }
    return first;
}

/* Tells connections which queue pairs have sent since the last call. */
static void
tell_traffic(struct srcagent *sa)
{
    for (size_t i = 0; i < sa->sources.n; i++) {
        struct source *t = sa->sources.v[i];

        if (t->n_told != t->down.n_packets) {
            t->n_told = t->down.n_packets;
            node_cm_traffic(&sa->base, &t->config.proxy, &t->config.source, t->config.source_qpn);
        }
    }
}

static void
timer(void *sa_, uint64_t now)
{
    struct srcagent *sa = sa_;

    struct source *due = NULL;
    struct source *t;

    node_egress_set_now(sa->base.egress, now);
    /* Each is called once, whatever its next deadline is. */
    while ((t = deadlines_due(&sa->deadlines, now))) {
        deadlines_set(&sa->deadlines, &t->deadline, UINT64_MAX, t);
        t->due = due;
        due = t;
    }
    for (; due; due = due->due) {
        up_timer(sa, due, now);
    }
    swedge_timer(&sa->edge, now);
    rate_timer(sa, now);
    if (node_cm_deadline(&sa->base) <= now) {
        tell_traffic(sa); /* before it asks a program, or gives it up. */
    }
    node_base_timer(&sa->base, now);
}

/* Trees for display are those of the source, then those of the edge. */
static size_t
n_trees(const void *sa_)
{
    const struct srcagent *sa = sa_;

    return sa->sources.n + sa->edge.trees.n;
}

static void
get_source(const struct srcagent *sa, const struct source *t, struct tree_info *info)
{
    *info = (struct tree_info){
        .config = &t->config,
        .started = t->started,
        .down = &t->down,
        .n_waiting = t->flow.pacing.n,
        .refused = t->refusal.active,
        .refused_psn = t->refusal.psn,
        .refused_syndrome = t->refusal.syndrome,
        .cnps = t->config.n_branches ? t->aggregate->cnps : NULL,
    };
    aggregate_get_info(t->aggregate, &info->reverse);
    plane_use_info(&t->plane, &sa->base, t->config.planes, t->config.n_planes, info);
    info->plane_changes = t->drain.on;
    if (!t->config.root) {
        /* What it has seen of the group's progress. */
        info->reverse.started = t->started;
        info->reverse.anchored = t->anchored;
        info->reverse.h = t->h;
        info->reverse.m = info->reverse.f = t->una;
    }
}

static void
get_tree(const void *sa_, size_t i, struct tree_info *info)
{
    const struct srcagent *sa = sa_;

    if (i < sa->sources.n) {
        get_source(sa, sa->sources.v[i], info);
    } else {
        swedge_get_tree(&sa->edge, i - sa->sources.n, info);
    }
}

static bool
get_branch(const void *sa_, size_t i, uint32_t id, struct reverse_branch_info *info)
{
    const struct srcagent *sa = sa_;

    return i < sa->sources.n ? aggregate_get_branch(sa->sources.v[i]->aggregate, id, info)
                             : swedge_get_branch(&sa->edge, i - sa->sources.n, id, info);
}

static enum messages_answer
find_message(const void *sa_, size_t i, psn_t psn, uint64_t *number)
{
    const struct srcagent *sa = sa_;

    return i < sa->sources.n ? messages_find(sa->sources.v[i]->messages, psn, number)
                             : MESSAGE_UNKNOWN;
}

const struct node_class srcagent_class = {
    .name = "srcagent",
    .role = NODE_AGENT,
    .create = create,
    .destroy = destroy,
    .configure = configure,
    .configure_connections = node_cm_configure,
    .input = srcagent_input,
    .deadline = deadline,
    .timer = timer,
    .set_tracer = node_base_set_tracer,
    .drops = node_base_drops,
    .l3 = node_base_l3,
    .egress = node_base_egress,
    .congestion = node_base_congestion,
    .sid = node_base_sid,
    .n_trees = n_trees,
    .tree = get_tree,
    .branch = get_branch,
    .n_flows = rate_n_flows,
    .flow = rate_flow,
    .path = headend_path,
    .make_naks = headend_make_naks,
    .probe = prober_probe,
    .follow_ways = node_base_follow_ways,
    .n_connections = node_cm_n,
    .connection = node_cm_get,
    .connections_version = node_cm_version,
    .message = find_message,
};
