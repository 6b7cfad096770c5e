/* SPDX-License-Identifier: Apache-2.0
 *
 * What is broken, by the probes that fail: the figure of draft-filsfils-srv6ops-srv6-ai-backend, section
 * 7, and small random networks.
 *
 * A world has nodes and links, ways that probes take, and faults.  What each probe says follows from
 * the faults.  The answer is compared with all explanations that there are, found by trying each.
 */
#include <config.h>

#include "ctl/plan/locate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/prng.h"
#include "openvswitch/dynamic-string.h"
#include "tests/unit/suites.h"
#include "util.h"

#define MAX_NODES    16
#define MAX_LINKS    32
#define MAX_WAY      6
#define MAX_ELEMENTS (MAX_NODES + 2 * MAX_LINKS)
#define MAX_PROBES   128
#define INTERVAL     100000

/* Nodes come first, then both directions of each link. */
typedef struct {
    uint64_t bits[2];
} set;

struct way {
    unsigned n, nodes[MAX_WAY];
    bool is_peer;    /* the last node answers; else it is a loop. */
    set there, back; /* the elements. */
};

struct world {
    unsigned n_nodes, n_links, n_ways;
    char names[MAX_ELEMENTS][24];
    unsigned ends[MAX_LINKS][2];
    struct way ways[MAX_PROBES];
    struct locate_probe probes[MAX_PROBES];
    char probe_names[MAX_PROBES][64];
    char *elements[MAX_PROBES][4 * MAX_WAY];
    set silent; /* nodes whose agents do not report. */
    struct fault *faults;
    size_t n_faults;
};

static struct world world;

/*
 * Sets of elements.
 */

static void
add(set *s, unsigned element)
{
    s->bits[element / 64] |= UINT64_C(1) << element % 64;
}

static set
one(unsigned element)
{
    set s = {{0, 0}};

    add(&s, element);
    return s;
}

static set
both(set a, set b)
{
    return (set){{a.bits[0] | b.bits[0], a.bits[1] | b.bits[1]}};
}

static bool
meet(set a, set b)
{
    return (a.bits[0] & b.bits[0]) || (a.bits[1] & b.bits[1]);
}

static bool
has(set s, unsigned element)
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

static unsigned
add_node(struct world *w, const char *name)
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

static void
add_link(struct world *w, unsigned a, unsigned b)
{
    unsigned link = w->n_links++;

    w->ends[link][0] = a;
    w->ends[link][1] = b;
    name_direction(w, direction(w, link, false), w->names[a], w->names[b]);
    name_direction(w, direction(w, link, true), w->names[b], w->names[a]);
}

/* MAX_LINKS: there is none. */
static unsigned
find_link(const struct world *w, unsigned a, unsigned b, bool *reverse)
{
    for (unsigned i = 0; i < w->n_links; i++) {
        *reverse = w->ends[i][0] == b && w->ends[i][1] == a;
        if (*reverse || (w->ends[i][0] == a && w->ends[i][1] == b)) {
            return i;
        }
    }
    return MAX_LINKS;
}

static unsigned
find_node(const struct world *w, const char *name)
{
    unsigned i = 0;

    while (strcmp(w->names[i], name)) {
        i++;
        ck_assert_uint_lt(i, n_elements(w));
    }
    return i;
}

