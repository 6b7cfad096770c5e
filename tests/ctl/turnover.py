# SPDX-License-Identifier: Apache-2.0
"""Receivers whose queue pairs outlive an epoch: what castd makes of what edges find out."""
import signal

from losses import REFUSED, SILENT, all_applied, report
from watch import Watch
from world import check_equal, wait_until

KEPT = 'member add g %s --qpn %d --rkey 7 --va 0x1000 --len 4096 --keep'
PLAIN = 'member add g %s --qpn %d --rkey 7 --va 0x1000 --len 4096'
ASKED = '^where its queue pair stands is being asked$'
HALF = 'restart needed: its queue pair has a part of a message at PSN 9'
DEAD = 'its queue pair does not answer'


def ready_kept(w, policy, kept, plain=()):
    """A started group g, whose source is h0 behind a0; h8 is behind a8, which is at n2."""
    w.star()
    w.castctl('node add a8 --id 520 --role agent')
    w.castctl('host add h8 --address fd00:1::108')
    w.castctl('link add h8:th8 a8:th8')
    w.castctl('link add a8:up n2:a8')
    w.castctl('group add g --psn 1000 --policy ' + policy)
    for host in kept:
        w.castctl(KEPT % (host, 17))
    for host in plain:
        w.castctl(PLAIN % (host, 17))
    w.castctl('source set g --host h0 --qpn 18')
    w.apply_all_until('ready', lambda: w.show()['state'] == 'ready')
    check_equal('the members', {h: w.member(h)['state'] for h in (*kept, *plain)},
                dict.fromkeys((*kept, *plain), 'active'))
    w.set_started()


def asked(w, node):
    """What the node's branches of receivers have: join, PSN, whom they answer, by name."""
    tree = w.tree(node, w.show()['epoch'])

    def value(column):
        return None if column == ['set', []] else column
    return {name: (value(b['join']), value(b['psn']), value(b['designated_qpn']))
            for name, b in (tree['branches'] if tree else {}).items() if b['kind'] == 'receiver'}


def until_asked(w, node, hosts, qpn=0x101):
    w.apply_all_until('%r are asked' % (hosts,), lambda: asked(w, node) == dict.fromkeys(
        hosts, ('ask', None, qpn)) and all_applied(w))


def say_found(w, node, **psns):
    """The node's agent says what queue pairs expect, by name."""
    tree = w.tree(node, w.show()['epoch'])
    w.db.update('Tree_Node', {'_uuid': tree['_uuid']}, found=['map', [
        [tree['branches'][name]['id'], psn] for name, psn in psns.items()]])


def expect_ready(w, hosts):
    w.apply_all_until('ready', lambda: w.show()['state'] == 'ready')
    check_equal('active', {m['host'] for m in w.show()['members'] if m['state'] == 'active'},
                set(hosts))
    check_equal('the agent names', w.tree('a0', w.show()['epoch'])['copies'].keys(), set(hosts))


