/* SPDX-License-Identifier: Apache-2.0
 *
 * A model of an RC endpoint as Linux' rdma_rxe has it.
 *
 * Theory of operation
 * -------------------
 * The parts and their order follow drivers/infiniband/sw/rxe, so that the model
 * can be compared with it: receipt (rxe_recv.c), responder (rxe_resp.c),
 * requester (rxe_req.c), completer (rxe_comp.c).
 *
 * rxe's tasks run whenever they can.  Here the requester runs after every event
 * and sends as long as 'gap_usec' lets it, which is what gives responses the
 * time to arrive while packets are being sent again.
 *
 * A work request is POSTED until its first packet is sent, PROCESSING until its
 * last is, then PENDING.  Going back makes all of them POSTED again, and a
 * response for one that is POSTED is dropped.
 */
#include "tests/model/rc-endpoint.h"

#include <stdlib.h>

#include "lib/ecn.h"
#include "lib/icrc.h"
#include "lib/inet-csum.h"
#include "lib/roce.h"

#define MAX_UNACKED_PSNS (RC_MAX_IN_FLIGHT - 1)
#define MAX_PKT_PER_ACK  64 /* RXE_MAX_PKT_PER_ACK. */
#define INBOX_SIZE       512
#define MAX_GAP_USEC     4000
#define JIFFY_USEC       4000 /* HZ is 250; the RNR timer counts them. */
#define CNP_RESERVED_LEN 16
#define HEADERS_LEN      (IP6_HDR_LEN + sizeof(struct udp_hdr) + sizeof(struct bth))

enum wqe_state { WQE_POSTED, WQE_PROCESSING, WQE_PENDING };

struct wqe {
    struct rc_wr wr;
    enum wqe_state state;
    psn_t first_psn, last_psn;
    uint32_t n_packets;
    uint32_t n_sent; /* of them, in this round. */
};

struct response {
    psn_t psn;
    uint8_t syndrome;
};

struct recv_buffer {
    uint8_t *data;
    size_t size;
};

struct rc_endpoint {
    struct rc_config config;
    struct rc_ops ops;
    uint64_t n_dropped, n_wrong_source;

    /* Requester: wqes[i % RC_QUEUE_SIZE] for head <= i < tail; 'index' is sent
     * next, and below head if it was completed while being sent again: the rest of it
     * still goes out, as in rxe. */
    struct wqe wqes[RC_QUEUE_SIZE];
    size_t head, index, tail;
    psn_t req_psn;
    unsigned noack_pkts;
    bool running; /* run() is, and will see what is posted meanwhile. */
    bool need_retry;
    bool wait_for_rnr_timer;
    uint64_t rnr_at;
    uint64_t next_tx; /* no packet before. */
    uint64_t n_sent, n_retries, n_timeouts, n_responses;

    /* Completer. */
    psn_t comp_psn;
    bool started_retry;
    psn_t back_to; /* where it went back to last. */
    uint8_t retry_cnt, rnr_retry;
    uint64_t retrans_at;
    bool error;
    struct response inbox[INBOX_SIZE]; /* while a retry waits for the RNR timer. */
    size_t n_inbox;

    /* Responder. */
    uint64_t n_requests, n_duplicates, n_ahead, n_acks, n_naks;
    psn_t resp_psn;    /* expected. */
    bool has_executed; /* anything. */
    uint32_t msn;
    bool sent_psn_nak;
    bool failed;
    uint8_t fail_next;  /* syndrome; 0: no. */
    uint64_t slow_usec; /* between two requests that are accepted. */
    uint64_t ready_at;
    bool in_message;
    bool is_write;
    uint8_t *cursor; /* where the next packet of the message goes, and how much fits. */
    size_t resid;
    struct recv_buffer recv[RC_QUEUE_SIZE];
    size_t recv_head, recv_tail;

    /* Congestion. */
    uint64_t n_ce, n_cnps_made, n_cnps;
    uint64_t next_cnp;   /* none is made before. */
    uint64_t gap_usec;   /* not below that of 'config'. */
    uint64_t changed_at; /* it did last. */
};

