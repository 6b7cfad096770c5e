# SPDX-License-Identifier: Apache-2.0
"""The registry's own servers: castctl registry, and a registry that is a cluster of three."""
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import threading
import time

from conversions import VERSIONS, current_schema, schema_of
from refusals import CUT_AFTER, CUT_BEFORE, ERROR, nth, relay
from world import BIN, PATIENCE, ROOT, Db, check, check_equal, crowd, listens, wait_until

N = 3
KEYS = os.path.join(ROOT, 'tests/api/keys')
VERSION = current_schema()['version']


def tool(*argv):
    return subprocess.run(['ovsdb-tool', *argv], check=True, capture_output=True, text=True).stdout.strip()


def database(w, name, schema, *operations):
    """A standalone database in a file."""
    with open(w.file(name + '.ovsschema'), 'w', encoding='utf-8') as f:
        json.dump(schema, f)
    tool('create', w.file(name), w.file(name + '.ovsschema'))
    if operations:
        tool('transact', w.file(name), json.dumps([schema['name'], *operations]))
    return w.file(name)


def group_row(name):
    return {'op': 'insert', 'table': 'Group', 'row': {'name': name, 'mode': 'replicate', 'mtu': 1024, 'timeout': 20}}


def groups_in(file):
    answer = json.loads(tool('query', file, json.dumps(['rocecast', {
        'op': 'select', 'table': 'Group', 'where': [], 'columns': ['name']}])))
    return sorted(row['name'] for row in answer[0]['rows'])


def files(w):
    """All of the folder but sockets, logs, files of servers that run, and the locks that Open vSwitch leaves,
    with their sizes."""
    return {name: os.path.getsize(w.file(name)) for name in os.listdir(w.dir)
            if not name.startswith('db') and not name.endswith(('.ctl', '.sock', '.log', '.~lock~'))}


def refused(w, line, status, pattern):
    """Nothing is made, changed or left."""
    before = files(w)
    w.refused(line, status, pattern)
    check_equal('files after castctl ' + line, files(w), before)


# What goes on counting when a backup is restored.
COUNTERS = ('next_cfg', 'nb_cfg', 'agents_cfg', 'cfg', 'generation', 'next_branch', 'next_proxy')


def content(w):
    """All rows, of each table, with those that they refer to in the place of UUIDs, without counters."""
    tables = {t: w.db.rows(t) for t in current_schema()['tables']}
    rows = {row['_uuid'][1]: row for table in tables.values() for row in table}

    def plain(value):
        if isinstance(value, list) and len(value) == 2 and value[0] == 'uuid':
            return whole(rows[value[1]]) if value[1] in rows else None
        if isinstance(value, list):
            return sorted((plain(v) for v in value), key=json.dumps)
        return value

    def whole(row):
        return {k: plain(v) for k, v in sorted(row.items()) if k not in ('_uuid', '_version') + COUNTERS}

    return {t: sorted((json.dumps(whole(row)) for row in table)) for t, table in tables.items()}


def check_content(what, got, want):
    for table, rows in want.items():
        check_equal('%s, table %s' % (what, table), got[table], rows)


#
# Files.
#

def registry_init(w):
    """New files, and files with what an older one has, of each schema that there was."""
    w.castctl('registry init ' + w.file('new'))
    check_equal('version', tool('db-version', w.file('new')), VERSION)
    w.castctl('registry init %s --cluster unix:%s' % (w.file('first'), w.file('first.raft')))
    w.castctl('registry join %s unix:%s --cluster unix:%s' % (w.file('second'), w.file('first.raft'),
                                                             w.file('second.raft')))
    for name in ('first', 'second'):
        check_equal('kind of ' + name, subprocess.run(['ovsdb-tool', 'db-is-clustered', w.file(name)],
                                                      check=False).returncode, 0)
    check_equal('whose', tool('db-cid', w.file('first')).count('-'), 4)
    for version in VERSIONS:
        schema = current_schema() if version == VERSION else schema_of(version)
        old = database(w, 'old-' + version, schema, group_row('g'), group_row('other'))
        w.castctl('registry init %s %s' % (old + '.new', old))
        check_equal('version of what was %s' % version, tool('db-version', old + '.new'), VERSION)
        check_equal('groups of %s' % version, groups_in(old + '.new'), ['g', 'other'])
        check_equal('the old one', tool('db-version', old), version)
    check(not [n for n in os.listdir(w.dir) if n.startswith('.castctl')], 'left: %r', os.listdir(w.dir))


