# SPDX-License-Identifier: Apache-2.0
"""What castctl says: whether it is true, with which units and in which base, and as JSON."""
import json
import re

import losses
from world import check, check_equal, wait_until

WHY = r'r2 lost: no progress for 17\.2 s at PSN 7 \(seen by n1\)'


def row(text, first):
    """The line of a table that begins with this word, by the table's heading."""
    lines = text.splitlines()
    line = next(line for line in lines[1:] if line.split()[0] == first)
    return dict(zip(lines[0].split(), re.split(r'  +', line)))


def value(text, name):
    return next(line.split(None, 1)[1].strip() for line in text.splitlines()
                if line.split(None, 1)[0] == name)


def degraded(w):
    """A group that goes on without a member does not say that it is ready; who wants to send may."""
    losses.ready_group(w, 'prune')
    check_equal('whole', [w.show()[k] for k in ('state', 'active_members', 'wanted_members', 'lacking')],
                ['ready', 3, 3, []])
    losses.report(w, 'n1', 'r2', losses.SILENT)
    w.apply_all_until('r2 is out', lambda: losses.all_applied(w) and w.members_at('n1') == ['r1', 'r3'])
    w.expect_state('degraded', '^%s$' % WHY)
    shown = w.show()
    check_equal('numbers', (shown['active_members'], shown['wanted_members']), (2, 3))
    check_equal('who', [(m['host'], m['state']) for m in shown['lacking']], [('r2', 'lost')])
    check(re.fullmatch('no progress for .* .seen by n1.', shown['lacking'][0]['status']), '%r',
          shown['lacking'])
    check_equal('listed', json.loads(w.castctl('-j group list'))[0], {
        k: v for k, v in shown.items() if k not in ('source', 'members', 'nodes')})

    text = w.castctl('group show g')
    check_equal('state', value(text, 'state'), 'degraded 2/3')
    check(re.fullmatch(WHY, value(text, 'status')), 'status: %s', text)
    listed = row(w.castctl('group list'), 'g')
    check_equal('state in the list', listed['state'], 'degraded 2/3')
    check(re.fullmatch(WHY, listed['status']), 'status in the list: %r', listed)
    check(w.run('tree', 'show', 'g').stdout.startswith('group g  epoch 1  degraded 2/3: r2 lost: '),
          'tree show')

    # It serves all the same.
    w.castctl('group wait g --epoch 1 --members 2')
    w.refused('--timeout 1 group wait g --members 3', 3, 'state degraded, r2 lost: .*2 of 3')
    w.restart_castd()
    w.castctl('group set g --nak literal')
    w.apply_all_until('a setting is applied', lambda: losses.all_applied(w))
    w.expect_state('degraded', '^%s$' % WHY)
    w.expect_member('r1', 'active')
    # Who has left is not wanted any more.
    w.castctl('member leave g r2')
    w.apply_all_until('r2 has left', lambda: w.member('r2')['state'] == 'left')
    w.expect_state('ready', '^$')
    check_equal('numbers', [w.show()[k] for k in ('active_members', 'wanted_members')], [2, 2])


def degraded_by_failure(w):
    """A member that no tree reaches any more is missing like a lost one; one that is about to
    join is not: it was never served in this epoch."""
    w.ready_group(['r1', 'r9'])
    w.cut('n1', 'n2')
    w.apply_all_until('r9 fails', lambda: w.member('r9')['state'] == 'failed')
    w.apply_all_until('the others go on', lambda: losses.all_applied(w))
    w.expect_state('degraded', '(^|; )r9 failed: .*no path')
    w.castctl('group wait g --members 1')
    w.castctl('member leave g r9')
    w.apply_all_until('r9 has left', lambda: w.member('r9')['state'] == 'left')
    wait_until('whole again', lambda: w.show()['state'] == 'ready')
    w.set_started()
    w.castctl('member add g r3 --qpn 17 --rkey 7 --va 0x1000 --len 4096')
    w.expect_member('r3', 'joining', '^waiting for node n1 ')
    check_equal('state', w.show()['state'], 'ready')


