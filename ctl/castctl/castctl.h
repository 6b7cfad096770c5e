/* SPDX-License-Identifier: Apache-2.0
 *
 * castctl's own structures: what a command is given and what it may use.
 */
#ifndef CTL_CASTCTL_CASTCTL_H
#define CTL_CASTCTL_CASTCTL_H 1

#include <netinet/in.h>

#include "compiler.h"
#include "ctl/registry/json.h"
#include "ctl/registry/reach.h"
#include "ctl/registry/rocecast-idl.h"
#include "lib/congestion-settings.h"
#include "lib/quantity.h"
#include "lib/words.h"
#include "openvswitch/json.h"
#include "smap.h"
#include "svec.h"

enum ctl_exit {
    CTL_OK = 0,
    CTL_USAGE = 1,       /* usage or a bad value. */
    CTL_REFUSED = 2,     /* the registry's state does not allow it. */
    CTL_UNAVAILABLE = 3, /* registry or castd unreachable, or timed out. */
    CTL_PARTIAL = 4,     /* some of what was asked for could not be had. */
};

/* Options of single commands: the name, and the argument's name or its list of words (NULL: a
 * flag).  Options of a group's settings are in ctl/registry/group-settings.c. */
#define CTL_OPTIONS                                                       \
    OPTION(ID, "id", .arg = "N")                                          \
    OPTION(ROLE, "role", .words = &node_role_words)                       \
    OPTION(CHECKED_ROLE, "role", .words = &ctl_checked_role_words)        \
    OPTION(VERIFY, "verify", .words = &ctl_verify_words)                  \
    OPTION(AGGREGATE, "aggregate", .words = &ctl_aggregate_words)         \
    OPTION(ADDRESS, "address", .arg = "ADDRESS")                          \
    OPTION(KIND, "kind", .words = &port_kind_words)                       \
    OPTION(MTU, "mtu", .arg = "BYTES")                                    \
    OPTION(AUTH, "auth", .words = &auth_choice_words)                     \
    OPTION(KEY, "key", .arg = "KEY")                                      \
    OPTION(SECRET_FILE, "secret-file", .arg = "FILE")                     \
    OPTION(GENERATE, "generate", .arg = NULL)                             \
    OPTION(HOST, "host", .arg = "HOST")                                   \
    OPTION(QPN, "qpn", .arg = "QPN")                                      \
    OPTION(RKEY, "rkey", .arg = "RKEY")                                   \
    OPTION(VA, "va", .arg = "ADDRESS")                                    \
    OPTION(LEN, "len", .arg = "BYTES")                                    \
    OPTION(PSN, "psn", .arg = "PSN")                                      \
    OPTION(KEEP, "keep", .arg = NULL)                                     \
    OPTION(EPOCH, "epoch", .arg = "EPOCH")                                \
    OPTION(LISTEN, "listen", .arg = "PORT")                               \
    OPTION(PRIVATE_DATA, "private-data", .arg = "LAYOUT")                 \
    OPTION(MEMBERS, "members", .arg = "N")                                \
    OPTION(UNTIL, "until", .arg = "EVENT")                                \
    OPTION(INTERVAL, "interval", .arg = "SECONDS")                        \
    OPTION(COUNT, "count", .arg = "N")                                    \
    OPTION(SECONDS, "seconds", .arg = "S")                                \
    OPTION(FAST_CNP, "fast-cnp", .words = &ctl_switch_words)              \
    OPTION(CNP_INTERVAL, "interval", .arg = "TIME")                       \
    OPTION(PROBE_TIMEOUT, "timeout", .arg = "TIME")                       \
    OPTION(FAST_CNP_RATE, "fast-cnp-rate", .arg = "N")                    \
    OPTION(ANY_ICRC, "any-icrc", .words = &ctl_switch_words)              \
    OPTION(RATE_CONTROL, "rate-control", .words = &rate_control_by_words) \
    OPTION(CONTROLLER, "controller", .words = &rate_controller_words)     \
    OPTION(LINE_RATE, "line-rate", .arg = "RATE")                         \
    OPTION(FLOOR, "floor", .arg = "RATE")                                 \
    OPTION(TAKE_FAST_CNP, "fast-cnp", .words = &fast_cnp_choice_words)    \
    OPTION(PATH_POLICY, "path-policy", .words = &path_policy_words)       \
    OPTION(VIA, "via", .arg = "PATH")                                     \
    OPTION(PLANE, "plane", .arg = "LABEL")                                \
    OPTION(PLANES, "planes", .arg = "LABELS")                             \
    OPTION(PROGRAMS, "programs", .arg = "PREFIXES")                       \
    OPTION(PROGRAM, "program", .arg = "PROGRAM")                          \
    OPTION(UPLINK, "uplink", .arg = "NODE")                               \
    OPTION(LIVE, "live", .arg = NULL)                                     \
    OPTION(ALL, "all", .arg = NULL)                                       \
    OPTION(BOTH, "both", .arg = NULL)                                     \
    OPTION(DOT, "dot", .arg = NULL)                                       \
    OPTION(FILE, "file", .arg = "FILE")                                   \
    OPTION(DRY_RUN, "dry-run", .arg = NULL)                               \
    OPTION(PRUNE, "prune", .arg = NULL)                                   \
    OPTION(FORCE, "force", .arg = NULL)                                   \
    OPTION(MAY_EXIST, "may-exist", .arg = NULL)                           \
    OPTION(REPLACE, "replace", .arg = NULL)                               \
    OPTION(IF_EXISTS, "if-exists", .arg = NULL)                           \
    OPTION(CLUSTER, "cluster", .arg = "ADDRESS")

