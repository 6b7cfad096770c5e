/* SPDX-License-Identifier: Apache-2.0
 *
 * The communication manager of a host, as Linux has it.
 */
#include "tests/model/cm-kernel.h"

#include <stdlib.h>
#include <string.h>

/* cma.c's settings. */
#define PACKET_LIFETIME  18
#define RESPONSE_TIMEOUT 20
#define MAX_RETRIES      15
#define MRA_TIMEOUT      24

/* Codes to milliseconds, as cm.c has it. */
static unsigned
to_msec(unsigned code)
{
    return 1u << (code > 8 ? code - 8 : 0);
}

void
cm_kernel_boot(struct cm_kernel *k, uint32_t first_id)
{
    memset(k->ids, 0, sizeof k->ids);
    memset(k->listens, 0, sizeof k->listens);
    k->next_id = first_id;
}

static struct cm_kernel_id *
new_id(struct cm_kernel *k, const struct in6_addr *proxy)
{
    for (unsigned i = 0; i < KERNEL_MAX_IDS; i++) {
        struct cm_kernel_id *id = &k->ids[i];
        if (!id->used) {
            *id = (struct cm_kernel_id){
                .used = true, .local_id = k->next_id++, .proxy = *proxy, .life = ++k->n_lives};
            return id;
        }
    }
    abort();
}

/* Messages. */

static struct cm_msg
message(const struct cm_kernel_id *id, enum cm_attribute attribute)
{
    return (struct cm_msg){.attribute = attribute,
                           .tid = id->tid,
                           .local_id = id->local_id,
                           .remote_id = id->remote_id};
}

static void
post(struct cm_kernel *k, const struct cm_kernel_id *id, const struct cm_msg *m)
{
    k->send(k->aux, k, &id->proxy, m);
}

static void
post_waiting(struct cm_kernel *k, struct cm_kernel_id *id, const struct cm_msg *m, uint64_t now)
{
    id->msg = *m;
    id->waits = true;
    id->retries_left = id->max_retries;
    id->wait_msec = id->timeout_msec;
    id->deadline = now + UINT64_C(1000) * id->wait_msec;
    post(k, id, m);
}

static void
say_mra(struct cm_kernel *k, const struct cm_kernel_id *id, enum cm_about about)
{
    struct cm_msg m = message(id, CM_MRA);

    m.about = about;
    m.service_timeout = MRA_TIMEOUT;
    post(k, id, &m);
}

static void
say_rtu(struct cm_kernel *k, const struct cm_kernel_id *id)
{
    struct cm_msg m = message(id, CM_RTU);

    post(k, id, &m);
}

static void
say_drep(struct cm_kernel *k, const struct cm_kernel_id *id)
{
    struct cm_msg m = message(id, CM_DREP);

    post(k, id, &m);
}

static struct cm_msg
dreq_of(const struct cm_kernel_id *id)
{
    struct cm_msg m = message(id, CM_DREQ);

    m.tid = UINT64_C(0x9) << 32 | id->local_id;
    m.remote_qpn = id->remote_qpn;
    return m;
}

static void
say_rej(struct cm_kernel *k, const struct cm_kernel_id *id, enum cm_about about,
        enum cm_rej_reason reason)
{
    struct cm_msg m = message(id, CM_REJ);

    m.about = about;
    m.reason = reason;
    post(k, id, &m);
}

/* Without a connection. */
static void
issue(struct cm_kernel *k, const struct in6_addr *proxy, const struct cm_msg *to,
      enum cm_attribute attribute, enum cm_about about, uint16_t reason)
{
    struct cm_msg m = {.attribute = attribute,
                       .tid = to->tid,
                       .local_id = to->remote_id,
                       .remote_id = to->local_id,
                       .about = about,
                       .reason = reason};

    k->send(k->aux, k, proxy, &m);
}

/* States. */

static void
become(struct cm_kernel_id *id, enum cm_kernel_state state)
{
    id->state = state;
    if (state == KERNEL_IDLE || state == KERNEL_TIMEWAIT) {
        id->in_tables = false;
    }
}

static void
send_dreq(struct cm_kernel *k, struct cm_kernel_id *id, uint64_t now)
{
    if (id->state == KERNEL_ESTABLISHED) {
        struct cm_msg m = dreq_of(id);
        become(id, KERNEL_DREQ_SENT);
        post_waiting(k, id, &m, now);
    }
}

/* Programs' doings. */

