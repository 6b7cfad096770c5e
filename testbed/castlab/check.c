/* SPDX-License-Identifier: Apache-2.0
 *
 * What stands in the way of a lab, checked before anything is made.
 */
#include <config.h>

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/doctor/doctor.h"
#include "ctl/registry/paths.h"
#include "ctl/registry/values.h"
#include "testbed/castlab/rdma.h"
#include "testbed/castlab/up.h"
#include "util.h"

/* A program in castlab's own folder. */
static char *
own_program(const char *name, char **pathp)
{
    char *folder = rocecast_own_folder();
    *pathp = xasprintf("%s/%s", folder, name);
    free(folder);
    return access(*pathp, X_OK) ? xasprintf("%s: %s", *pathp, ovs_strerror(errno)) : NULL;
}

/* A program of the system's. */
static char *
system_program(const char *name, const char *package, char **pathp)
{
    const char *path = getenv("PATH");
    char *folders = xasprintf("%s:/usr/sbin:/usr/bin", path ? path : "");
    char *save = NULL;
    *pathp = NULL;
    for (char *folder = strtok_r(folders, ":", &save); folder;
         folder = strtok_r(NULL, ":", &save)) {
        char *candidate = xasprintf("%s/%s", folder, name);
        if (!access(candidate, X_OK)) {
            *pathp = candidate;
            break;
        }
        free(candidate);
    }
    free(folders);
    return *pathp ? NULL : xasprintf("%s is not installed (Debian package %s)", name, package);
}

char *
programs_find(struct programs *p)
{
    char *error = system_program("ovsdb-server", "openvswitch-common", &p->ovsdb_server);
    error = error ? error : system_program("ovsdb-tool", "openvswitch-common", &p->ovsdb_tool);
    error = error ? error : own_program("castd", &p->castd);
    error = error ? error : own_program("swedge", &p->swedge);
    error = error ? error : own_program("srcagent", &p->srcagent);
    error = error ? error : own_program("castfwd", &p->castfwd);
    error = error ? error : own_program("castlab", &p->castlab);
    return error ? error : rocecast_schema_file(&p->schema);
}

char *
programs_find_ovs(struct programs *p)
{
    char *error = NULL;
    if (!p->ovs_vswitchd) {
        error = system_program("ovs-vswitchd", "openvswitch-switch", &p->ovs_vswitchd);
    }
    if (!error && !p->ovs_vsctl) {
        error = system_program("ovs-vsctl", "openvswitch-switch", &p->ovs_vsctl);
    }
    if (!error && !p->nsenter) {
        error = system_program("nsenter", "util-linux", &p->nsenter);
    }
    return error;
}

void
programs_uninit(struct programs *p)
{
    free(p->ovsdb_server);
    free(p->ovsdb_tool);
    free(p->castd);
    free(p->swedge);
    free(p->srcagent);
    free(p->castfwd);
    free(p->ovs_vswitchd);
    free(p->ovs_vsctl);
    free(p->nsenter);
    free(p->castlab);
    free(p->schema);
}

char *
check_socket_path(const char *path)
{
    char *why = doctor_socket_path(path);
    char *error = why ? xasprintf("%s: set ROCECAST_RUNDIR to a shorter path", why) : NULL;
    free(why);
    return error;
}

char *
lab_check_path(const char *name)
{
    return check_socket_path(lab_file(name, "db.sock").text);
}

static char *
check_folder(const char *name)
{
    const struct lab_text folder = lab_folder(name);
    if (lab_exists(name)) {
        struct journal_list list;
        char *error = lab_read(name, &list);
        bool former_boot = !error && lab_former_boot(&list);
        if (!error) {
            journal_list_uninit(&list);
        }
        free(error);
        return former_boot ? lab_is_of_former_boot(name)
                           : xasprintf("lab '%s' is already up (castlab down %s)", name, name);
    }
    if (rmdir(folder.text) && errno != ENOENT) {
        return xasprintf("%s exists and is no lab (%s)", folder.text, ovs_strerror(errno));
    }
    return NULL;
}

