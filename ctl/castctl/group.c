/* SPDX-License-Identifier: Apache-2.0
 *
 * castctl group and source.
 */
#include <config.h>

#include "ctl/castctl/castctl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "ctl/castctl/path.h"
#include "ctl/castctl/planes.h"
#include "ctl/registry/group-settings.h"
#include "ctl/registry/group-state.h"
#include "ctl/registry/request.h"
#include "ctl/registry/values.h"
#include "openvswitch/dynamic-string.h"
#include "svec.h"
#include "util.h"

/*
 * Groups.
 */

/* Puts what is given into 'settings'.  A value that contradicts the group's others ends castctl
 * with 'code'. */
static void
take_settings(const struct ctl *ctl, struct group_settings *settings, enum ctl_exit code)
{
    const struct group_setting *wrong;
    char *why;
    int error = group_settings_take(settings, &ctl->settings, &wrong, &why);

    if (error) {
        ctl_fail(error == ERANGE ? code : CTL_USAGE, "--%s %s: %s", wrong->option,
                 smap_get(&ctl->settings, wrong->option), why);
    }
}

static bool
same_auth(const struct rrec_group *group, const struct auth_option *auth)
{
    return auth_tlvs_parse(group->auth, group->n_auth) == auth->tlvs
           && group->n_auth_key == auth->n_key && (!auth->n_key || group->auth_key[0] == auth->key);
}

static void
set_auth(const struct rrec_group *group, const struct auth_option *auth)
{
    const char *names[2];
    size_t n = auth_tlvs_names(auth->tlvs, names);

    rrec_group_set_auth(group, names, n);
    rrec_group_set_auth_key(group, &auth->key, auth->n_key);
}

/* Fails unless the existing group has what is given. */
static void
check_same(const struct ctl *ctl, const struct rrec_group *group, const struct group_settings *want,
           const struct auth_option *auth)
{
    const struct group_setting *setting = group_settings_find_other(group, want, &ctl->settings);
    const char *other = setting                                  ? setting->option
                        : auth->given && !same_auth(group, auth) ? "auth or --key"
                                                                 : NULL;

    if (other) {
        ctl_refuse(ctl, "group %s exists with another --%s", group->name, other);
    }
}

static void
group_add(struct ctl *ctl)
{
    const char *name = ctl->argv[0];
    struct group_settings settings = group_settings_default();
    const struct rrec_group *row;

    take_settings(ctl, &settings, CTL_USAGE);
    struct auth_option auth = ctl_option_auth(ctl, NULL);
    const char *plane = path_option_plane(ctl, "");
    const char *via = ctl->options[OPT_VIA] ? ctl->options[OPT_VIA] : "";
    struct svec planes = planes_option(ctl, NULL);
    ctl_check_name("name", name);
    row = request_find_group(ctl->idl, name);
    if (row && ctl_flag(ctl, OPT_MAY_EXIST)) {
        check_same(ctl, row, &settings, &auth);
        if ((ctl->options[OPT_VIA] && strcmp(row->via, via))
            || (ctl->options[OPT_PLANE] && strcmp(row->plane, plane))) {
            ctl_refuse(ctl, "group %s exists with another --via or --plane", name);
        }
        planes_check_same(ctl, row, &planes);
        svec_destroy(&planes);
        return;
    }
    if (row) {
        ctl_refuse(ctl, "a group named '%s' exists already", name);
    }
    path_check_via(ctl, NULL, via);
    row = rrec_group_insert(ctl->txn);
    rrec_group_set_name(row, name);
    group_settings_write(row, &settings);
    set_auth(row, &auth);
    rrec_group_set_via(row, via);
    rrec_group_set_plane(row, plane);
    planes_write(ctl, row, &planes, settings.mode, via[0] || plane[0]);
    svec_destroy(&planes);
}

/* An epoch's first packet settles how packets travel: a switch that takes its part in another tree
 * later does not know what was confirmed before. */
