/* SPDX-License-Identifier: Apache-2.0
 *
 * castd's mirror of which rows belong together, changed at random, against one that is made of all rows
 * anew; and which groups are due.
 */
#include <config.h>

#include "ctl/castd/mirror.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/prng.h"
#include "openvswitch/vlog.h"
#include "tests/unit/suites.h"
#include "util.h"

#define N_GROUPS  12
#define N_MEMBERS 40
#define N_TREES   60
#define N_NODES   5
#define N_PROXIES 6 /* fewer than groups: some have the same. */

static struct rrec_group groups[N_GROUPS];
static struct rrec_member members[N_MEMBERS];
static struct rrec_tree_node trees[N_TREES];
static struct rrec_node nodes[N_NODES];
static bool has_group[N_GROUPS], has_member[N_MEMBERS], has_tree[N_TREES], has_node[N_NODES];
static struct rrec_tree_node *node_trees[N_NODES][N_TREES];
static char proxies[][16] = {
    "", "fd00:ffff::1", "fd00:ffff::2", "fd00:ffff::3", "fd00:ffff::4", "fd00:ffff::5"};
static char *names[N_GROUPS], no_name[] = "no name"; /* the latter is left out. */
static char node_names[][4] = {"",   "n0", "n1",
                               "n2", "n3", "n4"}; /* a tree without one is in a list. */
static struct work work;
static struct mirror mirror;
static uint64_t seed;

/* In the order of UUIDs, as the IDL has sets of them. */
static struct uuid
uuid_of(unsigned kind, size_t i)
{
    return (struct uuid){{kind, (unsigned) i, 0, 0}};
}

static void
setup(void)
{
    vlog_set_levels(NULL, VLF_CONSOLE, VLL_OFF); /* what is left out. */
    seed = 1;
    work_init(&work);
    mirror_init(&mirror, &work);
    for (size_t i = 0; i < N_GROUPS; i++) {
        rrec_group_init(&groups[i]);
        groups[i].header_.uuid = uuid_of(1, i);
        names[i] = xasprintf("g%zu", i);
        groups[i].name = names[i];
        groups[i].mtu = 1024;
        groups[i].timeout = 20;
        has_group[i] = false;
    }
    for (size_t i = 0; i < N_MEMBERS; i++) {
        rrec_member_init(&members[i]);
        members[i].header_.uuid = uuid_of(2, i);
        has_member[i] = false;
    }
    for (size_t i = 0; i < N_TREES; i++) {
        rrec_tree_node_init(&trees[i]);
        trees[i].header_.uuid = uuid_of(3, i);
        has_tree[i] = false;
    }
    for (size_t i = 0; i < N_NODES; i++) {
        rrec_node_init(&nodes[i]);
        nodes[i].header_.uuid = uuid_of(4, i);
        nodes[i].name = node_names[1 + i];
        nodes[i].trees = node_trees[i];
        has_node[i] = false;
    }
}

static void
teardown(void)
{
    mirror_uninit(&mirror);
    work_uninit(&work);
    for (size_t i = 0; i < N_GROUPS; i++) {
        free(names[i]);
    }
}

static void
put_group(struct mirror *m, size_t i)
{
    mirror_put_group(m, &groups[i]);
}

static void
put_member(struct mirror *m, size_t i)
{
    mirror_put_part(m, MIRROR_MEMBER, &members[i], &members[i].header_.uuid);
}

static void
put_tree(struct mirror *m, size_t i)
{
    mirror_put_part(m, MIRROR_TREE, &trees[i], &trees[i].header_.uuid);
}

static void
check_mirror(void)
{
    struct svec lines = SVEC_EMPTY_INITIALIZER, wanted = SVEC_EMPTY_INITIALIZER;
    struct mirror fresh;

    mirror_init(&fresh, NULL);
    for (size_t i = 0; i < N_GROUPS; i++) {
        if (has_group[i]) {
            put_group(&fresh, i);
        }
    }
    for (size_t i = 0; i < N_NODES; i++) {
        if (has_node[i]) {
            mirror_put_node(&fresh, &nodes[i]);
        }
    }
    for (size_t i = 0; i < N_MEMBERS; i++) {
        if (has_member[i]) {
            put_member(&fresh, i);
        }
    }
    for (size_t i = 0; i < N_TREES; i++) {
        if (has_tree[i]) {
            put_tree(&fresh, i);
        }
    }
    mirror_describe(&mirror, &lines);
    mirror_describe(&fresh, &wanted);
    ck_assert_uint_eq(lines.n, wanted.n);
    for (size_t i = 0; i < lines.n; i++) {
        ck_assert_str_eq(lines.names[i], wanted.names[i]);
    }
    mirror_uninit(&fresh);
    svec_destroy(&lines);
    svec_destroy(&wanted);
}

