/* SPDX-License-Identifier: Apache-2.0
 *
 * castctl registry restore: makes the registry what a backup says, in one transaction.
 *
 * Rows keep their UUIDs, by which agents and castd know them: a tree whose row stays keeps its state
 * in the data path.  (`ovsdb-client restore` makes all rows anew.)  A row that both have is updated,
 * one that only the backup has is inserted with its UUID, one that only the registry has is deleted.
 * The transaction waits for what was read to be the same still, and is made again if it is not.
 *
 * Three kinds of columns are not simply the backup's:
 *
 *   - Counters never go back: what they have counted may be known to somebody.
 *   - Generations are later than what both have, so that agents and castd look at the rows again.
 *   - What agents report of rows that stay, stays: it is true now.  Of a tree that is there only in the
 *     backup, nothing is known to have gone down, unless one of its epoch has started in the registry.
 */
#include <config.h>

#include "ctl/castctl/registry.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/castctl/server.h"
#include "ctl/castctl/tool.h"
#include "ctl/registry/schema.h"
#include "openvswitch/shash.h"
#include "sset.h"
#include "timeval.h"
#include "util.h"

struct column {
    const char *table, *column;
};

/* Numbers that are given once, and answers to them. */
static const struct column counters[] = {
    {"Global", "nb_cfg"},          {"Global", "agents_cfg"}, {"Global", "next_proxy"},
    {"Global", "next_connection"}, {"Group", "next_branch"}, {"Group", "generation"},
};

/* What an agent reports. */
static const struct column reports[] = {
    {"Node", "nb_cfg"},        {"Node", "state"},           {"Node", "control"},
    {"Tree_Node", "started"},  {"Tree_Node", "blank"},      {"Tree_Node", "joined"},
    {"Tree_Node", "answered"}, {"Tree_Node", "silent"},     {"Tree_Node", "found"},
    {"Tree_Node", "lost"},     {"Tree_Node", "lost_psn"},   {"Tree_Node", "slow"},
    {"Tree_Node", "rate"},     {"Tree_Node", "rate_cause"}, {"Tree_Node", "rate_node"},
    {"Tree_Node", "messages"},
};

static bool
is_one_of(const struct column *columns, size_t n, const char *table, const char *column)
{
    for (size_t i = 0; i < n; i++) {
        if (!strcmp(columns[i].table, table) && !strcmp(columns[i].column, column)) {
            return true;
        }
    }
    return false;
}

/* All rows, by table and UUID. */
struct content {
    struct shash tables; /* of struct shash, of struct json: the row without UUID and version. */
};

/*
 * Reading.
 */

/* ["rocecast", select all rows of each of these tables]. */
static struct json *
select_all(const struct svec *tables)
{
    struct json *params = json_array_create_1(json_string_create("rocecast"));

    for (size_t i = 0; i < tables->n; i++) {
        struct json *op = ctl_add_object(params);

        json_object_put_string(op, "op", "select");
        json_object_put_string(op, "table", tables->names[i]);
        json_object_put(op, "where", json_array_create_empty());
    }
    return params;
}

/* The UUID in ["uuid", UUID]; NULL: it is none. */
static const char *
uuid_text(const struct json *value)
{
    return value && value->type == JSON_ARRAY && value->array.n == 2
                   && value->array.elems[0]->type == JSON_STRING
                   && value->array.elems[1]->type == JSON_STRING
                   && !strcmp(json_string(value->array.elems[0]), "uuid")
               ? json_string(value->array.elems[1])
               : NULL;
}

/* Takes the rows of one table.  False: there are none, but an error. */
static bool
take_table(const struct json *result, struct shash *rows)
{
    const struct json *array = result->type == JSON_OBJECT ? ctl_get(result, "rows") : NULL;

    for (size_t i = 0; array && array->type == JSON_ARRAY && i < array->array.n; i++) {
        struct json *row = json_deep_clone(array->array.elems[i]);
        const char *uuid = uuid_text(ctl_get(row, "_uuid"));

        if (uuid) {
            shash_add(rows, uuid, row);
            shash_find_and_delete(json_object(row), "_version");
        }
    }
    return array && array->type == JSON_ARRAY;
}

