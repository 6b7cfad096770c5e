# SPDX-License-Identifier: Apache-2.0
"""The lab that bad input is tried on, and the proof that nothing in it has changed.

A castlab lab without RDMA: a registry, castd, agents with their ports, in a network and mount
namespace of their own.  Group g is ready, 'empty' has no source, nodes 'idle', 'a9', 'o9' and
'k9' have no agent.  Two more registries have another schema.
"""
import hashlib
import json
import os
import socket
import stat
import subprocess

from leftovers import processes
from world import BIN, PATIENCE, ROOT, SCHEMA, Db, check, listens, wait_until

RUNDIR = os.environ.get('ROCECAST_RUNDIR', '')
DIR = os.path.join(RUNDIR, 'work')

TOPOLOGY = '''name: bad
topology:
  nodes:
    h0: {kind: host, address: "fd00:1::100"}
    a0: {kind: srcagent, id: 0x0200}
    n1: {kind: swedge, id: 0x0100}
    n2: {kind: swedge, id: 0x0101}
    r1: {kind: host, address: "fd00:1::1"}
    r2: {kind: host, address: "fd00:1::2"}
    r9: {kind: host, address: "fd00:1::9"}
  links:
    - endpoints: [h0, a0]
    - endpoints: [a0, n1]
    - endpoints: [n1, n2]
    - endpoints: [r1, n1]
    - endpoints: [r2, n1]
    - endpoints: [r9, n2]
'''
NODES = ('a0', 'n1', 'n2')

SET_UP = '''
node add idle --id 300 --role switch
node add a9 --id 301 --role agent
node add o9 --id 302 --role ovs
node add k9 --id 303 --role router
link add o9:k9 k9:o9
host add r8 --address fd00:1::8
group add empty
group add g --liveness 0
member add g r1 --qpn 17 --rkey 7 --va 0x1000 --len 4096
source set g --host h0 --qpn 18
group wait g
capture start n2 n1 %s/running.pcap
group add settled
''' % DIR


def path(file):
    return os.path.join(RUNDIR, 'lab/bad', file)


def work_file(name, data):
    """A file in the scratch folder DIR; data is text or bytes."""
    os.makedirs(DIR, exist_ok=True)
    file = os.path.join(DIR, name)
    with open(file, 'wb') as f:
        f.write(data if isinstance(data, bytes) else data.encode())
    return file


def hurt_journal(third):
    return work_file('../lab/hurt/journal', '. lab hurt\n. node n1 swedge\n%s\n' % third)


def output(*argv):
    p = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE, check=False)
    check(p.returncode == 0, '%s: exit status %d: %s', ' '.join(argv), p.returncode, p.stderr)
    return p.stdout


