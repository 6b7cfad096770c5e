/* SPDX-License-Identifier: Apache-2.0
 *
 * A node's configuration: ownership, and the addresses that follow from its id.
 */
#include "lib/node-config.h"

#include <stdlib.h>

static void *
copy(const void *src, size_t n, size_t size)
{
    void *dst = calloc(n + 1, size);
    if (!dst) {
        abort();
    }
    if (n) {
        memcpy(dst, src, n * size);
    }
    return dst;
}

static const char *const nak_policies[] = {
    [NAK_HOLD] = "hold",
    [NAK_LITERAL] = "literal",
    [NAK_SOLICIT] = "solicit",
};

const char *
nak_policy_name(enum reverse_nak nak)
{
    return nak_policies[nak];
}

bool
nak_policy_parse(const char *name, enum reverse_nak *nak)
{
    for (size_t i = 0; i < sizeof nak_policies / sizeof *nak_policies; i++) {
        if (!strcmp(name, nak_policies[i])) {
            *nak = (enum reverse_nak) i;
            return true;
        }
    }
    return false;
}

void
tree_config_clone(struct tree_config *dst, const struct tree_config *src)
{
    *dst = *src;
    dst->branches = copy(src->branches, src->n_branches, sizeof *src->branches);
    dst->outer_da = copy(src->outer_da, src->n_outer_da, sizeof *src->outer_da);
    dst->copies = copy(src->copies, src->n_copies, sizeof *src->copies);
    auth_config_clone(&dst->auth, &src->auth);
}

void
tree_config_uninit(struct tree_config *t)
{
    free(t->branches);
    free(t->outer_da);
    free(t->copies);
    auth_config_uninit(&t->auth);
    *t = (struct tree_config){0};
}

void
node_config_uninit(struct node_config *config)
{
    for (size_t i = 0; i < config->n_trees; i++) {
        tree_config_uninit(&config->trees[i]);
    }
    free(config->trees);
    free(config->sids);
    free(config->routes);
    free(config->ports);
    memset(config, 0, sizeof *config);
}

static const char *const mode_names[] = {
    [MODE_REPLICATE] = "replicate", [MODE_MCAST] = "mcast", [MODE_INGRESS] = "ingress"};

const char *
tree_mode_name(enum tree_mode mode)
{
    return mode_names[mode];
}

bool
tree_mode_parse(const char *s, enum tree_mode *mode)
{
    for (size_t i = 0; i < sizeof mode_names / sizeof *mode_names; i++) {
        if (!strcmp(s, mode_names[i])) {
            *mode = (enum tree_mode) i;
            return true;
        }
    }
    return false;
}

struct in6_addr
mcast_group_address(uint16_t replication_id)
{
    return (struct in6_addr){.s6_addr = {0xff,
                                         0x3e, [12] = 0x80, [14] = (uint8_t) (replication_id >> 8),
                                         [15] = (uint8_t) replication_id}};
}

bool
is_mcast_group_address(const struct in6_addr *addr)
{
    uint16_t id = (uint16_t) (addr->s6_addr[14] << 8 | addr->s6_addr[15]);
    struct in6_addr group = mcast_group_address(id);

    return id <= REPLICATION_ID_MAX && IN6_ARE_ADDR_EQUAL(addr, &group);
}

struct in6_addr
node_locator(uint16_t id)
{
    return (struct in6_addr){.s6_addr = {0x5f, 0, 0, 0, (uint8_t) (id >> 8), (uint8_t) id}};
}

struct in6_addr
node_address(uint16_t id)
{
    struct in6_addr addr = node_locator(id);

    addr.s6_addr[15] = 1;
    return addr;
}

struct in6_addr
node_sid(uint16_t id, uint16_t function)
{
    struct in6_addr addr = node_locator(id);

    addr.s6_addr[6] = (uint8_t) (function >> 8);
    addr.s6_addr[7] = (uint8_t) function;
    return addr;
}

uint16_t
node_id_of(const struct in6_addr *addr)
{
    return (uint16_t) (addr->s6_addr[4] << 8 | addr->s6_addr[5]);
}

bool
address_is_sid(const struct in6_addr *addr)
{
    struct in6_addr node = node_address(node_id_of(addr));

    return !memcmp(addr, &node, 4) && memcmp(addr, &node, sizeof node);
}

void
node_port_mac(uint16_t id, uint16_t port, uint8_t mac[6])
{
    mac[0] = 0x02; /* locally administered, unicast. */
    mac[1] = 0x5f;
    mac[2] = (uint8_t) (id >> 8);
    mac[3] = (uint8_t) id;
    mac[4] = (uint8_t) (port >> 8);
    mac[5] = (uint8_t) port;
}
