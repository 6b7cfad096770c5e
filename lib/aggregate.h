/* SPDX-License-Identifier: Apache-2.0
 *
 * The reverse path of one group epoch at one node, with its packets: finds the
 * branch that a response is from, gives it to the machine that merges responses
 * (lib/reverse.h), and builds the response that goes up.  Edges, transit nodes and
 * source agents use it alike.
 *
 *     receiver -> edge     plain, to the Proxy:            branch = inner source
 *     node -> parent       IPv6 in IPv6 to a response SID: branch = outer source
 *     root -> source       plain, from the Proxy, DestQP = the source's QPN
 *
 * With authenticated data, what nodes send has an SRH (lib/response-auth.h), also what the root sends:
 * that goes to the source agent's response SID, and as it is from there to the source.
 *
 * CNPs take the same ways, and are merged apart (lib/cnp-window.h): they say nothing of PSNs, and
 * the machine does not hear of them.
 *
 * Glossary (docs/draft-notes.md, section 2):
 *
 *     branch        receiver or node below this node whose responses are counted here.
 *     response      ACK, NAK or RNR NAK of a PSN: it goes up, towards the source.
 *     reverse path  the way of responses up the tree, with their merging at each node.
 *     aggregate     the reverse path of one group epoch at one node, with its branches.
 *     una           per branch: next PSN that the branch has not confirmed.
 *     H             next PSN to go down: highest PSN that went down, plus 1.
 *     m             circular minimum of una over all counted branches.
 *     F, told       the m that was last said upwards: everything below F is confirmed.
 */
#ifndef LIB_AGGREGATE_H
#define LIB_AGGREGATE_H 1

#include "lib/addr-map.h"
#include "lib/cnp-window.h"
#include "lib/node-base.h"
#include "lib/node-config.h"
#include "lib/packet.h"
#include "lib/parse.h"
#include "lib/planes.h"
#include "lib/position.h"
#include "lib/response-auth.h"
#include "lib/reverse.h"

/* A receiver whose queue pair has served an earlier source, as long as its position is looked
 * for. */
struct asked_branch {
    uint32_t id;
    bool said; /* that it is over. */
    struct position position;
};

struct aggregate {
    const struct tree_config *config; /* the owner's. */
    struct reverse *reverse;
    struct addr_map *branches; /* of config->branches, by address and kind. */
    bool any_joins;            /* one of config->branches is not BRANCH_COUNTS. */
    size_t n_asked;            /* of config->branches: BRANCH_ASKED, and not found out yet. */
    struct asked_branch *asked;
    uint64_t n_decided;         /* how often it became known where one stands. */
    uint16_t sport;             /* of responses made here. */
    struct l3_next next;        /* where they go. */
    struct plane_use plane;     /* of config->parent_planes: by which they go. */
    struct response_auth *auth; /* of what goes to the parent, and comes from nodes. */
    struct cnp_window *cnps;
    /* The owner sets it before aggregate_configure(): of a receiver's CNPs one counts in this time,
     * and one CNP goes up. */
    uint32_t cnp_interval_usec;
};

/* Has no branches until aggregate_configure(), which ignores config->started.  'auth_seq': what it
 * sends to its parent is authenticated with sequences behind that one. */
struct aggregate *aggregate_create(const struct tree_config *, uint64_t auth_seq);
void aggregate_destroy(struct aggregate *);

/* May the branches of 'config' replace those of 'a' (NULL: there are none yet)?  0, or EBUSY and a
 * malloc'd sentence: a branch cannot join while packets are in flight. */
int aggregate_check(const struct aggregate *a, const struct tree_config *config, char **errp);
/* Takes over the branches of 'config', which aggregate_check() has accepted.  The caller keeps
 * 'config' until the next call.  'old' is the configuration that it replaces, at first one
 * without branches.  Branches that leave may move m: the result says what to send. */
struct reverse_out aggregate_configure(struct aggregate *, const struct tree_config *old,
                                       const struct tree_config *config, uint64_t now);

