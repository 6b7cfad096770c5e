# SPDX-License-Identifier: Apache-2.0
"""Groups with planes (docs/paths.md, R24): a source writes on and on while the plane in use dies, loses
packets, or is to be left.

The fabric is clos.yaml, where all hosts are behind agents with two uplinks.  Unicast is not on paths, so
the ways of the group are all that is probed, and what one case has done to them is over with its group:

    plane A   dpu1 - leaf1 - spine5 - leaf3 - dpu3, dpu4; leaf1 - dpu2
    plane B   dpu1 - leaf2 - spine6 - leaf4 - dpu3, dpu4; leaf2 - dpu2
"""
import contextlib
import json

from netlab import Lab, Loop, group_add

import harness
from harness import PSN_MASK, castctl, check, check_equal, output, run, wait_until

RECEIVERS = ['gpu2', 'gpu3', 'gpu4']
ENDS = ['dpu1', 'dpu2', 'dpu3', 'dpu4']
# Those whose ways pass the spine: a leaf leads from dpu1 to dpu2.
FAR = ['dpu1', 'dpu3', 'dpu4']
# No timer of the source ends before its agent has found out: it takes 4 s.
TIMEOUT = '20'
# A machine that does not let nodes run for long makes their probes late, and planes are left for that.  Who has
# left which plane how often is compared where it did not happen.
ATTEMPTS = 3


def make_lab():
    # Half as often as usual, for the same reason.
    return Lab.shipped('clos', 'POLICY=none',
                       edit=('probe: "{PROBE}"', 'probe: {interval: 200ms, timeout: 200ms}'))


class Disturbed(harness.Failure):
    """Planes were left for something that the case has not done."""


def undisturbed(what, got, wanted):
    if got != wanted:
        raise Disturbed('%s: %r, should be %r' % (what, got, wanted))


def attempts(name, case):
    """A case that is tried again if it was disturbed; it gets the lab and a name for its group."""
    def run_case(lab):
        for i in range(ATTEMPTS):
            try:
                return case(lab, '%s-%d' % (name.replace(' ', '-'), i))
            except Disturbed as e:
                if i == ATTEMPTS - 1:
                    raise
                print('      %s: disturbed, again: %s' % (name, e))
    run_case.__qualname__ = run_case.__name__ = name.replace(' ', '_')
    return name, run_case


def ends(group):
    """What castctl says of planes, by node: the one in use, how good each is, and how often one was left
    since it failed, and by plan."""
    found = {}
    p = run('castctl', '-j', 'tree', 'show', group)
    check(p.returncode in (0, 4), 'castctl: %s', p.stderr)    # 4: one of them does not run.
    for node in json.loads(p.stdout)['nodes']:
        live = node['live'] or {}
        if live.get('planes'):
            in_use, = [p['name'] for p in live['planes'] if p['used']]
            found[node['node']] = {
                'used': in_use, 'failed': live['planes_failed'], 'moved': live['planes_moved'],
                'states': {p['name']: p['state'] for p in live['planes']}}
    return found


def used(group):
    return {node: end['used'] for node, end in ends(group).items()}


def moves(group):
    """(failed, moved) of each end."""
    return {node: (end['failed'], end['moved']) for node, end in ends(group).items()}


def of_ends(value, **others):
    return {**dict.fromkeys(ENDS, value), **others}


def wait_used(group, wanted):
    wait_until('planes in use: %s' % wanted, lambda: used(group) == wanted)


def wait_good(group):
    wait_until('both planes are good', lambda: {
        s for end in ends(group).values() for s in end['states'].values()} == {'good'})


@contextlib.contextmanager
def writing(lab, group, timeout=TIMEOUT):
    """In its block a source writes to a group that begins in plane A, with both planes good.  After it
    the receivers have all bytes, and castmodel's report is in what it yields."""
    group_add(group, '--planes', 'A,B', '--timeout', timeout)
    loop = Loop(lab, group, RECEIVERS, source='gpu1')
    report = {}
    try:
        loop.wait_progress('dpu1', 1)
        wait_good(group)
        undisturbed('at the start', (used(group), moves(group)), (of_ends('A'), of_ends((0, 0))))
        loop.wait_progress('dpu1')
        yield loop, report
        loop.wait_progress('dpu1')
        report.update(loop.stop())
    finally:
        loop.kill()
        castctl('--wait=agents', 'group', 'del', group)
    lane, = report['lanes']
    print('      %s: longest gap %.0f ms, went back %d times, %d timers ended'
          % (group, lane['longest_gap_us'] / 1000, lane['retries'], lane['timeouts']))
    if timeout == TIMEOUT:
        check_equal('timers of the source that ended', lane['timeouts'], 0)


@contextlib.contextmanager
def killed(lab, node):
    """In its block the node does not run."""
    output('castlab', 'stop', node, '--kill', '-l', lab.name)
    try:
        yield
    finally:
        output('castlab', 'start', node, '-l', lab.name)


@contextlib.contextmanager
def silent(a, b):
    """In its block what 'a' sends to 'b' is lost, and nobody says so."""
    castctl('link', 'impair', a, b, 'loss=100%')
    try:
        yield
    finally:
        castctl('--wait=agents', 'link', 'impair', a, b, 'none')


