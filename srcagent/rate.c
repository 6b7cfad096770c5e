/* SPDX-License-Identifier: Apache-2.0
 *
 * What CNPs do to what the host sends.
 */
#include "srcagent/srcagent.h"

enum drop_reason
rate_cnp(struct srcagent *sa, struct tree *t, const struct packet *cnp, uint64_t now)
{
    (void) cnp;
    (void) now;
    TRACE(&sa->base.tracer, "group %s epoch %u: a CNP for the host", t->config.group,
          t->config.epoch);
    return DROP_cnp;
}
