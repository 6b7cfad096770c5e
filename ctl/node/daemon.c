/* SPDX-License-Identifier: Apache-2.0
 *
 * Main loop of swedge and srcagent.
 *
 * Configuration comes from the registry only, as whole snapshots; while the
 * registry is away the last good one stays in force.  A generation is reported
 * as applied when the node runs it and all of its ports are open.
 */
#include <config.h>

#include "ctl/node/daemon.h"

#include "ctl/node/agent-registry.h"
#include "ctl/process/daemon-common.h"
#include "lib/figure.h"
#include "lib/packet-text.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/util.h"
#include "openvswitch/vlog.h"
#include "timeval.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(node_daemon);

#define POOL_SIZE     4096
#define RETRY_MSEC    1000

#define TREES_AT_ONCE 64

uint64_t
node_daemon_now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t) ts.tv_sec * 1000000 + (uint64_t) ts.tv_nsec / 1000;
}

/* Is this loss this node's to report?  A fatal NAK that a node below has sent up is not: that node
 * has lost the branch. */
static bool
is_own_loss(const struct branch_config *bc, const struct reverse_branch_info *b)
{
    return b->lost == LOSS_SILENT || b->lost == LOSS_SLOW
           || (b->lost == LOSS_REFUSED && (bc->kind == BRANCH_RECEIVER || b->pruned));
}

static void
report_loss(struct agent_registry *registry, const struct tree_config *tree,
            const struct branch_config *bc, const struct reverse_branch_info *b)
{
    char why[128];

    if (b->lost == LOSS_SILENT) {
        char time[FIGURE_SIZE];

        figure_format_msec(tree->policy.liveness_msec, time);
        snprintf(why, sizeof why, "no progress for %s at PSN %" PRIu32, time, b->una.v);
    } else if (b->lost == LOSS_SLOW) {
        snprintf(why, sizeof why, "slower than %" PRIu32 " packets/s at PSN %" PRIu32,
                 tree->policy.min_rate, b->una.v);
    } else {
        snprintf(why, sizeof why, "NAK 0x%02x (%s) at PSN %" PRIu32, b->code, nak_text(b->code),
                 b->una.v);
    }
    if (agent_registry_lost(registry, &tree->proxy, tree->epoch, b->id, why)) {
        VLOG_WARN("group %s, epoch %" PRIu32 ": %s %s is lost%s: %s", tree->group, tree->epoch,
                  bc->kind == BRANCH_RECEIVER ? "member" : "node", bc->name,
                  b->pruned ? " and not counted any more" : "", why);
    }
}

static void
report_losses(const struct node_daemon *d, struct agent_registry *registry, size_t tree,
              const struct tree_config *config)
{
    for (size_t i = 0; i < config->n_branches; i++) {
        const struct branch_config *bc = &config->branches[i];
        struct reverse_branch_info b;

        if (d->class->branch(d->node, tree, bc->id, &b) && is_own_loss(bc, &b)) {
            report_loss(registry, config, bc, &b);
        }
    }
}

static void
report_pace(struct agent_registry *registry, const struct tree_config *tree,
            const struct branch_config *bc, const struct reverse_branch_info *b)
{
    double rate = 1000.0 * (double) b->n_confirmed / MAX(tree->policy.liveness_msec, 1);
    char how[128];

    snprintf(how, sizeof how,
             rate < 10 ? "confirms %.2g packets/s, the least is %" PRIu32
                       : "confirms %.0f packets/s, the least is %" PRIu32,
             rate, tree->policy.min_rate);
    if (agent_registry_slow(registry, &tree->proxy, tree->epoch, bc->id, b->slow ? how : NULL)) {
        VLOG_WARN("group %s, epoch %" PRIu32 ": %s %s is %s%s", tree->group, tree->epoch,
                  bc->kind == BRANCH_RECEIVER ? "member" : "node", bc->name,
                  b->slow ? "slow: " : "not slow any more", b->slow ? how : "");
    }
}

