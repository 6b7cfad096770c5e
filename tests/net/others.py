# SPDX-License-Identifier: Apache-2.0
"""Figure 1 with forwarders in it that are not rocecast's: Open vSwitch and the kernel."""
import json
import os
import re
import shutil
import time

from netlab import Lab, Loop, exact, group_add, model
from packets import (FOREIGN_TAGS, PRIORITY_TAGS, addressed, capture, data_frames, dropped, frames, send,
                     tagged)

import harness
from foreign import buckets, copied, forwarded
from harness import castctl, castctl_json, check, check_equal, output, run, wait_until
from shortage import start_with
from trees import OTHERS, Tree, check_branches, check_confirmed

# Open vSwitch reads its ports from sockets with room for some 50 frames: no more are under way.
FEW = ('-s', '16384', '-t', '2')
# n4 is a router too: n6 sends two copies by it.
ROUTERS = Tree({**OTHERS.children, 'n6': ['n4', 'n4', 'n7']}, OTHERS.branches)


def lab():
    return Lab.shipped('others')


def routers_lab():
    return Lab.shipped('others', edit=('kind: ovs', 'kind: router'))


def ovs_and_router(lab):
    """One packet comes to each, Open vSwitch makes the two copies, the kernel forwards; nobody
    else merges less or more.  Its own counters say so too."""
    group_add('g')
    forwarded_before = forwarded('n7')
    source, = model('g', OTHERS.receivers, *FEW)['lanes']
    check_branches('g', OTHERS)
    check_equal('buckets', buckets(lab), [['5f00:0:101:e001::', '5f00:0:102:e001::']])
    # Open vSwitch counts what its datapath has done once in a while.
    wait_until('Open vSwitch has counted two copies of %d packets' % source['sent'],
               lambda: copied(lab) == [source['sent']] * 3)
    check(forwarded('n7') - forwarded_before >= source['sent'] + source['responses'],
          'the kernel has forwarded %d of %d packets and %d responses',
          forwarded('n7') - forwarded_before, source['sent'], source['responses'])
    group, = castctl_json('stats', 'n4')['n4']['groups']
    check_equal('packets copied, as castctl shows them', group['packets'], copied(lab)[0])
    castctl('group', 'del', 'g')
    wait_until('the OpenFlow group is gone', lambda: not buckets(lab))


def shape(tree):
    def case(lab):
        for mtu in ('1024', '4096'):
            group_add('g' + mtu, '--mtu', mtu)
            exact(lab, 'g' + mtu, tree, *FEW)
    return case


def foreign_source(lab):
    """Open vSwitch too copies for a group only what is from its source agent."""
    group_add('g-foreign')
    with capture(lab, 'n6', 'n4', 'g-foreign.pcap') as path:
        model('g-foreign', OTHERS.receivers, *FEW)
    before = lab.faults().get(('n4', 'outer_source'), 0)
    n5 = next(n['address'] for n in castctl_json('node', 'list') if n['name'] == 'n5')
    send(lab, 'n6', 'n4', [addressed(f, src=n5) for f in data_frames(path)[-1:] * 5])
    wait_until('n4 has dropped 5 packets',
               lambda: lab.faults().get(('n4', 'outer_source'), 0) - before == 5)


def node_addresses(lab):
    """Both answer echo requests; where a hop limit ends the kernel says so, and Open vSwitch
    counts."""
    device = lab.name + '-h0'
    addresses = {n['name']: n['address'] for n in castctl_json('node', 'list')}
    output('ip', '-6', 'route', 'add', '5f00::/16', 'via', 'fe80::1', 'dev', device)
    for node in ('n4', 'n7'):
        text = output('ping', '-6', '-c', '1', '-W', '10', '-I', lab.address('h0'), addresses[node])
        check(' ttl=62 ' in text, 'ping of %s: %s', node, text)
    p = run('ping', '-6', '-c', '1', '-W', '5', '-t', '3', '-I', lab.address('h0'),
            lab.address('r4'))
    check('From %s icmp_seq=1 Time exceeded' % addresses['n7'] in p.stdout, 'ping: %s', p.stdout)
    check_equal('packets without hops left at n4', lab.faults().get(('n4', 'hop_limit'), 0), 0)
    run('ping', '-6', '-c', '1', '-W', '1', '-t', '3', '-I', lab.address('h0'), lab.address('r1'))
    wait_until('n4 has dropped a packet without hops left',
               lambda: lab.faults().get(('n4', 'hop_limit')) == 1)


