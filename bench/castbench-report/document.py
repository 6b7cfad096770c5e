# SPDX-License-Identifier: Apache-2.0
"""What castbench --json has written, checked: docs/castbench-json.md describes it.

load() refuses what is not as described there, and fills in None (for lists: []) for what a run
that failed does not have.  Nobody else has to look whether a key is there, or of which type.
"""
import json
import math
import statistics
from collections import namedtuple

VERSION = 2
# How a block gets to N replicas.
HOW = {
    'mcast': 'one queue pair to the group; the network makes the copies',
    'unicast': 'a queue pair to each replica, all at a time',
    'unicast-serial': 'a queue pair to each replica, one after the other',
    'primary': 'to the first replica, which writes to all others at a time',
    'chain': 'from each replica to the next, once it has the block',
    'chain-pipe': 'from each replica to the next in chunks: one is passed on while another comes',
    'btree': 'binomial tree: whoever has the block writes it to one that has not',
}
SCHEMES = tuple(HOW)
LARGEST = 10 ** 18      # of all numbers: what is larger was not measured.

Spread = namedtuple('Spread', 'median min max')
Key = namedtuple('Key', 'scheme n size')


class BadFile(Exception):
    """A sentence that names the file."""


class Wrong(Exception):
    """What is wrong, with its place inside the file."""

    def __init__(self, place, what):
        super().__init__('%s: %s' % (place.lstrip('.'), what) if place else what)


def text(value, place):
    if not isinstance(value, str):
        raise Wrong(place, 'must be a string')
    return value


def boolean(value, place):
    if not isinstance(value, bool):
        raise Wrong(place, 'must be true or false')
    return value


def number(value, place):
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= LARGEST:
        raise Wrong(place, 'must be a number from 0 to 1e18')
    return value


def integer(value, place):
    if not isinstance(number(value, place), int):
        raise Wrong(place, 'must be a whole number')
    return value


def positive(value, place):
    if integer(value, place) == 0:
        raise Wrong(place, 'must not be 0')
    return value


def scalar(value, place):
    """Of options, which are only shown and compared."""
    if isinstance(value, (list, dict)):
        raise Wrong(place, 'must not be a list or an object')
    if isinstance(value, int) and 0 <= value < 2 ** 63:     # a seed, for example
        return value
    return value if isinstance(value, (str, bool, type(None))) else number(value, place)


def map_of(kind):
    def check(value, place):
        if not isinstance(value, dict):
            raise Wrong(place, 'must be an object')
        return {k: kind(v, '%s.%s' % (place, k)) for k, v in value.items()}
    check.absent = {}
    return check


def pairs_of(least, what):
    """Pairs of numbers.  Each first one is at least as much more than the one before."""
    def check(value, place):
        if not isinstance(value, list):
            raise Wrong(place, 'must be a list')
        for i, pair in enumerate(value):
            where = '%s[%d]' % (place, i)
            if not isinstance(pair, list) or len(pair) != 2:
                raise Wrong(where, 'must be a list of two numbers')
            for j, v in enumerate(pair):
                number(v, '%s[%d]' % (where, j))
            if i and pair[0] - value[i - 1][0] < least:
                raise Wrong(where, 'must %s than the one before' % what)
        return value
    check.absent = []
    return check


pairs = pairs_of(1e-9, 'be greater')
growing = pairs_of(0, 'not be less')


class List:
    absent = []

    def __init__(self, kind):
        self.kind = kind

    def __call__(self, value, place, loose=False):
        if not isinstance(value, list):
            raise Wrong(place, 'must be a list')
        return [checked(self.kind, v, '%s[%d]' % (place, i), loose) for i, v in enumerate(value)]


def checked(kind, value, place, loose):
    return (kind(value, place, loose) if isinstance(kind, (List, Object)) else kind(value, place))


class Object:
    """Fields by name.  NAME! must have a value, NAME be there, but may be null; NAME? may be absent.

    Where 'loose' is true, as in a run that failed, NAME may be absent, too.  An absent object is
    None, or if 'filled' one that has nothing.
    """

    def __init__(self, fields, filled=False, loose=None):
        self.fields = [(name.rstrip('!?'), name[-1], kind) for name, kind in fields.items()]
        self.loose = loose or (lambda value: False)
        self.filled = filled

    @property
    def absent(self):
        if not self.filled:
            return None
        return {name: getattr(kind, 'absent', None) for name, _, kind in self.fields}

    def __call__(self, value, place, loose=False):
        if not isinstance(value, dict):
            raise Wrong(place, 'must be an object')
        loose = loose or self.loose(value)
        result = {}
        for name, mark, kind in self.fields:
            where = '%s.%s' % (place, name)
            given = value.get(name)
            if name not in value and not (mark == '?' or (loose and mark != '!')):
                raise Wrong(place, "'%s' is missing" % name)
            if given is None and mark == '!':
                raise Wrong(where, 'must not be null')
            if given is None:
                result[name] = getattr(kind, 'absent', None)
            else:
                result[name] = checked(kind, given, where, loose)
        return result


