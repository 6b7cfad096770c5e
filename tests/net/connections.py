# SPDX-License-Identifier: Apache-2.0
"""RDMA-CM connections between a node's agent and the registry.  castd is stopped: the test decides in its
place.  Programs are sockets that say what a host's kernel would (IBTA volume 1, chapter 12)."""
import itertools
import json
import os
import socket
import struct

from losses import down
from netlab import Lab

import harness
from captures import icrc
from harness import check, check_equal, output, wait_until

ROCE_PORT = 4791
UDP_NO_CHECK6_RX = 102    # linux/udp.h
REQ, REJ, REP, RTU, DREQ, DREP = 0x10, 0x12, 0x13, 0x14, 0x15, 0x16
QPN, PSN, DESIGNATED_QPN, START_PSN = 0x11, 7000, 0x101, 0x123456
# Even and odd: of different threads.
PROXIES = ('fd00:ffff::4242', 'fd00:ffff::4243')


def make_lab():
    lab = Lab.shipped('star', 'N=3')
    lab.threads = '2'
    return lab


class Program:
    """One at a host, with one connection to a Proxy Address.  No two have the same communication ID or
    transaction ID: a copy of an old request is none."""
    numbers = itertools.count(0x4d2)

    def __init__(self, lab, host, proxy):
        self.number = next(self.numbers)
        self.tid = 0x1122334400000000 + self.number
        self.address, self.proxy = lab.address(host), proxy
        self.socket = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_UDP, UDP_NO_CHECK6_RX, 1)
        self.socket.bind((self.address, ROCE_PORT))
        self.socket.settimeout(harness.PATIENCE)
        self.psn = 0
        self.heard = set()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, tb):
        self.socket.close()

    def say(self, attribute, body, tid=None):
        bth = struct.pack('>BBHII', 0x64, 0, 0xffff, 1, self.psn)
        deth = struct.pack('>II', 0x80010000, 1)
        mad = struct.pack('>BBBBHHQHHI', 1, 7, 2, 3, 0, 0, tid or self.tid, attribute, 0, 0) + body.ljust(232, b'\0')
        payload = bth + deth + mad
        udp_len = 8 + len(payload) + 4
        ip = (struct.pack('>IHBB', 6 << 28, udp_len, 17, 64) + socket.inet_pton(socket.AF_INET6, self.address)
              + socket.inet_pton(socket.AF_INET6, self.proxy))
        udp = struct.pack('>HHHH', ROCE_PORT, ROCE_PORT, udp_len, 0)
        self.psn += 1
        self.socket.sendto(payload + icrc(ip + udp + payload), (self.proxy, ROCE_PORT))

    def hear(self, attribute):
        """The body of the next message, which must be this one, and its transaction.  Repetitions of what was
        heard before do not count."""
        heard = None
        while heard != attribute:
            data, sender = self.socket.recvfrom(2048)
            check_equal('sender', sender[0], self.proxy)
            tid, heard = struct.unpack_from('>QH', data, 12 + 8 + 8)
            check(heard == attribute or heard in self.heard, 'attribute: %#x, not %#x', heard, attribute)
        self.heard.add(heard)
        return data[12 + 8 + 24:-4], tid

    def hear_nothing(self):
        """... has come until now."""
        self.socket.setblocking(False)
        try:
            check_equal('what has come', self.socket.recv(2048), None)
        except BlockingIOError:
            pass
        self.socket.settimeout(harness.PATIENCE)

    def connect(self, private):
        addresses = (socket.inet_pton(socket.AF_INET6, self.address)
                     + socket.inet_pton(socket.AF_INET6, self.proxy))
        self.say(REQ, struct.pack('>IIQQII', self.number, 0, 0x1060000 + 7174, 1, 0, 0)
                 + struct.pack('>II', QPN << 8 | 1, 1) + struct.pack('>II', 0xa0, PSN << 8 | 0xa7)
                 + struct.pack('>HBBHH', 0xffff, 0x37, 0xf0, 0xffff, 0xffff) + addresses
                 + bytes(140 - 88) + struct.pack('>BBH', 0, 0x60, 1234) + addresses + private)


#
# The registry, as castd sees it.
#

def transact(*operations):
    answers = json.loads(output('ovsdb-client', 'transact', os.environ['ROCECAST_DB'],
                                json.dumps(['rocecast', *operations])))
    check(not any('error' in a for a in answers), 'ovsdb-client transact: %s', answers)
    return answers


def rows():
    """All connections, by node and number; an empty column is None."""
    answer, = transact({'op': 'select', 'table': 'Connection', 'where': []})
    return {(row['node'], row['number']):
            {k: None if v == ['set', []] else v for k, v in row.items() if not k.startswith('_')}
            for row in answer['rows']}


def only_row():
    found = rows()
    check_equal('number of connections', len(found), 1)
    return next(iter(found.values()))


def where(row):
    return [['node', '==', row['node']], ['number', '==', row['number']]]


def write(row, **columns):
    transact({'op': 'update', 'table': 'Connection', 'where': where(row), 'row': columns})


def delete(row):
    transact({'op': 'delete', 'table': 'Connection', 'where': where(row)})


def wait_state(state):
    wait_until('the connection is %s' % state,
               lambda: [row['state'] for row in rows().values()] == [state])
    return only_row()


def listed(lab, node):
    return json.loads(lab.appctl(node, 'rocecast/connections', '-j'))


def accept(row):
    write(row, decision='accept', qpn=DESIGNATED_QPN, psn=START_PSN, answer='cafe')


def forget(lab, row):
    """The row goes: the node forgets, and makes no other one."""
    delete(row)
    wait_until('%s has forgotten' % row['node'], lambda: not listed(lab, row['node']))
    check_equal('rows', rows(), {})


