/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of the registry: what ctl/intent.c makes of them, and what nodes do with
 * that.  The input is lines: a table's name begins a row with columns that make
 * sense, COLUMN=VALUE changes one of the row begun last, outer_da=VALUE adds one to
 * the last tree, and 'Apply' hands what there is so far to the nodes, as does the
 * end of the input.
 */
#include <config.h>

#include <check.h>
#include <stdlib.h>

#include "ctl/intent.h"
#include "ctl/rocecast-idl.h"
#include "ctl/values.h"
#include "lib/node.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/parse-check.h"
#include "util.h"

/* Their headers cannot both be included: each names its own things. */
extern const struct node_class srcagent_class, swedge_class;

#define MAX_ROWS    12 /* of each table. */
#define MAX_APPLIES 6
#define POOL        8

#define STR(S)      CONST_CAST(char *, S)

/* All rows, and the arrays by which they refer to each other. */
struct rows {
    struct rrec_node node;
    struct rrec_port ports[MAX_ROWS];
    struct rrec_route routes[MAX_ROWS];
    struct rrec_sid sids[MAX_ROWS];
    struct rrec_tree_node trees[MAX_ROWS];
    struct rrec_branch branches[MAX_ROWS], copies[MAX_ROWS];
    struct rrec_port *port_refs[MAX_ROWS];
    struct rrec_route *route_refs[MAX_ROWS];
    struct rrec_sid *sid_refs[MAX_ROWS];
    struct rrec_tree_node *tree_refs[MAX_ROWS];
    struct rrec_branch *branch_refs[MAX_ROWS], *copy_refs[MAX_ROWS];
    char *outer_das[MAX_ROWS];
    size_t n_branches, n_copies, n_outer_das; /* of all trees; each has its part of the arrays. */
    char texts[8][MAX_ROWS][32];              /* of defaults that differ from row to row. */
};

/* Columns: where they are in their row, and of which type. */
enum type { TEXT, NUMBER, TRUTH };
struct column {
    const char *name;
    size_t ofs;
    enum type type;
};
#define TEXT_COLUMN(ROW, NAME)                  \
    {                                           \
#NAME, offsetof(struct ROW, NAME), TEXT \
    }
#define NUMBER_COLUMN(ROW, NAME)                  \
    {                                             \
#NAME, offsetof(struct ROW, NAME), NUMBER \
    }
#define TRUTH_COLUMN(ROW, NAME)                  \
    {                                            \
#NAME, offsetof(struct ROW, NAME), TRUTH \
    }

static const struct column node_columns[] = {
    TEXT_COLUMN(rrec_node, name),           TEXT_COLUMN(rrec_node, role),
    NUMBER_COLUMN(rrec_node, id),           NUMBER_COLUMN(rrec_node, cfg),
    TRUTH_COLUMN(rrec_node, verify_always), {NULL, 0, TEXT},
};
static const struct column port_columns[] = {
    TEXT_COLUMN(rrec_port, name),
    NUMBER_COLUMN(rrec_port, number),
    TEXT_COLUMN(rrec_port, kind),
    TEXT_COLUMN(rrec_port, role),
    TEXT_COLUMN(rrec_port, mac),
    TEXT_COLUMN(rrec_port, peer),
    TEXT_COLUMN(rrec_port, peer_address),
    TEXT_COLUMN(rrec_port, rx_impairment),
    TEXT_COLUMN(rrec_port, tx_impairment),
    TEXT_COLUMN(rrec_port, peer_mac),
    {NULL, 0, TEXT},
};
static const struct column route_columns[] = {
    TEXT_COLUMN(rrec_route, prefix),
    NUMBER_COLUMN(rrec_route, port),
    TEXT_COLUMN(rrec_route, next_hop),
    {NULL, 0, TEXT},
};
static const struct column sid_columns[] = {
    TEXT_COLUMN(rrec_sid, prefix),
    TEXT_COLUMN(rrec_sid, behaviour),
    {NULL, 0, TEXT},
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
    TEXT_COLUMN(rrec_tree_node, nak),
    TRUTH_COLUMN(rrec_tree_node, filter),
    TRUTH_COLUMN(rrec_tree_node, prune),
    NUMBER_COLUMN(rrec_tree_node, liveness),
    TRUTH_COLUMN(rrec_tree_node, open),
    {NULL, 0, TEXT},
};
static const struct column branch_columns[] = {
    NUMBER_COLUMN(rrec_branch, id),   TEXT_COLUMN(rrec_branch, kind),
    TEXT_COLUMN(rrec_branch, name),   TEXT_COLUMN(rrec_branch, address),
    TEXT_COLUMN(rrec_branch, edge),   NUMBER_COLUMN(rrec_branch, qpn),
    NUMBER_COLUMN(rrec_branch, rkey), TEXT_COLUMN(rrec_branch, va),
    NUMBER_COLUMN(rrec_branch, len),  {NULL, 0, TEXT},
};

/* A text with the row's number in it, as the default of a column. */
static char *
numbered(struct rows *r, int which, size_t i, const char *before, const char *after)
{
    char *text = r->texts[which][i];

    snprintf(text, sizeof r->texts[which][i], "%s%zx%s", before, i + 1, after);
    return text;
}

