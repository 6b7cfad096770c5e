/* SPDX-License-Identifier: Apache-2.0
 *
 * Wire formats: Ethernet, IPv6 (RFC 8200), SRH (RFC 8754), the End.MT TLV
 * (draft-li-spring-rdma-multicast-over-srv6-00, section 7.2) and RoCEv2.
 *
 * Every structure is made of bytes only, so that any address is aligned for it
 * and there is no padding.  Multi-byte fields are big-endian and reached only
 * through the get/put functions below; sub-fields have a pair each.
 */
#ifndef LIB_WIRE_H
#define LIB_WIRE_H 1

#include <assert.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Big-endian integers on the wire.  Compilers make one load or store of what is written out like
 * this, not of a loop. */
typedef struct {
    uint8_t b[2];
} be16_t;
typedef struct {
    uint8_t b[3];
} be24_t;
typedef struct {
    uint8_t b[4];
} be32_t;
typedef struct {
    uint8_t b[8];
} be64_t;

static inline uint16_t
be16_get(be16_t x)
{
    return (uint16_t) (x.b[0] << 8 | x.b[1]);
}

static inline uint32_t
be24_get(be24_t x)
{
    return (uint32_t) x.b[0] << 16 | (uint32_t) x.b[1] << 8 | x.b[2];
}

static inline uint32_t
be32_get(be32_t x)
{
    return (uint32_t) x.b[0] << 24 | (uint32_t) x.b[1] << 16 | (uint32_t) x.b[2] << 8 | x.b[3];
}

static inline uint64_t
be64_get(be64_t x)
{
    return (uint64_t) x.b[0] << 56 | (uint64_t) x.b[1] << 48 | (uint64_t) x.b[2] << 40
           | (uint64_t) x.b[3] << 32 | (uint64_t) x.b[4] << 24 | (uint64_t) x.b[5] << 16
           | (uint64_t) x.b[6] << 8 | x.b[7];
}

static inline be16_t
be16_put(uint16_t v)
{
    return (be16_t){{(uint8_t) (v >> 8), (uint8_t) v}};
}

static inline be24_t
be24_put(uint32_t v)
{
    return (be24_t){{(uint8_t) (v >> 16), (uint8_t) (v >> 8), (uint8_t) v}};
}

static inline be32_t
be32_put(uint32_t v)
{
    return (be32_t){{(uint8_t) (v >> 24), (uint8_t) (v >> 16), (uint8_t) (v >> 8), (uint8_t) v}};
}

static inline be64_t
be64_put(uint64_t v)
{
    return (be64_t){{(uint8_t) (v >> 56), (uint8_t) (v >> 48), (uint8_t) (v >> 40),
                     (uint8_t) (v >> 32), (uint8_t) (v >> 24), (uint8_t) (v >> 16),
                     (uint8_t) (v >> 8), (uint8_t) v}};
}

/* An address inside a packet: struct in6_addr as such wants an alignment of 4. */
typedef struct in6_addr in6_wire_t __attribute__((aligned(1)));

/* Packet sequence numbers: 24 bits, circular.  A structure, so that nobody
 * compares two of them with '<': psn_cmp() is the only order there is. */
typedef struct {
    uint32_t v; /* 0..0xffffff. */
} psn_t;

#define PSN_MASK 0xffffffu

static inline psn_t
psn_make(uint32_t v)
{
    return (psn_t){v & PSN_MASK};
}

static inline psn_t
psn_add(psn_t a, int32_t n)
{
    return psn_make(a.v + (uint32_t) n);
}

/* Signed circular distance a - b, in [-2^23, 2^23). */
static inline int32_t
psn_cmp(psn_t a, psn_t b)
{
    return (int32_t) ((a.v - b.v) << 8) >> 8;
}

static inline bool
psn_eq(psn_t a, psn_t b)
{
    return a.v == b.v;
}

/* Ethernet. */
struct eth_hdr {
    uint8_t dst[6];
    uint8_t src[6];
    be16_t type;
};
static_assert(sizeof(struct eth_hdr) == 14, "Ethernet header");

#define ETH_TYPE_IP6   0x86dd
#define ETH_TYPE_VLAN  0x8100 /* C-tag. */
#define ETH_TYPE_SVLAN 0x88a8 /* S-tag. */

/* A VLAN tag in front of a frame's type, IEEE 802.1Q section 9. */
struct vlan_tag {
    be16_t type;
    be16_t tci; /* priority 3, DEI 1, VLAN ID 12. */
};
static_assert(sizeof(struct vlan_tag) == 4, "VLAN tag");

/* 0: the frame has a priority and no VLAN. */
static inline uint16_t
vlan_id(const struct vlan_tag *tag)
{
    return be16_get(tag->tci) & 0xfff;
}

