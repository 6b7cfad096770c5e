#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/vectors/stamp-scapy.pcap: STAMP probes and answers along programs, built by scapy, the
outside oracle of lib/stamp.c.

tests/unit/test-stamp.c has the numbers, too.  Needs scapy 2.5; run from the repository's root.
"""
import struct

from scapy.contrib.stamp import (ErrorEstimate, STAMPSessionReflectorTestUnauthenticated,
                                 STAMPSessionSenderTestUnauthenticated, STAMPTestTLV)
from scapy.fields import RawVal
from scapy.layers.inet import UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrSegmentRouting
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.utils import PcapWriter, inet_pton

FILE = 'tests/vectors/stamp-scapy.pcap'
DPU1, DPU3 = '5f00:0:a1::1', '5f00:0:a3::1'
LOOP = ['5f00:0:100:500:100:a1::']
THERE = ['5f00:0:100:500:300:a3::']
BACK = ['5f00:0:300:500:100:a1::']
LONG_THERE = ['5f00:0:100:600:300:400:500:200', '5f00:0:300:a3::']
SPORT = 49862
ERROR = ErrorEstimate(S=0, Z=1, scale=22, multiplier=1)
SEC = 1764106200
# scapy's own field for the PTP format has only seconds.
SENT, CAME, ANSWERED = [RawVal(struct.pack('>II', SEC, nsec)) for nsec in (1000, 501000, 502000)]
COOKIE = bytes.fromhex('0123456789abcdef')
U = 0x80  # scapy counts the flags from the other end.


def tlv(kind, value, flags=U):
    return STAMPTestTLV(flags=flags, type=kind, len=len(value), value=value)


def cos(flags, dscp, dscp_seen, ecn_seen):
    return tlv(4, (dscp << 26 | dscp_seen << 20 | ecn_seen << 18).to_bytes(4, 'big'), flags)


def cookie(flags=U):
    return tlv(252, COOKIE, flags)


def return_path(flags=U):
    """A STAMP TLV is in it, whose flag nobody changes on the way."""
    segments = b''.join(inet_pton(10, segment) for segment in BACK)
    return tlv(10, bytes(tlv(4, segments)), flags)


def probe(seq, ssid, tlvs):
    return STAMPSessionSenderTestUnauthenticated(seq=seq, ts=SENT, err_estimate=ERROR, ssid=ssid, tlv_objects=tlvs)


def answer(seq, ssid, asked, hop_limit, tlvs):
    return STAMPSessionReflectorTestUnauthenticated(
        seq=seq, ts=ANSWERED, err_estimate=ERROR, ssid=ssid, ts_rx=CAME, seq_sender=asked, ts_sender=SENT,
        err_estimate_sender=ERROR, ttl_sender=hop_limit, tlv_objects=tlvs)


def frame(src, program, final, tc, label, sport, dport, stamp):
    # The checksum is that of the destination at which the program ends.
    udp = bytes(IPv6(src=src, dst=final) / UDP(sport=sport, dport=dport) / Raw(bytes(stamp)))[40:]
    packet = Ether(src='02:5f:00:a1:00:01', dst='02:5f:01:00:00:01', type=0x86dd) / IPv6(
        src=src, dst=program[0], tc=tc, fl=label, hlim=64)
    if len(program) > 1:
        packet /= IPv6ExtHdrSegmentRouting(nh=17, addresses=program[:0:-1], segleft=len(program) - 1,
                                           lastentry=len(program) - 2)
    else:
        packet.lastlayer().nh = 17
    return packet / Raw(udp)


def frames():
    yield frame(DPU1, LOOP, '5f00:0:a1::', 2, 7 << 8, SPORT, 862, probe(1, 7, [cookie()]))
    known = [cos(U, 26, 0, 0), cookie(), return_path()]
    yield frame(DPU1, THERE, '5f00:0:a3::', 26 << 2 | 2, 9 << 8, SPORT, 862, probe(0xfffffffe, 9, known))
    yield frame(DPU1, LONG_THERE, '5f00:0:a3::', 26 << 2 | 2, 9 << 8, SPORT, 862,
                probe(0xffffffff, 9, known + [tlv(1, bytes(1000))]))
    yield frame(DPU3, BACK, '5f00:0:a1::', 26 << 2 | 2, 9 << 8, 862, SPORT,
                answer(5, 9, 0xfffffffe, 61, [cos(0, 26, 10, 3), cookie(0), return_path(0)]))
    # A TLV that nobody knows, which is echoed with the flag U.
    other = tlv(200, b'what?')
    yield frame(DPU1, THERE, '5f00:0:a3::', 2, 9 << 8, SPORT, 862, probe(3, 9, [other, cookie(), return_path()]))
    yield frame(DPU3, BACK, '5f00:0:a1::', 2, 9 << 8, 862, SPORT,
                answer(6, 9, 3, 61, [other, cookie(0), return_path(0)]))


def main():
    with PcapWriter(FILE, linktype=1) as out:
        for i, f in enumerate(frames()):
            f.time = i
            out.write(f)


main()
