/* SPDX-License-Identifier: Apache-2.0
 *
 * The control socket of castfwd: what castctl asks of any node, as far as these
 * forwarders know it, and what they were told.
 */
#include <config.h>

#include <stdlib.h>

#include "castfwd/castfwd.h"
#include "ctl/process/listing.h"
#include "ctl/process/metrics.h"
#include "ctl/registry/values.h"
#include "openvswitch/json.h"
#include "util.h"

static void
put_int(struct json *object, const char *name, unsigned long long value)
{
    json_object_put(object, name, json_integer_create((long long int) value));
}

static struct json *
ports(const struct forwarder *f)
{
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < f->config.n_ports; i++) {
        const struct port_config *port = &f->config.ports[i];
        struct json *o = json_object_create();
        char mac[MAC_TEXT_SIZE];

        json_object_put_string(o, "name", port->name);
        put_int(o, "number", port->number);
        mac_format(port->mac, mac);
        json_object_put_string(o, "mac", mac);
        json_object_put_string(o, "peer", port->peer);
        json_object_put_string(o, "peer_address", ip6_text(&port->peer_address));
        mac_format(port->peer_mac, mac);
        json_object_put_string(o, "peer_mac", mac);
        json_object_put(o, "open", json_boolean_create(device_index(f, port->name) != 0));
        put_int(o, "mtu", (unsigned long long) device_mtu(f, port->name));
        json_array_add(array, o);
    }
    return array;
}

static struct json *
counters(const struct forwarder *f)
{
    struct json *o = json_object_create();
    struct json *by_port = json_object_create();

    for (size_t i = 0; i < f->config.n_ports; i++) {
        const char *name = f->config.ports[i].name;
        struct json *p = json_object_create();
        struct device_counters c;

        device_count(name, &c);
        put_int(p, "rx_packets", c.rx_packets);
        put_int(p, "rx_bytes", c.rx_bytes);
        put_int(p, "rx_errors", c.rx_errors);
        put_int(p, "tx_packets", c.tx_packets);
        put_int(p, "tx_bytes", c.tx_bytes);
        put_int(p, "tx_errors", c.tx_errors);
        put_int(p, "tx_too_long", 0);
        json_object_put(by_port, name, p);
    }
    json_object_put(o, "ports", by_port);
    json_object_put(o, "drops", f->backend ? f->backend->drops(f) : json_object_create());
    json_object_put(o, "impaired", json_array_create_empty());
    json_object_put(o, "queues", json_array_create_empty());
    return o;
}

static struct json *
groups(const struct forwarder *f)
{
    unsigned long long *copied = xcalloc(f->config.n_trees + 1, sizeof *copied);
    struct json *array = json_array_create_empty();

    if (f->config.n_trees && f->backend->copied) {
        f->backend->copied(f, copied);
    }
    for (size_t i = 0; i < f->config.n_trees; i++) {
        const struct tree_config *t = &f->config.trees[i];
        struct json *o = json_object_create();
        struct json *outer_da = json_array_create_empty();

        for (size_t j = 0; j < t->n_outer_da; j++) {
            json_array_add(outer_da, json_string_create(ip6_text(&t->outer_da[j])));
        }
        json_object_put_string(o, "group", t->group);
        put_int(o, "epoch", t->epoch);
        json_object_put_string(o, "proxy", ip6_text(&t->proxy));
        put_int(o, "designated_qpn", t->designated_qpn);
        put_int(o, "generation", t->generation);
        json_object_put_string(o, "replication_sid", ip6_text(&t->replication_sid));
        json_object_put(o, "outer_da", outer_da);
        json_object_put(o, "branches", json_array_create_empty());
        json_object_put(o, "started", json_boolean_create(copied[i] > 0));
        put_int(o, "packets", copied[i]);
        json_array_add(array, o);
    }
    free(copied);
    return array;
}

/* Those that the forwarder has. */
static struct json *
sids(const struct forwarder *f)
{
    struct json *array = json_array_create_empty();
    char *statistics = f->backend ? f->backend->statistics(f) : NULL;

    for (size_t i = 0; statistics && i < f->config.n_sids; i++) {
        const struct sid_config *sid = &f->config.sids[i];
        unsigned long long packets;

        if (f->backend->counted(sid, statistics, &packets)) {
            struct json *o = json_object_create();

            json_object_put_format(o, "prefix", "%s/%u", ip6_text(&sid->prefix), sid->plen);
            json_object_put_string(o, "behaviour", sid_behaviour(sid->behaviour)->text);
            put_int(o, "packets", packets);
            json_array_add(array, o);
        }
    }
    free(statistics);
    return array;
}

static struct json *
rules(const struct forwarder *f)
{
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < f->rules.n; i++) {
        json_array_add(array, json_string_create(f->rules.names[i]));
    }
    return array;
}

/* One a process. */
static struct worker *shown;
static const char *node_name;

/* What metrics are made from: the listings that have them. */
static struct json *
metrics(const struct forwarder *f)
{
    struct json *o = json_object_create();

    metrics_put_program(o);
    json_object_put_string(o, "node", node_name);
    json_object_put(o, "ports", ports(f));
    json_object_put(o, "counters", counters(f));
    json_object_put(o, "groups", groups(f));
    json_object_put(o, "sids", sids(f));
    return o;
}

static const struct listing listings[] = {
    {"rocecast/ports", ports, listing_reply},   {"rocecast/counters", counters, listing_reply},
    {"rocecast/groups", groups, listing_reply}, {"rocecast/sids", sids, listing_reply},
    {"rocecast/rules", rules, listing_reply},   {METRICS_COMMAND, metrics, metrics_reply_node},
};

static void
list(struct unixctl_conn *conn, const void *listing, bool as_json)
{
    worker_list(shown, listing, conn, as_json);
}

void
show_init(struct worker *worker, const char *node)
{
    shown = worker;
    node_name = node;
    for (size_t i = 0; i < ARRAY_SIZE(listings); i++) {
        listing_register(listings[i].command, list, &listings[i]);
    }
}
