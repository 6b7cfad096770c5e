/* SPDX-License-Identifier: Apache-2.0
 *
 * castctl path probe and path health: how often paths are probed, and what that says of them.
 */
#include <config.h>

#include "ctl/castctl/path.h"

#include <stdlib.h>

#include "ctl/registry/probes.h"
#include "lib/path-health.h"
#include "svec.h"
#include "timeval.h"
#include "util.h"

/*
 * path probe.
 */

/* The value of an option that is a time, in milliseconds. */
static uint32_t
option_msec(const struct ctl *ctl, enum ctl_option option, uint32_t min)
{
    uint64_t usec = ctl_option_quantity(ctl, option, QUANTITY_TIME, UINT64_C(1000) * min,
                                        UINT64_C(1000) * MAX_PROBE_INTERVAL, 0);

    if (usec % 1000) {
        ctl_fail(CTL_USAGE, "--%s %s: must be whole milliseconds", ctl_option_name(option),
                 ctl->options[option]);
    }
    return (uint32_t) (usec / 1000);
}

/* "off" or "default", the only argument, which goes with no other choice; NULL: there is none. */
static const char *
probe_word(const struct ctl *ctl)
{
    const char *word = ctl->argc ? ctl->argv[0] : NULL;

    if (word && strcmp(word, "off") && strcmp(word, "default")) {
        ctl_fail(CTL_USAGE, "path probe: '%s' must be off or default", word);
    }
    if (word && (ctl->options[OPT_CNP_INTERVAL] || ctl->options[OPT_PROBE_TIMEOUT])) {
        ctl_fail(CTL_USAGE,
                 "path probe: either %s, or --interval and --timeout (castctl path probe "
                 "--help)",
                 word);
    }
    return word;
}

/* What is to hold from now on for those that had 'have' before. */
static struct probe_choice
make_choice(const struct ctl *ctl, struct probe_choice have)
{
    const char *word = probe_word(ctl);

    if (word) {
        return (struct probe_choice){.has_interval = !strcmp(word, "off")};
    }
    if (!ctl->options[OPT_CNP_INTERVAL] && !ctl->options[OPT_PROBE_TIMEOUT]) {
        ctl_fail(CTL_USAGE, "path probe: nothing to set for the plane (castctl path probe --help)");
    }
    if (ctl->options[OPT_CNP_INTERVAL]) {
        have.has_interval = true;
        have.interval = option_msec(ctl, OPT_CNP_INTERVAL, MIN_PROBE_INTERVAL);
    }
    if (ctl->options[OPT_PROBE_TIMEOUT]) {
        have.has_timeout = true;
        have.timeout = option_msec(ctl, OPT_PROBE_TIMEOUT, MIN_PROBE_TIMEOUT);
    }
    return have;
}

/* The settings with another choice for a plane; "": for all. */
static void
choose(struct probe_settings *s, const char *plane, struct probe_choice choice)
{
    for (size_t i = 0; i < s->n_planes; i++) {
        if (!strcmp(s->planes[i].name, plane)) {
            s->planes[i].choice = choice;
            return;
        }
    }
    if (plane[0]) {
        s->planes = xrealloc(s->planes, (s->n_planes + 1) * sizeof *s->planes);
        ovs_strlcpy(s->planes[s->n_planes].name, plane, sizeof s->planes[s->n_planes].name);
        s->planes[s->n_planes++].choice = choice;
    } else {
        s->all = choice;
    }
}

/* Refuses a time-out that is longer than the interval, for all or for a plane. */
static void
check_times(const struct ctl *ctl, const struct probe_settings *s)
{
    for (size_t i = 0; i <= s->n_planes; i++) {
        const char *plane = i ? s->planes[i - 1].name : "";

        if (probe_settings_are_cut(s, plane)) {
            ctl_refuse(ctl, "%s%s: the time-out would be longer than the interval, %u ms",
                       i ? "plane " : "all", plane, probe_settings_of(s, plane).interval);
        }
    }
}

