/* SPDX-License-Identifier: Apache-2.0
 *
 * One node's rows in the registry read into plain data.
 *
 * Whoever can write to the registry can write nonsense into it.  Everything
 * that a column's type does not exclude is checked here, once, so that nodes
 * need not: they get a snapshot that makes sense, or none.
 */
#include <config.h>

#include "ctl/registry/intent.h"

#include <inttypes.h>
#include <stdlib.h>

#include "ctl/registry/group-settings.h"
#include "ctl/registry/intent-paths.h"
#include "ctl/registry/intent-probes.h"
#include "ctl/registry/reader.h"
#include "ctl/registry/rocecast-idl.h"
#include "ctl/registry/values.h"
#include "lib/congestion-settings.h"
#include "lib/routes.h"
#include "lib/usid.h"
#include "util.h"

static bool
read_programs(struct reader *r, const struct rrec_port *row, struct port_config *p)
{
    p->programs = xcalloc(row->n_programs + 1, sizeof *p->programs);
    for (size_t i = 0; i < row->n_programs; i++) {
        if (!program_prefix_parse(row->programs[i], &p->programs[p->n_programs++])) {
            return reader_bad(r, "Port.programs", row->programs[i], PROGRAM_PREFIX_RULE);
        }
    }
    return true;
}

static bool
read_port(struct reader *r, const struct rrec_port *row, struct port_config *p)
{
    if (!ifname_is_valid(row->name)) {
        return reader_bad(r, "Port.name", row->name, IFNAME_RULE);
    }
    ovs_strlcpy(p->name, row->name, sizeof p->name);
    p->number = (uint16_t) row->number;
    p->external = row->external;
    if (!read_programs(r, row, p)) {
        return false;
    }
    return (port_kind_parse(row->kind, &p->kind)
            || reader_bad(r, "Port.kind", row->kind, "unknown"))
           && (port_role_parse(row->role, &p->role)
               || reader_bad(r, "Port.role", row->role, "unknown"))
           && reader_integer(r, "Port.number", row->number, 1, PORT_NUMBER_MAX)
           && reader_mac(r, "Port.mac", row->mac, p->mac)
           && (!row->peer_mac || !row->peer_mac[0]
               || reader_mac(r, "Port.peer_mac", row->peer_mac, p->peer_mac))
           && reader_name(r, "Port.peer", row->peer, p->peer)
           && reader_address(r, "Port.peer_address", row->peer_address, &p->peer_address)
           && reader_impairment(r, "Port.rx_impairment", row->rx_impairment, &p->rx)
           && reader_impairment(r, "Port.tx_impairment", row->tx_impairment, &p->tx);
}

static int
compare_ports(const void *a_, const void *b_)
{
    const struct port_config *a = a_, *b = b_;

    return a->number < b->number ? -1 : a->number > b->number;
}

static bool
read_ports(struct reader *r, const struct rrec_node *row, struct node_config *out)
{
    out->ports = xcalloc(row->n_ports + 1, sizeof *out->ports);
    for (size_t i = 0; i < row->n_ports; i++) {
        /* Counted first, so that a port read in part is freed. */
        out->n_ports++;
        if (!read_port(r, row->ports[i], &out->ports[i])) {
            return false;
        }
        for (size_t j = 0; j < i; j++) {
            if (out->ports[j].number == out->ports[i].number
                || !strcmp(out->ports[j].name, out->ports[i].name)) {
                return reader_bad(r, "Port.name", row->ports[i]->name, "name or number used twice");
            }
        }
    }
    qsort(out->ports, out->n_ports, sizeof *out->ports, compare_ports);
    return true;
}

static bool
read_route_rows(struct reader *r, const struct rrec_node *row, struct node_config *out)
{
    out->routes = xcalloc(row->n_routes + 1, sizeof *out->routes);
    for (size_t i = 0; i < row->n_routes; i++) {
        const struct rrec_route *route = row->routes[i];
        struct route_config *c = &out->routes[i];

        if (!reader_prefix(r, "Route.prefix", route->prefix, &c->prefix, &c->plen)
            || !reader_address(r, "Route.next_hop", route->next_hop, &c->next_hop)
            || !reader_port(r, "Route.port", route->prefix, route->port, out, &c->port)) {
            return false;
        }
        out->n_routes++;
    }
    qsort(out->routes, out->n_routes, sizeof *out->routes, route_compare);
    return true;
}

