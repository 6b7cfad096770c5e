/* SPDX-License-Identifier: Apache-2.0
 *
 * What castctl shows, as JSON or as text made from the same JSON.
 */
#include <config.h>

#include "ctl/castctl/castctl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/figure.h"
#include "lib/printable.h"
#include "openvswitch/dynamic-string.h"
#include "svec.h"
#include "timeval.h"
#include "util.h"

void
ctl_put_time_at(struct json *object, const char *name, int64_t posix_msec)
{
    if (posix_msec <= 0) {
        json_object_put(object, name, json_null_create());
        return;
    }
    json_object_put(
        object, name,
        json_string_create_nocopy(xastrftime_msec("%Y-%m-%dT%H:%M:%S.###Z", posix_msec, true)));
}

void
ctl_put_time(struct json *object, const char *name)
{
    ctl_put_time_at(object, name, time_wall_msec());
}

void
ctl_put_bool(struct json *object, const char *name, bool value)
{
    json_object_put(object, name, json_boolean_create(value));
}

void
ctl_put_int_or_null(struct json *object, const char *name, const int64_t *value)
{
    json_object_put(object, name, value ? json_integer_create(*value) : json_null_create());
}

void
ctl_put_string_or_null(struct json *object, const char *name, const char *value)
{
    json_object_put(object, name, value ? json_string_create(value) : json_null_create());
}

void
ctl_put_copy_or_null(struct json *object, const char *name, const struct json *value)
{
    json_object_put(object, name, value ? json_deep_clone(value) : json_null_create());
}

struct json *
ctl_add_object(struct json *array)
{
    struct json *object = json_object_create();

    json_array_add(array, object);
    return object;
}

/* The value that an object has under 'key', "-" for nothing; malloc'd. */
static char *
word(const char *key, const struct json *value)
{
    char text[FIGURE_SIZE];

    if (!value || value->type == JSON_NULL) {
        return xstrdup("-");
    }
    if (value->type == JSON_STRING) {
        return xstrdup(json_string(value)[0] ? json_string(value) : "-");
    }
    if (value->type == JSON_INTEGER) {
        figure_format(key, json_integer(value), text);
        return xstrdup(text);
    }
    return json_to_string(value, 0);
}

static bool
is_nested(const struct json *value)
{
    return value && (value->type == JSON_OBJECT || value->type == JSON_ARRAY);
}

static size_t
column_width(const struct json *array, const char *key)
{
    size_t width = strlen(figure_label(key));

    for (size_t i = 0; i < array->array.n; i++) {
        char *s = word(key, ctl_get(array->array.elems[i], key));

        width = MAX(width, strlen(s));
        free(s);
    }
    return width;
}

void
ctl_print_table(const struct json *array, const char *const keys[], int indent)
{
    struct svec columns = SVEC_EMPTY_INITIALIZER;
    size_t n_rows = array->array.n;

    /* The columns are those of 'keys' that the first object has. */
    for (size_t i = 0; keys[i] && n_rows; i++) {
        const struct json *value = ctl_get(array->array.elems[0], keys[i]);

        if (value && !is_nested(value)) {
            svec_add(&columns, keys[i]);
        }
    }
    size_t *widths = xcalloc(columns.n + 1, sizeof *widths);
    for (size_t i = 0; i < columns.n; i++) {
        widths[i] = column_width(array, columns.names[i]);
    }
    for (size_t row = 0; row <= n_rows && columns.n; row++) { /* row 0 is the heading. */
        printf("%*s", indent, "");
        for (size_t i = 0; i < columns.n; i++) {
            const char *key = columns.names[i];
            char *s = row ? word(key, ctl_get(array->array.elems[row - 1], key))
                          : xstrdup(figure_label(key));
            bool last = i + 1 == columns.n;

            printf("%-*s%s", last ? 0 : (int) widths[i], s, last ? "\n" : "  ");
            free(s);
        }
    }
    free(widths);
    svec_destroy(&columns);
}

static void
print_object(const struct json *object, const char *const keys[], int indent)
{
    size_t width = 0;

    for (size_t i = 0; keys[i]; i++) {
        if (shash_find(json_object(object), keys[i])) {
            width = MAX(width, strlen(figure_label(keys[i])));
        }
    }
    for (size_t i = 0; keys[i]; i++) {
        const struct json *value = shash_find_data(json_object(object), keys[i]);

        if (!value) {
            continue;
        }
        if (!is_nested(value)) {
            char *s = word(keys[i], value);

            printf("%*s%-*s %s\n", indent, "", (int) width, figure_label(keys[i]), s);
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

        ctl_print_lines(s);
        free(s);
    } else {
        struct json *text = ctl_json_printable(json);

        if (text->type == JSON_ARRAY) {
            ctl_print_table(text, keys, 0);
        } else {
            print_object(text, keys, 0);
        }
        json_destroy(text);
    }
    json_destroy(json);
}

void
ctl_print_json_line(struct json *json)
{
    char *s = json_to_string(json, JSSF_SORT);

    ctl_print_line("%s", s);
    free(s);
    json_destroy(json);
}

static const char *sort_key;

static int
compare_objects(const void *a_, const void *b_)
{
    const struct json *const *a = a_, *const *b = b_;
    char *a_word = word("", ctl_get(*a, sort_key)), *b_word = word("", ctl_get(*b, sort_key));
    int order = strverscmp(a_word, b_word);

    free(a_word);
    free(b_word);
    return order;
}

void
ctl_sort_by(struct json *array, const char *key)
{
    if (array->array.n) { /* an array without elements is NULL, which qsort() must not get. */
        sort_key = key;
        qsort(array->array.elems, array->array.n, sizeof *array->array.elems, compare_objects);
    }
}

void
ctl_print_line(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    printable_line(stdout, "", format, args);
    va_end(args);
}

void
ctl_print_lines(char *text)
{
    char *save = NULL;

    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        ctl_print_line("%s", line);
    }
}
