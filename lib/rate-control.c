/* SPDX-License-Identifier: Apache-2.0
 *
 * Rate of one flow that is told of congestion.
 *
 * Theory of operation.  There are two rates: R_C, at which the flow leaves, and R_T, which R_C
 * comes back to by halves.  A cut lowers R_C and begins the stages of increase anew.  A stage ends
 * with the timer T_rp, and with each B bytes sent if there is a byte counter:
 *
 *   fast recovery  no count of stages has reached F: R_T stays
 *   additive       one has: R_T += R_AI
 *   hyper          both have: R_T += R_HAI, 2 R_HAI, ...
 *
 * and then R_C := (R_C + R_T) / 2.  Without a byte counter the count of its stages is taken as one
 * less than the timer's: one additive stage, and hyper ones from then on.  That the hyper ones grow
 * is what brings a flow back from L/10 in 0.2 s; with the same R_HAI each it would be 1 s.
 *
 * R_T follows R_C down only if a stage has ended since the cut before (the clamp that hardware has
 * by default).  So a series of cuts, which only says that the first was not enough, does not forget
 * where the flow came from, and the flow is back there soon if the series went too low.
 *
 * A cut by depth knows the rate B of the worst queue.  The flow cannot have more than that, so the
 * cut is from the lower one of R_C and B, and R_T becomes that too: the rate to come back to.  With
 * R_C alone it takes many intervals from L down to B, and with R_T := R_C after the cut the flow
 * has 0.5 to 0.9 of the queue, since fast recovery has nothing to recover.
 *
 * A stage of the timer in which nothing was sent does not count: otherwise the rate of a sender that
 * waits for its time-out is back at the line, and what it sends then overflows the same queue.
 *
 * alpha is in units of 2^-20, so that a rate of 2^43 can be multiplied by it.
 *
 * At the line rate no stage runs any more, and alpha decays.  When RATE_IDLE_USEC have passed
 * without a signal or a stage, there or with a sender that sends nothing, all is forgotten but the
 * counters.
 */
#include "lib/rate-control.h"

#include "lib/defect.h"

#define ALPHA_BITS   20
#define ALPHA_ONE    (UINT32_C(1) << ALPHA_BITS)

/* eta of the depth controller, in percent: what it leaves of the rate of a queue. */
#define ETA_PERCENT  95
#define MAX_BASE     1000000 /* microseconds, so that products fit. */

/* T_b by default: so many times of a frame at L/10.  With 8, cuts at 1 Gb/s are too deep for an
 * interval of 1,134 frames: the flow gets 0.85 of the queue.  With 10 ms at 1 Gb/s they are too small
 * for two flows that share it. */
#define BASE_FRAMES  UINT64_C(40)
#define BASE_FRAME   1102 /* bytes, of path MTU 1024. */

#define USEC_PER_SEC UINT64_C(1000000)

static const char *const controllers[] = {
    [RATE_DCQCN] = "dcqcn",
    [RATE_DEPTH] = "depth",
};
WORDS_DEFINE(rate_controller, enum rate_controller, controllers);

static const char *const causes[] = {
    [RATE_CNP] = "cnp",
    [RATE_FAST_CNP] = "fast-cnp",
};
WORDS_DEFINE(rate_cause, enum rate_cause, causes);

static uint64_t
min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t
max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

struct rate_params
rate_params_default(uint64_t line, uint64_t floor)
{
    return (struct rate_params){
        .controller = RATE_DCQCN,
        .line = line,
        .floor = min_u64(max_u64(line / 200, floor), line),
        .interval_usec = 10000,
        .alpha_usec = 11000,
        .timer_usec = 11000,
        .g_shift = 8,
        .f = 5,
        .additive = line / 1000,
        .hyper = line / 100,
        .base_usec = (uint32_t) min_u64(
            BASE_FRAMES * BASE_FRAME * 8 * 10 * USEC_PER_SEC / max_u64(line, 1), MAX_BASE),
    };
}

/* Is it at the line rate? */
static bool
is_full(const struct rate_control *rc)
{
    return rc->timer_at == UINT64_MAX;
}

/* What a cut by depth leaves of 'rate': eta / u of it, or of the queue's if that is less. */
static uint64_t
cut_by_depth(uint64_t rate, const struct rate_params *params, const struct rate_signal *signal)
{
    uint64_t base_usec = min_u64(params->base_usec, MAX_BASE);
    uint64_t base = max_u64(signal->queue_rate / 8 * base_usec / USEC_PER_SEC, 1); /* B T_b. */
    uint64_t waiting = min_u64(signal->queue_bytes, UINT64_MAX / 2);
    uint64_t share = (base << ALPHA_BITS) / (base + waiting); /* 1 / u. */

    return (min_u64(rate, signal->queue_rate) * share >> ALPHA_BITS) * ETA_PERCENT / 100;
}

