/* SPDX-License-Identifier: Apache-2.0
 *
 * A YAML document whose every complaint carries file:line:column.
 *
 * Errors are sticky: the first one is kept in 'error', later ones are ignored,
 * and the getters return harmless values, so a reader checks once at the end
 * of each part.
 */
#ifndef CTL_YAML_YAML_DOC_H
#define CTL_YAML_YAML_DOC_H 1

#include <stdbool.h>
#include <stddef.h>
#include <yaml.h>

struct yaml_doc {
    const char *file; /* as messages name it; the caller's. */
    yaml_document_t doc;
    char *error;         /* malloc'd; NULL: none so far. */
    char *problem;       /* the same without file, line and column; likewise. */
    size_t line, column; /* of the error; 0: it is about the file as a whole. */
};

/* Reads the one document in 'file', "-" for standard input, of at most 'max_size' bytes.  After a failure ('error' is
 * set) only yaml_doc_uninit() may follow.  'file' must outlive the document. */
void yaml_doc_init(struct yaml_doc *, const char *file, size_t max_size);
void yaml_doc_uninit(struct yaml_doc *);
yaml_node_t *yaml_doc_root(struct yaml_doc *);

/* Records an error at the node's position. */
void yaml_doc_error(struct yaml_doc *, const yaml_node_t *, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A mapping is read pair by pair: for (i = 0; yaml_doc_pair(doc, map, i, &key, &value); i++).
 * False at the end and when 'map' is no mapping. */
bool yaml_doc_pair(struct yaml_doc *, const yaml_node_t *map, size_t i, yaml_node_t **key,
                   yaml_node_t **value);
/* Item of a sequence; NULL at the end. */
yaml_node_t *yaml_doc_item(struct yaml_doc *, const yaml_node_t *seq, size_t i);
/* Text of a scalar; NULL, without an error, for another type. */
const char *yaml_doc_text(const yaml_node_t *);
/* Value of 'key'; NULL if there is none. */
yaml_node_t *yaml_doc_get(struct yaml_doc *, const yaml_node_t *map, const char *key);

/* Checks of type; true if the node has it.  'what' names the node in the message: "'nodes'". */
bool yaml_doc_is_mapping(struct yaml_doc *, const yaml_node_t *, const char *what);
bool yaml_doc_is_sequence(struct yaml_doc *, const yaml_node_t *, const char *what);
bool yaml_doc_is_scalar(struct yaml_doc *, const yaml_node_t *, const char *what);
/* Checks for a mapping with only these keys, each at most once.  'keys' ends with NULL; if it is
 * NULL, any key will do. */
bool yaml_doc_has_keys(struct yaml_doc *, const yaml_node_t *, const char *what,
                       const char *const keys[]);

/* Lists of words end with NULL. */
bool is_one_of(const char *word, const char *const words[]);

#endif /* ctl/yaml/yaml-doc.h */
