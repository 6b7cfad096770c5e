/* SPDX-License-Identifier: Apache-2.0
 *
 * One node's rows in the registry read into plain data.
 */
#ifndef CTL_REGISTRY_INTENT_H
#define CTL_REGISTRY_INTENT_H 1

#include <stdbool.h>

#include "lib/node-config.h"

struct rrec_node;
struct rrec_tree_node;

/* Builds the whole snapshot of 'node': its ports, routes, SIDs and trees, each list sorted by its
 * key, with generation Node.cfg.  The caller frees *out with node_config_uninit().
 *
 * All or nothing: if any value is invalid it returns false, with *out empty and a malloc'd sentence
 * in *errp that names table, column and value. */
bool intent_read(const struct rrec_node *node, struct node_config *out, char **errp);

/* The same for one tree.  The caller frees *out with tree_config_uninit(). */
bool intent_read_tree(const struct rrec_tree_node *row, struct tree_config *out, char **errp);

/* Is the node the source agent of this tree, which is one of its rows?  It may also have trees of other
 * sources: as the edge of its host. */
bool intent_tree_is_source(const struct rrec_node *, const struct rrec_tree_node *);
/* tree_config.row of this row: a number that no other row has. */
uint64_t intent_tree_row(const struct rrec_tree_node *);

#endif /* ctl/registry/intent.h */
