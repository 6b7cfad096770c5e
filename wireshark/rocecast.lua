-- SPDX-License-Identifier: Apache-2.0
--
-- Wireshark: what rocecast puts on the wire and Wireshark 4.0 does not take apart.
--
-- A postdissector.  Wireshark has found the IPv6 headers when it is called; it goes through the headers
-- behind each of them again, and adds a tree "rocecast" of its own:
--
--     SRH                   TLVs End.MT, MT-AUTH, HMAC and DATA-AUTH
--     destination, segments uSIDs of the block 5f00::/32, and what each of them asks for
--     Hop-by-Hop            IOAM trace of a group's packet
--     Destination Options   Fast CNP
--     UDP 862               STAMP probes and their answers
--     UDP 4791              is the ICRC good?
--
-- Bounds nest: frame > IPv6 payload > header > TLV.  What is longer than what it is in is malformed, and an
-- expert info says so.  What the capture has cut off is not.
--
-- The formats are those of lib/wire.h, lib/address-plan.h, lib/ioam.h, lib/fast-cnp.h and lib/stamp.c.
--
-- luacheck: std lua52, read globals Proto ProtoField ProtoExpert Pref Field base expert register_postdissector

local is_new, rocecast = pcall(Proto, "rocecast", "rocecast: RDMA multicast over SRv6")
if not is_new then
    return -- the script is in Wireshark's folder of plugins as well, and was loaded from there.
end

rocecast.prefs.check_icrc = Pref.bool("Check ICRCs", true,
    "Compute the invariant CRC of each RoCEv2 packet; takes most of the time in large captures")

-- Limits of what is looked at in one frame.
local MAX_PACKETS = 16 -- IPv6 headers, one inside the other or quoted.
local MAX_EXT = 16     -- extension headers of an IPv6 packet.
local MAX_TLVS = 2048  -- of a header: as many as an SRH has bytes.

local IP6_LEN, UDP_LEN, BTH_LEN, ICRC_LEN = 40, 8, 12, 4
local NH_HOPOPT, NH_UDP, NH_IPV6, NH_ROUTING, NH_FRAGMENT, NH_DSTOPT = 0, 17, 41, 43, 44, 60
local PORT_ROCE, PORT_STAMP, PORT_PROBER = 4791, 862, 49862

--
-- Fields: name behind "rocecast.", kind, label, and more arguments of ProtoField's function.
--

