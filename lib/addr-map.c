/* SPDX-License-Identifier: Apache-2.0
 *
 * (IPv6 address, number) to pointer: open addressing, linear probing, at most half
 * full.  The hash is the address's alone, so that all of its numbers are in one run.
 */
#include "lib/addr-map.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/alloc.h"

struct slot {
    struct in6_addr addr;
    uint32_t number;
    void *value; /* NULL: free. */
};

struct addr_map {
    size_t mask;
    size_t n_free;
    struct slot slots[];
};

static size_t
hash(const struct in6_addr *addr)
{
    uint64_t half[2];
    memcpy(half, addr, sizeof half);
    uint64_t h = (half[0] * 0x9e3779b97f4a7c15u) ^ half[1];
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93u;
    return (size_t) (h ^ h >> 32);
}

struct addr_map *
addr_map_create(size_t n)
{
    size_t size = 2;
    while (size < 2 * n) {
        size *= 2;
    }
    struct addr_map *map = must_calloc(1, sizeof *map + size * sizeof map->slots[0]);
    map->mask = size - 1;
    map->n_free = n;
    return map;
}

void
addr_map_destroy(struct addr_map *map)
{
    free(map);
}

static bool
slot_is(const struct slot *slot, const struct in6_addr *addr)
{
    return !memcmp(&slot->addr, addr, sizeof *addr);
}

/* The slot of the pair, or the free one where it would go. */
static size_t
probe(const struct addr_map *map, const struct in6_addr *addr, uint32_t number)
{
    size_t i = hash(addr) & map->mask;
    while (map->slots[i].value
           && !(map->slots[i].number == number && slot_is(&map->slots[i], addr))) {
        i = (i + 1) & map->mask;
    }
    return i;
}

bool
addr_map_insert(struct addr_map *map, const struct in6_addr *addr, uint32_t number, void *value)
{
    struct slot *slot = &map->slots[probe(map, addr, number)];

    if (slot->value) {
        return false;
    }
    assert(value && map->n_free);
    memcpy(&slot->addr, addr, sizeof slot->addr);
    slot->number = number;
    slot->value = value;
    map->n_free--;
    return true;
}

void *
addr_map_find(const struct addr_map *map, const struct in6_addr *addr, uint32_t number)
{
    return map ? map->slots[probe(map, addr, number)].value : NULL;
}

bool
addr_map_contains(const struct addr_map *map, const struct in6_addr *addr)
{
    if (!map) {
        return false;
    }
    size_t i = hash(addr) & map->mask;
    while (map->slots[i].value && !slot_is(&map->slots[i], addr)) {
        i = (i + 1) & map->mask;
    }
    return map->slots[i].value;
}
