/* SPDX-License-Identifier: Apache-2.0
 *
 * The registry's servers: their files, what they have, and what they say of themselves.
 */
#ifndef CTL_CASTCTL_REGISTRY_H
#define CTL_CASTCTL_REGISTRY_H 1

#include "ctl/castctl/castctl.h"

/* The commands of registry-status.c and registry-restore.c. */
void registry_status(struct ctl *);
void registry_restore(struct ctl *);

/* registry.c: runs ovsdb-tool, and returns what it prints, malloc'd; refuses if it does.  'what' is it about; NULL: its
 * own words say that. */
char *registry_run_tool(const struct ctl *, const char *what, struct svec argv);
/* The file of this version's schema, and its version; malloc'd. */
char *registry_schema(const struct ctl *);
char *registry_schema_version(const struct ctl *);
/* Makes the database 'copy' of all that the standalone one in 'file' has, with this version's
 * schema.  Refuses a file that is none of rocecast's, or of a later version. */
void registry_copy_database(const struct ctl *, const char *file, const char *copy);

/* registry-restore.c: refuses a database, 'copy' of 'file', that is torn, or in which castd has
 * never been: to restore that is to delete everything. */
void registry_check_whole(const struct ctl *, const char *file, const char *copy);

/* registry-status.c: the control socket that the command's last argument names, or the usual one of
 * the registry's server; malloc'd. */
char *registry_control(const struct ctl *);
/* What a server of a cluster says of it.  Ends with CTL_UNAVAILABLE if there is none, with
 * CTL_REFUSED if it is in no cluster. */
struct json *registry_cluster_status(const struct ctl *, const char *control);
/* Is the server out of its cluster?  False if it does not answer, with the reason in *whyp; otherwise
 * that is NULL.  The caller frees it. */
bool registry_has_left(const struct ctl *, const char *control, char **whyp);

#endif /* ctl/castctl/registry.h */
