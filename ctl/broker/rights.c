/* SPDX-License-Identifier: Apache-2.0
 *
 * What a client of the registry may ask.
 *
 * Tables of rights come first; everything below asks them.  What they do not name is refused.
 *
 * Writing.  A client may name a row by its UUID only, as the client library does.  For each row that
 * it changes two operations go in front of its own: "select" says whether there is such a row,
 * "wait" fails the transaction if it is not the client's.  A row that has gone is no offence: the
 * client is told "timed out", as by any other race, and looks again.
 *
 * Reading.  Columns that nobody of the role may read are refused.  Rows that a host may not see are
 * kept away by a condition in its request, and columns of others' rows are taken out of answers.
 */
#include <config.h>

#include "ctl/broker/rights.h"

#include <stdlib.h>
#include <string.h>

#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "jsonrpc.h"
#include "util.h"

#define DATABASE     "rocecast"
#define SERVER       "_Server" /* with SERVER_TABLE only: which databases there are, and the leader. */
#define SERVER_TABLE "Database"
#define ZERO_TXN_ID  "00000000-0000-0000-0000-000000000000"

/*
 * Rights.
 */

static const char *const role_names[] = {
    [CLIENT_AGENT] = "agent",
    [CLIENT_HOST] = "host",
    [CLIENT_OPERATOR] = "operator",
    [CLIENT_CONTROLLER] = "controller",
};

const char *
client_role_name(enum client_role role)
{
    return role_names[role];
}

/* Names are separated by blanks, and have one before and one behind. */
struct write_right {
    enum client_role role;
    const char *table;
    const char *owner;   /* column with the client's name. */
    const char *columns; /* that may be changed. */
    const char *inserts; /* that may be set in a new row, besides; NULL: no rows are made. */
    bool deletes;
};

static const struct write_right write_rights[] = {
    {CLIENT_AGENT, "Node", "name", " nb_cfg state control finds_rows ", NULL, false},
    {CLIENT_AGENT, "Tree_Node", "node",
     " started blank joined answered silent found lost lost_psn slow rate rate_cause rate_node messages life ",
     NULL, false},
    {CLIENT_AGENT, "Probe", "node", " state since heard ", NULL, false},
    {CLIENT_AGENT, "Connection", "node",
     " proxy address port state cause remote_id transaction peer_qpn peer_psn peer_mtu peer_reason peer_data ",
     " node number role ", false},
    {CLIENT_HOST, "Source", "host", " qpn epoch connection ", " group host ", true},
    {CLIENT_HOST, "Member", "host",
     " qpn rkey va len psn epoch connection want branch new_qpn new_rkey new_va new_len new_psn new_keep refused"
     " keep designated_qpn ",
     " group host ", true},
    {CLIENT_HOST, "Listener", "host", " port private_data status ", " group host ", true},
};

/* Columns that are read by castd alone, and by the agent that they are for. */
static const struct {
    const char *table, *column;
    const char *owner; /* column with the name of the node that may read it; NULL: none may. */
} secrets[] = {
    {"Key", "secret", NULL},
    {"Node_Key", "secret", "node"},
};

/* What a host may read; of other tables it sees no rows. */
static const struct read_right {
    const char *table;
    const char *own_rows;    /* only those with its name in this column; NULL: all. */
    const char *own_columns; /* of other hosts' rows it does not see these; NULL: it sees all. */
} host_reads[] = {
    {"Global", NULL, NULL},
    {"Group", NULL, NULL},
    {"Source", NULL, NULL},
    {"Listener", NULL, NULL},
    {"Host", "name", NULL},
    {"Member", NULL,
     " qpn rkey va psn new_qpn new_rkey new_va new_psn first_psn lost_psn designated_qpn "},
};
/* By which column a row of a table with 'own_columns' is a host's own. */
#define OWN_COLUMN "host"

static const struct write_right *
find_write_right(const struct client *c, const char *table)
{
    for (size_t i = 0; i < ARRAY_SIZE(write_rights); i++) {
        if (write_rights[i].role == c->role && !strcmp(write_rights[i].table, table)) {
            return &write_rights[i];
        }
    }
    return NULL;
}

static const struct read_right *
find_read_right(const char *table)
{
    for (size_t i = 0; i < ARRAY_SIZE(host_reads); i++) {
        if (!strcmp(host_reads[i].table, table)) {
            return &host_reads[i];
        }
    }
    return NULL;
}

