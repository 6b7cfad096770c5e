/* SPDX-License-Identifier: Apache-2.0
 *
 * What is to happen to members while a run lasts (--event), and which receiver
 * processes that takes.
 */
#ifndef BENCH_CASTBENCH_EVENT_H
#define BENCH_CASTBENCH_EVENT_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/castbench/scheme.h"
#include "lib/words.h"

#define MAX_EVENTS 64
/* Receiver processes of a run. */
#define MAX_LIVES  (MAX_RECEIVERS + MAX_EVENTS)

enum event_kind {
    EVENT_JOIN,   /* a receiver process starts, and registers.  The host was no member. */
    EVENT_KILL,   /* the process gets SIGKILL. */
    EVENT_START,  /* as EVENT_JOIN, of a host whose process was killed. */
    EVENT_LEAVE,  /* what castctl's commands of these names do. */
    EVENT_DRAIN,  /* likewise. */
    EVENT_REMOVE, /* likewise. */
    N_EVENT_KINDS
};
WORDS_DECLARE(event_kind, enum event_kind);

struct event {
    uint32_t ms; /* since the begin of the measured blocks. */
    enum event_kind kind;
    const char *host;
};

/* Does a receiver process begin with it?  All other events end one. */
bool event_begins(enum event_kind);

/* Takes "T:KIND:HOST" apart, T in seconds.  The event's host points into the text.  False: 'error'
 * says what is wrong. */
bool event_parse(struct event *, const char *text, char *error, size_t size);

/* The time that a process of a receiver's host takes part. */
struct life {
    unsigned receiver; /* whose host it is. */
    int begin;         /* index of the event; -1: the run begins with it. */
    int end;           /* index of the event; -1: it stays. */
};

/* Makes the lives of hosts to which these events happen, which are ordered by time: at first those
 * that begin with the run, by receiver, then the others, by time.  A receiver takes part from the
 * begin unless its first event is EVENT_JOIN.  Returns their number; 0: an event is impossible, and
 * 'error', which is to follow "--event", says which and why. */
unsigned lives_of(const char *const receivers[], unsigned n_receivers, const struct event[],
                  unsigned n_events, struct life lives[MAX_LIVES], char *error, size_t size);

#endif /* bench/castbench/event.h */
