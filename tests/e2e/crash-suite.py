#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""End-to-end cases in which a daemon of Figure 1 dies by kill -9 in mid-transfer; runs inside
the VM (see tests/e2e/run).

usage: crash-suite.py [VICTIM...]

Every case writes one file to all five receivers, kills when part of it has arrived, leaves the
victim dead for a while and starts it again.  The transfer goes slowly until then, since the root's
responses are delayed and few blocks may be outstanding.
"""
import contextlib
import hashlib
import json
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
from harness import (BIN, BLOCK, MTU, PSN_MASK, Castbench, Failure, Lab, Netem, Suite, castbench,
                     castctl, check, check_equal, check_replicas, down_leaves_nothing, end_psn,
                     group_add, network_snapshot, no_drops, output, pattern, read, run, wait_until,
                     work_file)
from trees import FIG1, FIG1_WITHOUT_R3, check_branches, check_confirmed

N_BLOCKS = 96
DEPTH = 4
DELAY = '400ms'    # of each response: 10 blocks a second.

KILL_FROM, KILL_TO = 0.3, 0.7    # of the bytes.
DOWN = 1.0                       # seconds, at least.
MEANWHILE = 1 << 20              # bytes, at least, without castd or the registry.

FORWARDERS = ('sa', 'n1', 'n2', 'n3', 'n4', 'n5', 'n6')
DAEMONS = ('ovsdb-server', 'castd', 'holder', *FORWARDERS)


def runs(pid):
    """A zombie does not: it has no program."""
    return os.path.exists('/proc/%d/exe' % pid)


def pids(lab):
    """By daemon; None: it is dead.  The kernel's word, not castlab's."""
    found = {}
    for line in output('castlab', 'status', lab.name).splitlines():
        words = line.split()
        if words and words[0] in DAEMONS:
            pid = int(words[3])
            found[words[0]] = pid if runs(pid) else None
    check_equal('daemons', sorted(found), sorted(DAEMONS))
    return found


def queue_pairs():
    """[(device, number, process, state)] of all queue pairs that programs have."""
    return sorted((q['ifname'], q['lqpn'], q['pid'], q['state'])
                  for q in json.loads(output('rdma', '-j', 'resource', 'show', 'qp')) if 'pid' in q)


class Transfer:
    """castbench writes a file to all receivers."""

    def __init__(self, lab, group):
        self.lab = lab
        self.group = group
        self.data = pattern(N_BLOCKS * BLOCK, len(group))
        # With the usual time-out: the source tries for half a minute.
        castctl('group', 'add', group, '--mtu', str(MTU))
        self.start, self.end = end_psn(group, 0), end_psn(group, N_BLOCKS)
        self.bench = Castbench(lab, group, '--file', work_file(group + '.in', self.data),
                               '-s', str(BLOCK), '-t', str(DEPTH))

    def confirmed(self, dead=None):
        """By receiver what part of the file it has confirmed: what its edge knows, or if that is
        dead, the node above the edge."""
        part, states = {}, {}
        for host in self.lab.receivers:
            branch, node = host, FIG1.parent[host]
            if node == dead:
                branch, node = node, FIG1.parent[node]
            if node not in states:
                states[node] = self.lab.group(node, self.group)
            una = [b['confirmed'] for b in states[node]['branches'] if b['name'] == branch] \
                if states[node] else []
            part[host] = (una[0] - self.start & PSN_MASK) * MTU / len(self.data) if una else 0
        return part

    def at_root(self, what):
        """Bytes before a PSN that the root has: 'confirmed' by all receivers, or 'told' to the
        source."""
        state = self.lab.group('n6', self.group)
        return (state[what] - self.start & PSN_MASK) * MTU if state else 0

    def wait_at_root(self, what, n_bytes):
        def reached():
            if self.bench.process.poll() is not None:
                raise Failure('castbench ended too early: %r' % (self.bench.wait(),))
            return self.at_root(what) >= n_bytes
        wait_until('the root has %d bytes (%s)' % (n_bytes, what), reached)

    def done(self):
        """It has ended without an error of completion, and all files are equal."""
        result, out = self.bench.result()
        check_equal('bytes', result['bytes'], len(self.data))
        wanted = hashlib.sha256(self.data).hexdigest()
        check_equal('sha256', {f: hashlib.sha256(read(os.path.join(out, f + '.bin'))).hexdigest()
                               for f in ('source', *FIG1.receivers)},
                    dict.fromkeys(('source', *FIG1.receivers), wanted))
        check_confirmed(self.lab, self.group, FIG1, self.end)


def check_in_middle(when, part):
    check(all(KILL_FROM <= p <= KILL_TO for p in part.values()),
          'confirmed %s: %r, not all from %s to %s', when, part, KILL_FROM, KILL_TO)


@contextlib.contextmanager
def dead(lab, victim, transfer):
    """In its block the victim is dead, killed when the transfer was in its middle.  The value is
    pids() from before."""
    transfer.wait_at_root('confirmed', 1)
    running, connected = pids(lab), queue_pairs()
    check_equal('queue pairs', [(q[0], q[3]) for q in connected],
                [('rxe_' + host, 'RTS') for host in ('h0', *FIG1.receivers)])
    transfer.wait_at_root('confirmed', KILL_FROM * len(transfer.data))
    killed_at = time.monotonic()
    output('castlab', 'stop', victim, '--kill', '-l', lab.name)
    try:
        at_kill = transfer.confirmed(dead=victim)
        check_in_middle('at the kill', at_kill)
        check(not runs(running[victim]), 'process %d still runs', running[victim])
        yield running
        wait_until('%s s have passed' % DOWN, lambda: time.monotonic() - killed_at >= DOWN)
        at_return = transfer.confirmed(dead=victim)
        check(all(p < 1 for p in at_return.values()), 'the transfer ended without %s', victim)
        if victim in FORWARDERS:
            check_in_middle('before the return', at_return)
        check_equal('queue pairs before the return', queue_pairs(), connected)
    finally:
        down = time.monotonic() - killed_at
        started = run('castlab', 'start', victim, '-l', lab.name)
    check_equal('castlab start: exit status and output', (started.returncode, started.stderr),
                (0, ''))
    now = pids(lab)
    new = now[victim]
    check(new and new != running[victim], '%s: process %r, before %r', victim, new,
          running[victim])
    check_equal('daemons after the return', now, {**running, victim: new})
    print('      killed at %.0f %%, dead for %.1f s' % (100 * min(at_kill.values()), down))


@contextlib.contextmanager
def dead_server(lab, server, transfer):
    """dead() for castd or the registry.  Before its block MEANWHILE more bytes are written."""
    source = None
    try:
        with dead(lab, server, transfer) as before:
            # The last responses may be on their way yet.
            transfer.wait_at_root('told', transfer.at_root('told') + MEANWHILE + DEPTH * BLOCK)
            # However slow the rest is, the server is to come back before the end.
            source = next(pid for device, _, pid, _ in queue_pairs() if device == 'rxe_h0')
            os.kill(source, signal.SIGSTOP)
            yield before
    finally:
        if source:
            os.kill(source, signal.SIGCONT)


def slowed(lab):
    return Netem(lab, [('n6', lab.port('n6', 'sa'), 'sa')], 'delay', DELAY)


def dies(victim):
    """A case: the node comes back from the registry and from packets alone."""
    def case(lab):
        # To others its address may become unreachable.
        with no_drops(lab, 'neigh_queue', 'no_neighbour', restarted=victim), \
                slowed(lab) as netem:
            transfer = Transfer(lab, 'kill-' + victim)
            with dead(lab, victim, transfer):
                pass
            netem.change('delay', '0ms')
            transfer.done()
    return case


def check_castd_works(transfer):
    """A member leaves, and a new group writes to all."""
    castctl('--wait=agents', 'member', 'remove', transfer.group, 'r3')
    check_branches(transfer.group, FIG1_WITHOUT_R3)
    group = 'after-' + transfer.group
    group_add(group, '--mtu', str(MTU))
    result, out = castbench(transfer.lab, group, '-s', str(BLOCK), '-n', '8')
    check_replicas(transfer.lab, result, out)
    check_confirmed(transfer.lab, group, FIG1, end_psn(group, 8))


def castd_dies(lab):
    """Traffic goes on meanwhile."""
    with no_drops(lab), slowed(lab) as netem:
        transfer = Transfer(lab, 'kill-castd')
        with dead_server(lab, 'castd', transfer):
            pass
        netem.change('delay', '0ms')
        transfer.done()
        check_castd_works(transfer)


def registry_dies(lab):
    """Traffic goes on meanwhile, and who asks is told; then all daemons go on with what the
    registry had."""
    with no_drops(lab), slowed(lab) as netem:
        transfer = Transfer(lab, 'kill-ovsdb')
        with dead_server(lab, 'ovsdb-server', transfer) as before:
            p = run('castctl', 'group', 'list')
            check_equal('castctl: exit status and message', (p.returncode, p.stderr),
                        (3, 'castctl: registry %s: Connection refused\n'
                         % os.environ['ROCECAST_DB']))
        netem.change('delay', '0ms')
        transfer.done()
        check_castd_works(transfer)
        check_equal('daemons', {**pids(lab), 'ovsdb-server': 0}, {**before, 'ovsdb-server': 0})


CASES = {
    'castd': ('castd', castd_dies),
    'ovsdb': ('the registry', registry_dies),
    'n1': ('an edge with two receivers', dies('n1')),
    'n4': ('a transit node', dies('n4')),
    'n6': ('the root', dies('n6')),
    'sa': ('the source agent', dies('sa')),
}
LONG = 'n4', 'n6'


def main():
    os.environ['PATH'] = BIN + os.pathsep + os.environ['PATH']
    suite = Suite()
    before = network_snapshot()
    lab = Lab('fig1')
    if suite.case('Figure 1 comes up', lambda lab: lab.up(), lab):
        for victim in sys.argv[1:] or CASES:
            what, case = CASES[victim]
            run = suite.long_case if victim in LONG and not sys.argv[1:] else suite.case
            run('kill -9 of ' + what, case, lab)
    suite.case('Figure 1 goes', down_leaves_nothing, lab, before)
    return suite.finish()


if __name__ == '__main__':
    sys.exit(main())
