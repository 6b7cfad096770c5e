/* SPDX-License-Identifier: Apache-2.0
 *
 * Ending one daemon of a lab, starting one that does not run, or both in turn.
 *
 * The journal says what the lab consists of.  The daemon is started as 'up'
 * started it.  The hosts' devices keep their carrier meanwhile, since the holder
 * has a queue of each.  Queue pairs wait, and resend.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "testbed/castlab/up.h"
#include "util.h"

struct restart {
    struct lab *lab;
    const struct journal_list *list;
    const struct lab_restart *what;
    const struct journal_entry *node; /* NULL: castd, or a server of the registry. */
    unsigned int server;              /* its number; 0: castd or a forwarder. */
};

static bool
is_kind(const struct journal_entry *node, enum topology_kind kind)
{
    return !strcmp(node->fields[1], topology_kind_name(kind));
}

/* How many forwarders the lab has before this one. */
static unsigned int
number_of(const struct journal_list *list, const struct journal_entry *node)
{
    unsigned int n = 0;
    for (const struct journal_entry *e = list->entries; e < node; e++) {
        n += e->op == '.' && !strcmp(e->kind, "node") && !is_kind(e, KIND_HOST);
    }
    return n;
}

/* castd, or a server of the registry. */
static char *
start_central(const struct restart *r)
{
    struct lab *lab = r->lab;
    char *error = r->server ? lab_start_ovsdb(lab, r->server) : lab_start_castd(lab);
    /* The others of a cluster answer all the while. */
    error = error       ? error
            : r->server ? lab_connect_server(lab, r->server)
                        : lab_connect_registry(lab);
    return error ? error : lab_wait_registry(lab, registry_lacks_answer, NULL);
}

/* Looks for what the start needs, before anything is ended. */
static char *
prepare(const struct restart *r)
{
    char *error = programs_find(&r->lab->programs);
    if (!error && r->node && is_kind(r->node, KIND_OVS)) {
        error = programs_find_ovs(&r->lab->programs);
    }
    return error || !r->node ? error : lab_connect_registry(r->lab);
}

/* The old process's generation must not be taken for the new one's: registry_lacks_no_agent(). */
static char *
start_agent(const struct restart *r)
{
    const char *name = r->what->daemon;
    enum topology_kind kind = KIND_HOST;
    topology_kind_parse(r->node->fields[1], &kind); /* there is one of that name. */
    const struct journal_entry *threads = journal_find(r->list, "threads");
    r->lab->n_threads = threads ? (unsigned int) strtoul(threads->fields[0], NULL, 10) : 1;
    char *error = lab_wait_registry(r->lab, registry_lacks_no_agent, name);
    error = error ? error : lab_start_agent(r->lab, name, kind, number_of(r->list, r->node));
    return error ? error : lab_wait_registry(r->lab, registry_lacks_agent, name);
}

static char *
start_any(const struct restart *r)
{
    return r->node ? start_agent(r) : start_central(r);
}

/* The daemon's processes, in the opposite of the order in which they are started. */
static void
find_parts(const struct restart *r, const struct journal_entry *parts[1 + LAB_OVS_N_PARTS],
           size_t *np)
{
    *np = 0;
    parts[(*np)++] = lab_find_process(r->list, r->what->daemon);
    for (int i = LAB_OVS_N_PARTS - 1; r->node && is_kind(r->node, KIND_OVS) && i >= 0; i--) {
        parts[(*np)++] =
            lab_find_process(r->list, lab_ovs_part(r->what->daemon, (enum lab_ovs_part) i).text);
    }
}

/* Stopping what is dead is done already, and so is starting what runs: each may be repeated. */
static char *
restart_any(const struct restart *r)
{
    const struct lab_restart *what = r->what;
    const struct journal_entry *parts[1 + LAB_OVS_N_PARTS];
    size_t n_parts, n_running = 0;

    find_parts(r, parts, &n_parts);
    for (size_t i = 0; i < n_parts; i++) {
        n_running += parts[i] && process_alive(lab_process_id(parts[i]));
    }
    if (parts[0] && n_running == n_parts && !what->stop) {
        lab_complain("'%s' runs, as process %s: nothing to do", what->daemon, parts[0]->fields[1]);
        return NULL;
    }
    if (!n_running && !what->start) {
        lab_complain("'%s' does not run: nothing to do", what->daemon);
        return NULL;
    }
    char *error = what->start ? prepare(r) : NULL;
    for (size_t i = 0; i < n_parts && !error; i++) {
        error = parts[i] ? child_stop(lab_process_id(parts[i]), what->kill) : NULL;
    }
    return error || !what->start ? error : start_any(r);
}

/* Finds the node whose daemon is meant.  It is NULL for a daemon that every lab has. */
static char *
find_node(struct restart *r)
{
    const char *name = r->what->daemon;
    r->server = lab_server_number(name);
    if (r->server > lab_count_servers(r->lab->name)) {
        return xasprintf("the registry of lab '%s' has no server '%s' (castlab status)",
                         r->lab->name, name);
    }
    if (r->server || !strcmp(name, CASTD_NAME)) {
        return NULL;
    }
    r->node = lab_find_node(r->list, name);
    if (!r->node) {
        return xasprintf("lab '%s' has no node '%s' (castlab status)", r->lab->name, name);
    }
    return is_kind(r->node, KIND_HOST) ? xasprintf("'%s' is a host: it has no daemon", name) : NULL;
}

/* Opens a lab that 'up' has finished.  Nobody may add to the journal of any other lab. */
static char *
open_lab(struct lab *lab, struct journal_list *list)
{
    char *error = lab_lock();
    error = error ? error : lab_read(lab->name, list);
    if (!error && !journal_find(list, "up")) {
        error = xasprintf("lab '%s' is not quite up (castlab down %s)", lab->name, lab->name);
    }
    error = error ? error : lab_enter(lab->name, list);
    return error ? error : journal_open(&lab->journal, lab_file(lab->name, "journal").text);
}

int
lab_restart(const char *name, const struct lab_restart *what)
{
    struct lab lab = {.name = name, .timeout = what->timeout, .exit_code = EXIT_REFUSED};
    struct journal_list list = {.n = 0};
    struct restart r = {.lab = &lab, .list = &list, .what = what};
    char *error = open_lab(&lab, &list);
    if (!error) {
        child_catch_signals();
        error = find_node(&r);
        error = error ? error : restart_any(&r);
        journal_close(&lab.journal);
    }
    int exit_code = EXIT_OK;
    if (error) {
        exit_code = child_interrupted() ? EXIT_INTERRUPTED : lab.exit_code;
        lab_complain("%s", error);
    }
    free(error);
    journal_list_uninit(&list);
    lab_uninit(&lab);
    return exit_code;
}
