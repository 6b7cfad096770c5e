/* SPDX-License-Identifier: Apache-2.0
 *
 * castmodel: one source and many receivers as model RC endpoints in one process, where
 * castbench has rdma_rxe.  It joins a group as any program does (docs/joining.md) and
 * needs no RDMA.
 *
 * Blocks of the source go to the same place in every receiver's region.  At the end every
 * byte is compared, and what the endpoints have seen is printed as JSON.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/content.h"
#include "bench/registry.h"
#include "tests/net/model-host.h"

#define EXIT_USAGE         1
#define EXIT_RUN           2
#define MAX_RECEIVERS      88
#define MAX_SIZE           (1u << 20)
#define REGION_SIZE        (1u << 20) /* at most; blocks go round in it. */
#define USEC_PER_SEC       UINT64_C(1000000)
/* Of unicast connections; a group has its own. */
#define UNICAST_QP_TIMEOUT 18

static const char usage[] =
    "usage: castmodel [--group G] --source H --receivers R1,R2,... [options]\n"
    "Without a group there is one connection to each receiver.\n"
    "  -s, --size BYTES       of a block, 1..1048576 (default 65536)\n"
    "  -n, --iters COUNT      blocks; 0: until SIGTERM (default 100)\n"
    "  -t, --tx-depth DEPTH   blocks outstanding, 1..256 (default 16)\n"
    "  -m, --mtu MTU          path MTU without a group (default 1024)\n"
    "      --op NAME          write (default), write_imm, send or send_imm\n"
    "      --gap USEC         between packets of a connection (default 0)\n"
    "      --seed N           of the bytes (default 1)\n"
    "      --timeout S        give up after S seconds without progress (default 30)\n"
    "exit status: 0 every receiver has every byte, 1 usage, 2 it has not or the run failed\n";

struct options {
    const char *group, *source;
    char *receivers[MAX_RECEIVERS];
    unsigned n_receivers;
    uint32_t size;
    uint64_t count;
    unsigned depth;
    uint32_t mtu;
    enum rc_op op;
    uint64_t gap;
    uint64_t seed;
    unsigned timeout;
};

/* A connection of the source. */
struct lane {
    struct rc_endpoint *ep;
    uint64_t va;
    uint32_t rkey;
    uint64_t posted, done;
    enum rc_status status; /* the first that is not success. */
};

struct receiver {
    struct model_host host;
    struct rc_endpoint *ep;
    uint8_t *region;
    uint64_t n_buffers; /* posted. */
    size_t bytes_ok;
};

struct run {
    struct options options;
    struct content content;
    struct rc_config config; /* what all endpoints have in common. */
    uint32_t epoch;
    struct model_host source;
    uint8_t *buf;
    unsigned n_lanes;
    struct lane lanes[MAX_RECEIVERS];
    struct receiver receivers[MAX_RECEIVERS];
    uint64_t n_stamped, n_completed;
    double seconds;
};

static volatile sig_atomic_t stop;
static sigset_t waiting_mask; /* of signals, while waiting: SIGTERM comes only then. */

static void
on_signal(int signo)
{
    (void) signo;
    stop = 1;
}

static void
catch_sigterm(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t term;

    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, &waiting_mask);
    sigaction(SIGTERM, &action, NULL);
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

    if (registry_host_address(name, &address, error, sizeof error)) {
        fail("%s", error);
    }
    int status = model_host_open(h, &address);
    if (status) {
        fail("%s: %s", name, strerror(status));
    }
}

static void
lane_complete(void *aux, uint64_t id, enum rc_status status)
{
    struct lane *lane = aux;

    (void) id;
    lane->done++;
    if (lane->status == RC_WC_SUCCESS) {
        lane->status = status;
    }
}

static void
add_lane(struct run *r, const struct in6_addr *peer, uint32_t dest_qpn)
{
    struct rc_config config = r->config;
    struct lane *lane = &r->lanes[r->n_lanes];

    config.peer = *peer;
    config.qpn = source_qpn(r->n_lanes++);
    config.dest_qpn = dest_qpn;
    lane->ep = model_host_add(&r->source, config, lane_complete, lane);
}

static void
add_receiver(struct run *r, unsigned i, const struct in6_addr *peer, uint32_t dest_qpn)
{
    struct rc_config config = r->config;
    struct receiver *receiver = &r->receivers[i];

    config.peer = *peer;
    config.qpn = receiver_qpn(i);
    config.dest_qpn = dest_qpn;
    config.region = receiver->region;
    config.region_len = r->content.region_len;
    config.va = receiver_va(i);
    config.rkey = receiver_rkey(i);
    receiver->ep = model_host_add(&receiver->host, config, NULL, NULL);
}

