/* SPDX-License-Identifier: Apache-2.0
 *
 * RDMA-CM: whom nodes connect to, what programs are answered, and what follows when a connection
 * ends (docs/joining.md).
 *
 * A Connection row is one life of one connection.  Its node writes how far it is, this file what
 * is to be done.  What a connection stands for has the connection's number: the group's Source, or a
 * Member.  Each is made here when a program has asked, or answered, and goes when the connection
 * ends:
 *
 *   source     requested -> Source row -> (group serves) accept -> established -> ended: no Source
 *   receiver   requested -> Member row -> (it has a branch) accept -> ... -> ended: Member removed
 *   listener   connecting -> answered -> Member row -> (see may_begin()) accept -> ... -> ended:
 *              Member removed, and another row, as long as there is the Listener
 *
 * The row of an ended connection is deleted, and one at a node that is gone; a row that nobody wants
 * any more is closed first, so that the program is told.  What has the number of a connection that
 * has no row goes.
 *
 * What is made here takes effect with the next computation, which finds it in the registry: so a
 * newcomer cannot miss an epoch that begins in this one.
 */
#include <config.h>

#include <arpa/inet.h>

#include "ctl/castd/castd.h"
#include "ctl/registry/group-state.h"
#include "ctl/registry/hex.h"
#include "ctl/registry/private-data.h"
#include "ctl/registry/values.h"
#include "lib/cm-conn.h"
#include "lib/group-answer.h"
#include "openvswitch/vlog.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(castd_connect);

/* A program that goes without a word is noticed after three times this, if the group has no liveness
 * time. */
#define KEEPALIVE_MSEC    10000
#define MAX_ACTIVE_NUMBER INT32_MAX /* above are those that agents give to passive ones. */

static enum cm_state
state_of(const struct rrec_connection *row)
{
    enum cm_state state;

    return row->state && cm_state_parse(row->state, &state) ? state : CM_CONNECTING;
}

static bool
is_passive(const struct rrec_connection *row)
{
    return !strcmp(row->role, cm_role_name(CM_PASSIVE));
}

static bool
has_decision(const struct rrec_connection *row, enum cm_decision decision)
{
    return row->decision && !strcmp(row->decision, cm_decision_name(decision));
}

static void
decide(const struct rrec_connection *row, enum cm_decision decision)
{
    rrec_connection_set_decision(row, cm_decision_name(decision));
}

/* Says it to the operator; frees it. */
static void
set_status(const struct rrec_connection *row, char *status)
{
    rrec_connection_set_status(row, status);
    free(status);
}

static void
set_answer(const struct rrec_connection *row, const void *data, size_t len)
{
    char *digits = hex_format(data, len);

    rrec_connection_set_answer(row, digits);
    free(digits);
}

/* The program is told this reason, and the sentence as private data, which the operator gets, too.
 * Frees it. */
static void
reject(const struct rrec_connection *row, enum cm_rej_reason code, char *why)
{
    int64_t reason = code;

    VLOG_INFO("group %s: connection of %s is rejected: %s", row->group, row->address, why);
    rrec_connection_set_reason(row, &reason, 1);
    set_answer(row, why, MIN(strlen(why), CM_REJ_PRIVATE_LEN));
    decide(row, CM_REJECT);
    set_status(row, why);
}

/* Ends it, unless it has ended.  Frees 'why'. */
static void
end(const struct rrec_connection *row, char *why)
{
    if (!has_decision(row, CM_CLOSE) && !has_decision(row, CM_REJECT)) {
        decide(row, CM_CLOSE);
        set_status(row, why);
    } else {
        free(why);
    }
}

/*
 * Who is meant.
 */

/* The node that is this host's edge, and connects to it; NULL: none can. */
static const struct plan_node *
edge_of(const struct castd *c, const struct plan_host *host)
{
    const struct plan_node *node = host ? plan_attachment(&c->topology, host->name) : NULL;

    return node && !node_role_is_foreign(node->role) ? node : NULL;
}

static const struct plan_host *
find_host(const struct castd *c, const struct rrec_connection *row)
{
    struct in6_addr address;

    if (ip6_parse(row->address, &address)) {
        for (size_t i = 0; i < c->topology.n_hosts; i++) {
            if (IN6_ARE_ADDR_EQUAL(&c->topology.hosts[i].address, &address)) {
                return &c->topology.hosts[i];
            }
        }
    }
    return NULL;
}

