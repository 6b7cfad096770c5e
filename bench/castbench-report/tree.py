# SPDX-License-Identifier: Apache-2.0
"""The fabric as a tree: what each link has carried, from the source's uplink on.

A device counted at a forwarder is named LAB-NODE:NEIGHBOUR (castlab's namespace of the node, and
its device on the link to the neighbour): it tells the nodes and one direction of a link.  Hosts'
links have no such device.
"""
import re
import statistics

from charts import scheme_index
from document import per_byte
from svg import Picture, escape, multiple, short

NODE_HEIGHT, COLUMN_GAP, ROW = 26, 72, 48
NARROWEST, LONGEST_NAME = 54, 15      # of a box in pixels, of a name in characters
WIDEST = 11.0           # of a line, in pixels


class Fabric:
    """.links: bytes for each byte written by (from, to); .root: where they begin, or None."""

    def __init__(self, runs):
        values = {}
        for run in runs:
            for d in run['counted']:
                value = per_byte(run, d['tx_bytes'])
                values.setdefault(d['device'], []).extend([] if value is None else [value])
        self.of_device = {name: statistics.median(values[name]) if values[name] else None
                          for name in sorted(values)}
        ends = link_ends(self.of_device)
        uplinks = {run['uplink']['device'] for run in runs if run['uplink']}
        self.root = ends.get(uplinks.pop(), (None,))[0] if len(uplinks) == 1 else None
        # With all of a lab counted, a device that is not named after a node leads nowhere.
        nodes = {node for node, _ in ends.values()}
        links = {(a, b): self.of_device[name] for name, (a, b) in ends.items()
                 if a != b and (b in nodes or len(nodes) == 1)}
        self.beside = {}
        for a, b in links:
            self.beside.setdefault(a, set()).add(b)
            self.beside.setdefault(b, set()).add(a)
        reached = {n for layer in self.layers() for n in layer} if self.root is not None else ()
        self.links = {link: value for link, value in links.items() if link[0] in reached}
        self.drawn_devices = {name for name, link in ends.items() if link in self.links}

    def not_drawn(self):
        """By device; all if there is no picture."""
        return {n: v for n, v in self.of_device.items() if n not in self.drawn_devices}

    def neighbours(self, node):
        return sorted(self.beside.get(node, ()), key=natural)

    def layers(self):
        """Lists of nodes by their distance from the root; each has its place near its parents."""
        layers, seen = [[self.root]], {self.root}
        while layers[-1]:
            layer = []
            for node in layers[-1]:
                layer += [n for n in self.neighbours(node) if n not in seen and n not in layer]
            seen.update(layer)
            layers.append(layer)
        layers.pop()
        for above, layer in zip(layers, layers[1:]):
            layer.sort(key=lambda n: (statistics.mean(
                above.index(m) for m in self.neighbours(n) if m in above), natural(n)))
        return layers


def natural(name):
    """n2 is before n10."""
    return [(int(part), '') if part.isdecimal() else (0, part) for part in re.split('([0-9]+)', name)]


def link_ends(devices):
    """(node, neighbour) of those that are named so."""
    named = [d for d in devices if ':' in d]
    prefix = lab_prefix(named)
    ends = {}
    for name in named:
        netns, _, device = name.partition(':')
        if prefix and device and netns.startswith(prefix):
            ends[name] = (netns[len(prefix):], device)
    return ends


def lab_prefix(names):
    """What names of namespaces begin with, the '-' included, so that most neighbours are nodes."""
    if not names:
        return ''
    spaces = {n.split(':', 1)[0] for n in names}
    neighbours = {n.split(':', 1)[1] for n in names}
    common = min(spaces)
    while not all(s.startswith(common) for s in spaces):
        common = common[:-1]
    candidates = [common[:i + 1] for i, c in enumerate(common) if c == '-']
    return max(candidates, default='', key=lambda c: (
        sum(s[len(c):] in neighbours for s in spaces), len(c)))


class Layout:
    """Columns are layers.  A leaf takes a row for each link that it hangs on."""

    def __init__(self, fabric, source):
        names = [short(name, LONGEST_NAME) for name in [source, *fabric.beside]]
        self.width = max(NARROWEST, 14 + 8 * max(map(len, names)))
        self.layers = fabric.layers()
        self.column = {n: i for i, layer in enumerate(self.layers) for n in layer}
        self.parents = {n: [m for m in (self.layers[i - 1] if i else ())
                            if m in fabric.neighbours(n)] for n, i in self.column.items()}
        self.children = {n: [m for m in (self.layers[i + 1] if i + 1 < len(self.layers) else ())
                             if self.parents[m][0] == n] for n, i in self.column.items()}
        self.y = {}
        self.bottom = 0.0
        order, waiting = [], [fabric.root]
        while waiting:
            order.append(waiting.pop())
            waiting += reversed(self.children[order[-1]])
        for node in order:
            if not self.children[node]:
                height = ROW * max(1, len(self.parents[node]))
                self.y[node] = self.bottom + height / 2
                self.bottom += height
        for node in reversed(order):
            if self.children[node]:
                ys = [self.y[c] for c in self.children[node]]
                self.y[node] = (ys[0] + ys[-1]) / 2

    def x(self, node):
        return (self.column[node] + 1) * (self.width + COLUMN_GAP)

    def height(self, node):
        return max(NODE_HEIGHT, ROW * (len(self.parents[node]) - 1) + NODE_HEIGHT)


