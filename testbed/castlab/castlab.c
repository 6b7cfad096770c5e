/* SPDX-License-Identifier: Apache-2.0
 *
 * castlab: builds and removes a lab described by a topology file.
 */
#include <config.h>

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/registry/paths.h"
#include "ctl/registry/values.h"
#include "lib/printable.h"
#include "lib/spelling.h"
#include "lib/steer.h"
#include "openvswitch/vlog.h"
#include "svec.h"
#include "testbed/castlab/graph.h"
#include "testbed/castlab/lab.h"
#include "testbed/castlab/netops.h"
#include "testbed/castlab/topology.h"
#include "testbed/castlab/up.h"
#include "util.h"
#include "version.h"

#define DEFAULT_TIMEOUT 60

static int __attribute__((format(printf, 1, 2))) usage_error(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *why = xvasprintf(format, args);
    va_end(args);
    lab_complain("%s (castlab --help)", why);
    free(why);
    return EXIT_USAGE;
}

/* getopt has answered 'c', ':' or '?'. */
static int
option_error(int c, char *argv[], const char *command, const struct option *options)
{
    const char *meant;
    char *why = option_complaint(c, argv, options, &meant);

    lab_complain("%s: %s", command, why);
    free(why);
    return EXIT_USAGE;
}

static int cmd_help(int argc, char *argv[]);

/* The lab that a command is about: the one named, otherwise the only one.
 * malloc'd; NULL after an error, with its exit code. */
static char *
choose_lab(const char *name, int *exit_code)
{
    if (name) {
        if (topology_name_ok(name) && lab_exists(name)) {
            return xstrdup(name);
        }
        lab_complain("there is no lab '%s' (castlab list)", name);
        *exit_code = EXIT_REFUSED;
        return NULL;
    }
    struct svec names;
    lab_list(&names);
    char *only = names.n == 1 ? xstrdup(names.names[0]) : NULL;
    if (!only && names.n) {
        char *all = svec_join(&names, ", ", "");
        lab_complain("which lab? There are %s", all);
        free(all);
        *exit_code = EXIT_USAGE;
    } else if (!only) {
        lab_complain("there is no lab");
        *exit_code = EXIT_REFUSED;
    }
    svec_destroy(&names);
    return only;
}

/* Calls 'act' for the lab that a command is about. */
static int
for_lab(const char *name, int (*act)(const char *lab))
{
    int exit_code = EXIT_OK;
    char *lab = choose_lab(name, &exit_code);
    if (lab) {
        exit_code = act(lab);
    }
    free(lab);
    return exit_code;
}

/* Seconds that a command may wait for anything; 0 after an error. */
static int
parse_timeout(const char *text)
{
    uint64_t n;
    if (!number_parse(text, 1, 3600, &n)) {
        usage_error("--timeout %s: must be 1..3600 seconds", text);
        return 0;
    }
    return (int) n;
}

/* 0: it is none. */
static unsigned int
parse_threads(const char *text)
{
    uint64_t n;
    if (!number_parse(text, 1, STEER_MAX, &n)) {
        usage_error("--threads %s: must be 1..%d", text, STEER_MAX);
        return 0;
    }
    return (unsigned int) n;
}

/* Which lab a topology file is to describe. */
struct file_options {
    struct svec parameters;
    const char *name;
};

/* Takes an option of these. */
static int
take_file_option(struct file_options *o, int c)
{
    if (c == 'p') {
        svec_add(&o->parameters, optarg);
        return EXIT_OK;
    }
    o->name = optarg;
    return topology_name_ok(optarg)
               ? EXIT_OK
               : usage_error("--name %s: a letter, then letters, digits, '_' and '-', 31 "
                             "characters at most",
                             optarg);
}

/* NULL after an error, which has been printed. */
static struct topology *
load_file(const char *file, const struct file_options *o)
{
    struct topology *t;
    char *error = topology_load(file, o->name, (const char *const *) o->parameters.names,
                                o->parameters.n, &t);

    if (error) {
        char *line = printable(error);
        fprintf(stderr, "%s\n", line);
        free(line);
        free(error);
    }
    return t;
}

/* Options of 'up'. */
struct up_options {
    struct file_options file;
    struct lab_up up;
};

