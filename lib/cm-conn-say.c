/* SPDX-License-Identifier: Apache-2.0
 *
 * The messages of RDMA-CM connections.
 *
 * A kernel takes a REQ for a repetition by its CA GUID and communication ID, and a connection for a
 * stale one by CA GUID and queue pair.  All members of a group at a host have the same Designated
 * QPN: so each connection has a CA GUID of its own.
 */
#include <string.h>

#include "lib/cm-conn-impl.h"

/* Time-outs, as codes (cm_timeout_usec()). */
#define MRA_TIMEOUT        21 /* 8.6 s until a host repeats what was answered by an MRA. */
#define LOCAL_CM_TIMEOUT   17 /* 0.5 s: a host repeats its REP so often... */
#define MAX_CM_RETRIES     15 /* ... and so many times. */
#define REMOTE_CM_TIMEOUT  20 /* 4.3 s, as Linux has it. */

#define RETRY              7 /* as often as possible. */
#define RNR_RETRY          7 /* for ever. */
#define READS              1 /* at the same time.  No group has any; 0 is not usual. */
#define FIRST_DYNAMIC_PORT 0xc000u

static uint64_t
ca_guid(const struct cm_conn *c)
{
    const uint8_t *low = &c->config.proxy.s6_addr[12];

    return (uint64_t) low[0] << 56 | (uint64_t) low[1] << 48 | (uint64_t) low[2] << 40
           | (uint64_t) low[3] << 32 | c->config.id;
}

static uint16_t
min_len(uint16_t a, uint16_t b)
{
    return a < b ? a : b;
}

/* What the configuration gives the program to read. */
static void
add_private_data(struct cm_msg *m, const struct cm_conn *c, uint16_t max)
{
    m->private_len = min_len(c->config.private_len, max);
    memcpy(m->private_data, c->config.private_data, m->private_len);
}

static struct cm_msg
message(const struct cm_conn *c, enum cm_attribute attribute)
{
    return (struct cm_msg){
        .attribute = attribute,
        .tid = c->known.tid,
        .local_id = c->config.id,
        .remote_id = c->known.remote_id,
    };
}

static void
say(struct cm_conns *conns, const struct cm_conn *c, const struct cm_msg *m)
{
    conns->send(conns->aux, &c->config.proxy, &c->config.host, m);
}

void
cm_say_req(struct cm_conns *conns, const struct cm_conn *c)
{
    const struct cm_conn_config *config = &c->config;
    struct cm_msg m = message(c, CM_REQ);

    m.remote_id = 0;
    m.qpn = config->qpn;
    m.psn = config->psn;
    m.ca_guid = ca_guid(c);
    m.responder_resources = READS;
    m.initiator_depth = READS;
    m.rnr_retry = RNR_RETRY;
    m.service = CM_SERVICE_TCP | config->port;
    m.transport = CM_TRANSPORT_RC;
    m.retry = RETRY;
    m.mtu_code = cm_mtu_code(config->mtu);
    m.ack_timeout = config->ack_timeout;
    m.local_cm_timeout = LOCAL_CM_TIMEOUT;
    m.remote_cm_timeout = REMOTE_CM_TIMEOUT;
    m.max_cm_retries = MAX_CM_RETRIES;
    m.local_gid = config->proxy;
    m.remote_gid = config->host;
    m.ip_header = true;
    m.sport = (uint16_t) (FIRST_DYNAMIC_PORT | (config->id & 0x3fff));
    m.ip_src = config->proxy;
    m.ip_dst = config->host;
    add_private_data(&m, c, CM_REQ_PRIVATE_LEN);
    say(conns, c, &m);
}

void
cm_say_rep(struct cm_conns *conns, const struct cm_conn *c)
{
    struct cm_msg m = message(c, CM_REP);

    m.qpn = c->config.qpn;
    m.psn = c->config.psn;
    m.ca_guid = ca_guid(c);
    m.responder_resources = READS;
    m.initiator_depth = READS;
    m.rnr_retry = RNR_RETRY;
    add_private_data(&m, c, CM_REP_PRIVATE_LEN);
    say(conns, c, &m);
}

void
cm_say_rtu(struct cm_conns *conns, const struct cm_conn *c)
{
    struct cm_msg m = message(c, CM_RTU);

    say(conns, c, &m);
}

void
cm_say_dreq(struct cm_conns *conns, const struct cm_conn *c)
{
    struct cm_msg m = message(c, CM_DREQ);

    m.remote_qpn = c->known.qpn;
    say(conns, c, &m);
}

void
cm_say_mra(struct cm_conns *conns, const struct cm_conn *c, enum cm_about about)
{
    struct cm_msg m = message(c, CM_MRA);

    m.about = about;
    m.service_timeout = MRA_TIMEOUT;
    say(conns, c, &m);
}

void
cm_say_rejected(struct cm_conns *conns, const struct cm_conn *c)
{
    struct cm_msg m = message(c, CM_REJ);

    m.about = CM_ABOUT_REQ;
    m.reason = CM_REJ_CONSUMER;
    if (c->config.decision == CM_REJECT) {
        m.reason = c->config.reason ? c->config.reason : m.reason;
        add_private_data(&m, c, CM_REJ_PRIVATE_LEN);
    }
    say(conns, c, &m);
}

/* The IDs of 'm' turned round. */
static struct cm_msg
answer(const struct cm_msg *m, enum cm_attribute attribute)
{
    return (struct cm_msg){
        .attribute = attribute,
        .tid = m->tid,
        .local_id = m->remote_id,
        .remote_id = m->local_id,
    };
}

void
cm_answer_drep(struct cm_conns *conns, const struct in6_addr *proxy, const struct in6_addr *host,
               const struct cm_msg *m)
{
    struct cm_msg drep = answer(m, CM_DREP);

    conns->send(conns->aux, proxy, host, &drep);
}

void
cm_answer_rej(struct cm_conns *conns, const struct in6_addr *proxy, const struct in6_addr *host,
              const struct cm_msg *m, enum cm_rej_reason reason)
{
    struct cm_msg rej = answer(m, CM_REJ);

    rej.about = m->attribute == CM_REQ ? CM_ABOUT_REQ : CM_ABOUT_REP;
    rej.reason = reason;
    conns->send(conns->aux, proxy, host, &rej);
}

void
cm_answer_sidr(struct cm_conns *conns, const struct in6_addr *proxy, const struct in6_addr *host,
               const struct cm_msg *m)
{
    struct cm_msg rep = answer(m, CM_SIDR_REP);

    rep.local_id = 0;
    rep.service = m->service;
    rep.sidr_status = 1; /* service not supported. */
    conns->send(conns->aux, proxy, host, &rep);
}
