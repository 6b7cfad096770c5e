# SPDX-License-Identifier: Apache-2.0
"""What forwarders do with programs of uSIDs: one node of each kind, packets in, packets out.

The node is 5f00:0:100::/48.  Its daemon is the real one; the registry's rows are written here, since
castd would need a whole fabric.  Its neighbours are namespaces with raw sockets: what leaves the node
is captured where it arrives, since a kernel's shift writes into packets that sockets on the node itself
see.  Each packet is followed by one that is merely routed: when that has arrived, so has the other.
"""
import ctypes
import ipaddress
import json
import os
import platform
import select
import signal
import socket
import subprocess
import time

import harness
from harness import Failure, check, check_equal, output, run, wait_until

# The node's own id; of its ports the name, peer's id, role.  s5 has two links.
NODE = 0x100
PORTS = {1: ('s5', 0x500, 'fabric'), 2: ('s6', 0x600, 'fabric'), 3: ('a1', 0xa1, 'agent'),
         4: ('s5b', 0x500, 'fabric')}
HERE, THERE = 'fd00:a::1', 'fd00:a::3'      # a host behind the own agent, and one far away
FAR = 0x300                                 # a node behind s5
# What the agent may use.
PROGRAMS = ['5f00:0:100:500::/64']

CLONE_NEWNET = 0x40000000
LATE = 0.1          # seconds in which a packet arrives that has left before the last one
COUNTED = 3         # seconds in which a forwarder's counters show a packet
OUTGOING = 4        # socket.PACKET_OUTGOING
STRAY = 'not_for_node'   # what neighbours send to others is counted as this
UDP, IPV6, ROUTING = 17, 41, 43

# A RoCE packet, SEND_ONLY, with its ICRC: behind the IPv6 header, and with it, to THERE.
ROCE = bytes.fromhex('c00012b7001c00000400ffff0000001180000001deadbeef5c769f59')
MARK = b'the packet behind'


def address(text):
    return ipaddress.IPv6Address(text).packed


def da(*usids):
    """A container in the block 5f00:0::/32."""
    return b'\x5f\0\0\0' + b''.join(u.to_bytes(2, 'big') for u in usids).ljust(12, b'\0')


def ip6(dst, header, payload, hop_limit=64, src=None, first=0x60212345):
    return (first.to_bytes(4, 'big') + len(payload).to_bytes(2, 'big') + bytes([header, hop_limit])
            + (src or da(0xa1, 0, 0, 0, 0, 1)) + dst + payload)


def inner(dst=THERE, hop_limit=63):
    return ip6(address(dst), UDP, ROCE, hop_limit, address(HERE), 0x60200000)


