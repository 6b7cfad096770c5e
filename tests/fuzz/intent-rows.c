/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of the registry that text describes, as the IDL would hold them.
 */
#include <config.h>

#include "tests/fuzz/intent-rows.h"

#include <stdlib.h>

#include "ctl/registry/rocecast-idl.h"
#include "util.h"

#define MAX_ROWS 12 /* of each table. */

#define STR(S)   CONST_CAST(char *, S)

/* All rows, and the arrays by which they refer to each other. */
static struct rows {
    struct rrec_node node;
    struct rrec_port ports[MAX_ROWS];
    struct rrec_route routes[MAX_ROWS];
    struct rrec_location locations[MAX_ROWS];
    struct rrec_sid sids[MAX_ROWS];
    struct rrec_tree_node trees[MAX_ROWS];
    struct rrec_branch branches[MAX_ROWS], copies[MAX_ROWS];
    struct rrec_node_key keys[MAX_ROWS];
    struct rrec_destination destinations[MAX_ROWS];
    struct rrec_path paths[MAX_ROWS];
    struct rrec_probe probes[MAX_ROWS];
    struct rrec_plane planes[MAX_ROWS], parent_planes[MAX_ROWS];
    struct rrec_port *port_refs[MAX_ROWS];
    struct rrec_route *route_refs[MAX_ROWS];
    struct rrec_location *location_refs[MAX_ROWS];
    size_t n_locations;
    int64_t hop_nodes[MAX_ROWS], hop_ports[MAX_ROWS];
    struct rrec_sid *sid_refs[MAX_ROWS];
    struct rrec_tree_node *tree_refs[MAX_ROWS];
    struct rrec_branch *branch_refs[MAX_ROWS], *copy_refs[MAX_ROWS];
    struct rrec_node_key *key_refs[MAX_ROWS];
    struct rrec_destination *destination_refs[MAX_ROWS];
    struct rrec_path *path_refs[MAX_ROWS];
    struct rrec_probe *probe_refs[MAX_ROWS];
    struct rrec_plane *plane_refs[MAX_ROWS], *parent_plane_refs[MAX_ROWS];
    char *outer_das[MAX_ROWS], *auths[MAX_ROWS], *probers[MAX_ROWS];
    int64_t plane_probes[MAX_ROWS];
    /* Of all trees; each has its part of the arrays. */
    size_t n_branches, n_copies, n_keys, n_outer_das, n_auths, n_planes, n_parent_planes;
    size_t n_plane_probes;        /* of all planes, likewise. */
    size_t n_paths;               /* of all destinations, likewise. */
    char texts[12][MAX_ROWS][32]; /* of defaults that differ from row to row. */
    /* The row begun last. */
    const struct table *table;
    void *row;
} rows;

/* Columns: where they are in their row, of which type, and what of that the schema lets through. */
enum type { TEXT, NUMBER, TRUTH };
struct column {
    const char *name;
    size_t ofs;
    enum type type;
    const char *words; /* with a space before and after each; NULL: any. */
    int64_t min, max;  /* both 0: any. */
};
#define COLUMN(ROW, NAME, ...)                         \
    {                                                  \
#NAME, offsetof(struct ROW, NAME), __VA_ARGS__ \
    }
#define TEXT_COLUMN(ROW, NAME)            COLUMN(ROW, NAME, TEXT, NULL, 0, 0)
#define WORD_COLUMN(ROW, NAME, WORDS)     COLUMN(ROW, NAME, TEXT, WORDS, 0, 0)
#define NUMBER_COLUMN(ROW, NAME)          COLUMN(ROW, NAME, NUMBER, NULL, 0, 0)
#define RANGE_COLUMN(ROW, NAME, MIN, MAX) COLUMN(ROW, NAME, NUMBER, NULL, MIN, MAX)
#define TRUTH_COLUMN(ROW, NAME)           COLUMN(ROW, NAME, TRUTH, NULL, 0, 0)
#define END_OF_COLUMNS            \
    {                             \
        NULL, 0, TEXT, NULL, 0, 0 \
    }

