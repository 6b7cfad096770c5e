/* SPDX-License-Identifier: Apache-2.0
 *
 * The allocator of the registry's servers (see allocator.h).
 */
#include <config.h>

#include "ctl/registry/allocator.h"

#include <stdlib.h>

/* What the dynamic linker reads.  systemd/rocecast-registry.service.in has the same. */
#define VARIABLE "LD_PRELOAD"
#define LIBRARY  "libjemalloc.so.2"

bool
allocator_preload(void)
{
    return !getenv(VARIABLE) && !setenv(VARIABLE, LIBRARY, 1);
}

void
allocator_unload(bool preloaded)
{
    if (preloaded) {
        unsetenv(VARIABLE);
    }
}
