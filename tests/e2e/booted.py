# SPDX-License-Identifier: Apache-2.0
"""A systemd for the units of rocecast, in the VM: the first process of a PID namespace.

It is the machine's /usr/lib/systemd/systemd with the units that 'make install' has installed, and
of systemd's own with those of OWN: what else is installed or enabled on the machine does not start.
/usr/local is what was installed in a folder.  The VM is thrown away afterwards: nothing is undone.
"""
import os
import shutil
import signal
import subprocess

from harness import RESULTS, ROOT, output, run, wait_until

UNITS = '/usr/lib/systemd/system'
OWN = ('basic.target', 'final.target', 'local-fs-pre.target', 'local-fs.target', 'multi-user.target', 'network.target',
       'paths.target', 'shutdown.target', 'slices.target', 'sockets.target', 'swap.target', 'sysinit.target',
       'timers.target', 'umount.target', 'systemd-journald.service', 'systemd-journald.socket',
       'systemd-journald-dev-log.socket', 'systemd-tmpfiles-setup.service')
WANTS = {'sockets.target': ('systemd-journald.socket', 'systemd-journald-dev-log.socket'),
         'sysinit.target': ('systemd-journald.service', 'systemd-tmpfiles-setup.service')}
# As the unit has it, but for --remove, which would empty /tmp: this tree may be there.
TMPFILES = '[Service]\nExecStart=\nExecStart=systemd-tmpfiles --create --boot --exclude-prefix=/dev\n'
# With 'container' it leaves devices, clock and kernel modules alone, whatever machine this is.
ENVIRONMENT = {'container': 'namespace', 'LANG': 'C.UTF-8',
               'PATH': '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin'}


def prepare():
    """Installs rocecast, for the first time, and leaves the machine with the units of OWN."""
    shutil.rmtree('/var/lib/rocecast', ignore_errors=True)
    output('mount', '--bind', os.path.join(ROOT, os.environ['INSTALLED'], 'usr/local'), '/usr/local')
    units = '/run/own-units'
    os.mkdir(units)
    for name in OWN:
        shutil.copy(os.path.join(UNITS, name), units)
    for target, wanted in WANTS.items():
        os.mkdir('%s/%s.wants' % (units, target))
        for name in wanted:
            os.symlink('../' + name, '%s/%s.wants/%s' % (units, target, name))
    drop_in = units + '/systemd-tmpfiles-setup.service.d'
    os.mkdir(drop_in)
    with open(drop_in + '/keep-tmp.conf', 'w', encoding='utf-8') as f:
        f.write(TMPFILES)
    output('mount', '--bind', units, UNITS)
    for folder in ('/etc/systemd/system', '/usr/lib/systemd/system-generators'):
        output('mount', '-t', 'tmpfs', '-o', 'mode=755', 'none', folder)


class Boot:
    """systemd from its start until power_off()."""

    def __init__(self, number):
        with open(os.path.join(RESULTS, 'systemd-%d.log' % number), 'wb') as log:
            self.unshare = subprocess.Popen(
                ['unshare', '--fork', '--kill-child', '--pid', '--uts', '--mount', '--mount-proc', '--cgroup',
                 '/usr/lib/systemd/systemd', '--system', '--unit=multi-user.target'],
                env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        children = '/proc/%d/task/%d/children' % (self.unshare.pid, self.unshare.pid)

        def first():
            with open(children, encoding='utf-8') as f:
                return f.read().strip()
        pid = wait_until('the namespace has a process', first)
        self.nsenter = ['nsenter', '--target', pid, '--pid', '--mount', '--cgroup']
        # It may still be unshare, which has not mounted /proc yet.
        wait_until('systemd takes commands', lambda: run(
            *self.nsenter, 'systemctl', 'show', '--property=Version').returncode == 0)

    def run(self, *argv):
        """Runs a command there; returns its exit status."""
        return subprocess.run(self.nsenter + list(argv), check=False, stdin=subprocess.DEVNULL).returncode

    def power_off(self):
        """All at once, and what a machine has in memory only is gone."""
        self.unshare.send_signal(signal.SIGKILL)
        self.unshare.wait()
        for folder in ('/run/systemd', '/run/log', '/run/rocecast'):
            shutil.rmtree(folder, ignore_errors=True)
