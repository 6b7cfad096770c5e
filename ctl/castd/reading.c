/* SPDX-License-Identifier: Apache-2.0
 *
 * How castd reads the registry when it starts (see reading.h).
 */
#include <config.h>

#include "ctl/castd/reading.h"

#include "ctl/registry/rocecast-idl.h"
#include "ovsdb-idl.h"
#include "util.h"

/* Whose rows grow with the members.  Before the rows that refer to them: those are parsed once then. */
static unsigned int (*const set_condition[])(struct ovsdb_idl *, struct ovsdb_idl_condition *) = {
    rrec_branch_set_condition,
    rrec_tree_node_set_condition,
    rrec_member_set_condition,
};

void
reading_init(struct reading *r, struct ovsdb_idl *idl)
{
    struct ovsdb_idl_condition none = OVSDB_IDL_CONDITION_INIT(&none);

    *r = (struct reading){.n_asked = 0};
    for (size_t i = 0; i < ARRAY_SIZE(set_condition); i++) {
        set_condition[i](idl, &none);
    }
    ovsdb_idl_condition_destroy(&none);
}

/* Asks for a table, and says whether it is there.  What is asked for again changes nothing; but with a
 * connection that was lost the number that was waited for is void. */
static bool
ask(struct ovsdb_idl *idl, size_t i)
{
    struct ovsdb_idl_condition all = OVSDB_IDL_CONDITION_INIT(&all);

    ovsdb_idl_condition_add_clause_true(&all);
    unsigned int seqno = set_condition[i](idl, &all);
    ovsdb_idl_condition_destroy(&all);
    return ovsdb_idl_get_condition_seqno(idl) >= seqno;
}

/* A table is asked for when the one before it still comes: so the server goes on while castd makes rows of
 * what has come.  The IDL sends one request at a time. */
void
reading_run(struct reading *r, struct ovsdb_idl *idl)
{
    const size_t n = ARRAY_SIZE(set_condition);

    if (r->done) {
        return;
    }
    if (r->n_asked < n && (r->n_asked < 2 || ask(idl, r->n_asked - 2))) {
        ask(idl, r->n_asked++);
    }
    r->done = r->n_asked == n && ask(idl, n - 2) && ask(idl, n - 1);
}
