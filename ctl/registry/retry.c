/* SPDX-License-Identifier: Apache-2.0
 *
 * When to write again what the registry has refused.
 */
#include <config.h>

#include "ctl/registry/retry.h"

#include <stdlib.h>

#include "openvswitch/vlog.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(registry_retry);

void
registry_retry_uninit(struct registry_retry *r)
{
    free(r->why);
    *r = (struct registry_retry){0};
}

void
registry_retry_refused(struct registry_retry *r, const char *why, long long int now,
                       uint32_t random)
{
    uint32_t msec = REGISTRY_RETRY_MIN_MSEC;

    for (unsigned int i = 0; i < r->n_refused && 2 * msec <= REGISTRY_RETRY_MAX_MSEC; i++) {
        msec *= 2;
    }
    if (!r->why) {
        VLOG_ERR("the registry refuses what is written, which is tried again: %s", why);
    }
    char *last = xstrdup(why); /* 'why' may be r->why. */
    free(r->why);
    r->why = last;
    r->n_refused++;
    r->next = now + msec + random % (MIN(msec, REGISTRY_RETRY_MAX_MSEC - msec) + 1);
}

void
registry_retry_taken(struct registry_retry *r)
{
    if (r->why) {
        VLOG_INFO("the registry takes again what is written, after %u refusals", r->n_refused);
        registry_retry_uninit(r);
    }
}

char *
registry_retry_text(const struct registry_retry *r)
{
    return r->why ? xasprintf("the registry refuses what is written (%u times, tried again): %s",
                              r->n_refused, r->why)
                  : NULL;
}
