/* SPDX-License-Identifier: Apache-2.0
 *
 * The metrics of castd, of agents, of castbroker and of the registry: what they are called, and which numbers of
 * listings they are.  docs/metrics.md says the same to people.
 */
#ifndef CTL_PROCESS_METRICS_H
#define CTL_PROCESS_METRICS_H 1

#include <stdbool.h>

struct json;
struct openmetrics;
struct unixctl_conn;

struct openmetrics *metrics_create(void);
/* Puts "program" and "version" of this process. */
void metrics_put_program(struct json *object);
/* What castd says of itself; what registry_summary() says. */
void metrics_add_castd(struct openmetrics *, const struct json *castd);
void metrics_add_registry(struct openmetrics *, const struct json *summary);
/* What a node's agent answers to "rocecast/metrics -j": an object with the answers to its other
 * listings. */
void metrics_add_node(struct openmetrics *, const char *node, const struct json *answer);

/* What castbroker says of itself, as text, malloc'd. */
char *metrics_broker_text(const struct json *broker);

/* The command of daemons that says their metrics. */
#define METRICS_COMMAND "rocecast/metrics"
/* Answers that command: with the object, which has the node's name as "node", or with its text. */
void metrics_reply_node(struct unixctl_conn *, const struct json *answer, bool as_json);

#endif /* ctl/process/metrics.h */
