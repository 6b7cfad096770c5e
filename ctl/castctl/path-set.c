/* SPDX-License-Identifier: Apache-2.0
 *
 * castctl path: what operators say of paths.  What is not there yet, or never, is refused; what is
 * gone later stays a rule, and castd says so where the path was.
 */
#include <config.h>

#include "ctl/castctl/path.h"

#include <stdlib.h>

#include "ctl/castctl/program.h"
#include "ctl/registry/request.h"
#include "lib/path-rule.h"
#include "util.h"

/*
 * Rules.
 */

/* The rule of this kind from one host to another: a pin by its QPN (0: of all packets), an exclusion
 * by its path.  NULL: there is none. */
static const struct rrec_path_rule *
find_rule(const struct ctl *ctl, enum path_rule_kind kind, int64_t qpn, const char *path)
{
    const struct rrec_path_rule *row;

    RREC_PATH_RULE_FOR_EACH(row, ctl->idl)
    {
        if (!strcmp(row->kind, path_rule_kind_name(kind)) && !strcmp(row->from, ctl->argv[0])
            && !strcmp(row->to, ctl->argv[1]) && (row->n_qpn ? row->qpn[0] : 0) == qpn
            && (!path || !strcmp(row->path, path))) {
            return row;
        }
    }
    return NULL;
}

static const struct rrec_path_rule *
insert_rule(const struct ctl *ctl, enum path_rule_kind kind)
{
    const struct rrec_path_rule *row = rrec_path_rule_insert(ctl->txn);

    rrec_path_rule_set_kind(row, path_rule_kind_name(kind));
    rrec_path_rule_set_from(row, ctl->argv[0]);
    rrec_path_rule_set_to(row, ctl->argv[1]);
    return row;
}

/* --qpn; 0: not given. */
static int64_t
option_qpn(const struct ctl *ctl)
{
    return (int64_t) ctl_option_number(ctl, OPT_QPN, QPN_MIN, QPN_MAX, 0);
}

static bool
are_linked(const struct ctl *ctl, const char *a, const char *b)
{
    const struct rrec_link *row;

    RREC_LINK_FOR_EACH (row, ctl->idl) {
        if ((!strcmp(row->a, a) && !strcmp(row->b, b))
            || (!strcmp(row->a, b) && !strcmp(row->b, a))) {
            return true;
        }
    }
    return false;
}

/* "leaf1,spine5" as names of neighbouring nodes, of which the first is linked to 'from', NULL:
 * nobody knows whom; ends castctl if it is none. */
