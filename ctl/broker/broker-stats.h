/* SPDX-License-Identifier: Apache-2.0
 *
 * What a broker has counted since its start.
 */
#ifndef CTL_BROKER_BROKER_STATS_H
#define CTL_BROKER_BROKER_STATS_H 1

#include <stdint.h>

#include "ctl/broker/rights.h"
#include "lib/words.h"

struct json;

/* Why a client, or one of its requests, was refused. */
enum refusal {
    REFUSED_NAME,     /* client: its certificate has no usable name. */
    REFUSED_STRANGER, /* client: it is neither node nor host, operator nor controller. */
    REFUSED_CROWD,    /* client: there are too many others of its name. */
    REFUSED_SILENT,   /* client: it had not said yet who it is, and too many others came. */
    REFUSED_RIGHTS,   /* request: its role does not allow it. */
    REFUSED_OWNER,    /* transaction: a row that it would have written is another's. */
    REFUSED_ID,       /* request: its id is that of another one under way. */
    N_REFUSALS,
};
WORDS_DECLARE(refusal, enum refusal);

#define N_CLIENT_ROLES (CLIENT_CONTROLLER + 1)

struct broker_stats {
    uint64_t n_clients; /* connections that were accepted. */
    uint64_t n_requests[N_CLIENT_ROLES];
    uint64_t n_transactions[N_CLIENT_ROLES]; /* of these, those that were passed on. */
    uint64_t n_refused[N_REFUSALS];
    uint64_t n_client_bytes;   /* received from clients. */
    uint64_t n_registry_bytes; /* received from the registry for clients. */
    uint64_t n_connected;      /* times that the broker itself was connected to the registry. */
};

/* As an object.  'n_clients' is how many clients of each role are connected now. */
struct json *
broker_stats_to_json(const struct broker_stats *, const unsigned int n_clients[N_CLIENT_ROLES]);

#endif /* ctl/broker/broker-stats.h */
