#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""End-to-end cases with one switch on real soft-RoCE; runs inside the VM (see tests/e2e/run)."""
import glob
import os
import re
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
from harness import (BIN, PSN_MASK, RESULTS, RUNDIR, Captures, Castbench, Example, Lab,
                     Netem, Receiver, Source, Suite, castbench, castctl, castctl_json, check,
                     check_equal, check_replicas, data_flows, down_leaves_nothing, group_add,
                     network_snapshot, no_drops, pattern, processes_of, read, run, wait_until,
                     work_file, write_meta)

# enum ibv_wc_status, as joinrc's exit status.
REM_INV_REQ_ERR = 64 + 9
REM_ACCESS_ERR = 64 + 10


def uplink(lab):
    return lab.device('sa', lab.port('sa', 'n1'))


# Proves MT-5.2-11.
def write_16m(lab, mtu):
    """16 MiB in 64 KiB writes; PSNs wrap after 16 packets."""
    group, psn, size, count = 'wrap%d' % mtu, 0xfffff0, 65536, 256
    group_add(group, '--mtu', str(mtu), '--psn', hex(psn))
    with no_drops(lab):
        result, out = castbench(lab, group, '-s', str(size), '-n', str(count), '-t', '8',
                                '-m', str(mtu), '--count-bytes', uplink(lab))
    check_equal('bytes', result['bytes'], 16 << 20)
    check_replicas(lab, result, out)

    end = psn + (16 << 20) // mtu & PSN_MASK
    edge = lab.group('n1', group)
    check_equal('PSNs', [edge[k] for k in ('sent_next', 'confirmed', 'told')], [end] * 3)
    check_equal('branches', sorted(b['name'] for b in edge['branches']), lab.receivers)
    for branch in edge['branches']:
        check_equal("%s's una" % branch['name'], branch['confirmed'], end)
        check(branch['acks'] >= count, '%s sent %d ACKs for %d writes', branch['name'],
              branch['acks'], count)
    sent = result['uplink']['tx_bytes']
    check(result['bytes'] < sent < 2 * result['bytes'],
          'uplink carried %d bytes: less than one copy, or as much as two', sent)


def unicast(lab):
    """The baseline that replication is compared with: the same bytes once per receiver."""
    with no_drops(lab):
        result, out = castbench(lab, None, '-s', '65536', '-n', '64', '-t', '8', '-m', '4096',
                                '--count-bytes', uplink(lab))
    check_replicas(lab, result, out)
    sent = result['uplink']['tx_bytes']
    check(sent > 2 * result['bytes'], 'uplink carried %d bytes: not two copies', sent)


def loss(lab):
    """Loss in the fabric, both ways: NAKs and time-outs repair it."""
    group_add('loss', '--mtu', '4096')
    with no_drops(lab, 'neigh_queue', 'no_neighbour'), Netem(lab, lab.fabric(), 'loss', '2%'):
        result, out = castbench(lab, 'loss', '-s', '65536', '-n', '64', '-t', '4')
    check_replicas(lab, result, out)
    edge = lab.group('n1', 'loss')
    check(edge['sent']['naks'] > 0, 'no NAK was needed: %r', edge['sent'])


def two_runs(lab):
    """The same group twice: the second run is an epoch of its own."""
    group_add('twice')
    epochs = []
    for seed in ('1', '2'):
        with no_drops(lab):
            result, out = castbench(lab, 'twice', '-s', '32768', '-n', '64', '-t', '8',
                                    '--seed', seed)
        check_replicas(lab, result, out)
        epochs += result['epochs']
    check_equal('epochs', epochs, [1, 2])
    check_equal('epoch shown', castctl_json('group', 'show', 'twice')['epoch'], 2)


def rounds(lab):
    """More blocks than the region holds: later rounds replace earlier ones."""
    group_add('rounds', '--mtu', '4096')
    data = work_file('rounds.in', pattern(100001, 3))
    result, out = castbench(lab, 'rounds', '--file', data, '-s', '10000', '-n', '25', '-t', '4')
    check_equal('bytes', result['bytes'], 2 * 100001 + 3 * 10000)
    check_replicas(lab, result, out)
    check(read(os.path.join(out, 'source.bin')) == read(data), 'source.bin is not the file')


