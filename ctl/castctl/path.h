/* SPDX-License-Identifier: Apache-2.0
 *
 * Paths: those that castd has given, by the hosts' names, and what operators say of them.
 */
#ifndef CTL_CASTCTL_PATH_H
#define CTL_CASTCTL_PATH_H 1

#include "ctl/castctl/castctl.h"
#include "lib/node-config.h"

/* Refuses if castd has given the node of 'from' no paths to 'to', and says why. */
const struct rrec_destination *
path_require_destination(const struct ctl *, const char *from, const char *to);
/* The path of that name or rank.  Refuses if there is none. */
const struct rrec_path *
path_require(const struct ctl *, const char *from, const char *to, const char *path);

/* Calls 'add' for each path from 'from' to the hosts that it has paths to, or to 'to' only. */
void
path_for_each(const struct ctl *, const char *from, const char *to,
              void (*add)(const struct rrec_node *, const char *from,
                          const struct rrec_destination *, const struct rrec_path *, void *aux),
              void *aux);
/* Checks the arguments [FROM [TO]], and sorts what was made of them by hosts and rank. */
void path_check_hosts(const struct ctl *);
void path_sort(struct json *array);

/* path-set.c. */
/* Refuses names that are no path, "" aside, of this group's packets (NULL: its source is not known) to
 * the root of their tree. */
void path_check_via(const struct ctl *, const struct rrec_group *, const char *via);
/* The value of --plane, a label or "". */
const char *path_option_plane(const struct ctl *, const char *otherwise);
/* Refuses to change what shapes a group's tree in an epoch that has started. */
void path_check_not_started(const struct ctl *, const struct rrec_group *, const char *what,
                            const char *have, const char *want);
/* Refuses what RC does not survive, unless --force is given. */
void path_check_policy(const struct ctl *, enum path_policy);

#endif /* ctl/castctl/path.h */