static struct wqe *
wqe_at(struct rc_endpoint *ep, size_t i)
{
    return i < ep->tail ? &ep->wqes[i % RC_QUEUE_SIZE] : NULL;
}

struct rc_endpoint *
rc_create(const struct rc_config *config, const struct rc_ops *ops)
{
    struct rc_endpoint *ep = calloc(1, sizeof *ep);
    if (!ep) {
        abort();
    }
    ep->config = *config;
    ep->ops = *ops;
    ep->req_psn = ep->comp_psn = ep->resp_psn = config->start_psn;
    ep->retry_cnt = config->retry_cnt;
    ep->rnr_retry = config->rnr_retry;
    ep->retrans_at = ep->rnr_at = UINT64_MAX;
    ep->gap_usec = config->gap_usec;
    return ep;
}

void
rc_destroy(struct rc_endpoint *ep)
{
    free(ep);
}

/* Packets. */

/* Fills everything but extended headers, payload and ICRC in; returns where the
 * extended headers go.  'len' is that of extended headers, payload and pad. */
static uint8_t *
build(const struct rc_endpoint *ep, uint8_t *out, uint8_t opcode, bool ack_req, psn_t psn,
      size_t len, size_t pad)
{
    struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) out;
    struct udp_hdr *udp = (struct udp_hdr *) (ip + 1);
    struct bth *bth = (struct bth *) (udp + 1);
    uint16_t udp_len = (uint16_t) (sizeof *udp + sizeof *bth + len + ROCE_ICRC_LEN);

    memset(out, 0, HEADERS_LEN);
    ip6_set_vtf(ip, ep->config.ecn ? ECN_ECT0 : ECN_NOT_ECT, 0);
    ip->plen = be16_put(udp_len);
    ip->nh = IP6_NH_UDP;
    ip->hlim = 64;
    ip->src = ep->config.own;
    ip->dst = ep->config.peer;
    udp->sport = be16_put((uint16_t) (0xc000 | (ep->config.qpn & 0x3fff)));
    udp->dport = be16_put(UDP_PORT_ROCE);
    udp->len = be16_put(udp_len);
    bth->opcode = opcode;
    bth->flags = (uint8_t) (0x40 | pad << 4);
    bth->pkey = be16_put(ROCE_PKEY_DEFAULT);
    bth->dest_qp = be24_put(ep->config.dest_qpn);
    bth->ack_req = ack_req ? BTH_ACK_REQ : 0;
    bth_set_psn(bth, psn);
    return (uint8_t *) (bth + 1);
}

static void
emit(const struct rc_endpoint *ep, uint8_t *ip, size_t len)
{
    icrc_store(ip + len, icrc_compute(ip, len));
    ep->ops.tx(ep->ops.aux, ip, len + ROCE_ICRC_LEN);
}

/* A received packet that passed the checks. */
struct rx {
    const struct roce_opcode_info *op;
    const struct bth *bth;
    const uint8_t *ext;
    const uint8_t *payload;
    size_t payload_len; /* without pad. */
    size_t pad;
};

/* The checks of rxe on receipt, in its order. */
static bool
check(struct rc_endpoint *ep, const uint8_t *bytes, size_t len, struct rx *rx)
{
    const struct ip6_hdr_wire *ip = (const struct ip6_hdr_wire *) bytes;
    const struct udp_hdr *udp = (const struct udp_hdr *) (ip + 1);
    const struct bth *bth = (const struct bth *) (udp + 1);

    if (len < HEADERS_LEN + ROCE_ICRC_LEN || be32_get(ip->vtf) >> 28 != 6 || ip->nh != IP6_NH_UDP
        || be16_get(ip->plen) > len - IP6_HDR_LEN || be16_get(udp->dport) != UDP_PORT_ROCE
        || be16_get(udp->len) != be16_get(ip->plen)) {
        return false;
    }
    size_t udp_len = be16_get(udp->len);
    if (be16_get(udp->csum)
        && be16_get(inet_csum_ip6(&ip->src, &ip->dst, IP6_NH_UDP, udp, udp_len))) {
        return false;
    }
    *rx = (struct rx){
        .op = roce_opcode_info(bth->opcode),
        .bth = bth,
        .ext = (const uint8_t *) (bth + 1),
        .pad = BTH_PAD(bth->flags),
    };
    size_t overhead = sizeof *udp + sizeof *bth + rx->op->ext_len + rx->pad + ROCE_ICRC_LEN;
    if (!rx->op->name || udp_len < overhead || BTH_TVER(bth->flags)
        || be24_get(bth->dest_qp) != ep->config.qpn
        || ROCE_TRANSPORT(bth->opcode) != ROCE_TRANSPORT_RC) {
        return false;
    }
    rx->payload = rx->ext + rx->op->ext_len;
    rx->payload_len = udp_len - overhead;
    if (memcmp(&ip->src, &ep->config.peer, sizeof ip->src) != 0) {
        ep->n_wrong_source++;
        return false;
    }
    return !memcmp(&ip->dst, &ep->config.own, sizeof ip->dst)
           && be16_get(bth->pkey) == ROCE_PKEY_DEFAULT
           && icrc_ok(bytes, IP6_HDR_LEN + udp_len - ROCE_ICRC_LEN);
}

