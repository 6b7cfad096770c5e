/* SPDX-License-Identifier: Apache-2.0
 *
 * librocecast: how a program takes part in a group.  Reference: docs/api.md.
 *
 * Functions that return int return 0 or a positive errno, except those named _fd.
 * After an errno rocecast_error() says what was wrong.  Time-outs are in
 * milliseconds; a negative one means for ever.
 *
 * All functions may be called from any thread at any time, except that nobody
 * may use a handle while or after it is closed, and that one thread at a time
 * uses a request.  Functions with a time-out block, unless their name ends with
 * _start; those without do not, except rocecast_request_wait().  No function is
 * a cancellation point.
 *
 * The library has one thread of its own while a handle is open, with all
 * signals blocked.  It installs no signal handler, starts no process, registers
 * nothing for the end of the process, and writes nothing to standard output,
 * standard error or syslog.  After fork() the child cannot use the parent's
 * handles (EPERM), and can open its own only if the parent had none open.
 */
#ifndef ROCECAST_H
#define ROCECAST_H 1

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ibv_context;
struct ibv_mr;
struct ibv_qp;

struct rocecast;         /* a connection to the registry. */
struct rocecast_group;   /* a group, as one program sees it. */
struct rocecast_request; /* something that was started. */

#define ROCECAST_NAME_SIZE 64
#define ROCECAST_TEXT_SIZE 256

/* Why this thread's last call failed: a sentence, valid until its next call. */
const char *rocecast_error(void);

/*
 * The registry.
 */

/* Connects to the registry 'db', e.g. "unix:/run/rocecast/db.sock" or "tcp:192.0.2.1:6640".  NULL
 * means $ROCECAST_DB, or else db.sock in $ROCECAST_RUNDIR, or else db.sock in /run/rocecast.  For
 * "ssl:192.0.2.1:6640", $ROCECAST_PRIVATE_KEY, $ROCECAST_CERTIFICATE and $ROCECAST_CA_CERT name PEM
 * files.  A connection that breaks later is made again by itself. */
int rocecast_open(const char *db, int timeout_ms, struct rocecast **);
/* Closes the connection, its groups and their requests.  Registrations stay.  NULL is ignored. */
void rocecast_close(struct rocecast *);

int rocecast_host_address(struct rocecast *, const char *host, int timeout_ms, struct in6_addr *);

/*
 * Groups.
 */

/* The attributes of a group's epoch.  Later versions may add members at the end. */
struct rocecast_epoch {
    size_t size;              /* set by the caller to sizeof. */
    uint32_t epoch;           /* number of the epoch, from 1. */
    uint32_t designated_qpn;  /* QPN of the peer. */
    struct in6_addr proxy;    /* address of the peer. */
    uint32_t start_psn;       /* both ways. */
    uint32_t mtu;             /* path MTU in bytes: 256..4096. */
    uint32_t qp_timeout;      /* local ACK timeout: 4.096 us * 2^qp_timeout. */
    uint32_t designated_rkey; /* of the group's region. */
    uint64_t region_len;      /* of the group's region, at address 0; 0 until there are members. */
    uint32_t had_source; /* 1: it has, or has had, a source; the next one begins another epoch. */
    /* Port of the Proxy Address where programs connect by RDMA-CM; 0: the group takes none. */
    uint32_t connect_port;
};

/* Makes a group, unless there is one of this name with these settings.  'settings' are strings
 * "NAME=VALUE" and a NULL behind the last, or NULL: names and values as the options of castctl
 * group add have them, without "--", but for auth and key; for example "mtu=4096".  Those that are
 * not given have their defaults.  EEXIST: the group has other ones, of those that are given or
 * never change (mtu, psn, timeout). */
int rocecast_group_add(struct rocecast *, const char *name, const char *const settings[],
                       int timeout_ms);
/* Waits until castd knows the group. */
int
rocecast_group_open(struct rocecast *, const char *name, int timeout_ms, struct rocecast_group **);
void rocecast_group_close(struct rocecast_group *);

/* The current epoch, as last heard from the registry. */
int rocecast_get_epoch(struct rocecast_group *, struct rocecast_epoch *);

