# SPDX-License-Identifier: Apache-2.0
"""Paths: what each node of a program makes of a packet, to the byte, and who is dropped where.

The fabrics are clos.yaml, the figure of draft-filsfils-srv6ops-srv6-ai-backend, and clos3.yaml, three
tiers.  Names of nodes on the way, "dpu1 leaf1 spine5", stand for the links between them.
"""
import contextlib
import itertools
import json
import os
import socket
import struct

from netlab import ROOT, Lab, model, no_faults
import packets
from packets import addressed, dropped, frames, send, traced_drops

import captures
from captures import ETH, IP6, NH_ICMPV6, NH_IPV6, NH_ROUTING, packed
from harness import castctl, castctl_json, check, check_equal, output, read, wait_until

ONE = 'leaf1,spine5,leaf3'
OTHER = 'leaf2,spine6,leaf4'
BACK = 'leaf4,spine6,leaf2'
TRANSFER = ('-n', '2', '-s', '16384')


def lab(*parameters):
    return Lab.shipped('clos', 'PROBE=off', *parameters)  # captures have nothing but data.


def probed_ovs():
    return Lab.shipped('clos', 'SPINE6=ovs')


def three_tiers():
    return Lab.shipped('clos3', 'PROBE=off')


serial = itertools.count()


def capture(lab, node, peer):
    return packets.capture(lab, node, peer, 'paths-%d.pcap' % next(serial))


def dpu1_address():
    return next(n['address'] for n in castctl_json('node', 'list') if n['name'] == 'dpu1')


#
# Programs hop by hop.
#

@contextlib.contextmanager
def on_the_way(lab, way):
    """Yields the captures of the links of a way, in its order: of what comes in at a node, or, if no
    program of ours is there, of what is sent to it."""
    nodes = way.split()
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(capture(lab, a, b) if b in lab.routers + lab.switches
                                   else capture(lab, b, a)) for a, b in zip(nodes, nodes[1:])]


def requests(path, **fields):
    """The data packets in a capture, as they are there: an outer header, or none.  'fields' are
    what the inner one has."""
    found = []
    for _, packet in captures.parse_capture(path):
        inner = getattr(packet, 'inner', packet)
        if inner.opcode <= captures.OP_WRITE_ONLY_IMM and all(
                getattr(inner, k) == v for k, v in fields.items()):
            found.append(packet)
    return found


def check_outer(lab, packet, address, dst, hlim, segments=()):
    """The outer header is H.Encaps.Red's, rebuilt from RFC 8986 section 5.2: of several containers all
    but the first are in the SRH, the last one first."""
    nh, srh = NH_IPV6, b''
    if segments:
        nh, n = NH_ROUTING, len(segments)
        srh = struct.pack('!BBBBBBH', NH_IPV6, 2 * n, 4, n, n - 1, 0, 0)
        srh += b''.join(packed(s) for s in reversed(segments))
    inner = packet.inner
    wanted = struct.pack('!IHBB', 6 << 28 | inner.tc << 20 | packet.flow_label,
                         len(srh) + len(inner.bytes), nh, hlim)
    wanted += packed(address) + packed(dst) + srh
    check_equal('outer header', packet.bytes[:len(wanted)].hex(), wanted.hex())
    check_equal('bytes in front', len(packet.bytes) - len(inner.bytes), len(wanted))


