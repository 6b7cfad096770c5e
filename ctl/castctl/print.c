/* SPDX-License-Identifier: Apache-2.0
 *
 * What castctl shows, as JSON or as text made from the same JSON.
 */
#include <config.h>

#include "ctl/castctl/castctl.h"

#include <stdio.h>
#include <stdlib.h>

#include "util.h"

void
ctl_put_int(struct json *object, const char *name, int64_t value)
{
    json_object_put(object, name, json_integer_create(value));
}

/* A value as one word, "-" for nothing; malloc'd. */
static char *
word(const struct json *value)
{
    if (!value || value->type == JSON_NULL) {
        return xstrdup("-");
    }
    if (value->type == JSON_STRING) {
        return xstrdup(json_string(value)[0] ? json_string(value) : "-");
    }
    return json_to_string(value, 0);
}

static bool
is_nested(const struct json *value)
{
    return value && (value->type == JSON_OBJECT || value->type == JSON_ARRAY);
}

/* Prints a row of a table.  All columns but the last are padded. */
static void
print_row(char *const *cells, const size_t *widths, size_t n, int indent)
{
    printf("%*s", indent, "");
    for (size_t i = 0; i < n; i++) {
        if (i + 1 < n) {
            printf("%-*s  ", (int) widths[i], cells[i]);
        } else {
            printf("%s\n", cells[i]);
        }
    }
}

/* Those of 'keys' that the first object has: the table's columns. */
static size_t
table_columns(const struct json *array, const char *const keys[], const char **columns)
{
    const struct shash *first = json_object(array->array.elems[0]);
    size_t n = 0;

    for (size_t i = 0; keys[i]; i++) {
        const struct json *value = shash_find_data(first, keys[i]);

        if (value && !is_nested(value)) {
            columns[n++] = keys[i];
        }
    }
    return n;
}

static size_t
count_keys(const char *const keys[])
{
    size_t n = 0;

    while (keys[n]) {
        n++;
    }
    return n;
}

void
ctl_print_table(const struct json *array, const char *const keys[], int indent)
{
    size_t n_keys = count_keys(keys);
    const char **columns = xcalloc(n_keys + 1, sizeof *columns);
    size_t *widths = xcalloc(n_keys + 1, sizeof *widths);
    char **cells = xcalloc(n_keys * (array->array.n + 1) + 1, sizeof *cells);
    size_t n = array->array.n ? table_columns(array, keys, columns) : 0;
    size_t n_rows = array->array.n + 1;

    for (size_t row = 0; row < n_rows && n; row++) {
        for (size_t i = 0; i < n; i++) {
            char *cell =
                row ? word(shash_find_data(json_object(array->array.elems[row - 1]), columns[i]))
                    : xstrdup(columns[i]);

            cells[row * n + i] = cell;
            widths[i] = MAX(widths[i], strlen(cell));
        }
    }
    for (size_t row = 0; row < n_rows && n; row++) {
        print_row(&cells[row * n], widths, n, indent);
    }
    for (size_t i = 0; i < n * n_rows; i++) {
        free(cells[i]);
    }
    free(cells);
    free(widths);
    free(columns);
}

static void
print_object(const struct json *object, const char *const keys[], int indent)
{
    size_t width = 0;

    for (size_t i = 0; keys[i]; i++) {
        if (shash_find(json_object(object), keys[i])) {
            width = MAX(width, strlen(keys[i]));
        }
    }
    for (size_t i = 0; keys[i]; i++) {
        const struct json *value = shash_find_data(json_object(object), keys[i]);

        if (!value) {
            continue;
        }
        if (!is_nested(value)) {
            char *s = word(value);

            printf("%*s%-*s %s\n", indent, "", (int) width, keys[i], s);
            free(s);
        } else if (value->type == JSON_OBJECT) {
            printf("%*s%s\n", indent, "", keys[i]);
            print_object(value, keys, indent + 2);
        } else if (value->array.n) {
            printf("%*s%s\n", indent, "", keys[i]);
            ctl_print_table(value, keys, indent + 2);
        }
    }
}

void
ctl_print(const struct ctl *ctl, struct json *json, const char *const keys[])
{
    if (ctl->json) {
        char *s = json_to_string(json, JSSF_PRETTY | JSSF_SORT);

        puts(s);
        free(s);
    } else if (json->type == JSON_ARRAY) {
        ctl_print_table(json, keys, 0);
    } else {
        print_object(json, keys, 0);
    }
    json_destroy(json);
}

static const char *sort_key;

static int
compare_objects(const void *a_, const void *b_)
{
    const struct json *const *a = a_, *const *b = b_;

    return strverscmp(json_string(shash_find_data(json_object(*a), sort_key)),
                      json_string(shash_find_data(json_object(*b), sort_key)));
}

void
ctl_sort_by(struct json *array, const char *key)
{
    if (array->array.n) { /* an array without elements is NULL, which qsort() must not get. */
        sort_key = key;
        qsort(array->array.elems, array->array.n, sizeof *array->array.elems, compare_objects);
    }
}
