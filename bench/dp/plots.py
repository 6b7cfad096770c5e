# SPDX-License-Identifier: Apache-2.0
"""results.json as a page: one file of HTML that needs nothing else, with requirements, a bar for each
lane, and curves by number of copies and by payload.  Pictures and style are castbench-report's."""
import os
import sys

REPORT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'castbench-report')
sys.path.insert(0, REPORT)

from svg import Picture, escape, nice_ticks, number, times                     # noqa: E402

WIDTH, LABELS, VALUES, ROW, TOP = 575, 170, 76, 26, 8
CHART_HEIGHT, LEFT, RIGHT, BOTTOM = 300, 58, 150, 44
COLOURS = {'swedge': 0, 'srcagent': 0, 'bare loop': 1, 'Open vSwitch': 2, 'kernel seg6 End': 3,
           'kernel ip6mr': 3, 'flooder alone': 7}


def colour(variant, i):
    """A lane has the same colour everywhere; lanes of one forwarder in several forms take turns."""
    name = variant['name'].replace(' (against)', '')
    if name != variant['name']:
        return 4
    return COLOURS.get(name, (0, 3, 5, 6)[i % 4])


def css():
    parts = []
    for name in ('picture.css', 'style.css'):
        with open(os.path.join(REPORT, name), encoding='utf-8') as f:
            parts.append(f.read())
    return ''.join(parts)


def bars(comparison):
    """Times of each lane, and their spread."""
    variants = comparison['variants']
    ticks = nice_ticks(max(v['ns']['max'] for v in variants))
    bottom = TOP + ROW * len(variants)
    p = Picture(WIDTH, bottom + 24, 'ns per %s: %s' % (comparison['unit'], comparison['title']))

    def x(ns):
        return LABELS + ns / ticks[-1] * (WIDTH - LABELS - VALUES)
    for t in ticks:
        p.line(x(t), TOP, x(t), bottom)
        p.text(x(t), bottom + 16, number(t), 'tick', 'middle')
    for i, v in enumerate(variants):
        y, ns, c = TOP + ROW * i + 5, v['ns'], colour(v, i)
        p.text(LABELS - 8, y + 12, v['name'], 'name', 'end')
        p.add('rect', x=x(0), y=y, width=x(ns['median']) - x(0), height=ROW - 10,
              class_='bar c%d f%d' % (c, c))
        p.line(x(ns['min']), y + 8, x(ns['max']), y + 8, 'whisker')
        p.text(x(ns['max']) + 6, y + 12, number(ns['median']), 'value')
    return figure('%s, payload %d, ns per %s' % (comparison['title'], comparison['payload'],
                                                 comparison['unit']), p)


def figure(title, picture):
    return '<figure><figcaption>%s</figcaption><div class="scroll">%s</div></figure>' % (
        escape(title), picture.render())


def curves(comparisons, by, title, axis):
    """Median time of each lane against comparison[by]; None if there are not two points."""
    points = {}
    for c in comparisons:
        for i, v in enumerate(c['variants']):
            points.setdefault((v['name'], colour(v, i)), []).append((c[by], v['ns']['median']))
    xs = sorted({x for of_lane in points.values() for x, _ in of_lane})
    if len(xs) < 2:
        return None
    ticks = nice_ticks(max(ns for of_lane in points.values() for _, ns in of_lane))
    p = Picture(WIDTH, CHART_HEIGHT, title)
    bottom = CHART_HEIGHT - BOTTOM

    def x(value):
        return LEFT + xs.index(value) / (len(xs) - 1) * (WIDTH - LEFT - RIGHT)

    def y(ns):
        return bottom - ns / ticks[-1] * (bottom - TOP)
    for t in ticks:
        p.line(LEFT, y(t), WIDTH - RIGHT, y(t))
        p.text(LEFT - 8, y(t) + 4, number(t), 'tick', 'end')
    for value in xs:
        p.text(x(value), bottom + 18, str(value), 'tick', 'middle')
    p.text((LEFT + WIDTH - RIGHT) / 2, bottom + 36, axis, 'title', 'middle')
    for i, ((name, c), of_lane) in enumerate(sorted(points.items())):
        places = [(x(value), y(ns)) for value, ns in sorted(of_lane)]
        p.polyline(places, 'ln c%d' % c)
        for px, py in places:
            p.marker(px, py, c, 'dot f%d' % c)
        p.marker(WIDTH - RIGHT + 16, TOP + 12 + 20 * i, c, 'dot f%d' % c)
        p.text(WIDTH - RIGHT + 28, TOP + 16 + 20 * i, name, 'name')
    return figure(title, p)