static int
parse_up(int argc, char *argv[], struct up_options *o)
{
    static const struct option options[] = {
        {"param", required_argument, NULL, 'p'},   {"name", required_argument, NULL, 'n'},
        {"timeout", required_argument, NULL, 't'}, {"no-rdma", no_argument, NULL, 'R'},
        {"threads", required_argument, NULL, 'T'}, {NULL, 0, NULL, 0},
    };
    for (int c; (c = getopt_long(argc, argv, ":p:", options, NULL)) != -1;) {
        switch (c) {
        case 'p':
        case 'n':
            if (take_file_option(&o->file, c)) {
                return EXIT_USAGE;
            }
            break;
        case 't':
            o->up.timeout = parse_timeout(optarg);
            if (!o->up.timeout) {
                return EXIT_USAGE;
            }
            break;
        case 'R': o->up.rdma = false; break;
        case 'T':
            o->up.n_threads = parse_threads(optarg);
            if (!o->up.n_threads) {
                return EXIT_USAGE;
            }
            break;
        default: return option_error(c, argv, "up", options);
        }
    }
    return optind + 1 == argc && argv[optind][0] ? EXIT_OK
                                                 : usage_error("%s takes one topology file", "up");
}

static int
cmd_up(int argc, char *argv[])
{
    struct up_options o = {
        .file = {.parameters = SVEC_EMPTY_INITIALIZER},
        .up = {.rdma = true, .timeout = DEFAULT_TIMEOUT, .n_threads = 1},
    };
    int exit_code = parse_up(argc, argv, &o);
    if (!exit_code) {
        struct topology *t = load_file(argv[optind], &o.file);
        exit_code = t ? lab_up(t, &o.up) : EXIT_USAGE;
        if (!exit_code) {
            printf("lab '%s' is up\n", t->name);
        }
        topology_destroy(t);
    }
    svec_destroy(&o.file.parameters);
    return exit_code;
}

/* Options of commands that only look at a file, or, with 'svg', at a lab. */
static int
parse_look(int argc, char *argv[], const char *command, struct file_options *o, bool *svg)
{
    const struct option options[] = {
        {"param", required_argument, NULL, 'p'},
        {"name", required_argument, NULL, 'n'},
        {svg ? "svg" : NULL, no_argument, NULL, 's'},
        {NULL, 0, NULL, 0},
    };
    for (int c; (c = getopt_long(argc, argv, ":p:", options, NULL)) != -1;) {
        if (c == 's') {
            *svg = true;
        } else if (c == ':' || c == '?') {
            return option_error(c, argv, command, options);
        } else if (take_file_option(o, c)) {
            return EXIT_USAGE;
        }
    }
    return EXIT_OK;
}

static int
cmd_validate(int argc, char *argv[])
{
    struct file_options o = {.parameters = SVEC_EMPTY_INITIALIZER};
    int exit_code = parse_look(argc, argv, "validate", &o, NULL);
    if (!exit_code && (optind + 1 != argc || !argv[optind][0])) {
        exit_code = usage_error("%s takes one topology file", "validate");
    }
    if (!exit_code) {
        struct topology *t = load_file(argv[optind], &o);
        exit_code = t ? EXIT_OK : EXIT_USAGE;
        size_t n_hosts = 0;
        for (size_t i = 0; t && i < t->n_nodes; i++) {
            n_hosts += t->nodes[i].kind == KIND_HOST;
        }
        if (t) {
            printf("lab '%s': %zu hosts, %zu forwarders, %zu links\n", t->name, n_hosts,
                   t->n_nodes - n_hosts, t->n_links);
        }
        topology_destroy(t);
    }
    svec_destroy(&o.parameters);
    return exit_code;
}

/* Of the file, or, if that is a lab's name or NULL, of a lab that is up.  NULL after an error, with its exit code. */
static struct topology *
topology_of(const char *what, const struct file_options *o, int *exit_code)
{
    bool is_lab = !what || (topology_name_ok(what) && lab_exists(what));
    struct topology *t = NULL;
    if (!is_lab) {
        t = load_file(what, o);
        *exit_code = t ? EXIT_OK : EXIT_USAGE;
    } else if (o->name || o->parameters.n) {
        *exit_code = usage_error("graph: -p and --name are for a topology file");
    } else {
        char *lab = choose_lab(what, exit_code);
        char *error = lab ? graph_of_lab(lab, &t) : NULL;
        *exit_code = error ? lab_refuse(error) : *exit_code;
        free(lab);
    }
    return t;
}

