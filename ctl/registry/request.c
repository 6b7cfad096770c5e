/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests of sources and receivers.
 *
 * Every transaction that changes anything increments Global.next_cfg and
 * verifies that nobody else has incremented it since it was read.  This
 * serializes the transactions: what was checked still holds when it is written,
 * or the transaction is tried again.
 */
#include <config.h>

#include "ctl/registry/request.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "ctl/registry/group-state.h"
#include "ctl/registry/private-data.h"
#include "openvswitch/dynamic-string.h"
#include "util.h"

#define DEFAULT_FABRIC_MTU 9000

static int OVS_PRINTF_FORMAT(3, 4) refuse(int error, char **whyp, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    *whyp = xvasprintf(format, args);
    va_end(args);
    return error;
}

/*
 * Rows.
 */

/* Lets in only rows of a table whose column has this text, or all. */
#define ONLY(IDL, TABLE, COLUMN, TEXT, SEQNO)                                \
    do {                                                                     \
        struct ovsdb_idl_condition only_ = OVSDB_IDL_CONDITION_INIT(&only_); \
        if (TEXT) {                                                          \
            rrec_##TABLE##_add_clause_##COLUMN(&only_, OVSDB_F_EQ, TEXT);    \
        } else {                                                             \
            ovsdb_idl_condition_add_clause_true(&only_);                     \
        }                                                                    \
        unsigned int set_ = rrec_##TABLE##_set_condition(IDL, &only_);       \
        *(SEQNO) = MAX(*(SEQNO), set_);                                      \
        ovsdb_idl_condition_destroy(&only_);                                 \
    } while (0)

unsigned int
request_follow(struct ovsdb_idl *idl, const char *group, const char *host)
{
    unsigned int seqno = 0; /* of the last one that is new. */

    ONLY(idl, group, name, group, &seqno);
    ONLY(idl, host, name, host, &seqno);
    ONLY(idl, member, host, host, &seqno);
    ONLY(idl, listener, host, host, &seqno);
    return seqno;
}

const struct rrec_host *
request_find_host(const struct ovsdb_idl *idl, const char *name)
{
    const struct rrec_host *row;

    RREC_HOST_FOR_EACH (row, idl) {
        if (!strcmp(row->name, name)) {
            return row;
        }
    }
    return NULL;
}

const struct rrec_host *
request_find_host_at(const struct ovsdb_idl *idl, const char *address)
{
    const struct rrec_host *row;

    RREC_HOST_FOR_EACH (row, idl) {
        if (!strcmp(row->address, address)) {
            return row;
        }
    }
    return NULL;
}

const struct rrec_group *
request_find_group(const struct ovsdb_idl *idl, const char *name)
{
    const struct rrec_group *row;

    RREC_GROUP_FOR_EACH (row, idl) {
        if (!strcmp(row->name, name)) {
            return row;
        }
    }
    return NULL;
}

const struct rrec_source *
request_find_source(const struct ovsdb_idl *idl, const struct rrec_group *group)
{
    const struct rrec_source *row;

    RREC_SOURCE_FOR_EACH (row, idl) {
        if (row->group == group) {
            return row;
        }
    }
    return NULL;
}

const struct rrec_member *
request_find_member(const struct ovsdb_idl *idl, const struct rrec_group *group, const char *host)
{
    const struct rrec_member *row;

    RREC_MEMBER_FOR_EACH (row, idl) {
        if (row->group == group && !strcmp(row->host, host)) {
            return row;
        }
    }
    return NULL;
}

const struct rrec_listener *
request_find_listener(const struct ovsdb_idl *idl, const struct rrec_group *group, const char *host)
{
    const struct rrec_listener *row;

    RREC_LISTENER_FOR_EACH (row, idl) {
        if (row->group == group && !strcmp(row->host, host)) {
            return row;
        }
    }
    return NULL;
}

/*
 * What sources and receivers have in common.
 */

