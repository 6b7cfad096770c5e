# SPDX-License-Identifier: Apache-2.0
"""Journals that a crash, a full disk, a reboot or chance has damaged."""
import json
import os
import random
import re
import signal
import subprocess

from castlab import BIN, CASTLAB, Lab, contains, daemon, equal, journal, path, sh, state, wait_until
from leftovers import snapshot

__all__ = ['test_torn_journal', 'test_killed_while_writing', 'test_disk_full', 'test_former_boot',
           'test_torn_anywhere', 'test_random_journals']

FRESH_SEEDS = 16
BOOT_ID = '/proc/sys/kernel/random/boot_id'


def write_journal(text):
    with open(path('journal'), 'wb') as f:
        f.write(text if isinstance(text, bytes) else text.encode())


def is_dead(pid):
    """It has no open files any more, either: a process loses its command line before these, and its
    first thread may end before others."""
    try:
        with open('/proc/%d/stat' % pid) as f:
            fields = f.read().rpartition(')')[2].split()
        return fields[0] in 'ZX' and int(fields[17]) <= 1
    except (FileNotFoundError, ProcessLookupError):
        return True


def kill(name):
    pid = daemon(name)[0]
    os.kill(pid, signal.SIGKILL)
    wait_until('%s is dead' % name, lambda: is_dead(pid))


def has_device(name):
    return any(d['ifname'] == name for d in json.loads(sh('ip', '-j', 'link')))


def test_torn_journal():
    """castlab died at each byte of its last record, before what this announces: n1 is dead."""
    lab = Lab()
    lab.up()
    lab.run('restart', 'n1')
    record = journal()[:-1].rpartition('\n')[2] + '\n'
    contains('the last record', record, '+ process n1 ')
    for length in range(len(record)):
        kill('n1')
        whole = journal()
        write_journal(whole[:whole.rindex('+')] + record[:length])
        contains('state', state(lab, 'n1'), 'dead')
        equal('restart behind %r' % record[:length], lab.run('restart', 'n1'), '')
        contains('state', state(lab, 'n1'), 'running')
        equal('records', [line for line in journal().split('\n') if line == record[:length]],
              [''] if not length else [])
    lab.down()


