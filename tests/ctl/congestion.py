# SPDX-License-Identifier: Apache-2.0
"""Congestion: what operators set, what nodes are told of it, and what is told of groups."""
import json

from watch import Watch
from world import check, check_equal, wait_until

EMPTY = ['set', []]

NO_PAIRS = ['map', []]


def of_node(w, node, *columns):
    row = w.db.row('Node', name=node)
    return tuple(row[column] for column in columns)


def addresses(value):
    return sorted(value[1]) if isinstance(value, list) else [value]


def defaults(w):
    """What nodes are told if nobody has said anything."""
    w.star(2)
    check_equal('a switch', of_node(w, 'n1', 'cnp_interval', 'fast_cnp', 'fast_cnp_any_icrc',
                                    'fast_cnp_rate', 'capable', 'trusted', 'trace', 'line_rate'),
                (10000, False, False, 1000, EMPTY, EMPTY, False, 0))
    check_equal('the agent', of_node(w, 'a0', 'rate_control', 'controller', 'line_rate',
                                     'rate_floor', 'queue_rates'),
                ('agent', 'dcqcn', 10**9, 0, NO_PAIRS))
    shown = json.loads(w.castctl('-j congestion'))
    check_equal('shown', {k: shown[k] for k in ('interval_us', 'fast_cnp', 'any_icrc',
                                                'fast_cnp_rate', 'groups', 'external_links')},
                {'interval_us': 10000, 'fast_cnp': 'off', 'any_icrc': 'off', 'fast_cnp_rate': 1000,
                 'groups': [], 'external_links': []})
    check_equal('h0', shown['hosts'][0],
                {'host': 'h0', 'agent': 'a0', 'rate_control': 'agent', 'controller': 'dcqcn',
                 'line_rate': 10**9, 'floor': 0, 'fast_cnp': 'auto', 'takes_fast_cnp': True})
    check_equal('r1', (shown['hosts'][1]['agent'], shown['hosts'][1]['takes_fast_cnp']),
                (None, False))
    check('interval       10 ms' in w.castctl('congestion'), 'text: %s', w.castctl('congestion'))


def fast_cnps(w):
    """Fast CNPs are off until somebody wants them; then nodes learn who takes them, of whom."""
    w.star(2)
    w.castctl('congestion set --fast-cnp on --interval 20ms --fast-cnp-rate 7 --any-icrc on')
    check_equal('a switch', of_node(w, 'n1', 'fast_cnp', 'fast_cnp_rate', 'cnp_interval', 'capable',
                                    'fast_cnp_any_icrc', 'trusted'),
                (True, 7, 20000, 'fd00:1::100', False, EMPTY))
    any_icrc, trusted = of_node(w, 'a0', 'fast_cnp_any_icrc', 'trusted')
    check(any_icrc, 'any_icrc')
    check_equal('trusted', addresses(trusted),
                ['5f00:0:100::1', '5f00:0:101::1', '5f00:0:200::1'])
    w.castctl('host set r1 --fast-cnp on')
    check_equal('capable, r1 too', addresses(of_node(w, 'n2', 'capable')[0]),
                ['fd00:1::1', 'fd00:1::100'])
    w.castctl('host set h0 --rate-control none')
    check_equal('capable, h0 not', of_node(w, 'n2', 'capable'), ('fd00:1::1',))
    w.castctl('host set r1 --fast-cnp auto')
    check_equal('nobody', of_node(w, 'n1', 'capable'), (EMPTY,))
    w.castctl('congestion set --interval 10ms --fast-cnp off')
    row = w.db.row('Global')
    check_equal('defaults are empty', (row['cnp_interval'], row['fast_cnp_rate'], row['fast_cnp']),
                (EMPTY, 7, False))


