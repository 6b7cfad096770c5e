/* SPDX-License-Identifier: Apache-2.0
 *
 * Things by a hash: chains, at most one entry per bucket on average.
 */
#include "lib/hash-index.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/alloc.h"

#define FIRST_BUCKETS 16

void
hash_index_uninit(struct hash_index *ix)
{
    free(ix->buckets);
    *ix = (struct hash_index){0};
}

static struct hash_entry **
bucket_of(const struct hash_index *ix, uint64_t hash)
{
    return &ix->buckets[hash & (ix->n_buckets - 1)];
}

static void
link_entry(struct hash_index *ix, struct hash_entry *e)
{
    struct hash_entry **bucket = bucket_of(ix, e->hash);

    e->next = *bucket;
    *bucket = e;
}

static void
grow(struct hash_index *ix)
{
    struct hash_index old = *ix;

    ix->n_buckets = old.n_buckets ? 2 * old.n_buckets : FIRST_BUCKETS;
    ix->buckets = must_calloc(ix->n_buckets, sizeof *ix->buckets);
    for (size_t i = 0; i < old.n_buckets; i++) {
        for (struct hash_entry *e = old.buckets[i], *next; e; e = next) {
            next = e->next;
            link_entry(ix, e);
        }
    }
    hash_index_uninit(&old);
}

void
hash_index_insert(struct hash_index *ix, struct hash_entry *e, uint64_t hash, void *owner)
{
    assert(!e->owner && owner);
    if (ix->n == ix->n_buckets) {
        grow(ix);
    }
    e->hash = hash;
    e->owner = owner;
    link_entry(ix, e);
    ix->n++;
}

void
hash_index_remove(struct hash_index *ix, struct hash_entry *e)
{
    if (!e->owner) {
        return;
    }
    struct hash_entry **p = bucket_of(ix, e->hash);
    while (*p != e) {
        p = &(*p)->next;
    }
    *p = e->next;
    e->owner = NULL;
    ix->n--;
}

static const struct hash_entry *
same_hash(const struct hash_entry *e, uint64_t hash)
{
    while (e && e->hash != hash) {
        e = e->next;
    }
    return e;
}

const struct hash_entry *
hash_index_first(const struct hash_index *ix, uint64_t hash)
{
    return ix->n ? same_hash(*bucket_of(ix, hash), hash) : NULL;
}

const struct hash_entry *
hash_index_next(const struct hash_entry *e)
{
    return same_hash(e->next, e->hash);
}

uint64_t
hash_number(uint64_t hash, uint64_t number)
{
    hash = (hash ^ number) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
    hash *= 0xd6e8feb86659fd93u;
    return hash ^ hash >> 32;
}

uint64_t
hash_addr(uint64_t hash, const struct in6_addr *addr)
{
    uint64_t half[2];

    memcpy(half, addr, sizeof half);
    return hash_number(hash_number(hash, half[0]), half[1]);
}
