# SPDX-License-Identifier: Apache-2.0
"""castbench itself without RDMA: what it writes when nothing was measured, and of runs that are made
up (fake-run.c)."""
import csv
import json
import os
import re
import resource
import socket
import subprocess
import time

from base import CASTBENCH, FAKE, HOSTILE, ROOT, check, equal

import document

# Refused, but not before the runs are tried: no device has the address.
NOWHERE = ('--scheme', 'unicast', '--source', '2001:db8::1', '--receivers', '2001:db8::2')
LONG = ('--label', 'long=' + 'x' * 20000)


def castbench(w, *argv, **how):
    return subprocess.run([CASTBENCH, *argv], cwd=w.dir, check=False, timeout=120,
                          stdin=subprocess.DEVNULL, **dict({'capture_output': True}, **how))


def sentence(p):
    """What it says, without its name."""
    text = p.stderr.decode()
    check(text.count('\n') == 1 and ': ' in text, '%r', p)
    return text.rstrip('\n').split(': ', 1)[1]


def refused_json(w):
    """JSON says so, too, wherever on a wrong command line it is asked for."""
    for status, *argv in (
            (1, 'write', '--scheme', 'fast', '--json', 'x.json'),
            (1, 'write', '--json', 'x.json', '--scheme', 'unicast', '-s', '9M'),
            (1, 'write', '--replicas', '2', *NOWHERE, '-j', 'x.json'),
            (1, 'write', *NOWHERE, '-s', '4M', '--region', '2M', '--json=x.json'),
            (1, 'read', '--json', 'x.json'),
            (2, 'write', *NOWHERE, '--json', 'x.json'),
            (2, 'write', *NOWHERE, '--json', 'x.json', '--csv', 'no/such.csv'),
            (2, 'write', *NOWHERE, '--json', 'x.json', '--out', 'no')):
        p = castbench(w, *argv)
        equal('%s: exit status' % (argv,), p.returncode, status)
        value = document.load(w.file('x.json')).data
        equal('ok', value['ok'], False)
        equal('error', value['error'], sentence(p))
        equal('command', value['command'], [CASTBENCH, *argv])
        equal('report', w.run('report', '-o', 'x.html', 'x.json').returncode, 0)
        os.remove(w.file('x.json'))
        dashed = ['-' if word == 'x.json' else word.replace('=x.json', '=-') for word in argv]
        p = castbench(w, *dashed)
        equal('on standard output', json.loads(p.stdout)['error'], sentence(p))
    p = castbench(w, 'write', '--frob', '--json', 'x.json', '--frob')
    equal('said', (p.returncode, sentence(p)), (1, "unrecognized option '--frob'"))
    equal('error', document.load(w.file('x.json')).data['error'], sentence(p))


def hostile(w):
    """Whatever the command line has, it is JSON, of the same meaning where that is text."""
    for word in (HOSTILE.replace('=', ''), 'a\nb\t\x01"\\', '\u20ac'):
        castbench(w, 'write', *NOWHERE, '--label', 'k=' + word, '--label', word + '=v', '--json',
                  'x.json')
        value = document.load(w.file('x.json')).data
        equal('labels', value['labels'], {'k': word, word: 'v'})
        check('k=' + word in value['command'], '%r', value['command'])
    castbench(w, 'write', *NOWHERE, '--label', 'k=\udcff\u20ac', '--json', 'x.json')
    equal('no UTF-8', document.load(w.file('x.json')).data['labels'], {'k': '????'})


def no_room(w):
    """What has no room is said, and a file that was there stays."""
    for option in '--json', '--csv':
        p = castbench(w, 'write', *NOWHERE, *LONG, option, '/dev/full')
        equal('status', p.returncode, 2)
        equal(option, p.stderr.decode().splitlines()[-1],
              'castbench: /dev/full: No space left on device')
    w.write('x.json', b'earlier')
    p = castbench(w, 'write', *NOWHERE, *LONG, '--json', 'x.json', restore_signals=False,
                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (9999, 9999)))
    equal('limit', (p.returncode, p.stderr.decode().splitlines()[-1]),
          (2, 'castbench: x.json: File too large'))
    with open(w.file('x.json'), 'rb') as f:
        equal('kept', f.read(), b'earlier')
    equal('files', os.listdir(w.dir), ['x.json'])
    with open('/dev/full', 'wb') as full:
        for argv, said in ((['--help'], 'standard output: write error'),
                           (['write', *NOWHERE, *LONG, '--json', '-'], '-: No space left on device')):
            p = castbench(w, *argv, capture_output=False, stdout=full, stderr=subprocess.PIPE)
            equal(argv[0], (p.returncode, p.stderr.decode().splitlines()[-1]),
                  (2, 'castbench: ' + said))


