/* SPDX-License-Identifier: Apache-2.0
 *
 * Text from elsewhere as a terminal or a log may have it.
 */
#include "lib/printable.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* What becomes of a byte at most: "\uHHHH". */
#define ESCAPE_LEN 6

/* Length of the UTF-8 character at 's', which is *cp; 0: there is none. */
static size_t
decode(const unsigned char *s, uint32_t *cp)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t len = s[0] < 0x80             ? 1
                 : (s[0] & 0xe0) == 0xc0 ? 2
                 : (s[0] & 0xf0) == 0xe0 ? 3
                 : (s[0] & 0xf8) == 0xf0 ? 4
                                         : 0;

    *cp = len == 1 ? s[0] : len ? s[0] & (0x7fu >> len) : 0;
    for (size_t i = 1; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80) { /* the NUL, too. */
            return 0;
        }
        *cp = *cp << 6 | (s[i] & 0x3f);
    }
    return len > 1 && (*cp < smallest[len] || *cp > 0x10ffff || (*cp >= 0xd800 && *cp <= 0xdfff))
               ? 0
               : len;
}

static bool
is_command(uint32_t cp)
{
    return cp < 0x20 || (cp >= 0x7f && cp <= 0x9f) /* C0, DEL, C1. */
           || cp == 0x2028 || cp == 0x2029         /* line and paragraph separator. */
           || cp == 0x061c || cp == 0x200e || cp == 0x200f || (cp >= 0x202a && cp <= 0x202e)
           || (cp >= 0x2066 && cp <= 0x2069); /* bidirectional formatting. */
}

char *
printable(const char *text)
{
    const unsigned char *s = (const unsigned char *) text;
    size_t size = ESCAPE_LEN * strlen(text) + 1;
    char *result = malloc(size);
    char *out = result;

    if (!result) {
        abort();
    }
    while (*s) {
        uint32_t cp;
        size_t len = decode(s, &cp);
        size_t room = size - (size_t) (out - result);

        if (len && !is_command(cp)) {
            memcpy(out, s, len);
            out += len;
        } else if (*s == '\n' || *s == '\r' || *s == '\t') {
            out += snprintf(out, room, "\\%c", *s == '\n' ? 'n' : *s == '\r' ? 'r' : 't');
        } else if (len && cp >= 0x7f) {
            out += snprintf(out, room, "\\u%04x", cp);
        } else {
            out += snprintf(out, room, "\\x%02x", *s);
        }
        s += len ? len : 1;
    }
    *out = '\0';
    return result;
}

void
printable_line(FILE *stream, const char *before, const char *format, va_list args)
{
    char *text;

    if (vasprintf(&text, format, args) < 0) {
        abort();
    }
    char *line = printable(text);
    fprintf(stream, "%s%s\n", before, line);
    free(line);
    free(text);
}

void
printable_put(FILE *stream, const char *before, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    printable_line(stream, before, format, args);
    va_end(args);
}
