# SPDX-License-Identifier: Apache-2.0
"""Cases about what daemons may do: next to nothing, and yet all that configuration asks for."""
import glob
import json
import os
import re
import subprocess

from netlab import group_add

import harness
from harness import castctl, check, check_equal, output, run, wait_until

NOTHING = {'CapInh': 0, 'CapPrm': 0, 'CapEff': 0, 'CapBnd': 0, 'CapAmb': 0, 'NoNewPrivs': 1}
NET_ADMIN, NET_RAW, IPC_LOCK, SYS_ADMIN, BPF = (1 << n for n in (12, 13, 14, 21, 39))
# Daemons of a lab enter their node's namespace for a port.
AGENT = {**NOTHING, 'CapPrm': NET_ADMIN | NET_RAW | IPC_LOCK | SYS_ADMIN | BPF}


def privileges(pid):
    """What each thread of a process may do, without repeats."""
    found = []
    for path in glob.glob('/proc/%d/task/*/status' % pid):
        text = harness.read(path).decode()
        may = {k: int(v, 16) for k, v in re.findall(r'^(Cap\w+|NoNewPrivs):\s+(\w+)$', text, re.M)}
        if may not in found:
            found.append(may)
    return found


def pid_of(lab, name):
    path = os.path.join(harness.RUNDIR, 'lab', lab.name, name + '.pid')
    return int(harness.read(path))


def given_up(lab):
    """Capabilities are none, or for agents in no effect; castctl, while it waits, has none."""
    check_equal('castd', privileges(pid_of(lab, 'castd')), [NOTHING])
    for node in ('n1', 'sa'):
        check_equal(node, privileges(pid_of(lab, node)), [AGENT])
    group_add('gp')
    waits = subprocess.Popen(['castctl', '--timeout=600', 'group', 'wait', 'gp', '--members', '1'])
    harness.running.append(waits)
    wait_until('castctl has no capabilities', lambda: privileges(waits.pid) == [NOTHING])
    check_equal('castctl', waits.poll(), None)


def port(lab, node, name):
    return next((p for p in json.loads(lab.appctl(node, 'rocecast/ports', '-j'))
                 if p['name'] == name), None)


def is_open(lab, node, name):
    p = port(lab, node, name)
    return p and p['open']


def later_ports(lab):
    """A tap and a link between forwarders, which are made and configured while daemons run; a
    device that goes and comes back."""
    in_n1, in_sa = (('castlab', 'exec', node, '--', 'ip', 'link') for node in ('n1', 'sa'))
    output(*in_n1, 'add', 'later', 'mtu', '9000', 'type', 'veth', 'peer', 'name', 'of-sa')
    output(*in_n1, 'set', 'of-sa', 'netns', '/run/netns/%s-sa' % lab.name)
    output(*in_n1, 'set', 'later', 'up')
    output(*in_sa, 'set', 'of-sa', 'up')
    castctl('--wait=agents', 'link', 'add', 'n1:later', 'sa:of-sa')

    tap = lab.name + '-late'
    make_tap = 'ip', 'tuntap', 'add', 'dev', tap, 'mode', 'tap', 'multi_queue'
    output(*make_tap)
    castctl('host', 'add', 'late', '--address', 'fd00:1::77')
    castctl('--wait=agents', 'link', 'add', 'late:' + tap, 'n1:' + tap)
    for node, name in (('n1', 'later'), ('sa', 'of-sa'), ('n1', tap)):
        check(is_open(lab, node, name), 'port %s of %s: %s', name, node, port(lab, node, name))
        path = harness.work_file('later-' + name)
        castctl('capture', 'start', node, name, path)
        castctl('capture', 'stop', node, name)
        check_equal('length of an empty capture', os.path.getsize(path), 24)

    output('ip', 'link', 'del', tap)
    wait_until('the tap is gone', lambda: not is_open(lab, 'n1', tap))
    output(*make_tap)
    wait_until('the tap is back', lambda: is_open(lab, 'n1', tap))
    output('ip', 'link', 'del', tap)
    castctl('--wait=agents', 'link', 'del', 'n1:' + tap)
    castctl('--wait=agents', 'link', 'del', 'n1:later')
    castctl('host', 'del', 'late')
    for node in ('n1', 'sa'):
        check_equal(node, privileges(pid_of(lab, node)), [AGENT])


def strange_folder(_lab):
    """A folder of another user, where root can do nothing without capabilities."""
    folder = harness.work_file('strange')
    os.mkdir(folder, 0o700)
    os.chown(folder, 12345, 12345)
    control = os.path.join(folder, 'x.ctl')
    for argv in (['castd'], ['swedge', '--node=n9']):
        p = run(*argv, '--unixctl=' + control)
        check_equal(argv[0], (p.returncode, p.stderr.strip(), os.listdir(folder)),
                    (3, '%s: control socket %s: Permission denied, without capabilities'
                     % (argv[0], control), []))


CASES = [given_up, later_ports, strange_folder]
