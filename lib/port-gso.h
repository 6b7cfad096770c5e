/* SPDX-License-Identifier: Apache-2.0
 *
 * Cuts what a kernel has left to segmentation offload (TCP and UDP over IPv6) into
 * the frames that it stands for.
 */
#ifndef LIB_PORT_GSO_H
#define LIB_PORT_GSO_H 1

#include <linux/virtio_net.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5 /* since Linux 6.2. */
#endif

#define GSO_MAX (14 + 40 + 65535) /* longest IPv6 packet that is no jumbogram, with Ethernet. */

/* A super-frame that is being cut. */
struct gso {
    size_t len;     /* of the super-frame; 0: there is none. */
    size_t ofs;     /* payload of the next segment. */
    size_t hdr_len; /* from Ethernet to TCP or UDP. */
    struct virtio_net_hdr vnet;
    uint8_t frame[GSO_MAX];
};

/* Starts with the super-frame gso->frame[0, len).  False if it cannot be cut: headers in
 * headers, not IPv6, or segments longer than 'max'. */
bool gso_start(struct gso *, const struct virtio_net_hdr *, size_t len, size_t max);

/* Writes the next segment, with checksum, if it fits 'size'.  Returns its length, 0 if there is
 * none. */
size_t gso_next(struct gso *, uint8_t *out, size_t size);

/* Completes the checksum over frame[csum_start, len) that the sender left to the device.  The field
 * holds the sum of the pseudo-header.  False if the frame does not contain what the header says. */
bool gso_checksum(const struct virtio_net_hdr *, uint8_t *frame, size_t len);

/* The same where nothing but the field itself says that it is so: completes the checksum of UDP or
 * TCP directly in IPv6 if the field holds the sum of the pseudo-header.  A complete and right
 * checksum that is the same number stays what it is. */
void gso_unmarked_checksum(uint8_t *frame, size_t len);

#endif /* lib/port-gso.h */