def requirements(comparisons):
    rows = []
    for c in comparisons:
        for r in c['ratios']:
            bound = ''
            if 'bound' in r:
                bound = '%s %g' % ('at most' if r['at_most'] else 'at least', r['bound'])
            judged = r.get('holds')
            rows.append('<tr><td class="l">%s</td><td>%d</td><td class="l">%s</td><td>%s<small>%s'
                        '&#8211;%s</small></td><td class="l">%s</td><td class="l%s">%s</td></tr>' % (
                            escape(c['case']), c['payload'], escape('%s / %s' % (r['of'], r['to'])),
                            times(r['ratio']['median']), times(r['ratio']['min']),
                            times(r['ratio']['max']), bound,
                            '' if judged is None else ' good' if judged else ' bad',
                            '' if judged is None else 'holds' if judged else 'missed'))
    return ('<div class="wide"><table><thead><tr><th class="l">case</th><th>payload</th><th class="l">times '
            'per copy</th><th>ratio</th><th class="l">bound</th><th class="l"></th></tr></thead><tbody>%s'
            '</tbody></table></div>' % ''.join(rows))


def page(document):
    measured = [c for c in document['comparisons'] if 'variants' in c]
    left_out = [c for c in document['comparisons'] if 'variants' not in c]
    machine = document['machine']
    charts = [curves([c for c in measured if c['case'].startswith(start) and c['payload'] == 1024
                      and c['case'][len(start):].isdigit()], 'copies', title, 'copies of a packet')
              for start, title in (('end-mt-', 'End.MT to taps, payload 1024, ns per copy'),
                                   ('replicate-', 'End.Replicate to veths, payload 1024, ns per copy'))]
    charts += [curves([c for c in measured if c['case'] == case], 'payload', title, 'bytes of payload')
               for case, title in (('end-mt-8', 'End.MT to 8 taps, ns per copy'),
                                   ('replicate-8', 'End.Replicate to 8 veths, ns per copy'),
                                   ('srcagent', 'srcagent down, ns per packet'))]
    body = ['<h1>The data plane, natively</h1>',
            '<p class="muted">%s</p>' % escape('%s; Linux %s; %s, %d CPUs; %d packets a measurement, medians '
                                               'of %d by turns' % (
                                                   document['time'], machine['kernel'], machine['cpu'],
                                                   machine['cpus'], document['options']['packets'],
                                                   document['options']['repeats'])),
            '<p>CPU time of the forwarder per copy. Bars and points are medians, lines across bars go from '
            'the least to the greatest. docs/performance.md says how this is measured.</p>',
            '<h2>Ratios</h2>', requirements(measured),
            '<h2>By copies and payload</h2>',
            '<div class="pictures charts">%s</div>' % ''.join(c for c in charts if c),
            '<h2>Each comparison</h2>',
            '<div class="pictures charts">%s</div>' % ''.join(map(bars, measured))]
    body += ['<p class="muted">%s</p>' % escape('%s, payload %d: %s' % (
        c['case'], c['payload'], c.get('skipped') or c.get('failed'))) for c in left_out]
    return ('<!DOCTYPE html>\n<html xmlns="http://www.w3.org/1999/xhtml" lang="en"><head>'
            '<meta charset="utf-8"/><meta name="viewport" content="width=device-width"/><title>The data plane, natively</title>'
            '<style>%s</style></head><body>%s</body></html>\n' % (css(), '\n'.join(body)))
