/* SPDX-License-Identifier: Apache-2.0
 *
 * castcm: programs at many hosts that connect or listen by RDMA-CM, in one process, without queue
 * pairs.  What each host's kernel does is the model's (tests/model/cm-kernel.h).
 *
 * What there is to do is told on standard input, a line each, and answered by a line on standard
 * output: "ok", JSON, or "error: " and why.  A program has a number at its host, which is its port
 * if it listens.
 *
 *   host NAME ADDRESS
 *   listen HOST NUMBER QPN VA RKEY LEN    one connection is taken; the region is its private data
 *   connect HOST NUMBER QPN PROXY PORT
 *   disconnect HOST NUMBER                it does not listen any more, either
 *   show                                  JSON
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/model/cm-kernel.h"
#include "tests/net/command-line.h"
#include "tests/net/model-host.h"

#define MAX_HOSTS    16
#define MAX_PROGRAMS UINT8_MAX
#define NAME_LEN     32
#define N_PACKETS    16 /* of the pool: a message is sent as soon as it is made. */
#define USEC_PER_SEC UINT64_C(1000000)

/* What a member says about its region (docs/joining.md, "Private data"). */
struct region_answer {
    be64_t va;
    be32_t rkey;
    be64_t len;
};
static_assert(sizeof(struct region_answer) == 20, "private data of a REP");

struct program {
    enum { NONE, LISTENING, CONNECTING, CONNECTED, DISCONNECTED, REJECTED, UNREACHABLE } state;
    struct cm_kernel_id *id; /* NULL: no connection. */
    uint32_t qpn;
    struct region_answer region;
    unsigned n_connected, n_disconnected; /* how often it has heard that. */
};

static const char *const state_names[] = {
    [LISTENING] = "listening",       [CONNECTING] = "connecting", [CONNECTED] = "connected",
    [DISCONNECTED] = "disconnected", [REJECTED] = "rejected",     [UNREACHABLE] = "unreachable",
};

struct host {
    char name[NAME_LEN];
    struct model_host model;
    struct cm_kernel kernel;
    struct program programs[MAX_PROGRAMS];
    psn_t psn;                          /* of the next message. */
    uint64_t n_sent, n_heard, n_others; /* messages; packets that are none. */
};

static struct host *hosts[MAX_HOSTS];
static size_t n_hosts;
static struct packet_pool *pool;

static uint64_t
now_usec(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t) ts.tv_sec * USEC_PER_SEC + (uint64_t) ts.tv_nsec / 1000;
}

/*
 * What a kernel wants.
 */

static void
send_msg(void *h_, struct cm_kernel *k, const struct in6_addr *proxy, const struct cm_msg *m)
{
    struct host *h = h_;
    struct packet *p = cm_build(pool, &k->addr, proxy, h->psn, m);

    h->psn = psn_add(h->psn, 1);
    h->n_sent++;
    model_host_send(&h->model, p->data, p->len);
    packet_put(p);
}

static void
end_connection(struct host *h, struct cm_kernel_id *id, int state)
{
    struct program *p = &h->programs[id->program];

    p->id = NULL;
    p->state = h->kernel.listens[id->program] ? LISTENING : state;
    cm_kernel_destroy(&h->kernel, id);
}

static void
event(void *h_, struct cm_kernel *k, struct cm_kernel_id *id, enum cm_kernel_event what)
{
    struct host *h = h_;
    struct program *p = &h->programs[id->program];

    switch (what) {
    case KERNEL_REQUEST:
        if (p->id) {
            cm_kernel_reject(k, id);
            cm_kernel_destroy(k, id);
        } else {
            p->id = id;
            p->state = CONNECTING;
            cm_kernel_accept(k, id, p->qpn, &p->region, sizeof p->region, now_usec());
        }
        break;
    case KERNEL_RESPONSE: cm_kernel_confirm(k, id); break;
    case KERNEL_CONNECTED:
        p->state = CONNECTED;
        p->n_connected++;
        break;
    case KERNEL_DISCONNECTED:
        p->n_disconnected++;
        cm_kernel_disconnect(k, id, now_usec());
        end_connection(h, id, DISCONNECTED);
        break;
    case KERNEL_REJECTED: end_connection(h, id, REJECTED); break;
    case KERNEL_UNREACHABLE: end_connection(h, id, UNREACHABLE); break;
    }
}

