/* SPDX-License-Identifier: Apache-2.0
 *
 * castscale: how the control plane scales.
 *
 * Model agents by the thousand, groups by the thousand, and how long one change takes among them
 * (docs/scale.md).
 */
#include <config.h>

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/castbench/out-file.h"
#include "bench/castbench/values.h"
#include "bench/castscale/agents.h"
#include "bench/castscale/process.h"
#include "bench/castscale/run.h"
#include "bench/command.h"
#include "ctl/process/open-files.h"
#include "ctl/registry/paths.h"
#include "lib/spelling.h"
#include "openvswitch/vlog.h"
#include "ovsdb-idl.h"
#include "util.h"
#include "version.h"

static const char usage[] =
    "usage: castscale run [options]\n"
    "       castscale agents [--db REMOTE]\n"
    "Measures how the control plane scales (docs/scale.md).  'run' makes a registry of its own with castd and\n"
    "a model agent for each node, fills it with groups, and measures what one more change takes.  'agents'\n"
    "runs model agents for all nodes of a registry that has no others, until SIGTERM.\n"
    "run:\n"
    "  -n, --nodes N          nodes of the fabric, 4..4000 (default 64)\n"
    "  -H, --hosts N          hosts with members, spread over leaves (default: one for each leaf)\n"
    "  -m, --members N        members of each group (default 8)\n"
    "  -g, --groups N,...     measures at each of these numbers of groups, ascending, up to 4096\n"
    "                         (default 64,4096)\n"
    "  -c, --changes N        members that are removed and added at each, 0..100000 (default 200)\n"
    "  -C, --castctl N        likewise, added by castctl, 0..100000 (default 20)\n"
    "  -t, --topology N       changes of the topology at each, 0..100000 (default 4)\n"
    "  -b, --batch N          groups that one request adds, 1..4096 (default 64)\n"
    "  -s, --seed N           chooses other members (default 1)\n"
    "  -w, --patience SEC     what takes longer has failed, 1..86400 (default 600)\n"
    "  -j, --json FILE        write JSON to FILE, '-' for standard output\n"
    "  -o, --csv FILE         write CSV to FILE, likewise\n"
    "agents:\n"
    "  -d, --db REMOTE        the registry (default: $ROCECAST_DB, or unix:/run/rocecast/db.sock)\n"
    "Both:\n"
    "  -h, --help  -V, --version\n"
    "exit status: 0 all was measured, 1 usage, 2 it failed: files have what was measured\n";

struct options {
    struct run_options run;
    const char *db, *json, *csv;
};

static void
parse_groups(const char *text, struct run_options *o)
{
    char *copy = xstrdup(text), *save = NULL;
    bool bad = !text[0] || strstr(text, ",,") || text[0] == ',' || text[strlen(text) - 1] == ',';

    o->n_steps = 0;
    for (char *s = strtok_r(copy, ",", &save); s && !bad; s = strtok_r(NULL, ",", &save)) {
        uint64_t v;

        bad = o->n_steps == RUN_STEPS_MAX || !value_number(s, 1, FABRIC_GROUPS_MAX, &v)
              || (o->n_steps && v <= o->groups[o->n_steps - 1]);
        if (!bad) {
            o->groups[o->n_steps++] = (unsigned) v;
        }
    }
    free(copy);
    if (bad) {
        command_fail(
            COMMAND_USAGE,
            "--groups %s: must be up to %d numbers of 1..%d, ascending, separated by commas", text,
            RUN_STEPS_MAX, FABRIC_GROUPS_MAX);
    }
}

static const struct option long_options[] = {
    {"nodes", required_argument, NULL, 'n'},    {"hosts", required_argument, NULL, 'H'},
    {"members", required_argument, NULL, 'm'},  {"groups", required_argument, NULL, 'g'},
    {"changes", required_argument, NULL, 'c'},  {"castctl", required_argument, NULL, 'C'},
    {"topology", required_argument, NULL, 't'}, {"batch", required_argument, NULL, 'b'},
    {"seed", required_argument, NULL, 's'},     {"patience", required_argument, NULL, 'w'},
    {"json", required_argument, NULL, 'j'},     {"csv", required_argument, NULL, 'o'},
    {"db", required_argument, NULL, 'd'},       {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},        {NULL, 0, NULL, 0},
};

/* Options that belong to one command. */
#define OF_RUN    "nHmgcCtbswjo"
#define OF_AGENTS "d"

static void
check_belongs(const char *command, int opt)
{
    const char *others = !strcmp(command, "run") ? OF_AGENTS : OF_RUN;

    for (const struct option *o = long_options; strchr(others, opt) && o->name; o++) {
        if (o->val == opt) {
            command_fail(COMMAND_USAGE, "--%s is no option of %s (castscale --help)", o->name,
                         command);
        }
    }
}

