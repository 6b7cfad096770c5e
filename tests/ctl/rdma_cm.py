# SPDX-License-Identifier: Apache-2.0
"""What castctl writes and shows of programs that connect by RDMA-CM.

castd stands still where the test writes rows in its place, and in a node's.
"""
import json
import signal

import output
from watch import Watch, fields
from world import check, check_equal, wait_until

MEMBER = ' --qpn 17 --rkey 7 --va 0x1000 --len 4096'


def listener(w, host='r1', group='g'):
    """What is in its row; None: there is none."""
    uuid = w.db.row('Group', name=group)['_uuid']
    rows = w.db.rows('Listener', host=host, group=uuid)
    return fields(rows[0], 'port', 'private_data', 'status') if rows else None


def row_of(address, number, **columns):
    """A Connection that a node has begun, or another."""
    return {'node': 'n1', 'number': number, 'role': 'active', 'proxy': 'fd00:ffff::1', 'address': address,
            'port': 7000, 'group': 'g', **columns}


def write(w, address, number, **columns):
    w.db.transact({'op': 'insert', 'table': 'Connection', 'row': row_of(address, number, **columns)})


def change(w, number, **columns):
    w.db.update('Connection', {'number': number}, **columns)


def still(w):
    """From now on nobody but the test acts as castd does."""
    w.castd.send_signal(signal.SIGSTOP)


def ask(w, line):
    """castctl, while nobody answers for castd."""
    return w.castctl('--wait=none ' + line)


def connect_setting(w):
    """Whether a group takes connections, at which port, and where that is shown."""
    w.star()
    w.castctl('group add plain')
    w.castctl('group add g --connect')
    w.castctl('group add other --connect --port 0x1c00')

    def port(group):
        return w.db.row('Group', name=group)['connect_port']

    def shown(group):
        text = output.value(w.castctl('group show ' + group), 'connect')
        listed = {g['name']: g['connect'] for g in json.loads(w.castctl('-j group list'))}
        check_equal('listed', listed[group], w.show(group)['connect'])
        return text, w.show(group)['connect']

    check_equal('ports', [port(g) for g in ('plain', 'g', 'other')], [['set', []], 7174, 7168])
    check_equal('none', shown('plain'), ('-', None))
    for group, at in (('g', 7174), ('other', 7168)):
        where = '[%s]:%d' % (w.show(group)['proxy'], at)
        check_equal('shown', shown(group), (where, where))
    # The same again, and not the same.
    w.castctl('group add g --may-exist --connect --port 7174')
    w.castctl('group add other --may-exist')
    w.refused('group add g --may-exist --connect --port 7175', 2, 'group g exists with another --port')
    w.refused('group add plain --may-exist --connect', 2, 'group plain exists with another --connect')
    # It changes at any time.
    w.castctl('group set plain --connect --port 7999')
    check_equal('on', port('plain'), 7999)
    w.castctl('group set plain --port 8000')
    check_equal('moved', port('plain'), 8000)
    w.castctl('group set plain --nak literal')
    w.castctl('group set plain --connect')
    check_equal('as it was', port('plain'), 8000)
    w.castctl('group set plain --connect=off')
    check_equal('off', port('plain'), ['set', []])
    w.refused('group set plain --port 8000', 2, '--port 8000: the group takes no connections')
    check_equal('off', port('plain'), ['set', []])


