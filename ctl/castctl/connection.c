/* SPDX-License-Identifier: Apache-2.0
 *
 * castctl connection: RDMA-CM connections of programs with the Proxies of groups.
 */
#include <config.h>

#include "ctl/castctl/castctl.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/registry/request.h"
#include "lib/cm-conn.h"
#include "util.h"

/* A node says nothing before it has tried. */
static const char *
state_of(const struct rrec_connection *row)
{
    return row->state ? row->state : cm_state_name(CM_CONNECTING);
}

static bool
is_in(const struct rrec_connection *row, enum cm_state state)
{
    return !strcmp(state_of(row), cm_state_name(state));
}

/* What castd says, or else why the program's host said no; a static string or the row's. */
static const char *
status_of(const struct rrec_connection *row)
{
    return !row->status[0] && is_in(row, CM_REFUSED) && row->n_peer_reason
               ? cm_rej_text((uint16_t) row->peer_reason[0])
               : row->status;
}

/* The connection by which a node tries to reach a program that listens; NULL: there is none. */
static const struct rrec_connection *
find_of_listener(const struct ctl *ctl, const struct rrec_listener *listener)
{
    const struct rrec_connection *row, *found = NULL;

    RREC_CONNECTION_FOR_EACH (row, ctl->idl) {
        const struct rrec_host *host = request_find_host_at(ctl->idl, row->address);

        if (!strcmp(row->role, cm_role_name(CM_ACTIVE)) && !is_in(row, CM_ENDED)
            && !strcmp(row->group, listener->group->name) && row->port == listener->port && host
            && !strcmp(host->name, listener->host)) {
            found = row;
        }
    }
    return found;
}

char *
ctl_listener_status(const struct ctl *ctl, const struct rrec_listener *listener)
{
    const struct rrec_connection *row = find_of_listener(ctl, listener);

    if (listener->status[0] || !row) {
        return xstrdup(listener->status);
    }
    const char *why = status_of(row);
    return xasprintf("%s%s%s", state_of(row), why[0] ? ": " : "", why);
}

static struct json *
connection_to_json(const struct ctl *ctl, const struct rrec_connection *row)
{
    const struct rrec_host *host = request_find_host_at(ctl->idl, row->address);
    struct json *o = json_object_create();

    json_object_put_string(o, "node", row->node);
    ctl_put_int(o, "number", row->number);
    ctl_put_string_or_null(o, "group", row->group[0] ? row->group : NULL);
    json_object_put_string(o, "proxy", row->proxy);
    ctl_put_string_or_null(o, "host", host ? host->name : NULL);
    json_object_put_string(o, "address", row->address);
    json_object_put_string(o, "role", row->role);
    ctl_put_int(o, "port", row->port);
    json_object_put_string(o, "state", state_of(row));
    ctl_put_string_or_null(o, "cause", row->cause);
    ctl_put_int_or_null(o, "qpn", row->peer_qpn ? &row->peer_qpn : NULL);
    ctl_put_int_or_null(o, "designated_qpn", row->n_qpn ? row->qpn : NULL);
    json_object_put_string(o, "status", status_of(row));
    return o;
}

static int
compare_connections(const void *a_, const void *b_)
{
    const struct rrec_connection *const *ap = a_, *const *bp = b_, *a = *ap, *b = *bp;
    int order = strverscmp(a->node, b->node);

    return order ? order : a->number < b->number ? -1 : a->number > b->number;
}

static void
connection_list(struct ctl *ctl)
{
    static const char *const keys[] = {"node",  "number", "group", "host",   "role", "port",
                                       "state", "cause",  "qpn",   "status", NULL};
    struct json *array = json_array_create_empty();
    const struct rrec_connection *row, **rows = NULL;
    size_t n = 0, allocated = 0;

    if (ctl->argc) {
        ctl_require_group(ctl, ctl->argv[0]);
    }
    RREC_CONNECTION_FOR_EACH (row, ctl->idl) {
        if (!ctl->argc || !strcmp(row->group, ctl->argv[0])) {
            if (n == allocated) {
                rows = x2nrealloc(rows, &allocated, sizeof *rows);
            }
            rows[n++] = row;
        }
    }
    if (n) {
        qsort(rows, n, sizeof *rows, compare_connections);
    }
    for (size_t i = 0; i < n; i++) {
        json_array_add(array, connection_to_json(ctl, rows[i]));
    }
    free(rows);
    ctl_print(ctl, array, keys);
}

const struct ctl_command ctl_connection_commands[] = {
    {"connection list", "[GROUP]", 0, 1, 0, 0, NULL, connection_list,
     "list RDMA-CM connections of programs with groups, or with one"},
    {.name = NULL},
};
