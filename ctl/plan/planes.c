/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner, planes of a group.
 *
 * A plane's tree is found from its first switch, a neighbour of the source agent: each member's edge is
 * reached by the way that has least nodes of earlier trees on it, then fewest nodes, then the lowest
 * ids.  What cannot be avoided binds: from a node that an earlier tree copies at, ways lead only to
 * the nodes behind it in that tree (may_go()), and all of these are taken over (take_over()).
 */
#include <config.h>

#include "ctl/plan/planes.h"

#include <stdlib.h>

#include "util.h"

static size_t
index_of(const struct planes *p, const struct plan_node *node)
{
    return (size_t) (node - p->t->nodes);
}

static bool
is_in(const struct planes *p, const struct plane_tree *tree, const struct plan_node *node)
{
    return planes_parent(p, tree, node) != NULL;
}

/* Has it receivers? */
static bool
is_edge(const struct planes *p, const struct plan_group *g, const char *host,
        const struct plan_node *node)
{
    for (size_t i = 0; i < g->n_members; i++) {
        const struct plan_member *m = &g->members[i];

        if ((m->provision || m->copy) && plan_attachment(p->t, m->host) == node) {
            return true;
        }
    }
    return host && plan_attachment(p->t, host) == node;
}

/* The only node behind 'node', or NULL; *n is how many there are. */
static const struct plan_node *
only_child(const struct planes *p, const struct plane_tree *tree, const struct plan_node *node,
           size_t *n)
{
    const struct plan_node *child = NULL;

    *n = 0;
    for (size_t i = 0; i < p->t->n_nodes; i++) {
        if (tree->parent[i] == node) {
            child = &p->t->nodes[i];
            ++*n;
        }
    }
    return *n == 1 ? child : NULL;
}

/* What trees are found with. */
struct search {
    struct planes *p;
    const struct plan_group *group; /* limited to the plane. */
    const char *host;
    bool *trunks[PLANES_MAX];      /* of each tree, by node: it need not copy. */
    unsigned *costs;               /* by node, from the first switch; UINT_MAX: no way. */
    const struct plan_node **next; /* by node: towards the first switch. */
};

/* Notes which nodes of a tree need not copy: those up to the first that has receivers or several
 * nodes behind it. */
static void
find_trunk(const struct search *s, const struct plane_tree *tree, const struct plan_node *first)
{
    bool *trunk = s->trunks[tree - s->p->v];
    const struct plan_node *node = first;
    size_t n;

    memset(trunk, 0, s->p->t->n_nodes * sizeof *trunk);
    while (node && !is_edge(s->p, s->group, s->host, node)) {
        const struct plan_node *child = only_child(s->p, tree, node, &n);

        trunk[index_of(s->p, node)] = child != NULL;
        node = child;
    }
}

static bool
copies_in(const struct search *s, size_t tree, const struct plan_node *node)
{
    return is_in(s->p, &s->p->v[tree], node) && !s->trunks[tree][index_of(s->p, node)];
}

/* May the plane that is searched for go from one node to the other? */
static bool
may_go(const struct search *s, const struct plan_node *from, const struct plan_node *to)
{
    if (plan_is_agent(from) || to == s->p->agent || !via_may_use_node(s->group, to)
        || !(plan_is_agent(to) || node_role_replicates(to->role))) {
        return false;
    }
    for (size_t i = 0; i < s->p->n; i++) {
        if (copies_in(s, i, from) && planes_parent(s->p, &s->p->v[i], to) != from) {
            return false;
        }
    }
    return true;
}

/* Nodes of earlier trees cost more than any way without them. */
static unsigned
cost_of(const struct search *s, const struct plan_node *node)
{
    for (size_t i = 0; i < s->p->n; i++) {
        if (is_in(s->p, &s->p->v[i], node)) {
            return (unsigned) s->p->t->n_nodes + 1;
        }
    }
    return 1;
}

static bool
relax(struct search *s, const struct plan_node *from, const struct plan_node *to)
{
    size_t i = index_of(s->p, from), j = index_of(s->p, to);

    if (s->costs[i] == UINT_MAX || !may_go(s, from, to)) {
        return false;
    }
    unsigned cost = s->costs[i] + cost_of(s, to);
    bool better = cost < s->costs[j];

    if (better || (cost == s->costs[j] && s->next[j] && from < s->next[j])) { /* nodes are by id. */
        s->costs[j] = cost;
        s->next[j] = from;
    }
    return better;
}

static void
find_ways(struct search *s, const struct plan_node *first)
{
    const struct plan_topology *t = s->p->t;
    bool better = true;

    for (size_t i = 0; i < t->n_nodes; i++) {
        s->costs[i] = &t->nodes[i] == first ? 0 : UINT_MAX;
        s->next[i] = NULL;
    }
    while (better) {
        better = false;
        for (size_t i = 0; i < t->n_links; i++) {
            const struct plan_link *link = &t->links[i];

            if (link->a_node && link->b_node && via_may_use_link(s->group, link)) {
                better |= relax(s, link->a_node, link->b_node);
                better |= relax(s, link->b_node, link->a_node);
            }
        }
    }
}

