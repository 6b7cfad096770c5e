/* SPDX-License-Identifier: Apache-2.0
 *
 * Joins frames into a super-frame, which a kernel cuts again (UDP segmentation offload).
 *
 * Frames that can be joined are RoCEv2 packets of one flow: Ethernet, IPv6 and UDP headers are the
 * same but for the lengths, there is no IPv6 extension header, and there is no UDP checksum.
 * A kernel gives each of them one.  So it would hide what is wrong with a checksum that was there
 * before; the ICRC, which does not cover it, stays as it was.
 * Pure; lib/port-gso.h does the reverse.
 */
#ifndef LIB_PORT_USO_H
#define LIB_PORT_USO_H 1

#include <stddef.h>
#include <stdint.h>

#include "lib/packet.h"
#include "lib/port-gso.h"

#define USO_MAX_FRAMES 64 /* kernels have no less as their own limit (UDP_MAX_SEGMENTS). */

/* How many of frames[0, n), counted from the first, can be one super-frame: all have the first
 * one's length, but the last may be shorter.  1: the first one leaves alone.  n > 0. */
size_t uso_count(struct packet *const *frames, size_t n);

/* Writes the super-frame of frames[0, n) to 'out', for n > 1 as uso_count() returned it.  Returns
 * its length.  *vnet, in the machine's byte order, says how it is cut. */
size_t
uso_join(struct packet *const *frames, size_t n, struct virtio_net_hdr *vnet, uint8_t out[GSO_MAX]);

#endif /* lib/port-uso.h */
