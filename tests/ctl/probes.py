# SPDX-License-Identifier: Apache-2.0
"""Probes: what castd tells nodes, what castctl sets and shows, and what of it makes no sense."""
import json
import os
import re

from destinations import clos, destination, generation, place
from watch import Watch
from world import BIN, FakeAgent, check, check_equal, references, wait_until

LOOPS = {'leaf1', 'leaf2', 'leaf1,spine5', 'leaf1,spine6', 'leaf2,spine5', 'leaf2,spine6'}


def probes(w, node='a1'):
    """Rows of a node, by kind and name."""
    nodes, rows = (r['rows'] for r in w.db.transact(
        {'op': 'select', 'table': 'Node', 'where': [['name', '==', node]]},
        {'op': 'select', 'table': 'Probe', 'where': []}))
    mine = set(references(nodes[0]['probes']))
    return {(r['kind'], r['name']): r for r in rows if r['_uuid'][1] in mine}


def labelled(w):
    """The figure with planes, and h1's packets on paths."""
    clos(w)
    w.castctl('node set spine5 --plane A')
    w.castctl('node set spine6 --plane B')
    place(w)


def probes_told(w):
    """Loops to what is near, a peer probe on each way, and each side knows the other's."""
    labelled(w)
    mine = probes(w)
    check_equal('loops', {name for kind, name in mine if kind == 'loop'}, LOOPS)
    check_equal('peers', len([1 for kind, _ in mine if kind == 'peer']), 8)
    check_equal('whose', {r['node'] for r in mine.values()}, {'a1'})
    r = mine['peer', 'leaf1,spine5,leaf3,a3']
    check_equal('row', {k: r[k] for k in (
        'plane', 'port', 'peer', 'program', 'back', 'interval', 'timeout', 'large', 'reverse', 'elements')},
        {'plane': 'A', 'port': r['port'], 'peer': '5f00:0:3::1', 'program': '5f00:0:100:500:300:3::',
         'back': '5f00:0:300:500:100:1::', 'interval': 100, 'timeout': 50, 'large': 4220, 'reverse': 0,
         'elements': 'a1>leaf1 leaf1 leaf1>spine5 spine5 spine5>leaf3 leaf3 leaf3>a3 a3 '
                     'a3>leaf3 leaf3 leaf3>spine5 spine5 spine5>leaf1 leaf1 leaf1>a1'})
    loop = mine['loop', 'leaf1,spine5']
    check_equal('loop', [loop[k] for k in ('program', 'back', 'peer', 'reverse')],
                ['5f00:0:100:500:100:1::', '', '', 0])
    check_equal('path', destination(w)['paths']['leaf1,spine5,leaf3']['probe'], r['number'])
    check_equal('probers', w.db.row('Node', name='a3')['probers'], '5f00:0:1::1')
    check_equal('nobody probes a1', w.db.row('Node', name='a1')['probers'], ['set', []])
    check_equal("a3's", probes(w, 'a3'), {})
    # h3 sends, too: both know of each other, and nobody else hears of it.
    before = {n: generation(w, n) for n in ('leaf1', 'spine5', 'a1', 'a3')}
    w.db.update('Host', {'name': 'h3'}, path_policy='spread')  # no request, of which all nodes hear.
    wait_until('a3 probes', lambda: probes(w, 'a3'))
    back = probes(w, 'a3')['peer', 'leaf3,spine5,leaf1,a1']
    now = probes(w)['peer', 'leaf1,spine5,leaf3,a3']
    check_equal('pair', (back['reverse'], now['reverse']), (now['number'], back['number']))
    check_equal('the same row', now['_uuid'], r['_uuid'])
    check_equal('number', now['number'], r['number'])
    after = {n: generation(w, n) for n in before}
    check_equal('told', {n for n in before if after[n] != before[n]}, {'a1', 'a3'})


def open_vswitch(w):
    """What passes one has no checksum, all else has."""
    clos(w)
    w.db.update('Node', {'name': 'spine6'}, role='ovs')
    place(w)
    check_equal('without', {name for (_, name), r in probes(w).items() if r['no_checksum']},
                {name for _, name in probes(w) if 'spine6' in name})


