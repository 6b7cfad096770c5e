/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory for start-up and configuration, where there is no way to go on without it.  The data path
 * allocates nothing (lib/packet.h).
 */
#ifndef LIB_ALLOC_H
#define LIB_ALLOC_H 1

#include <stddef.h>

/* 'n' elements of 'size' bytes, all zero; n may be 0.  Aborts if there is no memory. */
void *must_calloc(size_t n, size_t size);
/* A copy of an array; NULL if n is 0. */
void *must_copy(const void *src, size_t n, size_t size);

#endif /* lib/alloc.h */
