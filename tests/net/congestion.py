# SPDX-License-Identifier: Apache-2.0
"""Congestion on live daemons: marks, CNPs, Fast CNPs and IOAM traces as they are on the wire, what the
source's agent does about them, and what it does not.

Packets are checked by tests/e2e/cnp.py, which shares nothing with the forwarders, and by tshark where
that is installed.

The machine may be slow: nothing here depends on how long something takes.  A queue in front of a rate
fills faster, or slower, than it would on an idle machine, so that thresholds are where a burst of a
process that has not run for some milliseconds does not reach the limit.
"""
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter

from many import Crowd, Process
from netlab import ROOT, Lab, Loop, group_add, model, no_faults
from packets import capture, dropped, frames

import cnp
import harness
from captures import ETH, packed, text
from harness import castctl, castctl_json, check, check_equal, output, wait_until
from trees import FIG1

CE = 3
LINE = 200e6
RATE = 20e6
# At RATE a frame with a path MTU of 1024 takes 0.44 ms.  The window of a queue pair is 129 packets.
CONGESTED = ('rate=20M', 'queue=200', 'kmin=8', 'kmax=32')
# The first frame that comes while two wait, and each one after it.
AT_ONCE = ('rate=20M', 'queue=200', 'kmin=1', 'kmax=1')
HOST = 'fd00:1::100'
FLOOR = LINE / 200      # of a rate.
FORGED = 50
FLOOD = 100000
FLOOD_ROUNDS = 10 if os.environ.get('LONG') else 1
# What is counted as dropped when it has done what it is for.
SIGNALS = 'cnp', 'cnp_soon', 'fast_cnp', 'fast_cnp_soon'
FAST_CNP_REASONS = ['fast_cnp' + r for r in ('', '_off', '_malformed', '_source', '_icrc', '_flow', '_soon',
                                             '_border')]


#
# What there is.
#

def flows():
    return castctl_json('stats', 'sa')['sa']['flows']


def flow(group):
    """What the source's agent says of a group's flow; None if it was never told of congestion."""
    return next((f for f in flows() if f['group'] == group), None)


def limited(group):
    """The flow, if it is slowed down now."""
    f = flow(group)
    return f if f and f['rate'] else None


def is_free(group):
    """Is the flow not slowed down, or hardly so?"""
    f = limited(group)
    return not f or f['rate'] >= 0.95 * LINE


def queue(lab, node, peer):
    """Counters of the queue in front of the port towards 'peer'."""
    return next(q for q in castctl_json('stats', node)[node]['queues'] if q['port'] == lab.port(node, peer))


def counts(lab, *reasons):
    """Packets dropped for these reasons, by node and reason."""
    return {k: n for k, n in lab.faults().items() if k[1] in reasons}


def difference(after, before):
    return {k: n - before.get(k, 0) for k, n in after.items() if n != before.get(k, 0)}


class link:
    """In its block the link is as these words say."""

    def __init__(self, a, b, *words):
        self.ends, self.words = (a, b), words

    def __enter__(self):
        castctl('--wait=agents', 'link', 'impair', *self.ends, *self.words)

    def __exit__(self, kind, value, tb):
        castctl('--wait=agents', 'link', 'impair', *self.ends, 'none')


class settings:
    """In its block castctl's COMMAND has set these options, later again what they were before."""

    def __init__(self, command, options, after):
        self.command, self.options, self.after = command, options, after

    def __enter__(self):
        castctl('--wait=agents', *self.command, *self.options)

    def __exit__(self, kind, value, tb):
        castctl('--wait=agents', *self.command, *self.after)


def fast_cnp_on():
    return settings(('congestion', 'set'), ('--fast-cnp', 'on'), ('--fast-cnp', 'off'))


def uncontrolled():
    return settings(('host', 'set', 'h0'), ('--rate-control', 'none'), ('--rate-control', 'agent'))


def ip_frames(path):
    return [f[ETH:] for f in frames(path) if f[12:14] == b'\x86\xdd']


def data_packets(path):
    """IPv6 packets around requests."""
    return [ip for ip in ip_frames(path) if cnp.bth_at(ip) and ip[cnp.bth_at(ip)] <= 0x0b]