def all_found(w):
    """In each step: who does what, and in which order; castd is another one after each."""
    ready_kept(w, 'fail-group', ('r1', 'r9'))
    ids = {m['host']: m['branch'] for m in w.db.rows('Member')}
    w.castctl('source set g --host h0 --qpn 19')
    w.restart_castd()
    w.settled()
    # Old copies come as long as the agent has not applied that its tree has gone.
    check_equal('the group', (w.show()['epoch'], w.show()['state']), (2, 'pending'))
    w.expect_member('r1', 'joining', '^waiting for node a0 ')
    w.expect_state('pending', '^waiting for node a0 .*; asking r1, r9 where the queue pair stands$')
    check_equal('told', (asked(w, 'n1'), asked(w, 'n2')), ({}, {}))
    w.apply('a0')
    w.expect('n1', ['n2', 'r1'], 2)
    check_equal('the old trees', (w.tree('n1', 1), w.tree('n2', 1)), (None, None))
    w.restart_castd()
    w.settled()
    check_equal('told', (asked(w, 'n1'), asked(w, 'n2')),
                ({'r1': ('ask', None, 0x101)}, {'r9': ('ask', None, 0x101)}))
    check_equal('the agent', w.tree('a0', 2), None)
    check_equal('other branches', {m['host']: m['branch'] > max(ids.values())
                                   for m in w.db.rows('Member')}, {'r1': True, 'r9': True})
    w.expect_member('r1', 'joining', '^waiting for node n1 ')
    w.apply('n1')
    w.apply('n2')
    w.expect_member('r1', 'joining', ASKED)
    w.expect_member('r9', 'joining', ASKED)
    w.expect_state('pending', '^asking r1, r9 where the queue pair stands$')
    w.refused('--timeout 1 group wait g --members 2', 3, 'r1 joining: where its queue pair')
    say_found(w, 'n1', r1=1077)
    w.expect_state('pending', 'asking r9 where')
    w.restart_castd()
    w.settled()
    check_equal('r1', (asked(w, 'n1'), w.db.row('Member', host='r1')['psn']),
                ({'r1': (None, 1077, 0x101)}, 1077))
    w.apply('n1')
    w.settled()
    check_equal('the agent', w.tree('a0', 2), None)
    check_equal('started', w.show()['started'], False)
    say_found(w, 'n2', r9=1000)  # the start PSN, as it happens.
    wait_until('r9 is found', lambda: asked(w, 'n2') == {'r9': (None, None, 0x101)})
    w.restart_castd()
    w.settled()
    check_equal('the agent, before n2 has applied', w.tree('a0', 2), None)
    w.apply('n2')
    w.expect('a0', (['r1', 'r9'], True), 2)
    expect_ready(w, ('r1', 'r9'))
    check_equal('first PSNs', {w.member(h)['first_psn'] for h in ('r1', 'r9')}, {1000})
    w.refused(KEPT % ('r1', 17), 2, 'is registered in epoch 2 .* with QPN 0x11 already')
    w.castctl('group wait g --members 2 --epoch 2')
    shown = w.member('r1')
    check_equal('shown', (shown['keep'], shown['designated_qpn'], shown['epoch'], shown['psn']),
                (True, 0x101, 2, 1077))
    # The edge takes its report back when it sees that it was taken up; the next epoch asks again.
    w.db.update('Tree_Node', {'_uuid': w.tree('n1')['_uuid']}, found=['map', []])
    w.set_started()
    w.castctl('group reset g')
    check_equal('the group', (w.show()['epoch'], w.show()['designated_qpn']), (3, 0x103))
    w.expect_member('r1', 'joining', '^the source must be set again')
    w.castctl('source set g --host h0 --qpn 19')
    until_asked(w, 'n1', ['r1'])
    until_asked(w, 'n2', ['r9'])
    say_found(w, 'n1', r1=5)
    say_found(w, 'n2', r9=6)
    expect_ready(w, ('r1', 'r9'))


def some_lost(w, policy):
    """One has half a message, one is silent: they are out, and nobody else is hurt."""
    ready_kept(w, policy, ('r1', 'r2', 'r3', 'r9'))
    w.castctl('source set g --host h0 --qpn 19')
    until_asked(w, 'n1', ['r1', 'r2', 'r3'])
    report(w, 'n1', 'r2', HALF, 2)
    w.expect_member('r2', 'lost', '^restart needed: .* .seen by n1.$')
    w.restart_castd()
    report(w, 'n2', 'r9', DEAD, 2)
    w.expect_member('r9', 'lost', '^%s .seen by n2.$' % DEAD)
    w.apply_all_until('they are out', lambda: sorted(asked(w, 'n1')) == ['r1', 'r3']
                      and not w.tree('n2', 2) and all_applied(w))
    check_equal('the group', (w.show()['started'], w.db.row('Group', name='g')['lost']),
                (False, ''))
    w.expect_state('pending', '^asking r1, r3 where')
    say_found(w, 'n1', r1=5, r3=6)
    w.apply_all_until('degraded', lambda: w.show()['state'] == 'degraded' and all_applied(w))
    w.expect_state('degraded', '^r2 lost: restart needed: .*; r9 lost: ' + DEAD)
    check_equal('the agent', w.members_at('a0', 2), (['r1', 'r3'], True))
    # It comes back as any other, before the epoch's first packet and after it.
    w.castctl(KEPT % ('r9', 20))
    w.apply_all_until('r9 is active', lambda: w.member('r9')['state'] == 'active')
    check_equal('r9', asked(w, 'n2'), {'r9': (None, None, None)})
    w.set_started()
    w.castctl(KEPT % ('r2', 21))
    w.apply_all_until('r2 is admitted', lambda: asked(w, 'n1')['r2'] == ('admit', None, None)
                      and all_applied(w))


def some_lost_fail_group(w):
    some_lost(w, 'fail-group')