def listeners(w):
    """Programs that listen: registered once, changed only if that is asked for, gone with the group."""
    w.star()
    w.castctl('group add g')
    still(w)
    first = {'port': 7000, 'private_data': '', 'status': ''}
    ask(w, 'member add g r1 --listen 7000')
    check_equal('row', listener(w), first)
    cfg = w.db.row('Global')['next_cfg']
    w.db.update('Listener', {'host': 'r1'}, status='no region')
    ask(w, 'member add g r1 --listen 0x1b58 --private-data va:be64@0,rkey:be32@8,len:be64@12')
    check_equal('the same again', listener(w), {**first, 'status': 'no region'})
    # Other values.
    other = 'member add g r1 --listen 7000 --private-data va:0,rkey:le32@0,len:4096'
    for line in (other, 'member add g r1 --listen 7001', 'member add g r1 --listen 7001 --may-exist'):
        w.refused('--wait=none ' + line, 2, r'member add: r1 listens for group g at port 7000 with private data '
                  r'va:be64@0,rkey:be32@8,len:be64@12 already \(--replace\)')
    check_equal('as before', listener(w), {**first, 'status': 'no region'})
    ask(w, other + ' --replace')
    check_equal('replaced', listener(w), {**first, 'private_data': 'va:0,rkey:le32@0,len:4096'})
    check(w.db.row('Global')['next_cfg'] > cfg, 'castd is not told')
    # Not both ways at once.
    w.refused('--wait=none member add g r1' + MEMBER, 2,
              'r1 is a receiver of group g by the program that listens at port 7000 already')
    ask(w, 'member add g r2' + MEMBER)
    w.refused('--wait=none member add g r2 --listen 7000', 2,
              'r2 is registered in group g with QPN 0x11 already: castctl member remove g r2')
    w.db.update('Member', {'host': 'r2'}, want='left', state='left')
    w.refused('--wait=none member add g r2 --listen 7000', 2, 'castctl member remove g r2')
    w.db.update('Member', {'host': 'r2'}, want='removed')
    ask(w, 'member add g r2 --listen 7002')         # castd waits until it has left.
    check_equal('both', listener(w, 'r2')['port'], 7002)
    w.db.update('Member', {'host': 'r2'}, want='active', connection=5)
    ask(w, 'member add g r2 --listen 7003 --replace')
    # A host and a group of listeners.
    w.refused('host del r1', 2, 'host r1 is to be a member of group g')
    ask(w, 'group add h')
    ask(w, 'member add h r1 --listen 7000')
    ask(w, 'group del g')
    check_equal('gone with the group', [row['host'] for row in w.db.rows('Listener')], ['r1'])


def listeners_leave(w):
    """Who leaves is not connected again: with or without a member."""
    w.star()
    w.castctl('group add g')
    still(w)
    for verb, want in (('leave', 'left'), ('drain', 'left'), ('remove', 'removed')):
        ask(w, 'member add g r1 --listen 7000')
        ask(w, 'member %s g r1' % verb)
        check_equal(verb + ' without a member', listener(w), None)
        w.refused('--wait=none member %s g r1' % verb, 2, 'r1 is not a member of group g')
        ask(w, 'member %s g r1 --if-exists' % verb)
        ask(w, 'member add g r2' + MEMBER)
        ask(w, 'member add g r3 --listen 7000')
        w.db.transact({'op': 'insert', 'table': 'Listener', 'row': {
            'group': w.db.row('Group', name='g')['_uuid'], 'host': 'r2', 'port': 7000}})
        cfg = w.db.row('Global')['next_cfg']
        ask(w, 'member %s g r2' % verb)
        check_equal(verb + ', both in one transaction',
                    (w.db.row('Global')['next_cfg'], listener(w, 'r2'), w.db.row('Member', host='r2')['want']),
                    (cfg + 1, None, want))
        check_equal('another one stays', listener(w, 'r3')['port'], 7000)
        w.db.update('Member', {'host': 'r2'}, want='removed')      # as castd does when a program ends.
        ask(w, 'member %s g r2' % verb)
        check_equal('is removed all the same', w.db.row('Member', host='r2')['want'], 'removed')
        w.db.transact({'op': 'delete', 'table': 'Member', 'where': []})


