# SPDX-License-Identifier: Apache-2.0
"""castscale: what it measures of a few groups, by counts and not by clocks; its model agents; how it ends."""
import json
import os
import signal
import subprocess
import time
import xml.etree.ElementTree

import crowd
import refusals
from world import BIN, PATIENCE, check, check_equal, wait_until

CASTSCALE = os.path.join(BIN, 'castscale')
PLOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../bench/castscale/plot')
SMALL = ('--nodes', '8', '--members', '2', '--castctl', '1', '--topology', '1')


def measures(w):
    """A whole measurement of few groups: every sample is there, in JSON, in CSV, and in the picture."""
    files = [os.path.join(w.dir, name) for name in ('run.json', 'run.csv', 'run.svg')]
    subprocess.run([CASTSCALE, 'run', *SMALL, '--groups', '3,12', '--changes', '4', '--batch', '5',
                    '--json', files[0], '--csv', files[1]], env=dict(w.env, TMPDIR=w.dir), check=True,
                   stdout=subprocess.DEVNULL, timeout=PATIENCE)
    with open(files[0], encoding='utf-8') as f:
        document = json.load(f)
    check_equal('fabric', document['fabric'], {'nodes': 8, 'cores': 0, 'spines': 2, 'leaves': 4, 'agents': 2,
                                               'receivers': 4, 'members': 2})
    check_equal('groups', [s['groups'] for s in document['steps']], [3, 12])
    for step in document['steps']:
        check_equal('samples', {k: len(v['all']) for k, v in step['ms'].items()},
                    {'add_answered': 4, 'add_active': 4, 'add_applied': 4, 'remove': 4, 'castctl_add': 1, 'topology': 1})
        check_equal('changes', step['changes'], 8)
        for name, spread in step['ms'].items():
            ordered = sorted(spread['all'])
            check(0 < ordered[0], '%s: %r', name, spread)
            check_equal('greatest ' + name, (spread['p99'], spread['max']), (ordered[-1], ordered[-1]))
            check_equal('median of ' + name, spread['p50'], ordered[(len(ordered) + 1) // 2 - 1])
        for added, active in zip(step['ms']['add_answered']['all'], step['ms']['add_active']['all']):
            check(added <= active, 'active %r before the answer %r', active, added)
        # Each change concerns its own group, in a few computations.
        check(8 <= step['groups_computed'] <= 8 * 20, '%d groups computed', step['groups_computed'])
        for name in ('castd', 'registry', 'agents'):
            use = step['processes'][name]
            check(0 < use['rss_kib'] <= use['peak_kib'], '%s: %r', name, use)
    with open(files[1], encoding='utf-8') as f:
        lines = f.read().splitlines()
    check_equal('CSV', (lines[0], sum(line.startswith('12,add_active_ms,') for line in lines)),
                ('groups,what,value', 4))
    subprocess.run([PLOT, '-o', files[2], 'x=' + files[0]], check=True)
    names = [e.text for e in xml.etree.ElementTree.parse(files[2]).iter() if e.get('class') == 'name']
    check_equal('curves', names, ['x, 3 groups', 'x, 12 groups'])
    check_equal('left over', [name for name in os.listdir(w.dir) if name.startswith('castscale.')], [])


def model_agents(w):
    """All nodes of a registry have an agent that holds the node's lock, until SIGTERM."""
    w.db.transact(*crowd.topology())
    crowd.add(w, range(3))
    agents = subprocess.Popen([CASTSCALE, 'agents'], env=w.env, stdout=subprocess.PIPE, text=True)
    try:
        check_equal('it says', agents.stdout.readline(), '4 agents have applied what they are told\n')
        wait_until('groups are ready', lambda: crowd.n_ready(w) == 3 and refusals.is_applied(w))
        second = subprocess.Popen([CASTSCALE, 'agents'], env=w.env, stdout=subprocess.PIPE, text=True)
        time.sleep(0.2)
        second.send_signal(signal.SIGTERM)
        check_equal('the second ones', (second.communicate()[0], second.returncode), ('', 0))
        check(all(t['started'] == t['open'] for t in w.db.rows('Tree_Node')), 'started')
        w.castctl('--wait=agents member leave x1 r1')
        check_equal('left', w.member('r1', 'x1')['state'], 'left')
        w.castctl('--wait=agents member add x1 r1 --qpn 19 --rkey 7 --va 0x1000 --len 4096')
        wait_until('it is active again', lambda: w.member('r1', 'x1')['state'] == 'active')
    finally:
        agents.send_signal(signal.SIGTERM)
        agents.communicate(timeout=PATIENCE)
    check_equal('status', agents.returncode, 0)


def child_of(pid, name):
    """The process id of a program of that name that this one has started, or None."""
    for child in subprocess.run(['pgrep', '-P', str(pid)], capture_output=True, text=True, check=False).stdout.split():
        with open('/proc/%s/comm' % child, encoding='utf-8') as f:
            if f.read() == name + '\n':
                return int(child)
    return None


def ends_early(w):
    """It says what has ended that it needs, and leaves nothing behind; so when it is interrupted."""
    for what, status, said in (('castd', 2, 'castscale: castd has ended (signal 9)'), ('itself', 2, 'castscale: interrupted')):
        p = subprocess.Popen([CASTSCALE, 'run', *SMALL, '--groups', '4', '--changes', '100000'],
                             env=dict(w.env, TMPDIR=w.dir), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        p.stdout.readline()  # the fabric: all processes run.
        with open('/proc/%d/maps' % child_of(p.pid, 'ovsdb-server'), encoding='utf-8') as f:
            check('/libjemalloc.so.2\n' in f.read(), 'the server has another allocator')
        os.kill(child_of(p.pid, 'castd'), signal.SIGKILL) if what == 'castd' else p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=PATIENCE)
        check_equal('end of ' + what, (p.returncode, err[:len(said)]), (status, said))
        check_equal('left over', [name for name in os.listdir(w.dir) if name.startswith('castscale.')], [])


CASES = (measures, model_agents, ends_early)
