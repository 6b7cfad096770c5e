#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""End-to-end cases with every operation that a group carries, and with receivers that are not
ready or refuse; on Figure 1 with real soft-RoCE, inside the VM (see tests/e2e/run)."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
from captures import OP_ACK, parse_capture
from harness import (BIN, PSN_MASK, Captures, Lab, Receiver, Source, Suite, castctl, castctl_json,
                     check, check_equal, down_leaves_nothing, group_add, network_snapshot,
                     no_drops, pattern, wait_until, work_file)
from trees import FIG1, check_confirmed

MTU = 1024
# enum ibv_wc_status, as joinrc's exit status.
REM_INV_REQ_ERR = 64 + 9
REM_ACCESS_ERR = 64 + 10
REM_OP_ERR = 64 + 11
# AETH syndromes.
RNR = 0x20
NAK_INVALID_REQUEST = 0x61
NAK_REMOTE_ACCESS = 0x62
NAK_REMOTE_OPERATION = 0x63


class Messages:
    """What a source posts: [(operation, length)].  Its receivers know the list."""

    def __init__(self, *messages):
        self.messages = messages
        self.data = pattern(sum(length for _, length in messages), 31)
        self.options = ['--messages', ','.join('%s:%d' % m for m in messages)]

    def taking(self):
        """Indexes of the messages that take a receive."""
        return [k for k, (op, _) in enumerate(self.messages) if op != 'write']

    def received(self, n=None):
        """What a receiver is to print, of the first n receives."""
        return ['received %s %d' % self.messages[k]
                + (' %#x' % (0xc0de0000 + k) if self.messages[k][0].endswith('-imm') else '')
                for k in self.taking()[:n]]

    def packets(self, k):
        """Packets of the first k messages."""
        return sum(max(1, -(-length // MTU)) for _, length in self.messages[:k])

    def bytes(self, k):
        """Bytes of the first k messages."""
        return sum(length for _, length in self.messages[:k])

    def rnr_packet(self, k):
        """The packet that message k wants its receive for: of a SEND the first, of a WRITE with
        immediate the one with the immediate, the last."""
        return self.packets(k + 1) - 1 if self.messages[k][0] == 'write-imm' else self.packets(k)


class Transfer:
    """A group with a receiver on every host, some of which have options of their own."""

    def __init__(self, lab, group, messages, own_options=None):
        self.lab, self.group, self.messages = lab, group, messages
        group_add(group, '--mtu', str(MTU), '--psn', '0xfffffa')
        self.start_psn = 0xfffffa
        # More than the messages fill: what nobody wrote must stay zero.
        self.receivers = {
            host: Receiver(lab, group, host, len(messages.data) + 100, *messages.options,
                           *(own_options or {}).get(host, []))
            for host in lab.receivers}
        self.armed(1)

    def armed(self, epoch):
        for r in self.receivers.values():
            r.armed(epoch)

    def source(self):
        return Source(self.lab, self.group, '--file',
                      work_file(self.group + '.in', self.messages.data), *self.messages.options)

    def psn(self, packet):
        return self.start_psn + packet & PSN_MASK

    def region(self, host, n_bytes):
        """What the host's region is to hold when only the first n bytes have come."""
        return self.messages.data[:n_bytes] + bytes(len(self.messages.data) + 100 - n_bytes)

    def lines(self, host):
        return re.findall('^receive.*$', self.receivers[host].text(), re.M)

    def check_all_received(self):
        for host, r in self.receivers.items():
            check(r.region() == self.region(host, len(self.messages.data)),
                  "%s's memory differs", host)
            check_equal("%s's receives" % host, self.lines(host), self.messages.received())
        check_confirmed(self.lab, self.group, FIG1,
                        self.psn(self.messages.packets(len(self.messages.messages))))

    def branches(self, key):
        """{(node, branch): value} of those that are not 0 or 'none'."""
        found = {}
        for node in FIG1.branches:
            state = self.lab.group(node, self.group)
            for b in state['branches'] if state else []:
                if b[key] not in (0, 'none'):
                    found[node, b['name']] = b[key]
        return found


# Where what r4 answers is counted: at its edge, and at each node above that.
R4_PATH = {('n3', 'r4'), ('n5', 'n3'), ('n6', 'n5')}


def not_ready(group, messages, n_receives):
    """A case: r4 posts that many receives at first.  The transfer stops before the message that
    wants the next one, at all receivers' cost but to nobody's harm."""
    def case(lab):
        # 82 ms, so that the VM does not spend its time on resending.
        t = Transfer(lab, group, messages, {'r4': ['--receives', str(n_receives), '--rnr-timer', '26']})
        first = messages.taking()[n_receives]
        stop = t.psn(messages.rnr_packet(first))
        with no_drops(lab):
            source = t.source()

            def stopped():
                root = lab.group('n6', group)
                return root and root['sent']['rnrs'] and root['f'] == stop
            wait_until('an RNR NAK went up, and all packets before %d are confirmed' % stop,
                       stopped)
            check_equal('who answered RNR', set(t.branches('rnrs')), R4_PATH)
            check_equal("r4's receives", t.lines('r4'), messages.received(n_receives))
            region, whole = t.receivers['r4'].region(), messages.bytes(first + 1)
            check(region[:messages.bytes(first)] == messages.data[:messages.bytes(first)],
                  "r4's memory differs before the message that waits")
            check(not any(region[whole:]), "r4's memory has something behind what waits")
            check(source.process.poll() is None, 'source did not wait: %s', source.text())
            t.receivers['r4'].tell('recv')
            source.done()
        check_equal('who answered RNR in the end', set(t.branches('rnrs')), R4_PATH)
        t.check_all_received()
    return case


def of_one_kind(op):
    """Messages of several packets, of one, of none."""
    return Messages(*((op, n) for n in (3000, 1, 0, 1024, 5000, 17, 0, 2048)))


# WRITEs take no receive, but must wait behind a message that does.
WRITES = Messages(('write', 5000), ('write', 1), ('send', 100), ('write', 0), ('write', 3 * MTU),
                  ('send', 2000), ('write', 2500), ('write', 7), ('write', MTU), ('send', 0),
                  ('write', 4000))
MIXED = Messages(('send', 3000), ('write-imm', 2500), ('write', 3333), ('send-imm', 1),
                 ('write-imm', 0), ('send-imm', 4100), ('write', 1), ('send', 0),
                 ('write-imm', MTU), ('write', 2048), ('send', MTU), ('send-imm', 0),
                 ('write-imm', 9))


def longest_timer(lab):
    """Three receivers at three edges are not ready and ask for different times: the source is told
    the longest.  Code 0 is the longest, 655 ms; 31 and 30 are 492 and 328 ms."""
    codes = {'r1': 31, 'r3': 0, 'r5': 30}
    messages = Messages(('send', 2000), ('send', 3000), ('send', 10))
    t = Transfer(lab, 'timer', messages, {host: ['--receives', '1', '--rnr-timer', str(code)]
                                          for host, code in codes.items()})
    folder = work_file('timer')
    uplink = [link for link in lab.links() if link[2] == 'h0']
    with no_drops(lab), Captures(lab, uplink, folder):
        source = t.source()
        wait_until('each of the three has answered RNR twice',
                   lambda: sum(n >= 2 for (_, branch), n in t.branches('rnrs').items()
                               if branch in codes) == len(codes))
        for host in codes:
            t.receivers[host].tell('recv')
        source.done()
    t.check_all_received()

    stop = t.psn(messages.rnr_packet(1))
    told = []  # for every time that the source sent that packet: timer codes it was answered.
    for _, p in parse_capture(os.path.join(folder, 'sa-h0.pcap')):
        if p.opcode != OP_ACK and p.psn == stop:
            told.append([])
        elif p.opcode == OP_ACK and p.aeth[0] & 0xe0 == RNR:
            check_equal('PSN of an RNR NAK', p.psn, stop)
            told[-1].append(p.aeth[0] & 0x1f)
    check(sum(0 in codes for codes in told) >= 2, 'timer codes told to the source: %r', told)
    for codes in told:
        check(0 not in codes or codes[-1] == 0, 'a shorter timer after the longest: %r', told)


def refused(messages, host, option, syndrome, status):
    """A case: one receiver refuses the second message.  The source is told so, after the first has
    completed, and the tree says who it was.  With a new receiver the group goes on."""
    def case(lab):
        group = 'refused' + option
        t = Transfer(lab, group, messages, {host: [option]})
        edge = FIG1.parent[host]
        with no_drops(lab):
            source = t.source()
            check_equal("source's exit status", source.wait(), status)
        check_equal('completed', source.count('completed 1'), 1)
        path, node = {(edge, host)}, edge
        while node != FIG1.root:
            path.add((FIG1.parent[node], node))
            node = FIG1.parent[node]
        check_equal('branches that failed', t.branches('cond'), dict.fromkeys(path, 'fatal'))
        check_equal('syndromes', t.branches('code'), dict.fromkeys(path, syndrome))
        shown = castctl('tree', 'show', group)
        check(re.search(r'- %s .* fatal \(syndrome %#x\)' % (host, syndrome), shown),
              'tree show: %s', shown)

        t.receivers[host].kill()
        castctl('member', 'remove', group, host)
        t.receivers[host] = Receiver(lab, group, host, len(messages.data) + 100, *messages.options)
        for r in t.receivers.values():
            r.wait_line('armed')
        again = t.source()
        t.armed(2)
        again.done()
        for name, r in t.receivers.items():
            check(r.region() == t.region(name, len(messages.data)), "%s's memory differs", name)
    return case


def main():
    os.environ['PATH'] = BIN + os.pathsep + os.environ['PATH']
    suite = Suite()
    before = network_snapshot()
    lab = Lab('fig1')
    if suite.case('Figure 1 comes up', lambda lab: lab.up(), lab):
        for op in 'send', 'send-imm', 'write-imm':
            suite.case('%s to five, of which one is not ready' % op,
                       not_ready(op, of_one_kind(op), 4), lab)
        suite.case('write behind a send to one that is not ready', not_ready('write', WRITES, 1), lab)
        suite.case('all operations on one QP, one is not ready', not_ready('mixed', MIXED, 3), lab)
        suite.case('the longest of three RNR timers', longest_timer, lab)
        suite.case('a receiver refuses the key',
                   refused(Messages(('send', 100), ('write', 3000)), 'r5', '--bad-rkey',
                           NAK_REMOTE_ACCESS, REM_ACCESS_ERR), lab)
        suite.case('a receiver refuses writes',
                   refused(Messages(('send', 100), ('write', 3000)), 'r4', '--no-access',
                           NAK_INVALID_REQUEST, REM_INV_REQ_ERR), lab)
        suite.case("a receiver's buffer is too small",
                   refused(Messages(('send', 0), ('send', 3000)), 'r3', '--short-recv',
                           NAK_REMOTE_OPERATION, REM_OP_ERR), lab)
    suite.case('Figure 1 goes', down_leaves_nothing, lab, before)
    return suite.finish()


if __name__ == '__main__':
    sys.exit(main())
