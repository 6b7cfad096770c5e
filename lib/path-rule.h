/* SPDX-License-Identifier: Apache-2.0
 *
 * What operators say of paths, as castctl writes it and the planner reads it.
 */
#ifndef LIB_PATH_RULE_H
#define LIB_PATH_RULE_H 1

#include "lib/words.h"

/* How a path ends. */
enum path_form {
    PATH_FORM_AUTO,  /* 'agent' if the host has one, else 'dt6' if the last node is a router, else
                      * 'usd'. */
    PATH_FORM_USD,   /* the last switch takes the header off, by its uN. */
    PATH_FORM_AGENT, /* the receiver's agent does, by its uN. */
    PATH_FORM_DT6,   /* the last switch does, by its End.DT6. */
};
WORDS_DECLARE(path_form, enum path_form);

/* What an operator says of paths from one host to another. */
enum path_rule_kind {
    PATH_PIN,     /* packets take this path, and no other. */
    PATH_EXCLUDE, /* none is placed on it. */
};
WORDS_DECLARE(path_rule_kind, enum path_rule_kind);

#endif /* lib/path-rule.h */
