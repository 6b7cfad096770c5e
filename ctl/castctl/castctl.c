/* SPDX-License-Identifier: Apache-2.0
 *
 * castctl: the command line.
 */
#include <config.h>

#include "ctl/castctl/castctl.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "command-line.h"
#include "ctl/process/daemon-common.h"
#include "ctl/process/privileges.h"
#include "ctl/registry/group-settings.h"
#include "ctl/registry/values.h"
#include "fatal-signal.h"
#include "lib/node-config.h"
#include "lib/printable.h"
#include "lib/spelling.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/vlog.h"
#include "ovs-thread.h"
#include "stream-ssl.h"
#include "svec.h"
#include "timeval.h"
#include "util.h"
#include "version.h"

#define DEFAULT_TIMEOUT 30
#define MAX_TIMEOUT     86400
#define SYNOPSIS_WIDTH  28 /* of a command with its arguments, in a list of verbs. */

static const struct ctl_command *const command_tables[] = {
    ctl_topology_commands,    ctl_impair_commands,   ctl_congestion_commands,
    ctl_group_commands,       ctl_key_commands,      ctl_member_commands,
    ctl_connection_commands,  ctl_path_commands,     ctl_path_rule_commands,
    ctl_path_health_commands, ctl_fault_commands,    ctl_tree_commands,
    ctl_stats_commands,       ctl_metrics_commands,  ctl_watch_commands,
    ctl_top_commands,         ctl_packet_commands,   ctl_doctor_commands,
    ctl_apply_commands,       ctl_registry_commands,
};

static const struct {
    const char *name;
    const char *arg;
    const struct words *words;
} ctl_options[] = {
#define OPTION(ENUM, NAME, VALUE) {.name = NAME, VALUE},
    CTL_OPTIONS
#undef OPTION
};

static const char *const aggregates[] = {[AGGREGATE_YES] = "yes", [AGGREGATE_NO] = "no"};
WORDS_DEFINE(ctl_aggregate, enum ctl_aggregate, aggregates);

static const char *const verifies[] = {[VERIFY_AUTO] = "auto", [VERIFY_ALWAYS] = "always"};
WORDS_DEFINE(ctl_verify, enum ctl_verify, verifies);

static const char *const switches[] = {[SWITCH_OFF] = "off", [SWITCH_ON] = "on"};
WORDS_DEFINE(ctl_switch, enum ctl_switch, switches);

static const char *const waits[] = {
    [WAIT_NONE] = "none", [WAIT_CASTD] = "castd", [WAIT_AGENTS] = "agents"};
WORDS_DEFINE(ctl_wait, enum ctl_wait, waits);

uint64_t
ctl_option_number(const struct ctl *ctl, enum ctl_option option, uint64_t min, uint64_t max,
                  uint64_t otherwise)
{
    uint64_t value;

    if (!ctl->options[option]) {
        return otherwise;
    }
    if (!number_parse(ctl->options[option], min, max, &value)) {
        ctl_fail(CTL_USAGE, "--%s %s: must be %" PRIu64 "..%" PRIu64, ctl_options[option].name,
                 ctl->options[option], min, max);
    }
    return value;
}

uint64_t
ctl_option_quantity(const struct ctl *ctl, enum ctl_option option, enum quantity quantity,
                    uint64_t min, uint64_t max, uint64_t otherwise)
{
    const char *text = ctl->options[option];
    uint64_t value;

    if (!text) {
        return otherwise;
    }
    if (!quantity_parse(quantity, text, &value)) {
        ctl_fail(CTL_USAGE, "--%s %s: must be %s", ctl_options[option].name, text,
                 quantity_hint(quantity));
    }
    if (value < min || value > max) {
        char low[QUANTITY_SIZE], high[QUANTITY_SIZE];

        quantity_format(quantity, min, low, sizeof low);
        quantity_format(quantity, max, high, sizeof high);
        ctl_fail(CTL_USAGE, "--%s %s: must be %s to %s", ctl_options[option].name, text, low, high);
    }
    return value;
}

unsigned int
ctl_option_word(const struct ctl *ctl, enum ctl_option option, unsigned int otherwise)
{
    unsigned int value = otherwise;

    if (ctl->options[option]) {
        words_parse(ctl_options[option].words, ctl->options[option], &value);
    }
    return value;
}

bool
ctl_flag(const struct ctl *ctl, enum ctl_option option)
{
    return ctl->options[option] != NULL;
}

