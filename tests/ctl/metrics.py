# SPDX-License-Identifier: Apache-2.0
"""Metrics: the format, read by a parser of its own; what castd, the registry, agents and castbroker say; the page about them."""
import json
import os
import random
import re
import socket
import subprocess
import time

from brokers import Broker, TlsDb, update
from probes import labelled
from world import BIN, PATIENCE, ROOT, Db, FakeAgent, Failure, check, check_equal, listens, wait_until

PAGE = os.path.join(ROOT, 'docs/metrics.md')
TYPES = {'gauge': ('',), 'counter': ('_total',), 'info': ('_info',)}
NAME = r'[a-zA-Z_][a-zA-Z0-9_]*'
SAMPLE = re.compile(r'(%s)(?:\{(.*)\})? (-?[0-9]+(?:\.[0-9]+)?)' % NAME)
LABEL = re.compile(r'(%s)="((?:[^"\\\n]|\\.)*)"(?:,|$)' % NAME)


class Family:
    def __init__(self, name, kind):
        self.name, self.kind, self.unit, self.help = name, kind, '', None
        self.samples = {}


def unescaped(text):
    """The value of a label."""
    return re.sub(r'\\(["\\n])', lambda m: '\n' if m[1] == 'n' else m[1], text)


def labels_of(text):
    labels = {}
    end = 0
    while end < len(text):
        m = LABEL.match(text, end)
        check(m, 'no label at %r', text[end:])
        check(m[1] not in labels, 'label %s twice: %r', m[1], text)
        labels[m[1]] = unescaped(m[2])
        end = m.end()
    return labels


def read_sample(family, line):
    m = SAMPLE.fullmatch(line)
    check(m, 'no sample: %r', line)
    check(family and m[1] in [family.name + ending for ending in TYPES[family.kind]],
          'a sample of another family: %r', line)
    labels = frozenset(labels_of(m[2] or '').items())
    check(labels not in family.samples, 'twice: %r', line)
    value = float(m[3])
    check(value >= 0 or family.kind == 'gauge', 'less than nothing: %r', line)
    family.samples[labels] = value


def read_metrics(text):
    """Families by name, as OpenMetrics 1.0 has them; fails if the text breaks its rules."""
    families = {}
    family = None
    check(text.endswith('\n# EOF\n') or text == '# EOF\n', 'no end: %r', text[-80:])
    for line in text[:-len('# EOF\n')].splitlines():
        if not line.startswith('#'):
            read_sample(family, line)
            continue
        word, name, value = re.fullmatch(r'# (TYPE|UNIT|HELP) (%s) (.*)' % NAME, line).groups()
        if word == 'TYPE':
            check(name not in families, '%s: begins twice', name)
            check(value in TYPES, '%s: type %s', name, value)
            family = families[name] = Family(name, value)
        check(family.name == name and not family.samples, '%s: in another family: %r', family.name, line)
        if word == 'UNIT':
            check(name.endswith('_' + value), '%s: unit %s', name, value)
            family.unit = value
        if word == 'HELP':
            check('\\' not in value, '%s: %r', name, value)
            family.help = value
    for name, found in families.items():
        check(found.samples and found.help, '%s: no sample or no help', name)
    return families


def value(families, name, **labels):
    """Of the only sample that has these labels, among others."""
    found = [v for have, v in families[name].samples.items() if labels.items() <= dict(have).items()]
    check(len(found) == 1, '%s %r: %d samples', name, labels, len(found))
    return found[0]


def appctl(w, *command, target=None):
    return subprocess.run(['ovs-appctl', '-t', target or os.path.join(w.dir, 'castd.ctl'), *command], check=True,
                          capture_output=True, text=True).stdout


