/* SPDX-License-Identifier: Apache-2.0
 *
 * Rate of one flow that is told of congestion.
 *
 * One interface, two controllers:
 *
 *   dcqcn   the reaction point of DCQCN: each cut is by alpha / 2, where alpha grows with signals
 *           and decays without
 *   depth   a signal that has a trace (Fast CNP option 2) cuts the rate, or B if that is less, by
 *           u = 1 + q / (B T_b), q the bytes that waited at the worst queue, B its rate; one that
 *           has none cuts as dcqcn
 *
 * Both grow alike: fast recovery, additive, hyper increase.  At most one cut in an interval,
 * whatever comes.  Nothing runs before the first signal: until then, and again after
 * RATE_IDLE_USEC without signal at the line rate or without sending, the flow is not limited.
 *
 * Pure.  Rates are in bit/s of Ethernet frames without FCS, times in microseconds.
 */
#ifndef LIB_RATE_CONTROL_H
#define LIB_RATE_CONTROL_H 1

#include <stdbool.h>
#include <stdint.h>

#include "lib/words.h"

enum rate_controller { RATE_DCQCN, RATE_DEPTH };
WORDS_DECLARE(rate_controller, enum rate_controller);

struct rate_params {
    enum rate_controller controller;
    uint64_t line;            /* L: rate of the uplink. */
    uint64_t floor;           /* R_min. */
    uint32_t interval_usec;   /* N: one cut at most. */
    uint32_t alpha_usec;      /* K; not 0. */
    uint32_t timer_usec;      /* T_rp; not 0. */
    uint32_t g_shift;         /* g = 2^-g_shift. */
    uint32_t f;               /* F: steps of fast recovery. */
    uint64_t additive, hyper; /* R_AI, R_HAI. */
    uint64_t byte_counter;    /* B; 0: none. */
    uint32_t base_usec;       /* T_b, of depth. */
};
/* What suits a line rate and a floor: N 10 ms, K = T_rp 11 ms, g 1/256, F 5, R_AI L/1000, R_HAI
 * L/100, R_min max(L/200, floor), no byte counter, T_b 40 frames at L/10.  With these one flow has 0.94
 * to 1 of a queue of L/10 at 5 Mb/s to 1 Gb/s, with RED from 5 to 20 frames (test-rate-loop.c). */
struct rate_params rate_params_default(uint64_t line, uint64_t floor);

enum rate_cause {
    RATE_CNP,      /* a CNP. */
    RATE_FAST_CNP, /* a Fast CNP. */
};
WORDS_DECLARE(rate_cause, enum rate_cause);

struct rate_signal {
    enum rate_cause cause;
    bool has_depth;       /* the next two are known. */
    uint64_t queue_bytes; /* at the worst queue... */
    uint64_t queue_rate;  /* ...and its rate, bit/s; 0: not known. */
};

#define RATE_IDLE_USEC UINT64_C(10000000)

/* Embedded in its owner; starts all zero.  Only rate-control.c looks inside. */
struct rate_control {
    bool active;
    uint64_t rate, target; /* R_C, R_T. */
    uint32_t alpha;        /* of 2^20. */
    uint32_t timer_stage, byte_stage;
    uint64_t bytes;
    uint64_t alpha_at, timer_at; /* next timers; UINT64_MAX: the rate is the line's. */
    uint64_t idle_since;         /* last signal or stage of increase. */
    uint64_t n_signals, n_cuts;
    uint64_t last_cut; /* 0: never. */
    bool sent;         /* something has left, since the last stage of the timer. */
    bool advanced;     /* a stage has, since the last cut. */
};

/* A signal arrives.  True: the rate was cut. */
bool rate_control_signal(struct rate_control *, const struct rate_params *,
                         const struct rate_signal *, uint64_t now);
/* So many bytes of the flow have left; to be called whenever some do. */
void
rate_control_sent(struct rate_control *, const struct rate_params *, uint32_t bytes, uint64_t now);
/* When rate_control_timer() wants to be called; UINT64_MAX: never. */
uint64_t rate_control_deadline(const struct rate_control *);
void rate_control_timer(struct rate_control *, const struct rate_params *, uint64_t now);
/* The rate; 0: the flow is not limited. */
uint64_t rate_control_rate(const struct rate_control *);

/* The least floor with which a queue pair's timer does not run out: its next ACK is 66 packets of
 * 'frame' bytes away, and it is to be half of its time-out (4.096 us * 2^timeout). */
uint64_t rate_floor_for(uint32_t frame, uint8_t timeout);

#endif /* lib/rate-control.h */
