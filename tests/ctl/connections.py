# SPDX-License-Identifier: Apache-2.0
"""RDMA-CM connections: what castd decides about those that agents report, and what follows."""
import struct

from world import check, check_equal, wait_until

PORT = 7174
NUMBER = 0x80000001     # of passive connections: agents choose these.
ADDRESS = {'h0': 'fd00:1::100', 'r1': 'fd00:1::1', 'r2': 'fd00:1::2', 'r9': 'fd00:1::9'}
NODE = {'h0': 'a0', 'r1': 'n1', 'r2': 'n1', 'r9': 'n2'}


def value(column):
    """Of an optional column."""
    return None if column == ['set', []] else column


def region(va=0x1000, rkey=77, size=4096):
    return struct.pack('>QIQ', va, rkey, size)


def connections(w, **where):
    return w.db.rows('Connection', **where)


def connection(w, number):
    rows = connections(w, number=number)
    return rows[0] if rows else None


def requested(w, host, number=NUMBER, data=b'', proxy=None, **columns):
    """What the host's agent writes that has got a REQ."""
    row = {'node': NODE[host], 'number': number, 'role': 'passive', 'address': ADDRESS[host],
           'proxy': proxy or w.show()['proxy'], 'port': PORT, 'state': 'requested',
           'remote_id': 5, 'transaction': '00000000000000a1', 'peer_qpn': 0x21, 'peer_psn': 0x4321,
           'peer_mtu': 1024, 'peer_data': data.ljust(56, b'\0').hex(), 'timeout': 0, 'keepalive': 0,
           'answer': '', 'group': '', 'status': ''}
    row.update(columns)
    return {'op': 'insert', 'table': 'Connection', 'row': row}


def request(w, *args, **columns):
    """The host's agent reports a REQ."""
    w.db.transact(requested(w, *args, **columns))


def report(w, number, **columns):
    """The agent reports how far a connection is."""
    w.db.update('Connection', {'number': number}, **columns)


def decision(w, number):
    row = connection(w, number)
    return row and value(row['decision'])


def decided(w, number, want):
    def condition():
        return decision(w, number) == want
    if want == 'accept':
        w.apply_all_until('connection %x is accepted' % number, condition)
    else:
        wait_until('connection %x: %s' % (number, want), condition)
    return connection(w, number)


def rejected(w, number, reason, text):
    row = decided(w, number, 'reject')
    check_equal('reason of "%s"' % row['status'], row['reason'], reason)
    check(text in row['status'], 'status %r does not say %r', row['status'], text)
    check_equal('text', bytes.fromhex(row['answer']).decode(), row['status'])
    report(w, number, state='ended', cause='decision')
    wait_until('the row is gone', lambda: not connection(w, number))


def gone(w, number, cause='dreq'):
    """The program has disconnected."""
    report(w, number, state='ended', cause=cause)
    wait_until('the row is gone', lambda: not connection(w, number))


def member(w, host):
    rows = w.db.rows('Member', host=host)
    return rows[0] if rows else None


def connected_source(w, number=NUMBER, **columns):
    request(w, 'h0', number, **columns)
    row = decided(w, number, 'accept')
    report(w, number, state='established')
    return row


def group(w, *options):
    w.star()
    w.castctl(' '.join(('group add g --connect', *options)))


def listener(w, host='r1', port=7000, options=''):
    """A program listens; returns the connection that its node is to begin."""
    w.castctl('member add g %s --listen %d %s' % (host, port, options))
    return begun(w, host)


def begun(w, host, after=0):
    """A connection to this host's program, with a higher number than 'after'."""
    def condition():
        return [c for c in connections(w, role='active', address=ADDRESS[host]) if c['number'] > after]
    return wait_until('a connection to %s begins' % host, condition)[0]['number']


def answered(w, number, data=None, **columns):
    data = (region() if data is None else data).ljust(196, b'\0').hex()
    report(w, number, **{'state': 'answered', 'remote_id': 9, 'peer_qpn': 0x31, 'peer_psn': 0x5678,
                         'peer_data': data,
                         **columns})


#
# Sources.
#

