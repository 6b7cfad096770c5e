/* SPDX-License-Identifier: Apache-2.0
 *
 * Names and trees of the schemes (see scheme.h).
 */
#include "bench/castbench/scheme.h"

#include <assert.h>
#include <string.h>

static const char *const names[N_SCHEMES] = {
    [SCHEME_MCAST] = "mcast",
    [SCHEME_UNICAST] = "unicast",
    [SCHEME_UNICAST_SERIAL] = "unicast-serial",
    [SCHEME_PRIMARY] = "primary",
    [SCHEME_CHAIN] = "chain",
    [SCHEME_CHAIN_PIPE] = "chain-pipe",
    [SCHEME_BTREE] = "btree",
};

const char *
scheme_name(enum scheme scheme)
{
    return names[scheme];
}

bool
scheme_from_name(const char *name, enum scheme *scheme)
{
    for (unsigned i = 0; i < N_SCHEMES; i++) {
        if (!strcmp(name, names[i])) {
            *scheme = (enum scheme) i;
            return true;
        }
    }
    return false;
}

static unsigned
parent_of(enum scheme scheme, unsigned member)
{
    switch (scheme) {
    case SCHEME_UNICAST:
    case SCHEME_UNICAST_SERIAL: return 0;
    case SCHEME_PRIMARY: return member > 1;
    case SCHEME_CHAIN:
    case SCHEME_CHAIN_PIPE: return member - 1;
    /* After k rounds members 0 to 2^k - 1 have the block.  Each of them writes it to the member 2^k
     * above.  The sooner a member has it, the more rounds are left for those below. */
    case SCHEME_BTREE: return member - (1u << (31 - (unsigned) __builtin_clz(member)));
    case SCHEME_MCAST:
    case N_SCHEMES: break;
    }
    assert(!"scheme without relays");
    return 0;
}

void
relay_plan_make(struct relay_plan *plan, enum scheme scheme, unsigned n_receivers)
{
    assert(n_receivers <= MAX_RECEIVERS);
    memset(plan, 0, sizeof *plan);
    plan->n_members = 1 + n_receivers;
    plan->serial = scheme == SCHEME_UNICAST_SERIAL || scheme == SCHEME_BTREE;
    for (unsigned i = 1; i < plan->n_members; i++) {
        unsigned parent = parent_of(scheme, i);
        struct relay_member *p = &plan->members[parent];

        plan->members[i].parent = parent;
        p->children[p->n_children++] = i;
    }
}
