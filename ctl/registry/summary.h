/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers about what the registry has, for metrics.
 */
#ifndef CTL_REGISTRY_SUMMARY_H
#define CTL_REGISTRY_SUMMARY_H 1

struct json;
struct ovsdb_idl;

/* An object of numbers, and of arrays "nodes", "groups", "members", "states", "connections",
 * "probes" and "faults" of objects.  The IDL has all columns that nodes are told. */
struct json *registry_summary(const struct ovsdb_idl *);

#endif /* ctl/registry/summary.h */
