/* SPDX-License-Identifier: Apache-2.0
 *
 * What the registry has about congestion.
 */
#include <config.h>

#include "ctl/registry/congestion.h"

#include "ctl/registry/rocecast-idl.h"
#include "util.h"

static uint64_t
number(const int64_t *value, size_t n, uint64_t otherwise)
{
    return n ? (uint64_t) value[0] : otherwise;
}

struct congestion_settings
congestion_settings_read(const struct rrec_global *row)
{
    struct congestion_settings s = {
        .interval_usec = DEFAULT_CNP_INTERVAL,
        .fast_cnp_rate = DEFAULT_FAST_CNP_RATE,
    };

    if (row) {
        s.fast_cnp = row->fast_cnp;
        s.any_icrc = row->fast_cnp_any_icrc;
        s.interval_usec =
            (uint32_t) number(row->cnp_interval, row->n_cnp_interval, s.interval_usec);
        s.fast_cnp_rate =
            (uint32_t) number(row->fast_cnp_rate, row->n_fast_cnp_rate, s.fast_cnp_rate);
    }
    return s;
}

struct rate_settings
rate_settings_read(const struct rrec_host *row)
{
    struct rate_settings s = {
        .line = number(row->line_rate, row->n_line_rate, DEFAULT_LINE_RATE),
        .floor = number(row->rate_floor, row->n_rate_floor, 0),
    };

    /* Words always parse: the schema allows no others. */
    if (row->rate_control) {
        rate_control_by_parse(row->rate_control, &s.by);
    }
    if (row->controller) {
        rate_controller_parse(row->controller, &s.controller);
    }
    if (row->n_fast_cnp) {
        s.fast_cnp = row->fast_cnp[0] ? FAST_CNP_ON : FAST_CNP_OFF;
    }
    return s;
}

void
congestion_settings_write(const struct rrec_global *row, const struct congestion_settings *s)
{
    int64_t interval = s->interval_usec, rate = s->fast_cnp_rate;

    rrec_global_set_fast_cnp(row, s->fast_cnp);
    rrec_global_set_fast_cnp_any_icrc(row, s->any_icrc);
    rrec_global_set_cnp_interval(row, &interval, interval != DEFAULT_CNP_INTERVAL);
    rrec_global_set_fast_cnp_rate(row, &rate, rate != DEFAULT_FAST_CNP_RATE);
}

void
rate_settings_write(const struct rrec_host *row, const struct rate_settings *s)
{
    bool fast_cnp = s->fast_cnp == FAST_CNP_ON;
    int64_t line = (int64_t) s->line, floor = (int64_t) s->floor;

    rrec_host_set_rate_control(row, s->by == RATE_BY_AGENT ? NULL : rate_control_by_name(s->by));
    rrec_host_set_controller(
        row, s->controller == RATE_DCQCN ? NULL : rate_controller_name(s->controller));
    rrec_host_set_line_rate(row, &line, line != DEFAULT_LINE_RATE);
    rrec_host_set_rate_floor(row, &floor, floor > 0);
    rrec_host_set_fast_cnp(row, &fast_cnp, s->fast_cnp != FAST_CNP_AUTO);
}
