/* SPDX-License-Identifier: Apache-2.0
 *
 * The control socket of swedge and srcagent: what a node has and counts.
 */
#include <config.h>

#include "ctl/node/daemon.h"

#include <arpa/inet.h>
#include <errno.h>

#include "ctl/process/listing.h"
#include "ctl/registry/values.h"
#include "lib/reverse.h"
#include "openvswitch/json.h"
#include "util.h"

static void
put_int(struct json *object, const char *name, uint64_t value)
{
    json_object_put(object, name, json_integer_create((long long int) value));
}

static void
put_addr(struct json *object, const char *name, const struct in6_addr *addr)
{
    char text[INET6_ADDRSTRLEN];
    json_object_put_string(object, name, inet_ntop(AF_INET6, addr, text, sizeof text));
}

static void
put_mac(struct json *object, const char *name, const uint8_t mac[6])
{
    char text[MAC_TEXT_SIZE];
    mac_format(mac, text);
    json_object_put_string(object, name, text);
}

static struct json *
ports(const struct node_daemon *d)
{
    char impairment[IMPAIR_TEXT_SIZE];
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < d->n_ports; i++) {
        const struct node_port *np = d->ports[d->numbers[i]];
        struct json *o = json_object_create();

        json_object_put_string(o, "name", np->config.name);
        put_int(o, "number", np->config.number);
        json_object_put_string(o, "kind", port_kind_name(np->config.kind));
        json_object_put_string(o, "role", port_role_name(np->config.role));
        put_mac(o, "mac", np->config.mac);
        json_object_put_string(o, "peer", np->config.peer);
        put_addr(o, "peer_address", &np->config.peer_address);
        impair_format(&np->config.rx, impairment);
        json_object_put_string(o, "rx_impairment", impairment);
        impair_format(&np->config.tx, impairment);
        json_object_put_string(o, "tx_impairment", impairment);
        json_object_put(o, "open", json_boolean_create(np->port != NULL));
        put_int(o, "mtu", np->port ? port_mtu(np->port) : 0);
        json_array_add(array, o);
    }
    return array;
}

static void
add_impaired(struct json *array, const struct node_port *np, const char *direction,
             const struct impair *im)
{
    struct json *o = json_object_create();
    struct impair_stats s;

    impair_get_stats(im, &s);
    json_object_put_string(o, "port", np->config.name);
    json_object_put_string(o, "direction", direction);
    put_int(o, "frames", s.n_frames);
    put_int(o, "queue_full", s.n_queue_full);
    put_int(o, "no_buffer", s.n_no_buffer);
    put_int(o, "lost", s.n_lost);
    put_int(o, "corrupted", s.n_corrupted);
    put_int(o, "late", s.n_late);
    put_int(o, "duplicated", s.n_duplicated);
    put_int(o, "held", impair_n_held(im));
    json_array_add(array, o);
}

/* What has become of frames on links that are made bad here. */
static struct json *
impaired(const struct node_daemon *d)
{
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < d->n_ports; i++) {
        const struct node_port *np = d->ports[d->numbers[i]];
        if (np->rx) {
            add_impaired(array, np, "rx", np->rx);
        }
        if (np->tx) {
            add_impaired(array, np, "tx", np->tx);
        }
    }
    return array;
}

static struct json *
counters(const struct node_daemon *d)
{
    struct json *o = json_object_create();
    struct json *by_port = json_object_create();
    struct json *by_reason = json_object_create();
    const uint64_t *drops = d->class->drops(d->node);

    for (size_t i = 0; i < d->n_ports; i++) {
        const struct node_port *np = d->ports[d->numbers[i]];
        struct json *p = json_object_create();
        put_int(p, "rx_packets", np->rx_packets);
        put_int(p, "rx_bytes", np->rx_bytes);
        put_int(p, "rx_errors", np->rx_errors);
        put_int(p, "tx_packets", np->tx_packets);
        put_int(p, "tx_bytes", np->tx_bytes);
        put_int(p, "tx_errors", np->tx_errors);
        put_int(p, "tx_too_long", np->tx_too_long);
        json_object_put(by_port, np->config.name, p);
    }
    for (enum drop_reason why = DROP_none + 1; why < N_DROP_REASONS; why++) {
        put_int(by_reason, drop_name(why), drops[why]);
    }
    json_object_put(o, "ports", by_port);
    json_object_put(o, "drops", by_reason);
    json_object_put(o, "impaired", impaired(d));
    put_int(o, "no_port", d->no_port);
    put_int(o, "buffers_free", packet_pool_n_free(d->pool));
    return o;
}

