/* SPDX-License-Identifier: Apache-2.0
 *
 * Columns written only if they differ.  The macros set the caller's 'changed' then, and leave it
 * otherwise.
 */
#ifndef CTL_CASTD_COLUMNS_H
#define CTL_CASTD_COLUMNS_H 1

#include <inttypes.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>

#include "svec.h"

#define SYNC_NUMBER(TABLE, ROW, COLUMN, VALUE)       \
    do {                                             \
        if ((ROW)->COLUMN != (VALUE)) {              \
            rrec_##TABLE##_set_##COLUMN(ROW, VALUE); \
            changed = true;                          \
        }                                            \
    } while (0)
#define SYNC_STRING(TABLE, ROW, COLUMN, VALUE)       \
    do {                                             \
        if (strcmp((ROW)->COLUMN, VALUE)) {          \
            rrec_##TABLE##_set_##COLUMN(ROW, VALUE); \
            changed = true;                          \
        }                                            \
    } while (0)

/* The same for a column that is empty unless IS_SET. */
#define SYNC_OPTIONAL(TABLE, ROW, COLUMN, IS_SET, VALUE)                               \
    do {                                                                               \
        int64_t value_ = (VALUE);                                                      \
        bool is_set_ = (IS_SET);                                                       \
        if ((ROW)->n_##COLUMN != is_set_ || (is_set_ && (ROW)->COLUMN[0] != value_)) { \
            rrec_##TABLE##_set_##COLUMN(ROW, &value_, is_set_);                        \
            changed = true;                                                            \
        }                                                                              \
    } while (0)

/* The same for a column with a set of strings: those of 'WANT', a sorted svec that has none twice. */
#define SYNC_SET(TABLE, ROW, COLUMN, WANT)                                       \
    do {                                                                         \
        if (!columns_same_set((ROW)->COLUMN, (ROW)->n_##COLUMN, WANT)) {         \
            rrec_##TABLE##_set_##COLUMN(ROW, (void *) (WANT)->names, (WANT)->n); \
            changed = true;                                                      \
        }                                                                        \
    } while (0)
bool columns_same_set(char *const have[], size_t n, const struct svec *want);

/* The same for one with a set of addresses, of which 'WANT' has none twice. */
#define SYNC_ADDRESSES(TABLE, ROW, COLUMN, WANT, N_WANT) \
    do {                                                 \
        struct svec texts_;                              \
        columns_put_addresses(&texts_, WANT, N_WANT);    \
        SYNC_SET(TABLE, ROW, COLUMN, &texts_);           \
        svec_destroy(&texts_);                           \
    } while (0)
void columns_put_addresses(struct svec *, const struct in6_addr *, size_t n);

/* The name of the node that a row is for, by which agents choose what they read.  The node itself has the row
 * already, so this alone is nothing that it has to be told: 'changed' stays as it is. */
#define SYNC_OWNER(TABLE, ROW, NODE)            \
    do {                                        \
        if (strcmp((ROW)->node, NODE)) {        \
            rrec_##TABLE##_set_node(ROW, NODE); \
        }                                       \
    } while (0)

#endif /* ctl/castd/columns.h */
