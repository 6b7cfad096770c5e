#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""End-to-end cases with every operation that a group carries, and with receivers that are not
ready, refuse or die; with real soft-RoCE, inside the VM (see tests/e2e/run)."""
import os
import re
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
from captures import OP_ACK, parse_capture
from harness import (BIN, PSN_MASK, RUNDIR, Captures, Castbench, Example, Lab, Receiver, Source,
                     Suite, castctl, castctl_json, check, check_equal, data_flows,
                     down_leaves_nothing, group_add, network_snapshot, no_drops, pattern, read,
                     wait_until, work_file)
from trees import FIG1, NOAGG, check_confirmed

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

    def __init__(self, lab, group, messages, own_options=None, tree=FIG1, group_options=(),
                 late=()):
        self.lab, self.group, self.messages, self.tree = lab, group, messages, tree
        group_add(group, '--mtu', str(MTU), '--psn', '0xfffffa', *group_options)
        self.start_psn = 0xfffffa
        # More than the messages fill: what nobody wrote must stay zero.
        self.receivers = {host: self.receiver(host, *(own_options or {}).get(host, []))
                          for host in lab.receivers if host not in late}
        self.armed(1)

    def receiver(self, host, *options):
        return Receiver(self.lab, self.group, host, len(self.messages.data) + 100,
                        *self.messages.options, *options)

    def armed(self, epoch):
        for r in self.receivers.values():
            r.armed(epoch)

    def source(self, *options):
        return Source(self.lab, self.group, '--file',
                      work_file(self.group + '.in', self.messages.data), *self.messages.options,
                      '--members', str(len(self.receivers)), *options)

    def source_in_mid_transfer(self):
        source = self.source('--keep-sending')
        wait_until('data flows', lambda: data_flows(self.lab, self.group, self.tree.root))
        return source

    def psn(self, packet):
        return self.start_psn + packet & PSN_MASK

    def region(self, n_bytes):
        """What a region is to hold when only the first n bytes have come."""
        return self.messages.data[:n_bytes] + bytes(len(self.messages.data) + 100 - n_bytes)

    def lines(self, host):
        return re.findall('^receive.*$', self.receivers[host].text(), re.M)

    def check_regions(self, *but):
        for host, r in self.receivers.items():
            check(host in but or r.region() == self.region(len(self.messages.data)),
                  "%s's memory differs", host)

    def check_all_received(self):
        self.check_regions()
        for host in self.receivers:
            check_equal("%s's receives" % host, self.lines(host), self.messages.received())
        check_confirmed(self.lab, self.group, FIG1,
                        self.psn(self.messages.packets(len(self.messages.messages))))

    def branches(self, key):
        """{(node, branch): value} of those that are not 0 or 'none'."""
        found = {}
        for node in self.tree.branches:
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
        t = Transfer(lab, group, messages,
                     {'r4': ['--receives', str(n_receives), '--rnr-timer', '26']})
        first = messages.taking()[n_receives]
        stop = t.psn(messages.rnr_packet(first))
        with no_drops(lab):
            source = t.source()

            def stopped():
                root = lab.group('n6', group)
                return root and root['sent']['rnrs'] and root['told'] == stop
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


# Silence is found out soon, but not sooner than a requester asks again: after 0.5 s.
QUICK = ['--timeout', '17', '--liveness', '2200']
SILENT = r'no progress for [\d.]+ m?s at PSN \d+ \(seen by %s\)$'
# The same, of an edge's only receiver.  The edge refuses then, and the node above may be the first
# to say so.
UNANSWERED_ALONE = (r'its queue pair does not answer, asked for [\d.]+ m?s at PSN \d+ '
                    r'\(seen by %s\)$'
                    r'|behind node %s: NAK 0x63 ')
SILENT_ALONE = SILENT + r'|behind node %s: NAK 0x63 '
# Of one that was cut off before anything was sent: if the source takes its time, it is asked before.
CUT_OFF = r'(no progress|its queue pair does not answer, asked) for [\d.]+ m?s at PSN \d+'


def refusal(syndrome, psn, node):
    """What a member's status has to match."""
    return r'NAK %#x \([a-z ]+\) at PSN %d \(seen by %s\)$' % (syndrome, psn, node)