def figures(w):
    """Times have units in texts, and in the names of JSON's members; lengths are in bytes."""
    w.ready_group(['r1'])
    text = w.castctl('group show g')
    check_equal('texts', [value(text, k) for k in ('liveness', 'qp_timeout', 'mtu', 'region_len')],
                ['17.2 s', '20 (4.29 s)', '1024 bytes', '4096 bytes'])
    check_equal('JSON', [w.show()[k] for k in ('liveness_ms', 'qp_timeout', 'mtu', 'region_len')],
                [17180, 20, 1024, 4096])
    check('liveness' not in w.show(), 'a time without a unit in JSON')
    check_equal('listed', row(w.castctl('group list'), 'g')['liveness'], '17.2 s')
    check_equal('len', row(w.castctl('member list g'), 'r1')['len'], '4096 bytes')
    for msec, shown in ((0, 'never'), (20000, '20 s'), (123456, '123 s'), (3600000, '3600 s')):
        w.castctl('group set g --liveness %d' % msec)
        check_equal('liveness', value(w.castctl('group show g'), 'liveness'), shown)
    w.castctl('group add quick --timeout 14')
    w.castctl('group set quick --liveness 269')
    text = w.castctl('group show quick')
    check_equal('less than a second', (value(text, 'liveness'), value(text, 'qp_timeout')),
                ('269 ms', '14 (67.1 ms)'))


def bases(w):
    """QPNs and keys are hexadecimal in texts, numbers in JSON, and taken in both ways."""
    w.star()
    w.castctl('group add g')
    w.castctl('source set g --host h0 --qpn 0x12')
    w.castctl('member add g r1 --qpn 0x11 --rkey 0xabc --va 4096 --len 0x1000')
    w.castctl('member add g r1 --qpn 17 --rkey 2748 --va 0x1000 --len 4096 --may-exist')
    w.apply_all_until('ready', lambda: w.show()['state'] == 'ready')
    text, shown = w.castctl('group show g'), w.show()
    check_equal('designated', [value(text, k) for k in ('designated_qpn', 'designated_rkey', 'region_va')],
                ['0x101', '%#x' % shown['designated_rkey'], '0x0'])
    check_equal('JSON', (shown['designated_qpn'], shown['source']['qpn'], shown['members'][0]['rkey']),
                (0x101, 0x12, 0xabc))
    check_equal('member', [row(w.castctl('member list g'), 'r1')[k] for k in ('qpn', 'rkey', 'va')],
                ['0x11', '0xabc', '0x1000'])
    check_equal('source', value(w.castctl('source show g'), 'qpn'), '0x12')
    check_equal('group list', row(w.castctl('group list'), 'g')['designated_qpn'], '0x101')
    check('epoch 2, Designated QPN 0x102, ' in w.castctl('group reset g'), 'group reset')
    w.castctl('member add g r1 --qpn 17')
    w.refused('member add g r1 --qpn 18', 2, 'with QPN 0x11 already')


FAMILIES = {
    'node': ['add', 'set', 'del', 'list', 'show'],
    'path': ['list', 'show', 'explain', 'rules', 'pin', 'unpin', 'exclude', 'include', 'policy', 'form',
             'probe', 'health', 'fault'],
    'host': ['add', 'del', 'list', 'show', 'set'],
    'link': ['add', 'del', 'list', 'impair', 'external'],
    'group': ['add', 'set', 'plane', 'del', 'list', 'show', 'reset', 'wait'],
    'source': ['set', 'show', 'del'],
    'key': ['add', 'list', 'del'],
    'member': ['add', 'leave', 'drain', 'remove', 'list'],
    'connection': ['list'],
    'tree': ['show'],
    'capture': ['start', 'record', 'stop', 'list', 'show'],
    'registry': ['init', 'join', 'leave', 'status', 'backup', 'restore'],
}


def families(w):
    """The first word of a command alone: what can follow, a line each."""
    for family, verbs in FAMILIES.items():
        p = w.run(family)
        lines = p.stderr.splitlines()
        check_equal(family + ': exit status, standard output', (p.returncode, p.stdout), (1, ''))
        check_equal(family + ', first line', lines[0],
                    'castctl: %s: a verb is missing (castctl %s --help):' % (family, family))
        for line, verb in zip(lines[1:], verbs, strict=True):
            check(re.fullmatch(r'  %s %s( .*)?   *[a-z].*[^;:,]' % (family, verb), line), '%s: %r', family, line)
            check(len(line) <= 120, '%s: %r', family, line)
        for options in ([], ['--db', 'x']):
            expect_error(w, 1, '^%s: a verb is missing' % family, *options, family, '-j')


def expect_error(w, status, pattern, *argv):
    """castctl ends so, and says the same to people, for whom it is one line, and as JSON."""
    p = w.run(*argv)
    check_equal('%r: exit status' % (argv,), p.returncode, status)
    said = json.loads(p.stdout)
    check_equal('%r: members' % (argv,), (sorted(said), said['status']), (['error', 'status'], status))
    check(re.search(pattern, said['error']), '%r says %r, not %s', argv, said['error'], pattern)
    line = json.loads(p.stderr)
    check_equal('%r: lines on standard error' % (argv,), p.stderr.count('\n'), 1)
    check_equal('%r: its members' % (argv,), sorted(line),
                ['column', 'command', 'exit_status', 'file', 'line', 'message', 'program', 'suggestion'])
    check_equal('%r: standard error' % (argv,), [line[k] for k in ('program', 'message', 'exit_status')],
                ['castctl', said['error'], status])
    return line