def srh(segments_left, segments, header, tlvs=b''):
    body = bytes([segments_left, len(segments) - 1, 0, 0, 0]) + b''.join(segments) + tlvs
    return bytes([header, (len(body) + 3) // 8 - 1, 4]) + body


def with_srh(dst, segments_left, segments, hop_limit=64, tlvs=b'', packet=None):
    return ip6(dst, ROUTING, srh(segments_left, segments, IPV6, tlvs) + (packet or inner()), hop_limit)


def plain(dst, hop_limit=64, packet=None):
    return ip6(dst, IPV6, packet or inner(), hop_limit)


# An MT TLV's shape does not matter to who shifts: 16 bytes that nobody here knows.
MT = bytes([0x7c, 14]) + bytes(range(14))
NEXT = [da(0x600, 0x400), da(0x500, FAR)]


def mt(dst, hop_limit=64):
    return with_srh(dst, 1, [address('fd00:ffff::7')], hop_limit, MT)


class Row:
    """A behaviour: a packet that comes in by a port, and what RFC 9800 and draft-filsfils want to leave:
    (port, packet), any of several; none is a packet that must be dropped."""

    def __init__(self, title, packet, *wanted, port=2, down=None):
        self.title = title
        self.packet = packet
        self.wanted = wanted
        self.port = port
        self.down = down


LOCATOR = '5f00:0:100::/48'
ROWS_UA = 'uA with node: `100:e102:300`'
ROWS = [
    Row('uN: `100:500:300`, first packet of draft-filsfils 7.2', plain(da(0x100, 0x500, FAR)),
        (1, plain(da(0x500, FAR), 63))),
    Row('uN: `100:600:400`, the second', plain(da(0x100, 0x600, 0x400)),
        (2, plain(da(0x600, 0x400), 63))),
    Row('uN: `100:500:300:e003`, End.DT6 at the end', plain(da(0x100, 0x500, FAR, 0xe003)),
        (1, plain(da(0x500, FAR, 0xe003), 63))),
    Row('uN: six uSIDs', plain(da(0x100, 0x500, 1, 2, 3, 4)), (1, plain(da(0x500, 1, 2, 3, 4), 63))),
    Row('uN: the next one is an agent', plain(da(0x100, 0xa1)), (3, plain(da(0xa1), 63))),
    # A hop limit for each shift, or one for the node: RFC 9800 says the first.
    Row('uN: `100:100:500:300`, own uSIDs in a row', plain(da(0x100, 0x100, 0x500, FAR)),
        (1, plain(da(0x500, FAR), 62)), (1, plain(da(0x500, FAR), 63))),
    Row('uN: a group\'s packet, with SRH and TLVs', mt(da(0x100, 0x500, FAR, 0xf007)),
        (1, mt(da(0x500, FAR, 0xf007), 63))),
    Row('uN: the rest of the program in an SRH', with_srh(da(0x100, 0x500, FAR), 1, NEXT),
        (1, with_srh(da(0x500, FAR), 1, NEXT, 63))),
    Row('uN: an SRH that is malformed is not looked at', with_srh(da(0x100, 0x500, FAR), 9, NEXT),
        (1, with_srh(da(0x500, FAR), 9, NEXT, 63))),
    Row('uN, argument 0: next segment of an SRH', with_srh(da(0x100), 2, [NEXT[0], NEXT[1], NEXT[0]]),
        (1, with_srh(NEXT[1], 1, [NEXT[0], NEXT[1], NEXT[0]], 63))),
    Row('uN, argument 0: PSP', with_srh(da(0x100), 1, NEXT), (2, plain(NEXT[0], 63))),
    Row('uN, argument 0: USD', plain(da(0x100), packet=inner(HERE)), (3, inner(HERE, 62))),
    Row('uN, argument 0: USD, host behind another node', plain(da(0x100))),
    Row('uN, argument 0: neither SRH nor IPv6 inside', ip6(da(0x100), UDP, ROCE)),
    Row('uN: next uSID is no neighbour', plain(da(0x100, FAR))),
    Row('uN: next uSID is nobody', plain(da(0x100, 0x777, FAR))),
    Row('uN: 0 between uSIDs', plain(da(0x100, 0, FAR))),
    Row('uN: next one is a function that is not there', plain(da(0x100, 0xe077))),
    Row('uN: hop limit 1', plain(da(0x100, 0x500, FAR), 1)),
    Row(ROWS_UA, plain(da(0x100, 0xe102, FAR)), (2, plain(da(FAR), 63))),
    Row('uA alone: `e102:e101`', plain(da(0xe102, 0xe101)), (2, plain(da(0xe101), 63))),
    Row('uA: each of two links to a node', plain(da(0x100, 0xe104, FAR)), (4, plain(da(FAR), 63))),
    Row('uA: a group\'s packet', mt(da(0xe102, FAR, 0xf007)), (2, mt(da(FAR, 0xf007), 63))),
    Row('uA, argument 0: next segment of an SRH', with_srh(da(0xe102), 2, [NEXT[0], NEXT[1], NEXT[0]]),
        (2, with_srh(NEXT[1], 1, [NEXT[0], NEXT[1], NEXT[0]], 63))),
    Row('uA, argument 0: USD', plain(da(0x100, 0xe102)), (2, inner(THERE, 62))),
    Row('End.X', with_srh(da(0x100, 0xe302), 2, [NEXT[0], NEXT[1], NEXT[0]]),
        (2, with_srh(NEXT[1], 1, [NEXT[0], NEXT[1], NEXT[0]], 63))),
    Row('End.DT6', plain(da(0x100, 0xe003), packet=inner(HERE)), (3, inner(HERE, 62))),
    Row('End.DT6, host behind another node', plain(da(0x100, 0xe003))),
    Row('End.DX6', plain(da(0x100, 0xe203)), (3, inner(THERE, 62))),
    Row('guard: an agent\'s program that is on its list', plain(da(0x100, 0x500, FAR)),
        (1, plain(da(0x500, FAR), 63)), port=3),
    Row('guard: one that is not', plain(da(0x100, 0x600, FAR)), port=3),
    # From here on it is.
    Row('uN: the link is down', plain(da(0x100, 0x600, FAR)), port=1, down=2),
    Row('uA: the link is down', plain(da(0xe102, FAR)), port=1, down=2),
]


def enter(path):
    """Has the thread go to a network namespace."""
    with open(path) as f:
        check(ctypes.CDLL(None, use_errno=True).setns(f.fileno(), CLONE_NEWNET) == 0, 'setns %s', path)


def socket_in(namespace):
    """A raw socket on a neighbour's device."""
    own = '/proc/self/ns/net'
    with open(own) as back:
        enter('/run/netns/' + namespace)
        try:
            s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x86dd))
            s.bind(('x', 0x86dd))
            s.setblocking(False)
        finally:
            ctypes.CDLL(None).setns(back.fileno(), CLONE_NEWNET)
    return s