/* Registers the source's QP.  If the epoch has had a source already a new epoch starts.  '*epoch'
 * is the epoch that the QP is the source of. */
int rocecast_source_set(struct rocecast_group *, const char *host, uint32_t qpn, int timeout_ms,
                        struct rocecast_epoch *epoch);
/* The same if the group still is what the caller has 'seen' of it, by rocecast_get_epoch() or
 * another function: in that epoch, and with a source only if it had one then.  ESTALE: it is not,
 * as somebody else has come before.  Of several that have seen the same, one succeeds. */
int
rocecast_source_set_if(struct rocecast_group *, const char *host, uint32_t qpn,
                       const struct rocecast_epoch *seen, int timeout_ms, struct rocecast_epoch *);
/* Takes the source out of the group. */
int rocecast_source_del(struct rocecast_group *, int timeout_ms);

/* A receiver. */
struct rocecast_member {
    size_t size; /* set by the caller to sizeof. */
    const char *host;
    uint32_t qpn;
    uint32_t epoch;   /* the epoch that the QP is set up for. */
    uint64_t address; /* of the region for RDMA WRITE; 0 if there is none. */
    uint64_t length;  /* of the region for RDMA WRITE, bytes; 0: there is none, SENDs only. */
    uint32_t rkey;    /* of the region for RDMA WRITE; 0 if there is none. */
    uint64_t flags;   /* ROCECAST_MEMBER_x, bitwise. */
};
/* In place of a registration of the host that is not active, too, whom nobody can ask. */
#define ROCECAST_MEMBER_REPLACE 1u
/* The QP stays as it is when another epoch begins: that is no event, unless the member is not in
 * the new epoch.  ROCECAST_EVENT_RESTART_NEEDED: the QP cannot go on. */
#define ROCECAST_MEMBER_KEEP    2u

/* Registers a receiver's QP, which must be in RTR already.  If the host is an active member with
 * another QP, its edge asks that one first.  EBUSY: it answers, so it stays.  ESTALE: the group is
 * in another epoch by now.  EHOSTDOWN: the host was lost in this epoch, and the group has
 * failed. */
int rocecast_member_add(struct rocecast_group *, const struct rocecast_member *, int timeout_ms);
/* Makes the program that listens at this port of the host, for RDMA-CM connections, a receiver: the
 * group connects to it, now or when it comes, and again when it has been away.  'private_data' says
 * where its answer has its region, as castctl member add --private-data does; NULL: in the first 20
 * bytes.  'flags': 0, or ROCECAST_MEMBER_REPLACE: in place of a listener with other values.  Returns
 * when castd has taken that up, whether or not the program is there.  EEXIST: the host has another
 * listener, or is registered with a QP. */
int rocecast_member_listen(struct rocecast_group *, const char *host, uint16_t port,
                           const char *private_data, uint64_t flags, int timeout_ms);
/* Takes a receiver out and waits until it is out everywhere.  One that listens is not connected
 * again. */
int rocecast_member_leave(struct rocecast_group *, const char *host, int timeout_ms);

/* Waits until the group is ready in 'epoch' with at least 'n_members' active members.
 * '*attributes', if not NULL, then have the length of the region.  ESTALE: that epoch is over.
 * EHOSTDOWN: the group never will be ready in it, as members are lost; rocecast_error() says which
 * and why. */
int rocecast_wait_ready(struct rocecast_group *, uint32_t epoch, uint32_t n_members, int timeout_ms,
                        struct rocecast_epoch *attributes);

/*
 * Members, as last heard from the registry.
 */

/* A place in an epoch: the beginning of a message, or a packet of one. */
struct rocecast_place {
    uint32_t known;   /* ROCECAST_PLACE_x: what of it is known, bitwise. */
    uint32_t psn;     /* as the source counts, 24 bits. */
    uint64_t message; /* number of the message; the epoch's first one is 0. */
};
#define ROCECAST_PLACE_PSN     1u
#define ROCECAST_PLACE_MESSAGE 2u

