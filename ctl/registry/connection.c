/* SPDX-License-Identifier: Apache-2.0
 *
 * One RDMA-CM connection's row as plain data.
 *
 * What a node has found out (struct cm_known) becomes columns and is read again by the node's next
 * agent.  An empty column is "not known", whatever number stands for that in the structure.
 */
#include <config.h>

#include "ctl/registry/connection.h"

#include <inttypes.h>
#include <stdlib.h>

#include "ctl/registry/hex.h"
#include "ctl/registry/rocecast-idl.h"
#include "ctl/registry/values.h"
#include "util.h"

#define TRANSACTION_DIGITS 16

/* Puts a sentence there; returns false. */
static bool
bad(char **errp, const char *column, const char *value, const char *why)
{
    *errp = xasprintf("Connection.%s \"%s\": %s", column, value, why);
    return false;
}

static bool
bad_number(char **errp, const char *column, int64_t value)
{
    char *text = xasprintf("%" PRId64, value);

    bad(errp, column, text, "out of range");
    free(text);
    return false;
}

/* A column that is empty or a number of 'min' to 'max'. */
static bool
read_optional(const char *column, const int64_t *value, size_t n, int64_t min, int64_t max,
              int64_t *out, char **errp)
{
    *out = n ? *value : 0;
    return !n || (*value >= min && *value <= max) || bad_number(errp, column, *value);
}

static bool
read_number(const char *column, int64_t value, int64_t min, int64_t max, char **errp)
{
    return (value >= min && value <= max) || bad_number(errp, column, value);
}

static bool
read_bytes(const char *column, const char *digits, size_t max, uint8_t bytes[CM_PRIVATE_SIZE],
           uint16_t *len, char **errp)
{
    size_t n;

    if (!hex_parse(digits, bytes, max, &n)) {
        return bad(errp, column, digits, "not hexadecimal digits, or too many");
    }
    *len = (uint16_t) n;
    return true;
}

/* How much private data the message has room for that the row's answer goes into.  A connection that
 * is closed may still have what it was accepted with. */
static size_t
answer_max(const struct cm_conn_config *c)
{
    return c->role == CM_ACTIVE       ? CM_REQ_PRIVATE_LEN
           : c->decision == CM_REJECT ? CM_REJ_PRIVATE_LEN
                                      : CM_REP_PRIVATE_LEN;
}

static bool
read_known(const struct rrec_connection *row, struct cm_known *k, char **errp)
{
    int64_t remote_id, mtu, reason;

    if (row->state && !cm_state_parse(row->state, &k->state)) {
        return bad(errp, "state", row->state, "unknown");
    }
    if (row->cause && !cm_cause_parse(row->cause, &k->cause)) {
        return bad(errp, "cause", row->cause, "unknown");
    }
    if (row->transaction[0]
        && (strlen(row->transaction) > TRANSACTION_DIGITS
            || row->transaction[strspn(row->transaction, "0123456789abcdef")])) {
        return bad(errp, "transaction", row->transaction, "not a number in hexadecimal digits");
    }
    if (!read_optional("remote_id", row->remote_id, row->n_remote_id, 1, UINT32_MAX, &remote_id,
                       errp)
        || !read_number("peer_qpn", row->peer_qpn, 0, PSN_MASK, errp)
        || !read_number("peer_psn", row->peer_psn, 0, PSN_MASK, errp)
        || !read_optional("peer_mtu", row->peer_mtu, row->n_peer_mtu, 256, 4096, &mtu, errp)
        || !read_optional("peer_reason", row->peer_reason, row->n_peer_reason, 0, UINT16_MAX,
                          &reason, errp)
        || !read_bytes("peer_data", row->peer_data, CM_PRIVATE_SIZE, k->private_data,
                       &k->private_len, errp)) {
        return false;
    }
    k->remote_id = (uint32_t) remote_id;
    k->tid = strtoull(row->transaction, NULL, 16);
    k->qpn = (uint32_t) row->peer_qpn;
    k->psn = psn_make((uint32_t) row->peer_psn);
    k->mtu_code = cm_mtu_code((uint32_t) mtu);
    k->port = (uint16_t) row->port;
    k->reason = (uint16_t) reason;
    return true;
}

/* An accepted connection's REP, and an active one's REQ, need them. */
static bool
read_queue_pair(const struct rrec_connection *row, struct cm_conn_config *out, char **errp)
{
    bool needed = out->role == CM_ACTIVE || out->decision == CM_ACCEPT;
    int64_t qpn, psn, mtu;

    if (!read_optional("qpn", row->qpn, row->n_qpn, QPN_MIN, QPN_MAX, &qpn, errp)
        || !read_optional("psn", row->psn, row->n_psn, 0, PSN_MASK, &psn, errp)
        || !read_optional("mtu", row->mtu, row->n_mtu, 256, 4096, &mtu, errp)) {
        return false;
    }
    if (needed && !(row->n_qpn && row->n_psn)) {
        return bad(errp, row->n_qpn ? "psn" : "qpn", "", "must not be empty");
    }
    if (out->role == CM_ACTIVE && !cm_mtu_code((uint32_t) mtu)) {
        return bad_number(errp, "mtu", mtu);
    }
    out->qpn = (uint32_t) qpn;
    out->psn = psn_make((uint32_t) psn);
    out->mtu = (uint32_t) mtu;
    return true;
}

