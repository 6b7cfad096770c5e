# SPDX-License-Identifier: Apache-2.0
"""Lanes: a forwarder under measurement, with devices and sinks of its own.

All lanes of a comparison stand side by side, and one at a time is given packets; those that are idle
cost nothing.  What is said of a lane:

    ours        is a packet that is missing a defect of ours?
    copies      packets per packet sent
    frames      what the flooder sends: one for each group or answering branch, in turn
    pid         the process whose threads' CPU time is measured
    sinks       where copies are counted
"""
import json
import os
import subprocess

import devices
import frames
import measure
import registry
from registry import Failed, Port, Receiver, Rows, node_address, node_sid, proxy, wait_until

FORWARDER_CPU = 1
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# What the far end of a lane's input is known as.
AGENT_MAC = '02:aa:00:00:00:01'
OTHER_MAC = '02:aa:00:00:00:02'


class Skipped(Exception):
    """This build or machine cannot do the case; why."""


class Job:
    """What is to be forwarded: one tree, in as many groups."""

    def __init__(self, copies, payload=1024, groups=1, auth=False, middle=False):
        self.copies = copies
        self.payload = payload
        self.groups = groups
        self.auth = auth
        self.middle = middle


class World:
    """What lanes share: folder, builds with their registries."""

    def __init__(self, folder, build, tools):
        self.folder = folder
        self.build = build
        self.tools = tools
        self.registries = {}
        self.n_lanes = 0
        self.lanes = []         # that are there.

    def registry(self, build):
        if build not in self.registries:
            folder = os.path.join(self.folder, 'registry%d' % len(self.registries))
            os.mkdir(folder)
            self.registries[build] = registry.Registry(folder, os.path.join(
                build, '../ctl/registry/rocecast.ovsschema'))
        return self.registries[build]

    def tool(self, name):
        return os.path.join(self.tools, 'tests/dp-' + name)

    def close_lanes(self):
        """Also those that could not be made whole."""
        while self.lanes:
            self.lanes.pop().close()

    def close(self):
        self.close_lanes()
        for r in self.registries.values():
            r.close()


class Lane:
    """A lane is made in three steps: devices, the forwarder's process, then sinks."""

    ours = False

    def __init__(self, world, name, job):
        world.n_lanes += 1
        world.lanes.append(self)
        self.world = world
        self.name = name
        self.job = job
        self.number = world.n_lanes
        self.prefix = 'b%d' % self.number
        self.folder = os.path.join(world.folder, self.prefix)
        os.mkdir(self.folder)
        self.input = self.prefix + 'in'
        self.far = self.prefix + 'far'
        self.copies = job.copies
        self.outs = []          # devices that copies leave by.
        self.owned = []         # to be closed, last first.
        self.process = None
        self.sinks = None
        self.psn = 0
        self.flood_text = None

    # Addresses: each lane has its own, so that hosts of one namespace stay apart.

    def host(self, i):
        return 'fd00:1:%x::%x' % (self.number, i + 1)

    @property
    def source(self):
        return 'fd00:1:%x::f00d' % self.number

    @property
    def node(self):
        return 0x100 + self.number

    @property
    def agent(self):
        return 0x1000 + self.number

    def child(self, i):
        return 0x2000 + i

    def own(self, thing):
        self.owned.append(thing)
        return thing

    def start(self, argv, env=None, cpus=frozenset((FORWARDER_CPU,)), **more):
        with open(os.path.join(self.folder, 'out'), 'ab') as log:
            process = subprocess.Popen(argv, env=dict(os.environ, **(env or {})),
                                       stdin=more.pop('stdin', subprocess.DEVNULL),
                                       stdout=more.pop('stdout', log), stderr=log,
                                       preexec_fn=measure.on_cpu(cpus), **more)
        self.own(Process(process))
        return process

    def log(self):
        with open(os.path.join(self.folder, 'out'), encoding='utf-8', errors='replace') as f:
            return f.read()[-2000:]

    def set_frames(self, all_frames):
        self.frame_len = len(all_frames[0].bytes)
        self.n_frames = len(all_frames)
        self.flood_text = ''.join(f.line() for f in all_frames)

    def cpu_ns(self):
        return devices.cpu_ns(self.process.pid)

    def cpu_of(self, said, threads):  # pylint: disable=unused-argument
        """Of one measurement, in ns: what the flooder said, and what each thread took."""
        return sum(threads.values())

    def counted(self):
        """Copies that have come to the sinks.

        The copies of a frame that stands for several have one header of IPv6 and UDP between them:
        all copies are equally long.
        """
        total = 0
        for packets, n_bytes in self.sinks.read():
            share = n_bytes - packets * self.sink_head
            if share % (self.sink_len - self.sink_head):
                raise Failed('%s: %d frames with %d bytes came to a sink for packets of %d bytes'
                             % (self.name, packets, n_bytes, self.sink_len))
            total += share // (self.sink_len - self.sink_head)
        return total

    def warmed(self):
        """After the first packets, before measurements."""

    def before(self, rounds):
        """What has to happen before so many packets of each frame."""

    def expected(self, n_sent):
        """Copies of so many packets."""
        return n_sent * self.copies

    def units(self, n_sent, copies):  # pylint: disable=unused-argument
        """What the CPU time is divided by."""
        return copies

    def lost(self, n_sent, copies):
        return self.expected(n_sent) - copies

    def own_drops(self):
        """Packets that the forwarder says it has dropped or not sent."""
        return 0

    def out_drops(self):
        """Copies that devices have dropped on the way to the sinks."""
        return devices.dropped(set(self.outs))

    def in_drops(self):
        """Frames that got lost in the kernel on the way into the forwarder."""
        return devices.socket_drops(self.process.pid) + devices.dropped({self.input, self.far})

    def close(self):
        for thing in reversed(self.owned):
            thing.close()


