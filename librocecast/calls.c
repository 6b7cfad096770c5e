/* SPDX-License-Identifier: Apache-2.0
 *
 * What each call asks of the registry.  Runs in the loop's thread.
 */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "ctl/registry/group-settings.h"
#include "ctl/registry/private-data.h"
#include "ctl/registry/request.h"
#include "ctl/registry/schema.h"
#include "ctl/registry/values.h"
#include "librocecast/internal.h"
#include "ovsdb-idl.h"
#include "smap.h"
#include "util.h"
#include "uuid.h"

static int OVS_PRINTF_FORMAT(3, 4) refuse(int error, char **whyp, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    *whyp = xvasprintf(format, args);
    va_end(args);
    return error;
}

/* The tables that loop.c monitors. */
static int
check_schema(const struct rocecast *r, char **whyp)
{
    char *problem = registry_schema_problem(
        r->idl, REGISTRY_TABLE(HOST) | REGISTRY_TABLE(GROUP) | REGISTRY_TABLE(SOURCE)
                    | REGISTRY_TABLE(MEMBER) | REGISTRY_TABLE(LISTENER));

    if (problem) {
        refuse(EPROTO, whyp, "registry %s: %s", r->db, problem);
        free(problem);
        return EPROTO;
    }
    return 0;
}

/* Checks that the registry's contents are there.  If nobody listens on a single unix socket, that
 * is final.  Any other registry may come up, and so may a connection that broke off. */
static int
check_contents(struct call *call, char **whyp)
{
    const struct rocecast *r = call->r;

    if (!r->idl) {
        return remote_check(r->db, whyp);
    }
    int error = registry_reach_error(&r->reach);
    bool broken = error == EOF || error == EPIPE || error == ECONNRESET;
    bool final = db_is_one_socket(r->db) && !broken && !registry_error_is_busy(error);

    if (ovsdb_idl_has_ever_connected(r->idl)) {
        return check_schema(r, whyp);
    }
    if (!error) {
        return refuse(EAGAIN, whyp, "registry %s%s", r->db,
                      ovsdb_idl_is_connected(r->idl) ? ": it shows no database 'rocecast'" : "");
    }
    if (error == ENOPROTOOPT) {
        return refuse(error, whyp, "registry %s: key or certificates cannot be used", r->db);
    }
    return refuse(!final      ? EAGAIN
                  : error > 0 ? error
                              : EIO,
                  whyp, "registry %s: %s", r->db, ovs_retval_to_string(error));
}

static int
check_address(struct call *call, char **whyp)
{
    const struct rrec_host *host = request_find_host(call->r->idl, call->host);

    if (!host) {
        return refuse(ENOENT, whyp, "no host named '%s'", call->host);
    }
    return ip6_parse(host->address, &call->address)
               ? 0
               : refuse(EIO, whyp, "the registry has '%s' for host %s", host->address, call->host);
}

/* Answers with the current epoch, once castd has said which that is. */
static int
check_epoch(struct call *call, char **whyp)
{
    const struct rocecast_group *group = call->group;
    const struct rrec_group *row = request_find_group(call->r->idl, group->name);

    if (!row) {
        return refuse(ENOENT, whyp, "no group named '%s'", group->name);
    }
    if (!row->epoch || row->resets != row->epoch_resets) {
        return refuse(EAGAIN, whyp, "castd has not yet given group %s its epoch", group->name);
    }
    view_know_epoch(call->group);
    call->attributes = group->epoch;
    return 0;
}

/*
 * Groups.
 */

/* Reads "NAME=VALUE" into a map of them. */
static int
split_settings(const char *const *settings, struct smap *given, char **whyp)
{
    for (; settings && *settings; settings++) {
        const char *value = strchr(*settings, '=');
        const struct group_setting *s = group_settings_table;
        char *name = xmemdup0(*settings, value ? (size_t) (value - *settings) : strlen(*settings));

        while (s->option && strcmp(s->option, name)) {
            s++;
        }
        const char *wrong = !s->option              ? "there is no such setting"
                            : !value                ? "must be NAME=VALUE"
                            : smap_get(given, name) ? "is given twice"
                                                    : NULL;
        if (!wrong) {
            smap_add(given, name, value + 1);
        }
        free(name);
        if (wrong) {
            return refuse(EINVAL, whyp, "%s: %s", *settings, wrong);
        }
    }
    return 0;
}

