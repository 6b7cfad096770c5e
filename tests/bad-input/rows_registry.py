# SPDX-License-Identifier: Apache-2.0
"""Nonsense written to the registry by hand, past castctl."""
from live import Agent, Controller, Role, Schema, Started
from table import Commands
import lab

# Table, columns of a row that is inserted ('@g' is the reference to group g), what ovsdb-server says.
REFUSED = (
    ('Nodes', {}, 'syntax error: Parsing ovsdb operation 1 of 1 failed: No table named Nodes.'),
    ('Global', {'fabric_mtu': 9000},
     'constraint violation: transaction causes "Global" table to contain 2 rows, greater than the '
     'schema-defined limit of 1 row(s)'),
    ('Node', {'nam': 'n9', 'id': 9, 'role': 'switch'},
     'unknown column: No column nam in table Node.'),
    ('Node', {'name': 9, 'id': 9, 'role': 'switch'}, 'syntax error: expected string'),
    ('Node', {'name': 'n9', 'id': 0, 'role': 'switch'},
     'constraint violation: 0 is not in the valid range 1 to 57343 (inclusive)'),
    ('Node', {'name': 'n9', 'id': 9, 'role': 'bridge'},
     'constraint violation: bridge is not one of the allowed values ([agent, ovs, router, switch])'),
    ('Node', {'name': 'n9', 'id': 256, 'role': 'switch'},
     'constraint violation: Transaction causes multiple rows in "Node" table to have identical '
     'values (256) for index on column "id".…'),
    ('Host', {'name': 'h9', 'address': 'fd00:1::1'},
     'constraint violation: Transaction causes multiple rows in "Host" table to have identical '
     'values ("fd00:1::1") for index on column "address".…'),
    ('Link', {'a': 'r8', 'a_port': 'x', 'b': 'n2', 'b_port': 'y', 'kind': 'wifi'},
     'constraint violation: wifi is not one of the allowed values ([packet, tap, xdp])'),
    ('Group', {'name': 'x', 'mode': 'replicate', 'mtu': 1000, 'timeout': 20},
     'constraint violation: 1000 is not one of the allowed values ([256, 512, 1024, 2048, 4096])'),
    ('Group', {'name': 'x', 'mode': 'replicate', 'mtu': 1024, 'timeout': 0},
     'constraint violation: 0 is not in the valid range 1 to 31 (inclusive)'),
    ('Source', {'host': 'h0', 'qpn': 17},
     'referential integrity violation: Table Source column group row … references nonexistent row '
     '00000000-0000-0000-0000-000000000000 in table Group.'),
    ('Source', {'group': '@empty', 'host': 'h0', 'qpn': 1},
     'constraint violation: 1 is not in the valid range 2 to 16777214 (inclusive)'),
    ('Member', {'group': '@g', 'host': 'r2', 'qpn': 17, 'want': 'maybe'},
     'constraint violation: maybe is not one of the allowed values ([active, left, removed])'),
    ('Member', {'group': '@g', 'host': 'r1', 'qpn': 17, 'want': 'active'},
     'constraint violation: Transaction causes multiple rows in "Member" table to have identical '
     'values (… and r1) for index on columns "group" and "host".…'),
)

