# SPDX-License-Identifier: Apache-2.0
"""Numbers of messages: what castd asks the source agent, and makes of its answers."""
import json

from losses import MEMBER, SILENT, all_applied, ready_group, report
from world import check_equal, wait_until


def asked(w):
    """The PSNs that the source agent is asked for."""
    psns = w.tree('a0')['psns']
    return psns[1] if isinstance(psns, list) else [psns]


def answer(w, **numbers):
    """The source agent says in which messages PSNs are (p70=5), and nothing else any more."""
    w.db.update('Tree_Node', {'_uuid': w.tree('a0')['_uuid']},
                messages=['map', [[int(psn[1:]), number] for psn, number in numbers.items()]])


def known(w, host):
    m = w.member(host)
    return tuple(m[key] for key in ('first_psn', 'first_message', 'lost_psn', 'good_messages'))


def join(w, **first):
    """These join in mid-stream, and begin with these PSNs."""
    for qpn, host in enumerate(first, 20):
        w.castctl(MEMBER % (host, qpn))
    w.apply_all_until('they are admitted', lambda: all(
        w.joining('n1').get(host) == ('admit', None) for host in first))
    w.apply_all_until('all is applied', lambda: all_applied(w))
    w.say_joined('n1', **first)
    w.apply_all_until('they are active', lambda: all(
        w.member(host)['state'] == 'active' for host in first) and all_applied(w))


def message_of_newcomer(w):
    """Asked once for all that begin there, until the agent knows, with no generation of its own."""
    ready_group(w, 'prune', ['r1'])
    check_equal('r1', known(w, 'r1'), (w.show()['start_psn'], 0, None, None))
    check_equal('asked', asked(w), [])
    w.set_started()
    w.castctl('--timeout 5 watch g --until active:r1')
    join(w, r2=70, r3=70)
    check_equal('asked', asked(w), [70])
    check_equal('r2', known(w, 'r2'), (70, None, None, None))
    told = {n['name']: n['cfg'] for n in w.db.rows('Node')}
    w.expect_state('ready', '^$')
    w.restart_castd()
    answer(w, p70=5000000000)
    wait_until('r2 has a number', lambda: known(w, 'r2') == (70, 5000000000, None, None))
    check_equal('r3', known(w, 'r3'), (70, 5000000000, None, None))
    check_equal('asked', asked(w), [])
    check_equal('told', {n['name']: n['cfg'] for n in w.db.rows('Node')}, told)
    # What the agent forgets stays known; another registration has another number.
    answer(w)
    w.settled()
    check_equal('r2', known(w, 'r2'), (70, 5000000000, None, None))
    report(w, 'n1', 'r2', SILENT)
    w.expect_member('r2', 'lost')
    w.castctl(MEMBER % ('r2', 30))
    w.apply_all_until('r2 is admitted', lambda: w.joining('n1').get('r2') == ('admit', None))
    check_equal('r2', known(w, 'r2'), (None, None, None, None))
    w.castctl('group reset g')
    check_equal('r3', known(w, 'r3'), (None, None, None, None))


def message_of_lost(w):
    """Also when its edge has forgotten it: what was lost, and up to where, stays with the member."""
    ready_group(w, 'prune', ['r1', 'r2', 'r3'])
    report(w, 'n1', 'r2', SILENT)
    w.expect_member('r2', 'lost')
    wait_until('r2 is asked for', lambda: asked(w) == [7])
    w.apply_all_until('r2 is out', lambda: w.members_at('n1') == ['r1', 'r3'] and all_applied(w))
    check_equal('r2', known(w, 'r2')[2:], (7, None))
    report(w, 'n1', 'r3', 'its queue pair does not answer')
    w.expect_member('r3', 'lost')
    check_equal('r3', known(w, 'r3')[2:], (None, None))
    check_equal('asked', asked(w), [7])
    answer(w, p7=0)
    wait_until('r2 has a number', lambda: known(w, 'r2')[2:] == (7, 0))
    check_equal('asked', asked(w), [])
    w.castctl('group reset g')
    check_equal('r2', known(w, 'r2'), (None, None, None, None))


def message_of_lost_again(w):
    """The edge has more to say than the node above it: then castd asks again."""
    w.ready_figure_1()
    report(w, 'n4', 'n2', 'NAK 0x63 (remote operational error) at PSN 7')
    wait_until('r3 is asked for', lambda: asked(w) == [7])
    answer(w, p7=3)
    wait_until('r3 has a number', lambda: known(w, 'r3')[2:] == (7, 3))
    report(w, 'n2', 'r3', 'no progress for 17.2 s at PSN 9')
    wait_until('r3 is asked for again', lambda: asked(w) == [9] and known(w, 'r3')[2:] == (9, None))
    answer(w, p7=3, p9=4)
    wait_until('r3 has another number', lambda: known(w, 'r3')[2:] == (9, 4))


def message_of_who_leaves(w):
    """Nobody wants it any more."""
    ready_group(w, 'prune', ['r1', 'r2'])
    report(w, 'n1', 'r2', SILENT)
    wait_until('r2 is asked for', lambda: asked(w) == [7])
    w.castctl('member leave g r2')
    w.apply_all_until('r2 has left', lambda: w.member('r2')['state'] == 'left')
    wait_until('nothing is asked', lambda: asked(w) == [])


def message_watched(w):
    """castctl watch and the lists tell numbers, when they are known."""
    ready_group(w, 'prune', ['r1'])
    w.set_started()
    join(w, r2=70)
    answer(w, p70=12)
    until = [json.loads(line) for line in w.castctl('-j watch g --until numbered:r2').splitlines()]
    check_equal('event', {k: until[-1][k] for k in ('member', 'event', 'state', 'first_psn', 'message')},
                {'member': 'r2', 'event': 'numbered', 'state': 'active', 'first_psn': 70, 'message': 12})
    start = [e for e in until if (e['member'], e['event']) == ('r1', 'active')]
    check_equal('r1', [e['message'] for e in start], [0])
    check_equal('r1, numbered', [e for e in until if (e['member'], e['event']) == ('r1', 'numbered')], [])
    report(w, 'n1', 'r2', SILENT)
    w.expect_member('r2', 'lost')
    events = [json.loads(line) for line in w.castctl('-j watch g --until lost:r2').splitlines()]
    check_equal('lost', (events[-1]['psn'], 'message' in events[-1]), (7, False))
    answer(w, p7=15)
    lines = w.castctl('watch g --until numbered:r2').splitlines()
    check_equal('text', lines[-1].split('  ', 1)[1], 'g  r2  numbered: it has all messages before 15')
    row = [m for m in json.loads(w.castctl('-j member list g')) if m['host'] == 'r2'][0]
    check_equal('list', [row[k] for k in ('first_message', 'good_messages')], [12, 15])
    text = w.castctl('member list g').splitlines()
    check_equal('columns', text[0].split()[6:11],
                ['want', 'keep', 'first_psn', 'first_message', 'good_messages'])


CASES = (message_of_newcomer, message_of_lost, message_of_lost_again, message_of_who_leaves, message_watched)
