/* SPDX-License-Identifier: Apache-2.0
 *
 * An agent's side of the registry: swedge and srcagent both follow one Node
 * row, apply what it says and report the generation that they applied.
 *
 * The connection is retried for ever, and so is what the registry refuses.
 * While the registry is away, or the row is missing or invalid,
 * agent_registry_run() says nothing and the agent keeps what it has.
 *
 * A node has one agent: a second one waits until the first is gone.
 *
 * The order that castd relies on: an agent that applies a configuration calls
 * agent_registry_started() and agent_registry_lost() for whatever had started and
 * was lost by then *before* it calls agent_registry_applied().  Reports made between two calls of
 * agent_registry_run() are written in one transaction.
 */
#ifndef CTL_NODE_AGENT_REGISTRY_H
#define CTL_NODE_AGENT_REGISTRY_H 1

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/messages.h"
#include "lib/rate-control.h"
#include "lib/wire.h"

struct agent_registry;
struct cm_conn_config;
struct cm_conn_info;
struct node_config;
struct probe_info;
struct tree_config;

/* 'db' is an OVSDB remote, or several with commas between them.  'roles' is what Node.role may say,
 * a bit for each enum node_role.  'control' is the path of the agent's control socket, for
 * Node.control.  The strings are copied.  The control socket gets the command rocecast/status, so
 * a process may have one of these, until it ends. */
struct agent_registry *agent_registry_create(const char *db, const char *node_name,
                                             unsigned int roles, const char *control);
void agent_registry_destroy(struct agent_registry *);

/* Talks to the registry.  True if there is a configuration that was not handed out before: it is put in
 * the place of the one in *cfg.  That is empty, all zeros, before the first one or if the caller has
 * given it away, and otherwise the one that was handed out last: what has not changed is taken over
 * from it.  The caller frees it in the end with node_config_uninit().  It is handed out again if only its
 * generation changed.  The caller answers each with agent_registry_applied() or _refused(). */
bool agent_registry_run(struct agent_registry *, struct node_config *cfg);
/* Arranges for poll_block() to wake up when agent_registry_run() has something to do. */
void agent_registry_wait(struct agent_registry *);

/* The node now runs 'generation'. */
void agent_registry_applied(struct agent_registry *, uint64_t generation);
/* The node could not apply 'generation' and still runs the one before; 'why' goes to Node.state. */
void agent_registry_refused(struct agent_registry *, uint64_t generation, const char *why);
/* The functions below are about a tree that was handed out: what is said of one that has left the
 * row is forgotten, also if the node has another one of the same epoch. */
/* A packet of this group epoch went down.  Idempotent and cheap. */
void agent_registry_started(struct agent_registry *, const struct tree_config *);
/* Is nobody admitted into this tree, since the node was started again (reverse_info.blank)? */
void agent_registry_blank(struct agent_registry *, const struct tree_config *, bool);
/* What a node says of a branch by a number, for castd to take up; as long as it wants that. */
enum branch_note {
    NOTE_JOINED,   /* Tree_Node.joined: it has waited, and counts from this PSN on. */
    NOTE_FOUND,    /* Tree_Node.found: its queue pair expects this PSN. */
    NOTE_ANSWERED, /* Tree_Node.answered: its queue pair lives, as of this doubt. */
    NOTE_SILENT,   /* Tree_Node.silent: it does not answer, as of this doubt. */
    N_BRANCH_NOTES,
};
/* False, and cheap, if that was said before. */
bool agent_registry_note(struct agent_registry *, const struct tree_config *, uint32_t branch,
                         enum branch_note, uint32_t value);
/* A branch of this group epoch was lost: 'why' goes to Tree_Node.lost, and the lowest PSN that it
 * has not confirmed to Tree_Node.lost_psn ('una' NULL: it did not count), as long as the row has
 * the branch.  False, and cheap, if that was said already; the first reason stays. */
bool agent_registry_lost(struct agent_registry *, const struct tree_config *, uint32_t branch,
                         const char *why, const psn_t *una);
/* The node runs this tree: what was said of slow branches that it has no more is over. */
void agent_registry_has_tree(struct agent_registry *, const struct tree_config *);
/* A branch of this group epoch is slow: 'how' goes to Tree_Node.slow; NULL: it is not, or no more.
 * True if that is news. */
bool agent_registry_slow(struct agent_registry *, const struct tree_config *, uint32_t branch,
                         const char *how);

/* Rates to which groups are limited: agent_registry_clear_rates(), then one call for each, then
 * agent_registry_end_rates().  Another rate of a group that was limited before is written only if
 * nothing was for a second; 'node' is :: for a CNP. */
void agent_registry_clear_rates(struct agent_registry *);
void agent_registry_rate(struct agent_registry *, const struct tree_config *, uint64_t rate,
                         enum rate_cause, const struct in6_addr *node);
void agent_registry_end_rates(struct agent_registry *);

/* RDMA-CM connections go by no generation.  True for the first time, and if the registry has others,
 * or says something else of them, than when this was last true: all of them are in *connections,
 * which is valid until the next agent_registry_run(). */
bool agent_registry_connections(struct agent_registry *, const struct cm_conn_config **connections,
                                size_t *n);
/* The connections of the node: forgets all of before, then one call for each.  The states go to
 * their rows; a passive one that has none gets one. */
void agent_registry_clear_connections(struct agent_registry *);
void agent_registry_add_connection(struct agent_registry *, const struct cm_conn_info *);

/* Probes: agent_registry_clear_probes(), then one call for each, then agent_registry_end_probes().  Their
 * states go to their rows, if they are others than before, at most once a second.  'now' is on the
 * node's scale. */
void agent_registry_clear_probes(struct agent_registry *);
void agent_registry_add_probe(struct agent_registry *, const struct probe_info *, uint64_t now);
void agent_registry_end_probes(struct agent_registry *);

/* Source agent: does castd ask in which messages PSNs are (Tree_Node.psns), and has not asked so
 * before the last call? */
bool agent_registry_asks(struct agent_registry *);
/* Answers, with messages_find() of this group epoch, what is asked of it; cheap if nothing is.
 * What never will be known stays without an answer, whatever 'find' says later: PSNs come round. */
typedef enum messages_answer agent_registry_find(const void *aux, psn_t, uint64_t *number);
void agent_registry_answer(struct agent_registry *, const struct tree_config *,
                           agent_registry_find *, const void *aux);

#endif /* ctl/node/agent-registry.h */
