/* SPDX-License-Identifier: Apache-2.0
 *
 * Members of JSON objects that other programs have made.
 */
#include <config.h>

#include "ctl/registry/json.h"

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
