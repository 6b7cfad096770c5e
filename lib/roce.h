/* SPDX-License-Identifier: Apache-2.0
 *
 * RoCE opcodes: one table says what each opcode carries; all branching on
 * opcodes asks it.  (IBTA volume 1, 9.2; facts checked against rdma_rxe.)
 */
#ifndef LIB_ROCE_H
#define LIB_ROCE_H 1

#include <stdbool.h>
#include <stdint.h>

#include "lib/wire.h"

enum roce_opcode {
    RC_SEND_FIRST = 0x00,
    RC_SEND_MIDDLE = 0x01,
    RC_SEND_LAST = 0x02,
    RC_SEND_LAST_IMM = 0x03,
    RC_SEND_ONLY = 0x04,
    RC_SEND_ONLY_IMM = 0x05,
    RC_WRITE_FIRST = 0x06,
    RC_WRITE_MIDDLE = 0x07,
    RC_WRITE_LAST = 0x08,
    RC_WRITE_LAST_IMM = 0x09,
    RC_WRITE_ONLY = 0x0a,
    RC_WRITE_ONLY_IMM = 0x0b,
    RC_READ_REQ = 0x0c,
    RC_READ_RESP_FIRST = 0x0d,
    RC_READ_RESP_MIDDLE = 0x0e,
    RC_READ_RESP_LAST = 0x0f,
    RC_READ_RESP_ONLY = 0x10,
    RC_ACK = 0x11,
    RC_ATOMIC_ACK = 0x12,
    RC_CMP_SWAP = 0x13,
    RC_FETCH_ADD = 0x14,
    RC_SEND_LAST_INV = 0x16,
    RC_SEND_ONLY_INV = 0x17,
    RC_FLUSH = 0x1c,
    RC_ATOMIC_WRITE = 0x1d,
    UD_SEND_ONLY = 0x64,
    ROCE_CNP = 0x81,
};

#define ROCE_TRANSPORT(OPCODE) ((OPCODE) &0xe0)
#define ROCE_TRANSPORT_RC      0x00
#define ROCE_TRANSPORT_UC      0x20
#define ROCE_TRANSPORT_UD      0x60

/* Properties. */
#define ROCE_F_REQUEST         0x0001
#define ROCE_F_RESPONSE        0x0002
#define ROCE_F_START           0x0004 /* first packet of a message (FIRST, ONLY). */
#define ROCE_F_END             0x0008 /* last packet of a message (LAST, ONLY). */
#define ROCE_F_RETH            0x0010
#define ROCE_F_AETH            0x0020
#define ROCE_F_IMM             0x0040
#define ROCE_F_IETH            0x0080
#define ROCE_F_ATOMIC          0x0100
#define ROCE_F_PAYLOAD         0x0200
/* May be copied to many receivers: SEND and WRITE, with or without immediate. */
#define ROCE_F_MULTICAST       0x0400

struct roce_opcode_info {
    const char *name; /* NULL: unknown opcode. */
    uint16_t flags;
    uint8_t ext_len; /* bytes of extended headers after the BTH. */
};

extern const struct roce_opcode_info roce_opcodes[256];

/* Never NULL; an unknown opcode has a NULL name and no flags. */
static inline const struct roce_opcode_info *
roce_opcode_info(uint8_t opcode)
{
    return &roce_opcodes[opcode];
}

/* RNR timer code (5 bits) to microseconds; code 0 is the longest. */
uint32_t roce_rnr_usec(uint8_t code);
/* The code of the longer of two timers. */
uint8_t roce_rnr_longer(uint8_t a, uint8_t b);

/* Flow label for a RoCE packet in IPv6: a 20-bit hash, never 0, of addresses,
 * ports and dest_qp; equal for all packets of a QP. */
uint32_t roce_flow_label(const struct ip6_hdr_wire *, const struct udp_hdr *, const struct bth *);

#endif /* lib/roce.h */
