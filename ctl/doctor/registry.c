/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the registry answers and does its work.  Each server is asked for the
 * row of database 'rocecast' in its database '_Server'.
 *
 * The usual client cannot ask that: it goes on to the next server both when one
 * is not there and when a cluster has no quorum.  It reads the tables afterwards:
 * their schema, and the rows that castd leaves out.
 */
#include <config.h>

#include "ctl/doctor/checks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/registry/json.h"
#include "ctl/registry/rows.h"
#include "ctl/registry/schema.h"
#include "jsonrpc.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "ovsdb-idl.h"
#include "stream.h"
#include "timeval.h"
#include "util.h"

/* 0 with the reply to the connection's only request, which the caller frees, or an error. */
static int
receive_reply(struct jsonrpc *rpc, long long deadline, struct jsonrpc_msg **replyp)
{
    for (;;) {
        struct jsonrpc_msg *msg = NULL;
        jsonrpc_run(rpc);
        int error = jsonrpc_recv(rpc, &msg);
        if (!error && (msg->type == JSONRPC_REPLY || msg->type == JSONRPC_ERROR)) {
            *replyp = msg;
            return 0;
        }
        jsonrpc_msg_destroy(msg);
        if (error && error != EAGAIN) {
            return error;
        }
        if (time_msec() >= deadline) {
            return ETIMEDOUT;
        }
        if (error) {
            jsonrpc_wait(rpc);
            jsonrpc_recv_wait(rpc);
            poll_timer_wait_until(deadline);
            poll_block();
        }
    }
}

/* Asks one server: 0 with its reply, which the caller frees, or an error. */
static int
ask(const char *remote, long long deadline, struct jsonrpc_msg **replyp)
{
    struct stream *stream;
    int error = stream_open_block(jsonrpc_stream_open(remote, &stream, DSCP_DEFAULT),
                                  MAX(deadline - time_msec(), 0), &stream);
    if (error) {
        return error;
    }
    struct jsonrpc *rpc = jsonrpc_open(stream);
    struct json *select = json_from_string(
        "[\"_Server\", {\"op\": \"select\", \"table\": \"Database\","
        " \"where\": [[\"name\", \"==\", \"rocecast\"]], \"columns\": [\"connected\"]}]");
    error = jsonrpc_send(rpc, jsonrpc_create_request("transact", select, NULL));
    error = error ? error : receive_reply(rpc, deadline, replyp);
    jsonrpc_close(rpc);
    return error;
}

static const struct json *
first(const struct json *array)
{
    return array && array->type == JSON_ARRAY && array->array.n ? array->array.elems[0] : NULL;
}

/* What is wrong with one server, malloc'd; NULL: nothing.  Changes '*fix' if the usual one does not
 * help. */
static char *
check_server(const char *remote, long long deadline, const char **fix)
{
    struct jsonrpc_msg *reply = NULL;
    int error = ask(remote, deadline, &reply);
    if (error == ENOPROTOOPT) {
        *fix = "give --private-key, --certificate and --ca-cert: PEM files that belong together";
        return xasprintf("%s: not without a key and certificates that can be used", remote);
    }
    if (error) {
        return xasprintf("%s: %s", remote, ovs_retval_to_string(error));
    }
    const struct json *row = first(ctl_get(first(reply->result), "rows"));
    char *complaint = NULL;
    if (!row) {
        complaint = xasprintf("%s: the server has no database 'rocecast'", remote);
    } else if (!ctl_get_bool(row, "connected")) {
        complaint = xasprintf("%s: the server's cluster has no quorum", remote);
    }
    jsonrpc_msg_destroy(reply);
    return complaint;
}

static void
check_rows(struct doctor *d, const struct ovsdb_idl *idl)
{
    struct registry_rows rows;

    registry_rows_init(&rows, idl);
    for (size_t i = 0; i < rows.left_out.n; i++) {
        doctor_add(d, DOCTOR_PROBLEM, xasprintf("castd leaves out: %s", rows.left_out.names[i]),
                   xstrdup("correct or delete that row (castctl, ovsdb-client transact)"));
    }
    registry_rows_uninit(&rows);
}

static void
check_contents(struct doctor *d)
{
    struct ovsdb_idl *idl = ovsdb_idl_create(d->db, &rrec_idl_class, true, true);
    registry_omit_secrets(idl);

    ovsdb_idl_set_leader_only(idl, false);
    while (!ovsdb_idl_has_ever_connected(idl) && time_msec() < d->deadline) {
        ovsdb_idl_run(idl);
        if (!ovsdb_idl_has_ever_connected(idl)) {
            ovsdb_idl_wait(idl);
            poll_timer_wait_until(d->deadline);
            poll_block();
        }
    }
    if (ovsdb_idl_has_ever_connected(idl)) {
        char *problem = registry_schema_problem(idl, REGISTRY_ALL_TABLES);

        if (problem) {
            doctor_add(d, DOCTOR_PROBLEM, xasprintf("%s: %s", d->db, problem),
                       xstrdup(REGISTRY_SCHEMA_FIX ", with the schema of this version"));
            free(problem);
        } else {
            check_rows(d, idl);
        }
    } else {
        doctor_add(d, DOCTOR_WARNING, xasprintf("%s does not show its tables", d->db),
                   xstrdup("give it more time: --timeout=SECONDS"));
    }
    ovsdb_idl_destroy(idl);
}

void
doctor_registry(struct doctor *d)
{
    struct svec remotes;
    size_t n_good = 0;
    size_t before = d->n;
    svec_init(&remotes);
    char *copy = xstrdup(d->db), *save = NULL;
    for (char *r = strtok_r(copy, ", ", &save); r; r = strtok_r(NULL, ", ", &save)) {
        svec_add(&remotes, r);
    }
    for (size_t i = 0; i < remotes.n; i++) {
        /* Each server gets its share of the time that is left. */
        long long now = time_msec();
        long long left = MAX(d->deadline - now, 0) / (long long) (remotes.n - i);
        const char *fix = "start its ovsdb-server (a lab has its own: castlab env), or set --db or "
                          "ROCECAST_DB; a cluster needs more than half of its servers";
        char *complaint = check_server(remotes.names[i], now + left, &fix);
        n_good += !complaint;
        if (complaint) {
            doctor_add(d, DOCTOR_WARNING, complaint, xstrdup(fix));
        }
    }
    if (n_good) {
        doctor_ok(d, "%s answers", d->db);
        check_contents(d);
    } else if (d->db_wanted) {
        d->unreachable = true;
        for (size_t i = before; i < d->n; i++) {
            d->findings[i].state = DOCTOR_PROBLEM;
        }
    }
    svec_destroy(&remotes);
    free(copy);
}
