/* SPDX-License-Identifier: Apache-2.0
 *
 * Drawings of a group's tree.
 *
 * The lines for a terminal follow the data: source, source agent, switches,
 * receivers.  A node whose responses go elsewhere than to the node above it has
 * a remark.  What is not known (an agent that cannot be reached, nothing
 * sent yet) is named as such, or left out.
 */
#include <config.h>

#include "ctl/castctl/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/registry/group-settings.h"
#include "lib/node-config.h"
#include "lib/wire.h"
#include "openvswitch/dynamic-string.h"
#include "sset.h"
#include "util.h"

struct drawing {
    const struct json *tree;
    struct sset drawn; /* names of nodes. */
    bool psns;         /* some node's PSNs are drawn: their words need explaining. */
};

/*
 * Words.
 */

static bool
is_source_agent(const struct json *node)
{
    return ctl_get_bool(node, "source_agent");
}

static bool
is_receiver(const struct json *branch)
{
    return !strcmp(ctl_get_string(branch, "kind"), branch_kind_name(BRANCH_RECEIVER));
}

static size_t
count_receivers(const struct json *node)
{
    const struct json_array *branches = ctl_get_array(node, "branches");
    size_t n = 0;

    for (size_t i = 0; i < branches->n; i++) {
        n += is_receiver(branches->elems[i]);
    }
    return n;
}

/* "root, transit". */
static void
put_role(const struct json *node, struct ds *s)
{
    bool receivers = count_receivers(node) > 0;
    bool children = ctl_get_array(node, "children")->n > 0;

    if (ctl_get_bool(node, "root")) {
        ds_put_cstr(s, "root, ");
    }
    if (is_source_agent(node)) {
        ds_put_format(s, "source agent, %s", ctl_get_bool(node, "open") ? "open" : "closed");
        return;
    }
    ds_put_cstr(s, receivers && children ? "bud"
                   : receivers           ? "edge"
                   : children            ? "transit"
                                         : "nothing behind it");
    if (!ctl_get_bool(node, "aggregates")) {
        ds_put_cstr(s, ", replicates only");
    }
}

/* "  plane A (B bad)": which one it uses, and what the others are. */
static void
put_planes(const struct json *live, struct ds *s)
{
    const struct json_array *planes = ctl_get_array(live, "planes");

    for (size_t i = 0; i < planes->n; i++) {
        if (ctl_get_bool(planes->elems[i], "used")) {
            ds_put_format(s, "  plane %s %s", ctl_get_string(planes->elems[i], "name"),
                          ctl_get_string(planes->elems[i], "state"));
        }
    }
    for (size_t i = 0, n = 0; i < planes->n; i++) {
        const struct json *p = planes->elems[i];

        if (!ctl_get_bool(p, "used")) {
            ds_put_format(s, "%s%s %s", n++ ? ", " : " (", ctl_get_string(p, "name"),
                          ctl_get_bool(p, "usable") ? ctl_get_string(p, "state") : "out of use");
        }
    }
    ds_put_cstr(s, planes->n > 1 ? ")" : "");
}

/* Why the node's state is unknown or not what the registry says; what it holds or refused. */
static void
put_remarks(const struct json *node, struct ds *s)
{
    const struct json *live = ctl_get(node, "live");

    if (ctl_get_int(node, "applied") < ctl_get_int(node, "wanted")) {
        ds_put_format(s, "  (generation %" PRId64 " not applied yet)", ctl_get_int(node, "wanted"));
    }
    if (!ctl_get_bool(node, "reachable")) {
        ds_put_cstr(s, "  (not reachable)");
    } else if (live->type == JSON_NULL) {
        ds_put_cstr(s, "  (its agent does not have the group)");
    }
    put_planes(live, s);
    if (ctl_get_int(live, "waiting")) {
        ds_put_format(s, "  (holds %" PRId64 " packets)", ctl_get_int(live, "waiting"));
    }
    if (ctl_get(live, "refused_psn")) {
        ds_put_format(s, "  (refused PSN %" PRId64 ", syndrome 0x%02" PRIx64 ")",
                      ctl_get_int(live, "refused_psn"), ctl_get_int(live, "refused_syndrome"));
    }
}

