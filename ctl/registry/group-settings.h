/* SPDX-License-Identifier: Apache-2.0
 *
 * The settings that operators give a group: one table, from which castctl has its options, their
 * help and what it shows, and castd what it plans with.
 *
 * A new one that nodes act on is: a column in Group and in Tree_Node (rocecast.ovsschema); a field
 * of struct group_policy (lib/group-policy.h), which comes to nodes as a whole; in group-settings.c
 * a row of the table and a line in each function about rows; a line in ctl/node/show.c; and whoever
 * acts on it.  castctl takes, explains, compares and shows it without another line, and completes it;
 * tests/install wants it in the man page.
 *
 * --auth and --key are no rows of the table: they are one setting of two options, and one of them
 * names a row of table Key.
 */
#ifndef CTL_REGISTRY_GROUP_SETTINGS_H
#define CTL_REGISTRY_GROUP_SETTINGS_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/group-policy.h"
#include "lib/node-config.h"

struct rrec_group;
struct rrec_tree_node;

/* Their values in a group. */
struct group_settings {
    enum tree_mode mode;
    bool provisioned; /* packets name no receivers. */
    uint32_t mtu;
    int64_t psn; /* PSN_RANDOM: another one in each epoch. */
    struct group_policy policy;
};
#define PSN_RANDOM (-1)

/* When a setting may change. */
enum setting_change {
    SETTING_ANY_TIME,
    SETTING_NOT_STARTED, /* before an epoch's first packet. */
    SETTING_FIXED,       /* never. */
};

struct group_setting {
    const char *option;    /* castctl's, without "--". */
    const char *key;       /* where it is shown; NULL: it is not. */
    const char *otherwise; /* its value if nobody gives it; in words if that depends on others. */
    enum setting_change change;
    const char *help; /* one line. */

    size_t ofs, size; /* of its field in struct group_settings. */
    /* The words that it may be, or for a number a name, and its limits. */
    const struct words *words;
    const char *arg;
    uint64_t min, max;
    /* What else must hold, as group_setting_parse() says, and what follows from it; or NULL. */
    int (*check)(struct group_settings *, uint64_t value, char **whyp);
};

/* Ends with a setting whose option is NULL.  The time-out is before the liveness time. */
extern const struct group_setting group_settings_table[];
size_t group_settings_count(void);

/* Is it off or on? */
bool group_setting_is_switch(const struct group_setting *);
/* What usage says for its value, malloc'd: "BYTES", "off|on". */
char *group_setting_argument(const struct group_setting *);

/* Takes the value over: 0.  Or EINVAL, or ERANGE if it does not go with those of settings before it:
 * '*whyp' is a malloc'd sentence then that says what it must be. */
int group_setting_parse(const struct group_setting *, const char *, struct group_settings *,
                        char **whyp);
/* The opposite, malloc'd; NULL: it has no value. */
char *group_setting_text(const struct group_setting *, const struct group_settings *);
bool group_setting_equal(const struct group_setting *, const struct group_settings *,
                         const struct group_settings *);

/* Of a group of which nothing is said. */
struct group_settings group_settings_default(void);
/* Gives those that castctl would have refused their defaults: a row was written past it.  NULL, or a
 * malloc'd sentence about the first of them. */
char *group_settings_mend(struct group_settings *);

/* A group's row.  Columns that are empty, in a registry that has been converted, are defaults. */
void group_settings_read(const struct rrec_group *, struct group_settings *);
void group_settings_write(const struct rrec_group *, const struct group_settings *);

/* A tree's row, which brings the policy to its node.  NULL, or a malloc'd sentence that names column
 * and value. */
char *tree_policy_read(const struct rrec_tree_node *, struct group_policy *);
/* True if anything changed. */
bool tree_policy_write(const struct rrec_tree_node *, const struct group_policy *);

#endif /* ctl/registry/group-settings.h */
