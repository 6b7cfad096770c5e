#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""End-to-end cases of paths that fail in mid-stream, with real soft-RoCE: the figure of
draft-filsfils-srv6ops-srv6-ai-backend, probes on.  Runs inside the VM (see tests/e2e/run).

usage: switch-suite.py [CASE...]

castbench writes on and on with a QP timeout of 20, whose timer ends after more than four seconds: how long
nothing was completed shows whether that was waited for.  No time is asserted alone, but that the gap is
short beside that of the same fault without NAK; and that in one of some attempts it is at most four probe
intervals and 150 ms, if the machine without a fault has no such gaps itself.

An emulated machine that has other work to do cannot answer each probe in time: paths are probed as often as it
can, ten times a second or less.
"""
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
from harness import (BIN, PATIENCE, Castbench, Failure, Lab, Suite, castctl, castctl_json, check, check_equal,
                     check_replicas, down_leaves_nothing, network_snapshot, output, resent, wait_until,
                     work_file)

LEAVES = ['leaf1', 'leaf2', 'leaf3', 'leaf4']
RECEIVERS = ['gpu2', 'gpu3', 'gpu4']
MTU = 1024
INTERVALS = (100, 200, 400, 800)  # ms.
ATTEMPTS = 3
PLANNED_ATTEMPTS = 5
CONGESTED_SECONDS = 60 if os.environ.get('LONG') == '1' else 20
BEFORE = 2                  # seconds of writes before a fault, so that answers count (R20).
AFTER = 8                   # seconds from a fault's begin on.
RATE = 100                  # blocks per second.
# Not all that the machine can do: probes share it.
BENCH = ('-s', '16384', '-t', '8', '--region', '1M', '--rate', str(RATE))
UNICAST = (*BENCH, '-m', str(MTU), '--qp-timeout', '20')

# The figure without gpu2 and gpu4: fewer probes.
TWO_HOSTS = """
name: clos2
topology:
  nodes:
    gpu1: {kind: host, address: "fd00:a::1"}
    gpu3: {kind: host, address: "fd00:a::3"}
    dpu1: {kind: srcagent, id: 0x00a1}
    dpu3: {kind: srcagent, id: 0x00a3}
    "leaf{1..4}": {kind: swedge, id: "0x0{i}00"}
    spine5: {kind: swedge, id: 0x0500, plane: A}
    spine6: {kind: swedge, id: 0x0600, plane: B}
  links:
    - endpoints: [gpu1, dpu1]
    - endpoints: [gpu3, dpu3]
    - endpoints: ["leaf{1..2}", dpu1]
    - endpoints: ["leaf{3..4}", dpu3]
    - endpoints: ["leaf{1..4}", spine5]
    - endpoints: ["leaf{1..4}", spine6]
  mtu: {host: 4200, fabric: 9000}
  paths: {policy: failover}
