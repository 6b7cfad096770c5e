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

/* A group, as far as endpoints need it. */
struct group_info {
    uint32_t epoch;
    struct in6_addr proxy;
    uint32_t designated_qpn;
    uint32_t start_psn;
    uint32_t designated_rkey;
    uint32_t mtu;
    uint8_t qp_timeout;
    uint64_t region_len;
};

/* A member's own part. */
struct member_info {
    const char *host;
    uint32_t qpn;
    uint32_t rkey;
    uint64_t va;
    uint64_t len;
};

/* All return 0, or a positive errno and the reason in 'error'. */
/* Addresses of hosts by their names; a name that is an IPv6 address stands for itself. */
int registry_host_addresses(const char *const *hosts, unsigned n, struct in6_addr *addresses,
                            char *error, size_t size);
int registry_group_show(const char *group, struct group_info *info, char *error, size_t size);
/* 'info' is of the epoch that the source is in now. */
int registry_source_set(const char *group, const char *host, uint32_t qpn, struct group_info *info,
                        char *error, size_t size);
int registry_member_add(const char *group, const struct member_info *member, uint32_t epoch,
                        char *error, size_t size);

/* Waits until 'members' are active in 'epoch', at most 'timeout' seconds.  'info' is as it is
 * then. */
int registry_group_wait(const char *group, unsigned members, uint32_t epoch, unsigned timeout,
                        struct group_info *info, char *error, size_t size);

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