static void
gave_up(void *h_, struct cm_kernel *k, const struct cm_kernel_id *id)
{
    (void) h_;
    (void) k;
    (void) id; /* an event follows. */
}

/* A packet for no queue pair. */
static void
packet_input(void *h_, const uint8_t *ip, size_t len, uint64_t now)
{
    uint8_t frame[sizeof(struct eth_hdr) + CM_PACKET_LEN] = {0};
    struct eth_hdr *eth = (struct eth_hdr *) frame;
    struct host *h = h_;
    struct parsed parsed;
    struct cm_msg m;

    if (len != CM_PACKET_LEN) {
        h->n_others++;
        return;
    }
    eth->type = be16_put(ETH_TYPE_IP6);
    memcpy(eth + 1, ip, len);
    if (parse_frame(frame, sizeof frame, &parsed) || !cm_is(frame, &parsed)
        || cm_parse(frame, &parsed, &m)) {
        h->n_others++;
        return;
    }
    h->n_heard++;
    cm_kernel_input(&h->kernel, &((const struct ip6_hdr_wire *) ip)->src, &m, now);
}

/* Does what is due, and tells when more is. */
static uint64_t
run_kernels(uint64_t now)
{
    uint64_t next = UINT64_MAX;

    for (size_t i = 0; i < n_hosts; i++) {
        cm_kernel_timer(&hosts[i]->kernel, now);
        uint64_t deadline = cm_kernel_deadline(&hosts[i]->kernel);
        next = deadline < next ? deadline : next;
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
        if (!strcmp(hosts[i]->name, name)) {
            return hosts[i];
        }
    }
    return NULL;
}

static const char *
add_host(char *words[])
{
    struct in6_addr address;

    if (n_hosts == MAX_HOSTS || inet_pton(AF_INET6, words[1], &address) != 1) {
        return "too many hosts, or no address";
    }
    struct host *h = calloc(1, sizeof *h);
    if (!h) {
        abort();
    }
    int error = model_host_open(&h->model, &address);
    if (error) {
        free(h);
        return strerror(error);
    }
    snprintf(h->name, sizeof h->name, "%s", words[0]);
    h->model.other = packet_input;
    h->model.other_aux = h;
    h->kernel = (struct cm_kernel){
        .addr = address,
        .guid = 0x100 + n_hosts,
        .aux = h,
        .send = send_msg,
        .event = event,
        .gave_up = gave_up,
    };
    /* Another one in each run: copies of earlier messages are none of this one's. */
    cm_kernel_boot(&h->kernel, (uint32_t) now_usec() | 1);
    hosts[n_hosts++] = h;
    return NULL;
}

/* HOST NUMBER: a program without a connection; NULL: there is no such host, or it has one. */
static struct program *
idle_program(char *words[], struct host **h, unsigned *number)
{
    *h = find_host(words[0]);
    *number = (unsigned) strtoul(words[1], NULL, 0);
    return *h && *number < MAX_PROGRAMS && !(*h)->programs[*number].id ? &(*h)->programs[*number]
                                                                       : NULL;
}

static const char *
do_listen(char *words[])
{
    struct host *h;
    unsigned number;
    struct program *p = idle_program(words, &h, &number);

    if (!p) {
        return "no such host, no such number, or it has a connection";
    }
    p->state = LISTENING;
    p->qpn = (uint32_t) strtoul(words[2], NULL, 0);
    p->region.va = be64_put(strtoull(words[3], NULL, 0));
    p->region.rkey = be32_put((uint32_t) strtoul(words[4], NULL, 0));
    p->region.len = be64_put(strtoull(words[5], NULL, 0));
    h->kernel.listens[number] = true;
    return NULL;
}