"""


class Probes:
    """How often there are some, in ms."""
    interval = None

    @classmethod
    def bound(cls):
        return 4 * cls.interval + 150


#
# Faults.  In its block it is there.
#

class Killed:
    """kill -9 of a node: its links go down at its neighbours."""

    def __init__(self, lab, node):
        self.lab, self.node = lab, node

    def __enter__(self):
        output('castlab', 'stop', self.node, '--kill', '-l', self.lab.name)

    def __exit__(self, kind, value, tb):
        output('castlab', 'start', self.node, '-l', self.lab.name, '--timeout', str(PATIENCE))


class Lossy:
    """Links lose in silence; whoever sends there sees nothing of it."""

    def __init__(self, loss, links, both=True):
        self.loss, self.links, self.both = 'loss=' + loss, links, ['--both'] if both else []

    def impair(self, *words):
        """All at the same time, as far as that goes."""
        started = [subprocess.Popen(['castctl', '--wait=agents', 'link', 'impair', *link, *words, *self.both])
                   for link in self.links]
        check_equal('exit statuses of castctl link impair', {p.wait() for p in started}, {0})

    def __enter__(self):
        self.impair(self.loss, 'seed=1')

    def __exit__(self, kind, value, tb):
        self.impair('none')


# By the nodes on the way of requests, and of answers: (first leaf, spine, last leaf).
FAULTS = {
    'spine_killed': lambda lab, there, back: Killed(lab, there[1]),
    # It is there, for the registry and its links; what it is given is gone.
    'spine_drops': lambda lab, there, back: Lossy('100%', [(there[1], leaf) for leaf in LEAVES]),
    'link_loses': lambda lab, there, back: Lossy('20%', [there[:2]]),
    'data_way': lambda lab, there, back: Lossy('100%', [there[:2]], both=False),
    'answers_way': lambda lab, there, back: Lossy('100%', [back[:2]], both=False),
}


#
# What is seen.
#

def paths(lab, agent, destination):
    shown = json.loads(lab.appctl(agent, 'rocecast/paths', '-j'))
    return {p['name']: p for p in shown if p['destination'] == lab.address(destination)}


def sum_of(lab, agent, destination, key):
    return sum(p[key] for p in paths(lab, agent, destination).values())


def way(lab, agent, destination):
    """The nodes on the path that flows came to last, or have always been on."""
    used = [p for p in paths(lab, agent, destination).values() if p['flows']]
    return min(used, key=lambda p: p.get('last_switch_us_ago', sys.maxsize))['name'].split(',')


def moved_at(lab, agent, destination):
    """When a flow last changed its path; seconds since 1970."""
    now = time.time()
    ago = [p['last_switch_us_ago'] for p in paths(lab, agent, destination).values() if 'last_switch_us_ago' in p]
    return now - min(ago) / 1e6 if ago else 0


def all_good():
    """All probes are answered, and nothing waits for a hold-down.  One castctl takes the emulated machine a
    fifth of a second: probes need it, too."""
    time.sleep(1)
    states = [p['state'] for p in castctl_json('path', 'health')]
    return set(states) == {'good'}


def probe_as_often_as_possible(lab):
    """A case: an interval in which each probe comes back, by how long they take now."""
    probe(INTERVALS[-1])
    wait_until('all paths are good', all_good)
    longest = 0
    for _ in range(10):
        time.sleep(INTERVALS[-1] / 1000)
        longest = max(longest, *(p['rtt_us'] / 1000 for p in castctl_json('path', 'health', '--live')))
    # There are more on the way then.
    Probes.interval = next((i for i in INTERVALS if i >= 5 * longest), INTERVALS[-1])
    probe(Probes.interval)
    wait_until('all paths are good', all_good)
    print('      %s: probes take up to %.0f ms; one each %d ms' % (lab.name, longest, Probes.interval))


def probe(interval):
    castctl('--wait=agents', 'path', 'probe', '--interval', '%dms' % interval, '--timeout', '%dms' % interval)


def make_naks(lab, word):
    for agent in ('dpu1', 'dpu3'):
        lab.appctl(agent, 'rocecast/path-naks', word)


class Stream:
    """castbench writes from gpu1, to gpu3 or over a group, for some seconds beginning from when its
    packets have been flowing for BEFORE."""

    def __init__(self, lab, group, seconds, *options):
        self.lab = lab
        self.receivers = RECEIVERS if group else ['gpu3']
        self.before = resent('gpu1', self.receivers)
        sent = sum_of(lab, 'dpu1', 'gpu3', 'packets') if not group else 0
        options = options or (BENCH if group else UNICAST)
        self.bench = Castbench(lab, group, *options, '-D', str(BEFORE + seconds),
                               receivers=self.receivers, source='gpu1')
        wait_until('packets flow', lambda: self.bench.process.poll() is not None or self.flows(group, sent))
        time.sleep(BEFORE)
        if self.bench.process.poll() is not None:
            self.bench.result()
            raise Failure('castbench has ended early')

    def flows(self, group, before):
        if not group:
            return sum_of(self.lab, 'dpu1', 'gpu3', 'packets') > before + 100
        state = self.lab.group('dpu1', group)
        return state and state['told'] != castctl_json('group', 'show', group)['start_psn']

    def result(self):
        """No error, bytes equal: returns what castbench says."""
        result, out = self.bench.result()
        check_replicas(self.lab, result, out, self.receivers)
        after = resent('gpu1', self.receivers)
        result['resent'] = after[0] - self.before[0], after[1] - self.before[1]
        result['gap_ms'] = result['longest_gap_us'] / 1000
        result['ends'] = result['first_block_at_ms'] / 1000 + result['seconds']
        result['gap_begins'] = result['first_block_at_ms'] / 1000 + result['longest_gap_at_ms'] / 1000
        return result


def undisturbed(lab, group):
    """The machine's own longest gap."""
    return Stream(lab, group, 1).result()['gap_ms']


def judged(lab, group, what, attempt):
    """attempt() returns the longest gap in ms: within the bound in one of some attempts, or the machine
    has such gaps without a fault."""
    gaps = []
    for _ in range(ATTEMPTS):
        gaps.append(attempt())
        if gaps[-1] <= Probes.bound():
            return
    own = undisturbed(lab, group)
    check(own > 100, '%s: gaps of %s ms, the bound is %d; without fault %.0f', what,
          ', '.join('%.0f' % g for g in gaps), Probes.bound(), own)
    print('      the bound is not judged: without fault the machine has gaps of %.0f ms now' % own)


