# SPDX-License-Identifier: Apache-2.0
"""Lanes of what our forwarders are compared with: a bare loop, and Open vSwitch."""
import os
import subprocess

import devices
import frames
import measure
import registry
from lanes import AGENT_MAC, OTHER_MAC, Lane, Skipped, SocketSink, down_frames
from nodes import Agent, Edge
from registry import Failed, node_address, node_sid, wait_until


class Bare(Lane):
    """dp-bare beside 'other': the frames that the other sends, the same number of times."""

    def __init__(self, world, other, name='bare loop', endpoint=False):
        super().__init__(world, name, other.job)
        agent = isinstance(other, Agent)
        to_taps = isinstance(other, Edge)
        outs = self.outs = ['%s%s%d' % (self.prefix, 't' if to_taps else 'o', i) for i in range(self.copies)]
        ends = ['%sp%d' % (self.prefix, i) for i in range(self.copies)]
        if agent:
            self.far = self.input
            self.own(devices.Taps([(self.input, None)]))
        else:
            self.own(devices.Veths([(self.input, self.far, None)]))
        if to_taps:
            ends = outs
            self.own(devices.Taps([(d, self.host(i) if endpoint else None)
                                   for i, d in enumerate(outs)]))
        else:
            self.own(devices.Veths([(near, far, None) for near, far in zip(outs, ends)]))
        self.process = self.start(
            [world.tool('bare'), ('tap:' if agent else 'packet:') + self.input]
            + [('tap:' if to_taps else 'packet:') + d for d in outs], stdout=subprocess.PIPE)
        if self.process.stdout.readline() != b'ready\n':
            raise Failed(self.log())
        self.process.stdout.close()
        if endpoint:
            self.sinks = self.own(SocketSink(self, [self.host(0)]))
        else:
            self.sinks = self.own(devices.HookSinks(
                self.prefix, ends, frames.NH_UDP if to_taps or agent else frames.NH_ROUTING))
        packet, inner_len = other.bare_packet(self)
        self.sink_len, self.sink_head = len(packet), 0
        self.set_frames([frames.Frame(self.far, OTHER_MAC, AGENT_MAC, packet, inner_len)])


class OpenVSwitch(Lane):
    """Its userspace datapath, with the rules that castfwd gives it for a group."""

    SCHEMA = '/usr/share/openvswitch/vswitch.ovsschema'

    def __init__(self, world, other, name='Open vSwitch'):
        super().__init__(world, name, other.job)
        outs = self.outs = ['%so%d' % (self.prefix, i) for i in range(self.copies)]
        ends = ['%sp%d' % (self.prefix, i) for i in range(self.copies)]
        self.own(devices.Veths([(self.input, self.far, None)]
                               + [(near, far, None) for near, far in zip(outs, ends)]))
        self.env = {'OVS_RUNDIR': self.folder, 'OVS_LOGDIR': self.folder, 'OVS_DBDIR': self.folder}
        self.start_daemons()
        self.configure(outs)
        self.sinks = self.own(devices.HookSinks(self.prefix, ends, frames.NH_ROUTING))
        made = down_frames(self, lambda g: node_sid(self.node, registry.REPLICATE + g), True)
        self.sink_len, self.sink_head = len(made[0].bytes) - frames.ETH_LEN, 0
        self.set_frames(made)

    def start_daemons(self):
        if not os.path.exists(self.SCHEMA):
            raise Skipped('Open vSwitch is not installed')
        database, db = os.path.join(self.folder, 'conf.db'), os.path.join(self.folder, 'db.sock')
        devices.output('ovsdb-tool', 'create', database, self.SCHEMA)
        self.start(['ovsdb-server', '--remote=punix:' + db, '--unixctl=%s/db.ctl' % self.folder,
                    '-vconsole:off', '--log-file=%s/db.log' % self.folder, database], self.env,
                   {measure.FLOODER_CPU})
        wait_until('its database listens', lambda: os.path.exists(db))
        self.vsctl = ['ovs-vsctl', '--db=unix:' + db]
        devices.output(*self.vsctl, '--no-wait', 'init')
        self.process = self.start(
            ['ovs-vswitchd', 'unix:' + db, '--unixctl=%s/sw.ctl' % self.folder, '-vconsole:off',
             '--log-file=%s/sw.log' % self.folder], self.env)

    def configure(self, outs):
        bridge = 'br' + self.prefix
        words = ['--', 'add-br', bridge, '--', 'set', 'bridge', bridge, 'datapath_type=netdev',
                 'protocols=OpenFlow13', 'fail_mode=secure']
        for number, device in enumerate([self.input] + outs, 1):
            words += ['--', 'add-port', bridge, device, '--', 'set', 'interface', device,
                      'ofport_request=%d' % number]
        devices.output(*self.vsctl, '--timeout=30', *words)
        management = 'unix:%s/%s.mgmt' % (self.folder, bridge)
        buckets = ''.join(
            ',bucket=actions=dec_ttl,set_field:%s->ipv6_dst,set_field:%s->eth_src,'
            'set_field:%s->eth_dst,output:%d' % (
                node_sid(self.child(i), registry.END_MT), registry.port_mac(self.node, 2 + i),
                OTHER_MAC, 2 + i) for i in range(self.copies))
        devices.output('ovs-ofctl', '-O', 'OpenFlow13', 'add-group', management,
                       'group_id=1,type=all' + buckets)
        for g in range(self.job.groups):
            devices.output('ovs-ofctl', '-O', 'OpenFlow13', 'add-flow', management,
                           'priority=300,ipv6,ipv6_src=%s,ipv6_dst=%s,actions=group:1' % (
                               node_address(self.agent),
                               node_sid(self.node, registry.REPLICATE + g)))
