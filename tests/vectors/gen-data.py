#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/vectors/data-python.pcap and response-python.pcap: frames with a DATA-AUTH TLV, made from
the definition in docs/security.md with nothing but Python: HKDF by its hmac, AES and GHASH written out
here, which a test case of NIST's checks first.  What lib/data-auth.c and lib/response-auth.c make must be
the same (tests/unit/test-data-auth.c, tests/unit/test-response-auth.c).

Run from the repository's root.
"""
import hmac
import socket
import struct

from icrc import with_icrc

SOURCE, PROXY = 'fd00:1::100', 'fd00:ffff::1'
AGENT, REPLICATION_SID = '5f00:0:200::1', '5f00:0:100:f000::'
TC, FLOW_LABEL = 2, 0x12345
KEYS = {0x01020304: bytes(range(32)), 7: b'0123456789abcdef', 0xffffffff: bytes(range(255, 191, -1))}


def doubled(b):
    return b << 1 ^ (0x11b if b & 0x80 else 0)


def sbox():
    """From inverses in GF(2^8), by logarithms to the base 3."""
    log, power, x = [0] * 256, [0] * 255, 1
    for i in range(255):
        power[i], log[x] = x, i
        x ^= doubled(x)
    box = []
    for v in range(256):
        b = power[-log[v] % 255] if v else 0
        box.append(0x63 ^ b ^ rotated(b, 1) ^ rotated(b, 2) ^ rotated(b, 3) ^ rotated(b, 4))
    return box


def rotated(b, n):
    return (b << n | b >> 8 - n) & 0xff


SBOX = sbox()


def aes128(key, block):
    """FIPS 197, one block."""
    words, rcon = [list(key[i:i + 4]) for i in range(0, 16, 4)], 1
    for i in range(4, 44):
        word = words[-1]
        if i % 4 == 0:
            word = [SBOX[b] for b in word[1:] + word[:1]]
            word[0] ^= rcon
            rcon = doubled(rcon)
        words.append([a ^ b for a, b in zip(words[-4], word)])
    keys = [sum(words[i:i + 4], []) for i in range(0, 44, 4)]
    state = [a ^ b for a, b in zip(block, keys[0])]
    for n in range(1, 11):
        state = [SBOX[state[(i + 4 * (i % 4)) % 16]] for i in range(16)]
        if n < 10:
            mixed = []
            for c in range(0, 16, 4):
                column = state[c:c + 4]
                for i in range(4):
                    a, b, d, e = (column[(i + j) % 4] for j in range(4))
                    mixed.append(doubled(a) ^ doubled(b) ^ b ^ d ^ e)
            state = mixed
        state = [a ^ b for a, b in zip(state, keys[n])]
    return bytes(state)


def product(x, y):
    """In GF(2^128) as SP 800-38D has it: the first bit is the lowest power."""
    z = 0
    for i in range(127, -1, -1):
        if x >> i & 1:
            z ^= y
        y = y >> 1 ^ (0xe1 << 120 if y & 1 else 0)
    return z


def gmac(key, nonce, text):
    """SP 800-38D with all of the text as additional data, and a nonce of 12 bytes."""
    h = int.from_bytes(aes128(key, bytes(16)), 'big')
    y = 0
    for i in range(0, len(text), 16):
        y = product(y ^ int.from_bytes(text[i:i + 16].ljust(16, b'\0'), 'big'), h)
    y = product(y ^ len(text) * 8 << 64, h)
    return (y ^ int.from_bytes(aes128(key, nonce + b'\0\0\0\1'), 'big')).to_bytes(16, 'big')


def hkdf(secret, info, size):
    """RFC 5869 without salt; up to 32 bytes."""
    extracted = hmac.new(bytes(32), secret, 'sha256').digest()
    return hmac.new(extracted, info + b'\1', 'sha256').digest()[:size]


def address(text):
    return socket.inet_pton(socket.AF_INET6, text)


def ip6(source, destination, payload, following, tc=0, label=0, hops=64):
    return struct.pack('!IHBB', 6 << 28 | tc << 20 | label, len(payload), following, hops) + \
        address(source) + address(destination) + payload


def roce(qpn, psn, payload, ack_req):
    """A SEND_ONLY of the source."""
    bth = struct.pack('!BBHII', 4, 0, 0xffff, qpn, ack_req << 31 | psn)
    udp = struct.pack('!HHHH', 0xc001, 4791, 8 + len(bth) + len(payload) + 4, 0) + bth + payload
    packet = ip6(SOURCE, PROXY, udp + bytes(4), 17, TC)[:-4]
    return with_icrc(packet)


def end_mt(copies):
    """copies: (edge number, count), of which none needs two TLVs; and the padding."""
    tlvs, k = b'', 0
    for edge, count in copies:
        tlvs += struct.pack('!BBH16sI', 124, 22 + 20 * count, 0, address('5f00:0:%x::1' % edge), count << 24)
        for _ in range(count):
            k += 1
            tlvs += address('fd00:1::%x' % k) + struct.pack('!I', 0x11 + k << 8)
    return tlvs + (bytes([4, 2, 0, 0]) if len(tlvs) % 8 else b'')


def frame(copies, key, instance, sequence, qpn=0x101, epoch=1, psn=7, payload=b'0123456789abcdef', ack_req=0):
    """ack_req: of the source, or a node has set it on the way: the tag is the same."""
    data_key = hkdf(KEYS[key], b'SRv6 multicast data' + address(PROXY) + struct.pack('!II', qpn, epoch), 16)
    tlvs = end_mt(copies)
    body = tlvs + struct.pack('!BBHIQII', 126, 38, 0, key, sequence, instance, 0) + bytes(16)
    size = 8 + 16 + len(body)
    srh = struct.pack('!BBBBBBH', 41, size // 8 - 1, 4, 1, 0, 0, 0) + address(PROXY) + body
    inner = bytearray(roce(qpn, psn, payload, 0))
    inner[0:4], inner[7] = b'\x60\0\0\0', 0
    tag = gmac(data_key, struct.pack('!IQ', instance, sequence),
               address(AGENT) + srh[1:2] + srh[4:] + inner)
    srh = srh[:-16] + tag
    packet = ip6(AGENT, REPLICATION_SID, srh + roce(qpn, psn, payload, ack_req), 43, TC, FLOW_LABEL)
    return bytes.fromhex('025f01000001025f0200000186dd') + packet


def frames():
    fig1 = [(0x103, 2), (0x104, 1), (0x105, 2)]
    for key in KEYS:
        yield frame(fig1, key, 1, 1)
    yield frame([], 7, 1, 2)
    yield frame(fig1, 7, 0xfffffffe, (1 << 64) - 2)
    yield frame(fig1, 7, 1, 3, qpn=0x102)
    yield frame(fig1, 7, 1, 4, epoch=2)
    yield frame(fig1, 7, 1, 5, payload=bytes(range(251)), ack_req=1)
    yield frame(fig1, 7, 1, 6, payload=b'', psn=0xffffff)


def response(key, instance, sequence, child='5f00:0:103::1', parent='5f00:0:100:e002::', cnp=False, ecn=0):
    """What a node sends to its parent."""
    info = b'SRv6 mcast response' + address(PROXY) + struct.pack('!II', 0x101, 1) + address(child) + address(parent)
    bth = struct.pack('!BBHII', 0x81 if cnp else 0x11, 0, 0xffff, 0x101, 0 if cnp else 41)
    body = bth + (bytes(16) if cnp else struct.pack('!I', 42))
    udp = struct.pack('!HHHH', 0xc002, 4791, 8 + len(body) + 4, 0) + body
    inner = with_icrc(ip6(PROXY, SOURCE, udp + bytes(4), 17, ecn)[:-4])
    tlv = struct.pack('!BBHIQII', 126, 38, 0, key, sequence, instance, 0)
    srh = struct.pack('!BBBBBBH', 41, 7, 4, 0, 0, 0, 0) + address(parent) + tlv
    covered = bytearray(inner)
    covered[0:4], covered[7] = b'\x60\0\0\0', 0
    tag = gmac(hkdf(KEYS[key], info, 16), struct.pack('!IQ', instance, sequence),
               address(child) + srh[1:2] + srh[4:] + bytes(16) + covered)
    return bytes.fromhex('025f01000001025f0200000186dd') + ip6(child, parent, srh + tag + inner, 43, ecn)


def responses():
    for key in KEYS:
        yield response(key, 1, 1)
    yield response(7, 0xfffffffe, (1 << 64) - 2, child='5f00:0:104::1')
    yield response(7, 1, 2, parent='5f00:0:200:e002::', ecn=1)
    yield response(7, 1, 3, cnp=True)


def write(path, made):
    with open(path, 'wb') as out:
        out.write(struct.pack('<IHHiIII', 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for i, f in enumerate(made):
            out.write(struct.pack('<IIII', i, 0, len(f), len(f)) + f)


def main():
    # Test case 1 of the GCM specification's appendix: its H and its tag.
    assert aes128(bytes(16), bytes(16)).hex() == '66e94bd4ef8a2c3b884cfa59ca342b2e'
    assert gmac(bytes(16), bytes(12), b'').hex() == '58e2fccefa7e3061367f1d57a4e7455a'
    write('tests/vectors/data-python.pcap', frames())
    write('tests/vectors/response-python.pcap', responses())


main()
