/* SPDX-License-Identifier: Apache-2.0
 *
 * Who wants the place of a member that is registered, and whether it gets that.
 *
 * castctl leaves such a request beside the registration (Member.new_x).  The member's edge is told
 * to ask its queue pair (Branch.doubt, which sync.c writes).  If that answers the request is
 * refused; if not it becomes the registration, which gets another branch.  Until then nothing of
 * the registration changes.
 *
 * A queue pair that does not answer although it has confirmed everything is not lost
 * (Tree_Node.silent): it leaves, as one does that was told to.  The group goes on with any policy.
 * If it owes something it is lost (Tree_Node.lost), and the policy says what becomes of the group.
 */
#include <config.h>

#include "ctl/castd/castd.h"
#include "ctl/registry/group-state.h"
#include "ctl/registry/request.h"
#include "openvswitch/vlog.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(castd_replace);

/* Refuses for this reason, which it frees. */
static void
refuse(const struct rrec_member *m, char *why)
{
    VLOG_INFO("group %s: QPN 0x%" PRIx64 " of %s is refused: %s", m->group->name, m->new_qpn[0],
              m->host, why);
    request_member_close(m, why);
    free(why);
}

/* The request becomes the registration. */
static void
grant(const struct rrec_member *m)
{
    VLOG_INFO("group %s: %s is registered with QPN 0x%" PRIx64 " in place of 0x%" PRIx64,
              m->group->name, m->host, m->new_qpn[0], m->qpn);
    rrec_member_set_qpn(m, m->new_qpn[0]);
    rrec_member_set_rkey(m, m->new_rkey, m->n_new_rkey);
    rrec_member_set_va(m, m->new_va);
    rrec_member_set_len(m, m->new_len);
    rrec_member_set_psn(m, m->new_psn, m->n_new_psn);
    rrec_member_set_keep(m, m->new_keep);
    rrec_member_set_designated_qpn(m, NULL, 0);
    rrec_member_set_connection(m, NULL, 0);
    rrec_member_set_branch(m, 0); /* it is another receiver now. */
    request_member_close(m, "");
}

/* Is the edge told of the member's last doubt? */
static bool
is_asked(const struct rrec_tree_node *edge, const struct rrec_member *m)
{
    for (size_t i = 0; i < edge->n_branches; i++) {
        const struct rrec_branch *b = edge->branches[i];

        if (b->id == m->branch) {
            return b->n_doubt && b->doubt[0] == m->doubt;
        }
    }
    return false;
}

/* Does a column of the edge have the member's last doubt? */
static bool
says(const int64_t *branches, const int64_t *doubts, size_t n, const struct rrec_member *m)
{
    for (size_t i = 0; i < n; i++) {
        if (branches[i] == m->branch) {
            return doubts[i] == m->doubt;
        }
    }
    return false;
}

/* Of one that is to be served in this epoch. */
static void
decide(const struct castd_group *g, const struct rrec_member *m)
{
    const struct castd_tree *tree = m->branch ? castd_find_edge(g, m->branch) : NULL;
    const struct rrec_tree_node *edge = tree ? tree->row : NULL;

    if (member_is_lost(m) && g->row->lost[0]) {
        refuse(m,
               xasprintf("%s is lost in epoch %" PRId64 " of group %s, which has failed: castctl "
                         "group reset %s starts another",
                         m->host, m->epoch, g->row->name, g->row->name));
    } else if (member_is_lost(m) || (!edge && !m->n_first_psn)) {
        grant(m);
    } else if (!edge) {
        refuse(m,
               xasprintf("%s is registered with QPN 0x%" PRIx64 ", and no node has it that could "
                         "ask whether that is alive (castctl member remove %s %s)",
                         m->host, m->qpn, g->row->name, m->host));
    } else if (!is_asked(edge, m)) {
        rrec_member_set_doubt(m, m->doubt + 1);
    } else if (says(edge->key_answered, edge->value_answered, edge->n_answered, m)) {
        refuse(m, xasprintf("%s is registered with QPN 0x%" PRIx64 ", and its queue pair answers",
                            m->host, m->qpn));
    } else if (says(edge->key_silent, edge->value_silent, edge->n_silent, m)) {
        grant(m);
    }
}

void
castd_replace(struct castd *c)
{
    for (size_t i = 0; i < c->n_due; i++) {
        struct castd_group *g = c->due[i];

        for (size_t j = 0; j < g->n_members; j++) {
            const struct rrec_member *m = g->members[j];

            if (!m->n_new_qpn) {
                continue;
            }
            g->written = true;
            if (strcmp(m->want, "active")) {
                refuse(m, xasprintf("%s is leaving group %s", m->host, g->row->name));
            } else if (m->epoch != g->row->epoch) {
                refuse(m, xasprintf("group %s is in epoch %" PRId64 ", not %" PRId64, g->row->name,
                                    g->row->epoch, m->epoch));
            } else {
                decide(g, m);
            }
        }
    }
}