static const struct column node_columns[] = {
    TEXT_COLUMN(rrec_node, name),
    WORD_COLUMN(rrec_node, role, " switch agent ovs router "),
    RANGE_COLUMN(rrec_node, id, 1, 57343),
    NUMBER_COLUMN(rrec_node, cfg),
    TRUTH_COLUMN(rrec_node, verify_always),
    RANGE_COLUMN(rrec_node, cnp_interval, 0, 1000000),
    RANGE_COLUMN(rrec_node, fast_cnp_rate, 0, 1000000),
    TRUTH_COLUMN(rrec_node, fast_cnp),
    TRUTH_COLUMN(rrec_node, fast_cnp_any_icrc),
    TRUTH_COLUMN(rrec_node, trace),
    WORD_COLUMN(rrec_node, rate_control, " agent nic none "),
    WORD_COLUMN(rrec_node, controller, " dcqcn depth "),
    RANGE_COLUMN(rrec_node, line_rate, 0, 1000000000000),
    RANGE_COLUMN(rrec_node, rate_floor, 0, 1000000000000),
    END_OF_COLUMNS,
};
static const struct column port_columns[] = {
    TEXT_COLUMN(rrec_port, name),
    RANGE_COLUMN(rrec_port, number, 1, 4095),
    WORD_COLUMN(rrec_port, kind, " tap packet xdp "),
    WORD_COLUMN(rrec_port, role, " host agent fabric "),
    TEXT_COLUMN(rrec_port, mac),
    TEXT_COLUMN(rrec_port, peer),
    TEXT_COLUMN(rrec_port, peer_address),
    TEXT_COLUMN(rrec_port, rx_impairment),
    TEXT_COLUMN(rrec_port, tx_impairment),
    TEXT_COLUMN(rrec_port, peer_mac),
    TRUTH_COLUMN(rrec_port, external),
    END_OF_COLUMNS,
};
static const struct column route_columns[] = {
    TEXT_COLUMN(rrec_route, prefix),
    NUMBER_COLUMN(rrec_route, port),
    TEXT_COLUMN(rrec_route, next_hop),
    END_OF_COLUMNS,
};
static const struct column location_columns[] = {
    TEXT_COLUMN(rrec_location, address),
    RANGE_COLUMN(rrec_location, node, 1, 57343),
    END_OF_COLUMNS,
};
static const struct column sid_columns[] = {
    TEXT_COLUMN(rrec_sid, prefix),
    WORD_COLUMN(rrec_sid, behaviour,
                " uN End End.MT End.Response End.DT6 uA End.DX6 End.X End.Replicate "),
    RANGE_COLUMN(rrec_sid, block_len, 0, 120),
    RANGE_COLUMN(rrec_sid, port, 0, 4095),
    END_OF_COLUMNS,
};
static const struct column tree_columns[] = {
    TEXT_COLUMN(rrec_tree_node, group),
    NUMBER_COLUMN(rrec_tree_node, generation),
    NUMBER_COLUMN(rrec_tree_node, epoch),
    TEXT_COLUMN(rrec_tree_node, proxy),
    NUMBER_COLUMN(rrec_tree_node, designated_qpn),
    NUMBER_COLUMN(rrec_tree_node, start_psn),
    NUMBER_COLUMN(rrec_tree_node, mtu),
    NUMBER_COLUMN(rrec_tree_node, designated_rkey),
    NUMBER_COLUMN(rrec_tree_node, region_len),
    TEXT_COLUMN(rrec_tree_node, source_address),
    NUMBER_COLUMN(rrec_tree_node, source_qpn),
    TRUTH_COLUMN(rrec_tree_node, root),
    TEXT_COLUMN(rrec_tree_node, replication_sid),
    TEXT_COLUMN(rrec_tree_node, parent_sid),
    TEXT_COLUMN(rrec_tree_node, parent_program),
    TEXT_COLUMN(rrec_tree_node, outer_program),
    WORD_COLUMN(rrec_tree_node, mode, " replicate mcast ingress "),
    TRUTH_COLUMN(rrec_tree_node, provisioned),
    TEXT_COLUMN(rrec_tree_node, mcast_group),
    TEXT_COLUMN(rrec_tree_node, outer_source),
    TEXT_COLUMN(rrec_tree_node, upstream),
    WORD_COLUMN(rrec_tree_node, nak, " hold literal solicit "),
    TRUTH_COLUMN(rrec_tree_node, filter),
    TRUTH_COLUMN(rrec_tree_node, prune),
    RANGE_COLUMN(rrec_tree_node, liveness, 0, UINT32_MAX),
    RANGE_COLUMN(rrec_tree_node, min_rate, 0, UINT32_MAX),
    TRUTH_COLUMN(rrec_tree_node, lose_slow),
    RANGE_COLUMN(rrec_tree_node, timeout, 0, 31),
    WORD_COLUMN(rrec_tree_node, cnp, " auto edge nic off "),
    RANGE_COLUMN(rrec_tree_node, cnp_window, 0, 1000000),
    RANGE_COLUMN(rrec_tree_node, trace_slots, 0, 11),
    RANGE_COLUMN(rrec_tree_node, rate_floor, 0, 1000000000000),
    RANGE_COLUMN(rrec_tree_node, auth_key, 0, UINT32_MAX),
    TRUTH_COLUMN(rrec_tree_node, open),
    TRUTH_COLUMN(rrec_tree_node, started),
    END_OF_COLUMNS,
};
static const struct column branch_columns[] = {
    NUMBER_COLUMN(rrec_branch, id),   WORD_COLUMN(rrec_branch, kind, " receiver node "),
    TEXT_COLUMN(rrec_branch, name),   TEXT_COLUMN(rrec_branch, address),
    TEXT_COLUMN(rrec_branch, edge),   NUMBER_COLUMN(rrec_branch, qpn),
    NUMBER_COLUMN(rrec_branch, rkey), TEXT_COLUMN(rrec_branch, va),
    NUMBER_COLUMN(rrec_branch, len),  END_OF_COLUMNS,
};

