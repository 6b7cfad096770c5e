# SPDX-License-Identifier: Apache-2.0
"""castctl path: what it shows of the paths that castd has given, and what operators say of them.

castd's part is played by the test: it writes the rows of Destination and Path."""
import ipaddress
import json
import signal
import struct

from world import FakeAgent, check, check_equal

SWITCHES = {'leaf1': 0x100, 'leaf2': 0x200, 'leaf3': 0x300, 'leaf4': 0x400, 'spine5': 0x500, 'spine6': 0x600}
AGENTS = {'a1': 0xa1, 'a3': 0xa3}
LINKS = ('h1-a1', 'a1-leaf1', 'a1-leaf2', 'leaf1-spine5', 'leaf1-spine6', 'leaf2-spine5', 'leaf2-spine6',
         'leaf3-spine5', 'leaf3-spine6', 'leaf4-spine5', 'leaf4-spine6', 'leaf3-a3', 'leaf4-a3', 'a3-h3')
# Number in flow labels, rank, name, program, and how they are used.
PATHS = ((1, 1, 'leaf1,spine5,leaf3', '5f00:0:100:500:300:a3::', {}),
         (2, 2, 'leaf2,spine6,leaf4', '5f00:0:200:600:400:a3::', {'plane': 'blue'}),
         (4, 3, 'leaf1,spine6,leaf3', '5f00:0:100:600:300:a3::',
          {'disjoint': False, 'usable': False, 'status': 'spine6 is excluded'}),
         (3, 4, 'leaf2,spine5,leaf4,spine6,leaf1,spine5,leaf3',
          '5f00:0:200:500:400:600:100:500,5f00:0:300:a3::', {'disjoint': False}))


def figure(w):
    """draft-filsfils-srv6ops-srv6-ai-backend, section 7, with two of the hosts."""
    for name, number in SWITCHES.items():
        w.castctl('node add %s --id %d --role switch' % (name, number))
    for name, number in AGENTS.items():
        w.castctl('node add %s --id %d --role agent' % (name, number))
    w.castctl('host add h1 --address fd00:a::1')
    w.castctl('host add h3 --address fd00:a::3')
    for link in LINKS:
        a, b = link.split('-')
        w.castctl('link add %s:%s %s:%s' % (a, b, b, a))


def port_number(w, node, name):
    return next(p['number'] for p in json.loads(w.castctl('-j node show ' + node))['ports']
                if p['name'] == name)


def give_paths(w, paths=PATHS, node='a1', host='h3', address='fd00:a::3', **columns):
    """As castd does, which does nothing from here on: they are its rows."""
    w.castd.send_signal(signal.SIGSTOP)
    operations, uuids = [], []
    for number, rank, name, program, more in paths:
        row = {'node': node, 'number': number, 'rank': rank, 'name': name, 'program': program, 'disjoint': True,
               'usable': True, 'port': port_number(w, node, name.split(',')[0])}
        uuids.append(['named-uuid', 'p%d' % number])
        operations.append({'op': 'insert', 'table': 'Path', 'row': dict(row, **more),
                           'uuid-name': uuids[-1][1]})
    operations += [
        {'op': 'insert', 'table': 'Destination', 'uuid-name': 'd',
         'row': dict({'node': node, 'name': host, 'address': address, 'policy': 'spread', 'paths': ['set', uuids]},
                     **columns)},
        {'op': 'mutate', 'table': 'Node', 'where': [['name', '==', node]],
         'mutations': [['destinations', 'insert', ['named-uuid', 'd']]]}]
    w.db.transact(*operations)


def listed(w, line=''):
    return json.loads(w.castctl('-j path list ' + line))


