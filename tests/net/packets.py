# SPDX-License-Identifier: Apache-2.0
"""Cases about single packets: castctl trace, castctl capture, and what they must not do."""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys

from netlab import Loop, group_add, model

import harness
from captures import packed
from harness import castctl, castctl_json, check, check_equal, output, wait_until

RECEIVERS = ['r1', 'r2', 'r3']

# Sends frames, in hexadecimal on standard input, from a device.
SENDER = ('import socket, sys; s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); '
          's.bind((sys.argv[1], 0)); [s.send(bytes.fromhex(l)) for l in sys.stdin]')

# VLAN tags as in a frame: of a VLAN, and such that make no difference.
FOREIGN_TAGS = ('8100004d', '88a80005', '88a800058100004d', '8100a0008100004d')
PRIORITY_TAGS = ('8100a000', '8100a0008100a000')


def frames(path, growing=False):
    """The frames in a pcap file, which must end behind one, unless it is 'growing': the kernel may
    be writing the last one."""
    data = harness.read(path)
    check_equal('magic', data[:4], struct.pack('=I', 0xa1b2c3d4))
    found, at = [], 24
    while at < len(data):
        if growing and (at + 16 > len(data)
                        or at + 16 + struct.unpack_from('=I', data, at + 8)[0] > len(data)):
            break
        check(at + 16 <= len(data), '%s ends inside a record header', path)
        caplen, length = struct.unpack_from('=II', data, at + 8)
        check_equal('captured length', caplen, length)
        check(at + 16 + caplen <= len(data), '%s ends inside a frame', path)
        found.append(data[at + 16:at + 16 + caplen])
        at += 16 + caplen
    return found


def bth_of(frame):
    """Offset of a frame's BTH, through SRH and inner IPv6; None if it is no RoCE packet."""
    at, header = 54, frame[20]
    while header in (41, 43):
        if header == 43:
            header, at = frame[at], at + 8 * (frame[at + 1] + 1)
        else:
            header, at = frame[at + 6], at + 40
    return at + 8 if header == 17 and frame[at + 2:at + 4] == b'\x12\xb7' else None


def data_frames(path):
    """Those with a RoCE request."""
    return [f for f in frames(path) if bth_of(f) and f[bth_of(f)] <= 0x0b]


def send(lab, node, peer, frames):
    """Sends frames from the device of 'node' that leads to 'peer', past the node."""
    p = subprocess.run(['castlab', 'exec', node, '--', sys.executable, '-c', SENDER,
                        lab.port(node, peer)], input='\n'.join(f.hex() for f in frames),
                       capture_output=True, text=True, check=False)
    check(p.returncode == 0, 'sender: %s', p.stderr)


def tagged(frame, *tags):
    """The frame with each of these VLAN tags."""
    return [frame[:12] + bytes.fromhex(tag) + frame[12:] for tag in tags]


def dropped(lab, node, reason):
    return lab.faults().get((node, reason), 0)


def echo_request(eth, src, dst):
    """An ICMPv6 echo request behind 12 bytes of Ethernet addresses."""
    src, dst = (socket.inet_pton(socket.AF_INET6, a) for a in (src, dst))
    icmp = bytes.fromhex('8000000012340001')
    total = sum(struct.unpack('!20H', src + dst + struct.pack('!HH', len(icmp), 58) + icmp[:4]))
    total += sum(struct.unpack('!2H', icmp[4:]))
    total = (total & 0xffff) + (total >> 16)
    icmp = icmp[:2] + struct.pack('!H', ~((total & 0xffff) + (total >> 16)) & 0xffff) + icmp[4:]
    return eth + bytes.fromhex('86dd60000000') + struct.pack('!HBB', len(icmp), 58, 9) + src + dst + icmp