def node_address(name):
    return next(n['address'] for n in castctl_json('node', 'list') if n['name'] == name)


def mac(lab, node, peer):
    return bytes.fromhex(next(p['mac'] for p in json.loads(lab.appctl(node, 'rocecast/ports', '-j'))
                              if p['peer'] == peer).replace(':', ''))


#
# Marks and CNPs.
#

def psn_and_ecn(ip):
    psn = cnp.bth_at(ip) + 9
    return ip[psn:psn + 3], cnp.ecn_fields(ip)


def marks(lab):
    """A fabric link's queue sets CE in the outer header of what can be marked; the edge takes it in, so that
    what its receivers get has it, and says so upwards.  What cannot be marked is dropped in its place."""
    group_add('gm', '--timeout', '14')
    with uncontrolled(), link('n6', 'n4', *CONGESTED), capture(lab, 'n6', 'n4', 'm-begin.pcap') as begin, \
            capture(lab, 'n1', 'n4', 'm-in.pcap') as in_path, capture(lab, 'n1', 'r1', 'm-out.pcap') as out_path, \
            capture(lab, 'n3', 'r4', 'm-else.pcap') as other:
        model('gm', FIG1.receivers, '-n', '20', '--ecn')
        # What was sent again may still be on its way.
        wait_until('the queue is empty', lambda: not queue(lab, 'n6', 'n4')['depth'])
        marked = queue(lab, 'n6', 'n4')['marked']
        sent, received, copies, elsewhere = (data_packets(p) for p in (begin, in_path, out_path, other))
    check_equal('marks, as n6 has counted', marked, [cnp.ecn_fields(ip) for ip in sent].count((CE, 2)))
    # A busy machine may have lost some on the way.
    check_equal('packets at n1 that n6 has not sent so',
                Counter(map(psn_and_ecn, received)) - Counter(map(psn_and_ecn, sent)), Counter())
    fields = [cnp.ecn_fields(ip) for ip in received]
    n_marked = fields.count((CE, 2))
    check(0 < n_marked < len(received), '%d of %d packets came with CE', n_marked, len(received))
    check_equal('ECN fields at n1', set(fields), {(2, 2), (CE, 2)})
    check_equal('copies for r1 with CE', [cnp.ecn_fields(ip) for ip in copies].count((CE,)), n_marked)
    check_equal('CE at r4', {cnp.ecn_fields(ip) for ip in elsewhere}, {(2,)})

    before = counts(lab, 'egress_red')
    with uncontrolled(), link('n6', 'n4', *CONGESTED), capture(lab, 'n1', 'r1', 'm-not.pcap') as path:
        model('gm', FIG1.receivers, '-n', '4')
        check_equal('ECN of Not-ECT packets', {cnp.ecn_fields(ip) for ip in data_packets(path)}, {(0,)})
    check_equal('who has dropped what cannot be marked', set(difference(counts(lab, 'egress_red'), before)),
                {('n6', 'egress_red')})


def share(lab, loop, node, peer):
    """Of the branch's rate, what it has carried while 3000 packets more were confirmed."""
    def state():
        q = queue(lab, node, peer)
        return time.monotonic(), q['sent_bytes']
    begun, sent = state()
    loop.wait_progress('n6', 3000)
    ended, sent_now = state()
    return (sent_now - sent) * 8 / (ended - begun) / RATE


def slows_down(lab, group, cause, node):
    """In a transfer that is under way the edge port towards r1 becomes slow: the source's agent slows the
    group down, to what the branch can take, without loss, and lets it go when it is well again."""
    loop = Loop(lab, group, FIG1.receivers, '--ecn', '-t', '16')
    loop.wait_progress('n6')
    check(not limited(group), 'slowed down without congestion: %s', flow(group))
    with no_faults(lab, *SIGNALS), link('n1', 'r1', *CONGESTED):
        first = wait_until('%s is slowed down' % group, lambda: limited(group))
        check_equal('who has caused it', (first['cause'], first['node']), (cause, node))
        carried = wait_until('the branch is used well', lambda: (
            lambda s: s if s > 0.6 else None)(share(lab, loop, 'n1', 'r1')))
        f, q = flow(group), queue(lab, 'n1', 'r1')
        print('      share of the branch %.2f; %s; queue at n1: %s' % (carried, f, q))
        check(q['max_depth'] < 200 and not q['full'], 'the queue at n1: %s', q)
        check(f['cuts'] <= f['cnps'] + f['fast_cnps'], 'more cuts than signals: %s', f)
    wait_until('%s is let go' % group, lambda: is_free(group))
    loop.wait_progress('n6')
    lane, = loop.stop()['lanes']
    check_equal('packets that were sent again', lane['retries'], 0)
    return f


