/* SPDX-License-Identifier: Apache-2.0
 *
 * What is broken, as castctl shows it.
 */
#ifndef CTL_CASTCTL_FAULT_H
#define CTL_CASTCTL_FAULT_H 1

#include "ctl/castctl/castctl.h"
#include "svec.h"

/* Puts the candidates, since when, and the probes that say so. */
void
fault_put(struct json *, const struct svec *elements, int64_t since, const struct svec *evidence);
/* "leaf1 or dpu1<>leaf1"; malloc'd. */
char *fault_text(const struct svec *elements);
/* The first ones, and how many there are besides; malloc'd. */
char *fault_evidence_text(const struct svec *evidence);

#endif /* ctl/castctl/fault.h */
