# SPDX-License-Identifier: Apache-2.0
"""Tables of what is wrong in the registry itself, while castd and agents run on it."""
import json
import os
import re
import shlex
import signal
import subprocess
import tempfile
import threading

import lab
from table import Section, cell, check_said, matches, named, real, run
from world import Db, check, check_equal, references, wait_until

# Where a row that castd leaves out is named.
LEFT_OUT = 'log, doctor'

# What an edge does in a section of Places.
STOPPED, ANSWERS = 'does not run', 'says that it answers'

# What castd tells nodes.
TOLD = ('Branch', 'Location', 'Port', 'Sid', 'Tree_Node')


def told():
    """Without versions: nodes report to these rows, and tests put them back."""
    return {k: {c: v for c, v in json.loads(row).items() if c != '_version'}
            for k, row in lab.registry().items() if k.split()[0] in TOLD}


def check_doctor(message):
    """What castctl doctor finds of the registry, beside that it answers, is this only."""
    status, out, _ = run('castctl -j doctor --role switch')
    found = [f['found'] for f in json.loads(out) if f['check'] == 'registry' and f['state'] != 'ok']
    check(len(found) == 1 and matches(message, found[0]), 'doctor says %r', found)
    check_equal('exit status of castctl doctor', status, 2)


def resolved(db, columns):
    """With references in the place of '@' and a group's name."""
    return {c: db.row('Group', name=v[1:])['_uuid'] if isinstance(v, str) and v[0] == '@' else v
            for c, v in columns.items()}


class Rows(Section):
    """Rows that begin with a table and the columns of a row that is inserted."""

    head = ('row', 'says')

    def try_row(self, row):
        db = Db(lab.path('db.sock'))
        try:
            self.try_insert(db, {'op': 'insert', 'table': row[0], 'row': resolved(db, row[1])}, row)
        finally:
            db.close()

    def try_insert(self, db, operation, row):
        raise NotImplementedError

    def inputs(self):
        return []

    def title(self, row):
        return '%s %s' % row[:2]

    def cells(self, row):
        return cell('%s %s' % (row[0], json.dumps(row[1]))), cell(row[-1])


class Schema(Rows):
    """Rows (table, columns, what the registry answers)."""

    def try_insert(self, db, operation, row):
        errors = [r for r in db.attempt(operation) if r and 'error' in r]
        check(errors, 'accepted')
        check_said('%(error)s: %(details)s' % errors[0], row[2])


class Controller(Rows):
    """Rows (table, columns, where castd says something, what)."""

    head = ('row', 'where', 'says')

    def __init__(self, name, about, rows):
        super().__init__(name, about, rows, (told, lab.agents))

    def try_insert(self, db, operation, row):
        log = lab.path('castd.log')
        size = os.path.getsize(log)

        def said():
            if row[2] != LEFT_OUT:
                table, name = row[2].split()
                key = 'host' if table == 'Member' else 'name'
                return [r['status'] for r in db.rows(table, **{key: name})]
            with open(log, encoding='utf-8') as f:
                f.seek(size)
                return [line.rstrip('\n').split('|', 4)[-1] for line in f]
        message = ('left out: ' if row[2] == LEFT_OUT else '') + row[3]
        uuid = db.transact(operation)[0]['uuid']
        try:
            wait_until('castd says %s' % message, lambda: any(matches(message, s) for s in said()))
            if row[2] == LEFT_OUT:
                check_doctor('castd leaves out: ' + row[3])
        finally:
            db.transact({'op': 'delete', 'table': row[0], 'where': [['_uuid', '==', uuid]]})
            # castd has answered a request that was made now: nothing more comes by itself.
            lab.output('castctl', 'group', 'reset', 'settled')

    def cells(self, row):
        return super().cells(row)[0], row[2], cell(row[3])


class Agent(Section):
    """Rows (table, column, value, what the agent says)."""

    head = ('column', 'value', 'says')

    def __init__(self, name, about, rows):
        super().__init__(name, about, rows, (told, lab.agents))

    def of_node(self, db, table):
        """One of n1's rows in that table."""
        node = db.row('Node', name='n1')
        tree = db.row('Tree_Node', node='n1')
        if table in ('Branch', 'Tree_Node'):
            return tree['_uuid'][1] if table == 'Tree_Node' else references(tree['branches'])[0]
        if table in ('Location', 'Node'):
            return (node if table == 'Node' else db.rows('Location')[0])['_uuid'][1]
        column = {'Port': 'ports', 'Sid': 'sids'}[table]
        return references(node[column])[0]

    def try_row(self, row):
        table, column, value, message = row
        db = Db(lab.path('db.sock'))
        with open(lab.path('castd.pid'), encoding='ascii') as f:
            castd = int(f.read())
        where = [['_uuid', '==', ['uuid', self.of_node(db, table)]]]
        old = db.row(table, _uuid=where[0][2])[column]

        def write(text, generation):
            db.transact({'op': 'update', 'table': table, 'where': where, 'row': {column: text}},
                        {'op': 'update', 'table': 'Node', 'where': [['name', '==', 'n1']],
                         'row': {'cfg': generation}})

        def state():
            return db.row('Node', name='n1')['state']
        generation = db.row('Node', name='n1')['cfg']
        before = lab.agents()
        os.kill(castd, signal.SIGSTOP)
        try:
            write(value, generation + 1)
            wait_until('n1 says %s' % message,
                       lambda: matches('generation … refused: ' + message, state()))
            check_equal('what agents run', lab.agents(), before)
        finally:
            write(old, generation)
            wait_until('n1 is as before', lambda: state() == 'ok')
            os.kill(castd, signal.SIGCONT)
            db.close()

    def inputs(self):
        return []

    def title(self, row):
        return '%s.%s %s' % row[:3]

    def cells(self, row):
        return cell('%s.%s' % row[:2]), cell(str(row[2])), cell(row[3])


