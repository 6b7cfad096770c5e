# SPDX-License-Identifier: Apache-2.0
"""castctl watch: what it tells of what happens, in which order, and how it ends."""
import json
import os
import re
import signal
import subprocess
import threading

import losses
from world import BIN, PATIENCE, as_text, check, check_equal, wait_until

TIME = r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z'
MEMBER = ' --qpn 17 --rkey 7 --va 0x1000 --len 4096'


class Watch:
    """A castctl watch that runs, with the lines that it has printed."""

    def __init__(self, w, line, text=False):
        argv = [os.path.join(BIN, 'castctl'), *([] if text else ['-j']), 'watch', *line.split()]
        self.process = subprocess.Popen(argv, env=w.env, stdin=subprocess.DEVNULL, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.lines = []
        self.text = text
        self.n_taken = 0
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        if not text:
            wait_until('watch begins', lambda: self.lines or self.process.poll() is not None)

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip('\n') if self.text else json.loads(line))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def words(self):
        """Events as 'group:event' and 'group:member:event', those at the start with a '='."""
        return [':'.join(filter(None, [e['group'], e['member'], e['event']])) +
                ('=' if e['initial'] else '') for e in list(self.lines)]

    def take(self, until):
        """The words since those that were taken before, up to this one."""
        wait_until('%s; there is %r' % (until, self.words()), lambda: until in self.words()[self.n_taken:])
        words = self.words()[self.n_taken:]
        words = words[:words.index(until) + 1]
        self.n_taken += len(words)
        return words

    def last(self):
        """The event that was taken last."""
        return self.lines[self.n_taken - 1]

    def end(self):
        """Waits until it ends: exit status and standard error."""
        self.process.wait(PATIENCE)
        self.reader.join(PATIENCE)
        return self.process.returncode, self.process.stderr.read()


def fields(event, *keys):
    return {k: event.get(k) for k in keys}


def applied(w, condition):
    w.apply_all_until('a state', lambda: losses.all_applied(w) and condition())


def replay(events):
    """The states that a reader of the events knows: of groups, and of their members."""
    states = {}
    for e in events:
        key = e['group'], e['member']
        if e['event'] in ('deleted', 'removed'):
            del states[key]
        elif e['group'] and e['state'] == e['event']:
            states[key] = e['state']
    return states


def registered(w):
    """The same as castctl shows it."""
    states = {}
    for g in json.loads(w.castctl('-j group list')):
        states[g['name'], None] = g['state']
        for m in json.loads(w.castctl('-j member list ' + g['name'])):
            states[g['name'], m['host']] = m['state']
    return states


def watch_losses(w):
    """A member is lost, and has left: each event once, with what was before and why."""
    losses.ready_group(w, 'prune')
    with Watch(w, 'g') as watch, Watch(w, '', text=True) as text:
        check_equal('at the start', watch.take('g:ready='),
                    ['g:source-set=', 'g:r1:active=', 'g:r2:active=', 'g:r3:active=', 'g:ready='])
        start = watch.lines[0]
        check(re.fullmatch(TIME, start['time']), 'time %r', start)
        check_equal('source', fields(start, 'host', 'qpn', 'epoch', 'before', 'member'),
                    {'host': 'h0', 'qpn': 18, 'epoch': 1, 'before': None, 'member': None})
        wait_until('the other begins', lambda: len(text.lines) == 5)
        losses.report(w, 'n1', 'r2', losses.SILENT)
        applied(w, lambda: w.show()['state'] == 'degraded' and w.member('r2')['state'] == 'lost')
        told = watch.take('g:degraded')
        check('g:r2:lost' in told and told.count('g:r2:lost') == 1, 'told %r', told)
        check_equal('degraded', fields(watch.last(), 'before', 'state', 'active_members', 'wanted_members'),
                    {'before': 'ready', 'state': 'degraded', 'active_members': 2, 'wanted_members': 3})
        lost = next(e for e in watch.lines if e['event'] == 'lost')
        check_equal('lost', fields(lost, 'group', 'member', 'before', 'state', 'status', 'psn', 'qpn', 'epoch',
                                   'initial'),
                    {'group': 'g', 'member': 'r2', 'before': 'active', 'state': 'lost', 'psn': 7, 'qpn': 17,
                     'status': losses.SILENT + ' (seen by n1)', 'epoch': 1, 'initial': False})
        w.castctl('member leave g r2')
        applied(w, lambda: w.member('r2')['state'] == 'left' and w.show()['state'] == 'ready')
        told = watch.take('g:ready')
        check_equal('of the group', [t for t in told if ':r2:' not in t], ['g:ready'])
        wait_until('r2 has left', lambda: watch.words().count('g:r2:left') == 1)
        check_equal('states', replay(watch.lines), registered(w))
        for pattern in (r'  g  r2  lost \(was active\): ' + re.escape(lost['status']),
                        r'  g  -  degraded 2/3 \(was ready\): .*r2 lost: .*', r'  g  r2  left \(was .*\)'):
            wait_until('a line %s' % pattern, lambda p=pattern: any(re.fullmatch(TIME + p, line)
                                                                   for line in text.lines))


