/* SPDX-License-Identifier: Apache-2.0
 *
 * SIDs with flavor NEXT-CSID.
 */
#include "lib/usid.h"

#include <endian.h>
#include <string.h>

#define ADDR_BITS 128

typedef unsigned __int128 bits;

static bits
load(const struct in6_addr *addr)
{
    uint64_t half[2];

    memcpy(half, addr, sizeof half);
    return (bits) be64toh(half[0]) << 64 | be64toh(half[1]);
}

static void
store(bits v, struct in6_addr *addr)
{
    const uint64_t half[2] = {htobe64((uint64_t) (v >> 64)), htobe64((uint64_t) v)};

    memcpy(addr, half, sizeof half);
}

/* The first n bits are 1, the others 0. */
static bits
mask(unsigned n)
{
    return n ? ~(bits) 0 << (ADDR_BITS - n) : 0;
}

bool
usid_lengths_ok(unsigned block_len, unsigned plen)
{
    return block_len && block_len < plen && plen < ADDR_BITS && block_len % 8 == 0 && plen % 8 == 0;
}

bool
usid_argument_is_zero(const struct in6_addr *da, unsigned plen)
{
    return !(load(da) & ~mask(plen));
}

void
usid_shift(struct in6_addr *da, unsigned block_len, unsigned plen)
{
    bits v = load(da);

    store((v & mask(block_len)) | (v & ~mask(plen)) << (plen - block_len), da);
}

bool
usid_next_is_zero(const struct in6_addr *da, unsigned plen, unsigned len)
{
    unsigned end = plen + len < ADDR_BITS ? plen + len : ADDR_BITS;

    return !(load(da) & mask(end) & ~mask(plen));
}

size_t
usid_pack(const struct usid_step *steps, size_t n, struct in6_addr containers[], size_t max)
{
    size_t n_containers = 0;
    unsigned used = 0; /* bits of the last container. */

    for (size_t i = 0; i < n; i++) {
        const struct usid_step *s = &steps[i];
        unsigned len = s->plen - s->block_len;
        bits sid = load(&s->sid) & mask(s->plen);
        bool fits = n_containers && used + len <= ADDR_BITS
                    && s->block_len == steps[i - 1].block_len
                    && !((load(&steps[i - 1].sid) ^ sid) & mask(s->block_len));

        if (fits) {
            struct in6_addr *last = &containers[n_containers - 1];

            store(load(last) | (sid & ~mask(s->block_len)) >> (used - s->block_len), last);
            used += len;
            continue;
        }
        if (n_containers == max) {
            return 0;
        }
        store(sid, &containers[n_containers++]);
        used = s->plen;
    }
    return n_containers;
}
