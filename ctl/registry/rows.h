/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of the registry's rows castd works with.
 *
 * castctl checks what it writes.  Rows written past it that make no sense are
 * left out; castd's log and 'castctl doctor' name them.  Of a node and a host
 * with one name, the host is left out.  Of two links that exclude each other,
 * the one that no node has a port for is left out.  Of two pins for the same
 * packets, the first by its path stays.
 */
#ifndef CTL_REGISTRY_ROWS_H
#define CTL_REGISTRY_ROWS_H 1

#include "ctl/registry/rocecast-idl.h"
#include "svec.h"

struct registry_rows {
    size_t n_nodes, n_hosts, n_links, n_groups, n_path_rules;
    const struct rrec_node **nodes;
    const struct rrec_host **hosts;
    const struct rrec_link **links;
    const struct rrec_group **groups;
    const struct rrec_path_rule **path_rules; /* by hosts; of each pair and QPN one pin. */
    struct svec left_out;                     /* sentences: table, row, why. */
};

/* Sorts the rows out.  The rows are the IDL's. */
void registry_rows_init(struct registry_rows *, const struct ovsdb_idl *);
/* Likewise without groups, which may be many: there are none then. */
void registry_rows_init_topology(struct registry_rows *, const struct ovsdb_idl *);
void registry_rows_uninit(struct registry_rows *);

/* Does castd work with the group? */
bool registry_group_is_in(const struct rrec_group *);
/* What of the group's row is left out, or all of it, as a malloc'd sentence; NULL: nothing. */
char *registry_group_problem(const struct rrec_group *);

#endif /* ctl/registry/rows.h */
