#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks captures of one packet's walk through Figure 1, and that docs/packet-walk.md shows
what they show.

usage: packet-walk.py [--write] FOLDER

FOLDER holds meta.json and a capture of every port, <node>-<peer>.pcap, both directions.
Packets are rebuilt from the documents (see captures.py).  With --write the blocks of
docs/packet-walk.md are made anew from the captures.
"""
import difflib
import json
import os
import struct
import sys

from captures import (OP_ACK, OP_WRITE_ONLY, Encapsulated, Roce, Tunnelled, Wrong, check,
                      copy_for, packed, parse_capture, srh, text, where)
from walktext import Names, blocks, comparable, replace

DOC = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../docs/packet-walk.md')

# Figure 1.  Of the two nodes above n2 the tree takes n4 (docs/draft-notes.md, H38).
CHILDREN = {'sa': ['n6'], 'n6': ['n4', 'n5'], 'n4': ['n1', 'n2'], 'n5': ['n3'],
            'n1': ['r1', 'r2'], 'n2': ['r3'], 'n3': ['r4', 'r5']}
PARENT = {'sa': 'h0', **{child: node for node, children in CHILDREN.items() for child in children}}
HOSTS = ['h0', 'r1', 'r2', 'r3', 'r4', 'r5']
EDGES = ['n1', 'n2', 'n3']
DOWN = [('h0', 'sa')] + [(node, child) for node in ('sa', 'n6', 'n4', 'n5', *EDGES)
                         for child in CHILDREN[node]]
UP = [(node, PARENT[node]) for node in (*HOSTS[1:], *EDGES, 'n4', 'n5', 'n6', 'sa')]

PAYLOAD = 1000
ORIGIN_HOP_LIMIT = 64
SYNDROME_ACK = 0x1f
UP_TO_DATE = 'docs/packet-walk.md shows what was captured'


class Walk:
    """The packet of each link and direction."""

    def __init__(self, folder):
        with open(os.path.join(folder, 'meta.json')) as f:
            self.meta = json.load(f)
        self.group = self.meta['group']
        self.proxy = packed(self.group['proxy'])
        self.receiver = {r['host']: r for r in self.meta['receivers']}
        self.host = {name: packed(r['address']) for name, r in self.receiver.items()}
        self.host['h0'] = packed(self.meta['source']['address'])
        self.seen = {}    # at node 'at', from 'src' to 'dst': [(time, packet)]
        for node, info in self.meta['nodes'].items():
            for peer, mac in info['macs'].items():
                mac = bytes.fromhex(mac.replace(':', ''))
                for time, packet in parse_capture(
                        os.path.join(folder, '%s-%s.pcap' % (node, peer))):
                    link = (node, peer) if packet.frame[6:12] == mac else (peer, node)
                    self.seen.setdefault((node, *link), []).append((time, packet))

    def at(self, node, link):
        found = self.seen.get((node, *link), [])
        check(len(found) == 1, '%d packets from %s to %s, seen at %s', len(found), *link, node)
        return found[0]

    def packet(self, src, dst, kind=None):
        ends = [self.at(node, (src, dst))[1] for node in (src, dst) if node not in HOSTS]
        check(len({p.frame for p in ends}) == 1, '%s to %s: the ends differ', src, dst)
        check(kind is None or isinstance(ends[0], kind), '%s to %s: %s', src, dst, type(ends[0]))
        return ends[0]

    def sid(self, node, function):
        return packed('5f00:0:%x:%x::' % (self.meta['nodes'][node]['id'], function))

    def address(self, node):
        return packed('5f00:0:%x::1' % self.meta['nodes'][node]['id'])

    def replication_function(self):
        """f000 + the group's Replication-ID, as in the first outer destination."""
        function, = struct.unpack_from('>H', self.packet('sa', 'n6').dst, 6)
        check(function & 0xf000 == 0xf000, 'function %#x is no replication SID', function)
        return function


#
# The checks.  Every packet's ICRC was checked when it was parsed.
#
def check_links(walk):
    """Every link of the tree has one packet down and one up, all others none: N2 got it from N4"""
    links = {(src, dst) for _, src, dst in walk.seen}
    check(links == {*DOWN, *UP}, 'links with packets: %s', sorted(links))
    for link in DOWN + UP:
        walk.packet(*link)


