# SPDX-License-Identifier: Apache-2.0
"""castlab's own calls fail, or it is killed there (tests/faults): 'up' undoes itself, or goes on, and whatever a killed
one has left 'down' removes."""
import os
import subprocess
import sys
import tempfile

from castlab import ROOT, Lab, contains, equal, wait_until
from leftovers import processes, snapshot

sys.path.insert(1, os.path.join(ROOT, 'tests/faults'))
from inject import Injection  # noqa: E402 pylint: disable=wrong-import-position

__all__ = ['test_fork_fails', 'test_killed_at_each_write', 'test_connections_end', 'test_nobody_reads']


def up(injection, lab):
    """castlab alone has the injection: whatever it starts goes without."""
    env = {**os.environ, **injection.env, 'INJECT_ONCE': '1'}
    p = subprocess.run([lab.castlab, 'up', '--no-rdma', lab.file], env=env, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=100, text=True, check=False)
    return p.returncode, p.stdout


def injected(rule):
    with tempfile.NamedTemporaryFile(dir=os.environ['ROCECAST_RUNDIR'], delete=False) as f:
        return Injection(f.name, rule)


def calls_of(rule):
    """How many such calls an 'up' makes."""
    injection, lab = injected(rule), Lab()
    equal('up', up(injection, lab)[0], 0)
    lab.down()
    return injection.calls()


def test_fork_fails():
    """At each process that castlab starts: nothing is left."""
    lab, before = Lab(), snapshot()
    n = calls_of('fork:EAGAIN')
    if n < 5:
        raise AssertionError('%d forks' % n)
    for i in range(1, n + 1):
        injection = injected('fork:EAGAIN')
        injection.fail(i, i)
        status, said = up(injection, lab)
        equal('hits', injection.hits(), 1)
        equal('exit status of up: ' + said, status, 2)
        contains('up', said, 'Resource temporarily unavailable')
        contains('up', said, "lab 'star' was not brought up; nothing of it is left")
        wait_until('processes are gone', lambda: processes() == before['processes'])
        equal('left', snapshot(), before)
    equal('list', lab.run('list'), '')


def test_killed_at_each_write():
    """Each of its writes is a step of castlab: what it has told its journal, and a process to go on."""
    lab, before = Lab(), snapshot()
    n = calls_of('write/file:kill')
    if n < 20:
        raise AssertionError('%d writes' % n)
    for i in range(1, n + 1, 5):
        for what in (('kill', 'killed')[i % 2],):
            injection = injected('write/file:' + what)
            injection.fail(i, i)
            status, said = up(injection, lab)
            # Or a process that it has made for a moment was killed, which it finds out.
            if status != -9 and (status != 2 or 'nothing of it is left' not in said):
                raise AssertionError('exit status %d of up: %s' % (status, said))
            lab.run('down', 'star')
            wait_until('processes are gone', lambda: processes() == before['processes'])
            equal('left', snapshot(), before)
    equal('up', lab.up().split('\n')[-2], "lab 'star' is up")
    lab.down()


def test_connections_end():
    """The registry's server ends each of its connections: castlab connects again, and is not ended by SIGPIPE."""
    lab, before = Lab(), snapshot()
    n = calls_of('send/unix:EPIPE')
    for i in range(1, n + 1):
        injection = injected('send/unix:EPIPE')
        injection.fail(i, i)
        status, said = up(injection, lab)
        equal('exit status of up at message %d (%s)' % (i, said), status, 0)
        equal('hits', injection.hits(), 1)
        lab.down()
    equal('left', snapshot(), before)


def test_nobody_reads():
    """Who reads what castlab says ends: the lab comes up all the same."""
    lab = Lab()
    read_end, write_end = os.pipe()
    os.close(read_end)
    p = subprocess.run([lab.castlab, 'up', '--no-rdma', lab.file], stdout=write_end, stdin=subprocess.DEVNULL,
                       stderr=subprocess.PIPE, timeout=100, check=False)
    os.close(write_end)
    equal('exit status of up (%s)' % p.stderr, p.returncode, 0)
    contains('status', lab.run('status'), 'lab star: up')
    lab.down()