struct cm_kernel_id *
cm_kernel_connect(struct cm_kernel *k, const struct in6_addr *proxy, uint16_t port, uint32_t qpn,
                  unsigned program, uint64_t now)
{
    struct cm_kernel_id *id = new_id(k, proxy);

    id->program = program;
    id->tid = UINT64_C(0x9) << 32 | id->local_id;
    id->local_qpn = qpn;
    id->av_timeout = PACKET_LIFETIME + 1;
    id->timeout_msec = 2 * to_msec(PACKET_LIFETIME) + to_msec(RESPONSE_TIMEOUT);
    id->max_retries = MAX_RETRIES;
    struct cm_msg m = message(id, CM_REQ);
    m.qpn = qpn;
    m.psn = psn_make(qpn);
    m.ca_guid = k->guid;
    m.service = CM_SERVICE_TCP | port;
    m.transport = CM_TRANSPORT_RC;
    m.mtu_code = 3;
    m.local_cm_timeout = m.remote_cm_timeout = RESPONSE_TIMEOUT;
    m.max_cm_retries = MAX_RETRIES;
    m.local_gid = k->addr;
    m.remote_gid = *proxy;
    m.ip_header = true;
    m.sport = 40000;
    m.ip_src = k->addr;
    m.ip_dst = *proxy;
    become(id, KERNEL_REQ_SENT);
    post_waiting(k, id, &m, now);
    return id;
}

void
cm_kernel_accept(struct cm_kernel *k, struct cm_kernel_id *id, uint32_t qpn, const void *data,
                 uint16_t len, uint64_t now)
{
    struct cm_msg m = message(id, CM_REP);

    if (id->state != KERNEL_MRA_REQ_SENT) {
        return;
    }
    id->local_qpn = qpn;
    m.qpn = qpn;
    m.ca_guid = k->guid;
    m.private_len = len;
    if (len) {
        memcpy(m.private_data, data, len);
    }
    become(id, KERNEL_REP_SENT);
    post_waiting(k, id, &m, now);
}

void
cm_kernel_reject(struct cm_kernel *k, struct cm_kernel_id *id)
{
    if (id->state == KERNEL_MRA_REQ_SENT) {
        say_rej(k, id, CM_ABOUT_REQ, CM_REJ_CONSUMER);
        become(id, KERNEL_IDLE);
    }
}

void
cm_kernel_confirm(struct cm_kernel *k, struct cm_kernel_id *id)
{
    if (id->state == KERNEL_MRA_REP_SENT) {
        say_rtu(k, id);
        become(id, KERNEL_ESTABLISHED);
        k->event(k->aux, k, id, KERNEL_CONNECTED);
    }
}

void
cm_kernel_disconnect(struct cm_kernel *k, struct cm_kernel_id *id, uint64_t now)
{
    if (id->state == KERNEL_DREQ_RCVD) {
        say_drep(k, id);
        become(id, KERNEL_TIMEWAIT);
    } else {
        send_dreq(k, id, now);
    }
}

void
cm_kernel_destroy(struct cm_kernel *k, struct cm_kernel_id *id)
{
    struct cm_msg m;

    switch (id->state) {
    case KERNEL_REQ_SENT:
    case KERNEL_MRA_REQ_RCVD: say_rej(k, id, CM_ABOUT_OTHER, CM_REJ_TIMEOUT); break;
    case KERNEL_MRA_REQ_SENT: say_rej(k, id, CM_ABOUT_REQ, CM_REJ_CONSUMER); break;
    case KERNEL_MRA_REP_SENT: say_rej(k, id, CM_ABOUT_REP, CM_REJ_CONSUMER); break;
    case KERNEL_REP_SENT:
    case KERNEL_MRA_REP_RCVD: say_rej(k, id, CM_ABOUT_OTHER, CM_REJ_CONSUMER); break;
    case KERNEL_ESTABLISHED:
        m = dreq_of(id);
        post(k, id, &m); /* once. */
        break;
    case KERNEL_DREQ_RCVD: say_drep(k, id); break;
    case KERNEL_DREQ_SENT:
    case KERNEL_TIMEWAIT:
    case KERNEL_IDLE: break;
    }
    id->used = false;
}

/* Messages that come. */

/* cm_acquire_id(): what a connection has not heard of is 0. */
static struct cm_kernel_id *
acquire(struct cm_kernel *k, uint32_t local_id, uint32_t remote_id)
{
    for (unsigned i = 0; i < KERNEL_MAX_IDS; i++) {
        struct cm_kernel_id *id = &k->ids[i];
        if (id->used && id->local_id == local_id && id->remote_id == remote_id) {
            return id;
        }
    }
    return NULL;
}

