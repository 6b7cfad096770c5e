/* SPDX-License-Identifier: Apache-2.0
 *
 * What fuzz targets share.
 */
#include "tests/fuzz/fuzz.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

uint8_t
fuzz_byte(struct fuzz_input *in)
{
    if (!in->n) {
        return 0;
    }
    in->n--;
    return *in->data++;
}

uint32_t
fuzz_below(struct fuzz_input *in, uint32_t limit)
{
    uint32_t x = 0;

    for (uint32_t max = limit - 1; max; max >>= 8) {
        x = x << 8 | fuzz_byte(in);
    }
    return x % limit;
}

const uint8_t *
fuzz_bytes(struct fuzz_input *in, size_t n, size_t *np)
{
    const uint8_t *bytes = in->data;

    *np = n < in->n ? n : in->n;
    in->data += *np;
    in->n -= *np;
    return bytes;
}

char *
fuzz_text(struct fuzz_input *in)
{
    size_t n;
    const uint8_t *bytes = fuzz_bytes(in, in->n, &n);
    char *text = malloc(n + 1);

    ck_assert_ptr_nonnull(text);
    memcpy(text, bytes, n);
    text[n] = '\0';
    return text;
}