/* A group is added, changed, or goes; its members go with it, as the schema has it. */
static void
change_group(size_t i)
{
    if (has_group[i] && !prng_below(&seed, 3)) {
        for (size_t j = 0; j < N_MEMBERS; j++) {
            if (has_member[j] && members[j].group == &groups[i]) {
                has_member[j] = false;
                mirror_drop_part(&mirror, &members[j].header_.uuid);
            }
        }
        has_group[i] = false;
        mirror_drop_group(&mirror, &groups[i].header_.uuid);
        return;
    }
    has_group[i] = true;
    groups[i].name = prng_below(&seed, 8) ? names[i] : no_name;
    groups[i].proxy = proxies[prng_below(&seed, N_PROXIES)];
    put_group(&mirror, i);
}

static void
change_member(size_t i)
{
    size_t group = prng_below(&seed, N_GROUPS);

    if (!has_group[group]) {
        return;
    }
    has_member[i] = prng_below(&seed, 3) > 0;
    members[i].group = &groups[group];
    if (has_member[i]) {
        put_member(&mirror, i);
    } else {
        mirror_drop_part(&mirror, &members[i].header_.uuid);
    }
}

static void
change_tree(size_t i)
{
    has_tree[i] = true;
    trees[i].proxy = proxies[1 + prng_below(&seed, N_PROXIES - 1)];
    trees[i].node = node_names[prng_below(&seed, N_NODES + 1)];
    put_tree(&mirror, i);
}

static void
drop_tree(size_t i)
{
    struct rrec_node *n = &nodes[i % N_NODES];
    size_t n_left = 0;

    for (size_t j = 0; j < n->n_trees; j++) {
        if (n->trees[j] != &trees[i]) {
            n->trees[n_left++] = n->trees[j];
        }
    }
    n->n_trees = n_left;
    has_tree[i] = false;
    mirror_drop_part(&mirror, &trees[i].header_.uuid);
}

/* The node lists some of the trees that no other one lists, or has those that name it. */
static void
change_node(size_t i)
{
    struct rrec_node *n = &nodes[i];

    if (has_node[i] && !prng_below(&seed, 6)) {
        has_node[i] = false;
        n->n_trees = 0;
        mirror_drop_node(&mirror, &n->header_.uuid);
        return;
    }
    has_node[i] = true;
    n->named_trees = prng_below(&seed, 2);
    n->n_trees = 0;
    for (size_t j = i; j < N_TREES; j += N_NODES) {
        if (has_tree[j] && prng_below(&seed, 2)) {
            node_trees[i][n->n_trees++] = &trees[j];
        }
    }
    mirror_put_node(&mirror, n);
}

START_TEST(as_made_anew)
    {
        for (int i = 0; i < BY_CHANCE(20000); i++) {
            switch (prng_below(&seed, 5)) {
            case 0: change_group(prng_below(&seed, N_GROUPS)); break;
            case 1: change_member(prng_below(&seed, N_MEMBERS)); break;
            case 2: change_tree(prng_below(&seed, N_TREES)); break;
            case 3: drop_tree(prng_below(&seed, N_TREES)); break;
            default: change_node(prng_below(&seed, N_NODES)); break;
            }
            if (i % 10 == 0) {
                check_mirror();
            }
        }
        mirror_clear(&mirror);
        ck_assert(ovs_list_is_empty(&work.unsettled) && ovs_list_is_empty(&work.settled));
    }
END_TEST

/* Takes all that is due, and has it done; how many groups these are. */
static size_t
do_all(void)
{
    size_t n = 0;

    while (work_take(&work)) {
        n++;
    }
    work_done(&work);
    return n;
}

static void
add_group(size_t i, size_t proxy)
{
    groups[i].proxy = proxies[proxy];
    put_group(&mirror, i);
}

