# SPDX-License-Identifier: Apache-2.0
"""Flows change their paths while data flow: paths fail, operators want others, queues are full.

The fabric is clos.yaml; gpu1 writes to gpu3 without a pause.  What is asserted does not depend on how long
anything takes; how long the longest gap between two completions was is printed.
"""
import itertools
import json
import os
import signal
import subprocess
import threading
import time

from netlab import Lab, check_model, model_argv
from probing import CALM, QUICK, afresh, dies, leads_over, paths, silent

import harness
from harness import castctl, check, check_equal, run, wait_until

IS_LONG = os.environ.get('LONG') == '1'
MOVES_SECONDS = 60 if IS_LONG else 20
MOVES_MAX = 4
FIGHT_SECONDS = 60 if IS_LONG else 8
FIGHT_EVERY = 0.3
ATTEMPTS = 6

SIZE, MTU = 16384, 1024
# Lost in flight, it would be sent again after 4 s.
TIMEOUT = ('-u', '20')
# So long that it never ends: nothing is sent again but for a NAK.
PATIENT = ('-u', '24')
# In a queue of 200 the windows of two queue pairs do not fit in full, and their marks begin much sooner.
CONGESTED = ('rate=20M', 'queue=300', 'kmin=8', 'kmax=32')
COUNTERS = ('moved_failed', 'moved_planned', 'moved_congested', 'naks', 'repeated')


def lab():
    return Lab.shipped('clos', 'PROBE=200ms')


#
# What there is.
#

def paths_to(lab, node, host):
    return {p['name']: p for p in paths(lab, node) if p['destination'] == lab.address(host)}


class Counted:
    """What dpu1 counts of paths to gpu3, and dpu3 of paths to gpu1, from now on."""

    ENDS = ('dpu1', 'gpu3'), ('dpu3', 'gpu1')

    def __init__(self, lab):
        self.lab = lab
        self.before = self.now()

    def now(self):
        return {node: {c: sum(p[c] for p in paths_to(self.lab, node, host).values()) for c in COUNTERS}
                for node, host in self.ENDS}

    def grown(self):
        return {node: {c: n - self.before[node][c] for c, n in of.items()} for node, of in self.now().items()}


def used(lab, node='dpu1', host='gpu3', n=100):
    """Names of the paths that the next packets take."""
    def packets():
        return {name: p['packets'] for name, p in paths_to(lab, node, host).items()}
    before = packets()
    wait_until('%d packets more' % n, lambda: sum(packets().values()) - sum(before.values()) >= n)
    return [name for name, count in packets().items() if count - before[name] > n / 20]


def links_of(name, host='gpu1'):
    """The links of a path of gpu1 or gpu3, from its host's agent to the last switch."""
    nodes = ['dpu1' if host == 'gpu1' else 'dpu3', *name.split(',')]
    return list(zip(nodes, nodes[1:]))


def sent_again(lane):
    """Packets that a queue pair of castmodel has sent more than once, as often."""
    return lane['sent'] - lane['completed'] * SIZE // MTU


seeds = itertools.count(1)      # and start PSNs.


class Writes:
    """castmodel from gpu1 to gpu3, with so many queue pairs, until stop()."""

    def __init__(self, *options, n=1):
        self.receivers = ['gpu3'] * n
        self.process = subprocess.Popen(
            model_argv(None, self.receivers, ['-n', '0', '-s', str(SIZE), '-m', str(MTU), '-t', '4', '--timeout', '120',
                                              '--seed', str(next(seeds)), *options], 'gpu1'),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        harness.running.append(self)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()

    def stop(self):
        """Lets it complete what is outstanding: all bytes are right.  Returns its report."""
        self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=harness.PATIENCE)
        check(self.process.returncode == 0, 'castmodel: exit status %d: %s', self.process.returncode, err + out)
        result = json.loads(out)
        check_equal('receivers', sorted(result['receivers']), ['gpu3', 'gpu3:2'][:len(self.receivers)])
        check_model(result, result['receivers'])
        print('      longest gap %s ms, sent again %s of %s' % tuple(
            '/'.join(str(f(lane)) for lane in result['lanes'])
            for f in (lambda l: l['longest_gap_us'] // 1000, sent_again,
                      lambda l: l['sent'])))
        return result


def policy(name):
    castctl('--wait=agents', 'path', 'policy', 'gpu1', name)
    castctl('--wait=agents', 'path', 'policy', 'gpu3', name)


#
# Paths that fail.
#

