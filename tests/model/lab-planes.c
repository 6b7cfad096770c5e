/* SPDX-License-Identifier: Apache-2.0
 *
 * Groups with planes: links of one plane go dead and come back, and each end of the group hears of it
 * in its own time, as by probes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/node-base.h"
#include "tests/model/lab.h"

/* Probes say within this time what has become of a plane. */
#define LEARN_USEC   30000
/* It is dead for so long after that, at most. */
#define DEAD_USEC    100000
/* It has recovered so much later, at most. */
#define RECOVER_USEC 20000

#define PROBE(PLANE) ((uint16_t) (1 + (PLANE)))

static unsigned
plane_number(const struct lab *lab, const char *name)
{
    unsigned i = 0;

    while (i < lab->n_planes && strcmp(lab->planes[i].name, name)) {
        i++;
    }
    LAB_REQUIRE(lab, i < lab->n_planes, "plane %s", name);
    return i;
}

enum path_state
lab_way_state(void *n_, uint16_t probe)
{
    const struct lab_node *n = n_;

    return n->ways[probe - 1];
}

/* Labels, "A:n5 B:n6 A:n1". */
static void
set_labels(struct lab *lab, const char *labels)
{
    char plane[8], node[16];
    int len;

    for (const char *s = labels; sscanf(s, " %7[^:]:%15[^ ]%n", plane, node, &len) == 2; s += len) {
        struct plan_node *n = &lab->topology.nodes[lab_station_of(lab, node)];

        snprintf(n->plane, sizeof n->plane, "%s", plane);
    }
}

/* The link between two nodes is of the plane. */
static void
note_link(struct lab *lab, unsigned plane, const char *a, const char *b)
{
    unsigned x = lab_station_of(lab, a), y = lab_station_of(lab, b);

    for (unsigned i = 0; i < lab->fabric.n_links; i++) {
        const struct fabric_end *ends = lab->fabric.links[i].ends;

        if ((ends[0].station == x && ends[1].station == y)
            || (ends[0].station == y && ends[1].station == x)) {
            lab->planes[plane].links[i] = true;
        }
    }
}

static const struct plan_node *
node_of(const struct lab *lab, const struct in6_addr *sid)
{
    for (size_t i = 0; i < lab->topology.n_nodes; i++) {
        if (lab->topology.nodes[i].id == node_id_of(sid)) {
            return &lab->topology.nodes[i];
        }
    }
    return NULL;
}

/* The links on the ways from an edge to the source's agent. */
static void
note_way_back(struct lab *lab, const struct plan_tree *tree, const struct plane_config *plane)
{
    struct in6_addr rest = plane->program;
    const struct plan_node *at = tree->node, *next;

    while (at != lab->nodes[lab->agent].plan && (next = node_of(lab, &rest))) {
        note_link(lab, plane_number(lab, plane->name), at->name, next->name);
        memmove(&rest.s6_addr[4], &rest.s6_addr[6], 10);
        at = next;
    }
}

/* Who is before the root only shifts. */
static void
note_front(struct lab *lab, const struct plane_config *plane)
{
    struct in6_addr rest = plane->program;

    while (memcmp(&rest.s6_addr[4], &plane->sid.s6_addr[4], 2) != 0) {
        lab->nodes[lab_station_of(lab, node_of(lab, &rest)->name)].in_front = true;
        memmove(&rest.s6_addr[4], &rest.s6_addr[6], 10);
    }
}

bool
lab_set_planes(struct lab *lab, const char *labels)
{
    struct plan_group g;
    struct plan plan;

    set_labels(lab, labels);
    lab->n_planes = 2;
    snprintf(lab->planes[0].name, sizeof lab->planes[0].name, "A");
    snprintf(lab->planes[1].name, sizeof lab->planes[1].name, "B");
    g = lab_plan_group(lab, 0, &(struct lab_set){.words = {0}});
    char *error = plan_group(&lab->topology, &g, &plan);
    const struct plan_tree *agent = error ? NULL : plan_agent_tree(&plan);
    bool both = agent && agent->config.n_planes == 2;

    for (size_t i = 0; both && i < plan.n_trees; i++) {
        const struct tree_config *c = &plan.trees[i].config;

        for (size_t j = 0; j < c->n_parent_planes; j++) {
            note_way_back(lab, &plan.trees[i], &c->parent_planes[j]);
        }
        for (size_t j = 0; j < c->n_planes; j++) {
            note_front(lab, &c->planes[j]);
        }
    }
    lab->n_planes = both ? 2 : 0;
    for (unsigned i = 0; i < lab->n_nodes; i++) {
        for (unsigned j = 0; j < lab->n_planes; j++) {
            lab->nodes[i].ways[j] = PATH_GOOD;
        }
    }
    free(error);
    free(g.members);
    plan_uninit(&plan);
    return both;
}

