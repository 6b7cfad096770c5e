# SPDX-License-Identifier: Apache-2.0
"""What is on the page."""
import os
import re
import statistics
import subprocess

import synthetic
from base import (DASH, HOSTILE, PROGRAM, check, equal, inside, parse, pictures, small, table, tables,
                  written)

import charts
import document
from svg import log_ticks


def whole(w):
    """It is one file, and a browser that loads nothing shows all of it."""
    root = w.page(synthetic.demonstration('fig1', 1), small(sizes=(4096, 65536)))
    for e in root.iter():
        check(e.tag not in ('script', 'link', 'img', 'iframe', 'object', 'image', 'use', 'base'),
              'a <%s>', e.tag)
        for name, value in e.attrib.items():
            check(name not in ('src', 'srcset', 'style', 'xlink:href') and not name.startswith('on'),
                  '%s in <%s>', name, e.tag)
            check(name != 'href' or value.startswith('#'), 'href=%s', value)
    style = inside(root.find('head/style'))
    check('url' not in style and '@import' not in style and 'prefers-color-scheme: dark' in style,
          'style sheet')
    policy = root.find("head/meta[@http-equiv]")
    check(policy.get('content').startswith("default-src 'none';"), 'policy')
    ids = [e.get('id') for e in root.iter() if e.get('id')]
    equal('ids', len(ids), len(set(ids)))
    links = [e.get('href')[1:] for e in root.iter('a')]
    equal('links', links, ids)
    used = {c for e in root.iter() for c in (e.get('class') or '').split()}
    colours = {c for c in used if re.match('[cft][0-9]', c)}
    check(colours and all('.%s ' % c in style or '.%s{' % c in style for c in colours), 'colours')


def head(w):
    value = small()
    value['labels'] = {'topology': 'T1', 'who': 'me'}
    value['command'] = ['castbench', 'write', '--label', 'a b', "it's"]
    root = w.page(value)
    facts = dict(zip([inside(e) for e in root.iter('dt')], [inside(e) for e in root.iter('dd')]))
    for name, want in (('Test', 'write'), ('Kernel', value['host']['kernel']), ('who', 'me'),
                       ('Host', 'bench-vm, x86_64, 2 CPUs'), ('Started', value['started']),
                       ('Receivers', '2: r1, r2'), ('rocecast', '0.1'),
                       ('To run it again', "castbench write --label 'a b' 'it'\"'\"'s'")):
        equal(name, facts[name], want)
    for scheme, how in document.HOW.items():
        equal(scheme, facts.get(scheme), how if scheme in ('mcast', 'unicast', 'btree') else None)
    check('pattern seq' in facts['Options'] and 'rate' not in facts['Options'], '%r', facts)
    equal('title', inside(root.find('body/h2')), 'T1')


def numbers(w):
    """The summary's table, computed again from the file."""
    value = small(sizes=(65536,))
    rows = table(w.page(value), ['scheme', 'replicas', 'runs', 'MB/s'])
    equal('rows', [row[:3] for row in rows],
          [[s, str(n), '3'] for n in (1, 2) for s in ('mcast', 'unicast', 'btree')])
    summary = {(r['scheme'], r['replicas_n']): r for r in value['summary']}

    def uplinks(scheme, n, what):
        return [what(r) / r['bytes'] for r in value['runs']
                if (r['scheme'], r['replicas_n']) == (scheme, n)]

    for row in rows:
        key, mcast = (row[0], int(row[1])), ('mcast', int(row[1]))

        def ratio(a, b):
            return '%.2f' % (a / b)

        def spread(name, key=key, unit=1):
            s = summary[key][name]
            return '%s %s%s%s' % (*(written(s[k] / unit) for k in ('median', 'min')), DASH,
                                  written(s['max'] / unit))

        for i, name, unit in ((3, 'mb_per_s', 1), (5, 'messages_per_s', 1), (6, 'p50_us', 1000),
                              (8, 'p99_us', 1000)):
            equal('%s, %s' % (key, name), row[i], spread(name, unit=unit))
        for i, name in ((4, 'mb_per_s'), (7, 'p50_us'), (9, 'p99_us')):
            equal('%s, ratio of %s' % (key, name), row[i],
                  ratio(summary[key][name]['median'], summary[mcast][name]['median']))
        for i, what in ((10, lambda r: r['uplink']['tx_bytes']), (12, lambda r: r['counted_bytes'])):
            mine, base = (statistics.median(uplinks(*k, what)) for k in (key, mcast))
            equal('%s, bytes' % (key,), row[i:i + 2], ['%.2f' % mine, ratio(mine, base)])
    cpu = table(w.page(value), ['scheme', 'replicas', 'source'])
    want = statistics.median(r['cpu_s_per_gb']['fabric'] for r in value['runs']
                             if (r['scheme'], r['replicas_n']) == ('btree', 2))
    check(cpu[2][3].startswith(written(want) + ' '), '%r, wanted %r', cpu[2], want)