static bool
has_word(const char *words, const char *word)
{
    char *blanks = xasprintf(" %s ", word);
    bool found = words && !strchr(word, ' ') && strstr(words, blanks);

    free(blanks);
    return found;
}

/*
 * JSON.
 */

static const char *
string_of(const struct json *json)
{
    return json && json->type == JSON_STRING ? json_string(json) : NULL;
}

static const struct json *
member_of(const struct json *object, const char *name)
{
    return object && object->type == JSON_OBJECT ? shash_find_data(json_object(object), name)
                                                 : NULL;
}

static size_t
n_elements(const struct json *array)
{
    return array && array->type == JSON_ARRAY ? array->array.n : 0;
}

static const struct json *
element(const struct json *array, size_t i)
{
    return i < n_elements(array) ? array->array.elems[i] : NULL;
}

static bool
is_string(const struct json *json, const char *s)
{
    return string_of(json) && !strcmp(json_string(json), s);
}

/* ["a", "b", value] */
static struct json *
clause(const char *column, const char *function, struct json *value)
{
    return json_array_create_3(json_string_create(column), json_string_create(function), value);
}

/*
 * Writing.
 */

/* A transaction that is looked at. */
struct check {
    const struct client *client;
    struct json *checks; /* operations to go in front. */
    struct sset rows;    /* tables and UUIDs that they are about. */
};

/* The UUID of the one row that 'where' names; "" if that is made in this transaction, whose insertion
 * has been looked at.  NULL: it names rows in another way. */
static const char *
row_of(const struct json *where)
{
    const struct json *only = n_elements(where) == 1 ? element(where, 0) : NULL;
    const struct json *value = element(only, 2);

    if (n_elements(only) != 3 || !is_string(element(only, 0), "_uuid")
        || !is_string(element(only, 1), "==") || n_elements(value) != 2
        || !string_of(element(value, 1))) {
        return NULL;
    }
    return is_string(element(value, 0), "uuid")         ? json_string(element(value, 1))
           : is_string(element(value, 0), "named-uuid") ? ""
                                                        : NULL;
}

static struct json *
uuid_json(const char *uuid)
{
    return json_array_create_2(json_string_create("uuid"), json_string_create(uuid));
}

static struct json *
operation(const char *op, const char *table, struct json *where, const char *column)
{
    struct json *o = json_object_create();

    json_object_put_string(o, "op", op);
    json_object_put_string(o, "table", table);
    json_object_put(o, "where", where);
    json_object_put(o, "columns", json_array_create_1(json_string_create(column)));
    return o;
}

/* Has the registry check that the row is the client's. */
static void
add_checks(struct check *check, const struct write_right *right, const char *uuid)
{
    struct json *is_row = json_array_create_1(clause("_uuid", "==", uuid_json(uuid)));
    struct json *row = json_object_create();

    char *key = xasprintf("%s %s", right->table, uuid);
    bool is_new = sset_add(&check->rows, key);

    free(key);
    if (!is_new) {
        json_destroy(is_row);
        json_destroy(row);
        return;
    }
    json_array_add(check->checks, operation("select", right->table, json_clone(is_row), "_uuid"));
    struct json *wait = operation("wait", right->table, is_row, right->owner);
    json_object_put_string(row, right->owner, check->client->name);
    json_object_put(wait, "timeout", json_integer_create(0));
    json_object_put_string(wait, "until", "==");
    json_object_put(wait, "rows", json_array_create_1(row));
    json_array_add(check->checks, wait);
}

static char *
check_row_columns(const struct write_right *right, const struct json *row, bool inserts)
{
    struct shash_node *node;

    if (!row || row->type != JSON_OBJECT) {
        return xstrdup("an operation that is none");
    }
    SHASH_FOR_EACH (node, json_object(row)) {
        if (!has_word(right->columns, node->name)
            && !(inserts && has_word(right->inserts, node->name))) {
            return xasprintf("writing column %s of table %s", node->name, right->table);
        }
    }
    return NULL;
}