def check_lost(group, lost):
    """These members, and no others, get lost for these reasons: {host: regular expression}."""
    def members():
        return {m['host']: m for m in castctl_json('member', 'list', group)}
    wait_until('%s lost' % ' and '.join(lost),
               lambda: all(members()[host]['state'] == 'lost' for host in lost))
    for host, m in members().items():
        if host in lost:
            check(re.match(lost[host], m['status']), '%s is lost: %s', host, m['status'])
        else:
            check_equal(host, m['state'], 'active')


def check_group(group, state, status):
    shown = castctl_json('group', 'show', group)
    check(shown['state'] == state and re.search(status, shown['status']), 'group is %s: %s',
          shown['state'], shown['status'])


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
        check(re.search(r'- %s .* fatal \(syndrome %#x\)  LOST, refused' % (host, syndrome), shown),
              'tree show: %s', shown)

        check_lost(group, {host: refusal(syndrome, t.psn(messages.packets(1)), edge)})
        t.receivers[host].kill()
        castctl('group', 'reset', group)
        t.receivers[host] = t.receiver(host)
        t.armed(2)
        t.source().done()
        t.check_regions()
    return case


# So many that a source goes round them for a while.
ROUND = Messages(*[('write', 8000)] * 12)


def killed_fails_group(lab):
    """The process of a receiver dies, and its queue pair with it.  The source is told so, in the
    group's name, and begins anew with all after the reset."""
    t = Transfer(lab, 'killed-fail', ROUND, group_options=QUICK)
    source = t.source_in_mid_transfer()
    t.receivers['r3'].kill()
    start = time.monotonic()
    check_equal("source's exit status", source.wait(), REM_OP_ERR)
    print('      the source has the error after %.1f s' % (time.monotonic() - start))
    check_lost('killed-fail', {'r3': SILENT_ALONE % ('n2', 'n2')})
    check_group('killed-fail', 'failed', r'^member r3 is lost: ')

    t.messages = Messages(*[('send', 2000), ('write', 5000)] * 3)
    for host, r in t.receivers.items():
        r.kill()
    castctl('group', 'reset', 'killed-fail')
    t.receivers = {host: t.receiver(host) for host in lab.receivers}
    t.armed(2)
    t.source().done()
    t.check_all_received()


def killed_is_pruned(tree, *edges):
    """A case: receivers die; their edges are 'edges'.  The others get everything, again and
    again."""
    def case(lab):
        group = 'killed-' + lab.topology
        hosts = [tree.children[edge][-1] for edge in edges]
        t = Transfer(lab, group, ROUND, tree=tree, group_options=QUICK + ['--policy', 'prune'])
        source = t.source_in_mid_transfer()
        for host in hosts:
            t.receivers[host].kill()
        start = time.monotonic()
        check_lost(group, {host: SILENT_ALONE % (edge, edge)
                           for host, edge in zip(hosts, edges)})
        print('      the registry has it after %.1f s' % (time.monotonic() - start))
        check_group(group, 'degraded', r'^%s lost: ' % hosts[0])

        def rounds_since(psn):
            return ((lab.group(tree.root, group)['told'] - psn & PSN_MASK)
                    / ROUND.packets(len(ROUND.messages)))
        now = lab.group(tree.root, group)['told']
        wait_until('all that a region holds was written again', lambda: rounds_since(now) > 1)
        source.process.send_signal(signal.SIGTERM)
        check_equal("source's exit status", source.wait(), 0)
        t.check_regions(*hosts)
        wait_until('they are out of the tree',
                   lambda: not [b for _, b in t.branches('address') if b in hosts])
    return case


def killed_while_idle(lab):
    """Receivers die when all was confirmed.  Their edges ask, and nobody else notices."""
    messages = Messages(('send', 100), ('write', 3000))
    t = Transfer(lab, 'killed-idle', messages, group_options=QUICK + ['--policy', 'prune'])
    lost = {}

    def kill(host, edge):
        lost[host] = UNANSWERED_ALONE % (edge, edge)
        t.receivers[host].kill()
        start = time.monotonic()
        check_lost('killed-idle', lost)
        print('      the registry has it after %.1f s' % (time.monotonic() - start))
        check_group('killed-idle', 'degraded', r'(^|; )%s lost: ' % host)
    t.source().done()
    kill('r2', 'n1')
    kill('r5', 'n3')
    time.sleep(3)   # longer than the liveness time
    check_lost('killed-idle', lost)
    t.check_regions(*lost)
    for host in set(lab.receivers) - set(lost):
        check_equal("%s's receives" % host, t.lines(host), messages.received())


