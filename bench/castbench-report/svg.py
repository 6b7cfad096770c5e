# SPDX-License-Identifier: Apache-2.0
"""Text, numbers and pictures as markup.

Whatever is not known is shown as a dash.  Colours are classes of the page's style sheet, so that
they follow the reader's light or dark.
"""
import html
import math
import re

DASH = '\u2013'
NARROW = '\u202f'       # no line is broken there.
# What XML and HTML have no way of writing.
FORBIDDEN = re.compile('[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]')


def escape(value):
    return html.escape(FORBIDDEN.sub('\ufffd', str(value)), quote=True)


def number(value):
    """Four digits; whole numbers as they are."""
    if value is None:
        return DASH
    if isinstance(value, int) or value >= 999.95 or value == 0:
        return '{:,}'.format(round(value)).replace(',', NARROW)
    if value < 0.00005:
        return '%.1e' % value
    return '%.*f' % (max(0, min(3 - math.floor(math.log10(value)), 5)), value)


def times(value):
    """A ratio."""
    if value is None:
        return DASH
    return '%.*f' % (2 if value < 99.95 else 0, value) if value >= 0.095 else '%.3f' % value


def multiple(value):
    """Bytes for each byte written."""
    if value is None:
        return DASH
    return '<0.01' if 0 < value < 0.005 else '%.2f' % value


def size(value):
    for unit, name in ((1 << 20, 'MiB'), (1 << 10, 'KiB')):
        if value >= unit and value % unit == 0:
            return '%d %s' % (value // unit, name)
    return '%d B' % value


def replicas(n):
    return '%d replica%s' % (n, '' if n == 1 else 's')


def duration(us):
    for unit, name in ((1e6, 's'), (1e3, 'ms'), (1, '\u00b5s')):
        if us >= unit:
            return '%g %s' % (float('%.3g' % (us / unit)), name)
    return '%g ns' % float('%.3g' % (us * 1e3))


def short(string, length):
    return string if len(string) <= length else string[:length - 1] + '\u2026'


def nice_ticks(top, wanted=5):
    """Round numbers from 0 to at least 'top'."""
    if top <= 0:
        return [0, 1]
    raw = top / wanted
    step = 10 ** math.floor(math.log10(raw))
    step *= next(m for m in (1, 2, 2.5, 5, 10) if m * step >= raw * 0.999)
    return [i * step for i in range(math.ceil(top / step - 1e-9) + 1)]


def log_ticks(low, high, at_most=9):
    """1, 2, 5, 10, ... between; fewer if these are too many, and evenly spaced ones if too few."""
    for digits in ((1, 2, 5), (1, 3), (1,)):
        ticks = [d * 10.0 ** e for e in range(math.floor(math.log10(low)),
                                              math.ceil(math.log10(high)) + 1) for d in digits]
        ticks = [t for t in ticks if low * 0.999 <= t <= high * 1.001]
        if len(ticks) <= at_most:
            break
    if len(ticks) > 2:
        return ticks
    step = nice_ticks(high - low, 3)[1]
    return [i * step for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def spread_out(wanted, gap, low, high):
    """Places near the wanted ones, in the same order, with at least 'gap' between them."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    places = [0.0] * len(wanted)
    last = low - gap
    for i in order:
        last = places[i] = max(wanted[i], last + gap)
    limit = high
    for i in reversed(order):
        if places[i] <= limit:
            break
        places[i] = limit
        limit -= gap
    return places


class Picture:
    """An SVG of fixed size.  Methods return self.

    'what' is for readers who cannot see it; None: it says nothing that the text does not.
    """

    def __init__(self, width, height, what):
        self.width, self.height, self.what = width, height, what
        self.parts = []

    def add(self, tag, inside=None, **attributes):
        words = ''.join(' %s="%s"' % (name.rstrip('_').replace('_', '-'),
                                      '%.6g' % v if isinstance(v, float) else escape(v))
                        for name, v in attributes.items() if v is not None)
        self.parts.append('<%s%s/>' % (tag, words) if inside is None else
                          '<%s%s>%s</%s>' % (tag, words, inside, tag))
        return self

    def line(self, x1, y1, x2, y2, class_='grid', **more):
        return self.add('line', x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2),
                        class_=class_, **more)

    def text(self, x, y, string, class_=None, anchor=None, **more):
        return self.add('text', escape(string), x=float(x), y=float(y), class_=class_,
                        text_anchor=anchor, **more)

    def path(self, d, class_, hint=None, **more):
        return self.add('path', hint and '<title>%s</title>' % escape(hint), d=d, class_=class_,
                        **more)

    def polyline(self, points, class_, hint=None):
        return self.path('M' + 'L'.join('%.1f,%.1f' % p for p in points), class_, hint)

    def marker(self, x, y, scheme_index, class_, hint=None):
        """Each scheme has a shape of its own."""
        r = 4.2
        shape = MARKERS[scheme_index % len(MARKERS)]
        if shape is None:
            return self.add('circle', hint and '<title>%s</title>' % escape(hint), cx=float(x),
                            cy=float(y), r=r, class_=class_)
        return self.path('M' + 'L'.join('%.1f,%.1f' % (x + dx * r, y + dy * r)
                                        for dx, dy in shape) + 'Z', class_, hint)

    def head(self):
        what = ('aria-hidden="true"' if self.what is None else
                'role="img" aria-label="%s"' % escape(self.what))
        return 'viewBox="0 0 %d %d" width="%d" height="%d" %s' % (
            self.width, self.height, self.width, self.height, what)

    def render(self):
        return '<svg %s>%s</svg>' % (self.head(), ''.join(self.parts))

    def file(self, style):
        """As a file of its own, an element a line."""
        return '\n'.join(['<svg xmlns="http://www.w3.org/2000/svg" %s>' % self.head(),
                          '<style>', style.rstrip(), '</style>', *self.parts, '</svg>', ''])


def polygon(n, turn=0.0, stretch=1.15):
    return [(stretch * math.sin(2 * math.pi * (i / n) + turn),
             -stretch * math.cos(2 * math.pi * (i / n) + turn)) for i in range(n)]


MARKERS = (None, polygon(4, math.pi / 4, 1.25), polygon(3, 0, 1.35), polygon(4, 0, 1.35),
           polygon(3, math.pi, 1.35), polygon(6, 0, 1.15), polygon(5, 0, 1.2))
