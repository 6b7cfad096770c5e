# SPDX-License-Identifier: Apache-2.0
"""Charts.  Schemes have the same colour, shape and order in all of them."""
import math

from document import SCHEMES, bucket_end, came_to_its_end
from svg import (Picture, duration, log_ticks, nice_ticks, number, replicas, short, spread_out)

WIDTH, HEIGHT = 575, 330
LEFT, RIGHT, TOP, BOTTOM = 58, 162, 14, 46
LABEL_GAP = 15          # between lines of text
BAR_ROW = 27            # height of one scheme's bar, with what is between it and the next
STRIP = 92              # height of one scheme's progress
TEXT_APART = 70         # of events in pixels: those closer are one
MANY_PIXELS = 1.5       # points of a line closer than this are one


def scheme_index(name):
    return SCHEMES.index(name) if name in SCHEMES else len(SCHEMES)


def line_class(scheme):
    return 'ln c%d' % scheme_index(scheme)


def dot_class(scheme):
    return 'dot f%d' % scheme_index(scheme)


def text_class(scheme):
    return 'name t%d' % scheme_index(scheme)


def label(value):
    """Of a tick: no more digits than it needs."""
    return number(round(value) if value >= 1000 else value) if value >= 1000 else '%g' % value


class Frame:
    """Axes; x() and y() make pixels of values."""

    def __init__(self, what, width=WIDTH, height=HEIGHT, right=RIGHT, left=LEFT):
        self.picture = Picture(width, height, what)
        self.left, self.right = left, width - right
        self.top, self.bottom = TOP, height - BOTTOM
        self.x = self.y = None

    def set_x(self, low, high, log=False):
        f = math.log if log else float
        span = f(high) - f(low) or 1
        self.x = lambda v: self.left + (f(v) - f(low)) / span * (self.right - self.left)

    def set_y(self, low, high, log=False):
        f = math.log if log else float
        span = f(high) - f(low) or 1
        self.y = lambda v: self.bottom - (f(v) - f(low)) / span * (self.bottom - self.top)

    def x_ticks(self, ticks, title):
        """'ticks': of values and texts; texts that would touch are left out, but never the last."""
        p, free = self.picture, -100.0
        places = [(self.x(value), 3.4 * len(string), string) for value, string in ticks]
        end = places[-1][0] - places[-1][1] - 6 if places else 0
        for x, half, string in places:
            p.line(x, self.bottom, x, self.bottom + 5, 'axis')
            if x == places[-1][0] or free <= x - half and x + half <= end:
                p.text(x, self.bottom + 18, string, 'tick', 'middle')
                free = x + half + 6
        p.line(self.left, self.bottom, self.right, self.bottom, 'axis')
        p.text((self.left + self.right) / 2, self.bottom + 37, title, 'title', 'middle')

    def y_ticks(self, ticks):
        for value, string in ticks:
            y = self.y(value)
            self.picture.line(self.left, y, self.right, y)
            self.picture.text(self.left - 7, y + 4, string, 'tick', 'end')


def lines(what, series, x_title, x_text=str, log_x=False, log_y=False, unit='', show=number):
    """'series': of each scheme a list of (x, Spread).  From 0 if not logarithmic, spread as bars."""
    series = {s: points for s, points in series.items() if points}
    frame = Frame(what)
    p = frame.picture
    xs = sorted({x for points in series.values() for x, _ in points})
    spreads = [v for points in series.values() for _, v in points]
    most = max(v.max for v in spreads)
    low, high = xs[0], xs[-1]
    pad = 0 if log_x else (high - low) * 0.04
    frame.set_x(low - pad, high + pad, log_x)
    if log_y:
        least = min((v.min for v in spreads if v.min > 0), default=1)
        series = {s: [(x, v) for x, v in points if v.min > 0] for s, points in series.items()}
        frame.set_y(least / 1.2, max(most, least) * 1.2, log=True)
        frame.y_ticks([(t, show(t)) for t in log_ticks(least / 1.2, max(most, least) * 1.2)])
    else:
        ticks = nice_ticks(most)
        frame.set_y(0, ticks[-1])
        frame.y_ticks([(t, label(t)) for t in ticks])
    frame.x_ticks([(x, x_text(x)) for x in xs], x_title)
    series = {s: points for s, points in series.items() if points}
    for scheme, points in first_on_top(series):
        p.polyline([(frame.x(x), frame.y(v.median)) for x, v in points], line_class(scheme))
    for scheme, points in first_on_top(series):
        for x, v in points:
            px = frame.x(x)
            if v.min < v.max:
                p.line(px, frame.y(v.min), px, frame.y(v.max), 'bar c%d' % scheme_index(scheme))
            p.marker(px, frame.y(v.median), scheme_index(scheme), dot_class(scheme),
                     '%s, %s: %s%s (%s to %s)' % (scheme, x_text(x), show(v.median), unit,
                                                  show(v.min), show(v.max)))
    name_lines(frame, {s: points[-1] for s, points in series.items()}, show)
    return p.render()


