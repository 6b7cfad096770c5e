/* SPDX-License-Identifier: Apache-2.0
 *
 * Closed lists of words.
 */
#include "lib/words.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *
words_name(const struct words *w, unsigned int value)
{
    assert(value < w->n);
    return *(const char *const *) ((const char *) w->rows + value * w->row_size);
}

bool
words_parse(const struct words *w, const char *s, unsigned int *value)
{
    for (unsigned int i = 0; i < w->n; i++) {
        if (!strcmp(s, words_name(w, i))) {
            *value = i;
            return true;
        }
    }
    return false;
}

char *
words_join(const struct words *w, unsigned int mask, const char *separator, const char *last)
{
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    if (!stream) {
        abort();
    }
    bool first = true;
    for (unsigned int i = 0; i < w->n; i++) {
        if (mask & 1u << i) {
            bool is_last = !(mask >> i >> 1) || i + 1 == w->n;
            fprintf(stream, "%s%s", first ? "" : is_last ? last : separator, words_name(w, i));
            first = false;
        }
    }
    if (fclose(stream)) {
        abort();
    }
    return text;
}