def dead_receiver(lab):
    """castbench names a receiver process that dies, in its JSON, too."""
    group_add('dead')
    bench = Castbench(lab, 'dead', '-n', '1000000')
    wait_until('data flows', lambda: data_flows(lab, 'dead', 'n1'))
    children = processes_of(bench)
    check_equal('processes: a source and two receivers', len(children), 3)
    os.kill(children[2], signal.SIGKILL)
    status, text = bench.wait()
    check_equal('exit status', status, 2)
    said = 'receiver r2 (process %d) died: Killed' % children[2]
    check(said in text, 'message: %r', text)
    check_failed_report(bench, said)


def interrupted(lab):
    """castbench that is told to end writes what it knows, and leaves no process behind."""
    group_add('ended')
    bench = Castbench(lab, 'ended', '-n', '1000000', '--repeat', '2')
    wait_until('data flows', lambda: data_flows(lab, 'ended', 'n1'))
    children = processes_of(bench)
    bench.process.terminate()
    status, text = bench.wait()
    check_equal('exit status', status, 2)
    check_equal('processes left', [p for p in children if os.path.exists('/proc/%d' % p)], [])
    check('interrupted (Terminated)' in text, 'message: %r', text)
    check_failed_report(bench, 'interrupted (Terminated)')


def check_failed_report(bench, why):
    """There is one run, which has failed, and of it what was known by then."""
    report = bench.read_report()
    check(report['ok'] is False and why in report['error'], 'report: %r', report)
    check_equal('runs', [(r['ok'], r['error'], len(r['replicas'])) for r in report['runs']],
                [(False, why, 2)])
    check_equal('summary', report['summary'], [])


def library(lab):
    """The programs of docs/api.md.  Receivers register before the source, so that the second
    message needs another epoch, which they must follow."""
    group_add('api')
    for epoch, text in (1, 'first'), (2, 'second'):
        receivers = [Example('api-receiver', 'api', host) for host in lab.receivers]

        def registered():
            members = castctl_json('group', 'show', 'api')['members']
            return [m['want'] for m in members] == ['active'] * len(lab.receivers)
        wait_until('receivers register', registered)
        Example('api-source', 'api', 'h0', str(len(receivers)), text).check_result('')
        for receiver in receivers:
            receiver.check_result(text + '\n')
        group = castctl_json('group', 'show', 'api')
        check_equal('epoch', group['epoch'], epoch)
        check_equal('members', [m['state'] for m in group['members']], ['left'] * len(receivers))


# Proves MT-3-6.
def joinrc_both(lab):
    """Source and receivers that use nothing but libibverbs and castctl."""
    group_add('join')
    data = pattern(300007, 5)
    receivers = [Receiver(lab, 'join', r, 400000) for r in lab.receivers]
    # Receivers may come before the source: the epoch is the group's first.
    for r in receivers:
        r.armed(1)
    with no_drops(lab):
        Source(lab, 'join', '--file', work_file('join.in', data), '-s', '10007').done()
    for r in receivers:
        check(r.region() == data + bytes(400000 - len(data)), "%s's memory differs", r.name)


def source_restarts(lab):
    """Receivers stay; each new source is a new epoch, and the old one's packets are stale."""
    group_add('again')
    first, second = pattern(200000, 7), pattern(200000, 8)
    receivers = [Receiver(lab, 'again', r, 200000) for r in lab.receivers]
    for r in receivers:
        r.armed(1)
    Source(lab, 'again', '--file', work_file('again1.in', first)).done()
    for r in receivers:
        check(r.region() == first, "epoch 1: %s's memory differs", r.name)

    old = Source(lab, 'again', '--file', work_file('again1.in'), '--keep-sending')
    old.wait_line('ready')
    for r in receivers:
        r.armed(2)
    wait_until('data of epoch 2 flows', lambda: data_flows(lab, 'again', 'n1'))
    old.process.send_signal(signal.SIGSTOP)
    stale = lab.drops('sa')['stale_epoch']

    Source(lab, 'again', '--file', work_file('again2.in', second)).done()
    for r in receivers:
        r.armed(3)
        check(r.region() == second, "epoch 3: %s's memory differs", r.name)
    old.process.send_signal(signal.SIGCONT)
    wait_until('packets of epoch 2 are counted as stale',
               lambda: lab.drops('sa')['stale_epoch'] > stale)
    for r in receivers:
        check(r.region() == second, "%s's memory changed after the old source went on", r.name)
    old.process.send_signal(signal.SIGTERM)
    check_equal("old source's exit status", old.wait(), 0)