def watch_membership(w):
    """A member registers, leaves, is removed, and registers with another QPN in the next epoch."""
    w.ready_group(['r1'])
    with Watch(w, 'g') as watch:
        watch.take('g:ready=')
        w.castctl('member add g r2' + MEMBER)
        applied(w, lambda: w.member('r2')['state'] == 'active')
        told = watch.take('g:r2:active')
        check_equal('r2', [t for t in told if 'r2' in t], ['g:r2:joining', 'g:r2:active'])
        joining = next(e for e in watch.lines if e['event'] == 'joining')
        check_equal('joining', fields(joining, 'before', 'state'), {'before': None, 'state': 'joining'})
        watch.take('g:ready')
        w.castctl('member leave g r2')
        wait_until('r2 is on its way', lambda: w.member('r2')['state'] == 'draining')
        check_equal('on its way out', watch.take('g:r2:draining'), ['g:r2:draining'])
        applied(w, lambda: w.member('r2')['state'] == 'left')
        check_equal('out', watch.take('g:r2:left'), ['g:r2:left'])
        w.castctl('--wait=none member remove g r2')
        applied(w, lambda: len(w.show()['members']) == 1)
        watch.take('g:r2:removed')
        check_equal('removed', fields(watch.last(), 'state', 'qpn'), {'state': None, 'qpn': 17})
        w.castctl('group reset g')
        told = watch.take('g:pending')
        check_equal('reset', [t for t in told if t != 'g:r1:joining'],
                    ['g:epoch', 'g:source-gone', 'g:pending'])
        epoch = next(e for e in watch.lines if e['event'] == 'epoch')
        shown = w.show()
        check_equal('epoch', fields(epoch, 'epoch', 'start_psn', 'designated_qpn'),
                    {k: shown[k] for k in ('epoch', 'start_psn', 'designated_qpn')})
        w.castctl('member add g r1 --qpn 19')
        watch.take('g:r1:replaced')
        check_equal('replaced', fields(watch.last(), 'qpn_before', 'qpn', 'epoch'),
                    {'qpn_before': 17, 'qpn': 19, 'epoch': 2})
        w.castctl('source set g --host h0 --qpn 20')
        watch.take('g:source-set')
        check_equal('source', fields(watch.last(), 'host', 'qpn', 'epoch'), {'host': 'h0', 'qpn': 20, 'epoch': 2})
        applied(w, lambda: w.show()['state'] == 'ready')
        watch.take('g:ready')
        check_equal('states', replay(watch.lines), registered(w))


