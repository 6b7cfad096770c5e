/* SPDX-License-Identifier: Apache-2.0
 *
 * A YAML document whose every complaint carries file:line:column.
 */
#include <config.h>

#include "ctl/yaml/yaml-doc.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/spelling.h"
#include "util.h"

#define MAX_DEPTH 32 /* a correct file has 6. */

static void __attribute__((format(printf, 3, 0)))
set_error(struct yaml_doc *yd, const yaml_mark_t *at, const char *format, va_list args)
{
    if (yd->error) {
        return;
    }
    char *text = xvasprintf(format, args);
    yd->error = at ? xasprintf("%s:%zu:%zu: %s", yd->file, at->line + 1, at->column + 1, text)
                   : xasprintf("%s: %s", yd->file, text);
    yd->problem = text;
    yd->line = at ? at->line + 1 : 0;
    yd->column = at ? at->column + 1 : 0;
}

static void __attribute__((format(printf, 3, 4)))
error_at(struct yaml_doc *yd, const yaml_mark_t *at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set_error(yd, at, format, args);
    va_end(args);
}

void
yaml_doc_error(struct yaml_doc *yd, const yaml_node_t *node, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set_error(yd, &node->start_mark, format, args);
    va_end(args);
}

/* Checks that nothing follows the first document. */
static void
check_end(struct yaml_doc *yd, yaml_parser_t *parser)
{
    yaml_document_t next;
    if (!yaml_parser_load(parser, &next)) {
        error_at(yd, &parser->problem_mark, "%s", parser->problem);
        return;
    }
    const yaml_node_t *root = yaml_document_get_root_node(&next);
    if (root) {
        error_at(yd, &root->start_mark, "a second document: there may be one");
    }
    yaml_document_delete(&next);
}

/* Checks that strings are as long as they look: what follows a NUL byte would be lost unseen. */
static void
check_strings(struct yaml_doc *yd)
{
    for (int i = 1; yaml_document_get_node(&yd->doc, i); i++) {
        const yaml_node_t *node = yaml_document_get_node(&yd->doc, i);
        if (node->type == YAML_SCALAR_NODE
            && strlen(yaml_doc_text(node)) != node->data.scalar.length) {
            yaml_doc_error(yd, node, "a string with a NUL byte");
        }
    }
}

/* The whole stream, malloc'd; NULL after an error. */
static unsigned char *
read_all(struct yaml_doc *yd, FILE *stream, size_t max_size, size_t *len)
{
    unsigned char *text = NULL;
    size_t allocated = 0;

    *len = 0;
    do {
        if (*len == allocated) {
            text = x2nrealloc(text, &allocated, sizeof *text);
        }
        *len += fread(text + *len, 1, MIN(allocated, max_size + 1) - *len, stream);
    } while (*len <= max_size && !feof(stream) && !ferror(stream));
    if (ferror(stream)) {
        error_at(yd, NULL, "%s", ovs_strerror(errno));
    } else if (*len > max_size) {
        error_at(yd, NULL, "larger than %zu bytes", max_size);
    }
    if (yd->error) {
        free(text);
        return NULL;
    }
    return text;
}

/* Likewise, of the file. */
static unsigned char *
read_file(struct yaml_doc *yd, size_t max_size, size_t *len)
{
    if (!strcmp(yd->file, "-")) {
        yd->file = "standard input";
        return read_all(yd, stdin, max_size, len);
    }
    FILE *stream = fopen(yd->file, "re");
    if (!stream) {
        error_at(yd, NULL, "%s", ovs_strerror(errno));
        return NULL;
    }
    unsigned char *text = read_all(yd, stream, max_size, len);
    fclose(stream);
    return text;
}

/* By how much an event changes the depth. */
static int
deeper_by(yaml_event_type_t type)
{
    return type == YAML_SEQUENCE_START_EVENT || type == YAML_MAPPING_START_EVENT ? 1
           : type == YAML_SEQUENCE_END_EVENT || type == YAML_MAPPING_END_EVENT   ? -1
                                                                                 : 0;
}

