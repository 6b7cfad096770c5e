/* SPDX-License-Identifier: Apache-2.0
 *
 * Bringing a lab up.
 *
 * First everything is looked at that could stand in the way, and refused by
 * name; nothing has been made then.  After that each step goes to the journal
 * before it is taken, so that whatever happens lab_down() can undo it; a step
 * that fails, or Ctrl-C, does just that.
 *
 *     registry, castd            plan the topology: ports get their MAC addresses
 *     namespaces, veth pairs     forwarders and the links between them
 *     hosts                      lab-hosts.c
 *     swedge, srcagent           until each runs what castd wants of it
 *     soft-RoCE devices          unless --no-rdma
 *
 * Hosts are in the namespace in which castlab runs, and so are the daemons:
 * they open their taps there and their fabric ports in a namespace of theirs.
 */
#include <config.h>

#include "testbed/lab-up.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include "openvswitch/poll-loop.h"
#include "timeval.h"
#include "util.h"

#define POLL_MSEC 50

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
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, id);
    return id ? journal_made(&lab->journal, text) : NULL;
}

char *
lab_netns_name(const struct lab *lab, const struct topology_node *node)
{
    return xasprintf("%s-%s", lab->t->name, node->name);
}

/* Daemons. */

char *
lab_start(struct lab *lab, const char *name, char *const argv[])
{
    char *file = xasprintf("%s.out", name);
    char *output = lab_file(lab->t->name, file);
    struct child p;
    char *error = child_prepare(&p, argv, output);
    if (!error) {
        error = lab_intent(lab, "process %s %ld %llu", name, (long) p.id.pid, p.id.start);
        if (error) {
            child_abandon(&p);
        } else {
            lab->daemons = xrealloc(lab->daemons, (lab->n_daemons + 1) * sizeof *lab->daemons);
            lab->daemons[lab->n_daemons++] = (struct lab_daemon){xstrdup(name), p.id};
            error = child_release(&p);
        }
    }
    free(output);
    free(file);
    return error;
}

/* What a dead daemon last said. */
static char *
last_words(const struct lab *lab, const char *name)
{
    char *file = xasprintf("%s.out", name);
    char *path = lab_file(lab->t->name, file);
    FILE *stream = fopen(path, "re");
    char *line = NULL;
    char *last = NULL;
    size_t size = 0;
    while (stream && getline(&line, &size, stream) > 0) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0]) {
            free(last);
            last = xstrdup(line);
        }
    }
    if (stream) {
        fclose(stream);
    }
    free(line);
    free(path);
    free(file);
    return last ? last : xstrdup("it printed nothing");
}

static char *
check_daemons(struct lab *lab)
{
    for (size_t i = 0; i < lab->n_daemons; i++) {
        if (!child_alive(lab->daemons[i].id)) {
            char *words = last_words(lab, lab->daemons[i].name);
            char *error = xasprintf("%s has ended: %s", lab->daemons[i].name, words);
            free(words);
            return error;
        }
    }
    return NULL;
}

char *
lab_wait(struct lab *lab, char *(*lacks)(struct lab *, const void *), const void *arg)
{
    long long int deadline = time_msec() + lab->timeout * 1000LL;
    char *lack;
    while ((lack = lacks(lab, arg))) {
        char *error = check_daemons(lab);
        if (!error && child_interrupted()) {
            error = xstrdup("interrupted");
        }
        if (!error && time_msec() >= deadline) {
            lab->exit_code = EXIT_TIMEOUT;
            error = xasprintf("not done after %d s: %s", lab->timeout, lack);
        }
        free(lack);
        if (error) {
            return error;
        }
        if (lab->registry) {
            registry_wait(lab->registry, POLL_MSEC);
        } else {
            poll_timer_wait(POLL_MSEC);
            poll_block();
        }
    }
    return NULL;
}

/* Starts one of the OVSDB-style daemons with the options that all have.  'extra' ends with NULL
 * and is freed. */
