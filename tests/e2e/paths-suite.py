#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""End-to-end cases about paths, on real soft-RoCE: the figure of
draft-filsfils-srv6ops-srv6-ai-backend, with spines of each kind.  Runs inside the VM (see
tests/e2e/run)."""
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
import captures
from harness import (BIN, RESULTS, Captures, Castbench, Lab, Suite, castbench, castctl, castctl_json, check,
                     check_equal, check_replicas, down_leaves_nothing, group_add, network_snapshot, run)

ONE, OTHER = 'leaf1,spine5,leaf3', 'leaf2,spine6,leaf4'
BACK = {ONE: 'leaf3,spine5,leaf1', OTHER: 'leaf4,spine6,leaf2'}
USIDS = {ONE: '100:500:300', OTHER: '200:600:400'}
PLANE = {ONE: 'A', OTHER: 'B'}
RECEIVERS = ['gpu2', 'gpu3', 'gpu4']

# Open vSwitch reads its ports from sockets with room for some 50 frames: no more are under way.
BLOCK, MTU = 16384, 1024
N_FEW = 16
FEW = ('-s', str(BLOCK), '-n', str(N_FEW), '-t', '2', '-m', str(MTU))
# As in docs/paths.md.
COUNT = 64
MANY = ('-s', str(BLOCK), '-n', str(COUNT), '-t', '8', '-m', str(MTU))


def seen(folder, node, peer):
    return [p for _, p in captures.parse_capture(os.path.join(folder, '%s-%s.pcap' % (node, peer)))]


def is_request(packet):
    return getattr(packet, 'inner', packet).opcode <= captures.OP_WRITE_ONLY_IMM


def first_hop(path):
    """The capture of what the source's agent sends on a path."""
    leaf = path.split(',')[0]
    return leaf, 'dpu1', 'dpu1'


def pinned(path):
    castctl('path', 'pin', 'gpu1', 'gpu3', path)
    castctl('--wait=agents', 'path', 'pin', 'gpu3', 'gpu1', BACK[path])


def unpinned():
    castctl('path', 'unpin', 'gpu1', 'gpu3')
    castctl('--wait=agents', 'path', 'unpin', 'gpu3', 'gpu1')