def lists(w):
    """Paths by rank, and why there are none."""
    figure(w)
    check_equal('nothing yet', listed(w), [])
    w.refused('path list h1 h3', 2, r"^castctl: path list: host h1 has path policy none, so castd gives it "
              r'no paths \(castctl path policy h1 failover\)$')
    w.castctl('host add h5 --address fd00:a::5')
    w.settled()
    w.castd.send_signal(signal.SIGSTOP)
    w.castctl('--wait=none path policy h1 spread')
    w.refused('path list h1 h3', 2, '^castctl: path list: castd has given node a1 no path to host h3$')
    w.refused('path list h1 h1', 2, 'from h1 to h1 there is no path')
    w.refused('path list h9', 2, "no host named 'h9'")
    w.refused('path list h1 h9', 2, "no host named 'h9'")
    w.refused('path list h5 h1', 2, 'host h5 has no link to a node')
    give_paths(w, pinned=2, pins=['map', [[17, 1], [18, 2]]])
    rows = listed(w)
    check_equal('by rank', [(p['rank'], p['number'], p['path']) for p in rows],
                [(rank, number, name) for number, rank, name, _, _ in PATHS])
    check_equal('the first', rows[0], {
        'from': 'h1', 'to': 'h3', 'rank': 1, 'number': 1, 'plane': '', 'path': 'leaf1,spine5,leaf3',
        'program': '5f00:0:100:500:300:a3::', 'disjoint': True, 'usable': True, 'pinned': 'QPN 0x11',
        'status': ''})
    check_equal('the second', [rows[1][k] for k in ('plane', 'pinned')], ['blue', 'all, QPN 0x12'])
    check_equal('the third', [rows[2][k] for k in ('usable', 'pinned', 'status')],
                [False, None, 'spine6 is excluded'])
    check_equal('of a host', listed(w, 'h1'), rows)
    check_equal('of two', listed(w, 'h1 h3'), rows)
    check_equal('of the other', listed(w, 'h3'), [])
    text = w.castctl('path list')
    check_equal('heading', text.split('\n')[0].split(), [
        'from', 'to', 'rank', 'number', 'plane', 'path', 'program', 'disjoint', 'usable', 'pinned', 'status'])


def live(w):
    """What only agents know stands beside the rows."""
    figure(w)
    give_paths(w, PATHS[:2])
    p = w.run('path', 'list', '--live', '-j')
    check_equal('without an agent', (p.returncode, json.loads(p.stderr)['message']),
                (4, 'node a1: no agent has connected yet'))
    check_equal('flows', [r['flows'] for r in json.loads(p.stdout)], [None, None])
    control = w.dir + '/a1.ctl'
    FakeAgent(control, {'rocecast/paths': [
        {'destination': 'fd00:a::3', 'path': 2, 'up': True, 'flows': 3, 'packets': 10, 'bytes': 1000,
         'moved': 1, 'errors': 0},
        {'destination': 'fd00:a::4', 'path': 1, 'up': True, 'flows': 9, 'packets': 9, 'bytes': 9,
         'moved': 9, 'errors': 9}]})
    w.db.update('Node', {'name': 'a1'}, control=control)
    rows = listed(w, '--live')
    check_equal('live', [[r[k] for k in ('up', 'flows', 'packets', 'bytes', 'moved', 'errors')] for r in rows],
                [[None] * 6, [True, 3, 10, 1000, 1, 0]])
    check('flows' not in listed(w)[0], 'live numbers without --live')


def segments(shown):
    return [tuple(s[k] for k in ('node', 'destination', 'behaviour', 'port', 'next', 'then'))
            for s in shown['segments']]


WAY = [('a1', 'fd00:a::3', 'H.Encaps.Red', 'leaf1', 'leaf1', 'puts the header in front'),
       ('leaf1', '5f00:0:100:500:300:a3::', 'uN', 'spine5', 'spine5', 'shifts'),
       ('spine5', '5f00:0:500:300:a3::', 'uN', 'leaf3', 'leaf3', 'shifts'),
       ('leaf3', '5f00:0:300:a3::', 'uN', 'a3', 'a3', 'shifts'),
       ('a3', '5f00:0:a3::', 'uN', None, None, 'takes the header off'),
       ('a3', 'fd00:a::3', None, 'h3', 'h3', 'forwards what was inside')]


