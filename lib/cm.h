/* SPDX-License-Identifier: Apache-2.0
 *
 * RDMA-CM messages (IBTA volume 1, chapter 12) as they are in RoCEv2: MADs of the communication
 * management class in UD SEND ONLY packets to QP 1.
 *
 *     IPv6 | UDP 4791 | BTH opcode 64, DestQP 1 | DETH: Q_Key 80010000, source QP 1
 *          | MAD header 24 | body 232 | ICRC
 *
 * What a program that uses librdmacm says about itself is in the REQ's private data, in the header
 * of RDMA IP CM service (IBTA annex A11): the addresses and port of the connection.
 *
 * All in host byte order; pure.
 */
#ifndef LIB_CM_H
#define LIB_CM_H 1

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/packet.h"
#include "lib/parse.h"
#include "lib/wire.h"

/* Bytes from the IPv6 header to the end of the ICRC. */
#define CM_MAD_LEN    256
#define CM_DETH_LEN   8
#define CM_PACKET_LEN (IP6_HDR_LEN + 8 + 12 + CM_DETH_LEN + CM_MAD_LEN + ROCE_ICRC_LEN)

#define CM_QPN        1           /* the general service interface. */
#define CM_QKEY       0x80010000u /* its Q_Key. */

/* Attribute ids. */
#define CM_ATTRIBUTES                                                             \
    CM_ATTRIBUTE(REQ, 0x10, "ConnectRequest")                                     \
    CM_ATTRIBUTE(MRA, 0x11, "MsgRcptAck: more time is needed")                    \
    CM_ATTRIBUTE(REJ, 0x12, "ConnectReject")                                      \
    CM_ATTRIBUTE(REP, 0x13, "ConnectReply")                                       \
    CM_ATTRIBUTE(RTU, 0x14, "ReadyToUse")                                         \
    CM_ATTRIBUTE(DREQ, 0x15, "DisconnectRequest")                                 \
    CM_ATTRIBUTE(DREP, 0x16, "DisconnectReply")                                   \
    CM_ATTRIBUTE(SIDR_REQ, 0x17, "ServiceIDResReq: a UD program wants a service") \
    CM_ATTRIBUTE(SIDR_REP, 0x18, "ServiceIDResReqResp")

enum cm_attribute {
#define CM_ATTRIBUTE(NAME, ID, HELP) CM_##NAME = (ID),
    CM_ATTRIBUTES
#undef CM_ATTRIBUTE
};
/* "REQ"; a number is given as "?".  A static string. */
const char *cm_attribute_name(enum cm_attribute);

/* Service of a port of RDMA_PS_TCP, in which librdmacm's RC programs are. */
#define CM_SERVICE_TCP       UINT64_C(0x0000000001060000)
#define CM_SERVICE_PORT_MASK UINT64_C(0xffff)

static inline bool
cm_service_is_tcp(uint64_t service)
{
    return (service & ~CM_SERVICE_PORT_MASK) == CM_SERVICE_TCP;
}

/* Transport service types of a REQ. */
#define CM_TRANSPORT_RC 0

/* Path MTU codes, 1 to 5: 256 << (code - 1) bytes.  0: there is no such code, or none for exactly
 * so many bytes. */
uint32_t cm_mtu_bytes(uint8_t code);
uint8_t cm_mtu_code(uint32_t bytes);

/* A CM time-out code (5 bits) to microseconds: 4.096 us * 2^code. */
uint64_t cm_timeout_usec(uint8_t code);

/* Private data of each message. */
#define CM_IP_HEADER_LEN       36
#define CM_REQ_PRIVATE_LEN     56 /* behind the IP CM header. */
#define CM_REQ_RAW_PRIVATE_LEN (CM_IP_HEADER_LEN + CM_REQ_PRIVATE_LEN) /* without that header. */
#define CM_REP_PRIVATE_LEN     196
#define CM_REJ_PRIVATE_LEN     148
#define CM_REJ_INFO_LEN        72
#define CM_PRIVATE_SIZE        196 /* the longest of them. */

