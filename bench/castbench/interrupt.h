/* SPDX-License-Identifier: Apache-2.0
 *
 * Ctrl-C and the like.  The first signal ends what goes on with an error, so that what is known by
 * then is still written.  Another one, a second later or more, ends the program.
 */
#ifndef BENCH_CASTBENCH_INTERRUPT_H
#define BENCH_CASTBENCH_INTERRUPT_H 1

/* To be called once, before any process is started. */
void interrupt_catch(void);

/* The signal that came, or 0. */
int interrupt_signal(void);

#endif /* bench/castbench/interrupt.h */