static bool
leads_to_host(const struct node_config *config, uint16_t number)
{
    for (size_t i = 0; i < config->n_ports; i++) {
        if (config->ports[i].number == number) {
            return config->ports[i].role == ROLE_HOST;
        }
    }
    return false;
}

static bool
read_next_hops(struct reader *r, const struct rrec_node *row, const struct node_config *config,
               struct next_hop *hops)
{
    for (size_t i = 0; i < row->n_next_hops; i++) {
        int64_t node = row->key_next_hops[i];
        char id[24];

        snprintf(id, sizeof id, "%" PRId64, node);
        if (!reader_integer(r, "Node.next_hops", node, 0, NODE_ID_MAX)
            || !reader_port(r, "Node.next_hops", id, row->value_next_hops[i], config,
                            &hops[i].port)) {
            return false;
        }
        if (leads_to_host(config, hops[i].port)) {
            return reader_bad(r, "Node.next_hops", id, "port %d leads to a host", hops[i].port);
        }
        hops[i].node = (uint16_t) node;
    }
    return true;
}

static bool
read_locations(struct reader *r, const struct intent_rows *rows, struct host_location *locations)
{
    for (size_t i = 0; i < rows->n_locations; i++) {
        const struct rrec_location *row = rows->locations[i];

        if (!reader_address(r, "Location.address", row->address, &locations[i].address)
            || !reader_integer(r, "Location.node", row->node, 1, NODE_ID_MAX)) {
            return false;
        }
        locations[i].node = (uint16_t) row->node;
    }
    return true;
}

/* Of rows if there are any; otherwise they follow from next hops and locations. */
static bool
read_routes(struct reader *r, const struct intent_rows *rows, struct node_config *out)
{
    const struct rrec_node *row = rows->node;

    if (row->n_routes) {
        if (!read_route_rows(r, row, out)) {
            return false;
        }
    } else {
        struct next_hop *hops = xcalloc(row->n_next_hops + 1, sizeof *hops);
        struct host_location *locations = xcalloc(rows->n_locations + 1, sizeof *locations);
        bool good = read_next_hops(r, row, out, hops) && read_locations(r, rows, locations);

        if (good) {
            routes_derive(out, hops, row->n_next_hops, locations, rows->n_locations);
        }
        free(hops);
        free(locations);
        if (!good) {
            return false;
        }
    }
    for (size_t i = 1; i < out->n_routes; i++) {
        if (!route_compare(&out->routes[i - 1], &out->routes[i])) {
            return reader_bad(r, "Route.prefix", ip6_text(&out->routes[i].prefix),
                              "has two routes");
        }
    }
    return true;
}

static int
compare_sids(const void *a_, const void *b_)
{
    const struct sid_config *a = a_, *b = b_;
    int cmp = memcmp(&a->prefix, &b->prefix, sizeof a->prefix);

    return cmp ? cmp : a->plen - b->plen;
}

static bool
read_sid_row(struct reader *r, const struct rrec_sid *row, const struct node_config *config,
             struct sid_config *c)
{
    if (!reader_prefix(r, "Sid.prefix", row->prefix, &c->prefix, &c->plen)) {
        return false;
    }
    if (!sid_behaviour_parse(row->behaviour, &c->behaviour)) {
        return reader_bad(r, "Sid.behaviour", row->behaviour, "unknown");
    }
    if (c->behaviour == SID_UN || c->behaviour == SID_UA) {
        if (row->block_len < 0 || row->block_len > UINT8_MAX
            || !usid_lengths_ok((unsigned int) row->block_len, c->plen)) {
            return reader_bad(r, "Sid.block_len", row->prefix,
                              "no uSID has a block of %" PRId64 " bits", row->block_len);
        }
        c->block_len = (uint8_t) row->block_len;
    }
    return !sid_behaviour_is_of_port(c->behaviour)
           || reader_port(r, "Sid.port", row->prefix, row->port, config, &c->port);
}

