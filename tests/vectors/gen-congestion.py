#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/vectors/congestion-scapy.pcap: a CNP, Fast CNPs and IOAM traces built by scapy, the
outside oracle of lib/cnp.c, lib/fast-cnp.c and lib/ioam.c.

Then reads it again, with scapy and with tshark, and fails if one of them takes a frame for
something else.  Needs scapy 2.5 and tshark; run from the repository's root.
"""
import struct
import subprocess
import sys

from icrc import with_icrc
from scapy.contrib.roce import BTH, CNPPadding
from scapy.layers.inet import UDP
from scapy.layers.inet6 import (HBHOptUnknown, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrHopByHop,
                                IPv6ExtHdrSegmentRouting, PadN)
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.utils import PcapWriter, inet_pton, rdpcap

FILE = 'tests/vectors/congestion-scapy.pcap'
HOST = 'fd00:1::100'
PROXY = 'fd00:ffff::7'
NODE = '5f00:0:105::1'
AGENT = '5f00:0:200::1'
HOST_QPN, DESIGNATED_QPN = 0x11, 0xabc
CNP, FAST_CNP, IOAM = 0x81, 0x9e, 0x31
FAST_CNP_DATA = [16, 8 + 80 + 16, 8 + 60 + 16]

# Hop_Lim, node_id, seconds, microseconds, bytes sent, bytes queued: by agent, n6, n5.
ELEMENTS = [(64, 0x200, 0x68400000, 250000, 1234567, 0),
            (63, 0x106, 0x68400000, 250420, 0xa1b2c3, 1102),
            (62, 0x105, 0x68400000, 250910, 0xfe0001, 52896)]
NODE_FIELDS = ['ipv6.opt.ioam.trace.node.' + name
               for name in ('hlim', 'id', 'tss', 'tsf', 'nsdata', 'qdepth')]


def frame(*layers):
    packet = Ether(src='02:5f:01:05:00:01', dst='02:00:00:00:01:00', type=0x86dd)
    for layer in layers:
        packet /= layer
    return packet


def cnp(src, qpn):
    """Without Ethernet header."""
    packet = bytearray(bytes(IPv6(src=src, dst=HOST, tc=0xc0, hlim=64) /
                             UDP(sport=0xc123, dport=4791, chksum=0) /
                             BTH(opcode=CNP, becn=1, pkey=0xffff, dqpn=qpn, psn=0, icrc=0) / CNPPadding()))
    del packet[-4:]  # scapy leaves room for the ICRC.
    return with_icrc(packet)


def fast_cnp(trace):
    data = trace + inet_pton(10, PROXY)
    options = [HBHOptUnknown(otype=FAST_CNP, optlen=len(data), optdata=data)]
    if len(data) % 8 == 0:
        options.insert(0, PadN(optdata=bytes(2)))
    rest = cnp(NODE, DESIGNATED_QPN)[40:]
    return frame(IPv6(src=NODE, dst=HOST, tc=0xc0, hlim=64),
                 IPv6ExtHdrDestOpt(nh=17, autopad=0, options=options), Raw(rest))


def trace(n_slots, n_filled):
    """From Namespace-ID on."""
    words = 5 * (n_slots - n_filled)
    filled = [struct.pack('>B3s4I', hop, node.to_bytes(3, 'big'), *more)
              for hop, node, *more in reversed(ELEMENTS[:n_filled])]
    return struct.pack('>HHI', 1, 5 << 11 | words, 0xb60000 << 8) + bytes(4 * words) + b''.join(filled)


def traced(n_filled):
    data = bytes([0, 0]) + trace(4, n_filled)
    hbh = IPv6ExtHdrHopByHop(nh=43, autopad=0, options=[
        PadN(optdata=b''), HBHOptUnknown(otype=IOAM, optlen=len(data), optdata=data)])
    return frame(IPv6(src=AGENT, dst='5f00:0:106:f000::', hlim=64 - n_filled), hbh,
                 IPv6ExtHdrSegmentRouting(addresses=[PROXY], segleft=1, lastentry=0),
                 UDP(sport=1, dport=9), Raw(b'discard'))


def frames():
    yield frame(Raw(cnp(PROXY, HOST_QPN)))
    yield fast_cnp(b'')
    yield fast_cnp(trace(4, 3))
    yield fast_cnp(trace(3, 3))
    for n_filled in range(4):
        yield traced(n_filled)


def expect(number, what, got, wanted):
    if got != wanted:
        sys.exit('%s: frame %d: %s: %s, not %s' % (FILE, number, what, got, wanted))


def check_scapy():
    for number, packet in enumerate(rdpcap(FILE)[:4], 1):
        bth = packet[BTH]
        source, qpn = (PROXY, HOST_QPN) if number == 1 else (NODE, DESIGNATED_QPN)
        expect(number, 'addresses', (packet[IPv6].src, packet[IPv6].dst), (source, HOST))
        expect(number, 'BTH', (bth.opcode, bth.becn, bth.fecn, bth.dqpn), (CNP, 1, 0, qpn))
        expect(number, 'padding', CNPPadding in packet, True)
        if number > 1:
            option = packet[IPv6ExtHdrDestOpt].options[-1]
            expect(number, 'option', (option.otype, option.optlen), (FAST_CNP, FAST_CNP_DATA[number - 2]))
            expect(number, 'original', option.optdata[-16:], inet_pton(10, PROXY))


def fields(*names):
    names = [word for name in names for word in ('-e', name)]
    out = subprocess.run(['tshark', '-r', FILE, '-T', 'fields', '-E', 'separator=;', *names],
                         check=True, capture_output=True, text=True).stdout
    return [line.split(';') for line in out.splitlines()]


def check_tshark():
    seen = fields('ipv6.src', 'ipv6.dst', 'ipv6.opt.type', 'ipv6.opt.length', 'infiniband.bth.opcode',
                  'infiniband.bth.destqp', '_ws.malformed', *NODE_FIELDS)
    expect(0, 'frames', len(seen), 8)
    for number, (src, dst, kinds, lengths, opcode, qpn, malformed, *nodes) in enumerate(seen, 1):
        expect(number, 'malformed', malformed, '')
        lengths = lengths.split(',')[-1]
        if number == 1:
            expect(number, 'CNP', (src, dst, int(opcode), int(qpn, 16)), (PROXY, HOST, CNP, HOST_QPN))
        elif number <= 4:
            expect(number, 'CNP', (src, dst, int(opcode), int(qpn, 16)), (NODE, HOST, CNP, DESIGNATED_QPN))
            expect(number, 'option', (int(kinds.split(',')[-1], 0), int(lengths)),
                   (FAST_CNP, FAST_CNP_DATA[number - 2]))
        else:
            expect(number, 'option', (int(kinds.split(',')[-1], 0), int(lengths)), (IOAM, 2 + 8 + 80))
            values = [[int(value, 0) for value in cell.split(',') if value] for cell in nodes]
            expect(number, 'elements', list(zip(*values)), ELEMENTS[:number - 5][::-1])


def main():
    with PcapWriter(FILE, linktype=1) as out:
        for i, f in enumerate(frames()):
            f.time = i
            out.write(f)
    check_scapy()
    check_tshark()


main()