def one_file(w):
    """CSV would replace the JSON."""
    os.mkdir(w.file('sub'))
    for exists in False, True:
        for other in './x', 'sub/../x', w.file('x'):
            p = castbench(w, 'write', *NOWHERE, '--json', 'x', '--csv', other)
            equal(other, (p.returncode, sentence(p)), (1, '--json x and --csv %s: one file' % other))
            equal('JSON', document.load(w.file('x')).data['error'], sentence(p))
            if not exists:
                os.remove(w.file('x'))
            else:
                w.write('x', b'')
        w.write('x', b'')
    os.symlink('x', w.file('link'))
    equal('link', castbench(w, 'write', *NOWHERE, '--json', 'x', '--csv', 'link').returncode, 1)
    for other in 'y', 'sub/x', '/dev/null':
        equal(other, castbench(w, 'write', *NOWHERE, '--json', 'x', '--csv', other).returncode, 2)


def earlier_results(w):
    """For a slip of the pen no file is lost."""
    w.write('x', b'earlier')
    for argv, said in ((('--scheme', 'fast'), None), (('--frob',), "unrecognized option '--frob'"),
                       ((*NOWHERE, '--csv', './x'), '--json x and --csv ./x: one file'),
                       ((*NOWHERE, '--file', './x'), '--json x and --file ./x: one file')):
        p = castbench(w, 'write', *argv, '--json', 'x')
        lines = p.stderr.decode().splitlines()
        equal('%s' % (argv,), (p.returncode, lines[1:]), (1, ['castbench: x stays as it was']))
        check(said is None or lines[0].endswith('castbench: ' + said), '%r', lines)
        with open(w.file('x'), 'rb') as f:
            equal('kept', f.read(), b'earlier')
    p = castbench(w, 'write', *NOWHERE, '--csv', 'x', '--file', 'x')
    equal('CSV', (p.returncode, sentence(p)), (1, '--csv x and --file x: one file'))
    equal('a run replaces it', castbench(w, 'write', *NOWHERE, '--json', 'x').returncode, 2)
    equal('ok', document.load(w.file('x')).data['ok'], False)


def on_stdout(w):
    """Nothing but what was asked for, by whichever name."""
    for name in '-', '/dev/stdout':
        p = castbench(w, 'write', *NOWHERE, '--json', name)
        equal(name, json.loads(p.stdout)['ok'], False)
        p = castbench(w, 'write', *NOWHERE, '--csv', name)
        rows = list(csv.reader(p.stdout.decode().splitlines()))
        equal('CSV', [len(row) == len(rows[0]) for row in rows], [True] * 2)
        equal('error', rows[1][rows[0].index('error')], sentence(p))
        p = castbench(w, 'write', *NOWHERE, '--json', '-', '--csv', name)
        equal('both', sentence(p), '--json and --csv: both are ' + name)
        p = castbench(w, 'write', *NOWHERE, '--csv', name, '--interval', '1')
        equal('interval', sentence(p), '--interval: standard output is for CSV')
    with open(w.file('into'), 'wb') as f:
        castbench(w, 'write', *NOWHERE, '--json', '/dev/stdout', capture_output=False, stdout=f,
                  stderr=subprocess.DEVNULL)
    with open(w.file('into'), 'rb') as f:
        equal('into a file', json.load(f)['ok'], False)


def fake(w, runs, *argv, blocks=('-n', '10'), **how):
    """castbench to a and b, whose runs end as these words say."""
    return subprocess.run([FAKE, 'write', '--group', 'g', '--source', 'h', '--receivers', 'a,b', *blocks,
                           *argv], cwd=w.dir, check=False, timeout=120,
                          env=dict(os.environ, CASTBENCH_FAKE=runs),
                          **dict({'capture_output': True, 'text': True, 'errors': 'replace'}, **how))


