# SPDX-License-Identifier: Apache-2.0
"""Lanes: a forwarder under measurement, with devices and sinks of its own.  What all kinds of them have:
ours are in nodes.py, what they are compared with is in rivals.py and kernel.py.

All lanes of a comparison stand side by side, and one at a time is given packets; those that are idle
cost nothing.  What is said of a lane:

    ours        is a packet that is missing a defect of ours?
    copies      packets per packet sent
    frames      what the flooder sends: one for each group or answering branch, in turn
    process     whose threads' CPU time is measured
    sinks       where copies are counted
"""
import os
import subprocess

import devices
import frames
import measure
import registry
from registry import Failed, node_address, node_sid, proxy

FORWARDER_CPU = 1
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

    def busy(self):
        """Does a thread run, or wait for a CPU?"""
        return devices.is_runnable(self.process.pid)

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
