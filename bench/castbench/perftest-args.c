/* SPDX-License-Identifier: Apache-2.0
 *
 * perftest's command line (see perftest-args.h).
 *
 * Its options are those of perftest 4.5.  One that is not known could have an argument, which would
 * then be taken for something else, so it is refused.
 */
#include "bench/castbench/perftest-args.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "bench/castbench/refuse.h"
#include "bench/castbench/values.h"

#define DEFAULT_SIZE 65536
#define LARGEST_SIZE (8u << 20) /* of -a. */
#define N_SIZES      23         /* of -a. */

/* Key messages of a client until its transfer is over, and what a longer run adds. */
#define KEYS_WRITE   4
#define KEYS_SEND    5
#define KEYS_SIZE    2 /* ib_send_bw -a: of each further size. */

static const struct {
    const char *name;
    const char *why_not; /* NULL: it works. */
} programs[] = {
    {"ib_write_bw", NULL},
    {"ib_send_bw", NULL},
    {"ib_write_lat",
     "each server answers by writing to the client, and a group carries nothing to its "
     "source: castbench write -t 1 measures latency"},
    {"ib_send_lat",
     "each server answers by sending to the client, and a group carries nothing to its "
     "source: castbench send -t 1 measures latency"},
    {"ib_read_bw", "RDMA READ: N different answers cannot be one"},
    {"ib_read_lat", "RDMA READ: N different answers cannot be one"},
    {"ib_atomic_bw", "atomics: N different answers cannot be one"},
    {"ib_atomic_lat", "atomics: N different answers cannot be one"},
};

/* What getopt_long() returns for long options without a letter. */
enum { LONG_PASS = 256, LONG_VERSIONS };

static const char letters[] =
    "+w:y:p:d:i:m:s:n:t:u:S:x:c:q:I:o:M:r:Q:A:l:D:f:B:T:L:E:J:j:K:k:X:W:aFegzRvhbNVCHUOZP";

#define WITH    required_argument
#define WITHOUT no_argument

static const struct option long_options[] = {
    {"port", WITH, NULL, 'p'},
    {"ib-dev", WITH, NULL, 'd'},
    {"ib-port", WITH, NULL, 'i'},
    {"mtu", WITH, NULL, 'm'},
    {"size", WITH, NULL, 's'},
    {"iters", WITH, NULL, 'n'},
    {"tx-depth", WITH, NULL, 't'},
    {"qp-timeout", WITH, NULL, 'u'},
    {"sl", WITH, NULL, 'S'},
    {"gid-index", WITH, NULL, 'x'},
    {"all", WITHOUT, NULL, 'a'},
    {"CPU-freq", WITHOUT, NULL, 'F'},
    {"connection", WITH, NULL, 'c'},
    {"qp", WITH, NULL, 'q'},
    {"events", WITHOUT, NULL, 'e'},
    {"vector", WITH, NULL, 'X'},
    {"inline_size", WITH, NULL, 'I'},
    {"mcg", WITHOUT, NULL, 'g'},
    {"comm_rdma_cm", WITHOUT, NULL, 'z'},
    {"rdma_cm", WITHOUT, NULL, 'R'},
    {"help", WITHOUT, NULL, 'h'},
    {"rx-depth", WITH, NULL, 'r'},
    {"bidirectional", WITHOUT, NULL, 'b'},
    {"cq-mod", WITH, NULL, 'Q'},
    {"noPeak", WITHOUT, NULL, 'N'},
    {"version", WITHOUT, NULL, 'V'},
    {"dualport", WITHOUT, NULL, 'O'},
    {"post_list", WITH, NULL, 'l'},
    {"duration", WITH, NULL, 'D'},
    {"margin", WITH, NULL, 'f'},
    {"limit_bw", WITH, NULL, 'w'},
    {"limit_msgrate", WITH, NULL, 'y'},
    {"report-counters", WITH, NULL, 'W'},
    {"run_infinitely", WITHOUT, NULL, LONG_PASS},
    {"dont_xchg_versions", WITHOUT, NULL, LONG_VERSIONS},
    {"report_gbits", WITHOUT, NULL, LONG_PASS},
    {"use-srq", WITHOUT, NULL, LONG_PASS},
    {"pkey_index", WITH, NULL, LONG_PASS},
    {"inline_recv", WITH, NULL, LONG_PASS},
    {"burst_size", WITH, NULL, LONG_PASS},
    {"rate_limit", WITH, NULL, LONG_PASS},
    {"rate_limit_type", WITH, NULL, LONG_PASS},
    {"rate_units", WITH, NULL, LONG_PASS},
    {"typical_pkt_size", WITH, NULL, LONG_PASS},
    {"output", WITH, NULL, LONG_PASS},
    {"cpu_util", WITHOUT, NULL, LONG_PASS},
    {"out_json", WITHOUT, NULL, LONG_PASS},
    {"out_json_file", WITH, NULL, LONG_PASS},
    {"retry_count", WITH, NULL, LONG_PASS},
    {"odp", WITHOUT, NULL, LONG_PASS},
    {"use_hugepages", WITHOUT, NULL, LONG_PASS},
    {"use_old_post_send", WITHOUT, NULL, LONG_PASS},
    {"tclass", WITH, NULL, LONG_PASS},
    {"recv_post_list", WITH, NULL, LONG_PASS},
    {"disable_pcie_relaxed", WITHOUT, NULL, LONG_PASS},
    {NULL, 0, NULL, 0},
};

