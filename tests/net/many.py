# SPDX-License-Identifier: Apache-2.0
"""Many groups on the same nodes and hosts, with castcrowd's queue pairs, and who joins them when."""
import json
import os
import subprocess
import sys
import threading
import time

from netlab import ROOT

import harness
from harness import castctl, check, run, wait_until

sys.path.append(os.path.join(ROOT, 'tests/ctl'))

import world                                              # noqa: E402 pylint: disable=wrong-import-position

CASTCROWD = os.path.join(ROOT, 'build/tests/castcrowd')
REGION_LEN = 3000       # of each receiver: castcrowd's messages.
TICK = os.sysconf('SC_CLK_TCK')
TIMEOUT = 20            # of the queue pairs: 4.096 us * 2^20 is about four seconds.


def registry():
    return world.Db(os.environ['ROCECAST_DB'].removeprefix('unix:'))


class Process:
    """A daemon of the lab."""

    def __init__(self, lab, name):
        with open(os.path.join(harness.RUNDIR, 'lab', lab.name, name + '.pid'), encoding='ascii') as f:
            self.folder = '/proc/%d/' % int(f.read())

    def cpu(self):
        """Seconds of processor time."""
        with open(self.folder + 'stat', encoding='ascii') as f:
            fields = f.read().rsplit(')', 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def memory(self):
        """Resident, in KB."""
        with open(self.folder + 'status', encoding='ascii') as f:
            return next(int(line.split()[1]) for line in f if line.startswith('VmRSS'))


class Cpu:
    """Processor time of these daemons from now on."""

    def __init__(self, lab, names):
        self.processes = [Process(lab, name) for name in names]
        self.before = self.now()

    def now(self):
        return sum(p.cpu() for p in self.processes)

    def seconds(self):
        return self.now() - self.before

    def msec(self, n):
        return 1000 * self.seconds() / n


class Watcher(threading.Thread):
    """Knows groups, members and what nodes have been told, and when each row changed."""

    COLUMNS = {'Group': ['name', 'state'],
               'Member': ['group', 'host', 'qpn', 'state', 'status'],
               'Node': ['name', 'cfg', 'nb_cfg'],
               'Tree_Node': ['group', 'joined'],
               'Branch': ['name', 'join']}

    def __init__(self):
        super().__init__(daemon=True)
        self.db = registry()
        self.db.sock.settimeout(None)
        self.changed = threading.Condition()
        self.rows = {table: {} for table in self.COLUMNS}
        self.events = []        # (time, table, row) since clear().
        self.take(self.db.call('monitor', ['rocecast', None, {
            table: {'columns': columns} for table, columns in self.COLUMNS.items()}]))
        self.start()

    def take(self, updates):
        now = time.monotonic()
        with self.changed:
            for table, rows in updates.items():
                for uuid, change in rows.items():
                    if 'new' in change:
                        self.rows[table][uuid] = change['new']
                        self.events.append((now, table, change['new']))
                    else:
                        self.rows[table].pop(uuid, None)
            self.changed.notify_all()

    def run(self):
        while True:
            try:
                message = self.db.receive()
                if message.get('method') == 'echo':
                    self.db.answer(message)
                elif message.get('method') == 'update':
                    self.take(message['params'][1])
            except (OSError, world.Failure):
                return          # the lab is gone.

    def wait(self, what, condition):
        """Waits until condition(self.rows)."""
        with self.changed:
            check(self.changed.wait_for(lambda: condition(self.rows), harness.PATIENCE),
                  'after %d s still not: %s', harness.PATIENCE, what)

    def clear(self):
        with self.changed:
            self.events = []


class Endpoints:
    """A program with model endpoints: it reads commands, one a line, and answers each with a line."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        harness.running.append(self)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def tell(self, *words):
        self.process.stdin.write(' '.join(map(str, words)) + '\n')
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        check(answer and not answer.startswith('error'), '%s: %s: %s', words, answer or 'has ended')
        return answer


class Crowd(Endpoints):
    """Groups that each have all of the lab's receivers, and a source at h0 that writes now and then."""

    def __init__(self, receivers):
        super().__init__(CASTCROWD)
        self.receivers = receivers
        self.db = registry()
        self.db.sock.settimeout(harness.PATIENCE)
        self.watcher = Watcher()
        self.groups = {}        # row of each, by name.
        self.next_qpn = 0x100
        for host in self.db.rows('Host'):
            self.tell('host', host['name'], host['address'])

    def show(self, name):
        return json.loads(self.tell('show', name))

    def qpn(self):
        self.next_qpn += 1
        return self.next_qpn

    def queue_pair(self, name, host):
        """A new receiver's queue pair, which expects the epoch's start PSN; returns its QPN and rkey."""
        g, qpn = self.groups[name], self.qpn()
        rkey = qpn * 3
        self.tell('receiver', name, host, qpn, g['proxy'], g['designated_qpn'], g['start_psn'], g['mtu'], rkey)
        return qpn, rkey

    def add(self, names, pace):
        """Groups with all receivers; their sources write every 'pace' ms from when all are ready."""
        for name in names:
            castctl('--wait=none', 'group', 'add', name, '--timeout', str(TIMEOUT))
        wait_until('all groups have a Proxy Address',
                   lambda: all(g['proxy'] for g in self.db.rows('Group') if g['name'] in names))
        rows = {g['name']: g for g in self.db.rows('Group')}
        operations = []
        for name in names:
            g = self.groups[name] = rows[name]
            qpn = self.qpn()
            self.tell('source', name, 'h0', qpn, g['proxy'], g['designated_qpn'], g['start_psn'], g['mtu'],
                      (4096 << TIMEOUT) // 1000, g['designated_rkey'])
            where = {'group': g['_uuid'], 'epoch': g['epoch']}
            operations.append({'op': 'insert', 'table': 'Source', 'row': dict(where, host='h0', qpn=qpn)})
            for host in self.receivers:
                qpn, rkey = self.queue_pair(name, host)
                operations.append({'op': 'insert', 'table': 'Member', 'row': dict(
                    where, host=host, qpn=qpn, rkey=rkey, va='0x0', len=REGION_LEN, want='active')})
        self.db.transact(*operations, {'op': 'mutate', 'table': 'Global', 'where': [],
                                       'mutations': [['next_cfg', '+=', 1]]})
        self.watcher.wait('all groups are ready', lambda rows: all(
            any(g['name'] == name and g['state'] == 'ready' for g in rows['Group'].values()) for name in names))
        for name in names:
            self.tell('pace', name, pace)
        wait_until('all groups have started', lambda: all(
            g['started'] for g in self.db.rows('Group') if g['name'] in names))

    def member(self, name, host):
        """Condition of the watcher, as a function of a state."""
        uuid = ['uuid', self.groups[name]['_uuid'][1]]

        def has(state, qpn=None):
            return lambda rows: any(m['group'] == uuid and m['host'] == host and m['state'] == state
                                    and qpn in (None, m['qpn']) for m in rows['Member'].values())
        return has

    def leave(self, name, host):
        castctl('--wait=none', 'member', 'leave', name, host)
        self.watcher.wait('%s has left %s' % (host, name), self.member(name, host)('left'))
        self.tell('drop', name, host)

    def register(self, name, host):
        """The member has a new queue pair, with this QPN, and wants to join."""
        qpn, rkey = self.queue_pair(name, host)
        p = run('castctl', '--wait=none', 'member', 'add', name, host, '--qpn', str(qpn), '--rkey', str(rkey),
                '--va', '0', '--len', str(REGION_LEN))
        check(p.returncode == 0, 'castctl member add: %s', p.stderr)
        return qpn

    def join(self, name, host):
        """Seconds from the start of 'castctl member add' until the member is active, and until the registry had
        the request; what happened, as [(seconds, table, row)]."""
        self.watcher.clear()
        begin = time.monotonic()
        qpn = self.register(name, host)
        self.watcher.wait('%s has joined %s' % (host, name), self.member(name, host)('active', qpn))
        with self.watcher.changed:
            events = [(t - begin, table, row) for t, table, row in self.watcher.events]
        own = [(t, row['state']) for t, table, row in events if table == 'Member' and row['qpn'] == qpn]
        return next(t for t, state in own if state == 'active'), own[0][0], events

    def rest(self):
        """No source writes any more; all that was written is confirmed, and whole in each region."""
        for name in self.groups:
            self.tell('pace', name, 0)
        for name in self.groups:
            wait_until('%s is at rest' % name, lambda name=name: self.show(name)['posted'] ==
                       self.show(name)['completed'])
            shown = self.show(name)
            check(shown['status'] == 0, 'the source of %s: %s', name, shown)
            check({r['message'] for r in shown['receivers'].values()} == {shown['posted']},
                  'receivers of %s do not have the last message: %s', name, shown)

    def delete(self, names):
        for name in names:
            castctl('--wait=none', 'group', 'del', name)
            del self.groups[name]
        for name in names:
            self.tell('forget', name)