enum ctl_option {
#define OPTION(ENUM, NAME, VALUE) OPT_##ENUM,
    CTL_OPTIONS
#undef OPTION
        N_CTL_OPTIONS
};

/* Words that only options have. */
enum ctl_aggregate { AGGREGATE_YES, AGGREGATE_NO };
WORDS_DECLARE(ctl_aggregate, enum ctl_aggregate);
enum ctl_verify { VERIFY_AUTO, VERIFY_ALWAYS };
WORDS_DECLARE(ctl_verify, enum ctl_verify);
extern const struct words ctl_checked_role_words; /* doctor.c. */
enum ctl_switch { SWITCH_OFF, SWITCH_ON };
WORDS_DECLARE(ctl_switch, enum ctl_switch);

enum ctl_wait { WAIT_NONE, WAIT_CASTD, WAIT_AGENTS };
WORDS_DECLARE(ctl_wait, enum ctl_wait);

struct ctl_command;
struct option;

struct ctl {
    const char *db;
    bool db_given; /* by --db. */
    struct ovsdb_idl *idl;
    struct registry_reach reach;
    struct ovsdb_idl_txn *txn; /* of commands that write. */
    bool uncertain;            /* an attempt to write it may have been done: nobody has heard. */
    enum ctl_wait wait;
    int timeout; /* seconds. */
    bool timeout_given;
    long long deadline; /* on time_msec()'s scale. */
    unsigned int seqno; /* of the IDL's content that ctl_next_news() has told of. */
    bool lost;          /* it has told that the registry is lost. */
    bool json;
    bool abandon;   /* 'write' has found that nothing is to be written. */
    bool all_nodes; /* 'write' has changed what agents read as it is. */
    const struct ctl_command *command;
    int argc; /* the command's arguments, without its name. */
    char **argv;
    struct svec key_options; /* those about ssl: that were given, for tools that castctl runs. */
    const char *options[N_CTL_OPTIONS]; /* NULL: not given; "" for a flag. */
    struct smap settings;               /* settings of a group that are given, by option. */
};

/* In a command's 'options': it needs no registry, and has 'read' only. */
#define CTL_LOCAL    (1ull << 63)
/* Likewise: it takes all settings of a group. */
#define CTL_SETTINGS (1ull << 62)
/* Likewise: it takes the settings of a group that may change. */
#define CTL_CHANGES  (1ull << 61)
/* Likewise: it looks at what nodes are told.  Other commands do not fetch that: with many groups it
 * is most of the registry. */