def registry_init_refused(w):
    schema = current_schema()
    w.castctl('registry init %s --cluster unix:%s' % (w.file('first'), w.file('first.raft')))
    for name, change in (('later', {'version': '99.0.0'}), ('named', {'name': 'other'}),
                         ('another', {'tables': {**schema['tables'], 'More': schema['tables']['Global']}})):
        database(w, name, dict(schema, **change))
    with open(w.file('old'), 'w', encoding='utf-8') as f:
        f.write('nonsense\n')
    for line, pattern in (
            ('first', 'first: File exists$'), ('none/new', 'none/new: No such file or directory$'),
            ('new none', 'none: No such file or directory$'), ('new old', 'old: '), ('new first', 'clustered'),
            ('new named', "named: it has database 'other', not 'rocecast'$"),
            ('new later', r'later: its schema is another one, of version 99\.0\.0; this castctl has %s$' % VERSION),
            ('new another', r'another: its schema is another one, of version %s; ' % VERSION),
            ('new db', r'db: the server that uses it runs, as process \d+: '),
            ('new --cluster tcp:127.0.0.1:70000', None), ('new --cluster unix:a,unix:b', None)):
        words = [word if word.startswith(('-', 'tcp:', 'unix:')) else w.file(word) for word in line.split()]
        refused(w, 'registry init ' + ' '.join(words), 2 if pattern else 1, pattern or '--cluster .*: must be ')
    # Open vSwitch's tool would leave all rows out, without a word.
    loose = schema_of(next(version for version in VERSIONS if version != VERSION))
    del loose['tables']['Group']['indexes']
    twice = database(w, 'twice', loose, group_row('g'), group_row('g'))
    refused(w, 'registry init %s %s' % (w.file('new'), twice), 2, "twice: its rows do not fit into this version's schema$")
    os.mkfifo(w.file('fifo'))
    refused(w, 'registry init %s %s' % (w.file('new'), w.file('fifo')), 2, 'fifo: it is no regular file$')
    own = 'unix:' + w.file('own.raft')
    refused(w, 'registry join %s %s --cluster %s' % (w.file('first'), own + '2', own), 2, 'File exists')
    refused(w, 'registry join %s %s --cluster %s' % (w.file('new'), own, own), 1, "is this server's own")
    refused(w, 'registry join %s nonsense --cluster %s' % (w.file('new'), own), 1, 'ADDRESS nonsense: must be ')


#
# Contents.
#

def registry_backup(w):
    """What was saved is back, and castd and agents go on with it."""
    w.ready_group()
    w.stop(w.castd)
    before, saved = content(w), w.file('saved')
    w.castctl('registry backup ' + saved)
    check_equal('mode', os.stat(saved).st_mode & 0o777, 0o600)
    refused(w, 'registry backup ' + saved, 2, 'saved: File exists$')
    w.castctl('--wait=none group del g')
    w.castctl('--wait=none node add n9 --id 9 --role switch')
    check(content(w) != before, 'nothing has changed')
    w.castctl('registry restore ' + saved)
    check_content('restored', content(w), before)

    # While castd runs; and into a new registry.
    w.castd = w.start_castd('castd')
    w.castctl('group add other')
    w.castctl('registry restore ' + saved)
    w.apply_all_until('the group is ready', lambda: w.show()['state'] == 'ready')
    w.castctl('member add g r3 --qpn 17 --rkey 7 --va 0x1000 --len 4096')
    w.apply_all_until('r3 is active', lambda: w.member('r3')['state'] == 'active')
    w.castctl('registry init %s %s' % (w.file('new'), saved))
    check_equal('groups', groups_in(w.file('new')), ['g'])
    check(not [n for n in os.listdir(w.dir) if n.startswith('.castctl')], 'left: %r', os.listdir(w.dir))


def rows(w):
    """All rows, of each table, by UUID."""
    return {table: {row['_uuid'][1]: row for row in w.db.rows(table)} for table in current_schema()['tables']}


