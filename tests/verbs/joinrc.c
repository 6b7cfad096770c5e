/* SPDX-License-Identifier: Apache-2.0
 *
 * A verbs program that takes part in a group with libibverbs and the castctl
 * command alone.  It is the example of docs/joining.md and, with the options
 * that make mistakes on purpose, a test tool.  How it runs castctl is in
 * joinrc-castctl.c, what it sends and receives in joinrc-messages.c.
 *
 * A source goes through: create QP, INIT, `source set`, `group show`, RTR, RTS,
 * `group wait`, post.  A receiver: register the region, create QP, INIT,
 * `group show`, RTR, RTS, `member add --epoch`, and then nothing: the data
 * arrives.  When the group starts a new epoch, the receiver takes its QP through
 * RESET and registers again; the QP keeps its number.
 *
 * A receiver is steered through its standard input, a word a line: "dump" writes
 * the region to --out, "recv" posts the receives that --receives held back.  End
 * of input or SIGTERM dumps and ends.  Both roles print "key value" lines.
 */
#include "tests/verbs/joinrc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct {
    bool source, receiver;
    const char *group, *host, *file, *out, *messages;
    union ibv_gid address;
    unsigned size, depth, members, timeout, receives, rnr_timer;
    size_t len; /* receiver: bytes of the region. */
    enum op op;
    bool bad_rkey, past_region, no_access, short_recv, keep_sending, keep;
} opt = {
    .size = 65536, .depth = 16, .members = 1, .timeout = 30, .receives = 1024, .rnr_timer = 12};

static struct ibv_context *ctx;
static int gid_index;
static struct ibv_pd *pd;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static unsigned char *buf;
static size_t buf_len;
static struct messages messages; /* to be sent, or to be expected. */

static volatile sig_atomic_t told_to_end;

void
die(int code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fprintf(stderr, "joinrc %s: ", opt.host ? opt.host : "");
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(code);
}

static double
now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double) ts.tv_sec + (double) ts.tv_nsec / 1e9;
}

/*
 * Verbs
 */

/* Finds the device and GID index that have the host's address. */
static void
device_open(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);

    for (int i = 0; list && list[i]; i++) {
        struct ibv_port_attr port;
        struct ibv_gid_entry gid;

        ctx = ibv_open_device(list[i]);
        if (!ctx) {
            continue;
        }
        if (!ibv_query_port(ctx, 1, &port)) {
            for (gid_index = 0; gid_index < port.gid_tbl_len; gid_index++) {
                if (!ibv_query_gid_ex(ctx, 1, (uint32_t) gid_index, &gid, 0)
                    && gid.gid_type == IBV_GID_TYPE_ROCE_V2 /* NICs have v1, too. */
                    && !memcmp(&gid.gid, &opt.address, sizeof gid.gid)) {
                    ibv_free_device_list(list);
                    return;
                }
            }
        }
        ibv_close_device(ctx);
    }
    die(EXIT_USAGE, "no RDMA device has this address in its GID table");
}

static void
resources_create(void)
{
    int access =
        opt.receiver ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_LOCAL_WRITE;

    device_open();
    pd = ibv_alloc_pd(ctx);
    mr = pd ? ibv_reg_mr(pd, buf, buf_len, access) : NULL;
    channel = ibv_create_comp_channel(ctx);
    cq = channel ? ibv_create_cq(ctx, 1024, NULL, channel, 0) : NULL;
    if (!mr || !cq) {
        die(EXIT_USAGE, "cannot create verbs resources: %s", strerror(errno));
    }
    struct ibv_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = opt.depth, .max_recv_wr = 512, .max_send_sge = 1, .max_recv_sge = 1},
    };
    qp = ibv_create_qp(pd, &init);
    if (!qp) {
        die(EXIT_USAGE, "cannot create QP: %s", strerror(errno));
    }
}

static void
qp_modify(struct ibv_qp_attr *attr, int mask, const char *what)
{
    int error = ibv_modify_qp(qp, attr, mask);

    if (error) {
        die(EXIT_USAGE, "QP to %s: %s", what, strerror(error));
    }
}

/* READ and ATOMIC stay disabled: a group cannot carry them. */
static void
qp_to_init(void)
{
    bool writable = opt.receiver && !opt.no_access;
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qp_access_flags = writable ? IBV_ACCESS_REMOTE_WRITE : 0,
    };
    qp_modify(&attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "INIT");
}

static enum ibv_mtu
mtu_enum(uint32_t bytes)
{
    enum ibv_mtu mtu = IBV_MTU_256;

    while (mtu < IBV_MTU_4096 && 128u << mtu < bytes) {
        mtu++;
    }
    return mtu;
}