/* Responder. */

static void
send_ack(struct rc_endpoint *ep, uint8_t syndrome, psn_t psn)
{
    uint8_t out[HEADERS_LEN + sizeof(struct aeth) + ROCE_ICRC_LEN];
    struct aeth *aeth = (struct aeth *) build(ep, out, RC_ACK, false, psn, sizeof(struct aeth), 0);

    *aeth = (struct aeth){syndrome, be24_put(ep->msn & PSN_MASK)};
    *(aeth_class(syndrome) == AETH_CLASS_ACK ? &ep->n_acks : &ep->n_naks) += 1;
    emit(ep, out, sizeof out - ROCE_ICRC_LEN);
}

static void
fail(struct rc_endpoint *ep, uint8_t syndrome)
{
    send_ack(ep, syndrome, ep->resp_psn);
    ep->failed = true;
}

/* Does the opcode follow the one before?  SEND and WRITE packets do not mix. */
static bool
opcode_in_sequence(const struct rc_endpoint *ep, const struct rx *rx)
{
    bool start = rx->op->flags & ROCE_F_START;
    bool is_write = rx->bth->opcode >= RC_WRITE_FIRST;

    return (rx->op->flags & ROCE_F_MULTICAST) && start != ep->in_message
           && (start || is_write == ep->is_write);
}

/* Where a message that starts goes.  0, or the syndrome of a fatal NAK. */
static uint8_t
start_message(struct rc_endpoint *ep, const struct rx *rx)
{
    ep->is_write = rx->op->flags & ROCE_F_RETH;
    if (!ep->is_write) {
        const struct recv_buffer *b = &ep->recv[ep->recv_head % RC_QUEUE_SIZE];
        ep->cursor = b->data;
        ep->resid = b->size;
        return 0;
    }
    const struct reth *reth = (const struct reth *) rx->ext;
    uint64_t ofs = be64_get(reth->va) - ep->config.va;
    uint32_t len = be32_get(reth->dma_len);

    ep->resid = len;
    ep->cursor = NULL;
    if (len) {
        if (be32_get(reth->rkey) != ep->config.rkey || be64_get(reth->va) < ep->config.va
            || ofs > ep->config.region_len || len > ep->config.region_len - ofs) {
            return AETH_NAK_REM_ACCESS;
        }
        ep->cursor = ep->config.region + ofs;
    }
    return 0;
}

/* Is the packet as long as its opcode and the message want? */
static bool
length_ok(const struct rc_endpoint *ep, const struct rx *rx)
{
    size_t mtu = ep->config.mtu;

    if (rx->payload_len > ep->resid) {
        return false;
    }
    if (!(rx->op->flags & ROCE_F_END)) {
        return rx->payload_len == mtu && !rx->pad;
    }
    return rx->payload_len <= mtu && (!ep->is_write || rx->payload_len == ep->resid);
}

/* True: it is too early for another one, and that was said. */
static bool
ask_for_time(struct rc_endpoint *ep, uint64_t now)
{
    if (!ep->slow_usec || now >= ep->ready_at) {
        ep->ready_at = now + ep->slow_usec;
        return false;
    }
    for (unsigned i = 0; i < RC_SLOW_RNRS; i++) {
        send_ack(ep, (uint8_t) (AETH_RNR | (ep->config.min_rnr_timer - i % 2)), ep->resp_psn);
    }
    return true;
}

