# SPDX-License-Identifier: Apache-2.0
"""Calls of forwarders that the kernel refuses for a while (tests/faults): transfers go on, what was lost is counted,
and afterwards all is as before."""
import os
import sys

from netlab import ROOT, Loop, exact, group_add, no_faults

import harness
from harness import check, check_equal, output, wait_until
from trees import Tree

sys.path.insert(1, os.path.join(ROOT, 'tests/faults'))
from inject import Injection  # noqa: E402 pylint: disable=wrong-import-position

STAR = Tree({'sa': ['n1'], 'n1': ['r1', 'r2']})


def start_with(node, *rules):
    """The node's daemon anew, with an injection."""
    injection = Injection(harness.work_file('%s.inject' % node), *rules)
    output('castlab', 'stop', node)
    p = harness.run('castlab', 'start', node, env=injection.env)
    check(p.returncode == 0, 'castlab start %s: %s', node, p.stderr)
    return injection


def fail_next(injection, rule, n, what):
    """So many calls fail, in more than one burst if some are made while this process is not running."""
    left = n
    while left:
        first, hits = injection.calls(rule) + 1, injection.hits(rule)
        last = first + left - 1
        injection.fail(first, last, rule)
        # The one behind them has begun: the hits are counted.
        wait_until(what, lambda end=last: injection.calls(rule) > end)
        left -= injection.hits(rule) - hits


def sending_fails(lab):
    """Buffers are short, in bursts: at an edge's taps and at the links of the edge and of the source agent."""
    rules = {'n1': ('write/char:ENOBUFS', 'write/char:ENOMEM', 'sendmmsg/packet:ENOBUFS'),
             'sa': ('sendmmsg/packet:ENOBUFS',)}
    group_add('short', '--timeout', '14')
    injections = {node: start_with(node, *r) for node, r in rules.items()}
    loop = Loop(lab, 'short', STAR.receivers, '-s', '65536', '-t', '4')
    loop.wait_progress('n1')
    for node, injection in injections.items():
        for rule in range(len(rules[node])):
            fail_next(injection, rule, 20, '%s: %s has happened' % (node, rules[node][rule]))
            loop.wait_progress('n1')
    check_equal('hits at n1', [injections['n1'].hits(i) for i in range(3)], [20] * 3)
    loop.stop()
    errors = dict.fromkeys(rules, 0)
    for (node, *_, kind), n in lab.faults().items():
        errors[node] += n if kind == 'tx_errors' else 0
    check_equal('frames that could not be sent, as counted', errors, {n: 20 * len(r) for n, r in rules.items()})
    group_add('again')
    with no_faults(lab):
        exact(lab, 'again', STAR, '-n', '20', '-s', '16384', '-t', '4')


CASES = [sending_fails]