def listeners_shown(w):
    """What has become of programs that are to be members, beside the members."""
    w.star()
    w.castctl('group add g')
    w.castctl('group add h')
    still(w)
    ask(w, 'member add g r1 --listen 7000')
    ask(w, 'member add h r1 --listen 7000')
    ask(w, 'member add g r2' + MEMBER)

    def member(host):
        return next(m for m in json.loads(w.castctl('-j member list g')) if m['host'] == host)

    def expect(status):
        shown = member('r1')
        check_equal('listens', fields(shown, 'state', 'status', 'listen', 'qpn', 'connection'),
                    {'state': 'listening', 'status': status, 'listen': 7000, 'qpn': None, 'connection': None})
        check_equal('group show', next(m for m in w.show()['members'] if m['host'] == 'r1'), shown)
        line = output.row(w.castctl('member list g'), 'r1')
        check_equal('text', [line[k] for k in ('host', 'qpn', 'listen', 'connection', 'state', 'status')],
                    ['r1', '-', '7000', '-', 'listening', status or '-'])

    expect('')
    write(w, 'fd00:1::1', 7, group='h')         # of another group, role, port and host; and what was before.
    write(w, 'fd00:1::1', 8, role='passive', state='requested')
    write(w, 'fd00:1::1', 9, port=7001)
    write(w, 'fd00:1::2', 10)
    write(w, 'fd00:1::1', 11, state='ended', cause='dreq')
    expect('')
    write(w, 'fd00:1::1', 12)
    expect('connecting')
    change(w, 12, state='refused', peer_reason=28)
    expect('refused: rejected by the consumer')
    change(w, 12, peer_reason=8)
    expect('refused: invalid service ID')
    change(w, 12, state='answered', status='waiting for its earlier registration to leave')
    expect('answered: waiting for its earlier registration to leave')
    w.db.update('Listener', {'host': 'r1'}, status='the answer has 8 bytes of private data, rkey is at 8 to 11')
    expect('the answer has 8 bytes of private data, rkey is at 8 to 11')
    check_equal('an ordinary one', fields(member('r2'), 'listen', 'connection', 'qpn'),
                {'listen': None, 'connection': None, 'qpn': 17})
    # It has become a member: one row, which says by what.
    w.db.update('Member', {'host': 'r2'}, host='r1', connection=12)
    check_equal('a member', fields(member('r1'), 'listen', 'connection', 'qpn', 'keep'),
                {'listen': 7000, 'connection': 12, 'qpn': 17, 'keep': False})
    check_equal('one row', [m['host'] for m in w.show()['members']], ['r1'])
    check_equal('text', output.row(w.castctl('member list g'), 'r1')['connection'], '12')
    ask(w, 'source set g --host h0 --qpn 18')
    w.db.update('Source', {'host': 'h0'}, connection=3)
    check_equal('the source', (w.show()['source']['connection'], output.value(w.castctl('source show g'), 'connection')),
                (3, '3'))


def connection_list(w):
    """Connections of all groups and of one, by node and number."""
    w.star()
    w.castctl('group add g')
    w.castctl('group add h')
    check_equal('none', w.castctl('connection list'), '')
    check_equal('none', json.loads(w.castctl('-j connection list')), [])
    still(w)
    write(w, 'fd00:1::1', 10, state='established', status='receiver', peer_qpn=17, qpn=257)
    write(w, 'fd00:1::2', 9, state='refused', peer_reason=28)
    write(w, 'fd00:1::3', 8, state='ended', cause='silence', group='h')
    write(w, 'fd00:1::77', 0x80000001, role='passive', node='a0', state='requested', group='', port=7174)
    every = json.loads(w.castctl('-j connection list'))
    check_equal('order', [(c['node'], c['number']) for c in every],
                [('a0', 0x80000001), ('n1', 8), ('n1', 9), ('n1', 10)])
    check_equal('a row', every[3], {
        'node': 'n1', 'number': 10, 'group': 'g', 'proxy': 'fd00:ffff::1', 'host': 'r1', 'address': 'fd00:1::1',
        'role': 'active', 'port': 7000, 'state': 'established', 'cause': None, 'qpn': 17, 'designated_qpn': 257,
        'status': 'receiver'})
    check_equal('what is not known', fields(every[0], 'group', 'host', 'qpn', 'designated_qpn', 'address'),
                {'group': None, 'host': None, 'qpn': None, 'designated_qpn': None, 'address': 'fd00:1::77'})
    check_equal('one group', [c['number'] for c in json.loads(w.castctl('-j connection list g'))], [9, 10])
    w.refused('connection list x', 2, "connection list: no group named 'x'")
    text = w.castctl('connection list g')
    check_equal('text', text.split('\n'), [
        'node  number  group  host  role    port  state        cause  qpn   status',
        'n1    9       g      r2    active  7000  refused      -      -     rejected by the consumer',
        'n1    10      g      r1    active  7000  established  -      0x11  receiver', ''])


