/* SPDX-License-Identifier: Apache-2.0
 *
 * The servers of a registry: see server.h.
 */
#include <config.h>

#include "ctl/castctl/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/castctl/rpc.h"
#include "ctl/castctl/tool.h"
#include "ctl/registry/reach.h"
#include "ctl/registry/values.h"
#include "jsonrpc.h"
#include "openvswitch/poll-loop.h"
#include "socket-util.h"
#include "stream.h"
#include "timeval.h"
#include "util.h"

#define ASK_MSEC    2000 /* so that a server that hangs leaves time for the others. */
#define LEADER_MSEC 200  /* between two looks for a leader. */

#define QUERY                                                                             \
    "[\"_Server\",{\"op\":\"select\",\"table\":\"Database\",\"where\":[[\"name\",\"==\"," \
    "\"rocecast\"]],\"columns\":[\"model\",\"connected\",\"leader\",\"index\",\"cid\",\"sid\"]}]"

/*
 * One server.
 */

static void
server_open(struct server *s, char *remote)
{
    *s = (struct server){.remote = remote};
    int error = jsonrpc_stream_open(remote, &s->stream, DSCP_DEFAULT);

    if (error) {
        s->stream = NULL;
        s->why = xstrdup(rpc_error_text(error));
        s->refused = !registry_error_is_busy(error);
    }
}

void
server_uninit(struct server *s)
{
    stream_close(s->stream);
    jsonrpc_close(s->rpc);
    json_destroy(s->row);
    free(s->remote);
    free(s->why);
}

static bool
is_done(const struct server *s)
{
    return s->row || s->why;
}

/* Takes the answer to QUERY. */
static void
take_row(struct server *s, const struct jsonrpc_msg *msg)
{
    const struct json *result =
        msg->result && msg->result->type == JSON_ARRAY && msg->result->array.n
            ? msg->result->array.elems[0]
            : NULL;
    bool is_object = result && result->type == JSON_OBJECT;
    const struct json *rows = is_object ? ctl_get(result, "rows") : NULL;

    if (rows && rows->type == JSON_ARRAY && rows->array.n) {
        s->row = json_deep_clone(rows->array.elems[0]);
    } else if (rows && rows->type == JSON_ARRAY) {
        s->why = xstrdup("the server has no database 'rocecast'");
    } else {
        const struct json *said = result ? result : msg->error;
        char *text = said ? json_to_string(said, 0) : xstrdup("an empty answer");

        s->why = xasprintf("it does not say what it serves: %s", text);
        free(text);
    }
}

/* 0: there is more to do; EAGAIN: it has to be waited for. */
static int
receive(struct server *s)
{
    struct jsonrpc_msg *msg;
    int error = jsonrpc_recv(s->rpc, &msg);

    if (error) {
        return error;
    }
    if (msg->type == JSONRPC_REPLY || msg->type == JSONRPC_ERROR) {
        take_row(s, msg);
        jsonrpc_msg_destroy(msg);
    } else {
        rpc_serve(s->rpc, msg);
    }
    return 0;
}

static int
connect_server(struct server *s)
{
    stream_run(s->stream);
    int error = stream_connect(s->stream);

    if (!error) {
        s->rpc = jsonrpc_open(s->stream);
        s->stream = NULL;
        error =
            jsonrpc_send(s->rpc, jsonrpc_create_request("transact", json_from_string(QUERY), NULL));
    }
    return error;
}

static void
run(struct server *s)
{
    int error = 0;

    while (!error && !is_done(s)) {
        if (s->rpc) {
            jsonrpc_run(s->rpc);
        }
        error = s->rpc ? receive(s) : connect_server(s);
    }
    if (error && error != EAGAIN) {
        s->why = xstrdup(rpc_error_text(error));
        s->refused = !s->rpc && !registry_error_is_busy(error);
    }
}

static void
wait(const struct server *s)
{
    if (is_done(s)) {
        return;
    }
    if (s->rpc) {
        jsonrpc_wait(s->rpc);
        jsonrpc_recv_wait(s->rpc);
    } else {
        stream_run_wait(s->stream);
        stream_connect_wait(s->stream);
    }
}

bool
server_leads(const struct server *s)
{
    return s->row && ctl_get_bool(s->row, "leader") && ctl_get_bool(s->row, "connected");
}

