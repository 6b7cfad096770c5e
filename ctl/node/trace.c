/* SPDX-License-Identifier: Apache-2.0
 *
 * rocecast/trace on the control socket: what a frame would meet at this node.
 *
 * Theory of operation
 * -------------------
 * A forked child has a copy of everything: routes, neighbours, groups with their
 * reverse-path state, counters.  The node gets the frame there as if it had been
 * received, with a listener at its trace points and at its ports, so nothing is
 * sent and nothing changes here.  What the child saw comes back through a pipe.
 *
 * The main thread waits for it, hence the time limit.  The child shares this
 * process's files and sockets: it writes to the pipe only and leaves by _exit().
 * Timers do not run: what the node would do later (ask for a neighbour again,
 * repeat a NAK) is not part of the answer.
 */
#include <config.h>

#include "ctl/node/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fatal-signal.h"
#include "lib/packet-text.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/json.h"
#include "socket-util.h"
#include "unixctl.h"
#include "util.h"

#define LIMIT_USEC 1000000

/*
 * In the child.
 */

struct node_trace {
    struct ds text; /* the same as the JSON, in order. */
    struct json *steps, *sent, *drops, *state;
};

static void
put_line(void *t_, const char *line)
{
    struct node_trace *t = t_;

    json_array_add(t->steps, json_string_create(line));
    ds_put_format(&t->text, "  %s\n", line);
}

void
node_trace_sent(struct node_trace *t, const struct node_port *np, const struct packet *p)
{
    static uint8_t frame[PACKET_HEADROOM + PACKET_ROOM];
    size_t len = packet_flatten(p, frame, sizeof frame);
    struct json *o = json_object_create();
    struct ds hex = DS_EMPTY_INITIALIZER;
    char summary[PACKET_TEXT_SIZE];

    packet_text(frame, len, summary);
    for (size_t i = 0; i < len; i++) {
        ds_put_format(&hex, "%02x", frame[i]);
    }
    json_object_put_string(o, "port", np->config.name);
    json_object_put(o, "len", json_integer_create((long long int) len));
    json_object_put_string(o, "hex", ds_cstr(&hex));
    json_object_put_string(o, "summary", summary);
    json_array_add(t->sent, o);
    ds_put_format(&t->text, "  sent from %s, %zu bytes: %s\n", np->config.name, len, summary);
    ds_destroy(&hex);
}

static void
put_drop(struct node_trace *t, const char *reason, const char *help)
{
    struct json *o = json_object_create();

    json_object_put_string(o, "reason", reason);
    json_object_put_string(o, "help", help);
    json_array_add(t->drops, o);
    ds_put_format(&t->text, "  dropped: %s (%s)\n", reason, help);
}

/* All counters of what gets lost. */
struct losses {
    uint64_t drops[N_DROP_REASONS];
    uint64_t tx_errors, tx_too_long, no_port;
};

static void
count_losses(const struct node_worker *w, struct losses *n)
{
    *n = (struct losses){.no_port = w->no_port};
    memcpy(n->drops, w->daemon->class->drops(w->node), sizeof n->drops);
    for (size_t i = 0; i < w->n_ports; i++) {
        n->tx_errors += w->ports[w->numbers[i]]->tx_errors;
        n->tx_too_long += w->ports[w->numbers[i]]->tx_too_long;
    }
}

static void
put_losses(struct node_trace *t, const struct losses *before, const struct losses *after)
{
    for (enum drop_reason why = DROP_none + 1; why < N_DROP_REASONS; why++) {
        for (uint64_t i = before->drops[why]; i < after->drops[why]; i++) {
            put_drop(t, drop_name(why), drop_help(why));
        }
    }
    if (after->tx_errors > before->tx_errors) {
        put_drop(t, "tx_errors", "the port is not open");
    }
    if (after->tx_too_long > before->tx_too_long) {
        put_drop(t, "tx_too_long", "longer than the port's MTU");
    }
    if (after->no_port > before->no_port) {
        put_drop(t, "no_port", "the route's port does not exist");
    }
}