static const char *
do_connect(char *words[])
{
    struct in6_addr proxy;
    struct host *h;
    unsigned number;
    struct program *p = idle_program(words, &h, &number);

    if (!p || h->kernel.listens[number] || inet_pton(AF_INET6, words[3], &proxy) != 1) {
        return "no such host, no such number, it listens or has a connection, or no address";
    }
    p->state = CONNECTING;
    p->qpn = (uint32_t) strtoul(words[2], NULL, 0);
    p->id = cm_kernel_connect(&h->kernel, &proxy, (uint16_t) strtoul(words[4], NULL, 0), p->qpn,
                              number, now_usec());
    return NULL;
}

static const char *
do_disconnect(char *words[])
{
    struct host *h = find_host(words[0]);
    unsigned number = (unsigned) strtoul(words[1], NULL, 0);

    if (!h || number >= MAX_PROGRAMS || h->programs[number].state != CONNECTED) {
        return "no such host, no such number, or it is not connected";
    }
    h->kernel.listens[number] = false;
    cm_kernel_disconnect(&h->kernel, h->programs[number].id, now_usec());
    return NULL;
}

/* {HOST: {"sent": messages, "heard", "others": packets that are none,
 *         "programs": {NUMBER: {"state", "connected": how often, "disconnected"}}}} */
static const char *
show(char *words[])
{
    (void) words;
    printf("{");
    for (size_t i = 0; i < n_hosts; i++) {
        const struct host *h = hosts[i];
        const char *comma = "";

        printf("%s\"%s\": {\"sent\": %" PRIu64 ", \"heard\": %" PRIu64 ", \"others\": %" PRIu64
               ", \"programs\": {",
               i ? ", " : "", h->name, h->n_sent, h->n_heard, h->n_others);
        for (unsigned j = 0; j < MAX_PROGRAMS; j++) {
            const struct program *p = &h->programs[j];

            if (p->state != NONE) {
                printf("%s\"%u\": {\"state\": \"%s\", \"connected\": %u, \"disconnected\": %u}",
                       comma, j, state_names[p->state], p->n_connected, p->n_disconnected);
                comma = ", ";
            }
        }
        printf("}}");
    }
    puts("}");
    return NULL;
}

static const struct command commands[] = {
    {"host", 2, add_host, false},      {"listen", 6, do_listen, false},
    {"connect", 5, do_connect, false}, {"disconnect", 2, do_disconnect, false},
    {"show", 0, show, true},           {0},
};

int
main(void)
{
    struct pollfd fds[1 + MAX_HOSTS];

    pool = packet_pool_create(N_PACKETS);
    for (;;) {
        uint64_t next = run_kernels(now_usec());
        uint64_t now = now_usec();
        uint64_t wait = next == UINT64_MAX ? USEC_PER_SEC : next > now ? next - now : 0;
        struct timespec ts = {(time_t) (wait / USEC_PER_SEC), (long) (wait % USEC_PER_SEC) * 1000};
        size_t n = n_hosts;

        fds[0] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
        for (size_t i = 0; i < n; i++) {
            fds[1 + i] = (struct pollfd){.fd = hosts[i]->model.rx_fd, .events = POLLIN};
        }
        if (ppoll(fds, 1 + n, &ts, NULL) < 0 && errno != EINTR) {
            perror("castcm: poll");
            return 1;
        }
        for (size_t i = 0; i < n; i++) {
            if (fds[1 + i].revents) {
                model_host_receive(&hosts[i]->model, now_usec());
            }
        }
        if (fds[0].revents && !commands_read(commands)) {
            return 0;
        }
    }
}
