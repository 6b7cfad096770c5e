/* SPDX-License-Identifier: Apache-2.0
 *
 * A set of a lab's receivers, by index.
 */
#ifndef TESTS_MODEL_LAB_SET_H
#define TESTS_MODEL_LAB_SET_H 1

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define LAB_MAX_RECEIVERS 1000
#define LAB_SET_WORDS     ((LAB_MAX_RECEIVERS + 63) / 64)

struct lab_set {
    uint64_t words[LAB_SET_WORDS];
};

static inline bool
lab_set_has(const struct lab_set *s, unsigned i)
{
    return s->words[i / 64] >> i % 64 & 1;
}

static inline void
lab_set_add(struct lab_set *s, unsigned i)
{
    s->words[i / 64] |= UINT64_C(1) << i % 64;
}

static inline void
lab_set_remove(struct lab_set *s, unsigned i)
{
    s->words[i / 64] &= ~(UINT64_C(1) << i % 64);
}

static inline void
lab_set_merge(struct lab_set *s, const struct lab_set *more)
{
    for (unsigned w = 0; w < LAB_SET_WORDS; w++) {
        s->words[w] |= more->words[w];
    }
}

static inline struct lab_set
lab_set_both(const struct lab_set *a, const struct lab_set *b)
{
    struct lab_set s;
    for (unsigned w = 0; w < LAB_SET_WORDS; w++) {
        s.words[w] = a->words[w] & b->words[w];
    }
    return s;
}

static inline struct lab_set
lab_set_without(const struct lab_set *a, const struct lab_set *b)
{
    struct lab_set s;
    for (unsigned w = 0; w < LAB_SET_WORDS; w++) {
        s.words[w] = a->words[w] & ~b->words[w];
    }
    return s;
}

static inline bool
lab_set_equal(const struct lab_set *a, const struct lab_set *b)
{
    return !memcmp(a, b, sizeof *a);
}

static inline unsigned
lab_set_count(const struct lab_set *s)
{
    unsigned n = 0;
    for (unsigned w = 0; w < LAB_SET_WORDS; w++) {
        n += (unsigned) __builtin_popcountll(s->words[w]);
    }
    return n;
}

static inline bool
lab_set_is_empty(const struct lab_set *s)
{
    return !lab_set_count(s);
}

/* The lowest member from 'i' on; LAB_MAX_RECEIVERS: none. */
static inline unsigned
lab_set_next(const struct lab_set *s, unsigned i)
{
    while (i < LAB_MAX_RECEIVERS) {
        uint64_t rest = s->words[i / 64] >> i % 64;
        if (rest) {
            return i + (unsigned) __builtin_ctzll(rest);
        }
        i = (i / 64 + 1) * 64;
    }
    return LAB_MAX_RECEIVERS;
}

#define LAB_SET_FOR_EACH(I, SET) \
    for (unsigned I = lab_set_next(SET, 0); (I) < LAB_MAX_RECEIVERS; I = lab_set_next(SET, (I) + 1))

#endif /* tests/model/lab-set.h */