@contextlib.contextmanager
def capture(lab, node, peer, name):
    """Yields the file to which the port towards 'peer' is captured."""
    path = harness.work_file(name)
    port = lab.port(node, peer)
    castctl('capture', 'start', node, port, os.path.relpath(path))
    try:
        yield path
    finally:
        stopped, = castctl_json('capture', 'stop', node, port)
    check_equal('what stop says', stopped, {'node': node, 'port': port, 'file': path, 'error': '',
                                            'packets': len(frames(path))})


def addressed(frame, src=None, dst=None):
    """A frame with other addresses in its outer IPv6 header."""
    frame = frame[:22] + packed(src) + frame[38:] if src else frame
    return frame[:38] + packed(dst) + frame[54:] if dst else frame


def traced_drops(lab, node, peer, frame):
    """Why a frame from 'peer' would go no further, and whether anything would be sent."""
    trace = castctl_json('trace', node, lab.port(node, peer), frame.hex())
    return [d['reason'] for d in trace['drops']], bool(trace['sent'])


def foreign_data(lab):
    """A group's packets come from its source agent, and by the one address that the node has for
    them: what says that it is from another node, or comes by the End.MT SID of a bud, goes nowhere."""
    addresses = {n['name']: n['address'] for n in castctl_json('node', 'list')}
    group_add('foreign')
    for node, peer, end_mt in (('n2', 'n1', '5f00:0:102:e001::'), ('n3', 'n2', None)):
        with capture(lab, node, peer, node + '.pcap') as path:
            model('foreign', RECEIVERS, '-n', '2')
        frame = data_frames(path)[-1]
        check_equal('a sound one', traced_drops(lab, node, peer, frame), ([], True))
        check_equal('from another node',
                    traced_drops(lab, node, peer, addressed(frame, src=addresses['n1'])),
                    (['outer_source'], False))
        if end_mt:
            check_equal('by the End.MT SID',
                        traced_drops(lab, node, peer, addressed(frame, dst=end_mt)),
                        (['mt_not_planned'], False))


def refused(status, pattern, *argv, stdin=''):
    p = subprocess.run(['castctl', *argv], input=stdin, capture_output=True, text=True, check=False)
    check(p.returncode == status and re.search(pattern, p.stderr),
          'castctl %s: exit status %d: %s', ' '.join(argv)[:99], p.returncode, p.stderr)


def port_packets(node, port):
    c = castctl_json('stats', node)[node]['ports'][port]
    return c['rx_packets'] + c['tx_packets']


def captures(lab):
    """Everything that a port receives and sends, and nothing else, in a file that can be read
    meanwhile."""
    group_add('gc')
    model('gc', RECEIVERS, '-n', '1')
    port = lab.port('n1', 'sa')
    before = port_packets('n1', port)
    with capture(lab, 'n1', 'sa', 'c.pcap') as path:
        listed, = castctl_json('capture', 'list')
        check_equal('listed', (listed['node'], listed['port'], listed['file']), ('n1', port, path))
        model('gc', RECEIVERS, '-n', '3')
    check_equal('frames captured', len(frames(path)), port_packets('n1', port) - before)
    check_equal('list afterwards', castctl_json('capture', 'list'), [])
    ours = [f[6:12] for f in frames(path)]
    check(len(set(ours)) == 2, 'frames come from %r, not from both sides', set(ours))
    check_equal('what tcpdump counts', output('tcpdump', '--count', '-r', path).strip(),
                '%d packets' % len(frames(path)))

    loop = Loop(lab, 'gc', RECEIVERS)
    castctl('capture', 'start', 'n1', port, path, '--force')
    for n in (1, 200, 400):
        wait_until('%d frames' % n, lambda n=n: len(frames(path, growing=True)) >= n)
    castctl('capture', 'stop', 'n1', '--all')
    n = len(frames(path))
    loop.wait_progress('n1', 100)
    check_equal('frames after the end', len(frames(path)), n)
    loop.stop()