/* The outermost tag in the bytes of an Ethernet frame, or NULL. */
static inline const struct vlan_tag *
eth_vlan_tag(const uint8_t *frame, size_t len)
{
    if (len < sizeof(struct eth_hdr) + sizeof(struct vlan_tag)) {
        return NULL;
    }
    const struct vlan_tag *tag = (const struct vlan_tag *) (frame + offsetof(struct eth_hdr, type));
    uint16_t type = be16_get(tag->type);
    return type == ETH_TYPE_VLAN || type == ETH_TYPE_SVLAN ? tag : NULL;
}

/* IPv6, RFC 8200 section 3. */
struct ip6_hdr_wire {
    be32_t vtf;   /* version 4, traffic class 8, flow label 20. */
    be16_t plen;  /* payload length, extension headers included. */
    uint8_t nh;   /* next header. */
    uint8_t hlim; /* hop limit. */
    in6_wire_t src;
    in6_wire_t dst;
};
static_assert(sizeof(struct ip6_hdr_wire) == 40, "IPv6 header");
static_assert(_Alignof(struct ip6_hdr_wire) == 1, "IPv6 header");
static_assert(offsetof(struct ip6_hdr_wire, dst) == 24, "IPv6 destination");

#define IP6_HDR_LEN     40
#define IP6_NH_HOPOPT   0
#define IP6_NH_UDP      17
#define IP6_NH_IPV6     41
#define IP6_NH_ROUTING  43
#define IP6_NH_FRAGMENT 44
#define IP6_NH_ICMPV6   58
#define IP6_NH_NONE     59
#define IP6_NH_DSTOPT   60

static inline uint8_t
ip6_tc(const struct ip6_hdr_wire *ip)
{
    return (uint8_t) (be32_get(ip->vtf) >> 20);
}

static inline void
ip6_set_vtf(struct ip6_hdr_wire *ip, uint8_t tc, uint32_t flow_label)
{
    ip->vtf = be32_put(6u << 28 | (uint32_t) tc << 20 | (flow_label & 0xfffff));
}

static inline uint32_t
ip6_flow_label(const struct ip6_hdr_wire *ip)
{
    return be32_get(ip->vtf) & 0xfffff;
}

struct udp_hdr {
    be16_t sport;
    be16_t dport;
    be16_t len; /* header included. */
    be16_t csum;
};
static_assert(sizeof(struct udp_hdr) == 8, "UDP header");

#define UDP_PORT_ROCE 4791

/* Segment Routing Header, RFC 8754 section 2. */
struct srh_hdr {
    uint8_t nh;
    uint8_t hdr_ext_len; /* 8-octet units after the first 8. */
    uint8_t type;        /* 4. */
    uint8_t segments_left;
    uint8_t last_entry;
    uint8_t flags;
    be16_t tag;
};
static_assert(sizeof(struct srh_hdr) == 8, "SRH");

#define SRH_ROUTING_TYPE 4
#define SRH_MAX_LEN      (8 + 255 * 8)

/* SRH TLVs.  Pad1 is one byte; all others have a type and a length of value. */
struct srh_tlv {
    uint8_t type;
    uint8_t len; /* of the value only. */
};
static_assert(sizeof(struct srh_tlv) == 2, "SRH TLV");

#define SRH_TLV_PAD1    0
#define SRH_TLV_PADN    4
#define SRH_TLV_HMAC    5
#define SRH_TLV_MT      124 /* End.MT, experimental range. */
#define SRH_TLV_MT_AUTH 125 /* MT-AUTH, experimental range. */
#define SRH_TLV_DATA    126 /* DATA-AUTH, experimental range. */

/* The HMAC TLV of RFC 8754 section 2.1.2 with an HMAC-SHA256, and MT-AUTH, which differs in type
 * and in what it covers (lib/auth.h).
 *
 *      0                   1                   2                   3
 *      0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *     +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
 *     |     Type      |   Length 38   |D|          Reserved           |
 *     +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
 *     |                            Key ID                             |
 *     +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
 *     |                        HMAC, 32 bytes                         |
 *
 * MT-AUTH has no D; its 16 bits are 0. */
#define AUTH_DIGEST_LEN 32
#define AUTH_TLV_LEN    38
struct auth_tlv {
    uint8_t type;
    uint8_t len;
    be16_t flags;
    be32_t key_id;
    uint8_t hmac[AUTH_DIGEST_LEN];
};
static_assert(sizeof(struct auth_tlv) == 40, "MT-AUTH and HMAC TLV");
static_assert(_Alignof(struct auth_tlv) == 1, "MT-AUTH and HMAC TLV");

#define HMAC_TLV_D   0x8000 /* the destination is not in the Segment List (reduced SRH). */

/* DATA-AUTH, which is of one packet (lib/data-auth.h).
 *
 *      0                   1                   2                   3
 *      0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *     +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
 *     |   Type 126    |   Length 38   |           Reserved            |
 *     +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
 *     |                            Key ID                             |
 *     +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
 *     |                      Sequence, 8 bytes                        |
 *     +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
 *     |                           Instance                            |
 *     +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
 *     |                           Reserved                            |
 *     +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
 *     |                        Tag, 16 bytes                          |
 */
