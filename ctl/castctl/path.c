/* SPDX-License-Identifier: Apache-2.0
 *
 * castctl path: what paths there are, and what a program does.
 *
 * The paths are those that castd gave to the node that a host's packets come to first; which of them
 * packets take is path-rule.c's matter.
 */
#include <config.h>

#include "ctl/castctl/path.h"

#include <stdlib.h>

#include "ctl/castctl/program.h"
#include "ctl/registry/request.h"
#include "ctl/registry/values.h"
#include "lib/node-config.h"
#include "lib/path-rule.h"
#include "openvswitch/dynamic-string.h"
#include "util.h"

/*
 * Rows.
 */

static const struct rrec_destination *
find_destination(const struct rrec_node *node, const char *host)
{
    for (size_t i = 0; node && i < node->n_destinations; i++) {
        if (!strcmp(node->destinations[i]->name, host)) {
            return node->destinations[i];
        }
    }
    return NULL;
}

const struct rrec_destination *
path_require_destination(const struct ctl *ctl, const char *from, const char *to)
{
    const struct rrec_host *host = ctl_require_host(ctl, from);
    const struct rrec_node *node = ctl_node_of_host(ctl, from);
    enum path_policy policy = PATH_NONE;

    ctl_require_host(ctl, to);
    if (!strcmp(from, to)) {
        ctl_refuse(ctl, "from %s to %s there is no path", from, to);
    }
    if (!node) {
        ctl_refuse(ctl, "host %s has no link to a node", from);
    }
    const struct rrec_destination *d = find_destination(node, to);
    if (!d
        && (!host->path_policy || !path_policy_parse(host->path_policy, &policy)
            || policy == PATH_NONE)) {
        ctl_refuse(ctl,
                   "host %s has path policy none, so castd gives it no paths (castctl path policy "
                   "%s failover)",
                   from, from);
    }
    if (!d) {
        ctl_refuse(ctl, "castd has given node %s no path to host %s", node->name, to);
    }
    return d;
}

const struct rrec_path *
path_require(const struct ctl *ctl, const char *from, const char *to, const char *text)
{
    const struct rrec_destination *d = path_require_destination(ctl, from, to);
    uint64_t rank = 0;

    number_parse(text, 1, PATH_NUMBER_MAX, &rank);
    for (size_t i = 0; i < d->n_paths; i++) {
        if (!strcmp(d->paths[i]->name, text)) {
            return d->paths[i];
        }
    }
    for (size_t i = 0; i < d->n_paths; i++) {
        if ((uint64_t) d->paths[i]->rank == rank) {
            return d->paths[i];
        }
    }
    ctl_refuse(ctl, "no path '%s' from %s to %s (castctl path list %s %s)", text, from, to, from,
               to);
}

/*
 * path list.
 */

/* Which packets are pinned to the path: "all", or the DestQPs of some; malloc'd, NULL: none. */
static char *
pinned_to(const struct rrec_destination *d, const struct rrec_path *path)
{
    struct ds s = DS_EMPTY_INITIALIZER;

    if (d->pinned == path->number) {
        ds_put_cstr(&s, "all");
    }
    for (size_t i = 0; i < d->n_pins; i++) {
        if (d->value_pins[i] == path->number) {
            ds_put_format(&s, "%sQPN 0x%" PRIx64, s.length ? ", " : "", d->key_pins[i]);
        }
    }
    return s.length ? ds_steal_cstr(&s) : NULL;
}

/* Numbers that only the node's agent knows. */
static const char *const live_keys[] = {"up", "flows", "packets", "bytes", "moved", "errors"};

/* Puts what the agent says of the path, null if it says nothing. */
static void
put_live(struct json *o, const struct json *live, const char *destination, int64_t number)
{
    const struct json *found = NULL;

    for (size_t i = 0; live && live->type == JSON_ARRAY && i < live->array.n; i++) {
        const struct json *path = live->array.elems[i];

        if (ctl_get_int(path, "path") == number
            && !strcmp(ctl_get_string(path, "destination"), destination)) {
            found = path;
        }
    }
    for (size_t i = 0; i < ARRAY_SIZE(live_keys); i++) {
        ctl_put_copy_or_null(o, live_keys[i], ctl_get(found, live_keys[i]));
    }
}

static struct json *
path_to_json(const char *from, const struct rrec_destination *d, const struct rrec_path *path)
{
    struct json *o = json_object_create();
    char *pinned = pinned_to(d, path);

    json_object_put_string(o, "from", from);
    json_object_put_string(o, "to", d->name);
    ctl_put_int(o, "rank", path->rank);
    ctl_put_int(o, "number", path->number);
    json_object_put_string(o, "plane", path->plane);
    json_object_put_string(o, "path", path->name);
    json_object_put_string(o, "program", path->program);
    ctl_put_bool(o, "disjoint", path->disjoint);
    ctl_put_bool(o, "usable", path->usable);
    ctl_put_string_or_null(o, "pinned", pinned);
    json_object_put_string(o, "status", path->status);
    free(pinned);
    return o;
}

