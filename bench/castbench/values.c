/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers of options (see values.h), more strictly than strtoul() and strtod() take them.
 */
#include "bench/castbench/values.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* '*end' is what follows the number. */
static bool
leading_number(const char *text, uint64_t *v, char **end)
{
    bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');

    if (!isxdigit((unsigned char) text[0])) {
        return false;
    }
    errno = 0;
    *v = strtoul(text, end, hex ? 16 : 10);
    return !errno && *end > text;
}

bool
value_number(const char *text, uint64_t min, uint64_t max, uint64_t *v)
{
    char *end;

    return leading_number(text, v, &end) && !*end && *v >= min && *v <= max;
}

bool
value_size(const char *text, uint64_t min, uint64_t max, uint64_t *v)
{
    char *end;

    if (!leading_number(text, v, &end)) {
        return false;
    }
    unsigned shift = *end == 'K' || *end == 'k' ? 10 : *end == 'M' || *end == 'm' ? 20 : 0;
    if (shift) {
        end++;
    }
    if (*end || *v > max >> shift) {
        return false;
    }
    *v <<= shift;
    return *v >= min;
}

bool
value_decimal(const char *text, double min, double max, double *v, const char **end)
{
    size_t n = strspn(text, "0123456789.");
    char digits[64], *stop;

    if (!n || n >= sizeof digits) {
        return false;
    }
    memcpy(digits, text, n);
    digits[n] = '\0';
    *v = strtod(digits, &stop);
    if (end) {
        *end = text + n;
    }
    return stop == digits + n && (end || !text[n]) && *v >= min && *v <= max;
}
