# SPDX-License-Identifier: Apache-2.0
"""Tables of what is wrong in the registry itself, while castd and agents run on it."""
import json
import os
import signal

import lab
from table import Section, cell, check_said, matches
from world import Db, check, check_equal, references, wait_until

# What castd tells nodes.
TOLD = ('Branch', 'Port', 'Route', 'Sid', 'Tree_Node')


def told():
    """Without versions: nodes report to these rows, and tests put them back."""
    return {k: {c: v for c, v in json.loads(row).items() if c != '_version'}
            for k, row in lab.registry().items() if k.split()[0] in TOLD}


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
            if row[2] != 'log':
                table, name = row[2].split()
                key = 'host' if table == 'Member' else 'name'
                return [r['status'] for r in db.rows(table, **{key: name})]
            with open(log, encoding='utf-8') as f:
                f.seek(size)
                return [line.rstrip('\n').split('|', 4)[-1] for line in f]
        uuid = db.transact(operation)[0]['uuid']
        try:
            wait_until('castd says %s' % row[3], lambda: any(matches(row[3], s) for s in said()))
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
        if table == 'Branch':
            tree = db.row('Tree_Node', _uuid=['uuid', references(node['trees'])[0]])
            return references(tree['branches'])[0]
        column = {'Port': 'ports', 'Route': 'routes', 'Sid': 'sids', 'Tree_Node': 'trees'}[table]
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
