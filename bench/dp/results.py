# SPDX-License-Identifier: Apache-2.0
"""What measurements come to: a table, requirements with verdicts, JSON (docs/performance.md describes
it)."""
import json
import os
import platform
import time

import plots
from measure import Figure, per_unit_ns

VERSION = 1
DASH = '\u2013'


def comparison(c, lanes, samples, saturated):
    variants = []
    by_name = {lane.name: of_lane for lane, of_lane in zip(lanes, samples)}
    for lane, of_lane in zip(lanes, samples):
        other = by_name.get(c.minus.get(lane.name))
        variants.append({
            'name': lane.name, 'ours': lane.ours, 'frame_len': lane.frame_len,
            'minus': c.minus.get(lane.name),
            'ns': Figure(difference_ns(of_lane, other) if other else map(per_unit_ns, of_lane)).json(),
            'lost': sum(s['lost'] for s in of_lane),
            'node_drops': sum(s['node_drops'] for s in of_lane),
            'in_drops': sum(s['in_drops'] for s in of_lane),
            'out_drops': sum(s['out_drops'] for s in of_lane),
            'refused': sum(s['refused'] for s in of_lane), 'samples': of_lane})
    for v, s in zip(variants, saturated):
        v['saturated'] = {'copies_per_s': s['copies'] * 1e9 / s['wall_ns'], 'sample': s}
    return {'case': c.name, 'title': c.title, 'copies': c.copies, 'payload': c.payload,
            'unit': c.unit, 'burst': c.burst, 'rate': c.rate,
            'variants': variants, 'ratios': ratios(c, variants)}


def difference_ns(samples, others):
    """Per copy, without what the packets take in the other lane."""
    return [(s['cpu_ns'] - o['cpu_ns'] * s['packets'] / o['packets']) / s['units']
            for s, o in zip(samples, others)]


def ratios(c, variants):
    """What is required, and each lane of another build against its like."""
    by_name = {v['name']: v for v in variants}
    found = [ratio(by_name, r.of, r.to, r) for r in c.requirements]
    for name in by_name:
        if name + ' (against)' in by_name:
            found.append(ratio(by_name, name + ' (against)', name, None))
    return found


def ratio(by_name, of, to, requirement):
    value = Figure(a / b for a, b in zip(by_name[of]['ns']['values'], by_name[to]['ns']['values']))
    found = {'of': of, 'to': to, 'ratio': value.json()}
    if requirement and requirement.bound is not None:
        found['bound'] = requirement.bound
        found['at_most'] = requirement.at_most
        found['holds'] = requirement.holds(value.median)
    return found


def skipped(c, why):
    return {'case': c.name, 'title': c.title, 'payload': c.payload, 'skipped': why}


def failed(c, why):
    return {'case': c.name, 'title': c.title, 'payload': c.payload, 'failed': why}


def inexact(found, quick):
    """What is wrong with the counts: None, or a sentence.

    Nothing may be missing of few packets.  Of many the kernel may drop some in front of a forwarder
    that waits for its CPU, or behind it; then each copy that is missing is one of these.
    """
    if 'failed' in found:
        return found['failed']
    for v in found.get('variants', ()):
        per_packet = found['copies'] if found['unit'] == 'copy' else 1
        unexplained = v['lost'] - v['in_drops'] * per_packet - v['out_drops']
        wrong = {'lost': v['lost'] if quick else unexplained, 'node_drops': v['node_drops'],
                 'refused': v['refused']}
        if v['ours'] and any(wrong.values()):
            return '%s: %s of %d packets' % (
                v['name'], ', '.join('%s %d' % w for w in wrong.items() if w[1]),
                sum(s['packets'] for s in v['samples']))
    return None


def head(found):
    return '%s, payload %d' % (found['case'], found['payload'])


def spread(figure, digits=0):
    return '%.*f (%.*f..%.*f)' % (digits, figure['median'], digits, figure['min'], digits,
                                  figure['max'])


def verdict(r):
    if 'bound' not in r:
        return ''
    return '  %s %g  %s' % ('at most' if r['at_most'] else 'at least', r['bound'],
                            'OK' if r['holds'] else 'MISSED')