def bad_requests(lab):
    """What a group cannot carry is refused to the source in bounded time, and harms nobody."""
    group_add('bad')
    good = pattern(65536, 11)
    path = work_file('bad.in', good)
    receivers = [Receiver(lab, 'bad', r, len(good)) for r in lab.receivers]
    for r in receivers:
        r.armed(1)
    Source(lab, 'bad', '--file', path).done()
    poison = work_file('poison.in', bytes([0xee]) * 65536)
    epoch = 1
    for options, status, reason in (
            (['--file', poison, '--bad-rkey'], REM_ACCESS_ERR, 'rkey'),
            (['--file', poison, '--past-region'], REM_ACCESS_ERR, 'mr_range'),
            (['--op', 'read'], REM_INV_REQ_ERR, 'opcode'),
            (['--op', 'atomic'], REM_INV_REQ_ERR, 'opcode')):
        before = lab.drops('sa')
        source = Source(lab, 'bad', *options)
        check_equal('%s: exit status' % options[-1], source.wait(), status)
        after = lab.drops('sa')
        check(after[reason] > before[reason], '%s: not counted as %s', options[-1], reason)
        epoch += 1
        for r in receivers:
            r.armed(epoch)
            check(r.region() == good, "%s: %s's memory changed", options[-1], r.name)
    again = pattern(65536, 12)
    Source(lab, 'bad', '--file', work_file('bad2.in', again)).done()
    for r in receivers:
        check(r.region() == again, "afterwards: %s's memory differs", r.name)


def send_rnr(lab):
    """SEND waits for the receiver that has no buffer, and then goes on.  Meanwhile the group says
    for whom it waits."""
    group_add('rnr', '--timeout', '17', '--liveness', '2200')
    data = pattern(16384, 13)
    send = ['--op', 'send', '-s', '4096']
    r1 = Receiver(lab, 'rnr', 'r1', len(data), *send)
    r2 = Receiver(lab, 'rnr', 'r2', len(data), *send, '--receives', '0')
    r1.armed(1)
    r2.armed(1)
    source = Source(lab, 'rnr', '--file', work_file('rnr.in', data), *send)

    def r2_not_ready():
        state = lab.group('n1', 'rnr')
        return state and any(b['rnrs'] for b in state['branches'] if b['name'] == 'r2')
    wait_until('r2 answers RNR', r2_not_ready)
    check(source.process.poll() is None, 'source did not wait: %s', source.text())
    check(lab.group('n1', 'rnr')['sent']['rnrs'] > 0, 'no RNR NAK went up')
    wait_until('the group is slow', lambda: castctl_json('group', 'show', 'rnr')['state'] == 'slow')
    check_equal('status', castctl_json('group', 'show', 'rnr')['status'],
                'r2 slow: confirms 0 packets/s, the least is 10 (seen by n1)')
    r2.tell('recv')
    source.done()
    wait_until('the group is ready',
               lambda: castctl_json('group', 'show', 'rnr')['state'] == 'ready')
    for r in (r1, r2):
        check(r.region() == data, "%s's memory differs", r.name)
        check_equal('%s: messages' % r.name, r.count('received send 4096'), 4)


def silent_receiver(lab):
    """A receiver that dies stops the group; once it is removed the others go on."""
    group_add('silent', '--liveness', '0')
    data = pattern(65536, 19)
    receivers = {r: Receiver(lab, 'silent', r, len(data)) for r in lab.receivers}
    for r in receivers.values():
        r.armed(1)
    source = Source(lab, 'silent', '--file', work_file('silent.in', data), '-s', '8192',
                    '--keep-sending')
    wait_until('data flows', lambda: data_flows(lab, 'silent', 'n1'))
    receivers['r2'].kill()

    def stalled():
        state = lab.group('n1', 'silent')
        una = {b['name']: b['confirmed'] for b in state['branches']}
        return state['told'] == una['r2'] != state['sent_next'] == una['r1']
    wait_until('r1 has everything that was sent and r2 has not', stalled)
    stopped_at = lab.group('n1', 'silent')['told']
    castctl('member', 'remove', 'silent', 'r2')
    wait_until('the group goes on', lambda: lab.group('n1', 'silent')['told'] != stopped_at)
    check_equal('members', [m['host'] for m in castctl_json('group', 'show', 'silent')['members']],
                ['r1'])
    source.process.send_signal(signal.SIGTERM)
    check_equal("source's exit status", source.wait(), 0)
    check(receivers['r1'].region() == data, "r1's memory differs")


