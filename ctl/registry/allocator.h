/* SPDX-License-Identifier: Apache-2.0
 *
 * The allocator of the registry's servers: jemalloc, as castd's (docs/scale.md).
 *
 * ovsdb-server is not built here: it has the library preloaded, with huge pages as castd has it.
 */
#ifndef CTL_REGISTRY_ALLOCATOR_H
#define CTL_REGISTRY_ALLOCATOR_H 1

/* Programs that are started until allocator_unload() have it, unless LD_PRELOAD names something already.
 * Where the library is missing they run without, and say so.  Returns what allocator_unload() wants. */
unsigned allocator_preload(void);
void allocator_unload(unsigned);

#endif /* ctl/registry/allocator.h */
