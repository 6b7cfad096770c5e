# SPDX-License-Identifier: Apache-2.0
"""Tables, annotations and results that are wrong: what table.report() says about each."""
import os
import tempfile

import table
from table import results

DOCUMENT = '''# A title

| Id | Requirement | Where | Deviation |
|---|---|---|---|
| MT-5.3.1-1 | one thing | `lib/a.c:first`, `lib/a.c` | - |
| MT-6-S01 | another | `lib/a.c:table` | not quite (H1) |
| MT-6-R8754-2 | a third | `tests/t/run:grow` | |
| MT-5.3.3-1 | a fourth | not met | too hard |
| AB-32 | a fifth | open | probing comes later |
'''
C_TESTS = '''
/* What it is for.
 *
 * %s MT-5.3.1-1,
 * MT-6-S01. */
START_TEST(one)
    tcase_create("cases")
/* %s MT-6-S01. */
/* Another comment. */
START_TEST(two)
'''
SIM_TESTS = '''
/* %s MT-6-S01. */
static int
run_all(void)
'''
PY_TESTS = '''#!/usr/bin/env python3
# %s MT-6-R8754-2.
def grow(w):
    pass

def make(tree):
    """In words.  %s MT-5.3.1-1."""
    def case(lab):
        pass
    return case
'''
NOTES = '''| # | Hole in the draft | An unmodified endpoint | Resolution | Where | Shown by |
|---|---|---|---|---|---|
| H1 | a hole | falls in | a lid | `lib/a.c` | `unit suite one`, `tests/ctl/run there` |
| H2 | another | likewise | none | - | `build/tests/castsim --defect H2 --count 2`, `tests/net/run lab` |
| H3 | a third | - | later | - | later |
'''
UNIT_TESTS = '''
START_TEST(one)
    suite_create("suite")
    tcase_create("unit-cases")
'''
GOOD = {
    'docs/conformance.md': DOCUMENT,
    'docs/draft-notes.md': NOTES,
    'lib/defect.h': 'DEFECT_ENTRY(H2, "what")',
    'tests/unit/test-u.c': UNIT_TESTS,
    'tests/ctl/run': 'def there(w):\n',
    'tests/net/run': "LABS = [\n    ('lab', up),\n",
    'lib/a.c': 'static int\nfirst(int a)\n{\n}\nstatic const int table[] = {1};\n',
    # The word that makes an annotation is put in, so that this file has none.
    'tests/t/test-t.c': C_TESTS % ('Proves', 'Proves'),
    'tests/t/run': PY_TESTS % ('Proves', 'Proves'),
    'tests/sim/sim.c': SIM_TESTS % 'Proves',
    'results/sim-san.log': 'ok    all [tests/sim/sim.c:run_all]\n',
    'results/unit.tap': 'ok 1 - x.c:cases:one: Passed\nok 2 - x.c:cases:two: Passed\n'
                        'ok 3 - x.c:cases:one: Passed\nok 4 - x.c:unit-cases:one: Passed\n1..4\n',
    'results/unit.log': '100%: Checks: 4, Failures: 0, Errors: 0\n',
    'results/ctl.log': 'ok    there [tests/ctl/run:there]\n1 passed, 0 failed\n',
    'results/net.log': 'ok    lab up (0.1 s) [tests/net/run:up]\n1 passed, 0 failed\n',
    'results/sim-defects.log': 'ok H2: seed 1: what\n1 passed, 0 failed\n',
    'build/tests/net': 'a program',
    'results/t.log': 'ok    grow it (0.1 s) [tests/t/run:grow]\nnoise\n'
                     'ok    a shape [tests/t/run:make]\n3 passed, 0 failed\n',
}

