/* SPDX-License-Identifier: Apache-2.0
 *
 * The castfwd program: brings the worker what comes from the registry, and the
 * registry what comes from the worker.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "castfwd/castfwd.h"
#include "ctl/node/agent-registry.h"
#include "ctl/process/daemon-common.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(castfwd);

/* Reports what has become of a generation.  Logs it only if it differs from before. */
static void
report(struct agent_registry *registry, uint64_t generation, const char *why, const char *before)
{
    if (!why) {
        if (before) {
            VLOG_INFO("generation %" PRIu64 ": applied", generation);
        }
        agent_registry_applied(registry, generation);
        return;
    }
    if (!before || strcmp(before, why)) {
        VLOG_WARN("generation %" PRIu64 ": %s", generation, why);
    }
    agent_registry_refused(registry, generation, why);
}

static void
run(struct worker *worker, struct daemon *daemon)
{
    struct agent_registry *registry = agent_registry_create(
        daemon->db, daemon->node, 1u << NODE_OVS | 1u << NODE_ROUTER, daemon->control);
    char *last = NULL; /* why the last generation was not applied. */

    daemon_serving(daemon);
    while (!daemon->exiting) {
        struct node_config config = {.id = 0}; /* the worker has the one before. */
        uint64_t generation;
        char *why;

        daemon_run(daemon);
        worker_run(worker);
        if (agent_registry_run(registry, &config)) {
            worker_configure(worker, &config);
        }
        if (worker_outcome(worker, &generation, &why)) {
            report(registry, generation, why, last);
            free(last);
            last = why;
        }
        worker_wait(worker);
        agent_registry_wait(registry);
        daemon_wait(daemon);
        poll_block();
    }
    free(last);
    agent_registry_destroy(registry);
}

/* A relative path would count from /, which is a daemon's folder. */
static void
check_rundir(void)
{
    const char *folder = getenv("ROCECAST_OVS_RUNDIR");

    if (folder && folder[0] && folder[0] != '/') {
        fprintf(stderr, "castfwd: ROCECAST_OVS_RUNDIR=%s: must be an absolute path\n", folder);
        exit(1);
    }
}

/* Tools are in these folders, whatever the caller's PATH is. */
static void
extend_path(void)
{
    const char *path = getenv("PATH");
    char *folders = xasprintf("%s%s/usr/sbin:/usr/bin:/sbin:/bin", path ? path : "",
                              path && path[0] ? ":" : "");

    setenv("PATH", folders, 1);
    free(folders);
}

int
main(int argc, char *argv[])
{
    struct daemon daemon;

    check_rundir();
    daemon_init(&daemon, argc, argv, DAEMON_AGENT, "has Open vSwitch or the kernel forward");
    daemon_start(&daemon);
    daemon.runs_programs = true;
    extend_path();
    struct worker *worker = worker_create(daemon.netns_fd);
    show_init(worker, daemon.node);
    daemon_ready(&daemon);

    run(worker, &daemon);

    worker_destroy(worker);
    daemon_done(&daemon);
    return 0;
}
