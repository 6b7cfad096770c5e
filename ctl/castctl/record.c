/* SPDX-License-Identifier: Apache-2.0
 *
 * castctl capture record: ports of several nodes in one file.
 *
 * Each agent captures its ports as it does for "capture start", into files in a folder beside the one that is to be
 * written.  At the end their frames are put into that by their times, which are of one clock: castctl reaches agents on
 * this machine only.  A frame that has the port's own address as its source has been sent there, any other was received:
 * nodes write their port's address into all that they send.
 */
#include <config.h>

#include "ctl/castctl/record.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/castctl/pcap-read.h"
#include "ctl/castctl/pcapng.h"
#include "ctl/registry/values.h"
#include "openvswitch/poll-loop.h"
#include "ovsdb-idl.h"
#include "packets.h"
#include "timeval.h"
#include "util.h"
#include "version.h"

#define MAX_SECONDS 86400
#define MAX_PORTS   4096
#define POLL_MSEC   50

/* A port that is captured. */
struct source {
    char *node, *port, *role, *peer; /* its rows may go while it is captured. */
    char *file;
    bool runs; /* its agent writes to the file. */
    struct eth_addr mac;
    struct pcap_reader *reader;
    bool has_frame; /* the reader has one that is not in the result yet. */
    uint64_t n_counted, n_written;
};

struct recording {
    struct ctl *ctl;
    struct source *sources;
    size_t n, allocated;
    char *folder;
    FILE *out;
    uint64_t limit;  /* packets. */
    bool is_written; /* the result is whole. */
    bool partial;    /* an agent did not say what became of its capture. */
};

static volatile sig_atomic_t interrupted;

static void
interrupt(int signo OVS_UNUSED)
{
    interrupted = 1;
}

/*
 * Which ports.
 */

static bool
is_port(const struct source *s, const struct rrec_node *node, const struct rrec_port *port)
{
    return !strcmp(s->node, node->name) && !strcmp(s->port, port->name);
}

static void
add_port(struct recording *r, const struct rrec_node *node, const struct rrec_port *port)
{
    for (size_t i = 0; i < r->n; i++) {
        if (is_port(&r->sources[i], node, port)) {
            return; /* named twice. */
        }
    }
    if (r->n == MAX_PORTS) {
        ctl_refuse(r->ctl, "more than %d ports", MAX_PORTS);
    }
    if (r->n == r->allocated) {
        r->sources = x2nrealloc(r->sources, &r->allocated, sizeof *r->sources);
    }
    struct source *s = &r->sources[r->n];
    *s = (struct source){.node = xstrdup(node->name),
                         .port = xstrdup(port->name),
                         .role = xstrdup(port->role),
                         .peer = xstrdup(port->peer)};
    if (!eth_addr_from_string(port->mac, &s->mac)) {
        ctl_refuse(r->ctl, "node %s: port %s has no address yet", node->name, port->name);
    }
    r->n++;
}

static void
add_all_ports(struct recording *r, const struct rrec_node *node)
{
    for (size_t i = 0; i < node->n_ports; i++) {
        add_port(r, node, node->ports[i]);
    }
}

/* NODE or NODE:PORT. */
static void
add_named(struct recording *r, const char *text)
{
    const char *colon = strchr(text, ':');
    char *name = colon ? xmemdup0(text, (size_t) (colon - text)) : xstrdup(text);
    const struct rrec_node *node = ctl_require_node(r->ctl, name);
    bool found = !colon;

    for (size_t i = 0; i < node->n_ports; i++) {
        if (!colon || !strcmp(node->ports[i]->name, colon + 1)) {
            add_port(r, node, node->ports[i]);
            found = true;
        }
    }
    if (!found) {
        ctl_refuse(r->ctl, "node %s has no port '%s' (castctl node show %s)", name, colon + 1,
                   name);
    }
    free(name);
}

static int
compare_sources(const void *a_, const void *b_)
{
    const struct source *a = a_, *b = b_;
    int order = strverscmp(a->node, b->node);

    return order ? order : strverscmp(a->port, b->port);
}