def check_program(lab, paths, destinations, source, segments=(), last=None):
    """Each packet with which what there is in 'paths' begins is there in all of them, with these
    outer destinations and one hop less each time, and the inner packet as it was; behind the last
    one, in the capture 'last', it is alone.  'segments': as check_outer(), at the first node."""
    first = requests(paths[0])
    check(first, 'no data in %s', paths[0])
    labels = {p.flow_label for p in first}
    check(len(labels) == 1 and labels.pop() >> 8, 'flow labels do not tell a path: %s', labels)
    for hop, (path, dst) in enumerate(zip(paths, destinations)):
        found = requests(path)
        check_equal('packets at hop %d' % hop, len(found), len(first))
        for was, now in zip(first, found):
            srh = segments if isinstance(now, captures.Encapsulated) else ()
            check_outer(lab, now, source, dst, 64 - hop, srh)
            check_equal('inner packet', now.inner.bytes.hex(), was.inner.bytes.hex())
    check_equal('SRHs', [isinstance(requests(p)[0], captures.Encapsulated) for p in paths],
                [bool(segments) and hop < len(destinations) - 1 for hop in range(len(destinations))])
    if last:
        found = requests(last)
        check_equal('packets behind the last node', len(found), len(first))
        for was, now in zip(first, found):
            check(isinstance(now, captures.Roce), 'an outer header is left')
            check(now.same_but_hop_limit(was.inner) and now.hlim == was.inner.hlim - 1,
                  'the inner packet is another one:\n%s\n%s', was.inner.bytes.hex(),
                  now.bytes.hex())


def pin(source, target, *path):
    castctl('--wait=agents', 'path', 'pin', source, target, *path)


def unpin(source, target):
    castctl('--wait=agents', 'path', 'unpin', source, target)


def program(name, way, destinations):
    """A path of the figure: what comes in at each node, and behind the last."""
    def case(lab):
        pin('gpu1', 'gpu3', name)
        model(None, ['gpu3'], '-n', '1', '-s', '64', source='gpu1')
        with no_faults(lab), on_the_way(lab, 'dpu1 ' + way + ' dpu3') as paths:
            model(None, ['gpu3'], *TRANSFER, source='gpu1')
        check_program(lab, paths[:-1], destinations, dpu1_address(), last=paths[-1])
        unpin('gpu1', 'gpu3')
    return 'program ' + name, case


# AB-18, AB-19 and AB-28 of docs/conformance.md: the draft's own examples.
# Proves AB-11, AB-13, AB-15, AB-18, AB-20, AB-21, AB-22, AB-23.
def program_1(lab):
    program(ONE, 'leaf1 spine5 leaf3', ['5f00:0:100:500:300::', '5f00:0:500:300::', '5f00:0:300::'])[1](lab)


# Proves AB-14, AB-19.
def program_2(lab):
    program(OTHER, 'leaf2 spine6 leaf4', ['5f00:0:200:600:400::', '5f00:0:600:400::', '5f00:0:400::'])[1](lab)


# Proves AB-28.
def program_switched(lab):
    program('leaf1,spine6,leaf3', 'leaf1 spine6 leaf3',
            ['5f00:0:100:600:300::', '5f00:0:600:300::', '5f00:0:300::'])[1](lab)


def all_paths(lab):
    """Every path from each host to each other one carries a transfer; those that are disjoint come
    first.

    Proves AB-2, AB-4, AB-8, AB-10, AB-14, AB-40, AB-43."""
    for target, n in (('gpu2', 2), ('gpu3', 8)):
        listed = castctl_json('path', 'list', 'gpu1', target)
        names = [p['path'] for p in listed]
        check(len(set(names)) == len(names) >= n, 'paths to %s: %s', target, names)
        check_equal('ranks', [p['rank'] for p in listed], list(range(1, len(listed) + 1)))
        check(all(p['usable'] for p in listed), 'not usable: %s', listed)
        first, second = (set(name.split(',')) for name in names[:2])
        check(not first & second and all(p['disjoint'] for p in listed[:2]),
              'the first two are not disjoint: %s', names[:2])
        if target == 'gpu3':
            check_equal('planes', [p['plane'] for p in listed[:2]], ['A', 'B'])
        for p in listed:
            pin('gpu1', target, p['path'])
            with no_faults(lab):
                model(None, [target], '-n', '1', '-s', '4096', source='gpu1')
        unpin('gpu1', target)


def same_leaf(lab):
    """GPU1 to GPU2: a program of one uSID.

    Proves AB-20."""
    pin('gpu1', 'gpu2', 'leaf2')
    model(None, ['gpu2'], '-n', '1', '-s', '64', source='gpu1')
    with on_the_way(lab, 'dpu1 leaf2 dpu2') as paths:
        model(None, ['gpu2'], *TRANSFER, source='gpu1')
    check_program(lab, paths[:1], ['5f00:0:200::'], dpu1_address(), last=paths[1])
    unpin('gpu1', 'gpu2')


