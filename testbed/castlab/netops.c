/* SPDX-License-Identifier: Apache-2.0
 *
 * Links, addresses, neighbours and routes, through libnl.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netlink/netlink.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <netlink/route/link/veth.h>
#include <netlink/route/neighbour.h>
#include <netlink/route/nexthop.h>
#include <netlink/route/route.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "testbed/castlab/netops-private.h"
#include "testbed/castlab/netops.h"
#include "testbed/labs/labs.h"
#include "util.h"

char *
netops_error(const char *what, const char *name, int nle)
{
    return nle < 0 ? xasprintf("%s %s: %s", what, name, nl_geterror(nle)) : NULL;
}

int
netops_connect(struct nl_sock **sockp, int protocol)
{
    struct nl_sock *sock = nl_socket_alloc();
    int nle = sock ? nl_connect(sock, protocol) : -NLE_NOMEM;
    if (nle < 0) {
        nl_socket_free(sock);
        return nle;
    }
    *sockp = sock;
    return 0;
}

/* A netlink socket belongs to the namespace in which it was made, for ever. */
char *
net_open(struct net **netp, int netns_fd)
{
    int own_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (own_fd < 0 || (netns_fd >= 0 && setns(netns_fd, CLONE_NEWNET))) {
        char *error = xasprintf("entering a network namespace: %s", ovs_strerror(errno));
        if (own_fd >= 0) {
            close(own_fd);
        }
        return error;
    }
    struct nl_sock *sock;
    int nle = netops_connect(&sock, NETLINK_ROUTE);
    if (netns_fd >= 0 && setns(own_fd, CLONE_NEWNET)) {
        ovs_fatal(errno, "cannot return to the hosts' network namespace");
    }
    close(own_fd);
    if (nle < 0) {
        return netops_error("netlink", "socket", nle);
    }
    struct net *net = xzalloc(sizeof *net);
    net->sock = sock;
    *netp = net;
    return NULL;
}

void
net_close(struct net *net)
{
    if (net) {
        nl_socket_free(net->sock);
        free(net);
    }
}

/* Returns the device, which the caller puts; or NULL and the libnl code *nlep. */
static struct rtnl_link *
get_link(struct net *net, const char *netdev, int *nlep)
{
    struct rtnl_link *link = NULL;
    *nlep = rtnl_link_get_kernel(net->sock, 0, netdev, &link);
    return *nlep < 0 ? NULL : link;
}

int
net_ifindex(struct net *net, const char *netdev)
{
    int nle;
    struct rtnl_link *link = get_link(net, netdev, &nle);
    if (!link) {
        return 0;
    }
    int ifindex = rtnl_link_get_ifindex(link);
    rtnl_link_put(link);
    return ifindex;
}

char *
tap_delete(struct net *net, const char *netdev, int ifindex)
{
    int nle;
    struct rtnl_link *link = get_link(net, netdev, &nle);
    if (!link) {
        return nle == -NLE_OBJ_NOTFOUND || nle == -NLE_NODEV ? NULL
                                                             : netops_error("tap", netdev, nle);
    }
    const char *type = rtnl_link_get_type(link);
    bool ours =
        type && !strcmp(type, "tun") && (!ifindex || ifindex == rtnl_link_get_ifindex(link));
    nle = ours ? rtnl_link_delete(net->sock, link) : 0;
    rtnl_link_put(link);
    return netops_error("tap", netdev, nle);
}

char *
veth_create(struct net *net, const char *a, const char *b, int peer_fd, unsigned int mtu)
{
    struct rtnl_link *link = rtnl_link_veth_alloc();
    struct rtnl_link *peer = rtnl_link_veth_get_peer(link);
    rtnl_link_set_name(link, a);
    rtnl_link_set_mtu(link, mtu);
    rtnl_link_set_name(peer, b);
    rtnl_link_set_mtu(peer, mtu);
    rtnl_link_set_ns_fd(peer, peer_fd);
    int nle = rtnl_link_add(net->sock, link, NLM_F_CREATE | NLM_F_EXCL);
    rtnl_link_put(peer);
    rtnl_link_put(link);
    return netops_error("veth", a, nle);
}

/* Applies 'change' (and puts it) to a device. */
static char *
change_link(struct net *net, const char *netdev, struct rtnl_link *change)
{
    int nle;
    struct rtnl_link *link = get_link(net, netdev, &nle);
    if (link) {
        nle = rtnl_link_change(net->sock, link, change, 0);
        rtnl_link_put(link);
    }
    rtnl_link_put(change);
    return netops_error("device", netdev, nle);
}

char *
link_set_mtu(struct net *net, const char *netdev, unsigned int mtu)
{
    struct rtnl_link *change = rtnl_link_alloc();
    rtnl_link_set_mtu(change, mtu);
    return change_link(net, netdev, change);
}

char *
link_set_up(struct net *net, const char *netdev)
{
    struct rtnl_link *change = rtnl_link_alloc();
    rtnl_link_set_flags(change, IFF_UP);
    return change_link(net, netdev, change);
}

