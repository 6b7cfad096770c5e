/* SPDX-License-Identifier: Apache-2.0
 *
 * What Open vSwitch is told.
 *
 *     table 0   what comes in: frames of VLANs are dropped; neighbour solicitations and echo
 *               requests for the node's address are answered; IPv6 for the port's own MAC
 *               address goes on; from source agents only what they may send goes on
 *     table 1   by destination: a group's SID, from its source agent, to its OpenFlow group;
 *               own SIDs to their actions; prefixes to a port; the longest prefix has the highest
 *               priority
 *     table 2   the end of an answer to a solicitation: the option can only be written once the
 *               type is that of an advertisement
 *     table 3   what uN has shifted: to neighbours only, whatever the routes are, or back to table
 *               1 if the next uSID is this node's again.  A container has no more than six.
 *
 * An OpenFlow group of type 'all' is a replication segment (RFC 9524).  Each bucket sends a
 * copy of its own with the hop limit decremented, the child's SID as destination and the MAC
 * addresses of the link.  Open vSwitch asks nobody for MAC addresses: castd tells them.
 *
 * The in_port is cleared, because a router may have to send a packet back to where it came
 * from, and Open vSwitch would not.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "castfwd/castfwd.h"
#include "ctl/registry/values.h"
#include "lib/usid.h"
#include "openvswitch/dynamic-string.h"
#include "util.h"

enum {
    DROP_OTHER,
    DROP_NO_ROUTE,
    DROP_SID_UNKNOWN,
    DROP_HOP_LIMIT,
    DROP_SOURCE_GUARD,
    DROP_VLAN,
    DROP_OUTER_SOURCE,
    DROP_SID_UPPER,
    DROP_USID_UNKNOWN,
    DROP_USID_ZERO,
    DROP_PROGRAM_GUARD,
};

const char *const ovs_drops[] = {
    [DROP_OTHER] = "not_for_node",          [DROP_NO_ROUTE] = "no_route",
    [DROP_SID_UNKNOWN] = "sid_unknown",     [DROP_HOP_LIMIT] = "hop_limit",
    [DROP_SOURCE_GUARD] = "source_guard",   [DROP_VLAN] = "vlan",
    [DROP_OUTER_SOURCE] = "outer_source",   [DROP_SID_UPPER] = "sid_upper",
    [DROP_USID_UNKNOWN] = "usid_unknown",   [DROP_USID_ZERO] = "usid_zero",
    [DROP_PROGRAM_GUARD] = "program_guard", NULL,
};

#define ROUTE "actions=load:0->NXM_OF_IN_PORT[],resubmit(,1)"

static void
add_drop(struct svec *, int why, int table, const char *format, ...) OVS_PRINTF_FORMAT(4, 5);

static void
add_drop(struct svec *rules, int why, int table, const char *format, ...)
{
    va_list args;
    char *match;

    va_start(args, format);
    match = xvasprintf(format, args);
    va_end(args);
    rule_add(rules, "flow cookie=0x%x,table=%d,%s actions=drop",
             OVS_DROP_COOKIE + (unsigned int) why, table, match);
    free(match);
}

/* Adds the answers to solicitations, with the router, solicited and override flags, and to echo
 * requests. */
