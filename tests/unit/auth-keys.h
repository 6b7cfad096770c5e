/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared keys and group epoch of tests/vectors/gen-srh.py and gen-data.py, and what the tag of DATA-AUTH
 * does not cover.
 */
#ifndef TESTS_UNIT_AUTH_KEYS_H
#define TESTS_UNIT_AUTH_KEYS_H 1

#include <stddef.h>

#include "lib/auth.h"
#include "lib/parse.h"
#include "lib/wire.h"
#include "tests/unit/hex.h"

#define KEY            7u
#define DESIGNATED_QPN 0x101u
#define EPOCH          1u

static struct auth_key keys[] = {
    {.id = 0x01020304, .len = 32},
    {.id = KEY, .len = 16},
    {.id = UINT32_MAX, .len = 64},
};
#define N_KEYS (sizeof keys / sizeof *keys)
static struct auth_epoch epoch;

static void
fill_inputs(void)
{
    for (uint8_t i = 0; i < 64; i++) {
        keys[0].secret[i] = i < 32 ? i : 0;
        keys[2].secret[i] = (uint8_t) (255 - i);
    }
    memcpy(keys[1].secret, "0123456789abcdef", 16);
    epoch = (struct auth_epoch){hex_addr("fd00:ffff::1"), DESIGNATED_QPN, EPOCH};
}

/* Does the bit belong to what says nothing, or may change on the way? */
static inline bool
may_change(const struct parsed *h, size_t bit)
{
    size_t ofs = bit / 8, ip = h->ip.ofs, inner = h->inner.ofs, srh = h->srh_ofs;

    return (ofs >= ip && ofs < ip + offsetof(struct ip6_hdr_wire, src))
           || (ofs >= ip + offsetof(struct ip6_hdr_wire, dst) && ofs < ip + IP6_HDR_LEN)
           || ofs == srh || ofs == srh + offsetof(struct srh_hdr, type)
           || ofs == srh + offsetof(struct srh_hdr, segments_left)
           || (ofs >= inner && ofs < inner + 4)
           || ofs == inner + offsetof(struct ip6_hdr_wire, hlim);
}

#endif /* tests/unit/auth-keys.h */
