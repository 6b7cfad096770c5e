/* SPDX-License-Identifier: Apache-2.0
 *
 * What an agent says in the registry of its node's trees.
 *
 * Theory of operation: a struct tree holds all that the node has said of a tree, whether it is written
 * or not.  Whoever changes one puts it into 'to_report' (must_report()), and so does a change of its
 * row.  Level-triggered, as the rest of the agent's reports: a transaction takes all trees of
 * 'to_report' to 'in_txn' and writes the difference between what they hold and what their rows say.
 * One that is refused brings them back.  A tree that nothing happens to costs nothing.
 *
 * What is said of a branch ends with the row's wish for it, not with its being written: castd takes
 * the branch away, or its question (report_losses(), report_notes(), report_messages()).
 *
 * Trees are made by their rows or by what is said of them, whichever is first, and are forgotten by
 * agent_trees_keep() alone.
 */
#include <config.h>

#include "ctl/node/agent-trees.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/random.h>

#include "ctl/registry/intent.h"
#include "ctl/registry/rocecast-idl.h"
#include "ctl/registry/values.h"
#include "lib/congestion-settings.h"
#include "hash.h"
#include "openvswitch/hmap.h"
#include "openvswitch/list.h"
#include "ovsdb-idl.h"
#include "simap.h"
#include "timeval.h"
#include "util.h"

/* Between two rates of a group that is limited. */
#define RATE_MSEC 1000

/* What there is to say of a branch: why it was lost, or how slow it is. */
struct remark {
    uint32_t branch;
    char *text;
    int64_t una; /* of one that was lost and counted; -1: it did not. */
};

struct remarks {
    size_t n;
    struct remark *remarks;
};

/* A PSN of which castd asks in which message it is. */
struct question {
    psn_t psn;
    enum { QUESTION_OPEN, QUESTION_ANSWERED, QUESTION_GIVEN_UP } state;
    uint64_t message;
};

/* What was reported of a tree, and what is asked. */
struct tree {
    struct hmap_node hmap_node;   /* in agent_trees.trees. */
    uint64_t row;                 /* as in struct tree_config. */
    struct uuid uuid;             /* of the row, once it was seen. */
    bool unread;                  /* the row is not as it was when it was handed out. */
    struct hmap_node unread_node; /* in agent_trees.unread, then. */
    struct ovs_list report_node;  /* in agent_trees.to_report or .in_txn, or alone. */
    uint64_t life; /* random number of this life (docs/draft-notes.md, R25); 0: none. */
    bool started;
    bool blank;
    struct remarks losses, slow;
    struct simap notes[N_BRANCH_NOTES]; /* branch (decimal) to the number that is said of it. */
    size_t n_questions;
    struct question *questions;

    /* The rate to which it is limited now, and what is to be written; 0: it is not. */
    struct limit {
        uint64_t rate;
        enum rate_cause cause;
        struct in6_addr node;
    } limit, said;
    long long said_at;
};

struct agent_trees {
    struct hmap trees;
    struct hmap unread;        /* those of which 'unread' is set: few. */
    struct ovs_list to_report; /* those of which there may be something to write. */
    struct ovs_list in_txn;    /* those of which it is in the transaction in flight. */
    bool asked;                /* there are questions that were not there before. */
};

static void
remarks_uninit(struct remarks *set)
{
    for (size_t i = 0; i < set->n; i++) {
        free(set->remarks[i].text);
    }
    free(set->remarks);
}

static struct remark *
remarks_find(const struct remarks *set, uint32_t branch)
{
    for (size_t i = 0; i < set->n; i++) {
        if (set->remarks[i].branch == branch) {
            return &set->remarks[i];
        }
    }
    return NULL;
}

static void
remarks_add(struct remarks *set, uint32_t branch, const char *text, int64_t una)
{
    set->remarks = xrealloc(set->remarks, (set->n + 1) * sizeof *set->remarks);
    set->remarks[set->n++] = (struct remark){branch, xstrdup(text), una};
}

static void
remarks_remove(struct remarks *set, struct remark *r)
{
    free(r->text);
    *r = set->remarks[--set->n];
}