static char *
start_daemon(struct lab *lab, const char *program, const char *name, char *extra[])
{
    char *base = lab_file(lab->t->name, name);
    char *argv[16] = {
        xstrdup(program),
        xstrdup("-vconsole:warn"),
        xasprintf("--unixctl=%s.ctl", base),
        xasprintf("--pidfile=%s.pid", base),
        xasprintf("--log-file=%s.log", base),
    };
    size_t n = 5;
    for (size_t i = 0; extra[i]; i++) {
        argv[n++] = extra[i];
    }
    char *error = lab_start(lab, name, argv);
    for (size_t i = 0; i < n; i++) {
        free(argv[i]);
    }
    free(base);
    return error;
}

/* Registry. */

static char *
lacks_socket(struct lab *lab, const void *arg OVS_UNUSED)
{
    char *path = lab_file(lab->t->name, "db.sock");
    char *lack = access(path, F_OK) ? xasprintf("ovsdb-server has not made %s", path) : NULL;
    free(path);
    return lack;
}

static char *
lacks_castd(struct lab *lab, const void *arg OVS_UNUSED)
{
    return registry_lacks_castd(lab->registry);
}

static char *
lacks_topology(struct lab *lab, const void *arg OVS_UNUSED)
{
    return registry_lacks_topology(lab->registry);
}

static char *
lacks_plan(struct lab *lab, const void *arg OVS_UNUSED)
{
    return registry_lacks_plan(lab->registry);
}

static char *
lacks_agents(struct lab *lab, const void *arg OVS_UNUSED)
{
    return registry_lacks_agents(lab->registry);
}

static char *
start_ovsdb(struct lab *lab)
{
    char *file = lab_file(lab->t->name, "registry.db");
    char *socket = lab_file(lab->t->name, "db.sock");
    char create[] = "create";
    char *argv[] = {lab->programs.ovsdb_tool, create, file, lab->programs.schema, NULL};
    char *extra[] = {xasprintf("--remote=punix:%s", socket), xstrdup(file), NULL};
    char *error = child_run(argv);
    if (!error) {
        error = start_daemon(lab, lab->programs.ovsdb_server, "ovsdb-server", extra);
    } else {
        free(extra[0]);
        free(extra[1]);
    }
    free(socket);
    free(file);
    return error ? error : lab_wait(lab, lacks_socket, NULL);
}

static char *
start_registry(struct lab *lab)
{
    char *error = start_ovsdb(lab);
    if (error) {
        return error;
    }
    char *db = lab_db(lab->t->name);
    char *extra[] = {xasprintf("--db=%s", db), NULL};
    error = start_daemon(lab, lab->programs.castd, "castd", extra);
    lab->registry = registry_open(db, lab->t);
    free(db);
    error = error ? error : lab_wait(lab, lacks_castd, NULL);
    error = error ? error : lab_wait(lab, lacks_topology, NULL);
    return error ? error : lab_wait(lab, lacks_plan, NULL);
}

/* Forwarders. */

static char *
create_netns(struct lab *lab, const struct topology_node *node)
{
    char *name = lab_netns_name(lab, node);
    uint64_t inode = 0;
    char *error = lab_intent(lab, "netns %s", name);
    if (!error) {
        error = netns_create(name, &inode);
        error = lab_outcome(lab, error, inode);
    }
    free(name);
    return error;
}

/* Opens the namespace of one end of a fabric link. */
static char *
open_end(struct lab *lab, const struct topology_end *end, int *fdp)
{
    char *name = lab_netns_name(lab, &lab->t->nodes[end->node]);
    char *error = netns_open(name, fdp);
    free(name);
    return error;
}

/* The pair is not in the journal: it ends with the namespaces that it is in. */
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
        if (!lab->t->links[i].is_tap) {
            error = create_fabric_link(lab, &lab->t->links[i]);
        }
    }
    return error;
}

/* Confines this process, and with it the ones that it starts, to one of the CPUs in 'all'. */
static void
run_on_one_cpu(const cpu_set_t *all, unsigned which)
{
    unsigned n = which % (unsigned) CPU_COUNT(all);
    cpu_set_t one;

    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, all) && !n--) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            sched_setaffinity(0, sizeof one, &one);
        }
    }
}

