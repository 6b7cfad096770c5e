# SPDX-License-Identifier: Apache-2.0
"""An agent reads of its rows those that have changed.  With ROCECAST_AGENT_CHECK it compares what it has then, or why
it refuses that, with what all rows say, and ends if they differ.  Here rows change at random, also in ways in which castd
never changes them; ROCECAST_SEED and ROCECAST_STEPS make it another walk, or a longer one."""
import os
import random
import subprocess
import uuid

from world import BIN, PATIENCE, Failure, check, references, wait_until

CASTSCALE = os.path.join(BIN, 'castscale')
STEPS = 600
NODES = {'n1': 256, 'n2': 257}
REFUSED_AT_MOST = 5  # generations in a row, until the node gets good rows.

# Who refers to rows of a table: a column of Node, or of a row that a node has.
PARENTS = {'Port': (('Node', 'ports'),), 'Route': (('Node', 'routes'),), 'Sid': (('Node', 'sids'),),
           'Destination': (('Node', 'destinations'),), 'Probe': (('Node', 'probes'),), 'Tree_Node': (('Node', 'trees'),),
           'Path': (('Destination', 'paths'),), 'Plane': (('Tree_Node', 'planes'), ('Tree_Node', 'parent_planes')),
           'Branch': (('Tree_Node', 'branches'), ('Tree_Node', 'copies')), 'Node_Key': (('Tree_Node', 'keys'),)}
TABLES = list(PARENTS)

# Values of columns: those that make sense, mostly, and those that do not.
PROGRAMS = ('5f00:0:100:500:300::', '5f00:0:200:600:400::')
PORTS = (1, 2)
FABRIC_PORT = 3
GOOD = {
    'Node': {'verify_always': (False, True), 'named_trees': (False, True), 'cnp_interval': (0, 20000), 'role': ('switch', 'agent'),
             'capable': (['set', []], ['set', ['fd00:1::2', 'fd00:1::1']]), 'trace': (False, True),
             'queue_rates': (['map', []], ['map', [[256, 5000], [512, 6000]]]), 'id': (300, 400, 500),
             'probers': (['set', []], '5f00:0:3::1'),
             'next_hops': (['map', []], ['map', [[0, FABRIC_PORT], [300, FABRIC_PORT]]],
                           ['map', [[257, FABRIC_PORT], [400, FABRIC_PORT]]])},
    'Location': {'address': tuple('fd00:5::%x' % i for i in range(1, 20)), 'node': (256, 257, 300)},
    'Port': {'mac': ('02:5f:01:00:00:01', '02:5f:01:00:00:02'), 'peer': ('a', 'b'), 'external': (False, True),
             'rx_impairment': ('', 'loss=2%'), 'number': (1, 2, 3), 'programs': (['set', []], '5f00:0:100::/48')},
    'Route': {'prefix': tuple('fd00:%x::/32' % i for i in range(40)), 'port': PORTS, 'next_hop': ('::', 'fe80::1')},
    'Sid': {'prefix': tuple('5f00:0:%x::/48' % i for i in range(40)), 'behaviour': ('End', 'End.MT', 'End.X'), 'port': PORTS},
    'Destination': {'address': tuple('fd00:2::%x' % i for i in range(1, 40)), 'policy': ('none', 'failover', 'spray')},
    'Probe': {'number': tuple(range(1, 40)), 'port': PORTS, 'state': (['set', []], 'good', 'bad')},
    'Tree_Node': {'generation': (1, 2, 3), 'epoch': (1, 2), 'start_psn': (0, 5), 'mtu': (1024, 4096), 'root': (False, True),
                  'open': (False, True), 'started': (False, True), 'filter': (False, True), 'min_rate': (0, 5),
                  'outer_source': ('', '5f00:0:100::1', '5f00:0:200::1'), 'timeout': (0, 17), 'parent_program': ('', PROGRAMS[0]),
                  'auth': (['set', []], 'hmac', 'data'), 'auth_key': (0, 1), 'instance': (0, 3), 'life_answered': (0, 5),
                  'joined': (['map', []], ['map', [[1, 77]]]), 'found': (['map', []], ['map', [[2, 78]]]),
                  'lost': (['map', []], ['map', [[1, 'gone']]]), 'psns': (['set', []], 5), 'rate_floor': (0, 1000000)},
    'Branch': {'qpn': (17, 18), 'rkey': (7, 8), 'psn': (['set', []], 9), 'join': (['set', []], 'wait', 'admit', 'ask'),
               'doubt': (['set', []], 1), 'name': ('r1', 'r2'), 'first': (['set', []], 9)},
    'Node_Key': {'secret': ('00' * 16, '11' * 32)},
    'Path': {'usable': (False, True), 'rank': (1, 2), 'port': (0,) + PORTS, 'program': PROGRAMS, 'status': ('', 'x')},
    'Plane': {'usable': (False, True), 'preferred': (False, True), 'port': (0,) + PORTS, 'program': PROGRAMS},
}
BAD = {
    'Node': {'capable': ('no address',), 'probers': ('x',), 'next_hops': (['map', [[300, 9]]], ['map', [[300, 1]]])},
    'Location': {'address': ('x', '')},
    'Port': {'name': ('', 'no name'), 'mac': ('x',), 'number': (1,), 'rx_impairment': ('loss',)},
    'Route': {'prefix': ('', 'fd00::/32', 'x'), 'port': (0, 9), 'next_hop': ('x',)},
    'Sid': {'prefix': ('', '5f00::/48', 'x'), 'port': (0, 9), 'behaviour': ('uN',)},
    'Destination': {'address': ('x', 'fd00:2::1'), 'pinned': (99,), 'name': ('',)},
    'Probe': {'number': (1, 77), 'port': (9,), 'timeout': (9999,), 'peer': ('x',)},
    'Tree_Node': {'group': ('', 'no group'), 'proxy': ('fd00::1', 'fd00:ffff::1'), 'mtu': (1000,), 'designated_qpn': (1, 256),
                  'outer_da': (['set', []], 'x'), 'joined': (['map', [[1, 1 << 24]]],), 'epoch': (0,)},
    'Branch': {'id': (0, 1), 'address': ('x', 'fd00:1::1'), 'va': ('x',), 'qpn': (0,)},
    'Node_Key': {'id': (1,), 'secret': ('',)},
    'Path': {'number': (1,), 'port': (9,), 'program': ('x',), 'probe': (99,)},
    'Plane': {'name': ('A', ''), 'sid': ('x', '5f00:9::'), 'port': (9,), 'probes': (99,)},
}


