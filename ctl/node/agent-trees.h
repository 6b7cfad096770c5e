/* SPDX-License-Identifier: Apache-2.0
 *
 * What an agent says in the registry of its node's trees (Tree_Node).  Part of
 * ctl/node/agent-registry.c, which has the registry, the configuration and the transactions.
 *
 * A tree is known by its row (struct tree_config), not by its epoch: what is said of one that has
 * left the row of the node is forgotten, also if the node has another one of the same epoch.
 */
#ifndef CTL_NODE_AGENT_TREES_H
#define CTL_NODE_AGENT_TREES_H 1

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "ctl/node/agent-registry.h"

struct agent_trees;
struct intent_rows;
struct ovsdb_idl;
struct rrec_node;
struct rrec_tree_node;

struct agent_trees *agent_trees_create(void);
void agent_trees_destroy(struct agent_trees *);

/* Reads what has changed in the registry: which rows are not as they were handed out, and what castd
 * asks.  The caller clears the IDL's tracked changes after it. */
void agent_trees_read(struct agent_trees *, const struct ovsdb_idl *, const char *node_name);
/* All is read anew, and these rows are the node's. */
void agent_trees_read_all(struct agent_trees *, const struct intent_rows *);
/* Of the node's rows, which name it (intent_is_tree_of()), those that are not as they were handed out:
 * '*n' of them, in an array that the caller frees. */
const struct rrec_tree_node **
agent_trees_changed(const struct agent_trees *, const struct ovsdb_idl *, const struct rrec_node *,
                    size_t *n);
/* Is the row of this tree, which is in the configuration of agent_trees_keep(), as it was then?  For struct
 * intent_before, whose 'aux' is the struct agent_trees. */
bool agent_trees_was_read(const void *trees, uint64_t row);
/* This configuration has been read of the rows, whole: forgets all trees that it does not have. */
void agent_trees_keep(struct agent_trees *, const struct node_config *);
/* The random number of the life of a tree's row, never 0: the same one until the tree is forgotten.
 * It is said from the first call on (Tree_Node.life). */
uint64_t agent_trees_life(struct agent_trees *, uint64_t row);

/* What is to be said, and what castd asks: ctl/node/agent-registry.h describes them under these
 * names. */
void agent_trees_started(struct agent_trees *, const struct tree_config *);
void agent_trees_blank(struct agent_trees *, const struct tree_config *, bool);
bool agent_trees_note(struct agent_trees *, const struct tree_config *, uint32_t branch,
                      enum branch_note, uint32_t value);
bool agent_trees_lost(struct agent_trees *, const struct tree_config *, uint32_t branch,
                      const char *why, const psn_t *una);
void agent_trees_has_tree(struct agent_trees *, const struct tree_config *);
bool agent_trees_slow(struct agent_trees *, const struct tree_config *, uint32_t branch,
                      const char *how);
void agent_trees_clear_rates(struct agent_trees *);
void agent_trees_rate(struct agent_trees *, const struct tree_config *, uint64_t rate,
                      enum rate_cause, const struct in6_addr *node);
void agent_trees_end_rates(struct agent_trees *);
bool agent_trees_asks(struct agent_trees *);
void agent_trees_answer(struct agent_trees *, const struct tree_config *, agent_registry_find *,
                        const void *aux);

/* May there be something that the rows do not say yet? */
bool agent_trees_has_news(const struct agent_trees *);
/* Writes what the rows do not say yet, in the transaction that 'idl' has open. */
void agent_trees_report(struct agent_trees *, const struct ovsdb_idl *);
/* The transaction of agent_trees_report() has ended.  Not 'taken': all of it is to be written again. */
void agent_trees_reported(struct agent_trees *, bool taken);

#endif /* ctl/node/agent-trees.h */
