# SPDX-License-Identifier: Apache-2.0
"""bench/standard/check: of a benchmark in which all is as it should be every requirement holds, and of
one in which a thing is not, that one does not."""
import math
import os
import re
import shutil
import subprocess
import sys

from base import ROOT, check, equal

PROGRAM = os.path.join(ROOT, 'bench/standard/check')
RATE, MIB = 20000000, 1 << 20
SCHEMES = ('mcast', 'unicast', 'unicast-serial', 'primary', 'chain', 'chain-pipe', 'btree')
FRAMES = {('mcast', 4096): 4422, ('unicast', 4096): 4174, ('mcast', 1024): 1166,
          ('unicast', 1024): 1102}
LATENCY = {'mcast': 1, 'chain': 6, 'btree': 3, 'chain-pipe': 1.5}


def copies(scheme, n):
    """How often a block passes the uplink, and the link that is busiest."""
    rounds = math.ceil(math.log2(n + 1))
    return {'unicast': (n, n), 'unicast-serial': (n, n), 'primary': (1, n - 1), 'chain': (1, 3),
            'btree': (rounds, rounds)}.get(scheme, (1, 1))


def one_run(scheme, n, size, count, frame, repeat, mtu=4096):
    """What castbench writes of it, as far as it matters."""
    uplink, busiest = copies(scheme, n)
    packets = count * -(-size // mtu)
    ms = LATENCY.get(scheme, 1) * (8 if size == MIB else 1) * 1000
    return {'scheme': scheme, 'replicas_n': n, 'size': size, 'repeat': repeat, 'ok': True,
            'count': count, 'mtu': mtu, 'region_len': size, 'packets': packets * n,
            'seconds': busiest * packets * frame * 8 / RATE, 'mb_per_s': 8.0,
            'cpu_s_per_gb': {'fabric': 100.0 + repeat},
            'latency': {'all': {'mean_us': ms, 'p50_us': ms}}, 'resent_packets': 0,
            'uplink': {'tx_bytes': uplink * packets * frame},
            'replicas': [{'bytes_ok': size}] * n}


def one_file(schemes, replicas, size, count, repeats, depth, mtu=4096, no_tlvs=False):
    """A file of castbench's."""
    def frame(scheme):
        few = 'mcast' if scheme == 'mcast' else 'unicast'
        return FRAMES[few, mtu] - (184 if no_tlvs and scheme == 'mcast' and mtu == 4096 else 0)
    return {'castbench': 2, 'host': {'kernel': '6.12.1-amd64'}, 'labels': {'rate': str(RATE)},
            'options': {'depth': depth},
            'runs': [one_run(s, n, size, count, frame(s), r, mtu) for r in range(repeats)
                     for n in replicas for s in schemes]}


def whole():
    """{part: file} of topology star-1x8."""
    latency = ('mcast', 'chain', 'btree'), (1, 8), 4096, 12, 9, 1
    pair = ('mcast', 'unicast'), (1, 8), MIB, 2, 1, 4
    return {'unlimited': one_file(('mcast',), (8,), MIB, 16, 3, 4),
            'throughput': one_file(SCHEMES, (2, 4, 8), MIB, 4, 2, 4),
            'depth1': one_file(('mcast', 'chain-pipe', 'chain'), (8,), MIB, 2, 3, 1),
            'latency': one_file(*latency), 'latency-unlimited': one_file(*latency),
            'notlv-4096': one_file(*pair, no_tlvs=True),
            'notlv-1024': one_file(*pair, mtu=1024),
            'mtauth-4096': one_file(*pair),
            'capture': {'unicast': [{'opcode': 7, 'srh': 0, 'length': 4174, 'count': 9}],
                        'mcast': [{'opcode': 7, 'srh': 208, 'length': 4422, 'count': 9}]}}


def report(w, parts):
    """(exit status, [what is printed, by columns])."""
    folder = w.file('results')
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder)
    for part, value in parts.items():
        w.write('results/star-1x8-%s.json' % part, value)
    p = subprocess.run([sys.executable, PROGRAM, folder, 'star-1x8'], capture_output=True, text=True,
                       check=False, timeout=60)
    equal('errors', p.stderr, '')
    return p.returncode, [re.split('  +', line.strip()) for line in p.stdout.splitlines()]


def verdicts(w, parts):
    """(exit status, [(verdict, requirement)])."""
    status, lines = report(w, parts)
    return status, [tuple(line[:2]) for line in lines if line[0] in ('ok', 'FAILED')]


def every_run(parts, part, scheme, n):
    found = [r for r in parts[part]['runs'] if (r['scheme'], r['replicas_n']) == (scheme, n)]
    check(found, 'no such run: %s %s %d', part, scheme, n)
    return found


def in_runs(part, scheme, change, n=8):
    def apply(parts):
        for run in every_run(parts, part, scheme, n):
            change(run)
    return apply


def scale(factor, *keys):
    def apply(run):
        for key in keys[:-1]:
            run = run[key]
        run[keys[-1]] *= factor
    return apply


def in_first(part, scheme, **new):
    return lambda parts: every_run(parts, part, scheme, 8)[0].update(new)


def without_last_repeat(parts):
    parts['latency']['runs'] = [r for r in parts['latency']['runs'] if r['repeat'] < 8]