/* Something that parent_planes are judged by may have changed (R24): responses take another plane, if
 * they have to.  The result says what to send by it. */
struct reverse_out
aggregate_look_at_planes(struct aggregate *, const struct node_base *, uint64_t now);

/* The branch with this address, or NULL. */
const struct branch_config *
aggregate_branch(const struct aggregate *, enum branch_kind, const struct in6_addr *);

/* Is this frame an intact response or CNP, in no tunnel?  DROP_none, or why not.  'h' is what
 * parse_frame() made of 'data'. */
enum drop_reason aggregate_check_plain(const uint8_t *data, const struct parsed *h);
/* Likewise of a frame to a response SID: directly in IPv6, or with an SRH that is finished with and has
 * a DATA-AUTH TLV. */
enum drop_reason aggregate_check_tunnelled(const uint8_t *data, const struct parsed *h);
/* By how much the PSNs of receiver 'b' are above the epoch's (R17): copies get that much more, and
 * what it says that much less. */
int32_t aggregate_shift(const struct aggregate *, const struct branch_config *b);
/* The questions that are due now (R16, R18), one at a time; NULL: no more.  *to is the receiver
 * that the packet goes to. */
struct packet *aggregate_question(struct aggregate *, struct packet_pool *, uint64_t now,
                                  const struct branch_config **to);
/* Time at which aggregate_timer() wants to be called; UINT64_MAX: never. */
uint64_t aggregate_deadline(const struct aggregate *);
/* May be called at any time; aggregate_question() after it.  *cnp: a CNP goes up, too. */
struct reverse_out aggregate_timer(struct aggregate *, uint64_t now, bool *cnp);
/* As reverse_get_info() and reverse_get_branch(), with the branches of which the machine does not
 * know yet (R18). */
void aggregate_get_info(const struct aggregate *, struct reverse_info *);
bool aggregate_get_branch(const struct aggregate *, uint32_t id, struct reverse_branch_info *);
/* Merges a checked response of branch 'b', or counts a checked CNP of it: DROP_cnp, DROP_cnp_soon,
 * or DROP_unknown_branch for one that does not count. */
enum drop_reason
aggregate_response(struct aggregate *, const struct branch_config *b, const uint8_t *data,
                   const struct parsed *h, uint64_t now, struct reverse_out *);
/* Likewise for a tunnelled response: finds the branch, and verifies that it is the branch's if responses
 * are authenticated. */
enum drop_reason aggregate_tunnelled(struct aggregate *, const uint8_t *data,
                                     const struct parsed *h, uint64_t now, struct reverse_out *);
/* The same check, of what a node with this address has sent to the response SID that it has come to. */
enum drop_reason aggregate_verify(struct aggregate *, const struct in6_addr *child,
                                  const uint8_t *data, const struct parsed *h);
/* A packet for branch 'id' has met congestion, and its mark leaves with it: counts a CNP, unless the
 * branch makes its own. */
void aggregate_marked(struct aggregate *, uint32_t id, uint64_t now);

/* The packet for the response *out (out->send is set), or for a CNP if 'out' is NULL, complete from
 * its outermost IPv6 header on.  'own' is the node's address.  On failure NULL, and *why:
 * DROP_auth_missing if there is nothing to authenticate it with. */
struct packet *
aggregate_build(const struct aggregate *, struct packet_pool *, const struct in6_addr *own,
                const struct reverse_out *out, enum drop_reason *why);
/* Sends *out upwards from 'node', if out->send: to the parent's response SID, or at the root to
 * the source.  The root sends ACK(m - 1) before a sequence NAK(m) that confirms more: rxe goes
 * back once and then ignores sequence NAKs until an ACK or a completion (docs/draft-notes.md,
 * R6).  A failure is counted by its reason.  True: *out was said. */
bool aggregate_send(struct aggregate *, struct node_base *node, const struct reverse_out *out,
                    uint64_t now);
/* Sends a CNP likewise. */
void aggregate_send_cnp(struct aggregate *, struct node_base *node, uint64_t now);

#endif /* lib/aggregate.h */
