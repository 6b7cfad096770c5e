/* SPDX-License-Identifier: Apache-2.0
 *
 * castctl trace and capture: single packets at a node.
 */
#include <config.h>

#include "ctl/castctl/castctl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "ctl/castctl/pcap-read.h"
#include "ctl/castctl/program.h"
#include "ctl/castctl/record.h"
#include "ctl/registry/values.h"
#include "lib/packet-text.h"
#include "lib/packet.h"
#include "openvswitch/dynamic-string.h"
#include "util.h"

/* Runs a command at the agent of the node that castctl's first argument names; exits if that fails.
 * The caller frees the answer. */
static char *
run_at_node(const struct ctl *ctl, const char *command, const char *const args[])
{
    const struct rrec_node *node = ctl_require_node(ctl, ctl->argv[0]);
    char *answer;
    enum ctl_exit result = ctl_agent_run(ctl, node, command, args, &answer);

    if (result != CTL_OK) {
        ctl_fail(result, "%s: node %s: %s", ctl->command->name, node->name, answer);
    }
    return answer;
}

/*
 * Programs in what an agent says of a packet.
 */

/* The node whose address stands in front of " > "; NULL: it is no node's. */
static const struct rrec_node *
sender_of(const struct ctl *ctl, const char *text)
{
    const char *end = strstr(text, " > ");
    const struct rrec_node *node;

    RREC_NODE_FOR_EACH (node, ctl->idl) {
        struct in6_addr address = node_address((uint16_t) node->id);
        const char *s = ip6_text(&address);
        size_t len = strlen(s);

        if (end && (size_t) (end - text) >= len && !strncmp(end - len, s, len)) {
            return node;
        }
    }
    return NULL;
}

/* Are the uSIDs what is left of the path's program? */
static bool
is_on_path(const struct rrec_path *path, const char *usids)
{
    char all[PROGRAM_USIDS_SIZE];
    struct program program;

    if (!program_parse(path->program, &program)) {
        return false;
    }
    program_format_usids(&program, all);
    size_t n_all = strlen(all), n = strlen(usids);
    return n_all >= n && !strcmp(all + n_all - n, usids);
}

/* A path of that node, with its number in the flow label of its packets.  What others send with a
 * program has another label, so the uSIDs are compared, too.  NULL: it is none. */
static const struct rrec_path *
find_path(const struct rrec_node *node, uint32_t label, const char *usids,
          const struct rrec_destination **destination)
{
    for (size_t i = 0; node && i < node->n_destinations; i++) {
        *destination = node->destinations[i];
        for (size_t j = 0; j < (*destination)->n_paths; j++) {
            const struct rrec_path *path = (*destination)->paths[j];

            if (path->number == label >> 8 && is_on_path(path, usids)) {
                return path;
            }
        }
    }
    return NULL;
}

/* A program as packet_text() has it. */
struct program_text {
    const char *begin, *end; /* of what stands there. */
    char *named;             /* the same with the names of nodes, malloc'd. */
};

/* Finds it in a text about one frame.  False: there is none. */
static bool
find_program(const struct ctl *ctl, const char *text, struct program_text *t)
{
    static const char mark[] = "uSIDs ";
    const struct rrec_destination *destination;
    char usids[PROGRAM_USIDS_SIZE];
    struct program program;
    unsigned int label;
    int n = 0;

    t->begin = strstr(text, mark);
    t->end = t->begin ? program_parse_usids(t->begin + sizeof mark - 1, &program) : NULL;
    if (!t->end || sscanf(t->end, ", flow label 0x%5x%n", &label, &n) != 1) {
        return false;
    }
    t->end += n;
    program_format_usids(&program, usids);
    struct json *segments = program_segments(ctl, NULL, &program);
    char *nodes = program_nodes(segments);
    const struct rrec_path *path = find_path(sender_of(ctl, text), label, usids, &destination);
    t->named = path ? xasprintf("program %s (uSIDs %s), path %" PRId64 " to %s", nodes, usids,
                                path->number, destination->name)
                    : xasprintf("program %s (uSIDs %s), flow label 0x%05x", nodes, usids, label);
    free(nodes);
    json_destroy(segments);
    return true;
}

