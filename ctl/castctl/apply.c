/* SPDX-License-Identifier: Apache-2.0
 *
 * castctl apply and export: the whole network, or some of it, from one file.
 *
 * There is no second way into the registry here: what a file wants and the registry does not have is done by the
 * commands that operators would type, "node add", "group set" and so on, in one transaction.  What has changed is then
 * the difference between the registry as it was read and as the transaction leaves it, so that values which only look
 * different are no change.
 */
#include <config.h>

#include "ctl/castctl/castctl.h"

#include <stdlib.h>

#include "ctl/castctl/config.h"
#include "ctl/castctl/plan.h"
#include "sset.h"
#include "svec.h"
#include "util.h"

/*
 * What it wants, by commands.
 */

/* A command line that is being made. */
struct call {
    struct svec args;
    struct smap options;
};

static void
call_begin(struct call *c, const char *first, const char *second)
{
    svec_init(&c->args);
    smap_init(&c->options);
    svec_add(&c->args, first);
    if (second) {
        svec_add(&c->args, second);
    }
}

/* Ends castctl if the command refuses it. */
static void
call_end(struct ctl *ctl, const char *command, struct call *c)
{
    ctl_run_within(ctl, command, &c->args, &c->options);
    svec_destroy(&c->args);
    smap_destroy(&c->options);
}

static bool
is_one_of_keys(const char *name, const char *keys)
{
    size_t len = strlen(name);

    for (const char *s = keys; (s = strstr(s, name)); s += len) {
        if ((s == keys || s[-1] == ' ') && (!s[len] || s[len] == ' ')) {
            return true;
        }
    }
    return false;
}

/* Adds those of the settings that are among 'keys', words with spaces between them; with 'except' those that are not. */
static void
call_take(struct call *c, const struct smap *settings, const char *keys, bool except)
{
    struct smap_node *node;

    SMAP_FOR_EACH (node, settings) {
        if (is_one_of_keys(node->key, keys) != except) {
            smap_replace(&c->options, node->key, node->value);
        }
    }
}

/* Where it is in the file what commands are about. */
static struct ctl_place object_place, *setting_places;
static size_t n_setting_places;

/* Whatever fails now is about this object of the file, or its settings. */
static void
set_places(const struct plan *p, const struct config_object *o)
{
    char *name = config_name(o);

    free(object_place.path);
    free(setting_places);
    object_place =
        (struct ctl_place){.file = p->file,
                           .line = o->line,
                           .column = o->column,
                           .path = xasprintf("%s %s", config_families[o->family].one, name)};
    n_setting_places = o->n_settings;
    setting_places = xcalloc(o->n_settings + 1, sizeof *setting_places);
    for (size_t i = 0; i < o->n_settings; i++) {
        const struct config_setting *s = &o->settings[i];

        setting_places[i] = object_place; /* with its path. */
        setting_places[i].line = s->line;
        setting_places[i].column = s->column;
        setting_places[i].option = s->name;
    }
    ctl_fail_at(&object_place, setting_places, n_setting_places);
    free(name);
}

/* What fails now is about this setting, of which the command does not know. */
static void
set_place_of(const char *setting)
{
    for (size_t i = 0; i < n_setting_places; i++) {
        if (!strcmp(setting_places[i].option, setting)) {
            ctl_fail_at(&setting_places[i], NULL, 0);
        }
    }
}

/* "on" or "off"; fails otherwise. */
static bool
is_on(const char *setting, const char *text)
{
    enum ctl_switch value;

    if (!ctl_switch_parse(text, &value)) {
        ctl_fail(CTL_USAGE, "--%s %s: must be off or on", setting, text);
    }
    return value == SWITCH_ON;
}

/* The setting "excluded", if it is among those that are to change. */
static void
apply_excluded(struct ctl *ctl, const struct config_object *o, const struct smap *settings)
{
    const char *excluded = smap_get(settings, "excluded");

    if (excluded) {
        struct call c;

        set_place_of("excluded");
        call_begin(&c, o->names[0], o->names[1]);

        call_end(ctl, is_on("excluded", excluded) ? "path exclude" : "path include", &c);
    }
}

/* Adds what a command needs of an object that exists, also if it does not change. */
static void
take_existing(struct call *c, const struct config_object *have, const char *name)
{
    const char *value = config_get(have, name);

    if (have) {
        smap_replace(&c->options, "may-exist", "");
    }
    if (value && !smap_get(&c->options, name)) {
        smap_replace(&c->options, name, value);
    }
}

static void
apply_node(struct ctl *ctl, const struct config_object *o, const struct config_object *have,
           const struct smap *settings)
{
    struct call add, set;

    call_begin(&add, o->names[0], NULL);
    call_begin(&set, o->names[0], NULL);
    call_take(&add, settings, "id role", false);
    call_take(&set, settings, "aggregate verify plane programs", false);
    if (!have || !smap_is_empty(&add.options)) {
        take_existing(&add, have, "id");
        take_existing(&add, have, "role");
        call_end(ctl, "node add", &add);
    }
    if (!smap_is_empty(&set.options)) {
        call_end(ctl, "node set", &set);
    }
    apply_excluded(ctl, o, settings);
}

