/* SPDX-License-Identifier: Apache-2.0
 *
 * IPv6 address to pointer, built whole at configuration time and only read
 * afterwards: groups by Proxy Address, branches by their address.
 */
#ifndef LIB_ADDR_MAP_H
#define LIB_ADDR_MAP_H 1

#include <netinet/in.h>
#include <stddef.h>

struct addr_map;

/* Room for 'n' entries. */
struct addr_map *addr_map_create(size_t n);
void addr_map_destroy(struct addr_map *);

/* The address must not be in the map yet, nor the map full. */
void addr_map_insert(struct addr_map *, const struct in6_addr *, void *value);

/* NULL if absent.  A NULL map is empty. */
void *addr_map_find(const struct addr_map *, const struct in6_addr *);

#endif /* lib/addr-map.h */
