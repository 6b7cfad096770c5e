# SPDX-License-Identifier: Apache-2.0
"""Which messages members have that come in mid-stream, and members that are lost there: what castctl
says, against what the source has sent and the receivers have got."""
from losses import expect_lost, spoil, start

from harness import castctl_json, check, check_equal, output, wait_until
from trees import FIG1, NOAGG

DEPTH = 16


def members(group, key):
    """What castctl says of each member."""
    return {m['host']: m[key] for m in castctl_json('group', 'show', group)['members']}


def wait_known(group, host, key):
    """The number, once castd has it."""
    wait_until('%s of %s' % (key, host), lambda: members(group, key).get(host) is not None)
    return members(group, key)[host]


def check_first(group, report, host):
    """A late member lacks the messages before its first one, and no other."""
    got = report['receivers'][host]['messages']
    check(0 < got < report['count'], '%s has %d of %d messages', host, got, report['count'])
    check_equal('first message of %s' % host, members(group, 'first_message')[host],
                report['count'] - got)


def joins_and_losses(tree, size, *settings):
    """r3 joins and r2 falls silent at the same time, in mid-stream.  r2 may have got more than it had
    confirmed, if what it said was under way."""
    def case(lab):
        group = '-'.join(('ms', str(size)) + settings[1::2])
        where = tree.in_mode(settings[1]) if settings else tree
        loop = start(lab, group, where, '--late', 'r3', '--silent', 'r2', '-s', str(size), '-t',
                     str(DEPTH), policy='prune', settings=settings)
        spoil(loop)
        expect_lost(group, 'r2')
        wait_known(group, 'r3', 'first_message')
        good = wait_known(group, 'r2', 'good_messages')
        loop.wait_progress(where.root, 4000)
        report = loop.stop(without=('r2',))
        check_equal('first message of r1', members(group, 'first_message')['r1'], 0)
        check_first(group, report, 'r3')
        got = report['receivers']['r2']['messages']
        check(0 < good <= got <= good + DEPTH, 'r2 has %d messages, %d are known to be good', got, good)
    return ' '.join(('joins and losses, messages of', str(size), 'bytes') + settings[1::2]), case


def agent_restarted(lab):
    """It does not know what went down before: who joins after that is told no number."""
    group = 'mr'
    loop = start(lab, group, FIG1, '--late', 'r3,r5', '-s', '1024', policy='prune')
    output('castlab', 'restart', 'sa')
    loop.wait_progress(FIG1.root)
    spoil(loop)
    for host in ('r3', 'r5'):
        wait_until('%s is active' % host,
                   lambda host=host: members(group, 'state').get(host) == 'active')
    loop.wait_progress(FIG1.root, 4000)
    check_equal('first messages', members(group, 'first_message'),
                {'r1': 0, 'r2': 0, 'r3': None, 'r4': 0, 'r5': None})
    loop.stop()


FIG1_CASES = [joins_and_losses(FIG1, 1024), joins_and_losses(FIG1, 5000),
              joins_and_losses(FIG1, 5000, '--mode', 'ingress'),
              joins_and_losses(FIG1, 5000, '--mode', 'mcast', '--receivers', 'provisioned'),
              agent_restarted]
NOAGG_CASES = [joins_and_losses(NOAGG, 5000)]
