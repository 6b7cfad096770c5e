/* SPDX-License-Identifier: Apache-2.0
 *
 * A node's configuration: its words, ownership, and the addresses that follow from a node's id.
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

static const char *const port_roles[] = {
    [ROLE_HOST] = "host",
    [ROLE_AGENT] = "agent",
    [ROLE_FABRIC] = "fabric",
};
WORDS_DEFINE(port_role, enum port_role, port_roles);

static const char *const sid_behaviours[] = {
    [SID_END] = "End",
    [SID_END_MT] = "End.MT",
    [SID_RESPONSE] = "End.Response",
    [SID_END_DT6] = "End.DT6",
    [SID_END_REPLICATE] = "End.Replicate",
};
WORDS_DEFINE(sid_behaviour, enum sid_behaviour, sid_behaviours);

static const char *const branch_kinds[] = {
    [BRANCH_RECEIVER] = "receiver",
    [BRANCH_NODE] = "node",
};
WORDS_DEFINE(branch_kind, enum branch_kind, branch_kinds);

static const char *const receivers[] = {[false] = "tlv", [true] = "provisioned"};
WORDS_DEFINE(receivers, bool, receivers);

static const char *const loss_policies[] = {[false] = "fail-group", [true] = "prune"};
WORDS_DEFINE(loss_policy, bool, loss_policies);

static const char *const nak_policies[] = {
    [NAK_HOLD] = "hold",
    [NAK_LITERAL] = "literal",
    [NAK_SOLICIT] = "solicit",
};
WORDS_DEFINE(nak_policy, enum reverse_nak, nak_policies);

static const char *const node_roles[] = {
    [NODE_SWITCH] = "switch",
    [NODE_AGENT] = "agent",
    [NODE_OVS] = "ovs",
    [NODE_ROUTER] = "router",
};
WORDS_DEFINE(node_role, enum node_role, node_roles);

bool
node_role_is_foreign(enum node_role role)
{
    switch (role) {
    case NODE_SWITCH:
    case NODE_AGENT: return false;
    case NODE_OVS:
    case NODE_ROUTER: return true;
    }
    abort();
}

bool
node_role_replicates(enum node_role role)
{
    switch (role) {
    case NODE_SWITCH:
    case NODE_OVS: return true;
    case NODE_AGENT:
    case NODE_ROUTER: return false;
    }
    abort();
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
