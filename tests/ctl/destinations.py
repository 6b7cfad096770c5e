# SPDX-License-Identifier: Apache-2.0
"""What castd tells nodes of paths: rows in, rows out."""
import re

from world import check, check_equal, references, wait_until

SWITCHES = {'leaf1': 0x100, 'leaf2': 0x200, 'leaf3': 0x300, 'leaf4': 0x400, 'spine5': 0x500,
            'spine6': 0x600}
H3 = {'leaf1,spine5,leaf3', 'leaf1,spine6,leaf3', 'leaf1,spine5,leaf4', 'leaf1,spine6,leaf4',
      'leaf2,spine5,leaf3', 'leaf2,spine6,leaf3', 'leaf2,spine5,leaf4', 'leaf2,spine6,leaf4'}


def clos(w):
    """draft-filsfils-srv6ops-srv6-ai-backend section 7: h1 and h3, each behind an agent that has two
    leaves."""
    for name, number in SWITCHES.items():
        w.castctl('node add %s --id %d --role switch' % (name, number))
    for host, leaves in ((1, 'leaf1 leaf2'), (3, 'leaf3 leaf4')):
        w.castctl('node add a%d --id %d --role agent' % (host, host))
        w.castctl('host add h%d --address fd00:1::%d' % (host, host))
        w.castctl('link add h%d:d a%d:h' % (host, host))
        for leaf in leaves.split():
            w.castctl('link add a%d:%s %s:a%d' % (host, leaf, leaf, host))
    for leaf in 'leaf1 leaf2 leaf3 leaf4'.split():
        for spine in 'spine5 spine6'.split():
            w.castctl('link add %s:%s %s:%s' % (leaf, spine, spine, leaf))


def place(w, host='h1', policy='spread'):
    """As castctl does: a request besides."""
    w.db.update('Host', {'name': host}, path_policy=policy)
    w.settled()


def destination(w, node='a1', host='h3'):
    """The row with its paths by name; None: there is none."""
    nodes, paths, destinations = (r['rows'] for r in w.db.transact(  # one: castd may write in between.
        {'op': 'select', 'table': 'Node', 'where': [['name', '==', node]]},
        {'op': 'select', 'table': 'Path', 'where': []},
        {'op': 'select', 'table': 'Destination', 'where': [['name', '==', host]]}))
    mine = set(references(nodes[0]['destinations']))
    paths = {p['_uuid'][1]: p for p in paths}
    for d in destinations:
        if d['_uuid'][1] in mine:
            d['paths'] = {paths[u]['name']: paths[u] for u in references(d['paths'])}
            return d
    return None


def generation(w, node='a1'):
    return w.db.row('Node', name=node)['cfg']


def uuids(d, *without):
    return {name: p['_uuid'] for name, p in d['paths'].items() if name not in without}


def rule(w, kind, path, **more):
    row = dict({'kind': kind, 'from': 'h1', 'to': 'h3', 'path': path}, **more)
    w.db.transact({'op': 'insert', 'table': 'Path_Rule', 'row': row})


def unusable(d):
    return {name: p['status'] for name, p in d['paths'].items() if not p['usable']}


def told(w, what, condition):
    wait_until(what, lambda: condition(destination(w)))
    return destination(w)


def paths(w):
    """All shortest paths with their programs, only if there is a policy; both directions."""
    clos(w)
    w.settled()
    check_equal('without a policy', w.db.rows('Destination') + w.db.rows('Path'), [])
    place(w)
    d = destination(w)
    check_equal('destination', {k: d[k] for k in ('node', 'address', 'policy', 'pinned', 'pins')},
                {'node': 'a1', 'address': 'fd00:1::3', 'policy': 'spread', 'pinned': 0,
                 'pins': ['map', []]})
    check_equal('paths', set(d['paths']), H3)
    check_equal('ranks', sorted(p['rank'] for p in d['paths'].values()), list(range(1, 9)))
    check_equal('numbers', len({p['number'] for p in d['paths'].values()}), 8)
    check_equal('disjoint', sum(p['disjoint'] for p in d['paths'].values()), 2)
    check_equal('unusable', unusable(d), {})
    ports = {p['name']: p['number'] for p in w.db.rows('Port')
             if p['_uuid'][1] in references(w.db.row('Node', name='a1')['ports'])}
    first = d['paths']['leaf1,spine5,leaf3']
    check_equal('program', (first['program'], first['port'], first['node']),
                ('5f00:0:100:500:300:3::', ports['leaf1'], 'a1'))
    check_equal('the other direction', destination(w, 'a3', 'h1'), None)
    place(w, 'h3', 'failover')
    back = destination(w, 'a3', 'h1')
    check_equal('back', back['paths']['leaf3,spine5,leaf1']['program'], '5f00:0:300:500:100:1::')
    check_equal('rows that stay', uuids(destination(w)), uuids(d))
    place(w, 'h1', 'none')
    wait_until('paths go', lambda: not destination(w))
    check_equal('rows left', {p['node'] for p in w.db.rows('Path')}, {'a3'})