static void
check_not_started(const struct ctl *ctl, const struct rrec_group *group,
                  const struct group_settings *have, const struct group_settings *want)
{
    rrec_group_verify_started(group);
    for (const struct group_setting *s = group_settings_table; s->option && group->started; s++) {
        if (s->change == SETTING_NOT_STARTED && !group_setting_equal(s, have, want)) {
            ctl_refuse(ctl,
                       "--%s %s: epoch %" PRId64
                       " of group %s has started with %s; set it after castctl group reset %s",
                       s->option, smap_get(&ctl->settings, s->option), group->epoch, group->name,
                       group_setting_text(s, have), group->name);
        }
    }
}

static void
set_path(const struct ctl *ctl, const struct rrec_group *group, enum tree_mode mode)
{
    const char *via = ctl->options[OPT_VIA] ? ctl->options[OPT_VIA] : group->via;
    const char *plane = path_option_plane(ctl, group->plane);

    if (ctl->options[OPT_VIA]) {
        path_check_via(ctl, group, via);
    }
    path_check_not_started(ctl, group, "--via", group->via, via);
    path_check_not_started(ctl, group, "--plane", group->plane, plane);
    rrec_group_set_via(group, via);
    rrec_group_set_plane(group, plane);
    struct svec planes = planes_option(ctl, group);
    planes_check_not_started(ctl, group, &planes);
    planes_write(ctl, group, &planes, mode, via[0] || plane[0]);
    svec_destroy(&planes);
}

static void
group_set(struct ctl *ctl)
{
    const struct rrec_group *group;
    struct group_settings have, want;

    if (smap_is_empty(&ctl->settings)) {
        ctl_check_any_option(ctl);
    }
    group = ctl_require_group(ctl, ctl->argv[0]);
    group_settings_read(group, &have);
    want = have;
    take_settings(ctl, &want, CTL_REFUSED);
    check_not_started(ctl, group, &have, &want);
    if (!smap_is_empty(&ctl->settings)) {
        group_settings_write(group, &want);
    }
    set_path(ctl, group, want.mode);
    struct auth_option auth = ctl_option_auth(ctl, group);
    if (auth.given) {
        set_auth(group, &auth);
    }
}

static void
group_del(struct ctl *ctl)
{
    const struct rrec_group *group = request_find_group(ctl->idl, ctl->argv[0]);
    const struct rrec_source *source;
    const struct rrec_member *member, *next;
    const struct rrec_listener *listener, *next_listener;

    if (!group && ctl_flag(ctl, OPT_IF_EXISTS)) {
        return;
    }
    group = ctl_require_group(ctl, ctl->argv[0]);
    source = request_find_source(ctl->idl, group);
    if (source) {
        rrec_source_delete(source);
    }
    RREC_MEMBER_FOR_EACH_SAFE (member, next, ctl->idl) {
        if (member->group == group) {
            rrec_member_delete(member);
        }
    }
    RREC_LISTENER_FOR_EACH_SAFE (listener, next_listener, ctl->idl) {
        if (listener->group == group) {
            rrec_listener_delete(listener);
        }
    }
    rrec_group_delete(group);
}

static void
group_reset(struct ctl *ctl)
{
    const struct rrec_group *group = ctl_require_group(ctl, ctl->argv[0]);

    rrec_group_verify_resets(group);
    rrec_group_set_resets(group, group->resets + 1);
}

static struct json *
source_to_json(const struct rrec_source *source)
{
    struct json *o;

    if (!source) {
        return json_null_create();
    }
    o = json_object_create();
    json_object_put_string(o, "host", source->host);
    ctl_put_int(o, "qpn", source->qpn);
    ctl_put_int(o, "epoch", source->epoch);
    ctl_put_int_or_null(o, "connection", source->n_connection ? source->connection : NULL);
    return o;
}

/* Programs that are to be members when they have been connected.  They have nothing else yet of what
 * a member has. */