def states_stay(w):
    """What an agent says of a probe makes castd write nothing; what others write there it takes back."""
    labelled(w)
    row = probes(w)['peer', 'leaf1,spine5,leaf3,a3']
    w.db.update('Probe', {'_uuid': row['_uuid']}, state='bad', since=1795000000000, heard=True)
    w.db.update('Host', {'name': 'h3'}, path_policy='spread')  # castd has seen both.
    wait_until('a3 probes', lambda: probes(w, 'a3'))
    with_partners = generation(w)
    w.db.update('Probe', {'_uuid': row['_uuid']}, state='good', since=1795000000001)
    w.db.update('Node', {'name': 'leaf4'}, no_aggregation=True)
    w.db.update('Probe', {'_uuid': row['_uuid']}, state='bad', since=1795000000000)
    w.castctl('--wait=castd group add g')
    check_equal('generation', generation(w) - with_partners, 0)
    w.db.update('Probe', {'_uuid': row['_uuid']}, program='5f00::')
    wait_until('castd has put it right', lambda: probes(w)['peer', 'leaf1,spine5,leaf3,a3']['program'] == row['program'])
    now = probes(w)['peer', 'leaf1,spine5,leaf3,a3']
    check_equal('state', (now['state'], now['since'], now['heard']), ('bad', 1795000000000, True))
    # One less, and the others stay.
    rows = {k: r['_uuid'] for k, r in probes(w).items()}
    w.castctl('link del leaf1:spine5')
    left = probes(w)
    gone = {k for k in rows if 'leaf1,spine5' in k[1]}
    check_equal('gone', set(rows) - set(left), gone)
    check_equal('the same rows', {k: left[k]['_uuid'] for k in left}, {k: u for k, u in rows.items() if k not in gone})


def shown(w):
    return [(r['plane'], r['interval_ms'], r['timeout_ms'], r['set']) for r in json.loads(w.castctl('-j path probe'))]


def times(w, name='leaf1,spine5,leaf3,a3'):
    r = probes(w).get(('peer', name))
    return r and (r['interval'], r['timeout'])


def probe_settings(w):
    """castctl path probe."""
    labelled(w)
    check_equal('by default', shown(w), [(None, 100, 50, 'default'), ('A', 100, 50, 'default'), ('B', 100, 50, 'default')])
    lines = [line.split() for line in w.castctl('path probe').splitlines()]
    check_equal('as text', lines[:2], [['plane', 'interval', 'timeout', 'set'], ['-', '100', 'ms', '50', 'ms', 'default']])
    w.castctl('path probe --interval 200ms --timeout 20ms')
    check_equal('all', times(w), (200, 20))
    w.castctl('path probe --plane A --interval 30ms')
    check_equal('A', times(w), (30, 15))
    check_equal('B', times(w, 'leaf1,spine6,leaf3,a3'), (200, 20))
    w.castctl('path probe --plane A --timeout 12ms')
    check_equal('A', times(w), (30, 12))
    check_equal('shown', shown(w), [(None, 200, 20, 'yes'), ('A', 30, 12, 'yes'), ('B', 200, 20, 'default')])
    w.castctl('path probe --plane B off')
    check_equal('B is off', times(w, 'leaf1,spine6,leaf3,a3'), None)
    check_equal('its paths', destination(w)['paths']['leaf1,spine6,leaf3']['probe'], 0)
    check('off' in w.castctl('path probe').splitlines()[3], '%s', w.castctl('path probe'))
    w.castctl('path probe off')
    check_equal('A still', times(w), (30, 12))
    check_equal('loops to leaves are off', {k for k in probes(w) if k[0] == 'loop'},
                {('loop', 'leaf1,spine5'), ('loop', 'leaf2,spine5')})
    w.castctl('path probe --plane A default')
    check_equal('nothing is probed', probes(w), {})
    check_equal('nobody answers', w.db.row('Node', name='a3')['probers'], ['set', []])
    w.castctl('path probe --plane B default')
    w.castctl('path probe default')
    check_equal('as before', len(probes(w)), 14)
    check_equal('registry', {k: w.db.row('Global')[k] for k in ('probe_interval', 'probe_intervals', 'probe_timeouts')},
                {'probe_interval': ['set', []], 'probe_intervals': ['map', []], 'probe_timeouts': ['map', []]})
    w.castctl('path probe --interval 30ms')
    w.refused('path probe --timeout 31ms', 2, r'^castctl: path probe: all: the time-out would be longer than the '
              r'interval, 30 ms$')
    w.castctl('path probe --plane A --timeout 20ms')
    w.refused('path probe --interval 15ms', 2, r'path probe: plane A: the time-out would be longer than the interval, 15 ms$')