static const struct column key_columns[] = {
    RANGE_COLUMN(rrec_node_key, id, 1, UINT32_MAX),
    TEXT_COLUMN(rrec_node_key, secret),
    END_OF_COLUMNS,
};

#define POLICIES " none failover spread message spray "
static const struct column destination_columns[] = {
    TEXT_COLUMN(rrec_destination, name),
    TEXT_COLUMN(rrec_destination, address),
    WORD_COLUMN(rrec_destination, policy, POLICIES),
    RANGE_COLUMN(rrec_destination, pinned, 0, 4095),
    END_OF_COLUMNS,
};
static const struct column path_columns[] = {
    RANGE_COLUMN(rrec_path, number, 1, 4095),
    RANGE_COLUMN(rrec_path, rank, 1, 4095),
    TEXT_COLUMN(rrec_path, name),
    TEXT_COLUMN(rrec_path, plane),
    TRUTH_COLUMN(rrec_path, usable),
    RANGE_COLUMN(rrec_path, port, 0, 4095),
    RANGE_COLUMN(rrec_path, probe, 0, 4095),
    TEXT_COLUMN(rrec_path, program),
    END_OF_COLUMNS,
};
static const struct column probe_columns[] = {
    RANGE_COLUMN(rrec_probe, number, 1, 4095),
    WORD_COLUMN(rrec_probe, kind, " loop peer "),
    TEXT_COLUMN(rrec_probe, name),
    TEXT_COLUMN(rrec_probe, plane),
    RANGE_COLUMN(rrec_probe, port, 1, 4095),
    TEXT_COLUMN(rrec_probe, peer),
    TEXT_COLUMN(rrec_probe, program),
    TEXT_COLUMN(rrec_probe, back),
    RANGE_COLUMN(rrec_probe, reverse, 0, 4095),
    RANGE_COLUMN(rrec_probe, interval, 1, 60000),
    RANGE_COLUMN(rrec_probe, timeout, 1, 60000),
    RANGE_COLUMN(rrec_probe, large, 0, 65535),
    TRUTH_COLUMN(rrec_probe, no_checksum),
    END_OF_COLUMNS,
};
static const struct column plane_columns[] = {
    TEXT_COLUMN(rrec_plane, name),
    TEXT_COLUMN(rrec_plane, sid),
    TEXT_COLUMN(rrec_plane, program),
    RANGE_COLUMN(rrec_plane, port, 0, 4095),
    TRUTH_COLUMN(rrec_plane, usable),
    TRUTH_COLUMN(rrec_plane, preferred),
    END_OF_COLUMNS,
};

