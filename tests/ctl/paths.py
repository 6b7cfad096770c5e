# SPDX-License-Identifier: Apache-2.0
"""castctl path: what it shows of the paths that castd has given, and what operators say of them.

castd's part is played by the test: it writes the rows of Destination and Path."""
import json

from world import FakeAgent, check, check_equal

SWITCHES = {'leaf1': 0x100, 'leaf2': 0x200, 'leaf3': 0x300, 'leaf4': 0x400, 'spine5': 0x500, 'spine6': 0x600}
AGENTS = {'a1': 0xa1, 'a3': 0xa3}
LINKS = ('h1-a1', 'a1-leaf1', 'a1-leaf2', 'leaf1-spine5', 'leaf1-spine6', 'leaf2-spine5', 'leaf2-spine6',
         'leaf3-spine5', 'leaf3-spine6', 'leaf4-spine5', 'leaf4-spine6', 'leaf3-a3', 'leaf4-a3', 'a3-h3')
# Number, rank, name, program, and how they are used.
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
    """As castd does."""
    operations, uuids = [], []
    for number, rank, name, program, more in paths:
        row = {'number': number, 'rank': rank, 'name': name, 'program': program, 'disjoint': True,
               'usable': True, 'port': port_number(w, node, name.split(',')[0])}
        uuids.append(['named-uuid', 'p%d' % number])
        operations.append({'op': 'insert', 'table': 'Path', 'row': dict(row, **more),
                           'uuid-name': uuids[-1][1]})
    operations += [
        {'op': 'insert', 'table': 'Destination', 'uuid-name': 'd',
         'row': dict({'name': host, 'address': address, 'policy': 'spread', 'paths': ['set', uuids]},
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
    w.castctl('path policy h1 spread')
    w.refused('path list h1 h3', 2, '^castctl: path list: castd has given node a1 no path to host h3$')
    w.refused('path list h1 h1', 2, 'from h1 to h1 there is no path')
    w.refused('path list h9', 2, "no host named 'h9'")
    w.refused('path list h1 h9', 2, "no host named 'h9'")
    w.castctl('host add h5 --address fd00:a::5')
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
    check_equal('without an agent', (p.returncode, p.stderr),
                (4, 'castctl: node a1: no agent has connected yet\n'))
    check_equal('flows', [r['flows'] for r in json.loads(p.stdout)], [None, None])
    control = w.dir + '/a1.ctl'
    FakeAgent(control, {'rocecast/paths': [
        {'destination': 'fd00:a::3', 'number': 2, 'up': True, 'flows': 3, 'packets': 10, 'bytes': 1000,
         'moved': 1, 'errors': 0},
        {'destination': 'fd00:a::4', 'number': 1, 'up': True, 'flows': 9, 'packets': 9, 'bytes': 9,
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
    two = json.loads(w.castctl('-j path show h1 h3 3'))
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


CASES = (lists, live, shows_path, explains)
