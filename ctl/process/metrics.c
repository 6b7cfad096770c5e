/* SPDX-License-Identifier: Apache-2.0
 *
 * The metrics of castd, of agents, of castbroker and of the registry.
 *
 * A new one is a row of the table, if a listing has the number, and a row of docs/metrics.md.
 */
#include <config.h>

#include "ctl/process/metrics.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/process/listing.h"
#include "ctl/process/openmetrics.h"
#include "ctl/registry/group-state.h"
#include "ctl/registry/json.h"
#include "lib/path-health.h"
#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "simap.h"
#include "unixctl.h"
#include "util.h"
#include "version.h"

#define PSN_MASK 0xffffff

#define GAUGE(NAME, OF, KEY, HELP)                                                         \
    {                                                                                      \
        .name = "rocecast_" NAME, .type = METRIC_GAUGE, .of = OF, .key = KEY, .help = HELP \
    }
#define COUNTER(NAME, OF, KEY, HELP)                                                         \
    {                                                                                        \
        .name = "rocecast_" NAME, .type = METRIC_COUNTER, .of = OF, .key = KEY, .help = HELP \
    }
#define GAUGE_BYTES(NAME, OF, KEY, HELP)                                           \
    {                                                                              \
        .name = "rocecast_" NAME "_bytes", METRIC_GAUGE, "bytes", OF, KEY, 0, HELP \
    }
#define COUNTER_BYTES(NAME, OF, KEY, HELP)                                           \
    {                                                                                \
        .name = "rocecast_" NAME "_bytes", METRIC_COUNTER, "bytes", OF, KEY, 0, HELP \
    }
/* The listing has microseconds. */
#define GAUGE_SECONDS(NAME, OF, KEY, HELP)                                             \
    {                                                                                  \
        .name = "rocecast_" NAME "_seconds", METRIC_GAUGE, "seconds", OF, KEY, 6, HELP \
    }

