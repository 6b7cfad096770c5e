/* SPDX-License-Identifier: Apache-2.0
 *
 * What operators say about congestion, apart from groups' settings (lib/group-policy.h).
 */
#ifndef LIB_CONGESTION_SETTINGS_H
#define LIB_CONGESTION_SETTINGS_H 1

#include <stdbool.h>
#include <stdint.h>

#include "lib/node-config.h"
#include "lib/rate-control.h"

/* What holds if nobody says anything else. */
#define DEFAULT_CNP_INTERVAL  10000 /* us. */
#define DEFAULT_FAST_CNP_RATE 1000
#define DEFAULT_LINE_RATE     UINT64_C(1000000000)

/* Limits. */
#define MIN_CNP_INTERVAL      100
#define MAX_CNP_INTERVAL      1000000
#define MAX_FAST_CNP_RATE     1000000
#define MIN_LINE_RATE         100000
#define MAX_LINE_RATE         UINT64_C(1000000000000)

/* Of all nodes. */
struct congestion_settings {
    uint32_t interval_usec;
    bool fast_cnp, any_icrc;
    uint32_t fast_cnp_rate;
};

enum fast_cnp_choice {
    FAST_CNP_AUTO, /* if a source agent limits its rate. */
    FAST_CNP_ON,
    FAST_CNP_OFF,
};
WORDS_DECLARE(fast_cnp_choice, enum fast_cnp_choice);

/* Of a host. */
struct rate_settings {
    enum rate_control_by by;
    enum rate_controller controller;
    uint64_t line, floor;          /* bit/s; floor 0: none of its own. */
    enum fast_cnp_choice fast_cnp; /* are Fast CNPs taken for it? */
};

/* Are they, if the host has a source agent or not? */
bool rate_settings_take_fast_cnp(const struct rate_settings *, bool has_agent);

/* What a node's controller goes by. */
struct rate_params rate_settings_params(const struct rate_settings *, uint32_t interval_usec);

/* The least rate, in bit/s, at which queue pairs with this time-out do not take packets with this
 * path MTU for lost; time-out 0, which is for ever: 0. */
uint64_t rate_needed(uint32_t mtu, uint8_t timeout);

#endif /* lib/congestion-settings.h */
