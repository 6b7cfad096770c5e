#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/vectors/srh-scapy.pcap: SRv6 frames built by scapy, the outside
oracle of the SRH builder and of the parser.

The first four are what lib/srh.c must build, byte for byte, from the inputs
that tests/unit/test-srh.c repeats; the others exercise the parser only (see
tests/unit/test-parse.c).  Needs scapy 2.5; run from the repository's root.

And auth-scapy.pcap, what lib/auth.c must add to that (tests/unit/test-auth.c).
Its HMACs are made here with Python's hmac, from RFC 8754 2.1.2.1 and from the
definitions of MT-AUTH and of an epoch's key in docs/security.md.
"""
import hmac
import socket

from icrc import with_icrc
from scapy.contrib.roce import BTH
from scapy.fields import (ByteEnumField, ByteField, FieldLenField, IP6Field, PacketListField,
                          ThreeBytesField, X3BytesField)
from scapy.layers.inet import UDP
from scapy.layers.inet6 import (IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrHopByHop, IPv6ExtHdrRouting,
                                IPv6ExtHdrSegmentRouting, IPv6ExtHdrSegmentRoutingTLV, PadN)
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from scapy.utils import PcapWriter

SOURCE = 'fd00:1::100'
PROXY = 'fd00:ffff::1'
AGENT = '5f00:0:200::1'
REPLICATION_SID = '5f00:0:100:f000::'
TC = 2
FLOW_LABEL = 0x12345
DESIGNATED_QPN = 0x101


class Receiver(Packet):
    fields_desc = [IP6Field('addr', '::'), X3BytesField('qpn', 0), ByteField('rsv', 0)]

    def extract_padding(self, s):
        return b'', s


class MtTlv(IPv6ExtHdrSegmentRoutingTLV):
    name = 'End.MT TLV (draft-li-spring-rdma-multicast-over-srv6-00, 7.2)'
    fields_desc = [ByteEnumField('type', 124, {124: 'End.MT'}),
                   FieldLenField('len', None, count_of='receivers', fmt='B',
                                 adjust=lambda pkt, n: 22 + 20 * n),
                   ByteField('rsv_a', 0), ByteField('rsv_b', 0),
                   IP6Field('edge', '::'),
                   FieldLenField('n', None, count_of='receivers', fmt='B'),
                   ThreeBytesField('rsv2', 0),
                   PacketListField('receivers', [], Receiver)]


class GenericTlv(IPv6ExtHdrSegmentRoutingTLV):
    """The base class would be replaced by a registered one."""


def tlvs(copies):
    """copies: (edge number, count).  Receivers are numbered from 1 on."""
    result, k = [], 0
    for edge, count in copies:
        while count:
            n = min(count, 11)
            receivers = []
            for _ in range(n):
                k += 1
                receivers.append(Receiver(addr='fd00:1::%x' % k, qpn=0x11 + k))
            result.append(MtTlv(edge='5f00:0:%x::1' % edge, receivers=receivers))
            count -= n
    return result


def roce(payload):
    """A RoCEv2 SEND_ONLY."""
    packet = bytearray(bytes(IPv6(src=SOURCE, dst=PROXY, tc=TC, hlim=64) /
                             UDP(sport=0xc001, dport=4791, chksum=0) /
                             BTH(opcode=4, padcount=0, pkey=0xffff, dqpn=DESIGNATED_QPN, ackreq=1, psn=7, icrc=0) /
                             Raw(payload)))
    # scapy leaves room for the ICRC but, being told that it is 0, does not compute it.
    del packet[-4:]
    return with_icrc(packet)


def frame(*layers):
    packet = Ether(src='02:5f:02:00:00:01', dst='02:5f:01:00:00:01', type=0x86dd)
    for layer in layers:
        packet /= layer
    return packet


def outer(dst=REPLICATION_SID, **kw):
    return IPv6(src=AGENT, dst=dst, tc=TC, fl=FLOW_LABEL, hlim=64, **kw)


def built(copies):
    srh = IPv6ExtHdrSegmentRouting(nh=41, addresses=[PROXY], segleft=1, lastentry=0,
                                   tlv_objects=tlvs(copies))
    return frame(outer(), srh, Raw(roce(b'0123456789abcdef')))


KEYS = {0x01020304: bytes(range(32)), 7: b'0123456789abcdef', 0xffffffff: bytes(range(255, 191, -1))}


def digest_tlv(kind, flags, key, digest=bytes(32)):
    return bytes([kind, 38]) + flags.to_bytes(2, 'big') + key.to_bytes(4, 'big') + digest


def authenticated(copies, key, hmac_tlv, mt_auth, designated_qpn=DESIGNATED_QPN):
    """A frame with an HMAC TLV, an MT-AUTH TLV or both behind the padding of the End.MT TLVs."""
    def address(text):
        return socket.inet_pton(socket.AF_INET6, text)

    epoch = b'SRv6 multicast epoch' + address(PROXY) + designated_qpn.to_bytes(4, 'big')
    epoch_key = hmac.new(KEYS[key], epoch, 'sha256').digest()

    def digest(text):
        return hmac.new(epoch_key, text, 'sha256').digest()

    body = b''.join(bytes(t) for t in tlvs(copies))
    if len(body) % 8:
        body += bytes([4, 2, 0, 0])
    last_entry, flags, tag = b'\0', b'\0', b'\0\0'
    if hmac_tlv:
        text = (address(AGENT) + last_entry + flags + b'\x80\0' + key.to_bytes(4, 'big') +
                address(PROXY))
        body += digest_tlv(5, 0x8000, key, digest(text))
    if mt_auth:
        text = address(AGENT) + last_entry + flags + tag + address(PROXY) + body
        body += digest_tlv(125, 0, key, digest(text + digest_tlv(125, 0, key)))
    srh = IPv6ExtHdrSegmentRouting(nh=41, addresses=[PROXY], segleft=1, lastentry=0,
                                   tlv_objects=[Raw(body)])
    return frame(outer(), srh, Raw(roce(b'0123456789abcdef')))


def authenticated_frames():
    fig1 = [(0x103, 2), (0x104, 1), (0x105, 2)]
    for key in KEYS:
        for which in ((False, True), (True, False), (True, True)):
            yield authenticated(fig1, key, *which)
    yield authenticated([], 7, False, True)
    yield authenticated(fig1, 7, True, True, DESIGNATED_QPN + 1)


def frames():
    yield built([(0x103, 2), (0x104, 1), (0x105, 2)])
    yield built([(0x103, 8)])
    yield built([(0x103, 12), (0x104, 1)])
    yield built([])

    # Destination options, then all kinds of TLVs: Pad1, an unknown one of odd length, End.MT at an
    # odd offset, HMAC, MT-AUTH, PadN.
    srh = IPv6ExtHdrSegmentRouting(
        nh=41, addresses=[PROXY, AGENT], segleft=2, lastentry=1, tag=0x1234,
        tlv_objects=[Raw(b'\x00'), GenericTlv(type=200, len=3, value=b'abc')] + tlvs([(0x103, 1)]) +
                    [Raw(bytes([5, 38]) + bytes(38)), Raw(bytes([125, 38]) + bytes(38))])
    yield frame(outer(), IPv6ExtHdrDestOpt(options=[PadN(optdata=b'\x00' * 4)]), srh,
                Raw(roce(b'payload of 20 bytes.')))

    # Hop-by-hop options, a routing header of another type, an SRH without TLVs, UDP that is not RoCE.
    yield frame(outer(), IPv6ExtHdrHopByHop(options=[PadN(optdata=b'\x00' * 4)]),
                IPv6ExtHdrRouting(addresses=[AGENT], type=0),
                IPv6ExtHdrSegmentRouting(addresses=[PROXY, AGENT, SOURCE], segleft=1),
                UDP(sport=1, dport=9), Raw(b'discard'))


def main():
    for name, made in (('srh', frames()), ('auth', authenticated_frames())):
        with PcapWriter('tests/vectors/%s-scapy.pcap' % name, linktype=1) as out:
            for i, f in enumerate(made):
                f.time = i
                out.write(f)


main()
