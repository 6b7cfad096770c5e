# SPDX-License-Identifier: Apache-2.0
"""Groups with planes: what castd tells their nodes, and what operators say of them."""
import json
import os

import destinations
from world import FakeAgent, check, check_equal, references, wait_until


def clos(w):
    """destinations.clos() with planes A and B, and a receiver h3 behind two leaves."""
    destinations.clos(w)
    w.castctl('node set spine5 --plane A')
    w.castctl('node set spine6 --plane B')


def group(w, options='--planes B,A'):
    w.castctl('group add g --mtu 1024 %s' % options)
    w.castctl('source set g --host h1 --qpn 17')
    w.castctl('member add g h3 --qpn 18')


def ready(w):
    w.apply_all_until('the group is ready', lambda: w.show()['state'] == 'ready' and settled(w))


def settled(w):
    return all(n['nb_cfg'] == n['cfg'] for n in w.db.rows('Node'))


def planes(w, node, column='planes'):
    """The node's planes by name."""
    rows = {p['_uuid'][1]: p for p in w.db.rows('Plane')}
    return {rows[u]['name']: rows[u] for u in references(w.tree(node)[column])}


def probe_names(w, node, plane):
    """Names of the probes that a plane goes by."""
    rows = {p['_uuid'][1]: p for p in w.db.rows('Probe')}
    own = {rows[u]['number']: rows[u]['name'] for u in references(w.db.row('Node', name=node)['probes'])}
    numbers = plane['probes']
    return sorted(own[n] for n in (numbers[1] if isinstance(numbers, list) else [numbers]))


def two_planes(w):
    """Two trees to the same edge, and probes for both, from both ends."""
    clos(w)
    group(w)
    ready(w)
    check_equal('a1', w.shape('a1'), '>>leaf1 >>leaf2 <source a3')
    check_equal('leaf1', w.shape('leaf1'), '>>spine5')
    check_equal('leaf4', w.shape('leaf4'), '>a3')
    check_equal('spine6', w.shape('spine6'), '>>leaf4')
    check_equal('a3', w.shape('a3'), '<a1 h3')
    down, up = planes(w, 'a1'), planes(w, 'a3', 'parent_planes')
    check_equal('down', {n: p['program'].rpartition(':')[0] for n, p in down.items()},
                {'A': '5f00:0:100:f000:', 'B': '5f00:0:200:f000:'})
    check_equal('up', {n: p['program'] for n, p in up.items()},
                {'A': '5f00:0:300:500:100:1:e002:0', 'B': '5f00:0:400:600:200:1:e002:0'})
    check_equal('ports', [planes(w, 'a1')[n]['port'] for n in 'AB'],
                [port_to(w, 'a1', 'leaf1'), port_to(w, 'a1', 'leaf2')])
    check(all(p['usable'] and not p['preferred'] for p in [*down.values(), *up.values()]), 'usable')
    wait_until('probes of planes', lambda: probe_names(w, 'a1', planes(w, 'a1')['A'])
               == ['leaf1,spine5,leaf3,a3'])
    check_equal('probes', [probe_names(w, 'a1', planes(w, 'a1')['B']),
                           probe_names(w, 'a3', planes(w, 'a3', 'parent_planes')['A'])],
                [['leaf2,spine6,leaf4,a3'], ['leaf3,spine5,leaf1,a1']])
    shown = w.show()
    check_equal('shown', (shown['planes'], shown['preferred_plane'], shown['status']), ('A,B', '', ''))
    before = w.dump()
    w.restart_castd()
    w.castctl('--wait=castd group list')
    check_equal('after a restart of castd', w.dump().count('leaf'), before.count('leaf'))


def port_to(w, node, peer):
    ports = json.loads(w.castctl('-j node show ' + node))['ports']
    return next(p['number'] for p in ports if p['peer'] == peer)


