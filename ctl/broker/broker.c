/* SPDX-License-Identifier: Apache-2.0
 *
 * Clients of the registry at a broker.
 *
 * A session is one client's two connections.  Messages go through in their order and with their ids;
 * nothing is kept of them but which requests still need work when they are answered.  So a client
 * sees of the broker only what is refused, and that some rows are not there.
 *
 * A side that does not read holds up the other: of each at most one message is waiting that has not
 * been sent.  When either side ends, so does the other; clients connect again by themselves.
 */
#include <config.h>

#include "ctl/broker/broker.h"

#include <errno.h>
#include <stdlib.h>

#include "ctl/broker/broker-stats.h"
#include "ctl/broker/rights.h"
#include "ctl/registry/json.h"
#include "ctl/registry/rocecast-idl.h"
#include "ctl/registry/values.h"
#include "jsonrpc.h"
#include "lib/printable.h"
#include "openvswitch/json.h"
#include "openvswitch/list.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "ovsdb-idl.h"
#include "socket-util.h"
#include "sset.h"
#include "stream.h"
#include "svec.h"
#include "timeval.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(broker);

/* Who has said nothing for so long after it has connected. */
#define SILENCE_MSEC 10000
/* Until clients are accepted again, for whom there was no descriptor. */
#define ACCEPT_MSEC  200
/* Until the registry is tried again, whose connections may be more than it has taken yet. */
#define AGAIN_MSEC   20
/* More clients wait until another has gone. */
#define MAX_SESSIONS 4096
/* Of a node or a host: more are refused, so that none keeps out the others. */
#define MAX_OF_NAME  256
/* Of those who have not said yet who they are: the first of them goes when there are more. */
#define MAX_UNNAMED  256
/* Bytes of what the log says of an attempt. */
#define MAX_TEXT     200
/* Messages of a session in one round. */
#define BURST        50

/* A request that needs work when it is answered. */
struct request {
    struct ovs_list list_node;
    struct json *id;
    size_t n_checks; /* of a transaction. */
    bool reads;      /* it is a monitor's. */
};

struct session {
    struct ovs_list list_node; /* in broker.sessions. */
    struct stream *stream;     /* of 'client', until its name is known. */
    struct jsonrpc *client, *registry;
    struct jsonrpc_msg *first; /* that waits for the registry to be reached; otherwise NULL. */
    char *address;
    char *name; /* NULL: not known yet. */
    struct client rights;
    struct ovs_list requests;
    struct sset own; /* as in rights.h. */
    long long since;
    uint64_t n_requests, n_refused;
    unsigned int client_bytes, registry_bytes; /* received so far, modulo their type's range. */
    struct vlog_rate_limit rl; /* its own: nobody can keep another's offences out of the log. */
};

struct listener {
    struct ovs_list list_node;
    struct pstream *pstream;
    char *name;
};

struct broker {
    char *db;
    const struct svec *controllers, *operators;
    struct ovsdb_idl *idl; /* names of nodes and hosts. */
    unsigned int seqno;
    struct ovs_list listeners, sessions;
    size_t n_sessions, n_unnamed;
    long long accept_at; /* none could be accepted: not before then. */
    bool was_connected;
    struct broker_stats stats;
};

struct broker *
broker_create(const char *db, const struct svec *controllers, const struct svec *operators)
{
    struct broker *b = xzalloc(sizeof *b);

    b->db = xstrdup(db);
    b->controllers = controllers;
    b->operators = operators;
    ovs_list_init(&b->listeners);
    ovs_list_init(&b->sessions);
    b->idl = ovsdb_idl_create(db, &rrec_idl_class, false, true);
    ovsdb_idl_set_leader_only(b->idl, false);
    ovsdb_idl_add_column(b->idl, &rrec_node_col_name);
    ovsdb_idl_add_column(b->idl, &rrec_host_col_name);
    return b;
}

