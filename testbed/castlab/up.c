/* SPDX-License-Identifier: Apache-2.0
 *
 * Bringing a lab up.
 *
 * First everything that could stand in the way is looked at, and refused by
 * name, while nothing has been made yet.  After that each step goes to the
 * journal before it is taken, so that lab_down() can undo it whatever happens.
 * A step that fails undoes the lab in this way, and so does Ctrl-C.
 *
 *     registry, castd            plan the topology: ports get their MAC addresses
 *     namespaces, veth pairs     forwarders and the links between them
 *     hosts                      hosts.c
 *     swedge, srcagent           waits until each runs what castd wants of it
 *     soft-RoCE devices          unless --no-rdma
 *
 * Hosts are in the namespace in which castlab runs, and so are the daemons.  A
 * daemon opens its taps there and its fabric ports in a namespace of its own.
 */
#include <config.h>

#include "testbed/castlab/up.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util.h"

/* Journal. */

static char *
write_formatted(struct lab *lab, char *(*write_line)(struct journal *, const char *),
                const char *format, va_list args)
{
    char *text = xvasprintf(format, args);
    char *error = write_line(&lab->journal, text);
    free(text);
    return error;
}

char *
lab_fact(struct lab *lab, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *error = write_formatted(lab, journal_fact, format, args);
    va_end(args);
    return error;
}

char *
lab_intent(struct lab *lab, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *error = write_formatted(lab, journal_intent, format, args);
    va_end(args);
    return error;
}

char *
lab_outcome(struct lab *lab, char *error, uint64_t id)
{
    if (error) {
        free(journal_withdraw(&lab->journal));
        return error;
    }
    if (id == UNKNOWN_ID) {
        /* The record stays as that of something of which nobody knows if it was done: whatever is
         * there is taken down. */
        return xstrdup("the kernel does not tell what it has made");
    }
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, id);
    return id == NO_ID ? NULL : journal_made(&lab->journal, text);
}

/* Registry. */

/* Where the other servers of the registry reach it. */
static struct lab_text
raft_address(const struct lab *lab, unsigned int number)
{
    return lab_text("unix:%s", lab_file(lab->name, lab_text("%u.raft", number).text).text);
}

/* The database of one server: of the only one, of the first of a cluster, or of one that joins that. */
static char *
create_database(struct lab *lab, unsigned int number)
{
    char create[] = "create", create_cluster[] = "create-cluster", join[] = "join-cluster";
    char name[] = "rocecast", *tool = lab->programs.ovsdb_tool, *schema = lab->programs.schema;
    struct lab_text file = lab_server_db(lab->name, number);
    struct lab_text own = raft_address(lab, number), first = raft_address(lab, 1);
    char *only_argv[] = {tool, create, file.text, schema, NULL};
    char *first_argv[] = {tool, create_cluster, file.text, schema, own.text, NULL};
    char *join_argv[] = {tool, join, file.text, name, own.text, first.text, NULL};

    return child_run(number > 1 ? join_argv : lab->t->n_servers > 1 ? first_argv : only_argv);
}

static char *
create_registry(struct lab *lab)
{
    char *error = NULL;
    for (unsigned int i = 1; i <= lab->t->n_servers && !error; i++) {
        error = create_database(lab, i);
    }
    for (unsigned int i = 1; i <= lab->t->n_servers && !error; i++) {
        error = lab_start_ovsdb(lab, i);
    }
    return error;
}

/* The others join the first one of a cluster one after the other.  Until they have, a cluster is lost with
 * the first one. */
static char *
wait_for_servers(struct lab *lab)
{
    char *error = NULL;
    for (unsigned int i = 2; i <= lab->t->n_servers && !error; i++) {
        error = lab_connect_server(lab, i);
        registry_close(lab->registry);
        lab->registry = NULL;
    }
    return error;
}

static char *
start_registry(struct lab *lab)
{
    char *error = create_registry(lab);
    error = error ? error : lab_start_castd(lab);
    error = error ? error : wait_for_servers(lab);
    error = error ? error : lab_connect_registry(lab);
    error = error ? error : lab_wait_registry(lab, registry_lacks_topology, NULL);
    return error ? error : lab_wait_registry(lab, registry_lacks_plan, NULL);
}

/* Forwarders. */

static char *
create_netns(struct lab *lab, const struct topology_node *node)
{
    const struct lab_text name = lab_netns_name(lab->name, node->name);
    uint64_t inode = 0;
    char *error = lab_intent(lab, "netns %s", name.text);
    if (error) {
        return error;
    }
    error = netns_create(name.text, &inode);
    return lab_outcome(lab, error, inode ? inode : UNKNOWN_ID);
}

/* Opens the namespace of one end of a fabric link. */
static char *
open_end(struct lab *lab, const struct topology_end *end, int *fdp)
{
    return netns_open(lab_netns_name(lab->name, lab->t->nodes[end->node].name).text, fdp);
}

