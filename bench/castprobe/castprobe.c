/* SPDX-License-Identifier: Apache-2.0
 *
 * castprobe: how an RC device behaves where rocecast relies on it.
 *
 * The device is on one machine (castprobe target), and packets that are made by hand come from
 * another one, or from a network namespace (castprobe run).
 */
#include <arpa/inet.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/castprobe/control.h"
#include "bench/castprobe/probe.h"
#include "bench/castprobe/report.h"
#include "bench/castprobe/target.h"
#include "bench/command.h"
#include "lib/spelling.h"
#include "version.h"

enum { STATUS_DIFFERS = 3 }; /* besides those of command.h. */

static const char usage[] =
    "usage: castprobe target [--device DEV] [--gid-index I] [--port PORT] [--once]\n"
    "       castprobe run --address OWN [options] TARGET\n"
    "       castprobe list\n"
    "Checks how an RC device behaves where rocecast relies on it (docs/castprobe.md).  'target' runs where\n"
    "the device is; 'run' where TARGET, an address or name, is reached without RDMA and soft-RoCE.\n"
    "target:\n"
    "  -d, --device DEV       RDMA device (default: the only one)\n"
    "  -x, --gid-index I      of an IPv6 address (default: the first that is not link-local)\n"
    "      --once             end after one run\n"
    "run:\n"
    "  -A, --address OWN      IPv6 address of this machine, which the device reaches\n"
    "  -o, --only P3,P7,...   these checks (default: all)\n"
    "  -m, --mtu MTU          path MTU, 256..4096 (default 1024)\n"
    "  -q, --quiet MS         so long without a packet is silence, 20..10000 (default 150)\n"
    "  -a, --against FILE     expect what the JSON of another device says, not what soft-RoCE does\n"
    "  -j, --json FILE        write JSON to FILE, '-' for standard output\n"
    "Both:\n"
    "  -p, --port PORT        TCP port between the two (default 18514)\n"
    "  -h, --help  -V, --version\n"
    "exit status: 0 all is as expected, 1 usage, 2 it failed, or something cannot be told,\n"
    "3 something differs\n";

struct options {
    const char *device, *address, *only, *json, *against;
    int gid_index;
    uint16_t port;
    uint32_t mtu;
    unsigned quiet_ms;
    bool once;
};