def check_generations(w, before, now):
    """All nodes are told something anew, and nobody takes it for applied yet."""
    for uuid, node in now['Node'].items():
        was = before['Node'].get(uuid, {'cfg': 0})
        check(node['cfg'] > was['cfg'] and node['nb_cfg'] < node['cfg'], 'node %r was %r', node, was)
    (was,), (is_now,) = before['Global'].values(), now['Global'].values()
    check(is_now['next_cfg'] > was['next_cfg'], 'next_cfg %d, was %d', is_now['next_cfg'], was['next_cfg'])


def registry_restore_rows(w):
    """Rows keep their UUIDs, by which agents know them, and what agents have reported meanwhile stays."""
    w.ready_group()
    w.settled()
    w.stop(w.castd)
    saved, before = w.file('saved'), rows(w)
    w.castctl('registry backup ' + saved)
    w.castctl('registry restore ' + saved)
    now = rows(w)
    check_generations(w, before, now)
    changed = {t for t, its in now.items() if its != before[t]}
    check_equal('tables in which something has changed', changed, {'Global', 'Node'})
    for uuid, node in now['Node'].items():
        check_equal('columns of a node', {k for k, v in node.items() if v != before['Node'][uuid][k]}, {'_version', 'cfg'})

    # Packets have passed since the backup.
    w.set_started()
    w.say_joined('n1', r1=0x100, r2=0x100)
    w.castctl('registry restore ' + saved)
    check_equal('joined', sorted(first for _, first in w.tree('n1')['joined'][1]), [0x100, 0x100])
    check_equal('started', w.tree('a0')['started'], True)

    # The group has gone since.
    w.castd = w.start_castd('castd')
    w.castctl('group del g')
    w.apply_all_until('the trees have gone', lambda: not w.db.rows('Tree_Node'))
    w.castctl('node set n2 --verify always')
    w.stop(w.castd)
    was = rows(w)
    w.castctl('registry restore ' + saved)
    now = rows(w)
    check_generations(w, was, now)
    check_equal('UUIDs', {t: set(its) for t, its in now.items()}, {t: set(its) for t, its in before.items()})
    generations = {node['name']: node['cfg'] for node in now['Node'].values()}
    for tree in now['Tree_Node'].values():
        check_equal('generation of a tree of ' + tree['node'], tree['generation'], generations[tree['node']])
    check_equal('as set since', w.db.row('Node', name='n2')['verify_always'], False)
    w.castd = w.start_castd('castd')
    w.settled()
    w.refused('--timeout=1 --wait=agents group add other', 3, 'agents did not apply')
    w.apply_all_until('the group is ready', lambda: w.show()['state'] == 'ready')


def registry_restore_agent(w):
    """An agent applies what an older backup says, however its generation was counted."""
    w.castctl('node add n1 --id 1 --role switch')
    w.start(os.path.join(BIN, 'swedge'), '--node=n1', '--unixctl=' + w.file('n1.ctl'))
    w.castctl('--wait=agents node set n1 --verify always')
    cfg = w.db.row('Node')['cfg']
    w.castctl('registry backup ' + w.file('saved'))
    w.castctl('--wait=agents node set n1 --verify auto')
    for _ in range(2):
        w.castctl('registry restore ' + w.file('saved'))
        w.castctl('--wait=agents group add g%d' % w.db.row('Node')['cfg'])
        check_equal('state', (w.db.row('Node')['state'], w.db.row('Node')['verify_always']), ('ok', True))
        check(w.db.row('Node')['cfg'] > cfg, 'generation %d, was %d', w.db.row('Node')['cfg'], cfg)


