/* SPDX-License-Identifier: Apache-2.0
 *
 * What happens to RDMA-CM connections.
 *
 *     passive:  REQUESTED ---ACCEPT---> ACCEPTED ---RTU, packet---> ESTABLISHED
 *                   |                      |                            |
 *     active:   CONNECTING ----REP----> ANSWERED ----ready----> ESTABLISHED
 *                ^      |                  |                            |
 *             pause    REJ                 +--- DREQ, REJ, silence -----+--> ENDED
 *                |      v                  |                            |      ^
 *                REFUSED                   +--------- CM_CLOSE ---------+--> CLOSING
 *
 * MADs get lost, so whoever waits repeats: here REQ, REP and DREQ, by the connection's timer; there
 * the host's kernel.  All answers to what is repeated follow from the state, so that a repeated
 * message is answered as the first one was.  A connection that has ended is kept for that: to a
 * kernel that has not heard of it, its REQ, REP, RTU and DREQ each get an answer that ends it there
 * as well.
 *
 * What Linux (drivers/infiniband/core/cm.c) does with what it gets:
 *   - A killed program's kernel sends one message, and repeats nothing: REJ "timeout" before it has
 *     a REP, REJ "consumer" before RTU, DREQ when established.
 *   - A REP to an established connection is answered by RTU, to none not at all: keepalive.
 *   - A REQ that it knows is answered by nothing or an MRA; one that has been refused is forgotten,
 *     so the next with the same IDs is a new one.
 *   - RTU is not repeated unless the REP is.
 */
#include "lib/cm-conn.h"

#include <string.h>

#include "lib/address-plan.h"
#include "lib/cm-conn-impl.h"
#include "lib/defect.h"

static bool
is_qpn(uint32_t qpn)
{
    return qpn >= QPN_MIN && qpn <= QPN_MAX;
}

/* States. */

static bool
is_awaiting_rep(const struct cm_conn *c)
{
    return c->known.state == CM_CONNECTING || c->known.state == CM_REFUSED;
}

static void
enter(struct cm_conns *conns, struct cm_conn *c, enum cm_state state)
{
    c->known.state = state;
    c->n_said = 0;
    c->heard = false;
    c->interval = CM_RETRY_USEC;
    cm_conn_changed(conns, c);
}

static void
end(struct cm_conns *conns, struct cm_conn *c, enum cm_cause cause, uint64_t now)
{
    c->known.cause = cause;
    enter(conns, c, CM_ENDED);
    /* Who has too many forgets with the next call of cm_conns_timer(). */
    cm_conn_set_timer(conns, c,
                      c->config.role == CM_ACTIVE || c->registered ? UINT64_MAX
                      : cm_conn_is_too_many(conns, c)              ? now
                                                                   : now + CM_LINGER_USEC);
}

/* The program may not know: it is told once, as far as one message does it. */
static void
end_by_silence(struct cm_conns *conns, struct cm_conn *c, uint64_t now)
{
    if (c->known.state != CM_REQUESTED) {
        cm_say_dreq(conns, c);
    }
    end(conns, c, CM_BY_SILENCE, now);
}

static void
set_keepalive(struct cm_conns *conns, struct cm_conn *c, uint64_t now)
{
    uint64_t usec = c->config.role == CM_PASSIVE ? UINT64_C(1000) * c->config.keepalive_msec : 0;

    cm_conn_set_timer(conns, c, usec ? now + usec : UINT64_MAX);
}

static void
establish(struct cm_conns *conns, struct cm_conn *c, uint64_t now)
{
    enter(conns, c, CM_ESTABLISHED);
    set_keepalive(conns, c, now);
}

/* Says what the state wants to have answered, for the first time or again. */
static void
repeat(struct cm_conns *conns, struct cm_conn *c, uint64_t now)
{
    switch (c->known.state) {
    case CM_ACCEPTED: cm_say_rep(conns, c); break;
    case CM_CLOSING: cm_say_dreq(conns, c); break;
    case CM_CONNECTING:
    case CM_REFUSED: cm_say_req(conns, c); break;
    case CM_REQUESTED:
    case CM_ANSWERED:
    case CM_ESTABLISHED:
    case CM_ENDED: return;
    }
    c->n_said++;
    cm_conn_set_timer(conns, c, now + c->interval);
}

static void
slow_down(struct cm_conn *c)
{
    c->interval = 2 * c->interval < CM_MAX_RETRY_USEC ? 2 * c->interval : CM_MAX_RETRY_USEC;
}