static const struct metric table[] = {
    {.name = "rocecast_build", .type = METRIC_INFO, .help = "Version of a program"},

    /* castd. */
    GAUGE("castd_active", "castd", "active", "1 in the castd that is active, 0 in one that is not"),
    GAUGE("castd_connected", "castd", "connected", "Whether castd is connected to the registry"),
    COUNTER("castd_connections", "castd", "connections",
            "Connections to the registry that castd has made"),
    COUNTER("castd_computations", "castd", "computations", "Computations"),
    COUNTER("castd_groups_computed", "castd", "groups_computed",
            "Groups that were computed, each as often as it was"),
    COUNTER("castd_transactions", "castd", "transactions",
            "Transactions that the registry has taken"),
    COUNTER("castd_conflicts", "castd", "conflicts",
            "Computations in vain, since others wrote in between"),
    COUNTER("castd_refusals", "castd", "refusals", "Transactions that the registry has refused"),

    /* castbroker. */
    GAUGE("broker_connected", "broker", "registry_connected",
          "Whether castbroker is connected to the registry"),
    COUNTER("broker_registry_connections", "broker", "registry_connections",
            "Connections to the registry that castbroker has made for itself"),
    GAUGE("broker_clients", "broker-role", "clients", "Clients that are connected, by role"),
    GAUGE("broker_unnamed_clients", "broker", "unnamed",
          "Clients that have not said yet who they are"),
    COUNTER("broker_client_connections", "broker", "connections",
            "Connections that clients have made"),
    COUNTER("broker_requests", "broker-role", "requests", "Requests of clients"),
    COUNTER("broker_transactions", "broker-role", "transactions",
            "Transactions among these that were passed on"),
    COUNTER("broker_refusals", NULL, NULL, "Clients and requests that were refused, by reason"),
    COUNTER_BYTES("broker_client", "broker", "client_bytes", "Bytes received from clients"),
    COUNTER_BYTES("broker_registry", "broker", "registry_bytes",
                  "Bytes received from the registry for clients"),

    /* The registry. */
    COUNTER("requests", "registry", "requests", "Requests of castctl and librocecast"),
    COUNTER("requests_answered", "registry", "answered", "Requests that castd has taken up"),
    GAUGE("hosts", "registry", "hosts", "Hosts"),
    GAUGE("links", "registry", "links", "Links"),
    GAUGE("node_wanted_generation", "node", "wanted", "Generation that the node is to apply"),
    GAUGE("node_applied_generation", "node", "applied", "Generation that the node has applied"),
    GAUGE("node_trees", "node", "trees",
          "Groups' trees, of all epochs, in which the node has a part"),
    GAUGE("group_state", NULL, NULL, "1 for the state in which the group is, 0 for others"),
    GAUGE("group_epoch", "group", "epoch", "Number of the group's epoch"),
    GAUGE("group_active_members", "group", "active_members", "Members that are served"),
    GAUGE("group_wanted_members", "group", "wanted_members", "Members that are served, or lacking"),
    GAUGE("group_members", "member-state", "n", "Members in each state that occurs"),
    GAUGE("member_active", "member", "active", "Whether the member is served"),
    GAUGE("connections", "connections", "n", "RDMA-CM connections, as the registry has them"),
    GAUGE("probed_paths", "probes", "n", "Paths that nodes probe, by what the probes have said"),
    GAUGE("faults", "faults", "n", "What is broken in the network, by nodes' probes"),

    /* Agents: ports. */
    GAUGE("port_open", "port", "open", "Whether the port's device is in use"),
    GAUGE_BYTES("port_mtu", "port", "mtu", "MTU of the port's device"),
    COUNTER("port_receive_packets", "port", "rx_packets", "Frames received"),
    COUNTER_BYTES("port_receive", "port", "rx_bytes", "Bytes of frames received"),
    COUNTER("port_receive_errors", "port", "rx_errors", "Frames that the device could not receive"),
    COUNTER("port_transmit_packets", "port", "tx_packets", "Frames sent"),
    COUNTER_BYTES("port_transmit", "port", "tx_bytes", "Bytes of frames sent"),
    COUNTER("port_transmit_errors", "port", "tx_errors", "Frames that the device has refused"),
    COUNTER("port_transmit_too_long", "port", "tx_too_long", "Frames longer than the device takes"),
    COUNTER("drops", NULL, NULL, "Packets that were dropped, by reason (lib/drop.h)"),
    COUNTER("unknown_port_frames", "agent", "no_port", "Frames for ports that do not exist"),
    COUNTER("handover_drops", "agent", "handover_full",
            "Frames for another thread, which was too slow"),
    GAUGE("buffers_free", "agent", "buffers_free", "Packet buffers that are free"),
    COUNTER("sid_packets", "sid", "packets", "Packets to a SID of the node"),
    COUNTER("thread_packets", "thread", "packets", "Frames that a forwarding thread has taken"),

    /* Links that are made bad, and queues of ports with a rate. */
    COUNTER("link_frames", "impaired", "frames", "Frames that came to a link that is made bad"),
    COUNTER("link_lost", "impaired", "lost", "Frames that such a link has lost"),
    COUNTER("link_corrupted", "impaired", "corrupted", "Frames that such a link has spoilt"),
    COUNTER("link_duplicated", "impaired", "duplicated", "Frames that such a link has repeated"),
    COUNTER("link_late", "impaired", "late", "Frames that such a link has let others overtake"),
    GAUGE("link_held", "impaired", "held", "Frames that such a link holds"),
    COUNTER("queue_frames", "queue", "frames", "Frames that came to the port's queue"),
    GAUGE("queue_depth", "queue", "depth", "Frames that wait in the port's queue"),
    GAUGE_BYTES("queue_depth", "queue", "depth_bytes", "Bytes of the frames that wait there"),
    COUNTER("queue_congested", "queue", "congested", "Frames that RED has hit when they came"),
    COUNTER("queue_marked", "queue", "marked", "Frames that have got CE"),
    COUNTER("queue_full", "queue", "full", "Frames dropped because the queue was full"),
    COUNTER("queue_red", "queue", "red", "Frames dropped by RED, since they are not ECN-capable"),

    /* Congestion. */
    COUNTER("fast_cnps_sent", "congestion", "fast_cnps", "Fast CNPs that the node has made"),
    COUNTER("flow_cnps", "flow", "cnps", "CNPs that told a source agent of this flow"),
    COUNTER("flow_fast_cnps", "flow", "fast_cnps",
            "Fast CNPs that told a source agent of this flow"),
    COUNTER("flow_cuts", "flow", "cuts", "How often the flow was made slower"),
    COUNTER("flow_delayed_packets", "flow", "delayed", "Packets of the flow that had to wait"),
    GAUGE("flow_waiting_packets", "flow", "waiting", "Packets of the flow that wait"),
    GAUGE("flow_rate_bits_per_second", "flow", "rate",
          "To how many bit/s the flow is limited; 0: not any more"),

    /* Trees: a group's epoch at a node. */
    GAUGE("tree_started", "tree", "started", "Whether the node has seen a packet of the epoch"),
    GAUGE("tree_unconfirmed_packets", NULL, NULL,
          "Packets sent down that the node does not know to be confirmed"),
    GAUGE("tree_waiting_packets", "tree", "waiting", "Packets that a source agent holds back"),
    GAUGE("tree_lost_branches", "tree", "lost", "Branches that the node has lost"),
    COUNTER("tree_packets", "tree", "packets", "Packets that another forwarder has copied"),
    COUNTER("tree_planes_failed", "tree", "planes_failed",
            "How often the node left a plane that failed"),
    COUNTER("tree_planes_moved", "tree", "planes_moved",
            "How often it took another plane that is preferred"),
    COUNTER("tree_down_packets", "down", "packets",
            "Requests that a source agent has sent, resends among them"),
    COUNTER_BYTES("tree_down", "down", "bytes", "Bytes of these, from the IPv6 header to the ICRC"),
    COUNTER("tree_up_acks", "up", "acks", "ACKs sent to the parent or to the source"),
    COUNTER("tree_up_repeated_acks", "up", "dups", "ACKs among these that were sent before"),
    COUNTER("tree_up_naks", "up", "naks", "Sequence NAKs sent likewise"),
    COUNTER("tree_up_rnr_naks", "up", "rnrs", "RNR NAKs sent likewise"),
    COUNTER("tree_up_fatal_naks", "up", "fatals", "Other NAKs sent likewise"),
    COUNTER("tree_up_presumed_naks", "up", "presumed",
            "NAKs among these for which no branch has asked"),
    COUNTER("tree_up_cnps", "up", "cnps", "CNPs sent likewise"),

    /* Their branches. */
    GAUGE("branch_unconfirmed_packets", NULL, NULL,
          "Packets sent down that the branch has not confirmed"),
    GAUGE("branch_lost", NULL, NULL, "Whether the branch is lost"),
    GAUGE("branch_slow", "branch", "slow", "Whether the branch is slow"),
    COUNTER("branch_acks", "branch", "acks", "ACKs taken in from the branch"),
    COUNTER("branch_repeated_acks", "branch", "dups", "ACKs among these that said nothing new"),
    COUNTER("branch_naks", "branch", "naks", "Sequence NAKs taken in"),
    COUNTER("branch_rnr_naks", "branch", "rnrs", "RNR NAKs taken in"),
    COUNTER("branch_fatal_naks", "branch", "fatals", "Other NAKs taken in"),
    COUNTER("branch_cnps", "branch", "cnps", "CNPs taken in"),
    COUNTER("branch_repeated_copies", "branch", "repeats",
            "Copies of what the branch was sent before"),
    COUNTER("branch_useless_copies", "branch", "useless",
            "Copies of what the branch had confirmed"),
    COUNTER("branch_filtered_copies", "branch", "filtered",
            "Copies that were not made, since the branch had confirmed them"),

    /* Paths, and their probes. */
    GAUGE("path_state", NULL, NULL, "1 for what the path's probe says, 0 for other states"),
    GAUGE("path_usable", "path", "usable", "Whether castd lets the node use the path"),
    GAUGE("path_up", "path", "up", "Whether the path's port is up"),
    GAUGE("path_flows", "path", "flows", "Flows that are on the path"),
    COUNTER("path_packets", "path", "packets", "Packets sent on the path"),
    COUNTER_BYTES("path", "path", "bytes", "Bytes of these, with the header"),
    COUNTER("path_switches", NULL, NULL, "Flows that came to the path from another one, by cause"),
    COUNTER("path_naks", "path", "naks", "NAKs made for hosts whose flows came to the path"),
    COUNTER("path_errors", "path", "errors", "ICMPv6 errors about packets on the path"),
    GAUGE("probe_state", NULL, NULL, "1 for what the probe says of its path, 0 for other states"),
    COUNTER("probes_sent", "probe", "sent", "Probes sent"),
    COUNTER("probes_returned", "probe", "returned", "Probes that came back, or were answered"),
    COUNTER("probes_lost", "probe", "lost", "Probes that did not in time"),
    COUNTER("probes_late", "probe", "late", "Probes that did after their time"),
    COUNTER("probes_marked", "probe", "marked", "Probes that met congestion"),
    COUNTER("probes_lost_there", "probe", "lost_there", "Probes lost on the way to the peer"),
    COUNTER("probes_lost_back", "probe", "lost_back", "Answers of the peer that were lost"),
    GAUGE_SECONDS("probe_rtt", "probe", "rtt_us",
                  "Round-trip time of the last probe that came back"),
    GAUGE_SECONDS("probe_rtt_mean", "probe", "rtt_mean_us", "Smoothed round-trip time"),
    GAUGE("agent_connections", NULL, NULL, "RDMA-CM connections that the node has"),
};

