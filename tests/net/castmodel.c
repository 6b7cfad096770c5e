/* SPDX-License-Identifier: Apache-2.0
 *
 * castmodel: one source and many receivers as model RC endpoints in one process, where
 * castbench has rdma_rxe.  It joins a group as any program does (docs/joining.md) and
 * needs no RDMA.
 *
 * Blocks of the source go to the same place in every receiver's region.  At the end every
 * byte is compared, and what the endpoints have seen is printed as JSON.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/castbench/clock.h"
#include "tests/net/model-run.h"
#include "version.h"

#define EXIT_USAGE 1

static const char usage[] =
    "usage: castmodel [--group G] --source H --receivers R1,R2,... [options]\n"
    "Without a group there is one connection to each receiver, which may be there several times.\n"
    "  -s, --size BYTES       of a block, 1..1048576 (default 65536)\n"
    "  -n, --iters COUNT      blocks; 0: until SIGTERM (default 100)\n"
    "  -t, --tx-depth DEPTH   blocks outstanding, 1..256 (default 16)\n"
    "  -m, --mtu MTU          path MTU without a group (default 1024)\n"
    "      --op NAME          write (default), write_imm, send or send_imm\n"
    "      --gap USEC         between packets of a connection (default 0)\n"
    "      --ecn              packets say ECT(0), not Not-ECT\n"
    "      --cnp USEC         receivers answer CE with a CNP, at most one in this time, as a NIC does\n"
    "      --obey USEC        a CNP halves the source's speed, at most once in this time, as a NIC does\n"
    "      --seed N           of the bytes (default 1)\n"
    "      --late R1,...      receivers that join the group on SIGUSR1 only\n"
    "      --silent R1,...    receivers that take nothing more from SIGUSR1 on\n"
    "      --slow R1,...      receivers that ask for time after each packet, half a second each,\n"
    "                         from SIGUSR1 to the next one\n"
    "      --refuse R1,...    receivers that answer the next packet with NAK 0x62\n"
    "  -u, --qp-timeout T     of connections, 4.096 us * 2^T, but not of groups (default 18)\n"
    "      --timeout S        give up after S seconds without progress (default 30)\n"
    "      --version\n"
    "exit status: 0 every receiver has every byte, 1 usage, 2 it has not or the run failed\n";

static void
print_endpoint(const struct rc_endpoint *ep, uint64_t n_stray)
{
    struct rc_info info;

    rc_get_info(ep, &info);
    printf("\"expected\": %" PRIu32 ", \"una\": %" PRIu32 ", \"next\": %" PRIu32 ", ",
           info.expected.v, info.una.v, info.next.v);
    printf("\"messages\": %" PRIu32 ", ", info.msn);
    printf("\"requests\": %" PRIu64 ", \"duplicates\": %" PRIu64 ", \"ahead\": %" PRIu64 ", ",
           info.n_requests, info.n_duplicates, info.n_ahead);
    printf("\"acks\": %" PRIu64 ", \"naks\": %" PRIu64 ", \"sent\": %" PRIu64 ", ", info.n_acks,
           info.n_naks, info.n_sent);
    printf("\"cnps\": %" PRIu64 ", \"cnps_made\": %" PRIu64 ", ", info.n_cnps, info.n_cnps_made);
    printf("\"retries\": %" PRIu64 ", \"timeouts\": %" PRIu64 ", \"responses\": %" PRIu64 ", ",
           info.n_retries, info.n_timeouts, info.n_responses);
    printf("\"dropped\": %" PRIu64 ", \"wrong_source\": %" PRIu64 ", \"stray\": %" PRIu64 "}",
           info.n_dropped, info.n_wrong_source, n_stray);
}

/* When it began is in milliseconds since 1970. */
static void
print_gap(const struct gap *g)
{
    uint64_t ahead = wall_clock_ns() - now_ns();

    printf("\"longest_gap_us\": %" PRIu64 ", \"longest_gap_at_ms\": %" PRIu64 ", ",
           g->longest / 1000, (g->began + ahead) / NS_PER_MS);
}

/* Of a host's second connection "HOST:2", and so on. */
static void
print_receiver_name(const struct model_run *r, unsigned i)
{
    unsigned n = 1;

    for (unsigned j = 0; j < i; j++) {
        n += r->receivers[j].host == r->receivers[i].host;
    }
    printf("%s", r->options.receivers.names[i]);
    if (n > 1) {
        printf(":%u", n);
    }
}