/* Each begins a row; NULL: there are enough. */

static void *
new_node(struct rows *r)
{
    return &r->node;
}

static void *
new_port(struct rows *r)
{
    size_t i = r->node.n_ports;

    if (i == MAX_ROWS) {
        return NULL;
    }
    r->ports[i] = (struct rrec_port){
        .name = numbered(r, 0, i, "p", ""),
        .number = (int64_t) i + 1,
        .kind = STR("tap"),
        .role = STR("host"),
        .mac = STR("02:5f:01:00:00:01"),
        .peer = STR("r1"),
        .peer_address = STR("fd00:1::1"),
        .rx_impairment = STR(""),
        .tx_impairment = STR(""),
    };
    r->port_refs[i] = &r->ports[i];
    r->node.n_ports++;
    return &r->ports[i];
}

static void *
new_route(struct rows *r)
{
    size_t i = r->node.n_routes;

    if (i == MAX_ROWS) {
        return NULL;
    }
    r->routes[i] = (struct rrec_route){
        .prefix = numbered(r, 1, i, "fd00:1::", "/128"), .port = 1, .next_hop = STR("::")};
    r->route_refs[i] = &r->routes[i];
    r->node.n_routes++;
    return &r->routes[i];
}

static void *
new_sid(struct rows *r)
{
    size_t i = r->node.n_sids;

    if (i == MAX_ROWS) {
        return NULL;
    }
    r->sids[i] = (struct rrec_sid){.prefix = numbered(r, 2, i, "5f00:0:100:e00", "::/64"),
                                   .behaviour = STR("End.MT")};
    r->sid_refs[i] = &r->sids[i];
    r->node.n_sids++;
    return &r->sids[i];
}

static void *
new_tree(struct rows *r)
{
    size_t i = r->node.n_trees;

    if (i == MAX_ROWS) {
        return NULL;
    }
    r->trees[i] = (struct rrec_tree_node){
        .group = numbered(r, 3, i, "g", ""),
        .generation = 1,
        .epoch = 1,
        .proxy = numbered(r, 4, i, "fd00:ffff::", ""),
        .designated_qpn = 0x101,
        .mtu = 1024,
        .designated_rkey = 9,
        .region_len = 0x10000,
        .source_address = STR("fd00:1::100"),
        .source_qpn = 18,
        .root = true,
        .replication_sid = STR(""),
        .parent_sid = STR(""),
        .branches = &r->branch_refs[r->n_branches],
        .copies = &r->copy_refs[r->n_copies],
        .outer_da = &r->outer_das[r->n_outer_das],
        .open = true,
    };
    r->tree_refs[i] = &r->trees[i];
    r->node.n_trees++;
    return &r->trees[i];
}

static void
default_branch(struct rows *r, struct rrec_branch *row, int which, size_t i)
{
    *row = (struct rrec_branch){
        .id = (int64_t) i + 1,
        .kind = STR("receiver"),
        .name = numbered(r, which, i, "r", ""),
        .address = numbered(r, which + 1, i, "fd00:1::", ""),
        .edge = STR("5f00:0:100::1"),
        .qpn = 0x11,
        .rkey = 0x200,
        .va = STR("0x1000"),
        .len = 0x10000,
    };
}

static void *
new_branch(struct rows *r)
{
    size_t i = r->n_branches;

    if (i == MAX_ROWS || !r->node.n_trees) {
        return NULL;
    }
    r->n_branches++;
    r->trees[r->node.n_trees - 1].n_branches++;
    r->branch_refs[i] = &r->branches[i];
    default_branch(r, &r->branches[i], 5, i);
    return &r->branches[i];
}

static void *
new_copy(struct rows *r)
{
    size_t i = r->n_copies;

    if (i == MAX_ROWS || !r->node.n_trees) {
        return NULL;
    }
    r->n_copies++;
    r->trees[r->node.n_trees - 1].n_copies++;
    r->copy_refs[i] = &r->copies[i];
    default_branch(r, &r->copies[i], 5, i);
    return &r->copies[i];
}

static const struct table {
    const char *name;
    void *(*begin)(struct rows *);
    const struct column *columns;
} tables[] = {
    {"Node", new_node, node_columns},      {"Port", new_port, port_columns},
    {"Route", new_route, route_columns},   {"Sid", new_sid, sid_columns},
    {"Tree_Node", new_tree, tree_columns}, {"Branch", new_branch, branch_columns},
    {"Copy", new_copy, branch_columns},
};

/* What the database's schema lets through: it knows the words for these. */
static bool
schema_refuses(const struct column *c, const char *value)
{
    static const char *const kinds[] = {"tap", "packet", "receiver", "node", NULL};
    static const char *const roles[] = {"host", "agent", "fabric", NULL};
    const char *const *words = !strcmp(c->name, "kind")   ? kinds
                               : !strcmp(c->name, "role") ? roles
                                                          : NULL;

    for (; words && *words; words++) {
        if (!strcmp(*words, value)) {
            return false;
        }
    }
    return words != NULL;
}