local FIELDS = {
    { "mt", "none", "End.MT TLV" },
    { "mt.type", "uint8", "Type" },
    { "mt.length", "uint8", "Length" },
    { "mt.reserved", "uint16", "Reserved", base.HEX },
    { "mt.edge", "ipv6", "Edge" },
    { "mt.n_receivers", "uint8", "Receivers" },
    { "mt.reserved2", "uint24", "Reserved", base.HEX },
    { "mt.receiver", "none", "Receiver" },
    { "mt.receiver.address", "ipv6", "Address" },
    { "mt.receiver.qpn", "uint24", "QPN", base.HEX },
    { "mt.receiver.reserved", "uint8", "Reserved", base.HEX },

    { "auth", "none", "MT-AUTH TLV" },
    { "auth.type", "uint8", "Type" },
    { "auth.length", "uint8", "Length" },
    { "auth.reserved", "uint16", "Reserved", base.HEX },
    { "auth.key_id", "uint32", "Key ID" },
    { "auth.hmac", "bytes", "HMAC" },

    { "data", "none", "DATA-AUTH TLV" },
    { "data.type", "uint8", "Type" },
    { "data.length", "uint8", "Length" },
    { "data.reserved", "uint16", "Reserved", base.HEX },
    { "data.key_id", "uint32", "Key ID" },
    { "data.sequence", "uint64", "Sequence" },
    { "data.instance", "uint32", "Instance" },
    { "data.reserved2", "uint32", "Reserved", base.HEX },
    { "data.tag", "bytes", "Tag" },

    { "hmac", "none", "HMAC TLV" },
    { "hmac.type", "uint8", "Type" },
    { "hmac.length", "uint8", "Length" },
    { "hmac.d", "bool", "D: the destination is not in the Segment List", 16, nil, 0x8000 },
    { "hmac.reserved", "uint16", "Reserved", base.HEX, nil, 0x7fff },
    { "hmac.key_id", "uint32", "Key ID" },
    { "hmac.hmac", "bytes", "HMAC" },

    { "node", "uint16", "Node", base.HEX },
    { "program", "string", "uSIDs" },
    { "sid", "ipv6", "SID" },
    { "sid.behaviour", "string", "Behaviour" },
    { "sid.node", "uint16", "Node", base.HEX },
    { "sid.function", "uint16", "Function", base.HEX },
    { "sid.port", "uint8", "Port number" },
    { "sid.replication_id", "uint16", "Replication-ID", base.DEC, nil, 0x0fff },
    { "sid.argument", "bytes", "Argument" },

    { "ioam", "none", "IOAM pre-allocated trace" },
    { "ioam.namespace", "uint16", "Namespace-ID" },
    { "ioam.node_len", "uint16", "NodeLen, words", base.DEC, nil, 0xf800 },
    { "ioam.overflow", "bool", "Overflow", 16, nil, 0x0400 },
    { "ioam.remaining_len", "uint16", "RemainingLen, words", base.DEC, nil, 0x007f },
    { "ioam.type", "uint24", "Trace-Type", base.HEX },
    { "ioam.reserved", "uint8", "Reserved", base.HEX },
    { "ioam.element", "none", "Element" },
    { "ioam.hop_limit", "uint8", "Hop limit" },
    { "ioam.node_id", "uint24", "Node", base.HEX },
    { "ioam.seconds", "uint32", "Seconds" },
    { "ioam.usec", "uint32", "Microseconds" },
    { "ioam.sent_bytes", "uint32", "Bytes sent by the egress port" },
    { "ioam.queue_bytes", "uint32", "Bytes that wait at the egress port" },

    { "fast_cnp", "none", "Fast CNP" },
    { "fast_cnp.option", "uint8", "Option of the draft" },
    { "fast_cnp.original", "ipv6", "Destination of the packet that met congestion" },

    { "stamp", "none", "STAMP" },
    { "stamp.answer", "bool", "Is an answer" },
    { "stamp.seq", "uint32", "Sequence number" },
    { "stamp.time", "absolute_time", "Timestamp", base.UTC },
    { "stamp.error", "uint16", "Error estimate", base.HEX },
    { "stamp.ssid", "uint16", "SSID" },
    { "stamp.came", "absolute_time", "Receive timestamp", base.UTC },
    { "stamp.asked.seq", "uint32", "Sequence number of the sender" },
    { "stamp.asked.time", "absolute_time", "Timestamp of the sender", base.UTC },
    { "stamp.asked.error", "uint16", "Error estimate of the sender", base.HEX },
    { "stamp.asked.zero", "uint16", "Zero", base.HEX },
    { "stamp.asked.hop_limit", "uint8", "Hop limit of the sender" },
    { "stamp.asked.zeros", "uint24", "Zero", base.HEX },
    { "stamp.tlv", "none", "TLV" },
    { "stamp.tlv.unrecognized", "bool", "U: not understood", 8, nil, 0x80 },
    { "stamp.tlv.type", "uint8", "Type" },
    { "stamp.tlv.length", "uint16", "Length" },
    { "stamp.dscp", "uint32", "DSCP asked for", base.DEC, nil, 0xfc000000 },
    { "stamp.dscp_seen", "uint32", "DSCP that came", base.DEC, nil, 0x03f00000 },
    { "stamp.ecn_seen", "uint32", "ECN that came", base.DEC, nil, 0x000c0000 },
    { "stamp.cookie", "uint64", "Cookie", base.HEX },

    { "icrc", "uint32", "ICRC", base.HEX },
    { "icrc.status", "string", "Status" },
    { "icrc.why", "string", "Not checked, because" },
    { "icrc.form", "string", "Covers" },
    { "icrc.computed", "uint32", "Computed", base.HEX },
}