def source(w):
    """It is answered when the group serves, and its end is the source's."""
    group(w)
    w.castctl('member add g r1 --qpn 17 --rkey 7 --va 0x1000 --len 4096')
    request(w, 'h0')
    wait_until('the source is there', lambda: w.db.rows('Source'))
    w.settled()
    check_equal('before nodes have applied', decision(w, NUMBER), None)
    check('waiting for node n1' in connection(w, NUMBER)['status'], '%r', connection(w, NUMBER))
    w.restart_castd()
    row = decided(w, NUMBER, 'accept')
    shown = w.show()
    check_equal('epoch', shown['epoch'], 1)
    check_equal('answer', (row['qpn'], row['psn']), (shown['designated_qpn'], shown['start_psn']))
    check_equal('keepalive', row['keepalive'], w.db.row('Group')['liveness'])
    check_equal('private data', struct.unpack('>QIQIHH8s', bytes.fromhex(row['answer'])),
                (0, shown['designated_rkey'], 4096, 1, 1, 0, b'rocecast'))
    report(w, NUMBER, state='established')
    w.restart_castd()
    w.settled()
    check_equal('the source', w.db.row('Source')['qpn'], 0x21)
    check_equal('no decision but that', decision(w, NUMBER), 'accept')
    gone(w, NUMBER)
    check_equal('sources', w.db.rows('Source'), [])
    w.expect_state('pending', 'waiting for a source')


def another_source(w):
    """One at a time; the next one begins another epoch, which members with --keep come into."""
    group(w)
    w.castctl('member add g r1 --qpn 17 --rkey 7 --va 0x1000 --len 4096 --keep')
    connected_source(w)
    request(w, 'h0', NUMBER + 1, peer_qpn=0x22)
    rejected(w, NUMBER + 1, 28, 'has a source: h0, QPN 0x21')
    gone(w, NUMBER, 'silence')
    request(w, 'h0', NUMBER + 2, peer_qpn=0x23)
    wait_until('epoch 2', lambda: w.show()['epoch'] == 2)
    check_equal('source', w.db.row('Source')['qpn'], 0x23)
    # What was set takes its place.
    w.castctl('source set g --host h0 --qpn 99')
    decided(w, NUMBER + 2, 'reject')
    check_equal('source', [w.db.row('Source')[c] for c in ('qpn', 'connection')],
                [99, ['set', []]])


def source_replaced(w):
    """A source that is set ends the connection of the one before."""
    group(w)
    w.castctl('member add g r1 --qpn 17 --keep')
    connected_source(w)
    w.castctl('source set g --host h0 --qpn 99')
    check('replaced' in decided(w, NUMBER, 'close')['status'], '%r', connection(w, NUMBER))
    gone(w, NUMBER, 'decision')
    check_equal('the one that was set stays', w.db.row('Source')['qpn'], 99)


def refusals(w):
    """Each has its reason, and a sentence for the program."""
    group(w)
    request(w, 'h0')
    rejected(w, NUMBER, 28, 'group g has no members')
    w.castctl('member add g r1 --qpn 17')
    request(w, 'h0', proxy='fd00:ffff::999')
    rejected(w, NUMBER, 8, 'no group has Proxy Address fd00:ffff::999')
    request(w, 'h0', port=1)
    rejected(w, NUMBER, 8, 'takes connections at port 7174, not 1')
    request(w, 'h0', peer_mtu=4096)
    rejected(w, NUMBER, 26, 'group g has path MTU 1024, not 4096')
    request(w, 'h0', address='fd00:1::77')
    rejected(w, NUMBER, 28, 'no host has address fd00:1::77')
    request(w, 'r2')
    rejected(w, NUMBER, 28, 'r2')
    w.castctl('host add h7 --address fd00:1::7')  # behind no node.
    request(w, 'h0', data=b'receiver' + region(), address='fd00:1::7')
    rejected(w, NUMBER, 28, 'h7 cannot be a receiver')
    request(w, 'r2', data=b'receiver' + region(size=0))
    rejected(w, NUMBER, 28, '0 bytes')
    request(w, 'r1', data=b'receiver' + region())
    rejected(w, NUMBER, 28, 'r1 is registered in group g with QPN 0x11 already')
    w.castctl('group add other')
    request(w, 'h0', proxy=w.show('other')['proxy'])
    rejected(w, NUMBER, 8, 'group other takes no connections')
    check_equal('sources', w.db.rows('Source'), [])


def group_goes(w):
    """Connections of a group that is deleted are closed."""
    group(w)
    w.castctl('member add g r1 --qpn 17')
    connected_source(w)
    number = listener(w, 'r2')
    w.castctl('group del g')
    for n in (NUMBER, number):
        decided(w, n, 'close')
        gone(w, n, 'decision')
    w.castctl('group add g --connect')
    w.settled()
    check_equal('connections', connections(w), [])


#
# Receivers.
#