static void
apply_host(struct ctl *ctl, const struct config_object *o, const struct config_object *have,
           const struct smap *settings)
{
    struct call add, set;

    call_begin(&add, o->names[0], NULL);
    call_begin(&set, o->names[0], NULL);
    call_take(&add, settings, "address", false);
    call_take(&set, settings, "address", true);
    if (!have || !smap_is_empty(&add.options)) {
        take_existing(&add, have, "address");
        call_end(ctl, "host add", &add);
    }
    if (!smap_is_empty(&set.options)) {
        if (ctl_flag(ctl, OPT_FORCE)) {
            smap_replace(&set.options, "force", "");
        }
        call_end(ctl, "host set", &set);
    }
}

/* The setting says how bad the link is for what 'from' sends to 'to'. */
static void
apply_impairment(struct ctl *ctl, const char *from, const char *to, const struct smap *settings,
                 const char *setting)
{
    const char *text = smap_get(settings, setting);

    if (text) {
        struct call c;

        set_place_of(setting);
        call_begin(&c, from, to);

        svec_parse_words(&c.args, text[0] ? text : "none");
        call_end(ctl, "link impair", &c);
    }
}

static void
apply_link(struct ctl *ctl, const struct config_object *o, const struct config_object *have,
           const struct smap *settings)
{
    const char *a = o->names[0], *b = o->names[1], *external = smap_get(settings, "external");

    if (!have || smap_get(settings, "kind")) {
        struct call add;

        call_begin(&add, a, b);

        call_take(&add, settings, "kind", false);
        take_existing(&add, have, "kind");
        call_end(ctl, "link add", &add);
    }
    apply_impairment(ctl, a, b, settings, "forward");
    apply_impairment(ctl, b, a, settings, "backward");
    if (external) {
        struct call c;

        set_place_of("external");
        call_begin(&c, a, b);

        svec_add(&c.args, external);
        call_end(ctl, "link external", &c);
    }
    apply_excluded(ctl, o, settings);
}

static void
apply_group(struct ctl *ctl, const struct config_object *o, const struct config_object *have,
            const struct smap *settings)
{
    static const char fixed[] = "mtu psn timeout"; /* SETTING_FIXED. */
    struct call add, set;

    call_begin(&add, o->names[0], NULL);
    call_begin(&set, o->names[0], NULL);
    const char *plane = smap_get(settings, "preferred-plane");

    call_take(&add, settings, have ? fixed : "preferred-plane", !have);
    if (have) {
        call_take(&set, settings, fixed, true);
        smap_remove(&set.options, "preferred-plane");
    }
    if (!have || !smap_is_empty(&add.options)) {
        take_existing(&add, have, "mtu");
        call_end(ctl, "group add", &add);
    }
    if (!smap_is_empty(&set.options)) {
        call_end(ctl, "group set", &set);
    }
    if (plane && (have || plane[0])) {
        struct call c;

        set_place_of("preferred-plane");
        call_begin(&c, o->names[0], plane);

        call_end(ctl, "group plane", &c);
    }
}

/* A registration is a whole: what has not changed of it is given again. */
static void
apply_member(struct ctl *ctl, const struct config_object *o)
{
    struct call add;

    call_begin(&add, o->names[0], o->names[1]);
    const char *keep = config_get(o, "keep");

    for (size_t i = 0; i < o->n_settings; i++) {
        smap_replace(&add.options, o->settings[i].name, o->settings[i].value);
    }
    smap_remove(&add.options, "keep");
    if (keep && is_on("keep", keep)) {
        smap_replace(&add.options, "keep", "");
    }
    smap_replace(&add.options, config_get(o, "listen") ? "replace" : "may-exist", "");
    call_end(ctl, "member add", &add);
}

/* A link's object has the registry's order of ends: what the file calls forward may be backward there. */
static const struct config_object *
find_existing(const struct config *before, const struct config_object *o, bool *is_swapped)
{
    char *name = config_name(o);
    const struct config_object *have = config_find(before, o->family, name);

    *is_swapped = false;
    free(name);
    if (!have && o->family == CONFIG_LINK) {
        name = xasprintf("%s %s", o->names[1], o->names[0]);
        have = config_find(before, o->family, name);
        *is_swapped = have != NULL;
        free(name);
    }
    return have;
}

static const char *
swapped_name(const char *name)
{
    return !strcmp(name, "forward") ? "backward" : !strcmp(name, "backward") ? "forward" : name;
}

