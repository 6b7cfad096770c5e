/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether RDMA-CM would accept a connection at a host's RDMA device.
 *
 * The kernel accepts a request only if the way back to who asks leads through the
 * device at which it came (cma.c, validate_ipv6_net_dev).  It looks that up with
 * the device as oif and no iif.  No rule with an iif is for such a lookup, and
 * 'ip route get', which has iif lo, does not show what comes of it.  Hence rules
 * and routes are gone through here as the kernel does.
 */
#include <config.h>

#include "ctl/doctor/checks.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/registry/json.h"
#include "ctl/registry/values.h"
#include "lib/address-plan.h"
#include "openvswitch/json.h"
#include "util.h"

struct lookup {
    struct in6_addr from, to;
    const char *oif;
};

/* What 'ip -j' has printed. */
struct tables {
    struct json *rules, *routes;
};

#define NOWHERE "nowhere"

/* Is the address in the prefix?  "text" may end with the length, or be "all" or "default". */
static bool
is_in_prefix(const char *text, int plen, const struct in6_addr *address)
{
    struct in6_addr prefix;
    uint8_t text_plen = (uint8_t) plen;
    if (!strcmp(text, "all") || !strcmp(text, "default")) {
        return true;
    }
    if (!ip6_prefix_parse(text, &prefix, &text_plen) && !ip6_parse(text, &prefix)) {
        return false;
    }
    for (int bit = 0; bit < text_plen; bit++) {
        if ((prefix.s6_addr[bit / 8] ^ address->s6_addr[bit / 8]) & 0x80 >> bit % 8) {
            return false;
        }
    }
    return true;
}

static bool
selects(const struct json *rule, const char *key, const char *plen_key,
        const struct in6_addr *address)
{
    const char *prefix = ctl_get_string(rule, key);
    return !prefix[0]
           || is_in_prefix(
               prefix, ctl_get(rule, plen_key) ? (int) ctl_get_int(rule, plen_key) : 128, address);
}

static bool
rule_matches(const struct json *rule, const struct lookup *l)
{
    /* The lookup has nothing of these. */
    static const char *const others[] = {"iif",    "fwmark",  "tos",   "tun_id",
                                         "l3mdev", "ipproto", "sport", "dport"};
    const char *oif = ctl_get_string(rule, "oif");
    bool matches = selects(rule, "src", "srclen", &l->from)
                   && selects(rule, "dst", "dstlen", &l->to) && (!oif[0] || !strcmp(oif, l->oif))
                   && !ctl_get_int(rule, "uid_start");
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        matches &= !ctl_get(rule, others[i]);
    }
    return matches != !!ctl_get(rule, "not");
}

/* The device that a route leads through: the wanted one, if that is among several. */
static const char *
route_device(const struct json *route, const char *wanted)
{
    const char *type = ctl_get_string(route, "type");
    const struct json_array *hops = ctl_get_array(route, "nexthops");
    const char *device = ctl_get_string(route, "dev");
    if (!strcmp(type, "unreachable") || !strcmp(type, "blackhole") || !strcmp(type, "prohibit")) {
        return NOWHERE;
    }
    for (size_t i = 0; i < hops->n && strcmp(device, wanted) != 0; i++) {
        device = ctl_get_string(hops->elems[i], "dev");
    }
    return device;
}

static int
route_plen(const struct json *route)
{
    const char *dst = ctl_get_string(route, "dst");
    const char *slash = strchr(dst, '/');
    return slash ? atoi(slash + 1) : strcmp(dst, "default") != 0 ? 128 : 0;
}

/* The device by a table's longest prefix of more than 'min_plen' bits; NULL: it has no route. */
static const char *
look_up_table(const struct tables *t, const char *table, int min_plen, const struct lookup *l)
{
    const char *found = NULL;
    int longest = min_plen;
    for (size_t i = 0; i < t->routes->array.n; i++) {
        const struct json *route = t->routes->array.elems[i];
        const char *its_table = ctl_get(route, "table") ? ctl_get_string(route, "table") : "main";
        int plen = route_plen(route);
        if (!strcmp(its_table, table) && plen >= longest
            && is_in_prefix(ctl_get_string(route, "dst"), 128, &l->to)) {
            const char *device = route_device(route, l->oif);
            /* Of several with this prefix the one through the wanted device is taken. */
            if (!found || plen > longest || !strcmp(device, l->oif)) {
                found = device;
            }
            longest = plen;
        }
    }
    return found;
}

