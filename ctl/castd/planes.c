/* SPDX-License-Identifier: Apache-2.0
 *
 * Planes of groups, and the probes that say how good they are.
 *
 * The ways of all planes are in the rows of edges, Tree_Node.parent_planes: from there the nodes probe
 * them in both directions (probes.c), and planes are told the probes' numbers as soon as there are such.
 */
#include <config.h>

#include <stdlib.h>

#include "ctl/castd/castd.h"
#include "ctl/plan/probe.h"
#include "ctl/registry/values.h"
#include "hash.h"
#include "lib/usid.h"
#include "util.h"

/* More than a container has uSIDs. */
#define MAX_WAY 8

/* The nodes of a way back, from the edge's neighbour to the source agent. */
struct way {
    size_t n;
    const struct plan_node *nodes[MAX_WAY];
};

static const struct plan_node *
find_node(const struct castd *c, const struct in6_addr *program)
{
    uint16_t id = node_id_of(program);

    for (size_t i = 0; i < c->topology.n_nodes; i++) {
        if (c->topology.nodes[i].id == id) {
            return &c->topology.nodes[i];
        }
    }
    return NULL;
}

/* False: a node of it is gone. */
static bool
way_of(const struct castd *c, const struct in6_addr *program, const struct in6_addr *sid,
       struct way *way)
{
    struct in6_addr rest = *program;

    for (way->n = 0; way->n < MAX_WAY; usid_shift(&rest, SID_BLOCK_PLEN, NODE_LOCATOR_PLEN)) {
        const struct plan_node *node = find_node(c, &rest);

        if (!node) {
            return false;
        }
        way->nodes[way->n++] = node;
        if (node_id_of(&rest) == node_id_of(sid)) {
            return true;
        }
    }
    return false;
}

/* The same way, from the source agent to the edge. */
static struct way
reverse_way(const struct way *way, const struct plan_node *edge)
{
    struct way other = {.n = way->n};

    for (size_t i = 0; i + 1 < way->n; i++) {
        other.nodes[i] = way->nodes[way->n - 2 - i];
    }
    other.nodes[way->n - 1] = edge;
    return other;
}

static void
add_way(struct castd_ways *ways, const struct way *way)
{
    ways->ways = xrealloc(ways->ways, (ways->n + 1) * sizeof *ways->ways);
    ways->ways[ways->n++] = (struct plan_peer_way){
        .n_nodes = way->n,
        .nodes = xmemdup(way->nodes, way->n * sizeof *way->nodes),
    };
}

static void
add_row(const struct castd *c, struct castd_ways *all, const struct plan_node *edge,
        const struct rrec_plane *row)
{
    struct in6_addr program, sid;
    struct way way;

    if (ip6_parse(row->program, &program) && ip6_parse(row->sid, &sid)
        && way_of(c, &program, &sid, &way)) {
        struct way down = reverse_way(&way, edge);

        add_way(&all[edge - c->topology.nodes], &way);
        add_way(&all[way.nodes[way.n - 1] - c->topology.nodes], &down);
    }
}

struct castd_ways *
castd_plane_ways(const struct castd *c)
{
    struct castd_ways *all = xcalloc(c->topology.n_nodes + 1, sizeof *all);

    for (size_t i = 0; i < c->n_nodes; i++) {
        const struct mirror_node *node =
            mirror_find_node(c->mirror, &c->nodes[i].row->header_.uuid);
        const struct mirror_part *part;

        LIST_FOR_EACH (part, node_node, &node->trees) {
            const struct rrec_tree_node *tree = part->row;

            for (size_t k = 0; k < tree->n_parent_planes; k++) {
                add_row(c, all, c->nodes[i].node, tree->parent_planes[k]);
            }
        }
    }
    return all;
}

void
castd_plane_ways_free(const struct castd *c, struct castd_ways *all)
{
    for (size_t i = 0; i < c->topology.n_nodes; i++) {
        for (size_t j = 0; j < all[i].n; j++) {
            free(all[i].ways[j].nodes);
        }
        free(all[i].ways);
    }
    free(all);
}

uint64_t
castd_digest_planes(const struct castd *c)
{
    const struct rrec_plane *row;
    uint64_t digest = 0;

    RREC_PLANE_FOR_EACH(row, c->idl)
    {
        digest += (UINT64_C(1) << 32)
                  + hash_string(row->program, hash_string(row->node, 0)); /* in whatever order. */
    }
    return digest;
}

/* Number of the node's probe on this way; 0: it has none yet. */
static uint16_t
find_probe(const struct castd *c, const struct plan_node *node, const struct way *way)
{
    const struct rrec_node *row = c->nodes[node - c->topology.nodes].row;
    char name[PATH_NAME_SIZE];
    size_t len = 0;

    for (size_t i = 0; i < way->n && len < sizeof name; i++) {
        len += (size_t) snprintf(name + len, sizeof name - len, "%s%s", i ? "," : "",
                                 way->nodes[i]->name);
    }
    for (size_t i = 0; i < row->n_probes && len < sizeof name; i++) {
        if (!strcmp(row->probes[i]->name, name)) {
            return (uint16_t) row->probes[i]->number;
        }
    }
    return 0;
}

static int
compare_numbers(const void *a_, const void *b_)
{
    const uint16_t *a = a_, *b = b_;

    return *a - *b;
}

static void
add_probe(struct plane_config *plane, uint16_t number)
{
    if (number) {
        plane->probes = xrealloc(plane->probes, (plane->n_probes + 1) * sizeof *plane->probes);
        plane->probes[plane->n_probes++] = number;
        qsort(plane->probes, plane->n_probes, sizeof *plane->probes, compare_numbers);
    }
}

static void
forget_probes(struct plane_config *planes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(planes[i].probes);
        planes[i].probes = NULL;
        planes[i].n_probes = 0;
    }
}

void
castd_set_plane_probes(const struct castd *c, struct plan *plan)
{
    struct plan_tree *agent = CONST_CAST(struct plan_tree *, plan_agent_tree(plan));

    if (!agent || !agent->config.n_planes) {
        return;
    }
    forget_probes(agent->config.planes, agent->config.n_planes);
    for (size_t i = 0; i < plan->n_trees; i++) {
        struct tree_config *t = &plan->trees[i].config;

        forget_probes(t->parent_planes, t->n_parent_planes);
        for (size_t j = 0; j < t->n_parent_planes; j++) {
            struct plane_config *back = &t->parent_planes[j];
            struct way way;

            if (!way_of(c, &back->program, &back->sid, &way)) {
                continue;
            }
            struct way down = reverse_way(&way, plan->trees[i].node);
            add_probe(back, find_probe(c, plan->trees[i].node, &way));
            for (size_t k = 0; k < agent->config.n_planes; k++) {
                if (!strcmp(agent->config.planes[k].name, back->name)) {
                    add_probe(&agent->config.planes[k], find_probe(c, agent->node, &down));
                }
            }
        }
    }
}
