/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory, or the end.
 */
#include "lib/alloc.h"

#include <stdlib.h>
#include <string.h>

void *
must_calloc(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size);

    if (!p) {
        abort();
    }
    return p;
}

void *
must_copy(const void *src, size_t n, size_t size)
{
    return n ? memcpy(must_calloc(n, size), src, n * size) : NULL;
}
