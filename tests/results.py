# SPDX-License-Identifier: Apache-2.0
"""What runs of tiers leave in build/results, and whether it is of the tree as it is now.

    TIER.log    what the tier printed
    TIER.tap    the same of each test, if the tier is a libcheck program
    TIER.json   {tier, command, passed, failed, seconds, tree}

'tree' is a digest of the sources (without documents) and of the programs that the tier tries.  Results
with another digest than now are of another tree, and prove nothing of this one.
"""
import glob
import hashlib
import json
import os

FOLDER = 'build/results'


def sources(root):
    """The files that a test's result may depend on."""
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(f for f in folders if not f.startswith(('.', 'build')) and f != '__pycache__')
        for name in sorted(files):
            if not name.endswith(('.md', '.pyc')) and not name.startswith('.'):
                yield os.path.join(folder, name)


def programs(root, command):
    """The programs that a tier tries: its own, or what its script finds in build/."""
    program = os.path.join(root, command.split()[0])
    if os.path.relpath(program, root).startswith('build'):
        return [program]
    alone = {'unit', 'castsim', 'dp-packets'}
    found = sorted(glob.glob(os.path.join(root, 'build/bin/*')) + glob.glob(os.path.join(root, 'build/*.so'))
                   + glob.glob(os.path.join(root, 'build/tests/*')))
    return [f for f in found if os.path.isfile(f) and os.path.basename(f) not in alone]


def digest(root, command):
    total = hashlib.sha256()
    for path in [*sources(root), *programs(root, command)]:
        with open(path, 'rb') as f:
            total.update(('%s\0' % os.path.relpath(path, root)).encode())
            total.update(hashlib.sha256(f.read()).digest())
    return total.hexdigest()


def clear(root, tier):
    for kind in ('log', 'tap', 'json'):
        path = os.path.join(root, FOLDER, '%s.%s' % (tier, kind))
        if os.path.exists(path):
            os.unlink(path)


def note(root, tier, command, tree, **more):
    """Says what a tier has come to; 'tree' is the digest from before it began.  Nothing is said if
    the tree has changed meanwhile: nobody knows then what the results are of."""
    if digest(root, command) != tree:
        return False
    with open(os.path.join(root, FOLDER, tier + '.json'), 'w', encoding='utf-8') as f:
        json.dump(dict(more, tier=tier, command=command, tree=tree), f)
        f.write('\n')
    return True


def read(path):
    """What was noted; None if it is not of this form."""
    try:
        with open(path, encoding='utf-8') as f:
            noted = json.load(f)
        return noted if all(key in noted for key in ('tier', 'command', 'tree', 'failed')) else None
    except (OSError, ValueError):
        return None


def fresh(root, folder):
    """({tier: what was noted of it} of this tree, names of tiers whose results are of another)."""
    good, stale = {}, []
    digests = {}
    for log in sorted(glob.glob(os.path.join(folder, '*.log'))):
        tier = os.path.basename(log)[:-len('.log')]
        noted = read(os.path.join(folder, tier + '.json'))
        if noted:
            command = noted['command']
            key = tuple(programs(root, command))
            if all(map(os.path.exists, key)):
                digests.setdefault(key, digest(root, command))
        if noted and digests.get(key) == noted['tree']:
            good[tier] = noted
        else:
            stale.append(tier)
    return good, stale