def answers(lab):
    """ACKs take the path that the receiver's side has chosen, another one than the data's.

    Proves AB-1."""
    pin('gpu1', 'gpu3', ONE)
    pin('gpu3', 'gpu1', BACK)
    model(None, ['gpu3'], '-n', '1', '-s', '64', source='gpu1')
    with on_the_way(lab, 'dpu3 leaf4 spine6 leaf2 dpu1') as back, \
            on_the_way(lab, 'dpu1 leaf1 spine5') as data:
        report = model(None, ['gpu3'], *TRANSFER, source='gpu1')
    for path, dst in zip(back, ('5f00:0:400:600:200::', '5f00:0:600:200::', '5f00:0:200::', None)):
        seen = [p for _, p in captures.parse_capture(path)]
        acks = [p for p in seen if getattr(p, 'inner', p).opcode == captures.OP_ACK]
        check_equal('packets and ACKs', (len(seen), len(acks)),
                    (report['lanes'][0]['responses'],) * 2)
        check_equal('destinations', {captures.text(p.dst) for p in acks}, {dst or lab.address('gpu1')})
    for path in data:
        check(not [p for _, p in captures.parse_capture(path) if p.inner.opcode == captures.OP_ACK],
              'ACKs on the way of the data')
    unpin('gpu1', 'gpu3')
    unpin('gpu3', 'gpu1')


def dumped(data):
    return ['    ' + data[i:i + 20].hex(' ', 2) for i in range(0, len(data), 20)]


def walk_text(link, packet):
    """A packet on a link, as docs/packet-walk.md has it: the first line, outer header, inner packet.
    The flow label, which a path's number is in, is FFFFF."""
    inner = getattr(packet, 'inner', None)
    lines = ['%s > %s  %d bytes' % (*link, len(packet.frame))]
    if inner:
        outer = packet.bytes[:len(packet.bytes) - len(inner.bytes)]
        lines += ['  %s > %s, hop limit %d' % (captures.text(packet.src), captures.text(packet.dst),
                                               packet.hlim), *dumped(outer)]
        lines[2] = lines[2][:7] + 'F FFFF' + lines[2][13:]
    inner = inner or packet
    return lines + ['  %s > %s, hop limit %d, RDMA WRITE Only, DestQP %#x, PSN %d, ICRC %s' % (
        captures.text(inner.src), captures.text(inner.dst), inner.hlim, inner.dest_qp, inner.psn,
        inner.bytes[-captures.ICRC:].hex())]


def walk(lab):
    """docs/packet-walk.md shows what is captured.

    Proves AB-22, AB-23."""
    links = [('gpu1', 'dpu1'), ('dpu1', 'leaf1'), ('leaf1', 'spine5'), ('spine5', 'leaf3'),
             ('leaf3', 'dpu3'), ('dpu3', 'gpu3')]
    pin('gpu1', 'gpu3', ONE)
    with contextlib.ExitStack() as stack:
        paths = [stack.enter_context(capture(lab, b, a) if b != 'gpu3' else capture(lab, a, b))
                 for a, b in links]
        model(None, ['gpu3'], '-n', '1', '-s', '64', source='gpu1')
    unpin('gpu1', 'gpu3')
    lines = [line for link, path in zip(links, paths) for line in walk_text(link, requests(path)[0])]
    text = '```\n%s\n```\n' % '\n'.join(lines)
    shown = read(os.path.join(ROOT, 'docs/packet-walk.md')).decode()
    check(text in shown, 'docs/packet-walk.md is to show:\n%s', text)


