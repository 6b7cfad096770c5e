/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes and addresses from text.
 */
#include "tests/unit/hex.h"

#include <arpa/inet.h>
#include <check.h>
#include <stdio.h>

size_t
hex_bytes(const char *text, uint8_t *out, size_t size)
{
    size_t n = 0;

    while (*text) {
        unsigned byte;

        if (*text == ' ') {
            text++;
            continue;
        }
        ck_assert_int_eq(sscanf(text, "%2x", &byte), 1);
        ck_assert_uint_lt(n, size);
        out[n++] = (uint8_t) byte;
        text += 2;
    }
    return n;
}

struct in6_addr
hex_addr(const char *text)
{
    struct in6_addr addr;

    ck_assert_int_eq(inet_pton(AF_INET6, text, &addr), 1);
    return addr;
}
