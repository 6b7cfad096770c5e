#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""End-to-end cases with trees of switches on real soft-RoCE; runs inside the VM (see
tests/e2e/run).

usage: tree-suite.py [walk|modes|perftest]

With 'walk' only what packet-walk.py needs: one packet through Figure 1, captured on every
port, to $RESULTS/walk.  With 'modes' only Figure 1 in the modes that are not the usual one, with
'perftest' only perftest's programs in it.
"""
import os
import re
import signal
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
from harness import (BIN, BLOCK, MTU, PATIENCE, PSN_MASK, QP_TIMEOUT, RESULTS, Captures, Example, Lab,
                     Netem, Receiver, Source, Suite, castbench, castctl, castctl_json, check,
                     check_equal, check_replicas, data_flows, down_leaves_nothing, end_psn,
                     group_add, network_snapshot, no_drops, output, pattern, processes_of,
                     wait_until, work_file, write_meta)
from trees import BUD, FIG1, FIG1_WITHOUT_R3, NOAGG, check_branches, check_confirmed


def start_receivers(lab, group, length):
    """Receivers by host; they register in this order."""
    receivers = {}
    for host in lab.receivers:
        receivers[host] = Receiver(lab, group, host, length)
        receivers[host].armed(1)
    return receivers


def walk(lab):
    """One RDMA WRITE of one packet, captured on every port (docs/packet-walk.md)."""
    folder = os.path.join(RESULTS, 'walk')
    data = pattern(1000, 1)
    # A time-out, and with it a second copy, is out of the question for this one packet, and nobody
    # asks idle receivers.
    castctl('group', 'add', 'walk', '--psn', '7000', '--mtu', '1024', '--timeout', '22',
            '--liveness', '0')
    receivers = start_receivers(lab, 'walk', len(data))
    with no_drops(lab), Captures(lab, lab.links(), folder):
        Source(lab, 'walk', '--file', work_file('walk.in', data)).done()
    write_meta(lab, 'walk', folder)
    for r in receivers.values():
        check(r.region() == data, "%s's memory differs", r.name)


# Proves MT-5.2-11, MT-5.3-1.
def whole_write(tree, n_blocks=32, mode='replicate', how='tlv'):
    """A case: blocks arrive at all receivers, and every branch of every node has confirmed all."""
    tree = tree.in_mode(mode)

    def case(lab):
        group = '%s-%s-%s' % (lab.topology, mode, how)
        group_add(group, '--mtu', str(MTU), '--psn', '0xffff80', '--mode', mode, '--receivers', how)
        with no_drops(lab):
            result, out = castbench(lab, group, '-s', str(BLOCK), '-n', str(n_blocks), '-t', '4')
        check_replicas(lab, result, out)
        check_equal('receivers', len(result['replicas']), len(tree.receivers))
        check_confirmed(lab, group, tree, end_psn(group, n_blocks))
    return case


def counted(lab, group, n_blocks):
    """Writes, and returns the bytes that every port between forwarders sent per byte written."""
    ports = {(node, peer): lab.device(node, port) for node, port, peer in lab.fabric()}
    with no_drops(lab):
        result, out = castbench(lab, group, '-s', str(BLOCK), '-n', str(n_blocks), '-t', '4', '-m',
                                str(MTU), *(a for p in ports.values()
                                            for a in ('--count-bytes', p)))
    check_replicas(lab, result, out)
    sent = {c['device']: c['tx_bytes'] / result['bytes'] for c in result['counted']}
    return {link: sent[device] for link, device in ports.items()}


def bytes_on_links(lab):
    """The kernel's counters: each link of the tree carries the data once; with a connection to
    each of the receivers the first link carries them five times."""
    group_add('bytes', '--mtu', str(MTU))
    multicast = counted(lab, 'bytes', 32)
    for (node, peer), ratio in multicast.items():
        if FIG1.parent.get(peer) == node:
            check(1 < ratio < 1.25, '%s to %s: %.3f bytes per byte written', node, peer, ratio)
        else:
            check(ratio < 0.1, '%s to %s: %.3f bytes per byte written', node, peer, ratio)
    unicast = counted(lab, None, 8)
    for link, n in ((('sa', 'n6'), 5), (('n4', 'n1'), 2), (('n5', 'n3'), 2)):
        check(n < unicast[link] < 1.25 * n, '%s to %s: %.3f bytes per byte written', *link,
              unicast[link])
    print('      sent by sa per byte written: %.3f, with unicast %.3f'
          % (multicast['sa', 'n6'], unicast['sa', 'n6']))


# Proves MT-5.3.1-1, MT-5.3.2-1.
def loss(lab):
    """Loss on every link of the fabric, both ways: NAKs and time-outs repair it."""
    group_add('loss', '--mtu', str(MTU))
    with no_drops(lab, 'neigh_queue', 'no_neighbour'), Netem(lab, lab.fabric(), 'loss', '2%'):
        result, out = castbench(lab, 'loss', '-s', str(BLOCK), '-n', '8', '-t', '4')
    check_replicas(lab, result, out)
    check_confirmed(lab, 'loss', FIG1, end_psn('loss', 8))
    root = lab.group('n6', 'loss')
    check(root['sent']['naks'] > 0, 'no NAK was needed: %r', root['sent'])


def member_leaves(lab):
    """The only receiver of an edge leaves in mid-transfer: the edge leaves the tree."""
    group_add('leave', '--mtu', str(MTU))
    data = pattern(4 * BLOCK, 23)
    receivers = start_receivers(lab, 'leave', len(data))
    source = Source(lab, 'leave', '--file', work_file('leave.in', data), '--keep-sending')
    wait_until('data flows', lambda: data_flows(lab, 'leave', 'n6'))
    castctl('member', 'remove', 'leave', 'r3')

    def rounds_since(psn):
        return (lab.group('n6', 'leave')['told'] - psn & PSN_MASK) / (len(data) / MTU)
    left_at = lab.group('n6', 'leave')['told']
    wait_until('all that a region holds was written again', lambda: rounds_since(left_at) > 1)
    source.process.send_signal(signal.SIGTERM)
    check_equal("source's exit status", source.wait(), 0)
    check_branches('leave', FIG1_WITHOUT_R3)
    for host in FIG1_WITHOUT_R3.receivers:
        check(receivers[host].region() == data, "%s's memory differs", host)


def perftest_args(program, *options):
    """perftest tries how steady the CPU's clock is.  With -F it goes on where that is emulated, with
    figures of 0."""
    return ['--source', 'h0', '--receivers', ','.join(FIG1.receivers), '--timeout', str(PATIENCE),
            '--', program, '-F', '-u', QP_TIMEOUT, *options]


def group_names():
    return [g['name'] for g in castctl_json('group', 'list')]


def perftest(program, size, count):
    """A case: perftest's own client, and five of its servers, which hold the client's bytes."""
    def case(lab):
        groups = group_names()
        with no_drops(lab):
            text = output('castbench', 'perftest',
                          *perftest_args(program, '-s', str(size), '-n', str(count)))
        check(re.search(r'^ %d +%d ' % (size, count), text, re.M), 'no line of the table: %s', text)
        check(' 5 of 5 receivers compared: all hold the client\'s %d bytes\n' % size in text, '%s', text)
        check_equal('groups left', group_names(), groups)
    return case


def perftest_ended(lab):
    """By a signal, and as a server dies: neither programs nor a group stay."""
    groups = group_names()
    for end in 'castbench', 'server':
        bench = Example('castbench', 'perftest', *perftest_args('ib_write_bw', '--run_infinitely'))
        wait_until('data flows', lambda: 'perftest' in group_names() and data_flows(lab, 'perftest', 'n6'))
        pids = processes_of(bench)
        check_equal('five servers and a client', len(pids), 6)
        os.kill(bench.process.pid if end == 'castbench' else pids[2],
                signal.SIGINT if end == 'castbench' else signal.SIGKILL)
        status, text = bench.wait()
        said = {'castbench': 'castbench: interrupted (Interrupt)',
                'server': 'castbench: the server of r3 died: Killed'}[end]
        check_equal('exit status', status, 2)
        check(said in text, 'message: %s', text)
        check_equal('programs left', [p for p in pids if os.path.exists('/proc/%d' % p)], [])
        check_equal('groups left', group_names(), groups)


def perftest_versions(lab):
    """A server that the user has started, and one of another version."""
    command = ['castbench', 'perftest', '--source', 'h0', '--receivers']
    with socket.create_server(('127.0.0.1', 0)) as listener:
        bench = Example(*command, 'r1,r2=127.0.0.1:%d' % listener.getsockname()[1], '--', 'ib_write_bw')
        with listener.accept()[0] as server:
            server.recv(16, socket.MSG_WAITALL)
            server.sendall(b'5.60'.ljust(16, b'\0'))
            status, text = bench.wait()
    check_equal('exit status', status, 2)
    check('the server of r2 has version 5.60 of perftest' in text, 'message: %s', text)


def main():
    os.environ['PATH'] = BIN + os.pathsep + os.environ['PATH']
    only = sys.argv[1] if len(sys.argv) > 1 else None
    suite = Suite()
    before = network_snapshot()

    fig1 = Lab('fig1')
    if suite.case('Figure 1 comes up', lambda lab: lab.up(), fig1):
        if only in (None, 'walk'):
            suite.case('one packet through Figure 1', walk, fig1)
        if only in (None, 'modes'):
            for mode, how in (('mcast', 'tlv'), ('ingress', 'tlv'), ('replicate', 'provisioned')):
                suite.case('Figure 1, mode %s, receivers %s' % (mode, how),
                           whole_write(FIG1, 16, mode, how), fig1)
        if only is None:
            suite.case('five receivers behind three edges', whole_write(FIG1, 64), fig1)
            suite.case('bytes on every link', bytes_on_links, fig1)
            suite.case('2 % loss on every link', loss, fig1)
            suite.case('a member leaves', member_leaves, fig1)
        if only in (None, 'perftest'):
            suite.case('perftest: ib_write_bw', perftest('ib_write_bw', BLOCK, 100), fig1)
            suite.case('perftest: ib_send_bw', perftest('ib_send_bw', 1000, 600), fig1)
            suite.case('perftest: a signal, a dead server', perftest_ended, fig1)
            suite.case('perftest: another version', perftest_versions, fig1)
    suite.case('Figure 1 goes', down_leaves_nothing, fig1, before)
    if only:
        return suite.finish()

    for topology, tree, what in (
            ('noagg', NOAGG, 'the source agent merges, and a node that only replicates'),
            ('bud', BUD, 'nodes with receivers of their own and nodes below')):
        lab = Lab(topology)
        if suite.case('%s comes up' % topology, lambda lab: lab.up(), lab):
            suite.case(what, whole_write(tree), lab)
        suite.case('%s goes' % topology, down_leaves_nothing, lab, before)
    return suite.finish()


if __name__ == '__main__':
    sys.exit(main())
