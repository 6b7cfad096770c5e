/* SPDX-License-Identifier: Apache-2.0
 *
 * Invariant CRC of RoCEv2 over IPv6, in full and as a change.
 *
 * In full: the CRC runs over a short private copy of the headers with the
 * masked fields set, and goes on over the packet itself.
 *
 * As a change: moving a CRC past n bytes multiplies it by x^(8n) modulo the polynomial.
 * zlib makes that multiplier; as it takes a microsecond and depends on n only, each is kept
 * once made, for all threads.  A product is the sum of what the factor's half bytes give, so
 * a table of these makes it eight look-ups.  Each thread has such tables for the lengths that
 * it met last.  Making one takes the time of two products by zlib, and a packet needs few, so
 * a stream of ever new lengths slows nobody down by much.
 */
#include "lib/icrc.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>
#include <zlib.h>

#ifdef HAVE_ISAL
#include <isa-l/crc.h>
#endif

#include "lib/wire.h"

#define ONES_LEN   8
#define MASKED_LEN (IP6_HDR_LEN + sizeof(struct udp_hdr) + sizeof(struct bth))
#define SHIFT_MAX  65536
#define POLYNOMIAL UINT32_C(0xedb88320) /* bit 31 is that of x^0; without x^32. */

/* Multiplication by x^(8 * bytes). */
struct shifter {
    size_t bytes;             /* plus 1; 0: not made yet. */
    uint32_t products[8][16]; /* of half byte i of a CRC, counted from its lowest bit. */
};

/* By length.  Few differ in a group: first, middle and last packet of a message.  Those of one
 * packet are so close together that none takes another's place. */
#define N_SHIFTERS 64
static _Thread_local struct shifter shifters[N_SHIFTERS];

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

/* The fields that routers change. */
static void
mask_ip6(struct ip6_hdr_wire *ip)
{
    ip->vtf = be32_put(be32_get(ip->vtf) | 0x0fffffff); /* all but the version. */
    ip->hlim = 0xff;
}

static void
mask_udp_bth(struct udp_hdr *udp, struct bth *bth)
{
    udp->csum = be16_put(0xffff);
    bth->resv8a = 0xff;
}

uint32_t
icrc_compute(const uint8_t *ip, size_t len)
{
    uint8_t masked[ONES_LEN + MASKED_LEN];
    struct ip6_hdr_wire *mip = (struct ip6_hdr_wire *) (masked + ONES_LEN);
    struct udp_hdr *mudp = (struct udp_hdr *) (mip + 1);

    assert(len >= MASKED_LEN);
    memset(masked, 0xff, ONES_LEN);
    memcpy(mip, ip, MASKED_LEN);
    mask_ip6(mip);
    mask_udp_bth(mudp, (struct bth *) (mudp + 1));

    return crc32_more(crc32_more(0, masked, sizeof masked), ip + MASKED_LEN, len - MASKED_LEN);
}

uint32_t
icrc_compute_with_ext(const uint8_t *ip, size_t l4_ofs, size_t len)
{
    struct {
        uint8_t ones[ONES_LEN];
        struct ip6_hdr_wire ip;
    } front;
    struct {
        struct udp_hdr udp;
        struct bth bth;
    } l4;

    assert(l4_ofs >= sizeof front.ip && len >= l4_ofs && len - l4_ofs >= sizeof l4);
    memset(front.ones, 0xff, sizeof front.ones);
    memcpy(&front.ip, ip, sizeof front.ip);
    mask_ip6(&front.ip);
    memcpy(&l4, ip + l4_ofs, sizeof l4);
    mask_udp_bth(&l4.udp, &l4.bth);

    uint32_t crc = crc32_more(0, (const uint8_t *) &front, sizeof front);
    crc = crc32_more(crc, ip + sizeof front.ip, l4_ofs - sizeof front.ip);
    crc = crc32_more(crc, (const uint8_t *) &l4, sizeof l4);
    return crc32_more(crc, ip + l4_ofs + sizeof l4, len - l4_ofs - sizeof l4);
}

uint32_t
icrc_load(const uint8_t *at)
{
    return (uint32_t) at[3] << 24 | (uint32_t) at[2] << 16 | (uint32_t) at[1] << 8 | at[0];
}

void
icrc_store(uint8_t *at, uint32_t icrc)
{
    at[0] = (uint8_t) icrc;
    at[1] = (uint8_t) (icrc >> 8);
    at[2] = (uint8_t) (icrc >> 16);
    at[3] = (uint8_t) (icrc >> 24);
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

/* x^(8n). */
static uint32_t
multiplier(size_t n)
{
    static _Atomic uint32_t known[SHIFT_MAX]; /* 0: not made yet; none is 0. */
    uint32_t m = atomic_load_explicit(&known[n], memory_order_relaxed);

    if (!m) {
        m = (uint32_t) crc32_combine_gen((z_off_t) n);
        atomic_store_explicit(&known[n], m, memory_order_relaxed);
    }
    return m;
}

static void
shifter_init(struct shifter *s, size_t n)
{
    uint32_t product = multiplier(n);

    s->bytes = n + 1;
    for (size_t i = 8; i-- > 0;) {
        uint32_t *of = s->products[i];

        of[0] = 0;
        for (size_t bit = 8; bit; bit /= 2) {
            of[bit] = product;
            product = product >> 1 ^ (product & 1 ? POLYNOMIAL : 0); /* times x. */
        }
        for (size_t v = 1; v < 16; v++) {
            of[v] = of[v & -v] ^ of[v & (v - 1)];
        }
    }
}

/* What half byte i of 'crc' gives. */
static uint32_t
product(const struct shifter *s, uint32_t crc, unsigned i)
{
    return s->products[i][crc >> (4 * i) & 0xf];
}

uint32_t
icrc_shift(uint32_t crc, size_t n)
{
    struct shifter *s = &shifters[n % N_SHIFTERS];

    assert(n < SHIFT_MAX);
    if (s->bytes != n + 1) {
        shifter_init(s, n);
    }
    /* A loop would take twice as many instructions. */
    return product(s, crc, 0) ^ product(s, crc, 1) ^ product(s, crc, 2) ^ product(s, crc, 3)
           ^ product(s, crc, 4) ^ product(s, crc, 5) ^ product(s, crc, 6) ^ product(s, crc, 7);
}

/* The CRC register takes bytes lowest bit first: what is XORed into it is shifted with it. */
uint32_t
icrc_diff_be64(uint64_t diff, size_t n)
{
    uint32_t first = __builtin_bswap32((uint32_t) (diff >> 32));
    uint32_t second = __builtin_bswap32((uint32_t) diff);

    return icrc_shift(first, n + 8) ^ icrc_shift(second, n + 4);
}

void
icrc_set_ack_req(struct bth *bth, size_t after_qpn, uint8_t *icrc)
{
    uint8_t diff = ~bth->ack_req & BTH_ACK_REQ;

    bth->ack_req |= BTH_ACK_REQ;
    icrc_store(icrc, icrc_load(icrc) ^ icrc_shift(diff, after_qpn));
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
