#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""End-to-end cases of the units that 'make install' installs, under a systemd in the VM (booted.py;
see tests/e2e/run): who they run as and what they may do, that a group works and goes on after each
has been killed, and that they stop.

One machine has it all, as in docs/two-machines.md without the second machine:

    h0 (rxe on a tap) --- a0 (srcagent) === n1 (swedge) --- r1 (rxe on a tap)
                                             |
                                             n2 (castfwd: the kernel of a namespace forwards)
"""
import grp
import json
import os
import pwd
import re
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
from booted import Boot, prepare
from harness import (RESULTS, ROOT, RUNDIR, Lab, Suite, castbench, castctl, castctl_json, check,
                     check_equal, check_replicas, group_add, output, read, run, wait_until, work_file)

sys.path.insert(1, os.path.join(ROOT, 'tests/net'))
import privileges

COUNTS = '/run/systemd-suite.json'
AS_STARTED = '/run/as-started'

# In the order in which docs/two-machines.md starts them.
SERVICES = ('rocecast-registry', 'castd', 'castbroker', 'srcagent@a0', 'swedge@n1', 'castfwd@n2')
RESTART_SEC = 2
# Far more often than the limit of starts, if the unit had one.
KILLS = 8
WATCHDOG_SEC = 10

HOSTS = {'h0': ('fd00:1::100', 'a0'), 'r1': ('fd00:1::1', 'n1')}
TOPOLOGY = '''
nodes:
  a0: {id: 0x200, role: agent}
  n1: {id: 0x100, role: switch}
  n2: {id: 0x101, role: router}
hosts:
  h0: {address: "fd00:1::100"}
  r1: {address: "fd00:1::1"}
links:
  - {endpoints: ["a0:h0", "h0:h0"]}
  - {endpoints: ["a0:a0-n1", "n1:n1-a0"]}
  - {endpoints: ["n1:n1-n2", "n2:n2-n1"]}
  - {endpoints: ["n1:r1", "r1:r1"]}
'''
BROKER = ('--listen=pssl:6641:127.0.0.1 --operator=alice --private-key=/etc/rocecast/registry.key '
          '--certificate=/etc/rocecast/registry.pem --ca-cert=/etc/rocecast/ca.pem')
ALICE = ('--db=ssl:127.0.0.1:6641', '--private-key=/etc/rocecast/alice.key',
         '--certificate=/etc/rocecast/alice.pem', '--ca-cert=/etc/rocecast/ca.pem')


class Machine(Lab):
    """What harness asks of a lab; its logs are the journal's."""

    def __init__(self):
        super().__init__('units')
        self.receivers = ['r1']

    def log_sizes(self):
        return time.time()

    def logs(self, since, lines=60):
        return run('journalctl', '--no-pager', '--since=@%.6f' % since, '--lines=%d' % lines).stdout


def show(unit, *names):
    """What systemd knows of a unit: {name: text}."""
    text = output('systemctl', 'show', '--property=' + ','.join(names), unit)
    return dict(line.split('=', 1) for line in text.splitlines())


def show_one(unit, name):
    return show(unit, name)[name]


def version():
    return output('systemctl', 'show', '--property=Version', '--value').strip()


def main_pid(unit):
    return int(show_one(unit, 'MainPID'))


def check_all(units, name, wanted):
    """One property of several units."""
    values = output('systemctl', 'show', '--property=' + name, '--value', *units).split()
    check_equal(name, dict(zip(units, values)), dict.fromkeys(units, wanted))


def check_active(*units):
    check_all(units, 'ActiveState', 'active')


def is_up(_machine):
    wait_until('all has started', lambda: run('systemctl', 'is-system-running').stdout.strip() == 'running')
    check_equal('first process', read('/proc/1/comm'), b'systemd\n')
    print('      systemd ' + version())


