#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""End-to-end cases in which something dies every few seconds while a source writes on and on: Figure 1
with a registry of three servers, a second castd, and real soft-RoCE; inside the VM (see tests/e2e/run).

usage: [SEED=n] [MINUTES=m] chaos-suite.py        LONG=1: three seeds, 10 minutes each

What dies when follows from the seed.  A round has a group of five members and four steps.  One is kill -9 of a member;
of six others that follow each other each is of another kind, in any order, with victims and times by chance: kill -9 of
an edge, a transit node, the source agent, the active castd and the registry's leader, and a link that is cut.  What was
killed is started a second or two later, as systemd would.  Each step says what it does; it is over when all is as it
was before and all members have confirmed more than that.

castbench ends and starts the members, and compares each one's memory, from its first message to its last; the
regions are compared here, too.  Nobody may be lost whom nobody has killed.  After each round what castctl shows is
compared with what the agents' control sockets say, and with a group all of its rows must go.  In
the end nothing may be left of the lab: processes, namespaces, devices, files.
"""
import json
import os
import random
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
import harness
from harness import (BIN, MTU, PSN_MASK, ROOT, RUNDIR, Lab, Suite, castctl, castctl_json, check,
                     check_equal, network_snapshot, output, run, work_file)
from live import Live

sys.path.insert(1, os.path.join(ROOT, 'tests/lab'))
from leftovers import processes  # noqa: E402
from trees import FIG1  # noqa: E402

SEED = int(os.environ.get('SEED') or 1)
MINUTES = float(os.environ.get('MINUTES') or 1)
LONG_SEEDS, LONG_MINUTES = (1, 2, 3), 10

STEPS = 4            # of a round, one of them a member's.
EVERY = 5            # seconds from one step to the next, or more if a step takes longer.
DEAD = 1, 2          # seconds, at least and at most.
LONGEST = 20         # seconds of data for a step.
KINDS = 'edge', 'transit', 'srcagent', 'castd', 'leader', 'link'
VICTIMS = {'edge': ('n1', 'n2', 'n3'), 'transit': ('n4', 'n5', 'n6'), 'srcagent': ('sa',),
           'member': FIG1.receivers, 'link': (('sa', 'n6'), ('n6', 'n4'), ('n6', 'n5'), ('n4', 'n1'),
                                              ('n4', 'n2'), ('n5', 'n3'))}
# A daemon that is dead for 2 s, and its start, are to cost no queue pair and no member.
QP_TIMEOUT, LIVENESS = 18, 60000
RATE = 5             # blocks of 16 KiB a second: the processor has something else to do, too.
PROGRESS = 16        # packets that all members have confirmed.


# A server that has no processor for that long has not died (cluster/change-election-timer).
ELECTION_MS = 2000, 4000


def wait_until(what, condition):
    """Each look is a program that runs, which takes the processor from what it looks at."""
    return harness.wait_until(what, condition, every=0.5)


class Standby:
    """A castd beside the lab's own.  One of the two is active."""

    def __init__(self, lab):
        self.lab = lab
        self.control = work_file('castd2.ctl')
        self.process = None
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            ['castd', '--db=' + os.environ['ROCECAST_DB'], '-vconsole:off', '--unixctl=' + self.control,
             '--log-file=' + os.path.join(RUNDIR, 'lab', self.lab.name, 'castd2.log')],
            stdin=subprocess.DEVNULL)
        wait_until('the second castd answers', lambda: status(self.control))

    def kill(self):
        self.process.kill()
        self.process.wait()


def ask(control, command, *argv):
    """What a daemon says, without a program that asks; None if it does not answer."""
    request = json.dumps({'id': 0, 'method': command, 'params': argv}).encode()
    try:
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(harness.PATIENCE)
            s.connect(control)
            s.sendall(request)
            answer = b''
            while True:
                answer += s.recv(1 << 16) or b'?'
                try:
                    return json.loads(answer)['result']
                except ValueError:
                    if answer.endswith(b'?'):
                        return None
    except OSError:
        return None


def status(control):
    """What a daemon says of itself."""
    return (ask(control, 'rocecast/status') or '').strip()


