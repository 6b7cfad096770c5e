# SPDX-License-Identifier: Apache-2.0
"""Registries that refuse a write: the N-th transaction of castd, an agent or castctl fails, for every N,
and the end is as without."""
import json
import os
import re
import socket
import subprocess
import threading

from world import BIN, check, check_equal, wait_until

# What becomes of a transaction: the registry says that it failed; the connection is cut before the
# registry has it; the registry has done it, and the connection is cut before anybody hears of that.
ERROR, CUT_BEFORE, CUT_AFTER = HOW = ('error', 'cut before', 'cut after')
DETAILS = 'no space left on device'
EVERY = False  # tests/ctl/run --all: each N in each way, instead of each N in one.


def writes(message):
    return message.get('method') == 'transact' and any(
        isinstance(o, dict) and o.get('op') in ('insert', 'update', 'mutate', 'delete')
        for o in message['params'])


class Relay:
    """Stands between clients and a registry on unix sockets.  refuse(n) says what becomes of the
    n-th transaction that writes, counted from 1: one of HOW, or None."""

    def __init__(self, path, registry, refuse):
        self.registry, self.refuse = registry, refuse
        self.n_written = 0
        self.n_refused = 0
        self.lock = threading.Lock()
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(path)
        self.server.listen(16)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.server.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(self.registry)
            except OSError:
                client.close()
                continue
            dropped = set()  # ids of requests whose answer ends the connection
            sending = threading.Lock()
            for source, sink, filtered in ((client, server, self.from_client),
                                           (server, client, self.from_server)):
                threading.Thread(target=self.copy, daemon=True,
                                 args=(source, sink, filtered, (client, sending, dropped))).start()

    def copy(self, source, sink, filtered, state):
        """Passes messages on until one of the two has gone, or 'filtered' cuts."""
        decoder, text, client = json.JSONDecoder(), '', state[0]
        try:
            while True:
                data = source.recv(1 << 16).decode()
                if not data:
                    break
                text += data
                while text.strip():
                    try:
                        message, end = decoder.raw_decode(text.lstrip())
                    except ValueError:
                        break
                    text = text.lstrip()[end:]
                    passed = filtered(message, *state)
                    if passed:
                        with state[1] if sink is client else threading.Lock():
                            sink.sendall(json.dumps(passed).encode())
        except (OSError, ConnectionAbortedError):
            pass
        for s in (source, sink):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def from_client(self, message, client, sending, dropped):
        if not writes(message):
            return message
        with self.lock:
            self.n_written += 1
            how = self.refuse(self.n_written)
            self.n_refused += how is not None
        if how == ERROR:
            results = [{} for _ in message['params'][1:]]
            with sending:
                client.sendall(json.dumps({
                    'id': message['id'], 'error': None,
                    'result': results + [{'error': 'I/O error', 'details': DETAILS}]}).encode())
            return None
        if how == CUT_BEFORE:
            raise ConnectionAbortedError
        if how == CUT_AFTER:
            dropped.add(message['id'])
        return message

    @staticmethod
    def from_server(message, _client, _sending, dropped):
        if message.get('id') in dropped:
            raise ConnectionAbortedError
        return message

    def close(self):
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()


def nth(n, how):
    return lambda i: how if i == n else None


def relay(w, refuse, name='relay'):
    path = os.path.join(w.dir, name)
    r = Relay(path, w.sock, refuse)
    return r, dict(w.env, ROCECAST_DB='unix:' + path)


def relayed_castd(w, refuse):
    """castd anew, behind a relay."""
    w.stop(w.castd)
    r, env = relay(w, refuse)
    was, w.env = w.env, env
    w.castd = w.start_castd('castd')
    w.env = was
    return r


#
# A scenario, and what is left in the end.
#

