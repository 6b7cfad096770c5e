/* SPDX-License-Identifier: Apache-2.0
 *
 * Members that are lost: who says so, whether that is true, and what castd would
 * do about it.
 *
 * What a node says of a branch counts for all receivers behind it.  It is looked at
 * whenever the node did something, before what it sends is judged.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/roce.h"
#include "tests/model/lab.h"

/* A receiver that goes deaf may have had nothing to answer for this long: the source's timeout
 * three times, as what is sent again may get lost again, and some way. */
#define UNHEARD_USEC 70000

/* As castd: what is nearest to a silent receiver notices first. */
static unsigned
height(const struct lab *lab, const struct tree_config *t)
{
    unsigned highest = 0;

    for (size_t i = 0; i < t->n_branches; i++) {
        const struct branch_config *b = &t->branches[i];
        const struct plan_node *child =
            b->kind == BRANCH_NODE ? plan_find_node(&lab->topology, b->name) : NULL;

        for (unsigned n = 0; child && n < lab->n_nodes; n++) {
            const struct lab_node *node = &lab->nodes[n];
            if (node->plan == child && node->n_trees) {
                unsigned h = height(lab, &node->trees[0]);
                highest = h > highest ? h : highest;
            }
        }
    }
    return 1 + highest;
}

void
lab_loss_configure(struct lab *lab, struct lab_node *n)
{
    for (size_t i = 0; i < n->n_trees; i++) {
        n->trees[i].policy.prune = lab->prune;
        n->trees[i].policy.min_rate = n->height ? lab->min_rate / n->height : 0;
        n->trees[i].policy.lose_slow = lab->lose_slow;
        n->trees[i].policy.liveness_msec = lab->asks_no_more ? 0 : lab->liveness_msec * n->height;
    }
}

/* Trees do not grow in a run with losses, so this is done once. */
void
lab_loss_start(struct lab *lab)
{
    for (unsigned i = 0; lab->liveness_msec && i < lab->n_nodes; i++) {
        struct lab_node *n = &lab->nodes[i];
        n->height = n->n_trees ? height(lab, &n->trees[0]) : 0;
        n->behind = n->counted[0];
        lab_node_configure(lab, i);
    }
    lab->members = lab_counted(lab, 0);
}

/* Is it slow, and was so for as long as it takes to see that? */
static bool
receiver_is_slow(const struct lab *lab, const struct lab_receiver *r, uint64_t least)
{
    return r->slow_since && lab->fabric.now - r->slow_since + UNHEARD_USEC >= least;
}

/* Has this receiver given up, or been slow, or been deaf for as long as that takes? */
static bool
receiver_is_lost(const struct lab *lab, const struct lab_receiver *r, enum reverse_loss loss,
                 uint64_t least)
{
    struct rc_info info;

    rc_get_info(r->endpoint, &info);
    if (info.failed) {
        return true; /* It may have said so to a node that was started again since. */
    }
    if (loss == LOSS_SLOW) {
        return lab->lose_slow && receiver_is_slow(lab, r, least);
    }
    return (loss == LOSS_SILENT || loss == LOSS_UNANSWERED) && r->deaf_since
           && lab->fabric.now - r->deaf_since + UNHEARD_USEC >= least
           && (!r->deaf_until || r->deaf_until - r->deaf_since > least / 2);
}

/* Node branches: all behind are lost, or one is and that is enough; or a node was down. */
static void
check_node_loss(const struct lab *lab, const struct lab_node *n, const struct branch_config *b,
                const struct reverse_branch_info *info, const struct lab_set *behind)
{
    struct lab_set lost = lab_set_both(behind, &lab->lost);
    uint64_t least = n->trees[0].policy.liveness_msec * UINT64_C(1000) * 30 / 32;

    if (lab->prune ? lab_set_equal(&lost, behind) : !lab_set_is_empty(&lost)) {
        return; /* It refuses, or its NAKs got lost. */
    }
    LAB_REQUIRE(lab, info->lost == LOSS_SILENT && lab->node_down_since, "%s: %s is lost (%d)",
                n->plan->name, b->name, info->lost);
    LAB_REQUIRE(lab,
                lab->restarts || lab->fabric.now - lab->node_down_since + UNHEARD_USEC >= least,
                "%s says too early that %s is silent", n->plan->name, b->name);
}