struct openmetrics *
metrics_create(void)
{
    return openmetrics_create(table, ARRAY_SIZE(table));
}

void
metrics_put_program(struct json *object)
{
    json_object_put_string(object, "program", program_name);
    json_object_put_string(object, "version", ROCECAST_VERSION);
}

/* A label of an object: its member of this name, or of another. */
#define MEMBER_AS(LABEL, OBJECT, KEY)      \
    {                                      \
        LABEL, ctl_get_string(OBJECT, KEY) \
    }
#define MEMBER(OBJECT, KEY) MEMBER_AS(KEY, OBJECT, KEY)

/* A number of an object as a label. */
#define NUMBER_SIZE         24
static const char *
number(const struct json *object, const char *key, char text[NUMBER_SIZE])
{
    snprintf(text, NUMBER_SIZE, "%" PRId64, ctl_get_int(object, key));
    return text;
}

/* Puts a sample for each word, of which one holds.  'labels' has room for one behind its last. */
static void
put_states(struct openmetrics *m, const char *name, const struct words *words, const char *state,
           struct metric_label labels[])
{
    size_t n = 0;

    while (labels[n].name) {
        n++;
    }
    for (unsigned int i = 0; i < words->n; i++) {
        labels[n] = (struct metric_label){"state", words_name(words, i)};
        openmetrics_put(m, name, !strcmp(words_name(words, i), state), labels);
    }
    labels[n].name = NULL;
}

