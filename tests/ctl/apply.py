# SPDX-License-Identifier: Apache-2.0
"""A file that says what there is: castctl apply and export."""
import errno
import json
import os
import re
import subprocess
import time

from world import BIN, PATIENCE, check, check_equal

NETWORK = """
nodes:
  n1: {id: 0x100, role: switch, plane: A}
  n2: {id: 257, role: switch, aggregate: "no"}
  a0: {id: 512, role: agent, programs: "5f00:0:100::/48"}
hosts:
  h0: {address: "fd00:1::100", path-policy: failover, line-rate: 2500M}
  r1: {address: "fd00:1::1"}
  r2: {address: "fd00:1:0::2"}
links:
  - {endpoints: ["h0:th0", "a0:th0"]}
  - {endpoints: ["a0:up", "n1:a0"], external: on}
  - endpoints: ["n1:n2", "n2:n1"]
    forward: loss=1%
    excluded: on
  - {endpoints: ["n1:tr1", "r1:tr1"]}
  - {endpoints: ["n2:tr2", "r2:tr2"]}
groups:
  g: {policy: prune, liveness: 20000, connect: on, members: {r1: {listen: 7174}}}
  idle:
    mtu: 4096
    psn: 7
"""


def write(w, name, text):
    path = os.path.join(w.dir, name)
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text)
    return path


def apply(w, text, *options):
    """What is said of the file: its lines."""
    return w.castctl(' '.join(['apply', '-f', write(w, 'file', text), *options])).splitlines()


def changes(w, text, *options):
    """Likewise as JSON: (change, family, name, setting, before, after)."""
    said = json.loads(w.castctl(' '.join(['-j apply --file', write(w, 'file', text), *options])))
    check_equal('dry run', said['dry_run'], '--dry-run' in options)
    return [tuple(c[k] for k in ('change', 'family', 'name', 'setting', 'before', 'after')) for c in said['changes']]


def tables(w):
    """What operators write, without what castd makes of it."""
    return {name: sorted(json.dumps({c: v for c, v in row.items() if c[0] != '_' and c not in made}, sort_keys=True)
                         for row in w.db.rows(name))
            for name, made in (('Node', ('cfg', 'nb_cfg', 'ports', 'routes', 'next_hops', 'sids', 'destinations', 'trees', 'finds_rows', 'named_trees', 'probes',
                                         'probers', 'queue_rates', 'capable', 'trusted', 'rate_control', 'controller',
                                         'line_rate', 'rate_floor', 'cnp_interval', 'fast_cnp_rate')),
                               ('Host', ()), ('Link', ()),
                               ('Group', ('generation', 'state', 'status', 'start_psn', 'designated_rkey', 'proxy',
                                          'designated_qpn', 'replication_id')),
                               ('Listener', ('group', 'status')))}


def applies(w):
    """A network from a file is the same as by single commands; again, nothing changes; and what is exported is what
    there is."""
    said = apply(w, NETWORK)
    for line in ('+ node n1 id=256 role=switch aggregate=yes verify=auto plane=A excluded=off',
                 '+ link h0:th0 a0:th0 kind=tap external=off', '+ member g r1 listen=7174',
                 '14 to add, 0 to change, 0 to remove'):
        check(line in said, '%r is not in %r', line, said)
    check_equal('lines', len(said), 15)
    shown = w.show()
    check_equal('group', [shown[k] for k in ('policy', 'liveness_ms', 'mtu')], ['prune', 20000, 1024])
    check_equal('PSN', w.db.row('Group', name='idle')['psn'], 7)
    row = w.db.row('Link', a='n1', b='n2')
    check_equal('link', [row[k] for k in ('a_to_b', 'b_to_a', 'excluded')], ['loss=1%', '', True])
    check_equal('host', [w.db.row('Host', name='h0')[k] for k in ('path_policy', 'line_rate')],
                ['failover', 2500000000])

    before, number = tables(w), w.db.row('Global')['next_cfg']
    for text in (NETWORK, w.castctl('export'), w.castctl('-j export')):
        check_equal('again', apply(w, text), ['nothing to change'])
        check_equal('again, all of it', apply(w, text, '--prune'), ['nothing to change'])
        check_equal('as JSON', changes(w, text), [])
    check_equal('the registry', (tables(w), w.db.row('Global')['next_cfg']), (before, number))

    # From nothing to the same.
    exported = w.castctl('export')
    check_equal('removed', apply(w, 'nodes: {}\nhosts: {}\nlinks: []\ngroups: {}\n', '--prune')[-1],
                '0 to add, 0 to change, 14 to remove')
    check_equal('nothing left', w.castctl('export'), 'nodes: {}\nhosts: {}\nlinks: []\ngroups: {}\n')
    apply(w, exported)
    check_equal('the same again', w.castctl('export'), exported)
    check_equal('its links', tables(w)['Link'], before['Link'])