static int
add_group(struct call *call, const struct smap *given, char **whyp)
{
    const struct rrec_group *row = request_find_group(call->r->idl, call->name);
    struct group_settings settings = group_settings_default();
    const struct group_setting *s;
    char *why;

    if (!name_is_valid(call->name)) {
        return refuse(EINVAL, whyp, "group '%s': " NAME_RULE, call->name);
    }
    if (group_settings_take(&settings, given, &s, &why)) {
        refuse(EINVAL, whyp, "%s=%s: %s", s->option, smap_get(given, s->option), why);
        free(why);
        return EINVAL;
    }
    s = row ? group_settings_find_other(row, &settings, given) : NULL;
    if (s) {
        return refuse(EEXIST, whyp, "group %s exists with another %s", call->name, s->option);
    }
    if (!row) {
        row = rrec_group_insert(call->txn);
        rrec_group_set_name(row, call->name);
        group_settings_write(row, &settings);
    }
    return 0;
}

static int
write_group(struct call *call, char **whyp)
{
    struct smap given = SMAP_INITIALIZER(&given);
    int error = split_settings(call->settings, &given, whyp);

    error = error ? error : add_group(call, &given, whyp);
    smap_destroy(&given);
    return error;
}

static int
check_group(struct call *call, char **whyp)
{
    view_refresh(call->group);
    return check_epoch(call, whyp);
}

/*
 * Sources.
 */

/* Is the group still what the caller has seen of it? */
static int
check_seen(const struct call *call, const struct rrec_group *group,
           const struct rrec_source *source, char **whyp)
{
    const struct rocecast_epoch *seen = call->seen;
    struct in6_addr proxy;

    if (group->resets != group->epoch_resets || (source && !source->epoch)) {
        return refuse(EAGAIN, whyp, "castd has not yet given group %s its new epoch", group->name);
    }
    if (!ip6_parse(group->proxy, &proxy) || memcmp(&proxy, &seen->proxy, sizeof proxy)) {
        return refuse(ESTALE, whyp, "group %s has been deleted and made again", group->name);
    }
    if (group->epoch != seen->epoch) {
        return refuse(ESTALE, whyp, "group %s is in epoch %" PRId64 ", not %" PRIu32, group->name,
                      group->epoch, seen->epoch);
    }
    return group->source_epoch != group->epoch || seen->had_source
               ? 0
               : refuse(ESTALE, whyp,
                        "epoch %" PRId64 " of group %s has got a source meanwhile%s%s",
                        group->epoch, group->name, source ? ": " : "", source ? source->host : "");
}

static int
write_source(struct call *call, char **whyp)
{
    const char *name = call->group->name;
    const struct rrec_group *group = request_find_group(call->r->idl, name);
    const struct rrec_source *source = group ? request_find_source(call->r->idl, group) : NULL;
    bool same = source && source->qpn == call->qpn && !strcmp(source->host, call->host);
    bool there = same && source->epoch == group->epoch;
    /* An earlier try has written it, and castd is to give it an epoch or has. */
    bool written =
        call->tried && same && (!source->epoch || (there && group->epoch != call->old_epoch));

    if (group && call->seen && !written) {
        int error = check_seen(call, group, source, whyp);

        if (error) {
            return error;
        }
    }
    if (!call->tried) {
        call->old_epoch = there ? group->epoch : 0;
    }
    /* The answer to an earlier try may have got lost with the connection: no second epoch then. */
    const struct request_source request = {
        .group = name,
        .host = call->host,
        .qpn = call->qpn,
        .may_exist = written,
    };
    return request_source_set(call->r->idl, call->txn, &request, whyp);
}

/* The epoch is this source's, unless another source came in between. */
static int
check_source(struct call *call, char **whyp)
{
    int error = check_epoch(call, whyp);

    if (!error) {
        const struct rrec_group *group = request_find_group(call->r->idl, call->group->name);
        const struct rrec_source *source = request_find_source(call->r->idl, group);

        if (!source || source->epoch != group->epoch || source->qpn != call->qpn
            || strcmp(source->host, call->host)) {
            error = refuse(ESTALE, whyp, "group %s has another source by now", group->name);
        }
    }
    return error;
}

