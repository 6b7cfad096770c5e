/* SPDX-License-Identifier: Apache-2.0
 *
 * RDMA-CM connections of a node: programs at its hosts, connected with the Proxies of groups.
 *
 * A *passive* connection begins with a program's rdma_connect() to a Proxy: its REQ waits for a
 * decision, which comes with the configuration, as everything does.  An *active* one begins with
 * the configuration: the node connects, from the Proxy, to a program that listens, again and again
 * until that answers.
 *
 * The configuration is the list of all connections that the registry has a row for.  What the
 * machine finds out goes to the registry (cm_conns_get()), and comes back as 'known' in the
 * configuration: so a node that is started again goes on with connections whose programs notice
 * nothing.
 *
 * Pure and single-threaded: messages in, messages out; 'now' in microseconds.  Nothing that a
 * message says makes it allocate without bound, or send more than one message.
 */
#ifndef LIB_CM_CONN_H
#define LIB_CM_CONN_H 1

#include "lib/cm.h"
#include "lib/words.h"

enum cm_role {
    CM_PASSIVE, /* the program connects. */
    CM_ACTIVE,  /* the program listens. */
};
WORDS_DECLARE(cm_role, enum cm_role);

enum cm_state {
    CM_REQUESTED,  /* passive: a REQ is there and not decided. */
    CM_ACCEPTED,   /* passive: REP sent; no RTU, no packet yet. */
    CM_CONNECTING, /* active: REQ sent, no answer yet. */
    CM_REFUSED,    /* active: a REJ came; tried again after a pause, until a REP comes. */
    CM_ANSWERED,   /* active: a REP came.  RTU is sent when the data path is ready. */
    CM_ESTABLISHED,
    CM_CLOSING, /* DREQ sent. */
    CM_ENDED,   /* no more to be done but to answer what is repeated. */
};
WORDS_DECLARE(cm_state, enum cm_state);

/* Why a connection has ended. */
enum cm_cause {
    CM_NOT_ENDED,
    CM_BY_DREQ,     /* the program disconnected, or died: its kernel says so. */
    CM_BY_REJ,      /* its kernel gave up what it had answered or asked for. */
    CM_BY_DECISION, /* rejected or closed by the configuration. */
    CM_BY_SILENCE,  /* no RTU, no REQ any more before the decision, no answer to keepalive. */
    CM_BY_NEW_REQ,  /* the same program's queue pair asks again: the connection before is dead. */
};
WORDS_DECLARE(cm_cause, enum cm_cause);

/* What a passive connection's REQ is answered with. */
enum cm_decision {
    CM_UNDECIDED,
    CM_ACCEPT, /* of an active one: whoever sets 'ready' need not wait for a tree. */
    CM_REJECT,
    CM_CLOSE, /* also of an active connection: it is over, the program is told by a DREQ. */
};
WORDS_DECLARE(cm_decision, enum cm_decision);

/* What a node has found out about a connection.  Goes to the registry, and comes back. */
struct cm_known {
    enum cm_state state;
    enum cm_cause cause;
    uint32_t remote_id;   /* the host's communication ID; 0: not known. */
    uint64_t tid;         /* of the REQ. */
    uint32_t qpn;         /* the program's queue pair. */
    psn_t psn;            /* what that expects first. */
    uint8_t mtu_code;     /* passive: of the REQ. */
    uint16_t port;        /* passive: service port that it asked for. */
    uint16_t reason;      /* of the last REJ that came; 0: none has. */
    uint16_t private_len; /* of the REQ (up to CM_REQ_PRIVATE_LEN), REP or REJ that came last. */
    uint8_t private_data[CM_PRIVATE_SIZE];
};