TIMES = {'n': integer, 'mean_us': number, 'min_us': number, 'p50_us': number, 'p90_us': number,
         'p99_us': number, 'p999_us': number, 'max_us': number}
LATENCY = Object(TIMES)
DEVICE = Object({'device!': text, 'tx_bytes': integer, 'tx_packets': integer})
CPU = Object({'source': number, 'fabric': number, 'receivers': number, 'busy': number}, filled=True)
RUN = Object({
    'scheme!': text, 'replicas_n!': positive, 'size!': positive, 'repeat!': integer, 'ok!': boolean,
    'started_ms': number, 'error?': text, 'count': integer, 'bytes': integer, 'region_len': integer,
    'mtu': integer, 'epochs?': List(integer), 'connect_ms?': number, 'first_block_at_ms?': number,
    'seconds': number, 'mb_per_s': number,
    'messages_per_s': number,
    'latency': Object({'any': LATENCY, 'quorum': LATENCY,
                       'all': Object(dict(TIMES, histogram=pairs))}, filled=True),
    'quorum': integer, 'skew': LATENCY, 'longest_gap_us?': number, 'longest_gap_at_ms?': number, 'packets': integer, 'repeated_packets': integer,
    'resent_packets?': integer, 'retries': integer, 'rnr_naks': integer, 'uplink': DEVICE, 'counted': List(DEVICE),
    'counted_bytes': integer, 'cpu_s': CPU, 'cpu_s_per_gb': CPU, 'timeline': growing,
    'rates?': List(Object({'ms!': number, 'mbit_per_s': number, 'cuts': integer, 'cause': text, 'node': text})),
    'lost': List(Object({'host!': text, 'why': text, 'after_ms': number})),
    'replicas': List(Object({'host!': text, 'bytes_ok': integer, 'first_bad': integer,
                                'why?': text, 'confirmed': LATENCY, 'arrived': LATENCY,
                                'connect_ms?': number, 'longest_gap_us?': number, 'longest_gap_at_ms?': number,
                                'cpu_s': number, 'repeated_packets': integer, 'begin?': integer,
                                'end?': integer, 'first_psn?': integer, 'first_message?': integer,
                                'last_message?': integer})),
    'events?': List(Object({'at_s!': number, 'event!': text, 'host!': text, 'made_ms': number,
                            'registered_ms': number,
                            'state': text, 'told_ms': number, 'status': text})),
    'goodput_mb_per_s?': List(number),
}, loose=lambda run: run.get('ok') is not True)
MEASURES = ('mb_per_s', 'messages_per_s', 'p50_us', 'p90_us', 'p99_us', 'p999_us', 'max_us',
            'skew_p50_us', 'uplink_bytes', 'uplink_per_byte', 'counted_bytes', 'cpu_busy_s_per_gb')
SPREAD = Object({'median!': number, 'min!': number, 'max!': number})
FILE = Object({
    'ok!': boolean, 'error?': text, 'started': text, 'command': List(text),
    'host': Object({'name': text, 'kernel': text, 'machine': text, 'cpus': integer}, filled=True),
    'version': text, 'labels': map_of(text), 'test': text, 'source': text,
    'receivers': List(text), 'groups': List(text), 'options': map_of(scalar),
    'runs!': List(RUN),
    'summary!': List(Object(dict({'scheme!': text, 'replicas_n!': positive, 'size!': positive,
                                     'runs': integer, 'cpu_fabric_s_per_gb?': SPREAD,
                                     'longest_gap_us?': SPREAD},
                                    **{m: SPREAD for m in MEASURES}))),
    'fail_if': List(Object({'condition': text, 'value': number, 'failed': boolean,
                               'run': integer})),
})


