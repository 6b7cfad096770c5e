# SPDX-License-Identifier: Apache-2.0
"""Registries of earlier versions, converted."""
import json

from world import SCHEMA, check_equal, wait_until

# What each version of the schema has more than the one before it, the latest first.
STEPS = (
    ('2.6.0', {'tables': (), 'columns': {'Probe': ['no_checksum']}}),
    ('2.5.0', {
        'tables': ('Probe', 'Fault', 'Plane'),
        'columns': {
            'Global': ['probe_interval', 'probe_timeout', 'probe_intervals', 'probe_timeouts'],
            'Node': ['probes', 'probers'], 'Group': ['planes', 'preferred_plane'], 'Path': ['probe'],
            'Tree_Node': ['planes', 'parent_planes']}}),
    ('2.4.0', {
        'tables': ('Destination', 'Path', 'Path_Rule'),
        'columns': {
            'Global': ['path_form'], 'Host': ['path_policy'], 'Link': ['excluded'],
            'Node': ['plane', 'excluded', 'programs', 'destinations'], 'Group': ['via', 'plane'],
            'Port': ['programs'], 'Sid': ['block_len', 'port'],
            'Tree_Node': ['outer_program', 'parent_program']},
        'behaviours': ('uN', 'uA', 'End.X', 'End.DX6')}),
)
NEW_BEHAVIOURS = dict(STEPS)['2.4.0']['behaviours']
# Of this version, as programs call it.
LACKS = 'lacks what version 2.7.0'


def current_schema():
    with open(SCHEMA, encoding='utf-8') as f:
        return json.load(f)


def schema_of(version):
    schema = current_schema()
    for step, news in STEPS:
        for table in news['tables']:
            del schema['tables'][table]
        for table, columns in news['columns'].items():
            for column in columns:
                del schema['tables'][table]['columns'][column]
        behaviours = schema['tables']['Sid']['columns']['behaviour']['type']['key']['enum'][1]
        behaviours[:] = [b for b in behaviours if b not in news.get('behaviours', ())]
        schema['version'] = step
        if step == version:
            return schema
    raise ValueError(version)


def generations(w):
    return {t['_uuid'][1]: t['generation'] for t in w.db.rows('Tree_Node')}


def convert_from(w, version, *operations):
    """castd, which had stopped, begins with a registry of an earlier version, in which 'operations'
    were done before; that is converted while it runs.  Returns the trees' generations before."""
    w.stop(w.castd)
    if operations:
        w.db.transact(*operations)
    w.convert(schema_of(version))
    before = generations(w)
    w.castd = w.start_castd('castd')
    wait_until('castd says so', lambda: LACKS in w.status('castd'))
    w.refused('group list', 2, LACKS)
    w.convert(current_schema())
    return before


def registry_of_2_4(w):
    """A registry without paths, and with a group, is converted: the group goes on, and paths come."""
    w.ready_group()
    new = ['set', [s['_uuid'] for s in w.db.rows('Sid') if s['behaviour'] in NEW_BEHAVIOURS]]
    before = convert_from(w, '2.4.0', {'op': 'mutate', 'table': 'Node', 'where': [],
                                       'mutations': [['sids', 'delete', new]]})
    wait_until('nodes have what is new', lambda: set(NEW_BEHAVIOURS) <= {
        s['behaviour'] for s in w.db.rows('Sid')})
    w.apply_all_until('the group is ready', lambda: w.show()['state'] == 'ready')
    check_equal('trees', generations(w), before)
    w.db.update('Host', {'name': 'h0'}, path_policy='failover')
    wait_until('paths', lambda: w.db.rows('Path'))
    check_equal('whose', {p['node'] for p in w.db.rows('Path')}, {'a0'})


def registry_of_2_5(w):
    """One with paths, without probes: the paths and the group's tree stay, and probes come."""
    w.ready_group()
    w.db.update('Host', {'name': 'h0'}, path_policy='failover')
    wait_until('paths', lambda: w.db.rows('Path'))
    w.settled()
    paths = {p['_uuid'][1]: p['number'] for p in w.db.rows('Path')}
    before = convert_from(w, '2.5.0')
    w.apply_all_until('the group is ready', lambda: w.show()['state'] == 'ready')
    check_equal('trees', generations(w), before)
    check_equal('paths', {p['_uuid'][1]: p['number'] for p in w.db.rows('Path')}, paths)
    wait_until('probes', lambda: all(p['probe'] for p in w.db.rows('Path')))
    check_equal('whose', {p['node'] for p in w.db.rows('Probe')}, {'a0'})


def registry_of_2_6(w):
    """One with probes that all have checksums: they stay, as do paths."""
    w.ready_group()
    w.db.update('Host', {'name': 'h0'}, path_policy='failover')
    wait_until('paths', lambda: w.db.rows('Path'))
    w.settled()
    probes = {p['_uuid'][1]: p['number'] for p in w.db.rows('Probe')}
    before = convert_from(w, '2.6.0')
    w.apply_all_until('the group is ready', lambda: w.show()['state'] == 'ready')
    check_equal('trees', generations(w), before)
    check_equal('probes', {p['_uuid'][1]: p['number'] for p in w.db.rows('Probe')}, probes)
    check_equal('without checksum', [p for p in w.db.rows('Probe') if p['no_checksum']], [])


CASES = (registry_of_2_4, registry_of_2_5, registry_of_2_6)
