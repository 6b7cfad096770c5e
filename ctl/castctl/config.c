/* SPDX-License-Identifier: Apache-2.0
 *
 * What operators have said of the network: castctl export, and what castctl apply compares.
 */
#include <config.h>

#include "ctl/castctl/config.h"

#include <ctype.h>
#include <stdlib.h>

#include "ctl/registry/congestion.h"
#include "ctl/registry/group-settings.h"
#include "ctl/registry/values.h"
#include "openvswitch/dynamic-string.h"
#include "sset.h"
#include "svec.h"
#include "util.h"

const struct config_family_row config_families[N_CONFIG_FAMILIES] = {
    [CONFIG_NODE] = {"node", "nodes"},       [CONFIG_HOST] = {"host", "hosts"},
    [CONFIG_LINK] = {"link", "links"},       [CONFIG_GROUP] = {"group", "groups"},
    [CONFIG_MEMBER] = {"member", "members"},
};

const char *const *
config_settings(enum config_family family)
{
    static const char *const node[] = {"id",    "role",     "aggregate", "verify",
                                       "plane", "programs", "excluded",  NULL};
    static const char *const host[] = {"address",   "path-policy", "rate-control", "controller",
                                       "line-rate", "floor",       "fast-cnp",     NULL};
    static const char *const link[] = {"kind", "forward", "backward", "external", "excluded", NULL};
    static const char *const member[] = {"qpn",  "rkey",   "va",           "len", "psn",
                                         "keep", "listen", "private-data", NULL};
    static struct svec group = SVEC_EMPTY_INITIALIZER;

    if (svec_is_empty(&group)) {
        for (const struct group_setting *s = group_settings_table; s->option; s++) {
            svec_add(&group, s->option);
        }
        svec_parse_words(&group, "via plane planes preferred-plane auth key");
        svec_terminate(&group);
    }
    switch (family) {
    case CONFIG_NODE: return node;
    case CONFIG_HOST: return host;
    case CONFIG_LINK: return link;
    case CONFIG_GROUP: return (const char *const *) group.names;
    case CONFIG_MEMBER: return member;
    }
    OVS_NOT_REACHED();
}

/*
 * Objects.
 */

void
config_init(struct config *c)
{
    *c = (struct config){.by_name = SHASH_INITIALIZER(&c->by_name)};
}

void
config_uninit(struct config *c)
{
    for (size_t i = 0; i < c->n; i++) {
        struct config_object *o = &c->objects[i];

        for (size_t j = 0; j < o->n_settings; j++) {
            free(o->settings[j].name);
            free(o->settings[j].value);
        }
        free(o->settings);
        free(o->names[0]);
        free(o->names[1]);
    }
    free(c->objects);
    shash_destroy(&c->by_name);
}

char *
config_name(const struct config_object *o)
{
    return o->names[1] ? xasprintf("%s %s", o->names[0], o->names[1]) : xstrdup(o->names[0]);
}

static char *
index_key(enum config_family family, const char *name)
{
    return xasprintf("%d %s", (int) family, name);
}

struct config_object *
config_add(struct config *c, enum config_family family, const char *first, const char *second)
{
    if (c->n == c->allocated) {
        c->objects = x2nrealloc(c->objects, &c->allocated, sizeof *c->objects);
    }
    struct config_object *o = &c->objects[c->n++];
    *o = (struct config_object){.family = family,
                                .names = {xstrdup(first), second ? xstrdup(second) : NULL}};
    char *name = config_name(o);
    char *key = index_key(family, name);
    shash_add(&c->by_name, key, (void *) (uintptr_t) c->n);
    free(key);
    free(name);
    return o;
}

void
config_set(struct config_object *o, const char *name, const char *value)
{
    if (value) {
        if (o->n_settings == o->allocated_settings) {
            o->settings = x2nrealloc(o->settings, &o->allocated_settings, sizeof *o->settings);
        }
        o->settings[o->n_settings++] = (struct config_setting){
            .name = xstrdup(name), .value = xstrdup(value), .line = o->line, .column = o->column};
    }
}

static void OVS_PRINTF_FORMAT(3, 4)
    config_set_format(struct config_object *o, const char *name, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    char *value = xvasprintf(format, args);
    va_end(args);
    config_set(o, name, value);
    free(value);
}