static void
answer_when_ready(struct cm_conns *conns, struct cm_conn *c, uint64_t now)
{
    if (c->config.ready) {
        cm_say_rtu(conns, c);
        establish(conns, c, now);
    }
}

/* Private data that came last.  False: it is what is known. */
static bool
learn_private_data(struct cm_known *known, const struct cm_msg *m, size_t max)
{
    size_t len = m->private_len < max ? m->private_len : max;

    if (known->private_len == len && !memcmp(known->private_data, m->private_data, len)) {
        return false;
    }
    memset(known->private_data, 0, sizeof known->private_data);
    memcpy(known->private_data, m->private_data, len);
    known->private_len = (uint16_t) len;
    return true;
}

/* Messages: each function returns what cm_conns_input() does. */

/* Neither a connection nor a decision is needed to refuse this. */
static bool
refuse_req(struct cm_conns *conns, const struct in6_addr *proxy, const struct in6_addr *host,
           const struct cm_msg *m)
{
    enum cm_rej_reason reason;

    if (m->transport != CM_TRANSPORT_RC) {
        reason = CM_REJ_TRANSPORT;
    } else if (!cm_service_is_tcp(m->service)) {
        reason = CM_REJ_SERVICE_ID;
    } else if (!m->local_id) {
        reason = CM_REJ_COMM_ID;
    } else if (!m->ip_header || memcmp(&m->ip_src, host, sizeof *host)
               || memcmp(&m->ip_dst, proxy, sizeof *proxy) || !is_qpn(m->qpn)) {
        reason = CM_REJ_UNSUPPORTED;
    } else {
        return false;
    }
    cm_answer_rej(conns, proxy, host, m, reason);
    return true;
}

static enum drop_reason
repeated_req(struct cm_conns *conns, struct cm_conn *c, const struct cm_msg *m, uint64_t now)
{
    switch (c->known.state) {
    case CM_REQUESTED:
        cm_say_mra(conns, c, CM_ABOUT_REQ);
        cm_conn_set_timer(conns, c, now + CM_REQUEST_USEC);
        break;
    case CM_ACCEPTED:
    case CM_ESTABLISHED: cm_say_rep(conns, c); break;
    case CM_ENDED:
        if (c->known.cause == CM_BY_DECISION) {
            cm_say_rejected(conns, c);
            break;
        }
        /* fall through */
    case CM_CLOSING:
    case CM_CONNECTING:
    case CM_REFUSED:
    case CM_ANSWERED:
        cm_answer_rej(conns, &c->config.proxy, &c->config.host, m, CM_REJ_STALE);
        break;
    }
    return DROP_none;
}

/* No kernel has an ID or a queue pair in two connections: those before are dead. */
static void
end_stale(struct cm_conns *conns, const struct in6_addr *proxy, const struct in6_addr *host,
          uint32_t remote_id, uint32_t qpn, uint64_t now)
{
    struct cm_conn *c;

    while ((c = cm_conn_by_remote(conns, proxy, host, remote_id))) {
        end(conns, c, CM_BY_NEW_REQ, now);
    }
    while ((c = cm_conn_by_qp(conns, proxy, host, qpn))) {
        end(conns, c, CM_BY_NEW_REQ, now);
    }
}

static enum drop_reason
input_req(struct cm_conns *conns, const struct in6_addr *proxy, const struct in6_addr *host,
          const struct cm_msg *m, uint64_t now)
{
    if (refuse_req(conns, proxy, host, m)) {
        return DROP_none;
    }
    struct cm_conn *c = cm_conn_by_req(conns, proxy, host, m->local_id, m->tid);
    if (c && !(DEFECT(CM_LATE_REQ) && c->known.state == CM_ENDED)) {
        return repeated_req(conns, c, m, now);
    }
    if (!cm_conns_may_begin(conns, host, now)) {
        return DROP_cm_full;
    }
    end_stale(conns, proxy, host, m->local_id, m->qpn, now);

    struct cm_conn_config config = {
        .id = cm_conns_new_id(conns), .role = CM_PASSIVE, .proxy = *proxy, .host = *host};
    struct cm_known known = {.state = CM_REQUESTED,
                             .remote_id = m->local_id,
                             .tid = m->tid,
                             .qpn = m->qpn,
                             .psn = m->psn,
                             .mtu_code = m->mtu_code,
                             .port = (uint16_t) (m->service & CM_SERVICE_PORT_MASK)};
    learn_private_data(&known, m, CM_REQ_PRIVATE_LEN);
    c = cm_conn_make(conns, &config, &known);
    cm_conn_set_timer(conns, c, now + CM_REQUEST_USEC);
    return DROP_none;
}