def past_castctl(w):
    """Settings that contradict each other: castd says so, and what is left makes sense."""
    labelled(w)
    w.db.update('Global', {}, probe_interval=40, probe_timeout=90,
                probe_timeouts=['map', [['A', 500], ['no label', 5]]])
    wait_until('castd follows', lambda: times(w, 'leaf1,spine6,leaf3,a3') == (40, 40))
    check_equal('A', times(w), (40, 40))
    check(re.search(r'WARN\|Global.probe_timeout: it is longer than the interval, which holds instead', w.log()), '%s', w.log())
    check(re.search(r'WARN\|Global.probe_timeouts: plane A: it is longer', w.log()), '%s', w.log())
    check_equal('shown', shown(w), [(None, 40, 40, 'yes'), ('A', 40, 40, 'yes'), ('B', 40, 40, 'default')])


def health(w):
    """castctl path health: from the registry, and as of now."""
    labelled(w)
    numbers = {name: probes(w)['peer', name + ',a3']['number'] for name in ('leaf1,spine5,leaf3', 'leaf2,spine6,leaf4')}
    bad = probes(w)['peer', 'leaf1,spine5,leaf3,a3']
    w.db.update('Probe', {'_uuid': bad['_uuid']}, state='bad', since=1795000000123)

    def rows(*options):
        return {r['path']: r for r in json.loads(w.castctl(' '.join(('-j path health h1 h3',) + options)))}
    row = rows()['leaf1,spine5,leaf3']
    check_equal('row', row, {'from': 'h1', 'to': 'h3', 'rank': row['rank'], 'path': 'leaf1,spine5,leaf3', 'plane': 'A',
                             'usable': True, 'state': 'bad', 'since': '2026-11-18T11:06:40.123Z',
                             'probe': numbers['leaf1,spine5,leaf3'], 'kind': 'peer'})
    check_equal('not said yet', [rows()['leaf2,spine6,leaf4'][k] for k in ('state', 'since')], ['unknown', None])
    check_equal('all', json.loads(w.castctl('-j path health')), json.loads(w.castctl('-j path health h1 h3')))
    check_equal('heading', w.castctl('path health h1').split('\n')[0].split(),
                ['from', 'to', 'rank', 'path', 'plane', 'usable', 'state', 'since', 'probe', 'kind'])
    w.castctl('path exclude h1 h3 leaf1,spine5,leaf3')
    check_equal('excluded', [rows()['leaf1,spine5,leaf3'][k] for k in ('usable', 'state')], [False, 'bad'])
    w.castctl('path probe --plane B off')
    check_equal('not probed', [rows()['leaf1,spine6,leaf3'][k] for k in ('state', 'probe', 'kind')], [None, None, None])
    p = w.run('-j', 'path', 'health', 'h1', 'h3', '--live')
    check_equal('without an agent', (p.returncode, json.loads(p.stderr)['message']),
                (4, 'node a1: no agent has connected yet'))
    control = w.dir + '/a1.ctl'
    FakeAgent(control, {'rocecast/probes': [
        {'number': numbers['leaf1,spine5,leaf3'], 'kind': 'peer', 'name': 'leaf1,spine5,leaf3,a3', 'plane': 'A',
         'state': 'recovering', 'for_us': 2500000, 'sent': 100, 'returned': 90, 'lost': 10, 'late': 1, 'marked': 3,
         'rtt_us': 412, 'rtt_mean_us': 400, 'lost_there': 7, 'lost_back': 2, 'heard': True}]})
    w.db.update('Node', {'name': 'a1'}, control=control)
    row = rows('--live')['leaf1,spine5,leaf3']
    check_equal('live', [row[k] for k in ('state', 'rtt_us', 'sent', 'lost', 'there', 'back', 'marked')],
                ['recovering', 412, 100, 10, 7, 2, 3])
    check_equal('others', [rows('--live')['leaf1,spine5,leaf4'][k] for k in ('state', 'rtt_us', 'sent')], ['unknown', None, None])
    check('412 us' in w.castctl('path health h1 h3 --live'), '%s', w.castctl('path health h1 h3 --live'))
    w.refused('path health h1 h1', 2, 'from h1 to h1 there is no path')
    w.refused('path health h3 h1', 2, 'path policy none')


