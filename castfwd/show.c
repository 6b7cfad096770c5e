/* SPDX-License-Identifier: Apache-2.0
 *
 * The control socket of castfwd: what castctl asks of any node, as far as these
 * forwarders know it, and what they were told.
 */
#include <config.h>

#include <stdlib.h>

#include "castfwd/castfwd.h"
#include "ctl/node-daemon.h"
#include "ctl/values.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/json.h"
#include "unixctl.h"
#include "util.h"

static void
put_int(struct json *object, const char *name, unsigned long long value)
{
    json_object_put(object, name, json_integer_create((long long int) value));
}

/* What the kernel counts of all devices, "[{"ifname": ..., "stats64": {...}}]"; NULL: nothing. */
static struct json *
device_stats(const struct forwarder *f)
{
    static const char *const argv[] = {"ip", "-s", "-j", "link", "show", NULL};
    char *text = NULL;
    char *error = command_run(f->devices.netns_fd, argv, NULL, &text);
    struct json *stats = error ? NULL : json_from_string(text);

    free(error);
    free(text);
    if (stats && stats->type != JSON_ARRAY) {
        json_destroy(stats);
        stats = NULL;
    }
    return stats;
}

static const struct json *
member(const struct json *object, const char *name)
{
    return object && object->type == JSON_OBJECT ? shash_find_data(json_object(object), name)
                                                 : NULL;
}

static unsigned long long
count(const struct json *stats, const char *direction, const char *name)
{
    const struct json *n = member(member(member(stats, "stats64"), direction), name);

    return n && n->type == JSON_INTEGER ? (unsigned long long) json_integer(n) : 0;
}

static const struct json *
stats_of(const struct json *all, const char *device)
{
    for (size_t i = 0; all && i < all->array.n; i++) {
        const struct json *name = member(all->array.elems[i], "ifname");

        if (name && name->type == JSON_STRING && !strcmp(json_string(name), device)) {
            return all->array.elems[i];
        }
    }
    return NULL;
}

static struct json *
ports(const struct forwarder *f)
{
    struct json *array = json_array_create_empty();
    struct json *all = device_stats(f);

    for (size_t i = 0; i < f->config.n_ports; i++) {
        const struct port_config *port = &f->config.ports[i];
        const struct json *stats = stats_of(all, port->name);
        const struct json *mtu = member(stats, "mtu");
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
        json_object_put(o, "open", json_boolean_create(stats != NULL));
        put_int(o, "mtu", mtu ? (unsigned long long) json_integer(mtu) : 0);
        json_array_add(array, o);
    }
    json_destroy(all);
    return array;
}

static struct json *
counters(const struct forwarder *f)
{
    struct json *o = json_object_create();
    struct json *by_port = json_object_create();
    struct json *all = device_stats(f);

    for (size_t i = 0; i < f->config.n_ports; i++) {
        const char *name = f->config.ports[i].name;
        const struct json *stats = stats_of(all, name);
        struct json *p = json_object_create();

        put_int(p, "rx_packets", count(stats, "rx", "packets"));
        put_int(p, "rx_bytes", count(stats, "rx", "bytes"));
        put_int(p, "rx_errors", count(stats, "rx", "errors"));
        put_int(p, "tx_packets", count(stats, "tx", "packets"));
        put_int(p, "tx_bytes", count(stats, "tx", "bytes"));
        put_int(p, "tx_errors", count(stats, "tx", "errors") + count(stats, "tx", "dropped"));
        put_int(p, "tx_too_long", 0);
        json_object_put(by_port, name, p);
    }
    json_destroy(all);
    json_object_put(o, "ports", by_port);
    json_object_put(o, "drops", f->backend ? f->backend->drops(f) : json_object_create());
    json_object_put(o, "impaired", json_array_create_empty());
    return o;
}

static struct json *
groups(const struct forwarder *f)
{
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < f->config.n_trees; i++) {
        const struct tree_config *t = &f->config.trees[i];
        unsigned long long n = f->backend->copied ? f->backend->copied(f, t) : 0;
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
        json_object_put(o, "started", json_boolean_create(n > 0));
        put_int(o, "packets", n);
        json_array_add(array, o);
    }
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

struct listing {
    const char *command;
    struct json *(*make)(const struct forwarder *);
};

static const struct listing listings[] = {
    {"rocecast/ports", ports},
    {"rocecast/counters", counters},
    {"rocecast/groups", groups},
    {"rocecast/rules", rules},
};

static const struct forwarder *shown; /* one a process. */

static void
list(struct unixctl_conn *conn, int argc, const char *argv[], void *listing_)
{
    const struct listing *listing = listing_;

    if (argc > 1 && strcmp(argv[1], "-j")) {
        unixctl_command_reply_error(conn, "the only argument is -j");
        return;
    }
    struct json *json = listing->make(shown);
    node_show_reply(conn, json, argc > 1);
    json_destroy(json);
}

void
show_init(const struct forwarder *f)
{
    shown = f;
    for (size_t i = 0; i < ARRAY_SIZE(listings); i++) {
        unixctl_command_register(listings[i].command, "[-j]", 0, 1, list,
                                 CONST_CAST(struct listing *, &listings[i]));
    }
}
