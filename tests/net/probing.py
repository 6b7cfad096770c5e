# SPDX-License-Identifier: Apache-2.0
"""Probes on live daemons: how good paths are, what is broken, and what forged and repeated probes do.

The fabric is clos.yaml.  Cases that say that nothing happens probe so slowly that a machine which stands still
for less than a second makes no verdict; the others wait until what they want is there.
"""
import contextlib
import itertools
import json
import os
import struct
import subprocess
import time

from netlab import Lab, group_add, model
from packets import addressed, capture, dropped, frames, refused, send

import harness
from captures import ETH, IP6, UDP, packed
from harness import all_links, castctl, castctl_json, check, check_equal, impair, output, wait_until

QUICK = ('--interval', '100ms', '--timeout', '100ms')
CALM = ('--interval', '500ms', '--timeout', '500ms')
AGENTS = ['dpu1', 'dpu2', 'dpu3', 'dpu4']
ATTEMPTS = 4
LOSS_SECONDS = 600 if os.environ.get('LONG') == '1' else 20

STAMP_PORT, PROBER_PORT = 862, 49862
# A probe's number is remembered for as many that follow it.
WINDOW = 64


serial = itertools.count()


def lab():
    return Lab.shipped('clos', 'PROBE=200ms')


#
# What there is.
#

def probe(*words):
    castctl('--wait=agents', 'path', 'probe', *words)


def probes(lab, node):
    return {p['name']: p for p in json.loads(lab.appctl(node, 'rocecast/probes', '-j'))}


def paths(lab, node):
    return json.loads(lab.appctl(node, 'rocecast/paths', '-j'))


def all_ways(lab):
    """(node, way) of all probes; the node is the way's first."""
    return {(node, '%s,%s' % (node, name)) for node in AGENTS for name in probes(lab, node)}


def leads_over(way, a, b):
    """Does the way have the link between a and b?"""
    nodes = way.split(',')
    return any({x, y} == {a, b} for x, y in zip(nodes, nodes[1:]))


def wait_good():
    """Waits until the registry says that all paths are good."""
    wait_until('all paths are good', lambda: {p['state'] for p in castctl_json('path', 'health')} == {'good'})


def afresh(how):
    """All probes begin anew, without what they have seen before."""
    probe('off')
    probe(*how)
    wait_good()


def faults():
    return castctl_json('path', 'fault')


class Watch:
    """A castctl watch that runs, in a lab with a group, which it begins with."""

    def __init__(self):
        if not castctl_json('group', 'list'):
            group_add('watched')
        self.path = harness.work_file('watch-%d' % next(serial), b'')
        with open(self.path, 'w', encoding='utf-8') as f:
            self.process = subprocess.Popen(['castctl', '-j', 'watch'], stdin=subprocess.DEVNULL, stdout=f)
        harness.running.append(self)
        # Paths that are bad are listed before groups.
        wait_until('watch has begun', lambda: any(e['group'] for e in self.events()))

    def kill(self):
        self.process.kill()
        self.process.wait()

    def events(self, *kinds):
        """All events, or those of these kinds, that have come since it began."""
        text = harness.read(self.path).decode()
        found = [json.loads(line) for line in text[:text.rfind('\n') + 1].splitlines()]
        return [e for e in found if not kinds or e['event'] in kinds and not e['initial']]

    def ways(self, kind):
        """(node, way) of what has become bad or good."""
        return {(e['node'], '%s,%s' % (e['node'], e['path'])) for e in self.events(kind)}

    def wait_ways(self, kind, wanted):
        wait_until('%s of %s; there is %s' % (kind, wanted, self.ways(kind)), lambda: wanted <= self.ways(kind))
        check_equal(kind, self.ways(kind), wanted)

    def candidates(self, kind):
        """Of each fault that has been found or is gone."""
        return [e['candidates'] for e in self.events(kind)]

    def began_well(self):
        """Was no path bad when it began?"""
        return not any(e['event'] == 'path-bad' and e['initial'] for e in self.events())

    def check_quiet(self):
        found = self.events('path-bad', 'fault')
        check(not found, 'events: %s', found)