# Likewise; where castd says something ('log', or the status of a row), and what.
CASTD = (
    ('Node', {'name': 'n 9', 'id': 9, 'role': 'switch'}, 'log, doctor',
     'Node "n 9": the name must be 1 to 63 of A-Z a-z 0-9 . _ -'),
    ('Node', {'name': 'a-bridge-name', 'id': 9, 'role': 'ovs'}, 'log, doctor',
     'Node "a-bridge-name": the name of a node with role ovs must be at most 12 characters'),
    ('Host', {'name': 'h 9', 'address': 'fd00:1::77'}, 'log, doctor',
     'Host "h 9": the name must be 1 to 63 of A-Z a-z 0-9 . _ -'),
    ('Host', {'name': 'n1', 'address': 'fd00:1::77'}, 'log, doctor',
     'Host "n1": there is a node of that name'),
    ('Host', {'name': 'h9', 'address': 'nonsense'}, 'log, doctor',
     'Host "h9": address "nonsense" is no IPv6 address'),
    ('Host', {'name': 'h9', 'address': 'fd00:ffff::1'}, 'log, doctor',
     'Host "h9": address fd00:ffff::1 must not be in fd00:ffff::/32, which is for Proxy Addresses'),
    ('Host', {'name': 'h9', 'address': 'fd00:1::0001'}, 'log, doctor',
     'Host "h9": address "fd00:1::0001" must be written fd00:1::1'),
    ('Host', {'name': 'h9', 'address': 'FD00:1::77'}, 'log, doctor',
     'Host "h9": address "FD00:1::77" must be written fd00:1::77'),
    ('Link', {'a': 'n2', 'a_port': 'x/y', 'b': 'n1', 'b_port': 'y', 'kind': 'packet'},
     'log, doctor', 'Link n2:x/y n1:y: interface "x/y" must be 1 to 15 characters, without \'/\', '
     '\':\' and blanks'),
    ('Link', {'a': 'n 2', 'a_port': 'x', 'b': 'n1', 'b_port': 'y', 'kind': 'packet'},
     'log, doctor', 'Link n 2:x n1:y: name "n 2" must be 1 to 63 of A-Z a-z 0-9 . _ -'),
    ('Link', {'a': 'n2', 'a_port': 'x', 'b': 'nowhere', 'b_port': 'y', 'kind': 'packet'},
     'log, doctor', 'Link n2:x nowhere:y: there is no node or host nowhere'),
    ('Link', {'a': 'n2', 'a_port': 'x', 'b': 'n2', 'b_port': 'y', 'kind': 'packet'},
     'log, doctor', 'Link n2:x n2:y: both ends are n2'),
    ('Link', {'a': 'r8', 'a_port': 'x', 'b': 'r9', 'b_port': 'y', 'kind': 'tap'}, 'log, doctor',
     'Link r8:x r9:y: both ends are hosts'),
    ('Link', {'a': 'r1', 'a_port': 'x', 'b': 'n2', 'b_port': 'x', 'kind': 'tap'}, 'log, doctor',
     'Link r1:x n2:x: r1 has a link already, r1:bad-r1 n1:bad-r1'),
    ('Link', {'a': 'a0', 'a_port': 'x', 'b': 'r1', 'b_port': 'x', 'kind': 'tap'}, 'log, doctor',
     'Link a0:x r1:x: r1 has a link already, r1:bad-r1 n1:bad-r1'),
    ('Link', {'a': 'n1', 'a_port': 'bad-r1', 'b': 'r8', 'b_port': 'x', 'kind': 'tap'},
     'log, doctor', 'Link n1:bad-r1 r8:x: n1:bad-r1 has a link already, r1:bad-r1 n1:bad-r1'),
    ('Link', {'a': 'a9', 'a_port': 'x', 'b': 'idle', 'b_port': 'y', 'kind': 'packet',
              'a_to_b': 'loss=200%'}, 'log, doctor',
     'Link a9:x idle:y: a_to_b: "loss=200%": must be 0% to 100%'),
    ('Link', {'a': 'n1', 'a_port': 'x', 'b': 'o9', 'b_port': 'y', 'kind': 'packet',
              'b_to_a': 'loss=1%'}, 'log, doctor',
     'Link n1:x o9:y: b_to_a: o9 has role ovs, which makes no link bad'),
    ('Link', {'a': 'r8', 'a_port': 'x', 'b': 'o9', 'b_port': 'y', 'kind': 'packet'},
     'log, doctor', 'Link r8:x o9:y: o9 has role ovs, and no hosts'),
    ('Link', {'a': 'k9', 'a_port': 'x', 'b': 'r8', 'b_port': 'y', 'kind': 'packet'},
     'log, doctor', 'Link k9:x r8:y: k9 has role router, and no hosts'),
    ('Node', {'name': 'x', 'id': 99, 'role': 'switch', 'plane': 'a b'}, 'log, doctor',
     'Node "x": plane "a b" must be 1 to 63 of A-Z a-z 0-9 . _ -'),
    ('Node', {'name': 'x', 'id': 99, 'role': 'agent', 'programs': 'fd00::/16'}, 'log, doctor',
     'Node "x": program "fd00::/16" must be an IPv6 prefix in 5f00::/16, no bits beyond its length'),
    ('Path_Rule', {'kind': 'pin', 'from': 'nobody', 'to': 'r1', 'path': 'n1'}, 'log, doctor',
     'Path_Rule pin from "nobody" to "r1": there is no host "nobody"'),
    ('Path_Rule', {'kind': 'pin', 'from': 'r1', 'to': 'r1', 'path': 'n1'}, 'log, doctor',
     'Path_Rule pin from "r1" to "r1": both ends are the same host'),
    ('Path_Rule', {'kind': 'exclude', 'from': 'r2', 'to': 'r1', 'qpn': 17, 'path': 'n1'}, 'log, doctor',
     'Path_Rule exclude from "r2" to "r1": only a pin is for a QPN'),
    ('Path_Rule', {'kind': 'exclude', 'from': 'r2', 'to': 'r1', 'path': 'n1,,n2'}, 'log, doctor',
     'Path_Rule exclude from "r2" to "r1": path "n1,,n2" must be names of nodes, joined by commas'),
    ('Path_Rule', {'kind': 'pin', 'from': 'r2', 'to': 'r1', 'path': 'n1 nonsense'}, 'log, doctor',
     'Path_Rule pin from "r2" to "r1": path "n1 nonsense" must be a neighbour\'s name, a space and '
     'containers joined by commas'),
    ('Group', {'name': 'x', 'mode': 'replicate', 'mtu': 1024, 'timeout': 20, 'epoch': 1,
               'via': 'n1,,'}, 'Group x', 'via "n1,," must be names of nodes, joined by commas'),
    ('Group', {'name': 'x', 'mode': 'replicate', 'mtu': 1024, 'timeout': 20, 'epoch': 1,
               'plane': 'a b'}, 'Group x', 'plane "a b" must be 1 to 63 of A-Z a-z 0-9 . _ -'),
    ('Group', {'name': 'x y', 'mode': 'replicate', 'mtu': 1024, 'timeout': 20}, 'log, doctor',
     'Group "x y": the name must be 1 to 63 of A-Z a-z 0-9 . _ -'),
    ('Group', {'name': 'x', 'mode': 'replicate', 'mtu': 1024, 'timeout': 20, 'liveness': 1},
     'log, doctor', 'Group "x": liveness 1: must be 0 (never) or at least 17180 ms, 4 times the QPs\' '
     'time-out (4.096 us * 2^20)'),
    ('Group', {'name': 'x', 'mode': 'replicate', 'mtu': 1024, 'timeout': 20, 'epoch': 1,
               'proxy': 'nonsense'}, 'Group x', 'proxy "nonsense" is not in fd00:ffff::/32'),
    ('Group', {'name': 'x', 'mode': 'replicate', 'mtu': 1024, 'timeout': 20, 'epoch': 1,
               'auth': 'mt-auth', 'proxy': 'fd00:ffff::99'}, 'Group x',
     'it is to be authenticated, but has no key'),
    ('Group', {'name': 'x', 'mode': 'replicate', 'mtu': 1024, 'timeout': 20, 'epoch': 1,
               'auth': 'mt-auth', 'auth_key': 99, 'proxy': 'fd00:ffff::99'}, 'Group x',
     'key 99 does not exist'),
    ('Source', {'group': '@empty', 'host': 'nobody', 'qpn': 17}, 'Group empty',
     'source nobody: no such host'),
    ('Member', {'group': '@g', 'host': 'nobody', 'qpn': 17, 'want': 'active', 'epoch': 1},
     'Member nobody', 'member nobody: no such host'),
    ('Member', {'group': '@g', 'host': 'r2', 'qpn': 17, 'want': 'active', 'epoch': 1, 'rkey': 1,
                'va': 'nonsense', 'len': 5}, 'Member r2', 'member r2: va "nonsense" is invalid'),
    ('Member', {'group': '@g', 'host': 'r2', 'qpn': 17, 'want': 'active', 'epoch': 1, 'rkey': 1,
                'va': '0xffffffffffffffff', 'len': 5}, 'Member r2',
     'member r2: va "0xffffffffffffffff" is invalid'),
    ('Member', {'group': '@g', 'host': 'r2', 'qpn': 17, 'want': 'active', 'epoch': 99},
     'Member r2', 'must register again in epoch 1'),
)

