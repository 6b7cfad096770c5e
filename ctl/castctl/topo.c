/* SPDX-License-Identifier: Apache-2.0
 *
 * castctl node, host and link: the topology.
 */
#include <config.h>

#include "ctl/castctl/castctl.h"

#include <stdlib.h>

#include "ctl/castctl/path.h"
#include "ctl/registry/intent.h"
#include "ctl/registry/request.h"
#include "ctl/registry/values.h"
#include "lib/node-config.h"
#include "sset.h"
#include "util.h"

/* Nodes and hosts share one space of names, since links name either. */
static void
check_name_is_free(const struct ctl *ctl, const char *name)
{
    if (ctl_find_node(ctl, name)) {
        ctl_refuse(ctl, "a node named '%s' exists already", name);
    }
    if (request_find_host(ctl->idl, name)) {
        ctl_refuse(ctl, "a host named '%s' exists already", name);
    }
}

/* Is one of the link's ends 'port' of a node or host, NULL: any? */
static bool
link_has_end(const struct rrec_link *link, const char *name, const char *port)
{
    return (!strcmp(link->a, name) && (!port || !strcmp(link->a_port, port)))
           || (!strcmp(link->b, name) && (!port || !strcmp(link->b_port, port)));
}

/* The first link at 'port' of a node or host, NULL: at any. */
static const struct rrec_link *
find_link(const struct ctl *ctl, const char *name, const char *port)
{
    const struct rrec_link *row;

    RREC_LINK_FOR_EACH (row, ctl->idl) {
        if (link_has_end(row, name, port)) {
            return row;
        }
    }
    return NULL;
}

static void
check_no_links(const struct ctl *ctl, const char *name)
{
    const struct rrec_link *link = find_link(ctl, name, NULL);

    if (link) {
        ctl_refuse(ctl, "%s still has link %s:%s %s:%s", name, link->a, link->a_port, link->b,
                   link->b_port);
    }
}

/*
 * Nodes.
 */

static enum ctl_aggregate
aggregate_of(bool no_aggregation)
{
    return no_aggregation ? AGGREGATE_NO : AGGREGATE_YES;
}

/* True if --aggregate says that the node does not aggregate; without the option, 'otherwise'. */
static bool
option_no_aggregation(const struct ctl *ctl, bool otherwise)
{
    return ctl_option_word(ctl, OPT_AGGREGATE, aggregate_of(otherwise)) == AGGREGATE_NO;
}

/* Is --aggregate an option for nodes with this role? */
static bool
role_may_aggregate(const char *role)
{
    return !strcmp(role, node_role_name(NODE_SWITCH));
}

/* No operator decides for a source agent: it aggregates if the first switch does not. */
static void
check_may_aggregate(const struct ctl *ctl, const char *name, const char *role)
{
    if (ctl->options[OPT_AGGREGATE] && !role_may_aggregate(role)) {
        ctl_refuse(ctl, "node %s has role %s: --aggregate is for role %s", name, role,
                   node_role_name(NODE_SWITCH));
    }
}

/* --programs: prefixes of SIDs with commas between them, "" for all.  Only those who are fenced in
 * have them. */
static void
set_programs(const struct ctl *ctl, const struct rrec_node *row)
{
    const char *text = ctl->options[OPT_PROGRAMS];
    struct sset prefixes = SSET_INITIALIZER(&prefixes);

    if (strcmp(row->role, node_role_name(NODE_AGENT))) {
        ctl_refuse(ctl, "node %s has role %s: --programs is for role %s", row->name, row->role,
                   node_role_name(NODE_AGENT));
    }
    sset_from_delimited_string(&prefixes, text, ",");
    const char **names = sset_sort(&prefixes);
    for (size_t i = 0; i < sset_count(&prefixes); i++) {
        struct in6_addr address;
        uint8_t plen;

        if (!ip6_prefix_parse(names[i], &address, &plen) || !address_is_sid(&address)
            || plen < SID_BLOCK_PLEN) {
            ctl_fail(CTL_USAGE, "--programs %s: '%s' must be a prefix in " SID_BLOCK_TEXT, text,
                     names[i]);
        }
    }
    rrec_node_set_programs(row, names, sset_count(&prefixes));
    free(names);
    sset_destroy(&prefixes);
}

