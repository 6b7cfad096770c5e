/* SPDX-License-Identifier: Apache-2.0
 *
 * IPv6 longest-prefix table.
 *
 * One hash table holds all prefixes, keyed by (masked prefix, length).  A
 * lookup tries each length that occurs, longest first: a node's table has a
 * handful of lengths (/128 addresses, /64 functions, /48 locators, a default),
 * so this is a handful of probes however many routes there are.
 *
 * Open addressing with linear probing, at most half full; deletion moves later
 * entries of the run back, so there are no tombstones.
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
    size_t n_by_plen[N_PLENS];
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
    fib->slots = malloc(n_slots * sizeof *fib->slots);
    if (!fib->slots) {
        abort();
    }
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

static void
count(struct fib *fib, uint8_t plen, size_t n)
{
    fib->n_by_plen[plen] = n;
    fib->n_plens = 0;
    for (size_t i = N_PLENS; i-- > 0;) {
        if (fib->n_by_plen[i]) {
            fib->plens[fib->n_plens++] = (uint8_t) i;
        }
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
        count(fib, plen, fib->n_by_plen[plen] + 1);
    }
    *s = (struct slot){masked, plen, value};
}

bool
fib_delete(struct fib *fib, const struct in6_addr *prefix, uint8_t plen)
{
    assert(plen < N_PLENS);
    struct in6_addr masked = mask(prefix, plen);
    struct slot *hole = find(fib, &masked, plen);

    if (hole->plen == NO_PLEN) {
        return false;
    }
    hole->plen = NO_PLEN;
    fib->n--;
    count(fib, plen, fib->n_by_plen[plen] - 1);

    /* Entries behind the hole may have been pushed past it: put each where a
     * search finds it now. */
    for (size_t i = (size_t) (hole - fib->slots);;) {
        i = (i + 1) & (fib->n_slots - 1);
        if (fib->slots[i].plen == NO_PLEN) {
            return true;
        }
        struct slot moved = fib->slots[i];
        fib->slots[i].plen = NO_PLEN;
        *find(fib, &moved.prefix, moved.plen) = moved;
    }
}

size_t
fib_count(const struct fib *fib)
{
    return fib->n;
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