#define CTL_INTENT   (1ull << 60)

/* Likewise: it goes on for as long as it is let, without the registry, too; with -j it prints an
 * object a line, also of errors. */
#define CTL_STREAM   (1ull << 59)

/* Likewise: its arguments are a group and a host, and it looks at these two, at memberships of the
 * host, and at nothing else. */
#define CTL_ONE_HOST (1ull << 58)

/* Likewise: without arguments and options it only reads. */
#define CTL_BARE     (1ull << 57)

BUILD_ASSERT_DECL(N_CTL_OPTIONS <= 57); /* the others are those above. */

/* An option in a command's 'options' or 'required'. */
#define FLAG(OPTION) (1ull << (OPTION))

struct ctl_command {
    const char *name; /* one or two words. */
    const char *args; /* for the usage. */
    int min_args, max_args;
    uint64_t options;  /* FLAG(OPT_x) of those that it takes. */
    uint64_t required; /* FLAG(OPT_x) of those that must be given. */
    /* Checks and fills ctl->txn, maybe several times.  NULL: the command only reads. */
    void (*write)(struct ctl *);
    /* Runs when what 'write' wrote, if anything, has been taken up.  NULL: nothing to do then. */
    void (*read)(struct ctl *);
    const char *help;
};

/* Each ends with a command whose name is NULL. */
extern const struct ctl_command ctl_topology_commands[];
extern const struct ctl_command ctl_impair_commands[];
extern const struct ctl_command ctl_congestion_commands[];
extern const struct ctl_command ctl_key_commands[];
extern const struct ctl_command ctl_group_commands[];
extern const struct ctl_command ctl_member_commands[];
extern const struct ctl_command ctl_connection_commands[];
extern const struct ctl_command ctl_path_commands[];
extern const struct ctl_command ctl_path_rule_commands[];
extern const struct ctl_command ctl_path_health_commands[];
extern const struct ctl_command ctl_fault_commands[];
extern const struct ctl_command ctl_tree_commands[];
extern const struct ctl_command ctl_stats_commands[];
extern const struct ctl_command ctl_metrics_commands[];
extern const struct ctl_command ctl_watch_commands[];
extern const struct ctl_command ctl_top_commands[];
extern const struct ctl_command ctl_packet_commands[];
extern const struct ctl_command ctl_doctor_commands[];
extern const struct ctl_command ctl_apply_commands[];
extern const struct ctl_command ctl_registry_commands[];

/* fail.c. */
/* Prints "castctl: ..." and exits; nothing has been written then. */
void ctl_fail(enum ctl_exit, const char *format, ...) OVS_PRINTF_FORMAT(2, 3) OVS_NO_RETURN;
/* Likewise, with lines of our own behind it. */
void ctl_fail_with_list(enum ctl_exit, const char *list, const char *format, ...)
    OVS_PRINTF_FORMAT(3, 4) OVS_NO_RETURN;
/* Likewise, and goes on. */
void ctl_warn(const char *format, ...) OVS_PRINTF_FORMAT(1, 2);
/* As ctl_fail(), with CTL_REFUSED and the command's name. */
void ctl_refuse(const struct ctl *, const char *format, ...) OVS_PRINTF_FORMAT(2, 3) OVS_NO_RETURN;

/* From now on failures are JSON, too. */
void ctl_fail_as_json(void);
/* If they are, they have a line each. */
void ctl_fail_in_lines(void);
/* What failures are about from now on, and what was likely meant instead of what is wrong; NULL: nothing is known. */
void ctl_fail_about(const char *command);
void ctl_fail_suggest(const char *suggestion);
/* A place in a file that failures are about. */
struct ctl_place {
    const char *file;
    size_t line, column; /* 0: the file as a whole. */
    const char *option;  /* failures whose sentence has "--OPTION" are about this place; or NULL. */
    char *path;          /* what stands there: "group g"; or NULL. */
};
/* Failures are about 'place' from now on, or about the one of 'n' others that has the option which they name; NULL:
 * about no file.  The places must last, or castctl fail before they are gone. */