static void
node_add(struct ctl *ctl)
{
    const char *name = ctl->argv[0];
    const char *role = ctl->options[OPT_ROLE];
    int64_t id = (int64_t) ctl_option_number(ctl, OPT_ID, 1, NODE_ID_MAX, 0);
    bool no_aggregation = option_no_aggregation(ctl, false);
    const char *plane = path_option_plane(ctl, "");
    const struct rrec_node *row;

    ctl_check_name("name", name);
    if (!node_name_fits_role(name, role)) {
        ctl_fail(CTL_USAGE, "name '%s': that " OVS_NAME_RULE, name);
    }
    check_may_aggregate(ctl, name, role);
    row = ctl_find_node(ctl, name);
    if (row && ctl_flag(ctl, OPT_MAY_EXIST)) {
        if (row->id != id || strcmp(row->role, role)) {
            ctl_refuse(ctl, "node %s exists with id %" PRId64 " and role %s", name, row->id,
                       row->role);
        }
        if (ctl->options[OPT_AGGREGATE] && row->no_aggregation != no_aggregation) {
            ctl_refuse(ctl, "node %s exists and %s", name,
                       row->no_aggregation ? "does not aggregate" : "aggregates");
        }
        if (ctl->options[OPT_PLANE] && strcmp(row->plane, plane)) {
            ctl_refuse(ctl, "node %s exists with plane '%s'", name, row->plane);
        }
        return;
    }
    check_name_is_free(ctl, name);
    RREC_NODE_FOR_EACH (row, ctl->idl) {
        if (row->id == id) {
            ctl_refuse(ctl, "node %s has id %" PRId64 " already", row->name, id);
        }
    }
    row = rrec_node_insert(ctl->txn);
    rrec_node_set_name(row, name);
    rrec_node_set_id(row, id);
    rrec_node_set_role(row, role);
    rrec_node_set_no_aggregation(row, no_aggregation);
    rrec_node_set_plane(row, plane);
}

static void
node_set(struct ctl *ctl)
{
    ctl_check_any_option(ctl);
    const struct rrec_node *row = ctl_require_node(ctl, ctl->argv[0]);

    check_may_aggregate(ctl, row->name, row->role);
    rrec_node_set_no_aggregation(row, option_no_aggregation(ctl, row->no_aggregation));
    if (ctl->options[OPT_VERIFY]) {
        rrec_node_set_verify_always(row, ctl_option_word(ctl, OPT_VERIFY, 0) == VERIFY_ALWAYS);
        ctl->all_nodes = true; /* castd has no part in that. */
    }
    rrec_node_set_plane(row, path_option_plane(ctl, row->plane));
    if (ctl->options[OPT_PROGRAMS]) {
        set_programs(ctl, row);
    }
}

static void
node_del(struct ctl *ctl)
{
    const char *name = ctl->argv[0];

    if (!ctl_find_node(ctl, name) && ctl_flag(ctl, OPT_IF_EXISTS)) {
        return;
    }
    ctl_require_node(ctl, name);
    check_no_links(ctl, name);
    rrec_node_delete(ctl_find_node(ctl, name));
}

