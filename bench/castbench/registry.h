/* SPDX-License-Identifier: Apache-2.0
 *
 * What castbench asks of the registry, through librocecast.  This way is open to
 * any program (docs/api.md).
 *
 * Every function has a connection of its own, since castbench forks between
 * them.
 */
#ifndef BENCH_CASTBENCH_REGISTRY_H
#define BENCH_CASTBENCH_REGISTRY_H 1

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "librocecast/rocecast.h"

/* All return 0, or a positive errno and the reason in 'error'. */
/* Addresses of hosts by their names; a name that is an IPv6 address stands for itself. */
int registry_host_addresses(const char *const *hosts, unsigned n, struct in6_addr *addresses,
                            char *error, size_t size);
int registry_group_show(const char *group, struct rocecast_epoch *, char *error, size_t size);
/* The epoch is the one that the source is in now. */
int registry_source_set(const char *group, const char *host, uint32_t qpn, struct rocecast_epoch *,
                        char *error, size_t size);
int
registry_member_add(const char *group, const struct rocecast_member *, char *error, size_t size);
/* The group is to connect to what listens at this port of the host. */
int registry_member_listen(const char *group, const char *host, uint16_t port, char *error,
                           size_t size);
/* Takes receivers out, and waits until they are.  Those that are out already are none to take. */
int registry_members_leave(const char *group, const char *const *hosts, unsigned n, char *error,
                           size_t size);

/* Waits until 'members' are active in 'epoch', at most 'timeout' seconds; '*e' is as it is then. */
int registry_group_wait(const char *group, unsigned members, uint32_t epoch, unsigned timeout,
                        struct rocecast_epoch *e, char *error, size_t size);

/* Watches a group for members that are lost from now on. */
struct registry_watch;

/* A member that is lost, or has left. */
struct lost_info {
    char host[64];
    char why[256];
};

int registry_watch_open(const char *group, struct registry_watch **, char *error, size_t size);
void registry_watch_close(struct registry_watch *);
/* The next lost member; false: none within 'wait_ms'. */
bool registry_watch_lost(struct registry_watch *, int wait_ms, struct lost_info *);

#endif /* bench/castbench/registry.h */