const char *
config_get(const struct config_object *o, const char *name)
{
    for (size_t i = 0; o && i < o->n_settings; i++) {
        if (!strcmp(o->settings[i].name, name)) {
            return o->settings[i].value;
        }
    }
    return NULL;
}

const struct config_object *
config_find(const struct config *c, enum config_family family, const char *name)
{
    char *key = index_key(family, name);
    size_t i = (size_t) (uintptr_t) shash_find_data(&c->by_name, key);

    free(key);
    return i ? &c->objects[i - 1] : NULL;
}

/*
 * The registry.
 */

/* Words with commas between them, in order; malloc'd. */
static char *
join(char *const words[], size_t n)
{
    struct svec list = SVEC_EMPTY_INITIALIZER;

    for (size_t i = 0; i < n; i++) {
        svec_add(&list, words[i]);
    }
    svec_sort(&list);
    char *text = svec_join(&list, ",", "");
    svec_destroy(&list);
    return text;
}

static void
read_node(struct config *c, const struct rrec_node *row)
{
    struct config_object *o = config_add(c, CONFIG_NODE, row->name, NULL);
    char *programs = join(row->programs, row->n_programs);
    bool is_agent = !strcmp(row->role, node_role_name(NODE_AGENT));

    config_set_format(o, "id", "%" PRId64, row->id);
    config_set(o, "role", row->role);
    if (!strcmp(row->role, node_role_name(NODE_SWITCH))) {
        config_set(o, "aggregate",
                   ctl_aggregate_name(row->no_aggregation ? AGGREGATE_NO : AGGREGATE_YES));
    }
    config_set(o, "verify", ctl_verify_name(row->verify_always ? VERIFY_ALWAYS : VERIFY_AUTO));
    config_set(o, "plane", row->plane);
    config_set(o, "programs", is_agent ? programs : NULL);
    config_set(o, "excluded", is_agent ? NULL : ctl_switch_name(row->excluded));
    free(programs);
}

static void
read_host(struct config *c, const struct rrec_host *row)
{
    struct config_object *o = config_add(c, CONFIG_HOST, row->name, NULL);
    const struct rate_settings s = rate_settings_read(row);
    char text[QUANTITY_SIZE];

    config_set(o, "address", row->address);
    config_set(o, "path-policy", row->path_policy ? row->path_policy : path_policy_name(PATH_NONE));
    config_set(o, "rate-control", rate_control_by_name(s.by));
    config_set(o, "controller", rate_controller_name(s.controller));
    quantity_format(QUANTITY_RATE, s.line, text, sizeof text);
    config_set(o, "line-rate", text);
    quantity_format(QUANTITY_RATE, s.floor, text, sizeof text);
    config_set(o, "floor", text);
    config_set(o, "fast-cnp", fast_cnp_choice_name(s.fast_cnp));
}

static void
read_link(const struct ctl *ctl, struct config *c, const struct rrec_link *row)
{
    char *a = xasprintf("%s:%s", row->a, row->a_port), *b = xasprintf("%s:%s", row->b, row->b_port);
    struct config_object *o = config_add(c, CONFIG_LINK, a, b);
    bool has_host = !ctl_find_node(ctl, row->a) || !ctl_find_node(ctl, row->b);

    config_set(o, "kind", row->kind);
    config_set(o, "forward", row->a_to_b);
    config_set(o, "backward", row->b_to_a);
    config_set(o, "external", ctl_switch_name(row->external));
    config_set(o, "excluded", has_host ? NULL : ctl_switch_name(row->excluded));
    free(a);
    free(b);
}

static void
read_group(struct config *c, const struct rrec_group *row)
{
    struct config_object *o = config_add(c, CONFIG_GROUP, row->name, NULL);
    char *planes = join(row->planes, row->n_planes);
    struct group_settings settings;

    group_settings_read(row, &settings);
    for (const struct group_setting *s = group_settings_table; s->option; s++) {
        bool is_unused = !strcmp(s->option, "port") && !settings.connect;
        char *text = is_unused ? NULL : group_setting_text(s, &settings);

        config_set(o, s->option, text);
        free(text);
    }
    config_set(o, "via", row->via);
    config_set(o, "plane", row->plane);
    config_set(o, "planes", planes);
    config_set(o, "preferred-plane", row->n_planes ? row->preferred_plane : NULL);
    config_set(o, "auth", auth_choice_name(auth_tlvs_parse(row->auth, row->n_auth)));
    if (row->n_auth_key) {
        config_set_format(o, "key", "%" PRId64, row->auth_key[0]);
    }
    free(planes);
}

