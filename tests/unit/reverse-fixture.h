/* SPDX-License-Identifier: Apache-2.0
 *
 * One machine of the reverse path (lib/reverse.h), and what happens to it.
 * Branch ids are 1..n; the clock stands still unless a test moves it.
 */
#ifndef TESTS_UNIT_REVERSE_FIXTURE_H
#define TESTS_UNIT_REVERSE_FIXTURE_H 1

#include <check.h>

#include "lib/reverse.h"

extern struct reverse *r;
extern uint32_t n_ids;
extern uint64_t now; /* usec. */

/* 'started_before': the node was started again in a running epoch. */
void setup_life(uint32_t n, uint32_t start_psn, bool started_before);
void setup_group(uint32_t n, uint32_t start_psn);
#define START 100u /* of setup_policy(). */
void setup_policy(uint32_t n, struct reverse_policy policy);
void teardown(void);

void expect_nothing(struct reverse_out out);
void expect(struct reverse_out out, uint8_t syndrome, uint32_t psn);
#define expect_ack(OUT, PSN) expect(OUT, AETH_ACK_UNLIMITED, PSN)
#define expect_nak(OUT, PSN) expect(OUT, AETH_NAK_PSN_SEQ, PSN)

/* A branch says something, which is not refused. */
struct reverse_out respond_msn(uint32_t id, uint8_t syndrome, uint32_t psn, uint32_t msn);
struct reverse_out respond(uint32_t id, uint8_t syndrome, uint32_t psn);
struct reverse_out ack(uint32_t id, uint32_t psn);
struct reverse_out nak(uint32_t id, uint32_t psn);
void expect_refused(uint32_t id, uint8_t syndrome, uint32_t psn, enum drop_reason expected);
struct reverse_out leave(uint32_t id);

/* PSNs first..last go down and are copied to every branch. */
void down(uint32_t first, uint32_t last);
void down_only(uint32_t q);

struct reverse_branch_info branch(uint32_t id);
struct reverse_info info(void);

#endif /* tests/unit/reverse-fixture.h */
