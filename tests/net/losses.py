# SPDX-License-Identifier: Apache-2.0
"""Receivers that refuse data or fall silent in mid-transfer, and what fails beside them."""
import os
import re
import signal
import time

from netlab import Loop, group_add, model

from harness import (PATIENCE, RUNDIR, castctl, castctl_json, check, check_equal, output, run,
                     wait_until)
from trees import FIG1, NOAGG, check_confirmed

# Silence is found out soon, but nobody is silent who merely waits for a busy machine: not sooner
# than in the time that so many packets take to be confirmed.  The least that 4 * 4.096 us * 2^14
# allows is 269 ms.
LIVENESS_MIN, LIVENESS_PACKETS = 300, 4000
REM_ACCESS, REM_OP = 4, 5    # enum rc_status.


def begin(lab, group, receivers, root, *options, policy, settings=()):
    """A transfer that goes on, in a group of its own with these settings.  Returns it, and the liveness time in ms that
    suits it; none is set."""
    group_add(group, '--timeout', '14', '--liveness', '0', '--policy', policy, *settings)
    loop = Loop(lab, group, receivers, *options)
    loop.wait_progress(root, 1)
    begun = time.monotonic()
    loop.wait_progress(root, LIVENESS_PACKETS)
    return loop, max(LIVENESS_MIN, int((time.monotonic() - begun) * 1000))


def set_liveness(group, liveness):
    castctl('--wait=agents', 'group', 'set', group, '--liveness', str(liveness))


def start(lab, group, tree, *options, policy, settings=()):
    """A transfer in which silence is found out soon."""
    loop, liveness = begin(lab, group, tree.receivers, tree.root, *options, policy=policy,
                           settings=settings)
    set_liveness(group, liveness)
    return loop


def silence(group, height=1):
    """How the reason begins for which a node loses what is so many levels below it."""
    msec = height * castctl_json('group', 'show', group)['liveness_ms']
    return 'no progress for %s at PSN ' % ('%.3g s' % (msec / 1000) if msec >= 1000 else '%d ms' % msec)


def spoil(loop):
    loop.process.send_signal(signal.SIGUSR1)


def states(group):
    return {m['host']: (m['state'], m['status'])
            for m in castctl_json('group', 'show', group)['members']}


def expect_lost(group, *lost, ended=False):
    """Waits for these to be lost, and nobody else is.  Returns why, by name.  'ended': the model has,
    and all its receivers with it: the others are asked, and lost in their turn, sooner or later."""
    def condition():
        found = {host: why for host, (state, why) in states(group).items() if state == 'lost'}
        return (set(found) >= set(lost) if ended else set(found) == set(lost)) and found
    return wait_until('%s of %s are lost' % (lost, group), condition)


def expect_why(lab, group, host, pattern):
    """Why r3, the only receiver of n2, is lost: as n2 says, or, if the tree had ended before, as n4, which
    loses n2 for it; then it is in n2's log."""
    def reason():
        why = states(group)[host][1]
        behind = re.fullmatch(r'behind node n2: NAK 0x63 .* \(seen by n4\)', why)
        logged = re.search(r'group %s, epoch \d+: member %s is lost: %s$'
                           % (group, host, pattern), lab.log('n2'), re.M)
        return logged and (behind or re.fullmatch(pattern + r' \(seen by n2\)', why))
    wait_until('the reason why %s of %s is lost is %r' % (host, group, pattern), reason)


def expect_state(group, state):
    wait_until('%s is %s' % (group, state),
               lambda: castctl_json('group', 'show', group)['state'] == state)


def lost_at(lab, node, group):
    """How many branches the node's agent knows to be lost, whatever the registry says."""
    return lab.group(node, group)['lost']


def expect_error(loop, status):
    """The source's queue pair gets this error."""
    _, err = loop.process.communicate(timeout=PATIENCE)
    check('has status %d' % status in err, 'castmodel: exit status %d: %s',
          loop.process.returncode, err)


