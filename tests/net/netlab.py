# SPDX-License-Identifier: Apache-2.0
"""What the cases of the net tier stand on: labs of any shape, castmodel, exact counts."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), '..', '..'))
sys.path[:0] = [os.path.join(ROOT, 'tests/e2e'), os.path.join(ROOT, 'tests/lab')]

import harness                                            # noqa: E402
from harness import (PSN_MASK, castctl, castctl_json, check, check_equal, output,  # noqa: E402
                     run, wait_until)
from leftovers import snapshot                            # noqa: E402
from trees import check_confirmed                         # noqa: E402

# Even where nothing is lost a transfer may have repeats, if the machine did not let a process run
# for long, and now and then a node asks whether its neighbour is still there.  Counts are compared
# for a transfer to which neither happened: if need be, for a shorter one.
EXACT_ATTEMPTS = 6

# Of each forwarder.
THREADS = os.environ.get('THREADS', '1')


def in_namespace(script, *argv, **how):
    """Runs a script in a network and mount namespace of its own, with --inside in front of what it is
    given; returns the process, which ran as 'how' says.  Needs root."""
    os.makedirs('/run/netns', exist_ok=True)
    with tempfile.TemporaryDirectory(prefix='net', dir='/tmp') as rundir:
        env = dict(os.environ, ROCECAST_RUNDIR=rundir, PATH=harness.BIN + ':' + os.environ['PATH'])
        env.pop('ROCECAST_DB', None)
        return subprocess.run(['unshare', '--net', '--mount', '--propagation', 'private', sys.executable, script,
                               '--inside', *argv], check=False, env=env, **how)


def prepare_namespace():
    """What labs need, in the namespace."""
    output('mount', '-t', 'tmpfs', 'none', '/run/netns')
    output('ip', 'link', 'set', 'lo', 'up')
    # Packets from one host of a lab to another are to cross its fabric (docs/castlab.md); without
    # RDMA castlab leaves this rule alone.
    output('ip', '-6', 'rule', 'add', 'pref', '100', 'lookup', 'local')
    output('ip', '-6', 'rule', 'del', 'pref', '0')
    # All hosts are one kernel, which limits what it answers to each other host.
    output('sysctl', '-q', 'net.ipv6.icmp.ratelimit=0')


class Lab(harness.Lab):
    """A topology file's lab, without RDMA."""

    def __init__(self, text, *parameters):
        super().__init__(None, *parameters, name=re.search('^name: (.*)$', text, re.M)[1])
        self.text = text
        self.threads = THREADS
        self.before = None
        self.ports = {}
        self.routers = []
        self.switches = []

    @classmethod
    def shipped(cls, name, *parameters, edit=('', '')):
        """One of testbed/topologies, with 'edit' (old, new) made."""
        with open(os.path.join(ROOT, 'testbed/topologies', name + '.yaml')) as f:
            return cls(f.read().replace(*edit), *parameters)

    def up(self):
        self.before = snapshot()
        path = harness.work_file(self.name + '.yaml', self.text.encode())
        output('castlab', 'up', '--no-rdma', '--threads', self.threads, path, *self.parameters)
        env = output('castlab', 'env', self.name)
        os.environ['ROCECAST_DB'] = re.search("ROCECAST_DB='(.*)'", env)[1]
        nodes = castctl_json('node', 'list')
        self.routers = [node['name'] for node in nodes if node['role'] == 'router']
        self.switches = [node['name'] for node in nodes if node['role'] == 'ovs']
        for node in nodes:
            ports = json.loads(self.appctl(node['name'], 'rocecast/ports', '-j'))
            self.ports[node['name']] = {p['name']: p['peer'] for p in ports}
        return self

    def down(self):
        """Also checks that nothing is left."""
        output('castlab', 'down', self.name)
        os.environ.pop('ROCECAST_DB', None)
        wait_until('the processes are gone',
                   lambda: snapshot()['processes'] == self.before['processes'])
        check_equal('what is left after down', snapshot(), self.before)

    def sent(self):
        """Packets sent by each node to each neighbour, but for questions and answers about who is
        there: how many of those a host gets depends on the time that a case takes."""
        return {(node, self.ports[node][port]):
                c['tx_packets'] - self.discovery(self.ports[node][port])
                for node, counters in castctl_json('stats').items()
                for port, c in counters['ports'].items()}

    def discovery(self, peer):
        """Packets of neighbour discovery that a host's kernel has received; 0 of a forwarder."""
        path = '/proc/net/dev_snmp6/%s-%s' % (self.name, peer)
        if not os.path.exists(path):
            return 0
        with open(path, encoding='utf-8') as f:
            return sum(map(int, re.findall(r'^Icmp6InNeighbor\w+\s+(\d+)$', f.read(), re.M)))

    def own_messages(self):
        """What the kernels of routers have sent themselves, such as multicast listener reports."""
        text = {node: output('castlab', 'exec', node, '--', 'cat', '/proc/net/snmp6')
                for node in self.routers}
        return {node: int(re.search(r'^Icmp6OutMsgs\s+(\d+)$', t, re.M)[1])
                for node, t in text.items()}

    def wait_counted(self, group, n):
        """Open vSwitch counts once in a while what its datapath has done: what it has not when the
        group's flow goes, with the next epoch, it takes for packets that nobody wants."""
        for node in self.switches:
            wait_until('%s has counted %d packets' % (node, n),
                       lambda node=node: self.group(node, group)['packets'] >= n)

    def faults(self):
        """Packets that nodes have dropped, by reason, and that ports have lost."""
        found = {}
        for node, counters in castctl_json('stats').items():
            found.update({(node, reason): n for reason, n in counters['drops'].items() if n})
            found.update({(node, port, kind): c[kind] for port, c in counters['ports'].items()
                          for kind in ('rx_errors', 'tx_errors', 'tx_too_long') if c[kind]})
        return found