static bool
read_sids(struct reader *r, const struct rrec_node *row, struct node_config *out)
{
    out->sids = xcalloc(row->n_sids + 1, sizeof *out->sids);
    for (size_t i = 0; i < row->n_sids; i++) {
        if (!read_sid_row(r, row->sids[i], out, &out->sids[i])) {
            return false;
        }
        out->n_sids++;
    }
    qsort(out->sids, out->n_sids, sizeof *out->sids, compare_sids);
    for (size_t i = 1; i < out->n_sids; i++) {
        if (!compare_sids(&out->sids[i - 1], &out->sids[i])) {
            return reader_bad(r, "Sid.prefix", ip6_text(&out->sids[i].prefix), "is there twice");
        }
    }
    return true;
}

/* What the node itself has reported of a branch that was to join is true, also for the next agent
 * of the node. */
static bool
read_joined(struct reader *r, const struct rrec_tree_node *row, struct tree_config *t)
{
    for (size_t i = 0; i < row->n_joined; i++) {
        if (!reader_integer(r, "Tree_Node.joined", row->value_joined[i], 0, PSN_MASK)) {
            return false;
        }
        for (size_t j = 0; j < t->n_branches; j++) {
            struct branch_config *b = &t->branches[j];

            if (b->id == row->key_joined[i] && b->join != BRANCH_COUNTS
                && b->join != BRANCH_ASKED) {
                b->join = BRANCH_COUNTS;
                b->late = b->kind == BRANCH_RECEIVER;
                b->first = psn_make((uint32_t) row->value_joined[i]);
            }
        }
    }
    return true;
}

/* What the node itself has found out of a branch that is asked stays true, too: nobody else sends
 * to that queue pair. */
static bool
read_found(struct reader *r, const struct rrec_tree_node *row, struct tree_config *t)
{
    for (size_t i = 0; i < row->n_found; i++) {
        if (!reader_integer(r, "Tree_Node.found", row->value_found[i], 0, PSN_MASK)) {
            return false;
        }
        for (size_t j = 0; j < t->n_branches; j++) {
            struct branch_config *b = &t->branches[j];

            if (b->id == row->key_found[i] && b->join == BRANCH_ASKED) {
                b->found = true;
                b->psn = psn_make((uint32_t) row->value_found[i]);
            }
        }
    }
    return true;
}

/* A receiver that was lost before it had joined is never admitted, also not by the next agent of
 * the node. */
static void
read_lost(const struct rrec_tree_node *row, struct tree_config *t)
{
    for (size_t i = 0; i < row->n_lost; i++) {
        for (size_t j = 0; j < t->n_branches; j++) {
            struct branch_config *b = &t->branches[j];

            if (b->id == row->key_lost[i] && b->join == BRANCH_ADMITTED) {
                b->join = BRANCH_WAITS;
            }
        }
    }
}

/* An optional column; *out stays if it is empty. */
static bool
read_psn(struct reader *r, const char *column, const int64_t *value, size_t n, psn_t *out)
{
    if (n && !reader_integer(r, column, value[0], 0, PSN_MASK)) {
        return false;
    }
    if (n) {
        *out = psn_make((uint32_t) value[0]);
    }
    return true;
}

static bool
read_join(struct reader *r, const struct rrec_branch *row, struct branch_config *b)
{
    if (row->join && !branch_join_parse(row->join, &b->join)) {
        return reader_bad(r, "Branch.join", row->join, "unknown");
    }
    if (b->kind == BRANCH_NODE) {
        return b->join == BRANCH_COUNTS || b->join == BRANCH_WAITS
               || reader_bad(r, "Branch.join", row->join, "%s is a node, which only waits",
                             row->name);
    }
    b->late = row->n_first > 0;
    if (b->late && b->join != BRANCH_COUNTS) {
        return reader_bad(r, "Branch.join", row->join,
                          "%s has joined: it has Branch.first %" PRId64, row->name, row->first[0]);
    }
    return read_psn(r, "Branch.psn", row->psn, row->n_psn, &b->psn)
           && read_psn(r, "Branch.first", row->first, row->n_first, &b->first);
}

