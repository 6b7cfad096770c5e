# SPDX-License-Identifier: Apache-2.0
"""What forwarders that are not rocecast's say themselves, for the tiers that run them."""
import os
import re

from harness import RUNDIR, output


def ofctl(lab, *argv):
    socket = os.path.join(RUNDIR, 'lab', lab.name, 'n4.ovs/br-n4.mgmt')
    return output('ovs-ofctl', '-OOpenFlow15', argv[0], 'unix:' + socket, *argv[1:])


def buckets(lab):
    """Of each OpenFlow group the SIDs that its copies go to."""
    return [sorted(re.findall(r'set_field:([0-9a-f:]+)->ipv6_dst', line))
            for line in ofctl(lab, 'dump-groups').splitlines()[1:]]


def copied(lab):
    """Packets that came to the only group, and those of each bucket."""
    text = ofctl(lab, 'dump-group-stats')
    return [int(n) for n in re.findall(r'packet_count=(\d+)', text)]


def forwarded(node):
    """Packets that the kernel of a router has forwarded."""
    text = output('castlab', 'exec', node, '--', 'cat', '/proc/net/snmp6')
    return int(re.search(r'^Ip6OutForwDatagrams\s+(\d+)$', text, re.M)[1])