/* Options with which a group does not work, or that castbench gives the program itself. */
static const struct {
    int letter;
    const char *name, *why;
} refused[] = {
    {'p', "-p", "castbench finds the ports: those of other machines are in --receivers"},
    {'d', "-d", "castbench finds the device, which has the host's address"},
    {'x', "-x", "castbench finds the GID, which is the host's address"},
    {'b', "-b", "servers write to the client then, and a group carries nothing to its source"},
    {'R', "-R",
     "a server would answer by messages to the client: castbench write -R connects by "
     "RDMA-CM"},
    {'z', "-z", "the group's QPN and address can be put into what is exchanged by TCP only"},
    {'O', "-O", "a group has one queue pair, at one port"},
    {'g', "-g", "that is multicast of datagrams (UD)"},
    {'h', "-h", "ask the program itself"},
    {'V', "-V", "ask the program itself"},
    {LONG_VERSIONS, "--dont_xchg_versions", "castbench compares the versions"},
};

#define N_PROGRAMS (sizeof programs / sizeof programs[0])
#define N_REFUSED  (sizeof refused / sizeof refused[0])

static bool
find_program(struct perftest_args *a, const char *path, char *error, size_t size)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    a->program = path;
    a->is_send = !strcmp(name, "ib_send_bw");
    for (size_t i = 0; i < N_PROGRAMS; i++) {
        if (!strcmp(name, programs[i].name)) {
            return !programs[i].why_not || refuse(error, size, "%s: %s", name, programs[i].why_not);
        }
    }
    return refuse(error, size, "%s: must be ib_write_bw or ib_send_bw of perftest", name);
}

static bool
take_number(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *v,
            char *error, size_t size)
{
    return value_number(text, min, max, v)
           || refuse(error, size, "%s %s: must be %llu..%llu", option, text,
                     (unsigned long long) min, (unsigned long long) max);
}

static bool
take_option(struct perftest_args *a, int c, const char *arg, char *error, size_t size)
{
    uint64_t v = 0;

    for (size_t i = 0; i < N_REFUSED; i++) {
        if (c == refused[i].letter) {
            return refuse(error, size, "%s: %s", refused[i].name, refused[i].why);
        }
    }
    switch (c) {
    case 's':
        if (!take_number("-s", arg, 1, LARGEST_SIZE, &v, error, size)) {
            return false;
        }
        a->size = (uint32_t) v;
        return true;
    case 'u':
        if (!take_number("-u", arg, 1, 31, &v, error, size)) {
            return false;
        }
        a->qp_timeout = (unsigned) v;
        return true;
    case 'a':
        a->size = LARGEST_SIZE;
        a->n_keys = a->is_send ? KEYS_SEND + (N_SIZES - 1) * KEYS_SIZE + 1 : KEYS_WRITE;
        return true;
    case 'q':
        return !strcmp(arg, "1")
               || refuse(error, size,
                         "-q %s: a group has one queue pair (castbench write -q has as many "
                         "as groups)",
                         arg);
    case 'c':
        return !strcmp(arg, "RC")
               || refuse(error, size, "-c %s: a group is a reliable connection (RC)", arg);
    default: return true;
    }
}

bool
perftest_args_parse(struct perftest_args *a, int argc, char *argv[], char *error, size_t size)
{
    *a = (struct perftest_args){.argv = argv, .size = DEFAULT_SIZE};
    if (!find_program(a, argv[0], error, size)) {
        return false;
    }
    a->n_keys = a->is_send ? KEYS_SEND : KEYS_WRITE;
    optind = 0; /* begins anew. */
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, letters, long_options, NULL)) != -1;) {
        if (c == '?') {
            return refuse(error, size, "%s: perftest 4.5 has no such option, or it lacks its value",
                          argv[optind - 1]);
        }
        if (!take_option(a, c, optarg, error, size)) {
            return false;
        }
    }
    return optind == argc
           || refuse(error, size, "%s: castbench says to %s itself who the servers are",
                     argv[optind], a->program);
}

int
perftest_args_of_server(char *const argv[], char *to[])
{
    int n = 0;

    for (int i = 0; argv[i]; i++) {
        if (!strcmp(argv[i], "--out_json") || !strncmp(argv[i], "--out_json_file=", 16)) {
            continue;
        }
        if (!strcmp(argv[i], "--out_json_file")) {
            i++;
            continue;
        }
        to[n++] = argv[i];
    }
    return n;
}
