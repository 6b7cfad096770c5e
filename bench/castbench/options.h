/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of castbench.
 */
#ifndef BENCH_CASTBENCH_OPTIONS_H
#define BENCH_CASTBENCH_OPTIONS_H 1

#include "bench/castbench/plan.h"

/* Reads the command line.  Reorders 'argv' and splits some of it in place.  The plan refers to what
 * 'argv' points to, which must stay.  Help and version are printed, and end the program.
 *
 * False: the command line is wrong.  If 'error' is empty, the reason has been printed.  Of the plan
 * 'json' is there, so that the reason can be written there, too. */
bool options_parse(struct plan *, int argc, char *argv[], char *error, size_t size);

#endif /* bench/castbench/options.h */
