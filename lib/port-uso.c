/* SPDX-License-Identifier: Apache-2.0
 *
 * UDP segmentation offload: from frames to a super-frame.
 */
#include "lib/port-uso.h"

#include <string.h>

#include "lib/inet-csum.h"
#include "lib/wire.h"

/* What the frames of a super-frame have in common but for the lengths. */
struct headers {
    struct eth_hdr eth;
    struct ip6_hdr_wire ip;
    struct udp_hdr udp;
};
static_assert(sizeof(struct headers) == 62, "headers of a RoCEv2 packet");

#define UDP_OFS     (sizeof(struct headers) - sizeof(struct udp_hdr))
/* Longest that an IPv6 packet's payload can be, the UDP header included. */
#define UDP_LEN_MAX UINT16_MAX

/* NULL: they are not all in the packet's head. */
static const struct headers *
headers(const struct packet *p)
{
    return p->len >= sizeof(struct headers) ? (const struct headers *) p->data : NULL;
}

static size_t
payload_len(const struct packet *p)
{
    return packet_size(p) - sizeof(struct headers);
}

/* Do the headers say how long the packet is, and is there a payload? */
static bool
lengths_ok(const struct headers *h, const struct packet *p)
{
    size_t len = sizeof h->udp + payload_len(p);

    return len > sizeof h->udp && be16_get(h->ip.plen) == len && be16_get(h->udp.len) == len;
}

/* Can a super-frame begin with this packet? */
static bool
begins(const struct packet *p)
{
    const struct headers *h = headers(p);

    return h && be16_get(h->eth.type) == ETH_TYPE_IP6 && be32_get(h->ip.vtf) >> 28 == 6
           && h->ip.nh == IP6_NH_UDP && be16_get(h->udp.dport) == UDP_PORT_ROCE
           && !be16_get(h->udp.csum) && lengths_ok(h, p);
}

/* Can it go on with this packet? */
static bool
goes_on(const struct packet *first, const struct packet *p)
{
    const struct headers *h = headers(p);

    if (!h || !lengths_ok(h, p) || payload_len(p) > payload_len(first)) {
        return false;
    }
    struct headers same = *h;
    same.ip.plen = headers(first)->ip.plen;
    same.udp.len = headers(first)->udp.len;
    return !memcmp(&same, first->data, sizeof same);
}

size_t
uso_count(struct packet *const *frames, size_t n)
{
    if (n < 2 || !begins(frames[0])) {
        return 1;
    }
    const size_t segment = payload_len(frames[0]);
    const size_t n_fit = (UDP_LEN_MAX - sizeof(struct udp_hdr)) / segment;
    const size_t limit = n_fit < USO_MAX_FRAMES ? n_fit : USO_MAX_FRAMES;
    size_t i = 1;

    while (i < n && i < limit && payload_len(frames[i - 1]) == segment
           && goes_on(frames[0], frames[i])) {
        i++;
    }
    return i;
}

/* The sum of the pseudo-header, to which the kernel adds the rest. */
static be16_t
pseudo_sum(const struct ip6_hdr_wire *ip, size_t len)
{
    const struct {
        struct in6_addr src, dst;
        be32_t len;
        uint8_t zero[3];
        uint8_t nh;
    } pseudo = {ip->src, ip->dst, be32_put((uint32_t) len), {0}, IP6_NH_UDP};

    return be16_put((uint16_t) ~be16_get(inet_csum(&pseudo, sizeof pseudo)));
}

size_t
uso_join(struct packet *const *frames, size_t n, struct virtio_net_hdr *vnet, uint8_t out[GSO_MAX])
{
    size_t len = packet_flatten(frames[0], out, GSO_MAX);

    *vnet = (struct virtio_net_hdr){
        .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
        .gso_type = VIRTIO_NET_HDR_GSO_UDP_L4,
        .hdr_len = sizeof(struct headers),
        .gso_size = (uint16_t) payload_len(frames[0]),
        .csum_start = UDP_OFS,
        .csum_offset = offsetof(struct udp_hdr, csum),
    };
    for (size_t i = 1; i < n; i++) {
        len += packet_flatten_from(frames[i], sizeof(struct headers), out + len, GSO_MAX - len);
    }
    struct headers *h = (struct headers *) out;
    h->ip.plen = h->udp.len = be16_put((uint16_t) (len - UDP_OFS));
    h->udp.csum = pseudo_sum(&h->ip, len - UDP_OFS);
    return len;
}