def watch_connections(w):
    """Programs that are connected and disconnected, with why, whoever they are."""
    w.star()
    w.castctl('group add g')
    w.castctl('member add g r1' + MEMBER)
    still(w)
    w.db.update('Member', {'host': 'r1'}, connection=7)
    write(w, 'fd00:1::1', 7, state='answered', peer_qpn=17)
    with Watch(w, 'g') as watch, Watch(w, 'g', text=True) as text:
        watch.take('g:pending=')
        wait_until('the other begins', lambda: len(text.lines) == 2)

        def expect(word, line, **said):
            """The next event, as an object and as a line."""
            check_equal('events', watch.take(word), [word])
            check_equal(word, fields(watch.last(), *said), said)
            wait_until(line, lambda: text.lines[-1].split('  ', 1)[1] == line)

        check_equal('not connected yet', [word for word in watch.words() if 'connect' in word], [])
        change(w, 7, state='established', status='receiver')
        r1 = {'member': 'r1', 'host': 'r1', 'role': 'active', 'node': 'n1', 'number': 7, 'port': 7000, 'qpn': 17,
              'epoch': 1}
        expect('g:r1:connected', 'g  r1  connected: r1, QPN 0x11, active at n1: receiver',
               **r1, before='answered', state='established', status='receiver', initial=False)
        check('cause' not in watch.last(), 'a cause')
        # Who connects and is no member.
        write(w, 'fd00:1::100', 0x80000002, role='passive', node='a0', port=7174, peer_qpn=18, state='accepted')
        change(w, 0x80000002, state='established')
        h0 = {'member': None, 'host': 'h0', 'role': 'passive', 'node': 'a0', 'number': 0x80000002, 'port': 7174,
              'qpn': 18}
        expect('g:connected', 'g  -  connected: h0, QPN 0x12, passive at a0', **h0, state='established', status='')
        with Watch(w, 'g --until connected:r1') as again:
            check_equal('at the start', again.end(), (0, ''))
            check_equal('at the start', again.words(), ['g:connected=', 'g:r1:connected='])
        # A program dies; one is closed; a row goes without having ended.
        change(w, 7, state='ended', cause='dreq', status='')
        expect('g:r1:disconnected', 'g  r1  disconnected (dreq): r1, QPN 0x11, active at n1',
               **r1, before='established', state='ended', cause='dreq', status='')
        over = 'the group has begun another epoch'
        change(w, 0x80000002, state='closing', status=over)
        expect('g:disconnected', 'g  -  disconnected (decision): h0, QPN 0x12, passive at a0: ' + over,
               **h0, before='established', state='closing', cause='decision', status=over)
        change(w, 0x80000002, state='ended', cause='decision')      # is not told once more.
        # castd deletes a row as soon as it has ended: here before watch has seen that.
        write(w, 'fd00:1::1', 8, state='established', peer_qpn=20)
        expect('g:connected', 'g  -  connected: r1, QPN 0x14, active at n1', number=8)
        for each in (watch, text):
            each.process.send_signal(signal.SIGSTOP)
        change(w, 8, state='ended', cause='silence')
        w.db.transact({'op': 'delete', 'table': 'Connection', 'where': [['number', '==', 8]]})
        for each in (watch, text):
            each.process.send_signal(signal.SIGCONT)
        expect('g:disconnected', 'g  -  disconnected (silence): r1, QPN 0x14, active at n1',
               number=8, state='ended', cause='silence')
        write(w, 'fd00:1::77', 9, state='established', peer_qpn=19)
        expect('g:connected', 'g  -  connected: fd00:1::77, QPN 0x13, active at n1', host='fd00:1::77', before=None)
        w.db.transact({'op': 'delete', 'table': 'Connection', 'where': []})
        expect('g:disconnected', 'g  -  disconnected (gone): fd00:1::77, QPN 0x13, active at n1',
               host='fd00:1::77', state=None, cause=None, status='')


CASES = (connect_setting, listeners, listeners_leave, listeners_shown, connection_list, watch_connections)