/* The node's part in the flow of PSNs. */
static void
put_psns(struct drawing *d, const struct json *node, struct ds *s)
{
    const struct json *live = ctl_get(node, "live");

    if (live->type != JSON_OBJECT) {
        return;
    }
    if (!ctl_get_bool(live, "started")) {
        ds_put_cstr(s, "  nothing sent yet");
        return;
    }
    if (!ctl_get_bool(node, "aggregates") && !is_source_agent(node)) {
        return;
    }
    d->psns = true;
    ds_put_format(s, "  sent_next %" PRId64, ctl_get_int(live, "sent_next"));
    if (!ctl_get_bool(live, "anchored")) {
        ds_put_cstr(s, "  progress not known yet");
    } else if (!ctl_get_bool(node, "aggregates")) {
        ds_put_format(s, "  confirmed %" PRId64, ctl_get_int(live, "told"));
    } else {
        ds_put_format(s, "  confirmed %" PRId64 "  told %" PRId64, ctl_get_int(live, "confirmed"),
                      ctl_get_int(live, "told"));
    }
}

static void
put_condition(const struct json *live, struct ds *s)
{
    const char *cond = ctl_get_string(live, "cond");
    const char *lost = ctl_get_string(live, "lost");
    int64_t code = ctl_get_int(live, "code");

    if (!strcmp(cond, "nak")) {
        ds_put_cstr(s, "  nak");
    } else if (!strcmp(cond, "rnr")) {
        ds_put_format(s, "  rnr (timer code %" PRId64 ")", code);
    } else if (!strcmp(cond, "fatal")) {
        ds_put_format(s, "  fatal (syndrome 0x%02" PRIx64 ")", code);
    }
    if (ctl_get_bool(live, "slow")) {
        ds_put_cstr(s, "  SLOW");
    }
    if (strcmp(lost, "") && strcmp(lost, "no")) {
        ds_put_format(s, "  LOST, %s%s", lost,
                      ctl_get_bool(live, "pruned") ? ", not counted any more" : "");
    }
}

/* How far a branch is.  'live' is its live state, or JSON's null. */
static void
put_progress(const struct drawing *d, const struct json *live, struct ds *s)
{
    int64_t confirmed = ctl_get_int(live, "confirmed");
    bool has_answered = ctl_get_int(live, "acks") || ctl_get_int(live, "naks")
                        || ctl_get_int(live, "rnrs") || ctl_get_int(live, "fatals");

    if (live->type != JSON_OBJECT) {
        return;
    }
    if (!ctl_get_bool(live, "anchored")) {
        ds_put_cstr(s, ctl_get_bool(live, "pruned") ? "" : "  progress not known yet");
        put_condition(live, s);
        return;
    }
    if (!has_answered
        || (confirmed == ctl_get_int(d->tree, "start_psn") && !ctl_get_int(live, "acks"))) {
        ds_put_cstr(s, "  nothing confirmed yet");
    } else {
        ds_put_format(s, "  confirmed %" PRId64, confirmed);
    }
    put_condition(live, s);
}

/* What a branch has sent, and what was sent to it again; counts of 0 are left out. */
static void
put_counts(const struct json *live, struct ds *s)
{
    static const char *const counts[] = {"acks",   "dups",    "naks",    "rnrs",
                                         "fatals", "repeats", "useless", "filtered"};

    for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
        if (ctl_get_int(live, counts[i])) {
            ds_put_format(s, "  %s %" PRId64, counts[i], ctl_get_int(live, counts[i]));
        }
    }
}

static const struct json *
find_node(const struct drawing *d, const char *name)
{
    const struct json_array *nodes = ctl_get_array(d->tree, "nodes");

    for (size_t i = 0; i < nodes->n; i++) {
        if (!strcmp(ctl_get_string(nodes->elems[i], "node"), name)) {
            return nodes->elems[i];
        }
    }
    return NULL;
}

/* The branch for this node at its parent, which gets its responses; NULL: there is none. */
static const struct json *
branch_at_parent(const struct drawing *d, const struct json *node)
{
    const struct json *parent = find_node(d, ctl_get_string(node, "parent"));
    const struct json_array *branches = ctl_get_array(parent, "branches");

    for (size_t i = 0; i < branches->n; i++) {
        if (!is_receiver(branches->elems[i])
            && !strcmp(ctl_get_string(branches->elems[i], "name"), ctl_get_string(node, "node"))) {
            return branches->elems[i];
        }
    }
    return NULL;
}

