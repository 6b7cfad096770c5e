/* SPDX-License-Identifier: Apache-2.0
 *
 * The behaviours that rocecast relies on, or that tell devices apart (see probe.h).
 *
 * What is expected is what rdma_rxe does, which docs/draft-notes.md describes.
 */
#include "bench/castprobe/probe.h"

#include "lib/ecn.h"
#include "lib/roce.h"

/*
 * What a responder says.
 */

static void
write_with_ack_req(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    probe_send(p, craft_write(p, 0));
    say_answers(p, 1);
    say_written(p, 0);
}

static void
write_without_ack_req(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    struct craft c = craft_write(p, 0);
    c.ack_req = false;
    probe_send(p, c);
    say_answers(p, 0);
    say_written(p, 0);
}

static void
last_asks(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    probe_send_message(p, 0, 4);
    say_answers(p, 1);
    say_written(p, 3 * (int) p->mtu);
}

/* One after the other: a device may merge answers. */
static void
each_asks(struct probe *p)
{
    static const uint8_t opcodes[] = {RC_WRITE_FIRST, RC_WRITE_MIDDLE, RC_WRITE_LAST};

    probe_qp(p, PROBE_QP);
    for (int i = 0; i < 3; i++) {
        struct craft c = craft_request(p, opcodes[i], i);
        c.len = p->mtu;
        c.dma_len = 3 * p->mtu;
        probe_send(p, c);
        say_answers(p, 1);
    }
}

static void
wraps(struct probe *p)
{
    struct probe_qp q = PROBE_QP;

    q.start_psn = 0xffffff;
    probe_qp(p, q);
    probe_send_message(p, 0, 2);
    say_answers(p, 1);
    say_written(p, (int) p->mtu);
}

static void
duplicate(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    for (int i = 0; i < 3; i++) {
        probe_send(p, craft_write(p, i));
        probe_listen(p, 1);
    }
    struct craft c = craft_write(p, 1);
    c.ack_req = false;
    c.fill = 0x55;
    probe_send(p, c);
    say_answers(p, 1);
    say_written(p, 0);
}

static void
duplicates_in_a_row(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    probe_send_message(p, 0, 3);
    probe_listen(p, 1);
    probe_send_message(p, 0, 3);
    say_answers(p, 3);
}

/* As an edge asks a receiver whether it is alive: any key, no bytes. */
static struct craft
question(const struct probe *p, int psn)
{
    struct craft c = craft_write(p, psn);

    c.va = 0;
    c.rkey = 0;
    c.len = c.dma_len = 0;
    return c;
}

static void
question_to_used(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    for (int i = 0; i < 2; i++) {
        probe_send(p, craft_write(p, i));
        probe_listen(p, 1);
    }
    probe_send(p, question(p, 1));
    say_answers(p, 1);
    probe_send(p, craft_write(p, 2));
    say_answers(p, 1);
}

static void
question_to_fresh(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    probe_send(p, question(p, -1));
    say_answers(p, 1);
    probe_send(p, craft_write(p, 0));
    say_answers(p, 1);
}

static void
write_of_no_bytes(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    probe_send(p, question(p, 0));
    say_answers(p, 1);
    say_completions(p, 0);
    say_state(p);
}

static void
gap(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    probe_send(p, craft_write(p, 2));
    say_answers(p, 1);
    probe_send(p, craft_write(p, 3));
    say_answers(p, 0);
    say_written(p, 0);
}

static void
second_gap(struct probe *p)
{
    static const int psns[] = {1, 0, 2};

    probe_qp(p, PROBE_QP);
    for (int i = 0; i < 3; i++) {
        probe_send(p, craft_write(p, psns[i]));
        say_answers(p, 1);
    }
}

static void
duplicate_after_nak(struct probe *p)
{
    static const int psns[] = {0, 5, 0, 1};

    probe_qp(p, PROBE_QP);
    for (int i = 0; i < 4; i++) {
        probe_send(p, craft_write(p, psns[i]));
        say_answers(p, 1);
    }
}

