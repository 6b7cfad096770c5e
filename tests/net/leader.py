# SPDX-License-Identifier: Apache-2.0
"""The server that leads the registry is killed while a group is written to."""
import json
import os
import threading
import time

from netlab import Loop, group_add

from harness import PSN_MASK, castctl, castctl_json, check, check_equal, output, run, wait_until

SECONDS = 6     # that are looked at before and after.
EVERY = 0.5


class Meter(threading.Thread):
    """What an edge confirms, in packets, in each half second."""

    def __init__(self, lab, node, group):
        super().__init__(daemon=True)
        self.look = lambda: lab.group(node, group)['confirmed']
        self.found, self.over = [], threading.Event()
        self.start()

    def run(self):
        last, since = self.look(), time.monotonic()
        while not self.over.wait(EVERY):
            psn, now = self.look(), time.monotonic()
            self.found.append((now, (psn - last & PSN_MASK) / (now - since)))
            last, since = psn, now

    def rates(self, begin, end):
        return [rate for when, rate in self.found if begin + EVERY <= when <= end]


def status():
    """All that the servers say, also if one of them does not answer."""
    return json.loads(run('castctl', '-j', 'registry', 'status').stdout)


def leader_killed(lab):
    """The group does not notice that the leader is gone, and another one gets a member without it."""
    group_add('g')
    group_add('other')
    loop = Loop(lab, 'g', ['r1', 'r2'], '-s', '65536', '-t', '4')
    loop.wait_progress('n1')
    meter = Meter(lab, 'n1', 'g')
    begin = time.monotonic()
    time.sleep(SECONDS)
    leader = wait_until('the registry has a leader', lambda: status()['leader'])
    name = os.path.basename(leader)[:-len('.sock')].replace('db', 'ovsdb')
    killed = time.monotonic()
    output('castlab', 'stop', name, '--kill', '-l', lab.name)
    castctl('member', 'add', 'other', 'r1', '--qpn', '17', '--rkey', '7', '--va', '0x1000', '--len', '4096')
    added = time.monotonic()
    check(status()['leader'] not in (None, leader), 'who leads: %r', status())
    time.sleep(max(0, killed + SECONDS - time.monotonic()))
    end = time.monotonic()
    meter.over.set()
    meter.join()
    before, after = meter.rates(begin, killed), meter.rates(killed, end)
    for what, rates in ('before', before), ('without the leader', after):
        print('      packets a second, %s: %.0f (%.0f to %.0f)'
              % (what, sorted(rates)[len(rates) // 2], min(rates), max(rates)))
    print('      a member was added within %.2f s' % (added - killed), flush=True)
    check(min(after) > 0, 'the group stood still: %r', after)
    check_equal('who was added', [m['host'] for m in castctl_json('member', 'list', 'other')], ['r1'])
    loop.stop()
    output('castlab', 'start', name, '-l', lab.name)
    wait_until('all servers are equally far', lambda: len({s['index'] for s in status()['servers']}) == 1)
    check_equal('servers', sorted(s['role'] for s in status()['servers']), ['follower', 'follower', 'leader'])


CASES = [leader_killed]
