/* SPDX-License-Identifier: Apache-2.0
 *
 * Main thread of swedge and srcagent.
 *
 * Configuration comes from the registry only, as whole snapshots; while the
 * registry is away the last good one stays in force.  A generation is reported
 * as applied when the node runs it and all of its ports are open.
 */
#include <config.h>

#include "ctl/node/daemon.h"

#include <poll.h>
#include <sys/eventfd.h>

#include "ctl/node/agent-registry.h"
#include "ctl/node/port-helper.h"
#include "ctl/process/daemon-common.h"
#include "ctl/registry/view.h"
#include "lib/figure.h"
#include "lib/packet-text.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/util.h"
#include "openvswitch/vlog.h"
#include "timeval.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(node_daemon);

#define RETRY_MSEC    1000
#define REPORT_MSEC   5    /* between looks at what workers have found out. */
#define RATES_MSEC    1000 /* at most, between looks at rates. */
#define PROBES_MSEC   200  /* likewise, at probes. */

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
    return b->lost && (b->lost != LOSS_REFUSED || bc->kind == BRANCH_RECEIVER || b->pruned);
}

/* Without a registry the loss is logged alone. */
static void
report_loss(struct agent_registry *registry, const struct tree_config *tree,
            const struct branch_config *bc, const struct reverse_branch_info *b)
{
    char why[128];

    if (b->lost == LOSS_SILENT) {
        char time[FIGURE_SIZE];

        figure_format_msec(tree->policy.liveness_msec, time);
        snprintf(why, sizeof why, "no progress for %s at PSN %" PRIu32, time, b->una.v);
    } else if (b->lost == LOSS_UNANSWERED) {
        /* Otherwise it was asked at once, and the liveness time has nothing to do with it. */
        bool timed = tree->policy.liveness_msec && bc->join != BRANCH_ASKED && !bc->doubt;
        char time[FIGURE_SIZE], asked[FIGURE_SIZE + 16] = "", at[24] = "";

        figure_format_msec(tree->policy.liveness_msec, time);
        if (timed) {
            snprintf(asked, sizeof asked, ", asked for %s", time);
        }
        if (!b->waits) {
            snprintf(at, sizeof at, " at PSN %" PRIu32, b->una.v);
        }
        snprintf(why, sizeof why, "its queue pair does not answer%s%s", asked, at);
    } else if (b->lost == LOSS_ELSEWHERE) {
        snprintf(why, sizeof why, "its queue pair does not expect PSN %" PRIu32, bc->psn.v);
    } else if (b->lost == LOSS_HALF) {
        snprintf(why, sizeof why,
                 VIEW_RESTART_NEEDED
                 "its queue pair had a part of a message when the source changed");
    } else if (b->lost == LOSS_SLOW) {
        snprintf(why, sizeof why, "slower than %" PRIu32 " packets/s at PSN %" PRIu32,
                 tree->policy.min_rate, b->una.v);
    } else {
        snprintf(why, sizeof why, "NAK 0x%02x (%s) at PSN %" PRIu32, b->code, nak_text(b->code),
                 b->una.v);
    }
    if (!registry || agent_registry_lost(registry, tree, b->id, why, b->waits ? NULL : &b->una)) {
        VLOG_WARN("group %s, epoch %" PRIu32 ": %s %s is lost%s: %s", tree->group, tree->epoch,
                  bc->kind == BRANCH_RECEIVER ? "member" : "node", bc->name,
                  b->pruned ? " and not counted any more" : "", why);
    }
}

static void
report_losses(const struct node_worker *w, struct agent_registry *registry, size_t tree,
              const struct tree_config *config)
{
    for (size_t i = 0; i < config->n_branches; i++) {
        const struct branch_config *bc = &config->branches[i];
        struct reverse_branch_info b;

        if (w->daemon->class->branch(w->node, tree, bc->id, &b) && is_own_loss(bc, &b)) {
            report_loss(registry, config, bc, &b);
        }
    }
}