class no_faults:
    """Checks that in its block no packet was dropped or lost, but for these reasons."""

    def __init__(self, lab, *expected):
        self.lab = lab
        self.expected = expected

    def __enter__(self):
        self.before = self.lab.faults()

    def __exit__(self, kind, value, tb):
        if not kind:
            grown = {k: n for k, n in self.lab.faults().items()
                     if n != self.before.get(k) and k[1] not in self.expected}
            check(not grown, 'dropped or lost: %s', grown)


def group_add(name, *options):
    """Receivers of a group that is not used any more are not asked whether they live, unless 'options'
    have a liveness time: the next group's endpoints have their addresses."""
    if '--liveness' not in options:
        options += ('--liveness', '0')
    castctl('group', 'add', name, *options)


def model_argv(group, receivers, options, source='h0'):
    return ['castmodel', *(['--group', group] if group else []), '--source', source,
            '--receivers', ','.join(receivers), *options]


def check_model(result, receivers):
    """The source has completed all, the receivers have all bytes, and nothing came that no
    endpoint takes."""
    for lane in result['lanes']:
        check_equal('completed blocks', lane['completed'], result['count'])
        check_equal('packets dropped and stray at the source', (lane['dropped'], lane['stray']),
                    (0, 0))
    for name in receivers:
        r = result['receivers'][name]
        check_equal('right bytes at %s' % name, r['bytes_ok'], result['region_len'])
        check_equal('packets dropped, of a wrong source and stray at %s' % name,
                    (r['dropped'], r['wrong_source'], r['stray']), (0, 0, 0))


def model(group, receivers, *options, source='h0'):
    """Runs castmodel to its end; returns its report."""
    p = run(*model_argv(group, receivers, options, source))
    check(p.returncode == 0, 'castmodel: exit status %d: %s', p.returncode,
          (p.stderr + p.stdout).strip())
    result = json.loads(p.stdout)
    check_model(result, receivers)
    return result


class Loop:
    """castmodel that goes on until stop(), in the first epoch of a group."""

    def __init__(self, lab, group, receivers, *options, source='h0'):
        self.receivers = receivers
        self.process = subprocess.Popen(model_argv(group, receivers, ['-n', '0', *options], source),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        harness.running.append(self)
        self.lab = lab
        self.group = group

    def kill(self):
        """Whatever has become of it; the suite calls this after each case."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()

    def wait_progress(self, node, n_packets=2000):
        """Waits until that many packets more are confirmed at the node."""
        def confirmed():
            if self.process.poll() is not None:
                raise harness.Failure('castmodel has ended: ' + ''.join(self.process.communicate()))
            state = self.lab.group(node, self.group)
            return state and state['started'] and state['confirmed']
        start = wait_until('the group has started at %s' % node, confirmed)
        wait_until('%d packets more confirmed at %s' % (n_packets, node),
                   lambda: n_packets <= confirmed() - start & PSN_MASK < 1 << 23)

    def stop(self, without=()):
        """Lets it complete what is outstanding; returns its report.  Receivers 'without' may lack
        bytes."""
        self.process.send_signal(signal.SIGTERM)
        try:
            out, err = self.process.communicate(timeout=harness.PATIENCE)
        except subprocess.TimeoutExpired:
            raise harness.Failure('castmodel does not come to its end') from None
        check(self.process.returncode == (2 if without else 0) and out,
              'castmodel: exit status %d: %s', self.process.returncode, err + out)
        result = json.loads(out)
        check_model(result, [r for r in self.receivers if r not in without])
        return result


def forget_own(sent, wanted, own):
    """Takes from 'sent' what routers have sent themselves, at most so many by node."""
    for node, n in own.items():
        links = [link for link in sent if link[0] == node]
        extra = [sent[link] - wanted.get(link, 0) for link in links]
        if min(extra, default=0) >= 0 and sum(extra) <= n:
            for link in links:
                sent[link] = wanted.get(link, 0)
            for link in [link for link in links if not sent[link]]:
                del sent[link]


def exact(lab, group, tree, *options, first=('-n', '1', '-s', '64')):
    """A transfer in which every packet is counted: copies on each link of the tree and on no
    other, responses merged to one, nothing dropped.  Returns castmodel's report.  'first' is the
    transfer before it, after which all neighbours are known."""
    result = model(group, tree.receivers, *first)
    lab.wait_counted(group, result['lanes'][0]['sent'])
    for _ in range(EXACT_ATTEMPTS):
        with no_faults(lab):
            own_before = lab.own_messages()
            before = lab.sent()
            result = model(group, tree.receivers, *options)
            lab.wait_counted(group, result['lanes'][0]['sent'])
            after = lab.sent()
            own = {node: n - own_before[node] for node, n in lab.own_messages().items()}
        source = result['lanes'][0]
        sent = {k: n - before[k] for k, n in after.items() if n != before[k]}
        wanted = tree.sent(source['sent'], source['responses'])
        forget_own(sent, wanted, own)
        if not source['retries'] and sent == wanted:
            break
        options = *options, '-n', str(max(1, result['count'] // 2))
    check_equal('repeats', source['retries'], 0)
    for name in tree.receivers:
        receiver = result['receivers'][name]
        check_equal('packets at %s' % name, receiver['requests'], source['sent'])
        check_equal('acknowledgements of %s, of which as many reach the source' % name,
                    receiver['acks'], source['responses'])
    check_equal('packets sent by (node, neighbour)', sent, wanted)
    check_confirmed(lab, group, tree, source['next'])
    return result