/* A text with the row's number in it, as the default of a column. */
static char *
numbered(int which, size_t i, const char *before, const char *after)
{
    char *text = rows.texts[which][i];

    snprintf(text, sizeof rows.texts[which][i], "%s%zx%s", before, i + 1, after);
    return text;
}

/* Each begins a row; NULL: there are enough. */

static void *
new_node(void)
{
    return &rows.node;
}

static void *
new_port(void)
{
    size_t i = rows.node.n_ports;

    if (i == MAX_ROWS) {
        return NULL;
    }
    rows.ports[i] = (struct rrec_port){
        .name = numbered(0, i, "p", ""),
        .number = (int64_t) i + 1,
        .kind = STR("tap"),
        .role = STR("host"),
        .mac = STR("02:5f:01:00:00:01"),
        .peer = STR("r1"),
        .peer_address = STR("fd00:1::1"),
        .peer_mac = STR("02:5f:02:00:00:01"),
        .rx_impairment = STR(""),
        .tx_impairment = STR(""),
    };
    rows.port_refs[i] = &rows.ports[i];
    rows.node.n_ports++;
    return &rows.ports[i];
}

static void *
new_route(void)
{
    size_t i = rows.node.n_routes;

    if (i == MAX_ROWS) {
        return NULL;
    }
    rows.routes[i] = (struct rrec_route){
        .prefix = numbered(1, i, "fd00:1::", "/128"), .port = 1, .next_hop = STR("::")};
    rows.route_refs[i] = &rows.routes[i];
    rows.node.n_routes++;
    return &rows.routes[i];
}

static void *
new_location(void)
{
    size_t i = rows.n_locations;

    if (i == MAX_ROWS) {
        return NULL;
    }
    rows.locations[i] =
        (struct rrec_location){.address = numbered(11, i, "fd00:2::", ""), .node = 257};
    rows.location_refs[i] = &rows.locations[i];
    rows.n_locations++;
    return &rows.locations[i];
}

static void *
new_sid(void)
{
    size_t i = rows.node.n_sids;

    if (i == MAX_ROWS) {
        return NULL;
    }
    rows.sids[i] = (struct rrec_sid){.prefix = numbered(2, i, "5f00:0:100:e00", "::/64"),
                                     .behaviour = STR("End.MT")};
    rows.sid_refs[i] = &rows.sids[i];
    rows.node.n_sids++;
    return &rows.sids[i];
}