def rules(w):
    """Any, quorum and all, and the greater percentiles."""
    value = small()
    rows = table(w.page(value), ['scheme', 'replicas', 'quorum', 'anyp50'])
    runs = [r for r in value['runs'] if (r['scheme'], r['replicas_n']) == ('unicast', 2)]
    row = rows[1]
    equal('row', row[:3], ['unicast', '2', '2'])
    for i, rule, name in ((3, 'any', 'p50_us'), (4, 'quorum', 'p50_us'), (5, 'any', 'p99_us'),
                          (6, 'quorum', 'p99_us'), (7, 'all', 'p50_us'), (8, 'all', 'p90_us'),
                          (9, 'all', 'p99_us'), (10, 'all', 'p999_us'), (11, 'all', 'max_us')):
        want = written(statistics.median(r['latency'][rule][name] for r in runs) / 1000)
        equal('%s %s' % (rule, name), row[i].split(' ')[0], want)
    equal('skew of mcast', rows[0][12], DASH)
    want = written(statistics.median(r['longest_gap_us'] for r in runs) / 1000)
    equal('longest gap', row[13].split(' ')[0], want)


def dashes(w):
    """What is not known is no 0, and draws nothing."""
    value = small(schemes=('mcast', 'chain'), replicas=(2,))
    for run in value['runs']:
        if run['scheme'] == 'chain':
            synthetic.fail(run, 'it did not work')
    value['summary'] = [dict(r, **{k: None for k in r if isinstance(r[k], dict)})
                        for r in value['summary']]
    value['host'] = dict.fromkeys(value['host'])
    for run in value['runs']:
        run['cpu_s_per_gb']['fabric'] = None
        run['uplink'] = None
    root = w.page(value)
    for row in table(root, ['scheme', 'replicas', 'runs', 'MB/s']):
        equal('summary', row[3:12], [DASH] * 9)
    for row in table(root, ['scheme', 'replicas', 'source']):
        equal('fabric', row[3], DASH)
    row = table(root, ['scheme', 'replicas', 'block'])[1]
    equal('validity', row, ['chain', '2', '1 MiB', '0 of 3', '0 of 6', *[DASH] * 5])
    equal('pictures', [p for p in pictures(root, 'replicas') if 'latency' not in p.get('aria-label')],
          [])
    check('There is no tree' in inside(root), 'no tree')


def texts(svg):
    return [inside(t) for t in svg.iter('text')]