/* Has another connection the same... */
static struct cm_kernel_id *
find_in_tables(struct cm_kernel *k, uint64_t guid, const uint32_t *remote_id, const uint32_t *qpn)
{
    for (unsigned i = 0; i < KERNEL_MAX_IDS; i++) {
        struct cm_kernel_id *id = &k->ids[i];
        if (id->used && id->in_tables && id->remote_guid == guid
            && (!remote_id || id->remote_id == *remote_id) && (!qpn || id->remote_qpn == *qpn)) {
            return id;
        }
    }
    return NULL;
}

static void
input_req(struct cm_kernel *k, const struct in6_addr *proxy, const struct cm_msg *m, uint64_t now)
{
    uint16_t port = (uint16_t) (m->service & CM_SERVICE_PORT_MASK);
    struct cm_kernel_id *id = find_in_tables(k, m->ca_guid, &m->local_id, NULL);

    if (id) {
        if (id->state == KERNEL_MRA_REQ_SENT) {
            say_mra(k, id, CM_ABOUT_REQ);
        }
        return;
    }
    id = find_in_tables(k, m->ca_guid, NULL, &m->qpn);
    if (id) {
        issue(k, proxy, m, CM_REJ, CM_ABOUT_REQ, CM_REJ_STALE);
        send_dreq(k, id, now);
        return;
    }
    if (port >= UINT8_MAX || !k->listens[port]) {
        issue(k, proxy, m, CM_REJ, CM_ABOUT_REQ, CM_REJ_SERVICE_ID);
        return;
    }
    id = new_id(k, proxy);
    id->program = port;
    id->remote_id = m->local_id;
    id->remote_guid = m->ca_guid;
    id->remote_qpn = m->qpn;
    id->tid = m->tid;
    id->timeout_msec = to_msec(m->local_cm_timeout);
    id->max_retries = m->max_cm_retries;
    id->av_timeout = m->ack_timeout;
    id->in_tables = true;
    become(id, KERNEL_MRA_REQ_SENT);
    k->event(k->aux, k, id, KERNEL_REQUEST);
}

static void
input_rep(struct cm_kernel *k, const struct in6_addr *proxy, const struct cm_msg *m, uint64_t now)
{
    struct cm_kernel_id *id = acquire(k, m->remote_id, 0);

    if (!id) {
        id = acquire(k, m->remote_id, m->local_id);
        if (id && id->state == KERNEL_ESTABLISHED) {
            say_rtu(k, id);
        } else if (id && id->state == KERNEL_MRA_REP_SENT) {
            say_mra(k, id, CM_ABOUT_REP);
        }
        return;
    }
    if ((id->state != KERNEL_REQ_SENT && id->state != KERNEL_MRA_REQ_RCVD)
        || find_in_tables(k, m->ca_guid, &m->local_id, NULL)) {
        return;
    }
    struct cm_kernel_id *stale = find_in_tables(k, m->ca_guid, NULL, &m->qpn);
    if (stale) {
        issue(k, proxy, m, CM_REJ, CM_ABOUT_REP, CM_REJ_STALE);
        send_dreq(k, stale, now);
        return;
    }
    id->remote_id = m->local_id;
    id->remote_guid = m->ca_guid;
    id->remote_qpn = m->qpn;
    id->in_tables = true;
    id->waits = false;
    become(id, KERNEL_MRA_REP_SENT);
    k->event(k->aux, k, id, KERNEL_RESPONSE);
}

static void
input_rtu(struct cm_kernel *k, const struct cm_msg *m)
{
    struct cm_kernel_id *id = acquire(k, m->remote_id, m->local_id);

    if (id && (id->state == KERNEL_REP_SENT || id->state == KERNEL_MRA_REP_RCVD)) {
        id->waits = false;
        become(id, KERNEL_ESTABLISHED);
        k->event(k->aux, k, id, KERNEL_CONNECTED);
    }
}

static void
input_dreq(struct cm_kernel *k, const struct in6_addr *proxy, const struct cm_msg *m)
{
    struct cm_kernel_id *id = acquire(k, m->remote_id, m->local_id);

    if (!id) {
        issue(k, proxy, m, CM_DREP, CM_ABOUT_REQ, 0);
        return;
    }
    if (id->local_qpn != m->remote_qpn) {
        return;
    }
    switch (id->state) {
    case KERNEL_REP_SENT:
    case KERNEL_MRA_REP_RCVD:
    case KERNEL_DREQ_SENT:
    case KERNEL_ESTABLISHED:
        id->waits = false;
        id->tid = m->tid;
        become(id, KERNEL_DREQ_RCVD);
        k->event(k->aux, k, id, KERNEL_DISCONNECTED);
        break;
    case KERNEL_TIMEWAIT: say_drep(k, id); break;
    case KERNEL_IDLE:
    case KERNEL_REQ_SENT:
    case KERNEL_MRA_REQ_RCVD:
    case KERNEL_MRA_REQ_SENT:
    case KERNEL_MRA_REP_SENT:
    case KERNEL_DREQ_RCVD: break;
    }
}

