/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files that implement netops.h.
 */
#ifndef TESTBED_CASTLAB_NETOPS_PRIVATE_H
#define TESTBED_CASTLAB_NETOPS_PRIVATE_H 1

#include <netinet/in.h>
#include <netlink/addr.h>
#include <stdint.h>

struct net {
    struct nl_sock *sock;
};

/* A socket of this netlink protocol; a negative libnl code: none. */
int netops_connect(struct nl_sock **, int protocol);
/* A sentence for a negative libnl code, otherwise NULL. */
char *netops_error(const char *what, const char *name, int nle);
struct nl_addr *netops_addr(const struct in6_addr *, uint8_t plen);

#endif /* testbed/castlab/netops-private.h */