def captures_refused(lab):
    """Nothing is overwritten by mistake, and every error names what it is about."""
    port, other = lab.port('n1', 'sa'), lab.port('n1', 'r1')
    path = harness.work_file('refused.pcap')
    fifo = harness.work_file('fifo')
    os.mkfifo(fifo)
    old = harness.work_file('old.pcap', b'old')
    link = harness.work_file('link.pcap')
    os.symlink(old, link)
    castctl('capture', 'start', 'n1', port, path)
    for pattern, *argv in (
            ('port %s is being captured already, to %s' % (port, path), port, path + '2'),
            ('%s: port %s is being captured to it' % (path, port), other, path, '--force'),
            ('%s: .*exists already' % old, other, old),
            ('/nowhere/x: .*No such file or directory', other, '/nowhere/x'),
            ('%s: .*not a regular file|No such device' % fifo, other, fifo, '--force'),
            ('%s: .*a symbolic link' % link, other, link, '--force'),
            ('%s: .*Is a directory' % harness.WORK, other, harness.WORK, '--force'),
            ("no port 'xyz'", 'xyz', path)):
        refused(2, 'capture start: node n1: ' + pattern, 'capture', 'start', 'n1', *argv)
    refused(2, 'port %s is not being captured' % other, 'capture', 'stop', 'n1', other)
    refused(2, "no port 'xyz'", 'capture', 'stop', 'n1', 'xyz')
    check_equal('the old file', harness.read(old), b'old')
    os.unlink(path)
    stopped = castctl_json('capture', 'stop', 'n1', '--all')
    check_equal('stopped', [(c['port'], c['error']) for c in stopped],
                [(port, 'No such file or directory')])
    check_equal('stopped again', castctl_json('capture', 'stop', 'n1', '--all'), [])
    os.unlink(fifo)


def capture_disk_full(lab):
    """The file ends with the last frame that was written whole, and the node goes on."""
    folder = harness.work_file('small')
    os.mkdir(folder)
    output('mount', '-t', 'tmpfs', '-o', 'size=64k', 'none', folder)
    group_add('gd')
    port = lab.port('n1', 'sa')
    castctl('capture', 'start', 'n1', port, os.path.join(folder, 'x'))
    loop = Loop(lab, 'gd', RECEIVERS)
    wait_until('the disk is full', lambda: castctl_json('capture', 'list')[0]['error'])
    loop.wait_progress('n1', 100)
    stopped, = castctl_json('capture', 'stop', 'n1', port)
    check_equal('error', stopped['error'], 'No space left on device')
    check_equal('frames', stopped['packets'], len(frames(os.path.join(folder, 'x'))))
    loop.stop()
    output('umount', folder)


