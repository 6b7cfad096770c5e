# SPDX-License-Identifier: Apache-2.0
"""castctl top: what it makes of what agents have counted, as JSON, as text and on a terminal."""
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios

from losses import SILENT, report
from world import BIN, PATIENCE, Db, FakeAgent, check, check_equal, wait_until

TIME = r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z'
HEADING = 'group           state     epoch members packets/s    MB/s slowest         behind'


class Agents:
    """Agents of a0 and n1 in the place of real ones, with a group's PSNs: a0 sends 1000 packets of 1 MB
    together between two questions."""

    def __init__(self, w):
        self.w = w
        self.n_asked = 0
        shown = w.show()
        self.group = {'group': 'g', 'epoch': 1, 'designated_qpn': shown['designated_qpn'], 'started': True,
                      'proxy': shown['proxy'], 'anchored': True, 'branches': []}
        # Around the PSNs' wrap.
        self.edge = dict(self.group, sent_next=5, branches=[
            self.branch('r1', 5), self.branch('r2', 0xfffff0), self.branch('r7', 1, pruned=True), self.branch('r8', 1, waits=True),
            self.branch('n2', 0xfffff0, kind='node')])
        self.agents = [self.start('a0', self.source), self.start('n1', lambda: [self.edge])]

    def start(self, node, answer):
        path = os.path.join(self.w.dir, node + '.ctl')
        agent = FakeAgent(path, {'rocecast/groups': answer})
        self.w.db.update('Node', {'name': node}, control=path)
        return agent

    @staticmethod
    def branch(name, confirmed, **more):
        return dict({'name': name, 'kind': 'receiver', 'anchored': True, 'confirmed': confirmed}, **more)

    def source(self):
        self.n_asked += 1
        return [{'group': 'x'}, dict(self.group, sent_next=5, down={
            'packets': 5 + 1000 * self.n_asked, 'bytes': 1000000 * self.n_asked})]


def lines_of(text):
    for line in text.splitlines():
        check(len(line) <= 80, '%d columns: %r', len(line), line)
    return text.splitlines()


def objects(w, line, status=0):
    p = w.run('-j', *line.split())
    check_equal('castctl -j %s' % line, p.returncode, status)
    return [json.loads(text) for text in p.stdout.splitlines()]