const char *
ctl_option_name(enum ctl_option option)
{
    return ctl_options[option].name;
}

bool
ctl_is_bare(const struct ctl *ctl)
{
    for (int i = 0; i < N_CTL_OPTIONS; i++) {
        if (ctl->options[i]) {
            return false;
        }
    }
    return !ctl->argc;
}

void
ctl_check_any_option(const struct ctl *ctl)
{
    for (int i = 0; i < N_CTL_OPTIONS; i++) {
        if (ctl->options[i] && i != OPT_FORCE) {
            return;
        }
    }
    ctl_fail(CTL_USAGE, "%s: nothing to set (castctl %s --help)", ctl->command->name,
             ctl->command->name);
}

void
ctl_check_name(const char *what, const char *name)
{
    if (!name_is_valid(name)) {
        ctl_fail(CTL_USAGE, "%s '%s': " NAME_RULE, what, name);
    }
}

/*
 * Help.
 */

/* An option's argument as help shows it, malloc'd; "" for a flag. */
static char *
argument_of(enum ctl_option option)
{
    const struct words *words = ctl_options[option].words;
    const char *arg = ctl_options[option].arg;

    return words ? words_join(words, WORDS_ALL, "|", "|") : xstrdup(arg ? arg : "");
}

/* Does the command take this setting of a group? */
static bool
takes(const struct ctl_command *cmd, const struct group_setting *s)
{
    return cmd->options & CTL_SETTINGS
           || (cmd->options & CTL_CHANGES && s->change != SETTING_FIXED);
}

static void
print_setting(const struct group_setting *s, bool with_default)
{
    printf("          --%-9s  %s", s->option, s->help);
    if (with_default) {
        printf(" (default %s)", s->otherwise);
    } else if (s->change == SETTING_NOT_STARTED) {
        printf(" (only before an epoch's first packet)");
    }
    putchar('\n');
}

static void
print_usage_of(const struct ctl_command *cmd)
{
    printf("  %s%s%s", cmd->name, cmd->args[0] ? " " : "", cmd->args);
    for (const struct group_setting *s = group_settings_table; s->option; s++) {
        if (takes(cmd, s)) {
            char *arg = group_setting_argument(s);

            printf(s->implied ? " [--%s[=%s]]" : " [--%s %s]", s->option, arg);
            free(arg);
        }
    }
    for (int i = 0; i < N_CTL_OPTIONS; i++) {
        if (cmd->options & 1ull << i) {
            bool required = cmd->required & 1ull << i;
            char *arg = argument_of((enum ctl_option) i);

            printf(" %s--%s%s%s%s", required ? "" : "[", ctl_options[i].name, arg[0] ? " " : "",
                   arg, required ? "" : "]");
            free(arg);
        }
    }
    printf("\n        %s\n", cmd->help);
    for (const struct group_setting *s = group_settings_table; s->option; s++) {
        if (takes(cmd, s)) {
            print_setting(s, cmd->options & CTL_SETTINGS);
        }
    }
}

/* Does a command's name begin with 's'? */
static bool
is_topic(const char *s)
{
    for (size_t i = 0; i < ARRAY_SIZE(command_tables); i++) {
        for (const struct ctl_command *c = command_tables[i]; c->name; c++) {
            if (!strncmp(c->name, s, strlen(s))) {
                return true;
            }
        }
    }
    return false;
}

/* Help with the commands that begin with 'topic', or with all. */
static void OVS_NO_RETURN
usage(const char *topic)
{
    if (topic && !is_topic(topic)) {
        ctl_fail(CTL_USAGE, "no command begins with '%s' (castctl --help)", topic);
    }
    printf("castctl: says what rocecast is to do, and shows what it does\n"
           "usage: castctl [OPTIONS] COMMAND [ARGUMENTS] [OPTIONS]\n\n");
    for (size_t i = 0; i < ARRAY_SIZE(command_tables); i++) {
        for (const struct ctl_command *c = command_tables[i]; c->name; c++) {
            if (!topic || !strncmp(c->name, topic, strlen(topic))) {
                print_usage_of(c);
            }
        }
    }
    printf("\noptions:\n"
           "  --db=REMOTE          registry (default: $ROCECAST_DB, or unix:%s/db.sock)\n"
           "  --wait=%s\n"
           "                       until castd (default) has taken it up, agents have applied it,\n"
           "                       or none\n"
           "  --timeout=SECONDS    for everything together (default %d)\n"
           "  -j, --json           JSON instead of text, also of errors\n"
           "  --private-key=FILE, --certificate=FILE, --ca-cert=FILE, --bootstrap-ca-cert=FILE\n"
           "                       for ssl: remotes\n"
           "  -v, --verbose[=SPEC] log to standard error\n"
           "  -h, --help           this text; 'castctl group --help' is about groups only\n"
           "  -V, --version        version\n"
           "Numbers are decimal or 0x...\n"
           "Exit status: 0 done, 1 usage or bad value, 2 refused, 3 registry or castd unreachable\n"
           "or timed out, 4 partial.\n",
           rocecast_rundir(), words_join(&ctl_wait_words, WORDS_ALL, "|", "|"), DEFAULT_TIMEOUT);
    exit(CTL_OK);
}

