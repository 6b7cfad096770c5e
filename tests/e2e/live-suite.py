#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""End-to-end cases of a group that lives: members join in mid-stream, drain, are removed, are
killed and come back while one source writes on and on, with real soft-RoCE; inside the VM (see
tests/e2e/run).

castbench makes the events of members and compares each receiver's memory, from its first message to its last.
Here it is checked that the source has had no error, that the registry has said of each event what
follows from it, and, castbench aside, what is in the memory of those that are members at the end.
"""
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
from harness import (BIN, MTU, Lab, Receiver, Source, Suite, all_links, check, check_equal, data_flows,
                     down_leaves_nothing, group_add, impair, network_snapshot, no_drops, output, pattern,
                     wait_until, work_file)
from live import Live

# r2 joins behind an edge that has a member, r3 behind one that is new in the tree, r5 comes back
# after it has left, r4 after it was killed.
# castbench waits where a member is not yet what an event needs.
EVENTS = ['2:join:r2', '4:join:r3', '5:kill:r4', '5.5:start:r4', '7:drain:r5', '8:join:r5',
          '9:remove:r2']
# Three joins, two drains, a removal; r4 is killed and started three times.
LONG_EVENTS = ['3:join:r2', '6:join:r3', '9:kill:r4', '9.5:start:r4', '12:kill:r4', '13:start:r4',
               '16:kill:r4', '20:start:r4', '22:drain:r5', '24:join:r5', '26:drain:r3',
               '28:remove:r2']


def come_and_go(operation, events, seconds):
    """A case: links are good."""
    def case(lab):
        # What is under way when a member's branch goes may name it still, or its edge is in the tree
        # still and is for nobody, or has left when it comes to what waits at its ports: the others
        # get their copies.  And on a busy machine its host's last answer comes after that.
        with no_drops(lab, 'not_provisioned', 'mt_no_tlv', 'group_unknown', 'unknown_branch'):
            Live(lab, 'live-' + operation, operation, events, seconds).done()
    return case


def restart(lab, daemon):
    output('castlab', 'stop', daemon, '--kill', '-l', lab.name)
    output('castlab', 'start', daemon, '-l', lab.name)


def come_and_go_badly(events, seconds, restarts):
    """A case: every link loses and reorders, and a daemon restarts when a host has registered:
    [(host, daemon)]."""
    def case(lab):
        impair(all_links(), 'loss=1%', 'reorder=1%', 'late=5ms')
        try:
            # Small blocks, since one that lacks a packet costs a time-out.
            live = Live(lab, 'live-bad', 'write-imm', events, seconds, block=4 * MTU, liveness=8000)
            for host, daemon in restarts:
                live.wait_member(host)
                restart(lab, daemon)
            live.done()
        finally:
            impair(all_links(), 'none')
    return case


def source_moves(lab):
    """The source goes, another one comes, and no receiver has to touch its queue pair."""
    group_add('moves', '--mtu', str(MTU), '--timeout', '17')
    length = 200000
    receivers = {r: Receiver(lab, 'moves', r, length, '--keep') for r in lab.receivers}
    for r in receivers.values():
        r.armed(1)

    def writes(host, seed):
        data = pattern(length, seed)
        Source(lab, 'moves', '--file', work_file('moves%d.in' % seed, data), host=host).done()
        for r in receivers.values():
            check(r.region() == data, "%s's memory differs after what %s wrote", r.name, host)

    writes('h0', 1)
    # It has ended between two messages.
    start = time.monotonic()
    writes('h1', 2)
    print('      another source, its queue pair included, has written after %.1f s'
          % (time.monotonic() - start))
    writes('h1', 3)  # and again, with Designated QPNs of two epochs before.
    for r in receivers.values():
        r.wait_line('kept', 2)
        check_equal('%s has set up its queue pair so often' % r.name, r.count('armed'), 1)

    # It is killed in the middle of its messages.
    old = Source(lab, 'moves', '--file', work_file('moves4.in', pattern(length, 4)), '-s',
                 str(length), '--keep-sending')
    old.wait_line('ready')
    wait_until('data of epoch 4 flows', lambda: data_flows(lab, 'moves', 'n1'))
    old.process.kill()
    old.wait()
    writes('h1', 5)
    again = [name for name, r in receivers.items() if r.count('armed') > 1]
    print('      with half a message, and back by themselves: %s' % (' '.join(again) or 'nobody'))
    for name, r in receivers.items():
        check(r.count('armed') <= 2, '%s has set up its queue pair %d times', name, r.count('armed'))


def main():
    os.environ['PATH'] = BIN + os.pathsep + os.environ['PATH']
    suite = Suite()
    before = network_snapshot()
    lab = Lab('fig1')
    if suite.case('Figure 1 comes up', lambda lab: lab.up(), lab):
        suite.case('members come and go while data flow', come_and_go('write', EVENTS, 12), lab)
        suite.long_case('members come and go for long', come_and_go('write-imm', LONG_EVENTS, 30),
                        lab)
        suite.long_case('members come and go while links are bad and daemons restart',
                        come_and_go_badly(LONG_EVENTS, 30, [('r1', 'castd'), ('r2', 'n1'),
                                                            ('r3', 'n4')]), lab)
    suite.case('Figure 1 goes', down_leaves_nothing, lab, before)
    lab = Lab('two-sources')
    if suite.case('a lab with two sources comes up', lambda lab: lab.up(), lab):
        suite.case('the source moves to another host', source_moves, lab)
    suite.case('it goes', down_leaves_nothing, lab, before)
    return suite.finish()


if __name__ == '__main__':
    sys.exit(main())
