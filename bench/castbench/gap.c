/* SPDX-License-Identifier: Apache-2.0
 *
 * Gaps between completions (see gap.h).
 */
#include "bench/castbench/gap.h"

void
gap_begin(struct gap *g, uint64_t now)
{
    if (!g->is_open) {
        g->is_open = true;
        g->since = now;
    }
}

void
gap_end(struct gap *g, uint64_t now, bool more)
{
    if (g->is_open && now - g->since > g->longest) {
        g->longest = now - g->since;
        g->began = g->since;
    }
    g->is_open = more;
    g->since = now;
}
