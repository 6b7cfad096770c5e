# SPDX-License-Identifier: Apache-2.0
"""Keys of authenticated groups: who has which, when, and who is never told a secret."""
import json
import os

from world import check, check_equal, references, wait_until

OLD, NEW = 'a' * 64, '0123456789abcdefABCDEF' * 4


def secret_file(w, secret):
    path = os.path.join(w.dir, 'secret')
    with open(path, 'w', encoding='utf-8') as f:
        f.write(secret + '\n')
    return path


def add_keys(w):
    w.castctl('key add 1 --secret-file ' + secret_file(w, OLD))
    w.castctl('key add 2 --secret-file ' + secret_file(w, NEW))


def copies(w, node):
    """The keys that a node's tree refers to, secrets by id."""
    tree = w.tree(node)
    rows = {r['_uuid'][1]: r for r in w.db.rows('Node_Key')}
    mine = [rows[u] for u in references(tree['keys'])]
    check_equal("whose keys are at %s" % node, {r['node'] for r in mine} - {node}, set())
    return {r['id']: r['secret'] for r in mine}


def told(w, node):
    """What the node's tree asks for, the key that it makes it with, and keys that it has."""
    tree = w.tree(node)
    auth = tree['auth'][1] if isinstance(tree['auth'], list) else [tree['auth']]
    return sorted(auth), tree['auth_key'], sorted(copies(w, node))


def expect_told(w, edge, agent, edges=('n1', 'n2')):
    for node in edges:
        wait_until('%s is told %r' % (node, edge), lambda node=node: told(w, node) == edge)
    wait_until('a0 is told %r' % (agent,), lambda: told(w, 'a0') == agent)


def applied(w, *nodes):
    for node in nodes:
        w.apply(node)
    w.settled()


def running(w, *options):
    """A group with an edge that is also between, r1 and r2 at n1, r9 at n2 behind it; started."""
    w.star()
    add_keys(w)
    w.castctl(' '.join(('group add g', *options)))
    for host in ('r1', 'r2', 'r9'):
        w.castctl('member add g %s --qpn 17' % host)
    w.castctl('source set g --host h0 --qpn 18')
    w.apply_all_until('the group is ready', lambda: w.show()['state'] == 'ready')
    w.set_started()
    w.settled()
    w.apply_all_until('all is applied', lambda: not w.show()['status'])


def keys_commands(w):
    """What is refused, and by what name."""
    w.castctl('key add 7 --generate')
    path = secret_file(w, OLD)
    w.castctl('key add 0xffffffff --secret-file ' + path)
    check_equal('keys', json.loads(w.castctl('-j key list')), [
        {'id': 7, 'groups': '', 'nodes': ''}, {'id': 4294967295, 'groups': '', 'nodes': ''}])
    generated = w.db.row('Key', id=7)['secret']
    check(len(generated) == 64 and int(generated, 16), 'generated: %r', generated)
    check_equal('secret of the file', w.db.row('Key', id=4294967295)['secret'], OLD)
    w.refused('key add 7 --generate', 2, 'key 7 exists already')
    for line, pattern in (
            ('key add 8', '--secret-file or --generate'),
            ('key add 8 --generate --secret-file ' + path, '--secret-file or --generate'),
            ('key add 0 --generate', '^castctl: 0: a key id must be 1..4294967295'),
            ('key add 4294967296 --generate', 'a key id must be'),
            ('key add 8 --secret-file /nowhere/x', '/nowhere/x: No such file'),
            ('key add 8 --secret-file ' + w.dir, 'Is a directory'),
            ('group add h --auth mt-auth', '--auth mt-auth: needs --key'),
            ('group add h --auth some --key 7', '--auth some: must be none, mt-auth, hmac, both or data'),
            ('group add h --key 7', '--key 7: needs --auth')):
        w.refused(line, 1, pattern)
    for secret in ('', 'a' * 30, 'a' * 33, 'a' * 130, 'x' * 32, 'a' * 16 + ' ' + 'a' * 16):
        secret_file(w, secret)
        w.refused('key add 8 --secret-file ' + path, 1, 'must be 32 to 128 hexadecimal digits')
    w.refused('group add h --auth hmac --key 8', 2, 'no key with id 8')
    w.refused('key del 8', 2, 'no key with id 8')
    w.castctl('key del 8 --if-exists')
    w.castctl('group add h --auth both --key 7')
    w.castctl('group add h --auth both --key 7 --may-exist')
    w.castctl('group add h --may-exist')
    w.refused('group add h --auth hmac --key 7 --may-exist', 2, 'exists with another --auth')
    w.refused('key del 7', 2, 'group h uses key 7')
    check_equal('shown', (w.show('h')['auth'], w.show('h')['key']), ('both', 7))
    w.castctl('group set h --auth none')
    check_equal('shown', (w.show('h')['auth'], w.show('h')['key']), ('none', None))
    w.castctl('key del 7')
    check_equal('keys', [k['id'] for k in json.loads(w.castctl('-j key list'))], [4294967295])


