# SPDX-License-Identifier: Apache-2.0
"""Authenticated groups: through the tree, with keys that change while traffic runs, and against
somebody on the path."""
import hmac
import json
import os

from netlab import Loop, exact, group_add, model, no_faults
from packets import bth_of, capture, data_frames, send, traced_drops

import harness
from captures import icrc, packed
from harness import PSN_MASK, castctl, castctl_json, check, check_equal, wait_until
from trees import FIG1

SRH = 14 + 40
EDGES = ('n1', 'n2', 'n3')
REASONS = ('auth_missing', 'auth_bad', 'auth_unknown_key')


def keys(*ids):
    known = [k['id'] for k in castctl_json('key', 'list')]
    for i in ids:
        if i not in known:
            castctl('key', 'add', str(i), '--generate')


def refused(lab):
    """Packets that were not authentic, by node and reason."""
    return {k: n for k, n in lab.faults().items() if k[1] in REASONS}


def keys_at(group):
    return {n['node']: n['keys'] for n in castctl_json('group', 'show', group)['nodes']}


def wait_keys(group, ids):
    """All edges and the agent have these and no others; nodes between have none."""
    wait_until('keys are %r' % ids, lambda: keys_at(group) == dict(
        {n: '' for n in ('n4', 'n5', 'n6')}, **{n: ids for n in (*EDGES, 'sa')}))


def tlvs(lab):
    """Every packet is counted, with one TLV, the other, and both."""
    keys(1)
    for auth in ('mt-auth', 'hmac', 'both'):
        group_add('a-' + auth, '--auth', auth, '--key', '1')
        exact(lab, 'a-' + auth, FIG1, '-n', '30')
    for mode in ('mcast', 'ingress'):
        for receivers in ('tlv', 'provisioned'):
            name = 'a-%s-%s' % (mode, receivers)
            group_add(name, '--mode', mode, '--receivers', receivers, '--auth', 'mt-auth', '--key', '1')
            model(name, FIG1.receivers, '-n', '30')
    check_equal('refused', refused(lab), {})


def roll_over(lab):
    """Authentication begins, keys are replaced, authentication ends, while traffic runs: no packet
    is refused, and none is sent twice."""
    keys(1, 2, 3)
    group_add('roll')
    loop = Loop(lab, 'roll', FIG1.receivers, '--gap', '200')
    with no_faults(lab):
        loop.wait_progress('n6', 500)
        for key in ('1', '2', '3'):
            castctl('group', 'set', 'roll', '--auth', 'mt-auth', '--key', key)
            wait_keys('roll', key)
            loop.wait_progress('n6', 500)
        castctl('group', 'set', 'roll', '--auth', 'both')
        loop.wait_progress('n6', 500)
        castctl('group', 'set', 'roll', '--auth', 'none')
        wait_keys('roll', '')
        loop.wait_progress('n6', 500)
        lane, = loop.stop()['lanes']
        check_equal('repeats', lane['retries'], 0)


def altered(frame):
    """The frame with one byte changed, in each of the places where that must be noticed, and the
    reason.  Another source is noticed before digests are looked at."""
    length = 8 * (frame[SRH + 1] + 1)
    places = {'source': 14 + 8 + 15, 'Flags': SRH + 5, 'Tag': SRH + 7, 'End.MT QPN': SRH + 24 + 24 + 18,
              'End.MT receiver': SRH + 24 + 24 + 15, 'HMAC': SRH + length - 1}
    for name, at in places.items():
        changed = bytearray(frame)
        changed[at] ^= 1
        yield name, bytes(changed), 'outer_source' if name == 'source' else 'auth_bad'


# Proves MT-9-6, MT-9-7.
def on_path(lab):
    """Somebody between n4 and n1 sends what he has seen once more, with a TLV changed: nobody gets
    a copy, nobody hears of the PSN, and the group does not notice."""
    keys(1)
    group_add('path', '--auth', 'mt-auth', '--key', '1')
    loop = Loop(lab, 'path', FIG1.receivers)
    loop.wait_progress('n6', 500)
    with capture(lab, 'n1', 'n4', 'path.pcap') as path:
        loop.wait_progress('n6', 200)
    frame = max(f for f in data_frames(path) if f[20] == 43)
    forged = [f for _, f, why in altered(frame) if why == 'auth_bad']
    before = refused(lab)
    send(lab, 'n4', 'n1', forged * 20)
    wait_until('%d forged packets are refused' % (20 * len(forged)), lambda: refused(lab).get(
        ('n1', 'auth_bad'), 0) - before.get(('n1', 'auth_bad'), 0) == 20 * len(forged))
    loop.wait_progress('n6', 500)
    lane, = loop.stop()['lanes']
    check_equal('repeats', lane['retries'], 0)
    check_equal('who has refused', set(refused(lab)) - set(before), {('n1', 'auth_bad')})
    log = harness.read(os.path.join(harness.RUNDIR, 'lab', lab.name, 'n1.log')).decode()
    check('node n1: group path, epoch 1: ' in log and 'not authentic, the last with key 1' in log,
          'log of n1: %s', log[-500:])