static struct json *
node_to_json(const struct rrec_node *row)
{
    struct json *o = json_object_create();
    struct in6_addr address = node_address((uint16_t) row->id);

    json_object_put_string(o, "name", row->name);
    ctl_put_int(o, "id", row->id);
    json_object_put_string(o, "role", row->role);
    json_object_put_string(o, "verify",
                           ctl_verify_name(row->verify_always ? VERIFY_ALWAYS : VERIFY_AUTO));
    ctl_put_string_or_null(o, "aggregate",
                           role_may_aggregate(row->role)
                               ? ctl_aggregate_name(aggregate_of(row->no_aggregation))
                               : NULL);
    json_object_put_string(o, "plane", row->plane);
    ctl_put_bool(o, "excluded", row->excluded);
    json_object_put_string(o, "address", ip6_text(&address));
    ctl_put_int(o, "wanted", row->cfg);
    ctl_put_int(o, "applied", row->nb_cfg);
    json_object_put_string(o, "state", row->state);
    json_object_put_string(o, "control", row->control);
    return o;
}

static const char *const node_keys[] = {
    "name",    "id",       "role",      "verify", "aggregate",    "plane",      "excluded",
    "address", "number",   "kind",      "peer",   "peer_address", "mac",        "prefix",
    "port",    "next_hop", "behaviour", "group",  "epoch",        "generation", "root",
    "open",    "started",  "branches",  "wanted", "applied",      "state",      "control",
    "ports",   "routes",   "sids",      "trees",  NULL,
};

static void
node_list(struct ctl *ctl)
{
    static const char *const keys[] = {"name",    "id",       "role",    "aggregate",
                                       "plane",   "excluded", "address", "wanted",
                                       "applied", "state",    NULL};
    struct json *array = json_array_create_empty();
    const struct rrec_node *row;

    RREC_NODE_FOR_EACH (row, ctl->idl) {
        json_array_add(array, node_to_json(row));
    }
    ctl_sort_by(array, "name");
    ctl_print(ctl, array, keys);
}

static struct json *
ports_to_json(const struct rrec_node *row)
{
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < row->n_ports; i++) {
        const struct rrec_port *p = row->ports[i];
        struct json *o = ctl_add_object(array);

        json_object_put_string(o, "name", p->name);
        ctl_put_int(o, "number", p->number);
        json_object_put_string(o, "kind", p->kind);
        json_object_put_string(o, "role", p->role);
        json_object_put_string(o, "peer", p->peer);
        json_object_put_string(o, "peer_address", p->peer_address);
        json_object_put_string(o, "mac", p->mac);
    }
    ctl_sort_by(array, "name");
    return array;
}

/* As its agent has them: none if it would refuse them, which its state says. */
static struct json *
routes_to_json(const struct ctl *ctl, const struct rrec_node *row)
{
    struct json *array = json_array_create_empty();
    const struct rrec_location **locations = NULL, *location;
    size_t n = 0, allocated = 0;
    struct node_config config;
    char *error;

    RREC_LOCATION_FOR_EACH (location, ctl->idl) {
        if (n == allocated) {
            locations = x2nrealloc(locations, &allocated, sizeof *locations);
        }
        locations[n++] = location;
    }
    if (!intent_read_routes(&(struct intent_rows){row, NULL, 0, locations, n}, &config, &error)) {
        free(error);
    }
    for (size_t i = 0; i < config.n_routes; i++) {
        const struct route_config *route = &config.routes[i];
        struct json *o = ctl_add_object(array);
        char prefix[IP6_PREFIX_TEXT_SIZE];

        ip6_prefix_format(&route->prefix, route->plen, prefix);
        json_object_put_string(o, "prefix", prefix);
        ctl_put_int(o, "port", route->port);
        json_object_put_string(o, "next_hop", ip6_text(&route->next_hop));
    }
    ctl_sort_by(array, "prefix");
    node_config_uninit(&config);
    free(locations);
    return array;
}

static struct json *
sids_to_json(const struct rrec_node *row)
{
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < row->n_sids; i++) {
        struct json *o = ctl_add_object(array);

        json_object_put_string(o, "prefix", row->sids[i]->prefix);
        json_object_put_string(o, "behaviour", row->sids[i]->behaviour);
        ctl_put_int_or_null(o, "port", row->sids[i]->port ? &row->sids[i]->port : NULL);
    }
    ctl_sort_by(array, "prefix");
    return array;
}

