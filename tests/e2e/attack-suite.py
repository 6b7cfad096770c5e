#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""End-to-end cases in which hosts and somebody on a link send what they must not, with real
soft-RoCE; runs inside the VM (see tests/e2e/run).

usage: attack-suite.py [CASE...]

Each case has a transfer of its own over Figure 1.  What an attacker sends was taken from a link a
moment before, and changed; its ICRC is right unless that is the point.  It sends where a neighbour
would, to the device at the other end of the link.  The case expects a named counter of that one
node to rise by as many as were sent, no other counter of faults to move, nothing but sound ACKs at
the source's device and the NAKs that the root says are its own, nothing but packets of the group
for its queue pair at each receiver's, and equal files in the end.
"""
import ctypes
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
from captures import (BTH, ETH, ICRC, IP6, OP_ACK, OP_WRITE_ONLY, PSN_MASK, RETH, UDP,
                      Encapsulated, Roce, distance, icrc, packed, parse_capture, read_pcap)
from harness import (BIN, FAULTS, MTU, PATIENCE, Captures, Lab, Receiver, Source, Suite, castctl,
                     castctl_json, check, check_equal, data_flows, down_leaves_nothing, network_snapshot,
                     pattern, running, wait_until, work_file)
from trees import FIG1

BLOCK = 4 * MTU
DATA = pattern(4 * BLOCK, 9)
# A region is longer: what nobody is to write stays zero.
REGION = DATA + bytes(MTU)
# So far ahead that no transfer of these cases gets there.
FAR = 1 << 20
N_SENT = 3    # of each forged packet.
TLV_MT_AUTH = 125
ACK, NAK_SEQUENCE, NAK_REMOTE_ACCESS = 0x1f, 0x60, 0x62
# NAK of a sequence error; RNR NAK that asks for the shortest pause.
PRESUMED = NAK_SEQUENCE, 0x21


#
# Packets.
#


def with_icrc(ip):
    return bytes(ip[:-ICRC]) + icrc(bytes(ip[:-ICRC]))


def put(packet, at, value):
    return packet[:at] + value + packet[at + len(value):]


def addressed(ip, src=None, dst=None):
    """An IPv6 packet with other addresses; its ICRC, if it has one, as it was."""
    if src:
        ip = put(ip, 8, packed(src))
    return put(ip, 24, packed(dst)) if dst else ip


def response(roce, psn, syndrome=ACK, qpn=None):
    """A response like this one, for another PSN."""
    bth = IP6 + UDP
    ip = put(roce.bytes, bth + 9, (psn & PSN_MASK).to_bytes(3, 'big'))
    ip = put(ip, bth + BTH, bytes([syndrome]))
    if qpn is not None:
        ip = put(ip, bth + 5, qpn.to_bytes(3, 'big'))
    return with_icrc(ip)


def write_only(roce, group, psn):
    """A WRITE of one packet to where nobody writes, like this request."""
    payload = b'\xee' * 64
    head = roce.bytes[:IP6 + UDP] + bytes([OP_WRITE_ONLY]) + roce.bytes[IP6 + UDP + 1:]
    bth = put(head[IP6 + UDP:IP6 + UDP + BTH], 9, (psn & PSN_MASK).to_bytes(3, 'big'))
    reth = (len(DATA).to_bytes(8, 'big') + group['designated_rkey'].to_bytes(4, 'big')
            + len(payload).to_bytes(4, 'big'))
    length = UDP + BTH + RETH + len(payload) + ICRC
    ip = put(roce.bytes[:IP6], 4, length.to_bytes(2, 'big'))
    udp = put(roce.bytes[IP6:IP6 + UDP], 4, length.to_bytes(2, 'big'))
    return with_icrc(ip + udp + bth + reth + payload + bytes(ICRC))


def around(outer, inner):
    """An inner packet in the headers of another's."""
    head = outer.bytes[:outer.overhead if isinstance(outer, Encapsulated) else IP6]
    return put(head, 4, (len(head) - IP6 + len(inner)).to_bytes(2, 'big')) + inner


