/* SPDX-License-Identifier: Apache-2.0
 *
 * castctl top: groups and their members, how fast they are and who is furthest behind, again and
 * again.
 *
 * A refresh is one object, which -j prints and from which the text is made.  It joins the
 * registry's view of groups with what the agents answer to rocecast/groups.  Rates are what the
 * source agents have counted since the refresh before, so the first one has none.
 */
#include <config.h>

#include "ctl/castctl/castctl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "ctl/registry/group-state.h"
#include "ctl/registry/json.h"
#include "ctl/registry/request.h"
#include "ctl/registry/values.h"
#include "ctl/registry/view.h"
#include "lib/node-config.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/shash.h"
#include "svec.h"
#include "timeval.h"
#include "util.h"

#define COLUMNS          80
#define DEFAULT_INTERVAL 2
#define MAX_INTERVAL     3600

/* A branch that lacks packets that its node has sent. */
struct lag {
    const char *branch, *node; /* the agents' answers own them. */
    int64_t behind;            /* packets; 0: none is behind. */
};

/* What the agents say of a group. */
struct sample {
    bool counted;
    int64_t packets, bytes;    /* that its source agent has sent down. */
    struct lag receiver, node; /* the ones that are furthest behind. */
    struct json *members;      /* of each host: its node, what it has confirmed, how far behind. */
};

/* What a group's source agent had counted at a refresh. */
struct count {
    int64_t epoch, packets, bytes;
};

struct top {
    struct ctl *ctl;
    const char *only;    /* NULL: all groups. */
    bool screen;         /* the text has a terminal to itself. */
    struct shash counts; /* at the last refresh: of struct count, by group. */
    long long int time;  /* of that refresh, in ms; 0: there was none. */
};

/*
 * A refresh.
 */

static int64_t
behind(const struct json *group, const struct json *branch)
{
    int64_t n = (ctl_get_int(group, "sent_next") - ctl_get_int(branch, "confirmed")) & 0xffffff;

    return n < 1 << 23 ? n : 0;
}

/* Takes in what a node says of a group. */
static void
add_to_sample(struct sample *sample, const char *node, const struct json *group)
{
    const struct json_array *branches = ctl_get_array(group, "branches");
    const struct json *down = ctl_get(group, "down");

    if (down) {
        sample->counted = true;
        sample->packets = ctl_get_int(down, "packets");
        sample->bytes = ctl_get_int(down, "bytes");
    }
    for (size_t i = 0; i < branches->n && ctl_get_bool(group, "started"); i++) {
        const struct json *branch = branches->elems[i];
        const char *name = ctl_get_string(branch, "name");
        bool is_receiver =
            !strcmp(ctl_get_string(branch, "kind"), branch_kind_name(BRANCH_RECEIVER));
        struct lag *lag = is_receiver ? &sample->receiver : &sample->node;

        if (!ctl_get_bool(branch, "anchored") || ctl_get_bool(branch, "waits")
            || ctl_get_bool(branch, "pruned")) {
            continue; /* nothing is known, or nobody waits for it. */
        }
        if (behind(group, branch) > lag->behind) {
            *lag = (struct lag){name, node, behind(group, branch)};
        }
        if (is_receiver) {
            struct json *o = json_object_create();

            ctl_put_copy_or_null(o, "confirmed", ctl_get(branch, "confirmed"));
            ctl_put_int(o, "behind", behind(group, branch));
            json_object_put_string(o, "node", node);
            json_object_put(sample->members, name, o);
        }
    }
}

/* Asks the agents that have a part in these groups.  The answers, by node; null for one that does
 * not answer, which 'say' says on standard error. */
static struct json *
ask_agents(const struct top *t, bool say)
{
    const struct rrec_group *group = t->only ? request_find_group(t->ctl->idl, t->only) : NULL;
    struct json *answers = json_object_create();
    const struct rrec_node *node;

    RREC_NODE_FOR_EACH (node, t->ctl->idl) {
        if (node_role_text_is_foreign(node->role) || (t->only && !group)
            || !ctl_has_tree_of(t->ctl, node, group)) {
            continue;
        }
        char *why = NULL;
        struct json *answer = ctl_agent_try(t->ctl, node, "rocecast/groups", &why);

        if (!answer && say) {
            ctl_warn("node %s: %s", node->name, why);
        }
        free(why);
        json_object_put(answers, node->name, answer ? answer : json_null_create());
    }
    return answers;
}