def goes_on(loop, tree, *without):
    """The others get and confirm everything."""
    loop.wait_progress(tree.root)
    loop.stop(without=without)


class down:
    """A daemon of the lab that is not there in this block."""

    def __init__(self, lab, name):
        self.name = name
        path = os.path.join(RUNDIR, 'lab', lab.name,
                            {'ovsdb': 'ovsdb-server'}.get(name, name) + '.pid')
        with open(path) as f:
            self.pid = int(f.read())

    def __enter__(self):
        os.kill(self.pid, signal.SIGKILL)

    def __exit__(self, kind, value, tb):
        output('castlab', 'restart', self.name)


def silent_is_pruned(lab):
    """The only receiver of an edge; the edge's whole branch goes."""
    loop = start(lab, 'sp', FIG1, '--silent', 'r3', policy='prune')
    spoil(loop)
    expect_lost('sp', 'r3')
    expect_why(lab, 'sp', 'r3', re.escape(silence('sp')) + r'\d+')
    goes_on(loop, FIG1, 'r3')
    expect_state('sp', 'degraded')
    wait_until('n2 has no tree', lambda: 'n2' not in
               [n['node'] for n in castctl_json('tree', 'show', 'sp')['nodes']])
    output('castctl', 'group', 'wait', 'sp', '--members', '4')


def silent_fails_group(lab):
    """The source gets the error, and a new epoch has everybody again."""
    loop = start(lab, 'sf', FIG1, '--silent', 'r1', policy='fail-group')
    spoil(loop)
    expect_error(loop, REM_OP)
    expect_lost('sf', 'r1', ended=True)
    p = run('castctl', '--timeout', str(PATIENCE), 'group', 'wait', 'sf')
    check(p.returncode == 2 and 'member r1 is lost: no progress' in p.stderr,
          'group wait: exit status %d: %s', p.returncode, p.stderr)
    drawn = output('castctl', 'tree', 'show', 'sf')
    check([line for line in drawn.splitlines() if '- r1 ' in line and 'LOST, silent' in line],
          'r1 is not drawn as lost:\n%s', drawn)
    castctl('group', 'set', 'sf', '--liveness', '17180')
    lane, = model('sf', FIG1.receivers)['lanes']
    check_confirmed(lab, 'sf', FIG1, lane['next'])
    check_equal('members', {state for state, _ in states('sf').values()}, {'active'})


def refusal_is_pruned(lab):
    loop = start(lab, 'rp', FIG1, '--refuse', 'r1,r4', policy='prune')
    spoil(loop)
    for why in expect_lost('rp', 'r1', 'r4').values():
        check(why.startswith('NAK 0x62 (remote access error) at PSN '), '%s', why)
    goes_on(loop, FIG1, 'r1', 'r4')
    expect_state('rp', 'degraded')


def refusal_fails_group(lab):
    """Named, although several nodes are between the receiver and the source."""
    loop = start(lab, 'rf', FIG1, '--refuse', 'r5', policy='fail-group')
    spoil(loop)
    expect_error(loop, REM_ACCESS)
    check(expect_lost('rf', 'r5', ended=True)['r5'].endswith(' (seen by n3)'), '%s', states('rf')['r5'])
    expect_state('rf', 'failed')


def all_of_an_edge(lab):
    """The edge loses one, and then its last, which only a node above can go on without."""
    loop = start(lab, 'ae', FIG1, '--silent', 'r4,r5', policy='prune')
    spoil(loop)
    expect_lost('ae', 'r4', 'r5')
    goes_on(loop, FIG1, 'r4', 'r5')
    expect_state('ae', 'degraded')


