/* SPDX-License-Identifier: Apache-2.0
 *
 * castscale's own session with the registry: requests like those of castctl and librocecast, and what
 * has become of them.
 *
 * Functions that can fail return NULL, or a malloc'd sentence.
 */
#ifndef BENCH_CASTSCALE_CLIENT_H
#define BENCH_CASTSCALE_CLIENT_H 1

#include <stdbool.h>
#include <stdint.h>

#include "bench/castscale/fabric.h"

struct client;

/* 'patience_msec' is how long anything may take that is waited for.  'check' is called meanwhile, and
 * ends the wait with a sentence. */
struct client *client_open(const char *db, int patience_msec, char *(*check)(void *aux), void *aux);
void client_close(struct client *);

/* Waits until castd has set up the registry. */
char *client_wait_castd(struct client *);

/* Fills in one transaction; a sentence if that cannot be. */
typedef char *client_filler(struct ovsdb_idl *, struct ovsdb_idl_txn *, const void *aux);
/* Does one, as often as others come in between.  '*request' is its number (Global.next_cfg).  'fill' may
 * be NULL: then it asks for nothing but an answer of all agents. */
char *client_request(struct client *, client_filler *fill, const void *aux, const char *what,
                     int64_t *request);

/* Sees of groups, hosts, members and listeners only what is about this group and this host, as a program
 * does that is about to change that; NULL: all. */
char *client_follow(struct client *, const char *group, const char *host);

/* Waits until there is no request that castd and all agents are not done with. */
char *client_wait_quiet(struct client *);
/* Waits until castd has taken the request up, and until all agents have applied what follows. */
char *client_wait_answer(struct client *, int64_t request);
char *client_wait_agents(struct client *, int64_t request);
/* Waits until the first 'n' groups are ready with all their members. */
char *client_wait_groups(struct client *, const struct fabric *, unsigned n);
/* Waits until the host, which has registered, is an active member. */
char *client_wait_active(struct client *, const char *group, const char *host);
/* Takes a member out, and waits until it is gone. */
char *client_remove_member(struct client *, const char *group, const char *host);

#endif /* bench/castscale/client.h */
