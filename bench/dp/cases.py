# SPDX-License-Identifier: Apache-2.0
"""What is compared with what, and what must hold.

A case is a name and a Comparison: lanes that are given the same packets in turn.  A requirement is a
ratio of two lanes' times per copy, each pair measured one right after the other, and its bound.
"""
import functools
import os
import subprocess

from kernel import Alone, KernelEnd, KernelMulticast
from lanes import FORWARDER_CPU, Job, Skipped
from nodes import Agent, Aggregator, Edge, End, Threaded, Transit
from rivals import Bare, OpenVSwitch

# Copies a second that a rate-limited flood makes: less than half of what one CPU can.  'slower' in a
# comparison divides it.
COPIES_PER_SECOND = 160000
PACKETS_PER_SECOND = 20000
AGAINST = ' (against)'
PAYLOADS = (256, 1024, 4096)
BARE, SWEDGE, SRCAGENT, OVS = 'bare loop', 'swedge', 'srcagent', 'Open vSwitch'


class Requirement:
    """Median of 'of' / 'to', of the lanes' times per copy.  'bound' None: it is only shown."""

    def __init__(self, of, to, bound=None, at_most=False):
        self.of, self.to, self.bound, self.at_most = of, to, bound, at_most

    def holds(self, value):
        return value <= self.bound if self.at_most else value >= self.bound