/* A packet that is in sequence. */
static void
execute(struct rc_endpoint *ep, const struct rx *rx, uint64_t now)
{
    bool start = rx->op->flags & ROCE_F_START;
    bool end = rx->op->flags & ROCE_F_END;

    if (ep->fail_next) {
        fail(ep, ep->fail_next);
        return;
    }
    if (!opcode_in_sequence(ep, rx)) {
        fail(ep, AETH_NAK_INVALID_REQ);
        return;
    }
    if (ask_for_time(ep, now)) {
        return;
    }
    bool is_send = rx->bth->opcode < RC_WRITE_FIRST;
    bool takes_buffer = is_send ? start : (rx->op->flags & ROCE_F_IMM) != 0;
    if (takes_buffer && ep->recv_head == ep->recv_tail) {
        send_ack(ep, AETH_RNR | (ep->config.min_rnr_timer & 0x1f), ep->resp_psn);
        return;
    }
    uint8_t syndrome = start ? start_message(ep, rx) : 0;
    if (!syndrome && !length_ok(ep, rx)) {
        syndrome = AETH_NAK_INVALID_REQ;
    }
    if (syndrome) {
        fail(ep, syndrome);
        return;
    }

    ep->recv_head += takes_buffer;
    if (rx->payload_len) {
        memcpy(ep->cursor, rx->payload, rx->payload_len);
        ep->cursor += rx->payload_len;
        ep->resid -= rx->payload_len;
    }
    ep->in_message = !end;
    ep->msn += end;
    ep->has_executed = true;
    psn_t psn = ep->resp_psn;
    ep->resp_psn = psn_add(psn, 1);
    if (rx->bth->ack_req & BTH_ACK_REQ) {
        send_ack(ep, AETH_ACK_UNLIMITED, psn);
    }
}

/* Congestion. */

static void
send_cnp(struct rc_endpoint *ep)
{
    uint8_t out[HEADERS_LEN + CNP_RESERVED_LEN + ROCE_ICRC_LEN];
    uint8_t *reserved = build(ep, out, ROCE_CNP, false, psn_make(0), CNP_RESERVED_LEN, 0);
    struct bth *bth = (struct bth *) (reserved - sizeof *bth);

    memset(reserved, 0, CNP_RESERVED_LEN);
    ip6_set_vtf((struct ip6_hdr_wire *) out, 48 << 2, 0);
    bth->flags = 0;
    bth->resv8a = BTH_BECN;
    ep->n_cnps_made++;
    emit(ep, out, sizeof out - ROCE_ICRC_LEN);
}

/* A request came with CE. */
static void
note_ce(struct rc_endpoint *ep, uint64_t now)
{
    ep->n_ce++;
    if (ep->config.cnp_usec && now >= ep->next_cnp) {
        ep->next_cnp = now + ep->config.cnp_usec;
        send_cnp(ep);
    }
}

static bool
is_cnp(const struct rc_endpoint *ep, const uint8_t *bytes, size_t len)
{
    const struct ip6_hdr_wire *ip = (const struct ip6_hdr_wire *) bytes;
    const struct bth *bth = (const struct bth *) (bytes + HEADERS_LEN - sizeof *bth);
    const size_t covered = HEADERS_LEN + CNP_RESERVED_LEN;

    return len >= covered + ROCE_ICRC_LEN && ip->nh == IP6_NH_UDP
           && be16_get(ip->plen) == covered + ROCE_ICRC_LEN - IP6_HDR_LEN && bth->opcode == ROCE_CNP
           && !memcmp(&ip->src, &ep->config.peer, sizeof ip->src)
           && be24_get(bth->dest_qp) == ep->config.qpn && icrc_ok(bytes, covered);
}