static int
cmd_graph(int argc, char *argv[])
{
    struct file_options o = {.parameters = SVEC_EMPTY_INITIALIZER};
    bool svg = false;
    int exit_code = parse_look(argc, argv, "graph", &o, &svg);
    if (!exit_code && (argc - optind > 1 || (optind < argc && !argv[optind][0]))) {
        exit_code = usage_error("%s takes one topology file or lab", "graph");
    }
    struct topology *t = exit_code ? NULL : topology_of(argv[optind], &o, &exit_code);
    if (t && svg) {
        char *error = graph_print_svg(t);
        exit_code = error ? lab_refuse(error) : EXIT_OK;
    } else if (t) {
        graph_print(t, stdout);
    }
    topology_destroy(t);
    svec_destroy(&o.parameters);
    return exit_code;
}

static int
down_all(void)
{
    struct svec names;
    lab_list(&names);
    int worst = EXIT_OK;
    for (size_t i = 0; i < names.n; i++) {
        int code = lab_down(names.names[i]);
        worst = MAX(worst, code);
    }
    svec_destroy(&names);
    return worst;
}

/* A lab that is not there is down already, so 'down' may be repeated. */
static int
down_one(const char *name)
{
    struct svec names;
    lab_list(&names);
    bool nothing = name ? topology_name_ok(name) && !lab_exists(name) : !names.n;
    svec_destroy(&names);
    if (nothing) {
        lab_complain("%s%s is not up: nothing to do", name ? "lab " : "a lab", name ? name : "");
        return EXIT_OK;
    }
    return for_lab(name, lab_down);
}

static int
cmd_down(int argc, char *argv[])
{
    static const struct option options[] = {{"all", no_argument, NULL, 'a'}, {NULL, 0, NULL, 0}};
    bool all = false;
    for (int c; (c = getopt_long(argc, argv, ":", options, NULL)) != -1;) {
        if (c != 'a') {
            return option_error(c, argv, "down", options);
        }
        all = true;
    }
    if (argc - optind > (all ? 0 : 1)) {
        return usage_error("%s takes one lab or --all", "down");
    }
    char *error = lab_lock();
    if (error) {
        return lab_refuse(error);
    }
    /* Half a 'down' helps nobody, and a whole one is quick. */
    child_catch_signals();
    return all ? down_all() : down_one(argv[optind]);
}

/* A command whose only argument is the lab. */
static int
about_one_lab(int argc, char *argv[], const char *command, int (*act)(const char *lab))
{
    if (argc > 2 || (argc > 1 && argv[1][0] == '-')) {
        return usage_error("%s takes one lab", command);
    }
    return for_lab(argv[1], act);
}

static int
cmd_status(int argc, char *argv[])
{
    return about_one_lab(argc, argv, "status", lab_status);
}

static int
cmd_list(int argc OVS_UNUSED, char *argv[] OVS_UNUSED)
{
    struct svec names;
    lab_list(&names);
    for (size_t i = 0; i < names.n; i++) {
        puts(names.names[i]);
    }
    svec_destroy(&names);
    return EXIT_OK;
}

static int
print_env(const char *lab)
{
    printf("export ROCECAST_DB='%s'\n", lab_db(lab).text);
    return EXIT_OK;
}

static int
cmd_env(int argc, char *argv[])
{
    return about_one_lab(argc, argv, "env", print_env);
}

/* Becomes the command, where the node is. */
static int
exec_in(const char *lab, const char *node, char *command[])
{
    struct journal_list list;
    char *error = lab_read(lab, &list);
    error = error ? error : lab_enter(lab, &list);
    if (error) {
        return lab_refuse(error);
    }
    const struct journal_entry *fact = lab_find_node(&list, node);
    if (!fact) {
        lab_complain("lab '%s' has no node '%s' (castlab status)", lab, node);
        return EXIT_REFUSED;
    }
    struct svec argv = SVEC_EMPTY_INITIALIZER;
    if (strcmp(fact->fields[1], topology_kind_name(KIND_HOST)) != 0) {
        /* This also gives the command a /sys of that namespace. */
        svec_add(&argv, "ip");
        svec_add(&argv, "netns");
        svec_add(&argv, "exec");
        svec_add(&argv, lab_netns_name(lab, node).text);
    }
    for (size_t i = 0; command[i]; i++) {
        svec_add(&argv, command[i]);
    }
    svec_terminate(&argv);
    setenv("ROCECAST_DB", lab_db(lab).text, 1);
    execvp(argv.names[0], argv.names);
    lab_complain("%s: %s", argv.names[0], ovs_strerror(errno));
    return 127;
}

