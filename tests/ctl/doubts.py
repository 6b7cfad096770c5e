# SPDX-License-Identifier: Apache-2.0
"""Who wants the place of a member that is registered: whether it gets that, the edge finds out."""
import os
import signal
import subprocess

from losses import MEMBER, SILENT, all_applied, ready_group, report
from watch import Watch
from world import BIN, PATIENCE, check, check_equal, wait_until


def ask(w, host, qpn, options=''):
    """castctl, which waits until it is decided."""
    words = ((MEMBER + ' ' + options) % (host, qpn)).split()
    return subprocess.Popen([os.path.join(BIN, 'castctl'), *words], env=w.env, text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)


def ends(asked, status, says=''):
    _, err = asked.communicate(timeout=PATIENCE)
    check_equal('castctl', (asked.returncode, err), (status, says and 'castctl: %s\n' % says))


def doubt(w, node, host):
    """What the edge is to ask; None: nothing."""
    value = w.tree(node)['branches'][host]['doubt']
    return None if value == ['set', []] else value


def expect_doubt(w, node, host, number):
    wait_until('doubt %s of %s' % (number, host), lambda: doubt(w, node, host) == number)


def say(w, column, node, host, number):
    """The edge's agent says what came of a doubt."""
    tree = w.tree(node)
    w.db.update('Tree_Node', {'_uuid': tree['_uuid']},
                **{column: ['map', [[tree['branches'][host]['id'], number]]]})


def pending(w, host):
    return w.db.row('Member', host=host)['new_qpn'] != ['set', []]


def alive_stays(w):
    """It is asked, answers, and stays; the one who wanted its place is told."""
    ready_group(w, 'fail-group', ['r1', 'r2'])
    w.set_started()
    first = ask(w, 'r1', 20)
    expect_doubt(w, 'n1', 'r1', 1)
    w.expect_member('r1', 'active', '^QPN 0x14 is to take its place: waiting for node n1 ')
    check_equal('the edge', w.tree('n1')['branches']['r1']['qpn'], 17)
    check_equal('others', doubt(w, 'n1', 'r2'), None)
    w.apply('n1')
    w.expect_member('r1', 'active', '^QPN 0x14 is to take its place: node n1 asks its queue pair$')
    w.restart_castd()
    w.settled()
    check(first.poll() is None, 'castctl has not waited')
    say(w, 'answered', 'n1', 'r1', 1)
    why = 'r1 is registered with QPN 0x11, and its queue pair answers'
    ends(first, 2, 'member add: ' + why)
    w.expect_member('r1', 'active', '^%s$' % why)
    check_equal('the edge', doubt(w, 'n1', 'r1'), None)
    # What was answered before is no answer now.
    w.refused('--timeout 1 ' + MEMBER % ('r1', 21) + ' --replace', 3,
              'not decided after 1 s: r1 is registered in epoch 1 of group g with QPN 0x11, and '
              r'whether that is alive is not known: QPN 0x15 is .*: waiting for node n1 \(gener')
    check_equal('the edge', doubt(w, 'n1', 'r1'), 2)
    say(w, 'answered', 'n1', 'r1', 2)
    wait_until('refused', lambda: not pending(w, 'r1'))
    w.apply_all_until('all is applied', lambda: all_applied(w))
    w.expect_state('ready', '^$')
    check_equal('r1', (w.member('r1')['qpn'], w.members_at('a0')), (17, (['r1', 'r2'], True)))


def dead_is_replaced(w):
    """One that owes nothing leaves, and the group goes on, also with policy fail-group."""
    ready_group(w, 'fail-group', ['r1', 'r2'])
    w.set_started()
    old = w.tree('n1')['branches']['r1']['id']
    asked = ask(w, 'r1', 20)
    expect_doubt(w, 'n1', 'r1', 1)
    w.apply('n1')
    w.restart_castd()
    say(w, 'silent', 'n1', 'r1', 1)
    ends(asked, 0)
    w.expect('a0', (['r2'], True))
    w.settled()
    check_equal('n1, before the agent applied', w.tree('n1')['branches']['r1']['id'], old)
    w.expect_state('ready')
    w.expect_member('r1', 'joining', '^waiting for node ')
    w.apply_all_until('r1 is admitted', lambda: w.member('r1')['status']
                      == 'waiting for the next message')
    new = w.tree('n1')['branches']['r1']
    check_equal('QPN', new['qpn'], 20)
    check(new['id'] > old, 'the same branch, %d', old)
    w.say_joined('n1', r1=9)
    w.apply_all_until('r1 is active', lambda: w.member('r1')['state'] == 'active')
    w.apply_all_until('all is applied', lambda: all_applied(w))
    w.expect_state('ready', '^$')
    check_equal('r1', (w.member('r1')['qpn'], w.member('r1')['first_psn']), (20, 9))