/* Takes the answer to select_all().  False: it is none. */
static bool
take_content(const struct json *answer, const struct svec *tables, struct content *content)
{
    shash_init(&content->tables);
    if (answer->type != JSON_ARRAY || answer->array.n < tables->n) {
        return false;
    }
    for (size_t i = 0; i < tables->n; i++) {
        struct shash *rows = xmalloc(sizeof *rows);

        shash_init(rows);
        shash_add(&content->tables, tables->names[i], rows);
        if (!take_table(answer->array.elems[i], rows)) {
            return false;
        }
    }
    return true;
}

static void
content_uninit(struct content *content)
{
    struct shash_node *table, *row;

    SHASH_FOR_EACH (table, &content->tables) {
        struct shash *rows = table->data;

        SHASH_FOR_EACH (row, rows) {
            json_destroy(row->data);
        }
        shash_destroy(rows);
    }
    shash_destroy_free_data(&content->tables);
}

static struct shash *
rows_of(const struct content *content, const char *table)
{
    return shash_find_data(&content->tables, table);
}

/* The only row of a table; NULL: there is none. */
static struct json *
first_row(const struct content *content, const char *table)
{
    const struct shash_node *node = shash_first(rows_of(content, table));

    return node ? node->data : NULL;
}

/* The tables of this version's schema. */
static struct svec
table_names(const struct ctl *ctl)
{
    char *file = registry_schema(ctl);
    struct json *schema = json_from_file(file);
    const struct json *tables = schema->type == JSON_OBJECT ? ctl_get(schema, "tables") : NULL;
    struct svec names = SVEC_EMPTY_INITIALIZER;
    struct shash_node *node;

    if (!tables || tables->type != JSON_OBJECT) {
        ctl_refuse(ctl, "%s: it is no schema", file);
    }
    SHASH_FOR_EACH (node, json_object(tables)) {
        svec_add(&names, node->name);
    }
    json_destroy(schema);
    free(file);
    return names;
}

/* What a database, 'copy' of 'file', has.  Refuses one that is torn. */
static void
read_copy(const struct ctl *ctl, const char *file, const char *copy, const struct svec *tables,
          struct content *content)
{
    struct json *query = select_all(tables);
    char *words = json_to_string(query, 0);
    char *text = registry_run_tool(ctl, file, tool_ovsdb_tool("query", copy, words, NULL));
    struct json *answer = json_from_string(text);

    if (!take_content(answer, tables, content)) {
        ctl_refuse(ctl, "%s: it cannot be read: %s", file, text);
    }
    if (!first_row(content, "Global")) {
        ctl_refuse(ctl, "%s: it is a registry without content", file);
    }
    json_destroy(answer);
    json_destroy(query);
    free(words);
    free(text);
}

void
registry_check_whole(const struct ctl *ctl, const char *file, const char *copy)
{
    struct svec tables = table_names(ctl);
    struct content content;

    read_copy(ctl, file, copy, &tables, &content);
    content_uninit(&content);
    svec_destroy(&tables);
}

/* What the registry has now. */
static void
read_registry(const struct ctl *ctl, const struct server *leader, const struct svec *tables,
              struct content *content)
{
    struct json *answer;
    char *why;
    enum ctl_exit result = server_call(ctl, leader, "transact", select_all(tables), &answer, &why);

    if (result != CTL_OK) {
        ctl_fail(result, "registry %s: %s", leader->remote, why);
    }
    if (!take_content(answer, tables, content)) {
        ctl_fail(CTL_REFUSED, "registry %s: it cannot be read: %s", leader->remote,
                 json_to_string(answer, 0));
    }
    json_destroy(answer);
}

/*
 * What is to be there.
 */

static int64_t
get_integer(const struct json *row, const char *column)
{
    const struct json *value = row ? ctl_get(row, column) : NULL;

    return value && value->type == JSON_INTEGER ? json_integer(value) : 0;
}

static void
put_integer(struct json *row, const char *column, int64_t value)
{
    json_object_put(row, column, json_integer_create(value));
}

