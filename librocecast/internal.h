/* SPDX-License-Identifier: Apache-2.0
 *
 * librocecast's inside: who runs where, and what they share.
 *
 * Only one thread uses libopenvswitch: the loop (loop.c).  The poll loop, RCU
 * and statistics of libopenvswitch keep state per thread, and nothing of that
 * may get into threads of the program.  The program's threads (api.c, verbs.c)
 * put calls into a list, and wait or look again later (requests.c); the loop
 * answers them from the registry's contents (calls.c), of which it sees what is
 * about the program's groups (follow.c).  What groups look like is kept beside (view.c),
 * so that asking for it and for events does not wait.
 *
 * One lock covers everything here.  The loop holds it except while it sleeps.
 */
#ifndef LIBROCECAST_INTERNAL_H
#define LIBROCECAST_INTERNAL_H 1

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "ctl/registry/reach.h"
#include "librocecast/rocecast.h"
#include "openvswitch/uuid.h"

#define ERROR_SIZE 1024

struct ovsdb_idl;
struct ovsdb_idl_txn;
struct call;

/* Lists are chained by 'next' and short. */
#define LIST_APPEND(HEAD, X)              \
    do {                                  \
        __typeof__(HEAD) *end_ = &(HEAD); \
        while (*end_) {                   \
            end_ = &(*end_)->next;        \
        }                                 \
        *end_ = (X);                      \
    } while (0)
#define LIST_REMOVE(HEAD, X)             \
    do {                                 \
        __typeof__(HEAD) *at_ = &(HEAD); \
        while (*at_ != (X)) {            \
            at_ = &(*at_)->next;         \
        }                                \
        *at_ = (X)->next;                \
    } while (0)

/* Stands at the start of every function that the program calls.  pthread_cancel() waits until the
 * function returns, since locks are held and calls are on the stack. */
#define NO_CANCELLATION \
    int cancel_state_ __attribute__((cleanup(cancel_restore), unused)) = cancel_disable()

static inline int
cancel_disable(void)
{
    int state;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    return state;
}

static inline void
cancel_restore(const int *state)
{
    pthread_setcancelstate(*state, NULL);
}

struct rocecast {
    struct rocecast *next;
    char *db;              /* NULL until the loop has looked for the default. */
    struct ovsdb_idl *idl; /* the loop's; NULL before the connection starts and after it closes. */
    struct registry_reach reach; /* likewise, of 'idl'. */
    unsigned int seqno;          /* of the IDL, when groups were last refreshed. */
    bool connected;              /* to the registry, whose contents are there. */
    bool follows;                /* they are all of what the groups have. */
    bool closing, closed;
    struct call *calls; /* the calls that are being worked on. */
    struct rocecast_group *groups;
    struct call *writer; /* the call that has a transaction under way. */
};

/* A member, as it is and as the program knows it. */
struct seen_member {
    struct rocecast_member_status now;
    bool exists;      /* it has a row in the registry. */
    int64_t branch;   /* which of its registrations this is. */
    bool came_later;  /* its first message is not the epoch's first. */
    bool needs_reset; /* lost: its queue pair has half a message. */

    enum rocecast_member_state told;
    int64_t told_branch;
    char told_text[ROCECAST_TEXT_SIZE];
};

struct rocecast_group {
    struct rocecast_group *next;
    struct rocecast *r;
    char name[ROCECAST_NAME_SIZE];
    int fd;                         /* eventfd: readable while 'raised'. */
    bool raised;                    /* there are events. */
    bool ecn;                       /* queue pairs get ECT(0). */
    char keeps[ROCECAST_NAME_SIZE]; /* host whose queue pair outlives epochs; empty: none. */

    /* The group as it is. */
    bool exists, ready, degraded;
    struct rocecast_epoch epoch;
    char text[ROCECAST_TEXT_SIZE]; /* status. */

    /* The group as the program knows it. */
    bool told_connected, told_exists, told_ready, told_degraded;
    struct rocecast_epoch told_epoch;

    size_t n_members;
    struct seen_member *members;

    struct rocecast_request *requests; /* that the program has started and not closed. */
};

/* A function of the API that waits for the registry.
 *
 * write() and check() return 0, or an errno with a malloc'd sentence in '*whyp'.  EAGAIN and EBUSY:
 * not now, again when the registry has changed. */
struct call_class {
    const char *name;
    /* Fills call->txn, maybe several times; NULL: there is nothing to write. */
    int (*write)(struct call *, char **whyp);
    /* Runs when castd has taken up what write() wrote, if anything; NULL: nothing to check. */
    int (*check)(struct call *, char **whyp);
};

extern const struct call_class call_open;
extern const struct call_class call_host_address;
extern const struct call_class call_group_add;
extern const struct call_class call_group_open;
extern const struct call_class call_source_set;
extern const struct call_class call_source_del;
extern const struct call_class call_member_add;
extern const struct call_class call_member_listen;
extern const struct call_class call_member_leave;
extern const struct call_class call_wait_ready;

struct call {
    struct call *next;
    const struct call_class *class;
    struct rocecast *r;

    /* Arguments, as far as the class has them. */
    struct rocecast_group *group;
    const char *host;
    const char *name;            /* group add: of the group. */
    const char *const *settings; /* group add: "NAME=VALUE", then NULL; or NULL. */
    uint32_t qpn, epoch, n_members;
    const struct rocecast_member *member;
    uint16_t port;            /* member listen. */
    const char *private_data; /* member listen: a layout, or "". */
    bool replace;             /* member listen: in place of a listener with other values. */
    const struct rocecast_epoch *seen; /* source set: what the group still must be; or NULL. */
    int timeout_ms;

