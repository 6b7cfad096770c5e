/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of a program of perftest: can a group carry what it asks for?
 */
#ifndef BENCH_CASTBENCH_PERFTEST_ARGS_H
#define BENCH_CASTBENCH_PERFTEST_ARGS_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perftest_args {
    const char *program; /* as it was given, maybe with a path. */
    char **argv;         /* that, and its options; NULL behind the last. */
    bool is_send;        /* ib_send_bw; otherwise ib_write_bw. */
    uint32_t size;       /* of a message, bytes; with -a of the largest. */
    unsigned qp_timeout; /* local ACK timeout: 4.096 us * 2^qp_timeout; 0: not given. */
    /* The transfer is over when the client has sent its keys so often. */
    unsigned n_keys;
};

/* Reads 'argv', the program first and NULL behind the last, and leaves it as it is but for its
 * order.  False: 'error' says what a group cannot carry, or what castbench says itself. */
bool perftest_args_parse(struct perftest_args *, int argc, char *argv[], char *error, size_t size);

/* Copies 'argv' without what only the client is to do.  '*to' has room for as many.  Returns how
 * many there are. */
int perftest_args_of_server(char *const argv[], char *to[]);

#endif /* bench/castbench/perftest-args.h */
