/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests of sources and receivers: what castctl and librocecast check and
 * write when one registers, and how a request is numbered so that its maker
 * knows when castd has taken it up.
 *
 * Functions that check return 0, or a positive errno with a sentence in
 * '*whyp', which the caller frees; nothing has been written then:
 *
 *   ENOENT     no such group or host
 *   ESTALE     the group is in another epoch than the caller thinks
 *   EEXIST     registered already with other values, or in another way
 *   EBUSY      the member's earlier registration is still on its way out, or is alive
 *   EAGAIN     castd has not given the group an epoch yet
 *   EHOSTDOWN  the group has failed in this epoch: only a new one helps
 */
#ifndef CTL_REGISTRY_REQUEST_H
#define CTL_REGISTRY_REQUEST_H 1

#include <stdbool.h>
#include <stdint.h>

#include "ctl/registry/rocecast-idl.h"

/* Rows by name; NULL if there is none. */
const struct rrec_host *request_find_host(const struct ovsdb_idl *, const char *name);
/* By its address, as the registry writes it. */
const struct rrec_host *request_find_host_at(const struct ovsdb_idl *, const char *address);
const struct rrec_group *request_find_group(const struct ovsdb_idl *, const char *name);
const struct rrec_source *request_find_source(const struct ovsdb_idl *, const struct rrec_group *);
const struct rrec_member *
request_find_member(const struct ovsdb_idl *, const struct rrec_group *, const char *host);
const struct rrec_listener *
request_find_listener(const struct ovsdb_idl *, const struct rrec_group *, const char *host);

/* Lets in only those groups, hosts, members and listeners that requests of this host about this group
 * read: the two, and the host's memberships, of which another group's sees no group.  NULL: all.
 * Returns what ovsdb_idl_get_condition_seqno() says at least when it is so. */
unsigned int request_follow(struct ovsdb_idl *, const char *group, const char *host);

struct request_source {
    const char *group, *host;
    int64_t qpn;
    /* The epoch that the group must be in; 0: the current one, or a new one if that has had a
     * source. */
    int64_t epoch;
    bool may_exist;
};

int request_source_set(const struct ovsdb_idl *, struct ovsdb_idl_txn *,
                       const struct request_source *, char **whyp);

struct request_member {
    const char *group, *host;
    int64_t qpn;
    bool has_region;
    int64_t rkey;
    uint64_t va;
    int64_t len;
    bool keep;    /* its queue pair stays as it is when another epoch begins. */
    bool has_psn; /* its queue pair expects 'psn' first, otherwise the start PSN of the epoch. */
    int64_t psn;
    int64_t epoch; /* that the group must be in; 0: the current one. */
    bool may_exist;
    bool replace; /* also in place of a registration that is not active (yet). */
};

/* Registers.  Where a registration with another QPN is active nothing is changed before its edge
 * has asked that queue pair: request_member_answer() says what came of it. */
int request_member_add(const struct ovsdb_idl *, struct ovsdb_idl_txn *,
                       const struct request_member *, char **whyp);
/* Once castd has taken up the registration: is it in the place of an earlier one, if there was one?
 * EAGAIN: that is not decided yet, '*whyp' says what it waits for.  EBUSY: the earlier one is
 * alive, or another request came in between. */
int request_member_answer(const struct ovsdb_idl *, const struct request_member *, char **whyp);
/* Takes a receiver out, and its listener, if there is one, so that it is not connected again.
 * 'want' is "left" or "removed".  ENOENT: the host is neither member nor listener. */
int request_member_leave(const struct ovsdb_idl *, const char *group, const char *host,
                         const char *want, char **whyp);
/* Nobody wants the member's place any more; 'refused' is why it was not given, or "". */
void request_member_close(const struct rrec_member *, const char *refused);

/* A program that listens for RDMA-CM connections: castd makes it a member when it has answered. */
struct request_listener {
    const char *group, *host;
    int64_t port;
    const char *private_data; /* a layout (ctl/registry/private-data.h), or "". */
    bool replace;             /* also in place of a listener with other values. */
};

/* Nothing is changed if the host listens so already. */
int request_listener_add(const struct ovsdb_idl *, struct ovsdb_idl_txn *,
                         const struct request_listener *, char **whyp);

/* Is the group ready in 'epoch' (0: any) with at least 'n_members' active members?  EAGAIN: not
 * yet; '*whyp' says what it waits for. */
int request_group_ready(const struct ovsdb_idl *, const char *group, int64_t epoch,
                        uint64_t n_members, char **whyp);

/* Gives the request in 'txn' a number; call it before the commit.  The commit fails with
 * TXN_TRY_AGAIN if somebody else has written since 'idl' was read.
 *
 * 'all_nodes': castd gives all nodes a new generation with the answer.  That is for who waits until all
 * agents have applied one (Global.agents_cfg), or changes what agents read without castd.  It is work for
 * all of them.  The request is written even if it changes nothing. */
void request_number(const struct ovsdb_idl *, struct ovsdb_idl_txn *, bool all_nodes);
/* The request's number, once the commit has succeeded or changed nothing.  castd has taken the
 * request up when Global.nb_cfg has reached the number. */
int64_t request_get_number(const struct ovsdb_idl *, const struct ovsdb_idl_txn *,
                           enum ovsdb_idl_txn_status);

#endif /* ctl/registry/request.h */