def keys_roll_over(w):
    """Edges first, then the agent, then the old key goes; each step when the one before is
    applied, and no sooner."""
    running(w, '--auth', 'mt-auth', '--key', '1')
    old = (['mt-auth'], 0, [1]), (['mt-auth'], 1, [1])
    expect_told(w, *old)
    w.castctl('group set g --key 2')
    both = (['mt-auth'], 0, [1, 2])
    expect_told(w, both, old[1])
    applied(w, 'n1')
    expect_told(w, both, old[1])
    w.refused('key del 1', 2, 'node .* still has key 1')
    applied(w, 'n2')
    expect_told(w, both, (['mt-auth'], 2, [2]))
    w.settled()
    expect_told(w, both, (['mt-auth'], 2, [2]))
    check_equal('ready', w.show()['state'], 'ready')
    check_equal('keys at nodes', {n['node']: n['keys'] for n in w.show()['nodes']},
                {'n1': '1 2', 'n2': '1 2', 'a0': '2'})
    applied(w, 'a0')
    expect_told(w, (['mt-auth'], 0, [2]), (['mt-auth'], 2, [2]))
    check_equal('secrets', copies(w, 'n1'), {2: NEW})
    w.castctl('key del 1')
    check_equal('copies', {r['id'] for r in w.db.rows('Node_Key')}, {2})


def keys_back_in_mid_roll_over(w):
    """The operator changes his mind when the agent may run either."""
    running(w, '--auth', 'mt-auth', '--key', '1')
    w.castctl('group set g --key 2')
    applied(w, 'n1', 'n2')
    expect_told(w, (['mt-auth'], 0, [1, 2]), (['mt-auth'], 2, [2]))
    w.castctl('group set g --key 1')
    expect_told(w, (['mt-auth'], 0, [1, 2]), (['mt-auth'], 1, [1]))
    w.settled()
    expect_told(w, (['mt-auth'], 0, [1, 2]), (['mt-auth'], 1, [1]))
    applied(w, 'a0')
    expect_told(w, (['mt-auth'], 0, [1]), (['mt-auth'], 1, [1]))


def keys_on_and_off(w):
    """On: the agent makes TLVs before an edge asks for them.  Off: the other way round."""
    running(w)
    expect_told(w, ([], 0, []), ([], 0, []))
    w.castctl('group set g --auth both --key 1')
    expect_told(w, ([], 0, [1]), ([], 0, []))
    applied(w, 'n1', 'n2')
    expect_told(w, ([], 0, [1]), (['hmac', 'mt-auth'], 1, [1]))
    applied(w, 'a0')
    expect_told(w, (['hmac', 'mt-auth'], 0, [1]), (['hmac', 'mt-auth'], 1, [1]))
    applied(w, 'a0', 'n1', 'n2')
    w.castctl('group set g --auth none')
    expect_told(w, ([], 0, [1]), (['hmac', 'mt-auth'], 1, [1]))
    applied(w, 'n1', 'n2')
    expect_told(w, ([], 0, [1]), ([], 0, []))
    applied(w, 'a0')
    expect_told(w, ([], 0, []), ([], 0, []))
    check_equal('keys at nodes', w.db.rows('Node_Key'), [])