# What is wrong, in which file, what there is replaced by what, what is said about it.
CASES = (
    ('a row without a test', 'tests/t/run', '# Proves MT-6-R8754-2.\n', '', 'MT-6-R8754-2 no test'),
    ('a test that failed', 'results/unit.tap', 'ok 2', 'not ok 2',
     'MT-6-S01 failed: tests/t/test-t.c:two'),
    ('a test that failed once of twice', 'results/unit.tap', 'ok 3', 'not ok 3',
     'MT-5.3.1-1 failed: tests/t/test-t.c:one'),
    ('a case that failed', 'results/t.log', 'ok    grow', 'FAIL  grow',
     'MT-6-R8754-2 failed: tests/t/run:grow'),
    ('a case that failed, with the reason', 'results/t.log', 'ok    grow it (0.1 s) [tests/t/run:grow]',
     'FAIL  grow it (0.1 s) [tests/t/run:grow]: why', 'MT-6-R8754-2 failed: tests/t/run:grow'),
    ('a test that did not run', 'results/t.log', 'ok    grow', 'skipped grow',
     'MT-6-R8754-2 no result: tests/t/run:grow'),
    ('one of several tests that did not run', 'results/unit.tap', 'ok 2 - x.c:cases:two: Passed\n', '',
     'MT-6-S01 no result: tests/t/test-t.c:two'),
    ('a tier that did not run', 'results/t.log', None, None, 'tier t has no results of this tree'),
    ('a tier that did not end', 'results/t.json', '', '', 'tier t has no results of this tree, but of another'),
    ('results of another tree', 'results/t.json', '',
     '{"tier": "t", "command": "tests/t/run", "failed": 0, "tree": "another"}',
     'tier t has no results of this tree, but of another'),
    ('a case that failed in castsim', 'results/sim-san.log', 'ok ', 'FAIL ',
     'MT-6-S01 failed: tests/sim/sim.c:run_all'),
    ('no results', 'results', None, None, 'tier unit has no results of this tree'),
    ('an unknown id in C', 'tests/t/test-t.c', 'MT-6-S01. */\n/*', 'MT-6-S02. */\n/*',
     'tests/t/test-t.c:two: proves MT-6-S02, which is not in docs/conformance.md'),
    ('an unknown id in Python', 'tests/t/run', 'MT-6-R8754-2', 'MT-6-R8754-3',
     'tests/t/run:grow: proves MT-6-R8754-3, which is not in docs/conformance.md'),
    ('an id that is none', 'tests/t/run', 'MT-6-R8754-2', 'MT-6-x',
     'tests/t/run:grow: proves MT-6-x, which is not in docs/conformance.md'),
    ('a comment that is at no test', 'tests/t/test-t.c', 'START_TEST(two)', 'static void two(void)',
     'tests/t/test-t.c:8: proves MT-6-S01, but is not at a test'),
    ('a comment that is at no function of castsim', 'tests/sim/sim.c', 'static int\n', 'static int ',
     'tests/sim/sim.c:2: proves MT-6-S01, but is not at a test'),
    ('a comment that is at no def', 'tests/t/run', 'def grow(w):', 'x = 1\ndef grow(w):',
     'tests/t/run:2: proves MT-6-R8754-2, but is not at a test'),
    ('an id twice', 'docs/conformance.md', '| MT-6-S01 |', '| MT-5.3.1-1 |',
     'MT-5.3.1-1 is there 2 times'),
    ('a malformed id', 'docs/conformance.md', '| MT-6-S01 |', '| MT-6-S1 |', ':6: MT-6-S1 is no id'),
    ('a cell too many', 'docs/conformance.md', 'another', 'an|other', ':6: 5 cells, not 4'),
    ('no table', 'docs/conformance.md', '| Id |', '| Name |', 'no table with the columns'),
    ('no requirement', 'docs/conformance.md', 'another', '', ':6: MT-6-S01: requires nothing'),
    ('a file that does not exist', 'docs/conformance.md', '`lib/a.c`', '`lib/b.c`',
     ':5: MT-5.3.1-1: lib/b.c: there is no such file'),
    ('a function that does not exist', 'docs/conformance.md', ':first', ':second',
     ':5: MT-5.3.1-1: lib/a.c: there is no second in it'),
    ('a function that is only called', 'lib/a.c', 'first(int a)\n{', 'other(void)\n{\n    first(1);',
     ':5: MT-5.3.1-1: lib/a.c: there is no first in it'),
    ('no place', 'docs/conformance.md', '`lib/a.c:table`', 'everywhere',
     ':6: MT-6-S01: does not say where it is implemented'),
    ('open, but for another reason', 'docs/conformance.md', 'not met', 'later',
     'MT-5.3.3-1: does not say where it is implemented'),
    ('a hole that does not exist', 'docs/conformance.md', '(H1)', '(H4)',
     ':6: MT-6-S01: H4 is not in docs/draft-notes.md'),
    ('another table of holes', 'docs/draft-notes.md', 'Shown by', 'Why', 'no table with the columns #'),
    ('a hole with a cell too few', 'docs/draft-notes.md', '| a lid ', '', 'H1: 5 cells, not 6'),
    ('a hole without an answer', 'docs/draft-notes.md', '| a lid |', '| |', 'H1: an empty cell'),
    ('a hole that nothing shows', 'docs/draft-notes.md', '| later |\n', '| |\n', 'H3: no command'),
    ('a hole that an unknown test shows', 'docs/draft-notes.md', 'suite one', 'suite two',
     'H1: unit suite two: there is no test two in a suite suite'),
    ('a hole that an unknown case shows', 'tests/ctl/run', 'there', 'here',
     'H1: tests/ctl/run there: there is no there'),
    ('a hole that an unknown lab shows', 'tests/net/run', "'lab'", "'bal'",
     'H2: tests/net/run lab: there is no lab'),
    ('a hole that an unknown defect shows', 'lib/defect.h', 'H2', 'H4', 'H2: build/tests/castsim'),
    ('a hole that any command shows', 'docs/draft-notes.md', 'unit suite', 'true suite',
     'H1: true suite one: is not a command'),
    ('a hole whose test failed', 'results/unit.tap', 'ok 4', 'not ok 4', 'H1: unit suite one: failed'),
    ('a hole whose test did not run', 'results/unit.tap', 'ok 4', '#', 'H1: unit suite one: no result'),
    ('a hole whose case failed', 'results/ctl.log', 'ok ', 'FAIL ', 'H1: tests/ctl/run there: failed'),
    ('a hole whose lab failed', 'results/net.log', 'ok ', 'FAIL ', 'H2: tests/net/run lab: failed'),
    ('a hole whose lab did not run', 'results/net.log', 'ok    lab', 'ok    other', 'H2: tests/net/run lab: no result'),
    ('a hole whose defect is not found', 'results/sim-defects.log', 'ok ', 'FAIL ',
     'H2: build/tests/castsim --defect H2 --count 2: failed'),
    ('a hole of a tier that did not run', 'results/sim-defects.log', None, None,
     'tier sim-defects has no results of this tree'),
    ('not met, without a reason', 'docs/conformance.md', '| too hard |', '| |',
     'MT-5.3.3-1: does not say why it is not met'),
    ('open, without a reason', 'docs/conformance.md', '| probing comes later |', '| |',
     'AB-32: does not say why it is open'),
    ('open, but proven', 'tests/t/run', 'MT-6-R8754-2', 'AB-32', 'AB-32 is open, but proven by tests/t/run:grow'),
    ('not met, but proven', 'docs/conformance.md', '`lib/a.c:table` | not quite', 'not met | not quite',
     'MT-6-S01 is not met, but proven by tests/sim/sim.c:run_all'),
    ('a deviation without a number', 'docs/conformance.md', '(H1)', '', 'deviates without the number of a hole'),
    ('a test in two files', 'tests/t/test-u.c', None, 'tcase_create("cases")\nSTART_TEST(two)\n',
     'tests/t/test-t.c and tests/t/test-u.c both have two in a test case cases'),
)


