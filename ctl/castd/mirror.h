/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of the registry's rows belong together, as the registry has them, kept from one computation to
 * the next.  follow.c keeps it up to date, by what has changed: nothing here is looked for by passing over
 * all rows.
 *
 * What a transaction of castd writes counts when the registry has it and it has come back.  So no row of
 * a transaction under way is ever here.
 *
 * Row pointers are valid from when a row was seen until mirror_drop_*(): the IDL keeps a row's structure
 * in its place, and frees a deleted one when its changes have been looked at.  What rows point to, such
 * as texts, lives shorter, and is not kept.
 */
#ifndef CTL_CASTD_MIRROR_H
#define CTL_CASTD_MIRROR_H 1

#include <stdbool.h>
#include <stddef.h>

#include "ctl/castd/work.h"
#include "ctl/registry/rocecast-idl.h"
#include "openvswitch/hmap.h"
#include "openvswitch/list.h"
#include "svec.h"
#include "uuid.h"

/* Rows that belong to a group by Group's row, or to whichever group has a Proxy Address. */
enum mirror_kind {
    MIRROR_SOURCE,
    MIRROR_MEMBER,
    MIRROR_LISTENER,
    MIRROR_CONNECTION, /* from here on: by Proxy Address. */
    MIRROR_TREE,
    MIRROR_N_KINDS,
};

struct mirror_group {
    struct hmap_node hmap_node; /* in mirror.groups. */
    struct uuid uuid;
    const struct rrec_group *row;
    char *problem;              /* what of it makes no sense; NULL: nothing. */
    struct work_group *work;    /* NULL: it is left out. */
    bool traced;                /* it has slots for traces. */
    struct mirror_proxy *proxy; /* NULL: it has none, or is left out. */
    struct ovs_list proxy_node;
    struct ovs_list parts[MIRROR_CONNECTION]; /* of struct mirror_part, by kind. */
};

/* A Proxy Address, by its text.  Trees and connections name their group by that only, and outlive it. */
struct mirror_proxy {
    struct hmap_node hmap_node;  /* in mirror.proxies. */
    struct ovs_list orphan_node; /* in mirror.orphans: it has no group; otherwise empty. */
    struct ovs_list
        groups; /* by UUID: the first has the rest.  More than one is somebody's nonsense. */
    struct ovs_list trees, connections;
    char text[];
};

struct mirror_part {
    struct hmap_node hmap_node; /* in mirror.parts. */
    struct uuid uuid;
    enum mirror_kind kind;
    const void *row;
    struct mirror_group *group; /* NULL: none, or it belongs to a Proxy Address: */
    struct mirror_proxy *proxy;
    struct ovs_list owner_node;  /* in a list of the one or the other; empty: in none. */
    struct mirror_node *node;    /* MIRROR_TREE: that has it; NULL: it is homeless. */
    struct ovs_list node_node;   /* in mirror_node.trees, or mirror.homeless. */
    struct mirror_node *lister;  /* that has it in Node.trees; NULL: none. */
    struct ovs_list listed_node; /* in mirror_node.listed, or alone. */
    unsigned int mark;
};

struct mirror_node {
    struct hmap_node hmap_node; /* in mirror.nodes. */
    struct uuid uuid;
    struct hmap_node name_node; /* in mirror.node_names. */
    char *name;
    const struct rrec_node *row;
    bool named_trees; /* as its row: otherwise it has the trees that it lists. */
    struct ovs_list trees, listed;
    size_t index; /* in castd.nodes; SIZE_MAX: it is left out. */
};

struct mirror {
    bool built;
    struct work *work; /* what is due for a change; NULL: nobody wants to know. */
    struct hmap groups, proxies, parts, nodes, node_names;
    struct ovs_list orphans;
    struct ovs_list homeless; /* trees that no node has. */
    size_t n_traced;
    unsigned int last_mark;

    /* Whoever keeps what follows from such rows looks at these, and clears them. */
    bool topology_changed; /* nodes, hosts, links, what paths follow from, or n_traced. */
    bool ways_changed;     /* probes, or planes of groups. */
};

void mirror_init(struct mirror *, struct work *);
/* Forgets all, touching no row.  What was due stays so, but for groups: they are gone. */
void mirror_clear(struct mirror *);
void mirror_uninit(struct mirror *);

/* A row is new, or something of it has changed: it is where it belongs then, and its groups, of before and
 * now, are due. */
void mirror_put_group(struct mirror *, const struct rrec_group *);
void mirror_put_part(struct mirror *, enum mirror_kind, const void *row, const struct uuid *);
/* Before or after its trees.  A new node looks through all trees that have none yet, so nodes come first if
 * all is new. */
void mirror_put_node(struct mirror *, const struct rrec_node *);

/* A row is gone.  One that was never put is nothing. */
void mirror_drop_group(struct mirror *, const struct uuid *);
void mirror_drop_part(struct mirror *, const struct uuid *);
void mirror_drop_node(struct mirror *, const struct uuid *);

struct mirror_node *mirror_find_node(const struct mirror *, const struct uuid *);
/* Does the group have the trees and connections of its Proxy Address? */
bool mirror_group_has_proxy(const struct mirror_group *);

/* A line for each thing, sorted: two mirrors of the same rows are equal. */
void mirror_describe(const struct mirror *, struct svec *lines);

#endif /* ctl/castd/mirror.h */