int
broker_listen(struct broker *b, const char *listener, const char *name)
{
    struct pstream *pstream;
    int error = jsonrpc_pstream_open(listener, &pstream, DSCP_DEFAULT);

    if (!error) {
        struct listener *l = xzalloc(sizeof *l);

        l->pstream = pstream;
        l->name = nullable_xstrdup(name);
        ovs_list_push_back(&b->listeners, &l->list_node);
    }
    return error;
}

/*
 * Roles.
 */

static bool
has_node(const struct broker *b, const char *name)
{
    const struct rrec_node *row;

    RREC_NODE_FOR_EACH (row, b->idl) {
        if (!strcmp(row->name, name)) {
            return true;
        }
    }
    return false;
}

static bool
has_host(const struct broker *b, const char *name)
{
    const struct rrec_host *row;

    RREC_HOST_FOR_EACH (row, b->idl) {
        if (!strcmp(row->name, name)) {
            return true;
        }
    }
    return false;
}

/* False: the client has no role. */
static bool
find_role(const struct broker *b, const char *name, enum client_role *role)
{
    if (svec_contains_unsorted(b->controllers, name)) {
        *role = CLIENT_CONTROLLER;
    } else if (svec_contains_unsorted(b->operators, name)) {
        *role = CLIENT_OPERATOR;
    } else if (has_node(b, name)) {
        *role = CLIENT_AGENT;
    } else if (has_host(b, name)) {
        *role = CLIENT_HOST;
    } else {
        return false;
    }
    return true;
}

/*
 * Sessions.
 */

static void
forget_request(struct request *r)
{
    ovs_list_remove(&r->list_node);
    json_destroy(r->id);
    free(r);
}

static void
session_close(struct broker *b, struct session *s)
{
    struct request *r;

    LIST_FOR_EACH_SAFE (r, list_node, &s->requests) {
        forget_request(r);
    }
    ovs_list_remove(&s->list_node);
    b->n_sessions--;
    b->n_unnamed -= !s->registry;
    jsonrpc_close(s->client);
    jsonrpc_close(s->registry);
    jsonrpc_msg_destroy(s->first);
    sset_destroy(&s->own);
    free(s->address);
    free(s->name);
    free(s);
}

static void
session_create(struct broker *b, struct stream *stream, const char *name)
{
    struct session *s = xzalloc(sizeof *s);

    s->address = xstrdup(stream_get_name(stream));
    s->name = nullable_xstrdup(name);
    s->stream = stream;
    s->client = jsonrpc_open(stream);
    s->since = time_msec();
    s->rl = (struct vlog_rate_limit) VLOG_RATE_LIMIT_INIT(60, 200);
    sset_init(&s->own);
    ovs_list_init(&s->requests);
    ovs_list_push_back(&b->sessions, &s->list_node);
    b->n_sessions++;
    b->n_unnamed++;
    b->stats.n_clients++;
}

static struct session *
first_unnamed(const struct broker *b)
{
    struct session *s;

    LIST_FOR_EACH (s, list_node, &b->sessions) {
        if (!s->registry) {
            return s;
        }
    }
    OVS_NOT_REACHED();
}

static bool
has_too_many(const struct broker *b, const char *name)
{
    const struct session *s;
    size_t n = 0;

    LIST_FOR_EACH (s, list_node, &b->sessions) {
        n += s->registry && !strcmp(s->name, name);
    }
    return n >= MAX_OF_NAME;
}

/* The client has shown who it is.  EACCES if it gets no session; another errno if the registry cannot be
 * reached, or has too many waiting already. */
