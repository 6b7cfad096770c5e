/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of castctl apply (see plan.h).
 */
#include <config.h>

#include "ctl/castctl/plan.h"

#include <stdlib.h>

#include "ctl/castctl/castctl.h"
#include "ctl/yaml/yaml-doc.h"
#include "svec.h"
#include "util.h"

#define MAX_SIZE (64 << 20) /* ten thousands of groups with members. */

/* A scalar's text; records an error for anything else. */
static const char *
scalar(struct yaml_doc *yd, const yaml_node_t *node, const char *what)
{
    return yaml_doc_is_scalar(yd, node, what) ? yaml_doc_text(node) : "";
}

static void
set_place(const yaml_node_t *at, size_t *line, size_t *column)
{
    *line = at->start_mark.line + 1;
    *column = at->start_mark.column + 1;
}

/* Settings of the object at 'map', which may have the key 'more', too; NULL: none. */
static void
read_settings(struct yaml_doc *yd, const yaml_node_t *map, const char *more, const char *what,
              struct config_object *o)
{
    struct svec keys = SVEC_EMPTY_INITIALIZER;
    yaml_node_t *key, *value;

    for (const char *const *s = config_settings(o->family); *s; s++) {
        svec_add(&keys, *s);
    }
    if (more) {
        svec_add(&keys, more);
    }
    svec_terminate(&keys);
    bool ok = yaml_doc_has_keys(yd, map, what, (const char *const *) keys.names);
    svec_destroy(&keys);
    for (size_t i = 0; ok && yaml_doc_pair(yd, map, i, &key, &value); i++) {
        const char *name = yaml_doc_text(key);

        if (more && !strcmp(name, more)) {
            continue;
        }
        char *of = xasprintf("'%s' of %s", name, what);
        config_set(o, name, scalar(yd, value, of));
        set_place(value, &o->settings[o->n_settings - 1].line,
                  &o->settings[o->n_settings - 1].column);
        free(of);
    }
}

/* "group 'g'", or "member 'r1' of group 'g'"; malloc'd. */
static char *
title(enum config_family family, const char *name, const char *group)
{
    return group ? xasprintf("member '%s' of group '%s'", name, group)
                 : xasprintf("%s '%s'", config_families[family].one, name);
}

static void read_family(struct plan *, struct yaml_doc *, const yaml_node_t *, enum config_family,
                        const char *group);

/* An object with a name; 'group': that which a member is of. */
static void
read_named(struct plan *p, struct yaml_doc *yd, const yaml_node_t *key, const yaml_node_t *map,
           enum config_family family, const char *group)
{
    const char *name = yaml_doc_text(key);
    char *what = title(family, name, group);
    const char *more = family == CONFIG_GROUP ? config_families[CONFIG_MEMBER].many : NULL;
    struct config_object *o =
        config_add(&p->config, family, group ? group : name, group ? name : NULL);

    set_place(key, &o->line, &o->column);
    read_settings(yd, map, more, what, o);
    yaml_node_t *members = more && !yd->error ? yaml_doc_get(yd, map, more) : NULL;
    if (members) {
        sset_add(&p->with_members, name);
        read_family(p, yd, members, CONFIG_MEMBER, name);
    }
    free(what);
}

static void
read_family(struct plan *p, struct yaml_doc *yd, const yaml_node_t *map, enum config_family family,
            const char *group)
{
    char *what = group ? xasprintf("'members' of group '%s'", group)
                       : xasprintf("'%s'", config_families[family].many);
    bool ok = yaml_doc_has_keys(yd, map, what, NULL);
    yaml_node_t *key, *value;

    free(what);
    for (size_t i = 0; ok && !yd->error && yaml_doc_pair(yd, map, i, &key, &value); i++) {
        read_named(p, yd, key, value, family, group);
    }
}

/* The link is in the file already, whichever of its ends comes first? */
static bool
has_link(const struct plan *p, const char *a, const char *b)
{
    char *name = xasprintf("%s %s", a, b), *swapped = xasprintf("%s %s", b, a);
    bool found =
        config_find(&p->config, CONFIG_LINK, name) || config_find(&p->config, CONFIG_LINK, swapped);

    free(name);
    free(swapped);
    return found;
}

static void
read_link(struct plan *p, struct yaml_doc *yd, const yaml_node_t *map)
{
    yaml_node_t *ends = map->type == YAML_MAPPING_NODE ? yaml_doc_get(yd, map, "endpoints") : NULL;
    const char *names[2] = {"", ""};

    if (yaml_doc_is_mapping(yd, map, "a link") && !ends) {
        yaml_doc_error(yd, map, "a link without 'endpoints'");
    }
    if (yd->error || !yaml_doc_is_sequence(yd, ends, "'endpoints'")) {
        return;
    }
    for (size_t i = 0; i < 2; i++) {
        const yaml_node_t *end = yaml_doc_item(yd, ends, i);

        names[i] = end ? scalar(yd, end, "an endpoint") : "";
    }
    if (!names[0][0] || !names[1][0] || yaml_doc_item(yd, ends, 2)) {
        yaml_doc_error(yd, ends, "a link has two endpoints, \"NAME:INTERFACE\"");
    } else if (has_link(p, names[0], names[1])) {
        yaml_doc_error(yd, ends, "the link %s %s is there twice", names[0], names[1]);
    }
    if (yd->error) {
        return;
    }
    char *what = xasprintf("link '%s %s'", names[0], names[1]);
    struct config_object *o = config_add(&p->config, CONFIG_LINK, names[0], names[1]);
    set_place(map, &o->line, &o->column);
    read_settings(yd, map, "endpoints", what, o);
    free(what);
}

static void
read_links(struct plan *p, struct yaml_doc *yd, const yaml_node_t *list)
{
    yaml_node_t *item;

    if (yaml_doc_is_sequence(yd, list, "'links'")) {
        for (size_t i = 0; !yd->error && (item = yaml_doc_item(yd, list, i)); i++) {
            read_link(p, yd, item);
        }
    }
}

static void
read_root(struct plan *p, struct yaml_doc *yd)
{
    const char *keys[CONFIG_MEMBER + 1] = {NULL};
    const yaml_node_t *root = yaml_doc_root(yd);

    for (int i = 0; i < CONFIG_MEMBER; i++) {
        keys[i] = config_families[i].many;
    }
    if (!yaml_doc_has_keys(yd, root, "the file", keys)) {
        return;
    }
    for (int i = 0; i < CONFIG_MEMBER && !yd->error; i++) {
        const yaml_node_t *value = yaml_doc_get(yd, root, keys[i]);

        p->named[i] = value != NULL;
        if (value && i == CONFIG_LINK) {
            read_links(p, yd, value);
        } else if (value) {
            read_family(p, yd, value, (enum config_family) i, NULL);
        }
    }
}

void
plan_read(struct plan *p, const char *file)
{
    struct yaml_doc yd;

    *p = (struct plan){.file = NULL};
    config_init(&p->config);
    sset_init(&p->with_members);
    yaml_doc_init(&yd, file, MAX_SIZE);
    p->file = yd.file;
    if (!yd.error) {
        read_root(p, &yd);
    }
    if (yd.error) {
        ctl_fail_at(&(struct ctl_place){.file = yd.file, .line = yd.line, .column = yd.column},
                    NULL, 0);
        ctl_fail(CTL_USAGE, "%s", yd.problem);
    }
    yaml_doc_uninit(&yd);
}