/* Puts a sample for each member of 'counts', whose name is the reason.  'node' may be NULL. */
static void
put_reasons(struct openmetrics *m, const char *name, const struct json *counts, const char *node)
{
    const struct shash_node **reasons;

    if (!counts || counts->type != JSON_OBJECT) {
        return;
    }
    reasons = shash_sort(json_object(counts));
    for (size_t i = 0; i < shash_count(json_object(counts)); i++) {
        const struct metric_label reason = {"reason", reasons[i]->name};

        openmetrics_put(m, name, ctl_get_int(counts, reasons[i]->name),
                        node ? METRIC_LABELS({"node", node}, reason) : METRIC_LABELS(reason));
    }
    free(reasons);
}

void
metrics_add_castd(struct openmetrics *m, const struct json *castd)
{
    openmetrics_put(m, "rocecast_build", 1,
                    METRIC_LABELS(MEMBER(castd, "program"), MEMBER(castd, "version")));
    openmetrics_put_object(m, "castd", castd, METRIC_LABELS({NULL, NULL}));
}

char *
metrics_broker_text(const struct json *broker)
{
    struct openmetrics *m = metrics_create();
    const struct json_array *roles = ctl_get_array(broker, "roles");

    openmetrics_put(m, "rocecast_build", 1,
                    METRIC_LABELS(MEMBER(broker, "program"), MEMBER(broker, "version")));
    openmetrics_put_object(m, "broker", broker, METRIC_LABELS({NULL, NULL}));
    for (size_t i = 0; i < roles->n; i++) {
        const struct json *o = roles->elems[i];

        openmetrics_put_object(m, "broker-role", o, METRIC_LABELS(MEMBER(o, "role")));
    }
    put_reasons(m, "rocecast_broker_refusals", ctl_get(broker, "refusals"), NULL);
    return openmetrics_finish(m);
}

