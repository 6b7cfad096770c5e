/* SPDX-License-Identifier: Apache-2.0
 *
 * castctl link impair: how bad a link is made.
 */
#include <config.h>

#include "ctl/castctl/castctl.h"

#include <stdlib.h>

#include "ctl/registry/values.h"
#include "lib/impair.h"
#include "openvswitch/dynamic-string.h"

/* Is 's', "NAME" or "NAME:INTERFACE", this end of a link? */
static bool
names_end(const char *s, const char *name, const char *port)
{
    size_t n = strlen(name);

    return !strncmp(s, name, n) && (!s[n] || (s[n] == ':' && !strcmp(s + n + 1, port)));
}

const struct rrec_link *
ctl_require_link(const struct ctl *ctl, const char *from, const char *to, bool *forward)
{
    const struct rrec_link *row, *found = NULL;

    RREC_LINK_FOR_EACH (row, ctl->idl) {
        bool ab = names_end(from, row->a, row->a_port) && names_end(to, row->b, row->b_port);
        bool ba = names_end(from, row->b, row->b_port) && names_end(to, row->a, row->a_port);

        if ((ab || ba) && found) {
            ctl_refuse(ctl, "%s and %s have several links: name the interfaces, %s:INTERFACE", from,
                       to, from);
        }
        if (ab || ba) {
            found = row;
            *forward = ab;
        }
    }
    if (!found) {
        ctl_refuse(ctl, "no link between %s and %s", from, to);
    }
    return found;
}

/* The words after the two ends, in canonical form. */
static void
parse_impairment(const struct ctl *ctl, char text[IMPAIR_TEXT_SIZE])
{
    struct ds words = DS_EMPTY_INITIALIZER;
    struct impair_params params;
    char *error;

    for (int i = 2; i < ctl->argc; i++) {
        ds_put_format(&words, "%s%s", i > 2 ? " " : "", ctl->argv[i]);
    }
    if (!impair_parse(ds_cstr(&words), &params, &error)) {
        ctl_fail(CTL_USAGE, "link impair: %s", error);
    }
    ds_destroy(&words);
    impair_format(&params, text);
}

/* The sender makes a link bad, so its role must be able to. */
static void
check_may_impair(const struct ctl *ctl, const char *name, const char *text)
{
    const struct rrec_node *row = ctl_find_node(ctl, name);

    if (row && text[0] && node_role_text_is_foreign(row->role)) {
        ctl_refuse(ctl, "node %s has role %s, which makes no link bad", row->name, row->role);
    }
}

static void
link_impair(struct ctl *ctl)
{
    char text[IMPAIR_TEXT_SIZE];
    bool forward;

    parse_impairment(ctl, text);
    const struct rrec_link *row = ctl_require_link(ctl, ctl->argv[0], ctl->argv[1], &forward);
    check_may_impair(ctl, forward ? row->a : row->b, text);
    if (ctl_flag(ctl, OPT_BOTH)) {
        check_may_impair(ctl, forward ? row->b : row->a, text);
    }
    if (forward || ctl_flag(ctl, OPT_BOTH)) {
        rrec_link_set_a_to_b(row, text);
    }
    if (!forward || ctl_flag(ctl, OPT_BOTH)) {
        rrec_link_set_b_to_a(row, text);
    }
}

const struct ctl_command ctl_impair_commands[] = {
    {"link impair", "FROM TO none|NAME=VALUE...", 3, 15, FLAG(OPT_BOTH), 0, link_impair, NULL,
     "make a link bad for what FROM sends to TO, or both ways: rate=BIT/S queue=FRAMES\n"
     "        kmin=FRAMES kmax=FRAMES pmax=% delay=TIME jitter=TIME loss=% duplicate=% reorder=%\n"
     "        late=TIME corrupt=% seed=N; none: good again"},
    {.name = NULL},
};
