/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernel is told: lines of ip(8), and of sysctl(8).
 *
 * Neighbours are told too, since castd knows them.  For the kernel to answer their questions,
 * the node's address on each device is enough.
 *
 * SIDs are routes with an action (seg6local).  After an action the kernel looks the packet's new
 * destination up like any other, so the routes are such that no program takes a way that it does
 * not name:
 *
 *     locator of a neighbour     straight there
 *     of any other node          only its address and its functions, 5f00:0:<id>:e000::/51
 *     the rest of the block      unreachable
 *     KERNEL_LAST_TABLE          what End.DT6 has taken out: hosts behind agents that are neighbours
 *
 * Unreachable packets are those that the kernel counts as without a route.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "castfwd/castfwd.h"
#include "ctl/registry/values.h"
#include "lib/ioam.h"
#include "openvswitch/dynamic-string.h"
#include "util.h"

#define ROUTE                "route replace "
#define UNREACHABLE          "unreachable "
#define LAST_METRIC          " metric 2048" /* others have 1024. */
/* Last, since End.DT6 has such words, too. */
#define IN_LAST_TABLE        " table " KERNEL_LAST_TABLE OURS
#define OURS                 " proto " KERNEL_ROUTE_PROTOCOL
#define END_DT6              "End.DT6 table " KERNEL_LAST_TABLE

/* An attempt to give a prefix of its own an action. */
#define TRIAL_PREFIX(NUMBER) "5f00:0:" NUMBER "::/48 "
#define TRIAL(NUMBER, ACTION) \
    "route add " TRIAL_PREFIX(NUMBER) "encap seg6local action " ACTION " dev " KERNEL_ANCHOR "\n"

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

const char kernel_trial[] =
    "link add " KERNEL_ANCHOR " type dummy\n"
    "link add " KERNEL_ANCHOR " type bridge\n" /* if there are no dummies. */
    "link set dev " KERNEL_ANCHOR " up\n" TRIAL("1", "End flavors next-csid lblen 32 nflen 16")
        TRIAL("2", "End.X nh6 5f00::1 flavors next-csid lblen 32 nflen 32")
            TRIAL("3", "End.X nh6 5f00::1") TRIAL("4", "End.DT6 table " KERNEL_LAST_TABLE)
                TRIAL("5", "End.DX6 nh6 5f00::1") "route show\n"
                                                  "link show dev " KERNEL_ANCHOR "\n";

/* Has the kernel understood the attempt on this prefix so that it has these words? */
static bool
trial_has(const char *answer, const char *prefix, const char *words)
{
    const char *line = strstr(answer, prefix);
    char *copy = line ? xmemdup0(line, strcspn(line, "\n")) : xstrdup("");
    bool found = strstr(copy, words) != NULL;

    free(copy);
    return found;
}

/* 6.1 takes End.X with a flavor that it does not know, and leaves the flavor out. */
void
kernel_abilities_parse(const char *answer, struct kernel_abilities *a)
{
    *a = (struct kernel_abilities){
        .known = true,
        .anchor = strstr(answer, "    dummy ")    ? "dummy"
                  : strstr(answer, "    bridge ") ? "bridge"
                                                  : NULL,
        .end_next_csid = trial_has(answer, TRIAL_PREFIX("1"), "End flavors next-csid"),
        .end_x_next_csid = trial_has(answer, TRIAL_PREFIX("2"), "flavors next-csid"),
        .end_x = trial_has(answer, TRIAL_PREFIX("3"), "End.X"),
        .end_dt6 = trial_has(answer, TRIAL_PREFIX("4"), "End.DT6"),
        .end_dx6 = trial_has(answer, TRIAL_PREFIX("5"), "End.DX6"),
    };
}

static void
add_sid_route(const struct in6_addr *prefix, unsigned plen, const char *action, struct svec *rules)
{
    rule_add(rules, ROUTE "%s/%u encap seg6local action %s count dev " KERNEL_ANCHOR OURS,
             ip6_text(prefix), plen, action);
}

/* What a port's SIDs have as next hop.  The kernel looks that up like a destination, and only the
 * newest can be told a device.  So each port has an address that is routed to it and to nothing else,
 * of the prefix for what is to be discarded (RFC 6666): no node has a route to it for packets that are
 * sent there. */