static void
add_listeners(const struct ctl *ctl, const struct rrec_group *group, struct json *array)
{
    static const char *const unknown[] = {
        "qpn",           "rkey",           "va",  "len",       "epoch",         "want",
        "keep",          "designated_qpn", "psn", "first_psn", "first_message", "lost_psn",
        "good_messages", "connection"};
    const struct rrec_listener *listener;

    RREC_LISTENER_FOR_EACH (listener, ctl->idl) {
        if (listener->group != group || request_find_member(ctl->idl, group, listener->host)) {
            continue;
        }
        struct json *o = ctl_add_object(array);
        json_object_put_string(o, "host", listener->host);
        for (size_t i = 0; i < ARRAY_SIZE(unknown); i++) {
            json_object_put(o, unknown[i], json_null_create());
        }
        ctl_put_int(o, "listen", listener->port);
        json_object_put_string(o, "state", "listening");
        json_object_put(o, "status", json_string_create_nocopy(ctl_listener_status(ctl, listener)));
    }
}

struct json *
ctl_members_to_json(const struct ctl *ctl, const struct rrec_group *group)
{
    struct json *array = json_array_create_empty();
    const struct rrec_member *m;

    RREC_MEMBER_FOR_EACH (m, ctl->idl) {
        if (m->group != group) {
            continue;
        }
        struct json *o = ctl_add_object(array);
        json_object_put_string(o, "host", m->host);
        ctl_put_int(o, "qpn", m->qpn);
        ctl_put_int_or_null(o, "rkey", m->n_rkey ? m->rkey : NULL);
        ctl_put_string_or_null(o, "va", m->n_rkey ? m->va : NULL);
        ctl_put_int(o, "len", m->len);
        ctl_put_int(o, "epoch", m->epoch);
        json_object_put_string(o, "want", m->want);
        json_object_put(o, "keep", json_boolean_create(m->keep));
        ctl_put_int_or_null(o, "designated_qpn", m->n_designated_qpn ? m->designated_qpn : NULL);
        ctl_put_int_or_null(o, "psn", m->n_psn ? m->psn : NULL);
        ctl_put_int_or_null(o, "first_psn", m->n_first_psn ? m->first_psn : NULL);
        ctl_put_int_or_null(o, "first_message", m->n_first_message ? m->first_message : NULL);
        ctl_put_int_or_null(o, "lost_psn", m->n_lost_psn ? m->lost_psn : NULL);
        ctl_put_int_or_null(o, "good_messages", m->n_good_messages ? m->good_messages : NULL);
        const struct rrec_listener *listener = request_find_listener(ctl->idl, group, m->host);
        ctl_put_int_or_null(o, "listen", listener ? &listener->port : NULL);
        ctl_put_int_or_null(o, "connection", m->n_connection ? m->connection : NULL);
        json_object_put_string(o, "state", m->state);
        json_object_put_string(o, "status", m->status);
    }
    add_listeners(ctl, group, array);
    ctl_sort_by(array, "host");
    return array;
}

/* The keys that a node has for a tree, in order. */
static struct json *
key_ids(const struct rrec_tree_node *tree)
{
    struct ds s = DS_EMPTY_INITIALIZER;
    int64_t last = 0;

    for (size_t n = 0; n < tree->n_keys; n++) {
        int64_t next = INT64_MAX;

        for (size_t i = 0; i < tree->n_keys; i++) {
            int64_t id = tree->keys[i]->id;

            next = id > last ? MIN(next, id) : next;
        }
        ds_put_format(&s, "%s%" PRId64, n ? " " : "", next);
        last = next;
    }
    return json_string_create_nocopy(ds_steal_cstr(&s));
}