static void
send_without_receive(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    probe_send(p, craft_request(p, RC_SEND_ONLY, 0));
    say_answers(p, 1);
    probe_send(p, craft_request(p, RC_SEND_ONLY, 1));
    say_answers(p, 1);
    probe_recv(p, 1);
    probe_send(p, craft_request(p, RC_SEND_ONLY, 0));
    say_answers(p, 1);
    say_completions(p, 1);
}

static void
write_imm_without_receive(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    probe_send(p, craft_request(p, RC_WRITE_ONLY_IMM, 0));
    say_answers(p, 1);
    say_written(p, 0);
    probe_recv(p, 1);
    probe_send(p, craft_request(p, RC_WRITE_ONLY_IMM, 0));
    say_answers(p, 1);
    say_written(p, 0);
    say_completions(p, 1);
}

/* A packet that is refused, and one that would be right. */
static void
refused(struct probe *p, struct craft c, int next)
{
    probe_send(p, c);
    say_answers(p, 1);
    say_state(p);
    probe_send(p, craft_write(p, next));
    say_answers(p, 0);
    say_written(p, 0);
}

static void
wrong_rkey(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    struct craft c = craft_write(p, 0);
    c.rkey ^= 0x5a;
    refused(p, c, 1);
}

static void
wrong_address(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    struct craft c = craft_write(p, 0);
    c.va -= PROBE_LEN;
    refused(p, c, 1);
}

static void
wrong_length(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    struct craft c = craft_write(p, 0);
    c.dma_len = PROBE_LEN / 2;
    refused(p, c, 1);
}

static void
middle_without_first(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    struct craft c = craft_request(p, RC_WRITE_MIDDLE, 0);
    c.len = p->mtu;
    refused(p, c, 1);
}

static void
first_in_message(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    struct craft c = craft_request(p, RC_WRITE_FIRST, 0);
    c.len = p->mtu;
    c.dma_len = 2 * p->mtu;
    c.va += 4 * (uint64_t) p->mtu;
    c.ack_req = false;
    probe_send(p, c);
    refused(p, craft_write(p, 1), 2);
}

static void
read_request(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    struct craft c = craft_request(p, RC_READ_REQ, 0);
    c.len = 0;
    refused(p, c, 1);
}

/*
 * What a device takes.
 */

/* Sends it, and then the same as it should be: if that is message 1, the first was not executed. */
static void
taken(struct probe *p, struct craft c, bool expect_answer)
{
    probe_send(p, c);
    say_answers(p, expect_answer);
    probe_send(p, craft_write(p, 0));
    say_answers(p, 1);
}

static void
wrong_icrc(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    struct craft c = craft_write(p, 0);
    c.bad_icrc = true;
    taken(p, c, false);
}

static void
other_address(struct probe *p)
{
    probe_reaches(p);
    probe_qp(p, PROBE_QP);
    struct craft c = craft_write(p, 0);
    c.from = PEER_FROM_OTHER_ADDRESS;
    taken(p, c, false);
}

static void
unknown_qpn(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    struct craft c = craft_write(p, 0);
    c.dest_qpn ^= 0x800000;
    taken(p, c, false);
}

static void
unknown_pkey(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    struct craft c = craft_write(p, 0);
    c.pkey = 0x9234;
    taken(p, c, false);
}

static void
limited_pkey(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    struct craft c = craft_write(p, 0);
    c.pkey = ROCE_PKEY_BASE;
    taken(p, c, true);
}

static void
other_port(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    struct craft c = craft_write(p, 0);
    c.from = PEER_FROM_OTHER_PORT;
    taken(p, c, true);
}

static void
udp_checksum(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    struct craft c = craft_write(p, 0);
    c.has_csum = true;
    taken(p, c, true);
}

static void
hop_limit_1(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    struct craft c = craft_write(p, 0);
    c.hop_limit = 1;
    taken(p, c, true);
}

static void
no_mig_req(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    struct craft c = craft_write(p, 0);
    c.mig_req = false;
    taken(p, c, true);
}

static void
congestion_experienced(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    struct craft c = craft_write(p, 0);
    c.traffic_class = ECN_CE;
    probe_send(p, c);
    say_answers(p, 1);
}

