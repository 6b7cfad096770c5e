/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of the registry that text describes, as the IDL would hold them.
 */
#ifndef TESTS_FUZZ_INTENT_ROWS_H
#define TESTS_FUZZ_INTENT_ROWS_H 1

#include <stddef.h>

struct rrec_location;
struct rrec_node;

/* Begins anew: a node without anything, which is what lines are about. */
const struct rrec_node *rows_begin(void);

/* Where hosts are, of the same lines. */
const struct rrec_location *const *rows_locations(size_t *n);

/* A line: a table's name begins a row with columns that make sense, COLUMN=VALUE changes one of the
 * row begun last; rows of Branch, Copy and Node_Key are the last tree's.  outer_da=VALUE and
 * auth=VALUE add one to the last tree's set, next_hops=NODE:PORT one to the node's map.  What the schema refuses has no effect, nor has any
 * other line.  'line' is spoilt, and its values are not copied. */
void rows_line(char *line);

#endif /* tests/fuzz/intent-rows.h */
