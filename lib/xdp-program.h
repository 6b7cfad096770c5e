/* SPDX-License-Identifier: Apache-2.0
 *
 * The XDP program of a port: which frames of a device the port takes, and which the kernel keeps.
 */
#ifndef LIB_XDP_PROGRAM_H
#define LIB_XDP_PROGRAM_H 1

#include <stdbool.h>

struct xdp_program_options {
    /* Of a veth, else 0.  It must be in the calling thread's network namespace.  The program is
     * then for this device and native mode only. */
    int veth;
    bool fragments; /* it is shown frames in several buffers. */
};

/* Loads a program that gives untagged IPv6 frames, of which some may have tags without a VLAN, to
 * the socket of the XSKMAP 'map_fd' whose index is the receive queue's.  All others, and those of
 * queues that are not in the map, stay the kernel's.
 * Returns a descriptor, or -1 and errno; *why is then a static string. */
int xdp_program_load(int map_fd, const struct xdp_program_options *, const char **why);

#endif /* lib/xdp-program.h */