enum rocecast_member_state {
    ROCECAST_MEMBER_LEFT,    /* it is out everywhere. */
    ROCECAST_MEMBER_WAITING, /* it is registered and not served yet; text: what it waits for. */
    ROCECAST_MEMBER_ACTIVE,  /* copies are made for it, and its acknowledgements count. */
    ROCECAST_MEMBER_LEAVING, /* it is on its way out; text: what that waits for. */
    ROCECAST_MEMBER_LOST,    /* it has refused data or fallen silent; text: why. */
    ROCECAST_MEMBER_FAILED,  /* it cannot be served; text: why. */
};

struct rocecast_member_status {
    size_t size; /* set by the library. */
    enum rocecast_member_state state;
    uint32_t qpn;
    struct rocecast_place first; /* its first message, once it has been active. */
    /* Lost: what it is known to have ends before this.  'message': it has all messages before. */
    struct rocecast_place good;
    char host[ROCECAST_NAME_SIZE];
    char text[ROCECAST_TEXT_SIZE];
};

/* The members that are registered in the current epoch, in any order.  'members' has room for '*n'
 * of them, each of 'size' bytes, which the caller sets to sizeof *members.  '*n' becomes the number
 * of members that there are: if that is more than there is room for, the rest is missing.
 * 'members' may be NULL if '*n' is 0. */
int rocecast_get_members(struct rocecast_group *, struct rocecast_member_status *members,
                         size_t size, size_t *n);

/*
 * Events: the difference between what the program has been told and what is.
 * Nothing queues up for a program that reads late; it does not see changes that
 * have been undone since.
 */

enum rocecast_event_type {
    ROCECAST_EVENT_NONE,
    ROCECAST_EVENT_READY,         /* the group is ready. */
    ROCECAST_EVENT_NOT_READY,     /* the group is no longer ready; text: why. */
    ROCECAST_EVENT_EPOCH,         /* a new epoch: register again. */
    ROCECAST_EVENT_GONE,          /* the group has been deleted. */
    ROCECAST_EVENT_MEMBER_ACTIVE, /* host: it has all that is sent in the epoch. */
    ROCECAST_EVENT_MEMBER_LOST,   /* host; text: why; place: what it is known to have ends before.
                                   * It refused data or fell silent. */
    ROCECAST_EVENT_MEMBER_FAILED, /* host; text: why. */
    ROCECAST_EVENT_REGISTRY_LOST, /* no connection: what is known gets old, data still flow. */
    ROCECAST_EVENT_REGISTRY_BACK,
    ROCECAST_EVENT_MEMBER_JOINED,  /* host; place: its first message.  It is active, and came later
                                    * than the epoch's first message. */
    ROCECAST_EVENT_MEMBER_WAITING, /* host; text: for what.  Told again when that changes. */
    ROCECAST_EVENT_MEMBER_LEFT,    /* host: it is out everywhere. */
    ROCECAST_EVENT_GROUP_DEGRADED, /* the group goes on without some members; text: which. */
    ROCECAST_EVENT_GROUP_WHOLE,    /* no member is lacking any more. */
    ROCECAST_EVENT_RESTART_NEEDED, /* host; text: why; place: as MEMBER_LOST.  It is lost as its
                                    * queue pair has half a message: reset and register it. */
};

struct rocecast_event {
    size_t size; /* set by the caller to sizeof. */
    enum rocecast_event_type type;
    uint32_t epoch;
    char host[ROCECAST_NAME_SIZE];
    char text[ROCECAST_TEXT_SIZE];
    struct rocecast_place place;
};

/* A descriptor that is readable while there are events; only for poll() and its like. */
int rocecast_fd(const struct rocecast_group *);
/* The next event; ROCECAST_EVENT_NONE if there is none.  Who passes a struct without 'place', as
 * programs do that were built with an earlier header, gets the events of then: MEMBER_ACTIVE for
 * MEMBER_JOINED; MEMBER_LOST for MEMBER_LEFT, RESTART_NEEDED, and for the MEMBER_WAITING of one
 * that was active or failed; no others of the new ones. */
int rocecast_next_event(struct rocecast_group *, struct rocecast_event *);

/*
 * Verbs.  Only these functions use libibverbs: the one that the program has loaded.
 */

