/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes as hexadecimal digits, as the registry's columns have them.
 */
#ifndef CTL_REGISTRY_HEX_H
#define CTL_REGISTRY_HEX_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* malloc'd; "" if there are no bytes. */
char *hex_format(const void *bytes, size_t len);
/* False: not an even number of digits, or more bytes than 'size'; *len is then not set. */
bool hex_parse(const char *digits, uint8_t *bytes, size_t size, size_t *len);

#endif /* ctl/registry/hex.h */
