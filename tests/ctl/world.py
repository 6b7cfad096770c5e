# SPDX-License-Identifier: Apache-2.0
"""A private registry with a castd, and what agents would do, for tests without network or root."""
import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..'))
sys.path.insert(1, os.path.join(ROOT, 'tests'))

from proof import where                                # noqa: E402, F401 pylint: disable=unused-import

BIN = os.path.join(ROOT, os.environ.get('BUILD', 'build'), 'bin')
SCHEMA = os.path.join(ROOT, 'ctl/registry/rocecast.ovsschema')
PATIENCE = 30  # seconds until a condition that should hold is given up


class Failure(Exception):
    pass


def check(condition, message, *args):
    if not condition:
        raise Failure(message % args if args else message)


def check_equal(what, got, want):
    check(got == want, '%s: %r instead of %r', what, got, want)


def wait_until(what, condition):
    """Waits until condition() is true and returns its value."""
    deadline = time.monotonic() + PATIENCE
    while True:
        value = condition()
        if value:
            return value
        check(time.monotonic() < deadline, 'not within %d s: %s', PATIENCE, what)
        time.sleep(0.01)


def as_text(said):
    """What castctl says on standard error, as without -j."""
    return ''.join('castctl: %s\n' % json.loads(line)['message'] if line.startswith('{') else line + '\n'
                   for line in said.splitlines())


def crowd(path):
    """So many connections to a server that has been stopped that it has no room for another one."""
    waiting = []
    try:
        while True:
            waiting.append(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK))
            waiting[-1].connect(path)
    except BlockingIOError:
        return waiting


def listens(path):
    """A socket's file is there a little before anybody listens on it."""
    with socket.socket(socket.AF_UNIX) as s:
        return s.connect_ex(path) == 0


class Db:
    """An OVSDB client (RFC 7047)."""

    def __init__(self, where_to):
        """A unix socket's path, or a socket that is connected."""
        self.sock = where_to
        if isinstance(where_to, str):
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(PATIENCE)
            self.sock.connect(where_to)
        self.decoder = json.JSONDecoder()
        self.buffer = ''
        self.ids = itertools.count()

    def receive(self):
        while True:
            try:
                message, end = self.decoder.raw_decode(self.buffer)
                self.buffer = self.buffer[end:].lstrip()
                return message
            except ValueError:
                data = self.sock.recv(1 << 16)
                check(data, 'the registry closed the connection')
                self.buffer += data.decode()

    def answer(self, echo):
        self.sock.sendall(json.dumps({'result': echo['params'], 'error': None,
                                      'id': echo['id']}).encode())

    def call(self, method, params):
        """The result, whatever it is."""
        number = next(self.ids)
        self.sock.sendall(json.dumps({'method': method, 'id': number, 'params': params}).encode())
        while True:
            message = self.receive()
            if message.get('method') == 'echo':
                self.answer(message)
            elif message.get('id') == number:
                return message.get('result')

    def attempt(self, *operations):
        """The registry's answer, whatever it is."""
        return self.call('transact', ['rocecast', *operations])

    def transact(self, *operations):
        results = self.attempt(*operations)
        for result in results:
            check(result is None or 'error' not in result, 'transaction: %r', results)
        return results

    def rows(self, table, **where):
        conditions = [[column, '==', value] for column, value in where.items()]
        return self.transact({'op': 'select', 'table': table, 'where': conditions})[0]['rows']

    def row(self, table, **where):
        rows = self.rows(table, **where)
        check(len(rows) == 1, '%d rows in %s where %r', len(rows), table, where)
        return rows[0]

    def update(self, table, where, **row):
        conditions = [[column, '==', value] for column, value in where.items()]
        return self.transact({'op': 'update', 'table': table, 'where': conditions, 'row': row})

    def close(self):
        self.sock.close()


