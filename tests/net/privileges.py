# SPDX-License-Identifier: Apache-2.0
"""Cases about what daemons may do: next to nothing, and yet all that configuration asks for."""
import glob
import json
import os
import re
import subprocess

from netlab import ROOT, group_add

import harness
from harness import castctl, check, check_equal, output, run, wait_until

NOTHING = {'CapInh': 0, 'CapPrm': 0, 'CapEff': 0, 'CapBnd': 0, 'CapAmb': 0, 'NoNewPrivs': 1}
NET_ADMIN, NET_RAW, IPC_LOCK, SYS_ADMIN, BPF = (1 << n for n in (12, 13, 14, 21, 39))


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
    """Capabilities are none; castctl, while it waits, has none."""
    for name in ('castd', 'n1', 'sa'):
        check_equal(name, privileges(pid_of(lab, name)), [NOTHING])
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
        check_equal(node, privileges(pid_of(lab, node)), [NOTHING])


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


OTHER_USER = 12345
AS_STARTED = 'as it was started'
AMBIENT = '+net_admin,+net_raw'
# What ps shows of the process that opens an agent's ports.
OPENER = ': opens ports'


def table_of_docs():
    """The lines of docs/security.md, "What each process may do": {column: text}."""
    page = harness.read(os.path.join(ROOT, 'docs/security.md')).decode()
    section = page.split('## What each process may do')[1].split('\n##')[0]
    head, _, *lines = ([cell.strip() for cell in line.strip('|').split('|')]
                       for line in section.splitlines() if line.startswith('|'))
    return [dict(zip(head, line)) for line in lines]


def fields(text):
    """What /proc/PID/status says that a thread may do."""
    found = dict(re.findall(r'(?m)^(\w+):\s+(.*)$', text))
    may = {k: int(v, 16 if k.startswith('Cap') else 10) for k, v in found.items()
           if re.fullmatch('Cap.*|NoNewPrivs|Seccomp.*', k)}
    may['Uid'] = [int(uid) for uid in found['Uid'].split()]
    return may


def status(pid):
    """What each thread of a process may do, without repeats."""
    found = []
    for path in glob.glob('/proc/%d/task/*/status' % pid):
        may = fields(harness.read(path).decode())
        if may not in found:
            found.append(may)
    return found


def promised(line, own):
    """What a line of the table says, of processes that are started by one like 'own'."""
    bits = {'cap_net_admin': NET_ADMIN, 'cap_net_raw': NET_RAW, 'cap_ipc_lock': IPC_LOCK,
            'cap_sys_admin': SYS_ADMIN, 'cap_bpf': BPF}
    may = {'CapInh': own['CapInh'] if AS_STARTED in line['CapPrm'] else 0, 'CapAmb': 0}
    for name in ('CapPrm', 'CapEff', 'CapBnd'):
        text = line[name]
        may[name] = own[name] if text == AS_STARTED else 0 if text == '-' else sum(bits[c] for c in text.split())
    may['NoNewPrivs'] = int(line['NoNewPrivs'])
    # A container may have a filter of its own.
    may['Seccomp_filters'] = own['Seccomp_filters'] + int(line['Seccomp_filters'])
    may['Seccomp'] = max(own['Seccomp'], int(line['Seccomp']))
    may['Uid'] = [OTHER_USER if 'another user' in line['started as'] else 0] * 4
    return may


def start(lab, line):
    """Starts what a line is about; it has no registry, but castctl has."""
    program, how = line['process'].strip('`').removesuffix(OPENER), line['started as']
    if program == 'castctl':
        return subprocess.Popen(['castctl', '--timeout=600', 'group', 'wait', 'gd', '--members', '1'])
    folder = harness.work_file('of-' + re.sub(r'\W+', '-', line['process'] + how))
    os.mkdir(folder)
    argv = [program, '--db=unix:%s/no.sock' % folder, '--unixctl=%s/x.ctl' % folder, '-voff']
    argv += ['--node=n9'] if program != 'castd' else []
    argv += ['--netns=%s-sa' % lab.name] if '--netns' in how else []
    argv += ['--no-seccomp'] if '--no-seccomp' in how else []
    if 'another user' in how:
        os.chown(folder, OTHER_USER, OTHER_USER)
        for above in (os.path.dirname(folder), os.path.dirname(os.path.dirname(folder))):
            os.chmod(above, os.stat(above).st_mode | 0o011)
        with_caps = ['--inh-caps', AMBIENT, '--ambient-caps', AMBIENT] if 'ambient' in how else []
        argv = ['setpriv', '--reuid', str(OTHER_USER), '--regid', str(OTHER_USER), '--clear-groups', *with_caps, *argv]
    return subprocess.Popen(argv)


def cmdline(pid):
    return harness.read('/proc/%d/cmdline' % pid).decode().strip('\0').replace('\0', ' ')


def opener_of(pid):
    """The process that opens an agent's ports, -1 if there is none: its child, unless it has detached."""
    children = harness.read('/proc/%d/task/%d/children' % (pid, pid)).decode().split()
    return next((int(c) for c in children if cmdline(int(c)).endswith(OPENER)), -1)


def as_documented(lab):
    """Each line of the table of docs/security.md is a process that is as the line says."""
    own, = status(os.getpid())
    lines = table_of_docs()
    check_equal('processes of the table', {line['process'] for line in lines},
                {'`%s`' % p for p in ('castd', 'swedge', 'swedge: opens ports', 'srcagent', 'srcagent: opens ports',
                                      'castfwd', 'castctl')})
    group_add('gd')
    for line in lines:
        process = start(lab, line)
        harness.running.append(process)
        wanted, seen = promised(line, own), []

        def settled():
            seen[:] = status(process.pid if OPENER not in line['process'] else opener_of(process.pid))
            return seen == [wanted] or process.poll() is not None

        try:
            wait_until('it is so', settled)
        except harness.Failure:
            pass
        check_equal('%s, %s' % (line['process'], line['started as']), seen, [wanted])
        process.terminate()
        process.wait(harness.PATIENCE)


CASES = [given_up, as_documented, later_ports, strange_folder]