# Proves MT-9-7.
def traced(lab):
    """castctl trace says what was verified, and what was wrong."""
    keys(1, 2)
    group_add('trace', '--auth', 'both', '--key', '1')
    with capture(lab, 'n1', 'n4', 'trace.pcap') as path:
        model('trace', FIG1.receivers, '-n', '2', '-s', '3000')
    frame = data_frames(path)[0]
    port = lab.port('n1', 'n4')
    trace = castctl_json('trace', 'n1', port, frame.hex())
    check('group trace epoch 1: SRH is one that was verified before, key 1' in trace['steps'],
          'steps: %r', trace['steps'])
    check_equal('drops', trace['drops'], [])
    for name, changed, why in altered(frame):
        check_equal('drops with another %s, and is sent on' % name,
                    traced_drops(lab, 'n1', 'n4', changed), ([why], False))
    # A node between does not look.
    trace = castctl_json('trace', 'n4', lab.port('n4', 'n6'), changed.hex())
    check('auth' not in json.dumps(trace), 'n4: %r', trace)


SECRET = bytes(range(1, 33))


def digests(frame, group):
    """What the digests of a frame's HMAC and MT-AUTH TLVs are to be in the group's epoch, by the
    definitions of RFC 8754 2.1.2.1 and docs/security.md; and what they are."""
    epoch = b'SRv6 multicast epoch' + packed(group['proxy']) + group['designated_qpn'].to_bytes(4, 'big')
    key = hmac.digest(SECRET, epoch, 'sha256')
    srh = frame[SRH:SRH + 8 * (frame[SRH + 1] + 1)]
    source, segments = frame[22:38], srh[8:24]
    wanted, found, at = {}, {}, 24
    while at < len(srh):
        kind, value = srh[at], at + 2
        if kind == 5:
            text = source + srh[4:6] + srh[at + 2:at + 8] + segments
        elif kind == 125:
            text = source + srh[4:at + 8] + bytes(32) + srh[at + 40:]
        if kind in (5, 125):
            wanted[kind] = hmac.digest(key, text, 'sha256')
            found[kind] = srh[at + 8:at + 40]
        at = value + srh[at + 1]
    return wanted, found


def moved(frame, qpn, psn):
    """The frame's data as the packet with this PSN of the epoch with this Designated QPN."""
    bth = bth_of(frame)
    inner = bytearray(frame[bth - 48:])
    inner[48 + 5:48 + 8] = qpn.to_bytes(3, 'big')
    inner[48 + 9:48 + 12] = (psn & PSN_MASK).to_bytes(3, 'big')
    inner[-8:-4] = b'\xee' * 4
    return frame[:bth - 48] + bytes(inner[:-4]) + icrc(bytes(inner[:-4]))


# Proves MT-9-2.
def epochs(lab):
    """Digests are an epoch's own: with those of the epoch before, the next packet of this one is
    refused, which is taken with this one's."""
    castctl('key', 'add', '4', '--secret-file', harness.work_file('secret', SECRET.hex().encode()))
    group_add('epochs', '--auth', 'both', '--key', '4')
    frames, shown = [], []
    for _ in range(2):
        with capture(lab, 'n1', 'n4', 'epoch.pcap') as path:
            model('epochs', FIG1.receivers, '-n', '2')
        frames.append(data_frames(path)[0])
        shown.append(castctl_json('group', 'show', 'epochs'))
        wanted, found = digests(frames[-1], shown[-1])
        check_equal('digests', found, wanted)
        check_equal('kinds of digests', sorted(found), [5, 125])
        os.remove(path)
    check_equal('epochs', [g['epoch'] for g in shown], [1, 2])
    psn = lab.group('n1', 'epochs')['sent_next']
    for frame, reasons in zip(frames, (['auth_bad'], [])):
        forged = moved(frame, shown[1]['designated_qpn'], psn)
        check_equal('drops, and is sent on', traced_drops(lab, 'n1', 'n4', forged),
                    (reasons, not reasons))


CASES = [tlvs, roll_over, on_path, traced, epochs]