/* One more than in both. */
static void
put_next(struct json *row, const struct json *now, const char *column)
{
    put_integer(row, column, MAX(get_integer(row, column), get_integer(now, column)) + 1);
}

/* Makes the columns of a row that both have what they should be, where that is not the backup's. */
static void
keep_columns(const char *table, struct json *row, const struct json *now)
{
    struct shash_node *node;

    SHASH_FOR_EACH (node, json_object(now)) {
        const char *column = node->name;

        if (is_one_of(reports, ARRAY_SIZE(reports), table, column)) {
            json_object_put(row, column, json_deep_clone(node->data));
        } else if (is_one_of(counters, ARRAY_SIZE(counters), table, column)) {
            put_integer(row, column, MAX(get_integer(row, column), get_integer(now, column)));
        }
    }
}

static void
keep_all_columns(struct content *backup, const struct content *now)
{
    struct shash_node *table, *row;

    SHASH_FOR_EACH (table, &backup->tables) {
        SHASH_FOR_EACH (row, (struct shash *) table->data) {
            const struct json *its = shash_find_data(rows_of(now, table->name), row->name);

            if (its) {
                keep_columns(table->name, row->data, its);
            }
        }
    }
}

/* The only row of Global may have been made anew since the backup. */
static void
count_on_global(struct content *backup, const struct content *now)
{
    struct json *row = first_row(backup, "Global");
    const struct json *its = first_row(now, "Global");

    if (its) {
        keep_columns("Global", row, its);
    }
    put_next(row, its, "next_cfg");
}

/* What an epoch of a group is known by, malloc'd. */
static char *
epoch_of(const struct json *tree)
{
    return xasprintf("%s %" PRId64, ctl_get_string(tree, "proxy"), get_integer(tree, "epoch"));
}

/* The epochs that have a tree, at whatever node, down which a packet has gone. */
static void
find_started(const struct content *now, struct sset *started)
{
    struct shash_node *row;

    SHASH_FOR_EACH (row, rows_of(now, "Tree_Node")) {
        if (ctl_get_bool(row->data, "started")) {
            char *epoch = epoch_of(row->data);

            sset_add(started, epoch);
            free(epoch);
        }
    }
}

/* Of a node's tree, in the generation in which it is applied. */
static void
renew_tree(const struct content *now, const struct sset *started, const char *uuid,
           struct json *tree, int64_t generation)
{
    const struct json *its = shash_find_data(rows_of(now, "Tree_Node"), uuid);
    char *epoch = epoch_of(tree);

    if (!its && sset_contains(started, epoch)) {
        json_object_put(tree, "started", json_boolean_create(true));
    }
    if (!its || !json_equal(its, tree)) {
        put_integer(tree, "generation", generation);
    }
    free(epoch);
}

/* A value that is a set, or stands for itself. */
static size_t
set_size(const struct json *value)
{
    return uuid_text(value) ? 1
           : value && value->type == JSON_ARRAY && value->array.n == 2
               ? value->array.elems[1]->array.n
               : 0;
}

static const struct json *
set_element(const struct json *value, size_t i)
{
    return uuid_text(value) ? value : value->array.elems[1]->array.elems[i];
}

static void
renew_node(const struct content *now, const char *uuid, struct json *node)
{
    const struct json *its = shash_find_data(rows_of(now, "Node"), uuid);

    put_next(node, its, "cfg");
    if (!its) { /* nobody has applied anything. */
        put_integer(node, "nb_cfg", 0);
    }
}

/* Does the node list the tree, whose row does not say whose it is? */
static bool
lists_tree(const struct json *node, const char *uuid)
{
    const struct json *trees = ctl_get(node, "trees");

    for (size_t i = 0; i < set_size(trees); i++) {
        const char *tree = uuid_text(set_element(trees, i));

        if (tree && !strcmp(tree, uuid)) {
            return true;
        }
    }
    return false;
}