static char *
check_insert(const struct check *check, const struct write_right *right, const struct json *op)
{
    const struct json *row = member_of(op, "row");

    if (!right->inserts) {
        return xasprintf("making a row of table %s", right->table);
    }
    /* It could be that of another's row in another table. */
    if (member_of(op, "uuid")) {
        return xasprintf("choosing the UUID of a row of table %s", right->table);
    }
    char *why = check_row_columns(right, row, true);
    if (!why && !is_string(member_of(row, right->owner), check->client->name)) {
        why = xasprintf("making another's row of table %s (%s)", right->table, right->owner);
    }
    return why;
}

static char *
check_mutations(const struct write_right *right, const struct json *mutations)
{
    for (size_t i = 0; i < n_elements(mutations); i++) {
        const char *column = string_of(element(element(mutations, i), 0));

        if (!column || !has_word(right->columns, column)) {
            return xasprintf("writing column %s of table %s", column ? column : "", right->table);
        }
    }
    return NULL;
}

/* Counting a transaction is all that a host may do to Global. */
static bool
is_count(const struct client *c, const char *op, const char *table, const struct json *json)
{
    const struct json *mutations = member_of(json, "mutations");
    const struct json *only = element(mutations, 0);

    return c->role == CLIENT_HOST && !strcmp(op, "mutate") && !strcmp(table, "Global")
           && n_elements(mutations) == 1 && is_string(element(only, 0), "next_cfg")
           && is_string(element(only, 1), "+=") && element(only, 2)
           && element(only, 2)->type == JSON_INTEGER && element(only, 2)->integer == 1;
}

static char *
check_write(struct check *check, const char *op, const char *table, const struct json *json)
{
    const struct write_right *right = find_write_right(check->client, table);

    if (is_count(check->client, op, table, json)) {
        return NULL;
    }
    if (!right) {
        return xasprintf("%s in table %s", op, table);
    }
    if (!strcmp(op, "insert")) {
        return check_insert(check, right, json);
    }
    char *why = !strcmp(op, "update")   ? check_row_columns(right, member_of(json, "row"), false)
                : !strcmp(op, "mutate") ? check_mutations(right, member_of(json, "mutations"))
                : right->deletes        ? NULL
                                        : xasprintf("deleting a row of table %s", table);
    const char *uuid = row_of(member_of(json, "where"));
    if (!why && !uuid) {
        why = xasprintf("%s in table %s without naming one row by its UUID", op, table);
    }
    if (!why && uuid && uuid[0]) {
        add_checks(check, right, uuid);
    }
    return why;
}

/*
 * Reading.
 */

/* May this role read the column, of rows of which nothing is known? */
static bool
may_read(const struct client *c, const char *table, const char *column)
{
    const struct read_right *right = find_read_right(table);

    for (size_t i = 0; i < ARRAY_SIZE(secrets); i++) {
        if (!strcmp(secrets[i].table, table) && !strcmp(secrets[i].column, column)) {
            return false;
        }
    }
    return c->role != CLIENT_HOST || (right && !has_word(right->own_columns, column));
}

static char *
unreadable(const char *table, const char *column)
{
    return xasprintf("reading column %s of table %s", column, table);
}

/* A condition must not tell what cannot be read. */
static char *
check_where(const struct client *c, const char *table, const struct json *where)
{
    for (size_t i = 0; i < n_elements(where); i++) {
        const struct json *column = element(element(where, i), 0);

        if (column && (!string_of(column) || !may_read(c, table, json_string(column)))) {
            return unreadable(table, string_of(column) ? json_string(column) : "");
        }
    }
    return NULL;
}

/* Of a select or wait.  Without 'columns' all are meant. */
static char *
check_read(const struct client *c, const char *table, const struct json *op)
{
    const struct json *columns = member_of(op, "columns");

    if (!columns || columns->type != JSON_ARRAY) {
        for (size_t i = 0; i < ARRAY_SIZE(secrets); i++) {
            if (!strcmp(secrets[i].table, table)) {
                return unreadable(table, secrets[i].column);
            }
        }
        return c->role == CLIENT_HOST ? xasprintf("reading all columns of table %s", table) : NULL;
    }
    for (size_t i = 0; i < n_elements(columns); i++) {
        const char *column = string_of(element(columns, i));

        if (!column || !may_read(c, table, column)) {
            return unreadable(table, column ? column : "");
        }
    }
    return NULL;
}

