/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of the registry's rows belong together (see mirror.h).
 */
#include <config.h>

#include "ctl/castd/mirror.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/registry/rows.h"
#include "hash.h"
#include "openvswitch/vlog.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(castd_mirror);

static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(60, 60);

void
mirror_init(struct mirror *m, struct work *work)
{
    *m = (struct mirror){.work = work};
    hmap_init(&m->groups);
    hmap_init(&m->proxies);
    hmap_init(&m->parts);
    hmap_init(&m->nodes);
    hmap_init(&m->node_names);
    ovs_list_init(&m->orphans);
    ovs_list_init(&m->homeless);
}

/*
 * What is due.
 */

static void
touch_group(struct mirror *m, struct mirror_group *g)
{
    if (g && g->work) {
        work_make_due(m->work, g->work);
    }
}

static void
touch_proxy(struct mirror *m, struct mirror_proxy *p)
{
    struct mirror_group *g;

    if (p) {
        LIST_FOR_EACH (g, proxy_node, &p->groups) {
            touch_group(m, g);
        }
    }
}

static void
touch_part(struct mirror *m, struct mirror_part *part)
{
    touch_group(m, part->group);
    touch_proxy(m, part->proxy);
}

/*
 * Look-ups.
 */

static struct mirror_group *
find_group(const struct mirror *m, const struct uuid *uuid)
{
    struct mirror_group *g;

    HMAP_FOR_EACH_WITH_HASH (g, hmap_node, uuid_hash(uuid), &m->groups) {
        if (uuid_equals(&g->uuid, uuid)) {
            return g;
        }
    }
    return NULL;
}

static struct mirror_part *
find_part(const struct mirror *m, const struct uuid *uuid)
{
    struct mirror_part *part;

    HMAP_FOR_EACH_WITH_HASH (part, hmap_node, uuid_hash(uuid), &m->parts) {
        if (uuid_equals(&part->uuid, uuid)) {
            return part;
        }
    }
    return NULL;
}

struct mirror_node *
mirror_find_node(const struct mirror *m, const struct uuid *uuid)
{
    struct mirror_node *n;

    HMAP_FOR_EACH_WITH_HASH (n, hmap_node, uuid_hash(uuid), &m->nodes) {
        if (uuid_equals(&n->uuid, uuid)) {
            return n;
        }
    }
    return NULL;
}

static struct mirror_node *
find_node_by_name(const struct mirror *m, const char *name)
{
    struct mirror_node *n;

    HMAP_FOR_EACH_WITH_HASH (n, name_node, hash_string(name, 0), &m->node_names) {
        if (!strcmp(n->name, name)) {
            return n;
        }
    }
    return NULL;
}

bool
mirror_group_has_proxy(const struct mirror_group *g)
{
    return g->proxy && ovs_list_front(&g->proxy->groups) == &g->proxy_node;
}

/*
 * Proxy Addresses.
 */

static struct mirror_proxy *
make_proxy(struct mirror *m, const char *text)
{
    uint32_t hash = hash_string(text, 0);
    size_t size = strlen(text) + 1;
    struct mirror_proxy *p;

    HMAP_FOR_EACH_WITH_HASH (p, hmap_node, hash, &m->proxies) {
        if (!strcmp(p->text, text)) {
            return p;
        }
    }
    p = xmalloc(sizeof *p + size);
    ovs_list_init(&p->orphan_node);
    ovs_list_init(&p->groups);
    ovs_list_init(&p->trees);
    ovs_list_init(&p->connections);
    memcpy(p->text, text, size);
    hmap_insert(&m->proxies, &p->hmap_node, hash);
    return p;
}

/* After something was added or taken away: is it an orphan, or nothing any more? */
static void
settle_proxy(struct mirror *m, struct mirror_proxy *p)
{
    bool has_rows = !ovs_list_is_empty(&p->trees) || !ovs_list_is_empty(&p->connections);
    bool is_orphan = ovs_list_is_empty(&p->groups) && has_rows;

    if (is_orphan && ovs_list_is_empty(&p->orphan_node)) {
        ovs_list_push_back(&m->orphans, &p->orphan_node);
    } else if (!is_orphan && !ovs_list_is_empty(&p->orphan_node)) {
        ovs_list_remove(&p->orphan_node);
        ovs_list_init(&p->orphan_node);
    }
    if (ovs_list_is_empty(&p->groups) && !has_rows) {
        hmap_remove(&m->proxies, &p->hmap_node);
        free(p);
    }
}

