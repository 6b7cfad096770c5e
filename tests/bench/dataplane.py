# SPDX-License-Identifier: Apache-2.0
"""bench/dp: its packets against those that scapy and rxe made, its verdicts on measurements that are
made up, the page of them, and what its programs refuse."""
import contextlib
import copy
import io
import os
import re
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET

from base import BUILD, ROOT, check, equal

sys.path.append(os.path.join(ROOT, 'bench/dp'))

import cases                                                                   # noqa: E402
import endure                                                                  # noqa: E402
import frames                                                                  # noqa: E402
import measure                                                                 # noqa: E402
import plots                                                                   # noqa: E402
import results                                                                 # noqa: E402

AGENT, PROXY = '5f00:0:200::1', 'fd00:ffff::1'
FIG1 = ((0x103, 2), (0x104, 1), (0x105, 2))
KEYS = {0x01020304: bytes(range(32)), 7: b'0123456789abcdef', 0xffffffff: bytes(range(255, 191, -1))}


def captured(name):
    """Frames of a capture in tests/vectors."""
    with open(os.path.join(ROOT, 'tests/vectors', name), 'rb') as f:
        data = f.read()
    at, found = 24, []
    while at < len(data):
        length, = struct.unpack('<I', data[at + 8:at + 12])
        found.append(data[at + 16:at + 16 + length])
        at += 16 + length
    return found


def dp_icrc(_):
    """Of each packet that rxe sent."""
    seen = 0
    for name in ('rxe-ipv6-debian-6.1.pcap', 'rxe-ops-debian-6.1.pcap'):
        for frame in captured(name):
            ip = frame[frames.ETH_LEN:]
            if ip[6] == frames.NH_UDP and ip[42:44] == struct.pack('>H', frames.ROCE_PORT):
                equal('ICRC', frames.icrc(ip[:-4]), ip[-4:])
                seen += 1
    check(seen > 100, 'only %d packets of RoCE', seen)


def receivers(copies):
    """As tests/vectors/gen-srh.py numbers them."""
    edges = [edge for edge, count in copies for _ in range(count)]
    return [('5f00:0:%x::1' % edge, 'fd00:1::%x' % k, 0x11 + k) for k, edge in enumerate(edges, 1)]


def srh_of(frame):
    at = frames.ETH_LEN + frames.IP6_LEN
    return frame[at:at + 8 + 8 * frame[at + 1]]


def dp_srh(_):
    """As scapy builds it."""
    shapes = (FIG1, ((0x103, 8),), ((0x103, 12), (0x104, 1)), ())
    for shape, frame in zip(shapes, captured('srh-scapy.pcap')):
        header = frames.srh(AGENT, PROXY, receivers(shape))
        equal('SRH of %s' % (shape,), header, srh_of(frame))
        inner = frame[frames.ETH_LEN + frames.IP6_LEN + len(header):]
        equal('packet', frames.tunnelled(AGENT, '5f00:0:100:f000::', header, inner),
              frame[frames.ETH_LEN:])


def dp_auth(_):
    """MT-AUTH, as gen-srh.py makes it from the document."""
    made = captured('auth-scapy.pcap')
    for i, (number, secret) in enumerate(KEYS.items()):
        key = frames.Key(number, secret.hex(), PROXY, 0x101)
        equal('key %d' % number, frames.srh(AGENT, PROXY, receivers(FIG1), key), srh_of(made[3 * i]))


#
# Verdicts.
#

def sample(ns, copies=100, **more):
    return dict({'packets': 10, 'refused': 0, 'copies': copies, 'units': copies, 'lost': 0,
                 'node_drops': 0, 'in_drops': 0, 'out_drops': 0, 'cpu_ns': ns * copies, 'threads_ns': [ns * copies],
                 'wall_ns': 1e9, 'flooder_ns': 1000}, **more)


class FakeLane:
    ours = True

    def __init__(self, name):
        self.name = name
        self.frame_len = 1000


def measured(times, requirements=(), **more):
    """A comparison in which lanes took so long: {name: [ns per copy, ...]}."""
    c = cases.Comparison('case-1', 'A title', None, requirements, 8, 1024, **more)
    return results.comparison(c, [FakeLane(name) for name in times],
                              [[sample(ns) for ns in of_lane] for of_lane in times.values()], [])