/* Of a tree with this start PSN. */
static bool
read_branch(struct reader *r, const struct rrec_branch *row, psn_t start_psn,
            struct branch_config *b)
{
    if (!reader_integer(r, "Branch.id", row->id, 1, UINT32_MAX)
        || !reader_name(r, "Branch.name", row->name, b->name)
        || !reader_address(r, "Branch.address", row->address, &b->address)) {
        return false;
    }
    if (!branch_kind_parse(row->kind, &b->kind)) {
        return reader_bad(r, "Branch.kind", row->kind, "unknown");
    }
    b->id = (uint32_t) row->id;
    b->psn = b->first = start_psn;
    if (!read_join(r, row, b)) {
        return false;
    }
    if (b->kind == BRANCH_NODE) {
        return true;
    }
    if (!reader_address(r, "Branch.edge", row->edge, &b->edge)
        || !reader_integer(r, "Branch.qpn", row->qpn, QPN_MIN, QPN_MAX)
        || !reader_integer(r, "Branch.rkey", row->rkey, 0, UINT32_MAX)
        || !reader_integer(r, "Branch.len", row->len, 0, INT64_MAX)) {
        return false;
    }
    if (!number_parse(row->va, 0, UINT64_MAX - (uint64_t) row->len, &b->va)) {
        return reader_bad(r, "Branch.va", row->va,
                          "not an address with Branch.len bytes behind it");
    }
    if (row->n_designated_qpn) {
        if (!reader_integer(r, "Branch.designated_qpn", row->designated_qpn[0], QPN_MIN, QPN_MAX)) {
            return false;
        }
        b->designated_qpn = (uint32_t) row->designated_qpn[0];
    }
    if (row->n_doubt) {
        if (!reader_integer(r, "Branch.doubt", row->doubt[0], 1, UINT32_MAX)) {
            return false;
        }
        b->doubt = (uint32_t) row->doubt[0];
    }
    b->qpn = (uint32_t) row->qpn;
    b->rkey = (uint32_t) row->rkey;
    b->len = (uint64_t) row->len;
    return true;
}

static int
compare_branches(const void *a_, const void *b_)
{
    const struct branch_config *a = a_, *b = b_;
    int cmp = memcmp(&a->edge, &b->edge, sizeof a->edge);

    return cmp ? cmp : a->id < b->id ? -1 : a->id > b->id;
}

static bool
read_branches(struct reader *r, struct rrec_branch **rows, size_t n, psn_t start_psn,
              struct branch_config **out, size_t *n_out)
{
    *out = xcalloc(n + 1, sizeof **out);
    for (size_t i = 0; i < n; i++) {
        if (!read_branch(r, rows[i], start_psn, &(*out)[i])) {
            return false;
        }
        for (size_t j = 0; j < i; j++) {
            if ((*out)[j].id == (*out)[i].id) {
                return reader_bad(r, "Branch.id", rows[i]->name, "id %" PRId64 " is there twice",
                                  rows[i]->id);
            }
            if (!memcmp(&(*out)[j].address, &(*out)[i].address, sizeof(*out)[i].address)) {
                return reader_bad(r, "Branch.address", rows[i]->address, "is there twice");
            }
        }
        ++*n_out;
    }
    qsort(*out, *n_out, sizeof **out, compare_branches);
    return true;
}

/* Columns mode and outer_source are empty in a converted registry until castd has run. */
static bool
read_mode(struct reader *r, const struct rrec_tree_node *row, struct tree_config *t)
{
    if (!reader_sid(r, "Tree_Node.outer_source", row->outer_source, &t->outer_source)) {
        return false;
    }
    if (row->mode && !tree_mode_parse(row->mode, &t->mode)) {
        return reader_bad(r, "Tree_Node.mode", row->mode, "unknown");
    }
    t->provisioned = row->provisioned;
    if (!tree_mode(t->mode)->addressed_to_group) {
        return true;
    }
    if (!reader_address(r, "Tree_Node.mcast_group", row->mcast_group, &t->mcast_group)
        || !reader_sid(r, "Tree_Node.upstream", row->upstream, &t->upstream)) {
        return false;
    }
    return is_mcast_group_address(&t->mcast_group)
           || reader_bad(r, "Tree_Node.mcast_group", row->mcast_group, "not in " MCAST_PREFIX_TEXT);
}