def nothing_again(lab, group, attempt):
    """attempt() tells whether nothing was sent again: so it is in one of some attempts, or the machine is so
    busy that things are sent again, or have long gaps, without a cause.  Probes are few meanwhile: those that
    are late would move flows, too."""
    probe(1000)
    try:
        if any(attempt() for _ in range(PLANNED_ATTEMPTS)):
            return
    finally:
        probe(Probes.interval)
    own = Stream(lab, group, AFTER).result()
    check(own['gap_ms'] > 100 or own['resent'] != (0, 0), 'something was sent again each time')
    print('      not judged: a gap of %.0f ms, and went back %d, came twice %d, without cause now'
          % (own['gap_ms'], *own['resent']))


#
# One connection.
#

def fail_once(lab, fault, seconds=AFTER):
    """What castbench says of writes during which spine5's way fails, and how long the flow took to
    leave it."""
    wait_until('all paths are good', all_good)
    stream = Stream(lab, None, seconds)
    there, back = way(lab, 'dpu1', 'gpu3'), way(lab, 'dpu3', 'gpu1')
    with FAULTS[fault](lab, there, back):
        result = stream.result()
        moved = max(moved_at(lab, 'dpu1', 'gpu3'), moved_at(lab, 'dpu3', 'gpu1'))
        result['switch_ms'] = (moved - result['gap_begins']) * 1000
        check(moved < result['ends'], 'no flow has moved while castbench wrote')
    return result


def fails(fault):
    def case(lab):
        """The flow leaves the path, no completion is in error, all bytes are right."""
        def attempt():
            before = [sum_of(lab, a, b, 'moved_failed') for a, b in (('dpu1', 'gpu3'), ('dpu3', 'gpu1'))]
            naks = sum_of(lab, 'dpu1', 'gpu3', 'naks')
            said = sum_of(lab, 'dpu3', 'gpu1', 'repeated')
            result = fail_once(lab, fault)
            moved = [sum_of(lab, a, b, 'moved_failed') - n
                     for (a, b), n in zip((('dpu1', 'gpu3'), ('dpu3', 'gpu1')), before)]
            print('      %s: longest gap %.0f ms; flow and answers moved %s after %.0f ms; %d NAKs, %d answers said '
                  'again; went back %d, came twice %d'
                  % (fault, result['gap_ms'], moved, result['switch_ms'],
                     sum_of(lab, 'dpu1', 'gpu3', 'naks') - naks, sum_of(lab, 'dpu3', 'gpu1', 'repeated') - said,
                     *result['resent']))
            check(sum(moved), 'nothing has moved')
            return result['gap_ms']
        judged(lab, None, fault, attempt)
    return case


def compared(lab):
    """The same fault without NAK, and without probes (the fault ends after a second, or nothing would ever
    be completed): both wait for the timer of the queue pair.  In one of some attempts, as that may happen to end
    soon; that it was the NAK is counted, so that no chance is taken for it."""
    tried = []
    for _ in range(ATTEMPTS):
        gaps, n_naks = compared_once(lab)
        tried.append(', '.join('%s %.0f' % g for g in gaps.items()) + '; %d NAKs' % n_naks)
        print('      longest gap, ms: %s' % tried[-1])
        if n_naks and gaps['probes and NAK'] < min(gaps['probes, no NAK'], gaps['no probes, fault of 1 s']) / 2:
            return
    raise Failure('longest gaps, ms: %s' % '; '.join(tried))


def compared_once(lab):
    """The longest gaps, in ms, and the NAKs that were made with the first."""
    before = sum_of(lab, 'dpu1', 'gpu3', 'naks')
    gaps = {'probes and NAK': fail_once(lab, 'spine_drops')['gap_ms']}
    after = sum_of(lab, 'dpu1', 'gpu3', 'naks')
    make_naks(lab, 'off')
    try:
        gaps['probes, no NAK'] = fail_once(lab, 'spine_drops', 12)['gap_ms']
    finally:
        make_naks(lab, 'on')
    check_equal('NAKs made though they are off', sum_of(lab, 'dpu1', 'gpu3', 'naks') - after, 0)
    castctl('--wait=agents', 'path', 'probe', 'off')
    try:
        stream = Stream(lab, None, 12)
        with FAULTS['spine_drops'](lab, way(lab, 'dpu1', 'gpu3'), None):
            time.sleep(1)
        gaps['no probes, fault of 1 s'] = stream.result()['gap_ms']
    finally:
        probe(Probes.interval)
    return gaps, after - before