static struct tree *
find_tree(const struct agent_trees *at, uint64_t row)
{
    struct tree *t;

    HMAP_FOR_EACH_WITH_HASH (t, hmap_node, hash_uint64(row), &at->trees) {
        if (t->row == row) {
            return t;
        }
    }
    return NULL;
}

static struct tree *
find_unread(const struct agent_trees *at, uint64_t row)
{
    struct tree *t;

    HMAP_FOR_EACH_WITH_HASH (t, unread_node, hash_uint64(row), &at->unread) {
        if (t->row == row) {
            return t;
        }
    }
    return NULL;
}

static void
set_unread(struct agent_trees *at, struct tree *t)
{
    if (!t->unread) {
        t->unread = true;
        hmap_insert(&at->unread, &t->unread_node, hash_uint64(t->row));
    }
}

static void
set_read(struct agent_trees *at, struct tree *t)
{
    t->unread = false;
    hmap_remove(&at->unread, &t->unread_node);
}

static struct tree *
make_tree(struct agent_trees *at, uint64_t row)
{
    struct tree *t = find_tree(at, row);

    if (!t) {
        t = xzalloc(sizeof *t);
        t->row = row;
        set_unread(at, t);
        ovs_list_init(&t->report_node);
        for (size_t i = 0; i < N_BRANCH_NOTES; i++) {
            simap_init(&t->notes[i]);
        }
        hmap_insert(&at->trees, &t->hmap_node, hash_uint64(row));
    }
    return t;
}

static void
forget_tree(struct agent_trees *at, struct tree *t)
{
    hmap_remove(&at->trees, &t->hmap_node);
    if (t->unread) {
        hmap_remove(&at->unread, &t->unread_node);
    }
    ovs_list_remove(&t->report_node);
    remarks_uninit(&t->losses);
    remarks_uninit(&t->slow);
    for (size_t i = 0; i < N_BRANCH_NOTES; i++) {
        simap_destroy(&t->notes[i]);
    }
    free(t->questions);
    free(t);
}

/* There may be something to write about the tree. */
static void
must_report(struct agent_trees *at, struct tree *t)
{
    ovs_list_remove(&t->report_node);
    ovs_list_push_back(&at->to_report, &t->report_node);
}

static struct question *
find_question(const struct tree *t, psn_t psn)
{
    for (size_t i = 0; i < t->n_questions; i++) {
        if (psn_eq(t->questions[i].psn, psn)) {
            return &t->questions[i];
        }
    }
    return NULL;
}

struct agent_trees *
agent_trees_create(void)
{
    struct agent_trees *at = xzalloc(sizeof *at);

    hmap_init(&at->trees);
    hmap_init(&at->unread);
    ovs_list_init(&at->to_report);
    ovs_list_init(&at->in_txn);
    return at;
}

void
agent_trees_destroy(struct agent_trees *at)
{
    struct tree *t;

    HMAP_FOR_EACH_SAFE (t, hmap_node, &at->trees) {
        forget_tree(at, t);
    }
    hmap_destroy(&at->trees);
    hmap_destroy(&at->unread);
    free(at);
}

void
agent_trees_keep(struct agent_trees *at, const struct node_config *cfg)
{
    struct tree *t;

    for (size_t i = 0; i < cfg->n_trees && !hmap_is_empty(&at->unread); i++) {
        t = find_unread(at, cfg->trees[i].row);
        if (t) {
            set_read(at, t);
        }
    }
    HMAP_FOR_EACH_SAFE (t, unread_node, &at->unread) {
        forget_tree(at, t);
    }
}

bool
agent_trees_was_read(const void *at, uint64_t row)
{
    return !find_unread(at, row);
}

/* Reads of which PSNs castd asks.  Those of before keep their answers, as long as they are
 * asked. */
static void
read_questions(struct agent_trees *at, const struct rrec_tree_node *row, struct tree *t)
{
    struct question *now = xcalloc(MAX(row->n_psns, 1), sizeof *now);

    for (size_t i = 0; i < row->n_psns; i++) {
        psn_t psn = psn_make((uint32_t) row->psns[i]);
        const struct question *before = find_question(t, psn);

        now[i] = before ? *before : (struct question){.psn = psn};
        at->asked |= !before;
    }
    free(t->questions);
    t->questions = now;
    t->n_questions = row->n_psns;
}