def metrics_of_castd(w):
    """What castd answers: of itself and of the registry; a member that is lost is seen."""
    w.ready_group(['r1', 'r2'])
    w.castctl('group set g --policy prune')
    w.apply_all_until('all is applied', lambda: all(n['nb_cfg'] == n['cfg'] for n in w.db.rows('Node')))
    w.expect_state('ready')
    m = read_metrics(appctl(w, 'rocecast/metrics'))
    check_equal('program', value(m, 'rocecast_build', program='castd'), 1)
    check_equal('castd', [value(m, 'rocecast_castd_' + k) for k in ('active', 'connected', 'connections', 'refusals')],
                [1, 1, 1, 0])
    counters = json.loads(appctl(w, 'rocecast/counters', '-j'))
    for key in ('computations', 'groups_computed', 'transactions', 'conflicts'):
        check_equal(key, value(m, 'rocecast_castd_' + key), counters[key])
    check(counters['transactions'] > 5, '%r', counters)
    row = w.db.row('Global')
    check_equal('requests', (value(m, 'rocecast_requests'), value(m, 'rocecast_requests_answered')),
                (row['next_cfg'], row['nb_cfg']))
    check_equal('hosts, links', (value(m, 'rocecast_hosts'), value(m, 'rocecast_links')),
                (len(w.db.rows('Host')), len(w.db.rows('Link'))))
    for node in w.db.rows('Node'):
        check_equal(node['name'], [value(m, 'rocecast_node_%s_generation' % k, node=node['name'], role=node['role'])
                                   for k in ('wanted', 'applied')], [node['cfg'], node['nb_cfg']])
    check_equal('group', [value(m, 'rocecast_group_state', group='g', state=s)
                          for s in ('pending', 'ready', 'slow', 'degraded', 'failed')], [0, 1, 0, 0, 0])
    check_equal('epoch', value(m, 'rocecast_group_epoch', group='g'), 1)
    w.set_started()
    w.db.update('Tree_Node', {'_uuid': w.tree('n1')['_uuid']},
                lost=['map', [[w.tree('n1')['branches']['r2']['id'], 'no progress at PSN 7']]])
    w.expect_state('degraded')
    m = read_metrics(appctl(w, 'rocecast/metrics'))
    check_equal('state', value(m, 'rocecast_group_state', group='g', state='degraded'), 1)
    check_equal('members', [value(m, 'rocecast_group_%s_members' % k, group='g') for k in ('active', 'wanted')], [1, 2])
    check_equal('by state', [value(m, 'rocecast_group_members', group='g', state=s) for s in ('active', 'lost')], [1, 1])
    check_equal('each', [value(m, 'rocecast_member_active', group='g', member=r) for r in ('r1', 'r2')], [1, 0])
    check_equal('faults', value(m, 'rocecast_faults', confirmed='true'), 0)


# What an agent answers, with something of everything.
PORT = {'rx_packets': 1, 'rx_bytes': 2, 'rx_errors': 3, 'tx_packets': 4, 'tx_bytes': 5, 'tx_errors': 6, 'tx_too_long': 7}
BRANCH = {'name': 'r1', 'kind': 'receiver', 'anchored': True, 'confirmed': 0xfffffe, 'lost': 'silent', 'slow': False,
          'acks': 1, 'dups': 2, 'naks': 3, 'rnrs': 4, 'fatals': 5, 'repeats': 6, 'useless': 7, 'filtered': 8, 'cnps': 9}
TREE = {'group': 'g', 'epoch': 2, 'started': True, 'anchored': True, 'sent_next': 3, 'confirmed': 1, 'waiting': 4,
        'lost': 1, 'packets': 8, 'planes_failed': 1, 'planes_moved': 2, 'branches': [BRANCH],
        'down': {'packets': 11, 'bytes': 12},
        'sent': {'acks': 1, 'dups': 2, 'naks': 3, 'rnrs': 4, 'fatals': 5, 'presumed': 6, 'cnps': 7}}
PATH = {'destination': 'fd00:1::9', 'name': 'n1,n2', 'path': 7, 'plane': 'A', 'state': 'bad', 'usable': True, 'up': False,
        'flows': 1, 'packets': 2, 'bytes': 3, 'moved': 9, 'moved_failed': 4, 'naks': 5, 'errors': 6}
