/* SPDX-License-Identifier: Apache-2.0
 *
 * castctl trace and capture: single packets at a node.
 */
#include <config.h>

#include "ctl/castctl/castctl.h"

#include <stdio.h>
#include <stdlib.h>

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
    /* Whoever writes to the registry says where an agent is. */
    ctl_print_lines(answer);
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

const struct ctl_command ctl_packet_commands[] = {
    {"trace", "NODE PORT HEX|-", 3, 3, 0, 0, NULL, trace,
     "what an Ethernet frame would meet at a node, arriving on that port; nothing is sent or\n"
     "        changed; the frame is hexadecimal digits, - reads them from standard input"},
    {"capture start", "NODE PORT FILE", 3, 3, FLAG(OPT_FORCE), 0, NULL, capture_start,
     "write what a port receives and sends to a pcap file; --force: also over an old file"},
    {"capture stop", "NODE [PORT]", 1, 2, FLAG(OPT_ALL), 0, NULL, capture_stop,
     "end a port's capture, or with --all the node's, and say how many packets it has"},
    {"capture list", "[NODE]", 0, 1, 0, 0, NULL, capture_list, "list captures that run"},
    {.name = NULL},
};
