/* SPDX-License-Identifier: Apache-2.0
 *
 * What stands for a receiver on another machine (see remote.h).  The server has the run's command
 * line, from which it makes the same content, and is told step by step what else it needs.
 */
#include "bench/castbench/remote.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/castbench/plan.h"
#include "bench/castbench/remote-message.h"
#include "version.h"

/* Of this process: one receiver. */
static struct {
    const struct run_ctx *run;
    unsigned index;
    const char *host;
    const char *where; /* ADDRESS[:PORT] */
    int fd;
} remote;

static int
connect_to(const char *where)
{
    char name[256], *colon, *port;
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *info;
    static char default_port[] = REMOTE_PORT;
    int fd = -1;

    snprintf(name, sizeof name, "%s", where);
    colon = strrchr(name, ':');
    port = colon && (strchr(name, ':') == colon || colon[-1] == ']') ? colon + 1 : default_port;
    if (port != default_port) {
        *colon = '\0';
    }
    size_t len = strlen(name);
    bool in_brackets = len > 1 && name[0] == '[' && name[len - 1] == ']';
    name[in_brackets ? len - 1 : len] = '\0';
    if (getaddrinfo(name + in_brackets, port, &hints, &info)) {
        errno = EADDRNOTAVAIL;
        return -1;
    }
    for (struct addrinfo *i = info; i && fd < 0; i = i->ai_next) {
        fd = socket(i->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, i->ai_addr, i->ai_addrlen)) {
            int error = errno;

            close(fd);
            fd = -1;
            errno = error;
        }
    }
    freeaddrinfo(info);
    return fd;
}

/* Takes the server's answer.  NULL: 'error' says why there is none. */
static json_t *
hear(char *error, size_t size)
{
    json_t *answer = message_receive(remote.fd);
    const char *said = json_string_value(json_object_get(answer, "error"));

    if (!answer) {
        refuse(error, size, "castbench serve at %s has closed the connection", remote.where);
    } else if (said) {
        refuse(error, size, "%s", said);
        json_decref(answer);
        answer = NULL;
    }
    return answer;
}

/* Sends a message, which is freed, and takes the answer, which the caller frees. */
static json_t *
ask(json_t *message, char *error, size_t size)
{
    if (!message_send(remote.fd, message)) {
        refuse(error, size, "cannot write to castbench serve at %s: %s", remote.where,
               strerror(errno));
        return NULL;
    }
    return hear(error, size);
}

static bool
bad_answer(char *error, size_t size)
{
    return refuse(error, size, "castbench serve at %s answers something else than is asked",
                  remote.where);
}

static json_t *
opening(void)
{
    const struct run_options *o = remote.run->options;
    json_t *arguments = json_array();

    for (int i = 0; i < o->argc; i++) {
        json_array_append_new(arguments, json_string(o->argv[i]));
    }
    return json_pack("{s:s, s:o, s:i, s:s, s:i, s:I}", "castbench", ROCECAST_VERSION, "arguments",
                     arguments, "receiver", (int) remote.index, "scheme", scheme_name(o->scheme),
                     "replicas", (int) o->n_receivers, "size", (json_int_t) o->size);
}

static bool
step_open(char *error, size_t size)
{
    struct shared_member *me = &remote.run->shared->members[1 + remote.index];
    uint64_t rkey = 0;

    remote.fd = connect_to(remote.where);
    if (remote.fd < 0) {
        return refuse(error, size, "castbench serve at %s does not answer: %s", remote.where,
                      strerror(errno));
    }
    json_t *answer = ask(opening(), error, size);
    bool ok = answer
              && ((message_numbers(answer, "qpn", me->qpn, remote.run->options->qps)
                   && message_number(answer, "rkey", UINT32_MAX, &rkey)
                   && message_number(answer, "va", INT64_MAX, &me->va))
                  || bad_answer(error, size));
    me->rkey = (uint32_t) rkey;
    json_decref(answer);
    return ok;
}

static bool
step_arm(char *error, size_t size)
{
    const struct run_options *o = remote.run->options;
    struct shared *shared = remote.run->shared;
    struct shared_member *me = &shared->members[1 + remote.index];
    uint32_t listens[MAX_QPS];

    for (unsigned q = 0; q < o->qps; q++) {
        me->listens[q] = o->rdma_cm; /* as far as anyone knows, if there is no answer. */
    }
    json_t *answer =
        ask(json_pack("{s:s, s:o, s:o}", "step", "arm", "groups",
                      message_groups(shared->groups, is_mcast(remote.run) ? o->qps : 0), "peer_qpn",
                      message_list(me->child_qpn, o->qps)),
            error, size);
    bool ok = answer
              && ((message_numbers(answer, "listens", listens, o->qps)
                   && message_number(answer, "connect_ns", INT64_MAX, &me->connect_ns))
                  || bad_answer(error, size));

    for (unsigned q = 0; ok && q < o->qps; q++) {
        me->listens[q] = listens[q];
    }
    json_decref(answer);
    return ok;
}

/* A step that lasts until the source says that it is over, or until the receiver itself has nothing
 * to do in it. */
static bool
step_serve(const char *name, enum phase phase, char *error, size_t size)
{
    struct pollfd fds[] = {{.fd = remote.fd, .events = POLLIN},
                           {.fd = remote.run->shared->over[phase][0], .events = POLLIN}};

    if (!message_send(remote.fd, json_pack("{s:s}", "step", name))) {
        return bad_answer(error, size);
    }
    while (poll(fds, 2, -1) <= 0) {
    }
    if (!fds[0].revents) {
        message_send(remote.fd, json_pack("{s:s}", "step", "over"));
    }
    json_t *answer = hear(error, size);
    json_decref(answer);
    return answer;
}

static bool
step_count(char *error, size_t size)
{
    json_t *answer = ask(json_pack("{s:s}", "step", "count"), error, size);

    json_decref(answer);
    return answer;
}

static bool
step_compare(char *error, size_t size)
{
    struct shared *shared = remote.run->shared;
    json_t *answer = ask(
        json_pack("{s:s, s:I}", "step", "compare", "end", (json_int_t) shared->end), error, size);
    bool ok = answer
              && (message_read_results(answer, shared->content.region_len,
                                       &shared->replicas[remote.index],
                                       &shared->members[1 + remote.index].count)
                  || bad_answer(error, size));

    json_decref(answer);
    return ok;
}

bool
remote_step(void *aux, unsigned step, char *error, size_t size)
{
    const struct receiver_ctx *ctx = aux;
    const struct run_options *o = ctx->run->options;

    remote.run = ctx->run;
    remote.index = ctx->index;
    remote.host = o->receivers[ctx->index];
    remote.where = o->servers[ctx->index];
    switch ((enum run_step) step) {
    case STEP_OPEN: return step_open(error, size);
    case STEP_ARM: return step_arm(error, size);
    case STEP_WARMUP: return step_serve("warmup", PHASE_WARMUP, error, size);
    case STEP_COUNT: return step_count(error, size);
    case STEP_WORK: return step_serve("work", PHASE_WORK, error, size);
    case STEP_COMPARE: return step_compare(error, size);
    case N_RUN_STEPS: break;
    }
    return false;
}
