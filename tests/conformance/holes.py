# SPDX-License-Identifier: Apache-2.0
"""The table of holes in docs/draft-notes.md: is what its commands name there, and did it pass?

The last column has commands, which begin with one of these words; 'later' has none.
"""
import glob
import os
import re

NOTES = 'docs/draft-notes.md'
HEADER = ['#', 'Hole in the draft', 'An unmodified endpoint', 'Resolution', 'Where', 'Shown by']
ROW = re.compile(r'^\| (H\d+) \|(.*)\|$', re.M)


def numbers(text):
    return {m[1] for m in ROW.finditer(text)}


def read_all(root, pattern):
    """{path below the root: text}"""
    texts = {}
    for path in sorted(glob.glob(os.path.join(root, pattern))):
        if os.path.isfile(path):
            with open(path, encoding='utf-8', errors='replace') as f:
                texts[os.path.relpath(path, root)] = f.read()
    return texts


def find(root, pattern, *what):
    """The first file in which all of 'what' match, or None."""
    for path, text in read_all(root, pattern).items():
        if all(re.search(w, text, re.M) for w in what):
            return path
    return None


def check_command(root, words, passed):
    """What is wrong with a command, or None."""
    program, names = words[0], words[1:]
    if program == 'unit' and len(names) == 2:
        suite, test = map(re.escape, names)
        path = find(root, 'tests/unit/*.c', r'suite_create\("%s"\)' % suite,
                    r'^START_TEST\(%s\)' % test)
        if not path:
            return 'there is no test %s in a suite %s' % (names[1], names[0])
        return None if passed.get('%s:%s' % (path, names[1])) is not False else 'failed'
    if program == 'build/tests/castsim' and names:
        defect = re.escape(names[1] if names[0] == '--defect' and names[1:] else '')
        known = names == ['--compare'] or find(root, 'lib/defect.h', r'DEFECT_ENTRY\(%s,' % defect)
        return None if known else 'there is no such defect or option'
    m = re.fullmatch(r'tests/(ctl|api|net|e2e)/run', program)
    if m and len(names) == 1:
        pattern = {'ctl': r'^def %s\(', 'api': r'^def %s\(', 'net': r"^    \('%s',"}.get(m[1], r'\b%s\b')
        files = 'tests/%s/%s' % (m[1], 'run' if m[1] in ('net', 'e2e') else '*')
        return None if find(root, files, pattern % re.escape(names[0])) else 'there is no ' + names[0]
    return 'is not a command that this table may have'


def check(root, text, passed):
    """Yields what is wrong with the table."""
    header = '| %s |' % ' | '.join(HEADER)
    if header not in text:
        yield '%s: no table with the columns %s' % (NOTES, ', '.join(HEADER))
    for m in ROW.finditer(text):
        row = [cell.strip() for cell in m[2].split('|')]
        commands = re.findall(r'`([^`]*)`', row[-1])
        if len(row) != len(HEADER) - 1:
            yield '%s: %s: %d cells, not %d' % (NOTES, m[1], len(row) + 1, len(HEADER))
        elif not commands and row[-1] != 'later':
            yield '%s: %s: no command shows it' % (NOTES, m[1])
        elif not all(row[:-1]):
            yield '%s: %s: an empty cell' % (NOTES, m[1])
        else:
            for command in commands:
                wrong = check_command(root, command.split(), passed)
                if wrong:
                    yield '%s: %s: %s: %s' % (NOTES, m[1], command, wrong)