def own_program(lab, containers, way, destinations):
    pin('gpu1', 'gpu3', '--uplink', way.split()[0], '--program', ','.join(containers))
    model(None, ['gpu3'], '-n', '1', '-s', '64', source='gpu1')
    with no_faults(lab), on_the_way(lab, 'dpu1 ' + way + ' dpu3') as paths:
        model(None, ['gpu3'], *TRANSFER, source='gpu1')
    check_program(lab, paths[:-1], destinations, dpu1_address(), containers[1:], last=paths[-1])
    unpin('gpu1', 'gpu3')


def with_srh(lab):
    """Seven nodes: the second container is in an SRH of 24 bytes, which the node takes out (PSP) that
    takes the container from it.

    Proves AB-3, AB-17."""
    shifted = ['100:500:200:600:400:500', '500:200:600:400:500', '200:600:400:500', '600:400:500',
               '400:500', '500']
    own_program(lab, ['5f00:0:' + shifted[0], '5f00:0:300::'],
                'leaf1 spine5 leaf2 spine6 leaf4 spine5 leaf3',
                ['5f00:0:' + shifted[0]] + ['5f00:0:%s::' % s for s in shifted[1:]] + ['5f00:0:300::'])


def port_mac(lab, node, peer):
    ports = json.loads(lab.appctl(node, 'rocecast/ports', '-j'))
    return bytes.fromhex(next(p['mac'] for p in ports if p['peer'] == peer).replace(':', ''))


def port_number(lab, node, peer):
    return int.from_bytes(port_mac(lab, node, peer)[4:], 'big')


def adjacencies(lab):
    """A program of uAs only, the sequence of interfaces: the last one takes the header off, too.

    Proves AB-25."""
    usids = ['e1%02x' % port_number(lab, a, b)
             for a, b in (('leaf1', 'spine6'), ('spine6', 'leaf4'), ('leaf4', 'dpu3'))]
    own_program(lab, ['5f00:0:%s::' % ':'.join(usids)], 'leaf1 spine6 leaf4',
                ['5f00:0:%s::' % ':'.join(usids[i:]) for i in range(3)])


def explicit_end(lab):
    """The last node's End.DT6 in the place of its uN."""
    own_program(lab, ['5f00:0:100:500:300:e003::'], 'leaf1 spine5 leaf3',
                ['5f00:0:100:500:300:e003::', '5f00:0:500:300:e003::', '5f00:0:300:e003::'])


def six_usids(lab):
    """Three tiers, and the receiver's agent as the end: the container is full, and there is no SRH.

    Proves AB-16."""
    usids = ['101', '201', '301', '202', '102', 'a3']
    pin('gpu1', 'gpu3', 'leaf1,spine1,core1,spine2,leaf2')
    model(None, ['gpu3'], '-n', '1', '-s', '64', source='gpu1')
    with no_faults(lab), \
            on_the_way(lab, 'dpu1 leaf1 spine1 core1 spine2 leaf2 dpu3') as paths:
        model(None, ['gpu3'], *TRANSFER, source='gpu1')
    check_program(lab, paths, ['5f00:0:' + ':'.join(usids[i:]) + ('::' if i else '')
                               for i in range(6)], dpu1_address())
    unpin('gpu1', 'gpu3')


def leaf_as_headend(lab):
    """A host without agent: its leaf puts the header in front, and the other takes it off."""
    pin('h1', 'h3', 'spine1,core1,spine2,leaf2')
    model(None, ['h3'], '-n', '1', '-s', '64', source='h1')
    with no_faults(lab), on_the_way(lab, 'leaf1 spine1 core1 spine2 leaf2') as paths:
        model(None, ['h3'], *TRANSFER, source='h1')
    leaf1 = next(n['address'] for n in castctl_json('node', 'list') if n['name'] == 'leaf1')
    usids = ['201', '301', '202', '102']
    check_program(lab, paths, ['5f00:0:%s::' % ':'.join(usids[i:]) for i in range(4)], leaf1)
    unpin('h1', 'h3')


#
# What goes wrong.
#