def keys_where_needed(w):
    """In Figure 1 the edges and the agent have the key, and nodes between have not; nobody else
    has a secret, and nothing shows it."""
    add_keys(w)
    w.figure_1()
    w.castctl('group add g --auth mt-auth --key 1')
    for host in ('r1', 'r3', 'r5'):
        w.castctl('member add g %s --qpn 17' % host)
    w.castctl('source set g --host h0 --qpn 18')
    w.apply_all_until('the group is ready', lambda: w.show()['state'] == 'ready')
    check_equal('who has the key', sorted(r['node'] for r in w.db.rows('Node_Key')),
                ['a0', 'n1', 'n2', 'n3'])
    check_equal('listed', json.loads(w.castctl('-j key list')), [
        {'id': 1, 'groups': 'g', 'nodes': 'a0 n1 n2 n3'}, {'id': 2, 'groups': '', 'nodes': ''}])
    for line in ('key list', '-j key list', '-j group show g', 'group show g', 'group list',
                 '-j node show n1', 'node show a0', '-v key list'):
        p = w.run(*line.split())
        check(OLD not in p.stdout + p.stderr and NEW not in p.stdout + p.stderr,
              'castctl %s shows a secret', line)
    check(OLD not in w.log() and NEW not in w.log(), 'a daemon has logged a secret')


def keys_fit_or_not(w):
    """What would not fit the fabric is said with its numbers; who runs goes on without."""
    w.star()
    add_keys(w)
    w.db.update('Global', {}, fabric_mtu=1299)
    w.castctl('group add g')
    for host in ('r1', 'r2', 'r3'):
        w.castctl('member add g %s --qpn 17' % host)
    w.castctl('source set g --host h0 --qpn 18')
    w.apply_all_until('the group is ready', lambda: w.show()['state'] == 'ready')
    w.set_started()
    w.castctl('group set g --auth mt-auth --key 1')
    w.expect_state('ready', 'authentication stays as it is: .*packets of 1300 bytes')


def keys_without_host(w):
    """What a group is authenticated with changes when a member's host has lost its link, or is gone."""
    w.ready_group()
    w.set_started()
    add_keys(w)
    w.cut_host('n1', 'r1')
    w.castctl('group set g --auth mt-auth --key 1')
    w.expect_state('failed', 'r1')
    check_equal('told', (told(w, 'n1'), told(w, 'a0')), (([], 0, []), ([], 0, [])))
    w.db.transact({'op': 'delete', 'table': 'Host', 'where': [['name', '==', 'r1']]})
    w.castctl('group set g --key 2')
    w.expect_state('failed', 'r1')


def live(w, node, life):
    """The node's agent says that it is in this life, and has applied what there is."""
    w.db.update('Tree_Node', {'_uuid': w.tree(node)['_uuid']}, life=life)
    w.apply(node)


def answered(w, node):
    tree = w.tree(node)
    return tree['life_answered'], tree['instance']


def of_responses(w):
    return {node: w.tree(node)['response_instance'] for node in ('n1', 'n2', 'a0')}


