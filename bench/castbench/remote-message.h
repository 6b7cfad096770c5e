/* SPDX-License-Identifier: Apache-2.0
 *
 * What castbench and castbench serve tell each other: an object of JSON on a line, and the next line
 * is the answer.
 *
 *   {"castbench": VERSION, "arguments": [...], "receiver": INDEX, "scheme", "replicas", "size"}
 *                                             opens a receiver of this command line
 *       {"qpn": [...], "rkey", "va"}
 *   {"step": "arm", "groups": [...], "peer_qpn": [...]}
 *       {"listens": [...], "connect_ns"}
 *   {"step": "warmup" | "count" | "work"}
 *       {}
 *   {"step": "over"}                          ends a step; not answered
 *   {"step": "compare", "end": BLOCKS}
 *       {"bytes_ok", "first_bad", "why", "n_told", "first_told", "cpu_s", "rdma": [3 counters]}
 *
 * Instead of any answer: {"error": TEXT}.
 */
#ifndef BENCH_CASTBENCH_REMOTE_MESSAGE_H
#define BENCH_CASTBENCH_REMOTE_MESSAGE_H 1

#include <jansson.h>

#include "bench/castbench/run-private.h"

/* Frees the object.  False: it could not be sent. */
bool message_send(int fd, json_t *);
/* Reads one message and no more, so that the descriptor says whether there is another.  The caller
 * frees the object.  NULL: the other side has gone, or sends something else. */
json_t *message_receive(int fd);

/* Numbers and lists of a message, within limits.  False: there are none. */
bool message_number(const json_t *, const char *key, uint64_t max, uint64_t *);
bool message_numbers(const json_t *, const char *key, uint32_t list[], unsigned n);
json_t *message_list(const uint32_t list[], unsigned n);

json_t *message_groups(const struct rocecast_epoch groups[], unsigned n);
bool message_read_groups(const json_t *, struct rocecast_epoch groups[], unsigned n);

/* Results of a receiver. */
json_t *message_results(const struct shared_replica *, const struct host_count *);
bool message_read_results(const json_t *, size_t region_len, struct shared_replica *,
                          struct host_count *);

#endif /* bench/castbench/remote-message.h */