def json_errors(w):
    """With -j errors are JSON, whatever is wrong, and wherever -j stands."""
    for status, pattern, line in (
            (1, "^a command is missing", '-j'),
            (1, r"^unknown command 'nonsense' \(castctl --help\)$", '-j nonsense'),
            (1, r"^unknown command 'group nonsense' \(castctl --help\)$", 'group nonsense --json'),
            (1, "^unrecognized option '--nonsense'$", '-j --nonsense group list'),
            (1, "^unrecognized option '--nonsense'$", '--nonsense -j group list'),
            (1, "^group list: unrecognized option '--nonsense=1'$", 'group list --nonsense=1 -j'),
            (1, "^group list: option '--json' doesn't allow an argument$", 'group list -j --json=1'),
            (1, "^group list: invalid option -- 'x'$", 'group list -j -x'),
            (1, "^group wait: option '--members' requires an argument$", 'group wait g -j --members'),
            (1, "^group list: option requires an argument -- 'p'$", 'group list -j -p'),
            (1, "^group add: option '--m' is ambiguous; possibilities: '--mode' '--mtu' '--min-rate' '--may-exist'$",
             'group add g -j --m'),
            (1, '^group show: missing argument: group show GROUP', '-j group show'),
            (1, "^group list: unexpected argument 'x'", '-j group list x'),
            (1, '^--wait x: must be', '-j --wait=x group list'),
            (1, '^--timeout 0: must be', '-j --timeout 0 group list'),
            (1, '^--mtu 7: must be', '-j group add g --mtu 7'),
            (1, '^--verbose x:y:z: ', '-j --verbose=x:y:z group list'),
            (1, '^--ca-cert /nonsense: No such file', '-j --ca-cert=/nonsense group list'),
            (1, "^no command begins with 'x'", '-j help x'),
            (1, '^--db nonsense: must be', '-j --db=nonsense group list'),
            (2, "^group show: no group named 'g'$", '-j group show g'),
            (2, "^source set: no group named 'g'$", '-j source set g --host h --qpn 17'),
            (3, '^registry unix:/nonsense: ', '-j --db=unix:/nonsense group list')):
        expect_error(w, status, pattern, *line.split())
    expect_error(w, 1, 'line 1\nline 2', '-j', 'group', 'show', 'a', 'line 1\nline 2')
    w.ready_group(['r1'])
    expect_error(w, 3, '^group g not ready after 1 s: ', '-j', '--timeout', '1', 'group', 'wait', 'g', '--members', '2')
    # Agents that do not answer: the result is there, and why it is not whole.
    p = w.run('-j', 'stats', 'n1')
    check_equal('exit status', p.returncode, 4)
    check_equal('the result', json.loads(p.stdout), {'n1': None})
    check_equal('what is missing', json.loads(p.stderr),
                {'program': 'castctl', 'command': 'stats', 'message': 'node n1: no agent has connected yet',
                 'suggestion': None, 'file': None, 'line': None, 'column': None, 'exit_status': None})


def suggestions(w):
    """Who mistypes a word is told which one is close to it: one, or none."""
    for line, meant in (
            ('gruop list', 'group list'), ('group lsit', 'group list'), ('gruop lsit', 'group list'),
            ('gruop', 'group'), ('gruop --nonsense', 'group'), ('stast n4', 'stats'), ('lnk impiar a b none', 'link impair'),
            ('group nonsense', None), ('nonsense list', None), ('x', None)):
        wrong = ' '.join(w for w in line.split()[:2] if w[0] != '-')
        p = w.run(*line.split())
        hint = "did you mean '%s'?" % meant if meant else 'castctl --help'
        check_equal(line, (p.returncode, p.stdout, p.stderr),
                    (1, '', "castctl: unknown command '%s' (%s)\n" % (wrong, hint)))
        said = expect_error(w, 1, '^unknown command', '-j', *line.split())
        check_equal('%s, as JSON' % line, (said['command'], said['suggestion']), (None, meant))
    for line, meant in (('group add g --pollicy prune', '--policy'), ('group add g --pollicy=prune', '--policy'),
                        ('group list --josn', '--json'), ('group list --policy=prune', None),
                        ('group add g --x', None)):
        hint = " (did you mean '%s'?)" % meant if meant else ''
        said = expect_error(w, 1, r"^group \w+: unrecognized option '--.*'%s$" % re.escape(hint), '-j', *line.split())
        check_equal(line, (said['command'], said['suggestion']), (' '.join(line.split()[:2]), meant))


CASES = (degraded, degraded_by_failure, figures, bases, families, json_errors, suggestions)