/* Reports from which PSN on a branch counts that has waited. */
static void
report_joined(struct agent_registry *registry, const struct tree_config *tree,
              const struct branch_config *bc, const struct reverse_branch_info *b)
{
    if (agent_registry_note(registry, tree, bc->id, NOTE_JOINED, b->first.v)) {
        VLOG_INFO("group %s, epoch %" PRIu32 ": %s %s counts from PSN %" PRIu32 " on", tree->group,
                  tree->epoch, bc->kind == BRANCH_RECEIVER ? "member" : "node", bc->name,
                  b->first.v);
    }
}

/* Reports where a queue pair stands that has served an earlier source. */
static void
report_found(struct agent_registry *registry, const struct tree_config *tree,
             const struct branch_config *bc, const struct reverse_branch_info *b)
{
    if (agent_registry_note(registry, tree, bc->id, NOTE_FOUND, b->una.v)) {
        VLOG_INFO("group %s, epoch %" PRIu32 ": the queue pair of member %s expects PSN %" PRIu32,
                  tree->group, tree->epoch, bc->name, b->una.v);
    }
}

/* Reports whether a queue pair lives that was doubted. */
static void
report_doubt(struct agent_registry *registry, const struct tree_config *tree,
             const struct branch_config *bc, const struct reverse_branch_info *b)
{
    enum branch_note note = b->unanswered ? NOTE_SILENT : NOTE_ANSWERED;

    if (agent_registry_note(registry, tree, bc->id, note, bc->doubt)) {
        VLOG_INFO("group %s, epoch %" PRIu32 ": the queue pair of member %s %s", tree->group,
                  tree->epoch, bc->name, b->unanswered ? "does not answer" : "answers");
    }
}

