# SPDX-License-Identifier: Apache-2.0
"""One picture, a file of SVG of its own: what each scheme costs as multiples of what mcast does."""
import pkgutil

from charts import BAR_ROW, BOTTOM, bar_names, bar_rows
from document import BadFile, Spread
from svg import Picture, multiple, replicas, short, size

WIDTH, NAMES, TOP, FOOT = 860, 118, 66, 22
PANELS = ((NAMES, 430), (490, WIDTH - 50))      # from left to right


def known(doc, key):
    """Does the summary have all that is shown of it?"""
    speed = doc.row(key, 'mb_per_s')
    return bool(doc.uplink(key) and speed and speed.min > 0)


def draw(doc):
    """Of the greatest blocks, and the greatest number of replicas, that mcast has written."""
    written = [key for key in doc.rows if key.scheme == 'mcast' and known(doc, key)]
    if not written:
        raise BadFile('%s: no mcast in its summary, or no bytes of the uplink' % doc.path)
    base = max(written, key=lambda key: (key.size, key.n))
    speed = doc.row(base, 'mb_per_s').median
    uplink, times = {}, {}
    for key in doc.keys:
        if (key.n, key.size) == (base.n, base.size) and known(doc, key):
            own = doc.row(key, 'mb_per_s')
            uplink[key.scheme] = doc.uplink(key)
            times[key.scheme] = Spread(speed / own.median, speed / own.max, speed / own.min)
    title = 'The same bytes to %s' % replicas(base.n)
    p = Picture(WIDTH, TOP + BAR_ROW * len(uplink) + BOTTOM + FOOT, title +
                ', by scheme: bytes on the source\u2019s uplink, and time until all have them')
    p.add('rect', width=WIDTH, height=p.height, class_='paper')
    p.text(14, 24, title, 'heading')
    bar_names(p, uplink, NAMES, TOP)
    for sides, caption, values, unit in (
            (PANELS[0], 'Bytes on the source\u2019s uplink', uplink, 'for each byte written'),
            (PANELS[1], 'Time until all replicas have them', times, 'mcast = 1')):
        p.text(sides[0], TOP - 12, caption, 'name')
        bar_rows(p, values, sides, TOP, unit, show=multiple)
    p.text(14, p.height - 10, short('; '.join(said(doc, base)), 130), 'tick')
    return p.file(pkgutil.get_data(__name__, 'picture.css').decode())


def said(doc, base):
    """Where the figures are from."""
    if doc.data['labels'].get('topology'):
        yield doc.data['labels']['topology']
    yield 'blocks of %s' % size(base.size)
    runs = doc.rows[base]['runs']
    yield 'medians of %d runs' % runs if runs and runs > 1 else 'one run of each'
    if doc.data['host']['kernel']:
        yield 'Linux %s' % doc.data['host']['kernel']
    if doc.data['started']:
        yield doc.data['started'][:10]
