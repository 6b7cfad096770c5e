# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end cases stand on: a lab, its daemons' counters, verbs programs.

Everything is reached as a user reaches it: castlab, castctl, ovs-appctl.  Waits
are for conditions with a time limit, never for a time.
"""
import glob
import json
import os
import re
import subprocess
import sys
import time
import traceback

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), '..', '..'))
sys.path.insert(1, os.path.join(ROOT, 'tests'))

from proof import where                                                        # noqa: E402

BIN = os.path.join(ROOT, os.environ.get('ROCECAST_BIN', 'build/bin'))
RESULTS = os.environ.get('RESULTS', '/tmp/rocecast-e2e')
RUNDIR = os.environ.get('ROCECAST_RUNDIR', '/run/rocecast')
WORK = os.path.join(RUNDIR, 'e2e')
PSN_MASK = 0xffffff

# What cases write if nothing else matters: blocks of 16 packets.
BLOCK = 65536
MTU = 4096

# A lost NAK costs a time-out: 4.096 us * 2^18 is about a second.
QP_TIMEOUT = '18'

# Seconds after which something hangs, on however busy a machine.  What a failed case leaves may keep each one behind
# it waiting, so from then on they have less.
PATIENCE = 600
PATIENCE_AFTER_FAILURE = 60


# What looks at a lab goes before what it looks at: that takes all the time there is in an emulated machine.
AHEAD = ('castctl', 'ovs-appctl')


class Failure(Exception):
    """A case's expectation did not hold."""


def lose_patience():
    global PATIENCE  # pylint: disable=global-statement
    PATIENCE = PATIENCE_AFTER_FAILURE


def check(condition, message, *args):
    if not condition:
        raise Failure(message % args if args else message)


def check_equal(what, got, wanted):
    check(got == wanted, '%s: %r, should be %r', what, got, wanted)


def run(*argv, env=None):
    """Runs a command to its end; returns the completed process, text captured."""
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=dict(os.environ, **(env or {}))) as p:
        if argv[0] in AHEAD:
            os.setpriority(os.PRIO_PROCESS, p.pid, -10)
        try:
            out, err = p.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            p.kill()
            raise Failure('%s: still running after %d s' % (' '.join(argv), PATIENCE)) from None
    return subprocess.CompletedProcess(argv, p.returncode, out, err)


def output(*argv):
    p = run(*argv)
    check(p.returncode == 0, '%s: exit status %d: %s', ' '.join(argv), p.returncode,
          (p.stderr or p.stdout).strip())
    return p.stdout


def wait_until(what, condition, every=0.1):
    """Waits for condition() to be true and returns its value; looks again after 'every' seconds."""
    end = time.monotonic() + PATIENCE
    while True:
        value = condition()
        if value:
            return value
        check(time.monotonic() < end, 'after %d s still not: %s', PATIENCE, what)
        time.sleep(every)


def work_file(name, data=None):
    """Path of a file in the scratch folder, filled with data if given."""
    os.makedirs(WORK, exist_ok=True)
    path = os.path.join(WORK, name)
    if data is not None:
        with open(path, 'wb') as f:
            f.write(data)
    return path


def read(path):
    with open(path, 'rb') as f:
        return f.read()


def castctl(*argv):
    return output('castctl', *argv)


def castctl_json(*argv):
    return json.loads(castctl('-j', *argv))


def group_add(name, *options):
    castctl('group', 'add', name, '--timeout', QP_TIMEOUT, *options)