static void
set_column(const struct column *columns, void *row, const char *name, char *value)
{
    for (const struct column *c = columns; c->name; c++) {
        char *at = (char *) row + c->ofs;

        if (strcmp(c->name, name) || schema_refuses(c, value)) {
            continue;
        }
        if (c->type == TEXT) {
            memcpy(at, &value, sizeof value);
        } else if (c->type == NUMBER) {
            int64_t number = strtoll(value, NULL, 0);
            memcpy(at, &number, sizeof number);
        } else {
            *(bool *) at = !strcmp(value, "true");
        }
    }
}

/* Nodes. */

struct nodes {
    const struct node_class *class[2];
    void *node[2];
    struct packet_pool *pool;
    uint64_t now;
    int n_applies;
};

static void
put(void *aux, uint16_t port, struct packet *p)
{
    (void) aux;
    REQUIRE(port >= 1 && port <= 4095);
    REQUIRE(packet_size(p) >= sizeof(struct eth_hdr));
}

/* What intent.h and node-config.h promise. */
static void
check_config(const struct node_config *c)
{
    REQUIRE(c->id >= 1 && c->id <= 0xdfff);
    for (size_t i = 0; i < c->n_ports; i++) {
        REQUIRE(!i || c->ports[i - 1].number < c->ports[i].number);
        REQUIRE(ifname_is_valid(c->ports[i].name));
    }
    for (size_t i = 1; i < c->n_sids; i++) {
        REQUIRE(!IN6_ARE_ADDR_EQUAL(&c->sids[i - 1].prefix, &c->sids[i].prefix)
                || c->sids[i - 1].plen < c->sids[i].plen);
    }
    for (size_t i = 0; i < c->n_trees; i++) {
        const struct tree_config *t = &c->trees[i];

        REQUIRE(is_proxy_address(&t->proxy) && t->mtu >= 256 && t->mtu <= 4096);
        for (size_t j = 0; j < t->n_branches; j++) {
            const struct branch_config *b = &t->branches[j];
            REQUIRE(b->kind == BRANCH_NODE || b->va + b->len >= b->va);
        }
    }
}

static void
apply(struct nodes *nodes, const struct rows *rows)
{
    struct node_config config;
    char *error;

    if (nodes->n_applies++ >= MAX_APPLIES) {
        return;
    }
    nodes->now += 1000;
    if (!intent_read(&rows->node, &config, &error)) {
        REQUIRE(error && *error);
        REQUIRE(!config.ports && !config.routes && !config.sids && !config.trees);
        free(error);
        return;
    }
    REQUIRE(!error);
    check_config(&config);
    for (int i = 0; i < 2; i++) {
        const struct node_class *class = nodes->class[i];

        if (class->configure(nodes->node[i], &config, nodes->now, &error)) {
            REQUIRE(error && *error);
            free(error);
            error = NULL;
        } else {
            REQUIRE(class->n_trees(nodes->node[i]) == config.n_trees);
        }
        class->timer(nodes->node[i], nodes->now);
    }
    node_config_uninit(&config);
}

static void
add_outer_da(struct rows *rows, char *text)
{
    if (rows->node.n_trees && rows->n_outer_das < MAX_ROWS) {
        rows->outer_das[rows->n_outer_das++] = text;
        rows->trees[rows->node.n_trees - 1].n_outer_da++;
    }
}

static const struct table *
find_table(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
        if (!strcmp(name, tables[i].name)) {
            return &tables[i];
        }
    }
    return NULL;
}

static void
run_lines(char *text, struct rows *rows, struct nodes *nodes)
{
    const struct table *table = NULL;
    void *row = NULL;
    char *save = NULL;

    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *value = strchr(line, '=');

        if (value) {
            *value++ = '\0';
        }
        if (value && !strcmp(line, "outer_da")) {
            add_outer_da(rows, value);
        } else if (value && row) {
            set_column(table->columns, row, line, value);
        } else if (!strcmp(line, "Apply")) {
            apply(nodes, rows);
        } else if (find_table(line)) {
            table = find_table(line);
            row = table->begin(rows);
        }
    }
    apply(nodes, rows);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct rows rows;
    struct fuzz_input in = {data, size};
    char *text = fuzz_text(&in);
    struct nodes nodes = {.class = {&swedge_class, &srcagent_class},
                          .pool = packet_pool_create(POOL)};

    memset(&rows, 0, sizeof rows);
    rows.node.name = STR("n1");
    rows.node.role = STR("switch");
    rows.node.id = 256;
    rows.node.ports = rows.port_refs;
    rows.node.routes = rows.route_refs;
    rows.node.sids = rows.sid_refs;
    rows.node.trees = rows.tree_refs;
    for (int i = 0; i < 2; i++) {
        nodes.node[i] = nodes.class[i]->create(&(struct node_io){.tx = put}, nodes.pool);
    }
    run_lines(text, &rows, &nodes);
    for (int i = 0; i < 2; i++) {
        nodes.class[i]->destroy(nodes.node[i]);
    }
    REQUIRE(packet_pool_n_free(nodes.pool) == POOL);
    packet_pool_destroy(nodes.pool);
    free(text);
    return 0;
}