def first_on_top(series):
    """As they are drawn.  Of two that coincide both are seen: the later one has gaps."""
    items = list(series.items())
    return items[1:] + items[:1]


def name_lines(frame, last, show):
    """Behind the end of each line its scheme and last value."""
    ends = [(s, frame.x(x), frame.y(v.median), show(v.median)) for s, (x, v) in last.items()]
    places = spread_out([y for _, _, y, _ in ends], LABEL_GAP, frame.top + 4, frame.bottom)
    for (scheme, x, y, value), place in zip(ends, places):
        frame.picture.path('M%.1f,%.1fL%.1f,%.1fL%.1f,%.1f' % (
            x + 6, y, frame.right + 4, place, frame.right + 9, place),
            'leader c%d' % scheme_index(scheme))
        frame.picture.text(frame.right + 13, place + 4,
                           '%s %s' % (short(scheme, 14), value), text_class(scheme))


def bars(what, values, title, unit='', show=number):
    """For each scheme one Spread, if there is but one number of replicas."""
    left = 120
    p = Picture(WIDTH, TOP + BAR_ROW * len(values) + BOTTOM, what)
    bar_names(p, values, left, TOP)
    bar_rows(p, values, (left, WIDTH - 70), TOP, title, unit, show)
    return p.render()


def bar_names(p, schemes, right, top):
    """What the rows of bar_rows() are of, ending at 'right'."""
    for i, scheme in enumerate(schemes):
        p.text(right - 8, top + BAR_ROW * (i + 0.5) + 4, short(scheme, 16), text_class(scheme), 'end')


def bar_rows(p, values, sides, top, title, unit='', show=number):
    """A bar for each scheme, from 0, between these sides, with the axis and its title below."""
    left, right = sides
    ticks = nice_ticks(max(v.max for v in values.values()))
    bottom = top + BAR_ROW * len(values)
    scale = (right - left) / ticks[-1]
    for t in ticks:
        p.line(left + t * scale, top, left + t * scale, bottom)
        p.text(left + t * scale, bottom + 17, label(t), 'tick', 'middle')
    for i, (scheme, v) in enumerate(values.items()):
        y = top + BAR_ROW * (i + 0.5)
        p.add('rect', '<title>%s%s</title>' % (show(v.median), unit), x=float(left), y=y - 8,
              width=v.median * scale, height=16.0, class_='dot f%d' % scheme_index(scheme))
        if v.min < v.max:
            p.line(left + v.min * scale, y, left + v.max * scale, y, 'whisker')
        p.text(left + v.max * scale + 6, y + 4, show(v.median), 'value')
    p.line(left, top, left, bottom, 'axis')
    p.text((left + right) / 2, bottom + 36, title, 'title', 'middle')


def thinned(points):
    """Of points that are hardly apart only the first, but always the last."""
    kept = [points[0]]
    for i, point in enumerate(points[1:], 1):
        if (i == len(points) - 1 or abs(point[0] - kept[-1][0]) >= MANY_PIXELS or
                abs(point[1] - kept[-1][1]) >= MANY_PIXELS):
            kept.append(point)
    return kept


def steps(histogram, longest):
    """(us, share of all that took no longer), between which the line is straight."""
    total = sum(count for _, count in histogram)
    points, seen, end = [], 0, None
    for low, count in histogram:
        if end != low:
            points.append((low, seen / total))
        seen += count
        end = min(bucket_end(low), max(longest, low))
        points.append((end, seen / total))
    return points