static char *
check_host(struct lab *lab, const struct topology_link *link)
{
    const struct topology_node *host = &lab->t->nodes[link->ends[0].node];
    const char *netdev = link->ends[0].netdev;
    if (net_ifindex(lab->net, netdev)) {
        return xasprintf("network device '%s' of host '%s' exists already and is not this lab's",
                         netdev, host->name);
    }
    if (address_exists(lab->net, &host->address)) {
        return xasprintf("address %s of host '%s' is in use on this machine already",
                         ip6_text(&host->address), host->name);
    }
    uint32_t index;
    const struct lab_text device = lab_rdma_device(host->name);
    return lab_has_rdma(lab, link) && rdma_find(device.text, &index)
               ? xasprintf("RDMA device '%s' exists already and is not this lab's", device.text)
               : NULL;
}

static char *
check_netns(struct lab *lab, const struct topology_node *node)
{
    const struct lab_text name = lab_netns_name(lab->name, node->name);
    return netns_exists(name.text)
               ? xasprintf("network namespace '%s' exists already and is not this lab's", name.text)
               : NULL;
}

/* The first of these checks of 'castctl doctor' that found a problem. */
static char *
check_machine(const char *const checks[], const char *advice)
{
    struct doctor d = {.n = 0};
    char *error = NULL;
    for (size_t i = 0; checks[i]; i++) {
        doctor_run_one(&d, checks[i]);
    }
    for (size_t i = 0; i < d.n && !error; i++) {
        if (d.findings[i].state == DOCTOR_PROBLEM) {
            error = xasprintf("%s%s%s: %s", d.findings[i].found, advice[0] ? ": " : "", advice,
                              d.findings[i].fix);
        }
    }
    doctor_uninit(&d);
    return error;
}

static char *
check_rdma(struct lab *lab)
{
    static const char *const checks[] = {"rdma_rxe", "crc32", "rxe-netns", "nftables", NULL};
    char *error = check_machine(checks, "use testbed/vm/run, or --no-rdma for a lab without, or");
    if (error) {
        return error;
    }
    if (!local_rule_is_first(lab->net) || rule_exists(lab->net, LOCAL_RULE_PREF, RT_TABLE_LOCAL)) {
        return xasprintf("the IPv6 rule 'lookup local' is not at preference 0 or also at %d: "
                         "another lab is up here, or another program has moved it (ip -6 rule)",
                         LOCAL_RULE_PREF);
    }
    return NULL;
}

char *
lab_check(struct lab *lab)
{
    static const char *const devices[] = {"tun", "capabilities", NULL};
    char *error = check_folder(lab->name);
    if (!error && geteuid()) {
        error = xstrdup("network devices need root");
    }
    error = error ? error : programs_find(&lab->programs);
    if (!error && lab->t->n_servers > 1) {
        const struct lab_text last = lab_server_name(lab->t->n_servers);
        error = check_socket_path(lab_file(lab->name, lab_text("%s.ctl", last.text).text).text);
    }
    if (!error && lab->rdma) {
        error = check_rdma(lab);
    }
    error = error ? error : check_machine(devices, "");
    for (size_t i = 0; i < lab->t->n_nodes && !error; i++) {
        if (lab->t->nodes[i].kind != KIND_HOST) {
            error = check_netns(lab, &lab->t->nodes[i]);
        }
        if (!error && lab->t->nodes[i].kind == KIND_OVS) {
            error = lab_check_ovs(lab, lab->t->nodes[i].name);
        }
    }
    for (size_t i = 0; i < lab->t->n_links && !error; i++) {
        if (lab->t->links[i].has_host) {
            error = check_host(lab, &lab->t->links[i]);
        }
    }
    return error;
}