class Comparison:
    """'make' is given a World and a build or None, and returns the lanes.  With a build it returns
    those of that build only."""

    def __init__(self, name, title, make, requirements=(), copies=8, payload=1024, unit='copy',
                 burst=64, run=None, slower=1, minus=(), saturate=False):
        self.name = name
        self.title = title
        self.make = make
        self.requirements = list(requirements)
        self.copies = copies
        self.payload = payload
        self.unit = unit
        self.burst = burst
        self.run = run
        self.slower = slower
        self.saturate = saturate    # also as fast as it goes?
        self.minus = dict(minus)    # {lane: the one whose time per packet is taken off its}.

    @property
    def rate(self):
        return min(PACKETS_PER_SECOND, COPIES_PER_SECOND // self.copies) // self.slower

    def lanes(self, world, against):
        """Those of the build, and those of the other."""
        yield from self.make(world, None)
        if against:
            for lane in self.make(world, against):
                lane.name += AGAINST
                yield lane


def slower(payload):
    """Sockets hold fewer of the large packets while the forwarder waits for its CPU."""
    return 2 if payload > 1024 else 1


def only(build, make_ours, *make_others):
    """Our lane, of 'build'; and those that it is compared with, unless 'build' is another one."""
    ours = make_ours()
    yield ours
    if not build:
        for make in make_others:
            yield make(ours)


@functools.lru_cache(None)
def has_option(build, option):
    """Does the build's swedge have it?"""
    text = subprocess.run([os.path.join(build, 'bin/swedge'), '--help'], stdout=subprocess.PIPE,
                          text=True, check=True).stdout
    return option in text


def edge(world, name, job, build, offload=True, **more):
    """An edge.  Without 'offload' each copy is a write of its own, as it is for the bare loop."""
    options = []
    if not offload and has_option(build or world.build, '--no-offload'):
        options = ['--no-offload']
    return Edge(world, name, job, build=build, options=options, **more)


def end_mt(name, title, job, bound=None, offload=False, endpoint=False, **more):
    """An edge beside a bare loop."""
    def make(world, build):
        yield from only(build, lambda: edge(world, SWEDGE, job, build, offload, endpoint=endpoint),
                        lambda other: Bare(world, other, endpoint=endpoint))
    return Comparison(name, title, make, [Requirement(BARE, SWEDGE, bound)], job.copies, job.payload,
                      slower=slower(job.payload) * (2 if endpoint else 1), **more)


def replicate(copies, payload, kind='packet'):
    def make(world, build):
        yield from only(
            build, lambda: Transit(world, SWEDGE, Job(copies, payload), build=build, port_kind=kind),
            lambda other: Bare(world, other), lambda other: OpenVSwitch(world, other))
    bare, ovs = (1.0, 2.0 if kind == 'xdp' else 1.5) if copies == 8 else (None, None)
    name = 'replicate-%d' % copies if kind == 'packet' else 'replicate-%s-%d' % (kind, copies)
    return Comparison(name, 'End.Replicate to %d veths, ports of kind %s' % (copies, kind), make,
                      [Requirement(BARE, SWEDGE, bare), Requirement(OVS, SWEDGE, ovs)], copies,
                      payload, slower=slower(payload))


ALONE, KERNEL_END, IP6MR = 'flooder alone', 'kernel seg6 End', 'kernel ip6mr'


def end():
    def make(world, build):
        yield from only(build, lambda: End(world, SWEDGE, Job(1), build=build),
                        lambda other: Bare(world, other), lambda other: KernelEnd(world, other),
                        lambda other: Alone(world, other))
    return Comparison('end', 'End, one veth to another', make,
                      [Requirement(BARE, SWEDGE), Requirement(KERNEL_END, SWEDGE)], 1, 1024,
                      minus={KERNEL_END: ALONE})


def ip6mr(copies):
    def make(world, build):
        yield from only(build, lambda: Transit(world, SWEDGE, Job(copies), build=build),
                        lambda other: KernelMulticast(world, other), lambda other: Alone(world, other))
    return Comparison('ip6mr-%d' % copies, 'End.Replicate and the kernel\'s multicast to %d veths' % copies,
                      make, [Requirement(IP6MR, SWEDGE)], copies, 1024, minus={IP6MR: ALONE})


def srcagent(payload):
    def make(world, build):
        yield from only(build, lambda: Agent(world, SRCAGENT, Job(8, payload), build=build),
                        lambda other: Bare(world, other))
    return Comparison('srcagent', 'srcagent down, tap to veth, 8 receivers named', make,
                      [Requirement(BARE, SRCAGENT, 0.9)], 1, payload,
                      slower=slower(payload))


def auth(payload):
    def make(world, build):
        for name, on in (('MT-AUTH off', False), ('MT-AUTH on', True)):
            yield edge(world, name, Job(8, payload, auth=on), build)
    return Comparison('auth', 'End.MT to 8 taps, with MT-AUTH and without', make,
                      [Requirement('MT-AUTH off', 'MT-AUTH on', 0.97)], 8, payload)


def groups(name, run, title):
    def make(world, build):
        for n in (1, 8, 64, 512):
            yield edge(world, '%d groups' % n, Job(8, 1024, groups=n), build, offload=False)
    return Comparison(name, title, make, [Requirement('1 groups', '%d groups' % n, 0.8)
                                          for n in (8, 64, 512)], 8, 1024, run=run)


def reverse():
    def make(world, build):
        for n in (8, 100, 1000):
            yield Aggregator(world, '%d branches' % n, n, build=build)
    return Comparison('reverse', 'Reverse path, answers of so many nodes', make,
                      [Requirement('100 branches', '8 branches'),
                       Requirement('1000 branches', '8 branches', 2, at_most=True)], 1, 0,
                      unit='ACK', run=1)


def threads():
    def make(world, build):
        if not has_option(build or world.build, '--threads'):
            raise Skipped('swedge has no option --threads')
        for n in (1, 2):
            yield Threaded(world, '%d thread%s' % (n, 's' * (n > 1)), Job(8, 1024), n, build=build,
                           options=['--threads=%d' % n],
                           cpus={FORWARDER_CPU} if n == 1 else {0, 1})
    return Comparison('threads', 'End.MT to 8 taps, two groups, by threads', make,
                      [Requirement('2 threads', '1 thread', 1.1, at_most=True)], 8, 1024, saturate=True)


def seccomp():
    """A system call for each copy: nowhere is there more to filter."""
    def make(world, build):
        if not has_option(build or world.build, '--no-seccomp'):
            raise Skipped('swedge has no option --no-seccomp')
        for name, options in (('no filter', ['--no-seccomp']), ('filter', [])):
            yield Edge(world, name, Job(8, 1024), build=build, options=['--no-offload', *options])
    return Comparison('seccomp', 'End.MT to 8 taps, with a filter of system calls and without', make,
                      [Requirement('no filter', 'filter')], 8, 1024)


def every():
    """All comparisons in order."""
    for n in (1, 4, 8, 32):
        for payload in PAYLOADS if n == 8 else (1024,):
            yield end_mt('end-mt-%d' % n, 'End.MT to %d taps' % n, Job(n, payload),
                         0.9 if n == 8 and payload >= 1024 else None)
    yield end_mt('burst-1', 'End.MT to 8 taps, packets evenly spaced', Job(8, 1024), burst=1)
    yield end_mt('middle', 'End.MT to 8 taps, in the middle of long messages', Job(8, 1024, middle=True))
    for payload in (1024, 4096):
        yield end_mt('offload', "End.MT to 8 taps with offload, endpoints' sockets", Job(8, payload), 1.5,
                     offload=True, endpoint=True)
        yield end_mt('offload-hook', 'End.MT to 8 taps with offload', Job(8, payload), offload=True)
    for n in (1, 4, 8):
        for payload in PAYLOADS if n == 8 else (1024,):
            yield replicate(n, payload)
    yield replicate(8, 1024, 'xdp')
    yield end()
    for n in (1, 8):
        yield ip6mr(n)
    for payload in PAYLOADS:
        yield srcagent(payload)
    yield auth(1024)
    yield groups('groups', None, 'End.MT to 8 taps, groups by turns, 64 packets each')
    yield groups('groups-mixed', 1, 'End.MT to 8 taps, each packet of another group')
    yield reverse()
    yield threads()
    yield seccomp()
