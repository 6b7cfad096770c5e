# SPDX-License-Identifier: Apache-2.0
"""What a table of wrong inputs is, and how its rows are tried.

A row is data: what is given, the exit status, and what is said.  In both, RUNDIR and DIR stand for
castlab's folder and a scratch folder, and in what is said … for any text.
"""
import errno
import json
import os
import re
import shlex
import subprocess

import lab
from host import Host
from world import Failure, check, check_equal

PATIENCE = 20  # seconds for a command that must end by itself


def real(text):
    """With the folders in the place of their names."""
    return re.sub(r'(?<![\w-])DIR', lab.DIR, re.sub(r'(?<![\w-])RUNDIR', lab.RUNDIR, text))


def named(text):
    """The reverse."""
    return text.replace(lab.DIR, 'DIR').replace(lab.RUNDIR, 'RUNDIR')


def matches(pattern, text):
    return re.fullmatch('.*'.join(re.escape(part) for part in pattern.split('…')), text)


def check_said(said, wanted):
    check(matches(wanted, said), 'said\n        %s\n    instead of\n        %s', said, wanted)


def run(line):
    """Runs a line 'NAME=VALUE... PROGRAM ARGUMENT... [<FILE]' without a shell: (status, standard
    output, standard error)."""
    argv = shlex.split(real(line))
    env = dict(os.environ)
    while re.match(r'[A-Z_]+=', argv[0]):
        name, _, value = argv.pop(0).partition('=')
        env[name] = value
    source = argv.pop()[1:] if argv[-1].startswith('<') else os.devnull
    with open(source, 'rb') as stdin:
        try:
            p = subprocess.run(argv, env=env, stdin=stdin, capture_output=True, timeout=PATIENCE,
                               cwd=lab.ROOT, check=False)
        except subprocess.TimeoutExpired:
            raise Failure('still running after %d s' % PATIENCE) from None
    return p.returncode, named(p.stdout.decode()), named(p.stderr.decode())


def cell(text):
    """As a cell of a Markdown table."""
    if len(text) > 100 and ' ' not in text:
        text = text[:60] + '...'
    text = text.rstrip('\n').replace('|', '\\|').replace('\0', '\\0').replace('\t', '\\t')
    text = re.sub('[\x01-\x09\x0b-\x1f\x7f-\x9f]', lambda m: '\\x%02x' % ord(m[0]), text)
    return '`%s`' % text.replace('\n', '` `') if text else '(nothing)'


class Section:
    """A table.  'proofs' are functions of lab.py: what must be the same after each row."""

    head = ('input', 'exit', 'says')

    def __init__(self, name, about, rows, proofs=(lab.registry, lab.agents, lab.files)):
        self.name = name
        self.about = about
        self.rows = rows
        self.proofs = proofs

    def inputs(self):
        """What completeness is judged by: the command lines."""
        return [row[0] for row in self.rows]

    def begin(self, row):
        """Before the state is taken."""

    def try_row(self, row):
        raise NotImplementedError

    def end(self, row):
        """After the state has been compared."""

    def title(self, row):
        return row[0]

    def cells(self, row):
        return cell(row[0]), str(row[1]), cell(row[2])

    def check_row(self, row):
        self.begin(row)
        before = lab.take(self.proofs)
        try:
            self.try_row(row)
            changed = lab.difference(before, lab.take(self.proofs))
            check(not changed, 'something has changed:\n%s', changed)
        finally:
            self.end(row)

    def document(self):
        lines = ['## ' + self.name, '', self.about, '', '| %s |' % ' | '.join(self.head),
                 '|' + '---|' * len(self.head)]
        return lines + ['| %s |' % ' | '.join(self.cells(row)) for row in self.rows] + ['']


def as_text(said):
    """What castctl -j says on standard error, as it says it to people."""
    if not said.startswith('{"column":'):
        return said
    line = json.loads(said)
    return '%s: %s' % (line['program'], line['message'])