static void
input_drep(struct cm_kernel *k, const struct cm_msg *m)
{
    struct cm_kernel_id *id = acquire(k, m->remote_id, m->local_id);

    if (id && (id->state == KERNEL_DREQ_SENT || id->state == KERNEL_DREQ_RCVD)) {
        id->waits = false;
        become(id, KERNEL_TIMEWAIT);
        k->event(k->aux, k, id, KERNEL_DISCONNECTED);
    }
}

static void
input_rej(struct cm_kernel *k, const struct cm_msg *m)
{
    struct cm_kernel_id *id = acquire(k, m->remote_id, m->about == CM_ABOUT_REQ ? 0 : m->local_id);

    /* A listener's connection has a remote_id from the beginning. */
    if (!id || id->state == KERNEL_IDLE || id->state == KERNEL_DREQ_RCVD
        || id->state == KERNEL_TIMEWAIT) {
        return;
    }
    bool stays = id->state == KERNEL_DREQ_SENT || id->state == KERNEL_MRA_REP_SENT
                 || id->state == KERNEL_ESTABLISHED || m->reason == CM_REJ_STALE;
    id->waits = false;
    become(id, stays ? KERNEL_TIMEWAIT : KERNEL_IDLE);
    k->event(k->aux, k, id, KERNEL_REJECTED);
}

static void
input_mra(struct cm_kernel *k, const struct cm_msg *m, uint64_t now)
{
    struct cm_kernel_id *id = acquire(k, m->remote_id, m->about == CM_ABOUT_REQ ? 0 : m->local_id);

    if (!id) {
        return;
    }
    if (id->state == KERNEL_REQ_SENT && m->about == CM_ABOUT_REQ) {
        become(id, KERNEL_MRA_REQ_RCVD);
    } else if (id->state == KERNEL_REP_SENT && m->about == CM_ABOUT_REP) {
        become(id, KERNEL_MRA_REP_RCVD);
    } else {
        return;
    }
    id->wait_msec = to_msec(m->service_timeout) + to_msec(id->av_timeout);
    id->deadline = now + UINT64_C(1000) * id->wait_msec;
}

void
cm_kernel_input(struct cm_kernel *k, const struct in6_addr *proxy, const struct cm_msg *m,
                uint64_t now)
{
    switch (m->attribute) {
    case CM_REQ: input_req(k, proxy, m, now); break;
    case CM_REP: input_rep(k, proxy, m, now); break;
    case CM_RTU: input_rtu(k, m); break;
    case CM_DREQ: input_dreq(k, proxy, m); break;
    case CM_DREP: input_drep(k, m); break;
    case CM_REJ: input_rej(k, m); break;
    case CM_MRA: input_mra(k, m, now); break;
    case CM_SIDR_REQ:
    case CM_SIDR_REP: break;
    }
}

/* Timers. */

uint64_t
cm_kernel_deadline(const struct cm_kernel *k)
{
    uint64_t first = UINT64_MAX;

    for (unsigned i = 0; i < KERNEL_MAX_IDS; i++) {
        const struct cm_kernel_id *id = &k->ids[i];
        if (id->used && id->waits && id->deadline < first) {
            first = id->deadline;
        }
    }
    return first;
}

static void
give_up(struct cm_kernel *k, struct cm_kernel_id *id)
{
    id->waits = false;
    k->gave_up(k->aux, k, id);
    if (id->state == KERNEL_DREQ_SENT) {
        become(id, KERNEL_TIMEWAIT);
        k->event(k->aux, k, id, KERNEL_DISCONNECTED);
    } else {
        become(id, KERNEL_IDLE);
        k->event(k->aux, k, id, KERNEL_UNREACHABLE);
    }
}

void
cm_kernel_timer(struct cm_kernel *k, uint64_t now)
{
    for (unsigned i = 0; i < KERNEL_MAX_IDS; i++) {
        struct cm_kernel_id *id = &k->ids[i];
        if (!id->used || !id->waits || id->deadline > now) {
            continue;
        }
        if (id->retries_left) {
            id->retries_left--;
            id->deadline = now + UINT64_C(1000) * id->wait_msec;
            post(k, id, &id->msg);
        } else {
            give_up(k, id);
        }
    }
}