static char *
check_operation(struct check *check, const struct json *json)
{
    const char *op = string_of(member_of(json, "op")), *table = string_of(member_of(json, "table"));
    bool writes = op
                  && (!strcmp(op, "insert") || !strcmp(op, "update") || !strcmp(op, "mutate")
                      || !strcmp(op, "delete"));

    if (op
        && (!strcmp(op, "comment") || !strcmp(op, "assert") || !strcmp(op, "commit")
            || !strcmp(op, "abort"))) {
        return NULL;
    }
    if (!op || !table || !(writes || !strcmp(op, "select") || !strcmp(op, "wait"))) {
        return xasprintf("an operation that is none: %s", op ? op : "");
    }
    char *why = check_where(check->client, table, member_of(json, "where"));
    if (!why && !writes) {
        why = check_read(check->client, table, json);
    } else if (!why && check->client->role != CLIENT_OPERATOR) {
        why = check_write(check, op, table, json);
    }
    return why;
}

/* Puts the checks behind the database's name.  Takes their elements. */
static void
put_in_front(struct json *params, struct json *checks)
{
    size_t n = params->array.n + checks->array.n, n_before = 1;
    struct json **elems = xmalloc(n * sizeof *elems);

    elems[0] = params->array.elems[0];
    for (size_t i = 0; i < checks->array.n; i++) {
        elems[n_before++] = checks->array.elems[i];
    }
    for (size_t i = 1; i < params->array.n; i++) {
        elems[n_before++] = params->array.elems[i];
    }
    free(params->array.elems);
    params->array = (struct json_array){.n = n, .n_allocated = n, .elems = elems};
    checks->array.n = 0;
}

static char *
check_transact(const struct client *c, struct json *params, size_t *n_checks)
{
    struct check check = {.client = c, .checks = json_array_create_empty()};
    char *why = NULL;

    sset_init(&check.rows);
    for (size_t i = 1; !why && i < n_elements(params); i++) {
        why = check_operation(&check, element(params, i));
    }
    *n_checks = why ? 0 : check.checks->array.n;
    if (*n_checks) {
        put_in_front(params, check.checks);
    }
    json_destroy(check.checks);
    sset_destroy(&check.rows);
    return why;
}

/*
 * Monitors.
 */

/* Does 'where' let in only the client's own rows?  Its clauses are alternatives. */
static bool
lets_in_own(const struct client *c, const char *owner, const struct json *where)
{
    for (size_t i = 0; i < n_elements(where); i++) {
        const struct json *one = element(where, i);
        bool is_own = n_elements(one) == 3 && is_string(element(one, 0), owner)
                      && is_string(element(one, 1), "==") && is_string(element(one, 2), c->name);

        if (!is_own && one->type != JSON_FALSE) {
            return false;
        }
    }
    return n_elements(where) > 0;
}

/* A request for a secret is right if an agent asks for its own. */
static char *
check_secret(const struct client *c, const char *table, const char *column,
             const struct json *where)
{
    for (size_t i = 0; i < ARRAY_SIZE(secrets); i++) {
        bool is_it =
            !strcmp(secrets[i].table, table) && (!column || !strcmp(secrets[i].column, column));

        if (is_it
            && !(c->role == CLIENT_AGENT && secrets[i].owner
                 && lets_in_own(c, secrets[i].owner, where))) {
            return unreadable(table, secrets[i].column);
        }
    }
    return NULL;
}

/* A host gets no rows that it may not see.  True: its condition does not count any more. */
static bool
narrow(const struct client *c, const char *table, struct json *request)
{
    const struct read_right *right = find_read_right(table);

    if (c->role != CLIENT_HOST || (right && !right->own_rows)) {
        return false;
    }
    json_object_put(
        request, "where",
        json_array_create_1(right ? clause(right->own_rows, "==", json_string_create(c->name))
                                  : json_boolean_create(false)));
    return true;
}

/* Part of a monitor's request: columns of a table, and the condition for its rows. */
static char *
check_monitored(const struct client *c, const char *table, struct json *request, bool is_change)
{
    if (!request || request->type != JSON_OBJECT) {
        return xstrdup("a monitor that is none");
    }
    bool narrowed = narrow(c, table, request);
    const struct json *columns = member_of(request, "columns"),
                      *where = member_of(request, "where");
    bool is_list = columns && columns->type == JSON_ARRAY;
    char *why = narrowed ? NULL : check_where(c, table, where);

    /* A change of conditions comes without columns; only agents may have asked for a secret. */
    if (!why && (is_change ? c->role == CLIENT_AGENT : !is_list)) {
        why = check_secret(c, table, NULL, where);
    }
    for (size_t i = 0; !why && i < n_elements(columns); i++) {
        const char *column = string_of(element(columns, i));

        why = column ? check_secret(c, table, column, where) : xstrdup("a column that is none");
    }
    return why;
}

