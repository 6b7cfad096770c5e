/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers with units as people write them.
 */
#include "lib/quantity.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* What a suffix means: a factor in thousandths of the unit. */
struct suffix {
    const char *text;
    uint64_t factor;
};

static const struct suffix suffixes[][6] = {
    [QUANTITY_RATE] =
        {{"G", UINT64_C(1000000000000)}, {"M", 1000000000}, {"k", 1000000}, {"", 1000}, {0}},
    [QUANTITY_TIME] = {{"s", 1000000000}, {"ms", 1000000}, {"us", 1000}, {0}},
    [QUANTITY_SHARE] = {{"%", 10000000}, {0}},
    [QUANTITY_NUMBER] = {{"", 1000}, {0}},
};
static const char *const hints[] = {
    [QUANTITY_RATE] = "bit/s: a number with k, M or G, e.g. 2.5G",
    [QUANTITY_TIME] = "a number with us, ms or s, e.g. 1.5ms",
    [QUANTITY_SHARE] = "a number with %, e.g. 0.1%",
    [QUANTITY_NUMBER] = "a number",
};

const char *
quantity_hint(enum quantity kind)
{
    return hints[kind];
}

/* The part of a number behind the point, in millionths; up to six digits. */
static bool
parse_fraction(const char **s, uint64_t *millionths)
{
    uint64_t unit = 100000;

    *millionths = 0;
    if (**s != '.') {
        return true;
    }
    if (!isdigit((unsigned char) *++*s)) {
        return false;
    }
    for (; isdigit((unsigned char) **s) && unit; unit /= 10) {
        *millionths += (uint64_t) (*(*s)++ - '0') * unit;
    }
    return !isdigit((unsigned char) **s);
}

bool
quantity_parse(enum quantity kind, const char *s, uint64_t *value)
{
    uint64_t whole = 0, millionths;
    const struct suffix *x = suffixes[kind];

    if (!isdigit((unsigned char) *s)) {
        return false;
    }
    while (isdigit((unsigned char) *s)) {
        whole = whole * 10 + (uint64_t) (*s++ - '0');
        if (whole > UINT64_C(1000000000000)) {
            return false;
        }
    }
    if (!parse_fraction(&s, &millionths)) {
        return false;
    }
    while (x->text && strcmp(x->text, s)) {
        x++;
    }
    if (!x->text || (kind == QUANTITY_NUMBER && millionths)
        || __builtin_mul_overflow(whole, x->factor / 1000, value)) {
        return false;
    }
    /* At most 10^6 * 10^12: no overflow. */
    uint64_t scaled = millionths * x->factor;
    *value += scaled / 1000000000;
    return scaled % 1000000000 == 0;
}

size_t
quantity_format(enum quantity kind, uint64_t value, char *s, size_t size)
{
    const struct suffix *x = suffixes[kind];

    if (kind == QUANTITY_SHARE) {
        int n = snprintf(s, size, "%" PRIu64 ".%04" PRIu64, value / 10000, value % 10000);
        while (s[n - 1] == '0') {
            s[--n] = '\0';
        }
        n -= s[n - 1] == '.';
        return (size_t) n + (size_t) snprintf(s + n, size - (size_t) n, "%%");
    }
    while (value % (x->factor / 1000) || (!value && x[1].text)) {
        x++;
    }
    return (size_t) snprintf(s, size, "%" PRIu64 "%s", value / (x->factor / 1000), x->text);
}
