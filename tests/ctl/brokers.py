# SPDX-License-Identifier: Apache-2.0
"""castbroker: what clients may do and see by their certificates, and that others' attempts are named."""
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import time

from clusters import Cluster, free_ports
from world import BIN, PATIENCE, ROOT, Db, Failure, check, check_equal, listens, references, wait_until

SECRET = 'f' * 64

MAX_OF_NAME = MAX_UNNAMED = 256
SILENCE = 10  # seconds that a client has until it is served.
AWAY = 12     # seconds without a registry.


class Authority:
    """Signs certificates, in a folder."""

    def __init__(self, folder):
        self.folder = folder
        self.openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes',
                     '-days', '2', '-subj', '/CN=authority', '-keyout', 'ca.key', '-out', 'ca.pem')

    def openssl(self, *argv):
        subprocess.run(['openssl', *argv], cwd=self.folder, check=True, capture_output=True)

    def file(self, name):
        return os.path.join(self.folder, name)

    def keys(self, name):
        """Options for who is called that."""
        if not os.path.exists(self.file(name + '.pem')):
            self.openssl('req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes',
                         '-subj', '/CN=' + name, '-keyout', name + '.key', '-out', name + '.req')
            self.openssl('x509', '-req', '-days', '2', '-in', name + '.req', '-CA', 'ca.pem', '-CAkey', 'ca.key',
                         '-CAcreateserial', '-out', name + '.pem')
        return ['--private-key=' + self.file(name + '.key'), '--certificate=' + self.file(name + '.pem'),
                '--ca-cert=' + self.file('ca.pem')]

    def environment(self, name):
        self.keys(name)
        return {'ROCECAST_PRIVATE_KEY': self.file(name + '.key'), 'ROCECAST_CERTIFICATE': self.file(name + '.pem'),
                'ROCECAST_CA_CERT': self.file('ca.pem')}


class TlsDb(Db):
    """An OVSDB client with a certificate."""

    def __init__(self, port, authority, name):
        authority.keys(name)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.load_verify_locations(authority.file('ca.pem'))
        context.load_cert_chain(authority.file(name + '.pem'), authority.file(name + '.key'))
        super().__init__(context.wrap_socket(socket.create_connection(('127.0.0.1', port), timeout=PATIENCE)))


class Broker:
    """A castbroker in front of a world's registry, and who comes by it."""

    def __init__(self, w, *options, name='castbroker', pki=None):
        self.w, self.pki = w, pki or Authority(w.dir)
        self.control = w.file(name + '.ctl')
        self.port, = free_ports(1)
        self.remote = 'ssl:127.0.0.1:%d' % self.port
        self.options = ['--listen=pssl:%d:127.0.0.1' % self.port, '--operator=op', '--controller=castd',
                        '--unixctl=' + self.control, *options]
        self.start()
        self.clients = {}

    def start(self):
        self.process = self.w.start(os.path.join(BIN, 'castbroker'), *self.options, *self.pki.keys('registry'))
        wait_until('the broker starts', lambda: listens(self.control))
        wait_until('the broker is active', lambda: self.ask('status') == 'active')

    def ask(self, command, *options):
        return subprocess.run(['ovs-appctl', '-t', self.control, 'rocecast/' + command, *options],
                              check=True, capture_output=True, text=True).stdout.strip()

    def db(self, name):
        """Its connection, which stays."""
        if name not in self.clients:
            self.clients[name] = TlsDb(self.port, self.pki, name)
        return self.clients[name]

    def castctl(self, name, line):
        return self.w.run('--db=' + self.remote, *self.pki.keys(name), *line.split())

    def castctl_ok(self, name, line):
        p = self.castctl(name, line)
        check(p.returncode == 0, '%s: castctl %s: exit status %d: %s', name, line, p.returncode, p.stderr)
        return p.stdout

    def logged(self, line):
        """Has the log a refusal that says this?"""
        return re.search(r'\|refused: ' + line + '$', self.w.log(), re.M)

    def check_logged(self, name, role, what):
        check(self.logged(r'%s %s at ssl:127\.0\.0\.1:\d+: %s' % (role, name, what)),
              '%s: the log does not say %s: %s', name, what, self.w.log()[-500:])

    def refuses(self, name, role, what, *operations):
        """The client's transaction; the registry has what it had before."""
        before = self.w.dump()
        result = self.db(name).attempt(*operations)
        check_equal('%s, %s' % (name, what), [r['error'] for r in result], ['permission error'])
        self.check_logged(name, role, what)
        check(self.w.dump() == before, '%s: the registry has changed', name)

    def refuses_call(self, name, role, what, method, *params):
        check_equal('%s, %s' % (name, what), self.db(name).call(method, list(params)), None)
        self.check_logged(name, role, what)