# Proves MT-5.2-1.
def check_source(walk):
    """h0 sends an ordinary RDMA WRITE to the Proxy's Designated QPN, into the group's region"""
    p = walk.packet('h0', 'sa', Roce)
    check((p.src, p.dst) == (walk.host['h0'], walk.proxy), 'addresses')
    check(p.dest_qp == walk.group['designated_qpn'], 'DestQP %#x', p.dest_qp)
    check(p.psn == walk.group['start_psn'] and p.ack_req, 'PSN %d, AckReq %d', p.psn, p.ack_req)
    check(p.opcode == OP_WRITE_ONLY and len(p.payload) == PAYLOAD, 'opcode %#x, %d bytes',
          p.opcode, len(p.payload))
    check(p.reth == (0, walk.group['designated_rkey'], PAYLOAD), 'RETH %s', p.reth)


# Proves MT-5.2-2, MT-7.1-1.
def check_encapsulation(walk):
    """sa adds outer header and SRH: agent to n6's replication SID, hop limit 64, SRH byte-exact"""
    sent, p = walk.packet('h0', 'sa'), walk.packet('sa', 'n6', Encapsulated)
    check(p.src == walk.address('sa'), 'outer SA %s', text(p.src))
    check(p.dst == walk.sid('n6', walk.replication_function()), 'outer DA %s', text(p.dst))
    check(p.hlim == ORIGIN_HOP_LIMIT and p.flow_label, 'hop limit %d, flow label %#x', p.hlim,
          p.flow_label)
    check(p.tc & 3 == sent.tc & 3, 'ECN %d around %d', p.tc & 3, sent.tc & 3)
    named = [(walk.address(edge), [(walk.host[r], walk.receiver[r]['qpn'])
                                   for r in CHILDREN[edge]]) for edge in EDGES]
    check(sorted((e, sorted(r)) for e, r in p.receivers()) == named, 'TLVs %s', p.receivers())
    check(p.srh == srh(walk.proxy, p.receivers()), 'SRH %s', p.srh.hex())
    check(p.inner.same_but_hop_limit(sent) and p.inner.hlim == sent.hlim - 1, 'inner packet')


# Proves MT-6-R9524-3, MT-6-R9524-4.
def check_replicas(walk):
    """Replicas: DA the next node's SID, hop limit one less a node, all else byte-identical"""
    for node, child in DOWN:
        if node in ('n6', 'n4', 'n5'):
            came, p = walk.packet(PARENT[node], node), walk.packet(node, child, Encapsulated)
            function = 0xe001 if child in EDGES else walk.replication_function()
            check(p.dst == walk.sid(child, function), '%s to %s: DA %s', node, child, text(p.dst))
            check(p.hlim == came.hlim - 1, '%s to %s: hop limit %d', node, child, p.hlim)
            check(p.bytes[:7] == came.bytes[:7] and p.src == came.src, '%s: outer header', child)
            check(p.bytes[40:] == came.bytes[40:], '%s to %s: SRH or inner packet', node, child)


# Proves MT-5.2-7, MT-5.2-8, MT-5.2-9.
def check_copies(walk):
    """Receivers get five different packets: SA, DA, DestQP, rkey, VA and ICRC their own"""
    for host, receiver in walk.receiver.items():
        inner = walk.packet(PARENT[PARENT[host]], PARENT[host]).inner
        p, expected = walk.packet(PARENT[host], host, Roce), copy_for(inner, walk.group, receiver)
        check(p.bytes[:7] + p.bytes[8:] == expected[:7] + expected[8:], '%s: %s, should be %s',
              host, p.bytes.hex(), expected.hex())
        check(p.hlim == inner.hlim - 1, '%s: hop limit %d', host, p.hlim)
    different = {walk.packet(PARENT[host], host).bytes for host in walk.receiver}
    check(len(different) == 5, '%d different packets', len(different))