PROBE = {'name': 'n1,n2', 'number': 7, 'kind': 'peer', 'plane': 'A', 'state': 'good', 'sent': 1, 'returned': 2,
         'lost': 3, 'late': 4, 'marked': 5, 'lost_there': 6, 'lost_back': 7, 'rtt_us': 412, 'rtt_mean_us': 1000412}
ANSWER = {
    'program': 'swedge', 'version': '1.2', 'node': 'other',
    'ports': [{'name': 'tr1', 'open': True, 'mtu': 1500}],
    'counters': {
        'ports': {'tr1': PORT}, 'drops': {'icrc': 2, 'hop_limit': 0}, 'no_port': 1, 'handover_full': 2, 'buffers_free': 3,
        'impaired': [{'port': 'tr1', 'direction': 'rx', 'frames': 1, 'lost': 2, 'corrupted': 3, 'duplicated': 4,
                      'late': 5, 'held': 6}],
        'queues': [{'port': 'tr1', 'frames': 1, 'depth': 2, 'depth_bytes': 3, 'congested': 4, 'marked': 5, 'full': 6,
                    'red': 7}],
        'congestion': {'fast_cnps': 1},
        'flows': [{'destination': 'fd00:1::9', 'dest_qp': 17, 'group': 'g', 'cnps': 1, 'fast_cnps': 2, 'cuts': 3,
                   'delayed': 4, 'waiting': 5, 'rate': 6}],
        'paths': [PATH]},
    'groups': [TREE], 'probes': [PROBE],
    'sids': [{'prefix': '5f00:0:100::/48', 'behaviour': 'uN', 'packets': 5}],
    'threads': [{'thread': 0, 'packets': 6}],
    'connections': [{'role': 'active', 'state': 'established'}, {'role': 'active', 'state': 'established'}]}


def fake(w, node, answer):
    control = os.path.join(w.dir, node + '.ctl')
    FakeAgent(control, {'rocecast/metrics': answer})
    w.db.update('Node', {'name': node}, control=control)


def all_metrics(w):
    """Everything that there is to say, somewhere."""
    labelled(w)
    w.castctl('group add g')
    w.castctl('member add g h3 --qpn 17')
    for node in w.db.rows('Node'):
        fake(w, node['name'], ANSWER)
    w.db.transact({'op': 'insert', 'table': 'Connection', 'row': {
        'node': 'leaf1', 'number': 1, 'role': 'passive', 'proxy': 'fd00:ffff::77', 'address': 'fd00:1::1',
        'state': 'requested'}})
    return read_metrics(w.castctl('metrics'))


def metrics_of_nodes(w):
    """castctl asks castd and agents, and joins what they say."""
    m = all_metrics(w)
    check_equal('programs', {dict(s)['program'] for s in m['rocecast_build'].samples}, {'castd', 'swedge'})
    check_equal('drops', value(m, 'rocecast_drops', node='leaf1', reason='icrc'), 2)
    check_equal('no drops', value(m, 'rocecast_drops', node='leaf2', reason='hop_limit'), 0)
    check_equal('bytes', value(m, 'rocecast_port_receive_bytes', node='a1', port='tr1'), 2)
    check_equal('unconfirmed', (value(m, 'rocecast_tree_unconfirmed_packets', node='leaf1', group='g', epoch='2'),
                                value(m, 'rocecast_branch_unconfirmed_packets', node='leaf1', branch='r1')), (2, 5))
    check_equal('lost', value(m, 'rocecast_branch_lost', node='leaf1', branch='r1'), 1)
    check_equal('round trip', (value(m, 'rocecast_probe_rtt_seconds', node='leaf1'),
                               value(m, 'rocecast_probe_rtt_mean_seconds', node='leaf1')), (0.000412, 1.000412))
    check_equal('states', [value(m, 'rocecast_path_state', node='leaf1', path='n1,n2', state=s) for s in ('bad', 'good')],
                [1, 0])
    check_equal('switches', value(m, 'rocecast_path_switches', node='leaf1', cause='failed'), 4)
    check_equal('connections', (value(m, 'rocecast_agent_connections', node='leaf1', role='active', state='established'),
                                value(m, 'rocecast_connections', node='leaf1', role='passive')), (2, 1))
    one = read_metrics(w.castctl('metrics leaf1'))
    check_equal('nodes', {dict(s).get('node') for f in one.values() for s in f.samples}, {'leaf1'})
    both = json.loads(w.castctl('-j metrics leaf1 leaf2'))
    check_equal('JSON', both, {'nodes': {'leaf1': ANSWER, 'leaf2': ANSWER}})
    w.refused('metrics leaf1 n9', 2, "no node named 'n9'")