static enum drop_reason
first_rep(struct cm_conns *conns, struct cm_conn *c, const struct cm_msg *m, uint64_t now)
{
    const struct in6_addr *proxy = &c->config.proxy, *host = &c->config.host;

    if (!m->local_id || !is_qpn(m->qpn)) {
        cm_answer_rej(conns, proxy, host, m, CM_REJ_UNSUPPORTED);
        return DROP_cm_state;
    }
    if (m->local_id == c->refused_id) {
        return DROP_cm_state; /* overtaken by the REJ that ended it. */
    }
    end_stale(conns, proxy, host, m->local_id, m->qpn, now);
    c->known.remote_id = m->local_id;
    c->known.qpn = m->qpn;
    c->known.psn = m->psn;
    learn_private_data(&c->known, m, CM_REP_PRIVATE_LEN);
    enter(conns, c, CM_ANSWERED);
    cm_conn_set_timer(conns, c, UINT64_MAX);
    answer_when_ready(conns, c, now);
    return DROP_none;
}

static enum drop_reason
input_rep(struct cm_conns *conns, struct cm_conn *c, const struct cm_msg *m, uint64_t now)
{
    if (c->config.role != CM_ACTIVE) {
        return DROP_cm_state;
    }
    if (is_awaiting_rep(c)) {
        return first_rep(conns, c, m, now);
    }
    if (c->known.state == CM_ENDED || m->local_id != c->known.remote_id) {
        /* Somebody has taken a REQ of here for more than it was. */
        cm_answer_rej(conns, &c->config.proxy, &c->config.host, m, CM_REJ_CONSUMER);
        return c->known.state == CM_ENDED ? DROP_none : DROP_cm_ids;
    }
    if (c->known.state == CM_ANSWERED) {
        cm_say_mra(conns, c, CM_ABOUT_REP);
    } else if (c->known.state == CM_ESTABLISHED && !DEFECT(CM_RTU_ONCE)) {
        cm_say_rtu(conns, c);
    }
    return DROP_none;
}

static enum drop_reason
input_rtu(struct cm_conns *conns, struct cm_conn *c, const struct cm_msg *m, uint64_t now)
{
    if (m->local_id != c->known.remote_id) {
        return DROP_cm_ids;
    }
    if (c->config.role != CM_PASSIVE || c->known.state == CM_REQUESTED) {
        return DROP_cm_state;
    }
    c->heard = true;
    if (c->known.state == CM_ACCEPTED) {
        establish(conns, c, now);
    } else if (c->known.state == CM_ENDED) {
        cm_say_dreq(conns, c); /* The other end takes it for established. */
    }
    return DROP_none;
}

static enum drop_reason
input_mra(struct cm_conn *c, const struct cm_msg *m)
{
    if (is_awaiting_rep(c)) {
        return DROP_none;
    }
    if (m->local_id != c->known.remote_id) {
        return DROP_cm_ids;
    }
    if (c->config.role != CM_PASSIVE
        || (c->known.state != CM_ACCEPTED && c->known.state != CM_ESTABLISHED)) {
        return DROP_cm_state;
    }
    c->heard = true;
    if (c->known.state == CM_ACCEPTED) {
        /* The program takes its time. */
        c->n_said = 0;
        slow_down(c);
    }
    return DROP_none;
}

static enum drop_reason
refused(struct cm_conns *conns, struct cm_conn *c, const struct cm_msg *m, uint64_t now)
{
    bool is_news = c->known.state != CM_REFUSED || c->known.reason != m->reason;

    c->refused_id = m->local_id;
    c->known.reason = m->reason;
    if (c->n_said) {
        c->n_said = 0; /* A repeated REJ makes no longer pause. */
        c->interval = CM_RETRY_USEC;
        cm_conn_set_timer(conns, c, now + CM_PAUSE_USEC);
    }
    if (learn_private_data(&c->known, m, CM_REJ_PRIVATE_LEN) || is_news) {
        c->known.state = CM_REFUSED;
        cm_conn_changed(conns, c);
    }
    return DROP_none;
}

