/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner, ways of a group: over which nodes its packets may go.
 */
#include <config.h>

#include "ctl/plan/via.h"

#include <stdlib.h>

#include "util.h"

bool
via_is_limited(const struct plan_group *g)
{
    return g->via[0] || g->plane[0];
}

bool
via_may_use_node(const struct plan_group *g, const struct plan_node *node)
{
    bool other_plane = g->plane[0] && node->plane[0] && strcmp(g->plane, node->plane);

    return !other_plane && !(node->excluded && via_is_limited(g));
}

bool
via_may_use_link(const struct plan_group *g, const struct plan_link *link)
{
    return !(link->excluded && via_is_limited(g));
}

bool
via_may_pass(const struct plan_topology *t, const struct plan_group *g, const struct plan_node *a,
             const struct plan_node *b)
{
    bool linked = a && plan_hops(t, a, b) == 1;

    if (!linked || !via_is_limited(g)) {
        return linked;
    }
    for (size_t i = 0; i < t->n_links; i++) {
        const struct plan_link *link = &t->links[i];

        if (((link->a_node == a && link->b_node == b) || (link->a_node == b && link->b_node == a))
            && via_may_use_link(g, link)) {
            return true;
        }
    }
    return false;
}

static char *
check_node(const struct plan_topology *t, const struct plan_group *g,
           const struct plan_node *before, const struct plan_node *node, const char *name)
{
    if (!node) {
        return xasprintf("via: no node is called %s", name);
    } else if (plan_is_agent(node)) {
        return xasprintf("via: %s is a source agent, and no way leads through one", name);
    } else if (!via_may_use_node(g, node)) {
        return node->excluded ? xasprintf("via: %s is excluded", name)
                              : xasprintf("via: %s is in plane %s, and the group in plane %s", name,
                                          node->plane, g->plane);
    } else if (!via_may_pass(t, g, before, node)) {
        return xasprintf("via: no link from %s to %s that may be used", before->name, name);
    }
    return NULL;
}

char *
via_read(const struct plan_topology *t, const struct plan_group *g, struct via *via)
{
    const struct plan_node *before = plan_attachment(t, g->source_host);
    char *names = xstrdup(g->via), *save = NULL, *error = NULL;

    via->n = 0;
    for (char *name = strtok_r(names, ",", &save); name && !error;
         name = strtok_r(NULL, ",", &save)) {
        const struct plan_node *node = plan_find_node(t, name);

        if (via->n > VIA_MAX) {
            error = xasprintf("via: at most %d nodes may be in front of the root", VIA_MAX);
            break;
        }
        for (size_t i = 0; i < via->n && !error; i++) {
            error = via->nodes[i] == node ? xasprintf("via: %s is in it twice", name) : NULL;
        }
        if (!error) {
            error = check_node(t, g, before, node, name);
        }
        via->nodes[via->n++] = before = node;
    }
    if (!error && via->n && g->mode != MODE_REPLICATE) {
        error = xasprintf("via: mode %s has no such path, only replicate", tree_mode_name(g->mode));
    }
    free(names);
    return error;
}

const struct plan_node *
via_root(const struct plan_topology *t, const struct plan_group *g, const struct via *via)
{
    const struct plan_node *agent = plan_attachment(t, g->source_host);

    if (via->n) {
        return via->nodes[via->n - 1];
    }
    for (size_t i = 0; i < t->n_nodes; i++) {
        const struct plan_node *node = &t->nodes[i];

        if (!plan_is_agent(node) && via_may_use_node(g, node) && via_may_pass(t, g, agent, node)) {
            return node;
        }
    }
    return NULL;
}

/* 'from', at this distance, is next for 'to' if that is one farther and nobody with a lower id is.
 * True: 'to' was not reached before. */
static bool
relax(struct via_ways *w, const struct plan_group *g, unsigned *hops, const struct plan_node *from,
      const struct plan_node *to, unsigned distance)
{
    size_t i = (size_t) (to - w->t->nodes);
    bool is_new = hops[i] == UINT_MAX;

    if (hops[from - w->t->nodes] != distance || hops[i] <= distance || plan_is_agent(from)
        || !via_may_use_node(g, to)) {
        return false;
    }
    hops[i] = distance + 1;
    if (is_new || from < w->next[i]) { /* nodes are sorted by id. */
        w->next[i] = from;
    }
    return is_new;
}

void
via_ways_init(struct via_ways *w, const struct plan_topology *t, const struct plan_group *g,
              const struct plan_node *root)
{
    *w = (struct via_ways){.t = t, .root = root};
    if (!via_is_limited(g)) {
        return;
    }
    unsigned *hops = xcalloc(t->n_nodes, sizeof *hops);
    bool grew = true;

    w->next = xcalloc(t->n_nodes, sizeof *w->next);
    for (size_t i = 0; i < t->n_nodes; i++) {
        hops[i] = &t->nodes[i] == root ? 0 : UINT_MAX;
    }
    for (unsigned distance = 0; grew; distance++) {
        grew = false;
        for (size_t i = 0; i < t->n_links; i++) {
            const struct plan_link *link = &t->links[i];

            if (link->a_node && link->b_node && via_may_use_link(g, link)) {
                grew |= relax(w, g, hops, link->a_node, link->b_node, distance);
                grew |= relax(w, g, hops, link->b_node, link->a_node, distance);
            }
        }
    }
    free(hops);
}

void
via_ways_uninit(struct via_ways *w)
{
    free(w->next);
}

const struct plan_node *
via_ways_next(const struct via_ways *w, const struct plan_node *node)
{
    return w->next ? w->next[node - w->t->nodes] : plan_next_node(w->t, node, w->root);
}
