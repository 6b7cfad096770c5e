/* SPDX-License-Identifier: Apache-2.0
 *
 * What somebody meant who wrote a word that is none of those known.
 */
#ifndef LIB_SPELLING_H
#define LIB_SPELLING_H 1

struct option;

/* Lists of words end with NULL. */

/* The word that is closest to 'word', by letters that are inserted, deleted, replaced or swapped with the next one:
 * at most one in a word of up to three letters, otherwise one more than a third of them.  NULL: none is close. */
const char *closest_word(const char *word, const char *const words[]);
/* " (did you mean 'x'?)" if one of the words is close to 'word', otherwise "".  malloc'd. */
char *did_you_mean(const char *word, const char *const words[]);

/* What is wrong with the option over which getopt_long() has just answered 'c', ':' or '?'; malloc'd.
 * Its short options began with ':', with '+' before that or not, so that it said nothing itself.
 * '*meant' is the option that was likely meant, without "--", or NULL. */
char *option_complaint(int c, char *const argv[], const struct option *, const char **meant);

#endif /* lib/spelling.h */