# A registry whose schema is another, and what programs say that come to it: on standard error, the
# last line of it.
OLD = 'its schema lacks what version … of \'rocecast\' has: '
FIX = ' (ovsdb-client convert REMOTE rocecast.ovsschema, then restart ovsdb-server)'
SCHEMA_COMMANDS = (
    ('castctl --db=unix:DIR/old.sock group list', 2,
     'castctl: registry unix:DIR/old.sock: ' + OLD + 'table Link, column Member.lost, column '
     'Node.no_aggregation and 1 more' + FIX),
    ('castctl --db=unix:DIR/old.sock node add n9 --id 9 --role switch', 2,
     'castctl: registry unix:DIR/old.sock: ' + OLD + 'table Link, column Member.lost, column '
     'Node.no_aggregation and 1 more' + FIX),
    ('castctl --db=unix:DIR/void.sock group list', 2,
     'castctl: registry unix:DIR/void.sock: ' + OLD + 'table Branch, table Connection, table Destination '
     'and 20 more' + FIX),
)
SCHEMA_DAEMONS = (
    ('castd --db=unix:DIR/old.sock --unixctl=DIR/x.ctl',
     '…|castd|ERR|the registry is refused: ' + OLD + 'table Link, column Member.lost, column '
     'Node.no_aggregation and 1 more' + FIX),
    ('swedge --node=n1 --db=unix:DIR/old.sock --unixctl=DIR/x.ctl',
     '…|agent_registry|ERR|node n1: generation 1 is invalid and not applied: the registry: ' + OLD
     + 'column Node.no_aggregation, column Tree_Node.liveness' + FIX),
)