static void
add_groups(struct openmetrics *m, const struct json *summary)
{
    const struct json_array *groups = ctl_get_array(summary, "groups");
    const struct json_array *members = ctl_get_array(summary, "members");
    const struct json_array *states = ctl_get_array(summary, "states");

    for (size_t i = 0; i < groups->n; i++) {
        const struct json *o = groups->elems[i];
        struct metric_label labels[] = {MEMBER(o, "group"), {NULL, NULL}, {NULL, NULL}};

        openmetrics_put_object(m, "group", o, labels);
        put_states(m, "rocecast_group_state", &group_state_words, ctl_get_string(o, "state"),
                   labels);
    }
    for (size_t i = 0; i < members->n; i++) {
        const struct json *o = members->elems[i];

        openmetrics_put_object(m, "member", o,
                               METRIC_LABELS(MEMBER(o, "group"), MEMBER(o, "member")));
    }
    for (size_t i = 0; i < states->n; i++) {
        const struct json *o = states->elems[i];

        openmetrics_put_object(m, "member-state", o,
                               METRIC_LABELS(MEMBER(o, "group"), MEMBER(o, "state")));
    }
}

void
metrics_add_registry(struct openmetrics *m, const struct json *summary)
{
    const struct json_array *nodes = ctl_get_array(summary, "nodes");
    const struct json_array *connections = ctl_get_array(summary, "connections");
    const struct json_array *probes = ctl_get_array(summary, "probes");
    const struct json_array *faults = ctl_get_array(summary, "faults");

    openmetrics_put_object(m, "registry", summary, METRIC_LABELS({NULL, NULL}));
    for (size_t i = 0; i < nodes->n; i++) {
        const struct json *o = nodes->elems[i];

        openmetrics_put_object(m, "node", o, METRIC_LABELS(MEMBER(o, "node"), MEMBER(o, "role")));
    }
    add_groups(m, summary);
    for (size_t i = 0; i < connections->n; i++) {
        const struct json *o = connections->elems[i];

        openmetrics_put_object(
            m, "connections", o,
            METRIC_LABELS(MEMBER(o, "node"), MEMBER(o, "role"), MEMBER(o, "state")));
    }
    for (size_t i = 0; i < probes->n; i++) {
        const struct json *o = probes->elems[i];

        openmetrics_put_object(
            m, "probes", o,
            METRIC_LABELS(MEMBER(o, "node"), MEMBER(o, "kind"), MEMBER(o, "state")));
    }
    for (size_t i = 0; i < faults->n; i++) {
        const struct json *o = faults->elems[i];

        openmetrics_put_object(m, "faults", o, METRIC_LABELS(MEMBER(o, "confirmed")));
    }
}

/*
 * Nodes.
 */

/* Puts what 'counters' has of ports, by name, and what the listing of ports has. */
static void
add_ports(struct openmetrics *m, const char *node, const struct json *answer)
{
    const struct json *by_port = ctl_get(ctl_get(answer, "counters"), "ports");
    const struct json_array *ports = ctl_get_array(answer, "ports");
    const struct shash_node *port;

    for (size_t i = 0; i < ports->n; i++) {
        openmetrics_put_object(
            m, "port", ports->elems[i],
            METRIC_LABELS({"node", node}, MEMBER_AS("port", ports->elems[i], "name")));
    }
    if (by_port && by_port->type == JSON_OBJECT) {
        SHASH_FOR_EACH (port, json_object(by_port)) {
            openmetrics_put_object(m, "port", port->data,
                                   METRIC_LABELS({"node", node}, {"port", port->name}));
        }
    }
}