static void *
new_tree(void)
{
    size_t i = rows.node.n_trees;

    if (i == MAX_ROWS) {
        return NULL;
    }
    rows.trees[i] = (struct rrec_tree_node){
        .group = numbered(3, i, "g", ""),
        .generation = 1,
        .epoch = 1,
        .proxy = numbered(4, i, "fd00:ffff::", ""),
        .designated_qpn = 0x101,
        .mtu = 1024,
        .designated_rkey = 9,
        .region_len = 0x10000,
        .source_address = STR("fd00:1::100"),
        .source_qpn = 18,
        .root = true,
        .replication_sid = STR(""),
        .parent_sid = STR(""),
        .parent_program = STR(""),
        .outer_program = STR(""),
        .mcast_group = STR("ff3e::8000:7"),
        .outer_source = STR("5f00:0:200::1"),
        .upstream = STR(""),
        .auth = &rows.auths[rows.n_auths],
        .auth_key = 1,
        .keys = &rows.key_refs[rows.n_keys],
        .branches = &rows.branch_refs[rows.n_branches],
        .copies = &rows.copy_refs[rows.n_copies],
        .outer_da = &rows.outer_das[rows.n_outer_das],
        .planes = &rows.plane_refs[rows.n_planes],
        .parent_planes = &rows.parent_plane_refs[rows.n_parent_planes],
        .open = true,
    };
    rows.tree_refs[i] = &rows.trees[i];
    rows.node.n_trees++;
    return &rows.trees[i];
}

static void
default_branch(struct rrec_branch *row, int which, size_t i)
{
    *row = (struct rrec_branch){
        .id = (int64_t) i + 1,
        .kind = STR("receiver"),
        .name = numbered(which, i, "r", ""),
        .address = numbered(which + 1, i, "fd00:1::", ""),
        .edge = STR("5f00:0:100::1"),
        .qpn = 0x11,
        .rkey = 0x200,
        .va = STR("0x1000"),
        .len = 0x10000,
    };
}

static void *
new_branch(void)
{
    size_t i = rows.n_branches;

    if (i == MAX_ROWS || !rows.node.n_trees) {
        return NULL;
    }
    rows.n_branches++;
    rows.trees[rows.node.n_trees - 1].n_branches++;
    rows.branch_refs[i] = &rows.branches[i];
    default_branch(&rows.branches[i], 5, i);
    return &rows.branches[i];
}

static void *
new_copy(void)
{
    size_t i = rows.n_copies;

    if (i == MAX_ROWS || !rows.node.n_trees) {
        return NULL;
    }
    rows.n_copies++;
    rows.trees[rows.node.n_trees - 1].n_copies++;
    rows.copy_refs[i] = &rows.copies[i];
    default_branch(&rows.copies[i], 5, i);
    return &rows.copies[i];
}

static void *
new_key(void)
{
    size_t i = rows.n_keys;

    if (i == MAX_ROWS || !rows.node.n_trees) {
        return NULL;
    }
    rows.n_keys++;
    rows.trees[rows.node.n_trees - 1].n_keys++;
    rows.key_refs[i] = &rows.keys[i];
    rows.keys[i] = (struct rrec_node_key){
        .id = (int64_t) i + 1,
        .node = STR("n1"),
        .secret = STR("000102030405060708090a0b0c0d0e0f"),
    };
    return &rows.keys[i];
}

static void *
new_destination(void)
{
    size_t i = rows.node.n_destinations;

    if (i == MAX_ROWS) {
        return NULL;
    }
    rows.destinations[i] = (struct rrec_destination){
        .node = STR("n1"),
        .name = numbered(7, i, "r", ""),
        .address = numbered(8, i, "fd00:2::", ""),
        .policy = STR("failover"),
        .paths = &rows.path_refs[rows.n_paths],
    };
    rows.destination_refs[i] = &rows.destinations[i];
    rows.node.n_destinations++;
    return &rows.destinations[i];
}

static void *
new_path(void)
{
    size_t i = rows.n_paths;

    if (i == MAX_ROWS || !rows.node.n_destinations) {
        return NULL;
    }
    rows.n_paths++;
    rows.destinations[rows.node.n_destinations - 1].n_paths++;
    rows.path_refs[i] = &rows.paths[i];
    rows.paths[i] = (struct rrec_path){
        .node = STR("n1"),
        .number = (int64_t) i + 1,
        .rank = (int64_t) i + 1,
        .name = STR("n2,n3"),
        .plane = STR(""),
        .usable = true,
        .program = STR("5f00:0:200:300::"),
    };
    return &rows.paths[i];
}

