/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: is what an agent has read as changes what it would have read as a whole?
 *
 * Structs are compared byte by byte, without their pointers, and then what those point to.  So a new
 * field is compared without a word here, and one that is a pointer differs until it has its line.
 * Padding is 0 in both: whoever reads rows begins with zeroed memory.
 */
#include <config.h>

#include "ctl/node/agent-check.h"

#include <stdlib.h>

#include "lib/node-config.h"
#include "util.h"

bool
agent_check_is_wanted(void)
{
    return getenv("ROCECAST_AGENT_CHECK") != NULL;
}

/* Which list differs, and where; the first one that does is kept. */
struct difference {
    const char *list; /* NULL: none. */
    size_t index;
};

/* Returns whether there is none. */
static bool
note(struct difference *d, bool same, const char *list, size_t index)
{
    if (!same && !d->list) {
        d->list = list;
        d->index = index;
    }
    return !d->list;
}

/* Of lists whose elements have no pointers. */
static void
compare_lists(struct difference *d, const char *list, const void *a_, const void *b_, size_t n,
              size_t size)
{
    const uint8_t *a = a_, *b = b_;

    for (size_t i = 0; i < n; i++) {
        note(d, !memcmp(a + i * size, b + i * size, size), list, i);
    }
}
#define COMPARE_LISTS(D, A, B, LIST) \
    compare_lists(D, #LIST, (A)->LIST, (B)->LIST, (A)->n_##LIST, sizeof *(A)->LIST)

/* Copies with all bytes, padding too, whose pointers can be taken out. */
#define COPY_BOTH(A, B, FROM_A, FROM_B) \
    do {                                \
        memcpy(A, FROM_A, sizeof *(A)); \
        memcpy(B, FROM_B, sizeof *(B)); \
    } while (0)

static void
compare_ports(struct difference *d, const struct port_config *x, const struct port_config *y,
              size_t i)
{
    struct port_config a, b;

    COPY_BOTH(&a, &b, x, y);
    a.programs = b.programs = NULL;
    if (note(d, !memcmp(&a, &b, sizeof a), "ports", i)) {
        COMPARE_LISTS(d, x, y, programs);
    }
}

static void
compare_destinations(struct difference *d, const struct destination_config *x,
                     const struct destination_config *y, size_t i)
{
    struct destination_config a, b;

    COPY_BOTH(&a, &b, x, y);
    a.paths = b.paths = NULL;
    a.pins = b.pins = NULL;
    if (note(d, !memcmp(&a, &b, sizeof a), "destinations", i)) {
        COMPARE_LISTS(d, x, y, paths);
        COMPARE_LISTS(d, x, y, pins);
    }
}

static void
compare_planes(struct difference *d, const struct plane_config *x, const struct plane_config *y,
               size_t n)
{
    struct plane_config a, b;

    for (size_t i = 0; i < n; i++) {
        COPY_BOTH(&a, &b, &x[i], &y[i]);
        a.probes = b.probes = NULL;
        if (note(d, !memcmp(&a, &b, sizeof a), "planes", i)) {
            COMPARE_LISTS(d, &x[i], &y[i], probes);
        }
    }
}

static void
compare_trees(struct difference *d, const struct tree_config *x, const struct tree_config *y,
              size_t i)
{
    struct tree_config a, b;

    COPY_BOTH(&a, &b, x, y);
    a.outer_da = b.outer_da = NULL;
    a.planes = b.planes = a.parent_planes = b.parent_planes = NULL;
    a.branches = b.branches = a.copies = b.copies = NULL;
    a.auth.keys = b.auth.keys = NULL;
    if (note(d, !memcmp(&a, &b, sizeof a), "trees", i)) {
        COMPARE_LISTS(d, x, y, outer_da);
        COMPARE_LISTS(d, x, y, branches);
        COMPARE_LISTS(d, x, y, copies);
        COMPARE_LISTS(d, &x->auth, &y->auth, keys);
        compare_planes(d, x->planes, y->planes, x->n_planes);
        compare_planes(d, x->parent_planes, y->parent_planes, x->n_parent_planes);
    }
}

/* Of two nodes with lists of the same lengths. */
static void
compare_node_lists(struct difference *d, const struct node_config *x, const struct node_config *y)
{
    COMPARE_LISTS(d, &x->congestion, &y->congestion, capable);
    COMPARE_LISTS(d, &x->congestion, &y->congestion, trusted);
    COMPARE_LISTS(d, &x->congestion, &y->congestion, queue_rates);
    COMPARE_LISTS(d, x, y, routes);
    COMPARE_LISTS(d, x, y, sids);
    COMPARE_LISTS(d, x, y, probes);
    COMPARE_LISTS(d, x, y, probers);
    for (size_t i = 0; i < x->n_ports; i++) {
        compare_ports(d, &x->ports[i], &y->ports[i], i);
    }
    for (size_t i = 0; i < x->n_destinations; i++) {
        compare_destinations(d, &x->destinations[i], &y->destinations[i], i);
    }
    for (size_t i = 0; i < x->n_trees; i++) {
        compare_trees(d, &x->trees[i], &y->trees[i], i);
    }
}

static void
compare_nodes(struct difference *d, const struct node_config *x, const struct node_config *y)
{
    struct node_config a, b;

    COPY_BOTH(&a, &b, x, y);
    a.congestion.capable = b.congestion.capable = NULL;
    a.congestion.trusted = b.congestion.trusted = NULL;
    a.congestion.queue_rates = b.congestion.queue_rates = NULL;
    a.ports = b.ports = NULL;
    a.routes = b.routes = NULL;
    a.sids = b.sids = NULL;
    a.destinations = b.destinations = NULL;
    a.probes = b.probes = NULL;
    a.probers = b.probers = NULL;
    a.trees = b.trees = NULL;
    if (note(d, !memcmp(&a, &b, sizeof a), "node", 0)) {
        compare_node_lists(d, x, y);
    }
}

char *
agent_check_difference(const struct node_config *a, const struct node_config *b)
{
    struct difference d = {NULL, 0};

    compare_nodes(&d, a, b);
    return d.list ? xasprintf("%s[%" PRIuSIZE "]", d.list, d.index) : NULL;
}