def wait_failed(group, gone):
    """Those in 'gone' leave plane A since it fails; the others have nothing to do with it."""
    wait_until('plane A is left by ' + ', '.join(gone), lambda: {used(group)[node] for node in gone} == {'B'})
    undisturbed('moves', moves(group), of_ends((0, 0), **dict.fromkeys(gone, (1, 0))))
    undisturbed('in use', used(group), of_ends('A', **dict.fromkeys(gone, 'B')))
    undisturbed('plane A is good', {node: end['states']['A'] == 'good' for node, end in ends(group).items()},
                of_ends(True, **dict.fromkeys(gone, False)))


def nothing_again(report):
    """Nothing was lost, and nothing sent again."""
    lane, = report['lanes']
    check_equal('went back', lane['retries'], 0)
    check_equal('packets sent', lane['sent'] & PSN_MASK, lane['next'] - report['start_psn'] & PSN_MASK)


def dies(node, *gone):
    """A node of the plane in use is killed, and comes back: that changes nothing any more."""
    def case(lab, group):
        with writing(lab, group) as (loop, report):
            with killed(lab, node):
                wait_failed(group, gone)
                loop.wait_progress('dpu1')
            wait_good(group)
            loop.wait_progress('dpu1')
            undisturbed('moves', moves(group), of_ends((0, 0), **dict.fromkeys(gone, (1, 0))))
        check(report['lanes'][0]['retries'] > 0, 'nothing was lost')
    return attempts(node + ' dies', case)


def loses(name, a, b, *gone):
    def case(lab, group):
        with writing(lab, group) as (loop, report):
            with silent(a, b):
                wait_failed(group, gone)
                check(lab.impaired()[a, b]['lost'] > 0, 'nothing was lost')
                loop.wait_progress('dpu1')
        check(report['lanes'][0]['retries'] > 0, 'the source has not sent again')
    return attempts(name, case)


def both(lab, group):
    """Each plane dies once: the first one has come back by then."""
    with writing(lab, group) as (loop, _):
        with killed(lab, 'spine5'):
            wait_failed(group, FAR)
        wait_good(group)
        with killed(lab, 'spine6'):
            wait_used(group, of_ends('A'))
            undisturbed('moves', moves(group), of_ends((0, 0), **dict.fromkeys(FAR, (2, 0))))
            loop.wait_progress('dpu1')


def agents_restart(lab, group):
    """The source's agent and an edge are killed and come back while a plane is dead: they find out again.  A
    new agent does not know what is confirmed, so nobody but the source's timer has it send again."""
    with writing(lab, group, timeout='16') as (loop, _):
        with killed(lab, 'spine5'):
            wait_failed(group, FAR)
            for agent in ('dpu3', 'dpu1'):
                output('castlab', 'restart', agent, '--kill', '-l', lab.name)
                wait_until('%s is back, and uses plane B' % agent, lambda: {
                    node: used(group).get(node) for node in FAR} == dict.fromkeys(FAR, 'B'))
                loop.wait_progress('dpu1')
                # dpu2 may leave a plane in which dpu1 is silent; the others have no better one.
                undisturbed('moves', {node: moves(group)[node] for node in FAR}, dict.fromkeys(FAR, (1, 0)))


def operator(lab, group):
    """What an operator wants changes planes, and nothing is lost or sent again."""
    with writing(lab, group) as (loop, report):
        for n, (want, words) in enumerate((
                ('B', ('group', 'plane', group, 'B')),
                ('A', ('path', 'exclude', 'spine6')),
                ('B', ('path', 'include', 'spine6')),
                ('A', ('group', 'plane', group, 'A')))):
            castctl('--wait=agents', *words)
            wait_used(group, of_ends(want))
            undisturbed('moves', moves(group), of_ends((0, n + 1)))
            loop.wait_progress('dpu1')
    nothing_again(report)


LINK = 'leaf1:spine5', 'spine5:leaf1'


def link_deleted(lab, group):
    """A link of the plane in use is deleted: what is on it is lost, if nodes hear of that before the agent
    does.  A link that comes back changes nothing."""
    with writing(lab, group) as (loop, _):
        castctl('--wait=agents', 'link', 'del', LINK[0], '--force')
        try:
            wait_used(group, of_ends('B'))
            undisturbed('moves', {sum(m) for m in moves(group).values()}, {1})
            loop.wait_progress('dpu1')
        finally:
            castctl('--wait=agents', 'link', 'add', *LINK)
        wait_good(group)
        undisturbed('moves', {sum(m) for m in moves(group).values()}, {1})


def link_excluded(lab, group):
    """Nothing is lost of a link that was excluded before it is deleted."""
    with writing(lab, group) as (loop, report):
        castctl('--wait=agents', 'path', 'exclude', *(end.split(':')[0] for end in LINK))
        wait_used(group, of_ends('B'))
        castctl('--wait=agents', 'link', 'del', LINK[0], '--force')
        loop.wait_progress('dpu1')
        castctl('--wait=agents', 'link', 'add', *LINK)
        loop.wait_progress('dpu1')
        undisturbed('moves', moves(group), of_ends((0, 1)))
    nothing_again(report)


CASES = [
    dies('spine5', *FAR),
    dies('leaf3', *FAR),
    dies('leaf1', *ENDS),
    loses('data are lost', 'leaf1', 'spine5', *FAR),
    loses('responses are lost', 'leaf3', 'spine5', *FAR),
    attempts('both', both),
    attempts('agents restart', agents_restart),
    attempts('operator', operator),
    attempts('link deleted', link_deleted),
    attempts('link excluded', link_excluded),
]