static const struct option long_options[] = {
    {"device", required_argument, NULL, 'd'},
    {"gid-index", required_argument, NULL, 'x'},
    {"once", no_argument, NULL, 'O'},
    {"address", required_argument, NULL, 'A'},
    {"only", required_argument, NULL, 'o'},
    {"mtu", required_argument, NULL, 'm'},
    {"quiet", required_argument, NULL, 'q'},
    {"against", required_argument, NULL, 'a'},
    {"json", required_argument, NULL, 'j'},
    {"port", required_argument, NULL, 'p'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

/* Options that belong to one command. */
#define OF_TARGET "dxO"
#define OF_RUN    "Aomqaj"

static void
check_belongs(const char *command, int opt)
{
    const char *others = !strcmp(command, "target") ? OF_RUN
                         : !strcmp(command, "run")  ? OF_TARGET
                                                    : OF_RUN OF_TARGET "p";

    for (const struct option *o = long_options; strchr(others, opt) && o->name; o++) {
        if (o->val == opt) {
            command_fail(COMMAND_USAGE, "--%s is no option of %s (castprobe --help)", o->name,
                         command);
        }
    }
}

static struct options
parse_options(const char *command, int argc, char *argv[])
{
    struct options o = {.gid_index = -1, .port = CONTROL_PORT, .mtu = 1024, .quiet_ms = 150};
    const char *meant;
    int opt;

    while ((opt = getopt_long(argc, argv, ":d:x:A:o:m:q:a:j:p:hV", long_options, NULL)) != -1) {
        if (opt != '?' && opt != ':' && command) {
            check_belongs(command, opt);
        }
        switch (opt) {
        case 'd': o.device = optarg; break;
        case 'x': o.gid_index = (int) command_number("--gid-index", optarg, 0, 255); break;
        case 'O': o.once = true; break;
        case 'A': o.address = optarg; break;
        case 'o': o.only = optarg; break;
        case 'm':
            o.mtu = command_number("--mtu", optarg, 256, 4096);
            if (o.mtu & (o.mtu - 1)) {
                command_fail(COMMAND_USAGE, "--mtu %s: must be 256, 512, 1024, 2048 or 4096",
                             optarg);
            }
            break;
        case 'q': o.quiet_ms = command_number("--quiet", optarg, 20, 10000); break;
        case 'a': o.against = optarg; break;
        case 'j': o.json = optarg; break;
        case 'p': o.port = (uint16_t) command_number("--port", optarg, 1, 65535); break;
        case 'h': fputs(usage, stdout); exit(0);
        case 'V': printf(ROCECAST_VERSION_LINE, "castprobe"); exit(0);
        default:
            command_fail(COMMAND_USAGE, "%s", option_complaint(opt, argv, long_options, &meant));
        }
    }
    return o;
}

/* Sets wanted[i] for the checks of the list "P3,P7". */
static void
parse_only(const char *text, bool *wanted)
{
    const char *s = text;

    while (*s) {
        char *end;
        unsigned long v = *s == 'P' && s[1] >= '0' && s[1] <= '9' ? strtoul(s + 1, &end, 10) : 0;

        if (!v || v > n_checks || (*end && *end != ',') || (*end == ',' && !end[1])) {
            command_fail(COMMAND_USAGE, "--only %s: must be of P1..P%u, separated by commas", text,
                         n_checks);
        }
        wanted[v - 1] = true;
        s = *end ? end + 1 : end;
    }
}

static void
list(void)
{
    for (unsigned i = 0; i < n_checks; i++) {
        printf("P%-3u %s\n     %s: %s\n", i + 1, checks[i].statement, checks[i].relied_on,
               checks[i].expected);
    }
}

/* What the target says of itself and the device; fills in the device's address. */
static json_t *
greet(struct probe *p, struct in6_addr *device)
{
    json_t *hello = probe_ask(p, json_pack("{s:s}", "op", "hello"));
    const char *address = json_string_value(json_object_get(hello, "address"));

    if (!hello) {
        command_fail(COMMAND_FAILED, "%s", p->error);
    }
    if (json_integer_value(json_object_get(hello, "version")) != CONTROL_VERSION || !address
        || inet_pton(AF_INET6, address, device) != 1) {
        command_fail(COMMAND_FAILED, "the target is no castprobe of this version");
    }
    if (json_integer_value(json_object_get(hello, "mtu")) < p->mtu) {
        command_fail(COMMAND_FAILED, "--mtu %u: the device's path MTU is %lld", p->mtu,
                     (long long) json_integer_value(json_object_get(hello, "mtu")));
    }
    return hello;
}

static void
run_check(struct probe *p, unsigned i, struct result *r)
{
    size_t size;

    p->said = false;
    *p->error = '\0';
    p->out = open_memstream(&r->observed, &size);
    checks[i].run(p);
    if (*p->error) {
        fprintf(p->out, "%s%s", p->said ? ": " : "", p->error);
    }
    fclose(p->out);
    r->id = i + 1;
    r->verdict = *p->error                          ? VERDICT_CANNOT_TELL
                 : strcmp(r->observed, r->expected) ? VERDICT_DIFFERS
                                                    : VERDICT_AS_EXPECTED;
    if (p->gone) {
        command_fail(COMMAND_FAILED, "P%u: %s", i + 1, p->error);
    }
}

static int
run(const struct options *o, const char *target)
{
    static struct probe p;
    struct in6_addr own, device;
    bool *wanted = calloc(n_checks, sizeof *wanted);
    struct result *results = calloc(n_checks, sizeof *results);
    unsigned n = 0;

    if (!o->address) {
        command_fail(COMMAND_USAGE, "--address is missing (castprobe --help)");
    }
    if (inet_pton(AF_INET6, o->address, &own) != 1) {
        command_fail(COMMAND_USAGE, "--address %s: must be an IPv6 address", o->address);
    }
    if (o->only) {
        parse_only(o->only, wanted);
    }
    json_t *against = o->against ? report_load(o->against) : NULL;
    FILE *json = o->json ? report_open(o->json) : NULL;
    const char *error = control_connect(&p.control, target, o->port);
    if (error) {
        command_fail(COMMAND_FAILED, "%s, TCP port %u: %s", target, o->port, error);
    }
    p.port = o->port;
    p.mtu = o->mtu;
    p.quiet_ms = o->quiet_ms;
    p.peer_qpn = 0x100;
    json_t *hello = greet(&p, &device);
    if (!peer_open(&p.peer, &own, &device)) {
        command_fail(COMMAND_FAILED, "%s", p.peer.error);
    }
    FILE *text = json == stdout ? stderr : stdout;
    report_head(text, hello);
    for (unsigned i = 0; i < n_checks; i++) {
        if (!o->only || wanted[i]) {
            results[n].expected = against ? report_expected(against, i + 1) : checks[i].expected;
            run_check(&p, i, &results[n]);
            report_row(text, &results[n++]);
        }
    }
    enum verdict verdict = report_end(text, results, n);
    if (json) {
        report_json(json, o->json, hello, &p, results, n);
    }
    json_decref(hello);
    json_decref(against);
    peer_close(&p.peer);
    control_close(&p.control);
    for (unsigned i = 0; i < n; i++) {
        free(results[i].observed);
    }
    free(results);
    free(wanted);
    return verdict == VERDICT_DIFFERS       ? STATUS_DIFFERS
           : verdict == VERDICT_CANNOT_TELL ? COMMAND_FAILED
                                            : 0;
}

int
main(int argc, char *argv[])
{
    const char *command = argc > 1 && argv[1][0] != '-' ? argv[1] : NULL;
    bool is_run = command && !strcmp(command, "run");
    bool is_target = command && !strcmp(command, "target");

    if (!command) {
        parse_options(NULL, argc, argv); /* --help and --version. */
        command_fail(COMMAND_USAGE,
                     "a command is missing: there are target, run and list (castprobe --help)");
    }
    if (!is_run && !is_target && strcmp(command, "list") != 0) {
        static const char *const commands[] = {"target", "run", "list", NULL};

        command_fail(COMMAND_USAGE,
                     "unknown command '%s'%s: there are target, run and list (castprobe --help)",
                     command, did_you_mean(command, commands));
    }
    argv[1] = argv[0];
    struct options o = parse_options(command, argc - 1, argv + 1);
    int n_args = argc - 1 - optind;
    if (is_run && !n_args) {
        command_fail(COMMAND_USAGE, "run: TARGET is missing (castprobe --help)");
    }
    if (n_args > is_run) {
        command_fail(COMMAND_USAGE, "unexpected argument '%s' (castprobe --help)",
                     argv[1 + optind + is_run]);
    }
    signal(SIGPIPE, SIG_IGN);
    if (is_run) {
        return run(&o, argv[1 + optind]);
    }
    if (is_target) {
        return target_run(o.device, o.gid_index, o.port, o.once);
    }
    list();
    return 0;
}
