# SPDX-License-Identifier: Apache-2.0
"""Members that are lost: what castd and castctl make of what nodes report."""
import json
import re
import signal

from world import check_equal, wait_until

SILENT = 'no progress for 17.2 s at PSN 7'
MEMBER = 'member add g %s --qpn %d --rkey 7 --va 0x1000 --len 4096'
REFUSED = 'NAK 0x62 (remote access error) at PSN 7'


def report(w, node, name, why, epoch=None):
    """The node's agent reports that it has lost a branch, by name."""
    tree = w.tree(node, epoch)
    branch = tree['branches'][name]['id']
    mutations = [['lost', 'insert', ['map', [[branch, why]]]]]
    at = re.search(r' at PSN (\d+)$', why)
    if at:
        mutations.append(['lost_psn', 'insert', ['map', [[branch, int(at[1])]]]])
    w.db.transact({'op': 'mutate', 'table': 'Tree_Node', 'mutations': mutations,
                   'where': [['_uuid', '==', tree['_uuid']]]})


def ready_group(w, policy, members=('r1', 'r2', 'r3')):
    w.ready_group(members)
    w.castctl('group set g --policy ' + policy)
    w.apply_all_until('the policy is applied', lambda: not w.show()['status'])


def ready_figure_1(w, policy, members=('r1', 'r2', 'r3', 'r4', 'r5')):
    w.ready_figure_1(members)
    w.castctl('group set g --policy ' + policy)
    w.apply_all_until('the policy is applied', lambda: not w.show()['status'])


def all_applied(w):
    return all(n['nb_cfg'] == n['cfg'] for n in w.db.rows('Node'))


def start_anew(w, members):
    """After a reset everybody registers again, and nothing is left of the loss."""
    w.castctl('group reset g')
    check_equal('the group', w.db.row('Group', name='g')['lost'], '')
    w.expect_state('pending', 'source')
    for host in members:
        w.expect_member(host, 'joining', 'register again')
        w.castctl('member add g %s --qpn 19' % host)
    w.castctl('source set g --host h0 --qpn 18')
    w.apply_all_until('ready', lambda: w.show()['state'] == 'ready')
    w.castctl('group wait g --members %d' % len(members))
    check_equal('lost', {m['lost'] for m in w.db.rows('Member')}, {''})


def lost_fails_group(w):
    """Everything stays as it is, and who waits is told at once."""
    ready_group(w, 'fail-group')
    report(w, 'n1', 'r2', REFUSED)
    why = REFUSED + ' (seen by n1)'
    w.expect_state('failed', '^member r2 is lost: NAK 0x62 .*castctl group reset g.$')
    check_equal('r2', (w.member('r2')['state'], w.member('r2')['status']), ('lost', why))
    w.expect_member('r1', 'active', '^$')
    w.apply_all_until('all is applied', lambda: all_applied(w))
    check_equal('told', (w.members_at('n1'), w.members_at('a0')),
                (['r1', 'r2', 'r3'], (['r1', 'r2', 'r3'], True)))
    check_equal('started', w.show()['started'], True)
    w.refused('--timeout 20 group wait g --epoch 1', 2, 'failed in epoch 1: member r2 is lost: NAK')
    w.refused('--timeout 20 group wait g --members 3', 2, 'r2 is lost')
    w.refused('--timeout 1 group wait g --epoch 2', 3, 'failed')
    w.refused('member add g r2 --qpn 17 --rkey 7 --va 0x1000 --len 4096 --may-exist', 2,
              'r2 is lost in epoch 1 of group g, which has failed: castctl group reset g')
    # A second loss changes nothing, nor does the removal of the first.
    report(w, 'n1', 'r3', SILENT)
    w.expect_member('r3', 'lost', 'no progress')
    w.castctl('--wait=none member remove g r2')
    w.apply_all_until('r2 is gone', lambda: len(w.show()['members']) == 2)
    w.expect_state('failed', '^member r2 is lost')
    start_anew(w, ['r1', 'r3'])