/*
 * The command line.
 */

enum {
    GLOBAL_DB = 0x1000,
    GLOBAL_WAIT,
    GLOBAL_TIMEOUT,
    GLOBAL_PEER_CA_CERT,
    GLOBAL_BOOTSTRAP_CA_CERT,
    VLOG_OPTION_ENUMS,
    SSL_OPTION_ENUMS,
};
/* Added to options of commands and to settings of groups, so that their numbers differ. */
#define COMMAND_OPTION_BASE 0x2000
#define SETTING_BASE        0x3000

#define SHORT_OPTIONS       ":jhVv::p:c:C:" /* ':': ctl_fail_over_option() says what is wrong. */

static const struct option global_options[] = {
    {"db", required_argument, NULL, GLOBAL_DB},
    {"wait", required_argument, NULL, GLOBAL_WAIT},
    {"timeout", required_argument, NULL, GLOBAL_TIMEOUT},
    {"json", no_argument, NULL, 'j'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    VLOG_LONG_OPTIONS,
    STREAM_SSL_LONG_OPTIONS,
    {"peer-ca-cert", required_argument, NULL, GLOBAL_PEER_CA_CERT},
    {"bootstrap-ca-cert", required_argument, NULL, GLOBAL_BOOTSTRAP_CA_CERT},
    {NULL, 0, NULL, 0},
};

/* Ends with a usage error if 'text' is none of the words that --'option' may have. */
static void
check_word(const char *option, const struct words *words, const char *text)
{
    if (!words_parse(words, text, &(unsigned int){0})) {
        ctl_fail(CTL_USAGE, "--%s %s: must be %s", option, text,
                 words_join(words, WORDS_ALL, ", ", " or "));
    }
}

static void
set_wait(struct ctl *ctl, const char *whom)
{
    check_word("wait", &ctl_wait_words, whom);
    ctl_wait_parse(whom, &ctl->wait);
}

static void
set_timeout(struct ctl *ctl, const char *seconds)
{
    uint64_t value;

    if (!number_parse(seconds, 1, MAX_TIMEOUT, &value)) {
        ctl_fail(CTL_USAGE, "--timeout %s: must be 1..%d seconds", seconds, MAX_TIMEOUT);
    }
    ctl->timeout = (int) value;
    ctl->timeout_given = true;
}

/* Refuses a file that cannot be read: otherwise only the log would say so, when a connection needs
 * the file. */
static void
check_readable(int c, const char *file)
{
    const char *option = c == 'p'                   ? "private-key"
                         : c == 'c'                 ? "certificate"
                         : c == 'C'                 ? "ca-cert"
                         : c == GLOBAL_PEER_CA_CERT ? "peer-ca-cert"
                                                    : NULL;

    if (option && access(file, R_OK)) {
        ctl_fail(CTL_USAGE, "--%s %s: %s", option, file, ovs_strerror(errno));
    }
}

/* Refuses a log level that makes no sense in castctl's own way. */
static void
check_verbosity(int c, const char *spec)
{
    char *why = c == 'v' && spec ? vlog_set_levels_from_string(spec) : NULL;

    if (why) {
        ctl_fail(CTL_USAGE, "--verbose %s: %s", spec, why);
    }
}

/* Remembers an option about ssl:, if it is one that tools have, too. */
static void
keep_key_option(struct ctl *ctl, int c)
{
    switch (c) {
        STREAM_SSL_CASES
    case GLOBAL_BOOTSTRAP_CA_CERT:
        for (const struct option *o = global_options; o->name; o++) {
            if (o->val == c) {
                svec_add_nocopy(&ctl->key_options, xasprintf("--%s=%s", o->name, optarg));
            }
        }
    }
}

/* One option.  'topic' is the command so far, for --help. */
static void
handle_option(struct ctl *ctl, int c, const char *topic)
{
    if (c >= SETTING_BASE) {
        const struct group_setting *s = &group_settings_table[c - SETTING_BASE];

        smap_replace(&ctl->settings, s->option, optarg ? optarg : s->implied);
        return;
    }
    if (c >= COMMAND_OPTION_BASE) {
        ctl->options[c - COMMAND_OPTION_BASE] = optarg ? optarg : "";
        return;
    }
    check_readable(c, optarg);
    check_verbosity(c, optarg);
    keep_key_option(ctl, c);
    switch (c) {
    case GLOBAL_DB:
        ctl->db = optarg;
        ctl->db_given = true;
        break;
    case GLOBAL_WAIT: set_wait(ctl, optarg); break;
    case GLOBAL_TIMEOUT: set_timeout(ctl, optarg); break;
    case 'j': ctl->json = true; break;
    case 'f': ctl->options[OPT_FILE] = optarg; break; /* of commands that have --file. */
    case 'h': usage(topic);
    case 'V':
        printf(ROCECAST_VERSION_LINE, program_name);
        exit(CTL_OK);

        VLOG_OPTION_HANDLERS
        STREAM_SSL_OPTION_HANDLERS

    case GLOBAL_PEER_CA_CERT: stream_ssl_set_peer_ca_cert_file(optarg); break;
    case GLOBAL_BOOTSTRAP_CA_CERT: stream_ssl_set_ca_cert_file(optarg, true); break;
    default: OVS_NOT_REACHED();
    }
}

/* Options before the command: stops at the first word. */
static int
parse_global_options(struct ctl *ctl, int argc, char *argv[])
{
    int c;

    while ((c = getopt_long(argc, argv, "+" SHORT_OPTIONS, global_options, NULL)) != -1) {
        if (c == '?' || c == ':') {
            ctl_fail_over_option(c, argv, global_options, NULL);
        }
        handle_option(ctl, c, NULL);
    }
    return optind;
}

/* A command's options for getopt, malloc'd.  Its own options hide global ones of the same name. */
static struct option *
known_options(const struct ctl_command *cmd)
{
    struct option *options = xcalloc(
        N_CTL_OPTIONS + group_settings_count() + ARRAY_SIZE(global_options), sizeof *options);
    size_t n = 0;

    for (size_t i = 0; group_settings_table[i].option; i++) {
        const struct group_setting *s = &group_settings_table[i];

        if (takes(cmd, s)) {
            options[n++] =
                (struct option){s->option, s->implied ? optional_argument : required_argument, NULL,
                                SETTING_BASE + (int) i};
        }
    }
    for (int i = 0; i < N_CTL_OPTIONS; i++) {
        if (cmd->options & 1ull << i) {
            bool has_argument = ctl_options[i].arg || ctl_options[i].words;

            options[n++] =
                (struct option){ctl_options[i].name, has_argument ? required_argument : no_argument,
                                NULL, COMMAND_OPTION_BASE + i};
        }
    }
    for (const struct option *o = global_options; o->name; o++) {
        bool hidden = false;

        for (size_t j = 0; j < n; j++) {
            hidden |= options[j].val >= COMMAND_OPTION_BASE && !strcmp(options[j].name, o->name);
        }
        if (!hidden) {
            options[n++] = *o;
        }
    }
    return options;
}

/* Options and arguments after the command's name. */
static void
parse_command_options(struct ctl *ctl, int argc, char *argv[])
{
    const struct ctl_command *cmd = ctl->command;
    struct option *options = known_options(cmd);
    const char *letters = cmd->options & FLAG(OPT_FILE) ? SHORT_OPTIONS "f:" : SHORT_OPTIONS;
    int c;

    optind = 0; /* getopt starts over. */
    while ((c = getopt_long(argc, argv, letters, options, NULL)) != -1) {
        if (c == '?' || c == ':') {
            ctl_fail_over_option(c, argv, options, cmd->name);
        }
        handle_option(ctl, c, cmd->name);
    }
    free(options);
    ctl->argc = argc - optind;
    ctl->argv = argv + optind;
    if (ctl->argc < cmd->min_args || ctl->argc > cmd->max_args) {
        ctl_fail(CTL_USAGE, "%s: %s argument%s: %s%s%s (castctl %s --help)", cmd->name,
                 ctl->argc < cmd->min_args ? "missing" : "unexpected",
                 ctl->argc < cmd->min_args ? "" : xasprintf(" '%s'", ctl->argv[cmd->max_args]),
                 cmd->name, cmd->args[0] ? " " : "", cmd->args, cmd->name);
    }
    for (int i = 0; i < N_CTL_OPTIONS; i++) {
        if (cmd->required & 1ull << i && !ctl->options[i]) {
            ctl_fail(CTL_USAGE, "%s: --%s is missing (castctl %s --help)", cmd->name,
                     ctl_options[i].name, cmd->name);
        }
    }
    for (int i = 0; i < N_CTL_OPTIONS; i++) {
        if (ctl->options[i] && ctl_options[i].words) {
            check_word(ctl_options[i].name, ctl_options[i].words, ctl->options[i]);
        }
    }
    for (const struct group_setting *s = group_settings_table; s->option; s++) {
        const char *text = smap_get(&ctl->settings, s->option);

        if (text && s->words) {
            check_word(s->option, s->words, text);
        }
    }
}

/* Is it a command's option that takes no argument? */
static bool
is_flag(const char *name)
{
    for (int i = 0; i < N_CTL_OPTIONS; i++) {
        if (!strcmp(ctl_options[i].name, name)) {
            return !ctl_options[i].arg && !ctl_options[i].words;
        }
    }
    return false;
}

/* Finds the command whose words argv[] starts with, *n_words of them. */
static const struct ctl_command *
find_command(int argc, char *argv[], int *n_words)
{
    for (size_t i = 0; i < ARRAY_SIZE(command_tables); i++) {
        for (const struct ctl_command *c = command_tables[i]; c->name; c++) {
            size_t first = strcspn(c->name, " ");

            if (argc < 1 || strlen(argv[0]) != first || strncmp(argv[0], c->name, first)) {
                continue;
            }
            if (!c->name[first]) {
                *n_words = 1;
                return c;
            }
            if (argc > 1 && !strcmp(argv[1], c->name + first + 1)) {
                *n_words = 2;
                return c;
            }
        }
    }
    return NULL;
}

void
ctl_run_within(struct ctl *outer, const char *command, const struct svec *args,
               const struct smap *options)
{
    struct svec words = SVEC_EMPTY_INITIALIZER, argv = SVEC_EMPTY_INITIALIZER;
    struct ctl ctl = *outer;
    struct smap_node *node;
    int n_words;

    memset(ctl.options, 0, sizeof ctl.options);
    smap_init(&ctl.settings);
    svec_parse_words(&words, command);
    ctl.command = find_command((int) words.n, words.names, &n_words);
    svec_add(&argv, command);
    SMAP_FOR_EACH (node, options) {
        svec_add_nocopy(&argv, is_flag(node->key) ? xasprintf("--%s", node->key)
                                                  : xasprintf("--%s=%s", node->key, node->value));
    }
    svec_add(&argv, "--");
    svec_append(&argv, args);
    svec_terminate(&argv);
    parse_command_options(&ctl, (int) argv.n, argv.names);
    ctl.command->write(&ctl);
    smap_destroy(&ctl.settings);
    svec_destroy(&ctl.key_options);
    svec_destroy(&words);
    svec_destroy(&argv);
}

/* If 'word' is the first of commands of two words, fails with what can follow, a line each. */
static void
check_verb(const char *word)
{
    struct ds lines = DS_EMPTY_INITIALIZER;
    size_t len = strlen(word);

    for (size_t i = 0; i < ARRAY_SIZE(command_tables); i++) {
        for (const struct ctl_command *c = command_tables[i]; c->name; c++) {
            if (!strncmp(c->name, word, len) && c->name[len] == ' ') {
                ds_put_format(&lines, "  %s %-*s  %.*s\n", c->name,
                              (int) (SYNOPSIS_WIDTH - strlen(c->name)), c->args,
                              (int) strcspn(c->help, ":;\n"), c->help);
            }
        }
    }
    if (lines.length) {
        ctl_fail_with_list(CTL_USAGE, ds_cstr(&lines), "%s: a verb is missing (castctl %s --help)",
                           word, word);
    }
}

/* The first words of commands, or, with 'family', the second words of those that begin with it; ended by NULL,
 * malloc'd with its texts. */
static const char **
words_after(const char *family)
{
    const char **words = NULL;
    size_t n = 0, allocated = 0, len = family ? strlen(family) + 1 : 0;

    for (size_t i = 0; i < ARRAY_SIZE(command_tables); i++) {
        for (const struct ctl_command *c = command_tables[i]; c->name; c++) {
            if (!family || (!strncmp(c->name, family, len - 1) && c->name[len - 1] == ' ')) {
                if (n + 1 >= allocated) {
                    words = x2nrealloc(words, &allocated, sizeof *words);
                }
                words[n++] = xmemdup0(c->name + len, strcspn(c->name + len, " "));
            }
        }
    }
    if (words) {
        words[n] = NULL;
    }
    return words;
}

/* The command whose words are closest to these, malloc'd; NULL: none is close. */
static char *
closest_command(int argc, char *argv[])
{
    const char *first = closest_word(argv[0], words_after(NULL));
    const char **verbs = first ? words_after(first) : NULL;
    const char *verb = verbs && argc > 1 && argv[1][0] != '-' ? closest_word(argv[1], verbs) : NULL;
    bool is_known = first && !strcmp(first, argv[0]);

    if (!first || (is_known && !verb)) {
        return NULL;
    }
    return verb ? xasprintf("%s %s", first, verb) : xstrdup(first);
}

/* No such command: says so, or helps with "castctl help" and "castctl group --help". */
static void OVS_NO_RETURN
no_command(int argc, char *argv[])
{
    if (argc && !strcmp(argv[0], "help")) {
        usage(argc > 1 ? argv[1] : NULL);
    }
    if (argc > 1 && is_topic(argv[0]) && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
        usage(argv[0]);
    }
    if (!argc) {
        ctl_fail(CTL_USAGE, "a command is missing (castctl --help)");
    }
    if (argc == 1 || argv[1][0] == '-') {
        check_verb(argv[0]);
    }
    char *meant = closest_command(argc, argv);
    bool has_verb = argc > 1 && argv[1][0] != '-';
    char *hint = meant ? xasprintf("did you mean '%s'?", meant) : xstrdup("castctl --help");
    ctl_fail_suggest(meant);
    ctl_fail(CTL_USAGE, "unknown command '%s%s%s' (%s)", argv[0], has_verb ? " " : "",
             has_verb ? argv[1] : "", hint);
}

/* Is JSON wanted, by an option that may stand behind what is wrong? */
static bool
wants_json(int argc, char *argv[])
{
    for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
        const char *arg = argv[i];

        if (!strcmp(arg, "--json")
            || (arg[0] == '-' && memchr(arg + 1, 'j', strspn(arg + 1, "jhV")))) {
            return true;
        }
    }
    return false;
}

