/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of the registry's rows castd works with.  Rows that castctl would have
 * refused, but the schema allows, are sorted out here.
 */
#include <config.h>

#include "ctl/registry/rows.h"

#include <stdlib.h>

#include "ctl/registry/group-settings.h"
#include "ctl/registry/values.h"
#include "lib/impair.h"
#include "lib/path-rule.h"
#include "openvswitch/shash.h"
#include "util.h"

/* What is known of the rows let in so far. */
struct sorter {
    struct registry_rows *rows;
    struct shash nodes, hosts; /* rows by name. */
    struct shash ports;        /* the ports that nodes have, by "NODE:INTERFACE:PEER". */
    struct shash ends;         /* links by their ends, "NAME:INTERFACE", a host's just "NAME". */
};

static void OVS_PRINTF_FORMAT(2, 3) leave_out(struct sorter *s, const char *format, ...)
{
    va_list args;
    char *text;

    va_start(args, format);
    text = xvasprintf(format, args);
    va_end(args);
    svec_add_nocopy(&s->rows->left_out, text);
}

/* A plane and programs that make no sense are left out; their node stays. */
static void
check_labels(struct sorter *s, const struct rrec_node *row)
{
    struct prefix prefix;

    if (row->plane[0] && !name_is_valid(row->plane)) {
        leave_out(s, "Node \"%s\": plane \"%s\" " NAME_RULE, row->name, row->plane);
    }
    for (size_t i = 0; i < row->n_programs; i++) {
        if (!program_prefix_parse(row->programs[i], &prefix)) {
            leave_out(s, "Node \"%s\": program \"%s\" " PROGRAM_PREFIX_RULE, row->name,
                      row->programs[i]);
        }
    }
}

static void
sort_nodes(struct sorter *s, const struct ovsdb_idl *idl)
{
    struct registry_rows *rows = s->rows;
    const struct rrec_node *row;
    size_t n = 0;

    RREC_NODE_FOR_EACH (row, idl) {
        n++;
    }
    rows->nodes = xcalloc(n + 1, sizeof *rows->nodes);
    RREC_NODE_FOR_EACH (row, idl) {
        enum node_role role;

        if (!name_is_valid(row->name)) {
            leave_out(s, "Node \"%s\": the name " NAME_RULE, row->name);
        } else if (!node_role_parse(row->role, &role)) {
            leave_out(s, "Node \"%s\": role \"%s\" is unknown", row->name, row->role);
        } else if (!node_name_fits_role(row->name, row->role)) {
            leave_out(s, "Node \"%s\": the name " OVS_NAME_RULE, row->name);
        } else {
            check_labels(s, row);
            shash_add(&s->nodes, row->name, row);
            rows->nodes[rows->n_nodes++] = row;
        }
    }
}

/* Why a host is left out; NULL: it is let in.  An address has one valid text, so that the schema's
 * index keeps two hosts from having the same address. */
static char *
host_problem(const struct sorter *s, const struct rrec_host *row)
{
    struct in6_addr address;
    const char *why;

    if (!name_is_valid(row->name)) {
        return xstrdup("the name " NAME_RULE);
    }
    if (shash_find(&s->nodes, row->name)) {
        return xstrdup("there is a node of that name");
    }
    if (!ip6_parse(row->address, &address)) {
        return xasprintf("address \"%s\" is no IPv6 address", row->address);
    }
    why = host_address_check(&address);
    if (why) {
        return xasprintf("address %s %s", row->address, why);
    }
    return strcmp(row->address, ip6_text(&address))
               ? xasprintf("address \"%s\" must be written %s", row->address, ip6_text(&address))
               : NULL;
}

static void
sort_hosts(struct sorter *s, const struct ovsdb_idl *idl)
{
    struct registry_rows *rows = s->rows;
    const struct rrec_host *row;
    size_t n = 0;

    RREC_HOST_FOR_EACH (row, idl) {
        n++;
    }
    rows->hosts = xcalloc(n + 1, sizeof *rows->hosts);
    RREC_HOST_FOR_EACH (row, idl) {
        char *problem = host_problem(s, row);

        if (problem) {
            leave_out(s, "Host \"%s\": %s", row->name, problem);
            free(problem);
        } else {
            shash_add(&s->hosts, row->name, row);
            rows->hosts[rows->n_hosts++] = row;
        }
    }
}

