/* SPDX-License-Identifier: Apache-2.0
 *
 * Receivers on other machines: castbench serve, and what stands for such a receiver on the source's
 * machine.
 *
 * The source's castbench has a process for each receiver.  That of a receiver elsewhere takes each
 * step by telling the server there, over TCP, which has a process of its own for it that takes the
 * same step of the same run.
 */
#ifndef BENCH_CASTBENCH_REMOTE_H
#define BENCH_CASTBENCH_REMOTE_H 1

#include "bench/castbench/run-private.h"

#define REMOTE_PORT "18514"

/* receiver_step() of a receiver that is on another machine. */
bool remote_step(void *aux, unsigned step, char *error, size_t size);

/* castbench serve.  'argv' is castbench's own without "serve".  Returns castbench's exit status. */
int serve_main(int argc, char *argv[]);

#endif /* bench/castbench/remote.h */
