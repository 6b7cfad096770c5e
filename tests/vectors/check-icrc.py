#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the ICRC of every RoCEv2 packet of captures, and lists what they contain.

usage: tests/vectors/check-icrc.py FILE.pcap...

Knows nothing of the project's code: an oracle from the outside.  Handles plain
pcap, Ethernet, IPv6 and IPv4 without options or extension headers, but for the
Destination Options header of a Fast CNP, which its ICRC leaves out.
"""
import collections
import struct
import sys
import zlib

ROCE_PORT = 4791
DSTOPTS = 60
CNP = 0x81
OPCODES = '''SEND_FIRST SEND_MIDDLE SEND_LAST SEND_LAST_IMM SEND_ONLY SEND_ONLY_IMM
WRITE_FIRST WRITE_MIDDLE WRITE_LAST WRITE_LAST_IMM WRITE_ONLY WRITE_ONLY_IMM READ_REQUEST
READ_RESPONSE_FIRST READ_RESPONSE_MIDDLE READ_RESPONSE_LAST READ_RESPONSE_ONLY ACKNOWLEDGE
ATOMIC_ACKNOWLEDGE COMPARE_SWAP FETCH_ADD'''.split()
NAKS = {0x60: 'PSN sequence error', 0x61: 'invalid request', 0x62: 'remote access error',
        0x63: 'remote operational error', 0x64: 'invalid RD request'}
UD_SEND_ONLY = 0x64
CM_ATTRIBUTES = {0x10: 'REQ', 0x11: 'MRA', 0x12: 'REJ', 0x13: 'REP', 0x14: 'RTU', 0x15: 'DREQ',
                 0x16: 'DREP', 0x17: 'SIDR_REQ', 0x18: 'SIDR_REP', 0x19: 'LAP', 0x1a: 'APR'}


def frames(path):
    data = open(path, 'rb').read()
    endian = {b'\xd4\xc3\xb2\xa1': '<', b'\xa1\xb2\xc3\xd4': '>',
              b'\x4d\x3c\xb2\xa1': '<', b'\xa1\xb2\x3c\x4d': '>'}[data[:4]]
    if struct.unpack(endian + 'I', data[20:24])[0] != 1:
        sys.exit('%s: not Ethernet' % path)
    at = 24
    while at < len(data):
        caplen, = struct.unpack(endian + 'I', data[at + 8:at + 12])
        yield data[at + 16:at + 16 + caplen]
        at += 16 + caplen


def split(frame):
    """Returns (masked IP and UDP headers, UDP payload), or None if this is not RoCEv2."""
    kind, ip = frame[12:14], bytearray(frame[14:])
    if kind == b'\x86\xdd' and ip[6] == DSTOPTS and ip[40] == 17:
        options_len = 8 * (ip[41] + 1)
        ip[4:6] = struct.pack('>H', struct.unpack('>H', ip[4:6])[0] - options_len)
        ip[6] = 17
        del ip[40:40 + options_len]
    if kind == b'\x86\xdd' and ip[6] == 17:
        ip_len = 40
        ip[0] |= 0x0f                           # traffic class, flow label
        ip[1:4] = b'\xff\xff\xff'
        ip[7] = 0xff                            # hop limit
    elif kind == b'\x08\x00' and ip[0] == 0x45 and ip[9] == 17:
        ip_len = 20
        ip[1] = ip[8] = 0xff                    # TOS, TTL
        ip[10:12] = b'\xff\xff'
    else:
        return None
    if struct.unpack('>H', ip[ip_len + 2:ip_len + 4])[0] != ROCE_PORT:
        return None
    ip[ip_len + 6:ip_len + 8] = b'\xff\xff'     # UDP checksum
    udp_len, = struct.unpack('>H', ip[ip_len + 4:ip_len + 6])
    return bytes(ip[:ip_len + 8]), bytes(ip[ip_len + 8:ip_len + udp_len])


def icrc(headers, payload):
    bth = bytearray(payload[:-4])
    bth[4] = 0xff                               # FECN, BECN, resv6
    return struct.pack('<I', zlib.crc32(b'\xff' * 8 + headers + bth))


def describe_cm(mad):
    """Of a MAD of the communication management class."""
    attribute, = struct.unpack('>H', mad[16:18])
    name = 'CM ' + CM_ATTRIBUTES.get(attribute, '%#x' % attribute)
    return name + ' %d' % struct.unpack('>H', mad[34:36]) if attribute == 0x12 else name


def describe(payload):
    if payload[0] == UD_SEND_ONLY and payload[5:8] == b'\0\0\1' and payload[21] == 7:
        return describe_cm(payload[20:-4])
    if payload[0] == CNP:
        return 'CNP'
    name = OPCODES[payload[0]] if payload[0] < len(OPCODES) else 'opcode %#x' % payload[0]
    if name == 'ACKNOWLEDGE':
        syndrome = payload[12]
        if syndrome < 0x20:
            name = 'ACK'
        elif syndrome < 0x40:
            name = 'RNR NAK, timer %d' % (syndrome & 0x1f)
        else:
            name = 'NAK %#x %s' % (syndrome, NAKS.get(syndrome, ''))
    return name


def main():
    bad = 0
    for path in sys.argv[1:]:
        seen, other, repeated_acks, last_ack = collections.Counter(), 0, 0, {}
        for number, frame in enumerate(frames(path), 1):
            parts = split(frame)
            if parts is None:
                other += 1
                continue
            headers, payload = parts
            if icrc(headers, payload) != payload[-4:]:
                print('%s: frame %d: wrong ICRC' % (path, number))
                bad += 1
            kind = describe(payload)
            seen[kind] += 1
            if kind == 'ACK':
                flow = headers[8:40], payload[5:8]
                repeated_acks += last_ack.get(flow) == payload[9:12]
                last_ack[flow] = payload[9:12]
        print('%s: %d RoCEv2 packets, %d other' % (path, sum(seen.values()), other))
        for kind, n in sorted(seen.items()):
            print('  %5d  %s%s' % (n, kind, ' (%d repeat the PSN before)' % repeated_acks
                                   if kind == 'ACK' else ''))
        bad += not seen
    sys.exit(1 if bad or len(sys.argv) < 2 else 0)


main()
