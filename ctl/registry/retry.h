/* SPDX-License-Identifier: Apache-2.0
 *
 * When to write again what the registry has refused.
 *
 * A daemon computes what it wants written from what it wants and what the
 * registry has.  A refusal changes neither, so nothing but time says when to try
 * again: after 100 to 200 ms first, then after twice as long each time, and
 * after 6.4 to 8 s at last.  The spread keeps daemons that were refused
 * together from coming back together.
 *
 *     if (!registry_retry_waits(&retry, now)) {
 *         ... a transaction ...
 *         TXN_ERROR:   registry_retry_refused(&retry, error, now, random_uint32());
 *         TXN_SUCCESS: registry_retry_taken(&retry);
 *     }
 */
#ifndef CTL_REGISTRY_RETRY_H
#define CTL_REGISTRY_RETRY_H 1

#include <stdbool.h>
#include <stdint.h>

#define REGISTRY_RETRY_MIN_MSEC 100
#define REGISTRY_RETRY_MAX_MSEC 8000

struct registry_retry {
    unsigned int n_refused; /* in a row. */
    long long int next;     /* no other try before, in ms. */
    char *why;              /* the last refusal; NULL: the last transaction was taken. */
};

void registry_retry_uninit(struct registry_retry *);

/* The registry has refused a transaction.  Logs the first refusal of a row. */
void registry_retry_refused(struct registry_retry *, const char *why, long long int now,
                            uint32_t random);
/* The registry has what it should have.  Logs that, after a refusal. */
void registry_retry_taken(struct registry_retry *);

/* Is it too early for another try? */
static inline bool
registry_retry_waits(const struct registry_retry *r, long long int now)
{
    return r->why && now < r->next;
}

/* For status texts; malloc'd.  NULL: nothing was refused. */
char *registry_retry_text(const struct registry_retry *);

#endif /* ctl/registry/retry.h */