class Commands(Section):
    """Rows (command line, exit status, what standard error says).  Standard output is empty,
    unless some of what was asked for could be had (4), or it is for JSON, which says the same.  So does
    standard error of castctl then."""

    def try_row(self, row):
        status, out, err = run(row[0])
        err = as_text(err.rstrip('\n'))
        check_said(err, row[2])
        check_equal('exit status', status, row[1])
        if re.search(r'--json -|^castctl .*(-j|--json)( |$)', row[0]):
            check_equal('error', json.loads(out)['error'], err.split(': ', 1)[1])
        else:
            check(not out or status == 4, 'printed %r', out)


class Control(Section):
    """Rows (daemon and command line, what the daemon answers)."""

    head = ('daemon and command', 'answers')

    def try_row(self, row):
        daemon, *words = real(row[0]).split()
        answer, error = lab.control(daemon, *words)
        check(answer is None, 'answered %r', answer)
        check_said(named(error).rstrip('\n'), row[1])

    def cells(self, row):
        return cell(row[0]), cell(row[1])


class Calls(Section):
    """Rows (what apihost is told, error number, rocecast_error())."""

    head = ('call', 'returns', 'rocecast_error()')

    def try_row(self, row):
        host = Host(os.environ)
        host.ok('open - 30000')
        host.ok('group empty 30000')
        answer = named(host.ask(real(row[0])))
        host.process.stdin.close()
        host.process.wait()
        check_said(answer, 'error %d %s' % row[1:])

    def cells(self, row):
        return cell(row[0]), errno.errorcode[row[1]], cell(row[2])


class Topologies(Section):
    """Topology files, which castlab must refuse before anything else."""

    def __init__(self, name, about, rows):
        super().__init__(name, about, rows, lab.ALL)

    def contents(self, row):
        raise NotImplementedError

    def arguments(self, _row):
        return ''

    def begin(self, row):
        lab.work_file('x.yaml', self.contents(row))

    def try_row(self, row):
        status, out, err = run('castlab up --no-rdma DIR/x.yaml ' + self.arguments(row))
        check_said(err, 'DIR/x.yaml' + row[-1] + '\n')
        check_equal('exit status', status, 1)
        check(not out, 'printed %r', out)


class Changes(Topologies):
    """Rows (what, replaced by what, message)."""

    head = ('instead of', 'there is', 'says')

    def __init__(self, name, about, base, rows):
        super().__init__(name, about, rows)
        self.base = base

    def contents(self, row):
        check(row[0] in self.base, '%r is not in the file', row[0])
        return self.base.replace(row[0], row[1], 1)

    def title(self, row):
        return '%r instead of %r' % (row[1], row[0])

    def cells(self, row):
        return tuple(cell(c) for c in row)


class Wholes(Topologies):
    """Rows (what, contents, message)."""

    head = ('the file is', 'says')

    def contents(self, row):
        return row[1]

    def cells(self, row):
        return row[0], cell(row[2])


class Parameters(Topologies):
    """Rows (arguments, message)."""

    head = ('arguments', 'says')

    def __init__(self, name, about, base, rows):
        super().__init__(name, about, rows)
        self.base = base

    def contents(self, _row):
        return self.base

    def arguments(self, row):
        return row[0]

    def cells(self, row):
        return cell(row[0]), cell(row[1])


class Journals(Section):
    """Rows (third line of lab hurt's journal, what castlab down says of it, in which line if not in
    the third)."""

    head = ('line', 'says')

    def __init__(self, name, about, rows):
        super().__init__(name, about, rows, lab.ALL)

    def begin(self, row):
        lab.hurt_journal(row[0])

    def try_row(self, row):
        number = row[2] if len(row) > 2 else 3
        for command in ('castlab down hurt', 'castlab status hurt'):
            status, out, err = run(command)
            check_said(err, 'castlab: RUNDIR/lab/hurt/journal:%d: %s\n' % (number, row[1]))
            check_equal('exit status', status, 2)
            check(not out, 'printed %r', out)

    def end(self, row):
        lab.hurt_journal('nonsense')

    def inputs(self):
        return []

    def title(self, row):
        return '%r' % row[0]

    def cells(self, row):
        return cell(row[0]), cell(row[1])