def outcomes(w):
    """Exit status, sentence, JSON and CSV of runs that end in each of the ways there are."""
    three = ('--repeat', '3')
    differ = 'replicas differ from the source'
    for runs, argv, status, oks, said in (
            ('ok', (), 0, [True], ''),
            ('ok', three, 0, [True] * 3, ''),
            ('lost', (), 4, [False], differ + ', only of receivers that are lost'),
            ('ok,lost,ok', three, 4, [True, False, True], 'run 2 of 3, scheme mcast to 2, size 65536: '
             + differ + ', only of receivers that are lost'),
            ('ok,wrong', three, 2, [True, False], 'run 2 of 3, scheme mcast to 2, size 65536: ' + differ),
            ('lost,wrong', three, 2, [False, False], None),
            ('died', (), 2, [False], 'made up: a, "b"\nc'),
            ('stop', three, 2, [True], 'interrupted (Terminated)'),
            ('none', three, 2, [], 'made up: none is possible')):
        p = fake(w, runs, *argv, '--json', 'x.json', '--csv', 'x.csv')
        equal(runs, p.returncode, status)
        if said is not None:
            equal(runs, p.stderr, said and 'castbench: %s\n' % said.replace('\n', '\\n'))
        value = document.load(w.file('x.json')).data
        equal('ok', value['ok'], status == 0)
        equal('runs', [run['ok'] for run in value['runs']], oks)
        if status == 2 and said:
            equal('error', value['error'], said)
        with open(w.file('x.csv'), newline='', encoding='utf-8') as f:
            rows = list(csv.DictReader(f))
        equal('CSV', [row['ok'] for row in rows], [str(int(ok)) for ok in oks])
        equal('errors', [row['error'] for row in rows], [run['error'] or '' for run in value['runs']])
        equal('report', w.run('report', '-o', 'x.html', 'x.json').returncode, 0)
    reader, writer = os.pipe()
    os.close(reader)
    p = fake(w, 'ok', *three, '--json', 'x.json', capture_output=False, stdout=writer,
             stderr=subprocess.PIPE)
    os.close(writer)
    equal('nobody reads', (p.returncode, p.stderr.splitlines()),
          (2, ['castbench: interrupted (Broken pipe)', 'castbench: standard output: write error']))
    value = document.load(w.file('x.json')).data
    equal('JSON', (value['error'], len(value['runs'])), ('interrupted (Broken pipe)', 1))
    with open('/dev/full', 'wb') as full:
        p = fake(w, 'ok', capture_output=False, stdout=full, stderr=subprocess.PIPE)
    equal('table', (p.returncode, p.stderr), (2, 'castbench: standard output: write error\n'))


def rates(w):
    """What the source's agent says of rate and cuts; nothing, if it was not asked."""
    fake(w, 'slowed', '--json', 'x.json')
    run = document.load(w.file('x.json')).data['runs'][0]
    equal('rates', [tuple(r.values()) for r in run['rates']],
          [(250, 12.5, 2, 'fast-cnp', 'n4'), (500, None, 0, 'cnp', None)])
    fake(w, 'ok', '--json', 'x.json')
    equal('without answers', document.load(w.file('x.json')).data['runs'][0]['rates'], [])


def events(w):
    """A run with events: table, JSON, and that of a run without, which has nothing of it."""
    asked = '1.2:kill:a,0:join:b,1.5:start:a'
    p = fake(w, 'ok', '-s', '1M', '--event', asked, '--json', 'x.json', blocks=('-D', '2'))
    equal('status', (p.returncode, p.stderr), (0, ''))
    equal('table', p.stdout.splitlines()[3:], [
        " longest gap between completions: 2.500 ms, 0.125 s after the first block's start",
        '   second       MB/s',
        '        0      5.243  0.007 s join b: registered 0.100 s, active 0.500 s later, from message 1 '
        '(PSN 1016) on',
        '        1      5.243  1.207 s kill a: lost 0.500 s later',
        '                      1.507 s start a: registered 0.100 s, active 0.500 s later, from message 1 '
        '(PSN 1016) on',
        ' a: all 2097152 bytes right, messages 0 to 4',
        ' b: all 2097152 bytes right, messages 1 to 9',
        ' a: all 2097152 bytes right, messages 1 to 9'])
    run = document.load(w.file('x.json')).data['runs'][0]
    equal('events', [tuple(e.values()) for e in run['events']], [
        (0, 'join', 'b', 7, 107, 'active', 507, None), (1.2, 'kill', 'a', 1207, None, 'lost', 1707, None),
        (1.5, 'start', 'a', 1507, 1607, 'active', 2007, None)])
    equal('lives', [tuple(r[k] for k in ('host', 'begin', 'end', 'first_psn', 'first_message',
                                         'last_message')) for r in run['replicas']],
          [('a', None, 1, 1000, 0, 4), ('b', 0, None, 1016, 1, 9), ('a', 2, None, 1016, 1, 9)])
    equal('goodput', run['goodput_mb_per_s'], [5.24288, 5.24288])
    fake(w, 'ok', '--json', 'x.json')
    with open(w.file('x.json'), 'rb') as f:
        run = json.load(f)['runs'][0]
    equal('without', [k for k in ('events', 'goodput_mb_per_s') if k in run], [])
    equal('without', 'first_psn' in run['replicas'][0], False)


