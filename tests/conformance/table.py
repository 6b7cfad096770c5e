# SPDX-License-Identifier: Apache-2.0
"""Joins docs/conformance.md, the annotations of tests and the results of a test run.

A row of the document is a requirement.  A test says which ones it proves by 'Proves ID, ID.'

    C        in a comment directly above START_TEST(name); in castsim, above a function
    Python   in comment lines directly above the def of the case, or in its docstring

The commands in the table of docs/draft-notes.md are looked at too (holes.py).

Results are what tests/summary leaves for each tier (tests/results.py): TIER.tap, which libcheck writes, and
TIER.log, in which lines 'ok ... [FILE:FUNCTION]' and 'FAIL ... [FILE:FUNCTION]' count (tests/proof.py).
Those of another tree do not count.  Tests of tests/NAME/ run in the tiers NAME, NAME-san and NAME-long.  A row is
proven if each test that names it has passed.
"""
import ast
import collections
import glob
import os
import re
import sys

import holes
from holes import NOTES

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))

import results                                          # noqa: E402 pylint: disable=wrong-import-position

DOC = 'docs/conformance.md'
HEADER = ['Id', 'Requirement', 'Where', 'Deviation']
# Stand where a row is implemented if it is not: this version leaves it to others, or a later one will
# have it.
NOT_MET = 'not met'
OPEN = 'open'
HOLE = r'\b[HXY]\d+\b'

ID = re.compile(r'MT-\d+(\.\d+)*-(R\d+-\d+|Ref\d|S\d\d|\d+)|(?:FC|AB)-\d+')
ID_LIKE = re.compile(r'(?:MT|FC|AB)-\d(?:[\w.-]*\w)?')
PROVES = re.compile(r'Proves\s+(?=(?:MT|FC|AB)-\d)')
SENTENCE = re.compile(r'.*?(?=\.\s|\.$|$)', re.S)
# Decoration of lines in comments.
DECORATION = re.compile(r'\n[ \t]*(?:\*|#)?[ \t]*')
C_COMMENT = re.compile(r'/\*.*?\*/', re.S)
C_TEST = re.compile(r'(?:\s|/\*.*?\*/)*START_TEST\((\w+)\)', re.S)
C_FUNCTION = re.compile(r'\nstatic \w+\n(\w+)\(')
TAP = re.compile(r'^(ok|not ok) \d+ - [^:]*:([^:]+):(\w+): ')
RESULT = re.compile(r'^(ok|FAIL) .*?\[([\w./-]+:[\w.<>]+)\](?::|$)')

Row = collections.namedtuple('Row', 'id line requirement where deviation')


def read(*path):
    with open(os.path.join(*path), encoding='utf-8', errors='replace') as f:
        return f.read()


#
# The document.
#

def cells(line):
    return [cell.strip() for cell in line.strip().strip('|').split('|')]


def parse_rows(text):
    """The rows of all tables that have HEADER; and what is wrong with their form."""
    rows, errors, in_table = [], [], False
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith('|'):
            in_table = False
        elif cells(line) == HEADER:
            in_table = True
        elif in_table and set(line) - set('|-: '):
            row = cells(line)
            if len(row) != len(HEADER):
                errors.append('%s:%d: %d cells, not %d' % (DOC, number, len(row), len(HEADER)))
            elif not ID.fullmatch(row[0]):
                errors.append('%s:%d: %s is no id' % (DOC, number, row[0]))
            else:
                rows.append(Row(row[0], number, *row[1:]))
    for name, count in collections.Counter(row.id for row in rows).items():
        if count > 1:
            errors.append('%s: %s is there %d times' % (DOC, name, count))
    if not rows:
        errors.append('%s: no table with the columns %s' % (DOC, ', '.join(HEADER)))
    return rows, errors


def defines(path, text, name):
    """Is there a function, table or macro of this name in the file?"""
    if path.endswith(('.c', '.h')):
        patterns = (r'^%s\(', r'^(?:static |const |struct |enum |extern )[^;(]*\b%s\b(?:\[|;| =| \{|\()',
                    r'^#define %s\b')
    else:
        patterns = (r'^ *(?:def|class) %s\b', r'^%s\(\)')
    return any(re.search(p % re.escape(name), text, re.M) for p in patterns)


