# SPDX-License-Identifier: Apache-2.0
"""A group that lives: castbench writes on and on, and has its members come and go."""
import os
import statistics

from harness import (BLOCK, MTU, Castbench, Failure, castctl_json, check, check_equal, group_add, read,
                     wait_until)

SLOTS = 16      # blocks of a region, so that all of it is written again in a short time.

COMPLEMENT = bytes(255 - i for i in range(256))

# What the registry says when an event has done what it is for.
STATES = {'join': ['active'], 'start': ['active'], 'kill': ['lost', 'replaced'], 'drain': ['left'],
          'leave': ['left'], 'remove': ['removed']}


class Live:
    """castbench with events, in a group of its own."""

    def __init__(self, lab, group, operation, events, seconds, *options, block=BLOCK, liveness=4000,
                 qp_timeout=17):
        self.lab, self.group, self.events, self.block = lab, group, events, block
        # Silence is found out soon, but on a busy machine nobody is to be lost who is only slow.
        group_add(group, '--mtu', str(MTU), '--psn', '0xffff00', '--timeout', str(qp_timeout),
                  '--liveness', str(liveness), '--policy', 'prune')
        self.bench = Castbench(lab, group, '--event', ','.join(events), '-D', str(seconds),
                               '-s', str(block), '-t', '4', '--region', str(SLOTS * block), *options,
                               operation=operation, timeout=120)

    def members(self):
        """{host: state}."""
        if self.bench.process.poll() is not None:
            raise Failure('castbench has ended: %r' % (self.bench.wait(),))
        return {m['host']: m['state'] for m in castctl_json('member', 'list', self.group)}

    def wait_member(self, host):
        wait_until('%s has registered' % host, lambda: self.members().get(host))

    def done(self):
        """The run has ended well, and is what its events make of it."""
        result, out = self.bench.result()
        show(result)
        check_equal('events', [(e['event'], e['host']) for e in result['events']],
                    [tuple(e.split(':')[1:]) for e in self.events])
        for e in result['events']:
            check(e['state'] in STATES[e['event']], 'of %s %s the registry says %s', e['event'],
                  e['host'], e['state'])
        check_lives(result)
        sent = read(os.path.join(out, 'source.bin'))
        members = {m['host'] for m in castctl_json('member', 'list', self.group)
                   if m['state'] != 'left'}   # without their processes they get lost soon.
        check_equal('members', members, {r['host'] for r in result['replicas'] if r['end'] is None})
        for r in result['replicas']:
            if r['end'] is None:
                check_slots(r, self.block, sent, read(os.path.join(out, r['host'] + '.bin')))
        return result


def check_slots(replica, block, sent, region):
    """A member's memory is the source's, but for slots whose last message came before its first: these
    are as they were.  castbench writes message k to slot k modulo SLOTS; a packet begins with the
    message's number and checksums, and a region is at first the complement of what is to come."""
    n = replica['last_message'] + 1
    for k in range(max(0, n - SLOTS), n):
        begin = k % SLOTS * block
        if k >= replica['first_message']:
            check(region[begin:begin + block] == sent[begin:begin + block],
                  '%s: message %d differs', replica['host'], k)
            continue
        for at in range(begin, begin + block, MTU):
            check(region[at:at + 8] == b'\xff' * 8
                  and region[at + 16:at + MTU] == sent[at + 16:at + MTU].translate(COMPLEMENT),
                  '%s has something of message %d, before its first', replica['host'], k)


def check_lives(result):
    """Each receiver has all messages from its first to its last."""
    events, last = result['events'], {}
    for r in result['replicas']:
        what = r['host'] if r['begin'] is None else '%(host)s from %(at_s)s s on' % events[r['begin']]
        check_equal(what + ': bytes', r['bytes_ok'], result['region_len'])
        if r['begin'] is None:
            check_equal(what + ': first message', r['first_message'], 0)
        else:
            check(r['first_message'] > last.get(r['host'], 0), '%s: first message %s', what,
                  r['first_message'])
        if r['end'] is None:
            check_equal(what + ': last message', r['last_message'], result['count'] - 1)
        last[r['host']] = r['last_message']


def show(result):
    """Prints what became of the events, and goodput in their seconds and in those before."""
    speeds = result['goodput_mb_per_s']
    for i, e in enumerate(result['events']):
        second = e['made_ms'] // 1000
        before = speeds[max(0, second - 5):second] or [0]
        took = ', '.join('%s after %.2f s' % (what, (e[ms] - e['made_ms']) / 1000) for what, ms in
                         (('registered', 'registered_ms'), (e['state'], 'told_ms')) if e[ms])
        first = [r['first_message'] for r in result['replicas'] if r['begin'] == i]
        print('      %-6s %s at %5.2f s: %s%s; %.2f MB/s, before %.2f (%.2f to %.2f)'
              % (e['event'], e['host'], e['made_ms'] / 1000, took,
                 ', from message %s on' % first[0] if first else '',
                 speeds[second] if second < len(speeds) else 0, statistics.median(before),
                 min(before), max(before)))
