/* SPDX-License-Identifier: Apache-2.0
 *
 * What a file of castctl apply asks for (docs/castctl.md, "apply and export").
 */
#ifndef CTL_CASTCTL_PLAN_H
#define CTL_CASTCTL_PLAN_H 1

#include <stdbool.h>

#include "ctl/castctl/config.h"
#include "sset.h"

struct plan {
    const char *file;
    struct config config;
    bool named[N_CONFIG_FAMILIES]; /* families that the file is about. */
    struct sset with_members;      /* groups of which it names the members. */
};

/* Reads 'file', YAML or JSON; "-" is standard input.  Ends castctl, saying where, if it is no such file.  'p' keeps
 * what is in it. */
void plan_read(struct plan *p, const char *file);

#endif /* ctl/castctl/plan.h */