def against_replicas(w):
    """Each median is a mark at its height, and its least and greatest are the ends of a bar."""
    value = small(replicas=(1, 2, 4))
    svg = pictures(w.page(value), 'Throughput, MB/s, against')[0]
    marks = {}
    for e in list(svg.iter('circle')) + [p for p in svg.iter('path') if p.find('title') is not None]:
        if e.find('title') is not None:
            said = re.match(r'(\S+), (\d+): (\S+) MB/s \((\S+) to (\S+)\)', e.find('title').text)
            ys = [float(y) for y in re.findall(r',(-?[\d.]+)', e.get('d') or ',' + e.get('cy'))]
            marks[said[1], int(said[2])] = (said[3], said[4], said[5], (min(ys) + max(ys)) / 2)
    equal('marks', len(marks), 9)
    for row in value['summary']:
        s = row['mb_per_s']
        got = marks[row['scheme'], row['replicas_n']]
        equal('%s' % row['scheme'], got[:3], tuple(written(s[k]) for k in ('median', 'min', 'max')))
    zero, top = (next(float(t.get('y')) for t in svg.iter('text') if inside(t) == name) - 4
                 for name in ('0', '40'))
    for row in value['summary']:
        want = zero - (zero - top) * row['mb_per_s']['median'] / 40
        got = marks[row['scheme'], row['replicas_n']][3]
        check(abs(got - want) < 2.5, '%s: %r, wanted %r', row['scheme'], got, want)
    bars = [(e.get('class')[-1], float(e.get('y1')), float(e.get('y2'))) for e in svg.iter('line')
            if e.get('class').startswith('bar')]
    want = [(str(synthetic.SCHEMES.index(row['scheme'])), *(zero - (zero - top) * s[k] / 40
                                                            for k in ('min', 'max')))
            for row in value['summary'] for s in [row['mb_per_s']]]
    check(len(bars) == len(want) and all(
        a[0] == b[0] and abs(a[1] - b[1]) + abs(a[2] - b[2]) < 0.1
        for a, b in zip(sorted(bars), sorted(want))), '%r, wanted %r', bars, want)
    uplink = pictures(w.page(value), 'uplink')[0]
    check('unicast 4.08' in texts(uplink) and 'mcast 1.08' in texts(uplink), '%r', texts(uplink))
    root = w.page(small(replicas=(2,), repeats=1))
    check('By scheme: 2 replicas, blocks of ' in inside(root), 'the heading')
    bars = pictures(root, 'uplink')[0]
    lengths = [float(r.get('width')) for r in bars.iter('rect')]
    check(abs(lengths[1] / lengths[0] - 2.04 / 1.08) < 0.01, '%r', lengths)


def ticks(_):
    """Texts that would touch are left out, but never that of the greatest value."""
    frame = charts.Frame('x')
    frame.set_x(1, 88)
    frame.x_ticks([(v, str(v)) for v in (1, 2, 40, 87, 88)], 'replicas')
    svg = frame.picture.render()
    equal('shown', re.findall('>([0-9]+)<', svg), ['1', '40', '88'])
    for low, high, want in ((1, 1000, [1, 10, 100, 1000]), (0.9, 30, [1, 2, 5, 10, 20]),
                            (104, 151, [120, 140]), (95, 210, [100, 150, 200]),
                            (1.04, 1.5, [1.2, 1.4])):
        equal('log, %g to %g' % (low, high), [round(t, 9) for t in log_ticks(low, high, 6)], want)


def percentiles(w):
    """It is said where they are of too few blocks."""
    for count, said in ((1, 'each percentile is its time'), (20, 'runs of 20 blocks: what is above p95 '),
                        (1000, None)):
        text = inside(w.page(small(count=count, repeats=1, schemes=('mcast',))))
        equal('%d blocks' % count, 'There are runs' in text, said is not None)
        check(said is None or said in text, 'no %r', said)


def distribution(w):
    """The curve against the times of which the histogram was made."""
    times = [100 + i * 0.7 for i in range(1000)] + [5000.0]
    latency = synthetic.latency(times, True)
    runs = [{'latency': {'all': latency}}, {'latency': {'all': latency}}]
    histogram, longest = document.merged_histogram(runs)
    equal('counts', sum(c for _, c in histogram), 2002)
    points = charts.steps(histogram, longest)
    for (x1, y1), (x2, y2) in zip(points, points[1:]):
        check(x1 <= x2 and y1 <= y2, 'descends at %r', x1)
        at = sum(t < x2 for t in times) / len(times)
        check(abs(at - y2) < 0.002, 'share at %r: %r, wanted %r', x2, y2, at)
    equal('last', points[-1], (5000.0, 1.0))
    svgs = pictures(w.page(small()), 'latency with 2 replicas')
    equal('pictures', len(svgs), 2)
    for svg, rises in zip(svgs, (True, False)):
        for p in svg.iter('path'):
            ys = [float(y) for y in re.findall(r',(-?[\d.]+)', p.get('d'))]
            equal('ends', (min(ys), max(ys)), (ys[-1], ys[0]) if rises else (ys[0], ys[-1]))
            check(ys[0] != ys[-1], 'flat')
        equal('lines', sorted(p.find('title').text for p in svg.iter('path')),
              ['btree', 'mcast', 'unicast'])


