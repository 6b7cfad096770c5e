# SPDX-License-Identifier: Apache-2.0
"""A private registry, and the rows that have one node do one job.

The rows are what castd would write (docs/registry.md); castd is not there, so that a node has exactly
the groups, branches and ports of a case.
"""
import collections
import json
import os
import socket
import subprocess
import time

PATIENCE = 60
DESIGNATED_QPN = 0x101
RKEY = 0x1234
REGION_LEN = 1 << 30
KEY_NUMBER, KEY_SECRET = 7, '00112233445566778899aabbccddeeff'

Port = collections.namedtuple('Port', 'number name kind role peer address')
Receiver = collections.namedtuple('Receiver', 'number address qpn rkey va')


def node_address(node):
    return '5f00:0:%x::1' % node


def node_sid(node, function):
    return '5f00:0:%x:%x::' % (node, function)


def port_mac(node, port):
    return '02:5f:%02x:%02x:%02x:%02x' % (node >> 8, node & 0xff, port >> 8, port & 0xff)


def proxy(group):
    return 'fd00:ffff::%x' % (group + 1)


class Failed(Exception):
    """The benchmark cannot go on; why."""


class Registry:
    """ovsdb-server with the schema of a build."""

    def __init__(self, folder, schema):
        self.socket = os.path.join(folder, 'db.sock')
        database = os.path.join(folder, 'registry.db')
        subprocess.run(['ovsdb-tool', 'create', database, schema], check=True)
        self.process = subprocess.Popen(
            ['ovsdb-server', '--remote=punix:' + self.socket, '--unixctl=%s/db.ctl' % folder,
             '-vconsole:off', '--log-file=%s/db.log' % folder, database])
        wait_until('the registry listens', self.listens)
        self.transact([{'op': 'insert', 'table': 'Global', 'row': {'fabric_mtu': 9000}}])

    def listens(self):
        """Its socket is there before that."""
        with socket.socket(socket.AF_UNIX) as s:
            return s.connect_ex(self.socket) == 0

    def transact(self, operations):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(self.socket)
            s.sendall(json.dumps({'method': 'transact', 'id': 1,
                                  'params': ['rocecast', *operations]}).encode())
            text = b''
            while True:
                text += s.recv(1 << 20)
                try:
                    answer = json.loads(text)
                except ValueError:
                    continue
                if answer.get('id') == 1:
                    break
                text = b''
        bad = [r for r in answer['result'] or [answer['error']] if r and 'error' in r]
        if bad:
            raise Failed('the registry refuses: %s' % bad[0])
        return answer['result']

    def wait_applied(self, name, process):
        """Waits until the agent does what its rows say."""
        def applied():
            if process.poll() is not None:
                raise Failed('%s has ended' % process.args[0])
            row, = self.transact([{'op': 'select', 'table': 'Node', 'where': [['name', '==', name]],
                                   'columns': ['cfg', 'nb_cfg', 'state']}])[0]['rows']
            if row['state'] not in ('', 'ok'):
                raise Failed('%s: %s' % (name, row['state']))
            return row['cfg'] == row['nb_cfg']
        wait_until('%s has applied its rows' % name, applied)

    def close(self):
        self.process.terminate()
        self.process.wait()


def wait_until(what, condition, patience=PATIENCE):
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            raise Failed('after %d s still not: %s' % (patience, what))
        time.sleep(0.02)


class Rows:
    """Rows of one node, as operations of a transaction."""

    def __init__(self):
        self.operations = []

    def add(self, table, **row):
        name = 'r%d' % len(self.operations)
        self.operations.append({'op': 'insert', 'table': table, 'row': row, 'uuid-name': name})
        return ['named-uuid', name]

    def port(self, node, p):
        return self.add('Port', name=p.name, number=p.number, kind=p.kind, role=p.role,
                        mac=port_mac(node, p.number), peer=p.peer, peer_address=p.address)

    def route(self, prefix, port, next_hop='::'):
        return self.add('Route', prefix=prefix, port=port, next_hop=next_hop)

    def receiver(self, edge, r):
        return self.add('Branch', id=r.number, kind='receiver', name='r%d' % r.number,
                        address=r.address, edge=edge, qpn=r.qpn, rkey=r.rkey, va='0x%x' % r.va,
                        len=REGION_LEN)

    def branch_node(self, node):
        return self.add('Branch', id=0x80000000 + node, kind='node', name='n%d' % node,
                        address=node_address(node))

    def key(self, node):
        return self.add('Node_Key', node=node, id=KEY_NUMBER, secret=KEY_SECRET)

    def tree(self, group, **more):
        return self.add('Tree_Node', **dict(
            {'group': 'g%d' % group, 'generation': 1, 'epoch': 1, 'proxy': proxy(group),
             'designated_qpn': DESIGNATED_QPN, 'start_psn': 0, 'mtu': 4096,
             'designated_rkey': RKEY, 'region_len': REGION_LEN, 'source_qpn': 0x11,
             'mode': 'replicate', 'filter': True}, **more))

    def node(self, name, number, role, **sets):
        self.add('Node', name=name, id=number, role=role, cfg=1,
                 **{column: ['set', rows] for column, rows in sets.items()})

    def sids(self, node, functions):
        return [self.add('Sid', prefix='%s/%d' % (node_sid(node, function), plen), behaviour=text)
                for text, function, plen in functions]


SWITCH_SIDS = (('End', 0xe000, 64), ('End.MT', 0xe001, 64), ('End.Response', 0xe002, 64),
               ('End.DT6', 0xe003, 64), ('End.Replicate', 0xf000, 52))
AGENT_SIDS = SWITCH_SIDS[2:3]
END, END_MT, RESPONSE, REPLICATE = 0xe000, 0xe001, 0xe002, 0xf000
