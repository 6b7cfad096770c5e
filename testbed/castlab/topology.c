/* SPDX-License-Identifier: Apache-2.0
 *
 * A lab's topology file as a checked structure.
 *
 * Nodes are read first, then links.  Then the whole is checked: every host has
 * its link, and netdevs, ids and addresses are unique.
 */
#include <config.h>

#include "testbed/castlab/topology.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/registry/values.h"
#include "lib/spelling.h"
#include "testbed/castlab/lab.h"
#include "testbed/castlab/parameters.h"
#include "testbed/castlab/topology-paths.h"
#include "ctl/yaml/yaml-doc.h"
#include "util.h"

#define HOST_MTU_DEFAULT   4200 /* gives soft-RoCE a path MTU of 4096. */
#define FABRIC_MTU_DEFAULT 9000
#define MAX_SIZE           (1 << 20) /* a file with a line for each of 1024 nodes has some 100 kB. */
#define MTU_MIN            1280
#define MTU_MAX            65000
#define FORWARDERS         (1u << KIND_SWEDGE | 1u << KIND_SRCAGENT | 1u << KIND_OVS | 1u << KIND_ROUTER)

struct reader {
    struct yaml_doc yd;
    struct parameters ps;
    struct topology *t;
    const yaml_node_t **at; /* where each node of 't' is named in the file. */
};

static const struct kind_row {
    const char *with_article;
    enum node_role role; /* of a forwarder. */
} kinds[] = {
    [KIND_HOST] = {.with_article = "a host"},     [KIND_SWEDGE] = {"a swedge", NODE_SWITCH},
    [KIND_SRCAGENT] = {"a srcagent", NODE_AGENT}, [KIND_OVS] = {"an ovs", NODE_OVS},
    [KIND_ROUTER] = {"a router", NODE_ROUTER},
};

static const char *
a_kind(const struct topology_node *node)
{
    return kinds[node->kind].with_article;
}

enum node_role
topology_role(enum topology_kind kind)
{
    return kinds[kind].role;
}

bool
topology_name_ok(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
    return isalpha((unsigned char) name[0]) && !name[n] && n < TOPOLOGY_NAME_SIZE;
}

static struct topology_node *
find_node(struct topology *t, const char *name)
{
    for (size_t i = 0; i < t->n_nodes; i++) {
        if (!strcmp(t->nodes[i].name, name)) {
            return &t->nodes[i];
        }
    }
    return NULL;
}

/* Adds an error that refers to an earlier node. */
static void
error_clash(struct reader *r, const yaml_node_t *at, const char *what, const char *value,
            const struct topology_node *first)
{
    yaml_doc_error(&r->yd, at, "%s %s is already that of '%s' (line %zu)", what, value, first->name,
                   r->at[first - r->t->nodes]->start_mark.line + 1);
}

static unsigned long
read_number(struct reader *r, const yaml_node_t *at, const char *what, const char *text,
            unsigned long min, unsigned long max)
{
    uint64_t n = min;
    if (!number_parse(text, min, max, &n)) {
        yaml_doc_error(&r->yd, at, "%s: '%s' is not a number from %lu to %lu", what, text, min,
                       max);
    }
    return (unsigned long) n;
}

static void
read_mtu(struct reader *r, yaml_node_t *map)
{
    static const char *const keys[] = {"host", "fabric", NULL};
    if (!yaml_doc_has_keys(&r->yd, map, "'mtu'", keys)) {
        return;
    }
    yaml_node_t *key, *value;
    for (size_t i = 0; yaml_doc_pair(&r->yd, map, i, &key, &value); i++) {
        if (!yaml_doc_is_scalar(&r->yd, value, "an MTU")) {
            return;
        }
        const struct range none = {.is_range = false};
        char *text = parameters_expand(&r->ps, &r->yd, value, &none);
        unsigned int mtu = (unsigned int) read_number(r, value, "mtu", text, MTU_MIN, MTU_MAX);
        free(text);
        *(strcmp(yaml_doc_text(key), "host") ? &r->t->fabric_mtu : &r->t->host_mtu) = mtu;
    }
    if (r->t->host_mtu > r->t->fabric_mtu) {
        yaml_doc_error(&r->yd, map, "host MTU %u is larger than fabric MTU %u", r->t->host_mtu,
                       r->t->fabric_mtu);
    }
}

