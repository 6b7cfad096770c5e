/* SPDX-License-Identifier: Apache-2.0
 *
 * One run of castmodel (see model-run.h).
 *
 * One process is all hosts, so that nothing needs to be told from one to another.  It waits
 * for packets and for the earliest timer of a connection.
 */
#include "tests/net/model-run.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/castbench/registry.h"

#define REGION_SIZE   (1u << 20) /* at most; blocks go round in it. */
#define USEC_PER_SEC  UINT64_C(1000000)
#define NSEC_PER_USEC 1000
#define SLOW_USEC     (USEC_PER_SEC / 2)

static volatile sig_atomic_t stop, spoil;
static sigset_t waiting_mask; /* of signals, while waiting: ours come only then. */

static void
on_signal(int signo)
{
    *(signo == SIGTERM ? &stop : &spoil) = 1;
}

static void
catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t ours;

    sigemptyset(&ours);
    sigaddset(&ours, SIGTERM);
    sigaddset(&ours, SIGUSR1);
    sigprocmask(SIG_BLOCK, &ours, &waiting_mask);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
}

static uint64_t
now_usec(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t) ts.tv_sec * USEC_PER_SEC + (uint64_t) ts.tv_nsec / 1000;
}

static void __attribute__((noreturn, format(printf, 1, 2))) fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fputs("castmodel: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(EXIT_RUN);
}

/*
 * Setup.
 */

/* A value of its own for each receiver, so that one in another's place shows. */
static uint32_t
receiver_qpn(unsigned i)
{
    return 0x21 + 7 * i;
}

static uint32_t
receiver_rkey(unsigned i)
{
    return 0x5a00 + 3 * i;
}

static uint64_t
receiver_va(unsigned i)
{
    return UINT64_C(0x7f0000001000) + i * UINT64_C(0x10000000);
}

static uint32_t
source_qpn(unsigned lane)
{
    return 0x11 + lane;
}

static void
open_host(struct model_host *h, const char *name)
{
    struct in6_addr address;
    char error[512];

    if (registry_host_addresses(&name, 1, &address, error, sizeof error)) {
        fail("%s", error);
    }
    int status = model_host_open(h, &address);
    if (status) {
        fail("%s: %s", name, strerror(status));
    }
}

/* A host that is named again has one more connection. */
static void
open_receiver(struct model_run *r, unsigned i)
{
    const struct model_options *o = &r->options;
    struct receiver *receiver = &r->receivers[i];

    for (unsigned j = 0; j < i; j++) {
        if (!strcmp(o->receivers.names[j], o->receivers.names[i])) {
            if (o->group) {
                fail("%s is there twice", o->receivers.names[i]);
            }
            receiver->host = r->receivers[j].host;
            return;
        }
    }
    receiver->host = &receiver->own;
    open_host(receiver->host, o->receivers.names[i]);
}

static void
lane_complete(void *aux, uint64_t id, enum rc_status status)
{
    struct lane *lane = aux;

    (void) id;
    lane->done++;
    gap_end(&lane->gap, now_usec() * NSEC_PER_USEC, lane->posted > lane->done);
    if (lane->status == RC_WC_SUCCESS) {
        lane->status = status;
    }
}

static void
add_lane(struct model_run *r, const struct in6_addr *peer, uint32_t dest_qpn)
{
    struct rc_config config = r->config;
    struct lane *lane = &r->lanes[r->n_lanes];

    config.peer = *peer;
    config.qpn = source_qpn(r->n_lanes++);
    config.dest_qpn = dest_qpn;
    config.obey_usec = r->options.obey_usec;
    lane->ep = model_host_add(&r->source, config, lane_complete, lane);
}

static void
add_receiver(struct model_run *r, unsigned i, const struct in6_addr *peer, uint32_t dest_qpn)
{
    struct rc_config config = r->config;
    struct receiver *receiver = &r->receivers[i];

    config.peer = *peer;
    config.qpn = receiver_qpn(i);
    config.dest_qpn = dest_qpn;
    config.cnp_usec = r->options.cnp_usec;
    config.region = receiver->region;
    config.region_len = r->content.region_len;
    config.va = receiver_va(i);
    config.rkey = receiver_rkey(i);
    receiver->ep = model_host_add(receiver->host, config, NULL, NULL);
}

static bool
is_named(const struct model_names *n, const char *name)
{
    for (unsigned i = 0; i < n->n; i++) {
        if (!strcmp(n->names[i], name)) {
            return true;
        }
    }
    return false;
}

static void
register_receiver(struct model_run *r, unsigned i)
{
    struct rocecast_member member = {
        .size = sizeof member,
        .host = r->options.receivers.names[i],
        .qpn = receiver_qpn(i),
        .epoch = r->epoch,
        .address = receiver_va(i),
        .length = r->content.region_len,
        .rkey = receiver_rkey(i),
    };
    char error[512];

    if (registry_member_add(r->options.group, &member, error, sizeof error)) {
        fail("%s", error);
    }
}