def tree(w):
    """Each link's bytes in both directions, in all schemes; lines are as wide as they say."""
    value = synthetic.make(replicas=(2, 5), repeats=1, count=20)
    root = w.page(value)
    for scheme in synthetic.SCHEMES:
        svg = pictures(root, scheme + ': bytes on each link')[0]
        run = next(r for r in value['runs'] if (r['scheme'], r['replicas_n']) == (scheme, 5))
        want = {d['device'][len('fig1-'):]: '%.2f' % (d['tx_bytes'] / run['bytes'])
                for d in run['counted']}
        got, widths = {}, {}
        for path in svg.iter('path'):
            said = re.match(r'(\w+) to (\w+): (\S+), back: (\S+)', path.find('title').text)
            got['%s:%s' % said.group(1, 2)], got['%s:%s' % said.group(2, 1)] = said.group(3, 4)
            if 'up' not in path.get('class').split():
                widths[said.group(1, 2)] = (float(path.get('stroke-width')), float(said[3]))
        equal(scheme, got, want)
        check(all(abs(width - max(1, 1.2 if v else 0, v / 5.1 * 11)) < 0.05
                  for width, v in widths.values()), '%s: widths %r', scheme, widths)
        equal('numbers of ' + scheme, sorted(t for t in texts(svg) if t[0].isdigit()),
              sorted(want.values()))
        equal('nodes of ' + scheme, sorted(t for t in texts(svg) if not t[0].isdigit()),
              ['h0', 'n1', 'n2', 'n3', 'n4', 'n5', 'n6', 'sa'])


def lab_names(w):
    """'-' in names of the lab and of nodes; devices that are no links."""
    value = synthetic.make(replicas=(5,), repeats=1, count=5, schemes=('mcast',))
    run = value['runs'][0]

    def rename(device):
        netns, dev = device.split(':')
        return 'my-lab-x%s:%s' % tuple(
            re.sub(r'^(x?)n(\d)$', r'\1edge-\2', n) for n in (netns[len('fig1-'):], dev))

    for device in run['counted'] + [run['uplink']]:
        name = rename(device['device'])
        device['device'] = name.replace('-x', '-', 1).replace('-redge', '-edge')
    run['counted'] += [{'device': 'my-lab-edge-1:br-edge-1', 'tx_bytes': run['bytes'] * 3,
                        'tx_packets': 1},
                       {'device': 'eth0', 'tx_bytes': None, 'tx_packets': None}]
    for device in run['counted']:
        node = re.match(r'my-lab-(n\d):', device['device'])
        if node:
            device['device'] = device['device'].replace(node[1], 'edge-' + node[1][1], 1)
    root = w.page(value)
    svg = pictures(root, 'mcast: bytes on each link')[0]
    equal('nodes', sorted(t for t in texts(svg) if not t[0].isdigit()),
          ['edge-%d' % i for i in range(1, 7)] + ['h0', 'sa'])
    equal('others', table(root, ['devices not in the pictures']),
          [['eth0', DASH], ['my-lab-edge-1:br-edge-1', '3.00']])
    run['counted'] = [dict(run['uplink'])]
    svg = pictures(w.page(value), 'mcast: bytes on each link')[0]
    equal('uplink only', sorted(texts(svg)), ['1.08', 'edge-6', 'h0', 'sa', DASH])
    value = synthetic.make('wide', replicas=(2,), repeats=1, count=5, schemes=('mcast',))
    svg = pictures(w.page(value), 'mcast: bytes on each link')[0]
    equal('order', [t for t in texts(svg) if re.match('n[1-9]', t)],
          ['n%d' % i for i in range(1, 30)])