#
# Cases.
#

def connect(lab, program, node, private=b'\x01\x02\x03'):
    """A program's request becomes a row, which is accepted; the row then."""
    program.connect(private)
    row = wait_state('requested')
    check(row['number'] >= 1 << 31, 'number: %d', row['number'])
    check_equal('row', {k: row[k] for k in ('node', 'role', 'proxy', 'address', 'port', 'decision', 'remote_id',
                                            'transaction', 'peer_qpn', 'peer_psn', 'peer_mtu', 'cause')},
                {'node': node, 'role': 'passive', 'proxy': program.proxy, 'address': program.address,
                 'port': 7174, 'decision': None, 'remote_id': program.number, 'transaction': '%x' % program.tid,
                 'peer_qpn': QPN, 'peer_psn': PSN, 'peer_mtu': 1024, 'cause': None})
    check_equal('private data', row['peer_data'], private.hex().ljust(2 * 56, '0'))
    accept(row)
    body, tid = program.hear(REP)
    check_equal('transaction', tid, program.tid)
    check_equal('IDs', struct.unpack_from('>II', body), (row['number'], program.number))
    check_equal('QPN and PSN', (struct.unpack_from('>I', body, 12)[0] >> 8, struct.unpack_from('>I', body, 20)[0] >> 8),
                (DESIGNATED_QPN, START_PSN))
    check_equal('private data', body[36:38].hex(), 'cafe')
    wait_state('accepted')
    program.say(RTU, struct.pack('>II', program.number, row['number']))
    return wait_state('established')


def disconnect(program, row):
    program.say(DREQ, struct.pack('>III', program.number, row['number'], DESIGNATED_QPN << 8), tid=5)
    body, tid = program.hear(DREP)
    check_equal('transaction and IDs', (tid, *struct.unpack_from('>II', body)), (5, row['number'], program.number))
    check_equal('cause', wait_state('ended')['cause'], 'dreq')


def passive(lab):
    """At an edge and at the source agent, with Proxy Addresses that no group has, of each thread."""
    with down(lab, 'castd'):
        for host, node in (('r1', 'n1'), ('h0', 'sa')):
            for proxy in PROXIES:
                with Program(lab, host, proxy) as program:
                    row = connect(lab, program, node)
                    shown, = listed(lab, node)
                    check_equal('as listed', (shown['number'], shown['state'], shown['configured']),
                                (row['number'], 'established', True))
                    disconnect(program, row)
                    forget(lab, row)


def rejected(lab):
    """With reason and private data."""
    with down(lab, 'castd'), Program(lab, 'r2', PROXIES[0]) as program:
        program.connect(b'')
        row = wait_state('requested')
        write(row, decision='reject', reason=8, answer=b'no group'.hex())
        body, _ = program.hear(REJ)
        check_equal('reason and text', (struct.unpack_from('>H', body, 10)[0], body[84:92]), (8, b'no group'))
        check_equal('cause', wait_state('ended')['cause'], 'decision')
        forget(lab, row)


def agent_restarted(lab):
    """Nobody notices; the node answers for the connection as before."""
    with down(lab, 'castd'), Program(lab, 'r1', PROXIES[1]) as program:
        row = connect(lab, program, 'n1')
        output('castlab', 'restart', 'n1')
        wait_until('n1 has the connection',
                   lambda: [c['state'] for c in listed(lab, 'n1')] == ['established'])
        check_equal('row', only_row(), row)
        program.hear_nothing()
        disconnect(program, row)
        forget(lab, row)


def active(lab):
    """The node asks until the program answers."""
    with down(lab, 'castd'), Program(lab, 'r3', PROXIES[0]) as program:
        transact({'op': 'insert', 'table': 'Connection', 'row': {
            'node': 'n1', 'number': 9, 'role': 'active', 'proxy': program.proxy, 'address': program.address,
            'port': 7183, 'qpn': DESIGNATED_QPN, 'psn': START_PSN, 'mtu': 1024, 'timeout': 14}})
        body, tid = program.hear(REQ)
        check_equal('service', struct.unpack_from('>Q', body, 8)[0], 0x1060000 + 7183)
        program.say(REJ, struct.pack('>IIBBH', 0, 9, 0, 0, 8), tid)
        check_equal('reason', wait_state('refused')['peer_reason'], 8)
        program.hear(REQ)
        program.say(REP, struct.pack('>IIIIIII', 77, 9, 0, QPN << 8, 0, 5 << 8, 0).ljust(36, b'\0')
                    + b'\xab\xcd', tid)
        row = wait_state('answered')
        check_equal('answer', (row['remote_id'], row['peer_qpn'], row['peer_data'][:4]), (77, QPN, 'abcd'))
        write(row, decision='accept')
        check_equal('IDs', struct.unpack_from('>II', program.hear(RTU)[0]), (9, 77))
        wait_state('established')
        write(row, decision='close')
        program.hear(DREQ)
        program.say(DREP, struct.pack('>II', 77, 9), tid)
        check_equal('cause', wait_state('ended')['cause'], 'decision')
        forget(lab, row)


def left_out(lab):
    """A row that makes no sense is named in the log, and the others are followed."""
    with down(lab, 'castd'), Program(lab, 'r1', PROXIES[0]) as program:
        transact({'op': 'insert', 'table': 'Connection', 'row': {
            'node': 'n1', 'number': 10, 'role': 'active', 'proxy': 'fd00:1::7', 'address': 'fd00:1::1'}})
        wait_until('n1 names it', lambda: 'connection 10 is left out: Connection.proxy' in lab.log('n1'))
        delete({'node': 'n1', 'number': 10})
        row = connect(lab, program, 'n1')
        disconnect(program, row)
        forget(lab, row)


CASES = [passive, rejected, agent_restarted, active, left_out]