static bool
read_policy(struct reader *r, const struct rrec_tree_node *row, struct group_policy *p)
{
    r->error = tree_policy_read(row, p);
    return !r->error;
}

static bool
mtu_is_valid(int64_t mtu)
{
    return mtu == 256 || mtu == 512 || mtu == 1024 || mtu == 2048 || mtu == 4096;
}

static int
compare_keys(const void *a_, const void *b_)
{
    const struct auth_key *a = a_, *b = b_;

    return a->id < b->id ? -1 : a->id > b->id;
}

/* An error names the key, never the secret. */
static bool
read_auth(struct reader *r, const struct rrec_tree_node *row, struct auth_config *c)
{
    c->tlvs = auth_tlvs_parse(row->auth, row->n_auth);
    c->key = (uint32_t) row->auth_key;
    c->instance = (uint32_t) row->instance;
    c->response_instance = (uint32_t) row->response_instance;
    c->responses = row->auth_responses;
    c->life = (uint64_t) row->life_answered;
    c->keys = xcalloc(row->n_keys + 1, sizeof *c->keys);
    for (size_t i = 0; i < row->n_keys; i++) {
        struct auth_key *key = &c->keys[i];
        char id[16];

        key->id = (uint32_t) row->keys[i]->id;
        snprintf(id, sizeof id, "%" PRIu32, key->id);
        if (auth_find_key(c, key->id)) {
            return reader_bad(r, "Node_Key.id", id, "is there twice");
        }
        if (!secret_parse(row->keys[i]->secret, key)) {
            return reader_bad(r, "Node_Key.secret", id, "that of this key " SECRET_RULE);
        }
        c->n_keys++;
    }
    qsort(c->keys, c->n_keys, sizeof *c->keys, compare_keys);
    return true;
}

bool
intent_tree_is_source(const struct rrec_node *node, const struct rrec_tree_node *row)
{
    const struct in6_addr own = node_address((uint16_t) node->id);
    struct in6_addr source;

    return !strcmp(node->role, node_role_name(NODE_AGENT))
           && (!row->outer_source[0]
               || (ip6_parse(row->outer_source, &source) && IN6_ARE_ADDR_EQUAL(&source, &own)));
}

uint64_t
intent_tree_row(const struct rrec_tree_node *row)
{
    const struct uuid *id = &row->header_.uuid;

    return (uint64_t) id->parts[0] << 32 | id->parts[3];
}