static void
add_answers(const struct node_config *c, const struct port_config *port, struct svec *rules)
{
    const char *address = ip6_text(&c->address);
    char mac[MAC_TEXT_SIZE];

    mac_format(port->mac, mac);
    rule_add(rules,
             "flow table=0,priority=300,in_port=%u,icmp6,nw_ttl=255,icmpv6_type=135,icmpv6_code=0,"
             "nd_target=%s actions=move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[],set_field:%s->eth_src,"
             "move:NXM_NX_IPV6_SRC[]->NXM_NX_IPV6_DST[],set_field:%s->ipv6_src,"
             "set_field:136->icmpv6_type,set_field:2->nd_options_type,"
             "set_field:0xe0000000->nd_reserved,resubmit(,2)",
             port->number, address, mac, address);
    rule_add(rules,
             "flow table=2,priority=100,in_port=%u,icmp6,icmpv6_type=136,icmpv6_code=0 "
             "actions=set_field:%s->nd_tll,IN_PORT",
             port->number, mac);
    /* The route takes one of the 65 hops. */
    rule_add(
        rules,
        "flow table=0,priority=290,in_port=%u,dl_dst=%s,icmp6,ipv6_dst=%s,icmpv6_type=128,"
        "icmpv6_code=0 actions=move:NXM_NX_IPV6_SRC[]->NXM_NX_XXREG0[],set_field:%s->ipv6_src,"
        "move:NXM_NX_XXREG0[]->NXM_NX_IPV6_DST[],set_field:129->icmpv6_type,set_field:65->nw_ttl,"
        "load:0->NXM_OF_IN_PORT[],resubmit(,1)",
        port->number, mac, address, address);
}

/* Of SIDs, a source agent with a list may use those on it only.  'from' matches what it sends. */
static void
add_programs(const struct port_config *port, const char *from, struct svec *rules)
{
    for (size_t i = 0; i < port->n_programs; i++) {
        rule_add(rules, "flow table=0,priority=260,%s,ipv6_dst=%s/%d " ROUTE, from,
                 ip6_text(&port->programs[i].address), port->programs[i].plen);
    }
    if (port->n_programs) {
        rule_add(rules, "flow table=0,priority=250,%s,ipv6_dst=" NODE_ADDRESSES_TEXT " " ROUTE,
                 from);
        add_drop(rules, DROP_PROGRAM_GUARD, 0, "priority=240,%s,ipv6_dst=" SID_BLOCK_TEXT, from);
    }
}

/* A source agent sends to SIDs from its own address only (docs/architecture.md, "Guard"). */
static void
add_port(const struct port_config *port, struct svec *rules)
{
    char mac[MAC_TEXT_SIZE];
    char *from;

    mac_format(port->mac, mac);
    from = xasprintf("in_port=%u,dl_dst=%s,ipv6", port->number, mac);
    if (port->role == ROLE_AGENT) {
        char *own = xasprintf("%s,ipv6_src=%s", from, ip6_text(&port->peer_address));

        add_programs(port, own, rules);
        rule_add(rules, "flow table=0,priority=230,%s " ROUTE, own);
        free(own);
        rule_add(rules, "flow table=0,priority=220,%s,ipv6_dst=" NODE_ADDRESSES_TEXT " " ROUTE,
                 from);
        add_drop(rules, DROP_SOURCE_GUARD, 0, "priority=210,%s,ipv6_dst=" SID_BLOCK_TEXT, from);
    }
    rule_add(rules, "flow table=0,priority=100,%s " ROUTE, from);
    free(from);
}

/* The actions by which a packet goes out of a port. */
static void
put_output(const struct port_config *port, struct ds *s)
{
    char mac[MAC_TEXT_SIZE], peer_mac[MAC_TEXT_SIZE];

    mac_format(port->mac, mac);
    mac_format(port->peer_mac, peer_mac);
    ds_put_format(s, "set_field:%s->eth_src,set_field:%s->eth_dst,output:%u", mac, peer_mac,
                  port->number);
}

static void
add_route(const struct node_config *c, const struct route_config *route, struct svec *rules)
{
    struct ds s = DS_EMPTY_INITIALIZER;

    put_output(forwarder_port(c, route), &s);
    rule_add(rules, "flow table=1,priority=%d,ipv6,ipv6_dst=%s/%d actions=dec_ttl,%s",
             100 + route->plen, ip6_text(&route->prefix), route->plen, ds_cstr(&s));
    ds_destroy(&s);
}

unsigned int
ovs_group_id(const struct tree_config *t)
{
    return replication_id_of(&t->replication_sid) + 1u; /* there is no group 0. */
}

