/* SPDX-License-Identifier: Apache-2.0
 *
 * castcrowd: the endpoints of many groups in one process, model queue pairs as castmodel's.
 *
 * What there is to do is told on standard input, a line each, and answered by a line on standard
 * output: "ok", JSON, or "error: " and why.
 *
 *   host NAME ADDRESS
 *   source GROUP HOST QPN PROXY DQPN PSN MTU TIMEOUT_USEC RKEY
 *   receiver GROUP HOST QPN PROXY DQPN PSN MTU RKEY
 *   drop GROUP HOST                 the receiver's queue pair is no more
 *   pace GROUP MSEC                 the source writes a message that often; 0: no more
 *   show GROUP                      JSON
 *   forget GROUP                    with all its queue pairs
 *
 * Every message overwrites the same place in each receiver's region.  It says which one it is, so
 * that what a region has shows which message it is from, and if that is whole.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/net/command-line.h"
#include "tests/net/model-host.h"

#define MAX_HOSTS     16
#define MAX_GROUPS    1024
#define MAX_RECEIVERS (MAX_HOSTS - 1)
#define MESSAGE_LEN   3000 /* three packets of the usual path MTU. */
#define NAME_LEN      32
#define USEC_PER_MSEC UINT64_C(1000)
#define USEC_PER_SEC  UINT64_C(1000000)

struct host {
    char name[NAME_LEN];
    struct model_host model;
};

struct receiver {
    struct host *host; /* NULL: none. */
    struct rc_endpoint *ep;
    uint32_t qpn;
    uint8_t region[MESSAGE_LEN];
};

struct group {
    char name[NAME_LEN]; /* "": none. */
    struct host *host;
    uint32_t qpn;
    struct rc_endpoint *ep; /* NULL: no source. */
    uint32_t rkey;
    uint64_t period_usec, next_at; /* 0: it rests. */
    uint64_t n_posted, n_completed;
    enum rc_status status; /* the first that is not success. */
    uint8_t message[MESSAGE_LEN];
    struct receiver receivers[MAX_RECEIVERS];
};

static struct host hosts[MAX_HOSTS];
static size_t n_hosts;
static struct group *groups[MAX_GROUPS];
static size_t n_groups;

static uint64_t
now_usec(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t) ts.tv_sec * USEC_PER_SEC + (uint64_t) ts.tv_nsec / 1000;
}

/*
 * Messages.
 */

static void
fill(uint8_t *bytes, const struct group *g, uint64_t number)
{
    memcpy(bytes, &number, sizeof number);
    for (size_t i = sizeof number; i < MESSAGE_LEN; i++) {
        bytes[i] = (uint8_t) (number * 31 + i * 7 + (uint8_t) g->name[i % sizeof g->name]);
    }
}

/* The number of the message that is in the region; 0: none is, or a part of one. */
static uint64_t
message_in(const struct group *g, const uint8_t *region)
{
    uint8_t wanted[MESSAGE_LEN];
    uint64_t number;

    memcpy(&number, region, sizeof number);
    fill(wanted, g, number);
    return memcmp(wanted, region, sizeof wanted) ? 0 : number;
}

static void
complete(void *g_, uint64_t id, enum rc_status status)
{
    struct group *g = g_;

    (void) id;
    g->n_completed++;
    if (g->status == RC_WC_SUCCESS) {
        g->status = status;
    }
}

/* Writes the next message, unless the one before is under way. */
static void
write_message(struct group *g, uint64_t now)
{
    struct rc_wr wr = {.op = RC_OP_WRITE, .data = g->message, .len = MESSAGE_LEN, .rkey = g->rkey};

    if (g->n_completed == g->n_posted) {
        fill(g->message, g, ++g->n_posted);
        rc_post(g->ep, &wr, now);
    }
}

/* Does what is due, and tells when more is. */
static uint64_t
run_sources(uint64_t now)
{
    uint64_t next = UINT64_MAX;

    for (size_t i = 0; i < n_groups; i++) {
        struct group *g = groups[i];

        if (!g->ep) {
            continue;
        }
        if (now >= rc_deadline(g->ep)) {
            rc_timer(g->ep, now);
        }
        if (g->period_usec && now >= g->next_at) {
            g->next_at = now + g->period_usec;
            write_message(g, now);
        }
        uint64_t deadline = rc_deadline(g->ep);
        next = deadline < next ? deadline : next;
        next = g->period_usec && g->next_at < next ? g->next_at : next;
    }
    return next;
}