/* A host has one link, a node one for each interface. */
static char *
end_key(const struct sorter *s, const char *name, const char *port)
{
    return shash_find(&s->hosts, name) ? xstrdup(name) : xasprintf("%s:%s", name, port);
}

/* Why one end of a link is impossible; NULL: it is possible. */
static char *
end_problem(const struct sorter *s, const char *name, const char *port)
{
    char *key, *problem = NULL;
    const struct rrec_link *other;

    if (!name_is_valid(name)) {
        return xasprintf("name \"%s\" " NAME_RULE, name);
    }
    if (!ifname_is_valid(port)) {
        return xasprintf("interface \"%s\" " IFNAME_RULE, port);
    }
    if (!shash_find(&s->nodes, name) && !shash_find(&s->hosts, name)) {
        return xasprintf("there is no node or host %s", name);
    }
    key = end_key(s, name, port);
    other = shash_find_data(&s->ends, key);
    if (other) {
        problem = xasprintf("%s has a link already, %s:%s %s:%s", key, other->a, other->a_port,
                            other->b, other->b_port);
    }
    free(key);
    return problem;
}

/* Why a host cannot have a link to this node: the role has no edge.  NULL: it can. */
static char *
hosts_problem(const struct sorter *s, const char *host, const char *name)
{
    const struct rrec_node *node = shash_find_data(&s->nodes, name);

    return shash_find(&s->hosts, host) && node && node_role_text_is_foreign(node->role)
               ? xasprintf("%s has role %s, and no hosts", name, node->role)
               : NULL;
}

static char *
link_problem(const struct sorter *s, const struct rrec_link *row)
{
    char *problem;
    enum port_kind kind;

    if (!port_kind_parse(row->kind, &kind)) {
        return xasprintf("kind \"%s\" is unknown", row->kind);
    }
    if (!strcmp(row->a, row->b)) {
        return xasprintf("both ends are %s", row->a);
    }
    if (shash_find(&s->hosts, row->a) && shash_find(&s->hosts, row->b)) {
        return xstrdup("both ends are hosts");
    }
    problem = hosts_problem(s, row->a, row->b);
    problem = problem ? problem : hosts_problem(s, row->b, row->a);
    if (problem) {
        return problem;
    }
    problem = end_problem(s, row->a, row->a_port);
    return problem ? problem : end_problem(s, row->b, row->b_port);
}

static void
take_end(struct sorter *s, const char *name, const char *port, const struct rrec_link *row)
{
    char *key = end_key(s, name, port);

    shash_add(&s->ends, key, row);
    free(key);
}

/* An impairment that makes no sense is left out; its link stays. */
static void
check_impairment(struct sorter *s, const struct rrec_link *row, const char *column,
                 const char *sender, const char *text)
{
    const struct rrec_node *node = shash_find_data(&s->nodes, sender);
    struct impair_params params;
    char *error;

    if (text[0] && node && node_role_text_is_foreign(node->role)) {
        leave_out(s, "Link %s:%s %s:%s: %s: %s has role %s, which makes no link bad", row->a,
                  row->a_port, row->b, row->b_port, column, sender, node->role);
    } else if (!impair_parse(text, &params, &error)) {
        leave_out(s, "Link %s:%s %s:%s: %s: %s", row->a, row->a_port, row->b, row->b_port, column,
                  error);
        free(error);
    }
}

/* Of two links that exclude each other, the one that nodes have ports for stays; of two new ones,
 * the first in order of names. */
struct candidate {
    const struct rrec_link *row;
    bool used;
};

static int
compare_candidates(const void *a_, const void *b_)
{
    const struct candidate *a = a_, *b = b_;
    int cmp = strcmp(a->row->a, b->row->a);

    return a->used != b->used ? b->used - a->used
           : cmp              ? cmp
                              : strcmp(a->row->a_port, b->row->a_port);
}

static char *
port_key(const char *node, const char *port, const char *peer)
{
    return xasprintf("%s:%s:%s", node, port, peer);
}

