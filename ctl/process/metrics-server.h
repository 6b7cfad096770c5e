/* SPDX-License-Identifier: Apache-2.0
 *
 * Serves metrics to programs that collect them by HTTP, such as Prometheus.
 *
 * It understands one request: GET /metrics.  Nobody makes it wait: there are few connections at a
 * time, and each has one request of limited size and little time.
 */
#ifndef CTL_PROCESS_METRICS_SERVER_H
#define CTL_PROCESS_METRICS_SERVER_H 1

struct metrics_server;
struct pstream;

/* The metrics as text, malloc'd (openmetrics_finish()). */
typedef char *metrics_func(const void *aux);

/* 'listener' is taken over; NULL: there is nothing to serve, and the functions below do nothing. */
struct metrics_server *
metrics_server_create(struct pstream *listener, metrics_func *, const void *aux);
void metrics_server_destroy(struct metrics_server *);
void metrics_server_run(struct metrics_server *);
void metrics_server_wait(struct metrics_server *);

#endif /* ctl/process/metrics-server.h */