def watch_deleted(w):
    """A group that is deleted ends its own watch, with an error; others go on."""
    w.ready_group(['r1'])
    w.castctl('group add h')
    with Watch(w, 'g') as watch, Watch(w, '') as both, Watch(w, 'g --until deleted') as until:
        watch.take('g:ready=')
        both.take('h:pending=')
        w.castctl('group del g')
        status, said = watch.end()
        check_equal('end', (status, as_text(said)), (2, 'castctl: watch: group g was deleted\n'))
        check_equal('error', watch.lines.pop(), {'error': 'watch: group g was deleted', 'status': 2})
        check_equal('told', watch.take('g:deleted'), ['g:source-gone', 'g:r1:removed', 'g:deleted'])
        check_equal('deleted', fields(watch.last(), 'before', 'state', 'epoch'),
                    {'before': 'ready', 'state': None, 'epoch': 1})
        check_equal('the other', both.take('g:deleted'), ['g:source-gone', 'g:r1:removed', 'g:deleted'])
        check_equal('awaited', until.end(), (0, ''))
        w.castctl('group add g')
        check_equal('another one', both.take('g:added'), ['g:added'])
        check(both.process.poll() is None, 'the watch of all has ended')


def watch_two_groups(w):
    """Each watch tells of its own group, the one of all of both; in JSON and in text."""
    w.ready_group(['r1', 'r2'])
    w.castctl('group add h')
    with Watch(w, 'g') as one, Watch(w, 'h') as other, Watch(w, '') as both:
        check_equal('all', both.take('h:pending='),
                    ['g:source-set=', 'g:r1:active=', 'g:r2:active=', 'g:ready=', 'h:pending='])
        w.castctl('member add h r1' + MEMBER)
        w.castctl('source set h --host h0 --qpn 99')
        applied(w, lambda: w.show('h')['state'] == 'ready')
        w.castctl('member leave g r2')
        applied(w, lambda: w.member('r2')['state'] == 'left')
        both.take('g:r2:left')
        check_equal('of both', {e['group'] for e in both.lines}, {'g', 'h'})
        check_equal('states', replay(both.lines), registered(w))
        for watch, group, last in ((one, 'g', 'g:r2:left'), (other, 'h', 'h:ready')):
            watch.take(last)
            check_equal('of ' + group, {e['group'] for e in watch.lines}, {group})
            check_equal('states', replay(watch.lines),
                        {k: v for k, v in registered(w).items() if k[0] == group})


def watch_registry(w):
    """The registry goes and comes back: two events, nothing twice, and what has changed since."""
    w.ready_group(['r1', 'r2'])
    with Watch(w, 'g') as watch, Watch(w, '--until registry-back') as until:
        watch.take('g:ready=')
        w.db.close()
        w.stop(w.registry)
        check_equal('gone', watch.take('registry-lost'), ['registry-lost'])
        check_equal('no group', fields(watch.last(), 'group', 'member', 'initial'),
                    {'group': None, 'member': None, 'initial': False})
        w.registry = w.start_registry()
        w.db = type(w.db)(w.sock)
        w.castctl('--wait=none member leave g r2')
        applied(w, lambda: w.member('r2')['state'] == 'left')
        told = watch.take('g:r2:left')
        check('registry-back' in told and not [t for t in told if 'r1' in t or t.endswith('=')], 'told %r', told)
        check_equal('states', replay(watch.lines), registered(w))
        check_equal('awaited', until.end(), (0, ''))
        check_equal('its end', until.words()[-1], 'registry-back')


def watch_merges(w):
    """A watch that does not run for a while tells what has lasted, whatever came between."""
    w.ready_group(['r1'])
    with Watch(w, '') as watch:
        watch.take('g:ready=')
        watch.process.send_signal(signal.SIGSTOP)
        for _ in range(3):
            w.castctl('group del g')
            w.castctl('group add g')
        w.castctl('group add h')
        w.castctl('group del h')
        w.castctl('member add g r2' + MEMBER)
        watch.process.send_signal(signal.SIGCONT)
        w.castctl('group add last')
        watch.take('last:pending')
        check_equal('states', replay(watch.lines), registered(w))
        check('g:deleted' in watch.words(), 'told %r', watch.words())


