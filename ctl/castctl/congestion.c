/* SPDX-License-Identifier: Apache-2.0
 *
 * castctl congestion, host set and link external: what is done about congestion.
 */
#include <config.h>

#include "ctl/castctl/castctl.h"

#include <stdlib.h>

#include "ctl/castctl/path.h"
#include "ctl/registry/congestion.h"
#include "ctl/registry/group-settings.h"
#include "ctl/registry/request.h"
#include "lib/quantity.h"
#include "util.h"

static uint64_t
option_rate(const struct ctl *ctl, enum ctl_option option, uint64_t min, uint64_t otherwise)
{
    return ctl_option_quantity(ctl, option, QUANTITY_RATE, min, MAX_LINE_RATE, otherwise);
}

static void
congestion_set(struct ctl *ctl)
{
    const struct rrec_global *row = rrec_global_first(ctl->idl);
    struct congestion_settings s = congestion_settings_read(row);

    ctl_check_any_option(ctl);
    s.fast_cnp = ctl_option_word(ctl, OPT_FAST_CNP, s.fast_cnp);
    s.any_icrc = ctl_option_word(ctl, OPT_ANY_ICRC, s.any_icrc);
    s.interval_usec = (uint32_t) ctl_option_quantity(
        ctl, OPT_CNP_INTERVAL, QUANTITY_TIME, MIN_CNP_INTERVAL, MAX_CNP_INTERVAL, s.interval_usec);
    s.fast_cnp_rate =
        (uint32_t) ctl_option_number(ctl, OPT_FAST_CNP_RATE, 1, MAX_FAST_CNP_RATE, s.fast_cnp_rate);
    if (!row) {
        ctl_refuse(ctl, "the registry is empty: castd has not run yet");
    }
    congestion_settings_write(row, &s);
}

/* Refuses a line rate at which a group of this source could not be slowed down at all. */
static void
check_line_rate(const struct ctl *ctl, const char *host, uint64_t line)
{
    const struct rrec_source *source;

    RREC_SOURCE_FOR_EACH (source, ctl->idl) {
        struct group_settings s;
        char need_text[QUANTITY_SIZE];

        group_settings_read(source->group, &s);
        uint64_t need = rate_needed(s.mtu, s.policy.timeout);
        if (!strcmp(source->host, host) && need > line) {
            quantity_format(QUANTITY_RATE, need, need_text, sizeof need_text);
            ctl_refuse(ctl,
                       "host %s is the source of group %s, which with QP time-out %u must not be "
                       "slower than %s bit/s",
                       host, source->group->name, s.policy.timeout, need_text);
        }
    }
}

static void
host_set(struct ctl *ctl)
{
    ctl_check_any_option(ctl);
    const struct rrec_host *row = ctl_require_host(ctl, ctl->argv[0]);
    struct rate_settings s = rate_settings_read(row);

    if (ctl->options[OPT_PATH_POLICY]) {
        enum path_policy policy = ctl_option_word(ctl, OPT_PATH_POLICY, PATH_NONE);

        path_check_policy(ctl, policy);
        rrec_host_set_path_policy(row, path_policy_name(policy));
    }
    s.by = ctl_option_word(ctl, OPT_RATE_CONTROL, s.by);
    s.controller = ctl_option_word(ctl, OPT_CONTROLLER, s.controller);
    s.line = option_rate(ctl, OPT_LINE_RATE, MIN_LINE_RATE, s.line);
    s.floor = option_rate(ctl, OPT_FLOOR, 0, s.floor);
    s.fast_cnp = ctl_option_word(ctl, OPT_TAKE_FAST_CNP, s.fast_cnp);
    if (s.floor > s.line) {
        char floor[QUANTITY_SIZE], line[QUANTITY_SIZE];

        quantity_format(QUANTITY_RATE, s.floor, floor, sizeof floor);
        quantity_format(QUANTITY_RATE, s.line, line, sizeof line);
        ctl_refuse(ctl, "host %s: the floor, %s bit/s, is above the line rate, %s bit/s", row->name,
                   floor, line);
    }
    if (ctl->options[OPT_LINE_RATE] && s.line < rate_settings_read(row).line) {
        check_line_rate(ctl, row->name, s.line);
    }
    rate_settings_write(row, &s);
}

static void
link_external(struct ctl *ctl)
{
    const char *text = ctl->argv[2];
    bool forward;
    unsigned int external;

    if (!words_parse(&ctl_switch_words, text, &external)) {
        ctl_fail(CTL_USAGE, "link external: '%s' must be off or on", text);
    }
    const struct rrec_link *row = ctl_require_link(ctl, ctl->argv[0], ctl->argv[1], &forward);
    rrec_link_set_external(row, external);
}