/* Until castd has said whose a row is, others report of it, too. */
static struct tree *
see(struct agent_trees *at, const struct rrec_tree_node *row, const char *node_name)
{
    struct tree *t = make_tree(at, intent_tree_row(row));

    if (!strcmp(row->node, node_name)) {
        t->uuid = row->header_.uuid;
    }
    return t;
}

/* A tree's row counts as changed with what it refers to. */
void
agent_trees_read(struct agent_trees *at, const struct ovsdb_idl *idl, const char *node_name)
{
    const struct rrec_tree_node *row;

    RREC_TREE_NODE_FOR_EACH_TRACKED(row, idl)
    {
        struct tree *t = find_tree(at, intent_tree_row(row));

        if (!rrec_tree_node_is_deleted(row) && !strcmp(row->node, node_name)) {
            t = see(at, row, node_name);
            read_questions(at, row, t);
            must_report(at, t);
        }
        if (t) {
            set_unread(at, t);
        }
    }
}

void
agent_trees_read_all(struct agent_trees *at, const struct intent_rows *rows)
{
    struct tree *t;

    HMAP_FOR_EACH (t, hmap_node, &at->trees) {
        set_unread(at, t);
    }
    for (size_t i = 0; i < rows->n_trees; i++) {
        see(at, rows->trees[i], rows->node->name);
    }
}

const struct rrec_tree_node **
agent_trees_changed(const struct agent_trees *at, const struct ovsdb_idl *idl,
                    const struct rrec_node *node, size_t *n)
{
    const struct rrec_tree_node **rows = xcalloc(hmap_count(&at->unread) + 1, sizeof *rows);
    const struct tree *t;

    *n = 0;
    HMAP_FOR_EACH (t, unread_node, &at->unread) {
        const struct rrec_tree_node *row = rrec_tree_node_get_for_uuid(idl, &t->uuid);

        if (row && intent_is_tree_of(row, node)) {
            rows[(*n)++] = row;
        }
    }
    return rows;
}

uint64_t
agent_trees_life(struct agent_trees *at, uint64_t row)
{
    struct tree *t = make_tree(at, row);

    while (!t->life) {
        if (getrandom(&t->life, sizeof t->life, 0) == sizeof t->life) {
            t->life &= INT64_MAX;
        }
        must_report(at, t);
    }
    return t->life;
}

void
agent_trees_started(struct agent_trees *at, const struct tree_config *tree)
{
    struct tree *t = make_tree(at, tree->row);

    if (!t->started) {
        t->started = true;
        must_report(at, t);
    }
}

void
agent_trees_blank(struct agent_trees *at, const struct tree_config *tree, bool blank)
{
    struct tree *t = blank ? make_tree(at, tree->row) : find_tree(at, tree->row);

    if (t && t->blank != blank) {
        t->blank = blank;
        must_report(at, t);
    }
}

bool
agent_trees_note(struct agent_trees *at, const struct tree_config *tree, uint32_t branch,
                 enum branch_note note, uint32_t value)
{
    struct tree *t = make_tree(at, tree->row);
    struct simap *notes = &t->notes[note];
    char id[16];

    snprintf(id, sizeof id, "%" PRIu32, branch);
    if (simap_contains(notes, id) && simap_get(notes, id) == value) {
        return false;
    }
    simap_put(notes, id, value);
    must_report(at, t);
    return true;
}

bool
agent_trees_lost(struct agent_trees *at, const struct tree_config *tree, uint32_t branch,
                 const char *why, const psn_t *una)
{
    struct tree *t = make_tree(at, tree->row);

    if (remarks_find(&t->losses, branch)) {
        return false;
    }
    remarks_add(&t->losses, branch, why, una ? (int64_t) una->v : -1);
    must_report(at, t);
    return true;
}