def check_response(walk, p, dest_qp):
    check(p.opcode == OP_ACK and p.psn == walk.group['start_psn'], 'opcode %#x PSN %d', p.opcode,
          p.psn)
    check(p.dest_qp == dest_qp, 'DestQP %#x', p.dest_qp)
    check(p.aeth == (SYNDROME_ACK, 1), 'AETH %s', p.aeth)
    check(p.hlim == ORIGIN_HOP_LIMIT and p.csum == 0, 'hop limit %d, checksum %#x', p.hlim, p.csum)


def check_acks(walk):
    """Each receiver answers to the Proxy's Designated QPN"""
    for host in walk.receiver:
        p = walk.packet(host, PARENT[host], Roce)
        check((p.src, p.dst) == (walk.host[host], walk.proxy), '%s: addresses', host)
        check_response(walk, p, walk.group['designated_qpn'])


# Proves MT-5.3-1.
def check_between_nodes(walk):
    """Each node below the root sends one response, in IPv6, to its parent's response SID"""
    ports = set()
    for node in (*EDGES, 'n4', 'n5'):
        p = walk.packet(node, PARENT[node], Tunnelled)
        check((p.src, p.dst) == (walk.address(node), walk.sid(PARENT[node], 0xe002)),
              '%s: %s to %s', node, text(p.src), text(p.dst))
        check(p.hlim == ORIGIN_HOP_LIMIT, '%s: hop limit %d', node, p.hlim)
        check((p.inner.src, p.inner.dst) == (walk.proxy, walk.host['h0']), '%s: inside', node)
        check_response(walk, p.inner, walk.group['designated_qpn'])
        ports.add(p.inner.sport)
    check(len(ports) == 1, 'source ports %s', ports)


# Proves MT-5.3.1-5.
def check_answer(walk):
    """n6 sends one plain ACK, as if the Proxy's: to the source's own QPN; sa only forwards it"""
    p, last = walk.packet('n6', 'sa', Roce), walk.packet('sa', 'h0', Roce)
    check((p.src, p.dst) == (walk.proxy, walk.host['h0']), 'addresses')
    check_response(walk, p, walk.meta['source']['qpn'])
    check(last.same_but_hop_limit(p) and last.hlim == p.hlim - 1, 'at h0: hop limit %d', last.hlim)


def check_order(walk):
    """No node answers before the last of its branches has: 5, 3, 2, 1 responses"""
    for node, children in CHILDREN.items():
        heard = [walk.at(node, (child, node))[0] for child in children]
        check(walk.at(node, (node, PARENT[node]))[0] >= max(heard), '%s answered too early', node)
    levels = [[link for link in UP if link[0] in level]
              for level in (HOSTS, EDGES, ('n4', 'n5'), ('n6',))]
    check([len(level) for level in levels] == [5, 3, 2, 1], 'responses by level: %s', levels)


CHECKS = (check_links, check_source, check_encapsulation, check_replicas, check_copies, check_acks,
          check_between_nodes, check_answer, check_order)


def compare(walk, write):
    """Returns None, or how the document differs from what was captured."""
    made = blocks(walk, DOWN, UP, Names(walk))
    with open(DOC) as f:
        before = f.read()
    after = replace(before, made)
    if write:
        with open(DOC, 'w') as f:
            f.write(after)
        return None
    return '\n'.join(difflib.unified_diff(comparable(before), comparable(after), 'document',
                                          'captures', lineterm='')) or None


def main(args):
    write = args[:1] == ['--write']
    folders = args[write:]
    if len(folders) != 1:
        sys.exit(__doc__)
    passed = failed = 0

    def report(what, why):
        nonlocal passed, failed
        passed += not why
        failed += bool(why)
        print('FAIL  packet walk: %s: %s' % (what, why) if why else 'ok    packet walk: ' + what)

    try:
        walk = Walk(folders[0])
        report('ICRC of all packets, on %d ports' % len(os.listdir(folders[0])), None)
        for function in CHECKS:
            try:
                function(walk)
                report('%s %s' % (function.__doc__, where(function)), None)
            except Wrong as e:
                report('%s %s' % (function.__doc__, where(function)), str(e))
        if not failed:
            report(UP_TO_DATE, compare(walk, write))
    except (Wrong, OSError, KeyError, ValueError, struct.error) as e:
        report('captures', '%s: %s' % (type(e).__name__, e))
    print('%d passed, %d failed' % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
