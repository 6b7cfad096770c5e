/* SPDX-License-Identifier: Apache-2.0
 *
 * What the checks share.
 */
#ifndef CTL_DOCTOR_CHECKS_H
#define CTL_DOCTOR_CHECKS_H 1

#include <netinet/in.h>

#include "ctl/doctor/doctor.h"
#include "svec.h"

/* Adds a finding of the running check; takes the strings over. */
void doctor_add(struct doctor *, enum doctor_state, char *found, char *fix);

/* Adds the finding that all is well, which leaves nothing to do. */
void doctor_ok(struct doctor *, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A path below the root that the checks look at; malloc'd. */
char *doctor_path(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Whether there is such a file.  Takes 'path' over. */
bool doctor_exists(char *path);
/* The file's first line, without its end, malloc'd; NULL: none.  Takes 'path' over. */
char *doctor_line(char *path);
/* The first line that contains 'text', in the same way; 'text' may reach to the line's end. */
char *doctor_line_with(char *path, const char *text);
/* Whether one of the file's lines contains 'text'.  Takes 'path' over. */
bool doctor_contains(char *path, const char *text);
/* Names in a folder that start with 'prefix', sorted.  Takes 'folder' over. */
void doctor_names(char *folder, const char *prefix, struct svec *);
/* What a shell command prints, malloc'd, and its status as of wait(); not below the root. */
char *doctor_output(const char *command, int *status);
/* Whether this process has a capability. */
bool doctor_has_capability(unsigned int capability);
/* Whether the kernel is of this version or a newer one. */
bool doctor_kernel_since(int major, int minor);

/* rdma.c */
void doctor_rdma_rxe(struct doctor *);
void doctor_crc32(struct doctor *);
void doctor_rxe_netns(struct doctor *);
void doctor_infiniband(struct doctor *);
void doctor_gids(struct doctor *);
void doctor_mtu(struct doctor *);
void doctor_memlock(struct doctor *);

/* Names of RDMA devices; the caller destroys them. */
void doctor_rdma_devices(struct svec *);
/* The network device of an RDMA device, NULL if it is not known; malloc'd. */
char *doctor_netdev(const char *device);
/* Gets the first address in a device's GID table that is IPv6 and not link-local; false: none. */
bool doctor_address(const char *device, struct in6_addr *);

/* host.c */
void doctor_tun(struct doctor *);
void doctor_capabilities(struct doctor *);
void doctor_xdp(struct doctor *);
void doctor_kvm(struct doctor *);
void doctor_socket_paths(struct doctor *);
void doctor_sockets(struct doctor *);
void doctor_labs(struct doctor *);

/* nft.c, registry.c, route.c */
void doctor_nftables(struct doctor *);
void doctor_registry(struct doctor *);
void doctor_rdma_cm(struct doctor *);

#endif /* ctl/doctor/checks.h */
