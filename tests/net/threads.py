# SPDX-License-Identifier: Apache-2.0
"""Forwarders with several threads.  That they do the same as with one, the cases of other labs
show; here is who does what."""
import json

import harness
from harness import castctl, castctl_json, check, check_equal, run, wait_until
from netlab import exact, group_add, model
from packets import frames
from trees import FIG1

GROUPS = ['t%d' % i for i in range(4)]
TRANSIT = ['n4', 'n5', 'n6']        # without hosts


def threads_of(lab, node):
    return json.loads(lab.appctl(node, 'rocecast/threads', '-j'))


def groups_are_spread(lab):
    """Each thread has its part of the groups, and the packets of these only."""
    for group in GROUPS:
        group_add(group)
        exact(lab, group, FIG1)
    for node in ['sa', 'n1', 'n2', 'n3'] + TRANSIT:
        threads = threads_of(lab, node)
        check_equal('groups of the threads of %s' % node, [t['groups'] for t in threads], [2, 2])
        for t in threads:
            check(t['packets'] > 0, 'thread %d of %s has had no packets', t['thread'], node)


def the_kernel_steers(lab):
    """Between nodes a packet comes to the thread that has its group.  What they hand over is the
    neighbours' advertisements, which all need."""
    before = {node: sum(t['handed_over'] for t in threads_of(lab, node)) for node in TRANSIT}
    sent = 0
    for group in GROUPS:
        sent += model(group, FIG1.receivers, '-n', '20', '-s', '65536')['lanes'][0]['sent']
    check(sent >= 4 * 20 * 16, 'only %d packets were sent', sent)
    for node in TRANSIT:
        n = sum(t['handed_over'] for t in threads_of(lab, node)) - before[node]
        check(n <= 20, '%s has handed over %d frames for %d packets', node, n, sent)


def nothing_is_lost_between(lab):
    """Responses of receivers come to any thread: all reach the one that has the group."""
    for node in ('n1', 'n2', 'n3'):
        threads = threads_of(lab, node)
        check(sum(t['handed_over'] for t in threads) > 0, '%s has handed over nothing', node)
        check_equal('frames that %s lost between threads' % node,
                    [t['handover_full'] for t in threads], [0, 0])
    check_equal('handover_full in counters',
                {node: c['handover_full'] for node, c in castctl_json('stats').items()
                 if c.get('handover_full')}, {})


def capture_has_all(lab):
    """One file has the frames of all threads; a trace of each is made by the thread that has the
    group."""
    path = harness.work_file('threads.pcap')
    lab.appctl('n6', 'rocecast/capture-start', '--force', lab.port('n6', 'sa'), path)
    sent = sum(model(group, FIG1.receivers, '-n', '2', '-s', '16384')['lanes'][0]['sent']
               for group in GROUPS)
    stopped = json.loads(lab.appctl('n6', 'rocecast/capture-stop', '-j', lab.port('n6', 'sa')))
    check(stopped[0]['packets'] >= sent, '%d frames captured of %d', stopped[0]['packets'], sent)
    by_proxy = {frame[62:78]: frame for frame in frames(path) if frame[20] == 43}
    check_equal('Proxy Addresses in the capture', len(by_proxy), len(GROUPS))
    for frame in by_proxy.values():
        trace = castctl_json('trace', 'n6', lab.port('n6', 'sa'), frame.hex())
        check(any(step.startswith('group t') for step in trace['steps']), 'steps: %r',
              trace['steps'])
        check_equal('drops', trace['drops'], [])


def bad_links_need_one(lab):
    """A link that is made bad is refused, and all goes on as before."""
    link = ('n6:n4', 'n4:n6')
    p = run('castctl', 'link', 'impair', *link, 'loss=1%')
    check_equal('exit status of castctl link impair', p.returncode, 0)
    try:
        wait_until('n6 says why', lambda: 'needs --threads=1' in castctl('node', 'list'))
    finally:
        castctl('link', 'impair', *link, 'none')
    wait_until('n6 has what castd wants', lambda: '--threads=1' not in castctl('node', 'list'))
    exact(lab, GROUPS[0], FIG1)


CASES = [groups_are_spread, the_kernel_steers, nothing_is_lost_between,
         capture_has_all, bad_links_need_one]
