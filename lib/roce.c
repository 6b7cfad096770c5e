/* SPDX-License-Identifier: Apache-2.0
 *
 * RoCE opcode table and RNR timers (IBTA volume 1, 9.2 and 9.7.5.2.8), flow labels.
 */
#include "lib/roce.h"

#include <stddef.h>
#include <zlib.h>

#define REQ    ROCE_F_REQUEST
#define RESP   ROCE_F_RESPONSE
#define FIRST  ROCE_F_START
#define LAST   ROCE_F_END
#define ONLY   (ROCE_F_START | ROCE_F_END)
#define RETH   ROCE_F_RETH
#define AETH   ROCE_F_AETH
#define IMM    ROCE_F_IMM
#define IETH   ROCE_F_IETH
#define ATOMIC ROCE_F_ATOMIC
#define DATA   ROCE_F_PAYLOAD
/* A request that can be copied. */
#define COPY   (ROCE_F_REQUEST | ROCE_F_PAYLOAD | ROCE_F_MULTICAST)

const struct roce_opcode_info roce_opcodes[256] = {
    [RC_SEND_FIRST] = {"SEND_FIRST", COPY | FIRST, 0},
    [RC_SEND_MIDDLE] = {"SEND_MIDDLE", COPY, 0},
    [RC_SEND_LAST] = {"SEND_LAST", COPY | LAST, 0},
    [RC_SEND_LAST_IMM] = {"SEND_LAST_IMM", COPY | LAST | IMM, 4},
    [RC_SEND_ONLY] = {"SEND_ONLY", COPY | ONLY, 0},
    [RC_SEND_ONLY_IMM] = {"SEND_ONLY_IMM", COPY | ONLY | IMM, 4},
    [RC_WRITE_FIRST] = {"WRITE_FIRST", COPY | FIRST | RETH, 16},
    [RC_WRITE_MIDDLE] = {"WRITE_MIDDLE", COPY, 0},
    [RC_WRITE_LAST] = {"WRITE_LAST", COPY | LAST, 0},
    [RC_WRITE_LAST_IMM] = {"WRITE_LAST_IMM", COPY | LAST | IMM, 4},
    [RC_WRITE_ONLY] = {"WRITE_ONLY", COPY | ONLY | RETH, 16},
    [RC_WRITE_ONLY_IMM] = {"WRITE_ONLY_IMM", COPY | ONLY | RETH | IMM, 20},
    [RC_READ_REQ] = {"READ_REQ", REQ | ONLY | RETH, 16},
    [RC_READ_RESP_FIRST] = {"READ_RESP_FIRST", RESP | FIRST | AETH | DATA, 4},
    [RC_READ_RESP_MIDDLE] = {"READ_RESP_MIDDLE", RESP | DATA, 0},
    [RC_READ_RESP_LAST] = {"READ_RESP_LAST", RESP | LAST | AETH | DATA, 4},
    [RC_READ_RESP_ONLY] = {"READ_RESP_ONLY", RESP | ONLY | AETH | DATA, 4},
    [RC_ACK] = {"ACK", RESP | ONLY | AETH, 4},
    [RC_ATOMIC_ACK] = {"ATOMIC_ACK", RESP | ONLY | AETH, 12},
    [RC_CMP_SWAP] = {"CMP_SWAP", REQ | ONLY | ATOMIC, 28},
    [RC_FETCH_ADD] = {"FETCH_ADD", REQ | ONLY | ATOMIC, 28},
    /* The key to invalidate is one receiver's, so no copies. */
    [RC_SEND_LAST_INV] = {"SEND_LAST_INV", REQ | LAST | IETH | DATA, 4},
    [RC_SEND_ONLY_INV] = {"SEND_ONLY_INV", REQ | ONLY | IETH | DATA, 4},
    /* FETH (4 bytes) comes before FLUSH's RETH: not where ROCE_F_RETH says. */
    [RC_FLUSH] = {"FLUSH", REQ | ONLY, 20},
    [RC_ATOMIC_WRITE] = {"ATOMIC_WRITE", REQ | ONLY | RETH | DATA, 16},
    /* DETH.  Of what is not RC only this is known: RDMA-CM's messages (lib/cm.h). */
    [UD_SEND_ONLY] = {"UD_SEND_ONLY", ONLY | DATA, 8},
    /* 16 reserved bytes; neither a request nor a response of a PSN. */
    [ROCE_CNP] = {"CNP", 0, 16},
};

uint32_t
roce_rnr_usec(uint8_t code)
{
    static const uint32_t usec[32] = {
        655360, 10,    20,    30,    40,    60,     80,     120,    160,    240,    320,
        480,    640,   960,   1280,  1920,  2560,   3840,   5120,   7680,   10240,  15360,
        20480,  30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520,
    };

    return usec[code & 31];
}

uint8_t
roce_rnr_longer(uint8_t a, uint8_t b)
{
    return roce_rnr_usec(a) >= roce_rnr_usec(b) ? a : b;
}

uint32_t
roce_flow_label(const struct ip6_hdr_wire *ip, const struct udp_hdr *udp, const struct bth *bth)
{
    /* Source and destination are adjacent, both the addresses and the ports. */
    uLong hash = crc32(0, (const uint8_t *) ip + offsetof(struct ip6_hdr_wire, src),
                       sizeof ip->src + sizeof ip->dst);
    hash = crc32(hash, (const uint8_t *) udp, sizeof udp->sport + sizeof udp->dport);
    hash = crc32(hash, bth->dest_qp.b, sizeof bth->dest_qp);

    uint32_t label = (uint32_t) (hash ^ hash >> 20) & 0xfffff;
    return label ? label : 1;
}
