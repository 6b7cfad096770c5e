/* SPDX-License-Identifier: Apache-2.0
 *
 * castscale's own session with the registry (see client.h).
 */
#include <config.h>

#include "bench/castscale/client.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bench/castscale/process.h"
#include "ctl/registry/group-state.h"
#include "ctl/registry/request.h"
#include "openvswitch/poll-loop.h"
#include "ovsdb-idl.h"
#include "timeval.h"
#include "util.h"

/* How often 'check' is called while nothing happens. */
#define CHECK_MSEC 200

struct client {
    struct ovsdb_idl *idl;
    int patience_msec;
    char *(*check)(void *aux);
    void *aux;
    long long checked_at;
};

/* All columns of what requests are about; of nodes only how far they are. */
static void
monitor(struct ovsdb_idl *idl)
{
    static const struct {
        struct ovsdb_idl_column *columns;
        size_t n;
    } tables[] = {
        {rrec_global_columns, RREC_GLOBAL_N_COLUMNS},
        {rrec_host_columns, RREC_HOST_N_COLUMNS},
        {rrec_link_columns, RREC_LINK_N_COLUMNS},
        {rrec_group_columns, RREC_GROUP_N_COLUMNS},
        {rrec_source_columns, RREC_SOURCE_N_COLUMNS},
        {rrec_member_columns, RREC_MEMBER_N_COLUMNS},
        {rrec_listener_columns, RREC_LISTENER_N_COLUMNS},
    };

    for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
        for (size_t j = 0; j < tables[i].n; j++) {
            ovsdb_idl_add_column(idl, &tables[i].columns[j]);
        }
    }
    ovsdb_idl_add_column(idl, &rrec_node_col_name);
    ovsdb_idl_add_column(idl, &rrec_node_col_state);
    ovsdb_idl_add_column(idl, &rrec_node_col_cfg);
    ovsdb_idl_add_column(idl, &rrec_node_col_nb_cfg);
}

struct client *
client_open(const char *db, int patience_msec, char *(*check)(void *aux), void *aux)
{
    struct client *c = xzalloc(sizeof *c);

    c->idl = ovsdb_idl_create(db, &rrec_idl_class, false, true);
    ovsdb_idl_set_leader_only(c->idl, false);
    monitor(c->idl);
    c->patience_msec = patience_msec;
    c->check = check;
    c->aux = aux;
    return c;
}

void
client_close(struct client *c)
{
    if (c) {
        ovsdb_idl_destroy(c->idl);
        free(c);
    }
}

/* Why there is no point in waiting on; NULL: there is. */
static char *
must_give_up(struct client *c, long long deadline, const char *what)
{
    if (process_interrupted()) {
        return xstrdup("interrupted");
    }
    if (time_msec() >= c->checked_at + CHECK_MSEC) {
        c->checked_at = time_msec();
        char *error = c->check(c->aux);
        if (error) {
            return error;
        }
    }
    return time_msec() < deadline ? NULL
                                  : xasprintf("%s: not within %d s", what, c->patience_msec / 1000);
}

static void
sleep_on(struct client *c)
{
    ovsdb_idl_wait(c->idl);
    process_interrupted_wait();
    poll_timer_wait(CHECK_MSEC);
    poll_block();
}

/* Changes with what the client sees, and with what it asks to see. */
static unsigned int
count_news(const struct client *c)
{
    return ovsdb_idl_get_seqno(c->idl) + ovsdb_idl_get_condition_seqno(c->idl);
}

/* Is it so?  Or never will be: then '*why' is set. */
typedef bool condition(struct client *, const void *aux, char **why);

static char *
wait_until(struct client *c, condition *is_so, const void *aux, const char *what)
{
    long long deadline = time_msec() + c->patience_msec;
    unsigned int seqno = 0;
    bool first = true;
    char *why = NULL;

    for (;;) {
        ovsdb_idl_run(c->idl);
        if (first || seqno != count_news(c)) {
            first = false;
            seqno = count_news(c);
            if (is_so(c, aux, &why) || why) {
                return why;
            }
        }
        why = must_give_up(c, deadline, what);
        if (why) {
            return why;
        }
        sleep_on(c);
    }
}

static bool
has_global(struct client *c, const void *aux OVS_UNUSED, char **why OVS_UNUSED)
{
    return rrec_global_first(c->idl) != NULL;
}

char *
client_wait_castd(struct client *c)
{
    return wait_until(c, has_global, NULL, "castd has set up the registry");
}

static bool
follows(struct client *c, const void *seqno, char **why OVS_UNUSED)
{
    return ovsdb_idl_get_condition_seqno(c->idl) >= *(const unsigned int *) seqno;
}

char *
client_follow(struct client *c, const char *group, const char *host)
{
    unsigned int seqno = request_follow(c->idl, group, host);

    return wait_until(c, follows, &seqno, "the server shows what was asked for");
}

/* Commits, and waits for the answer. */
static char *
commit(struct client *c, struct ovsdb_idl_txn *txn, const char *what,
       enum ovsdb_idl_txn_status *status)
{
    long long deadline = time_msec() + c->patience_msec;

    while ((*status = ovsdb_idl_txn_commit(txn)) == TXN_INCOMPLETE) {
        char *why = must_give_up(c, deadline, what);
        if (why) {
            return why;
        }
        ovsdb_idl_txn_wait(txn);
        sleep_on(c);
        ovsdb_idl_run(c->idl);
    }
    return *status == TXN_ERROR ? xasprintf("%s: %s", what, ovsdb_idl_txn_get_error(txn)) : NULL;
}