static const struct json *
node_of_tree(const struct content *backup, const char *uuid, const struct json *tree)
{
    const char *name = ctl_get_string(tree, "node");
    struct shash_node *row;

    SHASH_FOR_EACH (row, rows_of(backup, "Node")) {
        if (name[0] ? !strcmp(name, ctl_get_string(row->data, "name"))
                    : lists_tree(row->data, uuid)) {
            return row->data;
        }
    }
    return NULL;
}

/* Makes of what the backup has what the registry is to have. */
static void
renew(struct content *backup, const struct content *now)
{
    struct sset started = SSET_INITIALIZER(&started);
    struct shash_node *row;

    find_started(now, &started);
    keep_all_columns(backup, now);
    count_on_global(backup, now);
    SHASH_FOR_EACH (row, rows_of(backup, "Node")) {
        renew_node(now, row->name, row->data);
    }
    SHASH_FOR_EACH (row, rows_of(backup, "Tree_Node")) {
        const struct json *node = node_of_tree(backup, row->name, row->data);

        if (node) {
            renew_tree(now, &started, row->name, row->data, get_integer(node, "cfg"));
        }
    }
    sset_destroy(&started);
}

/*
 * The transaction.
 */

static struct json *
add_op(struct json *params, const char *op, const char *table)
{
    struct json *o = ctl_add_object(params);

    json_object_put_string(o, "op", op);
    json_object_put_string(o, "table", table);
    return o;
}

static void
put_where_uuid(struct json *op, const char *uuid)
{
    struct json *value = json_array_create_2(json_string_create("uuid"), json_string_create(uuid));
    struct json *clause =
        json_array_create_3(json_string_create("_uuid"), json_string_create("=="), value);

    json_object_put(op, "where", json_array_create_1(clause));
}

/* These columns of a table are in all rows as they were read. */
static void
add_wait(struct json *params, const struct content *now, const char *table,
         const char *const columns[])
{
    struct json *op = add_op(params, "wait", table), *names = json_array_create_empty();
    struct json *rows = json_array_create_empty();
    struct shash_node *node;

    for (size_t i = 0; columns[i]; i++) {
        json_array_add(names, json_string_create(columns[i]));
    }
    SHASH_FOR_EACH (node, rows_of(now, table)) {
        struct json *row = ctl_add_object(rows);

        for (size_t i = 0; columns[i]; i++) {
            json_object_put(row, columns[i], json_deep_clone(ctl_get(node->data, columns[i])));
        }
    }
    put_integer(op, "timeout", 0);
    json_object_put(op, "where", json_array_create_empty());
    json_object_put(op, "columns", names);
    json_object_put_string(op, "until", "==");
    json_object_put(op, "rows", rows);
}

/* The columns in which 'row' differs from 'now', or all; without the UUID. */
static struct json *
changed_columns(const struct json *row, const struct json *now)
{
    struct json *changed = json_object_create();
    struct shash_node *node;

    SHASH_FOR_EACH (node, json_object(row)) {
        if (strcmp(node->name, "_uuid")
            && (!now || !json_equal(node->data, ctl_get(now, node->name)))) {
            json_object_put(changed, node->name, json_deep_clone(node->data));
        }
    }
    return changed;
}

static void
add_row(struct json *params, const char *table, const char *uuid, const struct json *row,
        const struct json *now)
{
    struct json *columns = changed_columns(row, now), *op;

    if (!now) {
        op = add_op(params, "insert", table);
        json_object_put_string(op, "uuid", uuid);
    } else if (!shash_is_empty(json_object(columns))) {
        op = add_op(params, "update", table);
        put_where_uuid(op, uuid);
    } else {
        json_destroy(columns);
        return;
    }
    json_object_put(op, "row", columns);
}

static void
add_table(struct json *params, const char *table, const struct shash *rows, const struct shash *now)
{
    struct shash_node *row;

    SHASH_FOR_EACH (row, now) {
        if (!shash_find(rows, row->name)) {
            put_where_uuid(add_op(params, "delete", table), row->name);
        }
    }
    SHASH_FOR_EACH (row, rows) {
        add_row(params, table, row->name, row->data, shash_find_data(now, row->name));
    }
}

