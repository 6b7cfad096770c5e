/* SPDX-License-Identifier: Apache-2.0
 *
 * RDMA-CM messages: parses and builds them.
 *
 * A body's parse_ and build_ function are each other's inverse for the members that struct cm_msg
 * has.  What a body has besides is ignored when it comes, and is 0 when it is sent, unless build_
 * says something else.
 */
#include "lib/cm.h"

#include "lib/cm-wire.h"
#include "lib/icrc.h"
#include "lib/roce-packet.h"
#include "lib/roce.h"

#define CM_SPORT       0xc000 /* rxe and hardware choose RoCE source ports from here on. */
#define LID_PERMISSIVE 0xffff /* RoCE has no LIDs. */
#define HOP_LIMIT      64

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

static bool
req_has_ip_header(const struct cm_req *b)
{
    return cm_service_is_tcp(be64_get(b->service)) && b->ip.version == CM_IP_HEADER_VERSION
           && cm_sub_get(b->ip.ipv, CM_IPV_VERSION) == 6;
}

static void
parse_req(const struct cm_req *b, struct cm_msg *m)
{
    m->local_id = be32_get(b->local_id);
    m->service = be64_get(b->service);
    m->ca_guid = be64_get(b->ca_guid);
    m->qpn = be24_get(b->qpn);
    m->responder_resources = b->responder_resources;
    m->initiator_depth = b->initiator_depth;
    m->remote_cm_timeout = cm_sub_get(b->remote_timeout, CM_REQ_REMOTE_CM_TIMEOUT);
    m->transport = cm_sub_get(b->remote_timeout, CM_REQ_TRANSPORT);
    m->psn = psn_make(be24_get(b->psn));
    m->local_cm_timeout = cm_sub_get(b->local_timeout, CM_REQ_LOCAL_CM_TIMEOUT);
    m->retry = cm_sub_get(b->local_timeout, CM_REQ_RETRY);
    m->mtu_code = cm_sub_get(b->mtu, CM_REQ_MTU);
    m->rnr_retry = cm_sub_get(b->mtu, CM_REQ_RNR_RETRY);
    m->max_cm_retries = cm_sub_get(b->cm_retries, CM_REQ_MAX_CM_RETRIES);
    m->srq = cm_sub_get(b->cm_retries, CM_REQ_SRQ);
    m->local_gid = b->local_gid;
    m->remote_gid = b->remote_gid;
    m->ack_timeout = cm_sub_get(b->ack_timeout, CM_REQ_ACK_TIMEOUT);
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
build_req(struct cm_req *b, const struct cm_msg *m)
{
    b->local_id = be32_put(m->local_id);
    b->service = be64_put(m->service);
    b->ca_guid = be64_put(m->ca_guid);
    b->qpn = be24_put(m->qpn);
    b->responder_resources = m->responder_resources;
    b->initiator_depth = m->initiator_depth;
    b->remote_timeout = cm_sub_put(m->remote_cm_timeout, CM_REQ_REMOTE_CM_TIMEOUT)
                        | cm_sub_put(m->transport, CM_REQ_TRANSPORT);
    b->psn = be24_put(m->psn.v);
    b->local_timeout = cm_sub_put(m->local_cm_timeout, CM_REQ_LOCAL_CM_TIMEOUT)
                       | cm_sub_put(m->retry, CM_REQ_RETRY);
    b->pkey = be16_put(ROCE_PKEY_DEFAULT);
    b->mtu = cm_sub_put(m->mtu_code, CM_REQ_MTU) | cm_sub_put(m->rnr_retry, CM_REQ_RNR_RETRY);
    b->cm_retries =
        cm_sub_put(m->max_cm_retries, CM_REQ_MAX_CM_RETRIES) | cm_sub_put(m->srq, CM_REQ_SRQ);
    b->local_lid = be16_put(LID_PERMISSIVE);
    b->remote_lid = be16_put(LID_PERMISSIVE);
    b->local_gid = m->local_gid;
    b->remote_gid = m->remote_gid;
    b->hop_limit = HOP_LIMIT;
    b->ack_timeout = cm_sub_put(m->ack_timeout, CM_REQ_ACK_TIMEOUT);
    if (!m->ip_header) {
        put_private(b->raw, sizeof b->raw, m);
        return;
    }
    assert(cm_service_is_tcp(m->service));
    b->ip.version = CM_IP_HEADER_VERSION;
    b->ip.ipv = cm_sub_put(6, CM_IPV_VERSION);
    b->ip.sport = be16_put(m->sport);
    b->ip.src = m->ip_src;
    b->ip.dst = m->ip_dst;
    put_private(b->private_data, sizeof b->private_data, m);
}

static void
parse_ids(const struct cm_ids *b, struct cm_msg *m)
{
    m->local_id = be32_get(b->local_id);
    m->remote_id = be32_get(b->remote_id);
}

static void
build_ids(struct cm_ids *b, const struct cm_msg *m)
{
    b->local_id = be32_put(m->local_id);
    b->remote_id = be32_put(m->remote_id);
}

static void
parse_rep(const struct cm_rep *b, struct cm_msg *m)
{
    m->qpn = be24_get(b->qpn);
    m->psn = psn_make(be24_get(b->psn));
    m->responder_resources = b->responder_resources;
    m->initiator_depth = b->initiator_depth;
    m->rnr_retry = cm_sub_get(b->rnr_retry, CM_REP_RNR_RETRY);
    m->srq = cm_sub_get(b->rnr_retry, CM_REP_SRQ);
    m->ca_guid = be64_get(b->ca_guid);
    get_private(m, b->private_data, sizeof b->private_data);
}

static void
build_rep(struct cm_rep *b, const struct cm_msg *m)
{
    b->qpn = be24_put(m->qpn);
    b->psn = be24_put(m->psn.v);
    b->responder_resources = m->responder_resources;
    b->initiator_depth = m->initiator_depth;
    b->rnr_retry = cm_sub_put(m->rnr_retry, CM_REP_RNR_RETRY) | cm_sub_put(m->srq, CM_REP_SRQ);
    b->ca_guid = be64_put(m->ca_guid);
    put_private(b->private_data, sizeof b->private_data, m);
}

/* 3 is reserved. */
static enum cm_about
parse_about(uint8_t byte)
{
    uint8_t about = cm_sub_get(byte, CM_ABOUT);
    return about < CM_ABOUT_OTHER ? (enum cm_about) about : CM_ABOUT_OTHER;
}

static void
parse_mra(const struct cm_mra *b, struct cm_msg *m)
{
    m->about = parse_about(b->about);
    m->service_timeout = cm_sub_get(b->service_timeout, CM_MRA_SERVICE_TIMEOUT);
}

static void
build_mra(struct cm_mra *b, const struct cm_msg *m)
{
    b->about = cm_sub_put(m->about, CM_ABOUT);
    b->service_timeout = cm_sub_put(m->service_timeout, CM_MRA_SERVICE_TIMEOUT);
}

static void
parse_rej(const struct cm_rej *b, struct cm_msg *m)
{
    m->about = parse_about(b->about);
    m->reason = be16_get(b->reason);
    get_private(m, b->private_data, sizeof b->private_data);
}

static void
build_rej(struct cm_rej *b, const struct cm_msg *m)
{
    b->about = cm_sub_put(m->about, CM_ABOUT);
    b->reason = be16_put(m->reason);
    put_private(b->private_data, sizeof b->private_data, m);
}

static void
parse_dreq(const struct cm_dreq *b, struct cm_msg *m)
{
    m->remote_qpn = be24_get(b->remote_qpn);
}

static void
build_dreq(struct cm_dreq *b, const struct cm_msg *m)
{
    b->remote_qpn = be24_put(m->remote_qpn);
}

static void
parse_sidr_req(const struct cm_sidr_req *b, struct cm_msg *m)
{
    m->local_id = be32_get(b->request_id);
    m->service = be64_get(b->service);
}

static void
build_sidr_req(struct cm_sidr_req *b, const struct cm_msg *m)
{
    b->request_id = be32_put(m->local_id);
    b->pkey = be16_put(ROCE_PKEY_DEFAULT);
    b->service = be64_put(m->service);
}

static void
parse_sidr_rep(const struct cm_sidr_rep *b, struct cm_msg *m)
{
    m->remote_id = be32_get(b->request_id);
    m->sidr_status = b->status;
    m->service = be64_get(b->service);
}

static void
build_sidr_rep(struct cm_sidr_rep *b, const struct cm_msg *m)
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
check_mad(const struct cm_mad *mad)
{
    if (mad->base_version != CM_MAD_BASE_VERSION || mad->class != CM_MAD_CLASS_CM
        || mad->class_version != CM_MAD_CLASS_VERSION_CM || mad->method != CM_MAD_METHOD_SEND) {
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
    const struct cm_datagram *d = (const struct cm_datagram *) (bth + 1);

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
        struct cm_datagram *d = (struct cm_datagram *) (p->data + p->len - sizeof *d);

        d->deth.qkey = be32_put(CM_QKEY);
        d->deth.src_qp = be24_put(CM_QPN);
        d->mad.base_version = CM_MAD_BASE_VERSION;
        d->mad.class = CM_MAD_CLASS_CM;
        d->mad.class_version = CM_MAD_CLASS_VERSION_CM;
        d->mad.method = CM_MAD_METHOD_SEND;
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
