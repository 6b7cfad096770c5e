/* SPDX-License-Identifier: Apache-2.0
 *
 * Serves metrics by HTTP.
 *
 * A connection is good for one request: it is read until its headers have ended, answered, and
 * closed.  Whoever comes while all places are taken waits to be accepted; that does not take
 * long, since a place is free again after CLIENT_MSEC at the latest.
 */
#include <config.h>

#include "ctl/process/metrics-server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/process/openmetrics.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "stream.h"
#include "timeval.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(metrics_server);

static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(6, 3);

#define MAX_CLIENTS  4
#define CLIENT_MSEC  5000 /* from the connection to the answer's last byte. */
#define MAX_REQUEST  4096
#define METRICS_PATH "/metrics"

struct client {
    struct stream *stream; /* NULL: the place is free. */
    long long int deadline;
    size_t n_request;
    char request[MAX_REQUEST + 1];
    char *answer; /* NULL: the request has not ended. */
    size_t n_answer, n_sent;
};

struct metrics_server {
    struct pstream *listener;
    metrics_func *make;
    const void *aux;
    struct client clients[MAX_CLIENTS];
};

struct metrics_server *
metrics_server_create(struct pstream *listener, metrics_func *make, const void *aux)
{
    struct metrics_server *s = listener ? xzalloc(sizeof *s) : NULL;

    if (s) {
        s->listener = listener;
        s->make = make;
        s->aux = aux;
    }
    return s;
}

static void
close_client(struct client *c)
{
    stream_close(c->stream);
    free(c->answer);
    *c = (struct client){.stream = NULL};
}

void
metrics_server_destroy(struct metrics_server *s)
{
    if (!s) {
        return;
    }
    for (size_t i = 0; i < MAX_CLIENTS; i++) {
        if (s->clients[i].stream) {
            close_client(&s->clients[i]);
        }
    }
    pstream_close(s->listener);
    free(s);
}

/* A place that is free; NULL: none is. */
static struct client *
free_place(struct metrics_server *s)
{
    for (size_t i = 0; i < MAX_CLIENTS; i++) {
        if (!s->clients[i].stream) {
            return &s->clients[i];
        }
    }
    return NULL;
}

static void
accept_clients(struct metrics_server *s)
{
    struct client *c;

    while ((c = free_place(s))) {
        int error = pstream_accept(s->listener, &c->stream);

        if (error) {
            c->stream = NULL;
            if (error != EAGAIN) {
                VLOG_WARN_RL(&rl, "accept: %s", ovs_strerror(error));
            }
            return;
        }
        c->deadline = time_msec() + CLIENT_MSEC;
    }
}

/* The answer with this status; 'body' is taken over. */
static void
answer(struct client *c, const char *status, const char *headers, char *body)
{
    c->answer = xasprintf("HTTP/1.1 %s\r\n%sContent-Length: %" PRIuSIZE "\r\n"
                          "Connection: close\r\n\r\n%s",
                          status, headers, strlen(body), body);
    c->n_answer = strlen(c->answer);
    free(body);
}

static void
refuse(struct client *c, const char *status, const char *headers)
{
    char *all = xasprintf("%sContent-Type: text/plain\r\n", headers);

    answer(c, status, all, xasprintf("%s\n", status));
    free(all);
}

/* Answers by the first line of the request. */
static void
answer_request(const struct metrics_server *s, struct client *c)
{
    char *line = c->request;

    line[strcspn(line, "\r\n")] = '\0';
    const char *method = strsep(&line, " ");
    char *target = strsep(&line, " ");

    /* The version is what is left. */
    if (!target || target[0] != '/' || !line || strncmp(line, "HTTP/1.", 7) || strlen(line) != 8) {
        refuse(c, "400 Bad Request", "");
        return;
    }
    target[strcspn(target, "?")] = '\0';
    if (strcmp(target, METRICS_PATH)) {
        refuse(c, "404 Not Found", "");
    } else if (strcmp(method, "GET")) {
        refuse(c, "405 Method Not Allowed", "Allow: GET\r\n");
    } else {
        answer(c, "200 OK", "Content-Type: " OPENMETRICS_CONTENT_TYPE "\r\n", s->make(s->aux));
    }
}

/* Has the request ended?  What is behind its headers does not matter. */
static bool
has_ended(const struct client *c)
{
    return strstr(c->request, "\r\n\r\n") || strstr(c->request, "\n\n");
}

/* Reads more of the request.  0: it goes on, or can be answered. */
static int
receive(const struct metrics_server *s, struct client *c)
{
    int n = stream_recv(c->stream, c->request + c->n_request, MAX_REQUEST - c->n_request);

    if (n <= 0) {
        return n == -EAGAIN ? EAGAIN : EOF;
    }
    c->n_request += (size_t) n;
    c->request[c->n_request] = '\0';
    if (memchr(c->request, '\0', c->n_request)) {
        refuse(c, "400 Bad Request", "");
    } else if (has_ended(c)) {
        answer_request(s, c);
    } else if (c->n_request == MAX_REQUEST) {
        refuse(c, "431 Request Header Fields Too Large", "");
    }
    return 0;
}

/* Sends more of the answer.  Once it is sent, what has come besides is thrown away: a connection
 * that is closed over it would be reset, and the answer may be lost. */
static int
send_answer(struct client *c)
{
    while (c->n_sent < c->n_answer) {
        int n = stream_send(c->stream, c->answer + c->n_sent, c->n_answer - c->n_sent);

        if (n <= 0) {
            return n == -EAGAIN ? EAGAIN : EOF;
        }
        c->n_sent += (size_t) n;
    }
    for (int i = 0; i < 16 && stream_recv(c->stream, c->request, MAX_REQUEST) > 0; i++) {
        continue;
    }
    return EOF;
}

static void
run_client(const struct metrics_server *s, struct client *c)
{
    int error = 0;

    stream_run(c->stream);
    while (!error) {
        error = c->answer ? send_answer(c) : receive(s, c);
    }
    if (error != EAGAIN || time_msec() >= c->deadline) {
        close_client(c);
    }
}

void
metrics_server_run(struct metrics_server *s)
{
    if (!s) {
        return;
    }
    accept_clients(s);
    for (size_t i = 0; i < MAX_CLIENTS; i++) {
        if (s->clients[i].stream) {
            run_client(s, &s->clients[i]);
        }
    }
}

void
metrics_server_wait(struct metrics_server *s)
{
    if (!s) {
        return;
    }
    for (size_t i = 0; i < MAX_CLIENTS; i++) {
        struct client *c = &s->clients[i];

        if (c->stream) {
            stream_run_wait(c->stream);
            if (c->answer) {
                stream_send_wait(c->stream);
            } else {
                stream_recv_wait(c->stream);
            }
            poll_timer_wait_until(c->deadline);
        }
    }
    if (free_place(s)) {
        pstream_wait(s->listener);
    }
}
