# SPDX-License-Identifier: Apache-2.0
"""What all tests of castbench-report use."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get('BUILD', 'build'))
CASTBENCH = os.path.join(BUILD, 'bin/castbench')
FAKE = os.path.join(BUILD, 'tests/castbench')       # with runs that are made up: fake-run.c
PROGRAM = os.path.join(BUILD, 'bin/castbench-report')
sys.path.insert(0, os.path.join(ROOT, 'bench/castbench-report'))

import synthetic                                                               # noqa: E402

DASH = '\u2013'
HOSTILE = '<b onclick=\'x\'>"&amp;]]>\u2028\ud7ff'


def check(condition, message, *args):
    if not condition:
        raise AssertionError(message % args if args else message)


def equal(what, got, want):
    check(got == want, '%s:\n  got    %r\n  wanted %r', what, got, want)


class World:
    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix='bench.')

    def close(self):
        shutil.rmtree(self.dir)

    def file(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, value):
        with open(self.file(name), 'wb') as f:
            f.write(value if isinstance(value, bytes) else json.dumps(value).encode())
        return name

    def run(self, *argv, **how):
        return subprocess.run([PROGRAM, *argv], cwd=self.dir, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, check=False, timeout=120, **how)

    def page(self, *values):
        """The page of these files, parsed."""
        names = [self.write('%d.json' % i, v) for i, v in enumerate(values)]
        p = self.run('report', '-o', 'page.html', *names)
        equal('report', (p.returncode, p.stdout, p.stderr), (0, '', ''))
        with open(self.file('page.html'), encoding='utf-8') as f:
            return parse(f.read())

    def fails(self, status, said, *argv):
        p = self.run(*argv)
        check(p.returncode == status and said in p.stderr and 'Traceback' not in p.stderr and
              p.stderr.count('\n') == 1, '%s: exit status %d, %r; wanted %d, %r', argv, p.returncode,
              p.stderr, status, said)


def parse(text):
    check(text.startswith('<!DOCTYPE html>\n<html'), '%r', text[:80])
    return ET.fromstring(text[len('<!DOCTYPE html>'):])


def inside(element):
    return ''.join(element.itertext())


def tables(root):
    """[heads, rows]; a cell's text, lines of it apart."""
    for t in root.iter('table'):
        yield ([inside(h) for h in t.iter('th')],
               [[' '.join(s for s in c.itertext() if s) for c in row.iter('td')]
                for row in t.find('tbody').iter('tr')])


def table(root, first_heads):
    return next(rows for heads, rows in tables(root) if heads[:len(first_heads)] == first_heads)


def pictures(root, what):
    return [svg for svg in root.iter('svg') if what in svg.get('aria-label', '')]


def written(value):
    """A number as the page shows it, from its definition: four digits."""
    if value is None:
        return DASH
    if value >= 999.95 or value == 0 or isinstance(value, int):
        return '\u202f'.join(re.findall('.{1,3}', str(round(value))[::-1]))[::-1]
    return next(s for s in ('%.3f' % value, '%.2f' % value, '%.1f' % value)
                if len(s) == 5) if value >= 1 else '%.4f' % value


def small(**what):
    return synthetic.make(**dict({'replicas': (1, 2), 'repeats': 3, 'count': 20,
                                  'schemes': ('mcast', 'unicast', 'btree')}, **what))