/* What is wanted of a member: with a registration that is not decided on yet, that one. */
static void
read_member(struct config *c, const struct rrec_member *row)
{
    bool is_new = row->n_new_qpn > 0;
    const int64_t *rkey = is_new ? row->new_rkey : row->rkey;
    const int64_t *psn = is_new ? row->new_psn : row->psn;
    struct config_object *o = config_add(c, CONFIG_MEMBER, row->group->name, row->host);

    config_set_format(o, "qpn", "0x%" PRIx64, is_new ? row->new_qpn[0] : row->qpn);
    if (is_new ? row->n_new_rkey : row->n_rkey) {
        config_set_format(o, "rkey", "0x%" PRIx64, rkey[0]);
        config_set(o, "va", is_new ? row->new_va : row->va);
        config_set_format(o, "len", "%" PRId64, is_new ? row->new_len : row->len);
    }
    if (is_new ? row->n_new_psn : row->n_psn) {
        config_set_format(o, "psn", "%" PRId64, psn[0]);
    }
    config_set(o, "keep", ctl_switch_name(is_new ? row->new_keep : row->keep));
}

/* Is it a queue pair that somebody has registered and that stands?  That of a program which was connected is not: its
 * listener is what has been said. */
static bool
is_registered(const struct rrec_member *row)
{
    return !strcmp(row->want, "active") && !row->n_connection
           && (row->keep || row->epoch == row->group->epoch);
}

static void
read_listener(struct config *c, const struct rrec_listener *row)
{
    struct config_object *o = config_add(c, CONFIG_MEMBER, row->group->name, row->host);

    config_set_format(o, "listen", "%" PRId64, row->port);
    config_set(o, "private-data", row->private_data[0] ? row->private_data : NULL);
}

static int
compare_objects(const void *a_, const void *b_)
{
    const struct config_object *a = a_, *b = b_;

    if (a->family != b->family) {
        return a->family < b->family ? -1 : 1;
    }
    int order = strverscmp(a->names[0], b->names[0]);
    return order || !a->names[1] ? order : strverscmp(a->names[1], b->names[1]);
}

static void
sort_objects(struct config *c)
{
    if (!c->n) {
        return;
    }
    qsort(c->objects, c->n, sizeof *c->objects, compare_objects);
    for (size_t i = 0; i < c->n; i++) {
        char *name = config_name(&c->objects[i]);
        char *key = index_key(c->objects[i].family, name);

        shash_replace(&c->by_name, key, (void *) (uintptr_t) (i + 1));
        free(key);
        free(name);
    }
}

void
config_read(const struct ctl *ctl, struct config *c)
{
    const struct rrec_node *node;
    const struct rrec_host *host;
    const struct rrec_link *link;
    const struct rrec_group *group;
    const struct rrec_member *member;
    const struct rrec_listener *listener;

    config_init(c);
    RREC_NODE_FOR_EACH (node, ctl->idl) {
        read_node(c, node);
    }
    RREC_HOST_FOR_EACH (host, ctl->idl) {
        read_host(c, host);
    }
    RREC_LINK_FOR_EACH (link, ctl->idl) {
        read_link(ctl, c, link);
    }
    RREC_GROUP_FOR_EACH (group, ctl->idl) {
        read_group(c, group);
    }
    RREC_MEMBER_FOR_EACH (member, ctl->idl) {
        if (is_registered(member)) {
            read_member(c, member);
        }
    }
    RREC_LISTENER_FOR_EACH (listener, ctl->idl) {
        read_listener(c, listener);
    }
    sort_objects(c);
}

/*
 * As a file.
 */

static void
put_settings(struct json *json, const struct config_object *o)
{
    for (size_t i = 0; i < o->n_settings; i++) {
        json_object_put_string(json, o->settings[i].name, o->settings[i].value);
    }
}

