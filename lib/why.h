/* SPDX-License-Identifier: Apache-2.0
 *
 * Sentences that say what is wrong, for the caller of a function to show.
 */
#ifndef LIB_WHY_H
#define LIB_WHY_H 1

#include <stdbool.h>

/* Puts a malloc'd sentence, which the caller frees, into *errp.  Returns false, for functions that
 * return whether all is well. */
bool say_why(char **errp, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif /* lib/why.h */