static struct json *
branch(const struct node_daemon *d, size_t tree, const struct branch_config *bc)
{
    static const char *const conds[] = {[REVERSE_NONE] = "none",
                                        [REVERSE_NAK] = "nak",
                                        [REVERSE_RNR] = "rnr",
                                        [REVERSE_FATAL] = "fatal"};
    static const char *const losses[] = {[LOSS_NONE] = "no",
                                         [LOSS_REFUSED] = "refused",
                                         [LOSS_SILENT] = "silent",
                                         [LOSS_SLOW] = "slow"};
    struct reverse_branch_info info;
    struct json *o = json_object_create();

    put_int(o, "id", bc->id);
    json_object_put_string(o, "name", bc->name);
    put_addr(o, "address", &bc->address);
    json_object_put_string(o, "kind", branch_kind_name(bc->kind));
    put_int(o, "qpn", bc->qpn);
    if (d->class->branch(d->node, tree, bc->id, &info)) {
        json_object_put(o, "anchored", json_boolean_create(info.anchored));
        put_int(o, "confirmed", info.una.v);
        json_object_put_string(o, "cond", conds[info.cond]);
        json_object_put_string(o, "lost", losses[info.lost]);
        json_object_put(o, "pruned", json_boolean_create(info.pruned));
        json_object_put(o, "slow", json_boolean_create(info.slow));
        put_int(o, "code", info.code);
        put_int(o, "acks", info.n_acks);
        put_int(o, "dups", info.n_dups);
        put_int(o, "naks", info.n_naks);
        put_int(o, "rnrs", info.n_rnrs);
        put_int(o, "fatals", info.n_fatals);
        put_int(o, "repeats", info.n_repeats);
        put_int(o, "useless", info.n_useless);
        put_int(o, "filtered", info.n_filtered);
    }
    return o;
}

static struct json *
group(const struct node_daemon *d, size_t tree)
{
    struct json *o = json_object_create();
    struct json *branches = json_array_create_empty();
    struct json *outer_da = json_array_create_empty();
    struct json *sent = json_object_create();
    struct tree_info info;

    d->class->tree(d->node, tree, &info);
    const struct tree_config *tc = info.config;
    const struct reverse_info *r = &info.reverse;
    json_object_put_string(o, "group", tc->group);
    put_int(o, "epoch", tc->epoch);
    put_addr(o, "proxy", &tc->proxy);
    put_int(o, "designated_qpn", tc->designated_qpn);
    put_int(o, "generation", tc->generation);
    put_addr(o, "source", &tc->source);
    put_int(o, "source_qpn", tc->source_qpn);
    put_int(o, "start_psn", tc->start_psn.v);
    json_object_put_string(o, "mode", tree_mode_name(tc->mode));
    json_object_put_string(o, "receivers", receivers_name(tc->provisioned));
    put_addr(o, "outer_source", &tc->outer_source);
    put_addr(o, "mcast_group", &tc->mcast_group);
    put_addr(o, "upstream", &tc->upstream);
    put_addr(o, "replication_sid", &tc->replication_sid);
    for (size_t i = 0; i < tc->n_outer_da; i++) {
        char text[INET6_ADDRSTRLEN];
        inet_ntop(AF_INET6, &tc->outer_da[i], text, sizeof text);
        json_array_add(outer_da, json_string_create(text));
    }
    json_object_put(o, "outer_da", outer_da);
    json_object_put(o, "root", json_boolean_create(tc->root));
    put_addr(o, "parent_sid", &tc->parent_sid);
    json_object_put(o, "started", json_boolean_create(info.started));
    json_object_put(o, "open", json_boolean_create(tc->open));
    json_object_put(o, "anchored", json_boolean_create(r->anchored));
    put_int(o, "sent_next", r->h.v);
    put_int(o, "confirmed", r->m.v);
    put_int(o, "told", r->f.v);
    put_int(o, "waiting", info.n_waiting);
    put_int(o, "lost", r->n_lost);
    json_object_put_string(o, "nak", nak_policy_name(tc->policy.nak));
    json_object_put(o, "filter", json_boolean_create(tc->policy.filter));
    json_object_put(o, "prune", json_boolean_create(tc->policy.prune));
    put_int(o, "liveness_ms", tc->policy.liveness_msec);
    put_int(o, "min_rate", tc->policy.min_rate);
    json_object_put_string(o, "slow", slow_policy_name(tc->policy.lose_slow));
    put_int(o, "qp_timeout", tc->policy.timeout);
    if (info.refused) {
        put_int(o, "refused_psn", info.refused_psn.v);
        put_int(o, "refused_syndrome", info.refused_syndrome);
    }
    for (size_t i = 0; i < tc->n_branches; i++) {
        json_array_add(branches, branch(d, tree, &tc->branches[i]));
    }
    json_object_put(o, "branches", branches);
    put_int(sent, "acks", r->n_sent_acks);
    put_int(sent, "dups", r->n_sent_dups);
    put_int(sent, "naks", r->n_sent_naks);
    put_int(sent, "rnrs", r->n_sent_rnrs);
    put_int(sent, "fatals", r->n_sent_fatals);
    put_int(sent, "presumed", r->n_sent_presumed);
    json_object_put(o, "sent", sent);
    return o;
}