/*
 * Lines.
 */

/* 'prefix' is what stands left of the branches of one node: "|  " or "   " for each level. */
static void
draw_receivers(const struct drawing *d, const struct json *node, const char *prefix)
{
    const struct json_array *branches = ctl_get_array(node, "branches");
    size_t left = count_receivers(node) + ctl_get_array(node, "children")->n;
    size_t name_width = 0, address_width = 0;

    for (size_t i = 0; i < branches->n; i++) {
        const struct json *b = branches->elems[i];
        if (is_receiver(b)) {
            name_width = MAX(name_width, strlen(ctl_get_string(b, "name")));
            address_width = MAX(address_width, strlen(ctl_get_string(b, "address")));
        }
    }
    for (size_t i = 0; i < branches->n; i++) {
        const struct json *b = branches->elems[i];
        struct ds s = DS_EMPTY_INITIALIZER;

        if (is_receiver(b)) {
            put_progress(d, ctl_get(b, "live"), &s);
            put_counts(ctl_get(b, "live"), &s);
            printf("%s%c- %-*s  %-*s  QPN 0x%" PRIx64 "%s\n", prefix, --left ? '|' : '`',
                   (int) name_width, ctl_get_string(b, "name"), (int) address_width,
                   ctl_get_string(b, "address"), ctl_get_int(b, "qpn"), ds_cstr(&s));
        }
        ds_destroy(&s);
    }
}

/* 'above' is the name of the node that sends its packets here, "" if none does. */
static void
draw_node(struct drawing *d, const struct json *node, const char *above, const char *prefix,
          bool last)
{
    const struct json_array *children = ctl_get_array(node, "children");
    const char *name = ctl_get_string(node, "node");
    const char *parent = ctl_get_string(node, "parent");
    struct ds s = DS_EMPTY_INITIALIZER;

    ds_put_format(&s, "%s%c- %s  ", prefix, last ? '`' : '|', name);
    if (!sset_add(&d->drawn, name)) {
        printf("%s(drawn above)\n", ds_cstr(&s));
        ds_destroy(&s);
        return;
    }
    put_role(node, &s);
    if (ctl_get_string(node, "parent_sid")[0] && (!parent[0] || strcmp(parent, above))) {
        ds_put_format(&s, ", responses to %s",
                      parent[0] ? parent : ctl_get_string(node, "parent_sid"));
    }
    put_psns(d, node, &s);
    put_remarks(node, &s);
    puts(ds_cstr(&s));

    char *below = xasprintf("%s%s  ", prefix, last ? " " : "|");
    const struct json *branch = branch_at_parent(d, node);
    if (branch && ctl_get(branch, "live")->type == JSON_OBJECT) {
        ds_clear(&s);
        ds_put_format(&s, "%s%s  at %s:", below, count_receivers(node) + children->n ? "|" : " ",
                      parent);
        put_progress(d, ctl_get(branch, "live"), &s);
        put_counts(ctl_get(branch, "live"), &s);
        puts(ds_cstr(&s));
    }
    ds_destroy(&s);

    draw_receivers(d, node, below);
    for (size_t i = 0; i < children->n; i++) {
        const struct json *child = find_node(d, ctl_get_string(children->elems[i], "node"));
        bool last_child = i + 1 == children->n;

        if (child) {
            draw_node(d, child, name, below, last_child);
        } else {
            printf("%s%c- %s  (no node of this group)\n", below, last_child ? '`' : '|',
                   ctl_get_string(children->elems[i], "outer_da"));
        }
    }
    free(below);
}

/* Does some node that is not drawn send to this one? */
static bool
has_undrawn_parent(const struct drawing *d, const struct json *node)
{
    const struct json_array *nodes = ctl_get_array(d->tree, "nodes");

    for (size_t i = 0; i < nodes->n; i++) {
        const struct json_array *children = ctl_get_array(nodes->elems[i], "children");

        for (size_t j = 0; j < children->n; j++) {
            if (!sset_contains(&d->drawn, ctl_get_string(nodes->elems[i], "node"))
                && !strcmp(ctl_get_string(children->elems[j], "node"),
                           ctl_get_string(node, "node"))) {
                return true;
            }
        }
    }
    return false;
}

