/* SPDX-License-Identifier: Apache-2.0
 *
 * Neighbour Solicitation and Advertisement messages (RFC 4861 sections 4.3, 4.4).
 */
#ifndef LIB_ND_H
#define LIB_ND_H 1

#include <stdbool.h>

#include "lib/packet.h"
#include "lib/parse.h"

enum nd_type {
    ND_NS = 135, /* Neighbour Solicitation. */
    ND_NA = 136, /* Neighbour Advertisement. */
};

/* What a message says. */
struct nd_msg {
    enum nd_type type;
    struct in6_addr src;
    struct in6_addr dst;
    struct in6_addr target;
    bool router; /* NA flags R, S and O. */
    bool solicited;
    bool override;
    bool has_mac; /* source (NS) or target (NA) link-layer address option. */
    uint8_t mac[6];
};

enum nd_verdict {
    ND_NONE,    /* not neighbour discovery. */
    ND_OTHER,   /* router solicitation or advertisement, redirect: not looked into. */
    ND_VALID,   /* NS or NA that passes RFC 4861 sections 7.1.1 and 7.1.2. */
    ND_INVALID, /* NS or NA that does not. */
};

/* Reads the outermost IPv6 packet of a frame; *m is filled if ND_VALID. */
enum nd_verdict nd_parse(const uint8_t *frame, const struct parsed *, struct nd_msg *m);

/* Writes a whole frame into 'p', which is empty; it always has the option. */
void nd_build(struct packet *p, const uint8_t eth_src[6], const uint8_t eth_dst[6],
              const struct nd_msg *);

/* ff02::1:ffXX:XXXX of an address, and the Ethernet address of an IPv6 group (RFC 2464). */
struct in6_addr nd_solicited_node(const struct in6_addr *);
void nd_multicast_mac(const struct in6_addr *group, uint8_t mac[6]);

#endif /* lib/nd.h */
