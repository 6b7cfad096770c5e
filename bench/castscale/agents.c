/* SPDX-License-Identifier: Apache-2.0
 *
 * Model agents (see agents.h).
 */
#include <config.h>

#include "bench/castscale/agents.h"

#include "bench/castscale/process.h"
#include "ctl/node/agent-registry.h"
#include "ctl/registry/rocecast-idl.h"
#include "lib/node-config.h"
#include "openvswitch/poll-loop.h"
#include "ovsdb-idl.h"
#include "util.h"

/* An agent counts who joins from so many packets behind the epoch's first one on. */
#define JOINS_AFTER 4096

/* Which roles a node may have: any. */
#define ALL_ROLES   (1u << NODE_SWITCH | 1u << NODE_AGENT | 1u << NODE_OVS | 1u << NODE_ROUTER)

struct agent {
    struct agent_registry *registry;
    struct node_config config; /* that it has applied last. */
    bool applied;              /* any. */
};

/* Does the branch count from now on, as a node with packets would have found out? */
static bool
may_join(const struct branch_config *b)
{
    return b->join == BRANCH_ADMITTED || (b->join == BRANCH_WAITS && b->kind == BRANCH_NODE);
}

static void
say_of_branches(struct agent *a, const struct tree_config *t)
{
    psn_t first = psn_add(t->start_psn, JOINS_AFTER);

    for (size_t i = 0; i < t->n_branches; i++) {
        const struct branch_config *b = &t->branches[i];

        if (may_join(b)) {
            agent_registry_note(a->registry, t, b->id, NOTE_JOINED, first.v);
        } else if (b->join == BRANCH_ASKED) {
            agent_registry_note(a->registry, t, b->id, NOTE_FOUND, first.v);
        }
    }
}

/* What had started is said before the generation is said to be applied: castd relies on it. */
static void
apply(struct agent *a)
{
    for (size_t i = 0; i < a->config.n_trees; i++) {
        const struct tree_config *t = &a->config.trees[i];

        if (tree_config_is_source(t, &a->config.address)) {
            agent_registry_started(a->registry, t);
        }
        say_of_branches(a, t);
    }
    agent_registry_applied(a->registry, a->config.generation);
    a->applied = true;
}

/* Each message has one packet. */
static enum messages_answer
find_message(const void *start, psn_t psn, uint64_t *number)
{
    *number = psn_add(psn, -(int32_t) ((const psn_t *) start)->v).v;
    return MESSAGE_KNOWN;
}

static void
answer_questions(struct agent *a)
{
    for (size_t i = 0; i < a->config.n_trees; i++) {
        const struct tree_config *t = &a->config.trees[i];

        agent_registry_answer(a->registry, t, find_message, &t->start_psn);
    }
}

static void
agent_run(struct agent *a)
{
    if (agent_registry_run(a->registry, &a->config)) {
        apply(a);
    }
    if (agent_registry_asks(a->registry)) {
        answer_questions(a);
    }
}

/* Waits until the registry has nodes; their names, each malloc'd. */
static size_t
read_names(const char *db, char ***names)
{
    struct ovsdb_idl *idl = ovsdb_idl_create(db, &rrec_idl_class, false, true);
    const struct rrec_node *row;
    size_t n = 0, allocated = 0;

    ovsdb_idl_set_leader_only(idl, false);
    ovsdb_idl_add_column(idl, &rrec_node_col_name);
    *names = NULL;
    for (;;) {
        ovsdb_idl_run(idl);
        if (process_interrupted() || rrec_node_first(idl)) {
            break;
        }
        ovsdb_idl_wait(idl);
        process_interrupted_wait();
        poll_block();
    }
    RREC_NODE_FOR_EACH (row, idl) {
        if (n == allocated) {
            *names = x2nrealloc(*names, &allocated, sizeof **names);
        }
        (*names)[n++] = xstrdup(row->name);
    }
    ovsdb_idl_destroy(idl);
    return n;
}

static bool
all_have_applied(const struct agent *agents, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!agents[i].applied) {
            return false;
        }
    }
    return true;
}

void
agents_run(const char *db, agents_ready *ready)
{
    char **names;
    size_t n = read_names(db, &names);
    struct agent *agents = xcalloc(n + 1, sizeof *agents);

    for (size_t i = 0; i < n; i++) {
        agents[i].registry = agent_registry_create(db, names[i], ALL_ROLES, "");
    }
    while (!process_interrupted()) {
        for (size_t i = 0; i < n; i++) {
            agent_run(&agents[i]);
        }
        if (ready && all_have_applied(agents, n)) {
            ready(n);
            ready = NULL;
        }
        for (size_t i = 0; i < n; i++) {
            agent_registry_wait(agents[i].registry);
        }
        process_interrupted_wait();
        poll_block();
    }
    for (size_t i = 0; i < n; i++) {
        agent_registry_destroy(agents[i].registry);
        node_config_uninit(&agents[i].config);
        free(names[i]);
    }
    free(agents);
    free(names);
}