static void
put_change(struct node_trace *t, const struct tree_config *tc, const char *what, psn_t before,
           psn_t after)
{
    if (psn_eq(before, after)) {
        return;
    }
    struct json *o = json_object_create();

    json_object_put_string(o, "group", tc->group);
    json_object_put(o, "epoch", json_integer_create(tc->epoch));
    json_object_put_string(o, "what", what);
    json_object_put(o, "before", json_integer_create(before.v));
    json_object_put(o, "after", json_integer_create(after.v));
    json_array_add(t->state, o);
    ds_put_format(&t->text, "  group %s epoch %u: %s %u -> %u\n", tc->group, tc->epoch, what,
                  before.v, after.v);
}

/* H, m and F of all trees; the caller frees. */
static struct tree_info *
get_trees(const struct node_worker *w)
{
    size_t n = w->daemon->class->n_trees(w->node);
    struct tree_info *trees = xcalloc(n + 1, sizeof *trees);

    for (size_t i = 0; i < n; i++) {
        w->daemon->class->tree(w->node, i, &trees[i]);
    }
    return trees;
}

static void
put_changes(const struct node_worker *w, struct node_trace *t, const struct tree_info *before)
{
    struct tree_info *after = get_trees(w);

    for (size_t i = 0; i < w->daemon->class->n_trees(w->node); i++) {
        const struct reverse_info *a = &before[i].reverse;
        const struct reverse_info *b = &after[i].reverse;
        const struct tree_config *tc = after[i].config;

        put_change(t, tc, "sent_next", a->h, b->h);
        put_change(t, tc, "confirmed", a->m, b->m);
        put_change(t, tc, "told", a->f, b->f);
    }
    free(after);
}

/* The worker that such a frame is for.  Frames for all change nothing but what is known of
 * links. */
static struct node_worker *
find_worker(const struct node_daemon *d, const uint8_t *frame, size_t len)
{
    struct packet *p = packet_from_bytes(d->workers[0]->pool, frame, len);
    unsigned i = 0;

    if (p) {
        port_strip_priority_tags(p);
        i = steer_frame(d->n_workers, p);
        packet_put(p);
    }
    return d->workers[i == STEER_ALL ? 0 : i];
}

/* Puts the frame through the node. */
static void
explain(struct node_worker *w, uint16_t number, const uint8_t *frame, size_t len,
        struct node_trace *t)
{
    const struct node_class *class = w->daemon->class;
    const struct tracer tracer = {.line = put_line, .aux = t};
    struct tree_info *trees = get_trees(w);
    struct losses before, after;
    char summary[PACKET_TEXT_SIZE];

    for (size_t i = 0; i < w->n_ports; i++) {
        w->ports[w->numbers[i]]->capture = NULL;
    }
    packet_text(frame, len, summary);
    ds_put_format(&t->text, "received on %s, %zu bytes: %s\n", w->ports[number]->config.name, len,
                  summary);
    count_losses(w, &before);
    after = before;
    struct packet *p = packet_from_bytes(w->pool, frame, len);
    if (p) {
        port_strip_priority_tags(p);
        w->trace = t;
        class->set_tracer(w->node, &tracer);
        class->input(w->node, number, p, node_daemon_now());
        count_losses(w, &after);
    } else {
        after.drops[DROP_pool_empty]++;
    }
    put_losses(t, &before, &after);
    put_changes(w, t, trees);
    if (!t->sent->array.n) {
        ds_put_cstr(&t->text, "  nothing is sent\n");
    }
    free(trees);
}