static bool
is_of(const struct rrec_connection *row, const struct plan_host *host, const char *name,
      const int64_t *number, size_t n)
{
    return n && *number == row->number && host && !strcmp(host->name, name);
}

static const struct rrec_source *
own_source(const struct castd_group *g, const struct rrec_connection *row,
           const struct plan_host *host)
{
    const struct rrec_source *s = g->source;

    return s && is_of(row, host, s->host, s->connection, s->n_connection) ? s : NULL;
}

static const struct rrec_member *
find_member(const struct castd_group *g, const char *host)
{
    for (size_t i = 0; i < g->n_members; i++) {
        if (!strcmp(g->members[i]->host, host)) {
            return g->members[i];
        }
    }
    return NULL;
}

/* Does the host have a member, or will it? */
static bool
has_member(const struct castd_group *g, const char *host)
{
    return find_member(g, host) || svec_contains_unsorted(&g->newcomers, host);
}

/* Is another epoch to begin in this computation? */
static bool
epoch_ends(const struct castd_group *g)
{
    const struct rrec_group *row = g->row;

    return !row->epoch || row->resets != row->epoch_resets
           || (g->source && !g->source->epoch && row->source_epoch == row->epoch);
}

/* castd's own columns may be somebody else's nonsense. */
static bool
can_connect(const struct rrec_group *row)
{
    struct in6_addr proxy;

    return ip6_parse(row->proxy, &proxy) && is_proxy_address(&proxy)
           && row->designated_qpn >= QPN_MIN && row->designated_qpn <= QPN_MAX
           && row->start_psn >= 0 && row->start_psn <= PSN_MASK;
}

static bool
has_sane_qpn(const struct rrec_connection *row)
{
    return row->peer_qpn >= QPN_MIN && row->peer_qpn <= QPN_MAX;
}

static const struct rrec_member *
own_member(const struct castd_group *g, const struct rrec_connection *row,
           const struct plan_host *host)
{
    const struct rrec_member *m = host ? find_member(g, host->name) : NULL;

    return m && is_of(row, host, m->host, m->connection, m->n_connection) ? m : NULL;
}

static const struct rrec_listener *
find_listener(const struct castd_group *g, const struct plan_host *host)
{
    for (size_t i = 0; host && i < g->n_listeners; i++) {
        if (!strcmp(g->listeners[i]->host, host->name)) {
            return g->listeners[i];
        }
    }
    return NULL;
}

/* The program's private data; returns how many bytes. */
static size_t
private_data(const struct rrec_connection *row, uint8_t data[CM_PRIVATE_SIZE])
{
    size_t len = 0;

    memset(data, 0, CM_PRIVATE_SIZE);
    return hex_parse(row->peer_data, data, CM_PRIVATE_SIZE, &len) ? len : 0;
}

/*
 * Members and sources that connections make.
 */

struct region {
    uint64_t va, len;
    uint32_t rkey;
};

/* A receiver whose queue pair has 'qpn' as its peer's. */
static void
make_member(struct castd_group *g, const struct rrec_connection *row, const struct plan_host *host,
            const struct region *region, int64_t qpn)
{
    struct ovsdb_idl_txn *txn = ovsdb_idl_txn_get(&g->row->header_);
    const struct rrec_member *m = rrec_member_insert(txn);
    int64_t rkey = region->rkey;
    char *va = xasprintf("0x%" PRIx64, region->va);

    rrec_member_set_group(m, g->row);
    rrec_member_set_host(m, host->name);
    rrec_member_set_qpn(m, row->peer_qpn);
    rrec_member_set_rkey(m, &rkey, 1);
    rrec_member_set_va(m, va);
    rrec_member_set_len(m, (int64_t) MIN(region->len, INT64_MAX));
    rrec_member_set_psn(m, &row->peer_psn, 1);
    if (qpn != g->row->designated_qpn) {
        rrec_member_set_designated_qpn(m, &qpn, 1);
    }
    rrec_member_set_keep(m, true);
    rrec_member_set_epoch(m, g->row->epoch);
    rrec_member_set_connection(m, &row->number, 1);
    rrec_member_set_want(m, "active");
    free(va);
    svec_add(&g->newcomers, host->name);
    g->written = true;
    VLOG_INFO("group %s: %s has connected, QPN 0x%" PRIx64, g->row->name, host->name,
              row->peer_qpn);
}

