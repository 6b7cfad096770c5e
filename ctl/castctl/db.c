/* SPDX-License-Identifier: Apache-2.0
 *
 * A castctl command against the registry: connect, one transaction, wait.
 * What makes transactions atomic is in ctl/registry/request.c.
 */
#include <config.h>

#include "ctl/castctl/castctl.h"

#include <stdlib.h>

#include "ctl/registry/request.h"
#include "ctl/registry/schema.h"
#include "ctl/registry/values.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "ovsdb-idl.h"
#include "stream-ssl.h"
#include "timeval.h"
#include "util.h"

/*
 * Rows by name.
 */

const struct rrec_node *
ctl_find_node(const struct ctl *ctl, const char *name)
{
    const struct rrec_node *row;

    RREC_NODE_FOR_EACH (row, ctl->idl) {
        if (!strcmp(row->name, name)) {
            return row;
        }
    }
    return NULL;
}

const struct rrec_node *
ctl_node_of_host(const struct ctl *ctl, const char *host)
{
    const struct rrec_link *row;

    RREC_LINK_FOR_EACH (row, ctl->idl) {
        if (!strcmp(row->a, host) || !strcmp(row->b, host)) {
            return ctl_find_node(ctl, strcmp(row->a, host) ? row->a : row->b);
        }
    }
    return NULL;
}

const struct rrec_port *
ctl_port_to(const struct rrec_node *node, const char *peer)
{
    for (size_t i = 0; node && i < node->n_ports; i++) {
        if (!strcmp(node->ports[i]->peer, peer)) {
            return node->ports[i];
        }
    }
    return NULL;
}

const struct rrec_port *
ctl_port_with(const struct rrec_node *node, int64_t number)
{
    for (size_t i = 0; node && i < node->n_ports; i++) {
        if (node->ports[i]->number == number) {
            return node->ports[i];
        }
    }
    return NULL;
}

/* 'row', if there is one. */
static const void *
require(const struct ctl *ctl, const void *row, const char *kind, const char *name)
{
    if (!row) {
        ctl_refuse(ctl, "no %s named '%s'", kind, name);
    }
    return row;
}

const struct rrec_node *
ctl_require_node(const struct ctl *ctl, const char *name)
{
    return require(ctl, ctl_find_node(ctl, name), "node", name);
}

const struct rrec_host *
ctl_require_host(const struct ctl *ctl, const char *name)
{
    return require(ctl, request_find_host(ctl->idl, name), "host", name);
}

const struct rrec_group *
ctl_require_group(const struct ctl *ctl, const char *name)
{
    return require(ctl, request_find_group(ctl->idl, name), "group", name);
}

/*
 * The connection.
 */

#define BUSY_MSEC 200 /* between two attempts. */

/* Tables that a command about one member reads, and the only ones whose schema matters to it. */
#define MEMBER_TABLES                                                      \
    (REGISTRY_TABLE(GLOBAL) | REGISTRY_TABLE(HOST) | REGISTRY_TABLE(GROUP) \
     | REGISTRY_TABLE(MEMBER) | REGISTRY_TABLE(LISTENER))

static void
check_alive(const struct ctl *ctl)
{
    if (!ovsdb_idl_is_alive(ctl->idl)) {
        int error = registry_reach_error(&ctl->reach);

        ctl_fail(CTL_UNAVAILABLE, "registry %s: %s", ctl->db,
                 error ? ovs_retval_to_string(error) : "the server has no database 'rocecast'");
    }
}

static void
check_schema(const struct ctl *ctl)
{
    bool all = !(ctl->command->options & CTL_ONE_HOST);
    char *problem = registry_schema_problem(ctl->idl, all ? REGISTRY_ALL_TABLES : MEMBER_TABLES);

    if (problem) {
        ctl_fail(CTL_REFUSED, "registry %s: %s", ctl->db, problem);
    }
}

