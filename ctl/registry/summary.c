/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers about what the registry has, for metrics.
 *
 * Each table is gone through once, however many groups there are.
 */
#include <config.h>

#include "ctl/registry/summary.h"

#include <stdlib.h>

#include "ctl/registry/group-state.h"
#include "ctl/registry/rocecast-idl.h"
#include "openvswitch/hmap.h"
#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "simap.h"
#include "util.h"
#include "uuid.h"

static void
put_int(struct json *o, const char *key, int64_t value)
{
    json_object_put(o, key, json_integer_create(value));
}

/* A new object at the array's end. */
static struct json *
add(struct json *array)
{
    struct json *o = json_object_create();

    json_array_add(array, o);
    return o;
}

/*
 * How many rows are alike: an object for each combination of words that occurs.
 */
struct tally {
    struct shash objects; /* by the words. */
    struct json *array;
};

static void
tally_init(struct tally *t)
{
    shash_init(&t->objects);
    t->array = json_array_create_empty();
}

/* Counts a row with these words, of which there is one for each key. */
static void
tally_count(struct tally *t, const char *const keys[], const char *const words[], size_t n)
{
    struct json *o;
    char *name = xstrdup("");

    for (size_t i = 0; i < n; i++) {
        char *longer = xasprintf("%s%" PRIuSIZE ":%s", name, strlen(words[i]), words[i]);

        free(name);
        name = longer;
    }
    o = shash_find_data(&t->objects, name);
    if (!o) {
        o = add(t->array);
        for (size_t i = 0; i < n; i++) {
            json_object_put_string(o, keys[i], words[i]);
        }
        put_int(o, "n", 0);
        shash_add(&t->objects, name, o);
    }
    put_int(o, "n", json_integer(shash_find_data(json_object(o), "n")) + 1);
    free(name);
}

/* The array, which is the caller's from now on. */
static struct json *
tally_finish(struct tally *t)
{
    shash_destroy(&t->objects);
    return t->array;
}

/*
 * Groups with their members.
 */
struct group_numbers {
    struct hmap_node hmap_node; /* by the row's UUID. */
    const struct rrec_group *row;
    int64_t n_active, n_lacking;
};

static struct group_numbers *
find_group(const struct hmap *groups, const struct rrec_group *row)
{
    struct group_numbers *g;

    HMAP_FOR_EACH_WITH_HASH (g, hmap_node, uuid_hash(&row->header_.uuid), groups) {
        if (g->row == row) {
            return g;
        }
    }
    return NULL;
}

/* Puts "members" and "states", and counts for each group. */
static void
put_members(struct json *summary, const struct ovsdb_idl *idl, const struct hmap *groups)
{
    static const char *const keys[] = {"group", "state"};
    struct json *members = json_array_create_empty();
    const struct rrec_member *m;
    struct tally states;

    tally_init(&states);
    RREC_MEMBER_FOR_EACH (m, idl) {
        struct group_numbers *g = m->group ? find_group(groups, m->group) : NULL;

        if (!g) {
            continue;
        }
        struct json *o = add(members);
        const char *state = m->state[0] ? m->state : "joining";

        json_object_put_string(o, "group", m->group->name);
        json_object_put_string(o, "member", m->host);
        json_object_put(o, "active", json_boolean_create(member_is_active(m)));
        g->n_active += member_is_active(m);
        g->n_lacking += member_is_lacking(m);
        tally_count(&states, keys, (const char *const[]){m->group->name, state}, 2);
    }
    json_object_put(summary, "members", members);
    json_object_put(summary, "states", tally_finish(&states));
}

