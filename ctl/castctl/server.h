/* SPDX-License-Identifier: Apache-2.0
 *
 * The servers of a registry, each talked to by itself.
 */
#ifndef CTL_CASTCTL_SERVER_H
#define CTL_CASTCTL_SERVER_H 1

#include "ctl/castctl/castctl.h"

struct json;
struct jsonrpc;

struct server {
    char *remote;
    struct stream *stream; /* until it is connected. */
    struct jsonrpc *rpc;   /* from then on. */
    struct json *row; /* what it says of itself, its row in _Server's table Database; or NULL. */
    char *why;        /* why there is none. */
    bool refused;     /* nobody listens there. */
};

struct servers {
    size_t n;
    struct server *servers;
};

/* Asks all remotes of the registry at once what they are.  Each has an answer, or a reason, within
 * some seconds, or by the deadline. */
void servers_ask(const struct ctl *, struct servers *);
void servers_uninit(struct servers *);

/* May the registry be written to at this server?  A single one always may. */
bool server_leads(const struct server *);

/* Waits until there is a server that may be written to.  Ends with CTL_UNAVAILABLE at the deadline, or when nobody
 * listens on the only socket. */
void server_find_leader(const struct ctl *, struct server *leader);
void server_uninit(struct server *);

/* Has the server execute a method, with 'params', which it takes over, until the deadline.  CTL_OK:
 * *resultp is its result.  CTL_REFUSED: it answers an error, *whyp.  CTL_UNAVAILABLE: it does not answer,
 * and may have done it or not, for the reason *whyp.  The caller frees both. */
enum ctl_exit server_call(const struct ctl *, const struct server *, const char *method,
                          struct json *params, struct json **resultp, char **whyp);

#endif /* ctl/castctl/server.h */
