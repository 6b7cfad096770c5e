#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files as castbench --json writes them (docs/castbench-json.md), made up but consistent.

usage: tests/bench/synthetic.py [TOPOLOGY [SEED]] >FILE

Bytes on links follow from who writes to whom over which links, percentiles from the histogram,
the summary from the runs.  Times are drawn at random, from a seed.
"""
import json
import math
import random
import statistics
import sys

SCHEMES = ('mcast', 'unicast', 'unicast-serial', 'primary', 'chain', 'chain-pipe', 'btree')
MTU, HEADER, SRV6, ACK = 4096, 78, 240, 82
RATE = 40e6             # bytes/s of a host's link


class Fabric:
    """A tree of forwarders with hosts at them."""

    def __init__(self, name, parents, hosts, more_links=()):
        self.name, self.parents, self.hosts = name, parents, hosts
        self.more_links = more_links

    def up(self, node):
        path = [node]
        while self.parents[path[-1]]:
            path.append(self.parents[path[-1]])
        return path

    def path(self, a, b):
        """Links between two hosts."""
        left, right = self.up(self.hosts[a]), self.up(self.hosts[b])
        common = next(n for n in left if n in right)
        nodes = left[:left.index(common) + 1] + right[:right.index(common)][::-1]
        return list(zip(nodes, nodes[1:]))

    def devices(self):
        links = [(c, p) for c, p in self.parents.items() if p] + list(self.more_links)
        return sorted(('%s-%s:%s' % (self.name, a, b), (a, b))
                      for pair in links for a, b in (pair, pair[::-1]))


def fabrics():
    fig1 = Fabric('fig1', {'sa': None, 'n6': 'sa', 'n4': 'n6', 'n5': 'n6', 'n1': 'n4', 'n2': 'n4',
                           'n3': 'n5'},
                  {'h0': 'sa', 'r1': 'n1', 'r2': 'n1', 'r3': 'n2', 'r4': 'n3', 'r5': 'n3'},
                  [('n2', 'n5')])
    one = Fabric('star-1x8', {'sa': None, 'n1': 'sa'},
                 dict({'h0': 'sa'}, **{'r%d' % i: 'n1' for i in range(1, 9)}))
    eight = Fabric('star-8x1', dict({'sa': None, 'n0': 'sa'},
                                    **{'n%d' % i: 'n0' for i in range(1, 9)}),
                   dict({'h0': 'sa'}, **{'r%d' % i: 'n%d' % i for i in range(1, 9)}))
    wide = Fabric('wide', dict({'sa': None, 'n0': 'sa'}, **{'n%d' % i: 'n0' for i in range(1, 30)}),
                  dict({'h0': 'sa'}, **{'r%d' % i: 'n%d' % i for i in range(1, 30)}))
    return {f.name: f for f in (fig1, one, eight, wide)}


def writes(scheme, n):
    """(from, to) of members; 0 is the source."""
    if scheme in ('unicast', 'unicast-serial'):
        return [(0, i) for i in range(1, n + 1)]
    if scheme == 'primary':
        return [(0, 1)] + [(1, i) for i in range(2, n + 1)]
    if scheme in ('chain', 'chain-pipe'):
        return [(i - 1, i) for i in range(1, n + 1)]
    pairs, have = [], [0]       # btree
    while len(have) <= n:
        for i in list(have):
            if len(have) <= n:
                pairs.append((i, len(have)))
                have.append(len(have))
    return pairs


def slowdown(scheme, n):
    """Times as long as one write takes, for a large block."""
    return {'mcast': 1.06, 'unicast': n, 'unicast-serial': n * 1.1, 'primary': max(1, n - 1) + 0.05,
            'chain': n, 'chain-pipe': 1.12 + n / 60,
            'btree': max(1, math.ceil(math.log2(n + 1)))}.get(scheme, 1)


def bucket_low(ns):
    width = max(2 ** (ns.bit_length() - 7), 1)
    return ns - ns % width


def latency(times, histogram=False):
    if not times:
        return None
    times = sorted(round(t * 1000) for t in times)

    def at(percent):
        return times[max(math.ceil(len(times) * percent / 100) - 1, 0)] / 1000

    result = {'n': len(times), 'mean_us': round(sum(times) / len(times) / 1000, 3),
              'min_us': times[0] / 1000, 'p50_us': at(50), 'p90_us': at(90), 'p99_us': at(99),
              'p999_us': at(99.9), 'max_us': times[-1] / 1000}
    if histogram:
        counts = {}
        for t in times:
            counts[bucket_low(t)] = counts.get(bucket_low(t), 0) + 1
        result['histogram'] = [[low / 1000, counts[low]] for low in sorted(counts)]
    return result


def link_bytes(fabric, scheme, names, nbytes):
    """Of each link: (bytes, packets)."""
    packets = math.ceil(nbytes / MTU)
    counted = {link: [0, 0] for _, link in fabric.devices()}

    def send(links, size, number):
        for a, b in links:
            counted[a, b][0] += size
            counted[a, b][1] += number
            counted[b, a][0] += ACK * number
            counted[b, a][1] += number

    if scheme == 'mcast':
        links = dict.fromkeys(link for r in names[1:] for link in fabric.path(names[0], r))
        send(links, nbytes + packets * (HEADER + SRV6), packets)
    else:
        for a, b in writes(scheme, len(names) - 1):
            send(fabric.path(names[a], names[b]), nbytes + packets * HEADER, packets)
    return counted


def progress(rng, seconds, nbytes, stalls):
    """'stalls': of (from, to) in seconds."""
    step = max(seconds / 60, 0.01)
    times = [min(step * (i + 1), seconds) for i in range(math.ceil(seconds / step - 1e-9))]
    speed = [0 if any(a <= t <= b for a, b in stalls) else rng.uniform(0.9, 1.05) for t in times]
    samples, seen, before = [], 0, 0
    for t, s in zip(times, speed):
        seen += s / sum(speed) * nbytes
        samples.append([round(t * 1000), round(seen) - before])
        before = round(seen)
    return samples


def one_run(fabric, rng, scheme, n, size, repeat, count, depth):
    names = ['h0'] + ['r%d' % (i + 1) for i in range(n)]
    nbytes = size * count
    alone = (size + math.ceil(size / MTU) * HEADER) / RATE * 1e6 + 35       # us
    per_block = alone * slowdown(scheme, n) * rng.uniform(0.985, 1.015)
    seconds = per_block * count / 1e6
    drawn = [per_block * depth * rng.lognormvariate(0, 0.06) + rng.expovariate(1 / 30)
             for _ in range(min(count, 4000))]
    drawn = [t * 2.5 if rng.random() < 0.004 else t for t in drawn]
    first = 1 if scheme == 'mcast' else 0.35
    links = link_bytes(fabric, scheme, names, nbytes)
    counted = [{'device': d, 'tx_bytes': links[link][0], 'tx_packets': links[link][1]}
               for d, link in fabric.devices()]
    cpu = {'source': seconds * 0.12, 'fabric': seconds * 0.6, 'receivers': seconds * 0.02 * n}
    cpu['busy'] = sum(cpu.values()) * 1.1
    packets = math.ceil(size / MTU) * count * n
    region = min(nbytes, 64 << 20)
    skew = [] if scheme == 'mcast' else [t * 0.6 for t in drawn]
    return {
        'scheme': scheme, 'replicas_n': n, 'size': size, 'repeat': repeat, 'started_ms': 0,
        'ok': True, 'count': count, 'bytes': nbytes, 'region_len': region, 'mtu': MTU,
        'epochs': [repeat + 1] if scheme == 'mcast' else [], 'first_block_at_ms': 1763748224000,
        'seconds': seconds, 'mb_per_s': nbytes / seconds / 1e6, 'messages_per_s': count / seconds,
        'latency': {'any': latency([t * first for t in drawn]),
                    'quorum': latency([t * (first + 1) / 2 for t in drawn]),
                    'all': latency(drawn, True)},
        'quorum': n // 2 + 1, 'longest_gap_us': max(drawn) * 1.5, 'longest_gap_at_ms': seconds * 400,
        'skew': latency(skew), 'packets': packets, 'repeated_packets': 0,
        'resent_packets': 0, 'retries': 0, 'rnr_naks': 0,
        'uplink': dict(counted[[d['device'] for d in counted].index(uplink(fabric))]),
        'counted': counted, 'counted_bytes': sum(d['tx_bytes'] for d in counted),
        'cpu_s': cpu, 'cpu_s_per_gb': {k: v / (nbytes / 1e9) for k, v in cpu.items()},
        'timeline': progress(rng, seconds, nbytes, []), 'lost': [],
        'replicas': [{'host': r, 'bytes_ok': region, 'first_bad': None,
                      'confirmed': None if scheme == 'mcast' else latency(drawn), 'arrived': None,
                      'cpu_s': cpu['receivers'] / n, 'repeated_packets': 0} for r in names[1:]],
    }


def uplink(fabric):
    return next('%s-sa:%s' % (fabric.name, n) for n, p in fabric.parents.items() if p == 'sa')


def lose(rng, run, host, why, after):
    """The run goes on without a receiver, which it has noticed 'after' so much of its time."""
    end = run['seconds'] * 1.3
    run.update(ok=False, error='replicas differ from the source, only of receivers that are lost',
               seconds=end, mb_per_s=run['bytes'] / end / 1e6,
               messages_per_s=run['count'] / end,
               timeline=progress(rng, end, run['bytes'], [(end * (after - 0.25), end * after)]),
               lost=[{'host': host, 'why': why, 'after_ms': round(end * after * 1000)}])
    replica = next(r for r in run['replicas'] if r['host'] == host)
    replica.update(bytes_ok=run['region_len'] // 3, first_bad=run['region_len'] // 3,
                   why='block 85 is not there')


def come_and_go(run, joiner, victim):
    """One receiver joins, another is killed and started again."""
    run.update(events=[
        {'at_s': 1.5, 'event': 'join', 'host': joiner, 'made_ms': 1510, 'registered_ms': 1600, 'state': 'active',
         'told_ms': 1930, 'status': None},
        {'at_s': 2.5, 'event': 'kill', 'host': victim, 'made_ms': 2505, 'registered_ms': None, 'state': 'lost',
         'told_ms': 4800, 'status': 'no progress for 2.2 s at PSN 592 (seen by n3)'},
        {'at_s': 3, 'event': 'start', 'host': victim, 'made_ms': 3004, 'registered_ms': 4850, 'state': 'active',
         'told_ms': 5100, 'status': None}])
    ends = [ms for ms, _ in run['timeline']]
    rates = [b / (end - begin) / 1e3 for (end, b), begin in zip(run['timeline'], [0, *ends])]
    run['goodput_mb_per_s'] = [rates[next(i for i, end in enumerate(ends) if end >= s * 1000)]
                               for s in range(int(ends[-1] // 1000))]
    last = run['count'] - 1
    for replica in run['replicas']:
        begin = 0 if replica['host'] == joiner else None
        end = 1 if replica['host'] == victim else None
        replica.update(begin=begin, end=end, first_psn=4700 if begin == 0 else 10,
                       first_message=20 if begin == 0 else 0,
                       last_message=30 if end == 1 else last)
    again = dict(next(r for r in run['replicas'] if r['host'] == victim))
    again.update(begin=2, end=None, first_psn=9000, first_message=40, last_message=last)
    run['replicas'].append(again)


def fail(run, error):
    """What is known of a run that did not get far."""
    for key in ('count', 'bytes', 'seconds', 'mb_per_s', 'messages_per_s', 'skew', 'longest_gap_us', 'longest_gap_at_ms', 'first_block_at_ms', 'packets',
                'repeated_packets', 'resent_packets', 'retries', 'rnr_naks', 'uplink', 'counted_bytes'):
        run[key] = None
    run.update(ok=False, error=error, latency={'any': None, 'quorum': None, 'all': None}, counted=[],
               timeline=run['timeline'][:20],
               cpu_s=dict.fromkeys(run['cpu_s']), cpu_s_per_gb=dict.fromkeys(run['cpu_s']))
    for replica in run['replicas']:
        replica.update(bytes_ok=0, first_bad=None, confirmed=None, cpu_s=None,
                       repeated_packets=None)


def spread(values):
    values = [v for v in values if v is not None]
    return values and {'median': statistics.median(values), 'min': min(values),
                       'max': max(values)} or None


def summary(runs):
    rows = []
    for key in dict.fromkeys((r['scheme'], r['replicas_n'], r['size']) for r in runs):
        mine = [r for r in runs if (r['scheme'], r['replicas_n'], r['size']) == key
                and r['mb_per_s'] is not None]
        if not mine:
            continue
        row = dict(zip(('scheme', 'replicas_n', 'size'), key), runs=len(mine))
        for name in ('mb_per_s', 'messages_per_s', 'counted_bytes'):
            row[name] = spread([r[name] for r in mine])
        for name in ('p50_us', 'p90_us', 'p99_us', 'p999_us', 'max_us'):
            row[name] = spread([(r['latency']['all'] or {}).get(name) for r in mine])
        row['longest_gap_us'] = spread([r['longest_gap_us'] for r in mine])
        row['skew_p50_us'] = spread([(r['skew'] or {}).get('p50_us') for r in mine])
        row['uplink_bytes'] = spread([(r['uplink'] or {}).get('tx_bytes') for r in mine])
        row['uplink_per_byte'] = spread([r['uplink'] and r['uplink']['tx_bytes'] / r['bytes']
                                         for r in mine])
        row['cpu_fabric_s_per_gb'] = spread([r['cpu_s_per_gb']['fabric'] for r in mine])
        row['cpu_busy_s_per_gb'] = spread([r['cpu_s_per_gb']['busy'] for r in mine])
        rows.append(row)
    return rows


def make(topology='fig1', schemes=SCHEMES, replicas=(1, 2, 4), sizes=(1 << 20,), repeats=3,
         count=200, depth=4, seed=1, spoil=None):
    """A file's value.  spoil(runs, rng) may change the runs before the summary is made."""
    fabric, rng = fabrics()[topology], random.Random(seed)
    runs = [one_run(fabric, rng, scheme, n, size, repeat, count, depth)
            for repeat in range(repeats) for size in sizes for n in replicas for scheme in schemes]
    start = 0
    for run in runs:
        run['started_ms'] = round(start)
        start += run['seconds'] * 1000 + 400
    if spoil:
        spoil(runs, rng)
    receivers = ['r%d' % (i + 1) for i in range(max(replicas))]
    command = ['castbench', 'write', '--group', 'g', '--source', 'h0', '--receivers',
               ','.join(receivers), '--scheme', ','.join(schemes), '--replicas',
               ','.join(map(str, replicas)), '-s', ','.join(map(str, sizes)), '-n', str(count),
               '-t', str(depth), '-m', str(MTU), '--repeat', str(repeats), '--lab', topology,
               '--label', 'topology=' + topology, '--json', topology + '.json']
    return {
        'castbench': 2, 'ok': all(r['ok'] for r in runs), 'started': '2026-11-21T18:03:44Z',
        'command': command,
        'host': {'name': 'bench-vm', 'kernel': '6.12.48+deb12-amd64', 'machine': 'x86_64', 'cpus': 2},
        'version': '0.1', 'labels': {'topology': topology}, 'test': 'write', 'source': 'h0',
        'receivers': receivers, 'groups': ['g'],
        'options': {'pattern': 'seq', 'depth': depth, 'qps': 1, 'duration_s': None, 'warmup': 20,
                    'rate': None, 'chunk': 65536, 'quorum': None, 'mtu': MTU, 'qp_timeout': 18,
                    'seed': 1, 'file': None, 'store': None, 'region_max': 64 << 20,
                    'repeat': repeats},
        'runs': runs, 'summary': summary(runs), 'fail_if': [],
    }