def listens(w):
    """A program that listens is a member while it is there, and is connected again after that."""
    group(w)
    number = listener(w)
    row = connection(w, number)
    shown = w.show()
    check_equal('what the node is to do', {c: value(row[c]) for c in (
        'node', 'role', 'proxy', 'address', 'port', 'qpn', 'psn', 'mtu', 'timeout', 'decision')},
                {'node': 'n1', 'role': 'active', 'proxy': shown['proxy'], 'address': 'fd00:1::1',
                 'port': 7000, 'qpn': shown['designated_qpn'], 'psn': shown['start_psn'],
                 'mtu': 1024, 'timeout': shown['qp_timeout'], 'decision': None})
    check(0 < number < 1 << 31, 'number %d', number)
    report(w, number, state='refused', peer_reason=8)
    w.settled()
    check_equal('who is not there is no member', member(w, 'r1'), None)
    answered(w, number)
    decided(w, number, 'accept')
    check_equal('member', {c: value(member(w, 'r1')[c]) for c in (
        'qpn', 'rkey', 'va', 'len', 'psn', 'keep', 'designated_qpn', 'connection')},
                {'qpn': 0x31, 'rkey': 77, 'va': '0x1000', 'len': 4096, 'psn': 0x5678,
                 'keep': True, 'designated_qpn': None, 'connection': number})
    report(w, number, state='established')
    w.restart_castd()
    w.settled()
    check_equal('connections', [c['number'] for c in connections(w)], [number])
    gone(w, number)
    wait_until('the member is gone', lambda: not member(w, 'r1'))
    again = begun(w, 'r1', number)
    answered(w, again, peer_qpn=0x32)
    decided(w, again, 'accept')
    check_equal('its QPN now', member(w, 'r1')['qpn'], 0x32)
    w.castctl('member remove g r1')
    decided(w, again, 'close')
    gone(w, again, 'decision')
    w.settled()
    check_equal('all gone', (connections(w), w.db.rows('Listener'), w.db.rows('Member')),
                ([], [], []))


def listens_late(w):
    """With a source it is told that it is connected when its edge has it."""
    group(w, '--policy prune')
    w.castctl('member add g r2 --qpn 17 --keep')
    connected_source(w)
    number = listener(w)
    answered(w, number)
    wait_until('the member is there', lambda: member(w, 'r1'))
    w.settled()
    check_equal('before its edge has applied', decision(w, number), None)
    decided(w, number, 'accept')
    report(w, number, state='established')
    # The edge loses it: the program is told, and connected again.
    tree = w.tree('n1')
    w.set_started()
    w.db.update('Tree_Node', {'_uuid': tree['_uuid']}, lost=['map', [
        [tree['branches']['r1']['id'], 'silent']]])
    check('silent' in decided(w, number, 'close')['status'], '%r', connection(w, number))
    gone(w, number, 'decision')
    w.apply_all_until('the member has left', lambda: not member(w, 'r1'))
    begun(w, 'r1', number)


def bad_answers(w):
    """What is wrong with an answer is the listener's status; the program is asked again."""
    group(w)
    number = listener(w)
    for data, text in ((region(size=0), 'len'), (region(va=(1 << 64) - 1), 'va')):
        answered(w, number, data)
        decided(w, number, 'close')
        status = w.db.row('Listener')['status']
        check(text in status, 'status %r does not say %r', status, text)
        gone(w, number, 'decision')
        number = begun(w, 'r1', number)
    check_equal('member', member(w, 'r1'), None)
    answered(w, number)
    decided(w, number, 'accept')
    check_equal('status', w.db.row('Listener')['status'], '')


def receiver_connects(w):
    """A program that says that it is a receiver."""
    group(w)
    request(w, 'r1', data=b'receiver' + region())
    row = decided(w, NUMBER, 'accept')
    shown = w.show()
    check_equal('answer', (row['qpn'], row['psn']), (shown['designated_qpn'], shown['start_psn']))
    check_equal('member', [member(w, 'r1')[c] for c in ('qpn', 'rkey', 'va', 'len', 'psn', 'connection')],
                [0x21, 77, '0x1000', 4096, 0x4321, NUMBER])
    report(w, NUMBER, state='established')
    connected_source(w, NUMBER + 1)
    gone(w, NUMBER)
    w.apply_all_until('the member has left', lambda: not member(w, 'r1'))
    check_equal('the source stays', w.db.row('Source')['qpn'], 0x21)