static struct json *
transaction(const struct content *backup, const struct content *now)
{
    struct json *params = json_array_create_1(json_string_create("rocecast"));
    struct shash_node *table;
    struct json *comment;

    /* All requests of clients and all that castd tells nodes change these. */
    add_wait(params, now, "Global", (const char *[]){"next_cfg", NULL});
    add_wait(params, now, "Node", (const char *[]){"name", "cfg", NULL});
    SHASH_FOR_EACH (table, &backup->tables) {
        add_table(params, table->name, table->data, rows_of(now, table->name));
    }
    comment = ctl_add_object(params);
    json_object_put_string(comment, "op", "comment");
    json_object_put_string(comment, "comment", "castctl: registry restore");
    return params;
}

/* The first error in an answer to a transaction; NULL: it is done. */
static const struct json *
first_error(const struct json *answer)
{
    for (size_t i = 0; answer->type == JSON_ARRAY && i < answer->array.n; i++) {
        const struct json *result = answer->array.elems[i];

        if (result->type == JSON_OBJECT && ctl_get(result, "error")) {
            return result;
        }
    }
    return NULL;
}

/* One attempt.  False: the registry has changed meanwhile. */
static bool
try_restore(const struct ctl *ctl, const struct server *leader, const struct svec *tables,
            const char *copy)
{
    const char *file = ctl->argv[0];
    struct content backup, now;
    struct json *answer;
    char *why;

    read_copy(ctl, file, copy, tables, &backup);
    read_registry(ctl, leader, tables, &now);
    renew(&backup, &now);
    switch (server_call(ctl, leader, "transact", transaction(&backup, &now), &answer, &why)) {
    case CTL_OK: break;
    case CTL_UNAVAILABLE:
        ctl_fail(CTL_UNAVAILABLE, "registry %s: %s: %s may have been restored or not",
                 leader->remote, why, file);
    default: ctl_refuse(ctl, "the registry refused it: %s", why);
    }
    const struct json *error = first_error(answer);
    bool again = error && !strcmp(ctl_get_string(error, "error"), "timed out");
    if (error && !again) {
        ctl_refuse(ctl, "the registry refused it: %s", json_to_string(error, 0));
    }
    json_destroy(answer);
    content_uninit(&backup);
    content_uninit(&now);
    return !error;
}

/* Refuses a registry with another schema. */
static void
check_version(const struct ctl *ctl, const struct server *leader)
{
    struct json *schema;
    char *ours = registry_schema_version(ctl), *why;
    struct json *params = json_array_create_1(json_string_create("rocecast"));
    enum ctl_exit result = server_call(ctl, leader, "get_schema", params, &schema, &why);

    if (result != CTL_OK) {
        ctl_fail(result, "registry %s: %s", leader->remote, why);
    }
    const char *its = ctl_get_string(schema, "version");
    if (strcmp(its, ours)) {
        ctl_refuse(
            ctl,
            "registry %s: its schema has version %s, that of this castctl %s (" REGISTRY_SCHEMA_FIX
            ")",
            leader->remote, its, ours);
    }
    json_destroy(schema);
    free(ours);
}

void
registry_restore(struct ctl *ctl)
{
    const char *tmp = getenv("TMPDIR");
    struct server leader;

    ctl_check_db(ctl);
    tmp = tmp && tmp[0] ? tmp : "/tmp";
    const char *folder = tool_scratch(tmp);
    if (!folder) {
        ctl_refuse(ctl, "%s: %s", tmp, ovs_strerror(errno));
    }
    char *copy = xasprintf("%s/copy", folder);
    struct svec tables = table_names(ctl);
    registry_copy_database(ctl, ctl->argv[0], copy);
    registry_check_whole(ctl, ctl->argv[0], copy);
    server_find_leader(ctl, &leader);
    check_version(ctl, &leader);
    while (!try_restore(ctl, &leader, &tables, copy)) {
        if (time_msec() >= ctl->deadline) {
            ctl_fail(CTL_UNAVAILABLE, "%s: others kept changing the registry for %d s",
                     ctl->command->name, ctl->timeout);
        }
    }
    server_uninit(&leader);
    svec_destroy(&tables);
    free(copy);
}