def show(found, quick):
    """Prints one comparison."""
    wrong = inexact(found, quick)
    if quick:
        if 'skipped' in found:
            print('-     %s: %s' % (head(found), found['skipped']), flush=True)
        else:
            print(('FAIL  %s: %s' % (head(found), wrong)) if wrong else 'ok    ' + head(found),
                  flush=True)
        return
    print('\n%s: %s' % (head(found), found['title']))
    if 'skipped' in found:
        print('  skipped: ' + found['skipped'])
    for v in found.get('variants', ()):
        lost = ''.join('  %s %d' % (k.replace('_', ' '), v[k])
                       for k in ('lost', 'node_drops', 'in_drops', 'out_drops', 'refused') if v[k])
        print('  %-24s %22s ns per %s%s  frames of %d%s' % (
            v['name'], spread(v['ns']), found['unit'], ' without %s' % v['minus'] if v['minus'] else '',
            v['frame_len'], lost))
    for v in found.get('variants', ()):
        if 'saturated' in v:
            print('  %-24s %22.0f copies/s as fast as it goes' % (v['name'],
                                                               v['saturated']['copies_per_s']))
    for r in found.get('ratios', ()):
        print('  %-36s %s%s' % ('%s / %s' % (r['of'], r['to']), spread(r['ratio'], 3), verdict(r)))
    if wrong:
        print('  WRONG: ' + wrong)
    print(end='', flush=True)


KERNEL = '[kernel.kallsyms]'


def show_profile(c, name, shares):
    """Prints what takes most in the kernel, and what does outside it."""
    by_object = {}
    for percent, dso, _ in shares:
        by_object[dso] = by_object.get(dso, 0) + percent
    print('\n%s, payload %d, %s:' % (c.title, c.payload, name))
    print('  ' + ', '.join('%s %.1f %%' % (dso, percent) for dso, percent in sorted(
        by_object.items(), key=lambda item: -item[1]) if percent >= 0.5))
    for title, wanted in (('kernel', True), ('outside', False)):
        top = [s for s in shares if (s[1] == KERNEL) == wanted and s[0] >= 0.3][:25]
        print('  %-8s %s' % (title, ', '.join('%s %.1f' % (symbol, percent) for percent, _, symbol in top)))
    print(end='', flush=True)


def cpu_model():
    with open('/proc/cpuinfo', encoding='utf-8') as f:
        return next((line.split(':', 1)[1].strip() for line in f if line.startswith('model name')),
                    platform.machine())


def document(found, options):
    return {'bench_dp': VERSION, 'time': time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime()),
            'machine': {'kernel': platform.release(), 'cpu': cpu_model(), 'cpus': os.cpu_count()},
            'options': {'packets': options.packets, 'repeats': options.repeats,
                        'against': options.against},
            'comparisons': found}


def write(doc, folder):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, 'results.json'), 'w', encoding='utf-8') as f:
        json.dump(doc, f, indent=1)
        f.write('\n')
    with open(os.path.join(folder, 'report.html'), 'w', encoding='utf-8') as f:
        f.write(plots.page(doc))


def markdown(doc):
    """The figures as the table of docs/performance.md."""
    lines = ['| case | payload | ns per copy, median (least..greatest) | ratios |', '|---|---|---|---|']
    for c in doc['comparisons']:
        if 'variants' not in c:
            continue
        times = '<br>'.join('%s %s' % (v['name'], spread(v['ns'])) for v in c['variants'])
        ratio_texts = '<br>'.join(
            '%s / %s %s%s' % (r['of'], r['to'], spread(r['ratio'], 2), verdict(r).replace('  ', ', '))
            for r in c['ratios'])
        lines.append('| `%s` | %s | %s | %s |' % (c['case'], c['payload'] or DASH, times, ratio_texts))
    return '\n'.join(lines)


def conclude(doc, quick):
    """Prints what it all comes to; returns the exit status."""
    wrong = [c for c in doc['comparisons'] if inexact(c, quick)]
    if quick:
        done = [c for c in doc['comparisons'] if 'skipped' not in c]
        print('%d passed, %d failed' % (len(done) - len(wrong), len(wrong)))
        return 2 if wrong or not done else 0
    judged = [(c, r) for c in doc['comparisons'] for r in c.get('ratios', ()) if 'bound' in r]
    if judged:
        print('\nRequirements:')
    for c, r in judged:
        print('  %-26s %-34s %s%s' % (head(c), '%s / %s' % (r['of'], r['to']),
                                      spread(r['ratio'], 3), verdict(r)))
    for c in wrong:
        print('  %-26s %s' % (head(c), inexact(c, quick)))
    return 2 if wrong else 0 if all(r['holds'] for _, r in judged) else 3