/* Ports of nodes that have an agent of ours: others cannot capture. */
static void
choose_ports(struct recording *r)
{
    const struct rrec_node *node;

    for (int i = 1; i < r->ctl->argc; i++) {
        add_named(r, r->ctl->argv[i]);
    }
    if (r->ctl->argc == 1) {
        RREC_NODE_FOR_EACH (node, r->ctl->idl) {
            if (!node_role_text_is_foreign(node->role)) {
                add_all_ports(r, node);
            }
        }
    }
    if (!r->n) {
        ctl_refuse(r->ctl, "there is no port to capture at");
    }
    qsort(r->sources, r->n, sizeof *r->sources, compare_sources);
}

/*
 * Files.
 */

/* Opens the result; what is there already stays, unless --force is given. */
static void
open_result(struct recording *r)
{
    const char *file = r->ctl->argv[0];

    if (!strcmp(file, "-")) {
        r->out = stdout;
        return;
    }
    int flags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_TRUNC;
    int fd = open(file, flags | (ctl_flag(r->ctl, OPT_FORCE) ? 0 : O_EXCL), 0600);
    if (fd < 0) {
        ctl_refuse(r->ctl, "%s: %s%s", file, ovs_strerror(errno),
                   errno == EEXIST ? " (--force writes over it)" : "");
    }
    r->out = fdopen(fd, "wb");
}

/* A folder for what agents write: beside the result, whose owner they may write to; malloc'd. */
static void
make_folder(struct recording *r)
{
    const char *file = r->ctl->argv[0], *tmp = getenv("TMPDIR");
    char *parent = strcmp(file, "-") ? dir_name(file) : xstrdup(tmp ? tmp : "/tmp");
    char *absolute = realpath(parent, NULL);

    if (!absolute) {
        ctl_refuse(r->ctl, "%s: %s", parent, ovs_strerror(errno));
    }
    char *folder = xasprintf("%s/.castctl-capture.XXXXXX", absolute);
    if (!mkdtemp(folder)) {
        ctl_refuse(r->ctl, "%s: %s", absolute, ovs_strerror(errno));
    }
    r->folder = folder;
    free(absolute);
    free(parent);
}

/*
 * Agents.
 */

/* Ends a port's capture.  NULL, or what went wrong; malloc'd. */
static char *
stop(struct recording *r, struct source *s)
{
    const struct rrec_node *node = ctl_find_node(r->ctl, s->node);
    char *answer;

    s->runs = false;
    if (!node) {
        return xstrdup("it is not in the registry any more, and its agent goes on capturing");
    }
    r->ctl->deadline = time_msec() + r->ctl->timeout * 1000LL;
    enum ctl_exit result = ctl_agent_run(r->ctl, node, "rocecast/capture-stop",
                                         (const char *[]){"-j", s->port, NULL}, &answer);
    if (result == CTL_OK) {
        free(answer);
        return NULL;
    }
    return answer;
}

static void
stop_all(struct recording *r)
{
    for (size_t i = 0; i < r->n; i++) {
        struct source *s = &r->sources[i];
        char *why = s->runs ? stop(r, s) : NULL;

        if (why) {
            ctl_warn("node %s, port %s: %s", s->node, s->port, why);
            r->partial = true;
            free(why);
        }
    }
}

/* Leaves nothing behind, however castctl ends: no capture, no file of an agent, and no result without an end. */
static struct recording *unfinished;

static void
clean_up(void)
{
    struct recording *r = unfinished;

    if (!r) {
        return;
    }
    unfinished = NULL;
    stop_all(r);
    for (size_t i = 0; i < r->n && r->sources[i].file; i++) {
        unlink(r->sources[i].file);
    }
    if (r->folder) {
        rmdir(r->folder);
    }
    if (!r->is_written && r->out != stdout) {
        unlink(r->ctl->argv[0]);
    }
}

