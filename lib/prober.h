/* SPDX-License-Identifier: Apache-2.0
 *
 * Probes of a node: sent, answered and taken back in the data plane, over the same programs as data.
 *
 *   - A loop ends in the node's own uSID, so what comes back is what was sent, and no other node takes
 *     part (STAMP's loopback mode for SR).
 *   - A peer answers: it sends back what the probe asks for, along the program that is in the probe.
 *
 * What comes back is matched without a search: its SSID is the number of the probe, its cookie says
 * that this node has sent it, its sequence number whether it is the one that is awaited.
 *
 * All time in microseconds.
 */
#ifndef LIB_PROBER_H
#define LIB_PROBER_H 1

#include "lib/node-base.h"
#include "lib/path-health.h"

#define PROBER_SPORT 49862 /* UDP port that probes are sent from, and answers to. */

struct prober;

struct prober *prober_create(struct node_base *, const struct node_io *);
void prober_destroy(struct prober *);

/* Probes that stay as they are keep their state. */
void prober_configure(struct prober *, const struct node_config *, uint64_t now);
uint64_t prober_deadline(const struct prober *);
void prober_timer(struct prober *, uint64_t now);

/* Is it a UDP packet to STAMP's port, or from it?  It is addressed to this node. */
bool prober_takes(const struct rx *);
/* Takes it: an own probe that has come back, an answer to one, or a probe to be answered.  Says which
 * (DROP_none: it was sent on as the answer, or was one that is awaited), or why not. */
enum drop_reason prober_input(struct prober *, struct rx *);

/* Packets of data go the same way: the next probes have their DSCP. */
void prober_note_data(struct prober *, uint16_t number, uint8_t tc);

/* PATH_UNKNOWN: there is no such probe. */
enum path_state prober_state(const struct prober *, uint16_t number);
/* Has the way of a probe carried something that was sent when the way of another one, 'failed', had
 * begun to lose all?  If not, it may have failed likewise, and nobody knows yet.  True as well if that one
 * has lost nothing, or is not there. */
bool prober_outlives(const struct prober *, uint16_t number, uint16_t failed);
/* How congested the way is, by marks of the last 16 probes that came back: 0 to 256.  Of a way to a peer
 * only marks on the way there count. */
unsigned prober_marked(const struct prober *, uint16_t number);
/* Data give reason to doubt the way: it is probed now, as after a loss, once in an interval.  By then
 * what is under way may have said more, so a probe that is awaited is enough.  'lost': data of it were; how
 * much is lost is found out by a survey (lib/survey.h), as long as that finds losses. */
void prober_doubt(struct prober *, uint16_t number, bool lost, uint64_t now);

/* Of a worker that does not probe by itself (struct node_io): takes over what the one that does knows.
 * Who calls it sees to it that neither is at work. */
void prober_follow(struct prober *, const struct prober *other, uint64_t now);

/* Member of struct node_class. */
bool prober_probe(const void *node, size_t i, struct probe_info *);

#endif /* lib/prober.h */