void ctl_fail_at(const struct ctl_place *place, const struct ctl_place *others, size_t n);
/* Fails over what getopt_long() has just answered: 'c' is ':' or '?', and its short options began
 * with ':'.  'command' is the command that the options are of; NULL: none. */
void ctl_fail_over_option(int c, char *const argv[], const struct option *, const char *command)
    OVS_NO_RETURN;

/* castctl.c: has another command check and write into the same transaction.  It is given these arguments, and options by
 * name, "" for a flag. */
void ctl_run_within(struct ctl *, const char *command, const struct svec *args,
                    const struct smap *options);

/* Values of options and arguments.  Bad ones are usage errors that name option, value and range.
 * Values from a list of words were checked before the command ran. */
unsigned int ctl_option_word(const struct ctl *, enum ctl_option, unsigned int otherwise);
uint64_t ctl_option_number(const struct ctl *, enum ctl_option, uint64_t min, uint64_t max,
                           uint64_t otherwise);
uint64_t ctl_option_quantity(const struct ctl *, enum ctl_option, enum quantity, uint64_t min,
                             uint64_t max, uint64_t otherwise);
bool ctl_flag(const struct ctl *, enum ctl_option);
/* Its name, without "--". */
const char *ctl_option_name(enum ctl_option);
/* Has the command no arguments, and none of its options? */
bool ctl_is_bare(const struct ctl *);
/* Ends with a usage error unless one of the command's options is given. */
void ctl_check_any_option(const struct ctl *);
void ctl_check_name(const char *what, const char *name);

/* Rows by name, besides those of ctl/registry/request.h; the require_ ones fail with CTL_REFUSED if
 * there is none. */
const struct rrec_node *ctl_find_node(const struct ctl *, const char *name);
const struct rrec_node *ctl_require_node(const struct ctl *, const char *name);
const struct rrec_host *ctl_require_host(const struct ctl *, const char *name);
const struct rrec_group *ctl_require_group(const struct ctl *, const char *name);
/* The node at the other end of a host's first link; NULL: there is none. */
const struct rrec_node *ctl_node_of_host(const struct ctl *, const char *host);
/* A node's port, for commands with CTL_INTENT; NULL: it has none, or nobody knows the node. */
const struct rrec_port *ctl_port_to(const struct rrec_node *, const char *peer);
const struct rrec_port *ctl_port_with(const struct rrec_node *, int64_t number);

/* impair.c: the only link between these two ends, "NAME" or "NAME:INTERFACE"; refuses if there is
 * none.  '*forward': 'from' is its a, and 'to' its b. */
const struct rrec_link *
ctl_require_link(const struct ctl *, const char *from, const char *to, bool *forward);

/* db.c: runs ctl->command against the registry. */
void ctl_run(struct ctl *);
/* Waits for a change in the registry.  At the deadline: CTL_UNAVAILABLE and 'waiting_for'. */
void ctl_wait_for_change(struct ctl *, const char *waiting_for);
/* For commands with CTL_STREAM: waits until the registry has another content (NEWS_CHANGED), is
 * lost or is back, with whatever content; NEWS_NONE: the deadline has passed.  While it is lost its
 * last content stays. */
enum ctl_news { NEWS_NONE, NEWS_CHANGED, NEWS_LOST, NEWS_BACK };
enum ctl_news ctl_next_news(struct ctl *);

/* Likewise: ends with CTL_USAGE unless ctl->db is a registry's address, with keys if it needs any. */
void ctl_check_db(const struct ctl *);

/* agent.c: runs a command of the control socket at a node's agent; NULL ends 'args'.  CTL_OK:
 * *answerp is the agent's answer.  CTL_REFUSED: *answerp is the error that the agent answered.
 * CTL_UNAVAILABLE: *answerp says what went wrong.  The caller frees *answerp. */
