# SPDX-License-Identifier: Apache-2.0
"""The blocks of a Markdown document, and what is to be done with each.

A fenced block says by the word behind its fence what it is:

  sh            commands, one shell for all of a document's blocks
  console       commands behind '$ ', each with what it prints; '...' stands for anything, on a
                line of its own for any number of lines
  c, yaml       a file; with a name behind the word it is there for the commands that follow
  text          a drawing or a form to fill in: nothing that can be run, nothing that was printed

Comments, which a reader of the rendered page does not see, say the rest of a block or of what
follows ('test:' is their first word):

  in MACHINES              where blocks run from here to the end of the document or the next such
                           comment: 'here' (the default: this machine, with a network of its own),
                           'A' or 'B' (virtual machines with soft-RoCE), 'A and B' (both)
  numbers vary             of the next block: in what it prints a number stands for any number, also
                           one that is written with k, M or G since it is round
  not run: REASON          the next block is not
  first: REASON            and commands in the following lines: run before the next block, in the
                           place of something that the walk's machines do not have

Of a document that a program writes, the comments are elsewhere: parse() gets them.
"""
import re
import shlex

MACHINES = ('here', 'A', 'B')
RUN = ('sh', 'console')
FILES = ('c', 'yaml')
SHOWN = ('text',)


class Wrong(Exception):
    """What is wrong in a document, with its line."""

    def __init__(self, line, message):
        super().__init__(message)
        self.line = line


class Block:
    """A fenced block: 'line' is that of its first line of text."""

    def __init__(self, doc, line, info):
        self.doc = doc
        self.line = line
        words = info.split()
        self.kind = words[0] if words else ''
        self.file = words[1] if len(words) > 1 else None
        self.lines = []
        self.machines = ('here',)
        self.first = ''         # commands.
        self.not_run = ''       # why.
        self.numbers_vary = False

    @property
    def text(self):
        return ''.join(line + '\n' for line in self.lines)

    @property
    def name(self):
        """For reports: where it is, and its first command or line."""
        title = next((line.strip() for line in self.lines if line.strip(' $')), '(empty)')
        return '%s:%d: %s' % (self.doc, self.line, re.sub(r'\s+(#.*|\\)$', '', title)[:60])

    def steps(self):
        """[(commands, what they print or None)]"""
        if self.kind == 'sh':
            return [(self.text, None)]
        steps = []
        for line in self.lines:
            if line.startswith('$ '):
                steps.append((line[2:] + '\n', []))
            elif not steps:
                raise Wrong(self.line, 'output before the first "$ "')
            elif steps[-1][0].endswith('\\\n') and not steps[-1][1]:
                steps[-1] = (steps[-1][0] + line + '\n', [])
            else:
                steps[-1][1].append(line)
        return steps


def apply(comment, line, block, state):
    """Takes a comment's words to the block that follows (a Block), or to all (state)."""
    head, _, commands = comment.partition('\n')
    word, _, reason = (part.strip() for part in head.partition(':'))
    if word.startswith('in '):
        state['machines'] = tuple(word[3:].split(' and '))
        if not set(state['machines']) <= set(MACHINES):
            raise Wrong(line, 'no such machine: %s' % word[3:])
    elif word == 'numbers vary':
        block.numbers_vary = True
    elif word == 'not run' and reason:
        block.not_run = reason
    elif word == 'first' and reason and commands.strip():
        block.first = commands
    else:
        raise Wrong(line, 'neither in, numbers vary, not run nor first: %s' % head)