def planned(lab):
    """The operator takes the spine out of use, and has it back: nothing is sent again, unless a path was
    found bad meanwhile, or not all was confirmed in time, as on a machine that is too busy."""
    def attempt():
        wait_until('all paths are good', all_good)
        before = {key: sum_of(lab, 'dpu1', 'gpu3', key) for key in ('moved_planned', 'moved_failed', 'naks')}
        stream = Stream(lab, None, AFTER)
        spine = way(lab, 'dpu1', 'gpu3')[1]
        castctl('--wait=agents', 'path', 'exclude', spine)
        try:
            wait_until('the flow has left ' + spine, lambda s=spine: way(lab, 'dpu1', 'gpu3')[1] != s)
            time.sleep(0.5)
        finally:
            castctl('--wait=agents', 'path', 'include', spine)
        result = stream.result()
        moved, failed, naks = (sum_of(lab, 'dpu1', 'gpu3', key) - n for key, n in before.items())
        print('      %s excluded, included: moved by plan %d times, as it failed %d; longest gap %.0f ms, %d NAKs; went back '
              '%d, came twice %d' % (spine, moved, failed, result['gap_ms'], naks, *result['resent']))
        check(moved + failed >= 2, 'moved %d times', moved + failed)
        return result['resent'] == (0, 0) and not naks
    nothing_again(lab, None, attempt)


def goodput(result, begin, end):
    """Bytes per second in this time of a run, in ms since its begin."""
    within = [(t, n) for t, n in result['timeline'] if begin <= t <= end]
    return sum(n for _, n in within[1:]) / (within[-1][0] - within[0][0]) * 1000


def busiest(lab, agent, destination):
    """The path that most packets are on now, and how many in a second: those of flows that have ended are still there."""
    before, began = paths(lab, agent, destination), time.time()
    time.sleep(2)
    after, ended = paths(lab, agent, destination), time.time()
    sent = {name: path['packets'] - before[name]['packets'] for name, path in after.items()}
    name = max(sent, key=sent.get)
    return name, sent[name] / (ended - began)


def congested(lab):
    """Two flows on two spines, one of which can carry two fifths of what its flow sends, and marks it: the
    flow leaves it, once, and comes back no more than it may.  In one of some attempts, or each time a busy
    machine has found paths bad, as their probes were late: that moves flows, and is in the goodput."""
    tried = []
    probe(1000)
    try:
        for _ in range(ATTEMPTS):
            moved, failed, share = congested_once(lab)
            tried.append('moved %d times, and %d as paths failed, %.2f of the goodput before' % (moved, failed, share))
            # Two flows rest for 4 s at least, and longer each time.
            check(moved <= 2 * (2 + CONGESTED_SECONDS / 8), '%s', tried[-1])
            if 1 <= moved + failed <= 4 and share > 0.8:
                return
            check(failed or len(tried) < ATTEMPTS, '%s', '; '.join(tried))
    finally:
        probe(Probes.interval)
    print('      not judged: %s' % '; '.join(tried))


def congested_once(lab):
    """How often flows moved, because of that and as paths had failed, and how much of the goodput there is
    when that is settled."""
    wait_until('all paths are good', all_good)
    castctl('--wait=agents', 'path', 'policy', 'gpu1', 'spread')
    before = [sum_of(lab, 'dpu1', 'gpu3', key) for key in ('moved_congested', 'moved_failed')]
    try:
        # Two messages of each flow at a time: more would wait for longer than a probe may take.
        stream = Stream(lab, None, CONGESTED_SECONDS, *UNICAST, '-t', '2', '-q', '2', '--ecn')
        # Of what it sends, and not what it is asked to: a busy machine does not keep up.
        loaded, pps = busiest(lab, 'dpu1', 'gpu3')
        began = time.time()
        rate = 0.4 * pps * 8 * (MTU + 120)
        name = loaded.split(',')
        try:
            castctl('--wait=agents', 'link', 'impair', *name[:2], 'rate=%d' % rate, 'queue=400', 'kmin=1', 'kmax=2')
            result = stream.result()
        finally:
            castctl('--wait=agents', 'link', 'impair', *name[:2], 'none')
    finally:
        castctl('--wait=agents', 'path', 'policy', 'gpu1', 'failover')
    moved, failed = (sum_of(lab, 'dpu1', 'gpu3', key) - n
                     for key, n in zip(('moved_congested', 'moved_failed'), before))
    onset = began * 1000 - result['first_block_at_ms']
    free = goodput(result, 0, onset)
    settled = goodput(result, onset + 3000, result['timeline'][-1][0])
    print('      congested %s: left %d times in %d s, and %d times as it had failed; goodput %.2f of that before'
          ' (%d packets per second)' % (loaded, moved, CONGESTED_SECONDS, failed, settled / free, pps))
    return moved, failed, settled / free