def slow_is_reported(lab):
    """Alive, and in everybody's way: the group says who it is and by how much, as long as it is
    so."""
    loop = start(lab, 'sl', FIG1, '--slow', 'r1', policy='prune')
    castctl('group', 'set', 'sl', '--min-rate', '50')
    spoil(loop)
    expect_state('sl', 'slow')
    shown = castctl_json('group', 'show', 'sl')
    pattern = r'r1 slow: confirms \d+(\.\d)? packets/s, the least is 50 \(seen by n1\)'
    check(re.fullmatch(pattern, shown['status']), 'status: %s', shown['status'])
    check_equal('members', {host: state for host, (state, _) in states('sl').items()},
                dict.fromkeys(FIG1.receivers, 'active') | {'r1': 'slow'})
    listed = [g for g in castctl_json('group', 'list') if g['name'] == 'sl']
    check_equal('listed', (listed[0]['state'], listed[0]['active_members']), ('slow', 5))
    output('castctl', 'group', 'wait', 'sl', '--members', '5')
    # Of 16 RNR NAKs for each packet, with two times in turn, a node says two at most.
    branch, = [b for b in lab.group('n1', 'sl')['branches'] if b['name'] == 'r1']
    check(branch['slow'] and branch['dups'] >= 14 * branch['rnrs'] // 2, 'r1 at n1: %s', branch)
    drawn = output('castctl', 'tree', 'show', 'sl')
    check([line for line in drawn.splitlines() if '- r1 ' in line and '  SLOW  ' in line],
          'r1 is not drawn as slow:\n%s', drawn)
    spoil(loop)
    expect_state('sl', 'ready')
    loop.wait_progress(FIG1.root)
    loop.stop()


def slow_is_lost(lab):
    loop = start(lab, 'so', FIG1, '--slow', 'r3', policy='prune')
    castctl('group', 'set', 'so', '--min-rate', '50', '--slow', 'lose')
    spoil(loop)
    expect_lost('so', 'r3')
    expect_why(lab, 'so', 'r3', r'slower than 50 packets/s at PSN \d+')
    goes_on(loop, FIG1, 'r3')
    expect_state('so', 'degraded')


def everybody(lab):
    """Nobody is left: the source gets the error although the policy is to go on."""
    loop = start(lab, 'ev', FIG1, '--silent', ','.join(FIG1.receivers), policy='prune')
    spoil(loop)
    expect_error(loop, REM_OP)
    expect_lost('ev', *FIG1.receivers)
    expect_state('ev', 'failed')


def only_receiver(lab):
    for policy in ('prune', 'fail-group'):
        loop, liveness = begin(lab, 'or-' + policy, ['r3'], FIG1.root, '--silent', 'r3',
                               policy=policy)
        set_liveness('or-' + policy, liveness)
        spoil(loop)
        expect_error(loop, REM_OP)
        expect_lost('or-' + policy, 'r3', ended=True)
        expect_state('or-' + policy, 'failed')


def dead_node(lab):
    """A node that says nothing any more stands for all that is behind it."""
    loop = start(lab, 'dn', FIG1, policy='prune')
    with down(lab, 'n4'):
        lost = expect_lost('dn', 'r1', 'r2', 'r3')
        check(all(why.startswith('behind node n4: ' + silence('dn', 3)) for why in lost.values()),
              'lost: %s', lost)
        loop.wait_progress(FIG1.root)
    goes_on(loop, FIG1, 'r1', 'r2', 'r3')
    expect_state('dn', 'degraded')


def registry_down(lab):
    """The group goes on without its registry, which is told when it is back."""
    loop = start(lab, 'rd', FIG1, '--silent', 'r2', policy='prune')
    with down(lab, 'ovsdb'):
        spoil(loop)
        wait_until('n1 has lost r2', lambda: lost_at(lab, 'n1', 'rd'))
        loop.wait_progress(FIG1.root)
    expect_lost('rd', 'r2')
    goes_on(loop, FIG1, 'r2')


def castd_down(lab):
    """As before; and an edge that is restarted before castd is back finds out again."""
    loop, liveness = begin(lab, 'cd', FIG1.receivers, FIG1.root, '--silent', 'r2', policy='prune')
    set_liveness('cd', 3 * liveness)  # the restart takes a part of what the node may be silent.
    with down(lab, 'castd'):
        spoil(loop)
        wait_until('n1 has lost r2', lambda: lost_at(lab, 'n1', 'cd'))
        loop.wait_progress(FIG1.root)
        check_equal('r2', states('cd')['r2'][0], 'active')
        output('castlab', 'restart', 'n1')
        wait_until('n1 has lost r2 again', lambda: lost_at(lab, 'n1', 'cd'))
        loop.wait_progress(FIG1.root)
    expect_lost('cd', 'r2')
    goes_on(loop, FIG1, 'r2')


def edge_restarted(lab):
    """After the loss, with either policy."""
    loop = start(lab, 'er', FIG1, '--silent', 'r2', policy='prune')
    spoil(loop)
    expect_lost('er', 'r2')
    output('castlab', 'restart', 'n1')
    goes_on(loop, FIG1, 'r2')
    loop = start(lab, 'ef', FIG1, '--silent', 'r2', policy='fail-group')
    spoil(loop)
    expect_lost('ef', 'r2')
    output('castlab', 'restart', 'n1')
    expect_state('ef', 'failed')
    expect_error(loop, REM_OP)
    expect_lost('ef', 'r2', ended=True)


def policy_changed(lab):
    """In mid-transfer, before the loss."""
    loop = start(lab, 'pc', FIG1, '--refuse', 'r1', policy='fail-group')
    castctl('--wait=agents', 'group', 'set', 'pc', '--policy', 'prune')
    loop.wait_progress(FIG1.root)
    spoil(loop)
    expect_lost('pc', 'r1')
    goes_on(loop, FIG1, 'r1')


def resent(lab, group):
    """Packets that r2 has already: it is spared copies of them."""
    return next(b['filtered'] for b in lab.group('n1', group)['branches'] if b['name'] == 'r2')


def never_silent(lab):
    """With liveness 0 a silent receiver is waited for; with a time, set only then, it is lost."""
    loop, liveness = begin(lab, 'ns', FIG1.receivers, FIG1.root, '--silent', 'r1', policy='prune')
    spoil(loop)
    before = resent(lab, 'ns')
    wait_until('the source asks again', lambda: resent(lab, 'ns') >= before + 20)
    stuck = lab.group('n6', 'ns')['confirmed']
    wait_until('and again', lambda: resent(lab, 'ns') >= before + 40)
    check_equal('confirmed', lab.group('n6', 'ns')['confirmed'], stuck)
    check_equal('lost', lost_at(lab, 'n1', 'ns'), 0)
    set_liveness('ns', liveness)
    expect_lost('ns', 'r1')
    goes_on(loop, FIG1, 'r1')


def agent_is_root(lab):
    """A source agent loses a node and reports it."""
    loop = start(lab, 'ar', NOAGG, '--silent', 'r4', policy='prune')
    spoil(loop)
    expect_lost('ar', 'r4')
    goes_on(loop, NOAGG, 'r4')
    castctl('group', 'set', 'ar', '--liveness', '0')    # its receivers' addresses are used again
    loop = start(lab, 'an', NOAGG, policy='prune')
    with down(lab, 'n6'):
        why = expect_lost('an', 'r4')['r4']
        check(why.startswith('behind node n6: ' + silence('an', 3))
              and why.endswith('(seen by sa)'), 'r4 is lost: %s', why)
        loop.wait_progress('sa')
    goes_on(loop, NOAGG, 'r4')


FIG1_CASES = [silent_is_pruned, silent_fails_group, slow_is_reported, slow_is_lost, refusal_is_pruned, refusal_fails_group,
              all_of_an_edge, everybody, only_receiver, dead_node, registry_down, castd_down,
              edge_restarted, policy_changed, never_silent]