# Proves MT-5.3-2, MT-5.3.3-5, FC-5.
def slowed_by_cnps(lab):
    group_add('gc', '--timeout', '20')
    with capture(lab, 'sa', 'n6', 'cnps.pcap') as path:
        f = slows_down(lab, 'gc', 'cnp', None)
        group = castctl_json('group', 'show', 'gc')
        cnps = [ip for ip in ip_frames(path) if cnp.bth_at(ip) and ip[cnp.bth_at(ip)] == cnp.OP_CNP]
    check(f['cnps'] and not f['fast_cnps'] and cnps, 'signals: %s, %d CNPs captured', f, len(cnps))
    for ip in cnps:
        inner = ip[cnp.headers(ip)[-1][1] - 40:]
        wanted = cnp.cnp(group['proxy'], HOST, group['source']['qpn'], int.from_bytes(inner[40:42], 'big'))
        check(inner[:7] == wanted[:7] and inner[8:] == wanted[8:], 'CNP %s, should be %s', inner.hex(), wanted.hex())


# Proves MT-1.1-3, FC-6, FC-7, FC-8, FC-10, FC-12, FC-13, FC-17, FC-18, FC-23.
def slowed_by_fast_cnps(lab):
    group_add('gf', '--timeout', '20')
    soon = dropped(lab, 'sa', 'fast_cnp_soon')
    with fast_cnp_on(), capture(lab, 'n6', 'n4', 'fast.pcap') as path, capture(lab, 'n1', 'r1', 'fast-r1.pcap') as r1:
        slows_down(lab, 'gf', 'fast-cnp', 'n1')
        f, soon = flow('gf'), dropped(lab, 'sa', 'fast_cnp_soon') - soon
        group = castctl_json('group', 'show', 'gf')
        found = cnp.fast_cnps(frames(path))
        copies = {cnp.ecn_fields(ip) for ip in data_packets(r1)}
    check(f['fast_cnps'] and not f['cnps'], 'signals: %s', f)
    check_equal('ECN fields of copies, whose sender is told otherwise', copies, {(2,)})
    check_equal('Fast CNPs that were captured', len(found), f['fast_cnps'] + soon)
    check_equal('who says what', {(c.option, text(c.src), text(c.dst), text(c.original), c.dest_qp) for c in found},
                {(1, node_address('n1'), HOST, group['proxy'], group['designated_qpn'])})
    tshark_reads(path, len(found), '16')


# Proves FC-19, FC-20, FC-21, FC-22.
def option_1(lab):
    """A transit node's port is congested: its Fast CNP names the group as the source has it."""
    group_add('g1')
    with fast_cnp_on(), link('n4', 'n1', *AT_ONCE), capture(lab, 'sa', 'n6', 'o1.pcap') as path:
        model('g1', FIG1.receivers, '-n', '5', '--ecn')
        group = castctl_json('group', 'show', 'g1')
        found = cnp.fast_cnps(frames(path))
    check_equal('who says what', {(c.option, text(c.src), text(c.dst), text(c.original), c.dest_qp) for c in found},
                {(1, node_address('n4'), HOST, group['proxy'], group['designated_qpn'])})


