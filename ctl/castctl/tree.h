/* SPDX-License-Identifier: Apache-2.0
 *
 * A group's tree as JSON (tree.c makes it, -j prints it) and its drawings
 * (draw.c), which are made from the JSON.
 */
#ifndef CTL_CASTCTL_TREE_H
#define CTL_CASTCTL_TREE_H 1

#include "ctl/castctl/castctl.h"

/* Asks the agents; *partial is set if one does not answer. */
struct json *tree_to_json(const struct ctl *, const struct rrec_group *, bool *partial);

/* To standard output, as lines for a terminal. */
void tree_draw(const struct json *tree);
/* To standard output, in Graphviz's language. */
void tree_draw_dot(const struct json *tree);

#endif /* ctl/castctl/tree.h */