/* Draws nodes that have a part in the group but no connection to the source: a tree is provisioned
 * from its edges up, and goes away in the opposite order. */
static void
draw_rest(struct drawing *d)
{
    const struct json_array *nodes = ctl_get_array(d->tree, "nodes");
    bool any = false;

    /* First the nodes where such a part begins; then what is left, which sends in a circle. */
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < nodes->n; i++) {
            const struct json *node = nodes->elems[i];

            if (!sset_contains(&d->drawn, ctl_get_string(node, "node"))
                && (pass || !has_undrawn_parent(d, node))) {
                if (!any) {
                    puts("not reached from the source:");
                    any = true;
                }
                draw_node(d, node, "", "", true);
            }
        }
    }
}

/* How packets travel, if not as in a group with default settings. */
static void
draw_mode(const struct json *tree)
{
    const char *mode = ctl_get_string(tree, "mode");
    const char *receivers = ctl_get_string(tree, "receivers");
    struct group_settings otherwise = group_settings_default();
    bool usual = !strcmp(receivers, receivers_name(otherwise.provisioned));

    if (strcmp(mode, tree_mode_name(otherwise.mode)) || !usual) {
        printf("mode %s%s%s\n", mode, usual ? "" : ", receivers ", usual ? "" : receivers);
    }
}

void
tree_draw(const struct json *raw)
{
    struct json *tree = ctl_json_printable(raw);
    const struct json *source = ctl_get(tree, "source");
    const struct json_array *nodes = ctl_get_array(tree, "nodes");
    const char *status = ctl_get_string(tree, "status");
    struct drawing d = {.tree = tree, .drawn = SSET_INITIALIZER(&d.drawn)};

    printf("group %s  epoch %" PRId64 "  %s%s%s\n", ctl_get_string(tree, "group"),
           ctl_get_int(tree, "epoch"), ctl_get_string(tree, "state"), status[0] ? ": " : "",
           status);
    printf("Proxy %s  Designated QPN 0x%" PRIx64 "  start PSN %" PRId64 "\n",
           ctl_get_string(tree, "proxy"), ctl_get_int(tree, "designated_qpn"),
           ctl_get_int(tree, "start_psn"));
    draw_mode(tree);
    if (source->type == JSON_OBJECT) {
        printf("%s  %s  QPN 0x%" PRIx64 "  source\n", ctl_get_string(source, "host"),
               ctl_get_string(source, "address"), ctl_get_int(source, "qpn"));
    } else {
        puts("(no source)");
    }
    for (size_t i = 0; i < nodes->n; i++) {
        if (is_source_agent(nodes->elems[i])) {
            draw_node(&d, nodes->elems[i], "", "", true);
        }
    }
    draw_rest(&d);
    if (d.psns) {
        puts(
            "sent_next: the PSN that goes down next; confirmed: all below it are; told: what the parent knows");
    }
    sset_destroy(&d.drawn);
    json_destroy(tree);
}

/*
 * Graphviz.
 */

/* A name as it may be in quotes.  One that castctl has let in needs none; neither is one that was
 * written to the registry past it of use. */
static struct json *
without_quotes(const struct json *raw)
{
    char *text = json_to_string(raw, 0);

    for (char *s = text; (s = strchr(s, '\\')); s += 2) {
        if (s[1] == '"' || s[1] == '\\') {
            s[0] = s[1] = '_';
        }
    }
    struct json *safe = json_from_string(text);
    struct json *tree = ctl_json_printable(safe);
    json_destroy(safe);
    free(text);
    return tree;
}

/* The text without the space at its start, which parts it from what stands left of it in a line. */
static const char *
without_margin(struct ds *s)
{
    const char *text = ds_cstr(s);

    return text + strspn(text, " ");
}