static void
count_loss(struct lab *lab, const struct branch_config *b, enum reverse_loss loss)
{
    lab->n_seen[b->kind == BRANCH_NODE    ? LAB_SAW_node_lost
                : loss == LOSS_SILENT     ? LAB_SAW_silent
                : loss == LOSS_UNANSWERED ? LAB_SAW_unanswered
                : loss == LOSS_SLOW       ? LAB_SAW_slow_lost
                                          : LAB_SAW_refused]++;
}

static void
note_branch(struct lab *lab, struct lab_node *n, const struct branch_config *b,
            const struct reverse_branch_info *info)
{
    uint64_t least = n->trees[0].policy.liveness_msec * UINT64_C(1000) * 30 / 32;
    struct lab_set behind = {.words = {0}};

    if (b->kind == BRANCH_RECEIVER) {
        unsigned i = b->id - 1;
        lab_set_add(&behind, i);
        if (info->pruned) {
            lab_set_add(&n->pruned, i);
        }
        LAB_REQUIRE(lab,
                    lab_set_has(&lab->lost, i)
                        || receiver_is_lost(lab, &lab->receivers[i], info->lost, least),
                    "%s says that %s is lost (%d)", n->plan->name, b->name, info->lost);
    } else {
        const struct plan_node *child = plan_find_node(&lab->topology, b->name);
        const struct lab_node *c = &lab->nodes[child - lab->topology.nodes];
        behind = lab_set_without(&c->behind, &n->removed);
        behind = lab_set_both(&behind, &lab->members); /* Who waits is not lost with it. */
        check_node_loss(lab, n, b, info, &behind);
        /* With fail-group the node below has said who it is. */
        if (!info->pruned && info->lost != LOSS_SILENT && !lab->prune) {
            behind = (struct lab_set){.words = {0}};
        }
    }
    struct lab_set newly = lab_set_without(&behind, &lab->lost);
    if (!lab_set_is_empty(&newly)) {
        count_loss(lab, b, info->lost);
        if (lab->trace) {
            fprintf(stderr, "%10" PRIu64 " %s: %s is lost (%d) at psn %06x%s\n", lab->fabric.now,
                    n->plan->name, b->name, info->lost, info->una.v,
                    info->pruned ? ", pruned" : "");
        }
    }
    lab_set_merge(&lab->lost, &behind);
    lab->faults |= LAB_FAULT_LOSS;
    newly = lab_set_without(&behind, &lab->pruned);
    if (info->pruned && !lab_set_is_empty(&newly)) {
        lab_set_merge(&lab->pruned, &behind);
        if (lab->castd) {
            fabric_schedule(&lab->fabric, lab->fabric.now + 1 + lab_random(lab, 50000), lab_castd,
                            0, 0);
        }
    }
}

/* Whom this branch speaks for. */
static struct lab_set
receivers_behind(const struct lab *lab, const struct lab_node *n, const struct branch_config *b)
{
    struct lab_set behind = {.words = {0}};

    if (b->kind == BRANCH_RECEIVER) {
        lab_set_add(&behind, b->id - 1);
        return behind;
    }
    const struct plan_node *child = plan_find_node(&lab->topology, b->name);

    return lab_set_without(&lab->nodes[child - lab->topology.nodes].behind, &n->removed);
}

/* A node says that a branch is slow: somebody behind it is. */
static void
note_slow(struct lab *lab, const struct lab_node *n, const struct branch_config *b)
{
    uint64_t least = n->trees[0].policy.liveness_msec * UINT64_C(1000) * 30 / 32;
    struct lab_set behind = receivers_behind(lab, n, b);
    bool any = false;

    LAB_SET_FOR_EACH (i, &behind) {
        any |= receiver_is_slow(lab, &lab->receivers[i], least);
        lab->receivers[i].slow_seen |= b->kind == BRANCH_RECEIVER;
    }
    LAB_REQUIRE(lab, any, "%s says that %s is slow", n->plan->name, b->name);
    lab->n_seen[LAB_SAW_slow]++;
}

static void
note_all_slow(struct lab *lab, struct lab_node *n, const struct tree_info *t)
{
    if (t->reverse.n_paced == n->n_paced) {
        return;
    }
    n->n_paced = t->reverse.n_paced;
    for (size_t i = 0; i < t->config->n_branches; i++) {
        struct reverse_branch_info info;
        if (n->class->branch(n->node, 0, t->config->branches[i].id, &info) && info.slow) {
            note_slow(lab, n, &t->config->branches[i]);
        }
    }
}