class Process:
    def __init__(self, process):
        self.process = process

    def close(self):
        self.process.terminate()
        self.process.wait()


#
# Packets.
#

def receivers(lane, i_group, n, one_each=False):
    """(edge, address, QPN) as a source agent names them; 'one_each': each behind an edge of its
    own."""
    return [(node_address(lane.child(i) if one_each else lane.node), lane.host(i),
             0x200 + i_group) for i in range(n)]


def request(lane, group):
    job = lane.job
    return frames.write(lane.source, proxy(group), registry.DESIGNATED_QPN, registry.RKEY,
                        job.payload, middle=job.middle)


def down_frames(lane, sid, one_each):
    """A group's packet as it comes from the source agent, for each group."""
    made = []
    for group in range(lane.job.groups):
        key = lane.job.auth and frames.Key(registry.KEY_NUMBER, registry.KEY_SECRET, proxy(group),
                                           registry.DESIGNATED_QPN)
        inner = request(lane, group)
        srh = frames.srh(node_address(lane.agent), proxy(group),
                         receivers(lane, group, lane.job.copies, one_each), key)
        made.append(frames.Frame(lane.far, registry.port_mac(lane.node, 1), AGENT_MAC,
                                 frames.tunnelled(node_address(lane.agent), sid(group), srh, inner),
                                 len(inner)))
    return made


def end_packet(lane):
    """To the SID of End, then to a child's; and the length of the packet in it."""
    inner = request(lane, 0)
    header = frames.srh(node_address(lane.agent), node_sid(lane.child(0), registry.END_MT), [])
    return frames.tunnelled(node_address(lane.agent), node_sid(lane.node, registry.END), header,
                            inner), len(inner)


def copy_len(job):
    """Of a receiver's copy, from the IPv6 header on."""
    return len(frames.write('::', '::', 0, 0, job.payload, middle=job.middle))


#
# Our forwarders.
#

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


class SocketSink:
    """dp-sink: datagrams that an endpoint's socket gets, with their bytes as at a hook."""

    def __init__(self, lane, addresses):
        self.process = subprocess.Popen([lane.world.tool('sink'), *addresses], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True,
                                        preexec_fn=measure.on_cpu({measure.FLOODER_CPU}))
        if self.process.stdout.readline() != 'ready\n':
            raise Failed('dp-sink does not begin')

    def read(self):
        self.process.stdin.write('\n')
        self.process.stdin.flush()
        n, n_bytes = map(int, self.process.stdout.readline().split())
        return [(n, n_bytes + n * (frames.IP6_LEN + frames.UDP_LEN))]

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


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

#
# What they are compared with.
#

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
                    '-vconsole:off', '--log-file=%s/db.log' % self.folder, database], self.env, {measure.FLOODER_CPU})
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
