# SPDX-License-Identifier: Apache-2.0
"""Control characters in the registry, written past castctl: no terminal and no log obeys them."""
import json
import re
import signal

from world import SCHEMA, check, check_equal, wait_until

# Clears the screen, rings, begins a line; DEL; C1, as UTF-8; changes the direction of what follows.
EVIL = 'x\x1b[2J\x07\nforged line\rforged line\x7f\u009b31m\u202eyz'
SHOWN = r'x\x1b[2J\x07\nforged line\rforged line\u007f\u009b31m\u202eyz'
COMMANDS = ('node list', 'node show n1', 'node show a0', 'host list', 'link list', 'group list',
            'group show g', 'group wait g', 'host show h0', 'source show g', 'key list', 'member list g', 'tree show g',
            'tree show g --dot', 'stats', 'stats g', 'capture list', 'trace n1 tr1 00',
            'doctor', 'watch --until ready')


def harmless(what, text):
    found = re.search('[\0-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]|^forged', text, re.M)
    check(not found, '%s: %r in\n%s', what, found and found[0], ascii(text))


def text_columns():
    """Tables and columns that hold any text: scalars, sets, and maps as keys and as values."""
    with open(SCHEMA, encoding='utf-8') as f:
        tables = json.load(f)['tables']
    for table, content in tables.items():
        for column, about in content['columns'].items():
            kind = about['type'] if isinstance(about['type'], dict) else {'key': about['type']}
            key, value = kind.get('key'), kind.get('value')
            is_set = kind.get('max', 1) != 1
            if value and key in ('string', {'type': 'string'}) and value not in ('string', {'type': 'string'}):
                number = value.get('minInteger', 1) if isinstance(value, dict) else 1
                yield table, column, lambda i, n=number: ['map', [[EVIL + str(i), n]]]
            elif value in ('string', {'type': 'string'}):
                number = key in ('integer', {'type': 'integer'})
                yield table, column, lambda i, n=number: ['map', [[i if n else 'k%d' % i, EVIL]]]
            elif key in ('string', {'type': 'string'}):
                yield table, column, lambda i, s=is_set: (['set', [EVIL + str(i)]] if s
                                                          else EVIL + str(i))


def outputs(w):
    """Of all commands: what text and JSON show."""
    text, values = '', ''
    for line in COMMANDS:
        p = w.run('--timeout', '1', *line.split())
        harmless('castctl ' + line, p.stdout + p.stderr)
        text += p.stdout + p.stderr
        if '--dot' not in line:
            p = w.run('--timeout', '1', '-j', *line.split())
            harmless('castctl -j ' + line, p.stderr)
            harmless('castctl -j ' + line, p.stdout)
            whole = p.stdout.splitlines() if line.startswith('watch') else [p.stdout]
            values += ''.join(json.dumps(json.loads(part)) for part in whole if part)
    return text, values


def columns_shown(w):
    """Each text column with control characters: they are shown as escapes, and JSON has them."""
    w.ready_group()
    w.castctl('--wait=castd link impair n1 n2 loss=1%')
    w.castd.send_signal(signal.SIGSTOP)
    in_text, in_json = set(), set()
    for table, column, evil in text_columns():
        rows = w.db.rows(table)
        if not rows:
            row = {c: evil(0) for t, c, evil in text_columns() if t == table and c == column}
            w.db.attempt({'op': 'insert', 'table': table, 'row': row})
            rows = w.db.rows(table)
        for i, row in enumerate(rows):
            w.db.update(table, {'_uuid': row['_uuid']}, **{column: evil(i + 1)})
        text, values = outputs(w)
        if SHOWN in text:
            in_text.add((table, column))
        if json.dumps(EVIL)[1:-1] in values:
            in_json.add((table, column))
        for row in rows:
            w.db.update(table, {'_uuid': row['_uuid']}, **{column: row[column]})
    for wanted in (('Node', 'name'), ('Node', 'state'), ('Node', 'control'), ('Host', 'name'),
                   ('Host', 'address'), ('Link', 'a'), ('Group', 'name'), ('Group', 'status'),
                   ('Group', 'proxy'), ('Member', 'status'), ('Port', 'mac')):
        check(wanted in in_text, 'no text shows %s.%s; they show %r', *wanted, sorted(in_text))
        check(wanted in in_json, 'no JSON has %s.%s; they have %r', *wanted, sorted(in_json))
    w.castd.send_signal(signal.SIGCONT)