class Attempt:
    """A packet of gpu1 to gpu3, as dpu1 sends it to leaf1, to be sent with other headers."""

    def __init__(self, lab):
        self.lab = lab
        pin('gpu1', 'gpu3', ONE)
        with capture(lab, 'leaf1', 'dpu1') as path:
            model(None, ['gpu3'], '-n', '1', '-s', '64', source='gpu1')
        self.frame = requests(path)[-1].frame
        unpin('gpu1', 'gpu3')

    def with_outer(self, dst, hlim=64, segments=(), segments_left=0):
        """The frame with this outer destination, and an SRH with these segments, the last one first."""
        nh, srh = NH_IPV6, b''
        if segments:
            nh, n = NH_ROUTING, len(segments)
            srh = struct.pack('!BBBBBBH', NH_IPV6, 2 * n, 4, segments_left, n - 1, 0, 0)
            srh += b''.join(map(packed, segments))
        ip, inner = self.frame[ETH:ETH + IP6], self.frame[ETH + IP6:]
        return (self.frame[:ETH] + ip[:4] + struct.pack('!HBB', len(srh) + len(inner), nh, hlim)
                + ip[8:24] + packed(dst) + srh + inner)

    def drops(self, frame, node, reason, answer=None):
        """Sent to leaf1 it is dropped at 'node' for 'reason', counted once, and nowhere else; dpu1
        gets no answer, but for an ICMPv6 error of type 'answer'."""
        lab = self.lab
        before = lab.faults()
        with capture(lab, 'leaf1', 'dpu1') as path, \
                capture(lab, 'leaf3', 'dpu3') as through:
            send(lab, 'dpu1', 'leaf1', [frame])
            wait_until('%s counts %s; it is %s' % (node, reason, lab.faults()),
                       lambda: dropped(lab, node, reason) - before.get((node, reason), 0) == 1)
            if answer:
                wait_until('an answer', lambda: icmp_errors(path))
        # An error goes back to its sender and is counted there when it comes.
        grown = {k: n - before.get(k, 0) for k, n in lab.faults().items()
                 if n != before.get(k, 0) and k != ('dpu1', 'icmp_error')}
        check_equal('dropped', grown, {(node, reason): 1})
        check_equal('answers', [(t, captures.text(dst)) for t, dst in icmp_errors(path)],
                    [(answer, dpu1_address())] if answer else [])
        check_equal('packets that came through', requests(through), [])


def icmp_errors(path):
    """(type, destination) of the ICMPv6 errors in a capture."""
    return [(f[ETH + IP6], f[38:54]) for f in frames(path, growing=True)
            if f[12:14] == b'\x86\xdd' and f[20] == NH_ICMPV6 and f[ETH + IP6] < 128]


def broken_programs(lab):
    """Each fault of a program is a counter of its own, at the node that meets it, and draws no answer
    but for a function that is not there and a hop limit that ends.

    Proves AB-12, AB-24."""
    attempt = Attempt(lab)
    own = '5f00:0:100:100:100:100:100:100'
    for dst, node, reason in (
            ('5f00:0:100:500:777::', 'spine5', 'usid_unknown'),   # of nobody
            ('5f00:0:100:300::', 'leaf1', 'usid_unknown'),        # of a node that is not a neighbour
            ('5f00:0:100:0:300::', 'leaf1', 'usid_zero'),
            ('5f00:0:100:500:0:300::', 'spine5', 'usid_zero')):
        attempt.drops(attempt.with_outer(dst), node, reason)
    # A function that the node does not have is an address that it does not have.
    attempt.drops(attempt.with_outer('5f00:0:100:500:e1ff::'), 'spine5', 'sid_unknown', answer=1)
    attempt.drops(attempt.with_outer(own, segments=[own], segments_left=1), 'leaf1', 'usid_own_limit')
    attempt.drops(attempt.with_outer('5f00:0:100:500:300::', hlim=1), 'leaf1', 'hop_limit', answer=3)
    attempt.drops(attempt.with_outer('5f00:0:100:500:300::', hlim=2), 'spine5', 'hop_limit', answer=3)


