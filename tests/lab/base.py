# SPDX-License-Identifier: Apache-2.0
"""A small topology file, for castlab's tests and for its bad input."""

BASE = '''name: star
parameters: {N: 2}
topology:
  nodes:
    h0: {kind: host, address: "fd00:1::100"}
    sa: {kind: srcagent, id: 0x0200}
    n1: {kind: swedge, id: 0x0100}
    "r{1..N}": {kind: host, address: "fd00:1::{i}"}
  links:
    - endpoints: [h0, sa]
    - endpoints: [sa, n1]
    - endpoints: ["r{1..N}", n1]
  mtu: {host: 4200, fabric: 9000}
'''