def export_is_no_change(w):
    """Also with members whose queue pairs are registered, kept ones, planes, keys and a path policy that needs force."""
    w.ready_group(['r1', 'r2'])
    w.castctl('member add g r3 --qpn 19 --psn 7 --keep')
    w.castctl('key add 7 --generate')
    w.castctl('group add h --auth hmac --key 7 --planes A,B')
    w.castctl('group plane h B')
    w.castctl('host set r1 --path-policy spray --force')
    w.castctl('link impair n1 n2 delay=2ms jitter=500us --both')
    before = w.dump()
    for line in ('export', '-j export'):
        text = w.castctl(line)
        check_equal(line, apply(w, text, '--prune'), ['nothing to change'])
        check(not re.search('[0-9a-f]{32}', text), 'a secret')
    check_equal('the registry', w.dump(), before)
    members = json.loads(w.castctl('-j export'))['groups']['g']['members']
    check_equal('members', members, {
        'r1': {'qpn': '0x11', 'rkey': '0x7', 'va': '0x1000', 'len': '4096', 'keep': 'off'},
        'r2': {'qpn': '0x11', 'rkey': '0x7', 'va': '0x1000', 'len': '4096', 'keep': 'off'},
        'r3': {'qpn': '0x13', 'psn': '7', 'keep': 'on'}})


def changes_and_removes(w):
    """What is other, what is not there any more; what the file does not name stays."""
    apply(w, NETWORK)
    text = NETWORK.replace('liveness: 20000', 'liveness: 30000').replace('loss=1%', 'loss=2%') \
        .replace('plane: A', 'plane: ""').replace('listen: 7174', 'listen: 7175')
    want = [('change', 'node', 'n1', 'plane', 'A', ''), ('change', 'link', 'n1:n2 n2:n1', 'forward', 'loss=1%', 'loss=2%'),
            ('change', 'group', 'g', 'liveness', '20000', '30000'), ('change', 'member', 'g r1', 'listen', '7174', '7175')]
    before = w.dump()
    check_equal('dry run', changes(w, text, '--dry-run'), want)
    check_equal('the registry', w.dump(), before)
    check_equal('dry run as text', apply(w, text, '--dry-run'),
                ["~ node n1 plane: A -> ''", '~ link n1:n2 n2:n1 forward: loss=1% -> loss=2%',
                 '~ group g liveness: 20000 -> 30000', '~ member g r1 listen: 7174 -> 7175',
                 '0 to add, 4 to change, 0 to remove: nothing is done (--dry-run)'])
    check_equal('done', changes(w, text), want)
    check_equal('done before', changes(w, text), [])

    # The other way round a link is the same.
    turned = 'links: [{endpoints: ["n2:n1", "n1:n2"], forward: "", backward: loss=2%}]'
    check_equal('turned', changes(w, turned), [])
    check_equal('turned', changes(w, turned.replace('2%', '3%')),
                [('change', 'link', 'n1:n2 n2:n1', 'forward', 'loss=2%', 'loss=3%')])

    # Without --prune nothing goes; with it only of lists that the file has.
    check_equal('less', changes(w, 'groups: {g: {}}'), [])
    check_equal('pruned', changes(w, 'groups: {g: {}}', '--prune'), [('remove', 'group', 'idle', None, None, None)])
    check_equal('members stay', w.member('r1')['listen'], 7175)
    check_equal('pruned members', changes(w, 'groups: {g: {members: {}}}', '--prune'),
                [('remove', 'member', 'g r1', None, None, None)])
    check_equal('the rest stays', len(json.loads(w.castctl('-j export'))['nodes']), 3)
    # A device that moves from one link to another, at once.
    moved = 'links: [{endpoints: ["h0:th0", "a0:th0"]}, {endpoints: ["a0:up", "n2:a0"]}, ' \
            '{endpoints: ["n1:tr1", "r1:tr1"]}, {endpoints: ["n2:tr2", "r2:tr2"]}]'
    check_equal('moved', [c[:3] for c in changes(w, moved, '--prune') if c[3] in (None, 'kind')],
                [('remove', 'link', 'a0:up n1:a0'), ('remove', 'link', 'n1:n2 n2:n1'), ('add', 'link', 'a0:up n2:a0')])