static void
read_registry(struct reader *r, yaml_node_t *value)
{
    if (yaml_doc_is_scalar(&r->yd, value, "'registry'")) {
        const struct range none = {.is_range = false};
        char *text = parameters_expand(&r->ps, &r->yd, value, &none);
        r->t->n_servers = (unsigned int) read_number(r, value, "servers of the registry", text, 1,
                                                     REGISTRY_MAX_SERVERS);
        free(text);
    }
}

/* Nodes. */

static void
read_address(struct reader *r, const yaml_node_t *at, const char *text, struct topology_node *node)
{
    struct in6_addr *a = &node->address;
    const char *rule = ip6_parse(text, a) ? host_address_check(a) : "must be an IPv6 address";
    if (rule) {
        yaml_doc_error(&r->yd, at, "address '%s' of node '%s' %s", text, node->name, rule);
    }
    for (const struct topology_node *n = r->t->nodes; n < node; n++) {
        if (n->kind == KIND_HOST && IN6_ARE_ADDR_EQUAL(&n->address, a)) {
            error_clash(r, at, "address", text, n);
        }
    }
}

static void
read_id(struct reader *r, const yaml_node_t *at, const char *text, struct topology_node *node)
{
    char *what = xasprintf("id of node '%s'", node->name);
    node->id = (uint16_t) read_number(r, at, what, text, 1, NODE_ID_MAX);
    free(what);
    for (const struct topology_node *n = r->t->nodes; n < node; n++) {
        if (n->kind != KIND_HOST && n->id == node->id) {
            error_clash(r, at, "id", text, n);
        }
    }
}

static void
read_kind(struct reader *r, yaml_node_t *at, const char *text, struct topology_node *node)
{
    const char *names[ARRAY_SIZE(kinds) + 1] = {NULL};
    if (topology_kind_parse(text, &node->kind)) {
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        names[i] = topology_kind_name((enum topology_kind) i);
    }
    char *hint = did_you_mean(text, names);
    yaml_doc_error(&r->yd, at, "unknown kind '%s' of node '%s'%s", text, node->name, hint);
    free(hint);
}

/* Is it "false"?  'key' is the attribute. */
static bool
read_negation(struct reader *r, const yaml_node_t *at, const char *key, const char *text,
              const struct topology_node *node)
{
    bool is_false = !strcmp(text, "false");
    if (!is_false && strcmp(text, "true")) {
        yaml_doc_error(&r->yd, at, "%s of node '%s': '%s' is neither true nor false", key,
                       node->name, text);
    }
    return is_false;
}

static void
read_aggregate(struct reader *r, const yaml_node_t *at, const char *text,
               struct topology_node *node)
{
    node->no_aggregation = read_negation(r, at, "aggregate", text, node);
}

static void
read_rdma(struct reader *r, const yaml_node_t *at, const char *text, struct topology_node *node)
{
    node->no_rdma = read_negation(r, at, "rdma", text, node);
}

static void
read_plane(struct reader *r, const yaml_node_t *at, const char *text, struct topology_node *node)
{
    if (topology_name_ok(text)) {
        ovs_strlcpy(node->plane, text, sizeof node->plane);
    } else {
        yaml_doc_error(&r->yd, at,
                       "plane '%s' of node '%s': a letter, then letters, digits, '_' and '-', "
                       "%d characters at most",
                       text, node->name, TOPOLOGY_NAME_SIZE - 1);
    }
}

/* What a node may say of itself, by its kind. */
static const struct attribute {
    const char *key;
    void (*read)(struct reader *, const yaml_node_t *, const char *text, struct topology_node *);
    unsigned int kinds; /* those that have it, a bit for each. */
    bool is_optional;
} attributes[] = {
    {"address", read_address, 1u << KIND_HOST, false},
    {"id", read_id, FORWARDERS, false},
    {"aggregate", read_aggregate, 1u << KIND_SWEDGE, true},
    {"plane", read_plane, FORWARDERS, true},
    {"rdma", read_rdma, 1u << KIND_HOST, true},
};

