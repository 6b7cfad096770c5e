#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks captures of every hop of a write, byte by byte.

usage: check-captures.py FOLDER...

A FOLDER holds meta.json and a capture per port: <node>-<peer>.pcap, both
directions.  Nothing here shares code with the forwarders: packets are rebuilt
from the documents (RFC 8754, draft-li section 7.2, the InfiniBand CRC) and
compared whole.
"""
import collections
import ipaddress
import json
import os
import struct
import sys
import zlib

ETH, IP6, UDP, BTH, ICRC = 14, 40, 8, 12, 4
NH_UDP, NH_IPV6, NH_ROUTING, NH_ICMPV6 = 17, 41, 43, 58
ROCE_PORT = 4791
OP_WRITE_FIRST, OP_WRITE_ONLY, OP_WRITE_ONLY_IMM = 0x06, 0x0a, 0x0b
OP_ACK = 0x11
WRITES_WITH_RETH = (OP_WRITE_FIRST, OP_WRITE_ONLY, OP_WRITE_ONLY_IMM)
TLV_MT, TLV_PADN = 124, 4
PSN_MASK = 0xffffff


class Wrong(Exception):
    pass


def check(condition, message, *args):
    if not condition:
        raise Wrong(message % args if args else message)


def packed(address):
    return ipaddress.IPv6Address(address).packed


def u24(b):
    return int.from_bytes(b, 'big')


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


def icrc(ip):
    """ICRC of an IPv6 RoCE packet without its last four bytes, as on the wire."""
    masked = bytearray(ip)
    masked[0] |= 0x0f
    masked[1:4] = b'\xff\xff\xff'        # traffic class, flow label
    masked[7] = 0xff                     # hop limit
    masked[IP6 + 6:IP6 + 8] = b'\xff\xff'  # UDP checksum
    masked[IP6 + UDP + 4] = 0xff         # FECN, BECN, reserved
    return struct.pack('<I', zlib.crc32(b'\xff' * 8 + masked))


class Roce:
    """A RoCE packet inside one IPv6 header."""

    def __init__(self, ip):
        check(len(ip) >= IP6 + UDP + BTH + ICRC, 'RoCE packet of %d bytes', len(ip))
        self.bytes = ip
        self.src, self.dst, self.hlim = ip[8:24], ip[24:40], ip[7]
        udp_len, self.csum = struct.unpack_from('>HH', ip, IP6 + 4)
        check(struct.unpack_from('>H', ip, 4)[0] == udp_len == len(ip) - IP6, 'lengths disagree')
        bth = ip[IP6 + UDP:]
        self.opcode, self.dest_qp, self.psn = bth[0], u24(bth[5:8]), u24(bth[9:12])
        check(ip[-ICRC:] == icrc(ip[:-ICRC]), 'ICRC of opcode %#x PSN %#x', self.opcode, self.psn)

    def same_but_hop_limit(self, other):
        return self.bytes[:7] + self.bytes[8:] == other.bytes[:7] + other.bytes[8:]


class Encapsulated:
    """Outer IPv6 header and SRH around a RoCE packet."""

    def __init__(self, ip):
        self.outer, self.hlim = ip[:IP6], ip[7]
        self.srh_len = 8 + ip[IP6 + 1] * 8
        check(struct.unpack_from('>H', ip, 4)[0] == len(ip) - IP6, 'outer payload length')
        self.srh = ip[IP6:IP6 + self.srh_len]
        check(self.srh[0] == NH_IPV6, 'SRH next header %d', self.srh[0])
        self.inner = Roce(ip[IP6 + self.srh_len:])
        self.overhead = len(ip) - len(self.inner.bytes)
        self.bytes = ip


def parse_capture(path):
    """Returns [(time, Roce or Encapsulated)]; neighbour discovery and the like is left out."""
    packets = []
    for time, frame in read_pcap(path):
        if frame[12:14] != b'\x86\xdd':
            continue
        ip = frame[ETH:ETH + IP6 + struct.unpack_from('>H', frame, ETH + 4)[0]]
        check(len(frame) == ETH + len(ip), '%s: frame longer than its packet', path)
        nh = ip[6]
        if nh == NH_ROUTING:
            packets.append((time, Encapsulated(ip)))
        elif nh == NH_UDP and struct.unpack_from('>H', ip, IP6 + 2)[0] == ROCE_PORT:
            packets.append((time, Roce(ip)))
        else:
            check(nh in (NH_ICMPV6, 0, NH_UDP), '%s: next header %d', path, nh)
    return packets


class Run:
    """One folder: what was sent where, by direction."""

    def __init__(self, folder):
        with open(os.path.join(folder, 'meta.json')) as f:
            self.meta = json.load(f)
        m = self.meta
        self.group = m['group']
        self.proxy, self.source = packed(self.group['proxy']), packed(m['source']['address'])
        self.agent = packed('5f00:0:%x::1' % m['agent_id'])
        self.edge = packed('5f00:0:%x::1' % m['edge_id'])
        self.edge_sid = packed('5f00:0:%x:e001::' % m['edge_id'])
        self.receivers = {packed(r['address']): r for r in m['receivers']}
        self.at = {name[:-5]: parse_capture(os.path.join(folder, name))
                   for name in os.listdir(folder) if name.endswith('.pcap')}
        self.from_host = [(t, p) for t, p in self.at['sa-h0'] if p.src == self.source]
        self.to_host = [(t, p) for t, p in self.at['sa-h0'] if p.src != self.source]
        self.down = [(t, p) for t, p in self.at['n1-sa'] if isinstance(p, Encapsulated)]
        self.up = [(t, p) for t, p in self.at['n1-sa'] if isinstance(p, Roce)]

    def port_of(self, receiver):
        return self.at['n1-' + receiver['host']]

    def expected_srh(self, order):
        """draft-li 7.2 in a reduced SRH (RFC 8754) for receivers in this order."""
        tlv = (bytes([TLV_MT, 22 + 20 * len(order), 0, 0]) + self.edge
               + bytes([len(order), 0, 0, 0]))
        for address in order:
            tlv += address + self.receivers[address]['qpn'].to_bytes(3, 'big') + b'\0'
        rest = -(8 + 16 + len(tlv)) % 8
        if rest:
            tlv += bytes([TLV_PADN, rest - 2]) + bytes(rest - 2)
        length = 8 + 16 + len(tlv)
        return bytes([NH_IPV6, length // 8 - 1, 4, 1, 0, 0, 0, 0]) + self.proxy + tlv


def distance(a, b):
    d = (a - b) & PSN_MASK
    return d - (PSN_MASK + 1) if d >> 23 else d


#
# The checks, each on a whole run.  Every packet's ICRC was checked when it was parsed.
#
def check_all_hops_seen(run):
    """Every hop has packets, and every PSN of the write left the source"""
    for name, packets in run.at.items():
        check(packets, '%s is empty', name)
    psns = {p.psn for _, p in run.from_host}
    start = run.group['start_psn']
    check(psns == {start + i & PSN_MASK for i in range(len(psns))}, 'PSNs %s', sorted(psns))


def check_source_packets(run):
    """Source to Proxy: ordinary RoCE towards the Designated QPN"""
    for _, p in run.from_host:
        check(p.dst == run.proxy, 'to %s', ipaddress.IPv6Address(p.dst))
        check(p.dest_qp == run.group['designated_qpn'], 'DestQP %#x', p.dest_qp)


def check_link_carries_same(run):
    """What leaves one end of the uplink arrives at the other"""
    ends = [collections.Counter(p.bytes for _, p in run.at[name]) for name in ('sa-n1', 'n1-sa')]
    check(ends[0] == ends[1], 'the ends differ in %d packets',
          sum(((ends[0] - ends[1]) + (ends[1] - ends[0])).values()))


def check_outer_header(run):
    """Outer header: SA the agent, DA the edge's End.MT SID, inner ECN, one flow label"""
    for _, p in run.down:
        check(p.outer[8:24] == run.agent, 'outer SA')
        check(p.outer[24:40] == run.edge_sid, 'outer DA %s', ipaddress.IPv6Address(p.outer[24:40]))
        check(p.outer[6] == NH_ROUTING, 'next header')
        vtf, inner = (struct.unpack('>I', b[:4])[0] for b in (p.outer, p.inner.bytes))
        check(vtf >> 20 & 3 == inner >> 20 & 3, 'ECN %d of inner %d', vtf >> 20 & 3, inner >> 20 & 3)
        check(vtf & 0xfffff, 'flow label 0')
        check(p.hlim == 64, 'outer hop limit %d', p.hlim)
    check(len({p.outer[1:4] for _, p in run.down}) == 1, 'flow labels differ')