def refused(w, text, status, line, pattern, *options):
    """Nothing is done of a file with a mistake, which is named with its place, also as JSON."""
    before, path = w.dump(), write(w, 'file', text)
    p = w.run('apply', '--file', path, *options)
    where = '%s:%s: ' % (path, line) if line else path + ': '
    check_equal('%r: exit status' % text, (p.returncode, p.stdout), (status, ''))
    check(p.stderr.startswith('castctl: ' + where) and re.search(pattern, p.stderr), '%r says %r', text, p.stderr)
    said = json.loads(w.run('-j', 'apply', '--file', path, *options).stderr)
    place = [str(said[k]) for k in ('line', 'column')] if line else ['None', 'None']
    check_equal('as JSON', (said['file'], place, said['exit_status']),
                (path, line.split(':') if line else ['None', 'None'], status))
    check_equal('the registry', w.dump(), before)


def all_or_nothing(w):
    apply(w, NETWORK)
    for status, line, pattern, text in (
            (1, '1:23', "unknown key 'polcy' in group 'g' .did you mean 'policy'..", 'groups: {new: {}, g: {polcy: prune}}'),
            (1, '2:17', 'group new: --policy x: must be fail-group or prune', 'groups:\n  new: {policy: x}'),
            (1, '3:9', 'node n9: --id 70000: must be 1..57343', 'nodes:\n  n9:\n    id: "70000"\n    role: switch'),
            (1, '3:3', 'node n8: node add: --role is missing', 'nodes:\n  n9: {id: 9, role: switch}\n  n8: {id: 8}'),
            (2, '3:3', 'host x: host add: host r1 has address fd00:1::1 already',
             'hosts:\n  y: {address: "fd00:1::7"}\n  x: {address: "fd00:1::1"}'),
            (2, '2:15', 'group idle: group add: group idle exists with another --mtu', 'groups:\n  idle: {mtu: 1024}'),
            (2, '1:9', 'link n1:x n7:y: link add: no node or host named .n7.', 'links: [{endpoints: ["n1:x", "n7:y"]}]'),
            (1, '1:52', 'the link n2:b n1:a is there twice',
             'links: [{endpoints: ["n1:a", "n2:b"]}, {endpoints: ["n2:b", "n1:a"]}]'),
            (1, '1:50', 'link n1:n2 n2:n1: link impair: .lost=1%.: must be NAME=VALUE, ',
             'links: [{endpoints: ["n1:n2", "n2:n1"], forward: lost=1%}]'),
            (2, '1:24', 'member g r9: member add: no host named .r9.', 'groups: {g: {members: {r9: {listen: 1}}}}')):
        refused(w, text, status, line, pattern)
    # What is in use is not removed, nor anything else.
    refused(w, 'hosts: {h0: {}}\ngroups: {new: {}}', 2, None, '--prune: host del: r1 still has link n1:tr1 r1:tr1', '--prune')
    p = w.run('apply', '--file', os.path.join(w.dir, 'nothing'))
    check_equal('no file', (p.returncode, p.stderr),
                (1, 'castctl: %s/nothing: No such file or directory\n' % w.dir))


def open_for(reader, path):
    """A pipe with a name, once somebody reads from it."""
    while True:
        try:
            return os.fdopen(os.open(path, os.O_WRONLY | os.O_NONBLOCK), 'w', encoding='utf-8')
        except OSError as e:
            check(e.errno == errno.ENXIO and reader.poll() is None, 'nobody reads the file: %s', e)
            time.sleep(0.01)


def others_write_meanwhile(w):
    """castctl has read the registry when it reads the file.  What others write before it commits does not matter, as
    long as the file still comes to what was shown."""
    apply(w, NETWORK)
    path = os.path.join(w.dir, 'pipe')
    os.mkfifo(path)
    refusal = 'castctl: apply: others have changed the registry meanwhile, and what would change is not what was ' \
              'shown any more: nothing is done\n'
    for meanwhile, said, status, liveness in (('group set idle --liveness 19000', '', 0, 17500),
                                              ('group set g --policy fail-group', '', 0, 17500),
                                              ('group set g --liveness 18000', refusal, 2, 18000)):
        w.castctl('group set g --liveness 20000')
        p = subprocess.Popen([os.path.join(BIN, 'castctl'), 'apply', '--file', path], env=w.env, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with open_for(p, path) as f:
            w.castctl(meanwhile)
            f.write('groups: {g: {liveness: 17500}}')
        shown, errors = p.communicate(timeout=PATIENCE)
        check('~ group g liveness: 20000 -> 17500\n' in shown, '%s: %r is shown', meanwhile, shown)
        check_equal(meanwhile, (p.returncode, errors), (status, said))
        check_equal(meanwhile, w.show()['liveness_ms'], liveness)


CASES = (applies, export_is_no_change, changes_and_removes, all_or_nothing, others_write_meanwhile)