static struct json *
to_json(const struct config *c)
{
    struct json *file = json_object_create();
    struct json *families[N_CONFIG_FAMILIES] = {NULL};

    for (int i = 0; i < CONFIG_MEMBER; i++) {
        families[i] = i == CONFIG_LINK ? json_array_create_empty() : json_object_create();
        json_object_put(file, config_families[i].many, families[i]);
    }
    for (size_t i = 0; i < c->n; i++) {
        const struct config_object *o = &c->objects[i];
        struct json *json = json_object_create();

        put_settings(json, o);
        if (o->family == CONFIG_LINK) {
            struct json *ends = json_array_create_empty();

            json_array_add(ends, json_string_create(o->names[0]));
            json_array_add(ends, json_string_create(o->names[1]));
            json_object_put(json, "endpoints", ends);
            json_array_add(families[CONFIG_LINK], json);
        } else if (o->family == CONFIG_MEMBER) { /* its group came before it. */
            struct shash *group =
                json_object(shash_find_data(json_object(families[CONFIG_GROUP]), o->names[0]));

            if (!shash_find(group, "members")) {
                shash_add(group, "members", json_object_create());
            }
            json_object_put(shash_find_data(group, "members"), o->names[1], json);
        } else {
            json_object_put(families[o->family], o->names[0], json);
        }
    }
    return file;
}

/* A scalar: plain if that is the same text in YAML, whatever reads it; otherwise as JSON has it. */
static void
put_scalar(struct ds *s, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    static const char *const not_texts[] = {"on",    "off",  "yes", "no", "true",
                                            "false", "null", "y",   "n",  NULL};
    bool is_plain =
        text[0] && strspn(text, plain) == strlen(text) && isalnum((unsigned char) text[0]);

    for (size_t i = 0; not_texts[i]; i++) {
        is_plain = is_plain && strcasecmp(text, not_texts[i]);
    }
    if (is_plain) {
        ds_put_cstr(s, text);
    } else {
        struct json *json = json_string_create(text);

        json_to_ds(json, 0, s);
        json_destroy(json);
    }
}

static void
put_flow(struct ds *s, const struct config_object *o, const char *before)
{
    ds_put_format(s, "{%s", before);
    for (size_t i = 0; i < o->n_settings; i++) {
        ds_put_format(s, "%s%s: ", i ? ", " : "", o->settings[i].name);
        put_scalar(s, o->settings[i].value);
    }
    ds_put_cstr(s, "}\n");
}

/* A group's settings are many: a line each. */
static void
put_block(struct ds *s, const struct config_object *o)
{
    for (size_t i = 0; i < o->n_settings; i++) {
        ds_put_format(s, "    %s: ", o->settings[i].name);
        put_scalar(s, o->settings[i].value);
        ds_put_char(s, '\n');
    }
}

static void
put_members(struct ds *s, const struct config *c, const char *group)
{
    bool first = true;

    for (size_t i = 0; i < c->n; i++) {
        const struct config_object *o = &c->objects[i];

        if (o->family == CONFIG_MEMBER && !strcmp(o->names[0], group)) {
            ds_put_cstr(s, first ? "    members:\n      " : "      ");
            put_scalar(s, o->names[1]);
            ds_put_cstr(s, ": ");
            put_flow(s, o, "");
            first = false;
        }
    }
}

static void
put_object(struct ds *s, const struct config *c, const struct config_object *o)
{
    if (o->family == CONFIG_LINK) {
        struct ds ends = DS_EMPTY_INITIALIZER;

        ds_put_cstr(&ends, "endpoints: [");
        put_scalar(&ends, o->names[0]);
        ds_put_cstr(&ends, ", ");
        put_scalar(&ends, o->names[1]);
        ds_put_cstr(&ends, "], ");
        ds_put_cstr(s, "  - ");
        put_flow(s, o, ds_cstr(&ends));
        ds_destroy(&ends);
        return;
    }
    ds_put_cstr(s, "  ");
    put_scalar(s, o->names[0]);
    if (o->family == CONFIG_GROUP) {
        ds_put_cstr(s, ":\n");
        put_block(s, o);
        put_members(s, c, o->names[0]);
    } else {
        ds_put_cstr(s, ": ");
        put_flow(s, o, "");
    }
}

void
config_print(const struct ctl *ctl, const struct config *c)
{
    if (ctl->json) {
        ctl_print(ctl, to_json(c), NULL);
        return;
    }
    struct ds s = DS_EMPTY_INITIALIZER;
    for (int family = 0; family < CONFIG_MEMBER; family++) {
        bool first = true;

        for (size_t i = 0; i < c->n; i++) {
            if (c->objects[i].family == (enum config_family) family) {
                if (first) {
                    ds_put_format(&s, "%s:\n", config_families[family].many);
                }
                put_object(&s, c, &c->objects[i]);
                first = false;
            }
        }
        if (first) {
            ds_put_format(&s, "%s: %s\n", config_families[family].many,
                          family == CONFIG_LINK ? "[]" : "{}");
        }
    }
    ctl_print_lines(ds_cstr(&s));
    ds_destroy(&s);
}

