# SPDX-License-Identifier: Apache-2.0
"""What tests make of inject.c: calls of real daemons that fail, as long as the test wants."""
import os
import struct

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), '../..'))
LIBRARY = os.path.join(ROOT, os.environ.get('BUILD', 'build'), 'tests/inject.so')
STATE = struct.Struct('=4Q')    # calls, hit, first, last
EVER = (1 << 64) - 1


class Injection:
    """Rules, as INJECT has them; 'path': a file that may be made.  Nothing fails until fail() is called."""

    def __init__(self, path, *rules):
        self.path, self.rules = path, rules
        with open(path, 'wb') as f:
            f.write(STATE.pack(0, 0, 0, 0) * len(rules))
        self.env = {'LD_PRELOAD': LIBRARY, 'INJECT': ','.join(rules), 'INJECT_STATE': path}

    def state(self, rule):
        with open(self.path, 'rb') as f:
            f.seek(STATE.size * rule)
            return STATE.unpack(f.read(STATE.size))

    def calls(self, rule=0):
        return self.state(rule)[0]

    def hits(self, rule=0):
        return self.state(rule)[1]

    def fail(self, first=1, last=EVER, rule=0):
        """The calls with these numbers fail, counted from 1; last 0: none."""
        with open(self.path, 'r+b') as f:
            f.seek(STATE.size * rule + 16)
            f.write(struct.pack('=2Q', first, last))

    def heal(self, rule=0):
        self.fail(1, 0, rule)
