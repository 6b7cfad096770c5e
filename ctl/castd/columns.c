/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets in columns.
 */
#include <config.h>

#include "ctl/castd/columns.h"

#include "ctl/registry/values.h"

bool
columns_same_set(char *const have[], size_t n, const struct svec *want)
{
    bool same = n == want->n;

    for (size_t i = 0; i < n && same; i++) {
        same = svec_contains(want, have[i]);
    }
    return same;
}

void
columns_put_addresses(struct svec *texts, const struct in6_addr *addresses, size_t n)
{
    svec_init(texts);
    for (size_t i = 0; i < n; i++) {
        svec_add(texts, ip6_text(&addresses[i]));
    }
    svec_sort(texts);
}