def some_lost_prune(w):
    some_lost(w, 'prune')


def all_lost(w):
    """The epoch goes on to wait for members: nothing of it was lost."""
    for policy in ('prune', 'fail-group'):
        if policy == 'prune':
            ready_kept(w, policy, ('r1', 'r2'))
        else:
            w.castctl('group set g --policy fail-group')
            w.castctl('source set g --host h0 --qpn 20')
            for host in ('r1', 'r2'):
                w.castctl(KEPT % (host, 22))
            w.apply_all_until('ready', lambda: w.show()['state'] == 'ready')
        w.castctl('source set g --host h0 --qpn 21')
        epoch = w.show()['epoch']
        qpn = w.db.row('Member', host='r1')['designated_qpn']
        until_asked(w, 'n1', ['r1', 'r2'], qpn)
        report(w, 'n1', 'r1', DEAD, epoch)
        report(w, 'n1', 'r2', HALF, epoch)
        w.expect_member('r2', 'lost', '^restart needed')
        w.apply_all_until('all are out', lambda: not w.tree('n1') and all_applied(w))
        w.expect_state('pending', '^waiting for members')
    w.castctl(KEPT % ('r1', 30))
    w.apply_all_until('r1 is active', lambda: w.member('r1')['state'] == 'active')


def registers_again(w):
    """Its host says that it has another queue pair: that is so, whatever an edge has found out."""
    ready_kept(w, 'fail-group', ('r1', 'r2', 'r3'))
    w.castctl('source set g --host h0 --qpn 19')
    w.castctl(KEPT % ('r1', 20))                     # before its edge asks.
    w.apply_all_until('they are asked', lambda: asked(w, 'n1') == {
        'r1': (None, None, None), 'r2': ('ask', None, 0x101), 'r3': ('ask', None, 0x101)})
    before = w.db.row('Member', host='r2')['branch']
    say_found(w, 'n1', r2=5, r3=6)
    wait_until('r2 is found', lambda: w.db.row('Member', host='r2')['psn'] == 5)
    w.castctl(KEPT % ('r2', 17) + ' --may-exist')    # the same number, after a reset.
    w.restart_castd()
    expect_ready(w, ('r1', 'r2', 'r3'))
    row = w.db.row('Member', host='r2')
    check_equal('r2', (row['branch'] > before, row['psn'], row['designated_qpn'], row['keep']),
                (True, ['set', []], ['set', []], True))
    check_equal('n1', asked(w, 'n1'), {'r1': (None, None, None), 'r2': (None, None, None),
                                       'r3': (None, 6, 0x101)})
    w.refused(KEPT % ('r3', 17), 2, 'is registered in epoch 2 .* with QPN 0x11 already')
    w.castctl(KEPT % ('r2', 17) + ' --may-exist')
    w.refused(PLAIN % ('r2', 17) + ' --may-exist', 2, 'is registered in epoch 2')
    # The next epoch keeps each with the number that its queue pair was connected to.
    w.castctl('group reset g')
    check_equal('connected to', {m['host']: m['designated_qpn'] for m in w.db.rows('Member')},
                {'r1': 0x102, 'r2': 0x102, 'r3': 0x101})


def twice_quickly(w):
    """Another source comes while queue pairs are asked, and again before the agent has heard."""
    ready_kept(w, 'fail-group', ('r1', 'r2'))
    w.castctl('source set g --host h0 --qpn 19')
    until_asked(w, 'n1', ['r1', 'r2'])
    say_found(w, 'n1', r1=5)
    wait_until('r1 is found', lambda: asked(w, 'n1')['r1'] == (None, 5, 0x101))
    late = w.tree('n1', 2)['branches']['r2']['id']
    w.castctl('--wait=none source set g --host h8 --qpn 20')
    w.castctl('--wait=none source set g --host h0 --qpn 21')
    w.castctl('source set g --host h0 --qpn 22')
    epoch = w.show()['epoch']
    w.restart_castd()
    w.apply_all_until('both are asked again', lambda: asked(w, 'n1') == {
        'r1': ('ask', None, 0x101), 'r2': ('ask', None, 0x101)} and all_applied(w))
    check_equal('trees of one epoch', {t['epoch'] for t in w.db.rows('Tree_Node')}, {epoch})
    # What the edge says of an earlier branch means nothing.
    tree = w.tree('n1')
    w.db.update('Tree_Node', {'_uuid': tree['_uuid']}, found=['map', [[late, 77]]])
    w.settled()
    check_equal('r2', asked(w, 'n1')['r2'], ('ask', None, 0x101))
    say_found(w, 'n1', r1=6, r2=7)
    expect_ready(w, ('r1', 'r2'))
    check_equal('n1', asked(w, 'n1'), {'r1': (None, 6, 0x101), 'r2': (None, 7, 0x101)})


