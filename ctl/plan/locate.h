/* SPDX-License-Identifier: Apache-2.0
 *
 * What is broken, by the probes that fail and those that work.
 *
 * An element is a node, or one direction of a link.  All elements on the way of a probe that works are
 * good.  A probe that fails has a broken one on its way.  The answer is the fewest faults that explain
 * all probes that fail; where several elements would do equally well, all of them are candidates of
 * one fault.
 *
 * Loops pass each link in both directions, so they never tell one from the other.  A probe between
 * peers does, where the peer's own one, over the same links, still arrives.
 *
 * Pure: from plain data to plain data.
 */
#ifndef CTL_PLAN_LOCATE_H
#define CTL_PLAN_LOCATE_H 1

#include "lib/fault-element.h"
#include "lib/node-config.h"
#include "lib/path-health.h"

enum locate_result {
    LOCATE_UNKNOWN, /* it says nothing yet, or nothing certain. */
    LOCATE_WORKS,
    LOCATE_FAILS,
};

/* What the state of a probe says of its way. */
enum locate_result locate_result_of(enum path_state);

struct locate_probe {
    const char *name; /* for messages. */
    const char *node; /* that sends it. */
    enum probe_kind kind;
    /* What it passes there and back, with spaces between, besides its node: "spine5" is a node,
     * "leaf1>spine5" a link in one direction, of parallel ones "leaf1:eth3>spine5".  The way back is
     * over the same links. */
    const char *elements;
    uint32_t interval_usec; /* between two of them, while it works. */

    /* As its node has reported it. */
    enum locate_result result;
    int64_t since; /* when that became so, in milliseconds. */
    /* PROBE_PEER: the peer's own probe over the same links arrives here, whatever becomes of this
     * one. */
    bool heard;
    const struct locate_probe *reverse; /* PROBE_PEER: that probe, of the same array; NULL: none. */
};

struct fault_element {
    enum fault_kind kind;
    char *name; /* see lib/fault-element.h. */
};

struct fault {
    size_t n_elements;
    struct fault_element *elements; /* the candidates, by kind and name; at least one. */
    size_t n_evidence;
    const struct locate_probe **evidence; /* that fail and pass one of them, in the given order. */
};

/* Fills *faults (malloc'd, by their first elements) and *n.  They point to the probes. */
void locate_faults(const struct locate_probe *, size_t n_probes, struct fault **faults, size_t *n);
void locate_faults_free(struct fault *, size_t n);

/* For so long a fault that was found first at 'found', in milliseconds as in the probes, has to be found
 * again and again before it is believed; in microseconds.  That is two intervals of each probe that
 * fails, and the time that nodes take at most to report. */
uint64_t fault_agreement_usec(const struct fault *, int64_t found);

#endif /* ctl/plan/locate.h */
