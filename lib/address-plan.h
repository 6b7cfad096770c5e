/* SPDX-License-Identifier: Apache-2.0
 *
 * The address plan: who has which addresses, and how many of each there can be.
 *
 *     5f00:0:<id>::/48                  locator of the node with this id, a 16-bit uSID
 *     5f00:0:<id>::1                    its address
 *     5f00:0:<id>:<function>::          its SIDs: functions from 0xe000 on are its own, 0xe1xx to
 *                                       0xe3xx those of its port with number xx, 0xf000 +
 *                                       Replication-ID is that of a group
 *     5f00:0:<function>::/48            a function of the node that the packet is at: 0xe1xx only
 *     fd00:ffff::<number>               Proxy Addresses of groups
 *     ff3e::8000:<Replication-ID>       a group in mode mcast: source-specific (RFC 4607), in the
 *                                       range of RFC 3307 for groups that a host allocates
 *     02:5f:<id>:<port>                 MAC address of a node's port, locally administered
 */
#ifndef LIB_ADDRESS_PLAN_H
#define LIB_ADDRESS_PLAN_H 1

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/words.h"

/* The registry's schema has these, too.  The least is 1; for Replication-IDs 0, for QPNs
 * QPN_MIN. */
#define NODE_ID_MAX        57343 /* 0xdfff: the next one is a function. */
#define NODE_ID_MAX_TEXT   "57343"
#define PORT_NUMBER_MAX    4095
#define REPLICATION_ID_MAX 4095
#define QPN_MIN            2        /* 0 and 1 are not for RC queue pairs. */
#define QPN_MAX            0xfffffe /* the next one, the highest, is for multicast. */

struct prefix {
    struct in6_addr address;
    uint8_t plen;
};

/* Is the address in the prefix? */
bool prefix_covers(const struct prefix *, const struct in6_addr *);

/* Prefixes as text. */
#define SID_SPACE_TEXT      "5f00::/16" /* everybody's SIDs (RFC 9602). */
#define SID_BLOCK_TEXT      "5f00::/32" /* SIDs of this plan. */
#define SID_BLOCK_PLEN      32
#define PROXY_PREFIX_TEXT   "fd00:ffff::/32"
#define MCAST_PREFIX_TEXT   "ff3e::8000:0/116"
/* All nodes' addresses: a value and a mask. */
#define NODE_ADDRESSES_TEXT "5f00::1/ffff:ffff:0:ffff:ffff:ffff:ffff:ffff"

/*
 * Nodes.
 */

#define NODE_LOCATOR_PLEN   48
#define NODE_LOCATOR_LEN    (NODE_LOCATOR_PLEN / 8) /* bytes. */
struct in6_addr node_locator(uint16_t id);
struct in6_addr node_address(uint16_t id);
/* Id of the node whose address or SID this is. */
uint16_t node_id_of(const struct in6_addr *);
/* Is it in this node's locator? */
bool address_is_of_node(const struct in6_addr *, uint16_t id);
void node_port_mac(uint16_t id, uint16_t port, uint8_t mac[6]);

/*
 * SIDs.
 */

/* What a node does with packets to SIDs of its own, by function.  Columns: enumerator, text,
 * function, length of the SIDs' prefix, roles of the nodes that have them, do they take RoCE
 * packets only?
 *
 * uN is End with the flavors NEXT-CSID, PSP, USP and USD: its SID is the node's locator.  uA is End.X
 * with the same.  They are called by their short names, as in draft-filsfils-srv6ops-srv6-ai-backend
 * section 2.  Functions of ports (sid_behaviour_is_of_port()): of 255 ports at most. */
#define SID_BEHAVIOURS(BEHAVIOUR)                                                               \
    BEHAVIOUR(UN, "uN", 0, 48, ROLE(SWITCH) | ROLE(AGENT) | ROLE(OVS) | ROLE(ROUTER), false)    \
    BEHAVIOUR(END, "End", 0xe000, 64, ROLE(SWITCH), false)                                      \
    BEHAVIOUR(END_MT, "End.MT", 0xe001, 64, ROLE(SWITCH) | ROLE(AGENT), true)                   \
    BEHAVIOUR(RESPONSE, "End.Response", 0xe002, 64, ROLE(SWITCH) | ROLE(AGENT), true)           \
    BEHAVIOUR(END_DT6, "End.DT6", 0xe003, 64, ROLE(SWITCH) | ROLE(AGENT) | ROLE(ROUTER), false) \
    /* Of ports to nodes; End.DX6 of ports to hosts and agents. */                              \
    BEHAVIOUR(UA, "uA", 0xe100, 64, ROLE(SWITCH) | ROLE(OVS) | ROLE(ROUTER), false)             \
    BEHAVIOUR(END_DX6, "End.DX6", 0xe200, 64, ROLE(SWITCH) | ROLE(ROUTER), false)               \
    BEHAVIOUR(END_X, "End.X", 0xe300, 64, ROLE(SWITCH) | ROLE(ROUTER), false)                   \
    /* Of all groups: 4 bits of function, 12 of Replication-ID. */                              \
    BEHAVIOUR(END_REPLICATE, "End.Replicate", 0xf000, 52, ROLE(SWITCH) | ROLE(OVS), true)

enum sid_behaviour {
#define BEHAVIOUR(NAME, TEXT, FUNCTION, PLEN, ROLES, TAKES_ROCE) SID_##NAME,
    SID_BEHAVIOURS(BEHAVIOUR)
#undef BEHAVIOUR
};
enum sid_function {
#define BEHAVIOUR(NAME, TEXT, FUNCTION, PLEN, ROLES, TAKES_ROCE) SID_FUNC_##NAME = FUNCTION,
    SID_BEHAVIOURS(BEHAVIOUR)
#undef BEHAVIOUR
};
WORDS_DECLARE(sid_behaviour, enum sid_behaviour);

struct sid_behaviour_row {
    const char *text;
    uint16_t function;
    uint8_t plen;
    bool takes_roce;    /* only RoCE packets should come to such a SID. */
    unsigned int roles; /* a bit for each enum node_role. */
};
const struct sid_behaviour_row *sid_behaviour(enum sid_behaviour);

/* Is there one for each port, with its number added to the function? */
bool sid_behaviour_is_of_port(enum sid_behaviour);
#define SID_PORT_MAX        255

/* The uSID behind the block: nodes from 1 on, functions of whichever node from here on. */
#define USID_FIRST_FUNCTION 0xe000

struct in6_addr node_sid(uint16_t id, uint16_t function);
/* The same function without the node (the LIB of RFC 9800): a prefix of NODE_LOCATOR_PLEN bits. */
struct in6_addr local_sid(uint16_t function);
struct in6_addr node_replication_sid(uint16_t id, uint16_t replication_id);
/* The Replication-ID in a SID that node_replication_sid() has made. */
uint16_t replication_id_of(const struct in6_addr *sid);
/* Is it in the block of this plan, and not a node's address? */
bool address_is_sid(const struct in6_addr *);
/* Is it in the space where only SIDs may be? */
bool address_is_in_sid_space(const struct in6_addr *);

/*
 * Groups.
 */

#define PROXY_PREFIX_LEN 32
struct in6_addr proxy_address(uint32_t number);
bool is_proxy_address(const struct in6_addr *);
struct in6_addr mcast_group_address(uint16_t replication_id);
bool is_mcast_group_address(const struct in6_addr *);

#endif /* lib/address-plan.h */
