/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory regions in the private data of RDMA-CM answers.
 */
#include <config.h>

#include "ctl/registry/private-data.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/registry/values.h"
#include "lib/cm.h"
#include "lib/why.h"
#include "lib/words.h"
#include "util.h"

/* Fields, and what they may be; the registry's integers have 63 bits. */
static const struct {
    const char *name;
    uint64_t min, max;
} fields[] = {
    [PRIVATE_DATA_VA] = {"va", 0, UINT64_MAX},
    [PRIVATE_DATA_RKEY] = {"rkey", 0, UINT32_MAX},
    [PRIVATE_DATA_LEN] = {"len", 1, INT64_MAX},
};
static const struct words field_words = WORDS_INIT(fields);

static const struct {
    const char *name;
    uint8_t size;
    bool little_endian;
} types[] = {
    {"be16", 2, false}, {"be32", 4, false}, {"be64", 8, false},
    {"le16", 2, true},  {"le32", 4, true},  {"le64", 8, true},
};
static const struct words type_words = WORDS_INIT(types);

static bool
is_none_of(const struct words *words, const char *what, char **errorp)
{
    char *list = words_join(words, WORDS_ALL, ", ", " or ");

    say_why(errorp, "the %s must be %s", what, list);
    free(list);
    return false;
}

/* "be32@8".  Writes to the text. */
static bool
parse_place(char *text, struct private_data_place *place, char **errorp)
{
    char *at = strchr(text, '@');
    unsigned int type;
    uint64_t ofs;

    if (!at) {
        return say_why(errorp, "must be FIELD:TYPE@BYTE or FIELD:NUMBER");
    }
    *at = '\0';
    if (!words_parse(&type_words, text, &type)) {
        return is_none_of(&type_words, "type", errorp);
    }
    uint64_t max = CM_REP_PRIVATE_LEN - types[type].size;
    if (!number_parse(at + 1, 0, max, &ofs)) {
        return say_why(errorp,
                       "the byte that it begins at must be 0..%" PRIu64
                       ": an answer has %d bytes of private data",
                       max, CM_REP_PRIVATE_LEN);
    }
    *place = (struct private_data_place){
        .size = types[type].size,
        .ofs = (uint8_t) ofs,
        .little_endian = types[type].little_endian,
    };
    return true;
}

/* "rkey:be32@8" or "rkey:17".  Writes to the text. */
static bool
parse_item(char *text, struct private_data_layout *layout, bool seen[], char **errorp)
{
    char *colon = strchr(text, ':');
    unsigned int field;
    uint64_t number;

    if (colon) {
        *colon = '\0';
    }
    if (!words_parse(&field_words, text, &field)) {
        return is_none_of(&field_words, "field", errorp);
    }
    if (seen[field]) {
        return say_why(errorp, "%s is there twice", text);
    }
    seen[field] = true;
    const char *value = colon ? colon + 1 : "";
    if (value[0] < '0' || value[0] > '9') {
        return parse_place(CONST_CAST(char *, value), &layout->places[field], errorp);
    }
    if (!number_parse(value, fields[field].min, fields[field].max, &number)) {
        return say_why(errorp, "the number must be %" PRIu64 "..%" PRIu64, fields[field].min,
                       fields[field].max);
    }
    layout->places[field] = (struct private_data_place){.constant = number};
    return true;
}

bool
private_data_parse(const char *text, struct private_data_layout *layout, char **errorp)
{
    char *copy = xstrdup(text[0] ? text : PRIVATE_DATA_DEFAULT), *rest = copy, *item;
    bool seen[PRIVATE_DATA_N_FIELDS] = {false};
    bool good = true;

    for (int n = 1; good && (item = strsep(&rest, ",")); n++) {
        char *original = xstrdup(item), *why;

        good = parse_item(item, layout, seen, &why);
        if (!good) {
            say_why(errorp, "field %d, \"%s\": %s", n, original, why);
            free(why);
        }
        free(original);
    }
    for (size_t i = 0; i < PRIVATE_DATA_N_FIELDS && good; i++) {
        good = seen[i]
               || say_why(errorp, "%s is missing: %s:TYPE@BYTE or %s:NUMBER", fields[i].name,
                          fields[i].name, fields[i].name);
    }
    free(copy);
    return good;
}

/* One field's value. */
static bool
extract(const struct private_data_layout *layout, enum private_data_field field,
        const uint8_t *data, size_t data_len, uint64_t *value, char **errorp)
{
    const struct private_data_place *p = &layout->places[field];
    const char *name = fields[field].name;

    *value = p->constant;
    if (p->ofs + p->size > data_len) {
        return say_why(errorp,
                       "the answer has %" PRIuSIZE " bytes of private data, %s is at %d to %d",
                       data_len, name, p->ofs, p->ofs + p->size - 1);
    }
    for (size_t i = 0; i < p->size; i++) {
        *value = *value << 8 | data[p->ofs + (p->little_endian ? p->size - 1 - i : i)];
    }
    return (*value >= fields[field].min && *value <= fields[field].max)
           || say_why(errorp,
                      "%s in the answer's private data is %" PRIu64 ": must be %" PRIu64
                      "..%" PRIu64,
                      name, *value, fields[field].min, fields[field].max);
}

bool
private_data_extract(const struct private_data_layout *layout, const uint8_t *data, size_t data_len,
                     uint64_t *va, uint32_t *rkey, uint64_t *len, char **errorp)
{
    uint64_t key;

    if (!extract(layout, PRIVATE_DATA_VA, data, data_len, va, errorp)
        || !extract(layout, PRIVATE_DATA_RKEY, data, data_len, &key, errorp)
        || !extract(layout, PRIVATE_DATA_LEN, data, data_len, len, errorp)) {
        return false;
    }
    *rkey = (uint32_t) key;
    return *va <= UINT64_MAX - *len
           || say_why(errorp,
                      "the region in the answer's private data, %" PRIu64 " bytes at 0x%" PRIx64
                      ", runs over the end of the address space",
                      *len, *va);
}