static void
print_result(const struct model_run *r, bool ok)
{
    const struct model_options *o = &r->options;

    printf("{\"ok\": %s, \"epoch\": %" PRIu32 ", \"mtu\": %" PRIu32 ", \"start_psn\": %" PRIu32
           ",\n",
           ok ? "true" : "false", r->epoch, r->config.mtu, r->config.start_psn.v);
    printf(" \"count\": %" PRIu64 ", \"size\": %" PRIu32 ", \"region_len\": %zu, ", r->n_stamped,
           o->size, r->content.region_len);
    printf("\"seconds\": %.6f,\n \"lanes\": [", r->seconds);
    for (unsigned i = 0; i < r->n_lanes; i++) {
        printf("%s\n  {\"completed\": %" PRIu64 ", ", i ? "," : "", r->lanes[i].done);
        print_gap(&r->lanes[i].gap);
        print_endpoint(r->lanes[i].ep, r->source.n_stray);
    }
    printf("],\n \"receivers\": {");
    for (unsigned i = 0; i < o->receivers.n; i++) {
        const struct receiver *receiver = &r->receivers[i];

        printf("%s\n  \"", i ? "," : "");
        print_receiver_name(r, i);
        printf("\": {\"bytes_ok\": %zu, ", receiver->bytes_ok);
        print_endpoint(receiver->ep, receiver->host->n_stray);
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
names(struct model_names *n, const char *option, char *text)
{
    char *save = NULL;

    for (char *name = strtok_r(text, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
        if (n->n == MODEL_MAX_RECEIVERS) {
            bad_usage(option, name);
        }
        n->names[n->n++] = name;
    }
}

static void
parse_options(struct model_options *o, int argc, char *argv[])
{
    enum {
        OPT_GROUP = 256,
        OPT_SOURCE,
        OPT_RECEIVERS,
        OPT_OP,
        OPT_GAP,
        OPT_SEED,
        OPT_LATE,
        OPT_SILENT,
        OPT_SLOW,
        OPT_REFUSE,
        OPT_TIMEOUT,
        OPT_ECN,
        OPT_CNP,
        OPT_OBEY,
        OPT_VERSION
    };
    static const struct option longs[] = {
        {"group", required_argument, NULL, OPT_GROUP},
        {"source", required_argument, NULL, OPT_SOURCE},
        {"receivers", required_argument, NULL, OPT_RECEIVERS},
        {"size", required_argument, NULL, 's'},
        {"iters", required_argument, NULL, 'n'},
        {"tx-depth", required_argument, NULL, 't'},
        {"mtu", required_argument, NULL, 'm'},
        {"qp-timeout", required_argument, NULL, 'u'},
        {"op", required_argument, NULL, OPT_OP},
        {"gap", required_argument, NULL, OPT_GAP},
        {"cnp", required_argument, NULL, OPT_CNP},
        {"obey", required_argument, NULL, OPT_OBEY},
        {"seed", required_argument, NULL, OPT_SEED},
        {"late", required_argument, NULL, OPT_LATE},
        {"silent", required_argument, NULL, OPT_SILENT},
        {"slow", required_argument, NULL, OPT_SLOW},
        {"refuse", required_argument, NULL, OPT_REFUSE},
        {"timeout", required_argument, NULL, OPT_TIMEOUT},
        {"ecn", no_argument, NULL, OPT_ECN},
        {"version", no_argument, NULL, OPT_VERSION},
        {NULL, 0, NULL, 0},
    };
    int c;

    while ((c = getopt_long(argc, argv, "s:n:t:m:u:", longs, NULL)) != -1) {
        switch (c) {
        case OPT_GROUP: o->group = optarg; break;
        case OPT_SOURCE: o->source = optarg; break;
        case OPT_RECEIVERS: names(&o->receivers, "--receivers: too many, from", optarg); break;
        case 's': o->size = (uint32_t) number("-s", optarg, 1, MODEL_MAX_SIZE); break;
        case 'n': o->count = number("-n", optarg, 0, UINT32_MAX); break;
        case 't': o->depth = (unsigned) number("-t", optarg, 1, RC_QUEUE_SIZE); break;
        case 'm': o->mtu = (uint32_t) number("-m", optarg, 256, 4096); break;
        case 'u': o->qp_timeout = (uint8_t) number("-u", optarg, 0, 31); break;
        case OPT_OP: o->op = operation(optarg); break;
        case OPT_GAP: o->gap = number("--gap", optarg, 0, 1000000); break;
        case OPT_SEED: o->seed = number("--seed", optarg, 0, UINT64_MAX); break;
        case OPT_LATE: names(&o->late, "--late: too many, from", optarg); break;
        case OPT_SILENT: names(&o->silent, "--silent: too many, from", optarg); break;
        case OPT_SLOW: names(&o->slow, "--slow: too many, from", optarg); break;
        case OPT_REFUSE: names(&o->refuse, "--refuse: too many, from", optarg); break;
        case OPT_TIMEOUT: o->timeout = (unsigned) number("--timeout", optarg, 1, 3600); break;
        case OPT_ECN: o->ecn = true; break;
        case OPT_OBEY: o->obey_usec = (uint32_t) number("--obey", optarg, 1, 1000000); break;
        case OPT_CNP: o->cnp_usec = (uint32_t) number("--cnp", optarg, 1, 1000000); break;
        case OPT_VERSION: printf(ROCECAST_VERSION_LINE, "castmodel"); exit(0);
        default: fputs(usage, stderr); exit(EXIT_USAGE);
        }
    }
    if (!o->source || !o->receivers.n || argc != optind) {
        bad_usage("needs", "--source and --receivers, and nothing else");
    }
}

int
main(int argc, char *argv[])
{
    static struct model_run run = {
        .options = {.size = 65536,
                    .count = 100,
                    .depth = 16,
                    .mtu = 1024,
                    .op = RC_OP_WRITE,
                    .seed = 1,
                    .qp_timeout = 18,
                    .timeout = 30},
    };

    parse_options(&run.options, argc, argv);
    model_run_prepare(&run);
    model_run_transfer(&run);
    bool ok = model_run_compare(&run);
    print_result(&run, ok);
    return ok ? 0 : EXIT_RUN;
}
