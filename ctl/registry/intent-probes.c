/* SPDX-License-Identifier: Apache-2.0
 *
 * The probes of one node in the registry, and the planes of its trees, read into plain data.
 */
#include <config.h>

#include "ctl/registry/intent-probes.h"

#include <inttypes.h>
#include <stdlib.h>

#include "ctl/registry/rocecast-idl.h"
#include "ctl/registry/values.h"
#include "util.h"

#define PROBE_INTERVAL_MAX 60000 /* ms. */

static bool
read_program(struct reader *r, const char *column, const char *s, struct program *out)
{
    return program_parse(s, out)
           || reader_bad(r, column, s, "must be at most %d IPv6 addresses, joined by commas",
                         PROGRAM_MAX);
}

/* Only a peer is asked, and answers. */
static bool
read_peer(struct reader *r, const struct rrec_probe *row, struct probe_config *p)
{
    if (p->kind == PROBE_LOOP) {
        return (!row->peer[0]
                || reader_bad(r, "Probe.peer", row->peer, "probe %s is a loop", p->name))
               && (!row->back[0]
                   || reader_bad(r, "Probe.back", row->back, "probe %s is a loop", p->name))
               && (!row->reverse || reader_bad(r, "Probe.reverse", p->name, "the probe is a loop"));
    }
    p->reverse = (uint16_t) row->reverse;
    return reader_address(r, "Probe.peer", row->peer, &p->peer)
           && read_program(r, "Probe.back", row->back, &p->back)
           && reader_integer(r, "Probe.reverse", row->reverse, 0, PROBE_NUMBER_MAX);
}

static bool
read_times(struct reader *r, const struct rrec_probe *row, struct probe_config *p)
{
    if (!reader_integer(r, "Probe.interval", row->interval, 1, PROBE_INTERVAL_MAX)
        || !reader_integer(r, "Probe.timeout", row->timeout, 1, PROBE_INTERVAL_MAX)) {
        return false;
    }
    p->interval_usec = (uint32_t) row->interval * 1000;
    p->timeout_usec = (uint32_t) row->timeout * 1000;
    return row->timeout <= row->interval
           || reader_bad(r, "Probe.timeout", p->name, "%" PRId64 " is more than its interval",
                         row->timeout);
}

static bool
read_probe(struct reader *r, const struct rrec_probe *row, const struct node_config *config,
           struct probe_config *p)
{
    const char *why = path_text_check(row->name, false);

    if (why) {
        return reader_bad(r, "Probe.name", row->name, "%s", why);
    }
    ovs_strlcpy(p->name, row->name, sizeof p->name);
    if (!probe_kind_parse(row->kind, &p->kind)) {
        return reader_bad(r, "Probe.kind", row->kind, "unknown");
    }
    if (!reader_integer(r, "Probe.number", row->number, 1, PROBE_NUMBER_MAX)
        || (row->plane[0] && !reader_name(r, "Probe.plane", row->plane, p->plane))
        || !reader_port(r, "Probe.port", row->name, row->port, config, &p->port)
        || !read_program(r, "Probe.program", row->program, &p->program) || !read_peer(r, row, p)
        || !read_times(r, row, p)
        || !reader_integer(r, "Probe.large", row->large, 0, PROBE_LARGE_MAX)) {
        return false;
    }
    p->number = (uint16_t) row->number;
    p->large = (uint32_t) row->large;
    p->no_checksum = row->no_checksum;
    return true;
}

static int
compare_probes(const void *a_, const void *b_)
{
    const struct probe_config *a = a_, *b = b_;

    return a->number < b->number ? -1 : a->number > b->number;
}

bool
intent_read_probes(struct reader *r, const struct rrec_node *row, struct node_config *out)
{
    if (row->n_probes > PROBES_MAX) {
        return reader_bad(r, "Node.probes", row->name, "more than %d", PROBES_MAX);
    }
    out->probes = xcalloc(row->n_probes + 1, sizeof *out->probes);
    for (size_t i = 0; i < row->n_probes; i++) {
        if (!read_probe(r, row->probes[i], out, &out->probes[out->n_probes++])) {
            return false;
        }
    }
    qsort(out->probes, out->n_probes, sizeof *out->probes, compare_probes);
    for (size_t i = 1; i < out->n_probes; i++) {
        if (out->probes[i - 1].number == out->probes[i].number) {
            return reader_bad(r, "Probe.number", out->probes[i].name, "%u is there twice",
                              out->probes[i].number);
        }
    }
    return reader_addresses(r, "Node.probers", row->probers, row->n_probers, &out->probers,
                            &out->n_probers);
}