static void
start_all(struct recording *r)
{
    for (size_t i = 0; i < r->n; i++) {
        struct source *s = &r->sources[i];
        char *answer;
        enum ctl_exit result =
            ctl_agent_run(r->ctl, ctl_find_node(r->ctl, s->node), "rocecast/capture-start",
                          (const char *[]){s->port, s->file, NULL}, &answer);

        if (result != CTL_OK) {
            ctl_fail(result, "%s: node %s, port %s: %s", r->ctl->command->name, s->node, s->port,
                     answer);
        }
        free(answer);
        s->runs = true;
    }
}

/*
 * While it runs.
 */

/* How many frames there are so far. */
static uint64_t
count(struct recording *r)
{
    uint64_t n = 0;

    for (size_t i = 0; i < r->n; i++) {
        struct source *s = &r->sources[i];

        while (pcap_reader_next(s->reader)) {
            s->n_counted++;
        }
        n += s->n_counted;
    }
    return n;
}

static void
open_readers(struct recording *r)
{
    for (size_t i = 0; i < r->n; i++) {
        struct source *s = &r->sources[i];

        s->reader = s->reader ? s->reader : xmalloc(sizeof *s->reader);
        pcap_reader_open(s->reader, s->file, r->ctl->command->name);
    }
}

static void
close_readers(struct recording *r)
{
    for (size_t i = 0; i < r->n; i++) {
        pcap_reader_close(r->sources[i].reader);
    }
}

/* Until there are enough frames, the time is over, or somebody ends it. */
static void
wait_for_end(struct recording *r)
{
    uint64_t seconds = ctl_option_number(r->ctl, OPT_SECONDS, 1, MAX_SECONDS, 0);
    long long end = seconds ? time_msec() + (long long) seconds * 1000 : LLONG_MAX;

    open_readers(r);
    while (!interrupted && time_msec() < end && (r->limit == UINT64_MAX || count(r) < r->limit)) {
        /* What is new by the end has a name, too. */
        registry_reach_run(&r->ctl->reach);
        registry_reach_wait(&r->ctl->reach);
        poll_timer_wait(POLL_MSEC);
        poll_block();
    }
    close_readers(r);
}

/*
 * The result.
 */

static void
add_name(struct pcapng_name **names, size_t *n, size_t *allocated, const struct in6_addr *address,
         char *name)
{
    if (*n == *allocated) {
        *names = x2nrealloc(*names, allocated, sizeof **names);
    }
    (*names)[(*n)++] = (struct pcapng_name){*address, name};
}

/* Names of hosts, groups' Proxy Addresses, nodes and their SIDs. */
static void
write_names(struct recording *r)
{
    struct pcapng_name *names = NULL;
    size_t n = 0, allocated = 0;
    const struct rrec_tree_node *tree;
    const struct rrec_node *node;
    const struct rrec_host *host;
    const struct rrec_group *group;
    struct in6_addr address;
    uint8_t plen;

    RREC_HOST_FOR_EACH (host, r->ctl->idl) {
        if (ip6_parse(host->address, &address)) {
            add_name(&names, &n, &allocated, &address, xstrdup(host->name));
        }
    }
    RREC_GROUP_FOR_EACH (group, r->ctl->idl) {
        if (ip6_parse(group->proxy, &address)) {
            add_name(&names, &n, &allocated, &address, xasprintf("group-%s", group->name));
        }
    }
    RREC_NODE_FOR_EACH (node, r->ctl->idl) {
        address = node_address((uint16_t) node->id);
        add_name(&names, &n, &allocated, &address, xstrdup(node->name));
        for (size_t i = 0; i < node->n_sids; i++) {
            /* That of a tree has its Replication-ID besides, and is named below. */
            if (strcmp(node->sids[i]->behaviour, sid_behaviour_name(SID_END_REPLICATE))
                && ip6_prefix_parse(node->sids[i]->prefix, &address, &plen)) {
                add_name(&names, &n, &allocated, &address,
                         xasprintf("%s.%s", node->name, node->sids[i]->behaviour));
            }
        }
    }
    RREC_TREE_NODE_FOR_EACH (tree, r->ctl->idl) {
        if (ip6_parse(tree->replication_sid, &address)) {
            add_name(&names, &n, &allocated, &address,
                     xasprintf("%s.group-%s", tree->node, tree->group));
        }
    }
    pcapng_names(r->out, names, n);
    for (size_t i = 0; i < n; i++) {
        free(CONST_CAST(char *, names[i].name));
    }
    free(names);
}

