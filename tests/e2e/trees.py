# SPDX-License-Identifier: Apache-2.0
"""Trees: what a group's nodes are to copy and to merge, for the tiers that run real daemons.

A tree is described by what each of its nodes copies packets to (children) and whose
responses it merges (branches); what every port must have sent follows from that.
"""
from harness import castctl_json, check, check_equal


class Tree:
    """'children' are by node; leaves are hosts.  'branches' are by aggregating node and the same
    as the children if not given."""

    def __init__(self, children, branches=None):
        self.children = children
        self.branches = branches or {n: c for n, c in children.items() if n != 'sa'}
        self.parent = {c: n for n, cs in children.items() for c in cs}
        self.receivers = sorted(c for c in self.parent if c not in children)
        merged = [b for bs in self.branches.values() for b in bs]
        self.root, = (n for n in self.branches if n not in merged)
        self.mode = 'replicate'

    def in_mode(self, mode):
        """The same ways in another mode of the group."""
        if mode == 'replicate':
            return self
        edges = {n: rs for n in self.children if n != 'sa'
                 for rs in [[c for c in self.children[n] if c in self.receivers]] if rs}
        tree = Tree(self.children, {'sa': sorted(edges), **edges})
        tree.mode = mode
        return tree

    def copies_to(self, child):
        """Of each packet, on the link to this one: in mode ingress one for each edge there or
        behind it."""
        if self.mode != 'ingress' or child in self.receivers:
            return 1
        return (child in self.branches) + sum(self.copies_to(c) for c in self.children[child]
                                              if c not in self.receivers)

    def sent(self, n_data, n_acks):
        """What each node sends to each neighbour when 'n_data' packets go down and every receiver
        acknowledges 'n_acks' times: merging keeps that number on every link."""
        sent = {}

        def add(node, peer, n):
            if n:
                sent[node, peer] = sent.get((node, peer), 0) + n
        for node, children in self.children.items():
            for child in children:
                add(node, child, n_data * self.copies_to(child))
        for top, branches in self.branches.items():
            for node in branches:
                while node != top:
                    if node not in self.receivers:
                        add(node, self.parent[node], n_acks)
                    node = self.parent[node]
        node = self.root
        while node != 'sa':
            add(node, self.parent[node], n_acks)
            node = self.parent[node]
        add('sa', 'h0', n_acks)
        return sent


#
# Of testbed/topologies, with a receiver on every host but h0.
#
# n2 hangs on n4 and n5; the tree takes the lower id (docs/draft-notes.md, H38).
FIG1 = Tree({'sa': ['n6'], 'n6': ['n4', 'n5'], 'n4': ['n1', 'n2'], 'n5': ['n3'],
             'n1': ['r1', 'r2'], 'n2': ['r3'], 'n3': ['r4', 'r5']})
FIG1_WITHOUT_R3 = Tree({'sa': ['n6'], 'n6': ['n4', 'n5'], 'n4': ['n1'], 'n5': ['n3'],
                        'n1': ['r1', 'r2'], 'n3': ['r4', 'r5']})
DIAMOND = Tree({'sa': ['n1'], 'n1': ['n2', 'n3'], 'n2': ['n4'], 'n3': ['r2'], 'n4': ['r1']})
BUD = Tree({'sa': ['n1'], 'n1': ['n2', 'r1'], 'n2': ['n3', 'r2'], 'n3': ['r3']})
CHAIN = Tree({'sa': ['n1'], 'n1': ['n2'], 'n2': ['n3'], 'n3': ['n4', 'r2'], 'n4': ['n5'],
              'n5': ['n6'], 'n6': ['r1']})
NOAGG = Tree({'sa': ['n1'], 'n1': ['n2', 'n6'], 'n2': ['n3', 'r1'], 'n3': ['n4', 'n5'],
              'n4': ['r2'], 'n5': ['r3'], 'n6': ['r4']},
             {'sa': ['n2', 'n6'], 'n2': ['n4', 'n5', 'r1'], 'n4': ['r2'], 'n5': ['r3'],
              'n6': ['r4']})
# n4 is an Open vSwitch, and what goes from n6 to n5 passes n7, a plain router.
OTHERS = Tree({'sa': ['n6'], 'n6': ['n4', 'n7'], 'n4': ['n1', 'n2'], 'n7': ['n5'], 'n5': ['n3'],
               'n1': ['r1', 'r2'], 'n2': ['r3'], 'n3': ['r4', 'r5']},
              {'n6': ['n1', 'n2', 'n5'], 'n5': ['n3'], 'n1': ['r1', 'r2'], 'n2': ['r3'],
               'n3': ['r4', 'r5']})


def check_branches(group, tree):
    """The tree that castd has planned."""
    nodes = castctl_json('tree', 'show', group)['nodes']
    check_equal('branches', {n['node']: sorted(b['name'] for b in n['branches'])
                             for n in nodes if n['branches']}, tree.branches)


def check_confirmed(lab, group, tree, psn):
    """Every branch of every node has confirmed everything before 'psn', and there are no others."""
    shown = castctl_json('tree', 'show', group)
    found = {}
    for node in shown['nodes']:
        live = node['live']
        check(live, '%s has no state of group %s', node['node'], group)
        if live['branches'] and (node['node'] != 'sa' or tree.root == 'sa'):
            found[node['node']] = sorted(b['name'] for b in live['branches'])
            for b in live['branches']:
                check_equal('una of %s at %s' % (b['name'], node['node']), b['confirmed'], psn)
            check_equal('PSNs sent and confirmed at %s' % node['node'], (live['sent_next'], live['confirmed']),
                        (psn, psn))
    check_equal('branches', found, {n: sorted(b) for n, b in tree.branches.items()})