static int
require_group(const struct ovsdb_idl *idl, const char *name, const struct rrec_group **groupp,
              char **whyp)
{
    *groupp = request_find_group(idl, name);
    return *groupp ? 0 : refuse(ENOENT, whyp, "no group named '%s'", name);
}

static int
require_rows(const struct ovsdb_idl *idl, const char *group, const char *host,
             const struct rrec_group **groupp, char **whyp)
{
    int error = require_group(idl, group, groupp, whyp);

    if (!error && !request_find_host(idl, host)) {
        error = refuse(ENOENT, whyp, "no host named '%s'", host);
    }
    return error;
}

static int
check_epoch(const struct rrec_group *group, int64_t epoch, char **whyp)
{
    if (epoch && (epoch != group->epoch || group->resets != group->epoch_resets)) {
        return refuse(ESTALE, whyp, "group %s is in epoch %" PRId64 ", not %" PRId64, group->name,
                      group->epoch, epoch);
    }
    return 0;
}

/*
 * Sources.
 */

int
request_source_set(const struct ovsdb_idl *idl, struct ovsdb_idl_txn *txn,
                   const struct request_source *r, char **whyp)
{
    const struct rrec_group *group;
    int error = require_rows(idl, r->group, r->host, &group, whyp);

    if (error) {
        return error;
    }
    const struct rrec_source *source = request_find_source(idl, group);
    rrec_group_verify_epoch(group);
    if (r->may_exist && source && source->epoch && source->epoch == group->epoch
        && source->qpn == r->qpn && !strcmp(source->host, r->host)) {
        return 0;
    }
    error = check_epoch(group, r->epoch, whyp);
    if (error) {
        return error;
    }
    if (r->epoch && (group->source_epoch == r->epoch || (source && !source->epoch))) {
        return refuse(EEXIST, whyp,
                      "epoch %" PRId64 " of group %s has had a source: "
                      "castctl group reset %s starts another",
                      r->epoch, group->name, group->name);
    }
    if (!source) {
        source = rrec_source_insert(txn);
        rrec_source_set_group(source, group);
    }
    rrec_source_set_host(source, r->host);
    rrec_source_set_qpn(source, r->qpn);
    rrec_source_set_epoch(source, r->epoch); /* 0: castd binds it. */
    rrec_source_set_connection(source, NULL, 0);
    return 0;
}

/*
 * Members.
 */

static bool
is_same(const struct rrec_member *m, const struct request_member *r, const char *va)
{
    return m->qpn == r->qpn && m->keep == r->keep && m->n_psn == r->has_psn
           && (!r->has_psn || m->psn[0] == r->psn) && m->n_rkey == r->has_region
           && (!r->has_region || m->rkey[0] == r->rkey) && !strcmp(m->va, va) && m->len == r->len;
}

static void
format_va(const struct request_member *r, char va[24])
{
    snprintf(va, 24, r->has_region ? "0x%" PRIx64 : "", r->va);
}

/* What becomes of an existing row. */
enum existing {
    EXISTING_IS_SAME, /* it says the same already. */
    EXISTING_GOES,    /* it is written over. */
    EXISTING_DOUBTED, /* it is, if its queue pair is dead. */
};

/* 0, with the answer in '*what', or why the row 'm' stays as it is. */
static int
check_existing(const struct rrec_member *m, const struct request_member *r, const char *va,
               enum existing *what, char **whyp)
{
    const char *group = m->group->name;

