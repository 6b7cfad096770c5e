/* SPDX-License-Identifier: Apache-2.0
 *
 * Restarting one daemon of a lab.
 *
 * The journal says what the lab consists of; the daemon is started as 'up'
 * started it.  The hosts' devices keep their carrier meanwhile, since the
 * holder has a queue of each: queue pairs wait, and resend.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "testbed/lab-up.h"
#include "util.h"

struct restart {
    struct lab *lab;
    const struct journal_list *list;
    const char *daemon;
    bool kill;
};

static char *
lacks_castd(struct lab *lab, const void *arg OVS_UNUSED)
{
    return registry_lacks_castd(lab->registry);
}

static char *
lacks_answer(struct lab *lab, const void *arg OVS_UNUSED)
{
    return registry_lacks_answer(lab->registry);
}

static char *
lacks_no_agent(struct lab *lab, const void *node)
{
    return registry_lacks_no_agent(lab->registry, node);
}

static char *
lacks_agent(struct lab *lab, const void *node)
{
    return registry_lacks_agent(lab->registry, node);
}

static char *
connect_registry(struct lab *lab)
{
    char *db = lab_db(lab->name);
    lab->registry = registry_open(db, NULL);
    free(db);
    return lab_wait(lab, lacks_castd, NULL);
}

/* One that is dead already is no error. */
static char *
stop(const struct restart *r)
{
    const struct journal_entry *e = lab_find_process(r->list, r->daemon);
    return e ? child_stop(lab_process_id(e), r->kill) : NULL;
}

static char *
restart_server(const struct restart *r, char *(*start)(struct lab *) )
{
    char *error = stop(r);
    error = error ? error : start(r->lab);
    error = error ? error : connect_registry(r->lab);
    return error ? error : lab_wait(r->lab, lacks_answer, NULL);
}

/* The generation that the old process has reported must not be taken for the new one's. */
static char *
restart_agent(const struct restart *r, enum topology_kind kind, unsigned int number)
{
    char *error = connect_registry(r->lab);
    error = error ? error : stop(r);
    error = error ? error : lab_wait(r->lab, lacks_no_agent, r->daemon);
    error = error ? error : lab_start_agent(r->lab, r->daemon, kind, number);
    return error ? error : lab_wait(r->lab, lacks_agent, r->daemon);
}

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

static char *
restart_any(const struct restart *r)
{
    if (!strcmp(r->daemon, OVSDB_NAME)) {
        return restart_server(r, lab_start_ovsdb);
    }
    if (!strcmp(r->daemon, CASTD_NAME)) {
        return restart_server(r, lab_start_castd);
    }
    const struct journal_entry *node = lab_find_node(r->list, r->daemon);
    if (!node) {
        return xasprintf("lab '%s' has no node '%s' (castlab status)", r->lab->name, r->daemon);
    }
    if (is_kind(node, KIND_HOST)) {
        return xasprintf("'%s' is a host: it has no daemon", r->daemon);
    }
    return restart_agent(r, is_kind(node, KIND_SWEDGE) ? KIND_SWEDGE : KIND_SRCAGENT,
                         number_of(r->list, node));
}

/* What 'up' has finished; anything else has a journal that nobody may add to. */
static char *
open_lab(struct lab *lab, struct journal_list *list)
{
    char *error = lab_lock();
    error = error ? error : lab_read(lab->name, list);
    if (!error && !journal_find(list, "up")) {
        error = xasprintf("lab '%s' is not quite up (castlab down %s)", lab->name, lab->name);
    }
    error = error ? error : lab_enter(lab->name, list);
    error = error ? error : programs_find(&lab->programs);
    if (!error) {
        char *path = lab_file(lab->name, "journal");
        error = journal_open(&lab->journal, path);
        free(path);
    }
    return error;
}

int
lab_restart(const char *name, const char *daemon, bool kill, int timeout)
{
    struct lab lab = {.name = name, .timeout = timeout, .exit_code = EXIT_REFUSED};
    struct journal_list list = {.n = 0};
    char *error = open_lab(&lab, &list);
    if (!error) {
        child_catch_signals();
        error = restart_any(&(struct restart){&lab, &list, daemon, kill});
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
