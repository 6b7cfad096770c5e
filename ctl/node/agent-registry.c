/* SPDX-License-Identifier: Apache-2.0
 *
 * An agent's side of the registry.
 *
 * Level-triggered: what is to be written is the difference between what the
 * agent reported and what its Node row says, so that a lost transaction or a
 * registry that came back empty needs no handling of its own.  A refused one is
 * tried again after a while.  At most one transaction is in flight.
 */
#include <config.h>

#include "ctl/node/agent-registry.h"

#include <stdlib.h>

#include "ctl/node/agent-connections.h"
#include "ctl/node/agent-monitor.h"
#include "ctl/node/agent-probes.h"
#include "ctl/registry/intent.h"
#include "ctl/registry/retry.h"
#include "ctl/registry/rocecast-idl.h"
#include "ctl/registry/schema.h"
#include "ctl/registry/values.h"
#include "lib/congestion-settings.h"
#include "hash.h"
#include "openvswitch/hmap.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "ovsdb-idl.h"
#include "random.h"
#include "simap.h"
#include "timeval.h"
#include "unixctl.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(agent_registry);

static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(6, 3);

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
    struct hmap_node hmap_node; /* in agent_registry.trees. */
    uint64_t row;               /* as in struct tree_config. */
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

struct agent_registry {
    struct ovsdb_idl *idl;
    struct ovsdb_idl_txn *txn;
    char *node_name;
    unsigned int roles; /* a bit for each that the row may have. */
    char *control;
    unsigned int seqno; /* of the IDL, when last looked at. */
    bool report;        /* there may be something to write. */
    bool asked;         /* there are questions that were not there before. */
    bool was_connected;
    struct registry_retry retry;

    /* What was handed out last.  A Node row that was deleted and made again starts over. */
    struct uuid row_uuid;
    int64_t generation; /* 0: nothing. */
    bool has_read;      /* anything was, since the agent was started. */