static void
cnp(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    struct craft c = craft_request(p, ROCE_CNP, 0);
    c.ack_req = false;
    c.fill = 0;
    c.len = 16; /* reserved. */
    taken(p, c, false);
    say_state(p);
}

/*
 * What is around its answers.
 */

static void
answer_headers(struct probe *p)
{
    struct probe_qp q = PROBE_QP;

    q.traffic_class = 0x60 | ECN_ECT0;
    probe_qp(p, q);
    struct craft c = craft_write(p, 0);
    c.traffic_class = 0x20;
    c.hop_limit = 33;
    probe_send(p, c);
    probe_listen(p, 1);
    const struct seen *s = p->seen;
    if (p->n_seen) {
        say(p, "hop limit %d, traffic class 0x%02x, P_Key 0x%04x", s->hop_limit, s->traffic_class,
            s->pkey);
    } else {
        say(p, "silence");
    }
}

static void
answer_flow(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    for (int i = 0; i < 3; i++) {
        probe_send(p, craft_write(p, i));
    }
    probe_send(p, craft_write(p, 5));
    probe_listen(p, 4);
    for (unsigned i = 1; i < p->n_seen; i++) {
        if (p->seen[i].sport != p->seen[0].sport) {
            say(p, "several source ports");
            return;
        }
        if (p->seen[i].flow_label != p->seen[0].flow_label) {
            say(p, "several flow labels");
            return;
        }
    }
    say(p, "%s, one source port%s, one flow label", p->n_seen == 4 ? "4 answers" : "other answers",
        p->n_seen && p->seen[0].sport >= 0xc000 ? " of 0xc000 or above" : "");
}

/*
 * What a requester sends.
 */

static void
ack_req_pattern(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    probe_post(p, 1, 100, false);
    say_answers(p, 100);
}

static void
window(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    probe_post(p, 2, 100, false);
    probe_listen(p, 129);
    say(p, "%u packets", p->n_seen);
    probe_respond(p, AETH_ACK_UNLIMITED, 9);
    probe_listen(p, 10);
    say(p, "after an ACK of 10 %u more", p->n_seen);
}

static void
cumulative_ack(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    probe_post(p, 3, 1, false);
    say_answers(p, 3);
    probe_respond(p, AETH_ACK_UNLIMITED, 2);
    say_answers(p, 0);
    say_completions(p, 3);
}

static void
ack_in_message(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    probe_post(p, 1, 4, false);
    say_answers(p, 4);
    probe_respond(p, AETH_ACK_UNLIMITED, 1);
    say_answers(p, 0);
    say_completions(p, 0);
    probe_respond(p, AETH_ACK_UNLIMITED, 3);
    say_completions(p, 1);
}

static void
ack_beyond(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    probe_post(p, 1, 1, false);
    say_answers(p, 1);
    probe_respond(p, AETH_ACK_UNLIMITED, 100);
    say_answers(p, 0);
    say_completions(p, 1);
    say_state(p);
}

static void
ack_below(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    probe_post(p, 3, 1, false);
    say_answers(p, 3);
    probe_respond(p, AETH_ACK_UNLIMITED, 1);
    probe_respond(p, AETH_ACK_UNLIMITED, 0);
    probe_respond(p, AETH_NAK_PSN_SEQ, 0);
    say_answers(p, 0);
    say_completions(p, 2);
}

static void
any_msn(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    probe_post(p, 1, 1, false);
    say_answers(p, 1);
    struct craft c = craft_response(p, AETH_ACK_UNLIMITED, 0);
    c.msn = 0x123456;
    probe_send(p, c);
    say_completions(p, 1);
}

/* An ACK that should not count, and then one that does. */
static void
ack_refused(struct probe *p, struct craft c)
{
    probe_post(p, 1, 1, false);
    say_answers(p, 1);
    c.psn = p->start;
    probe_send(p, c);
    say_completions(p, 0);
    probe_respond(p, AETH_ACK_UNLIMITED, 0);
    say_completions(p, 1);
}

