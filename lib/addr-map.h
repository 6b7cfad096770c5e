/* SPDX-License-Identifier: Apache-2.0
 *
 * (IPv6 address, number) to pointer, built whole at configuration time and only
 * read afterwards: group epochs by Proxy Address and Designated QPN, branches by
 * their address.
 */
#ifndef LIB_ADDR_MAP_H
#define LIB_ADDR_MAP_H 1

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct addr_map;

/* Room for 'n' entries. */
struct addr_map *addr_map_create(size_t n);
void addr_map_destroy(struct addr_map *);

/* False, and nothing done, if the pair is in the map already.  The map must not
 * be full. */
bool addr_map_insert(struct addr_map *, const struct in6_addr *, uint32_t number, void *value);

/* NULL if absent.  A NULL map is empty. */
void *addr_map_find(const struct addr_map *, const struct in6_addr *, uint32_t number);
/* Is the address there, with any number? */
bool addr_map_contains(const struct addr_map *, const struct in6_addr *);

#endif /* lib/addr-map.h */