class Walk:
    """Rows of two nodes, by what the test has written into them."""

    def __init__(self, w, rng):
        self.w = w
        self.rng = rng
        self.n = 0
        self.wounds = []  # (table, UUID, column, value before).
        self.what = []    # that was done since the last generation.

    def number(self):
        self.n += 1
        return self.n

    def insert(self, table, row):
        """An operation, and the row's UUID: a walk is the same one each time."""
        name = str(uuid.UUID(int=self.rng.getrandbits(128), version=4))
        return {'op': 'insert', 'table': table, 'uuid': name, 'row': row}, ['uuid', name]

    def fresh(self, table, node):
        """Columns of a row that makes sense with those of good()."""
        i = self.number() % 3900
        columns = {
            'Port': {'name': 'p%d' % i, 'number': 100 + i, 'kind': 'tap', 'role': 'host', 'mac': '02:5f:01:00:00:01', 'peer': 'a',
                     'peer_address': 'fd00:1::9'},
            'Route': {'prefix': 'fd01:%x::/32' % i, 'port': 1, 'next_hop': '::'},
            'Sid': {'prefix': '5f01:0:%x::/48' % i, 'behaviour': 'End'},
            'Destination': {'name': 'h%d' % i, 'address': 'fd00:3::%x' % i, 'policy': 'spread'},
            'Probe': {'number': 100 + i, 'kind': 'loop', 'name': 'leaf1', 'port': 1, 'program': PROGRAMS[0], 'interval': 100,
                      'timeout': 50},
            'Tree_Node': {'group': 'g%d' % i, 'epoch': 1, 'proxy': 'fd00:ffff::%x' % (100 + i), 'designated_qpn': 256 + i,
                          'mtu': 1024, 'source_address': 'fd00:1::100', 'source_qpn': 18, 'nak': 'solicit', 'cnp': 'auto'},
            'Path': {'number': 100 + i, 'rank': 1 + i % 4, 'name': 'leaf%d' % i, 'usable': True, 'program': PROGRAMS[0]},
            'Plane': {'name': 'P%d' % i, 'sid': '5f00:0:%x::' % i, 'program': PROGRAMS[1]},
            'Branch': {'id': 100 + i, 'kind': 'receiver', 'name': 'r%d' % i, 'address': 'fd00:4::%x' % i, 'edge': '5f00:0:100::1',
                       'qpn': 17, 'va': '0x1000', 'len': 4096},
            'Node_Key': {'id': 100 + i, 'secret': '22' * 16},
        }[table]
        return dict(columns, node=node)

    def good(self, name):
        """Operations that give the node rows that make sense, in the place of those that it has."""
        operations, refs = [], {}

        def insert(table, **columns):
            operation, ref = self.insert(table, dict(self.fresh(table, name), **columns))
            operations.append(operation)
            return ref

        def some(table, n, **columns):
            return ['set', [insert(table, **columns) for _ in range(n)]]

        refs['ports'] = ['set', [*(insert('Port', number=number) for number in PORTS),
                                 insert('Port', number=FABRIC_PORT, role='fabric', peer_address='5f00:0:300::1')]]
        has_rows = self.rng.random() < 0.5
        refs['routes'] = some('Route', 3) if has_rows else ['set', []]
        refs['next_hops'] = ['map', [] if has_rows else [[0, FABRIC_PORT], [300, FABRIC_PORT]]]
        refs['sids'] = some('Sid', 3)
        probe = insert('Probe', number=1)
        refs['probes'] = ['set', [probe, insert('Probe')]]
        refs['destinations'] = ['set', [insert('Destination', paths=['set', [insert('Path', probe=1), insert('Path')]])
                                        for _ in range(2)]]
        sids = ['5f00:0:100:e001::', '5f00:0:101:f003::']
        refs['trees'] = ['set', [
            insert('Tree_Node', outer_da=['set', sids], keys=some('Node_Key', 2), copies=some('Branch', 1),
                   planes=['set', [insert('Plane', sid=sid, probes=1) for sid in sids]],
                   branches=['set', [insert('Branch', id=i) for i in (1, 2)]])
            for _ in range(4)]]
        self.wounds = []
        operations += [{'op': 'delete', 'table': 'Location', 'where': []},
                       *({'op': 'insert', 'table': 'Location', 'row': {'address': 'fd00:5::%x' % i, 'node': 300}} for i in (30, 31))]
        return [{'op': 'delete', 'table': 'Tree_Node', 'where': [['node', '==', name]]}, *operations, {'op': 'update', 'table': 'Node', 'where': [['name', '==', name]], 'row': dict(
            refs, id=NODES[name], role='switch', capable=['set', []], probers=['set', []])}]

    def pick(self, table):
        rows = self.rows(table)
        return self.rng.choice(rows) if rows else None

    def rows(self, table):
        return sorted(self.w.db.rows(table), key=lambda row: row.get('name') if table == 'Node' else row['_uuid'])

    def write(self, table, row, column, value):
        self.what.append((table, row['_uuid'][1], column, value))
        self.w.db.attempt({'op': 'update', 'table': table, 'where': [['_uuid', '==', row['_uuid']]], 'row': {column: value}})

    def change(self):
        table = self.rng.choice(['Node', 'Location', *TABLES])
        row, (column, values) = self.pick(table), self.rng.choice(list(GOOD[table].items()))
        if row:
            self.write(table, row, column, self.rng.choice(values))

    def spoil(self):
        table = self.rng.choice(list(BAD))
        row, (column, values) = self.pick(table), self.rng.choice(list(BAD[table].items()))
        if row:
            self.wounds.append((table, row, column, row[column]))
            self.write(table, row, column, self.rng.choice(values))

    def heal(self):
        if self.wounds:
            self.write(*self.wounds.pop(self.rng.randrange(len(self.wounds))))

    def parent(self, table):
        """Of a row of the table: a row, and a column of it."""
        of, column = self.rng.choice(PARENTS[table])
        return of, self.pick(of), column

    def refer(self, how, of, row, column, what):
        self.what.append((how, of, row['_uuid'][1], column, what))
        return {'op': 'mutate', 'table': of, 'where': [['_uuid', '==', row['_uuid']]],
                'mutations': [[column, how, ['set', [what]]]]}

    def add(self):
        """A row, or one whose columns all have their defaults: of such a one the IDL does not say that it is new."""
        table = self.rng.choice(TABLES)
        of, row, column = self.parent(table)
        if row:
            empty = self.rng.random() < 0.1
            columns = {} if empty else self.fresh(table, row['name'] if of == 'Node' else row['node'])
            operation, ref = self.insert(table, columns)
            self.w.db.attempt(operation, self.refer('insert', of, row, column, ref))

    def remove(self):
        of, row, column = self.parent(self.rng.choice(TABLES))
        refs = references(row[column]) if row else None
        if refs:
            uuid = ['uuid', self.rng.choice(refs)]
            self.w.db.attempt(self.refer('delete', of, row, column, uuid),
                              *([{'op': 'delete', 'table': 'Tree_Node', 'where': [['_uuid', '==', uuid]]}]
                                if column == 'trees' and self.rng.random() < 0.7 else []))

    def move(self):
        """A row is another node's, or another tree's, or both's; if it names its node, as the former one's."""
        table = self.rng.choice(TABLES)
        of, column = self.rng.choice(PARENTS[table])
        rows = self.rows(of)
        if len(rows) < 2:
            return
        a, b = self.rng.sample(rows, 2)
        if references(a[column]):
            what = ['uuid', self.rng.choice(references(a[column]))]
            self.w.db.attempt(*([self.refer('delete', of, a, column, what)] if self.rng.random() < 0.7 else []),
                              self.refer('insert', of, b, column, what))

    def own(self):
        """Whose a row is, as it says itself; '' as in a converted registry."""
        table = self.rng.choice(TABLES)
        row = self.pick(table)
        if row:
            self.write(table, row, 'node', self.rng.choice(('', '', 'n1', 'n2')))

    def some(self):
        for _ in range(self.rng.choice((1, 1, 2, 3, 6))):
            self.rng.choices((self.change, self.spoil, self.heal, self.add, self.remove, self.move, self.own),
                             (8, 1, 3, 3, 3, 2, 1))[0]()


