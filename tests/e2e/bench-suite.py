#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""End-to-end cases of castbench: every scheme, operation and pattern on real soft-RoCE; runs inside
the VM (see tests/e2e/run).  How fast anything is, is no matter here."""
import csv
import hashlib
import json
import os
import re
import signal
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
from harness import (BIN, PATIENCE, Failure, Lab, Suite, castctl, check, check_equal,
                     down_leaves_nothing, group_add, network_snapshot, processes_of, read, run, running, wait_until,
                     work_file)

SCHEMES = ['mcast', 'unicast', 'unicast-serial', 'primary', 'chain', 'chain-pipe', 'btree']
OPERATIONS = ['write', 'write-imm', 'send']
PATTERNS = ['seq', 'random', 'append']
MTU = 4096
# Blocks are no multiple of packets or chunks, and regions hold fewer than there are.
SIZE, CHUNK, COUNT, REGION = 20000, 6000, 24, 150000
GROUP = 'bench'
QUESTION_LEN = 14 + 40 + 8 + 12 + 16 + 4  # an Ethernet frame with a WRITE of no bytes.
STORE = '/dev/shm/castbench'


def argv(lab, operation, scheme, *options):
    """Of castbench, which takes a group with scheme mcast, and only then."""
    group = ['--group', GROUP] if scheme == 'all' or 'mcast' in scheme else []
    receivers = [] if '--receivers' in options else ['--receivers', ','.join(lab.receivers)]
    return ['castbench', operation, *group, '--scheme', scheme, '--source', 'h0', *receivers, '-m',
            str(MTU), '--timeout', str(PATIENCE), *map(str, options)]


def measured(lab, operation, scheme, *options, status=0):
    """Runs castbench; returns what it says as JSON."""
    path = work_file('bench.json')
    p = run(*argv(lab, operation, scheme, *options, '--json', path))
    check(p.returncode == status, 'castbench: exit status %d: %s', p.returncode,
          (p.stderr + p.stdout).strip())
    result = json.loads(read(path))
    check_equal('version of the JSON', result['castbench'], 2)
    return result


def sizes():
    return '-s', SIZE, '-n', COUNT, '-t', 3, '--chunk', CHUNK, '--region', REGION


def check_right(lab, r):
    """All replicas of a run have all bytes, and what it says of itself fits together."""
    what = '%s(%d)' % (r['scheme'], r['replicas_n'])
    check_equal(what + ' ok', r['ok'], True)
    check_equal(what + ' replicas', [(c['host'], c['bytes_ok'], c['first_bad'])
                                     for c in r['replicas']],
                [(host, r['region_len'], None) for host in lab.receivers])
    check_equal(what + ' blocks and bytes', (r['count'], r['bytes']), (COUNT, COUNT * SIZE))
    for rule in 'any', 'quorum', 'all':
        check_equal('%s blocks that count for %s' % (what, rule), r['latency'][rule]['n'], COUNT)
    any_, quorum, all_ = (r['latency'][rule]['mean_us'] for rule in ('any', 'quorum', 'all'))
    check(any_ <= quorum <= all_, '%s: means of any, quorum, all: %s', what, (any_, quorum, all_))
    check_equal(what + ' blocks in the histogram',
                sum(n for _, n in r['latency']['all']['histogram']), COUNT)
    check_equal(what + ' bytes of the timeline', sum(b for _, b in r['timeline']), r['bytes'])


def every_scheme(operation, pattern):
    """A case: a matrix of all schemes, one of a tree's shapes being 4 receivers'."""
    def case(lab):
        result = measured(lab, operation, 'all', '--pattern', pattern, *sizes(), '--warmup', 3)
        check_equal('runs', [r['scheme'] for r in result['runs']], SCHEMES)
        for r in result['runs']:
            check_right(lab, r)
        check_equal('ok', result['ok'], True)
        check_equal('summary', [(s['scheme'], s['runs']) for s in result['summary']],
                    [(scheme, 1) for scheme in SCHEMES])
    return case


def sha256(path):
    return hashlib.sha256(read(path)).hexdigest()


def files_equal(lab):
    """Region files of source and receivers are one, and what receivers' regions map is the same."""
    out = work_file('bench-out')
    os.makedirs(out, exist_ok=True)
    for i, scheme in enumerate(SCHEMES):
        run_alike = lab, OPERATIONS[i % 3], scheme, '--pattern', PATTERNS[i // 3], *sizes()
        measured(*run_alike, '--out', out)
        measured(*run_alike, '--store', STORE)
        files = [os.path.join(out, name + '.bin') for name in ['source', *lab.receivers]]
        files += ['%s.%s' % (STORE, host) for host in lab.receivers]
        check_equal('%s: sha256' % scheme, {f: sha256(f) for f in files},
                    dict.fromkeys(files, sha256(files[0])))
        for path in files:
            os.remove(path)


def a_file(lab):
    """The bytes of a file, the last block a short one."""
    data = os.urandom(3 * SIZE + 1)
    out = work_file('bench-out')
    os.makedirs(out, exist_ok=True)
    for scheme in 'mcast', 'btree':
        measured(lab, 'write-imm', scheme, '--file', work_file('bench.in', data), '-s', SIZE,
                 '--out', out)
        for host in lab.receivers:
            check(read(os.path.join(out, host + '.bin')) == data, "%s: %s's memory differs", scheme,
                  host)


def matrix(lab):
    """Order of runs, medians, labels, counters, CSV."""
    table = work_file('bench.csv')
    result = measured(lab, 'write', 'mcast,chain', '--replicas', '1,3', '-s', '4K,20000', '-n',
                      5, '--repeat', 2, '--label', 'topology=star', '--csv',
                      table, '--count-bytes', lab.device('sa', lab.port('sa', 'n1')), '--lab',
                      lab.name)
    order = [(r['repeat'], r['size'], r['replicas_n'], r['scheme']) for r in result['runs']]
    check_equal('runs', order, [(repeat, size, n, scheme) for repeat in (0, 1)
                                for size in (4096, 20000) for n in (1, 3)
                                for scheme in ('mcast', 'chain')])
    check_equal('labels', result['labels'], {'topology': 'star'})
    check_equal('runs in the summary', sum(s['runs'] for s in result['summary']), len(order))
    for r in result['runs']:
        devices = {d['device'] for d in r['counted']}
        check_equal('devices', devices, {lab.device('sa', 'n1'), lab.device('n1', 'sa')})
        check_equal('sum', r['counted_bytes'], sum(d['tx_bytes'] for d in r['counted']))
        # At least the packets, with headers, of one copy.
        packets = 5 * -(-r['size'] // MTU)
        check(r['uplink']['tx_bytes'] >= r['bytes'] + 74 * packets and
              r['uplink']['tx_packets'] >= packets, 'uplink: %s', r['uplink'])
        check_equal('fabric CPU', r['cpu_s']['fabric'] is not None, True)
    with open(table, newline='') as f:
        rows = list(csv.DictReader(f))
    check_equal('CSV rows', len(rows), len(order))


def other_ends(lab):
    """A time, not a number; a rate; a condition that holds, and one that does not."""
    for scheme in 'mcast', 'chain-pipe':
        result = measured(lab, 'send', scheme, '-s', SIZE, '-D', 1, '-t', 2)
        check(result['runs'][0]['count'] > 0, 'nothing was written')
        check_equal('overdue without a rate', result['runs'][0]['overdue'], None)
    result = measured(lab, 'write', 'mcast', '-s', 100, '-n', 10, '--rate', 50,
                      '--fail-if', 'p99>3600s')
    check_equal('conditions', [c['failed'] for c in result['fail_if']], [False])
    check_equal('overdue', result['runs'][0]['overdue'], 0)
    result = measured(lab, 'write', 'mcast', '-s', 100, '-n', 10, '--fail-if', 'p99>1us', status=3)
    check_equal('conditions', [c['failed'] for c in result['fail_if']], [True])


def too_fast(lab):
    """Of all blocks that are due in a time each was written or is counted as overdue."""
    for rate, depth in (5, 16), (100000, 1):
        for scheme in 'mcast', 'chain':
            run_, = measured(lab, 'write', scheme, '-s', SIZE, '-D', 1, '--rate', rate, '-t', depth,
                             '--region', REGION)['runs']
            check_equal('blocks due', run_['count'] + run_['overdue'], rate)
            check_equal('overdue at rate %d' % rate, run_['overdue'] > 0, depth == 1)


def stale_counters(lab):
    """What the kernel gives may be older than the run: it is not taken for what has come since."""
    host = lab.receivers[0]
    lifespan = '/sys/class/infiniband/rxe_%s/ports/1/hw_counters/lifespan' % host
    usual = read(lifespan)
    castctl('--wait=agents', 'link', 'impair', 'n1', host, 'duplicate=100%')
    try:
        with open(lifespan, 'w') as f:
            f.write('500')
        result = measured(lab, 'write', 'unicast', '-s', 100, '-n', 3)
    finally:
        with open(lifespan, 'wb') as f:
            f.write(usual)
        castctl('--wait=agents', 'link', 'impair', 'n1', host, 'none')
    check_equal('packets that came twice', result['runs'][0]['repeated_packets'], 3)


class Served:
    """castbench serve in its block; all receivers but the last are there, the last is castbench's own."""

    def __init__(self, lab):
        self.process = subprocess.Popen(['castbench', 'serve', '--listen', '127.0.0.1', '--port', '7000'],
                                        stdin=subprocess.DEVNULL)
        self.receivers = ','.join([h + '=127.0.0.1:7000' for h in lab.receivers[:-1]]
                                  + lab.receivers[-1:])

    def __enter__(self):
        def listens():
            check(self.process.poll() is None, 'castbench serve has ended')
            with open('/proc/net/tcp') as f:
                return '0100007F:1B58 00000000:0000 0A' in f.read()
        wait_until('castbench serve listens', listens)
        return self

    def __exit__(self, kind, value, tb):
        self.process.terminate()
        self.process.wait()


def served(lab):
    """Receivers that another castbench has, as on another machine: the same results, but for times at
    receivers.  castbench serve that ends in the run is an error, and no process stays."""
    with Served(lab) as there:
        for operation in OPERATIONS:
            schemes = 'mcast,unicast' if operation == 'write-imm' else 'mcast'
            result = measured(lab, operation, schemes, *sizes(), '--warmup', 3, '--receivers',
                              there.receivers)
            for r in result['runs']:
                check_right(lab, r)
                told = [c['host'] for c in r['replicas'] if c['arrived']]
                check_equal('receivers whose times are known', told,
                            [] if operation == 'write' else lab.receivers[-1:])
                check_equal('servers', [c.get('server') for c in r['replicas']],
                            ['127.0.0.1:7000'] * 3 + [None])
        bench = Background(lab, 'mcast', '--receivers', there.receivers)
        bench.wait_data(lab.receivers[0])
        sessions = processes_of(there)
        check_equal('sessions', len(sessions), 3)
        there.process.terminate()
        status, text, _ = bench.wait()
    check_equal('exit status', status, 2)
    check('castbench serve at 127.0.0.1:7000 has closed the connection' in text, 'message: %r', text)
    check_equal('processes left', [p for p in sessions if os.path.exists('/proc/%d' % p)], [])
    p = run(*argv(lab, 'write', 'mcast', '--receivers', there.receivers))
    check_equal('without it', p.returncode, 2)
    check('castbench serve at 127.0.0.1:7000 does not answer: Connection refused' in p.stderr, '%r',
          p.stderr)


def polled(lab):
    """A source that looks for completions instead of sleeping; percentiles that are asked for."""
    for options in [], ['--poll']:
        result = measured(lab, 'write', 'mcast', '-s', 64, '-n', 200, '-t', 1, '--percentiles',
                          '99.5,50,95', *options)
        run_, = result['runs']
        times = run_['latency']['all']
        check_equal('ok', run_['ok'], True)
        check_equal('percentiles', times['percentiles'][:2],
                    [[50, times['p50_us']], [95, times['p95_us']]])
        check_equal('poll', result['options']['poll'], True if options else None)
        print('      p50 with %s: %.0f us' % ('polling' if options else 'events', times['p50_us']))


class Background:
    """castbench that runs until something happens to it."""

    def __init__(self, lab, schemes, *options):
        self.path = work_file('bench.json')
        if os.path.exists(self.path):
            os.remove(self.path)
        self.process = subprocess.Popen(
            argv(lab, 'write-imm', schemes, '-s', SIZE, '-n', 100000000, '--json', self.path,
                 *options),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        running.append(self)

    def wait_data(self, host):
        """Until data flows to a receiver."""
        before = received(host)

        def flows():
            if self.process.poll() is not None:
                raise Failure('castbench has ended: %s' % self.process.stdout.read())
            return received(host) > before + 50
        wait_until('data flows to ' + host, flows)

    def receivers(self):
        """Their processes; the source's is the first."""
        path = '/proc/%d/task/%d/children' % (self.process.pid, self.process.pid)
        return [int(pid) for pid in read(path).split()][1:]

    def wait(self):
        """(exit status, what it printed, JSON)."""
        text = self.process.communicate(timeout=PATIENCE)[0]
        return self.process.returncode, text, json.loads(read(self.path))

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


def received(host):
    return int(read('/sys/class/infiniband/rxe_%s/ports/1/hw_counters/rcvd_pkts' % host))


def hit(scheme, sent, sentence, *options):
    """A case: the second of four replicas gets a signal in the run: it is named with what 'sentence'
    says of it, and the next run does not begin."""
    def case(lab):
        bench = Background(lab, scheme + ',unicast', *options)
        bench.wait_data(lab.receivers[-1])
        pids = bench.receivers()
        check_equal('receiver processes', len(pids), len(lab.receivers))
        os.kill(pids[1], sent)
        status, text, result = bench.wait()
        check_equal('exit status', status, 2)
        said = r'receiver %s \(process %d\) %s' % (lab.receivers[1], pids[1], sentence)
        check(re.search(said, text), 'message: %r', text)
        check_equal('ok', result['ok'], False)
        check(re.search(said, result['error']), 'JSON: %r', result['error'])
        check_equal('runs', [(r['scheme'], r['ok']) for r in result['runs']], [(scheme, False)])
    return case


def wrong_byte(lab):
    """Somebody writes into a replica's memory in the run, where no block goes: it is reported with
    its offset, and no other replica is."""
    offset, host = 20, lab.receivers[1]  # behind the log's tail, before its records.
    stores = {h: '%s.%s' % (STORE, h) for h in lab.receivers}
    bench = Background(lab, 'mcast', '--pattern', 'append', '--region', REGION, '--store', STORE,
                       '-n', 1000, '--rate', 200)
    try:
        bench.wait_data(host)
        with open(stores[host], 'r+b') as f:
            f.seek(offset)
            f.write(b'X')
        status, text, result = bench.wait()
    finally:
        for path in stores.values():
            os.remove(path)
    check_equal('exit status', status, 2)
    check('first difference at offset %d' % offset in text, 'message: %r', text)
    run_, = result['runs']
    check_equal('ok', (result['ok'], run_['ok']), (False, False))
    whole = run_['region_len']
    check_equal('replicas', {r['host']: (r['bytes_ok'], r['first_bad']) for r in run_['replicas']},
                {h: (whole - 1, offset) if h == host else (whole, None) for h in lab.receivers})


REFUSED = [
    ('mcast,broadcast', [], 'broadcast'),
    ('mcast', ['-s', '100000', '--region', '50000'], 'larger than the region'),
    ('mcast', ['--replicas', '5'], '--replicas 5'),
    ('mcast', ['--quorum', '5'], 'quorum'),
    ('mcast', ['--lab', 'no-such-lab'], 'no such lab'),
    ('mcast', ['--store', '/no-such-folder/x'], '/no-such-folder/x'),
]


def refused(lab):
    """What cannot be: a sentence that names it, and JSON, if there is any, that is valid."""
    path = work_file('bench.json')
    for scheme, options, wanted in REFUSED:
        if os.path.exists(path):
            os.remove(path)
        p = run(*argv(lab, 'write', scheme, '-n', '10', *options, '--json', path))
        check(p.returncode in (1, 2), '%s: exit status %d', options, p.returncode)
        check(wanted in p.stderr, '%s: message %r', options, p.stderr)
        if os.path.exists(path):
            result = json.loads(read(path))
            check(not result['ok'] and wanted in result['error'], '%s: %s', options, result)


def ecn_fields(lab, scheme, *options):
    """Of the RoCE packets between n1 and r1 in a run, but for n1's own questions to a receiver that is
    idle: these say nothing of what its queue pair does."""
    path, port = work_file('ecn.pcap'), lab.port('n1', 'r1')
    castctl('capture', 'start', 'n1', port, path, '--force')
    try:
        r, = measured(lab, 'write', scheme, *sizes(), *options)['runs']
    finally:
        castctl('capture', 'stop', 'n1', port)
    check_right(lab, r)
    data, found, at = read(path), set(), 24
    while at < len(data):
        length, = struct.unpack_from('=I', data, at + 8)
        frame = data[at + 16:at + 16 + length]
        at += 16 + length
        question = frame[62:63] == b'\x0a' and length == QUESTION_LEN
        if frame[20] == 17 and frame[56:58] == b'\x12\xb7' and not question:
            found.add(frame[15] >> 4 & 3)
    return found


def ecn(lab):
    """Queue pairs do not say that they react to congestion, unless --ecn has them say so."""
    for scheme in ('mcast', 'unicast', 'chain'):
        check_equal('ECN fields, %s' % scheme, ecn_fields(lab, scheme), {0})
        check_equal('ECN fields, %s --ecn' % scheme, ecn_fields(lab, scheme, '--ecn'), {2})


def main():
    os.environ['PATH'] = BIN + os.pathsep + os.environ['PATH']
    suite = Suite()
    before = network_snapshot()
    lab = Lab('star', 'N=4')
    if suite.case('lab with four receivers comes up', lambda lab: lab.up(), lab):
        group_add(GROUP, '--mtu', str(MTU))
        for operation, pattern in zip(OPERATIONS, PATTERNS):
            run = suite.case if operation == OPERATIONS[0] else suite.long_case
            run('castbench %s, %s: every scheme' % (operation, pattern),
                every_scheme(operation, pattern), lab)
        suite.case('castbench: files and stores are equal', files_equal, lab)
        suite.case('castbench: the bytes of a file', a_file, lab)
        suite.case('castbench: a matrix of runs', matrix, lab)
        suite.case('castbench: ECN', ecn, lab)
        suite.case('castbench: receivers at castbench serve', served, lab)
        suite.case('castbench: polling, percentiles', polled, lab)
        suite.case('castbench: time, rate, conditions', other_ends, lab)
        suite.case('castbench: more is due than can be written', too_fast, lab)
        suite.case('castbench: counters that the kernel keeps for a while', stale_counters, lab)
        for scheme in 'mcast', 'chain', 'btree':
            run = suite.case if scheme == 'mcast' else suite.long_case
            run('castbench %s: a replica dies in the run' % scheme,
                hit(scheme, signal.SIGKILL, 'died: Killed'), lab)
            # Others wait for it, and who gives up first cannot know why.
            run = suite.case if scheme == 'chain' else suite.long_case
            run('castbench %s: a replica is stopped in the run' % scheme,
                hit(scheme, signal.SIGSTOP, 'is stopped', '--timeout', 5), lab)
        suite.case('castbench: a wrong byte at a replica', wrong_byte, lab)
        suite.case('castbench: what cannot be', refused, lab)
    suite.case('lab goes', down_leaves_nothing, lab, before)
    return suite.finish()


if __name__ == '__main__':
    sys.exit(main())