/* The text of an attribute; NULL, with an error, when it is missing. */
static char *
node_attribute(struct reader *r, yaml_node_t *map, const char *key, const struct range *range,
               const struct topology_node *node)
{
    yaml_node_t *value = yaml_doc_get(&r->yd, map, key);
    if (!value) {
        yaml_doc_error(&r->yd, map, "node '%s' has no '%s'", node->name, key);
        return NULL;
    }
    char *what = xasprintf("'%s' of node '%s'", key, node->name);
    bool ok = yaml_doc_is_scalar(&r->yd, value, what);
    free(what);
    return ok ? parameters_expand(&r->ps, &r->yd, value, range) : NULL;
}

static void
read_attribute(struct reader *r, yaml_node_t *map, const struct range *range,
               const struct attribute *a, struct topology_node *node)
{
    const yaml_node_t *at = yaml_doc_get(&r->yd, map, a->key);
    if (!(a->kinds & 1u << node->kind)) {
        if (at) {
            yaml_doc_error(&r->yd, at, "'%s' of node '%s': %s has none", a->key, node->name,
                           a_kind(node));
        }
    } else if (at || !a->is_optional) {
        char *text = node_attribute(r, map, a->key, range, node);
        if (text) {
            a->read(r, at, text, node);
        }
        free(text);
    }
}

/* Reads the keys of a node, which depend on its kind. */
static void
read_attributes(struct reader *r, yaml_node_t *map, const struct range *range,
                struct topology_node *node)
{
    const char *keys[ARRAY_SIZE(attributes) + 2] = {"kind"};
    for (size_t i = 0; i < ARRAY_SIZE(attributes); i++) {
        keys[i + 1] = attributes[i].key;
    }
    char *what = xasprintf("node '%s'", node->name);
    bool ok = yaml_doc_has_keys(&r->yd, map, what, keys);
    free(what);
    char *kind = ok ? node_attribute(r, map, "kind", range, node) : NULL;
    if (!kind) {
        return;
    }
    read_kind(r, yaml_doc_get(&r->yd, map, "kind"), kind, node);
    free(kind);
    if (node->kind == KIND_OVS && strlen(node->name) > OVS_NAME_MAX) {
        yaml_doc_error(&r->yd, map,
                       "name of node '%s': that of an ovs, whose bridge is 'br-%s', has at most %d "
                       "characters",
                       node->name, node->name, OVS_NAME_MAX);
    }
    for (size_t i = 0; i < ARRAY_SIZE(attributes); i++) {
        read_attribute(r, map, range, &attributes[i], node);
    }
}

/* Its number, if it is 'base' alone, which is the first one's name, or 'base', a dash and a number. */
static unsigned int
number_behind(const char *base, const char *name)
{
    size_t len = strlen(base);

    if (strncmp(name, base, len)) {
        return 0;
    }
    const char *rest = name + len;
    bool has_digit = rest[0] == '-' && rest[1] >= '2' && rest[1] <= '0' + REGISTRY_MAX_SERVERS;
    return !rest[0] ? 1 : has_digit && !rest[2] ? (unsigned int) (rest[1] - '0') : 0;
}

unsigned int
lab_server_number(const char *name)
{
    unsigned int number = number_behind(OVSDB_NAME, name);

    return number ? number : number_behind(OVSDB_SHORT_NAME, name);
}

/* Is it the name of another process of a lab? */
static bool
name_is_reserved(const char *name)
{
    static const char *const names[] = {CASTD_NAME, HOLDER_NAME, NULL};
    return is_one_of(name, names) || lab_server_number(name);
}