static int
session_begin(struct broker *b, struct session *s)
{
    static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(60, 60);
    static struct vlog_rate_limit begin_rl = VLOG_RATE_LIMIT_INIT(60, 60);
    static struct vlog_rate_limit unreachable_rl = VLOG_RATE_LIMIT_INIT(6, 3);
    const char *name = s->name ? s->name : stream_get_peer_id(s->stream);
    struct stream *stream;

    if (!name || !name_is_valid(name)) {
        VLOG_WARN_RL(&rl, "refused: a client at %s whose certificate has no usable name",
                     s->address);
        b->stats.n_refused[REFUSED_NAME]++;
        return EACCES;
    }
    if (!find_role(b, name, &s->rights.role)) {
        VLOG_WARN_RL(&rl, "refused: %s at %s: neither node nor host, operator nor controller", name,
                     s->address);
        b->stats.n_refused[REFUSED_STRANGER]++;
        return EACCES;
    }
    if ((s->rights.role == CLIENT_AGENT || s->rights.role == CLIENT_HOST)
        && has_too_many(b, name)) {
        VLOG_WARN_RL(&rl, "refused: %s %s at %s: it has %d connections",
                     client_role_name(s->rights.role), name, s->address, MAX_OF_NAME);
        b->stats.n_refused[REFUSED_CROWD]++;
        return EACCES;
    }
    if (!s->name) {
        s->name = xstrdup(name);
    }
    s->rights.name = s->name;
    s->stream = NULL;
    int error = jsonrpc_stream_open(b->db, &stream, DSCP_DEFAULT);
    if (error) {
        VLOG_WARN_RL(&unreachable_rl, "%s: %s", b->db, ovs_strerror(error));
        return error;
    }
    s->registry = jsonrpc_open(stream);
    b->n_unnamed--;
    VLOG_INFO_RL(&begin_rl, "%s at %s is %s", s->name, s->address,
                 client_role_name(s->rights.role));
    return 0;
}

static void
log_refusal(struct broker *b, struct session *s, enum refusal why, const char *what)
{
    char *text = printable(what); /* the client's own words are in it. */

    b->stats.n_refused[why]++;
    s->n_refused++;
    VLOG_WARN_RL(&s->rl, "refused: %s %s at %s: %.*s", client_role_name(s->rights.role), s->name,
                 s->address, MAX_TEXT, text);
    free(text);
}

/* Remembers a request that needs work when it is answered. */
static void
note_request(struct session *s, const struct jsonrpc_msg *msg, size_t n_checks)
{
    bool reads = s->rights.role == CLIENT_HOST && !strncmp(msg->method, "monitor_cond", 12);

    if (msg->id && (n_checks || reads)) {
        struct request *r = xmalloc(sizeof *r);

        *r = (struct request){.id = json_clone(msg->id), .n_checks = n_checks, .reads = reads};
        ovs_list_push_back(&s->requests, &r->list_node);
    }
}

static struct request *
find_request(const struct session *s, const struct json *id)
{
    struct request *r;

    LIST_FOR_EACH (r, list_node, &s->requests) {
        if (json_equal(r->id, id)) {
            return r;
        }
    }
    return NULL;
}

/* From the client.  Takes 'msg'. */
static void
pass_up(struct broker *b, struct session *s, struct jsonrpc_msg *msg)
{
    bool asks = msg->type == JSONRPC_REQUEST || msg->type == JSONRPC_NOTIFY;
    bool is_twice = msg->type == JSONRPC_REQUEST && find_request(s, msg->id);
    size_t n_checks = 0;
    char *why = NULL;

    if (asks) {
        b->stats.n_requests[s->rights.role]++;
        s->n_requests++;
        why = is_twice ? xstrdup("an id that is in use") : rights_check(&s->rights, msg, &n_checks);
    }
    if (!why) {
        b->stats.n_transactions[s->rights.role] += asks && !strcmp(msg->method, "transact");
        note_request(s, msg, n_checks);
        jsonrpc_send(s->registry, msg);
        return;
    }
    log_refusal(b, s, is_twice ? REFUSED_ID : REFUSED_RIGHTS, why);
    if (msg->type == JSONRPC_REQUEST) {
        jsonrpc_send(s->client, rights_refusal(msg, why));
    }
    jsonrpc_msg_destroy(msg);
    free(why);
}

