/* SPDX-License-Identifier: Apache-2.0
 *
 * The settings that operators give a group, in one table.  castctl takes its options, their help
 * and what it shows from the table; castd plans with the settings.
 *
 * A new setting that nodes act on needs:
 *
 *   - a column in Group and in Tree_Node (rocecast.ovsschema);
 *   - a field of struct group_policy (lib/group-policy.h), which comes to nodes as a whole;
 *   - in group-settings.c a row of the table, and a line in each function about rows;
 *   - a line in ctl/node/show.c;
 *   - the code that acts on it;
 *   - a place in the man page, which tests/install checks.
 *
 * castctl needs no other line to take, explain, compare, show and complete it.
 *
 * --auth and --key are not in the table: the two options are one setting, and --key names a row of
 * table Key.
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
struct smap;

/* The values of the settings in a group. */
struct group_settings {
    enum tree_mode mode;
    bool provisioned; /* packets name no receivers. */
    uint32_t mtu;
    int64_t psn;           /* PSN_RANDOM: another one in each epoch. */
    bool connect;          /* its Proxy Address takes connections of RDMA-CM programs. */
    uint32_t connect_port; /* ... at this service port. */
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
    const char *implied; /* its value if only the option is given; NULL: a value must be given. */
    const char *arg;
    uint64_t min, max;
    /* What else must hold, as group_setting_parse() says, and what follows from it; or NULL. */
    int (*check)(struct group_settings *, uint64_t value, char **whyp);
    /* The most that it may be, if that depends on others; or NULL. */
    uint64_t (*max_for)(const struct group_settings *);
};

/* Ends with a setting whose option is NULL.  The time-out comes before the liveness time. */
extern const struct group_setting group_settings_table[];
size_t group_settings_count(void);

/* Is it off or on? */
bool group_setting_is_switch(const struct group_setting *);
/* What usage says for its value, malloc'd: "BYTES", "off|on". */
char *group_setting_argument(const struct group_setting *);

/* Parses the value into the settings.  Returns 0 or an errno; '*whyp' then says in a malloc'd
 * sentence what the value must be.  ERANGE: it contradicts settings before it in the table.
 * EINVAL: it is wrong otherwise. */
int group_setting_parse(const struct group_setting *, const char *, struct group_settings *,
                        char **whyp);
/* The opposite, malloc'd; NULL: it has no value. */
char *group_setting_text(const struct group_setting *, const struct group_settings *);
bool group_setting_equal(const struct group_setting *, const struct group_settings *,
                         const struct group_settings *);

/* Parses all that is given, texts by option, in the table's order.  Returns as
 * group_setting_parse(); '*wrongp' is the setting that the sentence is about. */
int group_settings_take(struct group_settings *, const struct smap *given,
                        const struct group_setting **wrongp, char **whyp);
/* The first setting that the existing group has not as given, or, if it never changes, not as
 * wanted; NULL: there is none. */
const struct group_setting *
group_settings_find_other(const struct rrec_group *, const struct group_settings *wanted,
                          const struct smap *given);

/* The settings of a group for which none is given. */
struct group_settings group_settings_default(void);
/* Replaces values that castctl would have refused by their defaults; a row may have been written
 * past castctl.  Returns NULL, or a malloc'd sentence about the first value replaced. */
char *group_settings_mend(struct group_settings *);

/* Reads a group's row.  Empty columns, as in a converted registry, read as defaults. */
void group_settings_read(const struct rrec_group *, struct group_settings *);
/* Writes them to a group's row. */
void group_settings_write(const struct rrec_group *, const struct group_settings *);

/* Reads the policy from a tree's row, which brings it to its node.  Returns NULL, or a malloc'd
 * sentence that names column and value. */
char *tree_policy_read(const struct rrec_tree_node *, struct group_policy *);
/* Writes the policy to a tree's row.  True if anything changed. */
bool tree_policy_write(const struct rrec_tree_node *, const struct group_policy *);

#endif /* ctl/registry/group-settings.h */
