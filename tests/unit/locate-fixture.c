/* SPDX-License-Identifier: Apache-2.0
 *
 * Networks in which something is broken, and what probes say of that.
 */
#include <config.h>

#include "tests/unit/locate-fixture.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "openvswitch/dynamic-string.h"
#include "util.h"

/*
 * Sets of elements.
 */

const set set_none;

void
set_add(set *s, unsigned element)
{
    s->bits[element / 64] |= UINT64_C(1) << element % 64;
}

set
set_of(unsigned element)
{
    set s = {{0, 0}};

    set_add(&s, element);
    return s;
}

set
set_both(set a, set b)
{
    return (set){{a.bits[0] | b.bits[0], a.bits[1] | b.bits[1]}};
}

bool
set_meet(set a, set b)
{
    return (a.bits[0] & b.bits[0]) || (a.bits[1] & b.bits[1]);
}

bool
set_has(set s, unsigned element)
{
    return s.bits[element / 64] >> element % 64 & 1;
}

/*
 * The world.
 */

static unsigned
direction(const struct world *w, unsigned link, bool reverse)
{
    return w->n_nodes + 2 * link + reverse;
}

static unsigned
n_elements(const struct world *w)
{
    return w->n_nodes + 2 * w->n_links;
}

unsigned
world_add_node(struct world *w, const char *name)
{
    ck_assert_uint_eq(w->n_links, 0);
    ovs_strlcpy(w->names[w->n_nodes], name, sizeof w->names[0]);
    return w->n_nodes++;
}

static void
name_direction(struct world *w, unsigned element, const char *from, const char *to)
{
    char *name = xasprintf("%s>%s", from, to);

    ovs_strlcpy(w->names[element], name, sizeof w->names[0]);
    free(name);
}

void
world_add_link(struct world *w, unsigned a, unsigned b)
{
    unsigned link = w->n_links++;

    w->ends[link][0] = a;
    w->ends[link][1] = b;
    name_direction(w, direction(w, link, false), w->names[a], w->names[b]);
    name_direction(w, direction(w, link, true), w->names[b], w->names[a]);
}

unsigned
world_find_link(const struct world *w, unsigned a, unsigned b, bool *reverse)
{
    for (unsigned i = 0; i < w->n_links; i++) {
        *reverse = w->ends[i][0] == b && w->ends[i][1] == a;
        if (*reverse || (w->ends[i][0] == a && w->ends[i][1] == b)) {
            return i;
        }
    }
    return MAX_LINKS;
}

unsigned
world_find(const struct world *w, const char *name)
{
    unsigned i = 0;

    while (strcmp(w->names[i], name)) {
        i++;
        ck_assert_uint_lt(i, n_elements(w));
    }
    return i;
}

void
world_add_way(struct world *w, bool is_peer, unsigned n, const unsigned nodes[])
{
    struct way *way = &w->ways[w->n_ways++];

    ck_assert_uint_le(w->n_ways, MAX_PROBES);
    *way = (struct way){.n = n, .is_peer = is_peer};
    for (unsigned i = 0; i < n; i++) {
        way->nodes[i] = nodes[i];
        set_add(&way->there, nodes[i]);
        set_add(&way->back, nodes[i]);
        if (i) {
            bool reverse;
            unsigned link = world_find_link(w, nodes[i - 1], nodes[i], &reverse);

            ck_assert_uint_lt(link, MAX_LINKS);
            set_add(&way->there, direction(w, link, reverse));
            set_add(&way->back, direction(w, link, !reverse));
        }
    }
}

/* "dpu1 leaf1 spine5". */
static void
add_way_text(struct world *w, bool is_peer, const char *text)
{
    unsigned n = 0, nodes[MAX_WAY];
    char name[16];
    int len;

    for (; sscanf(text, "%15s%n", name, &len) == 1; text += len) {
        nodes[n++] = world_find(w, name);
    }
    world_add_way(w, is_peer, n, nodes);
}