static enum drop_reason
input_rej(struct cm_conns *conns, struct cm_conn *c, const struct cm_msg *m, uint64_t now)
{
    if (is_awaiting_rep(c)) {
        return refused(conns, c, m, now);
    }
    if (m->local_id != c->known.remote_id) {
        return DROP_cm_ids;
    }
    if (c->known.state == CM_ENDED) {
        return DROP_none;
    }
    c->known.reason = m->reason;
    learn_private_data(&c->known, m, CM_REJ_PRIVATE_LEN);
    end(conns, c, c->known.state == CM_CLOSING ? CM_BY_DECISION : CM_BY_REJ, now);
    return DROP_none;
}

/* A kernel gives up its REQ, whose answer it does not know. */
static enum drop_reason
input_rej_of_req(struct cm_conns *conns, const struct in6_addr *proxy, const struct in6_addr *host,
                 const struct cm_msg *m, uint64_t now)
{
    struct cm_conn *c = cm_conn_by_remote(conns, proxy, host, m->local_id);

    if (!c) {
        return DROP_cm_unknown;
    }
    if (c->known.state != CM_REQUESTED && c->known.state != CM_ACCEPTED) {
        return DROP_cm_state;
    }
    return input_rej(conns, c, m, now);
}

/* A kernel need not repeat what it takes for a connection of here: its own IDs turned round are all
 * that it wants. */
static enum drop_reason
input_unknown(struct cm_conns *conns, const struct in6_addr *proxy, const struct in6_addr *host,
              const struct cm_msg *m, enum drop_reason why)
{
    if (m->attribute == CM_DREQ) {
        cm_answer_drep(conns, proxy, host, m);
    } else if (m->attribute == CM_REP) {
        cm_answer_rej(conns, proxy, host, m, CM_REJ_COMM_ID);
    }
    return why;
}

static enum drop_reason
input_dreq(struct cm_conns *conns, struct cm_conn *c, const struct cm_msg *m, uint64_t now)
{
    const struct in6_addr *proxy = &c->config.proxy, *host = &c->config.host;

    if (!DEFECT(CM_DREQ_FORGED)) {
        if (m->local_id != c->known.remote_id) {
            return input_unknown(conns, proxy, host, m, DROP_cm_ids);
        }
        if (m->remote_qpn != c->config.qpn) {
            return DROP_cm_ids;
        }
    }
    if (c->known.state != CM_ENDED) {
        end(conns, c, c->known.state == CM_CLOSING ? CM_BY_DECISION : CM_BY_DREQ, now);
    } else if (DEFECT(CM_DREQ_ONCE)) {
        return DROP_none;
    }
    cm_answer_drep(conns, proxy, host, m);
    return DROP_none;
}

static enum drop_reason
input_drep(struct cm_conns *conns, struct cm_conn *c, const struct cm_msg *m, uint64_t now)
{
    if (m->local_id != c->known.remote_id) {
        return DROP_cm_ids;
    }
    if (c->known.state == CM_CLOSING) {
        end(conns, c, CM_BY_DECISION, now);
    }
    return c->known.state == CM_ENDED ? DROP_none : DROP_cm_state;
}

enum drop_reason
cm_conns_input(struct cm_conns *conns, const struct in6_addr *proxy, const struct in6_addr *host,
               const struct cm_msg *m, uint64_t now)
{
    if (!conns->n_configs) {
        return DROP_cm_unknown; /* It may be of an earlier life's connection. */
    }
    if (m->attribute == CM_REQ) {
        return input_req(conns, proxy, host, m, now);
    }
    if (m->attribute == CM_SIDR_REQ) {
        cm_answer_sidr(conns, proxy, host, m);
        return DROP_none;
    }
    if (m->attribute == CM_REJ && !m->remote_id) {
        return input_rej_of_req(conns, proxy, host, m, now);
    }

    struct cm_conn *c = cm_conn_by_id(conns, m->remote_id);
    bool is_others = c
                     && (memcmp(&c->config.proxy, proxy, sizeof *proxy)
                         || memcmp(&c->config.host, host, sizeof *host));
    if (!c || is_others) {
        return input_unknown(conns, proxy, host, m, c ? DROP_cm_ids : DROP_cm_unknown);
    }
    switch (m->attribute) {
    case CM_REP: return input_rep(conns, c, m, now);
    case CM_RTU: return input_rtu(conns, c, m, now);
    case CM_MRA: return input_mra(c, m);
    case CM_REJ: return input_rej(conns, c, m, now);
    case CM_DREQ: return input_dreq(conns, c, m, now);
    case CM_DREP: return input_drep(conns, c, m, now);
    case CM_REQ:
    case CM_SIDR_REQ:
    case CM_SIDR_REP: break;
    }
    return DROP_cm_unknown;
}