# Proves FC-24, FC-25, FC-26, FC-27.
def option_2(lab):
    """With traces a Fast CNP brings back what each node on the way has written, the congested one last."""
    group_add('g2', '--trace', '4')
    with fast_cnp_on(), link('n4', 'n1', *AT_ONCE), capture(lab, 'n6', 'n4', 'o2.pcap') as path:
        model('g2', FIG1.receivers, '-n', '5', '--ecn')
        group = castctl_json('group', 'show', 'g2')
        found = cnp.fast_cnps(frames(path))
        f = flow('g2')
    check(found, 'no Fast CNP came')
    ids = {n['name']: n['id'] for n in castctl_json('node', 'list')}
    for c in found:
        check_equal('who says what', (c.option, text(c.src), text(c.dst), text(c.original), c.dest_qp),
                    (2, node_address('n4'), HOST, group['proxy'], group['designated_qpn']))
        elements = c.trace.fields()
        check_equal('slots, and by whom they are', (c.trace.free, [e[1] for e in elements]),
                    (1, [ids[n] for n in ('n4', 'n6', 'sa')]))
        check_equal('hop limits', [elements[0][0] + i for i in range(3)], [e[0] for e in elements])
        check(all(abs(e[2] - time.time()) < 60 and e[3] < 1000000 for e in elements), 'times: %r', elements)
        check(elements[0][5] > 0, 'nothing waits at the congested node: %r', elements)
    check(f['node'] == 'n4' and f['depth'] in [c.trace.fields()[0][5] for c in found],
          "the agent's %s, of %r", f, [c.trace.fields()[0][5] for c in found])
    tshark_reads(path, len(found), '104')


def tshark_reads(path, n, length):
    """Another program finds so many packets with an option of this type and length, and nothing wrong."""
    if not shutil.which('tshark'):
        print('      not shown to tshark: it is not installed')
        return
    said = output('tshark', '-r', path, '-Y', 'ipv6.opt.type == 0x9e', '-T', 'fields', '-e', 'ipv6.opt.length',
                  '-e', 'infiniband.bth.opcode', '-e', '_ws.malformed')
    lines = [line.split('\t') for line in said.splitlines()]
    check_equal('what tshark finds', (len(lines), {line[0].split(',')[-1] for line in lines},
                                      {int(line[1], 0) for line in lines}, {line[2] for line in lines}),
                (n, {length}, {cnp.OP_CNP}, {''}))


# Proves FC-28.
def controller_of_depth(lab):
    """The other controller cuts by what the trace says of the queue."""
    group_add('gd', '--timeout', '20', '--trace', '4')
    with settings(('host', 'set', 'h0'), ('--controller', 'depth'), ('--controller', 'dcqcn')), fast_cnp_on():
        loop = Loop(lab, 'gd', FIG1.receivers, '--ecn', '-t', '16')
        loop.wait_progress('n6')
        with no_faults(lab, *SIGNALS), link('n4', 'n1', *CONGESTED):
            f = wait_until('gd is slowed down', lambda: limited('gd'))
            check(f['depth'] > 0 and f['node'] == 'n4', 'the cut: %s', f)
            loop.wait_progress('n6')
        lane, = loop.stop()['lanes']
        check_equal('packets that were sent again', lane['retries'], 0)


def own_uplink(lab):
    """The agent's own port is the congested one."""
    group_add('go', '--timeout', '20')
    with fast_cnp_on(), no_faults(lab, *SIGNALS), link('sa', 'n6', *CONGESTED), capture(lab, 'sa', 'h0', 'own.pcap') as path:
        model('go', FIG1.receivers, '-n', '40', '--ecn')
        f = flow('go')
        at_host = [ip for ip in ip_frames(path) if cnp.NH_DEST_OPTIONS in [nh for nh, _ in cnp.headers(ip)]
                   or cnp.bth_at(ip) and ip[cnp.bth_at(ip)] == cnp.OP_CNP]
    check_equal('CNPs at the host', at_host, [])
    check(f and f['cuts'] and f['node'] == 'sa', 'the flow: %s', f)


def nic(lab):
    """Receivers' NICs make CNPs and the source's obeys them: the agent makes CNPs of Fast CNPs, passes all on and
    slows down nothing."""
    group_add('gn', '--timeout', '20', '--cnp', 'nic')
    obeys = ('-n', '20', '--ecn', '--obey', '10000', '--cnp', '10000')
    with settings(('host', 'set', 'h0'), ('--rate-control', 'nic', '--fast-cnp', 'on'),
                  ('--rate-control', 'agent', '--fast-cnp', 'auto')):
        for switch, made in (('off', True), ('on', False)):
            castctl('--wait=agents', 'congestion', 'set', '--fast-cnp', switch)
            with no_faults(lab, *SIGNALS), link('n1', 'r1', *CONGESTED):
                result = model('gn', FIG1.receivers, *obeys)
            check((result['receivers']['r1']['cnps_made'] > 0) == made and result['lanes'][0]['cnps'] > 0,
                  'Fast CNPs %s: CNPs of r1 and at the source: %s', switch, result)
            check(not limited('gn') and not (flow('gn') or {'cuts': 0})['cuts'], 'the agent: %s', flow('gn'))
    castctl('--wait=agents', 'congestion', 'set', '--fast-cnp', 'off')


