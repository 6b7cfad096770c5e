/* SPDX-License-Identifier: Apache-2.0
 *
 * Open vSwitch as a node's forwarder, by its own tools: the bridge and its ports
 * with ovs-vsctl, flows and groups with ovs-ofctl, in one transaction each.
 *
 * The bridge of node N is "br-N", with the userspace datapath; a port has the
 * number that it has in the registry.  What somebody else has put on the bridge
 * is removed.  Without this agent the bridge goes on.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "castfwd/castfwd.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/json.h"
#include "socket-util.h"
#include "util.h"

#define TIMEOUT "--timeout=5"

static const char *
ovs_rundir(void)
{
    const char *rundir = getenv("ROCECAST_OVS_RUNDIR");

    return rundir && rundir[0] ? rundir : "/var/run/openvswitch";
}

static char *
bridge_name(const struct forwarder *f)
{
    return xasprintf("br-%s", f->config.name);
}

/* The bridge's socket for OpenFlow. */
static char *
management(const struct forwarder *f)
{
    return xasprintf("%s/br-%s.mgmt", ovs_rundir(), f->config.name);
}

/* ovs-vsctl with arguments that are separated by blanks. */
static char *
run_vsctl(const char *arguments, char **outputp)
{
    struct svec argv = SVEC_EMPTY_INITIALIZER;
    char *error;

    svec_add(&argv, "ovs-vsctl");
    svec_add_nocopy(&argv, xasprintf("--db=unix:%s/db.sock", ovs_rundir()));
    svec_add(&argv, TIMEOUT);
    svec_parse_words(&argv, arguments);
    svec_terminate(&argv);
    error = command_run(-1, (const char *const *) argv.names, NULL, outputp);
    svec_destroy(&argv);
    return error;
}

/* ovs-ofctl with a command and, unless that is NULL, one more argument. */
static char *
run_ofctl(const struct forwarder *f, const char *command, const char *argument, const char *input,
          char **outputp)
{
    char *socket_file = management(f);
    char *target = xasprintf("unix:%s", socket_file);
    const char *const argv[] = {"ovs-ofctl", TIMEOUT, "-OOpenFlow15", command, target,
                                argument,    NULL};
    char *error = command_run(-1, argv, input, outputp);

    free(target);
    free(socket_file);
    return error;
}

static bool
has_port(const struct node_config *c, const char *name)
{
    for (size_t i = 0; i < c->n_ports; i++) {
        if (!strcmp(c->ports[i].name, name)) {
            return true;
        }
    }
    return false;
}

static char *
apply_ports(const struct forwarder *f)
{
    const struct node_config *c = &f->config;
    char *bridge = bridge_name(f);
    struct ds s = DS_EMPTY_INITIALIZER;
    char *ports = NULL, *save = NULL;

    ds_put_format(&s,
                  "-- --may-exist add-br %s -- set bridge %s datapath_type=netdev fail_mode=secure "
                  "protocols=OpenFlow10,OpenFlow15 -- list-ports %s",
                  bridge, bridge, bridge);
    char *error = run_vsctl(ds_cstr(&s), &ports);
    ds_clear(&s);
    for (char *port = error ? NULL : strtok_r(ports, "\n", &save); port;
         port = strtok_r(NULL, "\n", &save)) {
        if (!has_port(c, port)) {
            ds_put_format(&s, " -- del-port %s %s", bridge, port);
        }
    }
    for (size_t i = 0; i < c->n_ports; i++) {
        ds_put_format(&s, " -- --may-exist add-port %s %s -- set interface %s ofport_request=%u",
                      bridge, c->ports[i].name, c->ports[i].name, c->ports[i].number);
    }
    if (!error && s.length) {
        error = run_vsctl(ds_cstr(&s), NULL);
    }
    free(ports);
    ds_destroy(&s);
    free(bridge);
    return error;
}