static void
add_way(struct world *w, bool is_peer, unsigned n, const unsigned nodes[])
{
    struct way *way = &w->ways[w->n_ways++];

    ck_assert_uint_le(w->n_ways, MAX_PROBES);
    *way = (struct way){.n = n, .is_peer = is_peer};
    for (unsigned i = 0; i < n; i++) {
        way->nodes[i] = nodes[i];
        add(&way->there, nodes[i]);
        add(&way->back, nodes[i]);
        if (i) {
            bool reverse;
            unsigned link = find_link(w, nodes[i - 1], nodes[i], &reverse);

            ck_assert_uint_lt(link, MAX_LINKS);
            add(&way->there, direction(w, link, reverse));
            add(&way->back, direction(w, link, !reverse));
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
        nodes[n++] = find_node(w, name);
    }
    add_way(w, is_peer, n, nodes);
}

static void
fill_probes(struct world *w)
{
    for (unsigned i = 0; i < w->n_ways; i++) {
        const struct way *way = &w->ways[i];
        set all = both(way->there, way->back);
        size_t len = 0;

        for (unsigned j = 0; j < way->n; j++) {
            len += (size_t) snprintf(w->probe_names[i] + len, sizeof w->probe_names[i] - len,
                                     "%s%s", j ? "," : "", w->names[way->nodes[j]]);
        }
        w->probes[i] = (struct locate_probe){
            .name = w->probe_names[i],
            .from = w->names[way->nodes[0]],
            .kind = way->is_peer ? PROBE_PEER : PROBE_LOOP,
            .elements = w->elements[i],
            .interval_usec = INTERVAL,
        };
        /* Backwards: in any order. */
        for (unsigned j = n_elements(w); j--;) {
            if (has(all, j)) {
                w->elements[i][w->probes[i].n_elements++] = w->names[j];
            }
        }
    }
}

static set
way_elements(const struct way *way)
{
    return both(way->there, way->back);
}

/* What the probes say while these elements are broken. */
static void
break_elements(struct world *w, set broken)
{
    for (unsigned i = 0; i < w->n_ways; i++) {
        const struct way *way = &w->ways[i];
        struct locate_probe *p = &w->probes[i];
        bool silent = has(w->silent, way->nodes[0]);

        p->result = silent                            ? LOCATE_UNKNOWN
                    : meet(way_elements(way), broken) ? LOCATE_FAILS
                                                      : LOCATE_WORKS;
        p->heard = way->is_peer && !silent && !meet(way->back, broken);
    }
}

static void
locate(struct world *w)
{
    locate_faults_free(w->faults, w->n_faults);
    locate_faults(w->probes, w->n_ways, &w->faults, &w->n_faults);
}

/* "leaf1|leaf1-spine5, spine6": candidates of a fault, and faults. */
static char *
faults_text(const struct world *w)
{
    struct ds s = DS_EMPTY_INITIALIZER;

    for (size_t i = 0; i < w->n_faults; i++) {
        for (size_t j = 0; j < w->faults[i].n_elements; j++) {
            ds_put_format(&s, "%s%s", j ? "|" : i ? ", " : "", w->faults[i].elements[j].name);
        }
    }
    return ds_steal_cstr(&s);
}

static void
check_faults(struct world *w, const char *what, const char *want)
{
    locate(w);
    char *text = faults_text(w);
    ck_assert_msg(!strcmp(text, want), "%s: '%s' instead of '%s'", what, text, want);
    free(text);
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

/* What probes there are. */
enum probing { ONE_LOOPS, ONE_FAR_LOOPS, ONE_WITH_PEERS, ALL_LOOPS, ALL_WITH_PEERS };

static void
figure(struct world *w, enum probing probing)
{
    static const char *const names[] = {"dpu1",  "dpu2",  "dpu3",  "dpu4",   "leaf1",
                                        "leaf2", "leaf3", "leaf4", "spine5", "spine6"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        add_node(w, names[i]);
    }
    for (unsigned i = 0; i < 4; i++) {
        add_link(w, i, 4 + i / 2 * 2);
        add_link(w, i, 5 + i / 2 * 2);
        add_link(w, 4 + i, 8);
        add_link(w, 4 + i, 9);
    }
    for (int i = 1; i <= (probing >= ALL_LOOPS ? 4 : 1); i++) {
        char agent[8];

        snprintf(agent, sizeof agent, "dpu%d", i);
        add_loops(w, agent, sides[(i - 1) / 2],
                  probing == ONE_FAR_LOOPS || probing == ONE_WITH_PEERS);
        for (int to = 1; to <= 4; to++) {
            if (to != i && (probing == ONE_WITH_PEERS || probing == ALL_WITH_PEERS)) {
                add_peers(w, i, to);
            }
        }
    }
    fill_probes(w);
}

static void
teardown(void)
{
    locate_faults_free(world.faults, world.n_faults);
}

/* A fault and its name: a node, both directions of a link, or one of them. */
static unsigned
n_single_faults(const struct world *w)
{
    return w->n_nodes + 3 * w->n_links;
}

static set
single_fault(const struct world *w, unsigned i, char name[48])
{
    unsigned link = (i - w->n_nodes) / 3, which = (i - w->n_nodes) % 3;

    if (i < w->n_nodes) {
        ovs_strlcpy(name, w->names[i], 48);
        return one(i);
    } else if (which == 2) {
        snprintf(name, 48, "%s-%s", w->names[w->ends[link][0]], w->names[w->ends[link][1]]);
        return both(one(direction(w, link, false)), one(direction(w, link, true)));
    }
    ovs_strlcpy(name, w->names[direction(w, link, which)], 48);
    return one(direction(w, link, which));
}

/* Do the probes say the same with 'b' broken as with 'a'?  Of silent nodes nothing is known. */
static bool
look_alike(const struct world *w, set a, set b)
{
    for (unsigned i = 0; i < w->n_ways; i++) {
        const struct way *way = &w->ways[i];

        if (!has(w->silent, way->nodes[0])
            && (meet(way_elements(way), a) != meet(way_elements(way), b)
                || (way->is_peer && meet(way->back, a) != meet(way->back, b)))) {
            return false;
        }
    }
    return true;
}

/* Which single faults the probes cannot tell from this one, as faults_text() would have them.  A link
 * stands for its directions if they cannot be told from it. */
static char *
indistinguishable(const struct world *w, set fault)
{
    struct ds nodes = DS_EMPTY_INITIALIZER, links = DS_EMPTY_INITIALIZER;
    struct ds directions = DS_EMPTY_INITIALIZER, *lists[] = {&nodes, &links, &directions};
    struct ds s = DS_EMPTY_INITIALIZER;
    bool link = false;

    for (unsigned i = n_single_faults(w); i--;) {
        char name[48];
        set other = single_fault(w, i, name);
        bool is_link = i >= w->n_nodes && (i - w->n_nodes) % 3 == 2;
        struct ds *list = i < w->n_nodes ? &nodes : is_link ? &links : &directions;
        bool alike = look_alike(w, fault, other);

        link = is_link ? alike : link;
        if (alike && (list != &directions || !link)) {
            char *rest = ds_steal_cstr(list);

            ds_put_format(list, "%s%s%s", name, rest[0] ? "|" : "", rest);
            free(rest);
        }
    }
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        if (lists[i]->length) {
            ds_put_format(&s, "%s%s", s.length ? "|" : "", ds_cstr(lists[i]));
        }
        ds_destroy(lists[i]);
    }
    return ds_steal_cstr(&s);
}

/* Of all single faults, two-way ones or one-way ones: how many are not seen at all, and how many are
 * named without doubt.  What is found is always the smallest possible. */
static void
try_single_faults(struct world *w, bool one_way, unsigned *n_unseen, unsigned *n_named)
{
    set none = {{0, 0}};

    *n_unseen = *n_named = 0;
    for (unsigned i = 0; i < n_single_faults(w); i++) {
        char name[48];
        set fault = single_fault(w, i, name);
        bool is_one_way = i >= w->n_nodes && (i - w->n_nodes) % 3 != 2;

        if (is_one_way != one_way) {
            continue;
        }
        /* An agent that is broken does not report. */
        w->silent = !strncmp(name, "dpu", 3) && i < w->n_nodes ? one(i) : none;
        break_elements(w, fault);
        if (look_alike(w, fault, none)) {
            (*n_unseen)++;
            check_faults(w, name, "");
            continue;
        }
        char *want = indistinguishable(w, fault);
        check_faults(w, name, want);
        *n_named += !strcmp(want, name);
        free(want);
    }
    w->silent = none;
}

static const struct {
    enum probing probing;
    bool one_way;
    unsigned n_unseen, n_named;
} singles[] = {
    /* An agent that cannot report is not seen by itself. */
    {ONE_LOOPS, false, 16, 6},     {ONE_FAR_LOOPS, false, 10, 16}, {ONE_WITH_PEERS, false, 1, 25},
    {ALL_LOOPS, false, 4, 22},     {ALL_WITH_PEERS, false, 0, 26}, {ALL_LOOPS, true, 0, 0},
    {ALL_WITH_PEERS, true, 0, 32},
};

/* Proves AB-33 and AB-35: all 26 single faults of the figure are named, and all 32 one-way faults; by
 * loops alone no direction is. */
START_TEST(single_faults)
    {
        unsigned n_unseen, n_named;

        figure(&world, singles[_i].probing);
        try_single_faults(&world, singles[_i].one_way, &n_unseen, &n_named);
        ck_assert_msg(n_unseen == singles[_i].n_unseen && n_named == singles[_i].n_named,
                      "%u unseen, %u named", n_unseen, n_named);
    }
END_TEST

/*
 * Several faults, against all explanations.
 */

#define MAX_FAULTS 3

/* What may be broken: as in the answer, a link stands for both directions if both are under suspicion. */
struct suspects {
    unsigned n;
    set sets[MAX_ELEMENTS];
    char names[MAX_ELEMENTS][48];
};

/* All that is on no way that works. */
static void
find_suspects(const struct world *w, struct suspects *s)
{
    set good = {{0, 0}}, failing = {{0, 0}};
    bool both_ways = false;

    s->n = 0;
    for (unsigned i = 0; i < w->n_ways; i++) {
        const struct locate_probe *p = &w->probes[i];

        good = both(good, p->result == LOCATE_WORKS ? way_elements(&w->ways[i])
                          : p->heard                ? w->ways[i].back
                                                    : good);
        failing = p->result == LOCATE_FAILS ? both(failing, way_elements(&w->ways[i])) : failing;
    }
    for (unsigned i = n_single_faults(w); i--;) {
        set fault = single_fault(w, i, s->names[s->n]);
        bool is_link = i >= w->n_nodes && (i - w->n_nodes) % 3 == 2;
        bool is_suspect = meet(fault, failing) && !meet(fault, good);

        both_ways = is_link ? is_suspect : both_ways;
        if (is_suspect && (is_link || i < w->n_nodes || !both_ways)) {
            s->sets[s->n++] = fault;
        }
    }
}

/* Do these suspects explain all probes that fail, but those whose whole way is good? */
static bool
explains(const struct world *w, const struct suspects *s, const unsigned chosen[], unsigned n)
{
    for (unsigned i = 0; i < w->n_ways; i++) {
        bool any = false, explained = false;

        for (unsigned j = 0; j < s->n; j++) {
            any |= meet(s->sets[j], way_elements(&w->ways[i]));
        }
        for (unsigned j = 0; j < n; j++) {
            explained |= meet(s->sets[chosen[j]], way_elements(&w->ways[i]));
        }
        if (w->probes[i].result == LOCATE_FAILS && any && !explained) {
            return false;
        }
    }
    return true;
}

static bool
is_candidate(const struct fault *f, const char *name)
{
    for (size_t i = 0; i < f->n_elements; i++) {
        if (!strcmp(f->elements[i].name, name)) {
            return true;
        }
    }
    return false;
}

/* Notes which suspects are in this explanation; each fault that was found has one of them. */
static void
check_explanation(const struct world *w, const struct suspects *s, const unsigned chosen[],
                  unsigned n, bool in_any[])
{
    for (size_t i = 0; i < w->n_faults; i++) {
        bool found = w->faults[i].elements[0].kind == FAULT_PATH;

        for (unsigned j = 0; j < n; j++) {
            found |= is_candidate(&w->faults[i], s->names[chosen[j]]);
        }
        ck_assert_msg(found, "fault of %s is not in an explanation with %s",
                      w->faults[i].elements[0].name, s->names[chosen[0]]);
    }
    for (unsigned j = 0; j < n; j++) {
        in_any[chosen[j]] = true;
    }
}

/* Tries all choices of 'size' suspects.  Returns how many explain it. */
static unsigned
try_choices(const struct world *w, const struct suspects *s, unsigned size, bool in_any[])
{
    unsigned chosen[MAX_FAULTS], n = 0;

    for (unsigned i = 0; i < size; i++) {
        chosen[i] = i;
    }
    while (size <= s->n) {
        unsigned at = size;

        if (explains(w, s, chosen, size)) {
            check_explanation(w, s, chosen, size, in_any);
            n++;
        }
        while (at && chosen[at - 1] == s->n - size + at - 1) {
            at--;
        }
        if (!at) {
            break;
        }
        chosen[at - 1]++;
        for (; at < size; at++) {
            chosen[at] = chosen[at - 1] + 1;
        }
    }
    return n;
}

/* The answer has all candidates of the smallest explanations and no other, and each of these explanations
 * is in each fault.  Returns how many elements the smallest ones have. */
static unsigned
check_smallest(struct world *w)
{
    struct suspects s;
    bool in_any[MAX_ELEMENTS] = {false};
    unsigned size = 0, n_candidates = 0, n_in_any = 0;

    locate(w);
    find_suspects(w, &s);
    while (!try_choices(w, &s, size, in_any)) {
        size++;
        ck_assert_uint_le(size, MAX_FAULTS);
    }
    for (unsigned i = 0; i < s.n; i++) {
        bool found = false;

        for (size_t j = 0; j < w->n_faults; j++) {
            found |= is_candidate(&w->faults[j], s.names[i]);
        }
        ck_assert_msg(found == in_any[i], "%s: %d instead of %d", s.names[i], found, in_any[i]);
        n_in_any += in_any[i];
    }
    for (size_t i = 0; i < w->n_faults; i++) {
        const struct fault *f = &w->faults[i];

        n_candidates += f->elements[0].kind == FAULT_PATH ? 0 : (unsigned) f->n_elements;
        ck_assert_uint_ge(f->n_evidence, 1);
        for (size_t j = 0; j < f->n_evidence; j++) {
            ck_assert_int_eq(f->evidence[j]->result, LOCATE_FAILS);
        }
    }
    ck_assert_uint_eq(n_candidates, n_in_any);
    return size;
}

/* All pairs of faults of the figure: never more than two elements, and most pairs are both named. */
START_TEST(pairs)
    {
        unsigned n = 0, n_both_named = 0;

        figure(&world, ALL_WITH_PEERS);
        for (unsigned i = 0; i < n_single_faults(&world); i++) {
            for (unsigned j = 0; j < i; j++) {
                char a[48], b[48];
                set fault = both(single_fault(&world, i, a), single_fault(&world, j, b));

                break_elements(&world, fault);
                ck_assert_uint_le(check_smallest(&world), 2);
                bool both_named = world.n_faults == 2;
                for (size_t k = 0; k < world.n_faults; k++) {
                    const struct fault *f = &world.faults[k];

                    both_named &= f->n_elements == 1 && (is_candidate(f, a) || is_candidate(f, b));
                }
                n++;
                n_both_named += both_named;
            }
        }
        ck_assert_msg(n_both_named * 10 >= n * 8, "%u of %u", n_both_named, n);
    }
END_TEST

/* A random network: a tree, and some links more. */
static void
random_network(struct world *w, uint64_t *seed)
{
    unsigned n = 4 + (unsigned) prng_below(seed, 5), more = (unsigned) prng_below(seed, 5);
    bool reverse;

    for (unsigned i = 0; i < n; i++) {
        char name[8];

        snprintf(name, sizeof name, "n%u", i);
        add_node(w, name);
    }
    for (unsigned i = 1; i < n; i++) {
        add_link(w, (unsigned) prng_below(seed, i), i);
    }
    while (more--) {
        unsigned a = (unsigned) prng_below(seed, n), b = (unsigned) prng_below(seed, n);

        if (a != b && find_link(w, a, b, &reverse) == MAX_LINKS) {
            add_link(w, MIN(a, b), MAX(a, b));
        }
    }
}

/* A way without a node twice, as far as it goes. */
static void
random_way(struct world *w, unsigned from, uint64_t *seed)
{
    unsigned nodes[MAX_WAY] = {from}, n = 1, length = 2 + (unsigned) prng_below(seed, 3);
    set seen = one(from);

    for (unsigned tries = 0; n < length && tries < 30; tries++) {
        unsigned next = (unsigned) prng_below(seed, w->n_nodes);
        bool reverse;

        if (!has(seen, next) && find_link(w, nodes[n - 1], next, &reverse) != MAX_LINKS) {
            nodes[n++] = next;
            add(&seen, next);
        }
    }
    if (n > 1) {
        add_way(w, prng_below(seed, 2), n, nodes);
    }
}

START_TEST(small_networks)
    {
        uint64_t seed = (uint64_t) _i + 1;

        for (int round = 0; round < 200; round++) {
            unsigned n_faults = 1 + (unsigned) prng_below(&seed, MAX_FAULTS);
            set broken = {{0, 0}};
            char name[48];

            teardown();
            memset(&world, 0, sizeof world);
            random_network(&world, &seed);
            for (unsigned n = 5 + (unsigned) prng_below(&seed, 25); n--;) {
                random_way(&world, (unsigned) prng_below(&seed, 3), &seed);
            }
            fill_probes(&world);
            for (unsigned i = 0; i < n_faults; i++) {
                broken =
                    both(broken,
                         single_fault(&world, (unsigned) prng_below(&seed, n_single_faults(&world)),
                                      name));
            }
            add(&world.silent, (unsigned) prng_below(&seed, world.n_nodes));
            break_elements(&world, broken);
            ck_assert_uint_le(check_smallest(&world), n_faults);
        }
    }
END_TEST

/*
 * Other cases.
 */

/* What a way as a whole fails of, and what it is called. */
START_TEST(way_as_a_whole)
    {
        figure(&world, ALL_WITH_PEERS);
        break_elements(&world, (set){{0, 0}});
        check_faults(&world, "nothing", "");
        for (unsigned i = 0; i < world.n_ways; i++) {
            if (!strcmp(world.probes[i].name, "dpu1,leaf1,spine5,leaf3,dpu3")) {
                world.probes[i].result = LOCATE_FAILS;
            }
        }
        check_faults(&world, "a way", "dpu1,leaf1,spine5,leaf3,dpu3");
        ck_assert_int_eq(world.faults[0].elements[0].kind, FAULT_PATH);
        ck_assert_uint_eq(world.faults[0].n_evidence, 1);
        ck_assert_uint_eq(fault_agreement_usec(&world.faults[0]), 32 * INTERVAL);
    }
END_TEST

/* Who does not report may be what the others' probes fail at.  Of two that have their switches for
 * themselves it may be these.  If nobody reports nothing is known. */
START_TEST(dead_agents)
    {
        figure(&world, ALL_WITH_PEERS);
        world.silent = one(find_node(&world, "dpu1"));
        break_elements(&world, world.silent);
        check_faults(&world, "one", "dpu1");
        ck_assert_uint_eq(world.faults[0].n_evidence, 18); /* 2 of dpu2, 8 of each other one. */
        ck_assert_str_eq(world.faults[0].evidence[0]->from, "dpu2");
        ck_assert_uint_eq(fault_agreement_usec(&world.faults[0]), 2 * INTERVAL);
        world.silent = both(world.silent, one(find_node(&world, "dpu2")));
        break_elements(&world, world.silent);
        check_faults(&world, "both of a side", "dpu1|dpu2|leaf1|leaf2");
        for (unsigned i = 0; i < world.n_ways; i++) {
            world.probes[i].result = LOCATE_UNKNOWN;
        }
        check_faults(&world, "nobody reports", "");
        locate_faults_free(world.faults, world.n_faults);
        locate_faults(NULL, 0, &world.faults, &world.n_faults);
        ck_assert_uint_eq(world.n_faults, 0);
    }
END_TEST

/* Words as elements; the text is changed. */
static void
split(char *text, struct locate_probe *p, char *elements[])
{
    char *save = NULL;

    p->elements = elements;
    for (char *e = strtok_r(text, " ", &save); e; e = strtok_r(NULL, " ", &save)) {
        elements[p->n_elements++] = e;
    }
}

/* Parallel links are told apart by their ports, and still lead to the same nodes. */
START_TEST(parallel_links)
    {
        char first[] = "a:p1>b:q1 b:q1>a:p1 a b x>a a>x x";
        char second[] = "a:p2>b:q2 b:q2>a:p2 a b x>a a>x x";
        char *elements[2][8];
        struct locate_probe probes[] = {
            {.name = "x,a:p1,b", .from = "x", .kind = PROBE_PEER, .result = LOCATE_WORKS},
            {.name = "x,a:p2,b", .from = "x", .kind = PROBE_PEER, .result = LOCATE_FAILS},
        };

        split(first, &probes[0], elements[0]);
        split(second, &probes[1], elements[1]);
        locate_faults(probes, 2, &world.faults, &world.n_faults);
        char *text = faults_text(&world);
        ck_assert_str_eq(text, "a:p2-b:q2");
        ck_assert_int_eq(world.faults[0].elements[0].kind, FAULT_LINK);
        free(text);
        locate_faults_free(world.faults, world.n_faults);
        probes[1].heard = true;
        locate_faults(probes, 2, &world.faults, &world.n_faults);
        text = faults_text(&world);
        ck_assert_str_eq(text, "a:p2>b:q2");
        ck_assert_int_eq(world.faults[0].elements[0].kind, FAULT_DIRECTION);
        free(text);
    }
END_TEST

/* Whatever the words are. */
START_TEST(odd_elements)
    {
        char odd[] = "> a> >a a>b>c b>c>a a>a : a>: b:>c >>";
        char *elements[16];
        struct locate_probe probe = {.name = "odd", .from = "a>b>c", .kind = PROBE_PEER};

        split(odd, &probe, elements);
        probe.result = LOCATE_FAILS;
        for (int heard = 0; heard < 2; heard++) {
            probe.heard = heard;
            locate_faults_free(world.faults, world.n_faults);
            locate_faults(&probe, 1, &world.faults, &world.n_faults);
            ck_assert_uint_eq(world.n_faults, 1);
        }
    }
END_TEST

/*
 * Random loss.
 */

#define LOSS     1000 /* one of so many is lost. */
#define N_ROUNDS 6000 /* of 100 ms: ten minutes. */

/* One interval: a probe that was lost is sent again at once, and fails if that is lost, too.  It works
 * again with the first that comes back. */
static bool
probe_all(struct world *w, uint64_t *seed, set broken)
{
    bool changed = false;

    for (unsigned i = 0; i < w->n_ways; i++) {
        struct locate_probe *p = &w->probes[i];
        bool dead = meet(way_elements(&w->ways[i]), broken);
        bool lost = dead || !prng_below(seed, LOSS);
        bool fails = lost && (p->result == LOCATE_FAILS || dead || !prng_below(seed, LOSS));

        changed |= fails != (p->result == LOCATE_FAILS);
        p->result = fails ? LOCATE_FAILS : LOCATE_WORKS;
        p->heard = w->ways[i].is_peer && !meet(w->ways[i].back, broken);
    }
    return changed;
}

/* What castd does, with an interval as the unit of time: the fault has been found since then. */
struct found {
    char *name; /* NULL: none is. */
    unsigned since;
};

static bool
is_confirmed(struct world *w, struct found *found, unsigned now)
{
    char *name = faults_text(w);

    if (!found->name || strcmp(found->name, name)) {
        free(found->name);
        *found = (struct found){name, now};
    } else {
        free(name);
    }
    return w->n_faults
           && (now - found->since) * (uint64_t) INTERVAL >= fault_agreement_usec(&w->faults[0]);
}

/* Probes fail by chance now and then, but no fault is found twice; one that is there is. */
START_TEST(random_loss)
    {
        uint64_t seed = (uint64_t) _i + 1;
        struct found found = {NULL, 0};
        unsigned n_found = 0;

        figure(&world, ALL_WITH_PEERS);
        set broken = {{0, 0}};
        break_elements(&world, broken);
        for (unsigned now = 0; now < N_ROUNDS * 4; now++) {
            if (probe_all(&world, &seed, broken)) {
                locate(&world);
                n_found += world.n_faults > 0;
            }
            ck_assert(!is_confirmed(&world, &found, now));
        }
        ck_assert_uint_ge(n_found, 1);
        unsigned now = N_ROUNDS * 4;
        broken = one(find_node(&world, "leaf1>spine5"));
        do {
            probe_all(&world, &seed, broken);
            locate(&world);
            now++;
        } while (!is_confirmed(&world, &found, now));
        ck_assert_str_eq(found.name, "leaf1>spine5");
        ck_assert_uint_le(now, N_ROUNDS * 4 + 4);
        free(found.name);
    }
END_TEST

Suite *
locate_suite(void)
{
    Suite *s = suite_create("locate");
    TCase *tc = tcase_create("locate");

    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, single_faults, 0, ARRAY_SIZE(singles));
    tcase_add_test(tc, pairs);
    tcase_add_loop_test(tc, small_networks, 0, 8);
    tcase_add_test(tc, way_as_a_whole);
    tcase_add_test(tc, dead_agents);
    tcase_add_test(tc, parallel_links);
    tcase_add_test(tc, odd_elements);
    tcase_add_loop_test(tc, random_loss, 0, 3);
    suite_add_tcase(s, tc);
    return s;
}