def capture(lab):
    """Captures every hop of a small write for the independent checker."""
    folder = os.path.join(RESULTS, 'captures-%d' % len(lab.receivers))
    # No questions to idle receivers among the packets, nor to those of earlier groups.
    for group in castctl_json('group', 'list'):
        castctl('--wait=agents', 'group', 'set', group['name'], '--liveness', '0')
    group_add('capture', '--psn', '0xfffff8', '--liveness', '0')
    data = pattern(3 * 5000, 17)
    receivers = {r: Receiver(lab, 'capture', r, 20000) for r in lab.receivers}
    for r in receivers.values():
        r.armed(1)
    with Captures(lab, lab.links(), folder):
        Source(lab, 'capture', '--file', work_file('capture.in', data), '-s', '5000').done()
    write_meta(lab, 'capture', folder)
    for r in receivers.values():
        check(r.region()[:len(data)] == data, "%s's memory differs", r.name)


def five(lab):
    """Five receivers: one SRH of 152 bytes."""
    group_add('five', '--mtu', '4096', '--psn', '0xffffff')
    with no_drops(lab):
        result, out = castbench(lab, 'five', '-s', '65536', '-n', '64', '-t', '4')
    check_replicas(lab, result, out)
    edge = lab.group('n1', 'five')
    check_equal('branches', len(edge['branches']), 5)
    check_equal('PSNs', edge['told'], 0xffffff + (64 * 65536) // 4096 & PSN_MASK)


#
# Without registry or castd
#
def registry_down(_lab):
    """Without the registry castctl ends with 3 within its time limit."""
    p = run('castctl', '--timeout', '1', 'group', 'list',
            env={'ROCECAST_DB': 'unix:%s' % work_file('nobody.sock')})
    check_equal('exit status', p.returncode, 3)
    check('nobody.sock' in p.stderr, 'message: %r', p.stderr)


def castd_down(lab):
    """castd stopped: exit 3, and the message says how far things got."""
    pid_files = glob.glob(os.path.join(RUNDIR, 'lab', lab.name, '**', '*castd*.pid'),
                          recursive=True)
    check_equal('castd pid files', len(pid_files), 1)
    pid = int(read(pid_files[0]))
    os.kill(pid, signal.SIGSTOP)
    try:
        p = run('castctl', '--timeout', '2', 'group', 'add', 'late')
    finally:
        os.kill(pid, signal.SIGCONT)
    check_equal('exit status', p.returncode, 3)
    check(re.search(r'castd', p.stderr) and re.search(r'nb_cfg|reachable', p.stderr),
          'message: %r', p.stderr)
    # The request was written: castd takes it up when it is back.
    wait_until('castd allocates', lambda: castctl_json('group', 'show', 'late')['epoch'] == 1)
    castctl('group', 'del', 'late')


def main():
    os.environ['PATH'] = BIN + os.pathsep + os.environ['PATH']
    suite = Suite()
    before = network_snapshot()

    two = Lab('star')
    if suite.case('lab with two receivers comes up', lambda lab: lab.up(), two):
        suite.long_case('16 MiB over the PSN wrap, MTU 1024', write_16m, two, 1024)
        suite.case('16 MiB over the PSN wrap, MTU 4096', write_16m, two, 4096)
        suite.case('unicast over the same fabric', unicast, two)
        suite.case('2 % loss in the fabric', loss, two)
        suite.case('two runs on one group', two_runs, two)
        suite.case('several rounds over a region, odd sizes', rounds, two)
        suite.case('a dead receiver is named', dead_receiver, two)
        suite.case('castbench is told to end', interrupted, two)
        suite.case('librocecast: the programs of docs/api.md', library, two)
        suite.case('joinrc as source and receivers', joinrc_both, two)
        suite.case('only the source restarts', source_restarts, two)
        suite.case('requests a group refuses', bad_requests, two)
        suite.case('SEND and a receiver that is not ready', send_rnr, two)
        suite.case('a receiver that falls silent', silent_receiver, two)
        suite.case('captures of every hop', capture, two)
        suite.case('registry down', registry_down, two)
        suite.case('castd down', castd_down, two)
    suite.case('castlab down restores the network', down_leaves_nothing, two, before)

    star = Lab('star', 'N=5')
    if suite.case('lab with five receivers comes up', lambda lab: lab.up(), star):
        suite.case('five receivers', five, star)
        suite.case('captures of every hop, five receivers', capture, star)
    suite.case('castlab down again', down_leaves_nothing, star, before)
    return suite.finish()


if __name__ == '__main__':
    sys.exit(main())