START_TEST(due)
    {
        add_group(0, 1);
        add_group(1, 2);
        ck_assert_uint_eq(do_all(), 2);
        ck_assert_uint_eq(do_all(), 0);

        /* A member: its group; one that moves: both. */
        members[0].group = &groups[0];
        put_member(&mirror, 0);
        ck_assert_uint_eq(do_all(), 1);
        members[0].group = &groups[1];
        put_member(&mirror, 0);
        ck_assert_uint_eq(do_all(), 2);
        mirror_drop_part(&mirror, &members[0].header_.uuid);
        ck_assert_uint_eq(do_all(), 1);

        /* A tree: who has its address; and when a node gets it, or loses it. */
        trees[0].proxy = proxies[2];
        put_tree(&mirror, 0);
        ck_assert_uint_eq(do_all(), 1);
        node_trees[0][0] = &trees[0];
        nodes[0].n_trees = 1;
        mirror_put_node(&mirror, &nodes[0]);
        ck_assert_uint_eq(do_all(), 1);
        mirror_put_node(&mirror, &nodes[0]);
        ck_assert_uint_eq(do_all(), 0);
        mirror_drop_node(&mirror, &nodes[0].header_.uuid);
        ck_assert_uint_eq(do_all(), 1);
        ck_assert_uint_eq(ovs_list_size(&mirror.homeless), 1);
        trees[0].node = nodes[0].name;
        put_tree(&mirror, 0);
        ck_assert_uint_eq(do_all(), 1);
        nodes[0].n_trees = 0;
        mirror_put_node(&mirror, &nodes[0]);
        ck_assert_uint_eq(do_all(), 0);
        nodes[0].named_trees = true;
        mirror_put_node(&mirror, &nodes[0]);
        ck_assert_uint_eq(do_all(), 1);
        ck_assert(ovs_list_is_empty(&mirror.homeless));
        mirror_drop_node(&mirror, &nodes[0].header_.uuid);
        ck_assert_uint_eq(do_all(), 1);
        ck_assert(ovs_list_is_empty(&mirror.orphans));
        mirror_drop_group(&mirror, &groups[1].header_.uuid);
        ck_assert(!ovs_list_is_empty(&mirror.orphans));
        ck_assert(work.any_gone);
    }
END_TEST

/* What changes while a transaction is about the group makes it due again, once that is done. */
START_TEST(due_again)
    {
        add_group(0, 1);
        struct work_group *g = work_take(&work);
        ck_assert_ptr_eq(g->group->row, &groups[0]);
        put_group(&mirror, 0);
        ck_assert(!work_is_left(&work));
        work_done(&work);
        ck_assert_uint_eq(do_all(), 1);
        ck_assert_uint_eq(do_all(), 0);

        /* One that was in vain is due again as it is, and once. */
        put_group(&mirror, 0);
        work_take(&work);
        put_group(&mirror, 0);
        work_again(&work, true);
        ck_assert_uint_eq(do_all(), 1);
        ck_assert_uint_eq(do_all(), 0);

        /* It may go meanwhile. */
        put_group(&mirror, 0);
        work_take(&work);
        mirror_drop_group(&mirror, &groups[0].header_.uuid);
        work_done(&work);
        ck_assert_uint_eq(do_all(), 0);
    }
END_TEST

/* Of two groups with one address the first by UUID has what belongs to that. */
START_TEST(same_address)
    {
        add_group(1, 1);
        ck_assert(mirror_group_has_proxy(
            CONTAINER_OF(hmap_first(&mirror.groups), struct mirror_group, hmap_node)));
        add_group(0, 1);
        do_all();
        trees[0].proxy = proxies[1];
        put_tree(&mirror, 0);
        ck_assert_uint_eq(do_all(), 2);
        const struct mirror_group *g;
        HMAP_FOR_EACH (g, hmap_node, &mirror.groups) {
            ck_assert(mirror_group_has_proxy(g) == (g->row == &groups[0]));
        }
        add_group(0, 2);
        ck_assert_uint_eq(do_all(), 2);
        HMAP_FOR_EACH (g, hmap_node, &mirror.groups) {
            ck_assert(mirror_group_has_proxy(g));
        }
    }
END_TEST

Suite *
mirror_suite(void)
{
    Suite *s = suite_create("mirror");
    TCase *tc = tcase_create("mirror");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, as_made_anew);
    tcase_add_test(tc, due);
    tcase_add_test(tc, due_again);
    tcase_add_test(tc, same_address);
    suite_add_tcase(s, tc);
    return s;
}
