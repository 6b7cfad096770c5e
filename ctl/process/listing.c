/* SPDX-License-Identifier: Apache-2.0
 *
 * Listings on the control socket.
 */
#include <config.h>

#include "ctl/process/listing.h"

#include "ctl/registry/json.h"
#include "lib/figure.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/json.h"
#include "unixctl.h"
#include "util.h"

/* What is registered stays so until the process ends. */
struct registered {
    listing_func *func;
    const void *listing;
};

/* A string, number or boolean that is called 'key'. */
static void
format_value(const char *key, const struct json *json, struct ds *s)
{
    char text[FIGURE_SIZE];

    if (json->type == JSON_STRING) {
        ds_put_cstr(s, json_string(json));
    } else if (json->type == JSON_INTEGER) {
        figure_format(key, json_integer(json), text);
        ds_put_cstr(s, text);
    } else {
        json_to_ds(json, 0, s);
    }
}

/* JSON as indented text: "name value" lines, nested things further in. */
static void
format_text(const struct json *json, int indent, struct ds *s)
{
    if (json->type == JSON_ARRAY) {
        for (size_t i = 0; i < json->array.n; i++) {
            const struct json *element = json->array.elems[i];
            format_text(element, indent, s);
            ds_put_cstr(s, i + 1 < json->array.n && element->type == JSON_OBJECT ? "\n" : "");
        }
        return;
    }
    if (json->type != JSON_OBJECT) {
        ds_put_format(s, "%*s", indent, "");
        format_value("", json, s);
        ds_put_char(s, '\n');
        return;
    }
    const struct shash_node **nodes = shash_sort(json_object(json));
    for (size_t i = 0; i < shash_count(json_object(json)); i++) {
        const struct json *value = nodes[i]->data;
        if (value->type == JSON_ARRAY || value->type == JSON_OBJECT) {
            ds_put_format(s, "%*s%s:\n", indent, "", nodes[i]->name);
            format_text(value, indent + 2, s);
        } else if (value->type != JSON_INTEGER || json_integer(value) || indent < 2) {
            ds_put_format(s, "%*s%-18s ", indent, "", figure_label(nodes[i]->name));
            format_value(nodes[i]->name, value, s);
            ds_put_char(s, '\n');
        }
    }
    free(nodes);
}

void
listing_reply(struct unixctl_conn *conn, const struct json *json, bool as_json)
{
    struct ds s = DS_EMPTY_INITIALIZER;

    if (as_json) {
        json_to_ds(json, JSSF_SORT, &s);
    } else {
        struct json *text = ctl_json_printable(json);

        format_text(text, 0, &s);
        json_destroy(text);
    }
    unixctl_command_reply(conn, ds_cstr(&s));
    ds_destroy(&s);
}

static void
list(struct unixctl_conn *conn, int argc, const char *argv[], void *registered)
{
    const struct registered *r = registered;

    if (argc > 1 && strcmp(argv[1], "-j")) {
        unixctl_command_reply_error(conn, "the only argument is -j");
        return;
    }
    r->func(conn, r->listing, argc > 1);
}

void
listing_register(const char *command, listing_func *func, const void *listing)
{
    struct registered *r = xmalloc(sizeof *r);

    *r = (struct registered){.func = func, .listing = listing};
    unixctl_command_register(command, "[-j]", 0, 1, list, r);
}