def shows_path(w):
    """Segment by segment, and what the header costs."""
    figure(w)
    give_paths(w, PATHS + (
        (5, 5, 'leaf1,spine5,leaf4', '5f00:0:100:500:400::', {}),
        (6, 6, 'leaf1,leaf3', '5f00:0:100:300::', {})))
    shown = json.loads(w.castctl('-j path show h1 h3'))
    check_equal('the way', segments(shown), WAY)
    check_equal('header', (shown['header_bytes'], shown['srh_segments']), (40, 0))
    for name in ('leaf1,spine5,leaf3', '1'):
        check_equal('by ' + name, json.loads(w.castctl('-j path show h1 h3 ' + name)), shown)
    text = w.castctl('path show h1 h3').split('\n')
    check('header_bytes 40' in [' '.join(line.split()) for line in text], '%r', text)
    check_equal('a line of text', next(line.split() for line in text if line.startswith('  spine5')),
                'spine5 5f00:0:500:300:a3:: uN leaf3 leaf3 shifts'.split())
    two = json.loads(w.castctl('-j path show h1 h3 4'))
    check_equal('header with an SRH', (two['header_bytes'], two['srh_segments']), (64, 1))
    check_equal('where the next container comes from', segments(two)[6], (
        'spine5', '5f00:0:500::', 'uN', 'leaf3', 'leaf3', 'takes the next segment from the SRH'))
    check_equal('behind it', segments(two)[7:], [
        ('leaf3', '5f00:0:300:a3::', 'uN', 'a3', 'a3', 'shifts'), *WAY[4:]])
    usd = json.loads(w.castctl('-j path show h1 h3 5'))
    check_equal('the last switch takes it off', segments(usd)[-3:], [
        ('leaf4', '5f00:0:400::', 'uN', None, None, 'takes the header off'),
        ('leaf4', 'fd00:a::3', None, 'a3', 'a3', 'forwards what was inside'), WAY[5]])
    lost = segments(json.loads(w.castctl('-j path show h1 h3 6')))
    check_equal('no neighbour', lost[-1][:5], ('leaf1', '5f00:0:100:300::', 'uN', None, None))
    check(lost[-1][5].startswith('dropped: usid_unknown ('), '%r', lost[-1])
    w.refused('path show h1 h3 9', 2, r"no path '9' from h1 to h3 \(castctl path list h1 h3\)")
    w.refused('path show h1 h3 leaf1,spine5', 2, "no path 'leaf1,spine5' from h1 to h3")


def explained(w, program):
    return segments(json.loads(w.castctl('-j path explain ' + program)))


def explains(w):
    """Any program, by the registry's nodes."""
    figure(w)
    check_equal('a path', explained(w, '5f00:0:100:500:300:a3::'), WAY[1:5])
    number = port_number(w, 'leaf1', 'spine6')
    check_equal('adjacencies', explained(w, '5f00:0:100:e1%02x:e1%02x:300:e003::' % (
        number, port_number(w, 'spine6', 'leaf3')))[0:2], [
            ('leaf1', '5f00:0:100:e1%02x:e1%02x:300:e003:0' % (number, port_number(w, 'spine6', 'leaf3')),
             'uA', 'spine6', 'spine6', 'shifts'),
            ('spine6', '5f00:0:e1%02x:300:e003::' % port_number(w, 'spine6', 'leaf3'), 'uA', 'leaf3', 'leaf3',
             'shifts')])
    check_equal('a service', explained(w, '5f00:0:300:e003::'),
                [('leaf3', '5f00:0:300:e003::', 'End.DT6', None, None, 'takes the header off')])
    check_equal('a group', explained(w, '5f00:0:500:300:f007::')[-1],
                ('leaf3', '5f00:0:300:f007::', 'End.Replicate', None, None, 'replicates for Replication-ID 7'))
    check_equal('an SRH', [s[0::5] for s in explained(w, '5f00:0:100:500::,5f00:0:300::')], [
        ('leaf1', 'shifts'), ('spine5', 'takes the next segment from the SRH'),
        ('leaf3', 'takes the header off')])
    for program, then in (('5f00:0:100:0:300::', 'dropped: usid_zero'), ('5f00:0:100:400::', 'dropped: usid_unknown'),
                          ('5f00:0:100:e900::', 'dropped: sid_unknown'), ('5f00:0:777::', 'no node has id 1911'),
                          ('5f00:0:100::1', 'takes it: its own address'), ('fd00::1', 'no program'),
                          ('5f00:0:100:e1ff:300::', 'it has no port 255')):
        got = explained(w, program)
        check(len(got) == 1 and got[0][5].startswith(then), '%s: %r', program, got)
    check_equal('own uSIDs', [s[0::5] for s in explained(w, '5f00:0:100:100:500::')], [
        ('leaf1', 'shifts'), ('leaf1', 'shifts'), ('spine5', 'takes the header off')])
    for bad in ('x', '5f00::1,', ','.join(['5f00:0:100::'] * 5)):
        w.refused('path explain ' + bad, 1, '^castctl: path explain: .*: must be IPv6 addresses, at most 4, '
                  'with commas between them$')


