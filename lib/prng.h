/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers that look random and follow from a seed: splitmix64 (Steele, Lea and Flood, 2014).
 */
#ifndef LIB_PRNG_H
#define LIB_PRNG_H 1

#include <stdint.h>

#define PRNG_STEP UINT64_C(0x9e3779b97f4a7c15) /* what each number adds to the state. */

static inline uint64_t
prng_next(uint64_t *state)
{
    uint64_t z = *state += PRNG_STEP;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Uniform below 'limit', which is not 0 and at most 2^32. */
static inline uint64_t
prng_below(uint64_t *state, uint64_t limit)
{
    return (prng_next(state) >> 32) * limit >> 32;
}

#endif /* lib/prng.h */