def distributions(what, histograms):
    """Two pictures with the same x: the share of blocks that took no longer, and those that did.

    'histograms': of each scheme what merged_histogram() returns.
    """
    low = max(min(h[0][0] for h, _ in histograms.values()), 0.01)
    high = max(max(h[-1][0], longest) for h, longest in histograms.values())
    low, high = low / 1.15, max(high, low) * 1.15
    most = max(sum(count for _, count in h) for h, _ in histograms.values())
    floor = 10.0 ** -max(1, min(6, math.ceil(math.log10(most) - 1e-9)))
    result = []
    for tail in (False, True):
        frame = Frame('%s: %s' % (what, 'share that took longer' if tail else
                                  'share that took no longer'), right=18)
        frame.set_x(low, high, log=True)
        if tail:
            frame.set_y(floor, 1, log=True)
            digits = range(round(-math.log10(floor)) + 1)
            frame.y_ticks([(10.0 ** -d, tail_name(d)) for d in digits])
        else:
            frame.set_y(0, 1)
            frame.y_ticks([(i / 4, '%d %%' % (25 * i)) for i in range(5)])
        ticks = log_ticks(low, high)
        frame.x_ticks([(t, duration(t)) for t in ticks],
                      'time until all replicas have a block (log)')
        for t in ticks:
            frame.picture.line(frame.x(t), frame.top, frame.x(t), frame.bottom)
        for scheme, (histogram, longest) in first_on_top(histograms):
            points = [(max(us, low), 1 - share if tail else share)
                      for us, share in steps(histogram, longest)]
            frame.picture.polyline(
                thinned([(frame.x(us), frame.y(max(v, floor) if tail else v)) for us, v in points]),
                line_class(scheme), scheme)
        result.append(frame.picture.render())
    return result


def tail_name(digits):
    """Of the time that all but 1/10^digits do not exceed."""
    return {0: '', 1: 'p90', 2: 'p99'}.get(digits, 'p99.' + '9' * (digits - 2))


def speeds(timeline, least):
    """(from ms, to ms, MB/s), none of them shorter than 'least'.

    The last sample is of what was left, of a moment maybe: then it belongs to the one before.
    """
    parts, begin, nbytes = [], 0, 0
    for i, (ms, more) in enumerate(timeline):
        nbytes += more
        if ms > begin and (ms - begin >= least or i == len(timeline) - 1):
            parts.append((begin, ms, nbytes))
            begin, nbytes = ms, 0
    if len(parts) > 1 and parts[-1][1] - parts[-1][0] < (parts[-2][1] - parts[-2][0]) / 2:
        (begin, _, before), (_, end, rest) = parts[-2:]
        parts[-2:] = [(begin, end, before + rest)]
    return [(begin, end, n / (end - begin) / 1000) for begin, end, n in parts]


def shortest(run, pixel_ms):
    """Time that a speed is of: some pixels, and so long that some blocks have come in it."""
    ms = run['timeline'][-1][0] if run['timeline'] else 0
    return max(pixel_ms * 3, 2 * ms / run['count'] if run['count'] else 0)


def limits(rates):
    """Lists of (ms, MB/s): to what the source's agent limited a run, as long as it did."""
    pieces = [[]]
    for rate in rates:
        if rate['mbit_per_s'] is not None:
            pieces[-1].append((rate['ms'], rate['mbit_per_s'] / 8))
        elif pieces[-1]:
            pieces.append([])
    return [piece for piece in pieces if len(piece) > 1]