/* Each forwarder stays on one CPU: a veth queues frames on the sender's, so one that migrates
 * between two frames reorders them, and RC answers that with a retransmission. */
static char *
start_agents(struct lab *lab)
{
    char *db = lab_db(lab->t->name);
    char *error = NULL;
    cpu_set_t all;
    unsigned n_started = 0;

    CPU_ZERO(&all);
    if (sched_getaffinity(0, sizeof all, &all)) {
        error = xasprintf("CPU affinity: %s", ovs_strerror(errno));
    }
    for (size_t i = 0; i < lab->t->n_nodes && !error; i++) {
        const struct topology_node *node = &lab->t->nodes[i];
        if (node->kind == KIND_HOST) {
            continue;
        }
        char *extra[] = {
            xasprintf("--db=%s", db),
            xasprintf("--node=%s", node->name),
            xasprintf("--netns=%s-%s", lab->t->name, node->name),
            NULL,
        };
        run_on_one_cpu(&all, n_started++);
        error = start_daemon(
            lab, node->kind == KIND_SWEDGE ? lab->programs.swedge : lab->programs.srcagent,
            node->name, extra);
    }
    if (n_started) {
        sched_setaffinity(0, sizeof all, &all);
    }
    free(db);
    return error ? error : lab_wait(lab, lacks_agents, NULL);
}

/* The whole. */

/* The folder and the journal's facts: enough for 'status' without the file. */
static char *
create_folder(struct lab *lab)
{
    const struct topology *t = lab->t;
    char *folder = lab_folder(t->name);
    char *path = lab_file(t->name, "journal");
    char *error = mkdir(folder, 0755) ? xasprintf("%s: %s", folder, ovs_strerror(errno))
                                      : journal_open(&lab->journal, path);
    free(path);
    free(folder);
    error = error ? error : lab_fact(lab, "lab %s", t->name);
    error = error ? error : lab_fact(lab, "netns %" PRIu64, netns_inode("/proc/self/ns/net"));
    error = error ? error : lab_fact(lab, "rdma %s", lab->rdma ? "yes" : "no");
    for (size_t i = 0; i < t->n_nodes && !error; i++) {
        error = lab_fact(lab, "node %s %s", t->nodes[i].name, topology_kind_name(t->nodes[i].kind));
    }
    for (size_t i = 0; i < t->n_links && !error; i++) {
        const struct topology_link *link = &t->links[i];
        for (size_t j = 0; j < 2 && !error; j++) {
            error = lab_fact(lab, "port %s %s %s %s", t->nodes[link->ends[j].node].name,
                             link->ends[j].netdev, link->is_tap ? "tap" : "packet",
                             t->nodes[link->ends[!j].node].name);
        }
    }
    return error;
}

static char *
build(struct lab *lab)
{
    char *error = create_folder(lab);
    error = error ? error : start_registry(lab);
    error = error ? error : create_fabric(lab);
    error = error ? error : lab_hosts_create(lab);
    error = error ? error : start_agents(lab);
    if (!error && lab->rdma) {
        error = lab_hosts_add_rdma(lab);
    }
    if (!error && child_interrupted()) {
        error = xstrdup("interrupted");
    }
    return error ? error : lab_fact(lab, "up");
}

static void
lab_uninit(struct lab *lab)
{
    for (size_t i = 0; i < lab->n_daemons; i++) {
        free(lab->daemons[i].name);
    }
    free(lab->daemons);
    registry_close(lab->registry);
    net_close(lab->net);
    programs_uninit(&lab->programs);
}

int
lab_up(const struct topology *t, bool rdma, int timeout)
{
    struct lab lab = {.t = t, .rdma = rdma, .timeout = timeout, .exit_code = EXIT_REFUSED};
    char *error = lab_lock();
    error = error ? error : net_open(&lab.net, -1);
    error = error ? error : lab_check(&lab);
    if (!error) {
        child_catch_signals();
        error = build(&lab);
        if (error) {
            /* Ctrl-C also ends what castlab was waiting for: not that program's fault. */
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
