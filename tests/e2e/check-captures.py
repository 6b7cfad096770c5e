#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks captures of every hop of a write, byte by byte.

usage: check-captures.py FOLDER...

A FOLDER holds meta.json and a capture per port: <node>-<peer>.pcap, both
directions.  Packets are rebuilt from the documents (see captures.py) and compared
whole.
"""
import collections
import json
import os
import struct
import sys

from captures import (IP6, OP_ACK, PSN_MASK, Encapsulated, Roce, Wrong, check, copy_for, distance,
                      packed, parse_capture, srh, text, where)


class Run:
    """One folder: what was sent where, by direction."""

    def __init__(self, folder):
        with open(os.path.join(folder, 'meta.json')) as f:
            self.meta = json.load(f)
        m = self.meta
        self.group = m['group']
        self.proxy, self.source = packed(self.group['proxy']), packed(m['source']['address'])
        agent, edge = m['nodes']['sa']['id'], m['nodes']['n1']['id']
        self.agent = packed('5f00:0:%x::1' % agent)
        self.edge = packed('5f00:0:%x::1' % edge)
        self.edge_sid = packed('5f00:0:%x:e001::' % edge)
        self.receivers = {packed(r['address']): r for r in m['receivers']}
        self.at = {name[:-5]: parse_capture(os.path.join(folder, name))
                   for name in os.listdir(folder) if name.endswith('.pcap')}
        self.from_host = [(t, p) for t, p in self.at['sa-h0'] if p.src == self.source]
        self.to_host = [(t, p) for t, p in self.at['sa-h0'] if p.src != self.source]
        self.down = [(t, p) for t, p in self.at['n1-sa'] if isinstance(p, Encapsulated)]
        self.up = [(t, p) for t, p in self.at['n1-sa'] if isinstance(p, Roce)]

    def port_of(self, receiver):
        return self.at['n1-' + receiver['host']]


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
        check(p.dst == run.proxy, 'to %s', text(p.dst))
        check(p.dest_qp == run.group['designated_qpn'], 'DestQP %#x', p.dest_qp)


def check_link_carries_same(run):
    """What leaves one end of the uplink arrives at the other"""
    ends = [collections.Counter(p.bytes for _, p in run.at[name]) for name in ('sa-n1', 'n1-sa')]
    check(ends[0] == ends[1], 'the ends differ in %d packets',
          sum(((ends[0] - ends[1]) + (ends[1] - ends[0])).values()))


# Proves MT-5.2-2, MT-6-R6040-1, MT-6-R2473-1.
def check_outer_header(run):
    """Outer header: SA the agent, DA the edge's End.MT SID, inner ECN, one flow label"""
    for _, p in run.down:
        check(p.src == run.agent, 'outer SA %s', text(p.src))
        check(p.dst == run.edge_sid, 'outer DA %s', text(p.dst))
        check(p.tc & 3 == p.inner.tc & 3, 'ECN %d of inner %d', p.tc & 3, p.inner.tc & 3)
        check(p.flow_label, 'flow label 0')
        check(p.hlim == 64, 'outer hop limit %d', p.hlim)
    check(len({p.flow_label for _, p in run.down}) == 1, 'flow labels differ')


# Proves MT-5.1-6, MT-7.1-1, MT-7.2-11.
def check_srh(run):
    """SRH byte-exact: reduced list with the Proxy, one End.MT TLV, PadN only"""
    size = 8 + 16 + 24 + 20 * len(run.receivers)
    size += -size % 8
    qpns = sorted((address, r['qpn']) for address, r in run.receivers.items())
    for _, p in run.down:
        named = p.receivers()
        check([(edge, sorted(r)) for edge, r in named] == [(run.edge, qpns)], 'TLVs: %s', named)
        check(p.srh == srh(run.proxy, named), 'SRH is %s, should be %s', p.srh.hex(),
              srh(run.proxy, named).hex())
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


# Proves MT-5.2-6, MT-5.2-7, MT-5.2-8, MT-5.2-9.
def check_copies(run):
    """Copies: SA, DA, DestQP, rkey, VA and ICRC rewritten, nothing else"""
    for address, receiver in run.receivers.items():
        inner = collections.Counter()
        for _, e in run.down:
            copy = copy_for(e.inner, run.group, receiver)
            inner[copy[:7] + copy[8:]] += 1
        got = [p for _, p in run.port_of(receiver) if p.dst == address]
        check(all(p.hlim < 64 for p in got), 'hop limit')
        copies = collections.Counter(p.bytes[:7] + p.bytes[8:] for p in got)
        check(copies == inner, '%s: %d unexpected copies, %d missing', receiver['host'],
              sum((copies - inner).values()), sum((inner - copies).values()))


# Proves MT-5.1-2, MT-5.1-3.
def check_responses(run):
    """Receivers' responses: from their address to the Proxy's Designated QPN"""
    for address, receiver in run.receivers.items():
        up = [p for _, p in run.port_of(receiver) if p.dst != address]
        check(up, 'none from %s', receiver['host'])
        for p in up:
            check(p.src == address and p.dst == run.proxy, '%s: addresses', receiver['host'])
            check(p.dest_qp == run.group['designated_qpn'], '%s: DestQP', receiver['host'])
            check(p.opcode == OP_ACK, '%s: opcode %#x', receiver['host'], p.opcode)


# Proves MT-5.3.1-4.
def check_merged(run):
    """One merged stream to the source: SA Proxy, DestQP the source's, up to the last PSN"""
    for where in (run.up, run.to_host):
        last = None
        for _, p in where:
            check(p.src == run.proxy and p.dst == run.source, 'addresses')
            check(p.dest_qp == run.meta['source']['qpn'], 'DestQP %#x', p.dest_qp)
            check(p.opcode == OP_ACK, 'opcode %#x', p.opcode)
            check(p.csum == 0, 'UDP checksum %#x', p.csum)
            if p.aeth[0] >> 5 == 0:
                check(last is None or distance(p.psn, last) >= 0, 'ACK goes back to %#x', p.psn)
                last = p.psn
        check(last == run.from_host[-1][1].psn, 'last ACK %r', last)
    for (_, a), (_, b) in zip(run.up, run.to_host):
        check(a.same_but_hop_limit(b), 'changed on its way through the agent')


# Proves MT-5.3.1-1.
def check_never_early(run):
    """No merged ACK is earlier than any receiver's own"""
    events = [(t, 1, None, p) for t, p in run.up]
    for address, receiver in run.receivers.items():
        events += [(t, 0, address, p) for t, p in run.port_of(receiver) if p.src == address]
    una = {address: run.group['start_psn'] for address in run.receivers}
    for _, _, address, p in sorted(events, key=lambda e: e[:2]):
        nak = p.aeth[0] >> 5 != 0
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
                print('ok    %s: %s %s' % (name, what, where(function)))
                passed += 1
            except Wrong as e:
                print('FAIL  %s: %s %s: %s' % (name, what, where(function), e))
                failed += 1
    print('%d passed, %d failed' % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