static void
dot_node(struct drawing *d, const struct json *node)
{
    struct ds role = DS_EMPTY_INITIALIZER;
    struct ds s = DS_EMPTY_INITIALIZER;

    put_role(node, &role);
    put_psns(d, node, &s);
    put_remarks(node, &s);
    printf("    \"node %s\" [label=\"%s\\n%s\\n%s\"];\n", ctl_get_string(node, "node"),
           ctl_get_string(node, "node"), ds_cstr(&role), without_margin(&s));
    ds_destroy(&role);
    ds_destroy(&s);
}

static void
dot_data(const struct drawing *d, const struct json *node)
{
    const struct json_array *children = ctl_get_array(node, "children");
    const struct json *source = ctl_get(d->tree, "source");
    const char *name = ctl_get_string(node, "node");

    if (is_source_agent(node) && source->type == JSON_OBJECT) {
        printf("    \"host %s\" -> \"node %s\";\n", ctl_get_string(source, "host"), name);
    }
    for (size_t i = 0; i < children->n; i++) {
        const char *child = ctl_get_string(children->elems[i], "node");
        const char *outer_da = ctl_get_string(children->elems[i], "outer_da");

        printf("    \"node %s\" -> \"node %s\" [label=\"%s\"];\n", name,
               child[0] ? child : outer_da, outer_da);
    }
}

static void
dot_response(const struct drawing *d, const char *kind, const char *from, const char *to,
             const struct json *live)
{
    struct ds s = DS_EMPTY_INITIALIZER;

    if (live) {
        put_progress(d, live, &s);
    }
    printf("    \"%s %s\" -> \"node %s\" [style=dashed, constraint=false, label=\"%s\"];\n", kind,
           from, to, without_margin(&s));
    ds_destroy(&s);
}

static void
dot_receivers(const struct drawing *d, const struct json *node)
{
    const struct json_array *branches = ctl_get_array(node, "branches");
    const char *name = ctl_get_string(node, "node");

    for (size_t i = 0; i < branches->n; i++) {
        const struct json *b = branches->elems[i];
        const char *host = ctl_get_string(b, "name");

        if (is_receiver(b)) {
            printf("    \"host %s\" [shape=ellipse, label=\"%s\\n%s\\nQPN 0x%" PRIx64 "\"];\n",
                   host, host, ctl_get_string(b, "address"), ctl_get_int(b, "qpn"));
            printf("    \"node %s\" -> \"host %s\";\n", name, host);
            dot_response(d, "host", host, name, ctl_get(b, "live"));
        }
    }
}

static void
dot_responses(const struct drawing *d, const struct json *node)
{
    const struct json *source = ctl_get(d->tree, "source");
    const struct json *branch = branch_at_parent(d, node);
    const char *parent = ctl_get_string(node, "parent");
    const char *name = ctl_get_string(node, "node");

    if (parent[0]) {
        dot_response(d, "node", name, parent, branch ? ctl_get(branch, "live") : NULL);
    } else if (ctl_get_bool(node, "root") && source->type == JSON_OBJECT) {
        printf("    \"node %s\" -> \"host %s\" [style=dashed, constraint=false];\n", name,
               ctl_get_string(source, "host"));
    }
}

void
tree_draw_dot(const struct json *raw)
{
    struct json *tree = without_quotes(raw);
    const struct json_array *nodes = ctl_get_array(tree, "nodes");
    const struct json *source = ctl_get(tree, "source");
    struct drawing d = {.tree = tree, .drawn = SSET_INITIALIZER(&d.drawn)};

    printf("digraph \"%s\" {\n    node [shape=box];\n", ctl_get_string(tree, "group"));
    if (source->type == JSON_OBJECT) {
        const char *host = ctl_get_string(source, "host");

        printf("    \"host %s\" [shape=ellipse, label=\"%s\\n%s\\nQPN 0x%" PRIx64 "\"];\n", host,
               host, ctl_get_string(source, "address"), ctl_get_int(source, "qpn"));
    }
    for (size_t i = 0; i < nodes->n; i++) {
        dot_node(&d, nodes->elems[i]);
        dot_data(&d, nodes->elems[i]);
        dot_receivers(&d, nodes->elems[i]);
        dot_responses(&d, nodes->elems[i]);
    }
    puts("}");
    sset_destroy(&d.drawn);
    json_destroy(tree);
}
