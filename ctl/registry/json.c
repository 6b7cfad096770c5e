/* SPDX-License-Identifier: Apache-2.0
 *
 * Members of JSON objects that other programs have made.
 */
#include <config.h>

#include "ctl/registry/json.h"

#include <stdlib.h>

#include "lib/printable.h"
#include "openvswitch/json.h"
#include "openvswitch/shash.h"

const struct json *
ctl_get(const struct json *object, const char *key)
{
    return object && object->type == JSON_OBJECT ? shash_find_data(json_object(object), key) : NULL;
}

const char *
ctl_get_string(const struct json *object, const char *key)
{
    const struct json *value = ctl_get(object, key);

    return value && value->type == JSON_STRING ? json_string(value) : "";
}

int64_t
ctl_get_int(const struct json *object, const char *key)
{
    const struct json *value = ctl_get(object, key);

    return value && value->type == JSON_INTEGER ? json_integer(value) : 0;
}

bool
ctl_get_bool(const struct json *object, const char *key)
{
    const struct json *value = ctl_get(object, key);

    return value && value->type == JSON_TRUE;
}

const struct json_array *
ctl_get_array(const struct json *object, const char *key)
{
    static const struct json_array none;
    const struct json *value = ctl_get(object, key);

    return value && value->type == JSON_ARRAY ? &value->array : &none;
}

struct json *
ctl_json_printable(const struct json *json)
{
    if (json->type == JSON_STRING) {
        return json_string_create_nocopy(printable(json_string(json)));
    }
    if (json->type == JSON_ARRAY) {
        struct json *array = json_array_create_empty();

        for (size_t i = 0; i < json->array.n; i++) {
            json_array_add(array, ctl_json_printable(json->array.elems[i]));
        }
        return array;
    }
    if (json->type == JSON_OBJECT) {
        struct json *object = json_object_create();
        const struct shash_node *member;

        SHASH_FOR_EACH (member, json_object(json)) {
            char *name = printable(member->name);

            json_object_put(object, name, ctl_json_printable(member->data));
            free(name);
        }
        return object;
    }
    return json_deep_clone(json);
}

void
ctl_put_int(struct json *object, const char *key, int64_t value)
{
    json_object_put(object, key, json_integer_create(value));
}