static void
report_decided(const struct node_worker *w, struct agent_registry *registry, size_t tree,
               const struct tree_config *config)
{
    for (size_t i = 0; i < config->n_branches; i++) {
        const struct branch_config *bc = &config->branches[i];
        struct reverse_branch_info b;

        if (!w->daemon->class->branch(w->node, tree, bc->id, &b)) {
            continue;
        }
        if (bc->join != BRANCH_COUNTS && b.late) {
            report_joined(registry, config, bc, &b);
        }
        if (b.found) {
            report_found(registry, config, bc, &b);
        }
        if (bc->doubt && !b.doubted && !b.lost) {
            report_doubt(registry, config, bc, &b);
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
    if (agent_registry_slow(registry, tree, bc->id, b->slow ? how : NULL)) {
        VLOG_WARN("group %s, epoch %" PRIu32 ": %s %s is %s%s", tree->group, tree->epoch,
                  bc->kind == BRANCH_RECEIVER ? "member" : "node", bc->name,
                  b->slow ? "slow: " : "not slow any more", b->slow ? how : "");
    }
}

static void
report_paces(const struct node_worker *w, struct agent_registry *registry, size_t tree,
             const struct tree_config *config)
{
    agent_registry_has_tree(registry, config);
    for (size_t i = 0; i < config->n_branches; i++) {
        struct reverse_branch_info b;

        if (w->daemon->class->branch(w->node, tree, config->branches[i].id, &b)) {
            report_pace(registry, config, &config->branches[i], &b);
        }
    }
}

struct tree_ref {
    const struct node_worker *worker;
    size_t tree;
};

static enum messages_answer
find_message(const void *ref_, psn_t psn, uint64_t *number)
{
    const struct tree_ref *ref = ref_;

    return ref->worker->daemon->class->message(ref->worker->node, ref->tree, psn, number);
}

/* Does 'n' differ from the last number of the tree?  Remembers 'n'. */
static bool
is_news(struct simap *last, const struct tree_config *tree, uint64_t n)
{
    char name[20];

    snprintf(name, sizeof name, "%" PRIx64, tree->row);
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

/* Reports what the worker has found out about a tree, which may have many branches.  So branches
 * are looked at only when one more is lost, or its pace has changed, and after a new
 * configuration. */
static void
report_tree(struct node_worker *w, struct agent_registry *registry, size_t i)
{
    struct node_daemon *d = w->daemon;
    struct tree_info info;

    d->class->tree(w->node, i, &info);
    if (info.started) {
        agent_registry_started(registry, info.config);
    }
    agent_registry_blank(registry, info.config, info.reverse.blank);
    if (info.auth && info.auth->n_refused) {
        report_refused(d, &info);
    }
    uint64_t n_decided = info.reverse.n_joined + info.reverse.n_decided;

    if (info.reverse.n_lost && is_news(&d->lost, info.config, info.reverse.n_lost)) {
        report_losses(w, registry, i, info.config);
    }
    if (n_decided && is_news(&d->decided, info.config, n_decided)) {
        report_decided(w, registry, i, info.config);
        report_losses(w, registry, i, info.config);
    }
    if (info.reverse.n_paced && is_news(&d->paced, info.config, info.reverse.n_paced)) {
        report_paces(w, registry, i, info.config);
    }
    if (d->class->message) {
        agent_registry_answer(registry, info.config, find_message, &(struct tree_ref){w, i});
    }
}

static bool
has_tree(const struct node_config *c, uint64_t row)
{
    for (size_t i = 0; i < c->n_trees; i++) {
        if (c->trees[i].row == row) {
            return true;
        }
    }
    return false;
}

/* Logs what the last look has not found of trees that end with d->config: the registry has no row for it
 * any more.  The node above an edge may have told it first that the edge has lost its receivers. */
static void
log_last_losses(struct node_daemon *d)
{
    for (unsigned i = 0; i < d->n_workers; i++) {
        struct node_worker *w = d->workers[i];

        for (size_t j = 0; j < d->class->n_trees(w->node); j++) {
            struct tree_info info;

            d->class->tree(w->node, j, &info);
            if (info.reverse.n_lost && is_news(&d->lost, info.config, info.reverse.n_lost)
                && !has_tree(&d->config, info.config->row)) {
                report_losses(w, NULL, j, info.config);
            }
        }
    }
}

static void
report_all_trees(struct node_daemon *d, struct agent_registry *registry)
{
    for (unsigned i = 0; i < d->n_workers; i++) {
        struct node_worker *w = d->workers[i];

        for (size_t j = 0; j < d->class->n_trees(w->node); j++) {
            report_tree(w, registry, j);
        }
        w->n_unseen = 0;
    }
}

/* Reports what a worker has found out about some of its trees.  It stands still meanwhile.  So this
 * looks at few trees, and at all in turn until nothing more can have happened.  'active': something
 * may have happened since the last call. */
static void
report_some_trees(struct node_worker *w, struct agent_registry *registry, bool active)
{
    size_t n = w->daemon->class->n_trees(w->node);

    w->n_unseen = active ? n : MIN(w->n_unseen, n);
    for (size_t i = 0; i < TREES_AT_ONCE && w->n_unseen; i++) {
        w->next_tree = w->next_tree < n ? w->next_tree : 0;
        report_tree(w, registry, w->next_tree++);
        w->n_unseen--;
    }
}

/* All trees are to be looked at, although nothing may have happened at them.  Returns true. */
static bool
look_at_all_trees(const struct node_daemon *d)
{
    for (unsigned i = 0; i < d->n_workers; i++) {
        d->workers[i]->n_unseen = SIZE_MAX;
    }
    return true;
}

/* Reports the RDMA-CM connections of all workers, if anything about them has changed. */
static void
report_connections(struct node_daemon *d, struct agent_registry *registry)
{
    uint64_t versions = 0;

    for (unsigned i = 0; i < d->n_workers; i++) {
        versions += d->class->connections_version(d->workers[i]->node);
    }
    if (versions == d->connections) {
        return;
    }
    d->connections = versions;
    agent_registry_clear_connections(registry);
    for (unsigned i = 0; i < d->n_workers; i++) {
        const struct node_worker *w = d->workers[i];

        for (size_t j = 0; j < d->class->n_connections(w->node); j++) {
            struct cm_conn_info info;

            d->class->connection(w->node, j, &info);
            agent_registry_add_connection(registry, &info);
        }
    }
}

static const struct tree_config *
find_group(const struct node_config *c, const struct flow_info *f)
{
    for (size_t i = 0; i < c->n_trees; i++) {
        if (IN6_ARE_ADDR_EQUAL(&c->trees[i].proxy, &f->dst)
            && c->trees[i].designated_qpn == f->dest_qp) {
            return &c->trees[i];
        }
    }
    return NULL;
}

/* Source agent: reports the rates to which groups are limited.  They grow without news. */
static void
report_rates(struct node_daemon *d, struct agent_registry *registry)
{
    if (!d->class->n_flows) {
        return;
    }
    agent_registry_clear_rates(registry);
    for (unsigned i = 0; i < d->n_workers; i++) {
        const void *node = d->workers[i]->node;
        size_t n = d->class->n_flows(node);

        for (size_t j = 0; j < n; j++) {
            struct flow_info f = {.group = NULL};

            d->class->flow(node, j, &f);
            if (!f.group) {
                break; /* groups come first, and there may be many others. */
            }
            const struct tree_config *tree = f.rate ? find_group(&d->config, &f) : NULL;
            if (tree) {
                agent_registry_rate(registry, tree, f.rate, f.last_cause, &f.last_node);
            }
        }
    }
    agent_registry_end_rates(registry);
    d->rates_at = time_msec() + RATES_MSEC;
}

/* Has the node probes? */
static bool
has_probes(const struct node_daemon *d)
{
    return d->class->probe && d->config.n_probes;
}

/* Reports what the first worker's probes have found out: others have none. */
static void
report_probes(struct node_daemon *d, struct agent_registry *registry)
{
    struct probe_info info;

    if (!d->class->probe || time_msec() < d->probes_at) {
        return;
    }
    agent_registry_clear_probes(registry);
    for (size_t i = 0; d->class->probe(d->workers[0]->node, i, &info); i++) {
        agent_registry_add_probe(registry, &info, node_daemon_now());
    }
    agent_registry_end_probes(registry);
    d->probes_at = time_msec() + PROBES_MSEC;
}

/* What the first worker knows of ways is news to the others, which have groups' packets. */
static void
share_ways(struct node_daemon *d)
{
    for (unsigned i = 1; i < d->n_workers && d->class->follow_ways && d->config.n_probes; i++) {
        d->class->follow_ways(d->workers[i]->node, d->workers[0]->node, node_daemon_now());
    }
}

/* Reports what workers have told that there is to report, but not too often: they stand still
 * meanwhile.  Returns whether something is left. */
static bool
report(struct node_daemon *d, struct agent_registry *registry, bool more)
{
    eventfd_t told;

    bool rates = d->class->n_flows && time_msec() >= d->rates_at;
    bool probes = has_probes(d) && time_msec() >= d->probes_at;

    if (time_msec() < d->report_at
        || (eventfd_read(d->news_fd, &told) && !more && !rates && !probes)) {
        return more;
    }
    more = false;
    node_workers_stop(d);
    for (unsigned i = 0; i < d->n_workers; i++) {
        struct node_worker *w = d->workers[i];

        report_some_trees(w, registry, atomic_exchange(&w->has_told, false));
        more |= w->n_unseen > 0;
    }
    share_ways(d);
    report_connections(d, registry);
    report_rates(d, registry);
    report_probes(d, registry);
    d->complete = node_ports_all_open(d);
    node_workers_go(d);
    d->report_at = time_msec() + REPORT_MSEC;
    return more;
}

static void
report_wait(const struct node_daemon *d, bool more)
{
    if (time_msec() < d->report_at) {
        poll_timer_wait_until(d->report_at);
    } else if (more) {
        poll_immediate_wake();
    } else {
        poll_fd_wait(d->news_fd, POLLIN);
        if (d->class->n_flows) {
            poll_timer_wait_until(d->rates_at);
        }
        if (has_probes(d)) {
            poll_timer_wait_until(d->probes_at);
        }
    }
}

/* The part of the configuration that is a worker's: all but the trees that other workers have, and the
 * probes, which are the first one's: it gets what is no group's (lib/steer.h).  Its trees are
 * borrowed; the caller frees the array. */
static struct node_config
config_of(const struct node_worker *w)
{
    const struct node_daemon *d = w->daemon;
    struct node_config part = d->config;

    part.trees = xcalloc(MAX(d->config.n_trees, 1), sizeof *part.trees);
    part.n_trees = 0;
    if (w->index) {
        part.n_probes = part.n_probers = 0;
    }
    for (size_t i = 0; i < d->config.n_trees; i++) {
        if (steer_proxy(d->n_workers, &d->config.trees[i].proxy) == w->index) {
            part.trees[part.n_trees++] = d->config.trees[i];
        }
    }
    return part;
}

/* Gives each worker its part; 0 or an errno. */
static int
configure_workers(struct node_daemon *d, char **why)
{
    uint64_t now = node_daemon_now();
    int error = 0;

    for (unsigned i = 0; i < d->n_workers && !error; i++) {
        struct node_worker *w = d->workers[i];
        struct node_config part = config_of(w);

        error = d->class->configure(w->node, &part, now, why);
        tx_queues_flush(&w->tx_queues);
        free(part.trees);
    }
    return error;
}

/* Gives each worker the RDMA-CM connections with its Proxy Addresses.  What they have become is
 * reported at once: a connection that has a row by now is not to get another. */
static void
configure_connections(struct node_daemon *d, struct agent_registry *registry,
                      const struct cm_conn_config *connections, size_t n)
{
    struct cm_conn_config *part = xcalloc(MAX(n, 1), sizeof *part);
    uint64_t now = node_daemon_now();

    node_workers_stop(d);
    for (unsigned i = 0; i < d->n_workers; i++) {
        struct node_worker *w = d->workers[i];
        size_t n_part = 0;

        for (size_t j = 0; j < n; j++) {
            if (steer_proxy(d->n_workers, &connections[j].proxy) == i) {
                part[n_part++] = connections[j];
            }
        }
        d->class->configure_connections(w->node, part, n_part, now);
        tx_queues_flush(&w->tx_queues);
    }
    report_connections(d, registry);
    node_workers_go(d);
    free(part);
}

/* What one thread only can do: then a sentence, to be freed; otherwise NULL. */
static char *
needs_one_thread(const struct node_daemon *d)
{
    for (size_t i = 0; i < d->config.n_ports && d->n_workers > 1; i++) {
        const struct port_config *pc = &d->config.ports[i];

        if (!impair_is_none(&pc->rx) || !impair_is_none(&pc->tx)) {
            return xasprintf("port %s: a link that is made bad needs --threads=1", pc->name);
        }
    }
    return NULL;
}

/* Brings workers and ports to d->config as far as that is possible, and reports how far.  What had
 * started and was lost is reported first: castd relies on it. */
static void
apply(struct node_daemon *d, struct agent_registry *registry)
{
    node_workers_stop(d);
    char *why = d->pending ? needs_one_thread(d) : NULL;
    if (d->pending) {
        log_last_losses(d);
    }
    if (!why && d->pending && !configure_workers(d, &why)) {
        d->pending = false;
        node_ports_configure(d);
    }
    simap_clear(&d->lost);
    simap_clear(&d->decided);
    simap_clear(&d->paced);
    report_all_trees(d, registry);
    report_connections(d, registry);
    d->complete = !d->pending && node_ports_open(d, &why);
    node_workers_go(d);
    if (d->complete) {
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

/* Is something not as it should be?  A configuration was refused (members in flight may have
 * landed), or a device is missing. */
static bool
must_retry(const struct node_daemon *d)
{
    return d->pending || !d->complete || d->why;
}

/* The watchdog is for all threads: with a worker that hangs the main thread does not get through
 * here. */
static void
watch_workers(struct node_daemon *d, const struct daemon *daemon)
{
    if (daemon->watchdog_msec && time_msec() >= daemon->watchdog_next) {
        node_workers_stop(d);
        node_workers_go(d);
    }
}

/* Without it no port could be opened any more, and only who starts the daemon can start it. */
static void
watch_helper(const struct node_daemon *d)
{
    if (port_helper_has_ended(d->helper)) {
        VLOG_FATAL("the process that opens ports has ended");
    }
}

static void
run(struct node_daemon *d, struct daemon *daemon)
{
    struct agent_registry *registry =
        agent_registry_create(daemon->db, daemon->node, 1u << d->class->role, daemon->control);

    /* Serves without a registry, too: an agent keeps running what it runs while the registry is
     * away. */
    daemon_serving(daemon);
    bool more = false;
    while (!daemon->exiting) {
        const struct cm_conn_config *connections;
        size_t n_connections;

        watch_workers(d, daemon);
        daemon_run(daemon);
        watch_helper(d);
        if (agent_registry_run(registry, &d->config)) {
            d->pending = true;
            free(d->why);
            d->why = NULL;
            apply(d, registry);
        } else if (must_retry(d) && time_msec() >= d->retry_at) {
            apply(d, registry);
        }
        if (agent_registry_connections(registry, &connections, &n_connections)) {
            configure_connections(d, registry, connections, n_connections);
        }
        if (agent_registry_asks(registry)) {
            more = look_at_all_trees(d);
        }
        more = report(d, registry, more);
        report_wait(d, more);
        if (must_retry(d)) {
            poll_timer_wait_until(d->retry_at);
        }
        agent_registry_wait(registry);
        port_helper_wait(d->helper);
        daemon_wait(daemon);
        poll_block();
    }
    agent_registry_destroy(registry);
}

static struct port_helper *
start_helper(const struct daemon *daemon)
{
    char *why = NULL;
    struct port_helper *helper =
        port_helper_start(daemon->netns_fd, daemon_filters_syscalls(daemon), &why);

    if (!helper) {
        daemon_fail("%s", why);
    }
    return helper;
}

int
node_daemon_main(int argc, char *argv[], const struct node_class *class, const char *purpose)
{
    struct daemon daemon;
    daemon_init(&daemon, argc, argv, DAEMON_FORWARDER, purpose);
    port_use_offload(!daemon.no_offload);

    struct node_daemon *d = xzalloc(sizeof *d);
    d->class = class;
    d->name = daemon.node;
    d->has_netns = daemon.netns_fd >= 0;
    d->helper = start_helper(&daemon);
    daemon_start(&daemon);
    simap_init(&d->refused);
    simap_init(&d->lost);
    simap_init(&d->decided);
    simap_init(&d->paced);
    node_workers_create(d, daemon.n_threads);
    node_show_init(d);
    node_capture_init(d);
    node_trace_init(d);
    node_path_naks_init(d);
    daemon_ready(&daemon);
    node_workers_start(d);

    run(d, &daemon);

    node_workers_destroy(d);
    port_helper_close(d->helper);
    node_config_uninit(&d->config);
    free(d->why);
    simap_destroy(&d->refused);
    simap_destroy(&d->lost);
    simap_destroy(&d->decided);
    simap_destroy(&d->paced);
    free(d);
    daemon_done(&daemon);
    return 0;
}