/* By hosts and rank. */
static int
compare_paths(const void *a_, const void *b_)
{
    const struct json *const *a = a_, *const *b = b_;
    int order = strverscmp(ctl_get_string(*a, "from"), ctl_get_string(*b, "from"));

    order = order ? order : strverscmp(ctl_get_string(*a, "to"), ctl_get_string(*b, "to"));
    return order ? order : (int) (ctl_get_int(*a, "rank") - ctl_get_int(*b, "rank"));
}

void
path_for_each(const struct ctl *ctl, const char *from, const char *to,
              void (*add)(const struct rrec_node *, const char *from,
                          const struct rrec_destination *, const struct rrec_path *, void *aux),
              void *aux)
{
    const struct rrec_node *node = ctl_node_of_host(ctl, from);

    for (size_t i = 0; node && i < node->n_destinations; i++) {
        const struct rrec_destination *d = node->destinations[i];
        bool wanted = to ? !strcmp(d->name, to) : strcmp(d->name, from) != 0;

        for (size_t j = 0; wanted && j < d->n_paths; j++) {
            add(node, from, d, d->paths[j], aux);
        }
    }
}

struct listing {
    struct json *array;
    bool with_live;
    const struct json *live; /* what the agent says. */
};

static void
add_path(const struct rrec_node *node OVS_UNUSED, const char *from,
         const struct rrec_destination *d, const struct rrec_path *path, void *listing_)
{
    const struct listing *listing = listing_;
    struct json *o = path_to_json(from, d, path);

    if (listing->with_live) {
        put_live(o, listing->live, d->address, path->number);
    }
    json_array_add(listing->array, o);
}

/* Adds the paths from a host to those that it has paths to, or to 'to' only.  False: the agent of its
 * node was to be asked, and says nothing. */
static bool
add_paths(const struct ctl *ctl, struct json *array, const char *from, const char *to)
{
    const struct rrec_node *node = ctl_node_of_host(ctl, from);
    bool with_live = ctl_flag(ctl, OPT_LIVE);

    if (!node || !node->n_destinations) {
        return true;
    }
    struct json *live = with_live ? ctl_agent_ask(ctl, node, "rocecast/paths") : NULL;
    struct listing listing = {array, with_live, live};

    path_for_each(ctl, from, to, add_path, &listing);
    json_destroy(live);
    return live || !with_live;
}

void
path_check_hosts(const struct ctl *ctl)
{
    if (ctl->argc > 1) {
        path_require_destination(ctl, ctl->argv[0], ctl->argv[1]);
    } else if (ctl->argc) {
        ctl_require_host(ctl, ctl->argv[0]);
    }
}

void
path_sort(struct json *array)
{
    if (array->array.n) { /* an array without elements is NULL, which qsort() must not get. */
        qsort(array->array.elems, array->array.n, sizeof *array->array.elems, compare_paths);
    }
}

static void
path_list(struct ctl *ctl)
{
    static const char *const keys[] = {
        "from", "to",    "rank",    "number", "plane", "path",   "program", "disjoint", "usable",
        "up",   "flows", "packets", "bytes",  "moved", "errors", "pinned",  "status",   NULL,
    };
    const char *from = ctl->argc > 0 ? ctl->argv[0] : NULL;
    const char *to = ctl->argc > 1 ? ctl->argv[1] : NULL;
    struct json *array = json_array_create_empty();
    const struct rrec_host *host;
    bool partial = false;

    path_check_hosts(ctl);
    RREC_HOST_FOR_EACH (host, ctl->idl) {
        if (!from || !strcmp(host->name, from)) {
            partial |= !add_paths(ctl, array, host->name, to);
        }
    }
    path_sort(array);
    ctl_print(ctl, array, keys);
    ctl_finish(partial);
}

/*
 * path show and path explain.
 */

static const char *const show_keys[] = {
    "from",         "to",           "rank",     "number", "plane",  "path",     "program",
    "header_bytes", "srh_segments", "disjoint", "usable", "pinned", "status",   "node",
    "destination",  "behaviour",    "port",     "next",   "then",   "segments", NULL,
};

static void
put_header(struct json *o, const struct program *program)
{
    ctl_put_int(o, "header_bytes", (int64_t) program_encap_len(program));
    ctl_put_int(o, "srh_segments", program->n - 1);
}

/* Adds how a packet to the host, without path, goes on from 'at'. */
static void
add_delivery(const struct ctl *ctl, struct json *segments, const struct rrec_node *at,
             const struct rrec_destination *d)
{
    const struct rrec_node *home = ctl_node_of_host(ctl, d->name);

    while (at && home) {
        const char *peer = at == home ? d->name : home->name;
        const struct rrec_port *port = ctl_port_to(at, peer);
        struct json *o = ctl_add_object(segments);

        json_object_put_string(o, "node", at->name);
        json_object_put_string(o, "destination", d->address);
        json_object_put(o, "behaviour", json_null_create());
        ctl_put_string_or_null(o, "port", port ? port->name : NULL);
        ctl_put_string_or_null(o, "next", port ? peer : NULL);
        json_object_put_string(o, "then", port ? "forwards what was inside" : "no neighbour of it");
        at = at == home || !port ? NULL : home;
    }
}