def path_form(w):
    """The same paths end at the leaf."""
    clos(w)
    place(w)
    before = destination(w)
    for form, program in (('usd', '5f00:0:100:500:300::'), ('dt6', '5f00:0:100:500:300:e003::'),
                          ('agent', '5f00:0:100:500:300:3::')):
        w.db.update('Global', {}, path_form=form)
        d = told(w, form, lambda d, program=program:
                 d['paths']['leaf1,spine5,leaf3']['program'] == program)
        check_equal('rows that stay', uuids(d), uuids(before))


def link_goes(w):
    """Its paths go, and no others: they keep rows and numbers.  A pinned one stays, not usable."""
    clos(w)
    place(w)
    before = destination(w)
    lost = {name for name in H3 if 'leaf1,spine5' in name}
    cfg = generation(w)
    w.cut('leaf1', 'spine5')
    d = told(w, 'paths go', lambda d: set(d['paths']) == H3 - lost)
    check_equal('rows that stay', uuids(d), uuids(before, *lost))
    check_equal('numbers that stay', {n: p['number'] for n, p in d['paths'].items()},
                {n: p['number'] for n, p in before['paths'].items() if n not in lost})
    check(generation(w) > cfg, 'no generation for paths that go')
    w.castctl('link add leaf1:spine5 spine5:leaf1')
    told(w, 'paths come back', lambda d: set(d['paths']) == H3)

    rule(w, 'pin', 'leaf1,spine5,leaf3')
    d = told(w, 'pinned', lambda d: d['pinned'])
    check_equal('to', d['pinned'], d['paths']['leaf1,spine5,leaf3']['number'])
    w.cut('leaf1', 'spine5')
    d = told(w, 'the pinned one stays', lambda d: set(d['paths']) == H3 - lost | {'leaf1,spine5,leaf3'})
    check_equal('not usable', unusable(d), {'leaf1,spine5,leaf3': 'there is no such path'})
    check_equal('still pinned', d['pinned'], d['paths']['leaf1,spine5,leaf3']['number'])


def path_rows(w):
    rows = w.db.rows('Path') + w.db.rows('Destination')
    return sorted(repr(dict(row, _version=None)) for row in rows)


def nothing_changes(w):
    """Computing again gives nobody another generation, nor does what no node is told."""
    clos(w)
    place(w)
    place(w, 'h3')
    w.settled()
    before = {n['name']: n['cfg'] for n in w.db.rows('Node')}
    rows = path_rows(w)
    w.db.update('Global', {}, path_form='agent')  # as 'auto' finds by itself.
    w.db.update('Node', {'name': 'spine6'}, verify_always=True)
    rule(w, 'exclude', 'leaf1,spine9,leaf3')  # no such path.
    row = w.db.row('Path', name='leaf1,spine5,leaf3')
    w.db.update('Path', {'_uuid': row['_uuid']}, status='x')
    wait_until('castd mends it', lambda: w.db.row('Path', name='leaf1,spine5,leaf3')['status'] == '')
    w.restart_castd()
    w.db.update('Path', {'_uuid': row['_uuid']}, status='y')
    wait_until('the next mends it', lambda: not w.db.row('Path', name='leaf1,spine5,leaf3')['status'])
    check_equal('rows', path_rows(w), rows)
    check_equal('generations', {n['name']: n['cfg'] for n in w.db.rows('Node')}, before)
    w.db.update('Path', {'_uuid': row['_uuid']}, program='5f00::')
    wait_until('a generation for what was written past castd',
               lambda: generation(w) > before['a1']
               and w.db.row('Path', name='leaf1,spine5,leaf3')['program'] == row['program'])


