#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The part of the standard benchmark that needs soft-RoCE: runs as root, in the virtual machine
(bench/standard/run.sh) or on a machine that has rdma_rxe.

usage: bench/standard/guest.py [TOPOLOGY...]     (all: fig1 star-1x8 star-8x1)

Measures each topology: how fast a group of all its receivers is on links that nobody limits; then,
with every host's link limited to 0.3 of that, everything else.  In folder $RESULTS are then
TOPOLOGY-PART.json as castbench writes them, and TOPOLOGY-capture.json, what a capture has seen;
bench/standard/check says what they show.  docs/benchmarks.md has the method.
"""
import json
import math
import os
import re
import struct
import subprocess
import sys
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), '../..'))
RESULTS = os.environ.get('RESULTS')

MIB = 1 << 20
MTU = 4096
SHARE = 0.3    # of what is reached without a limit.
WINDOW = 129   # packets that a queue pair of soft-RoCE has under way at most.
REPEAT = {'throughput': 2, 'depth1': 3, 'latency': 9}
BLOCKS = {'unlimited': 16, 'depth1': 2, 'latency': 12, 'bytes': 2}
DEPTH = 4
# What is to be spent on the transfers of 'throughput', in seconds for each topology: as many blocks
# as fit, within these limits, and as often.
TRANSFER_SECONDS = float(os.environ.get('BENCH_TRANSFER_SECONDS', '270'))
MIN_BLOCKS, MAX_BLOCKS = 4, 16

# Receivers, and how many of them take part.
TOPOLOGIES = {'fig1': (5, [1, 2, 4, 5]), 'star-1x8': (8, [2, 4, 8]), 'star-8x1': (8, [2, 4, 8])}


def fail(message):
    sys.exit('bench: ' + message)


def run(*argv, show=False):
    """Runs a command; returns what it printed, or ends with what it said."""
    p = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=None if show else subprocess.PIPE,
                       stderr=None if show else subprocess.PIPE, text=True, check=False)
    if p.returncode:
        fail('%s: exit status %d%s' % (' '.join(argv), p.returncode,
                                       '' if show else ': ' + (p.stderr or p.stdout).strip()))
    return p.stdout


def castctl_json(*argv):
    return json.loads(run('castctl', '-j', *argv))


def copies(scheme, n):
    """How often a block passes the link that it passes most often: what a limited run takes."""
    return {'mcast': 1, 'unicast': n, 'unicast-serial': n, 'primary': max(1, n - 1), 'chain': 1,
            'chain-pipe': 1, 'btree': math.ceil(math.log2(n + 1))}[scheme] \
        + (n / DEPTH if scheme == 'chain' else 0)


SCHEMES = ('mcast', 'unicast', 'unicast-serial', 'primary', 'chain', 'chain-pipe', 'btree')


class Bench:
    """One topology, up."""

    def __init__(self, topology):
        self.topology = topology
        self.n, self.replicas = TOPOLOGIES[topology]
        self.receivers = ['r%d' % (i + 1) for i in range(self.n)]
        self.rate = None     # bit/s of each host's link.
        self.timeout = 21    # of queue pairs: 4.096 us * 2^21 = 8.6 s.
        self.uplink = None   # (node, its neighbour).

    def up(self):
        run('castlab', 'up', os.path.join(ROOT, 'testbed/topologies', self.topology + '.yaml'),
            '--timeout', '300')
        env = run('castlab', 'env', self.topology)
        os.environ['ROCECAST_DB'] = re.search(r'ROCECAST_DB=[\'"]?([^\s\'";]+)', env).group(1)
        for link in self.links():
            if 'sa' in link and 'h0' not in link:
                self.uplink = 'sa', next(end for end in link if end != 'sa')

    def down(self):
        run('castlab', 'down', self.topology)

    @staticmethod
    def links():
        """Both ends of each link, by the nodes' names."""
        return [(link['a'].split(':')[0], link['b'].split(':')[0])
                for link in castctl_json('link', 'list')]

    def group(self, name, *options, mtu=MTU):
        run('castctl', 'group', 'add', name, '--mtu', str(mtu), '--timeout', str(self.timeout),
            *options)

    def castbench(self, part, group, schemes, replicas, *options, mtu=MTU):
        """Measures; returns what castbench says, which is kept as a file."""
        path = os.path.join(RESULTS, '%s-%s.json' % (self.topology, part))
        labels = {'topology': self.topology, 'part': part, 'rate': self.rate or 'unlimited',
                  'accelerator': os.environ.get('ACCEL', 'none')}
        uplink = '%s-%s:%s' % (self.topology, *self.uplink)
        start = time.monotonic()
        with_group = ['--group', group] if 'mcast' in schemes else []
        run('castbench', 'write', *with_group, '--source', 'h0', '--receivers',
            ','.join(self.receivers), '--scheme', ','.join(schemes), '--replicas',
            ','.join(map(str, replicas)), '-m', str(mtu), '-u', str(self.timeout), '--timeout',
            '300', '--count-bytes', uplink, '--lab', self.topology, '--json', path,
            *(w for k, v in labels.items() for w in ('--label', '%s=%s' % (k, v))),
            *map(str, options), show=True)
        print('%s, %s: %.0f s\n' % (self.topology, part, time.monotonic() - start), flush=True)
        with open(path) as f:
            return json.load(f)

    def limit(self, unlimited):
        """Every host's link to SHARE of 'unlimited' (bytes/s), both ways.  The source's agent is
        part of its host, as a NIC is: its uplink is the host's link, so that what the agent adds
        counts."""
        self.rate = int(SHARE * unlimited * 8)
        queue = WINDOW * self.n
        for a, b in self.links():
            if {a, b} & set(self.receivers) or {a, b} == set(self.uplink):
                run('castctl', '--wait=agents', 'link', 'impair', a, b, '--both',
                    'rate=%d' % self.rate, 'queue=%d' % queue)
        # All queue pairs may share the uplink; four times that, since answers wait, too.
        wait = 4 * queue * (MTU + 600) * 8 / self.rate
        self.timeout = max(18, math.ceil(math.log2(wait / 4.096e-6)))
        print('%s: every host\'s link is limited to %.2f MB/s both ways, queues of %d packets'
              % (self.topology, self.rate / 8e6, queue), flush=True)

    def plan(self):
        """How many blocks of 'throughput', and how often, there is time for."""
        repeats = REPEAT['throughput']
        per_block = MIB * 1.08 * 8 / self.rate * sum(
            copies(s, n) for s in SCHEMES for n in self.replicas)
        if MIN_BLOCKS * repeats * per_block > 1.5 * TRANSFER_SECONDS:
            print('Links are slow here: once has to do, instead of %d times' % repeats, flush=True)
            repeats = 1
        blocks = int(TRANSFER_SECONDS / repeats / per_block)
        return max(MIN_BLOCKS, min(MAX_BLOCKS, blocks)), repeats

    def measure(self):
        self.group('unlimited')
        runs = self.castbench('unlimited', 'unlimited', ['mcast'], [self.n], '-s', MIB, '-n',
                              BLOCKS['unlimited'], '--warmup', 1, '-t', DEPTH, '--repeat', 3)
        if self.n == 8:
            self.latency('latency-unlimited', 'unlimited')
        self.limit(runs['summary'][0]['mb_per_s']['median'] * 1e6)

        self.group('std')
        blocks, repeats = self.plan()
        self.castbench('throughput', 'std', SCHEMES, self.replicas, '-s', MIB, '-n', blocks,
                       '--warmup', 1, '-t', DEPTH, '--repeat', repeats)
        if self.n == 8:
            self.castbench('depth1', 'std', ['mcast', 'chain-pipe', 'chain'], [8], '-s', MIB, '-n',
                           BLOCKS['depth1'], '--warmup', 1, '-t', 1, '--chunk', 65536, '--repeat',
                           REPEAT['depth1'])
            self.latency('latency', 'std')
        self.capture()
        self.bytes('notlv', MTU, '--receivers', 'provisioned')
        self.bytes('notlv', 1024, '--receivers', 'provisioned')
        run('castctl', 'key', 'add', '1', '--generate')
        self.bytes('mtauth', MTU, '--auth', 'mt-auth', '--key', '1')

    def latency(self, part, group):
        self.castbench(part, group, ['mcast', 'chain', 'btree'], [1, 8], '-s', 4096, '-n',
                       BLOCKS['latency'], '--warmup', 2, '-t', 1, '--repeat', REPEAT['latency'])

    def bytes(self, kind, mtu, *group_options):
        """Another kind of group: what its packets cost on the uplink."""
        part = '%s-%d' % (kind, mtu)
        self.group(part, *group_options, mtu=mtu)
        self.castbench(part, part, ['mcast', 'unicast'], [1, self.n], '-s', MIB, '-n',
                       BLOCKS['bytes'], '-t', DEPTH, mtu=mtu)

    def capture(self):
        """What the uplink carries of one block: frames by kind, length and the SRH's length."""
        node, port = self.uplink
        path = '/tmp/bench-%s.pcap' % self.topology
        seen = {}
        for scheme, n in (('mcast', self.n), ('unicast', 1)):
            run('castctl', 'capture', 'start', node, port, path, '--force')
            self.castbench('capture-' + scheme, 'std', [scheme], [n], '-s', 65536, '-n', 1)
            run('castctl', 'capture', 'stop', node, port)
            with open(path, 'rb') as f:
                seen[scheme] = frames(f.read())
            os.remove(path)
        with open(os.path.join(RESULTS, self.topology + '-capture.json'), 'w') as f:
            json.dump({'topology': self.topology, 'mtu': MTU, **seen}, f, indent=1)