def parse(doc, text, elsewhere=None):
    """Returns (blocks, prose, [Wrong]); prose is [(line, text)] of what is not in a block.
    'elsewhere': comments by the first line of their block, and for all blocks of no kind by ''."""
    blocks, prose, wrong = [], [], []
    elsewhere = dict(elsewhere or {})
    state = {'machines': ('here',)}
    pending = []     # comments for the next block.
    block = fence = comment = None
    previous = ''
    for n, line in enumerate(text.splitlines(), 1):
        if comment is not None:
            comment[1] += '\n' + line
            if '-->' in line:
                comment[1] = comment[1].partition('-->')[0]
                pending.append(comment)
                comment = None
        elif block:
            if line.strip() == fence:
                first = block.lines[0] if block.kind and block.lines else ''
                for words in elsewhere.pop(first, []) if first else elsewhere.get('', []):
                    apply(words, block.line, block, state)
                block.machines = state['machines']
                blocks.append(block)
                block = None
            else:
                block.lines.append(line)
        elif line.startswith('```'):
            fence = '```'
            block = Block(doc, n + 1, line[3:].strip())
            for at, words in pending:
                try:
                    apply(words, at, block, state)
                except Wrong as e:
                    wrong.append(e)
            pending = []
        elif line.startswith('<!-- test:'):
            comment = [n, line[10:].strip()]
            if '-->' in comment[1]:
                comment[1] = comment[1].partition('-->')[0].strip()
                pending.append(comment)
                comment = None
        else:
            if line.startswith('    ') and not previous.strip():
                wrong.append(Wrong(n, 'an indented block: fence it, and say what it is'))
            prose.append((n, line))
        previous = line
    for at, words in pending:
        wrong.append(Wrong(at, 'no block follows "test: %s"' % words.splitlines()[0]))
    wrong += [Wrong(n, 'no such block: %s' % first) for first in elsewhere if first]
    if block or comment:
        wrong.append(Wrong(n, 'a block or comment without an end'))
    for b in blocks:
        if b.kind not in RUN + FILES + SHOWN and not b.not_run:
            wrong.append(Wrong(b.line - 1, 'a block of kind "%s": none of %s'
                               % (b.kind, ', '.join(RUN + FILES + SHOWN))))
        elif b.kind in SHOWN and any(line.startswith('$ ') for line in b.lines):
            wrong.append(Wrong(b.line, 'a command in a block of kind "%s"' % b.kind))
    return blocks, prose, wrong


NUMBER = re.compile(r'(?<![\w.:%/-])(0x[0-9a-f]+|\d+(?:\.\d+)?)(?![\w:/-]|\.\w)')


def line_pattern(line, numbers_vary):
    pattern = ''
    for i, part in enumerate(line.split('...')):
        pattern += '.*?' if i else ''
        if not numbers_vary:
            pattern += re.escape(part)
            continue
        at = 0
        for m in NUMBER.finditer(part):
            pattern += re.escape(part[at:m.start()])
            pattern += '0x[0-9a-f]+' if m[0].startswith('0x') else r'\d+(?:\.\d+)?[kMG]?'
            at = m.end()
        pattern += re.escape(part[at:])
    return re.sub(r'(\\ )+', ' +', pattern) if numbers_vary else pattern


def differs(shown, printed, numbers_vary):
    """Where what was printed is not what is shown: a sentence, or None."""
    printed = [line.rstrip() for line in printed.splitlines()]
    shown = [line.rstrip() for line in shown]
    # reached[j]: the shown lines so far may be the first j printed ones.
    reached = {0}
    for i, line in enumerate(shown):
        if line.strip() == '...':
            reached = set(range(min(reached), len(printed) + 1))
            continue
        pattern = re.compile(line_pattern(line, numbers_vary))
        here = {j + 1 for j in reached if j < len(printed) and pattern.fullmatch(printed[j])}
        if not here:
            at = max(reached) if i == 0 or shown[i - 1].strip() != '...' else min(reached)
            return 'line %d, shown as\n      %s\n    but printed\n%s' % (
                i + 1, line,
                '\n'.join('      ' + p for p in printed[at:at + 40]) or '      nothing')
        reached = here
    if len(printed) not in reached:
        return 'more was printed than is shown:\n%s' % '\n'.join(
            '      ' + p for p in printed[max(reached):max(reached) + 40])
    return None


def spans(prose):
    """[(line, text)] of code in running text: `...`, which may go over lines."""
    text = '\n'.join(line for _, line in prose)
    return [(prose[text.count('\n', 0, m.start())][0], re.sub(r'\s+', ' ', m[1]))
            for m in re.finditer(r'(?<!`)`([^`]+)`(?!`)', text)]


def words(command):
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()