    *what = EXISTING_GOES;
    if (strcmp(m->want, "active")) {
        return strcmp(m->state, "left") ? refuse(EBUSY, whyp, "%s is still leaving group %s (%s)",
                                                 m->host, group, m->state)
                                        : 0;
    }
    if (m->epoch != m->group->epoch) {
        return 0;
    }
    if (member_is_lost(m) && m->group->lost[0]) {
        return refuse(EHOSTDOWN, whyp,
                      "%s is lost in epoch %" PRId64
                      " of group %s, which has failed: castctl group "
                      "reset %s starts another",
                      m->host, m->epoch, group, group);
    }
    if (member_is_lost(m)) {
        return 0; /* the group goes on without it. */
    }
    if (m->n_designated_qpn && !member_is_active(m)) {
        return 0; /* castd has kept it, but its host says that it has another queue pair now. */
    }
    if (r->may_exist && is_same(m, r, va)) {
        *what = EXISTING_IS_SAME;
        return 0;
    }
    /* One with the same QPN could not be told from it. */
    if (m->qpn != r->qpn && (r->replace || member_is_active(m))) {
        *what = EXISTING_DOUBTED;
        return 0;
    }
    return refuse(EEXIST, whyp,
                  "%s is registered in epoch %" PRId64 " of group %s with QPN 0x%" PRIx64
                  " already",
                  m->host, m->epoch, group, m->qpn);
}

/* Leaves the request beside the registration; castd decides about it. */
static void
set_new(const struct rrec_member *m, const struct request_member *r, const char *va)
{
    rrec_member_set_new_qpn(m, &r->qpn, 1);
    rrec_member_set_new_rkey(m, &r->rkey, r->has_region);
    rrec_member_set_new_va(m, va);
    rrec_member_set_new_len(m, r->len);
    rrec_member_set_new_psn(m, &r->psn, r->has_psn);
    rrec_member_set_new_keep(m, r->keep);
    rrec_member_set_refused(m, "");
}

void
request_member_close(const struct rrec_member *m, const char *refused)
{
    rrec_member_set_new_qpn(m, NULL, 0);
    rrec_member_set_new_rkey(m, NULL, 0);
    rrec_member_set_new_va(m, "");
    rrec_member_set_new_len(m, 0);
    rrec_member_set_new_psn(m, NULL, 0);
    rrec_member_set_new_keep(m, false);
    rrec_member_set_refused(m, refused);
}

int
request_member_add(const struct ovsdb_idl *idl, struct ovsdb_idl_txn *txn,
                   const struct request_member *r, char **whyp)
{
    const struct rrec_group *group;
    char va[24];
    int error = require_rows(idl, r->group, r->host, &group, whyp);

    if (error) {
        return error;
    }
    format_va(r, va);
    rrec_group_verify_epoch(group);
    error = check_epoch(group, r->epoch, whyp);
    if (error) {
        return error;
    }
    if (!group->epoch || group->resets != group->epoch_resets) {
        return refuse(EAGAIN, whyp, "castd has not yet given group %s its epoch", group->name);
    }
    const struct rrec_listener *listener = request_find_listener(idl, group, r->host);
    if (listener) {
        return refuse(EEXIST, whyp,
                      "%s is a receiver of group %s by the program that listens at port %" PRId64
                      " already",
                      r->host, group->name, listener->port);
    }
    const struct rrec_member *m = request_find_member(idl, group, r->host);
    if (m) {
        enum existing what;

        error = check_existing(m, r, va, &what, whyp);
        if (error || what == EXISTING_IS_SAME) {
            return error;
        }
        if (what == EXISTING_DOUBTED) {
            set_new(m, r, va);
            return 0;
        }
    } else {
        m = rrec_member_insert(txn);
        rrec_member_set_group(m, group);
        rrec_member_set_host(m, r->host);
    }
    rrec_member_set_qpn(m, r->qpn);
    rrec_member_set_rkey(m, &r->rkey, r->has_region);
    rrec_member_set_va(m, va);
    rrec_member_set_len(m, r->len);
    rrec_member_set_psn(m, &r->psn, r->has_psn);
    rrec_member_set_keep(m, r->keep);
    rrec_member_set_designated_qpn(m, NULL, 0);
    rrec_member_set_epoch(m, group->epoch);
    rrec_member_set_connection(m, NULL, 0);
    rrec_member_set_branch(m, 0); /* it is another receiver now. */
    rrec_member_set_want(m, "active");
    request_member_close(m, "");
    return 0;
}