static void
path_probe_set(struct ctl *ctl)
{
    const struct rrec_global *row = rrec_global_first(ctl->idl);
    const char *plane = path_option_plane(ctl, "");
    struct probe_settings s;

    if (ctl->options[OPT_PLANE] && !plane[0]) {
        ctl_fail(CTL_USAGE, "--plane '': must be a plane's label");
    }
    probe_settings_read(row, &s);
    struct probe_choice choice = make_choice(ctl, probe_settings_choice(&s, plane));
    choose(&s, plane, choice);
    check_times(ctl, &s);
    probe_settings_uninit(&s);
    if (!row) {
        ctl_refuse(ctl, "the registry is empty: castd has not run yet");
    }
    rrec_global_verify_probe_interval(row);
    rrec_global_verify_probe_timeout(row);
    rrec_global_verify_probe_intervals(row);
    rrec_global_verify_probe_timeouts(row);
    probe_choice_write(row, plane, &choice);
}

static void
add_times(struct json *array, const struct probe_settings *s, const char *plane)
{
    struct probe_choice choice = probe_settings_choice(s, plane);
    struct probe_times times = probe_settings_of(s, plane);
    struct json *o = ctl_add_object(array);

    ctl_put_string_or_null(o, "plane", plane[0] ? plane : NULL);
    ctl_put_int(o, "interval_ms", times.interval);
    ctl_put_int(o, "timeout_ms", times.interval ? times.timeout : 0);
    json_object_put_string(o, "set", choice.has_interval || choice.has_timeout ? "yes" : "default");
}

/* What holds for all, then for each plane that there is or that something was said of. */
static void
path_probe_show(struct ctl *ctl)
{
    static const char *const keys[] = {"plane", "interval_ms", "timeout_ms", "set", NULL};
    struct json *array = json_array_create_empty();
    struct svec planes = SVEC_EMPTY_INITIALIZER;
    const struct rrec_node *node;
    struct probe_settings s;

    if (!ctl_is_bare(ctl)) {
        json_destroy(array);
        return; /* something was set. */
    }
    probe_settings_read(rrec_global_first(ctl->idl), &s);
    RREC_NODE_FOR_EACH (node, ctl->idl) {
        if (node->plane[0]) {
            svec_add(&planes, node->plane);
        }
    }
    for (size_t i = 0; i < s.n_planes; i++) {
        svec_add(&planes, s.planes[i].name);
    }
    svec_sort_unique(&planes);
    add_times(array, &s, "");
    for (size_t i = 0; i < planes.n; i++) {
        add_times(array, &s, planes.names[i]);
    }
    svec_destroy(&planes);
    probe_settings_uninit(&s);
    ctl_print(ctl, array, keys);
}

/*
 * path health.
 */

/* Numbers that only the node's agent knows: what it calls them, and what they are called here. */
static const char *const live_keys[][2] = {
    {"rtt_us", "rtt_us"},    {"sent", "sent"},      {"lost", "lost"},
    {"lost_there", "there"}, {"lost_back", "back"}, {"marked", "marked"},
};

struct health {
    struct json *array;
    bool with_live;
    const struct json *live; /* what the agent says of its probes; NULL: nothing. */
};

/* What the agent says of the probe with this number; NULL: nothing. */
static const struct json *
find_live(const struct health *h, int64_t number)
{
    for (size_t i = 0; h->live && h->live->type == JSON_ARRAY && i < h->live->array.n; i++) {
        if (ctl_get_int(h->live->array.elems[i], "number") == number) {
            return h->live->array.elems[i];
        }
    }
    return NULL;
}