def check_where(root, row):
    """What is wrong with the column that says where a row is implemented."""
    places = re.findall(r'`([^`]*)`', row.where)
    if not places:
        yield 'does not say where it is implemented'
    for place in places:
        path, _, name = place.partition(':')
        if not os.path.isfile(os.path.join(root, path)):
            yield '%s: there is no such file' % path
        elif name and not defines(path, read(root, path), name):
            yield '%s: there is no %s in it' % (path, name)


def check_row(root, row, known):
    if not row.requirement:
        yield 'requires nothing'
    if row.where not in (NOT_MET, OPEN):
        yield from check_where(root, row)
    elif row.deviation in ('', '-'):
        yield 'does not say why it is ' + row.where
    numbers = re.findall(HOLE, ' '.join(row[2:]))
    for number in numbers:
        if number not in known:
            yield '%s is not in %s' % (number, NOTES)
    if row.where not in (NOT_MET, OPEN) and row.deviation not in ('', '-') and not re.search(HOLE, row.deviation):
        yield 'deviates without the number of a hole'


def parse_document(root):
    """Rows and errors."""
    rows, errors = parse_rows(read(root, DOC))
    known = holes.numbers(read(root, NOTES))
    for row in rows:
        errors += ['%s:%d: %s: %s' % (DOC, row.line, row.id, why)
                   for why in check_row(root, row, known)]
    return rows, errors


#
# Annotations.
#

def proven_ids(text):
    """The ids that a comment or docstring names as proven."""
    text = DECORATION.sub(' ', text)
    return [name for m in PROVES.finditer(text)
            for name in ID_LIKE.findall(SENTENCE.match(text, m.end())[0])]


def line_of(text, offset):
    return text.count('\n', 0, offset) + 1


def annotations_c(text, pattern):
    """Yields (line, name of the test or None, ids).  'pattern' is what a test begins with."""
    for m in C_COMMENT.finditer(text):
        ids = proven_ids(m[0][2:-2])
        if ids:
            test = pattern.match(text, m.end())
            yield line_of(text, m.start()), test and test[1], ids


def functions(tree):
    """Yields (qualified name, node) of all functions."""
    def below(node, prefix):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef):
                yield prefix + child.name, child
            named = isinstance(child, (ast.FunctionDef, ast.ClassDef))
            yield from below(child, prefix + child.name + '.' if named else prefix)
    return below(tree, '')


def annotations_python(text):
    lines = text.splitlines()
    claimed = set()
    for name, node in functions(ast.parse(text)):
        doc = ast.get_docstring(node, clean=False) or ''
        first = min([node.lineno] + [d.lineno for d in node.decorator_list])
        start = first
        while start > 1 and lines[start - 2].lstrip().startswith('#'):
            start -= 1
        above = '\n'.join(line.lstrip().lstrip('#') for line in lines[start - 1:first - 1])
        ids = proven_ids(above) + proven_ids(doc)
        claimed.update(range(start, node.body[0].end_lineno + 1))
        if ids:
            yield node.lineno, name, ids
    for number, line in enumerate(lines, 1):
        if number not in claimed and PROVES.search(line):
            yield number, None, proven_ids(line)


def is_python(path):
    if path.endswith('.py'):
        return True
    if '.' in os.path.basename(path):
        return False
    with open(path, 'rb') as f:
        return re.match(rb'#!.*python', f.readline()) is not None


def find_annotations(root):
    """{id: [test]} with tests as 'FILE:FUNCTION', and errors.  This folder is about annotations and
    has none."""
    proofs, errors = collections.defaultdict(list), []
    for path in sorted(glob.glob(os.path.join(root, 'tests/**/*'), recursive=True)):
        name = os.path.relpath(path, root)
        if not os.path.isfile(path) or name.startswith('tests/conformance/'):
            continue
        if path.endswith('.c'):
            sim = name.startswith('tests/sim/')
            found = annotations_c(read(path), C_FUNCTION if sim else C_TEST)
        elif is_python(path):
            found = annotations_python(read(path))
        else:
            continue
        for line, test, ids in found:
            if not test:
                errors.append('%s:%d: proves %s, but is not at a test' % (name, line, ', '.join(ids)))
                continue
            for number in ids:
                proofs[number].append('%s:%s' % (name, test))
    return proofs, errors


#
# Results.
#

