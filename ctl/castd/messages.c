/* SPDX-License-Identifier: Apache-2.0
 *
 * With which message members begin, and which they are known to have when they are lost.
 *
 * Edges know PSNs only; the source agent numbers messages.  castd asks it for the PSNs of members
 * that lack a number (Tree_Node.psns), and takes its answers from Tree_Node.messages into the
 * members' rows.  What the agent cannot know stays asked as long as the registration does in this
 * epoch, and holds up nobody: no generation belongs to it.
 */
#include <config.h>

#include <stdlib.h>

#include "ctl/castd/castd.h"
#include "ctl/registry/intent.h"
#include "util.h"

/* PSNs that are asked, in order, each once. */
struct asked {
    size_t n, allocated;
    int64_t *psns;
};

static void
ask(struct asked *asked, int64_t psn)
{
    size_t i = asked->n;

    while (i > 0 && asked->psns[i - 1] >= psn) {
        i--;
    }
    if (i < asked->n && asked->psns[i] == psn) {
        return;
    }
    if (asked->n == asked->allocated) {
        asked->psns = x2nrealloc(asked->psns, &asked->allocated, sizeof *asked->psns);
    }
    memmove(&asked->psns[i + 1], &asked->psns[i], (asked->n++ - i) * sizeof *asked->psns);
    asked->psns[i] = psn;
}

static const int64_t *
find_answer(const struct rrec_tree_node *agent, int64_t psn)
{
    for (size_t i = 0; i < agent->n_messages; i++) {
        if (agent->key_messages[i] == psn) {
            return &agent->value_messages[i];
        }
    }
    return NULL;
}

/* The number of the message at 'psn'; NULL: it is asked for. */
static const int64_t *
find_or_ask(struct asked *asked, const struct rrec_tree_node *agent, int64_t psn)
{
    const int64_t *number = find_answer(agent, psn);

    if (!number) {
        ask(asked, psn);
    }
    return number;
}

static void
number_member(struct castd_group *g, const struct rrec_member *m,
              const struct rrec_tree_node *agent, struct asked *asked)
{
    const int64_t *number;

    if (m->n_first_psn && !m->n_first_message) {
        number = find_or_ask(asked, agent, m->first_psn[0]);
        rrec_member_set_first_message(m, number, number != NULL);
        g->written |= number != NULL;
    }
    if (m->n_lost_psn && !m->n_good_messages) {
        number = find_or_ask(asked, agent, m->lost_psn[0]);
        rrec_member_set_good_messages(m, number, number != NULL);
        g->written |= number != NULL;
    }
}

static const struct rrec_tree_node *
find_agent(const struct castd_group *g)
{
    for (size_t i = 0; i < g->trees.n; i++) {
        const struct castd_tree *t = &g->trees.trees[i];

        if (intent_tree_is_source(t->node->row, t->row) && t->row->epoch == g->row->epoch) {
            return t->row;
        }
    }
    return NULL;
}

void
castd_number_messages(struct castd *c)
{
    for (size_t i = 0; i < c->n_due; i++) {
        struct castd_group *g = c->due[i];
        const struct rrec_tree_node *agent = find_agent(g);
        struct asked asked = {.n = 0};

        for (size_t j = 0; agent && j < g->n_members; j++) {
            const struct rrec_member *m = g->members[j];

            /* Who leaves needs no number, and its row may be deleted by now. */
            if (m->epoch == g->row->epoch && !strcmp(m->want, "active")) {
                number_member(g, m, agent, &asked);
            }
        }
        if (agent && (asked.n || agent->n_psns)) {
            rrec_tree_node_set_psns(agent, asked.psns, asked.n);
        }
        free(asked.psns);
    }
}