def without_keep(w):
    """It registers again, as ever; nobody waits for it, but for those who are kept."""
    ready_kept(w, 'prune', ('r1', 'r3'), ('r2',))
    w.castctl('member leave g r3')
    w.apply_all_until('r3 has left', lambda: w.member('r3')['state'] == 'left')
    w.castctl('source set g --host h0 --qpn 19')
    w.expect_member('r2', 'joining', '^must register again in epoch 2$')
    until_asked(w, 'n1', ['r1'])
    check_equal('r3', (w.member('r3')['state'], w.member('r3')['epoch']), ('left', 1))
    w.castctl(PLAIN % ('r2', 20))
    w.apply_all_until('r2 is told', lambda: sorted(asked(w, 'n1')) == ['r1', 'r2']
                      and all_applied(w))
    w.settled()
    check_equal('the agent', w.tree('a0', 2), None)
    say_found(w, 'n1', r1=5)
    expect_ready(w, ('r1', 'r2'))


def other_host(w):
    """The new source is behind another agent, whose tree has another root.  The old agent is to
    have stopped before anybody is asked, and nobody else has to."""
    ready_kept(w, 'fail-group', ('r1', 'r9'))
    w.castctl('source set g --host h8 --qpn 19')
    for node in ('n1', 'n2', 'a8'):
        w.apply(node)
    w.settled()
    check_equal('told', (asked(w, 'n1'), asked(w, 'n2')), ({}, {}))
    w.expect_member('r9', 'joining', '^waiting for node a0 ')
    w.apply('a0')
    until_asked(w, 'n1', ['r1'])
    until_asked(w, 'n2', ['r9'])
    check_equal('roots', (w.tree('n1')['root'], w.tree('n2')['root'],
                          w.tree('n1')['source_address']), (False, True, 'fd00:1::108'))
    say_found(w, 'n1', r1=5)
    say_found(w, 'n2', r9=6)
    w.apply_all_until('ready', lambda: w.show()['state'] == 'ready')
    check_equal('the agents', (w.tree('a0'), w.members_at('a8')), (None, (['r1', 'r9'], True)))
    # And back, while the agent of the new one is gone: it cannot send any more.
    w.set_started('a8')
    w.castctl('source set g --host h0 --qpn 20')
    w.settled()
    check_equal('told', asked(w, 'n1'), {})
    w.castctl('source del g')
    w.castctl('link del a8:up --force')
    w.cut_host('a8', 'h8')
    w.castctl('node del a8')
    w.castctl('source set g --host h0 --qpn 20')
    until_asked(w, 'n1', ['r1'])


def leaves_meanwhile(w):
    """Who is asked leaves, is removed, or its group is deleted: nobody waits for its answer, and
    what comes later means nothing."""
    ready_kept(w, 'fail-group', ('r1', 'r2', 'r3'))
    w.castctl('source set g --host h0 --qpn 19')
    until_asked(w, 'n1', ['r1', 'r2', 'r3'])
    edge = w.tree('n1')
    w.castctl('member leave g r1')
    w.castctl('--wait=none member remove g r2')
    say_found(w, 'n1', r3=6)
    w.restart_castd()
    expect_ready(w, ('r3',))
    w.apply_all_until('r1 and r2 are out', lambda: [m['state'] for m in w.show()['members']]
                      == ['left', 'active'])
    w.set_started()
    wait_until('the epoch has started', lambda: w.show()['started'])
    # The late answer of one who left, and who comes again meanwhile.
    w.castctl(KEPT % ('r1', 20))
    w.apply_all_until('r1 is admitted', lambda: asked(w, 'n1')['r1'] == ('admit', None, None)
                      and all_applied(w))
    w.db.update('Tree_Node', {'_uuid': edge['_uuid']},
                found=['map', [[edge['branches']['r1']['id'], 77]]])
    w.settled()
    check_equal('r1', asked(w, 'n1')['r1'], ('admit', None, None))
    w.castctl('group reset g')
    w.castctl('source set g --host h0 --qpn 19')
    w.apply_all_until('they are asked', lambda: sorted(asked(w, 'n1')) == ['r1', 'r3'])
    w.castd.send_signal(signal.SIGSTOP)
    say_found(w, 'n1', r3=6)
    w.castctl('--wait=none group del g')
    w.restart_castd()
    w.apply_all_until('all trees are gone', lambda: not w.db.rows('Tree_Node'))
    check_equal('rows', (w.db.rows('Branch'), w.db.rows('Member')), ([], []))


