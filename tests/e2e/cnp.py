# SPDX-License-Identifier: Apache-2.0
"""CNPs, Fast CNPs and IOAM traces, made and taken apart by code that shares nothing with ours.

From the documents: draft-xiao-rtgwg-rocev2-fast-cnp section 4, RFC 8200 section 4.2 (options),
RFC 9486 section 3 and RFC 9197 section 4.4 (IOAM), the InfiniBand CRC.  What must not be raises
Wrong.
"""
import struct

from captures import BTH, ETH, IP6, NH_HOP_BY_HOP, NH_IPV6, NH_ROUTING, NH_UDP, UDP, Ip6, check, icrc, packed, text, u24

NH_DEST_OPTIONS = 60
OP_CNP = 0x81
CNP_TC = 0xc0
RESERVED = 16
OPT_FAST_CNP, OPT_IOAM = 0x9e, 0x31
TRACE_HDR = 8
TRACE_TYPE = 0xb60000    # hop limit and node, seconds, microseconds, bytes sent, bytes waiting.
OVERFLOW = 8


#
# What is made.
#

def ip6(src, dst, nh, payload, tc=CNP_TC):
    return struct.pack('>IHBB', 6 << 28 | tc << 20, len(payload), nh, 64) + packed(src) + packed(dst) + payload


def cnp(src, dst, dest_qp, sport=0xc123):
    """A standard CNP, from its IPv6 header on."""
    bth = bytes([OP_CNP, 0, 0xff, 0xff, 0x40]) + dest_qp.to_bytes(3, 'big') + bytes(4)
    udp = struct.pack('>HHHH', sport, 4791, UDP + BTH + RESERVED + 4, 0)
    covered = ip6(src, dst, NH_UDP, udp + bth + bytes(RESERVED + 4))[:-4]
    return covered + icrc(covered)