def joins(lab):
    """Receivers join in mid-stream: behind an edge that has others, and behind one that is new in the
    tree; one is killed and comes back."""
    t = Transfer(lab, 'joins', Messages(*[('write', 5000), ('write', 100)] * 8),
                 group_options=QUICK + ['--policy', 'prune'], late=('r2', 'r3'))
    source = t.source_in_mid_transfer()

    def member(host):
        return {m['host']: m for m in castctl_json('member', 'list', 'joins')}.get(host, {'state': ''})

    def join(host):
        t.receivers[host] = t.receiver(host)
        start = time.monotonic()
        wait_until('%s is active' % host, lambda: member(host)['state'] == 'active')
        print('      %s is active after %.1f s, from PSN %s on'
              % (host, time.monotonic() - start, member(host)['first_psn']))
    join('r2')      # n1 has r1
    join('r3')      # n2 has nobody
    for _ in range(2):
        t.receivers['r2'].kill()
        wait_until('r2 is lost', lambda: member('r2')['state'] == 'lost')
        join('r2')
    told = lab.group(t.tree.root, 'joins')['told']
    n = t.messages.packets(len(t.messages.messages))
    wait_until('all was written again',
               lambda: lab.group(t.tree.root, 'joins')['told'] - told & PSN_MASK > 2 * n)
    source.process.send_signal(signal.SIGTERM)
    check_equal("source's exit status", source.wait(), 0)
    t.check_regions()


def refusal_is_pruned(lab):
    """A receiver that has registered a wrong key refuses; for the others it is an ordinary
    transfer."""
    messages = Messages(('send', 100), ('write', 5000), ('send-imm', 3000), ('write-imm', 10))
    t = Transfer(lab, 'refused-prune', messages, {'r5': ['--bad-rkey']},
                 group_options=['--policy', 'prune'])
    t.source().done()
    check_lost('refused-prune', {'r5': refusal(NAK_REMOTE_ACCESS, t.psn(1), 'n3')})
    check_group('refused-prune', 'degraded', r'^r5 lost: NAK 0x62 ')
    t.check_regions('r5')
    check_equal("r5's memory", t.receivers['r5'].region(), t.region(100))
    for host in t.receivers:
        check_equal("%s's receives" % host, t.lines(host),
                    messages.received(1 if host == 'r5' else None))


class CutOff:
    """In its block nothing gets from an edge to one of its hosts."""

    def __init__(self, *link):
        self.link = link

    def __enter__(self):
        castctl('--wait=agents', 'link', 'impair', *self.link, 'loss=100%')

    def __exit__(self, kind, value, tb):
        castctl('--wait=agents', 'link', 'impair', *self.link, 'none')


def castbench_names(policy):
    """A case: castbench says who was lost.  r4 is cut off from the start."""
    def case(lab):
        castctl('group', 'add', 'bench-' + policy, *QUICK, '--policy', policy)
        with CutOff('n3', 'r4'):
            bench = Castbench(lab, 'bench-' + policy, '-s', '10000', '-n', '20')
            status, text = bench.wait()
        check(re.search(r'^castbench: r4 is lost after \d+ ms: %s \(seen by n3\)' % CUT_OFF, text, re.M),
              'exit status %d: %s', status, text)
        check_equal('exit status', status, 4 if policy == 'prune' else 2)
        if policy == 'fail-group':
            check('remote operation error' in text, '%s', text)
            return
        sent = read(os.path.join(bench.out, 'source.bin'))
        for host in lab.receivers:
            check((read(os.path.join(bench.out, host + '.bin')) == sent) == (host != 'r4'),
                  "%s's memory", host)
    return case


def states(group):
    return [m['state'] for m in castctl_json('member', 'list', group)]


def has_ended(pid):
    try:
        return read('/proc/%d/stat' % pid).rpartition(b') ')[2].startswith(b'Z')
    except FileNotFoundError:
        return True