static const struct rrec_connection *
find_connection(const struct castd_group *g, const char *host, const int64_t *number, size_t n)
{
    for (size_t i = 0; i < g->n_connections; i++) {
        const struct castd_connection *conn = &g->connections[i];

        if (is_of(conn->row, conn->host, host, number, n)) {
            return conn->row;
        }
    }
    return NULL;
}

/* What stands for a connection that has no row any more goes. */
static void
drop_unconnected(struct castd_group *g)
{
    const struct rrec_source *source = g->source;

    if (source && source->n_connection
        && !find_connection(g, source->host, source->connection, source->n_connection)) {
        VLOG_INFO("group %s: source %s has gone", g->row->name, source->host);
        rrec_source_delete(source);
        g->source = NULL;
        g->written = true;
    }
    for (size_t i = 0; i < g->n_members; i++) {
        const struct rrec_member *m = g->members[i];

        if (m->n_connection && !find_connection(g, m->host, m->connection, m->n_connection)) {
            VLOG_INFO("group %s: %s has gone", g->row->name, m->host);
            rrec_member_set_want(m, "removed");
            rrec_member_set_connection(m, NULL, 0);
            g->written = true;
        }
    }
}

/*
 * Programs that connect.
 */

static void
accept_program(const struct castd_group *g, const struct rrec_connection *row, int64_t qpn)
{
    uint8_t data[GROUP_ANSWER_LEN];
    struct group_answer answer = {
        .rkey = (uint32_t) g->row->designated_rkey,
        .len = (uint64_t) g->row->region_len,
        .epoch = (uint32_t) g->row->epoch,
    };

    for (size_t i = 0; i < g->n_members; i++) {
        answer.n_members += member_is_active(g->members[i]);
    }
    group_answer_put(&answer, data);
    set_answer(row, data, sizeof data);
    rrec_connection_set_keepalive(row, g->row->liveness ? MIN(g->row->liveness, UINT32_MAX)
                                                        : KEEPALIVE_MSEC);
    rrec_connection_set_qpn(row, &qpn, 1);
    rrec_connection_set_psn(row, &g->row->start_psn, 1);
    decide(row, CM_ACCEPT);
}

static bool
any_member(const struct castd_group *g)
{
    for (size_t i = 0; i < g->n_members; i++) {
        const struct rrec_member *m = g->members[i];

        if (!strcmp(m->want, "active") && !member_is_lost(m)) {
            return true;
        }
    }
    return false;
}

/* A program wants to be the source. */
static void
request_source(const struct castd *c, struct castd_group *g, const struct rrec_connection *row,
               const struct plan_host *host)
{
    const struct rrec_group *group = g->row;
    struct plan_group p = {.mtu = (uint32_t) group->mtu};

    if (own_source(g, row, host)) {
        if (g->source->epoch && g->source->epoch != group->epoch) {
            reject(row, CM_REJ_CONSUMER,
                   xasprintf("group %s has begun another epoch", group->name));
        } else if (group->lost[0] && g->source->epoch) {
            reject(row, CM_REJ_CONSUMER, xasprintf("group %s: %s", group->name, group->status));
        } else if (g->source->epoch && group_serves(group)) {
            accept_program(g, row, group->designated_qpn);
            set_status(row, xasprintf("source of epoch %" PRId64, group->epoch));
        } else {
            set_status(row, xasprintf("group is %s%s%s", group->state, group->status[0] ? ": " : "",
                                      group->status));
        }
        return;
    }
    if (g->source) {
        reject(row, CM_REJ_CONSUMER,
               xasprintf("group %s has a source: %s, QPN 0x%" PRIx64, group->name, g->source->host,
                         g->source->qpn));
        return;
    }
    if (g->has_new_source) {
        return; /* whether that stays is not known yet. */
    }
    if (!any_member(g)) {
        reject(row, CM_REJ_CONSUMER, xasprintf("group %s has no members", group->name));
        return;
    }
    ovs_strlcpy(p.source_host, host->name, sizeof p.source_host);
    char *error = plan_check_source(&c->topology, &p);
    if (error) {
        reject(row, CM_REJ_CONSUMER, error);
        return;
    }
    const struct rrec_source *source = rrec_source_insert(ovsdb_idl_txn_get(&group->header_));
    rrec_source_set_group(source, group);
    rrec_source_set_host(source, host->name);
    rrec_source_set_qpn(source, row->peer_qpn);
    rrec_source_set_connection(source, &row->number, 1); /* epoch 0: castd binds it. */
    g->has_new_source = true;
    g->written = true;
}

