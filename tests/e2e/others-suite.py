#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""End-to-end cases with forwarders that are not rocecast's, on real soft-RoCE: Figure 1 with an
Open vSwitch and a plain router in it.  Runs inside the VM (see tests/e2e/run)."""
import hashlib
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
from foreign import buckets, copied, forwarded, ofctl
from harness import (BIN, MTU, PSN_MASK, ROOT, Lab, Suite, castbench, castctl_json, check, check_equal,
                     check_replicas, down_leaves_nothing, group_add, network_snapshot, output,
                     read, run, wait_until)
from trees import OTHERS, check_branches, check_confirmed

# Open vSwitch reads its ports from sockets with room for some 50 frames: no more are under way.
BLOCK = 16384
N_BLOCKS = 64
FEW = ('-s', str(BLOCK), '-n', str(N_BLOCKS), '-t', '2')


def sent_by_kernel(port):
    """Packets that n7's kernel has sent there."""
    text = output('castlab', 'exec', 'n7', '--', 'ip', '-s', '-j', 'link', 'show', 'dev', port)
    return json.loads(text)[0]['stats64']['tx']['packets']


def by_flow(lab):
    """Packets that Open vSwitch has handed to its group."""
    text = ofctl(lab, 'dump-flows', 'table=1')
    return sum(int(n) for n in re.findall(r'n_packets=(\d+),.* actions=group:', text))


def counted(lab, n):
    """Packets that came to the only group, when those are at least so many and all are copied."""
    came, *copies = copied(lab)
    return came if came >= n and copies == [came, came] else None


def transfer(lab):
    """Every receiver has the source's bytes.  Open vSwitch has made two copies of each packet, the
    kernel has sent one on, by their own counters."""
    group_add('g', '--mtu', str(MTU))
    n_packets = N_BLOCKS * BLOCK // MTU
    down_before, both_before = sent_by_kernel('n5'), forwarded('n7')
    result, out = castbench(lab, 'g', *FEW)
    check_replicas(lab, result, out)
    digests = {host: hashlib.sha256(read(os.path.join(out, host + '.bin'))).hexdigest()
               for host in lab.receivers}
    source = hashlib.sha256(read(os.path.join(out, 'source.bin'))).hexdigest()
    check_equal('SHA-256', digests, dict.fromkeys(OTHERS.receivers, source))
    check_branches('g', OTHERS)
    check_confirmed(lab, 'g', OTHERS, castctl_json('group', 'show', 'g')['start_psn']
                    + n_packets & PSN_MASK)

    check_equal('buckets', buckets(lab), [['5f00:0:101:e001::', '5f00:0:102:e001::']])
    # Open vSwitch counts what its datapath has done once in a while.
    came = wait_until('Open vSwitch has counted two copies of %d packets' % n_packets,
                      lambda: counted(lab, n_packets))
    wait_until("its flow has counted as many", lambda: by_flow(lab) == came)
    down = sent_by_kernel('n5') - down_before
    check(down >= n_packets, 'the kernel has sent %d packets down', down)
    both = forwarded('n7') - both_before
    check(both > down, 'the kernel has forwarded %d packets, %d of them down', both, down)
    print('      %d packets of data: Open vSwitch copied %d twice, the kernel sent %d down and '
          'forwarded %d; SHA-256 of all %s...' % (n_packets, came, down, both, source[:16]))


def kernel_matrix(_):
    """The page of what forwarders do with programs of uSIDs has this kernel right."""
    p = run(os.path.join(ROOT, 'tests/net/usid-matrix'), 'kernel')
    check(p.returncode == 0, '%s', p.stdout + p.stderr)


def main():
    os.environ['PATH'] = BIN + os.pathsep + os.environ['PATH']
    suite = Suite()
    before = network_snapshot()
    lab = Lab('others')
    if suite.case('Figure 1 with other forwarders comes up', lambda lab: lab.up(), lab):
        suite.case('through Open vSwitch and the kernel', transfer, lab)
    suite.case('it goes', down_leaves_nothing, lab, before)
    suite.case('programs of uSIDs at this kernel', kernel_matrix, lab)
    return suite.finish()


if __name__ == '__main__':
    sys.exit(main())