static struct json *
trees_to_json(const struct ctl *ctl, const struct rrec_node *row)
{
    struct json *array = json_array_create_empty();
    const struct rrec_tree_node *t;

    RREC_TREE_NODE_FOR_EACH (t, ctl->idl) {
        if (ctl_node_of_tree(ctl, t) != row) {
            continue;
        }
        struct json *o = ctl_add_object(array);

        json_object_put_string(o, "group", t->group);
        ctl_put_int(o, "epoch", t->epoch);
        ctl_put_int(o, "generation", t->generation);
        ctl_put_bool(o, "root", t->root);
        ctl_put_bool(o, "open", t->open);
        ctl_put_bool(o, "started", t->started);
        ctl_put_int(o, "branches", (int64_t) (t->n_branches + t->n_copies));
        json_object_put_string(o, "replication_sid", t->replication_sid);
        json_object_put_string(o, "parent_sid", t->parent_sid);
    }
    ctl_sort_by(array, "group");
    return array;
}

/* What neighbours take from a source agent; all if there are none. */
static struct json *
programs_to_json(const struct rrec_node *row)
{
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < row->n_programs; i++) {
        json_object_put_string(ctl_add_object(array), "prefix", row->programs[i]);
    }
    ctl_sort_by(array, "prefix");
    return array;
}

static void
node_show(struct ctl *ctl)
{
    const struct rrec_node *row = ctl_require_node(ctl, ctl->argv[0]);
    struct json *o = node_to_json(row);

    json_object_put(o, "ports", ports_to_json(row));
    json_object_put(o, "routes", routes_to_json(ctl, row));
    json_object_put(o, "sids", sids_to_json(row));
    json_object_put(o, "trees", trees_to_json(ctl, row));
    json_object_put(o, "programs", programs_to_json(row));
    ctl_print(ctl, o, node_keys);
}

/*
 * Hosts.
 */

static void
host_add(struct ctl *ctl)
{
    const char *name = ctl->argv[0];
    const char *text = ctl->options[OPT_ADDRESS];
    const struct rrec_host *row;
    struct in6_addr address;
    const char *why;

    ctl_check_name("name", name);
    if (!ip6_parse(text, &address)) {
        ctl_fail(CTL_USAGE, "--address %s: not an IPv6 address", text);
    }
    why = host_address_check(&address);
    if (why) {
        ctl_fail(CTL_USAGE, "--address %s: %s", text, why);
    }
    row = request_find_host(ctl->idl, name);
    if (row && ctl_flag(ctl, OPT_MAY_EXIST)) {
        if (strcmp(row->address, ip6_text(&address))) {
            ctl_refuse(ctl, "host %s exists with address %s", name, row->address);
        }
        return;
    }
    check_name_is_free(ctl, name);
    RREC_HOST_FOR_EACH (row, ctl->idl) {
        if (!strcmp(row->address, ip6_text(&address))) {
            ctl_refuse(ctl, "host %s has address %s already", row->name, row->address);
        }
    }
    row = rrec_host_insert(ctl->txn);
    rrec_host_set_name(row, name);
    rrec_host_set_address(row, ip6_text(&address));
}

/* Groups refer to hosts, and need the hosts' links. */
static void
check_host_unused(const struct ctl *ctl, const char *name)
{
    const struct rrec_source *source;
    const struct rrec_member *member;
    const struct rrec_listener *listener;

    RREC_SOURCE_FOR_EACH (source, ctl->idl) {
        if (!strcmp(source->host, name)) {
            ctl_refuse(ctl, "host %s is the source of group %s", name, source->group->name);
        }
    }
    RREC_MEMBER_FOR_EACH (member, ctl->idl) {
        if (!strcmp(member->host, name) && strcmp(member->state, "left")) {
            ctl_refuse(ctl, "host %s is a member of group %s", name, member->group->name);
        }
    }
    RREC_LISTENER_FOR_EACH (listener, ctl->idl) {
        if (!strcmp(listener->host, name)) {
            ctl_refuse(ctl, "host %s is to be a member of group %s", name, listener->group->name);
        }
    }
}