/* Adds a copy for this SID, if there is a route to it. */
static void
add_bucket(const struct node_config *c, const struct in6_addr *sid, struct svec *buckets)
{
    const struct route_config *route = forwarder_route(c, sid);
    struct ds s = DS_EMPTY_INITIALIZER;

    if (route) {
        ds_put_format(&s, ",bucket=actions=dec_ttl,set_field:%s->ipv6_dst,", ip6_text(sid));
        put_output(forwarder_port(c, route), &s);
        svec_add_nocopy(buckets, ds_steal_cstr(&s));
    }
}

/* Epochs of a group share a SID.  So while an old epoch is taken down, a packet may reach a child
 * of the other epoch, which drops it. */
static void
add_tree(const struct node_config *c, size_t tree, struct svec *rules)
{
    const struct in6_addr *sid = &c->trees[tree].replication_sid;
    struct svec buckets = SVEC_EMPTY_INITIALIZER;
    char *joined;

    if (IN6_IS_ADDR_UNSPECIFIED(sid)) {
        return;
    }
    for (size_t i = 0; i < c->n_trees; i++) {
        const struct tree_config *t = &c->trees[i];

        for (size_t j = 0; IN6_ARE_ADDR_EQUAL(&t->replication_sid, sid) && j < t->n_outer_da; j++) {
            add_bucket(c, &t->outer_da[j], &buckets);
        }
    }
    svec_sort_unique(&buckets);
    joined = svec_join(&buckets, "", "");
    rule_add(rules, "group group_id=%u,type=all%s", ovs_group_id(&c->trees[tree]), joined);
    rule_add(rules, "flow table=1,priority=300,ipv6,ipv6_src=%s,ipv6_dst=%s actions=group:%u",
             ip6_text(&c->trees[tree].outer_source), ip6_text(sid), ovs_group_id(&c->trees[tree]));
    add_drop(rules, DROP_OUTER_SOURCE, 1, "priority=290,ipv6,ipv6_dst=%s", ip6_text(sid));
    free(joined);
    svec_destroy(&buckets);
}

/* The actions of NEXT-CSID: what is behind the SID's prefix moves up to the block, and zeros come
 * behind it.  Open vSwitch counts bits from the right; an overlapping move() is not promised to
 * work, so a register is in between. */
static void
put_shift(const struct sid_config *sid, struct ds *s)
{
    int argument = 128 - sid->plen, width = sid->plen - sid->block_len;

    ds_put_format(s,
                  "move:NXM_NX_IPV6_DST[0..%d]->NXM_NX_XXREG0[%d..%d],load:0->NXM_NX_XXREG0[0..%d],"
                  "move:NXM_NX_XXREG0[0..%d]->NXM_NX_IPV6_DST[0..%d],",
                  argument - 1, width, width + argument - 1, width - 1, width + argument - 1,
                  width + argument - 1);
}

/* Nothing here takes a header away: packets for which there is no next uSID are dropped.  uN is
 * followed by a uSID of a node (address-plan.h), uA by whatever there is. */
static void
add_sid(const struct node_config *c, const struct sid_config *sid, struct svec *rules)
{
    const struct port_config *port = forwarder_find_port(c, sid->port);
    bool is_un = sid->behaviour == SID_UN;
    const char *prefix = ip6_text(&sid->prefix);
    struct ds s = DS_EMPTY_INITIALIZER;

    /* load() has 64 bits. */
    if (!(is_un || (sid->behaviour == SID_UA && port))
        || !usid_lengths_ok(sid->block_len, sid->plen) || sid->plen - sid->block_len > 64) {
        return;
    }
    put_shift(sid, &s);
    if (is_un) {
        ds_put_cstr(&s, "resubmit(,3)");
        add_drop(rules, DROP_USID_ZERO, 1, "priority=%d,ipv6,ipv6_dst=%s/%d", 116 + sid->plen,
                 prefix, sid->plen + 16);
        rule_add(rules, "flow table=3,priority=%d,ipv6,ipv6_dst=%s/%d actions=resubmit(,1)",
                 100 + sid->plen, prefix, sid->plen);
    } else {
        ds_put_cstr(&s, "dec_ttl,");
        put_output(port, &s);
    }
    rule_add(rules, "flow table=1,priority=%d,ipv6,ipv6_dst=%s/%d actions=%s", 100 + sid->plen,
             prefix, sid->plen, ds_cstr(&s));
    add_drop(rules, DROP_SID_UPPER, 1, "priority=228,ipv6,ipv6_dst=%s", prefix);
    ds_destroy(&s);
}