def metrics_of_agents(w):
    """Real agents, of nodes without ports, say what castctl makes of their answers."""
    agents = {'n1': ('swedge', 'switch'), 'a0': ('srcagent', 'agent'), 'o1': ('castfwd', 'ovs')}
    for i, (node, (program, role)) in enumerate(agents.items()):
        w.castctl('node add %s --id %d --role %s' % (node, i + 7, role))
        w.start(os.path.join(BIN, program), '--node=' + node)
    for node in agents:
        wait_until(node + ' has a control socket', lambda node=node: w.db.row('Node', name=node)['control'])
    m = read_metrics(w.castctl('metrics'))
    for node, (program, role) in agents.items():
        check_equal('program', value(m, 'rocecast_build', node=node, program=program), 1)
        said = read_metrics(appctl(w, 'rocecast/metrics', target=w.db.row('Node', name=node)['control']))
        check_equal(node, {dict(s)['node'] for f in said.values() for s in f.samples}, {node})
        if role != 'ovs':
            check_equal('drops', value(m, 'rocecast_drops', node=node, reason='icrc'), 0)
            check(value(m, 'rocecast_buffers_free', node=node) > 0, 'no buffers')
            check_equal('names', set(said), {n for n, f in m.items() for s in f.samples if dict(s).get('node') == node
                                             and not n.startswith('rocecast_node_')})


def serve(w, listener):
    """castd, started anew, serves metrics."""
    control = os.path.join(w.dir, 'castd.ctl')
    w.stop(w.castd)
    w.castd = w.start(os.path.join(BIN, 'castd'), '--unixctl=' + control, '--metrics=' + listener)
    wait_until('castd starts', lambda: listens(control))
    wait_until('castd is active', lambda: w.status('castd') == 'active')


def connect(where):
    s = socket.socket(socket.AF_UNIX if isinstance(where, str) else socket.AF_INET)
    s.settimeout(PATIENCE)
    s.connect(where)
    return s


def receive(s):
    """An answer: status, headers, body.  None: the connection ended without one."""
    data = b''
    while True:
        more = s.recv(1 << 16)
        if not more:
            break
        data += more
    if not data:
        return None
    head, body = data.split(b'\r\n\r\n', 1)
    lines = head.decode().split('\r\n')
    headers = dict(line.split(': ', 1) for line in lines[1:])
    check_equal('length', int(headers['Content-Length']), len(body))
    check_equal('connection', headers['Connection'], 'close')
    return re.fullmatch(r'HTTP/1\.1 ([0-9]{3}) .+', lines[0])[1], headers, body.decode()


def ask(where, request):
    with connect(where) as s:
        s.sendall(request)
        return receive(s)


GET = b'GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: application/openmetrics-text\r\n\r\n'


def metrics_served(w):
    """By HTTP, at a socket of the file system and by TCP, to several clients at a time."""
    with socket.socket() as s:  # a port that is free.
        s.bind(('127.0.0.1', 0))
        tcp = s.getsockname()
    path = os.path.join(w.dir, 'metrics.sock')
    w.star()
    w.castctl('group add g')
    for listener, where in (('punix:' + path, path), ('ptcp:%d:127.0.0.1' % tcp[1], tcp)):
        serve(w, listener)
        status, headers, body = ask(where, GET)
        check_equal('status, type', (status, headers['Content-Type']),
                    ('200', 'application/openmetrics-text; version=1.0.0; charset=utf-8'))
        m = read_metrics(body)
        check_equal('families', set(m), set(read_metrics(appctl(w, 'rocecast/metrics'))))
        check_equal('group', value(m, 'rocecast_group_state', group='g', state='pending'), 1)
        check_equal('another form', ask(where, b'GET /metrics?a=b HTTP/1.0\n\n')[0], '200')
        with connect(where) as first, connect(where) as second:
            first.sendall(GET[:20])
            second.sendall(GET)
            check_equal('second', receive(second)[0], '200')
            first.sendall(GET[20:])
            check_equal('first', receive(first)[0], '200')
    check('metrics.sock' not in os.listdir(w.dir), 'the socket is left')


