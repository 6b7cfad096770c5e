/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs, and the header that carries them.
 */
#include "lib/program.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/address-plan.h"
#include "lib/wire.h"

#define USIDS_MAX ((128 - SID_BLOCK_PLEN) / 16) /* in a container. */

static size_t
srh_bytes(const struct program *program)
{
    return program->n > 1 ? sizeof(struct srh_hdr) + (program->n - 1u) * sizeof(struct in6_addr)
                          : 0;
}

size_t
program_encap_len(const struct program *program)
{
    return IP6_HDR_LEN + srh_bytes(program);
}

void
program_encap(const struct program *program, const struct in6_addr *src, uint16_t inner_len,
              uint8_t tc, uint32_t flow_label, uint8_t *out)
{
    program_header(program, src, IP6_NH_IPV6, inner_len, tc, flow_label, out);
}

void
program_header(const struct program *program, const struct in6_addr *src, uint8_t nh, uint16_t len,
               uint8_t tc, uint32_t flow_label, uint8_t *out)
{
    struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) out;
    size_t srh_len = srh_bytes(program);

    *ip = (struct ip6_hdr_wire){
        .plen = be16_put((uint16_t) (len + srh_len)),
        .nh = srh_len ? IP6_NH_ROUTING : nh,
        .hlim = 64,
        .src = *src,
        .dst = program->containers[0],
    };
    ip6_set_vtf(ip, tc, flow_label);
    if (!srh_len) {
        return;
    }
    struct srh_hdr *srh = (struct srh_hdr *) (ip + 1);
    struct in6_addr *segments = (struct in6_addr *) (srh + 1);

    *srh = (struct srh_hdr){
        .nh = nh,
        .hdr_ext_len = (uint8_t) (srh_len / 8 - 1),
        .type = SRH_ROUTING_TYPE,
        .segments_left = (uint8_t) (program->n - 1),
        .last_entry = (uint8_t) (program->n - 2),
    };
    for (size_t i = 1; i < program->n; i++) {
        segments[program->n - 1u - i] = program->containers[i];
    }
}

void
program_format(const struct program *program, char text[PROGRAM_TEXT_SIZE])
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < program->n; i++) {
        char one[INET6_ADDRSTRLEN];

        inet_ntop(AF_INET6, &program->containers[i], one, sizeof one);
        used += (size_t) snprintf(text + used, PROGRAM_TEXT_SIZE - used, "%s%s", i ? "," : "", one);
    }
}

bool
program_parse(const char *text, struct program *program)
{
    *program = (struct program){.n = 0};
    for (;;) {
        char one[INET6_ADDRSTRLEN];
        size_t len = strcspn(text, ",");

        if (program->n == PROGRAM_MAX || len >= sizeof one) {
            return false;
        }
        memcpy(one, text, len);
        one[len] = '\0';
        if (inet_pton(AF_INET6, one, &program->containers[program->n++]) != 1) {
            return false;
        }
        if (!text[len]) {
            return true;
        }
        text += len + 1;
    }
}

/* The 16 bits of the uSID with this index, from the block on. */
static uint8_t *
usid_at(struct in6_addr *container, unsigned i)
{
    return container->s6_addr + SID_BLOCK_PLEN / 8 + 2 * i;
}

void
program_format_usids(const struct program *program, char text[PROGRAM_USIDS_SIZE])
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < program->n; i++) {
        struct in6_addr container = program->containers[i];
        unsigned n = USIDS_MAX;

        while (n > 1 && !usid_at(&container, n - 1)[0] && !usid_at(&container, n - 1)[1]) {
            n--;
        }
        for (unsigned j = 0; j < n; j++) {
            const uint8_t *usid = usid_at(&container, j);

            used += (size_t) snprintf(text + used, PROGRAM_USIDS_SIZE - used, "%s%02x%02x",
                                      j   ? " "
                                      : i ? " | "
                                          : "",
                                      usid[0], usid[1]);
        }
    }
}

const char *
program_parse_usids(const char *text, struct program *program)
{
    unsigned n = 0; /* uSIDs of the last container. */

    *program = (struct program){.n = 1, .containers = {node_locator(0)}};
    for (;;) {
        char digits[5] = "";
        size_t len = 0;

        while (len < 4 && isxdigit((unsigned char) text[len])) {
            digits[len] = text[len];
            len++;
        }
        if (len < 4 || n == USIDS_MAX) {
            return NULL;
        }
        uint8_t *usid = usid_at(&program->containers[program->n - 1], n++);
        unsigned long value = strtoul(digits, NULL, 16);
        usid[0] = (uint8_t) (value >> 8);
        usid[1] = (uint8_t) value;
        text += 4;
        if (!strncmp(text, " | ", 3) && program->n < PROGRAM_MAX) {
            program->containers[program->n++] = node_locator(0);
            n = 0;
            text += 3;
        } else if (text[0] == ' ' && isxdigit((unsigned char) text[1])) {
            text++;
        } else {
            return text;
        }
    }
}