def own_usids(lab):
    """A node's own uSID some times in a row is as if it were there once."""
    attempt = Attempt(lab)
    with no_faults(lab), capture(lab, 'leaf3', 'dpu3') as path:
        send(lab, 'dpu1', 'leaf1', [attempt.with_outer('5f00:0:100:100:100:500:300::')])
        wait_until('it comes through', lambda: len(frames(path, growing=True)) >= 1)
    check_equal('packets', len(requests(path)), 1)


def links_down(lab):
    """What names a link that is down, or gone, is dropped before that, and goes no other way; what goes
    another way is not disturbed.

    Proves AB-9, AB-12, AB-31."""
    attempt = Attempt(lab)
    frame = attempt.with_outer('5f00:0:100:500:300::')
    device = lab.port('spine5', 'leaf3')
    shifted = port_mac(lab, 'spine5', 'leaf1') + addressed(frame, dst='5f00:0:500:300::')[6:]
    with contextlib.ExitStack() as stack:
        others = [stack.enter_context(capture(lab, 'spine5', peer))
                  for peer in ('leaf2', 'leaf4')]
        output('castlab', 'exec', 'spine5', '--', 'ip', 'link', 'set', device, 'down')
        wait_until('spine5 knows', lambda: traced_drops(
            lab, 'spine5', 'leaf1', shifted) == (['usid_link_down'], False))
        attempt.drops(frame, 'spine5', 'usid_link_down')
        with no_faults(lab):
            pin('gpu1', 'gpu3', OTHER)
            pin('gpu3', 'gpu1', BACK)
            model(None, ['gpu3'], *TRANSFER, source='gpu1')
        unpin('gpu1', 'gpu3')
        unpin('gpu3', 'gpu1')   # the last ACK is said again, on the path that is down.
        output('castlab', 'exec', 'spine5', '--', 'ip', 'link', 'set', device, 'up')
        castctl('--wait=agents', 'link', 'del', 'spine5:leaf3', '--force')
        attempt.drops(frame, 'spine5', 'usid_unknown')
    for path in others:
        check_equal('detours', requests(path), [])
    names = [p['path'] for p in castctl_json('path', 'list', 'gpu1', 'gpu3') if p['usable']]
    check(names and ONE not in names, 'usable paths: %s', names)
    castctl('--wait=agents', 'link', 'add', 'spine5:leaf3', 'leaf3:spine5')
    pin('gpu1', 'gpu3', ONE)
    model(None, ['gpu3'], *TRANSFER, source='gpu1')
    unpin('gpu1', 'gpu3')


def forbidden_programs(lab):
    """An agent that may use some programs only is held to them by its leaves; a host may use none.

    Proves AB-46, AB-47, AB-48."""
    attempt = Attempt(lab)
    allowed, other = (attempt.with_outer('5f00:0:100:%s:300::' % s) for s in ('500', '600'))
    castctl('--wait=agents', 'node', 'set', 'dpu1', '--programs', '5f00:0:100:500::/64')
    attempt.drops(other, 'leaf1', 'program_guard')
    with no_faults(lab), capture(lab, 'leaf3', 'dpu3') as path:
        send(lab, 'dpu1', 'leaf1', [allowed])
        wait_until('it comes through', lambda: len(frames(path, growing=True)) >= 1)
    castctl('--wait=agents', 'node', 'set', 'dpu1', '--programs', '')
    before = dropped(lab, 'dpu1', 'source_guard')
    send_from_host(lab, 'gpu1', [from_host(lab, allowed)])
    wait_until('dpu1 counts it', lambda: dropped(lab, 'dpu1', 'source_guard') == before + 1)


#
# Which path.
#

def send_from_host(lab, host, sent):
    """Sends frames as the host would."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
        s.bind(('%s-%s' % (lab.name, host), 0))
        for frame in sent:
            s.send(frame)


def from_host(lab, frame):
    """The frame with the Ethernet addresses of gpu1's link."""
    return port_mac(lab, 'dpu1', 'gpu1') + b'\x02\0\0\0\0\1' + frame[12:]


