/* SPDX-License-Identifier: Apache-2.0
 *
 * What a client of the registry may ask, by its role and name (docs/security.md).
 *
 * Everything here is about messages of RFC 7047 and ovsdb-server(7), and reads neither a socket nor
 * the registry.  Whose row an operation changes is not known here: the registry is asked in the same
 * transaction, by operations in front of the client's own, whose results the client does not get.
 */
#ifndef CTL_BROKER_RIGHTS_H
#define CTL_BROKER_RIGHTS_H 1

#include <stdbool.h>
#include <stddef.h>

#include "sset.h"

struct json;
struct jsonrpc_msg;

enum client_role {
    CLIENT_AGENT,      /* of the node with the client's name: its own node's reports. */
    CLIENT_HOST,       /* with the client's name: its own sources, members and listeners. */
    CLIENT_OPERATOR,   /* everything but secrets and locks. */
    CLIENT_CONTROLLER, /* castd: everything. */
};

const char *client_role_name(enum client_role);

struct client {
    enum client_role role;
    const char *name; /* that its certificate says. */
};

/* Looks at a request or notification of the client's.  Returns NULL if it may be passed on, as what
 * is in 'msg' then, otherwise a malloc'd text that says what was tried.  '*n_checks' is how many
 * operations of a transaction were put in front of the client's. */
char *rights_check(const struct client *, struct jsonrpc_msg *msg, size_t *n_checks);

/* Takes the results of the 'n_checks' operations in front out of a transaction's reply.  Returns a
 * malloc'd text if a row was another's, otherwise NULL. */
char *rights_take_checks(struct jsonrpc_msg *reply, size_t n_checks);

/* The reply to 'request' that refuses it, as ovsdb-server would. */
struct jsonrpc_msg *rights_refusal(const struct jsonrpc_msg *request, const char *why);
/* Likewise in the place of a transaction's reply. */
void rights_refuse_reply(struct jsonrpc_msg *reply, const char *why);

/* Takes out of a monitor's reply or update what a host may not see of other hosts' members.  'own'
 * has the UUIDs of the host's own rows that this connection was told of. */
void rights_redact(const struct client *, struct jsonrpc_msg *, struct sset *own);

#endif /* ctl/broker/rights.h */