def lost_is_pruned(w):
    """As if it had left: the source agent first, edges later; but it is not gone."""
    ready_group(w, 'prune', ['r1', 'r2', 'r9'])
    report(w, 'n2', 'r9', SILENT)
    why = SILENT + ' (seen by n2)'
    w.expect('a0', (['r1', 'r2'], True))
    w.settled()
    check_equal('n2, before the agent applied', w.members_at('n2'), ['r9'])
    check_equal('n1, before the agent applied', w.members_at('n1'), ['n2', 'r1', 'r2'])
    w.expect_state('degraded')
    w.expect_member('r9', 'lost', 'seen by n2')
    w.apply('a0')
    w.expect('n2', None)
    w.expect('n1', ['r1', 'r2'])
    w.apply('n1')
    w.expect_state('degraded', '^r9 lost: no progress .* .seen by n2.$')
    # The report is gone with the tree that it was in.
    check_equal('r9', (w.member('r9')['want'], w.member('r9')['status']), ('active', why))
    w.castctl('group wait g --members 2')
    w.refused('--timeout 1 group wait g --members 3', 3, 'r9 lost: no progress.*2 of 3')
    w.castctl('member leave g r9')
    w.apply_all_until('r9 has left', lambda: w.member('r9')['state'] == 'left')
    w.castctl('member add g r9 --qpn 20')
    w.expect_member('r9', 'failed', 'its region has 0 bytes')
    check_equal('r9', w.db.row('Member', host='r9')['lost'], '')
    start_anew(w, ['r1', 'r2', 'r9'])


def lost_comes_back(w):
    """Another registration takes the place of a lost one, which goes first, as another branch."""
    ready_group(w, 'prune', ['r1', 'r2', 'r9'])
    lost = w.tree('n2')['branches']['r9']['id']
    report(w, 'n2', 'r9', SILENT)
    w.expect_member('r9', 'lost')
    w.castctl(MEMBER % ('r9', 20))
    w.expect('a0', (['r1', 'r2'], True))
    w.settled()
    check_equal('n2, before the agent applied', w.tree('n2')['branches']['r9']['qpn'], 17)
    w.expect_member('r9', 'joining', '^waiting for node a0 ')
    w.expect_state('ready')
    w.apply('a0')
    w.expect('n2', None)
    w.restart_castd()
    w.expect('n1', ['r1', 'r2'])
    w.apply('n1')
    w.expect('n2', ['r9'])
    new = w.tree('n2')['branches']['r9']
    check_equal('QPN', new['qpn'], 20)
    check_equal('another branch', new['id'] > lost, True)
    check_equal('n1', w.joining('n1')['n2'], ('wait', None))
    w.apply_all_until('n2 is waited for', lambda: w.member('r9')['status']
                      == 'waiting for node n2 to answer')
    w.say_joined('n1', n2=70)
    w.apply_all_until('r9 is admitted', lambda: w.joining('n2') == {'r9': ('admit', None)})
    w.say_joined('n2', r9=71)
    w.apply_all_until('r9 is active', lambda: w.member('r9')['state'] == 'active')
    w.apply_all_until('all is applied', lambda: w.show()['status'] == '')
    check_equal('it', (w.show()['state'], w.member('r9')['first_psn'],
                       w.db.row('Member', host='r9')['lost']), ('ready', 71, ''))
    w.refused(MEMBER % ('r9', 20), 2, 'is registered in epoch 1 .* with QPN 0x14 already')


def lost_before_it_joined(w):
    """Who is lost while it waits is taken out and named, and nobody else is hurt."""
    ready_group(w, 'fail-group', ['r1', 'r2'])
    w.set_started()
    w.castctl(MEMBER % ('r3', 20))
    w.apply_all_until('r3 is admitted', lambda: w.members_at('n1') == ['r1', 'r2', 'r3']
                      and w.joining('n1')['r3'] == ('admit', None))
    why = 'its queue pair expects PSN 5, not 7'
    report(w, 'n1', 'r3', why)
    w.expect_member('r3', 'lost', '^%s .seen by n1.$' % why)
    w.apply_all_until('r3 is out', lambda: w.members_at('n1') == ['r1', 'r2'] and all_applied(w))
    w.expect_state('degraded', '^r3 lost: %s' % why)
    check_equal('the agent', w.members_at('a0'), (['r1', 'r2'], True))
    w.castctl('group set g --policy prune')
    w.apply_all_until('all is applied', lambda: all_applied(w))
    w.castctl('group set g --policy fail-group')
    w.apply_all_until('all is applied', lambda: all_applied(w))
    check_equal('n1', w.members_at('n1'), ['r1', 'r2'])
    # It comes again, and is lost only after it has joined: that is the group's loss.
    w.castctl(MEMBER % ('r3', 21))
    w.apply_all_until('r3 is admitted', lambda: w.members_at('n1') == ['r1', 'r2', 'r3']
                      and w.joining('n1')['r3'] == ('admit', None))
    w.castd.send_signal(signal.SIGSTOP)
    w.say_joined('n1', r3=9)
    report(w, 'n1', 'r3', SILENT)
    w.restart_castd()
    w.expect_state('failed', '^member r3 is lost: no progress')
    w.refused(MEMBER % ('r3', 22), 2, 'r3 is lost in epoch 1 of group g, which has failed')