static struct in6_addr
port_next_hop(uint16_t number)
{
    return (struct in6_addr){
        .s6_addr = {[0] = 1, [14] = (uint8_t) (number >> 8), [15] = (uint8_t) number}};
}

/* They go by a gateway of link scope: one of wider scope would have to be routed to the same device,
 * and of two links to a node one is not. */
static void
add_next_hops(const struct node_config *c, struct svec *rules)
{
    for (size_t i = 0; i < c->n_ports; i++) {
        const struct port_config *port = &c->ports[i];
        struct in6_addr hop = port_next_hop(port->number);
        char peer_mac[MAC_TEXT_SIZE];

        mac_format(port->peer_mac, peer_mac);
        rule_add(rules, "neighbour replace fe80::%x lladdr %s dev %s nud permanent", port->number,
                 peer_mac, port->name);
        rule_add(rules, ROUTE "%s/128 via fe80::%x dev %s" OURS, ip6_text(&hop), port->number,
                 port->name);
    }
    /* Of a port that is down. */
    rule_add(rules, ROUTE UNREACHABLE "100::/64" LAST_METRIC OURS);
}

static void
add_port_sid(const struct node_config *c, const struct kernel_abilities *a,
             const struct sid_config *sid, struct svec *rules)
{
    struct in6_addr hop = port_next_hop(sid->port);
    const char *text = ip6_text(&hop);
    char *action = NULL;

    if (!forwarder_find_port(c, sid->port)) {
        return;
    }
    if (sid->behaviour == SID_END_DX6 && a->end_dx6) {
        action = xasprintf("End.DX6 nh6 %s", text);
    } else if (sid->behaviour == SID_END_X && a->end_x) {
        action = xasprintf("End.X nh6 %s", text);
    } else if (sid->behaviour == SID_UA && a->end_x_next_csid) {
        action = xasprintf("End.X nh6 %s flavors next-csid lblen %u nflen %d", text, sid->block_len,
                           sid->plen - sid->block_len);
    }
    if (action) {
        add_sid_route(&sid->prefix, sid->plen, action, rules);
    }
    free(action);
}

/* The kernel has no USD.  End.DT6 for argument zero does the same for packets without SRH; one
 * with segments left it drops. */
static void
add_un(const struct kernel_abilities *a, const struct sid_config *sid, struct svec *rules)
{
    char *action = xasprintf("End flavors next-csid lblen %u nflen %d", sid->block_len,
                             sid->plen - sid->block_len);

    if (a->end_next_csid) {
        add_sid_route(&sid->prefix, sid->plen, action, rules);
    }
    if (a->end_dt6) {
        add_sid_route(&sid->prefix, 128, END_DT6, rules);
    }
    free(action);
}

static void
add_sid(const struct node_config *c, const struct kernel_abilities *a, const struct sid_config *sid,
        struct svec *rules)
{
    switch (sid->behaviour) {
    case SID_UN: add_un(a, sid, rules); break;
    case SID_UA:
    case SID_END_X:
    case SID_END_DX6: add_port_sid(c, a, sid, rules); break;
    case SID_END_DT6:
        if (a->end_dt6) {
            add_sid_route(&sid->prefix, sid->plen, END_DT6, rules);
        }
        break;
    case SID_END:
    case SID_END_MT:
    case SID_RESPONSE:
    case SID_END_REPLICATE: break;
    }
}

static void
add_sids(const struct node_config *c, const struct kernel_abilities *a, struct svec *rules)
{
    if (!c->n_sids || !a->anchor) {
        return;
    }
    add_next_hops(c, rules);
    rule_add(rules, "sysctl net/ipv6/conf/" KERNEL_ANCHOR "/disable_ipv6=0");
    for (size_t i = 0; i < c->n_sids; i++) {
        add_sid(c, a, &c->sids[i], rules);
    }
}

static bool
is_locator(const struct route_config *r)
{
    struct in6_addr locator = node_locator(node_id_of(&r->prefix));

    return r->plen == NODE_LOCATOR_PLEN && IN6_ARE_ADDR_EQUAL(&r->prefix, &locator);
}

