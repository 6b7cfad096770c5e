/* SPDX-License-Identifier: Apache-2.0
 *
 * The communication manager of a host, as Linux has it (drivers/infiniband/core/cm.c, and what
 * cma.c makes of it for librdmacm's programs): what it sends, repeats, and takes for a repetition or
 * for a stale connection.
 *
 * Programs are the caller's: they hear events, and answer when they like.
 */
#ifndef TESTS_MODEL_CM_KERNEL_H
#define TESTS_MODEL_CM_KERNEL_H 1

#include "lib/cm.h"

enum cm_kernel_state {
    KERNEL_IDLE,
    KERNEL_REQ_SENT,
    KERNEL_MRA_REQ_RCVD,
    KERNEL_MRA_REQ_SENT, /* a REQ is there; the program is asked. */
    KERNEL_REP_SENT,
    KERNEL_MRA_REP_RCVD,
    KERNEL_MRA_REP_SENT, /* a REP is there; the program is asked. */
    KERNEL_ESTABLISHED,
    KERNEL_DREQ_SENT,
    KERNEL_DREQ_RCVD,
    KERNEL_TIMEWAIT,
};

/* What a program hears. */
enum cm_kernel_event {
    KERNEL_REQUEST,  /* to a listener; accept or reject. */
    KERNEL_RESPONSE, /* go on with cm_kernel_confirm(). */
    KERNEL_CONNECTED,
    KERNEL_REJECTED,
    KERNEL_UNREACHABLE,
    KERNEL_DISCONNECTED,
};

#define KERNEL_MAX_IDS 64

/* A connection. */
struct cm_kernel_id {
    bool used;
    enum cm_kernel_state state;
    unsigned program; /* the caller's. */
    uint32_t local_id, remote_id;
    struct in6_addr proxy;
    uint32_t local_qpn, remote_qpn;
    uint64_t tid, remote_guid;
    bool in_tables; /* remote_guid with remote_id and with remote_qpn: it is not stale. */
    unsigned timeout_msec, max_retries;
    uint8_t av_timeout;
    uint32_t life; /* another number for each use. */
    /* What is repeated until it is answered. */
    struct cm_msg msg;
    bool waits;
    unsigned retries_left, wait_msec;
    uint64_t deadline;
};

struct cm_kernel {
    struct in6_addr addr;
    uint64_t guid;
    uint32_t next_id, n_lives;
    struct cm_kernel_id ids[KERNEL_MAX_IDS];
    bool listens[UINT8_MAX]; /* by port. */
    void *aux;
    void (*send)(void *aux, struct cm_kernel *, const struct in6_addr *proxy,
                 const struct cm_msg *);
    void (*event)(void *aux, struct cm_kernel *, struct cm_kernel_id *, enum cm_kernel_event);
    /* A message has been repeated as often as it may, for nothing. */
    void (*gave_up)(void *aux, struct cm_kernel *, const struct cm_kernel_id *);
};

/* The others of 'kernel' are set. */
void cm_kernel_boot(struct cm_kernel *, uint32_t first_id);

struct cm_kernel_id *cm_kernel_connect(struct cm_kernel *, const struct in6_addr *proxy,
                                       uint16_t port, uint32_t qpn, unsigned program, uint64_t now);
/* 'len' bytes of private data, up to CM_REP_PRIVATE_LEN. */
void cm_kernel_accept(struct cm_kernel *, struct cm_kernel_id *, uint32_t qpn, const void *data,
                      uint16_t len, uint64_t now);
void cm_kernel_reject(struct cm_kernel *, struct cm_kernel_id *);
void cm_kernel_confirm(struct cm_kernel *, struct cm_kernel_id *);
/* rdma_disconnect(). */
void cm_kernel_disconnect(struct cm_kernel *, struct cm_kernel_id *, uint64_t now);
/* rdma_destroy_id(), and what is done for a program that is killed. */
void cm_kernel_destroy(struct cm_kernel *, struct cm_kernel_id *);

void cm_kernel_input(struct cm_kernel *, const struct in6_addr *proxy, const struct cm_msg *,
                     uint64_t now);
uint64_t cm_kernel_deadline(const struct cm_kernel *);
void cm_kernel_timer(struct cm_kernel *, uint64_t now);

#endif /* tests/model/cm-kernel.h */
