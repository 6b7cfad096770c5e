/* SPDX-License-Identifier: Apache-2.0
 *
 * SIDs with flavor NEXT-CSID (RFC 9800, "uSIDs"): a destination address is a container
 *
 *     block | uSID | uSID | ... | 0
 *
 * and a node that finds its own uSID behind the block takes it out: what is behind it moves up.
 * A SID's prefix ends with its own uSID; what is behind that is its argument.
 *
 * Lengths are in bits, and any will do as long as they fit 128; this project's address plan has
 * blocks of 32, nodes and functions of 16 (F3216).  Pure.
 */
#ifndef LIB_USID_H
#define LIB_USID_H 1

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Can a SID with a prefix of 'plen' be in a block of 'block_len'?  There is at least one bit of
 * each, and a multiple of 8 of both (as Linux has it). */
bool usid_lengths_ok(unsigned block_len, unsigned plen);

/* Is DA.Argument 0, that of a SID whose prefix has 'plen' bits?  The whole argument counts, not
 * the next uSID. */
bool usid_argument_is_zero(const struct in6_addr *da, unsigned plen);

/* Takes bits block_len to plen - 1 out of the address: what is behind them moves up, and zeros come
 * behind it (RFC 9800 section 4.1.1, N05 and N06). */
void usid_shift(struct in6_addr *da, unsigned block_len, unsigned plen);

/* Of the first 'len' bits behind 'plen', are all 0? */
bool usid_next_is_zero(const struct in6_addr *da, unsigned plen, unsigned len);

/* One step of a program: a SID of 'plen' bits, in a block of 'block_len'. */
struct usid_step {
    struct in6_addr sid;
    uint8_t block_len;
    uint8_t plen;
};

/* Compresses steps to containers (RFC 9800 section 6): each begins with the whole SID of a step, and
 * takes those behind it whose block is the same and for which there is room.  Returns how many, or
 * 0 if 'max' is not enough or there are no steps. */
size_t usid_pack(const struct usid_step *, size_t n, struct in6_addr containers[], size_t max);

#endif /* lib/usid.h */