def unicast(lab):
    """Both programs of the figure: bytes are equal, the header is 40 bytes, and there is no SRH.

    Proves AB-7, AB-15, AB-18, AB-19, AB-23."""
    for path in (ONE, OTHER):
        pinned(path)
        folder = os.path.join(RESULTS, 'paths-' + lab.name)
        node, port, peer = first_hop(path)
        with Captures(lab, [(node, port, peer)], folder):
            result, out = castbench(lab, None, *FEW, receivers=['gpu3'], source='gpu1')
        check_replicas(lab, result, out, ['gpu3'])
        sent = [p for p in seen(folder, node, peer) if is_request(p)]
        check(len(sent) >= N_FEW * BLOCK // MTU, 'only %d packets by %s', len(sent), path)
        check_equal('kinds of packets', {type(p).__name__ for p in sent}, {'Tunnelled'})
        check_equal('bytes in front', {len(p.bytes) - len(p.inner.bytes) for p in sent}, {40})
        check_equal('destinations', {captures.text(p.dst) for p in sent}, {'5f00:0:%s::' % USIDS[path]})
        print('      %s: %d packets with a header of 40 bytes' % (path, len(sent)))
    unpinned()


def group(lab):
    """A group of three receivers by each of the two paths, which stand in front of the root's SID.

    Proves AB-15."""
    lab.receivers = RECEIVERS
    for path in (ONE, OTHER):
        name = 'g' + PLANE[path]
        group_add(name, '--mtu', str(MTU), '--plane', PLANE[path], '--via', path)
        folder = os.path.join(RESULTS, 'paths-' + lab.name)
        node, port, peer = first_hop(path)
        with Captures(lab, [(node, port, peer)], folder):
            result, out = castbench(lab, name, *FEW[:-2], source='gpu1')
        check_replicas(lab, result, out)
        sent = [p for p in seen(folder, node, peer) if is_request(p)]
        check(len(sent) >= N_FEW * BLOCK // MTU, 'only %d packets by %s', len(sent), path)
        containers = {captures.text(p.dst) for p in sent}
        check(len(containers) == 1 and containers.pop().startswith('5f00:0:%s:f' % USIDS[path]),
              'destinations: %s', {captures.text(p.dst) for p in sent})
        castctl('group', 'del', name)


#
# Spray.
#

def sent_on():
    """Packets sent to gpu3, by path."""
    return {p['path']: p['packets'] for p in castctl_json('path', 'list', 'gpu1', 'gpu3', '--live')}


class Uneven:
    """In its block gpu1 has two paths to gpu3 only, the second one slower by 'delay'."""

    def __init__(self, policy, delay, *options):
        self.policy, self.delay, self.options = policy, delay, options

    def __enter__(self):
        for p in castctl_json('path', 'list', 'gpu1', 'gpu3'):
            if p['path'] not in (ONE, OTHER):
                castctl('path', 'exclude', 'gpu1', 'gpu3', p['path'])
        castctl('link', 'impair', 'leaf2', 'spine6', 'delay=' + self.delay)
        castctl('--wait=agents', 'path', 'policy', 'gpu1', self.policy, *self.options)
        self.before = sent_on()
        return self

    def sent(self):
        after = sent_on()
        return {path: after[path] - self.before.get(path, 0) for path in (ONE, OTHER)}

    def __exit__(self, kind, value, tb):
        castctl('path', 'policy', 'gpu1', 'failover')
        castctl('link', 'impair', 'leaf2', 'spine6', 'none')
        for p in castctl_json('path', 'list', 'gpu1', 'gpu3'):
            if p['path'] not in (ONE, OTHER):
                castctl('--wait=agents', 'path', 'include', 'gpu1', 'gpu3', p['path'])


def spray(lab):
    """Each packet on another path of two whose delays differ: refused, and rightly so."""
    p = run('castctl', 'path', 'policy', 'gpu1', 'spray')
    check(p.returncode == 2 and 'docs/paths.md; --force' in p.stderr, 'spray: %d %s', p.returncode,
          p.stderr)
    n_packets = COUNT * BLOCK // MTU
    with Uneven('failover', '200us') as u:
        castbench(lab, None, *MANY, receivers=['gpu3'], source='gpu1')
        check_equal('packets by the slower path', u.sent()[OTHER], 0)
    with Uneven('spray', '200us', '--force') as u:
        bench = Castbench(lab, None, *MANY, '--qp-timeout', '17', receivers=['gpu3'], source='gpu1')
        # With LONG=1 to the end, which is minutes away; else until it is clear.
        enough = sys.maxsize if os.environ.get('LONG') == '1' else 6 * n_packets
        while bench.process.poll() is None and sum(u.sent().values()) < enough:
            time.sleep(0.5)
        done = bench.process.poll() is not None
        bench.process.terminate()
        bench.wait()
        sent = u.sent()
    total = sum(sent.values())
    print('      spray, 0.2 ms: %s after %d packets for %d of data' % (
        'done' if done else 'not done', total, n_packets))
    check(min(sent.values()) > 0, 'it has not been sprayed: %s', sent)
    check(total > 3 * n_packets, 'RC has borne spray: %d packets for %d of data', total, n_packets)


def message(lab):
    """Each message on the next path, when nothing is in flight: nothing overtakes, so no NAK is drawn
    even if one path is 2 ms slower."""
    folder = os.path.join(RESULTS, 'paths-' + lab.name)
    with Uneven('message', '2ms') as u:
        with Captures(lab, [('dpu1', lab.port('dpu1', 'gpu1'), 'gpu1')], folder):
            # One message outstanding: between two of them nothing is in flight.
            result, out = castbench(lab, None, *MANY, '-t', '1', receivers=['gpu3'], source='gpu1')
        check_replicas(lab, result, out, ['gpu3'])
        by_path = u.sent()
    answers = [p for p in seen(folder, 'dpu1', 'gpu1') if p.opcode == captures.OP_ACK]
    naks = [p for p in answers if p.aeth[0] >> 5 == 3]
    check_equal('NAKs', len(naks), 0)
    check(min(by_path.values()) >= COUNT * BLOCK // MTU // 4, 'packets by path: %s', by_path)
    print('      message, 2 ms: %s packets by path, %d answers, no NAK' % (by_path, len(answers)))


def with_spines(suite, five, six, cases):
    before = network_snapshot()
    lab = Lab('clos', 'SPINE5=' + five, 'SPINE6=' + six, 'MORE=true', 'PROBE=off', name='e2e-%s%s' % (five[0], six[0]))
    what = 'spines are %s and %s: ' % (five, six)
    if suite.case(what + 'it comes up', lambda lab: lab.up(), lab):
        for case in cases:
            suite.case(what + case.__name__, case, lab)
    suite.case(what + 'it goes', down_leaves_nothing, lab, before)


def main():
    os.environ['PATH'] = BIN + os.pathsep + os.environ['PATH']
    suite = Suite()
    with_spines(suite, 'swedge', 'swedge', [unicast, group, message, spray])
    with_spines(suite, 'router', 'ovs', [unicast, group])
    if suite.is_long:
        with_spines(suite, 'ovs', 'router', [unicast, group])
    return suite.finish()


if __name__ == '__main__':
    sys.exit(main())
