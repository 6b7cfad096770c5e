/* SPDX-License-Identifier: Apache-2.0
 *
 * Daemons of a lab: how each is started, and waiting for what they do.
 *
 * All run in the namespace of the hosts, in sessions of their own, and append
 * to the same files every time: NAME.log, and NAME.out with what they print.
 */
#include <config.h>

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/registry/allocator.h"
#include "openvswitch/poll-loop.h"
#include "testbed/castlab/up.h"
#include "timeval.h"
#include "util.h"

#define POLL_MSEC 50

static struct lab_text
output_file(const struct lab *lab, const char *name)
{
    return lab_file(lab->name, lab_text("%s.out", name).text);
}

char *
lab_start(struct lab *lab, const char *name, char *const argv[])
{
    struct child p;
    char *error = child_prepare(&p, argv, output_file(lab, name).text);
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
    return error;
}

/* What a dead daemon last said. */
static char *
last_words(const struct lab *lab, const char *name)
{
    FILE *stream = fopen(output_file(lab, name).text, "re");
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
    return last ? last : xstrdup("it printed nothing");
}

static char *
check_daemons(struct lab *lab)
{
    for (size_t i = 0; i < lab->n_daemons; i++) {
        if (!process_alive(lab->daemons[i].id)) {
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

struct registry_wait {
    registry_lacks *lacks;
    const char *node;
};

static char *
lacks_in_registry(struct lab *lab, const void *wait_)
{
    const struct registry_wait *wait = wait_;
    return wait->lacks(lab->registry, wait->node);
}

char *
lab_wait_registry(struct lab *lab, registry_lacks *lacks, const char *node)
{
    const struct registry_wait wait = {lacks, node};
    return lab_wait(lab, lacks_in_registry, &wait);
}

static char *
lacks_socket(struct lab *lab OVS_UNUSED, const void *path)
{
    return access(path, F_OK) ? xasprintf("ovsdb-server has not made %s", (const char *) path)
                              : NULL;
}

char *
lab_wait_socket(struct lab *lab, const char *path)
{
    return lab_wait(lab, lacks_socket, path);
}

static char *
connect_to(struct lab *lab, const char *db)
{
    lab->registry = registry_open(db, lab->t);
    return lab_wait_registry(lab, registry_lacks_castd, NULL);
}

char *
lab_connect_registry(struct lab *lab)
{
    return connect_to(lab, lab_db(lab->name).text);
}

char *
lab_connect_server(struct lab *lab, unsigned int number)
{
    const struct lab_text socket = lab_server_socket(lab->name, number);
    return connect_to(lab, lab_text("unix:%s", socket.text).text);
}

char *
lab_start_daemon(struct lab *lab, const char *const prefix[], const char *program, const char *name,
                 char *extra[])
{
    const struct lab_text base = lab_file(lab->name, name);
    char *argv[16] = {NULL};
    size_t n = 0;
    for (size_t i = 0; prefix && prefix[i]; i++) {
        argv[n++] = xstrdup(prefix[i]);
    }
    argv[n++] = xstrdup(program);
    argv[n++] = xstrdup("-vconsole:warn");
    argv[n++] = xasprintf("--unixctl=%s.ctl", base.text);
    argv[n++] = xasprintf("--pidfile=%s.pid", base.text);
    argv[n++] = xasprintf("--log-file=%s.log", base.text);
    for (size_t i = 0; extra[i]; i++) {
        argv[n++] = extra[i];
    }
    char *error = lab_start(lab, name, argv);
    for (size_t i = 0; i < n; i++) {
        free(argv[i]);
    }
    return error;
}

char *
lab_start_ovsdb(struct lab *lab, unsigned int number)
{
    const struct lab_text socket = lab_server_socket(lab->name, number);
    char *extra[] = {xasprintf("--remote=punix:%s", socket.text),
                     xstrdup(lab_server_db(lab->name, number).text), NULL};
    unlink(socket.text); /* left by one that was killed: it is not to be taken for this one's. */
    unsigned preloaded = allocator_preload();
    char *error = lab_start_daemon(lab, NULL, lab->programs.ovsdb_server,
                                   lab_server_name(number).text, extra);
    allocator_unload(preloaded);
    return error ? error : lab_wait_socket(lab, socket.text);
}

/* "--db=..." */
static char *
db_option(const struct lab *lab)
{
    return xasprintf("--db=%s", lab_db(lab->name).text);
}

char *
lab_start_castd(struct lab *lab)
{
    char *extra[] = {db_option(lab), NULL};
    return lab_start_daemon(lab, NULL, lab->programs.castd, CASTD_NAME, extra);
}

/* Confines this process and those that it starts to one of the CPUs in 'all'. */
static void
run_on_one_cpu(const cpu_set_t *all, unsigned int which)
{
    unsigned int n = which % (unsigned int) CPU_COUNT(all);
    cpu_set_t one;

    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, all) && !n--) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            sched_setaffinity(0, sizeof one, &one);
        }
    }
}

char *
lab_start_agent(struct lab *lab, const char *name, enum topology_kind kind, unsigned int number)
{
    cpu_set_t all;
    CPU_ZERO(&all);
    if (sched_getaffinity(0, sizeof all, &all)) {
        return xasprintf("CPU affinity: %s", ovs_strerror(errno));
    }
    const char *const programs[] = {
        [KIND_SWEDGE] = lab->programs.swedge,
        [KIND_SRCAGENT] = lab->programs.srcagent,
        [KIND_OVS] = lab->programs.castfwd,
        [KIND_ROUTER] = lab->programs.castfwd,
    };
    bool forwards = kind == KIND_SWEDGE || kind == KIND_SRCAGENT;
    char *extra[] = {
        db_option(lab),
        xasprintf("--node=%s", name),
        xasprintf("--netns=%s", lab_netns_name(lab->name, name).text),
        forwards ? xasprintf("--threads=%u", lab->n_threads) : NULL,
        NULL,
    };
    if (!forwards || lab->n_threads == 1) {
        run_on_one_cpu(&all, number);
    }
    char *error = kind == KIND_OVS ? lab_start_ovs(lab, name) : NULL;
    error = error ? error : lab_start_daemon(lab, NULL, programs[kind], name, extra);
    sched_setaffinity(0, sizeof all, &all);
    return error;
}

void
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
