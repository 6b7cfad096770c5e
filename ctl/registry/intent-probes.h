/* SPDX-License-Identifier: Apache-2.0
 *
 * The probes of one node in the registry, and the planes of its trees, read into plain data, for
 * intent.c.
 */
#ifndef CTL_REGISTRY_INTENT_PROBES_H
#define CTL_REGISTRY_INTENT_PROBES_H 1

#include "ctl/registry/reader.h"

struct rrec_node;
struct rrec_tree_node;

/* Reads Node.probes and Node.probers to *out, whose ports are there. */
bool intent_read_probes(struct reader *, const struct rrec_node *, struct node_config *out);

/* A column with the number of a probe that 'config' has; 'row' says which row it stands in.  NULL:
 * the probes are not known. */
bool intent_read_probe_number(struct reader *, const char *column, const char *row, int64_t number,
                              const struct node_config *config, uint16_t *out);

/* Reads Tree_Node.planes and Tree_Node.parent_planes to *out, whose 'outer_da' is there: it gets the
 * order of the planes.  'config' has the node's ports and probes, as above. */
bool intent_read_planes(struct reader *, const struct rrec_tree_node *,
                        const struct node_config *config, struct tree_config *out);

#endif /* ctl/registry/intent-probes.h */
