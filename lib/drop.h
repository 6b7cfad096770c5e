/* SPDX-License-Identifier: Apache-2.0
 *
 * Why a packet went no further.  One list makes the enumeration, the counters'
 * names and the help text, so that a drop without a name cannot exist.
 */
#ifndef LIB_DROP_H
#define LIB_DROP_H 1

/* name, help. */
#define DROP_REASONS                                                                              \
    DROP(none, "not dropped")                                                                     \
    DROP(pool_empty, "no packet buffer free")                                                     \
    DROP(too_long, "longer than a packet buffer or the port's MTU")                               \
    DROP(eth_short, "shorter than an Ethernet header")                                            \
    DROP(eth_type, "not IPv6")                                                                    \
    DROP(vlan, "of a VLAN: ports take untagged frames only")                                      \
    DROP(eth_not_mine, "Ethernet destination is another station")                                 \
    DROP(ip6_short, "shorter than an IPv6 header or its payload length")                          \
    DROP(ip6_version, "IP version is not 6")                                                      \
    DROP(ip6_src, "IPv6 source is multicast or unspecified where it must not be")                 \
    DROP(ext_chain, "extension header chain too long, truncated or out of bounds")                \
    DROP(ip6_option, "unknown option that must not be skipped (RFC 8200 4.2)")                    \
    DROP(routing_header, "unknown Routing header with segments left (RFC 8200 4.4)")              \
    DROP(srh_malformed, "SRH lengths, Last Entry or Segments Left inconsistent (RFC 8754)")       \
    DROP(srh_tlv, "SRH TLV runs over the header's end")                                           \
    DROP(mt_tlv_malformed, "End.MT TLV length does not match its receiver count")                 \
    DROP(inner_malformed, "inner IPv6 packet malformed")                                          \
    DROP(udp_short, "UDP shorter than its header or length field wrong")                          \
    DROP(roce_short, "RoCE packet shorter than the headers of its opcode")                        \
    DROP(roce_tver, "BTH transport version is not 0")                                             \
    DROP(hop_limit, "hop limit exhausted")                                                        \
    DROP(no_route, "no route to the destination")                                                 \
    DROP(no_neighbour, "next hop did not answer neighbour discovery")                             \
    DROP(neigh_queue, "displaced while waiting for neighbour discovery")                          \
    DROP(nd_invalid, "neighbour discovery message fails the checks of RFC 4861 section 7.1")      \
    DROP(port_down, "output port not usable")                                                     \
    DROP(tx_error, "the port refused the frame")                                                  \
    DROP(not_for_us, "addressed to this node, but nothing here takes it")                         \
    DROP(source_guard, "host port: source address is not that host's, or a forbidden header")     \
    DROP(mt_no_srh, "End.MT: no SRH (draft-li 6.2 S14)")                                          \
    DROP(mt_segments_left, "End.MT: Segments Left is not 1 (draft-li 6.2 S14)")                   \
    DROP(mt_inner, "End.MT: inside is not an IPv6 RoCE request to a Proxy Address")               \
    DROP(mt_no_tlv, "End.MT: no TLV names a receiver of this edge")                               \
    DROP(mt_context, "End.MT: Segment List entry 0 is not the inner destination")                 \
    DROP(mt_not_planned, "End.MT: this node gets the group's packets at another address")         \
    DROP(mt_repeated, "End.MT: receiver named twice in one packet")                               \
    DROP(auth_missing, "SRH without the authenticating TLV that the group's packets have")        \
    DROP(auth_bad, "MT-AUTH or HMAC TLV that does not fit the SRH, or DATA-AUTH the packet")      \
    DROP(auth_unknown_key, "authenticating TLV of a key that this node does not have")            \
    DROP(auth_replay, "DATA-AUTH TLV that has come before, or is too old to know")                \
    DROP(ecn_ce, "outer header says CE, inner is not ECN capable (RFC 6040)")                     \
    DROP(group_unknown, "no group with this Proxy Address")                                       \
    DROP(stale_epoch, "Designated QPN is not the current epoch's")                                \
    DROP(group_closed, "group not ready: packets held back and the queue is full")                \
    DROP(outer_source, "outer source address is not that of the group's source agent")            \
    DROP(inner_source, "inner source address is not the group's source")                          \
    DROP(not_provisioned, "TLV receiver is not in the provisioned branch set")                    \
    DROP(member_lost, "receiver was lost and the group goes on without it")                       \
    DROP(qpn_mismatch, "TLV QPN differs from the provisioned one")                                \
    DROP(icrc, "ICRC wrong")                                                                      \
    DROP(psn_jump, "PSN too far ahead with an ICRC that is wrong")                                \
    DROP(pkey, "P_Key is not that of the default partition (0xffff or 0x7fff)")                   \
    DROP(mr_range, "RETH outside the receiver's region")                                          \
    DROP(rkey, "RETH rkey is not the group's designated rkey")                                    \
    DROP(opcode, "opcode not supported in a group")                                               \
    DROP(refused, "behind a request that was refused")                                            \
    DROP(response_outer, "response SID: not a response to the source in nothing but IPv6")        \
    DROP(no_parent, "response that has nowhere to go: neither root nor parent")                   \
    DROP(sid_unknown, "in this node's locator, but no SID of it")                                 \
    DROP(sid_segments_left, "SID that ends the path, but Segments Left is not 0")                 \
    DROP(sid_upper, "SID with an upper layer that it does not take")                              \
    DROP(usid_unknown, "next uSID is that of no neighbour: nothing leads there, or loosely only") \
    DROP(usid_link_down, "next step of the program is a link that is gone or down")               \
    DROP(usid_zero, "0 between the uSIDs of a program")                                           \
    DROP(usid_own_limit, "more uSIDs of this node in a row than it takes")                        \
    DROP(program_guard, "program that this agent may not use")                                    \
    DROP(path_none, "paths to the destination, but none that is usable")                          \
    DROP(probe_malformed, "probe, or answer to one, that is not as RFC 8762 and 8972 say")        \
    DROP(probe_forged, "probe that came back, or answer, which this node has not asked for")      \
    DROP(probe_replayed, "probe, or answer to one, that has come before")                         \
    DROP(probe_late, "probe that came back, or answer, after its time")                           \
    DROP(probe_prober, "probe of a node that is not to be answered")                              \
    DROP(probe_return, "probe without a way back to the node that has sent it")                   \
    DROP(probe_rate, "probe of a node that has had enough answers for now")                       \
    DROP(rs_unknown, "replication SID without a replication segment of this group")               \
    DROP(mcast_unknown, "multicast group without a forwarding entry for this source")             \
    DROP(mcast_rpf, "multicast group's packet from another node than its entry says")             \
    DROP(icmp_malformed, "ICMPv6 message too short or with a wrong checksum")                     \
    DROP(icmp_error, "ICMPv6 error received for a packet of this node")                           \
    DROP(unknown_branch, "response from an address that is no branch")                            \
    DROP(wrong_port, "response from a branch on a port it is not on")                             \
    DROP(psn_not_sent, "response for a PSN never sent in this epoch")                             \
    DROP(resp_opcode, "not an acknowledgement")                                                   \
    DROP(resp_payload, "acknowledgement with a payload")                                          \
    DROP(cnp, "CNP consumed: counted for its branch, or told the rate control")                   \
    DROP(cnp_soon, "CNP of a branch that had one in this interval")                               \
    DROP(egress_full, "queue of the output port full")                                            \
    DROP(egress_red, "met congestion, but is not ECN capable (RFC 3168)")                         \
    DROP(pacer_full, "flow that is slowed down: more packets wait than can be in flight")         \
    DROP(fast_cnp, "Fast CNP consumed: told the rate control")                                    \
    DROP(fast_cnp_off, "Fast CNP, which nobody has switched on here")                             \
    DROP(fast_cnp_malformed, "Fast CNP of another shape than its draft says")                     \
    DROP(fast_cnp_source, "Fast CNP from an address that is on no access list")                   \
    DROP(fast_cnp_icrc, "Fast CNP with an ICRC that fits in no form")                             \
    DROP(fast_cnp_flow, "Fast CNP of a flow that the host does not have")                         \
    DROP(fast_cnp_soon, "Fast CNP of a flow that had one in this interval")                       \
    DROP(fast_cnp_border, "Fast CNP at the border of its domain")                                 \
    DROP(cm_short, "RDMA-CM: packet of another length than a MAD's")                              \
    DROP(cm_qkey, "RDMA-CM: Q_Key or source QP is not that of QP 1")                              \
    DROP(cm_mad, "RDMA-CM: MAD of another version, class or method")                              \
    DROP(cm_attribute, "RDMA-CM: attribute that is not handled")                                  \
    DROP(cm_unknown, "RDMA-CM: connection is not known")                                          \
    DROP(cm_state, "RDMA-CM: message does not fit the connection's state")                        \
    DROP(cm_ids, "RDMA-CM: communication IDs do not fit the connection")                          \
    DROP(cm_full, "RDMA-CM: too many connections wait for a decision")

enum drop_reason {
#define DROP(NAME, HELP) DROP_##NAME,
    DROP_REASONS
#undef DROP
        N_DROP_REASONS
};

/* Name as shown in counters; both are static strings. */
const char *drop_name(enum drop_reason);
const char *drop_help(enum drop_reason);

#endif /* lib/drop.h */