def by_uuid(row):
    return [['_uuid', '==', row['_uuid']]]


def update(table, row, **values):
    return {'op': 'update', 'table': table, 'where': by_uuid(row), 'row': values}


def insert(table, **values):
    return {'op': 'insert', 'table': table, 'row': values}


def authenticated_group(w):
    """Group g with a key that n1 and a0 have; r1 and r2 are members."""
    w.ready_group()
    with open(w.file('secret'), 'w', encoding='utf-8') as f:
        f.write(SECRET + '\n')
    w.castctl('key add 1 --secret-file ' + w.file('secret'))
    w.castctl('group set g --auth mt-auth --key 1')
    w.apply_all_until('nodes have the key', lambda: len(w.db.rows('Node_Key')) == 2)


def with_daemons(w):
    """A broker with castd, and an agent of node n7, behind it."""
    w.stop(w.castd)
    b = Broker(w)
    w.castd = w.start(os.path.join(BIN, 'castd'), '--unixctl=' + w.file('castd2.ctl'), '--db=' + b.remote,
                      *b.pki.keys('castd'))
    wait_until('castd is active', lambda: listens(w.file('castd2.ctl')) and w.status('castd2') == 'active')
    b.castctl_ok('op', 'node add n7 --id 7 --role switch')
    agent = w.start(os.path.join(BIN, 'swedge'), '--node=n7', '--db=' + b.remote, *b.pki.keys('n7'))
    wait_until('the agent has its node', lambda: w.db.row('Node', name='n7')['state'] == 'ok')
    return b, agent


def broker_all(w):
    """castd, an agent, an operator and a host work by it as without."""
    b, agent = with_daemons(w)
    # Until all agents have applied it.
    b.castctl_ok('op', '--wait=agents node set n7 --verify always')
    row = w.db.row('Node', name='n7')
    check(row['nb_cfg'] == row['cfg'] > 1, 'generations %r', row)
    check_equal('its socket', row['control'], w.file('swedge-n7.ctl'))
    w.stop(agent)
    b.castctl_ok('op', 'node del n7')

    w.ready_group(['r1'])
    b.castctl_ok('r2', 'member add g r2 --qpn 17 --rkey 7 --va 0x1000 --len 4096')
    w.apply_all_until('r2 is active', lambda: w.member('r2')['state'] == 'active')
    shown = json.loads(b.castctl_ok('r2', '-j group show g'))
    check_equal('group', [(m['host'], m['state']) for m in shown['members']], [('r1', 'active'), ('r2', 'active')])
    check_equal('proxy', shown['proxy'], w.show()['proxy'])
    b.castctl_ok('r2', 'group wait g --members 2')
    b.castctl_ok('r2', 'member leave g r2')
    w.apply_all_until('r2 has left', lambda: w.member('r2')['state'] == 'left')
    b.castctl_ok('op', 'group del g')
    clients = json.loads(b.ask('clients', '-j'))
    check_equal('clients', {(c['name'], c['role']) for c in clients}, {('castd', 'controller')})
    check_equal('refused', json.loads(b.ask('counters', '-j'))['refused'], 0)
    check('refused:' not in w.log(), 'the log: %s', w.log())

    # The registry's server is lost and comes back, and then the broker.
    w.db.close()
    w.stop(w.registry)
    wait_until('it knows', lambda: b.ask('status') == 'registry not connected')
    w.registry = w.start_registry()
    w.db = Db(w.sock)
    wait_until('it is back', lambda: b.ask('status') == 'active')
    b.castctl_ok('op', 'group add g')
    w.stop(b.process, signal.SIGKILL)
    os.unlink(b.control)
    b.start()
    b.castctl_ok('op', 'group add other')
    check_equal('exit status', w.stop(b.process), 0)


