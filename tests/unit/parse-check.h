/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses a frame for a test, under suspicion.
 */
#ifndef TESTS_UNIT_PARSE_CHECK_H
#define TESTS_UNIT_PARSE_CHECK_H 1

#include <check.h>

#include "lib/parse.h"

/* As ck_assert(), but that writes a message even when it holds: too slow here. */
#define REQUIRE(CONDITION) ((CONDITION) ? (void) 0 : ck_abort_msg("not so: %s", #CONDITION))

/* parse_frame() in a buffer of exactly 'len' bytes, so that sanitizers notice any
 * access past it; fails the test if the result is not nested as it must be. */
enum drop_reason parse_check(const uint8_t *data, size_t len, struct parsed *);

#endif /* tests/unit/parse-check.h */