/* The own locator: its functions, but for those with flows of their own, and if there is no uN, all
 * of it. */
static void
add_locator(const struct node_config *c, struct svec *rules)
{
    struct in6_addr locator = node_locator(c->id);
    struct in6_addr functions = node_sid(c->id, USID_FIRST_FUNCTION);
    bool has_un = false;

    for (size_t i = 0; i < c->n_sids; i++) {
        add_sid(c, &c->sids[i], rules);
        has_un |= c->sids[i].behaviour == SID_UN;
    }
    if (has_un) {
        add_drop(rules, DROP_SID_UNKNOWN, 1, "priority=151,ipv6,ipv6_dst=%s/51",
                 ip6_text(&functions));
        add_drop(rules, DROP_SID_UNKNOWN, 1, "priority=228,ipv6,ipv6_dst=%s",
                 ip6_text(&c->address));
    } else {
        add_drop(rules, DROP_SID_UNKNOWN, 1, "priority=148,ipv6,ipv6_dst=%s/%d", ip6_text(&locator),
                 NODE_LOCATOR_PLEN);
    }
}

/* Where shifted packets go. */
static void
add_neighbours(const struct node_config *c, struct svec *rules)
{
    for (size_t i = 0; i < c->n_ports; i++) {
        const struct in6_addr *node = &c->ports[i].peer_address;
        struct in6_addr locator = node_locator(node_id_of(node));
        struct ds s = DS_EMPTY_INITIALIZER;

        if (forwarder_port_to(c, node) == &c->ports[i]) {
            put_output(&c->ports[i], &s);
            rule_add(rules, "flow table=3,priority=148,ipv6,ipv6_dst=%s/%d actions=dec_ttl,%s",
                     ip6_text(&locator), NODE_LOCATOR_PLEN, ds_cstr(&s));
        }
        ds_destroy(&s);
    }
    add_drop(rules, DROP_USID_UNKNOWN, 3, "priority=0");
}

char *
ovs_rules(const struct node_config *c, struct svec *rules)
{
    char *error = forwarder_check_ports(c);

    if (!error && !node_name_fits_role(c->name, node_role_name(c->role))) {
        error = xasprintf("node %s: the name " OVS_NAME_RULE, c->name);
    }
    if (error) {
        return error;
    }
    add_drop(rules, DROP_OTHER, 0, "priority=0");
    /* As in lib/port.h: a tag without a VLAN makes no difference. */
    add_drop(rules, DROP_VLAN, 0, "priority=400,vlan_tci=0x1000/0x1000");
    rule_add(rules, "flow table=0,priority=410,vlan_tci=0x1000/0x1fff "
                    "actions=strip_vlan,resubmit(,0)");
    for (size_t i = 0; i < c->n_ports; i++) {
        add_answers(c, &c->ports[i], rules);
        add_port(&c->ports[i], rules);
    }
    add_drop(rules, DROP_HOP_LIMIT, 1, "priority=400,ipv6,nw_ttl=0");
    add_drop(rules, DROP_HOP_LIMIT, 1, "priority=400,ipv6,nw_ttl=1");
    for (size_t i = 0; i < c->n_trees; i++) {
        add_tree(c, i, rules);
    }
    add_locator(c, rules);
    add_neighbours(c, rules);
    for (size_t i = 0; i < c->n_routes; i++) {
        add_route(c, &c->routes[i], rules);
    }
    add_drop(rules, DROP_NO_ROUTE, 1, "priority=0");
    svec_sort_unique(rules);
    return NULL;
}