def add_topology(w):
    """w.star(2) in one transaction."""
    def row(table, **columns):
        return {'op': 'insert', 'table': table, 'row': columns}
    links = (('h0', 'th0', 'a0', 'th0', 'tap'), ('a0', 'up', 'n1', 'a0', 'packet'),
             ('n1', 'n2', 'n2', 'n1', 'packet'), ('n1', 'tr1', 'r1', 'tr1', 'tap'),
             ('n2', 'tr2', 'r2', 'tr2', 'tap'))
    w.db.transact(*(row('Node', name=n, id=i, role=r) for n, i, r in (
        ('n1', 256, 'switch'), ('n2', 257, 'switch'), ('a0', 512, 'agent'))),
                  *(row('Host', name=n, address='fd00:1::' + a) for n, a in (
                      ('h0', '100'), ('r1', '1'), ('r2', '2'))),
                  *(row('Link', a=a, a_port=ap, b=b, b_port=bp, kind=kind)
                    for a, ap, b, bp, kind in links))


def is_applied(w):
    nodes = w.db.rows('Node')
    return all(n['cfg'] and n['cfg'] == n['nb_cfg'] for n in nodes)


def ready(w):
    return w.show()['state'] == 'ready'


# Commands, and what must come of each before the next.
STEPS = (
    ('group add g --psn 5', None),
    ('source set g --host h0 --qpn 18', None),
    ('member add g r1 --qpn 17 --rkey 7 --va 0x1000 --len 4096', ready),
    ('member add g r2 --qpn 17 --rkey 8 --va 0x1000 --len 4000',
     lambda w: ready(w) and w.member('r2')['state'] == 'active'),
    ('--wait=castd member leave g r1', lambda w: w.member('r1')['state'] == 'left'),
    ('group reset g', None),
    ('source set g --host h0 --qpn 19', None),
    ('member add g r2 --qpn 20', ready),
    ('group add h --psn 6', None),
    ('--wait=none member remove g r1', lambda w: [m['host'] for m in w.show()['members']] == ['r2']),
    ('group del h', None),
)


def uuids(value):
    """A column that is a set of references, or one reference."""
    return [value[1]] if value[0] == 'uuid' else [uuid for _, uuid in value[1]]


def strip(row, *columns):
    return {k: v for k, v in row.items() if k not in ('_uuid', '_version', *columns)}


def state_of(w):
    """What must be the same however it came about: all but random numbers, generations, UUIDs."""
    def ordered(rows):
        return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))

    names = {g['_uuid'][1]: g['name'] for g in w.db.rows('Group')}
    branches = {b['_uuid'][1]: strip(b) for b in w.db.rows('Branch')}
    nodes = w.db.rows('Node')
    state = {table: ordered(strip(row) for row in w.db.rows(table))
             for table in ('Port', 'Route', 'Sid')}
    state['Group'] = ordered(strip(g, 'designated_rkey', 'generation') for g in w.db.rows('Group'))
    for table in ('Source', 'Member'):
        state[table] = ordered(dict(strip(row), group=names[row['group'][1]])
                               for row in w.db.rows(table))
    state['Node'] = ordered({'name': n['name'], 'ports': len(uuids(n['ports']))} for n in nodes)
    state['Tree_Node'] = ordered(
        dict(strip(t, 'generation', 'designated_rkey'),
             branches=ordered(branches[b] for b in uuids(t['branches'])),
             copies=ordered(branches[b] for b in uuids(t['copies'])))
        for t in w.db.rows('Tree_Node'))
    counters = w.db.row('Global')
    state['answered'] = counters['nb_cfg'] == counters['next_cfg'] == counters['agents_cfg']
    return state


def play(w):
    """The scenario, with agents that apply at once; its last state."""
    add_topology(w)
    for line, condition in STEPS:
        w.castctl(line)
        w.apply_all_until('%s has come of %r' % (condition, line),
                          lambda c=condition: c is None or c(w))
    w.apply_all_until('all is applied', lambda: is_applied(w)
                      and state_of(w)['answered'])
    return state_of(w)


def ways(n):
    """The ways in which the n-th transaction is refused."""
    return HOW if EVERY else (HOW[n % len(HOW)],)


#
# castd.
#

class Parts(Relay):
    """Lets through what a client asks for later than at its start when the test says so; or cuts the
    connection instead."""

    def __init__(self, path, registry):
        self.asked, self.cut = 0, False
        self.go = threading.Semaphore(0)
        super().__init__(path, registry, lambda _: None)

    def from_client(self, message, client, sending, dropped):
        if message.get('method') == 'monitor_cond_change':
            self.asked += 1
            self.go.acquire()
            if self.cut:
                self.cut = False
                raise ConnectionAbortedError
        return super().from_client(message, client, sending, dropped)