/* From the registry.  Takes 'msg'. */
static void
pass_down(struct broker *b, struct session *s, struct jsonrpc_msg *msg)
{
    bool is_answer = msg->type == JSONRPC_REPLY || msg->type == JSONRPC_ERROR;
    struct request *r = is_answer ? find_request(s, msg->id) : NULL;

    if (r && r->n_checks) {
        char *why = rights_take_checks(msg, r->n_checks);

        if (why) {
            log_refusal(b, s, REFUSED_OWNER, why);
            rights_refuse_reply(msg, why);
            free(why);
        }
    }
    if ((r && r->reads) || msg->type == JSONRPC_NOTIFY) {
        rights_redact(&s->rights, msg, &s->own);
    }
    if (r) {
        forget_request(r);
    }
    jsonrpc_send(s->client, msg);
}

static bool
is_alive(const struct session *s)
{
    return !jsonrpc_get_status(s->client)
           && (s->registry ? !jsonrpc_get_status(s->registry)
                           : time_msec() < s->since + SILENCE_MSEC);
}

/* How much has come since the last time. */
static uint64_t
count_bytes(const struct jsonrpc *rpc, unsigned int *before)
{
    unsigned int now = jsonrpc_get_received_bytes(rpc), n = now - *before;

    *before = now;
    return n;
}

/* False: it is over. */
static bool
session_pass(struct broker *b, struct session *s)
{
    struct jsonrpc_msg *msg;

    jsonrpc_run(s->client);
    if (s->registry) {
        jsonrpc_run(s->registry);
    }
    for (int i = 0; i < BURST; i++) {
        msg = s->first;
        if ((s->registry && jsonrpc_get_backlog(s->registry)) || jsonrpc_get_backlog(s->client)
            || (!msg && jsonrpc_recv(s->client, &msg))) {
            break;
        }
        s->first = msg;
        int error = s->registry ? 0 : session_begin(b, s);
        if (error) {
            return error != EACCES && is_alive(s);
        }
        s->first = NULL;
        pass_up(b, s, msg);
    }
    for (int i = 0; s->registry && i < BURST; i++) {
        if (jsonrpc_get_backlog(s->client) || jsonrpc_recv(s->registry, &msg)) {
            break;
        }
        pass_down(b, s, msg);
    }
    return is_alive(s);
}

/* False: it is over. */
static bool
session_run(struct broker *b, struct session *s)
{
    bool goes_on = session_pass(b, s);

    b->stats.n_client_bytes += count_bytes(s->client, &s->client_bytes);
    if (s->registry) {
        b->stats.n_registry_bytes += count_bytes(s->registry, &s->registry_bytes);
    }
    return goes_on;
}

static void
session_wait(const struct session *s)
{
    bool holds_up = jsonrpc_get_backlog(s->client);

    jsonrpc_wait(s->client);
    if (s->registry) {
        jsonrpc_wait(s->registry);
        if (!holds_up) {
            jsonrpc_recv_wait(s->registry);
        }
        holds_up |= jsonrpc_get_backlog(s->registry) > 0;
    } else if (s->first) {
        poll_timer_wait(AGAIN_MSEC);
    } else {
        poll_timer_wait_until(s->since + SILENCE_MSEC);
    }
    if (!holds_up && !s->first) {
        jsonrpc_recv_wait(s->client);
    }
}

/* Nodes and hosts are deleted, and made again as something else: rights end with them. */
static void
check_roles(struct broker *b)
{
    struct session *s;

    LIST_FOR_EACH_SAFE (s, list_node, &b->sessions) {
        enum client_role role;

        if (s->registry && (!find_role(b, s->name, &role) || role != s->rights.role)) {
            VLOG_INFO("%s at %s is no %s any more", s->name, s->address,
                      client_role_name(s->rights.role));
            session_close(b, s);
        }
    }
}

/*
 * The broker.
 */

