/* SPDX-License-Identifier: Apache-2.0
 *
 * castctl key: the keys that authenticate groups.  A secret comes from a file or
 * from the random number generator, and goes into the registry.  castctl never
 * prints it, and does not read it back (db.c).
 */
#include <config.h>

#include "ctl/castctl/castctl.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/registry/values.h"
#include "sset.h"
#include "util.h"


#define GENERATED_LEN   32 /* bytes; as long as an HMAC-SHA256. */
#define SECRET_DIGITS   (2 * AUTH_SECRET_MAX)
/* Leaves room for white space around a secret, and for one character that shows it is too long. */
#define SECRET_FILE_MAX (SECRET_DIGITS + 64)

static int64_t
key_id(const char *option, const char *text)
{
    uint64_t id;

    if (!number_parse(text, 1, UINT32_MAX, &id)) {
        ctl_fail(CTL_USAGE, "%s%s: a key id must be 1..%" PRIu32, option, text, UINT32_MAX);
    }
    return (int64_t) id;
}

static const struct rrec_key *
find_key(const struct ctl *ctl, int64_t id)
{
    const struct rrec_key *row;

    RREC_KEY_FOR_EACH (row, ctl->idl) {
        if (row->id == id) {
            return row;
        }
    }
    return NULL;
}

/*
 * --auth and --key, of groups.
 */

struct auth_option
ctl_option_auth(const struct ctl *ctl, const struct rrec_group *group)
{
    struct auth_option o = {
        .given = ctl_flag(ctl, OPT_AUTH) || ctl_flag(ctl, OPT_KEY),
        .tlvs = group ? auth_tlvs_parse(group->auth, group->n_auth) : 0,
    };

    if (group && group->n_auth_key) {
        o.key = group->auth_key[0];
        o.n_key = 1;
    }
    o.tlvs = ctl_option_word(ctl, OPT_AUTH, o.tlvs);
    if (ctl_flag(ctl, OPT_KEY)) {
        o.key = key_id("--key ", ctl->options[OPT_KEY]);
        o.n_key = 1;
        if (!o.tlvs) {
            ctl_fail(CTL_USAGE, "--key %s: needs --auth %s", ctl->options[OPT_KEY],
                     words_join(&auth_choice_words, WORDS_ALL & ~1u, ", ", " or "));
        }
        if (!find_key(ctl, o.key)) {
            ctl_refuse(ctl, "no key with id %" PRId64 " (castctl key add)", o.key);
        }
    }
    if (o.tlvs && !o.n_key) {
        ctl_fail(CTL_USAGE, "--auth %s: needs --key", ctl->options[OPT_AUTH]);
    }
    if (!o.tlvs) {
        o.n_key = 0;
    }
    return o;
}

/*
 * Keys.
 */

/* The only word in 'file' ("-": standard input).  The file is read only once: a transaction may be
 * tried again. */
static const char *
read_secret(const char *file)
{
    static char secret[SECRET_FILE_MAX + 1];
    struct auth_key key;

    if (secret[0]) {
        return secret;
    }
    FILE *f = strcmp(file, "-") ? fopen(file, "r") : stdin;
    size_t n = f ? fread(secret, 1, SECRET_FILE_MAX, f) : 0;
    if (!f || ferror(f)) {
        ctl_fail(CTL_USAGE, "--secret-file %s: %s", file, ovs_strerror(errno));
    } else {
        fclose(f);
    }
    while (n && strchr(" \t\r\n", secret[n - 1])) {
        secret[--n] = '\0';
    }
    if (strlen(secret) != n || !secret_parse(secret, &key)) {
        ctl_fail(CTL_USAGE, "--secret-file %s: what is in it " SECRET_RULE " on one line", file);
    }
    OPENSSL_cleanse(&key, sizeof key);
    return secret;
}

static const char *
generate_secret(void)
{
    static char secret[2 * GENERATED_LEN + 1];
    uint8_t bytes[GENERATED_LEN];

    if (RAND_priv_bytes(bytes, sizeof bytes) != 1) {
        ctl_fail(CTL_REFUSED, "key add: libcrypto has no random numbers");
    }
    for (size_t i = 0; i < sizeof bytes; i++) {
        snprintf(&secret[2 * i], 3, "%02x", bytes[i]);
    }
    OPENSSL_cleanse(bytes, sizeof bytes);
    return secret;
}

