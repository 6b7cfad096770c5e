# SPDX-License-Identifier: Apache-2.0
"""Two files, row by row: how many times as much the second one has as the first."""
from collections import namedtuple

from document import Spread, order, ratio
from svg import DASH, replicas, size, times

# Name; the row's value; is more of it better?
MEASURES = (
    ('throughput', lambda doc, key: doc.row(key, 'mb_per_s'), True),
    ('p50', lambda doc, key: doc.row(key, 'p50_us'), False),
    ('p99', lambda doc, key: doc.row(key, 'p99_us'), False),
    ('uplink', lambda doc, key: doc.uplink(key), False),
    ('cpu', lambda doc, key: doc.row(key, 'cpu_busy_s_per_gb'), False),
)


# 'spread' is of the ratio, or None; 'gone': only the first file knows it.
Result = namedtuple('Result', 'key name spread more_is_better gone')


def spread_ratio(a, b):
    """Of the medians, and from the least to the greatest that the spreads allow; or None."""
    if a is None or b is None or ratio(b.median, a.median) is None:
        return None
    return Spread(ratio(b.median, a.median), ratio(b.min, a.max), ratio(b.max, a.min))


def shown(spread):
    if spread is None:
        return DASH
    return '%s (%s..%s)' % (times(spread.median), times(spread.min), times(spread.max))


def differences(a, b):
    """Sentences on what makes the files hard to compare."""
    def flat(data):
        result = {k: data[k] for k in ('test', 'version', 'source', 'receivers', 'groups')}
        mtus = sorted({run['mtu'] for run in data['runs'] if run['mtu']})
        result['path MTU'] = [str(mtu) for mtu in mtus] or None
        result.update(('host ' + k, v) for k, v in data['host'].items())
        result.update(('option ' + k, v) for k, v in data['options'].items())
        result.update(('label ' + k, v) for k, v in data['labels'].items())
        return result

    def text(value):
        return ('not known' if value is None else
                ','.join(value) if isinstance(value, list) else str(value))

    left, right = flat(a.data), flat(b.data)
    for name in dict.fromkeys([*left, *right]):
        if left.get(name) != right.get(name):
            yield '%s differs: %s, then %s' % (name, text(left.get(name)), text(right.get(name)))
    for doc in (a, b):
        failed = sum(not run['ok'] for run in doc.data['runs'])
        if failed or not doc.data['ok']:
            yield '%s: %d of %d runs did not end well' % (doc.path, failed, len(doc.data['runs']))


def columns(rows):
    """Lines of text; the first column is text, others are numbers."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        yield '  '.join(cell.ljust(w) if i == 0 else cell.rjust(w)
                        for i, (cell, w) in enumerate(zip(row, widths))).rstrip()


def describe(key):
    return '%s, %s, %s' % (key.scheme, replicas(key.n), size(key.size))


def compare(a, b):
    """Returns (lines to print, [Result])."""
    keys = sorted(set(a.rows) & set(b.rows), key=order)
    results = [Result(key, name, spread_ratio(value(a, key), value(b, key)), more,
                      value(a, key) is not None and value(b, key) is None)
               for key in keys for name, value, more in MEASURES]
    lines = ['%s: %s  %s, %s' % (letter, doc.path, doc.data['started'] or DASH,
                                 doc.data['host']['kernel'] or DASH)
             for letter, doc in (('A', a), ('B', b))]
    if keys:
        lines.append('B / A of the medians, in brackets the least and the greatest that the spreads '
                     'allow')
        rows = [['scheme', 'replicas', 'size', *(name for name, _, _ in MEASURES)]]
        rows += [[key.scheme, str(key.n), size(key.size),
                  *(shown(result.spread) for result in results if result.key == key)]
                 for key in keys]
        lines += columns(rows)
    for letter, doc, other in (('A', a, b), ('B', b, a)):
        lines += ['only in %s: %s' % (letter, describe(key))
                  for key in sorted(set(doc.rows) - set(other.rows), key=order)]
    return lines, results


def worse(results, percent):
    """Sentences: what has become worse by more than so many percent, in the median, or unknown."""
    for key, name, spread, more, gone in results:
        if gone:
            yield '%s: %s is not known of B' % (describe(key), name)
        if spread is None:
            continue
        by = (1 - spread.median if more else spread.median - 1) * 100
        if by > percent:
            yield '%s: %s is worse by %.1f %%, more than %g' % (describe(key), name, by, percent)
