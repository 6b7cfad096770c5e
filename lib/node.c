/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies of a tree's configuration.
 */
#include "lib/node.h"

#include <stdlib.h>

static void *
copy(const void *src, size_t n, size_t size)
{
    void *dst = calloc(n + 1, size);
    if (!dst) {
        abort();
    }
    if (n) {
        memcpy(dst, src, n * size);
    }
    return dst;
}

void
tree_config_clone(struct tree_config *dst, const struct tree_config *src)
{
    *dst = *src;
    dst->branches = copy(src->branches, src->n_branches, sizeof *src->branches);
    dst->outer_da = copy(src->outer_da, src->n_outer_da, sizeof *src->outer_da);
    dst->copies = copy(src->copies, src->n_copies, sizeof *src->copies);
}

void
tree_config_uninit(struct tree_config *t)
{
    free(t->branches);
    free(t->outer_da);
    free(t->copies);
    *t = (struct tree_config){0};
}