static struct options
parse_options(const char *command, int argc, char *argv[])
{
    struct options o = {.run = {
                            .n_nodes = 64,
                            .n_members = 8,
                            .n_steps = 2,
                            .groups = {64, FABRIC_GROUPS_MAX},
                            .n_changes = 200,
                            .n_castctl = 20,
                            .n_topology = 4,
                            .batch = 64,
                            .seed = 1,
                            .patience_sec = 600,
                        }};
    struct run_options *r = &o.run;
    const char *meant;
    int opt;

    while ((opt = getopt_long(argc, argv, ":n:H:m:g:c:C:t:b:s:w:j:o:d:hV", long_options, NULL))
           != -1) {
        if (opt != '?' && opt != ':' && command) {
            check_belongs(command, opt);
        }
        switch (opt) {
        case 'n':
            r->n_nodes = command_number("--nodes", optarg, FABRIC_NODES_MIN, FABRIC_NODES_MAX);
            break;
        case 'H': r->n_receivers = command_number("--hosts", optarg, 1, 60000); break;
        case 'm': r->n_members = command_number("--members", optarg, 1, 1024); break;
        case 'g': parse_groups(optarg, r); break;
        case 'c': r->n_changes = command_number("--changes", optarg, 0, 100000); break;
        case 'C': r->n_castctl = command_number("--castctl", optarg, 0, 100000); break;
        case 't': r->n_topology = command_number("--topology", optarg, 0, 100000); break;
        case 'b': r->batch = command_number("--batch", optarg, 1, FABRIC_GROUPS_MAX); break;
        case 's': r->seed = command_number("--seed", optarg, 0, UINT32_MAX); break;
        case 'w': r->patience_sec = command_number("--patience", optarg, 1, 86400); break;
        case 'j': o.json = optarg; break;
        case 'o': o.csv = optarg; break;
        case 'd': o.db = optarg; break;
        case 'h': fputs(usage, stdout); exit(0);
        case 'V': printf(ROCECAST_VERSION_LINE, "castscale"); exit(0);
        default:
            command_fail(COMMAND_USAGE, "%s", option_complaint(opt, argv, long_options, &meant));
        }
    }
    return o;
}

/* The members of a group are on hosts of their own. */
static void
check_hosts(const struct run_options *o)
{
    struct fabric f;

    fabric_init(&f, o->n_nodes, o->n_receivers, o->n_members);
    if (f.n_members > f.n_receivers) {
        command_fail(COMMAND_USAGE, "--members %u: there are %u hosts for them (--hosts)",
                     f.n_members, f.n_receivers);
    }
}

/* A file that cannot be written is found before hours of measuring. */
static void
check_file(const char *path)
{
    int error = path ? out_file_check(path) : 0;

    if (error) {
        command_fail(COMMAND_FAILED, "%s: %s", path, strerror(error));
    }
}

static void
write_file(const char *path, const struct report *report,
           void (*write)(const struct report *, FILE *))
{
    struct out_file file;
    int error = out_file_open(&file, path);

    if (!error) {
        write(report, file.stream);
        error = out_file_close(&file);
    }
    if (error) {
        command_fail(COMMAND_FAILED, "%s: %s", path, strerror(error));
    }
}

static bool
is_stdout(const char *path)
{
    return path && out_file_is_stdout(path);
}

static int
run_command(const struct options *o)
{
    struct report report;

    check_hosts(&o->run);
    check_file(o->json);
    check_file(o->csv);
    if (o->json && o->csv
        && (out_file_is_same(o->json, o->csv) || (is_stdout(o->json) && is_stdout(o->csv)))) {
        command_fail(COMMAND_USAGE, "--csv %s: that is the file for JSON", o->csv);
    }
    char *error = run(&o->run, &report, is_stdout(o->json) || is_stdout(o->csv) ? stderr : stdout);
    if (o->json) {
        write_file(o->json, &report, report_write_json);
    }
    if (o->csv) {
        write_file(o->csv, &report, report_write_csv);
    }
    if (error) {
        command_fail(COMMAND_FAILED, "%s", error);
    }
    run_uninit(&report);
    return 0;
}

static void
say_ready(size_t n)
{
    printf("%zu agents have applied what they are told\n", n);
    fflush(stdout);
}

static int
agents_command(const struct options *o)
{
    char *db = o->db ? xstrdup(o->db) : rocecast_default_db();

    agents_run(db, say_ready);
    free(db);
    return 0;
}

int
main(int argc, char *argv[])
{
    const char *command = argc > 1 && argv[1][0] != '-' ? argv[1] : NULL;
    static const char *const commands[] = {"run", "agents", NULL};

    set_program_name(argv[0]);
    vlog_set_levels(NULL, VLF_ANY_DESTINATION, VLL_OFF);
    vlog_set_levels(NULL, VLF_CONSOLE, VLL_ERR);
    if (!command) {
        parse_options(NULL, argc, argv); /* --help and --version. */
        command_fail(COMMAND_USAGE,
                     "a command is missing: there are run and agents (castscale --help)");
    }
    bool is_run = !strcmp(command, "run");
    if (!is_run && strcmp(command, "agents") != 0) {
        command_fail(COMMAND_USAGE,
                     "unknown command '%s'%s: there are run and agents (castscale --help)", command,
                     did_you_mean(command, commands));
    }
    argv[1] = argv[0];
    struct options o = parse_options(command, argc - 1, argv + 1);
    if (optind < argc - 1) {
        command_fail(COMMAND_USAGE, "unexpected argument '%s' (castscale --help)",
                     argv[1 + optind]);
    }
    signal(SIGPIPE, SIG_IGN);
    open_files_allow(); /* a session has one, here and in the registry's server. */
    process_catch_signals();
    return is_run ? run_command(&o) : agents_command(&o);
}
