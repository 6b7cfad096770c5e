/* SPDX-License-Identifier: Apache-2.0
 *
 * Invariant CRC of RoCEv2 over IPv6, in full and as a change.
 *
 * The ICRC is a CRC-32 (zlib's) over 8 bytes of ones and the packet from the
 * IPv6 header to the pad, with the fields that routers change set to ones.
 * Being linear, it can be updated for changed bytes without reading the rest:
 *
 *     icrc' = icrc ^ crc0(old ^ new) * x^(8 * bytes between the change and the ICRC)
 *
 * where crc0 has zero initial value and no final inversion.  A packet that was
 * corrupt before such an update stays corrupt after it.
 */
#ifndef LIB_ICRC_H
#define LIB_ICRC_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bth;

/* ICRC of the IPv6 packet at 'ip': IPv6 header, directly followed by UDP, BTH
 * and so on (no extension headers); 'len' bytes up to the ICRC, which is not
 * included, at least 60. */
uint32_t icrc_compute(const uint8_t *ip, size_t len);

/* The same of a packet with extension headers, all of which count: UDP is 'l4_ofs' bytes behind
 * 'ip'; 'len' is at least 20 more than that. */
uint32_t icrc_compute_with_ext(const uint8_t *ip, size_t l4_ofs, size_t len);

/* Stored little-endian at 'at'. */
uint32_t icrc_load(const uint8_t *at);
void icrc_store(uint8_t *at, uint32_t icrc);

/* The ICRC is at ip + len. */
bool icrc_ok(const uint8_t *ip, size_t len);

/* crc0 of a difference of 'n' bytes, as above. */
uint32_t icrc_diff(const uint8_t *diff, size_t n);
/* The same continued: crc0 of (what gave 'crc') followed by diff[0, n). */
uint32_t icrc_diff_more(uint32_t crc, const uint8_t *diff, size_t n);
/* crc0 moved past 'n' unchanged bytes: XOR the result into an ICRC.  n < 65536. */
uint32_t icrc_shift(uint32_t crc, size_t n);
/* A difference of 4 bytes in big-endian order, to be XORed into the crc0 of what is in front of
 * them before that is shifted past them and the rest. */
static inline uint32_t
icrc_word(uint32_t diff)
{
    return __builtin_bswap32(diff);
}

/* crc0 of a difference of 8 bytes in big-endian order, followed by 'n' unchanged ones.
 * n < 65528. */
uint32_t icrc_diff_be64(uint64_t diff, size_t n);

/* Asks for an acknowledgement of the packet with this BTH: sets AckReq and adapts the ICRC at
 * 'icrc', which is 'after_qpn' bytes behind the end of DestQP. */
void icrc_set_ack_req(struct bth *, size_t after_qpn, uint8_t *icrc);

/* "isa-l" or "zlib". */
const char *icrc_implementation(void);

#endif /* lib/icrc.h */