static void
read_node(struct reader *r, yaml_node_t *key, yaml_node_t *map, const struct range *range)
{
    struct topology *t = r->t;
    if (t->n_nodes >= TOPOLOGY_MAX_NODES) {
        yaml_doc_error(&r->yd, key, "more than %d nodes", TOPOLOGY_MAX_NODES);
        return;
    }
    char *name = parameters_expand(&r->ps, &r->yd, key, range);
    const struct topology_node *same = find_node(t, name);
    if (!topology_name_ok(name)) {
        yaml_doc_error(&r->yd, key,
                       "node name '%s': a letter, then letters, digits, '_' and '-', "
                       "%d characters at most",
                       name, TOPOLOGY_NAME_SIZE - 1);
    } else if (name_is_reserved(name)) {
        yaml_doc_error(&r->yd, key, "node name '%s' is that of a part of every lab", name);
    } else if (same) {
        error_clash(r, key, "name", name, same);
    }
    struct topology_node *node = &t->nodes[t->n_nodes];
    *node = (struct topology_node){.kind = KIND_HOST};
    ovs_strlcpy(node->name, name, sizeof node->name);
    free(name);
    r->at[t->n_nodes] = key;
    if (!r->yd.error) {
        read_attributes(r, map, range, node);
    }
    t->n_nodes++;
}

static void
read_nodes(struct reader *r, yaml_node_t *map)
{
    if (!yaml_doc_has_keys(&r->yd, map, "'nodes'", NULL)) {
        return;
    }
    yaml_node_t *key, *value;
    for (size_t i = 0; !r->yd.error && yaml_doc_pair(&r->yd, map, i, &key, &value); i++) {
        struct range range = {.is_range = false};
        parameters_find_range(&r->ps, &r->yd, key, &range);
        for (range.i = range.first; range.i <= range.last && !r->yd.error; range.i++) {
            read_node(r, key, value, &range);
        }
    }
    if (!r->t->n_nodes) {
        yaml_doc_error(&r->yd, map, "a lab without nodes");
    }
}

/* Links. */

/* "node" or "node:netdev". */
static void
read_end(struct reader *r, const yaml_node_t *at, const char *text, struct topology_end *end)
{
    const char *colon = strchr(text, ':');
    char *name = colon ? xmemdup0(text, (size_t) (colon - text)) : xstrdup(text);
    const struct topology_node *node = find_node(r->t, name);
    if (!node) {
        const char **names = xcalloc(r->t->n_nodes + 1, sizeof *names);
        for (size_t i = 0; i < r->t->n_nodes; i++) {
            names[i] = r->t->nodes[i].name;
        }
        char *hint = did_you_mean(name, names);
        yaml_doc_error(&r->yd, at, "link to unknown node '%s'%s", name, hint);
        free(hint);
        free(names);
    } else {
        end->node = (size_t) (node - r->t->nodes);
    }
    free(name);
    if (!colon) {
        return;
    }
    const char *netdev = colon + 1;
    if (!ifname_is_valid(netdev) || !strcmp(netdev, "lo")) {
        yaml_doc_error(&r->yd, at, "'%s': network device '%s' " IFNAME_RULE " and not 'lo'", text,
                       netdev);
        return;
    }
    ovs_strlcpy(end->netdev, netdev, sizeof end->netdev);
}

/* Names a device after 'name' unless the file has named it. */
static void
default_netdev(struct reader *r, const yaml_node_t *at, struct topology_end *end, const char *name)
{
    if (end->netdev[0]) {
        return;
    }
    if (strlen(name) >= IFNAMSIZ) {
        yaml_doc_error(&r->yd, at,
                       "network device '%s' of node '%s' would have more than %d "
                       "characters: name it ('%s:NAME')",
                       name, r->t->nodes[end->node].name, IFNAMSIZ - 1,
                       r->t->nodes[end->node].name);
        return;
    }
    ovs_strlcpy(end->netdev, name, sizeof end->netdev);
}

/* Is it a node whose packets no program of ours sees? */
static bool
is_foreign(const struct topology_node *node)
{
    return node->kind != KIND_HOST && node_role_is_foreign(topology_role(node->kind));
}

