/* SPDX-License-Identifier: Apache-2.0
 *
 * srcagent on a bench: what its host and the fabric send.
 */
#include "tests/unit/agent-fixture.h"

#include <check.h>
#include <stdlib.h>

#include "lib/alloc.h"
#include "lib/roce.h"
#include "srcagent/srcagent.h"

struct fixture *
agent_create(unsigned n_receivers)
{
    return fixture_create(&srcagent_class, n_receivers);
}

}

void
agent_congestion(struct fixture *f, uint64_t line)
{
    struct congestion_config *c = &f->config.congestion;
    const struct in6_addr edge = node_address(STAR_EDGE_ID);

    c->interval_usec = AGENT_INTERVAL;
    c->fast_cnp = true;
    c->rate_control = RATE_BY_AGENT;
    c->rate = rate_params_default(line, 0);
    free(c->trusted);
    c->trusted = must_copy(&edge, 1, sizeof edge);
    c->n_trusted = 1;
}

struct flow_info
agent_flow(const struct fixture *f, const struct in6_addr *dst, uint32_t dest_qp)
{
    struct flow_info info = {.group = NULL};

    for (size_t i = 0; i < srcagent_class.n_flows(f->node); i++) {
        srcagent_class.flow(f->node, i, &info);
        if (info.dest_qp == dest_qp && !memcmp(&info.dst, dst, sizeof *dst)) {
            return info;
        }
    }
    ck_abort_msg("no such flow was told");
    return info;
}

uint32_t
agent_psn(const struct fixture *f, size_t i)
{
    ck_assert_uint_lt(i, f->n_frames);
    return bth_psn((const void *) (f->frames[i].bytes + f->frames[i].h.bth_ofs)).v;