def lost_all(w):
    """With nobody left the nodes keep what they have: they must go on telling the source."""
    ready_group(w, 'prune', ['r1', 'r2'])
    report(w, 'n1', 'r1', SILENT)
    w.expect('a0', (['r2'], True))
    report(w, 'n1', 'r2', REFUSED)
    w.expect_state('failed', '^all members are lost: r1 .no progress.*, r2 .NAK 0x62')
    w.expect_member('r2', 'lost')
    w.apply_all_until('all is applied', lambda: all_applied(w))
    check_equal('told', (w.members_at('n1'), w.members_at('a0')), (['r2'], (['r2'], True)))
    w.refused('--timeout 20 group wait g', 2, 'all members are lost: r1')
    start_anew(w, ['r1', 'r2'])


def lost_all_before_admission(w):
    """The epoch is over with the last that counts: who is admitted just then does not change it."""
    ready_group(w, 'prune', ['r1'])
    w.set_started()
    w.castctl(MEMBER % ('r2', 20))
    w.apply_all_until('r2 is admitted', lambda: w.members_at('n1') == ['r1', 'r2']
                      and w.joining('n1')['r2'] == ('admit', None))
    report(w, 'n1', 'r1', SILENT)
    w.expect_state('failed', '^all members are lost: r1 .no progress')
    w.say_joined('n1', r2=9)
    w.settled()
    w.expect_state('failed', '^all members are lost: r1 .no progress')
    w.restart_castd()
    w.apply_all_until('all is applied', lambda: all_applied(w))
    w.expect_state('failed', '^all members are lost: r1 .no progress')
    start_anew(w, ['r1', 'r2'])


def lost_all_but_newcomers(w):
    """Who waits elsewhere in the tree is taken out, also if it has been admitted meanwhile: else
    its edge would confirm what nobody has, and the nodes above go on with that."""
    ready_figure_1(w, 'prune', ['r1'])
    w.set_started()
    for host, qpn in (('r4', 20), ('r5', 21)):
        w.castctl(MEMBER % (host, qpn))
    for parent, node in (('n5', 'n3'), ('n6', 'n5')):
        w.apply_all_until('%s is waited for' % node,
                          lambda n=node: 'node %s ' % n in w.member('r4')['status'])
        w.say_joined(parent, **{node: 70})
    w.apply_all_until('both are admitted', lambda: w.joining('n3')
                      == {'r4': ('admit', None), 'r5': ('admit', None)})
    w.apply_all_until('all is applied', lambda: all_applied(w))
    w.castd.send_signal(signal.SIGSTOP)
    report(w, 'n1', 'r1', SILENT)
    report(w, 'n6', 'n4', REFUSED)
    w.castd.send_signal(signal.SIGCONT)
    w.expect_state('failed', '^all members are lost: r1 .no progress')
    w.say_joined('n3', r5=71)
    w.expect('a0', (['r1'], True))
    w.settled()
    check_equal('n3, before the agent applied', w.members_at('n3'), ['r4', 'r5'])
    w.restart_castd()
    w.apply('a0')
    w.expect_shapes(n6='>>n4 <source n4', n4='>n1 <n6 n1', n1='<n4 r1')
    w.apply_all_until('all is applied', lambda: all_applied(w))
    for host in ('r4', 'r5'):
        w.expect_member(host, 'joining',
                        '^the group has started, and it has failed: joins in the next epoch')
    w.castctl('group set g --policy fail-group')
    w.apply_all_until('all is applied', lambda: all_applied(w))
    check_equal('the agent', w.members_at('a0'), (['r1'], True))
    start_anew(w, ['r1', 'r4', 'r5'])