bool
connection_read(const struct rrec_connection *row, struct cm_conn_config *out, char **errp)
{
    int64_t reason;

    memset(out, 0, sizeof *out);
    if (!cm_role_parse(row->role, &out->role)) {
        return bad(errp, "role", row->role, "unknown");
    }
    if (row->decision && !cm_decision_parse(row->decision, &out->decision)) {
        return bad(errp, "decision", row->decision, "unknown");
    }
    if (!ip6_parse(row->proxy, &out->proxy) || !is_proxy_address(&out->proxy)) {
        return bad(errp, "proxy", row->proxy, "not in " PROXY_PREFIX_TEXT);
    }
    if (!ip6_parse(row->address, &out->host)) {
        return bad(errp, "address", row->address, "not an IPv6 address");
    }
    bool active = out->role == CM_ACTIVE;
    if (!read_number("number", row->number, active ? 1 : INT64_C(1) << 31,
                     active ? INT32_MAX : UINT32_MAX, errp)
        || !read_number("port", row->port, active, UINT16_MAX, errp)
        || !read_queue_pair(row, out, errp) || !read_number("timeout", row->timeout, 0, 31, errp)
        || !read_number("keepalive", row->keepalive, 0, UINT32_MAX, errp)
        || !read_optional("reason", row->reason, row->n_reason, 0, UINT16_MAX, &reason, errp)
        || !read_bytes("answer", row->answer, answer_max(out), out->private_data, &out->private_len,
                       errp)
        || !read_known(row, &out->known, errp)) {
        return false;
    }
    out->id = (uint32_t) row->number;
    out->port = (uint16_t) row->port;
    out->ack_timeout = (uint8_t) row->timeout;
    out->keepalive_msec = (uint32_t) row->keepalive;
    out->reason = (uint16_t) reason;
    *errp = NULL;
    return true;
}

/* Does an optional column say this number?  0: it is to be empty. */
static bool
says(const int64_t *value, size_t n, int64_t number)
{
    return n ? *value == number : !number;
}

static void
report_bytes(const struct rrec_connection *row, const struct cm_known *k)
{
    char *digits = hex_format(k->private_data, k->private_len);

    if (!nullable_string_is_equal(row->peer_data, digits)) {
        rrec_connection_set_peer_data(row, digits);
    }
    free(digits);
}

void
connection_report(const struct rrec_connection *row, const struct cm_known *k)
{
    const char *state = cm_state_name(k->state);
    const char *cause = k->cause ? cm_cause_name(k->cause) : NULL;
    int64_t remote_id = k->remote_id, mtu = cm_mtu_bytes(k->mtu_code), reason = k->reason;
    char transaction[TRANSACTION_DIGITS + 1] = "";

    if (!nullable_string_is_equal(row->state, state)) {
        rrec_connection_set_state(row, state);
    }
    if (!nullable_string_is_equal(row->cause, cause)) {
        rrec_connection_set_cause(row, cause);
    }
    if (!says(row->remote_id, row->n_remote_id, remote_id)) {
        rrec_connection_set_remote_id(row, &remote_id, remote_id != 0);
    }
    if (k->tid) {
        snprintf(transaction, sizeof transaction, "%" PRIx64, k->tid);
    }
    if (!nullable_string_is_equal(row->transaction, transaction)) {
        rrec_connection_set_transaction(row, transaction);
    }
    if (row->peer_qpn != k->qpn) {
        rrec_connection_set_peer_qpn(row, k->qpn);
    }
    if (row->peer_psn != k->psn.v) {
        rrec_connection_set_peer_psn(row, k->psn.v);
    }
    if (!says(row->peer_mtu, row->n_peer_mtu, mtu)) {
        rrec_connection_set_peer_mtu(row, &mtu, mtu != 0);
    }
    if (!says(row->peer_reason, row->n_peer_reason, reason)) {
        rrec_connection_set_peer_reason(row, &reason, reason != 0);
    }
    report_bytes(row, k);
}

void
connection_insert(struct ovsdb_idl_txn *txn, const char *node, const struct cm_conn_info *info)
{
    const struct rrec_connection *row = rrec_connection_insert(txn);

    rrec_connection_set_node(row, node);
    rrec_connection_set_number(row, info->id);
    rrec_connection_set_role(row, cm_role_name(info->role));
    rrec_connection_set_proxy(row, ip6_text(&info->proxy));
    rrec_connection_set_address(row, ip6_text(&info->host));
    rrec_connection_set_port(row, info->known->port);
    connection_report(row, info->known);
}
