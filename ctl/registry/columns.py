#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The registry's columns for readers: types from rocecast.ovsschema, meanings from columns.ini.

usage: columns.py man TEMPLATE      the man page, with the tables in the place of the line @TABLES@
       columns.py markdown FILE     the document, with the tables behind the line of MARK

Both go to standard output.  A column without a meaning is an error, and so is the reverse.
"""
import configparser
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROW = '(row)'
WHO = {'castctl', 'castd', 'agent', 'operator', 'nobody'}
MARK = '<!-- ctl/registry/columns.py makes all that follows: make docs -->\n'


class Wrong(Exception):
    pass


def read_schema():
    with open(os.path.join(HERE, 'rocecast.ovsschema'), encoding='utf-8') as f:
        return json.load(f)['tables']


def read_meanings():
    with open(os.path.join(HERE, 'columns.ini'), encoding='utf-8') as f:
        return f.read()


def people(table, column, text):
    names = [name.strip() for name in text.split(',')]
    if not set(names) <= WHO:
        raise Wrong('columns.ini: %s.%s: "%s": one of %s is needed'
                    % (table, column, text, ', '.join(sorted(WHO))))
    return ', '.join(names)


class Column:
    def __init__(self, table, name, spec, text):
        who, _, meaning = text.partition('\n')
        writers, arrow, users = who.partition(' -> ')
        if not meaning or bool(arrow) == (name == ROW):
            raise Wrong('columns.ini: %s.%s: "WRITER -> USER" and then a meaning are needed'
                        % (table, name))
        self.name = name
        self.type = type_text(spec) if spec else ''
        self.writers = people(table, name, writers)
        self.users = people(table, name, users) if arrow else ''
        self.meaning = ' '.join(meaning.split())


class Table:
    def __init__(self, name, schema, texts):
        missing = [c for c in [ROW, *schema['columns']] if c not in texts]
        if missing:
            raise Wrong('columns.ini does not say what %s.%s means' % (name, missing[0]))
        self.name = name
        self.row = Column(name, ROW, None, texts[ROW])
        self.columns = [Column(name, c, spec, texts[c]) for c, spec in schema['columns'].items()]
        self.indexes = schema.get('indexes', [])
        unknown = [c for c in texts if c not in schema['columns'] and c != ROW]
        if unknown:
            raise Wrong('columns.ini: %s.%s is not in rocecast.ovsschema' % (name, unknown[0]))


def tables(schema, meanings):
    """[Table] of the schema's tables and the text of columns.ini."""
    ini = configparser.ConfigParser(delimiters=(':',), comment_prefixes=('#',), interpolation=None,
                                    empty_lines_in_values=False)
    ini.optionxform = str
    try:
        ini.read_string(meanings, 'columns.ini')
    except configparser.Error as e:
        raise Wrong(str(e)) from None
    unknown = [name for name in ini.sections() if name not in schema]
    if unknown:
        raise Wrong('columns.ini: table %s is not in rocecast.ovsschema' % unknown[0])
    return [Table(name, spec, ini[name] if name in ini else {}) for name, spec in schema.items()]


#
# Types, as RFC 7047 3.2 has them.
#

def base_text(base):
    if isinstance(base, str):
        return base
    if 'enum' in base:
        values = ['`%s`' % v for v in base['enum'][1]]
        return ' or '.join(filter(None, [', '.join(values[:-1]), values[-1]]))
    if 'refTable' in base:
        return '`%s`' % base['refTable']
    if 'maxInteger' in base:
        return '%d to %d' % (base['minInteger'], base['maxInteger'])
    if 'minInteger' in base:
        return '%d or more' % base['minInteger']
    return base['type']


def type_text(spec):
    kind = spec['type']
    if isinstance(kind, str):
        return kind
    text = base_text(kind['key'])
    if 'value' in kind:
        return 'map of %s to %s' % (text, base_text(kind['value']))
    if kind.get('max', 1) != 1:
        return 'set of ' + text
    return text + (', or empty' if kind.get('min', 1) == 0 else '')


def about(table):
    text = '%s Rows are made by %s.' % (table.row.meaning, table.row.writers)
    keys = [' with '.join('`%s`' % c for c in index) for index in table.indexes]
    return text + (' Unique: %s.' % '; '.join(keys) if keys else '')


#
# The two forms.
#

def man_text(text):
    """Text with `code` as lines of mdoc."""
    text = re.sub(r' \(\[[^]]+\]\([^)]+\)\)', '', text)
    lines = []
    for i, part in enumerate(re.split(r'(\(?`[^`]+`[.,:;)]*)', text)):
        if i % 2:
            before, code, after = re.fullmatch(r'(\(?)`([^`]+)`(.*)', part).groups()
            lines.append(' '.join(['.Li', *before, code.replace(' ', '\\ '), *after]))
        elif part.strip():
            # A sentence per line.
            lines += re.split(r'(?<=\.) (?=[A-Z0-9])', part.strip())
    return lines


def man_list(table):
    yield '.Ss Table ' + table.name
    yield from man_text(about(table))
    yield '.Bl -tag -width Ds'
    for c in table.columns:
        yield '.It Va %s Pq %s; %s for %s' % (c.name, c.type.replace('`', ''), c.writers, c.users)
        yield from man_text(c.meaning)
    yield '.El'


def markdown_table(table):
    yield ''
    yield '### ' + table.name
    yield ''
    yield about(table)
    yield ''
    yield '| column | type | written by | for | |'
    yield '|---|---|---|---|---|'
    for c in table.columns:
        yield '| `%s` | %s | %s | %s | %s |' % (c.name, c.type, c.writers, c.users, c.meaning)


def man(template, all_tables):
    text = '\n'.join(line for table in all_tables for line in man_list(table))
    if '\n@TABLES@\n' not in template:
        raise Wrong('the template has no line @TABLES@')
    return template.replace('@TABLES@', text)


def markdown(document, all_tables):
    head, mark, _ = document.partition(MARK)
    if not mark:
        raise Wrong('the document has no line ' + MARK.strip())
    lines = [line for table in all_tables for line in markdown_table(table)]
    return head + mark + '\n'.join(lines) + '\n'


def main():
    form = {'man': man, 'markdown': markdown}.get(sys.argv[1]) if len(sys.argv) == 3 else None
    if not form:
        sys.exit(re.search('(?s)usage:.*?\n\n', __doc__)[0].rstrip())
    with open(sys.argv[2], encoding='utf-8') as f:
        template = f.read()
    try:
        sys.stdout.write(form(template, tables(read_schema(), read_meanings())))
    except Wrong as e:
        sys.exit(str(e))


if __name__ == '__main__':
    main()
