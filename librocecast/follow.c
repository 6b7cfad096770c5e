/* SPDX-License-Identifier: Apache-2.0
 *
 * Which rows of the registry a connection sees.
 *
 * Of groups, and of sources, members and listeners, it asks for those of the groups that the
 * program has opened: others change without it.  They refer to the group by its row, so they are
 * asked for when that was seen.  Until the server has answered what was asked for last, the rows
 * may be those of a group without some of its members: nobody looks at them then.
 */
#include <config.h>

#include "ctl/registry/request.h"
#include "librocecast/internal.h"
#include "ovsdb-idl.h"
#include "util.h"

struct conditions {
    struct ovsdb_idl_condition groups, sources, members, listeners;
};

static void
add_group(const struct rocecast *r, struct conditions *c, const char *name)
{
    const struct rrec_group *row = request_find_group(r->idl, name);

    rrec_group_add_clause_name(&c->groups, OVSDB_F_EQ, name);
    if (row) {
        const struct uuid *group = &row->header_.uuid;

        rrec_source_add_clause_group(&c->sources, OVSDB_F_EQ, group);
        rrec_member_add_clause_group(&c->members, OVSDB_F_EQ, group);
        rrec_listener_add_clause_group(&c->listeners, OVSDB_F_EQ, group);
    }
}

static void
add_groups(const struct rocecast *r, struct conditions *c)
{
    for (const struct rocecast_group *g = r->groups; g; g = g->next) {
        add_group(r, c, g->name);
    }
    for (const struct call *call = r->calls; call; call = call->next) {
        if (call->name) {
            add_group(r, c, call->name);
        }
    }
}

void
follow_update(struct rocecast *r)
{
    struct conditions c = {
        OVSDB_IDL_CONDITION_INIT(&c.groups),
        OVSDB_IDL_CONDITION_INIT(&c.sources),
        OVSDB_IDL_CONDITION_INIT(&c.members),
        OVSDB_IDL_CONDITION_INIT(&c.listeners),
    };

    add_groups(r, &c);
    unsigned int seqno = rrec_group_set_condition(r->idl, &c.groups);
    seqno = MAX(seqno, rrec_source_set_condition(r->idl, &c.sources));
    seqno = MAX(seqno, rrec_member_set_condition(r->idl, &c.members));
    seqno = MAX(seqno, rrec_listener_set_condition(r->idl, &c.listeners));
    r->follows = ovsdb_idl_get_condition_seqno(r->idl) >= seqno;
    ovsdb_idl_condition_destroy(&c.groups);
    ovsdb_idl_condition_destroy(&c.sources);
    ovsdb_idl_condition_destroy(&c.members);
    ovsdb_idl_condition_destroy(&c.listeners);
}