def watch_good():
    """A watch that begins when no path is bad.  wait_good() looks at ways to other hosts only: of loops castctl tells
    nothing but what becomes of them."""
    def begin():
        watch = Watch()
        if watch.began_well():
            return watch
        watch.kill()
        return None
    return wait_until('no path is bad', begin)


#
# How good paths are.
#

@contextlib.contextmanager
def port_down(lab, node, peer):
    """The node's port to the peer is down meanwhile."""
    def set_port(state):
        output('castlab', 'exec', node, '--', 'ip', 'link', 'set', lab.port(node, peer), state)
    set_port('down')
    try:
        yield
    finally:
        set_port('up')


def all_good(lab):
    """Each way between two agents is probed and becomes good, and what is placed on it knows that."""
    wait_good()
    health = castctl_json('path', 'health')
    check_equal('paths by sender', {h: sum(p['from'] == h for p in health) for h in ('gpu1', 'gpu4')},
                {'gpu1': 18, 'gpu4': 18})
    check_equal('who says so', {p['kind'] for p in health}, {'peer'})
    for node in AGENTS:
        check_equal('probes of %s' % node, len(probes(lab, node)), 24)
        wait_until('paths of %s are good' % node, lambda node=node: {p['state'] for p in paths(lab, node)} == {'good'})
    live = castctl_json('path', 'health', 'gpu1', 'gpu3', '--live')
    check(all(p['sent'] > 0 for p in live), 'nothing was sent: %s', live)
    check_equal('what is broken', faults(), [])


def link_is_cut(lab):
    """The paths over a link become bad, and good again when it is back; the others are not touched."""
    afresh(CALM)
    wanted = {w for w in all_ways(lab) if leads_over(w[1], 'leaf1', 'spine6')}
    device = lab.port('spine6', 'leaf1')
    link, = [link for link in castctl_json('link', 'list') if 'spine6:' + device in (link['a'], link['b'])]
    watch = watch_good()
    with port_down(lab, 'spine6', 'leaf1'):
        watch.wait_ways('path-bad', wanted)
        for where, listed in (('castctl', castctl_json('path', 'health', 'gpu1')), ('dpu1', paths(lab, 'dpu1'))):
            states = {(leads_over(p.get('path') if where == 'castctl' else p['name'], 'leaf1', 'spine6'), p['state'])
                      for p in listed}
            check_equal('states of paths over the link %s, and of others, as %s has them' % (link['a'], where),
                        states, {(True, 'bad'), (False, 'good')})
        check_equal('good ones', watch.ways('path-good'), set())
        wait_until('the fault is told', lambda: watch.events('fault'))
    watch.wait_ways('path-good', wanted)
    wait_until('its end is told', lambda: watch.events('fault-cleared'))
    for kind in 'fault', 'fault-cleared':
        check_equal(kind, [c['element'] for of in watch.candidates(kind) for c in of], ['leaf1<>spine6'])
    check_equal('bad ones', watch.ways('path-bad'), wanted)
    wait_good()


#
# What is broken.
#

class dies:
    """The daemon of a node is killed; later it is started again."""

    def __init__(self, node):
        self.node = node

    def break_it(self, lab):
        output('castlab', 'stop', self.node, '--kill', '-l', lab.name)

    def mend(self, lab):
        output('castlab', 'start', self.node, '-l', lab.name)


class silent:
    """A link loses all that 'a' sends, or, with '--both', also what 'b' does; its ports stay up."""

    def __init__(self, *words):
        self.words = words

    def break_it(self, _lab):
        castctl('--wait=agents', 'link', 'impair', *self.words, 'loss=100%')

    def mend(self, _lab):
        castctl('--wait=agents', 'link', 'impair', *self.words, 'none')


class short_only:
    """A link carries no packets longer than 2000 bytes."""

    def __init__(self, node, peer):
        self.node, self.peer = node, peer

    def set_mtu(self, lab, mtu):
        output('castlab', 'exec', self.node, '--', 'ip', 'link', 'set', lab.port(self.node, self.peer), 'mtu', mtu)

    def break_it(self, lab):
        self.set_mtu(lab, '2000')

    def mend(self, lab):
        self.set_mtu(lab, '9000')