def rules(w):
    """What operators have said, as castctl shows it and as the registry has it."""
    shown = json.loads(w.castctl('-j path rules'))
    rows = {(r['kind'], r['from'], r['to'], None if isinstance(r['qpn'], list) else r['qpn'], r['path'])
            for r in w.db.rows('Path_Rule')}
    check_equal('path rules', {(r['rule'], r['from'], r['to'], r['qpn'], r['path']) for r in shown}, rows)
    return rows


def pins(w):
    """A pin is a rule for all packets, or for those of one QPN; another one takes its place."""
    figure(w)
    give_paths(w)
    w.castctl('--wait=none path pin h1 h3 2')
    w.castctl('--wait=none path pin h1 h3 leaf1,spine5,leaf3 --qpn 0x11')
    qpn = ('pin', 'h1', 'h3', 17, 'leaf1,spine5,leaf3')
    check_equal('two', rules(w), {('pin', 'h1', 'h3', None, 'leaf2,spine6,leaf4'), qpn})
    w.castctl('--wait=none path pin h1 h3 1')
    check_equal('another', rules(w), {('pin', 'h1', 'h3', None, 'leaf1,spine5,leaf3'), qpn})
    w.castctl('--wait=none path pin h1 h3 --program 5F00:0:0200:0500:0300:a3:: --uplink leaf2')
    own = ('pin', 'h1', 'h3', None, 'leaf2 5f00:0:200:500:300:a3::')
    check_equal('a program', rules(w), {own, qpn})

    for line, status, why in (
            ('h1 h3 9', 2, r"no path '9' from h1 to h3 \(castctl path list h1 h3\)"),
            ('h1 h3 3', 2, 'path leaf1,spine6,leaf3 from h1 to h3 is not usable: spine6 is excluded; what is '
                           r'pinned to it would be dropped \(--force\)'),
            ('h3 h1 1', 2, 'host h3 has path policy none'),
            ('h1 h9 1', 2, "no host named 'h9'"),
            ('h1 h3 1 --qpn 1', 1, '--qpn 1: must be 2..16777214'),
            ('h1 h3 --program 5f00:0:100::', 1, 'either PATH, or --program with --uplink'),
            ('h1 h3 --uplink leaf1', 1, 'either PATH, or --program with --uplink'),
            ('h1 h3 1 --program 5f00:0:100:: --uplink leaf1', 1, 'either PATH, or --program with --uplink'),
            ('h1 h3 --program fd00::1 --uplink leaf1', 1,
             '--program fd00::1: must be containers in 5f00::/32'),
            ('h1 h3 --program 5f00:0:100 --uplink leaf1', 1, '--program 5f00:0:100: must be IPv6 addresses'),
            ('h1 h3 --program 5f00:0:100:: --uplink leaf3', 2, '--uplink leaf3: no link between a1 and leaf3'),
            ('h1 h3 --program 5f00:0:100:: --uplink leaf9', 2, "no node named 'leaf9'")):
        w.refused('path pin ' + line, status, why)
    check_equal('nothing of that is done', rules(w), {own, qpn})
    w.castctl('--wait=none path pin h1 h3 3 --force')
    check_equal('forced', rules(w), {('pin', 'h1', 'h3', None, 'leaf1,spine6,leaf3'), qpn})

    w.refused('path unpin h1 h3 --qpn 18', 2, '^castctl: path unpin: packets from h1 to h3 of QPN 0x12 are not pinned$')
    w.castctl('--wait=none path unpin h1 h3 --qpn 18 --if-exists')
    w.castctl('--wait=none path unpin h1 h3')
    check_equal('the other stays', rules(w), {qpn})
    w.refused('path unpin h1 h3', 2, '^castctl: path unpin: packets from h1 to h3 are not pinned$')
    w.refused('path unpin h1 h9 --if-exists', 2, "no host named 'h9'")
    w.castctl('--wait=none path unpin h1 h3 --qpn 17')
    check_equal('none', rules(w), set())