def width_of(value, most):
    return 1.0 if not value else max(1.2, value / most * WIDEST)


def draw(fabric, scheme, source, most, what):
    """'most': the value of the widest line, the same in all pictures that are to be compared."""
    layout = Layout(fabric, source)
    box = layout.width
    columns = len(layout.layers)
    p = Picture((columns + 1) * box + columns * COLUMN_GAP + 8, layout.bottom + 12, what)
    top = 4
    for node, parents in layout.parents.items():
        for i, parent in enumerate(parents):
            # Where it comes in: one row for each of several.
            y = top + layout.y[node] + ROW * (i - (len(parents) - 1) / 2)
            link(p, fabric, scheme, (parent, node), (layout.x(parent) + box,
                 top + layout.y[parent]), (layout.x(node), y), most)
    for a, b in sorted(fabric.links):
        if layout.column[a] == layout.column.get(b) and (a < b or (b, a) not in fabric.links):
            sideways(p, fabric, layout, scheme, (a, b), top, most)
    root_y = top + layout.y[fabric.root]
    p.line(box + 4, root_y, layout.x(fabric.root), root_y, 'uncounted')
    node_box(p, (4, root_y), (box, NODE_HEIGHT), source, 'host')
    for node in layout.column:
        node_box(p, (layout.x(node), top + layout.y[node]), (box, layout.height(node)), node, 'node')
    return p.render()


def node_box(p, at, box, name, class_):
    (x, y), (width, height) = at, box
    p.add('rect', '<title>%s</title>' % escape(name), x=float(x), y=y - height / 2,
          width=float(width), height=float(height), rx=13.0 if class_ == 'host' else 4.0,
          class_=class_)
    p.text(x + width / 2, y + 4, short(name, LONGEST_NAME), 'nodename', 'middle')


def link(p, fabric, scheme, ends, start, end, most):
    """Two lines: down above, back below, with their numbers at the lower end."""
    down, up = fabric.links.get(ends), fabric.links.get(ends[::-1])
    (x1, y1), (x2, y2) = start, end
    bend = x1 + COLUMN_GAP * 0.5
    wide, back = width_of(down, most), width_of(up, most)
    hint = '%s to %s: %s, back: %s' % (*ends, multiple(down), multiple(up))
    for shift, thick, class_ in ((-wide / 2 - 0.5, wide, 'flow'), (back / 2 + 0.5, back, 'flow up')):
        d = 'M%.1f,%.1fC%.1f,%.1f %.1f,%.1f %.1f,%.1f' % (
            x1, y1 + shift, bend, y1 + shift, x1 + COLUMN_GAP * 0.15, y2 + shift,
            x1 + COLUMN_GAP * 0.55, y2 + shift)
        p.path('%sL%.1f,%.1f' % (d, x2, y2 + shift), '%s c%d' % (class_, scheme_index(scheme)), hint,
               stroke_width=thick)
    p.text(x2 - 4, y2 - wide - 4, multiple(down), 'flowdown', 'end')
    p.text(x2 - 4, y2 + back + 12, multiple(up), 'flowup', 'end')


def sideways(p, fabric, layout, scheme, ends, top, most):
    """Between nodes of the same distance."""
    a, b = sorted(ends, key=lambda n: layout.y[n])
    x, y1, y2 = layout.x(a) + layout.width, top + layout.y[a], top + layout.y[b]
    there, back = fabric.links.get((a, b)), fabric.links.get((b, a))
    total = (there or 0) + (back or 0)
    p.path('M%.1f,%.1fC%.1f,%.1f %.1f,%.1f %.1f,%.1f' % (x, y1 + 8, x + 22, y1 + 8, x + 22, y2 - 8,
                                                         x, y2 - 8),
           'flow side c%d' % scheme_index(scheme),
           '%s to %s: %s, back: %s' % (a, b, multiple(there), multiple(back)),
           stroke_width=width_of(total, most))
    p.text(x + 18, (y1 + y2) / 2 + 4, '\u2193%s \u2191%s' % (multiple(there), multiple(back)),
           'flowup')