/* The peer of every QP, source's and receivers', is the group: its Proxy
 * Address, its Designated QPN, and its start PSN in both directions. */
static void
qp_connect(const struct group *g)
{
    struct ibv_qp_attr rtr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = mtu_enum(g->mtu),
        .dest_qp_num = g->dest_qpn,
        .rq_psn = g->start_psn,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = (uint8_t) opt.rnr_timer,
        .ah_attr = {.is_global = 1,
                    .port_num = 1,
                    .grh =
                        {
                            .dgid = g->proxy,
                            .sgid_index = (uint8_t) gid_index,
                            .hop_limit = 64,
                        }},
    };
    qp_modify(&rtr,
              IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN
                  | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
              "RTR");
    struct ibv_qp_attr rts = {
        .qp_state = IBV_QPS_RTS,
        .sq_psn = g->start_psn,
        .timeout = (uint8_t) g->timeout,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .max_rd_atomic = 1,
    };
    qp_modify(&rts,
              IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY
                  | IBV_QP_MAX_QP_RD_ATOMIC,
              "RTS");
}

/* Next completion, waiting until 'deadline' at most.  Returns false on timeout
 * or when told to end. */
static bool
next_completion(struct ibv_wc *wc, double deadline)
{
    for (;;) {
        /* Ask for an event, then look: nothing can fall between. */
        if (ibv_req_notify_cq(cq, 0)) {
            die(EXIT_USAGE, "cannot arm the completion queue");
        }
        if (ibv_poll_cq(cq, 1, wc) > 0) {
            return true;
        }
        double left = deadline - now();
        if (left <= 0 || told_to_end) {
            return false;
        }
        struct pollfd pfd = {.fd = channel->fd, .events = POLLIN};
        if (poll(&pfd, 1, left < 1 ? (int) (left * 1000) + 1 : 1000) > 0) {
            struct ibv_cq *event_cq;
            void *event_ctx;

            if (!ibv_get_cq_event(channel, &event_cq, &event_ctx)) {
                ibv_ack_cq_events(event_cq, 1);
            }
        }
    }
}

static void
messages_prepare(void)
{
    messages =
        opt.messages ? messages_parse(opt.messages) : messages_of_blocks(opt.op, buf_len, opt.size);
    if (messages.bytes > buf_len) {
        die(EXIT_USAGE, "--messages has %zu bytes, there is room or data for %zu", messages.bytes,
            buf_len);
    }
}

/*
 * Source
 */

/* Reads the file.  READ and ATOMIC need none; they ask for 8 bytes from the
 * region's start. */
static void
source_buffer(void)
{
    struct stat st;

    if (opt.op == OP_READ || opt.op == OP_ATOMIC) {
        buf_len = 8;
        buf = calloc(1, buf_len);
        return;
    }
    int fd = opt.file ? open(opt.file, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0 || fstat(fd, &st) || st.st_size <= 0) {
        die(EXIT_USAGE, "--file %s: missing, empty or unreadable", opt.file ? opt.file : "");
    }
    buf_len = (size_t) st.st_size;
    buf = malloc(buf_len);
    for (size_t n = 0; n < buf_len;) {
        ssize_t got = read(fd, buf + n, buf_len - n);
        if (got <= 0) {
            die(EXIT_USAGE, "%s: %s", opt.file, got ? strerror(errno) : "shorter than it was");
        }
        n += (size_t) got;
    }
    close(fd);
}

static void
post_message(size_t k, const struct group *g)
{
    const struct message *m = &messages.list[k];
    struct ibv_sge sge = {.addr = (uintptr_t) buf + m->ofs, .length = m->len, .lkey = mr->lkey};
    struct ibv_send_wr *bad, wr = message_request(&messages, k);

    wr.sg_list = &sge;
    wr.num_sge = m->len ? 1 : 0;
    uint64_t remote = opt.past_region ? g->region_len - m->len / 2 : m->ofs;
    uint32_t rkey = opt.bad_rkey ? g->rkey ^ 0x5a5a : g->rkey;

    if (m->op == OP_ATOMIC) {
        wr.wr.atomic.remote_addr = remote;
        wr.wr.atomic.rkey = rkey;
        wr.wr.atomic.compare_add = 1;
    } else {
        wr.wr.rdma.remote_addr = remote;
        wr.wr.rdma.rkey = rkey;
    }
    int error = ibv_post_send(qp, &wr, &bad);
    if (error) {
        die(EXIT_USAGE, "post message %zu: %s", k, strerror(error));
    }
}