def test_files(root):
    """{(libcheck test case, test): file}, and errors: libcheck does not say which file it is."""
    files, errors = {}, []
    for path in sorted(glob.glob(os.path.join(root, 'tests/**/*.c'), recursive=True)):
        name, text = os.path.relpath(path, root), read(path)
        for tcase in re.findall(r'tcase_create\("([^"]*)"\)', text):
            for test in re.findall(r'^START_TEST\((\w+)\)', text, re.M):
                if files.setdefault((tcase, test), name) != name:
                    errors.append('%s and %s both have %s in a test case %s'
                                  % (files[tcase, test], name, test, tcase))
    return files, errors


def tier_of(test):
    return test.split('/')[1]


def family(tier):
    """The tier that this one is a variant of."""
    return tier.removesuffix('-san').removesuffix('-long')


class Results:
    """passed: {test: did it pass wherever and as often as it ran}; tiers: {tier: what it printed} of those
    with results of this tree; stale: tiers that have others; errors."""

    def __init__(self, root, folder):
        files, self.errors = test_files(root)
        self.passed, self.tiers = {}, {}
        noted, stale = results.fresh(root, folder)
        for tier in noted:
            log = read(folder, tier + '.log')
            self.tiers[family(tier)] = self.tiers.get(family(tier), '') + log
            for line in log.splitlines():
                m = RESULT.match(line)
                if m:
                    self.note(m[2], m[1] == 'ok')
            tap = os.path.join(folder, tier + '.tap')
            for line in read(tap).splitlines() if os.path.exists(tap) else []:
                m = TAP.match(line)
                if m and (m[2], m[3]) in files:
                    self.note('%s:%s' % (files[m[2], m[3]], m[3]), m[1] == 'ok')
        self.stale = {family(tier) for tier in stale} - set(self.tiers)

    def note(self, test, good):
        self.passed[test] = self.passed.get(test, True) and good


def absence(tier, stale):
    """Why a tier has no results."""
    return ('tier %s has no results of this tree%s' % (
        tier, ', but of another' if tier in stale else ''))


#
# All together.
#

def judge(row, tests, found):
    """('ok', 'FAIL', 'not run', 'not met' or 'open', what to say about it)."""
    failed = [t for t in tests if found.passed.get(t) is False]
    missing = [t for t in tests if t not in found.passed]
    if row.where in (NOT_MET, OPEN):
        if tests:
            return 'FAIL', 'is %s, but proven by %s' % (row.where, ', '.join(tests))
        return row.where, row.deviation
    if failed:
        return 'FAIL', 'failed: ' + ', '.join(failed)
    if not tests:
        return 'FAIL', 'no test'
    if any(tier_of(t) in found.tiers for t in missing):
        return 'FAIL', 'no result: ' + ', '.join(t for t in missing if tier_of(t) in found.tiers)
    if missing:
        return 'not run', 'no result: ' + ', '.join(missing)
    return 'ok', ', '.join(tests)


def join(root, folder):
    """Verdicts [(row, verdict, text)] and errors."""
    rows, errors = parse_document(root)
    proofs, more = find_annotations(root)
    found = Results(root, folder)
    errors += more + found.errors
    problems, needed = holes.check(root, read(root, NOTES), found)
    errors += problems
    known = {row.id for row in rows}
    for number in sorted(set(proofs) - known):
        errors.append('%s: proves %s, which is not in %s' % (', '.join(proofs[number]), number, DOC))
    needed |= {tier_of(t) for tests in proofs.values() for t in tests}
    errors += [absence(tier, found.stale) for tier in sorted(needed - set(found.tiers))]
    return [(row,) + judge(row, proofs.get(row.id, []), found) for row in rows], errors


def report(root, folder, show):
    """Lines to print, of rows that failed or that show(row, verdict) wants; how many rows are proven,
    and how many things are wrong."""
    verdicts, errors = join(root, folder)
    lines = ['%-7s %-15s %s' % (verdict, row.id, text) for row, verdict, text in verdicts
             if verdict == 'FAIL' or show(row, verdict)]
    lines += ['FAIL    ' + error for error in errors]
    n = collections.Counter(verdict for _, verdict, _ in verdicts)
    lines.append('%d requirements: %d proven, %d failed, %d not run, %d not met, %d open' % (
        len(verdicts), n['ok'], n['FAIL'], n['not run'], n[NOT_MET], n[OPEN]))
    return lines, n['ok'], n['FAIL'] + n['not run'] + len(errors)
