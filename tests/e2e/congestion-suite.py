#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""End-to-end cases of congestion, with real soft-RoCE, which neither makes nor obeys CNPs: the nodes do.
Runs inside the VM (see tests/e2e/run).

The unlimited rate is measured first, in the same VM: rates of links follow from it.

The emulated machine has timer ticks of some milliseconds.  So much of a link's rate comes, and leaves, at
once: thresholds are above what two ticks bring (burst()), and the queue's limit holds a whole window of a
queue pair, which is 129 packets, except where a limit is to be met.
"""
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
import cnp
from captures import ETH, read_pcap
from harness import (BIN, Captures, Castbench, Example, Lab, Suite, castctl, castctl_json, check,
                     check_equal, check_replicas, down_leaves_nothing, network_snapshot, no_drops, resent,
                     wait_until, work_file)

MTU = 1024
FRAME = MTU + 78            # what a receiver's link carries of a packet, without FCS.
LEAST = 5e6                 # facts of soft-RoCE's timers: below that a queue pair's time is too short.
SHARE = 0.2
TICKS = 0.016               # seconds.
BENCH = ('-s', '16384', '-t', '16', '--ecn', '--interval', '1', '--region', '1M')
SECONDS = 20
ATTEMPTS = 3
LEAST_SHARE = 0.85
SETTLED = 1                 # seconds from the onset of congestion.


class Rates:
    """What was measured: bits per second, of frames on a receiver's link."""
    unlimited = branch = None


def group_add(name, *options):
    castctl('group', 'add', name, '--mtu', str(MTU), '--timeout', '20', '--liveness', '0', *options)


def frames_rate(bytes_per_second):
    return bytes_per_second * 8 * FRAME / MTU


def measure(lab, seconds):
    result, out = Castbench(lab, 'free', *BENCH, '-D', seconds).result()
    check_replicas(lab, result, out)
    return frames_rate(result['mb_per_s'] * 1e6)


def unlimited(lab):
    """What the machine can do, without congestion."""
    group_add('free')
    Rates.unlimited = measure(lab, '10')
    Rates.branch = max(SHARE * Rates.unlimited, LEAST)
    print('      unlimited: %.1f Mbit/s on each receiver\'s link; the branch: %.1f'
          % (Rates.unlimited / 1e6, Rates.branch / 1e6))
    castctl('--wait=agents', 'host', 'set', 'h0', '--line-rate', '%d' % Rates.unlimited)


def thresholds(limit):
    kmin = max(8, round(TICKS * Rates.branch / 8 / FRAME))
    return ['rate=%d' % Rates.branch, 'queue=%d' % limit, 'kmin=%d' % kmin, 'kmax=%d' % (4 * kmin)]


def flows(group):
    return [f for f in castctl_json('stats', 'sa')['sa']['flows'] if f['group'] == group]


def after(result, ms):
    """Bytes per second from then on."""
    timeline = [(t, n) for t, n in result['timeline'] if t >= ms]
    return sum(n for _, n in timeline[1:]) / (timeline[-1][0] - timeline[0][0]) * 1000


class slow_branch:
    """In its block what n1 sends to r1 goes through a queue in front of the branch's rate."""

    def __init__(self, lab, limit):
        self.lab, self.limit = lab, limit

    def __enter__(self):
        castctl('--wait=agents', 'link', 'impair', 'n1', 'r1', *thresholds(self.limit))
        return self

    def __exit__(self, kind, value, tb):
        castctl('--wait=agents', 'link', 'impair', 'n1', 'r1', 'none')

    def queue(self):
        found, = castctl_json('stats', 'n1')['n1']['queues']
        return found


def transfer(lab, name, cause, *options):
    """With control nothing is sent again once the rate has settled, and everybody is told.  Returns which share of
    the payload that the branch can carry has come, in the second half."""
    group_add(name, *options)
    watch = Example('castctl', '-j', 'watch', name, '--until', 'recovered')
    with slow_branch(lab, 400) as branch, no_drops(lab):
        bench = Castbench(lab, name, *BENCH, '-D', str(SECONDS))
        wait_until('%s is slowed down' % name, lambda: any(f['rate'] for f in flows(name)))
        time.sleep(SETTLED)
        before, shown = resent('h0', lab.receivers), flows(name)
        result, out = bench.result()
        again, queue = resent('h0', lab.receivers), branch.queue()
    check_replicas(lab, result, out)
    goodput = after(result, SECONDS * 500)
    share = frames_rate(goodput) / Rates.branch
    print('      %s: %.2f Mbit/s of payload, %.2f of what the branch can carry; queue: max_depth %d, marked %d'
          % (name, goodput * 8 / 1e6, share, queue['max_depth'], queue['marked']))
    print('      rate, Mbit/s: %s' % ' '.join('-' if r['mbit_per_s'] is None else '%.1f' % r['mbit_per_s']
                                              for r in result['rates']))
    check(shown and shown[0]['cause'] == cause, 'castctl stats: %s', shown)
    check_equal('times that the source has gone back, and packets that came twice, later than %d s' % SETTLED,
                again, before)
    check_equal('causes, as castbench has them', {r['cause'] for r in result['rates'] if r['cause']}, {cause})
    status, said = watch.wait()
    check(status == 0 and {'slowed', 'recovered'} <= {json.loads(line)['event'] for line in said.splitlines()},
          'castctl watch: exit status %d: %s', status, said)
    return share