static void
report_paces(const struct node_daemon *d, struct agent_registry *registry, size_t tree,
             const struct tree_config *config)
{
    agent_registry_has_tree(registry, config);
    for (size_t i = 0; i < config->n_branches; i++) {
        struct reverse_branch_info b;

        if (d->class->branch(d->node, tree, config->branches[i].id, &b)) {
            report_pace(registry, config, &config->branches[i], &b);
        }
    }
}

/* Does 'n' differ from the last number of the tree's group epoch?  Remembers 'n'. */
static bool
is_news(struct simap *last, const struct tree_config *tree, uint64_t n)
{
    char name[NAME_SIZE + 16];

    snprintf(name, sizeof name, "%s/%" PRIu32, tree->group, tree->epoch);
    bool news = simap_get(last, name) != (unsigned int) n;
    if (news) {
        simap_put(last, name, (unsigned int) n);
    }
    return news;
}

/* Logs packets that are not authentic: the last one of each group, at a limited rate. */
static void
report_refused(struct node_daemon *d, const struct tree_info *info)
{
    static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(6, 3);
    const struct auth_stats *s = info->auth;

    if (!is_news(&d->refused, info->config, s->n_refused)) {
        return;
    }
    VLOG_WARN_RL(&rl,
                 "node %s: group %s, epoch %" PRIu32 ": %" PRIu64
                 " packets are not authentic, the last with key %" PRIu32 ": %s",
                 d->config.name, info->config->group, info->config->epoch, s->n_refused,
                 s->refused.key, drop_help(s->refused.why));
}

/* Reports what the node has found out about a tree, which may have many branches.  So branches are
 * looked at only when one more is lost, or its pace has changed, and after a new configuration. */
static void
report_tree(struct node_daemon *d, struct agent_registry *registry, size_t i)
{
    struct tree_info info;

    d->class->tree(d->node, i, &info);
    if (info.started) {
        agent_registry_started(registry, &info.config->proxy, info.config->epoch);
    }
    if (info.auth && info.auth->n_refused) {
        report_refused(d, &info);
    }
    if (info.reverse.n_lost && is_news(&d->lost, info.config, info.reverse.n_lost)) {
        report_losses(d, registry, i, info.config);
    }
    if (info.reverse.n_paced && is_news(&d->paced, info.config, info.reverse.n_paced)) {
        report_paces(d, registry, i, info.config);
    }
}

static void
report_all_trees(struct node_daemon *d, struct agent_registry *registry)
{
    for (size_t i = 0; i < d->class->n_trees(d->node); i++) {
        report_tree(d, registry, i);
    }
    d->n_unseen = 0;
}

/* Reports what the node has found out about some of its trees.  This runs after each burst of
 * packets.  So it looks at few trees, and at all in turn until nothing more can have happened.
 * 'active': something may have happened since the last call. */
static void
report_some_trees(struct node_daemon *d, struct agent_registry *registry, bool active)
{
    size_t n = d->class->n_trees(d->node);

    d->n_unseen = active ? n : MIN(d->n_unseen, n);
    for (size_t i = 0; i < TREES_AT_ONCE && d->n_unseen; i++) {
        d->next_tree = d->next_tree < n ? d->next_tree : 0;
        report_tree(d, registry, d->next_tree++);
        d->n_unseen--;
    }
}

/* Brings node and ports to d->config as far as that is possible, and reports how far.  What had
 * started and was lost is reported first: castd relies on it. */