def exclusions(w):
    """Excluding takes out of use, and says what it was; nothing is deleted."""
    clos(w)
    place(w)
    w.db.update('Node', {'name': 'spine6'}, excluded=True)
    over6 = {name for name in H3 if 'spine6' in name}
    told(w, 'spine6', lambda d: unusable(d) == {n: 'node spine6 is excluded' for n in over6})
    w.db.update('Node', {'name': 'spine6'}, excluded=False)
    w.db.update('Link', {'a': 'leaf1', 'b': 'spine5'}, excluded=True)
    told(w, 'the link', lambda d: set(unusable(d)) == {n for n in H3 if 'leaf1,spine5' in n})
    w.db.update('Link', {'a': 'leaf1', 'b': 'spine5'}, excluded=False)
    rule(w, 'exclude', 'leaf2,spine6,leaf4')
    told(w, 'one path', lambda d: set(unusable(d)) == {'leaf2,spine6,leaf4'})
    check_equal('paths', set(destination(w)['paths']), H3)


def pins(w):
    """All packets, those of one QPN, and a program of the operator's own."""
    clos(w)
    rule(w, 'pin', 'leaf2,spine5,leaf4')
    d = told(w, 'a pin needs no policy', lambda d: d and d['pinned'])
    check_equal('policy', d['policy'], 'none')
    rule(w, 'pin', 'leaf1,spine6,leaf4', qpn=0x123)
    rule(w, 'pin', 'leaf2 5f00:0:200:600:300:3::', qpn=17)
    d = told(w, 'QPNs', lambda d: len(d['pins'][1]) == 2)
    own = d['paths']['leaf2 5f00:0:200:600:300:3::']
    check_equal('pins', sorted(d['pins'][1]),
                [[17, own['number']], [0x123, d['paths']['leaf1,spine6,leaf4']['number']]])
    check_equal('own program', (own['usable'], own['program']), (True, '5f00:0:200:600:300:3::'))
    rule(w, 'pin', 'leaf3 5f00:0:300:3::', qpn=18)
    d = told(w, 'no such neighbour', lambda d: len(d['pins'][1]) == 3)
    check_equal('not usable', unusable(d), {'leaf3 5f00:0:300:3::': 'there is no link to leaf3'})
    w.db.transact({'op': 'delete', 'table': 'Path_Rule', 'where': [['qpn', '==', 17]]})
    told(w, 'a pin goes', lambda d: len(d['pins'][1]) == 2)
    w.db.transact({'op': 'delete', 'table': 'Path_Rule', 'where': []})
    wait_until('all go', lambda: not destination(w))


LEFT_OUT = (
    ({'from': 'h9'}, 'there is no host "h9"'),
    ({'to': 'leaf3'}, 'there is no host "leaf3"'),
    ({'to': 'h1'}, 'both ends are the same host'),
    ({'path': ''}, 'path "" must be names'),
    ({'path': 'leaf1,,leaf3'}, 'path "leaf1,,leaf3" must be names'),
    ({'path': 'a' * 256}, 'must be at most 255 characters'),
    ({'path': 'leaf2 5f00::x'}, 'path "leaf2 5f00::x" must be a neighbour'),
    ({'kind': 'exclude', 'path': 'leaf2 5f00:0:200::'}, 'path "leaf2 5f00:0:200::" must be names'),
    ({'kind': 'exclude', 'qpn': 17}, 'only a pin is for a QPN'),
    ({'path': 'leaf2,spine5,leaf3'}, 'another pin is for the same packets, path "leaf1,spine5,leaf3"'),
)


def rules_left_out(w):
    """Rules that make no sense are named, and the others are followed."""
    clos(w)
    rule(w, 'pin', 'leaf1,spine5,leaf3')
    told(w, 'the good one', lambda d: d and d['pinned'])
    cfg = generation(w)
    for columns, why in LEFT_OUT:
        row = dict({'kind': 'pin', 'from': 'h1', 'to': 'h3', 'path': 'leaf1,spine5,leaf3'}, **columns)
        w.db.transact({'op': 'insert', 'table': 'Path_Rule', 'row': row})
        sentence = 'left out: Path_Rule %s from "%s" to "%s": ' % (row['kind'], row['from'], row['to'])
        wait_until('%s is named' % why, lambda sentence=sentence, why=why:
                   re.search(re.escape(sentence) + '.*' + re.escape(why), w.log()))
    rule(w, 'pin', 'leaf2,spine6,leaf4', qpn=5)
    told(w, 'another good one', lambda d: len(d['pins'][1]) == 1)
    check_equal('generation', generation(w), cfg + 1)