/* The nodes that have a tree of the group's epoch. */
static struct json *
nodes_to_json(const struct ctl *ctl, const struct rrec_group *group)
{
    struct json *array = json_array_create_empty();
    const struct rrec_tree_node *tree;

    RREC_TREE_NODE_FOR_EACH (tree, ctl->idl) {
        const struct rrec_node *node =
            ctl_is_tree_of(tree, group) ? ctl_node_of_tree(ctl, tree) : NULL;

        if (node) {
            struct json *o = ctl_add_object(array);

            json_object_put_string(o, "node", node->name);
            ctl_put_int(o, "wanted", tree->generation);
            ctl_put_int(o, "applied", node->nb_cfg);
            json_object_put(o, "keys", key_ids(tree));
            ctl_put_int_or_null(o, "instance", tree->instance ? &tree->instance : NULL);
        }
    }
    ctl_sort_by(array, "node");
    return array;
}

static void
put_setting(struct json *o, const struct group_setting *s, const struct group_settings *settings)
{
    char *text = group_setting_text(s, settings);

    json_object_put(o, s->key,
                    !text                        ? json_null_create()
                    : group_setting_is_switch(s) ? json_boolean_create(!strcmp(text, "on"))
                    : s->words                   ? json_string_create(text)
                                                 : json_integer_create(strtoll(text, NULL, 10)));
    free(text);
}

void
ctl_put_group_state(const struct ctl *ctl, struct json *o, const struct rrec_group *g)
{
    struct json *lacking = json_array_create_empty();
    const struct rrec_member *m;
    int64_t n_active = 0;

    RREC_MEMBER_FOR_EACH (m, ctl->idl) {
        if (m->group != g) {
            continue;
        }
        n_active += member_is_active(m);
        if (member_is_lacking(m)) {
            struct json *who = ctl_add_object(lacking);

            json_object_put_string(who, "host", m->host);
            json_object_put_string(who, "state", m->state);
            json_object_put_string(who, "status", m->status);
        }
    }
    ctl_sort_by(lacking, "host");
    int64_t n_wanted = n_active + (int64_t) lacking->array.n;
    if (!ctl->json && !strcmp(g->state, group_state_name(GROUP_DEGRADED))) {
        json_object_put_format(o, "state", "%s %" PRId64 "/%" PRId64, g->state, n_active, n_wanted);
    } else {
        json_object_put_string(o, "state", g->state);
    }
    json_object_put_string(o, "status", g->status);
    ctl_put_int(o, "active_members", n_active);
    ctl_put_int(o, "wanted_members", n_wanted);
    json_object_put(o, "lacking", lacking);
}

/* Where programs may connect. */
static void
put_connect(struct json *o, const struct rrec_group *g, const struct group_settings *settings)
{
    if (settings->connect) {
        json_object_put_format(o, "connect", "[%s]:%" PRIu32, g->proxy, settings->connect_port);
    } else {
        json_object_put(o, "connect", json_null_create());
    }
}

static struct json *
group_to_json(const struct ctl *ctl, const struct rrec_group *g)
{
    struct json *o = json_object_create();
    struct group_settings settings;

    group_settings_read(g, &settings);
    for (const struct group_setting *s = group_settings_table; s->option; s++) {
        if (s->key) {
            put_setting(o, s, &settings);
        }
    }
    json_object_put_string(o, "name", g->name);
    ctl_put_int(o, "epoch", g->epoch);
    json_object_put_string(o, "proxy", g->proxy);
    ctl_put_int(o, "designated_qpn", g->designated_qpn);
    ctl_put_int(o, "start_psn", g->start_psn);
    ctl_put_int(o, "designated_rkey", g->designated_rkey);
    ctl_put_int(o, "region_va", 0);
    ctl_put_int(o, "region_len", g->region_len);
    json_object_put_string(o, "via", g->via);
    json_object_put_string(o, "plane", g->plane);
    planes_put(o, g);
    put_connect(o, g, &settings);
    json_object_put_string(o, "auth", auth_choice_name(auth_tlvs_parse(g->auth, g->n_auth)));
    ctl_put_int_or_null(o, "key", g->n_auth_key ? g->auth_key : NULL);
    ctl_put_int(o, "generation", g->generation);
    ctl_put_bool(o, "started", g->started);
    ctl_put_group_state(ctl, o, g);
    return o;
}