/* Is this registration one that leaves?  Then the program waits for that. */
static bool
await_leaving(const struct rrec_member *m, const struct rrec_connection *row)
{
    if (!m || !strcmp(m->want, "active")) {
        return false;
    }
    rrec_member_set_want(m, "removed");
    set_status(row, xasprintf("waiting for %s's earlier registration to leave", m->host));
    return true;
}

/* A program wants to be a receiver. */
static void
request_receiver(const struct castd *c, struct castd_group *g, const struct rrec_connection *row,
                 const struct plan_host *host, const struct receiver_request *request)
{
    const struct rrec_group *group = g->row;
    const struct rrec_member *m = find_member(g, host->name);

    if (m && m == own_member(g, row, host)) {
        if (strcmp(m->want, "active")) {
            reject(row, CM_REJ_CONSUMER, xasprintf("%s was taken out", m->host));
        } else if (m->branch) {
            accept_program(g, row,
                           m->n_designated_qpn ? m->designated_qpn[0] : group->designated_qpn);
            set_status(row, xasprintf("receiver"));
        }
        return;
    }
    if (await_leaving(m, row)) {
        return;
    }
    if (m) {
        reject(row, CM_REJ_CONSUMER,
               xasprintf("%s is registered in group %s with QPN 0x%" PRIx64 " already", m->host,
                         group->name, m->qpn));
        return;
    }
    if (!request->len || request->len > UINT64_MAX - request->va) {
        reject(
            row, CM_REJ_CONSUMER,
            xasprintf("the region has %" PRIu64 " bytes at 0x%" PRIx64, request->len, request->va));
        return;
    }
    if (!edge_of(c, host)) {
        reject(row, CM_REJ_CONSUMER,
               xasprintf("%s cannot be a receiver: it is not behind a switch or source agent",
                         host->name));
        return;
    }
    if (has_member(g, host->name) || epoch_ends(g)) {
        set_status(row, xasprintf("waiting for its turn"));
        return;
    }
    make_member(g, row, host,
                &(struct region){.va = request->va, .len = request->len, .rkey = request->rkey},
                group->designated_qpn);
}

/* A program's REQ that is not decided yet.  'g' is NULL if no group has this Proxy Address. */
static void
request(const struct castd *c, struct castd_group *g, const struct rrec_connection *row,
        const struct plan_host *host)
{
    struct receiver_request receiver;
    uint8_t data[CM_PRIVATE_SIZE];
    int64_t mtu = row->n_peer_mtu ? row->peer_mtu[0] : 0;

    if (!g) {
        reject(row, CM_REJ_SERVICE_ID, xasprintf("no group has Proxy Address %s", row->proxy));
    } else if (!g->row->n_connect_port) {
        reject(
            row, CM_REJ_SERVICE_ID,
            xasprintf("group %s takes no connections (castctl group add --connect)", g->row->name));
    } else if (row->port != g->row->connect_port[0]) {
        reject(row, CM_REJ_SERVICE_ID,
               xasprintf("group %s takes connections at port %" PRId64 ", not %" PRId64,
                         g->row->name, g->row->connect_port[0], row->port));
    } else if (mtu > g->row->mtu) {
        reject(row, CM_REJ_PATH_MTU,
               xasprintf("group %s has path MTU %" PRId64 ", not %" PRId64, g->row->name,
                         g->row->mtu, mtu));
    } else if (!host) {
        reject(row, CM_REJ_CONSUMER, xasprintf("no host has address %s", row->address));
    } else if (!has_sane_qpn(row)) {
        reject(row, CM_REJ_UNSUPPORTED,
               xasprintf("QPN 0x%" PRIx64 " is no queue pair's", row->peer_qpn));
    } else if (!can_connect(g->row) || epoch_ends(g)) {
        set_status(row, xasprintf("waiting for the group's epoch"));
    } else if (receiver_request_get(&receiver, data, private_data(row, data))) {
        request_receiver(c, g, row, host, &receiver);
    } else {
        request_source(c, g, row, host);
    }
}