def found():
    """What is found: candidates of each fault, and whether it is confirmed."""
    return [(f['candidates'], f['confirmed']) for f in faults()]


def find(lab, what, wanted, unknown):
    """Breaks it until it is found, alone and confirmed.  A link that fails one way fails both ways when the node behind
    it verifies its neighbour; if that comes first, or a machine that stood still had something else told, it is tried
    again.  Returns the watch."""
    for _ in range(ATTEMPTS):
        watch = Watch()
        what.break_it(lab)
        try:
            ends = [(wanted, True)], [(unknown, True)]
            wait_until('%s is found; it is %s' % (wanted, found()), lambda: found() in ends)
            told = wait_until('it is told', lambda: watch.candidates('fault'))
        finally:
            what.mend(lab)
        wait_until('nothing is broken any more', lambda: not faults())
        if told[0] == wanted:
            return watch
        watch.kill()
        wait_good()
    raise harness.Failure('told first, %d times: %s, should be %s' % (ATTEMPTS, told, wanted))


def fault(title, what, element, kind, direction=None):
    """It is found and told, and its end, when it is mended."""
    def case(lab):
        unknown, wanted = ([{'element': element, 'kind': kind, 'direction': d}] for d in (None, direction))
        watch = find(lab, what, wanted, unknown)
        told = watch.candidates('fault')
        check(told[0] == wanted and told[1:] in ([], [unknown]), 'what was told: %s', told)
        wait_until('the end is told', lambda: told[-1] in watch.candidates('fault-cleared'))
    return 'fault: ' + title, case


def quick(_lab):
    """Faults are looked for with this interval."""
    afresh(QUICK)
    wait_until('nothing is broken', lambda: not faults())


FAULTS = [
    fault('spine dies', dies('spine5'), 'spine5', 'node'),
    fault('link', silent('leaf1', 'spine6', '--both'), 'leaf1<>spine6', 'link'),
    fault('link one way', silent('leaf3', 'spine5'), 'leaf3<>spine5', 'link', 'leaf3>spine5'),
    fault('link the other way', silent('spine6', 'leaf2'), 'leaf2<>spine6', 'link', 'spine6>leaf2'),
    fault('access link', silent('dpu2', 'leaf2', '--both'), 'dpu2<>leaf2', 'link'),
    fault('access link one way', silent('leaf3', 'dpu4'), 'dpu4<>leaf3', 'link', 'leaf3>dpu4'),
    fault('agent dies', dies('dpu3'), 'dpu3', 'node'),
    fault('leaf dies', dies('leaf4'), 'leaf4', 'node'),
    fault('long packets', short_only('leaf1', 'spine5'), 'leaf1<>spine5', 'link'),
]


def lost_in_all():
    return sum(c['probes']['lost'] for c in castctl_json('stats').values() if c.get('probes'))


def random_loss(lab):
    """0.1 % of all packets are lost on each link, for a while: no path is bad, and nothing is broken."""
    afresh(CALM)
    wait_until('nothing is broken', lambda: not faults())
    watch, before = Watch(), lost_in_all()
    impair(all_links(), 'loss=0.1%')
    end = time.monotonic() + LOSS_SECONDS
    wait_until('the time is over', lambda: time.monotonic() > end or watch.events('path-bad', 'fault'))
    wait_until('probes were lost', lambda: lost_in_all() > before)
    watch.check_quiet()
    print('      lost in %d s: %d probes' % (LOSS_SECONDS, lost_in_all() - before))
    impair(all_links(), 'none')
    check_equal('what is broken', [f for f in faults() if f['confirmed']], [])
    wait_good()
    watch.check_quiet()


#
# Forged and repeated.
#

def ports_of(frame):
    """UDP's source and destination port behind a single header; None if it is no probe, nor an answer to one."""
    if frame[12:14] != b'\x86\xdd' or frame[ETH + 6] != 17:
        return None
    ports = struct.unpack_from('!HH', frame, ETH + IP6)
    return ports if STAMP_PORT in ports else None


