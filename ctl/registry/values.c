/* SPDX-License-Identifier: Apache-2.0
 *
 * Strict parsing of names, numbers and addresses.
 */
#include <config.h>

#include "ctl/registry/values.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/node-config.h"
#include "util.h"

#define SID_SPACE_PLEN 16 /* of SID_SPACE_TEXT. */

#define NAME_CHARS     "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

bool
name_is_valid(const char *s)
{
    size_t n = strlen(s);

    return n >= 1 && n < NAME_SIZE && strspn(s, NAME_CHARS) == n;
}

/* As the kernel's dev_valid_name(), and printable. */
bool
ifname_is_valid(const char *s)
{
    size_t n = strlen(s);

    if (n < 1 || n >= IFNAMSIZ || !strcmp(s, ".") || !strcmp(s, "..")) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (s[i] <= ' ' || s[i] > '~' || s[i] == '/' || s[i] == ':') {
            return false;
        }
    }
    return true;
}

bool
number_parse(const char *s, uint64_t min, uint64_t max, uint64_t *value)
{
    bool hex = s[0] == '0' && (s[1] == 'x' || s[1] == 'X');
    const char *digits = hex ? s + 2 : s;
    size_t n = strspn(digits, hex ? "0123456789abcdefABCDEF" : "0123456789");

    if (!n || digits[n]) {
        return false;
    }
    errno = 0;
    *value = strtoull(digits, NULL, hex ? 16 : 10);
    return !errno && *value >= min && *value <= max;
}

/* "ADDRESS[:PORT]", an IPv6 address in brackets; names are not looked up. */
static bool
inet_remote_is_valid(const char *s, size_t len)
{
    char text[INET6_ADDRSTRLEN + IFNAMSIZ + 16];
    unsigned char addr[sizeof(struct in6_addr)];
    char *host = text, *port, *scope;
    uint64_t number;

    if (len >= sizeof text) {
        return false;
    }
    memcpy(text, s, len);
    text[len] = '\0';
    if (text[0] == '[') {
        host = text + 1;
        port = strchr(host, ']');
        if (!port || (port[1] && port[1] != ':')) {
            return false;
        }
        *port++ = '\0';
        scope = strchr(host, '%');
        if (scope) {
            *scope = '\0';
        }
    } else {
        port = text + strcspn(text, ":");
    }
    if (*port) {
        *port++ = '\0';
        if (!number_parse(port, 1, UINT16_MAX, &number)) {
            return false;
        }
    }
    return inet_pton(host == text ? AF_INET : AF_INET6, host, addr) == 1;
}

bool
db_is_valid(const char *s)
{
    /* It is shown, and logged, as it is. */
    for (const char *c = s; *c; c++) {
        if ((unsigned char) *c < ' ' || *c == 0x7f) {
            return false;
        }
    }
    for (;;) {
        size_t len = strcspn(s, ",");
        bool inet = !strncmp(s, "tcp:", 4) || !strncmp(s, "ssl:", 4);

        if (inet ? !inet_remote_is_valid(s + 4, len - 4)
                 : strncmp(s, "unix:", 5) || len == strlen("unix:")) {
            return false;
        }
        if (!s[len]) {
            return true;
        }
        s += len + 1;
    }
}

bool
db_needs_keys(const char *s)
{
    return !strncmp(s, "ssl:", 4) || strstr(s, ",ssl:");
}

bool
db_is_one_socket(const char *s)
{
    return !strncmp(s, "unix:", 5) && !strchr(s, ',');
}

bool
ip6_parse(const char *s, struct in6_addr *addr)
{
    return inet_pton(AF_INET6, s, addr) == 1;
}

bool
ip6_prefix_parse(const char *s, struct in6_addr *addr, uint8_t *plen)
{
    const char *slash = strchr(s, '/');
    char text[INET6_ADDRSTRLEN];
    uint64_t len;

    if (!slash || (size_t) (slash - s) >= sizeof text || !number_parse(slash + 1, 0, 128, &len)) {
        return false;
    }
    memcpy(text, s, (size_t) (slash - s));
    text[slash - s] = '\0';
    if (!ip6_parse(text, addr)) {
        return false;
    }
    for (uint64_t bit = len; bit < 128; bit++) {
        if (addr->s6_addr[bit / 8] & 0x80 >> bit % 8) {
            return false;
        }
    }
    *plen = (uint8_t) len;
    return true;
}

void
ip6_prefix_format(const struct in6_addr *addr, uint8_t plen, char text[IP6_PREFIX_TEXT_SIZE])
{
    snprintf(text, IP6_PREFIX_TEXT_SIZE, "%s/%u", ip6_text(addr), plen);
}

