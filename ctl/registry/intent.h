/* SPDX-License-Identifier: Apache-2.0
 *
 * One node's rows in the registry read into plain data.
 */
#ifndef CTL_REGISTRY_INTENT_H
#define CTL_REGISTRY_INTENT_H 1

#include <stdbool.h>

#include "lib/node-config.h"

struct rrec_location;
struct rrec_node;
struct rrec_tree_node;

/* What of a node's rows is as it was when 'config' was read from them.  All of it is given up by who
 * reads anew: it is taken over, or freed. */
struct intent_before {
    struct node_config *config;
    bool sids;   /* the rows of its SIDs, and of its ports. */
    bool routes; /* likewise; and next hops and locations. */
    /* Is this a tree's row, by its number, that is unchanged, with all that it refers to? */
    bool (*tree)(const void *aux, uint64_t row);
    const void *aux;
};

/* A node's row, those of its trees, and where all hosts are.  What is as it was (struct intent_before) may
 * be left out. */
struct intent_rows {
    const struct rrec_node *node;
    const struct rrec_tree_node *const *trees;
    size_t n_trees;
    const struct rrec_location *const *locations;
    size_t n_locations;
};

/* Builds the whole snapshot of a node: its ports, routes, SIDs and trees, each list sorted by its
 * key, with generation Node.cfg.  The caller frees *out with node_config_uninit().
 *
 * All or nothing: if any value is invalid it returns false, with *out empty and a malloc'd sentence
 * in *errp that names table, column and value. */
bool intent_read(const struct intent_rows *, struct node_config *out, char **errp);

/* The same, at the price of what has changed: the rest is taken from *before->config, which then has
 * nothing of it any more.  If it returns false, *before is as it was. */
bool intent_read_changes(const struct intent_rows *, const struct intent_before *before,
                         struct node_config *out, char **errp);

/* The same, but nothing beyond ports and routes. */
bool intent_read_routes(const struct intent_rows *, struct node_config *out, char **errp);

/* Is the tree the node's?  Its row names it; without Node.named_trees the node lists it, and the row names
 * nobody else. */
bool intent_is_tree_of(const struct rrec_tree_node *, const struct rrec_node *);

/* The same for one tree.  The caller frees *out with tree_config_uninit(). */
bool intent_read_tree(const struct rrec_tree_node *row, struct tree_config *out, char **errp);

/* Is the node the source agent of this tree, which is one of its rows?  It may also have trees of other
 * sources: as the edge of its host. */
bool intent_tree_is_source(const struct rrec_node *, const struct rrec_tree_node *);
/* tree_config.row of this row: a number that no other row has. */
uint64_t intent_tree_row(const struct rrec_tree_node *);

#endif /* ctl/registry/intent.h */
