/* SPDX-License-Identifier: Apache-2.0
 *
 * castsim: groups in virtual time, by the thousand (tests/model/lab.h), connections
 * (tests/model/cm-lab.h), and queue pairs over paths that break (tests/model/path-lab.h).
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/registry/group-settings.h"
#include "lib/defect.h"
#include "tests/sim/castsim.h"
#include "version.h"

#define MAX_FRESH      1000000
#define DEFECT_SEEDS   500 /* within which each known defect has to be found, from 1 on, or... */
/* ...from here: a node is started again behind a queue shorter than what is outstanding, when all
 * receivers have everything. */
#define NOT_AHEAD_SEED UINT64_C(95678708)
#define EVENTS_SEEDS   200 /* from so many on each event has to be frequent: ... */
#define EVENTS_OF      5   /* ... more than once in this many. */

uint64_t defects;

static const struct {
    const char *name, *help;
} known[] = {
#define DEFECT_ENTRY(NAME, HELP) [DEFECT_##NAME] = {#NAME, HELP},
    DEFECTS
#undef DEFECT_ENTRY
};

const struct sim_policy sim_policies[N_SIM_POLICIES] = {
    {"hold", NAK_HOLD, false},
    {"literal", NAK_LITERAL, false},
    {"solicit", NAK_SOLICIT, false},
    {"hold+filter", NAK_HOLD, true},
    {"literal+filter", NAK_LITERAL, true},
    {"solicit+filter", NAK_SOLICIT, true},
};

static const char usage[] =
    "usage: castsim [OPTION]...\n"
    "Runs groups in virtual time, each as its seed says: topology, links, messages, faults;\n"
    "connections of programs that use RDMA-CM; and queue pairs over paths that break.\n"
    "Prints what a seed violates and how to replay it, and how often what happened.\n"
    "\n"
    "  --seed S          this seed\n"
    "  --seeds A..B      these (default 1..500)\n"
    "  --count N         so many, from the first on\n"
    "  --fresh N         and so many that nobody has chosen; it says which\n"
    "  --trace           with --seed: every packet, to stderr\n"
    "  --jobs N          processes (default: one per processor)\n"
    "  --policy NAME     all groups have it: hold, literal, solicit, each also with '+filter', or\n"
    "                    default (default: as the seed says; with --compare all)\n"
    "  --defect NAME     with this known defect switched on\n"
    "  --list-defects    what is known\n"
    "  --defects         is each of them found?  Prints the first seed that does\n"
    "  --compare         policies for NAKs above the minimum against an ideal aggregator\n"
    "  --congestion      what control of congestion reaches\n"
    "  --paths           what probes find of each fault in a fabric\n"
    "  --runs N          with --compare: of a cell (default 40)\n"
    "  --loss WHERE      with --compare: down, up (towards receivers, from them) or both (default)\n"
    "  --help            this text\n"
    "  --version\n"
    "\n"
    "Exit status: 0, 1 if something was violated or not found, 2 for wrong usage.\n";

_Noreturn static void
wrong(const char *what, const char *value)
{
    fprintf(stderr, "castsim: %s: %s\nTry 'castsim --help'.\n", what, value);
    exit(2);
}

static uint64_t
parse_number(const char *what, const char *text, char stop, char **end)
{
    if (*text < '0' || *text > '9') {
        wrong(what, text);
    }
    uint64_t number = strtoull(text, end, 10);
    if (**end != stop || number >= UINT64_C(1) << 62) {
        wrong(what, text);
    }
    return number;
}

static enum defect
parse_defect(const char *name)
{
    for (unsigned i = 0; i < N_DEFECTS; i++) {
        if (!strcmp(known[i].name, name)) {
            return (enum defect) i;
        }
    }
    wrong("no such defect (--list-defects)", name);
}

/* False: it happens too seldom for the seeds to mean much. */
static bool
print_event(const struct campaign *c, uint64_t n, const char *name, const char *help)
{
    bool seldom = c->n_run >= EVENTS_SEEDS && n * EVENTS_OF <= c->n_run;

    printf("%12" PRIu64 "  %-18s %s%s\n", n, name, help, seldom ? ": TOO SELDOM" : "");
    return !seldom;
}

static bool
print_events(const struct campaign *c)
{
    bool ok = true;

    for (unsigned i = 0; i < N_LAB_EVENTS; i++) {
        ok = print_event(c, c->n_seen[i], lab_event_name(i), lab_event_help(i)) && ok;
    }
    for (unsigned i = 0; i < N_CM_EVENTS; i++) {
        ok = print_event(c, c->n_cm_seen[i], cm_event_name(i), cm_event_help(i)) && ok;
    }
    return ok;
}

/* The last line is for tests/conformance.
 *
 * Proves MT-5.2-11, MT-5.3-1, MT-5.3.1-1, MT-5.3.2-1. */
