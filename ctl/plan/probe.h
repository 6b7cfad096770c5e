/* SPDX-License-Identifier: Apache-2.0
 *
 * Probes: what nodes that place packets on paths find out regularly about the ways.
 *
 * A node probes
 *
 *   - by loops the near part of its paths: each switch that one of them begins with and, from a source
 *     agent, each switch behind that;
 *   - by peer probes the whole ways to other nodes: one for each way, whatever hosts are behind that node,
 *     and for each way that is wanted besides.
 *
 * A foreign forwarder answers no probes; on the way to one a loop to the last switch stands in.
 *
 * The first PROBES_MAX are made: loops, wanted ways, then ways by rank, those first that no operator
 * has excluded.  A probe's number is a hash of its kind and name, so it stays if others come and go;
 * only where two have the same hash, the later one by name has the next number that is free.
 */
#ifndef CTL_PLAN_PROBE_H
#define CTL_PLAN_PROBE_H 1

#include "ctl/plan/path.h"

struct plan_probe {
    struct probe_config config;
    const struct plan_node *peer; /* NULL: it is a loop. */
    size_t n_links;
    const struct plan_link **links; /* on the way there. */
    /* What a packet passes, there and back, with spaces between: links with their direction, and nodes
     * but for the prober: "dpu1>leaf1 leaf1 leaf1>spine5 spine5 ...".  Of parallel links
     * "leaf1:eth3>spine5". */
    char *elements;
};

/* Of one node. */
struct plan_probes {
    size_t n;
    struct plan_probe *probes; /* by number. */
};

/* A way that is to be probed, whether there are paths on it or not. */
struct plan_peer_way {
    size_t n_nodes;
    const struct plan_node **nodes; /* neighbours of each other; the last one is the peer. */
};

/* Fills *probes for the node, whose ports and destinations *out has already, with the paths that were
 * 'found' for them.  Gives the destinations' paths their probes.  NULL, or a malloc'd sentence about
 * what is left out. */
char *plan_probes(const struct plan_graph *, const struct plan_node *,
                  const struct plan_node_paths *found, const struct plan_peer_way *wanted,
                  size_t n_wanted, struct node_config *out, struct plan_probes *probes);
void plan_probes_uninit(struct plan_probes *);

/* The number of the node's peer probe on a way; 0: there is none. */
uint16_t plan_probe_number(const struct plan_probes *, const struct plan_peer_way *);

/* Once all nodes have their probes, by index in the topology's nodes: which ones are about the same
 * links, from the two ends. */
void plan_probes_pair(const struct plan_topology *, struct plan_probes all[]);
/* Fills in whose probes a node answers, of a configuration that has none of that. */
void plan_probers(const struct plan_topology *, const struct plan_probes all[],
                  const struct plan_node *, struct node_config *out);
/* Fills in the node's own, likewise. */
void plan_probes_configure(const struct plan_probes *, struct node_config *out);

#endif /* ctl/plan/probe.h */