def castd_reads_first(w):
    """castd reads large tables one after the other, and concludes nothing from rows that it has not read yet."""
    read_first(w, None)


def castd_reads_again(w):
    """A connection that is lost meanwhile changes nothing, whichever table has been asked for."""
    for cut in 1, 2:
        world = type(w)()
        try:
            read_first(world, cut)
        finally:
            world.close()


def read_first(w, cut):
    """'cut': the part that the connection is lost with."""
    def rows():
        return {t: sorted(w.db.rows(t), key=lambda r: r['_uuid'])
                for t in ('Group', 'Source', 'Member', 'Tree_Node', 'Branch', 'Global')}

    play(w)
    check(w.db.rows('Member') and w.db.rows('Branch'), 'there is something to read')
    before = rows()
    w.stop(w.castd)
    path = os.path.join(w.dir, 'parts')
    parts = Parts(path, w.sock)
    was, w.env = w.env, dict(w.env, ROCECAST_DB='unix:' + path)
    w.castd = w.start_castd('castd')
    w.env = was
    for n in 1, 2:
        wait_until('it asks for part %d' % n, lambda n=n: parts.asked == n)
        check_equal('castd', w.status('castd'), 'reading the registry')
        said = subprocess.run(['ovs-appctl', '-t', os.path.join(w.dir, 'castd.ctl'), 'rocecast/metrics'],
                              check=True, capture_output=True, text=True).stdout
        check('rocecast_castd_active 0' in said and 'rocecast_group' not in said, 'metrics: %s', said)
        parts.cut = n == cut
        parts.go.release()
    if not cut:
        wait_until('it asks for part 3', lambda: parts.asked == 3)
        check_equal('castd', w.status('castd'), 'reading the registry')
    parts.go.release(100)
    wait_until('it is active', lambda: w.status('castd') == 'active')
    w.castctl('--timeout 60 group list')
    check_equal('the rows', rows(), before)
    w.castctl('group add g2')
    parts.close()


def castd_is_refused(w):
    """Whichever write of castd the registry refuses, the end is the same.  It says so meanwhile."""
    counted = relayed_castd(w, lambda _: None)
    want = play(w)
    check(counted.n_written >= 20, 'only %d writes of castd', counted.n_written)
    for n in range(1, counted.n_written + 1):
        for how in ways(n):
            world = type(w)()
            try:
                r = relayed_castd(world, nth(n, how))
                check_equal('write %d: %s: the end' % (n, how), play(world), want)
                check(r.n_refused == (n <= r.n_written), 'write %d was not refused', n)
                wait_until('castd is active', lambda c=world: c.status('castd') == 'active')
            finally:
                world.close()


def castd_says_so(w):
    """A registry that refuses for a while: castd waits longer each time, says it once, then that it is over."""
    w.star(1)
    on = [True]
    r = relayed_castd(w, lambda _: ERROR if on[0] else None)
    w.db.transact({'op': 'insert', 'table': 'Group', 'row': {
        'name': 'g', 'mode': 'replicate', 'mtu': 1024, 'timeout': 20}})
    wait_until('castd has been refused four times', lambda: r.n_refused >= 4)
    check(re.fullmatch(r'active, but the registry refuses what is written \(\d+ times, tried '
                       r'again\): .*%s.*I/O error.*' % DETAILS, w.status('castd')),
          'status %r', w.status('castd'))
    tries = r.n_refused
    for i in range(50):  # a change is no reason to try at once
        w.db.update('Global', {}, fabric_mtu=9000 + i)
    check(r.n_refused <= tries + 3, '%d tries for 50 changes', r.n_refused - tries)
    on[0] = False
    wait_until('the group has its addresses', lambda: w.show()['proxy'])
    wait_until('status', lambda: w.status('castd') == 'active')
    log = w.log()
    check_equal('begin and end in the log', (log.count('registry_retry|ERR|'),
                                             log.count('registry_retry|INFO|')), (1, 1))
    w.stop(w.castd)  # before the relay goes


#
# Agents.
#

