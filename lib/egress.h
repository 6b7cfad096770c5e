/* SPDX-License-Identifier: Apache-2.0
 *
 * The queue in front of a port's rate: first in, first out, with RED.
 *
 *     egress_put() -> [frames that wait] -> rate -> egress_get()
 *
 * Depth is counted in frames, the one that is being sent included.  RED's share p of a depth q is 0
 * up to kmin, grows to pmax at kmax, and is 1 above.  It is applied twice:
 *
 *   - to a frame that comes (q before it): that is congestion, which the caller may tell the
 *     sender of, and what drops a frame that cannot be marked;
 *   - to a frame that leaves (q behind it): that marks it with CE in its outermost IPv6 header, the
 *     earliest mark that its receiver can see (RFC 3168).
 *
 * Frames that came and those that left by some time are looked at in that order whenever the caller
 * comes, so a late caller changes no mark.  The random numbers follow from the seed.  Pure; time is
 * an argument, in microseconds; the rate is kept in nanoseconds.
 */
#ifndef LIB_EGRESS_H
#define LIB_EGRESS_H 1

#include <stdbool.h>
#include <stdint.h>

#include "lib/packet.h"

#define EGRESS_PPM 1000000u /* always. */

struct egress_params {
    uint64_t rate;       /* bit/s, of whole Ethernet frames without FCS; not 0. */
    uint32_t limit;      /* most frames that wait, the one that is being sent included; not 0. */
    uint32_t kmin, kmax; /* frames; kmax 0: no RED. */
    uint32_t pmax;       /* of a million. */
};

/* What RED may do to a frame. */
enum egress_kind {
    EGRESS_EXEMPT,   /* nothing: a response, a CNP, and all that is neither data nor a probe. */
    EGRESS_MARKABLE, /* set CE: it says ECT, or CE already. */
    EGRESS_NOT_ECT,  /* drop it. */
    EGRESS_TOLD,     /* nothing, since its sender is told otherwise (draft-xiao section 4). */
};

enum egress_result {
    EGRESS_QUEUED,
    EGRESS_FULL, /* the limit, or less than an eighth of its pool is free. */
    EGRESS_RED,  /* EGRESS_NOT_ECT, and RED has hit it. */
};

struct egress_stats {
    uint64_t n_frames, n_bytes; /* that came, */
    uint64_t n_sent, n_sent_bytes;
    uint64_t n_full, n_red;    /* of n_frames: dropped, by the reason. */
    uint64_t n_marked;         /* of n_sent: got CE here. */
    uint64_t n_congested;      /* of n_frames: RED has hit them when they came. */
    uint32_t depth, max_depth; /* frames that wait now, and most ever. */
    uint64_t depth_bytes, max_depth_bytes;
};

struct egress;

/* 'params' must make sense: rate, limit and kmin <= kmax.  Aborts if memory cannot be had. */
struct egress *egress_create(const struct egress_params *, uint64_t seed);
/* Returns the packets that it holds.  NULL is allowed. */
void egress_destroy(struct egress *);
/* Frames that wait stay, also beyond a smaller limit, and leave at the new rate. */
void egress_configure(struct egress *, const struct egress_params *, uint64_t now);

/* May RED hit a frame, when it comes or when it leaves?  If not, its kind does not matter. */
bool egress_has_red(const struct egress *);
/* ECN_* of the outermost IPv6 header (lib/ecn.h); ECN_NOT_ECT if there is none. */
uint8_t egress_ecn(const struct packet *);
/* A frame comes.  Takes 'p' over if EGRESS_QUEUED.  *congested: RED has hit it, whatever its kind
 * but EGRESS_EXEMPT. */
enum egress_result
egress_put(struct egress *, struct packet *p, enum egress_kind, uint64_t now, bool *congested);
/* The next frame that has left by now, which becomes the caller's; NULL: none.  *marked: it got CE
 * here. */
struct packet *egress_get(struct egress *, uint64_t now, bool *marked);
/* When the next frame leaves; UINT64_MAX: none waits.  A frame that is late leaves at 0. */
uint64_t egress_deadline(const struct egress *);

void egress_get_stats(const struct egress *, struct egress_stats *);

#endif /* lib/egress.h */
