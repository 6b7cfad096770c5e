/* SPDX-License-Identifier: Apache-2.0
 *
 * What the registry has about how often paths are probed.
 */
#ifndef CTL_REGISTRY_PROBES_H
#define CTL_REGISTRY_PROBES_H 1

#include "lib/probe-settings.h"

struct rrec_global;
struct rrec_node;
struct rrec_probe;

/* A row of Node.probes; NULL: there is none of this number. */
const struct rrec_probe *probe_find(const struct rrec_node *, int64_t number);

/* Global's row may be NULL.  Planes whose labels are no names are left out. */
void probe_settings_read(const struct rrec_global *, struct probe_settings *);
void probe_settings_uninit(struct probe_settings *);
/* Writes what was chosen for a plane, "" for all. */
void probe_choice_write(const struct rrec_global *, const char *plane, const struct probe_choice *);

#endif /* ctl/registry/probes.h */