def spine_dies(data, _answers):
    return dies(data.split(',')[1])


def link_silent(data, _answers):
    return silent(*links_of(data)[2], '--both')


class lossy(silent):
    """A link loses a fifth of what is sent, both ways."""

    def break_it(self, _lab):
        castctl('--wait=agents', 'link', 'impair', *self.words, 'loss=20%')


def link_lossy(data, _answers):
    return lossy(*links_of(data)[1], '--both')


def data_direction(data, _answers):
    return silent(*links_of(data)[2])


def answer_direction(_data, answers):
    return silent(*links_of(answers, 'gpu3')[1])


def fails(name, what):
    """Something on the path in use breaks: its flow goes on elsewhere, and all bytes are right."""
    def case(lab):
        policy(name)
        afresh(QUICK)
        for _ in range(ATTEMPTS):
            if fails_once(lab, name, what):
                return
        check(False, 'each time everything was confirmed when the flow moved')
    return '%s: %s' % (name, what.__name__), case


def fails_once(lab, name, what):
    """False: the host had sent nothing that was lost, as when it waited for answers, and had them from the path that
    these had moved to."""
    # What a lossy path has lost may wait for the timer, if the host has gone back for it before (R23).
    writes = Writes(*('-u', '17') if what is link_lossy else TIMEOUT, n=2 if name == 'spread' else 1)
    data, answers = used(lab)[0], used(lab, 'dpu3', 'gpu1', 10)[0]
    counted, fault = Counted(lab), what(data, answers)
    ends = 'dpu3' if what is answer_direction else 'dpu1'
    fault.break_it(lab)
    try:
        wait_until('flows of %s have left; %s' % (ends, counted.grown()),
                   lambda: counted.grown()[ends]['moved_failed'] > 0)
        if what is not link_lossy:     # one that loses some may be good again for a while.
            gone = links_of(data)[2] if ends == 'dpu1' else links_of(answers, 'gpu3')[1]
            # Each end finds out by itself.
            wait_until('nothing is on %s-%s' % gone, lambda: not any(
                leads_over(p, *gone) for i, least in ((0, 1000), (1, 10))
                for p in used(lab, *counted.ENDS[i], least)))
    finally:
        fault.mend(lab)
    result, grown = writes.stop(), counted.grown()
    print('      %s' % grown)
    if what is answer_direction:
        check(grown['dpu3']['repeated'] > 0, 'no answer was repeated: %s', grown)
    if what not in (spine_dies, link_silent, data_direction) or grown['dpu1']['naks']:
        return True
    check_equal('packets sent again without a NAK', sum(map(sent_again, result['lanes'])), 0)
    return False


#
# Paths that are left because somebody wants it.
#

def planned(lab):
    """Excluded, pinned, and back: flows go where they are to, and nothing is sent again."""
    policy('failover')
    afresh(CALM)
    for _ in range(ATTEMPTS):
        if planned_once(lab):
            return
    check(False, 'each time what was in flight was not confirmed in time')


