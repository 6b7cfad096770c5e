/* SPDX-License-Identifier: Apache-2.0
 *
 * Model agents: what a forwarder's daemon is to the registry (ctl/node/agent-registry.h), without a
 * data plane, and many of them in one process.
 *
 * Each has a session, the lock of its node, and its own copy of the rows that an agent reads.  It
 * applies a generation at once.  Its groups have all started: a source agent says so, and whoever
 * joins counts as soon as it may.
 */
#ifndef BENCH_CASTSCALE_AGENTS_H
#define BENCH_CASTSCALE_AGENTS_H 1

#include <stddef.h>

/* Called once, when all 'n' have applied a generation. */
typedef void agents_ready(size_t n);

/* Runs an agent for each node that the registry 'db' has as soon as it has any, until the process is
 * told to end (process_interrupted()).  'ready' may be NULL. */
void agents_run(const char *db, agents_ready *ready);

#endif /* bench/castscale/agents.h */
