/* SPDX-License-Identifier: Apache-2.0
 *
 * The reverse path of one group epoch at one node, with its packets: which branch
 * a response is from, the machine that merges them (lib/reverse.h), and the
 * response that goes up.  The same at edges, transit nodes and source agents.
 *
 *     receiver -> edge     plain, to the Proxy:            branch = inner source
 *     node -> parent       IPv6 in IPv6 to a response SID: branch = outer source
 *     root -> source       plain, from the Proxy, DestQP = the source's QPN
 */
#ifndef LIB_AGGREGATE_H
#define LIB_AGGREGATE_H 1

#include "lib/addr-map.h"
#include "lib/node-base.h"
#include "lib/node-config.h"
#include "lib/packet.h"
#include "lib/parse.h"
#include "lib/reverse.h"

struct aggregate {
    const struct tree_config *config; /* the owner's. */
    struct reverse *reverse;
    struct addr_map *branches; /* of config->branches, by address and kind. */
    uint16_t sport;            /* of responses made here. */
};

/* Without branches until aggregate_configure(), which does not look at config->started any more. */
struct aggregate *aggregate_create(const struct tree_config *);
void aggregate_destroy(struct aggregate *);

/* May the branches of 'config' replace those that 'a' has (NULL: none yet)?  0, or EBUSY and a
 * malloc'd sentence: a branch cannot join while packets are in flight. */
int aggregate_check(const struct aggregate *a, const struct tree_config *config, char **errp);
/* Takes over the branches of 'config', which was checked and stays where it is until the next call.
 * 'old' is what it replaces, without branches at first.  Branches that leave may move the minimum: the
 * result says what to send. */
struct reverse_out aggregate_configure(struct aggregate *, const struct tree_config *old,
                                       const struct tree_config *config, uint64_t now);

/* The branch with this address, or NULL. */
const struct branch_config *
aggregate_branch(const struct aggregate *, enum branch_kind, const struct in6_addr *);

/* Is this frame, addressed to a response SID, an intact response in IPv6, with nothing between?
 * 'h' is what parse_frame() made of 'data'. */
enum drop_reason aggregate_check_tunnelled(const uint8_t *data, const struct parsed *h);
/* A response of branch 'b' that was checked. */
enum drop_reason
aggregate_response(struct aggregate *, const struct branch_config *b, const uint8_t *data,
                   const struct parsed *h, uint64_t now, struct reverse_out *);
/* Likewise for a response that was tunnelled: finds the branch. */
enum drop_reason aggregate_tunnelled(struct aggregate *, const uint8_t *data,
                                     const struct parsed *h, uint64_t now, struct reverse_out *);

/* The packet that says upwards what 'out' tells to send (out->send), complete from its outermost
 * IPv6 header on.  'own' is the node's address.  NULL, and why, if there is none. */
struct packet *
aggregate_build(const struct aggregate *, struct packet_pool *, const struct in6_addr *own,
                const struct reverse_out *out, enum drop_reason *why);
/* Sends upwards from 'node' what the machine decided, if anything: to the parent's response SID, or at
 * the root to the source.  A sequence NAK(m) for the source follows ACK(m - 1): rxe goes back once and
 * then ignores sequence NAKs until an ACK or a completion (docs/draft-notes.md, R6).  Why not, if it
 * could not, is counted.  True: *out was said. */
bool aggregate_send(struct aggregate *, struct node_base *node, const struct reverse_out *out,
                    uint64_t now);

#endif /* lib/aggregate.h */