def of_qp(lab, inner, qpn):
    """The RoCE packet as from gpu1 to this DestQP."""
    ip = inner[:-captures.ICRC]
    at = IP6 + captures.UDP + 5
    ip = ip[:at] + qpn.to_bytes(3, 'big') + ip[at + 3:]
    return from_host(lab, b'\0' * 12 + b'\x86\xdd' + ip + captures.icrc(ip))


def live(source, target):
    return {p['path']: p for p in castctl_json('path', 'list', source, target, '--live')}


def spread(lab):
    """Flows are placed in turn, over disjoint paths first; a flow stays where it is.

    Proves AB-5, AB-6, AB-7, AB-26, AB-40."""
    inner = Attempt(lab).frame[ETH + IP6:]
    castctl('--wait=agents', 'path', 'policy', 'gpu1', 'spread')
    names = [p['path'] for p in castctl_json('path', 'list', 'gpu1', 'gpu3')]
    qpns = range(0x1000, 0x1000 + len(names))
    with capture(lab, 'dpu1', 'leaf1') as one, \
            capture(lab, 'dpu1', 'leaf2') as other:
        for _ in range(3):
            send_from_host(lab, 'gpu1', [of_qp(lab, inner, q) for q in qpns])
        wait_until('all are sent', lambda: sum(
            len(frames(p, growing=True)) for p in (one, other)) >= 3 * len(names))
    taken = {}
    for packet in requests(one) + requests(other):
        if packet.inner.dest_qp in qpns:
            taken.setdefault(packet.inner.dest_qp, []).append(captures.text(packet.dst))
    check_equal('packets of each flow', {len(d) for d in taken.values()}, {3})
    check_equal('paths of each flow', {len(set(d)) for d in taken.values()}, {1})
    check_equal('paths that are in use', len({d[0] for d in taken.values()}), len(names))
    first = [taken[q][0].split(':')[2:5] for q in qpns[:2]]
    check(not set(first[0]) & set(first[1]), 'the first two flows share a node: %s', first)
    castctl('--wait=agents', 'path', 'policy', 'gpu1', 'failover')


def choices(lab):
    """Pins, exclusions and their ends take effect with the next packet, and leave the rest alone.

    Proves AB-28, AB-29, AB-5."""
    def counts():
        return {name: p['packets'] for name, p in live('gpu1', 'gpu3').items()}

    def taken():
        """The paths that a transfer takes."""
        before = counts()
        model(None, ['gpu3'], *TRANSFER, source='gpu1')
        after = counts()
        return sorted(n for n in after if after[n] != before.get(n, 0))
    usual = castctl_json('path', 'list', 'gpu1', 'gpu3')[0]['path']
    with no_faults(lab):
        check_equal('failover takes', taken(), [usual])
        pin('gpu1', 'gpu3', 'leaf2,spine5,leaf4')
        check_equal('the pin takes', taken(), ['leaf2,spine5,leaf4'])
        unpin('gpu1', 'gpu3')
        check_equal('without pin', taken(), [usual])
        spine = usual.split(',')[1]
        castctl('--wait=agents', 'path', 'exclude', spine)
        path, = taken()
        check(spine not in path.split(','), 'an excluded node is on %s', path)
        check_equal('usable', {n for n, p in live('gpu1', 'gpu3').items() if not p['usable']},
                    {n for n in counts() if spine in n.split(',')})
        castctl('--wait=agents', 'path', 'include', spine)
        castctl('--wait=agents', 'path', 'exclude', 'gpu1', 'gpu3', usual)
        check(usual not in taken(), 'an excluded path is taken')
        castctl('--wait=agents', 'path', 'include', 'gpu1', 'gpu3', usual)
        check_equal('in the end', taken(), [usual])


def pinned_and_gone(lab):
    """A pin is an order: if its path is not usable nothing is sent.

    Proves AB-5."""
    attempt = Attempt(lab)
    pin('gpu1', 'gpu3', ONE)
    castctl('--wait=agents', 'path', 'exclude', 'spine5')
    before = dropped(lab, 'dpu1', 'path_none')
    send_from_host(lab, 'gpu1', [of_qp(lab, attempt.frame[ETH + IP6:], 0x2000)])
    wait_until('dpu1 counts it', lambda: dropped(lab, 'dpu1', 'path_none') == before + 1)
    castctl('--wait=agents', 'path', 'include', 'spine5')
    unpin('gpu1', 'gpu3')


