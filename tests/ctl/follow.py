# SPDX-License-Identifier: Apache-2.0
"""Rows that are changed past castctl, in ways in which what castd keeps of them could go wrong: it does what a castd
that has just been started would do.  (In all cases castd compares what it keeps with the rows, world.py.)"""
import json
import time

import crowd
import refusals
from world import check, check_equal, references, wait_until

N = 4


def quiet(w):
    """Agents apply until castd has nothing more to say."""
    def done():
        g = w.db.row('Global')
        return refusals.is_applied(w) and g['next_cfg'] == g['nb_cfg'] == g['agents_cfg']
    w.db.transact({'op': 'mutate', 'table': 'Global', 'where': [], 'mutations': [['next_cfg', '+=', 1]]})
    w.apply_all_until('castd is done', done)


def written_by_another(w):
    """How many transactions a castd makes that starts with the registry as it is."""
    w.stop(w.castd)
    w.castd = w.start_castd('castd')
    wait_until('castd has computed all', lambda: crowd.counters(w)['groups_computed'] >= sum(
        ' ' not in g['name'] for g in w.db.rows('Group')))
    time.sleep(0.1)
    return crowd.counters(w)['transactions']


def group(w, name):
    return ['uuid', w.db.row('Group', name=name)['_uuid'][1]]


def member_moves(w):
    m, other = (w.db.row('Member', host='r1', group=group(w, name))['_uuid'] for name in ('x0', 'x1'))
    w.db.transact({'op': 'delete', 'table': 'Member', 'where': [['_uuid', '==', other]]})
    w.db.update('Member', {'_uuid': m}, group=group(w, 'x1'))


def proxy_is_new(w):
    w.db.update('Group', {'name': 'x2'}, proxy='fd00:ffff::77')


def proxy_of_tree(w):
    tree = next(t for t in w.db.rows('Tree_Node') if t['group'] == 'x3')
    w.db.update('Tree_Node', {'_uuid': tree['_uuid']}, proxy='fd00:ffff::99')


def tree_moves(w):
    w.db.update('Tree_Node', {'_uuid': w.db.rows('Tree_Node', node='n2')[0]['_uuid']}, node='n3')


def tree_is_listed(w):
    """As in a registry of before 2.10: its row does not say whose it is."""
    trees = [t['_uuid'] for t in w.db.rows('Tree_Node', node='n3')]
    w.db.transact({'op': 'update', 'table': 'Tree_Node', 'where': [['node', '==', 'n3']], 'row': {'node': ''}},
                  {'op': 'update', 'table': 'Node', 'where': [['name', '==', 'n3']],
                   'row': {'trees': ['set', trees], 'named_trees': False}})


def node_of_tree_is_gone(w):
    w.db.update('Tree_Node', {'_uuid': w.db.rows('Tree_Node', node='n2')[0]['_uuid']}, node='nobody')


def empty_tree(w):
    """All of its columns have their defaults: of such a row the IDL does not say that it is new."""
    w.db.transact({'op': 'insert', 'table': 'Tree_Node', 'row': {}, 'uuid-name': 'empty'},
                  {'op': 'mutate', 'table': 'Node', 'where': [['name', '==', 'n1']],
                   'mutations': [['trees', 'insert', ['set', [['named-uuid', 'empty']]]]]})


def branch_changes(w):
    branch = next(b for b in w.db.rows('Branch') if b['kind'] == 'receiver')
    w.db.update('Branch', {'_uuid': branch['_uuid']}, qpn=99)


def branches_go(w):
    tree = next(t for t in w.db.rows('Tree_Node') if references(t['branches']))
    w.db.update('Tree_Node', {'_uuid': tree['_uuid']}, branches=['set', []])


def route_goes(w):
    w.db.update('Node', {'name': 'n1'}, routes=['set', []])


def name_is_nonsense(w):
    w.db.update('Group', {'name': 'x1'}, name='no name')


