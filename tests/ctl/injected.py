# SPDX-License-Identifier: Apache-2.0
"""Calls that fail in the real programs, and programs that are killed there (tests/faults): the registry's server,
castd, agents.  After each all converges by itself; meanwhile status tells the truth, and nobody tries without a
rest."""
import copy
import os
import re
import signal
import sys
import threading
import time

import refusals
from clusters import Cluster
from refusals import add_topology, follows, is_applied, play, state_of
from world import BIN, ROOT, Db, Failure, check, check_equal, listens, wait_until

sys.path.insert(1, os.path.join(ROOT, 'tests/faults'))
from inject import Injection  # noqa: E402 pylint: disable=wrong-import-position

REFUSED = r'the registry refuses what is written \(%s times, tried again\): .*'


def with_injection(w, injection):
    """The same world; what is started there has the injection."""
    other = copy.copy(w)
    other.env = {**w.env, **injection.env}
    return other


def each_kill(w, run, at_least, stride):
    """run(world, n, what) has a program killed at its n-th step ('kill': before, 'killed': after it; 0: at none).  It
    returns how all ends, and how many steps, kills and starts there were.  This is tried for each n, or each
    'stride'-th without --all."""
    want, n_steps, *_ = run(w, 0, 'kill')
    check(n_steps >= at_least, 'only %d steps', n_steps)
    for n in range(1, n_steps + 1, 1 if refusals.EVERY else stride):
        for what in ('kill', 'killed') if refusals.EVERY else (('kill', 'killed')[n // stride % 2],):
            world = type(w)()
            try:
                end, steps, kills, starts = run(world, n, what)
                check_equal('%s at step %d: the end' % (what, n), end, want)
                check_equal('%s at step %d: kills, starts' % (what, n), (kills, starts),
                            (1, 2) if n <= steps else (0, 1))
            finally:
                world.close()


class Undying:
    """A daemon that is started again as often as it is killed, as by systemd."""

    def __init__(self, w, injection, start):
        self.w, self.injection = w, injection
        self.start = lambda: start(with_injection(w, injection))
        self.process = self.start()
        self.n_starts = 1
        self.ended = False
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()

    def watch(self):
        while not self.ended:
            if self.process.poll() is not None:
                self.w.daemons.remove(self.process)
                self.process = self.start()
                self.n_starts += 1
            time.sleep(0.005)

    def end(self):
        """From now on it dies.  Returns how often it was started."""
        wait_until('who was killed is back', lambda: self.n_starts == 1 + self.injection.hits())
        self.ended = True
        self.thread.join()
        return self.n_starts


#
# The registry's server.
#

def registry_with(w, *rules):
    """The world's server anew, with an injection."""
    injection = Injection(w.file('server.inject'), *rules)
    w.db.close()
    w.stop(w.registry)
    w.registry = with_injection(w, injection).start_registry()
    w.db = type(w.db)(w.sock)
    return injection


def disk_is_full(w):
    """The registry's disk is full for a while: whoever writes is told, castd tries less and less often, nothing is
    half-done, and when there is room again all goes on."""
    w.ready_group()
    injection = registry_with(w, 'fflush:ENOSPC')
    wait_until('castd is back', lambda: w.status('castd') == 'active')
    w.settled()
    before = w.dump()
    injection.fail()
    w.refused('group add h', 2, 'the registry refused it: .*No space left on device')
    check_equal('what the registry has', w.dump(), before)
    injection.heal()
    # An agent's report, which castd has to answer.
    w.castctl('--wait=none member add g r3 --qpn 17 --rkey 7 --va 0x1000 --len 4096')
    w.apply_all_until('r3 is a member', lambda: w.member('r3')['state'] == 'active')

    w.castd.send_signal(signal.SIGSTOP)
    w.castctl('--wait=none group add late')
    tries = injection.calls()
    injection.fail()
    w.castd.send_signal(signal.SIGCONT)
    begin = time.monotonic()
    wait_until('castd is refused', lambda: re.fullmatch('active, but ' + REFUSED % r'[4-9]' + 'No space left .*',
                                                        w.status('castd')))
    took, tries = time.monotonic() - begin, injection.calls() - tries
    # After 0.1, 0.2, 0.4 s and so on, each up to twice as much; a record is two writes at most.
    check(tries <= 2 * 9 and took >= 0.1 + 0.2 + 0.4, '%d writes in %.1f s', tries, took)
    check_equal('group late, meanwhile', w.show('late')['proxy'], '')
    injection.heal()
    wait_until('the group has its addresses', lambda: w.show('late')['proxy'])
    check_equal('status', w.status('castd'), 'active')
    # What was taken is on the disk.
    taken = w.dump()
    w.db.close()
    w.stop(w.registry, signal.SIGKILL)
    w.registry = w.start_registry()
    w.db = type(w.db)(w.sock)
    check_equal('after the server was killed', w.dump(), taken)


class InjectedCluster(Cluster):
    """All servers of a cluster have the injection."""

    def __init__(self, w, *rules):
        self.injections = [Injection(w.file('db%d.inject' % i), *rules) for i in range(3)]
        super().__init__(w)

    def start(self, i):
        w, self.w = self.w, with_injection(self.w, self.injections[i])
        super().start(i)
        self.w = w


def syncing_fails(w):
    """A server of a cluster that cannot bring its log to the disk: the others decide, and it goes on with the next
    write.  If none can, nothing is taken, and whoever waits is told so; then servers that are started again go on."""
    w.ready_group()
    c = InjectedCluster(w, 'fsync/file:EIO', 'fdatasync/file:EIO')
    c.connect(0)
    w.castd = w.start_castd('castd')
    wait_until('castd is active', lambda: w.status('castd') == 'active')

    def fail(servers):
        for i in servers:
            c.injections[i].fail(rule=0)
            c.injections[i].fail(rule=1)

    def heal():
        for injection in c.injections:
            injection.heal(0)
            injection.heal(1)
    leader = c.leader()
    fail([leader])
    w.castctl('group add without-leader')
    check(c.injections[leader].hits(), 'the leader has synced')
    heal()
    fail([(leader + 1) % 3])
    w.castctl('group add without-follower')
    heal()
    w.castctl('group add with-all')
    wait_until('all are equally far', lambda: len({s['index'] for s in c.status()['servers']}) == 1)
    fail(range(3))
    w.refused('--timeout=2 group add without-all', 3, 'did not answer a transaction in 2 s|nobody answered in 2 s')
    heal()
    w.db.close()
    for i in range(3):    # Open vSwitch's server tries again only when something else is written, which waits for that.
        c.stop(i)
        c.start(i)
    c.connect(0)
    wait_until('castd takes requests', lambda: w.run('--timeout=2', 'group', 'add', 'after').returncode == 0)
    wait_until('all are equally far', lambda: len({s['index'] for s in c.status()['servers']}) == 1)
    check({'without-leader', 'without-follower', 'after'} <= {g['name'] for g in w.db.rows('Group')}, 'groups are lost')
    w.apply_all_until('all are served', lambda: all(g['proxy'] for g in w.db.rows('Group')))


class LastingDb(Db):
    """Asks again when the server was killed; for what may be done twice."""

    def __init__(self, path):
        self.path = path
        super().__init__(path)

    def call(self, method, params):
        while True:
            try:
                return super().call(method, params)
            except (OSError, Failure):
                self.sock.close()
                wait_until('the server is back', lambda: listens(self.path))
                super().__init__(self.path)


# Each may be done twice, or is refused with that reason.
COMMANDS = ('group add g --psn 5 --may-exist', 'source set g --host h0 --qpn 18 --epoch 1',
            'member add g r1 --qpn 17 --rkey 7 --va 0x1000 --len 4096',
            'member add g r2 --qpn 17 --rkey 8 --va 0x1000 --len 4000')


DONE = (r'castctl: (source set: epoch 1 of group g has had a source: '
        r'|member add: r. is registered in epoch 1 of group g )')


def repeat(w, line):
    said = set()

    def done():
        p = w.run('--timeout=5', *line.split())
        said.add(p.stderr)
        return p.returncode == 0 or re.match(DONE, p.stderr)
    try:
        wait_until('castctl ' + line, done)
    except Failure as e:
        raise Failure('%s: %r' % (e, said)) from None


def server_is_killed(w):
    """The registry's server is killed at each of its writes, before or after it, and started again: who did not hear
    how a command ended repeats it, and the end is as without."""
    def plays(world, n, what):
        add_topology(world)
        world.db.close()
        world.stop(world.registry)
        injection = Injection(world.file('server.inject'), 'fflush:' + what)
        undying = Undying(world, injection, lambda other: other.start_registry())
        world.db = LastingDb(world.sock)
        try:
            before = injection.calls()
            injection.fail(before + n, before + n if n else 0)
            for line in COMMANDS:
                repeat(world, line)
            world.apply_all_until('members are active', lambda: [m['state'] for m in world.db.rows('Member')]
                                  == ['active'] * 2)
            world.apply_all_until('all is applied', lambda: is_applied(world) and state_of(world)['answered'])
            return state_of(world), injection.calls() - before, injection.hits(), undying.end()
        finally:
            undying.end()
    each_kill(w, plays, 10, stride=5)


#
# castd and agents.
#

def castd_is_killed(w):
    """castd is killed at each message that it sends to the registry, before or after it: the next one goes on from
    the rows, and the end is as without."""
    def plays(world, n, what):
        world.stop(world.castd)
        injection = Injection(world.file('castd.inject'), 'send/unix:' + what)
        injection.fail(n, n)
        undying = Undying(world, injection, lambda other: other.start(
            os.path.join(BIN, 'castd'), '--unixctl=' + world.file('castd.ctl')))
        try:
            return play(world), injection.calls(), injection.hits(), undying.end()
        finally:
            undying.end()
    each_kill(w, plays, 30, stride=12)


def agent_is_killed(w, program, role):
    def runs(world, n, what):
        world.db.transact({'op': 'insert', 'table': 'Node', 'row': {'name': 'x', 'id': 9, 'role': role}})
        injection = Injection(world.file('agent.inject'), 'send/unix:' + what)
        injection.fail(n, n)
        undying = Undying(world, injection, lambda other: other.start(
            os.path.join(BIN, program), '--node=x', '--unixctl=' + world.file('x.ctl')))
        try:
            state, control = follows(world)
            return (state, os.path.basename(control)), injection.calls(), injection.hits(), undying.end()
        finally:
            undying.end()
    each_kill(w, runs, 5, stride=2)


def swedge_is_killed(w):
    """swedge is killed at each message that it sends to the registry: the next one follows."""
    agent_is_killed(w, 'swedge', 'switch')


def srcagent_is_killed(w):
    """srcagent is killed at each message that it sends to the registry: the next one follows."""
    agent_is_killed(w, 'srcagent', 'agent')


def connecting_fails(w):
    """Agents and castd that cannot connect to the registry try with growing rests, say so, and go on once they can."""
    w.db.transact({'op': 'insert', 'table': 'Node', 'row': {'name': 'x', 'id': 9, 'role': 'switch'}})
    w.stop(w.castd)
    injections = {name: Injection(w.file(name + '.inject'), 'connect/unix:' + error)
                  for name, error in (('castd', 'EAGAIN'), ('x', 'ECONNREFUSED'))}
    for injection in injections.values():
        injection.fail()
    w.castd = with_injection(w, injections['castd']).start_castd('castd')
    with_injection(w, injections['x']).start(os.path.join(BIN, 'swedge'), '--node=x', '--unixctl=' + w.file('x.ctl'))
    wait_until('swedge listens', lambda: listens(w.file('x.ctl')))
    begin = time.monotonic()
    for name, injection in injections.items():
        wait_until('%s has tried three times' % name, lambda i=injection: i.hits() >= 3)
        check('not connected' in w.status(name), '%s says %r', name, w.status(name))
    took = time.monotonic() - begin
    for name, injection in injections.items():
        check(injection.hits() <= 3 + took, '%s: %d tries in %.1f s', name, injection.hits(), took)
    w.refused('--timeout=1 group add g', 3, 'castd did not answer in 1 s')
    for injection in injections.values():
        injection.heal()
    check_equal('state', follows(w)[0], 'ok')
    check(w.show()['proxy'], 'castd has not taken up what was asked')


CASES = (disk_is_full, syncing_fails, server_is_killed, castd_is_killed, swedge_is_killed, srcagent_is_killed,
         connecting_fails)
