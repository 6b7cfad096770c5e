# SPDX-License-Identifier: Apache-2.0
"""One measurement: packets into a lane, CPU time and copies out of it.  Comparisons of several lanes,
in turn, and what follows from them."""
import json
import os
import signal
import statistics
import subprocess
import time

from registry import Failed

FLOODER_CPU = 0
WARM = 256
PSN_MASK = 0xffffff


def on_cpu(cpus):
    """For a process that is about to start."""
    return lambda: os.sched_setaffinity(0, cpus)


def flood(lane, n, burst=64, run=None, rate=0, text=None, psn=None):
    """Sends 'n' packets; returns what the flooder says.  The lane's PSNs go on."""
    psn = lane.psn if psn is None else psn
    argv = [lane.world.tool('flooder'), '-n', str(n), '-b', str(burst), '-r', str(int(rate)), '-p',
            str(psn), *(['-k', str(run)] if run else [])]
    p = subprocess.run(argv, input=text or lane.flood_text, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, text=True, preexec_fn=on_cpu({FLOODER_CPU}),
                       check=False)
    if p.returncode:
        raise Failed(p.stderr.strip())
    return json.loads(p.stdout)


def drain(lane, expected):
    """Waits until all copies are there, or none has come for some time in which the forwarder had nothing
    to do; returns how many came."""
    before, since = None, time.monotonic()
    while True:
        n = lane.counted()
        if n != before or lane.busy():
            before, since = n, time.monotonic()
        if n >= expected or time.monotonic() - since > 0.4:
            return n
        time.sleep(0.02)


def settle(lane):
    """Waits until no copies come any more."""
    drain(lane, float('inf'))


def pass_through(lane, n, **how):
    """Sends 'n' packets, a multiple of the number of the lane's frames.  Returns what the flooder
    says, and how many copies came."""
    counted = lane.counted()
    said = flood(lane, n, **how)
    lane.psn = lane.psn + n // lane.n_frames & PSN_MASK
    return said, drain(lane, counted + lane.expected(said['sent'])) - counted


def sample(lane, n, **how):
    """A measurement.  CPU time of what is done before the packets, and of waiting for the last, is
    next to nothing."""
    n = -(-n // lane.n_frames) * lane.n_frames
    lane.before(n // lane.n_frames)
    drops, in_drops, out_drops = lane.own_drops(), lane.in_drops(), lane.out_drops()
    cpu = lane.cpu_ns()
    said, copies = pass_through(lane, n, **how)
    threads = {tid: ns - cpu.get(tid, 0) for tid, ns in lane.cpu_ns().items()}
    return {'packets': said['sent'], 'refused': n - said['sent'], 'copies': copies,
            'units': lane.units(said['sent'], copies), 'lost': lane.lost(said['sent'], copies),
            'node_drops': lane.own_drops() - drops, 'in_drops': lane.in_drops() - in_drops,
            'out_drops': lane.out_drops() - out_drops,
            'cpu_ns': lane.cpu_of(said, threads), 'threads_ns': sorted(threads.values(), reverse=True),
            'wall_ns': said['wall_ns'], 'flooder_ns': said['cpu_ns']}


def warm(lane):
    """Neighbours answer, caches fill."""
    n = -(-WARM // lane.n_frames) * lane.n_frames
    lane.before(n // lane.n_frames)
    _, copies = pass_through(lane, n, burst=16, run=1, rate=2000)
    if not copies:
        raise Failed('%s: no copy came\n%s' % (lane.name, lane.log()))
    lane.warmed()


def profile(lane, path, n, **how):
    """(percent, object, symbol) of the lane's process while it handles 'n' packets, by perf.

    Virtual machines have no counter of cycles to sample by: the CPU's clock does."""
    perf = subprocess.Popen(['perf', 'record', '-q', '-e', 'cpu-clock', '-F', '5000', '-o', path, '-p',
                             str(lane.process.pid)], stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    pass_through(lane, -(-n // lane.n_frames) * lane.n_frames, **how)
    perf.send_signal(signal.SIGINT)
    perf.wait()
    shares = []
    for line in subprocess.run(['perf', 'report', '-q', '--stdio', '-i', path, '--fields',
                                'overhead,dso,symbol', '--field-separator', '|'],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                               check=True).stdout.splitlines():
        overhead, _, rest = line.partition('|')
        if rest:
            dso, _, symbol = rest.partition('|')
            shares.append((float(overhead.strip(' %')), dso.strip(), symbol.split(']')[-1].strip()))
    return shares


class Figure:
    """Median of several, and their spread."""

    def __init__(self, values):
        self.values = list(values)
        self.median = statistics.median(self.values)
        self.min, self.max = min(self.values), max(self.values)

    def json(self):
        return {'median': self.median, 'min': self.min, 'max': self.max, 'values': self.values}


def per_unit_ns(s):
    """Of each copy, or answer."""
    if not s['units']:
        raise Failed('nothing came through')
    return s['cpu_ns'] / s['units']


def compare(lanes, repeats, n, **how):
    """Samples of each lane, which are warm, taken in turn: [[sample, ...] for each lane]."""
    samples = [[] for _ in lanes]
    for _ in range(repeats):
        for lane, of_lane in zip(lanes, samples):
            of_lane.append(sample(lane, n, **how))
    return samples
