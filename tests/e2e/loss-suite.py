#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""End-to-end cases over links that lose, reorder, repeat and spoil packets, with real soft-RoCE;
runs inside the VM (see tests/e2e/run).

usage: loss-suite.py [CASE...]

Forwarders make links bad themselves ('castctl link impair'), both ways: one branch of Figure 1,
with three of its receivers, or every link, those to the hosts too.  After each case it is shown
what the source's RDMA device has counted meanwhile ('rdma statistic').
"""
import hashlib
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
from harness import (BIN, MTU, PSN_MASK, Lab, Suite, all_links, castbench, castctl_json, check,
                     check_equal, down_leaves_nothing, group_add, impair, network_snapshot,
                     pattern, read, statistic, work_file)
from trees import FIG1, check_confirmed

# Small blocks, so that there are many responses that can be hit, too.
BLOCK = 4 * MTU
BRANCH = [('n6', 'n4')]

# It goes back without 'rcvd_seq_err' when ACK(m - 1) comes before NAK(m), because then a NAK no
# longer tells it of a PSN that is new to it (draft-notes, R6).
RETRIES = 'completer_retry_err'
# Title, spec, the branch's blocks, all links' blocks, what forwarders count, what rxe_h0 counts.
CASES = {
    'loss1': ('1 % loss', 'loss=1%', 192, 32, 'lost', RETRIES),
    'loss5': ('5 % loss', 'loss=5%', 48, 8, 'lost', RETRIES),
    'reorder': ('reordering', 'reorder=5% late=20ms', 48, 24, 'late', RETRIES),
    'duplicate': ('duplication', 'duplicate=5%', 64, 32, 'duplicated', None),
    'corrupt': ('corruption', 'corrupt=4%', 64, 16, 'corrupted', RETRIES),
}
LONG = 'loss5',


class Counted:
    """In its block devices of hosts count: .grown is what, by host."""

    def __init__(self, *hosts):
        self.before = {host: statistic(host) for host in hosts}
        self.grown = None

    def __enter__(self):
        return self

    def __exit__(self, kind, value, tb):
        self.grown = {host: {name: n - before[name] for name, n in statistic(host).items()}
                      for host, before in self.before.items()}


def hit(lab, kind):
    """How many packets were hit on the way down and on the way up."""
    down = up = 0
    for (sender, receiver), counters in lab.impaired().items():
        if FIG1.parent.get(receiver, 'h0') == sender:
            down += counters[kind]
        else:
            up += counters[kind]
    return down, up


def check_files(lab, data, out):
    """Files of the source and of all receivers have one sha256."""
    wanted = hashlib.sha256(data).hexdigest()
    files = 'source', *lab.receivers
    check_equal('sha256', {f: hashlib.sha256(read(os.path.join(out, f + '.bin'))).hexdigest()
                           for f in files}, dict.fromkeys(files, wanted))


def bad(group, links, spec, n_blocks, kind, wanted):
    """A case: all files are equal although links are bad, and they were.
    Proves MT-5.3-1, MT-5.3.1-1, MT-5.3.2-1."""
    def case(lab):
        # However long a branch says nothing: no receiver is lost here.
        group_add(group, '--mtu', str(MTU), '--psn', '0xffffc0', '--timeout', '17', '--liveness',
                  '0')
        data = pattern(n_blocks * BLOCK, len(group))
        impair(links(), *spec.split())
        try:
            with Counted('h0', *lab.receivers) as counted:
                result, out = castbench(lab, group, '-s', str(BLOCK), '-t', '4', '--file',
                                        work_file(group + '.in', data))
            down, up = hit(lab, kind)
        finally:
            impair(links(), 'none')
        check_equal('bytes', result['bytes'], len(data))
        check_files(lab, data, out)
        psn = castctl_json('group', 'show', group)['start_psn'] + len(data) // MTU & PSN_MASK
        check_confirmed(lab, group, FIG1, psn)

        source = counted.grown['h0']
        print('      %s: %d on the way down, %d up; rxe_h0: %s'
              % (kind, down, up, ', '.join('%s %d' % c for c in source.items() if c[1])))
        check(down and up, '%s: %d packets on the way down, %d up', kind, down, up)
        if wanted:
            check(source[wanted], 'rxe_h0 has counted no %s: %s', wanted, source)
        else:
            check(all(c['duplicate_request'] for host, c in counted.grown.items() if host != 'h0'
                      and (links is all_links or host in ('r1', 'r2', 'r3'))),
                  'not every receiver behind a bad link had a request twice: %s', counted.grown)
    return case


def main():
    os.environ['PATH'] = BIN + os.pathsep + os.environ['PATH']
    suite = Suite()
    before = network_snapshot()
    lab = Lab('fig1')
    if suite.case('Figure 1 comes up', lambda lab: lab.up(), lab):
        for name in sys.argv[1:] or CASES:
            title, spec, n_branch, n_all, kind, wanted = CASES[name]
            run = suite.long_case if name in LONG and not sys.argv[1:] else suite.case
            run('%s each way on all links' % title,
                bad(name + '-all', all_links, spec, n_all, kind, wanted), lab)
            suite.long_case('%s each way on one branch' % title,
                            bad(name + '-branch', lambda: BRANCH, spec, n_branch, kind, wanted),
                            lab)
    suite.case('Figure 1 goes', down_leaves_nothing, lab, before)
    return suite.finish()


if __name__ == '__main__':
    sys.exit(main())