def user_and_folder(_machine):
    """As docs/two-machines.md has it."""
    output('systemd-sysusers', 'rocecast.conf')
    output('systemd-tmpfiles', '--create', 'rocecast.conf')
    found = os.stat(RUNDIR)
    check_equal('owner and mode', (found.st_uid, found.st_gid, oct(found.st_mode)),
                (pwd.getpwnam('rocecast').pw_uid, grp.getgrnam('rocecast').gr_gid, '0o40775'))


def certificates():
    """As docs/security.md makes them; those of the broker are readable for its group."""
    os.makedirs('/etc/rocecast', exist_ok=True)
    os.chdir('/etc/rocecast')
    key = ('-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes')
    output('openssl', 'req', '-x509', *key, '-days', '3650', '-subj', '/CN=rocecast', '-keyout', 'ca.key',
           '-out', 'ca.pem')
    for name in ('registry', 'alice'):
        output('openssl', 'req', *key, '-subj', '/CN=' + name, '-keyout', name + '.key', '-out', name + '.req')
        output('openssl', 'x509', '-req', '-days', '365', '-in', name + '.req', '-CA', 'ca.pem', '-CAkey', 'ca.key',
               '-CAcreateserial', '-out', name + '.pem')
        os.chmod(name + '.key', 0o640)
    os.chown('registry.key', 0, grp.getgrnam('rocecast').gr_gid)
    os.chdir(ROOT)


def defaults(name, text):
    with open('/etc/default/' + name, 'w', encoding='utf-8') as f:
        f.write(text + '\n')


def registry_and_castd(_machine):
    """castd is active once the registry has answered, however long that takes.  Both have jemalloc."""
    output('systemctl', 'daemon-reload')
    output('systemctl', 'enable', '--now', '--no-block', 'castd')
    wait_until('castd runs', lambda: main_pid('castd'))
    check_equal('castd without registry', show('castd', 'Type', 'ActiveState'),
                {'Type': 'notify', 'ActiveState': 'activating'})
    output('systemctl', 'enable', '--now', 'rocecast-registry')
    output('systemctl', 'start', 'castd')
    check_active('rocecast-registry', 'castd')
    castctl('group', 'list')
    for unit in ('rocecast-registry', 'castd'):
        check(b'/libjemalloc.so.2\n' in read('/proc/%d/maps' % main_pid(unit)), '%s has another allocator', unit)


def broker(_machine):
    """It reads keys as the group, and serves who has a certificate."""
    certificates()
    defaults('rocecast', "CASTBROKER_OPTIONS='%s'" % BROKER)
    output('systemctl', 'enable', '--now', 'castbroker')
    check_active('castbroker')
    check_broker()


def check_broker():
    """Who comes by it sees what the registry has."""
    check_equal('nodes', output('castctl', *ALICE, 'node', 'list'), output('castctl', 'node', 'list'))


def devices():
    """The hosts' taps, links between nodes, and the namespace of n2, whose kernel forwards."""
    ip = ['ip', '-6']
    # What one of the hosts sends to the other, this kernel would else deliver by itself.
    output(*ip, 'rule', 'add', 'pref', '100', 'lookup', 'local')
    output(*ip, 'rule', 'del', 'pref', '0')
    for table, (host, (address, node)) in enumerate(HOSTS.items(), 1000):
        output('ip', 'tuntap', 'add', 'dev', host, 'mode', 'tap', 'multi_queue')
        output('ip', 'link', 'set', host, 'mtu', '4200', 'addrgenmode', 'none', 'up')
        output(*ip, 'addr', 'add', address + '/128', 'dev', host, 'nodad')
        mac = next(p['mac'] for p in castctl_json('node', 'show', node)['ports'] if p['name'] == host)
        output(*ip, 'neigh', 'add', 'fe80::1', 'lladdr', mac, 'dev', host, 'nud', 'permanent')
        output(*ip, 'route', 'add', 'default', 'via', 'fe80::1', 'dev', host, 'table', str(table))
        for to in ('fd00:1::/64', 'fd00:ffff::/32'):
            output(*ip, 'rule', 'add', 'pref', '10', 'from', address, 'to', to, 'iif', 'lo', 'lookup', str(table))
    for a, b in (('a0-n1', 'n1-a0'), ('n1-n2', 'n2-n1')):
        output('ip', 'link', 'add', a, 'mtu', '9000', 'type', 'veth', 'peer', 'name', b, 'mtu', '9000')
    output('ip', 'link', 'set', 'n2-n1', 'netns', 'n2')
    for device in ('a0-n1', 'n1-a0', 'n1-n2'):
        output('ip', 'link', 'set', device, 'up')
    output('ip', '-n', 'n2', 'link', 'set', 'n2-n1', 'up')


