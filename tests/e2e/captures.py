# SPDX-License-Identifier: Apache-2.0
"""Packets of captures, for checks that are independent of the forwarders.

Nothing here shares code with them: packets are taken apart, and rebuilt, from the
documents (RFC 8754, RFC 2473, draft-li section 7.2, the InfiniBand CRC).  What no packet
may be like raises Wrong, a bad ICRC too: a packet that was parsed is sound.
"""
import ipaddress
import os
import struct
import sys
import zlib

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))

from proof import where                                # noqa: E402, F401 pylint: disable=unused-import

ETH, IP6, UDP, BTH, RETH, AETH, ICRC = 14, 40, 8, 12, 16, 4, 4
NH_HOP_BY_HOP, NH_UDP, NH_IPV6, NH_ROUTING, NH_ICMPV6 = 0, 17, 41, 43, 58
ROCE_PORT = 4791
OP_WRITE_FIRST, OP_WRITE_ONLY, OP_WRITE_ONLY_IMM = 0x06, 0x0a, 0x0b
OP_ACK = 0x11
WRITES_WITH_RETH = (OP_WRITE_FIRST, OP_WRITE_ONLY, OP_WRITE_ONLY_IMM)
TLV_MT, TLV_PADN = 124, 4
PSN_MASK = 0xffffff


class Wrong(Exception):
    """A packet is not what it must be."""


def check(condition, message, *args):
    if not condition:
        raise Wrong(message % args if args else message)


def packed(address):
    return ipaddress.IPv6Address(address).packed


def text(address):
    return str(ipaddress.IPv6Address(address))


def u24(b):
    return int.from_bytes(b, 'big')


def distance(a, b):
    """PSN a - b, circular."""
    d = (a - b) & PSN_MASK
    return d - (PSN_MASK + 1) if d >> 23 else d


def read_pcap(path):
    """Yields (time in ns, Ethernet frame)."""
    with open(path, 'rb') as f:
        data = f.read()
    for order in '<>':
        magic = struct.unpack_from(order + 'I', data)[0]
        if magic in (0xa1b2c3d4, 0xa1b23c4d):
            break
    else:
        raise Wrong('%s: not a capture' % path)
    check(struct.unpack_from(order + 'I', data, 20)[0] == 1, '%s: link type', path)
    unit = 1000 if magic == 0xa1b2c3d4 else 1
    ofs = 24
    while ofs < len(data):
        sec, frac, caplen, length = struct.unpack_from(order + 'IIII', data, ofs)
        check(caplen == length, '%s: frame cut short', path)
        yield sec * 10**9 + frac * unit, data[ofs + 16:ofs + 16 + caplen]
        ofs += 16 + caplen


def icrc(ip, udp=IP6):
    """ICRC of an IPv6 RoCE packet without its last four bytes, as on the wire.  'udp': where its UDP
    header is."""
    masked = bytearray(ip)
    masked[0] |= 0x0f
    masked[1:4] = b'\xff\xff\xff'        # traffic class, flow label
    masked[7] = 0xff                     # hop limit
    masked[udp + 6:udp + 8] = b'\xff\xff'  # UDP checksum
    masked[udp + UDP + 4] = 0xff         # FECN, BECN, reserved
    return struct.pack('<I', zlib.crc32(b'\xff' * 8 + masked))


class Ip6:
    """An IPv6 packet, from its header to its end."""

    def __init__(self, ip):
        check(len(ip) >= IP6, 'IPv6 packet of %d bytes', len(ip))
        vtf, length = struct.unpack_from('>IH', ip)
        check(vtf >> 28 == 6 and length == len(ip) - IP6, 'IPv6 version or payload length')
        self.bytes = ip
        self.tc, self.flow_label = vtf >> 20 & 0xff, vtf & 0xfffff
        self.nh, self.hlim = ip[6], ip[7]
        self.src, self.dst = ip[8:24], ip[24:40]
        self.frame = None

    def same_but_hop_limit(self, other):
        return self.bytes[:7] + self.bytes[8:] == other.bytes[:7] + other.bytes[8:]


class Roce(Ip6):
    """A RoCE packet inside one IPv6 header."""

    def __init__(self, ip):
        super().__init__(ip)
        check(len(ip) >= IP6 + UDP + BTH + ICRC, 'RoCE packet of %d bytes', len(ip))
        self.sport, dport, udp_len, self.csum = struct.unpack_from('>HHHH', ip, IP6)
        check(dport == ROCE_PORT and udp_len == len(ip) - IP6, 'UDP port or length')
        bth = ip[IP6 + UDP:]
        self.opcode, self.dest_qp, self.psn = bth[0], u24(bth[5:8]), u24(bth[9:12])
        self.ack_req = bool(bth[8] & 0x80)
        self.reth = self.aeth = None
        rest = bth[BTH:]
        if self.opcode in WRITES_WITH_RETH:
            check(len(rest) >= RETH + ICRC, 'RETH cut short')
            self.reth = struct.unpack_from('>QII', rest)  # VA, rkey, DMA length
            rest = rest[RETH:]
        elif self.opcode == OP_ACK:
            check(len(rest) == AETH + ICRC, 'ACK of %d bytes', len(ip))
            self.aeth = rest[0], u24(rest[1:4])           # syndrome, MSN
            rest = rest[AETH:]
        self.payload = rest[:-ICRC]
        check(ip[-ICRC:] == icrc(ip[:-ICRC]), 'ICRC of opcode %#x PSN %#x', self.opcode, self.psn)


