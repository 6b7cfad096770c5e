/* SPDX-License-Identifier: Apache-2.0
 *
 * Which parts of a lab are there: the journal compared with the machine.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "openvswitch/dynamic-string.h"
#include "testbed/castlab/lab.h"
#include "testbed/castlab/netops.h"
#include "testbed/castlab/rdma.h"
#include "testbed/castlab/up.h"
#include "util.h"

#define ROW_FORMAT "%-16s %-13s %-8s %-8s %-20s %-16s %s\n"

/* "running" or "dead", and the process id. */
static const char *
process_state(const struct journal_list *list, const char *name, char pid[16])
{
    const struct journal_entry *e = lab_find_process(list, name);
    snprintf(pid, 16, "%s", e ? e->fields[1] : "-");
    return !e ? "absent" : process_alive(lab_process_id(e)) ? "running" : "dead";
}

static void
print_part(const struct journal_list *list, const char *name)
{
    char pid[16];
    const char *state = process_state(list, name, pid);
    printf(ROW_FORMAT, name, "-", state, pid, "-", "-", "-");
}

/* "netdev>peer" of all ports of a node. */
static char *
ports_of(const struct journal_list *list, const char *node)
{
    struct ds out = DS_EMPTY_INITIALIZER;
    const struct journal_entry *e = NULL;
    while ((e = journal_next(list, e, '.', "port", node))) {
        ds_put_format(&out, "%s%s>%s", out.length ? " " : "", e->fields[1], e->fields[3]);
    }
    return ds_steal_cstr(&out);
}

/* The device of a host, from its only port. */
static const char *
netdev_of(const struct journal_list *list, const char *host)
{
    const struct journal_entry *port = journal_next(list, NULL, '.', "port", host);
    return port ? port->fields[1] : "";
}

static void
print_host(const struct journal_list *list, struct net *net, const char *name)
{
    const struct lab_text device = lab_rdma_device(name);
    bool has_rdma = journal_next(list, NULL, '+', "rxe", device.text);
    const char *netdev = netdev_of(list, name);
    const char *state = !net_ifindex(net, netdev)       ? "absent"
                        : link_has_carrier(net, netdev) ? "carrier"
                                                        : "down";
    char *ports = ports_of(list, name);
    char *rxe = has_rdma ? rdma_port_state(device.text) : xstrdup("-");
    printf(ROW_FORMAT, name, "host", state, "-", "-", rxe ? rxe : "absent", ports);
    free(rxe);
    free(ports);
}

static void
print_forwarder(const struct journal_list *list, const char *lab, const char *name,
                const char *kind)
{
    char pid[16];
    const char *state = process_state(list, name, pid);
    const struct lab_text netns = lab_netns_name(lab, name);
    char *ports = ports_of(list, name);
    printf(ROW_FORMAT, name, kind, state, pid, netns_exists(netns.text) ? netns.text : "absent",
           "-", ports);
    free(ports);
}

int
lab_status(const char *name)
{
    struct journal_list list;
    struct net *net = NULL;
    char *error = lab_read(name, &list);
    if (!error && lab_former_boot(&list)) {
        journal_list_uninit(&list);
        printf("lab %s: from before this machine booted, only its files are left (castlab down "
               "%s)\n",
               name, name);
        return EXIT_OK;
    }
    error = error ? error : lab_enter(name, &list);
    error = error ? error : net_open(&net, -1);
    if (error) {
        return lab_refuse(error);
    }
    printf("lab %s: %s\n\n", name,
           journal_find(&list, "up") ? "up"
                                     : "coming up, or cut short "
                                       "(castlab down)");
    printf(ROW_FORMAT, "NODE", "KIND", "STATE", "PID", "NAMESPACE", "RDMA", "PORTS");
    for (unsigned int i = 1; i <= lab_count_servers(name); i++) {
        print_part(&list, lab_server_name(i).text);
    }
    print_part(&list, CASTD_NAME);
    print_part(&list, HOLDER_NAME);
    const struct journal_entry *e = NULL;
    while ((e = journal_next(&list, e, '.', "node", NULL))) {
        if (!strcmp(e->fields[1], topology_kind_name(KIND_HOST))) {
            print_host(&list, net, e->fields[0]);
        } else {
            print_forwarder(&list, name, e->fields[0], e->fields[1]);
        }
        for (int j = 0; !strcmp(e->fields[1], topology_kind_name(KIND_OVS)) && j < LAB_OVS_N_PARTS;
             j++) {
            print_part(&list, lab_ovs_part(e->fields[0], (enum lab_ovs_part) j).text);
        }
    }
    net_close(net);
    journal_list_uninit(&list);
    return EXIT_OK;
}