def limited(lab, size, *argv):
    """castlab may not write further than that into a file: the kernel writes as much as may be,
    and then kills it."""
    p = subprocess.run(['prlimit', '--core=0', '--fsize=%d' % size, lab.castlab, *argv],
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    equal('exit status of %s (%s)' % (argv, p.stdout), p.returncode, -signal.SIGXFSZ)


def test_killed_while_writing():
    """castlab is killed after each byte of a record that it writes."""
    lab = Lab()
    lab.up()
    before = journal()
    seen = set()
    for length in range(len('+ process n1 ') + 3):
        whole = journal()
        limited(lab, len(whole) + length, 'restart', 'n1')
        equal('what is in the journal', len(journal()), len(whole) + length)
        seen.add(journal()[len(whole):])
        contains('state', state(lab, 'n1'), 'dead')
        if length % 2:
            equal('start', lab.run('start', 'n1'), '')
            contains('state', state(lab, 'n1'), 'running')
            lab.run('stop', 'n1')
        write_journal(before)
    contains('records', ' '.join(seen), '+ process n1 ')
    limited(lab, len(before) + 5, 'start', 'n1')
    lab.down()


def test_disk_full():
    """The journal's file system is full in mid-record: the journal is as before, and goes on."""
    lab = Lab()
    lab.up()
    folder = path('full')
    os.mkdir(folder)
    sh('mount', '-t', 'tmpfs', '-o', 'size=8k', 'none', folder)
    before = journal()
    while len(before) % 4096 < 4096 - 44:  # so that 1 to 17 digits are missing.
        before += '+ process pad 1 1\n'
    before = before + '+ process pad 1 %s\n' % ('1' * (4096 - 10 - 17 - len(before) % 4096))
    equal('room in the page', len(before) % 4096, 4096 - 10)
    with open(folder + '/journal', 'w') as f:
        f.write(before)
    with open(folder + '/rest', 'wb') as f:
        try:
            while True:
                os.write(f.fileno(), bytes(4096))
        except OSError:
            pass
    os.unlink(path('journal'))
    os.symlink(folder + '/journal', path('journal'))
    equal('restart', lab.run('restart', 'n1', status=2), 'castlab: journal: No space left on device\n')
    equal('journal', journal(), before)
    equal('state', state(lab, 'n1'), 'dead')
    os.unlink(folder + '/rest')
    equal('start', lab.run('start', 'n1'), '')
    equal('state', state(lab, 'n1'), 'running')
    text = journal()
    contains('journal', text, before + '+ process n1 ')
    os.unlink(path('journal'))
    sh('umount', folder)
    write_journal(text)
    lab.down()


def test_former_boot():
    """After a reboot what has the lab's pids and names is not the lab's: only its files go."""
    lab = Lab()
    lab.up()
    text = journal()
    with open(BOOT_ID) as f:
        contains('journal', text, '. boot ' + f.read())
    before = snapshot()
    fake = path('boot_id')
    with open(fake, 'w') as f:
        f.write('01234567-89ab-4cde-8f01-23456789abcd\n')
    sh('mount', '--bind', fake, BOOT_ID)
    try:
        said = "castlab: lab 'star' is from before this machine booted: castlab down star removes " \
               'its files\n'
        equal('status', lab.run('status'), 'lab star: from before this machine booted, only its '
              'files are left (castlab down star)\n')
        for argv in (('restart', 'n1'), ('start', 'n1'), ('stop', 'castd'), ('exec', 'n1', 'true'),
                     ('exec', 'r1', 'true')):
            equal(' '.join(argv), lab.run(*argv, status=2), said)
        equal('up', lab.up(status=2), said)
        findings = subprocess.run([os.path.join(BIN, 'castctl'), '-j', 'doctor'], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        contains('doctor', findings, "lab 'star' is from before this machine booted")
        equal('down', lab.run('down'), 'lab star: from before this machine booted, only its files '
              'are removed\n')
    finally:
        sh('umount', BOOT_ID)
    equal('what is left', snapshot(), dict(before, labs=[]))
    os.mkdir(path(''))
    write_journal(text)
    lab.down()


class Handmade:
    """What a lab of a host and a forwarder consists of, made by hand, with its journal; and other
    people's objects, which nothing may touch."""

    def __init__(self):
        self.others = subprocess.Popen(['sleep', '1000'])
        for name in ('other-n1', 'star-n2'):
            sh('ip', 'netns', 'add', name)
        for name in ('other-h0', 'star-h1'):
            sh('ip', 'tuntap', 'add', name, 'mode', 'tap')
        sh('ip', '-6', 'rule', 'add', 'pref', '11', 'from', 'fd00:1::100', 'to', 'fd00:1::/119',
           'iif', 'lo', 'lookup', '47910')
        sh('ip', '-6', 'rule', 'add', 'pref', '10', 'from', 'fd00:9::1', 'to', 'fd00:1::/119',
           'iif', 'lo', 'lookup', '47911')
        sh('ip', '-6', 'rule', 'add', 'pref', '9', 'oif', 'other-h0', 'lookup', '47910')
        self.process = None
        self.tokens = ['other-n1', 'star-n2', 'other-h0', 'star-h1', str(self.others.pid), '1', '0',
                       'fd00:9::1', '11', '47911', 'lo', '-1', '99999999999999999999', '..', '']
        self.theirs = self.strangers()

    def strangers(self):
        links = json.loads(sh('ip', '-j', 'link'))
        return {'process': self.others.poll(),
                'namespaces': [os.stat('/run/netns/' + n).st_ino for n in ('other-n1', 'star-n2')],
                'taps': [(d['ifname'], d['ifindex']) for d in links
                         if d['ifname'] in ('other-h0', 'star-h1', 'lo')],
                'rules': [r for r in sh('ip', '-6', 'rule').splitlines()
                          if r.startswith('11:') or 'fd00:9::1' in r or 'other-h0' in r],
                'lookup local': 'lookup local' in sh('ip', '-6', 'rule')}

    def make(self):
        """Makes what there is not; returns the journal."""
        if not self.process or self.process.poll() is not None:
            self.process = subprocess.Popen(['sleep', '1000'], start_new_session=True)
        if not os.path.exists('/run/netns/star-n1'):
            sh('ip', 'netns', 'add', 'star-n1')
        if not has_device('star-h0'):
            sh('ip', 'tuntap', 'add', 'star-h0', 'mode', 'tap')
        rules = sh('ip', '-6', 'rule')
        if 'oif star-h0' not in rules:
            sh('ip', '-6', 'rule', 'add', 'pref', '9', 'oif', 'star-h0', 'lookup', '47910')
        if '10:\tfrom fd00:1::100' not in rules:
            sh('ip', '-6', 'rule', 'add', 'pref', '10', 'from', 'fd00:1::100', 'to',
               'fd00:1::/119', 'iif', 'lo', 'lookup', '47910')
        if '100:\tfrom all lookup local' not in rules:
            sh('ip', '-6', 'rule', 'add', 'pref', '100', 'lookup', 'local')
            sh('ip', '-6', 'rule', 'del', 'pref', '0', check=False)
        with open('/proc/%d/stat' % self.process.pid) as f:
            start = f.read().rpartition(')')[2].split()[19]
        with open(BOOT_ID) as f:
            boot = f.read().strip()
        index = [d['ifindex'] for d in json.loads(sh('ip', '-j', 'link'))
                 if d['ifname'] == 'star-h0'][0]
        os.makedirs(path(''), exist_ok=True)
        return '\n'.join((
            '. boot ' + boot, '. lab star', '. netns %d' % os.stat('/proc/self/ns/net').st_ino,
            '. rdma no', '. node h0 host', '. node n1 swedge', '. port h0 star-h0 tap n1',
            '. port n1 star-h0 tap h0', '+ process n1 %d %s' % (self.process.pid, start),
            '+ netns star-n1', '= %d' % os.stat('/run/netns/star-n1').st_ino, '+ tap star-h0',
            '= %d' % index, '+ device-rule 9 star-h0 47910',
            '+ rule 10 fd00:1::100 fd00:1::/119 47910', '+ local-rule 100', '. up', ''))

    def gone(self):
        """Nothing of the lab is left."""
        wait_until('the process ends', lambda: self.process.poll() is not None)
        for name in ('/run/netns/star-n1', path('')):
            equal(name, os.path.exists(name), False)
        equal('star-h0', has_device('star-h0'), False)
        rules = sh('ip', '-6', 'rule')
        for rule in ('oif star-h0', '10:\tfrom fd00:1::100', '100:\tfrom all'):
            equal(rule, rule in rules, False)
        contains('rules', rules, '0:\tfrom all lookup local')

    def remove(self):
        self.others.kill()
        self.others.wait()
        for name in ('other-n1', 'star-n2'):
            sh('ip', 'netns', 'del', name)
        for name in ('other-h0', 'star-h1'):
            sh('ip', 'link', 'del', name)
        sh('ip', '-6', 'rule', 'del', 'pref', '11')
        sh('ip', '-6', 'rule', 'del', 'pref', '10')
        sh('ip', '-6', 'rule', 'del', 'pref', '9')


def test_torn_anywhere():
    """'up' died anywhere, with all made that the journal has then, and nothing else: the end of
    each record, and each byte of the last but one."""
    lab = Handmade()
    castlab = Lab()
    whole = lab.make()
    objects = [m.start() for m in re.finditer(r'^\+', whole, re.M)]
    last = whole.index('+ tap')
    cuts = sorted(set(range(last, whole.index('+ device-rule') + 1))
                  | {0, 1, *objects, len(whole) - 1})
    for cut in cuts:
        whole = lab.make()
        write_journal(whole[:cut])
        contains('status of %r' % whole[:cut], castlab.run('status', 'star'), 'lab star: coming up')
        equal('down of %r' % whole[:cut], castlab.run('down', 'star'), '')
        for record, there in (('+ netns star-n1\n', os.path.exists('/run/netns/star-n1')),
                              ('+ tap star-h0\n', has_device('star-h0'))):
            equal('%r, after %r' % (record, whole[:cut]), there, record not in whole[:cut])
        os.makedirs(path(''), exist_ok=True)
        equal('others', lab.strangers(), lab.theirs)
    write_journal(lab.make())
    castlab.run('down', 'star')
    lab.gone()
    lab.remove()


def damaged(chance, lab, text):
    """The journal with one to four kinds of damage."""
    for _ in range(chance.randrange(1, 5)):
        lines = text.split('\n')
        at, other = chance.randrange(len(lines)), chance.randrange(len(lines))
        kind = chance.randrange(9)
        if kind == 0:
            text = text[:chance.randrange(len(text) + 1)]
        elif kind == 1:
            byte = chance.randrange(len(text) + 1)
            text = text[:byte] + chr(chance.randrange(256)) + text[byte + chance.randrange(2):]
        elif kind == 2:
            begin = chance.randrange(len(text) + 1)
            text = text[:begin] + text[begin + chance.randrange(40):]
        elif kind == 7:
            text = ''.join(map(chr, chance.randbytes(chance.randrange(200))))
        elif kind == 8 or kind == 3:
            words = re.split(r'([ \n])', text)
            words[2 * chance.randrange((len(words) + 1) // 2)] = chance.choice(lab.tokens)
            text = ''.join(words)
        else:
            if kind == 4:
                lines.insert(other, lines[at])
            elif kind == 5:
                lines[at], lines[other] = lines[other], lines[at]
            else:
                del lines[at]
            text = '\n'.join(lines)
    return text


def castlab_says(argv, seed, text):
    p = subprocess.run([CASTLAB, *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    what = 'seed %d: castlab %s with\n%s\nsaid\n%s' % (seed, ' '.join(argv), text, p.stdout + p.stderr)
    if (p.returncode not in (0, 2, 4)
            or re.search('[\0-\x09\x0b-\x1f\x7f-\x9f]', (p.stdout + p.stderr).decode())):
        raise AssertionError('%s\nstatus %d' % (what, p.returncode))
    errors = p.stderr.decode().splitlines()
    if p.returncode == 2 and not re.match(
            r"castlab: (.*/lab/star/journal:\d+: |lab 'star' (is from|was made|has no node))", errors[0]):
        raise AssertionError('%s: no file and line' % what)
    for line in errors:
        contains(what, line, 'castlab: ')
    return p.returncode


def test_random_journals():
    """Any bytes: an error that names file and line, and nobody else's objects are touched."""
    seeds = list(range(48)) + [random.randrange(1 << 32) for _ in range(FRESH_SEEDS)]
    print('      seeds 0..47', *seeds[48:], flush=True)
    lab = Handmade()
    codes = set()
    for seed in seeds:
        text = damaged(random.Random(seed), lab, lab.make())
        write_journal(text.encode('latin-1'))
        codes.add(castlab_says(['status', 'star'], seed, text))
        codes.add(castlab_says(['exec', '-l', 'star', 'h0', 'true'], seed, text))
        codes.add(castlab_says(['down', 'star'], seed, text))
        equal('others, after seed %d:\n%s' % (seed, text), lab.strangers(), lab.theirs)
    equal('exit statuses', codes >= {0, 2}, True)
    write_journal(lab.make())
    Lab().run('down', 'star')
    lab.gone()
    lab.remove()