THROUGHPUT = '1 MiB, depth 4: '
ONE = '1 MiB, depth 1, chunk 64 KiB: '
SMALL = '4 KiB, depth 1'
# What is done to a whole benchmark, and all requirements that do not hold then.
WRONG = (
    (in_first('throughput', 'btree', ok=False), ['every replica holds every byte']),
    (in_first('latency', 'chain', replicas=[{'bytes_ok': 4096}] * 7 + [{'bytes_ok': 4095}]),
     ['every replica holds every byte']),
    (in_first('throughput', 'mcast', resent_packets=129),
     ['packets sent again at most, worst scheme']),
    (in_first('latency', 'btree', resent_packets=1), ['packets sent again at most, worst scheme']),
    (in_first('latency', 'mcast', resent_packets=None), ['packets sent again at most, worst scheme']),
    (in_runs('throughput', 'unicast', scale(1.06, 'seconds')),
     ['unicast, of the limited rate', 'of 8 x packet bytes']),
    (lambda parts: parts['throughput']['labels'].update(rate='unlimited'),
     ['unicast, of the limited rate']),
    (lambda parts: parts['capture']['mcast'][0].update(length=4423),
     ['bytes more per packet, from a capture']),
    (lambda parts: parts['capture']['mcast'][0].update(length=4430, srh=216),
     ['bytes more per packet, from a capture']),
    (lambda parts: parts['capture'].update(mcast=[]), ['bytes more per packet, from a capture']),
    (in_runs('throughput', 'mcast', scale(1.015, 'uplink', 'tx_bytes')),
     ['uplink bytes, unicast(8) / mcast(8)']),
    (in_runs('notlv-4096', 'mcast', scale(1.02, 'uplink', 'tx_bytes')),
     ['uplink bytes, unicast(8) / mcast(8), no TLVs']),
    (in_runs('notlv-1024', 'mcast', scale(1.01, 'uplink', 'tx_bytes')),
     ['uplink bytes, mcast(8) / unicast(1), no TLVs, MTU 1024']),
    (in_runs('throughput', 'primary', scale(0.89, 'seconds')),
     [THROUGHPUT + 'primary(8) / mcast(8)']),
    (in_runs('throughput', 'btree', scale(0.89, 'seconds')), [THROUGHPUT + 'btree(8) / mcast(8)']),
    (in_runs('throughput', 'chain-pipe', scale(0.89, 'seconds')),
     [THROUGHPUT + 'chain-pipe(8) / mcast(8)']),
    (in_runs('depth1', 'chain-pipe', scale(0.79, 'latency', 'all', 'mean_us')),
     [ONE + 'chain-pipe(8) / mcast(8)']),
    (in_runs('depth1', 'chain', scale(0.83, 'latency', 'all', 'mean_us')),
     [ONE + 'chain(8) / mcast(8)']),
    (in_runs('latency', 'chain', scale(0.41, 'latency', 'all', 'p50_us')),
     [SMALL + ', p50: chain(8) / mcast(8)']),
    (in_runs('latency', 'btree', scale(0.49, 'latency', 'all', 'p50_us')),
     [SMALL + ', p50: btree(8) / mcast(8)']),
    (without_last_repeat, [SMALL + ': repeats']),
    (lambda parts: parts['latency']['host'].update(kernel='6.1.0'), [SMALL + ': repeats']),
)


def all_hold(w):
    status, lines = verdicts(w, whole())
    equal('do not hold', [what for verdict, what in lines if verdict != 'ok'], [])
    check(len(lines) > 20, 'requirements: %s', lines)
    equal('exit status', status, 0)


def forwarders_cpu(w):
    """A figure without a bound, which not every run has."""
    def shown(parts):
        status, lines = report(w, parts)
        return status, [line[2] for line in lines
                        if line[:2] == ['-', "mcast(8) on links without limit, forwarders' CPU s/GB"]]
    parts = whole()
    equal('counted', shown(parts), (0, ['101.000 (100.000..102.000)']))
    for run in parts['unlimited']['runs']:
        run['cpu_s_per_gb']['fabric'] = None
    status, lines = shown(parts)
    equal('not counted', (status, [line[:13] for line in lines]), (0, ['not measured:']))


def each_can_fail(w):
    """Each requirement fails if what it is about is wrong, and no other does."""
    good = verdicts(w, whole())[1]
    failed = set()
    for apply, wanted in WRONG:
        parts = whole()
        apply(parts)
        status, lines = verdicts(w, parts)
        equal('requirements', [what for _, what in lines], [what for _, what in good])
        equal('do not hold', [what for verdict, what in lines if verdict != 'ok'], wanted)
        equal('exit status', status, 2)
        failed.update(wanted)
    # What is not for eight replicas is the same for fewer.
    equal('never failed', [what for _, what in good if what not in failed and
                           not re.search(r'\((2|4)\)|of [24] x', what)], [])


def not_measured(w):
    """A part that is not there, or is something else, is a verdict, too; of the rate without limits
    there is none."""
    for part in whole():
        for value in (None, b'{', {'castbench': 1}, {'castbench': 2, 'runs': []}, []):
            parts = dict(whole(), **{part: value})
            if value is None:
                del parts[part]
            status, lines = verdicts(w, parts)
            failed = [what for verdict, what in lines if verdict != 'ok']
            equal('%s: %r: %s' % (part, value, failed), (status, bool(failed)),
                  (0, False) if part == 'unlimited' else (2, True))