def broker_agents(w):
    """An agent writes its own node's reports, takes its own lock, reads its own keys: nothing else."""
    authenticated_group(w)
    b = Broker(w)
    own, other = w.tree('n1'), w.tree('a0')
    n1, a0 = w.db.row('Node', name='n1'), w.db.row('Node', name='a0')
    port = next(p for p in w.db.rows('Port') if p['_uuid'][1] in references(n1['ports']))
    agent = b.db('n1')
    agent.transact(update('Node', n1, state='here', nb_cfg=n1['nb_cfg']), update('Tree_Node', own, started=True),
                   {'op': 'mutate', 'table': 'Tree_Node', 'where': by_uuid(own),
                    'mutations': [['joined', 'insert', ['map', [[1, 2]]]]]})
    row = {'node': 'n1', 'number': 9, 'role': 'passive', 'state': 'requested'}
    made = agent.transact(dict(insert('Connection', **row), **{'uuid-name': 'c'}),
                          {'op': 'update', 'table': 'Connection', 'where': [['_uuid', '==', ['named-uuid', 'c']]],
                           'row': {'port': 4791}})
    check_equal('results', [sorted(r) for r in made], [['uuid'], ['count']])
    check_equal('written', (w.db.row('Node', name='n1')['state'], w.db.row('Connection', node='n1')['port'],
                            w.tree('n1')['joined']), ('here', 4791, ['map', [[1, 2]]]))
    # A row that has gone is no offence.
    gone = agent.attempt(update('Tree_Node', {'_uuid': ['uuid', '00000000-0000-4000-8000-000000000000']}, blank=True))
    check_equal('gone', [r['error'] for r in gone], ['timed out'])
    nonsense = agent.attempt(update('Tree_Node', {'_uuid': ['uuid', 'nonsense']}, blank=True))
    check_equal('nonsense', len([r for r in nonsense if r and 'error' in r]), 1)
    check(not b.logged('.*'), 'the log: %s', w.log())

    another = "writing another's row"
    for what, *operations in (
            (another, update('Node', a0, state='stolen')),
            (another, update('Tree_Node', other, started=True)),
            (another, update('Tree_Node', own, blank=True), update('Tree_Node', other, blank=True)),
            (another, {'op': 'mutate', 'table': 'Tree_Node', 'where': by_uuid(other),
                       'mutations': [['lost', 'insert', ['map', [[1, 'gone']]]]]}),
            ('update in table Port', update('Port', port, role='fabric')),
            ('writing column name of table Node', update('Node', n1, name='a0')),
            ('writing column ports of table Node', {'op': 'mutate', 'table': 'Node', 'where': by_uuid(n1),
                                                    'mutations': [['ports', 'delete', port['_uuid']]]}),
            ("making another's row of table Connection \\(node\\)", insert('Connection', **dict(row, node='n2'))),
            ('choosing the UUID of a row of table Connection',
             dict(insert('Connection', **dict(row, number=10)), **{'uuid-name': 'x', 'uuid': other['_uuid'][1]}),
             {'op': 'update', 'table': 'Tree_Node', 'where': [['_uuid', '==', ['named-uuid', 'x']]],
              'row': {'blank': True}}),
            ('making a row of table Node', insert('Node', name='n1')),
            ('insert in table Member', insert('Member', host='r9')),
            ('update in table Node without naming one row by its UUID',
             {'op': 'update', 'table': 'Node', 'where': [], 'row': {'state': 'stolen'}}),
            ('update in table Node without naming one row by its UUID',
             {'op': 'update', 'table': 'Node', 'where': [['name', '==', 'n1']], 'row': {'state': 'stolen'}}),
            ('deleting a row of table Node', {'op': 'delete', 'table': 'Node', 'where': by_uuid(n1)}),
            ('delete in table Group', {'op': 'delete', 'table': 'Group', 'where': []}),
            ('reading column secret of table Node_Key', {'op': 'select', 'table': 'Node_Key', 'where': []}),
            ('reading column secret of table Key', {'op': 'select', 'table': 'Key', 'where': [],
                                                    'columns': ['id', 'secret']}),
            ('reading column secret of table Key', {'op': 'select', 'table': 'Key', 'columns': ['id'],
                                                    'where': [['secret', '==', SECRET]]}),
            ('reading column secret of table Node_Key',
             {'op': 'wait', 'table': 'Node_Key', 'where': [], 'columns': ['secret'], 'until': '!=', 'rows': []}),
            ('an operation that is none: frob\\\\n\\|refused: host h0',
             {'op': 'frob\n|refused: host h0', 'table': 'Node'})):
        b.refuses('n1', 'agent', what, *operations)
    for what, method, *params in (
            ('taking lock rocecast_node_n2', 'lock', 'rocecast_node_n2'),
            ('taking lock rocecast_castd', 'lock', 'rocecast_castd'),
            ('stealing lock rocecast_node_n1', 'steal', 'rocecast_node_n1'),
            ('convert', 'convert', 'rocecast', {}),
            ('monitor', 'monitor', 'rocecast', 'x', {'Node': {}}),
            ('reading column secret of table Node_Key', 'monitor_cond', 'rocecast', 'x', {'Node_Key': {}}),
            ('reading column secret of table Node_Key', 'monitor_cond', 'rocecast', 'x',
             {'Node_Key': [{'columns': ['secret'], 'where': [['node', '==', 'a0']]}]}),
            ('reading column secret of table Node_Key', 'monitor_cond', 'rocecast', 'x',
             {'Node_Key': [{'columns': ['secret'], 'where': [['node', '==', 'n1'], ['node', '!=', 'n1']]}]}),
            ('get_schema_of in database other', 'get_schema_of', 'other')):
        b.refuses_call('n1', 'agent', what, method, *params)
    before = w.dump()
    nonsense = (None, 5, 'x', [], {}, [[]], [['_uuid', '==', 5]], [['_uuid', '==', ['uuid']]], [['_uuid']], [{}])
    for value in nonsense:
        for params in (['rocecast', value], ['rocecast', {'op': value}], [value],
                       ['rocecast', {'op': 'update', 'table': value}],
                       ['rocecast', {'op': 'update', 'table': 'Node', 'where': value, 'row': value}],
                       ['rocecast', {'op': 'mutate', 'table': 'Node', 'where': by_uuid(n1), 'mutations': value}],
                       ['rocecast', {'op': 'insert', 'table': 'Connection', 'row': value}],
                       ['rocecast', {'op': 'select', 'table': 'Key', 'where': value, 'columns': value}]):
            agent.call('transact', params)
        for method in ('monitor_cond', 'monitor_cond_since', 'monitor_cond_change', 'lock', 'frob'):
            for params in ([value], ['rocecast', value, value], ['rocecast', 'x', {'Node_Key': value}],
                           ['rocecast', 'x', {'Node_Key': [value]}],
                           ['rocecast', 'x', {'Node_Key': {'columns': value}}],
                           ['rocecast', 'x', {'Node_Key': [{'columns': ['secret'], 'where': value}]}]):
                check(not agent.call(method, params), '%s %r is answered', method, params)
    check(w.dump() == before, 'nonsense has changed the registry')
    check_equal('its lock', agent.call('lock', ['rocecast_node_n1']), {'locked': True})
    mine = [{'columns': ['node', 'secret'], 'where': [['node', '==', 'n1']]}]
    told = agent.call('monitor_cond', ['rocecast', 'keys', {'Node_Key': mine}])
    check_equal('its keys', [r['initial'] for r in told['Node_Key'].values()], [{'node': 'n1', 'secret': SECRET}])
    b.refuses_call('n1', 'agent', 'reading column secret of table Node_Key', 'monitor_cond_change', 'keys', 'keys',
                   {'Node_Key': [{'where': [True]}]})
    check(not re.search(SECRET, w.log()), 'a secret is in the log')
    clients = json.loads(b.ask('clients', '-j'))
    check_equal('clients', [(c['name'], c['role'], c['refused'] > 30) for c in clients], [('n1', 'agent', True)])


