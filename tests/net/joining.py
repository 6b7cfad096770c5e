# SPDX-License-Identifier: Apache-2.0
"""Receivers that join while data flows, and many groups on the same nodes and hosts."""
import json
import os

import harness
from harness import castctl, castctl_json, check, check_equal, output, wait_until
from many import Crowd, registry
from trees import FIG1

PACKETS = 3             # of a message of castcrowd's.
RECEIVERS = ['r%d' % i for i in range(1, 9)]
EDGES = ['n%d' % i for i in range(1, 9)]
NODES = ['sa', 'n9', *EDGES]
ROWS = ('Group', 'Source', 'Member', 'Tree_Node', 'Branch')

# Of the second test: groups at a time, and how often they come and go.
N_GROUPS, N_ROUNDS = (64, 20) if os.environ.get('LONG') else (16, 4)
ATTEMPTS = 4


def join_all(name):
    """A group of which half the members join while messages of three packets go to the others, each at an edge
    that the others do not need; what the source has seen, and all that its agent has sent."""
    crowd = Crowd(RECEIVERS)
    crowd.add([name], 5)
    for host in RECEIVERS[:4]:
        crowd.leave(name, host)
    for host in RECEIVERS[:4]:
        before = crowd.show(name)['posted']
        crowd.join(name, host)
        wait_until('messages go on', lambda before=before: crowd.show(name)['posted'] > before + 10)
    crowd.rest()
    shown = crowd.show(name)
    crowd.kill()
    return shown


def nothing_is_sent_again(lab):
    """Members join: the source sends each packet once, and so does its agent.  On a machine that lets a process
    wait for long something may be sent again all the same, but not every time."""
    for i in range(ATTEMPTS):
        name = 'again%d' % i
        shown = join_all(name)
        if not shown['retries']:
            break
    check_equal('times that the source went back', shown['retries'], 0)
    check_equal('packets of the source', shown['sent'], PACKETS * shown['posted'])
    check_equal('packets that its agent has sent', lab.group('sa', name)['down']['packets'], shown['sent'])
    for node, counters in castctl_json('stats', name).items():
        for branch in (b for g in counters['groups'] for b in g['branches']):
            check_equal('copies that %s made again for %s' % (node, branch['name']), branch['repeats'], 0)


def times_lost(lab, node, branch):
    """How often the node's agent says that it has lost a node."""
    return lab.log(node).count('node %s is lost' % branch)


def behind_lost_nodes(lab):
    """The only receiver behind two nodes dies and is started again: these refuse for it, so the node above loses
    them, and they come back with it.  So again and again, while data flows.  If castd hears of it first it takes
    the nodes out before the one above has lost them, but not every time."""
    crowd = Crowd(FIG1.receivers)
    crowd.add(['behind'], 5)
    castctl('--wait=agents', 'group', 'set', 'behind', '--policy', 'prune')
    crowd.leave('behind', 'r5')
    lost = times_lost(lab, 'n6', 'n5')
    for _ in range(3 * ATTEMPTS):
        if times_lost(lab, 'n6', 'n5') == lost + 3:
            break
        crowd.tell('drop', 'behind', 'r4')
        crowd.join('behind', 'r4')
        before = crowd.show('behind')['posted']
        wait_until('messages go on', lambda before=before: crowd.show('behind')['completed'] > before + 10)
    check_equal('times that n6 has lost n5', times_lost(lab, 'n6', 'n5'), lost + 3)
    crowd.join('behind', 'r5')
    crowd.rest()
    crowd.delete(['behind'])
    crowd.kill()


def edge_is_started_again(lab):
    """While nothing is sent a receiver waits at an edge of its own, which waits for packets.  When that edge is
    killed and started again it leaves the tree and comes back, and the receiver waits on, as another branch.
    With the next messages it has joined."""
    crowd = Crowd(FIG1.receivers)
    crowd.add(['anew'], 5)
    for host in 'r4', 'r5':
        crowd.leave('anew', host)
    crowd.tell('pace', 'anew', 600000)

    def waits(branch):
        m = next(m for m in registry().rows('Member')
                 if m['host'] == 'r4' and m['group'] == crowd.groups['anew']['_uuid'])
        return m['branch'] > branch and m['status'] == 'waiting for node n3 to answer' and m['branch']
    qpn = crowd.register('anew', 'r4')
    before = wait_until('r4 waits', lambda: waits(0))
    output('castlab', 'stop', 'n3', '--kill', '-l', lab.name)
    output('castlab', 'start', 'n3', '-l', lab.name)
    wait_until('r4 waits as another branch', lambda: waits(before))
    crowd.tell('pace', 'anew', 5)
    crowd.watcher.wait('r4 has joined', crowd.member('anew', 'r4')('active', qpn))
    crowd.rest()
    crowd.delete(['anew'])
    crowd.kill()


def memory(lab):
    """What each daemon has resident, in KB."""
    found = {}
    for name in ('castd', *NODES):
        with open(os.path.join(harness.RUNDIR, 'lab', lab.name, name + '.pid'), encoding='ascii') as f:
            pid = int(f.read())
        with open('/proc/%d/status' % pid, encoding='ascii') as f:
            found[name] = next(int(line.split()[1]) for line in f if line.startswith('VmRSS'))
    return found


def wait_for_nothing(lab, db):
    """No row is left of any group, and no node has a part of one."""
    wait_until('no rows are left', lambda: not any(db.rows(table) for table in ROWS))
    for node in NODES:
        wait_until('%s has no groups' % node, lambda node=node: json.loads(
            lab.appctl(node, 'rocecast/groups', '-j')) == [])


def one_round(crowd, names):
    """Groups come, members of some leave and join, all have all, and the groups go."""
    crowd.add(names, 200)
    ids = [g['replication_id'] for g in crowd.db.rows('Group')]
    check_equal('Replication-IDs', sorted(ids), list(range(len(names))))
    for i, name in enumerate(names[::4]):
        crowd.leave(name, RECEIVERS[i % len(RECEIVERS)])
        crowd.join(name, RECEIVERS[i % len(RECEIVERS)])
    crowd.rest()
    crowd.delete(names)


def groups_come_and_go(lab):
    """Groups on the same nodes and hosts, each with eight receivers.  With the last of them all that they took
    is given back: rows, Replication-IDs, and memory, which does not grow from round to round."""
    db = registry()
    for group in castctl_json('group', 'list'):
        harness.castctl('group', 'del', group['name'])
    crowd = Crowd(RECEIVERS)
    after = []
    for i in range(N_ROUNDS):
        one_round(crowd, ['many%d-%d' % (i, j) for j in range(N_GROUPS)])
        wait_for_nothing(lab, db)
        after.append(memory(lab))
    proxies = db.row('Global')['next_proxy']
    check(proxies >= N_GROUPS * N_ROUNDS, 'Proxy Addresses were used again: the next is number %d', proxies)
    for daemon in after[0]:
        first, last = after[1][daemon], after[-1][daemon]
        check(last <= first + max(first // 10, 1024), '%s has %d KB, after two rounds it had %d: %s', daemon, last,
              first, [m[daemon] for m in after])


CASES = [nothing_is_sent_again, groups_come_and_go]
FIG1_CASES = [behind_lost_nodes, edge_is_started_again]
