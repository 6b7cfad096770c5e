# SPDX-License-Identifier: Apache-2.0
"""The page: one file of HTML that needs nothing else, and is XML, too."""
import os
import pkgutil
import re
import shlex
import statistics

import tree
from charts import (against_replicas, distributions, lines, progress, scheme_index)
from document import HOW, Key, begun_by, came_to_its_end, merged_histogram, order, ratio, scheme_order, whole
from svg import DASH, Picture, duration, escape, multiple, number, replicas, short, size, times

# Of conditions: metrics in microseconds, and what the others are in.
TIMES = ('p50', 'p90', 'p95', 'p99', 'p99.9', 'max', 'mean', 'skew', 'gap')
UNITS = {'throughput': 'MB/s', 'messages': '/s', 'retransmissions': '%', 'uplink': 'B'}
TOO_MANY = 0.001        # of the packets, sent again: more, and a run compares nothing


def tag(name, inside, class_=None, **more):
    words = ''.join(' %s="%s"' % (k.rstrip('_'), escape(v)) for k, v in more.items())
    return '<%s%s%s>%s</%s>' % (name, ' class="%s"' % class_ if class_ else '', words, inside, name)


def paragraph(string, class_=None):
    return tag('p', escape(string), class_)


def swatch(scheme):
    i = scheme_index(scheme)
    p = Picture(24, 12, None).line(0, 6, 24, 6, 'swatchline c%d' % i)
    return p.marker(12, 6, i, 'dot f%d' % i).render().replace('<svg', '<svg class="swatch"', 1)


def legend(schemes):
    return tag('div', ''.join(tag('span', swatch(s) + escape(s)) for s in schemes), 'legend')


def table(heads, rows):
    """'heads' that begin with '<' are of columns of text; rows: (class, cells); cells are markup."""
    left = [h.startswith('<') for h in heads]
    head = ''.join(tag('th', '<br/>'.join(escape(part) for part in h.lstrip('<').split('\n')),
                       'l' if text else None) for h, text in zip(heads, left))
    body = ''.join(tag('tr', ''.join(
        cell if cell.startswith('<td') else tag('td', cell, 'l' if text else None)
        for cell, text in zip(cells, left)), class_) for class_, cells in rows)
    return tag('div', tag('table', tag('thead', tag('tr', head)) + tag('tbody', body)), 'wide')


def cell(spread, show=number):
    """The median, and below it the range if there is one to be seen."""
    if spread is None:
        return DASH
    least, greatest = show(spread.min), show(spread.max)
    below = '' if least == greatest else tag('small', least + DASH + greatest)
    return show(spread.median) + below


def prose(string):
    """A cell that may have several lines."""
    return tag('td', escape(string), 't')


def figure(caption, picture, class_=None):
    return tag('figure', tag('figcaption', escape(caption)) + tag('div', picture, class_))


def median(spread):
    return spread.median if spread else None