def lost_at_the_end(w):
    """A loss that castd has not looked at when the epoch ends is one of that epoch."""
    ready_kept(w, 'prune', ('r1', 'r2'))
    w.castd.send_signal(signal.SIGSTOP)
    report(w, 'n1', 'r1', SILENT)
    w.castctl('--wait=none source set g --host h0 --qpn 19')
    w.restart_castd()
    w.expect_member('r1', 'joining', '^must register again in epoch 2$')
    until_asked(w, 'n1', ['r2'])
    row = w.db.row('Member', host='r1')
    check_equal('r1', (row['epoch'], row['lost']), (1, ''))
    check_equal('the group', (w.show()['started'], w.db.row('Group', name='g')['lost']),
                (False, ''))


def lost_after_the_end(w, policy):
    """One of an epoch that is over counts as long as trees of that are there."""
    ready_kept(w, policy, ('r1', 'r2', 'r3', 'r9'))
    w.castctl('source set g --host h0 --qpn 19')
    w.castctl('source set g --host h0 --qpn 20')
    w.expect_member('r1', 'joining', '^waiting for node a0 ')
    report(w, 'n1', 'r1', SILENT, 1)
    report(w, 'n1', 'n2', REFUSED, 1)
    w.expect_member('r1', 'lost', '^was lost in epoch 1: no progress .* .seen by n1.$')
    w.expect_member('r9', 'lost', '^was lost in epoch 1: behind node n2: NAK 0x62 .* .seen by n1.$')
    check_equal('r1', w.db.row('Member', host='r1')['lost_psn'], ['set', []])
    # Another queue pair of the host has nothing to do with it, though it has the same number.
    w.castctl(KEPT % ('r9', 17))
    w.expect_member('r9', 'joining')
    w.restart_castd()
    w.apply_all_until('all applied', lambda: all_applied(w) and asked(w, 'n1') == {
        'r2': ('ask', None, 0x101), 'r3': ('ask', None, 0x101)})
    check_equal('the group', (w.show()['started'], w.db.row('Group', name='g')['lost']),
                (False, ''))
    say_found(w, 'n1', r2=5, r3=6)
    w.apply_all_until('degraded', lambda: w.show()['state'] == 'degraded' and all_applied(w))
    w.expect_state('degraded', '^r1 lost: was lost in epoch 1: no progress [^;]*$')
    check_equal('the agent', w.members_at('a0'), (['r2', 'r3', 'r9'], True))
    w.castctl(KEPT % ('r1', 17))
    expect_ready(w, ('r1', 'r2', 'r3', 'r9'))


def lost_after_the_end_prune(w):
    lost_after_the_end(w, 'prune')


def lost_after_the_end_fail_group(w):
    lost_after_the_end(w, 'fail-group')


def lost_before_it_registered(w):
    """The loss of an earlier registration is none of one that castd has not looked at yet."""
    ready_kept(w, 'prune', ('r1', 'r2'))
    report(w, 'n1', 'r1', SILENT)
    w.expect_member('r1', 'lost')
    w.apply_all_until('r1 is out', lambda: w.members_at('n1') == ['r2'] and all_applied(w))
    w.castd.send_signal(signal.SIGSTOP)
    w.castctl('--wait=none ' + KEPT % ('r1', 20))
    w.refused('--wait=none ' + KEPT % ('r1', 21), 2, 'r1 is registered in epoch 1 .* QPN 0x14')
    w.castctl('--wait=none source set g --host h0 --qpn 19')
    w.restart_castd()
    until_asked(w, 'n1', ['r1', 'r2'])
    say_found(w, 'n1', r1=1000, r2=7)
    expect_ready(w, ('r1', 'r2'))


