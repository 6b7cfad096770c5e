/* SPDX-License-Identifier: Apache-2.0
 *
 * Known mistakes that can be switched on, for castsim only: a simulator that
 * does not find them would not find others either (docs/simulation.md).
 *
 * Each is what an implementer gets who follows the draft's letter, by the hole in
 * docs/draft-notes.md that it falls into, or one that we have made ourselves.  The code
 * asks DEFECT(NAME) at the one place where it matters.  castsim has files of its own with these
 * places (ROCECAST_DEFECTS; 'defect_src' in the Makefile); in all others DEFECT() is false.
 */
#ifndef LIB_DEFECT_H
#define LIB_DEFECT_H 1

#include <stdbool.h>
#include <stdint.h>

/* name as on the command line, what goes wrong. */
#define DEFECTS                                                                                   \
    DEFECT_ENTRY(H1, "copies keep the source's address instead of the Proxy's")                   \
    DEFECT_ENTRY(H9, "the acknowledged PSN of a branch starts at 0")                              \
    DEFECT_ENTRY(H10, "what a branch has confirmed may go backwards")                             \
    DEFECT_ENTRY(ACK_CLEARS_NAK, "a duplicate ACK clears a NAK")                                  \
    DEFECT_ENTRY(H13, "an ACK that does not move the minimum is never repeated")                  \
    DEFECT_ENTRY(H14, "an RNR NAK goes up as it is, whatever other branches have")                \
    DEFECT_ENTRY(H15, "a fatal NAK is not latched: a copy clears it")                             \
    DEFECT_ENTRY(H27, "a branch that leaves goes on to hold the minimum")                         \
    DEFECT_ENTRY(H28, "responses for PSNs that were never sent count")                            \
    DEFECT_ENTRY(EPOCH, "a new epoch goes on with the state of the one before")                   \
    DEFECT_ENTRY(NOT_AHEAD, "after a restart, answers for PSNs beyond those sent again are lost") \
    DEFECT_ENTRY(ANCHOR, "after a restart everything before the first packet seen is confirmed")  \
    DEFECT_ENTRY(RNR_CODES,                                                                       \
                 "RNR NAKs that differ in their time count without a copy between them")          \
    DEFECT_ENTRY(PACE_UNSEEN, "a receiver that holds up the group is never called slow")          \
    DEFECT_ENTRY(JOIN_EARLY, "a receiver that joins counts from the PSN before its first")        \
    DEFECT_ENTRY(JOIN_LATE, "a receiver that joins counts from the PSN behind its first")         \
    DEFECT_ENTRY(JOIN_BEHIND, "a node has joined with what it says first, however old")           \
    DEFECT_ENTRY(JOIN_SIGN, "a late receiver's PSNs are moved the wrong way where they wrap")     \
    DEFECT_ENTRY(JOIN_BELOW, "what a late receiver has from before its first PSN is taken")       \
    DEFECT_ENTRY(POSITION_UNTESTED, "a queue pair with half a message is taken over")             \
    DEFECT_ENTRY(POSITION_TEST, "the PSN that the test has taken is forgotten")                   \
    DEFECT_ENTRY(PACE_EARLY, "a branch is called slow after a fourth of the liveness time")       \
    DEFECT_ENTRY(CNP_COUNT, "counts of CNPs are not zero when their window is over")              \
    DEFECT_ENTRY(CM_RTU_ONCE, "RDMA-CM: a repeated REP gets no RTU")                              \
    DEFECT_ENTRY(CM_DREQ_ONCE, "RDMA-CM: a repeated DREQ gets no DREP")                           \
    DEFECT_ENTRY(CM_DREQ_FORGED, "RDMA-CM: IDs of a DREQ are not compared")                       \
    DEFECT_ENTRY(CM_LATE_REQ, "RDMA-CM: a late copy of a REQ begins its connection again")        \
    DEFECT_ENTRY(FAST_CNP_MARKS, "packets of a sender that takes Fast CNPs are marked, too")      \
    DEFECT_ENTRY(CUT_EACH, "each signal of congestion cuts the rate, not one in an interval")     \
    DEFECT_ENTRY(WAITING_COUNTS, "a PSN has gone down when its packet begins to wait")            \
    DEFECT_ENTRY(MOVE_IN_FLIGHT, "a flow takes another path while packets of it are under way")   \
    DEFECT_ENTRY(SWITCH_SILENT, "a host hears nothing when its flow leaves a path that failed")   \
    DEFECT_ENTRY(NAK_BEYOND, "the NAK for such a flow is for what comes next")                    \
    DEFECT_ENTRY(NAK_AGAIN, "a host that has gone back hears another sequence NAK")               \
    DEFECT_ENTRY(BINDING_KEPT, "answers' queue pair stays that of a flow which is another one")   \
    DEFECT_ENTRY(NO_SURVEY, "data that is lost has its way probed once, and not often")           \
    DEFECT_ENTRY(PROBE_STALE, "what comes back counts for the newest probe, however late it is")  \
    DEFECT_ENTRY(PROBE_FORGED, "cookies of what comes back for probes are not compared")          \
    DEFECT_ENTRY(DATA_HEADER, "the tag of authenticated data does not cover the inner packet")    \
    DEFECT_ENTRY(DATA_WINDOW, "authenticated data that has come before is taken again")           \
    DEFECT_ENTRY(DATA_FLOOR, "an edge that was started again takes data of instances before")     \
    DEFECT_ENTRY(DATA_NONCE, "a node that was started again goes on with its row's instance")     \
    DEFECT_ENTRY(RESPONSE_TAG, "tags of nodes' responses are not compared")                       \
    DEFECT_ENTRY(RESPONSE_FLOOR, "a parent that was started again takes responses of before")     \
    DEFECT_ENTRY(RESPONSE_PLAIN, "responses without a tag are taken")                             \
    DEFECT_ENTRY(RESPONSE_ROOT, "the source agent takes those of a root without one")

enum defect {
#define DEFECT_ENTRY(NAME, HELP) DEFECT_##NAME,
    DEFECTS
#undef DEFECT_ENTRY
        N_DEFECTS
};

extern uint64_t defects; /* bit by bit; castsim.c. */
#ifdef ROCECAST_DEFECTS
#define DEFECT(NAME) ((defects & (UINT64_C(1) << DEFECT_##NAME)) != 0)
#else
#define DEFECT(NAME) false
#endif

#endif /* lib/defect.h */