static void
write_ports(struct recording *r)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct source *s = &r->sources[i];
        char *name = xasprintf("%s:%s", s->node, s->port);
        char *description = xasprintf("%s, to %s", s->role, s->peer);

        pcapng_port(r->out, name, description);
        free(name);
        free(description);
    }
}

/* The source whose next frame is the earliest; NULL: there is no frame left. */
static struct source *
earliest(struct recording *r)
{
    struct source *first = NULL;

    for (size_t i = 0; i < r->n; i++) {
        struct source *s = &r->sources[i];

        s->has_frame = s->has_frame || pcap_reader_next(s->reader);
        if (s->has_frame && (!first || s->reader->usec < first->reader->usec)) {
            first = s;
        }
    }
    return first;
}

static void
write_frames(struct recording *r)
{
    struct source *s;

    open_readers(r);
    for (uint64_t n = 0; n < r->limit && (s = earliest(r)); n++) {
        const struct pcap_reader *p = s->reader;
        bool is_sent =
            p->len >= 2 * ETH_ADDR_LEN && !memcmp(p->frame + ETH_ADDR_LEN, &s->mac, ETH_ADDR_LEN);

        pcapng_frame(r->out, &(struct pcapng_frame){
                                 .port = (uint32_t) (s - r->sources),
                                 .usec = p->usec,
                                 .bytes = p->frame,
                                 .len = p->len,
                                 .whole_len = p->whole_len,
                                 .direction = is_sent ? PCAPNG_OUTBOUND : PCAPNG_INBOUND,
                             });
        s->has_frame = false;
        s->n_written++;
    }
    close_readers(r);
}

static void
print_result(struct recording *r)
{
    static const char *const keys[] = {"node", "port", "packets", NULL};
    struct json *all = json_array_create_empty();

    for (size_t i = 0; i < r->n; i++) {
        struct json *o = ctl_add_object(all);

        json_object_put_string(o, "node", r->sources[i].node);
        json_object_put_string(o, "port", r->sources[i].port);
        ctl_put_int(o, "packets", (int64_t) r->sources[i].n_written);
    }
    ctl_print(r->ctl, all, keys);
}

/* Writes what the agents have captured. */
static void
write_result(struct recording *r)
{
    pcapng_section(r->out, "castctl (rocecast) " ROCECAST_VERSION);
    write_ports(r);
    write_names(r);
    write_frames(r);
    if (fflush(r->out) || ferror(r->out)) {
        ctl_fail(CTL_PARTIAL, "capture record: %s: write error",
                 r->out == stdout ? "standard output" : r->ctl->argv[0]);
    }
    r->is_written = true;
}

void
record(struct ctl *ctl)
{
    static struct recording r; /* for clean_up(). */
    const struct sigaction action = {.sa_handler = interrupt};

    r = (struct recording){.ctl = ctl,
                           .limit = ctl_option_number(ctl, OPT_COUNT, 1, INT64_MAX, UINT64_MAX)};
    ctl_option_number(ctl, OPT_SECONDS, 1, MAX_SECONDS, 0);
    if (!ctl->argv[0][0]) {
        ctl_fail(CTL_USAGE, "capture record: FILE is empty");
    }
    choose_ports(&r);
    open_result(&r);
    unfinished = &r;
    atexit(clean_up);
    make_folder(&r);
    for (size_t i = 0; i < r.n; i++) {
        r.sources[i].file = xasprintf("%s/%zu", r.folder, i);
    }
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    start_all(&r);
    wait_for_end(&r);
    stop_all(&r);
    write_result(&r);
    clean_up();
    if (r.out != stdout) {
        print_result(&r);
    }
    ctl_finish(r.partial);
}
