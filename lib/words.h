/* SPDX-License-Identifier: Apache-2.0
 *
 * Closed lists of words: what enumerators are called in the registry, in options
 * and in output.
 *
 * A list is an array with a row for each enumerator, which is a text or a struct
 * that begins with its text.  No other place spells these words: the value of a
 * word, the word of a value and the list of all words come from the array.
 */
#ifndef LIB_WORDS_H
#define LIB_WORDS_H 1

#include <stdbool.h>
#include <stddef.h>

struct words {
    const void *rows;
    size_t row_size;
    size_t n;
};

#define WORDS_INIT(ROWS)                                        \
    {                                                           \
        (ROWS), sizeof(ROWS)[0], sizeof(ROWS) / sizeof(ROWS)[0] \
    }

/* A static string; 'value' is less than n. */
const char *words_name(const struct words *, unsigned int value);
/* False if 's' is none of them. */
bool words_parse(const struct words *, const char *s, unsigned int *value);
/* The words with a bit in 'mask', by value, in a malloc'd string: "a, b or c" has the separator
 * ", " and the last one " or ". */
char *words_join(const struct words *, unsigned int mask, const char *separator, const char *last);
#define WORDS_ALL (~0u)

/* The list NAME_words, NAME_name() and NAME_parse() for values of TYPE: in a header, and with the
 * rows in its .c file. */
#define WORDS_DECLARE(NAME, TYPE)           \
    extern const struct words NAME##_words; \
    const char *NAME##_name(TYPE);          \
    bool NAME##_parse(const char *, TYPE *)
#define WORDS_DEFINE(NAME, TYPE, ROWS)                  \
    const struct words NAME##_words = WORDS_INIT(ROWS); \
    const char *NAME##_name(TYPE value)                 \
    {                                                   \
        return words_name(&NAME##_words, value);        \
    }                                                   \
    bool NAME##_parse(const char *s, TYPE *value)       \
    {                                                   \
        unsigned int v;                                 \
        bool found = words_parse(&NAME##_words, s, &v); \
        if (found) {                                    \
            *value = (TYPE) v;                          \
        }                                               \
        return found;                                   \
    }                                                   \
    extern const struct words NAME##_words /* for the semicolon. */

#endif /* lib/words.h */
