/* SPDX-License-Identifier: Apache-2.0
 *
 * The control socket's listing of probes.  Only the first worker has any (lib/steer.h).
 */
#include <config.h>

#include "ctl/node/daemon.h"
#include "ctl/registry/json.h"
#include "openvswitch/json.h"
#include "util.h"

/* Fills in the first worker's i-th probe; false: it has not so many. */
static bool
find_probe(const struct node_daemon *d, size_t i, struct probe_info *info)
{
    return d->class->probe && d->class->probe(d->workers[0]->node, i, info);
}

static struct json *
probe(const struct probe_info *p)
{
    const struct probe_config *c = p->config;
    struct json *o = json_object_create();
    char program[PROGRAM_TEXT_SIZE];

    ctl_put_int(o, "number", c->number);
    json_object_put_string(o, "kind", probe_kind_name(c->kind));
    json_object_put_string(o, "name", c->name);
    json_object_put_string(o, "plane", c->plane);
    ctl_put_int(o, "port", c->port);
    program_format(&c->program, program);
    json_object_put_string(o, "program", program);
    if (c->kind == PROBE_PEER) {
        program_format(&c->back, program);
        json_object_put_string(o, "back", program);
    }
    ctl_put_int(o, "interval_us", c->interval_usec);
    ctl_put_int(o, "timeout_us", c->timeout_usec);
    ctl_put_int(o, "large", c->large);
    json_object_put(o, "no_checksum", json_boolean_create(c->no_checksum));
    json_object_put_string(o, "state", path_state_name(p->health.state));
    ctl_put_int(o, "for_us", node_daemon_now() - p->health.since);
    ctl_put_int(o, "sent", p->n_sent);
    ctl_put_int(o, "returned", p->n_returned);
    ctl_put_int(o, "lost", p->n_lost);
    ctl_put_int(o, "late", p->n_late);
    ctl_put_int(o, "marked", p->n_marked);
    ctl_put_int(o, "rtt_us", p->rtt_usec);
    ctl_put_int(o, "rtt_mean_us", p->rtt_mean_usec);
    if (c->kind == PROBE_PEER) {
        ctl_put_int(o, "marked_back", p->n_marked_back);
        ctl_put_int(o, "lost_there", p->n_lost_there);
        ctl_put_int(o, "lost_back", p->n_lost_back);
        json_object_put(o, "heard", json_boolean_create(p->heard));
    }
    return o;
}

struct json *
node_probes_to_json(const struct node_daemon *d)
{
    struct json *array = json_array_create_empty();
    struct probe_info info;

    for (size_t i = 0; find_probe(d, i, &info); i++) {
        json_array_add(array, probe(&info));
    }
    return array;
}

struct json *
node_probes_sum(const struct node_daemon *d)
{
    struct json *o = json_object_create();
    uint64_t sent = 0, returned = 0, lost = 0, late = 0, marked = 0, bad = 0;
    struct probe_info p;

    for (size_t i = 0; find_probe(d, i, &p); i++) {
        sent += p.n_sent;
        returned += p.n_returned;
        lost += p.n_lost;
        late += p.n_late;
        marked += p.n_marked;
        bad += p.health.state == PATH_BAD;
    }
    ctl_put_int(o, "sent", sent);
    ctl_put_int(o, "returned", returned);
    ctl_put_int(o, "lost", lost);
    ctl_put_int(o, "late", late);
    ctl_put_int(o, "marked", marked);
    ctl_put_int(o, "bad", bad);
    return o;
}