def name_is_right(w):
    w.db.update('Group', {'name': 'no name'}, name='x1')


def id_changes(w):
    w.db.update('Node', {'name': 'n3'}, id=300)


def group_goes(w):
    w.castctl('group del x0')


CHANGES = (member_moves, proxy_is_new, proxy_of_tree, tree_moves, tree_is_listed, node_of_tree_is_gone, empty_tree,
           branch_changes,
           branches_go, route_goes, name_is_nonsense, name_is_right, id_changes, group_goes)


def as_started_anew(w):
    """After each change castd has written all that a new one would."""
    w.db.transact(*crowd.topology())
    crowd.add(w, range(N))
    crowd.become_ready(w, N)
    for change in CHANGES:
        change(w)
        quiet(w)
        check_equal('transactions after ' + change.__name__, written_by_another(w), 0)


def all_at_once_past_castctl(w):
    """Several of these in one go, and before castd has seen any of them."""
    w.db.transact(*crowd.topology())
    crowd.add(w, range(N))
    crowd.become_ready(w, N)
    for change in (branch_changes, tree_moves, proxy_of_tree, empty_tree, route_goes, proxy_is_new, group_goes):
        change(w)
    quiet(w)
    check_equal('transactions', written_by_another(w), 0)


def listed(w):
    return {n['name']: sorted(references(n['trees'])) for n in w.db.rows('Node')}


def left_behind(w, node):
    """A castd of before 2.10 has taken a tree of this node off its list, and made another one."""
    tree = w.tree(node)
    w.db.transact({'op': 'insert', 'table': 'Tree_Node', 'row': {
        c: tree[c] for c in ('node', 'group', 'epoch', 'proxy', 'designated_qpn', 'start_psn', 'mtu')}})
    wait_until('it is gone', lambda: len(w.db.rows('Tree_Node', node=node)) == 1)
    check_equal('the other one', w.tree(node), tree)


def shown_routes(w):
    return {name: json.loads(w.castctl('-j node show ' + name))['routes'] for name in ('n1', 'n2')}


def rows_of_older_agents(w):
    """Agents of before 2.10 know their trees by a list in their node's row, and routes by rows.  Both go when they find
    them."""
    def check_listed(finds):
        check_equal('lists', listed(w), {n['name']: sorted(
            t['_uuid'][1] for t in w.db.rows('Tree_Node', node=n['name']) if n['name'] not in finds)
            for n in w.db.rows('Node')})
    w.apply = lambda node: w.db.update('Node', {'name': node}, nb_cfg=w.db.row('Node', name=node)['cfg'], state='ok')
    w.ready_group()
    w.settled()
    check(listed(w)['n1'], 'nothing is listed for n1')
    check_listed(set())
    left_behind(w, 'n1')
    tree = w.tree('n1')['_uuid']
    routes = shown_routes(w)
    check_equal('routes that are rows', w.db.row('Node', name='n1')['next_hops'], ['map', []])
    w.db.update('Node', {'name': 'n1'}, finds_rows=True)
    wait_until('n1 has no list', lambda: not listed(w)['n1'])
    wait_until('n1 has no rows of routes', lambda: not w.db.rows('Route', node='n1'))
    check_equal('routes by next hops', shown_routes(w), routes)
    check(w.db.rows('Route', node='n2'), 'n2 has none any more')
    check_equal('routes that are rows', w.db.row('Node', name='n2')['next_hops'], ['map', []])
    check_equal('n1 has trees by their names', w.db.row('Node', name='n1')['named_trees'], True)
    check_listed({'n1'})
    check_equal('tree of n1', w.tree('n1')['_uuid'], tree)
    w.castctl('group del g')
    w.apply_all_until('the trees have gone', lambda: not w.db.rows('Tree_Node'))
    check_listed({'n1'})


CASES = (as_started_anew, rows_of_older_agents, all_at_once_past_castctl)
