/* SPDX-License-Identifier: Apache-2.0
 *
 * lib/reverse.c against its model, on event strings that somebody chooses.
 */
#ifndef TESTS_UNIT_REVERSE_COMPARE_H
#define TESTS_UNIT_REVERSE_COMPARE_H 1

#include <stdbool.h>
#include <stdint.h>

struct reverse_string {
    const char *title; /* how to repeat it; a failure names it. */
    /* A number below 'limit', which is not 0: all that happens follows from these. */
    uint32_t (*choose)(void *aux, uint32_t limit);
    void *aux;
    unsigned n_events;
    bool many;   /* branches; otherwise a few. */
    bool policy; /* what becomes of lost ones is set at first. */
};

/* Fails the test at the first event after which the two differ. */
void reverse_compare(const struct reverse_string *);

#endif /* tests/unit/reverse-compare.h */
