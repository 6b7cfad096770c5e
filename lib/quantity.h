/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers with units as people write them: rates, times, shares.
 */
#ifndef LIB_QUANTITY_H
#define LIB_QUANTITY_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum quantity {
    QUANTITY_RATE,   /* bit/s: k, M, G (powers of 1000) or nothing. */
    QUANTITY_TIME,   /* microseconds: us, ms, s. */
    QUANTITY_SHARE,  /* millionths: %. */
    QUANTITY_NUMBER, /* nothing behind it. */
};

#define QUANTITY_SIZE 32 /* of any text. */

/* What it must be, for error messages. */
const char *quantity_hint(enum quantity);
/* A decimal number, of up to six digits behind the point, with one of the quantity's suffixes.
 * False: it is none, or no whole number of units. */
bool quantity_parse(enum quantity, const char *, uint64_t *);
/* Writes it with the largest suffix that leaves a whole number; returns the length. */
size_t quantity_format(enum quantity, uint64_t, char *text, size_t size);

#endif /* lib/quantity.h */
