/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of single columns, checked.
 */
#include <config.h>

#include "ctl/registry/reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "ctl/registry/values.h"
#include "util.h"

bool
reader_bad(struct reader *r, const char *column, const char *value, const char *format, ...)
{
    va_list args;
    char *why;

    va_start(args, format);
    why = xvasprintf(format, args);
    va_end(args);
    r->error = xasprintf("%s \"%s\": %s", column, value, why);
    free(why);
    return false;
}

bool
reader_name(struct reader *r, const char *column, const char *s, char out[NAME_SIZE])
{
    if (!name_is_valid(s)) {
        return reader_bad(r, column, s, NAME_RULE);
    }
    ovs_strlcpy(out, s, NAME_SIZE);
    return true;
}

bool
reader_address(struct reader *r, const char *column, const char *s, struct in6_addr *out)
{
    return ip6_parse(s, out) || reader_bad(r, column, s, "not an IPv6 address");
}

bool
reader_addresses(struct reader *r, const char *column, char *const texts[], size_t n,
                 struct in6_addr **out, size_t *n_out)
{
    *out = xcalloc(n + 1, sizeof **out);
    for (size_t i = 0; i < n; i++) {
        if (!reader_address(r, column, texts[i], &(*out)[i])) {
            return false;
        }
    }
    *n_out = n;
    qsort(*out, n, sizeof **out, address_compare);
    for (size_t i = 1; i < n; i++) {
        if (IN6_ARE_ADDR_EQUAL(&(*out)[i - 1], &(*out)[i])) {
            return reader_bad(r, column, ip6_text(&(*out)[i]), "is there twice");
        }
    }
    return true;
}

bool
reader_sid(struct reader *r, const char *column, const char *s, struct in6_addr *out)
{
    return !s[0] || reader_address(r, column, s, out);
}

bool
reader_prefix(struct reader *r, const char *column, const char *s, struct in6_addr *out,
              uint8_t *plen)
{
    return ip6_prefix_parse(s, out, plen)
           || reader_bad(r, column, s, "not an IPv6 prefix, or it has bits beyond its length");
}

bool
reader_integer(struct reader *r, const char *column, int64_t value, int64_t min, int64_t max)
{
    char text[32];

    if (value >= min && value <= max) {
        return true;
    }
    snprintf(text, sizeof text, "%" PRId64, value);
    return reader_bad(r, column, text, "must be %" PRId64 "..%" PRId64, min, max);
}

bool
reader_port(struct reader *r, const char *column, const char *row, int64_t number,
            const struct node_config *config, uint16_t *out)
{
    if (!reader_integer(r, column, number, 1, PORT_NUMBER_MAX)) {
        return false;
    }
    for (size_t i = 0; i < config->n_ports; i++) {
        if (config->ports[i].number == number) {
            *out = (uint16_t) number;
            return true;
        }
    }
    return reader_bad(r, column, row, "no port has number %" PRId64, number);
}

bool
reader_mac(struct reader *r, const char *column, const char *s, uint8_t mac[6])
{
    unsigned int b[6];
    int n = 0;

    if (sscanf(s, "%2x:%2x:%2x:%2x:%2x:%2x%n", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5], &n) != 6
        || n != 17 || s[n] || b[0] & 1) {
        return reader_bad(r, column, s, "not a unicast MAC address");
    }
    for (int i = 0; i < 6; i++) {
        mac[i] = (uint8_t) b[i];
    }
    return true;
}

bool
reader_impairment(struct reader *r, const char *column, const char *s, struct impair_params *out)
{
    char *why;

    if (impair_parse(s, out, &why)) {
        return true;
    }
    reader_bad(r, column, s, "%s", why);
    free(why);
    return false;
}