/* One step in a time, and none while nothing is sent. */
static void
grow_faster(struct rc_endpoint *ep, uint64_t now)
{
    if (ep->gap_usec > ep->config.gap_usec && now - ep->changed_at >= ep->config.obey_usec) {
        ep->gap_usec -= (ep->gap_usec + 7) / 8;
        ep->changed_at = now;
    }
    if (ep->gap_usec < ep->config.gap_usec) {
        ep->gap_usec = ep->config.gap_usec;
    }
}

static void
cnp_input(struct rc_endpoint *ep, uint64_t now)
{
    ep->n_cnps++;
    if (ep->config.obey_usec) {
        ep->gap_usec = ep->gap_usec < MAX_GAP_USEC / 2 ? 2 * ep->gap_usec + 1 : MAX_GAP_USEC;
        ep->changed_at = now;
    }
}

static void
request_input(struct rc_endpoint *ep, const struct rx *rx, uint64_t now)
{
    if (ep->failed) {
        return;
    }
    int32_t ahead = psn_cmp(bth_psn(rx->bth), ep->resp_psn);
    ep->n_requests++;
    ep->n_duplicates += ahead < 0;
    ep->n_ahead += ahead > 0;
    if (ahead > 0) {
        if (!ep->sent_psn_nak) {
            ep->sent_psn_nak = true;
            send_ack(ep, AETH_NAK_PSN_SEQ, ep->resp_psn);
        }
        return;
    }
    if (ahead < 0) {
        if (rx->op->flags & ROCE_F_MULTICAST) {
            /* As rxe: the PSN of the last one that was executed, or nothing that makes sense. */
            psn_t last = ep->has_executed ? psn_add(ep->resp_psn, -1) : psn_make(PSN_MASK);
            send_ack(ep, AETH_ACK_UNLIMITED, last);
        }
        return;
    }
    ep->sent_psn_nak = false;
    execute(ep, rx, now);
}

/* Requester. */

static uint8_t
opcode_of(const struct wqe *w)
{
    static const uint8_t opcodes[][4] = {
        /* FIRST, MIDDLE, LAST, ONLY. */
        [RC_OP_SEND] = {RC_SEND_FIRST, RC_SEND_MIDDLE, RC_SEND_LAST, RC_SEND_ONLY},
        [RC_OP_SEND_IMM] = {RC_SEND_FIRST, RC_SEND_MIDDLE, RC_SEND_LAST_IMM, RC_SEND_ONLY_IMM},
        [RC_OP_WRITE] = {RC_WRITE_FIRST, RC_WRITE_MIDDLE, RC_WRITE_LAST, RC_WRITE_ONLY},
        [RC_OP_WRITE_IMM] = {RC_WRITE_FIRST, RC_WRITE_MIDDLE, RC_WRITE_LAST_IMM, RC_WRITE_ONLY_IMM},
    };
    bool first = w->n_sent == 0;
    bool last = w->n_sent + 1 == w->n_packets;
    return opcodes[w->wr.op][first && last ? 3 : first ? 0 : last ? 2 : 1];
}

static void
send_packet(struct rc_endpoint *ep, const struct wqe *w)
{
    uint8_t out[RC_MAX_PACKET];
    uint8_t opcode = opcode_of(w);
    const struct roce_opcode_info *op = roce_opcode_info(opcode);
    size_t ofs = (size_t) w->n_sent * ep->config.mtu;
    size_t rest = w->wr.len - ofs;
    size_t len = rest < ep->config.mtu ? rest : ep->config.mtu;
    size_t pad = -len & 3;
    bool ack_req = op->flags & ROCE_F_END || ep->noack_pkts++ > MAX_PKT_PER_ACK;
    uint8_t *ext = build(ep, out, opcode, ack_req, ep->req_psn, op->ext_len + len + pad, pad);

    if (ack_req) {
        ep->noack_pkts = 0;
    }
    memset(ext, 0, op->ext_len);
    if (op->flags & ROCE_F_RETH) {
        *(struct reth *) ext =
            (struct reth){be64_put(w->wr.va), be32_put(w->wr.rkey), be32_put(w->wr.len)};
    }
    if (len) {
        memcpy(ext + op->ext_len, w->wr.data + ofs, len);
    }
    memset(ext + op->ext_len + len, 0, pad);
    emit(ep, out, HEADERS_LEN + op->ext_len + len + pad);
    ep->n_sent++;
}