def excludes(w):
    """Nodes, links and single paths are out of use, and back."""
    figure(w)
    give_paths(w)
    w.castctl('--wait=none path exclude spine5')
    w.castctl('--wait=none path exclude leaf3 spine6')
    w.castctl('--wait=none path exclude h1 h3 1')
    w.castctl('--wait=none path exclude h1 h3 leaf1,spine5,leaf3')  # once more
    check_equal('rules', rules(w), {('exclude', 'h1', 'h3', None, 'leaf1,spine5,leaf3')})
    check_equal('nodes', [n['name'] for n in json.loads(w.castctl('-j node list')) if n['excluded']], ['spine5'])
    check_equal('links', [(i['a'], i['b']) for i in json.loads(w.castctl('-j link list')) if i['excluded']],
                [('leaf3:spine6', 'spine6:leaf3')])
    w.castctl('--wait=none path pin h1 h3 2')
    for verb in ('exclude', 'include'):
        for line, why in (('spine9', "no node named 'spine9'"), ('a1', 'node a1 has role agent: no path is over it'),
                          ('spine5 spine6', 'no link between spine5 and spine6'),
                          ('h1 a1', 'h1 is a host: no path is over its link'),
                          ('h1 h3 9', "no path '9' from h1 to h3"), ('h3 h1 1', 'host h3 has path policy none')):
            w.refused('path %s %s' % (verb, line), 2, '^castctl: path %s: %s' % (verb, why))
    w.refused('path exclude h1 h3 2', 2, 'packets from h1 to h3 are pinned to path leaf2,spine6,leaf4')
    w.castctl('--wait=none path include h1 h3 4')  # never excluded
    check_equal('as before', rules(w), {('exclude', 'h1', 'h3', None, 'leaf1,spine5,leaf3'),
                                        ('pin', 'h1', 'h3', None, 'leaf2,spine6,leaf4')})
    w.db.transact({'op': 'mutate', 'table': 'Node', 'where': [],
                   'mutations': [['destinations', 'delete', ['set', [
                       d['_uuid'] for d in w.db.rows('Destination')]]]]})
    w.castctl('--wait=none path include h1 h3 leaf1,spine5,leaf3')  # though castd does not give it any more
    w.castctl('--wait=none path include spine5')
    w.castctl('--wait=none path include spine6 leaf3')
    check_equal('rules', [kind for kind, *_ in rules(w)], ['pin'])
    check(not any(n['excluded'] for n in w.db.rows('Node') + w.db.rows('Link')), 'something is excluded')


def path_policies(w):
    """Of one host or of all; spray only if it must be.  And how paths end."""
    figure(w)

    def shown():
        return [h['path_policy'] for h in json.loads(w.castctl('-j host list'))]
    check_equal('at first', shown(), ['none', 'none'])
    w.castctl('path policy h3 message')
    check_equal('of one', shown(), ['none', 'message'])
    w.castctl('path policy all failover')
    check_equal('of all', shown(), ['failover', 'failover'])
    w.castctl('host set h1 --path-policy spread --floor 1M')
    check_equal('by host set', shown(), ['spread', 'failover'])
    for line in ('path policy h1 spray', 'path policy all spray', 'host set h1 --path-policy spray'):
        w.refused(line, 2, r'policy spray: an RC receiver drops what comes out of order, .*\(docs/paths.md; --force\)$')
    w.refused('path policy h9 spread', 2, "no host named 'h9'")
    w.refused('path policy h1 best', 1, "^castctl: path policy: 'best' must be none, failover, spread, message or spray$")
    check_equal('nothing of that is done', shown(), ['spread', 'failover'])
    w.castctl('path policy h1 spray --force')
    w.castctl('host set h3 --path-policy spray --force')
    check_equal('forced', shown(), ['spray', 'spray'])
    w.refused('host set h3 --force', 1, 'nothing to set')

    w.castctl('path form dt6')
    check_equal('form', w.db.row('Global')['path_form'], 'dt6')
    w.refused('path form usp', 1, "^castctl: path form: 'usp' must be auto, usd, agent or dt6$")
    check_equal('form', w.db.row('Global')['path_form'], 'dt6')