void
agent_trees_has_tree(struct agent_trees *at, const struct tree_config *tree)
{
    struct tree *t = find_tree(at, tree->row);

    for (size_t i = t ? t->slow.n : 0; i-- > 0;) {
        struct remark *r = &t->slow.remarks[i];
        bool has_left = true;

        for (size_t j = 0; j < tree->n_branches; j++) {
            has_left &= tree->branches[j].id != r->branch;
        }
        if (has_left) {
            remarks_remove(&t->slow, r);
            must_report(at, t);
        }
    }
}

bool
agent_trees_slow(struct agent_trees *at, const struct tree_config *tree, uint32_t branch,
                 const char *how)
{
    struct tree *t = make_tree(at, tree->row);
    struct remark *r = remarks_find(&t->slow, branch);

    bool is_said = r ? how && !strcmp(r->text, how) : !how;
    if (is_said) {
        return false;
    }
    if (r) {
        remarks_remove(&t->slow, r);
    }
    if (how) {
        remarks_add(&t->slow, branch, how, -1);
    }
    must_report(at, t);
    return true;
}

void
agent_trees_clear_rates(struct agent_trees *at)
{
    struct tree *t;

    HMAP_FOR_EACH (t, hmap_node, &at->trees) {
        t->limit.rate = 0;
    }
}

void
agent_trees_rate(struct agent_trees *at, const struct tree_config *tree, uint64_t rate,
                 enum rate_cause cause, const struct in6_addr *node)
{
    make_tree(at, tree->row)->limit = (struct limit){rate, cause, *node};
}

void
agent_trees_end_rates(struct agent_trees *at)
{
    struct tree *t;

    HMAP_FOR_EACH (t, hmap_node, &at->trees) {
        bool other = t->limit.rate != t->said.rate || t->limit.cause != t->said.cause
                     || memcmp(&t->limit.node, &t->said.node, sizeof t->said.node);

        if (other && (!t->limit.rate || !t->said.rate || time_msec() - t->said_at >= RATE_MSEC)) {
            t->said = t->limit;
            t->said_at = time_msec();
            must_report(at, t);
        }
    }
}

bool
agent_trees_asks(struct agent_trees *at)
{
    bool asks = at->asked;

    at->asked = false;
    return asks;
}

void
agent_trees_answer(struct agent_trees *at, const struct tree_config *tree,
                   agent_registry_find *find, const void *aux)
{
    struct tree *t = find_tree(at, tree->row);

    for (size_t i = 0; t && i < t->n_questions; i++) {
        struct question *q = &t->questions[i];

        if (q->state != QUESTION_OPEN) {
            continue;
        }
        switch (find(aux, q->psn, &q->message)) {
        case MESSAGE_KNOWN:
            q->state = QUESTION_ANSWERED;
            must_report(at, t);
            break;
        case MESSAGE_UNKNOWN: q->state = QUESTION_GIVEN_UP; break;
        case MESSAGE_NOT_YET: break;
        }
    }
}

static const struct rrec_branch *
row_branch(const struct rrec_tree_node *tree, int64_t id)
{
    for (size_t i = 0; i < tree->n_branches; i++) {
        if (tree->branches[i]->id == id) {
            return tree->branches[i];
        }
    }
    return NULL;
}

static bool
row_has_lost(const struct rrec_tree_node *tree, uint32_t branch)
{
    for (size_t i = 0; i < tree->n_lost; i++) {
        if (tree->key_lost[i] == branch) {
            return true;
        }
    }
    return false;
}

/* Says which of the row's branches are lost.  Losses are added one at a time: what an earlier agent
 * has reported stays, as long as the row has the branch.  A node that has left may come back, under
 * the same id. */
static void
report_losses(const struct rrec_tree_node *tree, struct remarks *losses)
{
    for (size_t i = 0; i < tree->n_lost; i++) {
        if (!row_branch(tree, tree->key_lost[i])) {
            rrec_tree_node_update_lost_delkey(tree, tree->key_lost[i]);
            rrec_tree_node_update_lost_psn_delkey(tree, tree->key_lost[i]);
        }
    }
    for (size_t i = losses->n; i-- > 0;) {
        struct remark *loss = &losses->remarks[i];

        if (!row_branch(tree, loss->branch)) {
            remarks_remove(losses, loss);
        } else if (!row_has_lost(tree, loss->branch)) {
            rrec_tree_node_update_lost_setkey(tree, loss->branch, loss->text);
            if (loss->una >= 0) {
                rrec_tree_node_update_lost_psn_setkey(tree, loss->branch, loss->una);
            }
        }
    }
}

