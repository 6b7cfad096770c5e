/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel as a node's forwarder, by ip(8) and sysctl(8).
 *
 * At first the kernel is told everything.  That changes nothing where it is so already.  Then
 * the routes of an earlier agent that are no longer wanted are removed.  After that the kernel
 * is told only what changes.  Without this agent the kernel goes on.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "castfwd/castfwd.h"
#include "ctl/registry/values.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/json.h"
#include "openvswitch/vlog.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(kernel);

static const char *
yes_no(bool b)
{
    return b ? "yes" : "no";
}

static char *
run_sysctl(const struct forwarder *f, const struct svec *rules)
{
    struct svec argv = SVEC_EMPTY_INITIALIZER;
    char *error = NULL;

    svec_add(&argv, "sysctl");
    svec_add(&argv, "-qw");
    for (size_t i = 0; i < rules->n; i++) {
        if (!strncmp(rules->names[i], "sysctl ", strlen("sysctl "))) {
            svec_add(&argv, rules->names[i] + strlen("sysctl "));
        }
    }
    if (argv.n > 2) {
        svec_terminate(&argv);
        error = command_run(&f->patience, (const char *const *) argv.names, NULL, NULL);
    }
    svec_destroy(&argv);
    return error;
}

/* Has ip run these commands, if there are any. */
static char *
run_ip(const struct forwarder *f, const char *commands)
{
    static const char *const argv[] = {"ip", "-6", "-batch", "-", NULL};

    return commands[0] ? command_run(&f->patience, argv, commands, NULL) : NULL;
}

/* Has ip add its part of the rules, in an order in which each has what it needs. */
static char *
add_rules(const struct forwarder *f, const struct svec *rules)
{
    static const char *const commands[] = {"link ", "address ", "neighbour ", "route ", "ioam "};
    struct ds s = DS_EMPTY_INITIALIZER;

    for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
        for (size_t j = 0; j < rules->n; j++) {
            if (!strncmp(rules->names[j], commands[i], strlen(commands[i]))) {
                ds_put_format(&s, "%s\n", rules->names[j]);
            }
        }
    }
    char *error = run_ip(f, ds_cstr(&s));
    ds_destroy(&s);
    return error;
}

/* Removes namespaces that are to be added: those of an earlier agent of this node would be refused. */
static void
remove_namespaces(const struct forwarder *f, const struct svec *rules)
{
    for (size_t i = 0; i < rules->n; i++) {
        const char *name = strstr(rules->names[i], "ioam namespace add ");

        if (name) {
            char *command = xasprintf("ioam namespace del %s\n", strrchr(name, ' ') + 1);

            free(run_ip(f, command)); /* mostly there is none. */
            free(command);
        }
    }
}

