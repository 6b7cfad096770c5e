/* SPDX-License-Identifier: Apache-2.0
 *
 * What operators have said of the network, as objects with settings that are texts: as the registry has it, or as a file
 * of "castctl apply" has it (docs/castctl.md).
 *
 * A setting's name is that of the option which gives it, and its text is one that the option takes.
 */
#ifndef CTL_CASTCTL_CONFIG_H
#define CTL_CASTCTL_CONFIG_H 1

#include "ctl/castctl/castctl.h"
#include "openvswitch/shash.h"

enum config_family { CONFIG_NODE, CONFIG_HOST, CONFIG_LINK, CONFIG_GROUP, CONFIG_MEMBER };
#define N_CONFIG_FAMILIES (CONFIG_MEMBER + 1)
/* "node", and what a file calls a list of them: "nodes". */
struct config_family_row {
    const char *one, *many;
};
extern const struct config_family_row config_families[N_CONFIG_FAMILIES];

struct config_setting {
    char *name, *value;
    size_t line, column; /* in the file. */
};

struct config_object {
    enum config_family family;
    /* What it is called; of a link its ends, "NAME:INTERFACE", of a member its group and its host. */
    char *names[2];
    struct config_setting *settings;
    size_t n_settings, allocated_settings;
    size_t line, column; /* in the file. */
};

struct config {
    struct config_object *objects; /* by family, and in it by name, or as in the file. */
    size_t n, allocated;
    struct shash by_name; /* of indexes, plus 1, by config_key(). */
};

void config_init(struct config *);
void config_uninit(struct config *);
/* A new object without settings; 'second' may be NULL.  The next one invalidates the pointer. */
struct config_object *
config_add(struct config *, enum config_family, const char *first, const char *second);
/* Adds a setting, whose place in the file is that of its object; NULL as value adds nothing. */
void config_set(struct config_object *, const char *name, const char *value);
/* NULL: it has none. */
const char *config_get(const struct config_object *, const char *name);
/* The object of the family with this name (config_name()); NULL: there is none. */
const struct config_object *
config_find(const struct config *, enum config_family, const char *name);
/* What it is called in messages, two names with a space between them; malloc'd. */
char *config_name(const struct config_object *);

/* What may be said of objects of a family: names of settings, ended by NULL. */
const char *const *config_settings(enum config_family);

/* Reads the registry, with what the transaction has changed so far. */
void config_read(const struct ctl *, struct config *);
/* Prints it as a file: YAML, or JSON, which is YAML, too. */
void config_print(const struct ctl *, const struct config *);

/* What is other in 'after': an array of objects with "change" (add, change, remove), "family", "name" and, for each setting
 * of which there is something to say, "setting", "before" and "after". */
struct json *config_changes(const struct config *before, const struct config *after);
/* Prints them. */
void config_print_changes(const struct ctl *, const struct json *changes, bool dry_run);

#endif /* ctl/castctl/config.h */
