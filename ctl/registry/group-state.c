/* SPDX-License-Identifier: Apache-2.0
 *
 * States of groups as castd derives them and others read them.
 */
#include <config.h>

#include "ctl/registry/group-state.h"

#include <string.h>

#include "util.h"

static const char *const states[] = {[GROUP_PENDING] = "pending",
                                     [GROUP_READY] = "ready",
                                     [GROUP_SLOW] = "slow",
                                     [GROUP_DEGRADED] = "degraded",
                                     [GROUP_FAILED] = "failed"};
WORDS_DEFINE(group_state, enum group_state, states);

static const char *const lacking_states[] = {"lost", "failed"};

bool
group_serves(const struct rrec_group *group)
{
    enum group_state state;

    return group_state_parse(group->state, &state)
           && (state == GROUP_READY || state == GROUP_SLOW || state == GROUP_DEGRADED);
}

bool
member_is_lacking(const struct rrec_member *m)
{
    if (strcmp(m->want, "active") || m->epoch != m->group->epoch) {
        return false;
    }
    for (size_t i = 0; i < ARRAY_SIZE(lacking_states); i++) {
        if (!strcmp(m->state, lacking_states[i])) {
            return true;
        }
    }
    return false;
}

bool
member_is_slow(const struct rrec_member *m)
{
    return m->epoch == m->group->epoch && !strcmp(m->state, "slow");
}

bool
member_is_lost(const struct rrec_member *m)
{
    return m->branch && m->lost[0] && m->epoch == m->group->epoch;
}

bool
member_is_active(const struct rrec_member *m)
{
    return member_is_slow(m) || (m->epoch == m->group->epoch && !strcmp(m->state, "active"));
}
