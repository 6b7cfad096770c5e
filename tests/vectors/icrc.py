# SPDX-License-Identifier: Apache-2.0
"""The ICRC of packets that scapy builds: it makes none over IPv6."""
import zlib


def with_icrc(packet):
    """An IPv6 packet, from the IPv6 header to the pad and without extension headers, with its ICRC,
    by the IBTA's rule."""
    masked = bytearray(packet)
    masked[0] |= 0x0f
    masked[1:4] = b'\xff' * 3
    masked[7] = 0xff
    masked[46:48] = b'\xff' * 2
    masked[52] = 0xff
    return bytes(packet) + zlib.crc32(b'\xff' * 8 + bytes(masked)).to_bytes(4, 'little')
