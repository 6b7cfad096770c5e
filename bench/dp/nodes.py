# SPDX-License-Identifier: Apache-2.0
"""Lanes of our forwarders: each with the ports, rows, packets and sinks of one job."""
import json
import os

import devices
import frames
import measure
import registry
from lanes import (AGENT_MAC, FORWARDER_CPU, OTHER_MAC, Job, Lane, Skipped, SocketSink, copy_len,
                   down_frames, end_packet, receivers, request)
from registry import Failed, Port, Receiver, Rows, node_address, node_sid, proxy, wait_until


class Node(Lane):
    """swedge or srcagent of a build."""

    ours = True
    program = 'swedge'
    role = 'switch'

    def __init__(self, world, name, job, build=None, port_kind='packet', options=(), cpus=None):
        super().__init__(world, name, job)
        self.build = build or world.build
        self.port_kind = port_kind
        self.registry = world.registry(self.build)
        self.options = options
        self.cpus = cpus or {FORWARDER_CPU}
        self.make_devices()
        self.registry.transact(self.rows())
        self.control = os.path.join(self.folder, 'node.ctl')
        self.process = self.start(
            [os.path.join(self.build, 'bin', self.program), '--db=unix:' + self.registry.socket,
             '--node=' + self.prefix, '--unixctl=' + self.control, *options],
            {'ROCECAST_RUNDIR': self.folder}, self.cpus)
        try:
            self.registry.wait_applied(self.prefix, self.process)
        except Failed as e:
            raise Failed('%s\n%s' % (e, self.log())) from None
        self.make_sinks()
        self.make_frames()

    def appctl(self, command):
        return json.loads(devices.output('ovs-appctl', '-t', self.control, 'rocecast/' + command, '-j'))

    def own_drops(self):
        counters = self.appctl('counters')
        return sum(counters['drops'].values()) + sum(
            p[kind] for p in counters['ports'].values()
            for kind in ('rx_errors', 'tx_errors', 'tx_too_long'))

    def rows_of(self, rows, ports, routes, trees, functions):
        rows.node(self.prefix, self.node, self.role,
                  ports=[rows.port(self.node, p) for p in ports],
                  routes=[rows.route(*r) for r in routes],
                  sids=rows.sids(self.node, functions), trees=trees)
        return rows.operations

    def bare_packet(self, lane):
        """What a bare loop is given in this lane's place: a copy that this lane makes (of srcagent a
        request, so that both read the same); and the length of its innermost packet."""
        packet = frames.write(proxy(0), lane.host(0), 0x200, registry.RKEY, self.job.payload,
                              middle=self.job.middle)
        return packet, len(packet)

    def check_kind(self, kind):
        with open(os.path.join(self.build, '../ctl/registry/rocecast.ovsschema'),
                  encoding='utf-8') as f:
            kinds = json.load(f)['tables']['Port']['columns']['kind']['type']['key']['enum'][1]
        if kind not in kinds:
            raise Skipped('%s has no ports of kind %s' % (self.build, kind))


class Edge(Node):
    """swedge, End.MT: copies for receivers behind taps.  'endpoint': a socket takes the copies,
    instead of a hook before it."""

    def __init__(self, *args, endpoint=False, **more):
        self.endpoint = endpoint
        super().__init__(*args, **more)

    def tap(self, i):
        return '%st%d' % (self.prefix, i)

    def make_devices(self):
        self.own(devices.Veths([(self.input, self.far, node_address(self.agent))]))
        self.outs = [self.tap(i) for i in range(self.copies)]
        self.own(devices.Taps([(self.tap(i), self.host(i)) for i in range(self.copies)]))

    def rows(self):
        rows = Rows()
        sa = node_address(self.agent)
        ports = [Port(1, self.input, 'packet', 'agent', 'sa', sa)] + [
            Port(2 + i, self.tap(i), 'tap', 'host', 'r%d' % i, self.host(i))
            for i in range(self.copies)]
        routes = [('%s/128' % self.host(i), 2 + i) for i in range(self.copies)]
        routes += [('5f00:0:%x::/48' % self.agent, 1, sa), ('%s/128' % self.source, 1, sa)]
        keys = [rows.key(self.prefix)] if self.job.auth else []
        auth = {'auth': 'mt-auth', 'keys': ['set', keys]} if keys else {}
        trees = [rows.tree(
            g, source_address=self.source, outer_source=sa, root=True, **auth,
            branches=['set', [rows.receiver(node_address(self.node), Receiver(
                1 + i, self.host(i), 0x200 + g, 0x400 + i, 0x7f0000001000 + 0x123000 * i))
                for i in range(self.copies)]])
            for g in range(self.job.groups)]
        return self.rows_of(rows, ports, routes, trees, registry.SWITCH_SIDS)

    def make_sinks(self):
        self.sink_len, self.sink_head = copy_len(self.job), frames.IP6_LEN + frames.UDP_LEN
        if self.endpoint:
            self.sinks = self.own(SocketSink(self, [self.host(i) for i in range(self.copies)]))
        else:
            self.sinks = self.own(devices.HookSinks(self.prefix, self.outs, frames.NH_UDP))

    def make_frames(self):
        self.set_frames(down_frames(self, lambda g: node_sid(self.node, registry.END_MT), False))


