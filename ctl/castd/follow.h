/* SPDX-License-Identifier: Apache-2.0
 *
 * What has changed in the registry: into the mirror, and into the work that follows from it.
 */
#ifndef CTL_CASTD_FOLLOW_H
#define CTL_CASTD_FOLLOW_H 1

#include "ctl/castd/mirror.h"

/* Before the IDL connects: it is to tell of changes. */
void follow_init(struct ovsdb_idl *);
/* After each ovsdb_idl_run(), before anybody looks at a row, and whoever computes: deleted rows are freed
 * here. */
void follow(struct ovsdb_idl *, struct mirror *, struct work *);

#endif /* ctl/castd/follow.h */