def top_shows(w):
    """Rates are of the time between two refreshes; who is behind is named, with how much."""
    w.ready_group(['r1', 'r2'])
    w.castctl('group add h')
    agents = Agents(w)
    shown, = objects(w, 'top --interval 1')
    check_equal('asked for one refresh', agents.n_asked, 2)
    check(re.fullmatch(TIME, shown['time']) and shown['interval_ms'] > 0, '%r', shown)
    check_equal('keys', (shown['registry'], shown['not_reachable']), (True, []))
    g, h = shown['groups']
    check_equal('rates', (g['packets_per_s'], g['bytes_per_s']),
                (1000 * 1000 // shown['interval_ms'], 1000000 * 1000 // shown['interval_ms']))
    check_equal('slowest', g['slowest'], {'branch': 'r2', 'node': 'n1', 'behind': 21})
    check_equal('group', {k: g[k] for k in ('group', 'state', 'epoch', 'active_members', 'registered_members')},
                {'group': 'g', 'state': 'ready', 'epoch': 1, 'active_members': 2, 'registered_members': 2})
    check_equal('members', [(m['member'], m['state'], m['node'], m['confirmed'], m['behind'])
                            for m in g['members']],
                [('r1', 'active', 'n1', 5, 0), ('r2', 'active', 'n1', 0xfffff0, 21)])
    check_equal('nothing is known of h', (h['packets_per_s'], h['slowest'], h['members']), (None, None, []))
    for line in ('top --interval 1', 'top g --interval 1'):
        lines = lines_of(w.castctl(line))
        both = line == 'top --interval 1'
        check(re.fullmatch(TIME + '  groups %d  members 2/2' % (1 + both), lines[0]), '%r', lines[0])
        check_equal('heading', lines[1], HEADING)
        check(re.fullmatch(r'g               ready         1     2/2 +\d+ +\d\.\d r2 at n1            21', lines[2]),
              '%r', lines[2])
        check_equal('members', lines[3:5], [
            '  r1            active   confirmed 5 at n1                                     0',
            '  r2            active   confirmed 16777200 at n1                             21'])
        check_equal('h', [x.split()[:2] for x in lines[5:6]], [['h', 'pending']] if both else [])
    # A node that is far behind is not explained by its receivers.
    agents.edge['branches'][-1]['confirmed'] = 0xffff00
    shown, = objects(w, 'top g --interval 1')
    check_equal('slowest', shown['groups'][0]['slowest'], {'branch': 'n2', 'node': 'n1', 'behind': 261})
    # An agent that was started again has counted less than before: no rate.
    counts = iter([70, 7])
    agents.agents[0].answers['rocecast/groups'] = lambda: [dict(agents.group, down={
        'packets': next(counts), 'bytes': 7})]
    shown, = objects(w, 'top g --interval 1')
    check_equal('no rate', (shown['groups'][0]['packets_per_s'], shown['groups'][0]['bytes_per_s']), (None, None))


def top_of_losses(w):
    """Who is lost, and why; an agent that does not answer is named, and the exit status says so."""
    w.ready_group(['r1', 'r2'])
    w.castctl('group set g --policy prune')
    Agents(w)
    report(w, 'n1', 'r2', SILENT + ' \x1b[2J \u00e4' + '\u00e4' * 90)
    w.apply_all_until('degraded', lambda: w.show()['state'] == 'degraded' and w.members_at('n1') == ['r1'])
    text = w.castctl('top g --interval 1')
    lines = lines_of(text)
    check('\x1b' not in text, 'control characters in %r', text)
    check(lines[2].startswith('g               degraded      1     1/2 '), '%r', lines[2])
    check(re.fullmatch(r'  r2            lost     no progress for 17\.2 s at PSN 7 \\x1b\[2J \u00e4+ +\d+', lines[4]),
          '%r', lines[4])
    w.db.update('Node', {'name': 'n1'}, control=os.path.join(w.dir, 'nobody.ctl'))
    p = w.run('top', 'g', '--interval', '1')
    check_equal('exit status', p.returncode, 4)
    check(re.fullmatch('castctl: node n1: .*nobody.ctl: No such file or directory\n', p.stderr), '%r', p.stderr)
    check_equal('said', lines_of(p.stdout)[1], 'not reachable: n1')
    shown, = objects(w, 'top g --interval 1', status=4)
    check_equal('JSON', (shown['not_reachable'], shown['groups'][0]['slowest'],
                         [m['behind'] for m in shown['groups'][0]['members']]), (['n1'], None, [None, None]))


def on_terminal(w, rows, line):
    """What castctl writes to a terminal of so many lines."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack('HHHH', rows, 80, 0, 0))
    p = subprocess.Popen([os.path.join(BIN, 'castctl'), *line.split()], env=w.env, stdin=its, stdout=its,
                         stderr=subprocess.PIPE)
    os.close(its)
    written = b''
    try:
        while True:
            written += os.read(ours, 1 << 16)
    except OSError:  # nobody has it open any more
        pass
    os.close(ours)
    check_equal('exit status', (p.wait(PATIENCE), p.stderr.read()), (0, b''))
    return written.decode().replace('\r\n', '\n')


def top_screen(w):
    """On a terminal: each refresh begins at the top and fits; the first is there at once, without rates."""
    w.ready_group(['r1', 'r2'])
    Agents(w)
    screens = on_terminal(w, 24, 'top --interval 1 --count 3').split('\x1b[H')
    check_equal('before the first, number', (screens[0], len(screens)), ('', 4))
    for n, screen in enumerate(screens[1:]):
        check(screen.endswith('\n\x1b[J'), 'the rest is not erased: %r', screen)
        lines = lines_of(screen.replace('\x1b[K', '').replace('\x1b[J', ''))
        check_equal('lines', len(lines), 5)
        check_equal('rates', lines[2].split()[4:6] == ['-', '-'], n == 0)
    screens = on_terminal(w, 5, 'top --interval 1 --count 1').split('\x1b[H')
    lines = screens[1].replace('\x1b[K', '').replace('\x1b[J', '').splitlines()
    check_equal('it fits', (len(lines), lines[-1]), (4, '2 lines more: castctl top GROUP'))


def top_registry(w):
    """It goes on without the registry, and says so, with what was there last."""
    w.ready_group(['r1', 'r2'])
    Agents(w)
    p = subprocess.Popen([os.path.join(BIN, 'castctl'), '-j', 'top', '--interval', '1', '--count', '0'], env=w.env,
                         stdout=subprocess.PIPE, text=True)
    try:
        check_equal('it is there', json.loads(p.stdout.readline())['registry'], True)
        w.db.close()
        w.stop(w.registry)
        lost = json.loads(p.stdout.readline())
        check_equal('lost', (lost['registry'], [g['group'] for g in lost['groups']]), (False, ['g']))
        w.registry = w.start_registry()
        w.db = Db(w.sock)
        wait_until('it is back', lambda: json.loads(p.stdout.readline())['registry'])
    finally:
        p.kill()
        p.wait()


CASES = (top_shows, top_of_losses, top_screen, top_registry)
