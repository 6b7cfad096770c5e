/* SPDX-License-Identifier: Apache-2.0
 *
 * Routes that follow from next hops and from where hosts are.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/address-plan.h"
#include "lib/routes.h"
#include "tests/unit/suites.h"

enum { HOST = 1, A, B, HOST_AGAIN };

static struct in6_addr
addr(const char *text)
{
    struct in6_addr a;

    ck_assert_int_eq(inet_pton(AF_INET6, text, &a), 1);
    return a;
}

/* A host on two ports, and two nodes. */
static struct node_config
node(void)
{
    struct node_config c = {.n_ports = 4, .ports = calloc(4, sizeof *c.ports)};

    for (size_t i = 0; i < c.n_ports; i++) {
        c.ports[i].number = (uint16_t) (i + 1);
        c.ports[i].role = ROLE_FABRIC;
    }
    c.ports[A - 1].peer_address = node_address(257);
    c.ports[B - 1].peer_address = node_address(258);
    c.ports[HOST - 1].role = c.ports[HOST_AGAIN - 1].role = ROLE_HOST;
    c.ports[HOST - 1].peer_address = c.ports[HOST_AGAIN - 1].peer_address = addr("fd00:1::1");
    return c;
}

static void
check(const struct node_config *c, size_t i, const char *prefix, uint8_t plen, uint16_t port,
      const char *next_hop)
{
    char text[2][INET6_ADDRSTRLEN];

    ck_assert_uint_lt(i, c->n_routes);
    inet_ntop(AF_INET6, &c->routes[i].prefix, text[0], sizeof text[0]);
    inet_ntop(AF_INET6, &c->routes[i].next_hop, text[1], sizeof text[1]);
    ck_assert_str_eq(text[0], prefix);
    ck_assert_uint_eq(c->routes[i].plen, plen);
    ck_assert_uint_eq(c->routes[i].port, port);
    ck_assert_str_eq(text[1], next_hop);
}

START_TEST(derived)
    {
        /* In no order; of a node without a next hop no host is reached, nor is one of the node's own. */
        const struct next_hop hops[] = {{300, B}, {258, B}, {0, A}, {257, A}};
        const struct host_location hosts[] = {{addr("fd00:1::9"), 300},
                                              {addr("fd00:1::2"), 257},
                                              {addr("fd00:1::3"), 301},
                                              {addr("fd00:1::1"), 258}};
        struct node_config c = node();

        routes_derive(&c, hops, 4, hosts, 4);
        ck_assert_uint_eq(c.n_routes, 7);
        check(&c, 0, "::", 0, A, "5f00:0:101::1");
        check(&c, 1, "5f00:0:101::", 48, A, "5f00:0:101::1");
        check(&c, 2, "5f00:0:102::", 48, B, "5f00:0:102::1");
        check(&c, 3, "5f00:0:12c::", 48, B, "5f00:0:102::1");
        check(&c, 4, "fd00:1::1", 128, HOST, "::");
        check(&c, 5, "fd00:1::2", 128, A, "5f00:0:101::1");
        check(&c, 6, "fd00:1::9", 128, B, "5f00:0:102::1");
        node_config_uninit(&c);
    }
END_TEST

START_TEST(nothing)
    {
        struct node_config c = node();

        routes_derive(&c, NULL, 0, NULL, 0);
        ck_assert_uint_eq(c.n_routes, 1);
        check(&c, 0, "fd00:1::1", 128, HOST, "::");
        node_config_uninit(&c);

        struct node_config empty = {.n_ports = 0};
        routes_derive(&empty, NULL, 0, NULL, 0);
        ck_assert_uint_eq(empty.n_routes, 0);
        node_config_uninit(&empty);
    }
END_TEST

Suite *
routes_suite(void)
{
    Suite *s = suite_create("routes");
    TCase *tc = tcase_create("routes");

    tcase_add_test(tc, derived);
    tcase_add_test(tc, nothing);
    suite_add_tcase(s, tc);
    return s;
}
