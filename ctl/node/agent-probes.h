/* SPDX-License-Identifier: Apache-2.0
 *
 * What an agent says in the registry of its node's probes.  Part of ctl/node/agent-registry.c, which has
 * the registry and the transactions.
 */
#ifndef CTL_NODE_AGENT_PROBES_H
#define CTL_NODE_AGENT_PROBES_H 1

#include <stdbool.h>
#include <stdint.h>

struct agent_probes;
struct probe_info;
struct rrec_node;

struct agent_probes *agent_probes_create(void);
void agent_probes_destroy(struct agent_probes *);

/* Takes how a probe is: begins with agent_probes_clear(), then one call for each.  'now' is on the
 * node's scale, in microseconds; 'posix_msec' the same moment. */
void agent_probes_clear(struct agent_probes *);
void agent_probes_add(struct agent_probes *, const struct probe_info *, uint64_t now,
                      int64_t posix_msec);
/* After the last one: is there news that may be written now?  Between two times is a second. */
bool agent_probes_news(struct agent_probes *, long long int now_msec);

/* Writes what the rows do not say yet. */
void agent_probes_report(const struct agent_probes *, const struct rrec_node *);

#endif /* ctl/node/agent-probes.h */