def watch_first_psn(w):
    """Of a member that joined late its first PSN is told, once it is known."""
    w.ready_group(['r1'])
    w.castd.send_signal(signal.SIGSTOP)  # the test writes in its place.
    w.db.update('Member', {'host': 'r1'}, state='joining', status='waits', first_psn=['set', []])
    with Watch(w, 'g') as watch, Watch(w, 'g', text=True) as text:
        watch.take('g:r1:joining=')
        check_equal('joining', fields(watch.last(), 'first_psn', 'status'), {'first_psn': None, 'status': 'waits'})
        wait_until('the text begins', lambda: any('joining: waits' in line for line in text.lines))
        w.db.update('Member', {'host': 'r1'}, state='active', status='', first_psn=4711)
        watch.take('g:r1:active')
        check_equal('active', fields(watch.last(), 'first_psn', 'before'), {'first_psn': 4711, 'before': 'joining'})
        wait_until('the text', lambda: any(line.endswith('  g  r1  active (was joining) from PSN 4711')
                                           for line in text.lines))
    w.castd.send_signal(signal.SIGCONT)


def watch_any_words(w):
    """States written past castd, which are words of other events: they are states all the same."""
    w.ready_group(['r1'])
    w.castd.send_signal(signal.SIGSTOP)
    with Watch(w, 'g') as watch:
        watch.take('g:ready=')
        for word in ('replaced', 'removed', 'deleted', 'epoch', 'source-set', 'source-gone', 'added', 'x\x1b[2J'):
            w.db.update('Member', {'host': 'r1'}, state=word)
            watch.take('g:r1:' + word)
            check_equal('state', watch.last()['state'], word)
            w.db.update('Group', {'name': 'g'}, state=word)
            watch.take('g:' + word)
            check_equal('state', watch.last()['state'], word)
        check(watch.process.poll() is None, 'it has ended')
    w.castd.send_signal(signal.SIGCONT)


def watch_ends(w):
    """How a watch ends: an event or a state that there is already, a number of events, a time."""
    def ends(line, status, said=''):
        p = w.run(*line.split())
        check_equal(line, (p.returncode, as_text(p.stderr)), (status, said))
        return [json.loads(text) for text in p.stdout.splitlines()]
    w.ready_group(['r1', 'r2'])
    check_equal('a state', ends('-j watch g --until ready', 0)[-1]['event'], 'ready')
    last = ends('-j watch g --until active:r2', 0)[-1]
    check_equal('a member', (last['member'], last['event']), ('r2', 'active'))
    check_equal('any member', ends('-j watch --until active', 0)[-1]['member'], 'r1')
    check_equal('only a time', len(ends('-j --timeout 1 watch g', 0)), 4)
    events = ends('-j --timeout 1 watch g --until lost:r2', 3, "castctl: watch: no 'lost:r2' in 1 s\n")
    check_equal('error', events[-1], {'error': "watch: no 'lost:r2' in 1 s", 'status': 3})
    ends('-j watch g --timeout 1 --count 2', 3, 'castctl: watch: 0 of 2 events in 1 s\n')
    # A word that groups and members have is the group's, unless a member is named.
    w.castctl('group set g --policy prune')
    applied(w, lambda: not w.show()['status'])
    with Watch(w, 'g --count 2') as count, Watch(w, 'g --until slow') as group, Watch(w, 'g --until slow:r1') as one:
        losses.say_slow(w, 'n1', r1='confirms 2 packets/s')
        w.expect_member('r1', 'slow')
        for watch, words in ((count, ['g:r1:slow', 'g:slow']), (group, ['g:r1:slow', 'g:slow']), (one, ['g:r1:slow'])):
            check_equal('end', watch.end(), (0, ''))
            check_equal('told', watch.take(words[-1])[-len(words):], words)
            check_equal('nothing more', watch.words()[watch.n_taken:], [])
    w.refused('watch x', 2, "^castctl: watch: no group named 'x'$")
    p = w.run('-j', 'watch', 'x')
    check_equal('an error has a line', p.stdout.count('\n'), 1)
    with open('/dev/full', 'w', encoding='utf-8') as full:  # a disk without room
        p = subprocess.run([os.path.join(BIN, 'castctl'), 'watch'], env=w.env, stdout=full, timeout=PATIENCE,
                           stderr=subprocess.PIPE, text=True, check=False)
    check_equal('nowhere to write', (p.returncode, p.stderr), (4, 'castctl: standard output: write error\n'))


CASES = (watch_losses, watch_membership, watch_deleted, watch_two_groups, watch_registry, watch_merges, watch_first_psn, watch_any_words, watch_ends)