static int
cmd_exec(int argc, char *argv[])
{
    const char *lab = NULL;
    for (int c; (c = getopt(argc, argv, "+l:")) != -1;) {
        if (c != 'l') {
            return EXIT_USAGE;
        }
        lab = optarg;
    }
    int i = optind;
    const char *node = i < argc ? argv[i++] : NULL;
    if (i < argc && !strcmp(argv[i], "--")) {
        i++;
    }
    if (!node || i >= argc) {
        return usage_error("%s takes a node and a command", "exec");
    }
    int exit_code = EXIT_OK;
    char *name = choose_lab(lab, &exit_code);
    if (name) {
        exit_code = exec_in(name, node, &argv[i]);
    }
    free(name);
    return exit_code;
}

/* 'what' already says what the command does. */
static int
cmd_daemon(int argc, char *argv[], const char *command, struct lab_restart what)
{
    static const struct option options[] = {
        {"lab", required_argument, NULL, 'l'},
        {"kill", no_argument, NULL, 'k'},
        {"timeout", required_argument, NULL, 't'},
        {NULL, 0, NULL, 0},
    };
    const char *lab = NULL;
    what.timeout = DEFAULT_TIMEOUT;
    for (int c; (c = getopt_long(argc, argv, ":l:", options, NULL)) != -1;) {
        switch (c) {
        case 'l': lab = optarg; break;
        case 'k':
            what.kill = true;
            if (!what.stop) {
                return usage_error("%s takes no --kill", command);
            }
            break;
        case 't':
            what.timeout = parse_timeout(optarg);
            if (!what.timeout) {
                return EXIT_USAGE;
            }
            if (!what.start) {
                return usage_error("%s takes no --timeout", command);
            }
            break;
        default: return option_error(c, argv, command, options);
        }
    }
    if (optind + 1 != argc) {
        return usage_error("%s takes one node, 'castd' or 'ovsdb'", command);
    }
    int exit_code = EXIT_OK;
    char *name = choose_lab(lab, &exit_code);
    if (name) {
        unsigned int server = lab_server_number(argv[optind]);
        const struct lab_text server_name = lab_server_name(server);
        what.daemon = server ? server_name.text : argv[optind];
        exit_code = lab_restart(name, &what);
    }
    free(name);
    return exit_code;
}

static int
cmd_stop(int argc, char *argv[])
{
    return cmd_daemon(argc, argv, "stop", (struct lab_restart){.stop = true});
}

static int
cmd_start(int argc, char *argv[])
{
    return cmd_daemon(argc, argv, "start", (struct lab_restart){.start = true});
}

static int
cmd_restart(int argc, char *argv[])
{
    return cmd_daemon(argc, argv, "restart", (struct lab_restart){.stop = true, .start = true});
}

/* The holder's process, see hosts.c: keeps the taps' carrier until it is
 * ended. */
static int
cmd_hold(int argc, char *argv[])
{
    for (int i = 1; i < argc; i++) {
        int fd; /* stays open. */
        char *error = tap_hold(argv[i], &fd);
        if (error) {
            return lab_refuse(error);
        }
    }
    for (;;) {
        pause();
    }
}

/* Becomes a script, with the same arguments. */
static int
become(const char *in_tree, const char *installed, const char *name, char *argv[])
{
    char *path;
    char *error = rocecast_own_file(in_tree, installed, name, &path);
    if (error) {
        return lab_refuse(error);
    }
    argv[0] = path;
    execv(path, argv);
    lab_complain("%s: %s", path, ovs_strerror(errno));
    return EXIT_REFUSED;
}

static int
cmd_vm(int argc OVS_UNUSED, char *argv[])
{
    return become("testbed/vm", "vm", "run", argv);
}

static int
cmd_demo(int argc OVS_UNUSED, char *argv[])
{
    return become("testbed/demo", "demo", "run.sh", argv);
}