def log_lines(w):
    """castd leaves such rows out, and says so on one line each."""
    w.star()
    w.db.transact({'op': 'insert', 'table': 'Node', 'row': {'name': EVIL, 'id': 77, 'role': 'switch'}},
                  {'op': 'insert', 'table': 'Host', 'row': {'name': EVIL, 'address': EVIL}},
                  {'op': 'insert', 'table': 'Link', 'row': {'a': EVIL, 'b': EVIL, 'kind': 'tap'}},
                  {'op': 'insert', 'table': 'Group', 'row': {'name': EVIL, 'mode': 'replicate',
                                                             'mtu': 1024, 'timeout': 20}})
    wait_until('castd says so', lambda: w.log().count(SHOWN) >= 3)
    harmless('log', w.log())
    for line in w.log().splitlines():
        check(re.match(r'\d{4}-\d\d-\d\dT[\d:.]+Z\|', line), 'a line that no daemon began: %r', line)


def refused_as_input(w):
    """castctl takes none of them, and says so in harmless words."""
    w.star()
    w.castctl('group add g')
    before = w.dump()
    for argv in (['node', 'add', EVIL, '--id', '9', '--role', 'switch'],
                 ['host', 'add', EVIL, '--address', 'fd00:1::77'],
                 ['host', 'add', 'r77', '--address', 'fd00:1::7' + EVIL],
                 ['link', 'add', 'n1:' + EVIL, 'n2:x'], ['link', 'add', EVIL + ':x', 'n2:x'],
                 ['group', 'add', EVIL], ['group', 'add', 'h', '--policy', EVIL],
                 ['member', 'add', 'g', EVIL, '--qpn', '17'], ['member', 'add', EVIL, 'r1', '--qpn', '17'],
                 ['member', 'add', 'g', 'r1', '--qpn', EVIL], ['source', 'set', 'g', '--host', EVIL, '--qpn', '1'],
                 ['key', 'add', EVIL, '--generate'], ['link', 'impair', 'n1', 'n2', 'loss=' + EVIL],
                 ['node', 'del', EVIL], [EVIL], ['stats', EVIL], ['trace', 'n1', 'tr1', EVIL],
                 ['--db', 'unix:' + w.sock + EVIL, 'node', 'list'], ['--db', 'tcp:' + EVIL, 'node', 'list']):
        p = w.run(*argv)
        check(p.returncode in (1, 2), 'castctl %r: exit status %d', argv, p.returncode)
        harmless('castctl %r' % argv, p.stdout + p.stderr)
    check_equal('registry', w.dump(), before)


def reason_of_an_agent(w):
    """What an agent says of a member that it has lost goes through castd, its log and castctl."""
    w.ready_group()
    w.set_started()
    tree = w.tree('n1')
    w.db.update('Tree_Node', {'_uuid': tree['_uuid']},
                lost=['map', [[tree['branches']['r1']['id'], EVIL]]])
    wait_until('r1 is lost', lambda: EVIL in w.member('r1')['status'])
    check(EVIL in w.db.row('Member', host='r1')['lost'], '%r', w.db.row('Member', host='r1'))
    check(re.search('WARN.* member r1 is lost: .*' + re.escape(SHOWN), w.log()), '%s', w.log())
    harmless('log', w.log())
    check(SHOWN in outputs(w)[0], 'it is not shown')


CASES = (columns_shown, reason_of_an_agent, log_lines, refused_as_input)
