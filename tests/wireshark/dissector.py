# SPDX-License-Identifier: Apache-2.0
"""tshark with wireshark/rocecast.lua, for tests."""
import os
import shutil
import subprocess
import tempfile

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../wireshark/rocecast.lua')
PATIENCE = 120          # seconds.
NOISE = 'Running as user "root"'


class Tshark:
    """A folder, and a tshark that has no other plugins and settings than the script."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix='wireshark.', dir='/tmp')
        self.env = dict(os.environ, HOME=self.dir, WIRESHARK_CONFIG_DIR=self.dir)
        self.env.pop('XDG_CONFIG_HOME', None)

    def close(self):
        shutil.rmtree(self.dir)

    def tshark(self, *argv, script=SCRIPT):
        """Returns what it prints; anything on standard error is an error."""
        p = subprocess.run(['tshark', *argv, '-X', 'lua_script:' + script], text=True, stdin=subprocess.DEVNULL,
                           capture_output=True, timeout=PATIENCE, check=False, env=self.env)
        said = [line for line in p.stderr.splitlines() if not line.startswith(NOISE)]
        if p.returncode or said:
            raise AssertionError('tshark: exit status %d: %s' % (p.returncode, p.stderr))
        return p.stdout

    def fields(self, path, *names, options=(), script=SCRIPT):
        """For each frame a list of lists: the values of each field.  An error of Lua is none of them."""
        words = [word for name in (*names, '_ws.lua.error') for word in ('-e', name)]
        out = self.tshark('-r', path, *options, '-T', 'fields', '-E', 'separator=/t', '-E', 'aggregator=|', *words,
                          script=script)
        rows = [[cell.split('|') if cell else [] for cell in line.split('\t')] for line in out.splitlines()]
        for number, row in enumerate(rows, 1):
            errors = row.pop()
            if errors:
                raise AssertionError('error of Lua in frame %d: %s' % (number, errors))
        return rows
