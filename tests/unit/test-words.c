/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of words, and that the registry's schema has the same.
 */
#include <config.h>

#include <stdlib.h>

#include "ctl/registry/values.h"
#include "lib/node-config.h"
#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "tests/unit/suites.h"
#include "util.h"

/* Columns that have one of a list of words, and which of the list. */
static const struct list {
    const char *table, *column;
    const struct words *words;
    unsigned int mask;
} lists[] = {
    {"Branch", "kind", &branch_kind_words, WORDS_ALL},
    {"Group", "auth", &auth_choice_words, 1u << AUTH_MT | 1u << AUTH_HMAC},
    {"Group", "mode", &tree_mode_words, WORDS_ALL},
    {"Group", "nak", &nak_policy_words, WORDS_ALL},
    {"Group", "policy", &loss_policy_words, WORDS_ALL},
    {"Group", "receivers", &receivers_words, WORDS_ALL},
    {"Link", "kind", &port_kind_words, WORDS_ALL},
    {"Node", "role", &node_role_words, WORDS_ALL},
    {"Port", "kind", &port_kind_words, WORDS_ALL},
    {"Port", "role", &port_role_words, WORDS_ALL},
    {"Sid", "behaviour", &sid_behaviour_words, WORDS_ALL},
    {"Tree_Node", "auth", &auth_choice_words, 1u << AUTH_MT | 1u << AUTH_HMAC},
    {"Tree_Node", "mode", &tree_mode_words, WORDS_ALL},
    {"Tree_Node", "nak", &nak_policy_words, WORDS_ALL},
};

static struct json *
read_schema(void)
{
    struct json *schema = json_from_file("ctl/registry/rocecast.ovsschema");

    ck_assert_msg(schema->type == JSON_OBJECT, "the schema cannot be read");
    return schema;
}

static const struct json *
member(const struct json *object, const char *name)
{
    const struct json *m =
        object && object->type == JSON_OBJECT ? shash_find_data(json_object(object), name) : NULL;
    return m;
}

/* The words that a column may have, "a|b", as the schema has them; NULL: any. */
static char *
column_words(const struct json *column)
{
    const struct json *list = member(member(member(column, "type"), "key"), "enum");
    char *text = NULL;

    if (!list) {
        return NULL;
    }
    list = json_array(list)->elems[1];
    for (size_t i = 0; i < json_array(list)->n; i++) {
        const struct json *word = json_array(list)->elems[i];

        if (word->type != JSON_STRING) {
            return NULL;
        }
        char *longer = xasprintf("%s%s%s", text ? text : "", text ? "|" : "", json_string(word));
        free(text);
        text = longer;
    }
    return text;
}

START_TEST(schema_has_the_lists)
    {
        const struct list *l = &lists[_i];
        struct json *schema = read_schema();
        const struct json *table = member(member(schema, "tables"), l->table);
        char *has = column_words(member(member(table, "columns"), l->column));
        char *wanted = words_join(l->words, l->mask, "|", "|");

        ck_assert_str_eq(has ? has : "anything", wanted);
        free(has);
        free(wanted);
        json_destroy(schema);
    }
END_TEST

static bool
is_listed(const char *table, const char *column)
{
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        if (!strcmp(lists[i].table, table) && !strcmp(lists[i].column, column)) {
            return true;
        }
    }
    return false;
}

/* Except for what becomes of members, which is no enumeration. */
START_TEST(schema_has_no_other_lists)
    {
        struct json *schema = read_schema();
        struct shash_node *table, *column;

        SHASH_FOR_EACH (table, json_object(member(schema, "tables"))) {
            SHASH_FOR_EACH (column, json_object(member(table->data, "columns"))) {
                char *words = column_words(column->data);

                ck_assert_msg(!words || is_listed(table->name, column->name)
                                  || !strcmp(words, "active|left|removed"),
                              "%s.%s: %s", table->name, column->name, words);
                free(words);
            }
        }
        json_destroy(schema);
    }
END_TEST

START_TEST(there_and_back)
    {
        const struct words *w = lists[_i].words;

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

    tcase_add_loop_test(tc, schema_has_the_lists, 0, ARRAY_SIZE(lists));
    tcase_add_test(tc, schema_has_no_other_lists);
    tcase_add_loop_test(tc, there_and_back, 0, ARRAY_SIZE(lists));
    tcase_add_test(tc, typed);
    tcase_add_loop_test(tc, modes, 0, (int) tree_mode_words.n);
    tcase_add_loop_test(tc, joined, 0, 5);
    suite_add_tcase(suite, tc);
    return suite;
}
