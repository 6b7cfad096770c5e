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

/* A file of the node's own Open vSwitch. */
static struct lab_text
ovs_file(const struct lab *lab, const char *node, const char *file)
{
    return lab_file(lab->name, lab_text("%s.ovs%s%s", node, file[0] ? "/" : "", file).text);
}

struct lab_text
lab_ovs_part(const char *node, enum lab_ovs_part part)
{
    return lab_text("%s.%s", node, part == LAB_OVS_DB ? "ovsdb" : "vswitchd");
}

char *
lab_check_ovs(struct lab *lab, const char *node)
{
    char *error = programs_find_ovs(&lab->programs);

    if (!error && access(VSWITCH_SCHEMA, R_OK)) {
        error = xasprintf("%s: %s (Debian package openvswitch-common)", VSWITCH_SCHEMA,
                          ovs_strerror(errno));
    }
    const struct lab_text socket = lab_text("br-%s.mgmt", node);
    return error ? error : check_socket_path(ovs_file(lab, node, socket.text).text);
}

/* Creates its database, unless there is one from an earlier start. */
static char *
create_database(struct lab *lab, const char *node)
{
    const struct lab_text folder = ovs_file(lab, node, "");
    struct lab_text file = ovs_file(lab, node, "conf.db");
    char create[] = "create", schema[] = VSWITCH_SCHEMA;
    char *argv[] = {lab->programs.ovsdb_tool, create, file.text, schema, NULL};

    if (mkdir(folder.text, 0755) && errno != EEXIST) {
        return xasprintf("%s: %s", folder.text, ovs_strerror(errno));
    }
    return access(file.text, F_OK) ? child_run(argv) : NULL;
}

static char *
start_database(struct lab *lab, const char *node)
{
    const struct lab_text name = lab_ovs_part(node, LAB_OVS_DB);
    const struct lab_text socket = ovs_file(lab, node, "db.sock");
    char *extra[] = {xasprintf("--remote=punix:%s", socket.text),
                     xstrdup(ovs_file(lab, node, "conf.db").text), NULL};
    struct lab_text db = lab_text("--db=unix:%s", socket.text);
    char no_wait[] = "--no-wait", init[] = "init";
    char *argv[] = {lab->programs.ovs_vsctl, db.text, no_wait, init, NULL};

    /* The socket seen from now on is the new process's. */
    unlink(socket.text);
    char *error = lab_start_daemon(lab, NULL, lab->programs.ovsdb_server, name.text, extra);
    error = error ? error : lab_wait_socket(lab, socket.text);
    return error ? error : child_run(argv);
}

/* Starts nsenter, which becomes the switch: the process in the journal is the switch. */
static char *
start_switch(struct lab *lab, const char *node)
{
    const struct lab_text name = lab_ovs_part(node, LAB_OVS_SWITCH);
    const struct lab_text netns = lab_netns_name(lab->name, node);
    const struct lab_text enter = lab_text("--net=" NETNS_FOLDER "/%s", netns.text);
    const char *const prefix[] = {lab->programs.nsenter, enter.text, NULL};
    char *extra[] = {xasprintf("unix:%s", ovs_file(lab, node, "db.sock").text), NULL};

    setenv("OVS_RUNDIR", ovs_file(lab, node, "").text, 1);
    char *error = lab_start_daemon(lab, prefix, lab->programs.ovs_vswitchd, name.text, extra);
    unsetenv("OVS_RUNDIR");
    return error;
}

char *
lab_start_ovs(struct lab *lab, const char *node)
{
    char *error = create_database(lab, node);

    error = error ? error : start_database(lab, node);
    error = error ? error : start_switch(lab, node);
    /* For castfwd, which is started next. */
    setenv("ROCECAST_OVS_RUNDIR", ovs_file(lab, node, "").text, 1);
    return error;
}
