/* SPDX-License-Identifier: Apache-2.0
 *
 * Segmentation of super-frames.
 *
 * A kernel whose veth ends here hands over up to 64 KB of a TCP stream, or a train of
 * UDP datagrams, behind one copy of the headers; the device is to do the rest.  Each
 * segment has these headers with the lengths, sequence number and flags
 * that a kernel's own software segmentation would give it.
 */
#include "lib/port-gso.h"

#include <string.h>

#include "lib/icmp6.h"
#include "lib/inet-csum.h"

#define NH_TCP 6

struct tcp_hdr {
    be16_t sport;
    be16_t dport;
    be32_t seq;
    be32_t ack;
    uint8_t ofs; /* 4 bits: header length in 4-octet units. */
    uint8_t flags;
    be16_t window;
    be16_t csum;
    be16_t urgent;
};
static_assert(sizeof(struct tcp_hdr) == 20, "TCP header");

#define TCP_FIN 0x01
#define TCP_PSH 0x08
#define TCP_CWR 0x80

bool
gso_checksum(const struct virtio_net_hdr *vnet, uint8_t *frame, size_t len)
{
    size_t start = vnet->csum_start;
    be16_t csum;

    if (start > len || len - start < sizeof csum || vnet->csum_offset > len - start - sizeof csum) {
        return false;
    }
    csum = inet_csum(frame + start, len - start);
    if (!be16_get(csum)) {
        csum = be16_put(0xffff); /* UDP: 0 would mean no checksum; else both are equal. */
    }
    memcpy(frame + start + vnet->csum_offset, &csum, sizeof csum);
    return true;
}

void
gso_unmarked_checksum(uint8_t *frame, size_t len)
{
    const size_t l4_ofs = sizeof(struct eth_hdr) + sizeof(struct ip6_hdr_wire);
    const struct eth_hdr *eth = (const struct eth_hdr *) frame;
    const struct ip6_hdr_wire *ip = (const struct ip6_hdr_wire *) (eth + 1);
    be16_t field;

    if (len < l4_ofs || be16_get(eth->type) != ETH_TYPE_IP6
        || (ip->nh != IP6_NH_UDP && ip->nh != NH_TCP)) {
        return;
    }
    size_t l4_len = be16_get(ip->plen);
    size_t ofs =
        ip->nh == IP6_NH_UDP ? offsetof(struct udp_hdr, csum) : offsetof(struct tcp_hdr, csum);
    if (l4_len > len - l4_ofs || l4_len < ofs + sizeof field) {
        return;
    }
    memcpy(&field, frame + l4_ofs + ofs, sizeof field);
    if (be16_get(field) == inet_csum_ip6_pseudo(&ip->src, &ip->dst, ip->nh, l4_len)) {
        const struct virtio_net_hdr vnet = {.csum_start = (uint16_t) l4_ofs,
                                            .csum_offset = (uint16_t) ofs};
        gso_checksum(&vnet, frame, l4_ofs + l4_len);
    }
}

bool
gso_start(struct gso *gso, const struct virtio_net_hdr *vnet, size_t len, size_t max)
{
    const uint8_t type = vnet->gso_type & (uint8_t) ~VIRTIO_NET_HDR_GSO_ECN;
    const bool tcp = type == VIRTIO_NET_HDR_GSO_TCPV6;
    const size_t start = vnet->csum_start;
    const size_t l4_len = tcp ? sizeof(struct tcp_hdr) : sizeof(struct udp_hdr);
    const size_t csum_ofs = tcp ? offsetof(struct tcp_hdr, csum) : offsetof(struct udp_hdr, csum);
    const size_t ip_ofs = sizeof(struct eth_hdr);
    struct icmp6_upper upper;

    if ((!tcp && type != VIRTIO_NET_HDR_GSO_UDP_L4) || !vnet->gso_size
        || !(vnet->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) || vnet->csum_offset != csum_ofs
        || len > sizeof gso->frame || len < ip_ofs + IP6_HDR_LEN || gso->frame[ip_ofs] >> 4 != 6) {
        return false;
    }
    /* The checksum starts with the upper layer: if not that of the outermost packet, there are
     * lengths between that are not known here. */
    if (!icmp6_find_upper(gso->frame + ip_ofs, len - ip_ofs, &upper)
        || upper.proto != (tcp ? NH_TCP : IP6_NH_UDP) || ip_ofs + upper.ofs != start
        || len - start < l4_len) {
        return false;
    }
    const struct tcp_hdr *th = (const struct tcp_hdr *) (gso->frame + start);
    gso->hdr_len = start + (tcp ? (th->ofs >> 4) * 4u : l4_len);
    if (gso->hdr_len < start + l4_len || gso->hdr_len >= len
        || gso->hdr_len + vnet->gso_size > max) {
        return false;
    }
    gso->vnet = *vnet;
    gso->vnet.gso_type = type;
    gso->len = len;
    gso->ofs = gso->hdr_len;
    return true;
}

/* Changes a copy of the super-frame's upper-layer header to that of the segment with the payload
 * frame[ofs, end). */
static void
adapt(const struct gso *gso, size_t ofs, size_t end, uint8_t *l4, size_t l4_len)
{
    if (gso->vnet.gso_type == VIRTIO_NET_HDR_GSO_UDP_L4) {
        ((struct udp_hdr *) l4)->len = be16_put((uint16_t) l4_len);
        return;
    }
    struct tcp_hdr *th = (struct tcp_hdr *) l4;
    th->seq = be32_put(be32_get(th->seq) + (uint32_t) (ofs - gso->hdr_len));
    if (ofs != gso->hdr_len) {
        th->flags &= (uint8_t) ~TCP_CWR;
    }
    if (end != gso->len) {
        th->flags &= (uint8_t) ~(TCP_FIN | TCP_PSH);
    }
}

size_t
gso_next(struct gso *gso, uint8_t *out, size_t size)
{
    const size_t start = gso->vnet.csum_start, ofs = gso->ofs;

    if (!gso->len) {
        return 0;
    }
    size_t n = gso->len - ofs < gso->vnet.gso_size ? gso->len - ofs : gso->vnet.gso_size;
    size_t len = gso->hdr_len + n;
    if (len <= size) {
        memcpy(out, gso->frame, gso->hdr_len);
        memcpy(out + gso->hdr_len, gso->frame + ofs, n);
        ((struct ip6_hdr_wire *) (out + sizeof(struct eth_hdr)))->plen =
            be16_put((uint16_t) (len - sizeof(struct eth_hdr) - IP6_HDR_LEN));
        adapt(gso, ofs, ofs + n, out + start, len - start);

        /* The pseudo-header's sum counts the upper layer's length: RFC 1624. */
        be16_t *csum = (be16_t *) (out + start + gso->vnet.csum_offset);
        uint32_t sum =
            be16_get(*csum) + (uint32_t) (len - start) + (uint16_t) ~(uint16_t) (gso->len - start);
        sum = (sum & 0xffff) + (sum >> 16);
        *csum = be16_put((uint16_t) ((sum & 0xffff) + (sum >> 16)));
        gso_checksum(&gso->vnet, out, len);
    }
    gso->ofs += n;
    if (gso->ofs == gso->len) {
        gso->len = 0;
    }
    return len;
}
