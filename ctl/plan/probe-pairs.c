/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner, probes of all nodes: which ones are about the same links, and who answers whose.
 */
#include <config.h>

#include <stdlib.h>

#include "ctl/plan/probe.h"
#include "hash.h"
#include "openvswitch/hmap.h"
#include "util.h"

struct pair_entry {
    struct hmap_node hmap_node; /* by who probes and the links. */
    const struct plan_node *from;
    struct plan_probe *probe;
};

/* Of the links in this order, or from the last one to the first. */
static uint32_t
hash_links(const struct plan_node *from, const struct plan_probe *p, bool reversed)
{
    uint32_t hash = hash_pointer(from, 0);

    for (size_t i = 0; i < p->n_links; i++) {
        hash = hash_pointer(p->links[reversed ? p->n_links - 1 - i : i], hash);
    }
    return hash;
}

static bool
is_reverse(const struct plan_probe *a, const struct plan_probe *b)
{
    for (size_t i = 0; i < a->n_links && a->n_links == b->n_links; i++) {
        if (a->links[i] != b->links[b->n_links - 1 - i]) {
            return false;
        }
    }
    return a->n_links == b->n_links;
}

static uint16_t
find_reverse(const struct hmap *entries, const struct pair_entry *e)
{
    const struct pair_entry *other;
    uint16_t lowest = 0; /* a wanted way may be a path's, with the same links under another name. */

    HMAP_FOR_EACH_WITH_HASH (other, hmap_node, hash_links(e->probe->peer, e->probe, true),
                             entries) {
        if (other->from == e->probe->peer && other->probe->peer == e->from
            && is_reverse(other->probe, e->probe)) {
            uint16_t number = other->probe->config.number;

            lowest = lowest ? MIN(lowest, number) : number;
        }
    }
    return lowest;
}

void
plan_probes_pair(const struct plan_topology *t, struct plan_probes all[])
{
    struct hmap entries = HMAP_INITIALIZER(&entries);
    struct pair_entry *e;

    for (size_t i = 0; i < t->n_nodes; i++) {
        for (size_t j = 0; j < all[i].n; j++) {
            if (all[i].probes[j].peer) {
                e = xzalloc(sizeof *e);
                e->from = &t->nodes[i];
                e->probe = &all[i].probes[j];
                hmap_insert(&entries, &e->hmap_node, hash_links(e->from, e->probe, false));
            }
        }
    }
    HMAP_FOR_EACH (e, hmap_node, &entries) {
        e->probe->config.reverse = find_reverse(&entries, e);
    }
    HMAP_FOR_EACH_POP (e, hmap_node, &entries) {
        free(e);
    }
    hmap_destroy(&entries);
}

static bool
has_peer(const struct plan_probes *probes, const struct plan_node *node)
{
    for (size_t i = 0; i < probes->n; i++) {
        if (probes->probes[i].peer == node) {
            return true;
        }
    }
    return false;
}

void
plan_probers(const struct plan_topology *t, const struct plan_probes all[],
             const struct plan_node *node, struct node_config *out)
{
    out->probers = xcalloc(t->n_nodes + 1, sizeof *out->probers);
    for (size_t i = 0; i < t->n_nodes; i++) {
        if (has_peer(&all[i], node)) {
            out->probers[out->n_probers++] = node_address(t->nodes[i].id);
        }
    }
    qsort(out->probers, out->n_probers, sizeof *out->probers, address_compare);
}
