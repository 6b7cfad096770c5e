/* SPDX-License-Identifier: Apache-2.0
 *
 * A model of an RC endpoint: one queue pair as Linux' rdma_rxe has it, with its
 * peculiarities (docs/draft-notes.md, section 1), not as the specification
 * would like it.
 *
 * Pure: IPv6 packets in and out as bytes, the time an argument (microseconds on
 * a monotonic scale), nothing random.  No link layer: whoever runs it adds what
 * the link needs and answers neighbour discovery.
 *
 * What is modelled:
 * - receipt: the checks of an unmodified endpoint, each failure a silent drop;
 * - responder: SEND and WRITE, with or without immediate; ACKs, sequence, RNR
 *   and fatal NAKs; a region with its key;
 * - requester: the same operations, go-back-N, retry counters, both timers;
 * - what rxe does not have, if asked for: a NIC that makes CNPs, and one that obeys them.
 *
 * What is not: READ, ATOMIC, UD and UC, several regions, more than one SGE.
 */
#ifndef TESTS_MODEL_RC_ENDPOINT_H
#define TESTS_MODEL_RC_ENDPOINT_H 1

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/wire.h"

/* rxe: RXE_MAX_UNACKED_PSNS is 128 and compared with '>'. */
#define RC_MAX_IN_FLIGHT 129
/* Work requests, and receive buffers, outstanding at a time. */
#define RC_QUEUE_SIZE    256
/* Largest packet that an endpoint sends: headers, path MTU 4096, pad, ICRC. */
#define RC_MAX_PACKET    4224
/* retry_cnt and rnr_retry: for ever. */
#define RC_RETRY_FOREVER 7

enum rc_op { RC_OP_SEND, RC_OP_SEND_IMM, RC_OP_WRITE, RC_OP_WRITE_IMM };

/* A work request.  'data' must stay until it is completed. */
struct rc_wr {
    uint64_t id;
    enum rc_op op;
    const uint8_t *data;
    uint32_t len;
    uint64_t va; /* WRITE only, like rkey. */
    uint32_t rkey;
};

enum rc_status {
    RC_WC_SUCCESS,
    RC_WC_RETRY_EXC, /* retry_cnt timeouts or sequence NAKs without progress. */
    RC_WC_RNR_RETRY_EXC,
    RC_WC_REM_INV_REQ, /* NAK 0x61, 0x62, 0x63. */
    RC_WC_REM_ACCESS,
    RC_WC_REM_OP,
    RC_WC_BAD_RESP, /* a reserved syndrome. */
    RC_WC_FLUSHED,  /* the queue pair was in error already. */
};

struct rc_endpoint;

/* Both may be called from rc_input(), rc_timer() and rc_post(). */
struct rc_ops {
    /* One IPv6 packet leaves; 'ip' is valid during the call. */
    void (*tx)(void *aux, const uint8_t *ip, size_t len);
    /* A work request is done; in order of posting.  NULL: nobody asks. */
    void (*complete)(void *aux, uint64_t id, enum rc_status);
    void *aux;
};

struct rc_config {
    struct in6_addr own, peer;
    uint32_t qpn;
    uint32_t dest_qpn;
    psn_t start_psn; /* in both directions. */
    uint32_t mtu;
    uint64_t timeout_usec; /* 0: never. */
    uint8_t retry_cnt;
    uint8_t rnr_retry;
    uint8_t min_rnr_timer; /* code. */
    uint64_t gap_usec;     /* between two request packets: the speed of the link. */
    bool ecn;              /* packets say ECT(0), not Not-ECT. */
    /* A request that comes with CE draws a CNP, at most one in this time; 0: never. */
    uint32_t cnp_usec;
    /* A CNP halves the speed, which grows by an eighth in each such time without one; 0: it means
     * nothing. */
    uint32_t obey_usec;
    /* Region that WRITEs reach; length 0: none. */
    uint8_t *region;
    uint64_t va;
    uint64_t region_len;
    uint32_t rkey;
};

/* The queue pair is ready to send at once. */
struct rc_endpoint *rc_create(const struct rc_config *, const struct rc_ops *);
void rc_destroy(struct rc_endpoint *);

/* False if the queue is full. */
bool rc_post(struct rc_endpoint *, const struct rc_wr *, uint64_t now);
/* A buffer for one SEND, or for one WRITE with immediate, which leaves it as it
 * is.  A packet that needs one and finds none draws an RNR NAK. */
bool rc_post_recv(struct rc_endpoint *, uint8_t *buffer, size_t size);

/* A packet from the link, IPv6 header first; bytes behind its end are ignored. */
void rc_input(struct rc_endpoint *, const uint8_t *ip, size_t len, uint64_t now);

/* When rc_timer() wants to be called; UINT64_MAX: never. */
uint64_t rc_deadline(const struct rc_endpoint *);
void rc_timer(struct rc_endpoint *, uint64_t now);

/* The next request that is in sequence draws this fatal NAK (0x61 to 0x63). */
void rc_fail_next(struct rc_endpoint *, uint8_t syndrome);

/* From now on only one request that is in sequence is accepted in so many microseconds; 0: all are.
 * Each of the others draws RNR NAKs of two times in turn. */
#define RC_SLOW_RNRS 16
void rc_slow(struct rc_endpoint *, uint64_t usec);
/* Is that UINT64_MAX: nothing is accepted? */
bool rc_takes_nothing(const struct rc_endpoint *);

struct rc_info {
    /* Responder: next PSN, messages done, whether it has said that it misses the next PSN (and is
     * silent until that comes), and whether it has failed. */
    psn_t expected;
    uint32_t msn;
    bool missing;
    bool failed;
    uint64_t n_requests;   /* request packets that passed the checks on receipt; of them: */
    uint64_t n_duplicates; /* behind the next PSN, */
    uint64_t n_ahead;      /* and beyond it. */
    uint64_t n_acks;       /* sent; */
    uint64_t n_naks;       /* likewise, RNR included. */
    /* Requester: lowest PSN not acknowledged, next to be sent, and whether it has failed. */
    psn_t una, next;
    bool error;
    bool gone_back; /* it ignores sequence NAKs until it has got further, because it went back... */
    psn_t back_to;  /* ...to here. */
    size_t n_outstanding; /* work requests. */
    /* Everything outstanding is acknowledged, but the last acknowledgement came
     * while the packets before it were being sent again, and did not complete
     * the request: rxe then waits for a duplicate of it and has no timer left
     * that would ask for one.  (rxe_comp.c: COMPST_WRITE_SEND completes only what is
     * 'pending', and goes to COMPST_UPDATE_COMP otherwise, which raises comp.psn all
     * the same; COMPST_EXIT does not set the timer and COMPST_ERROR_RETRY does not
     * go back unless req.psn is above comp.psn.) */
    bool stuck;
    uint64_t n_sent;         /* request packets, repeated ones included. */
    uint64_t n_retries;      /* go-back-N. */
    uint64_t n_timeouts;     /* the timer was over, which mostly makes it go back, too. */
    uint64_t n_responses;    /* that passed the checks on receipt. */
    uint64_t n_dropped;      /* packets that failed a check on receipt; of them: */
    uint64_t n_wrong_source; /* not from the peer. */
    uint64_t n_ce;           /* of n_requests: marked. */
    uint64_t n_cnps_made, n_cnps;
    uint64_t gap_usec; /* now. */
};
void rc_get_info(const struct rc_endpoint *, struct rc_info *);
/* Of these only the responder's next PSN. */
psn_t rc_expected(const struct rc_endpoint *);

#endif /* tests/model/rc-endpoint.h */