static void
check_host_link(struct reader *r, const yaml_node_t *at, struct topology_link *link)
{
    struct topology_node *host = &r->t->nodes[link->ends[0].node];
    const struct topology_node *peer = &r->t->nodes[link->ends[1].node];
    if (peer->kind == KIND_HOST) {
        yaml_doc_error(&r->yd, at,
                       "'%s' and '%s' are hosts: a host's link goes to a swedge or "
                       "srcagent",
                       host->name, peer->name);
    } else if (is_foreign(peer)) {
        yaml_doc_error(&r->yd, at, "'%s' is %s: a host's link goes to a swedge or srcagent",
                       peer->name, a_kind(peer));
    } else if (host->n_links) {
        yaml_doc_error(&r->yd, at, "host '%s' has a link already: it has one", host->name);
    } else if (link->ends[1].netdev[0]) {
        yaml_doc_error(&r->yd, at,
                       "'%s:%s': towards a host the port is the host's own device: "
                       "leave ':%s' out",
                       peer->name, link->ends[1].netdev, link->ends[1].netdev);
    }
    char *name = xasprintf("%s-%s", r->t->name, host->name);
    default_netdev(r, at, &link->ends[0], name);
    free(name);
    memcpy(link->ends[1].netdev, link->ends[0].netdev, sizeof link->ends[1].netdev);
}

static bool
end_clashes(const struct topology *t, const struct topology_end *a, const struct topology_end *b)
{
    /* All hosts are in one namespace. */
    bool same_place =
        a->node == b->node
        || (t->nodes[a->node].kind == KIND_HOST && t->nodes[b->node].kind == KIND_HOST);
    return same_place && !strcmp(a->netdev, b->netdev);
}

static void
check_netdevs(struct reader *r, const yaml_node_t *at, const struct topology_link *link)
{
    const struct topology *t = r->t;
    for (const struct topology_link *other = t->links; other < link; other++) {
        for (size_t i = 0; i < 4; i++) {
            const struct topology_end *end = &link->ends[i & 1];
            if (end_clashes(t, end, &other->ends[i >> 1])) {
                yaml_doc_error(&r->yd, at, "duplicate interface '%s' of node '%s'%s", end->netdev,
                               t->nodes[end->node].name,
                               link->has_host ? "" : ": name both ends of parallel links");
            }
        }
    }
}

/* Reads how bad the link is for what 'end' sends.  'at' is NULL if the file does not say. */
static void
read_impairment(struct reader *r, const yaml_node_t *at, const struct range *range,
                char text[IMPAIR_TEXT_SIZE])
{
    if (!at) {
        return;
    }
    char *words = parameters_expand(&r->ps, &r->yd, at, range);
    struct impair_params params;
    char *error;
    if (impair_parse(words, &params, &error)) {
        impair_format(&params, text);
    } else {
        yaml_doc_error(&r->yd, at, "%s", error);
        free(error);
    }
    free(words);
}

/* A link as the file has it, for one number of its range. */
struct link_source {
    yaml_node_t *ends[2];
    yaml_node_t *impair[2]; /* of what ends[i] sends; NULL: the file does not say. */
    yaml_node_t *kind;      /* of ports; NULL: the usual. */
};

/* Reads the kind of ports of a link whose ends are known. */
static void
read_port_kind(struct reader *r, const yaml_node_t *at, const struct range *range,
               struct topology_link *link)
{
    link->kind = port_kind_usual(link->has_host);
    if (!at || r->yd.error) {
        return;
    }
    char *text = parameters_expand(&r->ps, &r->yd, at, range);
    enum port_kind kind;
    if (!port_kind_parse(text, &kind)) {
        char *known = words_join(&port_kind_words, WORDS_ALL, ", ", " or ");
        yaml_doc_error(&r->yd, at, "unknown kind '%s' of a link's ports: must be %s", text, known);
        free(known);
    } else if (port_kind_is_netdev(kind) == link->has_host) {
        yaml_doc_error(&r->yd, at, "kind '%s': not for a link %s", text,
                       link->has_host ? "to a host" : "between forwarders");
    } else {
        link->kind = kind;
    }
    free(text);
}

static void
swap_ends(struct topology_link *link)
{
    struct topology_link old = *link;
    for (size_t i = 0; i < 2; i++) {
        link->ends[i] = old.ends[!i];
        memcpy(link->impair[i], old.impair[!i], sizeof link->impair[i]);
    }
}