static void
host_del(struct ctl *ctl)
{
    const char *name = ctl->argv[0];

    if (!request_find_host(ctl->idl, name) && ctl_flag(ctl, OPT_IF_EXISTS)) {
        return;
    }
    ctl_require_host(ctl, name);
    check_host_unused(ctl, name);
    check_no_links(ctl, name);
    rrec_host_delete(request_find_host(ctl->idl, name));
}

static struct json *
host_to_json(const struct ctl *ctl, const struct rrec_host *row)
{
    const struct rrec_link *link = find_link(ctl, row->name, NULL);
    struct json *o = json_object_create();

    json_object_put_string(o, "name", row->name);
    json_object_put_string(o, "address", row->address);
    bool is_a = link && !strcmp(link->a, row->name);
    ctl_put_string_or_null(o, "netdev", !link ? NULL : is_a ? link->a_port : link->b_port);
    ctl_put_string_or_null(o, "node", !link ? NULL : is_a ? link->b : link->a);
    json_object_put_string(o, "path_policy",
                           row->path_policy ? row->path_policy : path_policy_name(PATH_NONE));
    return o;
}

static const char *const host_keys[] = {"name", "address", "netdev", "node", "path_policy", NULL};

static void
host_list(struct ctl *ctl)
{
    struct json *array = json_array_create_empty();
    const struct rrec_host *row;

    RREC_HOST_FOR_EACH (row, ctl->idl) {
        json_array_add(array, host_to_json(ctl, row));
    }
    ctl_sort_by(array, "name");
    ctl_print(ctl, array, host_keys);
}

static void
host_show(struct ctl *ctl)
{
    ctl_print(ctl, host_to_json(ctl, ctl_require_host(ctl, ctl->argv[0])), host_keys);
}

/*
 * Links.
 */

struct end {
    char name[NAME_SIZE];
    char port[IFNAMSIZ];
    bool host;
};

/* Splits "NAME:IF".  Neither is looked up. */
static void
parse_end(const char *s, struct end *end)
{
    const char *colon = strchr(s, ':');
    size_t n = colon ? (size_t) (colon - s) : strlen(s);

    if (!colon || n >= sizeof end->name) {
        ctl_fail(CTL_USAGE, "'%s': must be NAME:INTERFACE", s);
    }
    memcpy(end->name, s, n);
    end->name[n] = '\0';
    ctl_check_name("name", end->name);
    if (!ifname_is_valid(colon + 1)) {
        ctl_fail(CTL_USAGE, "interface '%s': " IFNAME_RULE, colon + 1);
    }
    ovs_strlcpy(end->port, colon + 1, sizeof end->port);
}

static void
lookup_end(const struct ctl *ctl, struct end *end)
{
    end->host = request_find_host(ctl->idl, end->name) != NULL;
    if (!end->host && !ctl_find_node(ctl, end->name)) {
        ctl_refuse(ctl, "no node or host named '%s'", end->name);
    }
}

static void
check_may_have_host(const struct ctl *ctl, const struct end *host, const struct end *node)
{
    const struct rrec_node *row = host->host ? ctl_find_node(ctl, node->name) : NULL;

    unsigned int roles = 0;

    if (row && node_role_text_is_foreign(row->role)) {
        for (unsigned int role = 0; role < node_role_words.n; role++) {
            roles |= node_role_is_foreign((enum node_role) role) ? 0 : 1u << role;
        }
        ctl_refuse(ctl, "node %s has role %s: a host's link goes to one with role %s", row->name,
                   row->role, words_join(&node_role_words, roles, ", ", " or "));
    }
}

