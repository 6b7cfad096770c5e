# SPDX-License-Identifier: Apache-2.0
"""Authenticated groups: through the tree, with keys that change while traffic runs, and against
somebody on the path."""
import hmac
import json
import os

from netlab import Loop, exact, group_add, model, no_faults
from packets import bth_of, capture, data_frames, frames, send, traced_drops

import harness
from captures import icrc, packed
from harness import PSN_MASK, castctl, castctl_json, check, check_equal, output, wait_until
from trees import FIG1

SRH = 14 + 40
EDGES = ('n1', 'n2', 'n3')
NODES = (*EDGES, 'n4', 'n5', 'n6')
REASONS = ('auth_missing', 'auth_bad', 'auth_unknown_key', 'auth_replay')


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
    log = lab.log('n1')
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


def payload_altered(frame):
    """With another last byte of payload, and the ICRC for that."""
    inner = bytearray(frame[bth_of(frame) - 48:])
    inner[-5] ^= 1
    return frame[:bth_of(frame) - 48] + bytes(inner[:-4]) + icrc(bytes(inner[:-4]))


def data(lab):
    """Authenticated data goes through the tree in each mode; each packet is taken once, and as it was sent.  MT-AUTH alone
    lets both pass."""
    keys(1)
    before = refused(lab)
    for mode in ('replicate', 'mcast', 'ingress'):
        group_add('d-' + mode, '--mode', mode, '--auth', 'data', '--key', '1')
        model('d-' + mode, FIG1.receivers, '-n', '30')
    check_equal('refused by edges', [refused(lab).get((n, r)) for n in EDGES for r in REASONS],
                [before.get((n, r)) for n in EDGES for r in REASONS])
    for auth, reasons in (('data', (['auth_replay'], ['auth_bad'])), ('mt-auth', ([], []))):
        group_add('once-' + auth, '--auth', auth, '--key', '1')
        with capture(lab, 'n1', 'n4', 'once.pcap') as path:
            model('once-' + auth, FIG1.receivers, '-n', '2', '-s', '3000')
        frame = data_frames(path)[0]
        os.remove(path)
        for changed, why in zip((frame, payload_altered(frame)), reasons):
            check_equal('drops of a %s group' % auth, traced_drops(lab, 'n1', 'n4', changed)[0], why)


def instances(group):
    """The instances of the group's nodes, by name."""
    return {n['node']: n['instance'] for n in castctl_json('group', 'show', group)['nodes'] if n['instance'] is not None}


def data_lives(lab):
    """An edge and the source agent are started again while data flows: what an edge has taken in its life before it does not
    take again, and the group goes on."""
    keys(1)
    group_add('lives', '--auth', 'data', '--key', '1')
    loop = Loop(lab, 'lives', FIG1.receivers)
    loop.wait_progress('n6', 500)
    first = instances('lives')
    check_equal('who has instances', sorted(first), sorted((*NODES, 'sa')))
    with capture(lab, 'n1', 'n4', 'lives.pcap') as path:
        loop.wait_progress('n6', 100)
    frame = max(f for f in data_frames(path) if f[20] == 43)
    output('castlab', 'restart', 'n1')
    wait_until('n1 and sa have another instance', lambda: all(instances('lives')[n] > first[n] for n in ('n1', 'sa')))
    loop.wait_progress('n6', 500)
    check_equal('instances of others', [instances('lives')[n] for n in ('n2', 'n3')], [first[n] for n in ('n2', 'n3')])
    before = refused(lab).get(('n1', 'auth_replay'), 0)
    send(lab, 'n4', 'n1', [frame] * 20)
    wait_until('the frames of before are refused',
               lambda: refused(lab).get(('n1', 'auth_replay'), 0) >= before + 20)
    second = instances('lives')
    output('castlab', 'restart', 'sa')
    wait_until('sa has another instance', lambda: instances('lives')['sa'] > second['sa'])
    loop.wait_progress('n6', 500)
    # A node between takes nothing of its children from before; they are told, and nobody else.
    third = instances('lives')
    output('castlab', 'restart', 'n4')
    wait_until('n4 and sa have another instance', lambda: all(instances('lives')[n] > third[n] for n in ('n4', 'sa')))
    loop.wait_progress('n6', 500)
    check_equal('instances of others', [instances('lives')[n] for n in (*EDGES, 'n5', 'n6')],
                [third[n] for n in (*EDGES, 'n5', 'n6')])
    loop.stop()