def agent(w, program, role, refuse):
    """An agent of a node without links, behind a relay."""
    w.db.transact({'op': 'insert', 'table': 'Node', 'row': {'name': 'x', 'id': 9, 'role': role}})
    r, env = relay(w, refuse)
    was, w.env = w.env, env
    w.start(os.path.join(BIN, program), '--node=x', '--unixctl=' + os.path.join(w.dir, 'x.ctl'))
    w.env = was
    return r


def follows(w):
    """Two generations; the node's row at the end."""
    def applied():
        n = w.db.row('Node', name='x')
        return n['cfg'] and n['nb_cfg'] == n['cfg'] and n
    wait_until('the first generation is applied', applied)
    w.castctl('node set x --verify always')
    n = wait_until('the next generation is applied', applied)
    return n['state'], n['control']


def agent_is_refused(w, program, role):
    counted = agent(w, program, role, lambda _: None)
    want = follows(w)
    check(want[0] == 'ok' and counted.n_written >= 2, '%r after %d writes', want, counted.n_written)
    for n in range(1, counted.n_written + 1):
        for how in HOW:
            world = type(w)()
            try:
                r = agent(world, program, role, nth(n, how))
                state, control = follows(world)
                check_equal('write %d: %s' % (n, how), (state, os.path.basename(control)),
                            (want[0], os.path.basename(want[1])))
                check(r.n_refused == (n <= r.n_written), 'write %d was not refused', n)
            finally:
                world.close()


def swedge_is_refused(w):
    """Whichever report of swedge the registry refuses, it comes."""
    agent_is_refused(w, 'swedge', 'switch')


def srcagent_is_refused(w):
    """Whichever report of srcagent the registry refuses, it comes."""
    agent_is_refused(w, 'srcagent', 'agent')


def agent_says_so(w):
    """An agent whose reports are refused says that on its control socket and once in its log."""
    on = [True]
    r = agent(w, 'swedge', 'switch', lambda _: ERROR if on[0] else None)
    wait_until('swedge has been refused three times', lambda: r.n_refused >= 3)
    check(re.fullmatch(r'generation 1 is applied; the registry refuses what is written .*I/O error.*',
                       w.status('x')), 'status %r', w.status('x'))
    on[0] = False
    follows(w)
    wait_until('status', lambda: re.fullmatch(r'generation \d+ is applied', w.status('x')))
    log = w.log()
    check_equal('begin and end in the log', (log.count('registry_retry|ERR|'),
                                             log.count('registry_retry|INFO|')), (1, 1))


#
# castctl.
#

def castctl_is_refused(w):
    """Each command says that the registry refused it, and nothing of it is done."""
    add_topology(w)
    w.apply_all_until('the topology is applied', lambda: is_applied(w))
    for i, (line, condition) in enumerate(STEPS):
        before = state_of(w)
        for how in (ERROR, CUT_BEFORE):
            r, env = relay(w, nth(1, how), 'relay%d%s' % (i, how))
            p = w.run(*line.split(), ROCECAST_DB=env['ROCECAST_DB'])
            status, pattern = {
                ERROR: (2, r'castctl: [a-z ]*: the registry refused it: .*I/O error.*'),
                CUT_BEFORE: (3, r'castctl: .*lost.*may have been done or not.*')}[how]
            check(p.returncode == status and re.fullmatch(pattern, p.stderr.strip()),
                  '%s: %s: %d: %r', line, how, p.returncode, p.stderr)
            check_equal('%s: %s: what is left' % (line, how), state_of(w), before)
            check_equal('%s: %s: refused' % (line, how), r.n_refused, 1)
            r.close()
        w.castctl(line)
        w.apply_all_until('%s has come of %r' % (condition, line),
                          lambda c=condition: (c is None or c(w)) and is_applied(w))
    r, env = relay(w, nth(1, CUT_AFTER), 'twice')
    p = w.run('group', 'add', 'late', ROCECAST_DB='%s,%s' % ((env['ROCECAST_DB'],) * 2))
    check(p.returncode == 2 and re.fullmatch(
        r"castctl: group add: .*'late'.* \(the connection was lost before: perhaps it has been done "
        r'then\)', p.stderr.strip()), 'a command done unheard: %d: %r', p.returncode, p.stderr)


CASES = (castd_reads_first, castd_reads_again, castd_is_refused, castd_says_so, swedge_is_refused, srcagent_is_refused, agent_says_so,
         castctl_is_refused)
