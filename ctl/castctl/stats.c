/* SPDX-License-Identifier: Apache-2.0
 *
 * castctl stats: what agents have counted.
 */
#include <config.h>

#include "ctl/castctl/castctl.h"

#include <stdio.h>
#include <stdlib.h>

#include "ctl/registry/request.h"
#include "ctl/registry/values.h"
#include "lib/drop.h"
#include "openvswitch/shash.h"
#include "util.h"

bool
ctl_has_tree_of(const struct ctl *ctl, const struct rrec_node *node, const struct rrec_group *group)
{
    const struct rrec_tree_node *tree;

    RREC_TREE_NODE_FOR_EACH (tree, ctl->idl) {
        if ((!group || !strcmp(tree->proxy, group->proxy)) && ctl_node_of_tree(ctl, tree) == node) {
            return true;
        }
    }
    return false;
}

/* Those of an agent's groups that are wanted, without their configuration. */
static struct json *
groups_to_json(const struct json *groups, const struct rrec_group *only)
{
    static const char *const keys[] = {"group",     "epoch", "started", "anchored", "sent_next",
                                       "confirmed", "told",  "waiting", "sent",     "branches"};
    static const char *const some[] = {"packets", "down"}; /* that not all agents have. */
    struct json *array = json_array_create_empty();

    for (size_t i = 0; groups->type == JSON_ARRAY && i < groups->array.n; i++) {
        const struct json *group = groups->array.elems[i];

        if (only && strcmp(ctl_get_string(group, "proxy"), only->proxy)) {
            continue;
        }
        struct json *o = ctl_add_object(array);
        for (size_t j = 0; j < ARRAY_SIZE(keys); j++) {
            ctl_put_copy_or_null(o, keys[j], ctl_get(group, keys[j]));
        }
        for (size_t j = 0; j < ARRAY_SIZE(some); j++) {
            if (ctl_get(group, some[j])) {
                ctl_put_copy_or_null(o, some[j], ctl_get(group, some[j]));
            }
        }
    }
    return array;
}

/* Puts names in the place of addresses of nodes that made Fast CNPs; null for none. */
static void
name_nodes(const struct ctl *ctl, struct json *counters)
{
    const struct json_array *flows = ctl_get_array(counters, "flows");
    const struct rrec_node *row;

    for (size_t i = 0; i < flows->n; i++) {
        struct json *f = flows->elems[i];
        const char *address = ctl_get(f, "node") ? ctl_get_string(f, "node") : "::";
        struct json *name =
            strcmp(address, "::") ? json_string_create(address) : json_null_create();

        RREC_NODE_FOR_EACH (row, ctl->idl) {
            struct in6_addr own = node_address((uint16_t) row->id);

            if (!strcmp(ip6_text(&own), address)) {
                json_destroy(name);
                name = json_string_create(row->name);
            }
        }
        json_object_put(f, "node", name);
    }
}

/* The node's counters; null if its agent does not answer. */
static struct json *
node_to_json(const struct ctl *ctl, const struct rrec_node *node, const struct rrec_group *only)
{
    struct json *counters = ctl_agent_ask(ctl, node, "rocecast/counters");
    struct json *groups = counters ? ctl_agent_ask(ctl, node, "rocecast/groups") : NULL;

    if (!groups || counters->type != JSON_OBJECT) {
        json_destroy(counters);
        json_destroy(groups);
        return json_null_create();
    }
    json_object_put(counters, "groups", groups_to_json(groups, only));
    name_nodes(ctl, counters);
    json_destroy(groups);
    return counters;
}

/* An object of objects as an array, each with its name under 'key'. */
static struct json *
to_array(const struct json *object, const char *key)
{
    struct json *array = json_array_create_empty();
    const struct shash_node *member;

    if (object && object->type == JSON_OBJECT) {
        SHASH_FOR_EACH (member, json_object(object)) {
            struct json *o = json_deep_clone(member->data);

            json_object_put_string(o, key, member->name);
            json_array_add(array, o);
        }
    }
    ctl_sort_by(array, key);
    return array;
}

/* What a drop reason means; "" if only the agent knows it. */
static const char *
help_of(const char *reason)
{
    for (enum drop_reason why = DROP_none; why < N_DROP_REASONS; why++) {
        if (!strcmp(drop_name(why), reason)) {
            return drop_help(why);
        }
    }
    return "";
}

static void
print_ports(const struct json *counters)
{
    static const char *const keys[] = {"port",       "rx_packets",  "rx_bytes",
                                       "tx_packets", "tx_bytes",    "rx_errors",
                                       "tx_errors",  "tx_too_long", NULL};
    struct json *ports = to_array(ctl_get(counters, "ports"), "port");

    ctl_print_table(ports, keys, 2);
    json_destroy(ports);
}

/* Rows of 'list' whose port stands under 'keys[0]', which says what they are. */
static void
print_by_port(const struct json *counters, const char *list, const char *const keys[])
{
    const struct json_array *rows = ctl_get_array(counters, list);
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < rows->n; i++) {
        struct json *o = json_deep_clone(rows->elems[i]);

        json_object_put_string(o, keys[0], ctl_get_string(o, "port"));
        json_array_add(array, o);
    }
    ctl_print_table(array, keys, 2);
    json_destroy(array);
}