def metrics_of_broker(w):
    """What castbroker says, at its control socket and by HTTP: of clients, of what it has refused, of the registry."""
    w.ready_group(['r1'])
    path = w.file('broker-metrics.sock')
    b = Broker(w, '--metrics=punix:' + path, '--socket=r1:' + w.file('r1.sock'))

    def metrics():
        return read_metrics(ask(path, GET)[2])

    def refusals(m):
        return {dict(labels)['reason']: n for labels, n in m['rocecast_broker_refusals'].samples.items() if n}

    def by_role(m, what):
        return {dict(labels)['role']: n for labels, n in m['rocecast_broker_' + what].samples.items() if n}
    m = metrics()
    check_equal('program', value(m, 'rocecast_build', program='castbroker'), 1)
    check_equal('families', set(m), set(read_metrics(appctl(w, 'rocecast/metrics', target=b.control))))
    check_equal('nothing yet', (refusals(m), by_role(m, 'clients'), by_role(m, 'requests')), ({}, {}, {}))
    check_equal('roles', sorted(dict(s)['role'] for s in m['rocecast_broker_clients'].samples),
                ['agent', 'controller', 'host', 'operator'])
    check_equal('registry', [value(m, 'rocecast_broker_' + k) for k in ('connected', 'registry_connections')], [1, 1])

    agent, host = b.db('n1'), b.w.run('--db=unix:' + w.file('r1.sock'), 'group', 'show', 'g')
    check_equal('group show', host.returncode, 0)
    n1, a0 = w.db.row('Node', name='n1'), w.db.row('Node', name='a0')
    agent.transact(update('Node', n1, state='x' * 5000))
    agent.attempt(update('Node', a0, state='stolen'))
    agent.call('steal', ['rocecast_node_n1'])
    one = {'method': 'transact', 'id': 'same', 'params': ['rocecast', update('Node', n1, state='here')]}
    agent.sock.sendall(2 * json.dumps(one).encode())
    check_equal('answers', {(agent.receive()['id'], agent.receive()['id'])}, {('same', 'same')})
    try:
        TlsDb(b.port, b.pki, 'nobody').call('list_dbs', [])
        raise AssertionError('nobody gets an answer')
    except (Failure, OSError):
        pass
    m = metrics()
    check_equal('refusals', refusals(m), {'stranger': 1, 'rights': 1, 'owner': 1, 'id': 1})
    check_equal('clients', by_role(m, 'clients'), {'agent': 1})
    check_equal('connections', value(m, 'rocecast_broker_client_connections'), 3)
    check_equal('requests', by_role(m, 'requests')['agent'], 5)
    check(by_role(m, 'requests')['host'] > 2, 'requests %r', by_role(m, 'requests'))
    check_equal('transactions', by_role(m, 'transactions'), {'agent': 3})
    check(5000 < value(m, 'rocecast_broker_client_bytes') < 20000, '%r', m['rocecast_broker_client_bytes'].samples)
    # castctl was told the schema, at least.
    check(20000 < value(m, 'rocecast_broker_registry_bytes'), '%r', m['rocecast_broker_registry_bytes'].samples)

    w.db.close()
    w.stop(w.registry)
    wait_until('it knows', lambda: value(metrics(), 'rocecast_broker_connected') == 0)
    check_equal('its clients have gone', by_role(metrics(), 'clients'), {})
    w.registry = w.start_registry()
    w.db = Db(w.sock)
    wait_until('it is back', lambda: value(metrics(), 'rocecast_broker_connected') == 1)
    check_equal('connections', value(metrics(), 'rocecast_broker_registry_connections'), 2)


