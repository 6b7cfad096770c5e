/* SPDX-License-Identifier: Apache-2.0
 *
 * librocecast's inside: who runs where, and what they share.
 *
 * libopenvswitch is used by one thread only, the loop (loop.c): its poll loop,
 * RCU and statistics keep state per thread, and nothing of that may get into
 * threads of the program.  The program's threads (api.c, verbs.c) put calls into
 * a list and wait; the loop answers them from the registry's contents (calls.c).
 * What groups look like is kept beside (view.c), so that asking for it and for
 * events need not wait.
 *
 * One lock covers everything here.  The loop holds it except while it sleeps.
 */
#ifndef LIBROCECAST_INTERNAL_H
#define LIBROCECAST_INTERNAL_H 1

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

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

/* At the start of every function that the program calls: until it returns pthread_cancel() waits,
 * for locks are held and calls are on the stack. */
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
    struct ovsdb_idl *idl; /* the loop's; NULL before and after. */
    unsigned int seqno;    /* of the IDL, when groups were last looked at. */
    bool connected;        /* and its contents are there. */
    bool closing, closed;
    struct call *calls; /* being worked on. */
    struct rocecast_group *groups;
    struct call *writer; /* the call that has a transaction under way. */
};

/* A member, as it is and as the program knows it. */
enum member_state { MEMBER_ABSENT, MEMBER_ACTIVE, MEMBER_FAILED, MEMBER_LOST };

struct member_view {
    char host[ROCECAST_NAME_SIZE];
    char text[ROCECAST_TEXT_SIZE];
    enum member_state now, told;
};

struct rocecast_group {
    struct rocecast_group *next;
    struct rocecast *r;
    char name[ROCECAST_NAME_SIZE];
    int fd;      /* eventfd: readable while 'raised'. */
    bool raised; /* there are events. */

    /* What is. */
    bool exists, ready;
    struct rocecast_epoch epoch;
    char text[ROCECAST_TEXT_SIZE]; /* status. */

    /* What the program knows. */
    bool told_connected, told_exists, told_ready;
    struct rocecast_epoch told_epoch;

    size_t n_members;
    struct member_view *members;
};

/* A function of the API that waits for the registry. */
struct call_class {
    const char *name;
    /* Both return 0 or an errno with a sentence in '*whyp' (malloc'd).  EAGAIN and EBUSY: not now,
     * again when the registry has changed.  NULL: nothing to do. */
    int (*write)(struct call *, char **whyp); /* fills call->txn, maybe several times. */
    int (*check)(struct call *, char **whyp); /* when castd has taken that up. */
};

extern const struct call_class call_open;
extern const struct call_class call_host_address;
extern const struct call_class call_group_open;
extern const struct call_class call_source_set;
extern const struct call_class call_source_del;
extern const struct call_class call_member_add;
extern const struct call_class call_member_leave;
extern const struct call_class call_wait_ready;

struct call {
    struct call *next;
    const struct call_class *class;
    struct rocecast *r;

    /* Arguments, as far as the class has them. */
    struct rocecast_group *group;
    const char *host;
    uint32_t qpn, epoch, n_members;
    const struct rocecast_member *member;
    int timeout_ms;

    /* Answers. */
    struct in6_addr address;
    struct rocecast_epoch attributes;
    int error;
    char text[ERROR_SIZE]; /* why not, or why not yet. */
    bool done;

    /* The loop's. */
    long long deadline;        /* on time_msec()'s scale. */
    struct ovsdb_idl_txn *txn; /* under way. */
    bool tried;                /* a transaction has been sent. */
    struct uuid source;        /* source del: the row that is meant, from the first try. */
    int64_t old_epoch;         /* source set: before the first try, if the row said the same. */
    int64_t number;            /* of the request that castd must take up; 0: none yet. */
};

/* loop.c */
/* Starts the loop with the first user and ends it with the last.  0 or an errno. */
int loop_get(void);
void loop_put(void);
/* Whether this is the child of a process that has the loop: nobody would answer, and locks may be
 * held for ever.  EPERM then. */
int loop_check_process(void);
void loop_lock(void);
void loop_unlock(void);
/* Adds a connection to the loop; takes it out and frees what is the loop's. */
void loop_add(struct rocecast *);
void loop_remove(struct rocecast *);
/* Lets the loop work on a call until it is done, or timeout_ms have passed.  0 or an errno, which
 * rocecast_error() explains.  Without the lock. */
int loop_call(struct call *);

/* remote.c */
/* EINVAL, with a malloc'd sentence, if the library cannot connect to such a registry. */
int remote_check(const char *db, char **whyp);

/* view.c, all with the lock. */
void view_refresh(struct rocecast_group *);
/* The program learns the current epoch. */
void view_know_epoch(struct rocecast_group *);
void view_next_event(struct rocecast_group *, struct rocecast_event *);

/* api.c */
/* Leaves a sentence for rocecast_error(); 'error'. */
int api_fail(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* EINVAL if a struct of the caller's, whose size is set, is smaller than it must be. */
int epoch_check_size(const struct rocecast_epoch *);

#endif /* librocecast/internal.h */
