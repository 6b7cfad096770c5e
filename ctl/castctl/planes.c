/* SPDX-License-Identifier: Apache-2.0
 *
 * Planes of a group: --planes, and castctl group plane.
 */
#include <config.h>

#include "ctl/castctl/planes.h"

#include <stdlib.h>

#include "ctl/castctl/path.h"
#include "lib/node-config.h"
#include "util.h"

static struct svec
planes_of(const struct rrec_group *group)
{
    struct svec planes = SVEC_EMPTY_INITIALIZER;

    for (size_t i = 0; group && i < group->n_planes; i++) {
        svec_add(&planes, group->planes[i]);
    }
    svec_sort(&planes);
    return planes;
}

struct svec
planes_option(const struct ctl *ctl, const struct rrec_group *group)
{
    const char *labels = ctl->options[OPT_PLANES];
    struct svec planes = SVEC_EMPTY_INITIALIZER;
    char *copy, *rest;

    if (!labels) {
        return planes_of(group);
    }
    copy = rest = xstrdup(labels);
    for (char *label; labels[0] && (label = strsep(&rest, ","));) {
        ctl_check_name("plane", label);
        svec_add(&planes, label);
    }
    free(copy);
    svec_sort(&planes);
    if (labels[0] && (planes.n < 2 || planes.n > PLANES_MAX || !svec_is_unique(&planes))) {
        ctl_fail(CTL_USAGE, "--planes %s: must be 2 to %d labels that differ", labels, PLANES_MAX);
    }
    return planes;
}

void
planes_check_same(const struct ctl *ctl, const struct rrec_group *group, const struct svec *want)
{
    struct svec have = planes_of(group);

    if (ctl->options[OPT_PLANES] && !svec_equal(&have, want)) {
        ctl_refuse(ctl, "group %s exists with other --planes", group->name);
    }
    svec_destroy(&have);
}

void
planes_check_not_started(const struct ctl *ctl, const struct rrec_group *group,
                         const struct svec *want)
{
    struct svec have = planes_of(group);
    char *old = svec_join(&have, ",", ""), *new = svec_join(want, ",", "");

    path_check_not_started(ctl, group, "--planes", old, new);
    free(old);
    free(new);
    svec_destroy(&have);
}

void
planes_write(const struct ctl *ctl, const struct rrec_group *group, const struct svec *planes,
             enum tree_mode mode, bool has_way)
{
    if (planes->n && mode != MODE_REPLICATE) {
        ctl_refuse(ctl, "group %s has planes, and mode %s: only replicate has them", group->name,
                   tree_mode_name(mode));
    } else if (planes->n && has_way) {
        ctl_refuse(ctl, "group %s has planes: --via and --plane are for groups without",
                   group->name);
    }
    rrec_group_set_planes(group, (void *) planes->names, planes->n);
    if (!svec_contains(planes, group->preferred_plane)) {
        rrec_group_set_preferred_plane(group, "");
    }
}

void
planes_put(struct json *o, const struct rrec_group *group)
{
    struct svec planes = planes_of(group);
    char *text = svec_join(&planes, ",", "");

    json_object_put_string(o, "planes", text);
    json_object_put_string(o, "preferred_plane", group->preferred_plane);
    free(text);
    svec_destroy(&planes);
}

void
planes_prefer(struct ctl *ctl)
{
    const struct rrec_group *group = ctl_require_group(ctl, ctl->argv[0]);
    struct svec planes = planes_of(group);
    const char *label = ctl->argv[1];

    if (label[0] && !svec_contains(&planes, label)) {
        char *text = svec_join(&planes, ", ", "");

        ctl_refuse(ctl, "group %s has no plane %s%s%s", group->name, label,
                   planes.n ? ", only " : "", text);
    }
    rrec_group_verify_planes(group);
    rrec_group_set_preferred_plane(group, label);
    svec_destroy(&planes);
}