/* The keys in the order of the text.  Settings without a place of their own come before "auth". */
static const char *const *
group_keys(void)
{
    static struct svec keys = SVEC_EMPTY_INITIALIZER;

    if (svec_is_empty(&keys)) {
        svec_parse_words(&keys, "name mode receivers mtu proxy connect designated_qpn start_psn "
                                "designated_rkey region_va region_len");
        for (const struct group_setting *s = group_settings_table; s->option; s++) {
            if (s->key && !svec_contains_unsorted(&keys, s->key)) {
                svec_add(&keys, s->key);
            }
        }
        svec_parse_words(
            &keys,
            "via plane planes preferred_plane auth key host qpn rkey va len keep psn first_psn first_message lost_psn good_messages epoch "
            "listen connection generation started node wanted "
            "applied keys instance state status source members nodes");
        svec_terminate(&keys);
    }
    return (const char *const *) keys.names;
}

static void
group_show(struct ctl *ctl)
{
    const struct rrec_group *group = ctl_require_group(ctl, ctl->argv[0]);
    struct json *o = group_to_json(ctl, group);

    json_object_put(o, "source", source_to_json(request_find_source(ctl->idl, group)));
    json_object_put(o, "members", ctl_members_to_json(ctl, group));
    json_object_put(o, "nodes", nodes_to_json(ctl, group));
    ctl_print(ctl, o, group_keys());
}

static void
group_list(struct ctl *ctl)
{
    static const char *const keys[] = {"name",        "mode",   "mtu",   "policy",
                                       "liveness_ms", "epoch",  "proxy", "designated_qpn",
                                       "state",       "status", NULL};
    struct json *array = json_array_create_empty();
    const struct rrec_group *group;

    RREC_GROUP_FOR_EACH (group, ctl->idl) {
        json_array_add(array, group_to_json(ctl, group));
    }
    ctl_sort_by(array, "name");
    ctl_print(ctl, array, keys);
}

/* What an application needs to know about the epoch that it has just started. */
static void
print_epoch(struct ctl *ctl)
{
    const struct rrec_group *group = request_find_group(ctl->idl, ctl->argv[0]);

    if (group && !ctl->json) {
        ctl_print_line("group %s: epoch %" PRId64 ", Designated QPN 0x%" PRIx64
                       ", start PSN %" PRId64,
                       group->name, group->epoch, group->designated_qpn, group->start_psn);
    } else if (group) {
        ctl_print(ctl, group_to_json(ctl, group), group_keys());
    }
}

static void
group_wait(struct ctl *ctl)
{
    uint64_t want = ctl_option_number(ctl, OPT_MEMBERS, 1, UINT32_MAX, 1);
    int64_t epoch = (int64_t) ctl_option_number(ctl, OPT_EPOCH, 1, UINT32_MAX, 0);

    for (;;) {
        char *why;
        int error = request_group_ready(ctl->idl, ctl->argv[0], epoch, want, &why);

        if (!error) {
            return;
        }
        if (error != EAGAIN) {
            ctl_refuse(ctl, "%s", why);
        }
        char *standing =
            xasprintf("group %s not ready after %d s: %s", ctl->argv[0], ctl->timeout, why);
        ctl_wait_for_change(ctl, standing);
        free(standing);
        free(why);
    }
}

/*
 * Sources.
 */

static void
source_set(struct ctl *ctl)
{
    const struct request_source request = {
        .group = ctl->argv[0],
        .host = ctl->options[OPT_HOST],
        .qpn = (int64_t) ctl_option_number(ctl, OPT_QPN, QPN_MIN, QPN_MAX, 0),
        .epoch = (int64_t) ctl_option_number(ctl, OPT_EPOCH, 1, UINT32_MAX, 0),
        .may_exist = ctl_flag(ctl, OPT_MAY_EXIST),
    };
    char *why;

    if (request_source_set(ctl->idl, ctl->txn, &request, &why)) {
        ctl_refuse(ctl, "%s", why);
    }
}

