/* SPDX-License-Identifier: Apache-2.0
 *
 * Attaches to taps.
 */
#ifndef LIB_TAP_QUEUE_H
#define LIB_TAP_QUEUE_H 1

#include <stdbool.h>

/* A queue of a persistent multi-queue tap. */
struct tap_queue {
    int fd;        /* does not block. */
    bool vnet_hdr; /* a struct virtio_net_hdr is in front of each frame, both ways. */
    bool uso;      /* the kernel cuts super-frames of UDP datagrams; only with 'vnet_hdr'. */
};

/* Attaches to the tap 'netdev' of the caller's namespace.  All queues of a tap have headers or none
 * has: the first one that is attached decides.  'offload': decides for headers if the kernel
 * has USO.  Without it a queue may have headers all the same, and no USO.
 *
 * Returns 0 or errno; then *why is a static string that says what could not be done. */
int tap_queue_open(struct tap_queue *, const char *netdev, bool offload, const char **why);

#endif /* lib/tap-queue.h */