class Threaded(Edge):
    """With two groups that different threads handle, if there are several threads."""

    CANDIDATES = 16
    PACKETS = 512

    def __init__(self, world, name, job, n_threads, **more):
        self.n_threads = n_threads
        super().__init__(world, name, Job(job.copies, job.payload, self.CANDIDATES), **more)

    def warmed(self):
        """Which thread is busy with a group is seen when it is sent packets."""
        lines = self.flood_text.splitlines(keepends=True)
        by_thread = {}
        for line in lines:
            before = self.cpu_ns()
            measure.flood(self, self.PACKETS, rate=20000, text=line)
            measure.settle(self)
            grown = {tid: ns - before.get(tid, 0) for tid, ns in self.cpu_ns().items()}
            by_thread.setdefault(max(grown, key=grown.get), []).append(line)
        self.psn += self.PACKETS
        if len(by_thread) < self.n_threads:
            raise Failed('%s: %d threads handle %d groups' % (self.name, len(by_thread), len(lines)))
        ways = list(by_thread.values())
        self.n_frames = 2
        self.flood_text = ways[0][0] + (ways[1][0] if self.n_threads > 1 else ways[0][1])


class Transit(Node):
    """swedge, End.Replicate: copies for nodes behind veths."""

    def out(self, i):
        return '%so%d' % (self.prefix, i)

    def out_far(self, i):
        return '%sp%d' % (self.prefix, i)

    def make_devices(self):
        self.check_kind(self.port_kind)
        self.outs = [self.out(i) for i in range(self.copies)]
        self.own(devices.Veths(
            [(self.input, self.far, node_address(self.agent))]
            + [(self.out(i), self.out_far(i), node_address(self.child(i)))
               for i in range(self.copies)]))

    def rows(self):
        rows = Rows()
        sa = node_address(self.agent)
        children = [self.child(i) for i in range(self.copies)]
        ports = [Port(1, self.input, self.port_kind, 'agent', 'sa', sa)] + [
            Port(2 + i, self.out(i), self.port_kind, 'fabric', 'n%d' % c, node_address(c))
            for i, c in enumerate(children)]
        routes = [('5f00:0:%x::/48' % c, 2 + i, node_address(c)) for i, c in enumerate(children)]
        routes += [('5f00:0:%x::/48' % self.agent, 1, sa), ('%s/128' % self.source, 1, sa)]
        trees = [rows.tree(
            g, source_address=self.source, outer_source=sa, root=True,
            replication_sid=node_sid(self.node, registry.REPLICATE + g),
            outer_da=['set', [node_sid(c, registry.END_MT) for c in children]],
            branches=['set', [rows.branch_node(c) for c in children]])
            for g in range(self.job.groups)]
        return self.rows_of(rows, ports, routes, trees, registry.SWITCH_SIDS)

    def bare_packet(self, lane):
        inner = request(lane, 0)
        srh = frames.srh(node_address(lane.agent), proxy(0), receivers(lane, 0, self.copies, True))
        return frames.tunnelled(node_address(lane.agent), node_sid(self.child(0), registry.END_MT), srh,
                                inner), len(inner)

    def make_sinks(self):
        self.sinks = self.own(devices.HookSinks(
            self.prefix, [self.out_far(i) for i in range(self.copies)], frames.NH_ROUTING))

    def make_frames(self):
        made = down_frames(self, lambda g: node_sid(self.node, registry.REPLICATE + g), True)
        self.sink_len, self.sink_head = len(made[0].bytes) - frames.ETH_LEN, 0
        self.set_frames(made)


class End(Transit):
    """swedge, End: to the next segment."""

    def bare_packet(self, lane):
        return end_packet(lane)

    def make_frames(self):
        packet, inner_len = end_packet(self)
        self.sink_len, self.sink_head = len(packet), 0
        self.set_frames([frames.Frame(self.far, registry.port_mac(self.node, 1), AGENT_MAC, packet,
                                      inner_len)])