/* The groups' samples, in the order of the view.  They refer to the answers. */
static struct sample *
sort_answers(const struct view *view, const struct json *answers)
{
    struct sample *samples = xcalloc(view->n_groups, sizeof *samples);
    const struct shash_node *answer;

    for (size_t i = 0; i < view->n_groups; i++) {
        samples[i].members = json_object_create();
    }
    SHASH_FOR_EACH (answer, json_object(answers)) {
        const struct json *groups = answer->data;

        for (size_t i = 0; groups->type == JSON_ARRAY && i < groups->array.n; i++) {
            const struct json *o = groups->array.elems[i];
            const struct group_view *g = view_find(view, ctl_get_string(o, "group"));

            if (g && ctl_get_int(o, "designated_qpn") == g->designated_qpn) {
                add_to_sample(&samples[g - view->groups], answer->name, o);
            }
        }
    }
    return samples;
}

/* The one that holds up the group: the receiver that is furthest behind.  If a node's way is more
 * than twice as far behind, its receivers are not what it waits for. */
static struct json *
slowest(const struct sample *sample)
{
    const struct lag *lag =
        sample->node.behind > 2 * sample->receiver.behind ? &sample->node : &sample->receiver;
    struct json *o;

    if (!lag->behind) {
        return json_null_create();
    }
    o = json_object_create();
    json_object_put_string(o, "branch", lag->branch);
    json_object_put_string(o, "node", lag->node);
    ctl_put_int(o, "behind", lag->behind);
    return o;
}

/* Puts what a group has sent since the last refresh, and notes the count in 'counts'. */
static void
put_rates(const struct top *t, struct shash *counts, struct json *o, const struct group_view *g,
          const struct sample *sample, long long int now)
{
    const struct count *last = shash_find_data(&t->counts, g->name);
    long long int msec = now - t->time;
    bool known = sample->counted && last && last->epoch == g->epoch && msec > 0
                 && sample->packets >= last->packets && sample->bytes >= last->bytes;
    int64_t packets = known ? (sample->packets - last->packets) * 1000 / msec : 0;
    int64_t bytes = known ? (sample->bytes - last->bytes) * 1000 / msec : 0;

    ctl_put_int_or_null(o, "packets_per_s", known ? &packets : NULL);
    ctl_put_int_or_null(o, "bytes_per_s", known ? &bytes : NULL);
    if (sample->counted) {
        struct count *count = xmalloc(sizeof *count);

        *count = (struct count){g->epoch, sample->packets, sample->bytes};
        shash_add(counts, g->name, count);
    }
}

static struct json *
member_to_json(const struct member_view *m, const struct sample *sample)
{
    const struct json *branch = ctl_get(sample->members, m->host);
    struct json *o = json_object_create();

    json_object_put_string(o, "member", m->host);
    json_object_put_string(o, "state", m->state);
    json_object_put_string(o, "status", m->status);
    ctl_put_int(o, "qpn", m->qpn);
    ctl_put_copy_or_null(o, "node", ctl_get(branch, "node"));
    ctl_put_copy_or_null(o, "confirmed", ctl_get(branch, "confirmed"));
    ctl_put_copy_or_null(o, "behind", ctl_get(branch, "behind"));
    return o;
}

static struct json *
group_to_json(const struct top *t, struct shash *counts, const struct group_view *g,
              const struct sample *sample, long long int now)
{
    struct json *o = json_object_create(), *members = json_array_create_empty();

    json_object_put_string(o, "group", g->name);
    json_object_put_string(o, "state", g->state);
    json_object_put_string(o, "status", g->status);
    ctl_put_int(o, "epoch", g->epoch);
    ctl_put_int(o, "active_members", (int64_t) g->n_active);
    ctl_put_int(o, "registered_members", (int64_t) g->n_registered);
    put_rates(t, counts, o, g, sample, now);
    json_object_put(o, "slowest", slowest(sample));
    for (size_t i = 0; i < g->n_members; i++) {
        json_array_add(members, member_to_json(&g->members[i], sample));
    }
    json_object_put(o, "members", members);
    return o;
}

static struct json *
not_reachable(const struct json *answers)
{
    const struct shash_node **nodes = shash_sort(json_object(answers));
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < shash_count(json_object(answers)); i++) {
        const struct json *answer = nodes[i]->data;

        if (answer->type == JSON_NULL) {
            json_array_add(array, json_string_create(nodes[i]->name));
        }
    }
    free(nodes);
    return array;
}

static struct json *
refresh(struct top *t, bool say)
{
    struct json *o = json_object_create(), *groups = json_array_create_empty();
    struct json *answers = ask_agents(t, say);
    long long int now = time_msec();
    int64_t msec = now - t->time;
    struct shash counts = SHASH_INITIALIZER(&counts);
    struct view view;

    view_read(&view, t->ctl->idl, t->only);
    struct sample *samples = sort_answers(&view, answers);
    for (size_t i = 0; i < view.n_groups; i++) {
        json_array_add(groups, group_to_json(t, &counts, &view.groups[i], &samples[i], now));
        json_destroy(samples[i].members);
    }
    ctl_put_time(o, "time");
    ctl_put_int_or_null(o, "interval_ms", t->time ? &msec : NULL);
    ctl_put_bool(o, "registry", !t->ctl->lost);
    json_object_put(o, "groups", groups);
    json_object_put(o, "not_reachable", not_reachable(answers));
    shash_swap(&t->counts, &counts);
    shash_destroy_free_data(&counts);
    t->time = now;
    free(samples);
    view_uninit(&view);
    json_destroy(answers);
    return o;
}

