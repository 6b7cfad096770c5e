# SPDX-License-Identifier: Apache-2.0
"""Many groups: what castd computes and writes for one of them, or for all, by counts and not by clocks."""
import json
import os
import subprocess

import refusals
from world import check, check_equal

SWITCHES = (('n1', 256), ('n2', 257), ('n3', 258))


def insert(table, **columns):
    return {'op': 'insert', 'table': table, 'row': columns}


def group(name):
    """A group with all that it needs, as one transaction's operations."""
    uuid = 'g' + name
    at_group = {'group': ['named-uuid', uuid], 'epoch': 1}
    return [dict(insert('Group', name=name, mode='replicate', mtu=1024, timeout=20), **{'uuid-name': uuid}),
            insert('Source', host='h0', qpn=18, **at_group),
            *(insert('Member', host=host, qpn=17, rkey=7, va='0x1000', len=4096, want='active',
                     **at_group) for host in ('r1', 'r2'))]


def topology():
    links = [('h0', 'th0', 'a0', 'th0', 'tap'), ('a0', 'up', 'n1', 'a0', 'packet')]
    for switch, host in (('n2', 'r1'), ('n3', 'r2')):
        links.append(('n1', switch, switch, 'n1', 'packet'))
        links.append((switch, 't' + host, host, 't' + host, 'tap'))
    return [*(insert('Node', name=name, id=number, role='switch') for name, number in SWITCHES),
            insert('Node', name='a0', id=512, role='agent'),
            *(insert('Host', name=name, address='fd00:1::' + address)
              for name, address in (('h0', '100'), ('r1', '1'), ('r2', '2'))),
            *(insert('Link', a=a, a_port=ap, b=b, b_port=bp, kind=kind)
              for a, ap, b, bp, kind in links)]


def add(w, numbers):
    """Adds groups with these numbers in one transaction."""
    w.db.transact(*(operation for i in numbers for operation in group('x%d' % i)),
                  {'op': 'mutate', 'table': 'Global', 'where': [],
                   'mutations': [['next_cfg', '+=', 1]]})


def n_ready(w):
    return sum(g['state'] == 'ready' for g in w.db.rows('Group'))


def become_ready(w, n):
    w.apply_all_until('%d groups are ready' % n, lambda: n_ready(w) == n and refusals.is_applied(w))


def counters(w):
    out = subprocess.run(['ovs-appctl', '-t', os.path.join(w.dir, 'castd.ctl'), 'rocecast/counters', '-j'],
                         check=True, capture_output=True, text=True).stdout
    return json.loads(out)


N = 150


def one_more(w):
    """One group more makes castd compute that one again, and not the others; so does one that changes."""
    w.db.transact(*topology())
    add(w, range(N))
    become_ready(w, N)
    w.settled()
    for what, change, condition in (
            ('one more', lambda: add(w, [N]), lambda: n_ready(w) == N + 1),
            ('one that changes', lambda: w.castctl('member leave x7 r1'),
             lambda: w.member('r1', 'x7')['state'] == 'left'),
            ('one less', lambda: w.castctl('group del x9'),
             lambda: not any(t['group'] == 'x9' for t in w.db.rows('Tree_Node')))):
        before = counters(w)
        change()
        w.apply_all_until(what, lambda c=condition: c() and refusals.is_applied(w))
        w.apply_all_until('all is answered', lambda: w.db.row('Global')['nb_cfg'] == w.db.row('Global')['next_cfg'])
        after = counters(w)
        computed = after['groups_computed'] - before['groups_computed']
        check(computed < N / 3, '%s: %d groups were computed, of %d', what, computed, N)


def all_at_once(w):
    """However many groups are due, a transaction is about few of them; and so when all go."""
    sizes = []

    class Counting(refusals.Relay):
        def from_client(self, message, *state):
            if refusals.writes(message):
                sizes.append(len(message['params']))
            return super().from_client(message, *state)
    w.stop(w.castd)
    path = os.path.join(w.dir, 'counting')
    relay = Counting(path, w.sock, lambda _: None)
    was, w.env = w.env, dict(w.env, ROCECAST_DB='unix:' + path)
    w.castd = w.start_castd('castd')
    w.env = was
    w.db.transact(*topology())
    w.apply_all_until('the topology is applied', lambda: refusals.is_applied(w))
    sizes.clear()
    add(w, range(N))
    become_ready(w, N)
    check(len(sizes) > 5, 'all in %d transactions', len(sizes))
    check(max(sizes) < 4000, 'one transaction of castd has %d operations', max(sizes))
    w.db.transact(*({'op': 'delete', 'table': table, 'where': []} for table in ('Source', 'Member', 'Group')))
    w.apply_all_until('no tree is left', lambda: not w.db.rows('Tree_Node') and refusals.is_applied(w))
    check_equal('orphans', (w.db.rows('Branch'), relay.n_refused), ([], 0))
    w.stop(w.castd)  # before the relay goes


def few_rows(w):
    """A command about one member reads its group, its host, and what the host is a member of: no other groups."""
    read = {}

    class Reading(refusals.Relay):
        def from_server(self, message, *state):
            result = message.get('result')
            if isinstance(result, list) and len(result) == 3 and isinstance(result[2], dict) and 'Global' in result[2]:
                read.update({table: len(rows) for table, rows in result[2].items()})
            return super().from_server(message, *state)
    w.db.transact(*topology())
    add(w, range(12))
    become_ready(w, 12)
    path = os.path.join(w.dir, 'reading')
    Reading(path, w.sock, lambda _: None)
    w.db.transact({'op': 'delete', 'table': 'Member', 'where': [['host', '==', 'r2']]})
    for line, members in (('member leave x1 r1', 12), ('member add x1 r2 --qpn 20', 0), ('member list x1', 13)):
        read.clear()
        w.castctl('--db=unix:%s --wait=none %s' % (path, line))
        check_equal(line, tuple(read.get(t, 0) for t in ('Member', 'Group', 'Host')), (members, 1, 1) if ' r' in line else (13, 12, 3))


CASES = (one_more, all_at_once, few_rows)
