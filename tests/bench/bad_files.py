# SPDX-License-Identifier: Apache-2.0
"""Files and command lines that are not right, and where the page is written."""
import copy
import json
import os
import resource
import subprocess

import synthetic
from base import PROGRAM, check, equal, parse, small

import document
import page


def places(value, path=()):
    """All places in a file; of lists the first element."""
    if isinstance(value, dict):
        for key in value:
            yield path + (key,)
            yield from places(value[key], path + (key,))
    elif isinstance(value, list) and value:
        yield path + (0,)
        yield from places(value[0], path + (0,))


def changed(value, path, new):
    """'new' may be KeyError: the key is not there."""
    value = copy.deepcopy(value)
    at = value
    for key in path[:-1]:
        at = at[key]
    if new is KeyError:
        del at[path[-1]]
    else:
        at[path[-1]] = new
    return value


def place_text(path):
    """As messages have it."""
    return ''.join('[%d]' % p if isinstance(p, int) else '.' + p for p in path).lstrip('.')


OPTIONAL = {('error',), ('runs', 'error'), ('runs', 'epochs'), ('runs', 'resent_packets'),
            ('runs', 'longest_gap_us'), ('runs', 'longest_gap_at_ms'),
            ('runs', 'first_block_at_ms'), ('runs', 'replicas', 'why'),
            ('summary', 'cpu_fabric_s_per_gb'), ('summary', 'longest_gap_us')}
# A value that is of none of the other types, and what a number cannot be.
OTHERS = {dict: {'k': {}}, list: [{}], str: 'text', bool: True, int: 7}
NO_NUMBERS = (-1, 1e300, float('nan'))
NEEDED = {'ok', 'summary', 'scheme', 'replicas_n', 'size', 'repeat', 'device',
          'median', 'min', 'max'}


def judged(path, old):
    """(new value, must it be refused?), of a place in a file; None: it may be either."""
    last = path[-1]
    free = len(path) == 2 and path[0] in ('options', 'labels')
    if isinstance(last, str):
        yield KeyError, not free and tuple(k for k in path if k != 0) not in OPTIONAL
    yield None, last in NEEDED and path[0] != 'options' or path[0] == 'labels' and free or None
    if old is None:
        return
    kind = int if isinstance(old, float) else type(old)
    scalar = len(path) == 2 and path[0] == 'options'
    for other, new in OTHERS.items():
        if other != kind:
            yield new, not scalar or other in (dict, list)
    if kind is int:
        for new in NO_NUMBERS:
            yield new, True


def checks_all(w):
    """Each key taken away, made null, and given a wrong type: refused by name, or a page."""
    base = synthetic.make(replicas=(2,), repeats=1, count=3, schemes=('unicast',),
                          spoil=lambda runs, rng: synthetic.lose(rng, runs[0], 'r2', 'gone', 0.5))
    base['runs'][0]['ok'] = True                # nothing may be missing
    base['fail_if'] = [{'condition': 'p99>1', 'value': 2.5, 'failed': True, 'run': 0}]
    n = 0
    for path in places(base):
        old = base
        for key in path:
            old = old[key]
        if path == ('castbench',):
            continue                            # see refused()
        for new, refused in judged(path, old):
            what = '%s = %r' % (place_text(path), new)
            name = w.file(w.write('x.json', changed(base, path, new)))
            try:
                parse(page.render([document.load(name)]))
                check(not refused, '%s: accepted', what)
            except document.BadFile as e:
                check(refused or refused is None, '%s: %s', what, e)
                where = "'%s' is missing" % path[-1] if new is KeyError else place_text(path)
                check(str(e).startswith(name + ': ') and (
                    where in str(e) or new != new or 'is missing' in str(e)), '%s: %s', what, e)
            n += 1
    check(n > 1000, 'only %d', n)


def loose(w):
    """A run that failed may lack whatever is not known.  Options are as large as castbench takes."""
    value = small(replicas=(2,), repeats=1)
    run = value['runs'][0]
    value['runs'][0] = {k: run[k] for k in ('scheme', 'replicas_n', 'size', 'repeat')}
    value['runs'][0].update(ok=False, error='no')
    value['summary'] = value['summary'][1:]
    value['options']['seed'] = 2 ** 63 - 1
    w.page(value)
    value['runs'][0]['ok'] = True
    w.write('bad.json', value)
    w.fails(1, "castbench-report: bad.json: runs[0]: 'started_ms' is missing", 'report', '-o', 'p',
            'bad.json')