static void
print_impaired(const struct json *counters)
{
    static const char *const keys[] = {"impaired", "direction",  "frames", "queue_full",
                                       "marked",   "no_buffer",  "lost",   "corrupted",
                                       "late",     "duplicated", "held",   NULL};

    print_by_port(counters, "impaired", keys);
}

static void
print_queues(const struct json *counters)
{
    static const char *const keys[] = {
        "queue",     "frames", "depth", "depth_bytes", "max_depth", "max_depth_bytes",
        "congested", "marked", "full",  "red",         NULL};

    print_by_port(counters, "queues", keys);
}

/* What the node has done about congestion, if anything. */
static void
print_congestion(const struct json *counters)
{
    static const char *const keys[] = {"fast_cnps", "too_soon", "sender_limit", "node_limit",
                                       "unwanted",  "traced",   "trace_full",   NULL};
    const struct json *done = ctl_get(counters, "congestion");
    struct json *array = json_array_create_empty();
    bool any = false;

    for (size_t i = 0; done && keys[i]; i++) {
        any |= ctl_get_int(done, keys[i]) != 0;
    }
    if (any) {
        json_array_add(array, json_deep_clone(done));
    }
    ctl_print_table(array, keys, 2);
    json_destroy(array);
}

/* What the node's probes have found out, if it has any. */
static void
print_probes(const struct json *counters)
{
    static const char *const keys[] = {"probes", "returned", "lost", "late", "marked", "bad", NULL};
    const struct json *sum = ctl_get(counters, "probes");
    struct json *array = json_array_create_empty();

    if (sum && sum->type == JSON_OBJECT && ctl_get_int(sum, "sent")) {
        struct json *o = json_deep_clone(sum);

        ctl_put_int(o, "probes", ctl_get_int(sum, "sent"));
        json_array_add(array, o);
    }
    ctl_print_table(array, keys, 2);
    json_destroy(array);
}

static void
print_drops(const struct json *counters)
{
    static const char *const keys[] = {"dropped", "packets", "why", NULL};
    const struct json *drops = ctl_get(counters, "drops");
    struct json *array = json_array_create_empty();
    const struct shash_node *member;

    if (drops && drops->type == JSON_OBJECT) {
        SHASH_FOR_EACH (member, json_object(drops)) {
            if (ctl_get_int(drops, member->name)) {
                struct json *o = ctl_add_object(array);

                json_object_put_string(o, "dropped", member->name);
                ctl_put_int(o, "packets", ctl_get_int(drops, member->name));
                json_object_put_string(o, "why", help_of(member->name));
            }
        }
    }
    ctl_sort_by(array, "dropped");
    ctl_print_table(array, keys, 2);
    json_destroy(array);
}

/* Has an object of the array a number under 'key' that is not 0? */
static bool
any_has(const struct json *array, const char *key)
{
    for (size_t i = 0; i < array->array.n; i++) {
        if (ctl_get_int(array->array.elems[i], key)) {
            return true;
        }
    }
    return false;
}

static void
print_group(const struct json *group)
{
    static const char *const keys[] = {"branch",  "confirmed", "cond",     "acks",
                                       "dups",    "naks",      "rnrs",     "fatals",
                                       "repeats", "useless",   "filtered", NULL};
    static const char *const cnps[] = {"branch",      "cnps",     "cnps_limited",
                                       "cnps_chosen", "cnps_max", NULL};
    static const char *const sent[] = {"acks",   "dups",     "naks", "rnrs",
                                       "fatals", "presumed", "cnps"};
    const struct json_array *branches = ctl_get_array(group, "branches");
    struct json *array = json_array_create_empty();

    printf("  group %s epoch %" PRId64 ": ", ctl_get_string(group, "group"),
           ctl_get_int(group, "epoch"));
    if (!ctl_get_bool(group, "started")) {
        printf("nothing sent yet\n");
    } else if (ctl_get(group, "packets")) {
        printf("%" PRId64 " packets copied\n", ctl_get_int(group, "packets"));
    } else {
        printf("sent_next %" PRId64 "  confirmed %" PRId64 "  told %" PRId64 "\n",
               ctl_get_int(group, "sent_next"), ctl_get_int(group, "confirmed"),
               ctl_get_int(group, "told"));
    }
    if (ctl_get_bool(group, "started") && branches->n) {
        printf("    sent up:");
        for (size_t i = 0; i < ARRAY_SIZE(sent); i++) {
            printf("  %s %" PRId64, sent[i], ctl_get_int(ctl_get(group, "sent"), sent[i]));
        }
        putchar('\n');
    }
    if (ctl_get(group, "down")) {
        printf("    sent down:  packets %" PRId64 "  bytes %" PRId64 "\n",
               ctl_get_int(ctl_get(group, "down"), "packets"),
               ctl_get_int(ctl_get(group, "down"), "bytes"));
    }
    for (size_t i = 0; i < branches->n; i++) {
        if (ctl_get(branches->elems[i], "confirmed")) {
            struct json *o = json_deep_clone(branches->elems[i]);

            json_object_put_string(o, "branch", ctl_get_string(o, "name"));
            json_array_add(array, o);
        }
    }
    ctl_print_table(array, keys, 4);
    if (any_has(array, "cnps")) {
        ctl_print_table(array, cnps, 4);
    }
    json_destroy(array);
}

