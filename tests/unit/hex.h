/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes and addresses from text, for test vectors.
 */
#ifndef TESTS_UNIT_HEX_H
#define TESTS_UNIT_HEX_H 1

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes from hexadecimal digits; spaces are skipped.  Returns how many. */
size_t hex_bytes(const char *text, uint8_t *out, size_t size);
struct in6_addr hex_addr(const char *text);

#endif /* tests/unit/hex.h */