/* Puts the group among those of the address, or NULL: of none.  Who was the first may be another then. */
static void
set_group_proxy(struct mirror *m, struct mirror_group *g, struct mirror_proxy *p)
{
    struct mirror_proxy *before = g->proxy;
    struct mirror_group *other;

    if (p == before) {
        return;
    }
    if (before) {
        touch_proxy(m, before);
        ovs_list_remove(&g->proxy_node);
        settle_proxy(m, before);
    }
    g->proxy = p;
    if (p) {
        struct ovs_list *behind = &p->groups;

        LIST_FOR_EACH (other, proxy_node, &p->groups) {
            if (uuid_compare_3way(&other->uuid, &g->uuid) > 0) {
                behind = &other->proxy_node;
                break;
            }
        }
        ovs_list_insert(behind, &g->proxy_node);
        settle_proxy(m, p);
        touch_proxy(m, p);
    }
}

/*
 * Groups.
 */

static void
set_traced(struct mirror *m, struct mirror_group *g, bool traced)
{
    m->topology_changed |= traced != g->traced;
    m->n_traced += (size_t) traced - (size_t) g->traced;
    g->traced = traced;
}

/* Logs each problem once. */
static void
set_problem(const struct mirror *m, struct mirror_group *g, char *problem)
{
    if (problem && m->work && (!g->problem || strcmp(problem, g->problem))) {
        VLOG_WARN_RL(&rl, "left out: %s", problem);
    }
    free(g->problem);
    g->problem = problem;
}

void
mirror_put_group(struct mirror *m, const struct rrec_group *row)
{
    struct mirror_group *g = find_group(m, &row->header_.uuid);
    bool is_in = registry_group_is_in(row);

    if (!g) {
        g = xzalloc(sizeof *g);
        g->uuid = row->header_.uuid;
        for (size_t i = 0; i < ARRAY_SIZE(g->parts); i++) {
            ovs_list_init(&g->parts[i]);
        }
        hmap_insert(&m->groups, &g->hmap_node, uuid_hash(&g->uuid));
    }
    g->row = row;
    set_problem(m, g, registry_group_problem(row));
    if (m->work && is_in && !g->work) {
        g->work = work_add(m->work, g);
    } else if (!is_in && g->work) {
        work_remove(m->work, g->work);
        g->work = NULL;
    }
    set_traced(m, g, is_in && row->n_trace_slots && row->trace_slots[0] > 0);
    set_group_proxy(m, g, is_in && row->proxy[0] ? make_proxy(m, row->proxy) : NULL);
    touch_group(m, g);
}

static void
destroy_group(struct mirror *m, struct mirror_group *g)
{
    hmap_remove(&m->groups, &g->hmap_node);
    if (g->work) {
        work_remove(m->work, g->work);
    }
    free(g->problem);
    free(g);
}

/*
 * What belongs to groups.
 */

static void
detach(struct mirror *m, struct mirror_part *part)
{
    struct mirror_proxy *p = part->proxy;

    touch_part(m, part);
    if (!ovs_list_is_empty(&part->owner_node)) {
        ovs_list_remove(&part->owner_node);
        ovs_list_init(&part->owner_node);
    }
    part->group = NULL;
    part->proxy = NULL;
    if (p) {
        settle_proxy(m, p);
    }
}

static void
attach_to_group(struct mirror *m, struct mirror_part *part, const struct rrec_group *row)
{
    struct mirror_group *g = row ? find_group(m, &row->header_.uuid) : NULL;

    if (part->group != g) {
        detach(m, part);
        part->group = g;
        if (g) {
            ovs_list_push_back(&g->parts[part->kind], &part->owner_node);
        }
    }
}

static void
attach_to_proxy(struct mirror *m, struct mirror_part *part, const char *text)
{
    struct mirror_proxy *p;

    if (part->proxy && !strcmp(part->proxy->text, text)) {
        return;
    }
    detach(m, part);
    p = make_proxy(m, text);
    part->proxy = p;
    ovs_list_push_back(part->kind == MIRROR_TREE ? &p->trees : &p->connections, &part->owner_node);
    settle_proxy(m, p);
}

static void
attach(struct mirror *m, struct mirror_part *part)
{
    switch (part->kind) {
    case MIRROR_SOURCE:
        attach_to_group(m, part, ((const struct rrec_source *) part->row)->group);
        return;
    case MIRROR_MEMBER:
        attach_to_group(m, part, ((const struct rrec_member *) part->row)->group);
        return;
    case MIRROR_LISTENER:
        attach_to_group(m, part, ((const struct rrec_listener *) part->row)->group);
        return;
    case MIRROR_CONNECTION:
        attach_to_proxy(m, part, ((const struct rrec_connection *) part->row)->proxy);
        return;
    case MIRROR_TREE:
        attach_to_proxy(m, part, ((const struct rrec_tree_node *) part->row)->proxy);
        return;
    case MIRROR_N_KINDS: break;
    }
    OVS_NOT_REACHED();
}