/* Reasons of a REJ, as far as they are used (IBTA volume 1, 12.6.7.2). */
#define CM_REJ_REASONS                                                  \
    CM_REJ_REASON(NO_QP, 1, "no queue pair available")                  \
    CM_REJ_REASON(NO_RESOURCES, 3, "no resources available")            \
    CM_REJ_REASON(TIMEOUT, 4, "timeout")                                \
    CM_REJ_REASON(UNSUPPORTED, 5, "unsupported request")                \
    CM_REJ_REASON(COMM_ID, 6, "invalid communication ID")               \
    CM_REJ_REASON(COMM_INSTANCE, 7, "invalid communication instance")   \
    CM_REJ_REASON(SERVICE_ID, 8, "invalid service ID")                  \
    CM_REJ_REASON(TRANSPORT, 9, "invalid transport service type")       \
    CM_REJ_REASON(STALE, 10, "stale connection")                        \
    CM_REJ_REASON(PATH_MTU, 26, "path MTU not supported")               \
    CM_REJ_REASON(CONSUMER, 28, "rejected by the consumer")             \
    CM_REJ_REASON(DUPLICATE_ID, 30, "duplicate local communication ID") \
    CM_REJ_REASON(CLASS_VERSION, 31, "unsupported class version")

enum cm_rej_reason {
#define CM_REJ_REASON(NAME, CODE, TEXT) CM_REJ_##NAME = (CODE),
    CM_REJ_REASONS
#undef CM_REJ_REASON
};
/* Text of any reason; "reason 77" has none of its own and is "another reason".  Static. */
const char *cm_rej_text(uint16_t reason);

/* What a REJ or an MRA is about. */
enum cm_about { CM_ABOUT_REQ, CM_ABOUT_REP, CM_ABOUT_OTHER };

/* One message.  Only the members that its attribute has are set; others are 0. */
struct cm_msg {
    enum cm_attribute attribute;
    uint64_t tid;       /* transaction: an answer has that of what it answers. */
    uint32_t local_id;  /* communication ID of who sends it; a SIDR_REQ's request ID. */
    uint32_t remote_id; /* of who gets it; 0 in a REQ; a SIDR_REP's request ID. */

    /* REQ, REP: the sender's queue pair. */
    uint32_t qpn;
    psn_t psn; /* that it expects first: the peer's queue pair begins with that. */
    uint64_t ca_guid;
    uint8_t responder_resources;
    uint8_t initiator_depth;
    uint8_t rnr_retry;
    bool srq;

    /* REQ. */
    uint64_t service; /* also of a SIDR_REQ and a SIDR_REP. */
    uint8_t transport;
    uint8_t retry;
    uint8_t mtu_code;
    uint8_t ack_timeout;       /* of its queue pair: packet life time, code. */
    uint8_t local_cm_timeout;  /* how long its answer to our message may take, code. */
    uint8_t remote_cm_timeout; /* how long our answer may take, code. */
    uint8_t max_cm_retries;
    struct in6_addr local_gid, remote_gid;
    /* The IP CM header is there.  Only services of RDMA_PS_TCP have it.  False also if it is not of
     * version 0 and IPv6; all of the private data, CM_REQ_RAW_PRIVATE_LEN, is then in
     * 'private_data'. */
    bool ip_header;
    uint16_t sport; /* of the program that connects. */
    struct in6_addr ip_src, ip_dst;

    /* MRA, REJ. */
    enum cm_about about;     /* the reserved value is CM_ABOUT_OTHER. */
    uint8_t service_timeout; /* MRA, code. */
    uint16_t reason;         /* REJ; may be any. */

    /* DREQ. */
    uint32_t remote_qpn; /* queue pair of who gets it. */

    /* SIDR_REP. */
    uint8_t sidr_status; /* 0: valid; 1: service not supported; 2: rejected. */

    /* REQ behind the IP CM header, REP, REJ.  A parsed message has all bytes that there is room
     * for, with the zeros behind what the program gave; a shorter one is built with zeros behind
     * it.  A longer one must not be built. */
    uint16_t private_len;
    uint8_t private_data[CM_PRIVATE_SIZE];
};

/* Is this a packet for the communication manager?  That is: UD SEND ONLY to QP 1, in nothing but
 * IPv6.  'h' is what parse_frame() made of 'data'. */
bool cm_is(const uint8_t *data, const struct parsed *h);

/* The message of a packet for which cm_is().  DROP_none, or why it is none that anybody takes (then
 * nothing is stored): length, ICRC, P_Key, Q_Key and source QP, MAD header, attribute. */
enum drop_reason cm_parse(const uint8_t *data, const struct parsed *h, struct cm_msg *);

/* An IPv6 packet (no Ethernet header) with UDP checksum 0, a valid ICRC and hop limit 64.
 * 'psn' is that of the BTH, any.  A member with more bits than its field loses the upper ones.
 * NULL: the pool is empty. */
struct packet *cm_build(struct packet_pool *, const struct in6_addr *src,
                        const struct in6_addr *dst, psn_t psn, const struct cm_msg *);

#endif /* lib/cm.h */