def registry_restore_doubts(w):
    """A transaction that fails, of which nobody hears, or that comes too late."""
    w.castctl('group add g')
    w.castctl('registry backup ' + w.file('saved'))
    w.castctl('group add other')
    for how, status, say in ((ERROR, 2, 'the registry refused it: .*no space left on device'),
                             (CUT_BEFORE, 3, 'saved may have been restored or not$'),
                             (CUT_AFTER, 3, 'saved may have been restored or not$')):
        r, env = relay(w, nth(1, how), 'relay-' + how.replace(' ', '-'))
        p = w.run('registry', 'restore', w.file('saved'), **env)
        check_equal('exit status, %s' % how, p.returncode, status)
        check(re.search(say, p.stderr), '%s: %s', how, p.stderr)
        check_equal('groups, %s' % how, sorted(g['name'] for g in w.db.rows('Group')),
                    ['g'] if how == CUT_AFTER else ['g', 'other'])
        r.close()

    # Who asks it to end meanwhile hears that it may have been done.
    asked, end = threading.Event(), threading.Event()

    def hold(_):
        asked.set()
        end.wait()
        return CUT_BEFORE
    r, env = relay(w, hold)
    with subprocess.Popen([os.path.join(BIN, 'castctl'), 'registry', 'restore', w.file('saved')], env=env,
                          stderr=subprocess.PIPE, text=True) as p:
        check(asked.wait(PATIENCE), 'no transaction')
        p.send_signal(signal.SIGTERM)
        said = p.communicate()[1]
    end.set()
    check_equal('exit status, said', (p.returncode, said.split(': ')[-2:]),
                (3, ['interrupted', '%s may have been restored or not\n' % w.file('saved')]))
    r.close()

    # Somebody changes something just before: that goes, too.
    def change(n):
        if n == 1:
            w.castctl('--wait=none group add late')
    r, env = relay(w, change, 'relay2')
    p = w.run('registry', 'restore', w.file('saved'), **env)
    check_equal('exit status, attempts', (p.returncode, r.n_written), (0, 2))
    check_equal('groups', [g['name'] for g in w.db.rows('Group')], ['g'])
    r.close()


def hear_signals():
    """These tests may be under nohup themselves, or in a shell's background."""
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        signal.signal(number, signal.SIG_DFL)