static void
read_link(struct reader *r, const struct link_source *source, const struct range *range)
{
    yaml_node_t *const *at = source->ends;
    struct topology *t = r->t;
    t->links = xrealloc(t->links, (t->n_links + 1) * sizeof *t->links);
    struct topology_link *link = &t->links[t->n_links];
    *link = (struct topology_link){.has_host = false};
    for (size_t i = 0; i < 2; i++) {
        char *text = parameters_expand(&r->ps, &r->yd, at[i], range);
        read_end(r, at[i], text, &link->ends[i]);
        free(text);
        read_impairment(r, source->impair[i], range, link->impair[i]);
        const struct topology_node *sender = &t->nodes[link->ends[i].node];
        if (!r->yd.error && link->impair[i][0] && is_foreign(sender)) {
            yaml_doc_error(&r->yd, source->impair[i], "'%s' is %s, which makes no link bad",
                           sender->name, a_kind(sender));
        }
    }
    if (r->yd.error) {
        return;
    }
    if (link->ends[0].node == link->ends[1].node) {
        yaml_doc_error(&r->yd, at[0], "link from '%s' to itself",
                       t->nodes[link->ends[0].node].name);
        return;
    }
    if (t->nodes[link->ends[0].node].kind != KIND_HOST
        && t->nodes[link->ends[1].node].kind == KIND_HOST) {
        swap_ends(link);
    }
    link->has_host = t->nodes[link->ends[0].node].kind == KIND_HOST;
    if (link->has_host) {
        check_host_link(r, at[0], link);
    } else {
        default_netdev(r, at[0], &link->ends[0], t->nodes[link->ends[1].node].name);
        default_netdev(r, at[1], &link->ends[1], t->nodes[link->ends[0].node].name);
    }
    check_netdevs(r, at[0], link);
    read_port_kind(r, source->kind, range, link);
    t->nodes[link->ends[0].node].n_links++;
    t->nodes[link->ends[1].node].n_links++;
    t->n_links++;
}

static void
read_link_entry(struct reader *r, yaml_node_t *map)
{
    static const char *const keys[] = {"endpoints", "forward", "backward", "kind", NULL};
    if (!yaml_doc_has_keys(&r->yd, map, "a link", keys)) {
        return;
    }
    yaml_node_t *list = yaml_doc_get(&r->yd, map, "endpoints");
    if (!list) {
        yaml_doc_error(&r->yd, map, "a link without 'endpoints'");
        return;
    }
    if (!yaml_doc_is_sequence(&r->yd, list, "'endpoints'")) {
        return;
    }
    struct link_source source = {
        .ends = {yaml_doc_item(&r->yd, list, 0), yaml_doc_item(&r->yd, list, 1)},
        .impair = {yaml_doc_get(&r->yd, map, "forward"), yaml_doc_get(&r->yd, map, "backward")},
        .kind = yaml_doc_get(&r->yd, map, "kind"),
    };
    if (!source.ends[0] || !source.ends[1] || yaml_doc_item(&r->yd, list, 2)) {
        yaml_doc_error(&r->yd, list, "a link has two endpoints");
        return;
    }
    if (source.kind && !yaml_doc_is_scalar(&r->yd, source.kind, "'kind'")) {
        return;
    }
    struct range range = {.is_range = false};
    for (size_t i = 0; i < 2; i++) {
        if (!yaml_doc_is_scalar(&r->yd, source.ends[i], "an endpoint")
            || (source.impair[i]
                && !yaml_doc_is_scalar(&r->yd, source.impair[i], "'forward' or 'backward'"))) {
            return;
        }
        parameters_find_range(&r->ps, &r->yd, source.ends[i], &range);
    }
    for (range.i = range.first; range.i <= range.last && !r->yd.error; range.i++) {
        read_link(r, &source, &range);
    }
}

static void
read_links(struct reader *r, yaml_node_t *list)
{
    if (!yaml_doc_is_sequence(&r->yd, list, "'links'")) {
        return;
    }
    yaml_node_t *item;
    for (size_t i = 0; !r->yd.error && (item = yaml_doc_item(&r->yd, list, i)); i++) {
        read_link_entry(r, item);
    }
}