char *
link_check_queue(struct net *net, const char *netdev)
{
    int nle;
    struct rtnl_link *link = get_link(net, netdev, &nle);
    if (!link) {
        return netops_error("device", netdev, nle);
    }
    const char *qdisc = rtnl_link_get_qdisc(link);
    char *error = NULL;
    if (!qdisc || !strcmp(qdisc, "noqueue") || !strcmp(qdisc, "noop")
        || !rtnl_link_get_txqlen(link)) {
        error = xasprintf("device %s: queueing discipline '%s' does not queue (net.core."
                          "default_qdisc must be pfifo_fast or fq_codel)",
                          netdev, qdisc ? qdisc : "none");
    }
    rtnl_link_put(link);
    return error;
}

bool
link_has_carrier(struct net *net, const char *netdev)
{
    int nle;
    struct rtnl_link *link = get_link(net, netdev, &nle);
    bool carrier = link && rtnl_link_get_carrier(link);
    rtnl_link_put(link);
    return carrier;
}

char *
sysctl_set(const char *netdev, const char *name, const char *value)
{
    const struct lab_text path = lab_text("/proc/sys/net/ipv6/conf/%s/%s", netdev, name);
    int fd = open(path.text, O_WRONLY | O_CLOEXEC);
    char *error = NULL;
    if (fd < 0 || write(fd, value, strlen(value)) < 0) {
        error = xasprintf("%s: %s", path.text, ovs_strerror(errno));
    }
    if (fd >= 0) {
        close(fd);
    }
    return error;
}

/* An address with a prefix length. */
struct nl_addr *
netops_addr(const struct in6_addr *a, uint8_t plen)
{
    struct nl_addr *addr = nl_addr_build(AF_INET6, a, sizeof *a);
    nl_addr_set_prefixlen(addr, plen);
    return addr;
}

char *
address_add(struct net *net, const char *netdev, const struct in6_addr *a)
{
    struct rtnl_addr *addr = rtnl_addr_alloc();
    struct nl_addr *local = netops_addr(a, 128);
    rtnl_addr_set_ifindex(addr, net_ifindex(net, netdev));
    rtnl_addr_set_local(addr, local);
    rtnl_addr_set_flags(addr, IFA_F_NODAD);
    int nle = rtnl_addr_add(net->sock, addr, NLM_F_CREATE | NLM_F_EXCL);
    nl_addr_put(local);
    rtnl_addr_put(addr);
    return netops_error("address on", netdev, nle);
}

bool
address_exists(struct net *net, const struct in6_addr *a)
{
    struct nl_cache *cache;
    if (rtnl_addr_alloc_cache(net->sock, &cache) < 0) {
        return false;
    }
    bool found = false;
    for (struct nl_object *o = nl_cache_get_first(cache); o && !found; o = nl_cache_get_next(o)) {
        const struct nl_addr *local = rtnl_addr_get_local((struct rtnl_addr *) o);
        found = local && nl_addr_get_len(local) == sizeof *a
                && !memcmp(nl_addr_get_binary_addr(local), a, sizeof *a);
    }
    nl_cache_free(cache);
    return found;
}

char *
neighbour_add(struct net *net, const char *netdev, const struct in6_addr *a, const char *mac)
{
    struct nl_addr *lladdr;
    int nle = nl_addr_parse(mac, AF_LLC, &lladdr);
    if (nle < 0) {
        return xasprintf("neighbour on %s: '%s' is no MAC address", netdev, mac);
    }
    struct rtnl_neigh *neigh = rtnl_neigh_alloc();
    struct nl_addr *dst = netops_addr(a, 128);
    rtnl_neigh_set_ifindex(neigh, net_ifindex(net, netdev));
    rtnl_neigh_set_dst(neigh, dst);
    rtnl_neigh_set_lladdr(neigh, lladdr);
    rtnl_neigh_set_state(neigh, NUD_PERMANENT);
    nle = rtnl_neigh_add(net->sock, neigh, NLM_F_CREATE | NLM_F_REPLACE);
    nl_addr_put(dst);
    nl_addr_put(lladdr);
    rtnl_neigh_put(neigh);
    return netops_error("neighbour on", netdev, nle);
}

char *
default_route_add(struct net *net, const char *netdev, const struct in6_addr *gateway,
                  uint32_t table)
{
    struct rtnl_route *route = rtnl_route_alloc();
    struct rtnl_nexthop *nh = rtnl_route_nh_alloc();
    struct nl_addr *dst = netops_addr(&in6addr_any, 0);
    struct nl_addr *gw = netops_addr(gateway, 128);
    rtnl_route_nh_set_ifindex(nh, net_ifindex(net, netdev));
    rtnl_route_nh_set_gateway(nh, gw);
    rtnl_route_nh_set_flags(nh, RTNH_F_ONLINK);
    rtnl_route_set_family(route, AF_INET6);
    rtnl_route_set_dst(route, dst);
    rtnl_route_set_table(route, table);
    rtnl_route_set_protocol(route, RTPROT_STATIC);
    rtnl_route_add_nexthop(route, nh);
    int nle = rtnl_route_add(net->sock, route, NLM_F_CREATE | NLM_F_EXCL);
    nl_addr_put(dst);
    nl_addr_put(gw);
    rtnl_route_put(route);
    return netops_error("default route through", netdev, nle);
}
