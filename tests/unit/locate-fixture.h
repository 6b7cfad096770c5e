/* SPDX-License-Identifier: Apache-2.0
 *
 * Networks in which something is broken, and what probes say of that: the figure of
 * draft-filsfils-srv6ops-srv6-ai-backend, section 7, and others.
 *
 * A world has nodes and links, ways that probes take, and faults.  What each probe says follows from
 * the faults.
 */
#ifndef TESTS_UNIT_LOCATE_FIXTURE_H
#define TESTS_UNIT_LOCATE_FIXTURE_H 1

#include "ctl/plan/locate.h"

#define MAX_NODES    16
#define MAX_LINKS    32
#define MAX_WAY      6 /* nodes. */
#define MAX_ELEMENTS (MAX_NODES + 2 * MAX_LINKS)
#define MAX_PROBES   128
#define INTERVAL     100000

/* Of elements.  Nodes come first, then both directions of each link. */
typedef struct {
    uint64_t bits[2];
} set;

extern const set set_none;

struct way {
    unsigned n, nodes[MAX_WAY];
    bool is_peer;    /* the last node answers; else it is a loop. */
    set there, back; /* the elements. */
};

struct world {
    unsigned n_nodes, n_links, n_ways;
    char names[MAX_ELEMENTS][24];
    unsigned ends[MAX_LINKS][2];
    struct way ways[MAX_PROBES];
    struct locate_probe probes[MAX_PROBES];
    char probe_names[MAX_PROBES][64];
    char elements[MAX_PROBES][300];
    set silent; /* nodes that do not report. */
    bool stale; /* what these have reported last is still there. */
    struct fault *faults;
    size_t n_faults;
};

/* Sets of elements. */
void set_add(set *, unsigned element);
set set_of(unsigned element);
set set_both(set, set);
bool set_meet(set, set);
bool set_has(set, unsigned element);

/* Nodes before links, links before ways; then world_fill_probes(). */
unsigned world_add_node(struct world *, const char *name);
void world_add_link(struct world *, unsigned a, unsigned b);
/* MAX_LINKS: there is none. */
unsigned world_find_link(const struct world *, unsigned a, unsigned b, bool *reverse);
/* A node, or a direction. */
unsigned world_find(const struct world *, const char *name);
void world_add_way(struct world *, bool is_peer, unsigned n, const unsigned nodes[]);
void world_fill_probes(struct world *);
set world_way_elements(const struct way *);

/* What probes there are in the figure: of dpu1 only, or of all four. */
enum probing { ONE_LOOPS, ONE_FAR_LOOPS, ONE_WITH_PEERS, ALL_LOOPS, ALL_WITH_PEERS };
void world_figure(struct world *, enum probing);

/* What the probes say while these elements are broken. */
void world_break(struct world *, set broken);
void world_locate(struct world *);
void world_uninit(struct world *);
/* "leaf1|leaf1<>spine5, spine6": candidates of a fault, and faults; malloc'd. */
char *world_faults_text(const struct world *);
void world_check_faults(struct world *, const char *what, const char *want);
bool world_is_candidate(const struct fault *, const char *name);

/* All single faults and their names: nodes; then of each link the one direction, the other one, both. */
unsigned world_n_single_faults(const struct world *);
bool world_is_both_ways(const struct world *, unsigned fault);
bool world_is_one_way(const struct world *, unsigned fault);
set world_single_fault(const struct world *, unsigned fault, char name[48]);

#endif /* tests/unit/locate-fixture.h */