/* The order of docs/joining.md, with all roles in one process. */
static void
join_group(struct model_run *r)
{
    const struct model_options *o = &r->options;
    struct rocecast_epoch group;
    char error[512];

    if (registry_source_set(o->group, o->source, source_qpn(0), &group, error, sizeof error)) {
        fail("%s", error);
    }
    r->epoch = group.epoch;
    r->config.mtu = group.mtu;
    r->config.start_psn = psn_make(group.start_psn);
    r->config.timeout_usec = (UINT64_C(4096) << group.qp_timeout) / 1000;
    add_lane(r, &group.proxy, group.designated_qpn);
    r->lanes[0].rkey = group.designated_rkey;
    for (unsigned i = 0; i < o->receivers.n; i++) {
        add_receiver(r, i, &group.proxy, group.designated_qpn);
        if (!is_named(&o->late, o->receivers.names[i])) {
            register_receiver(r, i);
        }
    }
    if (registry_group_wait(o->group, o->receivers.n - o->late.n, group.epoch, o->timeout, &group,
                            error, sizeof error)) {
        fail("%s", error);
    }
}

/* Queue pairs begin anywhere, so that PSNs tell them apart. */
static psn_t
start_psn(const struct model_options *o, unsigned lane)
{
    return psn_make((uint32_t) ((o->seed + 7 * lane) * 0x9e3779b1));
}

static void
connect_unicast(struct model_run *r)
{
    const struct model_options *o = &r->options;

    r->config.mtu = o->mtu;
    r->config.timeout_usec = (UINT64_C(4096) << o->qp_timeout) / 1000;
    for (unsigned i = 0; i < o->receivers.n; i++) {
        r->config.start_psn = start_psn(o, i);
        add_lane(r, &r->receivers[i].host->address, receiver_qpn(i));
        r->lanes[i].va = receiver_va(i);
        r->lanes[i].rkey = receiver_rkey(i);
        add_receiver(r, i, &r->source.address, source_qpn(i));
    }
    r->config.start_psn = start_psn(o, 0); /* which the report has. */
}

/* Keeps receive buffers posted, ahead of what the source may have outstanding. */
static void
post_buffers(struct model_run *r, struct receiver *receiver)
{
    const struct content *c = &r->content;

    while (rc_post_recv(receiver->ep, receiver->region + content_block_ofs(c, receiver->n_buffers),
                        c->size)) {
        receiver->n_buffers++;
    }
}

void
model_run_prepare(struct model_run *r)
{
    const struct model_options *o = &r->options;

    r->content = content_init(PATTERN_SEQ, o->size, o->count, REGION_SIZE, o->seed);
    r->n_blocks = o->count ? o->count : UINT64_MAX;
    r->config.retry_cnt = r->config.rnr_retry = RC_RETRY_FOREVER;
    r->config.min_rnr_timer = 12;
    r->config.gap_usec = o->gap;
    r->config.ecn = o->ecn;
    r->buf = malloc(r->content.region_len);
    if (!r->buf) {
        fail("out of memory");
    }
    content_generate(&r->content, r->buf);
    open_host(&r->source, o->source);
    for (unsigned i = 0; i < o->receivers.n; i++) {
        struct receiver *receiver = &r->receivers[i];

        open_receiver(r, i);
        receiver->region = malloc(r->content.region_len);
        if (!receiver->region) {
            fail("out of memory");
        }
        content_poison(&r->content, receiver->region, r->buf);
    }
    if (o->group) {
        join_group(r);
    } else {
        connect_unicast(r);
    }
    for (unsigned i = 0; i < o->receivers.n; i++) {
        post_buffers(r, &r->receivers[i]);
    }
}

/*
 * Transfer.
 */

/* Posts what depth and slots allow: no lane may be ahead of another by more than a round,
 * since they share the buffer. */
static void
post(struct model_run *r, uint64_t now)
{
    const struct content *c = &r->content;
    uint64_t all_done = UINT64_MAX;

    for (unsigned i = 0; i < r->n_lanes; i++) {
        all_done = r->lanes[i].done < all_done ? r->lanes[i].done : all_done;
    }
    for (unsigned i = 0; i < r->n_lanes; i++) {
        struct lane *lane = &r->lanes[i];

        while (lane->posted < r->n_blocks && lane->posted < all_done + c->n_slots
               && lane->posted - lane->done < r->options.depth) {
            if (lane->posted == r->n_stamped) {
                content_stamp(c, r->buf, r->n_stamped++);
            }
            size_t ofs = content_block_ofs(c, lane->posted);
            struct rc_wr wr = {
                .op = r->options.op,
                .data = r->buf + ofs,
                .len = c->size,
                .va = lane->va + ofs,
                .rkey = lane->rkey,
            };
            if (!rc_post(lane->ep, &wr, now)) {
                break;
            }
            gap_begin(&lane->gap, now * NSEC_PER_USEC);
            lane->posted++;
        }
    }
}

