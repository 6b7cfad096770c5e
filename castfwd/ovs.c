/* SPDX-License-Identifier: Apache-2.0
 *
 * Open vSwitch as a node's forwarder, by its own tools: the bridge and its ports with
 * ovs-vsctl, flows and groups with ovs-ofctl, in one transaction each.  Neither runs if nothing
 * changes.
 *
 * The bridge of node N is "br-N", with the userspace datapath; a port has the
 * number that it has in the registry.  What somebody else has put on the bridge
 * is removed.  Without this agent the bridge goes on.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "castfwd/castfwd.h"
#include "ctl/registry/values.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/json.h"
#include "timeval.h"
#include "util.h"

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

/* Runs ovs-vsctl with arguments that are separated by blanks. */
static char *
run_vsctl(const struct forwarder *f, const char *arguments, char **outputp)
{
    struct svec argv = SVEC_EMPTY_INITIALIZER;
    char *error;

    svec_add(&argv, "ovs-vsctl");
    svec_add_nocopy(&argv, xasprintf("--db=unix:%s/db.sock", ovs_rundir()));
    svec_parse_words(&argv, arguments);
    svec_terminate(&argv);
    error = command_run(&f->patience, (const char *const *) argv.names, NULL, outputp);
    svec_destroy(&argv);
    return error;
}