class FakeAgent:
    """An agent's control socket that answers commands with JSON, with what a function returns, or with
    a text."""

    def __init__(self, path, answers):
        self.answers = answers
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            connection, _ = self.listener.accept()
            with connection:
                request = b''
                while not request.endswith(b'}'):
                    request += connection.recv(4096)
                message = json.loads(request)
                answer = self.answers[message['method']]
                answer = answer() if callable(answer) else answer
                answer = (answer if isinstance(answer, str) else json.dumps(answer)) + '\n'
                connection.sendall(json.dumps({'result': answer, 'error': None,
                                               'id': message['id']}).encode())


def references(value):
    """The UUIDs in a column that is a set of references."""
    return [value[1]] if value[0] == 'uuid' else [uuid for _, uuid in value[1]]


class World:
    """A registry, a castd, and what agents would do."""

    # castd and agents compare what they keep with the rows, after each change.
    CHECKS = {'ROCECAST_AGENT_CHECK': '1', 'ROCECAST_CASTD_CHECK': '1'}

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix='rocecast-ctl.')
        self.sock = os.path.join(self.dir, 'db.sock')
        self.daemons = []
        self.env = dict(os.environ, ROCECAST_RUNDIR=self.dir, ROCECAST_DB='unix:' + self.sock, **self.CHECKS)
        subprocess.run(['ovsdb-tool', 'create', os.path.join(self.dir, 'db'), SCHEMA], check=True)
        self.registry = self.start_registry()
        self.castd = self.start_castd('castd')
        self.db = Db(self.sock)
        wait_until('castd makes the Global row', lambda: self.db.rows('Global'))

    def file(self, name):
        return os.path.join(self.dir, name)

    def start(self, *argv):
        log = open(os.path.join(self.dir, 'daemons.log'), 'a', encoding='utf-8')
        p = subprocess.Popen(argv, env=self.env, stdout=log, stderr=log, start_new_session=True)
        log.close()
        self.daemons.append(p)
        return p

    def start_registry(self, *options):
        p = self.start('ovsdb-server', os.path.join(self.dir, 'db'), '--remote=punix:' + self.sock,
                       '--unixctl=' + os.path.join(self.dir, 'ovsdb.ctl'), '-vconsole:warn', *options)
        wait_until('the registry listens', lambda: listens(self.sock))
        return p

    def start_castd(self, name):
        control = os.path.join(self.dir, name + '.ctl')
        p = self.start(os.path.join(BIN, 'castd'), '--unixctl=' + control)
        wait_until(name + ' starts', lambda: listens(control))
        return p

    def restart_castd(self):
        self.stop(self.castd, signal.SIGKILL)
        os.unlink(os.path.join(self.dir, 'castd.ctl'))
        self.castd = self.start_castd('castd')

    def status(self, name):
        """What a castd says of itself."""
        return subprocess.run(['ovs-appctl', '-t', os.path.join(self.dir, name + '.ctl'),
                               'rocecast/status'], check=True, capture_output=True,
                              text=True).stdout.strip()

    def convert(self, schema):
        """Gives the registry another schema.  Only a new server tells it to clients."""
        file = os.path.join(self.dir, 'schema')
        with open(file, 'w', encoding='utf-8') as f:
            json.dump(schema, f)
        self.db.close()
        subprocess.run(['ovsdb-client', 'convert', 'unix:' + self.sock, file], check=True,
                       capture_output=True)
        self.stop(self.registry)
        self.registry = self.start_registry()
        self.db = Db(self.sock)

    def stop(self, process, how=signal.SIGTERM):
        process.send_signal(how)
        process.wait(PATIENCE)
        self.daemons.remove(process)
        return process.returncode

    def close(self):
        self.db.close()
        for p in self.daemons[::-1]:
            p.send_signal(signal.SIGCONT)
            p.kill()
            p.wait()
        shutil.rmtree(self.dir)

    def log(self):
        with open(os.path.join(self.dir, 'daemons.log'), encoding='utf-8') as f:
            return f.read()

    # castctl

    def run(self, *argv, **env):
        return subprocess.run([os.path.join(BIN, 'castctl'), *argv], env=dict(self.env, **env),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=2 * PATIENCE, check=False)

    def castctl(self, line):
        p = self.run(*line.split())
        check(p.returncode == 0, 'castctl %s: exit status %d: %s', line, p.returncode, p.stderr)
        check(not p.stderr, 'castctl %s: said %r', line, p.stderr)
        return p.stdout

    def refused(self, line, status, pattern):
        p = self.run(*line.split())
        check(p.returncode == status, 'castctl %s: exit status %d instead of %d: %s', line,
              p.returncode, status, p.stderr)
        check(re.search(pattern, p.stderr), 'castctl %s: %r does not say %s', line, p.stderr,
              pattern)
        check(p.stderr.count('\n') == 1 or status == 1, 'castctl %s: %r', line, p.stderr)

    def show(self, group='g'):
        return json.loads(self.castctl('-j group show ' + group))

    def member(self, host, group='g'):
        return next(m for m in self.show(group)['members'] if m['host'] == host)

    def dump(self):
        return subprocess.run(['ovsdb-client', 'dump', 'unix:' + self.sock, 'rocecast'],
                              check=True, capture_output=True, text=True).stdout

    # Agents

    def tree(self, node, epoch=None):
        """The node's only tree (of that epoch), its branches and copies by host name; or None."""
        branches = {b['_uuid'][1]: b for b in self.db.rows('Branch')}
        mine = self.db.rows('Tree_Node', node=node)
        if epoch is not None:
            mine = [t for t in mine if t['epoch'] == epoch]
        check(len(mine) <= 1, '%s has trees %r', node, mine)
        for tree in mine:
            for column in ('branches', 'copies'):
                tree[column] = {branches[u]['name']: branches[u] for u in references(tree[column])
                                if u in branches}
            return tree
        return None

    def members_at(self, node, epoch=None):
        """What the node is told: host names at an edge; (names, open) at the agent; None."""
        tree = self.tree(node, epoch)
        if not tree:
            return None
        if self.db.row('Node', name=node)['role'] == 'agent':
            return (sorted(tree['copies']), tree['open'])
        return sorted(tree['branches'])

    def apply(self, node):
        cfg = self.db.row('Node', name=node)['cfg']
        self.db.update('Node', {'name': node}, nb_cfg=cfg, state='ok', finds_rows=True)

    def apply_all_until(self, what, condition):
        """Agents that always apply at once."""
        def step():
            if condition():
                return True
            for node in self.db.rows('Node'):
                if node['nb_cfg'] != node['cfg']:
                    self.apply(node['name'])
            return False
        wait_until(what, step)

    def set_started(self, agent='a0'):
        self.db.update('Tree_Node', {'_uuid': self.tree(agent)['_uuid']}, started=True)

    def say_joined(self, node, **first):
        """The node's agent says which branches, by name, count, and from which PSN on."""
        tree = self.tree(node)
        self.db.update('Tree_Node', {'_uuid': tree['_uuid']}, joined=['map', [
            [tree['branches'][name]['id'], psn] for name, psn in first.items()]])

    def joining(self, node):
        """What the node's branches have of joining, by name."""
        def value(column):
            return None if column == ['set', []] else column
        return {name: (value(b['join']), value(b['first']))
                for name, b in self.tree(node)['branches'].items()}

    def shape(self, node):
        """Where the node's only tree leads, as text: children (> by End.MT, >> by its
        Replication-SID), parent, branches.  None: it has no tree."""
        tree = self.tree(node)
        if not tree:
            return None
        names = {n['id']: n['name'] for n in self.db.rows('Node')}

        def owner(sid):
            return names[int(sid.split(':')[2], 16)]
        das = tree['outer_da'][1] if isinstance(tree['outer_da'], list) else [tree['outer_da']]
        words = sorted(('>' if ':e001:' in da else '>>') + owner(da) for da in das)
        if tree['parent_sid']:
            words.append('<' + owner(tree['parent_sid']))
        if tree['root']:
            words.append('<source')
        return ' '.join(words + sorted(tree['branches']))

    def shapes(self, nodes='n1 n2 n3 n4 n5 n6'):
        return {n: self.shape(n) for n in nodes.split() if self.tree(n)}

    def expect_shapes(self, **want):
        wait_until('trees %r' % want, lambda: self.shapes() == want)

    def expect(self, node, want, epoch=None):
        wait_until('%s is told %r' % (node, want), lambda: self.members_at(node, epoch) == want)

    def expect_state(self, state, status='', group='g'):
        def condition():
            shown = self.show(group)
            return shown['state'] == state and re.search(status, shown['status'])
        wait_until('group %s is %s, %s' % (group, state, status), condition)

    def expect_member(self, host, state, status=''):
        def condition():
            shown = self.member(host)
            return shown['state'] == state and re.search(status, shown['status'])
        wait_until('%s is %s, %s' % (host, state, status), condition)

    def settled(self):
        """castd has answered a request that was made now: nothing more comes by itself."""
        self.castctl('group add settle')
        self.castctl('group del settle')

    # Set-ups

    def star(self, n=3):
        """h0 - a0 - n1 - r1..rn, and r9 on n2 behind n1."""
        self.castctl('node add n1 --id 256 --role switch')
        self.castctl('node add n2 --id 257 --role switch')
        self.castctl('node add a0 --id 512 --role agent')
        self.castctl('host add h0 --address fd00:1::100')
        self.castctl('link add h0:th0 a0:th0')
        self.castctl('link add a0:up n1:a0')
        self.castctl('link add n1:n2 n2:n1')
        for i in range(1, n + 1):
            self.castctl('host add r%d --address fd00:1::%x' % (i, i))
            self.castctl('link add n1:tr%d r%d:tr%d' % (i, i, i))
        self.castctl('host add r9 --address fd00:1::9')
        self.castctl('link add n2:tr9 r9:tr9')

    def figure_1(self):
        """The draft's Figure 1: h0 - a0 - n6 - {n4, n5}, n4 - {n1, n2}, n5 - {n2, n3}."""
        for i in range(1, 7):
            self.castctl('node add n%d --id %d --role switch' % (i, i))
        self.castctl('node add a0 --id 9 --role agent')
        self.castctl('host add h0 --address fd00:1::100')
        for i in range(1, 6):
            self.castctl('host add r%d --address fd00:1::%x' % (i, i))
        for link in ('h0-a0 a0-n6 n6-n4 n6-n5 n4-n1 n4-n2 n5-n2 n5-n3 '
                     'n1-r1 n1-r2 n2-r3 n3-r4 n3-r5').split():
            a, b = link.split('-')
            self.castctl('link add %s:%s %s:%s --kind packet' % (a, b, b, a))

    def cut(self, a, b):
        """Deletes the link between two switches, whatever uses it."""
        self.castctl('link del %s:%s --force' % (a, b))

    def cut_host(self, a, b):
        """Likewise with a host, for which castctl has no option."""
        for row in self.db.rows('Link'):
            if {row['a'], row['b']} == {a, b}:
                self.db.transact({'op': 'delete', 'table': 'Link',
                                  'where': [['_uuid', '==', row['_uuid']]]})

    def ready_figure_1(self, members=('r1', 'r2', 'r3', 'r4', 'r5')):
        self.figure_1()
        self.castctl('group add g')
        for host in members:
            self.castctl('member add g %s --qpn 17 --rkey 7 --va 0x1000 --len 4096' % host)
        self.castctl('source set g --host h0 --qpn 18')
        self.apply_all_until('the group is ready', lambda: self.show()['state'] == 'ready')

    def ready_group(self, members=('r1', 'r2')):
        self.star()
        self.castctl('group add g')
        for host in members:
            self.castctl('member add g %s --qpn 17 --rkey 7 --va 0x1000 --len 4096' % host)
        self.castctl('source set g --host h0 --qpn 18')
        self.apply_all_until('the group is ready', lambda: self.show()['state'] == 'ready')