static void
append(char *text, size_t size, const char *separator, const char *word)
{
    if (text[0]) {
        strncat(text, separator, size - strlen(text) - 1);
    }
    strncat(text, word, size - strlen(text) - 1);
}

/* As plan_probes() has them: links and nodes in the order in which they are passed, there and back; but
 * for the node that sends the probe. */
static void
fill_elements(struct world *w, unsigned i)
{
    const struct way *way = &w->ways[i];
    unsigned last = way->n - 1;

    for (unsigned j = 0; j < 2 * last; j++) {
        unsigned from = way->nodes[j < last ? j : 2 * last - j];
        unsigned to = way->nodes[j < last ? j + 1 : 2 * last - j - 1];
        bool reverse;
        unsigned link = world_find_link(w, from, to, &reverse);

        append(w->elements[i], sizeof w->elements[i], " ", w->names[direction(w, link, reverse)]);
        if (to != way->nodes[0]) {
            append(w->elements[i], sizeof w->elements[i], " ", w->names[to]);
        }
    }
}

/* Is the one the other's way backwards? */
static bool
is_reverse(const struct way *a, const struct way *b)
{
    bool same = a->is_peer && b->is_peer && a->n == b->n;

    for (unsigned i = 0; i < a->n && same; i++) {
        same = a->nodes[i] == b->nodes[b->n - 1 - i];
    }
    return same;
}

void
world_fill_probes(struct world *w)
{
    for (unsigned i = 0; i < w->n_ways; i++) {
        const struct way *way = &w->ways[i];

        for (unsigned j = 0; j < way->n; j++) {
            append(w->probe_names[i], sizeof w->probe_names[i], ",", w->names[way->nodes[j]]);
        }
        fill_elements(w, i);
        w->probes[i] = (struct locate_probe){
            .name = w->probe_names[i],
            .node = w->names[way->nodes[0]],
            .kind = way->is_peer ? PROBE_PEER : PROBE_LOOP,
            .elements = w->elements[i],
            .interval_usec = INTERVAL,
        };
        for (unsigned j = 0; j < w->n_ways; j++) {
            if (is_reverse(way, &w->ways[j])) {
                w->probes[i].reverse = &w->probes[j];
            }
        }
    }
}

set
world_way_elements(const struct way *way)
{
    return set_both(way->there, way->back);
}

void
world_break(struct world *w, set broken)
{
    for (unsigned i = 0; i < w->n_ways; i++) {
        const struct way *way = &w->ways[i];
        struct locate_probe *p = &w->probes[i];
        bool silent = set_has(w->silent, way->nodes[0]);

        p->result = silent ? (w->stale ? LOCATE_WORKS : LOCATE_UNKNOWN)
                    : set_meet(world_way_elements(way), broken) ? LOCATE_FAILS
                                                                : LOCATE_WORKS;
        p->since = p->result == LOCATE_FAILS ? 1000 : 10;
        p->heard = way->is_peer && (silent ? w->stale : !set_meet(way->back, broken));
    }
}

void
world_locate(struct world *w)
{
    locate_faults_free(w->faults, w->n_faults);
    locate_faults(w->probes, w->n_ways, &w->faults, &w->n_faults);
}

char *
world_faults_text(const struct world *w)
{
    struct ds s = DS_EMPTY_INITIALIZER;

    for (size_t i = 0; i < w->n_faults; i++) {
        for (size_t j = 0; j < w->faults[i].n_elements; j++) {
            ds_put_format(&s, "%s%s", j ? "|" : i ? ", " : "", w->faults[i].elements[j].name);
        }
    }
    return ds_steal_cstr(&s);
}

void
world_check_faults(struct world *w, const char *what, const char *want)
{
    world_locate(w);
    char *text = world_faults_text(w);
    ck_assert_msg(!strcmp(text, want), "%s: '%s' instead of '%s'", what, text, want);
    free(text);
}

bool
world_is_candidate(const struct fault *f, const char *name)
{
    for (size_t i = 0; i < f->n_elements; i++) {
        if (!strcmp(f->elements[i].name, name)) {
            return true;
        }
    }
    return false;
}

