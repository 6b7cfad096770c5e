/* SPDX-License-Identifier: Apache-2.0
 *
 * SipHash-2-4 (Aumasson and Bernstein, 2012): a MAC of 64 bits that is fast for short messages.
 */
#ifndef LIB_SIPHASH_H
#define LIB_SIPHASH_H 1

#include <stddef.h>
#include <stdint.h>

#define SIPHASH_KEY_LEN 16

uint64_t siphash(const uint8_t key[SIPHASH_KEY_LEN], const void *data, size_t len);

#endif /* lib/siphash.h */