class Tunnelled(Ip6):
    """IPv6 in IPv6 (RFC 2473)."""

    def __init__(self, ip):
        super().__init__(ip)
        self.inner = Roce(ip[IP6:])


class Encapsulated(Ip6):
    """Outer IPv6 header and SRH around a RoCE packet."""

    def __init__(self, ip):
        super().__init__(ip)
        self.srh = ip[IP6:IP6 + 8 + ip[IP6 + 1] * 8]
        check(self.srh[0] == NH_IPV6, 'SRH next header %d', self.srh[0])
        self.overhead = IP6 + len(self.srh)
        self.inner = Roce(ip[self.overhead:])

    def receivers(self):
        """What the End.MT TLVs say, in their order: [(edge, [(receiver, QPN)])]."""
        found = []
        at = 8 + 16 * (self.srh[4] + 1)
        while at < len(self.srh):
            end = at + 2 + self.srh[at + 1]
            if self.srh[at] == TLV_MT:
                edge, n = self.srh[at + 4:at + 20], self.srh[at + 20]
                entries = [self.srh[i:i + 20] for i in range(at + 24, end, 20)]
                check(len(entries) == n, 'TLV says %d receivers and has %d', n, len(entries))
                found.append((edge, [(e[:16], u24(e[16:19])) for e in entries]))
            at = end
        return found


def srh(proxy, receivers):
    """The SRH that names these (see Encapsulated.receivers): RFC 8754 with a reduced list whose
    one segment is the Proxy, draft-li 7.2, PadN."""
    tlvs = b''
    for edge, entries in receivers:
        tlvs += bytes([TLV_MT, 22 + 20 * len(entries), 0, 0]) + edge
        tlvs += bytes([len(entries), 0, 0, 0])
        for address, qpn in entries:
            tlvs += address + qpn.to_bytes(3, 'big') + b'\0'
    rest = -(8 + 16 + len(tlvs)) % 8
    if rest:
        tlvs += bytes([TLV_PADN, rest - 2]) + bytes(rest - 2)
    length = 8 + 16 + len(tlvs)
    return bytes([NH_IPV6, length // 8 - 1, 4, 1, 0, 0, 0, 0]) + proxy + tlvs


def copy_for(inner, group, receiver):
    """The packet that a receiver is to get, rebuilt from the source's (its hop limit aside).
    'group' and 'receiver' are as in meta.json."""
    copy = bytearray(inner.bytes[:-ICRC])
    copy[8:24], copy[24:40] = packed(group['proxy']), packed(receiver['address'])
    copy[IP6 + 6:IP6 + 8] = b'\0\0'
    bth = IP6 + UDP
    copy[bth + 5:bth + 8] = receiver['qpn'].to_bytes(3, 'big')
    if inner.reth:
        va, rkey, _ = inner.reth
        check(rkey == group['designated_rkey'], 'inner rkey %#x', rkey)
        struct.pack_into('>QI', copy, bth + BTH, va + int(str(receiver['va']), 0),
                         receiver['rkey'])
    return bytes(copy) + icrc(copy)


def parse(frame):
    """The packet in an Ethernet frame; None for what is not RoCE."""
    if frame[12:14] != b'\x86\xdd':
        return None
    length = IP6 + struct.unpack_from('>H', frame, ETH + 4)[0]
    check(len(frame) == ETH + length, 'frame of %d bytes around a packet of %d', len(frame), length)
    ip = frame[ETH:]
    nh = ip[6]
    if nh in (NH_ICMPV6, NH_HOP_BY_HOP) or (
            nh == NH_UDP and struct.unpack_from('>H', ip, IP6 + 2)[0] != ROCE_PORT):
        return None
    kinds = {NH_ROUTING: Encapsulated, NH_IPV6: Tunnelled, NH_UDP: Roce}
    check(nh in kinds, 'next header %d', nh)
    packet = kinds[nh](ip)
    packet.frame = frame
    return packet


def parse_capture(path):
    """Returns [(time, packet)]; neighbour discovery and the like is left out."""
    packets = []
    for time, frame in read_pcap(path):
        try:
            packet = parse(frame)
        except (Wrong, struct.error, IndexError) as e:
            raise Wrong('%s: %s' % (os.path.basename(path), e)) from None
        if packet:
            packets.append((time, packet))
    return packets