/* The order of docs/joining.md, with all roles in one process. */
static void
join_group(struct run *r)
{
    const struct options *o = &r->options;
    struct group_info group;
    char error[512];

    if (registry_source_set(o->group, o->source, source_qpn(0), error, sizeof error)
        || registry_group_show(o->group, &group, error, sizeof error)) {
        fail("%s", error);
    }
    r->epoch = group.epoch;
    r->config.mtu = group.mtu;
    r->config.start_psn = psn_make(group.start_psn);
    r->config.timeout_usec = (UINT64_C(4096) << group.qp_timeout) / 1000;
    add_lane(r, &group.proxy, group.designated_qpn);
    r->lanes[0].rkey = group.designated_rkey;
    for (unsigned i = 0; i < o->n_receivers; i++) {
        struct member_info member = {
            .host = o->receivers[i],
            .qpn = receiver_qpn(i),
            .rkey = receiver_rkey(i),
            .va = receiver_va(i),
            .len = r->content.region_len,
        };
        add_receiver(r, i, &group.proxy, group.designated_qpn);
        if (registry_member_add(o->group, &member, group.epoch, error, sizeof error)) {
            fail("%s", error);
        }
    }
    if (registry_group_wait(o->group, o->n_receivers, group.epoch, o->timeout, error,
                            sizeof error)) {
        fail("%s", error);
    }
}

static void
connect_unicast(struct run *r)
{
    const struct options *o = &r->options;

    r->config.mtu = o->mtu;
    r->config.start_psn = psn_make((uint32_t) (o->seed * 0x9e3779b1));
    r->config.timeout_usec = (UINT64_C(4096) << UNICAST_QP_TIMEOUT) / 1000;
    for (unsigned i = 0; i < o->n_receivers; i++) {
        add_lane(r, &r->receivers[i].host.address, receiver_qpn(i));
        r->lanes[i].va = receiver_va(i);
        r->lanes[i].rkey = receiver_rkey(i);
        add_receiver(r, i, &r->source.address, source_qpn(i));
    }
}

/* Keeps receive buffers posted, ahead of what the source may have outstanding. */
static void
post_buffers(struct run *r, struct receiver *receiver)
{
    const struct content *c = &r->content;

    while (rc_post_recv(receiver->ep, receiver->region + content_block_ofs(c, receiver->n_buffers),
                        c->size)) {
        receiver->n_buffers++;
    }
}

static void
prepare(struct run *r)
{
    const struct options *o = &r->options;
    uint64_t n_slots = REGION_SIZE / o->size;

    n_slots = o->count && o->count < n_slots ? o->count : n_slots;
    r->content = content_init(o->size, n_slots, 0);
    r->content.count = o->count ? o->count : UINT64_MAX;
    r->config.retry_cnt = r->config.rnr_retry = RC_RETRY_FOREVER;
    r->config.min_rnr_timer = 12;
    r->config.gap_usec = o->gap;
    r->buf = malloc(r->content.region_len);
    if (!r->buf) {
        fail("out of memory");
    }
    content_generate(&r->content, r->buf, o->seed);
    open_host(&r->source, o->source);
    for (unsigned i = 0; i < o->n_receivers; i++) {
        struct receiver *receiver = &r->receivers[i];

        open_host(&receiver->host, o->receivers[i]);
        receiver->region = malloc(r->content.region_len);
        if (!receiver->region) {
            fail("out of memory");
        }
        /* A byte that never arrives must not be right by chance. */
        for (size_t k = 0; k < r->content.region_len; k++) {
            receiver->region[k] = (uint8_t) ~r->buf[k];
        }
    }
    if (o->group) {
        join_group(r);
    } else {
        connect_unicast(r);
    }
    for (unsigned i = 0; i < o->n_receivers; i++) {
        post_buffers(r, &r->receivers[i]);
    }
}

/*
 * Transfer.
 */

/* Posts what depth and slots allow: no lane may be ahead of another by more than a round,
 * since they share the buffer. */
static void
post(struct run *r, uint64_t now)
{
    const struct content *c = &r->content;
    uint64_t all_done = UINT64_MAX;

    for (unsigned i = 0; i < r->n_lanes; i++) {
        all_done = r->lanes[i].done < all_done ? r->lanes[i].done : all_done;
    }
    for (unsigned i = 0; i < r->n_lanes; i++) {
        struct lane *lane = &r->lanes[i];

        while (lane->posted < c->count && lane->posted < all_done + c->n_slots
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
            lane->posted++;
        }
    }
}