/* The ports that nodes have. */
static void
find_ports(struct sorter *s)
{
    for (size_t i = 0; i < s->rows->n_nodes; i++) {
        const struct rrec_node *node = s->rows->nodes[i];

        for (size_t j = 0; j < node->n_ports; j++) {
            shash_add_nocopy(
                &s->ports, port_key(node->name, node->ports[j]->name, node->ports[j]->peer), node);
        }
    }
}

static bool
has_port(const struct sorter *s, const char *node, const char *port, const char *peer)
{
    char *key = port_key(node, port, peer);
    bool has = shash_find(&s->ports, key) != NULL;

    free(key);
    return has;
}

/* All links, in the order in which they are let in. */
static struct candidate *
find_candidates(struct sorter *s, const struct ovsdb_idl *idl, size_t *np)
{
    const struct rrec_link *row;
    struct candidate *candidates;
    size_t n = 0;

    find_ports(s);
    RREC_LINK_FOR_EACH (row, idl) {
        n++;
    }
    candidates = xcalloc(n + 1, sizeof *candidates);
    *np = n;
    n = 0;
    RREC_LINK_FOR_EACH (row, idl) {
        candidates[n++] = (struct candidate){row, has_port(s, row->a, row->a_port, row->b)
                                                      || has_port(s, row->b, row->b_port, row->a)};
    }
    if (n) {
        qsort(candidates, n, sizeof *candidates, compare_candidates);
    }
    return candidates;
}

static void
sort_links(struct sorter *s, const struct ovsdb_idl *idl)
{
    struct registry_rows *rows = s->rows;
    size_t n;
    struct candidate *candidates = find_candidates(s, idl, &n);

    rows->links = xcalloc(n + 1, sizeof *rows->links);
    for (size_t i = 0; i < n; i++) {
        const struct rrec_link *row = candidates[i].row;
        char *problem = link_problem(s, row);

        if (problem) {
            leave_out(s, "Link %s:%s %s:%s: %s", row->a, row->a_port, row->b, row->b_port, problem);
            free(problem);
            continue;
        }
        take_end(s, row->a, row->a_port, row);
        take_end(s, row->b, row->b_port, row);
        check_impairment(s, row, "a_to_b", row->a, row->a_to_b);
        check_impairment(s, row, "b_to_a", row->b, row->b_to_a);
        rows->links[rows->n_links++] = row;
    }
    free(candidates);
}

bool
registry_group_is_in(const struct rrec_group *row)
{
    return name_is_valid(row->name);
}

/* A setting that makes no sense is left out; its group stays. */
static char *
settings_problem(const struct rrec_group *row)
{
    struct group_settings settings;

    group_settings_read(row, &settings);
    char *problem = group_settings_mend(&settings);
    char *sentence = problem ? xasprintf("Group \"%s\": %s", row->name, problem) : NULL;
    free(problem);
    return sentence;
}

char *
registry_group_problem(const struct rrec_group *row)
{
    return registry_group_is_in(row) ? settings_problem(row)
                                     : xasprintf("Group \"%s\": the name " NAME_RULE, row->name);
}

static void
sort_groups(struct registry_rows *rows, const struct ovsdb_idl *idl)
{
    const struct rrec_group *row;
    size_t n = 0;

    RREC_GROUP_FOR_EACH (row, idl) {
        n++;
    }
    rows->groups = xcalloc(n + 1, sizeof *rows->groups);
    RREC_GROUP_FOR_EACH (row, idl) {
        char *problem = registry_group_problem(row);

        if (problem) {
            svec_add_nocopy(&rows->left_out, problem);
        }
        if (registry_group_is_in(row)) {
            rows->groups[rows->n_groups++] = row;
        }
    }
}

static bool
is_pin(const struct rrec_path_rule *row)
{
    return !strcmp(row->kind, path_rule_kind_name(PATH_PIN));
}

