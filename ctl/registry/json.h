/* SPDX-License-Identifier: Apache-2.0
 *
 * Members of JSON objects, most of which other programs have made.
 */
#ifndef CTL_REGISTRY_JSON_H
#define CTL_REGISTRY_JSON_H 1

#include <stdbool.h>
#include <stdint.h>

struct json;
struct json_array;

/* Members of objects.  If 'object' is no object, or has no such member of this type: "", 0, false
 * or an empty array. */
const char *ctl_get_string(const struct json *object, const char *key);
int64_t ctl_get_int(const struct json *object, const char *key);
bool ctl_get_bool(const struct json *object, const char *key);
const struct json_array *ctl_get_array(const struct json *object, const char *key);
/* A copy for text: strings and names of members are printable() there. */
struct json *ctl_json_printable(const struct json *);
/* The member, NULL if there is none. */
const struct json *ctl_get(const struct json *object, const char *key);
/* Gives an object of our own a member. */
void ctl_put_int(struct json *object, const char *key, int64_t value);

#endif /* ctl/registry/json.h */