static char *
check_monitor(const struct client *c, struct json *params, bool is_change)
{
    const struct json *requests = element(params, 2);
    struct shash_node *node;

    if (!requests || requests->type != JSON_OBJECT) {
        return xstrdup("a monitor that is none");
    }
    SHASH_FOR_EACH (node, json_object(requests)) {
        struct json *table = node->data;
        char *why = NULL;

        if (is_change && !strcmp(node->name, SERVER_TABLE)) {
            continue; /* a change does not name its database. */
        }
        if (table->type != JSON_ARRAY) {
            why = check_monitored(c, node->name, table, is_change);
        }
        for (size_t i = 0; !why && i < n_elements(table); i++) {
            why = check_monitored(c, node->name, table->array.elems[i], is_change);
        }
        if (why) {
            return why;
        }
    }
    return NULL;
}

/* What a host has missed cannot be redacted without what it was told before: it gets all anew. */
static void
begin_anew(const struct client *c, struct json *params)
{
    if (c->role == CLIENT_HOST && n_elements(params) == 4) {
        json_destroy(params->array.elems[3]);
        params->array.elems[3] = json_string_create(ZERO_TXN_ID);
    }
}

/*
 * Requests.
 */

static char *
check_lock(const struct client *c, const struct json *params)
{
    const char *lock = string_of(element(params, 0));
    char *own = c->role == CLIENT_CONTROLLER ? xstrdup("rocecast_castd")
                : c->role == CLIENT_AGENT    ? xasprintf("rocecast_node_%s", c->name)
                                             : NULL;
    bool is_own = own && lock && !strcmp(lock, own);

    free(own);
    return is_own ? NULL : xasprintf("taking lock %s", lock ? lock : "");
}

static bool
is_one_of(const char *method, const char *const *methods)
{
    for (; *methods; methods++) {
        if (!strcmp(method, *methods)) {
            return true;
        }
    }
    return false;
}

char *
rights_check(const struct client *c, struct jsonrpc_msg *msg, size_t *n_checks)
{
    static const char *const harmless[] = {"echo",
                                           "list_dbs",
                                           "get_schema",
                                           "get_server_id",
                                           "monitor_cancel",
                                           "cancel",
                                           "unlock",
                                           "set_db_change_aware",
                                           NULL};
    const char *method = msg->method, *db = string_of(element(msg->params, 0));

    *n_checks = 0;
    if (is_one_of(method, harmless)) {
        return NULL;
    }
    if (!strcmp(method, "steal")) {
        return xasprintf("stealing lock %s", db ? db : "");
    }
    if (!strcmp(method, "lock")) {
        return check_lock(c, msg->params);
    }
    if (c->role == CLIENT_CONTROLLER) {
        return NULL;
    }
    if (!strcmp(method, "monitor_cond_change")) {
        return check_monitor(c, msg->params, true);
    }
    bool reads_server = db && !strcmp(db, SERVER);
    if (!reads_server && !is_string(element(msg->params, 0), DATABASE)) {
        return xasprintf("%s in database %s", method, db ? db : "");
    }
    if (!strcmp(method, "convert") && c->role == CLIENT_OPERATOR) {
        return NULL;
    }
    bool is_plain = !strcmp(method, "monitor");
    if (!strcmp(method, "transact")) {
        /* ovsdb-server itself lets nobody write there. */
        return reads_server ? NULL : check_transact(c, msg->params, n_checks);
    }
    if (!strcmp(method, "monitor_cond") || !strcmp(method, "monitor_cond_since")
        || (is_plain && (reads_server || c->role == CLIENT_OPERATOR))) {
        if (reads_server) {
            return NULL;
        }
        begin_anew(c, msg->params);
        return check_monitor(c, msg->params, false);
    }
    return xasprintf("%s", method);
}

/*
 * Replies.
 */