# An agent started for a node of another role; Node.state.
ROLES = (
    ('srcagent --node=idle --unixctl=DIR/x.ctl',
     'generation … refused: the node has role switch, srcagent is for role agent'),
    ('swedge --node=a9 --unixctl=DIR/x.ctl',
     'generation … refused: the node has role agent, swedge is for role switch'),
    ('swedge --node=o9 --unixctl=DIR/x.ctl',
     'generation … refused: the node has role ovs, swedge is for role switch'),
    ('castfwd --node=idle --unixctl=DIR/x.ctl',
     'generation … refused: the node has role switch, castfwd is for role ovs or router'),
    ('castfwd --node=a9 --unixctl=DIR/x.ctl',
     'generation … refused: the node has role agent, castfwd is for role ovs or router'),
    ('castfwd --node=o9 --unixctl=DIR/x.ctl',
     'generation … refused: port k9: there is no such network device'),
    ('castfwd --node=k9 --unixctl=DIR/x.ctl',
     'generation … refused: port o9: there is no such network device'),
)

# Of what castd has told node n1, a column that is changed while castd stands still; Node.state.
AGENT = (
    ('Port', 'mac', 'nonsense', 'Port.mac "nonsense": not a unicast MAC address'),
    ('Port', 'peer_mac', '01:00:00:00:00:01',
     'Port.peer_mac "01:00:00:00:00:01": not a unicast MAC address'),
    ('Port', 'name', 'a/b',
     'Port.name "a/b": must be 1 to 15 characters, without \'/\', \':\' and blanks'),
    ('Location', 'address', 'nonsense', 'Location.address "nonsense": not an IPv6 address'),
    ('Node', 'next_hops', ['map', [[2, 77]]], 'Node.next_hops "2": no port has number 77'),
    ('Sid', 'prefix', 'nonsense',
     'Sid.prefix "nonsense": not an IPv6 prefix, or it has bits beyond its length'),
    ('Port', 'programs', 'fd00::/16',
     'Port.programs "fd00::/16": must be an IPv6 prefix in 5f00::/16, no bits beyond its length'),
    ('Tree_Node', 'outer_program', 'n1', 'Tree_Node.outer_program "n1": not an IPv6 address'),
    ('Tree_Node', 'parent_program', 'n1', 'Tree_Node.parent_program "n1": not an IPv6 address'),
    ('Tree_Node', 'proxy', 'nonsense', 'Tree_Node.proxy "nonsense": not an IPv6 address'),
    ('Tree_Node', 'mtu', 1000, 'Tree_Node.mtu "g": 1000 is no path MTU'),
    ('Tree_Node', 'mode', 'mcast', 'Tree_Node.mcast_group "": not an IPv6 address'),
    ('Tree_Node', 'outer_source', 'sa', 'Tree_Node.outer_source "sa": not an IPv6 address'),
    ('Tree_Node', 'start_psn', 1 << 24, 'Tree_Node.start_psn "16777216": must be 0..16777215'),
    ('Branch', 'address', 'nonsense', 'Branch.address "nonsense": not an IPv6 address'),
    ('Branch', 'va', '-1', 'Branch.va "-1": not an address with Branch.len bytes behind it'),
)

SCHEMA_PROOFS = (lab.registry, lab.agents, lab.files, lab.old_registry)

SECTIONS = (
    Schema('Registry: rows that its schema refuses',
           'With `ovsdb-client transact`. No row is written.', REFUSED),
    Controller('Registry: rows that castd refuses',
               'The schema allows these. What castd has told nodes, and what they run, stays. Rows that '
               'it leaves out it names in its log, `left out: ` and this, and so does `castctl doctor`, '
               '`castd leaves out: ` and this, with status 2.', CASTD),
    Agent('Registry: instructions that an agent refuses',
          'As if castd had written them for node n1, as generation …. The agent goes on with what it '
          'has; its `Node.state` says `generation … refused: ` and', AGENT),
    Role('Agents: a node that is not theirs', 'The node `idle` is a switch, `a9` a source agent, `o9` an '
         'ovs and `k9` a router, but not on this machine. Nothing of what castd has told the node is '
         'applied.', ROLES),
    Commands('Registry: another schema', 'At `old.sock` table `Link` and columns `no_aggregation` and '
             '`liveness` are missing; at `void.sock` is a database that has the name only.',
             SCHEMA_COMMANDS, SCHEMA_PROOFS),
    Started('Registry: another schema, daemons', 'The daemon runs on and changes nothing but, an '
            'agent, its own `Node.state` and `control`. `ovs-appctl rocecast/status` of castd says '
            'the same.', SCHEMA_DAEMONS, SCHEMA_PROOFS),
)