#define DATA_TAG_LEN 16
struct data_tlv {
    uint8_t type;
    uint8_t len;
    be16_t rsv;
    be32_t key_id;
    be64_t seq;
    be32_t instance;
    be32_t rsv2;
    uint8_t tag[DATA_TAG_LEN];
};
static_assert(sizeof(struct data_tlv) == sizeof(struct auth_tlv), "DATA-AUTH TLV");
static_assert(_Alignof(struct data_tlv) == 1, "DATA-AUTH TLV");

/* End.MT TLV, draft-li section 7.2: header, then n_receivers entries. */
struct mt_tlv {
    uint8_t type;
    uint8_t len; /* 22 + 20 * n_receivers. */
    uint8_t rsv[2];
    in6_wire_t edge;
    uint8_t n_receivers; /* 0..11, since len is 8 bits. */
    uint8_t rsv2[3];
};
static_assert(sizeof(struct mt_tlv) == 24, "End.MT TLV");

struct mt_receiver {
    in6_wire_t addr;
    be24_t qpn;
    uint8_t rsv;
};
static_assert(sizeof(struct mt_receiver) == 20, "End.MT receiver entry");
static_assert(_Alignof(struct mt_tlv) == 1 && _Alignof(struct mt_receiver) == 1, "End.MT TLV");

#define MT_TLV_MAX_RECEIVERS 11
#define MT_TLV_LEN(N)        (22 + 20 * (N))

/* Base Transport Header, IBTA volume 1; byte 4 carries FECN and BECN. */
struct bth {
    uint8_t opcode;
    uint8_t flags; /* SE 0x80, MigReq 0x40, PadCnt 0x30, TVer 0x0f. */
    be16_t pkey;
    uint8_t resv8a; /* FECN 0x80, BECN 0x40; masked in the ICRC. */
    be24_t dest_qp;
    uint8_t ack_req; /* AckReq 0x80. */
    be24_t psn;
};
static_assert(sizeof(struct bth) == 12, "BTH");
static_assert(offsetof(struct bth, psn) == 9, "BTH PSN");

#define BTH_ACK_REQ       0x80
#define BTH_BECN          0x40
#define BTH_PAD(FLAGS)    (((FLAGS) >> 4) & 3)
#define BTH_TVER(FLAGS)   ((FLAGS) &0x0f)
#define ROCE_PKEY_DEFAULT 0xffff
#define ROCE_PKEY_BASE    0x7fff
#define ROCE_ICRC_LEN     4
/* The RoCE headers around the largest payload: IPv6 40, UDP 8, BTH 12, RETH 16, immediate 4,
 * ICRC 4. */
#define ROCE_OVERHEAD     84

static inline psn_t
bth_psn(const struct bth *b)
{
    return psn_make(be24_get(b->psn));
}

static inline void
bth_set_psn(struct bth *b, psn_t psn)
{
    b->psn = be24_put(psn.v);
}

/* Is the P_Key one of the default partition, in which all queue pairs of a group are?  The upper
 * bit says full or limited member.  It makes no difference here: two P_Keys match if one of them is
 * a full member's, and nodes and rxe's queue pairs are full members. */
static inline bool
bth_pkey_ok(const struct bth *b)
{
    return (be16_get(b->pkey) & ROCE_PKEY_BASE) == (ROCE_PKEY_DEFAULT & ROCE_PKEY_BASE);
}

/* RDMA Extended Transport Header. */
struct reth {
    be64_t va;
    be32_t rkey;
    be32_t dma_len;
};
static_assert(sizeof(struct reth) == 16, "RETH");

/* Datagram Extended Transport Header. */
struct deth {
    be32_t qkey;
    uint8_t rsv;
    be24_t src_qp;
};
static_assert(sizeof(struct deth) == 8, "DETH");

/* ACK Extended Transport Header. */
struct aeth {
    uint8_t syndrome;
    be24_t msn;
};
static_assert(sizeof(struct aeth) == 4, "AETH");

#define AETH_ACK_UNLIMITED   0x1f /* ACK, no credit information. */
#define AETH_RNR             0x20 /* | 5-bit timer code. */
#define AETH_RNR_AT_ONCE     0x21 /* with the shortest time (code 0 is the longest). */
#define AETH_NAK_PSN_SEQ     0x60
#define AETH_NAK_INVALID_REQ 0x61
#define AETH_NAK_REM_ACCESS  0x62
#define AETH_NAK_REM_OP      0x63
#define AETH_NAK_INV_RD_REQ  0x64

enum aeth_class {
    AETH_CLASS_ACK,
    AETH_CLASS_RNR,
    AETH_CLASS_RESERVED,
    AETH_CLASS_NAK,
};

static inline enum aeth_class
aeth_class(uint8_t syndrome)
{
    return (enum aeth_class)((syndrome >> 5) & 3);
}

#endif /* lib/wire.h */
