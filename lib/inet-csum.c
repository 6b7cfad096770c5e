/* SPDX-License-Identifier: Apache-2.0
 *
 * Internet checksum.
 */
#include "lib/inet-csum.h"

/* Adds the big-endian 16-bit words of data[0, len) to 'sum'; an odd last byte is
 * padded with zero.  64 bits do not overflow for any length that fits a packet. */
static uint64_t
add(uint64_t sum, const void *data, size_t len)
{
    const uint8_t *b = data;

    for (; len >= 2; len -= 2, b += 2) {
        sum += (uint32_t) b[0] << 8 | b[1];
    }
    return len ? sum + ((uint32_t) b[0] << 8) : sum;
}

static be16_t
finish(uint64_t sum)
{
    while (sum >> 16) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return be16_put((uint16_t) ~sum);
}

be16_t
inet_csum(const void *data, size_t len)
{
    return finish(add(0, data, len));
}

static uint64_t
add_pseudo(const struct in6_addr *src, const struct in6_addr *dst, uint8_t proto, size_t len)
{
    return add(add(len + proto, src, sizeof *src), dst, sizeof *dst);
}

be16_t
inet_csum_ip6(const struct in6_addr *src, const struct in6_addr *dst, uint8_t proto,
              const void *data, size_t len)
{
    return finish(add(add_pseudo(src, dst, proto, len), data, len));
}

uint16_t
inet_csum_ip6_pseudo(const struct in6_addr *src, const struct in6_addr *dst, uint8_t proto,
                     size_t len)
{
    return (uint16_t) ~be16_get(finish(add_pseudo(src, dst, proto, len)));
}