def forwarders(_machine):
    """Each does what castd wants."""
    topology = work_file('topology.yaml', TOPOLOGY.encode())
    castctl('--wait=castd', 'apply', '--file', topology)
    devices()
    defaults('rocecast-n2', 'CASTFWD_OPTIONS=--netns=n2')
    output('systemctl', 'enable', '--now', 'srcagent@a0', 'swedge@n1', 'castfwd@n2')
    check_active(*SERVICES)
    agents_agree()
    for host in HOSTS:
        output('rdma', 'link', 'add', 'rxe_' + host, 'type', 'rxe', 'netdev', host)


def agents_agree():
    """castd and all agents answer."""
    castctl('--wait=agents', 'link', 'add', 'n1:r1', 'r1:r1', '--may-exist')
    check_equal('states of nodes', {n['name']: n['state'] for n in castctl_json('node', 'list')},
                dict.fromkeys(('a0', 'n1', 'n2'), 'ok'))


def write_arrives(machine):
    """A new source writes to a new receiver of the group."""
    for host in HOSTS:
        path = '/sys/class/infiniband/rxe_%s/ports/1/state' % host
        wait_until("%s's tap has its forwarder" % host, lambda path=path: b'ACTIVE' in read(path))
    result, out = castbench(machine, 'g', '-s', '65536', '-n', '8')
    check_replicas(machine, result, out)


def group(machine):
    group_add('g', '--mtu', '4096')
    write_arrives(machine)
    check_all(SERVICES, 'NRestarts', '0')


def commands(_machine):
    """What castctl has agents do, they may do as units: counters, and files below /run/rocecast."""
    check_equal('nodes that count', sorted(castctl_json('stats')), ['a0', 'n1', 'n2'])
    path = os.path.join(RUNDIR, 'r1.pcap')
    castctl('capture', 'start', 'n1', 'r1', path)
    castctl('capture', 'stop', 'n1', 'r1')
    check_equal('magic number of the capture', read(path)[:4].hex(), 'd4c3b2a1')
    check('r1' in castctl('tree', 'show', 'g'), 'no r1 in the tree')


def users(_machine):
    """Who is in the group may use the sockets, and nobody else."""
    for group_name, status, said in (('rocecast', 0, ''), ('nogroup', 3, 'Permission denied')):
        for argv in (('node', 'list'), ('stats',)):
            p = run('setpriv', '--reuid=nobody', '--regid=nogroup', '--groups=' + group_name, 'castctl', *argv)
            check_equal('castctl %s by group %s' % (argv[0], group_name), (p.returncode, said in p.stderr),
                        (status, True))


#
# What systemd and the daemons themselves let processes do.
#

# Of the unit's processes when systemd starts them: capabilities, ambient ones, user.
NET = privileges.NET_ADMIN | privileges.NET_RAW
STARTED = {'srcagent@a0': (NET, NET, 'rocecast'), 'swedge@n1': (NET, NET, 'rocecast'),
           'castfwd@n2': (privileges.NET_ADMIN | privileges.SYS_ADMIN, 0, 'root')}