def planes(w):
    """Planes of nodes, and the programs that are taken from a source agent."""
    figure(w)
    w.castctl('node set spine5 --plane blue')
    w.castctl('node add spine7 --id 7 --role switch --plane red')
    w.castctl('node add spine7 --id 7 --role switch --plane red --may-exist')
    w.refused('node add spine7 --id 7 --role switch --plane blue --may-exist', 2, "node spine7 exists with plane 'red'")
    check_equal('planes', [(n['name'], n['plane']) for n in json.loads(w.castctl('-j node list')) if n['plane']],
                [('spine5', 'blue'), ('spine7', 'red')])
    check_equal('none', w.run('node', 'set', 'spine5', '--plane', '').returncode, 0)
    check_equal('none', w.db.row('Node', name='spine5')['plane'], '')
    w.refused('node set spine5 --plane a/b', 1, "plane 'a/b': must be 1 to 63 of")
    w.refused('node set spine5', 1, 'node set: nothing to set')

    w.castctl('node set a1 --programs 5f00:0:200::/48,5f00:0:100:500::/64')
    check_equal('programs', [p['prefix'] for p in json.loads(w.castctl('-j node show a1'))['programs']],
                ['5f00:0:100:500::/64', '5f00:0:200::/48'])
    w.refused('node set spine5 --programs 5f00::/32', 2, 'node spine5 has role switch: --programs is for role agent')
    for bad in ('5f00:0:200::', '5f00::/16', 'fd00::/32', '5f00:0:200::1/48', '5f00:0:100::/48,x'):
        w.refused('node set a1 --programs ' + bad, 1, "^castctl: --programs %s: '.*' must be a prefix in 5f00::/32$" % bad)
    check_equal('as before', len(w.db.row('Node', name='a1')['programs'][1]), 2)
    check_equal('all', w.run('node', 'set', 'a1', '--programs', '').returncode, 0)
    check_equal('all', w.db.row('Node', name='a1')['programs'], ['set', []])


def group_paths(w):
    """The way of a group's packets to the root of its tree, and its plane."""
    figure(w)
    w.castctl('group add g --via leaf1,spine5,leaf3 --plane blue')
    w.castctl('group add g --via leaf1,spine5,leaf3 --may-exist')
    w.refused('group add g --via leaf1 --may-exist', 2, 'group g exists with another --via or --plane')

    def shown():
        return tuple(w.show()[k] for k in ('via', 'plane'))
    check_equal('added', shown(), ('leaf1,spine5,leaf3', 'blue'))
    w.castctl('source set g --host h1 --qpn 17')
    w.castctl('path pin g leaf2,spine6,leaf4')
    check_equal('pinned', shown(), ('leaf2,spine6,leaf4', 'blue'))
    for line, status, why in (
            ('path pin g leaf1,leaf3', 2, 'path leaf1,leaf3: no link between leaf1 and leaf3'),
            ('path pin g spine5,leaf3', 2, 'path spine5,leaf3: no link between a1 and spine5'),
            ('path pin g leaf1,spine9', 2, "no node named 'spine9'"),
            ('path pin g leaf3,a3', 2, 'path leaf3,a3: no link between a1 and leaf3'),
            ('path pin g a1', 2, 'path a1: node a1 has role agent: a path has switches'),
            ('path pin g leaf1,,leaf3', 1, "path 'leaf1,,leaf3': must be names of nodes with commas between them"),
            ('path pin g leaf1 --qpn 17', 1, "path pin: a group's path has no options"),
            ('path pin x leaf1', 2, "no group named 'x'"), ('path unpin x', 2, "no group named 'x'"),
            ('group add h --via leaf1,leaf3', 2, 'no link between leaf1 and leaf3'),
            ('group set g --via leaf1, --plane red', 1, "path 'leaf1,': must be names"),
            ('group set g --plane a/b', 1, "plane 'a/b'")):
        w.refused(line, status, why)
    check_equal('as before', shown(), ('leaf2,spine6,leaf4', 'blue'))
    check('h' not in [g['name'] for g in w.db.rows('Group')], 'group h was added')
    w.castctl('path unpin g')
    check_equal('none', shown(), ('', 'blue'))
    w.castctl('group set g --via leaf1')
    w.db.update('Group', {'name': 'g'}, started=True)
    for line in ('group set g --via leaf2', 'path unpin g', 'group set g --plane red'):
        w.refused(line, 2, r"epoch 1 of group g has started with '\w+'; set it after castctl group reset g$")
    w.castctl('group set g --via leaf1 --plane blue')
    check_equal('as before', shown(), ('leaf1', 'blue'))


