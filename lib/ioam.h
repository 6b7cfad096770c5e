/* SPDX-License-Identifier: Apache-2.0
 *
 * IOAM pre-allocated trace (RFC 9197 section 4.4) in a Hop-by-Hop Options header (RFC 9486): each
 * node on a packet's way writes an element into a slot that the sender has left for it, the newest
 * in front.
 *
 *     next header | length | 01 00 | 31 len 00 00 | Namespace-ID | NodeLen 5, Flags 4,
 *     RemainingLen 7 | Trace-Type 24, Reserved 8 | slots
 *
 * Here: namespace 1, trace type 0xb60000, so that an element is 20 bytes:
 *
 *     Hop_Lim 8, node_id 24 | seconds | microseconds, of reception |
 *     bytes sent by the egress port, modulo 2^32 | bytes that wait at the egress port
 *
 * As a transit node it fills traces of any type whose namespace it knows (0 and 1); fields that it
 * cannot fill are ffffffff.
 */
#ifndef LIB_IOAM_H
#define LIB_IOAM_H 1

#include <stdbool.h>
#include <stdint.h>

#include "lib/wire.h"

#define IOAM_OPTION         0x31
#define IOAM_NAMESPACE      1
#define IOAM_TRACE_TYPE     0xb60000u
#define IOAM_ELEMENT_LEN    20
#define IOAM_MAX_SLOTS      11 /* so that a Fast CNP has room for all of them. */
#define IOAM_TRACE_HDR_LEN  8
/* Bytes of the Hop-by-Hop header; a multiple of 8.  'slots' is 1..IOAM_MAX_SLOTS. */
#define IOAM_HBH_LEN(SLOTS) ((16u + IOAM_ELEMENT_LEN * (SLOTS) + 7u) / 8u * 8u)

/* What a node says of a packet. */
struct ioam_element {
    uint8_t hop_limit;      /* as the packet leaves. */
    uint32_t node_id;       /* 24 bits. */
    uint32_t seconds, usec; /* when it came. */
    uint32_t sent_bytes;    /* of the egress port before it, modulo 2^32. */
    uint32_t queue_bytes;   /* that wait at the egress port. */
};

/* Writes an empty Hop-by-Hop header of IOAM_HBH_LEN(slots) bytes. */
void ioam_build(uint8_t *at, uint8_t next_header, unsigned slots);

/* Where the trace data of a packet are, from Namespace-ID on; NULL: it has no sound one.  'ip' is
 * an IPv6 header with 'len' bytes in all; only a Hop-by-Hop header directly behind it counts.
 * *trace_len is their length. */
uint8_t *ioam_find(uint8_t *ip, uint32_t len, uint8_t *trace_len);

enum ioam_result {
    IOAM_FILLED,
    IOAM_OVERFLOW, /* no room: the Overflow flag is set. */
    IOAM_IGNORED,  /* unknown namespace, or a trace that nobody may change. */
};
/* Does a transit node's part. */
enum ioam_result ioam_fill(uint8_t *trace, uint8_t trace_len, const struct ioam_element *);

/* Reads element 'i', newest first, of a trace of type IOAM_TRACE_TYPE; false: there is none. */
bool ioam_read(const uint8_t *trace, uint8_t trace_len, unsigned i, struct ioam_element *);
/* Writes the trace to 'out' without its empty slots (RemainingLen 0).  Returns its length. */
uint8_t ioam_compact(const uint8_t *trace, uint8_t trace_len, uint8_t *out);

#endif /* lib/ioam.h */
