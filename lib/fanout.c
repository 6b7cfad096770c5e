/* SPDX-License-Identifier: Apache-2.0
 *
 * One packet of a group on its way to several branches.
 *
 * A copy shares the original's bytes behind its own head.  While a branch may be asked how far it
 * is, the head reaches to the end of the BTH, because AckReq is there, and the ICRC is the copy's
 * own.  A copy that was sent may still wait in a queue, so what it shares must stay as it is
 * while the last copy is made of the original itself.  Hence that is decided once for all copies of
 * a packet: nothing that was shared by one is written in another.
 *
 * The machine is told of a copy after it was sent: a branch whose copy was lost here keeps its NAK,
 * which goes up.
 */
#include "lib/fanout.h"

#include "lib/icrc.h"
#include "lib/roce.h"

static bool
is_asked(const struct fanout *f, uint32_t branch)
{
    return branch == FANOUT_SHARED   ? reverse_asks_shared(f->reverse)
           : branch == FANOUT_OTHERS ? false
                                     : reverse_asks(f->reverse, branch);
}

/* Decides what copies have of their own, and if branches are to be looked at. */
static void
begin(struct fanout *f)
{
    uint32_t to_bth = f->bth_ofs + (uint32_t) sizeof(struct bth);

    f->begun = true;
    f->serves_all = reverse_serves_all(f->reverse, f->psn);
    f->may_ask = reverse_asks_any(f->reverse);
    f->own_len = f->may_ask && f->head_len < to_bth ? to_bth : f->head_len;
}

/* A copy, or the original itself; NULL: no buffer is free.  *icrcp is where its ICRC is. */
static struct packet *
make_copy(const struct fanout *f, bool last, uint8_t **icrcp)
{
    struct packet *p = f->original;

    if (last && f->takes_original) {
        if (f->ofs) {
            packet_pull(p, f->ofs);
        }
        *icrcp = p->data + p->len - ROCE_ICRC_LEN;
        return p;
    }
    p = packet_replicate(p, f->ofs, f->own_len, f->may_ask || f->rewrites ? ROCE_ICRC_LEN : 0);
    *icrcp = p ? p->tail : NULL;
    return p;
}

static void
note_copied(struct fanout *f, uint32_t branch, bool sent)
{
    if (branch == FANOUT_SHARED) {
        f->shared_lost |= !sent;
    } else if (branch != FANOUT_OTHERS) {
        reverse_copied(f->reverse, branch, f->psn, sent);
    }
}

/* Makes and sends the copy for the target that is held. */
static enum drop_reason
send_copy(struct fanout *f, bool last)
{
    enum drop_reason why = DROP_pool_empty;
    uint8_t *icrc;

    struct packet *p = make_copy(f, last, &icrc);

    if (p) {
        if (f->may_ask && is_asked(f, f->held_branch)) {
            TRACE(&f->node->tracer, "%s: the next copy has AckReq", f->what);
            icrc_set_ack_req((struct bth *) (p->data + f->bth_ofs), f->after_qpn, icrc);
        }
        why = f->send(f, f->held, p, icrc);
    }
    note_copied(f, f->held_branch, !why);
    return why;
}

void
fanout_leave_out(const struct fanout *f, const struct in6_addr *to, enum drop_reason why)
{
    TRACE(&f->node->tracer, "%s: no copy to %s: %s", f->what, TRACE_ADDR(to), drop_help(why));
    node_count_drop(f->node, why);
}

/* Does a branch get a copy of the PSN? */
static bool
is_served(const struct fanout *f, uint32_t branch, const struct in6_addr *to)
{
    if (reverse_is_pruned(f->reverse, branch)) {
        fanout_leave_out(f, to, DROP_member_lost);
        return false;
    }
    if (!reverse_takes(f->reverse, branch, f->psn, f->now)) {
        TRACE(&f->node->tracer,
              "%s: no copy to %s, which gets what comes from its first message on", f->what,
              TRACE_ADDR(to));
        return false;
    }
    return true;
}

/* Does it, or do all that share, need one? */
static bool
is_needed(const struct fanout *f, uint32_t branch, const struct in6_addr *to)
{
    bool confirmed = branch == FANOUT_SHARED ? reverse_filters_all(f->reverse, f->psn)
                                             : reverse_filters(f->reverse, branch, f->psn);

    if (confirmed) {
        TRACE(&f->node->tracer, "%s: no copy to %s, where PSN %u is confirmed", f->what,
              TRACE_ADDR(to), f->psn.v);
    }
    return !confirmed;
}

void
fanout_add(struct fanout *f, uint32_t branch, void *target, const struct in6_addr *to)
{
    bool shared = branch == FANOUT_SHARED, others = branch == FANOUT_OTHERS;

    if (!f->begun) {
        begin(f);
    }
    if (!f->serves_all && !shared && !others && !is_served(f, branch, to)) {
        return;
    }
    bool needed = f->serves_all || others || is_needed(f, branch, to);
    if (shared) {
        f->shared = true;
        f->shared_needed = needed;
    }
    if (!needed) {
        return;
    }
    if (f->held) {
        node_count_drop(f->node, send_copy(f, false));
    }
    f->held = target;
    f->held_branch = branch;
}

enum drop_reason
fanout_end(struct fanout *f)
{
    enum drop_reason why = DROP_none;

    if (f->held) {
        why = send_copy(f, true);
    } else if (f->takes_original) {
        packet_put(f->original);
    }
    if (f->shared_needed) {
        reverse_copied_shared(f->reverse, f->psn, !f->shared_lost);
    } else if (f->shared) {
        reverse_filtered_shared(f->reverse, f->psn);
    }
    return why;
}