/*
 * Commands.  Each returns NULL, or what is wrong.
 */

static struct host *
find_host(const char *name)
{
    for (size_t i = 0; i < n_hosts; i++) {
        if (!strcmp(hosts[i].name, name)) {
            return &hosts[i];
        }
    }
    return NULL;
}

static struct group *
find_group(const char *name)
{
    for (size_t i = 0; i < n_groups; i++) {
        if (!strcmp(groups[i]->name, name)) {
            return groups[i];
        }
    }
    return NULL;
}

static struct group *
make_group(const char *name)
{
    struct group *g = find_group(name);

    if (!g && n_groups < MAX_GROUPS) {
        g = groups[n_groups++] = calloc(1, sizeof *g);
        if (!g) {
            abort();
        }
        snprintf(g->name, sizeof g->name, "%s", name);
    }
    return g;
}

static const char *
add_host(char *words[])
{
    struct in6_addr address;

    if (n_hosts == MAX_HOSTS || inet_pton(AF_INET6, words[1], &address) != 1) {
        return "too many hosts, or no address";
    }
    struct host *h = &hosts[n_hosts];
    int error = model_host_open(&h->model, &address);
    if (error) {
        return strerror(error);
    }
    snprintf(h->name, sizeof h->name, "%s", words[0]);
    n_hosts++;
    return NULL;
}

/* What source and receiver have in common: PROXY DQPN PSN MTU. */
static struct rc_config
common_config(char *words[], uint32_t qpn)
{
    struct rc_config config = {
        .qpn = qpn,
        .dest_qpn = (uint32_t) strtoul(words[1], NULL, 0),
        .start_psn = psn_make((uint32_t) strtoul(words[2], NULL, 0)),
        .mtu = (uint32_t) strtoul(words[3], NULL, 0),
        .retry_cnt = RC_RETRY_FOREVER,
        .rnr_retry = RC_RETRY_FOREVER,
        .min_rnr_timer = 12,
    };

    if (inet_pton(AF_INET6, words[0], &config.peer) != 1) {
        config.mtu = 0;
    }
    return config;
}

static const char *
add_source(char *words[])
{
    struct group *g = make_group(words[0]);
    struct host *h = find_host(words[1]);
    uint32_t qpn = (uint32_t) strtoul(words[2], NULL, 0);
    struct rc_config config = common_config(&words[3], qpn);

    if (!g || !h || g->ep || !config.mtu) {
        return "no such host, too many groups, it has a source, or a value makes no sense";
    }
    config.timeout_usec = strtoull(words[7], NULL, 0);
    g->rkey = (uint32_t) strtoul(words[8], NULL, 0);
    g->host = h;
    g->qpn = qpn;
    g->ep = model_host_add(&h->model, config, complete, g);
    return NULL;
}

static struct receiver *
find_receiver(struct group *g, const struct host *h)
{
    for (size_t i = 0; i < MAX_RECEIVERS; i++) {
        if (g->receivers[i].host == h) {
            return &g->receivers[i];
        }
    }
    return NULL;
}

static const char *
add_receiver(char *words[])
{
    struct group *g = make_group(words[0]);
    struct host *h = find_host(words[1]);
    uint32_t qpn = (uint32_t) strtoul(words[2], NULL, 0);
    struct rc_config config = common_config(&words[3], qpn);
    struct receiver *r = g ? find_receiver(g, NULL) : NULL;

    if (!h || !r || find_receiver(g, h) || !config.mtu) {
        return "no such host, too many receivers, it has this one, or a value makes no sense";
    }
    memset(r->region, 0, sizeof r->region);
    config.region = r->region;
    config.region_len = sizeof r->region;
    config.rkey = (uint32_t) strtoul(words[7], NULL, 0);
    r->host = h;
    r->qpn = qpn;
    r->ep = model_host_add(&h->model, config, NULL, NULL);
    return NULL;
}

