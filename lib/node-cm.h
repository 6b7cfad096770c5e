/* SPDX-License-Identifier: Apache-2.0
 *
 * The RDMA-CM part of a node: takes the messages of programs at its hosts to Proxy Addresses, sends
 * the answers, and knows when a program that was connected to can be served.
 */
#ifndef LIB_NODE_CM_H
#define LIB_NODE_CM_H 1

#include "lib/cm-conn.h"
#include "lib/node-base.h"
#include "lib/roce.h"

/* 'first_id' as for cm_conns_create().  The base has its ports and buffers already. */
struct node_cm *node_cm_create(struct node_base *, uint32_t first_id);
void node_cm_destroy(struct node_cm *);

/* Is this packet of a host, fully parsed, one for the communication manager of a Proxy, whether a
 * group has that or not? */
static inline bool
node_cm_takes(const struct rx *rx)
{
    return rx->h.opcode == UD_SEND_ONLY && cm_is(rx->p->data, &rx->h)
           && is_proxy_address(&rx_ip(rx)->dst);
}

/* Such a packet, which the port's guard has let in. */
enum drop_reason node_cm_input(struct node_base *, const struct rx *);

/* The node's trees have another configuration. */
void node_cm_trees_changed(struct node_base *, uint64_t now);

/* A packet of this queue pair has gone down since the last call. */
void node_cm_traffic(struct node_base *, const struct in6_addr *proxy, const struct in6_addr *host,
                     uint32_t qpn);

uint64_t node_cm_deadline(const struct node_base *);
void node_cm_timer(struct node_base *, uint64_t now);

/* Members of struct node_class. */
void node_cm_configure(void *node, const struct cm_conn_config *, size_t n, uint64_t now);
size_t node_cm_n(const void *node);
void node_cm_get(const void *node, size_t i, struct cm_conn_info *);
uint64_t node_cm_version(const void *node);

#endif /* lib/node-cm.h */
