/* SPDX-License-Identifier: Apache-2.0
 *
 * Internet checksum (RFC 1071), with the IPv6 pseudo-header (RFC 8200 section 8.1).
 */
#ifndef LIB_INET_CSUM_H
#define LIB_INET_CSUM_H 1

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/wire.h"

/* Checksum of data[0, len), ready to be stored.  Over data that includes a correct checksum it
 * is 0. */
be16_t inet_csum(const void *data, size_t len);

/* The same for an upper-layer packet of protocol 'proto' in IPv6. */
be16_t inet_csum_ip6(const struct in6_addr *src, const struct in6_addr *dst, uint8_t proto,
                     const void *data, size_t len);

/* The sum of the pseudo-header of such a packet of 'len' bytes, which a kernel stores where the
 * device is to complete the checksum. */
uint16_t inet_csum_ip6_pseudo(const struct in6_addr *src, const struct in6_addr *dst, uint8_t proto,
                              size_t len);

#endif /* lib/inet-csum.h */
