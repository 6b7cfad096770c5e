/* SPDX-License-Identifier: Apache-2.0
 *
 * castctl tree: a group's tree, the registry's intent beside what the agents say.
 *
 * Two trees have the same nodes.  Data goes along 'children': the nodes that get
 * a node's copies, and the address of each copy.  Responses go to 'parent', the
 * nearest node above that merges them; it has the sender among its 'branches'.
 *
 * An agent that cannot be reached leaves its part blank, and the command ends
 * with CTL_PARTIAL.
 */
#include <config.h>

#include "ctl/castctl/tree.h"

#include "ctl/registry/group-settings.h"
#include "ctl/registry/intent.h"
#include "ctl/registry/request.h"
#include "ctl/registry/values.h"
#include "lib/node-config.h"
#include "util.h"

/* The state of one group epoch in an agent's answer to rocecast/groups, which may be NULL.  NULL:
 * none. */
static const struct json *
live_group(const struct json *groups, const struct rrec_tree_node *tree)
{
    for (size_t i = 0; groups && groups->type == JSON_ARRAY && i < groups->array.n; i++) {
        const struct json *o = groups->array.elems[i];

        if (ctl_get_int(o, "designated_qpn") == tree->designated_qpn
            && !strcmp(ctl_get_string(o, "proxy"), tree->proxy)) {
            return o;
        }
    }
    return NULL;
}

/* The state of one branch in that of a group, which may be NULL.  NULL: none. */
static const struct json *
live_branch(const struct json *group, int64_t id)
{
    const struct json_array *branches = ctl_get_array(group, "branches");

    for (size_t i = 0; i < branches->n; i++) {
        const struct json *o = branches->elems[i];

        if (ctl_get(o, "id") && ctl_get_int(o, "id") == id) {
            return o;
        }
    }
    return NULL;
}

bool
ctl_is_tree_of(const struct rrec_tree_node *tree, const struct rrec_group *group)
{
    return tree->epoch == group->epoch && !strcmp(tree->proxy, group->proxy);
}

const struct rrec_node *
ctl_node_of_tree(const struct ctl *ctl, const struct rrec_tree_node *tree)
{
    const struct rrec_node *node = ctl_find_node(ctl, tree->node);

    return node && intent_is_tree_of(tree, node) ? node : NULL;
}

/* Name of the node whose locator has the SID; NULL if it has no part in the group. */
static const char *
owner_of(const struct ctl *ctl, const struct rrec_group *group, const char *sid)
{
    const struct rrec_tree_node *tree;
    struct in6_addr addr;

    if (!ip6_parse(sid, &addr)) {
        return NULL;
    }
    RREC_TREE_NODE_FOR_EACH (tree, ctl->idl) {
        const struct rrec_node *node =
            ctl_is_tree_of(tree, group) ? ctl_node_of_tree(ctl, tree) : NULL;

        if (node && address_is_of_node(&addr, (uint16_t) node->id)) {
            return node->name;
        }
    }
    return NULL;
}

static struct json *
children_to_json(const struct ctl *ctl, const struct rrec_group *group,
                 const struct rrec_tree_node *tree)
{
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < tree->n_outer_da; i++) {
        struct json *o = ctl_add_object(array);

        json_object_put_string(o, "outer_da", tree->outer_da[i]);
        ctl_put_string_or_null(o, "node", owner_of(ctl, group, tree->outer_da[i]));
    }
    ctl_sort_by(array, "outer_da");
    for (size_t i = 0; i < array->array.n && tree->mcast_group[0]; i++) {
        /* So far it was the next node's address, to find and sort by. */
        json_object_put_string(array->array.elems[i], "outer_da", tree->mcast_group);
    }
    return array;
}

static struct json *
add_branch(struct json *array, const struct rrec_branch *row)
{
    struct json *o = ctl_add_object(array);

    ctl_put_int(o, "id", row->id);
    json_object_put_string(o, "name", row->name);
    json_object_put_string(o, "address", row->address);
    json_object_put_string(o, "kind", row->kind);
    ctl_put_int(o, "qpn", row->qpn);
    return o;
}

static struct json *
branches_to_json(const struct rrec_tree_node *tree, const struct json *live)
{
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < tree->n_branches; i++) {
        struct json *o = add_branch(array, tree->branches[i]);

        ctl_put_copy_or_null(o, "live", live_branch(live, tree->branches[i]->id));
    }
    ctl_sort_by(array, "name");
    return array;
}

