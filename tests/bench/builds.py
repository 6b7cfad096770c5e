# SPDX-License-Identifier: Apache-2.0
"""bench/standard/compare-builds: who takes turns, what is a ratio of what, and what it refuses."""
import argparse
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import re
import subprocess
import sys

from base import ROOT, equal

PROGRAM = os.path.join(ROOT, 'bench/standard/compare-builds')
# CPU seconds per GB of each repeat.
CPU = {'older': [30.0, 80.0, 36.0], 'own': [20.0, 40.0, 30.0]}


def load():
    sys.path.append(os.path.dirname(PROGRAM))
    loader = importlib.machinery.SourceFileLoader('compare_builds', PROGRAM)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader('compare_builds', loader))
    loader.exec_module(module)
    return module


def builds_turns(w):
    """Builds take turns; a ratio is of two runs of one repeat."""
    module, order = load(), []

    def measure(topology, build, part, blocks):
        order.append((topology, build, part, blocks))
        return {'cpu_s_per_gb': {'fabric': CPU[build][int(part[-1])]}, 'mb_per_s': 5.0}
    module.measure = measure
    with contextlib.redirect_stdout(io.StringIO()) as out:
        module.compare('fig1', ['older', 'own'], argparse.Namespace(repeats=3, blocks=4))
    equal('order', order, [('fig1', build, '%d-%d' % (i, repeat), 4) for repeat in range(3)
                           for i, build in enumerate(('older', 'own'))])
    equal('table', [re.split('  +', line) for line in out.getvalue().splitlines()][1:],
          [['fig1: older', '36.00 (30.00..80.00)', '5.00 (5.00..5.00)', '1.50 (1.20..2.00)'],
           ['fig1: own', '30.00 (20.00..40.00)', '5.00 (5.00..5.00)', '1.00 (1.00..1.00)']])


def builds_refused(w):
    """Before a virtual machine is started."""
    for argv, said in (((), 'the following arguments are required: BUILD'),
                       ((w.dir,), '%s: no bin/castlab there' % w.dir),
                       (('--repeats', '0', w.dir), "argument --repeats: invalid positive value: '0'"),
                       (('--topology', 'star', w.dir), "argument --topology: invalid choice: 'star'")):
        p = subprocess.run([sys.executable, PROGRAM, *argv], capture_output=True, text=True,
                           check=False, timeout=60)
        last = p.stderr.splitlines()[-1]
        equal('%s' % (argv,), (p.returncode, last[:len(said) + 23]),
              (2, 'compare-builds: error: ' + said))


TESTS = builds_turns, builds_refused