/* Sleeps until 'idl' or 'txn' has news.  False: the deadline has passed. */
static bool
block(struct ctl *ctl)
{
    if (time_msec() >= ctl->deadline) {
        return false;
    }
    registry_reach_wait(&ctl->reach);
    if (ctl->txn) {
        ovsdb_idl_txn_wait(ctl->txn);
    }
    poll_timer_wait_until(ctl->deadline);
    poll_block();
    return true;
}

void
ctl_wait_for_change(struct ctl *ctl, const char *waiting_for)
{
    unsigned int seqno = ovsdb_idl_get_seqno(ctl->idl);

    for (;;) {
        registry_reach_run(&ctl->reach);
        check_alive(ctl);
        if (ovsdb_idl_get_seqno(ctl->idl) != seqno) {
            return;
        }
        if (!block(ctl)) {
            ctl_fail(CTL_UNAVAILABLE, "%s", waiting_for);
        }
    }
}

enum ctl_news
ctl_next_news(struct ctl *ctl)
{
    ovsdb_idl_track_clear(ctl->idl);
    do {
        registry_reach_run(&ctl->reach);
        /* Without a connection nothing changes, so what is new now was new before it was lost. */
        if (ovsdb_idl_get_seqno(ctl->idl) != ctl->seqno) {
            bool was_lost = ctl->lost;

            ctl->seqno = ovsdb_idl_get_seqno(ctl->idl);
            ctl->lost = false;
            if (was_lost) {
                check_schema(ctl); /* the server may have been given another meanwhile. */
            }
            return was_lost ? NEWS_BACK : NEWS_CHANGED;
        }
        if (!ovsdb_idl_is_connected(ctl->idl) && !ctl->lost) {
            ctl->lost = true;
            return NEWS_LOST;
        }
    } while (block(ctl));
    return NEWS_NONE;
}

/* Tables that are not asked for cost the server nothing, but those of which no row is wanted do.  Who waits
 * for agents names those who are silent. */
static void
monitor_one_member(const struct ctl *ctl)
{
    for (size_t i = 0; i < RREC_N_TABLES; i++) {
        const struct ovsdb_idl_table_class *table = &rrec_table_classes[i];

        for (size_t j = 0; MEMBER_TABLES & 1u << i && j < table->n_columns; j++) {
            ovsdb_idl_add_column(ctl->idl, &table->columns[j]);
        }
    }
    if (ctl->wait == WAIT_AGENTS) {
        ovsdb_idl_add_column(ctl->idl, &rrec_node_col_name);
        ovsdb_idl_add_column(ctl->idl, &rrec_node_col_cfg);
        ovsdb_idl_add_column(ctl->idl, &rrec_node_col_nb_cfg);
    }
    request_follow(ctl->idl, ctl->argv[0], ctl->argv[1]);
}

/* What the command reads of the registry, but secrets. */
static void
monitor(const struct ctl *ctl)
{
    uint64_t options = ctl->command->options;

    if (options & CTL_ONE_HOST) {
        monitor_one_member(ctl);
        return;
    }
    registry_omit_secrets(ctl->idl);
    if (!(options & CTL_INTENT)) {
        registry_omit_intent(ctl->idl);
        if (options & CTL_STREAM) {
            registry_keep_viewed(ctl->idl);
        }
    }
}

void
ctl_check_db(const struct ctl *ctl)
{
    if (!db_is_valid(ctl->db)) {
        ctl_fail(CTL_USAGE, "%s%s: " DB_RULE, ctl->db_given ? "--db " : "ROCECAST_DB=", ctl->db);
    }
    if (db_needs_keys(ctl->db) && !stream_ssl_is_configured()) {
        ctl_fail(CTL_USAGE, "registry %s: ssl: needs --private-key, --certificate and --ca-cert",
                 ctl->db);
    }
}

/* If nobody listens on a single unix socket, that is final; any other registry may come up. */
static void
open_session(struct ctl *ctl)
{
    ctl->idl = ovsdb_idl_create(ctl->db, &rrec_idl_class, !(ctl->command->options & CTL_ONE_HOST),
                                !db_is_one_socket(ctl->db));
    registry_reach_init(&ctl->reach, ctl->idl, ctl->db);
    monitor(ctl);
    if (ctl->command->options & CTL_STREAM) {
        ovsdb_idl_track_add_column(ctl->idl, &rrec_connection_col_state); /* for view_read(). */
    }
}

