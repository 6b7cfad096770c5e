/* SPDX-License-Identifier: Apache-2.0
 *
 * Where things are: see paths.h.
 */
#include <config.h>

#include "ctl/registry/paths.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util.h"

const char *
rocecast_rundir(void)
{
    const char *dir = getenv("ROCECAST_RUNDIR");

    return dir && dir[0] ? dir : "/run/rocecast";
}

char *
rocecast_default_db(void)
{
    const char *db = getenv("ROCECAST_DB");

    return db && db[0] ? xstrdup(db) : xasprintf("unix:%s/db.sock", rocecast_rundir());
}

char *
rocecast_own_folder(void)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0) {
        ovs_fatal(errno, "/proc/self/exe");
    }
    path[n] = '\0';
    *strrchr(path, '/') = '\0';
    return xstrdup(path);
}

char *
rocecast_own_file(const char *in_tree, const char *installed, const char *name, char **pathp)
{
    char *folder = rocecast_own_folder();
    char *path = xasprintf("%s/../../%s/%s", folder, in_tree, name);

    if (access(path, R_OK)) {
        free(path);
        path = xasprintf("%s/../share/rocecast/%s/%s", folder, installed, name);
    }
    bool found = !access(path, R_OK);
    char *error = found ? NULL
                        : xasprintf("%s is neither in %s/../../%s nor in %s/../share/rocecast/%s",
                                    name, folder, in_tree, folder, installed);
    if (!found) {
        free(path);
    }
    *pathp = found ? path : NULL;
    free(folder);
    return error;
}

char *
rocecast_schema_file(char **pathp)
{
    return rocecast_own_file("ctl/registry", ".", "rocecast.ovsschema", pathp);
}