/* Go-back-N, from the lowest PSN that is not acknowledged, in mid-message if
 * that is where it is. */
static void
retry(struct rc_endpoint *ep)
{
    ep->need_retry = false;
    ep->n_retries++;
    ep->index = ep->head;
    ep->req_psn = ep->back_to = ep->comp_psn;
    for (size_t i = ep->head; i < ep->tail; i++) {
        struct wqe *w = wqe_at(ep, i);
        if (w->state == WQE_POSTED) {
            break;
        }
        w->n_sent = i == ep->head ? (uint32_t) psn_cmp(ep->comp_psn, w->first_psn) : 0;
        w->state = WQE_POSTED;
    }
}

static bool
may_send(const struct rc_endpoint *ep)
{
    return !ep->error && ep->index < ep->tail
           && psn_cmp(ep->req_psn, ep->comp_psn) <= MAX_UNACKED_PSNS;
}

static void
requester(struct rc_endpoint *ep, uint64_t now)
{
    if (ep->need_retry && !ep->wait_for_rnr_timer) {
        retry(ep);
    }
    while (may_send(ep) && now >= ep->next_tx) {
        struct wqe *w = wqe_at(ep, ep->index);

        if (w->n_sent == 0) {
            w->first_psn = ep->req_psn;
            w->last_psn = psn_add(w->first_psn, (int32_t) w->n_packets - 1);
        }
        if (w->n_sent == w->n_packets) {
            /* Gone back to behind its end: all of it is acknowledged. */
            w->state = WQE_PENDING;
            ep->index++;
            continue;
        }
        send_packet(ep, w);
        w->n_sent++;
        w->state = w->n_sent == w->n_packets ? WQE_PENDING : WQE_PROCESSING;
        ep->index += w->state == WQE_PENDING;
        ep->req_psn = psn_add(ep->req_psn, 1);
        grow_faster(ep, now);
        ep->next_tx = now + ep->gap_usec;
        if (ep->config.timeout_usec && ep->retrans_at == UINT64_MAX) {
            ep->retrans_at = now + ep->config.timeout_usec;
        }
    }
}

/* Completer. */

static void
complete_head(struct rc_endpoint *ep, enum rc_status status)
{
    uint64_t id = wqe_at(ep, ep->head)->wr.id;
    ep->head++;
    if (ep->ops.complete) {
        ep->ops.complete(ep->ops.aux, id, status);
    }
}

static void
enter_error(struct rc_endpoint *ep, enum rc_status status)
{
    ep->error = true;
    ep->retrans_at = ep->rnr_at = UINT64_MAX;
    while (ep->head < ep->tail) {
        complete_head(ep, status);
        status = RC_WC_FLUSHED;
    }
}

static void
reset_retry_counters(struct rc_endpoint *ep)
{
    ep->retry_cnt = ep->config.retry_cnt;
    ep->rnr_retry = ep->config.rnr_retry;
    ep->started_retry = false;
}

static void
raise_comp_psn(struct rc_endpoint *ep, psn_t psn)
{
    if (psn_cmp(psn, ep->comp_psn) > 0) {
        ep->comp_psn = psn;
    }
}

/* A sequence NAK or a timeout. */
static void
error_retry(struct rc_endpoint *ep, bool is_timeout)
{
    if (ep->started_retry && !is_timeout) {
        return;
    }
    if (!ep->retry_cnt) {
        enter_error(ep, RC_WC_RETRY_EXC);
        return;
    }
    ep->retry_cnt -= ep->retry_cnt != RC_RETRY_FOREVER;
    if (psn_cmp(ep->req_psn, ep->comp_psn) > 0) {
        ep->need_retry = true;
        ep->started_retry = true;
    }
}

static void
rnr_retry(struct rc_endpoint *ep, uint8_t code, uint64_t now)
{
    if (!ep->rnr_retry) {
        enter_error(ep, RC_WC_RNR_RETRY_EXC);
        return;
    }
    ep->rnr_retry -= ep->rnr_retry != RC_RETRY_FOREVER;
    ep->wait_for_rnr_timer = true;
    ep->rnr_at = now + (roce_rnr_usec(code) + JIFFY_USEC - 1) / JIFFY_USEC * JIFFY_USEC;
}