const char *
ip6_text(const struct in6_addr *addr)
{
    static _Thread_local char bufs[4][INET6_ADDRSTRLEN];
    static _Thread_local unsigned int i;

    return inet_ntop(AF_INET6, addr, bufs[i++ % 4], INET6_ADDRSTRLEN);
}

static int
digit_value(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

bool
secret_parse(const char *s, struct auth_key *key)
{
    size_t n = strlen(s);

    if (n % 2 || n < 2 * AUTH_SECRET_MIN || n > 2 * AUTH_SECRET_MAX) {
        return false;
    }
    for (size_t i = 0; i < n; i += 2) {
        int high = digit_value(s[i]), low = digit_value(s[i + 1]);

        if (high < 0 || low < 0) {
            return false;
        }
        key->secret[i / 2] = (uint8_t) (high << 4 | low);
    }
    key->len = (uint8_t) (n / 2);
    return true;
}

static const char *const auth_choices[] = {
    [0] = "none",         [AUTH_MT] = "mt-auth",
    [AUTH_HMAC] = "hmac", [AUTH_MT | AUTH_HMAC] = "both",
    [AUTH_DATA] = "data",
};
WORDS_DEFINE(auth_choice, unsigned int, auth_choices);

static const unsigned int single_tlvs[] = {AUTH_MT, AUTH_HMAC, AUTH_DATA};

unsigned int
auth_tlvs_parse(char *const names[], size_t n)
{
    unsigned int tlvs = 0;

    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < ARRAY_SIZE(single_tlvs); j++) {
            tlvs |= strcmp(names[i], auth_choice_name(single_tlvs[j])) ? 0 : single_tlvs[j];
        }
    }
    return tlvs & AUTH_DATA ? AUTH_DATA : tlvs;
}

size_t
auth_tlvs_names(unsigned int tlvs, const char *names[2])
{
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_SIZE(single_tlvs); i++) {
        if (tlvs & single_tlvs[i]) {
            names[n++] = auth_choice_name(single_tlvs[i]);
        }
    }
    return n;
}

const char *
host_address_check(const struct in6_addr *addr)
{
    if (IN6_IS_ADDR_UNSPECIFIED(addr) || IN6_IS_ADDR_LOOPBACK(addr) || IN6_IS_ADDR_MULTICAST(addr)
        || IN6_IS_ADDR_V4MAPPED(addr) || IN6_IS_ADDR_LINKLOCAL(addr)) {
        return "must be a global or unique local IPv6 unicast address";
    }
    if (address_is_in_sid_space(addr)) {
        return "must not be in " SID_SPACE_TEXT ", which is for SIDs";
    }
    if (is_proxy_address(addr)) {
        return "must not be in " PROXY_PREFIX_TEXT ", which is for Proxy Addresses";
    }
    return NULL;
}

bool
program_prefix_parse(const char *s, struct prefix *out)
{
    return ip6_prefix_parse(s, &out->address, &out->plen) && out->plen >= SID_SPACE_PLEN
           && address_is_in_sid_space(&out->address);
}

/* A name, or with parallel links "NAME:INTERFACE". */
static bool
path_step_is_valid(char *step)
{
    char *port = strchr(step, ':');

    if (port) {
        *port++ = '\0';
    }
    return name_is_valid(step) && (!port || ifname_is_valid(port));
}

/* "NAME PROGRAM". */
static bool
path_program_is_valid(char *text)
{
    char *program = strchr(text, ' ');
    struct program parsed;

    *program++ = '\0';
    return name_is_valid(text) && program_parse(program, &parsed);
}

const char *
path_text_check(const char *s, bool or_program)
{
    char text[PATH_NAME_SIZE];
    bool valid = true;

    if (strlen(s) >= sizeof text) {
        return "must be at most 255 characters";
    }
    ovs_strlcpy(text, s, sizeof text);
    if (or_program && strchr(text, ' ')) {
        return path_program_is_valid(text)
                   ? NULL
                   : "must be a neighbour's name, a space and containers joined by commas";
    }
    for (char *step = text, *next; step && valid; step = next) {
        next = strchr(step, ',');
        if (next) {
            *next++ = '\0';
        }
        valid = path_step_is_valid(step);
    }
    return valid ? NULL : "must be names of nodes, joined by commas";
}

void
mac_format(const uint8_t mac[6], char text[MAC_TEXT_SIZE])
{
    snprintf(text, MAC_TEXT_SIZE, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3],
             mac[4], mac[5]);
}

bool
node_role_text_is_foreign(const char *s)
{
    enum node_role role;

    return node_role_parse(s, &role) && node_role_is_foreign(role);
}

bool
node_name_fits_role(const char *name, const char *role)
{
    return strcmp(role, node_role_name(NODE_OVS)) || strlen(name) <= OVS_NAME_MAX;
}
