/* SPDX-License-Identifier: Apache-2.0
 *
 * Parameters of a topology file and their use in its strings: "{N}" is a
 * parameter's value; "{A..B}" makes an entry once for each number from A to B,
 * with "{i}" standing for the number, "{i-1}" for the one before and so on.
 */
#ifndef TESTBED_CASTLAB_PARAMETERS_H
#define TESTBED_CASTLAB_PARAMETERS_H 1

#include "ctl/yaml/yaml-doc.h"

struct parameter {
    char *name;
    char *value; /* NULL: must be given with -p. */
};

struct parameters {
    size_t n;
    struct parameter *list;
};

/* 'map' is the file's mapping of defaults, NULL if it has none; 'given' are n strings KEY=VALUE.
 * Errors go to 'yd'. */
void parameters_init(struct parameters *, struct yaml_doc *yd, yaml_node_t *map,
                     const char *const given[], size_t n);
void parameters_uninit(struct parameters *);

/* How often an entry is to be made.  The range comes from the first of the entry's strings that has
 * one: call parameters_find_range() for each string.  A second range is an error. */
struct range {
    bool is_range;
    long first, last, i;
};
void parameters_find_range(const struct parameters *, struct yaml_doc *, const yaml_node_t *scalar,
                           struct range *);

/* The scalar's text with everything replaced, for the number range->i.  malloc'd, never NULL. */
char *parameters_expand(const struct parameters *, struct yaml_doc *, const yaml_node_t *scalar,
                        const struct range *range);

#endif /* testbed/castlab/parameters.h */