class Section:
    """One file's part of the page."""

    def __init__(self, doc, number_):
        self.doc, self.data = doc, doc.data
        self.anchor = 'file%d' % number_
        self.topology = self.data['labels'].get('topology')
        self.title = self.topology or os.path.basename(doc.path)

    def render(self):
        parts = [tag('h2', escape(self.title), id=self.anchor), self.state(), self.facts(),
                 self.schemes()]
        sizes = self.doc.sizes()
        if len(sizes) > 1:
            parts += self.against_size(sizes)
        for block in reversed(sizes):
            inside = ''.join(self.of_size(block))
            if len(sizes) == 1:
                parts.append(inside)
            else:
                more = {'open': 'open'} if block == sizes[-1] else {}
                parts.append(tag('details', tag('summary', 'Blocks of ' + size(block)) + inside,
                                 **more))
        return ''.join(parts + self.validity() + self.failures() + self.conditions())

    # What, where, when.

    def counted_state(self):
        runs = self.data['runs']
        return len(runs), sum(not run['ok'] for run in runs)

    def state(self):
        n, failed = self.counted_state()
        if failed or self.data['error'] or not self.data['ok']:
            text = '%d of %d runs did not end well: see below' % (failed, n)
            if self.data['error']:
                text = self.data['error']
            elif not failed:
                text = 'all runs ended well, but castbench did not: see its conditions'
            return tag('p', escape(text), 'state bad')
        if not n:
            return tag('p', 'no runs', 'state bad')
        said = '%d runs; in each, every replica held every byte' % n
        hold = sum(bool(f['failed']) for f in self.data['fail_if'])
        if hold:
            return tag('p', '%s, but %d of %d conditions hold that must not: see below' % (
                said, hold, len(self.data['fail_if'])), 'state bad')
        return tag('p', said, 'state good')

    def facts(self):
        d, host = self.data, self.data['host']
        known = [('File', self.doc.path), ('Test', d['test']),
                 ('Source', d['source']), ('Receivers', '%d: %s' % (
                     len(d['receivers']), ', '.join(d['receivers'])) if d['receivers'] else None),
                 ('Groups', ', '.join(d['groups']) or None),
                 ('Host', '%s, %s, %s CPUs' % tuple(
                     DASH if host[k] is None else host[k] for k in ('name', 'machine', 'cpus'))),
                 ('Kernel', host['kernel']), ('Started', d['started']), ('rocecast', d['version'])]
        known += [(k, v) for k, v in d['labels'].items()]
        options = ', '.join(k if v is True else '%s %s' % (k, v) for k, v in d['options'].items()
                            if v is not None)
        known.append(('Options', options or None))
        if d['options'].get('rdma_cm'):
            known.append(('Connected by RDMA-CM', self.connected()))
        rows = ''.join(tag('dt', escape(k)) + tag('dd', escape(DASH if v is None else v))
                       for k, v in known)
        again = tag('pre', ' '.join(tag('span', escape(shlex.quote(word))) for word in d['command'])
                    ) if d['command'] else DASH
        return tag('dl', rows + tag('dt', 'To run it again') + tag('dd', again))

    def connected(self):
        """How long that has taken, from the least of all runs to the most."""
        def span(who, values):
            values = [v * 1e3 for v in values if v is not None]
            if not values:
                return '%s %s' % (who, DASH)
            return '%s %s to %s' % (who, duration(min(values)), duration(max(values)))
        runs = self.data['runs']
        return '%s; %s' % (span('source', [r['connect_ms'] for r in runs]),
                           span('receivers', [c['connect_ms'] for r in runs for c in r['replicas']]))

    def schemes(self):
        found = sorted({key.scheme for key in self.doc.keys}, key=scheme_order)
        return tag('dl', ''.join(tag('dt', swatch(s) + escape(s)) + tag('dd', escape(HOW[s]))
                                 for s in found if s in HOW))

    # Of one block size.

    def of_size(self, block):
        n = self.largest(block)
        schemes = self.doc.schemes(block)
        parts = [self.headline(block, n), tag('h3', 'Summary' + self.of_blocks(block)),
                 self.summary(block)]
        parts += self.replicas_charts(block, schemes)
        parts += self.latency(block, n)
        parts += self.rules(block)
        parts += self.trees(block, n)
        parts += self.progress(block, n)
        parts += self.events(block)
        parts += self.cpu(block)
        return parts

    def largest(self, block):
        """The greatest number of replicas of which there is something to show."""
        counts = self.doc.counts(block)
        return next((n for n in reversed(counts)
                     if any(self.doc.measured(Key(s, n, block)) for s in self.doc.schemes(block))),
                    counts[-1])

    def of_blocks(self, block):
        return ': blocks of %s' % size(block)

    def headline(self, block, n):
        """What unicast costs, or else the first of the others."""
        mcast = Key('mcast', n, block)
        others = [s for s in self.doc.schemes(block, n) if s != 'mcast']
        if mcast not in self.doc.rows or not others:
            return ''
        other = Key('unicast' if 'unicast' in others else others[0], n, block)
        fast, slow = (median(self.doc.row(k, 'mb_per_s')) for k in (mcast, other))
        light, heavy = (median(self.doc.uplink(k)) for k in (mcast, other))
        said = []
        if ratio(fast, slow):
            said.append('mcast writes %s MB/s, %s %s MB/s: %s times as much.' % (
                number(fast), other.scheme, number(slow), times(ratio(fast, slow))))
        if ratio(heavy, light):
            said.append('For each byte written the source\u2019s uplink carries %s bytes with mcast, '
                        '%s with %s: %s times as many.' % (multiple(light), multiple(heavy),
                                                           other.scheme, times(ratio(heavy, light))))
        return paragraph('With %s and blocks of %s: %s' % (
            replicas(n), size(block), ' '.join(said)), 'headline') if said else ''

    def table_of(self, block, heads, cells, fold=False):
        """A row for each scheme and number of replicas; cells(key) says what is in it.

        With 'fold' all but the greatest number are behind a line to click on.
        """
        heads = ['<scheme', 'replicas', *heads]
        counts = self.doc.counts(block)
        rows = {n: [('first' if i == 0 else None,
                     [swatch(key.scheme) + escape(key.scheme), str(n), *cells(key)])
                    for i, key in enumerate(k for k in self.doc.keys if (k.n, k.size) == (n, block))]
                for n in counts}
        if not fold or len(counts) == 1:
            return table(heads, sum(rows.values(), []))
        shown = rows.pop(self.largest(block))
        others = tag('summary', 'Other numbers of replicas: ' + ', '.join(map(str, rows)))
        return table(heads, shown) + tag('details', others + table(heads, sum(rows.values(), [])))

    def unit(self, block):
        """For the times of one block size: (name, how to write microseconds)."""
        found = [self.doc.row(k, 'p50_us') for k in self.doc.keys if k.size == block]
        if max([v.median for v in found if v], default=0) < 10000:
            return '\u00b5s', number
        return 'ms', lambda us: number(None if us is None else us / 1000)

    def summary(self, block):
        unit, show = self.unit(block)

        def cells(key):
            def against(values):
                return times(ratio(median(values(key)),
                                   median(values(key._replace(scheme='mcast')))))

            def row(measure):
                return lambda k: self.doc.row(k, measure)

            return [number(self.doc.rows[key]['runs']) if key in self.doc.rows else DASH,
                    cell(row('mb_per_s')(key)), against(row('mb_per_s')),
                    cell(row('messages_per_s')(key)),
                    cell(row('p50_us')(key), show), against(row('p50_us')),
                    cell(row('p99_us')(key), show), against(row('p99_us')),
                    cell(self.doc.uplink(key), multiple), against(self.doc.uplink),
                    cell(self.doc.counted(key), multiple), against(self.doc.counted)]

        heads = ['runs', 'MB/s', '\u00f7\nmcast', 'messages/s', 'p50, ' + unit, '\u00f7\nmcast',
                 'p99, ' + unit, '\u00f7\nmcast', 'uplink,\nB per B', '\u00f7\nmcast',
                 'all links,\nB per B', '\u00f7\nmcast']
        return self.table_of(block, heads, cells) + paragraph(
            'Medians over the runs, below them the least and the greatest. Latency is from a '
            'block\u2019s start to when all replicas have it. B per B: bytes sent, headers included, '
            'for each byte written. \u00f7 mcast: how many times what mcast has with as many replicas.' +
            self.few_blocks(block), 'muted')

    def few_blocks(self, block):
        """What percentiles are worth, if not even the greatest of them is below the slowest block."""
        counts = [run['count'] for key in self.doc.keys if key.size == block
                  for run in self.doc.measured(key) if run['count']]
        if not counts or min(counts) >= 1000:
            return ''
        if min(counts) == 1:
            return ' There are runs of a single block: each percentile is its time.'
        return ' There are runs of %d blocks: what is above p%.3g is the slowest one\u2019s time.' % (
            min(counts), 100 - 100 / min(counts))

    def series(self, block, values):
        found = {}
        for key in self.doc.keys:
            if key.size == block and values(key) is not None:
                found.setdefault(key.scheme, []).append((key.n, values(key)))
        return {s: found[s] for s in self.doc.schemes(block) if s in found}

    def replicas_charts(self, block, schemes):
        pictures = []
        for caption, values, unit, show in (
                ('Throughput, MB/s', lambda k: self.doc.row(k, 'mb_per_s'), ' MB/s', number),
                ('Bytes on the source\u2019s uplink for each byte written', self.doc.uplink, '',
                 multiple)):
            series = self.series(block, values)
            if series:
                pictures.append(figure(caption, against_replicas(
                    '%s, against replicas, by scheme' % caption, series, unit, show)))
        if not pictures:
            return []
        counts = self.doc.counts(block)
        title = ('Against replicas' + self.of_blocks(block) if len(counts) > 1 else
                 'By scheme: %s, blocks of %s' % (replicas(counts[0]), size(block)))
        return [tag('h3', title), legend(schemes),
                tag('div', ''.join(pictures), 'pictures charts')]

    def against_size(self, sizes):
        n = self.largest(sizes[-1])
        pictures = []
        for caption, measure, how in (('Throughput, MB/s', 'mb_per_s', {}),
                                      ('p50 latency (log)', 'p50_us',
                                       {'log_y': True, 'show': duration})):
            found = {s: [(k.size, self.doc.row(k, measure)) for k in self.doc.keys
                         if k.scheme == s and k.n == n and self.doc.row(k, measure)]
                     for s in self.doc.schemes(sizes[-1], n)}
            if any(found.values()):
                pictures.append(figure(caption, lines(caption, found, 'block size', size,
                                                      log_x=True, **how)))
        return [tag('h3', 'Against block size: ' + replicas(n)),
                tag('div', ''.join(pictures), 'pictures charts')] if pictures else []

    def latency(self, block, largest):
        shown = []
        for n in reversed(self.doc.counts(block)):
            found = {s: merged_histogram(self.doc.measured(Key(s, n, block)))
                     for s in self.doc.schemes(block, n)}
            found = {s: h for s, h in found.items() if h}
            if not found:
                continue
            pictures = distributions('latency with ' + replicas(n), found)
            inside = legend(found) + tag('div', figure(
                'Share of blocks that took no longer', pictures[0]) + figure(
                    'The slowest: all but one block in 10, in 100, ...', pictures[1]), 'pictures charts')
            if n == largest:
                shown.append(tag('h3', 'Latency: %s, blocks of %s' % (replicas(n), size(block))) +
                             inside)
            else:
                shown.append(tag('details', tag('summary', 'Latency: ' + replicas(n)) + inside))
        return shown

    def rules(self, block):
        unit, show = self.unit(block)

        def cells(key):
            runs = self.doc.measured(key)
            quorums = sorted({run['quorum'] for run in runs if run['quorum'] is not None})

            def of(rule, measure):
                return cell(self.doc.over_runs(
                    key, lambda run: (run['latency'][rule] or {}).get(measure)), show)

            return [', '.join(map(str, quorums)) or DASH,
                    *(of(rule, m) for m in ('p50_us', 'p99_us') for rule in ('any', 'quorum')),
                    *(cell(self.doc.row(key, m), show) for m in (
                        'p50_us', 'p90_us', 'p99_us', 'p999_us', 'max_us', 'skew_p50_us')),
                    cell(self.doc.over_runs(key, lambda run: run['longest_gap_us']), show)]

        heads = ['quorum', 'any\np50', 'quorum\np50', 'any\np99', 'quorum\np99', 'all\np50',
                 'all\np90', 'all\np99', 'all\np99.9', 'all\nmax', 'skew\np50',
                 'longest\ngap']
        return [tag('h3', 'When is it written? Latency in ' + unit),
                self.table_of(block, heads, cells, fold=True),
                paragraph('A block counts as written when any, a quorum or all of the replicas have '
                          'confirmed it: readings of the same runs. The network confirms a '
                          'group\u2019s block once, for all. Skew: from the first replica that has a '
                          'block to the last, where that can be seen.  Longest gap: no block was completed '
                          'though some were under way.', 'muted')]

    def cpu(self, block):
        def cells(key):
            return [cell(self.doc.over_runs(key, lambda run, who=who: run['cpu_s_per_gb'][who]))
                    for who in ('source', 'fabric', 'receivers', 'busy')]

        return [tag('h3', 'CPU seconds for each GB written'),
                self.table_of(block, ['source', 'fabric', 'receivers', 'machine'], cells,
                              fold=True),
                paragraph('Fabric: the forwarders\u2019 processes. Machine: whatever was not idle, of '
                          'all CPUs together, the kernel\u2019s own work included, as timer ticks have '
                          'found it: it may be less than it was, even less than the processes\u2019.',
                          'muted')]

    # The tree.

    def trees(self, block, n):
        fabrics = {s: tree.Fabric(self.doc.measured(Key(s, n, block)))
                   for s in self.doc.schemes(block, n)}
        fabrics = {s: f for s, f in fabrics.items() if f.of_device}
        if not fabrics:
            return []
        drawn = {s: f for s, f in fabrics.items() if f.links}
        most = max([v or 0 for f in drawn.values() for v in f.links.values()] + [1])
        pictures = ''.join(figure(s, tree.draw(
            f, s, self.data['source'] or DASH, most,
            '%s: bytes on each link for each byte written' % s), 'scroll')
            for s, f in drawn.items())
        parts = [tag('h3', 'Bytes on each link: %s, blocks of %s' % (replicas(n), size(block))),
                 paragraph('As multiples of the bytes written; above each line away from the source, '
                           'below it back towards it. A dotted link was not counted.', 'muted'),
                 tag('div', pictures, 'pictures')] if drawn else [
                     tag('h3', 'Bytes that devices sent: %s, blocks of %s' % (replicas(n),
                                                                                    size(block))),
                     paragraph('For each byte written. There is no tree: it begins at the source\u2019s '
                               'uplink (castbench --count-bytes LAB-NODE:NEIGHBOUR), which is not '
                               'known.', 'muted')]
        names = sorted({name for f in fabrics.values() for name in f.not_drawn()})
        if names:
            parts.append(table(['<devices not in the pictures', *fabrics], [
                (None, [escape(name), *(multiple(f.not_drawn().get(name)) for f in fabrics.values())])
                for name in names]))
        return parts

    # Over time.

    def progress(self, block, largest):
        strips = []
        for key in self.doc.keys:
            runs = [run for run in self.doc.runs.get(key, ()) if key.n == largest or run['lost']]
            runs = [run for run in runs if run['timeline'] or run['lost']]
            if key.size == block and runs:
                strips.append((key.scheme, replicas(key.n), runs))
        if not strips:
            return []
        return [tag('h3', 'Throughput over time' + self.of_blocks(block)),
                tag('div', progress('throughput over time, by scheme', strips), 'scroll'),
                paragraph('Of blocks that all replicas have. All repeats of a scheme are in one '
                          'strip; red marks are receivers that were lost, and runs that failed, grey '
                          'ones events that were asked for. Dashed lines: to what the source was slowed '
                          'down because of congestion, in bytes of Ethernet frames, cut off at the top.', 'muted')]

    def events(self, block):
        """Members that came and went, as castbench --event had it."""
        rows = []
        for run in self.data['runs']:
            for i, e in enumerate(run['events'] if run['size'] == block else ()):
                replica = begun_by(run, i) or {}
                made, told = e['made_ms'], e['told_ms']
                rows.append(('first' if i == 0 else None, [
                    str(run['index']), escape(e['event']), escape(e['host']),
                    DASH if made is None else duration(made * 1000),
                    escape(e['state'] or DASH),
                    DASH if None in (made, told) else duration((told - made) * 1000),
                    *(number(replica.get(k)) for k in ('first_message', 'first_psn')),
                    *(number(v) for v in self.speed_at(run, made)), prose(e['status'] or DASH)]))
        if not rows:
            return []
        return [tag('h3', 'Members that came and went' + self.of_blocks(block)),
                table(['run', '<event', '<host', 'made', '<then the\nregistry said', 'after',
                       'first\nmessage', 'first\nPSN', 'MB/s in\nits second', 'MB/s, 5 s\nbefore, median',
                       'least', 'most', '<why'], rows),
                paragraph('Made: since the first block\u2019s start. A member that begins with an event '
                          'has its first message and PSN, and every byte from there to its last '
                          'message was compared.', 'muted')]

    @staticmethod
    def speed_at(run, ms):
        """MB/s of the second, and median, least and most of the five seconds before."""
        speeds = run['goodput_mb_per_s']
        second = None if ms is None else int(ms // 1000)
        before = [] if second is None else speeds[max(second - 5, 0):second]
        return (speeds[second] if second is not None and second < len(speeds) else None,
                statistics.median(before) if before else None, min(before, default=None),
                max(before, default=None))

    # Is it to be believed?

    def validity(self):
        rows, last = [], None
        for key in sorted(self.doc.runs, key=order):
            runs = self.doc.runs[key]
            needed, resent, retries, naks = (total(runs, name) for name in (
                'packets', 'resent_packets', 'retries', 'rnr_naks'))
            share = resent / needed if needed and resent is not None else None
            share_text = DASH if share is None else '%.3f %%' % (100 * share)
            replica_count = sum(len(run['replicas']) or run['replicas_n'] for run in runs)
            rows.append(('first' if (key.size, key.n) != last else None, [
                swatch(key.scheme) + escape(key.scheme), str(key.n), size(key.size),
                how_many(sum(run['ok'] for run in runs), len(runs)),
                how_many(sum(whole(run, r) for run in runs for r in run['replicas']), replica_count),
                number(needed), number(resent),
                tag('td', share_text, 'bad') if (share or 0) > TOO_MANY else share_text,
                number(retries), number(naks)]))
            last = (key.size, key.n)
        if not rows:
            return []
        heads = ['<scheme', 'replicas', 'block', 'runs\nall right', 'replicas\nwith every byte',
                 'packets\nneeded', 'sent again\nat most', 'of those\nneeded', 'retries', 'RNR NAKs']
        return [tag('h3', 'Is it to be believed?'), table(heads, rows),
                paragraph('Sums over the runs. Who retries, or gets an RNR NAK, sends all packets again '
                          'that are under way; where that may be more than 0.1 % of those needed, the '
                          'numbers are of the losses rather than of the scheme.', 'muted')]

    def failures(self):
        rows = []
        for run in self.data['runs']:
            def row(what, where, why, run=run):
                rows.append((None, ['%d' % run['index'], escape(run['scheme']),
                                    str(run['replicas_n']), size(run['size']), str(run['repeat']),
                                    what, escape(where), prose(why)]))
            ended = came_to_its_end(run)
            if not run['ok']:
                row('receivers were lost' if ended else 'run failed', DASH, run['error'] or DASH)
            for lost in run['lost']:
                row('receiver lost', lost['host'], '%s%s' % (
                    '' if lost['after_ms'] is None else
                    'after %s: ' % duration(lost['after_ms'] * 1000) if lost['after_ms'] else
                    'at once: ', lost['why'] or DASH))
            for replica in run['replicas']:
                if not whole(run, replica) and (replica['first_bad'] is not None or ended):
                    row('replica not complete', replica['host'], '%s of %s bytes right; first wrong '
                        'byte at %s: %s' % (number(replica['bytes_ok']), number(run['region_len']),
                                            number(replica['first_bad']), replica['why'] or DASH))
        if not rows:
            return []
        return [tag('h3', 'What went wrong'), table(
            ['run', '<scheme', 'replicas', 'block', 'repeat', '<what', '<host', '<why'], rows)]

    def conditions(self):
        rows = []
        for f in self.data['fail_if']:
            of = DASH
            if f['run'] is not None and f['run'] < len(self.data['runs']):
                run = self.data['runs'][f['run']]
                of = '%s, %s, blocks of %s' % (run['scheme'], replicas(run['replicas_n']),
                                               size(run['size']))
            result = {None: DASH, True: tag('td', 'holds: failed', 'bad'), False: 'does not hold'}
            rows.append((None, [escape(f['condition'] or DASH), escape(of),
                                escape(with_unit(f['condition'] or '', f['value'])),
                                result[f['failed']]]))
        return [tag('h3', 'Conditions (--fail-if)'),
                table(['<condition', '<of', 'median', 'result'], rows)] if rows else []


def with_unit(condition, value):
    """The median that a condition is about: [SCHEME:]METRIC OPERATOR VALUE."""
    metric = re.split('[<>]', condition, maxsplit=1)[0].split(':')[-1].strip()
    if value is None:
        return DASH
    if metric in TIMES:
        return duration(value)
    return ('%s %s' % (number(value), UNITS.get(metric, ''))).strip()


def total(runs, name):
    values = [run[name] for run in runs if run[name] is not None]
    return sum(values) if values else None


def how_many(good, of):
    text = '%d of %d' % (good, of)
    return text if good == of else tag('td', text, 'bad')


def overview(sections):
    rows = []
    for s in sections:
        n, failed = s.counted_state()
        keys = s.doc.keys
        rows.append((None, [
            tag('a', escape(s.title), href='#' + s.anchor), prose(s.doc.path),
            escape(s.data['started'] or DASH), escape(s.data['host']['kernel'] or DASH),
            prose(', '.join(dict.fromkeys(k.scheme for k in keys)) or DASH),
            prose(', '.join(str(v) for v in sorted({k.n for k in keys})) or DASH),
            prose(', '.join(size(v) for v in s.doc.sizes()) or DASH),
            tag('td', '%d of %d failed' % (failed, n), 'bad') if failed else str(n)]))
    return table(['<what', '<file', '<started', '<kernel', '<schemes', '<replicas', '<blocks',
                  'runs'], rows)


def render(documents):
    sections = [Section(doc, i + 1) for i, doc in enumerate(documents)]
    for shorten in os.path.basename, str:       # as short as tells them apart
        titles = [s.title for s in sections]
        for s in sections:
            file = shorten(s.doc.path)
            if titles.count(s.title) > 1 and s.title != file:
                s.title = s.topology + ', ' + file if s.topology else file
    name = 'castbench: %s' % ', '.join(dict.fromkeys(s.title for s in sections))
    style = ''.join(pkgutil.get_data(__name__, name).decode()
                    for name in ('picture.css', 'style.css'))
    head = ('<meta charset="utf-8"/><meta name="viewport" content="width=device-width"/>'
            '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
            'style-src \'unsafe-inline\'"/>' + tag('title', escape(short(name, 120))) +
            tag('style', style.replace('&', '')))
    body = [tag('h1', 'The same bytes to N replicas'),
            paragraph('Writes by castbench on RC queue pairs, one table and picture for all ways of '
                      'writing them. Speeds are those of the machine named below: compare what one '
                      'file has with itself.', 'muted')]
    if len(sections) > 1:
        body.append(overview(sections))
    body += [s.render() for s in sections]
    return '<!DOCTYPE html>\n<html lang="en"><head>%s</head><body>%s</body></html>\n' % (
        head, '\n'.join(body))