def hosts(w):
    """Who slows a host down, and how far."""
    w.ready_group(['r1'])
    floor = w.tree('a0')['rate_floor']
    check(270000 < floor < 280000, 'floor %r', floor)
    check_equal('of a switch', w.tree('n1')['rate_floor'], 0)
    w.castctl('host set h0 --rate-control nic --controller depth --line-rate 100M --floor 5M')
    check_equal('the agent', of_node(w, 'a0', 'rate_control', 'controller', 'line_rate',
                                     'rate_floor', 'queue_rates'),
                ('nic', 'depth', 10**8, 5 * 10**6, NO_PAIRS))
    check_equal('floor', w.tree('a0')['rate_floor'], 5 * 10**6)
    w.castctl('link impair n1 r1 rate=20M')
    check_equal('rates of queues', of_node(w, 'a0', 'queue_rates'),
                (['map', [[w.db.row('Node', name='n1')['id'], 2 * 10**7]]],))
    w.refused('host set h0 --floor 101M', 2, 'the floor, 101M bit/s, is above the line rate, 100M')
    w.castctl('host set h0 --floor 0')
    check_equal('floor, none', w.tree('a0')['rate_floor'], floor)
    w.refused('host set h0 --line-rate 200k', 2, 'host h0 is the source of group g, which with QP '
              'time-out 20 must not be slower than 2[0-9]+ bit/s')
    w.castctl('group add fast --timeout 7')
    w.castctl('source set fast --host h0 --qpn 19')
    w.castctl('member add fast r1 --qpn 19 --rkey 7 --va 0x1000 --len 4096')
    shown = json.loads(w.castctl('-j congestion'))
    check(shown['groups'][0]['floor_needed'] > 10**9, 'needed: %r', shown['groups'][0])
    w.apply_all_until('the group is ready', lambda: w.show('fast')['state'] == 'ready')
    tree = next(t for t in w.db.rows('Tree_Node') if t['group'] == 'fast' and t['rate_floor'])
    check_equal('not above the line', tree['rate_floor'], 10**8)
    check('group fast: its rate is never cut: with QP time-out 7' in w.log(), 'nothing is logged')


def links(w):
    """Links that leave the domain."""
    w.star(1)
    w.castctl('link external n1 n2 on')
    ports = {p['peer']: p['external'] for p in w.db.rows('Port') if p['name'] in ('n1', 'n2')}
    check_equal('ports', ports, {'n1': True, 'n2': True})
    check_equal('list', [link['external'] for link in json.loads(w.castctl('-j link list'))
                         if link['a'] == 'n1:n2'], [True])
    check_equal('shown', json.loads(w.castctl('-j congestion'))['external_links'],
                [{'a': 'n1:n2', 'b': 'n2:n1'}])
    w.castctl('link external n2:n1 n1 off')
    check_equal('no more', json.loads(w.castctl('-j congestion'))['external_links'], [])


def groups(w):
    """A group's settings reach all its nodes, and its trace all nodes that there are."""
    w.ready_group(['r1'])
    check_equal('default', [w.tree(n)[c] for n in ('n1', 'a0')
                            for c in ('cnp', 'cnp_window', 'trace_slots')], ['auto', 1000, 0] * 2)
    w.castctl('group set g --cnp edge --cnp-window 2000 --trace 4')
    w.apply_all_until('it is ready', lambda: w.show()['state'] == 'ready')
    check_equal('set', [w.tree(n)[c] for n in ('n1', 'a0')
                        for c in ('cnp', 'cnp_window', 'trace_slots')], ['edge', 2000, 4] * 2)
    check_equal('trace', of_node(w, 'n2', 'trace'), (True,))
    shown = w.show()
    check_equal('shown', (shown['cnp'], shown['cnp_window_us'], shown['trace_slots']),
                ('edge', 2000, 4))
    w.set_started()
    w.refused('group set g --trace 5', 2, 'epoch 1 of group g has started with 4')
    w.castctl('group set g --cnp-window 6000 --cnp off')
    check('group g: CNPs may wait 6000 us on their way up (1 nodes' in w.log(), 'nothing is logged')
    w.castctl('group del g')
    check_equal('no trace', of_node(w, 'n2', 'trace'), (False,))


def slowed(w):
    """A group whose source is slowed down, and is free again."""
    w.ready_group(['r1'])
    with Watch(w, 'g') as watch, Watch(w, 'g', text=True) as text:
        def told(line):
            wait_until('the text says ' + line, lambda: any(line in told for told in text.lines))
        watch.take('g:ready=')
        told('ready')
        tree = {'_uuid': w.tree('a0')['_uuid']}
        w.db.update('Tree_Node', tree, rate=20000000, rate_cause='fast-cnp',
                    rate_node='5f00:0:100::1')
        check_equal('slowed', watch.take('g:slowed'), ['g:slowed'])
        told('slowed to 20M bit/s: fast-cnp from n1')
        event = watch.last()
        check_equal('how', [event[k] for k in ('rate', 'cause', 'node', 'state')],
                    [20000000, 'fast-cnp', 'n1', 'ready'])
        w.db.update('Tree_Node', tree, rate=30000000, rate_cause='cnp', rate_node='')
        w.db.update('Tree_Node', tree, rate=EMPTY, rate_cause=EMPTY)
        check_equal('recovered', watch.take('g:recovered'), ['g:recovered'])
        # The one that reads slowly would not see that it was free in between.
        told('recovered')
        w.db.update('Tree_Node', tree, rate=1000, rate_cause='cnp')
        check_equal('again', watch.take('g:slowed'), ['g:slowed'])
        check_equal('by a CNP', watch.last()['node'], None)
        told('slowed to 1k bit/s: cnp')
        w.castctl('group reset g')
        watch.take('g:recovered')


CASES = (defaults, fast_cnps, hosts, links, groups, slowed)