static void
apply(struct node_daemon *d, struct agent_registry *registry)
{
    char *why = NULL;

    if (d->pending && !d->class->configure(d->node, &d->config, node_daemon_now(), &why)) {
        d->pending = false;
        node_ports_configure(d);
    }
    simap_clear(&d->lost);
    simap_clear(&d->paced);
    report_all_trees(d, registry);
    if (!d->pending && node_ports_open(d, &why)) {
        agent_registry_applied(registry, d->config.generation);
    } else {
        ovs_assert(why);
        if (!d->why || strcmp(d->why, why)) {
            VLOG_WARN("generation %" PRIu64 ": %s", d->config.generation, why);
            agent_registry_refused(registry, d->config.generation, why);
        }
    }
    free(d->why);
    d->why = why;
    d->retry_at = time_msec() + RETRY_MSEC;
}

static bool
is_complete(const struct node_daemon *d)
{
    return !d->pending && node_ports_all_open(d);
}

/* Is something not as it should be?  A configuration was refused (members in flight may have
 * landed), or a device is missing. */
static bool
must_retry(const struct node_daemon *d)
{
    return !is_complete(d) || d->why;
}

static void
run(struct node_daemon *d, struct daemon *daemon)
{
    struct agent_registry *registry =
        agent_registry_create(daemon->db, daemon->node, 1u << d->class->role, daemon->control);

    /* Serves without a registry, too: an agent keeps running what it runs while the registry is
     * away. */
    daemon_serving(daemon);
    while (!daemon->exiting) {
        struct node_config config;

        daemon_run(daemon);
        if (agent_registry_run(registry, &config)) {
            node_config_uninit(&d->config);
            d->config = config;
            d->pending = true;
            free(d->why);
            d->why = NULL;
            apply(d, registry);
        } else if (must_retry(d) && time_msec() >= d->retry_at) {
            apply(d, registry);
        }
        uint64_t n_input = d->n_input;
        bool more = node_ports_run(d, node_daemon_now());
        node_impair_run(d, node_daemon_now());
        uint64_t now = node_daemon_now();
        bool timed_out = d->class->deadline(d->node) <= now;
        if (timed_out) {
            d->class->timer(d->node, now);
        }
        tx_queues_flush(&d->tx_queues);
        report_some_trees(d, registry, timed_out || d->n_input != n_input);

        uint64_t deadline = d->class->deadline(d->node);
        if (more || d->n_unseen) {
            poll_immediate_wake();
        } else if (deadline != UINT64_MAX) {
            poll_timer_wait((long long int) (deadline > now ? (deadline - now + 999) / 1000 : 0));
        }
        if (must_retry(d)) {
            poll_timer_wait_until(d->retry_at);
        }
        node_ports_wait(d);
        node_impair_wait(d, now);
        agent_registry_wait(registry);
        daemon_wait(daemon);
        poll_block();
    }
    agent_registry_destroy(registry);
}

int
node_daemon_main(int argc, char *argv[], const struct node_class *class, const char *purpose)
{
    struct daemon daemon;
    daemon_init(&daemon, argc, argv, DAEMON_AGENT, purpose);

    struct node_daemon *d = xzalloc(sizeof *d);
    d->class = class;
    d->pool = packet_pool_create(POOL_SIZE);
    tx_queues_init(&d->tx_queues, d->pool, node_ports_send, d);
    d->netns_fd = daemon.netns_fd;
    d->timer_fd = -1;
    simap_init(&d->refused);
    simap_init(&d->lost);
    simap_init(&d->paced);
    d->node = class->create(&(struct node_io){.tx = node_ports_tx, .mtu = node_ports_mtu, .aux = d},
                            d->pool);
    node_show_init(d);
    node_capture_init(d);
    node_trace_init(d);
    daemon_ready(&daemon);

    run(d, &daemon);

    node_ports_close(d);
    node_config_uninit(&d->config);
    free(d->why);
    simap_destroy(&d->refused);
    simap_destroy(&d->lost);
    simap_destroy(&d->paced);
    class->destroy(d->node);
    tx_queues_uninit(&d->tx_queues);
    packet_pool_destroy(d->pool);
    free(d);
    daemon_done(&daemon);
    return 0;
}