PROVEN = '5 requirements: 3 proven, 0 failed, 0 not run, 1 not met, 1 open'

# What changes after the tiers have run: are their results still of this tree?
CHANGES = (
    ('a document', 'docs/draft-notes.md', True),
    ('a source', 'lib/a.c', False),
    ('a test', 'tests/t/run', False),
    ('a program', 'build/tests/net', False),
)


def place(name):
    """Where a file of GOOD stands below the root."""
    return 'build/' + name if name.startswith('results/') else name


def write(root, name, text):
    path = os.path.join(root, place(name))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text)


def said_about(files, changed=None):
    """(Lines that are printed of all that is not proven, how much is wrong) with these files; 'changed'
    gets a line more when the tiers have run."""
    with tempfile.TemporaryDirectory(prefix='conformance') as root:
        for name, text in files.items():
            write(root, name, text)
        for name in files:
            tier = name.removeprefix('results/').removesuffix('.log')
            if name.endswith('.log') and 'results/%s.json' % tier not in files:
                command = 'tests/%s/run' % tier
                results.note(root, tier, command, results.digest(root, command), failed=0)
        if changed:
            write(root, changed, files[changed] + '\n')
        lines, _, wrong = table.report(root, os.path.join(root, results.FOLDER), lambda _row, _verdict: False)
        return [' '.join(line.split()) for line in lines], wrong


def spoilt(name, old, new):
    files = dict(GOOD)
    if new is None:
        return {path: text for path, text in files.items() if not path.startswith(name)}
    files[name] = files[name].replace(old, new, 1) if old else new
    assert files[name] != GOOD.get(name), 'nothing was spoilt'
    return files


def run(verbose):
    """Returns (passed, failed)."""
    outcomes = []

    def check(what, good, said):
        outcomes.append(good)
        if verbose or not good:
            print('%-7s self-test: %s%s' % ('ok' if good else 'FAIL', what, '' if good else ': %r' % said))

    said, wrong = said_about(GOOD)
    check('nothing is wrong', not wrong and said == [PROVEN], said)
    for what, name, old, new, wanted in CASES:
        said, wrong = said_about(spoilt(name, old, new))
        check(what, wrong and any('FAIL' in line and wanted in line for line in said), said)
    for what, name, still in CHANGES:
        said, wrong = said_about(GOOD, name)
        check('%s has changed' % what,
              not wrong if still else wrong and any('net has no results of this tree, but' in line for line in said),
              said)
    return outcomes.count(True), outcomes.count(False)