static void
close_session(struct ctl *ctl)
{
    registry_reach_uninit(&ctl->reach);
    ovsdb_idl_destroy(ctl->idl);
}

/* A session with a single socket ends when its only attempt fails: a server that is busy gets more. */
static void
try_session(struct ctl *ctl)
{
    registry_reach_run(&ctl->reach);
    while (!ovsdb_idl_is_alive(ctl->idl)
           && registry_error_is_busy(registry_reach_error(&ctl->reach))
           && time_msec() + BUSY_MSEC < ctl->deadline) {
        close_session(ctl);
        xnanosleep(BUSY_MSEC * 1000000LL);
        open_session(ctl);
        registry_reach_run(&ctl->reach);
    }
}

static void
connect_registry(struct ctl *ctl)
{
    ctl_check_db(ctl);
    open_session(ctl);
    while (!ovsdb_idl_has_ever_connected(ctl->idl)) {
        try_session(ctl);
        check_alive(ctl);
        if (!ovsdb_idl_has_ever_connected(ctl->idl) && !block(ctl)) {
            int error = registry_reach_error(&ctl->reach);

            ctl_fail(CTL_UNAVAILABLE, "registry %s did not answer in %d s%s%s", ctl->db,
                     ctl->timeout,
                     error ? ": "
                     : ovsdb_idl_is_connected(ctl->idl)
                         ? ": connected, but it shows no database 'rocecast'"
                         : "",
                     error ? ovs_retval_to_string(error) : "");
        }
    }
    check_schema(ctl);
    if (ctl->command->options & CTL_STREAM) {
        ovsdb_idl_enable_reconnect(ctl->idl);
        ctl->seqno = ovsdb_idl_get_seqno(ctl->idl);
    }
}

/*
 * Transactions.
 */

static enum ovsdb_idl_txn_status
commit(struct ctl *ctl)
{
    bool sent = false;

    for (;;) {
        enum ovsdb_idl_txn_status status = ovsdb_idl_txn_commit(ctl->txn);

        if (status != TXN_INCOMPLETE) {
            ctl->uncertain |= sent && status == TXN_TRY_AGAIN && !ovsdb_idl_is_connected(ctl->idl);
            return status;
        }
        sent = true;
        registry_reach_run(&ctl->reach);
        if (!ovsdb_idl_is_alive(ctl->idl)) {
            ctl_fail(CTL_UNAVAILABLE,
                     "registry %s: the connection was lost during a transaction: it may have been "
                     "done or not",
                     ctl->db);
        }
        if (!block(ctl)) {
            ctl_fail(CTL_UNAVAILABLE,
                     "registry %s did not answer a transaction in %d s: it may have been done or "
                     "not",
                     ctl->db, ctl->timeout);
        }
    }
}

/* One attempt.  True, with the number of the request; false: try again. */
static bool
try_write(struct ctl *ctl, int64_t *request)
{
    bool has_global = rrec_global_first(ctl->idl) != NULL;
    enum ovsdb_idl_txn_status status;

    ctl->txn = ovsdb_idl_txn_create(ctl->idl);
    ovsdb_idl_txn_add_comment(ctl->txn, "castctl: %s", ctl->command->name);
    ctl->command->write(ctl);
    if (ctl->abandon) {
        ovsdb_idl_txn_abort(ctl->txn);
        ovsdb_idl_txn_destroy(ctl->txn);
        ctl->txn = NULL;
        return true;
    }
    request_number(ctl->idl, ctl->txn, ctl->wait == WAIT_AGENTS || ctl->all_nodes);
    status = commit(ctl);
    if (status == TXN_SUCCESS || status == TXN_UNCHANGED) {
        *request = request_get_number(ctl->idl, ctl->txn, status);
    } else if (status == TXN_ERROR && (has_global || !rrec_global_first(ctl->idl))) {
        /* Not so if somebody else has made the only row of Global meanwhile. */
        ctl_refuse(ctl, "the registry refused it: %s", ovsdb_idl_txn_get_error(ctl->txn));
    }
    ovsdb_idl_txn_destroy(ctl->txn);
    ctl->txn = NULL;
    return status == TXN_SUCCESS || status == TXN_UNCHANGED;
}

