#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/vectors/programs-scapy.pcap: one RoCEv2 packet in the headers of several programs
(H.Encaps.Red), built by scapy, the outside oracle of lib/program.c and of swedge's uN.

tests/unit/test-usid.c has the programs, too.  Needs scapy 2.5; run from the repository's root.
"""
from icrc import with_icrc
from scapy.contrib.roce import BTH
from scapy.layers.inet import UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrSegmentRouting
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.utils import PcapWriter

HEADEND = '5f00:0:a1::1'
# The first two are those of draft-filsfils-srv6ops-srv6-ai-backend section 7.2.
PROGRAMS = [['5f00:0:100:500:300::'],
            ['5f00:0:200:600:400::'],
            ['5f00:0:101:201:301:202:102:e003'],
            ['5f00:0:100:600:300:400:500:200', '5f00:0:600:300::'],
            ['5f00:0:1:2:3:4:5:6', '5f00:0:7:8:9:a:b:c', '5f00:0:d:e:f:10:11:12', '5f00:0:13::']]
ECT_0 = 2


def roce():
    """A SEND_ONLY of four bytes."""
    packet = (IPv6(src='fd00:a::1', dst='fd00:a::3', tc=ECT_0, hlim=63) /
              UDP(sport=0xc000, dport=4791, chksum=0) /
              BTH(opcode=4, padcount=0, pkey=0xffff, dqpn=0x11, ackreq=1, psn=1, icrc=0) /
              Raw(bytes.fromhex('deadbeef')))
    # scapy leaves room for the ICRC but, being told that it is 0, does not compute it.
    return with_icrc(bytes(packet)[:-4])


def encapsulated(program):
    packet = (Ether(src='02:5f:00:a1:00:01', dst='02:5f:01:00:00:01', type=0x86dd) /
              IPv6(src=HEADEND, dst=program[0], tc=ECT_0, fl=0x12345, hlim=64))
    if len(program) > 1:
        packet /= IPv6ExtHdrSegmentRouting(nh=41, addresses=program[:0:-1], segleft=len(program) - 1,
                                           lastentry=len(program) - 2)
    else:
        packet.lastlayer().nh = 41
    return packet / Raw(roce())


def main():
    with PcapWriter('tests/vectors/programs-scapy.pcap', linktype=1) as out:
        for i, program in enumerate(PROGRAMS):
            frame = encapsulated(program)
            frame.time = i
            out.write(frame)


main()