static bool
is_flow(const char *rule)
{
    return !strncmp(rule, "flow ", 5);
}

/* Is there one that is the same as 'line' up to 'end', and with that? */
static bool
has_same_start(const struct svec *lines, const char *line, const char *end)
{
    size_t len = strcspn(line, end);

    for (size_t i = 0; i < lines->n; i++) {
        if (!strncmp(lines->names[i], line, len + 1)) {
            return true;
        }
    }
    return false;
}

/* A flow is removed before the group that it uses, and added after it. */
char *
ovs_rules_change(const struct svec *from, const struct svec *to)
{
    struct svec old, new;
    struct ds s = DS_EMPTY_INITIALIZER;

    svec_diff(from, to, &old, NULL, &new);
    if (!from->n) {
        ds_put_cstr(&s, "flow delete\ngroup delete\n");
    }
    for (size_t i = 0; i < old.n; i++) {
        if (is_flow(old.names[i])) {
            const char *match = strstr(old.names[i], "table=");

            ds_put_format(&s, "flow delete_strict %.*s\n", (int) strcspn(match, " "), match);
        }
    }
    for (size_t i = 0; i < old.n; i++) {
        if (!is_flow(old.names[i]) && !has_same_start(to, old.names[i], ",")) {
            ds_put_format(&s, "group delete %.*s\n",
                          (int) strcspn(old.names[i], ",") - (int) strlen("group "),
                          old.names[i] + strlen("group "));
        }
    }
    for (int flows = 0; flows < 2; flows++) {
        for (size_t i = 0; i < new.n; i++) {
            const char *rule = new.names[i];

            if (is_flow(rule) == flows) {
                ds_put_format(&s, flows ? "flow add %s\n" : "group add_or_mod %s\n",
                              strchr(rule, ' ') + 1);
            }
        }
    }
    svec_destroy(&old);
    svec_destroy(&new);
    return ds_steal_cstr(&s);
}

void
ovs_ports(const struct node_config *c, struct svec *ports)
{
    for (size_t i = 0; i < c->n_ports; i++) {
        svec_add_nocopy(ports, xasprintf("%s %u", c->ports[i].name, c->ports[i].number));
    }
    svec_sort(ports);
}

char *
ovs_ports_change(const char *bridge, const struct svec *from, const struct svec *to,
                 long long int stamp)
{
    static const struct svec none = SVEC_EMPTY_INITIALIZER;
    struct ds s = DS_EMPTY_INITIALIZER;
    struct svec old, new;

    svec_diff(from ? from : &none, to, &old, NULL, &new);
    if (!from) {
        ds_put_format(&s,
                      " -- --may-exist add-br %s -- set bridge %s datapath_type=netdev "
                      "fail_mode=secure protocols=OpenFlow10,OpenFlow15 "
                      "external_ids:castfwd=%lld -- list-ports %s",
                      bridge, bridge, stamp, bridge);
    }
    for (size_t i = 0; i < old.n; i++) {
        if (!has_same_start(to, old.names[i], " ")) {
            ds_put_format(&s, " -- --if-exists del-port %s %.*s", bridge,
                          (int) strcspn(old.names[i], " "), old.names[i]);
        }
    }
    for (size_t i = 0; i < new.n; i++) {
        int len = (int) strcspn(new.names[i], " ");

        ds_put_format(&s,
                      " -- --may-exist add-port %s %.*s -- set interface %.*s ofport_request=%s",
                      bridge, len, new.names[i], len, new.names[i], new.names[i] + len + 1);
    }
    svec_destroy(&old);
    svec_destroy(&new);
    return ds_steal_cstr(&s);
}