/* 'node': whose tree it is, with its ports and probes; NULL: they are not known. */
static bool
read_tree(struct reader *r, const struct rrec_tree_node *row, const struct node_config *node,
          struct tree_config *t)
{
    t->start_psn = psn_make((uint32_t) row->start_psn);
    if (!reader_name(r, "Tree_Node.group", row->group, t->group)
        || !reader_integer(r, "Tree_Node.generation", row->generation, 0, INT64_MAX)
        || !reader_integer(r, "Tree_Node.epoch", row->epoch, 1, UINT32_MAX)
        || !reader_address(r, "Tree_Node.proxy", row->proxy, &t->proxy)
        || !reader_integer(r, "Tree_Node.designated_qpn", row->designated_qpn, QPN_MIN, QPN_MAX)
        || !reader_integer(r, "Tree_Node.start_psn", row->start_psn, 0, PSN_MASK)
        || !reader_integer(r, "Tree_Node.designated_rkey", row->designated_rkey, 0, UINT32_MAX)
        || !reader_integer(r, "Tree_Node.region_len", row->region_len, 0, INT64_MAX)
        || !reader_address(r, "Tree_Node.source_address", row->source_address, &t->source)
        || !reader_integer(r, "Tree_Node.source_qpn", row->source_qpn, QPN_MIN, QPN_MAX)
        || !reader_sid(r, "Tree_Node.replication_sid", row->replication_sid, &t->replication_sid)
        || !reader_sid(r, "Tree_Node.parent_sid", row->parent_sid, &t->parent_sid)
        || !reader_sid(r, "Tree_Node.parent_program", row->parent_program, &t->parent_program)
        || !reader_sid(r, "Tree_Node.outer_program", row->outer_program, &t->outer_program)
        || !read_mode(r, row, t) || !read_policy(r, row, &t->policy) || !read_auth(r, row, &t->auth)
        || !reader_addresses(r, "Tree_Node.outer_da", row->outer_da, row->n_outer_da, &t->outer_da,
                             &t->n_outer_da)
        || !intent_read_planes(r, row, node, t)
        || !reader_integer(r, "Tree_Node.rate_floor", row->rate_floor, 0, (int64_t) MAX_LINE_RATE)
        || !read_branches(r, row->branches, row->n_branches, t->start_psn, &t->branches,
                          &t->n_branches)
        || !read_joined(r, row, t) || !read_found(r, row, t)
        || !read_branches(r, row->copies, row->n_copies, t->start_psn, &t->copies, &t->n_copies)) {
        return false;
    }
    if (!is_proxy_address(&t->proxy)) {
        return reader_bad(r, "Tree_Node.proxy", row->proxy, "not in " PROXY_PREFIX_TEXT);
    }
    if (!mtu_is_valid(row->mtu)) {
        return reader_bad(r, "Tree_Node.mtu", row->group, "%" PRId64 " is no path MTU", row->mtu);
    }
    read_lost(row, t);
    t->row = intent_tree_row(row);
    t->generation = (uint64_t) row->generation;
    t->epoch = (uint32_t) row->epoch;
    t->designated_qpn = (uint32_t) row->designated_qpn;
    t->mtu = (uint32_t) row->mtu;
    t->designated_rkey = (uint32_t) row->designated_rkey;
    t->region_len = (uint64_t) row->region_len;
    t->source_qpn = (uint32_t) row->source_qpn;
    t->rate_floor = (uint64_t) row->rate_floor;
    t->root = row->root;
    t->open = row->open;
    t->started = row->started;
    return true;
}

static int
compare_trees(const void *a_, const void *b_)
{
    const struct tree_config *a = a_, *b = b_;
    int cmp = memcmp(&a->proxy, &b->proxy, sizeof a->proxy);

    return cmp ? cmp : a->epoch < b->epoch ? -1 : a->epoch > b->epoch;
}

/* Those of one Proxy Address are next to each other, and few. */
static bool
check_trees(struct reader *r, const struct node_config *out)
{
    for (size_t i = 1; i < out->n_trees; i++) {
        const struct tree_config *t = &out->trees[i];

        for (const struct tree_config *u = t;
             u-- > out->trees && IN6_ARE_ADDR_EQUAL(&u->proxy, &t->proxy);) {
            if (u->designated_qpn == t->designated_qpn) {
                return reader_bad(r, "Tree_Node.group", t->group,
                                  "its Proxy Address and Designated QPN are there twice");
            }
        }
    }
    return true;
}

/* Reads those trees that are not as they were; 'before' may be NULL. */
static bool
read_trees(struct reader *r, const struct intent_rows *rows, const struct intent_before *before,
           struct node_config *out)
{
    out->trees = xcalloc(rows->n_trees + 1, sizeof *out->trees);
    for (size_t i = 0; i < rows->n_trees; i++) {
        if (before && before->tree(before->aux, intent_tree_row(rows->trees[i]))) {
            continue;
        }
        struct tree_config *t = &out->trees[out->n_trees];
        /* Counted first, so that a tree read in part is freed. */
        out->n_trees++;
        if (!read_tree(r, rows->trees[i], out, t)) {
            return false;
        }
        if (intent_tree_is_source(rows->node, rows->trees[i])) {
            t->outer_source = node_address((uint16_t) rows->node->id);
        }
    }
    qsort(out->trees, out->n_trees, sizeof *out->trees, compare_trees);
    return true;
}

