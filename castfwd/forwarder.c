/* SPDX-License-Identifier: Apache-2.0
 *
 * What all back ends ask of a configuration, and how they say what follows from it.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "castfwd/castfwd.h"
#include "ctl/registry/values.h"
#include "util.h"

static bool
covers(const struct route_config *r, const struct in6_addr *a)
{
    size_t n = r->plen / 8;
    uint8_t mask = (uint8_t) (0xff00 >> r->plen % 8);

    return !memcmp(&r->prefix, a, n)
           && (n == 16 || !((r->prefix.s6_addr[n] ^ a->s6_addr[n]) & mask));
}

const struct route_config *
forwarder_route(const struct node_config *c, const struct in6_addr *a)
{
    const struct route_config *best = NULL;

    for (size_t i = 0; i < c->n_routes; i++) {
        if (covers(&c->routes[i], a) && (!best || c->routes[i].plen > best->plen)) {
            best = &c->routes[i];
        }
    }
    return best;
}

const struct port_config *
forwarder_find_port(const struct node_config *c, uint16_t number)
{
    for (size_t i = 0; i < c->n_ports; i++) {
        if (c->ports[i].number == number) {
            return &c->ports[i];
        }
    }
    return NULL;
}

const struct port_config *
forwarder_port(const struct node_config *c, const struct route_config *route)
{
    return forwarder_find_port(c, route->port);
}

const struct port_config *
forwarder_port_to(const struct node_config *c, const struct in6_addr *node)
{
    const struct route_config *route = forwarder_route(c, node);
    const struct port_config *found = NULL;

    for (size_t i = 0; i < c->n_ports; i++) {
        const struct port_config *port = &c->ports[i];

        if (IN6_ARE_ADDR_EQUAL(&port->peer_address, node)
            && (!found || (route && route->port == port->number))) {
            found = port;
        }
    }
    return found;
}

char *
forwarder_check_ports(const struct node_config *c)
{
    static const uint8_t no_mac[6];

    for (size_t i = 0; i < c->n_ports; i++) {
        const struct port_config *port = &c->ports[i];

        if (port->role == ROLE_HOST || !port_kind_is_netdev(port->kind)) {
            return xasprintf("port %s: %s cannot be at a node with role %s", port->name, port->peer,
                             node_role_name(c->role));
        }
        if (!memcmp(port->peer_mac, no_mac, sizeof no_mac)) {
            return xasprintf("port %s: the registry does not say which MAC address %s has there",
                             port->name, port->peer);
        }
    }
    return NULL;
}

void
rule_add(struct svec *rules, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    svec_add_nocopy(rules, xvasprintf(format, args));
    va_end(args);
}

unsigned long long
number_after(const char *where, const char *key)
{
    const char *found = where ? strstr(where, key) : NULL;

    return found ? strtoull(found + strlen(key), NULL, 10) : 0;
}
