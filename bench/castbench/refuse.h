/* SPDX-License-Identifier: Apache-2.0
 *
 * Sentences about what cannot be, or did not work.
 */
#ifndef BENCH_CASTBENCH_REFUSE_H
#define BENCH_CASTBENCH_REFUSE_H 1

#include <stdbool.h>
#include <stddef.h>

/* Puts the sentence into the error of 'size' bytes; false. */
bool
refuse(char *error, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif /* bench/castbench/refuse.h */
