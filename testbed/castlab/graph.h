/* SPDX-License-Identifier: Apache-2.0
 *
 * A lab as a drawing.
 */
#ifndef TESTBED_CASTLAB_GRAPH_H
#define TESTBED_CASTLAB_GRAPH_H 1

#include <stdio.h>

#include "testbed/castlab/topology.h"

/* What the journal of a lab that is up says of it: names, kinds and links; the rest is 0.  Returns NULL and *topologyp, or
 * a malloc'd error. */
char *graph_of_lab(const char *lab, struct topology **topologyp);

/* Prints it in Graphviz's language. */
void graph_print(const struct topology *, FILE *);
/* Prints it as SVG on standard output, by Graphviz's "dot".  NULL or a malloc'd error. */
char *graph_print_svg(const struct topology *);

#endif /* testbed/castlab/graph.h */
