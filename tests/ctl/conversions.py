# SPDX-License-Identifier: Apache-2.0
"""Registries of earlier versions, converted.

registries/ has a registry of each version of the schema, as castctl and castd of that version left it behind
(registries/record): group g has passed packets, and r5 has left it; group sealed is authenticated; waiting has no source.
"""
import json
import os
import shutil
import subprocess

from world import SCHEMA, check, check_equal, wait_until

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'registries')
SUFFIX = '.db'


def current_schema():
    with open(SCHEMA, encoding='utf-8') as f:
        return json.load(f)


def file_of(version):
    return os.path.join(FOLDER, version + SUFFIX)


def schema_of(version):
    """The schema is the first record of a registry; a line with its length and digest is before it."""
    with open(file_of(version), encoding='utf-8') as f:
        return json.loads(f.readlines()[1])


# The latest first.
VERSIONS = sorted((name[:-len(SUFFIX)] for name in os.listdir(FOLDER) if name.endswith(SUFFIX)),
                  key=lambda version: [int(n) for n in version.split('.')], reverse=True)
CURRENT = current_schema()['version']
# What castctl, castd and agents may write to rows of what operators want.
STANDING = ('generation', 'state', 'status', 'agent', 'switch', 'cfg', 'nb_cfg', 'ports', 'routes', 'sids', 'trees', 'keys')
# What a node knows a tree by: nothing that has been received, or is under way, counts for another one.
IDENTITY = ('proxy', 'designated_qpn', 'epoch', 'start_psn', 'started')
WANTED = ('Node', 'Host', 'Link', 'Group', 'Key', 'Source', 'Member')


def rows_of(w, schema):
    """What operators want, by table and UUID."""
    return {table: {row['_uuid'][1]: row for row in w.db.rows(table)} for table in WANTED if table in schema['tables']}


def check_kept(before, after):
    """What was there is, as far as both versions know of it."""
    for table, rows in before.items():
        for uuid, row in rows.items():
            check(uuid in after[table], '%s: %r is gone', table, row)
            for column, value in row.items():
                if column in after[table][uuid] and column not in STANDING and column != '_version':
                    check_equal('%s.%s of %s' % (table, column, row.get('name', uuid)), after[table][uuid][column], value)


def trees(w):
    return {t['_uuid'][1]: t for t in w.db.rows('Tree_Node')}


def replace_registry(w, version):
    """castd, which had stopped, begins with the registry of another version."""
    w.db.close()
    w.stop(w.castd)
    w.stop(w.registry)
    shutil.copyfile(file_of(version), w.file('db'))
    w.registry = w.start_registry()
    w.db = type(w.db)(w.sock)
    w.castd = w.start_castd('castd')


def convert_from(w, version):
    """That registry is converted while castd runs, which waits for that; agents apply what comes.  Returns trees as they
    were before."""
    lacks = 'lacks what version %s' % CURRENT
    replace_registry(w, version)
    wanted, before = rows_of(w, schema_of(version)), trees(w)
    check(wanted['Group'] and before, 'nothing is in the registry of %s', version)
    if version != CURRENT:
        wait_until('castd says so', lambda: lacks in w.status('castd'))
        w.refused('group list', 2, lacks)
        check_equal('rows that castd has left alone', rows_of(w, schema_of(version)), wanted)
        w.convert(current_schema())
    wait_until('castd is active', lambda: w.status('castd') == 'active')
    w.apply_all_until('groups are ready', lambda: w.show('g')['state'] == w.show('sealed')['state'] == 'ready')
    check_kept(wanted, rows_of(w, current_schema()))
    return before


