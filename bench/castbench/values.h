/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers as castbench's options take them.
 */
#ifndef BENCH_CASTBENCH_VALUES_H
#define BENCH_CASTBENCH_VALUES_H 1

#include <stdbool.h>
#include <stdint.h>

/* Decimal or 0x..., as castctl takes numbers.  False: it is no number, or outside of min..max. */
bool value_number(const char *text, uint64_t min, uint64_t max, uint64_t *);
/* As value_number(), but K (2^10) or M (2^20) may follow a decimal number. */
bool value_size(const char *text, uint64_t min, uint64_t max, uint64_t *);
/* Digits, maybe with a point among them.  If 'end' is not NULL, '*end' is what follows them;
 * otherwise nothing may follow. */
bool value_decimal(const char *text, double min, double max, double *, const char **end);

#endif /* bench/castbench/values.h */