static void
accept_clients(struct broker *b)
{
    static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(6, 3);
    struct listener *l;

    LIST_FOR_EACH (l, list_node, &b->listeners) {
        while (b->n_sessions < MAX_SESSIONS) {
            struct stream *stream;
            int error = pstream_accept(l->pstream, &stream);

            if (error) {
                if (error != EAGAIN) {
                    b->accept_at = time_msec() + ACCEPT_MSEC;
                    VLOG_WARN_RL(&rl, "%s: accept: %s", pstream_get_name(l->pstream),
                                 ovs_strerror(error));
                }
                break;
            }
            session_create(b, stream, l->name);
            if (b->n_unnamed > MAX_UNNAMED) {
                b->stats.n_refused[REFUSED_SILENT]++;
                session_close(b, first_unnamed(b));
            }
        }
    }
}

void
broker_run(struct broker *b)
{
    struct session *s;

    ovsdb_idl_run(b->idl);
    b->stats.n_connected += broker_is_connected(b) && !b->was_connected;
    b->was_connected = broker_is_connected(b);
    if (!broker_serves(b)) {
        return; /* clients wait in their listener's queue. */
    }
    if (b->seqno != ovsdb_idl_get_seqno(b->idl)) {
        b->seqno = ovsdb_idl_get_seqno(b->idl);
        check_roles(b);
    }
    accept_clients(b);
    LIST_FOR_EACH_SAFE (s, list_node, &b->sessions) {
        if (!session_run(b, s)) {
            session_close(b, s);
        }
    }
}

void
broker_wait(struct broker *b)
{
    const struct session *s;
    const struct listener *l;

    ovsdb_idl_wait(b->idl);
    if (!broker_serves(b)) {
        return;
    }
    if (time_msec() < b->accept_at) {
        poll_timer_wait_until(b->accept_at);
    } else if (b->n_sessions < MAX_SESSIONS) {
        LIST_FOR_EACH (l, list_node, &b->listeners) {
            pstream_wait(l->pstream);
        }
    }
    LIST_FOR_EACH (s, list_node, &b->sessions) {
        session_wait(s);
    }
}

bool
broker_serves(const struct broker *b)
{
    return ovsdb_idl_has_ever_connected(b->idl);
}

bool
broker_is_connected(const struct broker *b)
{
    return ovsdb_idl_is_connected(b->idl);
}

struct json *
broker_clients(const struct broker *b)
{
    struct json *array = json_array_create_empty();
    const struct session *s;

    LIST_FOR_EACH (s, list_node, &b->sessions) {
        if (s->registry) {
            struct json *o = json_object_create();

            json_object_put_string(o, "name", s->name);
            json_object_put_string(o, "role", client_role_name(s->rights.role));
            json_object_put_string(o, "address", s->address);
            ctl_put_int(o, "requests", s->n_requests);
            ctl_put_int(o, "refused", s->n_refused);
            json_array_add(array, o);
        }
    }
    return array;
}

struct json *
broker_counters(const struct broker *b)
{
    unsigned int n_clients[N_CLIENT_ROLES] = {0};
    const struct session *s;

    LIST_FOR_EACH (s, list_node, &b->sessions) {
        if (s->registry) {
            n_clients[s->rights.role]++;
        }
    }
    struct json *o = broker_stats_to_json(&b->stats, n_clients);
    ctl_put_int(o, "connected", b->n_sessions);
    ctl_put_int(o, "unnamed", b->n_unnamed);
    return o;
}

void
broker_destroy(struct broker *b)
{
    struct session *s;
    struct listener *l;

    LIST_FOR_EACH_SAFE (s, list_node, &b->sessions) {
        session_close(b, s);
    }
    LIST_FOR_EACH_SAFE (l, list_node, &b->listeners) {
        ovs_list_remove(&l->list_node);
        pstream_close(l->pstream);
        free(l->name);
        free(l);
    }
    ovsdb_idl_destroy(b->idl);
    free(b->db);
    free(b);
}
