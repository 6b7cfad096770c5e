/* SPDX-License-Identifier: Apache-2.0
 *
 * How often what is interesting happened in a lab.
 */
#include "tests/model/lab-event.h"

#include <inttypes.h>
#include <string.h>

#include "lib/roce.h"
#include "tests/model/lab.h"

static const struct {
    const char *name, *help;
} events[] = {
#define EVENT(NAME, HELP) [LAB_SAW_##NAME] = {#NAME, HELP},
    LAB_EVENTS
#undef EVENT
};

const char *
lab_event_name(enum lab_event event)
{
    return events[event].name;
}

const char *
lab_event_help(enum lab_event event)
{
    return events[event].help;
}

static void
saw(struct lab *lab, enum lab_event event)
{
    lab->n_seen[event]++;
}

/* Fills *info in for the tree of this Designated QPN.  False: the node has none. */
static bool
find_tree(const struct lab_node *n, uint32_t designated_qpn, size_t *tree, struct tree_info *info)
{
    size_t n_trees = n->node ? n->class->n_trees(n->node) : 0;

    for (*tree = 0; *tree < n_trees; ++*tree) {
        n->class->tree(n->node, *tree, info);
        if (info->config->designated_qpn == designated_qpn) {
            return true;
        }
    }
    return false;
}

/* Branches have the numbers of receivers, or those of nodes, both of which are in addresses. */
static uint32_t
branch_id(const uint8_t *frame, const struct parsed *h)
{
    const struct ip6_hdr_wire *ip = (const void *) (frame + h->ip.ofs);

    struct in6_addr src; /* aligned. */

    memcpy(&src, &ip->src, sizeof src);
    return h->inner.ofs ? BRANCH_ID_NODE(node_id_of(&src)) : lab_receiver_number(&src);
}

void
lab_event_before(const struct lab *lab, const struct lab_node *n, const uint8_t *frame,
                 const struct parsed *h, struct lab_response *r)
{
    const struct bth *bth = (const void *) (frame + h->bth_ofs);
    uint32_t qpn = be24_get(bth->dest_qp);
    struct tree_info t;

    (void) lab;
    r->valid = h->opcode == RC_ACK && find_tree(n, qpn, &r->tree, &t);
    if (r->valid) {
        r->epoch = qpn - lab_designated_qpn(0);
        r->branch = branch_id(frame, h);
        r->valid = n->class->branch(n->node, r->tree, r->branch, &r->before);
    }
}

void
lab_event_after(struct lab *lab, struct lab_node *n, const struct lab_response *r)
{
    struct reverse_branch_info after;
    struct tree_info t;

    lab_event_look(lab, n, false, false);
    if (!r->valid || !n->class->branch(n->node, r->tree, r->branch, &after)) {
        return;
    }
    const struct reverse_branch_info *before = &r->before;
    LAB_REQUIRE(lab,
                before->cond == REVERSE_NONE || after.cond != REVERSE_NONE || !before->anchored
                    || !psn_eq(before->una, after.una),
                "%s forgets the NAK of branch %x at %06x", n->plan->name, r->branch, after.una.v);
    n->class->tree(n->node, r->tree, &t);
    bool at_minimum = t.reverse.anchored && psn_eq(after.una, t.reverse.m);
    if (after.n_naks > before->n_naks) {
        saw(lab, at_minimum ? LAB_SAW_nak_at_minimum : LAB_SAW_nak_held);
    } else if (after.n_rnrs > before->n_rnrs) {
        saw(lab, at_minimum ? LAB_SAW_rnr_at_minimum : LAB_SAW_rnr_held);
    } else if (after.n_fatals > before->n_fatals && !after.pruned) {
        saw(lab, at_minimum ? LAB_SAW_fatal_at_minimum : LAB_SAW_fatal_held);
    }
    lab->n_seen[LAB_SAW_said_again] += after.n_dups > before->n_dups;
}

