# SPDX-License-Identifier: Apache-2.0
"""Network devices of the benchmark's own namespace, and what counts and drops at their ends."""
import json
import os
import subprocess

from registry import Failed


def output(*argv, text=None):
    p = subprocess.run(argv, input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                       check=False)
    if p.returncode:
        raise Failed('%s: %s' % (' '.join(argv)[:200], (p.stderr or p.stdout).strip()))
    return p.stdout


def prepare_namespace():
    """Nothing is sent that nobody asked for: no listener reports, no solicitations."""
    output('ip', 'link', 'set', 'lo', 'up')
    os.makedirs('/run/netns', exist_ok=True)
    output('mount', '-t', 'tmpfs', 'none', '/run/netns')
    for name, value in (('disable_ipv6', 1), ('accept_dad', 0), ('accept_ra', 0),
                        ('router_solicitations', 0), ('addr_gen_mode', 1)):
        with open('/proc/sys/net/ipv6/conf/default/' + name, 'w', encoding='ascii') as f:
            f.write(str(value))


def ip_batch(lines):
    output('ip', '-6', '-batch', '-', text='\n'.join(lines) + '\n')


def enable_ipv6(netdev):
    with open('/proc/sys/net/ipv6/conf/%s/disable_ipv6' % netdev, 'w', encoding='ascii') as f:
        f.write('0')


def dropped(netdevs, ways=('rx', 'tx')):
    """Frames that these devices themselves have dropped."""
    total = 0
    with open('/proc/net/dev', encoding='ascii') as f:
        for line in f:
            name, _, numbers = line.partition(':')
            if name.strip() in netdevs:
                fields = dict(zip(('rx', 'tx'), numbers.split()[3::8]))
                total += sum(int(fields[way]) for way in ways)
    return total


class Veths:
    """Pairs of (this end, far end); an address makes the kernel answer for it at the far end."""

    def __init__(self, pairs):
        self.pairs = [(near, far) for near, far, _ in pairs]
        ip_batch('link add %s mtu 9216 type veth peer name %s mtu 9216' % p for p in self.pairs)
        for _, far, address in pairs:
            if address:
                enable_ipv6(far)
        ip_batch(['link set %s up' % d for p in self.pairs for d in p]
                 + ['addr add %s/128 dev %s nodad' % (address, far)
                    for _, far, address in pairs if address])

    def close(self):
        ip_batch('link del %s' % near for near, _ in self.pairs)


class Gone:
    """A device that goes, with the other end of it that another namespace has."""

    def __init__(self, netdev):
        self.netdev = netdev

    def close(self):
        output('ip', 'link', 'del', self.netdev)


class Taps:
    """Hosts' NICs, persistent and multi-queue: (name, address)."""

    def __init__(self, taps):
        self.names = [name for name, _ in taps]
        for name in self.names:
            output('ip', 'tuntap', 'add', name, 'mode', 'tap', 'multi_queue')
        for name, address in taps:
            if address:
                enable_ipv6(name)
        ip_batch(['link set %s mtu 9000 up' % name for name in self.names]
                 + ['addr add %s/128 dev %s nodad' % (address, name)
                    for name, address in taps if address])

    def close(self):
        ip_batch('link del %s' % name for name in self.names)


class HookSinks:
    """At each device's ingress hook IPv6 packets with this next header are counted and dropped, or
    let through."""

    def __init__(self, table, netdevs, next_header, drop=True):
        self.table = table
        self.netdevs = netdevs
        rule = 'ip6 nexthdr %d counter%s' % (next_header, ' drop' if drop else '')
        output('nft', '-f', '-', text='table netdev %s {\n%s}\n' % (table, ''.join(
            'chain %s { type filter hook ingress device "%s" priority 0; %s; }\n'
            % (d, d, rule) for d in netdevs)))

    def read(self):
        """(packets, bytes without Ethernet headers) of each device."""
        counts = dict.fromkeys(self.netdevs, (0, 0))
        for item in json.loads(output('nft', '-j', 'list', 'table', 'netdev', self.table))['nftables']:
            for part in item.get('rule', {}).get('expr', ()):
                if 'counter' in part:
                    counts[item['rule']['chain']] = (part['counter']['packets'],
                                                     part['counter']['bytes'])
        return [counts[d] for d in self.netdevs]

    def close(self):
        output('nft', 'delete', 'table', 'netdev', self.table)


def socket_drops(pid):
    """Frames that did not fit into the process's packet sockets."""
    total = 0
    for line in output('ss', '-f', 'link', '-amnpO').splitlines():
        if 'pid=%d,' % pid in line and 'skmem:(' in line:
            total += int(line.split('skmem:(')[1].split(')')[0].rsplit(',d', 1)[1])
    return total


def cpu_ns(pid):
    """{thread: nanoseconds on a CPU}."""
    times = {}
    for tid in os.listdir('/proc/%d/task' % pid):
        with open('/proc/%d/task/%s/schedstat' % (pid, tid), encoding='ascii') as f:
            times[int(tid)] = int(f.read().split()[0])
    return times


def is_runnable(pid):
    """Does any of the process's threads run, or wait for a CPU?"""
    for tid in os.listdir('/proc/%d/task' % pid):
        with open('/proc/%d/task/%s/stat' % (pid, tid), encoding='ascii', errors='replace') as f:
            if f.read().rsplit(')', 1)[1].split()[0] == 'R':
                return True
    return False


def discovery(netdevs, direction):
    """Questions and answers about neighbours that the kernel has received ('In') or sent ('Out') on
    these devices."""
    total = 0
    for netdev in netdevs:
        with open('/proc/net/dev_snmp6/' + netdev, encoding='ascii') as f:
            total += sum(int(line.split()[1]) for line in f if line.startswith('Icmp6%sNeighbor' % direction))
    return total


POOL_KIB = 40 * 1024    # a node's packet pool is larger, and nothing else of it is.


def memory_kib(pid):
    """What a node has resident besides its packet pool.  The pool's pages become so when they are
    first used: the more packets are in the node at a time, the more."""
    own = size = 0
    with open('/proc/%d/smaps' % pid, encoding='ascii') as f:
        for line in f:
            key, value = line.split()[:2]
            if key == 'Size:':
                size = int(value)
            elif key == 'Rss:' and size < POOL_KIB:
                own += int(value)
    return own
