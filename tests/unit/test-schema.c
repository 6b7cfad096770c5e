/* SPDX-License-Identifier: Apache-2.0
 *
 * The registry's schema repeats what the code has in one place: lists of words and
 * the limits of the address plan.
 */
#include <config.h>

#include <stdlib.h>

#include "ctl/registry/values.h"
#include "lib/cm-conn.h"
#include "lib/node-config.h"
#include "lib/path-health.h"
#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "ctl/plan/topology.h"
#include "tests/unit/suites.h"
#include "util.h"

/* Columns that have one of a list of words, and which of the list. */
static const struct list {
    const char *table, *column;
    const struct words *words;
    unsigned int mask;
} lists[] = {
    {"Branch", "join", &branch_join_words,
     1u << BRANCH_WAITS | 1u << BRANCH_ADMITTED | 1u << BRANCH_ASKED},
    {"Branch", "kind", &branch_kind_words, WORDS_ALL},
    {"Connection", "cause", &cm_cause_words, WORDS_ALL & ~(1u << CM_NOT_ENDED)},
    {"Connection", "decision", &cm_decision_words, WORDS_ALL & ~(1u << CM_UNDECIDED)},
    {"Connection", "role", &cm_role_words, WORDS_ALL},
    {"Connection", "state", &cm_state_words, WORDS_ALL},
    {"Group", "auth", &auth_choice_words, 1u << AUTH_MT | 1u << AUTH_HMAC | 1u << AUTH_DATA},
    {"Destination", "policy", &path_policy_words, WORDS_ALL},
    {"Global", "path_form", &path_form_words, WORDS_ALL},
    {"Group", "cnp", &cnp_source_words, WORDS_ALL},
    {"Group", "mode", &tree_mode_words, WORDS_ALL},
    {"Group", "nak", &nak_policy_words, WORDS_ALL},
    {"Group", "policy", &loss_policy_words, WORDS_ALL},
    {"Group", "receivers", &receivers_words, WORDS_ALL},
    {"Group", "slow", &slow_policy_words, WORDS_ALL},
    {"Host", "controller", &rate_controller_words, WORDS_ALL},
    {"Host", "path_policy", &path_policy_words, WORDS_ALL},
    {"Host", "rate_control", &rate_control_by_words, WORDS_ALL},
    {"Link", "kind", &port_kind_words, WORDS_ALL},
    {"Node", "controller", &rate_controller_words, WORDS_ALL},
    {"Node", "rate_control", &rate_control_by_words, WORDS_ALL},
    {"Node", "role", &node_role_words, WORDS_ALL},
    {"Path_Rule", "kind", &path_rule_kind_words, WORDS_ALL},
    {"Probe", "kind", &probe_kind_words, WORDS_ALL},
    {"Probe", "state", &path_state_words, WORDS_ALL},
    {"Port", "kind", &port_kind_words, WORDS_ALL},
    {"Port", "role", &port_role_words, WORDS_ALL},
    {"Sid", "behaviour", &sid_behaviour_words, WORDS_ALL},
    {"Tree_Node", "auth", &auth_choice_words, 1u << AUTH_MT | 1u << AUTH_HMAC | 1u << AUTH_DATA},
    {"Tree_Node", "cnp", &cnp_source_words, WORDS_ALL},
    {"Tree_Node", "mode", &tree_mode_words, WORDS_ALL},
    {"Tree_Node", "nak", &nak_policy_words, WORDS_ALL},
    {"Tree_Node", "rate_cause", &rate_cause_words, WORDS_ALL},
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

static const struct json *
find_column(const struct json *schema, const char *table, const char *column)
{
    return member(member(member(member(schema, "tables"), table), "columns"), column);
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
        char *has = column_words(find_column(schema, l->table, l->column));
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

static const struct limits {
    const char *table, *column;
    int64_t min, max;
} limits[] = {
    {"Node", "id", 1, NODE_ID_MAX},
    {"Group", "replication_id", 0, REPLICATION_ID_MAX},
    {"Port", "number", 1, PORT_NUMBER_MAX},
    {"Source", "qpn", QPN_MIN, QPN_MAX},
    {"Member", "qpn", QPN_MIN, QPN_MAX},
    {"Member", "designated_qpn", QPN_MIN, QPN_MAX},
    {"Branch", "designated_qpn", QPN_MIN, QPN_MAX},
    {"Connection", "qpn", QPN_MIN, QPN_MAX},
};

START_TEST(schema_has_the_limits)
    {
        const struct limits *l = &limits[_i];
        struct json *schema = read_schema();
        const struct json *key =
            member(member(find_column(schema, l->table, l->column), "type"), "key");

        ck_assert_int_eq(json_integer(member(key, "minInteger")), l->min);
        ck_assert_int_eq(json_integer(member(key, "maxInteger")), l->max);
        json_destroy(schema);
    }
END_TEST

Suite *
schema_suite(void)
{
    Suite *suite = suite_create("schema");
    TCase *tc = tcase_create("schema");

    tcase_add_loop_test(tc, schema_has_the_lists, 0, ARRAY_SIZE(lists));
    tcase_add_test(tc, schema_has_no_other_lists);
    tcase_add_loop_test(tc, schema_has_the_limits, 0, ARRAY_SIZE(limits));
    suite_add_tcase(suite, tc);
    return suite;
}