enum ctl_exit
server_call(const struct ctl *ctl, const struct server *s, const char *method, struct json *params,
            struct json **resultp, char **whyp)
{
    struct jsonrpc_msg *reply;
    int error = rpc_transact(s->rpc, method, params, ctl->deadline, &reply);
    enum ctl_exit result = CTL_OK;

    *resultp = NULL;
    if (error) {
        *whyp = xstrdup(rpc_error_text(error));
        return CTL_UNAVAILABLE;
    }
    if (reply->result && reply->result->type != JSON_NULL) {
        *resultp = reply->result;
        reply->result = NULL;
    } else {
        *whyp = json_to_string(reply->error, 0);
        result = CTL_REFUSED;
    }
    jsonrpc_msg_destroy(reply);
    return result;
}

/*
 * All servers.
 */

static bool
all_done(const struct servers *all)
{
    for (size_t i = 0; i < all->n; i++) {
        if (!is_done(&all->servers[i])) {
            return false;
        }
    }
    return true;
}

void
servers_ask(const struct ctl *ctl, struct servers *all)
{
    long long deadline = MIN(ctl->deadline, time_msec() + ASK_MSEC);
    size_t allocated = 0;

    *all = (struct servers){.n = 0};
    for (const char *s = ctl->db; s; s = strchr(s, ',') ? strchr(s, ',') + 1 : NULL) {
        if (all->n == allocated) {
            all->servers = x2nrealloc(all->servers, &allocated, sizeof *all->servers);
        }
        server_open(&all->servers[all->n++], xmemdup0(s, strcspn(s, ",")));
    }
    for (;;) {
        for (size_t i = 0; i < all->n; i++) {
            run(&all->servers[i]);
        }
        if (all_done(all) || time_msec() >= deadline || tool_is_interrupted()) {
            break;
        }
        for (size_t i = 0; i < all->n; i++) {
            wait(&all->servers[i]);
        }
        tool_wait_interrupt();
        poll_timer_wait_until(deadline);
        poll_block();
    }
    for (size_t i = 0; i < all->n; i++) {
        if (!is_done(&all->servers[i])) {
            all->servers[i].why =
                xstrdup(rpc_error_text(tool_is_interrupted() ? EINTR : ETIMEDOUT));
        }
    }
}

void
servers_uninit(struct servers *all)
{
    for (size_t i = 0; i < all->n; i++) {
        server_uninit(&all->servers[i]);
    }
    free(all->servers);
}

/* Moves the leader out of 'all'.  False: there is none, for the reason in *whyp. */
static bool
take_leader(struct servers *all, struct server *leader, char **whyp)
{
    for (size_t i = 0; i < all->n; i++) {
        struct server *s = &all->servers[i];

        if (server_leads(s)) {
            *leader = *s;
            *s = all->servers[--all->n];
            return true;
        }
        if (!*whyp) {
            *whyp = s->why ? xstrdup(s->why)
                           : xstrdup(ctl_get_bool(s->row, "connected")
                                         ? "it is not the leader"
                                         : "it is not in touch with a majority");
        }
    }
    return false;
}

void
server_find_leader(const struct ctl *ctl, struct server *leader)
{
    char *why = NULL;

    for (;;) {
        struct servers all;
        char *now = NULL;

        servers_ask(ctl, &all);
        bool found = take_leader(&all, leader, &now);
        bool final = db_is_one_socket(ctl->db) && !found && all.n && all.servers[0].refused;
        servers_uninit(&all);
        if (found) {
            free(now);
            free(why);
            return;
        }
        /* A round that the deadline has cut short knows less than the one before. */
        if (!why || time_msec() < ctl->deadline) {
            free(why);
            why = now;
        } else {
            free(now);
        }
        if (tool_is_interrupted()) {
            ctl_fail(CTL_UNAVAILABLE, "registry %s: interrupted", ctl->db);
        }
        if (final || time_msec() + 2 * LEADER_MSEC >= ctl->deadline) {
            ctl_fail(CTL_UNAVAILABLE, "registry %s: %s%s", ctl->db,
                     strchr(ctl->db, ',') ? "there is no leader: " : "", why);
        }
        tool_wait_interrupt();
        poll_timer_wait(LEADER_MSEC);
        poll_block();
    }
}
