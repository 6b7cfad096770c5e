# SPDX-License-Identifier: Apache-2.0
"""What the tables must have: every command and every option that the programs' own help names."""
import re
import shlex

import lab

DAEMONS = ('castd', 'swedge', 'castfwd')


def words_of(sections):
    """Of each row that is a command line: its words without variables, options without values."""
    found = []
    for section in sections:
        for line in section.inputs():
            words = shlex.split(line) if isinstance(line, str) else []
            found.append([w.split('=')[0] if w.startswith('--') else w for w in words
                          if not re.match('[A-Z_]+=', w)])
    return found


def has(rows, command, option=None):
    """Does a row begin with these words, options between them aside, and have the option?"""
    for words in rows:
        plain = [w for w in words if not w.startswith('-')]
        ahead = [w for w in plain if w not in ('1', '0', 'nonsense')]
        if ahead[:len(command)] == command and (option is None or option in words):
            return True
    return False


def options_in(text):
    """Long options and, where they have none, short ones."""
    return set(re.findall(r'(?<![\w-])--[a-z][a-z-]*', text))


def castctl():
    help_text = lab.output('castctl', '--help')
    commands, options = help_text.split('\noptions:\n')
    for line in commands.split('\n'):
        if re.match(r'  [a-z]', line):
            command = ['castctl'] + re.match(r'  ([a-z ]+[a-z])(?= |$)', line)[1].split()
            yield command, None
            for option in options_in(line):
                yield command, option
    for option in options_in(options.split('Numbers are')[0]):
        yield ['castctl'], option


def castlab():
    for line in lab.output('castlab', 'help').split('\n'):
        if re.match(r'  [a-z]', line):
            command = ['castlab', line.split()[0]]
            yield command, None
            for option in options_in(line) | set(re.findall(r'\[(-[a-z]) ', line)):
                yield command, option


def of_help(*program):
    for option in options_in(lab.output(*program, '--help')):
        yield [program[0]], option


def castbench_report():
    """As castbench runs it; options are of all its commands but those that are said to be of one."""
    usage, options = lab.output('castbench-report', '--help').split('\noptions:\n')
    commands = re.findall(r'castbench-report ([a-z]+) ', usage)
    for command in commands:
        yield ['castbench', command], None
    for line in options.split('\n'):
        of = re.search(r'  (%s): ' % '|'.join(commands), line)
        for option in options_in(line):
            for command in [of[1]] if of else commands:
                yield ['castbench', command], option


def castbench_with(verb):
    """Options of one with a help of its own."""
    for option in options_in(lab.output('castbench', verb, '--help')):
        yield ['castbench', verb], option


def missing(sections):
    """Sentences."""
    rows = words_of(sections)
    wanted = [*castctl(), *castlab(), *of_help('castbench'), *of_help('castprobe'), *of_help('castscale'), *castbench_report(),
              *castbench_with('perftest'), *castbench_with('serve'),
              *of_help('testbed/vm/run')]
    for daemon in DAEMONS:
        wanted += of_help(daemon)
    for command, option in wanted:
        if not has(rows, command, option):
            yield ' '.join(command + [option or ''])
    control = {line.split()[1] for s in sections for line in s.inputs()
               if isinstance(line, str) and ' rocecast/' in line}
    for daemon in ('castd', 'n1'):
        answer = lab.control(daemon, 'list-commands')[0]
        for command in re.findall(r'rocecast/\S+', answer):
            if command not in control:
                yield '%s of %s' % (command, daemon)
