/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel as a node's forwarder, by ip(8) and sysctl(8).
 *
 * Everything is told again each time, which changes nothing where it is so
 * already; after that goes what is not wanted any more.  Without this agent the
 * kernel goes on.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "castfwd/castfwd.h"
#include "ctl/values.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/json.h"
#include "util.h"

/* The rules that begin with 'command', as lines, without that. */
static char *
lines_of(const struct svec *rules, const char *command)
{
    struct ds s = DS_EMPTY_INITIALIZER;
    size_t len = strlen(command);

    for (size_t i = 0; i < rules->n; i++) {
        if (!strncmp(rules->names[i], command, len)) {
            ds_put_format(&s, "%s\n", rules->names[i] + len);
        }
    }
    return ds_steal_cstr(&s);
}

static char *
run_sysctl(const struct forwarder *f, const struct svec *rules)
{
    struct svec argv = SVEC_EMPTY_INITIALIZER;
    char *lines = lines_of(rules, "sysctl ");
    char *save = NULL;
    char *error;

    svec_add(&argv, "sysctl");
    svec_add(&argv, "-qw");
    for (char *line = strtok_r(lines, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        svec_add(&argv, line);
    }
    svec_terminate(&argv);
    error = command_run(f->devices.netns_fd, (const char *const *) argv.names, NULL, NULL);
    svec_destroy(&argv);
    free(lines);
    return error;
}

/* Those of the rules that are ip's, in an order in which each has what it needs. */
static char *
run_ip(const struct forwarder *f, const struct svec *rules)
{
    static const char *const commands[] = {"link ", "address ", "neighbour ", "route "};
    static const char *const argv[] = {"ip", "-6", "-batch", "-", NULL};
    struct ds s = DS_EMPTY_INITIALIZER;

    for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
        for (size_t j = 0; j < rules->n; j++) {
            if (!strncmp(rules->names[j], commands[i], strlen(commands[i]))) {
                ds_put_format(&s, "%s\n", rules->names[j]);
            }
        }
    }
    char *error = command_run(f->devices.netns_fd, argv, ds_cstr(&s), NULL);
    ds_destroy(&s);
    return error;
}

/* Is the route to this prefix, in ip's words, one of the rules? */
static bool
is_wanted(const struct svec *rules, const char *prefix)
{
    char *text = strchr(prefix, '/') ? xstrdup(prefix) : xasprintf("%s/128", prefix);
    char *one = xasprintf("route replace %s ", text);
    char *other = xasprintf("route replace unreachable %s ", text);
    bool wanted = false;

    for (size_t i = 0; i < rules->n; i++) {
        wanted |= !strncmp(rules->names[i], one, strlen(one))
                  || !strncmp(rules->names[i], other, strlen(other));
    }
    free(other);
    free(one);
    free(text);
    return wanted;
}

/* Routes that an agent of this node has made, this one or one before it. */
static char *
remove_routes(const struct forwarder *f, const struct svec *rules)
{
    static const char *const show[] = {"ip", "-6", "route", "show", "proto", KERNEL_ROUTE_PROTOCOL,
                                       NULL};
    static const char *const batch[] = {"ip", "-6", "-batch", "-", NULL};
    struct ds s = DS_EMPTY_INITIALIZER;
    char *routes = NULL, *save = NULL;
    char *error = command_run(f->devices.netns_fd, show, NULL, &routes);

    for (char *line = strtok_r(routes, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        const char *type = !strncmp(line, "unreachable ", 12) ? "unreachable " : "";
        char *prefix = line + strlen(type);

        prefix[strcspn(prefix, " ")] = '\0';
        if (!is_wanted(rules, prefix)) {
            ds_put_format(&s, "route del %s%s proto " KERNEL_ROUTE_PROTOCOL "\n", type, prefix);
        }
    }
    if (!error && s.length) {
        error = command_run(f->devices.netns_fd, batch, ds_cstr(&s), NULL);
    }
    ds_destroy(&s);
    free(routes);
    return error;
}

/* Addresses and neighbours of ports that are none any more.  Their devices may be gone, and these then
 * with them. */
static void
remove_rest(const struct forwarder *f, const struct svec *rules)
{
    static const char *const argv[] = {"ip", "-6", "-force", "-batch", "-", NULL};
    struct svec old;
    struct ds s = DS_EMPTY_INITIALIZER;

    svec_diff(&f->rules, rules, &old, NULL, NULL);
    for (size_t i = 0; i < old.n; i++) {
        char *word = old.names[i];
        char *verb = strstr(word, " replace ");

        if (verb && (!strncmp(word, "address ", 8) || !strncmp(word, "neighbour ", 10))) {
            ds_put_format(&s, "%.*s del %s\n", (int) (verb - word), word,
                          verb + strlen(" replace "));
        }
    }
    if (s.length) {
        free(command_run(f->devices.netns_fd, argv, ds_cstr(&s), NULL));
    }
    ds_destroy(&s);
    svec_destroy(&old);
}

static char *
kernel_apply(struct forwarder *f)
{
    struct svec rules = SVEC_EMPTY_INITIALIZER;
    char *error = kernel_rules(&f->config, &rules);

    error = error ? error : run_sysctl(f, &rules);
    if (!error) {
        remove_rest(f, &rules);
    }
    error = error ? error : run_ip(f, &rules);
    error = error ? error : remove_routes(f, &rules);
    if (!error) {
        svec_swap(&f->rules, &rules);
    }
    svec_destroy(&rules);
    return error;
}

/* The devices are all that may change under it. */
static char *
kernel_identity(const struct forwarder *f OVS_UNUSED)
{
    return xstrdup("kernel");
}

static struct json *
kernel_drops(const struct forwarder *f)
{
    static const char *const argv[] = {"cat", "/proc/net/snmp6", NULL};
    static const struct {
        const char *counter, *reason;
    } reasons[] = {
        {"Ip6InHdrErrors", "hop_limit"},
        {"Ip6InNoRoutes", "no_route"},
        {"Ip6InTooBigErrors", "too_long"},
    };
    struct json *drops = json_object_create();
    char *text = NULL;

    free(command_run(f->devices.netns_fd, argv, NULL, &text));
    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
        const char *line = text ? strstr(text, reasons[i].counter) : NULL;
        unsigned long long n = line ? strtoull(line + strlen(reasons[i].counter), NULL, 10) : 0;

        json_object_put(drops, reasons[i].reason, json_integer_create((long long int) n));
    }
    free(text);
    return drops;
}

const struct backend kernel_backend = {
    .role = NODE_ROUTER,
    .apply = kernel_apply,
    .identity = kernel_identity,
    .drops = kernel_drops,
};
