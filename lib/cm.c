/* SPDX-License-Identifier: Apache-2.0
 *
 * RDMA-CM messages: parses and builds them.
 *
 * A body's structure is followed by its parse_ and build_ function, which are each other's inverse
 * for the members that struct cm_msg has.  What a body has besides is ignored when it comes, and is
 * 0 when it is sent, unless build_ says something else.
 */
#include "lib/cm.h"

#include "lib/icrc.h"
#include "lib/roce-packet.h"
#include "lib/roce.h"

#define CM_SPORT       0xc000 /* rxe and hardware choose RoCE source ports from here on. */
#define LID_PERMISSIVE 0xffff /* RoCE has no LIDs. */
#define HOP_LIMIT      64

/* Sub-fields of a byte, each named by its mask. */
static uint8_t
sub_get(uint8_t byte, uint8_t mask)
{
    return (uint8_t) ((byte & mask) / (mask & -mask));
}

static uint8_t
sub_put(uint8_t value, uint8_t mask)
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
struct mad {
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
static_assert(sizeof(struct mad) == CM_MAD_LEN, "MAD");
static_assert(offsetof(struct mad, body) == 24, "MAD header");

#define MAD_BASE_VERSION     1
#define MAD_CLASS_CM         7
#define MAD_CLASS_VERSION_CM 2
#define MAD_METHOD_SEND      3

#define BODY_ASSERT(BODY)                                                         \
    static_assert(sizeof(struct BODY) == sizeof((struct mad *) 0)->body, "size"); \
    static_assert(_Alignof(struct BODY) == 1, "alignment")
#define OFFSET_ASSERT(BODY, MEMBER, OFFSET) \
    static_assert(offsetof(struct BODY, MEMBER) == (OFFSET), #BODY " " #MEMBER)

/* RDMA IP CM private data, annex A11.
 *
 *     0                   1                   2                   3
 *     0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *    +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
 *    |   version 0   | IPV 6 |  rsv  |          source port          |
 *    |                   source address, 16 bytes                    |
 *    |                 destination address, 16 bytes                 |
 */
struct ip_header {
    uint8_t version;
    uint8_t ipv;
    be16_t sport;
    in6_wire_t src;
    in6_wire_t dst;
};
static_assert(sizeof(struct ip_header) == CM_IP_HEADER_LEN, "IP CM header");

#define IP_HEADER_VERSION 0
#define IPV_VERSION       0xf0

static void
put_private(uint8_t *at, size_t room, const struct cm_msg *m)
{
    assert(m->private_len <= room);
    memcpy(at, m->private_data, m->private_len);
}

static void
get_private(struct cm_msg *m, const uint8_t *at, size_t len)
{
    m->private_len = (uint16_t) len;
    memcpy(m->private_data, at, len);
}

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
 *     40 |                  remote EECN                  |rem.timeout|TT|F|
 *     44 |                 starting PSN                  |loc.timeout|retr|
 *     48 |             P_Key             |  MTU |R|RNR r. |CM retr.|S|ext |
 *     52 |           local LID           |          remote LID           |
 *     56 |                      local GID, 16 bytes                      |
 *     72 |                     remote GID, 16 bytes                      |
 *     88 |            flow label 20             |  rsv 6   |packet rate 6 |
 *     92 | traffic class |   hop limit   |  SL 4, L, rsv |ACK timeout|rsv|
 *     96 |                   alternate path, 44 bytes                    |
 *    140 |                    private data, 92 bytes                     |
 */
struct req {
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
    uint8_t remote_timeout; /* REQ_REMOTE_CM_TIMEOUT, REQ_TRANSPORT, end-to-end flow control. */
    be24_t psn;
    uint8_t local_timeout; /* REQ_LOCAL_CM_TIMEOUT, REQ_RETRY. */
    be16_t pkey;
    uint8_t mtu;        /* REQ_MTU, RDC exists, REQ_RNR_RETRY. */
    uint8_t cm_retries; /* REQ_MAX_CM_RETRIES, REQ_SRQ, extended transport. */
    be16_t local_lid;
    be16_t remote_lid;
    in6_wire_t local_gid;
    in6_wire_t remote_gid;
    be32_t flow;
    uint8_t traffic_class;
    uint8_t hop_limit;
    uint8_t sl;
    uint8_t ack_timeout; /* REQ_ACK_TIMEOUT. */
    uint8_t alternate[44];
    union {
        uint8_t raw[CM_REQ_RAW_PRIVATE_LEN];
        struct {
            struct ip_header ip;
            uint8_t private_data[CM_REQ_PRIVATE_LEN];
        };
    };
};
BODY_ASSERT(req);
OFFSET_ASSERT(req, qkey, 28);
OFFSET_ASSERT(req, remote_timeout, 43);
OFFSET_ASSERT(req, local_timeout, 47);
OFFSET_ASSERT(req, cm_retries, 51);
OFFSET_ASSERT(req, local_gid, 56);
OFFSET_ASSERT(req, ack_timeout, 95);
OFFSET_ASSERT(req, raw, 140);
OFFSET_ASSERT(req, private_data, 176);

#define REQ_REMOTE_CM_TIMEOUT 0xf8
#define REQ_TRANSPORT         0x06
#define REQ_LOCAL_CM_TIMEOUT  0xf8
#define REQ_RETRY             0x07
#define REQ_MTU               0xf0
#define REQ_RNR_RETRY         0x07
#define REQ_MAX_CM_RETRIES    0xf0
#define REQ_SRQ               0x08
#define REQ_ACK_TIMEOUT       0xf8

static bool
req_has_ip_header(const struct req *b)
{
    return cm_service_is_tcp(be64_get(b->service)) && b->ip.version == IP_HEADER_VERSION
           && sub_get(b->ip.ipv, IPV_VERSION) == 6;
}

static void
parse_req(const struct req *b, struct cm_msg *m)
{
    m->local_id = be32_get(b->local_id);
    m->service = be64_get(b->service);
    m->ca_guid = be64_get(b->ca_guid);
    m->qpn = be24_get(b->qpn);
    m->responder_resources = b->responder_resources;
    m->initiator_depth = b->initiator_depth;
    m->remote_cm_timeout = sub_get(b->remote_timeout, REQ_REMOTE_CM_TIMEOUT);
    m->transport = sub_get(b->remote_timeout, REQ_TRANSPORT);
    m->psn = psn_make(be24_get(b->psn));
    m->local_cm_timeout = sub_get(b->local_timeout, REQ_LOCAL_CM_TIMEOUT);
    m->retry = sub_get(b->local_timeout, REQ_RETRY);
    m->mtu_code = sub_get(b->mtu, REQ_MTU);
    m->rnr_retry = sub_get(b->mtu, REQ_RNR_RETRY);
    m->max_cm_retries = sub_get(b->cm_retries, REQ_MAX_CM_RETRIES);
    m->srq = sub_get(b->cm_retries, REQ_SRQ);
    m->local_gid = b->local_gid;
    m->remote_gid = b->remote_gid;
    m->ack_timeout = sub_get(b->ack_timeout, REQ_ACK_TIMEOUT);
    m->ip_header = req_has_ip_header(b);
    if (!m->ip_header) {
        get_private(m, b->raw, sizeof b->raw);
        return;
    }
    m->sport = be16_get(b->ip.sport);
    m->ip_src = b->ip.src;
    m->ip_dst = b->ip.dst;
    get_private(m, b->private_data, sizeof b->private_data);
}

static void
build_req(struct req *b, const struct cm_msg *m)
{
    b->local_id = be32_put(m->local_id);
    b->service = be64_put(m->service);
    b->ca_guid = be64_put(m->ca_guid);
    b->qpn = be24_put(m->qpn);
    b->responder_resources = m->responder_resources;
    b->initiator_depth = m->initiator_depth;
    b->remote_timeout =
        sub_put(m->remote_cm_timeout, REQ_REMOTE_CM_TIMEOUT) | sub_put(m->transport, REQ_TRANSPORT);
    b->psn = be24_put(m->psn.v);
    b->local_timeout =
        sub_put(m->local_cm_timeout, REQ_LOCAL_CM_TIMEOUT) | sub_put(m->retry, REQ_RETRY);
    b->pkey = be16_put(ROCE_PKEY_DEFAULT);
    b->mtu = sub_put(m->mtu_code, REQ_MTU) | sub_put(m->rnr_retry, REQ_RNR_RETRY);
    b->cm_retries = sub_put(m->max_cm_retries, REQ_MAX_CM_RETRIES) | sub_put(m->srq, REQ_SRQ);
    b->local_lid = be16_put(LID_PERMISSIVE);
    b->remote_lid = be16_put(LID_PERMISSIVE);
    b->local_gid = m->local_gid;
    b->remote_gid = m->remote_gid;
    b->hop_limit = HOP_LIMIT;
    b->ack_timeout = sub_put(m->ack_timeout, REQ_ACK_TIMEOUT);
    if (!m->ip_header) {
        put_private(b->raw, sizeof b->raw, m);
        return;
    }
    assert(cm_service_is_tcp(m->service));
    b->ip.version = IP_HEADER_VERSION;
    b->ip.ipv = sub_put(6, IPV_VERSION);
    b->ip.sport = be16_put(m->sport);
    b->ip.src = m->ip_src;
    b->ip.dst = m->ip_dst;
    put_private(b->private_data, sizeof b->private_data, m);
}

/* The two communication IDs with which each body begins but REQ's and SIDR's; also all of RTU
 * (12.6.9) and DREP (12.6.11) but their private data. */
struct ids {
    be32_t local_id;
    be32_t remote_id;
    uint8_t rest[224];
};
BODY_ASSERT(ids);

static void
parse_ids(const struct ids *b, struct cm_msg *m)
{
    m->local_id = be32_get(b->local_id);
    m->remote_id = be32_get(b->remote_id);
}

static void
build_ids(struct ids *b, const struct cm_msg *m)
{
    b->local_id = be32_put(m->local_id);
    b->remote_id = be32_put(m->remote_id);
}

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
struct rep {
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
    uint8_t rnr_retry; /* REP_RNR_RETRY, REP_SRQ. */
    be64_t ca_guid;
    uint8_t private_data[CM_REP_PRIVATE_LEN];
};
BODY_ASSERT(rep);
OFFSET_ASSERT(rep, psn, 20);
OFFSET_ASSERT(rep, private_data, 36);

#define REP_RNR_RETRY 0xe0
#define REP_SRQ       0x10

static void
parse_rep(const struct rep *b, struct cm_msg *m)
{
    m->qpn = be24_get(b->qpn);
    m->psn = psn_make(be24_get(b->psn));
    m->responder_resources = b->responder_resources;
    m->initiator_depth = b->initiator_depth;
    m->rnr_retry = sub_get(b->rnr_retry, REP_RNR_RETRY);
    m->srq = sub_get(b->rnr_retry, REP_SRQ);
    m->ca_guid = be64_get(b->ca_guid);
    get_private(m, b->private_data, sizeof b->private_data);
}

static void
build_rep(struct rep *b, const struct cm_msg *m)
{
    b->qpn = be24_put(m->qpn);
    b->psn = be24_put(m->psn.v);
    b->responder_resources = m->responder_resources;
    b->initiator_depth = m->initiator_depth;
    b->rnr_retry = sub_put(m->rnr_retry, REP_RNR_RETRY) | sub_put(m->srq, REP_SRQ);
    b->ca_guid = be64_put(m->ca_guid);
    put_private(b->private_data, sizeof b->private_data, m);
}

/* MRA, 12.6.6, and REJ, 12.6.7.
 *
 *        0               1               2               3
 *        +---------------+---------------+---------------+---------------+
 *      0 |                 communication IDs, 2 x 4 bytes                |
 *      8 |about|reserved |serv.timeout|rsv|         private data          |
 *
 *      8 |about|reserved |info length  |r|            reason             |
 *     12 |           additional rejection information, 72 bytes          |
 *     84 |                    private data, 148 bytes                    |
 */
struct mra {
    be32_t local_id;
    be32_t remote_id;
    uint8_t about;           /* ABOUT. */
    uint8_t service_timeout; /* MRA_SERVICE_TIMEOUT. */
    uint8_t private_data[222];
};
BODY_ASSERT(mra);
OFFSET_ASSERT(mra, private_data, 10);

struct rej {
    be32_t local_id;
    be32_t remote_id;
    uint8_t about;    /* ABOUT. */
    uint8_t info_len; /* 7 bits. */
    be16_t reason;
    uint8_t info[CM_REJ_INFO_LEN];
    uint8_t private_data[CM_REJ_PRIVATE_LEN];
};
BODY_ASSERT(rej);
OFFSET_ASSERT(rej, reason, 10);
OFFSET_ASSERT(rej, private_data, 84);

#define ABOUT               0xc0
#define MRA_SERVICE_TIMEOUT 0xf8

/* 3 is reserved. */
static enum cm_about
parse_about(uint8_t byte)
{
    uint8_t about = sub_get(byte, ABOUT);
    return about < CM_ABOUT_OTHER ? (enum cm_about) about : CM_ABOUT_OTHER;
}

static void
parse_mra(const struct mra *b, struct cm_msg *m)
{
    m->about = parse_about(b->about);
    m->service_timeout = sub_get(b->service_timeout, MRA_SERVICE_TIMEOUT);
}

static void
build_mra(struct mra *b, const struct cm_msg *m)
{
    b->about = sub_put(m->about, ABOUT);
    b->service_timeout = sub_put(m->service_timeout, MRA_SERVICE_TIMEOUT);
}

static void
parse_rej(const struct rej *b, struct cm_msg *m)
{
    m->about = parse_about(b->about);
    m->reason = be16_get(b->reason);
    get_private(m, b->private_data, sizeof b->private_data);
}

static void
build_rej(struct rej *b, const struct cm_msg *m)
{
    b->about = sub_put(m->about, ABOUT);
    b->reason = be16_put(m->reason);
    put_private(b->private_data, sizeof b->private_data, m);
}

/* DREQ, 12.6.10.
 *
 *        0               1               2               3
 *        +---------------+---------------+---------------+---------------+
 *      0 |                 communication IDs, 2 x 4 bytes                |
 *      8 |                  remote QPN                   |   reserved    |
 *     12 |                    private data, 220 bytes                    |
 */
struct dreq {
    be32_t local_id;
    be32_t remote_id;
    be24_t remote_qpn;
    uint8_t rsv;
    uint8_t private_data[220];
};
BODY_ASSERT(dreq);
OFFSET_ASSERT(dreq, private_data, 12);

static void
parse_dreq(const struct dreq *b, struct cm_msg *m)
{
    m->remote_qpn = be24_get(b->remote_qpn);
}

static void
build_dreq(struct dreq *b, const struct cm_msg *m)
{
    b->remote_qpn = be24_put(m->remote_qpn);
}

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
struct sidr_req {
    be32_t request_id;
    be16_t pkey;
    be16_t rsv;
    be64_t service;
    uint8_t private_data[216];
};
BODY_ASSERT(sidr_req);
OFFSET_ASSERT(sidr_req, private_data, 16);

struct sidr_rep {
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
BODY_ASSERT(sidr_rep);
OFFSET_ASSERT(sidr_rep, service, 12);
OFFSET_ASSERT(sidr_rep, private_data, 96);

static void
parse_sidr_req(const struct sidr_req *b, struct cm_msg *m)
{
    m->local_id = be32_get(b->request_id);
    m->service = be64_get(b->service);
}

static void
build_sidr_req(struct sidr_req *b, const struct cm_msg *m)
{
    b->request_id = be32_put(m->local_id);
    b->pkey = be16_put(ROCE_PKEY_DEFAULT);
    b->service = be64_put(m->service);
}

static void
parse_sidr_rep(const struct sidr_rep *b, struct cm_msg *m)
{
    m->remote_id = be32_get(b->request_id);
    m->sidr_status = b->status;
    m->service = be64_get(b->service);
}

static void
build_sidr_rep(struct sidr_rep *b, const struct cm_msg *m)
{
    b->request_id = be32_put(m->remote_id);
    b->status = m->sidr_status;
    b->service = be64_put(m->service);
}

static void
parse_body(const void *b, struct cm_msg *m)
{
    switch (m->attribute) {
    case CM_REQ: parse_req(b, m); return;
    case CM_SIDR_REQ: parse_sidr_req(b, m); return;
    case CM_SIDR_REP: parse_sidr_rep(b, m); return;
    case CM_REP: parse_rep(b, m); break;
    case CM_MRA: parse_mra(b, m); break;
    case CM_REJ: parse_rej(b, m); break;
    case CM_DREQ: parse_dreq(b, m); break;
    case CM_RTU:
    case CM_DREP: break;
    }
    parse_ids(b, m);
}

static void
build_body(void *b, const struct cm_msg *m)
{
    switch (m->attribute) {
    case CM_REQ: build_req(b, m); return;
    case CM_SIDR_REQ: build_sidr_req(b, m); return;
    case CM_SIDR_REP: build_sidr_rep(b, m); return;
    case CM_REP: build_rep(b, m); break;
    case CM_MRA: build_mra(b, m); break;
    case CM_REJ: build_rej(b, m); break;
    case CM_DREQ: build_dreq(b, m); break;
    case CM_RTU:
    case CM_DREP: break;
    }
    build_ids(b, m);
}

/* What is behind the BTH. */
struct datagram {
    struct deth deth;
    struct mad mad;
    uint8_t icrc[ROCE_ICRC_LEN];
};
static_assert(sizeof(struct datagram) == CM_DETH_LEN + CM_MAD_LEN + ROCE_ICRC_LEN, "datagram");

bool
cm_is(const uint8_t *data, const struct parsed *h)
{
    if (!h->bth_ofs || h->opcode != UD_SEND_ONLY || h->inner.ofs || h->ip.n_ext) {
        return false;
    }
    const struct bth *bth = (const struct bth *) (data + h->bth_ofs);
    return be24_get(bth->dest_qp) == CM_QPN;
}

static enum drop_reason
check_mad(const struct mad *mad)
{
    if (mad->base_version != MAD_BASE_VERSION || mad->class != MAD_CLASS_CM
        || mad->class_version != MAD_CLASS_VERSION_CM || mad->method != MAD_METHOD_SEND) {
        return DROP_cm_mad;
    }
    switch (be16_get(mad->attribute)) {
#define CM_ATTRIBUTE(NAME, ID, HELP) case ID:
        CM_ATTRIBUTES
#undef CM_ATTRIBUTE
        return DROP_none;
    default: return DROP_cm_attribute;
    }
}

enum drop_reason
cm_parse(const uint8_t *data, const struct parsed *h, struct cm_msg *m)
{
    const struct bth *bth = (const struct bth *) (data + h->bth_ofs);
    const struct datagram *d = (const struct datagram *) (bth + 1);

    /* Without pad, and with nothing behind the ICRC. */
    if (h->ip.end - h->ip.ofs != CM_PACKET_LEN || h->payload_len != CM_MAD_LEN) {
        return DROP_cm_short;
    }
    if (!icrc_ok(data + h->ip.ofs, CM_PACKET_LEN - ROCE_ICRC_LEN)) {
        return DROP_icrc;
    }
    if (!bth_pkey_ok(bth)) {
        return DROP_pkey;
    }
    if (be32_get(d->deth.qkey) != CM_QKEY || be24_get(d->deth.src_qp) != CM_QPN) {
        return DROP_cm_qkey;
    }
    enum drop_reason why = check_mad(&d->mad);
    if (why) {
        return why;
    }
    *m = (struct cm_msg){
        .attribute = (enum cm_attribute) be16_get(d->mad.attribute),
        .tid = be64_get(d->mad.tid),
    };
    parse_body(d->mad.body, m);
    return DROP_none;
}

struct packet *
cm_build(struct packet_pool *pool, const struct in6_addr *src, const struct in6_addr *dst,
         psn_t psn, const struct cm_msg *m)
{
    struct packet *p =
        roce_packet_begin(pool, CM_PACKET_LEN, src, dst, CM_SPORT, UD_SEND_ONLY, CM_QPN, psn);

    if (p) {
        struct datagram *d = (struct datagram *) (p->data + p->len - sizeof *d);

        d->deth.qkey = be32_put(CM_QKEY);
        d->deth.src_qp = be24_put(CM_QPN);
        d->mad.base_version = MAD_BASE_VERSION;
        d->mad.class = MAD_CLASS_CM;
        d->mad.class_version = MAD_CLASS_VERSION_CM;
        d->mad.method = MAD_METHOD_SEND;
        d->mad.tid = be64_put(m->tid);
        d->mad.attribute = be16_put((uint16_t) m->attribute);
        build_body(d->mad.body, m);
        roce_packet_end(p);
    }
    return p;
}

const char *
cm_attribute_name(enum cm_attribute attribute)
{
    switch (attribute) {
#define CM_ATTRIBUTE(NAME, ID, HELP) \
    case CM_##NAME: return #NAME;
        CM_ATTRIBUTES
#undef CM_ATTRIBUTE
    }
    return "?";
}

const char *
cm_rej_text(uint16_t reason)
{
    switch (reason) {
#define CM_REJ_REASON(NAME, CODE, TEXT) \
    case CODE: return TEXT;
        CM_REJ_REASONS
#undef CM_REJ_REASON
    default: return "another reason";
    }
}

#define MTU_CODE_MAX 5

uint32_t
cm_mtu_bytes(uint8_t code)
{
    return code >= 1 && code <= MTU_CODE_MAX ? 128u << code : 0;
}

uint8_t
cm_mtu_code(uint32_t bytes)
{
    for (uint8_t code = 1; code <= MTU_CODE_MAX; code++) {
        if (cm_mtu_bytes(code) == bytes) {
            return code;
        }
    }
    return 0;
}

uint64_t
cm_timeout_usec(uint8_t code)
{
    return (UINT64_C(4096) << (code & 31)) / 1000;
}