/* A connection as configured. */
struct cm_conn_config {
    /* This side's communication ID, unique in the node: the connection's name.  Passive ones are
     * given theirs by cm_conns_input(), with the highest bit set; active ones have it not. */
    uint32_t id;
    enum cm_role role;
    struct in6_addr proxy, host;
    enum cm_decision decision;
    uint16_t port; /* active: that the program listens at. */
    /* Active: of the REQ.  Passive, CM_ACCEPT: of the REP.  They do not change any more once that
     * may have been sent. */
    uint32_t qpn;        /* the Designated QPN. */
    psn_t psn;           /* that the program's queue pair is to begin with. */
    uint32_t mtu;        /* active: path MTU in bytes. */
    uint8_t ack_timeout; /* active: code. */
    /* Active: RTU may be sent.  Not before the registry has the REP (known.remote_id): a node that
     * had sent RTU and forgot the REP would find a kernel that answers neither REQ nor RTU. */
    bool ready;
    /* Passive, established: after so long without a word of the program or of its kernel, that is
     * asked by REPs, which it answers by RTU as long as it has the connection; after three times
     * that without an answer it has ended.  0: never. */
    uint32_t keepalive_msec;
    uint16_t reason;      /* CM_REJECT. */
    uint16_t private_len; /* of the REQ, REP or REJ that is sent. */
    uint8_t private_data[CM_PRIVATE_SIZE];
    /* What the registry has of an earlier life of the node.  Looked at only if the machine does
     * not have the connection. */
    struct cm_known known;
};

/* A message that is to be sent. */
typedef void cm_send_func(void *aux, const struct in6_addr *proxy, const struct in6_addr *host,
                          const struct cm_msg *);

struct cm_conns;

/* 'first_id' is where passive connections' IDs begin: random, so that those of an earlier life do
 * not come again soon. */
struct cm_conns *cm_conns_create(uint32_t first_id, cm_send_func *, void *aux);
void cm_conns_destroy(struct cm_conns *);

/* Applies all of the configuration: unknown ids are made (or restored from 'known'), those that
 * are not there any more are forgotten without a word, decisions are carried out.  A passive
 * connection that the registry never had stays, until CM_LINGER_USEC after it has ended. */
void cm_conns_configure(struct cm_conns *, const struct cm_conn_config *, size_t n, uint64_t now);

/* A message from 'host' to 'proxy'.  DROP_none, or why nothing here takes it: before the first
 * configuration, which may have an earlier life's connections, that is so for all of them. */
enum drop_reason cm_conns_input(struct cm_conns *, const struct in6_addr *proxy,
                                const struct in6_addr *host, const struct cm_msg *, uint64_t now);

/* A data packet came from the queue pair 'qpn' of 'host' for 'proxy': as good as an RTU. */
void cm_conns_traffic(struct cm_conns *, const struct in6_addr *proxy, const struct in6_addr *host,
                      uint32_t qpn);

/* When cm_conns_timer() wants to be called; UINT64_MAX: never. */
uint64_t cm_conns_deadline(const struct cm_conns *);
void cm_conns_timer(struct cm_conns *, uint64_t now);

/* For the registry and for display. */
struct cm_conn_info {
    uint32_t id;
    enum cm_role role;
    struct in6_addr proxy, host;
    bool configured; /* the configuration has it, so the registry has a row. */
    const struct cm_known *known;
};
size_t cm_conns_n(const struct cm_conns *);
void cm_conns_get(const struct cm_conns *, size_t i, struct cm_conn_info *);
/* Another number after each change of what cm_conns_get() says. */
uint64_t cm_conns_version(const struct cm_conns *);

/* Limits. */
/* Passive ones that the registry has not, has not decided on, or has not deleted. */
#define CM_CONNS_PER_HOST 256
/* REQs of new connections that a host may make in a row, and what each costs it of that. */
#define CM_REQS_AT_ONCE   256
#define CM_REQ_USEC       20000
#define CM_RETRY_USEC     500000  /* between two repetitions of a message. */
#define CM_MAX_RETRY_USEC 4000000 /* ... of a REQ, and of a REP whose receiver sends MRAs. */
#define CM_RETRIES        15      /* of REP and DREQ, before the connection ends. */
#define CM_PAUSE_USEC     1000000 /* before an active connection is tried again after a REJ. */
#define CM_PROBES         12      /* of keepalive: REPs in three times its time. */
/* Who has not been decided on and repeats no REQ is gone: a kernel does so every 6 s, or every 10 s
 * after the MRAs of here. */
#define CM_REQUEST_USEC   120000000
#define CM_LINGER_USEC    60000000 /* how long an ended connection's late REQs are known. */

#endif /* lib/cm-conn.h */
