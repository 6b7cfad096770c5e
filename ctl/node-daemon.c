/* SPDX-License-Identifier: Apache-2.0
 *
 * Main loop of swedge and srcagent.
 *
 * Configuration comes from the registry only, as whole snapshots; while the
 * registry is away the last good one stays in force.  A generation is reported
 * as applied when the node runs it and all of its ports are open.
 */
#include <config.h>

#include "ctl/node-daemon.h"

#include "ctl/agent-registry.h"
#include "ctl/daemon-common.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/util.h"
#include "openvswitch/vlog.h"
#include "timeval.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(node_daemon);

#define POOL_SIZE       4096
#define PORT_RETRY_MSEC 1000

static uint64_t
now_usec(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t) ts.tv_sec * 1000000 + (uint64_t) ts.tv_nsec / 1000;
}

static void
report_started(const struct node_daemon *d, struct agent_registry *registry)
{
    for (size_t i = 0; i < d->class->n_trees(d->node); i++) {
        struct tree_info info;
        d->class->tree(d->node, i, &info);
        if (info.started) {
            agent_registry_started(registry, &info.config->proxy, info.config->epoch);
        }
    }
}

/* Says how far the node is.  What had started goes first: castd relies on it. */
static void
report_applied(const struct node_daemon *d, struct agent_registry *registry, bool all_ports,
               const char *why)
{
    report_started(d, registry);
    if (all_ports) {
        agent_registry_applied(registry, d->generation);
    } else {
        static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 5);
        VLOG_WARN_RL(&rl, "%s", why);
        agent_registry_refused(registry, d->generation, why);
    }
}

/* Applies 'config'.  False: some ports could not be opened. */
static bool
apply(struct node_daemon *d, const struct node_config *config, struct agent_registry *registry)
{
    char *why = NULL;
    bool all_ports = true;

    if (d->class->configure(d->node, config, now_usec(), &why)) {
        VLOG_ERR("generation %" PRIu64 ": %s", config->generation, why);
        agent_registry_refused(registry, config->generation, why);
    } else {
        d->generation = config->generation;
        d->id = config->id;
        all_ports = node_ports_configure(d, config, &why);
        report_applied(d, registry, all_ports, why);
    }
    free(why);
    return all_ports;
}

static void
run(struct node_daemon *d, struct daemon *daemon)
{
    struct agent_registry *registry =
        agent_registry_create(daemon->db, daemon->node, daemon->control);
    bool all_ports = true;
    long long int retry_at = 0;

    while (!daemon->exiting) {
        struct node_config config;

        daemon_run(daemon);
        if (agent_registry_run(registry, &config)) {
            all_ports = apply(d, &config, registry);
            retry_at = time_msec() + PORT_RETRY_MSEC;
            node_config_uninit(&config);
        } else if (!all_ports && time_msec() >= retry_at) {
            char *why = NULL;
            all_ports = node_ports_retry(d, &why);
            report_applied(d, registry, all_ports, why);
            retry_at = time_msec() + PORT_RETRY_MSEC;
            free(why);
        }
        bool more = node_ports_run(d, now_usec());
        uint64_t now = now_usec();
        if (d->class->deadline(d->node) <= now) {
            d->class->timer(d->node, now);
        }
        report_started(d, registry);

        uint64_t deadline = d->class->deadline(d->node);
        if (more) {
            poll_immediate_wake();
        } else if (deadline != UINT64_MAX) {
            poll_timer_wait((long long int) (deadline > now ? (deadline - now + 999) / 1000 : 0));
        }
        if (!all_ports) {
            poll_timer_wait_until(retry_at);
        }
        node_ports_wait(d);
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
    d->netns_fd = daemon.netns_fd;
    d->node = class->create(&(struct node_io){.tx = node_ports_tx, .aux = d}, d->pool);
    node_show_init(d);
    daemon_ready(&daemon);

    run(d, &daemon);

    node_ports_close(d);
    class->destroy(d->node);
    packet_pool_destroy(d->pool);
    free(d);
    daemon_done(&daemon);
    return 0;
}