def frame(source, destination, label=0, srh=b'', inner=b''):
    """An Ethernet frame with IPv6 in IPv6, as hexadecimal digits."""
    def ip6(src, dst, payload, flow, next_header):
        return ((6 << 28 | flow).to_bytes(4, 'big') + len(payload).to_bytes(2, 'big')
                + bytes([next_header, 64]) + ipaddress.ip_address(src).packed
                + ipaddress.ip_address(dst).packed + payload)
    inner = inner or ip6('fd00:a::1', 'fd00:a::3', b'', 0, 59)
    return (bytes.fromhex('025f03000001025f0500000186dd')
            + ip6(source, destination, srh + inner, label, 43 if srh else 41)).hex()


def srh(left, *segments):
    return (bytes([41, 2 * len(segments), 4, left, len(segments) - 1, 0, 0, 0])
            + b''.join(ipaddress.ip_address(s).packed for s in segments))


# Source, destination, label, SRH, and what is said of the program.
PROGRAMS = (
    ('5f00:0:a1::1', '5f00:0:100:500:300:a3::', 0x00123, b'',
     'program leaf1 > spine5 > leaf3 > a3 (uSIDs 0100 0500 0300 00a3), path 1 to h3'),
    ('5f00:0:a1::1', '5f00:0:300:a3::', 0x00123, b'', 'program leaf3 > a3 (uSIDs 0300 00a3), path 1 to h3'),
    # Another's label, and another program.
    ('5f00:0:a3::1', '5f00:0:100:500:300:a3::', 0x00123, b'',
     'program leaf1 > spine5 > leaf3 > a3 (uSIDs 0100 0500 0300 00a3), flow label 0x00123'),
    ('5f00:0:a1::1', '5f00:0:100:600:300::', 0x00123, b'',
     'program leaf1 > spine6 > leaf3 (uSIDs 0100 0600 0300), flow label 0x00123'),
    ('5f00:0:a1::1', '5f00:0:100:500::', 0x00300, srh(1, '5f00:0:300:a3::'),
     'program leaf1 > spine5 > leaf3 > a3 (uSIDs 0100 0500 | 0300 00a3), path 3 to h3'),
    ('5f00:0:a1::1', '5f00:0:100:500:300:f007::', 0xfffff, srh(1, 'fd00:ffff::1'),
     'program leaf1 > spine5 > leaf3 End.Replicate (uSIDs 0100 0500 0300 f007), flow label 0xfffff'),
    ('5f00:0:a1::1', '5f00:0:300:e003::', 0x00123, b'', None),
    ('5f00:0:a1::1', '5f00:0:100:400::', 0, b'', 'program leaf1, dropped: usid_unknown ('),
    ('5f00:0:a1::1', '5f00:0:777:400::', 0, b'', 'program ? (uSIDs 0777 0400), flow label 0x00000'),
)