void
cm_conns_traffic(struct cm_conns *conns, const struct in6_addr *proxy, const struct in6_addr *host,
                 uint32_t qpn)
{
    struct cm_conn *c = cm_conn_by_qp(conns, proxy, host, qpn);

    if (!c || c->config.role != CM_PASSIVE) {
        return;
    }
    if (c->known.state == CM_ACCEPTED) {
        enter(conns, c, CM_ESTABLISHED); /* the timer of the REP begins the keepalive. */
    }
    c->heard = true;
}

/* Timers. */

uint64_t
cm_conns_deadline(const struct cm_conns *conns)
{
    return deadlines_first(&conns->deadlines);
}

/* A REP is a question to the host's kernel, too. */
static void
keep_alive(struct cm_conns *conns, struct cm_conn *c, uint64_t now)
{
    if (c->heard || !c->config.keepalive_msec) {
        c->heard = false;
        c->n_said = 0;
        set_keepalive(conns, c, now);
    } else if (c->n_said == CM_PROBES) {
        end_by_silence(conns, c, now);
    } else {
        c->n_said++;
        cm_say_rep(conns, c);
        cm_conn_set_timer(conns, c, now + UINT64_C(3000) * c->config.keepalive_msec / CM_PROBES);
    }
}

static void
timer(struct cm_conns *conns, struct cm_conn *c, uint64_t now)
{
    switch (c->known.state) {
    case CM_REQUESTED: end_by_silence(conns, c, now); return;
    case CM_ACCEPTED:
        if (c->n_said > CM_RETRIES) {
            end_by_silence(conns, c, now);
        } else {
            repeat(conns, c, now);
        }
        return;
    case CM_CONNECTING:
    case CM_REFUSED:
        repeat(conns, c, now);
        slow_down(c);
        return;
    case CM_CLOSING:
        if (c->n_said > CM_RETRIES) {
            end(conns, c, CM_BY_DECISION, now);
        } else {
            repeat(conns, c, now);
        }
        return;
    case CM_ESTABLISHED: keep_alive(conns, c, now); return;
    case CM_ENDED: cm_conn_forget(conns, c); return;
    case CM_ANSWERED: cm_conn_set_timer(conns, c, UINT64_MAX); return;
    }
}

void
cm_conns_timer(struct cm_conns *conns, uint64_t now)
{
    struct cm_conn *c;

    while ((c = deadlines_due(&conns->deadlines, now))) {
        timer(conns, c, now);
    }
}

/* Configuration. */

/* How the connection goes on that the registry knows of, or begins. */
static struct cm_known
restored(const struct cm_conn_config *config)
{
    struct cm_known k = config->known;
    bool has_remote = k.remote_id && k.qpn;

    k.private_len = k.private_len < CM_PRIVATE_SIZE ? k.private_len : CM_PRIVATE_SIZE;
    if (config->role == CM_ACTIVE) {
        k.tid = config->id;
        if (k.state == CM_REQUESTED || k.state == CM_ACCEPTED
            || (!has_remote && k.state != CM_REFUSED && k.state != CM_ENDED)) {
            k.state = CM_CONNECTING;
        }
        if (k.state == CM_CONNECTING || k.state == CM_REFUSED) {
            k.remote_id = k.qpn = 0;
        }
    } else if (k.state == CM_CONNECTING || k.state == CM_REFUSED || k.state == CM_ANSWERED) {
        k.state = CM_REQUESTED;
    }
    if (config->role == CM_PASSIVE && !has_remote) {
        k.state = CM_ENDED; /* There is nobody. */
    }
    if (k.state == CM_ACCEPTED && config->decision == CM_UNDECIDED) {
        k.state = CM_REQUESTED; /* What it was accepted with is not known. */
    }
    k.cause = k.state != CM_ENDED       ? CM_NOT_ENDED
              : k.cause == CM_NOT_ENDED ? CM_BY_SILENCE
                                        : k.cause;
    return k;
}

static bool
is_over(const struct cm_conn_config *config)
{
    return config->decision == CM_REJECT || config->decision == CM_CLOSE;
}

