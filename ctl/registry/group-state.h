/* SPDX-License-Identifier: Apache-2.0
 *
 * States of groups as castd derives them and others read them.
 *
 * A degraded group serves like a ready one, but some members are lacking: they have registered and
 * are not served as they should be.  A slow group serves, too, but slow members hold it up.
 */
#ifndef CTL_REGISTRY_GROUP_STATE_H
#define CTL_REGISTRY_GROUP_STATE_H 1

#include <stdbool.h>

#include "ctl/registry/rocecast-idl.h"
#include "lib/words.h"

enum group_state { GROUP_PENDING, GROUP_READY, GROUP_SLOW, GROUP_DEGRADED, GROUP_FAILED };
WORDS_DECLARE(group_state, enum group_state);

/* Is the group ready, slow or degraded: may its source send? */
bool group_serves(const struct rrec_group *);

/* Is the member, by its state, one whose lack makes its group degraded?  A new reason for that is a
 * row of lacking_states[]. */
bool member_is_lacking(const struct rrec_member *);
/* Is it slow: active, and holds up its group? */
bool member_is_slow(const struct rrec_member *);
/* Is it lost in its group's epoch?  A registration that has no branch yet is not, whatever its row
 * says of the one before. */
bool member_is_lost(const struct rrec_member *);
/* Is it active in its group's epoch? */
bool member_is_active(const struct rrec_member *);

#endif /* ctl/registry/group-state.h */