/* Waits for packets until 'deadline' and lets the endpoints take them. */
static void
receive(struct model_run *r, uint64_t deadline)
{
    struct pollfd fds[1 + MODEL_MAX_RECEIVERS];
    unsigned n = r->options.receivers.n;
    uint64_t now = now_usec();
    uint64_t wait = deadline > now ? deadline - now : 0;
    struct timespec ts = {(time_t) (wait / USEC_PER_SEC), (long) (wait % USEC_PER_SEC) * 1000};

    fds[n] = (struct pollfd){.fd = r->source.rx_fd, .events = POLLIN};
    for (unsigned i = 0; i < n; i++) {
        const struct receiver *receiver = &r->receivers[i];

        bool is_polled = !receiver->silent && receiver->host == &receiver->own;

        fds[i] = (struct pollfd){.fd = is_polled ? receiver->host->rx_fd : -1, .events = POLLIN};
    }
    if (ppoll(fds, n + 1, &ts, &waiting_mask) <= 0) {
        return;
    }
    for (unsigned i = 0; i < n; i++) {
        if (fds[i].revents) {
            model_host_receive(r->receivers[i].host, now_usec());
        }
    }
    for (unsigned i = 0; i < n; i++) {
        post_buffers(r, &r->receivers[i]);
    }
    if (fds[n].revents) {
        model_host_receive(&r->source, now_usec());
    }
}

static struct receiver *
find_receiver(struct model_run *r, const char *name)
{
    for (unsigned i = 0; i < r->options.receivers.n; i++) {
        if (!strcmp(r->options.receivers.names[i], name)) {
            return &r->receivers[i];
        }
    }
    fail("%s is none of the receivers", name);
}

/* Some receivers join or go out of order, as they were told. */
static void
spoil_receivers(struct model_run *r)
{
    for (unsigned i = 0; i < r->options.receivers.n; i++) {
        if (is_named(&r->options.late, r->options.receivers.names[i])) {
            register_receiver(r, i);
        }
    }
    for (unsigned i = 0; i < r->options.silent.n; i++) {
        find_receiver(r, r->options.silent.names[i])->silent = true;
    }
    for (unsigned i = 0; i < r->options.slow.n; i++) {
        struct receiver *receiver = find_receiver(r, r->options.slow.names[i]);

        receiver->slow = !receiver->slow;
        rc_slow(receiver->ep, receiver->slow ? SLOW_USEC : 0);
    }
    for (unsigned i = 0; i < r->options.refuse.n; i++) {
        rc_fail_next(find_receiver(r, r->options.refuse.names[i])->ep, AETH_NAK_REM_ACCESS);
    }
}

static bool
finished(const struct model_run *r)
{
    for (unsigned i = 0; i < r->n_lanes; i++) {
        if (r->lanes[i].done < r->n_blocks) {
            return false;
        }
    }
    return true;
}

/* Lets every lane that has to do something, and tells when the next one has. */
static uint64_t
run_timers(struct model_run *r)
{
    uint64_t now = now_usec(), next = UINT64_MAX, total = 0;

    for (unsigned i = 0; i < r->n_lanes; i++) {
        if (now >= rc_deadline(r->lanes[i].ep)) {
            rc_timer(r->lanes[i].ep, now);
        }
        uint64_t deadline = rc_deadline(r->lanes[i].ep);
        next = deadline < next ? deadline : next;
        if (r->lanes[i].status != RC_WC_SUCCESS) {
            fail("completion %" PRIu64 " of connection %u has status %d", r->lanes[i].done, i,
                 r->lanes[i].status);
        }
        total += r->lanes[i].done;
    }
    r->n_completed = total;
    return next;
}

void
model_run_transfer(struct model_run *r)
{
    uint64_t start = now_usec(), progress_at = start, last = 0;

    catch_signals();
    while (!finished(r)) {
        uint64_t now = now_usec();
        uint64_t give_up = progress_at + r->options.timeout * USEC_PER_SEC;

        if (now >= give_up) {
            fail("no completion for %u s, after %" PRIu64, r->options.timeout, r->n_completed);
        }
        if (spoil) {
            spoil = 0;
            spoil_receivers(r);
        }
        if (stop) {
            r->n_blocks = r->n_stamped;
        }
        post(r, now);
        uint64_t deadline = run_timers(r);
        receive(r, deadline < give_up ? deadline : give_up);
        if (r->n_completed != last) {
            last = r->n_completed;
            progress_at = now_usec();
        }
    }
    r->seconds = (double) (now_usec() - start) / (double) USEC_PER_SEC;
}

/*
 * Result.
 */

bool
model_run_compare(struct model_run *r)
{
    const struct content *c = &r->content;
    const struct block_range blocks = {0, r->n_stamped};
    bool all_right = true;

    content_generate(c, r->buf);
    content_finish(c, r->buf, blocks);
    for (unsigned i = 0; i < r->options.receivers.n; i++) {
        struct receiver *receiver = &r->receivers[i];
        size_t first_bad;
        char why[128];

        receiver->bytes_ok =
            content_compare(c, receiver->region, r->buf, blocks, &first_bad, why, sizeof why);
        if (receiver->bytes_ok < c->region_len) {
            fprintf(stderr, "castmodel: %s: offset %zu: %s\n", r->options.receivers.names[i],
                    first_bad, why);
            all_right = false;
        }
    }
    return all_right;
}