def broker_columns(w):
    """What an agent may write is what the registry's documentation says."""
    w.castctl('node add n1 --id 256 --role switch')
    b = Broker(w)
    writers, table = {}, None
    with open(os.path.join(ROOT, 'ctl/registry/columns.ini'), encoding='utf-8') as f:
        for line in f:
            if match := re.match(r'\[(\w+)\]', line):
                table = match[1]
            elif match := re.match(r'(\w+): (.*) ->', line):
                writers[table, match[1]] = match[2].split(', ')
    check(len(writers) > 200, '%d columns', len(writers))
    gone = ['uuid', '00000000-0000-4000-8000-000000000000']
    for (table, column), names in writers.items():
        op = {'op': 'mutate', 'table': table, 'where': [['_uuid', '==', gone]], 'mutations': [[column, 'insert', 'x']]}
        result = b.db('n1').attempt(op)
        # That there is no such row the registry says, if it is asked.
        allowed = result[0].get('error') != 'permission error'
        only_new = table == 'Connection' and column in ('node', 'number', 'role')
        check_equal('%s.%s may be written' % (table, column), allowed, 'agent' in names and not only_new)


def broker_hosts(w):
    """A host registers itself; others it neither changes nor sees the regions and queue pairs of."""
    authenticated_group(w)
    b = Broker(w)
    group, member = w.db.row('Group', name='g'), w.db.row('Member', host='r1')
    source, counted = w.db.row('Source'), w.db.row('Global')['next_cfg']
    host = b.db('r2')
    count = {'op': 'mutate', 'table': 'Global', 'where': [], 'mutations': [['next_cfg', '+=', 1]]}
    host.transact(update('Member', w.db.row('Member', host='r2'), want='left'), count)
    check_equal('counted', w.db.row('Global')['next_cfg'], counted + 1)
    another = "writing another's row"
    for what, *operations in (
            (another, update('Member', member, want='left')),
            (another, {'op': 'delete', 'table': 'Member', 'where': by_uuid(member)}),
            (another, update('Source', source, qpn=99)),
            ("making another's row of table Member \\(host\\)",
             insert('Member', group=group['_uuid'], host='r9', qpn=17)),
            ("making another's row of table Source \\(host\\)", insert('Source', group=group['_uuid'], qpn=17)),
            ('writing column host of table Member', update('Member', w.db.row('Member', host='r2'), host='r9')),
            ('writing column state of table Member', update('Member', w.db.row('Member', host='r2'), state='active')),
            ('mutate in table Global', dict(count, mutations=[['next_cfg', '+=', 1 << 40]])),
            ('update in table Global', {'op': 'update', 'table': 'Global', 'where': [], 'row': {'next_cfg': 1}}),
            ('insert in table Group', insert('Group', name='x')),
            ('update in table Group', update('Group', group, auth=['set', []])),
            ('update in table Port', {'op': 'update', 'table': 'Port', 'where': [], 'row': {'role': 'fabric'}}),
            ('reading column rkey of table Member',
             {'op': 'select', 'table': 'Member', 'where': [], 'columns': ['rkey']}),
            ('reading column rkey of table Member', {'op': 'select', 'table': 'Member', 'columns': ['host'],
                                                     'where': [['rkey', '==', 7]]}),
            ('reading column secret of table Node_Key', {'op': 'select', 'table': 'Node_Key', 'where': [],
                                                         'columns': ['secret']}),
            ('reading all columns of table Branch', {'op': 'select', 'table': 'Branch', 'where': []})):
        b.refuses('r2', 'host', what, *operations)
    for what, method, *params in (
            ('taking lock rocecast_node_r2', 'lock', 'rocecast_node_r2'),
            ('stealing lock rocecast_castd', 'steal', 'rocecast_castd'),
            ('reading column secret of table Key', 'monitor_cond', 'rocecast', 'x', {'Key': [{'columns': ['secret']}]}),
            ('reading column rkey of table Member', 'monitor_cond', 'rocecast', 'x',
             {'Member': [{'columns': ['host'], 'where': [['rkey', '==', 7]]}]})):
        b.refuses_call('r2', 'host', what, method, *params)

    def initial(told, table):
        return [r['initial'] for r in told.get(table, {}).values()]
    columns = ['host', 'qpn', 'rkey', 'state']
    told = host.call('monitor_cond_since', ['rocecast', 'all', {
        'Member': [{'columns': columns}], 'Node': [{'columns': ['name']}], 'Host': [{'columns': ['name']}],
        'Branch': [{'columns': ['rkey', 'qpn']}], 'Group': [{'columns': ['name']}]},
        '00000000-0000-0000-0000-000000000000'])[2]
    check_equal('members', {r['host']: sorted(r) for r in initial(told, 'Member')},
                {'r1': ['host', 'state'], 'r2': sorted(columns)})
    check_equal('of others', [(t, initial(told, t)) for t in ('Node', 'Branch')], [('Node', []), ('Branch', [])])
    check_equal('what it sees', (initial(told, 'Host'), initial(told, 'Group')), ([{'name': 'r2'}], [{'name': 'g'}]))
    # Nor later.
    w.stop(w.castd)
    for name in ('r1', 'r2'):
        w.db.update('Member', {'host': name}, rkey=8, state='lost')
        while (message := host.receive()).get('method') != 'update3':
            host.answer(message)
        change, = message['params'][2]['Member'].values()
        check_equal('news of ' + name, sorted(change['modify']), ['state'] if name == 'r1' else ['rkey', 'state'])


