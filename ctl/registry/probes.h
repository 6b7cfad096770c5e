/* SPDX-License-Identifier: Apache-2.0
 *
 * What the registry has about how often paths are probed.
 */
#ifndef CTL_REGISTRY_PROBES_H
#define CTL_REGISTRY_PROBES_H 1

#include "lib/probe-settings.h"

struct rrec_global;

/* Global's row may be NULL.  Planes whose labels are no names are left out. */
void probe_settings_read(const struct rrec_global *, struct probe_settings *);
void probe_settings_uninit(struct probe_settings *);

#endif /* ctl/registry/probes.h */