/* Complains of nodes without a link, once all links have been read. */
static void
check_links_of_nodes(struct reader *r)
{
    for (size_t i = 0; i < r->t->n_nodes; i++) {
        const struct topology_node *node = &r->t->nodes[i];
        if (!node->n_links) {
            yaml_doc_error(&r->yd, r->at[i], "%s '%s' has no link", topology_kind_name(node->kind),
                           node->name);
        }
    }
}

/* The file. */

static yaml_node_t *
require(struct reader *r, yaml_node_t *map, const char *key, const char *where)
{
    yaml_node_t *value = yaml_doc_get(&r->yd, map, key);
    if (!value) {
        yaml_doc_error(&r->yd, map, "%s has no '%s'", where, key);
    }
    return value;
}

static void
read_name(struct reader *r, yaml_node_t *root, const char *override)
{
    yaml_node_t *value = require(r, root, "name", "the file");
    if (!value || !yaml_doc_is_scalar(&r->yd, value, "'name'")) {
        return;
    }
    const char *name = override ? override : yaml_doc_text(value);
    if (!topology_name_ok(name)) {
        yaml_doc_error(&r->yd, value,
                       "lab name '%s': a letter, then letters, digits, '_' and "
                       "'-', %d characters at most",
                       name, TOPOLOGY_NAME_SIZE - 1);
        return;
    }
    ovs_strlcpy(r->t->name, name, sizeof r->t->name);
}

static void
read_file(struct reader *r, const char *name, const char *const parameters[], size_t n)
{
    static const char *const keys[] = {"name", "parameters", "topology", NULL};
    static const char *const topology_keys[] = {"nodes", "links", "mtu", "paths", "registry", NULL};
    yaml_node_t *root = yaml_doc_root(&r->yd);
    if (!yaml_doc_has_keys(&r->yd, root, "the file", keys)) {
        return;
    }
    read_name(r, root, name);
    parameters_init(&r->ps, &r->yd, yaml_doc_get(&r->yd, root, "parameters"), parameters, n);
    yaml_node_t *map = require(r, root, "topology", "the file");
    if (!map || !yaml_doc_has_keys(&r->yd, map, "'topology'", topology_keys)) {
        return;
    }
    yaml_node_t *mtu = yaml_doc_get(&r->yd, map, "mtu");
    yaml_node_t *paths = yaml_doc_get(&r->yd, map, "paths");
    yaml_node_t *registry = yaml_doc_get(&r->yd, map, "registry");
    yaml_node_t *nodes = require(r, map, "nodes", "'topology'");
    yaml_node_t *links = require(r, map, "links", "'topology'");
    if (mtu && !r->yd.error) {
        read_mtu(r, mtu);
    }
    if (registry && !r->yd.error) {
        read_registry(r, registry);
    }
    if (paths && !r->yd.error) {
        topology_read_paths(&r->yd, &r->ps, paths, r->t);
    }
    if (nodes && !r->yd.error) {
        read_nodes(r, nodes);
    }
    if (links && !r->yd.error) {
        read_links(r, links);
    }
    if (!r->yd.error) {
        check_links_of_nodes(r);
    }
}

char *
topology_load(const char *file, const char *name, const char *const parameters[], size_t n,
              struct topology **topologyp)
{
    struct reader r = {.ps = {.n = 0}};
    yaml_doc_init(&r.yd, file, MAX_SIZE);
    r.t = xzalloc(sizeof *r.t);
    r.t->host_mtu = HOST_MTU_DEFAULT;
    r.t->fabric_mtu = FABRIC_MTU_DEFAULT;
    r.t->n_servers = 1;
    r.t->nodes = xcalloc(TOPOLOGY_MAX_NODES, sizeof *r.t->nodes);
    r.at = xcalloc(TOPOLOGY_MAX_NODES, sizeof *r.at);
    if (!r.yd.error) {
        read_file(&r, name, parameters, n);
    }
    char *error = r.yd.error;
    r.yd.error = NULL;
    parameters_uninit(&r.ps);
    yaml_doc_uninit(&r.yd);
    free(r.at);
    if (error) {
        topology_destroy(r.t);
        r.t = NULL;
    }
    *topologyp = r.t;
    return error;
}

void
topology_destroy(struct topology *t)
{
    if (t) {
        free(t->nodes);
        free(t->links);
        free(t);
    }
}