class Agent(Node):
    """srcagent, down: from its host's tap into SRH, to its uplink."""

    program = 'srcagent'
    role = 'agent'

    def __init__(self, world, name, job, **more):
        self.n_named = job.copies
        super().__init__(world, name, Job(1, job.payload, job.groups, job.auth, job.middle), **more)

    def make_devices(self):
        self.far = self.input
        self.uplink, self.uplink_far = self.prefix + 'up', self.prefix + 'upf'
        self.outs = [self.uplink]
        self.own(devices.Taps([(self.input, None)]))
        self.own(devices.Veths([(self.uplink, self.uplink_far, node_address(self.child(0)))]))

    def rows(self):
        rows = Rows()
        edge = self.child(0)
        ports = [Port(1, self.input, 'tap', 'host', 'h0', self.source),
                 Port(2, self.uplink, 'packet', 'fabric', 'n1', node_address(edge))]
        routes = [('%s/128' % self.source, 1), ('::/0', 2, node_address(edge))]
        trees = [rows.tree(
            g, source_address=self.source, outer_source=node_address(self.node), open=True,
            outer_da=node_sid(edge, registry.END_MT),
            copies=['set', [rows.receiver(node_address(edge), Receiver(
                1 + i, self.host(i), 0x200 + g, 0x400 + i, 0x7f0000001000))
                for i in range(self.n_named)]])
            for g in range(self.job.groups)]
        return self.rows_of(rows, ports, routes, trees, registry.AGENT_SIDS)

    def make_sinks(self):
        self.sinks = self.own(devices.HookSinks(self.prefix, [self.uplink_far], frames.NH_ROUTING))

    def make_frames(self):
        inner = request(self, 0)
        header = frames.srh('::', '::', receivers(self, 0, self.n_named))
        self.sink_len = frames.IP6_LEN + len(header) + len(inner)
        self.sink_head = 0
        self.set_frames([frames.Frame(self.input, registry.port_mac(self.node, 1), AGENT_MAC, p,
                                      len(p))
                         for p in (request(self, g) for g in range(self.job.groups))])


class Aggregator(Node):
    """swedge, reverse path: answers of nodes below it, which all come by one link."""

    def __init__(self, world, name, n_branches, **more):
        self.n_branches = n_branches
        super().__init__(world, name, Job(1, 256), **more)

    def make_devices(self):
        self.up, self.up_far = self.prefix + 'up', self.prefix + 'upf'
        self.outs = [self.up]
        self.own(devices.Veths([(self.input, self.far, node_address(self.child(0))),
                                (self.up, self.up_far, node_address(self.agent))]))

    def rows(self):
        rows = Rows()
        sa, below = node_address(self.agent), node_address(self.child(0))
        ports = [Port(1, self.input, 'packet', 'fabric', 'n', below),
                 Port(2, self.up, 'packet', 'agent', 'sa', sa)]
        routes = [('5f00::/16', 1, below), ('5f00:0:%x::/48' % self.agent, 2, sa),
                  ('%s/128' % self.source, 2, sa)]
        # A forwarder that does not aggregate, child 0, copies further.
        trees = [rows.tree(
            0, source_address=self.source, outer_source=sa, root=True,
            replication_sid=node_sid(self.node, registry.REPLICATE),
            outer_da=node_sid(self.child(0), registry.REPLICATE),
            branches=['set', [rows.branch_node(self.child(1 + i))
                              for i in range(self.n_branches)]])]
        return self.rows_of(rows, ports, routes, trees, registry.SWITCH_SIDS)

    def make_sinks(self):
        """Merged responses are counted where they leave."""
        self.sinks = self.own(devices.HookSinks(self.prefix, [self.up_far], frames.NH_UDP))
        self.sink_len = len(frames.ack('::', '::', 0))
        self.sink_head = 0

    def make_frames(self):
        mac = registry.port_mac(self.node, 1)
        answer = frames.ack(proxy(0), self.source, registry.DESIGNATED_QPN)
        self.set_frames([frames.Frame(
            self.far, mac, OTHER_MAC, frames.tunnelled(
                node_address(self.child(1 + i)), node_sid(self.node, registry.RESPONSE), b'', answer),
            len(answer)) for i in range(self.n_branches)])
        inner = request(self, 0)
        srh = frames.srh(node_address(self.agent), proxy(0), receivers(self, 0, 1, True))
        # What is answered comes from the other side.
        self.down_text = frames.Frame(
            self.up_far, registry.port_mac(self.node, 2), AGENT_MAC, frames.tunnelled(
                node_address(self.agent), node_sid(self.node, registry.REPLICATE), srh, inner),
            len(inner)).line()


    def state(self):
        group, = self.appctl('groups')
        return group

    def before(self, rounds):
        """What is to be answered goes down."""
        measure.flood(self, rounds, rate=20000, text=self.down_text)
        wanted = self.psn + rounds & measure.PSN_MASK
        wait_until('%d packets have gone down' % rounds,
                   lambda: self.state().get('sent_next') == wanted)

    def expected(self, n_sent):
        return n_sent // self.n_branches

    def units(self, n_sent, copies):
        return n_sent

    def lost(self, n_sent, copies):
        """Packets that all have answered, and of which the source is not told."""
        return self.psn - self.state()['confirmed'] & measure.PSN_MASK