int
main(int argc, char *argv[])
{
    struct ctl ctl = {.wait = WAIT_CASTD,
                      .timeout = DEFAULT_TIMEOUT,
                      .settings = SMAP_INITIALIZER(&ctl.settings)};
    char *default_db = rocecast_default_db();
    int n_global, n_words = 0;

    set_program_name("castctl");
    fatal_ignore_sigpipe();
    ovsthread_id_init();
    vlog_set_levels(NULL, VLF_ANY_DESTINATION, VLL_OFF);

    if (wants_json(argc, argv)) {
        ctl_fail_as_json();
    }
    ctl.db = default_db;
    n_global = parse_global_options(&ctl, argc, argv);
    argc -= n_global;
    argv += n_global;
    ctl.command = find_command(argc, argv, &n_words);
    if (!ctl.command) {
        no_command(argc, argv);
    } else {
        ctl_fail_about(ctl.command->name);
    }
    if (ctl.command->options & CTL_STREAM) {
        ctl_fail_in_lines();
    }
    /* The last word of the name stands in for argv[0]. */
    parse_command_options(&ctl, argc - n_words + 1, argv + n_words - 1);
    /* Root without capabilities may not use the sockets of daemons that are another user's. */
    privileges_join(ROCECAST_GROUP);
    /* Local commands keep all that the user may do, to see what this machine lacks. */
    if (!(ctl.command->options & CTL_LOCAL) && privileges_drop(PRIVILEGES_NONE)) {
        ctl_fail(CTL_UNAVAILABLE, "capabilities cannot be given up");
    }
    ctl.deadline = time_msec() + ctl.timeout * 1000LL;
    ctl_run(&ctl);
    free(default_db);
    smap_destroy(&ctl.settings);
    svec_destroy(&ctl.key_options);
    if (fflush(stdout) || ferror(stdout)) {
        ctl_fail(CTL_PARTIAL, "standard output: write error");
    }
    return CTL_OK;
}
