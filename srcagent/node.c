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
#include "lib/why.h"
#include "srcagent/srcagent.h"

static void *
create(const struct node_io *io, struct packet_pool *pool)
{
    struct srcagent *sa = must_calloc(1, sizeof *sa);
    node_base_init(&sa->base, io, pool);
    sa->base.tell_host = fast_cnp_tell;
    pacer_init(&sa->rates.pacer);
    return sa;
}

static void
destroy(void *sa_)
{
    struct srcagent *sa = sa_;

    sources_uninit(sa);
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

/* An agent has a response SID and no other, because there is nothing else that it can do. */
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

static int
configure(void *sa_, const struct node_config *config, uint64_t now, char **errp)
{
    struct srcagent *sa = sa_;
    struct encaps *encaps;
    int error = check_sids(config, errp);

    if (!error) {
        error = sources_prepare(&sa->sources, config, &encaps, errp);
    }
    if (!error) {
        node_base_configure(&sa->base, config, now);
        announce_host(sa, config);
        rate_configure(sa, config, now);
        sources_configure(sa, config, encaps, now); /* may send. */
    }
    return error;
}

static uint64_t
deadline(const void *sa_)
{
    const struct srcagent *sa = sa_;
    uint64_t base = node_base_deadline(&sa->base);
    uint64_t trees = deadlines_first(&sa->deadlines);
    uint64_t rates = rate_deadline(sa);
    uint64_t first = base < trees ? base : trees;

    return first < rates ? first : rates;
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
    rate_timer(sa, now);
    if (node_cm_deadline(&sa->base) <= now) {
        tell_traffic(sa); /* before it asks a program, or gives it up. */
    }
    node_base_timer(&sa->base, now);
}

static size_t
n_trees(const void *sa)
{
    return ((const struct srcagent *) sa)->sources.n;
}

static void
get_tree(const void *sa_, size_t i, struct tree_info *info)
{
    const struct source *t = ((const struct srcagent *) sa_)->sources.v[i];

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
    if (!t->config.root) {
        /* What it has seen of the group's progress. */
        info->reverse.started = t->started;
        info->reverse.anchored = t->anchored;
        info->reverse.h = t->h;
        info->reverse.m = info->reverse.f = t->una;
    }
}

static bool
get_branch(const void *sa, size_t i, uint32_t id, struct reverse_branch_info *info)
{
    const struct source *t = ((const struct srcagent *) sa)->sources.v[i];
    return aggregate_get_branch(t->aggregate, id, info);
}

static enum messages_answer
find_message(const void *sa, size_t i, psn_t psn, uint64_t *number)
{
    return messages_find(((const struct srcagent *) sa)->sources.v[i]->messages, psn, number);
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
    .n_connections = node_cm_n,
    .connection = node_cm_get,
    .connections_version = node_cm_version,
    .message = find_message,
};