/*
 * Text.
 */

/* Adds a cell of so many columns, cut or padded; at the right if 'columns' is negative. */
static void
put_cell(struct ds *s, const char *text, int columns)
{
    size_t width = (size_t) abs(columns), n = 0, len = 0;

    /* Bytes that begin no character in UTF-8 belong to the one before. */
    while (text[len] && (n < width || ((unsigned char) text[len] & 0xc0) == 0x80)) {
        n += ((unsigned char) text[len++] & 0xc0) != 0x80;
    }
    ds_put_cstr(s, s->length ? " " : "");
    ds_put_char_multiple(s, ' ', columns < 0 ? width - n : 0);
    ds_put_buffer(s, text, len);
    ds_put_char_multiple(s, ' ', columns > 0 ? width - n : 0);
}

/* Likewise a number, "-" for none. */
static void
put_number(struct ds *s, const struct json *value, int columns)
{
    char *text = value && value->type == JSON_INTEGER ? xasprintf("%" PRId64, json_integer(value))
                                                      : xstrdup("-");

    put_cell(s, text, columns);
    free(text);
}

static void OVS_PRINTF_FORMAT(3, 4) put_text(struct ds *s, int columns, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    char *text = xvasprintf(format, args);
    va_end(args);
    put_cell(s, text, columns);
    free(text);
}

static void
add_line(struct svec *lines, struct ds *s)
{
    while (ds_chomp(s, ' ')) {
    }
    svec_add_nocopy(lines, ds_steal_cstr(s));
}

static void
add_heading(struct svec *lines)
{
    struct ds s = DS_EMPTY_INITIALIZER;

    put_cell(&s, "group", 15);
    put_cell(&s, "state", 8);
    put_cell(&s, "epoch", -6);
    put_cell(&s, "members", -7);
    put_cell(&s, "packets/s", -9);
    put_cell(&s, "MB/s", -7);
    put_cell(&s, "slowest", 14);
    put_cell(&s, "behind", -7);
    add_line(lines, &s);
}

static void
add_member(struct svec *lines, const struct json *member)
{
    const char *status = ctl_get_string(member, "status");
    const struct json *confirmed = ctl_get(member, "confirmed");
    struct ds s = DS_EMPTY_INITIALIZER;

    put_text(&s, 15, "  %s", ctl_get_string(member, "member"));
    put_cell(&s, ctl_get_string(member, "state"), 8);
    if (!status[0] && confirmed->type == JSON_INTEGER) {
        put_text(&s, 47, "confirmed %" PRId64 " at %s", json_integer(confirmed),
                 ctl_get_string(member, "node"));
    } else {
        put_cell(&s, status, 47);
    }
    put_number(&s, ctl_get(member, "behind"), -7);
    add_line(lines, &s);
}

/* Does the group's status say more than those of its members? */
static bool
says_more(const struct json *group)
{
    const char *state = ctl_get_string(group, "state");

    return ctl_get_string(group, "status")[0] && strcmp(state, group_state_name(GROUP_DEGRADED))
           && strcmp(state, group_state_name(GROUP_SLOW));
}

static void
add_group(struct svec *lines, const struct json *group)
{
    const struct json *slowest_ = ctl_get(group, "slowest"), *bytes = ctl_get(group, "bytes_per_s");
    const struct json_array *members = ctl_get_array(group, "members");
    struct ds s = DS_EMPTY_INITIALIZER;

    put_cell(&s, ctl_get_string(group, "group"), 15);
    put_cell(&s, ctl_get_string(group, "state"), 8);
    put_number(&s, ctl_get(group, "epoch"), -6);
    put_text(&s, -7, "%" PRId64 "/%" PRId64, ctl_get_int(group, "active_members"),
             ctl_get_int(group, "registered_members"));
    put_number(&s, ctl_get(group, "packets_per_s"), -9);
    if (bytes->type == JSON_INTEGER) {
        put_text(&s, -7, "%.1f", (double) json_integer(bytes) / 1e6);
    } else {
        put_cell(&s, "-", -7);
    }
    if (slowest_->type == JSON_OBJECT) {
        put_text(&s, 14, "%s at %s", ctl_get_string(slowest_, "branch"),
                 ctl_get_string(slowest_, "node"));
    } else {
        put_cell(&s, "-", 14);
    }
    put_number(&s, ctl_get(slowest_, "behind"), -7);
    add_line(lines, &s);
    if (says_more(group)) {
        put_text(&s, COLUMNS, "  %s", ctl_get_string(group, "status"));
        add_line(lines, &s);
    }
    for (size_t i = 0; i < members->n; i++) {
        add_member(lines, members->elems[i]);
    }
}