    /* Answers. */
    struct in6_addr address;
    struct rocecast_epoch attributes;
    int error;
    char text[ERROR_SIZE]; /* why it failed, or what it waits for. */
    bool done;
    int done_fd; /* eventfd, which is readable when it is done; -1: none. */

    /* The loop's. */
    bool cancelled;            /* nobody waits for it any more. */
    long long deadline;        /* on time_msec()'s scale; 0: to be reckoned from timeout_ms. */
    struct ovsdb_idl_txn *txn; /* the transaction under way; NULL: none. */
    bool tried;                /* a transaction has been sent. */
    struct uuid source;        /* source del: the row to delete, found by the first try. */
    int64_t old_epoch; /* source set: before the first try, if the row said the same; or 0. */
    int64_t number;    /* number of the request that castd must take up; 0: none yet. */
};

/* One call after another, for a program that goes on meanwhile or for a function that blocks. */
struct rocecast_request {
    struct rocecast_request *next;
    struct rocecast_group *g;
    struct call call;
    bool under_way; /* 'call' is the loop's; otherwise the request has ended. */
    /* What follows when the call has succeeded; NULL: nothing.  It may begin another call.  Returns
     * 0 or an errno, which rocecast_error() explains. */
    int (*then)(struct rocecast_request *);

    /* Arguments, as far as the request has them. */
    char host[ROCECAST_NAME_SIZE];
    struct rocecast_member member; /* host and qpn also of a source. */
    struct ibv_qp *qp;
    struct in6_addr address; /* of the host, once it is known. */
    bool has_seen;
    struct rocecast_epoch seen;

    /* Answers. */
    struct rocecast_epoch epoch;
    int error;
    char text[ERROR_SIZE]; /* why it failed. */
};

/* loop.c */
/* Adds a user of the loop; the first one starts it.  0 or an errno. */
int loop_get(void);
/* Takes a user away; the last one ends the loop. */
void loop_put(void);
/* EPERM in the child of a process that has the loop: nobody would answer there, and locks may be
 * held for ever.  0 elsewhere. */
int loop_check_process(void);
void loop_lock(void);
void loop_unlock(void);
/* Adds a connection to the loop. */
void loop_add(struct rocecast *);
/* Takes a connection out of the loop and frees what the loop has made for it. */
void loop_remove(struct rocecast *);
/* Lets the loop work on a call until it is done or its timeout_ms have passed.  0 or an errno,
 * which rocecast_error() explains.  Call these without the lock. */
int loop_call(struct call *);
/* The same in parts: begins; EPERM if there is no loop for this process. */
int loop_start(struct call *);
bool loop_is_done(struct call *);
void loop_wait(struct call *);
/* Ends a call that nobody wants any more.  What it has written stays. */
void loop_cancel(struct call *);

/* follow.c */
/* Asks the registry for what the groups have, and sets r->follows. */
void follow_update(struct rocecast *);

/* remote.c */
/* 0, or an errno with a malloc'd sentence: EINVAL if the library cannot connect to such a registry,
 * others if a key file for ssl: cannot be read. */
int remote_check(const char *db, char **whyp);

/* view.c.  Call these with the lock held. */
void view_refresh(struct rocecast_group *);
/* Notes that the program knows the current epoch. */
void view_know_epoch(struct rocecast_group *);
/* 'earlier': the program knows no later events than REGISTRY_BACK, and no places. */
void view_next_event(struct rocecast_group *, struct rocecast_event *, bool earlier);

/* requests.c */
/* Makes a request without a descriptor, which ends with request_wait(). */
void request_init(struct rocecast_request *, struct rocecast_group *, int timeout_ms);
/* Makes one with a descriptor, which ends with rocecast_request_close().  0 or an errno. */
int request_create(struct rocecast_group *, int timeout_ms, struct rocecast_request **);
/* Ends it at once if its first call could not begin, because of 'error'.  Returns 'error'. */
int request_created(struct rocecast_request **, int error);
/* Begins the first call, or in then() the next one. */
int request_call(struct rocecast_request *, const struct call_class *,
                 int (*then)(struct rocecast_request *));
int request_wait(struct rocecast_request *, struct rocecast_epoch *);
/* Closes all that the program has not closed. */
void requests_destroy(struct rocecast_group *);

/* api.c */
/* Leaves a sentence for rocecast_error() and returns 'error'. */
int api_fail(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* EINVAL if the caller's struct is too small by its 'size'. */
int epoch_check_size(const struct rocecast_epoch *);
/* Copies into the caller's struct, whose size has been checked. */
void epoch_give(struct rocecast_epoch *to, const struct rocecast_epoch *from);
/* Puts the host and QPN into the request.  0 or EINVAL. */
int request_set_endpoint(struct rocecast_request *, const char *host, uint32_t qpn);
/* Puts in what the group still must be; 'seen' NULL: anything.  0 or EINVAL. */
int request_set_seen(struct rocecast_request *, const struct rocecast_epoch *seen);
/* then() of requests for a source: takes the epoch. */
int request_take_epoch(struct rocecast_request *);
/* EINVAL if there are flags that this version does not know. */
int member_check_flags(uint64_t flags);

#endif /* librocecast/internal.h */
