# SPDX-License-Identifier: Apache-2.0
"""castbench-report: what runs of castbench have measured, as a page or compared."""
import getopt
import os
import stat
import sys
import tempfile

from compare import compare, differences, worse
from document import BadFile, load
from figure import draw
from page import render
from version import VERSION

USAGE = '''\
usage: castbench-report report [--svg] [-o FILE] RUN.json...
       castbench-report compare [--fail-if-worse PERCENT] A.json B.json
Reads the JSON files that castbench writes.
report: one page of HTML with all tables and pictures, that needs no other file and no network.
compare: for each scheme, number of replicas and size how many times as much B has as A.
options:
  -o, --output FILE            report: write it there (default: standard output)
      --svg                    report: of one file a picture instead of the page: bytes on the
                               source's uplink and times, by scheme
      --fail-if-worse PERCENT  compare: exit status 3 if a median is worse by more than that or
                               known only of A, or a run of B did not end well
  -h, --help  -V, --version
exit status: 0 all right, 1 usage or a file that cannot be read or written, 3 something is worse
'''


class Usage(Exception):
    pass


def plain(message):
    """A line whatever is in files and names: nothing that steers a terminal."""
    return ''.join(c if c.isprintable() else c.encode('unicode_escape').decode() for c in message)


def say(message):
    print('castbench-report: ' + plain(message), file=sys.stderr)


def write(path, text):
    """Whole or not at all; what is no regular file, like a pipe, is just written to."""
    path = os.path.realpath(path)
    data = text.encode()
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        umask = os.umask(0)
        os.umask(umask)
        mode = stat.S_IFREG | 0o666 & ~umask
    if not stat.S_ISREG(mode):
        with open(path, 'wb') as f:
            f.write(data)
        return
    fd, scratch = tempfile.mkstemp(prefix='.castbench-report.', dir=os.path.dirname(path))
    try:
        with open(fd, 'wb') as f:
            f.write(data)
            os.fchmod(f.fileno(), stat.S_IMODE(mode))
        os.rename(scratch, path)
    except BaseException:
        os.unlink(scratch)
        raise


def report(options, files):
    if not files:
        raise Usage('report: a file is missing')
    output = options.get('output')
    if output is not None:
        for path in files:
            if os.path.exists(output) and os.path.exists(path) and os.path.samefile(output, path):
                raise BadFile('-o %s: that is a file to be read' % output)
    elif sys.stdout.isatty():
        raise Usage('report: standard output is a terminal: -o FILE is missing')
    if 'svg' in options and len(files) > 1:
        raise Usage('report --svg: there must be one file, not %d' % len(files))
    documents = [load(path) for path in files]
    text = draw(*documents) if 'svg' in options else render(documents)
    try:
        if output is None:
            sys.stdout.buffer.write(text.encode())
            sys.stdout.buffer.flush()
        else:
            write(output, text)
    except BrokenPipeError:
        raise
    except OSError as e:
        raise BadFile('%s: %s' % ('standard output' if output is None else '-o ' + output,
                                  e.strerror)) from e
    return 0


def percentage(word):
    try:
        value = float(word)
    except ValueError:
        value = -1
    if not 0 <= value <= 1e6:
        raise Usage('--fail-if-worse %s: must be a number from 0 to 1000000' % word)
    return value


def compare_files(options, files):
    if len(files) != 2:
        raise Usage('compare: there must be two files, not %d' % len(files))
    percent = options.get('fail-if-worse')
    percent = None if percent is None else percentage(percent)
    a, b = map(load, files)
    for sentence in differences(a, b):
        say('warning: ' + sentence)
    lines, results = compare(a, b)
    print('\n'.join(map(plain, lines)))
    if not results:
        raise BadFile('%s, %s: no scheme, number of replicas and size is in the summaries of both'
                      % tuple(files))
    if percent is None:
        return 0
    bad = list(worse(results, percent))
    if not b.data['ok']:
        bad.append('%s: not all runs ended well' % b.path)
    print('\n'.join(map(plain, bad)) if bad else 'nothing is worse by more than %g %%' % percent)
    return 3 if bad else 0


COMMANDS = {'report': (report, 'o:', ['output=', 'svg']),
            'compare': (compare_files, '', ['fail-if-worse='])}
ALIASES = {'-o': 'output', '-h': 'help', '-V': 'version'}


def run(argv):
    if argv and argv[0] in COMMANDS:
        function, short, long = COMMANDS[argv.pop(0)]
    else:
        function, short, long = None, '', []
    try:
        given, files = getopt.gnu_getopt(argv, 'hV' + short, ['help', 'version', *long])
    except getopt.GetoptError as e:
        raise Usage(e.msg) from e
    options = {ALIASES.get(k, k.lstrip('-')): v for k, v in given}
    if 'help' in options:
        print(USAGE, end='')
        return 0
    if 'version' in options:
        print('castbench-report (rocecast) ' + VERSION)
        return 0
    if function is None:
        raise Usage("%s: there are 'report' and 'compare'"
                    % ("unknown command '%s'" % files[0] if files else 'a command is missing'))
    return function(options, files)


def main():
    if sys.stdout is None:
        say('standard output is closed')
        return 1
    sys.stdout.reconfigure(errors='backslashreplace')   # of what its encoding does not have
    try:
        status = run(sys.argv[1:])
        sys.stdout.flush()
        return status
    except Usage as e:
        say('%s (castbench-report --help)' % e)
    except BadFile as e:
        say(str(e))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as e:
        say('standard output: %s' % e.strerror)
    except KeyboardInterrupt:
        return 130
    return 1


if __name__ == '__main__':
    sys.exit(main())