def planned_once(lab):
    """False: the machine stood still for so long that the flow did not wait any more, or that its pause was
    taken for a loss."""
    writes, first = Writes(*PATIENT), next(iter(paths_to(lab, 'dpu1', 'gpu3')))
    wait_until('the first path is in use', lambda: used(lab) == [first])
    counted = Counted(lab)
    spine = first.split(',')[1]
    pinned = next(name for name in reversed(paths_to(lab, 'dpu1', 'gpu3')) if spine not in name.split(','))
    for n, (words, wanted) in enumerate((
            (('exclude', spine), lambda name: spine not in name.split(',')),
            (('pin', 'gpu1', 'gpu3', pinned), lambda name: name == pinned),
            (('unpin', 'gpu1', 'gpu3'), lambda name: name not in (pinned, first)),
            (('include', spine), lambda name: name == first)), 1):
        castctl('--wait=agents', 'path', *words)
        wait_until('%d moves; %s' % (n, counted.grown()), lambda n=n: sum(
            counted.grown()['dpu1'][c] for c in ('moved_planned', 'moved_failed')) >= n)
        now = used(lab)
        check([wanted(name) for name in now] == [True], 'after %s on %s', words, now)
    result, grown = writes.stop(), counted.grown()
    print('      %s' % grown)
    if grown['dpu1']['moved_failed'] or grown['dpu1']['naks']:
        return False
    check_equal('planned moves', grown['dpu1']['moved_planned'], 4)
    lane, receiver = result['lanes'][0], result['receivers']['gpu3']
    check_equal('packets that the host has sent', lane['sent'], lane['completed'] * SIZE // MTU)
    check_equal('sent again, repeated and too early',
                (lane['retries'], receiver['duplicates'], receiver['ahead'], receiver['naks']), (0, 0, 0, 0))
    return True


#
# Congestion.
#

def goodput(lab, n=20000):
    """Packets a second that leave dpu1 for gpu3."""
    def sent():
        return time.monotonic(), sum(p['packets'] for p in paths_to(lab, 'dpu1', 'gpu3').values())
    begun, before = sent()
    ended, after = wait_until('%d packets more' % n, lambda: (lambda s: s if s[1] >= before + n else None)(sent()))
    return (after - before) / (ended - begun)


class impaired:
    """In its block the link is as these words say."""

    def __init__(self, link, *words):
        self.link, self.words = link, words

    def __enter__(self):
        castctl('--wait=agents', 'link', 'impair', *self.link, *self.words)

    def __exit__(self, kind, value, tb):
        castctl('--wait=agents', 'link', 'impair', *self.link, 'none')


def congested(lab):
    """A link on the way of one of two flows is slow and marks: the flow leaves it, and does not come and go."""
    policy('spread')
    afresh(CALM)
    writes = Writes(*PATIENT, '--ecn', '--cnp', '10000', n=2)
    hot = used(lab)[0]
    free = goodput(lab)
    with impaired(links_of(hot)[1], *CONGESTED):
        counted = Counted(lab)
        begun = time.monotonic()
        wait_until('a flow has left; %s' % counted.grown(), lambda: counted.grown()['dpu1']['moved_congested'])
        wait_until('nothing is on it', lambda: not [p for p in used(lab, n=1000) if leads_over(p, *links_of(hot)[1])])
        after = goodput(lab)
        wait_until('the time is over', lambda: time.monotonic() > begun + MOVES_SECONDS)
        grown = counted.grown()
        result = writes.stop()
    moves = grown['dpu1']['moved_congested']
    print('      goodput on other paths %.2f of that before; %d moves in %d s; CNPs %s; %s' % (
        after / free, moves, MOVES_SECONDS, [lane['cnps'] for lane in result['lanes']], grown))
    check(1 <= moves <= MOVES_MAX, 'moves: %s', grown)


#
# Controllers that fight.
#

class Operator(threading.Thread):
    """Excludes and includes paths all the time."""

    def __init__(self, *what):
        super().__init__(daemon=True)
        self.what, self.ended, self.said = what, threading.Event(), []

    def run(self):
        n = 0
        while not self.ended.wait(FIGHT_EVERY):
            words = self.what[n // 2 % len(self.what)]
            p = run('castctl', 'path', ('exclude', 'include')[n % 2], *words)
            if p.returncode:
                self.said.append(p.stderr)
            n += 1

    def stop(self):
        self.ended.set()
        self.join()
        for words in self.what:
            castctl('--wait=agents', 'path', 'include', *words)
        check_equal('what castctl said', self.said, [])


def fight(lab):
    """An operator, probes that see a lossy link, and congestion move flows at the same time."""
    policy('spread')
    afresh(QUICK)
    writes, counted = Writes('-u', '16', '--ecn', '--cnp', '10000', n=2), Counted(lab)
    names = used(lab)
    operator = Operator(['spine6'], ['leaf2', 'spine5'], ['gpu1', 'gpu3', names[0]])
    with impaired(('leaf1', 'spine6'), 'loss=30%'), impaired(('leaf1', 'spine5'), *CONGESTED):
        begun = time.monotonic()
        operator.start()
        wait_until('the time is over', lambda: time.monotonic() > begun + FIGHT_SECONDS)
        operator.stop()
    used(lab)
    writes.stop()
    grown = counted.grown()
    print('      in %d s: %s' % (FIGHT_SECONDS, grown))
    check(sum(grown['dpu1'][c] for c in COUNTERS[:3]) > 0, 'no moves: %s', grown)
    policy('failover')


BREAKS = [spine_dies, link_silent, link_lossy, data_direction, answer_direction]
FAILURES = [fails('failover', what) for what in BREAKS] + [
    fails('spread', what) for what in BREAKS if IS_LONG or what not in (link_lossy, answer_direction)]
# The first one counts moves of a single flow: others stay for a while when their queue pairs are gone.
CASES = [planned, *FAILURES, congested, fight]
