# SPDX-License-Identifier: Apache-2.0
"""Two files compared."""
import copy
import os
import re
import subprocess

from bad_files import changed
from base import PROGRAM, check, equal, small


def compare(w):
    """Ratios and what the spreads allow, of rows that both have."""
    a = small(replicas=(1, 2), schemes=('mcast', 'unicast', 'chain'))
    b = small(replicas=(2, 4), schemes=('mcast', 'unicast', 'btree'), seed=7, count=40)
    w.write('a.json', a)
    w.write('b.json', b)
    p = w.run('compare', 'a.json', 'b.json')
    equal('status', p.returncode, 0)
    lines = p.stdout.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith('scheme'))
    equal('heads', lines[at].split(), ['scheme', 'replicas', 'size', 'throughput', 'p50', 'p99',
                                       'uplink', 'cpu'])
    rows = [re.split('  +', line) for line in lines[at + 1:at + 3]]
    equal('rows', [row[:3] for row in rows], [['mcast', '2', '1 MiB'], ['unicast', '2', '1 MiB']])
    for row in rows:
        mine, other = (next(r for r in v['summary'] if (r['scheme'], r['replicas_n']) == (row[0], 2))
                       for v in (a, b))
        for cell, name in zip((row[3], row[4], row[5], row[7]),
                              ('mb_per_s', 'p50_us', 'p99_us', 'cpu_busy_s_per_gb')):
            x, y = mine[name], other[name]
            equal(name, cell, '%.2f (%.2f..%.2f)' % (
                y['median'] / x['median'], y['min'] / x['max'], y['max'] / x['min']))
        equal('uplink: for each byte', row[6], '1.00 (1.00..1.00)')
    equal('only', lines[at + 3:], ['only in A: %s, %s, 1 MiB' % k for k in (
        ('mcast', '1 replica'), ('unicast', '1 replica'), ('chain', '1 replica'),
        ('chain', '2 replicas'))] + ['only in B: %s, %s, 1 MiB' % k for k in (
            ('btree', '2 replicas'), ('mcast', '4 replicas'), ('unicast', '4 replicas'),
            ('btree', '4 replicas'))])
    equal('warnings', p.stderr, 'castbench-report: warning: receivers differs: r1,r2, then '
          'r1,r2,r3,r4\n')
    w.write('c.json', small(schemes=('primary',)))
    p = w.run('compare', 'a.json', 'c.json')
    check(p.returncode == 1 and 'a.json, c.json: no scheme, number of replicas and size' in p.stderr,
          '%r', p)


def warnings(w):
    """What makes two files hard to compare."""
    a = small()
    w.write('a.json', a)
    for path, new, said in (
            (('host', 'kernel'), '6.1.0', 'host kernel differs: 6.12.48+deb12-amd64, then 6.1.0'),
            (('host', 'machine'), 'arm64', 'host machine differs: x86_64, then arm64'),
            (('host', 'name'), None, 'host name differs: bench-vm, then not known'),
            (('options', 'depth'), 8, 'option depth differs: 4, then 8'),
            (('options', 'rate'), 100, 'option rate differs: not known, then 100'),
            (('labels', 'topology'), 'x', 'label topology differs: fig1, then x'),
            (('version',), '0.2', 'version differs: 0.1, then 0.2'),
            (('runs', 3, 'mtu'), 1024, 'path MTU differs: 4096, then 1024,4096'),
            (('ok',), False, 'b.json: 0 of 18 runs did not end well')):
        w.write('b.json', changed(a, path, new))
        p = w.run('compare', 'a.json', 'b.json')
        equal(said, (p.returncode, p.stderr), (0, 'castbench-report: warning: %s\n' % said))
    w.write('b.json', a)
    equal('none', w.run('compare', 'a.json', 'b.json').stderr, '')


def fails_if_worse(w):
    """Less throughput is worse, and more of all others."""
    a = small(schemes=('mcast',), replicas=(2,))
    w.write('a.json', a)

    def scaled(name, factor):
        b = copy.deepcopy(a)
        s = b['summary'][0][name]
        s.update({k: v * factor for k, v in s.items()})
        return b

    for name, value, said in (
            ('throughput', scaled('mb_per_s', 0.89), '11.0 %, more than 10'),
            ('p50', scaled('p50_us', 1.12), '12.0 %'), ('p99', scaled('p99_us', 1.5), '50.0 %'),
            ('cpu', scaled('cpu_busy_s_per_gb', 2), '100.0 %'),
            ('uplink', scaled('uplink_per_byte', 1.2), '20.0 %')):
        w.write('b.json', value)
        p = w.run('compare', '--fail-if-worse', '10', 'a.json', 'b.json')
        check(p.returncode == 3 and p.stdout.splitlines()[-1].startswith(
            'mcast, 2 replicas, 1 MiB: %s is worse by %s' % (name, said)), '%s: %r', name, p)
        equal(name + ', without', w.run('compare', 'a.json', 'b.json').returncode, 0)
        p = w.run('compare', '--fail-if-worse', '10', 'b.json', 'a.json')
        equal(name + ', the other way', (p.returncode, p.stdout.splitlines()[-1]),
              (0, 'nothing is worse by more than 10 %'))
    w.write('b.json', scaled('mb_per_s', 0.91))
    equal('within', w.run('compare', '--fail-if-worse', '10', 'a.json', 'b.json').returncode, 0)
    w.write('b.json', changed(a, ('summary', 0, 'p99_us'), None))
    p = w.run('compare', '--fail-if-worse', '10', 'a.json', 'b.json')
    equal('not known', (p.returncode, p.stdout.splitlines()[-1]),
          (3, 'mcast, 2 replicas, 1 MiB: p99 is not known of B'))
    p = w.run('compare', '--fail-if-worse', '10', 'b.json', 'a.json')
    equal('not known of A', (p.returncode, p.stdout.splitlines()[-1]),
          (0, 'nothing is worse by more than 10 %'))
    w.write('b.json', dict(a, ok=False))
    p = w.run('compare', '--fail-if-worse', '10', 'a.json', 'b.json')
    equal('failed', (p.returncode, p.stdout.splitlines()[-1]), (3, 'b.json: not all runs ended well'))


def printed(w):
    """Whatever is in files and names, it is lines of text, in any encoding; and somewhere."""
    a = small(schemes=('mcast',), replicas=(2,))
    w.write('a.json', a)
    b = changed(changed(a, ('labels', 'topology'), 'x\x1b[2J\ny'), ('summary', 0, 'p99_us'), None)
    w.write('b\x07\udcff.json', changed(b, ('started',), '\ud800'))
    p = w.run('compare', 'a.json', 'b\x07\udcff.json', env=dict(os.environ, PYTHONIOENCODING='ascii'))
    equal('status', p.returncode, 0)
    equal('warning', p.stderr, 'castbench-report: warning: label topology differs: fig1, then '
          'x\\x1b[2J\\ny\n')
    check('B: b\\x07\\udcff.json  \\ud800, ' in p.stdout and '  \\u2013  ' in p.stdout, '%r', p.stdout)
    for argv in (['report', 'a.json'], ['compare', 'a.json', 'a.json']):
        p = subprocess.run([PROGRAM, *argv], cwd=w.dir, check=False, stderr=subprocess.PIPE, text=True,
                           preexec_fn=lambda: os.close(1))
        equal('closed', (p.returncode, p.stderr), (1, 'castbench-report: standard output is closed\n'))