void
world_uninit(struct world *w)
{
    locate_faults_free(w->faults, w->n_faults);
    w->faults = NULL;
    w->n_faults = 0;
}

/*
 * The figure.
 */

/* Over the spines back to the leaf, or also to all other leaves. */
static void
add_loops(struct world *w, const char *agent, const char *const leaves[2], bool far)
{
    for (int i = 0; i < 2; i++) {
        char way[80];

        snprintf(way, sizeof way, "%s %s", agent, leaves[i]);
        add_way_text(w, false, way);
        for (int spine = 5; spine <= 6; spine++) {
            snprintf(way, sizeof way, "%s %s spine%d", agent, leaves[i], spine);
            add_way_text(w, false, way);
            for (int j = 1; j <= 4 && far; j++) {
                snprintf(way, sizeof way, "%s %s spine%d leaf%d", agent, leaves[i], spine, j);
                if (strcmp(strrchr(way, ' ') + 1, leaves[i])) {
                    add_way_text(w, false, way);
                }
            }
        }
    }
}

static const char *const sides[2][2] = {{"leaf1", "leaf2"}, {"leaf3", "leaf4"}};

static void
add_peers(struct world *w, int from, int to)
{
    const char *const *near = sides[(from - 1) / 2], *const *far = sides[(to - 1) / 2];
    char way[80];

    for (int i = 0; i < 2; i++) {
        if (near == far) {
            snprintf(way, sizeof way, "dpu%d %s dpu%d", from, near[i], to);
            add_way_text(w, true, way);
            continue;
        }
        for (int j = 0; j < 2; j++) {
            for (int spine = 5; spine <= 6; spine++) {
                snprintf(way, sizeof way, "dpu%d %s spine%d %s dpu%d", from, near[i], spine, far[j],
                         to);
                add_way_text(w, true, way);
            }
        }
    }
}

void
world_figure(struct world *w, enum probing probing)
{
    static const char *const names[] = {"dpu1",  "dpu2",  "dpu3",  "dpu4",   "leaf1",
                                        "leaf2", "leaf3", "leaf4", "spine5", "spine6"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        world_add_node(w, names[i]);
    }
    for (unsigned i = 0; i < 4; i++) {
        world_add_link(w, i, 4 + i / 2 * 2);
        world_add_link(w, i, 5 + i / 2 * 2);
        world_add_link(w, 4 + i, 8);
        world_add_link(w, 4 + i, 9);
    }
    for (int i = 1; i <= (probing >= ALL_LOOPS ? 4 : 1); i++) {
        char agent[8];

        snprintf(agent, sizeof agent, "dpu%d", i);
        add_loops(w, agent, sides[(i - 1) / 2], probing == ONE_FAR_LOOPS);
        for (int to = 1; to <= 4; to++) {
            if (to != i && (probing == ONE_WITH_PEERS || probing == ALL_WITH_PEERS)) {
                add_peers(w, i, to);
            }
        }
    }
    world_fill_probes(w);
}

unsigned
world_n_single_faults(const struct world *w)
{
    return w->n_nodes + 3 * w->n_links;
}

bool
world_is_both_ways(const struct world *w, unsigned i)
{
    return i >= w->n_nodes && (i - w->n_nodes) % 3 == 2;
}

bool
world_is_one_way(const struct world *w, unsigned i)
{
    return i >= w->n_nodes && (i - w->n_nodes) % 3 != 2;
}

set
world_single_fault(const struct world *w, unsigned i, char name[48])
{
    unsigned link = (i - w->n_nodes) / 3, which = (i - w->n_nodes) % 3;

    if (i < w->n_nodes) {
        ovs_strlcpy(name, w->names[i], 48);
        return set_of(i);
    } else if (which == 2) {
        snprintf(name, 48, "%s<>%s", w->names[w->ends[link][0]], w->names[w->ends[link][1]]);
        return set_both(set_of(direction(w, link, false)), set_of(direction(w, link, true)));
    }
    ovs_strlcpy(name, w->names[direction(w, link, which)], 48);
    return set_of(direction(w, link, which));
}