enum ctl_exit ctl_agent_run(const struct ctl *, const struct rrec_node *, const char *command,
                            const char *const args[], char **answerp);
/* Likewise, at the daemon whose control socket that is. */
enum ctl_exit ctl_control_run(const struct ctl *, const char *control, const char *command,
                              const char *const args[], char **answerp);
/* The agent's answer with -j as JSON.  NULL: there is none, for the reason in *whyp, which the
 * caller frees. */
struct json *
ctl_agent_try(const struct ctl *, const struct rrec_node *, const char *command, char **whyp);
/* Likewise; why there is none is a line on standard error. */
struct json *ctl_agent_ask(const struct ctl *, const struct rrec_node *, const char *command);
/* Likewise, of the castd whose control socket is at its usual place. */
struct json *ctl_castd_ask(const struct ctl *, const char *command);
/* Ends with CTL_PARTIAL if 'partial'. */
void ctl_finish(bool partial);

/* print.c: prints 'json', which it takes over, as JSON or as text: an object as lines, an array of
 * objects as a table.  'keys', ended by NULL, are what the text shows, in that order.  They may be
 * NULL where the output is JSON. */
void ctl_print(const struct ctl *, struct json *json, const char *const keys[]);
/* Prints one line of text, in which control characters are escapes. */
void ctl_print_line(const char *format, ...) OVS_PRINTF_FORMAT(1, 2);
/* Likewise, the lines of a text; JSON stays JSON. */
void ctl_print_lines(char *text);
/* Prints 'json', which it takes over, on one line. */
void ctl_print_json_line(struct json *json);
/* Prints an array of objects, which is printable (ctl_json_printable()), as a table; nothing if it
 * is empty. */
void ctl_print_table(const struct json *array, const char *const keys[], int indent);
/* The time of day, "2026-11-22T22:01:03.123Z". */
void ctl_put_time(struct json *object, const char *name);
/* Likewise, at this time; null for 0. */
void ctl_put_time_at(struct json *object, const char *name, int64_t posix_msec);
void ctl_put_bool(struct json *object, const char *name, bool value);
/* Put null for NULL. */
void ctl_put_int_or_null(struct json *object, const char *name, const int64_t *value);
void ctl_put_string_or_null(struct json *object, const char *name, const char *value);
void ctl_put_copy_or_null(struct json *object, const char *name, const struct json *value);
/* A new object at the array's end. */
struct json *ctl_add_object(struct json *array);
/* Sorts an array of objects by what each has under 'key', as text: r9 before r10. */
void ctl_sort_by(struct json *array, const char *key);

/* key.c. */
/* The value of --auth and --key: bad ones are usage errors, a key that is not there is refused. */
struct auth_option {
    bool given;
    unsigned int tlvs; /* AUTH_MT, AUTH_HMAC. */
    int64_t key;
    size_t n_key;
};
struct auth_option ctl_option_auth(const struct ctl *, const struct rrec_group *);

/* stats.c: has the node a part in the group, of whatever epoch?  NULL: in any. */
bool ctl_has_tree_of(const struct ctl *, const struct rrec_node *, const struct rrec_group *);

/* tree.c: is it a part of the group's tree, in this epoch? */
bool ctl_is_tree_of(const struct rrec_tree_node *, const struct rrec_group *);
/* The node that has the tree; NULL: none does. */
const struct rrec_node *ctl_node_of_tree(const struct ctl *, const struct rrec_tree_node *);

/* connection.c: what has become of a program that is to be connected, as far as it is no member;
 * malloc'd. */
char *ctl_listener_status(const struct ctl *, const struct rrec_listener *);

/* group.c. */
/* A group's members, and programs that listen and are no members yet, by host. */
struct json *ctl_members_to_json(const struct ctl *, const struct rrec_group *);
/* Puts a group's state and status, how many members are active and how many should be, and those
 * that are lacking.  In text the state of a degraded group has the two numbers. */
void ctl_put_group_state(const struct ctl *, struct json *object, const struct rrec_group *);

#endif /* ctl/castctl/castctl.h */