static struct json *
hosts_to_json(const struct ctl *ctl)
{
    struct json *array = json_array_create_empty();
    const struct rrec_host *row;

    RREC_HOST_FOR_EACH (row, ctl->idl) {
        const struct rate_settings s = rate_settings_read(row);
        const struct rrec_node *node = ctl_node_of_host(ctl, row->name);
        bool has_agent = node && !strcmp(node->role, node_role_name(NODE_AGENT));
        struct json *o = ctl_add_object(array);

        json_object_put_string(o, "host", row->name);
        ctl_put_string_or_null(o, "agent", has_agent ? node->name : NULL);
        json_object_put_string(o, "rate_control", rate_control_by_name(s.by));
        json_object_put_string(o, "controller", rate_controller_name(s.controller));
        ctl_put_int(o, "line_rate", (int64_t) s.line);
        ctl_put_int(o, "floor", (int64_t) s.floor);
        json_object_put_string(o, "fast_cnp", fast_cnp_choice_name(s.fast_cnp));
        ctl_put_bool(o, "takes_fast_cnp", rate_settings_take_fast_cnp(&s, has_agent));
    }
    ctl_sort_by(array, "host");
    return array;
}

static struct json *
groups_to_json(const struct ctl *ctl)
{
    struct json *array = json_array_create_empty();
    const struct rrec_group *row;

    RREC_GROUP_FOR_EACH (row, ctl->idl) {
        struct json *o = ctl_add_object(array);
        struct group_settings s;

        group_settings_read(row, &s);
        json_object_put_string(o, "group", row->name);
        json_object_put_string(o, "cnp", cnp_source_name(s.policy.cnp));
        ctl_put_int(o, "cnp_window_us", s.policy.cnp_window_usec);
        ctl_put_int(o, "trace_slots", s.policy.trace_slots);
        ctl_put_int(o, "floor_needed", (int64_t) rate_needed(s.mtu, s.policy.timeout));
    }
    ctl_sort_by(array, "group");
    return array;
}

static struct json *
external_to_json(const struct ctl *ctl)
{
    struct json *array = json_array_create_empty();
    const struct rrec_link *row;

    RREC_LINK_FOR_EACH (row, ctl->idl) {
        if (row->external) {
            struct json *o = ctl_add_object(array);

            json_object_put_format(o, "a", "%s:%s", row->a, row->a_port);
            json_object_put_format(o, "b", "%s:%s", row->b, row->b_port);
        }
    }
    ctl_sort_by(array, "a");
    return array;
}

static void
congestion(struct ctl *ctl)
{
    static const char *const keys[] = {
        "host",
        "agent",
        "group",
        "rate_control",
        "controller",
        "line_rate",
        "floor",
        "cnp",
        "cnp_window_us",
        "trace_slots",
        "floor_needed",
        "a",
        "b",
        "interval_us",
        "fast_cnp",
        "any_icrc",
        "fast_cnp_rate",
        "hosts",
        "groups",
        "external_links",
        "takes_fast_cnp",
        NULL,
    };
    const struct congestion_settings s = congestion_settings_read(rrec_global_first(ctl->idl));
    struct json *o = json_object_create();

    ctl_put_int(o, "interval_us", s.interval_usec);
    json_object_put_string(o, "fast_cnp", ctl_switch_name(s.fast_cnp));
    json_object_put_string(o, "any_icrc", ctl_switch_name(s.any_icrc));
    ctl_put_int(o, "fast_cnp_rate", s.fast_cnp_rate);
    json_object_put(o, "hosts", hosts_to_json(ctl));
    json_object_put(o, "groups", groups_to_json(ctl));
    json_object_put(o, "external_links", external_to_json(ctl));
    ctl_print(ctl, o, keys);
}

const struct ctl_command ctl_congestion_commands[] = {
    {"congestion set", "", 0, 0,
     FLAG(OPT_FAST_CNP) | FLAG(OPT_CNP_INTERVAL) | FLAG(OPT_FAST_CNP_RATE) | FLAG(OPT_ANY_ICRC), 0,
     congestion_set, NULL,
     "change what all nodes do about congestion: make and take Fast CNPs; in which time a rate is\n"
     "        cut at most once; Fast CNPs that a node makes in a second; take those with any ICRC"},
    {"congestion", "", 0, 0, 0, 0, NULL, congestion,
     "show what is done about congestion: by all nodes, for hosts, for groups"},
    {"host set", "NAME", 1, 1,
     FLAG(OPT_RATE_CONTROL) | FLAG(OPT_CONTROLLER) | FLAG(OPT_LINE_RATE) | FLAG(OPT_FLOOR)
         | FLAG(OPT_TAKE_FAST_CNP) | FLAG(OPT_PATH_POLICY) | FLAG(OPT_FORCE),
     0, host_set, NULL,
     "change who slows down what a host sends when a way is congested, and how: from which rate, and\n"
     "        down to which; whether that one takes Fast CNPs (auto: if it is its source agent);\n"
     "        how what it sends is placed on paths, as path policy does"},
    {"link external", "A B off|on", 3, 3, 0, 0, link_external, NULL,
     "the other end of this link is outside of the domain, or not: no Fast CNP passes it"},
    {.name = NULL},
};