def counted(w):
    """castctl stats: what a node's probes have found out, in one line."""
    labelled(w)
    control = w.dir + '/a1.ctl'
    counters = {'ports': {}, 'drops': {}, 'paths': [], 'probes': {
        'sent': 1000, 'returned': 990, 'lost': 10, 'late': 2, 'marked': 5, 'bad': 1}}
    FakeAgent(control, {'rocecast/counters': lambda: counters, 'rocecast/groups': []})
    w.db.update('Node', {'name': 'a1'}, control=control)
    check_equal('JSON', json.loads(w.castctl('-j stats a1'))['a1']['probes'], counters['probes'])
    lines = [line.split() for line in w.castctl('stats a1').splitlines()]
    check(['probes', 'returned', 'lost', 'late', 'marked', 'bad'] in lines, '%r', lines)
    check(['1000', '990', '10', '2', '5', '1'] in lines, '%r', lines)
    counters['probes'] = dict(counters['probes'], sent=0)
    check('probes' not in w.castctl('stats a1'), '%s', w.castctl('stats a1'))


def paths_watched(w):
    """castctl watch tells of paths that become bad and good, unless it watches a group."""
    labelled(w)
    w.castctl('group add g')
    uuid = {name: probes(w)['peer', name + ',a3']['_uuid'] for name in ('leaf1,spine5,leaf3', 'leaf1,spine6,leaf3')}

    def say(name, state, since=1795000000123):
        w.db.update('Probe', {'_uuid': uuid[name]}, state=state, since=since)
    say('leaf1,spine6,leaf3', 'bad')
    with Watch(w, '') as watch, Watch(w, 'g') as only:
        watch.take('g:pending=')
        check_equal('at the start', [(e['path'], e['event']) for e in watch.lines if e.get('path')],
                    [('leaf1,spine6,leaf3,a3', 'path-bad')])
        for state in ('suspect', 'good', 'bad'):
            say('leaf1,spine5,leaf3', state)
        check_equal('bad', watch.take('path-bad'), ['path-bad'])
        for state in ('recovering', 'bad', 'recovering', 'good'):
            say('leaf1,spine5,leaf3', state)
        check_equal('good', watch.take('path-good'), ['path-good'])
        e = watch.last()
        check_equal('event', {k: e[k] for k in ('node', 'path', 'kind', 'plane', 'group', 'member', 'since', 'initial')},
                    {'node': 'a1', 'path': 'leaf1,spine5,leaf3,a3', 'kind': 'peer', 'plane': 'A', 'group': None,
                     'member': None, 'since': '2026-11-18T11:06:40.123Z', 'initial': False})
        w.castctl('group del g')
        watch.take('g:deleted')
        only.end()
        check(not [e for e in only.lines if e.get('path')], 'a group has paths: %r', only.lines)
    with Watch(w, '--until path-bad', text=True) as watch:
        check_equal('exit status', watch.end()[0], 0)
        check(re.match(r'\S+  -  -  path-bad: a1 by leaf1,spine6,leaf3,a3 \(peer, plane B\)$', watch.lines[-1]), '%r', watch.lines)


