/* SPDX-License-Identifier: Apache-2.0
 *
 * The allocator of the registry's servers (see allocator.h).
 */
#include <config.h>

#include "ctl/registry/allocator.h"

#include <stdlib.h>

#include "util.h"

/* What the dynamic linker reads, and what jemalloc does.  systemd/rocecast-registry.service.in has the same. */
static const struct {
    const char *name, *value;
} variables[] = {
    {"LD_PRELOAD", "libjemalloc.so.2"},
    {"MALLOC_CONF", "thp:always"},
};

unsigned
allocator_preload(void)
{
    unsigned set = 0;

    if (!getenv(variables[0].name)) {
        for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
            if (!getenv(variables[i].name) && !setenv(variables[i].name, variables[i].value, 1)) {
                set |= 1u << i;
            }
        }
    }
    return set;
}

void
allocator_unload(unsigned set)
{
    for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
        if (set & 1u << i) {
            unsetenv(variables[i].name);
        }
    }
}