class Castds:
    """The lab's castd, and another one that takes over when it dies, and the other way round."""

    def __init__(self, lab):
        self.lab = lab
        self.own = os.path.join(RUNDIR, 'lab', lab.name, 'castd.ctl')
        self.second = Standby(lab)

    def active(self):
        """Whose control socket that is."""
        return next((c for c in (self.own, self.second.control) if status(c) == 'active'), None)

    def die(self):
        """Kills the active one; returns what starts it again."""
        victim = wait_until('a castd is active', self.active)
        if victim == self.own:
            output('castlab', 'stop', 'castd', '--kill', '-l', self.lab.name)
            return lambda: output('castlab', 'start', 'castd', '-l', self.lab.name)
        self.second.kill()
        return self.second.start


def registry():
    """castctl registry status: (exit status, what it shows)."""
    p = run('castctl', '-j', 'registry', 'status')
    check(p.returncode in (0, 3, 4), 'castctl registry status: %d: %s', p.returncode, p.stderr)
    return p.returncode, json.loads(p.stdout)


def be_patient(lab):
    """The registry's servers wait for longer before they elect another leader."""
    def raft(server, *command):
        control = os.path.join(RUNDIR, 'lab', lab.name, server.replace('ovsdb', 'ovsdb-server') + '.ctl')
        return output('ovs-appctl', '-t', control, *command)
    for ms in ELECTION_MS:     # at most twice as much at once
        leader = server_of(wait_until('there is a leader', lambda: registry()[1]['leader']))
        raft(leader, 'cluster/change-election-timer', 'rocecast', str(ms))
        wait_until('the election timer is %d ms' % ms, lambda s=leader, m=ms: 'Election timer: %d\n' % m in raft(
            s, 'cluster/status', 'rocecast'))


def server_of(remote):
    """castlab's name: db.sock, db-2.sock, ... are ovsdb, ovsdb-2, ..."""
    return os.path.basename(remote)[:-5].replace('db', 'ovsdb')


def answered():
    """castd has done what it was asked to now."""
    castctl('group', 'add', 'asked')
    castctl('group', 'del', 'asked')