static int
source_transfer(const struct group *g)
{
    size_t posted = 0, done = 0;
    double start = now();

    while (opt.keep_sending || done < messages.n) {
        while (posted - done < opt.depth && (opt.keep_sending || posted < messages.n)) {
            post_message(posted++ % messages.n, g);
        }
        struct ibv_wc wc;
        if (!next_completion(&wc, now() + opt.timeout)) {
            printf("completed %zu\n", done);
            if (told_to_end) {
                return 0;
            }
            die(EXIT_TIMEOUT, "no completion for %u s after message %zu", opt.timeout, done);
        }
        if (wc.status != IBV_WC_SUCCESS) {
            printf("completed %zu\nstatus %d %s\n", done, wc.status, ibv_wc_status_str(wc.status));
            return EXIT_COMPLETION + (int) wc.status;
        }
        done++;
    }
    printf("completed %zu\nseconds %.6f\nstatus 0 %s\n", done, now() - start,
           ibv_wc_status_str(IBV_WC_SUCCESS));
    return 0;
}

static int
source_run(void)
{
    char text[16384], qpn[16], members[16], epoch[16], timeout[16];

    source_buffer();
    messages_prepare();
    resources_create();
    qp_to_init();

    /* Before `group show`: it is this that may start a new epoch. */
    snprintf(qpn, sizeof qpn, "%u", qp->qp_num);
    if (CASTCTL(text, "source", "set", opt.group, "--host", opt.host, "--qpn", qpn)) {
        die(EXIT_REFUSED, "castctl source set failed");
    }
    struct group g = group_show(opt.group);
    qp_connect(&g);
    printf("qpn %u\nepoch %u\narmed\n", qp->qp_num, g.epoch);

    snprintf(members, sizeof members, "%u", opt.members);
    snprintf(epoch, sizeof epoch, "%u", g.epoch);
    snprintf(timeout, sizeof timeout, "%u", opt.timeout);
    if (CASTCTL(text, "--timeout", timeout, "group", "wait", opt.group, "--members", members,
                "--epoch", epoch)) {
        die(EXIT_REFUSED, "castctl group wait failed");
    }
    g = group_show(opt.group); /* the region's length is known once the members are. */
    if (messages_need_region(&messages) && !opt.past_region && messages.bytes > g.region_len) {
        die(EXIT_USAGE, "%zu bytes do not fit the group's region of %" PRIu64, messages.bytes,
            g.region_len);
    }
    printf("ready\n");
    return source_transfer(&g);
}

/*
 * Receiver
 */

static size_t n_posted; /* messages that the receives posted are for. */

static void
dump(void)
{
    int fd = open(opt.out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

    for (size_t n = 0; fd >= 0 && n < buf_len;) {
        ssize_t put = write(fd, buf + n, buf_len - n);
        if (put < 0) {
            die(EXIT_USAGE, "%s: %s", opt.out, strerror(errno));
        }
        n += (size_t) put;
    }
    if (fd < 0 || close(fd)) {
        die(EXIT_USAGE, "%s: %s", opt.out, strerror(errno));
    }
    printf("dumped\n");
}

/* Takes the QP, in whatever state, to RTS in the group's current epoch and
 * registers it there.  Returns the epoch. */
static uint32_t
receiver_arm(void)
{
    char text[16384], qpn[16], rkey[16], va[24], len[24], epoch[16];
    int status;

    snprintf(qpn, sizeof qpn, "%u", qp->qp_num);
    snprintf(rkey, sizeof rkey, "%u", opt.bad_rkey ? mr->rkey ^ 0x5a5a : mr->rkey);
    snprintf(va, sizeof va, "0x%" PRIx64, (uint64_t) (uintptr_t) buf);
    snprintf(len, sizeof len, "%zu", buf_len);
    for (int attempt = 0; attempt < 10; attempt++) {
        struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};

        struct group g = group_show(opt.group);
        qp_modify(&reset, IBV_QP_STATE, "RESET");
        qp_to_init();
        qp_connect(&g);
        n_posted = 0;
        receives_post(qp, mr, &messages, &n_posted, opt.receives, opt.short_recv);
        snprintf(epoch, sizeof epoch, "%u", g.epoch);
        status = CASTCTL(text, "member", "add", opt.group, opt.host, "--qpn", qpn, "--rkey", rkey,
                         "--va", va, "--len", len, "--epoch", epoch, "--may-exist",
                         opt.keep ? "--keep" : NULL);
        if (!status) {
            printf("qpn %u\nepoch %u\narmed\n", qp->qp_num, g.epoch);
            return g.epoch;
        }
        if (status != 2 || group_show(opt.group).epoch == g.epoch) {
            break;
        }
        /* The epoch moved on between `group show` and `member add`. */
    }
    die(EXIT_REFUSED, "castctl member add failed");
}