static void
ack_of_other_address(struct probe *p)
{
    probe_reaches(p);
    probe_qp(p, PROBE_QP);
    struct craft c = craft_response(p, AETH_ACK_UNLIMITED, 0);
    c.from = PEER_FROM_OTHER_ADDRESS;
    ack_refused(p, c);
}

static void
ack_of_wrong_icrc(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    struct craft c = craft_response(p, AETH_ACK_UNLIMITED, 0);
    c.bad_icrc = true;
    ack_refused(p, c);
}

static void
ack_of_other_port(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    probe_post(p, 1, 1, false);
    say_answers(p, 1);
    struct craft c = craft_response(p, AETH_ACK_UNLIMITED, 0);
    c.from = PEER_FROM_OTHER_PORT;
    probe_send(p, c);
    say_completions(p, 1);
}

static void
nak_goes_back(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    probe_post(p, 4, 1, false);
    say_answers(p, 4);
    probe_respond(p, AETH_NAK_PSN_SEQ, 1);
    say_answers(p, 3);
    say_completions(p, 1);
}

static void
nak_in_message(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    probe_post(p, 1, 4, false);
    say_answers(p, 4);
    probe_respond(p, AETH_NAK_PSN_SEQ, 2);
    probe_listen(p, 2);
    for (unsigned i = 0; i < p->n_seen; i++) {
        say(p, "%s", roce_opcode_info(p->seen[i].opcode)->name);
    }
}

static void
second_nak(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    probe_post(p, 3, 1, false);
    say_answers(p, 3);
    probe_respond(p, AETH_NAK_PSN_SEQ, 1);
    say_answers(p, 2);
    probe_respond(p, AETH_NAK_PSN_SEQ, 1);
    say_answers(p, 0);
    probe_respond(p, AETH_RNR_AT_ONCE, 1);
    say_answers(p, 2);
}

static void
nak_after_progress(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    probe_post(p, 1, 6, false);
    say_answers(p, 6);
    probe_respond(p, AETH_NAK_PSN_SEQ, 1);
    say_answers(p, 5);
    probe_respond(p, AETH_NAK_PSN_SEQ, 3);
    say_answers(p, 0);
    probe_respond(p, AETH_ACK_UNLIMITED, 3);
    probe_respond(p, AETH_NAK_PSN_SEQ, 4);
    say_answers(p, 2);
}

#define RNR_LONG 27 /* 122.88 ms. */

static void
rnr_nak(struct probe *p)
{
    probe_qp(p, PROBE_QP);
    probe_post(p, 2, 1, true);
    say_answers(p, 2);
    uint64_t at = peer_now_us();
    probe_respond(p, AETH_RNR | RNR_LONG, 0);
    probe_listen(p, 2);
    if (p->n_seen && p->seen[0].at_us - at < roce_rnr_usec(RNR_LONG)) {
        say(p, "does not wait for the time");
    } else if (p->n_seen) {
        say(p, "waits for the time");
    }
    say(p, "%u packets again", p->n_seen);
}

/* How often the packet at the start PSN has come. */
static unsigned
n_rounds(const struct probe *p)
{
    unsigned n = 0;

    for (unsigned i = 0; i < p->n_seen; i++) {
        n += psn_eq(p->seen[i].psn, p->start);
    }
    return n;
}

static void
fatal(struct probe *p, uint8_t syndrome)
{
    probe_qp(p, PROBE_QP);
    probe_post(p, 3, 1, false);
    say_answers(p, 3);
    probe_respond(p, syndrome, 1);
    say_answers(p, 0);
    say_completions(p, 3);
    say_state(p);
}

static void
invalid_request_nak(struct probe *p)
{
    fatal(p, AETH_NAK_INVALID_REQ);
}

static void
access_nak(struct probe *p)
{
    fatal(p, AETH_NAK_REM_ACCESS);
}

static void
operation_nak(struct probe *p)
{
    fatal(p, AETH_NAK_REM_OP);
}

static void
retries_end(struct probe *p)
{
    struct probe_qp q = PROBE_QP;

    q.timeout = 14; /* 67 ms; hardware may take four times that. */
    q.retry_cnt = 2;
    probe_qp(p, q);
    probe_post(p, 1, 1, false);
    unsigned quiet = p->quiet_ms;
    p->quiet_ms = 600;
    probe_listen(p, 3);
    p->quiet_ms = quiet;
    say(p, "sent %u times", n_rounds(p));
    say_completions(p, 1);
    say_state(p);
}

