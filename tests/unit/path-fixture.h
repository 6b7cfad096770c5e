/* SPDX-License-Identifier: Apache-2.0
 *
 * A source agent with two uplinks on a bench, and paths from its host to others.
 */
#ifndef TESTS_UNIT_PATH_FIXTURE_H
#define TESTS_UNIT_PATH_FIXTURE_H 1

#include "tests/unit/agent-fixture.h"

#define OTHER_UPLINK 3
#define OTHER_NODE   0x101

/* A queue pair of the agent's host, as peers know it. */
#define OWN_QPN      0x4712

/* The hosts that there are paths to. */
extern const struct in6_addr path_peer, path_peer2;

struct fixture *path_agent(void);
/* n paths to 'peer', numbers first_number and on, by the uplinks in turn; program i is
 * <Leaf 0x100 + i, 0x500 + i, 0x300>.  Each has a probe with its number.  To be followed by
 * fixture_configure(). */
struct destination_config *path_add(struct fixture *, const struct in6_addr *peer, enum path_policy,
                                    unsigned n, uint16_t first_number);
/* A pin of a flow; likewise. */
void path_pin(struct destination_config *, uint32_t dest_qp, uint16_t number);

/* A WRITE of the host to path_peer. */
struct roce_spec path_request(uint8_t opcode, uint32_t dest_qp, uint32_t psn);
/* Feeds a packet of the host, and returns the number of the path in the flow label of the only frame
 * that leaves; 0: it leaves as it is. */
unsigned path_taken(struct fixture *, const struct roce_spec *);
/* Feeds path_peer's answer to the host: to OWN_QPN, and to this queue pair of it. */
void path_answer(struct fixture *, uint8_t opcode, uint8_t syndrome, uint32_t psn);
void path_answer_to(struct fixture *, uint32_t qpn, uint8_t opcode, uint8_t syndrome, uint32_t psn);
/* The headend is told, as by the prober, how good the way of a probe is; it is 'unknown' at first.
 * Forgets earlier frames. */
void path_set_state(struct fixture *, uint16_t probe, enum path_state);
/* From now on the way of a probe has carried nothing since other ways failed, or has. */
void path_set_silent(uint16_t probe, bool silent);
/* What a probe says of marks, from now on; and how often a headend has doubted the way. */
void path_set_marked(uint16_t probe, unsigned marked);
unsigned path_n_doubts(uint16_t probe);
unsigned path_n_lost(uint16_t probe); /* likewise, since data were lost. */
/* The path with this number, which is there. */
struct path_info path_info(const struct fixture *, uint16_t number);

#endif /* tests/unit/path-fixture.h */