static void *
new_probe(void)
{
    size_t i = rows.node.n_probes;

    if (i == MAX_ROWS) {
        return NULL;
    }
    rows.probes[i] = (struct rrec_probe){
        .node = STR("n1"),
        .number = (int64_t) i + 1,
        .kind = STR("peer"),
        .name = STR("n2,n3"),
        .plane = STR(""),
        .port = 1,
        .peer = STR("5f00:0:300::1"),
        .program = STR("5f00:0:200:300::"),
        .back = STR("5f00:0:200:100::"),
        .interval = 100,
        .timeout = 50,
    };
    rows.probe_refs[i] = &rows.probes[i];
    rows.node.n_probes++;
    return &rows.probes[i];
}

static void
default_plane(struct rrec_plane *row, int which, size_t i)
{
    *row = (struct rrec_plane){
        .node = STR("n1"),
        .name = numbered(which, i, "A", ""),
        .sid = STR("5f00:0:200:f005::"),
        .program = STR("5f00:0:300:200:f005::"),
        .probes = &rows.plane_probes[rows.n_plane_probes],
    };
}

static void *
new_plane(void)
{
    size_t i = rows.n_planes;

    if (i == MAX_ROWS || !rows.node.n_trees) {
        return NULL;
    }
    rows.n_planes++;
    rows.trees[rows.node.n_trees - 1].n_planes++;
    rows.plane_refs[i] = &rows.planes[i];
    default_plane(&rows.planes[i], 9, i);
    return &rows.planes[i];
}

static void *
new_parent_plane(void)
{
    size_t i = rows.n_parent_planes;

    if (i == MAX_ROWS || !rows.node.n_trees) {
        return NULL;
    }
    rows.n_parent_planes++;
    rows.trees[rows.node.n_trees - 1].n_parent_planes++;
    rows.parent_plane_refs[i] = &rows.parent_planes[i];
    default_plane(&rows.parent_planes[i], 10, i);
    return &rows.parent_planes[i];
}

static const struct table {
    const char *name;
    void *(*begin)(void);
    const struct column *columns;
} tables[] = {
    {"Node", new_node, node_columns},       {"Port", new_port, port_columns},
    {"Route", new_route, route_columns},    {"Location", new_location, location_columns},
    {"Sid", new_sid, sid_columns},          {"Tree_Node", new_tree, tree_columns},
    {"Branch", new_branch, branch_columns}, {"Copy", new_copy, branch_columns},
    {"Node_Key", new_key, key_columns},     {"Destination", new_destination, destination_columns},
    {"Path", new_path, path_columns},       {"Probe", new_probe, probe_columns},
    {"Plane", new_plane, plane_columns},    {"Parent_Plane", new_parent_plane, plane_columns},
};

static bool
is_word(const char *words, const char *value)
{
    size_t n = strlen(value);

    if (!n || strchr(value, ' ')) {
        return false;
    }
    for (const char *at = words; (at = strstr(at, value)); at++) {
        if (at[-1] == ' ' && at[n] == ' ') {
            return true;
        }
    }
    return false;
}

static void
set_number(const struct column *c, char *at, const char *value)
{
    int64_t number = strtoll(value, NULL, 0);

    if ((!c->min && !c->max) || (number >= c->min && number <= c->max)) {
        memcpy(at, &number, sizeof number);
    }
}

static void
set_column(const char *name, char *value)
{
    for (const struct column *c = rows.table->columns; c->name; c++) {
        char *at = (char *) rows.row + c->ofs;

        if (strcmp(c->name, name)) {
            continue;
        }
        if (c->type == NUMBER) {
            set_number(c, at, value);
        } else if (c->type == TRUTH) {
            *(bool *) at = !strcmp(value, "true");
        } else if (!c->words || is_word(c->words, value)) {
            memcpy(at, &value, sizeof value);
        }
    }
}

