/* SPDX-License-Identifier: Apache-2.0
 *
 * How often what is interesting happened in a lab, seen from outside: from frames,
 * and from what nodes show of themselves before and after each event.
 */
#ifndef TESTS_MODEL_LAB_EVENT_H
#define TESTS_MODEL_LAB_EVENT_H 1

#include <stdbool.h>
#include <stdint.h>

#include "lib/reverse.h"
#include "tests/model/rc-endpoint.h"

#define LAB_N_EPOCHS 4

struct lab;
struct lab_node;
struct parsed;

/* name, what happened. */
#define LAB_EVENTS                                                                 \
    EVENT(lost, "a frame got lost on a link")                                      \
    EVENT(repeated, "a link repeated a frame")                                     \
    EVENT(late, "a frame was overtaken")                                           \
    EVENT(spoilt, "a frame was spoilt")                                            \
    EVENT(gone_back, "the source went back")                                       \
    EVENT(wrap, "PSNs of an epoch went over 0")                                    \
    EVENT(nak_at_minimum, "a sequence NAK at the minimum")                         \
    EVENT(nak_held, "a sequence NAK above the minimum")                            \
    EVENT(nak_expired, "a NAK above the minimum was held for too long: NAK(m)")    \
    EVENT(nak_presumed, "the minimum stood still: a NAK that no branch asked for") \
    EVENT(rnr_at_minimum, "an RNR NAK at the minimum")                             \
    EVENT(rnr_held, "an RNR NAK above the minimum")                                \
    EVENT(fatal_at_minimum, "a fatal NAK at the minimum")                          \
    EVENT(fatal_held, "a fatal NAK above the minimum")                             \
    EVENT(said_again, "a response that said nothing new")                          \
    EVENT(ack_repeated, "an ACK went up again")                                    \
    EVENT(never_sent, "a response for a PSN that was never sent was refused")      \
    EVENT(restart_in_flight, "a node was started again with data in flight")       \
    EVENT(anchored, "a node that started without state knew all of its branches")  \
    EVENT(epoch_in_flight, "an epoch ended with data in flight")                   \
    EVENT(kept, "a queue pair went into another epoch")                            \
    EVENT(half, "a receiver had half a message when an epoch ended")               \
    EVENT(stale_epoch, "a packet of an epoch that was over was dropped")           \
    EVENT(left_in_flight, "a receiver left with data in flight")                   \
    EVENT(left_and_moved, "a receiver left, which moved the minimum")              \
    EVENT(silent, "a receiver was lost because it was silent")                     \
    EVENT(unanswered, "a receiver was lost that did not answer questions")         \
    EVENT(joined, "a receiver joined in mid-stream")                               \
    EVENT(refused, "a receiver was lost because it refused")                       \
    EVENT(slow, "a branch was called slow")                                        \
    EVENT(slow_lost, "a receiver was lost because it was slow")                    \
    EVENT(node_lost, "a node was lost because it was silent")                      \
    EVENT(pruned_and_moved, "a branch was pruned, which moved the minimum")        \
    EVENT(source_failed, "the source failed, as it should")                        \
    EVENT(calm, "the faults ended with data in flight, and all was completed")     \
    EVENT(marked, "a frame left a node with CE")                                   \
    EVENT(queue_full, "a queue dropped a frame")                                   \
    EVENT(cut, "the rate of a flow was cut")                                       \
    EVENT(cnp_up, "a node sent a CNP upwards")                                     \
    EVENT(fast_cnp, "a Fast CNP was taken")                                        \
    EVENT(paced, "a packet waited because of its flow's rate")                     \
    EVENT(replaced, "a packet took the place of one that waited")                  \
    EVENT(moved, "a flow took another path")                                       \
    EVENT(plane_failed, "an end of a group left a plane that was bad")             \
    EVENT(plane_changed, "an end of a group took the plane that was wanted")       \
    EVENT(switched, "a flow left a path that had failed")                          \
    EVENT(switch_planned, "a flow left a path as somebody wanted it to")           \
    EVENT(nak_made, "a headend made a NAK for its host")                           \
    EVENT(answer_repeated, "a headend said the last answer of its host again")     \
    EVENT(replayed, "authenticated data that an edge had taken came again")        \
    EVENT(altered, "authenticated data came altered")                              \
    EVENT(response_replayed, "an authenticated response came again")               \
    EVENT(response_altered, "an authenticated response came altered")              \
    EVENT(probe_lost, "a probe got lost")                                          \
    EVENT(probe_forged, "a forged answer to a probe came")                         \
    EVENT(way_bad, "a way that was broken was bad after three intervals")

enum lab_event {
#define EVENT(NAME, HELP) LAB_SAW_##NAME,
    LAB_EVENTS
#undef EVENT
        N_LAB_EVENTS
};

/* Why the source's timer had to move things: a receiver lacks the PSN that the source waits for,
 * and... */
enum lab_stall {
    STALL_LOST_AGAIN, /* the source has gone back there already, and ignores NAKs. */
    STALL_IGNORED,    /* the source has gone back elsewhere, and ignores NAKs. */
    STALL_SAID,       /* it has said so, but the source did not go back. */
    STALL_TAIL,       /* it has not: nothing came behind it. */
    /* or all have it, and... */
    STALL_UNKNOWN, /* the root does not know: an ACK got lost, or nobody was asked. */
    STALL_KNOWN,   /* the root knows. */
    N_LAB_STALLS
};

/* What a node showed when it was last looked at. */
struct lab_seen {
    struct {
        bool valid;
        bool without_state;
        struct reverse_info info;
    } trees[LAB_N_EPOCHS]; /* by epoch. */
};

/* A response that is about to come to a node, and what is known of its branch. */
struct lab_response {
    bool valid;
    unsigned epoch;
    size_t tree;
    uint32_t branch;
    struct reverse_branch_info before;
};

const char *lab_event_name(enum lab_event);
const char *lab_event_help(enum lab_event);

/* Around a frame that comes to a node.  The second checks besides that a condition of a branch does
 * not vanish by what the branch says again. */
void lab_event_before(const struct lab *, const struct lab_node *, const uint8_t *frame,
                      const struct parsed *, struct lab_response *);
void lab_event_after(struct lab *, struct lab_node *, const struct lab_response *);
/* A node did something: because of its timer, or a configuration that may have removed somebody. */
void lab_event_look(struct lab *, struct lab_node *, bool timer, bool removed);
/* The source's timer is over.  This is what it showed before that. */
void lab_event_timeout(struct lab *, const struct rc_info *);
/* What is counted by others. */
void lab_event_end(struct lab *);

#endif /* tests/model/lab-event.h */