def explains_packets(w):
    """trace and capture show say by which nodes a program leads, and which path it is."""
    figure(w)
    give_paths(w)
    control, pcap = w.dir + '/leaf3.ctl', w.dir + '/x.pcap'
    summary = ''
    FakeAgent(control, {'rocecast/trace': lambda: {'steps': [], 'drops': [], 'state': [], 'sent': [
        {'port': 'a3', 'len': 94, 'hex': '', 'summary': summary}]}})
    w.db.update('Node', {'name': 'leaf3'}, control=control)
    with open(pcap, 'wb') as f:
        f.write(struct.pack('=IHHiIII', 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for i, (source, destination, label, header, _) in enumerate(PROGRAMS):
            data = bytes.fromhex(frame(source, destination, label, header))
            f.write(struct.pack('=IIII', 1000 + i, 500, len(data), len(data)) + data)
    frames = json.loads(w.castctl('-j capture show ' + pcap))
    lines = w.castctl('capture show ' + pcap).splitlines()
    check_equal('frames', (len(frames), len(lines)), (len(PROGRAMS),) * 2)
    for i, (source, destination, label, header, want) in enumerate(PROGRAMS):
        got = frames[i]
        check((got['program'] or 'None').startswith(str(want)), 'frame %d: %r', i, got)
        check_equal('frame %d' % i, (got['number'], got['time_us'], got['len']),
                    (i + 1, i * 1000000, len(frame(source, destination, label, header)) // 2))
        check(lines[i].startswith('%d  %d.000000  %d bytes: %s > ' % (i + 1, i, got['len'], source)), '%r', lines[i])
        check((want or '; inside ') in lines[i], '%r', lines[i])
        check('inside fd00:a::1 > fd00:a::3' in lines[i], '%r', lines[i])
        summary = got['summary']
        traced = json.loads(w.castctl('-j trace leaf3 spine5 ' + frame(source, destination, label, header)))
        check_equal('trace', (traced['program'], traced['sent'][0]['program']), (got['program'],) * 2)

    FakeAgent(control + '2', {'rocecast/trace': 'received on spine5, 94 bytes: %s\n  nothing is sent' % frames[0]['summary']})
    w.db.update('Node', {'name': 'leaf3'}, control=control + '2')
    text = w.castctl('trace leaf3 spine5 ' + frame(*PROGRAMS[0][:3]))
    check_equal('as text', text, 'received on spine5, 94 bytes: 5f00:0:a1::1 > 5f00:0:100:500:300:a3::, hop limit 64, '
                '%s; inside fd00:a::1 > fd00:a::3, hop limit 64, next header 59\n  nothing is sent\n' % PROGRAMS[0][4])


def reads_captures(w):
    """Files that are none, and those of others."""
    pcap = w.dir + '/x.pcap'
    data = bytes(60)

    def write(order, magic, link, *rest):
        with open(pcap, 'wb') as f:
            f.write(struct.pack(order + 'IHHiIII', magic, 2, 4, 0, 0, 65535, link) + b''.join(rest))
    for order in '<>':
        for magic, fraction in ((0xa1b2c3d4, 7), (0xa1b23c4d, 7000)):
            write(order, magic, 1, struct.pack(order + 'IIII', 1, 0, 60, 60), data,
                  struct.pack(order + 'IIII', 1, fraction, 60, 1500), data,
                  struct.pack(order + 'IIII', 1, 0, 60, 60), data[:59])  # being written
            check_equal('%s %x' % (order, magic),
                        [(f['time_us'], f['len']) for f in json.loads(w.castctl('-j capture show ' + pcap))],
                        [(0, 60), (7, 1500)])
    write('=', 0xa1b2c3d4, 1, struct.pack('=IIII', 1, 0, 70000000, 70000000))
    w.refused('capture show ' + pcap, 2, '^castctl: capture show: .*: a frame of 70000000 bytes: the file is broken$')
    write('=', 0xa1b2c3d4, 113)
    w.refused('capture show ' + pcap, 2, 'no pcap file of Ethernet frames')
    with open(pcap, 'wb') as f:
        f.write(b'x')
    w.refused('capture show ' + pcap, 2, 'no pcap file of Ethernet frames')
    w.refused('capture show %s/none' % w.dir, 2, 'No such file or directory')


CASES = (lists, live, shows_path, explains, pins, excludes, path_policies, planes, group_paths,
         explains_packets, reads_captures)