static struct json *
groups(const struct node_daemon *d)
{
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < d->class->n_trees(d->node); i++) {
        json_array_add(array, group(d, i));
    }
    return array;
}

static struct json *
sids(const struct node_daemon *d)
{
    struct json *array = json_array_create_empty();
    struct sid_info info;

    for (size_t i = 0; d->class->sid && d->class->sid(d->node, i, &info); i++) {
        struct json *o = json_object_create();
        char text[INET6_ADDRSTRLEN];

        inet_ntop(AF_INET6, &info.prefix, text, sizeof text);
        json_object_put_format(o, "prefix", "%s/%d", text, info.plen);
        json_object_put_string(o, "behaviour", info.behaviour);
        put_int(o, "packets", info.n_packets);
        json_array_add(array, o);
    }
    return array;
}

static const char *
port_name(const struct node_daemon *d, uint16_t number)
{
    const struct node_port *np = number < NODE_MAX_PORTS ? d->ports[number] : NULL;

    return np ? np->config.name : "";
}

static struct json *
routes(const struct node_daemon *d)
{
    const struct l3 *l3 = d->class->l3(d->node);
    struct json *array = json_array_create_empty();
    struct route_config route;

    for (size_t i = 0; i < l3_n_routes(l3) && l3_get_route(l3, i, &route); i++) {
        struct json *o = json_object_create();
        char text[INET6_ADDRSTRLEN];

        inet_ntop(AF_INET6, &route.prefix, text, sizeof text);
        json_object_put_format(o, "prefix", "%s/%d", text, route.plen);
        put_addr(o, "next_hop", &route.next_hop);
        put_int(o, "port", route.port);
        json_object_put_string(o, "port_name", port_name(d, route.port));
        json_array_add(array, o);
    }
    return array;
}

static struct json *
neighbours(const struct node_daemon *d)
{
    const struct l3 *l3 = d->class->l3(d->node);
    struct json *array = json_array_create_empty();
    struct l3_neigh_info info;

    for (size_t i = 0; i < l3_n_neighs(l3) && l3_get_neigh(l3, i, &info); i++) {
        struct json *o = json_object_create();

        put_addr(o, "address", &info.addr);
        put_int(o, "port", info.port);
        json_object_put_string(o, "port_name", port_name(d, info.port));
        put_mac(o, "mac", info.mac);
        json_object_put(o, "resolved", json_boolean_create(info.resolved));
        json_array_add(array, o);
    }
    return array;
}

struct listing {
    const char *command;
    struct json *(*make)(const struct node_daemon *);
};

static const struct listing listings[] = {
    {"rocecast/ports", ports},
    {"rocecast/sids", sids},
    {"rocecast/groups", groups},
    {"rocecast/counters", counters},
    {"rocecast/routes", routes},
    {"rocecast/neighbours", neighbours},
    {"rocecast/capture-list", node_captures_to_json},
};

static const struct node_daemon *shown; /* one node a process. */

static void
list(struct unixctl_conn *conn, const void *listing_, bool as_json)
{
    const struct listing *listing = listing_;
    struct json *json = listing->make(shown);

    listing_reply(conn, json, as_json);
    json_destroy(json);
}

void
node_show_init(struct node_daemon *d)
{
    shown = d;
    for (size_t i = 0; i < ARRAY_SIZE(listings); i++) {
        listing_register(listings[i].command, list, &listings[i]);
    }
}
