/* SPDX-License-Identifier: Apache-2.0
 *
 * Where things are: see paths.h.
 */
#include <config.h>

#include "ctl/registry/paths.h"

#include <stdlib.h>

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