/* Unless it is slow no more, as it is lost or everything is over. */
void
lab_slow_check_end(const struct lab *lab, const struct lab_receiver *r)
{
    bool lost = lab_set_has(&lab->lost, (unsigned) (r - lab->receivers));

    LAB_REQUIRE(lab,
                r->slow_seen || lost || !rc_takes_nothing(r->endpoint)
                    || lab->n_done == lab->n_messages || lab->failure != RC_WC_SUCCESS,
                "r%u was slow, and nobody said so", (unsigned) (r - lab->receivers) + 1);
}

void
lab_note_losses(struct lab *lab, struct lab_node *n)
{
    struct tree_info t;

    bool over = lab->n_done == lab->n_messages; /* Who is lost now is no concern of the source's. */

    if (!lab->liveness_msec || over || !n->node || !n->class->n_trees(n->node)) {
        return;
    }
    n->class->tree(n->node, 0, &t);
    note_all_slow(lab, n, &t);
    if (t.reverse.n_lost == n->n_lost && n->base.generation == n->lost_generation) {
        return;
    }
    n->n_lost = t.reverse.n_lost;
    n->lost_generation = n->base.generation;
    size_t n_pruned = 0;
    for (size_t i = 0; t.reverse.n_lost && i < t.config->n_branches; i++) {
        struct reverse_branch_info info;
        if (n->class->branch(n->node, 0, t.config->branches[i].id, &info) && info.lost) {
            note_branch(lab, n, &t.config->branches[i], &info);
            n_pruned += info.pruned;
        }
    }
    LAB_REQUIRE(lab, !n_pruned || n_pruned < t.config->n_branches, "%s pruned all", n->plan->name);
    LAB_REQUIRE(lab, !n_pruned || lab->prune, "%s pruned", n->plan->name);
}

/* What castd does with policy prune: those that are lost leave, from the agent down. */
void
lab_castd(void *lab_, unsigned unused, unsigned unused2)
{
    struct lab *lab = lab_;

    (void) unused, (void) unused2;
    if (!lab->prune || lab_set_is_empty(&lab->pruned) || lab_set_equal(&lab->pruned, &lab->members)
        || lab_set_equal(&lab->lost, &lab->members)) {
        return;
    }
    lab->faults |= LAB_FAULT_REMOVE;
    for (unsigned depth = 0; depth <= lab->max_depth; depth++) {
        for (unsigned i = 0; i < lab->n_nodes; i++) {
            if (lab->nodes[i].depth == depth) {
                lab_set_merge(&lab->nodes[i].removed, &lab->pruned);
                lab_node_configure(lab, i);
            }
        }
    }
}

/* The source fails if somebody was lost, or with policy prune if all were.  Otherwise all others
 * have everything. */
void
lab_loss_check_end(struct lab *lab)
{
    struct rc_info source;
    bool fails =
        lab->prune ? lab_set_equal(&lab->lost, &lab->members) : !lab_set_is_empty(&lab->lost);

    rc_get_info(lab->source, &source);
    if (source.stuck) {
        return; /* As only an endpoint can be. */
    }
    /* A node that was started again forgets whom it lost while nothing was sent: the source was not
     * told of that before it asked for something. */
    bool forgotten = lab->restarts && lab->n_seen[LAB_SAW_unanswered];
    LAB_REQUIRE(lab,
                fails == (lab->failure != RC_WC_SUCCESS) || (fails && !lab->failure && forgotten),
                "lost: %u of %u, and the source says %d", lab_set_count(&lab->lost),
                lab_set_count(&lab->members), lab->failure);
    LAB_REQUIRE(lab,
                !lab->failure || lab->failure == RC_WC_REM_OP || lab->failure == RC_WC_REM_ACCESS
                    || lab->failure == RC_WC_REM_INV_REQ,
                "the source says %d", lab->failure);
    for (unsigned i = 0; !fails && i < lab->n; i++) {
        for (unsigned j = 0; !lab_set_has(&lab->lost, i) && j < lab->n_messages; j++) {
            const struct lab_message *m = &lab->messages[j];
            LAB_REQUIRE(
                lab,
                !lab_has_to_have(&lab->receivers[i], m)
                    || !memcmp(lab->receivers[i].memory + m->ofs, lab->data + m->ofs, m->len),
                "r%u does not have message %u", i + 1, j);
        }
    }
}
