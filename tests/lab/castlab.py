# SPDX-License-Identifier: Apache-2.0
"""castlab as its tests call it."""
import os
import re
import subprocess
import tempfile
import time

from base import BASE

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.join(ROOT, os.environ.get('BUILD', 'build'), 'bin')
CASTLAB = os.path.join(BIN, 'castlab')
TOPOLOGIES = os.path.join(ROOT, 'testbed/topologies')
STAR = os.path.join(TOPOLOGIES, 'star.yaml')


def sh(*argv, check=True):
    return subprocess.run(argv, check=check, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True).stdout


def wait_until(what, condition, timeout=10):
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError('not within %d s: %s' % (timeout, what))
        time.sleep(0.02)


def equal(what, got, wanted):
    if got != wanted:
        raise AssertionError('%s:\n  got    %s\n  wanted %s' % (what, got, wanted))


def contains(what, text, part):
    if part not in text:
        raise AssertionError('%s: %r is not in:\n%s' % (what, part, text))


class Lab:
    """castlab with one topology file in a scratch folder."""

    def __init__(self, text=BASE, castlab=CASTLAB):
        self.castlab = castlab
        self.file = os.path.join(tempfile.mkdtemp(dir=os.environ['ROCECAST_RUNDIR']), 'lab.yaml')
        with open(self.file, 'w') as f:
            f.write(text)

    def run(self, *argv, status=0):
        proc = subprocess.run([self.castlab, *argv], stdout=subprocess.PIPE, timeout=100,
                              stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL)
        equal('exit status of castlab %s (%s)' % (' '.join(argv), proc.stdout.strip()),
              proc.returncode, status)
        return proc.stdout

    def start(self, *argv):
        return subprocess.Popen([self.castlab, 'up', '--no-rdma', self.file, *argv],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def up(self, *argv, status=0):
        return self.run('up', '--no-rdma', self.file, *argv, status=status)

    def down(self):
        return self.run('down', 'star')


def path(file, lab='star'):
    return os.path.join(os.environ['ROCECAST_RUNDIR'], 'lab', lab, file)


def journal():
    with open(path('journal')) as f:
        return f.read()


def daemon(name):
    """Of a daemon, by its pid file: pid, arguments, CPUs, network namespace."""
    with open(path(name + '.pid')) as f:
        pid = int(f.read())
    with open('/proc/%d/cmdline' % pid) as f:
        argv = f.read()
    return pid, argv, os.sched_getaffinity(pid), os.readlink('/proc/%d/ns/net' % pid)


def state(lab, name):
    return re.search('^%s +[a-z-]+ +([a-z]+) ' % name, lab.run('status'), re.M).group(1)