/* Does castd say of this host that its queue pair cannot go on? */
static bool
needs_restart(void)
{
    char text[16384], name[80];

    if (CASTCTL(text, "member", "list", opt.group)) {
        die(EXIT_REFUSED, "castctl member list failed");
    }
    snprintf(name, sizeof name, "\n%s ", opt.host);
    char *row = strstr(text, name);
    if (row) {
        row[1 + strcspn(row + 1, "\n")] = '\0';
    }
    return row && strstr(row, "restart needed");
}

/* The group may be in another epoch than the QP was set up for.  Returns the epoch. */
static uint32_t
receiver_follow(uint32_t epoch)
{
    uint32_t now = group_show(opt.group).epoch;

    if (!opt.keep) {
        return now == epoch ? epoch : receiver_arm();
    }
    if (needs_restart()) {
        return receiver_arm();
    }
    if (now != epoch) {
        printf("epoch %u\nkept\n", now);
    }
    return now;
}

/* Reads words from standard input.  Returns false at its end. */
static bool
receiver_command(void)
{
    char line[256];
    ssize_t n = read(STDIN_FILENO, line, sizeof line - 1);

    if (n <= 0) {
        return n < 0 && errno == EINTR;
    }
    line[n] = '\0';
    for (char *save, *word = strtok_r(line, "\n ", &save); word;
         word = strtok_r(NULL, "\n ", &save)) {
        if (!strcmp(word, "dump")) {
            dump();
        } else if (!strcmp(word, "recv")) {
            receives_post(qp, mr, &messages, &n_posted, SIZE_MAX, opt.short_recv);
            printf("posted\n");
        } else {
            die(EXIT_USAGE, "unknown command '%s'", word);
        }
    }
    return true;
}

static int
receiver_run(void)
{
    struct ibv_wc wc;

    buf_len = opt.len;
    buf = aligned_alloc(4096, (buf_len + 4095) & ~(size_t) 4095);
    if (!buf) {
        die(EXIT_USAGE, "no memory for %zu bytes", buf_len);
    }
    memset(buf, 0, buf_len);
    messages_prepare();
    resources_create();
    uint32_t epoch = receiver_arm();

    for (;;) {
        struct pollfd pfd = {.fd = STDIN_FILENO, .events = POLLIN};
        int readable = poll(&pfd, 1, 500);
        while (ibv_poll_cq(cq, 1, &wc) > 0) {
            receive_print(&wc);
        }
        if (told_to_end || (readable > 0 && !receiver_command())) {
            break;
        }
        epoch = receiver_follow(epoch);
    }
    dump();
    return 0;
}

/*
 * Options
 */

static const char usage[] =
    "usage: joinrc --source   --group G --host H --address A --file IN [-t DEPTH] [MESSAGES]\n"
    "       joinrc --receiver --group G --host H --address A --len BYTES --out FILE [MESSAGES]\n"
    "MESSAGES: what the source posts and receivers expect, the same at all:\n"
    "  --op OP [-s SIZE]    the whole file, in messages of SIZE bytes (default write, 65536)\n"
    "  --messages OP:LEN,...   these, one after another\n"
    "  OP is write, write-imm, send, send-imm, read or atomic\n"
    "  --members N          source: wait for N active members (default 1)\n"
    "  --timeout S          longest wait for anything (default 30)\n"
    "  --keep-sending       source: go on from the start until SIGTERM\n"
    "  --keep               receiver: its QP stays when another source comes\n"
    "  --receives N         receiver: post N receives, the others only when told (see below)\n"
    "  --rnr-timer CODE     receiver: what its RNR NAKs ask for, 0..31 (default 12)\n"
    "  --bad-rkey, --past-region    source: requests that must be refused\n"
    "  --bad-rkey, --no-access, --short-recv    receiver: refuses what it gets, having\n"
    "                       registered a wrong rkey, without remote access, with receives\n"
    "                       of half the size\n"
    "receiver's standard input: 'dump' writes FILE, 'recv' posts receives, end: dump and end\n"
    "exit: 0 done, 1 usage or device, 2 castctl refused, 3 timeout, 64+s completion status s\n";