/* What happens to a packet that the node of a host puts on this path. */
static struct json *
path_segments(const struct ctl *ctl, const struct rrec_node *first, const struct rrec_path *path,
              const struct rrec_destination *d, const struct program *program)
{
    const struct rrec_port *uplink = ctl_port_with(first, path->port);
    struct json *segments = json_array_create_empty();
    struct json *head = ctl_add_object(segments);

    json_object_put_string(head, "node", first->name);
    json_object_put_string(head, "destination", d->address);
    json_object_put_string(head, "behaviour", "H.Encaps.Red");
    ctl_put_string_or_null(head, "port", uplink ? uplink->name : NULL);
    ctl_put_string_or_null(head, "next", uplink ? uplink->peer : NULL);
    json_object_put_string(head, "then", "puts the header in front");
    struct json *middle =
        program_segments(ctl, uplink ? ctl_find_node(ctl, uplink->peer) : NULL, program);
    for (size_t i = 0; i < middle->array.n; i++) {
        json_array_add(segments, json_deep_clone(middle->array.elems[i]));
    }
    const struct json *last = middle->array.elems[middle->array.n - 1];
    if (!strcmp(ctl_get_string(last, "then"), PROGRAM_DECAPSULATES)) {
        add_delivery(ctl, segments, ctl_find_node(ctl, ctl_get_string(last, "node")), d);
    }
    json_destroy(middle);
    return segments;
}

/* The path to show if none is named: the one that all packets are
 * pinned to, else the first by rank that is usable, else the first. */
static const struct rrec_path *
usual_path(const struct ctl *ctl, const struct rrec_destination *d)
{
    const struct rrec_path *best = NULL;

    for (size_t i = 0; i < d->n_paths; i++) {
        const struct rrec_path *p = d->paths[i];

        if (d->pinned == p->number) {
            return p;
        }
        if (!best || p->usable > best->usable
            || (p->usable == best->usable && p->rank < best->rank)) {
            best = p;
        }
    }
    if (!best) {
        ctl_refuse(ctl, "there is no path to host %s", d->name);
    }
    return best;
}

static void
path_show(struct ctl *ctl)
{
    const char *from = ctl->argv[0], *to = ctl->argv[1];
    const struct rrec_destination *d = path_require_destination(ctl, from, to);
    const struct rrec_path *path =
        ctl->argc > 2 ? path_require(ctl, from, to, ctl->argv[2]) : usual_path(ctl, d);
    struct json *o = path_to_json(from, d, path);
    struct program program;

    if (program_parse(path->program, &program)) {
        put_header(o, &program);
        json_object_put(o, "segments",
                        path_segments(ctl, ctl_node_of_host(ctl, from), path, d, &program));
    }
    ctl_print(ctl, o, show_keys);
}

static void
path_explain(struct ctl *ctl)
{
    struct json *o = json_object_create();
    struct program program;

    if (!program_parse(ctl->argv[0], &program)) {
        ctl_fail(CTL_USAGE, "path explain: '%s': " PROGRAM_RULE, ctl->argv[0], PROGRAM_MAX);
    }
    json_object_put_string(o, "program", ctl->argv[0]);
    put_header(o, &program);
    json_object_put(o, "segments", program_segments(ctl, NULL, &program));
    ctl_print(ctl, o, show_keys);
}

/* What operators have said, nodes and links aside. */
static void
path_rules(struct ctl *ctl)
{
    static const char *const keys[] = {"from", "to", "rule", "qpn", "path", NULL};
    struct json *array = json_array_create_empty();
    const struct rrec_path_rule *row;

    RREC_PATH_RULE_FOR_EACH(row, ctl->idl)
    {
        struct json *o = ctl_add_object(array);

        json_object_put_string(o, "from", row->from);
        json_object_put_string(o, "to", row->to);
        json_object_put_string(o, "rule", row->kind);
        ctl_put_int_or_null(o, "qpn", row->n_qpn ? row->qpn : NULL);
        json_object_put_string(o, "path", row->path);
    }
    ctl_sort_by(array, "from");
    ctl_print(ctl, array, keys);
}

const struct ctl_command ctl_path_commands[] = {
    {"path list", "[FROM [TO]]", 0, 2, CTL_INTENT | FLAG(OPT_LIVE), 0, NULL, path_list,
     "list paths between hosts, by rank, with their programs and why some are not used;\n"
     "        --live: also what is on them, from the agents that place packets"},
    {"path show", "FROM TO [PATH]", 2, 3, CTL_INTENT, 0, NULL, path_show,
     "show what each node does with a packet on a path (a name or a rank of path list; default: the\n"
     "        first that is usable, or the pinned one), and what the path's header costs"},
    {"path explain", "PROGRAM", 1, 1, CTL_INTENT, 0, NULL, path_explain,
     "show what nodes would do with a packet to this address;\n"
     "        a container of uSIDs, or several with commas between them, of which an SRH has the others"},
    {"path rules", "", 0, 0, 0, 0, NULL, path_rules,
     "list pins and exclusions of single paths; node list and link list show excluded nodes and links"},
    {.name = NULL},
};