def connected(w):
    """By RDMA-CM: how long that took, in table, JSON and on the page; nothing of it in a run without."""
    p = fake(w, 'ok', '-R', '--json', 'x.json')
    equal('status', (p.returncode, p.stderr), (0, ''))
    equal('table', p.stdout.splitlines()[3],
          ' connected by RDMA-CM: the source in 12.5 ms, receivers in 20.0 to 40.0 ms')
    value = document.load(w.file('x.json')).data
    run = value['runs'][0]
    equal('JSON', (value['options']['rdma_cm'], run['connect_ms'], [r['connect_ms'] for r in run['replicas']]),
          (True, 12.5, [20, 40]))
    equal('report', w.run('report', '-o', 'x.html', 'x.json').returncode, 0)
    with open(w.file('x.html'), encoding='utf-8') as f:
        page = f.read()
    check('<dd>source 12.5 ms to 12.5 ms; receivers 20 ms to 40 ms</dd>' in page, '%r',
          re.findall('<dd>.*?</dd>', page))
    check(re.search('<dd>[^<]*, rdma_cm[^<]*</dd>', page), 'not among the options')
    fake(w, 'died', '-R', '--json', 'x.json')
    equal('report', w.run('report', '-o', 'x.html', 'x.json').returncode, 0)
    p = fake(w, 'ok', '--json', 'x.json')
    check('RDMA-CM' not in p.stdout, '%r', p.stdout)
    with open(w.file('x.json'), encoding='utf-8') as f:
        value = json.load(f)
    equal('without', (value['options']['rdma_cm'], 'connect_ms' in value['runs'][0],
                      'connect_ms' in value['runs'][0]['replicas'][0]), (None, False, False))


# What is said to castbench serve, and what it answers; None: it closes the connection.
SERVED = (
    (b'\n', None), (b'[]\n', None), (b'"x"\n', None), (b'{"a": \n', None), (b'\xff\n', None),
    (b'{', None),
    (b'{"step": "arm"}\n', 'a step that is not the next one'),
    (b'{"step": 5}\n', 'castbench serve has version VERSION, the source\'s castbench none'),
    (b'{"castbench": "0.0.1"}\n',
     'castbench serve has version VERSION, the source\'s castbench 0.0.1'),
    (b'{"castbench": "VERSION"}\n', 'no command line'),
    (b'{"castbench": "VERSION", "arguments": {"0": "castbench"}}\n', 'no command line'),
    (b'{"castbench": "VERSION", "arguments": [1, 2]}\n', "unknown test ''"),
    (b'{"castbench": "VERSION", "arguments": ["castbench", "--frob"]}\n',
     "unrecognized option '--frob'"),
    (b'{"castbench": "VERSION", "arguments": ["castbench", "write", "-s", "0"]}\n', '-s 0: must be'),
    (b'{"castbench": "VERSION", "arguments": ARGUMENTS}\n', 'no run of that command line'),
    (b'{"castbench": "VERSION", "arguments": ARGUMENTS, "scheme": "mcast", "replicas": 2, "size": 64,'
     b' "receiver": 0}\n', 'no run of that command line'),
    (b'{"castbench": "VERSION", "arguments": ARGUMENTS, "scheme": "unicast", "replicas": 1, "size": 64,'
     b' "receiver": 1}\n', 'no run of that command line'),
    (b'{"castbench": "VERSION", "arguments": ARGUMENTS, "scheme": "unicast", "replicas": 0, "size": 64,'
     b' "receiver": 0}\n', 'no run of that command line'),
    (b'{"castbench": "VERSION", "arguments": ARGUMENTS, "scheme": "unicast", "replicas": 1,'
     b' "size": 5000000000, "receiver": 0}\n', 'no run of that command line'),
    # Other than that the run is refused where there is no RDMA device.
    (b'{"castbench": "VERSION", "arguments": ARGUMENTS, "scheme": "unicast", "replicas": 1, "size": 64,'
     b' "receiver": 0}\n', 'has 2001:db8::2 in its GID table'),
)