def cannot_be_served(w):
    """Who was kept and cannot be served fails alone; who registers anew still fails the group."""
    ready_kept(w, 'prune', ('r1', 'r2', 'r3'))
    w.cut_host('n1', 'r3')
    w.expect_state('failed', '^member r3 is not behind n1 any more')
    w.castctl('source set g --host h0 --qpn 19')
    w.expect_member('r3', 'failed', '^member r3: no path')
    until_asked(w, 'n1', ['r1', 'r2'])
    w.restart_castd()
    w.expect_state('pending', '^asking r1, r2 where')
    say_found(w, 'n1', r1=5, r2=6)
    w.apply_all_until('degraded', lambda: w.show()['state'] == 'degraded' and all_applied(w))
    w.expect_state('degraded', '^r3 failed: ')
    check_equal('the agent', w.members_at('a0'), (['r1', 'r2'], True))
    for host in ('r1', 'r2'):
        w.cut_host('n1', host)
    w.castctl('source set g --host h0 --qpn 20')
    w.expect_state('pending', '^waiting for members: none can be served in epoch 3$')
    w.castctl('link add n1:tr1 r1:tr1')
    until_asked(w, 'n1', ['r1'])
    w.castctl('group reset g')
    w.castctl(KEPT % ('r3', 20))
    w.castctl('source set g --host h0 --qpn 19')
    w.expect_state('failed', '^member r3: no path')


def late_answer(w):
    """castd finds a member that is asked in an epoch which has started."""
    ready_kept(w, 'prune', ('r1', 'r2'))
    w.castctl('source set g --host h0 --qpn 19')
    until_asked(w, 'n1', ['r1', 'r2'])
    say_found(w, 'n1', r1=5, r2=6)
    expect_ready(w, ('r1', 'r2'))
    w.set_started()
    w.castctl('member leave g r2')
    w.apply_all_until('r2 has left', lambda: w.member('r2')['state'] == 'left')
    # As a castd would leave it that has kept r2 later than all others.
    w.db.update('Member', {'host': 'r2'}, want='active', psn=['set', []], designated_qpn=0x101)
    w.apply_all_until('r2 is asked', lambda: asked(w, 'n1').get('r2') == ('ask', None, 0x101)
                      and all_applied(w))
    w.expect_member('r2', 'joining', ASKED)
    w.expect_state('ready')
    check_equal('the agent', w.members_at('a0'), (['r1'], True))
    w.restart_castd()
    say_found(w, 'n1', r2=77)
    wait_until('r2 waits', lambda: asked(w, 'n1')['r2'] == ('wait', 77, 0x101))
    w.restart_castd()
    w.apply_all_until('r2 is admitted', lambda: asked(w, 'n1')['r2'] == ('admit', 77, 0x101)
                      and all_applied(w))
    w.say_joined('n1', r2=1500)
    w.apply_all_until('r2 is active', lambda: w.member('r2')['state'] == 'active')
    check_equal('r2', (w.member('r2')['first_psn'], asked(w, 'n1')['r2']),
                (1500, (None, 77, 0x101)))
    report(w, 'n1', 'r2', SILENT)
    w.expect_member('r2', 'lost', 'no progress')


def watched(w):
    """What a turnover looks like to castctl watch."""
    ready_kept(w, 'prune', ('r1', 'r2'))
    with Watch(w, 'g') as watch:
        watch.take('g:ready=')
        w.castctl('source set g --host h0 --qpn 19')
        # Between castctl's request and castd's answer there is no source of the epoch.
        check_equal('begins', [word for word in watch.take('g:pending') if word != 'g:source-gone'],
                    ['g:epoch', 'g:source-set', 'g:r1:joining', 'g:r2:joining', 'g:pending'])
        until_asked(w, 'n1', ['r1', 'r2'])
        report(w, 'n1', 'r2', HALF, 2)
        check_equal('lost', watch.take('g:r2:lost'), ['g:r2:lost'])
        check_equal('why', watch.last()['status'], HALF + ' (seen by n1)')
        say_found(w, 'n1', r1=5)
        w.apply_all_until('degraded', lambda: w.show()['state'] == 'degraded')
        check_equal('ends', watch.take('g:degraded'),
                    ['g:pending', 'g:r1:active', 'g:degraded'])  # pending: it lacks one more.
        check_equal('without', [watch.last()[k] for k in ('active_members', 'wanted_members')], [1, 2])


CASES = (all_found, some_lost_fail_group, some_lost_prune, all_lost, registers_again, twice_quickly,
         without_keep, other_host, leaves_meanwhile, lost_at_the_end,
         lost_after_the_end_prune, lost_after_the_end_fail_group, lost_before_it_registered,
         cannot_be_served, late_answer, watched)
