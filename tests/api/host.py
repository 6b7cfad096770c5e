# SPDX-License-Identifier: Apache-2.0
"""apihost, a program that uses librocecast, driven by its standard input."""
import os
import queue
import re
import subprocess
import threading

from world import BIN, PATIENCE, Failure, check, check_equal


class Host:
    """An apihost.  Answers and events come as lines; whatever else it says is an error."""

    processes = []

    def __init__(self, env, wrapper=()):
        self.process = subprocess.Popen([*wrapper, os.path.join(BIN, 'apihost')],
                                        env=env, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.processes.append(self.process)
        self.answers, self.events = queue.Queue(), queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    @classmethod
    def kill_all(cls):
        """Those that a test has left running."""
        for process in cls.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        cls.processes.clear()

    def read(self):
        for line in self.process.stdout:
            line = line.rstrip('\n')
            (self.events if line.startswith('event ') else self.answers).put(line)
        self.answers.put('end')

    def send(self, line):
        self.process.stdin.write(line + '\n')
        self.process.stdin.flush()

    def answer(self):
        return self.answers.get(timeout=2 * PATIENCE)

    def ask(self, line):
        self.send(line)
        return self.answer()

    def ok(self, line):
        answer = self.ask(line)
        check(answer.startswith('ok'), '%s: %r', line, answer)
        return dict(word.split('=') for word in answer.split() if '=' in word)

    def fails(self, line, error, pattern):
        answer = self.ask(line)
        check(re.match(r'error %d .*%s' % (error, pattern), answer), '%s: %r instead of %d, %s',
              line, answer, error, pattern)

    def next_event(self, wanted):
        try:
            return self.events.get(timeout=PATIENCE)
        except queue.Empty:
            raise Failure('no event %s' % wanted) from None

    def expect(self, *patterns):
        """The next events, in any order; what members wait for only if a pattern asks."""
        left = list(patterns)
        while left:
            event = self.next_event(left)
            if event.startswith('event waiting ') and not any(p.startswith('waiting ') for p in left):
                continue
            found = [p for p in left if re.match('event ' + p + '$', event)]
            check(found, '%r instead of %s', event, left)
            left.remove(found[0])

    def until(self, pattern):
        """Skips events up to one."""
        while not re.match('event ' + pattern + '$', event := self.next_event(pattern)):
            pass
        return event

    def end(self):
        """Closes its input and checks how it ends."""
        check_equal('close', self.ask('close'), 'ok')
        self.ok('unharmed')
        self.process.stdin.close()
        status, errors = self.process.wait(2 * PATIENCE), self.process.stderr.read()
        check_equal('exit status and standard error', (status, errors), (0, ''))
        check_equal('last answer', self.answer(), 'end')
        more = [e for e in self.events.queue if not e.startswith('event waiting ')]
        check_equal('events more', more, [])