/* A response that concerns the oldest request. */
static void
check_ack(struct rc_endpoint *ep, const struct wqe *w, const struct response *r, uint64_t now)
{
    switch (aeth_class(r->syndrome)) {
    case AETH_CLASS_ACK: {
        bool whole = w->state == WQE_PENDING && psn_eq(w->last_psn, r->psn);
        reset_retry_counters(ep);
        if (whole) {
            complete_head(ep, RC_WC_SUCCESS);
        }
        raise_comp_psn(ep, psn_add(r->psn, 1));
        return;
    }
    case AETH_CLASS_RNR: rnr_retry(ep, r->syndrome & 0x1f, now); return;
    case AETH_CLASS_NAK:
        switch (r->syndrome) {
        case AETH_NAK_PSN_SEQ:
            raise_comp_psn(ep, r->psn);
            error_retry(ep, false);
            return;
        case AETH_NAK_INVALID_REQ: enter_error(ep, RC_WC_REM_INV_REQ); return;
        case AETH_NAK_REM_ACCESS: enter_error(ep, RC_WC_REM_ACCESS); return;
        case AETH_NAK_REM_OP: enter_error(ep, RC_WC_REM_OP); return;
        default: break;
        }
        break;
    case AETH_CLASS_RESERVED: break;
    }
    enter_error(ep, RC_WC_BAD_RESP);
}

static void
completer(struct rc_endpoint *ep, const struct response *r, uint64_t now)
{
    while (!ep->error) {
        const struct wqe *w = wqe_at(ep, ep->head);

        if (!w || w->state == WQE_POSTED) {
            return;
        }
        if (psn_cmp(r->psn, w->last_psn) > 0) {
            /* It is past the oldest request, whatever kind of response it is. */
            if (w->state != WQE_PENDING) {
                return;
            }
            reset_retry_counters(ep);
            raise_comp_psn(ep, psn_add(w->last_psn, 1));
            complete_head(ep, RC_WC_SUCCESS);
            continue;
        }
        if (psn_cmp(r->psn, ep->comp_psn) >= 0) {
            check_ack(ep, w, r, now);
        } else if (psn_eq(r->psn, w->last_psn)) {
            complete_head(ep, RC_WC_SUCCESS);
        }
        return;
    }
}

/* Takes the inbox in, as far as no retry is owed first, and sends. */
static void
run(struct rc_endpoint *ep, uint64_t now)
{
    size_t i = 0;

    ep->running = true;
    if (ep->need_retry && !ep->wait_for_rnr_timer) {
        retry(ep);
    }
    while (i < ep->n_inbox && !ep->need_retry) {
        completer(ep, &ep->inbox[i++], now);
    }
    ep->n_inbox -= i;
    memmove(ep->inbox, ep->inbox + i, ep->n_inbox * sizeof ep->inbox[0]);
    const struct wqe *w = wqe_at(ep, ep->head);
    if (i && !ep->error && ep->config.timeout_usec && psn_cmp(ep->req_psn, ep->comp_psn) > 0
        && !(w && w->state == WQE_POSTED && ep->wait_for_rnr_timer)) {
        ep->retrans_at = now + ep->config.timeout_usec;
    }
    requester(ep, now);
    ep->running = false;
}

static void
response_input(struct rc_endpoint *ep, const struct rx *rx, uint64_t now)
{
    ep->n_responses++;
    if (rx->bth->opcode != RC_ACK || ep->error || ep->n_inbox == INBOX_SIZE) {
        return;
    }
    ep->inbox[ep->n_inbox++] = (struct response){
        .psn = bth_psn(rx->bth),
        .syndrome = ((const struct aeth *) rx->ext)->syndrome,
    };
    run(ep, now);
}

/* Events. */

void
rc_input(struct rc_endpoint *ep, const uint8_t *ip, size_t len, uint64_t now)
{
    struct rx rx;

    if (is_cnp(ep, ip, len)) {
        cnp_input(ep, now);
    } else if (!check(ep, ip, len, &rx)) {
        ep->n_dropped++;
    } else if (rx.op->flags & ROCE_F_REQUEST) {
        if ((ip6_tc((const struct ip6_hdr_wire *) ip) & ECN_MASK) == ECN_CE) {
            note_ce(ep, now);
        }
        request_input(ep, &rx, now);
    } else {
        response_input(ep, &rx, now);
    }
}