def lost_all_at_once(w):
    ready_group(w, 'prune', ['r1', 'r2'])
    ids = {name: b['id'] for name, b in w.tree('n1')['branches'].items()}
    w.db.update('Tree_Node', {'_uuid': w.tree('n1')['_uuid']},
                lost=['map', [[ids['r1'], SILENT], [ids['r2'], SILENT]]])
    w.expect_state('failed', '^all members are lost: r1 .no progress.*, r2 .no progress')
    w.settled()
    check_equal('told', (w.members_at('n1'), w.members_at('a0')),
                (['r1', 'r2'], (['r1', 'r2'], True)))


def lost_node(w):
    """What is said of a node goes for all members behind it, at any depth."""
    ready_figure_1(w, 'prune')
    report(w, 'n6', 'n4', SILENT)
    for host in ('r1', 'r2', 'r3'):
        w.expect_member(host, 'lost', '^behind node n4: no progress .* .seen by n6.$')
    w.apply_all_until('all is applied', lambda: all_applied(w))
    w.expect_shapes(n6='>>n5 <source n5', n5='>n3 <n6 n3', n3='<n5 r4 r5')
    w.expect_state('degraded', '^r1 lost: behind node n4: .*; r2 lost: .*; r3 lost: ')
    report(w, 'n5', 'n3', SILENT)
    w.expect_state('failed', 'all members are lost: r1 .*, r4 .behind node n3: ')


def forget(w, node):
    """The node's agent says no more of branches that it has lost and does not have any more."""
    tree = w.tree(node)
    ids = {b['id'] for b in tree['branches'].values()}
    w.db.update('Tree_Node', {'_uuid': tree['_uuid']}, **{column: ['map', [
        [branch, said] for branch, said in tree[column][1] if branch in ids]]
        for column in ('lost', 'lost_psn', 'joined')})


def all_apply(w):
    """All agents have applied everything, and nothing follows from that."""
    w.apply_all_until('all is applied', lambda: all_applied(w))
    w.settled()
    w.apply_all_until('all is applied', lambda: all_applied(w))


def joins(w, host, edge, *above, psn=70):
    """The member, alone behind these nodes, which are new: each answers, and the member begins."""
    for parent, node in above:
        w.apply_all_until('%s is waited for' % node, lambda n=node: w.member(host)['status']
                          == 'waiting for node %s to answer' % n)
        check_equal(parent, w.joining(parent)[node], ('wait', None))
        w.say_joined(parent, **{node: psn})
    w.apply_all_until('%s is admitted' % host,
                      lambda: w.joining(edge)[host] == ('admit', None))
    w.say_joined(edge, **{host: psn + 1})
    w.apply_all_until('%s is active' % host, lambda: w.member(host)['state'] == 'active')
    all_apply(w)


def lost_node_comes_back(w):
    """It leaves with all that are behind it; who is registered there again joins when the node above
    says no more that it has lost it."""
    ready_figure_1(w, 'prune')
    w.set_started()
    report(w, 'n6', 'n5', REFUSED)
    report(w, 'n3', 'r4', SILENT)
    w.expect_member('r4', 'lost', '^no progress .* .seen by n3.$')
    w.expect_member('r5', 'lost', '^behind node n5: NAK 0x62 .* .seen by n6.$')
    w.expect('a0', (['r1', 'r2', 'r3'], True))
    w.castctl(MEMBER % ('r4', 20))
    w.expect_member('r4', 'joining', '^waiting for node a0 ')
    for node in ('a0', 'n1', 'n2', 'n3', 'n4', 'n5'):
        w.apply(node)
    w.expect_shapes(n6='>>n4 <source n4', n4='>n1 >n2 <n6 n1 n2', n1='<n4 r1 r2', n2='<n4 r3')
    w.expect_member('r4', 'joining', '^waiting for node n6 .generation ')
    w.restart_castd()
    all_apply(w)
    w.expect_member('r4', 'joining', '^waiting for node n6 to forget that it has lost node n5$')
    check_equal('n5', w.tree('n5'), None)
    w.expect_state('degraded', '^r5 lost: behind node n5: ')
    forget(w, 'n6')
    joins(w, 'r4', 'n3', ('n5', 'n3'), ('n6', 'n5'))
    w.expect_shapes(n6='>>n4 >>n5 <source n4 n5', n4='>n1 >n2 <n6 n1 n2', n1='<n4 r1 r2',
                    n2='<n4 r3', n5='>n3 <n6 n3', n3='<n5 r4')
    check_equal('r4', w.member('r4')['first_psn'], 71)
    # It may be lost again: that is another loss.
    report(w, 'n6', 'n5', SILENT)
    w.expect_member('r4', 'lost', '^behind node n5: no progress')
    all_apply(w)
    forget(w, 'n6')
    w.castctl(MEMBER % ('r4', 21))
    joins(w, 'r4', 'n3', ('n5', 'n3'), ('n6', 'n5'))
    w.expect_member('r5', 'lost')