class Document:
    """One file: .data as in the file, .runs and .rows (of the summary) by what was measured."""

    def __init__(self, path, data):
        self.path = path
        self.data = data
        self.rows = {}
        self.runs = {}
        for i, row in enumerate(data['summary']):
            key = Key(row['scheme'], row['replicas_n'], row['size'])
            if key in self.rows:
                raise Wrong('summary[%d]' % i, '%s, %d replicas, size %d: there twice' % key)
            self.rows[key] = dict(row, **{m: Spread(**row[m]) for m in MEASURES if row[m]})
        for i, run in enumerate(data['runs']):
            run['index'] = i
            self.runs.setdefault(Key(run['scheme'], run['replicas_n'], run['size']), []).append(run)
        self.keys = sorted(set(self.rows) | set(self.runs), key=order)

    def sizes(self):
        return sorted({key.size for key in self.keys})

    def counts(self, size):
        """Numbers of replicas."""
        return sorted({key.n for key in self.keys if key.size == size})

    def schemes(self, size, n=None):
        """Those that were run, in the order of all tables and pictures."""
        found = {key.scheme for key in self.keys if key.size == size and n in (None, key.n)}
        return sorted(found, key=scheme_order)

    def row(self, key, measure):
        """Spread of the summary, or None."""
        return self.rows[key][measure] if key in self.rows else None

    def measured(self, key):
        """Runs that came to their end, as in the summary."""
        return [run for run in self.runs.get(key, ()) if came_to_its_end(run)]

    def over_runs(self, key, value):
        """Spread of what 'value' says of each run, or None."""
        values = [v for v in map(value, self.measured(key)) if v is not None]
        return Spread(statistics.median(values), min(values), max(values)) if values else None

    def uplink(self, key):
        """Bytes on the source's uplink for each byte written."""
        return self.row(key, 'uplink_per_byte')

    def counted(self, key):
        """..., on all links that were counted."""
        return self.over_runs(key, lambda run: per_byte(run, run['counted_bytes'])
                              if run['counted'] else None)


def whole(run, replica):
    return bool(run['region_len']) and replica['bytes_ok'] == run['region_len']


def came_to_its_end(run):
    """Every replica is whole, or only those of receivers that were lost are not."""
    lost = {one['host'] for one in run['lost']}
    return run['ok'] or (run['mb_per_s'] is not None and bool(lost) and all(
        whole(run, replica) or replica['host'] in lost for replica in run['replicas']))


def begun_by(run, event):
    """The replica that event number 'event' has begun, or None."""
    return next((r for r in run['replicas'] if r['begin'] == event), None)


def per_byte(run, tx_bytes):
    return None if tx_bytes is None or not run['bytes'] else tx_bytes / run['bytes']


def scheme_order(name):
    return (SCHEMES.index(name) if name in SCHEMES else len(SCHEMES), name)


def order(key):
    return (key.size, key.n, scheme_order(key.scheme))


def merged_histogram(runs):
    """[[low_us, count], ...] of all runs, and the longest time; None if there is none."""
    counts, longest = {}, 0
    for run in runs:
        latency = run['latency']['all']
        if latency:
            for low, count in latency['histogram']:
                counts[low] = counts.get(low, 0) + count
            longest = max(longest, latency['max_us'] or 0)
    pairs_ = [[low, counts[low]] for low in sorted(counts) if counts[low]]
    return (pairs_, max(longest, pairs_[-1][0])) if pairs_ else None


def bucket_end(low_us):
    """Buckets are 1/64 of a power of two of nanoseconds, but at least one."""
    ns = max(round(low_us * 1000), 1)
    return (ns + max(2 ** (ns.bit_length() - 7), 1)) / 1000


def parse(content):
    def refuse(word):
        raise Wrong('', 'not JSON: %s is no number' % word)

    try:
        value = json.loads(content, parse_constant=refuse)
    except UnicodeDecodeError as e:
        raise Wrong('', 'not JSON: byte %d is not UTF-8' % e.start) from e
    except json.JSONDecodeError as e:
        raise Wrong('', 'not JSON: line %d, column %d: %s' % (e.lineno, e.colno, e.msg)) from e
    except (RecursionError, ValueError) as e:       # so many brackets, or digits
        raise Wrong('', 'not JSON that castbench wrote: %s' % e) from e
    return value


def load(path):
    """A Document; raises BadFile."""
    try:
        with open(path, 'rb') as f:
            content = f.read()
    except (OSError, ValueError) as e:
        raise BadFile('%s: %s' % (path, getattr(e, 'strerror', None) or e)) from e
    try:
        value = parse(content)
        if not isinstance(value, dict) or 'castbench' not in value:
            raise Wrong('', "not from castbench --json: there is no 'castbench' with a version")
        if value['castbench'] != VERSION or isinstance(value['castbench'], bool):
            raise Wrong('', 'version %s of castbench\'s JSON: this program reads version %d'
                        % (json.dumps(value['castbench'])[:20], VERSION))
        return Document(path, FILE(value, ''))
    except Wrong as e:
        raise BadFile('%s: %s' % (path, e)) from e


def ratio(a, b):
    """None if that is nothing."""
    return a / b if a is not None and b and math.isfinite(a / b) else None
