/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies of what goes down: which branches need one, and which got one.
 *
 * Branches that "share" all get the same copies: below this node something
 * replicates that does not aggregate.  A shared copy of the next PSN costs the same
 * however many branches share it.  No branch can have confirmed that PSN, or have a
 * condition there, so the copy changes two things only.  How far all are served is
 * one number.  Who was asked is a range of PSNs, in liveness_ask_shared().  A shared
 * copy of any other PSN, which the source has most likely sent before, is noted for
 * each of the branches.
 */
#include "lib/reverse-impl.h"

#include "lib/defect.h"

static bool
has_confirmed(const struct branch *b, psn_t q)
{
    return b->anchored && psn_cmp(q, b->una) < 0;
}

bool
reverse_filters_all(const struct reverse *r, psn_t q)
{
    const struct branch *b = r->policy.filter ? branches_minimum(r) : NULL;
    return b && has_confirmed(b, q);
}

static bool
filters(const struct reverse *r, struct branch *b, psn_t q)
{
    bool filters = r->policy.filter && has_confirmed(b, q);

    b->n_filtered += filters;
    return filters;
}

bool
reverse_filters(struct reverse *r, uint32_t id, psn_t q)
{
    struct branch *b = r->policy.filter ? branch_find_near(r, id) : NULL;
    return b && filters(r, b, q);
}

bool
reverse_asks_any(const struct reverse *r)
{
    return r->policy.nak == NAK_SOLICIT && r->held_last;
}

/* Value of 'settings' when a copy last went out to 'b'. */
static uint64_t
served(const struct reverse *r, const struct branch *b)
{
    return b->shares && b->served < r->shared_served ? r->shared_served : b->served;
}

/* Is 'b' asked how far it is?  It is if the latest held NAK is above its una and newer than its
 * last copy. */
static bool
asks(const struct reverse *r, const struct branch *b)
{
    const struct branch *held = r->held_last;

    return b->anchored && !b->lost && psn_cmp(b->una, held->una) < 0
           && served(r, b) < held->setting;
}

bool
reverse_asks(const struct reverse *r, uint32_t id)
{
    const struct branch *b = reverse_asks_any(r) ? branch_find(r, id) : NULL;
    return b && asks(r, b);
}

static void
note_copy(struct reverse *r, struct branch *b, psn_t q, bool sent)
{
    liveness_ask(r, b, q);
    b->n_repeats += r->repeats;
    b->n_useless += r->repeats && has_confirmed(b, q);
    if (sent) {
        b->served = r->settings;
    }
    bool latched = b->cond == REVERSE_FATAL && !DEFECT(H15);
    if (sent && psn_eq(b->una, q) && b->cond != REVERSE_NONE && !latched) {
        branch_update(r, b, q, REVERSE_NONE, 0, 0);
    }
}

void
reverse_copied(struct reverse *r, uint32_t id, psn_t q, bool sent)
{
    struct branch *b = branch_find_near(r, id);
    if (b) {
        note_copy(r, b, q, sent);
    }
}

/* Branches that share. */

void
reverse_share(struct reverse *r, uint32_t id, bool shares)
{
    struct branch *b = branch_find(r, id);

    if (b && b->shares != shares) {
        liveness_settle_shared(r);
        b->served = served(r, b);
        b->shares = shares;
    }
}

bool
reverse_asks_shared(const struct reverse *r)
{
    if (!reverse_asks_any(r) || r->shared_served >= r->held_last->setting) {
        return false;
    }
    for (size_t i = 0; i < r->n_branches; i++) {
        reverse_n_visits++;
        if (r->branches[i]->shares && asks(r, r->branches[i])) {
            return true;
        }
    }
    return false;
}

void
reverse_copied_shared(struct reverse *r, psn_t q, bool sent)
{
    if (r->continues && liveness_ask_shared(r, q)) {
        r->shared_served = sent ? r->settings : r->shared_served;
        return;
    }
    for (size_t i = 0; i < r->n_branches; i++) {
        reverse_n_visits++;
        if (r->branches[i]->shares) {
            note_copy(r, r->branches[i], q, sent);
        }
    }
}

void
reverse_filtered_shared(struct reverse *r, psn_t q)
{
    for (size_t i = 0; i < r->n_branches; i++) {
        reverse_n_visits++;
        if (r->branches[i]->shares) {
            filters(r, r->branches[i], q);
        }
    }
}
