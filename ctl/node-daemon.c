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

#define POOL_SIZE  4096
#define RETRY_MSEC 1000

uint64_t
node_daemon_now(void)
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

/* Brings node and ports to d->config as far as that is possible, and says how
 * far it is.  What had started goes first: castd relies on it. */
static void
apply(struct node_daemon *d, struct agent_registry *registry)
{
    char *why = NULL;

    if (d->pending && !d->class->configure(d->node, &d->config, node_daemon_now(), &why)) {
        d->pending = false;
        node_ports_configure(d);
    }
    report_started(d, registry);
    if (!d->pending && node_ports_open(d, &why)) {
        agent_registry_applied(registry, d->config.generation);
    } else if (!d->why || strcmp(d->why, why)) {
        VLOG_WARN("generation %" PRIu64 ": %s", d->config.generation, why);
        agent_registry_refused(registry, d->config.generation, why);
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

/* Something is not as it should be: a refused configuration (members in flight
 * may have landed), a device that is not there (yet, or any more). */
static bool
must_retry(const struct node_daemon *d)
{
    return !is_complete(d) || d->why;
}

static void
run(struct node_daemon *d, struct daemon *daemon)
{
    struct agent_registry *registry =
        agent_registry_create(daemon->db, daemon->node, daemon->control);

    /* With or without a registry: what an agent runs it keeps running while that is away. */
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
        bool more = node_ports_run(d, node_daemon_now());
        node_impair_run(d, node_daemon_now());
        uint64_t now = node_daemon_now();
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
    d->netns_fd = daemon.netns_fd;
    d->timer_fd = -1;
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
    class->destroy(d->node);
    packet_pool_destroy(d->pool);
    free(d);
    daemon_done(&daemon);
    return 0;
}
