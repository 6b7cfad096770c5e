/* SPDX-License-Identifier: Apache-2.0
 *
 * The paths of one node in the registry read into plain data.
 */
#include <config.h>

#include "ctl/registry/intent-paths.h"

#include <inttypes.h>
#include <stdlib.h>

#include "bitmap.h"
#include "ctl/registry/intent-probes.h"
#include "ctl/registry/rocecast-idl.h"
#include "ctl/registry/values.h"
#include "util.h"

static int
compare_ranks(const void *a_, const void *b_)
{
    const struct rrec_path *const *a = a_, *const *b = b_;

    return (*a)->rank != (*b)->rank ? ((*a)->rank < (*b)->rank ? -1 : 1)
                                    : strcmp((*a)->name, (*b)->name);
}

/* A path that is not usable may have no program. */
static bool
read_path(struct reader *r, const struct rrec_path *row, const struct node_config *config,
          struct path_config *p)
{
    const char *why = path_text_check(row->name, true);

    if (why) {
        return reader_bad(r, "Path.name", row->name, "%s", why);
    }
    ovs_strlcpy(p->name, row->name, sizeof p->name);
    p->usable = row->usable;
    if (!reader_integer(r, "Path.number", row->number, 1, PATH_NUMBER_MAX)
        || (row->plane[0] && !reader_name(r, "Path.plane", row->plane, p->plane))
        || (row->port && !reader_port(r, "Path.port", row->name, row->port, config, &p->port))
        || (row->probe
            && !intent_read_probe_number(r, "Path.probe", row->name, row->probe, config,
                                         &p->probe))) {
        return false;
    }
    p->number = (uint16_t) row->number;
    return (!row->usable && !row->program[0]) || program_parse(row->program, &p->program)
           || reader_bad(r, "Path.program", row->program,
                         "must be at most %d IPv6 addresses, joined by commas", PROGRAM_MAX);
}

/* 'numbers' are those of the node's paths so far. */
static bool
read_paths(struct reader *r, const struct rrec_destination *row, const struct node_config *config,
           unsigned long *numbers, struct destination_config *d)
{
    const struct rrec_path **rows = xcalloc(row->n_paths + 1, sizeof *rows);

    for (size_t i = 0; i < row->n_paths; i++) {
        rows[i] = row->paths[i];
    }
    qsort(rows, row->n_paths, sizeof *rows, compare_ranks);
    d->paths = xcalloc(row->n_paths + 1, sizeof *d->paths);
    for (size_t i = 0; i < row->n_paths && !r->error; i++) {
        struct path_config *p = &d->paths[d->n_paths++];

        if (read_path(r, rows[i], config, p)) {
            if (bitmap_is_set(numbers, p->number)) {
                reader_bad(r, "Path.number", p->name, "%u is there twice", p->number);
            }
            bitmap_set1(numbers, p->number);
        }
    }
    free(rows);
    return !r->error;
}

/* A number of one of the destination's paths. */
static bool
read_number(struct reader *r, const char *column, int64_t number,
            const struct destination_config *d, uint16_t *out)
{
    for (size_t i = 0; i < d->n_paths; i++) {
        if (d->paths[i].number == number) {
            *out = (uint16_t) number;
            return true;
        }
    }
    return reader_bad(r, column, d->name, "no path has number %" PRId64, number);
}

static bool
read_pins(struct reader *r, const struct rrec_destination *row, struct destination_config *d)
{
    d->pins = xcalloc(row->n_pins + 1, sizeof *d->pins);
    for (size_t i = 0; i < row->n_pins; i++) { /* the keys of a map are in order. */
        struct path_pin *pin = &d->pins[d->n_pins++];

        if (!reader_integer(r, "Destination.pins", row->key_pins[i], 1, 0xffffff)
            || !read_number(r, "Destination.pins", row->value_pins[i], d, &pin->number)) {
            return false;
        }
        pin->dest_qp = (uint32_t) row->key_pins[i];
    }
    return !row->pinned || read_number(r, "Destination.pinned", row->pinned, d, &d->pinned);
}

static bool
read_destination(struct reader *r, const struct rrec_destination *row,
                 const struct node_config *config, unsigned long *numbers,
                 struct destination_config *d)
{
    if (!reader_name(r, "Destination.name", row->name, d->name)
        || !reader_address(r, "Destination.address", row->address, &d->address)) {
        return false;
    }
    if (!path_policy_parse(row->policy, &d->policy)) {
        return reader_bad(r, "Destination.policy", row->policy, "unknown");
    }
    if (row->n_paths > PATHS_MAX) {
        return reader_bad(r, "Destination.paths", row->name, "more than %d", PATHS_MAX);
    }
    return read_paths(r, row, config, numbers, d) && read_pins(r, row, d);
}

static int
compare_destinations(const void *a_, const void *b_)
{
    const struct destination_config *a = a_, *b = b_;

    return address_compare(&a->address, &b->address);
}

bool
intent_read_destinations(struct reader *r, const struct rrec_node *row, struct node_config *out)
{
    unsigned long *numbers = bitmap_allocate(PATH_NUMBER_MAX + 1);

    out->destinations = xcalloc(row->n_destinations + 1, sizeof *out->destinations);
    /* Counted first, so that a destination read in part is freed. */
    for (size_t i = 0; i < row->n_destinations && !r->error; i++) {
        read_destination(r, row->destinations[i], out, numbers,
                         &out->destinations[out->n_destinations++]);
    }
    bitmap_free(numbers);
    qsort(out->destinations, out->n_destinations, sizeof *out->destinations, compare_destinations);
    for (size_t i = 1; i < out->n_destinations && !r->error; i++) {
        if (!compare_destinations(&out->destinations[i - 1], &out->destinations[i])) {
            reader_bad(r, "Destination.address", ip6_text(&out->destinations[i].address),
                       "is there twice");
        }
    }
    return !r->error;
}