/* The device through which the lookup leads, or NOWHERE. */
static const char *
look_up(const struct tables *t, const struct lookup *l)
{
    for (size_t i = 0; i < t->rules->array.n; i++) {
        const struct json *rule = t->rules->array.elems[i];
        if (!rule_matches(rule, l)) {
            continue;
        }
        if (ctl_get(rule, "action")) {
            return NOWHERE;
        }
        int min_plen = ctl_get(rule, "suppress_prefixlen")
                           ? (int) ctl_get_int(rule, "suppress_prefixlen") + 1
                           : 0;
        const char *device = look_up_table(t, ctl_get_string(rule, "table"), min_plen, l);
        if (device) {
            return device;
        }
    }
    return NOWHERE;
}

/* Adds a finding unless the lookup leads through the device; 'what' is there. */
static bool
check_way(struct doctor *d, const struct tables *t, const char *device, const struct lookup *l,
          const char *what)
{
    const char *through = look_up(t, l);
    if (!strcmp(through, l->oif)) {
        return true;
    }
    char *route = !strcmp(through, NOWHERE)
                      ? xstrdup("there is no route there")
                      : xasprintf("the route there leads through %s", through);
    doctor_add(d, DOCTOR_WARNING,
               xasprintf("RDMA-CM at %s refuses requests from %s: with oif %s %s", device, what,
                         l->oif, route),
               xasprintf("if its routes are in a table of their own: ip -6 rule add pref 9 oif %s "
                         "lookup TABLE; otherwise add a route there through %s",
                         l->oif, l->oif));
    free(route);
    return false;
}

static struct json *
dump(const char *command)
{
    int status;
    char *text = doctor_output(command, &status);
    struct json *json = status ? NULL : json_from_string(text);
    free(text);
    if (json && json->type != JSON_ARRAY) {
        json_destroy(json);
        json = NULL;
    }
    return json;
}

/* Gets the device's address and its network device, malloc'd, which is in this network namespace;
 * false: one of them is not there. */
static bool
host_of(const char *device, struct in6_addr *address, char **netdevp)
{
    *netdevp = doctor_netdev(device);
    return *netdevp && doctor_exists(doctor_path("/sys/class/net/%s", *netdevp))
           && doctor_address(device, address);
}

/* The address of another RDMA device of this machine. */
static bool
other_host(const struct svec *devices, size_t self, struct in6_addr *address)
{
    for (size_t i = 0; i < devices->n; i++) {
        if (i != self && doctor_address(devices->names[i], address)) {
            return true;
        }
    }
    return false;
}

static void
check_devices(struct doctor *d, const struct tables *t)
{
    struct svec devices;
    size_t n_good = 0;
    size_t before = d->n;
    doctor_rdma_devices(&devices);
    for (size_t i = 0; i < devices.n; i++) {
        struct lookup l = {.to = proxy_address(1)};
        char *netdev;
        if (host_of(devices.names[i], &l.from, &netdev)) {
            l.oif = netdev;
            bool good = check_way(d, t, devices.names[i], &l, "a Proxy Address");
            if (good && other_host(&devices, i, &l.to)) {
                good = check_way(d, t, devices.names[i], &l, ip6_text(&l.to));
            }
            n_good += good;
        }
        free(netdev);
    }
    if (d->n == before) {
        doctor_ok(d, "%zu devices accept requests from Proxy Addresses", n_good);
    }
    svec_destroy(&devices);
}

void
doctor_rdma_cm(struct doctor *d)
{
    struct tables t = {dump("ip -j -6 rule"), dump("ip -j -6 route show table all")};
    if (t.rules && t.routes) {
        check_devices(d, &t);
    } else {
        doctor_add(d, DOCTOR_WARNING, xstrdup("rules and routes cannot be seen: ip -j fails"),
                   xstrdup("apt-get install iproute2"));
    }
    json_destroy(t.rules);
    json_destroy(t.routes);
}
