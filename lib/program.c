/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs, and the header that carries them.
 */
#include "lib/program.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "lib/wire.h"

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
    struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) out;
    size_t srh_len = srh_bytes(program);

    *ip = (struct ip6_hdr_wire){
        .plen = be16_put((uint16_t) (inner_len + srh_len)),
        .nh = srh_len ? IP6_NH_ROUTING : IP6_NH_IPV6,
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
        .nh = IP6_NH_IPV6,
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