static void
check_end_is_free(const struct ctl *ctl, const struct end *end)
{
    const struct rrec_link *link = find_link(ctl, end->name, end->host ? NULL : end->port);

    if (link && !link_has_end(link, end->name, end->port)) {
        ctl_refuse(ctl, "host %s has a link already, %s:%s %s:%s: it has one", end->name, link->a,
                   link->a_port, link->b, link->b_port);
    }
    if (link) {
        ctl_refuse(ctl, "%s:%s is in use by link %s:%s %s:%s", end->name, end->port, link->a,
                   link->a_port, link->b, link->b_port);
    }
}

static void
link_add(struct ctl *ctl)
{
    const char *kind;
    const struct rrec_link *row;
    struct end a, b;

    parse_end(ctl->argv[0], &a);
    parse_end(ctl->argv[1], &b);
    if (!strcmp(a.name, b.name)) {
        ctl_fail(CTL_USAGE, "link add: both ends are %s", a.name);
    }
    lookup_end(ctl, &a);
    lookup_end(ctl, &b);
    if (a.host && b.host) {
        ctl_refuse(ctl, "%s and %s are both hosts", a.name, b.name);
    }
    check_may_have_host(ctl, &a, &b);
    check_may_have_host(ctl, &b, &a);
    kind = ctl->options[OPT_KIND] ? ctl->options[OPT_KIND]
                                  : port_kind_name(port_kind_usual(a.host || b.host));
    row = find_link(ctl, a.name, a.port);
    if (row && link_has_end(row, b.name, b.port) && ctl_flag(ctl, OPT_MAY_EXIST)) {
        if (strcmp(row->kind, kind)) {
            ctl_refuse(ctl, "link %s:%s %s:%s exists with kind %s", row->a, row->a_port, row->b,
                       row->b_port, row->kind);
        }
        return;
    }
    check_end_is_free(ctl, &a);
    check_end_is_free(ctl, &b);
    row = rrec_link_insert(ctl->txn);
    rrec_link_set_a(row, a.name);
    rrec_link_set_a_port(row, a.port);
    rrec_link_set_b(row, b.name);
    rrec_link_set_b_port(row, b.port);
    rrec_link_set_kind(row, kind);
}

/* Does the node of 'tree' send copies to 'peer'? */
static bool
sends_to(const struct rrec_tree_node *tree, const struct rrec_node *peer)
{
    for (size_t i = 0; i < tree->n_outer_da; i++) {
        struct in6_addr sid;

        if (ip6_parse(tree->outer_da[i], &sid) && address_is_of_node(&sid, (uint16_t) peer->id)) {
            return true;
        }
    }
    return false;
}

/* A host's link carries the host's groups.  A link between nodes carries the trees that go from one
 * to the other; without it castd plans a tree anew, unless the epoch has started. */
static void
check_carries_no_group(const struct ctl *ctl, const struct rrec_link *link)
{
    const struct rrec_node *a = ctl_find_node(ctl, link->a);
    const struct rrec_node *b = ctl_find_node(ctl, link->b);
    const struct rrec_tree_node *tree;

    if (!a) {
        check_host_unused(ctl, link->a);
    }
    if (!b) {
        check_host_unused(ctl, link->b);
    }
    RREC_TREE_NODE_FOR_EACH (tree, ctl->idl) {
        const struct rrec_node *at = ctl_node_of_tree(ctl, tree);

        if (at && a && b && !ctl_flag(ctl, OPT_FORCE)
            && ((at == a && sends_to(tree, b)) || (at == b && sends_to(tree, a)))) {
            ctl_refuse(ctl, "group %s uses the link between %s and %s (--force)", tree->group,
                       a->name, b->name);
        }
    }
}

static void
link_del(struct ctl *ctl)
{
    const struct rrec_link *row;
    struct end end;

    parse_end(ctl->argv[0], &end);
    row = find_link(ctl, end.name, end.port);
    if (!row && ctl_flag(ctl, OPT_IF_EXISTS)) {
        return;
    }
    if (!row) {
        ctl_refuse(ctl, "no link at %s:%s", end.name, end.port);
    }
    check_carries_no_group(ctl, row);
    rrec_link_delete(row);
}

