# SPDX-License-Identifier: Apache-2.0
"""What a lab could leave behind in the namespaces of the calling program."""
import glob
import os
import subprocess


def _ip(*argv):
    return subprocess.run(['ip', *argv], check=True, stdout=subprocess.PIPE, text=True).stdout


def processes():
    """Processes in this network namespace."""
    mine = os.readlink('/proc/self/ns/net')
    found = []
    for path in glob.glob('/proc/[0-9]*'):
        try:
            if os.readlink(path + '/ns/net') == mine:
                with open(path + '/cmdline') as f:
                    found.append((int(path[6:]), f.read().replace('\0', ' ')))
        except OSError:
            pass        # ended meanwhile, or a zombie
    return sorted(found)


def snapshot():
    """To be compared with one from before the lab."""
    return {'rules': _ip('-6', 'rule'),
            'routes': _ip('-6', 'route', 'show', 'table', 'all'),
            'addresses': _ip('-br', 'addr'),
            'namespaces': _ip('netns'),
            'processes': processes(),
            'labs': glob.glob(os.environ['ROCECAST_RUNDIR'] + '/lab/*')}
