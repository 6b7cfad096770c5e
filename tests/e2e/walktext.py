# SPDX-License-Identifier: Apache-2.0
"""Packets as text, for docs/packet-walk.md.

Values that another run would not have (queue pair numbers, rkeys, virtual addresses, the UDP
source ports of queue pairs, the flow label that is a hash of them) are shown by name.  In the
dumps, which are of one run, they are marked by '~' and not compared.
"""
import re

from captures import (ICRC, IP6, NH_IPV6, NH_ROUTING, NH_UDP, TLV_MT, UDP,
                      Encapsulated, Tunnelled, text)

OPCODES = {0x0a: 'RDMA WRITE Only', 0x11: 'ACK'}
NEXT_HEADERS = {NH_UDP: 'UDP', NH_IPV6: 'IPv6', NH_ROUTING: 'Routing'}
BLOCK = re.compile(r'(<!-- (\w+): made by [^\n]*-->\n```\n)(.*?)(```\n)', re.S)
VARYING_HEX = re.compile(r'^( [0-9a-f]{4}  )([0-9a-f ]+?)( *~ )')


class Names:
    """What differs from run to run, by whose it is."""

    def __init__(self, walk):
        self.hosts = {address: host for host, address in walk.host.items()}
        self.qpns = {'h0': walk.meta['source']['qpn'],
                     **{host: r['qpn'] for host, r in walk.receiver.items()}}
        self.receiver = walk.receiver
        self.group = walk.group
        self.source_port = walk.packet('h0', 'sa').sport

    def dest_qp(self, p):
        host = self.hosts.get(p.dst)
        if p.dest_qp == self.qpns.get(host) and p.dest_qp != self.group['designated_qpn']:
            return 'QPN(%s)' % host
        return '%#x' % p.dest_qp

    def qpn(self, address, qpn):
        host = self.hosts.get(address)
        return 'QPN(%s)' % host if qpn == self.qpns.get(host) else '%#x' % qpn

    def sport(self, p):
        if p.sport == self.source_port and p.payload:
            return 'sport(h0)'    # the copies' too.
        host = self.hosts.get(p.src)
        return 'sport(%s)' % host if host else '%d' % p.sport

    def reth(self, p):
        va, rkey, length = p.reth
        host = self.hosts.get(p.dst)
        if host and (va, rkey) == (int(str(self.receiver[host]['va']), 0),
                                   self.receiver[host]['rkey']):
            return 'VA(%s)' % host, 'rkey(%s)' % host, length
        known = rkey == self.group['designated_rkey']
        return 'VA %#x' % va, 'rkey(group)' if known else '%#x' % rkey, length


#
# The walk: each packet in a few lines.
#
def roce_lines(p, names):
    line = 'BTH %s, DestQP %s, PSN %d' % (OPCODES.get(p.opcode, '%#x' % p.opcode),
                                          names.dest_qp(p), p.psn)
    if p.reth:
        line += '%s; RETH %s, %s, %d bytes' % (', AckReq' if p.ack_req else '', *names.reth(p))
    if p.aeth:
        line += '; AETH syndrome %#x, MSN %d' % p.aeth
    return ['UDP %s > 4791' % names.sport(p), line]


def ip_line(p):
    return '%s > %s, hop limit %d%s%s' % (text(p.src), text(p.dst), p.hlim,
                                          ', ECT(0)' if p.tc & 3 == 2 else '',
                                          ', flow label F' if p.flow_label else '')


def srh_lines(p, names):
    lines = ['SRH %d bytes: Segments Left %d, Last Entry %d, Segment List [%s]'
             % (len(p.srh), p.srh[3], p.srh[4], text(p.srh[8:24]))]
    for edge, receivers in p.receivers():
        lines.append('  End.MT %s: %s' % (text(edge), ', '.join(
            '%s %s' % (text(address), names.qpn(address, qpn)) for address, qpn in receivers)))
    return lines