struct jsonrpc_msg *
rights_refusal(const struct jsonrpc_msg *request, const char *why)
{
    struct jsonrpc_msg *reply;

    if (!strcmp(request->method, "transact")) {
        reply = jsonrpc_create_reply(json_array_create_empty(), request->id);
        rights_refuse_reply(reply, why);
        return reply;
    }
    struct json *error = json_object_create();
    json_object_put_string(error, "error", "permission error");
    json_object_put_string(error, "details", why);
    return jsonrpc_create_error(error, request->id);
}

void
rights_refuse_reply(struct jsonrpc_msg *reply, const char *why)
{
    struct json *error = json_object_create();

    json_object_put_string(error, "error", "permission error");
    json_object_put_string(error, "details", why);
    json_destroy(reply->result);
    reply->result = json_array_create_1(error);
}

char *
rights_take_checks(struct jsonrpc_msg *reply, size_t n_checks)
{
    struct json *results = reply->result;

    if (!n_checks || reply->type != JSONRPC_REPLY || !results || results->type != JSON_ARRAY) {
        return NULL;
    }
    for (size_t i = 0; i < n_checks; i++) {
        const struct json *result = element(results, i);

        if (!member_of(result, "error")) {
            continue;
        }
        if (i % 2 && n_elements(member_of(element(results, i - 1), "rows"))) {
            return xstrdup("writing another's row");
        }
        /* The row has gone meanwhile, or its UUID is none. */
        struct json *error = json_clone(result);
        json_destroy(results);
        reply->result = json_array_create_1(error);
        return NULL;
    }
    size_t n = MIN(n_checks, results->array.n);
    for (size_t i = 0; i < n; i++) {
        json_destroy(results->array.elems[i]);
    }
    results->array.n -= n;
    memmove(results->array.elems, results->array.elems + n,
            results->array.n * sizeof *results->array.elems);
    return NULL;
}

/*
 * Redaction.
 */

static void
take_out(struct json *row, const char *columns)
{
    struct shash_node *node, *next;

    if (!row || row->type != JSON_OBJECT) {
        return;
    }
    SHASH_FOR_EACH_SAFE (node, next, json_object(row)) {
        if (has_word(columns, node->name)) {
            json_destroy(node->data);
            shash_delete(json_object(row), node);
        }
    }
}

/* 'changes' has what is new of one row: {"initial": ROW}, "insert", "modify" or "delete". */
static void
redact_row(const struct client *c, const struct read_right *right, const char *uuid,
           struct json *changes, struct sset *own)
{
    static const char *const whole[] = {"initial", "insert"};

    for (size_t i = 0; i < ARRAY_SIZE(whole); i++) {
        if (is_string(member_of(member_of(changes, whole[i]), OWN_COLUMN), c->name)) {
            sset_add(own, uuid);
        }
    }
    if (sset_contains(own, uuid)) {
        if (member_of(changes, "delete")) {
            sset_find_and_delete(own, uuid);
        }
        return;
    }
    struct shash_node *node;
    SHASH_FOR_EACH (node, json_object(changes)) {
        take_out(node->data, right->own_columns);
    }
}

static void
redact_updates(const struct client *c, struct json *updates, struct sset *own)
{
    for (size_t i = 0; i < ARRAY_SIZE(host_reads); i++) {
        const struct read_right *right = &host_reads[i];
        const struct json *rows = right->own_columns ? member_of(updates, right->table) : NULL;
        struct shash_node *node;

        if (!rows || rows->type != JSON_OBJECT) {
            continue;
        }
        SHASH_FOR_EACH (node, json_object(rows)) {
            struct json *changes = node->data;

            if (changes->type == JSON_OBJECT) {
                redact_row(c, right, node->name, changes, own);
            }
        }
    }
}

void
rights_redact(const struct client *c, struct jsonrpc_msg *msg, struct sset *own)
{
    if (c->role != CLIENT_HOST) {
        return;
    }
    if (msg->type == JSONRPC_NOTIFY && n_elements(msg->params)) {
        /* update2: the updates come last; update3 likewise. */
        redact_updates(c, msg->params->array.elems[msg->params->array.n - 1], own);
    } else if (msg->type == JSONRPC_REPLY && msg->result) {
        /* monitor_cond's reply is the updates, monitor_cond_since's has them at its end. */
        redact_updates(c,
                       n_elements(msg->result) ? msg->result->array.elems[msg->result->array.n - 1]
                                               : msg->result,
                       own);
    }
}
