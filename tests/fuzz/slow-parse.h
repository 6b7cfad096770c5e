/* SPDX-License-Identifier: Apache-2.0
 *
 * A second parser of frames, to compare lib/parse.c with.
 */
#ifndef TESTS_FUZZ_SLOW_PARSE_H
#define TESTS_FUZZ_SLOW_PARSE_H 1

#include "lib/parse.h"

/* As parse_frame(); what is in *p after an error is not comparable. */
enum drop_reason slow_parse(const uint8_t *data, size_t len, struct parsed *p);

#endif /* tests/fuzz/slow-parse.h */