/* Flows of a source agent's host that were told of congestion. */
static void
print_flows(const struct json *counters)
{
    static const char *const keys[] = {"flow",    "dest_qp", "rate",      "waiting",
                                       "delayed", "cnps",    "fast_cnps", "cuts",
                                       "cause",   "node",    NULL};
    const struct json_array *flows = ctl_get_array(counters, "flows");
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < flows->n; i++) {
        const struct json *f = flows->elems[i], *group = ctl_get(f, "group");
        struct json *o = json_deep_clone(f);
        char rate[QUANTITY_SIZE];

        quantity_format(QUANTITY_RATE, (uint64_t) ctl_get_int(f, "rate"), rate, sizeof rate);
        json_object_put_string(o, "rate", ctl_get_int(f, "rate") ? rate : "free");
        json_object_put_string(
            o, "flow",
            ctl_get_string(f, group && group->type == JSON_STRING ? "group" : "destination"));
        if (!ctl_get(o, "cause")) { /* the first row says which columns there are. */
            json_object_put(o, "cause", json_null_create());
            json_object_put(o, "node", json_null_create());
        }
        json_array_add(array, o);
    }
    ctl_print_table(array, keys, 2);
    json_destroy(array);
}

/* Paths that something was sent on. */
static void
print_paths(const struct json *counters)
{
    static const char *const keys[] = {"destination", "path",  "name",   "flows", "packets",
                                       "bytes",       "moved", "errors", NULL};
    const struct json_array *paths = ctl_get_array(counters, "paths");
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < paths->n; i++) {
        if (ctl_get_int(paths->elems[i], "packets")) {
            json_array_add(array, json_deep_clone(paths->elems[i]));
        }
    }
    ctl_print_table(array, keys, 2);
    json_destroy(array);
}

static void
print_node(const char *name, const struct json *counters)
{
    const struct json_array *groups = ctl_get_array(counters, "groups");

    if (counters->type == JSON_NULL) {
        printf("%s (not reachable)\n", name);
        return;
    }
    printf("%s\n", name);
    print_ports(counters);
    print_impaired(counters);
    print_queues(counters);
    print_congestion(counters);
    print_drops(counters);
    print_flows(counters);
    print_paths(counters);
    print_probes(counters);
    for (size_t i = 0; i < groups->n; i++) {
        print_group(groups->elems[i]);
    }
    if (ctl_get_int(counters, "handover_full")) {
        printf("  %" PRId64 " frames for another thread, which was too slow\n",
               ctl_get_int(counters, "handover_full"));
    }
    if (ctl_get_int(counters, "no_port")) {
        printf("  %" PRId64 " frames for ports that do not exist\n",
               ctl_get_int(counters, "no_port"));
    }
    if (ctl_get(counters, "buffers_free")) {
        printf("  %" PRId64 " packet buffers free\n", ctl_get_int(counters, "buffers_free"));
    }
}

static void
print_stats(const struct json *all)
{
    struct json *text = ctl_json_printable(all);
    const struct shash_node **nodes = shash_sort(json_object(text));

    for (size_t i = 0; i < shash_count(json_object(text)); i++) {
        print_node(nodes[i]->name, nodes[i]->data);
    }
    free(nodes);
    json_destroy(text);
}

static void
stats(struct ctl *ctl)
{
    const struct rrec_node *one = ctl->argc ? ctl_find_node(ctl, ctl->argv[0]) : NULL;
    const struct rrec_group *group =
        ctl->argc && !one ? request_find_group(ctl->idl, ctl->argv[0]) : NULL;
    struct json *all = json_object_create();
    const struct rrec_node *node;
    bool partial = false;

    if (ctl->argc && !one && !group) {
        ctl_refuse(ctl, "no node or group named '%s'", ctl->argv[0]);
    }
    RREC_NODE_FOR_EACH (node, ctl->idl) {
        if (one ? node == one : !group || ctl_has_tree_of(ctl, node, group)) {
            struct json *counters = node_to_json(ctl, node, group);

            partial |= counters->type == JSON_NULL;
            json_object_put(all, node->name, counters);
        }
    }
    if (ctl->json) {
        ctl_print(ctl, all, NULL);
    } else {
        print_stats(all);
        json_destroy(all);
    }
    ctl_finish(partial);
}

const struct ctl_command ctl_stats_commands[] = {
    {"stats", "[NODE|GROUP]", 0, 1, CTL_INTENT, 0, NULL, stats,
     "counters of all nodes, of one, or of those in a group's tree: ports, drops, responses"},
    {.name = NULL},
};