/* What the registry has, or 'live', which is newer. */
static void
put_state(struct json *o, const struct rrec_probe *probe, const struct json *live)
{
    const char *state = probe ? probe->state : NULL;

    if (live) {
        ctl_put_string_or_null(o, "state", ctl_get_string(live, "state"));
        ctl_put_time_at(o, "since", time_wall_msec() - ctl_get_int(live, "for_us") / 1000);
        return;
    }
    ctl_put_string_or_null(o, "state",
                           state   ? state
                           : probe ? path_state_name(PATH_UNKNOWN)
                                   : NULL);
    ctl_put_time_at(o, "since", state ? probe->since : 0);
}

static void
add_health(const struct rrec_node *node, const char *from, const struct rrec_destination *d,
           const struct rrec_path *path, void *health_)
{
    const struct health *h = health_;
    const struct rrec_probe *probe = path->probe ? probe_find(node, path->probe) : NULL;
    const struct json *live = probe ? find_live(h, path->probe) : NULL;
    struct json *o = ctl_add_object(h->array);

    json_object_put_string(o, "from", from);
    json_object_put_string(o, "to", d->name);
    ctl_put_int(o, "rank", path->rank);
    json_object_put_string(o, "path", path->name);
    json_object_put_string(o, "plane", path->plane);
    ctl_put_bool(o, "usable", path->usable);
    put_state(o, probe, live);
    for (size_t i = 0; h->with_live && i < ARRAY_SIZE(live_keys); i++) {
        ctl_put_copy_or_null(o, live_keys[i][1], live ? ctl_get(live, live_keys[i][0]) : NULL);
    }
    ctl_put_int_or_null(o, "probe", probe ? &path->probe : NULL);
    ctl_put_string_or_null(o, "kind", probe ? probe->kind : NULL);
}

/* False: the agent of the host's node was to be asked, and says nothing. */
static bool
add_host(const struct ctl *ctl, struct health *h, const char *from, const char *to)
{
    const struct rrec_node *node = ctl_node_of_host(ctl, from);

    if (!node || !node->n_destinations) {
        return true;
    }
    struct json *live = h->with_live ? ctl_agent_ask(ctl, node, "rocecast/probes") : NULL;
    h->live = live;
    path_for_each(ctl, from, to, add_health, h);
    json_destroy(live);
    return live || !h->with_live;
}

static void
path_health(struct ctl *ctl)
{
    static const char *const keys[] = {
        "from", "to",   "rank",  "path", "plane",  "usable", "state", "since", "rtt_us",
        "sent", "lost", "there", "back", "marked", "probe",  "kind",  NULL,
    };
    const char *from = ctl->argc > 0 ? ctl->argv[0] : NULL;
    const char *to = ctl->argc > 1 ? ctl->argv[1] : NULL;
    struct health h = {json_array_create_empty(), ctl_flag(ctl, OPT_LIVE), NULL};
    const struct rrec_host *host;
    bool partial = false;

    path_check_hosts(ctl);
    RREC_HOST_FOR_EACH (host, ctl->idl) {
        if (!from || !strcmp(host->name, from)) {
            partial |= !add_host(ctl, &h, host->name, to);
        }
    }
    path_sort(h.array);
    ctl_print(ctl, h.array, keys);
    ctl_finish(partial);
}

const struct ctl_command ctl_path_health_commands[] = {
    {"path probe", "[off|default]", 0, 1,
     CTL_BARE | FLAG(OPT_PLANE) | FLAG(OPT_CNP_INTERVAL) | FLAG(OPT_PROBE_TIMEOUT), 0,
     path_probe_set, path_probe_show,
     "set how often paths are probed, and when a probe counts as lost: of all paths, or of a plane's, or\n"
     "        turn that off, or back to what holds by default; without anything: show it"},
    {"path health", "[FROM [TO]]", 0, 2, CTL_INTENT | FLAG(OPT_LIVE), 0, NULL, path_health,
     "list how good paths between hosts are, and since when, by their probes;\n"
     "        --live: as of now, with round-trip times and losses, from the agents that probe"},
    {.name = NULL},
};