/* Does what the file says of the object and the registry does not have. */
static void
apply_object(struct ctl *ctl, const struct config *before, const struct config_object *o)
{
    struct smap settings = SMAP_INITIALIZER(&settings);
    bool is_swapped;
    const struct config_object *have = find_existing(before, o, &is_swapped);

    for (size_t i = 0; i < o->n_settings; i++) {
        const char *name = o->settings[i].name;
        const char *old = config_get(have, is_swapped ? swapped_name(name) : name);

        if (!old || strcmp(old, o->settings[i].value)) {
            smap_replace(&settings, name, o->settings[i].value);
        }
    }
    if (!have || !smap_is_empty(&settings)) {
        switch (o->family) {
        case CONFIG_NODE: apply_node(ctl, o, have, &settings); break;
        case CONFIG_HOST: apply_host(ctl, o, have, &settings); break;
        case CONFIG_LINK: apply_link(ctl, o, have, &settings); break;
        case CONFIG_GROUP: apply_group(ctl, o, have, &settings); break;
        case CONFIG_MEMBER: apply_member(ctl, o); break;
        }
    }
    smap_destroy(&settings);
}

/*
 * What it does not name.
 */

static void
remove_object(struct ctl *ctl, const struct config_object *o)
{
    bool is_member = o->family == CONFIG_MEMBER;
    struct call c;

    call_begin(&c, o->names[0], is_member ? o->names[1] : NULL);

    if (o->family == CONFIG_LINK && ctl_flag(ctl, OPT_FORCE)) {
        smap_replace(&c.options, "force", "");
    }
    char *command =
        xasprintf("%s %s", config_families[o->family].one, is_member ? "remove" : "del");
    call_end(ctl, command, &c);
    free(command);
}

/* Is the object of a family that the file is about, and not in the file? */
static bool
is_surplus(const struct plan *p, const struct config_object *o)
{
    bool is_swapped;

    if (o->family == CONFIG_MEMBER) {
        return sset_contains(&p->with_members, o->names[0])
               && !find_existing(&p->config, o, &is_swapped);
    }
    return p->named[o->family] && !find_existing(&p->config, o, &is_swapped);
}

/* Members first, then what needs nothing of what is left. */
static void
prune(struct ctl *ctl, const struct plan *p, const struct config *before)
{
    static const enum config_family order[] = {CONFIG_MEMBER, CONFIG_GROUP, CONFIG_LINK,
                                               CONFIG_HOST, CONFIG_NODE};

    ctl_fail_at(&(struct ctl_place){.file = p->file, .path = xstrdup("--prune")}, NULL, 0);
    for (size_t f = 0; f < ARRAY_SIZE(order); f++) {
        for (size_t i = 0; i < before->n; i++) {
            if (before->objects[i].family == order[f] && is_surplus(p, &before->objects[i])) {
                remove_object(ctl, &before->objects[i]);
            }
        }
    }
}

/*
 * The commands.
 */

/* Shows what the transaction changes.  In a second attempt, because others have written meanwhile, that must be the
 * same. */
static bool
show_changes(struct ctl *ctl, const struct config *before, bool dry_run)
{
    static char *shown;
    struct config after;

    config_read(ctl, &after);
    struct json *changes = config_changes(before, &after);
    char *text = json_to_string(changes, 0);
    bool any = changes->array.n > 0;
    if (!shown) {
        config_print_changes(ctl, changes, dry_run);
        fflush(stdout);
        shown = xstrdup(text);
    } else if (strcmp(shown, text)) {
        ctl_refuse(ctl, "others have changed the registry meanwhile, and what would change is not "
                        "what was shown any more: nothing is done");
    }
    free(text);
    json_destroy(changes);
    config_uninit(&after);
    return any;
}

static void
apply(struct ctl *ctl)
{
    static struct plan p; /* of all attempts. */
    struct config before;

    if (!p.file) {
        plan_read(&p, ctl->options[OPT_FILE]);
    }
    config_read(ctl, &before);
    if (ctl_flag(ctl, OPT_PRUNE)) {
        prune(ctl, &p, &before);
    }
    for (size_t i = 0; i < p.config.n; i++) {
        set_places(&p, &p.config.objects[i]);
        apply_object(ctl, &before, &p.config.objects[i]);
    }
    ctl_fail_at(NULL, NULL, 0);
    bool dry_run = ctl_flag(ctl, OPT_DRY_RUN);
    ctl->abandon = !show_changes(ctl, &before, dry_run) || dry_run;
    config_uninit(&before);
}

static void export(struct ctl *ctl)
{
    struct config c;

    config_read(ctl, &c);
    config_print(ctl, &c);
    config_uninit(&c);
}

const struct ctl_command ctl_apply_commands[] = {
    {"apply", "", 0, 0,
     CTL_INTENT | FLAG(OPT_FILE) | FLAG(OPT_DRY_RUN) | FLAG(OPT_PRUNE) | FLAG(OPT_FORCE),
     FLAG(OPT_FILE), apply, NULL,
     "make nodes, hosts, links, groups and members what a YAML or JSON file says (also -f FILE; - is\n"
     "        standard input), all of it or nothing, and show what that changes; what the file does not name stays;\n"
     "        --dry-run: only show; --prune: remove what is not in the lists that the file has; --force:\n"
     "        links that trees use are removed, too, and path policies taken as host set --force does"},
    {"export", "", 0, 0, CTL_INTENT, 0, NULL, export,
     "print such a file of what there is: nodes, hosts, links, groups and members"},
    {.name = NULL},
};