def lost_node_of_newcomer(w):
    """Who only waits behind a node that is lost waits on, as another branch, which nobody has admitted."""
    ready_figure_1(w, 'prune', ['r1', 'r4'])
    w.set_started()
    w.castctl(MEMBER % ('r5', 20))
    w.apply_all_until('r5 is admitted', lambda: 'r5' in (w.members_at('n3') or [])
                      and w.joining('n3')['r5'] == ('admit', None))
    old = w.tree('n3')['branches']['r5']['id']
    report(w, 'n6', 'n5', SILENT)
    w.expect_member('r4', 'lost', '^behind node n5')
    w.expect_member('r5', 'joining', '^waiting for node n3 .*, node a0 ')
    w.restart_castd()
    all_apply(w)
    w.expect_shapes(n6='>>n4 <source n4', n4='>n1 <n6 n1', n1='<n4 r1')
    w.expect_member('r5', 'joining', '^waiting for node n6 to forget that it has lost node n5$')
    w.expect_state('degraded', '^r4 lost: [^;]*$')
    forget(w, 'n6')
    joins(w, 'r5', 'n3', ('n5', 'n3'), ('n6', 'n5'))
    check_equal('another branch', w.tree('n3')['branches']['r5']['id'] > old, True)


def lost_node_fails_newcomer(w):
    """With policy fail-group the epoch is over, and all behind the node are lost."""
    ready_figure_1(w, 'fail-group', ['r1', 'r4'])
    w.set_started()
    w.castctl(MEMBER % ('r5', 20))
    w.apply_all_until('r5 waits', lambda: 'r5' in (w.members_at('n3') or []))
    report(w, 'n6', 'n5', SILENT)
    w.expect_member('r5', 'lost', '^behind node n5')
    w.expect_state('failed', '^member r4 is lost: behind node n5')


def newcomer_at_blank_node(w):
    """A node was started again when nobody counted at it: it leaves, and who waits behind it waits on as
    another branch, at another tree, whatever the policy is.  If somebody counts there nothing happens."""
    ready_figure_1(w, 'fail-group', ['r1', 'r3'])
    w.set_started()
    w.castctl(MEMBER % ('r4', 20))
    w.apply_all_until('r4 waits', lambda: 'r4' in (w.members_at('n3') or []))
    old = {node: w.tree(node) for node in ('n1', 'n3', 'n5')}
    for node in ('n1', 'n3'):
        w.db.update('Tree_Node', {'_uuid': old[node]['_uuid']}, blank=True)
    w.apply_all_until('n3 has left', lambda: (w.tree('n3') or {}).get('_uuid') != old['n3']['_uuid'])
    w.restart_castd()
    joins(w, 'r4', 'n3', ('n5', 'n3'), ('n6', 'n5'))
    new = {node: w.tree(node) for node in old}
    check_equal('the same trees', [new[n]['_uuid'] == old[n]['_uuid'] for n in ('n1', 'n3', 'n5')],
                [True, False, False])
    check_equal('n3 has forgotten nothing', new['n3']['blank'], False)
    check_equal('another branch', new['n3']['branches']['r4']['id'] > old['n3']['branches']['r4']['id'],
                True)
    check_equal('group', (w.show()['state'], w.member('r1')['state']), ('ready', 'active'))


def lost_behind_node(w):
    """What the edge says replaces what the node above has said, whichever comes first."""
    ready_figure_1(w, 'prune')
    report(w, 'n4', 'n2', 'NAK 0x63 (remote operational error) at PSN 7')
    w.expect_member('r3', 'lost', '^behind node n2: NAK 0x63 .* .seen by n4.$')
    report(w, 'n2', 'r3', SILENT)
    w.expect_member('r3', 'lost', '^no progress .* .seen by n2.$')


