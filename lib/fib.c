/* SPDX-License-Identifier: Apache-2.0
 *
 * IPv6 longest-prefix table.
 *
 * One hash table holds all prefixes, keyed by (masked prefix, length).  A
 * lookup tries each length that occurs, longest first: a node's table has a
 * handful of lengths (/128 addresses, /64 functions, /48 locators, a default),
 * so this is a handful of probes however many routes there are.
 *
 * Open addressing with linear probing, at most half full.  Nothing is deleted: a
 * new configuration makes a new table.
 */
#include "lib/fib.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/alloc.h"

#define MIN_SLOTS 16
#define N_PLENS   129
#define NO_PLEN   0xff /* slot is free. */

struct slot {
    struct in6_addr prefix; /* masked. */
    uint8_t plen;
    uint32_t value;
};

struct fib {
    struct slot *slots;
    size_t n_slots; /* power of two. */
    size_t n;
    uint8_t plens[N_PLENS]; /* lengths in use, longest first. */
    size_t n_plens;
};

static struct in6_addr
mask(const struct in6_addr *addr, uint8_t plen)
{
    struct in6_addr m = *addr;
    size_t whole = plen / 8;

    if (whole < sizeof m.s6_addr) {
        m.s6_addr[whole] &= (uint8_t) (0xff00 >> plen % 8);
        memset(&m.s6_addr[whole] + 1, 0, sizeof m.s6_addr - whole - 1);
    }
    return m;
}

static size_t
hash(const struct fib *fib, const struct in6_addr *prefix, uint8_t plen)
{
    uint64_t half[2];

    memcpy(half, prefix, sizeof half);
    uint64_t h = (half[0] ^ plen) * 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 32 ^ half[1]) * 0xd6e8feb86659fd93u;
    return (size_t) (h ^ h >> 32) & (fib->n_slots - 1);
}

/* The slot of prefix/plen, or the free one where it belongs.  'prefix' is masked. */
static struct slot *
find(const struct fib *fib, const struct in6_addr *prefix, uint8_t plen)
{
    size_t i = hash(fib, prefix, plen);

    for (;; i = (i + 1) & (fib->n_slots - 1)) {
        struct slot *s = &fib->slots[i];
        if (s->plen == NO_PLEN
            || (s->plen == plen && !memcmp(&s->prefix, prefix, sizeof *prefix))) {
            return s;
        }
    }
}

static void
alloc_slots(struct fib *fib, size_t n_slots)
{
    fib->slots = must_calloc(n_slots, sizeof *fib->slots);
    fib->n_slots = n_slots;
    for (size_t i = 0; i < n_slots; i++) {
        fib->slots[i].plen = NO_PLEN;
    }
}

static void
grow(struct fib *fib)
{
    struct slot *old = fib->slots;
    size_t n_old = fib->n_slots;

    alloc_slots(fib, 2 * n_old);
    for (size_t i = 0; i < n_old; i++) {
        if (old[i].plen != NO_PLEN) {
            *find(fib, &old[i].prefix, old[i].plen) = old[i];
        }
    }
    free(old);
}

/* Notes that the length occurs. */
static void
add_plen(struct fib *fib, uint8_t plen)
{
    size_t i = 0;

    while (i < fib->n_plens && fib->plens[i] > plen) {
        i++;
    }
    if (i == fib->n_plens || fib->plens[i] != plen) {
        memmove(&fib->plens[i + 1], &fib->plens[i], fib->n_plens - i);
        fib->plens[i] = plen;
        fib->n_plens++;
    }
}

struct fib *
fib_create(void)
{
    struct fib *fib = must_calloc(1, sizeof *fib);
    alloc_slots(fib, MIN_SLOTS);
    return fib;
}

void
fib_destroy(struct fib *fib)
{
    if (fib) {
        free(fib->slots);
        free(fib);
    }
}

void
fib_set(struct fib *fib, const struct in6_addr *prefix, uint8_t plen, uint32_t value)
{
    assert(plen < N_PLENS);
    struct in6_addr masked = mask(prefix, plen);
    struct slot *s = find(fib, &masked, plen);

    if (s->plen == NO_PLEN) {
        if (2 * (fib->n + 1) > fib->n_slots) {
            grow(fib);
            s = find(fib, &masked, plen);
        }
        fib->n++;
        add_plen(fib, plen);
    }
    *s = (struct slot){masked, plen, value};
}

bool
fib_lookup(const struct fib *fib, const struct in6_addr *addr, uint32_t *value)
{
    for (size_t i = 0; i < fib->n_plens; i++) {
        uint8_t plen = fib->plens[i];
        struct in6_addr masked = mask(addr, plen);
        const struct slot *s = find(fib, &masked, plen);
        if (s->plen != NO_PLEN) {
            *value = s->value;
            return true;
        }
    }
    return false;
}