class Round:
    """A group that is written to, and what becomes of its lab meanwhile."""

    def __init__(self, lab, castds, rng, kinds, name):
        self.lab, self.castds, self.rng, self.group, self.kinds = lab, castds, rng, name, kinds
        self.root = os.path.join(RUNDIR, 'lab', lab.name, FIG1.root + '.ctl')
        begin = time.monotonic()
        self.settled()
        each = min(EVERY + 3 * (time.monotonic() - begin), LONGEST)   # for a step, on this machine.
        victim = rng.choice(VICTIMS['member'])
        at = EVERY * (1 + kinds.index('member'))
        self.events = ['%.1f:kill:%s' % (at, victim), '%.1f:start:%s' % (at + rng.uniform(*DEAD), victim)]
        self.live = Live(lab, name, 'write-imm', self.events, int(each * len(kinds)), '--rate', str(RATE),
                         block=4 * MTU, liveness=LIVENESS, qp_timeout=QP_TIMEOUT)
        self.n_done = 0

    def is_over(self):
        return self.live.bench.process.poll() is not None

    def told(self):
        """The PSN before which all members have all, once data flow."""
        groups = json.loads(ask(self.root, 'rocecast/groups', '-j') or '[]')
        return next((g['told'] for g in groups if g['group'] == self.group and g['started']), None)

    def wait_progress(self):
        """False: castbench came to its end before."""
        start = wait_until('the group is at the root', lambda: self.is_over() or self.told())

        def more():
            told = self.told()
            return self.is_over() or (told is not None and PROGRESS <= told - start & PSN_MASK < 1 << 23)
        wait_until('all members of %s have confirmed more than %s' % (self.group, start), more)
        return not self.is_over()

    # Steps.  Each begins a fault, says what must be true meanwhile, and returns what ends it.

    def forwarder(self, name):
        output('castlab', 'stop', name, '--kill', '-l', self.lab.name)
        p = run('castctl', 'stats', name)
        check(p.returncode == 4 and name + ' (not reachable)' in p.stdout, 'castctl stats of a dead %s: %d: %s',
              name, p.returncode, p.stdout)
        return lambda: output('castlab', 'start', name, '-l', self.lab.name)

    edge = transit = srcagent = forwarder

    def castd(self, _):
        start = self.castds.die()
        wait_until('the other castd is active', self.castds.active)
        answered()
        return start

    def leader(self, _):
        leader = wait_until('the registry has a leader', lambda: registry()[1]['leader'])
        output('castlab', 'stop', server_of(leader), '--kill', '-l', self.lab.name)

        def others_lead():
            code, shown = registry()
            gone = [s['remote'] for s in shown['servers'] if s['role'] is None]
            check_equal('exit status, servers that do not answer', (code, gone), (4, [leader]))
            return shown['leader']
        wait_until('another server leads', others_lead)
        answered()

        def start():
            output('castlab', 'start', server_of(leader), '-l', self.lab.name)
            self.settled()
        return start

    def link(self, ends):
        ports = [(node, self.lab.port(node, peer)) for node, peer in (ends, ends[::-1])]

        def turn(word):
            for node, port in ports:
                output('castlab', 'exec', '-l', self.lab.name, node, '--', 'ip', 'link', 'set', port, word)
        turn('down')
        return lambda: turn('up')

    def member(self, _):
        """castbench does it."""
        return lambda: None

    def settled(self):
        """All daemons do what is wanted."""
        def registry_is_whole():
            code, shown = registry()
            return code == 0 and len({s['index'] for s in shown['servers']}) == 1
        wait_until('all servers of the registry are there, and equally far', registry_is_whole)
        wait_until('one castd is active', self.castds.active)
        castctl('--wait=agents', '--timeout=120', 'group', 'add', 'asked')
        castctl('--wait=agents', '--timeout=120', 'group', 'del', 'asked')

    def step(self, kind):
        victim = self.rng.choice(VICTIMS.get(kind, (kind,)))
        dead = self.rng.uniform(*DEAD)
        said = self.events[0] if kind == 'member' else victim if isinstance(victim, str) else '%s-%s' % victim
        begin = time.monotonic()
        end = getattr(self, kind)(victim)
        time.sleep(max(0, begin + dead - time.monotonic()))
        end()
        up = time.monotonic() - begin
        goes_on = self.wait_progress()
        print('      %s: %-8s %s: back after %.1f s, all as before after %.1f s%s'
              % (self.group, kind, said, up, time.monotonic() - begin, '' if goes_on else ', at the end of the data'),
              flush=True)
        self.n_done += 1

    def run(self):
        wait_until('data flow', lambda: self.is_over() or self.told())
        begin = time.monotonic()
        for i, kind in enumerate(self.kinds):
            time.sleep(max(0, begin + EVERY * (i + 1) - time.monotonic()))
            if self.is_over():
                print('      %s: the data were over before %s' % (self.group, ', '.join(self.kinds[i:])))
                break
            self.step(kind)
        result = self.live.done()
        check(self.n_done, 'no step was over before the data were')
        self.settled()
        self.check_agreement()
        castctl('--wait=agents', 'group', 'del', self.group)
        wait_until('no row is left of %s' % self.group, lambda: not any(rows_of_groups(self.lab).values()))
        for node in castctl_json('node', 'list'):
            check_equal('groups at ' + node['name'], json.loads(self.lab.appctl(node['name'], 'rocecast/groups', '-j')),
                        [])
        return result['count']

    def check_agreement(self):
        """What castctl shows is what agents say: who is in the tree, and that all have confirmed all."""
        last = {}

        def same():
            last['found'] = self.differences()
            return not last['found']
        try:
            wait_until('castctl and agents say the same', same)
        except harness.Failure as e:
            raise harness.Failure('%s: %r' % (e, last['found'])) from None

    def differences(self):
        shown, tree = castctl_json('group', 'show', self.group), castctl_json('tree', 'show', self.group)
        planned = {n['node']: sorted(b['name'] for b in n['branches']) for n in tree['nodes']}
        found, progress = {}, set()
        for node in castctl_json('node', 'list'):
            state = self.lab.group(node['name'], self.group)
            applied = self.lab.appctl(node['name'], 'rocecast/status').strip()
            if applied != 'generation %d is applied' % node['wanted'] or node['applied'] != node['wanted']:
                found['generation of ' + node['name']] = node['wanted'], node['applied'], applied
            branches = sorted(b['name'] for b in state['branches']) if state else None
            if branches != planned.get(node['name']):
                found['branches of ' + node['name']] = planned.get(node['name']), branches
            if state and state['epoch'] != shown['epoch']:
                found['epoch of ' + node['name']] = shown['epoch'], state['epoch']
            if branches:
                progress |= {state['sent_next'], *(b['confirmed'] for b in state['branches'])}
        if len(progress) != 1:
            found['confirmed'] = sorted(progress)
        members = sorted(m['host'] for m in shown['members'] if m['state'] in ('active', 'slow'))
        served = sorted(b for branches in planned.values() for b in branches if b in FIG1.receivers)
        if members != served:
            found['members'] = members, served
        return found


