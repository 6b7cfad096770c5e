/* SPDX-License-Identifier: Apache-2.0
 *
 * Things by a hash of what they are looked up by, for those that come and go.  Several may have the
 * same hash, and the same key.
 *
 * An owner has one struct hash_entry inside for each index that it is in.
 */
#ifndef LIB_HASH_INDEX_H
#define LIB_HASH_INDEX_H 1

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

/* Starts all zero. */
struct hash_entry {
    struct hash_entry *next;
    uint64_t hash;
    void *owner; /* NULL: it is in no index. */
};

/* Starts all zero. */
struct hash_index {
    struct hash_entry **buckets;
    size_t n_buckets; /* 0 or a power of 2. */
    size_t n;
};

void hash_index_uninit(struct hash_index *);
/* The entry must be in no index. */
void hash_index_insert(struct hash_index *, struct hash_entry *, uint64_t hash, void *owner);
/* Does nothing if the entry is in no index. */
void hash_index_remove(struct hash_index *, struct hash_entry *);

/* The entries of this hash, one after the other; NULL: no more. */
const struct hash_entry *hash_index_first(const struct hash_index *, uint64_t hash);
const struct hash_entry *hash_index_next(const struct hash_entry *);

/* A hash of an earlier one, or of 0, and more. */
uint64_t hash_number(uint64_t hash, uint64_t number);
uint64_t hash_addr(uint64_t hash, const struct in6_addr *);

#endif /* lib/hash-index.h */
