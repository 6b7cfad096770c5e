/* SPDX-License-Identifier: Apache-2.0
 *
 * castbench perftest: one client of perftest, as it is, and as many servers as a group has
 * receivers.
 */
#ifndef BENCH_CASTBENCH_PERFTEST_H
#define BENCH_CASTBENCH_PERFTEST_H 1

/* 'argv' is castbench's own without "perftest".  Returns castbench's exit status. */
int perftest_main(int argc, char *argv[]);

#endif /* bench/castbench/perftest.h */