def serves(db):
    """Does the OVSDB server answer?  Its socket is there before it listens."""
    return run('ovsdb-client', 'list-dbs', db).returncode == 0


def mac(node, port):
    return '02:5f:%02x:%02x:00:%02x' % (node >> 8, node & 255, port)


def node_address(node):
    return '5f00:0:%x::1' % node


def sids(role):
    """As castd gives them: (prefix, behaviour, bits of the block, port)."""
    found = [(LOCATOR, 'uN', 32, 0)]
    for port, (_, _, kind) in PORTS.items():
        if kind == 'fabric':
            found += [('5f00:0:100:e1%02x::/64' % port, 'uA', 32, port),
                      ('5f00:0:e1%02x::/48' % port, 'uA', 32, port)]
            found += [('5f00:0:100:e3%02x::/64' % port, 'End.X', 0, port)] * (role != 'ovs')
        elif role != 'ovs':
            found.append(('5f00:0:100:e2%02x::/64' % port, 'End.DX6', 0, port))
    return found + [('5f00:0:100:e003::/64', 'End.DT6', 0, 0)] * (role != 'ovs')


def routes():
    """(prefix, port): by the shortest way."""
    return [('5f00:0:500::/48', 1), ('5f00:0:600::/48', 2), ('5f00:0:a1::/48', 3),
            ('5f00:0:%x::/48' % FAR, 1), (HERE + '/128', 3), (THERE + '/128', 1)]


# A group whose first node this is: its packets come by a path, with the node's uSID in front or not.
TREE = {'group': 'g', 'generation': 1, 'epoch': 1, 'proxy': 'fd00:ffff::7', 'designated_qpn': 7, 'mtu': 1024,
        'source_address': HERE, 'source_qpn': 17, 'mode': 'replicate',
        'outer_source': '5f00:0:a1::1', 'replication_sid': '5f00:0:100:f007::',
        'outer_da': ['set', ['5f00:0:500:e001::', '5f00:0:600:e001::']]}


def rows_of(role):
    """OVSDB operations that make the node's row."""
    def insert(table, row, uuid=None):
        return {'op': 'insert', 'table': table, 'row': row, **({'uuid-name': uuid} if uuid else {})}

    refs = {'ports': [], 'routes': [], 'sids': [], 'trees': []}
    ops = []

    def child(column, table, row):
        name = '%s%d' % (table.lower(), len(refs[column]))
        ops.append(insert(table, row, name))
        refs[column].append(['named-uuid', name])

    for number, (name, peer, kind) in PORTS.items():
        child('ports', 'Port', {
            'name': name, 'number': number, 'kind': 'packet', 'role': kind, 'mac': mac(NODE, number),
            'peer': name, 'peer_address': node_address(peer), 'peer_mac': mac(peer, number),
            'programs': ['set', PROGRAMS if kind == 'agent' else []]})
    for prefix, port in routes():
        child('routes', 'Route', {'prefix': prefix, 'port': port,
                                  'next_hop': node_address(PORTS[port][1])})
    for prefix, behaviour, block_len, port in sids(role):
        child('sids', 'Sid', {'prefix': prefix, 'behaviour': behaviour, 'block_len': block_len,
                              'port': port})
    if role == 'ovs':
        child('trees', 'Tree_Node', TREE)
    node = {'name': 'n', 'id': NODE, 'role': role, 'cfg': 1}
    return ops + [insert('Node', dict(node, **{k: ['set', v] for k, v in refs.items()}))]


