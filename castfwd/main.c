/* SPDX-License-Identifier: Apache-2.0
 *
 * The castfwd program.
 *
 * A configuration is applied when it comes, and again, from the beginning, when
 * the forwarder or one of its devices is not the one any more that was told: once
 * a second that is looked at.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "castfwd/castfwd.h"
#include "ctl/agent-registry.h"
#include "ctl/daemon-common.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "timeval.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(castfwd);

#define CHECK_MSEC 1000

/* A socket belongs for ever to the namespace in which it was made. */
static void
devices_open(struct devices *d, int netns_fd)
{
    int own_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

    d->netns_fd = netns_fd;
    if (own_fd < 0 || (netns_fd >= 0 && setns(netns_fd, CLONE_NEWNET))) {
        ovs_fatal(errno, "entering the network namespace");
    }
    d->socket = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (d->socket < 0 || (netns_fd >= 0 && setns(own_fd, CLONE_NEWNET))) {
        ovs_fatal(errno, "looking at network devices");
    }
    close(own_fd);
}

static int
device_index(const struct devices *d, const char *name)
{
    struct ifreq request = {.ifr_ifindex = 0};

    ovs_strzcpy(request.ifr_name, name, sizeof request.ifr_name);
    return ioctl(d->socket, SIOCGIFINDEX, &request) ? 0 : request.ifr_ifindex;
}

/* Of the forwarder and of each device; NULL: it does not run. */
static char *
identity(const struct forwarder *f)
{
    char *of_backend = f->backend->identity(f);
    struct ds s = DS_EMPTY_INITIALIZER;

    if (!of_backend) {
        return NULL;
    }
    ds_put_cstr(&s, of_backend);
    for (size_t i = 0; i < f->config.n_ports; i++) {
        ds_put_format(&s, " %s %d", f->config.ports[i].name,
                      device_index(&f->devices, f->config.ports[i].name));
    }
    free(of_backend);
    return ds_steal_cstr(&s);
}

static char *
check_devices(const struct forwarder *f)
{
    for (size_t i = 0; i < f->config.n_ports; i++) {
        if (!device_index(&f->devices, f->config.ports[i].name)) {
            return xasprintf("port %s: there is no such network device", f->config.ports[i].name);
        }
    }
    return NULL;
}

static void
forget_told(struct forwarder *f)
{
    svec_clear(&f->rules);
    free(f->identity);
    f->identity = NULL;
}

/* Is it still what was told? */
static bool
is_same(const struct forwarder *f)
{
    char *now = identity(f);
    bool same = now && f->identity && !strcmp(f->identity, now);

    free(now);
    return same;
}

/* What has ended meanwhile has forgotten what it was told, and a difference to that may be nothing: so
 * it has to be the same one before and after. */
static char *
tell(struct forwarder *f)
{
    char *error = check_devices(f);
    bool anew = !is_same(f);

    if (anew) {
        forget_told(f);
    }
    error = error ? error : f->backend->apply(f);
    if (!error && anew) {
        f->identity = identity(f);
    }
    return error         ? error
           : !is_same(f) ? xstrdup("the forwarder, or one of its devices, has gone")
                         : NULL;
}

static void
apply(struct forwarder *f, struct agent_registry *registry)
{
    char *why = tell(f);

    if (why) {
        if (!f->why || strcmp(f->why, why)) {
            VLOG_WARN("generation %" PRIu64 ": %s", f->config.generation, why);
        }
        agent_registry_refused(registry, f->config.generation, why);
        forget_told(f);
    } else {
        agent_registry_applied(registry, f->config.generation);
    }
    free(f->why);
    f->why = why;
}

/* A name or an id that is another one makes it another node. */
static void
take_config(struct forwarder *f, const struct node_config *config)
{
    if (f->config.role != config->role || f->config.id != config->id) {
        forget_told(f);
    }
    node_config_uninit(&f->config);
    f->config = *config;
    f->backend = config->role == NODE_OVS ? &ovs_backend : &kernel_backend;
}

static void
run(struct forwarder *f, struct daemon *daemon)
{
    struct agent_registry *registry =
        agent_registry_create(daemon->db, daemon->node, "ovs or router", daemon->control);
    long long int check_at = 0;

    daemon_serving(daemon);
    while (!daemon->exiting) {
        struct node_config config;

        daemon_run(daemon);
        if (agent_registry_run(registry, &config)) {
            take_config(f, &config);
            apply(f, registry);
            check_at = time_msec() + CHECK_MSEC;
        } else if (f->backend && time_msec() >= check_at) {
            if (!is_same(f)) {
                apply(f, registry);
            }
            check_at = time_msec() + CHECK_MSEC;
        }
        if (f->backend) {
            poll_timer_wait_until(check_at);
        }
        agent_registry_wait(registry);
        daemon_wait(daemon);
        poll_block();
    }
    agent_registry_destroy(registry);
}

int
main(int argc, char *argv[])
{
    struct forwarder f = {.backend = NULL};
    struct daemon daemon;

    daemon_init(&daemon, argc, argv, DAEMON_AGENT, "has Open vSwitch or the kernel forward");
    daemon.runs_programs = true; /* ip, sysctl. */
    devices_open(&f.devices, daemon.netns_fd);
    svec_init(&f.rules);
    show_init(&f);
    daemon_ready(&daemon);

    run(&f, &daemon);

    forget_told(&f);
    svec_destroy(&f.rules);
    free(f.why);
    node_config_uninit(&f.config);
    close(f.devices.socket);
    daemon_done(&daemon);
    return 0;
}