/* Puts the way to the host's edge into the tree.  NULL, or why there is none. */
static char *
add_member(const struct search *s, struct plane_tree *tree, const struct plan_node *first,
           const char *host)
{
    const struct plan_node *node = plan_attachment(s->p->t, host);

    if (node != first && !s->next[index_of(s->p, node)]) {
        return xasprintf("member %s: no path from %s to %s in it", host, first->name, node->name);
    }
    while (!is_in(s->p, tree, node)) {
        const struct plan_node *next = node == first ? s->p->agent : s->next[index_of(s->p, node)];

        tree->parent[index_of(s->p, node)] = next;
        node = next == s->p->agent ? first : next;
    }
    return NULL;
}

/* Takes out who has neither receivers nor nodes behind it. */
static void
remove_idle(const struct search *s, struct plane_tree *tree, const struct plan_node *first)
{
    bool removed = true;

    while (removed) {
        removed = false;
        for (size_t i = 0; i < s->p->t->n_nodes; i++) {
            const struct plan_node *node = &s->p->t->nodes[i];
            size_t n;

            if (tree->parent[i] && node != first && !is_edge(s->p, s->group, s->host, node)
                && !only_child(s->p, tree, node, &n) && !n) {
                tree->parent[i] = NULL;
                removed = true;
            }
        }
    }
}

/* Does each node of the tree come from the source agent? */
static bool
is_tree(const struct planes *p, const struct plane_tree *tree)
{
    for (size_t i = 0; i < p->t->n_nodes; i++) {
        const struct plan_node *node = tree->parent[i];

        for (size_t steps = 0; node && node != p->agent; steps++) {
            node = steps < p->t->n_nodes ? planes_parent(p, tree, node) : NULL;
        }
        if (tree->parent[i] && !node) {
            return false;
        }
    }
    return true;
}

/* Takes over what is behind the nodes at which an earlier tree copies.  NULL, or why that cannot
 * be. */
static char *
take_over(const struct search *s, struct plane_tree *tree, const struct plan_node *first)
{
    const struct planes *p = s->p;
    size_t rounds = 0;
    bool changed = true;

    while (changed) {
        changed = false;
        for (size_t i = 0; i < p->t->n_nodes; i++) {
            for (size_t j = 0; j < p->n; j++) {
                const struct plan_node *above = p->v[j].parent[i];

                if (above && above != p->agent && is_in(p, tree, above) && copies_in(s, j, above)
                    && tree->parent[i] != above) {
                    if (rounds++ > p->t->n_nodes * PLANES_MAX) {
                        return xasprintf("%s would have to be behind several nodes",
                                         p->t->nodes[i].name);
                    }
                    tree->parent[i] = above;
                    changed = true;
                }
            }
        }
        if (!is_tree(p, tree)) {
            return xstrdup("nodes of others would have to be behind each other");
        }
        remove_idle(s, tree, first);
    }
    return NULL;
}

/* The root of the tree is behind 'node', which is on its trunk.  False: that is too far from the
 * source agent. */
static bool
move_root(const struct planes *p, struct plane_tree *tree, const struct plan_node *node)
{
    size_t n;

    for (size_t i = 0; i < tree->n_front; i++) {
        if (tree->front[i] == node) {
            return true;
        }
    }
    do {
        if (tree->n_front == VIA_MAX) {
            return false;
        }
        tree->front[tree->n_front++] = tree->root;
        tree->root = only_child(p, tree, tree->root, &n);
    } while (tree->front[tree->n_front - 1] != node);
    return true;
}

/* Have the two trees the same nodes behind 'node'? */
static bool
same_children(const struct planes *p, const struct plane_tree *a, const struct plane_tree *b,
              const struct plan_node *node)
{
    for (size_t i = 0; i < p->t->n_nodes; i++) {
        if ((a->parent[i] == node) != (b->parent[i] == node)) {
            return false;
        }
    }
    return true;
}

/* Where this tree goes apart from an earlier one, one of the two does not copy. */
static char *
move_roots(const struct search *s, struct plane_tree *tree, const struct plan_node *first)
{
    struct planes *p = s->p;

    find_trunk(s, tree, first);
    for (size_t j = 0; j < p->n; j++) {
        for (size_t i = 0; i < p->t->n_nodes; i++) {
            const struct plan_node *node = &p->t->nodes[i];
            bool apart = is_in(p, tree, node) && is_in(p, &p->v[j], node)
                         && !same_children(p, tree, &p->v[j], node);
            bool own = s->trunks[p->n][i], other = s->trunks[j][i];

            if (apart
                && ((!own && !other) || (own && !move_root(p, tree, node))
                    || (other && !move_root(p, &p->v[j], node)))) {
                return xasprintf("%s would have other nodes behind it than in plane %s", node->name,
                                 p->v[j].name);
            }
        }
    }
    for (size_t j = 0; j < p->n; j++) {
        if (p->v[j].root == tree->root) {
            return xasprintf("it would be the same as plane %s", p->v[j].name);
        }
    }
    return NULL;
}