static void
check_via(const struct ctl *ctl, const char *via, const char *from)
{
    char *names = xstrdup(via), *save = NULL;

    if (!via[0] || strlen(via) >= PATH_NAME_SIZE || via[0] == ',' || strstr(via, ",,")
        || via[strlen(via) - 1] == ',') {
        ctl_fail(CTL_USAGE, "path '%s': must be names of nodes with commas between them", via);
    }
    for (char *name = strtok_r(names, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
        const struct rrec_node *node = ctl_require_node(ctl, name);

        if (!strcmp(node->role, node_role_name(NODE_AGENT))) {
            ctl_refuse(ctl, "path %s: node %s has role agent: a path has switches", via, name);
        }
        if (from && !are_linked(ctl, from, name)) {
            ctl_refuse(ctl, "path %s: no link between %s and %s", via, from, name);
        }
        from = node->name;
    }
    free(names);
}

void
path_check_via(const struct ctl *ctl, const struct rrec_group *group, const char *via)
{
    const struct rrec_source *source = group ? request_find_source(ctl->idl, group) : NULL;
    const struct rrec_node *agent = source ? ctl_node_of_host(ctl, source->host) : NULL;

    if (via[0]) {
        check_via(ctl, via, agent ? agent->name : NULL);
    }
}

const char *
path_option_plane(const struct ctl *ctl, const char *otherwise)
{
    const char *plane = ctl->options[OPT_PLANE];

    if (plane && plane[0]) {
        ctl_check_name("plane", plane);
    }
    return plane ? plane : otherwise;
}

void
path_check_not_started(const struct ctl *ctl, const struct rrec_group *group, const char *what,
                       const char *have, const char *want)
{
    rrec_group_verify_started(group);
    if (group->started && strcmp(have, want)) {
        ctl_refuse(ctl,
                   "%s '%s': epoch %" PRId64 " of group %s has started with '%s'; set it after "
                   "castctl group reset %s",
                   what, want, group->epoch, group->name, have, group->name);
    }
}

/*
 * path pin and unpin.
 */

static void
set_via(const struct ctl *ctl, const char *via)
{
    const struct rrec_group *group = ctl_require_group(ctl, ctl->argv[0]);

    if (ctl->options[OPT_QPN] || ctl->options[OPT_PROGRAM] || ctl->options[OPT_UPLINK]) {
        ctl_fail(CTL_USAGE, "%s: a group's path has no options (castctl %s --help)",
                 ctl->command->name, ctl->command->name);
    }
    path_check_via(ctl, group, via);
    path_check_not_started(ctl, group, "path", group->via, via);
    rrec_group_set_via(group, via);
}

/* The path of a pin: a path's name, or "UPLINK PROGRAM"; malloc'd. */
static char *
pinned_path(const struct ctl *ctl)
{
    const char *from = ctl->argv[0], *to = ctl->argv[1];
    const char *uplink = ctl->options[OPT_UPLINK], *text = ctl->options[OPT_PROGRAM];
    char canonical[PROGRAM_TEXT_SIZE];
    struct program program;

    if (!text) {
        const struct rrec_path *path = path_require(ctl, from, to, ctl->argv[2]);

        if (!path->usable && !ctl_flag(ctl, OPT_FORCE)) {
            ctl_refuse(ctl,
                       "path %s from %s to %s is not usable: %s; what is pinned to it would be "
                       "dropped (--force)",
                       path->name, from, to, path->status);
        }
        return xstrdup(path->name);
    }
    if (!program_parse(text, &program)) {
        ctl_fail(CTL_USAGE, "--program %s: " PROGRAM_RULE, text, PROGRAM_MAX);
    }
    for (size_t i = 0; i < program.n; i++) {
        if (!address_is_sid(&program.containers[i])) {
            ctl_fail(CTL_USAGE, "--program %s: must be containers in " SID_BLOCK_TEXT, text);
        }
    }
    path_require_destination(ctl, from, to);
    const struct rrec_node *node = ctl_node_of_host(ctl, from);
    if (!are_linked(ctl, node->name, ctl_require_node(ctl, uplink)->name)) {
        ctl_refuse(ctl, "--uplink %s: no link between %s and %s", uplink, node->name, uplink);
    }
    program_format(&program, canonical);
    return xasprintf("%s %s", uplink, canonical);
}

static void
path_pin(struct ctl *ctl)
{
    bool own_program = ctl_flag(ctl, OPT_PROGRAM);
    int64_t qpn = option_qpn(ctl);

    if (own_program != ctl_flag(ctl, OPT_UPLINK) || (ctl->argc > 2 && own_program)) {
        ctl_fail(CTL_USAGE, "path pin: either PATH, or --program with --uplink (castctl path pin "
                            "--help)");
    }
    if (ctl->argc == 2 && !own_program) {
        set_via(ctl, ctl->argv[1]);
        return;
    }
    char *path = pinned_path(ctl);
    const struct rrec_path_rule *rule = find_rule(ctl, PATH_PIN, qpn, NULL);
    rule = rule ? rule : insert_rule(ctl, PATH_PIN);
    rrec_path_rule_set_qpn(rule, &qpn, qpn != 0);
    rrec_path_rule_set_path(rule, path);
    free(path);
}

static void
path_unpin(struct ctl *ctl)
{
    int64_t qpn = option_qpn(ctl);

    if (ctl->argc == 1) {
        set_via(ctl, "");
        return;
    }
    ctl_require_host(ctl, ctl->argv[0]);
    ctl_require_host(ctl, ctl->argv[1]);
    const struct rrec_path_rule *rule = find_rule(ctl, PATH_PIN, qpn, NULL);
    if (rule) {
        rrec_path_rule_delete(rule);
    } else if (!ctl_flag(ctl, OPT_IF_EXISTS)) {
        char *of_qpn = qpn ? xasprintf(" of QPN 0x%" PRIx64, qpn) : xstrdup("");

        ctl_refuse(ctl, "packets from %s to %s%s are not pinned", ctl->argv[0], ctl->argv[1],
                   of_qpn);
    }
}

/*
 * path exclude and include.
 */

static const struct rrec_node *
require_transit_node(const struct ctl *ctl)
{
    const struct rrec_node *node = ctl_require_node(ctl, ctl->argv[0]);

    if (!strcmp(node->role, node_role_name(NODE_AGENT))) {
        ctl_refuse(ctl, "node %s has role agent: no path is over it", node->name);
    }
    return node;
}

static const struct rrec_link *
require_fabric_link(const struct ctl *ctl)
{
    bool forward;
    const struct rrec_link *link = ctl_require_link(ctl, ctl->argv[0], ctl->argv[1], &forward);

    for (int i = 0; i < 2; i++) {
        const char *name = i ? link->b : link->a;

        if (!ctl_find_node(ctl, name)) {
            ctl_refuse(ctl, "%s is a host: no path is over its link", name);
        }
    }
    return link;
}

/* Refuses if an operator wants packets from one host to another on this path. */
static void
check_not_pinned(const struct ctl *ctl, const char *path)
{
    const struct rrec_path_rule *row;

    RREC_PATH_RULE_FOR_EACH(row, ctl->idl)
    {
        if (!strcmp(row->kind, path_rule_kind_name(PATH_PIN)) && !strcmp(row->from, ctl->argv[0])
            && !strcmp(row->to, ctl->argv[1]) && !strcmp(row->path, path)) {
            ctl_refuse(ctl, "packets from %s to %s are pinned to path %s", row->from, row->to,
                       path);
        }
    }
}

static void
path_exclude(struct ctl *ctl)
{
    if (ctl->argc == 1) {
        rrec_node_set_excluded(require_transit_node(ctl), true);
    } else if (ctl->argc == 2) {
        rrec_link_set_excluded(require_fabric_link(ctl), true);
    } else {
        const char *path = path_require(ctl, ctl->argv[0], ctl->argv[1], ctl->argv[2])->name;

        check_not_pinned(ctl, path);
        if (!find_rule(ctl, PATH_EXCLUDE, 0, path)) {
            rrec_path_rule_set_path(insert_rule(ctl, PATH_EXCLUDE), path);
        }
    }
}

static void
path_include(struct ctl *ctl)
{
    if (ctl->argc == 1) {
        rrec_node_set_excluded(require_transit_node(ctl), false);
    } else if (ctl->argc == 2) {
        rrec_link_set_excluded(require_fabric_link(ctl), false);
    } else {
        /* The path itself may be gone, so that only the rule knows its name. */
        const struct rrec_path_rule *rule = find_rule(ctl, PATH_EXCLUDE, 0, ctl->argv[2]);

        if (!rule) {
            rule = find_rule(ctl, PATH_EXCLUDE, 0,
                             path_require(ctl, ctl->argv[0], ctl->argv[1], ctl->argv[2])->name);
        }
        if (rule) {
            rrec_path_rule_delete(rule);
        }
    }
}

/*
 * path policy and form.
 */

void
path_check_policy(const struct ctl *ctl, enum path_policy policy)
{
    if (policy == PATH_SPRAY && !ctl_flag(ctl, OPT_FORCE)) {
        ctl_refuse(ctl,
                   "policy spray: an RC receiver drops what comes out of order, and its sender "
                   "then sends a whole window again: over paths whose delays differ it gets "
                   "nothing done (docs/paths.md; --force)");
    }
}

static void
path_policy(struct ctl *ctl)
{
    bool all = !strcmp(ctl->argv[0], "all");
    const struct rrec_host *one = all ? NULL : ctl_require_host(ctl, ctl->argv[0]);
    const struct rrec_host *row;
    enum path_policy policy;

    if (!path_policy_parse(ctl->argv[1], &policy)) {
        ctl_fail(CTL_USAGE, "path policy: '%s' must be %s", ctl->argv[1],
                 words_join(&path_policy_words, WORDS_ALL, ", ", " or "));
    }
    path_check_policy(ctl, policy);
    RREC_HOST_FOR_EACH (row, ctl->idl) {
        if (all || row == one) {
            rrec_host_set_path_policy(row, path_policy_name(policy));
        }
    }
}

static void
path_form(struct ctl *ctl)
{
    const struct rrec_global *row = rrec_global_first(ctl->idl);
    enum path_form form;

    if (!path_form_parse(ctl->argv[0], &form)) {
        ctl_fail(CTL_USAGE, "path form: '%s' must be %s", ctl->argv[0],
                 words_join(&path_form_words, WORDS_ALL, ", ", " or "));
    }
    if (!row) {
        ctl_refuse(ctl, "the registry is empty: castd has not run yet");
    }
    rrec_global_set_path_form(row, path_form_name(form));
}

const struct ctl_command ctl_path_rule_commands[] = {
    {"path pin", "FROM TO [PATH]", 2, 3,
     CTL_INTENT | FLAG(OPT_QPN) | FLAG(OPT_PROGRAM) | FLAG(OPT_UPLINK) | FLAG(OPT_FORCE), 0,
     path_pin, NULL,
     "pin packets from one host to another, or those of one DestQP: to this path (a name or a rank\n"
     "        of path list) and to no other, or to a program of one's own by this neighbour of the host's\n"
     "        node; --force: also to a path that is not usable now.\n"
     "        path pin GROUP PATH: a group's packets, to the root of its tree, as group set --via"},
    {"path unpin", "FROM|GROUP [TO]", 1, 2, FLAG(OPT_QPN) | FLAG(OPT_IF_EXISTS), 0, path_unpin,
     NULL, "undo path pin: the policy decides again"},
    {"path exclude", "NODE | A B | FROM TO PATH", 1, 3, CTL_INTENT, 0, path_exclude, NULL,
     "take paths out of use: all over a node, all over the link between two, or one"},
    {"path include", "NODE | A B | FROM TO PATH", 1, 3, CTL_INTENT, 0, path_include, NULL,
     "undo path exclude"},
    {"path policy", "HOST|all POLICY", 2, 2, FLAG(OPT_FORCE), 0, path_policy, NULL,
     "set how what a host sends is placed on paths: none (not at all), failover (all on the first that is\n"
     "        usable), spread (flows in turn), message (each message, when nothing is in flight), spray\n"
     "        (each packet, what RC does not survive: needs --force)"},
    {"path form", "FORM", 1, 1, 0, 0, path_form, NULL,
     "set how paths end: the last switch takes the header off by its uN (usd) or by its End.DT6 (dt6), or\n"
     "        the receiver's agent does (agent); auto: agent if there is one, dt6 behind routers, else usd"},
    {.name = NULL},
};