/* What a node has that packets pass, besides its ports. */
static void
add_forwarding(struct openmetrics *m, const char *node, const struct json *answer)
{
    const struct json *counters = ctl_get(answer, "counters");
    const struct json_array *impaired = ctl_get_array(counters, "impaired");
    const struct json_array *queues = ctl_get_array(counters, "queues");
    const struct json_array *sids = ctl_get_array(answer, "sids");
    const struct json_array *threads = ctl_get_array(answer, "threads");
    char text[NUMBER_SIZE];

    openmetrics_put_object(m, "agent", counters, METRIC_LABELS({"node", node}));
    openmetrics_put_object(m, "congestion", ctl_get(counters, "congestion"),
                           METRIC_LABELS({"node", node}));
    for (size_t i = 0; i < impaired->n; i++) {
        const struct json *o = impaired->elems[i];

        openmetrics_put_object(
            m, "impaired", o,
            METRIC_LABELS({"node", node}, MEMBER(o, "port"), MEMBER(o, "direction")));
    }
    for (size_t i = 0; i < queues->n; i++) {
        const struct json *o = queues->elems[i];

        openmetrics_put_object(m, "queue", o, METRIC_LABELS({"node", node}, MEMBER(o, "port")));
    }
    for (size_t i = 0; i < sids->n; i++) {
        const struct json *o = sids->elems[i];

        openmetrics_put_object(
            m, "sid", o,
            METRIC_LABELS({"node", node}, MEMBER_AS("sid", o, "prefix"), MEMBER(o, "behaviour")));
    }
    for (size_t i = 0; i < threads->n; i++) {
        const struct json *o = threads->elems[i];

        openmetrics_put_object(
            m, "thread", o, METRIC_LABELS({"node", node}, {"thread", number(o, "thread", text)}));
    }
}

static void
add_flows(struct openmetrics *m, const char *node, const struct json *counters)
{
    const struct json_array *flows = ctl_get_array(counters, "flows");
    char text[NUMBER_SIZE];

    for (size_t i = 0; i < flows->n; i++) {
        const struct json *o = flows->elems[i];

        openmetrics_put_object(m, "flow", o,
                               METRIC_LABELS({"node", node}, MEMBER(o, "destination"),
                                             {"dest_qp", number(o, "dest_qp", text)},
                                             MEMBER(o, "group")));
    }
}

/* How many packets of this tree are sent and not confirmed below 'psn'. */
static int64_t
unconfirmed(const struct json *tree, int64_t psn)
{
    return (ctl_get_int(tree, "sent_next") - psn) & PSN_MASK;
}

static void
add_branches(struct openmetrics *m, const char *node, const struct json *tree)
{
    const struct json_array *branches = ctl_get_array(tree, "branches");
    char text[NUMBER_SIZE];

    for (size_t i = 0; i < branches->n; i++) {
        const struct json *o = branches->elems[i];
        const struct metric_label *labels = METRIC_LABELS(
            {"node", node}, MEMBER(tree, "group"), {"epoch", number(tree, "epoch", text)},
            MEMBER_AS("branch", o, "name"), MEMBER(o, "kind"));

        openmetrics_put_object(m, "branch", o, labels);
        if (ctl_get(o, "lost")) {
            openmetrics_put(m, "rocecast_branch_lost", strcmp(ctl_get_string(o, "lost"), "no") != 0,
                            labels);
        }
        if (ctl_get_bool(tree, "started") && ctl_get_bool(o, "anchored")) {
            openmetrics_put(m, "rocecast_branch_unconfirmed_packets",
                            unconfirmed(tree, ctl_get_int(o, "confirmed")), labels);
        }
    }
}

static void
add_trees(struct openmetrics *m, const char *node, const struct json *answer)
{
    const struct json_array *trees = ctl_get_array(answer, "groups");
    char text[NUMBER_SIZE];

    for (size_t i = 0; i < trees->n; i++) {
        const struct json *o = trees->elems[i];
        const struct metric_label *labels =
            METRIC_LABELS({"node", node}, MEMBER(o, "group"), {"epoch", number(o, "epoch", text)});

        openmetrics_put_object(m, "tree", o, labels);
        openmetrics_put_object(m, "down", ctl_get(o, "down"), labels);
        openmetrics_put_object(m, "up", ctl_get(o, "sent"), labels);
        if (ctl_get_bool(o, "started") && ctl_get_bool(o, "anchored")) {
            openmetrics_put(m, "rocecast_tree_unconfirmed_packets",
                            unconfirmed(o, ctl_get_int(o, "confirmed")), labels);
        }
        add_branches(m, node, o);
    }
}

