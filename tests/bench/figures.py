# SPDX-License-Identifier: Apache-2.0
"""The picture of what each scheme costs, and those in docs/figures/."""
import os
import statistics
import subprocess
import xml.etree.ElementTree as ET

import synthetic
from base import PROGRAM, ROOT, check, equal, inside, small

SVG = '{http://www.w3.org/2000/svg}'


def picture(w, value):
    w.write('a.json', value)
    p = w.run('report', '--svg', '-o', 'a.svg', 'a.json')
    equal('report --svg', (p.returncode, p.stdout, p.stderr), (0, '', ''))
    return ET.parse(w.file('a.svg')).getroot()


def texts(root, class_):
    return [inside(t) for t in root.iter(SVG + 'text') if class_ in t.get('class').split()]


def bars(root):
    """Of each panel the bars' lengths, from the top down."""
    found = {}
    for bar in root.iter(SVG + 'rect'):
        if 'dot' in bar.get('class'):
            found.setdefault(float(bar.get('x')), []).append(float(bar.get('width')))
    return [found[x] for x in sorted(found)]


def drawn(w):
    """Each number is the summary's, and each bar as long as its number."""
    value = small(replicas=(1, 2))
    root = picture(w, value)
    rows = {r['scheme']: r for r in value['summary'] if r['replicas_n'] == 2}
    want = [[rows[s]['uplink_per_byte']['median'] for s in ('mcast', 'unicast', 'btree')],
            [rows['mcast']['mb_per_s']['median'] / rows[s]['mb_per_s']['median']
             for s in ('mcast', 'unicast', 'btree')]]
    equal('numbers', texts(root, 'value'), ['%.2f' % v for panel in want for v in panel])
    for values, lengths in zip(want, bars(root)):
        for v, length in zip(values, lengths):
            check(abs(length / lengths[0] - v / values[0]) < 0.01, '%r, wanted %r', lengths, values)
    runs = [r for r in value['runs'] if (r['scheme'], r['replicas_n']) == ('unicast', 2)]
    equal('unicast', texts(root, 'value')[1], '%.2f' % statistics.median(
        r['uplink']['tx_bytes'] / r['bytes'] for r in runs))
    equal('heading', texts(root, 'heading'), ['The same bytes to 2 replicas'])
    style = root.find(SVG + 'style').text
    check('prefers-color-scheme: dark' in style, 'dark')
    for e in root.iter():
        check(e.tag != SVG + 'script' and not any('href' in a for a in e.attrib), '%s', e.tag)
    value['runs'] = []
    check(texts(picture(w, value), 'value') == texts(root, 'value'), 'of the summary alone')


def chosen(w):
    """The greatest blocks and number of replicas that mcast has written; schemes that are known."""
    value = small(sizes=(4096, 65536), replicas=(1, 2))
    for row in value['summary']:
        if row['size'] == 65536 and row['replicas_n'] == 2:
            if row['scheme'] == 'mcast':
                row['mb_per_s'] = None
        elif row['scheme'] == 'btree':
            row['uplink_per_byte'] = None
    root = picture(w, value)
    equal('heading', texts(root, 'heading'), ['The same bytes to 1 replica'])
    check('blocks of 64 KiB' in texts(root, 'tick')[-1], '%r', texts(root, 'tick'))
    equal('schemes', texts(root, 'name')[:2], ['mcast', 'unicast'])
    equal('bars', len(bars(root)[0]), 2)


def not_drawn(w):
    w.write('other.json', small(schemes=('unicast', 'chain')))
    w.fails(1, 'other.json: no mcast in its summary, or no bytes of the uplink', 'report', '--svg',
            'other.json')
    value = small()
    for row in value['summary']:
        row['uplink_per_byte'] = None
    w.write('uncounted.json', value)
    w.fails(1, 'uncounted.json: no mcast in', 'report', '--svg', 'uncounted.json')
    value['summary'] = synthetic.summary(value['runs'])
    w.write('good.json', value)
    w.fails(1, 'report --svg: there must be one file, not 2', 'report', '--svg', *['good.json'] * 2)
    w.fails(1, '-o good.json: that is a file to be read', 'report', '--svg', '-o', 'good.json',
            'good.json')


def committed(_):
    """Each picture in docs/figures/ is what the programs make of the files beside it."""
    commands = {'castscale': [os.path.join(ROOT, 'bench/castscale/plot'), 'castscale.json']}
    folder = os.path.join(ROOT, 'docs/figures')
    pictures = [f[:-len('.svg')] for f in sorted(os.listdir(folder)) if f.endswith('.svg')]
    check(set(pictures) > set(commands), 'figures: %r', pictures)
    for name in pictures:
        argv = commands.get(name, [PROGRAM, 'report', '--svg', name + '.json'])
        made = subprocess.run(argv, capture_output=True, check=True, encoding='utf-8', cwd=folder).stdout
        with open(os.path.join(folder, name + '.svg'), encoding='utf-8') as f:
            equal(name, made, f.read())