def progress(what, strips):
    """Throughput over time, a strip for each scheme below the other, with the same axes.

    'strips': of (scheme, text, runs); lost receivers, the end of a run that failed and events of
    members are marked.
    """
    width, left, right = 1150, 128, 24
    end = max([1] + [ms for _, _, runs in strips for run in runs for ms in
                     [t[0] for t in run['timeline']] + [l['after_ms'] or 0 for l in run['lost']] +
                     [e['made_ms'] or 0 for e in run['events']]])
    pixel_ms = end / (width - left - right)
    drawn = [(scheme, text, [(run, speeds(run['timeline'], shortest(run, pixel_ms)))
                             for run in runs])
             for scheme, text, runs in strips]
    ticks = nice_ticks(max([0] + [v for _, _, runs in drawn for _, s in runs for _, _, v in s]), 2)
    p = Picture(width, TOP + STRIP * len(strips) + 34, what)

    def x(ms):
        return left + ms / pixel_ms

    for i, (scheme, text, runs) in enumerate(drawn):
        top, bottom = TOP + STRIP * i + 22, TOP + STRIP * (i + 1) - 8

        def y(v, top=top, bottom=bottom):
            return bottom - v / ticks[-1] * (bottom - top)

        for t in ticks:
            p.line(left, y(t), width - right, y(t), 'axis' if t == 0 else 'grid')
            p.text(left - 7, y(t) + 4, label(t), 'tick', 'end')
        p.text(4, top + 12, short(scheme, 14), text_class(scheme))
        p.text(4, top + 27, text, 'tick')
        for run, parts in runs:
            if parts:
                points = [q for a, b, v in parts for q in ((x(a), y(v)), (x(b), y(v)))]
                p.polyline(points, 'thin c%d' % scheme_index(scheme),
                           '%s, repeat %d' % (scheme, run['repeat']))
            for piece in limits(run['rates']):
                p.polyline([(x(ms), y(min(v, ticks[-1]))) for ms, v in piece], 'thin limit',
                           'repeat %d: limit of the source' % run['repeat'])
        events(p, [run for run, _ in runs], x, top, bottom, width - right)
    bottom = TOP + STRIP * len(strips) - 8
    for t in nice_ticks(end / 1000, 8):
        if t * 1000 <= end * 1.0001:
            p.line(x(t * 1000), bottom, x(t * 1000), bottom + 5, 'axis')
            p.text(x(t * 1000), bottom + 18, '%g' % t, 'tick', 'middle')
    p.text(left, bottom + 35, 'MB/s, against seconds since the first block', 'title')
    return p.render()


def events(p, runs, x, top, bottom, right):
    """Marks.  Texts of what went wrong come first, those of what was asked for where there is room."""
    wrong = [(x(lost['after_ms']), lost['host'], '%s lost' % short(lost['host'], 20),
              '%s lost after %s ms: %s' % (lost['host'], number(lost['after_ms']), lost['why'] or ''))
             for run in runs for lost in run['lost'] if lost['after_ms'] is not None]
    wrong += [(x(run['timeline'][-1][0]), '', 'run failed', run['error'] or '')
              for run in runs if not came_to_its_end(run) and run['timeline']]
    wanted = [(x(e['made_ms']), (e['event'], e['host']), '%s %s' % (e['event'], short(e['host'], 20)),
               '%s %s after %s ms' % (e['event'], e['host'], number(e['made_ms'])))
              for run in runs for e in run['events'] if e['made_ms'] is not None]
    taken = []
    for marks, class_ in ((wrong, ''), (wanted, ' wanted')):
        for at, _, _, hint in sorted(marks):
            p.path('M%.1f,%.1fV%.1f' % (at, top - 4, bottom), 'event' + class_, hint)
            p.path('M%.1f,%.1fl-4,-7h8z' % (at, top + 3), 'eventhead' + class_)
        for at, string in marks_named(marks):
            begin = min(at - 4, right - 6.6 * len(string))
            end = begin + 6.6 * len(string) + 10
            if all(end <= b or e <= begin for b, e in taken):
                p.text(begin, top - 8, string, 'eventname' + class_)
                taken.append((begin, end))


def marks_named(marks):
    """(x, text) of marks; those that are close to each other have one, which says at least how many."""
    groups = []
    for at, what, string, _ in sorted(marks):
        if groups and at < groups[-1][0] + TEXT_APART:
            groups[-1][1][what] = string
        else:
            groups.append((at, {what: string}))
    return [(at, next(iter(of.values())) + (' and %d more' % (len(of) - 1) if len(of) > 1 else ''))
            for at, of in groups]


def against_replicas(what, series, unit='', show=number):
    """Lines, or bars if there is but one number of replicas."""
    if len({x for points in series.values() for x, _ in points}) > 1:
        return lines(what, series, 'replicas', unit=unit, show=show)
    return bars(what, {s: points[0][1] for s, points in series.items() if points},
                replicas(next(x for points in series.values() for x, _ in points)),
                unit, show)