/* Waits for packets until 'deadline' and lets the endpoints take them. */
static void
receive(struct run *r, uint64_t deadline)
{
    struct pollfd fds[1 + MAX_RECEIVERS];
    unsigned n = r->options.n_receivers;
    uint64_t now = now_usec();
    uint64_t wait = deadline > now ? deadline - now : 0;
    struct timespec ts = {(time_t) (wait / USEC_PER_SEC), (long) (wait % USEC_PER_SEC) * 1000};

    fds[n] = (struct pollfd){.fd = r->source.rx_fd, .events = POLLIN};
    for (unsigned i = 0; i < n; i++) {
        fds[i] = (struct pollfd){.fd = r->receivers[i].host.rx_fd, .events = POLLIN};
    }
    if (ppoll(fds, n + 1, &ts, &waiting_mask) <= 0) {
        return;
    }
    for (unsigned i = 0; i < n; i++) {
        if (fds[i].revents) {
            model_host_receive(&r->receivers[i].host, now_usec());
            post_buffers(r, &r->receivers[i]);
        }
    }
    if (fds[n].revents) {
        model_host_receive(&r->source, now_usec());
    }
}

static bool
finished(const struct run *r)
{
    for (unsigned i = 0; i < r->n_lanes; i++) {
        if (r->lanes[i].done < r->content.count) {
            return false;
        }
    }
    return true;
}

/* Lets every lane that has to do something, and tells when the next one has. */
static uint64_t
run_timers(struct run *r)
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