/* To one of the last tree's sets, of which 'n' are in 'array' now. */
static void
add_to_set(char **array, size_t *n, size_t *n_of_tree, char *text)
{
    if (*n < MAX_ROWS) {
        array[(*n)++] = text;
        ++*n_of_tree;
    }
}

static void
add_auth(struct rrec_tree_node *tree, char *text)
{
    for (size_t i = 0; i < tree->n_auth; i++) {
        if (!strcmp(tree->auth[i], text)) {
            return; /* a set has each once. */
        }
    }
    if (is_word(" mt-auth hmac ", text)) {
        add_to_set(rows.auths, &rows.n_auths, &tree->n_auth, text);
    }
}

/* A set has each once, in ascending order. */
static void
add_plane_probe(struct rrec_plane *plane, const char *text)
{
    int64_t number = strtoll(text, NULL, 0);
    bool follows = !plane->n_probes || plane->probes[plane->n_probes - 1] < number;

    if (follows && number >= 1 && number <= 4095 && rows.n_plane_probes < MAX_ROWS) {
        rows.plane_probes[rows.n_plane_probes++] = number;
        plane->n_probes++;
    }
}

/* NODE:PORT.  A map has each key once, in ascending order. */
static void
add_next_hop(char *text)
{
    char *colon = strchr(text, ':');
    int64_t node = strtoll(text, NULL, 0), port = colon ? strtoll(colon + 1, NULL, 0) : 0;
    size_t n = rows.node.n_next_hops;
    bool follows = !n || rows.hop_nodes[n - 1] < node;

    if (follows && node >= 0 && node <= 57343 && port >= 1 && port <= 4095 && n < MAX_ROWS) {
        rows.hop_nodes[n] = node;
        rows.hop_ports[n] = port;
        rows.node.n_next_hops++;
    }
}

static void
begin_row(const char *table)
{
    for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
        if (!strcmp(table, tables[i].name)) {
            rows.table = &tables[i];
            rows.row = tables[i].begin();
        }
    }
}

const struct rrec_node *
rows_begin(void)
{
    memset(&rows, 0, sizeof rows);
    rows.node.name = STR("n1");
    rows.node.role = STR("switch");
    rows.node.id = 256;
    rows.node.ports = rows.port_refs;
    rows.node.routes = rows.route_refs;
    rows.node.key_next_hops = rows.hop_nodes;
    rows.node.value_next_hops = rows.hop_ports;
    rows.node.sids = rows.sid_refs;
    rows.node.trees = rows.tree_refs;
    rows.node.destinations = rows.destination_refs;
    rows.node.probes = rows.probe_refs;
    rows.node.probers = rows.probers;
    return &rows.node;
}

const struct rrec_location *const *
rows_locations(size_t *n)
{
    *n = rows.n_locations;
    return (const struct rrec_location *const *) rows.location_refs;
}

void
rows_line(char *line)
{
    struct rrec_tree_node *tree = rows.node.n_trees ? &rows.trees[rows.node.n_trees - 1] : NULL;
    char *value = strchr(line, '=');

    if (!value) {
        begin_row(line);
        return;
    }
    *value++ = '\0';
    if (tree && !strcmp(line, "outer_da")) {
        add_to_set(rows.outer_das, &rows.n_outer_das, &tree->n_outer_da, value);
    } else if (tree && !strcmp(line, "auth")) {
        add_auth(tree, value);
    } else if (!strcmp(line, "next_hops")) {
        add_next_hop(value);
    } else if (!strcmp(line, "probers")) {
        add_to_set(rows.probers, &rows.node.n_probers, &(size_t){0}, value);
    } else if (rows.row && rows.table->columns == plane_columns && !strcmp(line, "probes")) {
        add_plane_probe(rows.row, value);
    } else if (rows.row) {
        set_column(line, value);
    }
}
