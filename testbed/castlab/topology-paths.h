/* SPDX-License-Identifier: Apache-2.0
 *
 * What a lab's topology file says of paths, for topology.c.
 */
#ifndef TESTBED_CASTLAB_TOPOLOGY_PATHS_H
#define TESTBED_CASTLAB_TOPOLOGY_PATHS_H 1

#include "testbed/castlab/parameters.h"
#include "testbed/castlab/topology.h"
#include "ctl/yaml/yaml-doc.h"

/* Reads the value of 'paths' to the topology; errors are the document's. */
void topology_read_paths(struct yaml_doc *, const struct parameters *, yaml_node_t *map,
                         struct topology *);

#endif /* testbed/castlab/topology-paths.h */