def over_time(w):
    """Receivers that were lost, and a run that failed, are marked when it happened."""
    value = synthetic.demonstration('fig1', 1)
    root = w.page(value)
    svg = pictures(root, 'throughput over time')[0]
    marks = {p.find('title').text: float(p.get('d')[1:].split(',')[0]) for p in svg.iter('path')
             if p.get('class') == 'event'}
    lost = next(one for run in value['runs'] for one in run['lost'])
    failed = next(run for run in value['runs'] if run.get('error', '').startswith('r2:'))
    at = {inside(t): float(t.get('x')) for t in svg.iter('text') if inside(t) in ('0', '20')}
    origin = min(float(line.get('x1')) for line in svg.iter('line'))
    per_second = (at['20'] - origin) / 20
    for what, ms in (('r3 lost', lost['after_ms']), (failed['error'], failed['timeline'][-1][0])):
        x = next(x for said, x in marks.items() if said.startswith(what))
        check(abs(x - origin - per_second * ms / 1000) < 1, '%s is at %r', what, x)
    equal('names', sorted(t for t in texts(svg) if 'lost' in t or 'failed' in t),
          ['r3 lost', 'run failed'])
    went_wrong = table(root, ['run', 'scheme', 'replicas', 'block', 'repeat', 'what'])
    equal('what', [row[5:7] for row in went_wrong],
          [['receivers were lost', DASH], ['receiver lost', 'r3'], ['replica not complete', 'r3'],
           ['run failed', DASH]])
    check('no response for 10.0 s' in went_wrong[1][7] and 'block 85' in went_wrong[2][7] and
          failed['error'] == went_wrong[3][7], '%r', went_wrong)
    equal('conditions', table(root, ['condition']),
          [['p99>200ms', 'unicast, 2 replicas, blocks of 1 MiB', '263 ms', 'holds: failed']])
    row = next(r for r in table(root, ['scheme', 'replicas', 'block']) if r[:2] == ['mcast', '5'])
    equal('mcast', row[3:8], ['2 of 3', '15 of 16', '768\u202f000', '900', '0.117 %'])
    value = small(schemes=('mcast',), repeats=1)
    value['runs'][0]['lost'] = [{'host': 'the-same-for-all-of-them-%d' % i, 'why': 'no', 'after_ms': 5}
                                for i in range(30)]
    check('the-same-for-all-of\u2026 lost and 29 more' in texts(
        pictures(w.page(value), 'throughput over time')[0]), 'names that are cut off alike')


def members(w):
    """Events of members are marked when they were made, and in a table with what followed."""
    value = small(schemes=('mcast',), replicas=(2,), repeats=1, count=2000)
    run = value['runs'][0]
    equal('no events, no table', [h for h, _ in tables(w.page(value)) if '<event' in h or 'event' in h], [])
    synthetic.come_and_go(run, 'r1', 'r2')
    root = w.page(value)
    svg = pictures(root, 'throughput over time')[0]
    equal('marks', [p.find('title').text for p in svg.iter('path') if p.get('class') == 'event wanted'],
          ['join r1 after 1\u202f510 ms', 'kill r2 after 2\u202f505 ms', 'start r2 after 3\u202f004 ms'])
    equal('lost', [p for p in svg.iter('path') if p.get('class') == 'event'], [])
    rows = table(root, ['run', 'event', 'host'])
    equal('events', [row[:8] for row in rows], [
        ['0', 'join', 'r1', '1.51 s', 'active', '420 ms', '20', '4\u202f700'],
        ['0', 'kill', 'r2', '2.5 s', 'lost', '2.29 s', DASH, DASH],
        ['0', 'start', 'r2', '3 s', 'active', '2.1 s', '40', '9\u202f000']])
    speeds = run['goodput_mb_per_s']
    equal('speeds', [row[8:12] for row in rows],
          [[written(v) for v in (speeds[s], statistics.median(speeds[:s]), min(speeds[:s]), max(speeds[:s]))]
           for s in (1, 2, 3)])
    equal('why', [row[12] for row in rows], [DASH, run['events'][1]['status'], DASH])
    run['events'][1].update(made_ms=None, state=None, told_ms=None, status=None)
    equal('not made', table(w.page(value), ['run', 'event', 'host'])[1],
          ['0', 'kill', 'r2'] + [DASH] * 10)


def condition_units(w):
    """Medians have the unit of their metric; a condition that holds is not good."""
    value = small(replicas=(2,), repeats=1)
    value['fail_if'] = [{'condition': c, 'value': v, 'failed': failed, 'run': 0} for c, v, failed in (
        ('p99.9 > 1s', 12345.6, False), ('mcast : throughput<9', 8.5, True), ('uplink>5', 123456, False),
        ('unicast:messages<1', 2, False), ('retransmissions>1%', 0.25, False), ('skew>1', None, True))]
    root = w.page(value)
    equal('medians', [row[2] for row in table(root, ['condition'])],
          ['12.3 ms', '8.500 MB/s', '123\u202f456 B', '2 /s', '0.2500 %', DASH])
    state = next(p for p in root.iter('p') if 'state' in (p.get('class') or ''))
    equal('state', (state.get('class'), inside(state)), (
        'state bad', '3 runs; in each, every replica held every byte, but 2 of 6 conditions hold that '
        'must not: see below'))