def dest_options(*options):
    """A Destination Options header in front of UDP with these (type, data), padding first."""
    raw = b''.join(bytes([kind, len(data)]) + data for kind, data in options)
    pad = -(len(raw) + 2) % 8
    raw = (b'\0' if pad == 1 else bytes([1, pad - 2]) + bytes(pad - 2) if pad else b'') + raw
    return bytes([NH_UDP, (len(raw) + 2) // 8 - 1]) + raw


def fast_cnp(node, sender, original, dest_qp, trace=b'', form='A'):
    """A Fast CNP, from its IPv6 header on.  'form' is what its ICRC covers: A the packet without the
    option, B the IPv6 header as it is sent and no option, C everything; '': nothing is right."""
    plain = cnp(node, sender, dest_qp)
    ext = dest_options((OPT_FAST_CNP, trace + packed(original)))
    whole = ip6(node, sender, NH_DEST_OPTIONS, ext + plain[IP6:])
    crc = {'A': plain[-4:], 'B': icrc(whole[:IP6] + plain[IP6:-4]),
           'C': icrc(whole[:-4], IP6 + len(ext)), '': bytes(4)}[form]
    return whole[:-4] + crc


#
# What was captured.
#

def option_list(ext):
    """[(type, data)] of an options header; padding has to be zeros."""
    found, at = [], 2
    while at < len(ext):
        if ext[at] == 0:
            at += 1
            continue
        check(at + 2 <= len(ext) and at + 2 + ext[at + 1] <= len(ext), 'option %#x ends behind its header', ext[at])
        data = ext[at + 2:at + 2 + ext[at + 1]]
        if ext[at] == 1:
            check(not any(data) and len(data) <= 5, 'padding %s', data.hex())
        else:
            found.append((at, ext[at], data))
        at += 2 + len(data)
    return found


class Trace:
    """IOAM pre-allocated trace data, from Namespace-ID on.  elements: newest first, as bytes."""

    def __init__(self, data):
        check(len(data) >= TRACE_HDR and len(data) % 4 == 0, 'trace of %d bytes', len(data))
        self.namespace, lens, self.type = *struct.unpack_from('>HH', data), u24(data[4:7])
        node_len, self.flags, remaining = lens >> 11, lens >> 7 & 15, lens & 127
        check(data[7] == 0, 'Reserved is %d', data[7])
        filled = data[TRACE_HDR + 4 * remaining:]
        check(4 * remaining <= len(data) - TRACE_HDR and node_len and len(filled) % (4 * node_len) == 0,
              'NodeLen %d, RemainingLen %d, %d bytes', node_len, remaining, len(data))
        check(not any(data[TRACE_HDR:TRACE_HDR + 4 * remaining]), 'empty slots are not empty')
        self.free = remaining // node_len
        self.elements = [filled[i:i + 4 * node_len] for i in range(0, len(filled), 4 * node_len)]

    def fields(self):
        """[(hop limit, node id, seconds, microseconds, bytes sent, bytes waiting)], newest first."""
        check(self.type == TRACE_TYPE and self.namespace in (0, 1), 'trace of type %#x', self.type)
        return [(e[0], u24(e[1:4]), *struct.unpack('>4I', e[4:])) for e in self.elements]


class FastCnp(Ip6):
    """A Fast CNP that draft-xiao section 4 allows, whose ICRC is of form A."""

    def __init__(self, ip):
        super().__init__(ip)
        check(self.nh == NH_DEST_OPTIONS, 'next header %d', self.nh)
        end = IP6 + 8 * (ip[IP6 + 1] + 1)
        check(ip[IP6] == NH_UDP, 'next header %d behind the options', ip[IP6])
        (at, kind, data), = option_list(ip[IP6:end])
        check(kind == OPT_FAST_CNP and (len(data) == 16 or len(data) >= 24), 'option %#x of %d bytes', kind, len(data))
        self.option = 1 if len(data) == 16 else 2
        check((at + 2) % (8 if self.option == 1 else 4) == 0, 'option data at %d', at + 2)
        self.original = data[-16:]
        self.trace = Trace(data[:-16]) if self.option == 2 else None
        plain = ip6(text(self.src), text(self.dst), NH_UDP, ip[end:], tc=self.tc)
        udp = struct.unpack_from('>HHHH', plain, IP6)
        check(udp[1:] == (4791, UDP + BTH + RESERVED + 4, 0), 'UDP header %r', udp)
        bth = plain[IP6 + UDP:IP6 + UDP + BTH]
        check(bth[:5] == bytes([OP_CNP, 0, 0xff, 0xff, 0x40]) and not any(bth[8:]), 'BTH %s', bth.hex())
        check(not any(plain[IP6 + UDP + BTH:-4]), 'reserved bytes that are not zero')
        check(plain[-4:] == icrc(plain[:-4]), 'ICRC %s, should be %s', plain[-4:].hex(), icrc(plain[:-4]).hex())
        check(self.tc == CNP_TC and self.hlim == 64 or self.hlim < 64, 'traffic class %#x', self.tc)
        self.dest_qp = u24(bth[5:8])


def headers(ip):
    """[(next header, offset)] of an IPv6 packet, through tunnels, the first at 0."""
    found, nh, at = [(NH_IPV6, 0)], ip[6], IP6
    while True:
        found.append((nh, at))
        if nh in (NH_HOP_BY_HOP, NH_DEST_OPTIONS, NH_ROUTING):
            nh, at = ip[at], at + 8 * (ip[at + 1] + 1)
        elif nh == NH_IPV6:
            nh, at = ip[at + 6], at + IP6
        else:
            return found


def trace_of(ip):
    """The IOAM trace in a packet's Hop-by-Hop header; None: it has none."""
    if ip[6] != NH_HOP_BY_HOP:
        return None
    ext = ip[IP6:IP6 + 8 * (ip[IP6 + 1] + 1)]
    for at, kind, data in option_list(ext):
        if kind == OPT_IOAM:
            check(at % 4 == 0 and data[:2] == b'\0\0', 'IOAM option at %d: %s', at, data[:2].hex())
            return Trace(data[2:])
    return None


def fast_cnps(frames):
    """The Fast CNPs among Ethernet frames."""
    found = []
    for frame in frames:
        ip = frame[ETH:]
        if frame[12:14] == b'\x86\xdd' and NH_DEST_OPTIONS in [nh for nh, _ in headers(ip)]:
            found.append(FastCnp(ip))
    return found


def ecn_fields(ip):
    """Of all IPv6 headers, the outermost first."""
    return tuple(ip[at + 1] >> 4 & 3 for nh, at in headers(ip) if nh == NH_IPV6)


def bth_at(ip):
    """Offset of a RoCE packet's BTH; None: it is none."""
    nh, at = headers(ip)[-1]
    return at + UDP if nh == NH_UDP and ip[at + 2:at + 4] == b'\x12\xb7' else None