def rows_of_groups(lab):
    """Rows that are there because of groups, as each server of the registry has them: {(server, table): n}."""
    tables = 'Group', 'Source', 'Member', 'Listener', 'Connection', 'Tree_Node', 'Branch'
    operations = [{'op': 'select', 'table': t, 'where': [], 'columns': ['_uuid']} for t in tables]
    found = {}
    for remote in os.environ['ROCECAST_DB'].split(','):
        p = run('ovsdb-client', '--no-leader-only', 'transact', remote, json.dumps(['rocecast', *operations]))
        check(p.returncode == 0, 'ovsdb-client: %s', p.stderr)
        for table, answer in zip(tables, json.loads(p.stdout)):
            found[server_of(remote), table] = len(answer['rows'])
    return found


def chaos(seed, minutes):
    """A case: rounds until the time is over, one at least."""
    def case(lab):
        rng = random.Random(seed)
        be_patient(lab)
        castds = Castds(lab)
        begin, kinds, n_rounds, n_messages, n_steps = time.monotonic(), [], 0, 0, 0
        try:
            while not n_rounds or time.monotonic() - begin < 60 * minutes:
                kinds = kinds[STEPS - 1:] or rng.sample(KINDS, len(KINDS))
                steps = rng.sample(['member', *kinds[:STEPS - 1]], STEPS)
                r = Round(lab, castds, rng, steps, 'chaos-%d-%d' % (seed, n_rounds))
                n_messages += r.run()
                n_rounds, n_steps = n_rounds + 1, n_steps + r.n_done
        finally:
            castds.second.kill()
        print('      seed %d: %d rounds, %d steps, %d messages in %.0f s'
              % (seed, n_rounds, n_steps, n_messages, time.monotonic() - begin), flush=True)
    return case


def snapshot():
    return {**network_snapshot(), 'RDMA devices': output('rdma', 'link', 'show'),
            'labs': os.listdir(os.path.join(RUNDIR, 'lab')) if os.path.isdir(os.path.join(RUNDIR, 'lab')) else [],
            'processes': sorted(c for _, c in processes() if c)}    # kernel threads have no command line.


def goes(lab, before):
    """A case: nothing is left."""
    lab.down()
    wait_until('processes are gone: %s' % (set(snapshot()['processes']) - set(before['processes'])),
               lambda: snapshot()['processes'] == before['processes'])
    for what, found in snapshot().items():
        check_equal(what, found, before[what])


def main():
    os.environ['PATH'] = BIN + os.pathsep + os.environ['PATH']
    suite = Suite()
    before = snapshot()
    lab = Lab('fig1', edit=('topology:\n', 'topology:\n  registry: 3\n'))
    if suite.case('Figure 1 comes up, with a registry of three servers', lambda lab: lab.up(), lab):
        if suite.is_long:
            for seed in LONG_SEEDS:
                suite.case('seed %d, %d minutes' % (seed, LONG_MINUTES), chaos(seed, LONG_MINUTES), lab)
        else:
            suite.case('seed %d, %g minutes' % (SEED, MINUTES), chaos(SEED, MINUTES), lab)
    suite.case('Figure 1 goes', goes, lab, before)
    return suite.finish()


if __name__ == '__main__':
    sys.exit(main())
