# SPDX-License-Identifier: Apache-2.0
"""Many programs that connect to groups by RDMA-CM, and what they notice of restarts: nothing."""
import functools
import json
import os
import time

from netlab import ROOT

import harness
from harness import castctl, castctl_json, check_equal, output, wait_until
from many import Cpu, Endpoints, Watcher, registry

CASTCM = os.path.join(ROOT, 'build/tests/castcm')
SOURCE = 'h0'
QUIET = 2               # s; what a node says and is not answered it repeats each half second.
ONE_OF = 10             # of all members disconnects.
SHORT = 8               # groups, in 'make check'.
ROWS = ('Group', 'Source', 'Member', 'Listener', 'Connection', 'Tree_Node', 'Branch')


class ConnectionWatcher(Watcher):
    COLUMNS = {table: ['state'] if table == 'Connection' else [] for table in ROWS}
    COLUMNS['Connection'] = ['role', 'proxy', 'address', 'state']
    COLUMNS['Member'] = ['group', 'host', 'state']


class Programs(Endpoints):
    """At each receiver's host one that listens for each group, at the source's one that connects to each.
    A group has one number at all hosts, which is the port there."""

    def __init__(self, receivers):
        super().__init__(CASTCM)
        self.receivers = receivers
        self.db = registry()
        self.db.sock.settimeout(harness.PATIENCE)
        self.watcher = ConnectionWatcher()
        self.addresses = {host['name']: host['address'] for host in self.db.rows('Host')}
        self.groups = {}        # row of each, by number.
        self.times = {}         # that a program was connected, by (number, host).
        self.next_qpn = 0x100
        for name, address in self.addresses.items():
            self.tell('host', name, address)

    def show(self):
        return json.loads(self.tell('show'))

    def heard(self):
        """Packets so far, by host."""
        return {host: (shown['heard'], shown['others']) for host, shown in self.show().items()}

    def qpn(self):
        self.next_qpn += 1
        return self.next_qpn

    def add_groups(self, n):
        """Whose nodes ask for programs that are not there yet.  Silence is nothing here: there are no queue
        pairs that would answer."""
        names = {'g%03d' % i: i for i in range(1, n + 1)}
        for name, number in names.items():
            castctl('--wait=none', 'group', 'add', name, '--connect', '--liveness', '0')
            for host in self.receivers:
                castctl('--wait=none', 'member', 'add', name, host, '--listen', str(number))
        self.wait_connections('all are refused', {'refused': n * len(self.receivers)})
        self.groups = {names[g['name']]: g for g in self.db.rows('Group')}

    def wait_connections(self, what, counts):
        """Until there are so many connections of each state, and no other."""
        def has(rows):
            states = [row['state'] for row in rows['Connection'].values()]
            return {state: states.count(state) for state in states if isinstance(state, str)} == counts \
                and len(states) == sum(counts.values())
        self.watcher.wait(what, has)

    def listen(self, members):
        """... now, with new queue pairs."""
        for number, host in members:
            qpn = self.qpn()
            self.tell('listen', host, number, qpn, hex(qpn << 20), qpn * 3, 4096)
            self.times[number, host] = self.times.get((number, host), 0) + 1

    def all_members(self):
        return [(number, host) for number in self.groups for host in self.receivers]

    def connect_sources(self):
        for number, g in self.groups.items():
            self.tell('connect', SOURCE, number, self.qpn(), g['proxy'], g['connect_port'])
            self.times[number, SOURCE] = 1

    def wait_connected(self, n):
        self.wait_connections('%d are established' % n, {'established': n})

    def wait_active(self, n):
        self.watcher.wait('%d members are active' % n, lambda rows:
                          [m['state'] for m in rows['Member'].values()] == ['active'] * n)

    def check(self, *, connected):
        """What programs have heard: each, so many times that it is connected, and as often that it is not any
        more, or once less."""
        shown = self.show()
        for (number, host), times in self.times.items():
            state = 'connected' if connected else 'disconnected' if host == SOURCE else 'listening'
            check_equal('%s %d' % (host, number), shown[host]['programs'][str(number)], {
                'state': state, 'connected': times, 'disconnected': times - connected})

    def rows(self):
        """Connections, members and sources; their order says nothing."""
        return {table: sorted(json.dumps({k: v for k, v in row.items() if k != '_version'}, sort_keys=True)
                              for row in self.db.rows(table)) for table in ('Connection', 'Member', 'Source')}


def states(lab, node):
    """Of the node's connections that have a row."""
    listed = json.loads(lab.appctl(node, 'rocecast/connections', '-j'))
    return [c['state'] for c in listed if c['configured']]