/* Puts the trees that are as they were among those that were read; both are in order.  They are copied,
 * not moved: who has them is decided when all is well. */
static void
merge_trees(const struct intent_before *before, struct node_config *out)
{
    const struct node_config *c = before->config;
    struct tree_config *all = xmalloc((out->n_trees + c->n_trees + 1) * sizeof *all);
    size_t n = 0, n_read = 0;

    for (size_t i = 0; i < c->n_trees; i++) {
        if (before->tree(before->aux, c->trees[i].row)) {
            while (n_read < out->n_trees && compare_trees(&out->trees[n_read], &c->trees[i]) < 0) {
                all[n++] = out->trees[n_read++];
            }
            all[n++] = c->trees[i];
        }
    }
    while (n_read < out->n_trees) {
        all[n++] = out->trees[n_read++];
    }
    free(out->trees);
    out->trees = all;
    out->n_trees = n;
}

/* Has 'from' forget the trees that are as they were, which are another configuration's. */
static void
part_trees(const struct intent_before *before, struct node_config *from)
{
    size_t n = 0;

    for (size_t i = 0; i < from->n_trees; i++) {
        if (!before->tree(before->aux, from->trees[i].row)) {
            from->trees[n++] = from->trees[i];
        }
    }
    from->n_trees = n;
}

/* A number for which 0, in a converted registry until castd has run, is 'otherwise'. */
static bool
read_set(struct reader *r, const char *column, int64_t value, uint64_t min, uint64_t max,
         uint64_t otherwise, uint64_t *out)
{
    *out = value ? (uint64_t) value : otherwise;
    return !value || reader_integer(r, column, value, (int64_t) min, (int64_t) max);
}

static bool
read_queue_rates(struct reader *r, const struct rrec_node *row, struct congestion_config *c)
{
    c->queue_rates = xcalloc(row->n_queue_rates + 1, sizeof *c->queue_rates);
    c->n_queue_rates = row->n_queue_rates;
    for (size_t i = 0; i < row->n_queue_rates; i++) { /* the keys of a map are in order. */
        if (!reader_integer(r, "Node.queue_rates", row->key_queue_rates[i], 1, NODE_ID_MAX)
            || !reader_integer(r, "Node.queue_rates", row->value_queue_rates[i], 1000,
                               (int64_t) MAX_LINE_RATE)) {
            return false;
        }
        c->queue_rates[i] = (struct queue_rate){(uint16_t) row->key_queue_rates[i],
                                                (uint64_t) row->value_queue_rates[i]};
    }
    return true;
}

static bool
read_congestion(struct reader *r, const struct rrec_node *row, struct congestion_config *c)
{
    struct rate_settings rate = {.by = RATE_BY_AGENT};
    uint64_t interval, fast_cnp_rate;

    if (!read_set(r, "Node.cnp_interval", row->cnp_interval, MIN_CNP_INTERVAL, MAX_CNP_INTERVAL,
                  DEFAULT_CNP_INTERVAL, &interval)
        || !read_set(r, "Node.fast_cnp_rate", row->fast_cnp_rate, 1, MAX_FAST_CNP_RATE,
                     DEFAULT_FAST_CNP_RATE, &fast_cnp_rate)
        || !read_set(r, "Node.line_rate", row->line_rate, MIN_LINE_RATE, MAX_LINE_RATE,
                     DEFAULT_LINE_RATE, &rate.line)
        || !read_set(r, "Node.rate_floor", row->rate_floor, 1, MAX_LINE_RATE, 0, &rate.floor)
        || !read_queue_rates(r, row, c)
        || !reader_addresses(r, "Node.capable", row->capable, row->n_capable, &c->capable,
                             &c->n_capable)
        || !reader_addresses(r, "Node.trusted", row->trusted, row->n_trusted, &c->trusted,
                             &c->n_trusted)) {
        return false;
    }
    if (row->rate_control && !rate_control_by_parse(row->rate_control, &rate.by)) {
        return reader_bad(r, "Node.rate_control", row->rate_control, "unknown");
    }
    if (row->controller && !rate_controller_parse(row->controller, &rate.controller)) {
        return reader_bad(r, "Node.controller", row->controller, "unknown");
    }
    c->interval_usec = (uint32_t) interval;
    c->fast_cnp = row->fast_cnp;
    c->any_icrc = row->fast_cnp_any_icrc;
    c->fast_cnp_rate = (uint32_t) fast_cnp_rate;
    c->trace = row->trace;
    c->rate_control = rate.by;
    c->rate = rate_settings_params(&rate, c->interval_usec);
    return true;
}

