/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of castbench.
 */
#ifndef BENCH_CASTBENCH_OPTIONS_H
#define BENCH_CASTBENCH_OPTIONS_H 1

#include "bench/castbench/plan.h"

/* Reorders 'argv' and splits some of it in place; what it points to must stay.  False: it is wrong;
 * if 'error' is empty, that has been printed; of the plan there is 'json', so that it can be written
 * there, too.  Help and version are printed, and end the program. */
bool options_parse(struct plan *, int argc, char *argv[], char *error, size_t size);

#endif /* bench/castbench/options.h */
