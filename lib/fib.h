/* SPDX-License-Identifier: Apache-2.0
 *
 * IPv6 longest-prefix table: prefix to a number that means something to the
 * caller (an index).  Changed at configuration time, read per packet.
 */
#ifndef LIB_FIB_H
#define LIB_FIB_H 1

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fib;

struct fib *fib_create(void);
void fib_destroy(struct fib *);

/* Adds prefix/plen or replaces its value.  plen <= 128; bits of 'prefix' behind
 * plen do not matter. */
void fib_set(struct fib *, const struct in6_addr *prefix, uint8_t plen, uint32_t value);

/* Value of the longest prefix that covers 'addr'; false if none does. */
bool fib_lookup(const struct fib *, const struct in6_addr *addr, uint32_t *value);

#endif /* lib/fib.h */