void
lab_event_look(struct lab *lab, struct lab_node *n, bool timer, bool removed)
{
    size_t n_trees = n->class->n_trees(n->node);

    for (size_t i = 0; i < n_trees; i++) {
        struct tree_info t;
        n->class->tree(n->node, i, &t);
        unsigned epoch = t.config->designated_qpn - lab_designated_qpn(0);
        struct reverse_info *old = &n->seen.trees[epoch].info;
        const struct reverse_info *new = &t.reverse;

        if (!t.config->n_branches) {
            continue;
        }
        if (n->seen.trees[epoch].valid) {
            bool moved = old->anchored && new->anchored &&psn_cmp(new->m, old->m) > 0;

            lab->n_seen[LAB_SAW_ack_repeated] += new->n_sent_dups > old->n_sent_dups;
            lab->n_seen[LAB_SAW_nak_expired] +=
                timer
                && new->n_sent_naks > old->n_sent_naks &&new->n_sent_presumed
                       == old->n_sent_presumed;
            lab->n_seen[LAB_SAW_nak_presumed] += new->n_sent_presumed > old->n_sent_presumed;
            lab->n_seen[LAB_SAW_left_and_moved] += removed && moved;
            lab->n_seen[LAB_SAW_pruned_and_moved] += new->n_lost > old->n_lost &&moved;
        }
        bool without_state = new->started && !new->anchored && !new->n_lost;
        lab->n_seen[LAB_SAW_anchored] += n->seen.trees[epoch].without_state && new->anchored;
        n->seen.trees[epoch].valid = true;
        n->seen.trees[epoch].without_state = without_state;
        *old = *new;
    }
}

/* What the root knows to be confirmed; 'psn' if it is not there. */
static psn_t
root_minimum(const struct lab *lab, psn_t psn)
{
    for (unsigned i = 0; i < lab->n_nodes; i++) {
        const struct lab_node *n = &lab->nodes[i];
        struct tree_info t;
        size_t tree;

        if (lab_is_root(n, lab->epoch) && find_tree(n, lab_designated_qpn(lab->epoch), &tree, &t)) {
            return t.reverse.m;
        }
    }
    return psn;
}

void
lab_event_timeout(struct lab *lab, const struct rc_info *source)
{
    struct lab_set counted = lab_counted(lab, lab->epoch);
    bool lacks = false, missing = false;
    enum lab_stall why;

    LAB_SET_FOR_EACH (i, &counted) {
        struct rc_info info;

        rc_get_info(lab->receivers[i].endpoint, &info);
        if (psn_cmp(info.expected, source->una) <= 0) {
            lacks = true;
            missing |= info.missing;
        }
    }
    if (!lacks) {
        bool known = psn_cmp(root_minimum(lab, source->una), source->una) > 0;
        why = known ? STALL_KNOWN : STALL_UNKNOWN;
    } else if (source->gone_back) {
        why = psn_eq(source->back_to, source->una) ? STALL_LOST_AGAIN : STALL_IGNORED;
    } else {
        why = missing ? STALL_SAID : STALL_TAIL;
    }
    lab->n_stalls[why]++;
}

static uint64_t
n_moved(const struct lab_node *n)
{
    struct path_info path;
    uint64_t sum = 0;

    for (size_t i = 0; n->node && n->class->path(n->node, i, &path); i++) {
        sum += path.n_moved;
    }
    return sum;
}

void
lab_event_end(struct lab *lab)
{
    struct rc_info info;

    rc_get_info(lab->source, &info);
    lab->n_seen[LAB_SAW_lost] += lab->fabric.n_lost;
    lab->n_seen[LAB_SAW_repeated] += lab->fabric.n_twice;
    lab->n_seen[LAB_SAW_late] += lab->fabric.n_late;
    lab->n_seen[LAB_SAW_spoilt] += lab->fabric.n_spoilt;
    lab->n_seen[LAB_SAW_gone_back] += info.n_retries;
    lab->n_seen[LAB_SAW_source_failed] += lab->failure != RC_WC_SUCCESS;
    lab->n_seen[LAB_SAW_calm] += lab->calm_in_flight && lab->n_done == lab->n_messages;
    for (unsigned i = 0; i < lab->n_nodes; i++) {
        lab->n_seen[LAB_SAW_stale_epoch] += lab_node_drops(&lab->nodes[i], DROP_stale_epoch);
        lab->n_seen[LAB_SAW_cnp_up] += lab->nodes[i].cnps.n_up;
        lab->n_seen[LAB_SAW_fast_cnp] += lab_node_drops(&lab->nodes[i], DROP_fast_cnp);
        lab->n_seen[LAB_SAW_queue_full] += lab_node_drops(&lab->nodes[i], DROP_egress_full);
        lab->n_seen[LAB_SAW_never_sent] += lab_node_drops(&lab->nodes[i], DROP_psn_not_sent);
        lab->n_seen[LAB_SAW_moved] += n_moved(&lab->nodes[i]);
    }
}
