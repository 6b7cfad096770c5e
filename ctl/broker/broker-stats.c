/* SPDX-License-Identifier: Apache-2.0
 *
 * What a broker has counted since its start.
 */
#include <config.h>

#include "ctl/broker/broker-stats.h"

#include "ctl/registry/json.h"
#include "openvswitch/json.h"

static const char *const refusals[] = {
    [REFUSED_NAME] = "name",     [REFUSED_STRANGER] = "stranger", [REFUSED_CROWD] = "crowd",
    [REFUSED_SILENT] = "silent", [REFUSED_RIGHTS] = "rights",     [REFUSED_OWNER] = "owner",
    [REFUSED_ID] = "id",
};
WORDS_DEFINE(refusal, enum refusal, refusals);

static uint64_t
sum(const uint64_t *v, size_t n)
{
    uint64_t total = 0;

    for (size_t i = 0; i < n; i++) {
        total += v[i];
    }
    return total;
}

struct json *
broker_stats_to_json(const struct broker_stats *s, const unsigned int n_clients[N_CLIENT_ROLES])
{
    struct json *o = json_object_create(), *roles = json_array_create_empty();
    struct json *reasons = json_object_create();
    uint64_t n_strangers = s->n_refused[REFUSED_NAME] + s->n_refused[REFUSED_STRANGER];

    for (enum client_role role = 0; role < N_CLIENT_ROLES; role++) {
        struct json *of_role = json_object_create();

        json_object_put_string(of_role, "role", client_role_name(role));
        ctl_put_int(of_role, "clients", n_clients[role]);
        ctl_put_int(of_role, "requests", s->n_requests[role]);
        ctl_put_int(of_role, "transactions", s->n_transactions[role]);
        json_array_add(roles, of_role);
    }
    for (enum refusal why = 0; why < N_REFUSALS; why++) {
        ctl_put_int(reasons, refusal_name(why), s->n_refused[why]);
    }
    ctl_put_int(o, "connections", s->n_clients);
    ctl_put_int(o, "strangers", n_strangers);
    ctl_put_int(o, "requests", sum(s->n_requests, N_CLIENT_ROLES));
    ctl_put_int(o, "transactions", sum(s->n_transactions, N_CLIENT_ROLES));
    ctl_put_int(o, "refused",
                sum(s->n_refused, N_REFUSALS) - n_strangers - s->n_refused[REFUSED_SILENT]);
    ctl_put_int(o, "client_bytes", s->n_client_bytes);
    ctl_put_int(o, "registry_bytes", s->n_registry_bytes);
    ctl_put_int(o, "registry_connections", s->n_connected);
    json_object_put(o, "refusals", reasons);
    json_object_put(o, "roles", roles);
    return o;
}