def metrics_http_wrong(w):
    """Other requests, and what is none, get an error, and castd goes on."""
    path = os.path.join(w.dir, 'metrics.sock')
    serve(w, 'punix:' + path)
    for request, want in (
            (b'GET / HTTP/1.1\r\n\r\n', '404'), (b'GET /metrics/ HTTP/1.1\r\n\r\n', '404'),
            (b'GET /metrics%00 HTTP/1.1\r\n\r\n', '404'), (b'POST / HTTP/1.1\r\n\r\n', '404'),
            (b'POST /metrics HTTP/1.1\r\nContent-Length: 5\r\n\r\n12345', '405'),
            (b'HEAD /metrics HTTP/1.1\r\n\r\n', '405'), (b'get /metrics HTTP/1.1\r\n\r\n', '405'),
            (b' /metrics HTTP/1.1\r\n\r\n', '405'), (b'\r\n\r\n', '400'), (b'nonsense\r\n\r\n', '400'),
            (b'GET /metrics\r\n\r\n', '400'), (b'GET  /metrics HTTP/1.1\r\n\r\n', '400'),
            (b'GET /metrics HTTP/2.0\r\n\r\n', '400'), (b'GET /metrics HTTP/1.1 x\r\n\r\n', '400'),
            (b'GET http://x/metrics HTTP/1.1\r\n\r\n', '400'), (b'GET /metr\0ics HTTP/1.1\r\n\r\n', '400'),
            (b'GET /metrics HTTP/1.1\r\nX: ' + 5000 * b'x', '431'), (10000 * b'x', '431')):
        got = ask(path, request)
        check_equal('%r' % request[:60], got[0], want)
        check(want != '405' or got[1]['Allow'] == 'GET', '%r', got)
        check('rocecast_' not in got[2], '%r: metrics', request[:60])
    with connect(path) as s:
        s.sendall(GET[:-1])
        s.shutdown(socket.SHUT_WR)
        check_equal('half a request', receive(s), None)
    chance = random.Random(1)
    for _ in range(200):
        noise = bytearray(chance.choice((GET, chance.randbytes(chance.randrange(200)) + b'\n\n')))
        for _ in range(chance.randrange(4)):
            noise[chance.randrange(len(noise))] = chance.randrange(256)
        with connect(path) as s:
            s.sendall(noise)
            s.shutdown(socket.SHUT_WR)
            receive(s)
    check_equal('afterwards', ask(path, GET)[0], '200')


def metrics_http_slow(w):
    """Who takes all places and says nothing loses them; castd does not wait for anybody."""
    path = os.path.join(w.dir, 'metrics.sock')
    serve(w, 'punix:' + path)
    slow = [connect(path) for _ in range(4)]
    for s in slow:
        s.sendall(b'G')
    begin = time.monotonic()
    check_equal('castd', w.status('castd'), 'active')
    w.castctl('group add g')
    check_equal('the fifth', ask(path, GET)[0], '200')
    check(time.monotonic() - begin < 15, 'the fifth has waited for %f s', time.monotonic() - begin)
    for s in slow:
        check_equal('a slow one', receive(s), None)
        s.close()
    check_equal('castd', w.status('castd'), 'active')


def metrics_partial(w):
    """Who does not answer is named; the others are there."""
    w.ready_group(['r1'])
    fake(w, 'n1', ANSWER)
    p = w.run('metrics')
    check_equal('exit status', p.returncode, 4)
    check_equal('named', sorted(p.stderr.splitlines()),
                ['castctl: node a0: no agent has connected yet', 'castctl: node n2: no agent has connected yet'])
    m = read_metrics(p.stdout)
    check_equal('n1', value(m, 'rocecast_thread_packets', node='n1'), 6)
    check_equal('the registry', value(m, 'rocecast_group_state', group='g', state='ready'), 1)
    os.unlink(os.path.join(w.dir, 'castd.ctl'))
    p = w.run('metrics')
    check(re.search('^castctl: castd: .*castd.ctl: ', p.stderr, re.M), '%r', p.stderr)
    check('rocecast_castd_active' not in read_metrics(p.stdout), '%s', p.stdout)