static void
drop(struct receiver *r)
{
    model_host_remove(&r->host->model, r->qpn);
    r->host = NULL;
}

static const char *
drop_receiver(char *words[])
{
    struct group *g = find_group(words[0]);
    const struct host *h = find_host(words[1]);
    struct receiver *r = g && h ? find_receiver(g, h) : NULL;

    if (!r) {
        return "no such receiver";
    }
    drop(r);
    return NULL;
}

static const char *
set_pace(char *words[])
{
    struct group *g = find_group(words[0]);

    if (!g || !g->ep) {
        return "no such group, or it has no source";
    }
    g->period_usec = strtoull(words[1], NULL, 0) * USEC_PER_MSEC;
    g->next_at = 0;
    return NULL;
}

static const char *
forget(char *words[])
{
    for (size_t i = 0; i < n_groups; i++) {
        struct group *g = groups[i];

        if (strcmp(g->name, words[0])) {
            continue;
        }
        for (size_t j = 0; j < MAX_RECEIVERS; j++) {
            if (g->receivers[j].host) {
                drop(&g->receivers[j]);
            }
        }
        if (g->ep) {
            model_host_remove(&g->host->model, g->qpn);
        }
        free(g);
        groups[i] = groups[--n_groups];
        return NULL;
    }
    return "no such group";
}

/* {"posted": messages, "completed", "status": of the first work request that failed, or 0,
 * "sent": packets, "retries",
 * "receivers": {HOST: {"message": number of the one in its region, or 0, "requests": packets,
 * "duplicates", "naks"}}} */
static const char *
show(char *words[])
{
    const struct group *g = find_group(words[0]);
    const char *comma = "";
    struct rc_info info;

    if (!g || !g->ep) {
        return "no such group, or it has no source";
    }
    rc_get_info(g->ep, &info);
    printf("{\"posted\": %" PRIu64 ", \"completed\": %" PRIu64
           ", \"status\": %d, \"sent\": %" PRIu64 ", \"retries\": %" PRIu64 ", \"receivers\": {",
           g->n_posted, g->n_completed, g->status, info.n_sent, info.n_retries);
    for (size_t i = 0; i < MAX_RECEIVERS; i++) {
        const struct receiver *r = &g->receivers[i];

        if (r->host) {
            rc_get_info(r->ep, &info);
            printf("%s\"%s\": {\"message\": %" PRIu64 ", \"requests\": %" PRIu64
                   ", \"duplicates\": %" PRIu64 ", \"naks\": %" PRIu64 "}",
                   comma, r->host->name, message_in(g, r->region), info.n_requests,
                   info.n_duplicates, info.n_naks);
            comma = ", ";
        }
    }
    puts("}}");
    return NULL;
}

static const struct command commands[] = {
    {"host", 2, add_host, false},         {"source", 9, add_source, false},
    {"receiver", 8, add_receiver, false}, {"drop", 2, drop_receiver, false},
    {"pace", 2, set_pace, false},         {"show", 1, show, true},
    {"forget", 1, forget, false},         {0},
};

int
main(void)
{
    struct pollfd fds[1 + MAX_HOSTS];

    for (;;) {
        uint64_t next = run_sources(now_usec());
        uint64_t now = now_usec();
        uint64_t wait = next == UINT64_MAX ? USEC_PER_SEC : next > now ? next - now : 0;
        struct timespec ts = {(time_t) (wait / USEC_PER_SEC), (long) (wait % USEC_PER_SEC) * 1000};

        fds[0] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
        for (size_t i = 0; i < n_hosts; i++) {
            fds[1 + i] = (struct pollfd){.fd = hosts[i].model.rx_fd, .events = POLLIN};
        }
        size_t n = n_hosts;
        if (ppoll(fds, 1 + n, &ts, NULL) < 0 && errno != EINTR) {
            perror("castcrowd: poll");
            return 1;
        }
        for (size_t i = 0; i < n; i++) {
            if (fds[1 + i].revents) {
                model_host_receive(&hosts[i].model, now_usec());
            }
        }
        if (fds[0].revents && !commands_read(commands)) {
            return 0;
        }
    }
}