static void OVS_NO_RETURN
child(const struct node_daemon *d, uint16_t number, const uint8_t *frame, size_t len, bool as_json,
      int fd)
{
    struct node_trace t = {
        .text = DS_EMPTY_INITIALIZER,
        .steps = json_array_create_empty(),
        .sent = json_array_create_empty(),
        .drops = json_array_create_empty(),
        .state = json_array_create_empty(),
    };
    size_t written;

    fatal_signal_fork();
    explain(find_worker(d, frame, len), number, frame, len, &t);
    if (as_json) {
        struct json *o = json_object_create();

        json_object_put(o, "steps", t.steps);
        json_object_put(o, "sent", t.sent);
        json_object_put(o, "drops", t.drops);
        json_object_put(o, "state", t.state);
        ds_clear(&t.text);
        json_to_ds(o, JSSF_SORT, &t.text);
    }
    _exit(write_fully(fd, ds_cstr(&t.text), t.text.length, &written) ? 1 : 0);
}

/*
 * In the daemon.
 */

/* Reads until the other end is closed.  False: the time was up before. */
static bool
read_all(int fd, struct ds *out)
{
    uint64_t deadline = node_daemon_now() + LIMIT_USEC;
    struct pollfd pfd = {.fd = fd, .events = POLLIN};
    uint64_t now;

    while ((now = node_daemon_now()) < deadline) {
        char buf[4096];
        ssize_t n = 0;

        if (poll(&pfd, 1, (int) ((deadline - now) / 1000) + 1) > 0) {
            n = read(fd, buf, sizeof buf);
            if (!n) {
                return true;
            }
        }
        if (n > 0) {
            ds_put_buffer(out, buf, (size_t) n);
        }
    }
    return false;
}

/* The child's answer in *out; NULL, or what went wrong (malloc'd). */
static char *
run_child(struct node_daemon *d, uint16_t number, const uint8_t *frame, size_t len, bool as_json,
          struct ds *out)
{
    int fds[2];
    int status;

    if (pipe2(fds, O_CLOEXEC)) {
        return xasprintf("pipe: %s", ovs_strerror(errno));
    }
    node_workers_stop(d); /* so that the child has a copy of what holds together. */
    pid_t pid = fork();
    if (!pid) {
        child(d, number, frame, len, as_json, fds[1]);
    }
    int error = errno;
    node_workers_go(d);
    close(fds[1]);
    bool complete = pid > 0 && read_all(fds[0], out);
    close(fds[0]);
    if (pid < 0) {
        return xasprintf("fork: %s", ovs_strerror(error));
    }
    if (!complete) {
        kill(pid, SIGKILL);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        continue;
    }
    if (!complete) {
        return xasprintf("no answer within %d ms", LIMIT_USEC / 1000);
    }
    if (WIFSIGNALED(status)) {
        return xasprintf("the node would die of signal %d (%s)", WTERMSIG(status),
                         strsignal(WTERMSIG(status)));
    }
    return WEXITSTATUS(status) ? xstrdup("the answer could not be written") : NULL;
}

/* [-j] PORT HEX */
static void
trace(struct unixctl_conn *conn, int argc, const char *argv[], void *d_)
{
    static uint8_t frame[PACKET_ROOM];
    struct node_daemon *d = d_;
    const char *name = argv[argc - 2];
    const struct node_port *np = node_ports_find(d, name);
    struct ds answer = DS_EMPTY_INITIALIZER;
    char *error = NULL;
    size_t len;

    if (argc > 3 && strcmp(argv[1], "-j")) {
        error = xasprintf("unknown option '%s'", argv[1]);
    } else if (!np) {
        error = xasprintf("no port '%s'", name);
    } else if (packet_from_text(argv[argc - 1], frame, sizeof frame, &len, &error)) {
        error = run_child(d, np->config.number, frame, len, argc > 3, &answer);
    }
    if (error) {
        unixctl_command_reply_error(conn, error);
    } else {
        unixctl_command_reply(conn, ds_cstr(&answer));
    }
    ds_destroy(&answer);
    free(error);
}

void
node_trace_init(struct node_daemon *d)
{
    unixctl_command_register("rocecast/trace", "[-j] PORT HEX", 2, 3, trace, d);
}