def registry_busy(w):
    """A server that accepts nobody for now is one all the same, and is waited for."""
    w.registry.send_signal(signal.SIGSTOP)
    waiting = crowd(w.sock)
    for line in 'registry backup ' + w.file('saved'), 'group list', 'member add g r --qpn 2':
        w.refused('--timeout=1 ' + line, 3, 'Protocol error$')  # libopenvswitch's word for it.
    backup, listing = [subprocess.Popen([os.path.join(BIN, 'castctl'), '--timeout=%d' % PATIENCE, *argv], env=w.env,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                       for argv in (('registry', 'backup', w.file('saved')), ('group', 'list'))]
    wait_until('it works', lambda: [n for n in os.listdir(w.dir) if n.startswith('.castctl')])
    w.registry.send_signal(signal.SIGCONT)
    for p in backup, listing:
        check_equal('castctl', (p.communicate(timeout=PATIENCE)[1], p.returncode), ('', 0))
    for s in waiting:
        s.close()
    check_equal('version', tool('db-version', w.file('saved')), VERSION)


def registry_interrupted(w):
    """Who ends castctl while a tool runs finds nothing half-made."""
    before = files(w)
    w.registry.send_signal(signal.SIGSTOP)
    for how in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with subprocess.Popen([os.path.join(BIN, 'castctl'), '--timeout=%d' % PATIENCE, 'registry', 'backup', w.file('saved')],
                              env=w.env, stderr=subprocess.PIPE, text=True, preexec_fn=hear_signals) as p:
            wait_until('it works', lambda: [n for n in os.listdir(w.dir) if n.startswith('.castctl')
                                            and os.listdir(w.file(n))])
            p.send_signal(how)
            said = p.communicate()[1]
        check(p.returncode == 3 and said.endswith(': interrupted\n'), 'exit status %d: %s', p.returncode, said)
    w.refused('--timeout=1 registry backup ' + w.file('saved'), 3, 'it did not answer in time$')
    w.refused('--timeout=1 registry status', 3, 'it did not answer in time$')
    w.registry.send_signal(signal.SIGCONT)
    check_equal('files', files(w), before)


def registry_hup(w):
    """A command under nohup outlives its terminal."""
    w.registry.send_signal(signal.SIGSTOP)
    with subprocess.Popen(['nohup', os.path.join(BIN, 'castctl'), 'registry', 'backup', w.file('saved')], env=w.env,
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as p:
        wait_until('it works', lambda: [n for n in os.listdir(w.dir) if n.startswith('.castctl')
                                        and os.listdir(w.file(n))])
        p.send_signal(signal.SIGHUP)
        w.registry.send_signal(signal.SIGCONT)
        check_equal('exit status', p.wait(PATIENCE), 0)
    check_equal('version', tool('db-version', w.file('saved')), VERSION)


def registry_restore_refused(w):
    """All or nothing: with a file that does not fit nothing changes."""
    w.star()
    w.stop(w.castd)
    saved = w.file('saved')
    w.castctl('registry backup ' + saved)
    with open(saved, 'rb') as f:
        data = f.read()
    for name, part in (('torn', data[:-1]), ('schema', data[:data.index(b'\n', 80) + 1]), ('empty', b''),
                       ('spoilt', data.replace(b'fd00:1::9', b'fd00:1::8'))):
        with open(w.file(name), 'wb') as f:
            f.write(part)
    database(w, 'later', dict(current_schema(), version='99.0.0'))
    w.castctl('registry init ' + w.file('new'))
    w.castctl('registry init %s --cluster unix:%s' % (w.file('first'), w.file('first.raft')))
    before = w.dump()
    for name, pattern in (('none', 'No such file'), ('torn', r'torn: .*bytes|torn: .*parse error'), ('schema', 'without content'),
                          ('empty', 'empty: '), ('spoilt', 'SHA-1'), ('later', r'version 99\.0\.0'), ('new', 'without content'),
                          ('first', 'clustered')):
        refused(w, 'registry restore ' + w.file(name), 2, pattern)
    check(w.dump() == before, 'the registry has changed')
    w.convert(schema_of('2.6.0'))
    before = w.dump()
    refused(w, 'registry restore ' + saved, 2, r'schema has version 2\.6\.0, that of this castctl %s' % VERSION)
    check(w.dump() == before, 'the old registry has changed')
    w.stop(w.registry)
    refused(w, 'registry backup ' + w.file('another'), 3, 'registry unix:.*: ')
    refused(w, 'registry restore ' + saved, 3, 'registry unix:.*: ')
    w.refused('registry status', 3, '.')
    w.refused('registry status ' + w.file('ovsdb.ctl'), 3, '.')


#
# A cluster.
#

class Cluster:
    """The registry of a world, made a cluster of three servers."""

    def __init__(self, w):
        self.w, self.servers = w, {}
        w.stop(w.castd)
        w.db.close()
        w.stop(w.registry)
        self.init(0, w.file('db'))
        self.start(0)
        for i in range(1, N):
            w.castctl('registry join %s %s --cluster %s' % (self.file(i), self.raft(0), self.raft(i)))
            self.start(i)
        w.env['ROCECAST_DB'] = ','.join(self.remote(i) for i in range(N))
        wait_until('all are in', lambda: self.status()['majority'] and all(s['index'] for s in self.status()['servers']))

    def init(self, i, old):
        self.w.castctl('registry init %s %s --cluster %s' % (self.file(i), old, self.raft(i)))

    def file(self, i):
        return self.w.file('db%d' % i)

    def socket(self, i):
        return self.file(i) + '.sock'

    def control(self, i):
        return self.file(i) + '.ctl'

    def raft(self, i):
        return 'unix:%s.raft' % self.file(i)

    def remote(self, i):
        """Where clients reach it."""
        return 'unix:' + self.socket(i)

    def options(self, _):
        return []

    def start(self, i):
        self.servers[i] = self.w.start('ovsdb-server', self.file(i), '--remote=punix:' + self.socket(i),
                                       '--unixctl=' + self.control(i), '-vconsole:warn', *self.options(i))
        wait_until('server %d listens' % i, lambda: listens(self.socket(i)) and listens(self.control(i)))

    def hold_elections_later(self):
        """After 16 s, not 1 s, without a leader."""
        def appctl(*command):
            return subprocess.run(['ovs-appctl', '-t', self.control(self.leader()), *command], check=False, text=True,
                                  capture_output=True).stdout
        for timer in '2000', '4000', '8000', '16000':
            def set_to(timer=timer):
                appctl('cluster/change-election-timer', 'rocecast', timer)
                return 'Election timer: ' + timer in appctl('cluster/status', 'rocecast')
            wait_until('elections are held after %s ms' % timer, set_to)

    def stop(self, i, how=signal.SIGTERM):
        self.w.stop(self.servers.pop(i), how)

    def status(self):
        p = self.w.run('-j', 'registry', 'status')
        check(p.returncode in (0, 3, 4), 'registry status: %d, %s', p.returncode, p.stderr)
        return json.loads(p.stdout)

    def leader(self):
        """Its number, once there is one."""
        remote = wait_until('there is a leader', lambda: self.status().get('leader'))
        return next(i for i in range(N) if remote == self.remote(i))

    def members(self, i):
        return json.loads(self.w.run('-j', 'registry', 'status', self.control(i)).stdout)['members']

    def connect(self, i):
        """The test itself asks this server."""
        self.w.sock = self.socket(i)
        self.w.db = Db(self.w.sock)


def timed(w, line):
    """Just after the leader was killed: how long it takes is said, it is not what is tested."""
    began = time.monotonic()
    w.castctl(line)
    took = time.monotonic() - began
    print('      %s, without the leader: %.1f s' % (line, took))
    check(took < 10, '%s took %.1f s', line, took)


def cluster(w):
    """From one server to three without losing groups; the leader is killed, and all goes on; who
    comes back catches up."""
    w.ready_group()
    w.settled()
    w.stop(w.castd)
    before = w.dump()
    w.castd = w.start_castd('castd')
    c = Cluster(w)
    c.connect(0)
    check(w.dump() == before, 'the registry has changed')
    w.castd = w.start_castd('castd')
    check_equal('roles', sorted(s['role'] for s in c.status()['servers']), ['follower', 'follower', 'leader'])
    wait_until('castd serves', lambda: 'active' in w.status('castd'))

    leader = c.leader()
    others = [i for i in range(N) if i != leader]
    w.db.close()
    c.connect(others[0])
    c.stop(leader, signal.SIGKILL)
    timed(w, 'member add g r3 --qpn 17 --rkey 7 --va 0x1000 --len 4096')
    w.apply_all_until('r3 is active', lambda: w.member('r3')['state'] == 'active')
    check(c.leader() in others, 'the leader is %d', c.leader())
    p = w.run('registry', 'status')
    check_equal('exit status with one gone', p.returncode, 4)
    check(c.socket(leader) in p.stderr, '%r', p.stderr)
    silent = [s for s in c.status()['servers'] if s['role'] is None]
    check_equal('who is gone', [s['remote'] for s in silent], ['unix:' + c.socket(leader)])
    check_equal('leader, as each says', {json.loads(w.run('-j', 'registry', 'status', c.control(i)).stdout)['leader']
                                         for i in others}, {c.raft(c.leader())})
    w.refused('registry status ' + c.control(c.leader()), 4, 'member %s is not reached$' % c.raft(leader))
    check_equal('reached', [m['address'] for m in c.members(c.leader()) if not m['connected']], [c.raft(leader)])

    c.start(leader)
    wait_until('it has caught up', lambda: len({s['index'] for s in c.status()['servers']}) == 1)
    w.castctl('registry status')
    w.db.close()
    c.connect(leader)
    check_equal('members, at who was gone', sorted(m['host'] for m in w.db.rows('Member')), ['r1', 'r2', 'r3'])

    # Without a majority nothing is done, and that is said.
    for i in others:
        c.stop(i)
    wait_until('it knows', lambda: not c.status()['majority'])
    p = w.run('registry', 'status')
    check(p.returncode == 3 and 'majority' in p.stderr, 'exit status %d: %s', p.returncode, p.stderr)
    w.refused('--timeout=1 group add x', 3, '^castctl: registry .* did not answer in 1 s')
    w.refused('--timeout=1 registry backup ' + w.file('saved'), 3, 'there is no leader: ')
    check(not os.path.exists(w.file('saved')), 'a file is left')
    for _ in range(2):
        w.refused('--timeout=1 registry leave ' + c.control(leader), 3, 'has not let it go in 1 s')


def cluster_agents(w):
    """A node has one agent, and a registry one castd, whichever server each finds first; when the leader
    is lost they go on, with the next one."""
    w.castctl('node add n1 --id 1 --role switch')
    c = Cluster(w)
    c.connect(0)
    castds = {name: w.start_castd(name) for name in ('first', 'second')}

    def agent(name, servers):
        return w.start(os.path.join(BIN, 'swedge'), '--node=n1', '--unixctl=' + w.file(name + '.ctl'),
                       '--db=' + ','.join(c.remote(i) for i in servers))

    def following(names):
        return sorted(n for n in names if re.search('^generation .* is applied', w.status(n)))

    leader = c.leader()
    followers = [i for i in range(N) if i != leader]
    agents = {name: agent(name, [i]) for name, i in zip('xy', followers)}
    waiting = ('registry not connected', 'registry connected, no answer yet')
    for name in agents:
        wait_until(name + ' listens', lambda name=name: listens(w.file(name + '.ctl')))
    # Such a lock is a server's own: what keeps an agent away is that followers are not asked.
    w.castctl('group add g')
    check_equal('agents that only have followers', [(n, w.status(n) in waiting, w.db.row('Node')['control'])
                                                    for n in agents], [('x', True, ''), ('y', True, '')])
    for p in agents.values():
        w.stop(p)
    agents = {name: agent(name, range(N)) for name in 'ab'}
    for name in agents:
        wait_until(name + ' listens', lambda name=name: listens(w.file(name + '.ctl')))
    wait_until('one follows its node', lambda: following(agents))
    w.castctl('--wait=agents group add h')
    other = next(n for n in agents if n not in following(agents))
    wait_until('the other one waits', lambda: w.status(other) == 'another agent has the node')
    active = [n for n in castds if w.status(n) == 'active']
    check_equal('castds that are active', len(active), 1)

    w.db.close()
    c.connect(followers[0])
    c.stop(leader, signal.SIGKILL)
    timed(w, '--wait=agents group add i')
    # Who was not asked for it may find the next leader later.
    wait_until('one agent follows, one castd is active', lambda: (
        len(following(agents)), sorted(w.status(n) for n in castds)) == (1, ['active', 'standby: another castd is active']))

    # Whoever has the node and the registry ends: the others take over.
    follower = following(agents)[0]
    w.stop(agents.pop(follower), signal.SIGKILL)
    w.stop(castds.pop(next(n for n in castds if w.status(n) == 'active')), signal.SIGKILL)
    timed(w, '--wait=agents group add j')
    check_equal('who follows', following(agents), sorted(agents))


def cluster_changes(w):
    """A backup comes back in a cluster; servers leave and join."""
    w.ready_group()
    c = Cluster(w)
    # Who is stopped below holds no election when it goes on: one that joined then was seen not to hear of it for 30 s.
    c.hold_elections_later()
    c.connect(0)
    before = content(w)
    w.castctl('registry backup ' + w.file('saved'))
    w.castctl('--wait=none group del g')
    check(content(w) != before, 'nothing has changed')
    w.castctl('registry restore ' + w.file('saved'))
    check_content('restored', content(w), before)
    follower = next(i for i in range(N) if i != c.leader())
    for verb in ('backup ' + w.file('another'), 'restore ' + w.file('saved')):
        w.refused('--timeout=5 --db=%s registry %s' % (c.remote(follower), verb), 3, 'it is not the leader$')
    check_content('still', content(w), before)
    w.castctl('registry leave ' + c.control(2))
    wait_until('two are left', lambda: len(c.members(0)) == 2)
    w.refused('registry leave ' + c.control(2), 2, 'no server of a cluster')
    c.stop(2)
    os.unlink(c.file(2))
    w.castctl('registry join %s %s %s --cluster %s' % (c.file(2), c.raft(0), c.raft(1), c.raft(2)))
    for i in (0, 1):
        c.servers[i].send_signal(signal.SIGSTOP)
    c.start(2)
    wait_until('server 2 tries to join', lambda: w.run('--timeout=5', 'registry', 'status', c.control(2)).stdout)
    w.refused('--timeout=2 registry leave ' + c.control(2), 3, 'it has not joined its cluster in 2 s')
    for i in (0, 1):
        c.servers[i].send_signal(signal.SIGCONT)
    w.castctl('registry leave ' + c.control(2))
    w.castctl('registry leave ' + c.control(1))
    w.refused('registry leave ' + c.control(0), 2, 'the only server of its cluster')
    shown = json.loads(w.castctl('-j registry status ' + c.control(0)))
    check_equal('alone', (shown['role'], shown['majority'], shown['reached'], len(shown['members'])),
                ('leader', 1, 1, 1))
    check_equal('leader', shown['leader'], c.raft(0))


class TlsCluster(Cluster):
    """Servers that talk to each other, and to clients but the test itself, by ssl: only."""

    KEYS = ['--private-key=' + KEYS + '/key.pem', '--certificate=' + KEYS + '/cert.pem',
            '--ca-cert=' + KEYS + '/cert.pem']

    def __init__(self, w):
        self.ports = free_ports(2 * N)
        run = w.run
        w.run = lambda *argv, **env: run(*self.KEYS, *argv, **env)
        super().__init__(w)

    def raft(self, i):
        return 'ssl:127.0.0.1:%d' % self.ports[i]

    def remote(self, i):
        return 'ssl:127.0.0.1:%d' % self.ports[N + i]

    def options(self, i):
        return self.KEYS + ['--remote=pssl:%d:127.0.0.1' % self.ports[N + i]]


def answers(port, context=None):
    """Whether who listens there answers a client that has this much to show; without context by TCP alone."""
    with socket.create_connection(('127.0.0.1', port), PATIENCE) as s:
        try:
            if context:
                s = context.wrap_socket(s)
            s.sendall(b'{"method":"echo","params":[],"id":"x"}')
            return bool(s.recv(1))
        except (ssl.SSLError, ConnectionError):
            return False
        finally:
            s.close()


def tls_client(*certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if certificate:
        context.load_cert_chain(*certificate)
    return context


def check_keys_are_asked_for(w, c):
    stranger = [w.file('stranger.pem'), w.file('stranger.key')]
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=stranger',
                    '-out', stranger[0], '-keyout', stranger[1]], check=True, capture_output=True)
    known = [os.path.join(KEYS, name) for name in ('cert.pem', 'key.pem')]
    for port in c.ports:
        for what, context in (('who has no certificate', tls_client()), ('who has a certificate of his own',
                              tls_client(*stranger)), ('who does not encrypt', None)):
            check(not answers(port, context), 'port %d (of clients: %r) answers %s', port, c.ports[N:], what)
    for port in c.ports[N:]:
        check(answers(port, tls_client(*known)), 'port %d does not answer who has keys', port)


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(('127.0.0.1', 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def cluster_tls(w):
    """All by TLS: without keys nobody gets in, and with them all goes on when the leader is lost."""
    w.ready_group()
    c = TlsCluster(w)
    c.connect(0)
    w.castd = w.start(os.path.join(BIN, 'castd'), '--unixctl=' + w.file('castd2.ctl'), *c.KEYS)
    check_keys_are_asked_for(w, c)
    w.castctl('group add other')
    w.castctl('registry backup ' + w.file('saved'))
    w.castctl('group del other')
    w.castctl('registry restore ' + w.file('saved'))
    check_equal('groups', [g['name'] for g in json.loads(w.castctl('-j group list'))], ['g', 'other'])
    without = subprocess.run([os.path.join(BIN, 'castctl'), 'registry', 'backup', w.file('stolen')], env=w.env,
                             capture_output=True, text=True, check=False)
    check(without.returncode == 1 and 'ssl: needs --private-key' in without.stderr, '%r', without)
    check(not os.path.exists(w.file('stolen')), 'a file is left')
    w.db.close()
    leader = c.leader()
    c.stop(leader, signal.SIGKILL)
    w.castctl('group del other')
    c.start(leader)
    wait_until('it has caught up', lambda: len({s['index'] for s in c.status()['servers']}) == 1)
    c.connect(leader)
    check_equal('groups, at who was gone', [g['name'] for g in w.db.rows('Group')], ['g'])


def registry_status(w):
    """Of a single server."""
    shown = json.loads(w.castctl('-j registry status'))
    check_equal('status', (shown['leader'], shown['majority'], [(s['role'], s['connected'], s['index'], s['server'])
                                                                for s in shown['servers']]),
                ('unix:' + w.sock, True, [('standalone', True, None, None)]))
    check('standalone' in w.castctl('registry status'), 'text')
    w.refused('registry status ' + w.file('ovsdb.ctl'), 2, 'ovsdb.ctl: it is no server of a cluster$')
    w.refused('registry leave ' + w.file('ovsdb.ctl'), 2, 'ovsdb.ctl: it is no server of a cluster$')
    w.refused('registry leave', 3, 'ovsdb-server.ctl: No such file or directory$')
    w.env['ROCECAST_DB'] += ',unix:' + w.file('nobody')
    w.refused('registry status', 4, 'registry unix:.*nobody: ')


CASES = (registry_init, registry_init_refused, registry_backup, registry_restore_rows, registry_restore_agent,
         registry_restore_doubts, registry_busy, registry_interrupted, registry_hup, registry_restore_refused,
         registry_status, cluster, cluster_agents, cluster_changes, cluster_tls)
