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
#include "lib/wire.h"

#define MIN_SLOTS 16
#define N_PLENS   129
#define NO_PLEN   0xff /* slot is free. */

/* An address as two numbers, so that masks are shifts. */
struct halves {
    uint64_t high, low;
};

struct slot {
    struct halves prefix; /* masked. */
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

static struct halves
halves_of(const struct in6_addr *addr)
{
    be64_t half[2];

    memcpy(half, addr, sizeof half);
    return (struct halves){be64_get(half[0]), be64_get(half[1])};
}

/* The first n bits of 64. */
static uint64_t
first_bits(unsigned n)
{
    return n ? UINT64_MAX << (64 - n) : 0;
}

static struct halves
mask(struct halves a, uint8_t plen)
{
    a.high &= first_bits(plen < 64 ? plen : 64);
    a.low &= first_bits(plen < 64 ? 0 : plen - 64u);
    return a;
}

static size_t
hash(const struct fib *fib, struct halves prefix, uint8_t plen)
{
    uint64_t h = (prefix.high ^ plen) * 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 32 ^ prefix.low) * 0xd6e8feb86659fd93u;
    return (size_t) (h ^ h >> 32) & (fib->n_slots - 1);
}

/* The slot of prefix/plen, or the free one where it belongs.  'prefix' is masked. */
static struct slot *
find(const struct fib *fib, struct halves prefix, uint8_t plen)
{
    size_t i = hash(fib, prefix, plen);

    for (;; i = (i + 1) & (fib->n_slots - 1)) {
        struct slot *s = &fib->slots[i];
        if (s->plen == NO_PLEN
            || (s->plen == plen && s->prefix.high == prefix.high && s->prefix.low == prefix.low)) {
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
            *find(fib, old[i].prefix, old[i].plen) = old[i];
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
    struct halves masked = mask(halves_of(prefix), plen);
    struct slot *s = find(fib, masked, plen);

    if (s->plen == NO_PLEN) {
        if (2 * (fib->n + 1) > fib->n_slots) {
            grow(fib);
            s = find(fib, masked, plen);
        }
        fib->n++;
        add_plen(fib, plen);
    }
    *s = (struct slot){masked, plen, value};
}

bool
fib_lookup(const struct fib *fib, const struct in6_addr *addr, uint32_t *value)
{
    struct halves halves = halves_of(addr);

    for (size_t i = 0; i < fib->n_plens; i++) {
        uint8_t plen = fib->plens[i];
        const struct slot *s = find(fib, mask(halves, plen), plen);
        if (s->plen != NO_PLEN) {
            *value = s->value;
            return true;
        }
    }
    return false;
}
