/* SPDX-License-Identifier: Apache-2.0
 *
 * RDMA-CM connections: what the files of lib/cm-conn share.
 *
 *   cm-conn-set.c    which connections there are
 *   cm-conn-say.c    the messages of a connection
 *   cm-conn.c        what happens to it
 */
#ifndef LIB_CM_CONN_IMPL_H
#define LIB_CM_CONN_IMPL_H 1

#include "lib/cm-conn.h"
#include "lib/deadlines.h"
#include "lib/hash-index.h"

/* How a connection counts for its host: passive ones that the registry has not, or has not decided
 * on, or has not deleted though they have ended. */
enum cm_counted { CM_COUNTS_NOT, CM_COUNTS_OPEN, CM_COUNTS_ENDED, N_CM_COUNTED };

/* Each host that has ever had a passive connection: no more than the node has ports for. */
struct cm_host {
    struct in6_addr addr;
    struct hash_entry by_addr;
    uint64_t busy_until; /* with REQs at a rate of one in CM_REQ_USEC. */
    size_t n[N_CM_COUNTED];
};

struct cm_conn {
    struct cm_conn_config config; /* 'known' is not looked at. */
    struct cm_known known;

    bool registered;    /* the configuration has it. */
    uint64_t in_config; /* the last one that had it. */
    size_t list_pos;    /* index in the list, plus 1; 0: it is not shown any more. */
    enum cm_counted counted;
    struct hash_entry by_id;
    struct hash_entry by_remote; /* proxy, host, remote_id; active: 0. */
    struct hash_entry by_qp;     /* not ended: proxy, host, qpn. */

    struct deadline deadline;
    uint64_t interval;   /* of what is repeated. */
    unsigned int n_said; /* repetitions since something was heard, with the first. */
    bool heard;          /* since the keepalive's last time. */
    uint32_t refused_id; /* active: ID at the host of what it refused last; 0: not known. */
};

struct cm_conns {
    cm_send_func *send;
    void *aux;
    uint32_t next_id;
    uint64_t version;
    uint64_t n_configs;
    size_t n; /* all of them. */
    struct cm_conn **list;
    size_t n_listed, list_size;
    struct hash_index by_id, by_remote, by_qp, hosts;
    struct deadlines deadlines;
};

/* Set. */

/* NULL: there is none. */
struct cm_conn *cm_conn_by_id(const struct cm_conns *, uint32_t id);
/* Passive, of a REQ of this ID and transaction. */
struct cm_conn *cm_conn_by_req(const struct cm_conns *, const struct in6_addr *proxy,
                               const struct in6_addr *host, uint32_t remote_id, uint64_t tid);
/* Passive and not ended, of any REQ of this ID. */
struct cm_conn *cm_conn_by_remote(const struct cm_conns *, const struct in6_addr *proxy,
                                  const struct in6_addr *host, uint32_t remote_id);
/* Active: is there another one to the same program, in whose place this one comes? */
bool cm_conn_has_predecessor(const struct cm_conns *, const struct cm_conn *);
/* Not ended. */
struct cm_conn *cm_conn_by_qp(const struct cm_conns *, const struct in6_addr *proxy,
                              const struct in6_addr *host, uint32_t qpn);

/* May the host begin one more now?  It may not have too many that the registry has not, nor begin
 * them too fast: each is work for the registry, however soon it is decided.  If so that is noted. */
bool cm_conns_may_begin(struct cm_conns *, const struct in6_addr *host, uint64_t now);
/* An ID for a passive connection. */
uint32_t cm_conns_new_id(struct cm_conns *);
/* A connection that nothing has happened to, shown and not registered.  No other has its ID. */
struct cm_conn *
cm_conn_make(struct cm_conns *, const struct cm_conn_config *, const struct cm_known *);
void cm_conn_forget(struct cm_conns *, struct cm_conn *);
/* 'known' or 'registered' has changed: finds it by it, counts it, shows it. */
void cm_conn_changed(struct cm_conns *, struct cm_conn *);
/* Its configuration has changed: counts it. */
void cm_conn_count(struct cm_conns *, struct cm_conn *);
/* It is not shown any more; recognised it still is. */
void cm_conn_hide(struct cm_conns *, struct cm_conn *);
/* More that have ended than are to be remembered? */
bool cm_conn_is_too_many(const struct cm_conns *, const struct cm_conn *);
/* UINT64_MAX: never. */
void cm_conn_set_timer(struct cm_conns *, struct cm_conn *, uint64_t when);

/* Messages. */

void cm_say_req(struct cm_conns *, const struct cm_conn *);
void cm_say_rep(struct cm_conns *, const struct cm_conn *);
void cm_say_rtu(struct cm_conns *, const struct cm_conn *);
void cm_say_dreq(struct cm_conns *, const struct cm_conn *);
/* More time is needed for the answer to a REQ or REP. */
void cm_say_mra(struct cm_conns *, const struct cm_conn *, enum cm_about);
/* A passive connection's REQ is refused by the configuration. */
void cm_say_rejected(struct cm_conns *, const struct cm_conn *);

/* To who sent 'm', whether there is a connection or not. */
void cm_answer_drep(struct cm_conns *, const struct in6_addr *proxy, const struct in6_addr *host,
                    const struct cm_msg *m);
void cm_answer_rej(struct cm_conns *, const struct in6_addr *proxy, const struct in6_addr *host,
                   const struct cm_msg *m, enum cm_rej_reason);
void cm_answer_sidr(struct cm_conns *, const struct in6_addr *proxy, const struct in6_addr *host,
                    const struct cm_msg *m);

#endif /* lib/cm-conn-impl.h */