def metrics_forged(w):
    """An agent's answer may be anything: what is printed keeps to the format, and commands no terminal."""
    w.ready_group(['r1'])
    evil = 'a"} 1\n# EOF\n\\x\x1b[2J\u202e{'
    answer = dict(ANSWER, version=evil, ports=[{'name': evil, 'mtu': 'much', 'open': None}], probes={}, connections=[7],
                  counters=dict(ANSWER['counters'], drops={evil: 4, 'icrc': -1}, ports={evil: dict(PORT, rx_bytes=-1)},
                                paths=[7, PATH, PATH], flows=None),
                  groups=[dict(TREE, epoch=evil, branches=[BRANCH, BRANCH, []])])
    for node in ('a0', 'n1', 'n2'):
        fake(w, node, answer if node == 'n1' else ANSWER)
    w.db.transact({'op': 'insert', 'table': 'Group', 'row': {'name': evil, 'mode': 'replicate', 'mtu': 1024,
                                                             'timeout': 20, 'state': evil}})
    out = w.castctl('metrics')
    check('\x1b' not in out and '\u202e' not in out, '%s', ascii(out))
    m = read_metrics(out)
    want = evil.replace('\x1b', r'\x1b').replace('\u202e', r'\u202e')
    check_equal('drops', value(m, 'rocecast_drops', node='n1', reason=want), 4)
    check_equal('a group', value(m, 'rocecast_group_active_members', group=want), 0)
    check_equal('an empty port', value(m, 'rocecast_port_transmit_packets', node='n1', port=want), 4)
    for text in ('7', '[]', 'null', 'nonsense'):
        fake_text(w, text)


def fake_text(w, text):
    """Answers that are no object are as good as none."""
    control = os.path.join(w.dir, 'text%s.ctl' % abs(hash(text)))
    FakeAgent(control, {'rocecast/metrics': text})
    w.db.update('Node', {'name': 'n1'}, control=control)
    p = w.run('metrics', 'n1')
    check(p.returncode in (0, 4), 'exit status %d', p.returncode)
    check_equal('output', p.stdout, '# EOF\n')


def page_rows():
    """Rows of the page's tables, by name: (type, unit, labels, help)."""
    rows = {}
    with open(PAGE, encoding='utf-8') as f:
        for line in f:
            m = re.fullmatch(r'\| `(rocecast_\w+)` \| (\w+) \| (.*?) ?\| (.*?) ?\| (.*) \|\n', line)
            if m:
                check(m[1] not in rows, '%s is there twice', m[1])
                rows[m[1]] = m.groups()[1:]
    return rows


def metrics_page(w):
    """docs/metrics.md has each metric, as it is."""
    rows, wanted = page_rows(), {}
    broker = read_metrics(appctl(w, 'rocecast/metrics', target=Broker(w).control))
    for name, family in (broker | all_metrics(w)).items():
        labels = []
        for sample in family.samples:
            labels += [k for k in re.findall(NAME, ' '.join(dict(sample))) if k not in labels]
        wanted[name + TYPES[family.kind][0]] = (family.kind, family.unit, ', '.join('`%s`' % k for k in sorted(labels)),
                                                family.help)
    for name in sorted({*rows, *wanted}):
        if rows.get(name) != wanted.get(name):
            row = ''.join('| %s ' % cell if cell else '| ' for cell in ('`%s`' % name, *wanted.get(name, ['none'])))
            raise Failure('docs/metrics.md, %s: the row is to be\n%s|' % (name, row))


CASES = (metrics_of_castd, metrics_of_nodes, metrics_of_agents, metrics_of_broker, metrics_served, metrics_http_wrong, metrics_http_slow,
         metrics_partial, metrics_forged, metrics_page)
