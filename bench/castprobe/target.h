/* SPDX-License-Identifier: Apache-2.0
 *
 * The end with the device: does what the other end says.
 */
#ifndef BENCH_CASTPROBE_TARGET_H
#define BENCH_CASTPROBE_TARGET_H 1

#include <stdbool.h>
#include <stdint.h>

/* Serves one after the other, until it is killed; with 'once' only the first.  Prints what it
 * listens on.  Returns an exit status. */
int target_run(const char *device, int gid_index, uint16_t port, bool once);

#endif /* bench/castprobe/target.h */