def lost_at_agent(w):
    """A source agent that is the root reports like any other."""
    w.figure_1()
    w.castctl('node set n6 --aggregate no')
    w.castctl('group add g')
    for host in ('r1', 'r5'):
        w.castctl('member add g %s --qpn 17' % host)
    w.castctl('source set g --host h0 --qpn 18')
    w.apply_all_until('the group is ready', lambda: w.show()['state'] == 'ready')
    check_equal('the root', w.tree('a0')['root'], True)
    report(w, 'a0', 'n5', REFUSED)
    w.expect_state('failed', '^member r5 is lost: behind node n5: NAK 0x62 .* .seen by a0.')


def lost_without_castd(w):
    """A report that comes while no castd runs is found later, also one of a member that has asked to
    leave meanwhile."""
    ready_group(w, 'prune')
    w.castd.send_signal(signal.SIGSTOP)
    report(w, 'n1', 'r1', SILENT)
    w.restart_castd()
    w.expect('a0', (['r2', 'r3'], True))
    w.restart_castd()
    w.expect_member('r1', 'lost', 'seen by n1')
    w.apply('a0')
    w.expect('n1', ['r2', 'r3'])
    w.restart_castd()
    w.expect_member('r1', 'lost', 'seen by n1')


def lost_while_leaving(w):
    """As long as it is counted its loss is the group's; then it is nobody's."""
    ready_group(w, 'fail-group')
    w.castctl('member leave g r1')
    w.expect_member('r1', 'draining')
    edge = w.tree('n1')
    w.apply_all_until('r1 has left', lambda: w.member('r1')['state'] == 'left')
    entry = [edge['branches']['r1']['id'], SILENT]
    w.db.update('Tree_Node', {'_uuid': edge['_uuid']}, lost=['map', [entry]])
    w.settled()
    w.expect_state('ready')
    w.castctl('member leave g r2')
    w.expect_member('r2', 'draining')
    report(w, 'n1', 'r2', SILENT)
    w.expect_state('failed', '^member r2 is lost')
    w.apply_all_until('r2 has left', lambda: w.member('r2')['state'] == 'left')
    w.expect_state('failed', '^member r2 is lost')


def say_slow(w, node, **how):
    """The node's agent says who is slow, by name: nobody else is."""
    tree = w.tree(node)
    w.db.update('Tree_Node', {'_uuid': tree['_uuid']}, slow=['map', [
        [tree['branches'][name]['id'], text] for name, text in how.items()]])


def expect_degraded(w, status):
    w.apply_all_until('degraded: %s' % status, lambda: re.fullmatch(status, w.show()['status']))
    check_equal('state', w.show()['state'], 'degraded')


def slow_members(w):
    """Who is slow is active, and the group serves; what is said of nodes counts if no member is."""
    ready_figure_1(w, 'prune')
    say_slow(w, 'n1', r1='confirms 2 packets/s')
    say_slow(w, 'n6', n4='confirms 3 packets/s')
    w.expect_member('r1', 'slow', r'^confirms 2 packets/s \(seen by n1\)$')
    w.expect_state('slow', r'^r1 slow: confirms 2 packets/s \(seen by n1\)$')
    check_equal('active', w.show()['active_members'], 5)
    w.castctl('group wait g --members 5')
    say_slow(w, 'n1')
    w.expect_state('slow', r'^node n4 slow: confirms 3 packets/s \(seen by n6\)$')
    w.expect_member('r1', 'active', '^$')
    report(w, 'n3', 'r4', SILENT)
    expect_degraded(w, r'r4 lost: [^;]*; node n4 slow: confirms 3 .*')
    say_slow(w, 'n6')
    expect_degraded(w, r'r4 lost: [^;]*')


def lost_in_earlier_epoch(w):
    """A report about an epoch that is over means nothing to who registers again."""
    ready_group(w, 'fail-group')
    w.castctl('group reset g')
    report(w, 'n1', 'r1', SILENT, epoch=1)
    w.castctl('source set g --host h0 --qpn 18')
    w.castctl('member add g r1 --qpn 17')
    w.apply_all_until('ready', lambda: w.show()['state'] == 'ready')
    check_equal('started', w.show()['started'], False)
    check_equal('lost', w.db.row('Member', host='r1')['lost'], '')