def check_srh(run):
    """SRH byte-exact: reduced list with the Proxy, one End.MT TLV, PadN only"""
    size = 8 + 16 + 24 + 20 * len(run.receivers)
    size += -size % 8
    for _, p in run.down:
        entries = p.srh[48:48 + 20 * len(run.receivers)]
        order = [entries[i:i + 16] for i in range(0, len(entries), 20)]
        check(sorted(order) == sorted(run.receivers), 'receivers in the TLV')
        check(p.srh == run.expected_srh(order), 'SRH is %s, should be %s', p.srh.hex(),
              run.expected_srh(order).hex())
        check(p.overhead == IP6 + size, 'overhead %d, should be %d', p.overhead, IP6 + size)


def check_inner_unchanged(run):
    """Encapsulation leaves the packet alone but for the hop limit"""
    sent = {}
    for _, p in run.from_host:
        sent.setdefault(p.psn, []).append(p)
    for _, e in run.down:
        p = e.inner
        check(any(p.same_but_hop_limit(o) and p.hlim == o.hlim - 1 for o in sent.get(p.psn, [])),
              'PSN %#x is not what the source sent', p.psn)


def expected_copy(run, inner, address):
    """The receiver's packet, rebuilt from the inner one (hop limit aside)."""
    receiver = run.receivers[address]
    copy = bytearray(inner.bytes[:-ICRC])
    copy[8:24], copy[24:40] = run.proxy, address
    copy[IP6 + 6:IP6 + 8] = b'\0\0'
    bth = IP6 + UDP
    copy[bth + 5:bth + 8] = receiver['qpn'].to_bytes(3, 'big')
    if inner.opcode in WRITES_WITH_RETH:
        va, rkey = struct.unpack_from('>QI', copy, bth + BTH)
        check(rkey == run.group['designated_rkey'], 'inner rkey %#x', rkey)
        struct.pack_into('>QI', copy, bth + BTH, va + int(str(receiver['va']), 0),
                         receiver['rkey'])
    return bytes(copy) + icrc(copy)


