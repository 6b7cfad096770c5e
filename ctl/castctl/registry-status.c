/* SPDX-License-Identifier: Apache-2.0
 *
 * castctl registry status: the registry's servers.
 *
 * Each of the registry's remotes is asked for its row of the database _Server (RFC 7047 has no
 * clusters; ovsdb-server(5) has), which says of the server itself.  What a cluster is made of only a
 * server's control socket says, in text for people.
 */
#include <config.h>

#include "ctl/castctl/registry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/castctl/server.h"
#include "ctl/registry/paths.h"
#include "svec.h"
#include "timeval.h"
#include "util.h"

/* A member that is well has answered the leader by then: elections take 1 s. */
#define SILENT_MSEC 3000

/*
 * The registry's remotes.
 */

/* The UUID of a column that may be empty, as a string; null: it is. */
static struct json *
uuid_of(const struct json *row, const char *column)
{
    const struct json *value = ctl_get(row, column);
    bool is_there = value && value->type == JSON_ARRAY && value->array.n == 2
                    && value->array.elems[1]->type == JSON_STRING;

    return is_there ? json_deep_clone(value->array.elems[1]) : json_null_create();
}

static struct json *
server_to_json(const char *remote, const struct json *row)
{
    struct json *o = json_object_create();
    const struct json *index = row ? ctl_get(row, "index") : NULL;
    bool clustered = row && !strcmp(ctl_get_string(row, "model"), "clustered");

    json_object_put_string(o, "remote", remote);
    /* Who has lost the others may still take itself for the leader. */
    ctl_put_string_or_null(o, "role",
                           !row || !ctl_get_bool(row, "connected") ? NULL
                           : !clustered                            ? "standalone"
                           : ctl_get_bool(row, "leader")           ? "leader"
                                                                   : "follower");
    json_object_put(o, "connected",
                    row ? json_boolean_create(ctl_get_bool(row, "connected")) : json_null_create());
    json_object_put(o, "index",
                    index && index->type == JSON_INTEGER ? json_deep_clone(index)
                                                         : json_null_create());
    json_object_put(o, "server", row ? uuid_of(row, "sid") : json_null_create());
    json_object_put(o, "cluster", row ? uuid_of(row, "cid") : json_null_create());
    return o;
}

/* How it stands with the servers that were asked. */
struct tally {
    size_t n_silent;    /* that do not answer. */
    struct svec out;    /* what is wrong with these, and with those that answer and are cut off. */
    const char *leader; /* the remote of a server that may be written to; NULL: there is none. */
    bool connected;     /* one is in touch with a majority. */
};

static void
add_server(const struct server *s, struct json *servers, struct tally *tally)
{
    if (s->row) {
        tally->connected |= ctl_get_bool(s->row, "connected");
        tally->leader = server_leads(s) ? s->remote : tally->leader;
    }
    tally->n_silent += !s->row;
    if (!s->row || !ctl_get_bool(s->row, "connected")) {
        svec_add_nocopy(
            &tally->out,
            xasprintf("%s: %s", s->remote, s->row ? "it is not in touch with a majority" : s->why));
    }
    json_array_add(servers, server_to_json(s->remote, s->row));
}

static void
show_remotes(struct ctl *ctl)
{
    static const char *const keys[] = {"leader",    "majority", "servers", "remote", "role",
                                       "connected", "index",    "server",  NULL};
    struct json *o = json_object_create(), *array = json_array_create_empty();
    struct tally tally = {.out = SVEC_EMPTY_INITIALIZER};
    struct servers all;

    ctl_check_db(ctl);
    servers_ask(ctl, &all);
    for (size_t i = 0; i < all.n; i++) {
        add_server(&all.servers[i], array, &tally);
    }
    if (tally.n_silent == all.n) {
        ctl_fail(CTL_UNAVAILABLE, "no server of the registry answers: %s",
                 svec_join(&tally.out, "; ", ""));
    }
    for (size_t i = 0; tally.connected && i < tally.out.n; i++) {
        ctl_warn("registry %s", tally.out.names[i]);
    }
    ctl_put_string_or_null(o, "leader", tally.leader);
    ctl_put_bool(o, "majority", tally.connected);
    json_object_put(o, "servers", array);
    ctl_print(ctl, o, keys);
    servers_uninit(&all);
    if (!tally.connected) {
        ctl_warn("registry %s: no server is in touch with a majority", ctl->db);
        exit(fflush(stdout) ? CTL_PARTIAL : CTL_UNAVAILABLE);
    }
    ctl_finish(tally.out.n > 0);
}