/* Runs ovs-ofctl with a command and, unless 'argument' is NULL, one more argument. */
static char *
run_ofctl(const struct forwarder *f, const char *command, const char *argument, const char *input,
          char **outputp)
{
    char *socket_file = management(f);
    char *target = xasprintf("unix:%s", socket_file);
    const char *const argv[] = {"ovs-ofctl", "-OOpenFlow15", command, target, argument, NULL};
    char *error = command_run(&f->patience, argv, input, outputp);

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

/* Removes the ports that others have put on the bridge.  'names' has all that it had, one a
 * line. */
static char *
remove_others(const struct forwarder *f, const char *bridge, char *names)
{
    struct ds s = DS_EMPTY_INITIALIZER;
    char *save = NULL;

    for (char *port = strtok_r(names, "\n", &save); port; port = strtok_r(NULL, "\n", &save)) {
        if (!has_port(&f->config, port)) {
            ds_put_format(&s, " -- --if-exists del-port %s %s", bridge, port);
        }
    }
    char *error = s.length ? run_vsctl(f, ds_cstr(&s), NULL) : NULL;
    ds_destroy(&s);
    return error;
}

/* Does each port have its number?  If Open vSwitch cannot give it that number, it takes another or
 * none.  It answers with two lines for each port: the number, and what is wrong. */
static char *
check_ports(const struct forwarder *f)
{
    struct ds s = DS_EMPTY_INITIALIZER;
    char *answer = NULL, *save = NULL;

    for (size_t i = 0; i < f->config.n_ports; i++) {
        ds_put_format(&s, " -- get interface %s ofport error", f->config.ports[i].name);
    }
    char *error = s.length ? run_vsctl(f, ds_cstr(&s), &answer) : NULL;
    for (size_t i = 0; i < f->config.n_ports && !error; i++) {
        const struct port_config *port = &f->config.ports[i];
        const char *number = strtok_r(i ? NULL : answer, "\n", &save);
        const char *why = strtok_r(NULL, "\n", &save);
        char *wanted = xasprintf("%u", port->number);

        if (!number || strcmp(number, wanted)) {
            error = xasprintf("port %s: Open vSwitch does not have it as %s: %s", port->name,
                              wanted, why ? why : "no answer");
        }
        free(wanted);
    }
    free(answer);
    ds_destroy(&s);
    return error;
}

/* Makes the bridge and its ports, as far as they are not known to be right. */
static char *
ovs_prepare(struct forwarder *f)
{
    struct svec ports = SVEC_EMPTY_INITIALIZER;
    char *bridge = bridge_name(f);
    char *error = NULL, *names = NULL;

    ovs_ports(&f->config, &ports);
    if (!(f->identity && svec_equal(&f->ports, &ports))) {
        char *change =
            ovs_ports_change(bridge, f->identity ? &f->ports : NULL, &ports, time_wall_msec());

        error = run_vsctl(f, change, &names);
        error = error || f->identity ? error : remove_others(f, bridge, names);
        error = error ? error : check_ports(f);
        free(change);
    }
    svec_swap(&f->ports, &ports);
    svec_destroy(&ports);
    free(names);
    free(bridge);
    return error;
}

static char *
ovs_change(struct forwarder *f, const struct svec *rules)
{
    char *bundle = ovs_rules_change(&f->rules, rules);
    char *error = run_ofctl(f, "bundle", "-", bundle, NULL);

    free(bundle);
    return error;
}

/* The bridge's listening socket identifies it: each start of ovs-vswitchd makes a new one.
 * ovs-vswitchd is in the namespace of the ports.  The kernel has a line "Num RefCount Protocol
 * Flags Type St Inode Path" for the socket.  Connecting would also show that it runs, but would
 * make it complain. */
static char *
ovs_identity(const struct forwarder *f)
{
    char *file = xasprintf("/br-%s.mgmt", f->config.name);
    char *sockets = proc_net("unix");
    char *found = NULL, *save = NULL;

    for (char *line = strtok_r(sockets, "\n", &save); line && !found;
         line = strtok_r(NULL, "\n", &save)) {
        size_t n = strlen(line), len = strlen(file);
        char inode[32];

        if (n > len && !strcmp(line + n - len, file)
            && sscanf(line, "%*s %*s %*s 00010000 %*s %*s %31s", inode) == 1) {
            found = xasprintf("switch %s", inode);
        }
    }
    free(sockets);
    free(file);
    return found;
}

/* Lines "cookie=N, ..., n_packets=N, ..., PRIORITY,MATCH actions=ACTIONS". */
static char *
ovs_statistics(const struct forwarder *f)
{
    char *flows = NULL;

    free(run_ofctl(f, "dump-flows", NULL, NULL, &flows));
    return flows ? flows : xstrdup("");
}

static struct json *
ovs_drop_counts(const struct forwarder *f)
{
    struct json *drops = json_object_create();
    char *flows = ovs_statistics(f);

    for (size_t i = 0; ovs_drops[i]; i++) {
        char *cookie = xasprintf("cookie=0x%x,", OVS_DROP_COOKIE + (unsigned int) i);
        unsigned long long n = 0;

        for (const char *line = flows; (line = strstr(line, cookie)); line++) {
            n += number_after(line, "n_packets=");
        }
        json_object_put(drops, ovs_drops[i], json_integer_create((long long int) n));
        free(cookie);
    }
    free(flows);
    return drops;
}

/* A SID's flow is the one with that prefix which moves the address. */
static bool
ovs_counted(const struct sid_config *sid, const char *statistics, unsigned long long *packets)
{
    char *key = xasprintf(",ipv6_dst=%s/%u actions=move:", ip6_text(&sid->prefix), sid->plen);
    const char *found = strstr(statistics, key);
    const char *line = found;

    while (line && line > statistics && line[-1] != '\n') {
        line--;
    }
    *packets = number_after(line, "n_packets=");
    free(key);
    return found != NULL;
}

/* For each group there is a line "group_id=N,...,packet_count=N,...". */
static void
ovs_copied(const struct forwarder *f, unsigned long long counts[])
{
    char *stats = NULL;

    free(run_ofctl(f, "dump-group-stats", NULL, NULL, &stats));
    for (size_t i = 0; i < f->config.n_trees; i++) {
        char *group = xasprintf("group_id=%u,", ovs_group_id(&f->config.trees[i]));

        counts[i] = number_after(stats ? strstr(stats, group) : NULL, ",packet_count=");
        free(group);
    }
    free(stats);
}

static char *
ovs_make_rules(struct forwarder *f, struct svec *rules)
{
    return ovs_rules(&f->config, rules);
}

const struct backend ovs_backend = {
    .rules = ovs_make_rules,
    .prepare = ovs_prepare,
    .change = ovs_change,
    .identity = ovs_identity,
    .drops = ovs_drop_counts,
    .statistics = ovs_statistics,
    .counted = ovs_counted,
    .copied = ovs_copied,
};
