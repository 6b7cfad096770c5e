/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes as hexadecimal digits.
 */
#include <config.h>

#include "ctl/registry/hex.h"

#include <string.h>

#include "util.h"

char *
hex_format(const void *bytes_, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *bytes = bytes_;
    char *text = xmalloc(2 * len + 1);

    for (size_t i = 0; i < len; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    text[2 * len] = '\0';
    return text;
}

bool
hex_parse(const char *digits, uint8_t *bytes, size_t size, size_t *len)
{
    size_t n = strlen(digits);

    if (n % 2 || n / 2 > size) {
        return false;
    }
    for (size_t i = 0; i < n; i += 2) {
        int high = hexit_value((unsigned char) digits[i]);
        int low = hexit_value((unsigned char) digits[i + 1]);

        if (high < 0 || low < 0) {
            return false;
        }
        bytes[i / 2] = (uint8_t) (high << 4 | low);
    }
    *len = n / 2;
    return true;
}