/* The receivers that a source agent names in the packets. */
static struct json *
copies_to_json(const struct rrec_tree_node *tree)
{
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < tree->n_copies; i++) {
        struct json *o = add_branch(array, tree->copies[i]);

        json_object_put_string(o, "edge", tree->copies[i]->edge);
    }
    ctl_sort_by(array, "name");
    return array;
}

static struct json *
node_to_json(const struct ctl *ctl, const struct rrec_group *group, const struct rrec_node *node,
             const struct rrec_tree_node *tree, bool *partial)
{
    struct json *groups = ctl_agent_ask(ctl, node, "rocecast/groups");
    const struct json *live = live_group(groups, tree);
    bool aggregates = tree->root || tree->n_branches || tree->parent_sid[0];
    struct json *o = json_object_create();

    json_object_put_string(o, "node", node->name);
    ctl_put_int(o, "id", node->id);
    json_object_put_string(o, "role", node->role);
    ctl_put_bool(o, "source_agent", intent_tree_is_source(node, tree));
    ctl_put_bool(o, "root", tree->root);
    ctl_put_bool(o, "aggregates", aggregates);
    ctl_put_bool(o, "open", tree->open);
    ctl_put_int(o, "wanted", tree->generation);
    ctl_put_int(o, "applied", node->nb_cfg);
    json_object_put_string(o, "replication_sid", tree->replication_sid);
    json_object_put(o, "children", children_to_json(ctl, group, tree));
    json_object_put_string(o, "parent_sid", tree->parent_sid);
    ctl_put_string_or_null(o, "parent", owner_of(ctl, group, tree->parent_sid));
    json_object_put(o, "branches", branches_to_json(tree, live));
    json_object_put(o, "copies", copies_to_json(tree));
    ctl_put_bool(o, "reachable", groups != NULL);
    ctl_put_copy_or_null(o, "live", live);
    *partial |= !groups;
    json_destroy(groups);
    return o;
}

static struct json *
source_to_json(const struct ctl *ctl, const struct rrec_group *group)
{
    const struct rrec_source *source = request_find_source(ctl->idl, group);
    const struct rrec_host *host = source ? request_find_host(ctl->idl, source->host) : NULL;

    if (!source) {
        return json_null_create();
    }
    struct json *o = json_object_create();
    json_object_put_string(o, "host", source->host);
    json_object_put_string(o, "address", host ? host->address : "");
    ctl_put_int(o, "qpn", source->qpn);
    return o;
}

struct json *
tree_to_json(const struct ctl *ctl, const struct rrec_group *group, bool *partial)
{
    struct json *o = json_object_create();
    struct json *nodes = json_array_create_empty();
    const struct rrec_tree_node *tree;
    struct group_settings settings;

    group_settings_read(group, &settings);
    json_object_put_string(o, "group", group->name);
    ctl_put_int(o, "epoch", group->epoch);
    json_object_put_string(o, "mode", tree_mode_name(settings.mode));
    json_object_put_string(o, "receivers", receivers_name(settings.provisioned));
    json_object_put_string(o, "proxy", group->proxy);
    ctl_put_int(o, "designated_qpn", group->designated_qpn);
    ctl_put_int(o, "start_psn", group->start_psn);
    ctl_put_group_state(ctl, o, group);
    json_object_put(o, "source", source_to_json(ctl, group));
    RREC_TREE_NODE_FOR_EACH (tree, ctl->idl) {
        const struct rrec_node *node =
            ctl_is_tree_of(tree, group) ? ctl_node_of_tree(ctl, tree) : NULL;

        if (node) {
            json_array_add(nodes, node_to_json(ctl, group, node, tree, partial));
        }
    }
    ctl_sort_by(nodes, "node");
    json_object_put(o, "nodes", nodes);
    return o;
}

static void
tree_show(struct ctl *ctl)
{
    const struct rrec_group *group = ctl_require_group(ctl, ctl->argv[0]);
    bool partial = false;

    if (ctl->json && ctl_flag(ctl, OPT_DOT)) {
        ctl_fail(CTL_USAGE, "tree show: --dot or --json, not both");
    }
    struct json *tree = tree_to_json(ctl, group, &partial);
    if (ctl->json) {
        ctl_print(ctl, tree, NULL);
    } else {
        (ctl_flag(ctl, OPT_DOT) ? tree_draw_dot : tree_draw)(tree);
        json_destroy(tree);
    }
    ctl_finish(partial);
}

const struct ctl_command ctl_tree_commands[] = {
    {"tree show", "GROUP", 1, 1, CTL_INTENT | FLAG(OPT_DOT), 0, NULL, tree_show,
     "draw a group's tree with what each node and branch has confirmed;\n"
     "        --dot: in Graphviz's language"},
    {.name = NULL},
};
