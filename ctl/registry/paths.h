/* SPDX-License-Identifier: Apache-2.0
 *
 * Where things are, by environment.
 */
#ifndef CTL_REGISTRY_PATHS_H
#define CTL_REGISTRY_PATHS_H 1

/* Directory for sockets and pid files: ROCECAST_RUNDIR or /run/rocecast. */
const char *rocecast_rundir(void);
/* ROCECAST_DB or "unix:<rundir>/db.sock"; malloc'd. */
char *rocecast_default_db(void);

#endif /* ctl/registry/paths.h */
