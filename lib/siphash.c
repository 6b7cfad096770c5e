/* SPDX-License-Identifier: Apache-2.0
 *
 * SipHash-2-4.
 */
#include "lib/siphash.h"

static uint64_t
rotate(uint64_t x, unsigned bits)
{
    return x << bits | x >> (64 - bits);
}

static void
rounds(uint64_t v[4], unsigned n)
{
    while (n--) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate(v[1], 13) ^ v[0];
        v[3] = rotate(v[3], 16) ^ v[2];
        v[0] = rotate(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = rotate(v[1], 17) ^ v[2];
        v[3] = rotate(v[3], 21) ^ v[0];
        v[2] = rotate(v[2], 32);
    }
}

/* Up to 8 bytes, little-endian. */
static uint64_t
load(const uint8_t *b, size_t len)
{
    uint64_t x = 0;

    for (size_t i = 0; i < len; i++) {
        x |= (uint64_t) b[i] << 8 * i;
    }
    return x;
}

static void
take(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    rounds(v, 2);
    v[0] ^= word;
}

uint64_t
siphash(const uint8_t key[SIPHASH_KEY_LEN], const void *data, size_t len)
{
    const uint8_t *b = data;
    uint64_t k0 = load(key, 8), k1 = load(key + 8, 8), last = (uint64_t) len << 56;
    uint64_t v[4] = {k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261,
                     k1 ^ 0x7465646279746573};

    for (; len >= 8; b += 8, len -= 8) {
        take(v, load(b, 8));
    }
    take(v, last | load(b, len));
    v[2] ^= 0xff;
    rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