def packet_lines(p, names):
    if isinstance(p, Encapsulated):
        return [ip_line(p), *srh_lines(p, names),
                *('  ' + line for line in packet_lines(p.inner, names))]
    if isinstance(p, Tunnelled):
        return [ip_line(p), *('  ' + line for line in packet_lines(p.inner, names))]
    return [ip_line(p), *roce_lines(p, names)]


def walk_block(walk, links, names):
    """The packets in an order in which each comes after what caused it."""
    out = ''
    shown = {}     # number of the packet that first had these bytes behind its outer header.
    for number, link in enumerate(links, 1):
        p = walk.packet(*link)
        lines = packet_lines(p, names)
        if isinstance(p, Encapsulated):
            first = shown.setdefault(p.bytes[IP6:], number)
            if first != number:
                lines[1:] = ['SRH and inside: as in %d' % first]
        elif p.bytes[8:] in shown:
            lines[1:] = ['all behind the hop limit: as in %d' % shown[p.bytes[8:]]]
        else:
            shown[p.bytes[8:]] = number
        out += '%2d  %s > %s  %d bytes\n' % (number, *link, len(p.frame))
        out += ''.join('      %s\n' % line for line in lines)
    return out


#
# Bytes on the links.
#
def below(link, links):
    """The receivers that the packets of a link are for."""
    further = [(src, dst) for src, dst in links if src == link[1]]
    return sum(below(f, links) for f in further) if further else 1


def bytes_block(walk, down):
    rows = [('link', 'down', 'up', 'down if unicast', 'up if unicast')]
    sums = [0, 0, 0, 0]
    single, answer = len(walk.packet('h0', 'sa').frame), len(walk.packet('sa', 'h0').frame)
    for link in down:
        n = below(link, down)
        row = [len(walk.packet(*link).frame), len(walk.packet(*reversed(link)).frame),
               n * single, n * answer]
        sums = [a + b for a, b in zip(sums, row)]
        rows.append(('%s - %s' % link, *row))
    rows.append(('sum', *sums))
    return ''.join('%-9s %6s %6s %17s %15s\n' % row for row in rows)


#
# Dumps: every field of a packet with its bytes.
#
class Dump:
    """Bytes are consumed field by field."""

    def __init__(self, data):
        self.data = data
        self.ofs = 0
        self.out = ''

    def field(self, length, what, varies=False):
        for i in range(0, length, 16):
            part = self.data[self.ofs:self.ofs + min(16, length - i)]
            self.out += ' %04x  %-47s  %s%s\n' % (self.ofs, part.hex(' '), '~ ' if varies else '',
                                                  what if i == 0 else '')
            self.ofs += len(part)

    def skip(self, length, what):
        self.out += ' %04x  %-47s  %s\n' % (self.ofs, '...', what)
        self.ofs += length


def dump_ip(dump, p):
    dump.field(4, 'version 6, traffic class %#04x, flow label' % p.tc, p.flow_label)
    dump.field(2, 'payload length %d' % (len(p.bytes) - IP6))
    dump.field(1, 'next header %d: %s' % (p.nh, NEXT_HEADERS[p.nh]))
    dump.field(1, 'hop limit %d' % p.hlim)
    dump.field(16, 'source %s' % text(p.src))
    dump.field(16, 'destination %s' % text(p.dst))