/* Flows that came to a path, by cause: members "moved_CAUSE". */
static void
add_switches(struct openmetrics *m, const struct json *path, struct metric_label labels[])
{
    static const char prefix[] = "moved_";
    const struct shash_node *member;
    size_t n = 0;

    while (labels[n].name) {
        n++;
    }
    SHASH_FOR_EACH (member, json_object(path)) {
        if (!strncmp(member->name, prefix, strlen(prefix))) {
            labels[n] = (struct metric_label){"cause", member->name + strlen(prefix)};
            openmetrics_put(m, "rocecast_path_switches", ctl_get_int(path, member->name), labels);
        }
    }
    labels[n].name = NULL;
}

static void
add_paths(struct openmetrics *m, const char *node, const struct json *counters)
{
    const struct json_array *paths = ctl_get_array(counters, "paths");
    char text[NUMBER_SIZE];

    for (size_t i = 0; i < paths->n; i++) {
        const struct json *o = paths->elems[i];
        struct metric_label labels[] = {{"node", node},
                                        MEMBER(o, "destination"),
                                        MEMBER_AS("path", o, "name"),
                                        {"number", number(o, "path", text)},
                                        MEMBER(o, "plane"),
                                        {NULL, NULL},
                                        {NULL, NULL}};

        if (o->type == JSON_OBJECT) {
            openmetrics_put_object(m, "path", o, labels);
            put_states(m, "rocecast_path_state", &path_state_words, ctl_get_string(o, "state"),
                       labels);
            add_switches(m, o, labels);
        }
    }
}

static void
add_probes(struct openmetrics *m, const char *node, const struct json *answer)
{
    const struct json_array *probes = ctl_get_array(answer, "probes");
    char text[NUMBER_SIZE];

    for (size_t i = 0; i < probes->n; i++) {
        const struct json *o = probes->elems[i];
        struct metric_label labels[] = {
            {"node", node},    MEMBER_AS("path", o, "name"), {"number", number(o, "number", text)},
            MEMBER(o, "kind"), MEMBER(o, "plane"),           {NULL, NULL},
            {NULL, NULL}};

        openmetrics_put_object(m, "probe", o, labels);
        put_states(m, "rocecast_probe_state", &path_state_words, ctl_get_string(o, "state"),
                   labels);
    }
}

static void
add_connections(struct openmetrics *m, const char *node, const struct json *answer)
{
    const struct json_array *connections = ctl_get_array(answer, "connections");
    struct simap counts = SIMAP_INITIALIZER(&counts);
    const struct simap_node *count;

    for (size_t i = 0; i < connections->n; i++) {
        const struct json *o = connections->elems[i];
        char *words = xasprintf("%s %s", ctl_get_string(o, "role"), ctl_get_string(o, "state"));

        simap_increase(&counts, words, 1);
        free(words);
    }
    SIMAP_FOR_EACH (count, &counts) {
        char *role = xmemdup0(count->name, strcspn(count->name, " "));

        openmetrics_put(m, "rocecast_agent_connections", count->data,
                        METRIC_LABELS({"node", node}, {"role", role},
                                      {"state", count->name + strlen(role) + 1}));
        free(role);
    }
    simap_destroy(&counts);
}

void
metrics_add_node(struct openmetrics *m, const char *node, const struct json *answer)
{
    const struct json *counters = ctl_get(answer, "counters");

    openmetrics_put(
        m, "rocecast_build", 1,
        METRIC_LABELS({"node", node}, MEMBER(answer, "program"), MEMBER(answer, "version")));
    add_ports(m, node, answer);
    put_reasons(m, "rocecast_drops", ctl_get(counters, "drops"), node);
    add_forwarding(m, node, answer);
    add_flows(m, node, counters);
    add_trees(m, node, answer);
    add_paths(m, node, counters);
    add_probes(m, node, answer);
    add_connections(m, node, answer);
}

void
metrics_reply_node(struct unixctl_conn *conn, const struct json *answer, bool as_json)
{
    if (as_json) {
        listing_reply(conn, answer, true);
        return;
    }
    struct openmetrics *m = metrics_create();

    metrics_add_node(m, ctl_get_string(answer, "node"), answer);
    char *text = openmetrics_finish(m);
    unixctl_command_reply(conn, text);
    free(text);
}