/*
 * Changes.
 */

static void
add_change(struct json *changes, const char *change, const struct config_object *o,
           const char *setting, const char *before, const char *after)
{
    struct json *json = ctl_add_object(changes);
    char *name = config_name(o);

    json_object_put_string(json, "change", change);
    json_object_put_string(json, "family", config_families[o->family].one);
    json_object_put_string(json, "name", name);
    ctl_put_string_or_null(json, "setting", setting);
    ctl_put_string_or_null(json, "before", before);
    ctl_put_string_or_null(json, "after", after);
    free(name);
}

/* 'o' of one side; 'other': the same of the other side, NULL: it is not there. */
static const struct config_object *
other_of(const struct config *other, const struct config_object *o)
{
    char *name = config_name(o);
    const struct config_object *found = config_find(other, o->family, name);

    free(name);
    return found;
}

static void
compare_settings(struct json *changes, const struct config_object *before,
                 const struct config_object *after)
{
    for (const char *const *name = config_settings(after->family); *name; name++) {
        const char *old = config_get(before, *name), *new = config_get(after, *name);

        if (before ? !nullable_string_is_equal(old, new) : new &&new[0]) {
            add_change(changes, before ? "change" : "add", after, *name, old, new);
        }
    }
}

struct json *
config_changes(const struct config *before, const struct config *after)
{
    struct json *changes = json_array_create_empty();

    for (size_t i = 0; i < before->n; i++) {
        if (!other_of(after, &before->objects[i])) {
            add_change(changes, "remove", &before->objects[i], NULL, NULL, NULL);
        }
    }
    for (size_t i = 0; i < after->n; i++) {
        compare_settings(changes, other_of(before, &after->objects[i]), &after->objects[i]);
    }
    return changes;
}

static const char *
shown(const struct json *change, const char *key)
{
    const char *text = ctl_get_string(change, key);

    return text[0] ? text : "''";
}

/* Prints what begins with changes[i]: an object that is new has a line.  Returns the next one. */
static size_t
print_change(const struct json_array *changes, size_t i, size_t counts[3])
{
    const struct json *change = changes->elems[i];
    const char *what = ctl_get_string(change, "change");
    const char *family = ctl_get_string(change, "family"), *name = ctl_get_string(change, "name");

    if (!strcmp(what, "remove")) {
        ctl_print_line("- %s %s", family, name);
        counts[2]++;
        return i + 1;
    }
    bool is_new = !strcmp(what, "add");
    struct ds line = DS_EMPTY_INITIALIZER;
    size_t end = i;
    for (; end < changes->n && !strcmp(ctl_get_string(changes->elems[end], "change"), what)
           && !strcmp(ctl_get_string(changes->elems[end], "family"), family)
           && !strcmp(ctl_get_string(changes->elems[end], "name"), name);
         end++) {
        const struct json *c = changes->elems[end];

        if (is_new) {
            ds_put_format(&line, " %s=%s", ctl_get_string(c, "setting"), shown(c, "after"));
        } else {
            ctl_print_line("~ %s %s %s: %s -> %s", family, name, ctl_get_string(c, "setting"),
                           shown(c, "before"), shown(c, "after"));
        }
    }
    if (is_new) {
        ctl_print_line("+ %s %s%s", family, name, ds_cstr(&line));
    }
    ds_destroy(&line);
    counts[is_new ? 0 : 1]++;
    return end;
}

void
config_print_changes(const struct ctl *ctl, const struct json *changes, bool dry_run)
{
    const struct json_array *array = &changes->array;
    size_t counts[3] = {0}; /* of objects. */

    if (ctl->json) {
        struct json *o = json_object_create();

        ctl_put_bool(o, "dry_run", dry_run);
        json_object_put(o, "changes", json_deep_clone(changes));
        ctl_print(ctl, o, NULL);
        return;
    }
    for (size_t i = 0; i < array->n;) {
        i = print_change(array, i, counts);
    }
    if (!array->n) {
        ctl_print_line("nothing to change");
    } else {
        ctl_print_line("%zu to add, %zu to change, %zu to remove%s", counts[0], counts[1],
                       counts[2], dry_run ? ": nothing is done (--dry-run)" : "");
    }
}
