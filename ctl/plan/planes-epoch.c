/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner, planes of trees that are there.
 *
 * A plane is its links: packets that took another way would be no second plane.  So a plane is carried
 * only as long as the links between the nodes of its tree are there.
 */
#include <config.h>

#include <stdlib.h>

#include "ctl/plan/epoch-impl.h"
#include "ctl/plan/planes.h"
#include "util.h"

/* The walk along a plane of trees that are there. */
struct walk {
    const struct plan_topology *t;
    const struct plan *plan;
    bool exclusions; /* what an operator has excluded is in the way, too. */
    bool *reached;   /* by index in plan->trees. */
};

static const struct plan_node *
find_node(const struct plan_topology *t, uint16_t id)
{
    for (size_t i = 0; i < t->n_nodes; i++) {
        if (t->nodes[i].id == id) {
            return &t->nodes[i];
        }
    }
    return NULL;
}

/* Is there a link between the two that may be used? */
static bool
is_open(const struct plan_topology *t, const struct plan_node *a, const struct plan_node *b)
{
    for (size_t i = 0; i < t->n_links; i++) {
        const struct plan_link *l = &t->links[i];

        if (!l->excluded
            && ((l->a_node == a && l->b_node == b) || (l->a_node == b && l->b_node == a))) {
            return true;
        }
    }
    return false;
}

/* Can packets go from this node to the next one, which has this id? */
static char *
check_hop(const struct walk *w, const struct plan_node *from, uint16_t id)
{
    const struct plan_node *to = find_node(w->t, id);

    if (!to) {
        char *name = epoch_node_name(w->plan, id);
        char *error = xasprintf("node %s, which it goes through, was deleted", name);

        free(name);
        return error;
    } else if (!plan_linked(w->t, from->name, to->name)) {
        return xasprintf("no link from %s to %s, which it goes through", from->name, to->name);
    } else if (w->exclusions && to->excluded) {
        return xasprintf("%s is excluded", to->name);
    } else if (w->exclusions && !is_open(w->t, from, to)) {
        return xasprintf("the link between %s and %s is excluded", from->name, to->name);
    }
    return NULL;
}

/* From the source agent to the root; *at is where it ends. */
static char *
walk_program(const struct walk *w, const struct in6_addr *program, const struct plan_node **at)
{
    char *error = NULL;

    for (size_t i = 0; i < EPOCH_USIDS && !error; i++) {
        uint16_t usid = epoch_usid(program, i);

        if (!usid || usid >= USID_FIRST_FUNCTION) {
            break;
        }
        error = check_hop(w, *at, usid);
        *at = error ? *at : find_node(w->t, usid);
    }
    return error;
}

/* Notes which trees packets come to that are at 'root'. */
static char *
walk_tree(struct walk *w, const struct plan_node *root)
{
    const struct plan_tree **queue = xcalloc(w->plan->n_trees + 1, sizeof *queue);
    size_t n = 0;
    char *error = NULL;
    const struct plan_tree *tree = epoch_tree(w->plan, root->id);

    if (tree) {
        queue[n++] = tree;
        w->reached[tree - w->plan->trees] = true;
    }
    for (size_t i = 0; i < n && !error; i++) {
        const struct tree_config *c = &queue[i]->config;

        for (size_t j = 0; j < c->n_outer_da && !error; j++) {
            uint16_t id = node_id_of(&c->outer_da[j]);

            error = check_hop(w, queue[i]->node, id);
            tree = epoch_tree(w->plan, id);
            if (tree && !w->reached[tree - w->plan->trees]) {
                w->reached[tree - w->plan->trees] = true;
                queue[n++] = tree;
            }
        }
    }
    free(queue);
    return error;
}

static char *
check_plane(const struct plan_topology *t, const struct plan *plan,
            const struct plane_config *plane, bool exclusions)
{
    struct walk w = {.t = t, .plan = plan, .exclusions = exclusions};
    const struct plan_tree *agent = plan_agent_tree(plan);
    const struct plan_node *at = agent->node;
    char *error;

    w.reached = xcalloc(plan->n_trees + 1, sizeof *w.reached);
    error = walk_program(&w, &plane->program, &at);
    error = error ? error : walk_tree(&w, at);
    for (size_t i = 0; i < plan->n_trees && !error; i++) {
        const struct plan_tree *tree = &plan->trees[i];

        if (tree != agent && tree->config.n_branches && !w.reached[i]) {
            error = xasprintf("it does not lead to %s", tree->node->name);
        }
    }
    free(w.reached);
    return error;
}