local EXPERTS = {
    { "malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR },
    { "truncated", "The capture ends here", expert.group.UNDECODED, expert.severity.NOTE },
    { "icrc.bad", "Bad ICRC", expert.group.CHECKSUM, expert.severity.ERROR },
    { "sid.zero", "A uSID is 0, and there is more behind it", expert.group.PROTOCOL, expert.severity.WARN },
}

local field, info = {}, {}
for _, row in ipairs(FIELDS) do
    local name, kind, label = row[1], row[2], row[3]
    field[name] = ProtoField[kind]("rocecast." .. name, label, table.unpack(row, 4, 6))
end
for _, row in ipairs(EXPERTS) do
    info[row[1]] = ProtoExpert.new("rocecast." .. row[1], row[2], row[3], row[4])
end
rocecast.fields = field
rocecast.experts = info

--
-- A frame that is being taken apart: {tvb, shared}.  'shared' is that of all buffers of a frame (a reassembled
-- packet has its own): {root, tree}.  'tree' is the tree "rocecast"; there is none until something is added to it.
--

local function top(f)
    local shared = f.shared
    shared.tree = shared.tree or shared.root:add(rocecast, f.tvb())
    return shared.tree
end

-- Has the capture these bytes?
local function captured(f, ofs, len)
    return ofs + len <= f.tvb:len()
end

-- As much of them as it has.
local function range(f, ofs, len)
    local first = math.min(ofs, f.tvb:len())
    return f.tvb(first, math.min(len, f.tvb:len() - first))
end

local function uint(f, ofs, len)
    return f.tvb(ofs, len):uint()
end

local function malformed(f, tree, text)
    (tree or top(f)):add_proto_expert_info(info["malformed"], text)
end

local function truncated(f, tree)
    (tree or top(f)):add_proto_expert_info(info["truncated"])
end

-- Adds the fields of a structure, {{name, bytes}...}, one behind the other; bytes 0: the next one is in the
-- same bytes.  Returns where it ends, or nil if the capture ends before.
local function add_struct(f, tree, struct, ofs)
    for i, row in ipairs(struct) do
        local len = row[2]
        for j = i + 1, #struct do
            len = len == 0 and struct[j][2] or len
        end
        if not captured(f, ofs, len) then
            truncated(f, tree)
            return nil
        end
        tree:add(field[row[1]], f.tvb(ofs, len))
        ofs = ofs + row[2]
    end
    return ofs
end

-- How TLVs of a kind begin: length of type and length, offset of the type, and where the length is.
local IP6_TLV = { header = 2, type_ofs = 0, len_ofs = 1, len_len = 1, has_pad1 = true } -- of SRHs, too.
local STAMP_TLV = { header = 4, type_ofs = 1, len_ofs = 2, len_len = 2, has_pad1 = false }

-- Calls visit(type, ofs, len) for each TLV between 'ofs' and 'to'; ofs is that of the TLV, len that of its
-- value, which is within 'to'.  visit() finds out itself how much of that is in the capture.
local function each_tlv(f, tree, kind, ofs, to, visit)
    for _ = 1, MAX_TLVS do
        if ofs >= to then
            return
        end
        if not captured(f, ofs, 1) then
            return truncated(f, tree)
        end
        if kind.has_pad1 and uint(f, ofs, 1) == 0 then
            ofs = ofs + 1
        else
            if to - ofs < kind.header then
                return malformed(f, tree, "TLV: no room for type and length")
            end
            if not captured(f, ofs, kind.header) then
                return truncated(f, tree)
            end
            local tlv_type = uint(f, ofs + kind.type_ofs, 1)
            local len = uint(f, ofs + kind.len_ofs, kind.len_len)
            if len > to - ofs - kind.header then
                return malformed(f, tree, ("TLV of type %d: length %d is over the end, %d bytes are left")
                    :format(tlv_type, len, to - ofs - kind.header))
            end
            visit(tlv_type, ofs, len)
            ofs = ofs + kind.header + len
        end
    end
end

--
-- SIDs of the address plan.
--

-- First and last function, behaviour, what the lowest bits of the function are: the field that has them.
local BEHAVIOURS = {
    { 0xe000, 0xe000, "End" },
    { 0xe001, 0xe001, "End.MT" },
    { 0xe002, 0xe002, "End.Response" },
    { 0xe003, 0xe003, "End.DT6" },
    { 0xe100, 0xe1ff, "uA", "sid.port" },
    { 0xe200, 0xe2ff, "End.DX6", "sid.port" },
    { 0xe300, 0xe3ff, "End.X", "sid.port" },
    { 0xf000, 0xffff, "End.Replicate", "sid.replication_id" },
}
local FIRST_FUNCTION = 0xe000
local BLOCK, BLOCK_LEN, USID_LEN, USIDS_MAX = 0x5f000000, 4, 2, 6

local function behaviour_of(func)
    for _, row in ipairs(BEHAVIOURS) do
        if func >= row[1] and func <= row[2] then
            return row[3], row[4]
        end
    end
    return "unknown"
end

-- The uSIDs of the address at 'ofs', without the zeros behind the last one.
local function usids_at(f, ofs)
    local usids = {}
    for i = 1, USIDS_MAX do
        usids[i] = uint(f, ofs + BLOCK_LEN + (i - 1) * USID_LEN, USID_LEN)
    end
    while #usids > 0 and usids[#usids] == 0 do
        usids[#usids] = nil
    end
    return usids
end

local function usids_text(usids)
    local words = {}
    for i, usid in ipairs(usids) do
        words[i] = ("%04x"):format(usid)
    end
    return table.concat(words, " ")
end

-- Adds what a function asks for; 'func_ofs' is where it is, 'node' may be nil.
local function add_function(f, tree, node, node_ofs, func_ofs)
    local func = uint(f, func_ofs, USID_LEN)
    local behaviour, number = behaviour_of(func)
    local first = node and node_ofs or func_ofs
    local item = tree:add(field["sid.behaviour"], f.tvb(first, func_ofs + USID_LEN - first), behaviour)
    if node then
        item:add(field["sid.node"], f.tvb(node_ofs, USID_LEN))
        item:append_text((" of node 0x%04x"):format(node))
    end
    item:add(field["sid.function"], f.tvb(func_ofs, USID_LEN))
    if number == "sid.port" then
        item:add(field["sid.port"], f.tvb(func_ofs + 1, 1))
    elseif number then
        item:add(field[number], f.tvb(func_ofs, USID_LEN))
    end
    return behaviour
end

local function add_un(f, tree, ofs)
    local item = tree:add(field["sid.behaviour"], f.tvb(ofs, USID_LEN), "uN")
    item:add(field["sid.node"], f.tvb(ofs, USID_LEN))
    item:append_text((" of node 0x%04x"):format(uint(f, ofs, USID_LEN)))
end

-- Adds the steps of a program.  A function is that of the node whose uSID is in front of it.  What is behind
-- one that takes no uSID out is its argument.
local function add_steps(f, tree, usids, ofs)
    local i = 1
    while i <= #usids do
        local at = ofs + BLOCK_LEN + (i - 1) * USID_LEN
        local is_node = usids[i] < FIRST_FUNCTION
        local behaviour = "uN"
        if usids[i] == 0 then
            tree:add_proto_expert_info(info["sid.zero"])
            return
        elseif not is_node then
            behaviour = add_function(f, tree, nil, nil, at)
        elseif usids[i + 1] and usids[i + 1] >= FIRST_FUNCTION then
            behaviour = add_function(f, tree, usids[i], at, at + USID_LEN)
            i = i + 1
        else
            add_un(f, tree, at)
        end
        i = i + 1
        if behaviour ~= "uN" and behaviour ~= "uA" and i <= #usids then
            local rest = ofs + BLOCK_LEN + (i - 1) * USID_LEN
            tree:add(field["sid.argument"], f.tvb(rest, ofs + 16 - rest))
            return
        end
    end
end

-- The address at 'ofs', if it is in the block.  'label' says what it is the address of.
local function add_sid(f, tree, label, ofs)
    if not captured(f, ofs, 16) or uint(f, ofs, 4) ~= BLOCK then
        return
    end
    local usids = usids_at(f, ofs)
    if #usids == 0 then
        return
    end
    tree = tree or top(f)
    if #usids == USIDS_MAX and usids[6] == 1 and usids_text(usids):find("^%x+ 0000 0000 0000 0000 0001$") then
        tree:add(field["node"], f.tvb(ofs + BLOCK_LEN, USID_LEN)):set_text(
            ("%s: address of node 0x%04x"):format(label, usids[1]))
        return
    end
    local item = tree:add(field["sid"], f.tvb(ofs, 16))
    item:set_text(("%s: %s, uSIDs %s"):format(label, f.tvb(ofs, 16):ipv6(), usids_text(usids)))
    item:add(field["program"], f.tvb(ofs + BLOCK_LEN, #usids * USID_LEN), usids_text(usids))
    add_steps(f, item, usids, ofs)
end

--
-- Extension headers.  Each function gets the frame, and offset and length of the header, which is within the
-- IPv6 payload.
--

local MT_HEADER = {
    { "mt.type", 1 }, { "mt.length", 1 }, { "mt.reserved", 2 }, { "mt.edge", 16 },
    { "mt.n_receivers", 1 }, { "mt.reserved2", 3 },
}
local MT_RECEIVER = { { "mt.receiver.address", 16 }, { "mt.receiver.qpn", 3 }, { "mt.receiver.reserved", 1 } }
local MT_HEADER_LEN, MT_RECEIVER_LEN = 24, 20
local AUTH = {
    { "auth.type", 1 }, { "auth.length", 1 }, { "auth.reserved", 2 }, { "auth.key_id", 4 }, { "auth.hmac", 32 },
}
local DATA = {
    { "data.type", 1 }, { "data.length", 1 }, { "data.reserved", 2 }, { "data.key_id", 4 }, { "data.sequence", 8 },
    { "data.instance", 4 }, { "data.reserved2", 4 }, { "data.tag", 16 },
}
local HMAC = { { "hmac.type", 1 }, { "hmac.length", 1 }, { "hmac.d", 0 }, { "hmac.reserved", 2 }, { "hmac.key_id", 4 } }

local function add_mt(f, tree, ofs, len)
    local item = tree:add(field["mt"], range(f, ofs, 2 + len))
    if len < MT_HEADER_LEN - 2 then
        return malformed(f, item, ("End.MT: length %d is less than %d"):format(len, MT_HEADER_LEN - 2))
    end
    local at = add_struct(f, item, MT_HEADER, ofs)
    if not at then
        return
    end
    local n = uint(f, ofs + 20, 1)
    local room = ofs + 2 + len - at
    item:append_text((", edge %s, %d receiver%s"):format(f.tvb(ofs + 4, 16):ipv6(), n, n == 1 and "" or "s"))
    if room ~= n * MT_RECEIVER_LEN then
        malformed(f, item, ("End.MT: %d receivers do not have length %d, but %d")
            :format(n, len, MT_HEADER_LEN - 2 + n * MT_RECEIVER_LEN))
    end
    for _ = 1, math.min(n, math.floor(room / MT_RECEIVER_LEN)) do
        if not captured(f, at, 1) then
            return truncated(f, item)
        end
        local receiver = item:add(field["mt.receiver"], range(f, at, MT_RECEIVER_LEN))
        if not add_struct(f, receiver, MT_RECEIVER, at) then
            return
        end
        receiver:append_text((" %s, QPN 0x%06x"):format(f.tvb(at, 16):ipv6(), uint(f, at + 16, 3)))
        at = at + MT_RECEIVER_LEN
    end
end

local function add_auth(f, tree, ofs, len)
    local item = tree:add(field["auth"], range(f, ofs, 2 + len))
    if len ~= 38 then
        return malformed(f, item, ("MT-AUTH: length %d is not 38"):format(len))
    end
    if add_struct(f, item, AUTH, ofs) then
        item:append_text((", key %d"):format(uint(f, ofs + 4, 4)))
    end
end

local function add_data(f, tree, ofs, len)
    local item = tree:add(field["data"], range(f, ofs, 2 + len))
    if len ~= 38 then
        return malformed(f, item, ("DATA-AUTH: length %d is not 38"):format(len))
    end
    if add_struct(f, item, DATA, ofs) then
        item:append_text((", key %d, instance %d"):format(uint(f, ofs + 4, 4), uint(f, ofs + 16, 4)))
    end
end

-- RFC 8754 section 2.1.2: the HMAC is as long as the TLV says, a multiple of 8 up to 32.
local function add_hmac(f, tree, ofs, len)
    local item = tree:add(field["hmac"], range(f, ofs, 2 + len))
    local hmac_len = len - 6
    if hmac_len < 8 or hmac_len > 32 or hmac_len % 8 ~= 0 then
        return malformed(f, item, ("HMAC: length %d is not that of an HMAC of 8 to 32 bytes"):format(len))
    end
    local at = add_struct(f, item, HMAC, ofs)
    if at and captured(f, at, hmac_len) then
        item:add(field["hmac.hmac"], f.tvb(at, hmac_len))
        item:append_text((", key %d"):format(uint(f, at - 4, 4)))
    elseif at then
        truncated(f, item)
    end
end

local SRH_TLVS = { [5] = add_hmac, [124] = add_mt, [125] = add_auth, [126] = add_data }

local function srh(f, ofs, len)
    if not captured(f, ofs, 8) then
        return truncated(f)
    end
    if uint(f, ofs + 2, 1) ~= 4 then
        return -- a routing header of another type.
    end
    local n_segments = uint(f, ofs + 4, 1) + 1
    local tlvs = ofs + 8 + 16 * n_segments
    if tlvs > ofs + len or uint(f, ofs + 3, 1) > n_segments then
        return malformed(f, nil, ("SRH of %d bytes: Last Entry %d, Segments Left %d")
            :format(len, n_segments - 1, uint(f, ofs + 3, 1)))
    end
    for i = 0, n_segments - 1 do
        add_sid(f, nil, ("Segment List[%d]"):format(i), ofs + 8 + 16 * i)
    end
    each_tlv(f, nil, IP6_TLV, tlvs, ofs + len, function(tlv_type, at, tlv_len)
        local add = SRH_TLVS[tlv_type]
        if add then
            add(f, top(f), at, tlv_len)
        end
    end)
end

local TRACE_HEADER = {
    { "ioam.namespace", 2 }, { "ioam.node_len", 0 }, { "ioam.overflow", 0 }, { "ioam.remaining_len", 2 },
    { "ioam.type", 3 }, { "ioam.reserved", 1 },
}
local ELEMENT = {
    { "ioam.hop_limit", 1 }, { "ioam.node_id", 3 }, { "ioam.seconds", 4 }, { "ioam.usec", 4 },
    { "ioam.sent_bytes", 4 }, { "ioam.queue_bytes", 4 },
}
local TRACE_HEADER_LEN, ELEMENT_LEN, TRACE_TYPE = 8, 20, 0xb60000

-- A trace of 'len' bytes, from Namespace-ID on.  Elements of other types have other fields; Wireshark shows them.
local function add_trace(f, tree, ofs, len)
    local item = tree:add(field["ioam"], range(f, ofs, len))
    if len < TRACE_HEADER_LEN then
        return malformed(f, item, ("IOAM trace: %d bytes"):format(len))
    end
    local at = add_struct(f, item, TRACE_HEADER, ofs)
    if not at or uint(f, ofs + 4, 3) ~= TRACE_TYPE then
        return
    end
    local node_len = bit32.rshift(uint(f, ofs + 2, 2), 11)
    local free = 4 * bit32.band(uint(f, ofs + 2, 2), 0x7f)
    if node_len * 4 ~= ELEMENT_LEN or free > len - TRACE_HEADER_LEN then
        return malformed(f, item, ("IOAM trace of %d bytes: NodeLen %d, RemainingLen %d")
            :format(len, node_len, free / 4))
    end
    at = at + free
    local n = math.floor((ofs + len - at) / ELEMENT_LEN)
    item:append_text((", %d element%s"):format(n, n == 1 and "" or "s"))
    for _ = 1, n do
        if not captured(f, at, ELEMENT_LEN) then
            return truncated(f, item)
        end
        local element = item:add(field["ioam.element"], f.tvb(at, ELEMENT_LEN))
        add_struct(f, element, ELEMENT, at)
        element:append_text((" of node 0x%06x, %d bytes wait"):format(uint(f, at + 1, 3), uint(f, at + 16, 4)))
        at = at + ELEMENT_LEN
    end
end

local OPTION_IOAM, OPTION_FAST_CNP = 0x31, 0x9e

local function hop_by_hop(f, ofs, len)
    each_tlv(f, nil, IP6_TLV, ofs + 2, ofs + len, function(option, at, option_len)
        if option ~= OPTION_IOAM then
            return
        end
        if option_len < 2 then
            malformed(f, nil, ("IOAM option: length %d"):format(option_len))
        elseif not captured(f, at, 4) then
            truncated(f)
        elseif uint(f, at + 3, 1) == 0 then -- pre-allocated trace.
            add_trace(f, top(f), at + 4, option_len - 2)
        end
    end)
end

local function add_fast_cnp(f, ofs, len)
    local item = top(f):add(field["fast_cnp"], range(f, ofs, 2 + len))
    if len ~= 16 and (len < 16 + TRACE_HEADER_LEN or len % 4 ~= 0) then
        return malformed(f, item, ("Fast CNP: length %d"):format(len))
    end
    item:add(field["fast_cnp.option"], range(f, ofs, 2), len == 16 and 1 or 2)
    if len > 16 and captured(f, ofs + 2, 1) then
        add_trace(f, item, ofs + 2, len - 16)
    end
    if not captured(f, ofs + 2, len) then
        return truncated(f, item)
    end
    local original = f.tvb(ofs + 2 + len - 16, 16)
    item:add(field["fast_cnp.original"], original)
    item:append_text((", about a packet to %s"):format(original:ipv6()))
end

local function destination_options(f, ofs, len)
    each_tlv(f, nil, IP6_TLV, ofs + 2, ofs + len, function(option, at, option_len)
        if option == OPTION_FAST_CNP then
            add_fast_cnp(f, at, option_len)
        end
    end)
end

local EXTENSION_HEADERS = { [NH_HOPOPT] = hop_by_hop, [NH_ROUTING] = srh, [NH_DSTOPT] = destination_options }

--
-- RoCEv2: the ICRC.
--

local crc_table = {}
for i = 0, 255 do
    local c = i
    for _ = 1, 8 do
        c = bit32.band(c, 1) == 1 and bit32.bxor(bit32.rshift(c, 1), 0xedb88320) or bit32.rshift(c, 1)
    end
    crc_table[i] = c
end

-- CRC-32 as zlib has it.
local function crc32(bytes)
    local byte, band, bxor, rshift, rows = string.byte, bit32.band, bit32.bxor, bit32.rshift, crc_table
    local crc = 0xffffffff
    for i = 1, #bytes do
        crc = bxor(rows[band(bxor(crc, byte(bytes, i)), 0xff)], rshift(crc, 8))
    end
    return bit32.bnot(crc)
end

-- The number that the ICRC's four bytes are if the first one is taken for the highest, as Wireshark shows it.
local function as_shown(crc)
    return bit32.bor(bit32.lshift(bit32.band(crc, 0xff), 24), bit32.lshift(bit32.band(crc, 0xff00), 8),
        bit32.band(bit32.rshift(crc, 8), 0xff00), bit32.rshift(crc, 24))
end

-- The IPv6 header with this Payload Length and Next Header, and ones where routers change it.
local function masked_ip6(f, ip, plen, nh)
    return "\x6f\xff\xff\xff" .. string.char(math.floor(plen / 256), plen % 256, nh, 0xff) .. f.tvb:raw(ip.ofs + 8, 32)
end

-- What an ICRC may cover: name and bytes.  Behind extension headers it is that of the packet without them (A),
-- of the IPv6 header as sent (B), or of all headers (C).
local function icrc_forms(f, ip, udp_ofs, icrc_ofs)
    local plen, nh = ip.stop - ip.ofs - IP6_LEN, uint(f, ip.ofs + 6, 1)
    local ext_len = udp_ofs - ip.ofs - IP6_LEN
    local rest = f.tvb:raw(udp_ofs, 6) .. "\xff\xff" .. f.tvb:raw(udp_ofs + UDP_LEN, 4) .. "\xff"
        .. f.tvb:raw(udp_ofs + UDP_LEN + 5, icrc_ofs - udp_ofs - UDP_LEN - 5)
    if ext_len == 0 then
        return { { "the packet", masked_ip6(f, ip, plen, nh) .. rest } }
    end
    return {
        { "A: the packet without extension headers", masked_ip6(f, ip, plen - ext_len, NH_UDP) .. rest },
        { "B: the IPv6 header as sent, no extension headers", masked_ip6(f, ip, plen, nh) .. rest },
        { "C: all headers", masked_ip6(f, ip, plen, nh) .. f.tvb:raw(ip.ofs + IP6_LEN, ext_len) .. rest },
    }
end

local function add_status(f, ofs, status, why)
    local item = top(f):add(field["icrc"], range(f, ofs, ICRC_LEN))
    item:append_text((", %s"):format(status))
    item:add(field["icrc.status"], status):set_generated()
    if why then
        item:add(field["icrc.why"], why):set_generated()
    end
    return item
end

local function no_status(f, status, why)
    local item = top(f):add(field["icrc.status"], status):set_generated()
    item:prepend_text("ICRC: ")
    item:add(field["icrc.why"], why):set_generated()
end

local function check_icrc(f, ip, udp_ofs, icrc_ofs)
    local sent = uint(f, icrc_ofs, ICRC_LEN)
    local computed
    for _, form in ipairs(icrc_forms(f, ip, udp_ofs, icrc_ofs)) do
        local crc = as_shown(crc32(("\xff"):rep(8) .. form[2]))
        if crc == sent then
            local item = add_status(f, icrc_ofs, "good")
            item:add(field["icrc.form"], form[1]):set_generated()
            return
        end
        computed = computed or crc
    end
    if ip.changes then
        add_status(f, icrc_ofs, "unchecked", "extension headers that change on the way are in front of UDP")
        return
    end
    local item = add_status(f, icrc_ofs, "bad")
    item:add(field["icrc.computed"], computed):set_generated()
    item:add_proto_expert_info(info["icrc.bad"])
end

local function roce(f, ip, ofs, len)
    local icrc_ofs = ofs + len - ICRC_LEN
    if len < UDP_LEN + BTH_LEN + ICRC_LEN then
        malformed(f, nil, ("RoCEv2: UDP length %d"):format(len))
    elseif ip.is_fragment then
        no_status(f, "unchecked", "it is a fragment")
    elseif not captured(f, icrc_ofs, ICRC_LEN) then
        no_status(f, "truncated", "the capture has not all of the packet")
    elseif rocecast.prefs.check_icrc then
        check_icrc(f, ip, ofs, icrc_ofs)
    end
end

--
-- STAMP.
--

local STAMP_PROBE = { { "stamp.seq", 4 }, { "stamp.time", 8 }, { "stamp.error", 2 }, { "stamp.ssid", 2 } }
local STAMP_ANSWER = {
    { "stamp.came", 8 }, { "stamp.asked.seq", 4 }, { "stamp.asked.time", 8 }, { "stamp.asked.error", 2 },
    { "stamp.asked.zero", 2 }, { "stamp.asked.hop_limit", 1 }, { "stamp.asked.zeros", 3 },
}
local STAMP_TLV_HEADER = { { "stamp.tlv.unrecognized", 1 }, { "stamp.tlv.type", 1 }, { "stamp.tlv.length", 2 } }
local STAMP_COS = { { "stamp.dscp", 0 }, { "stamp.dscp_seen", 0 }, { "stamp.ecn_seen", 4 } }
local STAMP_COOKIE = { { "stamp.cookie", 8 } }
local STAMP_BASE_LEN = 44
local SUB_TLV_SEGMENTS = 4

-- RFC 9503 section 4: a TLV with sub-TLVs; one of these has the segments of the answer's way.
local function add_return_path(f, item, ofs, len)
    each_tlv(f, item, STAMP_TLV, ofs, ofs + len, function(sub_type, at, sub_len)
        if sub_type ~= SUB_TLV_SEGMENTS then
            return
        end
        if sub_len % 16 ~= 0 then
            return malformed(f, item, ("Return Path: segments of %d bytes"):format(sub_len))
        end
        for i = 0, math.min(sub_len / 16, MAX_TLVS) - 1 do
            if not captured(f, at + 4 + 16 * i, 16) then
                return truncated(f, item)
            end
            add_sid(f, item, ("Segment %d of the way back"):format(i + 1), at + 4 + 16 * i)
        end
    end)
end

-- By type: name; structure and length of the value, where that is fixed.
local STAMP_TLVS = {
    [1] = { "Extra Padding" },
    [4] = { "Class of Service", STAMP_COS, 4 },
    [10] = { "Return Path" },
    [252] = { "Cookie", STAMP_COOKIE, 8 },
}

local function add_stamp_tlv(f, tree, tlv_type, ofs, len)
    local item = tree:add(field["stamp.tlv"], range(f, ofs, 4 + len))
    local known = STAMP_TLVS[tlv_type] or { "unknown" }
    item:append_text((": %s"):format(known[1]))
    add_struct(f, item, STAMP_TLV_HEADER, ofs)
    if known[3] and len ~= known[3] then
        malformed(f, item, ("STAMP TLV of type %d: length %d is not %d"):format(tlv_type, len, known[3]))
    elseif known[2] then
        add_struct(f, item, known[2], ofs + 4)
    elseif tlv_type == 10 then
        add_return_path(f, item, ofs + 4, len)
    end
end

local function stamp(f, ofs, len, is_answer)
    local item = top(f):add(field["stamp"], range(f, ofs, len))
    item:add(field["stamp.answer"], is_answer):set_generated()
    item:append_text(is_answer and " answer" or " probe")
    if len < STAMP_BASE_LEN then
        return malformed(f, item, ("STAMP: %d bytes are less than %d"):format(len, STAMP_BASE_LEN))
    end
    local at = add_struct(f, item, STAMP_PROBE, ofs)
    if at and is_answer then
        at = add_struct(f, item, STAMP_ANSWER, at)
    end
    if not at then
        return
    end
    item:append_text((", sequence number %d, SSID %d"):format(uint(f, ofs, 4), uint(f, ofs + 14, 2)))
    each_tlv(f, item, STAMP_TLV, ofs + STAMP_BASE_LEN, ofs + len, function(tlv_type, tlv_ofs, tlv_len)
        add_stamp_tlv(f, item, tlv_type, tlv_ofs, tlv_len)
    end)
end

--
-- Packets.
--

local function udp(f, ip, ofs)
    if not captured(f, ofs, UDP_LEN) then
        return truncated(f)
    end
    local sport, dport, len = uint(f, ofs, 2), uint(f, ofs + 2, 2), uint(f, ofs + 4, 2)
    local is_probe, is_answer = dport == PORT_STAMP, sport == PORT_STAMP and dport == PORT_PROBER
    if dport ~= PORT_ROCE and not is_probe and not is_answer then
        return
    end
    if len < UDP_LEN or (len > ip.stop - ofs and not ip.is_fragment) then
        malformed(f, nil, ("UDP: length %d in %d bytes"):format(len, ip.stop - ofs))
    elseif dport == PORT_ROCE then
        roce(f, ip, ofs, len)
    elseif captured(f, ofs + UDP_LEN, 1) and not ip.is_fragment then
        stamp(f, ofs + UDP_LEN, len - UDP_LEN, is_answer)
    end
end

-- The extension header 'nh' at 'ofs'.  Returns the next one and where it is; nil: no further.
local function extension_header(f, ip, nh, ofs)
    if not captured(f, ofs, 8) then
        return truncated(f)
    end
    local len = nh == NH_FRAGMENT and 8 or 8 * (uint(f, ofs + 1, 1) + 1)
    if len > ip.stop - ofs then
        return malformed(f, nil, ("header %d of %d bytes in %d bytes"):format(nh, len, ip.stop - ofs))
    end
    if nh == NH_FRAGMENT then
        ip.is_fragment = uint(f, ofs + 2, 2) >= 8 or bit32.band(uint(f, ofs + 2, 2), 1) == 1
        if uint(f, ofs + 2, 2) >= 8 then
            return nil -- not the first one.
        end
    else
        EXTENSION_HEADERS[nh](f, ofs, len)
    end
    ip.changes = ip.changes or nh ~= NH_DSTOPT
    return uint(f, ofs, 1), ofs + len
end

-- The IPv6 packet at 'ofs'.  Returns where the packet in it is, nil: there is none.
local function ip6(f, ofs)
    if not captured(f, ofs, IP6_LEN) or uint(f, ofs, 1) < 0x60 or uint(f, ofs, 1) > 0x6f then
        return nil
    end
    local ip = { ofs = ofs, stop = ofs + IP6_LEN + uint(f, ofs + 4, 2) }
    local nh = uint(f, ofs + 6, 1)
    add_sid(f, nil, "Destination", ofs + 24)
    ofs = ofs + IP6_LEN
    for _ = 1, MAX_EXT do
        if nh == NH_IPV6 then
            return ofs
        elseif nh == NH_UDP then
            udp(f, ip, ofs)
            return nil
        elseif not EXTENSION_HEADERS[nh] and nh ~= NH_FRAGMENT then
            return nil
        end
        nh, ofs = extension_header(f, ip, nh, ofs)
        if not nh then
            return nil
        end
    end
    return nil
end

local ipv6_headers = Field.new("ipv6")

-- Each header that Wireshark has found, and what is in it; a packet that is quoted by an ICMPv6 error is not
-- in another one's payload that is gone through here.
function rocecast.dissector(_, _, root)
    local shared, seen, n = { root = root }, {}, 0
    for _, found in ipairs({ ipv6_headers() }) do
        local f = { tvb = found.source, shared = shared }
        local buffer, ofs = tostring(f.tvb), found.offset
        seen[buffer] = seen[buffer] or {}
        while ofs and not seen[buffer][ofs] and n < MAX_PACKETS do
            seen[buffer][ofs] = true
            n = n + 1
            ofs = ip6(f, ofs)
        end
    end
end

register_postdissector(rocecast, true)
