/* SPDX-License-Identifier: Apache-2.0
 *
 * Planes of a group: --planes, and which one is preferred.
 */
#ifndef CTL_CASTCTL_PLANES_H
#define CTL_CASTCTL_PLANES_H 1

#include "ctl/castctl/castctl.h"
#include "lib/tree-mode.h"
#include "svec.h"

/* The labels of --planes, in order; without it those that the group has, which may be NULL. */
struct svec planes_option(const struct ctl *, const struct rrec_group *);
/* Refuses if --planes is given and the group has others. */
void planes_check_same(const struct ctl *, const struct rrec_group *, const struct svec *);
/* Refuses to change them in an epoch that has started. */
void planes_check_not_started(const struct ctl *, const struct rrec_group *, const struct svec *);
/* Gives them to the group.  Refuses if its mode has none, or it has a way to its root. */
void planes_write(const struct ctl *, const struct rrec_group *, const struct svec *,
                  enum tree_mode, bool has_way);
void planes_put(struct json *, const struct rrec_group *);
/* The command "group plane". */
void planes_prefer(struct ctl *);

#endif /* ctl/castctl/planes.h */