enum rocecast_role { ROCECAST_SOURCE, ROCECAST_RECEIVER };

/* Opens the RDMA device that has the host's address. */
int
rocecast_device_open(struct rocecast *, const char *host, int timeout_ms, struct ibv_context **);
/* Takes an RC QP from any state to INIT, through RESET. */
int rocecast_qp_init(struct ibv_qp *, enum rocecast_role);
/* Do QPs that are connected from now on say that they are capable of ECN?  'on' is 0 (at first:
 * Not-ECT) or 1 (ECT(0)).  With it a congested queue on the way marks packets, where it would drop
 * them otherwise; receivers' edges and the source's agent do the rest (docs/congestion.md). */
int rocecast_qp_set_ecn(struct rocecast_group *, int on);
/* Takes the QP from INIT to RTS, with the group as its peer. */
int rocecast_qp_connect(struct rocecast_group *, const char *host, struct ibv_qp *,
                        const struct rocecast_epoch *, int timeout_ms);

/* Registers the source's QP, which is in INIT, and takes it to RTS. */
int rocecast_source_join(struct rocecast_group *, const char *host, struct ibv_qp *, int timeout_ms,
                         struct rocecast_epoch *);
/* Takes a receiver's QP from INIT to RTS and registers it with the region 'mr' (NULL: SENDs only).
 * ESTALE: a new epoch has begun meanwhile; start over with rocecast_qp_init(). */
int rocecast_member_join(struct rocecast_group *, const char *host, struct ibv_qp *,
                         const struct ibv_mr *mr, int timeout_ms, struct rocecast_epoch *);

/*
 * Requests: the same for programs that do not block.
 *
 * A function that starts a request checks its arguments, copies them and returns 0; then '*request'
 * is one that the caller closes, otherwise NULL.  Only the queue pair is not copied: it must live
 * until the request has ended or is closed.  The request's descriptor is readable when
 * rocecast_request_poll() has something to do; that changes the queue pair, in the thread that
 * calls it.  Time-outs are for the whole request.
 */

/* 'seen': as for rocecast_source_set_if(); NULL: as for rocecast_source_set(). */
int rocecast_source_set_start(struct rocecast_group *, const char *host, uint32_t qpn,
                              const struct rocecast_epoch *seen, int timeout_ms,
                              struct rocecast_request **request);
int rocecast_source_join_start(struct rocecast_group *, const char *host, struct ibv_qp *,
                               const struct rocecast_epoch *seen, int timeout_ms,
                               struct rocecast_request **request);
int rocecast_member_add_start(struct rocecast_group *, const struct rocecast_member *,
                              int timeout_ms, struct rocecast_request **request);
/* 'flags': as in struct rocecast_member. */
int rocecast_member_join_start(struct rocecast_group *, const char *host, struct ibv_qp *,
                               const struct ibv_mr *mr, uint64_t flags, int timeout_ms,
                               struct rocecast_request **request);
int rocecast_member_leave_start(struct rocecast_group *, const char *host, int timeout_ms,
                                struct rocecast_request **request);

/* A descriptor that is readable while rocecast_request_poll() has something to do, or the request
 * has ended; only for poll() and its like. */
int rocecast_request_fd(const struct rocecast_request *);
/* Goes on with a request.  EINPROGRESS: it has not ended; rocecast_error() says what it waits for.
 * Otherwise what the function that blocks would have returned, and '*epoch', if not NULL, what that
 * would have given (member_add, member_leave: zeros), as often as it is asked. */
int rocecast_request_poll(struct rocecast_request *, struct rocecast_epoch *epoch);
/* The same, but blocks until the request has ended. */
int rocecast_request_wait(struct rocecast_request *, struct rocecast_epoch *epoch);
/* Closes a request at any time.  If it has not ended, what it has written stays, as after
 * ETIMEDOUT, and the queue pair is somewhere between INIT and RTS.  Closing a group closes its
 * requests.  NULL is ignored. */
void rocecast_request_close(struct rocecast_request *);

#ifdef __cplusplus
}
#endif

#endif /* rocecast.h */