/* Who is slow; NULL: nobody.  What an earlier agent has reported is over: a node that was started
 * again knows of nobody. */
static void
report_slow(const struct rrec_tree_node *tree, const struct remarks *slow)
{
    size_t n = slow->n;

    if (!n && !tree->n_slow) {
        return;
    }
    int64_t *branches = xmalloc((n + 1) * sizeof *branches);
    const char **texts = xmalloc((n + 1) * sizeof *texts);
    for (size_t i = 0; i < n; i++) {
        branches[i] = slow->remarks[i].branch;
        texts[i] = slow->remarks[i].text;
    }
    rrec_tree_node_set_slow(tree, branches, texts, n);
    free(branches);
    free(texts);
}

/* A column of Tree_Node with a number for some branches. */
struct note_column {
    const int64_t *keys, *values;
    size_t n;
    void (*set)(const struct rrec_tree_node *, int64_t key, int64_t value);
    void (*delete)(const struct rrec_tree_node *, int64_t key);
};

static struct note_column
note_column(const struct rrec_tree_node *t, enum branch_note note)
{
    switch (note) {
    case NOTE_JOINED:
        return (struct note_column){t->key_joined, t->value_joined, t->n_joined,
                                    rrec_tree_node_update_joined_setkey,
                                    rrec_tree_node_update_joined_delkey};
    case NOTE_FOUND:
        return (struct note_column){t->key_found, t->value_found, t->n_found,
                                    rrec_tree_node_update_found_setkey,
                                    rrec_tree_node_update_found_delkey};
    case NOTE_ANSWERED:
        return (struct note_column){t->key_answered, t->value_answered, t->n_answered,
                                    rrec_tree_node_update_answered_setkey,
                                    rrec_tree_node_update_answered_delkey};
    case NOTE_SILENT:
        return (struct note_column){t->key_silent, t->value_silent, t->n_silent,
                                    rrec_tree_node_update_silent_setkey,
                                    rrec_tree_node_update_silent_delkey};
    case N_BRANCH_NOTES: break;
    }
    OVS_NOT_REACHED();
}

/* Does castd still want to be told this of the branch? */
static bool
is_wanted(const struct rrec_branch *b, enum branch_note note)
{
    bool is_asked = b->join && !strcmp(b->join, "ask");

    return note == NOTE_JOINED  ? b->join && !is_asked
           : note == NOTE_FOUND ? is_asked
                                : b->n_doubt > 0;
}

static bool
row_wants(const struct rrec_tree_node *tree, enum branch_note note, int64_t branch)
{
    const struct rrec_branch *b = row_branch(tree, branch);

    return b && is_wanted(b, note);
}

static const int64_t *
find_note(const struct note_column *column, int64_t branch)
{
    for (size_t i = 0; i < column->n; i++) {
        if (column->keys[i] == branch) {
            return &column->values[i];
        }
    }
    return NULL;
}

/* Says it of branches, until castd has taken that up.  A node that comes back later joins anew,
 * under the same id. */
static void
report_notes(const struct rrec_tree_node *tree, enum branch_note note, struct simap *notes)
{
    struct note_column column = note_column(tree, note);
    struct simap_node *node, *next;

    for (size_t i = 0; i < column.n; i++) {
        if (!row_wants(tree, note, column.keys[i])) {
            column.delete(tree, column.keys[i]);
        }
    }
    SIMAP_FOR_EACH_SAFE(node, next, notes)
    {
        int64_t branch = strtoll(node->name, NULL, 10);
        const int64_t *said = find_note(&column, branch);

        if (!row_wants(tree, note, branch)) {
            simap_delete(notes, node);
        } else if (!said || *said != node->data) {
            column.set(tree, branch, node->data);
        }
    }
}