static void
cut(struct rate_control *rc, const struct rate_params *params, const struct rate_signal *signal,
    uint64_t now)
{
    bool by_depth =
        params->controller == RATE_DEPTH && signal->has_depth && signal->queue_rate != 0;
    uint64_t before = rc->rate;

    rc->alpha += (ALPHA_ONE - rc->alpha) >> params->g_shift;
    rc->rate = max_u64(params->floor, by_depth ? cut_by_depth(before, params, signal)
                                               : before - (before * rc->alpha >> ALPHA_BITS) / 2);
    if (by_depth) {
        rc->target = min_u64(before, signal->queue_rate);
    } else if (rc->advanced) {
        rc->target = before;
    }
    rc->advanced = false;
    rc->timer_stage = rc->byte_stage = 0;
    rc->bytes = 0;
    rc->alpha_at = now + params->alpha_usec;
    rc->timer_at = now + params->timer_usec;
    rc->last_cut = now;
    rc->n_cuts++;
}

bool
rate_control_signal(struct rate_control *rc, const struct rate_params *params,
                    const struct rate_signal *signal, uint64_t now)
{
    rate_control_timer(rc, params, now);
    rc->n_signals++;
    rc->idle_since = now;
    if (!rc->active) {
        rc->active = true;
        rc->rate = rc->target = params->line;
        rc->alpha = ALPHA_ONE;
    } else if (now < rc->last_cut + params->interval_usec && !DEFECT(CUT_EACH)) {
        return false;
    }
    cut(rc, params, signal, now);
    return true;
}

/* A stage has ended at 'when'. */
static void
increase(struct rate_control *rc, const struct rate_params *params, uint64_t when)
{
    uint64_t timer = rc->timer_stage;
    uint64_t byte = params->byte_counter ? rc->byte_stage : timer - (timer > 0);

    rc->advanced = true;
    if (min_u64(timer, byte) >= params->f) {
        /* More than so many steps would pass any line. */
        uint64_t step = min_u64(min_u64(timer, byte) - params->f + 1, 1000);

        rc->target += params->hyper * step;
    } else if (max_u64(timer, byte) >= params->f) {
        rc->target += params->additive;
    }
    rc->target = min_u64(rc->target, params->line);
    /* Upwards, or it would never be the line rate. */
    rc->rate = min_u64((rc->rate + rc->target + 1) / 2, params->line);
    rc->idle_since = when;
    if (rc->rate == params->line) {
        rc->timer_at = UINT64_MAX;
    }
}

void
rate_control_sent(struct rate_control *rc, const struct rate_params *params, uint32_t bytes,
                  uint64_t now)
{
    rc->sent = true;
    if (!rc->active || !params->byte_counter || is_full(rc)) {
        return;
    }
    rc->bytes += bytes;
    if (rc->bytes >= params->byte_counter) {
        rc->bytes %= params->byte_counter;
        rc->byte_stage++;
        increase(rc, params, now);
    }
}

uint64_t
rate_control_deadline(const struct rate_control *rc)
{
    if (!rc->active) {
        return UINT64_MAX;
    }
    return min_u64(rc->idle_since + RATE_IDLE_USEC, min_u64(rc->alpha_at, rc->timer_at));
}

void
rate_control_timer(struct rate_control *rc, const struct rate_params *params, uint64_t now)
{
    uint64_t when;

    while ((when = rate_control_deadline(rc)) <= now) {
        if (when == rc->idle_since + RATE_IDLE_USEC) {
            rc->active = false;
        } else if (when == rc->alpha_at) {
            rc->alpha -= rc->alpha >> params->g_shift;
            rc->alpha_at += params->alpha_usec;
        } else {
            rc->timer_at += params->timer_usec;
            if (rc->sent) {
                rc->sent = false;
                rc->timer_stage++;
                increase(rc, params, when);
            }
        }
    }
}

uint64_t
rate_control_rate(const struct rate_control *rc)
{
    return rc->active ? rc->rate : 0;
}

uint64_t
rate_floor_for(uint32_t frame, uint8_t timeout)
{
    /* 66 packets take 66 S 8 / R, half of T = 4096 ns * 2^timeout. */
    return (UINT64_C(2) * 66 * 8 * 1000000000 / 4096 * frame >> (timeout & 31)) + 1;
}
