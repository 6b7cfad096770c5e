/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of words.
 */
#include <config.h>

#include <stdlib.h>

#include "ctl/registry/values.h"
#include "lib/node-config.h"
#include "tests/unit/suites.h"
#include "util.h"

static const struct words *const lists[] = {
    &auth_choice_words,   &branch_kind_words, &loss_policy_words, &nak_policy_words,
    &node_role_words,     &port_kind_words,   &port_role_words,   &receivers_words,
    &sid_behaviour_words, &tree_mode_words,
};

START_TEST(there_and_back)
    {
        const struct words *w = lists[_i];

        for (unsigned int i = 0; i < w->n; i++) {
            unsigned int value = UINT_MAX;

            ck_assert_ptr_nonnull(words_name(w, i));
            ck_assert(words_parse(w, words_name(w, i), &value));
            ck_assert_uint_eq(value, i);
        }
        ck_assert(!words_parse(w, "", &(unsigned int){0}));
        ck_assert(!words_parse(w, "nonsense", &(unsigned int){0}));
    }
END_TEST

START_TEST(typed)
    {
        enum node_role role = NODE_OVS;

        ck_assert(!node_role_parse("Agent", &role));
        ck_assert_int_eq(role, NODE_OVS);
        ck_assert(node_role_parse("agent", &role));
        ck_assert_int_eq(role, NODE_AGENT);
        ck_assert_str_eq(receivers_name(true), "provisioned");
    }
END_TEST

/* A mode is one in which the source agent replicates, or switches do by SID or by group address. */
START_TEST(modes)
    {
        const struct tree_mode_row *m = tree_mode((enum tree_mode) _i);

        ck_assert_int_eq(m->switches_replicate + m->addressed_to_group + m->packet_per_edge, 1);
        ck_assert(m->agent_is_root || m->switches_merge);
    }
END_TEST

START_TEST(joined)
    {
        static const struct {
            unsigned int mask;
            const char *text;
        } cases[] = {
            {WORDS_ALL, "switch, agent, ovs or router"},
            {1u << NODE_OVS | 1u << NODE_ROUTER, "ovs or router"},
            {1u << NODE_SWITCH | 1u << NODE_AGENT | 1u << NODE_OVS, "switch, agent or ovs"},
            {1u << NODE_AGENT, "agent"},
            {0, ""},
        };
        char *text = words_join(&node_role_words, cases[_i].mask, ", ", " or ");

        ck_assert_str_eq(text, cases[_i].text);
        free(text);
    }
END_TEST

Suite *
words_suite(void)
{
    Suite *suite = suite_create("words");
    TCase *tc = tcase_create("words");

    tcase_add_loop_test(tc, there_and_back, 0, ARRAY_SIZE(lists));
    tcase_add_test(tc, typed);
    tcase_add_loop_test(tc, modes, 0, (int) tree_mode_words.n);
    tcase_add_loop_test(tc, joined, 0, 5);
    suite_add_tcase(suite, tc);
    return suite;
}
