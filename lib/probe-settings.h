/* SPDX-License-Identifier: Apache-2.0
 *
 * How often paths are probed, as operators say it: for all of them, and for those of single planes.
 *
 * All zero: nobody has said anything.
 */
#ifndef LIB_PROBE_SETTINGS_H
#define LIB_PROBE_SETTINGS_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/node-config.h"

/* What holds if nobody says anything else, in milliseconds. */
#define DEFAULT_PROBE_INTERVAL 100
#define LEAST_DEFAULT_TIMEOUT  10 /* half of the interval, but not less than this. */

/* Limits, in milliseconds.  An interval of 0 turns probes off. */
#define MIN_PROBE_INTERVAL     10
#define MAX_PROBE_INTERVAL     60000
#define MIN_PROBE_TIMEOUT      1

/* What was said, in milliseconds. */
struct probe_choice {
    bool has_interval, has_timeout;
    uint32_t interval; /* 0: no probes. */
    uint32_t timeout;
};

struct probe_plane {
    char name[NAME_SIZE];
    struct probe_choice choice;
};

struct probe_settings {
    struct probe_choice all;
    size_t n_planes;
    struct probe_plane *planes; /* by name. */
};

/* What holds for paths of a plane, in milliseconds; "": for those of none.  The time-out is at most the
 * interval. */
struct probe_times {
    uint32_t interval; /* 0: no probes. */
    uint32_t timeout;
};
struct probe_times probe_settings_of(const struct probe_settings *, const char *plane);

/* What was chosen for a plane; "": for all. */
struct probe_choice probe_settings_choice(const struct probe_settings *, const char *plane);

/* Whether the time-out of these is longer than the interval.  It is cut then. */
bool probe_settings_are_cut(const struct probe_settings *, const char *plane);

#endif /* lib/probe-settings.h */
