/* SPDX-License-Identifier: Apache-2.0
 *
 * A run in which members come and go: makes its events, takes note of what the registry says of
 * members, and in the end compares what each receiver's memory holds from its first message to its
 * last.
 *
 * All of it is the parent's.  Receivers' regions are memory that the parent maps, too, so that they
 * outlive a process that is killed.
 */
#ifndef BENCH_CASTBENCH_LIVE_H
#define BENCH_CASTBENCH_LIVE_H 1

#include "bench/castbench/run-private.h"
#include "bench/castbench/worker.h"

struct live;

/* Starts the watch of the group, in which the receivers that begin with the run are members.
 * 'workers' are the source and the lives', 'receivers' the lives'.  NULL: 'error' says why not. */
struct live *
live_open(const struct run_ctx *, struct worker *workers, struct receiver_ctx *receivers,
          struct run_result *, char *error, size_t size);
void live_close(struct live *);

/* The measured blocks begin now. */
void live_begin(struct live *);

/* Makes the events that are due, in order, each when the registry has said of the member what it
 * needs, and takes in what has come since the last call. */
void live_run(struct live *);
/* The same without events: the transfer is over. */
void live_watch(struct live *);

/* Takes the next member that is lost though no event ended its process.  False: there is none. */
bool live_next_lost(struct live *, struct lost_info *);

/* Compares all lives' regions with what they must hold, and fills in their results.  'generated' is
 * the region as content_generate() made it.  If an event went wrong, or a life is not what the
 * registry and the source know of it, result->error says so. */
void live_compare(struct live *, const unsigned char *generated);

#endif /* bench/castbench/live.h */