static void
link_list(struct ctl *ctl)
{
    static const char *const keys[] = {"a",      "b",        "kind",     "a_to_b",
                                       "b_to_a", "external", "excluded", NULL};
    struct json *array = json_array_create_empty();
    const struct rrec_link *row;

    RREC_LINK_FOR_EACH (row, ctl->idl) {
        struct json *o = ctl_add_object(array);

        json_object_put_format(o, "a", "%s:%s", row->a, row->a_port);
        json_object_put_format(o, "b", "%s:%s", row->b, row->b_port);
        json_object_put_string(o, "kind", row->kind);
        json_object_put_string(o, "a_to_b", row->a_to_b);
        json_object_put_string(o, "b_to_a", row->b_to_a);
        ctl_put_bool(o, "external", row->external);
        ctl_put_bool(o, "excluded", row->excluded);
    }
    ctl_sort_by(array, "a");
    ctl_print(ctl, array, keys);
}

const struct ctl_command ctl_topology_commands[] = {
    {"node add", "NAME", 1, 1,
     FLAG(OPT_ID) | FLAG(OPT_ROLE) | FLAG(OPT_AGGREGATE) | FLAG(OPT_PLANE) | FLAG(OPT_MAY_EXIST),
     FLAG(OPT_ID) | FLAG(OPT_ROLE), node_add, NULL,
     "add a forwarder: id 1.." NODE_ID_MAX_TEXT " (its node uSID), and the plane that it is in"},
    {"node set", "NAME", 1, 1,
     FLAG(OPT_VERIFY) | FLAG(OPT_AGGREGATE) | FLAG(OPT_PLANE) | FLAG(OPT_PROGRAMS), 0, node_set,
     NULL,
     "change what a node does: verify the ICRC of data always, or only where a PSN jumps (auto);\n"
     "        merge responses on their way up, or only replicate; the plane that it is in, '' for none;\n"
     "        which destinations in " SID_BLOCK_TEXT
     " are taken from a source agent: prefixes with commas\n"
     "        between them, '' for all"},
    {"node del", "NAME", 1, 1, FLAG(OPT_IF_EXISTS), 0, node_del, NULL,
     "delete a node that has no links"},
    {"node list", "", 0, 0, 0, 0, NULL, node_list, "list nodes"},
    {"node show", "NAME", 1, 1, CTL_INTENT, 0, NULL, node_show,
     "show a node with the ports, routes, SIDs and trees that castd gave it"},
    {"host add", "NAME", 1, 1, FLAG(OPT_ADDRESS) | FLAG(OPT_MAY_EXIST), FLAG(OPT_ADDRESS), host_add,
     NULL, "add a host by the IPv6 address of its RDMA device"},
    {"host del", "NAME", 1, 1, FLAG(OPT_IF_EXISTS), 0, host_del, NULL,
     "delete a host that is in no group and has no links"},
    {"host list", "", 0, 0, 0, 0, NULL, host_list, "list hosts"},
    {"host show", "NAME", 1, 1, 0, 0, NULL, host_show, "show a host"},
    {"link add", "A:IF B:IF", 2, 2, FLAG(OPT_KIND) | FLAG(OPT_MAY_EXIST), 0, link_add, NULL,
     "connect two nodes, or a node and a host; default kind with a host: tap, else packet"},
    {"link del", "A:IF", 1, 1, CTL_INTENT | FLAG(OPT_IF_EXISTS) | FLAG(OPT_FORCE), 0, link_del,
     NULL,
     "delete the link at this interface, unless a group's tree uses it; --force: also then, but not\n"
     "        the link of a host that is in a group"},
    {"link list", "", 0, 0, 0, 0, NULL, link_list, "list links"},
    {.name = NULL},
};