static void
key_add(struct ctl *ctl)
{
    int64_t id = key_id("", ctl->argv[0]);
    const char *file = ctl->options[OPT_SECRET_FILE];
    const struct rrec_key *row;

    if (!file == !ctl_flag(ctl, OPT_GENERATE)) {
        ctl_fail(CTL_USAGE, "key add: give --secret-file or --generate, one of them");
    }
    const char *secret = file ? read_secret(file) : generate_secret();
    if (find_key(ctl, id)) {
        ctl_refuse(ctl, "key %" PRId64 " exists already", id);
    }
    row = rrec_key_insert(ctl->txn);
    rrec_key_set_id(row, id);
    rrec_key_set_secret(row, secret);
}

/* Puts the names, sorted, with blanks between.  Destroys 'names'. */
static void
put_names(struct json *o, const char *name, struct sset *names)
{
    json_object_put(o, name, json_string_create_nocopy(sset_join(names, " ", "")));
    sset_destroy(names);
}

static void
groups_of(const struct ctl *ctl, int64_t id, struct sset *names)
{
    const struct rrec_group *group;

    sset_init(names);
    RREC_GROUP_FOR_EACH (group, ctl->idl) {
        if (group->n_auth_key && group->auth_key[0] == id) {
            sset_add(names, group->name);
        }
    }
}

static void
nodes_of(const struct ctl *ctl, int64_t id, struct sset *names)
{
    const struct rrec_node_key *copy;

    sset_init(names);
    RREC_NODE_KEY_FOR_EACH(copy, ctl->idl)
    {
        if (copy->id == id) {
            sset_add(names, copy->node);
        }
    }
}

static void
key_list(struct ctl *ctl)
{
    static const char *const keys[] = {"id", "groups", "nodes", NULL};
    struct json *array = json_array_create_empty();
    const struct rrec_key *row;

    RREC_KEY_FOR_EACH (row, ctl->idl) {
        struct json *o = ctl_add_object(array);
        struct sset names;

        ctl_put_int(o, "id", row->id);
        groups_of(ctl, row->id, &names);
        put_names(o, "groups", &names);
        nodes_of(ctl, row->id, &names);
        put_names(o, "nodes", &names);
    }
    ctl_sort_by(array, "id");
    ctl_print(ctl, array, keys);
}

static void
key_del(struct ctl *ctl)
{
    int64_t id = key_id("", ctl->argv[0]);
    const struct rrec_key *row = find_key(ctl, id);
    struct sset names;

    if (!row && ctl_flag(ctl, OPT_IF_EXISTS)) {
        return;
    }
    if (!row) {
        ctl_refuse(ctl, "no key with id %" PRId64, id);
    }
    groups_of(ctl, id, &names);
    if (!sset_is_empty(&names)) {
        ctl_refuse(ctl, "group %s uses key %" PRId64, SSET_FIRST(&names), id);
    }
    sset_destroy(&names);
    nodes_of(ctl, id, &names);
    if (!sset_is_empty(&names)) {
        ctl_refuse(ctl,
                   "node %s still has key %" PRId64 ": a roll-over has not come to its end "
                   "(castctl key list)",
                   SSET_FIRST(&names), id);
    }
    sset_destroy(&names);
    rrec_key_delete(row);
}

const struct ctl_command ctl_key_commands[] = {
    {"key add", "ID", 1, 1, FLAG(OPT_SECRET_FILE) | FLAG(OPT_GENERATE), 0, key_add, NULL,
     "add a key for groups: 32 to 128 hexadecimal digits in FILE (-: standard input), or 64 random\n"
     "        ones"},
    {"key list", "", 0, 0, CTL_INTENT, 0, NULL, key_list,
     "list keys, which groups use them and which nodes have them; never their secrets"},
    {"key del", "ID", 1, 1, CTL_INTENT | FLAG(OPT_IF_EXISTS), 0, key_del, NULL,
     "delete a key that no group uses and no node has any more"},
    {.name = NULL},
};