class Forwarder:
    """A node of a kind, between its neighbours, as a context."""

    role = None
    program = 'castfwd'

    def __init__(self):
        self.dir = os.path.join(harness.RUNDIR, 'usid')
        self.processes = []
        self.sockets = {}

    def file(self, name):
        return os.path.join(self.dir, name)

    def start(self, *argv, **env):
        with open(self.file('log'), 'a', encoding='utf-8') as log:
            self.processes.append(subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                   env=dict(os.environ, **env)))

    def __enter__(self):
        try:
            self.set_up()
        except BaseException:
            self.__exit__()
            raise
        return self

    def set_up(self):
        os.makedirs(self.dir)
        self.add_links()
        self.start_forwarder()
        output('ovsdb-tool', 'create', self.file('db'),
               os.path.join(harness.ROOT, 'ctl/registry/rocecast.ovsschema'))
        self.start('ovsdb-server', self.file('db'), '--remote=p' + self.db(), '--unixctl=' + self.file('db.ctl'))
        wait_until('the registry serves', lambda: serves(self.db()))
        self.transact(*rows_of(self.role))
        self.start_daemon()
        self.wait_applied(1)
        self.sockets = {number: socket_in('usid-' + name) for number, (name, _, _) in PORTS.items()}
        self.warm_up()

    def db(self):
        return 'unix:' + self.file('db.sock')

    def transact(self, *operations):
        results = json.loads(output('ovsdb-client', 'transact', self.db(),
                                    json.dumps(['rocecast', *operations])))
        check(not any('error' in r for r in results), 'the registry: %s', results)
        return results

    def start_daemon(self):
        self.start(self.program, '--node=n', '--db=' + self.db(), '--netns=usid-n',
                   '--pidfile=' + self.file('pid'), '--unixctl=' + self.file('ctl'),
                   ROCECAST_OVS_RUNDIR=self.file('ovs'))

    def wait_applied(self, generation):
        def applied():
            row, = self.transact({'op': 'select', 'table': 'Node', 'where': [],
                                  'columns': ['state', 'nb_cfg']})[0]['rows']
            check('refused' not in row['state'], 'the node: %s', row['state'])
            return row['nb_cfg'] == generation
        wait_until('the node has generation %d' % generation, applied)

    def add_links(self):
        output('ip', 'netns', 'add', 'usid-n')
        output('ip', '-n', 'usid-n', 'link', 'set', 'lo', 'up')
        for number, (name, peer, _) in PORTS.items():
            there = 'usid-' + name
            output('ip', 'netns', 'add', there)
            output('ip', 'link', 'add', name, 'netns', 'usid-n', 'address', mac(NODE, number), 'type',
                   'veth', 'peer', 'name', 'x', 'netns', there, 'address', mac(peer, number))
            output('ip', '-n', there, 'address', 'add', node_address(peer) + '/128', 'dev', 'x', 'nodad')
            output('ip', '-n', there, 'link', 'set', 'x', 'up')
            output('ip', '-n', there, '-6', 'route', 'add', '5f00::/16', 'dev', 'x')
            output('ip', '-n', 'usid-n', 'link', 'set', name, 'up')

    def start_forwarder(self):
        """What the daemon drives, if it does not forward itself."""

    def warm_up(self):
        """Until neighbours are resolved, and links known to be up."""
        for usid in (0x500, 0x600, 0xa1):
            end = time.monotonic() + harness.PATIENCE
            while not self.pass_through(2, plain(da(0x100, usid)), ROCE):
                check(time.monotonic() < end, 'nothing is forwarded to %x', usid)

    def __exit__(self, *_):
        for s in self.sockets.values():
            s.close()
        for p in reversed(self.processes):
            p.send_signal(signal.SIGTERM)
            p.wait()
        names = ['usid-n', *('usid-' + name for name, _, _ in PORTS.values())]
        for name in names:
            run('ip', 'netns', 'del', name)
        output('rm', '-r', self.dir)

    def send(self, port, packet):
        _, peer, _ = PORTS[port]
        self.sockets[port].send(bytes.fromhex((mac(NODE, port) + mac(peer, port)).replace(':', ''))
                                + b'\x86\xdd' + packet)

    def receive(self, seconds):
        """Packets that have left the node: (port, packet)."""
        ready, _, _ = select.select(list(self.sockets.values()), [], [], seconds)
        found = []
        for port, s in self.sockets.items():
            while s in ready:
                try:
                    frame, (_, _, kind, *_) = s.recvfrom(4096)
                except OSError:     # there is none, or the link is down
                    break
                if kind != OUTGOING:
                    found.append((port, frame[14:]))
        return found

    def pass_through(self, port, packet, content):
        """Sends a packet, and one that is merely routed behind it until that arrives; returns those that
        have left with this content.  The other's content is its number."""
        self.send(port, packet)
        self.number = getattr(self, 'number', 0) + 1
        mark = MARK + b' %d' % self.number
        left, over, end = [], None, time.monotonic() + harness.PATIENCE
        while over is None or time.monotonic() < over:
            if over is None:
                check(time.monotonic() < end, 'nothing is routed')
                self.send(port, ip6(address(HERE), UDP, b'\0\x09\0\x09' + (8 + len(mark)).to_bytes(2, 'big')
                                    + b'\0\0' + mark, src=address(THERE)))
            for where, p in self.receive(LATE):
                if p.endswith(mark):
                    over = over or time.monotonic() + LATE
                elif content in p:
                    left.append((where, p))
        return left

    def ask(self, what):
        return json.loads(output('ovs-appctl', '-t', self.file('ctl'), 'rocecast/' + what, '-j'))

    def drops(self):
        return self.ask('counters')['drops']

    def counted(self, before):
        """The drops that have grown."""
        end = time.monotonic() + COUNTED
        while True:
            grown = [reason for reason, n in self.drops().items()
                     if n > before.get(reason, 0) and reason != STRAY]
            if grown or time.monotonic() > end:
                return grown
            time.sleep(LATE)

    def observe(self, row):
        """What the page says of a row."""
        if row.down:
            output('ip', '-n', 'usid-' + PORTS[row.down][0], 'link', 'set', 'x', 'down')
        before = self.drops()
        left = self.pass_through(row.port, row.packet, ROCE)
        errors = [p for _, p in left if p[6] == 58]
        packets = [(port, p) for port, p in left if p[6] != 58]
        text = ''.join(' and ICMPv6 %d.%d' % (p[40], p[41]) for p in errors)
        if packets and (len(packets) > 1 or not row.wanted):
            return 'no: forwarded'
        if packets:
            return 'yes' if packets[0] in row.wanted else 'no: another packet'
        reasons = ', '.join('`%s`' % r for r in self.counted(before)) or 'not counted'
        return '%s: %s%s' % ('no' if row.wanted else 'dropped', reasons, text)