def broker_strangers(w):
    """Who is nobody, or is nobody any more, or has another authority's certificate, gets nothing."""
    w.castctl('node add n1 --id 256 --role switch')
    b = Broker(w, '--socket=r1:' + w.file('r1.sock'))

    def gets_nothing(name, pki):
        try:
            TlsDb(b.port, pki, name).call('list_dbs', [])
        except (OSError, Failure):
            return True
        return False
    check(gets_nothing('mallory', b.pki), 'mallory gets an answer')
    check(b.logged(r'mallory at ssl:127\.0\.0\.1:\d+: neither node nor host, operator nor controller'),
          'log: %s', w.log())
    os.mkdir(w.file('other'))
    other = Authority(w.file('other'))
    check(gets_nothing('n1', other), "another authority's n1 gets an answer")
    check_equal('answer', 'rocecast' in b.db('n1').call('list_dbs', []), True)
    w.castctl('node del n1')
    wait_until('it is out', lambda: json.loads(b.ask('clients', '-j')) == [])
    check(gets_nothing('n1', b.pki), 'n1 gets an answer')

    # A socket has the rights of the host that it is for.
    w.castctl('node add n2 --id 257 --role switch')
    w.castctl('host add r1 --address fd00:1::1')
    w.castctl('link add n2:r1 r1:r1')
    w.castctl('group add g')
    own = w.run('--db=unix:' + w.file('r1.sock'), *'member add g r1 --qpn 17'.split())
    check_equal('by the socket', (own.returncode, own.stderr), (0, ''))
    another = w.run('--db=unix:' + w.file('r1.sock'), *'group add h'.split())
    check(another.returncode == 2 and 'insert in table Group' in another.stderr, '%r', another)
    check(b.logged('host r1 at unix:?.*: insert in table Group'), 'log: %s', w.log())