def refused(w):
    w.write('good.json', small())
    w.write('old.json', {'castbench': 1, 'ok': True})
    w.write('true.json', {'castbench': True})
    w.write('other.json', {'runs': []})
    w.write('list.json', [1])
    w.write('empty.json', b'')
    w.write('cut.json', json.dumps(small(), indent=1).encode()[:3000])
    w.write('latin.json', b'{"castbench": 2, "started": "\xe9"}')
    w.write('nan.json', b'{"castbench": 2, "ok": NaN}')
    w.write('deep.json', b'[' * 100000)
    w.write('digits.json', b'{"castbench": ' + b'1' * 10000 + b'}')
    twice = small(replicas=(1,), repeats=1)
    twice['summary'] *= 2
    w.write('twice.json', twice)
    os.mkdir(w.file('folder.json'))
    for name, said in (
            ('old.json', "version 1 of castbench's JSON: this program reads version 2"),
            ('true.json', 'version true of'), ('other.json', 'not from castbench --json'),
            ('list.json', 'not from castbench --json'), ('empty.json', 'not JSON: line 1, column 1'),
            ('cut.json', 'not JSON: line '), ('latin.json', 'not JSON: byte 29 is not UTF-8'),
            ('nan.json', 'not JSON: NaN is no number'),
            ('deep.json', 'not JSON that castbench wrote'),
            ('digits.json', 'not JSON that castbench wrote'),
            ('twice.json', 'summary[3]: mcast, 1 replicas, size 1048576: there twice'),
            ('folder.json', 'Is a directory'), ('nosuch.json', 'No such file or directory')):
        for argv in (('report', '-o', 'page.html', 'good.json', name),
                     ('compare', 'good.json', name)):
            w.fails(1, 'castbench-report: %s: %s' % (name, said), *argv)
        equal('nothing is written', sorted(os.listdir(w.dir)).count('page.html'), 0)
    if os.geteuid():
        os.chmod(w.file('good.json'), 0)
        w.fails(1, 'good.json: Permission denied', 'report', 'good.json')


def usage(w):
    w.write('a.json', small())
    for said, *argv in (
            ('a command is missing',), ("unknown command 'show'", 'show'),
            ('option --frob not recognized', 'report', '--frob', 'a.json'),
            ('report: a file is missing', 'report'),
            ('option -o requires argument', 'report', 'a.json', '-o'),
            ('option --fail-if-worse not recognized', 'report', '--fail-if-worse', '1', 'a.json'),
            ('compare: there must be two files, not 1', 'compare', 'a.json'),
            ('compare: there must be two files, not 3', 'compare', *['a.json'] * 3),
            ('--fail-if-worse x: must be a number', 'compare', '--fail-if-worse', 'x',
             *['a.json'] * 2),
            ('--fail-if-worse nan: must be a number', 'compare', '--fail-if-worse', 'nan',
             *['a.json'] * 2),
            ('--fail-if-worse -1: must be', 'compare', '--fail-if-worse=-1', *['a.json'] * 2)):
        w.fails(1, said, *argv)
        w.fails(1, '(castbench-report --help)', *argv)
    for argv in (['--help'], ['report', '--help'], ['compare', 'x', '-h']):
        p = w.run(*argv)
        check(p.returncode == 0 and p.stdout.startswith('usage: castbench-report'), '%r', p)
    equal('version', w.run('--version').stdout.split()[0], 'castbench-report')


def output(w):
    """The page replaces a file once it is there, and nothing else."""
    w.write('a.json', small())
    w.write('bad.json', {'castbench': 2})
    w.write('page.html', b'earlier')
    os.chmod(w.file('page.html'), 0o640)
    w.fails(1, "bad.json: 'ok' is missing", 'report', '-o', 'page.html', 'a.json', 'bad.json')
    with open(w.file('page.html'), 'rb') as f:
        equal('kept', f.read(), b'earlier')
    p = w.run('report', '-o', 'page.html', 'a.json',
              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (9999, 9999)))
    equal('no room', (p.returncode, p.stderr),
          (1, 'castbench-report: -o page.html: File too large\n'))
    with open(w.file('page.html'), 'rb') as f:
        equal('kept without room', f.read(), b'earlier')
    os.symlink('page.html', w.file('link'))
    equal('status', w.run('report', '-o', 'link', 'a.json').returncode, 0)
    check(os.path.islink(w.file('link')), 'the link is one')
    with open(w.file('page.html'), encoding='utf-8') as f:
        parse(f.read())
    equal('mode', oct(os.stat(w.file('page.html')).st_mode & 0o777), oct(0o640))
    equal('status', w.run('report', '--output=new.html', 'a.json', umask=0o027).returncode, 0)
    equal('mode', oct(os.stat(w.file('new.html')).st_mode & 0o777), oct(0o640))
    w.fails(1, '-o a.json: that is a file to be read', 'report', '-o', 'a.json', 'a.json')
    w.fails(1, '-o no/such.html: No such file or directory', 'report', '-o', 'no/such.html', 'a.json')
    w.fails(1, '-o .: Is a directory', 'report', '-o', '.', 'a.json')
    w.fails(1, '-o /dev/full: No space left on device', 'report', '-o', '/dev/full', 'a.json')
    with open('/dev/full', 'wb') as full:
        p = subprocess.run([PROGRAM, 'report', 'a.json'], cwd=w.dir, stdout=full, check=False,
                           stderr=subprocess.PIPE, text=True)
    equal('full', (p.returncode, p.stderr),
          (1, 'castbench-report: standard output: No space left on device\n'))
    equal('files', sorted(os.listdir(w.dir)), ['a.json', 'bad.json', 'link', 'new.html', 'page.html'])
    master, slave = os.openpty()
    p = subprocess.run([PROGRAM, 'report', 'a.json'], cwd=w.dir, stdout=slave, check=False,
                       stderr=subprocess.PIPE, text=True)
    check(p.returncode == 1 and 'is a terminal' in p.stderr, '%r', p)
    os.close(master)
    os.close(slave)