/*
 * A cluster.
 */

char *
registry_control(const struct ctl *ctl)
{
    /* Open vSwitch would look for a relative name elsewhere. */
    return ctl->argc ? abs_file_name(NULL, ctl->argv[0])
                     : xasprintf("%s/ovsdb-server.ctl", rocecast_rundir());
}

/* What is behind "KEY: " at the beginning of a line, malloc'd; NULL: there is no such line. */
static char *
value_of(const char *text, const char *key)
{
    size_t len = strlen(key);

    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += line[0] == '\n';
        if (!strncmp(line, key, len) && line[len] == ':') {
            const char *value = line + len + 1 + (line[len + 1] == ' ');

            return xmemdup0(value, strcspn(value, "\n"));
        }
    }
    return NULL;
}

static void
put_value(struct json *o, const char *name, const char *text, const char *key)
{
    char *value = value_of(text, key);

    ctl_put_string_or_null(o, name, value);
    free(value);
}

static void
put_number(struct json *o, const char *name, const char *s)
{
    int64_t value = s ? strtoll(s, NULL, 10) : 0;

    ctl_put_int_or_null(o, name, s ? &value : NULL);
}

/* The number behind 'what' in a line; NULL: there is none. */
static const char *
number_behind(const char *line, const char *what)
{
    const char *found = strstr(line, what);

    return found ? found + strlen(what) : NULL;
}

/* Has the server a connection with the one of this name?  Connections that are not up are in
 * parentheses. */
static bool
is_connected_to(const char *connections, const char *name)
{
    char *out = xasprintf(" ->%s ", name), *in = xasprintf(" <-%s ", name);
    char *padded = xasprintf(" %s ", connections);
    bool found = strstr(padded, out) || strstr(padded, in);

    free(out);
    free(in);
    free(padded);
    return found;
}

/* A line "NAME (ID at ADDRESS) (self) next_index=N match_index=N last msg N ms ago". */
static struct json *
member_to_json(char *line, const char *connections)
{
    struct json *o = json_object_create();
    const char *address = strstr(line, " at ");
    bool is_self = strstr(line, "(self)") != NULL;
    char *name = xmemdup0(line, strcspn(line, " "));

    json_object_put_string(o, "member", name);
    json_object_put(o, "address",
                    json_string_create_nocopy(
                        address ? xmemdup0(address + 4, strcspn(address + 4, ")")) : xstrdup("")));
    ctl_put_bool(o, "self", is_self);
    ctl_put_bool(o, "connected", is_self || is_connected_to(connections, name));
    put_number(o, "match_index", number_behind(line, "match_index="));
    put_number(o, "last_message_ms", number_behind(line, "last msg "));
    free(name);
    return o;
}

