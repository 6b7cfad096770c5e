/* SPDX-License-Identifier: Apache-2.0
 *
 * A behaviour is tried on a queue pair of its own.  What is observed is put into words, always the
 * same for the same behaviour, so that "as expected" is that two texts are equal.
 *
 * Texts of packets:
 *
 *     ACK +0 MSN 1          an ACK of the start PSN; +N and -N are relative to that
 *     NAK 0x60 +2           a NAK; RNR 0x2c +0: with the timer's code in its low 5 bits
 *     data +0..+3           request packets; with AckReq at +3
 *
 * After an error nothing more is done: calls return at once, and the check's verdict is
 * "cannot tell".
 */
#ifndef BENCH_CASTPROBE_PROBE_H
#define BENCH_CASTPROBE_PROBE_H 1

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "bench/castprobe/control.h"
#include "bench/castprobe/peer.h"

#define PROBE_MAX_SEEN 512

struct probe {
    struct control control;
    struct peer peer;
    uint16_t port;     /* of the target. */
    uint32_t mtu;      /* path MTU of queue pairs. */
    unsigned quiet_ms; /* so long without a packet is silence. */

    /* The queue pair at hand. */
    uint32_t qpn;      /* of the device, */
    uint32_t peer_qpn; /* and ours: another one for each. */
    uint32_t rkey;
    uint64_t va;
    psn_t start;

    struct seen seen[PROBE_MAX_SEEN]; /* what came last. */
    unsigned n_seen;

    FILE *out; /* what was observed. */
    bool said; /* something is in it. */
    bool gone; /* the other end is. */
    char error[512];
};

struct probe_qp {
    uint32_t start_psn;
    uint8_t timeout, retry_cnt, rnr_retry, traffic_class;
};
#define PROBE_START_PSN     0x100000
#define PROBE_MIN_RNR_TIMER 12
/* No timer of the device disturbs. */
#define PROBE_QP            ((struct probe_qp){PROBE_START_PSN, 0, 7, 7, 0})

/* Takes 'request'; returns the answer, a new reference, or NULL after an error. */
json_t *probe_ask(struct probe *, json_t *request);

void probe_qp(struct probe *, struct probe_qp);
void probe_recv(struct probe *, int n);
/* The device writes, or sends, 'n' messages of 'packets' packets. */
void probe_post(struct probe *, int n, int packets, bool is_send);

/* Packets for the queue pair: a WRITE ONLY of 64 bytes of 0xa1 to the begin of its buffer, with
 * AckReq; another opcode; an ACK or NAK.  PSNs are relative to the start. */
#define PROBE_LEN  64
#define PROBE_FILL 0xa1
struct craft craft_write(const struct probe *, int psn);
struct craft craft_request(const struct probe *, uint8_t opcode, int psn);
struct craft craft_response(const struct probe *, uint8_t syndrome, int psn);
/* 'n' packets of a WRITE from the PSN on, all full.  AckReq is on the last only. */
void probe_send_message(struct probe *, int psn, int n);
void probe_send(struct probe *, struct craft);
/* An ACK or NAK. */
void probe_respond(struct probe *, uint8_t syndrome, int psn);

/* Takes in what the device sends: waits for 'n' packets, then until there is silence. */
void probe_listen(struct probe *, unsigned n);

/* An error if packets from the other address do not reach the target's machine: silence would say
 * nothing of its device. */
void probe_reaches(struct probe *);

/* Put into words: */
void __attribute__((format(printf, 2, 3))) say(struct probe *, const char *format, ...);
/* what comes in; */
void say_answers(struct probe *, unsigned n);
/* whether the buffer has PROBE_LEN bytes of PROBE_FILL at 'ofs' ("written"); */
void say_written(struct probe *, int ofs);
/* the statuses of completed work, of which 'n' are waited for; */
void say_completions(struct probe *, int n);
/* and the state of the queue pair. */
void say_state(struct probe *);

/* Behaviours. */
struct check {
    const char *statement;
    const char *relied_on; /* where docs/draft-notes.md does. */
    const char *expected;
    void (*run)(struct probe *);
};
/* P1 is the first.  New ones come at the end, so that numbers keep their meaning. */
extern const struct check checks[];
extern const unsigned n_checks;

#endif /* bench/castprobe/probe.h */