def unicast(lab):
    """A flow that is no group's is slowed down as well, by Fast CNPs alone."""
    with fast_cnp_on(), link('n1', 'r1', *CONGESTED):
        model(None, ['r1'], '-n', '40', '--ecn')
        f, = [f for f in flows() if f['destination'] == lab.address('r1')]
    check(f['cuts'] and f['fast_cnps'] and not f['cnps'] and f['node'] == 'n1' and f['group'] is None,
          'the flow: %s', f)


#
# Forged ones.
#

def ether(lab, node, peer, ip):
    """A frame that 'peer' might send to 'node'."""
    return mac(lab, node, peer) + bytes.fromhex('020000000001') + b'\x86\xdd' + ip


# Sends frames, each a line in hexadecimal, from a device (the first argument) so often (the second).  Prints
# how many that are.
SENDER = '''
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind((sys.argv[1], 0))
frames = [bytes.fromhex(line) for line in sys.stdin]
n = 0
for _ in range(int(sys.argv[2])):
    for frame in frames:
        try:
            s.send(frame)
            n += 1
        except BlockingIOError:
            pass
        except OSError as e:
            if e.errno != 105:
                raise
print(n)
'''


def inject(lab, node, peer, ips, times=1):
    """Packets come to 'node' on its port towards 'peer', past 'peer'.  Returns how many."""
    lines = '\n'.join(ether(lab, node, peer, ip).hex() for ip in ips)
    argv = [sys.executable, '-c', SENDER]
    if peer in ['h0', *FIG1.receivers]:
        argv += ['%s-%s' % (lab.name, peer), str(times)]
    else:
        argv = ['castlab', 'exec', peer, '--', *argv, lab.port(peer, node), str(times)]
    p = subprocess.run(argv, input=lines, capture_output=True, text=True, check=False)
    check(p.returncode == 0, 'sender: %s', p.stderr)
    return int(p.stdout)


class About:
    """What a Fast CNP about a group has to say."""

    def __init__(self, name):
        shown = castctl_json('group', 'show', name)
        self.proxy, self.qpn = shown['proxy'], shown['designated_qpn']
        self.n1 = node_address('n1')

    def fast_cnp(self, **changes):
        what = dict({'node': self.n1, 'sender': HOST, 'original': self.proxy, 'dest_qp': self.qpn}, **changes)
        return cnp.fast_cnp(**what)


class Target(About):
    """A group that is slowed down by nobody."""

    def __init__(self, lab, name):
        group_add(name, '--timeout', '20')
        self.name = name
        self.loop = Loop(lab, name, FIG1.receivers, '--ecn', '--gap', '200')
        self.loop.wait_progress('n6')
        super().__init__(name)

    def untouched(self):
        self.loop.wait_progress('n6')
        check(not limited(self.name) and not (flow(self.name) or {'cuts': 0})['cuts'],
              'it is slowed down: %s', flow(self.name))


def counted(lab, what, node, peer, ip, at, reason):
    """Each of these packets is counted once, there, and by this reason."""
    before = counts(lab, *other_reasons(lab))
    check_equal('%s: sent' % what, inject(lab, node, peer, [ip], FORGED), FORGED)
    wait_until('%s: counted as %s of %s' % (what, reason, at), lambda: counts(lab, reason).get((at, reason), 0)
               - before.get((at, reason), 0) >= FORGED)
    check_equal('%s: counted' % what, difference(counts(lab, *other_reasons(lab)), before), {(at, reason): FORGED})


def other_reasons(lab):
    """Whatever else could have become of a packet."""
    return list(lab.drops('sa'))


