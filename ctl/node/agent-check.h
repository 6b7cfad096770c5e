/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: is what an agent has read as changes what it would have read as a whole?
 */
#ifndef CTL_NODE_AGENT_CHECK_H
#define CTL_NODE_AGENT_CHECK_H 1

#include <stdbool.h>

struct node_config;

/* Does $ROCECAST_AGENT_CHECK ask for it? */
bool agent_check_is_wanted(void);
/* Where two configurations differ, malloc'd; NULL: nowhere. */
char *agent_check_difference(const struct node_config *a, const struct node_config *b);

#endif /* ctl/node/agent-check.h */