static bool
row_asks(const struct rrec_tree_node *tree, int64_t psn)
{
    for (size_t i = 0; i < tree->n_psns; i++) {
        if (tree->psns[i] == psn) {
            return true;
        }
    }
    return false;
}

static const int64_t *
find_message(const struct rrec_tree_node *tree, int64_t psn)
{
    for (size_t i = 0; i < tree->n_messages; i++) {
        if (tree->key_messages[i] == psn) {
            return &tree->value_messages[i];
        }
    }
    return NULL;
}

/* Answers what castd asks, and only that.  What an earlier agent has answered stays. */
static void
report_messages(const struct rrec_tree_node *tree, const struct tree *t)
{
    for (size_t i = 0; i < tree->n_messages; i++) {
        if (!row_asks(tree, tree->key_messages[i])) {
            rrec_tree_node_update_messages_delkey(tree, tree->key_messages[i]);
        }
    }
    for (size_t i = 0; i < t->n_questions; i++) {
        const struct question *q = &t->questions[i];
        const int64_t *said = find_message(tree, q->psn.v);

        if (q->state == QUESTION_ANSWERED && row_asks(tree, q->psn.v)
            && (!said || (uint64_t) *said != q->message)) {
            rrec_tree_node_update_messages_setkey(tree, q->psn.v, (int64_t) q->message);
        }
    }
}

static void
report_rate(const struct rrec_tree_node *row, const struct limit *limit)
{
    bool limited = limit->rate;
    int64_t rate = limited ? (int64_t) MIN(limit->rate, MAX_LINE_RATE) : 0;
    const char *cause = limited ? rate_cause_name(limit->cause) : NULL;
    const char *node =
        limited && !IN6_IS_ADDR_UNSPECIFIED(&limit->node) ? ip6_text(&limit->node) : "";

    if (row->n_rate != limited || (limited && row->rate[0] != rate)) {
        rrec_tree_node_set_rate(row, &rate, limited);
    }
    if (!row->rate_cause != !cause || (cause && strcmp(row->rate_cause, cause))) {
        rrec_tree_node_set_rate_cause(row, cause);
    }
    if (strcmp(row->rate_node, node)) {
        rrec_tree_node_set_rate_node(row, node);
    }
}

/* Writes what the tree's row does not say yet, and takes back what it need not say any more. */
static void
report_tree(const struct rrec_tree_node *tree, struct tree *t)
{
    if (t->started && !tree->started) {
        rrec_tree_node_set_started(tree, true);
    }
    if (t->life && (uint64_t) tree->life != t->life) {
        rrec_tree_node_set_life(tree, (int64_t) t->life);
    }
    if (tree->blank != t->blank) {
        rrec_tree_node_set_blank(tree, t->blank);
    }
    report_slow(tree, &t->slow);
    report_rate(tree, &t->said);
    for (enum branch_note note = 0; note < N_BRANCH_NOTES; note++) {
        report_notes(tree, note, &t->notes[note]);
    }
    report_messages(tree, t);
    report_losses(tree, &t->losses);
}

bool
agent_trees_has_news(const struct agent_trees *at)
{
    return !ovs_list_is_empty(&at->to_report);
}

void
agent_trees_report(struct agent_trees *at, const struct ovsdb_idl *idl)
{
    struct tree *t;

    LIST_FOR_EACH (t, report_node, &at->to_report) {
        const struct rrec_tree_node *tree = rrec_tree_node_get_for_uuid(idl, &t->uuid);

        if (tree) { /* otherwise it is gone, and the next generation will say so. */
            report_tree(tree, t);
        }
    }
    ovs_list_push_back_all(&at->in_txn, &at->to_report);
}

void
agent_trees_reported(struct agent_trees *at, bool taken)
{
    while (!ovs_list_is_empty(&at->in_txn)) {
        struct ovs_list *node = ovs_list_pop_front(&at->in_txn);

        ovs_list_init(node);
        if (!taken) {
            ovs_list_push_back(&at->to_report, node);
        }
    }
}