def programs(w):
    """What neighbours take from an agent; a list of nonsense allows nothing."""
    clos(w)

    def at(leaf):
        row = w.db.row('Node', name=leaf)
        port = next(p for p in w.db.rows('Port')
                    if p['_uuid'][1] in references(row['ports']) and p['peer'] == 'a1')
        value = port['programs']
        return value[1] if isinstance(value, list) else [value]
    w.settled()
    check_equal('all', (at('leaf1'), at('leaf2')), ([], []))
    cfg = generation(w, 'leaf3')
    for given, want in ((['5f00:0:100::/48', '5f00:0:200::/48'], ['5f00:0:100::/48', '5f00:0:200::/48']),
                        (['5f00:0:100::/48', 'fd00::/16'], ['5f00:0:100::/48']),
                        (['5f00:0:100::1/48', '5f00::/8'], ['5f00::/128']), ([], [])):
        w.db.update('Node', {'name': 'a1'}, programs=['set', given])
        for leaf in ('leaf1', 'leaf2'):
            wait_until('%s at %s' % (want, leaf),
                       lambda leaf=leaf, want=want: sorted(at(leaf)) == want)
    check('left out: Node "a1": program "fd00::/16" must be' in w.log(), '%s', w.log())
    check_equal("others' generation", generation(w, 'leaf3'), cfg)


def sids_of_ports(w):
    """Which port, and where the block ends."""
    clos(w)
    w.settled()
    row = w.db.row('Node', name='leaf1')
    port = next(p['number'] for p in w.db.rows('Port')
                if p['_uuid'][1] in references(row['ports']) and p['peer'] == 'spine5')
    sids = {s['prefix']: (s['behaviour'], s['block_len'], s['port']) for s in w.db.rows('Sid')
            if s['_uuid'][1] in references(row['sids'])}
    check_equal('uN', sids['5f00:0:100::/48'], ('uN', 32, 0))
    check_equal('uA', sids['5f00:0:100:e1%02x::/64' % port], ('uA', 32, port))
    check_equal('End.X', sids['5f00:0:100:e3%02x::/64' % port], ('End.X', 0, port))


def group_way(w):
    """A group's path to its root; what is wrong with one is its own matter."""
    clos(w)
    for group, via in (('g', 'leaf1,spine5,leaf3'), ('bad', 'leaf1,spine9'), ('worse', 'leaf1,,')):
        w.castctl('group add ' + group)
        w.db.update('Group', {'name': group}, via=via)
        w.castctl('member add %s h3 --qpn 17' % group)
        w.castctl('source set %s --host h1 --qpn 18' % group)
    w.apply_all_until('the group is ready', lambda: w.show()['state'] == 'ready')
    w.expect_state('failed', 'spine9', 'bad')
    w.expect_state('failed', 'via "leaf1,," must be names of nodes', 'worse')
    tree = w.db.row('Tree_Node', group='g', node='a1')
    check(tree['outer_program'].startswith('5f00:0:100:500:300:'), '%r', tree['outer_program'])
    check(tree['outer_da'].startswith('5f00:0:300:'), '%r', tree['outer_da'])
    w.db.update('Group', {'name': 'bad'}, via='leaf2,spine6,leaf4')
    w.apply_all_until('the other is ready', lambda: w.show('bad')['state'] == 'ready')
    check_equal('the first', w.show()['state'], 'ready')
    # Before the first packet the tree is made anew; after it the epoch keeps its own.
    w.db.update('Group', {'name': 'g'}, via='leaf1,spine6,leaf3')
    w.apply_all_until('another path', lambda: w.show()['state'] == 'ready' and any(
        t['outer_program'].startswith('5f00:0:100:600:300:') for t in w.db.rows('Tree_Node', group='g')))
    source = next(t for t in w.db.rows('Tree_Node', group='g') if t['outer_program'])
    w.db.update('Tree_Node', {'_uuid': source['_uuid']}, started=True)
    w.db.update('Group', {'name': 'g'}, via='leaf1,spine5,leaf3')
    w.expect_state('ready', 'the topology has changed: this epoch keeps its tree')
    w.castctl('group reset g')
    wait_until('the next epoch', lambda: w.db.row('Group', name='g')['epoch'] == 2)


CASES = (paths, path_form, link_goes, nothing_changes, exclusions, pins, rules_left_out, programs,
         sids_of_ports, group_way)