def controlled(name, cause, *options):
    """A case.  How well the branch is used is judged only if the machine could carry twice as much without
    limit, also right after it, each time: with other work it may not."""
    def case(lab):
        judged = []
        for i in range(ATTEMPTS):
            share = transfer(lab, '%s-%d' % (name, i), cause, *options)
            if share >= LEAST_SHARE:
                return
            now = measure(lab, '5')
            if now >= 2 * Rates.branch:
                judged.append('%.2f (without limit %.1f Mbit/s)' % (share, now / 1e6))
        check(len(judged) < ATTEMPTS, 'of what the branch can carry came: %s', ', '.join(judged))
        print('      the share is not judged: without limit the machine carries but %.1f Mbit/s now' % (now / 1e6))
    return case


def fast(name, *options):
    def case(lab):
        castctl('--wait=agents', 'congestion', 'set', '--fast-cnp', 'on')
        try:
            controlled(name, 'fast-cnp', *options)(lab)
        finally:
            castctl('--wait=agents', 'congestion', 'set', '--fast-cnp', 'off')
    return case


def uncontrolled(lab):
    """Without control, and with a queue that does not hold a window: for comparison."""
    group_add('none')
    castctl('--wait=agents', 'host', 'set', 'h0', '--rate-control', 'none')
    try:
        with slow_branch(lab, 64) as branch:
            before = resent('h0', lab.receivers)
            result, out = Castbench(lab, 'none', *BENCH, '-D', str(SECONDS)).result()
            again = resent('h0', lab.receivers)
            queue = branch.queue()
    finally:
        castctl('--wait=agents', 'host', 'set', 'h0', '--rate-control', 'agent')
    check_replicas(lab, result, out)
    print('      without control: goodput %.2f of the branch; went back %d, came twice %d; queue: %s'
          % (result['mb_per_s'] * 8e6 / Rates.branch, again[0] - before[0], again[1] - before[1], queue))


def kernel_fills(lab):
    """A router that is the kernel writes into traces between our nodes."""
    ids = {n['name']: n['id'] for n in castctl_json('node', 'list')}
    group_add('traced', '--trace', '4')
    folder = work_file('ioam')
    with Captures(lab, [p for p in lab.fabric() if p[0] == 'n5' and p[2] in ('n7', 'n3')], folder):
        result, out = Castbench(lab, 'traced', '-s', '16384', '-n', '20', '-t', '2').result()
    check_replicas(lab, result, out)
    for peer, wanted in (('n7', ['n7', 'n6', 'sa']), ('n3', ['n5', 'n7', 'n6', 'sa'])):
        frames = [frame[ETH:] for _, frame in read_pcap(os.path.join(folder, 'n5-%s.pcap' % peer))]
        traces = [t for t in map(cnp.trace_of, frames) if t]
        check(traces, 'no packet with a trace at n5, towards %s', peer)
        for t in traces:
            fields = t.fields()
            check_equal('who has written', [e[1] for e in fields], [ids[n] for n in wanted])
            check_equal('hop limits', [e[0] for e in fields], [fields[0][0] + i for i in range(len(fields))])
            check(all(abs(e[2] - time.time()) < 60 and e[3] < 1000000 for e in fields), 'times: %r', fields)


def main():
    os.environ['PATH'] = BIN + os.pathsep + os.environ['PATH']
    suite = Suite()
    before = network_snapshot()
    lab = Lab('star', 'N=3')
    if suite.case('one switch comes up', lambda lab: lab.up(), lab):
        suite.case('unlimited', unlimited, lab)
        if Rates.branch:
            suite.case('slowed down by CNPs', controlled('cnps', 'cnp'), lab)
            suite.case('slowed down by Fast CNPs', fast('fast'), lab)
            suite.case('without control', uncontrolled, lab)
        suite.case('one switch goes', down_leaves_nothing, lab, before)
    lab = Lab('others')
    if suite.case('a tree with a router comes up', lambda lab: lab.up(), lab):
        suite.case("the kernel's traces", kernel_fills, lab)
        suite.case('the tree goes', down_leaves_nothing, lab, before)
    return suite.finish()


if __name__ == '__main__':
    sys.exit(main())