class Swedge(Forwarder):
    role = 'switch'
    program = 'swedge'
    column = 'swedge'


class Kernel(Forwarder):
    role = 'router'
    column = 'Linux ' + '.'.join(platform.release().split('.')[:2])


class Ovs(Forwarder):
    role = 'ovs'
    column = 'Open vSwitch 3.1'

    def start_forwarder(self):
        folder = self.file('ovs')
        os.mkdir(folder)
        db = os.path.join(folder, 'db.sock')
        output('ovsdb-tool', 'create', os.path.join(folder, 'conf.db'),
               '/usr/share/openvswitch/vswitch.ovsschema')
        self.start('ovsdb-server', os.path.join(folder, 'conf.db'), '--remote=punix:' + db,
                   '--unixctl=' + os.path.join(folder, 'db.ctl'))
        wait_until("Open vSwitch's database serves", lambda: serves('unix:' + db))
        output('ovs-vsctl', '--db=unix:' + db, '--no-wait', 'init')
        self.start('ip', 'netns', 'exec', 'usid-n', 'ovs-vswitchd', 'unix:' + db,
                   '--unixctl=' + os.path.join(folder, 'vswitchd.ctl'), OVS_RUNDIR=folder)


FORWARDERS = {'swedge': Swedge, 'kernel': Kernel, 'ovs': Ovs}


def observe(kind):
    """{row's title: cell} of one kind of forwarder."""
    with FORWARDERS[kind]() as node:
        cells = {row.title: node.observe(row) for row in ROWS}
        packets = {sid['prefix']: sid['packets'] for sid in node.ask('sids')}
        shown = sorted(prefix for prefix, behaviour, _, _ in sids(node.role)
                       if behaviour != 'uA' or cells[ROWS_UA] == 'yes')
        check_equal('SIDs of the node', sorted(packets), shown)
        check(packets[LOCATOR] > 0, 'uN has counted no packets')
    return cells


def kernel_routes():
    """What castfwd has told the kernel, in order."""
    text = output('ip', '-6', '-n', 'usid-n', 'route', 'show', 'table', 'all', 'proto', '95')
    return sorted(' '.join(line.split()) for line in text.splitlines())


