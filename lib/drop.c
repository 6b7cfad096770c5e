/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of the drop reasons.
 */
#include "lib/drop.h"

#include <assert.h>

static const struct {
    const char *name;
    const char *help;
} reasons[N_DROP_REASONS] = {
#define DROP(NAME, HELP) [DROP_##NAME] = {#NAME, HELP},
    DROP_REASONS
#undef DROP
};

const char *
drop_name(enum drop_reason reason)
{
    assert(reason < N_DROP_REASONS);
    return reasons[reason].name;
}

const char *
drop_help(enum drop_reason reason)
{
    assert(reason < N_DROP_REASONS);
    return reasons[reason].help;
}
