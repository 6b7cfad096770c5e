#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""End-to-end cases of castprobe: soft-RoCE behaves as is expected of it, and a difference is found.
Runs inside the VM (see tests/e2e/run)."""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
from harness import (BIN, RESULTS, ROOT, Suite, check, check_equal, network_snapshot, output, read, run,
                     wait_until, work_file)

FAR = 'probe-far'
DEVICE, HERE, THERE = 'rxe_probe', 'fd00:9::1', 'fd00:9::2'


class Pair:
    """A device here, and a namespace without any at the other end of its cable."""

    def __init__(self):
        self.target = None
        self.waits = ''

    # Suite shows logs of a case that fails.
    def log_sizes(self):
        return {}

    def logs(self, _):
        return self.waits

    def up(self):
        output('ip', 'netns', 'add', FAR)
        output('ip', 'link', 'add', 'probe0', 'mtu', '4200', 'type', 'veth', 'peer', 'name', 'probe1',
               'mtu', '4200', 'netns', FAR)
        for where, dev, address in ((('ip',), 'probe0', HERE), (('ip', '-n', FAR), 'probe1', THERE)):
            output(*where, 'addr', 'add', address + '/64', 'dev', dev, 'nodad')
            output(*where, 'link', 'set', dev, 'up')
        output('ip', '-n', FAR, 'link', 'set', 'lo', 'up')
        wait_until('the cable is up', lambda: 'state UP' in output('ip', 'link', 'show', 'probe0'))
        output('rdma', 'link', 'add', DEVICE, 'type', 'rxe', 'netdev', 'probe0')
        log = work_file('castprobe.log')
        with open(log, 'w', encoding='utf-8') as out:
            self.target = subprocess.Popen(['castprobe', 'target', '--device', DEVICE], stdout=out,
                                           stderr=out, stdin=subprocess.DEVNULL)

        def waits():
            self.waits = read(log).decode()
            return 'waiting' in self.waits or self.target.poll() is not None
        wait_until('the target waits', waits)
        check_equal('target', self.waits, '%s, %s: waiting on port 18514\n' % (DEVICE, HERE))

    def down(self):
        self.target.kill()
        self.target.wait()
        output('rdma', 'link', 'del', DEVICE)
        output('ip', 'link', 'del', 'probe0')
        output('ip', 'netns', 'del', FAR)


def probe(*argv):
    p = run('ip', 'netns', 'exec', FAR, os.path.join(BIN, 'castprobe'), 'run', '--address', THERE,
            *argv, HERE)
    return p.returncode, p.stdout + p.stderr


def documented():
    """[(number, statement, expected, relied on)] of docs/castprobe.md."""
    text = read(os.path.join(ROOT, 'docs/castprobe.md')).decode()
    return re.findall(r'(?m)^\| (P\d+) \| (.*?) \| (.*?) \| (.*?) \|', text)


def all_checks(_):
    """Every check that there is, and each was made."""
    path = os.path.join(RESULTS, 'castprobe.json')
    status, text = probe('--json', path)
    report = json.loads(read(path))
    for c in report['checks']:
        check(c['verdict'] == 'as expected', '%s: %s: observed %s, expected %s', c['id'], c['statement'],
              c['observed'], c['expected'])
        check_equal(c['id'], c['observed'], c['expected'])
    check_equal('exit status, %s' % text, status, 0)
    check_equal('checks', [(c['id'], c['statement'], c['expected'], c['relied_on'])
                           for c in report['checks']], documented())
    check_equal('device', (report['device']['name'], report['device']['driver']), (DEVICE, 'rdma_rxe'))
    check_equal('kernel', report['device']['kernel'], os.uname().release)
    print('      %s' % text.splitlines()[-1])


def difference(_):
    """Against a device that behaves otherwise in one point, that point and no other is named."""
    report = json.loads(read(os.path.join(RESULTS, 'castprobe.json')))
    other, = [c for c in report['checks'] if c['id'] == 'P2']
    right = other['observed']
    other['observed'] = 'ACK +0 MSN 1, written'
    path = work_file('other.json', json.dumps(report).encode())
    status, text = probe('--only', 'P1,P2,P3', '--against', path)
    check_equal('exit status, %s' % text, status, 3)
    rows = text.splitlines()
    check_equal('verdicts', [(row.split()[0], ' '.join(row.split()[1:3])) for row in rows if row[0] == 'P'],
                [('P1', 'as expected'), ('P2', 'differs a'), ('P3', 'as expected')])
    at = [row[0:2] for row in rows].index('P2')
    check_equal('observed', rows[at + 1].strip(), right)
    check_equal('expected', rows[at + 2].strip(), 'expected: ACK +0 MSN 1, written')
    check_equal('summary', rows[-1], '2 as expected, 1 differ, 0 cannot be told')


def cannot_tell(_):
    """What has not reached the device proves nothing: here, as the other address has no way there."""
    rule = 'from', 'fd00:9::82', 'lookup', '99'
    output('ip', '-n', FAR, 'route', 'add', HERE, 'dev', 'lo', 'table', '99')
    output('ip', '-n', FAR, '-6', 'rule', 'add', *rule)
    try:
        status, text = probe('--only', 'P22')
    finally:
        output('ip', '-n', FAR, '-6', 'rule', 'del', *rule)
    check_equal('exit status, %s' % text, status, 2)
    check_equal('verdict and why', text.splitlines()[1:3],
                ["P22  cannot tell  a request from another address than the peer's is dropped",
                 ' ' * 18 + 'packets from fd00:9::82 do not reach the target'])


def goes(pair, before):
    pair.down()
    after = network_snapshot()
    for name, text in before.items():
        check_equal(name, after[name], text)


def main():
    os.environ['PATH'] = BIN + os.pathsep + os.environ['PATH']
    suite = Suite()
    before = network_snapshot()
    pair = Pair()
    if suite.case('a device and a namespace', lambda pair: pair.up(), pair):
        if suite.case('soft-RoCE is as expected', all_checks, pair):
            suite.case('a difference is named', difference, pair)
        suite.case('what cannot be told', cannot_tell, pair)
        suite.case('it goes', goes, pair, before)
    return suite.finish()


if __name__ == '__main__':
    sys.exit(main())
