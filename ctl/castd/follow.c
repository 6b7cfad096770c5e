/* SPDX-License-Identifier: Apache-2.0
 *
 * What has changed in the registry (see follow.h).
 *
 * The IDL lists rows that are new, deleted or changed, and rows that refer to such a row: a Tree_Node is
 * there if one of its branches has changed, and a Member if its Group has.  A row that is there several
 * times over comes once, as it is now.
 *
 * A client's copy is also thrown away as a whole, without a word about its rows, for example when the
 * connection was lost.  Then the row of Global is new.
 */
#include <config.h>

#include "ctl/castd/follow.h"

#include <stdlib.h>

#include "ctl/castd/castd.h"
#include "openvswitch/vlog.h"
#include "ovsdb-idl.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(castd_follow);

void
follow_init(struct ovsdb_idl *idl)
{
    ovsdb_idl_track_add_all(idl);
}

/* Calls the macro for each table whose rows belong to groups, with the names of table and kind. */
#define PARTS(PART)                          \
    PART(source, SOURCE, SOURCE)             \
    PART(member, MEMBER, MEMBER)             \
    PART(listener, LISTENER, LISTENER)       \
    PART(connection, CONNECTION, CONNECTION) \
    PART(tree_node, TREE_NODE, TREE)

static void
build(const struct ovsdb_idl *idl, struct mirror *m)
{
    const struct rrec_group *group;
    const struct rrec_node *node;

    RREC_GROUP_FOR_EACH (group, idl) {
        mirror_put_group(m, group);
    }
    RREC_NODE_FOR_EACH (node, idl) {
        mirror_put_node(m, node);
    }
#define PART(TABLE, MACRO, KIND)                                        \
    {                                                                   \
        const struct rrec_##TABLE *row;                                 \
        RREC_##MACRO##_FOR_EACH(row, idl)                               \
        {                                                               \
            mirror_put_part(m, MIRROR_##KIND, row, &row->header_.uuid); \
        }                                                               \
    }
    PARTS(PART)
#undef PART
    m->built = true;
}

static void
follow_deleted(struct ovsdb_idl *idl, struct mirror *m)
{
    const struct rrec_group *group;
    const struct rrec_node *node;

#define PART(TABLE, MACRO, KIND)                         \
    {                                                    \
        const struct rrec_##TABLE *row;                  \
        RREC_##MACRO##_FOR_EACH_TRACKED(row, idl)        \
        {                                                \
            if (rrec_##TABLE##_is_deleted(row)) {        \
                mirror_drop_part(m, &row->header_.uuid); \
            }                                            \
        }                                                \
    }
    PARTS(PART)
#undef PART
    RREC_GROUP_FOR_EACH_TRACKED(group, idl)
    {
        if (rrec_group_is_deleted(group)) {
            mirror_drop_group(m, &group->header_.uuid);
        }
    }
    RREC_NODE_FOR_EACH_TRACKED(node, idl)
    {
        if (rrec_node_is_deleted(node)) {
            mirror_drop_node(m, &node->header_.uuid);
        }
    }
}

/* Groups before what belongs to them. */
static void
follow_changed(struct ovsdb_idl *idl, struct mirror *m)
{
    const struct rrec_group *group;
    const struct rrec_node *node;

    RREC_GROUP_FOR_EACH_TRACKED(group, idl)
    {
        if (!rrec_group_is_deleted(group)) {
            mirror_put_group(m, group);
        }
    }
#define PART(TABLE, MACRO, KIND)                                            \
    {                                                                       \
        const struct rrec_##TABLE *row;                                     \
        RREC_##MACRO##_FOR_EACH_TRACKED(row, idl)                           \
        {                                                                   \
            if (!rrec_##TABLE##_is_deleted(row)) {                          \
                mirror_put_part(m, MIRROR_##KIND, row, &row->header_.uuid); \
            }                                                               \
        }                                                                   \
    }
    PARTS(PART)
#undef PART
    RREC_NODE_FOR_EACH_TRACKED(node, idl)
    {
        bool is_new = rrec_node_is_new(node);

        if (rrec_node_is_deleted(node)) {
            continue;
        }
        if (is_new || rrec_node_is_updated(node, RREC_NODE_COL_NAME)
            || rrec_node_is_updated(node, RREC_NODE_COL_TREES)
            || rrec_node_is_updated(node, RREC_NODE_COL_NAMED_TREES)) {
            mirror_put_node(m, node);
        }
    }
}

/* Rows that castd writes for nodes as a whole: somebody else has written there, or an agent is of another
 * version than the one before. */
static bool
base_has_changed(const struct ovsdb_idl *idl)
{
    const struct rrec_node *node;

    RREC_NODE_FOR_EACH_TRACKED(node, idl)
    {
        if (!rrec_node_is_deleted(node)
            && (rrec_node_is_updated(node, RREC_NODE_COL_NEXT_HOPS)
                || (castd_has_route_rows(node) ? node->n_next_hops : node->n_routes))) {
            return true;
        }
    }
    return rrec_port_track_get_first(idl) || rrec_route_track_get_first(idl)
           || rrec_location_track_get_first(idl) || rrec_sid_track_get_first(idl)
           || rrec_destination_track_get_first(idl) || rrec_path_track_get_first(idl);
}

/* But for what nodes and castd report, and what castd tells nodes. */
static bool
node_has_changed(const struct rrec_node *row)
{
    static const enum rrec_node_column_id columns[] = {
        RREC_NODE_COL_NAME,  RREC_NODE_COL_ID,       RREC_NODE_COL_ROLE,
        RREC_NODE_COL_PLANE, RREC_NODE_COL_EXCLUDED, RREC_NODE_COL_NO_AGGREGATION,
        RREC_NODE_COL_PORTS, RREC_NODE_COL_PROGRAMS,
    };
    bool changed = rrec_node_is_new(row) || rrec_node_is_deleted(row);

    for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
        changed |= rrec_node_is_updated(row, columns[i]);
    }
    return changed;
}

/* But for what counts requests. */
static bool
global_has_changed(const struct rrec_global *row)
{
    static const enum rrec_global_column_id counters[] = {
        RREC_GLOBAL_COL_NEXT_CFG, RREC_GLOBAL_COL_NB_CFG,     RREC_GLOBAL_COL_AGENTS_CFG,
        RREC_GLOBAL_COL_ALL_CFG,  RREC_GLOBAL_COL_NEXT_PROXY, RREC_GLOBAL_COL_NEXT_CONNECTION,
    };

    for (size_t i = 0; i < RREC_GLOBAL_N_COLUMNS; i++) {
        bool counts = false;

        for (size_t j = 0; j < ARRAY_SIZE(counters); j++) {
            counts |= i == counters[j];
        }
        if (!counts && rrec_global_is_updated(row, i)) {
            return true;
        }
    }
    return false;
}

static bool
topology_has_changed(const struct ovsdb_idl *idl)
{
    const struct rrec_global *global;
    const struct rrec_node *node;
    bool changed = rrec_host_track_get_first(idl) || rrec_link_track_get_first(idl)
                   || rrec_path_rule_track_get_first(idl) || rrec_port_track_get_first(idl);

    RREC_GLOBAL_FOR_EACH_TRACKED(global, idl)
    {
        changed |= global_has_changed(global);
    }
    RREC_NODE_FOR_EACH_TRACKED(node, idl)
    {
        changed |= node_has_changed(node);
    }
    return changed;
}

/* Keys are in many trees, by way of their copies. */
static void
follow_keys(const struct ovsdb_idl *idl, struct mirror *m, struct work *work)
{
    struct mirror_group *g;

    if (rrec_key_track_get_first(idl)) {
        HMAP_FOR_EACH (g, hmap_node, &m->groups) {
            if (g->work && g->row->n_auth) {
                work_make_due(work, g->work);
            }
        }
    }
}

/* Does the mirror say what one says that is made of all rows? */
static void
check(const struct ovsdb_idl *idl, const struct mirror *m)
{
    struct svec lines = SVEC_EMPTY_INITIALIZER, wanted = SVEC_EMPTY_INITIALIZER;
    struct mirror fresh;

    mirror_init(&fresh, NULL);
    build(idl, &fresh);
    mirror_describe(m, &lines);
    mirror_describe(&fresh, &wanted);
    if (!svec_equal(&lines, &wanted)) {
        size_t i = 0;

        while (i < lines.n && i < wanted.n && !strcmp(lines.names[i], wanted.names[i])) {
            i++;
        }
        VLOG_FATAL("the mirror has \"%s\" instead of \"%s\"", i < lines.n ? lines.names[i] : "",
                   i < wanted.n ? wanted.names[i] : "");
    }
    mirror_uninit(&fresh);
    svec_destroy(&lines);
    svec_destroy(&wanted);
}

/* For tests: the mirror is compared with the rows each time. */
static bool
must_check(void)
{
    return getenv("ROCECAST_CASTD_CHECK") != NULL;
}

void
follow(struct ovsdb_idl *idl, struct mirror *m, struct work *work)
{
    const struct rrec_global *global = rrec_global_first(idl);

    if (!global || rrec_global_is_new(global)) {
        mirror_clear(m);
    }
    if (global && !m->built) {
        build(idl, m);
        m->topology_changed = m->ways_changed = true;
        work->base = work->faults = true;
    } else if (global) {
        follow_deleted(idl, m);
        follow_changed(idl, m);
        follow_keys(idl, m, work);
        m->topology_changed |= topology_has_changed(idl);
        m->ways_changed |= rrec_probe_track_get_first(idl) || rrec_plane_track_get_first(idl);
        work->base |= base_has_changed(idl);
        work->faults |= rrec_probe_track_get_first(idl) || rrec_fault_track_get_first(idl);
        if (must_check()) {
            check(idl, m);
        }
    }
    ovsdb_idl_track_clear(idl);
}