class Measured:
    """Seconds and processor time of a block; 'report' gets a line about it."""

    def __init__(self, lab, report, what):
        self.report, self.what = report, what
        nodes = [node['name'] for node in castctl_json('node', 'list')]
        self.cpu = {name: Cpu(lab, daemons) for name, daemons in (
            ('castd', ['castd']), ('ovsdb-server', ['ovsdb-server']), ('agents', nodes))}

    def __enter__(self):
        self.begin = time.monotonic()
        return self

    def __exit__(self, kind, value, tb):
        self.seconds = time.monotonic() - self.begin
        if not kind:
            self.report('%-44s %5.1f s; CPU s: %s; castd has %d KB' % (
                self.what, self.seconds,
                ', '.join('%s %.2f' % (name, cpu.seconds()) for name, cpu in self.cpu.items()),
                self.cpu['castd'].processes[0].memory()))


def restart(lab, programs, daemon, measured):
    """Killed, and started again: nobody hears anything, and all stays as it is."""
    before, heard = programs.rows(), programs.heard()
    n_members, n_groups = len(programs.all_members()), len(programs.groups)
    output('castlab', 'restart', daemon, '--kill', '-l', lab.name)
    # castd does what it is asked.
    castctl('group', 'set', 'g001', '--liveness', '0')
    for node, n in (('n1', n_members), ('sa', n_groups)):
        wait_until('%s has its connections' % node, lambda node=node, n=n: len(states(lab, node)) == n)
    with measured('quiet after a restart of %s' % daemon):
        time.sleep(QUIET)
    check_equal('packets that programs have heard', programs.heard(), heard)
    programs.check(connected=True)
    check_equal('rows', programs.rows(), before)
    check_equal('states at nodes', (set(states(lab, 'n1')), set(states(lab, 'sa'))), ({'established'},) * 2)


def some_disconnect(programs, measured):
    """Their members go, and come again when they listen again; to the others that is nothing."""
    def others():
        """Established connections and active members that stay."""
        gone = {(programs.groups[number]['proxy'], programs.addresses[host]) for number, host in some}
        uuids = {(programs.groups[number]['_uuid'][1], host) for number, host in some}
        rows = programs.db.rows
        return (sorted((c['node'], c['number'], c['state'], c['peer_qpn']) for c in rows('Connection')
                       if (c['proxy'], c['address']) not in gone),
                sorted((m['group'], m['host'], m['state'], m['qpn'], m['branch']) for m in rows('Member')
                       if (m['group'][1], m['host']) not in uuids))
    n, n_members = len(programs.times), len(programs.all_members())
    some = programs.all_members()[::ONE_OF]
    before = others()
    with measured('%d programs disconnect' % len(some)):
        for number, host in some:
            programs.tell('disconnect', host, number)
        programs.wait_connections('%d are refused' % len(some),
                                  {'established': n - len(some), 'refused': len(some)})
        programs.wait_active(n_members - len(some))
    check_equal('the others', others(), before)
    with measured('they listen again'):
        programs.listen(some)
        programs.wait_connected(n)
        programs.wait_active(n_members)
    check_equal('the others', others(), before)
    programs.check(connected=True)


def life(lab, n_groups, report):
    """All that happens to programs of so many groups; 'report' gets a line about each step.  Returns how many
    seconds it took until all were connected."""
    measured = functools.partial(Measured, lab, report)
    receivers = sorted(h['name'] for h in castctl_json('host', 'list') if h['name'] != SOURCE)
    programs = Programs(receivers)
    n_members = n_groups * len(receivers)
    with measured('%d groups, %d members: registered' % (n_groups, n_members)):
        programs.add_groups(n_groups)
    with measured('nobody listens'):
        time.sleep(QUIET)
    with measured('%d programs listen, all connected' % n_members) as listening:
        programs.listen(programs.all_members())
        programs.wait_connected(n_members)
    with measured('%d sources connect, all connected' % n_groups) as connecting:
        programs.connect_sources()
        programs.wait_connected(n_members + n_groups)
    programs.wait_active(n_members)
    programs.check(connected=True)
    for daemon in ('castd', 'n1', 'sa'):
        restart(lab, programs, daemon, measured)
    some_disconnect(programs, measured)
    with measured('all groups are deleted'):
        for g in programs.groups.values():
            castctl('--wait=none', 'group', 'del', g['name'])
        programs.watcher.wait('no row is left', lambda rows: not any(rows[table] for table in ROWS))
    programs.check(connected=False)
    programs.kill()
    return listening.seconds + connecting.seconds


def many_connect(lab):
    life(lab, SHORT, report=lambda line: None)


CASES = [many_connect]