# Proves FC-31, FC-34, FC-35.
def forged(lab):
    """None slows anything down; each has a counter of its own."""
    target = Target(lab, 'gx')
    good = target.fast_cnp()
    with no_faults(lab, *FAST_CNP_REASONS):
        counted(lab, 'feature off', 'sa', 'n6', good, 'sa', 'fast_cnp_off')
        target.untouched()
        with fast_cnp_on():
            for what, ip, reason in (
                    ('not on the list', target.fast_cnp(node='5f00:0:1234::1'), 'fast_cnp_source'),
                    ('wrong ICRC', target.fast_cnp(form=''), 'fast_cnp_icrc'),
                    ('unknown flow', target.fast_cnp(dest_qp=target.qpn ^ 1), 'fast_cnp_flow'),
                    ('unknown destination', target.fast_cnp(original='fd00:ffff::ffff'), 'fast_cnp_flow'),
                    ('two options', two_options(target), 'fast_cnp_malformed'),
                    ('trace of 4 bytes', target.fast_cnp(trace=bytes(4)), 'fast_cnp_malformed'),
                    ('another opcode', other_opcode(good), 'fast_cnp_malformed')):
                counted(lab, what, 'sa', 'n6', ip, 'sa', reason)
                target.untouched()
            counted(lab, 'from the host', 'sa', 'h0', target.fast_cnp(node=HOST), 'sa', 'fast_cnp_border')
            counted(lab, "with a node's address, from a receiver's port", 'n1', 'r1', good, 'n1', 'fast_cnp_border')
            target.untouched()
    target.loop.stop()


def two_options(target):
    plain = cnp.cnp(target.n1, HOST, target.qpn)
    option = cnp.OPT_FAST_CNP, packed(target.proxy)
    return cnp.ip6(target.n1, HOST, cnp.NH_DEST_OPTIONS, cnp.dest_options(option, option) + plain[40:])


def other_opcode(ip):
    at = cnp.bth_at(ip)
    return ip[:at] + b'\x11' + ip[at + 1:]


# Proves FC-32, FC-33.
def border(lab):
    """None comes in, or goes out, where the domain ends: a link that is external, a host without agent;
    neither inside a tunnel."""
    target = Target(lab, 'gb')
    good = target.fast_cnp()
    tunnelled = cnp.ip6(node_address('n5'), node_address('n2'), 41, good)
    outwards = target.fast_cnp(sender=node_address('n5'))
    inwards = target.fast_cnp(sender=lab.address('r3'))
    with fast_cnp_on(), settings(('link', 'external', 'n5', 'n2'), ('on',), ('off',)):
        with no_faults(lab, 'fast_cnp_border'):
            counted(lab, 'from outside', 'n2', 'n5', good, 'n2', 'fast_cnp_border')
            counted(lab, 'from outside, in a tunnel', 'n2', 'n5', tunnelled, 'n2', 'fast_cnp_border')
            counted(lab, 'to outside', 'n2', 'n4', outwards, 'n2', 'fast_cnp_border')
            counted(lab, 'to a host without agent', 'n2', 'n4', inwards, 'n2', 'fast_cnp_border')
        with capture(lab, 'n2', 'n5', 'border.pcap') as path:
            inject(lab, 'n2', 'n4', [outwards], FORGED)
            inject(lab, 'n2', 'n4', [cnp.cnp(target.n1, node_address('n5'), 1)])
            wait_until('an ordinary CNP has passed', lambda: [
                ip for ip in ip_frames(path) if ip[24:40] == packed(node_address('n5'))])
            check_equal('Fast CNPs that have left', cnp.fast_cnps(frames(path)), [])
        target.untouched()
    target.loop.stop()


