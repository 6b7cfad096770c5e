/* SPDX-License-Identifier: Apache-2.0
 *
 * One course of a congested lab: what it begins with, and what is seen of it from time to time.
 *
 * All links have the line's rate L, but for those that a case slows down.  The source's host has a
 * link of its own with the share of L that the group's packets leave of it in the fabric, so that
 * its window waits in its NIC, as that of a real one does.
 */
#ifndef TESTS_SIM_COURSE_H
#define TESTS_SIM_COURSE_H 1

#include "tests/model/lab.h"

#define FRAME        1102 /* of the most frequent packets, on a host's link, */
#define FABRIC_FRAME 1166 /* and between nodes. */
#define LINE_QUEUE   1000 /* frames, at a link that is not congested. */
#define KMIN         5    /* RED of one that is. */
#define L_OVER_C     10
#define MAX_FLOWS    2
#define MAX_TICKS    2000
#define MBIT         UINT64_C(1000000)
#define MSEC         UINT64_C(1000)
#define SEC          UINT64_C(1000000)

/* How the source hears of congestion. */
enum control { OFF, EDGE_CNP, NIC_CNP, FAST_CNP, FAST_DEPTH, SOURCE_NIC, N_CONTROLS };

struct control_means {
    const char *name;
    bool fast, nic, obeys, depth;
};
extern const struct control_means controls[N_CONTROLS];

struct sample {
    uint64_t at;
    uint64_t n_new[1 + MAX_FLOWS]; /* packets that are new at the receivers looked at. */
    uint64_t n_dropped;            /* by queues. */
};

struct course {
    uint64_t line;
    struct lab *lab;
    unsigned receiver; /* that is looked at. */
    uint64_t start, end;
    unsigned n_samples;
    struct sample samples[MAX_TICKS];
};
extern struct course course; /* that is under way. */
extern char course_name[160];

/* Prints why, and ends the process. */
void course_failed(const struct lab *, const char *condition, const char *text);

struct lab *course_begin(const char *topology, uint64_t line, enum control);
/* A link that is congested. */
struct impair_params course_congested(uint64_t rate);
void course_congest(const char *from, const char *to, uint64_t rate);
struct lab_flow *course_add_flow(const char *from, const char *to);
/* Lasts 'end' microseconds, and until what is under way then is done. */
void course_go(uint64_t end);

/* Times are from the start on. */
const struct sample *course_at(uint64_t at);
uint64_t course_n_dropped(void); /* until now. */
/* Share of a link of this rate that the group (0) or a flow (from 1 on) had between two times. */
double course_share(unsigned i, uint64_t from, uint64_t to, uint64_t rate, unsigned frame);
/* When drops came last, from 'from' on; 0: none did. */
uint64_t course_last_drop(uint64_t from);
/* How long it took from 'from' on until the group had this share of what it had in the same time
 * before 'onset'; UINT64_MAX: it did not. */
uint64_t course_time_back(uint64_t onset, uint64_t from, double least);

#endif /* tests/sim/course.h */