int
request_member_answer(const struct ovsdb_idl *idl, const struct request_member *r, char **whyp)
{
    const struct rrec_group *group = request_find_group(idl, r->group);
    const struct rrec_member *m = group ? request_find_member(idl, group, r->host) : NULL;
    char va[24];

    format_va(r, va);
    if (!m || is_same(m, r, va)) {
        return 0; /* or gone since. */
    }
    if (m->n_new_qpn && m->new_qpn[0] == r->qpn) {
        return refuse(EAGAIN, whyp,
                      "%s is registered in epoch %" PRId64 " of group %s with QPN 0x%" PRIx64
                      ", and whether that is alive is not known: %s",
                      m->host, m->epoch, group->name, m->qpn, m->status);
    }
    return refuse(EBUSY, whyp, "%s%s",
                  m->refused[0] ? m->refused : "another registration came in between of ",
                  m->refused[0] ? "" : m->host);
}

int
request_member_leave(const struct ovsdb_idl *idl, const char *group_name, const char *host,
                     const char *want, char **whyp)
{
    const struct rrec_group *group;
    int error = require_group(idl, group_name, &group, whyp);

    if (error) {
        return error;
    }
    const struct rrec_member *m = request_find_member(idl, group, host);
    const struct rrec_listener *listener = request_find_listener(idl, group, host);
    /* One whose program has ended is being removed already. */
    if (m && strcmp(m->want, "removed")) {
        rrec_member_set_want(m, want);
    }
    if (listener) {
        rrec_listener_delete(listener);
    }
    return m || listener ? 0
                         : refuse(ENOENT, whyp, "%s is not a member of group %s", host, group_name);
}

/*
 * Listeners.
 */

static const char *
layout_of(const char *private_data)
{
    return private_data[0] ? private_data : PRIVATE_DATA_DEFAULT;
}

int
request_listener_add(const struct ovsdb_idl *idl, struct ovsdb_idl_txn *txn,
                     const struct request_listener *r, char **whyp)
{
    const struct rrec_group *group;
    int error = require_rows(idl, r->group, r->host, &group, whyp);

    if (error) {
        return error;
    }
    const struct rrec_listener *row = request_find_listener(idl, group, r->host);
    const struct rrec_member *m = request_find_member(idl, group, r->host);
    if (row && row->port == r->port
        && !strcmp(layout_of(row->private_data), layout_of(r->private_data))) {
        return 0;
    }
    if (row && !r->replace) {
        return refuse(EEXIST, whyp,
                      "%s listens for group %s at port %" PRId64 " with private data %s already "
                      "(--replace)",
                      r->host, group->name, row->port, layout_of(row->private_data));
    }
    /* castd would wait for it for ever. */
    if (!row && m && !m->n_connection && strcmp(m->want, "removed")) {
        return refuse(EEXIST, whyp,
                      "%s is registered in group %s with QPN 0x%" PRIx64
                      " already: castctl member remove %s %s",
                      r->host, group->name, m->qpn, group->name, r->host);
    }
    if (!row) {
        row = rrec_listener_insert(txn);
        rrec_listener_set_group(row, group);
        rrec_listener_set_host(row, r->host);
    }
    rrec_listener_set_port(row, r->port);
    rrec_listener_set_private_data(row, r->private_data);
    rrec_listener_set_status(row, ""); /* that of castd was about the values before. */
    return 0;
}

/*
 * Readiness.
 */

static size_t
count_active(const struct ovsdb_idl *idl, const struct rrec_group *group)
{
    const struct rrec_member *m;
    size_t n = 0;

    RREC_MEMBER_FOR_EACH (m, idl) {
        n += m->group == group && member_is_active(m);
    }
    return n;
}