static const char *
node_name_of(const struct mirror_part *tree)
{
    return ((const struct rrec_tree_node *) tree->row)->node;
}

static void
set_node(struct mirror *m, struct mirror_part *tree, struct mirror_node *n)
{
    if (tree->node != n) {
        ovs_list_remove(&tree->node_node);
        ovs_list_push_back(n ? &n->trees : &m->homeless, &tree->node_node);
        tree->node = n;
        touch_part(m, tree);
    }
}

/* As intent_is_tree_of() has it. */
static void
settle_tree(struct mirror *m, struct mirror_part *tree)
{
    const char *name = node_name_of(tree);
    struct mirror_node *n = name[0] ? find_node_by_name(m, name) : tree->lister;
    bool has_it = n && (n->named_trees ? name[0] : tree->lister == n);

    set_node(m, tree, has_it ? n : NULL);
}

static void
set_lister(struct mirror_part *tree, struct mirror_node *n)
{
    ovs_list_remove(&tree->listed_node);
    ovs_list_init(&tree->listed_node);
    tree->lister = n;
    if (n) {
        ovs_list_push_back(&n->listed, &tree->listed_node);
    }
}

void
mirror_put_part(struct mirror *m, enum mirror_kind kind, const void *row, const struct uuid *uuid)
{
    struct mirror_part *part = find_part(m, uuid);

    if (!part) {
        part = xzalloc(sizeof *part);
        part->uuid = *uuid;
        part->kind = kind;
        ovs_list_init(&part->owner_node);
        ovs_list_init(&part->node_node);
        ovs_list_init(&part->listed_node);
        if (kind == MIRROR_TREE) {
            ovs_list_push_back(&m->homeless, &part->node_node);
        }
        hmap_insert(&m->parts, &part->hmap_node, uuid_hash(uuid));
    }
    part->row = row;
    attach(m, part);
    if (kind == MIRROR_TREE) {
        settle_tree(m, part);
    }
    touch_part(m, part);
}

void
mirror_drop_part(struct mirror *m, const struct uuid *uuid)
{
    struct mirror_part *part = find_part(m, uuid);

    if (part) {
        if (part->kind == MIRROR_TREE) {
            ovs_list_remove(&part->node_node);
            set_lister(part, NULL);
        }
        detach(m, part);
        hmap_remove(&m->parts, &part->hmap_node);
        free(part);
    }
}

void
mirror_drop_group(struct mirror *m, const struct uuid *uuid)
{
    struct mirror_group *g = find_group(m, uuid);
    struct mirror_part *part;

    if (g) {
        for (size_t i = 0; i < ARRAY_SIZE(g->parts); i++) {
            LIST_FOR_EACH_SAFE (part, owner_node, &g->parts[i]) {
                detach(m, part);
            }
        }
        set_traced(m, g, false);
        set_group_proxy(m, g, NULL);
        destroy_group(m, g);
    }
}

/*
 * Nodes.
 */

static struct mirror_node *
make_node(struct mirror *m, const struct rrec_node *row)
{
    struct mirror_node *n = xzalloc(sizeof *n);

    n->uuid = row->header_.uuid;
    n->index = SIZE_MAX;
    n->name = xstrdup(row->name);
    ovs_list_init(&n->trees);
    ovs_list_init(&n->listed);
    hmap_insert(&m->nodes, &n->hmap_node, uuid_hash(&n->uuid));
    hmap_insert(&m->node_names, &n->name_node, hash_string(n->name, 0));
    return n;
}

static void
free_node(struct mirror_node *n)
{
    free(n->name);
    free(n);
}

static void
put_list(struct mirror *m, struct mirror_node *n)
{
    unsigned int mark = ++m->last_mark;
    struct mirror_part *tree;

    for (size_t i = 0; i < n->row->n_trees; i++) {
        const struct rrec_tree_node *row = n->row->trees[i];

        tree = find_part(m, &row->header_.uuid);
        if (!tree) { /* all of its columns are empty: the IDL does not tell of such rows. */
            mirror_put_part(m, MIRROR_TREE, row, &row->header_.uuid);
            tree = find_part(m, &row->header_.uuid);
        }
        tree->mark = mark;
        if (tree->lister != n) {
            set_lister(tree, n);
            settle_tree(m, tree);
        }
    }
    LIST_FOR_EACH_SAFE (tree, listed_node, &n->listed) {
        if (tree->mark != mark) {
            set_lister(tree, NULL);
            settle_tree(m, tree);
        }
    }
}