static void
add_route(const struct node_config *c, const struct route_config *r, struct svec *rules)
{
    const struct port_config *port = forwarder_port(c, r);
    char *how = xasprintf("via %s dev %s onlink", ip6_text(&r->next_hop), port->name);
    uint16_t id = node_id_of(&r->prefix);
    struct in6_addr address = node_address(id);

    if (is_locator(r) && !IN6_ARE_ADDR_EQUAL(&port->peer_address, &address)) {
        struct in6_addr functions = node_sid(id, USID_FIRST_FUNCTION);

        rule_add(rules, ROUTE "%s/128 %s" OURS, ip6_text(&address), how);
        rule_add(rules, ROUTE "%s/51 %s" OURS, ip6_text(&functions), how);
    } else {
        rule_add(rules, ROUTE "%s/%d %s" OURS, ip6_text(&r->prefix), r->plen, how);
    }
    if (port->role == ROLE_AGENT && !address_is_in_sid_space(&r->prefix)) {
        rule_add(rules, ROUTE "%s/%d %s" IN_LAST_TABLE, ip6_text(&r->prefix), r->plen, how);
    }
    free(how);
}

char *
kernel_rules(const struct node_config *c, const struct kernel_abilities *a, struct svec *rules)
{
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
        add_route(c, &c->routes[i], rules);
    }
    add_sids(c, a, rules);
    /* Any other route to the same prefix comes first. */
    rule_add(rules, ROUTE UNREACHABLE SID_BLOCK_TEXT LAST_METRIC OURS);
    svec_sort_unique(rules);
    return NULL;
}

static bool
is_unreachable(const char *route)
{
    return !strncmp(route, UNREACHABLE, strlen(UNREACHABLE));
}

/* Is a route in KERNEL_LAST_TABLE?  End.DT6 has such words, too, in another place; ip shows no protocol
 * when it is asked for one. */
static bool
is_in_last_table(const char *route)
{
    return strstr(route, IN_LAST_TABLE) || strstr(route, " table " KERNEL_LAST_TABLE " metric ");
}

/* What ip knows a route by, from the words that it shows or is told: the prefix, and table and metric,
 * of which there are two each. */
static char *
route_key(const char *route)
{
    const char *prefix = route + (is_unreachable(route) ? strlen(UNREACHABLE) : 0);
    int len = (int) strcspn(prefix, " ");

    return xasprintf("%.*s%s%s%s", len, prefix, memchr(prefix, '/', (size_t) len) ? "" : "/128",
                     strstr(route, LAST_METRIC) ? LAST_METRIC : "",
                     is_in_last_table(route) ? IN_LAST_TABLE : OURS);
}

char *
kernel_route_removal(const char *shown)
{
    char *key = route_key(shown);
    char *removal = xasprintf("route del %s%s", is_unreachable(shown) ? UNREACHABLE : "", key);

    free(key);
    return removal;
}

bool
kernel_rules_route(const struct svec *rules, const char *shown)
{
    char *wanted = route_key(shown);
    bool found = false;

    for (size_t i = 0; i < rules->n && !found; i++) {
        if (!strncmp(rules->names[i], ROUTE, strlen(ROUTE))) {
            char *key = route_key(rules->names[i] + strlen(ROUTE));

            found = !strcmp(key, wanted);
            free(key);
        }
    }
    free(wanted);
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

/* A route that goes another way now is replaced.  Settings of links, and sysctls other than those of
 * kernel_rules_undo(), are left as they are. */
char *
kernel_rules_remove(const struct svec *from, const struct svec *to)
{
    static const struct {
        const char *made, *undo;
    } verbs[] = {
        {"ioam namespace add ", "ioam namespace del "},
        {"address replace ", "address del "},
        {"neighbour replace ", "neighbour del "},
        {ROUTE, "route del "},
    };
    struct ds s = DS_EMPTY_INITIALIZER;
    struct svec old;

    svec_diff(from, to, &old, NULL, NULL);
    for (size_t i = 0; i < old.n; i++) {
        for (size_t j = 0; j < ARRAY_SIZE(verbs); j++) {
            size_t len = strlen(verbs[j].made);
            bool is_route = !strcmp(verbs[j].made, ROUTE);

            if (!strncmp(old.names[i], verbs[j].made, len)
                && !(is_route && kernel_rules_route(to, old.names[i] + len))) {
                ds_put_format(&s, "%s%s\n", verbs[j].undo, old.names[i] + len);
            }
        }
    }
    svec_destroy(&old);
    return ds_steal_cstr(&s);
}