static bool
run_campaign(struct campaign *c)
{
    printf("seeds %" PRIu64 "..%" PRIu64 "\n", c->first, c->last);
    campaign_run(c);
    bool ok = print_events(c) && !c->n_failed;
    printf("%s seeds %" PRIu64 "..%" PRIu64 " [tests/sim/castsim.c:%s]\n", ok ? "ok   " : "FAIL ",
           c->first, c->last, __func__);
    return ok;
}

/* The same with 'n' seeds from anywhere. */
static bool
run_fresh(struct campaign *c, uint64_t n)
{
    uint32_t first;

    if (getentropy(&first, sizeof first)) {
        perror("castsim: getentropy");
        return false;
    }
    *c = (struct campaign){.first = first,
                           .last = first + n - 1,
                           .n_jobs = c->n_jobs,
                           .policy = c->policy,
                           .options = c->options};
    printf("fresh seeds, again with: castsim%s --seeds %" PRIu64 "..%" PRIu64 "\n", c->options,
           c->first, c->last);
    return run_campaign(c);
}

/* The seeds of 'c', and 'n_fresh' others. */
static int
run_campaigns(struct campaign *c, uint64_t n_fresh)
{
    bool ok = run_campaign(c);
    uint64_t n_run = c->n_run, n_failed = c->n_failed;

    if (n_fresh) {
        ok = run_fresh(c, n_fresh) && ok;
        n_run += c->n_run;
        n_failed += c->n_failed;
    }
    printf("%" PRIu64 " passed, %" PRIu64 " failed\n", n_run - n_failed, n_failed);
    return ok ? 0 : 1;
}

/* Few single runs show it, or none: do links that lose, and not without it? */
static bool
find_slow_defect(enum defect d, unsigned n_jobs)
{
    defects = UINT64_C(1) << d;
    bool found = !paths_lossy(n_jobs);
    defects = 0;
    bool ok = found && paths_lossy(n_jobs);

    printf("%s %s: %s\n", ok ? "ok" : "FAIL", known[d].name,
           !found ? "not found by links that lose"
           : ok   ? "links that lose"
                  : "links that lose, without it, too");
    return ok;
}

/* Does some seed find the defect, and pass without it? */
static bool
find_defect(enum defect d, unsigned n_jobs)
{
    uint64_t first = d == DEFECT_NOT_AHEAD ? NOT_AHEAD_SEED : 1;
    struct campaign c = {.first = first,
                         .last = first + DEFECT_SEEDS - 1,
                         .n_jobs = n_jobs,
                         .stop = true,
                         .quiet = true,
                         .options = ""};

    defects = UINT64_C(1) << d;
    campaign_run(&c);
    defects = 0;
    if (!c.n_failed) {
        printf("FAIL %s: not found by seeds %" PRIu64 "..%" PRIu64 ": %s\n", known[d].name, c.first,
               c.last, known[d].help);
        return false;
    }
    struct campaign without = {
        .first = c.failed, .last = c.failed, .n_jobs = 1, .quiet = true, .options = ""};
    campaign_run(&without);
    printf("%s %s: seed %" PRIu64 "%s: %s\n", without.n_failed ? "FAIL" : "ok", known[d].name,
           c.failed, without.n_failed ? ", which fails without it, too" : "", c.why);
    return !without.n_failed;
}

static int
run_defects(unsigned n_jobs)
{
    unsigned n_found = 0;

    for (unsigned i = 0; i < N_DEFECTS; i++) {
        bool slow = i == DEFECT_NO_SURVEY || i == DEFECT_NAK_AGAIN;

        n_found += slow ? find_slow_defect(i, n_jobs) : find_defect((enum defect) i, n_jobs);
    }
    printf("%u passed, %u failed\n", n_found, N_DEFECTS - n_found);
    return n_found == N_DEFECTS ? 0 : 1;
}

static void
list_defects(void)
{
    for (unsigned i = 0; i < N_DEFECTS; i++) {
        printf("%-16s %s\n", known[i].name, known[i].help);
    }
}

static const struct sim_policy *
parse_policy(const char *name)
{
    const struct group_policy otherwise = group_settings_default().policy;
    bool is_default = !strcmp(name, "default");

    for (unsigned i = 0; i < N_SIM_POLICIES; i++) {
        const struct sim_policy *p = &sim_policies[i];
        if (is_default ? p->nak == otherwise.nak && p->filter == otherwise.filter
                       : !strcmp(name, p->name)) {
            return p;
        }
    }
    wrong("--policy", name);
}

static void
parse_loss(const char *where, struct compare *compare)
{
    bool both = !strcmp(where, "both");

    compare->lose_down = both || !strcmp(where, "down");
    compare->lose_up = both || !strcmp(where, "up");
    if (!compare->lose_down && !compare->lose_up) {
        wrong("--loss", where);
    }
}