char *
planes_check_carried(const struct plan_topology *t, const struct plan *plan,
                     const struct plane_config *plane)
{
    char *why = check_plane(t, plan, plane, false);
    char *error = why ? xasprintf("plane %s: %s", plane->name, why) : NULL;

    free(why);
    return error;
}

/* The plane with this name, or NULL. */
static struct plane_config *
find_plane(struct plane_config *planes, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (!strcmp(planes[i].name, name)) {
            return &planes[i];
        }
    }
    return NULL;
}

static const struct plane_config *
find_const_plane(const struct plane_config *planes, size_t n, const char *name)
{
    return find_plane(CONST_CAST(struct plane_config *, planes), n, name);
}

/* Says of a plane, at all edges, what is said of it at the source agent. */
static void
set_at_edges(struct plan *plan, const struct plane_config *plane)
{
    for (size_t i = 0; i < plan->n_trees; i++) {
        struct tree_config *c = &plan->trees[i].config;
        struct plane_config *back = find_plane(c->parent_planes, c->n_parent_planes, plane->name);

        if (back) {
            back->usable = plane->usable;
            back->preferred = plane->preferred;
        }
    }
}

void
plan_set_planes(const struct plan_topology *t, const struct plan_group *g, struct plan *plan)
{
    const struct plan_tree *agent = plan_agent_tree(plan);

    for (size_t i = 0; agent && i < agent->config.n_planes; i++) {
        struct plane_config *plane = &agent->config.planes[i];
        char *why = check_plane(t, plan, plane, true);

        plane->usable = !why;
        plane->preferred = !strcmp(plane->name, g->preferred_plane);
        set_at_edges(plan, plane);
        free(why);
    }
}

void
plan_keep_planes(const struct plan *plan, struct plan_group *g)
{
    const struct plan_tree *agent = plan_agent_tree(plan);
    size_t n = 0;

    for (size_t i = 0; i < g->n_planes; i++) {
        if (agent && find_const_plane(agent->config.planes, agent->config.n_planes, g->planes[i])) {
            memmove(g->planes[n++], g->planes[i], sizeof g->planes[0]);
        }
    }
    g->n_planes = n;
}

char *
plan_planes_problem(const struct plan_topology *t, const struct plan_group *g,
                    const struct plan *plan)
{
    const struct plan_tree *agent = plan_agent_tree(plan);
    char *problem = NULL;
    struct planes p;

    if (!g->n_planes || !agent) {
        return NULL;
    }
    for (size_t i = 0; i < agent->config.n_planes && !problem; i++) {
        const struct plane_config *plane = &agent->config.planes[i];
        char *why = check_plane(t, plan, plane, true);

        problem = why ? xasprintf("plane %s is out of use: %s", plane->name, why) : NULL;
        free(why);
    }
    if (problem || agent->config.n_planes >= g->n_planes) {
        return problem;
    }
    problem = plan_check_source(t, g);
    problem = problem ? problem : planes_find(t, g, NULL, &p);
    if (!problem) {
        problem = p.problem;
        p.problem = NULL;
        planes_uninit(&p);
    }
    return problem ? problem
                   : xasprintf("it has %" PRIuSIZE " of %" PRIuSIZE
                               " planes as long as this epoch lasts",
                               agent->config.n_planes, g->n_planes);
}

bool
planes_same(const struct plane_config *a, size_t n, const struct plane_config *b, size_t n_others)
{
    for (size_t i = 0; i < n; i++) {
        const struct plane_config *other = find_const_plane(b, n_others, a[i].name);

        if (!other || node_id_of(&a[i].sid) != node_id_of(&other->sid) || a[i].port != other->port
            || !epoch_same_program(&a[i].program, &other->program)) {
            return false;
        }
    }
    return n == n_others;
}

char *
planes_same_names(const struct plane_config *have, size_t n_have, const struct plane_config *want,
                  size_t n_want)
{
    for (size_t i = 0; i < n_have; i++) {
        if (!find_const_plane(want, n_want, have[i].name)) {
            return xasprintf("the group would have no plane %s", have[i].name);
        }
    }
    for (size_t i = 0; i < n_want; i++) {
        if (!find_const_plane(have, n_have, want[i].name)) {
            return xasprintf("the group would have a plane %s", want[i].name);
        }
    }
    return NULL;
}

void
planes_keep(const struct plane_config *have, size_t n_have, struct plane_config *want,
            size_t n_want)
{
    for (size_t i = 0; i < n_have; i++) {
        struct plane_config *plane = find_plane(want, n_want, have[i].name);

        if (plane) {
            plane->sid = have[i].sid;
            plane->program = have[i].program;
            plane->port = have[i].port;
        }
    }
}