static int
cmd_version(int argc OVS_UNUSED, char *argv[] OVS_UNUSED)
{
    printf(ROCECAST_VERSION_LINE, program_name);
    return EXIT_OK;
}

static const struct command {
    const char *name;
    int (*run)(int argc, char *argv[]);
    const char *arguments;
    const char *help;
} commands[] = {
    {"up", cmd_up,
     "FILE [-p KEY=VALUE]... [--name LAB] [--no-rdma] [--threads N] [--timeout SECONDS]",
     "build the lab that the topology file describes"},
    {"validate", cmd_validate, "FILE [-p KEY=VALUE]... [--name LAB]",
     "check a topology file, and build nothing"},
    {"graph", cmd_graph, "[FILE | LAB] [-p KEY=VALUE]... [--name LAB] [--svg]",
     "draw a topology file, or a lab that is up, for Graphviz; --svg: as SVG, by its program dot"},
    {"down", cmd_down, "[LAB | --all]", "remove a lab, from its journal alone"},
    {"status", cmd_status, "[LAB]", "show its nodes, processes and devices"},
    {"list", cmd_list, "", "names of the labs that are up"},
    {"exec", cmd_exec, "[-l LAB] NODE [--] COMMAND...", "run a command where a node is"},
    {"stop", cmd_stop, "NODE|castd|ovsdb [-l LAB] [--kill]",
     "end one daemon, --kill: with SIGKILL"},
    {"start", cmd_start, "NODE|castd|ovsdb [-l LAB] [--timeout SECONDS]",
     "start a daemon that does not run"},
    {"restart", cmd_restart, "NODE|castd|ovsdb [-l LAB] [--kill] [--timeout SECONDS]",
     "end one daemon, --kill: with SIGKILL, and start it again"},
    {"env", cmd_env, "[LAB]", "print ROCECAST_DB for eval"},
    {"vm", cmd_vm, "[OPTION]... -- COMMAND...",
     "run a command in a virtual machine with soft-RoCE, on this machine's files"},
    {"demo", cmd_demo, "",
     "the demonstration, in such a machine: one file to five replicas, into ./rocecast-demo"},
    {"help", cmd_help, "", "this text"},
    {"--version", cmd_version, "", NULL},
    {"--hold", cmd_hold, "NETDEV...", NULL},
};

static int
cmd_help(int argc OVS_UNUSED, char *argv[] OVS_UNUSED)
{
    printf("castlab: a rocecast network on one machine\n"
           "usage: castlab COMMAND ...\n       castlab --help | --version\n\n");
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
        if (commands[i].help) {
            printf("  %s %s\n      %s\n", commands[i].name, commands[i].arguments,
                   commands[i].help);
        }
    }
    printf("\nLAB may be left out when there is only one.\n"
           "Environment: ROCECAST_RUNDIR (default /run/rocecast)\n"
           "Exit status: 0 done, 1 bad usage or topology file, 2 refused, 3 timed out,\n"
           "4 some of a lab could not be removed, 130 interrupted; of vm: castlab vm --help\n");
    return EXIT_OK;
}

int
main(int argc, char *argv[])
{
    set_program_name(argv[0]);
    vlog_set_levels(NULL, VLF_ANY_DESTINATION, VLL_ERR);
    if (rocecast_rundir()[0] != '/') {
        return usage_error("ROCECAST_RUNDIR=%s: must be an absolute path", rocecast_rundir());
    }
    const char *name = argc > 1 ? argv[1] : "help";
    if (!strcmp(name, "-h") || !strcmp(name, "--help")) {
        name = "help";
    }
    if (!strcmp(name, "-V")) {
        name = "--version";
    }
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
        if (!strcmp(commands[i].name, name)) {
            if (!commands[i].arguments[0] && argc > 2) {
                return usage_error("%s takes no argument", name);
            }
            argv[1] = xasprintf("castlab: %s", name); /* getopt's messages begin with it. */
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    const char *names[ARRAY_SIZE(commands) + 1] = {NULL};
    for (size_t i = 0, n = 0; i < ARRAY_SIZE(commands); i++) {
        if (commands[i].help) {
            names[n++] = commands[i].name;
        }
    }
    const char *meant = closest_word(name, names);
    if (meant) {
        lab_complain("unknown command '%s' (did you mean '%s'?)", name, meant);
        return EXIT_USAGE;
    }
    return usage_error("unknown command '%s'", name);
}