def serve_refuses(w):
    """castbench serve takes nothing that it does not know, and goes on serving others."""
    version = castbench(w, '--version').stdout.decode().split()[-1]
    with socket.create_server(('127.0.0.1', 0)) as free:
        port = free.getsockname()[1]
    server = subprocess.Popen([CASTBENCH, 'serve', '--listen', '127.0.0.1', '--port', str(port)],
                              cwd=w.dir, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for said, wanted in SERVED:
            end = time.monotonic() + 60
            while True:
                try:
                    connection = socket.create_connection(('127.0.0.1', port), 60)
                    break
                except ConnectionRefusedError:
                    check(server.poll() is None and time.monotonic() < end, 'it does not listen')
                    time.sleep(0.05)
            with connection, connection.makefile('r') as stream:
                arguments = json.dumps(['castbench', 'write', *NOWHERE])
                connection.sendall(said.replace(b'VERSION', version.encode())
                                   .replace(b'ARGUMENTS', arguments.encode()))
                if wanted is None:
                    connection.shutdown(socket.SHUT_WR)
                answer = stream.readline()
            if wanted is None:
                equal('answer to %r' % said, answer, '')
            else:
                error = json.loads(answer)['error']
                check(wanted.replace('VERSION', version) in error, '%r: %r', said, error)
        equal('still serves', server.poll(), None)
        server.terminate()
        equal('exit status', server.wait(60), 0)
    finally:
        server.kill()
        server.wait()


def asked_percentiles(w):
    """Those that were asked for are in the table, in order, and in each of the JSON's times."""
    p = fake(w, 'ok', '--json', 'x.json', '--percentiles', '99.99,10,50')
    check(' p10[us]    p50[us]  p99.99[us]    max[us]' in p.stdout, '%s', p.stdout)
    with open(w.file('x.json'), 'rb') as f:
        value = json.load(f)
    times = value['runs'][0]['latency']
    for rule in 'any', 'quorum', 'all':
        equal(rule, [percent for percent, _ in times[rule]['percentiles']], [10, 50, 99.99])
        equal('p50', times[rule]['percentiles'][1][1], times[rule]['p50_us'])
    equal('options', value['options']['percentiles'], '10,50,99.99')
    equal('p95', value['summary'][0]['p95_us']['median'], times['all']['p95_us'])
    fake(w, 'ok', '--json', 'x.json')
    with open(w.file('x.json'), 'rb') as f:
        value = json.load(f)
    check('percentiles' not in value['runs'][0]['latency']['all'], 'nobody asked')
    equal('options', value['options']['percentiles'], None)


def values(w):
    """Numbers keep their digits; null is what is not known or nobody asked for."""
    fake(w, 'ok', '--json', 'x.json', '--count-bytes', 'lab-sa:n1')
    value = document.load(w.file('x.json')).data
    all_ = value['runs'][0]['latency']['all']
    equal('times', (all_['min_us'], all_['max_us']), (1073741.824, 1073741.833))
    # A reader finds the bucket's width by where it begins.
    equal('bucket', all_['histogram'], [[2 ** 30 / 1000, 10]])
    equal('uplink', value['summary'][0]['uplink_bytes'], {'median': 655361, 'min': 655361,
                                                           'max': 655361})
    equal('skew', value['runs'][0]['skew'], None)
    equal('began', value['runs'][0]['first_block_at_ms'], 1700000000250)
    equal('gap', [(r['longest_gap_us'], r['longest_gap_at_ms']) for r in
                  (value['runs'][0], *value['runs'][0]['replicas'])], [(2500, 125), (1000, 50), (2000, 50)])
    equal('options', [value['options'][k] for k in ('count', 'mtu', 'rate', 'quorum', 'duration_s')],
          [10, None, None, None, None])
    fake(w, 'died', '--json', 'x.json', '-m', '4096')
    value = document.load(w.file('x.json')).data
    equal('options', value['options']['mtu'], 4096)
    run = value['runs'][0]
    for key in ('seconds', 'mb_per_s', 'messages_per_s', 'skew', 'longest_gap_us', 'longest_gap_at_ms', 'uplink', 'counted_bytes',
                'retries'):
        equal(key, run[key], None)
    equal('per GB', set(run['cpu_s_per_gb'].values()), {None})
    equal('latency', set(run['latency'].values()), {None})


def forwarders_cpu(w):
    """CPU time of a lab's forwarders is in the tables, of each run and of the repeats."""
    def cells(*argv):
        """Last cells of the lines below a headline: '0.375', of a summary '0.375 (0.375..0.375)'."""
        lines = fake(w, 'ok', *argv, '--json', 'x.json').stdout.splitlines()
        return [re.split('  +', lines[i + 1])[-1] for i, line in enumerate(lines)
                if line.endswith(' fwd[s/GB]')]
    of_run = 0.375 / (10 * 65536 / 1e9)
    equal('one run', cells('--lab', 'l'), ['%.1f' % of_run])
    equal('repeats', cells('--lab', 'l', '--repeat', '2'),
          ['%.1f' % of_run, '%.1f (%.1f..%.1f)' % (of_run, of_run, of_run)])
    value = document.load(w.file('x.json')).data
    equal('JSON', [round(run['cpu_s_per_gb']['fabric'], 6) for run in value['runs']],
          [round(of_run, 6)] * 2)
    equal('no lab', cells('--repeat', '2'), ['-', '-'])


def columns(w):
    """CSV has the columns that docs/castbench-json.md names, and the summary's values."""
    with open(os.path.join(ROOT, 'docs/castbench-json.md'), encoding='utf-8') as f:
        text = f.read()
    names = re.findall(r'`(\w+)`', text.split('\n## CSV\n')[1].split('\n## ')[0])
    rows = text.split('\n## Summary\n')[1].split('\n## ')[0].split('|---|---|')[1].splitlines()
    measures = re.findall(r'`(\w+)`', '\n'.join(row.split(' | ')[0] for row in rows))
    fake(w, 'ok', '--count-bytes', 'sa', '--lab', 'l', '--csv', 'x.csv', '--json', 'x.json')
    with open(w.file('x.csv'), newline='', encoding='utf-8') as f:
        got = list(csv.DictReader(f))
    equal('columns', list(got[0]), names[:names.index('error')] + measures + ['error'])
    with open(w.file('x.json'), encoding='utf-8') as f:
        summary = json.load(f)['summary'][0]
    for name in measures:
        known = summary[name] and summary[name]['median']
        equal(name, got[0][name], '' if known is None else '%.12g' % known)
    fake(w, 'none', '--csv', 'x.csv')
    with open(w.file('x.csv'), 'rb') as f:
        equal('no run', f.read().count(b'\r\n'), 1)


def conditions(w):
    """--fail-if: its exit status, and what is said has all digits."""
    counted = ('--count-bytes', 'sa', '--rate', '100')
    for condition, holds in (
            ('p50>1s', 'p50 is 1073741.833 us'), ('p50>2s', None), ('uplink>655360', 'uplink is 655361 B'),
            ('uplink>=655361', 'uplink is 655361 B'), ('uplink>655361', None),
            ('messages<20.5', 'messages is 20'), ('throughput<1.3', None),
            ('skew>1', 'skew is not known'), ('gap>2ms', 'gap is 2500 us'), ('gap>2.5ms', None), ('overdue>2', 'overdue is 3'), ('mcast : retransmissions > 0.1 %', None)):
        p = fake(w, 'ok', *counted, '--fail-if', condition, '--json', 'x.json')
        equal(condition, (p.returncode, p.stderr), (3, 'castbench: --fail-if %s: scheme mcast to 2, '
                                                    'size 65536: %s\n' % (condition, holds))
              if holds else (0, ''))
        value = document.load(w.file('x.json')).data
        equal('JSON', [(f['condition'], f['failed'], f['run']) for f in value['fail_if']],
              [(condition, bool(holds), 0)])
    p = fake(w, 'lost', '--fail-if', 'p50>1s')
    equal('a loss is worse', p.returncode, 4)
    p = fake(w, 'died', '--fail-if', 'p50>1s')
    equal('no run, no median', (p.returncode, p.stderr.count('--fail-if')), (2, 0))
