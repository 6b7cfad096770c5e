/* SPDX-License-Identifier: Apache-2.0
 *
 * What fuzz targets share.  A target is tests/fuzz/fuzz-NAME.c with an
 * LLVMFuzzerTestOneInput(); it fails by aborting, ck_assert() included.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H 1

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An input that decisions are taken from. */
struct fuzz_input {
    const uint8_t *data;
    size_t n; /* bytes left. */
};

/* The next byte; 0 once all are used up. */
uint8_t fuzz_byte(struct fuzz_input *);
/* A number below 'limit', which is not 0, from as many bytes as such a number needs. */
uint32_t fuzz_below(struct fuzz_input *, uint32_t limit);
/* As below() for many callers: one of 'n' at 'array'. */
#define FUZZ_CHOOSE(IN, ARRAY) ((ARRAY)[fuzz_below(IN, sizeof(ARRAY) / sizeof *(ARRAY))])
/* The next 'n' bytes, or as many as are left, which *np is then. */
const uint8_t *fuzz_bytes(struct fuzz_input *, size_t n, size_t *np);
/* All that is left as a string, which ends at a NUL in it; malloc'd. */
char *fuzz_text(struct fuzz_input *);

#endif /* tests/fuzz/fuzz.h */