def broker_crowds(w):
    """Neither one host nor who says nothing keeps out others."""
    w.castctl('node add n1 --id 256 --role switch')
    w.castctl('host add r1 --address fd00:1::1')
    w.castctl('link add n1:r1 r1:r1')
    b = Broker(w, '--socket=r1:' + w.file('r1.sock'))
    path = w.file('r1.sock')

    def come(n):
        """Connections of r1 that ask something."""
        connections = []
        for _ in range(n):
            s = socket.socket(socket.AF_UNIX)
            connections.append(s)
            s.connect(path)
            s.settimeout(PATIENCE)
            s.sendall(b'{"method": "list_dbs", "params": [], "id": 1}')
        return connections

    def answers(s):
        try:
            return bool(s.recv(4096))
        except ConnectionResetError:
            return False
    crowd = come(MAX_OF_NAME)
    check_equal('answers', sum(map(answers, crowd)), MAX_OF_NAME)
    one_more, = come(1)
    check(not answers(one_more), 'one more gets an answer')
    check(b.logged(r'host r1 at unix:?.*: it has %d connections' % MAX_OF_NAME), 'log: %s', w.log())
    check_equal('of another', 'rocecast' in b.db('n1').call('list_dbs', []), True)
    crowd.pop().close()
    wait_until('one has gone', lambda: len(json.loads(b.ask('clients', '-j'))) == MAX_OF_NAME)
    check(answers(come(1)[0]), 'no answer after one has gone')

    silent = [socket.create_connection(('127.0.0.1', b.port), timeout=PATIENCE) for _ in range(MAX_UNNAMED + 1)]
    wait_until('all are there', lambda: json.loads(b.ask('counters', '-j'))['connections'] >= MAX_OF_NAME + 3 + len(silent))
    check(not answers(silent[0]), 'the first that says nothing stays')
    check('n1' in b.castctl_ok('op', 'node list'), 'the operator gets no answer')
    for s in crowd + silent:
        s.close()


def broker_operators(w):
    """An operator writes everything and reads all but secrets; castd's lock is castd's."""
    authenticated_group(w)
    b = Broker(w)
    b.castctl_ok('op', 'key add 2 --generate')
    b.castctl_ok('op', 'group set g --key 2')
    b.castctl_ok('op', 'node set n1 --verify always')
    check('r1' in b.castctl_ok('op', 'group show g'), 'group show')
    b.castctl_ok('op', 'registry status')
    p = b.castctl('op', 'registry backup ' + w.file('stolen'))
    check(p.returncode == 3 and not os.path.exists(w.file('stolen')), '%r', p)
    check(b.logged(r'operator op at ssl:127\.0\.0\.1:\d+: reading column secret of table (Node_)?Key'),
          'log: %s', w.log())
    b.castctl_ok('castd', 'registry backup ' + w.file('saved'))
    b.castctl_ok('castd', 'registry restore ' + w.file('saved'))
    b.refuses('op', 'operator', 'reading column secret of table Key', {'op': 'select', 'table': 'Key', 'where': []})
    for what, method, *params in (
            ('taking lock rocecast_castd', 'lock', 'rocecast_castd'),
            ('stealing lock rocecast_node_n1', 'steal', 'rocecast_node_n1'),
            ('reading column secret of table Key', 'monitor', 'rocecast', 'x', {'Key': {}})):
        b.refuses_call('op', 'operator', what, method, *params)
    told = b.db('op').call('monitor_cond', ['rocecast', 'ids', {'Key': [{'columns': ['id']}]}])
    check_equal('ids', sorted(r['initial']['id'] for r in told['Key'].values()), [1, 2])
    b.refuses_call('op', 'operator', 'reading column secret of table Key', 'monitor_cond_change', 'ids', 'ids',
                   {'Key': [{'where': [['secret', '==', SECRET]]}]})
    b.refuses_call('castd', 'controller', 'stealing lock rocecast_castd', 'steal', 'rocecast_castd')


