/* SPDX-License-Identifier: Apache-2.0
 *
 * A client's way to a registry of several servers: when one is lost, the next leader is found within
 * a fraction of a second.
 *
 * Open vSwitch's sessions wait 1, 2, 4 and then 8 seconds from one server to the next, and a follower
 * costs as much as one that does not answer.  While a new leader is elected, which takes 1 to 2
 * seconds, such a session has gone through its quick attempts.  So here a session that has no
 * connection is replaced by a new one, which asks all servers at once.  Intervals grow, so that slow
 * handshakes come to an end and a registry that stays away is not flooded.
 */
#ifndef CTL_REGISTRY_REACH_H
#define CTL_REGISTRY_REACH_H 1

#include <stdbool.h>

struct ovsdb_idl;

struct registry_reach {
    struct ovsdb_idl *idl;
    char *remotes;       /* those of the session; with each new one they are rotated. */
    bool many;           /* there are several. */
    bool is_served;      /* a server was taken, and the connection with it stands. */
    unsigned int seqno;  /* of the IDL, when it was last looked at. */
    unsigned int rounds; /* new sessions since a server was last taken. */
    long long next;      /* when to make another one; LLONG_MAX: there is a connection. */
    int error;           /* the last one of earlier sessions; 0: none. */
};

/* Of an IDL that was just created with these remotes and 'retry', and that remains the caller's. */
void registry_reach_init(struct registry_reach *, struct ovsdb_idl *, const char *remotes);
void registry_reach_uninit(struct registry_reach *);

/* In the place of ovsdb_idl_run() and ovsdb_idl_wait(). */
void registry_reach_run(struct registry_reach *);
void registry_reach_wait(const struct registry_reach *);

/* Is there a connection with a server that was taken?  ovsdb_idl_is_connected() is also true with one
 * that is about to be left because it is not the leader. */
bool registry_reach_is_served(const struct registry_reach *);

/* In the place of ovsdb_idl_get_last_error(), which forgets with each new session. */
int registry_reach_error(const struct registry_reach *);

/* Does connecting fail so with a server for which too many wait?  It is there, and may take them soon. */
bool registry_error_is_busy(int error);

#endif /* ctl/registry/reach.h */