/* Removes routes that an earlier agent of this node has made and that are not among the rules. */
static char *
remove_routes(const struct forwarder *f, const struct svec *rules)
{
    static const char *const show[] = {
        "ip", "-6", "route", "show", "table", "all", "proto", KERNEL_ROUTE_PROTOCOL, NULL};
    struct ds s = DS_EMPTY_INITIALIZER;
    char *routes = NULL, *save = NULL;
    char *error = command_run(&f->patience, show, NULL, &routes);

    for (char *line = strtok_r(routes, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (!kernel_rules_route(rules, line)) {
            char *removal = kernel_route_removal(line);

            ds_put_format(&s, "%s\n", removal);
            free(removal);
        }
    }
    error = error ? error : run_ip(f, ds_cstr(&s));
    ds_destroy(&s);
    free(routes);
    return error;
}

/* Removes what this agent has made and 'rules' does not have.  Devices may be gone, and with them
 * what was theirs. */
static void
remove_rest(const struct forwarder *f, const struct svec *rules)
{
    static const char *const argv[] = {"ip", "-6", "-force", "-batch", "-", NULL};
    char *commands = kernel_rules_remove(&f->rules, rules);
    struct svec undone = SVEC_EMPTY_INITIALIZER;

    kernel_rules_undo(&f->rules, rules, &undone);
    for (size_t i = 0; i < undone.n; i++) {
        struct svec one = {.names = &undone.names[i], .n = 1};

        free(run_sysctl(f, &one));
    }
    svec_destroy(&undone);
    if (commands[0]) {
        free(command_run(&f->patience, argv, commands, NULL));
    }
    free(commands);
}

/* Makes the device that SIDs need, or removes it if there are none.  The kernel is another one then:
 * what was told of it has gone with it. */
static char *
prepare_anchor(struct forwarder *f)
{
    bool is_there = device_index(f, KERNEL_ANCHOR) != 0;
    bool wanted = f->config.n_sids && f->abilities.anchor;
    char *commands, *error;

    if (is_there == wanted) {
        return NULL;
    }
    commands = wanted ? xasprintf("link add " KERNEL_ANCHOR " type %s\n"
                                  "link set dev " KERNEL_ANCHOR " up\n",
                                  f->abilities.anchor)
                      : xstrdup("link del " KERNEL_ANCHOR "\n");
    error = run_ip(f, commands);
    free(commands);
    free(f->identity);
    f->identity = NULL;
    return error;
}

/* A device that is down would have no routes, and nothing would say why. */
static char *
kernel_prepare(struct forwarder *f)
{
    for (size_t i = 0; i < f->config.n_ports; i++) {
        if (!device_is_up(f, f->config.ports[i].name)) {
            return xasprintf("port %s: the network device is down", f->config.ports[i].name);
        }
    }
    return prepare_anchor(f);
}

/* Finds out what this kernel can do, in a namespace that is thrown away.  Once: it does not change. */
static char *
try_kernel(struct forwarder *f)
{
    static const char *const argv[] = {"unshare", "--net",  "ip", "-6", "-details",
                                       "-force",  "-batch", "-",  NULL};
    char *answer = NULL;

    if (f->abilities.known || !f->config.n_sids) {
        return NULL;
    }
    free(command_run(&f->patience, argv, kernel_trial, &answer)); /* some attempts fail. */
    kernel_abilities_parse(answer, &f->abilities);
    free(answer);
    if (!f->abilities.anchor) {
        f->abilities.known = false;
        return xstrdup(
            "trying what the kernel can do with SIDs: it has neither dummy nor bridge, or "
            "castfwd may not make a network namespace");
    }
    VLOG_INFO(
        "SIDs of this kernel: End with NEXT-CSID: %s; End.X: %s, with NEXT-CSID: %s; End.DT6: %s; "
        "End.DX6: %s",
        yes_no(f->abilities.end_next_csid), yes_no(f->abilities.end_x),
        yes_no(f->abilities.end_x_next_csid), yes_no(f->abilities.end_dt6),
        yes_no(f->abilities.end_dx6));
    return NULL;
}

static char *
kernel_make_rules(struct forwarder *f, struct svec *rules)
{
    char *error = try_kernel(f);

    return error ? error : kernel_rules(&f->config, &f->abilities, rules);
}

static char *
kernel_change(struct forwarder *f, const struct svec *rules)
{
    bool first = !f->rules.n;
    struct svec new;

    svec_diff(&f->rules, rules, NULL, NULL, &new);
    char *error = run_sysctl(f, &new);
    if (!error) {
        remove_rest(f, rules);
        remove_namespaces(f, &new);
    }
    error = error ? error : add_rules(f, &new);
    error = error || !first ? error : remove_routes(f, rules);
    svec_destroy(&new);
    return error;
}

/* The devices are all that may change under it. */
static char *
kernel_identity(const struct forwarder *f)
{
    return xasprintf("kernel %d", device_index(f, KERNEL_ANCHOR));
}

/* Lines "PREFIX  encap seg6local action ACTION packets N bytes N errors N ...". */
static char *
kernel_statistics(const struct forwarder *f)
{
    static const char *const argv[] = {"ip",   "-6",    "-statistics",         "route",
                                       "show", "proto", KERNEL_ROUTE_PROTOCOL, NULL};
    char *routes = NULL;

    free(command_run(&f->patience, argv, NULL, &routes));
    return routes;
}

static bool
kernel_counted(const struct sid_config *sid, const char *statistics, unsigned long long *packets)
{
    char *key = xasprintf("%s/%u  encap seg6local ", ip6_text(&sid->prefix), sid->plen);
    const char *line = strstr(statistics, key);

    *packets = number_after(line, " packets ");
    free(key);
    return line != NULL;
}

/* Packets on which the action of a SID has failed: it found nothing to do, no hops were left, or the
 * device was down.  The kernel does not tell which. */
static unsigned long long
count_errors(const struct forwarder *f)
{
    static const char key[] = " errors ";
    char *statistics = kernel_statistics(f);
    unsigned long long n = 0;

    for (const char *s = statistics; (s = strstr(s, key)); s++) {
        n += number_after(s, key);
    }
    free(statistics);
    return n;
}

static struct json *
kernel_drops(const struct forwarder *f)
{
    static const struct {
        const char *counter, *reason;
    } reasons[] = {
        {"Ip6InHdrErrors", "hop_limit"},
        {"Ip6InNoRoutes", "no_route"},
        {"Ip6InTooBigErrors", "too_long"},
    };
    struct json *drops = json_object_create();
    char *text = proc_net("snmp6");

    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
        unsigned long long n = number_after(text, reasons[i].counter);

        json_object_put(drops, reasons[i].reason, json_integer_create((long long int) n));
    }
    json_object_put(drops, "sid_error", json_integer_create((long long int) count_errors(f)));
    free(text);
    return drops;
}

const struct backend kernel_backend = {
    .needs_up = true,
    .rules = kernel_make_rules,
    .prepare = kernel_prepare,
    .change = kernel_change,
    .identity = kernel_identity,
    .drops = kernel_drops,
    .statistics = kernel_statistics,
    .counted = kernel_counted,
};