bool
intent_read_probe_number(struct reader *r, const char *column, const char *row, int64_t number,
                         const struct node_config *config, uint16_t *out)
{
    if (!reader_integer(r, column, number, 1, PROBE_NUMBER_MAX)) {
        return false;
    }
    *out = (uint16_t) number;
    for (size_t i = 0; config && i < config->n_probes; i++) {
        if (config->probes[i].number == number) {
            return true;
        }
    }
    return !config || reader_bad(r, column, row, "no probe has number %" PRId64, number);
}

/* Fills in 'out', which is counted, so that a plane read in part is freed. */
static bool
read_plane(struct reader *r, const struct rrec_plane *row, const struct node_config *config,
           struct plane_config *out)
{
    if (!reader_name(r, "Plane.name", row->name, out->name)
        || !reader_address(r, "Plane.sid", row->sid, &out->sid)
        || !reader_address(r, "Plane.program", row->program, &out->program)
        || (row->port && config
            && !reader_port(r, "Plane.port", row->name, row->port, config, &out->port))) {
        return false;
    }
    out->port = (uint16_t) row->port;
    out->usable = row->usable;
    out->preferred = row->preferred;
    out->probes = xcalloc(row->n_probes + 1, sizeof *out->probes);
    for (size_t i = 0; i < row->n_probes; i++) { /* a set of numbers is in order. */
        if (!intent_read_probe_number(r, "Plane.probes", row->name, row->probes[i], config,
                                      &out->probes[out->n_probes++])) {
            return false;
        }
    }
    return true;
}

static int
compare_planes(const void *a_, const void *b_)
{
    const struct plane_config *a = a_, *b = b_;

    return strcmp(a->name, b->name);
}

static bool
read_planes(struct reader *r, const char *column, struct rrec_plane *const rows[], size_t n,
            const struct node_config *config, struct plane_config **out, size_t *n_out)
{
    if (n > PLANES_MAX) {
        return reader_bad(r, column, rows[0]->name, "more than %d", PLANES_MAX);
    }
    *out = xcalloc(n + 1, sizeof **out);
    for (size_t i = 0; i < n; i++) {
        if (!read_plane(r, rows[i], config, &(*out)[(*n_out)++])) {
            return false;
        }
    }
    qsort(*out, n, sizeof **out, compare_planes);
    for (size_t i = 1; i < n; i++) {
        if (!compare_planes(&(*out)[i - 1], &(*out)[i])) {
            return reader_bad(r, column, (*out)[i].name, "is there twice");
        }
    }
    return true;
}

/* outer_da[i] becomes the SID of planes[i]; before, it has the same SIDs in their own order. */
static bool
order_outer_da(struct reader *r, struct tree_config *t)
{
    for (size_t i = 0; i < t->n_planes; i++) {
        if (!bsearch(&t->planes[i].sid, t->outer_da, t->n_outer_da, sizeof *t->outer_da,
                     address_compare)) {
            return reader_bad(r, "Plane.sid", ip6_text(&t->planes[i].sid),
                              "not in Tree_Node.outer_da");
        }
    }
    if (t->n_planes && t->n_planes != t->n_outer_da) {
        return reader_bad(r, "Tree_Node.planes", t->group, "not one for each of outer_da");
    }
    for (size_t i = 0; i < t->n_planes; i++) {
        t->outer_da[i] = t->planes[i].sid;
    }
    return true;
}

bool
intent_read_planes(struct reader *r, const struct rrec_tree_node *row,
                   const struct node_config *config, struct tree_config *out)
{
    return read_planes(r, "Tree_Node.planes", row->planes, row->n_planes, config, &out->planes,
                       &out->n_planes)
           && read_planes(r, "Tree_Node.parent_planes", row->parent_planes, row->n_parent_planes,
                          config, &out->parent_planes, &out->n_parent_planes)
           && order_outer_da(r, out);
}