def registered():
    """Who is registered, and what castd has told the edges of them."""
    db = Db(lab.path('db.sock'))
    members = db.rows('Member')
    branches = db.rows('Branch')
    db.close()
    kept = ('host', 'qpn', 'rkey', 'va', 'len', 'psn', 'epoch', 'want', 'branch', 'lost', 'state')
    return {**{'Member ' + m['host']: json.dumps([m[c] for c in kept]) for m in members},
            **{'Branch ' + b['_uuid'][1]: json.dumps([b['id'], b['qpn']]) for b in branches}}


class Places(Section):
    """Rows (what the edge n1 does, command, exit status, what standard error says), where r1 is an
    active member.  The edge is stopped, and the test says in its place that r1's queue pair
    answers."""

    head = ('edge', 'input', 'exit', 'says')

    def __init__(self, name, about, rows):
        super().__init__(name, about, rows, (registered,))

    def begin(self, row):
        with open(lab.path('n1.pid'), encoding='ascii') as f:
            self.edge = int(f.read())
        os.kill(self.edge, signal.SIGSTOP)

    def answer(self):
        """As the agent of the edge, when it is asked."""
        db = Db(lab.path('db.sock'))
        asked = wait_until('a doubt', lambda: [b for b in db.rows('Branch')
                                               if b['doubt'] != ['set', []]])[0]
        for tree in db.rows('Tree_Node'):
            if asked['_uuid'][1] in references(tree['branches']):
                db.update('Tree_Node', {'_uuid': tree['_uuid']},
                          answered=['map', [[asked['id'], asked['doubt']]]])
        db.close()

    def try_row(self, row):
        edge = threading.Thread(target=self.answer)
        if row[0] == ANSWERS:
            edge.start()
        status, out, err = run(row[1])
        if row[0] == ANSWERS:
            edge.join()
        check_said(err.rstrip('\n'), row[3])
        check_equal('exit status', status, row[2])
        check(not out, 'printed %r', out)

    def end(self, row):
        """The request that may stand is withdrawn."""
        db = Db(lab.path('db.sock'))
        db.update('Member', {}, new_qpn=['set', []], refused='')
        db.update('Tree_Node', {}, answered=['map', []])
        db.close()
        os.kill(self.edge, signal.SIGCONT)
        lab.output('castctl', 'group', 'reset', 'settled')
        wait_until('everything is at rest', lab.at_rest)

    def inputs(self):
        return [row[1] for row in self.rows]

    def title(self, row):
        return row[1]

    def cells(self, row):
        return row[0], cell(row[1]), str(row[2]), cell(row[3])


class Newcomers(Places):
    """The same, where r2 has been added, and the edge was told."""

    def begin(self, row):
        super().begin(row)
        lab.output('castctl', 'member', 'add', 'g', 'r2', '--qpn', '18', '--rkey', '7', '--va', '0',
                   '--len', '4096')
        db = Db(lab.path('db.sock'))
        wait_until('the edge was told of r2', lambda: matches(
            'waiting for node n1 …', db.row('Member', host='r2')['status']))
        db.close()

    def end(self, row):
        lab.output('castctl', '--wait=none', 'member', 'remove', 'g', 'r2')
        super().end(row)
        lab.output('castctl', 'member', 'remove', 'g', 'r2', '--if-exists')
        lab.output('castctl', 'group', 'wait', 'g')
        wait_until('everything is at rest', lab.at_rest)


class Started(Section):
    """Rows (command line of a daemon, the last that it says on standard error).  It runs until it has
    said that, and must then end when told to."""

    head = ('command', 'says')

    def try_row(self, row):
        with tempfile.TemporaryFile('w+') as log:
            p = subprocess.Popen(shlex.split(real(row[0])), stderr=log, stdin=subprocess.DEVNULL)
            try:
                wait_until('it says ' + row[1], lambda: self.says(row, log))
                check(p.poll() is None, 'ended with %r', p.returncode)
                self.check_status(row)
            finally:
                p.terminate()
                p.wait(lab.PATIENCE)
            check_equal('exit status when told to end', p.returncode, 0)

    def check_status(self, row):
        if row[0].startswith('castd'):
            status, _ = lab.control(os.path.join(lab.DIR, 'x'), 'rocecast/status')
            check_said('…|castd|ERR|' + status.rstrip('\n'), row[1])

    def says(self, row, log):
        log.seek(0)
        return any(matches(row[1], line) for line in named(log.read()).splitlines())

    def inputs(self):
        return []

    def cells(self, row):
        return cell(row[0]), cell(row[1])


class Role(Started):
    """Rows (command line of an agent, what Node.state of its node then says)."""

    head = ('command', 'Node.state')

    def __init__(self, name, about, rows):
        super().__init__(name, about, rows, (told, lab.agents))

    def says(self, row, _log):
        db = Db(lab.path('db.sock'))
        try:
            return matches(row[1], db.row('Node', name=self.node(row))['state'])
        finally:
            db.close()

    def node(self, row):
        return re.search('--node=([^ ]+)', row[0])[1]

    def end(self, row):
        db = Db(lab.path('db.sock'))
        node = db.row('Node', name=self.node(row))
        check_equal('generation applied', node['nb_cfg'], 0)
        db.update('Node', {'name': node['name']}, state='', control='')
        db.close()
