# SPDX-License-Identifier: Apache-2.0
"""Prints the IOAM traces that this network namespace's kernel reads, as it writes into them: a line
'NAMESPACE NODELEN TYPE ELEMENTS' each, all but the first two in hexadecimal, newest element first.

usage: ioam_events.py NUMBER      ends after so many

From Linux 6.10 on (generic netlink, family IOAM6).  Says 'ready' when it listens, 'not supported' if the
kernel tells nobody.
"""
import socket
import struct
import sys

NETLINK_GENERIC, SOL_NETLINK, ADD_MEMBERSHIP = 16, 270, 1
GENL_CTRL, GETFAMILY, FAMILY_NAME, MCAST_GROUPS, GROUP_ID = 16, 3, 2, 7, 2
TRACE, NAMESPACE, NODELEN, TYPE, DATA = 1, 1, 2, 3, 4


def attributes(data):
    found = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from('=HH', data)
        found[kind & 0x3fff] = data[4:length]
        data = data[length + 3 & ~3:]
    return found


def find_group(s):
    name = b'IOAM6\0'
    attribute = struct.pack('=HH', 4 + len(name), FAMILY_NAME) + name + bytes(-len(name) % 4)
    genl = struct.pack('=BBH', GETFAMILY, 1, 0) + attribute
    s.send(struct.pack('=IHHII', 16 + len(genl), GENL_CTRL, 1, 1, 0) + genl)
    groups = attributes(attributes(s.recv(65536)[20:]).get(MCAST_GROUPS, b''))
    for group in groups.values():
        return struct.unpack('=I', attributes(group)[GROUP_ID])[0]
    return None


def main():
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_GENERIC)
    s.bind((0, 0))
    group = find_group(s)
    if group is None:
        print('not supported', flush=True)
        return
    s.setsockopt(SOL_NETLINK, ADD_MEMBERSHIP, group)
    print('ready', flush=True)
    left = int(sys.argv[1])
    while left:
        message = s.recv(65536)
        if message[16] == TRACE:
            a = attributes(message[20:])
            print(*struct.unpack('=H', a[NAMESPACE]), a[NODELEN][0], '%x' % struct.unpack('=I', a[TYPE]),
                  a[DATA].hex(), flush=True)
            left -= 1


main()