char *
client_request(struct client *c, client_filler *fill, const void *aux, const char *what,
               int64_t *request)
{
    enum ovsdb_idl_txn_status status = TXN_TRY_AGAIN;
    char *error = NULL;

    while (!error && status != TXN_SUCCESS) {
        ovsdb_idl_run(c->idl);
        struct ovsdb_idl_txn *txn = ovsdb_idl_txn_create(c->idl);
        error = fill ? fill(c->idl, txn, aux) : NULL;
        if (!error) {
            request_number(c->idl, txn, !fill);
            error = commit(c, txn, what, &status);
        }
        if (!error && status == TXN_SUCCESS) {
            *request = ovsdb_idl_txn_get_increment_new_value(txn);
        }
        ovsdb_idl_txn_destroy(txn);
    }
    return error;
}

static bool
is_answered(struct client *c, const void *request, char **why OVS_UNUSED)
{
    return rrec_global_first(c->idl)->nb_cfg >= *(const int64_t *) request;
}

char *
client_wait_answer(struct client *c, int64_t request)
{
    return wait_until(c, is_answered, &request, "castd has taken up a request");
}

/* A node that refuses what it is told never gets there. */
static bool
is_applied(struct client *c, const void *request, char **why)
{
    const struct rrec_node *node;

    RREC_NODE_FOR_EACH (node, c->idl) {
        if (node->nb_cfg && strcmp(node->state, "ok")) {
            *why = xasprintf("node %s: %s", node->name, node->state);
            return false;
        }
    }
    return rrec_global_first(c->idl)->agents_cfg >= *(const int64_t *) request;
}

char *
client_wait_agents(struct client *c, int64_t request)
{
    return wait_until(c, is_applied, &request, "all agents have applied a request");
}

static bool
is_quiet(struct client *c, const void *aux OVS_UNUSED, char **why)
{
    return is_applied(c, &rrec_global_first(c->idl)->next_cfg, why);
}

char *
client_wait_quiet(struct client *c)
{
    return wait_until(c, is_quiet, NULL, "all requests are done");
}

struct wanted_groups {
    const struct fabric *f;
    unsigned n;
};

static bool
are_ready(struct client *c, const void *wanted_, char **why OVS_UNUSED)
{
    const struct wanted_groups *wanted = wanted_;
    const struct rrec_group *group;
    const struct rrec_member *member;
    size_t n_ready = 0, n_active = 0;

    RREC_GROUP_FOR_EACH (group, c->idl) {
        n_ready += !strcmp(group->state, "ready");
    }
    if (n_ready < wanted->n) {
        return false;
    }
    RREC_MEMBER_FOR_EACH (member, c->idl) {
        n_active += !strcmp(member->state, "active");
    }
    return n_active >= (size_t) wanted->n * wanted->f->n_members;
}

char *
client_wait_groups(struct client *c, const struct fabric *f, unsigned n)
{
    const struct wanted_groups wanted = {f, n};

    return wait_until(c, are_ready, &wanted, "all groups are ready");
}

/* A row of Member, by its name and, once it was found, by its UUID: there are many. */
struct wanted_member {
    const char *group, *host;
    struct uuid *uuid;
};

static const struct rrec_member *
find_member(struct client *c, const struct wanted_member *wanted)
{
    if (!uuid_is_zero(wanted->uuid)) {
        return rrec_member_get_for_uuid(c->idl, wanted->uuid);
    }
    const struct rrec_group *group = request_find_group(c->idl, wanted->group);
    const struct rrec_member *m = group ? request_find_member(c->idl, group, wanted->host) : NULL;

    if (m) {
        *wanted->uuid = m->header_.uuid;
    }
    return m;
}

static bool
is_active(struct client *c, const void *wanted, char **why)
{
    const struct rrec_member *m = find_member(c, wanted);

    if (!m || member_is_lost(m)) {
        *why = m ? xasprintf("member %s of group %s: %s", m->host, m->group->name, m->status)
                 : xstrdup("a member is not in the registry");
    }
    return m && member_is_active(m);
}

char *
client_wait_active(struct client *c, const char *group, const char *host)
{
    struct uuid uuid = UUID_ZERO;
    const struct wanted_member wanted = {group, host, &uuid};

    return wait_until(c, is_active, &wanted, "a member is active");
}

static bool
is_gone(struct client *c, const void *uuid, char **why OVS_UNUSED)
{
    return !rrec_member_get_for_uuid(c->idl, uuid);
}

static char *
fill_leave(struct ovsdb_idl *idl, struct ovsdb_idl_txn *txn OVS_UNUSED, const void *wanted_)
{
    const struct wanted_member *wanted = wanted_;
    char *why;

    return request_member_leave(idl, wanted->group, wanted->host, "removed", &why) ? why : NULL;
}

char *
client_remove_member(struct client *c, const char *group, const char *host)
{
    struct uuid uuid = UUID_ZERO;
    const struct wanted_member wanted = {group, host, &uuid};
    int64_t request;

    if (!find_member(c, &wanted)) {
        return xasprintf("%s is not a member of group %s", host, group);
    }
    char *error = client_request(c, fill_leave, &wanted, "a member leaves", &request);

    return error ? error : wait_until(c, is_gone, &uuid, "a member is gone");
}
