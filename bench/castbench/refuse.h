/* SPDX-License-Identifier: Apache-2.0
 *
 * Sentences about what cannot be, or did not work.
 */
#ifndef BENCH_CASTBENCH_REFUSE_H
#define BENCH_CASTBENCH_REFUSE_H 1

#include <stdbool.h>
#include <stddef.h>

/* Puts the sentence into the error of 'size' bytes. */
void
refuse_say(char *error, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same; false, which who analyzes one file alone has to see. */
#define refuse(ERROR, SIZE, ...) (refuse_say(ERROR, SIZE, __VA_ARGS__), refuse_is_false())
static inline bool
refuse_is_false(void)
{
    return false;
}

#endif /* bench/castbench/refuse.h */
