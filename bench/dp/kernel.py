# SPDX-License-Identifier: Apache-2.0
"""Lanes in which the kernel forwards.

It does so in the flooder's own time: a veth hands a frame over at once, on the sender's CPU, and all that
follows runs before the flooder's system call goes on (where the kernel does not account interrupts apart,
CONFIG_IRQ_TIME_ACCOUNTING).  So the flooder's CPU time is taken, and that of a flooder whose frames are
dropped as they come in is taken off (Comparison.minus).
"""
import os
import subprocess
import sys

import devices
import frames
import registry
from lanes import AGENT_MAC, OTHER_MAC, Lane, end_packet, receivers, request
from registry import Failed, node_address, node_sid, proxy

GROUP, GROUP_MAC = 'ff3e::8000:1', '33:33:80:00:00:01'


class Alone(Lane):
    """No forwarder: frames are dropped where they come in."""

    def __init__(self, world, other, name='flooder alone'):
        super().__init__(world, name, other.job)
        self.copies = 1
        self.own(devices.Veths([(self.input, self.far, None)]))
        self.sinks = self.own(devices.HookSinks(self.prefix, [self.input], frames.NH_ROUTING))
        self.sink_len, self.sink_head = other.frame_len - frames.ETH_LEN, 0
        self.frame_len, self.n_frames = other.frame_len, other.n_frames
        self.flood_text = other.flood_text.replace(other.far, self.far)

    def cpu_of(self, said, threads):
        return said['cpu_ns']

    def cpu_ns(self):
        return {}

    def busy(self):
        return False

    def in_drops(self):
        return devices.dropped({self.input, self.far})


class Namespace:
    def __init__(self, name):
        self.name = name
        devices.output('ip', 'netns', 'add', name)
        self.ip('link', 'set', 'lo', 'up')

    def ip(self, *words):
        devices.output('ip', '-6', '-n', self.name, *words)

    def set(self, **values):
        """Of net.ipv6.conf, with / for its dots."""
        for name, value in values.items():
            device, _, leaf = name.rpartition('_IN_')
            devices.output('ip', 'netns', 'exec', self.name, 'sysctl', '-qw',
                           'net/ipv6/conf/%s/%s=%s' % (device, leaf, value))

    def close(self):
        devices.output('ip', 'netns', 'del', self.name)


class Kernel(Alone):
    """A namespace with the lane's input and outputs, in which the kernel forwards."""

    def __init__(self, world, other, name):
        Lane.__init__(self, world, name, other.job)
        self.space = self.own(Namespace(self.prefix))
        self.outs = ['%so%d' % (self.prefix, i) for i in range(self.copies)]
        self.ends = ['%sp%d' % (self.prefix, i) for i in range(self.copies)]
        for near, far in [(self.input, self.far), *zip(self.outs, self.ends)]:
            devices.output('ip', 'link', 'add', far, 'mtu', '9216', 'type', 'veth', 'peer', 'name', near,
                           'mtu', '9216', 'netns', self.prefix)
            self.own(devices.Gone(far))
            devices.output('ip', 'link', 'set', far, 'up')
            self.space.ip('link', 'set', near, 'up')
        self.space.ip('link', 'set', self.input, 'address', registry.port_mac(self.node, 1))
        self.space.set(all_IN_forwarding=1)
        self.configure()
        packet, inner_len, dst = self.packet()
        self.sinks = self.own(devices.HookSinks(self.prefix, self.ends, frames.NH_ROUTING))
        self.sink_len, self.sink_head = len(packet), 0
        self.set_frames([frames.Frame(self.far, dst, AGENT_MAC, packet, inner_len)])

    def in_drops(self):
        return devices.dropped({self.far})

    def out_drops(self):
        return 0                # of devices in another namespace: counted as lost.


class KernelEnd(Kernel):
    """seg6local End: the next segment, by one route."""

    def __init__(self, world, other, name='kernel seg6 End'):
        super().__init__(world, other, name)

    def configure(self):
        out = self.outs[0]
        self.space.set(all_IN_seg6_enabled=1, **{self.input + '_IN_seg6_enabled': 1})
        self.space.ip('neigh', 'add', 'fe80::2', 'lladdr', OTHER_MAC, 'dev', out, 'nud', 'permanent')
        self.space.ip('route', 'add', '5f00:0:%x::/48' % self.child(0), 'via', 'fe80::2', 'dev', out)
        self.space.ip('route', 'add', node_sid(self.node, registry.END) + '/64', 'encap', 'seg6local',
                      'action', 'End', 'dev', out)

    def packet(self):
        return (*end_packet(self), registry.port_mac(self.node, 1))


class KernelMulticast(Kernel):
    """ip6mr: copies to several devices, none of them changed but for the hop limit."""

    def __init__(self, world, other, name='kernel ip6mr'):
        super().__init__(world, other, name)

    def configure(self):
        here = os.path.dirname(os.path.abspath(__file__))
        process = self.start(['ip', 'netns', 'exec', self.prefix, sys.executable,
                              os.path.join(here, 'mroute.py'), node_address(self.agent), GROUP, self.input,
                              *self.outs], stdout=subprocess.PIPE)
        if process.stdout.readline() != b'ready\n':
            raise Failed(self.log())
        process.stdout.close()

    def packet(self):
        inner = request(self, 0)
        header = frames.srh(node_address(self.agent), proxy(0), receivers(self, 0, self.copies, True))
        return frames.tunnelled(node_address(self.agent), GROUP, header, inner), len(inner), GROUP_MAC