/* libyaml's time grows with the square of the depth.  The loader says what else is wrong. */
static void
check_depth(struct yaml_doc *yd, const unsigned char *text, size_t len)
{
    yaml_event_type_t type = YAML_NO_EVENT;
    yaml_parser_t parser;
    yaml_event_t event;
    int depth = 0;

    ovs_assert(yaml_parser_initialize(&parser));
    yaml_parser_set_input_string(&parser, text, len);
    while (type != YAML_STREAM_END_EVENT && !yd->error && yaml_parser_parse(&parser, &event)) {
        type = event.type;
        depth += deeper_by(type);
        if (depth > MAX_DEPTH) {
            error_at(yd, &event.start_mark, "nested deeper than %d levels", MAX_DEPTH);
        }
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
}

static void
load(struct yaml_doc *yd, const unsigned char *text, size_t len)
{
    yaml_parser_t parser;

    ovs_assert(yaml_parser_initialize(&parser));
    yaml_parser_set_input_string(&parser, text, len);
    if (!yaml_parser_load(&parser, &yd->doc)) {
        if (parser.error == YAML_READER_ERROR) {
            error_at(yd, NULL, "byte %zu: %s", parser.problem_offset + 1, parser.problem);
        } else {
            error_at(yd, &parser.problem_mark, "%s%s%s", parser.context ? parser.context : "",
                     parser.context ? ", " : "", parser.problem);
        }
    } else if (!yaml_doc_root(yd)) {
        error_at(yd, NULL, "empty file");
    } else {
        check_strings(yd);
        check_end(yd, &parser);
    }
    yaml_parser_delete(&parser);
}

void
yaml_doc_init(struct yaml_doc *yd, const char *file, size_t max_size)
{
    *yd = (struct yaml_doc){.file = file};

    size_t len = 0;
    unsigned char *text = read_file(yd, max_size, &len);
    if (text) {
        check_depth(yd, text, len);
    }
    if (!yd->error) {
        load(yd, text, len);
    }
    free(text);
}

void
yaml_doc_uninit(struct yaml_doc *yd)
{
    yaml_document_delete(&yd->doc);
    free(yd->error);
    free(yd->problem);
}

yaml_node_t *
yaml_doc_root(struct yaml_doc *yd)
{
    return yaml_document_get_root_node(&yd->doc);
}

bool
yaml_doc_pair(struct yaml_doc *yd, const yaml_node_t *map, size_t i, yaml_node_t **key,
              yaml_node_t **value)
{
    if (map->type != YAML_MAPPING_NODE) {
        return false;
    }
    const yaml_node_pair_t *pair = map->data.mapping.pairs.start + i;
    if (pair >= map->data.mapping.pairs.top) {
        return false;
    }
    *key = yaml_document_get_node(&yd->doc, pair->key);
    *value = yaml_document_get_node(&yd->doc, pair->value);
    return true;
}

yaml_node_t *
yaml_doc_item(struct yaml_doc *yd, const yaml_node_t *seq, size_t i)
{
    if (seq->type != YAML_SEQUENCE_NODE) {
        return NULL;
    }
    const yaml_node_item_t *item = seq->data.sequence.items.start + i;
    return item < seq->data.sequence.items.top ? yaml_document_get_node(&yd->doc, *item) : NULL;
}

const char *
yaml_doc_text(const yaml_node_t *node)
{
    return node->type == YAML_SCALAR_NODE ? (const char *) node->data.scalar.value : NULL;
}

yaml_node_t *
yaml_doc_get(struct yaml_doc *yd, const yaml_node_t *map, const char *key)
{
    yaml_node_t *k, *v;
    for (size_t i = 0; yaml_doc_pair(yd, map, i, &k, &v); i++) {
        const char *text = yaml_doc_text(k);
        if (text && !strcmp(text, key)) {
            return v;
        }
    }
    return NULL;
}

static const char *
type_name(const yaml_node_t *node)
{
    switch (node->type) {
    case YAML_SCALAR_NODE: return yaml_doc_text(node)[0] ? "a scalar" : "empty";
    case YAML_SEQUENCE_NODE: return "a list";
    case YAML_MAPPING_NODE: return "a mapping";
    case YAML_NO_NODE:
    default: return "nothing";
    }
}

static bool
is_type(struct yaml_doc *yd, const yaml_node_t *node, const char *what, yaml_node_type_t type,
        const char *wanted)
{
    if (node->type != type) {
        yaml_doc_error(yd, node, "%s must be %s, not %s", what, wanted, type_name(node));
        return false;
    }
    return true;
}

bool
yaml_doc_is_mapping(struct yaml_doc *yd, const yaml_node_t *node, const char *what)
{
    return is_type(yd, node, what, YAML_MAPPING_NODE, "a mapping");
}

bool
yaml_doc_is_sequence(struct yaml_doc *yd, const yaml_node_t *node, const char *what)
{
    return is_type(yd, node, what, YAML_SEQUENCE_NODE, "a list");
}

bool
yaml_doc_is_scalar(struct yaml_doc *yd, const yaml_node_t *node, const char *what)
{
    return is_type(yd, node, what, YAML_SCALAR_NODE, "a scalar");
}

bool
is_one_of(const char *word, const char *const words[])
{
    for (size_t i = 0; words[i]; i++) {
        if (!strcmp(word, words[i])) {
            return true;
        }
    }
    return false;
}

bool
yaml_doc_has_keys(struct yaml_doc *yd, const yaml_node_t *map, const char *what,
                  const char *const keys[])
{
    if (!yaml_doc_is_mapping(yd, map, what)) {
        return false;
    }
    yaml_node_t *key, *value;
    for (size_t i = 0; yaml_doc_pair(yd, map, i, &key, &value); i++) {
        if (!yaml_doc_is_scalar(yd, key, "a key")) {
            return false;
        }
        const char *text = yaml_doc_text(key);
        if (keys && !is_one_of(text, keys)) {
            char *hint = did_you_mean(text, keys);
            yaml_doc_error(yd, key, "unknown key '%s' in %s%s", text, what, hint);
            free(hint);
            return false;
        }
        yaml_node_t *first, *ignored;
        for (size_t j = 0; j < i && yaml_doc_pair(yd, map, j, &first, &ignored); j++) {
            if (!strcmp(yaml_doc_text(first), text)) {
                yaml_doc_error(yd, key, "duplicate key '%s' in %s (first in line %zu)", text, what,
                               first->start_mark.line + 1);
                return false;
            }
        }
    }
    return true;
}
