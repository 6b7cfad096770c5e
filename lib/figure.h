/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers as people read them.
 *
 * JSON has numbers as they are: times have their unit in the key (liveness_ms), lengths are in
 * bytes.  Texts have units, and identifiers that packets carry (QPNs, rkeys, addresses of memory,
 * syndromes) in hexadecimal; what is counted (PSNs, epochs, ids of nodes and keys) is decimal.
 */
#ifndef LIB_FIGURE_H
#define LIB_FIGURE_H 1

#include <stdint.h>

#define FIGURE_SIZE 32

/* The text of the number that JSON has under 'key'. */
void figure_format(const char *key, int64_t value, char text[FIGURE_SIZE]);
/* What stands in a text for 'key': the same, without the unit that the number then has. */
const char *figure_label(const char *key);

/* A time with its unit: "269 ms", "17.2 s". */
void figure_format_msec(uint64_t msec, char text[FIGURE_SIZE]);

#endif /* lib/figure.h */