#
# A group on two planes.
#

SPINES = {'A': 'spine5', 'B': 'spine6'}
LEAF = {'A': ('leaf1', 'leaf3'), 'B': ('leaf2', 'leaf4')}


def group_add(name):
    castctl('group', 'add', name, '--planes', 'A,B', '--mtu', str(MTU), '--timeout', '20', '--liveness', '0')


def used_plane(lab, group, node='dpu1'):
    return next(p['name'] for p in lab.group(node, group)['planes'] if p['used'])


def moves(lab, group):
    """How often agent and edges have left a plane since it was bad, and by plan."""
    ends = [lab.group('dpu%d' % i, group) for i in range(1, 5)]
    return sum(e['planes_failed'] for e in ends), sum(e['planes_moved'] for e in ends)


def group_fails(fault):
    def case(lab):
        """Three receivers, each behind an agent with two uplinks: all go on over the other plane."""
        serial = iter(range(ATTEMPTS))

        def attempt():
            wait_until('all paths are good', all_good)
            group = 'g-%s-%d' % (fault, next(serial))
            group_add(group)
            stream = Stream(lab, group, AFTER)
            # The plane of packets, or that of dpu3's answers.
            plane = used_plane(lab, group, 'dpu3' if fault == 'answers_way' else 'dpu1')
            near, far = LEAF[plane]
            with FAULTS[fault](lab, [near, SPINES[plane], far], [far, SPINES[plane], near]):
                result = stream.result()
                failed, _ = moves(lab, group)
            print('      %s: longest gap of the group %.0f ms; %d ends left plane %s; went back %d, came twice %d'
                  % (group, result['gap_ms'], failed, plane, *result['resent']))
            check(failed, 'nobody has left plane %s', plane)
            castctl('group', 'del', group)
            return result['gap_ms']
        judged(lab, None, fault, attempt)
    return case


def group_planned(lab):
    """The operator prefers the other plane: nothing is sent again, unless a plane was found bad meanwhile, or
    not all was confirmed in time, as on a machine that is too busy."""
    serial = iter(range(PLANNED_ATTEMPTS))

    def attempt():
        wait_until('all paths are good', all_good)
        group = 'g-plan-%d' % next(serial)
        group_add(group)
        stream = Stream(lab, group, AFTER)
        wanted = 'B' if used_plane(lab, group) == 'A' else 'A'
        castctl('--wait=agents', 'group', 'plane', group, wanted)
        result = stream.result()
        failed, moved = moves(lab, group)
        print('      plane %s is preferred: longest gap %.0f ms; left by plan %d times, as bad %d; went back %d, came twice %d'
              % (wanted, result['gap_ms'], moved, failed, *result['resent']))
        check(moved, 'nobody has taken plane %s', wanted)
        castctl('group', 'del', group)
        return result['resent'] == (0, 0)
    nothing_again(lab, None, attempt)


UNICAST_CASES = {
    **{fault: fails(fault) for fault in FAULTS},
    'compared': compared,
    'planned': planned,
    'congested': congested,
}
GROUP_CASES = {
    **{'group_' + fault: group_fails(fault) for fault in ('spine_killed', 'spine_drops', 'link_loses', 'data_way', 'answers_way')},
    'group_planned': group_planned,
}
# The others with LONG=1.
SHORT = ['spine_killed', 'answers_way', 'planned', 'congested']


def in_lab(suite, lab, cases):
    """Those of the cases that are wanted."""
    wanted = sys.argv[1:] or (list(cases) if suite.is_long else SHORT)
    if not set(wanted) & set(cases):
        return
    before = network_snapshot()
    if suite.case('%s comes up' % lab.name, lambda lab: lab.up(), lab):
        suite.case('probes', probe_as_often_as_possible, lab)
        for name in cases:
            if name in wanted:
                suite.case(name.replace('_', ' '), cases[name], lab)
    suite.case('%s goes' % lab.name, down_leaves_nothing, lab, before)


def main():
    os.environ['PATH'] = BIN + os.pathsep + os.environ['PATH']
    suite = Suite()
    two = work_file('clos2.yaml', TWO_HOSTS.encode())
    in_lab(suite, Lab(two[:-len('.yaml')], name='e2e-two'), UNICAST_CASES)
    in_lab(suite, Lab('clos', 'MORE=true', name='e2e-clos'), GROUP_CASES)
    return suite.finish()


if __name__ == '__main__':
    sys.exit(main())