def policies(w):
    """What nodes are told: the policy, and the longer a time the more nodes merge below."""
    def told(column):
        return {n: w.tree(n)[column] for n in 'n1 n3 n4 n5 n6 a0'.split()}

    w.ready_figure_1()
    shown = w.show()
    check_equal('defaults', (shown['policy'], shown['liveness_ms']), ('fail-group', 17180))
    check_equal('prune', set(told('prune').values()), {False})
    check_equal('times', told('liveness'),
                {'n1': 17180, 'n3': 17180, 'n4': 34360, 'n5': 34360, 'n6': 51540, 'a0': 0})
    w.castctl('group set g --policy prune --liveness 20000')
    check_equal('prune', set(told('prune').values()), {True})
    check_equal('times', told('liveness'),
                {'n1': 20000, 'n3': 20000, 'n4': 40000, 'n5': 40000, 'n6': 60000, 'a0': 0})
    check_equal('nak', set(told('nak').values()), {'hold'})
    check_equal('filter', set(told('filter').values()), {True})
    check_equal('timeout', set(told('timeout').values()), {20})
    check_equal('rates', told('min_rate'), {'n1': 10, 'n3': 10, 'n4': 5, 'n5': 5, 'n6': 3, 'a0': 0})
    check_equal('lose', set(told('lose_slow').values()), {False})
    w.castctl('group set g --min-rate 500 --slow lose')
    check_equal('rates', told('min_rate'),
                {'n1': 500, 'n3': 500, 'n4': 250, 'n5': 250, 'n6': 166, 'a0': 0})
    check_equal('lose', set(told('lose_slow').values()), {True})
    w.castctl('group set g --nak solicit')
    check_equal('nak', set(told('nak').values()), {'solicit'})
    w.castctl('group set g --filter off --nak literal')
    check_equal('nak', set(told('nak').values()), {'literal'})
    check_equal('filter', set(told('filter').values()), {False})
    w.castctl('group set g --liveness 0')
    check_equal('times', set(told('liveness').values()), {0})
    check_equal('list', [(g['name'], g['policy'], g['liveness_ms'])
                         for g in json.loads(w.castctl('-j group list'))], [('g', 'prune', 0)])
    w.apply_all_until('all is applied', lambda: all_applied(w))
    w.expect_state('ready', '^$')


def policy_after_loss(w):
    """The group goes on without the lost one, if it is told to only then; and back, without
    harm."""
    ready_group(w, 'fail-group')
    report(w, 'n1', 'r2', SILENT)
    w.expect_state('failed', 'r2 is lost')
    w.castctl('group set g --policy prune')
    w.expect('a0', (['r1', 'r3'], True))
    w.apply_all_until('it serves', lambda: all_applied(w) and w.show()['state'] == 'degraded')
    check_equal('the edge', w.members_at('n1'), ['r1', 'r3'])
    w.expect_member('r2', 'lost', 'seen by n1')
    w.castctl('group set g --policy fail-group')
    w.apply_all_until('all is applied', lambda: all_applied(w))
    w.expect_state('degraded', '^r2 lost: ')
    report(w, 'n1', 'r3', SILENT)
    w.expect_state('failed', '^member r3 is lost')


def policy_while_pruned(w):
    """Who was lost under prune does not fail the group when the policy changes before it is out."""
    ready_figure_1(w, 'prune')
    report(w, 'n1', 'r1', SILENT)
    report(w, 'n6', 'n5', SILENT)
    w.expect('a0', (['r2', 'r3'], True))
    w.castctl('group set g --policy fail-group')
    w.settled()
    w.expect_state('degraded', 'r1 lost: no progress .*; r4 lost: behind node n5.*; r5 lost: ')
    # What the edge says of it later is no other loss.
    report(w, 'n3', 'r4', REFUSED)
    w.expect_member('r4', 'lost', '^NAK 0x62')
    w.restart_castd()
    w.apply_all_until('they are out', lambda: w.members_at('n1') == ['r2'] and not w.tree('n5')
                      and all_applied(w))
    w.expect_state('degraded', '^r1 lost: ')
    report(w, 'n2', 'r3', SILENT)
    w.expect_state('failed', '^member r3 is lost')
    # The other way round it is taken out, whatever the policy is then.
    w.castctl('group set g --policy prune')
    w.expect('a0', (['r2'], True))
    w.castctl('group set g --policy fail-group')
    w.settled()
    w.expect_state('degraded', 'r3 lost: ')
    w.apply_all_until('r3 is out', lambda: not w.tree('n2') and all_applied(w))