/* A program that has connected.  It stays as long as what it stands for does. */
static void
check_passive(struct castd_group *g, const struct rrec_connection *row,
              const struct plan_host *host)
{
    const struct rrec_source *source = own_source(g, row, host);
    const struct rrec_member *m = own_member(g, row, host);

    if (source && source->epoch && source->epoch != g->row->epoch) {
        end(row, xasprintf("the group has begun another epoch"));
    } else if (m && member_is_lost(m)) {
        end(row, xasprintf("%s", m->lost));
    } else if (!source && (!m || strcmp(m->want, "active"))) {
        end(row, xasprintf("it was replaced or taken out"));
    }
}

/*
 * Programs that listen.
 */

/* Has a program that has answered said all that is needed?  Then it becomes a member. */
static void
take_answer(struct castd_group *g, const struct rrec_connection *row, const struct plan_host *host,
            const struct rrec_listener *listener)
{
    const struct rrec_member *old = find_member(g, host->name);
    struct private_data_layout layout;
    struct region region;
    uint8_t data[CM_PRIVATE_SIZE];
    char *error;

    if (await_leaving(old, row)) {
        return;
    }
    if (has_member(g, host->name) || epoch_ends(g)) {
        set_status(row, old ? xasprintf("%s is registered with QPN 0x%" PRIx64 " already",
                                        host->name, old->qpn)
                            : xasprintf("waiting for its turn"));
        return;
    }
    if (!has_sane_qpn(row)) {
        end(row, xasprintf("QPN 0x%" PRIx64 " is no queue pair's", row->peer_qpn));
        return;
    }
    if (!private_data_parse(listener->private_data, &layout, &error)
        || !private_data_extract(&layout, data, private_data(row, data), &region.va, &region.rkey,
                                 &region.len, &error)) {
        rrec_listener_set_status(listener, error);
        end(row, error);
        return;
    }
    rrec_listener_set_status(listener, "");
    make_member(g, row, host, &region, row->n_qpn ? row->qpn[0] : g->row->designated_qpn);
}

/* May the program be told that it is connected?  Without a source there is nothing that it could
 * miss; otherwise its edge must have it. */
static bool
may_begin(const struct castd_group *g, const struct rrec_member *m)
{
    const struct castd_tree *edge = m->branch ? castd_find_edge(g, m->branch) : NULL;

    return edge ? castd_tree_applied(edge->node->row, edge->row) : m->branch && !g->source;
}

static void
check_active(const struct castd *c, struct castd_group *g, const struct rrec_connection *row,
             const struct plan_host *host)
{
    const struct rrec_listener *listener = find_listener(g, host);
    const struct plan_node *node = edge_of(c, host);
    const struct rrec_member *m = own_member(g, row, host);
    enum cm_state state = state_of(row);

    if (!listener || listener->port != row->port || !node || strcmp(node->name, row->node)) {
        end(row, xasprintf("%s is not to be connected any more", host ? host->name : "its host"));
    } else if (m && (member_is_lost(m) || strcmp(m->want, "active"))) {
        end(row, xasprintf("%s", m->lost[0] ? m->lost : "it was taken out"));
    } else if (m && !has_decision(row, CM_ACCEPT) && may_begin(g, m)) {
        decide(row, CM_ACCEPT);
        set_status(row, xasprintf("receiver"));
    } else if (!m && state == CM_ESTABLISHED) {
        end(row, xasprintf("it was taken out"));
    } else if (!m && state == CM_ANSWERED && !has_decision(row, CM_CLOSE)) {
        take_answer(g, row, host, listener);
    }
}

/* Is a node about to connect to this program, or has done so? */
static bool
has_active(const struct castd *c, const struct castd_group *g, const struct rrec_listener *listener)
{
    for (size_t i = 0; i < g->n_connections; i++) {
        const struct castd_connection *conn = &g->connections[i];
        const struct plan_node *node =
            !is_passive(conn->row) && conn->host && !strcmp(conn->host->name, listener->host)
                ? edge_of(c, conn->host)
                : NULL;

        if (node && !strcmp(node->name, conn->row->node)) {
            return true;
        }
    }
    return false;
}

