# SPDX-License-Identifier: Apache-2.0
"""Nonsense written to the registry by hand, past castctl."""
from live import Agent, Controller, Schema

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
    ('Node', {'name': 'n9', 'id': 9, 'role': 'router'},
     'constraint violation: router is not one of the allowed values ([agent, switch])'),
    ('Node', {'name': 'n9', 'id': 256, 'role': 'switch'},
     'constraint violation: Transaction causes multiple rows in "Node" table to have identical '
     'values (256) for index on column "id".…'),
    ('Host', {'name': 'h9', 'address': 'fd00:1::1'},
     'constraint violation: Transaction causes multiple rows in "Host" table to have identical '
     'values ("fd00:1::1") for index on column "address".…'),
    ('Link', {'a': 'r8', 'a_port': 'x', 'b': 'n2', 'b_port': 'y', 'kind': 'wifi'},
     'constraint violation: wifi is not one of the allowed values ([packet, tap])'),
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
    ('Node', {'name': 'n 9', 'id': 9, 'role': 'switch'}, 'log',
     'Node.name "n 9": must be 1 to 63 of A-Z a-z 0-9 . _ -'),
    ('Host', {'name': 'h9', 'address': 'nonsense'}, 'log',
     'host "h9" has no valid name and address (nonsense): left out'),
    ('Host', {'name': 'h9', 'address': 'fd00:ffff::1'}, 'log',
     'host "h9" has no valid name and address (fd00:ffff::1): left out'),
    ('Link', {'a': 'n2', 'a_port': 'x/y', 'b': 'n1', 'b_port': 'y', 'kind': 'packet'}, 'log',
     'link n2:x/y n1:y has an invalid end: left out'),
    ('Group', {'name': 'x y', 'mode': 'replicate', 'mtu': 1024, 'timeout': 20}, 'log',
     'Group.name "x y": must be 1 to 63 of A-Z a-z 0-9 . _ -'),
    ('Group', {'name': 'x', 'mode': 'mcast', 'mtu': 1024, 'timeout': 20}, 'Group x',
     'mode mcast is not supported by this version'),
    ('Group', {'name': 'x', 'mode': 'replicate', 'mtu': 1024, 'timeout': 20, 'epoch': 1,
               'proxy': 'nonsense'}, 'Group x', 'proxy "nonsense" is not in fd00:ffff::/32'),
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

# Of what castd has told node n1, a column that is changed while castd stands still; Node.state.
AGENT = (
    ('Port', 'mac', 'nonsense', 'Port.mac "nonsense": not a unicast MAC address'),
    ('Port', 'name', 'a/b',
     'Port.name "a/b": must be 1 to 15 characters, without \'/\', \':\' and blanks'),
    ('Route', 'prefix', 'fd00::1/64',
     'Route.prefix "fd00::1/64": not an IPv6 prefix, or it has bits beyond its length'),
    ('Route', 'port', 77, 'Route.port "…": no port has number 77'),
    ('Sid', 'prefix', 'nonsense',
     'Sid.prefix "nonsense": not an IPv6 prefix, or it has bits beyond its length'),
    ('Tree_Node', 'proxy', 'nonsense', 'Tree_Node.proxy "nonsense": not an IPv6 address'),
    ('Tree_Node', 'mtu', 1000, 'Tree_Node.mtu "g": 1000 is no path MTU'),
    ('Tree_Node', 'start_psn', 1 << 24, 'Tree_Node.start_psn "16777216": must be 0..16777215'),
    ('Branch', 'address', 'nonsense', 'Branch.address "nonsense": not an IPv6 address'),
    ('Branch', 'va', '-1', 'Branch.va "-1": not an address with Branch.len bytes behind it'),
)

SECTIONS = (
    Schema('Registry: rows that its schema refuses',
           'With `ovsdb-client transact`. No row is written.', REFUSED),
    Controller('Registry: rows that castd refuses',
               'The schema allows these. What castd has told nodes, and what they run, stays.', CASTD),
    Agent('Registry: instructions that an agent refuses',
          'As if castd had written them for node n1, as generation …. The agent goes on with what it '
          'has; its `Node.state` says `generation … refused: ` and', AGENT),
)