static void
retries_without_end(struct probe *p)
{
    struct probe_qp q = PROBE_QP;

    q.timeout = 8; /* 1 ms. */
    probe_qp(p, q);
    probe_post(p, 1, 1, false);
    uint64_t end = peer_now_us() + 2000000;
    unsigned n = 0;
    struct seen s;
    while (n < 12 && peer_now_us() < end && peer_receive(&p->peer, &s, p->quiet_ms)) {
        n += s.dest_qpn == p->peer_qpn && psn_eq(s.psn, p->start);
    }
    say(p, n < 12 ? "sent %u times" : "sent %u times and more", n);
    say_completions(p, 0);
}

static void
rnr_retries_end(struct probe *p)
{
    struct probe_qp q = PROBE_QP;

    q.rnr_retry = 1;
    probe_qp(p, q);
    probe_post(p, 1, 1, true);
    say_answers(p, 1);
    for (int i = 0; i < 2; i++) {
        probe_respond(p, AETH_RNR_AT_ONCE, 0);
        say_answers(p, !i);
    }
    say_completions(p, 1);
    say_state(p);
}

static void
request_headers(struct probe *p)
{
    struct probe_qp q = PROBE_QP;

    q.traffic_class = 0x60 | ECN_ECT0;
    probe_qp(p, q);
    probe_post(p, 1, 3, false);
    probe_listen(p, 3);
    const struct seen *s = p->seen;
    if (p->n_seen != 3) {
        say(p, "%u packets", p->n_seen);
        return;
    }
    bool one_flow =
        s[0].sport == s[1].sport && s[1].sport == s[2].sport && s[0].flow_label == s[2].flow_label;
    say(p, "hop limit %d, traffic class 0x%02x, %s", s->hop_limit, s->traffic_class,
        one_flow ? "one source port and flow label" : "several flows");
    say(p, s[0].rkey == 0x1234 && !s[1].rkey && !s[2].rkey ? "RETH in the first only"
                                                           : "RETH elsewhere");
}

