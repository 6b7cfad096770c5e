/* SPDX-License-Identifier: Apache-2.0
 *
 * The control socket's listing of probes.  Only the first worker has any (lib/steer.h).
 */
#include <config.h>

#include "ctl/node/daemon.h"
#include "openvswitch/json.h"
#include "util.h"

static void
put_int(struct json *o, const char *name, uint64_t value)
{
    json_object_put(o, name, json_integer_create((long long int) value));
}

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

    put_int(o, "number", c->number);
    json_object_put_string(o, "kind", probe_kind_name(c->kind));
    json_object_put_string(o, "name", c->name);
    json_object_put_string(o, "plane", c->plane);
    put_int(o, "port", c->port);
    program_format(&c->program, program);
    json_object_put_string(o, "program", program);
    if (c->kind == PROBE_PEER) {
        program_format(&c->back, program);
        json_object_put_string(o, "back", program);
    }
    put_int(o, "interval_us", c->interval_usec);
    put_int(o, "timeout_us", c->timeout_usec);
    put_int(o, "large", c->large);
    json_object_put(o, "no_checksum", json_boolean_create(c->no_checksum));
    json_object_put_string(o, "state", path_state_name(p->health.state));
    put_int(o, "for_us", node_daemon_now() - p->health.since);
    put_int(o, "sent", p->n_sent);
    put_int(o, "returned", p->n_returned);
    put_int(o, "lost", p->n_lost);
    put_int(o, "late", p->n_late);
    put_int(o, "marked", p->n_marked);
    put_int(o, "rtt_us", p->rtt_usec);
    put_int(o, "rtt_mean_us", p->rtt_mean_usec);
    if (c->kind == PROBE_PEER) {
        put_int(o, "marked_back", p->n_marked_back);
        put_int(o, "lost_there", p->n_lost_there);
        put_int(o, "lost_back", p->n_lost_back);
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
    put_int(o, "sent", sent);
    put_int(o, "returned", returned);
    put_int(o, "lost", lost);
    put_int(o, "late", late);
    put_int(o, "marked", marked);
    put_int(o, "bad", bad);
    return o;
}