NOTHING = 0, 0, 'rocecast'
# Lines of the table in docs/security.md for what the unit's program becomes.
LINES = {'castd': ('castd', 'another user'), 'castbroker': ('castd', 'another user'),
         'srcagent@a0': ('swedge', 'another user with ambient cap_net_admin cap_net_raw'),
         'swedge@n1': ('swedge', 'another user with ambient cap_net_admin cap_net_raw'),
         'castfwd@n2': ('castfwd', 'root')}


def write_as_started(folder):
    """Leaves what a process may do that systemd starts as it does the unit's, with nothing given up yet,
    in a file for each: /proc/self/status of a unit that differs in its command only."""
    units = []
    os.mkdir(folder)
    for unit in SERVICES:
        name, at, instance = unit.partition('@')
        text = read('/usr/local/lib/systemd/system/%s%s.service' % (name, at)).decode()
        text = re.sub(r'(?m)^(Type|PIDFile|WatchdogSec|Restart|RestartSec|ExecStartPre|ExecStart)=.*\n', '', text)
        text = text.replace('[Service]\n', '[Service]\nType=oneshot\nExecStart=/bin/cat /proc/self/status\n'
                            'StandardOutput=truncate:%s/%s\n' % (folder, unit))
        with open('/run/systemd/system/as-started-%s%s.service' % (name, at), 'w', encoding='utf-8') as f:
            f.write(text)
        units.append('as-started-%s%s%s' % (name, at, instance))
    output('systemctl', 'daemon-reload')
    output('systemctl', 'start', *units)


def check_may(unit, pid, wanted, text_of_user):
    """All threads of a process may do just that, as that user and of group rocecast."""
    user, group_id = pwd.getpwnam(text_of_user).pw_uid, grp.getgrnam('rocecast').gr_gid
    check_equal(unit, privileges.status(pid), [{**wanted, 'Uid': [user] * 4}])
    groups = re.search(r'(?m)^Gid:\s+(.*)$', read('/proc/%d/status' % pid).decode()).group(1)
    check_equal('groups of ' + unit, groups.split(), [str(group_id)] * 4)


def may(unit):
    """A case: as docs/security.md says, from what the unit gives it."""
    def case(_machine):
        if not os.path.exists(AS_STARTED):
            write_as_started(AS_STARTED)
        own = privileges.fields(read(os.path.join(AS_STARTED, unit)).decode())
        bounding, ambient, user = STARTED.get(unit, NOTHING)
        effective = bounding if user == 'root' else ambient
        check_equal('as systemd starts it', {k: own[k] for k in own if k not in ('Uid', 'Seccomp_filters')},
                    {'CapInh': ambient, 'CapPrm': effective, 'CapEff': effective, 'CapBnd': bounding,
                     'CapAmb': ambient, 'NoNewPrivs': 1, 'Seccomp': 2})
        pid = main_pid(unit)
        if unit not in LINES:
            check_may(unit, pid, own, user)
            return
        process, how = LINES[unit]
        lines = {line['process'].strip('`'): line for line in privileges.table_of_docs() if line['started as'] == how}
        check_may(unit, pid, privileges.promised(lines[process], own), user)
        if process == 'swedge':
            opener = process + privileges.OPENER
            check_may(opener, privileges.opener_of(pid), privileges.promised(lines[opener], own), user)
    return case


def exposure(_machine):
    """systemd says of the running units what docs/security.md says of their files."""
    page = read(os.path.join(ROOT, 'docs/security.md')).decode()
    said = dict(re.findall(r'(?m)^\| `([\w@-]+)` \| ([\d.]+) \| ', page))
    text = run('systemd-analyze', 'security', '--no-pager', *SERVICES).stdout
    got = dict(re.findall(r'Overall exposure level for (\S+)\.service: ([\d.]+)', text))
    check_equal('units', sorted(got), sorted(SERVICES))
    for unit, level in got.items():
        check(float(level) <= 2.5, '%s: %s:\n%s', unit, level, text)
    if version().startswith('252'):
        check_equal('exposure', got, {unit: said[re.sub('@.*', '@', unit)] for unit in SERVICES})


