/* SPDX-License-Identifier: Apache-2.0
 *
 * The star's edge, which is also the root: what comes down, what receivers say, what goes up.
 */
#ifndef TESTS_UNIT_EDGE_FIXTURE_H
#define TESTS_UNIT_EDGE_FIXTURE_H 1

#include "tests/unit/node-fixture.h"

/* A multicast packet as the agent sends it, for the first n receivers; returns its length. */
size_t edge_encapsulated(uint8_t *out, const struct roce_spec *, unsigned n);
/* A WRITE ONLY of the source, with AckReq. */
struct roce_spec edge_write(uint32_t psn);
/* Feeds a packet of the source for the first n receivers; a response of one receiver. */
void edge_down(struct fixture *, const struct roce_spec *, unsigned n);
void
edge_respond(struct fixture *, unsigned receiver, uint8_t syndrome, uint32_t psn, uint32_t dest_qp);
void edge_respond_msn(struct fixture *, unsigned receiver, uint8_t syndrome, uint32_t psn,
                      uint32_t msn, uint32_t dest_qp);
/* The only frame that was sent is this response, to the source. */
void edge_check_response(const struct fixture *, uint8_t syndrome, uint32_t psn);

#endif /* tests/unit/edge-fixture.h */