def plane_excluded(w):
    """What an operator excludes takes one plane out of use, and nothing else changes in an epoch that has
    started; the next epoch is planned without it."""
    clos(w)
    group(w)
    ready(w)
    w.set_started('a1')
    w.castctl('path exclude spine5')
    w.apply_all_until('A is out of use', lambda: not planes(w, 'a1')['A']['usable'])
    check_equal('B', planes(w, 'a1')['B']['usable'], True)
    w.apply_all_until('edges know', lambda: not planes(w, 'a3', 'parent_planes')['A']['usable'])
    w.apply_all_until('a sentence', lambda: w.show()['status'].startswith(
        'plane A is out of use: spine5 is excluded; '))
    check_equal('state', w.show()['state'], 'ready')
    check_equal('the tree stays', w.shape('leaf1'), '>>spine5')
    w.castctl('path include spine5')
    w.apply_all_until('A is back', lambda: planes(w, 'a1')['A']['usable'] and not w.show()['status'])
    w.castctl('link del leaf2:spine6 --force')
    w.apply_all_until('B is gone', lambda: not planes(w, 'a1')['B']['usable'])
    check_equal('state', w.show()['state'], 'ready')
    w.apply_all_until('a sentence', lambda: 'plane B is out of use: no link from leaf2 to spine6' in w.show()['status'])
    w.castctl('group reset g')
    w.castctl('source set g --host h1 --qpn 17')
    w.castctl('member add g h3 --qpn 18')
    ready(w)
    check_equal('planes', sorted(planes(w, 'a1')), ['A', 'B'])
    check_equal('B goes on', w.shape('spine6'), '>>leaf4')


def plane_left(w):
    """A group works with one plane, and says why it has no other."""
    clos(w)
    w.castctl('path exclude spine6')
    group(w)
    ready(w)
    check_equal('planes', list(planes(w, 'a1')), ['A'])
    check_equal('status', w.show()['status'], 'plane B has no way: member h3: no path from leaf2 to a3 in it')
    w.castctl('path exclude spine5')
    w.apply_all_until('no plane is left', lambda: w.member('h3')['state'] == 'failed')
    check_equal('member', w.member('h3')['status'],
                'plane A has no way: member h3: no path from leaf1 to a3 in it; '
                'plane B has no way: member h3: no path from leaf1 to a3 in it')


def plane_preferred(w):
    clos(w)
    group(w)
    ready(w)
    w.set_started('a1')
    w.castctl('group plane g B')
    w.apply_all_until('B is preferred', lambda: planes(w, 'a1')['B']['preferred']
                      and planes(w, 'a3', 'parent_planes')['B']['preferred'])
    check(not planes(w, 'a1')['A']['preferred'], 'A')
    check_equal('shown', w.show()['preferred_plane'], 'B')
    w.refused('group plane g C', 2, r'group g has no plane C, only A, B$')
    w.refused("group set g --planes A,C", 2, r"--planes 'A,C': epoch 1 of group g has started with 'A,B'")
    w.run('group', 'plane', 'g', '')
    w.apply_all_until('none is', lambda: not planes(w, 'a1')['B']['preferred'])
    w.castctl('group reset g')
    w.castctl('group plane g B')
    w.run('group', 'set', 'g', '--planes', '')
    check_equal('shown', (w.show()['planes'], w.show()['preferred_plane']), ('', ''))


def plane_in_use(w):
    """castctl tree show says which plane is used."""
    clos(w)
    group(w)
    ready(w)
    tree = w.tree('a1')

    def plane(name, state, used):
        return {'name': name, 'state': state, 'used': used, 'usable': True, 'preferred': False}
    answer = [{'proxy': tree['proxy'], 'designated_qpn': tree['designated_qpn'], 'branches': [],
               'planes': [plane('A', 'bad', False), plane('B', 'good', True)]}]
    FakeAgent(os.path.join(w.dir, 'a1.ctl'), {'rocecast/groups': answer})
    w.db.update('Node', {'name': 'a1'}, control=os.path.join(w.dir, 'a1.ctl'))
    p = w.run('tree', 'show', 'g')
    check('source agent, open  nothing sent yet  plane B good (A bad)' in p.stdout, 'drawn: %s', p.stdout)


CASES = (two_planes, plane_excluded, plane_left, plane_preferred, plane_in_use)
