/* SPDX-License-Identifier: Apache-2.0
 *
 * What castlab does to the kernel's network configuration.
 *
 * Functions return NULL or a malloc'd error that names the object.  Removing
 * what is not there is no error.  "net" is a handle on one network namespace.
 */
#ifndef TESTBED_CASTLAB_NETOPS_H
#define TESTBED_CASTLAB_NETOPS_H 1

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/address-plan.h"

struct net;

/* 'netns_fd' is the namespace's file; -1: the caller's.  The caller stays in its own namespace. */
char *net_open(struct net **, int netns_fd);
void net_close(struct net *);

/* Network namespaces with a name, as 'ip netns' keeps them. */
#define NETNS_FOLDER "/run/netns"
/* *inodep is the identity of the new namespace.  IPv6 is off there for all devices to come. */
char *netns_create(const char *name, uint64_t *inodep);
/* Removes it if it has this inode (0: any). */
char *netns_delete(const char *name, uint64_t inode);
bool netns_exists(const char *name);
char *netns_open(const char *name, int *fdp);
/* Inode of a namespace file such as "/proc/self/ns/net"; 0: unknown. */
uint64_t netns_inode(const char *path);

/* Index of a device; 0: none. */
int net_ifindex(struct net *, const char *netdev);

/* A persistent multi-queue tap in the caller's namespace.  EEXIST is an error. */
char *tap_create(const char *netdev);
/* Attaches to an existing tap and detaches the queue.  The tap has carrier while *fdp is open. */
char *tap_hold(const char *netdev, int *fdp);
/* Deletes the device if it is a tap and has this index (0: any). */
char *tap_delete(struct net *, const char *netdev, int ifindex);

/* A veth pair, 'a' in net's namespace and 'b' in that of peer_fd, with this MTU; still down. */
char *veth_create(struct net *, const char *a, const char *b, int peer_fd, unsigned int mtu);

char *link_set_mtu(struct net *, const char *netdev, unsigned int mtu);
char *link_set_up(struct net *, const char *netdev);
/* Checks that the device queues packets: with 'noqueue' a soft-RoCE queue pair fails under load. */
char *link_check_queue(struct net *, const char *netdev);
bool link_has_carrier(struct net *, const char *netdev);
/* /proc/sys/net/ipv6/conf/<netdev>/<name> in the caller's namespace. */
char *sysctl_set(const char *netdev, const char *name, const char *value);

/* address/128, without duplicate address detection. */
char *address_add(struct net *, const char *netdev, const struct in6_addr *);
bool address_exists(struct net *, const struct in6_addr *);
char *neighbour_add(struct net *, const char *netdev, const struct in6_addr *, const char *mac);
/* default via 'gateway', on link, in a table. */
char *
default_route_add(struct net *, const char *netdev, const struct in6_addr *gateway, uint32_t table);

/* An IPv6 policy rule.  Without 'from' and 'oif' it is for all packets. */
struct rule {
    uint32_t pref;
    const struct in6_addr *from; /* for what this machine sends ('iif lo') from here ... */
    struct prefix to;            /* ... to there. */
    const char *oif;             /* for what asks for this device. */
    uint32_t table;
};
char *rule_add(struct net *, const struct rule *);
char *rule_delete(struct net *, const struct rule *);
bool rule_exists(struct net *, uint32_t pref, uint32_t table);
/* The first of 'n' consecutive tables, from 'start' on, that no route and no rule uses. */
uint32_t free_tables(struct net *, uint32_t start, size_t n);

/* Moves the rule 'lookup local' from preference 0 to 'pref', and back. */
char *local_rule_move(struct net *, uint32_t pref);
char *local_rule_restore(struct net *, uint32_t pref);
bool local_rule_is_first(struct net *);

#endif /* testbed/castlab/netops.h */
