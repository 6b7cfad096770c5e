/* SPDX-License-Identifier: Apache-2.0
 *
 * Where things are: by environment, and beside this program.
 */
#ifndef CTL_REGISTRY_PATHS_H
#define CTL_REGISTRY_PATHS_H 1

/* Directory for sockets and pid files: ROCECAST_RUNDIR or /run/rocecast. */
const char *rocecast_rundir(void);
/* ROCECAST_DB or "unix:<rundir>/db.sock"; malloc'd. */
char *rocecast_default_db(void);

/* The folder of this program's file; malloc'd. */
char *rocecast_own_folder(void);
/* A file of the source tree, in folder 'in_tree', or one that is installed, below share/rocecast.  NULL and *pathp,
 * malloc'd, or a malloc'd error. */
char *rocecast_own_file(const char *in_tree, const char *installed, const char *name, char **pathp);
/* Likewise, the registry's schema. */
char *rocecast_schema_file(char **pathp);

#endif /* ctl/registry/paths.h */
