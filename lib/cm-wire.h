/* SPDX-License-Identifier: Apache-2.0
 *
 * RDMA-CM messages on the wire: the MAD header and the bodies of IBTA volume 1, chapters 12 and 13.
 * As in lib/wire.h all is bytes.  Sub-fields of a byte are masks for cm_sub_get() and cm_sub_put().
 */
#ifndef LIB_CM_WIRE_H
#define LIB_CM_WIRE_H 1

#include "lib/cm.h"

/* Sub-fields of a byte, each named by its mask. */
static inline uint8_t
cm_sub_get(uint8_t byte, uint8_t mask)
{
    return (uint8_t) ((byte & mask) / (mask & -mask));
}

static inline uint8_t
cm_sub_put(uint8_t value, uint8_t mask)
{
    return (uint8_t) (value * (mask & -mask) & mask);
}

/* MAD header, IBTA volume 1, 13.4.3.
 *
 *     0                   1                   2                   3
 *     0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *    +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
 *    | base version 1|    class 7    |class version 2|R|  method 3   |
 *    |            status             |        class specific         |
 *    |                        transaction ID                         |
 *    |                                                               |
 *    |         attribute ID          |           reserved            |
 *    |                      attribute modifier                       |
 */
struct cm_mad {
    uint8_t base_version;
    uint8_t class;
    uint8_t class_version;
    uint8_t method;
    be16_t status;
    be16_t class_specific;
    be64_t tid;
    be16_t attribute;
    be16_t rsv;
    be32_t modifier;
    uint8_t body[232];
};
static_assert(sizeof(struct cm_mad) == CM_MAD_LEN, "MAD");
static_assert(offsetof(struct cm_mad, body) == 24, "MAD header");

#define CM_MAD_BASE_VERSION     1
#define CM_MAD_CLASS_CM         7
#define CM_MAD_CLASS_VERSION_CM 2
#define CM_MAD_METHOD_SEND      3