def packet_socket(device, netns):
    """A socket for frames on a device in a network namespace, which is left again."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open('/proc/self/ns/net', 'rb') as own, open(netns or own.name, 'rb') as there:
        check_equal('setns', libc.setns(there.fileno(), 0), 0)
        try:
            s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        finally:
            check_equal('setns back', libc.setns(own.fileno(), 0), 0)
    s.bind((device, 0))
    return s


#
# Transfers.
#


class Taken:
    """What came over links, by (sender, node), while a transfer was running."""

    def __init__(self, lab, folder, ways):
        self.packets = {}
        for sender, node in ways:
            ports = json.loads(lab.appctl(node, 'rocecast/ports', '-j'))
            mac = next(p['mac'] for p in ports if p['peer'] == sender)
            to_node = bytes.fromhex(mac.replace(':', ''))
            path = os.path.join(folder, '%s-%s.pcap' % (node, sender))
            self.packets[sender, node] = [p for _, p in parse_capture(path)
                                          if p.frame[:6] == to_node]

    def last(self, sender, node):
        """The last packet: where responses go up a response, else a request."""
        found = self.packets[sender, node]
        check(found, 'nothing came from %s to %s', sender, node)
        return found[-1]


class Transfer:
    """A source writes to the receivers of all hosts of Figure 1, again and again."""

    def __init__(self, lab, group, *options):
        self.lab = lab
        self.name = group
        for earlier in castctl_json('group', 'list'):    # nodes would ask its receivers how they are.
            castctl('--wait=agents', 'group', 'del', earlier['name'])
        # Some seconds, as what is sent again in vain takes the VM's time too.
        castctl('group', 'add', group, '--timeout', '20', '--mtu', str(MTU), *options)
        self.receivers = {host: Receiver(lab, group, host, len(REGION)) for host in lab.receivers}
        self.source = self.shown = None
        self.start(1)

    def start(self, epoch):
        """Each source begins an epoch, but the first."""
        self.source = Source(self.lab, self.name, '--file', work_file(self.name + '.in', DATA),
                             '-s', str(BLOCK), '-t', '1', '--keep-sending')
        for r in self.receivers.values():
            r.armed(epoch)
        wait_until('data flows', lambda: data_flows(self.lab, self.name, FIG1.root))
        self.shown = castctl_json('group', 'show', self.name)

    def psn(self, what='sent_next'):
        """The root's word: 'sent_next', or 'confirmed' by all."""
        return self.lab.group(FIG1.root, self.name)[what]

    def n_presumed(self):
        return self.lab.group(FIG1.root, self.name)['sent']['presumed']

    def progress(self, n_packets):
        first = self.psn('confirmed')
        wait_until('%d packets more are confirmed' % n_packets,
                   lambda: distance(self.psn('confirmed'), first) >= n_packets)

    def take(self, *ways):
        """Captures some packets of each way, (sender, node)."""
        folder = work_file(self.name)
        with Captures(self.lab, [(node, self.lab.port(node, sender), sender)
                                 for sender, node in ways], folder):
            self.progress(3 * BLOCK // MTU)
        return Taken(self.lab, folder, ways)

    def stop(self):
        """It comes to its end without an error, and all have all bytes."""
        self.progress(len(DATA) // MTU)
        self.source.process.send_signal(signal.SIGTERM)
        check_equal("source's exit status", self.source.wait(), 0)
        wanted = hashlib.sha256(REGION).hexdigest()
        check_equal('sha256', {host: hashlib.sha256(r.region()).hexdigest()
                               for host, r in self.receivers.items()},
                    dict.fromkeys(self.receivers, wanted))


class Watch:
    """In its block, what comes to hosts is seen at their devices, by tcpdump; 'filters' are by
    host.  After it .seen is the packets, by host."""

    def __init__(self, lab, filters):
        self.files = {host: work_file('watch-%s.pcap' % host) for host in filters}
        self.processes = {}
        self.seen = None
        for host, condition in filters.items():
            self.processes[host] = subprocess.Popen(
                ['tcpdump', '-n', '-U', '-Z', 'root', '-Q', 'in', '-i', lab.device_of(host), '-w',
                 self.files[host], condition],
                stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        running.append(self)

    def __enter__(self):
        for p in self.processes.values():
            while 'listening on' not in p.stderr.readline():
                check(p.poll() is None, '%s: exit status %s', ' '.join(p.args), p.poll())
        return self

    def __exit__(self, kind, value, tb):
        for p in self.processes.values():
            p.send_signal(signal.SIGINT)
        for p in self.processes.values():
            _, text = p.communicate(timeout=PATIENCE)
            check('\n0 packets dropped by kernel' in text, 'tcpdump: %s', text)
        self.seen = {host: list(read_pcap(path)) for host, path in self.files.items()}

    def kill(self):
        for p in self.processes.values():
            if p.poll() is None:
                p.kill()
                p.communicate()


def group_packets(t, qpn):
    """tcpdump's filter for packets from the group's Proxy to a queue pair."""
    return 'udp dst port 4791 and ip6 src %s and ip6[52:4] & 0xffffff = %d' \
        % (t.shown['proxy'], qpn)


def watch(lab, t):
    """At receivers what must not come; at the source everything."""
    filters = {m['host']: 'ip6 and not icmp6 and not (%s)' % group_packets(t, m['qpn'])
               for m in t.shown['members']}
    return Watch(lab, {'h0': 'ip6 and not icmp6', **filters})


def check_source_saw(path, t, n_presumed):
    """Nothing but responses of the Proxy to its queue pair, of what was sent: ACKs, and in a VM
    that stood still for long what the root presumes lost (draft-notes, R14)."""
    packets = [p for _, p in parse_capture(path)]
    check(packets, 'no ACK came to the source')
    sent = t.psn()
    for p in packets:
        check(isinstance(p, Roce) and p.opcode == OP_ACK and p.src == packed(t.shown['proxy'])
              and p.dest_qp == t.shown['source']['qpn'] and distance(p.psn, sent) < 0,
              'this came to the source: %s', p.bytes.hex())
    others = [p for p in packets if p.aeth[0] & 0xe0]
    check(len(others) <= n_presumed and all(p.aeth[0] in PRESUMED for p in others),
          'the root has presumed %d losses, this came to the source: %s', n_presumed,
          [p.bytes.hex() for p in others])


class AttackLab(Lab):
    def __init__(self, topology):
        super().__init__(topology)
        self.by_peer = {}    # port by (node, peer).

    def up(self):
        """Transfers go slowly, one block after another, each with its response delayed: everything
        else in the VM, attacks too, is to have its time."""
        super().up()
        self.by_peer = {(node, peer): port for node, port, peer in self.links()}
        castctl('--wait=agents', 'link', 'impair', 'n6', 'sa', 'delay=500ms')
        return self

    def port(self, node, peer):
        return self.by_peer[node, peer]

    def device_of(self, host):
        return '%s-%s' % (self.name, host)

    def attack(self, taken, sender, node, packets):
        """Packets, from their IPv6 headers on, each N_SENT times, where 'sender' is to 'node'."""
        ethernet = taken.last(sender, node).frame[:ETH]
        if sender in ('h0', *self.receivers):
            device, netns = self.device_of(sender), None
        else:
            device, netns = self.port(sender, node), '/run/netns/%s-%s' % (self.name, sender)
        with packet_socket(device, netns) as s:
            for p in packets:
                for _ in range(N_SENT):
                    s.send(ethernet + p)


REASONS = (*FAULTS, 'response_outer', 'auth_missing', 'auth_bad', 'auth_unknown_key', 'auth_replay')


def grown(lab, before):
    """Counters of faults that are higher than they were: {(node, reason): by how much}."""
    return {(node, reason): n - before[node][reason]
            for node, drops in lab.all_drops().items() for reason, n in drops.items()
            if reason in REASONS and n != before[node][reason]}


def attack(lab, t, taken, *attacks):
    """'attacks' are (sender, node, reason, packets): what the node is to drop, and why."""
    wanted = {}
    presumed = t.n_presumed()
    with watch(lab, t) as watching:
        before = lab.all_drops()
        for sender, node, reason, packets in attacks:
            lab.attack(taken, sender, node, packets)
            wanted[node, reason] = wanted.get((node, reason), 0) + N_SENT * len(packets)

        def dropped():
            found = grown(lab, before)
            return all(found.get(k, 0) >= n for k, n in wanted.items())
        wait_until('as many are dropped as were sent: %r' % wanted, dropped)
        t.stop()
        check_equal('dropped, by node and reason', grown(lab, before), wanted)
    check_source_saw(watching.files['h0'], t, t.n_presumed() - presumed)
    for host, packets in watching.seen.items():
        check(host == 'h0' or not packets, 'this came to %s: %s', host,
              packets and packets[0][1].hex())
    print('      dropped: %s' % ', '.join('%s %s %d' % (*k, n) for k, n in wanted.items()))


#
# Cases.
#


def inflated_acks(lab):
    """ACKs of what was never sent: by a receiver, and on links as if by nodes.  Proves MT-9-3."""
    t = Transfer(lab, 'inflated')
    taken = t.take(('r1', 'n1'), ('n4', 'n6'), ('n6', 'sa'))
    far = t.psn() + FAR
    of_n4 = taken.last('n4', 'n6')
    attack(lab, t, taken,
           ('r1', 'n1', 'psn_not_sent', [response(taken.last('r1', 'n1'), far)]),
           ('n4', 'n6', 'psn_not_sent', [around(of_n4, response(of_n4.inner, far))]),
           ('n6', 'sa', 'psn_not_sent', [response(taken.last('n6', 'sa'), far)]))


def forged_nacks(lab):
    """NAKs that would rewind the source or end its queue pair, by those who have none to send.
    Proves MT-9-3, MT-9-4."""
    t = Transfer(lab, 'forged')
    taken = t.take(('r1', 'n1'), ('n3', 'n5'), ('n4', 'n6'), ('n6', 'sa'))
    of_r1, of_n4, of_n6 = (taken.last(*way) for way in (('r1', 'n1'), ('n4', 'n6'), ('n6', 'sa')))
    now, far = t.psn('confirmed'), t.psn() + FAR
    nak = around(of_n4, response(of_n4.inner, now, NAK_REMOTE_ACCESS))
    attack(lab, t, taken,
           # r1 in r2's name.
           ('r1', 'n1', 'source_guard',
            [with_icrc(addressed(response(of_r1, now, NAK_SEQUENCE), src=lab.address('r2')))]),
           # In the name of a node that is no branch of this one.
           ('n4', 'n6', 'unknown_branch', [addressed(nak, src=taken.last('n3', 'n5').src)]),
           ('n4', 'n6', 'icrc', [nak[:-1] + bytes([nak[-1] ^ 1])]),
           ('n4', 'n6', 'psn_not_sent',
            [around(of_n4, response(of_n4.inner, far, NAK_REMOTE_ACCESS))]),
           # To h0's address by way of n6: the inner packet is not for the source.
           ('n4', 'n6', 'response_outer',
            [around(of_n4, with_icrc(addressed(response(of_n4.inner, now, NAK_REMOTE_ACCESS),
                                               dst=lab.address('r3'))))]),
           ('n6', 'sa', 'stale_epoch',
            [response(of_n6, now, NAK_REMOTE_ACCESS, qpn=t.shown['designated_qpn'])]))


def srv6_from_hosts(lab):
    """Hosts send to SIDs, in the agent's name and in their own, what would be written to all.
    Proves MT-9-1, MT-9-4."""
    t = Transfer(lab, 'srv6')
    taken = t.take(('r1', 'n1'), ('h0', 'sa'), ('sa', 'n6'), ('n4', 'n1'), ('n4', 'n6'))

    def forged(sender, node):
        p = taken.last(sender, node)
        return around(p, write_only(p.inner, t.shown, t.psn()))
    to_root, to_edge, up = forged('sa', 'n6'), forged('n4', 'n1'), taken.last('n4', 'n6').bytes
    r1, h0 = lab.address('r1'), lab.address('h0')
    attack(lab, t, taken,
           ('r1', 'n1', 'source_guard', [to_root, addressed(to_root, src=r1),
                                         addressed(to_edge, src=r1), addressed(up, src=r1)]),
           ('h0', 'sa', 'source_guard', [to_root, addressed(to_root, src=h0)]))


def old_epoch(lab):
    """What was captured in one epoch is sent again in the next, byte for byte, both ways."""
    t = Transfer(lab, 'replayed')
    ways = [('sa', 'n6'), ('n6', 'n4'), ('n4', 'n1'), ('r1', 'n1'), ('n1', 'n4'), ('n4', 'n6'),
            ('n6', 'sa')]
    taken = t.take(*ways)
    t.stop()
    t.start(2)
    attack(lab, t, taken, *((*way, 'stale_epoch', [taken.last(*way).bytes]) for way in ways))


def altered_tlvs(lab):
    """With MT-AUTH, on an edge's link: other QPNs and addresses in TLVs, and other MT-AUTH TLVs.
    Proves MT-9-6, MT-9-7."""
    castctl('key', 'add', '1', '--generate')
    t = Transfer(lab, 'altered', '--auth', 'mt-auth', '--key', '1')
    taken = t.take(('n4', 'n1'))
    p = taken.last('n4', 'n1')
    forged = around(p, write_only(p.inner, t.shown, t.psn()))
    r1, r2 = (forged.index(packed(lab.address(host))) for host in ('r1', 'r2'))
    auth = forged.rindex(bytes([TLV_MT_AUTH, 38]), 0, p.overhead)

    def changed(at, n=1):
        return put(forged, at, bytes([forged[at] ^ n]))
    attack(lab, t, taken,
           ('n4', 'n1', 'auth_bad', [changed(r1 + 18), changed(r2 + 15, 1 ^ 2), changed(auth + 8)]),
           ('n4', 'n1', 'auth_missing', [changed(auth, 3)]),
           ('n4', 'n1', 'auth_unknown_key', [changed(auth + 7, 2)]))


def altered_data(lab):
    """With authenticated data, on an edge's link: packets that came before; with another payload, PSN or epoch; an SRH in front
    of another inner packet.  None reaches a receiver.  With MT-AUTH alone such a one does."""
    castctl('key', 'add', '2', '--generate')
    t = Transfer(lab, 'data', '--auth', 'data', '--key', '2', '--filter', 'off')
    taken = t.take(('n4', 'n1'))
    p = taken.last('n4', 'n1')
    inner, bth = p.inner.bytes, IP6 + UDP
    payload = with_icrc(put(inner, len(inner) - ICRC - 1, bytes([inner[-ICRC - 1] ^ 1])))
    psn = with_icrc(put(inner, bth + 9, ((t.psn() + 1) & PSN_MASK).to_bytes(3, 'big')))
    epoch = with_icrc(put(inner, bth + 5, (t.shown['designated_qpn'] + 1).to_bytes(3, 'big')))
    attack(lab, t, taken,
           ('n4', 'n1', 'auth_replay', [p.bytes]),
           ('n4', 'n1', 'auth_bad', [around(p, q) for q in (payload, psn, write_only(p.inner, t.shown, t.psn()))]),
           ('n4', 'n1', 'stale_epoch', [around(p, epoch)]))

    t = Transfer(lab, 'header', '--auth', 'mt-auth', '--key', '2', '--filter', 'off')
    taken = t.take(('n4', 'n1'))
    p = taken.last('n4', 'n1')
    qpn = next(m['qpn'] for m in t.shown['members'] if m['host'] == 'r1')
    with Watch(lab, {'r1': group_packets(t, qpn)}) as watching:
        lab.attack(taken, 'n4', 'n1', [around(p, write_only(p.inner, t.shown, t.psn('confirmed') - 8))])
        t.progress(3 * BLOCK // MTU)
    t.stop()
    n = sum(b'\xee' * 64 in frame for _, frame in watching.seen['r1'])
    check_equal('forged packets that came to r1 with MT-AUTH alone', n, N_SENT)


CASES = {
    'acks': ('ACKs of what was never sent', inflated_acks),
    'naks': ('forged NAKs', forged_nacks),
    'srv6': ('SRv6 packets from hosts', srv6_from_hosts),
    'replay': ('packets of an old epoch', old_epoch),
    'tlv': ('altered TLVs, with MT-AUTH', altered_tlvs),
    'data': ('altered and replayed data', altered_data),
}


def main():
    os.environ['PATH'] = BIN + os.pathsep + os.environ['PATH']
    suite = Suite()
    before = network_snapshot()
    lab = AttackLab('fig1')
    if suite.case('Figure 1 comes up', lambda lab: lab.up(), lab):
        for name in sys.argv[1:] or CASES:
            what, case = CASES[name]
            suite.case(what, case, lab)
    suite.case('Figure 1 goes', down_leaves_nothing, lab, before)
    return suite.finish()


if __name__ == '__main__':
    sys.exit(main())
