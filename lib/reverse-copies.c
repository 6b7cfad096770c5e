/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies of what goes down: who is to have one, and who got one.
 *
 * Branches that "share" all get the same copies: below this node something
 * replicates that does not aggregate.  A shared copy of the PSN that comes next costs
 * the same however many they are.  Nobody can have confirmed that PSN before, or have a
 * condition there, so it changes two things only: how far all are served, for which
 * there is one number, and who was asked, which liveness_ask_shared() keeps as a range
 * of PSNs.  Of any other PSN, which the source has most likely sent before, it is noted
 * for each of them.
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
    struct branch *b = r->policy.filter ? branch_find(r, id) : NULL;
    return b && filters(r, b, q);
}

bool
reverse_asks_any(const struct reverse *r)
{
    return r->policy.nak == NAK_SOLICIT && r->held_last;
}

/* The settings until a copy went out to 'b' last. */
static uint64_t
served(const struct reverse *r, const struct branch *b)
{
    return b->shares && b->served < r->shared_served ? r->shared_served : b->served;
}

/* Is 'b' to be asked how far it is, because of the latest NAK that is held? */
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
    struct branch *b = branch_find(r, id);
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