/* All that is known about the members; the number of those that are reached. */
static size_t
put_members(struct json *o, const char *text)
{
    struct json *members = json_array_create_empty();
    char *connections = value_of(text, "Connections");
    const char *list = strstr(text, "\nServers:\n");
    char *lines = xstrdup(list ? list + strlen("\nServers:\n") : ""), *save = NULL;
    size_t n_reached = 0;

    for (char *line = strtok_r(lines, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        line += strspn(line, " ");
        struct json *member = member_to_json(line, connections ? connections : "");

        n_reached += ctl_get_bool(member, "connected");
        json_array_add(members, member);
    }
    ctl_sort_by(members, "address");
    json_object_put(o, "members", members);
    free(connections);
    free(lines);
    return n_reached;
}

/* Where the leader is reached; null: the server knows of none.  It calls itself "self". */
static void
put_leader(struct json *o, const char *text)
{
    const struct json_array *members = ctl_get_array(o, "members");
    char *leader = value_of(text, "Leader");
    const char *address = NULL;

    for (size_t i = 0; leader && i < members->n; i++) {
        const struct json *member = members->elems[i];

        if (ctl_get_bool(member, "self") ? !strcmp(leader, "self")
                                         : !strcmp(leader, ctl_get_string(member, "member"))) {
            address = ctl_get_string(member, "address");
        }
    }
    ctl_put_string_or_null(o, "leader", address);
    free(leader);
}

/* The answer to cluster/status as JSON. */
static struct json *
parse_status(const char *text)
{
    struct json *o = json_object_create();
    char *term = value_of(text, "Term"), *log = value_of(text, "Log");
    const char *next = log ? strchr(log, ' ') : NULL;
    int64_t index = next ? strtoll(next, NULL, 10) - 1 : 0;

    put_value(o, "status", text, "Status");
    put_value(o, "role", text, "Role");
    put_number(o, "term", term);
    ctl_put_int_or_null(o, "index", next ? &index : NULL);
    put_value(o, "address", text, "Address");
    put_value(o, "server", text, "Server ID");
    put_value(o, "cluster", text, "Cluster ID");
    size_t n_reached = put_members(o, text);
    put_leader(o, text);
    int64_t n_members = (int64_t) ctl_get(o, "members")->array.n, majority = n_members / 2 + 1;
    ctl_put_int(o, "reached", (int64_t) n_reached);
    ctl_put_int_or_null(o, "majority", n_members ? &majority : NULL); /* not yet, while it joins. */
    free(term);
    free(log);
    return o;
}

/* cluster/status of a server: as ctl_control_run(), but who is out, and forgets the cluster some time
 * later, refuses already. */
static enum ctl_exit
ask_cluster(const struct ctl *ctl, const char *control, char **answerp)
{
    enum ctl_exit result = ctl_control_run(ctl, control, "cluster/status",
                                           (const char *[]){"rocecast", NULL}, answerp);

    return result == CTL_OK && strstr(*answerp, "\nStatus: left cluster") ? CTL_REFUSED : result;
}

struct json *
registry_cluster_status(const struct ctl *ctl, const char *control)
{
    char *answer;
    enum ctl_exit result = ask_cluster(ctl, control, &answer);

    if (result == CTL_UNAVAILABLE) {
        ctl_fail(CTL_UNAVAILABLE, "%s", answer);
    }
    if (result != CTL_OK) { /* it does not know the command, or the database. */
        ctl_refuse(ctl, "%s: it is no server of a cluster", control);
    }
    struct json *status = parse_status(answer);
    free(answer);
    return status;
}

bool
registry_has_left(const struct ctl *ctl, const char *control, char **whyp)
{
    char *answer;
    enum ctl_exit result = ask_cluster(ctl, control, &answer);

    *whyp = result == CTL_UNAVAILABLE ? xstrdup(answer) : NULL;
    free(answer);
    return result == CTL_REFUSED;
}

/* The leader hears from each member several times a second.  One that cannot write its log, since its
 * disk is full, stays connected, and says of itself that all is well, but it does not answer. */
static bool
is_silent(const struct json *status, const struct json *member)
{
    const struct json *last = ctl_get(member, "last_message_ms");

    return !strcmp(ctl_get_string(status, "role"), "leader") && !ctl_get_bool(member, "self")
           && last->type == JSON_INTEGER && json_integer(last) > SILENT_MSEC;
}

/* Says which members have fallen out, as far as the server knows.  True: there are any. */
static bool
warn_of_members(const char *control, const struct json *status)
{
    const struct json_array *members = ctl_get_array(status, "members");
    bool any = false;

    for (size_t i = 0; i < members->n; i++) {
        const struct json *member = members->elems[i];
        const char *address = ctl_get_string(member, "address");

        if (!ctl_get_bool(member, "connected")) {
            ctl_warn("%s: member %s is not reached", control, address);
        } else if (is_silent(status, member)) {
            ctl_warn("%s: member %s does not answer: see its log, and whether its disk is full",
                     control, address);
        } else {
            continue;
        }
        any = true;
    }
    return any;
}

static void
show_cluster(struct ctl *ctl)
{
    static const char *const keys[] = {"status",   "role",      "leader",      "term",
                                       "index",    "address",   "server",      "cluster",
                                       "majority", "reached",   "members",     "member",
                                       "self",     "connected", "match_index", "last_message_ms",
                                       NULL};
    char *control = registry_control(ctl);
    struct json *status = registry_cluster_status(ctl, control);
    bool has_leader = ctl_get(status, "leader")->type != JSON_NULL;
    bool failed = !strcmp(ctl_get_string(status, "status"), "failed");
    bool partial = warn_of_members(control, status);

    ctl_print(ctl, status, keys);
    if (failed) {
        ctl_warn("%s: the server has failed: see its log, and whether its disk is full", control);
    } else if (!has_leader) {
        ctl_warn("%s: the cluster has no leader", control);
    }
    if (failed || !has_leader) {
        exit(fflush(stdout) ? CTL_PARTIAL : CTL_UNAVAILABLE);
    }
    free(control);
    ctl_finish(partial);
}

void
registry_status(struct ctl *ctl)
{
    if (ctl->argc) {
        show_cluster(ctl);
    } else {
        show_remotes(ctl);
    }
}
