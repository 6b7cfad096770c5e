/* SPDX-License-Identifier: Apache-2.0
 *
 * What programs of perftest tell each other of their queue pairs, by TCP: text of a fixed length.
 */
#ifndef BENCH_CASTBENCH_PERFTEST_KEYS_H
#define BENCH_CASTBENCH_PERFTEST_KEYS_H 1

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERFTEST_KEYS_LEN 108 /* bytes of a message, with the zero at its end. */

struct perftest_keys {
    uint32_t lid;
    uint32_t out_reads;
    uint32_t qpn; /* 24 bits. */
    uint32_t psn; /* 24 bits: of the first request that the queue pair sends. */
    uint32_t rkey;
    uint64_t va; /* of what may be written to. */
    struct in6_addr gid;
    uint32_t srqn;
};

/* False: the message has another form than perftest 4.5 writes. */
bool perftest_keys_parse(struct perftest_keys *, const char *message, size_t len);
void perftest_keys_format(const struct perftest_keys *, char message[PERFTEST_KEYS_LEN]);

#endif /* bench/castbench/perftest-keys.h */
