/* SPDX-License-Identifier: Apache-2.0
 *
 * What a lab may go through: kinds of run, in which links, messages and actions
 * follow from a number; and topologies that do.
 */
#ifndef TESTS_MODEL_SCENARIO_H
#define TESTS_MODEL_SCENARIO_H 1

#include "tests/model/lab.h"

enum scenario_kind {
    SCENARIO_EXACT,
    SCENARIO_DISORDER,
    SCENARIO_LOSSY,
    SCENARIO_SPOILT,
    SCENARIO_RNR,
    SCENARIO_FORGED,
    SCENARIO_FAILING,
    SCENARIO_SHRINKING,
    SCENARIO_RESTART,
    SCENARIO_EPOCH,
    SCENARIO_MIXED,
    /* receivers that die, are deaf for a while, refuse, have no buffers for long. */
    SCENARIO_LOSING,
    SCENARIO_DYING, /* nodes, besides. */
    SCENARIO_LOSING_RESTART,
    SCENARIO_JOINING, /* receivers come in mid-stream. */
    SCENARIO_SLOW,    /* a receiver takes its time. */
    SCENARIO_CONGESTED,
    SCENARIO_PATHS,  /* flows beside the group, which are placed on paths message by message. */
    SCENARIO_PLANES, /* of the group; they go dead, and another one is wanted. */
    N_SCENARIO_KINDS
};
const char *scenario_name(enum scenario_kind);

/* A tree of 1 to 4 levels with links across it, and this many receivers, as lab_create() wants it;
 * malloc'd.  'broad': it has nodes that can be spared. */
char *scenario_topology(struct fabric *chance, unsigned n_receivers, bool broad);

/* The same with hosts besides, for flows that compete with the group; frees 'topology'. */
char *scenario_add_hosts(struct fabric *chance, char *topology);

/* Two hosts between which there are several paths, and a group; malloc'd. */
char *scenario_path_topology(struct fabric *chance);

/* Leaves and spines of two planes, and receivers that mostly hang on two leaves; malloc'd. */
char *scenario_plane_topology(struct fabric *chance, unsigned n_receivers);

/* A lab that is ready for lab_run(). */
struct lab *
scenario_create(const char *topology, enum scenario_kind, uint64_t seed, bool trace,
                void (*fail)(const struct lab *, const char *condition, const char *text));

#endif /* tests/model/scenario.h */