def broker_cluster(w):
    """Each server of a cluster has a broker.  Clients find the leader, and the next one when it is lost."""
    w.ready_group()
    c = Cluster(w)
    pki = Authority(w.dir)
    brokers = [Broker(w, '--db=unix:' + c.socket(i), name='broker%d' % i, pki=pki) for i in range(len(c.servers))]
    for b in brokers:
        b.remote = ','.join('ssl:127.0.0.1:%d' % other.port for other in brokers)
    w.castd = w.start(os.path.join(BIN, 'castd'), '--unixctl=' + w.file('castd2.ctl'), '--db=' + brokers[0].remote,
                      *pki.keys('castd'))
    wait_until('castd is active', lambda: listens(w.file('castd2.ctl')) and w.status('castd2') == 'active')
    leader = c.leader()
    c.connect((leader + 1) % len(brokers))
    brokers[0].castctl_ok('r3', 'member add g r3 --qpn 17 --rkey 7 --va 0x1000 --len 4096')
    check_equal('members', sorted(m['host'] for m in w.db.rows('Member')), ['r1', 'r2', 'r3'])
    c.stop(leader, signal.SIGKILL)
    brokers[0].castctl_ok('r3', 'member remove g r3')
    p = brokers[0].castctl('r3', 'group del g')
    check(p.returncode == 2 and 'permission error' in p.stderr, '%r', p)
    # castd, by the brokers, too, takes the row away: no agent has been told of it.
    wait_until('r3 is gone', lambda: sorted(m['host'] for m in w.db.rows('Member')) == ['r1', 'r2'])