static void
set_probes(const struct lab *lab, struct plane_config *planes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(planes[i].probes);
        planes[i].probes = malloc(sizeof *planes[i].probes);
        if (!planes[i].probes) {
            abort();
        }
        planes[i].probes[0] = PROBE(plane_number(lab, planes[i].name));
        planes[i].n_probes = 1;
    }
}

void
lab_planes_configure(const struct lab *lab, struct tree_config *t)
{
    set_probes(lab, t->planes, t->n_planes);
    set_probes(lab, t->parent_planes, t->n_parent_planes);
}

/* How often this node has left a plane since it was started. */
static void
count_moves(const struct lab_node *n, uint64_t *failed, uint64_t *moved)
{
    *failed = *moved = 0;
    for (size_t i = 0; i < n->class->n_trees(n->node); i++) {
        struct tree_info info;

        n->class->tree(n->node, i, &info);
        *failed += info.n_planes_failed;
        *moved += info.n_planes_moved;
    }
}

void
lab_planes_look(struct lab *lab, struct lab_node *n)
{
    uint64_t failed, moved;

    if (!lab->n_planes || !n->node) {
        return;
    }
    count_moves(n, &failed, &moved);
    lab->n_seen[LAB_SAW_plane_failed] += failed > n->n_planes_failed;
    lab->n_seen[LAB_SAW_plane_changed] += moved > n->n_planes_moved;
    n->n_planes_failed = failed;
    n->n_planes_moved = moved;
}

static void
learn(void *lab_, unsigned node, unsigned what)
{
    struct lab *lab = lab_;
    struct lab_node *n = &lab->nodes[node];
    unsigned plane = what / 16;

    n->ways[plane] = (enum path_state)(what % 16);
    if (n->node) {
        struct node_base *base = n->node; /* its first member. */

        base->way_changed(base, PROBE(plane), lab->fabric.now);
        lab_node_event(lab, n);
    }
}

/* All nodes get to know what has become of the plane, each within this time. */
static void
tell(struct lab *lab, unsigned plane, enum path_state state, uint32_t within)
{
    for (unsigned i = 0; i < lab->n_nodes; i++) {
        fabric_schedule(&lab->fabric, lab->fabric.now + 1 + lab_random(lab, within), learn, i,
                        16 * plane + (unsigned) state);
    }
}

/* Links of this plane, and of no other, carry nothing, or what they did before. */
static void
set_links(struct lab *lab, unsigned plane, bool dead)
{
    for (unsigned i = 0; i < lab->fabric.n_links; i++) {
        if (!lab->planes[plane].links[i] || lab->planes[!plane].links[i]) {
            continue;
        }
        for (unsigned side = 0; side < 2; side++) {
            struct fabric_quality *q = &lab->fabric.links[i].quality[side];

            if (dead) {
                lab->plane_loss[i][side] = q->loss;
            }
            q->loss = dead ? 10000 : lab->calm_since ? 0 : lab->plane_loss[i][side];
        }
    }
}

static void
recovered(void *lab_, unsigned plane, unsigned unused)
{
    struct lab *lab = lab_;

    (void) unused;
    tell(lab, plane, PATH_GOOD, RECOVER_USEC);
    lab->plane_is_dead = false;
}

static void
revive(void *lab_, unsigned plane, unsigned unused)
{
    struct lab *lab = lab_;

    (void) unused;
    set_links(lab, plane, false);
    tell(lab, plane, PATH_RECOVERING, RECOVER_USEC);
    fabric_schedule(&lab->fabric, lab->fabric.now + RECOVER_USEC + 1, recovered, plane, 0);
}

void
lab_kill_plane(struct lab *lab, unsigned plane, uint32_t learn_usec, bool for_good)
{
    if (lab->n_planes < 2 || lab->plane_is_dead) {
        return; /* One is left. */
    }
    lab->plane_is_dead = true;
    lab->faults |= LAB_FAULT_PLANE;
    set_links(lab, plane, true);
    tell(lab, plane, PATH_BAD, learn_usec);
    if (!for_good) {
        fabric_schedule(&lab->fabric, lab->fabric.now + LEARN_USEC + lab_random(lab, DEAD_USEC),
                        revive, plane, 0);
    }
}

void
lab_act_plane(struct lab *lab)
{
    lab_kill_plane(lab, lab_random(lab, 2), LEARN_USEC, false);
}

/* The operator prefers another plane, or none. */
void
lab_act_prefer(struct lab *lab)
{
    unsigned plane = lab_random(lab, 3);

    if (!lab->n_planes) {
        return;
    }
    lab->preferred_plane = plane;
    lab->faults |= LAB_FAULT_PLANE;
    for (unsigned epoch = 0; epoch < LAB_N_EPOCHS; epoch++) {
        lab_prefer_in_plan(lab, epoch);
    }
    for (unsigned i = 0; i < lab->n_nodes; i++) {
        lab_node_configure(lab, i);
    }
}