def control(node, command, *args):
    """What a daemon answers on its control socket: (answer or None, error or None)."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(PATIENCE)
        s.connect(path(node + '.ctl'))
        s.sendall(json.dumps({'method': command, 'params': args, 'id': 0}).encode())
        data = b''
        while True:
            part = s.recv(1 << 16)
            check(part, '%s: %s: the connection was closed', node, command)
            data += part
            try:
                reply = json.loads(data)
                return reply.get('result'), reply.get('error')
            except ValueError:
                continue


def at_rest():
    """castd and agents have done all, and the kernel has noticed all carriers."""
    db = Db(path('db.sock'))
    nodes, global_row = db.rows('Node'), db.row('Global')
    db.close()
    links = json.loads(output('ip', '-j', 'link'))
    for node in NODES:
        links += json.loads(output('ip', '-n', 'bad-' + node, '-j', 'link'))
    return (global_row['nb_cfg'] == global_row['next_cfg']
            and all(n['nb_cfg'] == n['cfg'] for n in nodes if n['name'] in NODES)
            and all(link['operstate'] == 'UP' for link in links if link['ifname'] != 'lo'))


class Lab:
    def __init__(self):
        os.environ['PATH'] = BIN + os.pathsep + os.environ['PATH']
        output('castlab', 'up', '--no-rdma', work_file('lab.yaml', TOPOLOGY))
        work_file('text', 'not hexadecimal')
        work_file('key.yaml', 'groups: {g: {polcy: prune}}')
        work_file('value.yaml', 'groups: {x: {}, g: {policy: x}}')
        work_file('hosts.yaml', 'hosts: {}')
        work_file('long', '00' * 20000)
        work_file('empty', '')
        work_file('old.json', '{"castbench": 1}')
        with open(os.path.join(ROOT, 'testbed/topologies/star.yaml'), encoding='utf-8') as f:
            work_file('star.yaml', f.read().replace('fd00:1:', 'fd00:5:'))
        os.makedirs(os.path.join(RUNDIR, 'lab/hurt'))
        hurt_journal('nonsense')
        # For a user that is not root: it can go there, but may not read this.
        os.chmod(RUNDIR, 0o755)
        os.chmod(work_file('secret.yaml', TOPOLOGY), 0o600)
        os.environ['ROCECAST_DB'] = 'unix:' + path('db.sock')
        for line in SET_UP.strip().splitlines():
            output('castctl', *line.split())
        self.registries = [start_registry('old', old_schema()),
                           start_registry('void', {'name': 'rocecast', 'version': '0.0.1',
                                                    'tables': {}})]
        db = Db(os.path.join(DIR, 'old.sock'))
        db.transact({'op': 'insert', 'table': 'Node',
                     'row': {'name': 'n1', 'id': 1, 'role': 'switch', 'cfg': 1}})
        db.close()
        wait_until('the lab is at rest', at_rest)

    def down(self):
        for p in self.registries:
            p.terminate()
            p.wait(PATIENCE)
        output('castlab', 'down', 'bad')


def old_schema():
    """Without a table and two columns."""
    with open(SCHEMA, encoding='utf-8') as f:
        old = json.load(f)
    del old['tables']['Link']
    del old['tables']['Node']['columns']['no_aggregation']
    del old['tables']['Tree_Node']['columns']['liveness']
    del old['tables']['Member']['columns']['lost']
    return old


def start_registry(name, its_schema):
    """One more, at the socket DIR/NAME.sock."""
    file, sock = (os.path.join(DIR, name + end) for end in ('.db', '.sock'))
    output('ovsdb-tool', 'create', file, work_file(name + '.ovsschema', json.dumps(its_schema)))
    p = subprocess.Popen(['ovsdb-server', file, '--remote=punix:' + sock, '--no-chdir', '-voff',
                          '--unixctl=%s/%s.unixctl' % (DIR, name)])
    wait_until('registry %s listens' % name, lambda: listens(sock))
    return p


def old_registry():
    """What only castd and castctl write to it."""
    db = Db(os.path.join(DIR, 'old.sock'))
    rows = db.rows('Node') + db.rows('Global') + db.rows('Host')
    db.close()
    return {'old %s' % row['_uuid'][1]:
            json.dumps({k: v for k, v in row.items() if k not in ('_version', 'state', 'control')})
            for row in rows}


#
# What must be the same before and after.
#

with open(SCHEMA, encoding='utf-8') as schema:
    TABLES = sorted(json.load(schema)['tables'])


def registry():
    """Every row of every table."""
    db = Db(path('db.sock'))
    results = db.transact(*({'op': 'select', 'table': t, 'where': []} for t in TABLES))
    db.close()
    return {'%s %s' % (table, row['_uuid'][1]): json.dumps(row, sort_keys=True)
            for table, result in zip(TABLES, results) for row in result['rows']}


def agents():
    """What the agents run: ports, routes, SIDs, groups with their state, captures.  Not counters:
    hosts and neighbours talk without being asked."""
    what = {}
    for node in NODES:
        for command in ('ports', 'routes', 'sids', 'groups', 'capture-list'):
            answer = json.loads(control(node, 'rocecast/' + command, '-j')[0])
            for entry in answer:
                if command == 'capture-list':
                    entry.pop('packets')
            what['%s %s' % (node, command)] = json.dumps(answer, sort_keys=True)
    return what


GROWING = ('.log', '.out', '.pcap', '.db')


def files():
    """Files, sockets and folders of castlab's, the daemons' and the test's folders."""
    what = {}
    for folder, _, names in os.walk(RUNDIR):
        what[folder] = 'folder'
        for name in names:
            file = os.path.join(folder, name)
            mode = os.lstat(file).st_mode
            what[file] = stat.filemode(mode)
            if stat.S_ISREG(mode) and not file.endswith(GROWING):
                with open(file, 'rb') as f:
                    what[file] += hashlib.sha1(f.read()).hexdigest()
    return what


def network():
    """Links, addresses, rules, routes and namespaces, here and in the lab's namespaces."""
    commands = [('-6', 'rule'), ('-6', 'route', 'show', 'table', 'all'), ('-br', 'addr'),
                ('netns',)]
    commands += [('-n', 'bad-' + node, '-br', 'link') for node in NODES]
    return {'ip ' + ' '.join(c): output('ip', *c) for c in commands}


def running():
    return {'process %d' % pid: argv for pid, argv in processes()}


ALL = (registry, agents, files, network, running)


def take(proofs):
    """The state as one dictionary of text."""
    return {k: v for proof in proofs for k, v in proof().items()}


def difference(before, after):
    """What has changed, as text; '' if nothing has."""
    lines = ['- %s: %s' % (k, v) for k, v in before.items() if after.get(k) != v]
    lines += ['+ %s: %s' % (k, v) for k, v in after.items() if before.get(k) != v]
    return '\n'.join(lines)
