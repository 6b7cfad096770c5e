/* SPDX-License-Identifier: Apache-2.0
 *
 * Fast CNPs to the host (lib/fast-cnp.h).  The agent is a part of the host as far as they are
 * concerned, and takes all that come from the fabric: the host's stack knows nothing of them and
 * would answer each with an error message.  One that comes from the host itself has crossed the
 * border of their domain in the wrong direction; pipeline.c drops it.
 *
 * Two are told: the controller of the flow's rate, and the headend, which may have it go another way.
 *
 * The checks are in the order of what they cost; none keeps anything of a packet that it stops.
 */
#include "lib/headend.h"
#include "lib/node-congestion.h"
#include "srcagent/srcagent.h"

static enum drop_reason
tell(struct srcagent *sa, const struct fast_cnp *said, uint64_t now)
{
    struct flow *f = rate_find(sa, &said->original, said->dest_qp);

    TRACE(&sa->base.tracer, "Fast CNP from %s about DestQP %u: %s", TRACE_ADDR(&said->node),
          said->dest_qp, f ? "a flow of the host" : "no flow of the host");
    headend_congested(sa->base.headend, &said->original, said->dest_qp, &said->node, now);
    return f ? rate_fast_cnp(sa, f, said, now) : DROP_fast_cnp_flow;
}

enum drop_reason
fast_cnp_input(struct srcagent *sa, const struct rx *rx)
{
    const struct congestion_config *c = &sa->rates.config;
    const uint8_t *data = rx->p->data;
    struct fast_cnp said;

    if (!c->fast_cnp) {
        return DROP_fast_cnp_off;
    }
    /* Its ICRC is computed only for those who may send one. */
    enum drop_reason why = fast_cnp_parse(data, rx->p->len, &rx->h, true, &said);
    if (why) {
        return why;
    }
    if (!node_congestion_trusts(sa->base.congestion, &said.node)) {
        return DROP_fast_cnp_source;
    }
    if (!l3_host_port(sa->base.l3, &said.sender)) {
        return DROP_not_for_us;
    }
    why = c->any_icrc ? DROP_none : fast_cnp_parse(data, rx->p->len, &rx->h, false, &said);
    if (why) {
        return why;
    }
    return tell(sa, &said, rx->now);
}

void
fast_cnp_tell(struct node_base *base, const struct fast_cnp *said, uint64_t now)
{
    tell((struct srcagent *) base, said, now);
}