def document(*comparisons):
    class Options:
        packets, repeats, against = 100, 3, None
    return results.document(list(comparisons), Options)


def conclude(doc, quick):
    """The exit status."""
    with contextlib.redirect_stdout(io.StringIO()):
        return results.conclude(doc, quick)


def dp_ratios(_):
    """Of pairs that were measured one after the other; the median counts."""
    found = measured({'a': [100, 220, 90], 'b': [200, 200, 100]}, [cases.Requirement('a', 'b', 0.9)])
    r, = found['ratios']
    equal('ratio', (r['ratio']['median'], r['ratio']['min'], r['ratio']['max']), (0.9, 0.5, 1.1))
    equal('median of times', found['variants'][0]['ns']['median'], 100)
    equal('against', [(r['of'], r['to'], r['ratio']['median']) for r in measured(
        {'a': [100], 'a (against)': [150]})['ratios']], [('a (against)', 'a', 1.5)])


def dp_minus(_):
    """What packets take without a forwarder is taken off once for each packet, not for each copy."""
    found = measured({'kernel': [50], 'alone': [100]}, minus={'kernel': 'alone'})
    kernel, alone = found['variants']
    equal('alone', alone['ns']['median'], 100)
    # 100 copies and 10 packets in each lane: 50 - 100 * 100 * 10 / 10 / 100.
    equal('kernel', kernel['ns']['median'], 50 - 100)


def dp_bounds(_):
    """Each bound can be kept and missed, and the exit status says so."""
    for at_most, ratio, holds in ((False, 0.9, True), (False, 0.89, False), (True, 0.9, True),
                                  (True, 0.91, False)):
        found = measured({'a': [ratio * 100], 'b': [100]}, [cases.Requirement('a', 'b', 0.9, at_most)])
        equal('%s' % ((at_most, ratio),), found['ratios'][0]['holds'], holds)
        equal('exit status', conclude(document(found), False), 0 if holds else 3)
    shown = measured({'a': [1], 'b': [100]}, [cases.Requirement('a', 'b')])
    equal('exit status without a bound', conclude(document(shown), False), 0)


def dp_counts(_):
    """What is missing at a forwarder of ours is said, and is a failure."""
    good = measured({'a': [100]})
    equal('all there', (results.inexact(good, True), results.inexact(good, False)), (None, None))
    equal('quick', conclude(document(good), True), 0)
    for kind in ('lost', 'node_drops', 'refused'):
        bad = copy.deepcopy(good)
        bad['variants'][0][kind] = 16
        equal(kind, results.inexact(bad, False), 'a: %s 16 of 10 packets' % kind)
        equal('exit status', [conclude(document(bad), quick) for quick in (True, False)], [2, 2])
        bad['variants'][0]['ours'] = False
        equal('%s elsewhere' % kind, results.inexact(bad, True), None)
    full = copy.deepcopy(good)
    full['variants'][0].update(lost=19, in_drops=2, out_drops=3)
    equal('two packets of 8 copies did not come in, 3 copies did not go out', results.inexact(full, False), None)
    equal('nor of few', results.inexact(full, True), 'a: lost 19 of 10 packets')
    c = cases.Comparison('case-1', 'A title', None)
    failed = results.failed(c, 'it does not start')
    equal('failed', conclude(document(failed), True), 2)
    equal('nothing but skipped', conclude(document(results.skipped(c, 'no such kind')), True), 2)


def dp_none(_):
    """No copy has a time."""
    try:
        measure.per_unit_ns(sample(1, copies=0))
    except measure.Failed:
        return
    raise AssertionError('a time per copy, of no copies')


def dp_endure(_):
    """What does not add up over a long time."""
    good = {'packets': 900, 'packets_lost': 100, 'answers': 7000, 'answers_lost': 1000, 'rx_errors': 0,
            'copies': 7200, 'tx_errors': 0, 'copies_lost': 0, 'arrived': 7200, 'answers_dropped': 5,
            'dropped': 0}
    equal('good', endure.wrong(1000, good), [])
    for key, less in (('packets_lost', 100), ('answers_lost', 1000), ('copies', 100), ('arrived', 100)):
        bad = dict(good, **{key: good[key] - less})
        check(endure.wrong(1000, bad), '%d less in %s, and nothing is wrong', less, key)
    equal('copies dropped and counted', endure.wrong(1000, dict(
        good, copies=7100, arrived=7100, dropped=13)), [])


