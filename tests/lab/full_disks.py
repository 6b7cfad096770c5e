# SPDX-License-Identifier: Apache-2.0
"""Full disks below the registry, and below what is saved of it: file systems of this mount namespace."""
import json
import os
import sys

from castlab import ROOT, contains, equal, sh

sys.path.append(os.path.join(ROOT, 'tests/ctl'))

from clusters import N, Cluster     # noqa: E402 pylint: disable=wrong-import-position
from world import World, wait_until        # noqa: E402 pylint: disable=wrong-import-position


def small_disk(folder):
    os.makedirs(folder, exist_ok=True)
    sh('mount', '-t', 'tmpfs', '-o', 'size=4m', 'none', folder)
    return folder


def fill(folder, room=0):
    """Leaves this much room, in pages."""
    filler = os.path.join(folder, 'filler')
    fd = os.open(filler, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        while os.write(fd, b'x' * 4096) == 4096:
            pass
    except OSError:
        pass
    os.ftruncate(fd, os.fstat(fd).st_size - room)
    os.close(fd)


def backup_without_room(w):
    """Whatever of it is cut off, the schema or rows: it is refused, and nothing is left."""
    disk = small_disk(w.file('disk'))
    for i in range(20):
        w.castctl('--wait=none group add g%d' % i)
    w.settled()
    w.castctl('registry backup ' + w.file('whole'))
    size = os.path.getsize(w.file('whole'))
    for room in (*range(0, size, 32768), size // 4096 * 4096):
        fill(disk, room)
        w.refused('registry backup %s/saved' % disk, 2, '/saved: ')
        equal('files with room for %d of %d bytes' % (room, size), os.listdir(disk), ['filler'])
        os.unlink(os.path.join(disk, 'filler'))
    w.castctl('registry backup %s/saved' % disk)
    equal('size', os.path.getsize(os.path.join(disk, 'saved')), size)


class Disks(Cluster):
    """Each server's file has a folder of its own."""

    def file(self, i):
        os.makedirs(self.w.file('disk%d' % i), exist_ok=True)
        return self.w.file('disk%d/db' % i)

    def socket(self, i):
        return self.w.file('db%d.sock' % i)

    def control(self, i):
        return self.w.file('db%d.ctl' % i)

    def raft(self, i):
        return 'unix:%s' % self.w.file('db%d.raft' % i)

    def fill(self, i):
        """The server goes on, on a disk that has no room any more."""
        self.stop(i)
        with open(self.file(i), 'rb') as f:
            data = f.read()
        disk = small_disk(os.path.dirname(self.file(i)))
        with open(self.file(i), 'wb') as f:
            f.write(data)
        self.start(i)
        wait_until('it is back', lambda: all(s['connected'] for s in self.status()['servers']))
        return disk


def server_without_room(w, is_leader):
    """The registry goes on without it, and its status names it."""
    c = Disks(w)
    c.connect(0)
    w.castd = w.start_castd('second')
    w.castctl('group add before')
    full = c.leader() if is_leader else next(i for i in range(N) if i != c.leader())
    disk = c.fill(full)
    while is_leader and c.leader() != full:
        leader = c.leader()
        c.stop(leader)
        wait_until('another one leads', lambda: c.status()['leader'] not in (None, c.remote(leader)))
        c.start(leader)
        wait_until('it is back', lambda: all(s['connected'] for s in c.status()['servers']))
    fill(disk)
    for name in ('one', 'two', 'three'):
        w.castctl('group add ' + name)

    def is_named():
        """Only who has to write notices that there is no room.  When others have just lost touch with it, status says
        that it is not reached."""
        w.castctl('group add more')
        w.castctl('group del more')
        said = w.run('registry', 'status', c.control(c.leader()))
        return said.returncode == 4 and 'member %s does not answer' % c.raft(full) in said.stderr

    wait_until("its leader's status names it", is_named)
    if is_leader:
        equal('it leads', c.leader() == full, False)
        w.refused('registry status', 4, '%s: it is not in touch with a majority$' % c.remote(full))
        said = w.run('registry', 'status', c.control(full))
        equal('exit status at itself', said.returncode, 3)
        contains('its status', said.stderr, 'the server has failed')
    contains('log', w.log(), 'No space left on device')
    equal('groups', sorted(g['name'] for g in json.loads(w.castctl('-j group list'))),
          ['before', 'one', 'three', 'two'])


def in_world(test, *args):
    w = World()
    try:
        test(w, *args)
    finally:
        for name in os.listdir(w.dir):
            if os.path.ismount(w.file(name)):
                sh('umount', '--lazy', w.file(name))
        w.close()


def test_backup_without_room():
    in_world(backup_without_room)


def test_follower_without_room():
    in_world(server_without_room, False)


def test_leader_without_room():
    in_world(server_without_room, True)
