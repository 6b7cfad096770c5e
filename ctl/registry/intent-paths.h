/* SPDX-License-Identifier: Apache-2.0
 *
 * The paths of one node in the registry read into plain data, for intent.c.
 */
#ifndef CTL_REGISTRY_INTENT_PATHS_H
#define CTL_REGISTRY_INTENT_PATHS_H 1

#include "ctl/registry/reader.h"

struct rrec_node;

/* Reads Node.destinations to out->destinations, whose ports and probes are there. */
bool intent_read_destinations(struct reader *, const struct rrec_node *, struct node_config *out);

#endif /* ctl/registry/intent-paths.h */