def replaced_unwatched(w):
    """A watch that did not run between two registrations says of the second one that it is active, as of any."""
    ready_group(w, 'fail-group', ['r1', 'r2'])
    w.set_started()
    with Watch(w, 'g') as watch:
        watch.take('g:ready=')
        watch.process.send_signal(signal.SIGSTOP)
        asked = ask(w, 'r1', 20)
        expect_doubt(w, 'n1', 'r1', 1)
        w.apply('n1')
        say(w, 'silent', 'n1', 'r1', 1)
        ends(asked, 0)
        w.apply_all_until('r1 is admitted', lambda: w.member('r1')['status'] == 'waiting for the next message')
        w.say_joined('n1', r1=9)
        w.apply_all_until('r1 is active', lambda: w.member('r1')['state'] == 'active')
        watch.process.send_signal(signal.SIGCONT)
        check('g:r1:replaced' in watch.take('g:r1:active'), 'told %r', watch.words())
        check_equal('r1', [watch.last()[k] for k in ('qpn', 'first_psn')], [20, 9])


def lost_is_replaced(w):
    """One that owes something is lost: policy prune goes on without it, and it is replaced."""
    ready_group(w, 'prune', ['r1', 'r2'])
    w.set_started()
    asked = ask(w, 'r1', 20)
    expect_doubt(w, 'n1', 'r1', 1)
    w.apply('n1')
    report(w, 'n1', 'r1', 'its queue pair does not answer')
    ends(asked, 0)
    w.apply_all_until('r1 is admitted', lambda: w.member('r1')['status']
                      == 'waiting for the next message')
    check_equal('QPN', w.tree('n1')['branches']['r1']['qpn'], 20)
    w.expect_state('ready')


def lost_fails(w):
    """With policy fail-group the epoch is over."""
    ready_group(w, 'fail-group', ['r1', 'r2'])
    w.set_started()
    asked = ask(w, 'r1', 20)
    expect_doubt(w, 'n1', 'r1', 1)
    report(w, 'n1', 'r1', SILENT)
    ends(asked, 2, 'member add: r1 is lost in epoch 1 of group g, which has failed: castctl group '
                   'reset g starts another')
    w.expect_state('failed', '^member r1 is lost')


def nobody_to_ask(w):
    """Who is not served yet stays, unless --replace says that it may go; and who is behind a node that
    was deleted is not found out about."""
    w.ready_group(['r1'])
    w.set_started()
    w.castctl('member add g r9 --qpn 17 --rkey 8 --va 0 --len 4096')
    w.expect_member('r9', 'joining', 'joins in the next epoch')
    w.refused(MEMBER % ('r9', 20), 2, 'r9 is registered in epoch 1 of group g with QPN 0x11 already')
    w.refused(MEMBER % ('r9', 17) + ' --replace', 2, 'with QPN 0x11 already')
    w.castctl(MEMBER % ('r9', 20) + ' --replace')
    check_equal('r9', (w.member('r9')['qpn'], w.member('r9')['va']), (20, '0x1000'))
    w.castctl(MEMBER % ('r9', 20) + ' --replace --may-exist')
    w.db.transact({'op': 'delete', 'table': 'Node', 'where': [['name', '==', 'n1']]})
    w.expect_state('failed')
    w.refused(MEMBER % ('r1', 20) + ' --replace', 2,
              'r1 is registered with QPN 0x11, and no node has it that could ask whether that is '
              'alive .castctl member remove g r1.$')


def overtaken(w):
    """A later request takes the place of an earlier one; an epoch that ends, or the member's leaving,
    ends both."""
    ready_group(w, 'fail-group', ['r1', 'r2'])
    w.set_started()
    first = ask(w, 'r1', 20)
    expect_doubt(w, 'n1', 'r1', 1)
    second = ask(w, 'r1', 21)
    ends(first, 2, 'member add: another registration came in between of r1')
    check_equal('the edge', doubt(w, 'n1', 'r1'), 1)
    w.castctl('group reset g')
    ends(second, 2, 'member add: group g is in epoch 2, not 1')
    w.castctl('source set g --host h0 --qpn 18')
    for host in ('r1', 'r2'):
        w.castctl(MEMBER % (host, 22))
    w.apply_all_until('ready', lambda: w.show()['state'] == 'ready' and all_applied(w))
    third = ask(w, 'r2', 23)
    expect_doubt(w, 'n1', 'r2', 1)
    w.castctl('member leave g r2')
    ends(third, 2, 'member add: r2 is leaving group g')
    w.apply_all_until('r2 has left', lambda: w.member('r2')['state'] == 'left')
    w.castctl(MEMBER % ('r2', 23))
    check_equal('r2', w.member('r2')['qpn'], 23)


CASES = (alive_stays, dead_is_replaced, replaced_unwatched, lost_is_replaced, lost_fails, nobody_to_ask, overtaken)