class Recording:
    """castctl capture record, which runs until it is ended."""

    def __init__(self, lab, path, *argv):
        self.path = path
        self.p = subprocess.Popen(['castctl', '-j', 'capture', 'record', path, *argv], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
        self.lab = lab

    def wait(self, n_ports):
        wait_until('%d captures run' % n_ports, lambda: len(castctl_json('capture', 'list')) == n_ports)

    def end(self, signo=None):
        """Packets by port, as castctl says."""
        if signo:
            self.p.send_signal(signo)
        out, err = self.p.communicate(timeout=harness.PATIENCE)
        check_equal('exit status, standard error', (self.p.returncode, err), (0, ''))
        check_equal('captures afterwards', castctl_json('capture', 'list'), [])
        check_equal('files left', [f for f in os.listdir(os.path.dirname(self.path)) if 'castctl-capture' in f], [])
        return {'%s:%s' % (row['node'], row['port']): row['packets'] for row in json.loads(out)}

    def fields(self, *names):
        """What tshark finds in the frames, with Wireshark's view of our packets."""
        lua = os.path.join(harness.ROOT, 'wireshark/rocecast.lua')
        said = output('tshark', '-r', self.path, '-X', 'lua_script:' + lua, '-N', 'n', '-T', 'fields',
                      *(word for name in names for word in ('-e', name)))
        return [line.split('\t') for line in said.splitlines()]


def records(lab):
    """Ports of several nodes in one file: of which port each frame is, which way it went, and by which names."""
    if not shutil.which('tshark'):
        print('      not shown to tshark: it is not installed')
        return
    group_add('gp')
    model('gp', RECEIVERS, '-n', '1')
    ports = {'%s:%s' % (node, lab.port(node, peer)): (node, peer)
             for node, peer in (('sa', 'h0'), ('sa', 'n1'), ('n1', 'sa'), *(('n1', r) for r in RECEIVERS))}
    before = {name: port_packets(node, lab.port(node, peer)) for name, (node, peer) in ports.items()}
    recording = Recording(lab, harness.work_file('all.pcapng'))
    recording.wait(len(ports))
    model('gp', RECEIVERS, '-n', '3')
    counted = recording.end(signal.SIGINT)
    check_equal('packets of ports', counted, {
        name: port_packets(node, lab.port(node, peer)) - before[name] for name, (node, peer) in ports.items()})

    rows = recording.fields('frame.interface_name', 'frame.interface_description', 'frame.packet_flags_direction',
                            'ipv6.src_host', 'ipv6.dst_host', 'frame.protocols', 'frame.time_epoch', 'eth.src')
    check_equal('frames of ports', {name: sum(r[0] == name for r in rows) for name in ports}, counted)
    check_equal('descriptions', {r[1] for r in rows},
                {'host, to h0', 'fabric, to n1', 'agent, to sa', *('host, to ' + r for r in RECEIVERS)})
    # Each of three writes comes from h0, goes to n1 and there to the receivers; ACKs go back.
    data = [r for r in rows if r[4].endswith('group-gp') and ('h0' in r[3] or 'group' in r[3])]
    at = {(r[0], r[2]) for r in data}
    up, down = '%s:%s' % ('sa', lab.port('sa', 'n1')), '%s:%s' % ('n1', lab.port('n1', 'sa'))
    for name, direction in ((up, '0x00000002'), (down, '0x00000001'), ('sa:%s' % lab.port('sa', 'h0'), '0x00000001')):
        check((name, direction) in at, 'no data %s of %s: %r', direction, name, at)
    outer = next(r for r in rows if r[0] == up and r[2] == '0x00000002' and 'ipv6.routing' in r[5])
    check_equal('names', (outer[3], outer[4]), ('sa,h0', 'n1.End.MT,group-gp'))
    check(any('n1' in r[3] or 'group-gp' in r[3] for r in rows if r[0] == down and r[2] == '0x00000002'), 'no answers')
    times = [float(r[6]) for r in rows]
    check_equal('order', times, sorted(times))
    acks = {r[4] for r in rows if r[2] == '0x00000001' and r[1] == 'host, to r1'}
    check_equal('what r1 answers', acks, {'group-gp'})
    tlvs = [r for r in recording.fields('frame.interface_name', 'rocecast.mt.receiver.address') if r[1:] and r[1]]
    check(tlvs and {r[0] for r in tlvs} == {up, down}, 'End.MT TLVs at %r', {r[0] for r in tlvs})


def record_ends(lab):
    """After so many packets; and if it cannot begin everywhere, nothing is left of it."""
    group_add('gr')
    recording = Recording(lab, harness.work_file('some.pcapng'), 'n1:' + lab.port('n1', 'sa'), 'sa', '--count', '7')
    recording.wait(3)
    model('gr', RECEIVERS, '-n', '5')
    check_equal('packets', sum(recording.end().values()), 7)
    check_equal('mode', os.stat(recording.path).st_mode & 0o777, 0o600)
    refused(2, 'capture record: %s: File exists .--force' % recording.path, 'capture', 'record', recording.path)

    new = harness.work_file('new.pcapng')
    with capture(lab, 'n1', 'r3', 'r3.pcap'):
        refused(2, 'capture record: node n1, port %s: port .* is being captured already' % lab.port('n1', 'r3'),
                'capture', 'record', new)
        check_equal('captures', len(castctl_json('capture', 'list')), 1)
    check_equal('files', [f for f in os.listdir(os.path.dirname(new)) if 'castctl-capture' in f or f == 'new.pcapng'], [])
    refused(2, "node n1 has no port 'xyz'", 'capture', 'record', new, 'n1:xyz')
    refused(2, "no node named 'n7'", 'capture', 'record', new, 'n7')
    check(not os.path.exists(new), '%s is there', new)


def state(lab):
    counters = json.loads(lab.appctl('n1', 'rocecast/counters', '-j'))
    return lab.appctl('n1', 'rocecast/groups', '-j'), counters['drops'], counters['buffers_free']


def children(lab):
    with open(os.path.join(harness.RUNDIR, 'lab', lab.name, 'n1.pid'), encoding='utf-8') as f:
        pid = f.read().strip()
    return harness.read('/proc/%s/task/%s/children' % (pid, pid)).decode()


def traces(lab):
    """What a frame would meet is what it has met, byte for byte, and nothing changes."""
    group_add('gt', '--filter', 'off')    # or there is no copy of what is confirmed
    with capture(lab, 'n1', 'sa', 'in.pcap') as received, \
            capture(lab, 'n1', 'r1', 'out.pcap') as sent:
        model('gt', RECEIVERS, '-n', '2', '-s', '3000')
    port = {peer: lab.port('n1', peer) for peer in ('sa', *RECEIVERS)}
    before, had = state(lab), children(lab)
    pairs = list(zip(data_frames(received), data_frames(sent), strict=True))
    check(len(pairs) >= 6, 'only %d data frames', len(pairs))
    for got, copy in pairs:
        trace = castctl_json('trace', 'n1', port['sa'], got.hex())
        copies = {s['port']: s['hex'] for s in trace['sent'] if s['port'] != port['sa']}
        check_equal('ports', sorted(copies), sorted(port[r] for r in RECEIVERS))
        check(copies[port['r1']] == copy.hex(), 'the copy for r1 is\n%s instead of\n%s',
              copies[port['r1']], copy.hex())
        check_equal('drops', trace['drops'], [])
        check(any('End.MT' in s for s in trace['steps']), 'steps: %r', trace['steps'])

    # A PSN that has not been sent yet: H would move.
    frame = bytearray(pairs[-1][0])
    at = bth_of(frame) + 9
    psn = int.from_bytes(frame[at:at + 3], 'big') + 1 & harness.PSN_MASK
    frame[at:at + 3] = psn.to_bytes(3, 'big')
    p = subprocess.run(['castctl', '-j', 'trace', 'n1', port['sa'], '-'], input=frame.hex(':', 2),
                       capture_output=True, text=True, check=True)
    trace = json.loads(p.stdout)
    check_equal('copies', sorted(s['port'] for s in trace['sent']),
                sorted(port[r] for r in RECEIVERS))
    after = psn + 1 & harness.PSN_MASK
    check_equal('state', trace['state'],
                [{'group': 'gt', 'epoch': 1, 'what': 'sent_next', 'before': psn, 'after': after}])
    with capture(lab, 'n1', 'r1', 'none.pcap') as path:
        text = castctl('trace', 'n1', port['sa'], frame.hex(' '))
    check_equal('captured of a trace', data_frames(path), [])
    for pattern in (r'^received on sa, %d bytes: .*SRH with SL 1 and 1 End.MT TLV; inside '
                    % len(frame), r'^  sent from %s, .*PSN %d' % (port['r1'], psn),
                    r'^  group gt epoch 1: sent_next %d -> %d' % (psn, after)):
        check(re.search(pattern, text, re.M), 'no %r in\n%s', pattern, text)

    trace = castctl_json('trace', 'n1', port['sa'], frame[:60].hex())
    check_equal('a frame cut short', ([d['reason'] for d in trace['drops']], trace['sent']),
                (['ip6_short'], []))
    frame[57] = 0
    trace = castctl_json('trace', 'n1', port['sa'], frame.hex())
    check_equal('Segments Left 0', [d['reason'] for d in trace['drops']], ['mt_segments_left'])
    text = castctl('trace', 'n1', port['sa'], frame.hex())
    check('  dropped: mt_segments_left (' in text and '  nothing is sent' in text, '%s', text)
    refused(2, "trace: node n1: no port 'xyz'", 'trace', 'n1', 'xyz', frame.hex())
    check_equal('state', state(lab), before)
    check_equal('child processes', children(lab), had)


def vlans(lab):
    """A frame of a VLAN is counted, and nothing else happens.  A priority tag makes no difference."""
    group_add('gv', '--filter', 'off')    # a packet that is sent again is copied again
    with capture(lab, 'n1', 'sa', 'vlan.pcap') as path:
        model('gv', RECEIVERS, '-n', '1')
    write = data_frames(path)[0]
    address = {n['name']: n['address'] for n in castctl_json('node', 'list')}
    echo = echo_request(write[:12], address['sa'], address['n1'])
    before = dropped(lab, 'n1', 'vlan')
    with capture(lab, 'n1', 'r1', 'copies.pcap') as copies, \
            capture(lab, 'n1', 'sa', 'answers.pcap') as answers:
        for frame in (write, echo):
            send(lab, 'sa', 'n1', tagged(frame, *FOREIGN_TAGS))
            send(lab, 'sa', 'n1', tagged(frame, '', *PRIORITY_TAGS))
        wait_until('what is left is answered', lambda: frames(answers)[-1][54:55] == b'\x81')
        replies = [f for f in frames(answers) if f[20] == 58 and f[54] == 129]
        check_equal('copies and replies', (len(data_frames(copies)), len(replies)), (3, 3))
    check_equal('dropped', dropped(lab, 'n1', 'vlan') - before, 2 * len(FOREIGN_TAGS))
    shown = [f for f in frames(answers) if f[12:14] in (b'\x81\x00', b'\x88\xa8')]
    check_equal('frames of VLANs in the capture', sorted(shown), sorted(
        [f for frame in (write, echo) for f in tagged(frame, *FOREIGN_TAGS[:3])
         + tagged(frame, '8100004d')]))
    for tag, drops in (('8100004d', ['vlan']), ('8100a000', [])):
        trace = castctl_json('trace', 'n1', lab.port('n1', 'sa'), tagged(echo, tag)[0].hex())
        check_equal('drops of %s' % tag, [d['reason'] for d in trace['drops']], drops)


def ecn_of(frame):
    """The ECN fields of the IPv6 headers of a RoCE packet, the outermost one first."""
    inner = 62 + 8 * frame[55] if frame[20] == 43 else None
    return tuple(frame[at + 1] >> 4 & 3 for at in (14, inner) if at)


def ecn(lab):
    """Queue pairs do not say that they react to congestion, unless they are told to say so."""
    group_add('ge')
    for options, codepoint in (((), 0), (('--ecn',), 2)):
        name = 'ecn%d.pcap' % codepoint
        with capture(lab, 'n1', 'sa', name) as up, capture(lab, 'n1', 'r1', 'r1-' + name) as down:
            model('ge', RECEIVERS, '-n', '1', *options)
        requests, copies = data_frames(up), [f for f in frames(down) if bth_of(f)]
        check(len(requests) > 1 and len(copies) > 2, 'only %d and %d packets', len(requests),
              len(copies))
        check_equal('ECN in and around requests', {ecn_of(f) for f in requests},
                    {(codepoint, codepoint)})
        check_equal('ECN of copies and answers', {ecn_of(f) for f in copies}, {(codepoint,)})


CASES = [captures, captures_refused, capture_disk_full, records, record_ends, traces, vlans, ecn]
