/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernel is told: lines of ip(8), and of sysctl(8).
 *
 * Neighbours are told too, since castd knows them.  For the kernel to answer their questions,
 * the node's address on each device is enough.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "castfwd/castfwd.h"
#include "ctl/registry/values.h"
#include "lib/ioam.h"
#include "openvswitch/dynamic-string.h"
#include "util.h"

static void
add_port(const struct node_config *c, const struct port_config *port, struct svec *rules)
{
    char mac[MAC_TEXT_SIZE], peer_mac[MAC_TEXT_SIZE];

    mac_format(port->mac, mac);
    mac_format(port->peer_mac, peer_mac);
    rule_add(rules, "sysctl net/ipv6/conf/%s/disable_ipv6=0", port->name);
    rule_add(rules, "link set dev %s address %s", port->name, mac);
    rule_add(rules, "address replace %s/128 dev %s nodad", ip6_text(&c->address), port->name);
    rule_add(rules, "neighbour replace %s lladdr %s dev %s nud permanent",
             ip6_text(&port->peer_address), peer_mac, port->name);
    if (c->congestion.trace) {
        rule_add(rules, "sysctl net/ipv6/conf/%s/ioam6_enabled=1", port->name);
    }
}

char *
kernel_rules(const struct node_config *c, struct svec *rules)
{
    struct in6_addr locator = node_locator(c->id);
    char *error = forwarder_check_ports(c);

    if (error) {
        return error;
    }
    if (c->n_trees) {
        return xasprintf("group %s: a router does not replicate", c->trees[0].group);
    }
    rule_add(rules, "sysctl net/ipv6/conf/all/forwarding=1");
    if (c->congestion.trace) { /* an IOAM transit node (RFC 9486). */
        rule_add(rules, "sysctl net/ipv6/ioam6_id=%u", c->id);
        rule_add(rules, "ioam namespace add %d", IOAM_NAMESPACE);
    }
    for (size_t i = 0; i < c->n_ports; i++) {
        add_port(c, &c->ports[i], rules);
    }
    for (size_t i = 0; i < c->n_routes; i++) {
        const struct route_config *r = &c->routes[i];

        rule_add(rules, "route replace %s/%d via %s dev %s onlink proto " KERNEL_ROUTE_PROTOCOL,
                 ip6_text(&r->prefix), r->plen, ip6_text(&r->next_hop), forwarder_port(c, r)->name);
    }
    /* A packet to the own locator that nothing answers to must not go elsewhere. */
    rule_add(rules, "route replace unreachable %s/%d proto " KERNEL_ROUTE_PROTOCOL,
             ip6_text(&locator), NODE_LOCATOR_PLEN);
    svec_sort_unique(rules);
    return NULL;
}

bool
kernel_rules_route(const struct svec *rules, const char *prefix)
{
    char *text = strchr(prefix, '/') ? xstrdup(prefix) : xasprintf("%s/128", prefix);
    char *one = xasprintf("route replace %s ", text);
    char *other = xasprintf("route replace unreachable %s ", text);
    bool found = false;

    for (size_t i = 0; i < rules->n; i++) {
        found |= !strncmp(rules->names[i], one, strlen(one))
                 || !strncmp(rules->names[i], other, strlen(other));
    }
    free(other);
    free(one);
    free(text);
    return found;
}

void
kernel_rules_undo(const struct svec *from, const struct svec *to, struct svec *undone)
{
    static const char enabled[] = "/ioam6_enabled=1";
    struct svec old;

    svec_diff(from, to, &old, NULL, NULL);
    for (size_t i = 0; i < old.n; i++) {
        const char *at = strstr(old.names[i], enabled);

        if (at) {
            rule_add(undone, "%.*s=0", (int) (strchr(at, '=') - old.names[i]), old.names[i]);
        }
    }
    svec_destroy(&old);
}

/* A route that goes another way now is replaced.  Links, and sysctls other than those of
 * kernel_rules_undo(), are left as they are. */
char *
kernel_rules_remove(const struct svec *from, const struct svec *to)
{
    struct ds s = DS_EMPTY_INITIALIZER;
    struct svec old;

    svec_diff(from, to, &old, NULL, NULL);
    for (size_t i = 0; i < old.n; i++) {
        char *what = old.names[i];
        char *verb = strstr(what, " replace ");
        char *rest = verb ? verb + strlen(" replace ") : NULL;

        if (!strncmp(what, "ioam namespace add ", 19)) {
            ds_put_format(&s, "ioam namespace del %s\n", what + 19);
            continue;
        }
        char *prefix = rest && !strncmp(rest, "unreachable ", 12) ? rest + 12 : rest;

        if (!verb) {
            continue;
        }
        if (!strncmp(what, "route ", 6)) {
            char *copy = xmemdup0(prefix, strcspn(prefix, " "));
            bool replaced = kernel_rules_route(to, copy);

            free(copy);
            if (replaced) {
                continue;
            }
        }
        ds_put_format(&s, "%.*s del %s\n", (int) (verb - what), what, rest);
    }
    svec_destroy(&old);
    return ds_steal_cstr(&s);
}