bool
rc_post(struct rc_endpoint *ep, const struct rc_wr *wr, uint64_t now)
{
    uint32_t mtu = ep->config.mtu;

    size_t oldest = ep->index < ep->head ? ep->index : ep->head;
    if (ep->tail - oldest == RC_QUEUE_SIZE) {
        return false;
    }
    ep->wqes[ep->tail++ % RC_QUEUE_SIZE] = (struct wqe){
        .wr = *wr,
        .n_packets = wr->len ? (wr->len + mtu - 1) / mtu : 1,
    };
    if (ep->error) {
        complete_head(ep, RC_WC_FLUSHED);
    } else if (!ep->running) {
        run(ep, now);
    }
    return true;
}

bool
rc_post_recv(struct rc_endpoint *ep, uint8_t *buffer, size_t size)
{
    if (ep->recv_tail - ep->recv_head == RC_QUEUE_SIZE) {
        return false;
    }
    ep->recv[ep->recv_tail++ % RC_QUEUE_SIZE] = (struct recv_buffer){buffer, size};
    return true;
}

void
rc_fail_next(struct rc_endpoint *ep, uint8_t syndrome)
{
    ep->fail_next = syndrome;
}

void
rc_slow(struct rc_endpoint *ep, uint64_t usec)
{
    ep->slow_usec = usec;
    ep->ready_at = usec == UINT64_MAX ? UINT64_MAX : 0;
}

bool
rc_takes_nothing(const struct rc_endpoint *ep)
{
    return ep->slow_usec == UINT64_MAX;
}

uint64_t
rc_deadline(const struct rc_endpoint *ep)
{
    uint64_t when = may_send(ep) ? ep->next_tx : UINT64_MAX;

    when = ep->rnr_at < when ? ep->rnr_at : when;
    return ep->retrans_at < when ? ep->retrans_at : when;
}

void
rc_timer(struct rc_endpoint *ep, uint64_t now)
{
    if (now >= ep->rnr_at) {
        ep->rnr_at = UINT64_MAX;
        ep->wait_for_rnr_timer = false;
        ep->need_retry = true;
    }
    if (now >= ep->retrans_at) {
        const struct wqe *w = wqe_at(ep, ep->head);
        ep->retrans_at = UINT64_MAX;
        if (w && w->state != WQE_POSTED && !ep->need_retry) {
            ep->n_timeouts++;
            error_retry(ep, true);
        }
    }
    run(ep, now);
}

psn_t
rc_expected(const struct rc_endpoint *ep)
{
    return ep->resp_psn;
}

void
rc_get_info(const struct rc_endpoint *ep, struct rc_info *info)
{
    *info = (struct rc_info){
        .expected = ep->resp_psn,
        .msn = ep->msn,
        .missing = ep->sent_psn_nak,
        .failed = ep->failed,
        .n_requests = ep->n_requests,
        .n_duplicates = ep->n_duplicates,
        .n_ahead = ep->n_ahead,
        .n_acks = ep->n_acks,
        .n_naks = ep->n_naks,
        .una = ep->comp_psn,
        .next = ep->req_psn,
        .error = ep->error,
        .gone_back = ep->started_retry,
        .back_to = ep->back_to,
        .n_outstanding = ep->tail - ep->head,
        .stuck = !ep->error && ep->head < ep->tail && ep->index == ep->tail
                 && psn_cmp(ep->comp_psn, ep->req_psn) >= 0,
        .n_sent = ep->n_sent,
        .n_retries = ep->n_retries,
        .n_timeouts = ep->n_timeouts,
        .n_responses = ep->n_responses,
        .n_dropped = ep->n_dropped,
        .n_wrong_source = ep->n_wrong_source,
        .n_ce = ep->n_ce,
        .n_cnps_made = ep->n_cnps_made,
        .n_cnps = ep->n_cnps,
        .gap_usec = ep->gap_usec,
    };
}