def flood(lab):
    """Very many Fast CNPs about one group, right ones and forged ones: it is slowed down to the floor and not
    below, the others are unharmed, and the agent's memory does not grow."""
    crowd = Crowd(FIG1.receivers)
    crowd.add(['gz', 'gy'], 5)
    about, process = About('gz'), Process(lab, 'sa')
    ips = [about.fast_cnp(), about.fast_cnp(dest_qp=about.qpn ^ 0x800000), about.fast_cnp(form=''),
           about.fast_cnp(node='5f00:0:1234::1')]

    def wait_messages(name, n):
        before = crowd.show(name)['completed']
        wait_until('%d messages more of %s' % (n, name), lambda: crowd.show(name)['completed'] >= before + n)
    with fast_cnp_on(), no_faults(lab, *FAST_CNP_REASONS):
        inject(lab, 'sa', 'n6', ips, 100)
        wait_until('gz is slowed down', lambda: limited('gz'))
        memory, before = process.memory(), counts(lab, *FAST_CNP_REASONS)
        for _ in range(FLOOD_ROUNDS):
            sent = inject(lab, 'sa', 'n6', ips, FLOOD // len(ips))
            f = flow('gz')
            check(f['rate'] >= FLOOR, 'below the floor of %g: %s', FLOOR, f)
            check(not flow('gy'), 'another group is slowed down: %s', flow('gy'))
            wait_messages('gy', 50)
            wait_messages('gz', 5)
        got = {reason: n for (node, reason), n in difference(counts(lab, *FAST_CNP_REASONS), before).items()
               if node == 'sa'}
        print('      %d sent at a time; counted %s; the rate is %d; memory %d KB, then %d KB'
              % (sent, got, f['rate'], memory, process.memory()))
        check({'fast_cnp', 'fast_cnp_soon', 'fast_cnp_flow', 'fast_cnp_icrc', 'fast_cnp_source'} >= set(got)
              and got['fast_cnp_soon'] > got['fast_cnp'], 'counted: %s', got)
        check(process.memory() < memory + 1024, 'memory: %d KB, then %d KB', memory, process.memory())
    wait_until('gz is let go', lambda: is_free('gz'))
    crowd.rest()
    crowd.delete(['gz', 'gy'])


# Proves FC-9, FC-11.
def unwanted(lab):
    """A host says that it does not know the option (ICMPv6 Parameter Problem, code 2): from then on its packets
    are marked, and it gets no Fast CNP."""
    group_add('gu')
    with fast_cnp_on(), link('n4', 'n1', *CONGESTED), capture(lab, 'n6', 'n4', 'u1.pcap') as path, \
            capture(lab, 'n1', 'n4', 'u2.pcap') as marked:
        model('gu', FIG1.receivers, '-n', '5', '--ecn')
        told = [f for f in frames(path) if f[12:14] == b'\x86\xdd' and f[20] == cnp.NH_DEST_OPTIONS]
        check(told and {cnp.ecn_fields(ip) for ip in data_packets(marked)} == {(2, 2)}, 'no Fast CNP came')
        inject(lab, 'sa', 'h0', [parameter_problem(told[0][ETH:])])

        def are_marked():
            model('gu', FIG1.receivers, '-n', '2', '--ecn')
            return (CE, 2) in {cnp.ecn_fields(ip) for ip in data_packets(marked)}
        wait_until('packets are marked', are_marked)
        n = len(cnp.fast_cnps(frames(path)))
        model('gu', FIG1.receivers, '-n', '5', '--ecn')
        check_equal('Fast CNPs', len(cnp.fast_cnps(frames(path))), n)
    output('castlab', 'restart', 'n4')


def checksum(src, dst, icmp):
    whole = src + dst + len(icmp).to_bytes(4, 'big') + bytes([0, 0, 0, 58]) + icmp + bytes(len(icmp) % 2)
    total = sum(int.from_bytes(whole[i:i + 2], 'big') for i in range(0, len(whole), 2))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return (~total & 0xffff).to_bytes(2, 'big')


def parameter_problem(ip):
    """What a host answers that does not know the option of this Fast CNP (RFC 8200 section 4.2)."""
    at = 40 + next(at for at, kind, _ in cnp.option_list(ip[40:40 + 8 * (ip[41] + 1)]) if kind == cnp.OPT_FAST_CNP)
    icmp = bytes([4, 2, 0, 0]) + at.to_bytes(4, 'big') + ip
    src, dst = ip[24:40], ip[8:24]
    icmp = icmp[:2] + checksum(src, dst, icmp) + icmp[4:]
    return cnp.ip6(text(src), text(dst), 58, icmp, tc=0)


#
# Traces of others.
#

def copies_have_traces(lab):
    """Each copy has its own trace, whose newest element is of the node that has sent it."""
    group_add('gt', '--trace', '11')
    with capture(lab, 'n6', 'n4', 't4.pcap') as by_n4, capture(lab, 'n6', 'n5', 't5.pcap') as by_n5, \
            capture(lab, 'n1', 'r1', 't1.pcap') as at_r1:
        model('gt', FIG1.receivers, '-n', '5')
        paths = [[cnp.trace_of(ip) for ip in data_packets(path)] for path in (by_n4, by_n5)]
        check_equal('traces at r1', {cnp.trace_of(ip) for ip in data_packets(at_r1)}, {None})
    ids = {n['name']: n['id'] for n in castctl_json('node', 'list')}
    for traces in paths:
        check(traces and None not in traces, 'packets without trace')
        check_equal('who has written', {(t.free, tuple(e[1] for e in t.fields())) for t in traces},
                    {(9, (ids['n6'], ids['sa']))})
        sent = [t.fields()[0][4] for t in traces]
        check(sent == sorted(sent) and sent[0] < sent[-1], 'bytes sent by the port: %r', sent)


class KernelEvents:
    """What a node's kernel has read of traces, its own element in front: [(elements' length in words, type,
    elements)]; None if the kernel tells nobody."""

    def __init__(self, node, n):
        self.process = subprocess.Popen(
            ['castlab', 'exec', node, '--', sys.executable, os.path.join(ROOT, 'tests/net/ioam_events.py'), str(n)],
            stdout=subprocess.PIPE, text=True)
        harness.running.append(self)
        self.supported = self.process.stdout.readline() == 'ready\n'

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()

    def get(self):
        lines = [line.split() for line in self.process.communicate(timeout=harness.PATIENCE)[0].splitlines()]
        return [(int(namespace), int(length), int(kind, 16) >> 8, bytes.fromhex(data))
                for namespace, length, kind, data in lines]


def kernel_fills(lab):
    """A router that is the kernel reads the traces of a group's packets and writes into them, and our nodes go
    on behind it; what it has written comes back with a Fast CNP."""
    group_add('gk', '--trace', '4')
    events = KernelEvents('n7', 20)
    ids = {n['name']: n['id'] for n in castctl_json('node', 'list')}
    receivers = ['r1', 'r2', 'r3', 'r4', 'r5']
    with fast_cnp_on(), link('n5', 'n3', *AT_ONCE), capture(lab, 'n5', 'n7', 'k.pcap') as path:
        model('gk', receivers, '-n', '5', '--ecn', '-t', '2', '-s', '16384')
        traces = [cnp.trace_of(ip) for ip in data_packets(path)]
        found = [c for c in cnp.fast_cnps(frames(path)) if text(c.src) == node_address('n5')]
        f = flow('gk')
    check(traces and None not in traces, 'packets without trace')
    check_equal('who has written', {tuple(e[1] for e in t.fields()) for t in traces},
                {(ids['n7'], ids['n6'], ids['sa'])})
    for t in traces:
        newest, older, _ = t.fields()
        check_equal('hop limit', newest[0], older[0] - 1)
        check(all(abs(e[2] - time.time()) < 60 and e[3] < 1000000 for e in t.fields()), 'times: %r', t.fields())
    if events.supported:
        known = {b''.join(t.elements) for t in traces}
        for namespace, length, kind, data in events.get():
            check((namespace, length, kind) == (1, 5, cnp.TRACE_TYPE) and data in known,
                  'the kernel says %d, %d, %#x, %s', namespace, length, kind, data.hex())
    else:
        print('      not compared with what the kernel has read: this one tells nobody')
    check(found, 'no Fast CNP came')
    check_equal('what comes back', {tuple(e[1] for e in c.trace.fields()) for c in found},
                {tuple(ids[n] for n in ('n5', 'n7', 'n6', 'sa'))})
    check(f['node'] == 'n5' and f['depth'] > 0, 'the flow: %s', f)


def make_lab():
    return Lab.shipped('fig1')


def set_line(lab):
    castctl('--wait=agents', 'host', 'set', 'h0', '--line-rate', '%d' % LINE)
    check_equal('flows', flows(), [])


CASES = [set_line, marks, slowed_by_cnps, option_1, option_2, slowed_by_fast_cnps, controller_of_depth, own_uplink, nic, unicast,
         forged, border, flood, unwanted, copies_have_traces]
ROUTER_CASES = [kernel_fills]