#define CM_BODY_ASSERT(BODY)                                                              \
    static_assert(sizeof(struct cm_##BODY) == sizeof((struct cm_mad *) 0)->body, "size"); \
    static_assert(_Alignof(struct cm_##BODY) == 1, "alignment")
#define CM_OFFSET_ASSERT(BODY, MEMBER, OFFSET) \
    static_assert(offsetof(struct cm_##BODY, MEMBER) == (OFFSET), #BODY " " #MEMBER)

/* RDMA IP CM private data, annex A11.
 *
 *     0                   1                   2                   3
 *     0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *    +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
 *    |   version 0   | IPV 6 |  rsv  |          source port          |
 *    |                   source address, 16 bytes                    |
 *    |                 destination address, 16 bytes                 |
 */
struct cm_ip_header {
    uint8_t version;
    uint8_t ipv;
    be16_t sport;
    in6_wire_t src;
    in6_wire_t dst;
};
static_assert(sizeof(struct cm_ip_header) == CM_IP_HEADER_LEN, "IP CM header");

#define CM_IP_HEADER_VERSION 0
#define CM_IPV_VERSION       0xf0

/* What is behind the BTH. */
struct cm_datagram {
    struct deth deth;
    struct cm_mad mad;
    uint8_t icrc[ROCE_ICRC_LEN];
};
static_assert(sizeof(struct cm_datagram) == CM_DETH_LEN + CM_MAD_LEN + ROCE_ICRC_LEN, "datagram");

/* REQ, 12.6.5.
 *
 *        0               1               2               3
 *        +---------------+---------------+---------------+---------------+
 *      0 |                    local communication ID                     |
 *      4 |                           reserved                            |
 *      8 |                      service ID, 8 bytes                      |
 *     16 |                    local CA GUID, 8 bytes                     |
 *     24 |                           reserved                            |
 *     28 |                          local Q_Key                          |
 *     32 |                   local QPN                   | resp.resources|
 *     36 |                  local EECN                   |initiator depth|
 *     40 |                  remote EECN                  |CM timeout|TT|F|
 *     44 |                 starting PSN                  |CM timeout|rtry|
 *     48 |             P_Key             |  MTU |R|RNR r.|CM retr.|S|ext |
 *     52 |           local LID           |          remote LID           |
 *     56 |                      local GID, 16 bytes                      |
 *     72 |                     remote GID, 16 bytes                      |
 *     88 |             flow label 20             | rsv 6     |packet rate|
 *     92 | traffic class |   hop limit   | SL 4, L, rsv  |ACK time 5|rsv |
 *     96 |                   alternate path, 44 bytes                    |
 *    140 |                    private data, 92 bytes                     |
 */
struct cm_req {
    be32_t local_id;
    be32_t rsv;
    be64_t service;
    be64_t ca_guid;
    be32_t rsv2;
    be32_t qkey;
    be24_t qpn;
    uint8_t responder_resources;
    be24_t eecn;
    uint8_t initiator_depth;
    be24_t remote_eecn;
    uint8_t remote_timeout; /* CM_REQ_REMOTE_CM_TIMEOUT, CM_REQ_TRANSPORT, end-to-end flow 1. */
    be24_t psn;
    uint8_t local_timeout; /* CM_REQ_LOCAL_CM_TIMEOUT, CM_REQ_RETRY. */
    be16_t pkey;
    uint8_t mtu;        /* CM_REQ_MTU, RDC exists, CM_REQ_RNR_RETRY. */
    uint8_t cm_retries; /* CM_REQ_MAX_CM_RETRIES, CM_REQ_SRQ, extended transport. */
    be16_t local_lid;
    be16_t remote_lid;
    in6_wire_t local_gid;
    in6_wire_t remote_gid;
    be32_t flow;
    uint8_t traffic_class;
    uint8_t hop_limit;
    uint8_t sl;
    uint8_t ack_timeout; /* CM_REQ_ACK_TIMEOUT. */
    uint8_t alternate[44];
    union {
        uint8_t raw[CM_REQ_RAW_PRIVATE_LEN];
        struct {
            struct cm_ip_header ip;
            uint8_t private_data[CM_REQ_PRIVATE_LEN];
        };
    };
};
CM_BODY_ASSERT(req);
CM_OFFSET_ASSERT(req, qkey, 28);
CM_OFFSET_ASSERT(req, remote_timeout, 43);
CM_OFFSET_ASSERT(req, local_timeout, 47);
CM_OFFSET_ASSERT(req, cm_retries, 51);
CM_OFFSET_ASSERT(req, local_gid, 56);
CM_OFFSET_ASSERT(req, ack_timeout, 95);
CM_OFFSET_ASSERT(req, raw, 140);
CM_OFFSET_ASSERT(req, private_data, 176);

#define CM_REQ_REMOTE_CM_TIMEOUT 0xf8
#define CM_REQ_TRANSPORT         0x06
#define CM_REQ_LOCAL_CM_TIMEOUT  0xf8
#define CM_REQ_RETRY             0x07
#define CM_REQ_MTU               0xf0
#define CM_REQ_RNR_RETRY         0x07
#define CM_REQ_MAX_CM_RETRIES    0xf0
#define CM_REQ_SRQ               0x08
#define CM_REQ_ACK_TIMEOUT       0xf8

/* The two communication IDs with which each body begins but REQ's and SIDR's; also all of RTU
 * (12.6.9) and DREP (12.6.11) but their private data. */
struct cm_ids {
    be32_t local_id;
    be32_t remote_id;
    uint8_t rest[224];
};
CM_BODY_ASSERT(ids);

/* REP, 12.6.8.
 *
 *        0               1               2               3
 *        +---------------+---------------+---------------+---------------+
 *      0 |                 communication IDs, 2 x 4 bytes                |
 *      8 |                          local Q_Key                          |
 *     12 |                   local QPN                   |   reserved    |
 *     16 |                  local EECN                   |   reserved    |
 *     20 |                 starting PSN                  |   reserved    |
 *     24 | resp.resources|initiator depth|ACK delay|FO|F |RNR r.|S|  rsv |
 *     28 |                    local CA GUID, 8 bytes                     |
 *     36 |                    private data, 196 bytes                    |
 */
struct cm_rep {
    be32_t local_id;
    be32_t remote_id;
    be32_t qkey;
    be24_t qpn;
    uint8_t rsv;
    be24_t eecn;
    uint8_t rsv2;
    be24_t psn;
    uint8_t rsv3;
    uint8_t responder_resources;
    uint8_t initiator_depth;
    uint8_t ack_delay; /* target ACK delay 5, fail-over accepted 2, end-to-end flow control 1. */
    uint8_t rnr_retry; /* CM_REP_RNR_RETRY, CM_REP_SRQ. */
    be64_t ca_guid;
    uint8_t private_data[CM_REP_PRIVATE_LEN];
};
CM_BODY_ASSERT(rep);
CM_OFFSET_ASSERT(rep, psn, 20);
CM_OFFSET_ASSERT(rep, private_data, 36);

#define CM_REP_RNR_RETRY 0xe0
#define CM_REP_SRQ       0x10

/* MRA, 12.6.6, and REJ, 12.6.7.
 *
 *        0               1               2               3
 *        +---------------+---------------+---------------+---------------+
 *      0 |                 communication IDs, 2 x 4 bytes                |
 *      8 |about| reserved|service t.|rsv |         private data          |
 *
 *      8 |about| reserved| info length |r|            reason             |
 *     12 |           additional rejection information, 72 bytes          |
 *     84 |                    private data, 148 bytes                    |
 */
struct cm_mra {
    be32_t local_id;
    be32_t remote_id;
    uint8_t about;           /* CM_ABOUT. */
    uint8_t service_timeout; /* CM_MRA_SERVICE_TIMEOUT. */
    uint8_t private_data[222];
};
CM_BODY_ASSERT(mra);
CM_OFFSET_ASSERT(mra, private_data, 10);

struct cm_rej {
    be32_t local_id;
    be32_t remote_id;
    uint8_t about;    /* CM_ABOUT. */
    uint8_t info_len; /* 7 bits. */
    be16_t reason;
    uint8_t info[CM_REJ_INFO_LEN];
    uint8_t private_data[CM_REJ_PRIVATE_LEN];
};
CM_BODY_ASSERT(rej);
CM_OFFSET_ASSERT(rej, reason, 10);
CM_OFFSET_ASSERT(rej, private_data, 84);

#define CM_ABOUT               0xc0
#define CM_MRA_SERVICE_TIMEOUT 0xf8

/* DREQ, 12.6.10.
 *
 *        0               1               2               3
 *        +---------------+---------------+---------------+---------------+
 *      0 |                 communication IDs, 2 x 4 bytes                |
 *      8 |                  remote QPN                   |   reserved    |
 *     12 |                    private data, 220 bytes                    |
 */
struct cm_dreq {
    be32_t local_id;
    be32_t remote_id;
    be24_t remote_qpn;
    uint8_t rsv;
    uint8_t private_data[220];
};
CM_BODY_ASSERT(dreq);
CM_OFFSET_ASSERT(dreq, private_data, 12);

/* SIDR_REQ, 12.11.1, and SIDR_REP, 12.11.2.
 *
 *        0               1               2               3
 *        +---------------+---------------+---------------+---------------+
 *      0 |                          request ID                           |
 *      4 |             P_Key             |           reserved            |
 *      8 |                      service ID, 8 bytes                      |
 *     16 |                    private data, 216 bytes                    |
 *
 *      0 |                          request ID                           |
 *      4 |    status     |  info length  |           reserved            |
 *      8 |                      QPN                      |   reserved    |
 *     12 |                      service ID, 8 bytes                      |
 *     20 |                             Q_Key                             |
 *     24 |                additional information, 72 bytes               |
 *     96 |                    private data, 136 bytes                    |
 */
struct cm_sidr_req {
    be32_t request_id;
    be16_t pkey;
    be16_t rsv;
    be64_t service;
    uint8_t private_data[216];
};
CM_BODY_ASSERT(sidr_req);
CM_OFFSET_ASSERT(sidr_req, private_data, 16);

struct cm_sidr_rep {
    be32_t request_id;
    uint8_t status;
    uint8_t info_len;
    be16_t rsv;
    be24_t qpn;
    uint8_t rsv2;
    be64_t service;
    be32_t qkey;
    uint8_t info[72];
    uint8_t private_data[136];
};
CM_BODY_ASSERT(sidr_rep);
CM_OFFSET_ASSERT(sidr_rep, service, 12);
CM_OFFSET_ASSERT(sidr_rep, private_data, 96);

#endif /* lib/cm-wire.h */