static void
put_groups(struct json *summary, const struct ovsdb_idl *idl)
{
    struct json *array = json_array_create_empty();
    struct hmap groups = HMAP_INITIALIZER(&groups);
    const struct rrec_group *row;
    struct group_numbers *g;

    RREC_GROUP_FOR_EACH (row, idl) {
        g = xzalloc(sizeof *g);
        g->row = row;
        hmap_insert(&groups, &g->hmap_node, uuid_hash(&row->header_.uuid));
    }
    put_members(summary, idl, &groups);
    HMAP_FOR_EACH_POP (g, hmap_node, &groups) {
        struct json *o = add(array);

        json_object_put_string(o, "group", g->row->name);
        json_object_put_string(o, "state",
                               g->row->state[0] ? g->row->state : group_state_name(GROUP_PENDING));
        put_int(o, "epoch", g->row->epoch);
        put_int(o, "active_members", g->n_active);
        put_int(o, "wanted_members", g->n_active + g->n_lacking);
        free(g);
    }
    hmap_destroy(&groups);
    json_object_put(summary, "groups", array);
}

static void
put_nodes(struct json *summary, const struct ovsdb_idl *idl)
{
    struct json *array = json_array_create_empty();
    struct simap n_trees = SIMAP_INITIALIZER(&n_trees);
    const struct rrec_tree_node *tree;
    const struct rrec_node *node;

    RREC_TREE_NODE_FOR_EACH (tree, idl) {
        simap_increase(&n_trees, tree->node, 1);
    }
    RREC_NODE_FOR_EACH (node, idl) {
        struct json *o = add(array);

        json_object_put_string(o, "node", node->name);
        json_object_put_string(o, "role", node->role);
        put_int(o, "wanted", node->cfg);
        put_int(o, "applied", node->nb_cfg);
        put_int(o, "trees", simap_get(&n_trees, node->name));
    }
    simap_destroy(&n_trees);
    json_object_put(summary, "nodes", array);
}

static void
put_connections(struct json *summary, const struct ovsdb_idl *idl)
{
    static const char *const keys[] = {"node", "role", "state"};
    const struct rrec_connection *row;
    struct tally t;

    tally_init(&t);
    RREC_CONNECTION_FOR_EACH (row, idl) {
        tally_count(&t, keys,
                    (const char *const[]){row->node, row->role, row->state ? row->state : ""}, 3);
    }
    json_object_put(summary, "connections", tally_finish(&t));
}

static void
put_probes(struct json *summary, const struct ovsdb_idl *idl)
{
    static const char *const keys[] = {"node", "kind", "state"};
    const struct rrec_probe *row;
    struct tally t;

    tally_init(&t);
    RREC_PROBE_FOR_EACH(row, idl)
    {
        tally_count(
            &t, keys,
            (const char *const[]){row->node, row->kind, row->state ? row->state : "unknown"}, 3);
    }
    json_object_put(summary, "probes", tally_finish(&t));
}

/* Always with both numbers: nothing broken is worth a sample, too. */
static void
put_faults(struct json *summary, const struct ovsdb_idl *idl)
{
    struct json *array = json_array_create_empty();
    int64_t n[2] = {0, 0};
    const struct rrec_fault *row;

    RREC_FAULT_FOR_EACH(row, idl)
    {
        n[row->confirmed]++;
    }
    for (int i = 0; i < 2; i++) {
        struct json *o = add(array);

        json_object_put_string(o, "confirmed", i ? "true" : "false");
        put_int(o, "n", n[i]);
    }
    json_object_put(summary, "faults", array);
}

struct json *
registry_summary(const struct ovsdb_idl *idl)
{
    const struct rrec_global *global = rrec_global_first(idl);
    struct json *summary = json_object_create();
    const struct rrec_host *host;
    const struct rrec_link *link;
    int64_t n_hosts = 0, n_links = 0;

    RREC_HOST_FOR_EACH (host, idl) {
        n_hosts++;
    }
    RREC_LINK_FOR_EACH (link, idl) {
        n_links++;
    }
    put_int(summary, "hosts", n_hosts);
    put_int(summary, "links", n_links);
    if (global) {
        put_int(summary, "requests", global->next_cfg);
        put_int(summary, "answered", global->nb_cfg);
    }
    put_nodes(summary, idl);
    put_groups(summary, idl);
    put_connections(summary, idl);
    put_probes(summary, idl);
    put_faults(summary, idl);
    return summary;
}
