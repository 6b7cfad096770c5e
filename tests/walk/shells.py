# SPDX-License-Identifier: Apache-2.0
"""Shells that are typed into, on this machine and on another.

Commands go to the standard input of one bash, so that what they leave behind (variables, jobs,
folders, a shell in the shell) is there for the next.  The shell says on a pipe of its own when it
has come to the end of them, and which of them failed.
"""
import json
import os
import select
import signal
import socket
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

# In each shell that reads commands, also in one that a command started.
PRELUDE = os.path.join(HERE, 'prelude.bash')


class Shell:
    """bash, started by the command 'start'."""

    def __init__(self, *start):
        self.output = tempfile.TemporaryFile('a+b')
        self.control, control = os.pipe()
        env = {k: v for k, v in os.environ.items()
               if not k.startswith(('MAKE', 'MFLAGS', 'ROCECAST_'))}
        env.update(BASH_ENV=PRELUDE, WALK_CONTROL=str(control))
        self.process = subprocess.Popen(
            [*start, 'bash'], stdin=subprocess.PIPE, stdout=self.output, stderr=subprocess.STDOUT,
            cwd=ROOT, env=env, pass_fds=(control,), start_new_session=True)
        os.close(control)
        self.said = b''

    def run(self, commands, patience):
        """Returns (what was printed, [what went wrong])."""
        begin = os.fstat(self.output.fileno()).st_size
        wrong = self.wait(commands, patience)
        printed = os.pread(self.output.fileno(), 1 << 20, begin)
        return printed.decode(errors='replace'), wrong

    def wait(self, commands, patience):
        end = time.monotonic() + patience
        try:
            self.process.stdin.write(commands.encode() + b'\nwalk_end\n')
            self.process.stdin.flush()
        except BrokenPipeError:
            return ['the shell has ended']
        while b'\nend\n' not in b'\n' + self.said:
            ready = select.select([self.control], [], [], max(0, end - time.monotonic()))[0]
            if not ready:
                self.close()
                return ['still running after %d s' % patience]
            said = os.read(self.control, 65536)
            if not said:
                return ['the shell has ended']
            self.said += said
        said, _, self.said = (b'\n' + self.said).partition(b'\nend\n')
        return [line for line in said.decode(errors='replace').splitlines() if line]

    def close(self):
        """Ends it, and what runs in it."""
        if self.process.poll() is None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()


def serve(port):
    """Shells for Remote: one for each connection, one connection at a time; until one says so."""
    with socket.create_server(('', port)) as server:
        while True:
            connection = server.accept()[0]
            with connection, connection.makefile('rw') as stream:
                shell = Shell()
                for line in stream:
                    request = json.loads(line)
                    if request is None:
                        return
                    stream.write(json.dumps(shell.run(*request)) + '\n')
                    stream.flush()
                shell.close()


class Remote:
    """A shell of another machine's serve()."""

    def __init__(self, address, patience):
        end = time.monotonic() + patience
        while True:
            try:
                self.stream = socket.create_connection(address, patience).makefile('rw')
                break
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)

    def ask(self, request):
        self.stream.write(json.dumps(request) + '\n')
        self.stream.flush()

    def run(self, commands, patience):
        self.ask((commands, patience))
        return json.loads(self.stream.readline())

    def close(self):
        self.stream.close()