def policy_options(w):
    """Values that make no sense are refused, with the numbers."""
    w.castctl('group add g --timeout 14 --liveness 269 --policy prune')
    w.castctl('group add g --timeout 14 --may-exist')
    w.castctl('group add g --timeout 14 --liveness 269 --policy prune --may-exist')
    w.refused('group add g --timeout 14 --liveness 270 --may-exist', 2, 'another --liveness')
    w.refused('group add g --timeout 14 --policy fail-group --may-exist', 2, 'another --policy')
    w.refused('group add h --timeout 14 --liveness 268', 1,
              r'--liveness 268: must be 0 .never. or at least 269 ms, 4 times .*4.096 us \* 2\^14')
    w.refused('group add h --liveness 17179', 1, 'at least 17180 ms')
    w.refused('group add h --liveness 3600001', 1, r'--liveness 3600001: must be 0\.\.3600000')
    w.refused('group add h --liveness -1', 1, '--liveness -1: must be')
    w.refused('group add h --policy Prune', 1, '--policy Prune: must be fail-group or prune')
    w.castctl('group add g --timeout 14 --nak hold --filter on --may-exist')
    w.refused('group add g --timeout 14 --nak literal --may-exist', 2, 'another --nak')
    w.refused('group add g --timeout 14 --filter off --may-exist', 2, 'another --filter')
    w.refused('group add h --nak Hold', 1, '--nak Hold: must be hold, literal or solicit')
    w.refused('group add h --filter yes', 1, '--filter yes: must be off or on')
    w.refused('group set g --filter', 1, "option '--filter' requires an argument")
    w.refused('group set g --nak holds', 1, '--nak holds: must be')
    w.refused('group set g --nak hold --filter 1', 1, '--filter 1: must be')
    w.refused('group set g', 1, 'nothing to set')
    w.refused('group set g --policy none', 1, '--policy none: must be')
    w.refused('group set g --liveness 1 --policy fail-group', 2, 'at least 269 ms')
    w.refused('group set h --liveness 0', 2, "no group named 'h'")
    check_equal('groups', [(g['name'], g['policy'], g['liveness_ms'])
                           for g in json.loads(w.castctl('-j group list'))], [('g', 'prune', 269)])
    for timeout, liveness in ((1, 10000), (19, 10000), (20, 17180), (31, 35184373)):
        w.castctl('group add t%d --timeout %d' % (timeout, timeout))
        check_equal('default', w.show('t%d' % timeout)['liveness_ms'], liveness)
    w.castctl('group set t31 --liveness 35184373')
    shown = w.show('t1')
    check_equal('defaults', (shown['nak'], shown['filter']), ('hold', True))
    w.castctl('group add t32 --nak solicit --filter off')
    shown = w.show('t32')
    check_equal('as added', (shown['nak'], shown['filter']), ('solicit', False))
    # A row from before there were policies.
    w.db.update('Group', {'name': 't1'}, policy=['set', []], liveness=0)
    w.db.update('Group', {'name': 't32'}, nak=['set', []], filter=['set', []])
    wait_until('as it was', lambda: w.show('t1')['policy'] == 'fail-group')
    wait_until('the defaults', lambda: (w.show('t32')['nak'], w.show('t32')['filter'])
               == ('hold', True))


CASES = (slow_members, lost_fails_group, lost_is_pruned,
         lost_comes_back, lost_before_it_joined, lost_all,
         lost_all_before_admission, lost_all_but_newcomers, lost_all_at_once, lost_node,
         lost_node_comes_back, lost_node_of_newcomer, lost_node_fails_newcomer,
         newcomer_at_blank_node,
         lost_behind_node, lost_at_agent, lost_without_castd,
         lost_while_leaving, lost_in_earlier_epoch, policies, policy_after_loss,
         policy_while_pruned, policy_options)