/* No number is used twice at a node, nor one that somebody else has written there. */
static bool
is_in_use(const struct castd *c, const char *node, int64_t number)
{
    const struct rrec_connection *row;

    RREC_CONNECTION_FOR_EACH (row, c->idl) {
        if (row->number == number && !strcmp(row->node, node)) {
            return true;
        }
    }
    return false;
}

/* Has a node connect to a program that listens, or is expected to. */
static void
begin(struct castd *c, struct castd_group *g, const struct rrec_listener *listener)
{
    const struct plan_host *host = plan_find_host(&c->topology, listener->host);
    const struct plan_node *node = edge_of(c, host);
    int64_t number = MAX(c->global->next_connection, 1);
    const struct rrec_group *row = g->row;

    while (node && number <= MAX_ACTIVE_NUMBER && is_in_use(c, node->name, number)) {
        number++;
    }
    if (!node || number > MAX_ACTIVE_NUMBER) {
        char *status = node
                           ? xasprintf("there is no connection number left")
                           : xasprintf("%s is not behind a switch or source agent", listener->host);

        rrec_listener_set_status(listener, status);
        free(status);
        return;
    }
    const struct rrec_connection *conn =
        rrec_connection_insert(ovsdb_idl_txn_get(&c->global->header_));
    rrec_connection_set_node(conn, node->name);
    rrec_connection_set_number(conn, number);
    rrec_connection_set_role(conn, cm_role_name(CM_ACTIVE));
    rrec_connection_set_proxy(conn, row->proxy);
    rrec_connection_set_address(conn, ip6_text(&host->address));
    rrec_connection_set_port(conn, listener->port);
    rrec_connection_set_qpn(conn, &row->designated_qpn, 1);
    rrec_connection_set_psn(conn, &row->start_psn, 1);
    rrec_connection_set_mtu(conn, &row->mtu, 1);
    rrec_connection_set_timeout(conn, row->timeout);
    rrec_connection_set_group(conn, row->name);
    rrec_global_set_next_connection(c->global, number + 1);
    g->written = true;
}

/*
 * All.
 */

/* Is nothing more to be heard of it?  A node that is gone says nothing. */
static bool
is_over(const struct castd *c, const struct rrec_connection *row)
{
    return state_of(row) == CM_ENDED || !plan_find_node(&c->topology, row->node);
}

static void
delete_row(const struct rrec_connection *row)
{
    VLOG_INFO("group %s: connection of %s has ended (%s)", row->group, row->address,
              row->cause ? row->cause : "its node is gone");
    rrec_connection_delete(row);
}

/* One connection of a group; NULL: of none. */
static void
step(const struct castd *c, struct castd_group *g, const struct castd_connection *conn)
{
    const struct rrec_connection *row = conn->row;

    rrec_connection_set_group(row, g ? g->row->name : "");
    if (is_passive(row) && !row->decision) {
        request(c, g, row, conn->host);
    } else if (!g) {
        end(row, xasprintf("no group has Proxy Address %s", row->proxy));
    } else if (is_passive(row)) {
        check_passive(g, row, conn->host);
    } else {
        check_active(c, g, row, conn->host);
    }
}

/* A connection that has ended makes room for another. */
static void
delete_ended(const struct castd *c, struct castd_group *g)
{
    size_t n = 0;

    for (size_t i = 0; i < g->n_connections; i++) {
        struct castd_connection conn = g->connections[i];

        if (is_over(c, conn.row)) {
            delete_row(conn.row);
            g->written = true;
        } else {
            conn.host = find_host(c, conn.row);
            g->connections[n++] = conn;
        }
    }
    g->n_connections = n;
}

void
castd_connect(struct castd *c)
{
    for (size_t i = 0; i < c->n_due; i++) {
        struct castd_group *g = c->due[i];

        delete_ended(c, g);
        drop_unconnected(g);
        for (size_t j = 0; j < g->n_connections; j++) {
            step(c, g, &g->connections[j]);
        }
        for (size_t j = 0; j < g->n_listeners && can_connect(g->row); j++) {
            if (!has_active(c, g, g->listeners[j])) {
                begin(c, g, g->listeners[j]);
            }
        }
    }
}

void
castd_connect_rest(struct castd *c)
{
    for (size_t i = 0; i < c->n_strays; i++) {
        if (is_over(c, c->strays[i].row)) {
            delete_row(c->strays[i].row);
        } else {
            step(c, NULL, &c->strays[i]);
        }
    }
}