/* Prints lines, in each of which a program is told by the names of nodes. */
static void
print_with_programs(const struct ctl *ctl, char *lines)
{
    char *save = NULL;

    for (char *line = strtok_r(lines, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        struct program_text t;

        if (find_program(ctl, line, &t)) {
            ctl_print_line("%.*s%s%s", (int) (t.begin - line), line, t.named, t.end);
            free(t.named);
        } else {
            ctl_print_line("%s", line);
        }
    }
}

/* Puts the program of the frame that 'summary' is about; null: it has none. */
static void
put_program(const struct ctl *ctl, struct json *o, const char *summary)
{
    struct program_text t;
    bool found = find_program(ctl, summary, &t);

    ctl_put_string_or_null(o, "program", found ? t.named : NULL);
    if (found) {
        free(t.named);
    }
}

/*
 * trace.
 */

static char *
read_stdin(void)
{
    struct ds s = DS_EMPTY_INITIALIZER;
    char buf[4096];
    size_t n;

    while ((n = fread(buf, 1, sizeof buf, stdin)) > 0) {
        ds_put_buffer(&s, buf, n);
    }
    if (ferror(stdin)) {
        ctl_fail(CTL_USAGE, "trace: standard input: read error");
    }
    return ds_steal_cstr(&s);
}

/* Puts into the agent's answer the programs of the frame and of those that are sent. */
static void
put_programs(const struct ctl *ctl, struct json *answer, const uint8_t *frame, size_t len)
{
    const struct json_array *sent = ctl_get_array(answer, "sent");
    char summary[PACKET_TEXT_SIZE];

    packet_text(frame, len, summary);
    put_program(ctl, answer, summary);
    for (size_t i = 0; i < sent->n; i++) {
        if (sent->elems[i]->type == JSON_OBJECT) {
            put_program(ctl, sent->elems[i], ctl_get_string(sent->elems[i], "summary"));
        }
    }
}

static void
trace(struct ctl *ctl)
{
    static uint8_t frame[PACKET_ROOM];

    ctl_require_node(ctl, ctl->argv[0]);

    char *hex = strcmp(ctl->argv[2], "-") ? xstrdup(ctl->argv[2]) : read_stdin();
    char *why;
    size_t len;

    if (!packet_from_text(hex, frame, sizeof frame, &len, &why)) {
        ctl_fail(CTL_USAGE, "trace: %s", why);
    }
    char *answer = run_at_node(ctl, "rocecast/trace",
                               ctl->json ? (const char *[]){"-j", ctl->argv[1], hex, NULL}
                                         : (const char *[]){ctl->argv[1], hex, NULL});
    struct json *json = ctl->json ? json_from_string(answer) : NULL;
    if (json && json->type == JSON_OBJECT) {
        put_programs(ctl, json, frame, len);
        ctl_print_json_line(json);
    } else {
        /* Whoever writes to the registry says where an agent is. */
        print_with_programs(ctl, answer);
        json_destroy(json);
    }
    free(answer);
    free(hex);
}

/*
 * capture.
 */

/* The canonical absolute path of a file, malloc'd.  An agent runs in another folder, and compares
 * paths. */
static char *
absolute_path(const char *file)
{
    char *path = file[0] ? abs_file_name(NULL, file) : NULL;

    if (!file[0]) {
        ctl_fail(CTL_USAGE, "capture start: FILE is empty");
    }

    if (!path) {
        ctl_fail(CTL_USAGE, "capture start: %s: the current folder is not known", file);
    }
    char *folder = dir_name(path);
    char *name = base_name(path);
    char *canonical = realpath(folder, NULL);
    if (canonical) { /* otherwise the agent will say what is wrong with it. */
        free(path);
        path = xasprintf("%s/%s", strcmp(canonical, "/") ? canonical : "", name);
    }
    free(canonical);
    free(folder);
    free(name);
    return path;
}

static void
capture_start(struct ctl *ctl)
{
    char *file = absolute_path(ctl->argv[2]);

    free(run_at_node(ctl, "rocecast/capture-start",
                     ctl_flag(ctl, OPT_FORCE)
                         ? (const char *[]){"--force", ctl->argv[1], file, NULL}
                         : (const char *[]){ctl->argv[1], file, NULL}));
    free(file);
}

static const char *const capture_keys[] = {"node", "port", "packets", "file", "error", NULL};

/* Adds the captures of 'node' to 'all'. */
static void
add_captures(struct json *all, const char *node, const struct json *captures)
{
    for (size_t i = 0; captures->type == JSON_ARRAY && i < captures->array.n; i++) {
        struct json *o = json_deep_clone(captures->array.elems[i]);

        json_object_put_string(o, "node", node);
        json_array_add(all, o);
    }
}

static void
capture_stop(struct ctl *ctl)
{
    const char *port = ctl_flag(ctl, OPT_ALL) ? "--all" : ctl->argv[1];
    struct json *all = json_array_create_empty();

    if (ctl_flag(ctl, OPT_ALL) == (ctl->argc > 1)) {
        ctl_fail(CTL_USAGE, "capture stop: either PORT or --all");
    }
    char *answer = run_at_node(ctl, "rocecast/capture-stop", (const char *[]){"-j", port, NULL});
    struct json *stopped = json_from_string(answer);

    add_captures(all, ctl->argv[0], stopped);
    ctl_print(ctl, all, capture_keys);
    json_destroy(stopped);
    free(answer);
}

static void
capture_list(struct ctl *ctl)
{
    const struct rrec_node *one = ctl->argc ? ctl_require_node(ctl, ctl->argv[0]) : NULL;
    struct json *all = json_array_create_empty();
    const struct rrec_node *node;
    bool partial = false;

    RREC_NODE_FOR_EACH (node, ctl->idl) {
        if (!one || node == one) {
            struct json *captures = ctl_agent_ask(ctl, node, "rocecast/capture-list");

            if (captures) {
                add_captures(all, node->name, captures);
            }
            partial |= !captures;
            json_destroy(captures);
        }
    }
    ctl_sort_by(all, "node");
    ctl_print(ctl, all, capture_keys);
    ctl_finish(partial);
}

static void
capture_show(struct ctl *ctl)
{
    static struct pcap_reader r;
    struct json *all = json_array_create_empty();
    int64_t first = 0;

    pcap_reader_open(&r, ctl->argv[0], "capture show");
    for (int64_t n = 1; pcap_reader_next(&r); n++) {
        char summary[PACKET_TEXT_SIZE];
        char *line;

        packet_text(r.frame, r.len, summary);
        first = n == 1 ? r.usec : first;
        if (ctl->json) {
            struct json *o = ctl_add_object(all);

            ctl_put_int(o, "number", n);
            ctl_put_int(o, "time_us", r.usec - first);
            ctl_put_int(o, "len", r.whole_len);
            json_object_put_string(o, "summary", summary);
            put_program(ctl, o, summary);
        } else {
            line = xasprintf("%" PRId64 "  %.6f  %" PRIu32 " bytes: %s", n,
                             (double) (r.usec - first) / 1e6, r.whole_len, summary);
            print_with_programs(ctl, line);
            free(line);
        }
    }
    pcap_reader_close(&r);
    if (ctl->json) {
        ctl_print(ctl, all, NULL);
    } else {
        json_destroy(all);
    }
}

const struct ctl_command ctl_packet_commands[] = {
    {"trace", "NODE PORT HEX|-", 3, 3, CTL_INTENT, 0, NULL, trace,
     "what an Ethernet frame would meet at a node, arriving on that port; nothing is sent or\n"
     "        changed; the frame is hexadecimal digits, - reads them from standard input"},
    {"capture start", "NODE PORT FILE", 3, 3, FLAG(OPT_FORCE), 0, NULL, capture_start,
     "write what a port receives and sends to a pcap file; --force: also over an old file"},
    {"capture record", "FILE [NODE|NODE:PORT...]", 1, INT_MAX,
     CTL_INTENT | FLAG(OPT_COUNT) | FLAG(OPT_SECONDS) | FLAG(OPT_FORCE), 0, NULL, record,
     "write what ports of several nodes receive and send to one pcapng file: all ports of these nodes,\n"
     "        or single ones; without any, all ports of all nodes; with the names of ports and addresses; until\n"
     "        there are N packets, for so many seconds, or until it is interrupted; - is standard output"},
    {"capture stop", "NODE [PORT]", 1, 2, FLAG(OPT_ALL), 0, NULL, capture_stop,
     "end a port's capture, or with --all the node's, and say how many packets it has"},
    {"capture list", "[NODE]", 0, 1, 0, 0, NULL, capture_list, "list captures that run"},
    {"capture show", "FILE", 1, 1, CTL_INTENT, 0, NULL, capture_show,
     "say in a line each what the frames in a pcap file are: number, seconds since the first one,\n"
     "        length, addresses, programs by the names of nodes"},
    {.name = NULL},
};
