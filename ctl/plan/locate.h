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

#include "lib/node-config.h"
#include "lib/words.h"

enum locate_result {
    LOCATE_UNKNOWN, /* it says nothing, as one of a node that is not connected. */
    LOCATE_WORKS,
    LOCATE_FAILS,
};

struct locate_probe {
    const char *name; /* for messages. */
    const char *from; /* the node that sends it. */
    enum probe_kind kind;
    enum locate_result result;
    /* PROBE_PEER: the peer's own probe over the same links arrives here, whatever becomes of this
     * one. */
    bool heard;
    /* In any order: "spine5" is a node, "leaf1>spine5" a direction of a link, and "spine5>leaf1" the
     * other one; of parallel links also the ports, "leaf1:eth3>spine5:eth0". */
    size_t n_elements;
    char *const *elements;
    uint32_t interval_usec; /* between two of them, while it works. */
};

enum fault_kind {
    FAULT_NODE,
    FAULT_LINK,      /* both directions, or it is not known which one. */
    FAULT_DIRECTION, /* the other one works, or nothing speaks against it. */
    FAULT_PATH,      /* everything on this way works on other ways. */
};
WORDS_DECLARE(fault_kind, enum fault_kind);

struct fault_element {
    enum fault_kind kind;
    /* FAULT_NODE, FAULT_DIRECTION: as in the probes.  FAULT_LINK: "leaf1-spine5", its ends in order.
     * FAULT_PATH: the name of the probe. */
    char *name;
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

/* For so long the same fault has to be found before it is believed, in microseconds: for two intervals
 * of each probe that fails, so that none of them is what is left of another fault. */
uint64_t fault_agreement_usec(const struct fault *);

#endif /* ctl/plan/locate.h */