static unsigned long
option_number(const char *name, const char *text, unsigned long min, unsigned long max)
{
    char *end;

    errno = 0;
    unsigned long v = strtoul(text, &end, 0);
    if (errno || *end || end == text || *text == '-' || v < min || v > max) {
        die(EXIT_USAGE, "%s %s: must be %lu..%lu", name, text, min, max);
    }
    return v;
}

enum {
    O_GROUP = 256,
    O_HOST,
    O_ADDRESS,
    O_FILE,
    O_OUT,
    O_LEN,
    O_OP,
    O_MESSAGES,
    O_MEMBERS,
    O_TIMEOUT,
    O_RECEIVES,
    O_RNR_TIMER,
};

static void
option_set(int c, const char *arg)
{
    switch (c) {
    case O_GROUP: opt.group = arg; break;
    case O_HOST: opt.host = arg; break;
    case O_FILE: opt.file = arg; break;
    case O_OUT: opt.out = arg; break;
    case O_OP: opt.op = op_parse(arg); break;
    case O_MESSAGES: opt.messages = arg; break;
    case O_RECEIVES: opt.receives = (unsigned) option_number("--receives", arg, 0, 1024); break;
    case O_RNR_TIMER: opt.rnr_timer = (unsigned) option_number("--rnr-timer", arg, 0, 31); break;
    case O_LEN: opt.len = option_number("--len", arg, 1, 1ul << 30); break;
    case O_MEMBERS: opt.members = (unsigned) option_number("--members", arg, 1, 1000); break;
    case O_TIMEOUT: opt.timeout = (unsigned) option_number("--timeout", arg, 1, 3600); break;
    case 's': opt.size = (unsigned) option_number("-s", arg, 1, 8u << 20); break;
    case 't': opt.depth = (unsigned) option_number("-t", arg, 1, 512); break;
    case O_ADDRESS:
        if (inet_pton(AF_INET6, arg, &opt.address) != 1) {
            die(EXIT_USAGE, "--address %s: not an IPv6 address", arg);
        }
        break;
    case 'h': fputs(usage, stdout); exit(0);
    default: fputs(usage, stderr); exit(EXIT_USAGE);
    }
}

static void
options_parse(int argc, char *argv[])
{
    /* Flags are written through these, hence ints. */
    static int source, receiver, bad_rkey, past_region, no_access, short_recv, keep_sending, keep;
    static const struct option options[] = {
        {"source", no_argument, &source, 1},
        {"receiver", no_argument, &receiver, 1},
        {"group", required_argument, NULL, O_GROUP},
        {"host", required_argument, NULL, O_HOST},
        {"address", required_argument, NULL, O_ADDRESS},
        {"file", required_argument, NULL, O_FILE},
        {"out", required_argument, NULL, O_OUT},
        {"len", required_argument, NULL, O_LEN},
        {"op", required_argument, NULL, O_OP},
        {"messages", required_argument, NULL, O_MESSAGES},
        {"members", required_argument, NULL, O_MEMBERS},
        {"timeout", required_argument, NULL, O_TIMEOUT},
        {"receives", required_argument, NULL, O_RECEIVES},
        {"rnr-timer", required_argument, NULL, O_RNR_TIMER},
        {"bad-rkey", no_argument, &bad_rkey, 1},
        {"past-region", no_argument, &past_region, 1},
        {"no-access", no_argument, &no_access, 1},
        {"short-recv", no_argument, &short_recv, 1},
        {"keep-sending", no_argument, &keep_sending, 1},
        {"keep", no_argument, &keep, 1},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int c;

    while ((c = getopt_long(argc, argv, "s:t:h", options, NULL)) != -1) {
        if (c) {
            option_set(c, optarg);
        }
    }
    opt.source = source;
    opt.receiver = receiver;
    opt.bad_rkey = bad_rkey;
    opt.past_region = past_region;
    opt.no_access = no_access;
    opt.short_recv = short_recv;
    opt.keep_sending = keep_sending;
    opt.keep = keep;
    if (source == receiver || !opt.group || !opt.host || optind != argc
        || (receiver && (!opt.len || !opt.out))) {
        fputs(usage, stderr);
        exit(EXIT_USAGE);
    }
}

static void
on_sigterm(int sig)
{
    (void) sig;
    told_to_end = 1;
}

int
main(int argc, char *argv[])
{
    struct sigaction sa = {.sa_handler = on_sigterm, .sa_flags = SA_RESTART};

    setvbuf(stdout, NULL, _IOLBF, 0);
    sigaction(SIGTERM, &sa, NULL);
    options_parse(argc, argv);
    return opt.source ? source_run() : receiver_run();
}