const struct check checks[] = {
    /* P1 */
    {"a WRITE with AckReq draws one ACK, of its PSN", "section 1 Responder, R2",
     "ACK +0 MSN 1, written", write_with_ack_req},
    {"a WRITE without AckReq draws nothing", "section 1 Responder, R7", "silence, written",
     write_without_ack_req},
    {"4 packets with AckReq on the last draw one ACK, of the last", "R2, R7",
     "ACK +3 MSN 1, written", last_asks},
    {"AckReq in the middle of a message draws an ACK", "R7 solicit",
     "ACK +0 MSN 0, ACK +1 MSN 0, ACK +2 MSN 1", each_asks},
    {"PSNs wrap in the middle of a message", "H8", "ACK +1 MSN 1, written", wraps},
    {"a duplicate without AckReq draws an ACK of the last PSN, and is not executed", "R2, H13",
     "ACK +2 MSN 3, written", duplicate},
    {"each packet of a message that comes again draws an ACK of the last PSN", "R6.4, H13",
     "ACK +2 MSN 1, ACK +2 MSN 1, ACK +2 MSN 1", duplicates_in_a_row},
    {"a duplicate WRITE of no bytes asks whether the receiver lives; it changes nothing",
     "R16, H44", "ACK +1 MSN 2, ACK +2 MSN 3", question_to_used},
    {"that question to a queue pair that has received nothing", "R16, H44",
     "ACK PSN 0xffffff MSN 0, ACK +0 MSN 1", question_to_fresh},
    {"a WRITE of no bytes at the expected PSN is executed, whatever its key; nobody is told",
     "R18, H46", "ACK +0 MSN 1, 0 completed, in RTS", write_of_no_bytes},
    /* P11 */
    {"a PSN ahead draws one NAK of the expected PSN, and what follows nothing", "R3, R14, H45, H47",
     "NAK 0x60 +0, silence, not written", gap},
    {"when the gap is filled, the next gap draws a NAK again", "R3, R14",
     "NAK 0x60 +0, ACK +0 MSN 1, NAK 0x60 +1", second_gap},
    {"duplicates draw ACKs also after a NAK", "R2, R18, H45",
     "ACK +0 MSN 1, NAK 0x60 +1, ACK +0 MSN 1, ACK +1 MSN 2", duplicate_after_nak},
    {"a SEND without a receive draws RNR, the next packet a NAK of the same PSN", "R3, H14",
     "RNR 0x2c +0, NAK 0x60 +0, ACK +0 MSN 1, 1 success", send_without_receive},
    {"a WRITE with immediate without a receive draws RNR, and is not executed", "R3, H14",
     "RNR 0x2c +0, not written, ACK +0 MSN 1, written, 1 success", write_imm_without_receive},
    {"a wrong rkey draws NAK 0x62, then silence", "R4, H7, H15",
     "NAK 0x62 +0, in error, silence, not written", wrong_rkey},
    {"a RETH of another length than the payload's draws NAK 0x61, then silence", "R4, H15",
     "NAK 0x61 +0, in error, silence, not written", wrong_length},
    {"a MIDDLE without a FIRST draws NAK 0x61, then silence", "R4, R17, H26",
     "NAK 0x61 +0, in error, silence, not written", middle_without_first},
    {"an ONLY in the middle of a message draws NAK 0x61, then silence", "R18, H46",
     "NAK 0x61 +1, in error, silence, not written", first_in_message},
    {"a READ where only WRITE is allowed draws NAK 0x61", "H17",
     "NAK 0x61 +0, in error, silence, not written", read_request},
    /* P21 */
    {"a wrong ICRC is dropped", "section 1 On receipt, H22", "silence, ACK +0 MSN 1", wrong_icrc},
    {"a request from another address than the peer's is dropped", "section 1 On receipt, H1",
     "silence, ACK +0 MSN 1", other_address},
    {"a request for an unknown queue pair is dropped", "section 1 On receipt",
     "silence, ACK +0 MSN 1", unknown_qpn},
    {"a request of another partition is dropped", "section 1 On receipt", "silence, ACK +0 MSN 1",
     unknown_pkey},
    {"a request of a limited member is taken", "section 1 On receipt", "ACK +0 MSN 1, ACK +0 MSN 1",
     limited_pkey},
    {"the UDP source port is not looked at", "section 1 On receipt, H32",
     "ACK +0 MSN 1, ACK +0 MSN 1", other_port},
    {"a UDP checksum is taken, as 0 is elsewhere", "section 1 On receipt",
     "ACK +0 MSN 1, ACK +0 MSN 1", udp_checksum},
    {"the hop limit is not looked at", "section 1 On receipt", "ACK +0 MSN 1, ACK +0 MSN 1",
     hop_limit_1},
    {"MigReq is not looked at", "section 1 On receipt", "ACK +0 MSN 1, ACK +0 MSN 1", no_mig_req},
    {"a request with CE draws no CNP", "section 1 Around it, H53", "ACK +0 MSN 1",
     congestion_experienced},
    /* P31 */
    {"a CNP draws nothing and changes nothing", "section 1 Around it, H55",
     "silence, ACK +0 MSN 1, in RTS", cnp},
    {"an answer's hop limit is 64, its traffic class the queue pair's, not the request's",
     "H19, R19", "hop limit 64, traffic class 0x62, P_Key 0xffff", answer_headers},
    {"all answers are of one flow", "H32",
     "4 answers, one source port of 0xc000 or above, one flow label", answer_flow},
    {"AckReq is on the last packet and every 66th", "section 1 Requester, R7",
     "data +0..+99 AckReq +65 AckReq +99", ack_req_pattern},
    {"at most 129 packets are in flight", "section 1 Requester, section 5",
     "129 packets, after an ACK of 10 10 more", window},
    {"an ACK completes all messages up to its PSN", "section 1 Requester, R6",
     "data +0..+2 AckReq +0 AckReq +1 AckReq +2, silence, 3 success", cumulative_ack},
    {"an ACK in the middle of a message completes nothing", "R6",
     "data +0..+3 AckReq +3, silence, 0 completed, 1 success", ack_in_message},
    {"an ACK of a PSN that was never sent completes the work", "R5, H28, H43",
     "data +0 AckReq +0, silence, 1 success, in RTS", ack_beyond},
    {"an ACK or NAK below what is acknowledged is ignored", "section 1 Requester, R3",
     "data +0..+2 AckReq +0 AckReq +1 AckReq +2, silence, 2 success", ack_below},
    {"the MSN of an ACK is not read", "H18", "data +0 AckReq +0, 1 success", any_msn},
    /* P41 */
    {"an ACK from another address than the peer's is dropped", "section 1 On receipt, H19",
     "data +0 AckReq +0, 0 completed, 1 success", ack_of_other_address},
    {"an ACK with a wrong ICRC is dropped", "section 1 On receipt, H22",
     "data +0 AckReq +0, 0 completed, 1 success", ack_of_wrong_icrc},
    {"an ACK from another UDP source port counts", "section 1 On receipt, H32",
     "data +0 AckReq +0, 1 success", ack_of_other_port},
    {"a NAK completes what is below it, and has all from it on sent again", "R3, R6, H11",
     "data +0..+3 AckReq +0 AckReq +1 AckReq +2 AckReq +3, data +1..+3 AckReq +1 AckReq +2 AckReq +3, "
     "1 success",
     nak_goes_back},
    {"going back into a message does not repeat its RETH", "section 1 Requester, R17",
     "data +0..+3 AckReq +3, WRITE_MIDDLE, WRITE_LAST", nak_in_message},
    {"a second NAK without progress is ignored, an RNR NAK is not", "R14, H47",
     "data +0..+2 AckReq +0 AckReq +1 AckReq +2, data +1..+2 AckReq +1 AckReq +2, silence, "
     "data +1..+2 AckReq +1 AckReq +2",
     second_nak},
    {"after a NAK further ones are ignored until an ACK has come", "R6, section 1 Requester",
     "data +0..+5 AckReq +5, data +1..+5 AckReq +5, silence, data +4..+5 AckReq +5",
     nak_after_progress},
    {"an RNR NAK has all from its PSN on sent again after its time", "section 1 Requester, H14",
     "data +0..+1 AckReq +0 AckReq +1, waits for the time, 2 packets again", rnr_nak},
    {"NAK 0x61 completes what is below it, and fails the rest", "R4, R12, H15",
     "data +0..+2 AckReq +0 AckReq +1 AckReq +2, silence, 1 success, 1 remote invalid request, "
     "1 flushed, in error",
     invalid_request_nak},
    {"NAK 0x62 likewise", "R4, R12, H15",
     "data +0..+2 AckReq +0 AckReq +1 AckReq +2, silence, 1 success, 1 remote access error, "
     "1 flushed, in error",
     access_nak},
    /* P51 */
    {"NAK 0x63 likewise", "R4, R12, H16",
     "data +0..+2 AckReq +0 AckReq +1 AckReq +2, silence, 1 success, 1 remote operation error, "
     "1 flushed, in error",
     operation_nak},
    {"after retry_cnt timeouts the work fails", "section 5",
     "sent 3 times, 1 retry exceeded, in error", retries_end},
    {"retry_cnt 7 is for ever", "section 1 Requester, section 5, H16",
     "sent 12 times and more, 0 completed", retries_without_end},
    {"after rnr_retry RNR NAKs the work fails", "section 5",
     "data +0 AckReq +0, data +0 AckReq +0, silence, 1 RNR retry exceeded, in error",
     rnr_retries_end},
    {"a message is one flow of hop limit 64 and the queue pair's traffic class; RETH in its first",
     "section 1 Requester, H19, H32",
     "hop limit 64, traffic class 0x62, one source port and flow label, RETH in the first only",
     request_headers},
    {"an address outside of the region draws NAK 0x62, then silence", "R4, H7, H15",
     "NAK 0x62 +0, in error, silence, not written", wrong_address},
};
const unsigned n_checks = sizeof checks / sizeof *checks;
