#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""End-to-end cases with programs that connect by RDMA-CM, on real soft-RoCE: one to one, through the
fabric, without a group; and the same programs with a group.  Runs inside the VM (see tests/e2e/run)."""
import ipaddress
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
from captures import BTH, ETH, IP6, UDP, read_pcap
from harness import (BIN, PATIENCE, Captures, Castbench, Example, Lab, Suite, castctl, castctl_json, check,
                     check_equal, check_replicas, down_leaves_nothing, network_snapshot, no_drops, output,
                     pattern, read, run, running, wait_until, work_file)

PORT = 7471
N_PINGS = 10

# A message of the connection manager is a datagram of 256 bytes behind a DETH.
OP_UD_SEND_ONLY = 0x64
MAD = ETH + IP6 + UDP + BTH + 8
ATTRIBUTES = {0x10: 'REQ', 0x12: 'REJ', 0x13: 'REP', 0x14: 'RTU', 0x15: 'DREQ', 0x16: 'DREP'}
PATH_MTU = MAD + 24 + 50    # in a REQ, in the high 4 bits; 5: 4096 bytes.


class Server(Example):
    """A program that runs, and listens at this address; None: it may be connected before that is
    seen."""

    def __init__(self, address, *argv, stdout=subprocess.PIPE):
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=stdout,
                                        stderr=subprocess.PIPE, text=True)
        running.append(self)

        def listens():
            check(self.process.poll() is None, '%s ended: %r', argv[0], self.process.poll())
            ids = json.loads(output('rdma', '-j', 'resource', 'show', 'cm_id'))
            return ('LISTEN', '%s:%d' % (address, PORT)) in [(i['state'], i['src-addr']) for i in ids]
        if address:
            wait_until('%s listens' % argv[0], listens)

    def wait(self):
        texts = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, ''.join(filter(None, texts))


def rping(role, address, *options):
    return ('rping', role, '-a', address, '-p', str(PORT), '-C', str(N_PINGS), '-S', '4000', '-v',
            '-V', *options)


def check_pings(who, result):
    status, text = result
    check_equal('%s: exit status and data, %s' % (who, text),
                (status, len(re.findall(r'ping data: rdma-ping-\d+: ', text))), (0, N_PINGS))


def cm_messages(path):
    """[(sender's last byte, message, frame)]"""
    frames = [frame for _, frame in read_pcap(path)]
    return [(frame[ETH + 23], ATTRIBUTES[int.from_bytes(frame[MAD + 16:MAD + 18], 'big')], frame)
            for frame in frames if len(frame) > MAD and frame[ETH + 6] == 17
            and frame[ETH + IP6 + UDP] == OP_UD_SEND_ONLY]


def rping_across(lab):
    """Unmodified; all that the connection is made of crosses the fabric, and what is asked for is
    the path MTU of the hosts' devices."""
    client, server = lab.address('h0'), lab.address('r1')
    folder = work_file('cm')
    with no_drops(lab), Captures(lab, [p for p in lab.links() if p[2] == 'h0'], folder):
        far = Server(server, *rping('-s', server))
        check_pings('client', Example(*rping('-c', server, '-I', client)).wait())
        check_pings('server', far.wait())
    messages = cm_messages(os.path.join(folder, 'sa-h0.pcap'))
    check({(0, 'REQ'), (1, 'REP'), (0, 'RTU')} <= {m[:2] for m in messages}
          and 'DREQ' in {m[1] for m in messages}, 'seen: %r', [m[:2] for m in messages])
    check_equal('path MTU in the request', messages[0][2][PATH_MTU] >> 4, 5)


def device_rule(lab):
    """Without the rule for its device a host's kernel refuses, and the doctor says so; with it, the
    same program that listens is connected."""
    client, server = lab.address('h0'), lab.address('r1')
    device = lab.name + '-r1'
    table = re.search(r'oif %s lookup (\d+)' % device, output('ip', '-6', 'rule')).group(1)

    def told():
        findings = json.loads(run('castctl', '-j', 'doctor', '--role', 'host').stdout)
        return [f['found'] for f in findings if f['check'] == 'rdma-cm']
    check_equal('doctor', told(), ['3 devices accept requests from Proxy Addresses'])
    far = Server(server, *rping('-s', server))
    rule = 'pref', '9', 'oif', device, 'lookup', table
    output('ip', '-6', 'rule', 'del', *rule)
    try:
        status, text = Example(*rping('-c', server, '-I', client)).wait()
        doctor = told()
    finally:
        output('ip', '-6', 'rule', 'add', *rule)
    check(status != 0 and 'RDMA_CM_EVENT_REJECTED, error 28' in text, 'status %d: %s', status, text)
    check_equal('doctor', doctor, ['RDMA-CM at rxe_r1 refuses requests from a Proxy Address: with '
                                   'oif %s there is no route there' % device])
    check_pings('client', Example(*rping('-c', server, '-I', client)).wait())
    check_pings('server', far.wait())


def example(lab, data, room):
    """Runs examples/ from r2 to r1.  Returns the results of both, and what was received."""
    source, receiver = lab.address('r2'), lab.address('r1')
    path = work_file('cm.out')
    with open(path, 'w') as out:
        far = Server(receiver, 'cm-receiver', receiver, str(PORT), str(room), stdout=out)
    near = Example('cm-source', receiver, str(PORT), work_file('cm.in', data), source)
    return near.wait(), far.wait(), read(path)


def examples(lab):
    """librdmacm and libibverbs alone: less than a chunk, whole chunks, and neither."""
    for size in 1, 4 * 65536, 1000003:
        data = pattern(size, size)
        with no_drops(lab):
            near, far, received = example(lab, data, 1000003)
        check_equal('source', near, (0, '%d bytes written\n' % size))
        check_equal('receiver', far, (0, ''))
        check(received == data, '%d bytes: what was received differs', size)


def example_too_large(lab):
    """A source that ends without a word: its kernel tells the receiver."""
    near, far, received = example(lab, pattern(1001, 1), 1000)
    check_equal('source', near, (1, 'cm-source: %s does not fit into the region\n'
                                 % work_file('cm.in')))
    check_equal('receiver', far, (1, 'cm-receiver: the source has gone before the file was whole\n'))
    check_equal('received', received, b'')


def receiver_killed(lab):
    """A source gets to know at once, by its connection or by an answer to a write."""
    receiver, link = lab.address('r1'), ('n1', 'r1')
    castctl('--wait=agents', 'link', 'impair', *link, 'rate=10M')
    try:
        far = Server(receiver, 'cm-receiver', receiver, str(PORT), '20000000')
        near = Example('cm-source', receiver, str(PORT), work_file('cm.in', pattern(20000000, 2)),
                       lab.address('r2'))
        wait_until('they are connected', lambda: re.search(
            r'rxe_r2/.* type RC state RTS', output('rdma', 'resource', 'show', 'qp')))
        far.kill()
        status, text = near.wait()
    finally:
        castctl('--wait=agents', 'link', 'impair', *link, 'none')
    check_equal('exit status', status, 1)
    check(re.fullmatch(r'cm-source: (the receiver has gone|write \d+: remote access error)\n', text),
          'source: %r', text)


#
# With a group.
#

GROUP_PORT = 7174
ROOM = 1000003


class Watch:
    """castctl watch, and when each event was seen."""

    def __init__(self, group):
        self.process = subprocess.Popen(['castctl', '-j', 'watch', group], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, text=True)
        running.append(self)
        self.events = []
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.events.append((time.monotonic(), json.loads(line)))

    def wait(self, event, member=None, since=0):
        """When the first such event came, and the event."""
        def seen():
            return [(at, e) for at, e in self.events
                    if at >= since and e['event'] == event and e.get('member') == member]
        return wait_until('event %s of %s' % (event, member or 'the group'), seen)[0]

    def kill(self):
        self.process.kill()
        self.process.wait()


def connections(state='established'):
    """Hosts that have a connection in this state."""
    return sorted(c['host'] for c in castctl_json('connection', 'list', 'g') if c['state'] == state)


def proxy():
    return castctl_json('group', 'show', 'g')['proxy']


def listening(lab, host):
    """A receiver at the host, and the file that it writes to."""
    path = work_file('cm.' + host)
    with open(path, 'w') as out:
        return Server(None, 'cm-receiver', lab.address(host), str(PORT), str(ROOM), stdout=out), path


def send(lab, data):
    return Example('cm-source', proxy(), str(GROUP_PORT), work_file('cm.in', data),
                   lab.address('h0')).wait()


def transfer(lab, size):
    """All receivers are started, and connected by the group; then the source writes a file."""
    data = pattern(size, size)
    receivers = {host: listening(lab, host) for host in lab.receivers}
    wait_until('all are connected', lambda: connections() == lab.receivers)
    check_equal('source', send(lab, data), (0, '%d bytes written\n' % size))
    for host, (receiver, path) in receivers.items():
        check_equal(host, receiver.wait(), (0, ''))
        check(read(path) == data, '%s: what was received differs', host)


def one_to_many(lab):
    """The same programs: one write lands on all.  What ends is over; what is started again comes
    back by itself, without a word to castctl."""
    castctl('group', 'add', 'g', '--connect', '--mtu', '4096')
    for host in lab.receivers:
        castctl('member', 'add', 'g', host, '--listen', str(PORT))
    wait_until('nobody listens yet', lambda: connections('refused') == lab.receivers)
    for size in 1, 4 * 65536, ROOM:
        with no_drops(lab):
            transfer(lab, size)
        wait_until('all have gone', lambda: not connections())
        check_equal('source', castctl_json('group', 'show', 'g')['source'], None)


def killed(lab):
    """rping, unmodified: its kernel says when it is killed."""
    castctl('member', 'remove', 'g', 'r1')
    castctl('member', 'add', 'g', 'r1', '--listen', str(PORT),
            '--private-data', 'va:0,rkey:1,len:4096')
    watch = Watch('g')
    address = lab.address('r1')
    far = Server(None, 'rping', '-s', '-a', address, '-p', str(PORT))
    watch.wait('connected', 'r1')
    near = Example('rping', '-c', '-a', proxy(), '-p', str(GROUP_PORT), '-I', lab.address('h0'))
    watch.wait('connected')
    epoch = castctl_json('group', 'show', 'g')['epoch']
    check_equal('connected', connections(), ['h0', 'r1'])
    for process, member in (near, None), (far, 'r1'):
        begin = time.monotonic()
        process.kill()
        at, event = watch.wait('disconnected', member, begin)
        print('# %s: killed, %d ms later: %s' % (member or 'source', 1000 * (at - begin), event),
              flush=True)
        check('dreq' in json.dumps(event), 'not by DREQ: %r', event)
    wait_until('nobody is there', lambda: not connections())
    shown = castctl_json('group', 'show', 'g')
    check_equal('source', shown['source'], None)
    check_equal('epoch', shown['epoch'], epoch)
    watch.kill()


def rejected(lab):
    """Each reason that docs/joining.md lists, as a program sees it."""
    def says(address, port, error):
        status, text = Example('rping', '-c', '-a', address, '-p', str(port), '-I',
                               lab.address('h0')).wait()
        check(status != 0 and 'RDMA_CM_EVENT_REJECTED, error %d' % error in text,
              'status %d, not error %d: %s', status, error, text)
    says('fd00:ffff::999', GROUP_PORT, 8)
    says(proxy(), GROUP_PORT + 1, 8)
    says(proxy(), GROUP_PORT, 28)           # no members
    address = lab.address('r1')
    receiver = Server(None, 'rping', '-s', '-a', address, '-p', str(PORT))
    wait_until('r1 is connected', lambda: connections() == ['r1'])
    first = Example('rping', '-c', '-a', proxy(), '-p', str(GROUP_PORT), '-I', lab.address('h0'))
    wait_until('there is a source', lambda: connections() == ['h0', 'r1'])
    says(proxy(), GROUP_PORT, 28)           # a second source
    first.kill()
    receiver.kill()
    castctl('group', 'add', 'small', '--connect', '--mtu', '1024')
    says(castctl_json('group', 'show', 'small')['proxy'], GROUP_PORT, 26)
    castctl('group', 'del', 'small')
    castctl('member', 'remove', 'g', 'r1')
    castctl('member', 'add', 'g', 'r1', '--listen', str(PORT))
    wait_until('nobody is there', lambda: not connections())


def restarts(lab):
    """castd and the nodes are started again: connected programs notice nothing."""
    data = pattern(ROOM, 7)
    receivers = {host: listening(lab, host) for host in lab.receivers}
    wait_until('all are connected', lambda: connections() == lab.receivers)
    for name in 'castd', 'n1', 'n3', 'sa':
        output('castlab', 'restart', name, '-l', lab.name)
    castctl('--wait=agents', 'group', 'add', 'settle')
    castctl('--wait=agents', 'group', 'del', 'settle')
    check_equal('still connected', connections(), lab.receivers)
    check_equal('source', send(lab, data), (0, '%d bytes written\n' % ROOM))
    for host, (receiver, path) in receivers.items():
        check_equal(host, receiver.wait(), (0, ''))
        check(read(path) == data, '%s: what was received differs', host)


#
# castbench -R.
#

def nobody_left(group):
    """Of what castbench has had connected."""
    def left():
        shown = castctl_json('group', 'show', group)
        return [shown['source'], castctl_json('member', 'list', group),
                [c for c in castctl_json('connection', 'list', group) if c['state'] != 'ended']]
    wait_until('nobody is left in group ' + group, lambda: left() == [None, [], []])


def ecn_fields(path, address):
    """Of the packets that a host's queue pairs send; the connection manager's are others."""
    sender = ipaddress.IPv6Address(address).packed
    return {frame[ETH + 1] >> 4 & 3 for _, frame in read_pcap(path)
            if frame[ETH + 8:ETH + 24] == sender and frame[ETH + 6] == 17
            and frame[ETH + IP6 + UDP] != OP_UD_SEND_ONLY}


def castbench_connects(lab):
    """Connected by RDMA-CM everything else is as without: each operation, ECN, several runs, two groups."""
    castctl('group', 'add', 'bench', '--connect', '--mtu', '4096')
    castctl('group', 'add', 'other', '--connect', '--port', '7175', '--mtu', '4096')
    folder, ports = work_file('cm-bench'), [p for p in lab.links() if p[2] in ('h0', 'r1')]
    for operation, options, ecn in ('write', [], 0), ('write-imm', [], 0), ('send', ['-E'], 2):
        with no_drops(lab), Captures(lab, ports, folder):
            bench = Castbench(lab, 'bench', '-R', '-n', '200', '-s', '20000', *options, operation=operation)
            result, out = bench.result()
        check_replicas(lab, result, out)
        for node, host in ('sa', 'h0'), ('n1', 'r1'):
            check_equal('ECN of %s, %s' % (host, operation), ecn_fields(
                os.path.join(folder, '%s-%s.pcap' % (node, host)), lab.address(host)), {ecn})
        report = bench.read_report()
        check_equal('RDMA-CM, path MTU', (report['options']['rdma_cm'], result['mtu']), (True, 4096))
        times = [result['connect_ms'], *(r['connect_ms'] for r in result['replicas'])]
        check(all(ms > 0 for ms in times), 'times of connecting: %r', times)
        print('# %s: connected in %s ms' % (operation, times), flush=True)
        nobody_left('bench')
    bench = Castbench(lab, 'bench,other', '-R', '-p', '7500', '--repeat', '2', '--replicas', '3,5',
                      '-n', '100')
    status, text = bench.wait()
    check_equal('two groups', (status, text.count('connected by RDMA-CM')), (0, 4))
    check_equal('runs', [(r['replicas_n'], r['ok']) for r in bench.read_report()['runs']],
                [(3, True), (5, True)] * 2)
    for group in 'bench', 'other':
        nobody_left(group)


def castbench_refused(lab):
    """What a group does not take is named, and nothing stays behind; nor when castbench is stopped."""
    castctl('group', 'set', 'other', '--connect=off')
    castctl('group', 'add', 'small', '--connect', '--mtu', '1024')
    for group, sentence in (
            ('other', '-R: group other takes no RDMA-CM connections (castctl group set other --connect)'),
            ('small', 'source h0: group small: rdma_connect: rejected for reason 26 (path MTU not '
                      'supported): group small has path MTU 1024, not 4096')):
        check_equal(group, Castbench(lab, group, '-R').wait(), (2, 'castbench: %s\n' % sentence))
    nobody_left('small')
    castctl('group', 'del', 'small')
    bench = Castbench(lab, 'bench', '-R', '-D', '3600')
    wait_until('all are connected', lambda: 'h0' in [
        c['host'] for c in castctl_json('connection', 'list', 'bench') if c['state'] == 'established'])
    bench.process.send_signal(signal.SIGINT)
    status, text = bench.wait()
    check(status == 2 and 'interrupted' in text, 'status %d: %s', status, text)
    nobody_left('bench')
    for group in 'bench', 'other':
        castctl('group', 'del', group)


def main():
    os.environ['PATH'] = BIN + os.pathsep + os.environ['PATH']
    suite = Suite()
    before = network_snapshot()
    lab = Lab('star')
    if suite.case('a lab for RDMA-CM comes up', lambda lab: lab.up(), lab):
        suite.case('rping from host to host', rping_across, lab)
        suite.case('the rule for a device', device_rule, lab)
        suite.case('cm-source and cm-receiver', examples, lab)
        suite.case('cm-source ends before it has sent', example_too_large, lab)
        suite.case('cm-receiver is killed', receiver_killed, lab)
    suite.case('the lab for RDMA-CM goes', down_leaves_nothing, lab, before)
    lab = Lab('fig1')
    if suite.case('a lab for groups by RDMA-CM comes up', lambda lab: lab.up(), lab):
        suite.case('one source, five receivers, by RDMA-CM', one_to_many, lab)
        suite.case('programs of a group are killed', killed, lab)
        suite.case('reasons of a rejection', rejected, lab)
        suite.case('connections outlive daemons', restarts, lab)
        suite.case('castbench -R', castbench_connects, lab)
        suite.case('castbench -R is refused, and stopped', castbench_refused, lab)
    suite.case('the lab for groups by RDMA-CM goes', down_leaves_nothing, lab, before)
    return suite.finish()


if __name__ == '__main__':
    sys.exit(main())