/* By hosts, pins first, then by QPN and path. */
static int
compare_path_rules(const void *a_, const void *b_)
{
    const struct rrec_path_rule *a = *(const struct rrec_path_rule *const *) a_;
    const struct rrec_path_rule *b = *(const struct rrec_path_rule *const *) b_;
    int64_t a_qpn = a->n_qpn ? a->qpn[0] : 0, b_qpn = b->n_qpn ? b->qpn[0] : 0;
    int cmp = strcmp(a->from, b->from);

    cmp = cmp ? cmp : strcmp(a->to, b->to);
    cmp = cmp ? cmp : is_pin(b) - is_pin(a);
    cmp = cmp ? cmp : a_qpn < b_qpn ? -1 : a_qpn > b_qpn;
    return cmp ? cmp : strcmp(a->path, b->path);
}

/* Do both say where the same packets are placed? */
static bool
are_rival_pins(const struct rrec_path_rule *a, const struct rrec_path_rule *b)
{
    return is_pin(a) && is_pin(b) && !strcmp(a->from, b->from) && !strcmp(a->to, b->to)
           && a->n_qpn == b->n_qpn && (!a->n_qpn || a->qpn[0] == b->qpn[0]);
}

/* 'before' is the one let in last; NULL: none was. */
static char *
path_rule_problem(const struct sorter *s, const struct rrec_path_rule *row,
                  const struct rrec_path_rule *before)
{
    const char *why = path_text_check(row->path, is_pin(row));

    if (!shash_find(&s->hosts, row->from) || !shash_find(&s->hosts, row->to)) {
        return xasprintf("there is no host \"%s\"",
                         shash_find(&s->hosts, row->from) ? row->to : row->from);
    }
    if (!strcmp(row->from, row->to)) {
        return xstrdup("both ends are the same host");
    }
    if (row->n_qpn && !is_pin(row)) {
        return xstrdup("only a pin is for a QPN");
    }
    if (why) {
        return xasprintf("path \"%s\" %s", row->path, why);
    }
    return before && are_rival_pins(before, row)
               ? xasprintf("another pin is for the same packets, path \"%s\"", before->path)
               : NULL;
}

static void
sort_path_rules(struct sorter *s, const struct ovsdb_idl *idl)
{
    struct registry_rows *rows = s->rows;
    const struct rrec_path_rule *row, **all;
    size_t n = 0;

    RREC_PATH_RULE_FOR_EACH(row, idl)
    {
        n++;
    }
    all = xcalloc(n + 1, sizeof *all);
    rows->path_rules = xcalloc(n + 1, sizeof *rows->path_rules);
    n = 0;
    RREC_PATH_RULE_FOR_EACH(row, idl)
    {
        all[n++] = row;
    }
    qsort(all, n, sizeof *all, compare_path_rules);
    for (size_t i = 0; i < n; i++) {
        const struct rrec_path_rule *before =
            rows->n_path_rules ? rows->path_rules[rows->n_path_rules - 1] : NULL;
        char *problem = path_rule_problem(s, all[i], before);

        if (problem) {
            leave_out(s, "Path_Rule %s from \"%s\" to \"%s\": %s", all[i]->kind, all[i]->from,
                      all[i]->to, problem);
            free(problem);
        } else {
            rows->path_rules[rows->n_path_rules++] = all[i];
        }
    }
    free(all);
}

void
registry_rows_init_topology(struct registry_rows *rows, const struct ovsdb_idl *idl)
{
    struct sorter s = {.rows = rows};

    *rows = (struct registry_rows){.n_nodes = 0};
    svec_init(&rows->left_out);
    shash_init(&s.nodes);
    shash_init(&s.hosts);
    shash_init(&s.ports);
    shash_init(&s.ends);
    sort_nodes(&s, idl);
    sort_hosts(&s, idl);
    sort_links(&s, idl);
    sort_path_rules(&s, idl);
    svec_sort(&rows->left_out);
    shash_destroy(&s.nodes);
    shash_destroy(&s.hosts);
    shash_destroy(&s.ports);
    shash_destroy(&s.ends);
}

void
registry_rows_init(struct registry_rows *rows, const struct ovsdb_idl *idl)
{
    registry_rows_init_topology(rows, idl);
    sort_groups(rows, idl);
    svec_sort(&rows->left_out);
}

void
registry_rows_uninit(struct registry_rows *rows)
{
    free(rows->nodes);
    free(rows->hosts);
    free(rows->links);
    free(rows->groups);
    free(rows->path_rules);
    svec_destroy(&rows->left_out);
}