def vlans(lab):
    """Open vSwitch does not copy what comes in a VLAN."""
    group_add('gv', '--filter', 'off')
    with capture(lab, 'n6', 'n4', 'vlan-ovs.pcap') as path:
        model('gv', OTHERS.receivers, '-n', '1')
    frame = next(f for f in data_frames(path) if f[20] == 43)
    with capture(lab, 'n1', 'n4', 'copies-ovs.pcap') as copies:
        send(lab, 'n6', 'n4', tagged(frame, *FOREIGN_TAGS[:3]))
        send(lab, 'n6', 'n4', tagged(frame, '', PRIORITY_TAGS[0]))
        wait_until('n4 has counted the others', lambda: dropped(lab, 'n4', 'vlan') == 3)
        wait_until('two are copied', lambda: len(data_frames(copies)) == 2)
    check_equal('types of frames', {f[12:14] for f in frames(copies)}, {b'\x86\xdd'})


def member_leaves(lab):
    """The last receiver behind a child of Open vSwitch leaves: one bucket less; the others go on.
    Then all are in the next epoch."""
    group_add('gl', '--timeout', '17')    # that does not make repeats in exact()
    loop = Loop(lab, 'gl', OTHERS.receivers, *FEW)
    loop.wait_progress('n6')
    castctl('--wait=agents', 'member', 'drain', 'gl', 'r3')
    check(['5f00:0:101:e001::'] in buckets(lab), 'n2 still gets copies: %s', buckets(lab))
    loop.wait_progress('n6')
    lane, = loop.stop(without=('r3',))['lanes']
    check_confirmed(lab, 'gl', Tree(
        {'sa': ['n6'], 'n6': ['n4', 'n7'], 'n4': ['n1'], 'n7': ['n5'], 'n5': ['n3'],
         'n1': ['r1', 'r2'], 'n3': ['r4', 'r5']},
        {'n6': ['n1', 'n5'], 'n5': ['n3'], 'n1': ['r1', 'r2'], 'n3': ['r4', 'r5']}), lane['next'])
    castctl('group', 'reset', 'gl')
    exact(lab, 'gl', OTHERS, *FEW)


def link_leaves(lab):
    """Planned anew when a link goes and comes: by n5 to n2, and back."""
    group_add('gn')
    castctl('--wait=agents', 'link', 'del', 'n4:n2', '--force')
    by_n5 = Tree({'sa': ['n6'], 'n6': ['n4', 'n7'], 'n4': ['n1'], 'n7': ['n5'], 'n5': ['n2', 'n3'],
                  'n1': ['r1', 'r2'], 'n2': ['r3'], 'n3': ['r4', 'r5']},
                 {'n6': ['n1', 'n5'], 'n5': ['n2', 'n3'], 'n1': ['r1', 'r2'], 'n2': ['r3'],
                  'n3': ['r4', 'r5']})
    lab.ports['n4'].pop('n2')
    exact(lab, 'gn', by_n5, *FEW)
    castctl('--wait=agents', 'link', 'add', 'n4:n2', 'n2:n4')
    lab.ports['n4']['n2'] = 'n2'
    castctl('group', 'reset', 'gn')
    exact(lab, 'gn', OTHERS, *FEW)


def restart(node, *options):
    """A forwarder or its agent ends in mid-transfer; when it is back all goes on, and every byte
    arrives."""
    def case(lab):
        group = 'gr-' + node
        group_add(group, '--timeout', '14')
        loop = Loop(lab, group, OTHERS.receivers, *FEW)
        loop.wait_progress('n6')
        output('castlab', 'restart', node, *options)
        loop.wait_progress('n6')
        lane, = loop.stop()['lanes']
        check_confirmed(lab, group, OTHERS, lane['next'])
        group_add('after-' + group)
        exact(lab, 'after-' + group, OTHERS, *FEW)
    return 'restart ' + node, case


def switch_dies(lab):
    """Open vSwitch alone is killed and comes back without its flows: castfwd says so, and has it
    forward as before."""
    group_add('gd')
    pids = dict(re.findall(r'^(n4\S*) +\S+ +running +(\d+)', output('castlab', 'status'), re.M))
    check_equal('processes of n4', sorted(pids), ['n4', 'n4.ovsdb', 'n4.vswitchd'])
    os.kill(int(pids['n4.vswitchd']), 9)
    wait_until('castfwd has noticed', lambda: any(
        n['name'] == 'n4' and 'the forwarder has gone' in n['state']
        for n in castctl_json('node', 'list')))
    output('castlab', 'start', 'n4')
    exact(lab, 'gd', OTHERS, *FEW)


# Stands in for a tool: says that it was run, does as the file 'mode' says, and is the tool.
TOOL = """#!/bin/sh
folder=${0%/*} tool=${0##*/}
echo "$tool $*" >>"$folder/runs"
case $(cat "$folder/mode-$tool" 2>/dev/null) in
    fail) echo 'out of order' >&2; exit 1 ;;
    hang) cat "$folder/fifo" ;;
esac
PATH=${PATH#*:} exec "$tool" "$@"
"""


