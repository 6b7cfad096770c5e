# SPDX-License-Identifier: Apache-2.0
"""Packets of a group as bytes: RoCEv2, and the source agent's IPv6 and SRH around it.

Written from the specifications (IBTA annexes on RoCEv2, RFC 8754, draft-li 7.2, docs/security.md)
and not from lib/, so that what nodes make of these packets says something about nodes.
"""
import hashlib
import hmac
import ipaddress
import struct
import zlib

ROCE_PORT = 4791
ETH_LEN, IP6_LEN, UDP_LEN, BTH_LEN, ICRC_LEN = 14, 40, 8, 12, 4
NH_UDP, NH_IPV6, NH_ROUTING = 17, 41, 43
WRITE_MIDDLE, WRITE_ONLY, ACK = 0x07, 0x0a, 0x11
TLV_PADN, TLV_MT, TLV_MT_AUTH = 4, 124, 125
RECEIVERS_IN_TLV = 11
ACK_UNLIMITED = 0x1f


def address(text):
    return ipaddress.IPv6Address(text).packed


def mac(text):
    return bytes.fromhex(text.replace(':', ''))


def eth(dst, src):
    return mac(dst) + mac(src) + b'\x86\xdd'


def ip6(src, dst, next_header, payload_len, traffic_class=2, flow_label=0x12345):
    return struct.pack('>IHBB', 6 << 28 | traffic_class << 20 | flow_label, payload_len, next_header,
                       64) + address(src) + address(dst)


def icrc(packet):
    """Of an IPv6 packet without its last 4 bytes; as the bytes that belong there."""
    masked = bytearray(packet)
    masked[0] |= 0x0f                           # traffic class, flow label
    masked[1:4] = b'\xff' * 3
    masked[7] = 0xff                            # hop limit
    masked[IP6_LEN + 6:IP6_LEN + 8] = b'\xff' * 2   # UDP checksum
    masked[IP6_LEN + UDP_LEN + 4] = 0xff        # FECN, BECN
    return struct.pack('<I', zlib.crc32(b'\xff' * 8 + bytes(masked)))


def roce(src, dst, opcode, qpn, psn, rest, ack_req=False):
    """An IPv6 packet; 'rest' is what follows the BTH, the ICRC excluded."""
    pad = -len(rest) % 4
    udp_len = UDP_LEN + BTH_LEN + len(rest) + pad + ICRC_LEN
    packet = (ip6(src, dst, NH_UDP, udp_len) + struct.pack('>HHHH', 0xc123, ROCE_PORT, udp_len, 0)
              + struct.pack('>BBHII', opcode, 0x40 | pad << 4, 0xffff, qpn,
                            (0x80000000 if ack_req else 0) | psn)
              + rest + bytes(pad))
    return packet + icrc(packet)


def write(src, dst, qpn, rkey, payload, psn=0, middle=False):
    """An RDMA WRITE of one packet to the region's begin, or one in the middle of a long one."""
    data = bytes(i * 7 & 0xff for i in range(payload))
    if middle:
        return roce(src, dst, WRITE_MIDDLE, qpn, psn, data)
    return roce(src, dst, WRITE_ONLY, qpn, psn, struct.pack('>QII', 0, rkey, payload) + data, True)


def ack(src, dst, qpn, psn=0):
    return roce(src, dst, ACK, qpn, psn, struct.pack('>I', ACK_UNLIMITED << 24))


def mt_tlvs(receivers):
    """'receivers': (edge, address, QPN), those of one edge side by side."""
    tlvs = b''
    while receivers:
        edge = receivers[0][0]
        n = 1
        while n < min(len(receivers), RECEIVERS_IN_TLV) and receivers[n][0] == edge:
            n += 1
        tlvs += struct.pack('>BBH', TLV_MT, 22 + 20 * n, 0) + address(edge) + struct.pack('>I', n << 24)
        for _, receiver, qpn in receivers[:n]:
            tlvs += address(receiver) + struct.pack('>I', qpn << 8)
        receivers = receivers[n:]
    return tlvs


def pad(tlvs):
    """Up to a multiple of 8."""
    n = -len(tlvs) % 8
    return tlvs + (struct.pack('>BB', TLV_PADN, n - 2) + bytes(n - 2) if n else b'')


class Key:
    """A key for MT-AUTH, of one group epoch."""

    def __init__(self, number, secret, proxy, qpn):
        self.number = number
        self.secret = hmac.new(bytes.fromhex(secret), b'SRv6 multicast epoch' + address(proxy)
                               + struct.pack('>I', qpn), hashlib.sha256).digest()


def srh(src, proxy, receivers, key=None):
    """Segment List [Proxy], one segment left."""
    tlvs = pad(mt_tlvs(receivers))
    head = struct.pack('>BBH', TLV_MT_AUTH, 38, 0) + struct.pack('>I', key.number) if key else b''
    length = 8 + 16 + len(tlvs) + (len(head) + 32 if key else 0)
    fixed = struct.pack('>BBBBBBH', NH_IPV6, length // 8 - 1, 4, 1, 0, 0, 0)

    def around(digest):
        return fixed + address(proxy) + tlvs + head + digest
    if not key:
        return around(b'')
    # All from Last Entry on, with zeros for the digest.
    covered = address(src) + around(bytes(32))[4:]
    return around(hmac.new(key.secret, covered, hashlib.sha256).digest())


def tunnelled(src, sid, header, inner):
    """In IPv6, 'header' (an SRH, or nothing) between."""
    return ip6(src, sid, NH_ROUTING if header else NH_IPV6, len(header) + len(inner)) + header + inner


class Frame:
    """For the flooder: 'packet' is IPv6 whose innermost packet of 'inner_len' bytes is RoCE."""

    def __init__(self, netdev, dst, src, packet, inner_len):
        self.netdev = netdev
        self.bytes = eth(dst, src) + packet
        self.bth_ofs = len(self.bytes) - inner_len + IP6_LEN + UDP_LEN

    def line(self):
        return '%s %d %s\n' % (self.netdev, self.bth_ofs, self.bytes.hex())
