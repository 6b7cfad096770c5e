# SPDX-License-Identifier: Apache-2.0
"""A long time at full rate: what a node keeps in memory, and whether it says of each packet that got
lost that it did."""
import time

import devices
import frames
import measure
import registry
from lanes import Job
from nodes import Edge

COPIES = 8
BURST = 64
CHUNK = BURST * (1 + COPIES) * 2000
GROWTH_KIB = 512        # of a process that keeps nothing: pages of its code, a log line.
NEIGHBOURS = 64         # what else the kernel sends when a device comes up.
# What acknowledgements may be dropped for: packets that they are of were lost on their way in.
OF_ANSWERS = ('psn_not_sent',)


def counts(lane):
    """What each part says of itself."""
    counters = lane.appctl('counters')
    ports = counters['ports']
    taps = {lane.tap(i) for i in range(lane.copies)}
    return {
        'packets': ports[lane.input]['rx_packets'] - devices.discovery({lane.far}, 'Out'),
        'packets_lost': devices.socket_drops(lane.process.pid) + devices.dropped({lane.input, lane.far}),
        'answers': sum(ports[t]['rx_packets'] for t in taps) - devices.discovery(taps, 'Out'),
        'answers_lost': devices.dropped(taps, ['tx']),
        'rx_errors': sum(p['rx_errors'] for p in ports.values()),
        'copies': sum(ports[t]['tx_packets'] for t in taps) - devices.discovery(taps, 'In'),
        'tx_errors': sum(ports[t]['tx_errors'] for t in taps),
        'copies_lost': devices.dropped(taps, ['rx']),
        'arrived': lane.counted(),
        'answers_dropped': sum(counters['drops'][why] for why in OF_ANSWERS),
        'dropped': sum(n for why, n in counters['drops'].items() if why not in OF_ANSWERS)}


def wrong(sent, c):
    """What does not add up, as sentences.  'sent': packets into the lane, each with an answer of each
    receiver; 'c': what counts() grew by."""
    found = []

    def check(what, n, limit=0):
        if not -NEIGHBOURS <= n <= limit + NEIGHBOURS:
            found.append('%s: %d' % (what, n))
    check('packets that neither came in nor are counted as lost before',
          sent - c['packets'] - c['packets_lost'], c['rx_errors'])
    check('answers that neither came in nor are counted as lost before',
          sent * COPIES - c['answers'] - c['answers_lost'], c['rx_errors'])
    check('copies that were not sent, without a drop being counted',
          c['packets'] * COPIES - c['copies'] - c['tx_errors'], COPIES * c['dropped'])
    check('copies that were sent and neither arrived nor are counted as lost',
          c['copies'] - c['arrived'] - c['copies_lost'])
    return found


def run(world, seconds):
    lane = Edge(world, 'swedge', Job(COPIES))
    answers = [frames.Frame(lane.tap(i), registry.port_mac(lane.node, 2 + i), '02:bb:00:00:00:%02x' % i,
                            p, len(p))
               for i in range(COPIES)
               for p in (frames.ack(lane.host(i), registry.proxy(0), registry.DESIGNATED_QPN),)]
    data = lane.flood_text
    measure.warm(lane)
    measure.settle(lane)
    lane.flood_text = data + ''.join(f.line() for f in answers)
    before, rss, sent = counts(lane), [], 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        measure.flood(lane, CHUNK, BURST, BURST)
        rounds = CHUNK // (1 + COPIES)
        lane.psn = lane.psn + rounds & measure.PSN_MASK
        sent += rounds
        rss.append(devices.memory_kib(lane.process.pid))
    measure.settle(lane)
    grown = {k: n - before[k] for k, n in counts(lane).items()}
    early, late = max(rss[:len(rss) // 4 + 1]), max(rss)
    print('%d packets sent, and as many answers of each of %d receivers' % (sent, COPIES))
    print(', '.join('%s %d' % item for item in grown.items()))
    print('memory without the packet pool: %d KiB in the first quarter, %d KiB later' % (early, late))
    found = wrong(sent, grown)
    if late > early + GROWTH_KIB:
        found.append('memory has grown by %d KiB' % (late - early))
    for sentence in found:
        print('WRONG: ' + sentence)
    print('%d passed, %d failed' % (not found, bool(found)))
    return 2 if found else 0
