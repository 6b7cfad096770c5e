/* SPDX-License-Identifier: Apache-2.0
 *
 * The RDMA-CM part of a node.
 *
 * The connections themselves are lib/cm-conn.c's.  Here is what ties them to the rest of the node:
 * packets, and the trees.  A program that the node has connected to is told that it is connected
 * (RTU) when two things are so: the registry has its answer, and the newest epoch of the Proxy
 * copies to its queue pair, or the configuration says that nothing will be missed (CM_ACCEPT).  That
 * is looked at after whatever may have changed it.
 */
#include "lib/node-cm.h"

#include <stdlib.h>

#include "lib/alloc.h"
#include "lib/node-egress.h"

struct node_cm {
    struct node_base *base;
    struct cm_conns *conns;
    psn_t psn;                      /* of the next message. */
    uint64_t now;                   /* of the event that messages are sent for. */
    struct cm_conn_config *configs; /* what was configured last, by id. */
    size_t n_configs;
    uint64_t version; /* of the connections, when they were last compared with the trees. */
};

static void
send_msg(void *cm_, const struct in6_addr *proxy, const struct in6_addr *host,
         const struct cm_msg *m)
{
    struct node_cm *cm = cm_;
    struct node_base *base = cm->base;

    TRACE(&base->tracer, "RDMA-CM %s to %s, connection 0x%x", cm_attribute_name(m->attribute),
          TRACE_ADDR(host), m->local_id);
    struct packet *p = cm_build(base->pool, proxy, host, cm->psn, m);
    cm->psn = psn_add(cm->psn, 1);
    node_count_drop(base, p ? l3_output(base->l3, p, L3_ERRORS_NONE, cm->now) : DROP_pool_empty);
}

struct node_cm *
node_cm_create(struct node_base *base, uint32_t first_id)
{
    struct node_cm *cm = must_calloc(1, sizeof *cm);

    cm->base = base;
    cm->conns = cm_conns_create(first_id, send_msg, cm);
    return cm;
}

void
node_cm_destroy(struct node_cm *cm)
{
    cm_conns_destroy(cm->conns);
    free(cm->configs);
    free(cm);
}

static int
by_id(const void *a_, const void *b_)
{
    const struct cm_conn_config *a = a_, *b = b_;

    return a->id < b->id ? -1 : a->id > b->id;
}

/* NULL: it has none. */
static struct cm_conn_config *
find_config(const struct node_cm *cm, uint32_t id)
{
    const struct cm_conn_config key = {.id = id};

    return cm->n_configs ? bsearch(&key, cm->configs, cm->n_configs, sizeof key, by_id) : NULL;
}

/* Can the program be told that it is connected? */
static bool
is_served(const struct node_base *base, const struct cm_conn_config *config,
          const struct cm_known *known)
{
    return config->known.remote_id == known->remote_id
           && (config->decision == CM_ACCEPT
               || (base->has_receiver
                   && base->has_receiver(base, &config->proxy, &config->host, known->qpn)));
}

/* Compares the connections that wait for it with the trees. */
static void
update(struct node_cm *cm)
{
    bool news = false;

    for (size_t i = 0; i < cm_conns_n(cm->conns); i++) {
        struct cm_conn_info info;

        cm_conns_get(cm->conns, i, &info);
        if (info.known->state != CM_ANSWERED) {
            continue;
        }
        struct cm_conn_config *config = find_config(cm, info.id);
        bool ready = config && is_served(cm->base, config, info.known);
        if (config && config->ready != ready) {
            config->ready = ready;
            news = true;
        }
    }
    if (news) {
        cm_conns_configure(cm->conns, cm->configs, cm->n_configs, cm->now);
    }
    cm->version = cm_conns_version(cm->conns);
}

/* The end of each event at the connections. */
static void
update_if_changed(struct node_cm *cm)
{
    if (cm->version != cm_conns_version(cm->conns)) {
        update(cm);
    }
}

enum drop_reason
node_cm_input(struct node_base *base, const struct rx *rx)
{
    const struct ip6_hdr_wire *ip = rx_ip(rx);
    struct node_cm *cm = base->cm;
    struct cm_msg m;

    if (IN6_IS_ADDR_LINKLOCAL(&ip->src) || IN6_IS_ADDR_UNSPECIFIED(&ip->src)) {
        return DROP_ip6_src; /* the guard lets it in for neighbour discovery. */
    }
    enum drop_reason why = cm_parse(rx->p->data, &rx->h, &m);
    if (why) {
        return why;
    }
    TRACE(&base->tracer, "RDMA-CM %s of %s, connection 0x%x", cm_attribute_name(m.attribute),
          TRACE_ADDR(&ip->src), m.local_id);
    cm->now = rx->now;
    why = cm_conns_input(cm->conns, &ip->dst, &ip->src, &m, rx->now);
    update_if_changed(cm);
    return why;
}

void
node_cm_trees_changed(struct node_base *base, uint64_t now)
{
    base->cm->now = now;
    update(base->cm);
}

void
node_cm_traffic(struct node_base *base, const struct in6_addr *proxy, const struct in6_addr *host,
                uint32_t qpn)
{
    cm_conns_traffic(base->cm->conns, proxy, host, qpn);
}

uint64_t
node_cm_deadline(const struct node_base *base)
{
    return cm_conns_deadline(base->cm->conns);
}

void
node_cm_timer(struct node_base *base, uint64_t now)
{
    struct node_cm *cm = base->cm;

    cm->now = now;
    cm_conns_timer(cm->conns, now);
    update_if_changed(cm);
}

void
node_cm_configure(void *node, const struct cm_conn_config *configs, size_t n, uint64_t now)
{
    struct node_cm *cm = ((struct node_base *) node)->cm;

    node_egress_set_now(((struct node_base *) node)->egress, now);
    free(cm->configs);
    cm->configs = must_copy(configs, n, sizeof *configs);
    cm->n_configs = n;
    if (n) {
        qsort(cm->configs, n, sizeof *cm->configs, by_id);
    }
    cm->now = now;
    cm_conns_configure(cm->conns, cm->configs, n, now);
    update(cm);
}

size_t
node_cm_n(const void *node)
{
    return cm_conns_n(((const struct node_base *) node)->cm->conns);
}

void
node_cm_get(const void *node, size_t i, struct cm_conn_info *info)
{
    cm_conns_get(((const struct node_base *) node)->cm->conns, i, info);
}

uint64_t
node_cm_version(const void *node)
{
    return cm_conns_version(((const struct node_base *) node)->cm->conns);
}