def begin_castctl(w, b, name, line):
    """That waits for the registry for a minute."""
    return subprocess.Popen([os.path.join(BIN, 'castctl'), '--db=' + b.remote, *b.pki.keys(name), '--timeout=60', *line.split()],
                            env=w.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


ADD_R2 = 'member add g r2 --qpn 17 --rkey 7 --va 0x1000 --len 4096'


def all_work(w, b, *daemons):
    """All are back, no process was started again, and what is changed is done."""
    n7 = w.db.row('Node', name='n7')
    wait_until('all are back', lambda: (b.ask('status'), w.status('castd2')) == ('active', 'active')
               and w.status('swedge-n7').endswith('is applied'))
    w.apply_all_until('r2 is active', lambda: w.member('r2')['state'] == 'active')
    check_equal('members', sorted(m['host'] for m in w.db.rows('Member')), ['r1', 'r2'])
    b.castctl_ok('op', 'node set n7 --verify always')
    wait_until('the agent applies it', lambda: w.db.row('Node', name='n7')['nb_cfg'] > n7['cfg'])
    check_equal('processes', [p.poll() for p in (b.process, *daemons)], [None] * (1 + len(daemons)))
    check('refused:' not in w.log(), 'the log: %s', w.log())


def is_dropped(db):
    """The connection ends without an answer."""
    try:
        db.receive()
    except TimeoutError:
        return False
    except (Failure, OSError):
        return True
    return False


def cpu_seconds(process):
    with open('/proc/%d/stat' % process.pid, encoding='utf-8') as f:
        return sum(map(int, f.read().rsplit(')', 1)[1].split()[11:13])) / os.sysconf('SC_CLK_TCK')


def broker_away(w):
    """The registry is away for longer than a client may be silent.  All that is connected says so and comes back, who
    comes meanwhile waits or is told, and no transaction is said to be done that is not."""
    w.ready_group(['r1'])
    b, agent = with_daemons(w)
    before = json.loads(b.ask('counters', '-j'))

    # Of a transaction that is on its way when the server ends, nobody says that it is done.
    n1 = w.db.row('Node', name='n1')
    w.registry.send_signal(signal.SIGSTOP)
    in_flight = b.db('n1')
    in_flight.sock.sendall(json.dumps({'method': 'transact', 'id': 1, 'params': [
        'rocecast', update('Node', n1, state='in flight')]}).encode())
    wait_until('it is passed on', lambda: any(c['name'] == 'n1' for c in json.loads(b.ask('clients', '-j'))))
    w.db.close()
    begin = time.monotonic()
    w.stop(w.registry, signal.SIGKILL)
    check(is_dropped(in_flight) and time.monotonic() < begin + SILENCE / 2, 'the connection stays without the registry')
    away = 'registry not connected'
    # Daemons are connected to the broker from time to time.
    away_behind = (away, 'registry connected, no answer yet')

    def all_know():
        return b.ask('status') == away and w.status('castd2') in away_behind and w.status('swedge-n7') in away_behind
    wait_until('all know', all_know)
    begin, cpu = time.monotonic(), cpu_seconds(b.process)
    add = begin_castctl(w, b, 'r2', ADD_R2)
    p = w.run('--db=' + b.remote, *b.pki.keys('op'), '--timeout=2', 'node', 'list')
    check_equal('castctl that does not wait so long', (p.returncode, p.stdout), (3, ''))
    silent = TlsDb(b.port, b.pki, 'n1')
    silent.sock.sendall(b'{"method": "list_dbs", "params": [], "id": 1}')
    check(is_dropped(silent), 'who waits is answered')
    waited = time.monotonic() - begin
    check(SILENCE <= waited < 2 * SILENCE, 'who waits has waited %.1f s', waited)
    time.sleep(max(0, begin + AWAY - time.monotonic()))
    check(all_know(), 'status: %s, %s, %s', b.ask('status'), w.status('castd2'), w.status('swedge-n7'))
    check_equal('clients', json.loads(b.ask('clients', '-j')), [])
    check_equal('castctl waits', add.poll(), None)
    cpu = cpu_seconds(b.process) - cpu
    check(cpu < AWAY / 4, 'the broker has computed for %.1f s', cpu)

    w.registry = w.start_registry()
    w.db = Db(w.sock)
    check_equal('castctl', (add.communicate(timeout=PATIENCE)[1], add.returncode), ('', 0))
    all_work(w, b, w.castd, agent)
    check(w.db.row('Node', name='n1')['state'] != 'in flight', 'it was done')
    wait_until('only these are connected', lambda: sorted(
        c['name'] for c in json.loads(b.ask('clients', '-j'))) == ['castd', 'n7'])
    after = json.loads(b.ask('counters', '-j'))
    check_equal('nobody half', (after['unnamed'], after['registry_connections']), (0, before['registry_connections'] + 1))


def broker_hangs(w):
    """The registry's server stands still for as long: what was asked is done, once, when it goes on."""
    w.ready_group(['r1'])
    b, agent = with_daemons(w)
    n1 = w.db.row('Node', name='n1')
    w.registry.send_signal(signal.SIGSTOP)
    in_flight = b.db('n1')
    in_flight.sock.sendall(json.dumps({'method': 'transact', 'id': 1, 'params': [
        'rocecast', {'op': 'mutate', 'table': 'Node', 'where': by_uuid(n1), 'mutations': [['nb_cfg', '+=', 1]]}]}).encode())
    add = begin_castctl(w, b, 'r2', ADD_R2)
    time.sleep(AWAY)
    check_equal('castctl waits', add.poll(), None)
    w.registry.send_signal(signal.SIGCONT)
    check_equal('answer', in_flight.receive()['result'], [{'count': 1}])
    check_equal('done', w.db.row('Node', name='n1')['nb_cfg'], n1['nb_cfg'] + 1)
    check_equal('castctl', (add.communicate(timeout=PATIENCE)[1], add.returncode), ('', 0))
    all_work(w, b, w.castd, agent)


def broker_first(w):
    """A broker that is there before the registry has its clients wait."""
    w.ready_group(['r1'])
    b = Broker(w)
    w.stop(b.process)
    w.db.close()
    w.stop(w.registry)
    b.process = w.start(os.path.join(BIN, 'castbroker'), *b.options, *b.pki.keys('registry'))
    wait_until('the broker starts', lambda: listens(b.control))
    add = begin_castctl(w, b, 'r2', ADD_R2)
    time.sleep(AWAY)
    check_equal('status', (b.ask('status'), b.ask('clients', '-j'), add.poll()), ('registry not connected', '[]', None))
    w.registry = w.start_registry()
    w.db = Db(w.sock)
    check_equal('castctl', (add.communicate(timeout=PATIENCE)[1], add.returncode), ('', 0))
    w.apply_all_until('r2 is active', lambda: w.member('r2')['state'] == 'active')


CASES = (broker_all, broker_agents, broker_columns, broker_hosts, broker_strangers, broker_crowds, broker_operators,
         broker_cluster, broker_away, broker_hangs, broker_first)