def check_goes_on(w, version):
    """The groups of that registry are as they were, and go on."""
    before = convert_from(w, version)
    now = trees(w)
    check_equal('trees', sorted(now), sorted(before))
    for tree, row in before.items():
        check_equal('tree ' + row['proxy'], {column: now[tree][column] for column in IDENTITY},
                    {column: row[column] for column in IDENTITY})
    check_equal('members of g', {m['host']: m['state'] for m in w.show('g')['members']},
                {'r1': 'active', 'r2': 'active', 'r3': 'active', 'r4': 'active', 'r5': 'left'})
    check_equal('key of sealed', w.show('sealed')['key'], 1)
    w.castctl('source set waiting --host h0 --qpn 34')
    w.apply_all_until('a group that had no source is ready', lambda: w.show('waiting')['state'] == 'ready')
    w.castctl('group del sealed')
    w.apply_all_until('nobody has its key', lambda: not w.db.rows('Node_Key'))
    w.castctl('key del 1')
    check_equal('a castd that is started again', w.stop(w.castd), 0)
    w.castd = w.start_castd('castd')
    w.settled()


def case_of(version):
    def case(w):
        check_goes_on(w, version)
    case.__name__ = 'registry_of_' + version.rsplit('.', 1)[0].replace('.', '_')
    case.__doc__ = 'A registry of version %s is converted: what is in it stays, its groups go on.' % version
    return case


def paths_come(w):
    """A registry without paths."""
    convert_from(w, '2.4.0')
    check_equal('paths', w.db.rows('Path'), [])
    w.castctl('host set h0 --path-policy failover')
    wait_until('paths', lambda: w.db.rows('Path'))
    check_equal('whose', {p['node'] for p in w.db.rows('Path')}, {'a0'})


def probes_come(w):
    """One with paths, without probes: the paths stay, and probes come, all with checksums."""
    replace_registry(w, '2.5.0')
    paths = {p['_uuid'][1]: p['number'] for p in w.db.rows('Path')}
    check(paths, 'no paths')
    convert_from(w, '2.5.0')
    check_equal('paths', {p['_uuid'][1]: p['number'] for p in w.db.rows('Path')}, paths)
    wait_until('probes', lambda: all(p['probe'] for p in w.db.rows('Path')))
    check_equal('whose', {p['node'] for p in w.db.rows('Probe')}, {'a0'})
    check_equal('without checksum', [p for p in w.db.rows('Probe') if p['no_checksum']], [])


def members(column):
    """UUIDs in a set of them."""
    return [u for _, u in (column[1] if column[0] == 'set' else [column])]


def names_nodes(w):
    """Does each row say which Node row has it?"""
    trees = {t['_uuid'][1]: t for t in w.db.rows('Tree_Node')}
    for node in w.db.rows('Node'):
        owned = {table: members(node[column]) for table, column in (
            ('Port', 'ports'), ('Route', 'routes'), ('Sid', 'sids'))}
        owned['Tree_Node'] = [u for u, t in trees.items() if t['node'] in ('', node['name'])]
        owned['Branch'] = [b for t in owned['Tree_Node'] for c in ('branches', 'copies') for b in members(trees[t][c])]
        for table, uuids in owned.items():
            if any(r['node'] != node['name'] for r in w.db.rows(table) if r['_uuid'][1] in uuids):
                return False
    return True


def rows_name_nodes(w):
    """Rows get the name of their node, by which agents choose; no node is told anything anew for that."""
    replace_registry(w, '2.7.0')
    cfg = {n['name']: n['cfg'] for n in w.db.rows('Node')}
    convert_from(w, '2.7.0')
    wait_until('rows name their nodes', lambda: names_nodes(w))
    check_equal('generations', {n['name']: n['cfg'] for n in w.db.rows('Node')}, cfg)


def every_version(_):
    """This version's registry is committed, too: the next one is converted from it."""
    check(CURRENT in VERSIONS, 'no registry of version %s: tests/ctl/registries/record . %s', CURRENT, file_of(CURRENT))
    for version in VERSIONS:
        check_equal('version of ' + file_of(version),
                    subprocess.run(['ovsdb-tool', 'db-version', file_of(version)], check=True, capture_output=True,
                                   text=True).stdout.strip(), version)


CASES = (every_version, *(case_of(version) for version in VERSIONS), paths_come, probes_come, rows_name_nodes)