def has_anchor():
    return 'rocecast-sids' in output('ip', '-br', '-n', 'usid-n', 'link')


def ovs_group(_):
    """Behind its own uSIDs too a group's SID makes Open vSwitch copy."""
    with Ovs() as node:
        copies = [(1, mt(da(0x500, 0xe001), 63)), (2, mt(da(0x600, 0xe001), 63))]
        for usids in ((0x100,), (0x100, 0x100), (0x100, 0x100, 0x100)):
            left = node.pass_through(1, mt(da(*usids, 0xf007)), ROCE)
            check_equal('copies of a packet to %d uSIDs' % len(usids), sorted(left), copies)


def kernel_undo(_):
    """The kernel keeps SIDs when castfwd is started again, gets them back when their device has gone, and
    loses them with the configuration; nothing is left."""
    with Kernel() as node:
        routes_before = kernel_routes()
        check(any('seg6local' in r for r in routes_before) and has_anchor(), 'no SIDs')
        node.processes[-1].kill()
        node.processes.pop().wait()
        output('ip', '-n', 'usid-n', '-6', 'route', 'add', 'unreachable', '5f00:0:9::/48', 'proto', '95')
        node.start_daemon()
        wait_until('an old route is gone', lambda: kernel_routes() == routes_before)
        output('ip', '-n', 'usid-n', 'link', 'del', 'rocecast-sids')
        wait_until('the SIDs are back', lambda: kernel_routes() == routes_before)
        node.warm_up()
        node.transact({'op': 'update', 'table': 'Node', 'where': [],
                       'row': {'cfg': 2, 'sids': ['set', []]}})
        node.wait_applied(2)
        check(not has_anchor(), 'the device is left')
        left = [r for r in kernel_routes() if 'seg6local' in r or ' fe80::' in r or '100::/64' in r]
        check_equal('routes that are left', left, [])


#
# The page.
#

PAGE = os.path.join(harness.ROOT, 'docs/usid-matrix.md')
COLUMNS = ['swedge', 'Linux 6.1', 'Linux 6.12', 'Linux 6.18', 'Open vSwitch 3.1']
BEGIN, END = '<!-- tests/net/usid-matrix -->\n', '<!-- end -->\n'


def read_page():
    """{column: {row: cell}}"""
    with open(PAGE, encoding='utf-8') as f:
        table = f.read().split(BEGIN)[1].split(END)[0].splitlines()
    names, _, *lines = [[c.strip() for c in line.strip('|').split('|')] for line in table if line]
    return {name: {line[0]: line[i] for line in lines} for i, name in enumerate(names) if i}


def write_page(columns):
    with open(PAGE, encoding='utf-8') as f:
        head, rest = f.read().split(BEGIN)
    lines = [['behaviour', *COLUMNS], ['---'] * (1 + len(COLUMNS))]
    lines += [[row.title, *(columns.get(c, {}).get(row.title, '?') for c in COLUMNS)] for row in ROWS]
    table = ''.join('| %s |\n' % ' | '.join(line) for line in lines)
    with open(PAGE, 'w', encoding='utf-8') as f:
        f.write(head + BEGIN + table + END + rest.split(END)[1])


class Logs:
    """For a suite: the log is gone with the node."""

    def log_sizes(self):
        return {}

    def logs(self, _):
        return ''


def compare(kind):
    """Does the page say what this kind of forwarder does here?"""
    column = FORWARDERS[kind].column
    page = read_page()
    if column not in page:
        print('not compared: the page has no column %s' % column)
        return
    got = observe(kind)
    wrong = ['%s: %s, and the page says %s' % (title, cell, page[column].get(title))
             for title, cell in got.items() if page[column].get(title) != cell]
    wrong += ['%s: only on the page' % title for title in page[column] if title not in got]
    if wrong:
        raise Failure('%s: %s' % (column, '\n'.join(wrong)))


def case(kind):
    def compare_kind(_):
        compare(kind)
    return compare_kind


def run_cases(suite, kinds=tuple(FORWARDERS)):
    for kind in kinds:
        suite.case('usid ' + kind, case(kind), Logs())
    if 'ovs' in kinds:
        suite.case('usid ovs group', ovs_group, Logs())
    if 'kernel' in kinds:
        suite.case('usid kernel undone', kernel_undo, Logs())
