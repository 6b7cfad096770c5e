#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mroute.py SOURCE GROUP INPUT OUTPUT...: has the kernel forward a multicast group's packets between
devices, as long as it runs.

The structures are those of linux/mroute6.h.
"""
import signal
import socket
import struct
import sys

MRT6_INIT, MRT6_ADD_MIF, MRT6_ADD_MFC = 200, 202, 204


def sockaddr(address):
    return struct.pack('=HHI16sI', socket.AF_INET6, 0, 0, socket.inet_pton(socket.AF_INET6, address), 0)


def main():
    source, group, *netdevs = sys.argv[1:]
    with socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6) as s:
        s.setsockopt(socket.IPPROTO_IPV6, MRT6_INIT, 1)
        for mif, netdev in enumerate(netdevs):
            s.setsockopt(socket.IPPROTO_IPV6, MRT6_ADD_MIF, struct.pack(
                '=HBBHxxI', mif, 0, 1, socket.if_nametoindex(netdev), 0))
        outputs = sum(1 << mif for mif in range(1, len(netdevs)))
        s.setsockopt(socket.IPPROTO_IPV6, MRT6_ADD_MFC, sockaddr(source) + sockaddr(group) + struct.pack(
            '=Hxx8I', 0, *(outputs >> 32 * i & 0xffffffff for i in range(8))))
        print('ready', flush=True)
        signal.pause()


main()
