# SPDX-License-Identifier: Apache-2.0
"""The tables of holes in docs/draft-notes.md: is what their commands name there, and did it pass?

The last column has commands, which begin with one of these words; 'later' has none.
"""
import glob
import os
import re

NOTES = 'docs/draft-notes.md'
HEADER = ['#', 'Hole in the draft', 'An unmodified endpoint', 'Resolution', 'Where', 'Shown by']
ROW = re.compile(r'^\| ([HXY]\d+) \|(.*)\|$', re.M)


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


def result(passed, tests):
    """What is wrong with the results of these tests, or None."""
    if any(passed.get(t) is False for t in tests):
        return 'failed'
    return None if tests and all(t in passed for t in tests) else 'no result'


def log_result(text, pattern):
    """Likewise, of the lines 'ok ...' and 'FAIL ...' that a tier prints about it."""
    found = re.findall(r'^(ok|FAIL) +%s' % pattern, text, re.M)
    return 'no result' if not found else 'failed' if 'FAIL' in found else None


def check_command(root, words, found):
    """(What is wrong with a command, or None; the tier that it is in).  Of a tier without results nothing
    is wrong with a command that exists."""
    program, names = words[0], words[1:]
    if program == 'unit' and len(names) == 2:
        suite, test = map(re.escape, names)
        path = find(root, 'tests/unit/*.c', r'suite_create\("%s"\)' % suite,
                    r'^START_TEST\(%s\)' % test)
        if not path:
            return 'there is no test %s in a suite %s' % (names[1], names[0]), None
        return result(found.passed, ['%s:%s' % (path, names[1])]), 'unit'
    if program == 'build/tests/castsim' and names:
        defect = re.escape(names[1] if names[0] == '--defect' and names[1:] else '')
        if names == ['--compare']:
            whole = re.findall(r'^\d+ passed, (\d+) failed$', found.tiers.get('sim-compare', ''), re.M)
            return 'no result' if not whole else 'failed' if int(whole[-1]) else None, 'sim-compare'
        if not find(root, 'lib/defect.h', r'DEFECT_ENTRY\(%s,' % defect):
            return 'there is no such defect or option', None
        return log_result(found.tiers.get('sim-defects', ''), defect + ':'), 'sim-defects'
    m = re.fullmatch(r'tests/(ctl|api|net|e2e)/run', program)
    if m and len(names) == 1:
        pattern = {'ctl': r'^def %s\(', 'api': r'^def %s\(', 'net': r"^    \('%s',"}.get(m[1], r'\b%s\b')
        files = 'tests/%s/%s' % (m[1], 'run' if m[1] in ('net', 'e2e') else '*')
        path = find(root, files, pattern % re.escape(names[0]))
        if not path:
            return 'there is no ' + names[0], None
        if m[1] == 'net':
            return log_result(found.tiers.get('net', ''), re.escape(names[0]) + ' '), 'net'
        if m[1] == 'e2e':
            suite = 'tests/e2e/%s-suite.py:' % names[0]
            return result(found.passed, [t for t in found.passed if t.startswith(suite)]), 'e2e'
        return result(found.passed, ['%s:%s' % (path, names[0])]), m[1]
    return 'is not a command that this table may have', None


def check(root, text, found):
    """What is wrong with the table, and the tiers that its commands are in."""
    errors, tiers = list(check_rows(text)), set()
    for m in ROW.finditer(text):
        for command in re.findall(r'`([^`]*)`', m[2].split('|')[-1]):
            wrong, tier = check_command(root, command.split(), found)
            tiers |= {tier} if tier else set()
            if wrong and (not tier or tier in found.tiers):
                errors.append('%s: %s: %s: %s' % (NOTES, m[1], command, wrong))
    return errors, tiers


def check_rows(text):
    """Yields what is wrong with the form of the table."""
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