def dp_cases(_):
    """No two comparisons have one name and payload, and what is required is of lanes with different
    names."""
    every = list(cases.every())
    names = [(c.name, c.payload) for c in every]
    equal('twice', [n for n in set(names) if names.count(n) > 1], [])
    for c in every:
        for r in c.requirements:
            check(r.of != r.to, '%s: %s with itself', c.name, r.of)


#
# What is written, and said.
#

def dp_page(w):
    """It is XML, and has each lane and ratio; what is hostile in a name is text."""
    hostile = '<b onclick=\'x\'>"&amp;'
    found = [measured({'a': [100], hostile: [200]}, [cases.Requirement('a', hostile, 0.9)]),
             measured({'a': [1e3, 2e3]}, burst=1),
             results.skipped(cases.Comparison('xdp', 'Another', None), 'no such kind')]
    found[1]['copies'] = 1
    found[1]['case'], found[0]['case'] = 'end-mt-1', 'end-mt-8'
    results.write(document(*found), w.dir)
    with open(w.file('report.html'), encoding='utf-8') as f:
        root = ET.fromstring(f.read()[len('<!DOCTYPE html>\n'):])
    text = ' '.join(root.itertext())
    for wanted in ('a / ' + hostile, 'at least 0.9', 'missed', '0.50', 'no such kind'):
        check(wanted in text, '%r is not on the page', wanted)
    equal('links', [e for e in root.iter() if e.get('href') or e.get('src')], [])
    equal('pictures', len(list(root.iter('{http://www.w3.org/1999/xhtml}svg'))), 3)
    check(plots.curves([], 'copies', 'none', 'none') is None, 'a curve of no points')


def dp_described(_):
    """docs/performance.md has each key that is written."""
    with open(os.path.join(ROOT, 'docs/performance.md'), encoding='utf-8') as f:
        known = set(re.findall(r'`(\w+)`', f.read()))

    def keys(value):
        if isinstance(value, dict):
            return set(value).union(*map(keys, value.values()))
        return set().union(*map(keys, value)) if isinstance(value, list) else set()
    found = measured({'a': [1], 'b': [2]}, [cases.Requirement('a', 'b', 1)])
    found['variants'][0]['saturated'] = {'copies_per_s': 1, 'sample': sample(1)}
    c = cases.Comparison('xdp', 'Another', None)
    written = keys(document(found, results.skipped(c, ''), results.failed(c, '')))
    equal('written, not described', written - known, set())


def dp_refused(_):
    """Options and frames that the flooder cannot send."""
    def refused(text, said, *argv):
        p = subprocess.run([os.path.join(BUILD, 'tests/dp-flooder'), *argv], input=text, text=True,
                           capture_output=True, check=False)
        check(p.returncode == 1 and said in p.stderr and not p.stdout, '%s: %d, %r', argv, p.returncode,
              p.stderr)
    packet = frames.ack('::1', '::1', 2)
    line = frames.Frame('lo', '02:00:00:00:00:01', '02:00:00:00:00:02', packet, len(packet)).line()
    refused(line, 'usage: dp-flooder')
    refused(line, '-b 0: must be 1..4096', '-n', '1', '-b', '0')
    refused(line, '-n x: must be', '-n', 'x')
    refused('', 'no frame on standard input', '-n', '1')
    refused('lo 62\n', 'frame 1: not NETDEV OFFSET HEX', '-n', '1')
    refused(line + line.replace('lo ', 'none0 '), 'frame 2: none0: No such device', '-n', '1')
    refused(line.replace(' 62 ', ' 90 '), 'frame 1: no BTH at 90', '-n', '1')
    refused(line[:-2] + ('0' if line[-2] != '0' else '1') + '\n', 'frame 1: its ICRC is wrong', '-n', '1')


TESTS = (dp_icrc, dp_srh, dp_auth, dp_ratios, dp_minus, dp_bounds, dp_counts, dp_none, dp_endure,
         dp_cases, dp_page, dp_described, dp_refused)