ETH, IP6, UDP, SRH_FIXED = 14, 40, 8, 8
NEXT_UDP, NEXT_IP6, NEXT_ROUTING = 17, 41, 43
ROCE_PORT = 4791
RC_WRITES = range(0x06, 0x0c)


def frames(pcap):
    """Kinds of RDMA WRITE packets in a capture: [{"opcode", "srh" (bytes), "length", "count"}]."""
    found = {}
    pos = 24
    while pos < len(pcap):
        length, = struct.unpack_from('<I', pcap, pos + 8)
        frame = pcap[pos + 16:pos + 16 + length]
        pos += 16 + length
        kind = frame_kind(frame)
        if kind:
            found[kind] = found.get(kind, 0) + 1
    return [{'opcode': opcode, 'srh': srh, 'length': length, 'count': n}
            for (opcode, srh, length), n in sorted(found.items())]


def frame_kind(frame):
    """(opcode, length of the SRH, of the frame) of a WRITE packet, plain or in SRv6; else None."""
    if len(frame) < ETH + IP6 or frame[12:14] != b'\x86\xdd':
        return None
    inner, srh = ETH, 0
    if frame[ETH + 6] == NEXT_ROUTING:
        srh = SRH_FIXED + 8 * frame[ETH + IP6 + 1]
        if frame[ETH + IP6] != NEXT_IP6:
            return None
        inner = ETH + IP6 + srh
    if len(frame) < inner + IP6 + UDP + 1 or frame[inner + 6] != NEXT_UDP:
        return None
    udp = inner + IP6
    opcode = frame[udp + UDP]
    if int.from_bytes(frame[udp + 2:udp + 4], 'big') != ROCE_PORT or opcode not in RC_WRITES:
        return None
    return opcode, srh, len(frame)


def main():
    topologies = sys.argv[1:] or list(TOPOLOGIES)
    for name in topologies:
        if name not in TOPOLOGIES:
            fail("there is no topology '%s': %s" % (name, ' '.join(TOPOLOGIES)))
    if not RESULTS:
        fail('RESULTS is to name a folder for results')
    os.environ['PATH'] = os.path.join(ROOT, 'build/bin') + os.pathsep + os.environ['PATH']
    for name in topologies:
        start = time.monotonic()
        bench = Bench(name)
        bench.up()
        try:
            bench.measure()
        finally:
            bench.down()
        print('%s took %.0f s\n' % (name, time.monotonic() - start), flush=True)


if __name__ == '__main__':
    main()