def slowed(w):
    """To what the source was slowed down is drawn where it was, and nowhere else."""
    value = small(schemes=('mcast',), repeats=1)

    def drawn():
        svg = pictures(w.page(value), 'throughput over time')[0]
        return [p.get('d') for p in svg.iter('path') if p.get('class') == 'thin limit']
    equal('never', drawn(), [])
    run = value['runs'][-1]         # of the most replicas.
    run['rates'] = [
        {'ms': ms, 'mbit_per_s': rate, 'cuts': 0, 'cause': None, 'node': None}
        for ms, rate in ((1, None), (2, 1e6), (3, 80), (4, None), (5, 8), (6, None))]
    equal('limits', charts.limits(run['rates']), [[(2, 125000), (3, 10)]])
    line, = drawn()
    points = [tuple(map(float, p.split(','))) for p in line[1:].split('L')]
    check(len(points) == 2 and points[0][0] < points[1][0] and points[0][1] < points[1][1], '%r', points)


def speeds(_):
    """Throughput from the samples: bytes are of each interval."""
    equal('speeds', charts.speeds([[10, 5000], [20, 1000], [20, 500], [40, 0]], 3),
          [(0, 10, 0.5), (10, 20, 0.1), (20, 40, 0.025)])
    equal('joined', charts.speeds([[10, 5000], [20, 1000], [30, 3000]], 15), [(0, 20, 0.3),
                                                                           (20, 30, 0.3)])
    equal('the rest', charts.speeds([[100, 5000], [200, 5000], [202, 4000]], 1),
          [(0, 100, 0.05), (100, 202, 9000 / 102 / 1000)])
    equal('only one', charts.speeds([[2, 4000]], 100), [(0, 2, 2.0)])
    run = {'timeline': [[250 * (i + 1), 1000 * (i % 2)] for i in range(8)], 'count': 4}
    equal('two blocks', charts.speeds(run['timeline'], charts.shortest(run, 1)),
          [(0, 1000, 0.002), (1000, 2000, 0.002)])
    equal('pixels', charts.shortest(dict(run, count=None), 7), 21)


def box(svg, text):
    """Of a text, as a browser might draw it, at least: narrower than it is."""
    width = 5.6 * len(inside(text))
    x, y = float(text.get('x')), float(text.get('y'))
    left = x - {'end': width, 'middle': width / 2}.get(text.get('text-anchor'), 0)
    return (left, y - 8, left + width, y), (float(svg.get('width')), float(svg.get('height')))


def legible(w):
    """No text of a picture is cut off or on top of another."""
    for value in (synthetic.demonstration('fig1', 1), synthetic.demonstration('wide', 2),
                  synthetic.make('star-8x1', replicas=(8,), repeats=1, count=30),
                  synthetic.make('star-1x8', replicas=(1, 2, 3, 4, 5, 6, 7, 8), repeats=2, count=10,
                                 sizes=(2, 64, 4096, 1 << 20))):
        for svg in w.page(value).iter('svg'):
            drawn = []
            for text in svg.iter('text'):
                (x1, y1, x2, y2), (width, height) = box(svg, text)
                check(x1 >= -1 and y1 >= -1 and x2 <= width + 1 and y2 <= height,
                      '%r is cut off in %r', inside(text), svg.get('aria-label'))
                for other, (a1, b1, a2, b2) in drawn:
                    check(x1 >= a2 or a1 >= x2 or y1 >= b2 or b1 >= y2, '%r is on %r in %r',
                          inside(text), other, svg.get('aria-label'))
                drawn.append((inside(text), (x1, y1, x2, y2)))


