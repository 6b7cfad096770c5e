/* SPDX-License-Identifier: Apache-2.0
 *
 * The source's agent (see agent.h).
 *
 * Its control socket speaks JSON-RPC: an object asks, an object answers, and neither has a length in
 * front.  An answer that does not come in ANSWER_MS is the last: the agent is not asked again.
 */
#include "bench/castbench/agent.h"

#include <arpa/inet.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "bench/castbench/castctl.h"

#define ANSWER_MS    2000
#define MAX_ANSWER   65536 /* bytes. */
#define WAIT_CASTCTL 30000 /* milliseconds. */

/* What "castctl -j ARGV..." prints; NULL: nothing that is JSON. */
static json_t *
run_castctl(const char *const argv[])
{
    char text[MAX_ANSWER] = "", line[4096], error[256];
    size_t len = 0;
    struct castctl c;

    if (!castctl_start(&c, argv, error, sizeof error)) {
        return NULL;
    }
    while (len < sizeof text && castctl_line(&c, WAIT_CASTCTL, line, sizeof line)) {
        len += (size_t) snprintf(text + len, sizeof text - len, "%s\n", line);
    }
    castctl_stop(&c);
    return json_loads(text, 0, NULL);
}

/* What "castctl WHAT show NAME" says under 'key'.  False: nothing. */
static bool
show(const char *what, const char *name, const char *key, char *value, size_t size)
{
    const char *const argv[] = {"-j", what, "show", name, NULL};
    json_t *o = run_castctl(argv);
    const char *found = json_string_value(json_object_get(o, key));
    bool ok = found && found[0] && strlen(found) < size;

    if (ok) {
        strcpy(value, found);
    }
    json_decref(o);
    return ok;
}

static int
connect_to(const char *path)
{
    const struct timeval patience = {.tv_sec = ANSWER_MS / 1000};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    strcpy(un.sun_path, path);
    if (fd >= 0
        && (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience)
            || connect(fd, (struct sockaddr *) &un, sizeof un))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

void
agent_open(struct agent *a, const struct run_options *o)
{
    static const char *const list[] = {"-j", "node", "list", NULL};
    char node[MAX_NAME], path[sizeof((struct sockaddr_un){0}.sun_path)];
    struct rate_sample before;
    struct in6_addr address; /* a host that is given as one is none of the registry's. */

    *a = (struct agent){.options = o, .fd = -1};
    if (inet_pton(AF_INET6, o->source, &address) != 1
        && show("host", o->source, "node", node, sizeof node)
        && show("node", node, "control", path, sizeof path)) {
        a->fd = connect_to(path);
        a->nodes = run_castctl(list);
        agent_ask(a, &before);
    }
}

void
agent_close(struct agent *a)
{
    json_decref(a->nodes);
    a->nodes = NULL;
    if (a->fd >= 0) {
        close(a->fd);
        a->fd = -1;
    }
}

/* The array that the agent answers with; NULL: there is no answer. */
static json_t *
ask(const struct agent *a)
{
    static const char question[] = "{\"id\":0,\"method\":\"rocecast/flows\",\"params\":[\"-j\"]}";
    char text[MAX_ANSWER];
    size_t len = 0;
    json_t *answer = NULL;

    if (a->fd < 0 || send(a->fd, question, strlen(question), MSG_NOSIGNAL) < 0) {
        return NULL;
    }
    while (!answer && len < sizeof text) {
        ssize_t n = recv(a->fd, text + len, sizeof text - len, 0);
        if (n <= 0) {
            break;
        }
        len += (size_t) n;
        answer = json_loadb(text, len, 0, NULL); /* fails as long as it is not whole. */
    }
    const char *result = json_string_value(json_object_get(answer, "result"));
    json_t *flows = result ? json_loads(result, 0, NULL) : NULL;
    json_decref(answer);
    return flows;
}

/* Is the flow one of this run's? */
static bool
is_ours(const struct run_options *o, const json_t *flow)
{
    const char *group = json_string_value(json_object_get(flow, "group"));

    if (o->scheme != SCHEME_MCAST) {
        return !group;
    }
    for (unsigned i = 0; group && i < o->qps; i++) {
        if (!strcmp(group, o->groups[i])) {
            return true;
        }
    }
    return false;
}

static uint64_t
number(const json_t *flow, const char *key)
{
    json_int_t n = json_integer_value(json_object_get(flow, key));

    return n > 0 ? (uint64_t) n : 0;
}

/* Name of the node with this address; the address if there is none. */
static const char *
name_of(const struct agent *a, const char *address)
{
    const json_t *node;
    size_t i;

    json_array_foreach(a->nodes, i, node)
    {
        const char *own = json_string_value(json_object_get(node, "address"));

        if (own && !strcmp(own, address)) {
            return json_string_value(json_object_get(node, "name"));
        }
    }
    return strcmp(address, "::") ? address : "";
}

/* Who caused the flow's last cut; a flow that had none changes nothing. */
static void
take_cause(const struct agent *a, const json_t *flow, struct rate_sample *s, uint64_t *newest)
{
    const char *cause = json_string_value(json_object_get(flow, "cause"));
    const char *node = json_string_value(json_object_get(flow, "node"));
    uint64_t ago = number(flow, "last_cut_us_ago");

    if (cause && node && ago < *newest) {
        *newest = ago;
        snprintf(s->cause, sizeof s->cause, "%s", cause);
        snprintf(s->node, sizeof s->node, "%s", name_of(a, node));
    }
}

bool
agent_ask(struct agent *a, struct rate_sample *s)
{
    json_t *flows = ask(a), *flow;
    uint64_t n_cuts = 0, newest = UINT64_MAX;
    size_t i;

    *s = (struct rate_sample){.known = json_is_array(flows)};
    json_array_foreach(flows, i, flow)
    {
        uint64_t rate = number(flow, "rate");

        if (!is_ours(a->options, flow)) {
            continue;
        }
        s->rate = rate && (!s->rate || rate < s->rate) ? rate : s->rate;
        n_cuts += number(flow, "cuts");
        take_cause(a, flow, s, &newest);
    }
    json_decref(flows);
    if (!s->known) {
        agent_close(a);
    } else {
        /* A flow that is forgotten takes its cuts along. */
        s->n_cuts = n_cuts > a->n_cuts ? n_cuts - a->n_cuts : 0;
        a->n_cuts = n_cuts;
    }
    return s->known;
}