def castbench_hears_late(policy):
    """A case: the controller sleeps while r4 gets lost, and wakes up when the source is through: the
    reason comes when castbench has asked for it."""
    def case(lab):
        group = 'late-' + policy
        castctl('group', 'add', group, *QUICK[:2], '--liveness', '6000', '--policy', policy)
        castd = int(read(os.path.join(RUNDIR, 'lab', lab.name, 'castd.pid')))
        with CutOff('n3', 'r4'):
            bench = Castbench(lab, group, '-s', '10000', '-n', '20')
            wait_until('all are members', lambda: states(group) == ['active'] * len(lab.receivers))
            os.kill(castd, signal.SIGSTOP)
            try:
                check_equal('states', states(group), ['active'] * len(lab.receivers))
                source = int(read('/proc/%d/task/%d/children'
                                  % (bench.process.pid, bench.process.pid)).split()[0])
                wait_until('the source has ended', lambda: has_ended(source))
            finally:
                os.kill(castd, signal.SIGCONT)
            status, text = bench.wait()
        check(re.search(r'^castbench: r4 is lost after \d+ ms: ' + CUT_OFF, text, re.M),
              'exit status %d: %s', status, text)
        check_equal('exit status', status, 4 if policy == 'prune' else 2)
    return case


def library_names(lab):
    """So does the source in docs/api.md."""
    castctl('group', 'add', 'api-lost', *QUICK)
    for host in lab.receivers:
        Example('api-receiver', 'api-lost', host)
    with CutOff('n1', 'r2'):
        status, text = Example('api-source', 'api-lost', 'h0', str(len(lab.receivers)),
                               'text').wait()
    check_equal('exit status', status, 1)
    check(re.search('^remote operation error$', text, re.M)
          and re.search('^r2 is lost: ' + CUT_OFF, text, re.M), 'message: %s', text)


def main():
    os.environ['PATH'] = BIN + os.pathsep + os.environ['PATH']
    suite = Suite()
    before = network_snapshot()
    lab = Lab('fig1')
    if suite.case('Figure 1 comes up', lambda lab: lab.up(), lab):
        for op in 'send', 'send-imm', 'write-imm':
            suite.long_case('%s to five, of which one is not ready' % op,
                            not_ready(op, of_one_kind(op), 4), lab)
        suite.long_case('write behind a send to one that is not ready',
                        not_ready('write', WRITES, 1), lab)
        suite.case('all operations on one QP, one is not ready', not_ready('mixed', MIXED, 3), lab)
        suite.long_case('the longest of three RNR timers', longest_timer, lab)
        suite.case('a receiver refuses the key',
                   refused(Messages(('send', 100), ('write', 3000)), 'r5', '--bad-rkey',
                           NAK_REMOTE_ACCESS, REM_ACCESS_ERR), lab)
        suite.long_case('a receiver refuses writes',
                        refused(Messages(('send', 100), ('write', 3000)), 'r4', '--no-access',
                                NAK_INVALID_REQUEST, REM_INV_REQ_ERR), lab)
        suite.long_case("a receiver's buffer is too small",
                        refused(Messages(('send', 0), ('send', 2000)), 'r3', '--short-recv',
                                NAK_REMOTE_OPERATION, REM_OP_ERR), lab)
        suite.case('a receiver is killed, policy fail-group', killed_fails_group, lab)
        suite.case('two receivers are killed, policy prune', killed_is_pruned(FIG1, 'n2', 'n3'),
                   lab)
        suite.case('receivers are killed while nothing is sent', killed_while_idle, lab)
        suite.long_case('receivers join in mid-stream', joins, lab)
        suite.long_case('a receiver refuses the key, policy prune', refusal_is_pruned, lab)
        suite.case('castbench names who is lost, policy fail-group',
                   castbench_names('fail-group'), lab)
        suite.long_case('castbench names who is lost, policy prune', castbench_names('prune'), lab)
        suite.case('castbench hears late who is lost, policy fail-group',
                   castbench_hears_late('fail-group'), lab)
        suite.long_case('castbench hears late who is lost, policy prune',
                        castbench_hears_late('prune'), lab)
        suite.case('librocecast names who is lost', library_names, lab)
    suite.case('Figure 1 goes', down_leaves_nothing, lab, before)

    noagg = Lab('noagg')
    if suite.is_long and suite.case('noagg comes up', lambda lab: lab.up(), noagg):
        suite.case('a receiver is killed, and the source agent merges',
                   killed_is_pruned(NOAGG, 'n6'), noagg)
    suite.long_case('noagg goes', down_leaves_nothing, noagg, before)
    return suite.finish()


if __name__ == '__main__':
    sys.exit(main())