/* How far a group has come that is not ready. */
static char *
group_standing(const struct ovsdb_idl *idl, const struct rrec_group *group, uint64_t n_members)
{
    const struct rrec_member *m;
    struct ds s = DS_EMPTY_INITIALIZER;

    ds_put_format(&s, "epoch %" PRId64 ", state %s", group->epoch,
                  group->state[0] ? group->state : "unknown to castd");
    if (group->status[0]) {
        ds_put_format(&s, ", %s", group->status);
    }
    ds_put_format(&s, "; %" PRIuSIZE " of %" PRIu64 " members active", count_active(idl, group),
                  n_members);
    RREC_MEMBER_FOR_EACH (m, idl) {
        /* The status of a group that serves has those that are lacking or slow. */
        bool said = group_serves(group) && (member_is_lacking(m) || member_is_slow(m));

        if (m->group == group && !said && strcmp(m->state, "active") && strcmp(m->state, "left")) {
            ds_put_format(&s, "; %s %s%s%s", m->host, m->state[0] ? m->state : "new",
                          m->status[0] ? ": " : "", m->status);
        }
    }
    return ds_steal_cstr(&s);
}

/* Has somebody asked for an epoch that castd has not begun yet? */
static bool
awaits_epoch(const struct ovsdb_idl *idl, const struct rrec_group *group)
{
    const struct rrec_source *source = request_find_source(idl, group);

    return group->resets != group->epoch_resets || (source && !source->epoch);
}

int
request_group_ready(const struct ovsdb_idl *idl, const char *name, int64_t epoch,
                    uint64_t n_members, char **whyp)
{
    const struct rrec_group *group;
    int error = require_group(idl, name, &group, whyp);

    if (error) {
        return error;
    }
    if (epoch && group->epoch > epoch) {
        return refuse(ESTALE, whyp, "group %s is in epoch %" PRId64 ", %" PRId64 " is over",
                      group->name, group->epoch, epoch);
    }
    if ((!epoch || group->epoch == epoch) && group_serves(group)
        && count_active(idl, group) >= n_members) {
        return 0;
    }
    if (group->lost[0] && (!epoch || group->epoch == epoch) && !awaits_epoch(idl, group)) {
        return refuse(EHOSTDOWN, whyp, "group %s has failed in epoch %" PRId64 ": %s", group->name,
                      group->epoch, group->lost);
    }
    *whyp = group_standing(idl, group, n_members);
    if (epoch > group->epoch) {
        char *standing = *whyp;

        *whyp = xasprintf("epoch %" PRId64 " has not begun; %s", epoch, standing);
        free(standing);
    }
    return EAGAIN;
}

/*
 * Numbers.
 */

void
request_number(const struct ovsdb_idl *idl, struct ovsdb_idl_txn *txn, bool all_nodes)
{
    const struct rrec_global *global = rrec_global_first(idl);

    if (global) {
        rrec_global_verify_next_cfg(global);
        ovsdb_idl_txn_increment(txn, &global->header_, &rrec_global_col_next_cfg, false);
        if (all_nodes) {
            rrec_global_set_all_cfg(global, global->next_cfg + 1);
        }
    } else {
        global = rrec_global_insert(txn);
        rrec_global_set_fabric_mtu(global, DEFAULT_FABRIC_MTU);
        rrec_global_set_next_cfg(global, 1);
    }
}

int64_t
request_get_number(const struct ovsdb_idl *idl, const struct ovsdb_idl_txn *txn,
                   enum ovsdb_idl_txn_status status)
{
    const struct rrec_global *global = rrec_global_first(idl);

    if (status == TXN_UNCHANGED) {
        /* The rows say so already, but castd may not have taken that up yet. */
        return global ? global->next_cfg : 0;
    }
    int64_t number = ovsdb_idl_txn_get_increment_new_value(txn);
    return number ? number : 1; /* 0: the transaction made Global's row. */
}
