/* SPDX-License-Identifier: Apache-2.0
 *
 * How castd reads the registry when it starts: one large table at a time.
 *
 * The registry's server composes an answer as a whole, and the client has all of it as JSON before it makes
 * rows of it.  With thousands of groups that is most of castd's start, and in parts it takes less time: the
 * server composes one while castd makes rows of another (docs/scale.md).  What has been asked for is followed
 * from then on, also over connections that are lost.
 */
#ifndef CTL_CASTD_READING_H
#define CTL_CASTD_READING_H 1

#include <stdbool.h>
#include <stddef.h>

struct ovsdb_idl;

struct reading {
    size_t n_asked; /* of the large tables. */
    /* All rows are there.  Before, nobody may conclude from one that is missing, nor from a reference:
     * those to rows that are not there yet are left out. */
    bool done;
};

/* Before the IDL connects. */
void reading_init(struct reading *, struct ovsdb_idl *);
/* After ovsdb_idl_run(), once the registry serves. */
void reading_run(struct reading *, struct ovsdb_idl *);

#endif /* ctl/castd/reading.h */
