# SPDX-License-Identifier: Apache-2.0
"""Figure 1 with forwarders in it that are not rocecast's: Open vSwitch and the kernel."""
import json
import os
import re

from netlab import Lab, Loop, exact, group_add, model

from harness import castctl, castctl_json, check, check_equal, output, run, wait_until
from trees import OTHERS, Tree, check_branches, check_confirmed

# Open vSwitch reads its ports from sockets with room for some 50 frames: no more are under way.
FEW = ('-s', '16384', '-t', '2')
# n4 is a router too: n6 sends two copies by it.
ROUTERS = Tree({**OTHERS.children, 'n6': ['n4', 'n4', 'n7']}, OTHERS.branches)


def lab():
    return Lab.shipped('others')


def routers_lab():
    return Lab.shipped('others', edit=('kind: ovs', 'kind: router'))


def ofctl(lab, *argv):
    socket = os.path.join(os.environ['ROCECAST_RUNDIR'], 'lab', lab.name, 'n4.ovs/br-n4.mgmt')
    return output('ovs-ofctl', '-OOpenFlow15', argv[0], 'unix:' + socket, *argv[1:])


def buckets(lab):
    """Of each OpenFlow group the SIDs that its copies go to."""
    return [sorted(re.findall(r'set_field:([0-9a-f:]+)->ipv6_dst', line))
            for line in ofctl(lab, 'dump-groups').splitlines()[1:]]


def copied(lab):
    """Packets that came to the only group, and those of each bucket."""
    text = ofctl(lab, 'dump-group-stats')
    return [int(n) for n in re.findall(r'packet_count=(\d+)', text)]


def forwarded(node):
    """Packets that the kernel of a router has forwarded."""
    text = output('castlab', 'exec', node, '--', 'cat', '/proc/net/snmp6')
    return int(re.search(r'^Ip6OutForwDatagrams\s+(\d+)$', text, re.M)[1])


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


def node_addresses(lab):
    """Both answer echo requests; where a hop limit ends the kernel says so, and Open vSwitch
    counts."""
    device = lab.name + '-h0'
    addresses = {n['name']: n['address'] for n in castctl_json('node', 'list')}
    output('ip', '-6', 'route', 'add', 'fe80::/64', 'dev', device)
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


def member_leaves(lab):
    """The last receiver behind a child of Open vSwitch leaves: one bucket less; the others go on.
    Then all are in the next epoch."""
    group_add('gl', '--timeout', '14')
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
        n['name'] == 'n4' and 'refused' in n['state'] for n in castctl_json('node', 'list')))
    output('castlab', 'start', 'n4')
    exact(lab, 'gd', OTHERS, *FEW)


def device_comes_back(lab):
    """A device of the router is made anew, with another MAC address and without routes."""
    exec_in = ('castlab', 'exec', 'n7', '--')
    output(*exec_in, 'ip', '-6', 'route', 'flush', 'proto', '95')
    output(*exec_in, 'ip', 'link', 'set', 'n5', 'name', 'away')
    wait_until('castfwd misses it', lambda: any(
        n['name'] == 'n7' and 'there is no such network device' in n['state']
        for n in castctl_json('node', 'list')))
    output(*exec_in, 'ip', 'link', 'set', 'away', 'name', 'n5')
    wait_until('castfwd has it again', lambda: all(
        n['state'] == 'ok' for n in castctl_json('node', 'list')))
    group_add('gb')
    exact(lab, 'gb', OTHERS, *FEW)


def rules_of_router(lab):
    """What the kernel has is what castfwd says that it has told it."""
    rules = json.loads(lab.appctl('n7', 'rocecast/rules', '-j'))
    told = sorted(re.findall(r'route replace (?:unreachable )?(\S+)', '\n'.join(rules)))
    shown = output('castlab', 'exec', 'n7', '--', 'ip', '-6', 'route', 'show', 'proto', '95')
    routes = [line.removeprefix('unreachable ').split()[0] for line in shown.splitlines()]
    check_equal('routes', sorted(r if '/' in r else r + '/128' for r in routes), told)


CASES = [ovs_and_router, ('tree', shape(OTHERS)), node_addresses, member_leaves, link_leaves,
         restart('n4'), restart('n7'), switch_dies, device_comes_back, rules_of_router]
ROUTERS_CASES = [('tree', shape(ROUTERS))]