void
mirror_put_node(struct mirror *m, const struct rrec_node *row)
{
    struct mirror_node *n = mirror_find_node(m, &row->header_.uuid);
    struct mirror_part *tree;

    if (n && strcmp(n->name, row->name)) {
        mirror_drop_node(m, &row->header_.uuid);
        n = NULL;
    }
    n = n ? n : make_node(m, row);
    n->row = row;
    if (n->named_trees != row->named_trees) {
        n->named_trees = row->named_trees;
        LIST_FOR_EACH_SAFE (tree, node_node, &m->homeless) {
            settle_tree(m, tree);
        }
        LIST_FOR_EACH_SAFE (tree, node_node, &n->trees) {
            settle_tree(m, tree);
        }
    }
    put_list(m, n);
}

void
mirror_drop_node(struct mirror *m, const struct uuid *uuid)
{
    struct mirror_node *n = mirror_find_node(m, uuid);
    struct mirror_part *tree;

    if (n) {
        hmap_remove(&m->nodes, &n->hmap_node);
        hmap_remove(&m->node_names, &n->name_node);
        LIST_FOR_EACH_SAFE (tree, listed_node, &n->listed) {
            set_lister(tree, NULL);
        }
        LIST_FOR_EACH_SAFE (tree, node_node, &n->trees) {
            settle_tree(m, tree);
        }
        free_node(n);
    }
}

/*
 * All.
 */

void
mirror_clear(struct mirror *m)
{
    struct mirror_group *g;
    struct mirror_proxy *p;
    struct mirror_part *part;
    struct mirror_node *n;

    HMAP_FOR_EACH_SAFE (g, hmap_node, &m->groups) {
        destroy_group(m, g);
    }
    HMAP_FOR_EACH_SAFE (p, hmap_node, &m->proxies) {
        hmap_remove(&m->proxies, &p->hmap_node);
        free(p);
    }
    HMAP_FOR_EACH_SAFE (part, hmap_node, &m->parts) {
        hmap_remove(&m->parts, &part->hmap_node);
        free(part);
    }
    HMAP_FOR_EACH_SAFE (n, hmap_node, &m->nodes) {
        hmap_remove(&m->nodes, &n->hmap_node);
        hmap_remove(&m->node_names, &n->name_node);
        free_node(n);
    }
    ovs_list_init(&m->orphans);
    ovs_list_init(&m->homeless);
    m->n_traced = 0;
    m->built = false;
}

void
mirror_uninit(struct mirror *m)
{
    mirror_clear(m);
    hmap_destroy(&m->groups);
    hmap_destroy(&m->proxies);
    hmap_destroy(&m->parts);
    hmap_destroy(&m->nodes);
    hmap_destroy(&m->node_names);
}

static char *
describe_part(const struct mirror_part *part)
{
    return xasprintf("part " UUID_FMT " %d %p group " UUID_FMT " proxy %s node " UUID_FMT,
                     UUID_ARGS(&part->uuid), part->kind, part->row,
                     UUID_ARGS(part->group ? &part->group->uuid : &UUID_ZERO),
                     part->proxy ? part->proxy->text : "none",
                     UUID_ARGS(part->node ? &part->node->uuid : &UUID_ZERO));
}

void
mirror_describe(const struct mirror *m, struct svec *lines)
{
    const struct mirror_group *g;
    const struct mirror_proxy *p;
    const struct mirror_part *part;
    const struct mirror_node *n;

    HMAP_FOR_EACH (g, hmap_node, &m->groups) {
        size_t n_parts = 0;

        for (size_t i = 0; i < ARRAY_SIZE(g->parts); i++) {
            n_parts += ovs_list_size(&g->parts[i]);
        }
        svec_add_nocopy(lines,
                        xasprintf("group " UUID_FMT " %p proxy %s has %d traced %d parts %zu",
                                  UUID_ARGS(&g->uuid), (const void *) g->row,
                                  g->proxy ? g->proxy->text : "none", mirror_group_has_proxy(g),
                                  g->traced, n_parts));
    }
    HMAP_FOR_EACH (p, hmap_node, &m->proxies) {
        svec_add_nocopy(lines, xasprintf("proxy %s orphan %d groups %zu trees %zu connections %zu",
                                         p->text, !ovs_list_is_empty(&p->orphan_node),
                                         ovs_list_size(&p->groups), ovs_list_size(&p->trees),
                                         ovs_list_size(&p->connections)));
    }
    HMAP_FOR_EACH (part, hmap_node, &m->parts) {
        svec_add_nocopy(lines, describe_part(part));
    }
    HMAP_FOR_EACH (n, hmap_node, &m->nodes) {
        svec_add_nocopy(lines, xasprintf("node " UUID_FMT " %p trees %zu", UUID_ARGS(&n->uuid),
                                         (const void *) n->row, ovs_list_size(&n->trees)));
    }
    svec_add_nocopy(lines, xasprintf("%zu homeless", ovs_list_size(&m->homeless)));
    svec_add_nocopy(lines, xasprintf("%zu traced", m->n_traced));
    svec_sort(lines);
}
