/* SPDX-License-Identifier: Apache-2.0
 *
 * How many files a process may have open.
 */
#include <config.h>

#include "ctl/process/open-files.h"

#include <sys/resource.h>

#include "util.h"

void
open_files_allow(void)
{
    struct rlimit limit;

    if (!getrlimit(RLIMIT_NOFILE, &limit)) {
        limit.rlim_cur = limit.rlim_max;
        ignore(setrlimit(RLIMIT_NOFILE, &limit));
    }
}