bool
intent_read_routes(const struct intent_rows *rows, struct node_config *out, char **errp)
{
    struct reader r = {NULL};

    memset(out, 0, sizeof *out);
    if (read_ports(&r, rows->node, out) && read_routes(&r, rows, out)) {
        *errp = NULL;
        return true;
    }
    node_config_uninit(out);
    *errp = r.error;
    return false;
}

bool
intent_read_tree(const struct rrec_tree_node *row, struct tree_config *out, char **errp)
{
    struct reader r = {NULL};

    memset(out, 0, sizeof *out);
    if (read_tree(&r, row, NULL, out)) {
        *errp = NULL;
        return true;
    }
    tree_config_uninit(out);
    *errp = r.error;
    return false;
}

/* SIDs and routes that are as they were, taken over from 'from'. */
static void
take_lists(const struct intent_before *before, struct node_config *from, struct node_config *to)
{
    if (before->sids) {
        to->sids = from->sids;
        to->n_sids = from->n_sids;
        from->sids = NULL;
        from->n_sids = 0;
    }
    if (before->routes) {
        to->routes = from->routes;
        to->n_routes = from->n_routes;
        from->routes = NULL;
        from->n_routes = 0;
    }
}

static bool
lists(const struct rrec_node *node, const struct rrec_tree_node *tree)
{
    for (size_t i = 0; i < node->n_trees; i++) {
        if (node->trees[i] == tree) {
            return true;
        }
    }
    return false;
}

bool
intent_is_tree_of(const struct rrec_tree_node *tree, const struct rrec_node *node)
{
    bool names = !strcmp(tree->node, node->name);

    return node->named_trees ? names : (names || !tree->node[0]) && lists(node, tree);
}

bool
intent_read_changes(const struct intent_rows *rows, const struct intent_before *before,
                    struct node_config *out, char **errp)
{
    const struct rrec_node *row = rows->node;
    struct reader r = {NULL};

    memset(out, 0, sizeof *out);
    bool good = reader_name(&r, "Node.name", row->name, out->name)
                && (node_role_parse(row->role, &out->role)
                    || reader_bad(&r, "Node.role", row->role, "unknown"))
                && reader_integer(&r, "Node.id", row->id, 1, NODE_ID_MAX)
                && reader_integer(&r, "Node.cfg", row->cfg, 0, INT64_MAX)
                && read_ports(&r, row, out)
                && ((before && before->routes) || read_routes(&r, rows, out))
                && ((before && before->sids) || read_sids(&r, row, out))
                && intent_read_probes(&r, row, out) && intent_read_destinations(&r, row, out)
                && read_congestion(&r, row, &out->congestion) && read_trees(&r, rows, before, out);
    if (good && before) {
        merge_trees(before, out);
    }
    if (good && check_trees(&r, out)) {
        if (before) {
            part_trees(before, before->config);
            take_lists(before, before->config, out);
        }
        out->generation = (uint64_t) row->cfg;
        out->id = (uint16_t) row->id;
        out->address = node_address(out->id);
        out->verify_always = row->verify_always;
        *errp = NULL;
        return true;
    }
    if (good && before) {
        part_trees(before, out);
    }
    node_config_uninit(out);
    *errp = r.error;
    return false;
}

bool
intent_read(const struct intent_rows *rows, struct node_config *out, char **errp)
{
    return intent_read_changes(rows, NULL, out, errp);
}
