#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Wireshark's dissector on captures of real RDMA: does it show in each frame what captures.py finds there?

usage: check-dissector.py FOLDER...

A FOLDER holds a capture per port, <node>-<peer>.pcap.
"""
import glob
import os
import struct
import sys

from captures import Encapsulated, Wrong, check, parse, read_pcap, text

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../wireshark'))

from dissector import Tshark                            # noqa: E402 pylint: disable=wrong-import-position

FIELDS = ['rocecast.' + name for name in ('mt.edge', 'mt.n_receivers', 'mt.receiver.address', 'mt.receiver.qpn',
                                          'icrc.status', 'malformed')]


def wanted(packet):
    """FIELDS of a frame, from its packet; None: no RoCE."""
    if packet is None:
        return [[]] * len(FIELDS)
    named = packet.receivers() if isinstance(packet, Encapsulated) else []
    receivers = [entry for _, entries in named for entry in entries]
    return [[text(edge) for edge, _ in named], [str(len(entries)) for _, entries in named],
            [text(address) for address, _ in receivers], ['0x%06x' % qpn for _, qpn in receivers], ['good'], []]


def compare(tshark, path):
    """Returns how many packets were RoCE, and how many of them had End.MT TLVs."""
    packets = [parse(frame) for _, frame in read_pcap(path)]
    rows = tshark.fields(path, *FIELDS)
    check(len(rows) == len(packets), '%d frames are shown, and there are %d', len(rows), len(packets))
    for number, (row, packet) in enumerate(zip(rows, packets), 1):
        check(row == wanted(packet), 'frame %d: %s, should be %s', number, row, wanted(packet))
    return sum(p is not None for p in packets), sum(isinstance(p, Encapsulated) for p in packets)


def check_folder(tshark, folder):
    paths = sorted(glob.glob(os.path.join(folder, '*.pcap')))
    check(paths, 'no captures')
    roce = with_tlvs = 0
    for path in paths:
        try:
            n, m = compare(tshark, path)
        except (Wrong, AssertionError, OSError, struct.error) as e:
            raise Wrong('%s: %s' % (os.path.basename(path), e)) from e
        roce, with_tlvs = roce + n, with_tlvs + m
    check(with_tlvs, 'no packet has End.MT TLVs')
    return '%d RoCE packets, %d of them with End.MT TLVs' % (roce, with_tlvs)


def main(folders):
    passed = failed = 0
    tshark = Tshark()
    try:
        for folder in folders:
            name = os.path.basename(os.path.normpath(folder))
            try:
                print('ok    %s: the dissector shows %s' % (name, check_folder(tshark, folder)))
                passed += 1
            except Wrong as e:
                print('FAIL  %s: dissector: %s' % (name, e))
                failed += 1
    finally:
        tshark.close()
    print('%d passed, %d failed' % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