def stamp_frames(path):
    return [f for f in frames(path, growing=True) if ports_of(f)]


def ones(data):
    """The ones' complement sum of RFC 1071."""
    total = sum(struct.unpack('!%dH' % ((len(data) + 1) // 2), data + b'\0' * (len(data) % 2)))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total


def whole(frame):
    """The frame with the UDP checksum that it should have."""
    at = ETH + IP6
    udp = frame[at:at + 6] + b'\0\0' + frame[at + UDP:]
    csum = ~ones(frame[ETH + 8:at] + struct.pack('!II', len(udp), 17) + udp) & 0xffff
    return frame[:at] + udp[:6] + struct.pack('!H', csum or 0xffff) + udp[UDP:]


def with_bytes(frame, at, data):
    """The frame with other bytes behind its UDP header."""
    at += ETH + IP6 + UDP
    return whole(frame[:at] + data + frame[at + len(data):])


def number_at(frame, at):
    return struct.unpack_from('!I', frame, ETH + IP6 + UDP + at)[0]


def swapped(frame):
    """An own probe as if it were an answer."""
    at = ETH + IP6
    return whole(frame[:at] + struct.pack('!HH', STAMP_PORT, PROBER_PORT) + frame[at + 4:])


class Genuine:
    """What came to dpu1 from leaf1: an answer of dpu3, an own loop, and a probe of dpu3."""

    def __init__(self, lab):
        self.lab = lab
        self.node = {n['name']: packed(n['address']) for n in castctl_json('node', 'list')}
        with capture(lab, 'dpu1', 'leaf1', 'genuine-%d.pcap' % next(serial)) as path:
            self.answer, self.loop, self.asked = wait_until('one of each has come', lambda: self.find(path))

    def find(self, path):
        """The newest of each."""
        to = packed('5f00:0:a1::')
        came = [f for f in stamp_frames(path) if f[38:54] == to and len(f) < 300]
        kinds = [[f for f in came if f[22:38] == self.node[src] and ports_of(f)[0] == sport]
                 for src, sport in (('dpu3', STAMP_PORT), ('dpu1', PROBER_PORT), ('dpu3', PROBER_PORT))]
        return [of[-1] for of in kinds] if all(kinds) else None

    def inject(self, what, frame, reason, node='dpu1', link=('leaf1', 'dpu1'), n=3):
        """Sent to dpu1 some times it is counted by 'node' as often, and nowhere else."""
        lab, before = self.lab, self.lab.faults()
        send(lab, *link, [frame] * n)
        wait_until('%s: %s at %s; it is %s' % (what, reason, node, lab.faults()),
                   lambda: dropped(lab, node, reason) - before.get((node, reason), 0) == n)
        grown = {k: v - before.get(k, 0) for k, v in lab.faults().items() if v != before.get(k, 0)}
        check_equal(what, grown, {(node, reason): n})


def forged(lab):
    """What no node has asked for, or has had before, changes nothing and is counted, each for its reason."""
    afresh(CALM)
    watch, real = Watch(), Genuine(lab)
    answer, loop, asked = real.answer, real.loop, real.asked
    # The way back is the last TLV, an address that ends in dpu3's uSID.
    other_end = whole(asked[:-16] + asked[-16:].replace(b'\0\xa3', b'\0\xa4'))
    for what, frame, reason in (
            ('answer, again', answer, 'probe_replayed'),
            ('loop, again', loop, 'probe_replayed'),
            ("another node's probe, again", asked, 'probe_replayed'),
            ('answer to what was not sent', with_bytes(answer, 24, struct.pack('!I', number_at(answer, 24) + 1)),
             'probe_forged'),
            ('answer to another probe', with_bytes(answer, 14, b'\x0f\xf0'), 'probe_forged'),
            ('answer with another time', with_bytes(answer, 31, b'\0'), 'probe_forged'),
            ('answer of another node', whole(addressed(answer, src='5f00:0:a4::1')), 'probe_forged'),
            ('loop that was not sent', with_bytes(loop, 0, struct.pack('!I', number_at(loop, 0) + 1)), 'probe_forged'),
            ('loop as an answer', swapped(loop), 'probe_malformed'),
            ('answer with a wrong checksum', answer[:-1] + bytes([answer[-1] ^ 1]), 'probe_malformed'),
            ('probe of a node that probes nobody', whole(addressed(asked, src='5f00:0:500::1')), 'probe_prober'),
            ('probe that is to be answered to another', other_end, 'probe_return')):
        real.inject(what, frame, reason)
    as_dpu2 = whole(addressed(asked[6:12] + asked[:6] + asked[12:], src='5f00:0:a2::1'))
    real.inject('probe of dpu2 that dpu1 sends', as_dpu2, 'source_guard', 'leaf1', ('dpu1', 'leaf1'))
    # It is answered, and who is said to have asked has not.
    ahead = with_bytes(asked, 0, struct.pack('!I', (number_at(asked, 0) + 100000) % 2**32))
    real.inject('probe that dpu3 has not sent', ahead, 'probe_forged', 'dpu3', n=1)
    sent = {node: {name: p['sent'] for name, p in probes(lab, node).items()} for node in ('dpu1', 'dpu3')}
    wait_until('probes go on', lambda: all(
        p['sent'] >= sent[node][name] + 4 for node in sent for name, p in probes(lab, node).items()))
    watch.check_quiet()
    wait_good()


def replayed_later(lab):
    """A genuine answer that comes again when its number is forgotten is counted, too; and so it is by an agent that was
    started after it."""
    afresh(CALM)
    real = Genuine(lab)
    number = struct.unpack_from('!H', real.answer, ETH + IP6 + UDP + 14)[0]

    def sent():
        return next(p['sent'] for p in probes(lab, 'dpu1').values() if p['number'] == number)
    enough = sent() + WINDOW + 1
    probe(*QUICK)
    wait_until('many more are sent', lambda: sent() > enough)
    probe(*CALM)
    late = dropped(lab, 'dpu1', 'probe_late')
    send(lab, 'leaf1', 'dpu1', [real.answer] * 3)
    wait_until('it is counted', lambda: dropped(lab, 'dpu1', 'probe_late') >= late + 3)
    wait_good()
    output('castlab', 'restart', 'dpu1', '-l', lab.name)
    wait_good()
    before = dropped(lab, 'dpu1', 'probe_forged')
    send(lab, 'leaf1', 'dpu1', [real.answer] * 3)
    wait_until('it is counted', lambda: dropped(lab, 'dpu1', 'probe_forged') == before + 3)
    wait_good()


#
# No probes.
#

def turned_off(lab):
    """Without probes nothing is known of paths, nothing is sent, and data flow; and so it is in one plane."""
    refused(1, 'must be', 'path', 'probe', '--interval', '0ms')
    probe('off', '--plane', 'A')
    probe(*QUICK)
    wait_until('states of planes', lambda: {(p['plane'], p['state']) for p in paths(lab, 'dpu1')} == {
        ('', 'good'), ('A', 'unknown'), ('B', 'good')})
    probe('default', '--plane', 'A')
    probe('off')
    check_equal('states', {p['state'] for node in AGENTS for p in paths(lab, node)}, {'unknown'})
    check_equal('states, as the registry has them', {p['state'] for p in castctl_json('path', 'health')}, {None})
    check_equal('probes', [probes(lab, node) for node in AGENTS], [{}] * 4)
    check_equal('what is broken', faults(), [])
    with capture(lab, 'dpu1', 'leaf1', 'one.pcap') as one, capture(lab, 'dpu1', 'leaf2', 'other.pcap') as other, \
            capture(lab, 'spine5', 'leaf1', 'spine.pcap') as spine:
        model(None, ['gpu3'], '-n', '200', source='gpu1')
        check_equal('probes on links', [stamp_frames(p) for p in (one, other, spine)], [[], [], []])
        check(frames(one, growing=True) + frames(other, growing=True), 'no data either')
    afresh(QUICK)


CASES = [all_good, link_is_cut, quick, *FAULTS, random_loss, forged, replayed_later, turned_off]