def check_copies(run):
    """Copies: SA, DA, DestQP, rkey, VA and ICRC rewritten, nothing else"""
    for address, receiver in run.receivers.items():
        inner = collections.Counter()
        for _, e in run.down:
            copy = expected_copy(run, e.inner, address)
            inner[copy[:7] + copy[8:]] += 1
        got = [p for _, p in run.port_of(receiver) if p.dst == address]
        check(all(p.hlim < 64 for p in got), 'hop limit')
        copies = collections.Counter(p.bytes[:7] + p.bytes[8:] for p in got)
        check(copies == inner, '%s: %d unexpected copies, %d missing', receiver['host'],
              sum((copies - inner).values()), sum((inner - copies).values()))


def check_responses(run):
    """Receivers' responses: from their address to the Proxy's Designated QPN"""
    for address, receiver in run.receivers.items():
        up = [p for _, p in run.port_of(receiver) if p.dst != address]
        check(up, 'none from %s', receiver['host'])
        for p in up:
            check(p.src == address and p.dst == run.proxy, '%s: addresses', receiver['host'])
            check(p.dest_qp == run.group['designated_qpn'], '%s: DestQP', receiver['host'])
            check(p.opcode == OP_ACK, '%s: opcode %#x', receiver['host'], p.opcode)


def check_merged(run):
    """One merged stream to the source: SA Proxy, DestQP the source's, up to the last PSN"""
    for where in (run.up, run.to_host):
        last = None
        for _, p in where:
            check(p.src == run.proxy and p.dst == run.source, 'addresses')
            check(p.dest_qp == run.meta['source']['qpn'], 'DestQP %#x', p.dest_qp)
            check(p.opcode == OP_ACK, 'opcode %#x', p.opcode)
            check(p.csum == 0, 'UDP checksum %#x', p.csum)
            if p.bytes[IP6 + UDP + BTH] >> 5 == 0:
                check(last is None or distance(p.psn, last) >= 0, 'ACK goes back to %#x', p.psn)
                last = p.psn
        check(last == run.from_host[-1][1].psn, 'last ACK %r', last)
    for (_, a), (_, b) in zip(run.up, run.to_host):
        check(a.same_but_hop_limit(b), 'changed on its way through the agent')


def check_never_early(run):
    """No merged ACK is earlier than any receiver's own"""
    events = [(t, 1, None, p) for t, p in run.up]
    for address, receiver in run.receivers.items():
        events += [(t, 0, address, p) for t, p in run.port_of(receiver) if p.src == address]
    una = {address: run.group['start_psn'] for address in run.receivers}
    for _, _, address, p in sorted(events, key=lambda e: e[:2]):
        nak = p.bytes[IP6 + UDP + BTH] >> 5 != 0
        confirmed = p.psn + (0 if nak else 1) & PSN_MASK
        if address is None:
            for other, value in una.items():
                check(distance(confirmed, value) <= 0, 'PSN %#x acknowledged before %s', p.psn,
                      run.receivers[other]['host'])
        elif distance(confirmed, una[address]) > 0:
            una[address] = confirmed


CHECKS = (check_all_hops_seen, check_source_packets, check_link_carries_same, check_outer_header,
          check_srh, check_inner_unchanged, check_copies, check_responses, check_merged,
          check_never_early)


def main(folders):
    passed = failed = 0
    for folder in folders:
        name = os.path.basename(os.path.normpath(folder))
        try:
            run = Run(folder)
        except (Wrong, OSError, KeyError, ValueError, struct.error) as e:
            print('FAIL  %s: %s' % (name, e))
            failed += 1
            continue
        n = sum(len(packets) for packets in run.at.values())
        print('ok    %s: ICRC of %d RoCE packets on %d ports' % (name, n, len(run.at)))
        passed += 1
        for function in CHECKS:
            what = function.__doc__.strip()
            try:
                function(run)
                print('ok    %s: %s' % (name, what))
                passed += 1
            except Wrong as e:
                print('FAIL  %s: %s: %s' % (name, what, e))
                failed += 1
    print('%d passed, %d failed' % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
