/* SPDX-License-Identifier: Apache-2.0
 *
 * Invariant CRC of RoCEv2 over IPv6, in full and as a change.
 *
 * In full: the CRC runs over a short private copy of the headers with the
 * masked fields set, and goes on over the packet itself.
 *
 * As a change: moving a CRC past n bytes multiplies it by x^(8n) modulo the
 * polynomial.  zlib makes that multiplier; as it takes a few microseconds and
 * depends on n only, each is kept once made.  The table is not locked: one
 * thread per process uses this.
 */
#include "lib/icrc.h"

#include <assert.h>
#include <string.h>
#include <zlib.h>

#ifdef HAVE_ISAL
#include <isa-l/crc.h>
#endif

#include "lib/wire.h"

#define ONES_LEN   8
#define MASKED_LEN (IP6_HDR_LEN + sizeof(struct udp_hdr) + sizeof(struct bth))
#define SHIFT_MAX  65536

/* CRC-32 of zlib, continued from 'crc'. */
static uint32_t
crc32_more(uint32_t crc, const uint8_t *p, size_t n)
{
#ifdef HAVE_ISAL
    return crc32_gzip_refl(crc, p, n);
#else
    return (uint32_t) crc32_z(crc, p, n);
#endif
}

uint32_t
icrc_compute(const uint8_t *ip, size_t len)
{
    uint8_t masked[ONES_LEN + MASKED_LEN];
    struct ip6_hdr_wire *mip = (struct ip6_hdr_wire *) (masked + ONES_LEN);
    struct udp_hdr *mudp = (struct udp_hdr *) (mip + 1);
    struct bth *mbth = (struct bth *) (mudp + 1);

    assert(len >= MASKED_LEN);
    memset(masked, 0xff, ONES_LEN);
    memcpy(mip, ip, MASKED_LEN);
    mip->vtf = be32_put(be32_get(mip->vtf) | 0x0fffffff); /* all but the version. */
    mip->hlim = 0xff;
    mudp->csum = be16_put(0xffff);
    mbth->resv8a = 0xff;

    return crc32_more(crc32_more(0, masked, sizeof masked), ip + MASKED_LEN, len - MASKED_LEN);
}

uint32_t
icrc_load(const uint8_t *at)
{
    return (uint32_t) at[3] << 24 | (uint32_t) at[2] << 16 | (uint32_t) at[1] << 8 | at[0];
}

void
icrc_store(uint8_t *at, uint32_t icrc)
{
    for (int i = 0; i < ROCE_ICRC_LEN; i++) {
        at[i] = (uint8_t) (icrc >> (8 * i));
    }
}

bool
icrc_ok(const uint8_t *ip, size_t len)
{
    return icrc_load(ip + len) == icrc_compute(ip, len);
}

uint32_t
icrc_diff(const uint8_t *diff, size_t n)
{
    return icrc_diff_more(0, diff, n);
}

uint32_t
icrc_diff_more(uint32_t crc, const uint8_t *diff, size_t n)
{
    /* Undo the inversions at both ends. */
    return ~crc32_more(~crc, diff, n);
}

uint32_t
icrc_shift(uint32_t crc, size_t n)
{
    static uint32_t multipliers[SHIFT_MAX]; /* 0: not made yet; none is 0. */

    assert(n < SHIFT_MAX);
    if (!multipliers[n]) {
        multipliers[n] = (uint32_t) crc32_combine_gen((z_off_t) n);
    }
    return (uint32_t) crc32_combine_op(crc, 0, multipliers[n]);
}

void
icrc_set_ack_req(struct bth *bth, size_t after_qpn, uint8_t *icrc)
{
    uint8_t diff = ~bth->ack_req & BTH_ACK_REQ;

    bth->ack_req |= BTH_ACK_REQ;
    icrc_store(icrc, icrc_load(icrc) ^ icrc_shift(icrc_diff(&diff, 1), after_qpn - 1));
}

const char *
icrc_implementation(void)
{
#ifdef HAVE_ISAL
    return "isa-l";
#else
    return "zlib";
#endif
}