static void
source_del(struct ctl *ctl)
{
    const struct rrec_group *group = ctl_require_group(ctl, ctl->argv[0]);
    const struct rrec_source *source = request_find_source(ctl->idl, group);

    if (source) {
        rrec_source_delete(source);
    } else if (!ctl_flag(ctl, OPT_IF_EXISTS)) {
        ctl_refuse(ctl, "group %s has no source", group->name);
    }
}

static void
source_show(struct ctl *ctl)
{
    const struct rrec_group *group = ctl_require_group(ctl, ctl->argv[0]);
    const struct rrec_source *source = request_find_source(ctl->idl, group);

    if (!source) {
        ctl_refuse(ctl, "group %s has no source", group->name);
    }
    ctl_print(ctl, source_to_json(source), group_keys());
}

const struct ctl_command ctl_group_commands[] = {
    {"group add", "GROUP", 1, 1,
     CTL_SETTINGS | FLAG(OPT_VIA) | FLAG(OPT_PLANE) | FLAG(OPT_PLANES) | FLAG(OPT_AUTH)
         | FLAG(OPT_KEY) | FLAG(OPT_MAY_EXIST),
     0, group_add, NULL,
     "add a group; TLVs that authenticate its packets: none (default), mt-auth, hmac, both, or data,\n"
     "        which covers their data, too; and the key for them; the switches on the way to the root of its tree, with commas between them;\n"
     "        the plane, nodes of others have no part in the tree; or planes, in each of which it has a\n"
     "        tree, 2 to 4 with commas between them"},
    {"group set", "GROUP", 1, 1,
     CTL_CHANGES | FLAG(OPT_VIA) | FLAG(OPT_PLANE) | FLAG(OPT_PLANES) | FLAG(OPT_AUTH)
         | FLAG(OPT_KEY),
     0, group_set, NULL,
     "change a group's settings, also of a group in use; how packets are authenticated: with --key\n"
     "        nodes go over to another key, without loss; way, plane and planes, '' for none, only before\n"
     "        an epoch's first packet"},
    {"group plane", "GROUP LABEL", 2, 2, 0, 0, planes_prefer, NULL,
     "have a group use this one of its planes as long as it is good; '' for whichever it uses: what is\n"
     "        in flight is waited for, and nothing is lost"},
    {"group del", "GROUP", 1, 1, FLAG(OPT_IF_EXISTS), 0, group_del, NULL,
     "delete a group with its source, members and listeners"},
    {"group list", "", 0, 0, 0, 0, NULL, group_list, "list groups"},
    {"group show", "GROUP", 1, 1, CTL_INTENT, 0, NULL, group_show,
     "show a group, its source, members and nodes"},
    {"group reset", "GROUP", 1, 1, 0, 0, group_reset, print_epoch,
     "start a new epoch: source and members register again"},
    {"group wait", "GROUP", 1, 1, FLAG(OPT_MEMBERS) | FLAG(OPT_EPOCH), 0, NULL, group_wait,
     "wait until the group is ready, or degraded, with at least N (default 1) active members"},
    {"source set", "GROUP", 1, 1,
     FLAG(OPT_HOST) | FLAG(OPT_QPN) | FLAG(OPT_EPOCH) | FLAG(OPT_MAY_EXIST),
     FLAG(OPT_HOST) | FLAG(OPT_QPN), source_set, print_epoch,
     "register the source's QP; the second in an epoch starts a new one (refused with --epoch)"},
    {"source show", "GROUP", 1, 1, 0, 0, NULL, source_show, "show a group's source"},
    {"source del", "GROUP", 1, 1, FLAG(OPT_IF_EXISTS), 0, source_del, NULL,
     "delete a group's source; the epoch is over for it"},
    {.name = NULL},
};
