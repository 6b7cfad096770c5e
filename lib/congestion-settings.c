/* SPDX-License-Identifier: Apache-2.0
 *
 * What operators say about congestion, and what follows from it.
 */
#include "lib/congestion-settings.h"

#include "lib/wire.h"

static const char *const choices[] = {
    [FAST_CNP_AUTO] = "auto",
    [FAST_CNP_ON] = "on",
    [FAST_CNP_OFF] = "off",
};
WORDS_DEFINE(fast_cnp_choice, enum fast_cnp_choice, choices);

bool
rate_settings_take_fast_cnp(const struct rate_settings *s, bool has_agent)
{
    return s->fast_cnp == FAST_CNP_AUTO ? has_agent && s->by == RATE_BY_AGENT
                                        : s->fast_cnp == FAST_CNP_ON;
}

struct rate_params
rate_settings_params(const struct rate_settings *s, uint32_t interval_usec)
{
    struct rate_params p = rate_params_default(s->line, s->floor);

    p.controller = s->controller;
    p.interval_usec = interval_usec;
    /* A little more than the interval, as by default: without signals alpha decays and the rate
     * grows from interval to interval. */
    p.alpha_usec = p.timer_usec = interval_usec + interval_usec / 10;
    return p;
}

uint64_t
rate_needed(uint32_t mtu, uint8_t timeout)
{
    uint32_t frame = (uint32_t) sizeof(struct eth_hdr) + mtu + ROCE_OVERHEAD;

    return timeout ? rate_floor_for(frame, timeout) : 0;
}