    /* What the agent reported. */
    int64_t applied; /* 0: nothing. */
    char *state;
    struct hmap trees;
    struct agent_connections *connections;
    struct agent_probes *probes;
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
find_tree(const struct agent_registry *ar, uint64_t row)
{
    struct tree *t;

    HMAP_FOR_EACH_WITH_HASH (t, hmap_node, hash_uint64(row), &ar->trees) {
        if (t->row == row) {
            return t;
        }
    }
    return NULL;
}

static struct tree *
make_tree(struct agent_registry *ar, uint64_t row)
{
    struct tree *t = find_tree(ar, row);

    if (!t) {
        t = xzalloc(sizeof *t);
        t->row = row;
        for (size_t i = 0; i < N_BRANCH_NOTES; i++) {
            simap_init(&t->notes[i]);
        }
        hmap_insert(&ar->trees, &t->hmap_node, hash_uint64(row));
    }
    return t;
}

static void
forget_tree(struct agent_registry *ar, struct tree *t)
{
    hmap_remove(&ar->trees, &t->hmap_node);
    remarks_uninit(&t->losses);
    remarks_uninit(&t->slow);
    for (size_t i = 0; i < N_BRANCH_NOTES; i++) {
        simap_destroy(&t->notes[i]);
    }
    free(t->questions);
    free(t);
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

static const struct rrec_node *
own_row(const struct agent_registry *ar)
{
    const struct rrec_node *row;

    RREC_NODE_FOR_EACH (row, ar->idl) {
        if (!strcmp(row->name, ar->node_name)) {
            return row;
        }
    }
    return NULL;
}

/* What keeps the agent from following its row; NULL: nothing. */
static const char *
obstacle(const struct agent_registry *ar)
{
    return !ovsdb_idl_is_connected(ar->idl)       ? "registry not connected"
           : ovsdb_idl_is_lock_contended(ar->idl) ? "another agent has the node"
           : !ovsdb_idl_has_lock(ar->idl)         ? "registry connected, no answer yet"
           : !own_row(ar)                         ? "the registry has no such node"
                                                  : NULL;
}

static void
status_cb(struct unixctl_conn *conn, int argc OVS_UNUSED, const char *argv[] OVS_UNUSED, void *ar_)
{
    const struct agent_registry *ar = ar_;
    const char *why = obstacle(ar);
    char *refusal = why ? NULL : registry_retry_text(&ar->retry);
    char *applied = xasprintf("generation %" PRId64 " is applied", ar->applied);
    const char *state = why                                       ? why
                        : ar->state[0] && strcmp(ar->state, "ok") ? ar->state
                        : ar->applied                             ? applied
                                                                  : "nothing is applied yet";
    char *reply = xasprintf("%s%s%s", state, refusal ? "; " : "", refusal ? refusal : "");

    unixctl_command_reply(conn, reply);
    free(reply);
    free(applied);
    free(refusal);
}

struct agent_registry *
agent_registry_create(const char *db, const char *node_name, unsigned int roles,
                      const char *control)
{
    struct agent_registry *ar = xzalloc(sizeof *ar);

    ar->idl = ovsdb_idl_create(db, &rrec_idl_class, false, true);
    ovsdb_idl_set_leader_only(ar->idl, false);
    agent_monitor(ar->idl, node_name);
    ar->connections = agent_connections_create(ar->idl, node_name);
    ar->probes = agent_probes_create();
    /* Two agents of one node would take each other's reports for changes, without end. */
    char *lock = xasprintf("rocecast_node_%s", node_name);
    ovsdb_idl_set_lock(ar->idl, lock);
    free(lock);
    ar->node_name = xstrdup(node_name);
    ar->roles = roles;
    ar->control = xstrdup(control);
    ar->state = xstrdup("");
    hmap_init(&ar->trees);
    unixctl_command_register("rocecast/status", "", 0, 0, status_cb, ar);
    return ar;
}

void
agent_registry_destroy(struct agent_registry *ar)
{
    struct tree *t;

    if (ar) {
        if (ar->txn) {
            ovsdb_idl_txn_destroy(ar->txn);
        }
        ovsdb_idl_destroy(ar->idl);
        free(ar->node_name);
        free(ar->control);
        free(ar->state);
        HMAP_FOR_EACH_SAFE (t, hmap_node, &ar->trees) {
            forget_tree(ar, t);
        }
        hmap_destroy(&ar->trees);
        agent_connections_destroy(ar->connections);
        agent_probes_destroy(ar->probes);
        registry_retry_uninit(&ar->retry);
        free(ar);
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
    for (size_t i = losses ? losses->n : 0; i-- > 0;) {
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
    size_t n = slow ? slow->n : 0;

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
    if (!notes) {
        return;
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
    for (size_t i = 0; t && i < t->n_questions; i++) {
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
    bool limited = limit && limit->rate;
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
report_tree(const struct agent_registry *ar, const struct rrec_tree_node *tree)
{
    struct tree *t = find_tree(ar, intent_tree_row(tree));

    if (t && t->started && !tree->started) {
        rrec_tree_node_set_started(tree, true);
    }
    if (tree->blank != (t && t->blank)) {
        rrec_tree_node_set_blank(tree, t && t->blank);
    }
    report_slow(tree, t ? &t->slow : NULL);
    report_rate(tree, t ? &t->said : NULL);
    for (enum branch_note note = 0; note < N_BRANCH_NOTES; note++) {
        report_notes(tree, note, t ? &t->notes[note] : NULL);
    }
    report_messages(tree, t);
    report_losses(tree, t ? &t->losses : NULL);
}

/* Writes what the row does not say yet. */
static void
report(struct agent_registry *ar, const struct rrec_node *row)
{
    bool same_row = uuid_equals(&row->header_.uuid, &ar->row_uuid);
    struct ovsdb_idl_txn *txn = ovsdb_idl_txn_create(ar->idl);

    if (strcmp(row->control, ar->control)) {
        rrec_node_set_control(row, ar->control);
    }
    if (same_row && ar->state[0] && strcmp(row->state, ar->state)) {
        rrec_node_set_state(row, ar->state);
    }
    if (same_row && ar->applied && row->nb_cfg != ar->applied) {
        rrec_node_set_nb_cfg(row, ar->applied);
    }
    for (size_t i = 0; i < row->n_trees; i++) {
        const struct rrec_tree_node *tree = row->trees[i];
        size_t n_said = tree->n_slow + tree->n_joined + tree->n_found + tree->n_answered
                        + tree->n_silent + tree->n_lost + tree->n_messages + tree->blank
                        + tree->n_rate;

        if (!hmap_is_empty(&ar->trees) || n_said) {
            report_tree(ar, tree);
        }
    }
    agent_connections_report(ar->connections, txn);
    agent_probes_report(ar->probes, row);
    ar->report = false;
    ar->txn = txn;
}

static void
run_txn(struct agent_registry *ar)
{
    enum ovsdb_idl_txn_status status = ovsdb_idl_txn_commit(ar->txn);

    if (status == TXN_INCOMPLETE) {
        return;
    }
    if (status == TXN_TRY_AGAIN || status == TXN_NOT_LOCKED) {
        ar->report = true;
    } else if (status == TXN_ERROR) {
        ar->report = true;
        registry_retry_refused(&ar->retry, ovsdb_idl_txn_get_error(ar->txn), time_msec(),
                               random_uint32());
    } else {
        registry_retry_taken(&ar->retry);
    }
    ovsdb_idl_txn_destroy(ar->txn);
    ar->txn = NULL;
}

/* Forgets trees that the node has no row of any more. */
static void
forget_trees(struct agent_registry *ar, const struct node_config *cfg)
{
    struct hmap kept = HMAP_INITIALIZER(&kept);
    struct tree *t;

    for (size_t i = 0; i < cfg->n_trees; i++) {
        t = find_tree(ar, cfg->trees[i].row);
        if (t) {
            hmap_remove(&ar->trees, &t->hmap_node);
            hmap_insert(&kept, &t->hmap_node, hash_uint64(t->row));
        }
    }
    HMAP_FOR_EACH_SAFE (t, hmap_node, &ar->trees) {
        forget_tree(ar, t);
    }
    hmap_swap(&ar->trees, &kept);
    hmap_destroy(&kept);
}

/* Why this agent cannot follow this row at all, malloc'd; NULL: it can. */
static char *
row_problem(const struct agent_registry *ar, const struct rrec_node *row)
{
    char *problem = registry_schema_problem(ar->idl, AGENT_TABLES);
    enum node_role role;

    if (problem) {
        char *sentence = xasprintf("the registry: %s", problem);

        free(problem);
        return sentence;
    }
    if (node_role_parse(row->role, &role) && ar->roles & 1u << role) {
        return NULL;
    }
    char *roles = words_join(&node_role_words, ar->roles, ", ", " or ");
    problem = xasprintf("the node has role %s, %s is for role %s", row->role, program_name, roles);
    free(roles);
    return problem;
}

/* Reads a generation that was not handed out yet.  False: there is none, or it makes no sense. */
static bool
read_row(struct agent_registry *ar, const struct rrec_node *row, struct node_config *cfg)
{
    bool same_row = uuid_equals(&row->header_.uuid, &ar->row_uuid);
    char *error = row->cfg ? row_problem(ar, row) : NULL;

    if (!row->cfg || (!error && same_row && row->cfg == ar->generation)) {
        return false;
    }
    if (!same_row) {
        ar->row_uuid = row->header_.uuid;
        ar->applied = 0;
    }
    /* A problem with the row may begin and end without another generation. */
    ar->generation = error ? 0 : row->cfg;
    if (error || !intent_read(row, cfg, &error)) {
        VLOG_ERR_RL(&rl, "node %s: generation %" PRId64 " is invalid and not applied: %s",
                    ar->node_name, row->cfg, error);
        agent_registry_refused(ar, (uint64_t) row->cfg, error);
        free(error);
        return false;
    }
    forget_trees(ar, cfg);
    for (size_t i = 0; i < cfg->n_trees; i++) {
        cfg->trees[i].restarted = !ar->has_read;
    }
    ar->has_read = true;
    return true;
}

/* Reads of which PSNs castd asks.  Those of before keep their answers, as long as they are
 * asked. */
static void
read_questions(struct agent_registry *ar, const struct rrec_tree_node *row)
{
    uint64_t id = intent_tree_row(row);
    struct tree *t = row->n_psns ? make_tree(ar, id) : find_tree(ar, id);
    struct question *now;

    if (!t) {
        return;
    }
    now = xcalloc(MAX(row->n_psns, 1), sizeof *now);
    for (size_t i = 0; i < row->n_psns; i++) {
        psn_t psn = psn_make((uint32_t) row->psns[i]);
        const struct question *before = find_question(t, psn);

        now[i] = before ? *before : (struct question){.psn = psn};
        ar->asked |= !before;
    }
    free(t->questions);
    t->questions = now;
    t->n_questions = row->n_psns;
}

static void
log_connection(struct agent_registry *ar)
{
    bool connected = ovsdb_idl_is_connected(ar->idl);

    if (ar->was_connected != connected) {
        ar->was_connected = connected;
        VLOG_INFO("registry %s", connected ? "connected" : "connection lost, trying again");
    }
}

bool
agent_registry_run(struct agent_registry *ar, struct node_config *cfg)
{
    const struct rrec_node *row;
    bool fresh = false;

    ovsdb_idl_run(ar->idl);
    log_connection(ar);
    if (ar->txn) {
        run_txn(ar);
    }
    if (ar->txn || !ovsdb_idl_has_ever_connected(ar->idl)) {
        return false;
    }
    if (!ovsdb_idl_has_lock(ar->idl)) {
        if (ovsdb_idl_is_lock_contended(ar->idl)) {
            VLOG_WARN_RL(&rl, "node %s has an agent already: waiting for its end", ar->node_name);
        }
        return false;
    }
    if (ar->seqno != ovsdb_idl_get_seqno(ar->idl)) {
        ar->seqno = ovsdb_idl_get_seqno(ar->idl);
        ar->report = true;
        row = own_row(ar);
        if (row) {
            fresh = read_row(ar, row, cfg);
            for (size_t i = 0; i < row->n_trees; i++) {
                read_questions(ar, row->trees[i]);
            }
            agent_connections_read(ar->connections, ar->idl);
        } else {
            VLOG_WARN_RL(&rl, "the registry has no node '%s' (castctl node add %s)", ar->node_name,
                         ar->node_name);
        }
    }
    /* A configuration just handed out is answered first, so that one transaction says it all. */
    row =
        ar->report && !fresh && !registry_retry_waits(&ar->retry, time_msec()) ? own_row(ar) : NULL;
    if (row) {
        report(ar, row);
        run_txn(ar);
    }
    return fresh;
}

void
agent_registry_wait(struct agent_registry *ar)
{
    ovsdb_idl_wait(ar->idl);
    if (ar->txn) {
        ovsdb_idl_txn_wait(ar->txn);
    } else if (ar->report && ovsdb_idl_has_lock(ar->idl) && own_row(ar)) {
        poll_timer_wait_until(ar->retry.why ? ar->retry.next : 0);
    }
}

static void
set_state(struct agent_registry *ar, const char *state)
{
    free(ar->state);
    ar->state = xstrdup(state);
    ar->report = true;
}

void
agent_registry_applied(struct agent_registry *ar, uint64_t generation)
{
    ar->applied = (int64_t) generation;
    set_state(ar, "ok");
}

void
agent_registry_refused(struct agent_registry *ar, uint64_t generation, const char *why)
{
    char *state = xasprintf("generation %" PRIu64 " refused: %s", generation, why);

    set_state(ar, state);
    free(state);
}

void
agent_registry_started(struct agent_registry *ar, const struct tree_config *tree)
{
    struct tree *t = make_tree(ar, tree->row);

    ar->report |= !t->started;
    t->started = true;
}

void
agent_registry_blank(struct agent_registry *ar, const struct tree_config *tree, bool blank)
{
    struct tree *t = blank ? make_tree(ar, tree->row) : find_tree(ar, tree->row);

    if (t) {
        ar->report |= t->blank != blank;
        t->blank = blank;
    }
}

bool
agent_registry_note(struct agent_registry *ar, const struct tree_config *tree, uint32_t branch,
                    enum branch_note note, uint32_t value)
{
    struct simap *notes = &make_tree(ar, tree->row)->notes[note];
    char id[16];

    snprintf(id, sizeof id, "%" PRIu32, branch);
    if (simap_contains(notes, id) && simap_get(notes, id) == value) {
        return false;
    }
    simap_put(notes, id, value);
    ar->report = true;
    return true;
}

bool
agent_registry_lost(struct agent_registry *ar, const struct tree_config *tree, uint32_t branch,
                    const char *why, const psn_t *una)
{
    struct tree *t = make_tree(ar, tree->row);

    if (remarks_find(&t->losses, branch)) {
        return false;
    }
    remarks_add(&t->losses, branch, why, una ? (int64_t) una->v : -1);
    ar->report = true;
    return true;
}

void
agent_registry_has_tree(struct agent_registry *ar, const struct tree_config *tree)
{
    struct tree *t = find_tree(ar, tree->row);

    for (size_t i = t ? t->slow.n : 0; i-- > 0;) {
        struct remark *r = &t->slow.remarks[i];
        bool has_left = true;

        for (size_t j = 0; j < tree->n_branches; j++) {
            has_left &= tree->branches[j].id != r->branch;
        }
        if (has_left) {
            remarks_remove(&t->slow, r);
            ar->report = true;
        }
    }
}

bool
agent_registry_slow(struct agent_registry *ar, const struct tree_config *tree, uint32_t branch,
                    const char *how)
{
    struct tree *t = make_tree(ar, tree->row);
    struct remark *r = remarks_find(&t->slow, branch);

    if (r ? how && !strcmp(r->text, how) : !how) {
        return false;
    }
    if (r) {
        remarks_remove(&t->slow, r);
    }
    if (how) {
        remarks_add(&t->slow, branch, how, -1);
    }
    ar->report = true;
    return true;
}

void
agent_registry_clear_rates(struct agent_registry *ar)
{
    struct tree *t;

    HMAP_FOR_EACH (t, hmap_node, &ar->trees) {
        t->limit.rate = 0;
    }
}

void
agent_registry_rate(struct agent_registry *ar, const struct tree_config *tree, uint64_t rate,
                    enum rate_cause cause, const struct in6_addr *node)
{
    make_tree(ar, tree->row)->limit = (struct limit){rate, cause, *node};
}

void
agent_registry_end_rates(struct agent_registry *ar)
{
    struct tree *t;

    HMAP_FOR_EACH (t, hmap_node, &ar->trees) {
        bool other = t->limit.rate != t->said.rate || t->limit.cause != t->said.cause
                     || memcmp(&t->limit.node, &t->said.node, sizeof t->said.node);

        if (other && (!t->limit.rate || !t->said.rate || time_msec() - t->said_at >= RATE_MSEC)) {
            t->said = t->limit;
            t->said_at = time_msec();
            ar->report = true;
        }
    }
}

bool
agent_registry_connections(struct agent_registry *ar, const struct cm_conn_config **connections,
                           size_t *n)
{
    return agent_connections_news(ar->connections, connections, n);
}

void
agent_registry_clear_connections(struct agent_registry *ar)
{
    agent_connections_clear(ar->connections);
    ar->report = true;
}

void
agent_registry_add_connection(struct agent_registry *ar, const struct cm_conn_info *info)
{
    agent_connections_add(ar->connections, info);
}

void
agent_registry_clear_probes(struct agent_registry *ar)
{
    agent_probes_clear(ar->probes);
}

void
agent_registry_add_probe(struct agent_registry *ar, const struct probe_info *info, uint64_t now)
{
    agent_probes_add(ar->probes, info, now, time_wall_msec());
}

void
agent_registry_end_probes(struct agent_registry *ar)
{
    ar->report |= agent_probes_news(ar->probes, time_msec());
}

bool
agent_registry_asks(struct agent_registry *ar)
{
    bool asks = ar->asked;

    ar->asked = false;
    return asks;
}

void
agent_registry_answer(struct agent_registry *ar, const struct tree_config *tree,
                      agent_registry_find *find, const void *aux)
{
    struct tree *t = find_tree(ar, tree->row);

    for (size_t i = 0; t && i < t->n_questions; i++) {
        struct question *q = &t->questions[i];

        if (q->state != QUESTION_OPEN) {
            continue;
        }
        switch (find(aux, q->psn, &q->message)) {
        case MESSAGE_KNOWN:
            q->state = QUESTION_ANSWERED;
            ar->report = true;
            break;
        case MESSAGE_UNKNOWN: q->state = QUESTION_GIVEN_UP; break;
        case MESSAGE_NOT_YET: break;
        }
    }
}
