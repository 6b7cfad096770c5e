# SPDX-License-Identifier: Apache-2.0
"""What castd finds broken by nodes' probes, and what castctl says of it.

The test plays the agents: they report what follows from what is broken."""
import json
import subprocess
import time

from watch import Watch
from world import check, check_equal, references, wait_until

SPINES = ('spine5', 'spine6')
SWITCHES = {'leaf1': 0x100, 'leaf2': 0x200, 'leaf3': 0x300, 'leaf4': 0x400, 'spine5': 0x500, 'spine6': 0x600}
INTERVAL = 300  # ms: so long that a fault can be seen before it is confirmed
AGREEMENT = 2 * INTERVAL + 1200


class Network:
    """draft-filsfils-srv6ops-srv6-ai-backend section 7: each agent hangs on two leaves."""

    def __init__(self, w, agents=(1, 2, 3, 4)):
        self.w = w
        self.broken = set()  # nodes, and directions of links
        self.silent = set()  # agents
        self.reported = {}
        for name, number in SWITCHES.items():
            w.castctl('--wait=none node add %s --id %d --role switch' % (name, number))
        for leaf in ('leaf1', 'leaf2', 'leaf3', 'leaf4'):
            for spine in SPINES:
                w.castctl('--wait=none link add %s:%s %s:%s' % (leaf, spine, spine, leaf))
        for i in agents:
            w.castctl('--wait=none node add dpu%d --id %d --role agent' % (i, 0xa0 + i))
            w.castctl('--wait=none host add gpu%d --address fd00:a::%d' % (i, i))
            w.castctl('--wait=none link add gpu%d:d dpu%d:h' % (i, i))
            for leaf in ('leaf1', 'leaf2') if i < 3 else ('leaf3', 'leaf4'):
                w.castctl('--wait=none link add dpu%d:%s %s:dpu%d' % (i, leaf, leaf, i))
        w.db.update('Host', {}, path_policy='spread')
        w.db.update('Global', {}, probe_interval=INTERVAL)
        w.settled()
        check(self.probes(), 'there are no probes')

    def probes(self):
        return self.w.db.rows('Probe')

    def result(self, probe):
        """Does it come back, and is the peer's heard?"""
        elements = probe['elements'].split()
        links = [e for e in elements if '>' in e]
        back = links[len(links) // 2:] + [e for e in elements if '>' not in e]
        return not self.broken & set(elements), probe['kind'] == 'peer' and not self.broken & set(back)

    def report(self):
        """All that differs, in one transaction."""
        operations, now = [], int(time.time() * 1000)
        for probe in self.probes():
            good, heard = self.result(probe)
            if probe['node'] in self.silent or self.reported.get(probe['_uuid'][1]) == (good, heard):
                continue
            self.reported[probe['_uuid'][1]] = (good, heard)
            operations.append({'op': 'update', 'table': 'Probe', 'where': [['_uuid', '==', probe['_uuid']]],
                               'row': {'state': 'good' if good else 'bad', 'since': now, 'heard': heard}})
        self.w.db.transact(*operations)

    def break_these(self, *elements, silent=()):
        """Nodes, "a>b", or "a<>b" for both directions."""
        self.broken, self.silent = set(), set(silent)
        for e in elements:
            a, sign, b = e.partition('<>')
            self.broken |= {a + '>' + b, b + '>' + a} if sign else {e}
        self.report()

    def faults(self):
        """Candidates of each."""
        return sorted(' '.join(strings(r['elements'])) for r in self.w.db.rows('Fault'))

    def expect(self, *want, confirmed=True):
        def found():
            rows = self.w.db.rows('Fault')
            return self.faults() == sorted(want) and (not confirmed or all(r['confirmed'] for r in rows))
        try:
            wait_until('faults %r' % (want,), found)
        except Exception as e:
            raise type(e)('%s; there are %r' % (e, self.faults())) from e


def strings(column):
    """A column that is a set of strings."""
    return column[1] if isinstance(column, list) else [column]


# Proves AB-35.
def locates(w):
    """Links, directions, nodes and agents are named; nothing is before anybody reports."""
    net = Network(w)
    check_equal('nothing reported', net.faults(), [])
    net.report()
    w.settled()
    check_equal('all good', net.faults(), [])
    for broken in ('leaf1<>spine5', 'leaf1>spine5', 'spine5>leaf1', 'dpu3>leaf4', 'leaf4>dpu3', 'spine6',
                   'dpu2<>leaf1', 'leaf3'):
        net.break_these(broken)
        net.expect(broken, confirmed=False)
    net.break_these('leaf1>spine5', 'leaf4<>spine6')
    net.expect('leaf1>spine5', 'leaf4<>spine6')
    net.break_these()
    net.expect()
    # An agent that is dead says nothing, not even that it is not well.
    net.break_these('dpu4', silent=['dpu4'])
    net.expect('dpu4')
    net.break_these()
    net.expect()


def confirmed_later(w):
    """A fault is there at once, and believed after two intervals; it goes at once, too."""
    net = Network(w)
    net.break_these()
    begin = time.time()
    net.break_these('leaf1>spine5')
    net.expect('leaf1>spine5', confirmed=False)
    row = w.db.row('Fault')
    check(not row['confirmed'], 'confirmed at once')
    check(begin * 1000 - 1 <= row['since'] <= time.time() * 1000, 'since %r', row['since'])
    w.restart_castd()  # the next one goes on.
    net.expect('leaf1>spine5')
    took = time.time() - begin
    check(took * 1000 >= AGREEMENT, 'after %.3f s', took)
    after = w.db.row('Fault')
    check_equal('the same row', [after[k] for k in ('_uuid', 'since')], [row[k] for k in ('_uuid', 'since')])
    check_equal('evidence', sorted(strings(after['evidence'])), sorted(
        p['node'] + ',' + p['name'] for p in net.probes() if p['state'] == 'bad'))
    # What narrows it down makes it another one, of which it is said anew since when.
    net.break_these('leaf1>spine5', 'spine5')
    net.expect('spine5', confirmed=False)
    check(not w.db.row('Fault')['confirmed'], 'confirmed at once')
    net.break_these()
    net.expect()


def between_two(w):
    """What probes cannot tell apart are candidates of one fault."""
    net = Network(w, agents=(1, 3))
    net.break_these('leaf1')
    net.expect('dpu1<>leaf1 leaf1')
    shown = json.loads(w.castctl('-j path fault'))
    check_equal('candidates', [f['candidates'] for f in shown], [[
        {'element': 'dpu1<>leaf1', 'kind': 'link', 'direction': None},
        {'element': 'leaf1', 'kind': 'node', 'direction': None}]])
    line = w.castctl('path fault').split('\n')[1]
    check(line.startswith('dpu1<>leaf1 or leaf1  link or node  -'), '%r', line)


def faults_listed(w):
    """castctl path fault, as text and as JSON."""
    net = Network(w)
    check_equal('nothing', (w.castctl('path fault'), json.loads(w.castctl('-j path fault'))), ('', []))
    net.break_these('spine5>leaf1', 'leaf4')
    net.expect('spine5>leaf1', 'leaf4')
    leaf4, spine5 = json.loads(w.castctl('-j path fault'))
    check_equal('node', leaf4['candidates'], [{'element': 'leaf4', 'kind': 'node', 'direction': None}])
    check_equal('direction', spine5['candidates'],
                [{'element': 'leaf1<>spine5', 'kind': 'link', 'direction': 'spine5>leaf1'}])
    check_equal('keys', sorted(spine5), ['candidates', 'confirmed', 'evidence', 'since'])
    check(spine5['confirmed'] and spine5['since'].endswith('Z'), '%r', spine5)
    check('dpu1,leaf1,spine5' in spine5['evidence'], '%r', spine5['evidence'])
    text = w.castctl('path fault').split('\n')
    check_equal('heading', text[0].split(), ['element', 'kind', 'direction', 'since', 'confirmed', 'evidence'])
    check_equal('a line', text[2].split()[:3] + text[2].split()[4:6],
                ['leaf1<>spine5', 'link', 'spine5>leaf1', 'true', 'dpu1,leaf1,spine5'])
    check(text[2].split()[-1].startswith('+'), 'all of the evidence: %r', text[2])


def faults_watched(w):
    """An event when it is confirmed, and one when it is over; a watch of a group has none."""
    net = Network(w)
    w.castctl('group add g')
    net.break_these()
    with Watch(w, '') as watch, Watch(w, '', text=True) as text, Watch(w, 'g') as one:
        watch.take('g:pending=')
        net.break_these('leaf1<>spine5')
        told = watch.take('fault')
        check(set(told[:-1]) == {'path-bad'}, 'broken: %r', told)
        event = watch.last()
        check_equal('fault', [event[k] for k in ('group', 'member', 'initial')], [None, None, False])
        check_equal('element', [c['element'] for c in event['candidates']], ['leaf1<>spine5'])
        check(w.db.row('Fault')['confirmed'], 'not confirmed yet')
        with Watch(w, '') as late:
            told = late.take('g:pending=')
            check(told.count('path-bad=') == len(told) - 2 and told[-2] == 'fault=', 'from the start: %r', told)
        net.break_these()
        told = watch.take('fault-cleared')
        check(set(told[:-1]) <= {'path-good'}, 'over: %r', told)
        check_equal('which one', [c['element'] for c in watch.last()['candidates']], ['leaf1<>spine5'])
        wait_until('text', lambda: len([line for line in text.lines if 'fault' in line]) == 2)
        lines = [line.partition('  ')[2] for line in text.lines if 'fault' in line]
        check(lines[0].startswith('-  -  fault: leaf1<>spine5 (dpu1,leaf1,spine5 '), '%r', lines)
        check_equal('text', lines[1], '-  -  fault-cleared: leaf1<>spine5')
        check_equal('of the group', one.take('g:pending='), ['g:pending='])
        check_equal('of the group', len(one.lines), 1)
    w.refused('watch g --until fault', 1, "--until fault: 'fault' is no event of groups")


def counters(w):
    return json.loads(subprocess.run(['ovs-appctl', '-t', w.dir + '/castd.ctl', 'rocecast/counters', '-j'],
                                     check=True, capture_output=True, text=True).stdout)


def costs_no_groups(w):
    """Probes and faults come and go: no group is computed, no node is told anything."""
    net = Network(w)
    w.castctl('group add g')
    w.settled()
    net.break_these()
    generations = {n['name']: n['cfg'] for n in w.db.rows('Node')}
    before = counters(w)
    net.break_these('leaf1>spine5')
    net.expect('leaf1>spine5')
    net.break_these()
    net.expect()
    after = counters(w)
    check(after['computations'] >= before['computations'] + 3, '%r', (before, after))
    check_equal('groups', after['groups_computed'], before['groups_computed'])
    check_equal('generations', {n['name']: n['cfg'] for n in w.db.rows('Node')}, generations)


def without_probes(w):
    """Faults go with the probes that say so, and what somebody else writes is put right."""
    net = Network(w)
    net.break_these('spine5')
    net.expect('spine5')
    w.db.transact({'op': 'delete', 'table': 'Fault', 'where': []},
                  {'op': 'insert', 'table': 'Fault', 'row': {'elements': 'leaf1', 'confirmed': True}})
    net.expect('spine5')
    check_equal('whose probes', sorted({references(n['probes']) != [] for n in w.db.rows('Node')}), [False, True])
    w.db.update('Global', {}, probe_interval=0)
    wait_until('no probes', lambda: not net.probes())
    net.expect()


CASES = (locates, confirmed_later, between_two, faults_listed, faults_watched, costs_no_groups, without_probes)