/* The pair is not in the journal, since it ends with the namespaces that it is in. */
static char *
create_fabric_link(struct lab *lab, const struct topology_link *link)
{
    int fds[2] = {-1, -1};
    struct net *nets[2] = {NULL, NULL};
    char *error = NULL;
    for (size_t i = 0; i < 2 && !error; i++) {
        error = open_end(lab, &link->ends[i], &fds[i]);
        error = error ? error : net_open(&nets[i], fds[i]);
    }
    error = error ? error
                  : veth_create(nets[0], link->ends[0].netdev, link->ends[1].netdev, fds[1],
                                lab->t->fabric_mtu);
    for (size_t i = 0; i < 2; i++) {
        error = error ? error : link_set_up(nets[i], link->ends[i].netdev);
        net_close(nets[i]);
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
    return error;
}

static char *
create_fabric(struct lab *lab)
{
    char *error = NULL;
    for (size_t i = 0; i < lab->t->n_nodes && !error; i++) {
        if (lab->t->nodes[i].kind != KIND_HOST) {
            error = create_netns(lab, &lab->t->nodes[i]);
        }
    }
    for (size_t i = 0; i < lab->t->n_links && !error; i++) {
        if (!lab->t->links[i].has_host) {
            error = create_fabric_link(lab, &lab->t->links[i]);
        }
    }
    return error;
}

static char *
start_agents(struct lab *lab)
{
    char *error = NULL;
    unsigned int n_started = 0;
    for (size_t i = 0; i < lab->t->n_nodes && !error; i++) {
        const struct topology_node *node = &lab->t->nodes[i];
        if (node->kind != KIND_HOST) {
            error = lab_start_agent(lab, node->name, node->kind, n_started++);
        }
    }
    return error ? error : lab_wait_registry(lab, registry_lacks_agents, NULL);
}

/* The whole. */

/* Creates the folder and the journal's facts, which are enough for 'status' without the file. */
static char *
create_folder(struct lab *lab)
{
    const struct topology *t = lab->t;
    const struct lab_text folder = lab_folder(t->name);
    char *error = mkdir(folder.text, 0755)
                      ? xasprintf("%s: %s", folder.text, ovs_strerror(errno))
                      : journal_open(&lab->journal, lab_file(t->name, "journal").text);
    error = error ? error : lab_fact(lab, "boot %s", lab_boot_id().text);
    error = error ? error : lab_fact(lab, "lab %s", t->name);
    error = error ? error : lab_fact(lab, "netns %" PRIu64, netns_inode("/proc/self/ns/net"));
    error = error ? error : lab_fact(lab, "rdma %s", lab->rdma ? "yes" : "no");
    error = error ? error : lab_fact(lab, "threads %u", lab->n_threads);
    for (size_t i = 0; i < t->n_nodes && !error; i++) {
        error = lab_fact(lab, "node %s %s", t->nodes[i].name, topology_kind_name(t->nodes[i].kind));
    }
    for (size_t i = 0; i < t->n_links && !error; i++) {
        const struct topology_link *link = &t->links[i];
        for (size_t j = 0; j < 2 && !error; j++) {
            error = lab_fact(lab, "port %s %s %s %s", t->nodes[link->ends[j].node].name,
                             link->ends[j].netdev, port_kind_name(port_kind_usual(link->has_host)),
                             t->nodes[link->ends[!j].node].name);
        }
    }
    return error;
}

/* Tells the user what comes next.  Under emulation, or with many hosts, a step takes its time. */
static void __attribute__((format(printf, 2, 3)))
announce(const struct lab *lab, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("lab '%s': ", lab->name);
    vprintf(format, args);
    putchar('\n');
    fflush(stdout);
    va_end(args);
}

static char *
build(struct lab *lab)
{
    size_t n_hosts = 0;
    size_t n_rdma = 0;
    for (size_t i = 0; i < lab->t->n_links; i++) {
        n_hosts += lab->t->links[i].has_host;
        n_rdma += lab_has_rdma(lab, &lab->t->links[i]);
    }
    size_t n_forwarders = lab->t->n_nodes - n_hosts;
    char *error = create_folder(lab);
    if (!error) {
        announce(lab, "registry and castd");
        error = start_registry(lab);
    }
    if (!error) {
        announce(lab, "%zu namespaces, %zu links", n_forwarders, lab->t->n_links - n_hosts);
        error = create_fabric(lab);
    }
    if (!error) {
        announce(lab, "%zu hosts", n_hosts);
        error = lab_hosts_create(lab);
    }
    if (!error) {
        announce(lab, "%zu forwarders", n_forwarders);
        error = start_agents(lab);
    }
    if (!error && lab->rdma) {
        announce(lab, "%zu soft-RoCE devices", n_rdma);
        error = lab_hosts_add_rdma(lab);
    }
    if (!error && child_interrupted()) {
        error = xstrdup("interrupted");
    }
    return error ? error : lab_fact(lab, "up");
}

int
lab_up(const struct topology *t, const struct lab_up *up)
{
    struct lab lab = {
        .name = t->name,
        .t = t,
        .rdma = up->rdma,
        .timeout = up->timeout,
        .n_threads = up->n_threads,
        .exit_code = EXIT_REFUSED,
    };
    /* Before the lock, which makes the folder of all labs. */
    char *error = lab_check_path(t->name);
    error = error ? error : lab_lock();
    error = error ? error : net_open(&lab.net, -1);
    error = error ? error : lab_check(&lab);
    if (!error) {
        child_catch_signals();
        error = build(&lab);
        if (error) {
            /* Ctrl-C also ends what castlab was waiting for, which is not that program's fault. */
            if (child_interrupted()) {
                lab.exit_code = EXIT_INTERRUPTED;
            }
            lab_complain("%s", error);
            free(error);
            error = xasprintf("lab '%s' was not brought up%s", t->name,
                              lab_down(t->name) ? "" : "; nothing of it is left");
        }
    }
    lab_uninit(&lab);
    if (error) {
        lab_complain("%s", error);
        free(error);
        return lab.exit_code;
    }
    return EXIT_OK;
}
