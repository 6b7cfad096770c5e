/* SPDX-License-Identifier: Apache-2.0
 *
 * A node of kind 'ovs': an Open vSwitch of its own, which is two processes, and
 * castfwd, which makes it do what castd wants.
 *
 *     NAME.ovsdb      its configuration, a database in <folder>/NAME.ovs
 *     NAME.vswitchd   the switch, in the node's namespace
 *
 * They end and start together.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/doctor/doctor.h"
#include "testbed/castlab/up.h"
#include "util.h"

#define VSWITCH_SCHEMA "/usr/share/openvswitch/vswitch.ovsschema"

/* A file of the node's own Open vSwitch; malloc'd. */
static char *
ovs_file(const struct lab *lab, const char *node, const char *file)
{
    char *name = xasprintf("%s.ovs%s%s", node, file[0] ? "/" : "", file);
    char *path = lab_file(lab->name, name);

    free(name);
    return path;
}

char *
lab_ovs_part(const char *node, enum lab_ovs_part part)
{
    return xasprintf("%s.%s", node, part == LAB_OVS_DB ? "ovsdb" : "vswitchd");
}

char *
lab_check_ovs(struct lab *lab, const char *node)
{
    char *file = xasprintf("br-%s.mgmt", node);
    char *socket = ovs_file(lab, node, file);
    char *why = doctor_socket_path(socket);
    char *error = programs_find_ovs(&lab->programs);

    if (!error && access(VSWITCH_SCHEMA, R_OK)) {
        error = xasprintf("%s: %s (Debian package openvswitch-common)", VSWITCH_SCHEMA,
                          ovs_strerror(errno));
    }
    if (!error && why) {
        error = xasprintf("%s: set ROCECAST_RUNDIR to a shorter path", why);
    }
    free(why);
    free(socket);
    free(file);
    return error;
}

/* Creates its database, unless there is one from an earlier start. */
static char *
create_database(struct lab *lab, const char *node)
{
    char *folder = ovs_file(lab, node, "");
    char *file = ovs_file(lab, node, "conf.db");
    char create[] = "create", schema[] = VSWITCH_SCHEMA;
    char *argv[] = {lab->programs.ovsdb_tool, create, file, schema, NULL};
    char *error = NULL;

    if (mkdir(folder, 0755) && errno != EEXIST) {
        error = xasprintf("%s: %s", folder, ovs_strerror(errno));
    } else if (access(file, F_OK)) {
        error = child_run(argv);
    }
    free(file);
    free(folder);
    return error;
}

static char *
start_database(struct lab *lab, const char *node)
{
    char *name = lab_ovs_part(node, LAB_OVS_DB);
    char *socket = ovs_file(lab, node, "db.sock");
    char *extra[] = {xasprintf("--remote=punix:%s", socket), ovs_file(lab, node, "conf.db"), NULL};
    char db[PATH_MAX + 16], no_wait[] = "--no-wait", init[] = "init";
    char *argv[] = {lab->programs.ovs_vsctl, db, no_wait, init, NULL};

    /* The socket seen from now on is the new process's. */
    unlink(socket);
    snprintf(db, sizeof db, "--db=unix:%s", socket);
    char *error = lab_start_daemon(lab, NULL, lab->programs.ovsdb_server, name, extra);
    error = error ? error : lab_wait_socket(lab, socket);
    error = error ? error : child_run(argv);
    free(socket);
    free(name);
    return error;
}

/* Starts nsenter, which becomes the switch: the process in the journal is the switch. */
static char *
start_switch(struct lab *lab, const char *node)
{
    char *name = lab_ovs_part(node, LAB_OVS_SWITCH);
    char *netns = lab_netns_name(lab->name, node);
    char *enter = xasprintf("--net=" NETNS_FOLDER "/%s", netns);
    char *socket = ovs_file(lab, node, "db.sock");
    char *folder = ovs_file(lab, node, "");
    const char *const prefix[] = {lab->programs.nsenter, enter, NULL};
    char *extra[] = {xasprintf("unix:%s", socket), NULL};

    setenv("OVS_RUNDIR", folder, 1);
    char *error = lab_start_daemon(lab, prefix, lab->programs.ovs_vswitchd, name, extra);
    unsetenv("OVS_RUNDIR");
    free(folder);
    free(socket);
    free(enter);
    free(netns);
    free(name);
    return error;
}

char *
lab_start_ovs(struct lab *lab, const char *node)
{
    char *folder = ovs_file(lab, node, "");
    char *error = create_database(lab, node);

    error = error ? error : start_database(lab, node);
    error = error ? error : start_switch(lab, node);
    /* For castfwd, which is started next. */
    setenv("ROCECAST_OVS_RUNDIR", folder, 1);
    free(folder);
    return error;
}