def by_plain_ip(lab):
    """Who looks at a link needs nothing that plain IP does not have: the outer header is IPv6, and what
    it costs is 40 bytes.

    Proves AB-41, AB-42."""
    pin('gpu1', 'gpu3', ONE)
    before = castctl_json('stats', 'spine5')['spine5']
    with capture(lab, 'spine5', 'leaf1') as path:
        model(None, ['gpu3'], *TRANSFER, source='gpu1')
    text = output('tcpdump', '-n', '-r', path, 'ip6', 'and', 'dst', '5f00:0:500:300::')
    check(text.count('5f00:0:a1::1 > 5f00:0:500:300::') >= len(requests(path)), 'tcpdump: %s', text)
    after = castctl_json('stats', 'spine5')['spine5']
    check_equal('groups and flows at the spine', after['groups'], before['groups'])
    unpin('gpu1', 'gpu3')


#
# Probes.
#

PROBE_PORT = 862
UDP_CSUM = ETH + IP6 + 6


def health():
    """(from, to, path) of all paths, and what their probes say now."""
    return {(p['from'], p['to'], p['path']): p['state']
            for source in ('gpu1', 'gpu2', 'gpu3', 'gpu4')
            for p in castctl_json('path', 'health', source, '--live')}


def wait_bad(what, is_bad):
    """Waits until exactly those paths are bad of which is_bad(name) is true, and the others good."""
    def as_wanted():
        return {state == ('bad' if is_bad(path) else 'good')
                for (_, _, path), state in health().items()} == {True}
    wait_until(what, as_wanted)


def probes_in(path):
    """(has a checksum, goes on to spine6) of the probes and answers in a capture that are sent to leaf1."""
    return {(f[UDP_CSUM:UDP_CSUM + 2] != b'\0\0', f[44:46] == b'\x06\0')
            for f in frames(path, growing=True)
            if f[12:14] == b'\x86\xdd' and f[20] == captures.NH_UDP and f[42:44] == b'\x01\0'
            and PROBE_PORT in struct.unpack('!HH', f[ETH + IP6:ETH + IP6 + 4])}


# Proves AB-32.
def probes_over_ovs(lab):
    """Probes come back over an Open vSwitch, too, which leaves a checksum of 0 alone; all others have
    one.  A link to it that loses all is found."""
    wait_bad('all paths are good', lambda path: False)
    wait_until('no faults', lambda: not castctl_json('path', 'fault'))
    with capture(lab, 'leaf1', 'dpu1') as seen:
        wait_until('probes by both spines', lambda: len(probes_in(seen)) > 1)
        check_equal('checksums', probes_in(seen), {(True, False), (False, True)})
    castctl('--wait=agents', 'link', 'impair', 'leaf1', 'spine6', 'loss=100%')
    wait_bad('what passes that link, or whose answers do, is bad',
             lambda path: 'leaf1,spine6' in path or 'spine6,leaf1' in path)
    wait_until('the fault is confirmed', lambda: [
        [e['direction'] for e in f['candidates']] for f in castctl_json('path', 'fault')
        if f['confirmed']] == [['leaf1>spine6']])
    castctl('--wait=agents', 'link', 'impair', 'leaf1', 'spine6', 'none')
    wait_bad('all paths are good again', lambda path: False)


CASES = [walk, program_1, program_2, program_switched, all_paths, same_leaf, answers, with_srh, adjacencies,
         explicit_end, broken_programs, own_usids, links_down, forbidden_programs, spread, choices,
         pinned_and_gone, by_plain_ip]
THREE_TIER_CASES = [six_usids, leaf_as_headend]
# What forwarders that are not ours do as a spine.
PROBED_CASES = [probes_over_ovs]
SPINE_CASES = [program_1, program_2, answers]