def pattern(length, seed):
    """Bytes in which no two blocks are alike."""
    unit = b''.join((i * 2654435761 + seed & 0xffffffff).to_bytes(4, 'big') for i in range(1021))
    return (unit * (length // len(unit) + 1))[:length]


def end_psn(group, n_blocks):
    """The PSN after the last of that many blocks."""
    return castctl_json('group', 'show', group)['start_psn'] + n_blocks * BLOCK // MTU & PSN_MASK


def data_flows(lab, group, node):
    """Whether all branches of a node have confirmed something in the group's current epoch."""
    shown, state = castctl_json('group', 'show', group), lab.group(node, group)
    return state and state['epoch'] == shown['epoch'] and state['told'] != shown['start_psn']


def statistic(host):
    """What the host's RDMA device has counted: {name: number}."""
    shown, = json.loads(output('rdma', '-j', 'statistic', 'show', 'link', 'rxe_%s/1' % host))
    return {name: n for name, n in shown.items() if name not in ('ifname', 'port')}


def resent(source, receivers):
    """How often the source has gone back, and what receivers have got twice, as rxe has counted."""
    return (statistic(source)['completer_retry_err'],
            sum(statistic(host)['duplicate_request'] for host in receivers))


NETWORK = (('ip', '-6', 'rule'), ('ip', '-6', 'route', 'show', 'table', 'all'), ('ip', 'addr'),
           ('ip', 'netns'))


def network_snapshot():
    return {' '.join(c): output(*c) for c in NETWORK}


def down_leaves_nothing(lab, before):
    """A case: 'before' is network_snapshot() from before the lab."""
    lab.down()
    after = network_snapshot()
    for name, text in before.items():
        check_equal(name, after[name], text)


class Lab:
    """A running lab: h0 on srcagent sa is the source (and h1 may be), all other hosts receive."""

    def __init__(self, topology, *parameters, name='e2e', edit=('', '')):
        """'topology': a name in testbed/topologies, in which 'edit' (old, new) is made; 'parameters':
        KEY=VALUE."""
        self.topology = topology
        self.edit = edit
        self.parameters = [a for p in parameters for a in ('-p', p)]
        self.name = name
        self.receivers = []
        self.control = {}    # socket by node.
        self.addresses = {}  # by host.

    def up(self):
        with open(os.path.join(ROOT, 'testbed/topologies', self.topology + '.yaml'), encoding='utf-8') as f:
            file = work_file(self.topology + '.yaml', f.read().replace(*self.edit).encode())
        output('castlab', 'up', file, *self.parameters, '--name', self.name, '--timeout', str(PATIENCE))
        env = output('castlab', 'env', self.name)
        os.environ['ROCECAST_DB'] = re.search(r'ROCECAST_DB=[\'"]?([^\s\'";]+)', env).group(1)
        self.receivers = sorted(h['name'] for h in castctl_json('host', 'list')
                                if not re.fullmatch('h[01]', h['name']))
        return self

    def down(self):
        output('castlab', 'down', self.name)
        os.environ.pop('ROCECAST_DB', None)

    def appctl(self, node, *command):
        if node not in self.control:
            self.control = {n['name']: n['control'] for n in castctl_json('node', 'list')}
        return output('ovs-appctl', '-t', self.control[node], *command)

    def drops(self, node):
        return json.loads(self.appctl(node, 'rocecast/counters', '-j'))['drops']

    def all_drops(self):
        return {node: counters['drops'] for node, counters in castctl_json('stats').items()}

    def links(self):
        """[(node, port, peer)] of all ports of forwarders."""
        found = []
        for link in castctl_json('link', 'list'):
            (a, a_port), (b, b_port) = link['a'].split(':'), link['b'].split(':')
            found += [(a, a_port, b), (b, b_port, a)]
        return sorted(f for f in found if f[0] not in ['h0', *self.receivers])

    def fabric(self):
        """[(node, port, peer)] of the ports between forwarders."""
        return [p for p in self.links() if p[2] not in ['h0', *self.receivers]]

    def port(self, node, peer):
        """Name of the port of 'node' that leads to 'peer'."""
        return next(port for n, port, p in self.links() if (n, p) == (node, peer))

    def device(self, node, port):
        """A forwarder's port as castbench --count-bytes wants it."""
        return '%s-%s:%s' % (self.name, node, port)

    def impaired(self):
        """{(from, to): counters} of links that are bad, as 'castctl link impair' has them."""
        peers = {(node, port): peer for node, port, peer in self.links()}
        found = {}
        for node, counters in castctl_json('stats').items():
            for c in counters['impaired']:
                way = node, peers[node, c['port']]
                found[way if c['direction'] == 'tx' else way[::-1]] = c
        return found

    def group(self, node, name):
        """State of a group's current epoch at a node; None before it gets there."""
        groups = json.loads(self.appctl(node, 'rocecast/groups', '-j'))
        return max((g for g in groups if g['group'] == name), key=lambda g: g['epoch'],
                   default=None)

    def address(self, host):
        if host not in self.addresses:
            self.addresses = {h['name']: h['address'] for h in castctl_json('host', 'list')}
        return self.addresses[host]

    def log(self, daemon):
        """What this daemon has logged."""
        with open(os.path.join(RUNDIR, 'lab', self.name, daemon + '.log'), errors='replace') as f:
            return f.read()

    def log_sizes(self):
        return {path: os.path.getsize(path)
                for path in glob.glob(os.path.join(RUNDIR, 'lab', self.name, '*.log'))}

    def logs(self, since, lines=15):
        """The last lines that each daemon logged after log_sizes() returned 'since'."""
        text = ''
        for path in sorted(self.log_sizes()):
            with open(path, errors='replace') as f:
                f.seek(since.get(path, 0))
                tail = f.readlines()[-lines:]
            if tail:
                text += '    -- %s\n%s' % (path, ''.join('    ' + line for line in tail))
        return text


# Reasons that only a fault in the forwarders, or a packet that should not exist, can give.
FAULTS = ('pool_empty too_long vlan ext_chain ip6_option srh_malformed srh_tlv mt_tlv_malformed '
          'inner_malformed roce_short roce_tver hop_limit no_route no_neighbour neigh_queue '
          'tx_error source_guard mt_no_srh mt_segments_left mt_inner mt_no_tlv mt_context '
          'group_unknown stale_epoch inner_source not_provisioned qpn_mismatch icrc psn_jump '
          'mr_range rkey opcode refused no_parent unknown_branch wrong_port psn_not_sent '
          'resp_opcode').split()


class no_drops:
    """Checks that in its block no packet was dropped for a reason of FAULTS, but for those
    'expected'.  'restarted' is a node that starts to count again, and no more knows what was sent:
    until that is sent once more it takes answers to it for answers to nothing."""

    def __init__(self, lab, *expected, restarted=None):
        self.lab = lab
        self.restarted = restarted, 'psn_not_sent'
        self.reasons = [r for r in FAULTS if r not in expected]

    def __enter__(self):
        self.before = self.lab.all_drops()  # forwarders that are not ours know few of the reasons.
        node = self.restarted[0]
        if node:
            self.before[node] = dict.fromkeys(self.before[node], 0)

    def __exit__(self, kind, value, tb):
        if kind:
            return
        after = self.lab.all_drops()
        grown = {(node, r): after[node][r] - before[r] for node, before in self.before.items()
                 for r in self.reasons if r in before
                 if after[node][r] != before[r] and (node, r) != self.restarted}
        check(not grown, 'packets dropped, by node and reason: %s', grown)


class Netem:
    """In its block tc's netem, with these options, is on what the ports in 'links' (see
    Lab.links()) send."""

    def __init__(self, lab, links, *options):
        self.lab = lab
        self.links = links
        self.options = options

    def qdisc(self, verb, node, port, *options):
        output('castlab', 'exec', '-l', self.lab.name, node, '--',
               'tc', 'qdisc', verb, 'dev', port, 'root', *options)

    def __enter__(self):
        for node, port, _ in self.links:
            self.qdisc('add', node, port, 'netem', *self.options)
        return self

    def change(self, *options):
        """Other options from now on; unlike at the block's end nothing that waits is lost."""
        for node, port, _ in self.links:
            self.qdisc('change', node, port, 'netem', *options)

    def __exit__(self, kind, value, tb):
        for node, port, _ in self.links:
            self.qdisc('del', node, port)


def impair(links, *words):
    """Makes links, ends as 'castctl link list' has them, bad both ways, each with a seed of its
    own; or, with 'none', good.  Returns when the forwarders do it."""
    for i, ends in enumerate(links):
        seed = [] if words == ('none',) else ['seed=%d' % i]
        castctl('link', 'impair', *ends, '--both', *words, *seed)
    castctl('--wait=agents', 'link', 'impair', *links[-1], '--both', *words, *seed)


def all_links():
    return [(link['a'], link['b']) for link in castctl_json('link', 'list')]


class Captures:
    """In its block, what the ports in 'links' (see Lab.links()) send and receive goes to
    FOLDER/NODE-PEER.pcap."""

    def __init__(self, lab, links, folder):
        self.lab = lab
        self.links = links
        self.folder = folder
        os.makedirs(folder, exist_ok=True)

    def __enter__(self):
        # Not in the folder itself: that may be on a slow file system.
        for node, port, peer in self.links:
            self.lab.appctl(node, 'rocecast/capture-start', '--force', port,
                            work_file('%s-%s.pcap' % (node, peer)))

    def __exit__(self, kind, value, tb):
        for node in sorted({node for node, _, _ in self.links}):
            self.lab.appctl(node, 'rocecast/capture-stop', '--all')
        for node, _, peer in self.links:
            name = '%s-%s.pcap' % (node, peer)
            with open(os.path.join(self.folder, name), 'wb') as f:
                f.write(read(work_file(name)))


def write_meta(lab, group_name, folder):
    """What a checker of captures has to know of a group and its lab: FOLDER/meta.json."""
    group = castctl_json('group', 'show', group_name)
    nodes = {}
    for n in castctl_json('node', 'list'):
        ports = json.loads(lab.appctl(n['name'], 'rocecast/ports', '-j'))
        nodes[n['name']] = {'id': n['id'], 'macs': {p['peer']: p['mac'] for p in ports}}
    meta = {
        'nodes': nodes,
        'source': {'address': lab.address('h0'), 'qpn': group['source']['qpn']},
        'group': {k: group[k] for k in ('proxy', 'designated_qpn', 'designated_rkey',
                                        'start_psn', 'mtu')},
        'receivers': [{'host': m['host'], 'address': lab.address(m['host']), 'qpn': m['qpn'],
                       'rkey': m['rkey'], 'va': m['va']} for m in group['members']],
    }
    with open(os.path.join(folder, 'meta.json'), 'w') as f:
        json.dump(meta, f, indent=1)


class Castbench:
    """castbench write, over a group or, without one, over unicast connections."""

    def __init__(self, lab, group, *options, receivers=None, operation='write', timeout=PATIENCE,
                 source='h0'):
        self.out = work_file('out-%s' % (group or 'unicast'))
        self.report = os.path.join(self.out, 'report.json')
        os.makedirs(self.out, exist_ok=True)
        scheme = ['--group', group] if group else ['--scheme', 'unicast']
        self.process = subprocess.Popen(
            ['castbench', operation, *scheme, '--source', source,
             '--receivers', ','.join(receivers or lab.receivers), '--out', self.out,
             '--json', self.report, '--timeout', str(timeout), *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        running.append(self)

    def wait(self):
        """Returns (exit status, what it printed)."""
        try:
            text = self.process.communicate(timeout=PATIENCE)[0]
        except subprocess.TimeoutExpired:
            raise Failure('castbench: still running after %d s' % PATIENCE) from None
        return self.process.returncode, text

    def result(self):
        """Of a single run: returns (what the report says of it, folder of the regions)."""
        status, text = self.wait()
        check(status == 0, 'castbench: exit status %d: %s', status, text.strip())
        report = self.read_report()
        check_equal('runs', len(report['runs']), 1)
        return report['runs'][0], self.out

    def read_report(self):
        with open(self.report) as f:
            return json.load(f)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


def castbench(lab, group, *options, receivers=None, source='h0'):
    return Castbench(lab, group, *options, receivers=receivers, source=source).result()


def check_replicas(lab, result, out, receivers=None):
    """Compares every receiver's memory with what the source sent, castbench aside."""
    sent = read(os.path.join(out, 'source.bin'))
    check_equal('region length', len(sent), result['region_len'])
    for host in receivers or lab.receivers:
        check(read(os.path.join(out, host + '.bin')) == sent, "%s's memory differs", host)
    for replica in result['replicas']:
        check_equal(replica['host'], replica['bytes_ok'], len(sent))


class JoinRc:
    """A tests/verbs/joinrc process."""

    def __init__(self, lab, role, group, host, *options):
        self.name = '%s %s' % (role, host)
        self.out_path = work_file('joinrc-%s-%s.out' % (group, host))
        with open(self.out_path, 'w') as out:
            self.process = subprocess.Popen(
                ['joinrc', '--' + role, '--group', group, '--host', host,
                 '--address', lab.address(host), '--timeout', str(PATIENCE), *options],
                stdin=subprocess.PIPE, stdout=out, stderr=subprocess.STDOUT)
        running.append(self)

    def text(self):
        with open(self.out_path) as f:
            return f.read()

    def count(self, line):
        return len(re.findall('^%s$' % line, self.text(), re.M))

    def wait_line(self, line, times=1):
        def seen():
            if self.count(line) >= times:
                return True
            check(self.process.poll() is None, '%s ended with status %s: %s', self.name,
                  self.process.poll(), self.text())
            return False
        wait_until('%s says %r' % (self.name, line), seen)

    def tell(self, word):
        try:
            os.write(self.process.stdin.fileno(), word.encode() + b'\n')
        except BrokenPipeError:
            raise Failure('%s ended with status %s: %s'
                          % (self.name, self.wait(), self.text())) from None

    def wait(self):
        """Returns the exit status."""
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise Failure('%s: still running after %d s: %s'
                          % (self.name, PATIENCE, self.text())) from None

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdin.close()


class Receiver(JoinRc):
    def __init__(self, lab, group, host, length, *options):
        self.region_path = work_file('joinrc-%s-%s.bin' % (group, host))
        super().__init__(lab, 'receiver', group, host, '--len', str(length),
                         '--out', self.region_path, *options)

    def armed(self, epoch):
        self.wait_line('epoch %d' % epoch)

    def region(self):
        n = self.count('dumped')
        self.tell('dump')
        self.wait_line('dumped', n + 1)
        return read(self.region_path)


class Source(JoinRc):
    def __init__(self, lab, group, *options, host='h0'):
        super().__init__(lab, 'source', group, host, '--members', str(len(lab.receivers)),
                         *options)

    def done(self):
        status = self.wait()
        check(status == 0, 'source: exit status %d: %s', status, self.text())


class Example:
    """A program, such as those in docs/api.md."""

    def __init__(self, *argv):
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)
        running.append(self)

    def wait(self):
        """Returns (exit status, what it printed)."""
        text, _ = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, text

    def check_result(self, wanted):
        check_equal('%s: exit status and output' % ' '.join(self.process.args),
                    self.wait(), (0, wanted))

    def kill(self):
        self.process.kill()
        self.process.wait()


def processes_of(bench):
    """Children of what has a process."""
    with open('/proc/%d/task/%d/children' % (bench.process.pid, bench.process.pid)) as f:
        return [int(pid) for pid in f.read().split()]


running = []  # processes of the current case, to be killed at its end


class Suite:
    """Cases run one after another; a failure stops only its own."""

    def __init__(self):
        self.passed = self.failed = 0
        self.is_long = os.environ.get('LONG') == '1'

    def case(self, name, function, lab, *args):
        start = time.monotonic()
        sizes = lab.log_sizes()
        try:
            function(lab, *args)
            why = None
        except Failure as e:
            why = str(e)
        except Exception:  # pylint: disable=broad-except
            why = traceback.format_exc()
        for process in running:
            process.kill()
        running.clear()
        took = time.monotonic() - start
        if why is None:
            self.passed += 1
            print('ok    %s (%.1f s) %s' % (name, took, where(function)), flush=True)
        else:
            self.failed += 1
            lose_patience()
            print('FAIL  %s (%.1f s) %s: %s\n%s'
                  % (name, took, where(function), why, lab.logs(sizes)), flush=True)
        return why is None

    def long_case(self, name, *args):
        """A case whose function has another case, in less time: only with LONG=1."""
        if self.is_long:
            self.case(name, *args)

    def finish(self):
        print('%d passed, %d failed' % (self.passed, self.failed), flush=True)
        return 1 if self.failed or not self.passed else 0
