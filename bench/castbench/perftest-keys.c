/* SPDX-License-Identifier: Apache-2.0
 *
 * perftest's messages about queue pairs (see perftest-keys.h):
 *
 *   LID:OUT_READS:QPN:PSN:RKEY:VA:GID:SRQN:
 *
 * All numbers are hexadecimal, as wide as their fields; the GID is 16 numbers.
 */
#include "bench/castbench/perftest-keys.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_FIELDS 23

/* Digits of each field; a colon follows each. */
static const unsigned widths[N_FIELDS] = {4, 4, 6, 6, 8, 16, 2, 2, 2, 2, 2, 2,
                                          2, 2, 2, 2, 2, 2,  2, 2, 2, 2, 8};

bool
perftest_keys_parse(struct perftest_keys *k, const char *message, size_t len)
{
    uint64_t fields[N_FIELDS];

    if (len != PERFTEST_KEYS_LEN) {
        return false;
    }
    for (unsigned i = 0; i < N_FIELDS; i++) {
        char digits[17];

        memcpy(digits, message, widths[i]);
        digits[widths[i]] = '\0';
        if (strspn(digits, "0123456789abcdef") != widths[i] || message[widths[i]] != ':') {
            return false;
        }
        fields[i] = strtoull(digits, NULL, 16);
        message += widths[i] + 1;
    }
    *k = (struct perftest_keys){
        .lid = (uint32_t) fields[0],
        .out_reads = (uint32_t) fields[1],
        .qpn = (uint32_t) fields[2],
        .psn = (uint32_t) fields[3],
        .rkey = (uint32_t) fields[4],
        .va = fields[5],
        .srqn = (uint32_t) fields[N_FIELDS - 1],
    };
    for (unsigned i = 0; i < sizeof k->gid; i++) {
        k->gid.s6_addr[i] = (uint8_t) fields[6 + i];
    }
    return *message == '\0';
}

void
perftest_keys_format(const struct perftest_keys *k, char message[PERFTEST_KEYS_LEN])
{
    int n = snprintf(message, PERFTEST_KEYS_LEN, "%04x:%04x:%06x:%06x:%08x:%016" PRIx64 ":",
                     k->lid & 0xffff, k->out_reads & 0xffff, k->qpn & 0xffffff, k->psn & 0xffffff,
                     k->rkey, k->va);

    for (unsigned i = 0; i < sizeof k->gid; i++) {
        n += snprintf(message + n, PERFTEST_KEYS_LEN - (size_t) n, "%02x:", k->gid.s6_addr[i]);
    }
    snprintf(message + n, PERFTEST_KEYS_LEN - (size_t) n, "%08x:", k->srqn);
}