def dump_srh(dump, p):
    dump.field(1, 'SRH: next header %d: IPv6' % p.srh[0])
    dump.field(1, 'length %d: 8 + %d x 8 = %d bytes' % (p.srh[1], p.srh[1], len(p.srh)))
    dump.field(1, 'routing type 4')
    dump.field(1, 'Segments Left %d' % p.srh[3])
    dump.field(1, 'Last Entry %d' % p.srh[4])
    dump.field(3, 'Flags, Tag')
    dump.field(16, 'Segment List[0] %s, the Proxy' % text(p.srh[8:24]))
    for edge, receivers in p.receivers():
        dump.field(1, 'TLV type %d: End.MT' % TLV_MT)
        dump.field(1, 'length %d = 22 + 20 x %d' % (22 + 20 * len(receivers), len(receivers)))
        dump.field(2, 'reserved')
        dump.field(16, 'edge %s' % text(edge))
        dump.field(1, 'receivers: %d' % len(receivers))
        dump.field(3, 'reserved')
        for address, _ in receivers:
            dump.field(16, text(address))
            dump.field(3, 'its QPN', varies=True)
            dump.field(1, 'reserved')
    if dump.ofs < IP6 + len(p.srh):
        dump.field(1, 'TLV type 4: PadN')
        dump.field(1, 'length %d' % p.srh[dump.ofs - IP6])
        dump.field(IP6 + len(p.srh) - dump.ofs, 'padding')


def dump_roce(dump, p, names):
    dump_ip(dump, p)
    port = names.sport(p)
    dump.field(2, 'UDP source port %s' % port, varies=port.startswith('sport'))
    dump.field(2, 'destination port 4791: RoCEv2')
    dump.field(2, 'length %d' % (len(p.bytes) - IP6))
    dump.field(2, 'checksum: none')
    flags = p.bytes[IP6 + UDP + 1]
    dump.field(1, 'BTH: opcode, RC %s' % OPCODES[p.opcode])
    dump.field(1, 'MigReq %d, pad count %d, transport version %d'
               % (flags >> 6 & 1, flags >> 4 & 3, flags & 15))
    dump.field(2, 'P_Key')
    dump.field(1, 'FECN, BECN, reserved')
    name = names.dest_qp(p)
    dump.field(3, 'DestQP %s' % name, varies=name.startswith('QPN'))
    dump.field(1, 'AckReq %d' % p.ack_req)
    dump.field(3, 'PSN %d' % p.psn)
    varies = p.reth is not None
    if p.reth:
        va, rkey, length = names.reth(p)
        dump.field(8, 'RETH: %s' % va, varies=va.startswith('VA('))
        dump.field(4, rkey, varies=True)
        dump.field(4, 'length %d' % length)
    if p.aeth:
        dump.field(1, 'AETH: syndrome %#x, ACK without a credit limit' % p.aeth[0])
        dump.field(3, 'MSN %d' % p.aeth[1])
    if p.payload:
        dump.skip(len(p.payload), '%d bytes of data' % len(p.payload))
    dump.field(ICRC, 'ICRC', varies=varies)


def dump_block(walk, link, names):
    p = walk.packet(*link)
    dump = Dump(p.bytes)
    inner = p
    if isinstance(p, (Encapsulated, Tunnelled)):
        dump_ip(dump, p)
        inner = p.inner
    if isinstance(p, Encapsulated):
        dump_srh(dump, p)
    start = dump.ofs
    dump_roce(dump, inner, names)
    assert dump.ofs == len(p.bytes) == start + len(inner.bytes)
    return dump.out


#
# The document.
#
def blocks(walk, down, up, names):
    """Text by block name."""
    return {'walk': walk_block(walk, down + up, names),
            'bytes': bytes_block(walk, down),
            'encapsulated': dump_block(walk, ('sa', 'n6'), names),
            'copy': dump_block(walk, ('n1', 'r1'), names),
            'response': dump_block(walk, ('n1', 'n4'), names)}


def replace(document, made):
    """The document with these blocks.  It must have each, and no other."""
    found = sorted(m[2] for m in BLOCK.finditer(document))
    if found != sorted(made):
        raise ValueError('the document has blocks %s, should have %s' % (found, sorted(made)))
    return BLOCK.sub(lambda m: m[1] + made[m[2]] + m[4], document)


def comparable(document):
    """Its lines without the values that differ from run to run."""
    return [VARYING_HEX.sub(lambda m: m[1] + re.sub('[0-9a-f]', '.', m[2]) + m[3], line)
            for line in document.splitlines()]
