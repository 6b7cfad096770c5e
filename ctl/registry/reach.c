/* SPDX-License-Identifier: Apache-2.0
 *
 * The way to a registry of several servers: see reach.h.
 *
 * ovsdb_idl_set_remote() makes a new session if the remotes' text differs, hence the rotation.  It
 * keeps rows, conditions, lock and what the IDL knows of the last transaction.  It may only be called
 * without a connection: otherwise it carries the connection over into the new session and loses that
 * the IDL was about to leave it.  Without a connection no transaction is in flight either.
 */
#include <config.h>

#include "ctl/registry/reach.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "openvswitch/poll-loop.h"
#include "ovsdb-idl.h"
#include "random.h"
#include "timeval.h"
#include "util.h"

#define FAST_ROUNDS 20
#define FAST_MSEC   250
#define JITTER_MSEC 100  /* so that clients of a server that is lost do not come all at once. */
#define GROWTH_MSEC 50   /* a round of handshakes may take up to 1.2 s in the end. */
#define SLOW_MSEC   8000 /* the session's own attempts, after 1 and 3 s, and 7 s, fit in. */

void
registry_reach_init(struct registry_reach *r, struct ovsdb_idl *idl, const char *remotes)
{
    *r = (struct registry_reach){.idl = idl,
                                 .remotes = xstrdup(remotes),
                                 .many = strchr(remotes, ',') != NULL,
                                 .seqno = ovsdb_idl_get_seqno(idl),
                                 .next = LLONG_MAX};
}

void
registry_reach_uninit(struct registry_reach *r)
{
    free(r->remotes);
    r->remotes = NULL;
}

static long long
next_round(const struct registry_reach *r)
{
    return time_msec()
           + (r->rounds < FAST_ROUNDS
                  ? FAST_MSEC + random_range(JITTER_MSEC) + (int) r->rounds * GROWTH_MSEC
                  : SLOW_MSEC);
}

/* "a,b,c" becomes "b,c,a". */
static void
rotate(struct registry_reach *r)
{
    int first = (int) strcspn(r->remotes, ",");
    char *rotated = xasprintf("%s,%.*s", r->remotes + first + 1, first, r->remotes);

    free(r->remotes);
    r->remotes = rotated;
}

static void
begin_round(struct registry_reach *r)
{
    r->error = registry_reach_error(r);
    r->rounds++;
    rotate(r);
    ovsdb_idl_set_remote(r->idl, r->remotes, true);
    ovsdb_idl_run(r->idl);
    r->next = next_round(r);
}

void
registry_reach_run(struct registry_reach *r)
{
    ovsdb_idl_run(r->idl);
    bool connected = ovsdb_idl_is_connected(r->idl);
    r->is_served &= connected;
    if (ovsdb_idl_get_seqno(r->idl) != r->seqno) { /* rows came. */
        r->seqno = ovsdb_idl_get_seqno(r->idl);
        r->is_served = connected;
        r->rounds = 0;
    }
    if (!r->many || connected) { /* also with one that will turn out to be no leader. */
        r->next = LLONG_MAX;
    } else if (r->next == LLONG_MAX) {
        r->next = next_round(r);
    } else if (time_msec() >= r->next) {
        begin_round(r);
    }
}

void
registry_reach_wait(const struct registry_reach *r)
{
    ovsdb_idl_wait(r->idl);
    if (r->next != LLONG_MAX) {
        poll_timer_wait_until(r->next);
    }
}

bool
registry_reach_is_served(const struct registry_reach *r)
{
    return r->is_served;
}

int
registry_reach_error(const struct registry_reach *r)
{
    int error = ovsdb_idl_get_last_error(r->idl);

    return error ? error : r->error;
}

/* EPROTO is libopenvswitch's word for a Unix socket that has not been connected at once. */
bool
registry_error_is_busy(int error)
{
    return error == EAGAIN || error == EPROTO;
}