/* Goes on with what has just been made. */
static void
start(struct cm_conns *conns, struct cm_conn *c, uint64_t now)
{
    c->interval = CM_RETRY_USEC;
    switch (c->known.state) {
    case CM_REQUESTED: cm_conn_set_timer(conns, c, now + CM_REQUEST_USEC); break;
    case CM_CLOSING: repeat(conns, c, now); break;
    case CM_CONNECTING:
        if (cm_conn_has_predecessor(conns, c)) {
            cm_conn_set_timer(conns, c, now + CM_PAUSE_USEC); /* that has just ended. */
            break;
        }
        /* fall through */
    case CM_ACCEPTED:
    case CM_REFUSED:
        if (!is_over(&c->config)) {
            repeat(conns, c, now);
        }
        break;
    case CM_ESTABLISHED: set_keepalive(conns, c, now); break;
    case CM_ANSWERED:
    case CM_ENDED: break;
    }
}

static void
carry_out_passive(struct cm_conns *conns, struct cm_conn *c, uint64_t now)
{
    bool over = is_over(&c->config);

    if (c->known.state == CM_REQUESTED && over) {
        cm_say_rejected(conns, c);
        end(conns, c, CM_BY_DECISION, now);
    } else if (c->known.state == CM_REQUESTED && c->config.decision == CM_ACCEPT) {
        enter(conns, c, CM_ACCEPTED);
        repeat(conns, c, now);
    } else if (over && (c->known.state == CM_ACCEPTED || c->known.state == CM_ESTABLISHED)) {
        enter(conns, c, CM_CLOSING);
        repeat(conns, c, now);
    }
}

static void
carry_out_active(struct cm_conns *conns, struct cm_conn *c, uint64_t now)
{
    bool over = is_over(&c->config);

    if (over && is_awaiting_rep(c)) {
        end(conns, c, CM_BY_DECISION, now);
    } else if (over && (c->known.state == CM_ANSWERED || c->known.state == CM_ESTABLISHED)) {
        enter(conns, c, CM_CLOSING);
        repeat(conns, c, now);
    } else if (c->known.state == CM_ANSWERED) {
        answer_when_ready(conns, c, now);
    }
}

static void
configure(struct cm_conns *conns, const struct cm_conn_config *config, uint64_t now)
{
    struct cm_conn *c = cm_conn_by_id(conns, config->id);

    if (c && c->in_config == conns->n_configs) {
        return; /* named twice. */
    }
    if (c
        && (c->config.role != config->role
            || memcmp(&c->config.proxy, &config->proxy, sizeof config->proxy)
            || memcmp(&c->config.host, &config->host, sizeof config->host))) {
        cm_conn_forget(conns, c); /* of the same name, but another. */
        c = NULL;
    }
    bool is_new = !c;
    if (is_new) {
        struct cm_known known = restored(config);
        c = cm_conn_make(conns, config, &known);
    }
    bool other_keepalive = c->config.keepalive_msec != config->keepalive_msec;
    c->config = *config;
    cm_conn_count(conns, c);
    c->in_config = conns->n_configs;
    if (!c->registered) {
        c->registered = true;
        cm_conn_changed(conns, c);
        if (c->known.state == CM_ENDED) {
            cm_conn_set_timer(conns, c, UINT64_MAX); /* It stays. */
        }
    }
    if (is_new) {
        start(conns, c, now);
    } else if (other_keepalive && c->known.state == CM_ESTABLISHED) {
        c->n_said = 0;
        set_keepalive(conns, c, now);
    }
    switch (config->role) {
    case CM_PASSIVE: carry_out_passive(conns, c, now); break;
    case CM_ACTIVE: carry_out_active(conns, c, now); break;
    }
}

/* Not in the configuration any more.  A late copy of its REQ must not begin it again. */
static void
unregister(struct cm_conns *conns, struct cm_conn *c, uint64_t now)
{
    if (c->config.role == CM_ACTIVE || c->known.state != CM_ENDED) {
        cm_conn_forget(conns, c);
        return;
    }
    c->registered = false;
    cm_conn_changed(conns, c);
    cm_conn_hide(conns, c);
    if (cm_conn_is_too_many(conns, c)) {
        cm_conn_forget(conns, c);
    } else {
        cm_conn_set_timer(conns, c, now + CM_LINGER_USEC);
    }
}

void
cm_conns_configure(struct cm_conns *conns, const struct cm_conn_config *configs, size_t n,
                   uint64_t now)
{
    conns->n_configs++;
    for (size_t i = 0; i < n; i++) {
        if (configs[i].id) {
            configure(conns, &configs[i], now);
        }
    }
    /* From the last one on: the one that takes the place of one that goes has been looked at. */
    for (size_t i = conns->n_listed; i-- > 0;) {
        struct cm_conn *c = conns->list[i];
        if (c->registered && c->in_config != conns->n_configs) {
            unregister(conns, c, now);
        }
    }
}