static void
parse_seeds(const char *text, struct campaign *c)
{
    char *end;

    c->first = parse_number("--seeds", text, '.', &end);
    c->last = end[1] == '.' ? parse_number("--seeds", end + 2, '\0', &end) : 0;
    if (c->last < c->first) {
        wrong("--seeds", text);
    }
}

static unsigned
parse_small(const char *what, const char *text, unsigned most)
{
    char *end;
    uint64_t number = parse_number(what, text, '\0', &end);

    if (!number || number > most) {
        wrong(what, text);
    }
    return (unsigned) number;
}

/* To 'replay', what a seed needs besides. */
static void
note_option(char *replay, size_t size, const char *option, const char *value)
{
    size_t len = strlen(replay);

    snprintf(replay + len, size - len, " %s %s", option, value);
}

int
main(int argc, char *argv[])
{
    enum {
        SEED = 1,
        SEEDS,
        COUNT,
        FRESH,
        TRACE,
        JOBS,
        POLICY,
        DEFECT_ON,
        LIST,
        ALL,
        COMPARE,
        CONGESTION,
        PATHS,
        RUNS,
        LOSS,
        HELP,
        SHOW_VERSION
    };
    static const struct option options[] = {
        {"seed", required_argument, NULL, SEED},
        {"seeds", required_argument, NULL, SEEDS},
        {"count", required_argument, NULL, COUNT},
        {"fresh", required_argument, NULL, FRESH},
        {"trace", no_argument, NULL, TRACE},
        {"jobs", required_argument, NULL, JOBS},
        {"policy", required_argument, NULL, POLICY},
        {"defect", required_argument, NULL, DEFECT_ON},
        {"list-defects", no_argument, NULL, LIST},
        {"defects", no_argument, NULL, ALL},
        {"compare", no_argument, NULL, COMPARE},
        {"congestion", no_argument, NULL, CONGESTION},
        {"paths", no_argument, NULL, PATHS},
        {"runs", required_argument, NULL, RUNS},
        {"loss", required_argument, NULL, LOSS},
        {"help", no_argument, NULL, HELP},
        {"version", no_argument, NULL, SHOW_VERSION},
        {NULL, 0, NULL, 0},
    };
    struct campaign c = {
        .first = 1, .last = 500, .n_jobs = (unsigned) sysconf(_SC_NPROCESSORS_ONLN)};
    struct compare compare = {.n_runs = 40, .lose_down = true, .lose_up = true};
    char replay[128] = "";
    bool trace = false, find = false, compares = false, congested = false, paths = false;
    unsigned n_fresh = 0;
    char *end;

    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case SEED: c.first = c.last = parse_number("--seed", optarg, '\0', &end); break;
        case SEEDS: parse_seeds(optarg, &c); break;
        case COUNT:
            c.last = c.first + parse_number("--count", optarg, '\0', &end) - 1;
            if (c.last < c.first) {
                wrong("--count", optarg);
            }
            break;
        case FRESH: n_fresh = parse_small("--fresh", optarg, MAX_FRESH); break;
        case TRACE: trace = true; break;
        case JOBS: c.n_jobs = parse_small("--jobs", optarg, 64); break;
        case POLICY:
            c.policy = compare.only = parse_policy(optarg);
            note_option(replay, sizeof replay, "--policy", optarg);
            break;
        case DEFECT_ON:
            defects |= UINT64_C(1) << parse_defect(optarg);
            note_option(replay, sizeof replay, "--defect", optarg);
            break;
        case LIST: list_defects(); return 0;
        case ALL: find = true; break;
        case COMPARE: compares = true; break;
        case CONGESTION: congested = true; break;
        case PATHS: paths = true; break;
        case RUNS: compare.n_runs = parse_small("--runs", optarg, 100000); break;
        case LOSS: parse_loss(optarg, &compare); break;
        case HELP: fputs(usage, stdout); return 0;
        case SHOW_VERSION: printf(ROCECAST_VERSION_LINE, "castsim"); return 0;
        default: fputs("Try 'castsim --help'.\n", stderr); return 2;
        }
    }
    if (optind < argc) {
        wrong("not an option", argv[optind]);
    }
    if (trace && c.first != c.last) {
        wrong("--trace", "of a single seed only (--seed)");
    }
    c.options = replay;
    if (compares) {
        compare.n_jobs = c.n_jobs;
        return compare_run(&compare);
    }
    if (congested) {
        return congestion_run(c.n_jobs);
    }
    if (paths) {
        return paths_run(c.n_jobs);
    }
    if (find) {
        return run_defects(c.n_jobs);
    }
    if (trace) {
        campaign_run_seed(&c, c.first, true);
        printf("1 passed, 0 failed\n");
        return 0;
    }
    return run_campaigns(&c, n_fresh);
}
