/* SPDX-License-Identifier: Apache-2.0
 *
 * Hosts: each has a tap with an address, a table of its own with a default route
 * through the adjacent forwarder, and rules that make the host use that table.
 *
 * All hosts share one namespace, so an address is local to every host.  A rule
 * before 'lookup local' (which is moved for that, with RDMA) makes even packets
 * for another host of the lab leave through the tap:
 *
 *     pref 10 from H iif lo to HOSTS         lookup T_H
 *     pref 10 from H iif lo to fd00:ffff::/32 lookup T_H      Proxy Addresses
 *
 * Another one is for who asks for the tap:
 *
 *     pref 9 oif TAP                         lookup T_H
 *
 * The kernel's RDMA-CM accepts a request only if the way back to who asks leads
 * through the device at which it has come.  It looks that up with the device as
 * oif and without an iif (cma.c, validate_ipv6_net_dev), so that no rule with
 * 'iif lo' is for it.
 *
 * The gateway is fe80::1 with a permanent neighbour entry: connecting a queue
 * pair never waits for neighbour discovery.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "ctl/registry/values.h"
#include "svec.h"
#include "testbed/castlab/rdma.h"
#include "testbed/castlab/up.h"
#include "util.h"

#define FIRST_TABLE 47910

static const struct in6_addr gateway = {.s6_addr = {0xfe, 0x80, [15] = 1}};

static const struct topology_node *
host_of(const struct lab *lab, const struct topology_link *link)
{
    return &lab->t->nodes[link->ends[0].node];
}

/* The shortest prefix with all hosts of the lab. */
static struct prefix
hosts_prefix(const struct topology *t)
{
    struct prefix p = {.plen = 129};
    for (size_t i = 0; i < t->n_nodes; i++) {
        if (t->nodes[i].kind != KIND_HOST) {
            continue;
        }
        const uint8_t *a = t->nodes[i].address.s6_addr;
        if (p.plen > 128) {
            p = (struct prefix){t->nodes[i].address, 128};
        }
        uint8_t same = 0;
        while (same < p.plen
               && !((a[same / 8] ^ p.address.s6_addr[same / 8]) >> (7 - same % 8) & 1)) {
            same++;
        }
        p.plen = same;
    }
    for (unsigned int bit = p.plen; bit < 128; bit++) {
        p.address.s6_addr[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
    }
    return p;
}

static char *
add_rule(struct lab *lab, const struct in6_addr *from, struct prefix to, uint32_t table)
{
    const struct rule rule = {.pref = HOST_RULE_PREF, .from = from, .to = to, .table = table};
    char *error = lab_intent(lab, "rule %u %s %s/%u %u", rule.pref, ip6_text(from),
                             ip6_text(&to.address), to.plen, table);
    return error ? error : lab_outcome(lab, rule_add(lab->net, &rule), NO_ID);
}

static char *
add_device_rule(struct lab *lab, const char *netdev, uint32_t table)
{
    const struct rule rule = {.pref = DEVICE_RULE_PREF, .oif = netdev, .table = table};
    char *error = lab_intent(lab, "device-rule %u %s %u", rule.pref, netdev, table);
    return error ? error : lab_outcome(lab, rule_add(lab->net, &rule), NO_ID);
}

static char *
create_tap(struct lab *lab, const char *netdev)
{
    static const struct {
        const char *name, *value;
    } settings[] = {
        /* A host has the one address that it was given and believes no router. */
        {"addr_gen_mode", "1"}, {"accept_ra", "0"},    {"autoconf", "0"},
        {"accept_dad", "0"},    {"disable_ipv6", "0"},
    };
    char *error = lab_intent(lab, "tap %s", netdev);
    if (error) {
        return error;
    }
    error = tap_create(netdev);
    int index = net_ifindex(lab->net, netdev);
    error = lab_outcome(lab, error, index ? (uint64_t) index : UNKNOWN_ID);
    for (size_t i = 0; i < ARRAY_SIZE(settings) && !error; i++) {
        error = sysctl_set(netdev, settings[i].name, settings[i].value);
    }
    return error ? error : link_set_mtu(lab->net, netdev, lab->t->host_mtu);
}

static char *
lacks_carrier(struct lab *lab, const void *netdev)
{
    return link_has_carrier(lab->net, netdev)
               ? NULL
               : xasprintf("tap %s has no carrier", (const char *) netdev);
}

/* Starts the holder for all taps. */
static char *
hold_taps(struct lab *lab)
{
    struct svec argv = SVEC_EMPTY_INITIALIZER;
    svec_add(&argv, lab->programs.castlab);
    svec_add(&argv, "--hold");
    for (size_t i = 0; i < lab->t->n_links; i++) {
        if (lab->t->links[i].has_host) {
            svec_add(&argv, lab->t->links[i].ends[0].netdev);
        }
    }
    svec_terminate(&argv);
    char *error = lab_start(lab, HOLDER_NAME, argv.names);
    svec_destroy(&argv);
    for (size_t i = 0; i < lab->t->n_links && !error; i++) {
        if (lab->t->links[i].has_host) {
            error = lab_wait(lab, lacks_carrier, lab->t->links[i].ends[0].netdev);
        }
    }
    return error;
}

static char *
configure_host(struct lab *lab, const struct topology_link *link, struct prefix hosts,
               uint32_t table)
{
    const struct topology_node *host = host_of(lab, link);
    const struct topology_node *peer = &lab->t->nodes[link->ends[1].node];
    const char *netdev = link->ends[0].netdev;
    char mac[MAC_TEXT_SIZE];
    if (!registry_port_mac(lab->registry, peer->name, netdev, mac)) {
        return xasprintf("castd has withdrawn port '%s' of '%s'", netdev, peer->name);
    }
    char *error = link_set_up(lab->net, netdev);
    error = error ? error : link_check_queue(lab->net, netdev);
    error = error ? error : address_add(lab->net, netdev, &host->address);
    error = error ? error : neighbour_add(lab->net, netdev, &gateway, mac);
    error = error ? error : default_route_add(lab->net, netdev, &gateway, table);
    error = error ? error : add_device_rule(lab, netdev, table);
    error = error ? error : add_rule(lab, &host->address, hosts, table);
    const struct prefix proxies = {proxy_address(0), PROXY_PREFIX_LEN};
    return error ? error : add_rule(lab, &host->address, proxies, table);
}

char *
lab_hosts_create(struct lab *lab)
{
    const struct topology *t = lab->t;
    char *error = NULL;
    for (size_t i = 0; i < t->n_links && !error; i++) {
        if (t->links[i].has_host) {
            error = create_tap(lab, t->links[i].ends[0].netdev);
        }
    }
    error = error ? error : hold_taps(lab);
    struct prefix hosts = hosts_prefix(t);
    uint32_t table = free_tables(lab->net, FIRST_TABLE, t->n_nodes);
    for (size_t i = 0; i < t->n_links && !error; i++) {
        if (t->links[i].has_host) {
            error = configure_host(lab, &t->links[i], hosts, table++);
        }
    }
    return error;
}

static char *
lacks_rdma(struct lab *lab, const void *link)
{
    const struct topology_node *host = host_of(lab, link);
    const struct lab_text device = lab_rdma_device(host->name);
    if (rdma_port_ready(device.text, &host->address)) {
        return NULL;
    }
    char *state = rdma_port_state(device.text);
    char *lack = xasprintf("RDMA device %s: port state '%s', or the host's address is not in its "
                           "GID table",
                           device.text, state ? state : "unknown");
    free(state);
    return lack;
}

static char *
add_rdma_device(struct lab *lab, const struct topology_link *link)
{
    const struct lab_text device = lab_rdma_device(host_of(lab, link)->name);
    char *error = lab_intent(lab, "rxe %s %s", device.text, link->ends[0].netdev);
    if (error) {
        return error;
    }
    uint32_t index = 0;
    error = rdma_link_add(device.text, link->ends[0].netdev);
    if (!error && !rdma_find(device.text, &index)) {
        error = xasprintf("RDMA device %s has vanished", device.text);
    }
    return lab_outcome(lab, error, index);
}

bool
lab_has_rdma(const struct lab *lab, const struct topology_link *link)
{
    return lab->rdma && link->has_host && !host_of(lab, link)->no_rdma;
}

char *
lab_hosts_add_rdma(struct lab *lab)
{
    char *error = lab_intent(lab, "local-rule %d", LOCAL_RULE_PREF);
    error = error ? error : local_rule_move(lab->net, LOCAL_RULE_PREF);
    for (size_t i = 0; i < lab->t->n_links && !error; i++) {
        if (lab_has_rdma(lab, &lab->t->links[i])) {
            error = add_rdma_device(lab, &lab->t->links[i]);
        }
    }
    for (size_t i = 0; i < lab->t->n_links && !error; i++) {
        if (lab_has_rdma(lab, &lab->t->links[i])) {
            error = lab_wait(lab, lacks_rdma, &lab->t->links[i]);
        }
    }
    return error;
}