def demonstration(topology, seed):
    """With a lost receiver and a run that failed, as one would look at it."""
    n = min(8, len(fabrics()[topology].hosts) - 1)

    def spoil(runs, rng):
        run = next(r for r in runs if r['scheme'] == 'mcast' and r['replicas_n'] == n)
        lose(rng, run, 'r3', 'no response for 10.0 s', 0.5)
        run.update(repeated_packets=30, retries=9, resent_packets=900)
        come_and_go(next(r for r in runs if r['scheme'] == 'mcast' and r['replicas_n'] == n
                         and r['repeat'] == 1), 'r1', 'r2')
        fail(runs[-2], 'r2: completion with status 12, transport retry counter exceeded')

    value = make(topology, replicas=[i for i in (1, 2, 4, 8) if i < n] + [n], seed=seed, spoil=spoil)
    value['fail_if'] = [{'condition': 'p99>200ms', 'value': 263412.7, 'failed': True, 'run': 8}]
    return value


def main():
    arguments = sys.argv[1:]
    if len(arguments) > 2 or (arguments and arguments[0] not in fabrics()):
        sys.exit(__doc__)
    json.dump(demonstration(arguments[0] if arguments else 'fig1', int((arguments + [0, 1])[1])),
              sys.stdout, indent=1)


if __name__ == '__main__':
    main()