# What agents refuse: columns of a Probe, of its Node or of a Path, and what is said.
NONSENSE = (
    ({'name': 'leaf1,,x'}, 'Probe.name "leaf1,,x": must be names of nodes, joined by commas'),
    ({'program': 'x'}, 'Probe.program "x": must be at most 4 IPv6 addresses, joined by commas'),
    ({'program': ''}, 'Probe.program "": must be at most 4'),
    ({'back': ''}, 'Probe.back "": must be at most 4'),
    ({'peer': 'nobody'}, 'Probe.peer "nobody": not an IPv6 address'),
    ({'plane': 'a b'}, 'Probe.plane "a b": '),
    ({'port': 99}, 'Probe.port "leaf1,spine5,leaf3,a3": no port has number 99'),
    ({'interval': 10, 'timeout': 11}, 'Probe.timeout "leaf1,spine5,leaf3,a3": 11 is more than its interval'),
    ({'large': 9217}, 'Probe.large "9217": must be 0..9216'),
    ({'kind': 'loop'}, 'Probe.peer "5f00:0:3::1": probe leaf1,spine5,leaf3,a3 is a loop'),
    ({'kind': 'loop', 'peer': ''}, 'Probe.back "5f00:0:300:500:100:1::": probe leaf1,spine5,leaf3,a3 is a loop'),
    ({'kind': 'loop', 'peer': '', 'back': '', 'reverse': 5}, 'Probe.reverse "leaf1,spine5,leaf3,a3": the probe is a loop'),
)


def refused_by_agents(w):
    """Rows that make no sense are refused by name, and the agent keeps what it has."""
    labelled(w)
    agent = w.start(os.path.join(BIN, 'srcagent'), '--node=a1', '--unixctl=' + os.path.join(w.dir, 'a1.ctl'))
    wait_until('the agent has looked', lambda: w.db.row('Node', name='a1')['state'])
    w.stop(w.castd)
    row = probes(w)['peer', 'leaf1,spine5,leaf3,a3']
    other = next(r for k, r in probes(w).items() if k == ('peer', 'leaf1,spine6,leaf3,a3'))
    good = {k: v for k, v in row.items() if not k.startswith('_')}

    def expect(what, say, *operations):
        w.db.transact(*operations, {'op': 'mutate', 'table': 'Node', 'where': [['name', '==', 'a1']],
                                    'mutations': [['cfg', '+=', 1]]})
        cfg = generation(w)
        wait_until('%r: generation %d is answered' % (what, cfg),
                   lambda: 'generation %d' % cfg in w.db.row('Node', name='a1')['state'])
        state = w.db.row('Node', name='a1')['state']
        check(say in state, '%r: %s', what, state)

    def update(table, uuid, row):
        return {'op': 'update', 'table': table, 'where': [['_uuid', '==', uuid]], 'row': row}
    for columns, say in NONSENSE:
        expect(columns, say, update('Probe', row['_uuid'], columns))
        w.db.transact(update('Probe', row['_uuid'], good))
    expect('number twice', 'Probe.number "', update('Probe', row['_uuid'], {'number': other['number']}))
    w.db.transact(update('Probe', row['_uuid'], good))
    path = destination(w)['paths']['leaf1,spine5,leaf3']
    free = next(n for n in range(1, 4096) if n not in {r['number'] for r in probes(w).values()})
    expect('path', 'Path.probe "leaf1,spine5,leaf3": no probe has number %d' % free,
           update('Path', path['_uuid'], {'probe': free}))
    w.db.transact(update('Path', path['_uuid'], {'probe': path['probe']}))
    expect('prober', 'Node.probers "me": not an IPv6 address',
           update('Node', w.db.row('Node', name='a1')['_uuid'], {'probers': ['set', ['me']]}))
    check_equal('exit status on SIGTERM', w.stop(agent), 0)


CASES = (probes_told, open_vswitch, states_stay, probe_settings, past_castctl, health, counted, paths_watched, refused_by_agents)