def step(w, walk, agents, refused):
    """Returns how many generations each node has refused in a row."""
    walk.some()
    for name in NODES:
        if refused[name] > REFUSED_AT_MOST:
            walk.what.append('good rows for ' + name)
            w.db.transact(*walk.good(name))
    w.db.transact({'op': 'mutate', 'table': 'Node', 'where': [], 'mutations': [['cfg', '+=', 1]]})

    def answered():
        check(agents.poll() is None, 'the agents have ended: %s', agents.poll())
        return all(n['nb_cfg'] == n['cfg'] or n['state'].startswith('generation %d refused' % n['cfg'])
                   for n in w.db.rows('Node'))
    wait_until('the agents answer', answered)
    return {n['name']: refused[n['name']] + 1 if n['nb_cfg'] != n['cfg'] else 0 for n in w.db.rows('Node')}


def as_read_anew(w):
    seed = int(os.environ.get('ROCECAST_SEED', '1'))
    walk = Walk(w, random.Random(seed))
    w.stop(w.castd)
    w.db.transact(*({'op': 'insert', 'table': 'Node', 'row': {'name': name, 'id': number, 'role': 'switch', 'cfg': 1}}
                    for name, number in NODES.items()))
    for name in NODES:
        w.db.transact(*walk.good(name))
    agents = subprocess.Popen([CASTSCALE, 'agents'], env=w.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    refused, n_applied = dict.fromkeys(NODES, 0), 0
    try:
        for i in range(int(os.environ.get('ROCECAST_STEPS', STEPS))):
            walk.what = []
            refused = step(w, walk, agents, refused)
            n_applied += sum(not n for n in refused.values())
    except Failure as e:
        agents.kill()
        raise Failure('seed %d, step %d: %s\n%s\n%s' % (
            seed, i, e, '\n'.join(map(str, walk.what)), agents.communicate()[1][-2000:])) from e
    finally:
        agents.terminate()
        agents.communicate(timeout=PATIENCE)
    # Otherwise nothing much was compared.
    check(n_applied > i / 2, 'of %d generations only %d were applied', 2 * i, n_applied)


CASES = (as_read_anew,)