class Tools:
    """In its block n4's castfwd runs these instead of its tools."""

    def __init__(self, lab):
        self.lab = lab
        self.folder = os.path.join(harness.WORK, 'tools')
        self.fifo = os.path.join(self.folder, 'fifo')

    def __enter__(self):
        os.makedirs(self.folder)
        os.mkfifo(self.fifo)
        for tool in ('ovs-vsctl', 'ovs-ofctl'):
            path = harness.work_file('tools/' + tool, TOOL.encode())
            os.chmod(path, 0o755)
        harness.work_file('tools/runs', b'')
        p = run('castlab', 'restart', 'n4',
                env={'PATH': '%s:%s' % (self.folder, os.environ['PATH'])})
        check(p.returncode == 0, 'castlab restart n4: %s', p.stderr)
        return self

    def __exit__(self, kind, value, tb):
        self.set_mode('ovs-ofctl', '')
        self.let_go()
        output('castlab', 'restart', 'n4')
        shutil.rmtree(self.folder)

    def set_mode(self, tool, mode):
        harness.work_file('tools/mode-' + tool, mode.encode())

    def let_go(self):
        """Of what hangs there is one, if any."""
        try:
            os.close(os.open(self.fifo, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            pass

    def runs(self):
        """What castfwd has run since the last call: the tools, and what they were to do."""
        path = os.path.join(self.folder, 'runs')
        lines = harness.read(path).decode().splitlines()
        harness.work_file('tools/runs', b'')
        return [m[1] for m in (re.match(r'(ovs-vsctl.*? (?:add-br|get|add-port|del-port)'
                                        r'|ovs-ofctl \S+ \S+) ', line) for line in lines) if m]


def node_state(name):
    return next(n for n in castctl_json('node', 'list') if n['name'] == name)


def is_applied(name):
    node = node_state(name)
    return node['state'] == 'ok' and node['wanted'] == node['applied']


def tools_are_few(lab):
    """A restart takes three tools, a change of groups and routes one, a change of nothing none."""
    with Tools(lab) as tools:
        start = ['ovs-vsctl --db=unix:%s -- --may-exist add-br', 'ovs-vsctl --db=unix:%s -- get']
        socket = os.path.join(os.environ['ROCECAST_RUNDIR'], 'lab', lab.name, 'n4.ovs/db.sock')
        bundle = 'ovs-ofctl -OOpenFlow15 bundle'
        check_equal('at the start', tools.runs(), [s % socket for s in start] + [bundle])
        castctl('--wait=agents', 'node', 'set', 'n3', '--verify', 'always')
        check_equal("for another node's settings", tools.runs(), [])
        group_add('gf')
        for i, host in enumerate(OTHERS.receivers):
            castctl('member', 'add', 'gf', host, '--qpn', str(100 + i))
        castctl('source', 'set', 'gf', '--host', 'h0', '--qpn', '99')
        castctl('group', 'wait', 'gf')
        runs = tools.runs()
        check(runs and set(runs) == {bundle}, 'for a group: %s', runs)
        castctl('--wait=agents', 'link', 'del', 'n4:n2', '--force')
        runs = tools.runs()
        check_equal('for a port less, of ovs-vsctl', [r.split()[-1] for r in runs if r != bundle],
                    ['del-port', 'get'])
        check(bundle in runs, 'for routes: %s', runs)
        castctl('--wait=agents', 'link', 'add', 'n4:n2', 'n2:n4')
        castctl('--wait=agents', 'group', 'del', 'gf')


def tool_fails(lab):
    """Node.state says what a tool has said; it is tried again, and then all is as it should be."""
    with Tools(lab) as tools:
        tools.set_mode('ovs-ofctl', 'fail')
        castctl('link', 'del', 'n4:n2', '--force')
        wait_until('castfwd says what does not work', lambda: re.fullmatch(
            'generation [0-9]+ refused: ovs-ofctl: out of order', node_state('n4')['state']))
        castctl('link', 'add', 'n4:n2', 'n2:n4')
        tools.set_mode('ovs-ofctl', '')
        wait_until('castfwd has tried again', lambda: is_applied('n4'))
    group_add('gt')
    exact(lab, 'gt', OTHERS, *FEW)


def no_process(lab):
    """castfwd can start no tool: Node.state says so, it tries again once in a while, and goes on when it can."""
    injection = start_with('n7', 'posix_spawnp:EAGAIN')
    injection.fail()
    begin = time.monotonic()
    castctl('link', 'del', 'n7:n5', '--force')
    wait_until('castfwd has tried three times', lambda: injection.hits() >= 3)
    took = time.monotonic() - begin
    check(injection.hits() <= 3 + took, '%d tries in %.1f s', injection.hits(), took)
    state = node_state('n7')['state']
    check(re.fullmatch('generation [0-9]+ refused: [a-z]+: Resource temporarily unavailable', state), 'n7: %r', state)
    castctl('link', 'add', 'n7:n5', 'n5:n7')
    injection.heal()
    wait_until('castfwd goes on', lambda: is_applied('n7'))
    group_add('go-on')
    exact(lab, 'go-on', OTHERS, *FEW)


def tool_hangs(lab):
    """While a tool takes its time castfwd follows the registry and answers who asks what needs no
    tool; of the generations that come meanwhile only the last one is told."""
    with Tools(lab) as tools:
        tools.runs()
        tools.set_mode('ovs-ofctl', 'hang')
        castctl('link', 'del', 'n4:n2', '--force')
        wait_until('the tool runs', lambda: any('bundle' in r for r in tools.runs()))
        castctl('link', 'add', 'n4:n2', 'n2:n4')
        check('rocecast/ports' in lab.appctl('n4', 'list-commands'), 'n4 does not answer')
        clear = json.dumps(['rocecast', {'op': 'update', 'table': 'Node', 'row': {'control': ''},
                                         'where': [['name', '==', 'n4']]}])
        control = castctl_json('node', 'show', 'n4')['control']
        output('ovsdb-client', 'transact', os.environ['ROCECAST_DB'], clear)
        wait_until('castfwd has written its row',
                   lambda: castctl_json('node', 'show', 'n4')['control'] == control)
        check(not is_applied('n4'), 'the tool has ended')
        tools.set_mode('ovs-ofctl', '')
        tools.let_go()
        wait_until('castfwd goes on', lambda: is_applied('n4'))
    group_add('gh')
    exact(lab, 'gh', OTHERS, *FEW)


def mcast_is_refused(lab):
    """Neither has a part in mode mcast, and the group says so."""
    group_add('gm', '--mode', 'mcast')
    castctl('source', 'set', 'gm', '--host', 'h0', '--qpn', '99')
    for i, (host, node) in enumerate((('r1', 'n4, which has role ovs'),
                                      ('r4', 'n7, which has role router'))):
        castctl('member', 'add', 'gm', host, '--qpn', str(100 + i))
        wanted = 'member %s is reached by %s: mode mcast is for switches only' % (host, node)
        wait_until('group gm says: ' + wanted, lambda: wanted in json.dumps(
            castctl_json('group', 'show', 'gm')))
        castctl('member', 'remove', 'gm', host)
    check_equal('groups of n4', [g for g in json.loads(lab.appctl('n4', 'rocecast/groups', '-j'))
                                 if g['group'] == 'gm'], [])
    castctl('group', 'del', 'gm')


def device_comes_back(lab):
    """A device of the router is made anew, with another MAC address and without routes."""
    exec_in = ('castlab', 'exec', 'n7', '--')
    output(*exec_in, 'ip', '-6', 'route', 'flush', 'proto', '95')
    output(*exec_in, 'ip', 'link', 'set', 'n5', 'name', 'away')
    wait_until('castfwd misses it', lambda: any(
        n['name'] == 'n7' and 'there is no such network device' in n['state']
        for n in castctl_json('node', 'list')))
    output(*exec_in, 'ip', 'link', 'set', 'away', 'name', 'n5')
    wait_until('castfwd has it again', lambda: is_applied('n7'))
    output(*exec_in, 'ip', 'link', 'set', 'n5', 'down')
    wait_until('castfwd says that it is down', lambda: node_state('n7')['state'].endswith(
        'refused: port n5: the network device is down'))
    output(*exec_in, 'ip', 'link', 'set', 'n5', 'up')
    wait_until('castfwd has it again', lambda: is_applied('n7'))
    group_add('gb')
    exact(lab, 'gb', OTHERS, *FEW)


def rules_of_router(lab):
    """What the kernel has is what castfwd says that it has told it."""
    rules = json.loads(lab.appctl('n7', 'rocecast/rules', '-j'))
    told = sorted(re.findall(r'route replace (?:unreachable )?(\S+)(?!.* table 95 proto)', '\n'.join(rules)))
    shown = output('castlab', 'exec', 'n7', '--', 'ip', '-6', 'route', 'show', 'proto', '95')
    routes = [line.removeprefix('unreachable ').split()[0] for line in shown.splitlines()]
    check_equal('routes', sorted(r if '/' in r else r + '/128' for r in routes), told)


CASES = [ovs_and_router, foreign_source, ('tree', shape(OTHERS)), node_addresses, vlans, member_leaves,
         link_leaves, restart('n4'), restart('n7'), switch_dies, tools_are_few, tool_fails, no_process, tool_hangs,
         mcast_is_refused, device_comes_back, rules_of_router]
ROUTERS_CASES = [('tree', shape(ROUTERS))]
# What depends on the kind of ports.
PORTS_CASES = [('tree', shape(OTHERS)), restart('n4'), device_comes_back]