static int
write_no_source(struct call *call, char **whyp)
{
    const struct rrec_group *group = request_find_group(call->r->idl, call->group->name);
    const struct rrec_source *source = group ? request_find_source(call->r->idl, group) : NULL;

    if (!source && !call->tried) {
        return refuse(ENOENT, whyp, "group %s has no source", call->group->name);
    }
    if (source && !call->tried) {
        call->source = source->header_.uuid;
    }
    /* Another UUID is another source's row: an earlier try has deleted the right one. */
    if (source && uuid_equals(&source->header_.uuid, &call->source)) {
        rrec_source_delete(source);
    }
    return 0;
}

/*
 * Members.
 */

static struct request_member
member_request(const struct call *call)
{
    const struct rocecast_member *m = call->member;

    return (struct request_member){
        .group = call->group->name,
        .host = m->host,
        .qpn = m->qpn,
        .has_region = m->length > 0,
        .rkey = m->rkey,
        .va = m->address,
        .len = (int64_t) m->length,
        .epoch = m->epoch,
        .may_exist = true,
        .replace = m->flags & ROCECAST_MEMBER_REPLACE,
        .keep = m->flags & ROCECAST_MEMBER_KEEP,
    };
}

static int
write_member(struct call *call, char **whyp)
{
    const char *name = call->group->name;
    const struct rrec_group *group = request_find_group(call->r->idl, name);
    const struct request_member request = member_request(call);

    /* Not ESTALE yet: the caller could not know the new epoch. */
    if (group && group->resets != group->epoch_resets) {
        return refuse(EAGAIN, whyp, "castd has not yet given group %s its new epoch", name);
    }
    return request_member_add(call->r->idl, call->txn, &request, whyp);
}

/* The caller's may be in the place of a registration that has to be found dead first. */
static int
check_member(struct call *call, char **whyp)
{
    const struct request_member request = member_request(call);

    int error = request_member_answer(call->r->idl, &request, whyp);
    if (!error) {
        snprintf(call->group->keeps, sizeof call->group->keeps, "%s",
                 request.keep ? request.host : "");
    }
    return error;
}

static int
write_listener(struct call *call, char **whyp)
{
    const struct request_listener request = {
        .group = call->group->name,
        .host = call->host,
        .port = call->port,
        .private_data = call->private_data,
        .replace = call->replace,
    };
    struct private_data_layout layout;

    return private_data_parse(call->private_data, &layout, whyp)
               ? request_listener_add(call->r->idl, call->txn, &request, whyp)
               : EINVAL;
}

static int
find_member(struct call *call, const struct rrec_member **memberp, char **whyp)
{
    const struct rrec_group *group = request_find_group(call->r->idl, call->group->name);

    *memberp = group ? request_find_member(call->r->idl, group, call->host) : NULL;
    return *memberp || call->tried ? 0
                                   : refuse(ENOENT, whyp, "%s is not a member of group %s",
                                            call->host, call->group->name);
}

static int
write_leave(struct call *call, char **whyp)
{
    int error = request_member_leave(call->r->idl, call->group->name, call->host, "left", whyp);

    if (error == ENOENT && call->tried) {
        free(*whyp);
        *whyp = NULL;
        return 0;
    }
    return error;
}

static int
check_left(struct call *call, char **whyp)
{
    const struct rrec_member *m;
    int error = find_member(call, &m, whyp);

    if (!error && m && strcmp(m->state, "left")) {
        error = refuse(EAGAIN, whyp, "%s has not left group %s: %s%s%s", m->host, call->group->name,
                       m->state, m->status[0] ? ", " : "", m->status);
    }
    return error;
}

static int
check_ready(struct call *call, char **whyp)
{
    int error =
        request_group_ready(call->r->idl, call->group->name, call->epoch, call->n_members, whyp);

    return error ? error : check_epoch(call, whyp);
}

const struct call_class call_open = {"open", NULL, check_contents};
const struct call_class call_host_address = {"host address", NULL, check_address};
const struct call_class call_group_add = {"group add", write_group, NULL};
const struct call_class call_group_open = {"group open", NULL, check_group};
const struct call_class call_source_set = {"source set", write_source, check_source};
const struct call_class call_source_del = {"source del", write_no_source, NULL};
const struct call_class call_member_add = {"member add", write_member, check_member};
const struct call_class call_member_listen = {"member listen", write_listener, NULL};
const struct call_class call_member_leave = {"member leave", write_leave, check_left};
const struct call_class call_wait_ready = {"wait", NULL, check_ready};
