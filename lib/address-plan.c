/* SPDX-License-Identifier: Apache-2.0
 *
 * The address plan.
 */
#include "lib/address-plan.h"

#include <string.h>

#include "lib/node-config.h"

/* Two bytes of an address that may be in a packet, and not aligned. */
static uint16_t
group_of(const struct in6_addr *addr, size_t ofs)
{
    const uint8_t *bytes = (const uint8_t *) addr;

    return (uint16_t) (bytes[ofs] << 8 | bytes[ofs + 1]);
}

bool
prefix_covers(const struct prefix *prefix, const struct in6_addr *addr)
{
    size_t whole = prefix->plen / 8;
    unsigned rest = prefix->plen % 8;

    const uint8_t *bytes = (const uint8_t *) addr;

    return !memcmp(&prefix->address, addr, whole)
           && (!rest || (prefix->address.s6_addr[whole] ^ bytes[whole]) >> (8 - rest) == 0);
}

/*
 * Nodes.
 */

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

uint16_t
node_id_of(const struct in6_addr *addr)
{
    return group_of(addr, 4);
}

bool
address_is_of_node(const struct in6_addr *addr, uint16_t id)
{
    struct in6_addr locator = node_locator(id);

    return !memcmp(addr, &locator, NODE_LOCATOR_LEN);
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

/*
 * SIDs.
 */

static const struct sid_behaviour_row sid_behaviours[] = {
#define ROLE(NAME) (1u << NODE_##NAME)
#define BEHAVIOUR(NAME, TEXT, FUNCTION, PLEN, ROLES, TAKES_ROCE) \
    [SID_##NAME] = {TEXT, FUNCTION, PLEN, TAKES_ROCE, ROLES},
    SID_BEHAVIOURS(BEHAVIOUR)
#undef BEHAVIOUR
#undef ROLE
};
WORDS_DEFINE(sid_behaviour, enum sid_behaviour, sid_behaviours);

const struct sid_behaviour_row *
sid_behaviour(enum sid_behaviour behaviour)
{
    return &sid_behaviours[behaviour];
}

bool
sid_behaviour_is_of_port(enum sid_behaviour behaviour)
{
    return behaviour == SID_UA || behaviour == SID_END_DX6 || behaviour == SID_END_X;
}

struct in6_addr
local_sid(uint16_t function)
{
    return node_locator(function);
}

struct in6_addr
node_sid(uint16_t id, uint16_t function)
{
    struct in6_addr addr = node_locator(id);

    addr.s6_addr[6] = (uint8_t) (function >> 8);
    addr.s6_addr[7] = (uint8_t) function;
    return addr;
}

struct in6_addr
node_replication_sid(uint16_t id, uint16_t replication_id)
{
    return node_sid(id, (uint16_t) (SID_FUNC_END_REPLICATE + replication_id));
}

uint16_t
replication_id_of(const struct in6_addr *sid)
{
    return group_of(sid, 6) & REPLICATION_ID_MAX;
}

bool
address_is_sid(const struct in6_addr *addr)
{
    uint16_t id = node_id_of(addr);
    struct in6_addr node = node_address(id);
    bool is_node = id && id <= NODE_ID_MAX && !memcmp(addr, &node, sizeof node);

    return !memcmp(addr, &node, SID_BLOCK_PLEN / 8) && !is_node;
}

bool
address_is_in_sid_space(const struct in6_addr *addr)
{
    return addr->s6_addr[0] == 0x5f && addr->s6_addr[1] == 0;
}

/*
 * Groups.
 */

struct in6_addr
proxy_address(uint32_t n)
{
    return (struct in6_addr){.s6_addr = {0xfd, 0x00, 0xff, 0xff, [12] = (uint8_t) (n >> 24),
                                         (uint8_t) (n >> 16), (uint8_t) (n >> 8), (uint8_t) n}};
}

bool
is_proxy_address(const struct in6_addr *addr)
{
    struct in6_addr prefix = proxy_address(0);

    return !memcmp(addr, &prefix, PROXY_PREFIX_LEN / 8);
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