static void
transfer(struct run *r)
{
    uint64_t start = now_usec(), progress_at = start, last = 0;

    while (!finished(r)) {
        uint64_t now = now_usec();
        uint64_t give_up = progress_at + r->options.timeout * USEC_PER_SEC;

        if (now >= give_up) {
            fail("no completion for %u s, after %" PRIu64, r->options.timeout, r->n_completed);
        }
        if (stop) {
            r->content.count = r->n_stamped;
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

/* Returns whether all receivers have all bytes. */
static bool
compare(struct run *r)
{
    const struct content *c = &r->content;
    uint64_t n_written = r->n_stamped < c->n_slots ? r->n_stamped : c->n_slots;
    size_t len = n_written * c->size;
    bool all_right = true;

    for (unsigned i = 0; i < r->options.n_receivers; i++) {
        struct receiver *receiver = &r->receivers[i];
        size_t first_bad;

        receiver->bytes_ok = content_compare(receiver->region, r->buf, len, &first_bad);
        all_right = all_right && receiver->bytes_ok == len;
    }
    return all_right;
}

static void
print_endpoint(const struct rc_endpoint *ep, uint64_t n_stray)
{
    struct rc_info info;

    rc_get_info(ep, &info);
    printf("\"expected\": %" PRIu32 ", \"una\": %" PRIu32 ", \"next\": %" PRIu32 ", ",
           info.expected.v, info.una.v, info.next.v);
    printf("\"requests\": %" PRIu64 ", \"duplicates\": %" PRIu64 ", \"ahead\": %" PRIu64 ", ",
           info.n_requests, info.n_duplicates, info.n_ahead);
    printf("\"acks\": %" PRIu64 ", \"naks\": %" PRIu64 ", \"sent\": %" PRIu64 ", ", info.n_acks,
           info.n_naks, info.n_sent);
    printf("\"retries\": %" PRIu64 ", \"responses\": %" PRIu64 ", ", info.n_retries,
           info.n_responses);
    printf("\"dropped\": %" PRIu64 ", \"wrong_source\": %" PRIu64 ", \"stray\": %" PRIu64 "}",
           info.n_dropped, info.n_wrong_source, n_stray);
}

static void
print_result(const struct run *r, bool ok)
{
    const struct options *o = &r->options;

    printf("{\"ok\": %s, \"epoch\": %" PRIu32 ", \"mtu\": %" PRIu32 ", \"start_psn\": %" PRIu32
           ",\n",
           ok ? "true" : "false", r->epoch, r->config.mtu, r->config.start_psn.v);
    printf(" \"count\": %" PRIu64 ", \"size\": %" PRIu32 ", \"region_len\": %zu, ", r->n_stamped,
           o->size, r->content.region_len);
    printf("\"seconds\": %.6f,\n \"lanes\": [", r->seconds);
    for (unsigned i = 0; i < r->n_lanes; i++) {
        printf("%s\n  {\"completed\": %" PRIu64 ", ", i ? "," : "", r->lanes[i].done);
        print_endpoint(r->lanes[i].ep, r->source.n_stray);
    }
    printf("],\n \"receivers\": {");
    for (unsigned i = 0; i < o->n_receivers; i++) {
        const struct receiver *receiver = &r->receivers[i];

        printf("%s\n  \"%s\": {\"bytes_ok\": %zu, ", i ? "," : "", o->receivers[i],
               receiver->bytes_ok);
        print_endpoint(receiver->ep, receiver->host.n_stray);
    }
    printf("}}\n");
}

/*
 * Options.
 */

static void __attribute__((noreturn)) bad_usage(const char *option, const char *value)
{
    fprintf(stderr, "castmodel: %s %s\n%s", option, value, usage);
    exit(EXIT_USAGE);
}

static uint64_t
number(const char *option, const char *text, uint64_t min, uint64_t max)
{
    char *end;

    errno = 0;
    unsigned long long v = strtoull(text, &end, 0);
    if (errno || end == text || *end || *text == '-' || v < min || v > max) {
        bad_usage(option, text);
    }
    return v;
}

static enum rc_op
operation(const char *text)
{
    static const char *const names[] = {
        [RC_OP_SEND] = "send",
        [RC_OP_SEND_IMM] = "send_imm",
        [RC_OP_WRITE] = "write",
        [RC_OP_WRITE_IMM] = "write_imm",
    };

    for (enum rc_op op = RC_OP_SEND; op <= RC_OP_WRITE_IMM; op++) {
        if (!strcmp(text, names[op])) {
            return op;
        }
    }
    bad_usage("--op", text);
}

/* Splits 'text' in place. */
static void
receivers(struct options *o, char *text)
{
    char *save = NULL;

    for (char *name = strtok_r(text, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
        if (o->n_receivers == MAX_RECEIVERS) {
            bad_usage("--receivers: too many, from", name);
        }
        o->receivers[o->n_receivers++] = name;
    }
}

static void
parse_options(struct options *o, int argc, char *argv[])
{
    enum { OPT_GROUP = 256, OPT_SOURCE, OPT_RECEIVERS, OPT_OP, OPT_GAP, OPT_SEED, OPT_TIMEOUT };
    static const struct option longs[] = {
        {"group", required_argument, NULL, OPT_GROUP},
        {"source", required_argument, NULL, OPT_SOURCE},
        {"receivers", required_argument, NULL, OPT_RECEIVERS},
        {"size", required_argument, NULL, 's'},
        {"iters", required_argument, NULL, 'n'},
        {"tx-depth", required_argument, NULL, 't'},
        {"mtu", required_argument, NULL, 'm'},
        {"op", required_argument, NULL, OPT_OP},
        {"gap", required_argument, NULL, OPT_GAP},
        {"seed", required_argument, NULL, OPT_SEED},
        {"timeout", required_argument, NULL, OPT_TIMEOUT},
        {NULL, 0, NULL, 0},
    };
    int c;

    while ((c = getopt_long(argc, argv, "s:n:t:m:", longs, NULL)) != -1) {
        switch (c) {
        case OPT_GROUP: o->group = optarg; break;
        case OPT_SOURCE: o->source = optarg; break;
        case OPT_RECEIVERS: receivers(o, optarg); break;
        case 's': o->size = (uint32_t) number("-s", optarg, 1, MAX_SIZE); break;
        case 'n': o->count = number("-n", optarg, 0, UINT32_MAX); break;
        case 't': o->depth = (unsigned) number("-t", optarg, 1, RC_QUEUE_SIZE); break;
        case 'm': o->mtu = (uint32_t) number("-m", optarg, 256, 4096); break;
        case OPT_OP: o->op = operation(optarg); break;
        case OPT_GAP: o->gap = number("--gap", optarg, 0, USEC_PER_SEC); break;
        case OPT_SEED: o->seed = number("--seed", optarg, 0, UINT64_MAX); break;
        case OPT_TIMEOUT: o->timeout = (unsigned) number("--timeout", optarg, 1, 3600); break;
        default: fputs(usage, stderr); exit(EXIT_USAGE);
        }
    }
    if (!o->source || !o->n_receivers || argc != optind) {
        bad_usage("needs", "--source and --receivers, and nothing else");
    }
}

int
main(int argc, char *argv[])
{
    static struct run run = {
        .options = {.size = 65536,
                    .count = 100,
                    .depth = 16,
                    .mtu = 1024,
                    .op = RC_OP_WRITE,
                    .seed = 1,
                    .timeout = 30},
    };

    parse_options(&run.options, argc, argv);
    catch_sigterm();
    prepare(&run);
    transfer(&run);
    bool ok = compare(&run);
    print_result(&run, ok);
    return ok ? 0 : EXIT_RUN;
}