/* The tree from this first switch; NULL, or why there is none. */
static char *
find_tree_from(struct search *s, const struct plan_node *first)
{
    struct planes *p = s->p;
    struct plane_tree *tree = &p->v[p->n];
    char *error = NULL;

    memset(tree->parent, 0, p->t->n_nodes * sizeof *tree->parent);
    tree->n_front = 0;
    tree->root = first;
    tree->parent[index_of(p, first)] = p->agent; /* before there is anybody behind it. */
    find_ways(s, first);
    for (size_t i = 0; i < s->group->n_members && !error; i++) {
        if (s->group->members[i].provision || s->group->members[i].copy) {
            error = add_member(s, tree, first, s->group->members[i].host);
        }
    }
    if (!error && s->host) {
        error = add_member(s, tree, first, s->host);
    }
    error = error ? error : take_over(s, tree, first);
    return error ? error : move_roots(s, tree, first);
}

/* Is it the first switch of an earlier tree? */
static bool
is_first(const struct planes *p, const struct plan_node *node)
{
    for (size_t i = 0; i < p->n; i++) {
        if (planes_parent(p, &p->v[i], node) == p->agent) {
            return true;
        }
    }
    return false;
}

/* Finds a tree, from a first switch that no earlier tree has, if possible. */
static char *
find_tree(struct search *s)
{
    const struct planes *p = s->p;
    char *error = NULL;

    for (int again = 0; again < 2; again++) {
        for (size_t i = 0; i < p->t->n_nodes; i++) {
            const struct plan_node *node = &p->t->nodes[i];

            if (is_first(p, node) == again && node_role_replicates(node->role)
                && via_may_use_node(s->group, node)
                && via_may_pass(p->t, s->group, p->agent, node)) {
                char *why = find_tree_from(s, node);

                if (!why) {
                    free(error);
                    return NULL;
                }
                if (error) {
                    free(why);
                } else {
                    error = why; /* the best one's. */
                }
            }
        }
    }
    return error ? error
                 : xasprintf("source agent %s has no link to a switch in it", p->agent->name);
}

static int
compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void
add_problem(char **problem, const char *name, char *why)
{
    char *all = xasprintf("%s%splane %s has no way: %s", *problem ? *problem : "",
                          *problem ? "; " : "", name, why);

    free(why);
    free(*problem);
    *problem = all;
}

char *
planes_find(const struct plan_topology *t, const struct plan_group *g, const char *host,
            struct planes *out)
{
    struct plan_group one = *g;
    struct search s = {.p = out, .group = &one, .host = host};
    char *error = NULL;

    memset(out, 0, sizeof *out);
    out->t = t;
    out->agent = plan_attachment(t, g->source_host);
    qsort(one.planes, one.n_planes, sizeof one.planes[0], compare_names);
    s.costs = xcalloc(t->n_nodes, sizeof *s.costs);
    s.next = xcalloc(t->n_nodes, sizeof *s.next);
    for (size_t i = 0; i < one.n_planes; i++) {
        struct plane_tree *tree = &out->v[out->n];

        ovs_strlcpy(one.plane, one.planes[i], sizeof one.plane);
        ovs_strlcpy(tree->name, one.plane, sizeof tree->name);
        free(tree->parent);
        free(s.trunks[out->n]);
        tree->parent = xcalloc(t->n_nodes + 1, sizeof *tree->parent);
        s.trunks[out->n] = xcalloc(t->n_nodes + 1, sizeof *s.trunks[0]);
        char *why = find_tree(&s);
        if (why) {
            add_problem(&out->problem, one.plane, why);
        } else {
            out->n++;
        }
    }
    for (size_t i = 0; i < PLANES_MAX; i++) {
        free(s.trunks[i]);
    }
    free(s.costs);
    free(s.next);
    if (!out->n) {
        error = out->problem;
        out->problem = NULL;
        planes_uninit(out);
    }
    return error;
}

void
planes_uninit(struct planes *p)
{
    for (size_t i = 0; i < PLANES_MAX; i++) {
        free(p->v[i].parent);
    }
    free(p->problem);
    memset(p, 0, sizeof *p);
}

char *
planes_check_source(const struct plan_topology *t, const struct plan_group *g)
{
    struct plan_group nobody = *g;
    struct planes p;
    char *error;

    if (g->via[0] || g->plane[0]) {
        return xstrdup("planes: a group with a path or a plane to its root has no planes");
    }
    if (g->mode != MODE_REPLICATE) {
        return xasprintf("planes: mode %s has none, only replicate", tree_mode_name(g->mode));
    }
    nobody.n_members = 0;
    error = planes_find(t, &nobody, NULL, &p);
    if (!error) {
        planes_uninit(&p);
    }
    return error;
}