#
# Processes that end or hang.
#

def wait_restarted(unit, before):
    """Waits until systemd has started the unit once more than 'before' says, and all is well."""
    def again():
        now = show(unit, 'ActiveState', 'MainPID', 'NRestarts')
        check(now['ActiveState'] != 'failed', '%s is given up: %r', unit, now)
        return (now['ActiveState'] == 'active' and int(now['NRestarts']) == int(before['NRestarts']) + 1
                and now['MainPID'] != before['MainPID'])
    wait_until('%s is active again' % unit, again)


def recovers(unit, find=main_pid):
    """A case: killed, the unit starts again after its pause; the group goes on."""
    def case(machine):
        before = show(unit, 'MainPID', 'NRestarts')
        killed_at = time.monotonic()
        os.kill(find(unit), signal.SIGKILL)
        wait_restarted(unit, before)
        pause = int(show_one(unit, 'ExecMainStartTimestampMonotonic')) / 1e6 - killed_at
        check(pause >= RESTART_SEC, 'started after %.2f s', pause)
        agents_agree()
        check_broker()
        write_arrives(machine)
        print('      started %.1f s after the kill' % pause)
    return case


class DropIn:
    """In its block the unit, which is started anew, has other settings of its service."""

    def __init__(self, unit, settings):
        self.unit = unit
        self.folder = '/run/systemd/system/%s.service.d' % unit
        self.settings = settings

    def __enter__(self):
        os.mkdir(self.folder)
        with open(self.folder + '/test.conf', 'w', encoding='utf-8') as f:
            f.write(self.settings)
        self.anew()

    def anew(self):
        output('systemctl', 'daemon-reload')
        output('systemctl', 'restart', self.unit)

    def __exit__(self, kind, value, tb):
        os.remove(self.folder + '/test.conf')
        os.rmdir(self.folder)
        output('systemctl', 'reset-failed', self.unit)
        self.anew()


def for_ever(machine):
    """However often: that the unit has no limit of starts counts, not how large it would be."""
    with DropIn('castd', '[Unit]\nStartLimitBurst=2\n[Service]\nRestartSec=100ms\n'):
        for _ in range(KILLS):
            before = show('castd', 'MainPID', 'NRestarts')
            os.kill(int(before['MainPID']), signal.SIGKILL)
            wait_restarted('castd', before)
        check_equal('restarts', show_one('castd', 'NRestarts'), str(KILLS))
    write_arrives(machine)


def hangs(unit):
    """A case: a process that does not run its main loop is ended and started again."""
    def case(machine):
        with DropIn(unit, '[Service]\nWatchdogSec=%d\n' % WATCHDOG_SEC):
            before, since = show(unit, 'MainPID', 'NRestarts'), machine.log_sizes()
            stopped_at = time.monotonic()
            os.kill(int(before['MainPID']), signal.SIGSTOP)
            wait_restarted(unit, before)
            took = time.monotonic() - stopped_at
            check('Watchdog timeout' in machine.logs(since), 'no watchdog in the journal')
        write_arrives(machine)
        print('      active again after %.1f s' % took)
    return case


def logs(_machine):
    """What daemons say is in the journal under their units' names."""
    for unit, words in (('castd', 'castd'), ('swedge@n1', 'swedge')):
        text = output('journalctl', '--no-pager', '--output=json', '--unit=' + unit)
        said = [line for line in map(json.loads, text.splitlines()) if line.get('SYSLOG_IDENTIFIER') == words]
        check(said, 'nothing of %s', unit)


def starts_at_boot(machine):
    """The registry has what it had, and a group works."""
    check_active(*SERVICES)
    agents_agree()
    write_arrives(machine)


# As waitid() has them.
EXITED, KILLED = 1, 2