/* The text of a refresh, whose strings are printable. */
static void
add_lines(struct svec *lines, const struct json *o)
{
    const struct json_array *groups = ctl_get_array(o, "groups");
    const struct json_array *missing = ctl_get_array(o, "not_reachable");
    int64_t active = 0, registered = 0;
    struct ds s = DS_EMPTY_INITIALIZER, names = DS_EMPTY_INITIALIZER;

    for (size_t i = 0; i < groups->n; i++) {
        active += ctl_get_int(groups->elems[i], "active_members");
        registered += ctl_get_int(groups->elems[i], "registered_members");
    }
    put_text(&s, COLUMNS, "%s  groups %" PRIuSIZE "  members %" PRId64 "/%" PRId64 "%s",
             ctl_get_string(o, "time"), groups->n, active, registered,
             ctl_get_bool(o, "registry") ? "" : "  registry lost");
    add_line(lines, &s);
    if (missing->n) {
        for (size_t i = 0; i < missing->n; i++) {
            ds_put_format(&names, " %s", json_string(missing->elems[i]));
        }
        put_text(&s, COLUMNS, "not reachable:%s", ds_cstr(&names));
        add_line(lines, &s);
        ds_destroy(&names);
    }
    add_heading(lines);
    for (size_t i = 0; i < groups->n; i++) {
        add_group(lines, groups->elems[i]);
    }
}

/* How many lines the terminal has; 0: that is not known. */
static size_t
terminal_lines(void)
{
    struct winsize size;

    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) ? 0 : size.ws_row;
}

static void
print_refresh(const struct top *t, const struct json *o)
{
    struct json *text = ctl_json_printable(o);
    struct svec lines = SVEC_EMPTY_INITIALIZER;

    add_lines(&lines, text);
    json_destroy(text);
    size_t room = t->screen ? terminal_lines() : 0;
    size_t n = lines.n;

    if (room > 2 && n >= room) {
        n = room - 2; /* one for what is left out, one for the cursor. */
    }
    fputs(t->screen ? "\033[H" : "", stdout);
    for (size_t i = 0; i < n; i++) {
        printf("%s%s\n", lines.names[i], t->screen ? "\033[K" : "");
    }
    if (n < lines.n) {
        printf("%" PRIuSIZE " lines more: castctl top GROUP\033[K\n", lines.n - n);
    }
    fputs(t->screen ? "\033[J" : "", stdout);
    svec_destroy(&lines);
}

/*
 * The command.
 */

static void
top(struct ctl *ctl)
{
    bool terminal = isatty(STDOUT_FILENO);
    struct top t = {
        .ctl = ctl,
        .only = ctl->argc ? ctl->argv[0] : NULL,
        .screen = terminal && !ctl->json,
        .counts = SHASH_INITIALIZER(&t.counts),
    };
    uint64_t interval =
        ctl_option_number(ctl, OPT_INTERVAL, 1, MAX_INTERVAL, DEFAULT_INTERVAL) * 1000;
    uint64_t count = ctl_option_number(ctl, OPT_COUNT, 0, UINT32_MAX, terminal ? 0 : 1);
    bool partial = false;

    if (t.only) {
        ctl_require_group(ctl, t.only);
    }
    for (uint64_t n = 0; !ferror(stdout);) {
        long long int start = time_msec();
        /* What has no rates yet is shown only to somebody who waits for the first line. */
        bool shown = t.screen || t.time;

        ctl->deadline = start + ctl->timeout * 1000LL;
        struct json *o = refresh(&t, shown && !t.screen);
        partial = ctl_get_array(o, "not_reachable")->n > 0;
        if (shown && !ctl->json) {
            print_refresh(&t, o);
        } else if (shown) {
            ctl_print_json_line(json_deep_clone(o));
        }
        json_destroy(o);
        fflush(stdout);
        n += shown;
        if (count && n >= count) {
            break;
        }
        ctl->deadline = start + (long long int) interval;
        while (ctl_next_news(ctl) != NEWS_NONE) {
        }
    }
    shash_destroy_free_data(&t.counts);
    ctl_finish(partial && !ferror(stdout));
}

const struct ctl_command ctl_top_commands[] = {
    {"top", "[GROUP]", 0, 1, CTL_INTENT | CTL_STREAM | FLAG(OPT_INTERVAL) | FLAG(OPT_COUNT), 0,
     NULL, top,
     "show groups and members with rates and who is behind, every 2 or SECONDS seconds, N times\n"
     "        (0: without end, as on a terminal; otherwise once)"},
    {.name = NULL},
};
