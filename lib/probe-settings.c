/* SPDX-License-Identifier: Apache-2.0
 *
 * How often paths are probed: see probe-settings.h.
 */
#include "lib/probe-settings.h"

#include <string.h>

static const struct probe_choice *
find_choice(const struct probe_settings *s, const char *plane)
{
    static const struct probe_choice none;

    for (size_t i = 0; i < s->n_planes; i++) {
        if (!strcmp(s->planes[i].name, plane)) {
            return &s->planes[i].choice;
        }
    }
    return &none;
}

static uint32_t
default_timeout(uint32_t interval)
{
    uint32_t half = interval / 2;

    return half > LEAST_DEFAULT_TIMEOUT       ? half
           : interval < LEAST_DEFAULT_TIMEOUT ? interval
                                              : LEAST_DEFAULT_TIMEOUT;
}

/* As they were said: a plane that has an interval of its own does not have the time-out of all. */
static struct probe_times
find_times(const struct probe_settings *s, const char *plane)
{
    const struct probe_choice *own = find_choice(s, plane);
    uint32_t interval = own->has_interval     ? own->interval
                        : s->all.has_interval ? s->all.interval
                                              : DEFAULT_PROBE_INTERVAL;
    uint32_t timeout = own->has_timeout                           ? own->timeout
                       : s->all.has_timeout && !own->has_interval ? s->all.timeout
                                                                  : default_timeout(interval);

    return (struct probe_times){interval, timeout};
}

struct probe_choice
probe_settings_choice(const struct probe_settings *s, const char *plane)
{
    return plane[0] ? *find_choice(s, plane) : s->all;
}

struct probe_times
probe_settings_of(const struct probe_settings *s, const char *plane)
{
    struct probe_times times = find_times(s, plane);

    if (times.timeout > times.interval) {
        times.timeout = times.interval;
    }
    return times;
}

bool
probe_settings_are_cut(const struct probe_settings *s, const char *plane)
{
    struct probe_times times = find_times(s, plane);

    return times.interval && times.timeout > times.interval;
}