/* Of those that are waited for, who has not taken the request up; malloc'd. */
static char *
who_is_silent(const struct ctl *ctl, int64_t request)
{
    const struct rrec_global *global = rrec_global_first(ctl->idl);
    const struct rrec_node *node;
    struct ds s = DS_EMPTY_INITIALIZER;

    if (ctl->wait == WAIT_CASTD || !global || global->nb_cfg < request) {
        return xasprintf("castd did not answer in %d s: registry reachable, request %" PRId64
                         " not taken up (nb_cfg %" PRId64 ")",
                         ctl->timeout, request, global ? global->nb_cfg : 0);
    }
    ds_put_format(&s, "agents did not apply request %" PRId64 " in %d s:", request, ctl->timeout);
    RREC_NODE_FOR_EACH (node, ctl->idl) {
        if (node->nb_cfg < node->cfg) {
            ds_put_format(&s, " node %s (generation %" PRId64 ", applied %" PRId64 ")", node->name,
                          node->cfg, node->nb_cfg);
        }
    }
    return ds_steal_cstr(&s);
}

static bool
is_answered(const struct ctl *ctl, int64_t request)
{
    const struct rrec_global *global = rrec_global_first(ctl->idl);

    return ctl->wait == WAIT_NONE
           || (global
               && (ctl->wait == WAIT_CASTD ? global->nb_cfg : global->agents_cfg) >= request);
}

static void OVS_NO_RETURN
give_up(const struct ctl *ctl)
{
    int error = registry_reach_error(&ctl->reach);

    if (registry_reach_is_served(&ctl->reach)) {
        ctl_fail(CTL_UNAVAILABLE, "%s: others kept changing the registry for %d s",
                 ctl->command->name, ctl->timeout);
    }
    ctl_fail(CTL_UNAVAILABLE,
             "registry %s: the connection was lost, and nobody answered in %d s%s%s%s", ctl->db,
             ctl->timeout, error ? ": " : "", error ? ovs_retval_to_string(error) : "",
             ctl->uncertain ? ": it may have been done or not" : "");
}

/* Waits for something that is new since the content that could not be written to: what others have
 * changed, or another server, if the connection was lost. */
static void
wait_to_try_again(struct ctl *ctl, unsigned int seqno)
{
    do {
        registry_reach_run(&ctl->reach);
        check_alive(ctl);
        if (time_msec() < ctl->deadline && ovsdb_idl_get_seqno(ctl->idl) != seqno) {
            return;
        }
    } while (block(ctl));
    give_up(ctl);
}

static void
write_and_wait(struct ctl *ctl)
{
    int64_t request = 0;

    unsigned int seqno = ovsdb_idl_get_seqno(ctl->idl);
    while (!try_write(ctl, &request)) {
        wait_to_try_again(ctl, seqno);
        seqno = ovsdb_idl_get_seqno(ctl->idl);
    }
    while (!ctl->abandon && !is_answered(ctl, request)) {
        char *why = who_is_silent(ctl, request);

        ctl_wait_for_change(ctl, why);
        free(why);
    }
}

void
ctl_run(struct ctl *ctl)
{
    if (ctl->command->options & CTL_LOCAL) {
        ctl->command->read(ctl);
        return;
    }
    connect_registry(ctl);
    bool writes = ctl->command->write && !(ctl->command->options & CTL_BARE && ctl_is_bare(ctl));

    if (writes) {
        write_and_wait(ctl);
    }
    if (ctl->command->read && (!writes || ctl->wait != WAIT_NONE)) {
        ctl->command->read(ctl);
    }
    close_session(ctl);
}
