/* SPDX-License-Identifier: Apache-2.0
 *
 * How a group's packets come to all edges, and what follows from that: whoever
 * does something else in one mode asks the mode's row here.
 */
#ifndef LIB_TREE_MODE_H
#define LIB_TREE_MODE_H 1

#include "lib/words.h"

enum tree_mode {
    MODE_REPLICATE, /* each node addresses its copies to the next ones' SIDs (RFC 9524). */
    MODE_MCAST,     /* one multicast group address all the way. */
    MODE_INGRESS,   /* the source agent sends each edge a packet of its own. */
};
WORDS_DECLARE(tree_mode, enum tree_mode);

struct tree_mode_row {
    const char *text;
    /* Is each packet addressed to the group's multicast address and sent to a neighbour?  If
     * not, it is addressed to another node's SID and routed. */
    bool addressed_to_group;
    /* Do nodes between source agent and edges send copies to SIDs? */
    bool switches_replicate;
    /* Do they merge responses?  If not, only edges do. */
    bool switches_merge;
    /* Is the source agent the root?  If not, it is only where the first switch cannot merge. */
    bool agent_is_root;
    /* Does the source agent send each edge a packet of its own?  If not, one for all to the first
     * switch. */
    bool packet_per_edge;
};

extern const struct tree_mode_row tree_mode_rows[];

static inline const struct tree_mode_row *
tree_mode(enum tree_mode mode)
{
    return &tree_mode_rows[mode];
}

#endif /* lib/tree-mode.h */
