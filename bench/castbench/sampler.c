/* SPDX-License-Identifier: Apache-2.0
 *
 * Samples of a run's progress (see sampler.h).
 *
 * Samples are due at multiples of the interval, so that a late one does not put off those behind
 * it.  When there is no room for more, every second one is dropped and the interval doubled.
 */
#include "bench/castbench/sampler.h"

void
sampler_init(struct sampler *s, struct run_result *result, unsigned interval_ms)
{
    *s = (struct sampler){.result = result, .interval_ms = interval_ms, .next_ms = interval_ms};
    result->n_samples = 0;
}

/* Bytes and cuts of a dropped sample go to the one behind it. */
static void
drop_every_second(struct run_result *r)
{
    for (unsigned i = 0; i + 1 < r->n_samples; i += 2) {
        struct sample both = r->samples[i + 1];

        both.bytes += r->samples[i].bytes;
        both.rate.n_cuts += r->samples[i].rate.n_cuts;
        r->samples[i / 2] = both;
    }
    r->n_samples /= 2;
}

static void
set_next(struct sampler *s, uint64_t ms)
{
    s->next_ms = (ms / s->interval_ms + 1) * s->interval_ms;
}

static void
make_room(struct sampler *s)
{
    struct run_result *r = s->result;

    if (r->n_samples == MAX_SAMPLES) {
        drop_every_second(r);
        s->interval_ms *= 2;
        set_next(s, r->samples[r->n_samples - 1].ms);
    }
}

static struct sample *
append(struct sampler *s, uint64_t ms, uint64_t total)
{
    struct sample *sample = &s->result->samples[s->result->n_samples++];

    *sample = (struct sample){.ms = (uint32_t) ms, .bytes = total - s->bytes};
    s->bytes = total;
    set_next(s, ms);
    return sample;
}

struct sample *
sampler_add(struct sampler *s, uint64_t ms, uint64_t total)
{
    make_room(s);
    return ms >= s->next_ms ? append(s, ms, total) : NULL;
}

struct sample *
sampler_end(struct sampler *s, uint64_t ms, uint64_t total)
{
    make_room(s);
    return total > s->bytes ? append(s, ms, total) : NULL;
}