def response_frames(path):
    """Those with an ACK or NAK for a node's response SID, or from a Proxy Address."""
    return [f for f in frames(path) if bth_of(f) and f[bth_of(f)] == 0x11
            and (f[44:46] == b'\xe0\x02' or f[22:26] == b'\xfd\0\xff\xff')]


def forged_responses(frame):
    """What somebody could make of a response, and the reason that it is refused for in a group with authenticated data."""
    eth, inner = frame[:14], frame[bth_of(frame) - 48:]
    other = bytearray(inner)
    psn = int.from_bytes(inner[57:60], 'big')
    other[57:60] = (psn - 1 & PSN_MASK).to_bytes(3, 'big')
    other = bytes(other[:-4]) + icrc(bytes(other[:-4]))
    yield 'again', frame, 'auth_replay'
    yield 'another PSN', frame[:bth_of(frame) - 48] + other, 'auth_bad'
    if frame[20] == 43:
        yield 'no SRH', eth + frame[14:18] + len(other).to_bytes(2, 'big') + b'\x29' + frame[21:54] + other, 'auth_missing'
        yield 'another tag', frame[:14 + 40 + 63] + bytes([frame[14 + 40 + 63] ^ 1]) + frame[14 + 40 + 64:], 'auth_bad'


# Proves MT-9-3.
def responses(lab):
    """What nodes send up is authenticated with data: what somebody between two nodes sends again, alters or makes is refused and
    counted, also what he sends to the source as if it were the root's.  In a group without that it counts."""
    keys(1)
    links = (('n4', 'n1'), ('n6', 'n5'), ('sa', 'n6'))
    for auth in ('data', 'mt-auth'):
        name = 'up-' + auth
        group_add(name, '--auth', auth, '--key', '1')
        loop = Loop(lab, name, FIG1.receivers)
        loop.wait_progress('n6', 500)
        before, n = refused(lab), {}
        for parent, child in links:
            with capture(lab, parent, child, 'up.pcap') as path:
                loop.wait_progress('n6', 100)
            frame = response_frames(path)[-1]
            os.remove(path)
            check_equal('header behind IPv6 from %s' % child, frame[20],
                        43 if auth == 'data' else 17 if parent == 'sa' else 41)
            made = list(forged_responses(frame))
            if auth == 'data' and parent == 'sa':
                made.append(('as from the Proxy', frame[:14] + frame[bth_of(frame) - 48:], 'auth_missing'))
            for what, forged, why in made:
                check_equal('%s, %s to %s: drops' % (what, child, parent),
                            traced_drops(lab, parent, child, forged)[0], [why] if auth == 'data' else [])
                if auth == 'data':
                    n[parent, why] = n.get((parent, why), 0) + 20
                    send(lab, child, parent, [forged] * 20)
        wait_until('%r more are refused' % n, lambda: all(
            refused(lab).get(k, 0) - before.get(k, 0) == n[k] for k in n))
        loop.wait_progress('n6', 500)
        lane, = loop.stop()['lanes']
        check_equal('repeats', lane['retries'], 0)


def responses_roll_over(lab):
    """Authentication of data begins, its key is replaced, and it ends, while traffic runs: nodes do the same with responses, and
    no packet of any kind is refused."""
    keys(1, 2)
    before = refused(lab)
    group_add('turn')
    loop = Loop(lab, 'turn', FIG1.receivers, '--gap', '200')
    loop.wait_progress('n6', 500)
    for auth, key in (('data', '1'), ('data', '2'), ('mt-auth', '2'), ('data', '1'), ('none', '')):
        castctl('group', 'set', 'turn', '--auth', auth, *(('--key', key) if key else ()))
        nodes = (*NODES, 'sa') if auth == 'data' else (*EDGES, 'sa')
        wait_until('keys of %s are %r' % (auth, key), lambda: keys_at('turn') == {
            n: key if n in nodes else '' for n in (*NODES, 'sa')})
        loop.wait_progress('n6', 500)
    loop.stop()
    check_equal('refused', {k: n for k, n in refused(lab).items() if n != before.get(k, 0) and k[1] != 'auth_missing'}, {})


CASES = [tlvs, roll_over, on_path, traced, epochs, data, data_lives, responses, responses_roll_over]