def rename_all(value, suffix):
    """Appends to all strings, to both parts of a device, and to a label's name."""
    if isinstance(value, str):
        return value + suffix
    if isinstance(value, list):
        return [rename_all(v, suffix) for v in value]
    if isinstance(value, dict):
        return {k + suffix if k == 'who' else k:
                '%s:%s' % tuple(part + suffix for part in v.split(':')) if k == 'device' else
                rename_all(v, suffix) for k, v in value.items()}
    return value


def shape(root):
    return [(e.tag, tuple(sorted(e.attrib))) for e in root.iter()]


def escaping(w):
    """Names are the user's: whatever is in them, the page has the same elements."""
    value = synthetic.demonstration('fig1', 1)
    value['labels']['who'] = 'me'
    value['runs'] = value['runs'][:9]
    value['summary'] = synthetic.summary(value['runs'])
    value['runs'][8]['lost'] = [{'host': 'r1', 'why': 'gone', 'after_ms': 50}]
    tame = w.page(rename_all(value, 'x' * len(HOSTILE)))
    root = w.page(rename_all(value, HOSTILE))
    equal('elements', shape(root), shape(tame))
    for want in ('me', 'h0', 'r1', 'mcast', 'bench-vm', 'gone', 'fig1', 'n4'):
        check(want + HOSTILE in inside(root) or any(want + HOSTILE in v for e in root.iter()
                                                    for v in e.attrib.values()), 'no %r', want)
    value['labels'] = {'topology': 'a\x00b\x1b\ud800\ufffe'}
    equal('title', inside(w.page(value).find('body/h2')), 'a' + '\ufffd'.join(['', 'b', '', '', '']))


def several(w):
    """Each file is a part of its own, and has a line in the table at the top."""
    values = [synthetic.demonstration(t, 1) for t in ('fig1', 'star-1x8')]
    root = w.page(*values)
    equal('parts', [inside(h) for h in root.findall('body/h2')], ['fig1', 'star-1x8'])
    rows = table(root, ['what', 'file'])
    equal('files', [row[:2] for row in rows], [['fig1', '0.json'], ['star-1x8', '1.json']])
    equal('runs', [row[7] for row in rows], ['2 of 84 failed'] * 2)
    alike = w.page(*values, values[0])
    equal('titles', [inside(h) for h in alike.findall('body/h2')],
          ['fig1, 0.json', 'star-1x8', 'fig1, 2.json'])
    for folder in 'a', 'b':
        os.mkdir(w.file(folder))
        w.write(folder + '/x.json', values[0])
    text = subprocess.run([PROGRAM, 'report', 'a/x.json', 'b/x.json'], cwd=w.dir, check=True,
                          capture_output=True, text=True).stdout
    equal('titles', [inside(h) for h in parse(text).findall('body/h2')],
          ['fig1, a/x.json', 'fig1, b/x.json'])
    w.page(*values)
    text = subprocess.run([PROGRAM, 'report', '0.json', '1.json'], cwd=w.dir, check=True,
                          capture_output=True).stdout
    with open(w.file('page.html'), 'rb') as f:
        equal('standard output', text, f.read())


def largest(w):
    """Details are of the greatest number of replicas with which a run came to its end."""
    value = small(replicas=(1, 2, 4), repeats=1)
    for run in value['runs']:
        if run['replicas_n'] == 4:
            synthetic.fail(run, 'no')
    value['summary'] = synthetic.summary(value['runs'])
    root = w.page(value)
    equal('latency', [p.get('aria-label')[:23] for p in pictures(root, 'latency')][:2],
          ['latency with 2 replicas'] * 2)
    equal('trees', len(pictures(root, 'bytes on each link')), 3)
    equal('CPU', [row[1] for row in table(root, ['scheme', 'replicas', 'source'])], ['2'] * 3)


def few(w):
    """No runs, one run, one block."""
    value = small()
    value.update(runs=[], summary=[], ok=False, error='h0: no such host')
    root = w.page(value)
    equal('state', [inside(p) for p in root.iter('p') if 'state' in (p.get('class') or '')],
          ['h0: no such host'])
    w.page(synthetic.make(replicas=(1,), repeats=1, count=1, schemes=('mcast',)))
    value = synthetic.make(replicas=(1,), repeats=1, count=1, sizes=(2,), schemes=('unheard of',))
    check('unheard of' in inside(w.page(value)), 'another scheme')