def elsewhere(w):
    """A program at a host that no node has cannot be connected."""
    group(w)
    w.castctl('host add h7 --address fd00:1::7')
    w.castctl('member add g h7 --listen 7000')
    wait_until('the operator is told', lambda: w.db.row('Listener')['status'])
    check('not behind a switch or source agent' in w.db.row('Listener')['status'], '%r', w.db.row('Listener'))
    check_equal('connections', connections(w), [])


#
# What comes together, and what is missing.
#

RECEIVER = b'receiver' + region()


def two_at_once(w):
    """Two programs of one host in one report: one is a member, the other is told so."""
    group(w)
    w.db.transact(requested(w, 'r1', NUMBER, RECEIVER),
                  requested(w, 'r1', NUMBER + 1, RECEIVER, peer_qpn=0x22))
    accepted = wait_until('one is accepted', lambda: [
        n for n in (NUMBER, NUMBER + 1) if decision(w, n) == 'accept'])[0]
    check_equal('member', member(w, 'r1')['connection'], accepted)
    rejected(w, 2 * NUMBER + 1 - accepted, 28, 'registered in group g')
    w.settled()


def epoch_begins(w):
    """A source goes, another comes, and a receiver with it, all in one report."""
    group(w)
    w.castctl('member add g r2 --qpn 17 --keep')
    connected_source(w)
    w.db.transact(requested(w, 'h0', NUMBER + 1, peer_qpn=0x22),
                  requested(w, 'r1', NUMBER + 2, RECEIVER),
                  {'op': 'update', 'table': 'Connection', 'row': {'state': 'ended', 'cause': 'dreq'},
                   'where': [['number', '==', NUMBER], ['node', '==', 'a0']]})
    decided(w, NUMBER + 2, 'accept')
    check_equal('epochs', (w.show()['epoch'], w.db.row('Source')['epoch'], member(w, 'r1')['epoch']),
                (2, 2, 2))
    check_equal('source', w.db.row('Source')['qpn'], 0x22)


def nonsense(w):
    """Queue pairs that cannot be."""
    group(w)
    w.castctl('member add g r2 --qpn 17')
    for qpn in 0, 1, 0xffffff:
        request(w, 'h0', peer_qpn=qpn)
        rejected(w, NUMBER, 5, 'QPN 0x%x is no queue pair' % qpn)
        request(w, 'r1', data=RECEIVER, peer_qpn=qpn)
        rejected(w, NUMBER, 5, 'QPN 0x%x is no queue pair' % qpn)
    number = listener(w)
    answered(w, number, peer_qpn=0xffffff)
    decided(w, number, 'close')
    w.settled()


def row_gone(w):
    """What stands for a connection goes with its row, however that went."""
    group(w)
    request(w, 'r1', data=RECEIVER)
    decided(w, NUMBER, 'accept')
    connected_source(w, NUMBER + 1)
    w.db.transact({'op': 'delete', 'table': 'Connection', 'where': []})
    w.apply_all_until('nobody is there', lambda: not w.db.rows('Source') and not member(w, 'r1'))


def node_gone(w):
    """A node that is deleted cannot say that its connections have ended."""
    group(w)
    number = listener(w, 'r9')
    answered(w, number)
    decided(w, number, 'accept')
    for command in 'member remove g r9', 'link del n2:tr9', 'link del n1:n2', 'node del n2':
        w.castctl(command)
        w.apply_all_until('it has been applied', lambda: True)
    w.apply_all_until('no connection is left', lambda: not connections(w))


def program_moves(w):
    """The program is connected by the node that its host is behind."""
    group(w)
    number = listener(w, 'r9')
    w.cut_host('n2', 'r9')
    w.castctl('link add n1:tr9 r9:tr9')
    decided(w, number, 'close')
    gone(w, number, 'decision')
    again = begun(w, 'r9', number)
    check_equal('node', connection(w, again)['node'], 'n1')


def leaves(w):
    """A member that is told to leave: its program is told so, and may come again."""
    group(w)
    request(w, 'r1', data=RECEIVER)
    decided(w, NUMBER, 'accept')
    report(w, NUMBER, state='established')
    w.castctl('member leave g r1')
    decided(w, NUMBER, 'close')
    gone(w, NUMBER, 'decision')
    request(w, 'r1', NUMBER + 1, data=RECEIVER, peer_qpn=0x22)
    decided(w, NUMBER + 1, 'accept')
    check_equal('QPN', member(w, 'r1')['qpn'], 0x22)


CASES = (source, another_source, source_replaced, refusals, group_goes, listens, listens_late,
         bad_answers, receiver_connects, elsewhere, two_at_once, epoch_begins, nonsense, row_gone,
         node_gone, program_moves, leaves)