def stops(unit):
    """A case: a unit ends when it is told to, and does not have to be killed."""
    def case(_machine):
        begin = time.monotonic()
        output('systemctl', 'stop', unit)
        took = time.monotonic() - begin
        # By exit(0); ovsdb-server raises the signal again that it has got.
        code, status = (KILLED, signal.SIGTERM) if unit == 'rocecast-registry' else (EXITED, 0)
        check_equal(unit, show(unit, 'ActiveState', 'Result', 'ExecMainCode', 'ExecMainStatus'),
                    {'ActiveState': 'inactive', 'Result': 'success', 'ExecMainCode': str(code),
                     'ExecMainStatus': '%d' % status})
        print('      in %.1f s' % took)
    return case


def first_boot(suite, machine):
    for name, case in (('systemd starts', is_up), ('user and folder', user_and_folder),
                       ('castd waits for the registry', registry_and_castd), ('castbroker starts', broker),
                       ('srcagent, swedge and castfwd start', forwarders)):
        if not suite.case(name, case, machine):
            return
    suite.case('a write arrives', group, machine)
    suite.case('what castctl asks of units', commands, machine)
    suite.case('users', users, machine)
    for unit in SERVICES:
        suite.case('what %s may do' % unit, may(unit), machine)
    suite.case('exposure', exposure, machine)
    for unit in SERVICES:
        suite.case('kill -9 of ' + unit, recovers(unit), machine)
    suite.case('kill -9 of who opens ports of swedge@n1',
               recovers('swedge@n1', lambda unit: privileges.opener_of(main_pid(unit))), machine)
    suite.case('kill -9 of castd %d times' % KILLS, for_ever, machine)
    for unit in ('castd', 'swedge@n1'):
        suite.case('%s hangs' % unit, hangs(unit), machine)
    suite.case('the journal', logs, machine)


def xdp_ports(_):
    """Such sockets are opened by one process and used by another, on this kernel, too."""
    p = run(os.path.join(ROOT, 'build/tests/net'), env={'CK_RUN_CASE': 'xdp'})
    check_equal('exit status', p.returncode, 0)
    check(re.search('Checks: [1-9]', p.stdout), '%s%s', p.stdout, p.stderr)


def second_boot(suite, machine):
    suite.case('systemd starts after the power was cut', is_up, machine)
    suite.case('units that are enabled start', starts_at_boot, machine)
    for unit in reversed(SERVICES):
        suite.case('%s stops' % unit, stops(unit), machine)
    suite.case('ports of kind xdp', xdp_ports, machine)


BOOTS = first_boot, second_boot


def inside(number):
    """In the namespace of systemd."""
    suite = Suite()
    BOOTS[number](suite, Machine())
    with open(os.path.join(RESULTS, 'journal-%d' % number), 'w', encoding='utf-8') as f:
        f.write(output('journalctl', '--no-pager', '--output=short-monotonic'))
    with open(COUNTS, 'w', encoding='utf-8') as f:
        json.dump((suite.passed, suite.failed), f)


def main():
    os.environ['PATH'] = '/usr/local/bin' + os.pathsep + os.environ['PATH']
    if sys.argv[1:2] == ['--inside']:
        inside(int(sys.argv[2]))
        return 0
    suite = Suite()
    prepare()
    # As after a boot of the machine's network, which these cases leave as it is.
    output('ip', 'netns', 'add', 'n2')
    for number in range(len(BOOTS)):
        boot = Boot(number)
        status = boot.run(sys.executable, os.path.abspath(__file__), '--inside', str(number))
        if status:
            print('FAIL  the cases of boot %d ended with status %d' % (number, status), flush=True)
            suite.failed += 1
        else:
            passed, failed = json.loads(read(COUNTS))
            suite.passed += passed
            suite.failed += failed
        boot.power_off()
    return suite.finish()


if __name__ == '__main__':
    sys.exit(main())