def lives(w):
    """Nodes of a group with authenticated data wait for an instance: each life gets one that nobody had before, and so does the
    source agent whenever another node does."""
    w.star()
    add_keys(w)
    w.castctl('group add g --auth data --key 1')
    for host in ('r1', 'r2', 'r9'):
        w.castctl('member add g %s --qpn 17' % host)
    w.castctl('source set g --host h0 --qpn 18')
    nodes = ('n1', 'n2', 'a0')
    for node in ('n1', 'n2'):
        wait_until('%s has a tree' % node, lambda node=node: w.tree(node))
        w.apply(node)
    w.settled()
    check(not w.tree('a0'), 'a0 has a tree before any edge was answered')
    for i, node in enumerate(nodes):
        wait_until('%s has a tree' % node, lambda node=node: w.tree(node))
        live(w, node, 100 + i)
        wait_until('%s is answered' % node, lambda i=i, node=node: answered(w, node)[0] == 100 + i)
        w.apply(node)
    w.apply_all_until('the group is ready', lambda: w.show()['state'] == 'ready')
    check_equal('auth', w.show()['auth'], 'data')
    first = {node: answered(w, node)[1] for node in nodes}
    check(0 < first['n1'] < first['n2'] < first['a0'], 'instances: %r', first)
    # What nodes send up: n2 to n1, n1 to a0, which takes nothing from before its own.
    check_equal('of responses', of_responses(w), {'n1': first['a0'], 'n2': first['n2'], 'a0': first['a0']})

    # An edge begins another life: the agent is told, the other edge is not.
    live(w, 'n1', 7)
    wait_until('n1 is answered', lambda: answered(w, 'n1')[0] == 7)
    w.settled()
    second = {node: answered(w, node)[1] for node in nodes}
    check(second['n1'] == second['a0'] > first['a0'], 'instances: %r, %r', first, second)
    check_equal('instance of n2', second['n2'], first['n2'])
    check_equal('of responses', of_responses(w), {'n1': second['n1'], 'n2': second['n1'], 'a0': first['a0']})
    w.apply_all_until('the group is ready again', lambda: w.show()['state'] == 'ready')

    # Saying the same again changes nothing; an earlier number is another life.
    live(w, 'n1', 7)
    w.settled()
    check_equal('instances', {node: answered(w, node)[1] for node in nodes}, second)
    live(w, 'n1', 100)
    wait_until('n1 is answered', lambda: answered(w, 'n1') > (99, second['n1']))

    # An older registry: instances are not counted from there.
    w.db.update('Group', {'name': 'g'}, instance=1)
    live(w, 'n2', 8)
    wait_until('n2 is answered', lambda: answered(w, 'n2')[0] == 8)
    check(answered(w, 'n2')[1] > 1700000000, 'instance: %r', answered(w, 'n2'))
    check_equal('instance of a0', answered(w, 'a0')[1], answered(w, 'n2')[1])


def responses_roll_over(w):
    """Authentication of responses begins, its key is replaced, and it ends.  Whoever takes responses always has the key that those
    below make them with, and asks for them only when all make them."""
    running(w)
    seen = []

    def look():
        now = {n: (*told(w, n), w.tree(n)['auth_responses']) for n in ('n1', 'n2', 'a0')}
        if not seen or seen[-1] != now:
            seen.append(now)
        for child, parent in (('n2', 'n1'), ('n1', 'a0')):
            key, accepted, asks = now[child][1], now[parent][2], now[parent][3]
            check(not asks or key, '%s asks, and %s makes none: %r', parent, child, seen)
            check(not asks or key in accepted, '%s has not the key of %s: %r', parent, child, seen)
        for i, node in enumerate(now):
            if w.tree(node)['life'] != 100 + i:
                live(w, node, 100 + i)
        return now

    def turn(options, keys, asks):
        w.castctl('group set g ' + options)
        auth = ['data'] if asks else []
        key = keys[0] if keys else 0
        w.apply_all_until('all are told ' + options, lambda: look() == {
            'n1': (auth, key, keys, asks), 'n2': (auth, key, keys, False), 'a0': (auth, key, keys, asks)})
        w.apply_all_until('all is applied', lambda: not w.show()['status'])

    turn('--auth data --key 1', [1], True)
    turn('--key 2', [2], True)
    turn('--auth none', [], False)
    turn('--auth data --key 1', [1], True)
    check(all(any(s['a0'] == t for s in seen) for t in (([], 0, [1], False), (['data'], 1, [1], False))),
          'a0 was told at once: %r', seen)


CASES = (responses_roll_over, keys_commands, keys_roll_over, keys_back_in_mid_roll_over, keys_on_and_off,
         keys_where_needed, keys_fit_or_not, keys_without_host, lives)