/* Has each port its number?  Open vSwitch takes another, or none, if it cannot. */
static char *
check_ports(const struct forwarder *f)
{
    char *error = NULL;

    for (size_t i = 0; i < f->config.n_ports && !error; i++) {
        const struct port_config *port = &f->config.ports[i];
        char *arguments = xasprintf("get interface %s ofport error", port->name);
        char *wanted = xasprintf("%u\n", port->number);
        char *answer = NULL;

        error = run_vsctl(arguments, &answer);
        if (!error && strncmp(answer, wanted, strlen(wanted))) {
            char *why = strchr(answer, '\n');

            error =
                xasprintf("port %s: Open vSwitch does not have it as %u: %.*s", port->name,
                          port->number, why ? (int) strcspn(why + 1, "\n") : 0, why ? why + 1 : "");
        }
        free(answer);
        free(wanted);
        free(arguments);
    }
    return error;
}

static char *
ovs_apply(struct forwarder *f)
{
    struct svec rules = SVEC_EMPTY_INITIALIZER;
    char *error = ovs_rules(&f->config, &rules);

    if (!error && strlen(f->config.name) > IFNAMSIZ - 1 - strlen("br-")) {
        error = xasprintf("bridge br-%s: the name of a node with role ovs must be at most 12 "
                          "characters",
                          f->config.name);
    }
    error = error ? error : apply_ports(f);
    error = error ? error : check_ports(f);
    if (!error) {
        char *bundle = ovs_rules_change(&f->rules, &rules);

        error = bundle[0] ? run_ofctl(f, "bundle", "-", bundle, NULL) : NULL;
        free(bundle);
    }
    svec_swap(&f->rules, &rules);
    if (error) {
        svec_clear(&f->rules);
    }
    svec_destroy(&rules);
    return error;
}

/* The socket is a new one after each start of ovs-vswitchd. */
static char *
ovs_identity(const struct forwarder *f)
{
    char *path = management(f);
    int fd = make_unix_socket(SOCK_STREAM, true, NULL, path);
    struct stat s = {.st_ino = 0};
    bool answers = fd >= 0 && !stat(path, &s);

    if (fd >= 0) {
        close(fd);
    }
    free(path);
    return answers ? xasprintf("switch %ju.%ju.%ju", (uintmax_t) s.st_ino,
                               (uintmax_t) s.st_ctim.tv_sec, (uintmax_t) s.st_ctim.tv_nsec)
                   : NULL;
}

/* The number that comes after 'key' in what a command prints, from 'where' on. */
static unsigned long long
number_after(const char *where, const char *key)
{
    const char *found = where ? strstr(where, key) : NULL;

    return found ? strtoull(found + strlen(key), NULL, 0) : 0;
}

static struct json *
ovs_drop_counts(const struct forwarder *f)
{
    struct json *drops = json_object_create();
    char *flows = NULL;

    free(run_ofctl(f, "dump-flows", NULL, NULL, &flows));
    for (size_t i = 0; ovs_drops[i]; i++) {
        char *cookie = xasprintf("cookie=0x%x,", OVS_DROP_COOKIE + (unsigned int) i);
        unsigned long long n = 0;

        for (const char *line = flows; line && (line = strstr(line, cookie)); line++) {
            n += number_after(line, "n_packets=");
        }
        json_object_put(drops, ovs_drops[i], json_integer_create((long long int) n));
        free(cookie);
    }
    free(flows);
    return drops;
}

static unsigned long long
ovs_copied(const struct forwarder *f, const struct tree_config *t)
{
    char *group = xasprintf("group_id=%u", ovs_group_id(t));
    char *stats = NULL;

    free(run_ofctl(f, "dump-group-stats", group, NULL, &stats));
    unsigned long long n = number_after(stats, ",packet_count=");
    free(stats);
    free(group);
    return n;
}

const struct backend ovs_backend = {
    .role = NODE_OVS,
    .apply = ovs_apply,
    .identity = ovs_identity,
    .drops = ovs_drop_counts,
    .copied = ovs_copied,
};
