/* SPDX-License-Identifier: Apache-2.0
 *
 * What the registry has about congestion, as operators have said it.
 */
#ifndef CTL_REGISTRY_CONGESTION_H
#define CTL_REGISTRY_CONGESTION_H 1

#include "lib/congestion-settings.h"

struct rrec_global;
struct rrec_host;

/* Empty columns, as in a converted registry, read as defaults; so does Global's row if it is NULL. */
struct congestion_settings congestion_settings_read(const struct rrec_global *);
struct rate_settings rate_settings_read(const struct rrec_host *);
/* Columns that have their defaults become empty. */
void congestion_settings_write(const struct rrec_global *, const struct congestion_settings *);
void rate_settings_write(const struct rrec_host *, const struct rate_settings *);

#endif /* ctl/registry/congestion.h */
