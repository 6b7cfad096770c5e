/* SPDX-License-Identifier: Apache-2.0
 *
 * One direction of a bad link: a queue in front of a rate (lib/egress.h), then a way that
 * takes time and loses, repeats, delays and spoils frames.
 *
 *     frame -> [queue] -> rate -> loss? -> corruption? -> delay, jitter, late? -> twice?
 *
 * Frames stay in order but for those that are late.  What happens follows from
 * seed and frames alone: it is the same in every run with the same times.  Pure:
 * time is an argument, in microseconds.
 *
 * RED knows frames here by their ECN field alone: it marks those that say ECT and drops none.
 */
#ifndef LIB_IMPAIR_H
#define LIB_IMPAIR_H 1

#include <stdbool.h>
#include <stdint.h>

#include "lib/egress.h"
#include "lib/packet.h"

#define IMPAIR_PPM       1000000u /* always. */
#define IMPAIR_QUEUE     1000     /* default, in frames. */
#define IMPAIR_LATE_USEC 1000     /* default, in microseconds. */
#define IMPAIR_MAX_USEC  60000000u
#define IMPAIR_TEXT_SIZE 256

struct impair_params {
    uint64_t rate;       /* bit/s, of whole Ethernet frames without FCS; 0: no limit. */
    uint32_t queue;      /* with a rate: frames that wait, with the one that is being sent. */
    uint32_t kmin, kmax; /* with a rate: RED's depths in frames (lib/egress.h); kmax 0: no RED. */
    uint32_t pmax;       /* of a million. */
    uint32_t delay_usec;
    uint32_t jitter_usec; /* at most this much more or less; not less than 0 in all. */
    uint32_t late_usec;   /* how much reordered frames are late. */
    uint32_t loss, duplicate, reorder, corrupt; /* of a million frames. */
    uint32_t seed;
};

/* "rate=100M queue=200 kmin=5 kmax=20 pmax=100% delay=10ms jitter=1ms loss=1% duplicate=0.1% reorder=1% late=2ms corrupt=1%
 * seed=7", any of these in any order with spaces or commas between, or "" or "none".  Rates have
 * suffixes k, M, G (powers of 1000), times us, ms, s.  False, and a malloc'd sentence: it is
 * nonsense. */
bool impair_parse(const char *text, struct impair_params *, char **errp);
/* The same in a canonical form that impair_parse() understands: "" if nothing is impaired. */
void impair_format(const struct impair_params *, char text[IMPAIR_TEXT_SIZE]);
bool impair_same(const struct impair_params *, const struct impair_params *);
/* Do all frames pass as they are? */
bool impair_is_none(const struct impair_params *);
/* Its queue; it has a rate. */
struct egress_params impair_queue(const struct impair_params *);
/* The same without it: only the way. */
struct impair_params impair_way(const struct impair_params *);

struct impair_stats {
    uint64_t n_frames;     /* frames that came. */
    uint64_t n_queue_full; /* of n_frames: dropped, the queue was full. */
    uint64_t n_no_buffer;  /* of n_frames: dropped, there was no packet to hold it. */
    uint64_t n_lost;       /* of n_frames: lost on the way. */
    uint64_t n_corrupted, n_late;
    uint64_t n_marked;     /* got CE in the queue. */
    uint64_t n_duplicated; /* further frames that were made. */
};

struct impair;

/* 'salt' makes the two directions of a link, and links, differ under one seed.  Aborts if memory
 * cannot be had. */
struct impair *impair_create(const struct impair_params *, uint64_t salt);
/* Returns the packets it holds.  NULL is allowed. */
void impair_destroy(struct impair *);

/* A frame enters and is copied.  No copy is made when only an eighth of the pool is left by what is
 * held here and elsewhere. */
void impair_input(struct impair *, struct packet_pool *, const struct packet *, uint64_t now);
/* When to look for a frame that has left; UINT64_MAX: there is none. */
uint64_t impair_deadline(const struct impair *);
/* The next frame that has left by now, which becomes the caller's; NULL: none. */
struct packet *impair_output(struct impair *, uint64_t now);

void impair_get_stats(const struct impair *, struct impair_stats *);
/* Frames that wait or are under way. */
uint32_t impair_n_held(const struct impair *);

#endif /* lib/impair.h */
